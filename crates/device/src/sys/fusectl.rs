//! FUSE connections by their number: the file system `fusectl`, without a mount that anybody sees.

use std::{io, path::Path};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx},
    io::write,
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
};

/// The number of the connection that is mounted on a directory. The mount's own process is not asked.
///
/// # Errors
/// Where there is no such directory.
pub(crate) fn connection_of(dir: &Path) -> io::Result<u32> {
    // The kernel numbers connections by the device number of the mount, whose major number is 0.
    Ok(statx(CWD, dir, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE)?.stx_dev_minor)
}

/// Ends a connection: its process is told, and who still has the mount gets errors.
///
/// # Errors
/// Without CAP_SYS_ADMIN, on a kernel without `fusectl`, and where the connection has gone.
pub(crate) fn abort(connection: u32) -> io::Result<()> {
    let context = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let file = openat(&root, format!("{connection}/abort"), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(&file, b"1")?;
    Ok(())
}
