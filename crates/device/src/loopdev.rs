//! Loop devices: the block device that the guest sees, on top of the export's file.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

const CONTROL: &str = "/dev/loop-control";
/// Major number of loop devices (`Documentation/admin-guide/devices.txt`).
const MAJOR: u32 = 7;

// From the kernel's `include/uapi/linux/loop.h`.
const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_SET_CAPACITY: libc::Ioctl = 0x4C07;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// A loop device that could not be set up or taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The kernel has no loop driver.
    #[error(
        "this kernel offers no {CONTROL}: load the module (modprobe loop), or attach through NBD instead"
    )]
    Unavailable(#[source] io::Error),
    /// Not allowed.
    #[error("not permitted to set up loop devices: run as root, or attach through NBD instead")]
    NotPermitted(#[source] io::Error),
    /// The kernel fell back to buffered I/O, which would cache what the volume is to be asked for.
    #[error("{} does no direct I/O on {}", device.display(), file.display())]
    NotDirect {
        /// The loop device, detached again.
        device: PathBuf,
        /// The file below it.
        file: PathBuf,
    },
    /// Someone still uses the device.
    #[error("{} is still in use; unmount it and close what has it open (fuser -vm {})", .0.display(), .0.display())]
    Busy(PathBuf),
    /// Anything else.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

impl LoopError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted(source),
            _ => Self::Io { action, path, source },
        }
    }
}

/// How a loop device presents itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopOptions {
    /// Logical block size in bytes, 512 or 4096.
    pub block_bytes: u32,
    /// Whether it reports that it has a spinning disk.
    pub rotational: bool,
    /// Largest request in KiB. EBS NVMe devices take 256.
    pub max_sectors_kb: u32,
}

impl Default for LoopOptions {
    fn default() -> Self {
        Self { block_bytes: 512, rotational: false, max_sectors_kb: 256 }
    }
}

/// A loop device of ours. Dropping it detaches it without waiting.
#[derive(Debug)]
pub struct LoopDevice {
    number: u32,
    path: PathBuf,
    backing: PathBuf,
    attached: bool,
}

