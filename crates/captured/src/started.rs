//! With which options a server starts, as its own programs and its machine say it: `my_print_defaults`, `mysqld --print-defaults`,
//! `mysqld --verbose --help`, units of systemd, containers, and command lines.

use std::path::Path;

use ebbtide_observe::Version;

use crate::option_file::{OptionFile, OptionLine, normal};

/// Options of a server, and its version where the text has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Started {
    pub(super) options: OptionFile,
    /// Values of a start now, of which most are defaults and none needs to stand in a file.
    pub(super) values: OptionFile,
    pub(super) version: Option<String>,
}

/// Programs that start a server with the options that follow.
const PROGRAMS: [&str; 5] = ["mysqld", "mariadbd", "mysqld_safe", "mariadbd-safe", "mysqld_multi"];
/// Variables of a unit's environment that have options of the server.
const VARIABLES: [&str; 3] = ["MYSQLD_OPTS=", "_WSREP_NEW_CLUSTER=", "MYSQLD_CUSTOM_OPTS="];
/// Options that say where others are, and how a program runs: none is a server's variable.
const OF_PROGRAMS: [&str; 6] = [
    "defaults_file",
    "defaults_extra_file",
    "defaults_group_suffix",
    "no_defaults",
    "print_defaults",
    "help",
];
/// What precedes the arguments that `--print-defaults` prints.
const PRINTED: &str = "would have been started with the following arguments";
/// What precedes the values that `--verbose --help` prints.
const VALUES: &str = "Variables (--variable-name=value)";

/// Reads options; None of another text.
pub(super) fn read(path: &Path, text: &str) -> Option<Started> {
    let version = version(text);
    let file = |mut lines: Vec<OptionLine>| {
        lines.retain(|line| !OF_PROGRAMS.contains(&line.name.as_str()));
        lines.iter_mut().for_each(|line| path.clone_into(&mut line.file));
        OptionFile { lines, warnings: Vec::new() }
    };
    let (options, values) = match text.split_once(VALUES) {
        Some((before, values)) => (Vec::new(), of_help(values, before.lines().count())),
        None if is_list_of_processes(text) => (Vec::new(), Vec::new()),
        None => (of_command_lines(text), Vec::new()),
    };
    let started = Started { options: file(options), values: file(values), version };
    (started != Started::default()).then_some(started)
}

/// A list with the processes of a machine may have several servers, whose options are not one server's.
fn is_list_of_processes(text: &str) -> bool {
    let has_heading = text.lines().take(20).any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&"PID") && (words.contains(&"COMMAND") || words.contains(&"CMD"))
    });
    let servers = text.lines().filter(|line| program(&words(line)).is_some()).count();
    has_heading && servers > 1
}

/// The version of `mysqld  Ver 8.0.36 for Linux on x86_64`.
fn version(text: &str) -> Option<String> {
    text.lines().take(20).find_map(|line| {
        let (program, rest) = line.split_once(" Ver ")?;
        let name = program.trim().rsplit('/').next()?;
        let version = rest.split_whitespace().next()?;
        (PROGRAMS.contains(&name) && Version::parse(version).is_some()).then(|| version.to_owned())
    })
}

/// Names and values of `--verbose --help`. What has no default is not known.
fn of_help(text: &str, lines_before: usize) -> Vec<OptionLine> {
    let numbered = (lines_before + 1..).zip(text.lines());
    let rows = numbered.skip_while(|(_, line)| !line.starts_with("---")).skip(1);
    let rows = rows.take_while(|(_, line)| !line.trim().is_empty());
    let row = |(number, line): (usize, &str)| {
        let (name, value) = line.split_once(' ')?;
        let value = match value.trim() {
            // The server computes these at its start.
            "(No default value)" | "18446744073709551615" | "-1" => return None,
            "TRUE" => "ON",
            "FALSE" => "OFF",
            value => value,
        };
        // Without a binary log MariaDB prints 0.
        let (name, value) = match (normal(name).as_str(), value) {
            ("log_bin", "0") => ("skip_log_bin".to_owned(), None),
            (name, value) => (name.to_owned(), Some(value.to_owned())),
        };
        Some(option(name, value, number))
    };
    rows.filter_map(row).collect()
}

