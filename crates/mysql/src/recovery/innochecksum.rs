//! The servers' own word on their pages: `innochecksum`, the one that fits the server.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::spaces::Space;
use super::{BadPage, INVALID_KEPT, PageCheck, Unverified};
use crate::account::Account;
use crate::binary::{Binary, Version, fetched_servers};
use crate::{Layout, process};

const NAME: &str = "innochecksum";
/// Reading a file from the slowest volume may take long; a program that hangs is given up.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Files that one process reads: their paths fit into a command line, whose limit is megabytes.
const FILES_AT_ONCE: usize = 256;
/// Servers' programs that are next to a fetched server's own loader, as small scripts.
const WRAPPERS: [&str; 2] = ["bin/mariadbd", "bin/mysqld"];

/// Has `innochecksum` look at every page. The server must not run on the files.
///
/// The program is the one next to the server's, from other fetched servers, or from PATH; it has to be
/// of the same make (MySQL's does not know MariaDB's checksums), and of the server's version or a newer.
///
/// # Errors
/// [`Unverified::NoTool`]; [`Unverified::Tool`] where it does not look, for one because a server has the
/// files open; and what the file systems refuse.
pub fn check_pages(binary: &Binary, layout: &Layout) -> Result<PageCheck, Unverified> {
    let tool = Tool::of(binary)?;
    let account = Account::for_data(&layout.data).map_err(Unverified::account)?;
    let mut check = PageCheck::default();
    let (whole, in_part): (Vec<Space>, Vec<Space>) =
        Space::all(layout)?.into_iter().partition(|space| space.left_out.is_empty());
    // The start of a process takes longer than the reading of a small file.
    let groups = whole.chunks(FILES_AT_ONCE).filter(|group| !tool.passes(group, &account));
    for space in in_part.iter().chain(groups.flatten()) {
        check.invalid.extend(tool.look_at(space, &account)?);
    }
    for space in in_part.iter().chain(&whole) {
        check.files += 1;
        check.pages += space.pages();
    }
    Ok(check)
}

/// The program, and the words before its arguments.
#[derive(Debug, Clone)]
struct Tool {
    path: PathBuf,
    words: Vec<OsString>,
}

