//! The space of the disk that a directory is on.

use std::path::Path;

/// The space of a disk, for those without privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that are used, and those that are free.
    pub size_bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
}

impl DiskSpace {
    /// The space of the file system of a directory, as df counts it: what is reserved for root is neither used nor free.
    ///
    /// # Errors
    /// Where there is no such directory or the host does not report it.
    pub fn of(dir: &Path) -> std::io::Result<Self> {
        let disk = rustix::fs::statvfs(dir)?;
        let blocks = disk.f_blocks.saturating_sub(disk.f_bfree).saturating_add(disk.f_bavail);
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Ok(Self { size_bytes: bytes(blocks), free_bytes: bytes(disk.f_bavail) })
    }

    /// How much of it is used, percent, rounded down.
    #[must_use]
    pub fn used_percent(&self) -> u64 {
        let used = u128::from(self.size_bytes.saturating_sub(self.free_bytes)) * 100;
        u64::try_from(used / u128::from(self.size_bytes).max(1)).unwrap_or(100)
    }
}

/// Bytes that are free in the file system of a directory, for those without privileges. Only the
/// file system's own count is read: nothing waits for its device.
///
/// # Errors
/// Where there is no such directory or the host does not report it.
pub fn free_bytes(dir: &Path) -> std::io::Result<u64> {
    Ok(DiskSpace::of(dir)?.free_bytes)
}