fn option(name: String, value: Option<String>, line: usize) -> OptionLine {
    OptionLine { group: "mysqld".into(), name, value, file: "".into(), line }
}

fn of_command_lines(text: &str) -> Vec<OptionLine> {
    let mut all = Vec::new();
    let filled: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // `my_print_defaults` writes a line for each, with values as they are.
    if !filled.is_empty() && filled.iter().all(|line| line.starts_with("--")) {
        let each = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
        return each.map(|(number, line)| of_word(line, number)).collect();
    }
    let of_container = text.contains("mysql:") || text.contains("mariadb:");
    let mut after_heading = false;
    for (number, line) in logical_lines(text) {
        if line.contains(PRINTED) {
            after_heading = true;
            continue;
        }
        let words = words(&line);
        let start = match words.first().map(String::as_str) {
            Some(first) if after_heading && first.starts_with("--") => Some(0),
            Some("-") if of_container && words.len() == 2 => Some(1),
            Some("command:" | "args:") if of_container => Some(1),
            _ => program(&words),
        };
        after_heading = false;
        let start = start.unwrap_or(words.len());
        add(&words[start..], number, &mut all);
        for word in &words {
            let value = VARIABLES.iter().find_map(|name| Some(&word[word.find(name)? + name.len()..]));
            add(&value.map(self::words).unwrap_or_default(), number, &mut all);
        }
    }
    all
}

/// The place behind the program of a server, or behind its image.
fn program(words: &[String]) -> Option<usize> {
    let is_program = |word: &String| {
        let name = word.rsplit(['/', '=']).next().unwrap_or(word);
        let image = name.split_once(':').map_or("", |(image, _)| image);
        PROGRAMS.contains(&name) || matches!(image, "mysql" | "mariadb" | "mysql-server" | "percona-server")
    };
    words.iter().position(is_program).map(|place| place + 1)
}

/// Lines with those that follow a `\` at their end, and the number of the first one.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let whole = line.trim_end();
        let (line, continued) = whole.strip_suffix('\\').map_or((whole, false), |line| (line, true));
        match all.last_mut() {
            Some((_, before)) if goes_on => before.push_str(line),
            _ => all.push((number, line.to_owned())),
        }
        goes_on = continued;
    }
    all
}

/// The words of a line for a shell, or of a list such as `["--a=b", "--c"]`. A quote that has no end is a letter.
fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.char_indices().peekable();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '\'' | '"' if line[place + 1..].contains(letter) => {
                let word = word.get_or_insert_default();
                for (_, inner) in letters.by_ref().take_while(|(_, inner)| *inner != letter) {
                    word.push(inner);
                }
            }
            '\\' => word.get_or_insert_default().extend(letters.next().map(|(_, letter)| letter)),
            ' ' | '\t' | '[' | ']' => all.extend(word.take()),
            ',' if letters.peek().is_none_or(|(_, next)| matches!(next, ' ' | '"' | '\'' | ']')) => {
                all.extend(word.take())
            }
            _ => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    all
}

/// Adds the options among words. The value of one may be the next word.
fn add(words: &[String], number: usize, all: &mut Vec<OptionLine>) {
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        if !word.starts_with("--") || word.len() < 4 {
            continue;
        }
        let mut line = of_word(word, number);
        let next =
            rest.peek().filter(|next| !next.starts_with(['-', '$', '>', '<', '|', '&', ';', '#', '`']));
        if let Some(next) = next.filter(|_| line.value.is_none()) {
            line.value = Some((*next).clone());
            rest.next();
        }
        all.push(line);
    }
}

