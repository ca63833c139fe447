//! A server's log: its end, its errors, and what they mean.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::error::Cause;
use crate::recovery::LogEvidence;

/// Of a log that is longer only the end is read.
const READ_AT_MOST: u64 = 1024 * 1024;
/// Error lines kept in a report, besides the log's end.
const ERRORS_KEPT: usize = 20;
/// Lines of a log's end kept in a report.
const TAIL_KEPT: usize = 15;

/// Of a line as many characters are kept: MySQL prints whole pages in one.
const LINE_KEPT: usize = 1000;

/// The log of one start: what the server has written since.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    /// The server appends to it.
    file: Arc<File>,
}

impl Log {
    /// The log in a file that is the server's output.
    pub(crate) fn of(file: File) -> Self {
        Self { file: Arc::new(file) }
    }

    /// Its lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let read = || -> io::Result<Vec<u8>> {
            let end = self.file.metadata()?.len();
            let from = end.saturating_sub(READ_AT_MOST);
            let mut bytes = vec![0; usize::try_from(end - from).unwrap_or(0)];
            // By its place: the server writes through the same descriptor. It may have cut its log off meanwhile.
            let mut len = 0;
            while len < bytes.len() {
                match self.file.read_at(&mut bytes[len..], from + len as u64)? {
                    0 => break,
                    more => len += more,
                }
            }
            bytes.truncate(len);
            Ok(bytes)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).lines().map(str::to_owned).collect()
    }

    /// The last lines.
    pub(crate) fn tail(&self, count: usize) -> Vec<String> {
        let mut lines = self.lines();
        lines.split_off(lines.len().saturating_sub(count))
    }

    /// What a report of a failure shows: the error lines, and the log's end.
    pub(crate) fn evidence(&self) -> Vec<String> {
        evidence(&self.lines())
    }
}

fn evidence(lines: &[String]) -> Vec<String> {
    let end = lines.len().saturating_sub(TAIL_KEPT);
    // A server may log the same line hundreds of times before the consequence.
    let mut seen = BTreeSet::new();
    let errors = lines[..end].iter().filter(|line| is_error(line) && seen.insert(message(line)));
    errors.take(ERRORS_KEPT).chain(&lines[end..]).map(|line| line.chars().take(LINE_KEPT).collect()).collect()
}

/// A line without what differs from one time to the next: the time, and figures.
fn message(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Whether the server marks a line as an error, or reports in it why it crashed.
fn is_error(line: &str) -> bool {
    ["[ERROR]", "got signal", "Assertion failure"].iter().any(|words| line.contains(words))
}

/// Words in a log from which the cause of a failed start is known; the first that is found counts.
const CAUSES: &[(&str, Cause)] = &[
    ("No space left on device", Cause::NoSpace),
    ("errno: 28", Cause::NoSpace),
    ("rror: 28", Cause::NoSpace),
    ("error 28", Cause::NoSpace),
    ("error number 28", Cause::NoSpace),
    ("isk is full", Cause::NoSpace),
    ("Address already in use", Cause::PortInUse),
    ("Unable to lock", Cause::FilesInUse),
    ("Cannot allocate memory", Cause::Memory),
    ("Permission denied", Cause::Forbidden),
    ("errno: 13", Cause::Forbidden),
    ("rror: 13", Cause::Forbidden),
    ("must be writable", Cause::Forbidden),
    ("orrupt", Cause::Corrupt),
];

/// Whether a line names a cause. What servers print after any crash mentions corruption too.
fn names(line: &str, words: &str, cause: &Cause) -> bool {
    line.contains(words) && (*cause != Cause::Corrupt || line.contains("[ERROR]"))
}

/// Why a server did not start.
pub(crate) fn cause(lines: &[String]) -> Option<Cause> {
    let find = |(words, cause): &(&str, Cause)| {
        lines.iter().any(|line| names(line, words, cause)).then(|| cause.clone())
    };
    CAUSES.iter().find_map(find).or_else(|| reports_damage(lines).then_some(Cause::Corrupt))
}

/// Whether a server waits for room on its file system, which nobody will make.
pub(crate) fn waits_for_room(lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains(WAITS_FOR_ROOM))
}

/// Whether a server has come upon damage: MySQL may then wait for ever for the page that it cannot read.
pub(crate) fn reports_damage(lines: &[String]) -> bool {
    !LogEvidence::read(lines).corruption.is_empty()
}

