//! The smallest FUSE server of one file, below the same loop device as a volume: no volume, no model, no store, no pacer.
//!
//! Threads, mount options, flags and limits are those of our export (`ebbtide_device::fuse`), so that what differs is our own
//! code. A request is one `read` of `/dev/fuse`, one `pread` or `pwrite` and one `writev`, all by one thread with one buffer.

use std::{
    cell::RefCell,
    ffi::OsStr,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use ebbtide_device::{
    fuse::{FILE, FILE_NAME, OPEN_FLAGS, attributes, negotiate, session_config},
    loopdev::{LoopDevice, LoopOptions},
};
use fuser::{
    BackgroundSession, Errno, FileHandle, Filesystem, Generation, INodeNo, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Session, WriteFlags,
};
use rustix::{
    io::Errno as SystemErrno,
    mount::{UnmountFlags, unmount},
};

/// Bytes of the writes that fill the file: those of the block store, so that the host's page cache has folios of the same size.
const PIECE: usize = 16 << 10;
/// Bytes of the largest request: the `max_write` of the session.
const LARGEST: usize = 1 << 20;
/// Where a buffer begins: at a page, which the kernel can take as it is.
const PAGE: usize = 4096;
/// How long a mount may stay busy after its loop device has been detached. It needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; LARGEST + PAGE]);
}

/// The server with its loop device. Dropped, both are gone.
pub(crate) struct Bare {
    device: Option<LoopDevice>,
    session: Option<BackgroundSession>,
    mount: PathBuf,
}

impl Bare {
    /// Serves a file of `size` bytes, which it makes and fills in the existing directory `dir`.
    pub(crate) fn filled_in(dir: &Path, size: u64) -> Self {
        let path = dir.join("data");
        let file = File::options().read(true).write(true).create_new(true).open(path);
        let file = file.expect("the file can be made");
        for offset in (0..size).step_by(PIECE) {
            file.write_all_at(&[0xA5; PIECE], offset).expect("the file can be filled");
        }
        let mount = dir.join("mount");
        std::fs::create_dir(&mount).expect("the mount point can be made");
        let served = Session::new(OneFile { file, size }, &mount, &session_config("yardstick"))
            .and_then(Session::spawn)
            .expect("the server can be mounted");
        // From here on a panic unmounts.
        let mut bare = Self { device: None, session: Some(served), mount };
        let device = LoopDevice::attach(&bare.mount.join(FILE_NAME), &LoopOptions::default());
        bare.device = Some(device.expect("a loop device can be set up"));
        bare
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.device.as_ref().expect("it is there until the drop").path().to_owned()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        if let Some(mut device) = self.device.take() {
            let _ = device.detach();
        }
        let Some(session) = self.session.take() else { return };
        let end = Instant::now() + PATIENCE;
        // The loop device closes the file only a moment after it is gone.
        while unmount(&self.mount, UnmountFlags::NOFOLLOW) == Err(SystemErrno::BUSY) {
            if Instant::now() >= end {
                eprintln!("{} is still in use: it is unmounted at the end", self.mount.display());
                // Its threads go on until then.
                std::mem::forget(session);
                return;
            }
            sleep(Duration::from_millis(1));
        }
        let _ = session.join();
    }
}

struct OneFile {
    file: File,
    size: u64,
}

impl Filesystem for OneFile {
    fn init(&mut self, _request: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        negotiate(config)
    }

    fn lookup(&self, _request: &fuser::Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == FILE_NAME {
            reply.entry(&Duration::ZERO, &attributes(FILE, self.size), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &fuser::Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&Duration::ZERO, &attributes(ino, self.size));
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
        BUFFER.with_borrow_mut(|buffer| {
            let start = buffer.as_ptr().align_offset(PAGE);
            let rest = usize::try_from(self.size.saturating_sub(offset)).expect("the file is small");
            let len = usize::try_from(size).expect("a request is small").min(rest).min(LARGEST);
            let bytes = &mut buffer[start..start + len];
            match self.file.read_exact_at(bytes, offset) {
                Ok(()) => reply.data(bytes),
                Err(_) => reply.error(Errno::EIO),
            }
        });
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
        match self.file.write_all_at(data, offset) {
            Ok(()) => reply.written(u32::try_from(data.len()).expect("a request is small")),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    /// Syncs nothing, as a volume without `--host-sync`.
    fn fsync(
        &self,
        _request: &fuser::Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }
}
