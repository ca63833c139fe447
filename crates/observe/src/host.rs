//! The machine that a server runs on: memory, the server's process, and where its files lie.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Variables;

/// What was seen of the machine that the server runs on. What could not be read is None.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<u64>,
    /// Memory limit of the server's control group, bytes; None where there is no limit.
    pub memory_limit_bytes: Option<u64>,
    /// Swap space of the machine, bytes.
    pub swap_bytes: Option<u64>,
    /// `vm.swappiness`, 0 to 200.
    pub swappiness: Option<u64>,
    /// Processors that are online.
    pub processors: Option<u64>,
    /// Threads of a core: 2 where processors share cores in pairs.
    pub threads_per_core: Option<u64>,
    /// Share of the processors' time that was busy in the interval, 0 to 1: user, nice, system and interrupts. Waiting for
    /// I/O and what the hypervisor took are not in it. None where that was not measured.
    pub busy_share: Option<f64>,
    /// NUMA nodes with memory.
    pub numa_nodes: Option<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// `fs.aio-max-nr`: asynchronous requests that the kernel allows in all.
    pub aio_max: Option<u64>,
    /// `fs.aio-nr`: asynchronous requests that are reserved.
    pub aio_used: Option<u64>,
    /// `nvme_core.io_timeout`, s; None without NVMe.
    pub nvme_timeout_s: Option<u64>,
    /// Memory of the server's process that is swapped out, bytes.
    pub server_swapped_bytes: Option<u64>,
    /// Files that the server's process may have open.
    pub server_open_files: Option<u64>,
    /// Whether the server's process has the redo log (`ib_logfile0`) open with `O_DIRECT`; None where it has no such file
    /// open, or it may not be read.
    pub redo_direct: Option<bool>,
    /// Where the server's files lie.
    pub places: Vec<ServerDirectory>,
}

impl Host {
    /// Memory that the server may use: the smaller of the machine's and the control group's, bytes.
    #[must_use]
    pub fn usable_memory_bytes(&self) -> Option<u64> {
        let machine = self.memory_bytes?;
        Some(self.memory_limit_bytes.map_or(machine, |limit| limit.min(machine)))
    }

    /// Where the files of a kind lie.
    #[must_use]
    pub fn place(&self, files: Files) -> Option<&ServerDirectory> {
        self.places.iter().find(|place| place.files == files)
    }
}

/// Files of a server that may lie on storage of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Files {
    /// Tables (`datadir`).
    Data,
    /// The redo log (`innodb_log_group_home_dir`).
    Redo,
    /// The binary log (`log_bin_basename`).
    Binlog,
    /// Temporary tables on disk (`tmpdir`).
    Temporary,
}

impl Files {
    /// The name in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data files",
            Self::Redo => "redo log",
            Self::Binlog => "binary log",
            Self::Temporary => "temporary files",
        }
    }
}

/// A directory of a server, the file system that it lies on, and the device below that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerDirectory {
    /// What lies there.
    pub files: Files,
    /// The directory.
    pub directory: String,
    /// Where its file system is mounted.
    pub mount_point: String,
    /// Type of the file system, such as `xfs`; empty where it is not known.
    pub file_system: String,
    /// Options of the mount and of the file system; empty where they are not known: a mount has at least one.
    pub options: Vec<String>,
    /// Size of the file system, bytes.
    pub size_bytes: Option<u64>,
    /// Bytes of it that are free for the server.
    pub free_bytes: Option<u64>,
    /// The device that the data are on in the end, below partitions, LVM, RAID and loop devices; None where it is not known.
    pub device: Option<Device>,
}

/// A block device that is not made of others. Of several below one file system (RAID, LVM) the first stands for all, and
/// its I/O is that of all together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Its name, such as `nvme1n1`.
    pub name: String,
    /// Names of all devices below the file system, this one among them; empty where there is one.
    pub members: Vec<String>,
    /// Its model, such as `Amazon Elastic Block Store`.
    pub model: Option<String>,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Read-ahead of the kernel, KiB; that of the device which is mounted.
    pub read_ahead_kib: Option<u64>,
    /// Physical block, bytes.
    pub physical_block_bytes: Option<u64>,
    /// Bytes on one device of a striped array above it before the next device; None where it is in none.
    pub chunk_bytes: Option<u64>,
    /// Where the file system starts on it, and on each other member; None where nothing is known, as below a loop device.
    pub alignment: Option<StartAlignment>,
    /// The largest write that the kernel promises to keep whole (`atomic_write_unit_max_bytes`); 0: none, None: the kernel
    /// is older than 6.11.
    pub atomic_write_bytes: Option<u64>,
    /// How long an EBS volume was over a limit; None where it was not asked.
    pub exceeded: Option<Exceeded>,
    /// What it did in the interval, all members together; None where that was not measured.
    pub io: Option<DeviceIo>,
}

