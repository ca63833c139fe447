//! Backups by the servers' own tools: a logical dump, and a physical copy that is made while the server runs.
//!
//! The tools run as the server's user and, while they read a running server, inside its memory, as on one machine.
//! Only the tools read and write the files: they are child processes, since this one may answer for the I/O of the
//! volumes that the files are on.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ebbtide_dir::{Access, Dir};
use ebbtide_load::{Cancel, LoadError, Session, Target};

use crate::account::Account;
use crate::binary::Binary;
use crate::cgroup::Cgroup;
use crate::error::ServerError;
use crate::launch;
use crate::layout::{Layout, Maker};
use crate::process::{PATH, Process};
use crate::server::Server;

/// The longest that a tool is waited for.
const LONGEST: Duration = Duration::from_secs(3600);
/// How often it is looked whether a tool has ended, or is to end: a backup of seconds is timed with it.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a killed tool may take to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(60);
/// Of what a tool wrote, so many lines at its end are its words.
const WORDS: usize = 6;
/// Of what a tool wrote, as many bytes at its end are looked at.
const TAIL_BYTES: u64 = 16 << 10;
/// Memory of the tool that brings a physical backup to one point in time, bytes.
const PREPARE_MEMORY: u64 = 256 << 20;

/// Why a backup was not made, or not made usable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The tool is not on this machine.
    #[error("{tool}: {why}, in none of {}; Debian has it in the package {package}", .looked.join(", "))]
    Missing {
        /// The program.
        tool: &'static str,
        /// The package.
        package: &'static str,
        /// Where it was looked for.
        looked: Vec<String>,
        /// The operating system's words for it.
        why: String,
    },
    /// There is no such tool for this server.
    #[error(
        "{server} has no tool for a physical backup here: mariadb-backup is for MariaDB alone. Take a dump or a snapshot"
    )]
    NoTool {
        /// The server.
        server: String,
    },
    /// The tool failed.
    #[error("{tool} failed ({status}): {words}")]
    Failed {
        /// The program.
        tool: String,
        /// How it ended.
        status: String,
        /// The end of what it wrote.
        words: String,
    },
    /// The tool did not end.
    #[error("{tool} did not end within {seconds} s, and was killed")]
    TooLong {
        /// The program.
        tool: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// It was ended because nobody needs it any more.
    #[error("cancelled")]
    Cancelled,
    /// Making the account or the memory of the tool.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The operating system refused.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why not.
        source: io::Error,
    },
}

/// A running server, as far as its backup needs it: it may be killed meanwhile.
#[derive(Debug, Clone)]
pub struct Source {
    socket: PathBuf,
    /// The option file with the password.
    client_file: PathBuf,
    /// As whom the server runs, and its tools.
    account: Account,
    cgroup: Option<Cgroup>,
    target: Target,
}

impl Source {
    /// That of a server.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        Self {
            socket: server.socket(),
            client_file: server.client_file(),
            account: server.account().clone(),
            cgroup: server.cgroup().cloned(),
            target: server.target(),
        }
    }

    /// A connection to it, without a database.
    ///
    /// # Errors
    /// Where it does not answer.
    pub fn session(&self) -> Result<Session, LoadError> {
        Session::open_without_database(&self.target, &self.target.endpoints[0])
    }

    /// A client's command: no option file but the one with the user and the password, which comes first.
    fn client(&self, program: &Path) -> Vec<String> {
        vec![
            program.display().to_string(),
            format!("--defaults-file={}", self.client_file.display()),
            format!("--socket={}", self.socket.display()),
        ]
    }

    fn memory(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }
}

/// A tool of the servers' makers.
#[derive(Debug, Clone, Copy)]
struct Tool {
    /// The program on MariaDB; and the name that it had before.
    mariadb: [&'static str; 2],
    /// The program on MySQL; none where MySQL has none.
    mysql: Option<&'static str>,
    /// Debian's package for MariaDB.
    package: &'static str,
}

const DUMP: Tool =
    Tool { mariadb: ["mariadb-dump", "mysqldump"], mysql: Some("mysqldump"), package: "mariadb-client" };
const CLIENT: Tool =
    Tool { mariadb: ["mariadb", "mysql"], mysql: Some("mysql"), package: "mariadb-client-core" };
const PHYSICAL: Tool =
    Tool { mariadb: ["mariadb-backup", "mariabackup"], mysql: None, package: "mariadb-backup" };

impl Tool {
    /// The program for a server: next to it, next to its directory, or where the system has programs.
    fn find(self, binary: &Binary) -> Result<PathBuf, BackupError> {
        let names: Vec<&'static str> = if binary.is_mariadb() {
            self.mariadb.to_vec()
        } else {
            let mysql = self.mysql.ok_or_else(|| BackupError::NoTool { server: binary.name() })?;
            vec![mysql]
        };
        let dirs = dirs(binary);
        let all = names.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
        let found = all.into_iter().find(|program| program.is_file());
        found.ok_or_else(|| BackupError::Missing {
            tool: names[0],
            package: self.package,
            looked: dirs.iter().map(|dir| dir.display().to_string()).collect(),
            why: io::Error::from(rustix::io::Errno::NOENT).to_string(),
        })
    }
}

