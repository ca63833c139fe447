//! Work directories: the lock, and the record of what a killed process left.
//!
//! The record is written before the thing that it names is made: a process killed in between leaves a
//! record of nothing, which is harmless.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ebbtide_proc::process::Stat;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::cgroup::Cgroup;
use crate::error::ServerError;
use crate::process;

/// The name of a record in its work directory.
const RECORD: &str = "server.json";
/// The name of the lock file.
const LOCK: &str = "server.lock";
/// How deep below a run directory work directories are looked for.
const DEPTH: usize = 3;
/// How long a leftover server may take to end after its kill.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest path of a socket (`sun_path` of unix(7), less its final zero).
const SOCKET_PATH: usize = 107;

/// The directory of one server's options file, log and socket, held by this process.
#[derive(Debug)]
pub(crate) struct WorkDir {
    dir: PathBuf,
    /// Held for as long as the value lives; its file stays.
    _lock: File,
}

impl WorkDir {
    /// Makes the directory where it is missing, takes its lock, and clears what a killed process left.
    pub(crate) fn open(dir: &Path, account: &Account) -> Result<Self, ServerError> {
        let dir = &std::path::absolute(dir).map_err(ServerError::at("resolve", dir))?;
        std::fs::create_dir_all(dir).map_err(ServerError::at("create", dir))?;
        // The server's user may do as it likes in here: all of it is thrown away.
        account.give(dir)?;
        let Some(lock) = lock(dir).map_err(ServerError::at("lock", dir))? else {
            return Err(ServerError::InUse { dir: dir.clone(), pid: "of another server of ours".into() });
        };
        let work = Self { dir: dir.clone(), _lock: lock };
        if work.socket().as_os_str().len() > SOCKET_PATH {
            return Err(ServerError::SocketPath { path: work.socket() });
        }
        clear(dir).map_err(ServerError::at("clear what a killed server left in", dir))?;
        Ok(work)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join("sock")
    }

    pub(crate) fn options_file(&self) -> PathBuf {
        self.dir.join("server.cnf")
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    pub(crate) fn pid_file(&self) -> PathBuf {
        self.dir.join("server.pid")
    }

    /// The argument that names the options file: no other process has it.
    pub(crate) fn argument(&self) -> String {
        argument(&self.dir)
    }

    /// Writes the record, whole or not at all.
    pub(crate) fn save(&self, record: &Record) -> Result<(), ServerError> {
        let path = self.dir.join(RECORD);
        let new = path.with_extension("new");
        let write = || {
            File::create(&new)?.write_all(&serde_json::to_vec(record)?)?;
            std::fs::rename(&new, &path)
        };
        write().map_err(ServerError::at("write", &path))
    }

    /// Removes the record, once nothing of it is left.
    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_file(self.dir.join(RECORD));
        let _ = std::fs::remove_file(self.socket());
    }
}

fn argument(dir: &Path) -> String {
    format!("--defaults-file={}", dir.join("server.cnf").display())
}

/// Takes the lock of a work directory; none where another process holds it.
fn lock(dir: &Path) -> io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(dir.join(LOCK))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What one start makes outside of its directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The server, for people.
    pub(crate) server: String,
    /// Its memory cgroup.
    pub(crate) cgroup: Option<Cgroup>,
    /// Its process, once it was started: id and start time in clock ticks after boot.
    pub(crate) process: Option<(u32, u64)>,
}

/// What [`clear_leftovers`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleared {
    /// What it has cleared.
    pub cleared: Vec<String>,
    /// What it could not clear, and why. That stays recorded, for the next attempt.
    pub kept: Vec<String>,
}

/// Whether a work directory has the record of something that runs, or could not be cleared.
#[must_use]
pub fn is_recorded(work_dir: &Path) -> bool {
    work_dir.join(RECORD).exists()
}

/// Ends servers and removes cgroups that a killed process left behind in work directories below `run_dir`
/// (or in it).
///
/// Nothing is touched whose lock a living process holds. A process counts as left behind by its id together
/// with its start time, by the cgroup that was made for it, or by the options file it was started with;
/// never by its id alone.
#[must_use]
pub fn clear_leftovers(run_dir: &Path) -> Cleared {
    let mut all = Cleared::default();
    for dir in work_dirs(run_dir, DEPTH) {
        match lock(&dir) {
            Ok(None) => {}
            Ok(Some(_lock)) => match clear(&dir) {
                Ok(cleared) => all.cleared.extend(cleared),
                Err(error) => all.kept.push(format!("cannot clear {}: {error}", dir.display())),
            },
            Err(error) => all.kept.push(format!("cannot lock {}: {error}", dir.display())),
        }
    }
    all
}

