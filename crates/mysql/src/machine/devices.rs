//! The device that data are on in the end, through partitions, loop devices, LVM and RAID (`/sys/dev/block`).

use std::fs;
use std::path::{Path, PathBuf};

use ebbtide_observe::Device;
use ebbtide_proc::{Mount, mount_of};

use super::{chosen, number, text};

/// Mappings upon mappings: deeper ones are not followed.
const DEEPEST: usize = 16;

/// The device below a device with this number, with the names of all where it is made of several; None for file systems
/// without a device, such as overlayfs.
pub(super) fn leaf(number: &str, sys: &Path, mounts: &[Mount]) -> Option<Device> {
    let mounted = sys.join("dev/block").join(number);
    let top = whole(&mounted)?;
    let read_ahead_kib = super::number(top.join("queue/read_ahead_kb"));
    let mut found = Below::default();
    found.follow(&top, sys, mounts, 0);
    // One that is not found leaves its I/O out: what the others do is not all.
    if found.lost {
        return None;
    }
    let first = described(found.leaves.first()?);
    let members = if found.leaves.len() > 1 {
        found.leaves.iter().map(|leaf| name(leaf)).collect()
    } else {
        Vec::new()
    };
    let alone = found.leaves.first() == Some(&top);
    let start_bytes = if alone { start(&mounted) } else { None };
    Some(Device { read_ahead_kib, members, chunk_bytes: found.chunk_bytes, start_bytes, ..first })
}

/// What is below a device.
#[derive(Debug, Default)]
struct Below {
    /// Devices that are made of no others, each once, in the order of their names within each array.
    leaves: Vec<PathBuf>,
    /// Chunk of the topmost striped array.
    chunk_bytes: Option<u64>,
    /// Whether a device was not found.
    lost: bool,
}

impl Below {
    fn follow(&mut self, device: &Path, sys: &Path, mounts: &[Mount], depth: usize) {
        self.chunk_bytes = self.chunk_bytes.or_else(|| chunk(device));
        match below(device, sys, mounts) {
            _ if depth >= DEEPEST => self.lost = true,
            None => self.lost = true,
            Some(parts) if parts.is_empty() => {
                if !self.leaves.iter().any(|leaf| leaf == device) {
                    self.leaves.push(device.to_owned());
                }
            }
            Some(parts) => parts.iter().for_each(|part| self.follow(part, sys, mounts, depth + 1)),
        }
    }
}

/// Where a partition starts on its device, bytes; 0 for a whole device.
fn start(device: &Path) -> Option<u64> {
    let device = device.canonicalize().ok()?;
    if !device.join("partition").exists() {
        return Some(0);
    }
    // The kernel counts in sectors of 512 bytes, whatever the device's.
    number(device.join("start"))?.checked_mul(512)
}

/// The directory of a whole device: that of a partition is inside it.
fn whole(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    if path.join("partition").exists() { path.parent().map(Path::to_owned) } else { Some(path) }
}

/// The devices that one is made of, none for a device of its own; None where one of them is not found.
fn below(device: &Path, sys: &Path, mounts: &[Mount]) -> Option<Vec<PathBuf>> {
    if let Some(file) = text(device.join("loop/backing_file")) {
        let Some(mount) = mount_of(mounts, Path::new(&file)) else { return Some(Vec::new()) };
        // A file on a file system without a device: the loop device is the last that has counters.
        let Some(host) = whole(&sys.join("dev/block").join(&mount.device)) else { return Some(Vec::new()) };
        return Some(vec![host]);
    }
    let Ok(slaves) = fs::read_dir(device.join("slaves")) else { return Some(Vec::new()) };
    let mut parts: Vec<_> = slaves.filter_map(|entry| Some(entry.ok()?.path())).collect();
    parts.sort();
    parts.iter().map(|part| whole(part)).collect()
}

/// Bytes on one device of a striped array before the next.
fn chunk(device: &Path) -> Option<u64> {
    if let Some(bytes) = number(device.join("md/chunk_size")) {
        return Some(bytes).filter(|bytes| *bytes > 0);
    }
    // A striped mapping has several devices below it; its smallest I/O without a penalty is the chunk.
    let several = fs::read_dir(device.join("slaves")).ok()?.count() > 1;
    let [least, best] =
        ["minimum_io_size", "optimal_io_size"].map(|name| number(device.join("queue").join(name)));
    least.zip(best).filter(|(least, best)| several && best > least).map(|(least, _)| least)
}