impl Tool {
    /// The one that fits a server, looked for once.
    fn of(binary: &Binary) -> Result<Self, Unverified> {
        static FOUND: Mutex<BTreeMap<PathBuf, Tool>> = Mutex::new(BTreeMap::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = found.get(&binary.path) {
            return Ok(tool.clone());
        }
        let candidates = candidates(binary);
        let account = Account::for_server().map_err(Unverified::account)?;
        let tool = candidates.iter().map(|path| Self::at(path)).find(|tool| tool.fits(binary, &account));
        let tool = tool.ok_or_else(|| {
            let looked: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
            let looked = match looked.as_slice() {
                [] => "there is none next to it, among the fetched servers, or in PATH".to_owned(),
                found => format!("{} are of another make or older", found.join(", ")),
            };
            Unverified::NoTool { server: binary.name(), looked }
        })?;
        found.insert(binary.path.clone(), tool.clone());
        Ok(tool)
    }

    /// A program that is among a fetched server's files needs that server's loader and libraries.
    fn at(path: &Path) -> Self {
        let own = OsString::from(path);
        let words = match path.ancestors().skip(1).find_map(loader) {
            Some(loader) => {
                let libraries = loader.parent().unwrap_or(Path::new("/")).into();
                vec![loader.into(), "--inhibit-cache".into(), "--library-path".into(), libraries, own]
            }
            None => vec![own],
        };
        Self { path: path.to_owned(), words }
    }

    /// The program as the server's user, who can read the files: it may have come with the server.
    fn command(&self, account: &Account) -> Command {
        let mut command = process::command_of(&account.words(), Path::new(&self.words[0]));
        command.args(&self.words[1..]);
        command
    }

    fn fits(&self, binary: &Binary, account: &Account) -> bool {
        let mut command = self.command(account);
        command.arg("--version");
        let Ok(output) = process::output(command, TIMEOUT) else { return false };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        make_and_version(&text).is_some_and(|(is_mariadb, version)| {
            let release = |version: &Version| (version.major, version.minor);
            is_mariadb == binary.is_mariadb() && release(&version) >= release(&binary.version)
        })
    }

    /// Whether it passes every page of these files, which one process reads. False is no verdict: it stops at the first
    /// invalid page, and then each file has to be looked at alone.
    fn passes(&self, spaces: &[Space], account: &Account) -> bool {
        if spaces.len() < 2 {
            return false;
        }
        let mut command = self.command(account);
        command.args(spaces.iter().map(|space| &space.path));
        let output = process::output(command, TIMEOUT);
        output.is_ok_and(|output| output.success && output.stderr.is_empty())
    }

    /// The pages of a file that it calls invalid.
    fn look_at(&self, space: &Space, account: &Account) -> Result<Vec<BadPage>, Unverified> {
        let left_out: usize = space.left_out.iter().map(ExactSizeIterator::len).sum();
        let mut command = self.command(account);
        // Without this it stops at the first; what is left out below must not use it up.
        command.arg(format!("--allow-mismatches={}", INVALID_KEPT + left_out)).arg(&space.path);
        let output = process::output(command, TIMEOUT)
            .map_err(Unverified::at("look with innochecksum at", &space.path))?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let named: BTreeMap<u32, &str> =
            stderr.lines().filter_map(|line| Some((invalid_page(line)?, line))).collect();
        let bad = |page: u32, line: &str| {
            let reason = format!("innochecksum: {}", line.trim());
            BadPage { file: space.path.clone(), page, reason, facts: space.facts(page), copy: None }
        };
        if !named.is_empty() {
            let named = named.into_iter().filter(|(page, _)| space.counts(*page));
            return Ok(named.take(INVALID_KEPT).map(|(page, line)| bad(page, line)).collect());
        }
        if output.success {
            return Ok(Vec::new());
        }
        match gives_up_at(&stderr, space) {
            Some((page, line)) => Ok(vec![bad(page, line)]),
            None => Err(Unverified::Tool {
                tool: self.path.display().to_string(),
                file: space.path.clone(),
                message: stderr.split_whitespace().collect::<Vec<_>>().join(" "),
            }),
        }
    }
}

/// The page that a line calls invalid: `Fail: page::64 invalid` (MariaDB), `Fail: page 64 invalid` (MySQL).
fn invalid_page(line: &str) -> Option<u32> {
    let rest = line.trim().strip_prefix("Fail")?;
    let rest = rest.split_once("page").map(|(_, rest)| rest.trim_start_matches([':', ' ']))?;
    let (number, rest) = rest.split_once(' ')?;
    rest.starts_with("invalid").then(|| number.parse().ok())?
}

/// The page at which it stops without calling it invalid: the first, which describes how to read the others,
/// or one inside of which the file ends.
fn gives_up_at<'a>(stderr: &'a str, space: &Space) -> Option<(u32, &'a str)> {
    let find = |words: &[&str]| stderr.lines().find(|line| words.iter().any(|word| line.contains(word)));
    if let Some(line) =
        find(&["Page 0 checksum mismatch", "Invalid page size", "First page of the tablespace"])
    {
        return Some((0, line));
    }
    let ends_inside = !space.len.is_multiple_of(space.size());
    let line = find(&["bytes read", "Bytes read"]).filter(|_| ends_inside)?;
    Some((u32::try_from(space.pages()).ok()?, line))
}

/// Whether it is MariaDB's, and its version, from what it answers to `--version`.
fn make_and_version(text: &str) -> Option<(bool, Version)> {
    let mut words = text.split_whitespace().skip_while(|word| *word != "Ver" && *word != "from");
    let version = Version::parse(words.nth(1)?.trim_end_matches(','))?;
    // MariaDB's before 11 does not name its maker; MySQL has not come to these numbers.
    Some((text.contains("MariaDB") || version.major >= 10, version))
}

/// Where it may be, the likeliest first.
fn candidates(binary: &Binary) -> Vec<PathBuf> {
    let real = binary.path.canonicalize().unwrap_or_else(|_| binary.path.clone());
    let nearby = [&binary.path, &real].into_iter().filter_map(|program| program.parent()).flat_map(|dir| {
        let above = dir.parent().unwrap_or(dir);
        [dir.to_owned(), above.join("bin"), above.join("usr/bin")]
    });
    let mut fetched: Vec<PathBuf> = std::fs::read_dir(fetched_servers())
        .map(|dirs| dirs.flatten().map(|dir| dir.path().join("usr/bin")).collect())
        .unwrap_or_default();
    fetched.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = Vec::new();
    for file in nearby.chain(fetched).chain(std::env::split_paths(&path)).map(|dir| dir.join(NAME)) {
        if file.is_file() && !found.contains(&file) {
            found.push(file);
        }
    }
    found
}