/// Directories with a record.
fn work_dirs(dir: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if dir.join(RECORD).is_file() {
        found.push(dir.to_owned());
    }
    if depth == 0 {
        return found;
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return found };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        found.extend(work_dirs(&entry.path(), depth - 1));
    }
    found
}

/// Clears what the record of a work directory names. Its lock is held.
fn clear(dir: &Path) -> io::Result<Vec<String>> {
    let path = dir.join(RECORD);
    let text = match std::fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    // Guessing what a damaged record cleared could leave something behind for ever.
    let record: Record = serde_json::from_slice(&text)?;
    let mut cleared = Vec::new();
    for (pid, start_ticks) in processes(dir, &record) {
        if process::kill_stranger(pid, start_ticks, PATIENCE)? {
            cleared.push(format!("server {} (process {pid}), left by a run that was killed", record.server));
        }
    }
    if let Some(cgroup) = record.cgroup.filter(|cgroup| cgroup.dir().exists()) {
        cgroup.remove()?;
        cleared.push(format!("memory cgroup {}", cgroup.dir().display()));
    }
    let _ = std::fs::remove_file(dir.join("sock"));
    std::fs::remove_file(path)?;
    Ok(cleared)
}

/// The processes of a record, with their start times.
fn processes(dir: &Path, record: &Record) -> Vec<(u32, u64)> {
    let mut pids = ebbtide_proc::process::with_argument(&argument(dir));
    pids.extend(record.cgroup.iter().flat_map(Cgroup::processes));
    let now = |pid: u32| Stat::of(pid).map(|stat| (pid, stat.start_ticks));
    let mut found: Vec<_> = pids.into_iter().filter_map(now).chain(record.process).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        Account::for_server().unwrap()
    }

    #[test]
    fn a_record_of_nothing_is_cleared_without_a_word_and_a_held_one_is_left() {
        let run = tempfile::tempdir().unwrap();
        let work = WorkDir::open(&run.path().join("a/b"), &account()).unwrap();
        let record =
            Record { server: "x".into(), process: Some((std::process::id(), 1)), ..Record::default() };
        work.save(&record).unwrap();
        assert_eq!(clear_leftovers(run.path()), Cleared::default());
        assert!(is_recorded(&run.path().join("a/b")), "its owner lives");
        drop(work);
        assert_eq!(clear_leftovers(run.path()), Cleared::default(), "we are not that process");
        assert!(!is_recorded(&run.path().join("a/b")));
    }

    #[test]
    fn a_work_directory_has_one_server_at_a_time_and_a_short_path() {
        let run = tempfile::tempdir().unwrap();
        let _work = WorkDir::open(run.path(), &account()).unwrap();
        let error = WorkDir::open(run.path(), &account()).unwrap_err();
        assert!(matches!(error, ServerError::InUse { .. }), "{error}");
        let long = run.path().join("x".repeat(100));
        let error = WorkDir::open(&long, &account()).unwrap_err();
        assert!(matches!(error, ServerError::SocketPath { .. }), "{error}");
    }

    #[test]
    fn a_server_that_a_record_knows_by_its_options_file_alone_is_ended_and_no_other() {
        let run = tempfile::tempdir().unwrap();
        let dir = run.path().join("w");
        let work = WorkDir::open(&dir, &account()).unwrap();
        work.save(&Record { server: "MariaDB 10.11.19".into(), ..Record::default() }).unwrap();
        let start = |argument: String| {
            let mut command = std::process::Command::new("sh");
            // It waits without a child, which would have the same argument until it became another program.
            command
                .args(["-c", "read _", "sh"])
                .arg(argument)
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        };
        let (mut ours, mut other) = (start(work.argument()), start(format!("{}.other", work.argument())));
        // Both are shells for certain only once they have become so.
        while ebbtide_proc::process::with_argument(&work.argument()) != [ours.id()] {
            std::thread::yield_now();
        }
        drop(work);
        let cleared = clear_leftovers(run.path()).cleared;
        let expected =
            format!("server MariaDB 10.11.19 (process {}), left by a run that was killed", ours.id());
        assert_eq!(cleared, [expected]);
        assert_eq!(ours.wait().unwrap().code(), None, "a signal ended it");
        assert!(other.try_wait().unwrap().is_none(), "it was none of ours");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_damaged_record_is_reported_and_kept() {
        let run = tempfile::tempdir().unwrap();
        std::fs::write(run.path().join(RECORD), "{").unwrap();
        let all = clear_leftovers(run.path());
        assert!(all.kept.len() == 1 && all.kept[0].starts_with("cannot clear"), "{all:?}");
        assert!(all.cleared.is_empty() && is_recorded(run.path()), "{all:?}");
    }
}
