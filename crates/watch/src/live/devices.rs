//! Devices and file systems of the machine as the alarms take them.

use std::collections::BTreeMap;

use ebbtide_volume::{Nanos, OpStats};

use crate::host::{HostDisk, HostFileSystem, HostReading};
use crate::reading::{DeviceReading, ExceededReading, FileSystemReading, VolumeLimits};

/// The devices of a machine. `limits` has what devices may do, by their names.
pub(super) fn devices(host: &HostReading, limits: &BTreeMap<String, VolumeLimits>) -> Vec<DeviceReading> {
    host.disks.iter().map(|disk| device(disk, host, limits)).collect()
}

fn device(disk: &HostDisk, host: &HostReading, limits: &BTreeMap<String, VolumeLimits>) -> DeviceReading {
    let counted = &disk.statistics;
    let volume = host.ebs.iter().find(|volume| volume.device == counted.name);
    let ops = |ops: u64, sectors: u64, ms: u64| OpStats {
        ops,
        bytes: sectors.saturating_mul(512),
        time: millis(ms),
    };
    DeviceReading {
        name: counted.name.clone(),
        identity: format!("{}:{} {} {}", counted.major, counted.minor, disk.udev.serial, disk.udev.wwn),
        read: ops(counted.reads, counted.read_sectors, counted.read_ms),
        write: ops(counted.writes, counted.written_sectors, counted.write_ms),
        flush_ops: counted.flushes.map_or(0, |flushes| flushes.count),
        discard_ops: counted.discards.map_or(0, |discards| discards.count),
        queue: counted.in_flight,
        busy: millis(counted.busy_ms),
        queue_time: millis(counted.queue_ms),
        exceeded: volume
            .map(|volume| ExceededReading { read: volume.read_at, times: volume.page.exceeded() }),
        // The statistics page has no credits.
        credit_share: None,
        limits: limits.get(&counted.name).copied().unwrap_or_default(),
    }
}

const fn millis(ms: u64) -> Nanos {
    Nanos(ms.saturating_mul(1_000_000))
}

/// File systems on block devices, each device once: a directory that is mounted a second time is as full as the first.
pub(super) fn file_systems(host: &HostReading) -> Vec<&HostFileSystem> {
    let mut by_device: BTreeMap<(u32, u32), &HostFileSystem> = BTreeMap::new();
    let on_devices = host.file_systems.iter().filter(|system| system.device.starts_with("/dev/"));
    for system in on_devices.filter(|system| system.space.is_ok()) {
        let kept = by_device.entry((system.major, system.minor)).or_insert(system);
        if system.mount_point.len() < kept.mount_point.len() {
            *kept = system;
        }
    }
    let mut kept: Vec<&HostFileSystem> = by_device.into_values().collect();
    kept.sort_by(|first, second| first.mount_point.cmp(&second.mount_point));
    kept
}

/// A file system as the alarms take it; None where its space is not known.
pub(super) fn file_system_reading(system: &HostFileSystem) -> Option<FileSystemReading> {
    let space = system.space.as_ref().ok()?;
    Some(FileSystemReading {
        mount_point: system.mount_point.clone(),
        size_bytes: space.size_bytes,
        free_bytes: space.available_bytes,
        read_only: system.is_read_only,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Space;

    #[test]
    fn a_device_that_is_mounted_twice_is_one_file_system_and_one_without_a_device_is_none() {
        let system = |device: &str, mount_point: &str, minor: u32| HostFileSystem {
            device: device.to_owned(),
            mount_point: mount_point.to_owned(),
            fs_type: "xfs".to_owned(),
            major: 259,
            minor,
            is_read_only: false,
            space: Ok(Space { size_bytes: 10, free_bytes: 6, available_bytes: 5, files: 1, files_free: 1 }),
        };
        let gone =
            HostFileSystem { space: Err("mountpoint timeout".to_owned()), ..system("/dev/c", "/c", 2) };
        let host = HostReading {
            file_systems: vec![
                system("/dev/a", "/srv/data", 0),
                system("/dev/a", "/data", 0),
                system("tmpfs", "/run", 9),
                gone,
                system("/dev/b", "/", 1),
            ],
            ..HostReading::default()
        };
        let mounts: Vec<&str> = file_systems(&host).iter().map(|system| &*system.mount_point).collect();
        assert_eq!(mounts, ["/", "/data"]);
        let reading = file_system_reading(file_systems(&host)[1]).unwrap();
        assert_eq!(
            (reading.size_bytes, reading.free_bytes),
            (10, 5),
            "what is reserved for root is not free"
        );
    }
}