impl LoopDevice {
    /// Puts a free loop device over `file`, with direct I/O.
    ///
    /// # Errors
    /// No loop driver, no permission, or a kernel that refuses direct I/O on that file.
    pub fn attach(file: &Path, options: &LoopOptions) -> Result<Self, LoopError> {
        let control =
            OpenOptions::new().read(true).write(true).open(CONTROL).map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => LoopError::Unavailable(e),
                io::ErrorKind::PermissionDenied => LoopError::NotPermitted(e),
                _ => LoopError::io("open", Path::new(CONTROL))(e),
            })?;
        let backing =
            OpenOptions::new().read(true).write(true).open(file).map_err(LoopError::io("open", file))?;
        let mut device = loop {
            let number = free_number(&control)?;
            if let Some(device) = Self::configure(number, &backing, file, options.block_bytes)? {
                break device;
            }
        };
        device.tune(options)?;
        if device.attribute("loop/dio")?.trim() != "1" {
            let error = LoopError::NotDirect { device: device.path.clone(), file: file.to_owned() };
            device.detach_within(Duration::from_secs(1))?;
            return Err(error);
        }
        Ok(device)
    }

    /// Takes the device with this number, or nothing where someone else was faster.
    fn configure(
        number: u32,
        backing: &File,
        file: &Path,
        block_bytes: u32,
    ) -> Result<Option<Self>, LoopError> {
        let path = PathBuf::from(format!("/dev/loop{number}"));
        make_node(&path, number).map_err(LoopError::io("create the device node", &path))?;
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(&path)
            .map_err(LoopError::io("open", &path))?;
        let fd = u32::try_from(backing.as_raw_fd()).expect("an open file's descriptor is not negative");
        let config = LoopConfig {
            fd,
            block_size: block_bytes,
            info: LoopInfo {
                device: 0,
                inode: 0,
                rdevice: 0,
                offset: 0,
                sizelimit: 0,
                number,
                encrypt_type: 0,
                encrypt_key_size: 0,
                flags: LO_FLAGS_DIRECT_IO,
                file_name: name_field(file),
                crypt_name: [0; 64],
                encrypt_key: [0; 32],
                init: [0; 2],
            },
            reserved: [0; 8],
        };
        // SAFETY: the kernel reads one loop_config, laid out as its header defines, which outlives the call.
        let done = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
        match check(done) {
            Ok(_) => Ok(Some(Self { number, path, backing: file.to_owned(), attached: true })),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(None),
            Err(error) => Err(LoopError::io("configure", &path)(error)),
        }
    }

    fn tune(&self, options: &LoopOptions) -> Result<(), LoopError> {
        self.set_attribute("queue/scheduler", "none")?;
        self.set_rotational(options.rotational)?;
        self.set_attribute("queue/add_random", "0")?;
        self.set_attribute("queue/max_sectors_kb", &options.max_sectors_kb.to_string())
    }

    /// Has the device report that it has a spinning disk, or none.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn set_rotational(&self, rotational: bool) -> Result<(), LoopError> {
        self.set_attribute("queue/rotational", if rotational { "1" } else { "0" })
    }

    /// The block device.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file below it.
    #[must_use]
    pub fn backing(&self) -> &Path {
        &self.backing
    }

    /// Takes over the size of the file below, after it has grown.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn refresh_size(&self) -> Result<(), LoopError> {
        // The kernel keeps the file's size; looking at the file makes it ask again.
        fs::metadata(&self.backing).map_err(LoopError::io("look at", &self.backing))?;
        let device = File::open(&self.path).map_err(LoopError::io("open", &self.path))?;
        // SAFETY: no memory is involved.
        let done = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_CAPACITY, 0) };
        check(done).map(drop).map_err(LoopError::io("resize", &self.path))
    }

    /// Detaches, and waits until the device is really gone.
    ///
    /// # Errors
    /// [`LoopError::Busy`] while it is mounted or open. The kernel will then detach it as soon as
    /// the last user lets go; calling this again waits for that.
    pub fn detach(&mut self) -> Result<(), LoopError> {
        self.detach_within(Duration::from_secs(5))
    }

    fn detach_within(&mut self, patience: Duration) -> Result<(), LoopError> {
        if !self.attached {
            return Ok(());
        }
        self.clear()?;
        let end = Instant::now() + patience;
        while self.is_ours() {
            if Instant::now() >= end {
                return Err(LoopError::Busy(self.path.clone()));
            }
            sleep(Duration::from_millis(1));
        }
        self.attached = false;
        Ok(())
    }

    fn clear(&self) -> Result<(), LoopError> {
        if !self.is_ours() {
            return Ok(());
        }
        let device = File::open(&self.path).map_err(LoopError::io("open", &self.path))?;
        // SAFETY: no memory is involved.
        let done = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD, 0) };
        match check(done) {
            Err(error) if error.raw_os_error() != Some(libc::ENXIO) => {
                Err(LoopError::io("detach", &self.path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Whether the device is still on top of our file. A detached device's number can be another file's.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        backing_of(self.number).is_some_and(|backing| backing == self.backing)
    }

    fn attribute(&self, name: &str) -> Result<String, LoopError> {
        let path = self.attribute_path(name);
        fs::read_to_string(&path).map_err(LoopError::io("read", &path))
    }

    fn set_attribute(&self, name: &str, value: &str) -> Result<(), LoopError> {
        let has = self.attribute(name)?;
        // One of several is shown as `[none] mq-deadline`. What was set before on a device of this number stays, and
        // setting it again would stop the queue and wait for all processors: 20 ms each.
        if has.trim() == value || has.split_whitespace().any(|one| one == format!("[{value}]")) {
            return Ok(());
        }
        let path = self.attribute_path(name);
        fs::write(&path, value).map_err(LoopError::io("write", &path))
    }

    fn attribute_path(&self, name: &str) -> PathBuf {
        Path::new("/sys/block").join(format!("loop{}", self.number)).join(name)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if self.attached
            && let Err(error) = self.clear()
        {
            tracing::warn!(device = %self.path.display(), %error, "the loop device stays behind");
        }
    }
}

/// A loop device in use, by whomever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopInUse {
    /// The block device.
    pub device: PathBuf,
    /// The file below it; ` (deleted)` is cut off.
    pub backing: PathBuf,
}

/// All loop devices in use.
#[must_use]
pub fn list() -> Vec<LoopInUse> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("loop")?.parse().ok())
        .filter_map(|number: u32| Some((number, backing_of(number)?)))
        .collect();
    found.sort_unstable();
    found
        .into_iter()
        .map(|(number, backing)| LoopInUse { device: PathBuf::from(format!("/dev/loop{number}")), backing })
        .collect()
}

/// Detaches a loop device that a killed process left behind, if it still is on top of that file.
///
/// # Errors
/// As [`LoopDevice::detach`].
pub fn detach_leftover(leftover: &LoopInUse) -> Result<(), LoopError> {
    let number = leftover.device.to_str().and_then(|path| path.strip_prefix("/dev/loop")?.parse().ok());
    let Some(number) = number else { return Ok(()) };
    let (path, backing) = (leftover.device.clone(), leftover.backing.clone());
    LoopDevice { number, path, backing, attached: true }.detach()
}

fn backing_of(number: u32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/sys/block/loop{number}/loop/backing_file")).ok()?;
    let name = text.trim_end_matches('\n');
    Some(PathBuf::from(name.strip_suffix(" (deleted)").unwrap_or(name)))
}

fn free_number(control: &File) -> Result<u32, LoopError> {
    // SAFETY: no memory is involved.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    let number = check(number).map_err(LoopError::io("get a free device from", Path::new(CONTROL)))?;
    Ok(u32::try_from(number).expect("a checked result is not negative"))
}

/// The device file, where nothing on this system makes it by itself.
fn make_node(path: &Path, number: u32) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.file_type().is_block_device() => Ok(()),
        _ => {
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP;
            match mknodat(CWD, path, FileType::BlockDevice, mode, makedev(MAJOR, number)) {
                Err(rustix::io::Errno::EXIST) => Ok(()),
                made => made.map_err(Into::into),
            }
        }
    }
}

/// The file's name as `losetup` shows it where it cannot ask sysfs: cut to 63 bytes.
fn name_field(file: &Path) -> [u8; 64] {
    let mut field = [0; 64];
    let name = file.as_os_str().as_encoded_bytes();
    let len = name.len().min(63);
    field[..len].copy_from_slice(&name[..len]);
    field
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
