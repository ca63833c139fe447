//! A home: the directory that holds volumes and state, and the lock of who serves it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, FlockOperation, Stat, flock, fstat};

use ebbtide_dir::{Access, Dir, identity, make_file_private};

use super::disk::DiskSpace;

/// The permissions by which others than the owner may change a directory.
const OTHERS_WRITE: u32 = 0o022;

/// A home that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Another process serves it.
    #[error("{} is already served by process {pid}", home.display())]
    Served {
        /// The home.
        home: PathBuf,
        /// What that process wrote into the lock file.
        pid: String,
    },
    /// Somebody else owns it, or may change it.
    #[error("{} cannot be used: {why}", path.display())]
    Unsafe {
        /// The home, or a file in it.
        path: PathBuf,
        /// Why not, and what to do.
        why: String,
    },
    /// The directory or a file in it cannot be used.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> HomeError {
    let path = path.to_owned();
    move |source| HomeError::Io { action, path, source }
}

/// A directory that holds volumes and state.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
    /// Where the lock is held, changed only while it is.
    dir: Dir,
}

/// The lock that the server of a home holds.
const LOCK: &str = "serve.lock";
const STORE: &str = "store";
const RUN: &str = "run";
const RECORDS: &str = "records";
const SOCKET: &str = "control.sock";
const LOG: &str = "serve.log";
const CALIBRATION: &str = "calibration.json";
const ATTACHED: &str = "attached.json";
const ATTACHED_NEW: &str = "attached.new";
const SCRATCH: &str = "calibration.store";
const OVERRIDES: &str = "catalog.toml";
const AWS: &str = "aws";

/// The SQLite databases of the AWS services and of the history, which lie beside these names. Add the name of a new one
/// here: it is then Ebbtide's own, with the files that SQLite makes beside it, and its owner's alone before SQLite opens it.
const DATABASES: &[&str] = &["aws.db", "cloudwatch.db", HISTORY, "kms.db", "sts.db"];

/// The database of the history.
const HISTORY: &str = "history.db";

/// What SQLite appends to the name of a database for the files that it makes beside it. They get the mode of the
/// database.
const BESIDE_DATABASE: &[&str] = &["", "-wal", "-shm", "-journal"];

/// What else a home may hold. With nothing but these names in it, the directory is Ebbtide's own.
const OWN: &[&str] = &[
    LOCK,
    STORE,
    RUN,
    RECORDS,
    SOCKET,
    LOG,
    CALIBRATION,
    ATTACHED,
    ATTACHED_NEW,
    SCRATCH,
    OVERRIDES,
    AWS,
    "calibration.new",
    "catalog.new",
    "lab",
    "lost+found",
];

/// Whether a name in a home is Ebbtide's.
fn is_own(name: &OsStr) -> bool {
    let is_database = |name: &str| {
        DATABASES
            .iter()
            .any(|base| name.strip_prefix(base).is_some_and(|suffix| BESIDE_DATABASE.contains(&suffix)))
    };
    name.to_str().is_some_and(|name| OWN.contains(&name) || is_database(name))
}

impl Home {
    /// Opens a home and makes its directory, for its owner alone, where it is missing.
    ///
    /// # Errors
    /// Where the directory cannot be made or read.
    pub fn open(root: &Path) -> Result<Self, HomeError> {
        Dir::make(root).map_err(io("create", root))?;
        Self::existing(root)
    }

    /// Opens a home that is there, and changes nothing.
    ///
    /// # Errors
    /// Where the directory is missing or cannot be read.
    pub fn existing(root: &Path) -> Result<Self, HomeError> {
        // Mounts and loop devices are found by path, so there must be only one way to write it.
        let root = root.canonicalize().map_err(io("resolve", root))?;
        let dir = Dir::open(&root).map_err(io("open", &root))?;
        Ok(Self { root, dir })
    }

    /// The directory itself, absolute and without symbolic links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the block store lives.
    #[must_use]
    pub fn store_dir(&self) -> PathBuf {
        self.root.join(STORE)
    }

    /// The same as a directory that stays this one, made where it is missing. It may be a symbolic link to
    /// another disk, which only the owner of the home can have made.
    pub(super) fn make_store(&self) -> Result<Dir, HomeError> {
        let is_link = |found: &Stat| FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
        let made = match self.dir.stat(STORE) {
            Ok(found) if is_link(&found) => Dir::open(&self.store_dir()),
            _ => self.dir.make_sub(STORE),
        };
        made.map_err(io("open", &self.store_dir()))
    }

