//! The FUSE export: a live volume as one file, made for a loop device with direct I/O on top.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant, UNIX_EPOCH},
};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Session, WriteFlags,
};
use rustix::mount::UnmountFlags;

use crate::{
    engine::LiveVolume,
    request::{Command, Reply, Request},
    sys::{
        Role, Scheduling, enter_data_path, fusectl,
        reclaim::{self, ReclaimRisk},
    },
    transport::FuseReply,
};

/// Name of the one file in the mounted directory.
pub const FILE_NAME: &str = "volume";
/// What the source of our mounts begins with; the volume's name follows.
const SOURCE: &str = "ebbtide:";

/// Number of the one file.
pub const FILE: INodeNo = INodeNo(2);
/// How the file is opened: requests pass by the page cache, several at a time.
pub const OPEN_FLAGS: FopenFlags = FopenFlags::FOPEN_DIRECT_IO
    .union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES)
    .union(FopenFlags::FOPEN_NOFLUSH);
/// Threads that read requests. An I/O that the model lets pass at once is done on them, so there are
/// more than two; eight were slower than four on two cores.
const THREADS: usize = 4;
/// Largest request, in bytes: what the kernel's default page limit for FUSE allows.
const MAX_WRITE: u32 = 1 << 20;
/// Requests that the kernel keeps at us at the same time: well above a loop device's 128, so that it
/// is never the kernel's own bound that shapes the queue.
const MAX_BACKGROUND: u16 = 512;
/// A size that changes (a volume can grow) must be seen at the next look.
const TTL: Duration = Duration::ZERO;
/// Longest piece of a discard: a request's length has 32 bits, and a piece stays aligned.
const PIECE: u64 = 1 << 30;
/// How long the threads of a session have to end once its mount is gone. They need milliseconds.
const ENDING: Duration = Duration::from_secs(2);
/// How often that is looked at.
const ENDED: Duration = Duration::from_micros(200);

