//! Which directories a server keeps its files in, and moving files between them.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ebbtide_dir::{Access, Dir};
use ebbtide_proc::process::Stat;
use rustix::process::{Flock, FlockType, fcntl_getlk};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::binary::{Binary, Flavour, Version};
use crate::error::ServerError;

/// The file by which we know a data directory that we have made. Servers overlook names with a dot.
const SIGNATURE: &str = ".ebbtide-server.json";
/// More than it ever has, bytes: the server's user may write it.
const SIGNATURE_BYTES: u64 = 4096;
/// The system tablespace, which a running server holds a lock on.
const SYSTEM_TABLESPACE: &str = "ibdata1";
/// From this version on MySQL keeps its redo log in a directory.
const REDO_DIRECTORY: Version = Version::new(8, 0, 30);

/// How long a server that was killed may have its files open after its end.
const DYING: Duration = Duration::from_secs(10);

/// Directories on mounted volumes that a server may fill, absolute. They are made where they are missing
/// (their parents are not), and given to the server's user, who must be able to enter the parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The data directory, and everything that has no directory of its own.
    pub data: PathBuf,
    /// The redo log.
    pub redo: Option<PathBuf>,
    /// The binary log.
    pub binlog: Option<PathBuf>,
    /// The undo tablespaces.
    pub undo: Option<PathBuf>,
    /// Temporary tables and files.
    pub tmp: Option<PathBuf>,
    /// The relay logs of a replica.
    pub relay: Option<PathBuf>,
}

impl Layout {
    /// Everything in one directory.
    #[must_use]
    pub fn single(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), redo: None, binlog: None, undo: None, tmp: None, relay: None }
    }

    /// Every directory.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        let own = [&self.redo, &self.binlog, &self.undo, &self.tmp, &self.relay];
        std::iter::once(self.data.as_path()).chain(own.into_iter().flatten().map(PathBuf::as_path))
    }

    /// Moves what a data directory that was prepared as one holds of the redo log, the undo tablespaces
    /// and temporary files to the directories that this layout has for them; files that are there already
    /// stay. The server must not run. [`Server::start`](crate::Server::start) does this on its own.
    ///
    /// # Errors
    /// [`ServerError::NothingToMove`] where the data were made without undo tablespaces, and what the file
    /// systems refuse.
    pub fn move_files(&self, binary: &Binary) -> Result<(), ServerError> {
        let account = Account::for_data(&self.data)?;
        self.give_to(&account)?;
        if let Some(redo) = &self.redo {
            self.move_all(redo, &account, |name| is_redo(name, binary))?;
        }
        if let Some(undo) = &self.undo {
            self.move_all(undo, &account, is_undo)?;
            if !names(&open(undo)?)?.iter().any(|name| is_undo(name)) {
                let missing =
                    "the data were made without undo tablespaces; a server that has them by itself, or \
                               the setting undo_tablespaces when the data are made, brings them"
                        .to_owned();
                return Err(ServerError::NothingToMove { dir: undo.clone(), missing });
            }
        }
        if self.tmp.is_some() {
            // Made anew at each start; one that is left takes room on the wrong volume.
            let removed = open(&self.data)?.remove_all("ibtmp1");
            removed.map_err(ServerError::at("remove", &self.data.join("ibtmp1")))?;
        }
        Ok(())
    }

    fn move_all(
        &self,
        to: &Path,
        account: &Account,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), ServerError> {
        let (data, to) = (open(&self.data)?, open(to)?);
        for name in names(&data)?.iter().filter(|name| wanted(name)) {
            let moved = data.move_into(name, &to, account.owner());
            moved.map_err(ServerError::at("move", &self.data.join(name)))?;
        }
        Ok(())
    }

    /// Checks that we have made the data directory, with a server that this one can follow.
    pub(crate) fn check_ours(&self, binary: &Binary) -> Result<(), ServerError> {
        let path = self.data.join(SIGNATURE);
        let not_ours = || ServerError::NotOurs { dir: self.data.clone() };
        let read = || {
            let mut text = Vec::new();
            let file = Dir::open_entry(&self.data)?.plain_file(SIGNATURE, Access::Read)?;
            file.take(SIGNATURE_BYTES).read_to_end(&mut text)?;
            Ok(text)
        };
        let text = match read() {
            Err::<_, io::Error>(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_ours()),
            read => read.map_err(ServerError::at("read", &path))?,
        };
        let maker: Maker = serde_json::from_slice(&text).map_err(|_| not_ours())?;
        maker.check(binary, &self.data)
    }

    /// Checks that no server has the data open. One that was killed has them open until its last thread
    /// is gone.
    pub(crate) fn check_free(&self) -> Result<(), ServerError> {
        let deadline = Instant::now() + DYING;
        while let Some(pid) = self.holder() {
            let is_dying = Stat::of(pid).is_none_or(|stat| stat.zombie);
            if !is_dying || Instant::now() > deadline {
                return Err(ServerError::InUse { dir: self.data.clone(), pid: pid.to_string() });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// The process that has a lock on the data.
    fn holder(&self) -> Option<u32> {
        let file = Dir::open_entry(&self.data).ok()?.plain_file(SYSTEM_TABLESPACE, Access::Read).ok()?;
        let lock = Flock::from(FlockType::WriteLock);
        let held = fcntl_getlk(&file, &lock).ok()??;
        // A holder outside of our PID namespace has no number here.
        Some(held.pid.map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs()))
    }
}

/// The server that made a data directory.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Maker {
    flavour: Flavour,
    version: Version,
}

