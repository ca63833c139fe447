//! The families of node_exporter's collector `filesystem` (`collector/filesystem_common.go`).

use super::foreign::{family, with_shared};
use super::reading::{HostFileSystem, Space};
use crate::exposition::{Exposition, Label, Number};
use crate::family::{Family, FamilyKind};

const LABELS: &[&str] = &["device", "mountpoint", "fstype", "device_error"];

const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Family {
    family(name, FamilyKind::Gauge, unit, LABELS, (help, "statfs(2)"))
}

const DEVICE_ERROR: Family =
    gauge("node_filesystem_device_error", "0 or 1", "Whether the space of a file system is not known.");
const READ_ONLY: Family = family(
    "node_filesystem_readonly",
    FamilyKind::Gauge,
    "0 or 1",
    LABELS,
    ("Whether a file system is read-only.", "`/proc/1/mountinfo`"),
);
const MOUNT_INFO: Family = family(
    "node_filesystem_mount_info",
    FamilyKind::Gauge,
    "1",
    &["device", "major", "minor", "mountpoint"],
    ("Where a device is mounted; its value is always 1.", "`/proc/1/mountinfo`"),
);

/// What is known of the space.
const SPACE: [(Family, fn(&Space) -> u64); 5] = [
    (gauge("node_filesystem_size_bytes", "bytes", "Size of a file system."), |space| space.size_bytes),
    (
        gauge("node_filesystem_free_bytes", "bytes", "Free space, what is reserved for root included."),
        |space| space.free_bytes,
    ),
    (gauge("node_filesystem_avail_bytes", "bytes", "Free space for other users than root."), |space| {
        space.available_bytes
    }),
    (gauge("node_filesystem_files", "file nodes", "File nodes of a file system."), |space| space.files),
    (gauge("node_filesystem_files_free", "file nodes", "Free file nodes of a file system."), |space| {
        space.files_free
    }),
];

/// The families, in the order of the text.
pub(super) fn families() -> Vec<Family> {
    let space = SPACE.iter().map(|(family, _)| *family);
    [DEVICE_ERROR, READ_ONLY].into_iter().chain(space).chain([MOUNT_INFO]).collect()
}

/// Adds the families of all file systems. What is mounted twice on one directory from one source is one of them.
pub(super) fn add(text: &mut Exposition, file_systems: &[HostFileSystem], shared: &[Label<'_>]) {
    let mut distinct: Vec<&HostFileSystem> = Vec::with_capacity(file_systems.len());
    for file_system in file_systems {
        if !distinct.iter().any(|other| is_same(other, file_system)) {
            distinct.push(file_system);
        }
    }
    for file_system in &distinct {
        let is_unknown = file_system.space.is_err();
        text.add(&DEVICE_ERROR, &labels(file_system, shared), Number::flag(is_unknown));
    }
    for file_system in &distinct {
        text.add(&READ_ONLY, &labels(file_system, shared), Number::flag(file_system.is_read_only));
    }
    for (family, read) in &SPACE {
        for file_system in &distinct {
            if let Ok(space) = &file_system.space {
                text.add(family, &labels(file_system, shared), Number::Whole(read(space)));
            }
        }
    }
    for file_system in distinct.iter().filter(|file_system| file_system.space.is_ok()) {
        let (major, minor) = (file_system.major.to_string(), file_system.minor.to_string());
        let own = [
            ("device", file_system.device.as_str()),
            ("major", major.as_str()),
            ("minor", minor.as_str()),
            ("mountpoint", file_system.mount_point.as_str()),
        ];
        text.add(&MOUNT_INFO, &with_shared(&own, shared), Number::Whole(1));
    }
}

fn is_same(first: &HostFileSystem, other: &HostFileSystem) -> bool {
    first.device == other.device && first.mount_point == other.mount_point && first.fs_type == other.fs_type
}

fn labels<'a>(file_system: &'a HostFileSystem, shared: &[Label<'a>]) -> Vec<Label<'a>> {
    let error = file_system.space.as_ref().err().map_or("", String::as_str);
    let own = [
        ("device", file_system.device.as_str()),
        ("mountpoint", file_system.mount_point.as_str()),
        ("fstype", file_system.fs_type.as_str()),
        ("device_error", error),
    ];
    with_shared(&own, shared)
}