/// An export that could not be made or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FuseError {
    /// The kernel has no FUSE.
    #[error(
        "this kernel offers no /dev/fuse: load the module (modprobe fuse), or attach through NBD instead"
    )]
    Unavailable(#[source] io::Error),
    /// Not allowed to mount.
    #[error("not permitted to mount on {}: run as root, or attach through NBD instead", dir.display())]
    NotPermitted {
        /// The directory.
        dir: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// This process would hang together with the guest as soon as its memory is used up.
    #[error(
        "memory is limited to {limit_bytes} bytes in {}, and without CAP_SYS_RESOURCE the kernel would make this \
         process wait there for writes that it is to answer itself: run it with that capability or outside of \
         that control group, or attach through NBD instead",
        group.display()
    )]
    WouldHang {
        /// The control group with the limit.
        group: PathBuf,
        /// The limit, bytes.
        limit_bytes: u64,
    },
    /// Someone still uses the mount.
    #[error(
        "{} is still in use; close what has it open (fuser -vm {}), or what has it in a mount namespace of its own, such as a \
         container that was started meanwhile (grep {} /proc/*/mountinfo)",
        .0.display(), .0.display(), .0.display()
    )]
    Busy(PathBuf),
    /// A process with another mount namespace has a copy of the mount, and we may not end the connection.
    #[error(
        "{} is unmounted here, but a process with another mount namespace still has it, such as a container that was started \
         meanwhile (grep {} /proc/*/mountinfo): end that process",
        dir.display(), dir.display()
    )]
    Elsewhere {
        /// The directory.
        dir: PathBuf,
        /// Why the connection cannot be ended.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot {action} {}", dir.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The directory.
        dir: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

thread_local! {
    /// Set on the first use in each of fuser's threads, which are not ours to start.
    static ENTERED: Scheduling = enter_data_path(Role::Export);
}

/// A mounted export. Dropping it unmounts.
#[derive(Debug)]
pub struct FuseExport {
    dir: PathBuf,
    session: Option<BackgroundSession>,
}

impl FuseExport {
    /// Mounts `volume` on the existing directory `dir`, as the file [`FILE_NAME`] in it.
    ///
    /// # Errors
    /// Where the kernel has no FUSE, does not let us mount, or could make us wait for ourselves.
    pub fn mount(volume: Arc<LiveVolume>, dir: &Path) -> Result<Self, FuseError> {
        if let Some(ReclaimRisk { group, limit_bytes }) = reclaim::risk() {
            return Err(FuseError::WouldHang { group, limit_bytes });
        }
        let config = session_config(volume.name());
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::PermissionDenied => FuseError::NotPermitted { dir: dir.to_owned(), source },
            io::ErrorKind::NotFound if !Path::new("/dev/fuse").exists() => FuseError::Unavailable(source),
            _ => FuseError::Io { action: "mount a FUSE file system on", dir: dir.to_owned(), source },
        };
        let session = Session::new(VolumeFile { volume }, dir, &config).map_err(failed)?;
        let session = session.spawn().map_err(failed)?;
        Ok(Self { dir: dir.to_owned(), session: Some(session) })
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file that is the volume.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.dir.join(FILE_NAME)
    }

    /// Unmounts and waits until the last request is done. Whoever has the file open must let go of it before. A loop
    /// device that was detached closes the file only a moment after it is gone; that is waited for.
    ///
    /// A process with another mount namespace may have a copy of the mount. Nothing is written through it any more, so that the
    /// connection is ended under it.
    ///
    /// # Errors
    /// [`FuseError::Busy`] where the mount is in use for longer than 5 s. It stays mounted then, as after any other error,
    /// and calling this again tries again. [`FuseError::Elsewhere`].
    pub fn unmount(&mut self) -> Result<(), FuseError> {
        let end = Instant::now() + Duration::from_secs(5);
        while let Some(session) = self.session.take() {
            let connection = fusectl::connection_of(&self.dir);
            let ended = match rustix::mount::unmount(&self.dir, UnmountFlags::NOFOLLOW) {
                Ok(()) => self.end(session, connection)?,
                Err(rustix::io::Errno::BUSY) => {
                    self.session = Some(session);
                    if Instant::now() >= end {
                        return Err(FuseError::Busy(self.dir.clone()));
                    }
                    sleep(Duration::from_millis(1));
                    continue;
                }
                // Such as an ordinary user's mount, which only `fusermount3` may unmount.
                Err(_) => session.umount_and_join(),
            };
            if let Err(source) = ended {
                if self.is_mounted() {
                    return Err(FuseError::Io { action: "unmount", dir: self.dir.clone(), source });
                }
                // How a session ends matters no more once the mount is gone. On Linux 6.18 a thread that reads a request
                // while the connection ends gets ECONNABORTED, once in some thousand unmounts of a busy machine.
                tracing::debug!(dir = %self.dir.display(), error = %source, "the FUSE session of an unmounted volume ended");
            }
            return Ok(());
        }
        // An earlier attempt ended the session and left the mount.
        if self.is_mounted() { unmount_leftover(&self.dir) } else { Ok(()) }
    }

    /// Waits for the threads of a session whose mount is gone, and returns how they ended.
    fn end(
        &self,
        session: BackgroundSession,
        connection: io::Result<u32>,
    ) -> Result<io::Result<()>, FuseError> {
        let end = Instant::now() + ENDING;
        while !session.guard.is_finished() {
            if Instant::now() >= end {
                // Without this, the threads would wait for requests for as long as the other process lives.
                connection
                    .and_then(fusectl::abort)
                    .map_err(|source| FuseError::Elsewhere { dir: self.dir.clone(), source })?;
                tracing::warn!(dir = %self.dir.display(), "another mount namespace still had the FUSE mount of a volume: its connection was ended");
                break;
            }
            sleep(ENDED);
        }
        Ok(session.join())
    }

    fn is_mounted(&self) -> bool {
        mounts().is_ok_and(|mounts| mounts.iter().any(|mount| mount.dir == self.dir))
    }
}

/// Threads and mount options of a session. The source of its mount is `ebbtide:` and `name`.
///
/// It is public, as are [`negotiate`] and [`attributes`], for the bench that serves a file with nothing but this transport.
#[must_use]
pub fn session_config(name: &str) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(format!("{SOURCE}{name}")),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
        MountOption::NoAtime,
    ];
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    config
}

/// Agrees with the kernel on how a session works.
///
/// # Errors
/// A kernel whose FUSE has no asynchronous direct I/O, or that refuses a setting.
pub fn negotiate(config: &mut KernelConfig) -> io::Result<()> {
    // Without it the kernel waits for each direct I/O before it sends the next.
    config
        .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
        .map_err(|_| io::Error::other("this kernel's FUSE has no asynchronous direct I/O"))?;
    let refused = |nearest| io::Error::other(format!("FUSE setting refused; nearest allowed {nearest}"));
    config.set_max_write(MAX_WRITE).map_err(refused)?;
    let refused = |nearest| io::Error::other(format!("FUSE setting refused; nearest allowed {nearest}"));
    config.set_max_background(MAX_BACKGROUND).map_err(refused)?;
    config.set_congestion_threshold(MAX_BACKGROUND).map_err(refused)?;
    Ok(())
}