/// Words with which servers refuse an option.
const REFUSALS: [&str; 10] = [
    "unknown variable",
    "unknown option",
    "unknown suffix",
    "Unknown suffix",
    "Error while setting value",
    "requires a value",
    "ambiguous option",
    "Invalid value",
    "invalid value",
    "doesn't take an argument",
];
/// Words with which they report that they changed its value. A value that was moved to one
/// that they can have shows when the settings are read back.
const IGNORED: [&str; 9] = [
    "ignored",
    "Ignored",
    "ignoring",
    "Ignoring",
    "no effect",
    "does nothing",
    "was removed",
    "not supported",
    "unsupported",
];
/// Words of a server that waits for room, a minute at a time and without an end.
const WAITS_FOR_ROOM: &str = "Waiting for someone to free space";

/// The lines in which a server reports that it does not take one of the options (`name=value`) as given.
pub(crate) fn refusals(lines: &[String], options: &[String]) -> Vec<String> {
    let names: Vec<String> = options.iter().map(|option| plain(name_of(option))).collect();
    let about_ours = |line: &str| {
        let line = plain(line);
        names.iter().any(|name| mentions(&line, name))
    };
    let refuses = |line: &str| {
        REFUSALS.iter().any(|words| line.contains(words))
            || (IGNORED.iter().any(|words| line.contains(words)) && about_ours(line))
    };
    lines.iter().filter(|line| refuses(line)).cloned().collect()
}

fn name_of(option: &str) -> &str {
    option.split('=').next().unwrap_or(option).trim()
}

fn plain(text: &str) -> String {
    text.replace('-', "_").to_ascii_lowercase()
}

/// Whether a text names an option as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].trim_end_matches('_');
        !is_part(before.chars().next_back()) && !is_part(text[at + name.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_servers_refusal_of_an_option_is_found_among_its_lines() {
        let log = lines(
            "2026-01-01 [Note] InnoDB: Using Linux native AIO\n\
             2026-01-01 [ERROR] mariadbd: unknown variable 'innodb_foo=1'\n\
             2026-01-01 [Warning] innodb_buffer_pool_instances is deprecated and ignored\n\
             2026-01-01 [Warning] innodb_open_files should not be greater; ignored",
        );
        let options = ["innodb-buffer-pool-instances=4".to_owned(), "innodb_foo=1".to_owned()];
        assert_eq!(refusals(&log, &options), &log[1..3]);
        assert_eq!(refusals(&log[2..], &options[1..]), Vec::<String>::new(), "not ours");
    }

    #[test]
    fn causes_are_found_by_the_servers_words() {
        for (line, expected) in [
            ("[ERROR] InnoDB: Write to file ./ibdata1 failed: No space left on device", Some(Cause::NoSpace)),
            (
                "[ERROR] Can't start server: Bind on TCP/IP port: Address already in use",
                Some(Cause::PortInUse),
            ),
            ("[ERROR] InnoDB: Unable to lock ./ibdata1 error: 11", Some(Cause::FilesInUse)),
            ("mariadbd: Can't create file '/x' (errno: 13 \"Permission denied\")", Some(Cause::Forbidden)),
            ("[ERROR] InnoDB: Page [page id: space=7, page number=3] is corrupted", Some(Cause::Corrupt)),
            ("or one of the libraries it was linked against is corrupt, improperly built,", None),
            ("[ERROR] Aborting", None),
        ] {
            assert_eq!(cause(&lines(line)), expected, "{line}");
        }
    }

    #[test]
    fn a_report_keeps_early_errors_and_the_end() {
        let mut log = lines("start\n2026 [ERROR] the reason\n2027 [ERROR] the reason");
        log.extend((0..100).map(|n| format!("line {n}")));
        let kept = evidence(&log);
        assert_eq!(kept[0], "2026 [ERROR] the reason");
        assert_eq!(kept.len(), 1 + TAIL_KEPT);
        assert_eq!(kept.last().unwrap(), "line 99");
    }

    #[test]
    fn a_log_is_read_while_its_server_appends_to_it() {
        let file = tempfile::tempfile().unwrap();
        let log = Log::of(file.try_clone().unwrap());
        for line in [b"one\n", b"two\n"] {
            io::Write::write_all(&mut &file, line).unwrap();
            log.lines();
        }
        assert_eq!(log.lines(), ["one", "two"]);
        assert_eq!(log.tail(1), ["two"]);
    }
}