/// The loader of a fetched server, where a directory is one.
fn loader(base: &Path) -> Option<PathBuf> {
    let is_script = |file: PathBuf| {
        use std::io::Read as _;
        let mut start = [0; 2];
        std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
    };
    if !WRAPPERS.iter().any(|wrapper| is_script(base.join(wrapper))) {
        return None;
    }
    let libraries = ["usr/lib", "lib"]
        .into_iter()
        .flat_map(|lib| std::fs::read_dir(base.join(lib)).into_iter().flatten().flatten());
    libraries.map(|dir| dir.path()).find_map(|dir| {
        let files = std::fs::read_dir(dir).ok()?;
        files
            .flatten()
            .find(|file| file.file_name().to_string_lossy().starts_with("ld-linux"))
            .map(|file| file.path())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_beside_a_server_runs_as_the_servers_user_with_nothing_of_our_environment() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap()
        };
        open(dir.path(), 0o777);
        let (program, mark) = (dir.path().join(NAME), dir.path().join("mark"));
        let text = format!(
            "#!/bin/sh\nid -u >>'{0}'\nenv >>'{0}'\necho 'innochecksum Ver 10.11.19, for debian-linux-gnu (x86_64)'\n",
            mark.display()
        );
        std::fs::write(&program, text).unwrap();
        open(&program, 0o755);
        let version = Version::new(10, 11, 19);
        let path = dir.path().join("mariadbd");
        let binary = Binary { path, flavour: crate::Flavour::MariaDb, version, text: String::new() };
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("ibdata1"), vec![0; 1 << 20]).unwrap();
        let check = check_pages(&binary, &Layout::single(&data)).unwrap();
        assert_eq!(check.files, 1, "{check:?}");
        let seen = std::fs::read_to_string(&mark).unwrap();
        let ours = rustix::process::geteuid();
        let users: Vec<&str> =
            seen.lines().filter(|line| line.bytes().all(|byte| byte.is_ascii_digit())).collect();
        assert_eq!(users.len(), 2, "its version, and the file: {seen}");
        assert!(
            users.iter().all(|user| !ours.is_root() || *user != "0") && !seen.contains("CARGO"),
            "{seen}"
        );
    }

    #[test]
    fn sound_files_are_read_by_one_process_and_each_by_its_own_where_one_of_them_is_not() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap()
        };
        open(dir.path(), 0o777);
        let (program, mark) = (dir.path().join(NAME), dir.path().join("mark"));
        let text = format!(
            "#!/bin/sh
[ \"$1\" = --version ] && exec echo 'innochecksum Ver 10.11.19, for debian-linux-gnu (x86_64)'
echo \"$#\" >>'{}'
case \"$*\" in *bad.ibd*) echo 'Fail: page::1 invalid' >&2; exit 1;; esac
",
            mark.display()
        );
        std::fs::write(&program, text).unwrap();
        open(&program, 0o755);
        let version = Version::new(10, 11, 19);
        let path = dir.path().join("mariadbd");
        let binary = Binary { path, flavour: crate::Flavour::MariaDb, version, text: String::new() };
        let data = dir.path().join("data");
        std::fs::create_dir_all(data.join("d")).unwrap();
        std::fs::write(data.join("ibdata1"), vec![0; 1 << 20]).unwrap();
        std::fs::write(data.join("d/a.ibd"), vec![0; 4 << 14]).unwrap();
        let arguments = || {
            let counts = std::fs::read_to_string(&mark).unwrap();
            std::fs::remove_file(&mark).unwrap();
            counts.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let check = check_pages(&binary, &Layout::single(&data)).unwrap();
        assert_eq!((check.files, check.pages, check.invalid.len()), (2, 64 + 4, 0), "{check:?}");
        assert_eq!(arguments(), ["2"]);
        std::fs::write(data.join("d/bad.ibd"), vec![0; 4 << 14]).unwrap();
        let check = check_pages(&binary, &Layout::single(&data)).unwrap();
        let [bad] = check.invalid.as_slice() else { panic!("{check:?}") };
        assert!(bad.page == 1 && bad.file.ends_with("d/bad.ibd"), "{bad:?}");
        assert_eq!((check.files, check.pages), (3, 64 + 4 + 4));
        assert_eq!(arguments(), ["3", "2", "2", "2"]);
    }

    #[test]
    fn pages_that_are_called_invalid_are_read_from_both_makes() {
        for (line, page) in [
            ("Fail: page::64 invalid", Some(64)),
            ("Fail: page 7 invalid", Some(7)),
            ("Fail; page 7 invalid (fails crc32 checksum)", Some(7)),
            ("Fail; space::3 page::9 invalid (fails log sequence number check)", Some(9)),
            ("Exceeded the maximum allowed checksum mismatch count::0 current::1", None),
            ("Page::3 is empty and uncorrupted", None),
        ] {
            assert_eq!(invalid_page(line), page, "{line}");
        }
    }

    #[test]
    fn make_and_version_are_read_from_the_programs_words() {
        for (text, mariadb, version) in [
            ("innochecksum Ver 10.11.19, for debian-linux-gnu (x86_64)", true, Version::new(10, 11, 19)),
            (
                "/x/innochecksum from 11.8.6-MariaDB, client 1.0 for debian-linux-gnu",
                true,
                Version::new(11, 8, 6),
            ),
            ("/x/innochecksum  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", false, Version::new(9, 7, 4)),
        ] {
            assert_eq!(make_and_version(text), Some((mariadb, version)), "{text}");
        }
        assert_eq!(make_and_version("innochecksum: not found"), None);
    }
}
