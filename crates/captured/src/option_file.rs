//! Option files (my.cnf) as the servers and their clients read them: groups, includes, quotes and comments.
//!
//! A file has what a server would be started with. It is not what a running server has.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use crate::packed;

/// Includes within includes: MySQL follows ten.
const DEEPEST: usize = 10;
/// Larger files are no option files, bytes.
const LARGEST: u64 = 1 << 20;
/// Files in all that are followed.
const MOST_FILES: usize = 200;
/// Bytes of a line that the servers read at once (`fgets` with a buffer of 4,095): what follows is a line of its own to them, also
/// in a comment. MySQL 9.7 alone reads whole lines.
const LONGEST_LINE: usize = 4094;

/// One option as a file sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionLine {
    /// The group that it stands in, such as `mysqld`.
    pub group: String,
    /// Its name, in lower case, with `_` in place of `-`.
    pub name: String,
    /// Its value without quotes; None where the line has no `=`.
    pub value: Option<String>,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

/// The options of a file and of those that it includes, in the order in which they hold: a later one wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionFile {
    /// Each option.
    pub lines: Vec<OptionLine>,
    /// What could not be followed or understood.
    pub warnings: Vec<OptionFileWarning>,
}

/// Something in an option file that could not be followed or understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionFileWarning {
    /// The line of a group does not end.
    #[error("{}, line {line}: the name of a group has no `]`", .path.display())]
    OpenGroup {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An option belongs to no group.
    #[error("{}, line {line}: an option stands before the first group", .path.display())]
    NoGroup {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A line begins with `!` and is no include.
    #[error("{}: !{word} is not known", .path.display())]
    UnknownDirective {
        /// The file.
        path: PathBuf,
        /// What follows the `!`.
        word: String,
    },
    /// A line is longer than what the servers read at once.
    #[error("{}, line {line}: it has over {LONGEST_LINE} bytes, and servers but MySQL 9 read the rest as another line", .path.display())]
    LongLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The name of a group begins with a blank: the servers know no such group.
    #[error("{}, line {line}: servers do not read [{name}], whose name begins with a blank", .path.display())]
    BlankGroup {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The name of the group, with the blank.
        name: String,
    },
    /// A directory of includes cannot be listed.
    #[error("{} is not followed: {reason}", .path.display())]
    NotListed {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// An include is too deep, or one of too many.
    #[error("{} is not followed", .path.display())]
    NotFollowed {
        /// The file.
        path: PathBuf,
    },
    /// An included file cannot be read, and may set anything.
    #[error("cannot read the option file {}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// An included file is none.
    #[error("{} is no option file: it has over {LARGEST} bytes, or is no text", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// An include leads out of the files that were given.
    #[error("{} is left out: it is not in {}", .path.display(), .root.display())]
    Outside {
        /// The file or directory.
        path: PathBuf,
        /// The directory of the given file.
        root: PathBuf,
    },
}

impl From<OptionFileError> for OptionFileWarning {
    fn from(error: OptionFileError) -> Self {
        match error {
            OptionFileError::Read { path, .. } => Self::Unreadable { path },
            OptionFileError::Foreign { path } => Self::Foreign { path },
        }
    }
}

/// A file that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OptionFileError {
    /// The system refused.
    #[error("cannot read the option file {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// It has more than an option file has.
    #[error("{} is no option file: it has over {LARGEST} bytes, or is no text", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

impl OptionFile {
    /// Reads a file, and those that it includes.
    ///
    /// # Errors
    /// The file itself cannot be read. What goes wrong with an included file is a warning.
    pub fn read(path: &Path) -> Result<Self, OptionFileError> {
        let text = contents(path)?;
        Ok(Follower::default().read(path, &text, 0))
    }

    /// Takes the text of a file that others have given, and follows includes inside the file's directory alone: an absolute
    /// path, a `..` or a link that leads out of there is left out, with a warning.
    #[must_use]
    pub fn inside_directory(path: &Path, text: &str) -> Self {
        let root = path.parent().filter(|root| !root.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Follower { root: Some(root.to_owned()), ..Follower::default() }.read(path, text, 0)
    }

    /// Takes the text of a file without what it includes; includes become warnings.
    #[must_use]
    pub fn of_text(path: &Path, text: &str) -> Self {
        Follower::default().read(path, text, DEEPEST)
    }

    /// The options of some groups, in order.
    pub fn of_groups<'a>(&'a self, groups: &'a [String]) -> impl Iterator<Item = &'a OptionLine> {
        self.lines.iter().filter(move |line| groups.contains(&line.group))
    }
}

/// Reads a file and what it includes.
#[derive(Debug, Default)]
struct Follower {
    file: OptionFile,
    /// The files that were read or tried.
    seen: BTreeSet<PathBuf>,
    /// The directory that includes must not lead out of; None: they may lead anywhere.
    root: Option<PathBuf>,
}

impl Follower {
    /// `depth` is how many includes lead to the file.
    fn read(mut self, path: &Path, text: &str, depth: usize) -> OptionFile {
        self.seen.insert(path.to_owned());
        self.follow(path, text, depth);
        self.file
    }

    fn follow(&mut self, path: &Path, text: &str, depth: usize) {
        let mut group = None;
        for (number, whole) in (1..).zip(text.lines()) {
            if whole.len() > LONGEST_LINE {
                self.warn(OptionFileWarning::LongLine { path: path.to_owned(), line: number });
            }
            for part in parts(whole) {
                self.line(path, (number, part.trim()), &mut group, depth);
            }
        }
    }

    /// Takes a line with its number; `group` is the one that it stands in.
    fn line(&mut self, path: &Path, (number, line): (usize, &str), group: &mut Option<String>, depth: usize) {
        let path_of = || path.to_owned();
        if line.is_empty() || line.starts_with(['#', ';']) {
        } else if let Some(directive) = line.strip_prefix('!') {
            self.include(path, directive, depth);
        } else if let Some(name) = line.strip_prefix('[') {
            match name.split_once(']') {
                // A blank at the end is none of the name; one at the beginning is.
                Some((name, _)) => {
                    let name = name.trim_end().to_ascii_lowercase();
                    if name.starts_with([' ', '\t']) {
                        let name = name.clone();
                        self.warn(OptionFileWarning::BlankGroup { path: path_of(), line: number, name });
                    }
                    *group = Some(name);
                }
                None => self.warn(OptionFileWarning::OpenGroup { path: path_of(), line: number }),
            }
        } else if let Some(group) = group {
            let (name, value) = option(line);
            let (group, file) = (group.clone(), path_of());
            self.file.lines.push(OptionLine { group, name, value, file, line: number });
        } else {
            self.warn(OptionFileWarning::NoGroup { path: path_of(), line: number });
        }
    }

    fn warn(&mut self, warning: OptionFileWarning) {
        self.file.warnings.push(warning);
    }

    fn include(&mut self, from: &Path, directive: &str, depth: usize) {
        let (word, target) = directive.split_once([' ', '\t']).unwrap_or((directive, ""));
        let target = Path::new(target.trim());
        let below = from.parent().unwrap_or(Path::new(".")).join(target);
        let files = match word {
            "include" | "includedir" if depth >= DEEPEST => {
                self.file.warnings.push(OptionFileWarning::NotFollowed { path: below });
                return;
            }
            "include" => vec![below],
            "includedir" if self.leads_out(&below) => return,
            "includedir" => match listed(&below) {
                Ok(files) => files,
                Err(error) => {
                    let reason = error.to_string();
                    self.file.warnings.push(OptionFileWarning::NotListed { path: below, reason });
                    return;
                }
            },
            _ => {
                let (path, word) = (from.to_owned(), word.to_owned());
                self.file.warnings.push(OptionFileWarning::UnknownDirective { path, word });
                return;
            }
        };
        for file in files {
            if self.seen.len() >= MOST_FILES {
                self.file.warnings.push(OptionFileWarning::NotFollowed { path: file });
            } else if self.seen.insert(file.clone()) {
                if self.leads_out(&file) {
                    continue;
                }
                match contents(&file) {
                    Ok(text) => self.follow(&file, &text, depth + 1),
                    Err(error) => self.file.warnings.push(error.into()),
                }
            }
        }
    }

    /// Whether a path leads out of the directory that includes have to stay in, by whatever it is a link to.
    fn leads_out(&mut self, path: &Path) -> bool {
        let Some(root) = &self.root else { return false };
        let inside = match (root.canonicalize(), path.canonicalize()) {
            (Ok(root), Ok(real)) => real.starts_with(root),
            // What is not there is not read; whether it is there is nobody's business outside.
            (Ok(_), Err(_)) => {
                path.starts_with(root) && !path.components().any(|part| part == Component::ParentDir)
            }
            (Err(_), _) => false,
        };
        if !inside {
            self.file.warnings.push(OptionFileWarning::Outside { path: path.to_owned(), root: root.clone() });
        }
        !inside
    }
}

/// Files of a directory that end in `.cnf`, by name.
fn listed(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "cnf"))
        .collect();
    files.sort();
    Ok(files)
}

fn contents(path: &Path) -> Result<String, OptionFileError> {
    let refused = |source| OptionFileError::Read { path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(refused)?;
    let foreign = || OptionFileError::Foreign { path: path.to_owned() };
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Err(foreign());
    }
    packed::text(fs::read(path).map_err(refused)?).ok_or_else(foreign)
}

/// The parts of a line that servers read one after the other.
fn parts(mut line: &str) -> Vec<&str> {
    let mut all = Vec::new();
    while line.len() > LONGEST_LINE {
        let end = (1..=LONGEST_LINE).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(line.len());
        let (part, rest) = line.split_at(end);
        all.push(part);
        line = rest;
    }
    all.push(line);
    all
}

/// Name and value of a line.
fn option(line: &str) -> (String, Option<String>) {
    let line = uncommented(line).trim();
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name, Some(unquoted(value.trim()))),
        None => (line, None),
    };
    (normal(name), value)
}

