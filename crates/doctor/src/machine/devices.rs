//! The device that data are on in the end, through partitions, loop devices, LVM and RAID (`/sys/dev/block`).

use std::fs;
use std::path::{Path, PathBuf};

use ebbtide_observe::{Device, StartAlignment};
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
    let from = start(&mounted).map_or(Alignment::NONE, |bytes| Alignment::EXACT.behind(bytes));
    found.follow(&top, sys, mounts, 0, from);
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
    let alignment = found.alignment.and_then(Alignment::known);
    Some(Device { read_ahead_kib, members, chunk_bytes: found.chunk_bytes, alignment, ..first })
}

/// Alignments beyond this one make no difference, bytes.
pub(super) const MOST_ALIGNED: u64 = 1 << 20;

/// Where the start of a file system lies on a device below: at the sum of the offsets that are known, behind a multiple of
/// what the others are multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Alignment {
    offset: u64,
    /// A power of two of which the offsets that no file shows are multiples; [`MOST_ALIGNED`] where all are known.
    multiple: u64,
    /// The smallest chunk of the striped arrays above the device.
    chunk: u64,
}

impl Alignment {
    const EXACT: Self = Self { offset: 0, multiple: MOST_ALIGNED, chunk: MOST_ALIGNED };
    /// Nothing is known: all offsets are multiples of a byte.
    const NONE: Self = Self { multiple: 1, ..Self::EXACT };

    const fn behind(self, bytes: u64) -> Self {
        Self { offset: self.offset.wrapping_add(bytes), ..self }
    }

    fn at_multiple_of(self, bytes: u64) -> Self {
        Self { multiple: self.multiple.min(power(bytes)), ..self }
    }

    fn in_chunks(self, bytes: Option<u64>) -> Self {
        // What starts inside a chunk goes over its end.
        let whole = |bytes| self.chunk.min(power(bytes)).min(power(self.offset));
        Self { chunk: bytes.map_or(self.chunk, whole), ..self }
    }

    /// What is known of it; None where that is nothing.
    fn known(self) -> Option<StartAlignment> {
        let exact = power(self.offset).min(self.chunk);
        let known = StartAlignment {
            bytes: exact.min(self.multiple),
            is_exact: exact < self.multiple || self.chunk <= self.multiple || self.multiple == MOST_ALIGNED,
        };
        (self.multiple > 1).then_some(known)
    }

    /// What holds on two devices.
    fn and(self, other: Self) -> Self {
        let worse = |one: &Self| one.known().map_or((0, false), |known| (known.bytes, !known.is_exact));
        if worse(&self) <= worse(&other) { self } else { other }
    }
}

/// The largest power of two that divides a number of bytes, up to [`MOST_ALIGNED`].
const fn power(bytes: u64) -> u64 {
    if bytes == 0 {
        MOST_ALIGNED
    } else {
        let power = 1 << bytes.trailing_zeros();
        if power < MOST_ALIGNED { power } else { MOST_ALIGNED }
    }
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
    /// Where the file system starts on the devices, as far as it holds on each.
    alignment: Option<Alignment>,
}

impl Below {
    fn follow(&mut self, device: &Path, sys: &Path, mounts: &[Mount], depth: usize, at: Alignment) {
        self.chunk_bytes = self.chunk_bytes.or_else(|| chunk(device));
        match below(device, sys, mounts) {
            _ if depth >= DEEPEST => self.lost = true,
            None => self.lost = true,
            Some(parts) if parts.is_empty() => {
                self.alignment = Some(self.alignment.map_or(at, |other| other.and(at)));
                if !self.leaves.iter().any(|leaf| leaf == device) {
                    self.leaves.push(device.to_owned());
                }
            }
            Some(parts) => parts.iter().for_each(|(part, shown)| {
                let at = shown.on(device, part, at);
                self.follow(part, sys, mounts, depth + 1, at);
            }),
        }
    }
}

/// What the kernel shows of where a device begins on one that it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// At these bytes of the whole device: a member of an array (md), with the start of its partition.
    At(u64),
    /// At a multiple of the device's own blocks, or of its chunks, where the mapping reports itself aligned (LVM).
    Mapped,
    /// Nothing.
    Unknown,
}

