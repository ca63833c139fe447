//! What was read of a machine at one moment.

use ebbtide_proc::{BlockStatistics, Mount, Pressure};
use ebbtide_volume::Nanos;

use super::ebs_page::EbsPage;
use super::udev::UdevProperties;

/// What was read of a machine at one moment. What could not be read is left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostReading {
    /// Block devices and partitions, without those that node_exporter leaves out.
    pub disks: Vec<HostDisk>,
    /// File systems, without those that node_exporter leaves out.
    pub file_systems: Vec<HostFileSystem>,
    /// How often file systems were read: two readings with the same number have the same space.
    pub refreshes: u64,
    /// How long processes waited.
    pub pressure: Pressure,
    /// EBS volumes that gave their statistics page.
    pub ebs: Vec<EbsVolume>,
    /// How the reading of these pages went so far.
    pub ebs_reads: EbsReads,
    /// The EC2 instance, such as `i-0123456789abcdef0`; empty where it was not named.
    pub instance_id: String,
}

/// An older page is not shown: it says nothing of now.
const OLDEST_PAGE: Nanos = Nanos::from_secs(30);

impl HostReading {
    /// Adds the pages of EBS volumes whose devices are there, at a time by the clock of [`EbsVolume::read_at`]. A page that is older than
    /// 30 s is left out.
    pub fn add_pages(&mut self, pages: EbsPages, now: Nanos) {
        let EbsPages { volumes, reads } = pages;
        self.ebs_reads = reads;
        for volume in volumes.into_iter().filter(|volume| now.since(volume.read_at) <= OLDEST_PAGE) {
            let Some(disk) = self.disks.iter().find(|disk| disk.statistics.name == volume.device) else {
                continue;
            };
            let number = (disk.statistics.major, disk.statistics.minor);
            let mount = self.file_systems.iter().find(|mount| (mount.major, mount.minor) == number);
            let mount_path = mount.map_or_else(String::new, |mount| mount.mount_point.clone());
            self.ebs.push(EbsVolume { mount_path, ..volume });
        }
    }
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
    /// When the page was read, by the caller's clock.
    pub read_at: Nanos,
    /// The page.
    pub page: EbsPage,
}

/// The newest pages of EBS volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EbsPages {
    /// Volumes that gave a page, without the directories where they are mounted.
    pub volumes: Vec<EbsVolume>,
    /// How the reading went so far.
    pub reads: EbsReads,
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
    fn a_page_is_that_of_a_device_that_is_there_and_no_old_one() {
        let statistics = ebbtide_proc::parse_block_statistics(b" 259 1 nvme1n1 1 0 8 1 1 0 8 1 0 1 1\n");
        let disks = statistics.into_iter().map(|statistics| HostDisk { statistics, ..HostDisk::default() });
        let mounts = ebbtide_proc::parse_mounts(b"36 35 259:1 / /data rw - xfs /dev/nvme1n1 rw");
        let mounted = HostFileSystem::of_mount(&mounts[0], Err("none".to_owned()));
        let reading = HostReading {
            disks: disks.collect(),
            file_systems: mounted.into_iter().collect(),
            ..HostReading::default()
        };
        let volume = |device: &str, second: u64| EbsVolume {
            volume_id: format!("vol-{device}"),
            device: device.to_owned(),
            mount_path: String::new(),
            read_at: Nanos::from_secs(second),
            page: EbsPage::default(),
        };
        let shown = |volumes: Vec<EbsVolume>| {
            let mut reading = reading.clone();
            reading.add_pages(EbsPages { volumes, ..EbsPages::default() }, Nanos::from_secs(100));
            reading.ebs.into_iter().map(|volume| (volume.device, volume.mount_path)).collect::<Vec<_>>()
        };
        let found = shown(vec![volume("nvme1n1", 70), volume("nvme2n1", 100)]);
        assert_eq!(found, [("nvme1n1".to_owned(), "/data".to_owned())]);
        assert_eq!(shown(vec![volume("nvme1n1", 69)]), []);
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