/// Where programs of a server are looked for: with it first.
fn dirs(binary: &Binary) -> Vec<PathBuf> {
    let own = binary.path.parent().map(Path::to_owned);
    let beside = own.as_deref().and_then(Path::parent).map(|base| base.join("bin"));
    let mut dirs: Vec<PathBuf> = own.into_iter().chain(beside).collect();
    for dir in PATH.split(':').map(PathBuf::from) {
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    dirs
}

/// Checks that the tool for a dump is there, and the client that loads it.
///
/// # Errors
/// [`BackupError::Missing`].
pub fn check_dump(binary: &Binary) -> Result<(), BackupError> {
    DUMP.find(binary).and_then(|_| CLIENT.find(binary)).map(drop)
}

/// Checks that the tool for a physical backup is there.
///
/// # Errors
/// [`BackupError::Missing`], and [`BackupError::NoTool`] for MySQL.
pub fn check_physical(binary: &Binary) -> Result<(), BackupError> {
    PHYSICAL.find(binary).map(drop)
}

/// Dumps databases of a running server into a file, as of the moment at which it begins, and syncs the file. The
/// directory of the file is given to the server's user.
///
/// # Errors
/// A tool that is missing or fails, and [`BackupError::Cancelled`] where `stop` says so.
pub fn dump(
    server: &Source,
    binary: &Binary,
    databases: &[&str],
    to: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<(), BackupError> {
    let program = DUMP.find(binary)?;
    let account = &server.account;
    account.give_dir(to.parent().unwrap_or(to))?;
    let mut words = server.client(&program);
    words.extend([
        // One transaction sees all rows as of its begin, and nobody waits for it.
        "--single-transaction".to_owned(),
        "--quick".to_owned(),
        "--skip-lock-tables".to_owned(),
        format!("--result-file={}", to.display()),
        "--databases".to_owned(),
    ]);
    words.extend(databases.iter().map(|database| (*database).to_owned()));
    run(account, words, server.memory(), None, stop)?;
    sync(account, to, server.memory(), stop)
}

/// Loads a dump into a running server.
///
/// # Errors
/// As [`dump`].
pub fn load_dump(
    server: &Source,
    binary: &Binary,
    from: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<(), BackupError> {
    let program = CLIENT.find(binary)?;
    let input = open_plain(from).map_err(io_at("open", from))?;
    run(&server.account, server.client(&program), None, Some(input), stop)
}

/// Copies the files of a running server into a directory, with the redo that it writes meanwhile, and syncs them.
///
/// # Errors
/// As [`dump`].
pub fn copy_files(
    server: &Source,
    binary: &Binary,
    data: &Path,
    to: &Path,
    stop: &dyn Fn() -> bool,
) -> Result<(), BackupError> {
    let program = PHYSICAL.find(binary)?;
    let account = &server.account;
    account.give_dir(to)?;
    let mut words = server.client(&program);
    words.extend([
        "--backup".to_owned(),
        format!("--datadir={}", data.display()),
        format!("--target-dir={}", to.display()),
    ]);
    run(account, words, server.memory(), None, stop)?;
    sync(account, to, server.memory(), stop)
}

/// Brings copied files to one point in time, so that a server can be started on them: their directory is a data directory
/// then.
///
/// # Errors
/// As [`dump`].
pub fn prepare_files(binary: &Binary, dir: &Path, stop: &dyn Fn() -> bool) -> Result<(), BackupError> {
    let program = PHYSICAL.find(binary)?;
    let account = Account::for_data(dir)?;
    let words = vec![
        program.display().to_string(),
        "--no-defaults".to_owned(),
        "--prepare".to_owned(),
        format!("--use-memory={PREPARE_MEMORY}"),
        format!("--target-dir={}", dir.display()),
    ];
    run(&account, words, None, None, stop)?;
    Ok(Maker::of(binary).sign(&Layout::single(dir), &account)?)
}

/// Bytes of a file, or of all files below a directory.
///
/// # Errors
/// What the file system refuses.
pub fn bytes_of(path: &Path) -> Result<u64, BackupError> {
    let facts = std::fs::symlink_metadata(path).map_err(io_at("look at", path))?;
    if !facts.is_dir() {
        return Ok(facts.len());
    }
    let entries = std::fs::read_dir(path).map_err(io_at("list", path))?;
    entries.map(|entry| bytes_of(&entry.map_err(io_at("list", path))?.path())).sum()
}

/// Opens a file in a directory that the server's user may write.
fn open_plain(path: &Path) -> io::Result<File> {
    let (dir, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
    Dir::open_entry(dir)?.plain_file(name, Access::Read)
}

/// Has everything below a path written to its volume, which a backup is not finished before.
fn sync(
    account: &Account,
    path: &Path,
    cgroup: Option<&Cgroup>,
    stop: &dyn Fn() -> bool,
) -> Result<(), BackupError> {
    let words = ["sync".to_owned(), "--file-system".into(), path.display().to_string()];
    run(account, words.to_vec(), cgroup, None, stop)
}

/// Runs a tool to its end.
fn run(
    account: &Account,
    words: Vec<String>,
    cgroup: Option<&Cgroup>,
    input: Option<File>,
    stop: &dyn Fn() -> bool,
) -> Result<(), BackupError> {
    let tool = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |action: &str| {
        let action = format!("{action} {tool}");
        move |source| BackupError::Io { action, source }
    };
    let mut output = tempfile::tempfile().map_err(failed("make a file for the output of"))?;
    let log = output.try_clone().map_err(failed("make a file for the output of"))?;
    let all: Vec<String> = account.words().into_iter().chain(words).collect();
    let process = Process::spawn(launch::command(&all, cgroup, log, input)?).map_err(failed("start"))?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = process.wait(LOOK_EVERY) {
            break status;
        }
        let too_long = began.elapsed() > LONGEST;
        if stop() || too_long {
            process.kill(KILL_PATIENCE).map_err(failed("end"))?;
            let seconds = LONGEST.as_secs();
            return Err(if too_long {
                BackupError::TooLong { tool, seconds }
            } else {
                BackupError::Cancelled
            });
        }
    };
    if status.success() {
        return Ok(());
    }
    let words = last_words(&mut output).map_err(failed("read the output of"))?;
    Err(BackupError::Failed { tool, status: status.to_string(), words })
}

/// The last lines of what a tool wrote.
fn last_words(output: &mut File) -> io::Result<String> {
    let len = output.seek(SeekFrom::End(0))?;
    output.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(WORDS)..];
    Ok(if last.is_empty() { "without a word".to_owned() } else { last.join("; ") })
}

fn io_at(action: &'static str, path: &Path) -> impl Fn(io::Error) -> BackupError {
    let action = format!("{action} {}", path.display());
    move |source| BackupError::Io { action: action.clone(), source }
}

/// A stop that nobody asks for but the user.
pub fn until(cancel: &Cancel) -> impl Fn() -> bool + '_ {
    || cancel.is_cancelled()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::{Flavour, Version};

    fn binary(flavour: Flavour, path: PathBuf) -> Binary {
        Binary { path, flavour, version: Version::new(10, 11, 6), text: String::new() }
    }

    #[test]
    fn a_tool_is_taken_from_the_directory_of_its_server() {
        let root = tempfile::tempdir().unwrap();
        for dir in ["sbin", "bin"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        let server = binary(Flavour::MariaDb, root.path().join("sbin/mariadbd"));
        std::fs::write(root.path().join("bin/mysqldump"), "").unwrap();
        let found = DUMP.find(&server).unwrap();
        assert!(found == root.path().join("bin/mysqldump") || found.ends_with("mariadb-dump"), "{found:?}");
        std::fs::write(root.path().join("sbin/mariadb-dump"), "").unwrap();
        assert_eq!(DUMP.find(&server).unwrap(), root.path().join("sbin/mariadb-dump"));
    }

    #[test]
    fn a_tool_that_is_missing_is_named_with_its_package() {
        let none =
            Tool { mariadb: ["no-such-tool-a", "no-such-tool-b"], mysql: None, package: "some-package" };
        let error = none.find(&binary(Flavour::MariaDb, "/x/bin/mariadbd".into())).unwrap_err().to_string();
        assert!(error.starts_with("no-such-tool-a: No such file or directory (os error 2)"), "{error}");
        assert!(error.contains("/x/bin") && error.contains("package some-package"), "{error}");
        let error = PHYSICAL.find(&binary(Flavour::MySql, "/x/bin/mysqld".into())).unwrap_err().to_string();
        assert!(error.starts_with("MySQL 10.11.6 has no tool for a physical backup"), "{error}");
    }

    #[test]
    fn a_tool_that_fails_is_reported_in_its_own_words_and_one_that_is_stopped_as_cancelled() {
        let account = Account::for_server().unwrap();
        let sh = |script: &str| ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let never = || false;
        run(&account, sh("echo fine"), None, None, &never).unwrap();
        let error = run(&account, sh("echo one; echo two >&2; exit 3"), None, None, &never).unwrap_err();
        assert_eq!(error.to_string(), "sh failed (exit status: 3): one; two");
        let error = run(&account, sh("exit 1"), None, None, &never).unwrap_err().to_string();
        assert!(error.ends_with("without a word"), "{error}");
        let began = Instant::now();
        let error = run(&account, sh("exec sleep 600"), None, None, &|| true).unwrap_err();
        assert!(matches!(error, BackupError::Cancelled), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn the_size_of_a_backup_is_that_of_all_its_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/b"), [0; 300]).unwrap();
        std::fs::write(dir.path().join("c"), [0; 7]).unwrap();
        assert_eq!(bytes_of(dir.path()).unwrap(), 307);
        assert_eq!(bytes_of(&dir.path().join("c")).unwrap(), 7);
        bytes_of(&dir.path().join("missing")).unwrap_err();
    }
}
