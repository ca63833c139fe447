//! All families of a machine, one after the other.

use super::reading::HostReading;
use super::{disk, ebs, file_system, pressure};
use crate::exposition::{Exposition, Label};
use crate::family::Family;

/// The families of a machine, in the order of the text. Which of them have values depends on the machine.
#[must_use]
pub fn host_families() -> Vec<Family> {
    let mut families = disk::families();
    families.extend(file_system::families());
    families.extend(pressure::families());
    families.extend(ebs::families());
    families
}

/// The text of a scrape of the machine alone. Each value has the `shared` labels besides its own, such as `node_name`.
#[must_use]
pub fn host_text(reading: &HostReading, shared: &[(&str, &str)]) -> String {
    let mut text = Exposition::default();
    add(&mut text, reading, shared);
    text.into_text()
}

/// Adds the families of a machine to a scrape.
pub(crate) fn add(text: &mut Exposition, reading: &HostReading, shared: &[Label<'_>]) {
    disk::add(text, &reading.disks, shared);
    file_system::add(text, &reading.file_systems, shared);
    pressure::add(text, &reading.pressure, shared);
    ebs::add(text, reading, shared);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ebbtide_proc::{Pressure, Stall, parse_block_statistics};

    use super::*;
    use crate::family::FamilyKind;
    use crate::host::ebs_page::EbsPage;
    use crate::host::ebs_page::tests::{NUMBERS, page};
    use crate::host::reading::{EbsReads, EbsVolume, HostDisk, HostFileSystem, Space};
    use crate::host::udev::UdevProperties;

    fn reading() -> HostReading {
        let line = b" 259 0 nvme1n1 90210 15 4120833 31872 1208331 402113 61230112 902331 2 512044 941220 12 1 8192 4 33211 7016\n";
        let udev = UdevProperties {
            serial: "vol0123456789abcdef0".to_owned(),
            fs_type: "xfs".to_owned(),
            dm_name: "vg-data".to_owned(),
            is_ata: true,
            ata_write_cache: Some(1),
            ata_write_cache_enabled: Some(0),
            ata_rotation_rate_rpm: Some(7_200),
            ..UdevProperties::default()
        };
        let statistics = parse_block_statistics(line).remove(0);
        let space = Space {
            size_bytes: 1 << 40,
            free_bytes: 3 << 30,
            available_bytes: 2 << 30,
            files: 9,
            files_free: 8,
        };
        let file_system = |mount_point: &str, space| HostFileSystem {
            device: "/dev/nvme1n1".to_owned(),
            mount_point: mount_point.to_owned(),
            fs_type: "xfs".to_owned(),
            major: 259,
            minor: 0,
            is_read_only: false,
            space,
        };
        let all = Stall { some_us: Some(2_500_000), full_us: Some(1) };
        let bins = [(512, 1_024, 3), (67_108_864, u64::MAX, 1)];
        let volume = EbsVolume {
            volume_id: "vol-0123456789abcdef0".to_owned(),
            device: "nvme1n1".to_owned(),
            mount_path: "/data".to_owned(),
            read_at: ebbtide_volume::Nanos::ZERO,
            page: EbsPage::parse(&page(NUMBERS, &bins)).unwrap(),
        };
        HostReading {
            disks: vec![HostDisk { statistics, udev, is_rotational: true }],
            file_systems: vec![
                file_system("/data", Ok(space)),
                // As a mount over another one of the same source has it.
                file_system("/data", Ok(space)),
                file_system("/gone", Err("mountpoint timeout".to_owned())),
            ],
            refreshes: 1,
            pressure: Pressure { cpu: Some(all), io: Some(all), memory: Some(all), irq: Some(all) },
            ebs: vec![volume],
            ebs_reads: EbsReads { asked: 7, failed: 2 },
            instance_id: "i-1".to_owned(),
        }
    }

    #[test]
    fn each_value_is_there_under_the_name_of_its_exporter() {
        let text = host_text(&reading(), &[]);
        let fs = r#"{device="/dev/nvme1n1",mountpoint="/data",fstype="xfs",device_error=""}"#;
        let gone =
            r#"{device="/dev/nvme1n1",mountpoint="/gone",fstype="xfs",device_error="mountpoint timeout"}"#;
        let node = r#"{volume_id="vol-0123456789abcdef0",device="nvme1n1",mount_path="/data"#;
        let csi = r#"{volume_id="vol-0123456789abcdef0",instance_id="i-1""#;
        for line in [
            r#"node_disk_read_bytes_total{device="nvme1n1"} 2109866496"#.to_owned(),
            r#"node_disk_write_time_seconds_total{device="nvme1n1"} 902.331"#.to_owned(),
            r#"node_disk_io_now{device="nvme1n1"} 2"#.to_owned(),
            r#"node_disk_discarded_sectors_total{device="nvme1n1"} 8192"#.to_owned(),
            r#"node_disk_flush_requests_time_seconds_total{device="nvme1n1"} 7.016"#.to_owned(),
            r#"node_disk_info{device="nvme1n1",major="259",minor="0",path="",wwn="",model="",serial="vol0123456789abcdef0",revision="",rotational="1"} 1"#.to_owned(),
            r#"node_disk_filesystem_info{device="nvme1n1",type="xfs",usage="",uuid="",version=""} 1"#.to_owned(),
            r#"node_disk_ata_rotation_rate_rpm{device="nvme1n1"} 7200"#.to_owned(),
            format!("node_filesystem_avail_bytes{fs} 2147483648"),
            format!("node_filesystem_files_free{fs} 8"),
            format!("node_filesystem_device_error{fs} 0"),
            format!("node_filesystem_device_error{gone} 1"),
            format!("node_filesystem_readonly{gone} 0"),
            r#"node_filesystem_mount_info{device="/dev/nvme1n1",major="259",minor="0",mountpoint="/data"} 1"#.to_owned(),
            "node_pressure_io_waiting_seconds_total 2.5".to_owned(),
            "node_pressure_irq_stalled_seconds_total 0.000001".to_owned(),
            format!("node_ebs_exceeded_iops_seconds_total{node}\"}} 31"),
            format!("node_ebs_volume_queue_length{node}\"}} 12"),
            format!("node_ebs_read_io_latency_seconds_bucket{node}\",le=\"0.001024\"}} 3"),
            format!("node_ebs_read_io_latency_seconds_bucket{node}\",le=\"+Inf\"}} 4"),
            format!("node_ebs_read_io_latency_seconds_sum{node}\"}} 0.05"),
            format!("aws_ebs_csi_write_seconds_total{csi}}} 0.06"),
            format!("aws_ebs_csi_ec2_exceeded_iops_seconds_total{csi}}} 0.3"),
            r#"aws_ebs_csi_nvme_collector_errors_total{instance_id="i-1"} 2"#.to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains(&format!("node_filesystem_size_bytes{gone}")), "no space is known of it");
    }

    #[test]
    fn each_family_is_written_once_with_its_type_and_no_value_is_there_twice() {
        let text = host_text(&reading(), &[("node_name", "db1")]);
        let typed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let families = host_families();
        let expected: Vec<String> =
            families.iter().map(|family| format!("{} {}", family.name, family.kind.name())).collect();
        assert_eq!(typed, expected);
        let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let series: BTreeSet<&str> = values.iter().map(|line| line.rsplit_once(' ').unwrap().0).collect();
        assert_eq!(series.len(), values.len());
        assert!(values.iter().all(|line| line.contains(r#"node_name="db1""#)));
        for family in &families {
            let is_counter = matches!(family.kind, FamilyKind::Counter);
            assert_eq!(is_counter, family.name.ends_with("_total"), "{}", family.name);
            let line = values.iter().find(|line| line.starts_with(&format!("{}{{", family.name)));
            if let Some(line) = line {
                assert!(family.labels.iter().all(|label| line.contains(&format!("{label}=\""))), "{line}");
            }
        }
    }

    #[test]
    fn a_machine_of_which_nothing_is_known_has_no_line() {
        assert_eq!(host_text(&HostReading::default(), &[]), "");
    }
}