    /// Where FUSE file systems are mounted, in directories with the names of volumes.
    #[must_use]
    pub fn run_dir(&self) -> PathBuf {
        self.root.join(RUN)
    }

    /// Where attachments are recorded. [`Self::lock`] makes it.
    pub(super) fn records(&self) -> std::io::Result<Dir> {
        self.dir.open_sub(RECORDS)
    }

    /// The directory of [`Self::run_dir`]. [`Self::lock`] makes it.
    pub(super) fn run(&self) -> std::io::Result<Dir> {
        self.dir.open_sub(RUN)
    }

    /// Where a calibration keeps its own block store while it runs.
    pub(super) fn scratch_dir(&self) -> PathBuf {
        self.root.join(SCRATCH)
    }

    /// The control socket of the process that serves this home.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.root.join(SOCKET)
    }

    /// The control socket's device and inode; none where there is no socket.
    #[must_use]
    pub fn socket_identity(&self) -> Option<(u64, u64)> {
        let found = self.dir.stat(SOCKET).ok()?;
        (FileType::from_raw_mode(found.st_mode) == FileType::Socket).then(|| identity(&found))
    }

    /// Removes the control socket, or what is in its place. Only its server does that, or who has proved
    /// with the lock that there is none.
    ///
    /// # Errors
    /// The error of the host; that there is none is no error.
    pub fn remove_socket(&self) -> Result<(), HomeError> {
        match self.dir.remove(SOCKET) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io("remove", &self.socket())(error))
            }
            _ => Ok(()),
        }
    }

    /// The result of the last host calibration.
    #[must_use]
    pub fn calibration_file(&self) -> PathBuf {
        self.root.join(CALIBRATION)
    }

    /// Catalogue entries that replace the built-in ones.
    #[must_use]
    pub fn overrides_file(&self) -> PathBuf {
        self.root.join(OVERRIDES)
    }

    /// Where the AWS endpoint has its users and its certificate. Who writes there makes it.
    #[must_use]
    pub fn aws_dir(&self) -> PathBuf {
        self.root.join(AWS)
    }

    /// The folder of [`Self::aws_dir`], if it exists.
    ///
    /// # Errors
    /// It cannot be opened, or is a link.
    pub fn aws_folder(&self) -> Result<Option<HomeFolder>, HomeError> {
        match self.dir.open_sub(AWS) {
            Ok(dir) => Ok(Some(HomeFolder(dir))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io("open", &self.aws_dir())(error)),
        }
    }

    /// Makes what the AWS services need, for the owner alone: the folder of [`Self::aws_dir`], and empty files for the
    /// databases that do not exist. Call it before SQLite opens them: it releases the locks that this process has on
    /// these files.
    ///
    /// # Errors
    /// A file cannot be made, is a link, or belongs to another user.
    pub fn make_aws(&self) -> Result<HomeFolder, HomeError> {
        for name in DATABASES {
            self.open_own(name, Access::Make)?;
        }
        let path = self.aws_dir();
        let dir = self.dir.make_sub(AWS).map_err(io("create", &path))?;
        let (owner, _) = dir.owner_and_mode().map_err(io("examine", &path))?;
        require_owner(&path, owner)?;
        dir.make_private().map_err(io("protect", &path))?;
        Ok(HomeFolder(dir))
    }

    /// Makes an empty file for the database of the history, for the owner alone, if there is none. Call it before SQLite opens
    /// it, as [`Self::make_aws`], which makes it too.
    ///
    /// # Errors
    /// The file cannot be made, is a link, or belongs to another user.
    pub fn make_history(&self) -> Result<(), HomeError> {
        self.open_own(HISTORY, Access::Make).map(drop)
    }

    /// Where a detached `serve` writes its log.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.root.join(LOG)
    }

    /// Opens that file to append to it.
    ///
    /// # Errors
    /// Where it cannot be written, is a link, or belongs to another user.
    pub fn open_log(&self) -> Result<File, HomeError> {
        self.open_own(LOG, Access::Append)
    }

    /// Writes a file of the home whole or not at all.
    ///
    /// # Errors
    /// The error of the host.
    pub(super) fn replace(&self, name: &str, new: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.dir.file(new, Access::Empty)?.write_all(bytes)?;
        self.dir.rename(new, name)
    }

    /// Keeps a host calibration.
    pub(super) fn save_calibration(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.replace(CALIBRATION, "calibration.new", bytes)
    }

    /// The list of what is attached, as it was [saved](Self::save_attached); None where none was.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn attached(&self) -> Result<Option<Vec<u8>>, HomeError> {
        match self.dir.read(ATTACHED) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(io("read", &self.root.join(ATTACHED))),
        }
    }

    /// Saves a list of what is attached, whole or not at all, and onto the host's disk: a start after the host's own crash reads it.
    ///
    /// # Errors
    /// The error of the host; the home was replaced.
    pub fn save_attached(&self, bytes: &[u8]) -> Result<(), HomeError> {
        let path = self.root.join(ATTACHED);
        let mut file = self.open_own(ATTACHED_NEW, Access::Empty)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| self.dir.rename(ATTACHED_NEW, ATTACHED));
        renamed.and_then(|()| self.dir.sync()).map_err(io("write", &path))
    }

    /// The space of the disk that holds the data of volumes, for those without privileges: the store may be a link to another
    /// disk.
    ///
    /// # Errors
    /// The host does not report it.
    pub fn disk_space(&self) -> Result<DiskSpace, HomeError> {
        let store = self.store_dir();
        let dir = if store.exists() { &store } else { &self.root };
        DiskSpace::of(dir).map_err(io("ask for the free space of", dir))
    }

    /// Bytes that are free there.
    ///
    /// # Errors
    /// As [`Self::disk_space`].
    pub fn free_bytes(&self) -> Result<u64, HomeError> {
        Ok(self.disk_space()?.free_bytes)
    }

    /// The process that has, or last had, the lock, as it wrote it down.
    pub(super) fn lock_holder(&self) -> Option<u32> {
        String::from_utf8(self.dir.read(LOCK).ok()?).ok()?.trim().parse().ok()
    }

    /// Takes the right to serve this home, or to clear what a dead server left in it. From then on the
    /// home is its owner's alone.
    ///
    /// The kernel releases the lock when its holder ends in whatever way, so a free lock proves
    /// that no server lives; a process number would not, since numbers are reused.
    ///
    /// # Errors
    /// [`HomeError::Served`] where another process holds it; [`HomeError::Unsafe`] where others may change it.
    pub fn lock(&self) -> Result<HomeLock, HomeError> {
        self.require_own()?;
        let path = self.root.join(LOCK);
        let mut file = self.open_own(LOCK, Access::Make)?;
        self.flock(&mut file)?;
        let dir = self.dir.guarded(LOCK, &file).map_err(io("lock", &path))?;
        // Between the two calls it may have been removed with its directory.
        dir.require_held().map_err(io("lock", &path))?;
        let pid = std::process::id();
        file.set_len(0).map_err(io("write", &path))?;
        file.rewind().map_err(io("write", &path))?;
        writeln!(file, "{pid}").map_err(io("write", &path))?;
        let home = Self { root: self.root.clone(), dir };
        home.make_own_private()?;
        for name in [RUN, RECORDS] {
            let made =
                home.dir.make_sub(name).and_then(|dir| dir.make_private().and(dir.make_files_private()));
            made.map_err(io("create", &home.root.join(name)))?;
        }
        home.dir.sync().map_err(io("sync", &home.root))?;
        Ok(HomeLock { home, file })
    }

    /// Keeps others from serving this home while it is read, and changes nothing. None where the home was
    /// never served.
    ///
    /// # Errors
    /// [`HomeError::Served`] where another process holds the lock.
    pub fn lock_to_read(&self) -> Result<Option<HomeLock>, HomeError> {
        let mut file = match self.dir.file(LOCK, Access::Read) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io("open", &self.root.join(LOCK)))?,
        };
        self.flock(&mut file)?;
        Ok(Some(HomeLock { home: self.clone(), file }))
    }

    fn flock(&self, file: &mut File) -> Result<(), HomeError> {
        match flock(&*file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                Err(HomeError::Served { home: self.root.clone(), pid: pid.trim().to_owned() })
            }
            Err(errno) => Err(io("lock", &self.root.join(LOCK))(errno.into())),
        }
    }

    /// Opens a file that nobody else may read, write or lock.
    fn open_own(&self, name: &str, access: Access) -> Result<File, HomeError> {
        open_own(&self.dir, name, access)
    }

    /// Takes the permissions of others away from the databases and from the folder of the AWS endpoint, which exist
    /// from an earlier run. The files in that folder stay as they are: users whose keys others could read are refused.
    fn make_own_private(&self) -> Result<(), HomeError> {
        for base in DATABASES {
            for suffix in BESIDE_DATABASE {
                let name = format!("{base}{suffix}");
                self.dir.make_private_if_file(&name).map_err(io("protect", &self.root.join(name)))?;
            }
        }
        match self.aws_folder()? {
            Some(folder) => folder.0.make_private().map_err(io("protect", &self.aws_dir())),
            None => Ok(()),
        }
    }

    /// Checks that nobody else can change what is in the home. A directory with nothing else in it becomes
    /// its owner's alone; one with other things is left to others as far as they only read there.
    fn require_own(&self) -> Result<(), HomeError> {
        let root = &self.root;
        let (owner, mode) = self.dir.owner_and_mode().map_err(io("examine", root))?;
        require_owner(root, owner)?;
        let names = self.dir.names().map_err(io("list", root))?;
        match names.iter().find(|name| !is_own(name)) {
            None => self.dir.make_private().map_err(io("protect", root)),
            Some(other) if mode & OTHERS_WRITE != 0 => {
                let other = other.to_string_lossy();
                let why = format!(
                    "others may write there (mode {mode:o}), and it holds '{other}', which is not Ebbtide's; \
                     give a directory of its own, or take the permission away"
                );
                Err(HomeError::Unsafe { path: root.clone(), why })
            }
            Some(_) => Ok(()),
        }
    }
}

