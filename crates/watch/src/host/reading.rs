//! What was read of a machine at one moment.

use ebbtide_proc::{BlockStatistics, Mount, Pressure};

use super::ebs_page::EbsPage;
use super::udev::UdevProperties;

/// What was read of a machine at one moment. What could not be read is left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostReading {
    /// Block devices and partitions, without those that node_exporter leaves out.
    pub disks: Vec<HostDisk>,
    /// File systems, without those that node_exporter leaves out.
    pub file_systems: Vec<HostFileSystem>,
    /// How long processes waited.
    pub pressure: Pressure,
    /// EBS volumes that gave their statistics page.
    pub ebs: Vec<EbsVolume>,
    /// How the reading of these pages went so far.
    pub ebs_reads: EbsReads,
    /// The EC2 instance, such as `i-0123456789abcdef0`; empty where it was not named.
    pub instance_id: String,
}

/// A block device or a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostDisk {
    /// What the kernel counts.
    pub statistics: BlockStatistics,
    /// What udev knows of it; empty where there is no udev, as in most containers.
    pub udev: UdevProperties,
    /// Whether the kernel takes it for a rotating disk. False where it does not say.
    pub is_rotational: bool,
}

/// Space of a file system. Bytes are its blocks times the block size of statfs(2), as node_exporter counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Space {
    /// All blocks, bytes.
    pub size_bytes: u64,
    /// Free blocks, those that are reserved for root included, bytes.
    pub free_bytes: u64,
    /// Free blocks for other users, bytes.
    pub available_bytes: u64,
    /// File nodes; 0 where the file system makes them as they are needed.
    pub files: u64,
    /// File nodes that are free.
    pub files_free: u64,
}

/// A file system that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFileSystem {
    /// What it was mounted from, such as `/dev/nvme1n1`, as the kernel writes it.
    pub device: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Its type, such as `xfs`.
    pub fs_type: String,
    /// Major number of its device.
    pub major: u32,
    /// Minor number of its device.
    pub minor: u32,
    /// Whether it, or the mount, is read-only.
    pub is_read_only: bool,
    /// Its space, or why that is not known.
    pub space: Result<Space, String>,
}

impl HostFileSystem {
    /// The file system of a mount with its space. None for a mount without a device number, which the kernel does not write.
    #[must_use]
    pub fn of_mount(mount: &Mount, space: Result<Space, String>) -> Option<Self> {
        use std::os::unix::ffi::OsStrExt as _;
        let (major, minor) = mount.device.split_once(':')?;
        Some(Self {
            // node_exporter takes the source as the kernel escapes it, and of the directory blanks and tabs alone unescaped.
            device: label(mount.source.as_bytes(), b" \t\n\\#"),
            mount_point: label(mount.dir.as_os_str().as_bytes(), b"\n\\"),
            fs_type: mount.fs.clone(),
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
            is_read_only: mount.all_options().any(|option| matches!(option, "ro" | "emergency_ro")),
            space,
        })
    }
}

/// Bytes of the kernel as the value of a label: some of them as `\` and three octal digits, and each run that is no UTF-8 as one
/// replacement character.
fn label(bytes: &[u8], escaped: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut is_replaced = false;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match u8::try_from(c) {
                Ok(byte) if escaped.contains(&byte) => text.push_str(&format!("\\{byte:03o}")),
                _ => text.push(c),
            }
        }
        is_replaced &= chunk.valid().is_empty();
        if !chunk.invalid().is_empty() && !is_replaced {
            text.push(char::REPLACEMENT_CHARACTER);
            is_replaced = true;
        }
    }
    text
}

/// An EBS volume with its statistics page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EbsVolume {
    /// Its id, such as `vol-0123456789abcdef0`.
    pub volume_id: String,
    /// The name of its device, such as `nvme1n1`.
    pub device: String,
    /// Where the device itself is mounted; empty where it is not, or one of its partitions is.
    pub mount_path: String,
    /// The page.
    pub page: EbsPage,
}

/// How the reading of statistics pages went since the program began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EbsReads {
    /// Pages that were asked for.
    pub asked: u64,
    /// Pages that were not had, or could not be read.
    pub failed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[u8]) -> HostFileSystem {
        let mounts = ebbtide_proc::parse_mounts(line);
        HostFileSystem::of_mount(&mounts[0], Err("none".to_owned())).unwrap()
    }

    #[test]
    fn labels_are_written_as_node_exporter_writes_them() {
        let read = read(
            br"36 35 259:3 /a /mnt/a\040b\134c\012d rw,noatime shared:1 - xfs /dev/x\040\043y rw,noquota",
        );
        assert_eq!(read.device, r"/dev/x\040\043y");
        assert_eq!(read.mount_point, r"/mnt/a b\134c\012d");
        assert_eq!(
            (read.fs_type.as_str(), read.major, read.minor, read.is_read_only),
            ("xfs", 259, 3, false)
        );
        assert_eq!(label(b"a\xff\xfeb\xff", b""), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_mount_or_a_file_system_can_be_read_only_also_after_an_emergency() {
        let is_read_only = |options: &str| read(format!("36 35 8:1 / / {options}").as_bytes()).is_read_only;
        assert!(is_read_only("ro,noatime - ext4 /dev/sda1 rw"));
        assert!(is_read_only("rw - ext4 /dev/sda1 ro"));
        assert!(is_read_only("rw - ext4 /dev/sda1 rw,emergency_ro"));
        assert!(!is_read_only("rw,errors=remount-ro - ext4 /dev/sda1 rw,prjquota"));
    }
}