/// Of what the start of a file system is a multiple, on each device below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartAlignment {
    /// A power of two up to 1 MiB, bytes: the smallest of offsets of partitions and members (md), chunks of striped arrays, and
    /// what mappings (LVM) report.
    pub bytes: u64,
    /// Whether it is no multiple of the next power of two; else it may be one.
    pub is_exact: bool,
}

/// Shares of the interval, 0 to 1, in which an EBS volume was asked for more than a limit gives (its NVMe log page); of
/// several members the largest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Exceeded {
    /// The volume's IOPS.
    pub volume_iops: f64,
    /// The volume's throughput.
    pub volume_throughput: f64,
    /// The instance's IOPS for all its volumes.
    pub instance_iops: f64,
    /// The instance's throughput for all its volumes.
    pub instance_throughput: f64,
}

impl Device {
    /// Names of the devices that the data are on: the members, or this one alone.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let alone = self.members.is_empty().then_some(self.name.as_str());
        alone.into_iter().chain(self.members.iter().map(String::as_str))
    }

    /// Whether two file systems have a device in common.
    #[must_use]
    pub fn shares_with(&self, other: &Self) -> bool {
        self.names().any(|name| other.names().any(|theirs| theirs == name))
    }

    /// Whether it is no disk that turns, whatever the kernel reports: NVMe, and the disks of virtual machines on a cloud.
    #[must_use]
    pub fn is_solid(&self) -> bool {
        self.rotational == Some(false) || self.name.starts_with("nvme") || self.is_ebs()
    }

    /// Whether it is an EBS volume on a Nitro instance.
    #[must_use]
    pub fn is_ebs(&self) -> bool {
        self.model.as_deref().is_some_and(|model| model.starts_with("Amazon Elastic Block Store"))
    }

    /// Whether it is a disk of the instance itself, which is empty after a stop.
    #[must_use]
    pub fn is_instance_store(&self) -> bool {
        self.model.as_deref().is_some_and(|model| model.starts_with("Amazon EC2 NVMe Instance Storage"))
    }
}

/// What a device did, a second (`/proc/diskstats`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceIo {
    /// Reads that were completed.
    pub reads: f64,
    /// Writes that were completed.
    pub writes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub written_bytes: f64,
    /// Mean number of requests in flight.
    pub queue: f64,
    /// Mean time of a read from its request to its answer, s; None without a read, and where it is not known.
    #[serde(default)]
    pub read_s: Option<f64>,
    /// Mean time of a write, s; as above.
    #[serde(default)]
    pub write_s: Option<f64>,
}

impl DeviceIo {
    /// What the members of an array did together; None of none. Times of an operation are those of all operations: one
    /// that is not known is left out.
    #[must_use]
    pub fn together(members: &[Self]) -> Option<Self> {
        let sum = |of: fn(&Self) -> f64| members.iter().map(of).sum::<f64>();
        let time = |number: fn(&Self) -> f64, time: fn(&Self) -> Option<f64>| {
            let known = || members.iter().filter_map(|io| Some((number(io), time(io)?)));
            let all: f64 = known().map(|(number, _)| number).sum();
            (all > 0.0).then(|| known().map(|(number, time)| number * time).sum::<f64>() / all)
        };
        (!members.is_empty()).then(|| Self {
            reads: sum(|io| io.reads),
            writes: sum(|io| io.writes),
            read_bytes: sum(|io| io.read_bytes),
            written_bytes: sum(|io| io.written_bytes),
            queue: sum(|io| io.queue),
            read_s: time(|io| io.reads, |io| io.read_s),
            write_s: time(|io| io.writes, |io| io.write_s),
        })
    }
}