impl Maker {
    pub(crate) const fn of(binary: &Binary) -> Self {
        Self { flavour: binary.flavour, version: binary.version }
    }

    /// Leaves the sign that the data directory is ours.
    pub(crate) fn sign(&self, layout: &Layout, account: &Account) -> Result<(), ServerError> {
        let path = layout.data.join(SIGNATURE);
        let text = serde_json::to_vec(self).map_err(|error| ServerError::at("write", &path)(error.into()))?;
        let written = open(&layout.data)?.replace(SIGNATURE, &text, 0o600, account.owner());
        written.map_err(ServerError::at("write", &path))
    }

    /// A server reads data of its own kind, of its own version or an older one.
    fn check(&self, binary: &Binary, data: &Path) -> Result<(), ServerError> {
        let same_kind = (self.flavour == Flavour::MariaDb) == binary.is_mariadb();
        if same_kind && self.version <= binary.version {
            return Ok(());
        }
        let made_by = format!("{} {}", self.flavour, self.version);
        let why = format!("{} cannot run on {}, made by {made_by}", binary.name(), data.display());
        Err(ServerError::WrongVersion { path: binary.path.clone(), why })
    }
}

fn is_redo(name: &str, binary: &Binary) -> bool {
    let directory = !binary.is_mariadb() && binary.version >= REDO_DIRECTORY;
    (directory && name == "#innodb_redo") || name.starts_with("ib_logfile")
}

/// `undo_001` on MySQL, `undo001` on MariaDB and MySQL 5.7; and the file of an unfinished truncation.
pub(crate) fn is_undo(name: &str) -> bool {
    let number = name.strip_prefix("undo").map(|rest| rest.strip_prefix('_').unwrap_or(rest));
    number.is_some_and(|rest| {
        let digits = rest.split('_').next().unwrap_or(rest);
        digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A directory of the server, by its descriptor.
fn open(path: &Path) -> Result<Dir, ServerError> {
    Dir::open_entry(path).map_err(ServerError::at("open", path))
}

fn names(dir: &Dir) -> Result<Vec<String>, ServerError> {
    let names = dir.names().map_err(ServerError::at("list", dir.path()))?;
    Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(flavour: Flavour, version: Version) -> Binary {
        Binary { path: "/x/mysqld".into(), flavour, version, text: String::new() }
    }

    #[test]
    fn redo_and_undo_files_are_known_by_their_names() {
        let mysql = binary(Flavour::MySql, Version::new(9, 7, 4));
        let mariadb = binary(Flavour::MariaDb, Version::new(10, 11, 6));
        assert!(is_redo("#innodb_redo", &mysql) && is_redo("ib_logfile0", &mariadb));
        assert!(!is_redo("#innodb_redo", &mariadb) && !is_redo("ibdata1", &mysql));
        for name in ["undo_001", "undo001", "undo_002"] {
            assert!(is_undo(name), "{name}");
        }
        for name in ["undo", "undo_log", "undone001", "ibdata1", "undo_0001"] {
            assert!(!is_undo(name), "{name}");
        }
    }

    #[test]
    fn data_are_read_by_the_servers_kind_and_never_by_an_older_one() {
        let maker = Maker { flavour: Flavour::MySql, version: Version::new(8, 0, 36) };
        let check = |flavour, version| maker.check(&binary(flavour, version), Path::new("/d"));
        check(Flavour::MySql, Version::new(8, 0, 36)).unwrap();
        check(Flavour::Percona, Version::new(8, 4, 0)).unwrap();
        let error = check(Flavour::MySql, Version::new(8, 0, 15)).unwrap_err().to_string();
        assert_eq!(error, "/x/mysqld: MySQL 8.0.15 cannot run on /d, made by MySQL 8.0.36");
        check(Flavour::MariaDb, Version::new(11, 8, 6)).unwrap_err();
    }

    #[test]
    fn a_directory_without_our_signature_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ibdata1"), "").unwrap();
        let layout = Layout::single(dir.path());
        let error = layout.check_ours(&binary(Flavour::MySql, Version::new(9, 7, 4))).unwrap_err();
        assert!(matches!(error, ServerError::NotOurs { .. }), "{error}");
    }
}