/// A name as the servers spell their variables.
#[must_use]
pub fn normal(name: &str) -> String {
    name.trim().trim_start_matches("--").to_ascii_lowercase().replace('-', "_")
}

/// A line up to a `#` outside quotes (`remove_end_comment` in `my_default.c`).
fn uncommented(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', Some(_)) => escaped = true,
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('#', None) => return &line[..at],
            _ => {}
        }
    }
    line
}

/// A value without its quotes, with its escapes as the characters that they stand for.
fn unquoted(value: &str) -> String {
    let inner = ['\'', '"']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value);
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('s') => text.push(' '),
            Some(other @ ('\\' | '"' | '\'')) => text.push(other),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

/// Who besides its owner may read or write a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Anyone may read it.
    pub world_readable: bool,
    /// Anyone may write it: the servers' clients do not read such a file.
    pub world_writable: bool,
}

/// Who may read and write a file; None where there is no such file.
#[must_use]
pub fn access(path: &Path) -> Option<Access> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    Some(Access { world_readable: mode & 0o004 != 0, world_writable: mode & 0o002 != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &Path, name: &str, text: &str) -> PathBuf {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn values(file: &OptionFile) -> Vec<(&str, &str, Option<&str>)> {
        file.lines.iter().map(|line| (&*line.group, &*line.name, line.value.as_deref())).collect()
    }

    #[test]
    fn groups_quotes_comments_and_dashes_are_read_as_the_servers_read_them() {
        let text = "# c\n; c\n[mysqld]\nInnoDB-Flush-Neighbors = 1 # for disks\nskip-name-resolve\n\
                    datadir='/my data' # x\ninit-connect = \"SET @a = '#1'\"\n[client]\npassword = \"a#b\"\nuser=\\s\\\\x\nport=1#b\n";
        let file = OptionFile::of_text(Path::new("/c"), text);
        assert_eq!(
            values(&file),
            [
                ("mysqld", "innodb_flush_neighbors", Some("1")),
                ("mysqld", "skip_name_resolve", None),
                ("mysqld", "datadir", Some("/my data")),
                ("mysqld", "init_connect", Some("SET @a = '#1'")),
                ("client", "password", Some("a#b")),
                ("client", "user", Some(" \\x")),
                ("client", "port", Some("1")),
            ]
        );
        assert_eq!(file.lines[1].line, 5);
        assert!(file.warnings.is_empty(), "{:?}", file.warnings);
        let blank = OptionFile::of_text(Path::new("/c"), "[ mysqld ]\na=1\n[mysqld ]\nb=2\n[]\nc=3\n");
        assert_eq!(values(&blank)[1], ("mysqld", "b", Some("2")), "a blank before the name is part of it");
        assert_eq!(blank.warnings.len(), 1, "{:?}", blank.warnings);
        let broken = OptionFile::of_text(Path::new("/c"), "a=1\n[x\n!what /y\n[ok]\nb=2\n");
        assert_eq!((broken.lines.len(), broken.warnings.len()), (1, 3), "{:?}", broken.warnings);
    }

    #[test]
    fn what_follows_4094_bytes_of_a_line_is_another_line_as_the_servers_read_it() {
        let text = format!("[mysqld]\na=1\n#{}a=2\n", "é".repeat(2046) + " ");
        let file = OptionFile::of_text(Path::new("/c"), &text);
        assert_eq!(values(&file), [("mysqld", "a", Some("1")), ("mysqld", "a", Some("2"))]);
        assert_eq!(file.warnings, [OptionFileWarning::LongLine { path: "/c".into(), line: 3 }]);
    }

    /// A file with values in quotes, with escapes, comments and blanks, below groups that are written in several ways.
    fn options_of_every_kind() -> String {
        let values = [
            "1",
            "",
            " 8 G ",
            "\"a b\"",
            "'a#b'",
            "a#b",
            "\"a\"b\"",
            "a\\sb\\q\\\\",
            "\"a\\\"b\"",
            "a=b",
            "a;b",
            "\"a;b\" ; c",
            "'a",
            "\"",
            "a\\",
            "\\#x",
            "\t1\t",
            "/x y/z ",
            "\"\\n\"",
            "#",
            "\"a\" # b",
            "'it\\'s'",
            "%h",
            "ü",
        ];
        let names = ["a", "a-b_c", "A", "loose-x", "x y"];
        let mut text = String::from("# comment\n;another\n[mysqld]\r\n");
        for value in values {
            for name in names {
                text.push_str(&format!(
                    "{name}={value}\n  {name} = {value}  \n[client]\nno=1\n[MySQLd ] # x\n"
                ));
            }
        }
        text.push_str("flag\n  other # c\n[ mysqld]\nno=1\n[mysqld][client]\nlast");
        text
    }

    #[test]
    fn an_option_file_is_read_as_the_program_of_the_servers_reads_it() {
        let program = "my_print_defaults";
        if std::process::Command::new(program).arg("--version").output().is_err() {
            println!("not run: {program} is not installed");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my.cnf");
        let text = options_of_every_kind();
        for (mark, text) in [("", text.clone()), ("crlf", text.replace('\n', "\r\n"))] {
            fs::write(&path, &text).unwrap();
            let output = std::process::Command::new(program)
                .arg(format!("--defaults-file={}", path.display()))
                .arg("mysqld")
                .output()
                .unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let file = OptionFile::read(&path).unwrap();
            let own: String = file
                .lines
                .iter()
                .filter(|line| line.group == "mysqld")
                .map(|line| match &line.value {
                    Some(value) => format!("--{}={value}\n", line.name),
                    None => format!("--{}\n", line.name),
                })
                .collect();
            let as_own = |line: &str| match line.split_once('=') {
                Some((name, value)) => format!("--{}={value}", normal(name)),
                None if line.starts_with("--") => format!("--{}", normal(line)),
                // What follows the end of a line in a value.
                None => line.to_owned(),
            };
            let printed: Vec<String> = printed.lines().map(as_own).collect();
            assert_eq!(own.lines().collect::<Vec<_>>(), printed, "{mark}");
        }
    }

    #[test]
    fn includes_are_followed_in_order_and_no_circle_goes_on_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let main = put(
            dir.path(),
            "my.cnf",
            "[mysqld]\na=1\n!includedir conf.d\n[mysqld]\na=9\n!include gone.cnf\n",
        );
        put(dir.path(), "conf.d/b.cnf", "[mysqld]\na=3\n!include ../my.cnf\n");
        put(dir.path(), "conf.d/a.cnf", "[mysqld]\na=2\n");
        put(dir.path(), "conf.d/c.txt", "[mysqld]\na=7\n");
        put(dir.path(), "conf.d/d.cnf", "!include d.cnf\n!include ../conf.d/d.cnf\n");
        let file = OptionFile::read(&main).unwrap();
        let all: Vec<_> = values(&file).into_iter().filter_map(|(_, _, value)| value).collect();
        assert_eq!(all[..3], ["1", "2", "3"]);
        assert_eq!(all.last(), Some(&"9"));
        assert!(all.len() < 30 && !all.contains(&"7"), "{all:?}");
        assert!(
            file.warnings.contains(&OptionFileWarning::Unreadable { path: dir.path().join("gone.cnf") }),
            "{:?}",
            file.warnings
        );
        assert!(OptionFile::read(&dir.path().join("none")).is_err());
        assert!(OptionFile::read(dir.path()).is_err(), "a directory is no file");
    }

    #[test]
    fn a_file_that_others_have_given_includes_nothing_outside_of_its_directory() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("bundle"), dir.path().join("secret"));
        put(&outside, "x.cnf", "[mysqld]\nsecret=1\n");
        put(&inside, "conf.d/a.cnf", "[mysqld]\na=2\n!include ../b.cnf\n");
        put(&inside, "b.cnf", "[mysqld]\nb=3\n");
        symlink(&outside, inside.join("linked.d")).unwrap();
        symlink(outside.join("x.cnf"), inside.join("conf.d/link.cnf")).unwrap();
        symlink(inside.join("b.cnf"), inside.join("conf.d/own.cnf")).unwrap();
        let absolute = outside.join("x.cnf");
        let text = format!(
            "[mysqld]\na=1\n!includedir conf.d\n!includedir linked.d\n!includedir {}\n!include {}\n\
             !include ../secret/x.cnf\n!include linked.d/x.cnf\n!include ../secret/none.cnf\n!include gone.cnf\n",
            outside.display(),
            absolute.display(),
        );
        let main = put(&inside, "my.cnf", &text);
        let file = OptionFile::inside_directory(&main, &text);
        let names: Vec<&str> = file.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["a", "a", "b", "b"], "a link that stays inside is followed");
        let left_out = |warning: &OptionFileWarning| match warning {
            OptionFileWarning::Outside { path, .. } => Some(path.clone()),
            _ => None,
        };
        let left_out: Vec<PathBuf> = file.warnings.iter().filter_map(left_out).collect();
        let expected = [
            inside.join("conf.d/link.cnf"),
            inside.join("linked.d"),
            outside,
            absolute,
            inside.join("../secret/x.cnf"),
            inside.join("linked.d/x.cnf"),
            inside.join("../secret/none.cnf"),
        ];
        assert_eq!(left_out, expected);
        assert!(file.warnings.contains(&OptionFileWarning::Unreadable { path: inside.join("gone.cnf") }));
        let own = OptionFile::read(&main).unwrap();
        assert!(own.lines.iter().any(|line| line.name == "secret"), "one's own file includes what it says");
    }
}
