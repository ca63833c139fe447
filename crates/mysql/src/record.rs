//! What a server has besides its data: its work directory, and the record and the lock of both.
//!
//! A work directory is root's, and the server's user may read it. What the server makes there is in one directory of its
//! own: this process opens and follows nothing in it. Records and locks are in a directory that the server's user cannot
//! enter: they decide which process is ended and what is removed.
//!
//! The record is written before the thing that it names is made: a process killed in between leaves a record of nothing,
//! which is harmless.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ebbtide_dir::{Access, Dir};
use ebbtide_proc::process::Stat;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::binary::Binary;
use crate::cgroup::Cgroup;
use crate::error::ServerError;
use crate::login::Password;
use crate::plan::WorkPaths;
use crate::process;

/// The ending of a record's name, which begins with that of its work directory.
const RECORD: &str = ".json";
/// The ending of a lock's name.
const LOCK: &str = ".lock";
/// The directory of a work directory that is the server's own.
const OWN: &str = "own";
/// The directory that the server may load files from and write them to: there are none.
const EMPTY: &str = "empty";
const OPTIONS: &str = "server.cnf";
const LOG: &str = "server.log";
/// The statements that set the password.
const STATEMENTS: &str = "init.sql";
/// The option file of clients, with the password.
const CLIENT: &str = "client.cnf";
/// Permissions of directories above a work directory, where they are missing: others may pass.
const PASSABLE: u32 = 0o711;
/// Permissions of a work directory: the server's group, which has this server alone, may look.
const WORK_MODE: u32 = 0o750;
/// Permissions of the option file.
const OPTIONS_MODE: u32 = 0o640;
/// Permissions of a file with a password, which is the server's: it cannot change the directory that the file is in.
const SECRET_MODE: u32 = 0o400;
/// How long a leftover server may take to end after its kill.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest path of a socket (`sun_path` of unix(7), less its final zero).
const SOCKET_PATH: usize = 107;

/// The directory of one server's option file, log and socket, held by this process.
#[derive(Debug)]
pub(crate) struct WorkDir {
    /// Absolute.
    path: PathBuf,
    dir: Dir,
    records: Dir,
    name: String,
    /// Held for as long as the value lives; its file stays.
    _lock: File,
}

impl WorkDir {
    /// Makes the directories where they are missing, takes the lock, clears what a killed process left, and makes the
    /// server's own directory anew.
    pub(crate) fn open(paths: &WorkPaths, account: &Account) -> Result<Self, ServerError> {
        let path = std::path::absolute(&paths.dir).map_err(ServerError::at("resolve", &paths.dir))?;
        let socket = path.join(OWN).join("sock");
        if socket.as_os_str().len() > SOCKET_PATH {
            return Err(ServerError::SocketPath { path: socket });
        }
        if let Some(parent) = path.parent() {
            Dir::make_with_mode(parent, PASSABLE).map_err(ServerError::at("create", parent))?;
        }
        let name = paths.name();
        let records = Dir::make(&paths.records)
            .and_then(|records| records.make_private().map(|()| records))
            .map_err(ServerError::at("create", &paths.records))?;
        let Some(lock) = lock(&records, &name).map_err(ServerError::at("lock", &paths.records))? else {
            return Err(ServerError::InUse { dir: path, pid: "of another server of ours".into() });
        };
        clear(&records, &name).map_err(ServerError::at("clear what a killed server left in", &path))?;
        let dir = make(&path, account).map_err(ServerError::at("create", &path))?;
        Ok(Self { path, dir, records, name, _lock: lock })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.own().join("sock")
    }

    pub(crate) fn pid_file(&self) -> PathBuf {
        self.own().join("server.pid")
    }

    /// The directory that is the server's own.
    fn own(&self) -> PathBuf {
        self.path.join(OWN)
    }

    /// A directory without a file, in which the server cannot make one.
    pub(crate) fn empty_dir(&self) -> PathBuf {
        self.path.join(EMPTY)
    }

    /// The argument that names the option file: no other process has it.
    pub(crate) fn argument(&self) -> String {
        argument(&self.path)
    }

