//! The device that data are on in the end, through partitions, loop devices, LVM and RAID (`/sys/dev/block`).

use std::fs;
use std::path::{Path, PathBuf};

use ebbtide_observe::Device;
use ebbtide_proc::{Mount, mount_of};

use super::{chosen, number, text};

/// Mappings upon mappings: deeper ones are not followed.
const DEEPEST: usize = 16;

/// The leaf of a device with this number; None for file systems without a device, such as overlayfs.
pub(super) fn leaf(number: &str, sys: &Path, mounts: &[Mount]) -> Option<Device> {
    let top = whole(&sys.join("dev/block").join(number))?;
    let read_ahead_kib = super::number(top.join("queue/read_ahead_kb"));
    let (mut at, mut chunk_bytes) = (top, None);
    for _ in 0..DEEPEST {
        chunk_bytes = chunk_bytes.or_else(|| chunk(&at));
        match below(&at, sys, mounts) {
            Some(next) => at = next,
            None => return Some(Device { read_ahead_kib, chunk_bytes, ..described(&at) }),
        }
    }
    None
}

/// The directory of a whole device: that of a partition is inside it.
fn whole(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    if path.join("partition").exists() { path.parent().map(Path::to_owned) } else { Some(path) }
}

/// The device that one is made of; the first of several.
fn below(device: &Path, sys: &Path, mounts: &[Mount]) -> Option<PathBuf> {
    if let Some(file) = text(device.join("loop/backing_file")) {
        let mount = mount_of(mounts, Path::new(&file))?;
        return whole(&sys.join("dev/block").join(&mount.device));
    }
    let mut parts: Vec<_> =
        fs::read_dir(device.join("slaves")).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    parts.sort();
    whole(parts.first()?)
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

fn described(device: &Path) -> Device {
    let name = device.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Device {
        name,
        model: text(device.join("device/model")),
        rotational: number(device.join("queue/rotational")).map(|value| value != 0),
        scheduler: text(device.join("queue/scheduler")).and_then(|choice| chosen(&choice)),
        physical_block_bytes: number(device.join("queue/physical_block_size")),
        read_ahead_kib: None,
        chunk_bytes: None,
        io: None,
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
        put("devices/dm-0/queue/read_ahead_kb", "8192\n");
        put("devices/loop0/loop/backing_file", "/data/file\n");
        put("devices/loop0/queue/read_ahead_kb", "128\n");
        fs::create_dir_all(dir.path().join("devices/dm-0/slaves")).unwrap();
        fs::create_dir_all(dir.path().join("dev/block")).unwrap();
        let link = |to: &str, at: &str| symlink(dir.path().join(to), dir.path().join(at)).unwrap();
        link("devices/nvme1n1/nvme1n1p1", "devices/dm-0/slaves/nvme1n1p1");
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
}
