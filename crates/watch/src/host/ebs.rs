//! The statistics pages of EBS volumes under two names: `node_ebs_*` as a collector that is proposed for node_exporter has them, and
//! `aws_ebs_csi_*` as the EBS CSI driver has them (`pkg/metrics/nvme.go`).
//!
//! Unlike the driver's, the histograms have the true sum, which is the total time of the page, and a last bucket without a bound.

use super::ebs_page::EbsPage;
use super::foreign::{family, with_shared};
use super::reading::{EbsVolume, HostReading};
use crate::exposition::{Distribution, Exposition, Label, Number};
use crate::family::{Family, FamilyKind};

const PAGE: &str = "the statistics page of the EBS volume";
const NODE_LABELS: &[&str] = &["volume_id", "device", "mount_path"];
const CSI_LABELS: &[&str] = &["volume_id", "instance_id"];

/// A figure under its two names.
#[derive(Clone, Copy)]
struct Figure {
    node: Family,
    csi: Family,
    read: fn(&EbsPage) -> Number,
}

const fn figure(
    (node, csi): (&'static str, &'static str),
    kind: FamilyKind,
    (unit, help): (&'static str, &'static str),
    read: fn(&EbsPage) -> Number,
) -> Figure {
    let node = family(node, kind, unit, NODE_LABELS, (help, PAGE));
    Figure { node, csi: family(csi, kind, unit, CSI_LABELS, (help, PAGE)), read }
}

/// The two names of a figure by what they have in common.
macro_rules! names {
    ($name:literal) => {
        (concat!("node_ebs_", $name), concat!("aws_ebs_csi_", $name))
    };
}

const FIGURES: [Figure; 11] = {
    use FamilyKind::{Counter, Gauge};
    use Number::{Time, Whole};
    [
        figure(names!("read_ops_total"), Counter, ("reads", "Reads completed."), |page| Whole(page.read.ops)),
        figure(names!("write_ops_total"), Counter, ("writes", "Writes completed."), |page| {
            Whole(page.write.ops)
        }),
        figure(names!("read_bytes_total"), Counter, ("bytes", "Bytes read."), |page| Whole(page.read.bytes)),
        figure(names!("write_bytes_total"), Counter, ("bytes", "Bytes written."), |page| {
            Whole(page.write.bytes)
        }),
        figure(names!("read_seconds_total"), Counter, ("seconds", "Time of all reads together."), |page| {
            Time(page.read.time)
        }),
        figure(names!("write_seconds_total"), Counter, ("seconds", "Time of all writes together."), |page| {
            Time(page.write.time)
        }),
        figure(
            names!("exceeded_iops_seconds_total"),
            Counter,
            ("seconds", "Time in which more IOPS were asked for than the volume gives."),
            |page| Time(page.volume_iops_exceeded),
        ),
        figure(
            names!("exceeded_tp_seconds_total"),
            Counter,
            ("seconds", "Time in which more throughput was asked for than the volume gives."),
            |page| Time(page.volume_throughput_exceeded),
        ),
        figure(
            names!("ec2_exceeded_iops_seconds_total"),
            Counter,
            ("seconds", "Time in which more IOPS were asked for than the instance gives."),
            |page| Time(page.instance_iops_exceeded),
        ),
        figure(
            names!("ec2_exceeded_tp_seconds_total"),
            Counter,
            ("seconds", "Time in which more throughput was asked for than the instance gives."),
            |page| Time(page.instance_throughput_exceeded),
        ),
        figure(
            names!("volume_queue_length"),
            Gauge,
            ("reads and writes", "Reads and writes that wait to complete."),
            |page| Whole(page.queue_length),
        ),
    ]
};

/// Latencies under their two names.
struct Latencies {
    node: Family,
    csi: Family,
    read: fn(&EbsPage) -> Distribution,
}

const fn latencies(
    (node, csi): (&'static str, &'static str),
    help: &'static str,
    read: fn(&EbsPage) -> Distribution,
) -> Latencies {
    let node = family(node, FamilyKind::Histogram, "seconds", NODE_LABELS, (help, PAGE));
    let csi = family(csi, FamilyKind::Histogram, "seconds", CSI_LABELS, (help, PAGE));
    Latencies { node, csi, read }
}

const LATENCIES: [Latencies; 2] = [
    latencies(
        names!("read_io_latency_seconds"),
        "Latencies of reads that completed without an error.",
        |page| Distribution { bins: page.read_latency, sum: page.read.time },
    ),
    latencies(
        names!("write_io_latency_seconds"),
        "Latencies of writes that completed without an error.",
        |page| Distribution { bins: page.write_latency, sum: page.write.time },
    ),
];

const READS: Family = family(
    "aws_ebs_csi_nvme_collector_scrapes_total",
    FamilyKind::Counter,
    "pages",
    &["instance_id"],
    ("Statistics pages that were asked for.", "this program"),
);
const FAILURES: Family = family(
    "aws_ebs_csi_nvme_collector_errors_total",
    FamilyKind::Counter,
    "pages",
    &["instance_id"],
    ("Statistics pages that were not had, or could not be read.", "this program"),
);

/// The families, in the order of the text.
pub(super) fn families() -> Vec<Family> {
    let figures = FIGURES.iter().flat_map(|figure| [figure.node, figure.csi]);
    let latencies = LATENCIES.iter().flat_map(|latencies| [latencies.node, latencies.csi]);
    figures.chain(latencies).chain([READS, FAILURES]).collect()
}

/// Adds the families of all volumes. A machine without any volume of EBS has none of them.
pub(super) fn add(text: &mut Exposition, reading: &HostReading, shared: &[Label<'_>]) {
    let instance = reading.instance_id.as_str();
    for Figure { node, csi, read } in &FIGURES {
        for volume in &reading.ebs {
            text.add(node, &with_shared(&node_labels(volume), shared), read(&volume.page));
        }
        for volume in &reading.ebs {
            text.add(csi, &with_shared(&csi_labels(volume, instance), shared), read(&volume.page));
        }
    }
    for Latencies { node, csi, read } in &LATENCIES {
        for volume in &reading.ebs {
            text.add_distribution(node, &with_shared(&node_labels(volume), shared), &read(&volume.page));
        }
        for volume in &reading.ebs {
            text.add_distribution(
                csi,
                &with_shared(&csi_labels(volume, instance), shared),
                &read(&volume.page),
            );
        }
    }
    if reading.ebs_reads.asked > 0 {
        let labels = with_shared(&[("instance_id", instance)], shared);
        text.add(&READS, &labels, Number::Whole(reading.ebs_reads.asked));
        text.add(&FAILURES, &labels, Number::Whole(reading.ebs_reads.failed));
    }
}

fn node_labels(volume: &EbsVolume) -> [Label<'_>; 3] {
    [
        ("volume_id", volume.volume_id.as_str()),
        ("device", volume.device.as_str()),
        ("mount_path", volume.mount_path.as_str()),
    ]
}

fn csi_labels<'a>(volume: &'a EbsVolume, instance: &'a str) -> [Label<'a>; 2] {
    [("volume_id", volume.volume_id.as_str()), ("instance_id", instance)]
}