/// Attributes of the root directory, or of the one file with `size` bytes.
#[must_use]
pub fn attributes(ino: INodeNo, size: u64) -> FileAttr {
    let is_root = ino == INodeNo::ROOT;
    let size = if is_root { 0 } else { size };
    FileAttr {
        ino,
        size,
        blocks: size / 512,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if is_root { FileType::Directory } else { FileType::RegularFile },
        perm: if is_root { 0o700 } else { 0o600 },
        nlink: 1,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// A mount of ours that `/proc/self/mountinfo` shows, alive or left behind by a killed process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// The directory.
    pub dir: PathBuf,
    /// The volume's name.
    pub volume: String,
}

/// All mounts of ours, of any process.
///
/// # Errors
/// Where `/proc` cannot be read.
pub fn mounts() -> io::Result<Vec<Mounted>> {
    let ours = |mount: ebbtide_proc::Mount| {
        let volume = mount.source.to_str()?.strip_prefix(SOURCE).filter(|_| mount.fs == "fuse")?;
        Some(Mounted { volume: volume.to_owned(), dir: mount.dir })
    };
    Ok(ebbtide_proc::mounts()?.into_iter().filter_map(ours).collect())
}

/// Unmounts what a killed process left behind. Its file may still be open; the mount then vanishes
/// from the tree at once and for good with the last user.
///
/// # Errors
/// The error of the kernel.
pub fn unmount_leftover(dir: &Path) -> Result<(), FuseError> {
    rustix::mount::unmount(dir, UnmountFlags::DETACH).map_err(|error| FuseError::Io {
        action: "unmount",
        dir: dir.to_owned(),
        source: error.into(),
    })
}

/// The file system: a root directory and one file.
#[derive(Debug)]
struct VolumeFile {
    volume: Arc<LiveVolume>,
}

impl VolumeFile {
    fn attr(&self, ino: INodeNo) -> FileAttr {
        attributes(ino, self.volume.size_bytes())
    }

    fn submit(&self, command: Command, offset: u64, len: u32, reply: Reply) {
        tracing::trace!(
            volume = self.volume.name(),
            operation = command.name(),
            offset,
            length = len,
            "asked"
        );
        self.volume.submit(Request { command, offset, len, fua: false, data: None, reply });
    }
}

impl Filesystem for VolumeFile {
    fn init(&mut self, _request: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        negotiate(config)
    }

    fn lookup(&self, _request: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE_NAME {
            reply.entry(&TTL, &self.attr(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &fuser::Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attr(ino));
    }

    fn readdir(
        &self,
        _request: &fuser::Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        for (next, (ino, kind, name)) in (1..).zip(entries).skip(skip) {
            if reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _request: &fuser::Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), OPEN_FLAGS);
    }

    fn read(
        &self,
        _request: &fuser::Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        ENTERED.with(|_| ());
        let rest = self.volume.size_bytes().saturating_sub(offset);
        let len = u32::try_from(rest).unwrap_or(u32::MAX).min(size);
        if len == 0 {
            return reply.data(&[]);
        }
        tracing::trace!(volume = self.volume.name(), operation = "read", offset, length = len, "asked");
        self.volume.submit_read(offset, len, Reply::fuse(FuseReply::Read(reply)));
    }

    fn write(
        &self,
        _request: &fuser::Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        ENTERED.with(|_| ());
        let Ok(len) = u32::try_from(data.len()) else { return reply.error(Errno::EINVAL) };
        tracing::trace!(volume = self.volume.name(), operation = "write", offset, length = len, "asked");
        self.volume.submit_write(offset, data, Reply::fuse(FuseReply::Write(reply, len)));
    }

    fn fsync(
        &self,
        _request: &fuser::Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        self.submit(Command::Flush, 0, 0, Reply::fuse(FuseReply::Empty(reply)));
    }

    fn fallocate(
        &self,
        _request: &fuser::Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        // The loop driver sends a write-zeroes that may unmap as a hole, and so does this.
        let command = if mode & libc::FALLOC_FL_PUNCH_HOLE != 0 {
            Command::Discard
        } else if mode & libc::FALLOC_FL_ZERO_RANGE != 0 {
            Command::WriteZeroes
        } else {
            return reply.error(Errno::EOPNOTSUPP);
        };
        if length <= PIECE {
            let len = u32::try_from(length).expect("a piece is below 4 GiB");
            return self.submit(command, offset, len, Reply::fuse(FuseReply::Empty(reply)));
        }
        let count = u32::try_from(length.div_ceil(PIECE)).expect("a volume has fewer pieces");
        let mut done = 0;
        for piece in FuseReply::pieces(reply, count) {
            let len = u32::try_from((length - done).min(PIECE)).expect("a piece is below 4 GiB");
            self.submit(command, offset + done, len, Reply::fuse(piece));
            done += u64::from(len);
        }
    }

    fn statfs(&self, _request: &fuser::Request, _ino: INodeNo, reply: ReplyStatfs) {
        reply.statfs(self.volume.size_bytes() / 4096, 0, 0, 2, 0, 4096, 255, 4096);
    }
}