/// What a volume carried minute by minute, from its metrics at AWS (CloudWatch).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct VolumePeaks {
    /// Time from the first minute to the last, s.
    pub seconds: f64,
    /// Minutes that have figures; a minute without I/O may have none.
    pub minutes: u64,
    /// Operations a second of the minute that one in a thousand minutes is above.
    pub ios: f64,
    /// Bytes a second of the minute that one in a thousand minutes is above; None where bytes are not among the metrics.
    pub bytes: Option<f64>,
    /// The least share of the burst credits that was left (`BurstBalance`), 0 to 1; None where it is not among the metrics.
    #[serde(default)]
    pub burst_balance: Option<f64>,
    /// Shares of the minutes over a limit (`VolumeIOPSExceededCheck` and its like); None where none is among the metrics.
    #[serde(default)]
    pub exceeded: Option<Exceeded>,
}

/// How long a write of 4 KiB and its sync took, one after the other (`doctor --probe`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncProbe {
    /// The directory of the file, which had no name.
    pub directory: String,
    /// Number of writes.
    pub writes: u64,
    /// Median of their times, us.
    pub p50_us: f64,
    /// Time that one in a hundred is above, us.
    pub p99_us: f64,
}

/// Directories of a server by what lies there, as its variables name them.
#[must_use]
pub fn directories(variables: &Variables) -> Vec<(Files, PathBuf)> {
    let data = PathBuf::from(variables.get("datadir").unwrap_or("/"));
    let below = |path: &str| data.join(path);
    let redo = variables.get("innodb_log_group_home_dir").map(below);
    let binlog = variables.get("log_bin_basename").filter(|base| !base.is_empty());
    let binlog = binlog.and_then(|base| below(base).parent().map(Path::to_owned));
    let temporary = variables.get("tmpdir").and_then(|list| list.split(':').next()).map(below);
    let mut all = vec![(Files::Data, data.clone())];
    all.extend(redo.map(|dir| (Files::Redo, dir)));
    all.extend(binlog.map(|dir| (Files::Binlog, dir)));
    all.extend(temporary.map(|dir| (Files::Temporary, dir)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_in_the_directories_of_the_variables() {
        let variables = Variables::from_iter([
            ("datadir", "/var/lib/mysql/"),
            ("innodb_log_group_home_dir", "./"),
            ("log_bin_basename", "/logs/binlog"),
            ("tmpdir", "/tmp:/other"),
        ]);
        let named: Vec<_> =
            directories(&variables).into_iter().map(|(_, dir)| dir.to_string_lossy().into_owned()).collect();
        assert_eq!(named, ["/var/lib/mysql/", "/var/lib/mysql/./", "/logs", "/tmp"]);
    }

    #[test]
    fn the_smaller_of_machine_and_control_group_is_what_a_server_may_use() {
        let host = |memory_limit_bytes| Host { memory_bytes: Some(8), memory_limit_bytes, ..Host::default() };
        assert_eq!(
            [None, Some(4), Some(1 << 40)].map(|limit| host(limit).usable_memory_bytes()),
            [Some(8), Some(4), Some(8)]
        );
        assert_eq!(Host::default().usable_memory_bytes(), None);
    }

    #[test]
    fn arrays_share_a_device_where_one_member_is_in_both() {
        let array = |members: &[&str]| Device {
            name: members[0].into(),
            members: members.iter().map(|name| (*name).to_owned()).collect(),
            ..Device::default()
        };
        let alone = Device { name: "c".into(), ..Device::default() };
        assert!(array(&["a", "c"]).shares_with(&alone) && alone.shares_with(&alone));
        assert!(!array(&["a", "b"]).shares_with(&alone));
    }

    #[test]
    fn the_members_of_an_array_are_added_up_and_their_times_weighed() {
        let one =
            DeviceIo { reads: 30.0, writes: 1.0, queue: 0.5, read_s: Some(0.001), ..DeviceIo::default() };
        let other = DeviceIo { reads: 10.0, queue: 0.25, read_s: Some(0.005), ..DeviceIo::default() };
        let both = DeviceIo::together(&[one, other]).unwrap();
        assert_eq!((both.reads, both.writes, both.queue), (40.0, 1.0, 0.75));
        assert_eq!((both.read_s, both.write_s), (Some(0.002), None));
        assert_eq!(DeviceIo::together(&[]), None);
    }

    #[test]
    fn a_volume_of_ebs_is_solid_whatever_the_kernel_reports() {
        let ebs = Device {
            model: Some("Amazon Elastic Block Store".into()),
            rotational: Some(true),
            ..Device::default()
        };
        assert!(ebs.is_ebs() && ebs.is_solid() && !ebs.is_instance_store());
        assert!(!Device { name: "sda".into(), rotational: Some(true), ..Device::default() }.is_solid());
    }
}
