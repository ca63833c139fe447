//! What is mounted where, as the kernel lists it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// One line of `/proc/self/mountinfo` (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The file system's device number, as `major:minor`.
    pub device: String,
    /// The directory of the file system that is mounted: a part of it in a container or a bind mount.
    pub root: PathBuf,
    /// Where it is mounted.
    pub dir: PathBuf,
    /// Its type, like `xfs` or `fuse`.
    pub fs: String,
    /// What it was mounted from.
    pub source: OsString,
    /// Options of this mount, such as `noatime`.
    pub options: String,
    /// Options of the file system, such as the controllers of a control group.
    pub fs_options: String,
}

impl Mount {
    /// Options of the mount, then those of the file system.
    pub fn all_options(&self) -> impl Iterator<Item = &str> {
        self.options.split(',').chain(self.fs_options.split(',')).filter(|option| !option.is_empty())
    }

    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b' ');
        let text = |field: &[u8]| String::from_utf8(field.to_vec()).ok();
        let (device, root, dir) = (text(fields.nth(2)?)?, unescape(fields.next()?), unescape(fields.next()?));
        let options = text(fields.next()?)?;
        // Optional fields end with a hyphen.
        let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
        let (fs, source) = (text(fields.next()?)?, unescape(fields.next()?));
        let fs_options = fields.next().unwrap_or_default().trim_ascii_end();
        let fs_options = String::from_utf8_lossy(fs_options).into_owned();
        Some(Self { device, root: root.into(), dir: dir.into(), fs, source, options, fs_options })
    }
}

/// Everything that is mounted, in the order of mounting. It is read without touching the file systems, so that dead
/// ones do not hang the reader.
///
/// # Errors
/// `/proc` cannot be read.
pub fn mounts() -> io::Result<Vec<Mount>> {
    Ok(parse_mounts(&std::fs::read("/proc/self/mountinfo")?))
}

/// Everything that the first process of the system has mounted, which is all of the machine's; what this process has mounted where
/// that may not be read.
///
/// # Errors
/// `/proc` cannot be read.
pub fn host_mounts() -> io::Result<Vec<Mount>> {
    match std::fs::read("/proc/1/mountinfo") {
        Ok(text) => Ok(parse_mounts(&text)),
        Err(_) => mounts(),
    }
}

/// Reads the lines of a text like `/proc/self/mountinfo`; what is no mount is left out.
#[must_use]
pub fn parse_mounts(text: &[u8]) -> Vec<Mount> {
    text.split(|&byte| byte == b'\n').filter_map(Mount::parse).collect()
}

/// The file system that a directory is on: of those mounted above it the last one of the longest path.
#[must_use]
pub fn mount_of<'a>(mounts: &'a [Mount], directory: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| directory.starts_with(&mount.dir));
    above.max_by_key(|mount| mount.dir.components().count())
}

/// Whether something is mounted at exactly this directory.
///
/// # Errors
/// `/proc` cannot be read.
pub fn is_mount_point(dir: &Path) -> io::Result<bool> {
    Ok(mounts()?.iter().any(|mount| mount.dir == dir))
}

/// The kernel writes space, tab, newline and backslash as `\` and three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let digits = (*first == b'\\').then(|| tail.get(..3)).flatten();
        let code = digits.and_then(|digits| u8::from_str_radix(OsStr::from_bytes(digits).to_str()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = &tail[if code.is_some() { 3 } else { 0 }..];
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_line_is_read_with_its_escapes_and_optional_fields() {
        let line =
            br"36 35 7:3 /a\040b /mnt/a\040b\134c rw,noatime shared:1 master:2 - xfs /dev/x\0119 rw,noquota";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.device.as_str(), mount.fs.as_str()), ("7:3", "xfs"));
        assert_eq!(
            (mount.root.as_path(), mount.dir.as_path()),
            (Path::new("/a b"), Path::new(r"/mnt/a b\c"))
        );
        assert_eq!(mount.source, "/dev/x\t9");
        assert!(mount.all_options().eq(["rw", "noatime", "rw", "noquota"]));
        assert_eq!(Mount::parse(b""), None);
    }

    #[test]
    fn a_directory_whose_name_is_no_text_is_listed_like_any_other() {
        let mount = Mount::parse(b"36 35 0:3 / /mnt/\xff\\999 rw - fuse ebbtide:db rw").unwrap();
        assert_eq!(mount.dir.as_os_str().as_bytes(), b"/mnt/\xff\\999", "999 is no octal number");
        assert_eq!(mount.source, "ebbtide:db");
    }

    #[test]
    fn a_directory_is_on_the_file_system_of_the_longest_path() {
        let mounts = parse_mounts(
            b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
              30 22 259:3 / /my\\040data rw,noatime shared:2 master:1 - xfs /dev/nvme1n1p1 rw,attr2,nobarrier\n\
              31 22 0:40 / /my\\040data/tmp rw - tmpfs tmpfs rw\n",
        );
        let at = |path: &str| mount_of(&mounts, Path::new(path)).unwrap();
        let data = at("/my data/mysql");
        assert_eq!((&*data.device, &*data.fs), ("259:3", "xfs"));
        assert!(data.all_options().eq(["rw", "noatime", "rw", "attr2", "nobarrier"]));
        assert_eq!(at("/my data/tmp/x").fs, "tmpfs");
        assert_eq!(at("/my datadir").dir, Path::new("/"), "a name that begins alike is another directory");
    }

    #[test]
    fn lines_that_are_no_mounts_are_left_out() {
        assert_eq!(parse_mounts(b"nonsense\n - \n1 2 3 - ext4\n"), []);
        assert_eq!(unescape(b"a\\b\\04"), r"a\b\04");
    }

    #[test]
    fn the_root_is_a_mount_point_and_a_file_in_it_is_not() {
        assert!(is_mount_point(Path::new("/")).unwrap());
        assert!(!is_mount_point(Path::new("/etc/hostname-of-nobody")).unwrap());
    }
}
