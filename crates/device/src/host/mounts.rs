//! What is mounted where, as the kernel lists it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MountPoint {
    /// The file system's device number, as `major:minor`.
    pub(super) device: String,
    /// Where it is mounted.
    pub(super) dir: PathBuf,
    /// Its type, like `xfs` or `fuse`.
    pub(super) fs: String,
}

/// Everything that is mounted, in the order of mounting. It is read without touching the file
/// systems, so that dead ones do not hang the reader.
pub(super) fn list() -> std::io::Result<Vec<MountPoint>> {
    let text = std::fs::read("/proc/self/mountinfo")?;
    Ok(text.split(|&byte| byte == b'\n').filter_map(parse).collect())
}

/// Whether something is mounted at exactly this directory.
pub(super) fn is_mount_point(dir: &Path) -> std::io::Result<bool> {
    Ok(list()?.iter().any(|mount| mount.dir == dir))
}

fn parse(line: &[u8]) -> Option<MountPoint> {
    let mut fields = line.split(|&byte| byte == b' ');
    let device = String::from_utf8(fields.nth(2)?.to_vec()).ok()?;
    let dir = PathBuf::from(unescape(fields.nth(1)?));
    let mut after_options = fields.skip_while(|field| *field != b"-").skip(1);
    let fs = String::from_utf8(after_options.next()?.to_vec()).ok()?;
    Some(MountPoint { device, dir, fs })
}

/// The kernel writes space, tab, newline and backslash as `\` and three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = (byte == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(code) => {
                bytes.push(code);
                rest = &tail[3..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_line_is_read_with_its_escapes_and_optional_fields() {
        let line = br"36 35 7:3 / /mnt/a\040b\134c rw,noatime shared:1 master:2 - xfs /dev/loop3 rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.device, "7:3");
        assert_eq!(mount.dir, Path::new(r"/mnt/a b\c"));
        assert_eq!(mount.fs, "xfs");
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn the_root_is_a_mount_point_and_a_file_in_it_is_not() {
        assert!(is_mount_point(Path::new("/")).unwrap());
        assert!(!is_mount_point(Path::new("/etc/hostname-of-nobody")).unwrap());
    }
}