impl Begin {
    /// Where what is `at` on the upper device is on the lower one.
    fn on(self, upper: &Path, lower: &Path, at: Alignment) -> Alignment {
        let at = at.in_chunks(chunk(upper));
        match self {
            Self::At(bytes) => at.behind(bytes),
            Self::Unknown => Alignment::NONE,
            Self::Mapped => {
                let queue = |name: &str| number(lower.join("queue").join(name)).unwrap_or(1);
                // The kernel compares the start with the larger of the two (`blk_stack_limits`).
                let own = queue("physical_block_size").max(queue("minimum_io_size"));
                // It shows how far the lower device's first aligned block is behind the start.
                let lower_offset = number(lower.join("alignment_offset")).unwrap_or(0);
                number(upper.join("alignment_offset")).map_or(Alignment::NONE, |offset| {
                    at.behind(lower_offset.wrapping_sub(offset)).at_multiple_of(own)
                })
            }
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
fn below(device: &Path, sys: &Path, mounts: &[Mount]) -> Option<Vec<(PathBuf, Begin)>> {
    if let Some(file) = text(device.join("loop/backing_file")) {
        let Some(mount) = mount_of(mounts, Path::new(&file)) else { return Some(Vec::new()) };
        // A file on a file system without a device: the loop device is the last that has counters.
        let Some(host) = whole(&sys.join("dev/block").join(&mount.device)) else { return Some(Vec::new()) };
        return Some(vec![(host, Begin::Unknown)]);
    }
    let Ok(slaves) = fs::read_dir(device.join("slaves")) else { return Some(Vec::new()) };
    let mut parts: Vec<_> = slaves.filter_map(|entry| Some(entry.ok()?.path())).collect();
    parts.sort();
    parts.iter().map(|part| Some((whole(part)?, begin(device, part)))).collect()
}

/// Where a device begins on a part of it.
fn begin(device: &Path, part: &Path) -> Begin {
    if !device.join("md").exists() {
        // The origin and the exceptions of a snapshot (LVM's `-real` and `-cow`): blocks are copied here and there.
        let id = text(part.join("dm/uuid")).unwrap_or_default();
        let is_copied = ["-real", "-cow"].iter().any(|end| id.trim().ends_with(end));
        return if is_copied { Begin::Unknown } else { Begin::Mapped };
    }
    // `md/dev-NAME/offset` counts sectors of 512 bytes from the start of the component, which may be a partition.
    let member = device.join(format!("md/dev-{}/offset", name(part)));
    let bytes = number(member).and_then(|sectors| sectors.checked_mul(512)).zip(start(part));
    bytes.map_or(Begin::Unknown, |(offset, start)| Begin::At(offset + start))
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
    fn the_kernels_promise_of_whole_writes_is_read() {
        let dir = tree();
        assert_eq!(leaf("259:1", dir.path(), &[]).unwrap().atomic_write_bytes, Some(16_384));
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

    /// RAID 0 of a disk and of a partition of another, with a volume group on it.
    #[test]
    fn the_alignment_follows_from_offsets_of_members_and_from_what_mappings_report() {
        let dir = tree();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let link = |to: &str, at: &str| symlink(dir.path().join(to), dir.path().join(at)).unwrap();
        let of = |number: &str| {
            let known = leaf(number, dir.path(), &[]).unwrap().alignment;
            known.map(|known| (known.bytes, known.is_exact))
        };
        assert_eq!((of("259:0"), of("259:1")), (Some((1 << 20, true)), Some((1 << 20, true))));
        put("devices/nvme1n1/nvme1n1p1/start", "63\n");
        assert_eq!(of("259:1"), Some((512, true)), "an old partition starts at sector 63");
        put("devices/nvme1n1/nvme1n1p1/start", "2048\n");
        // LVM alone says no more than that it is aligned to the blocks of the disk.
        assert_eq!(of("253:0"), None);
        put("devices/dm-0/alignment_offset", "0\n");
        put("devices/nvme1n1/queue/minimum_io_size", "4096\n");
        assert_eq!(of("253:0"), Some((4_096, false)));
        put("devices/dm-0/alignment_offset", "512\n");
        assert_eq!(of("253:0"), Some((512, true)));
        put("devices/nvme1n1/alignment_offset", "512\n");
        assert_eq!(of("253:0"), Some((4_096, false)), "the disk's own blocks are as far behind");
        fs::remove_file(dir.path().join("devices/nvme1n1/alignment_offset")).unwrap();
        put("devices/nvme2n1/queue/rotational", "0\n");
        put("devices/md0/md/chunk_size", "65536\n");
        put("devices/md0/md/dev-nvme1n1p1/offset", "264192\n");
        put("devices/md0/md/dev-nvme2n1/offset", "264192\n");
        put("devices/md0/queue/physical_block_size", "4096\n");
        put("devices/md0/queue/minimum_io_size", "65536\n");
        put("devices/dm-1/alignment_offset", "0\n");
        fs::create_dir_all(dir.path().join("devices/md0/slaves")).unwrap();
        fs::create_dir_all(dir.path().join("devices/dm-1/slaves")).unwrap();
        link("devices/nvme1n1/nvme1n1p1", "devices/md0/slaves/nvme1n1p1");
        link("devices/nvme2n1", "devices/md0/slaves/nvme2n1");
        link("devices/md0", "devices/dm-1/slaves/md0");
        link("devices/md0", "dev/block/9:0");
        link("devices/dm-1", "dev/block/253:1");
        assert_eq!(of("9:0"), Some((65_536, true)), "the chunk is smaller than the offsets' alignment");
        assert_eq!(of("253:1"), Some((65_536, true)), "a volume group on an array starts at a chunk");
        put("devices/md0/dm/uuid", "LVM-data-real\n");
        assert_eq!(of("253:1"), None, "the origin of a snapshot is copied in chunks of the snapshot's");
        fs::remove_file(dir.path().join("devices/md0/dm/uuid")).unwrap();
        put("devices/md0/md/dev-nvme2n1/offset", "264200\n");
        assert_eq!(of("9:0"), Some((4_096, true)), "the worse member counts");
        fs::remove_file(dir.path().join("devices/md0/md/dev-nvme2n1/offset")).unwrap();
        assert_eq!(of("9:0"), None);
    }
}