fn of_word(word: &str, number: usize) -> OptionLine {
    match word.split_once('=') {
        Some((name, value)) => option(normal(name), Some(value.to_owned()), number),
        None => option(normal(word), None, number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{configured, variables};

    fn options(text: &str) -> Vec<(String, String)> {
        let started = read(Path::new("/c"), text).unwrap_or_else(|| panic!("{text}"));
        let mut lines = configured(&started.options, None, None, &mut Vec::new());
        lines.extend(configured(&started.values, None, None, &mut Vec::new()));
        let all = variables(&lines);
        all.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn options_are_read_of_whatever_starts_a_server() {
        let wanted = [
            ("innodb_buffer_pool_size", "8589934592"),
            ("innodb_flush_method", "O_DIRECT"),
            ("log_bin", "OFF"),
        ];
        for text in [
            "--innodb-buffer-pool-size=8G\n--innodb_flush_method=O_DIRECT\n--skip-log-bin\n",
            "/usr/sbin/mysqld would have been started with the following arguments:\n\
             --innodb-buffer-pool-size=8G --innodb_flush_method=O_DIRECT --skip-log-bin \n",
            "[Service]\nExecStart=/usr/sbin/mysqld --defaults-file=/etc/my.cnf --innodb-buffer-pool-size=8G \\\n  $MYSQLD_OPTS\n\
             Environment=\"MYSQLD_OPTS=--innodb-flush-method=O_DIRECT --skip-log-bin\"\n",
            "mysql  999  3.0 /usr/sbin/mariadbd --innodb-buffer-pool-size 8G --innodb-flush-method='O_DIRECT' --disable-log-bin\n",
            "docker run -d -e MYSQL_ROOT_PASSWORD=x mysql:8.0 --innodb-buffer-pool-size=8G --innodb-flush-method=O_DIRECT --skip-log-bin\n",
            "services:\n  db:\n    image: mariadb:11.8\n    command: --innodb-buffer-pool-size=8G --innodb-flush-method=O_DIRECT --skip-log-bin\n",
            "image: mysql:8.4\nargs: [\"--innodb-buffer-pool-size=8G\", \"--innodb-flush-method=O_DIRECT\",\"--skip-log-bin\"]\n",
            "image: mysql:8.4\nargs:\n  - --innodb-buffer-pool-size=8G\n  - \"--innodb-flush-method=O_DIRECT\"\n  - --skip-log-bin\n",
            "mysqld  Ver 8.0.36 for Linux on x86_64 (Source)\n\nVariables (--variable-name=value)\nand boolean options\n\
             --------- ---------\ninnodb-buffer-pool-size       8589934592\ninnodb-flush-method    O_DIRECT\nlog-bin   0\ntmpdir (No default value)\n\n\
             To see what values\n",
        ] {
            let read = options(text);
            for (name, value) in wanted {
                let is_there = read.iter().any(|(known, set)| known == name && set == value);
                assert!(is_there, "{name} of {text}: {read:?}");
            }
            assert!(read.iter().all(|(name, _)| name != "defaults_file" && name != "tmpdir"), "{read:?}");
        }
    }

    #[test]
    fn other_command_lines_and_lists_of_processes_are_none() {
        let list = "  PID COMMAND\n 1 /usr/sbin/mysqld --port=3306\n 2 /usr/sbin/mysqld --port=3307\n";
        for other in [
            "",
            "sysbench oltp_read_write --mysql-host=db1 --threads=4 run\n",
            "the server's mysqld process isn't there -- call me\n",
            "mysqldump --single-transaction --all-databases\n",
            list,
        ] {
            assert_eq!(read(Path::new("/c"), other), None, "{other}");
        }
        let version = |text: &str| read(Path::new("/c"), text).and_then(|started| started.version);
        assert_eq!(
            version("/usr/sbin/mariadbd  Ver 10.11.6-MariaDB-log for debian\n").as_deref(),
            Some("10.11.6-MariaDB-log")
        );
        assert_eq!(version("mysql  Ver 15.1 Distrib 10.11.6-MariaDB, for debian\n"), None);
    }
}
