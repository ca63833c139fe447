//! The families of node_exporter's collector `diskstats` (`collector/diskstats_linux.go`), with its help texts' meaning.

use ebbtide_proc::BlockStatistics;
use ebbtide_volume::Nanos;

use super::foreign::{family, with_shared};
use super::reading::HostDisk;
use super::udev::UdevProperties;
use crate::exposition::{Exposition, Label, Number};
use crate::family::{Family, FamilyKind};

const DISKSTATS: &str = "`/proc/diskstats`";
const UDEV: &str = "`/run/udev/data`";

const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Family {
    family(name, FamilyKind::Counter, unit, &["device"], (help, DISKSTATS))
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Family {
    family(name, FamilyKind::Gauge, "1", labels, (help, UDEV))
}

/// How a value is read; None: this kernel does not count it.
type Read = fn(&BlockStatistics) -> Option<Number>;

/// What the kernel counts, in the order of node_exporter.
const COUNTED: [(Family, Read); 17] = [
    (counter("node_disk_reads_completed_total", "reads", "Reads completed."), |disk| {
        Some(Number::Whole(disk.reads))
    }),
    (counter("node_disk_reads_merged_total", "reads", "Reads merged into others."), |disk| {
        Some(Number::Whole(disk.reads_merged))
    }),
    (counter("node_disk_read_bytes_total", "bytes", "Bytes read."), |disk| Some(sectors(disk.read_sectors))),
    (counter("node_disk_read_time_seconds_total", "seconds", "Time of all reads together."), |disk| {
        Some(millis(disk.read_ms))
    }),
    (counter("node_disk_writes_completed_total", "writes", "Writes completed."), |disk| {
        Some(Number::Whole(disk.writes))
    }),
    (counter("node_disk_writes_merged_total", "writes", "Writes merged into others."), |disk| {
        Some(Number::Whole(disk.writes_merged))
    }),
    (counter("node_disk_written_bytes_total", "bytes", "Bytes written."), |disk| {
        Some(sectors(disk.written_sectors))
    }),
    (counter("node_disk_write_time_seconds_total", "seconds", "Time of all writes together."), |disk| {
        Some(millis(disk.write_ms))
    }),
    (
        family(
            "node_disk_io_now",
            FamilyKind::Gauge,
            "requests",
            &["device"],
            ("Requests in flight now.", DISKSTATS),
        ),
        |disk| Some(Number::Whole(disk.in_flight)),
    ),
    (
        counter("node_disk_io_time_seconds_total", "seconds", "Time with at least one request in flight."),
        |disk| Some(millis(disk.busy_ms)),
    ),
    (
        counter(
            "node_disk_io_time_weighted_seconds_total",
            "seconds",
            "Time of all I/O together, added when it ends: its rate is the mean queue length, but for requests that hang.",
        ),
        |disk| Some(millis(disk.queue_ms)),
    ),
    (counter("node_disk_discards_completed_total", "discards", "Discards completed."), |disk| {
        Some(Number::Whole(disk.discards?.count))
    }),
    (counter("node_disk_discards_merged_total", "discards", "Discards merged into others."), |disk| {
        Some(Number::Whole(disk.discards?.merged))
    }),
    (counter("node_disk_discarded_sectors_total", "sectors of 512 bytes", "Sectors discarded."), |disk| {
        Some(Number::Whole(disk.discards?.sectors))
    }),
    (counter("node_disk_discard_time_seconds_total", "seconds", "Time of all discards together."), |disk| {
        Some(millis(disk.discards?.ms))
    }),
    (counter("node_disk_flush_requests_total", "flushes", "Flushes completed."), |disk| {
        Some(Number::Whole(disk.flushes?.count))
    }),
    (
        counter("node_disk_flush_requests_time_seconds_total", "seconds", "Time of all flushes together."),
        |disk| Some(millis(disk.flushes?.ms)),
    ),
];

const INFO: Family = gauge(
    "node_disk_info",
    &["device", "major", "minor", "path", "wwn", "model", "serial", "revision", "rotational"],
    "What a device is; its value is always 1.",
);
const FILE_SYSTEM_INFO: Family = gauge(
    "node_disk_filesystem_info",
    &["device", "type", "usage", "uuid", "version"],
    "The file system on a device; its value is always 1.",
);
const MAPPER_INFO: Family = gauge(
    "node_disk_device_mapper_info",
    &["device", "name", "uuid", "vg_name", "lv_name", "lv_layer"],
    "What a mapped device is; its value is always 1.",
);

/// How a property of an ATA disk is read.
type ReadAta = fn(&UdevProperties) -> Option<u64>;

const ATA: [(Family, ReadAta); 3] = [
    (gauge("node_disk_ata_write_cache", &["device"], "Whether an ATA disk has a write cache."), |udev| {
        udev.ata_write_cache
    }),
    (
        gauge(
            "node_disk_ata_write_cache_enabled",
            &["device"],
            "Whether the write cache of an ATA disk is enabled.",
        ),
        |udev| udev.ata_write_cache_enabled,
    ),
    (
        gauge(
            "node_disk_ata_rotation_rate_rpm",
            &["device"],
            "Rotations a minute of an ATA disk, 0 for a solid one.",
        ),
        |udev| udev.ata_rotation_rate_rpm,
    ),
];

/// The kernel counts sectors of 512 bytes, whatever the device's.
const fn sectors(count: u64) -> Number {
    Number::Whole(count.saturating_mul(512))
}

const fn millis(ms: u64) -> Number {
    Number::Time(Nanos(ms.saturating_mul(1_000_000)))
}

/// The families, in the order of the text.
pub(super) fn families() -> Vec<Family> {
    let counted = COUNTED.iter().map(|(family, _)| *family);
    let known = [INFO, FILE_SYSTEM_INFO, MAPPER_INFO];
    counted.chain(known).chain(ATA.iter().map(|(family, _)| *family)).collect()
}

/// Adds the families of all devices.
pub(super) fn add(text: &mut Exposition, disks: &[HostDisk], shared: &[Label<'_>]) {
    for (family, read) in &COUNTED {
        for disk in disks {
            if let Some(number) = read(&disk.statistics) {
                text.add(family, &with_shared(&[("device", disk.statistics.name.as_str())], shared), number);
            }
        }
    }
    for disk in disks {
        add_info(text, disk, shared);
    }
    for disk in disks.iter().filter(|disk| !disk.udev.fs_type.is_empty()) {
        let udev = &disk.udev;
        let values = [&disk.statistics.name, &udev.fs_type, &udev.fs_usage, &udev.fs_uuid, &udev.fs_version];
        add_labelled(text, &FILE_SYSTEM_INFO, &values.map(String::as_str), shared);
    }
    for disk in disks.iter().filter(|disk| !disk.udev.dm_name.is_empty()) {
        let udev = &disk.udev;
        let values = [
            &disk.statistics.name,
            &udev.dm_name,
            &udev.dm_uuid,
            &udev.dm_vg_name,
            &udev.dm_lv_name,
            &udev.dm_lv_layer,
        ];
        add_labelled(text, &MAPPER_INFO, &values.map(String::as_str), shared);
    }
    for (family, read) in &ATA {
        for disk in disks.iter().filter(|disk| disk.udev.is_ata) {
            if let Some(number) = read(&disk.udev) {
                let labels = with_shared(&[("device", disk.statistics.name.as_str())], shared);
                text.add(family, &labels, Number::Whole(number));
            }
        }
    }
}

fn add_info(text: &mut Exposition, disk: &HostDisk, shared: &[Label<'_>]) {
    let HostDisk { statistics, udev, is_rotational } = disk;
    let (major, minor) = (statistics.major.to_string(), statistics.minor.to_string());
    let values =
        [&statistics.name, &major, &minor, &udev.path, &udev.wwn, &udev.model, &udev.serial, &udev.revision];
    let mut values = values.map(String::as_str).to_vec();
    values.push(if *is_rotational { "1" } else { "0" });
    add_labelled(text, &INFO, &values, shared);
}

/// Adds a value of 1 with a value for each label of its family.
fn add_labelled(text: &mut Exposition, family: &Family, values: &[&str], shared: &[Label<'_>]) {
    debug_assert_eq!(family.labels.len(), values.len(), "{}", family.name);
    let own: Vec<Label<'_>> = family.labels.iter().copied().zip(values.iter().copied()).collect();
    text.add(family, &with_shared(&own, shared), Number::Whole(1));
}