    /// Writes the option file, which the server's user may read.
    pub(crate) fn write_options(&self, text: &str, account: &Account) -> Result<(), ServerError> {
        let written = self.dir.replace(OPTIONS, text.as_bytes(), OPTIONS_MODE, account.reader());
        written.map_err(ServerError::at("write", &self.path.join(OPTIONS)))
    }

    /// Writes what sets a password at the server's start, and what clients that run as the server's user need of it.
    pub(crate) fn write_login(
        &self,
        password: &Password,
        binary: &Binary,
        account: &Account,
    ) -> Result<(), ServerError> {
        for (name, text) in [(STATEMENTS, password.statements(binary)), (CLIENT, password.client_options())] {
            let written = self.dir.replace(name, text.as_bytes(), SECRET_MODE, account.owner());
            written.map_err(ServerError::at("write", &self.path.join(name)))?;
        }
        Ok(())
    }

    /// The statements that the server runs at its start.
    pub(crate) fn init_file(&self) -> PathBuf {
        self.path.join(STATEMENTS)
    }

    /// The option file of the servers' clients.
    pub(crate) fn client_file(&self) -> PathBuf {
        self.path.join(CLIENT)
    }

    /// Makes the log of one start, in the place of an earlier one's.
    pub(crate) fn new_log(&self) -> Result<File, ServerError> {
        let make = || {
            self.dir.remove_all(LOG)?;
            self.dir.file(LOG, Access::NewLog)
        };
        make().map_err(ServerError::at("open", &self.path.join(LOG)))
    }

    /// Writes the record, whole or not at all.
    pub(crate) fn save(&self, record: &Record) -> Result<(), ServerError> {
        let record = Record { work_dir: self.path.clone(), ..record.clone() };
        let file = format!("{}{RECORD}", self.name);
        let write = || self.records.replace(&file, &serde_json::to_vec(&record)?, 0o600, None);
        write().map_err(ServerError::at("write", &self.records.path().join(&file)))
    }

    /// Removes the record, once nothing of it is left, the password, and what the server had in its own directory.
    pub(crate) fn forget(&self) {
        let _ = self.records.remove(format!("{}{RECORD}", self.name));
        for name in [OWN, STATEMENTS, CLIENT] {
            let _ = self.dir.remove_all(name);
        }
    }
}

/// Makes a work directory in its parent where it is missing, with an empty directory of the server's own in it.
fn make(path: &Path, account: &Account) -> io::Result<Dir> {
    let dir = Dir::make_entry(path)?;
    let us = rustix::process::geteuid().as_raw();
    match dir.owner_and_mode()? {
        (owner, _) if owner != us => {
            return Err(io::Error::other(format!("it belongs to the user {owner}: remove it")));
        }
        _ => dir.set_owner_and_mode(account.reader(), WORK_MODE)?,
    }
    dir.remove_all(OWN)?;
    account.give(&dir.make_sub(OWN)?)?;
    dir.make_sub(EMPTY)?.set_owner_and_mode(account.reader(), WORK_MODE)?;
    Ok(dir)
}

fn argument(dir: &Path) -> String {
    format!("--defaults-file={}", dir.join(OPTIONS).display())
}

/// Takes the lock of a name; none where another process holds it.
fn lock(records: &Dir, name: &str) -> io::Result<Option<File>> {
    let file = records.file(format!("{name}{LOCK}"), Access::Make)?;
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
    /// Its work directory.
    pub(crate) work_dir: PathBuf,
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
pub fn is_recorded(paths: &WorkPaths) -> bool {
    paths.records.join(format!("{}{RECORD}", paths.name())).exists()
}

/// Ends servers and removes cgroups that a killed process left behind, by their records in a directory of
/// [`WorkPaths::records`]; a directory that is not there has none.
///
/// Nothing is touched whose lock a living process holds. A process counts as left behind by its id together
/// with its start time, by the cgroup that was made for it, or by the option file that it was started with;
/// never by its id alone.
#[must_use]
pub fn clear_leftovers(records: &Path) -> Cleared {
    let mut all = Cleared::default();
    let found = match Dir::open(records).and_then(|dir| Ok((dir.files()?, dir))) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return all,
        Err(error) => {
            all.kept.push(format!("cannot list {}: {error}", records.display()));
            return all;
        }
    };
    let (files, records) = found;
    let names = files.iter().filter_map(|file| file.to_str()?.strip_suffix(RECORD));
    for name in names {
        let path = records.path().join(name);
        match lock(&records, name) {
            Ok(None) => {}
            Ok(Some(_lock)) => match clear(&records, name) {
                Ok(cleared) => all.cleared.extend(cleared),
                Err(error) => all.kept.push(format!("cannot clear {}: {error}", path.display())),
            },
            Err(error) => all.kept.push(format!("cannot lock {}: {error}", path.display())),
        }
    }
    all
}

