//! Where a file is on its volume.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

// From the kernel's include/uapi/linux/fs.h and fiemap.h.
/// `_IOWR('f', 11, struct fiemap)`; the size of a struct fiemap without extents is 32 bytes.
const FS_IOC_FIEMAP: libc::Ioctl = libc::_IOWR::<[u64; 4]>(0x66, 11);
const EXTENT_LAST: u32 = 0x1;
const EXTENT_UNKNOWN: u32 = 0x2;
const EXTENT_ENCODED: u32 = 0x8;
const EXTENT_INLINE: u32 = 0x200;
/// Extents that are asked for at a time.
const BATCH: usize = 128;

/// `struct fiemap`, with room for [`BATCH`] extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// A run of a file that is in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileExtent {
    /// Where it begins in the file, bytes.
    pub logical: u64,
    /// Where it begins on the block device, bytes. A device of ours is the whole volume, so this is
    /// an offset on the volume.
    pub physical: u64,
    /// Bytes.
    pub len: u64,
}

impl FileExtent {
    /// The offset in the file that belongs to an offset of the volume, where it is in this extent.
    #[must_use]
    pub const fn file_offset(&self, on_volume: u64) -> Option<u64> {
        if on_volume < self.physical || on_volume - self.physical >= self.len {
            return None;
        }
        Some(self.logical + (on_volume - self.physical))
    }
}

/// The extents of a file, in its order, as its file system has them now: also those that are
/// allocated and not written yet, but none that has no place yet, because nothing of it was
/// written back. Between them are holes.
///
/// The file system may have to read them from its device. On a volume of this process the volume
/// must therefore not be stalled.
///
/// # Errors
/// Where the file cannot be opened, or its file system cannot report it (`EOPNOTSUPP`: it is on none
/// that has a block device).
pub fn file_extents(path: &Path) -> io::Result<Vec<FileExtent>> {
    let file = File::open(path)?;
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let batch = ask(&file, start)?;
        let Some(last) = batch.last() else { return Ok(found) };
        start = last.logical + last.length;
        let placed =
            batch.iter().filter(|raw| raw.flags & (EXTENT_UNKNOWN | EXTENT_ENCODED | EXTENT_INLINE) == 0);
        found.extend(placed.map(|raw| FileExtent {
            logical: raw.logical,
            physical: raw.physical,
            len: raw.length,
        }));
        if last.flags & EXTENT_LAST != 0 {
            return Ok(found);
        }
    }
}

/// The first extents that end after `start`.
fn ask(file: &File, start: u64) -> io::Result<Vec<RawExtent>> {
    let none =
        RawExtent { logical: 0, physical: 0, length: 0, reserved64: [0; 2], flags: 0, reserved: [0; 3] };
    let mut request = Request {
        start,
        length: u64::MAX - start,
        flags: 0,
        mapped: 0,
        count: u32::try_from(BATCH).expect("a small constant"),
        reserved: 0,
        extents: [none; BATCH],
    };
    // SAFETY: the kernel reads and writes one struct fiemap with `count` extents, laid out as its
    // headers define; it outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let mapped = usize::try_from(request.mapped).unwrap_or(BATCH).min(BATCH);
    Ok(request.extents[..mapped].to_vec())
}