/// Opens a file in a directory that nobody else may read, write or lock.
fn open_own(dir: &Dir, name: &str, access: Access) -> Result<File, HomeError> {
    let path = dir.path().join(name);
    let file = dir.file(name, access).map_err(io("open", &path))?;
    let found = fstat(&file).map_err(|errno| io("examine", &path)(errno.into()))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(HomeError::Unsafe { path, why: "it is not an ordinary file".to_owned() });
    }
    require_owner(&path, found.st_uid)?;
    make_file_private(&file).map_err(io("protect", &path))?;
    Ok(file)
}

fn require_owner(path: &Path, owner: u32) -> Result<(), HomeError> {
    let own = rustix::process::geteuid().as_raw();
    if owner == own {
        return Ok(());
    }
    let why = format!("it belongs to user {owner}, and this process runs as user {own}; run it as the owner");
    Err(HomeError::Unsafe { path: path.to_owned(), why })
}

/// A folder of a home. If it comes from [`HomeLock::home`], it is changed only while the home is the one that this
/// process has locked: after the home was deleted or replaced, every change is refused. Links are not followed.
#[derive(Debug, Clone)]
pub struct HomeFolder(Dir);

impl HomeFolder {
    /// Its path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Opens a file to append to it, for the owner alone. A missing file is made.
    ///
    /// # Errors
    /// It cannot be written, is a link, or belongs to another user; the home was replaced.
    pub fn append(&self, name: &str) -> Result<File, HomeError> {
        open_own(&self.0, name, Access::Append)
    }