/// Clears what a record names. Its lock is held.
fn clear(records: &Dir, name: &str) -> io::Result<Vec<String>> {
    let file = format!("{name}{RECORD}");
    let text = match records.read(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    // Guessing what a damaged record cleared could leave something behind for ever.
    let record: Record = serde_json::from_slice(&text)?;
    let mut cleared = Vec::new();
    for (pid, start_ticks) in processes(&record) {
        if process::kill_stranger(pid, start_ticks, PATIENCE)? {
            cleared.push(format!("server {} (process {pid}), left by a run that was killed", record.server));
        }
    }
    if let Some(cgroup) = record.cgroup.filter(|cgroup| cgroup.dir().exists()) {
        cgroup.remove()?;
        cleared.push(format!("memory cgroup {}", cgroup.dir().display()));
    }
    if let Ok(work) = Dir::open_entry(&record.work_dir) {
        let _ = work.remove_all(OWN);
    }
    records.remove(file)?;
    Ok(cleared)
}

/// The processes of a record, with their start times.
fn processes(record: &Record) -> Vec<(u32, u64)> {
    let mut pids = ebbtide_proc::process::with_argument(&argument(&record.work_dir));
    pids.extend(record.cgroup.iter().flat_map(Cgroup::processes));
    let now = |pid: u32| Stat::of(pid).map(|stat| (pid, stat.start_ticks));
    let mut found: Vec<_> = pids.into_iter().filter_map(now).chain(record.process).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn account() -> Account {
        Account::for_server().unwrap()
    }

    fn paths(run: &Path) -> WorkPaths {
        WorkPaths { dir: run.join("a/w"), records: run.join("records") }
    }

    /// Drops it. A child that another test has forked and that has not become another program yet holds a copy of the lock's
    /// descriptor: closing ours alone would leave the lock taken, and unlocking releases it for all copies.
    fn release(work: WorkDir) {
        work._lock.unlock().unwrap();
        drop(work);
    }

    #[test]
    fn a_record_of_nothing_is_cleared_without_a_word_and_a_held_one_is_left() {
        let run = tempfile::tempdir().unwrap();
        let paths = paths(run.path());
        assert_eq!(clear_leftovers(&paths.records), Cleared::default(), "there are none yet");
        let work = WorkDir::open(&paths, &account()).unwrap();
        let record =
            Record { server: "x".into(), process: Some((std::process::id(), 1)), ..Record::default() };
        work.save(&record).unwrap();
        assert_eq!(clear_leftovers(&paths.records), Cleared::default());
        assert!(is_recorded(&paths), "its owner lives");
        release(work);
        assert_eq!(clear_leftovers(&paths.records), Cleared::default(), "we are not that process");
        assert!(!is_recorded(&paths));
    }

    #[test]
    fn a_work_directory_has_one_server_at_a_time_and_a_short_path() {
        let run = tempfile::tempdir().unwrap();
        let paths = paths(run.path());
        let _work = WorkDir::open(&paths, &account()).unwrap();
        let error = WorkDir::open(&paths, &account()).unwrap_err();
        assert!(matches!(error, ServerError::InUse { .. }), "{error}");
        let long = WorkPaths { dir: run.path().join("x".repeat(100)), ..paths };
        let error = WorkDir::open(&long, &account()).unwrap_err();
        assert!(matches!(error, ServerError::SocketPath { .. }), "{error}");
    }

    #[test]
    fn the_servers_user_owns_one_directory_and_nothing_else() {
        let run = tempfile::tempdir().unwrap();
        let paths = paths(run.path());
        let account = account();
        let outside = run.path().join("outside");
        std::fs::write(&outside, "mine").unwrap();
        // What an earlier server left in the place of our names, and of its own.
        let work = WorkDir::open(&paths, &account).unwrap();
        std::fs::create_dir(work.own().join("deep")).unwrap();
        symlink(&outside, work.own().join("sock")).unwrap();
        release(work);
        let work = WorkDir::open(&paths, &account).unwrap();
        work.write_options("[mysqld]\n", &account).unwrap();
        work.new_log().unwrap();
        let binary = Binary {
            path: "/x".into(),
            flavour: crate::Flavour::MySql,
            version: crate::Version::new(9, 7, 4),
            text: String::new(),
        };
        work.write_login(&Password::random().unwrap(), &binary, &account).unwrap();
        let facts = |path: &Path| {
            let facts = std::fs::symlink_metadata(path).unwrap();
            (facts.uid(), facts.permissions().mode() & 0o777)
        };
        let us = rustix::process::geteuid().as_raw();
        let server = std::fs::metadata(work.own()).unwrap().uid();
        assert_eq!(us == 0, server != 0, "root's server is another user");
        assert_eq!(facts(&work.own()), (server, 0o700));
        for (name, mode) in [("", 0o750), (EMPTY, 0o750), (OPTIONS, 0o640), (LOG, 0o600)] {
            assert_eq!(facts(&paths.dir.join(name)), (us, mode), "{name}");
        }
        for secret in [work.init_file(), work.client_file()] {
            assert_eq!(facts(&secret), (server, 0o400), "{}", secret.display());
        }
        assert_eq!(facts(&paths.records), (us, 0o700));
        assert_eq!(std::fs::read_dir(work.own()).unwrap().count(), 0);
        work.forget();
        assert!(!work.init_file().exists() && !work.client_file().exists());
        assert_eq!(std::fs::read(&outside).unwrap(), b"mine");
    }

    #[test]
    fn a_work_directory_of_somebody_else_is_refused() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: root, who can give a directory away");
            return;
        }
        let run = tempfile::tempdir().unwrap();
        let paths = paths(run.path());
        std::fs::create_dir_all(&paths.dir).unwrap();
        std::os::unix::fs::chown(&paths.dir, Some(4_000_001), None).unwrap();
        let error = WorkDir::open(&paths, &account()).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, "it belongs to the user 4000001: remove it");
    }

    #[test]
    fn a_server_that_a_record_knows_by_its_options_file_alone_is_ended_and_no_other() {
        let run = tempfile::tempdir().unwrap();
        let paths = paths(run.path());
        let work = WorkDir::open(&paths, &account()).unwrap();
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
        // As a child of another test has it for a moment.
        let _copy = work._lock.try_clone().unwrap();
        release(work);
        let cleared = clear_leftovers(&paths.records).cleared;
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
        let paths = paths(run.path());
        std::fs::create_dir(&paths.records).unwrap();
        std::fs::write(paths.records.join("w.json"), "{").unwrap();
        let all = clear_leftovers(&paths.records);
        assert!(all.kept.len() == 1 && all.kept[0].starts_with("cannot clear"), "{all:?}");
        assert!(all.cleared.is_empty() && is_recorded(&paths), "{all:?}");
    }

    #[test]
    fn a_record_that_the_servers_user_left_in_a_work_directory_is_not_read() {
        let run = tempfile::tempdir().unwrap();
        let paths = paths(run.path());
        let work = WorkDir::open(&paths, &account()).unwrap();
        let mut victim = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let start_ticks = Stat::of(victim.id()).unwrap().start_ticks;
        let record = Record { process: Some((victim.id(), start_ticks)), ..Record::default() };
        let text = serde_json::to_vec(&record).unwrap();
        for place in [work.own(), paths.dir.clone()] {
            for name in ["server.json", "w.json"] {
                std::fs::write(place.join(name), &text).unwrap();
            }
        }
        release(work);
        assert_eq!(clear_leftovers(&paths.records), Cleared::default());
        release(WorkDir::open(&paths, &account()).unwrap());
        assert!(victim.try_wait().unwrap().is_none(), "it was none of ours");
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
}