fn name(device: &Path) -> String {
    device.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn described(device: &Path) -> Device {
    Device {
        name: name(device),
        model: text(device.join("device/model")),
        rotational: number(device.join("queue/rotational")).map(|value| value != 0),
        scheduler: text(device.join("queue/scheduler")).and_then(|choice| chosen(&choice)),
        physical_block_bytes: number(device.join("queue/physical_block_size")),
        atomic_write_bytes: number(device.join("queue/atomic_write_unit_max_bytes")),
        ..Device::default()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A tree with LVM on a partition of a disk, and a loop device on a file of the LVM.
    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("devices/nvme1n1/queue/rotational", "0\n");
        put("devices/nvme1n1/queue/scheduler", "[none] mq-deadline\n");
        put("devices/nvme1n1/queue/physical_block_size", "4096\n");
        put("devices/nvme1n1/device/model", "Amazon Elastic Block Store              \n");
        put("devices/nvme1n1/nvme1n1p1/partition", "1\n");
        put("devices/nvme1n1/nvme1n1p1/start", "2048\n");
        put("devices/nvme1n1/queue/atomic_write_unit_max_bytes", "16384\n");
        put("devices/dm-0/queue/read_ahead_kb", "8192\n");
        put("devices/loop0/loop/backing_file", "/data/file\n");
        put("devices/loop0/queue/read_ahead_kb", "128\n");
        fs::create_dir_all(dir.path().join("devices/dm-0/slaves")).unwrap();
        fs::create_dir_all(dir.path().join("dev/block")).unwrap();
        let link = |to: &str, at: &str| symlink(dir.path().join(to), dir.path().join(at)).unwrap();
        link("devices/nvme1n1/nvme1n1p1", "devices/dm-0/slaves/nvme1n1p1");
        link("devices/nvme1n1/nvme1n1p1", "dev/block/259:1");
        link("devices/nvme1n1", "dev/block/259:0");
        link("devices/dm-0", "dev/block/253:0");
        link("devices/loop0", "dev/block/7:0");
        dir
    }

    #[test]
    fn the_device_below_partitions_mappings_and_loops_is_found() {
        let dir = tree();
        let mounts = ebbtide_proc::parse_mounts(b"30 22 253:0 / /data rw - xfs /dev/dm-0 rw\n");
        let leaf = leaf("7:0", dir.path(), &mounts).unwrap();
        assert_eq!((&*leaf.name, leaf.rotational), ("nvme1n1", Some(false)));
        assert!(leaf.is_ebs());
        assert_eq!((leaf.scheduler.as_deref(), leaf.physical_block_bytes), (Some("none"), Some(4096)));
        assert_eq!(leaf.read_ahead_kib, Some(128), "that of the device which is mounted");
        assert_eq!(super::leaf("0:40", dir.path(), &mounts), None);
    }
    #[test]
    fn the_start_of_a_partition_and_the_kernels_promise_of_whole_writes_are_read() {
        let dir = tree();
        let of = |number: &str| leaf(number, dir.path(), &[]).unwrap();
        assert_eq!((of("259:1").start_bytes, of("259:0").start_bytes), (Some(1 << 20), Some(0)));
        assert_eq!(of("253:0").start_bytes, None, "no file shows the start of a mapping");
        assert_eq!(of("259:1").atomic_write_bytes, Some(16_384));
    }

    /// RAID 0 of two disks, with a volume group on it and on a third disk whose partition it is.
    #[test]
    fn every_member_of_an_array_and_of_a_volume_group_is_found_once() {
        let dir = tree();
        let make = |path: &str| fs::create_dir_all(dir.path().join(path)).unwrap();
        let link = |to: &str, at: &str| symlink(dir.path().join(to), dir.path().join(at)).unwrap();
        for disk in ["nvme2n1", "nvme3n1"] {
            make(&format!("devices/{disk}/queue"));
        }
        make("devices/md0/md");
        make("devices/md0/slaves");
        make("devices/dm-1/slaves");
        fs::write(dir.path().join("devices/md0/md/chunk_size"), "65536\n").unwrap();
        link("devices/nvme3n1", "devices/md0/slaves/nvme3n1");
        link("devices/nvme2n1", "devices/md0/slaves/nvme2n1");
        link("devices/md0", "devices/dm-1/slaves/md0");
        link("devices/dm-0", "devices/dm-1/slaves/dm-0");
        link("devices/md0", "dev/block/9:0");
        link("devices/dm-1", "dev/block/253:1");
        let array = leaf("9:0", dir.path(), &[]).unwrap();
        assert_eq!((&*array.name, array.chunk_bytes), ("nvme2n1", Some(65_536)));
        assert_eq!(array.members, ["nvme2n1", "nvme3n1"]);
        let all: Vec<_> = leaf("253:1", dir.path(), &[]).unwrap().members;
        assert_eq!(all, ["nvme1n1", "nvme2n1", "nvme3n1"]);
        assert!(leaf("253:0", dir.path(), &[]).unwrap().members.is_empty(), "one device is no array");
        // A member that /sys does not describe: the others are not all.
        symlink("/none", dir.path().join("devices/md0/slaves/nvme4n1")).unwrap();
        assert_eq!(leaf("9:0", dir.path(), &[]), None);
    }
}