    /// Writes a file whole or not at all, for the owner alone, through the file `name.new`.
    ///
    /// # Errors
    /// The error of the host; the home was replaced.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), HomeError> {
        let new = format!("{name}.new");
        let path = self.path().join(name);
        open_own(&self.0, &new, Access::Empty)?.write_all(bytes).map_err(io("write", &path))?;
        self.0.rename(&new, name).map_err(io("replace", &path))
    }

    /// Renames a file, over another one if it exists.
    ///
    /// # Errors
    /// The error of the host; the home was replaced.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), HomeError> {
        self.0.rename(from, to).map_err(io("rename", &self.path().join(from)))
    }

    /// Removes a file. A missing file is no error.
    ///
    /// # Errors
    /// The error of the host; the home was replaced.
    pub fn remove(&self, name: &str) -> Result<(), HomeError> {
        match self.0.remove(name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io("remove", &self.path().join(name))(error))
            }
            _ => Ok(()),
        }
    }
}

/// The right to serve a home; dropping it gives it up.
#[derive(Debug)]
pub struct HomeLock {
    home: Home,
    file: File,
}

impl Drop for HomeLock {
    /// Closing the file is not enough where this process is just starting another one, on any thread:
    /// until that one begins its own program it has the file too.
    fn drop(&mut self) {
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            tracing::warn!(%error, "the lock of a home stays until its file is closed everywhere");
        }
    }
}

impl HomeLock {
    /// The home that is locked.
    #[must_use]
    pub const fn home(&self) -> &Home {
        &self.home
    }
}

#[cfg(test)]
mod tests;
