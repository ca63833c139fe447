//! The metrics of `AWS/EBS` and `AWS/EC2`: names, units, dimensions, and the types of volumes that have them (EBS user guide,
//! `using_cloudwatch_ebs`; EC2 user guide, `viewing_metrics_with_cloudwatch`).

use ebbtide_control::MinuteMetrics;

use super::instance_minute::InstanceMinute;
use super::inventory::SHARED;

/// The namespaces, with their metrics in alphabetical order.
pub(super) static NAMESPACES: [(&str, &[Metric]); 2] = [("AWS/EBS", &EBS), ("AWS/EC2", &EC2)];

/// The dimensions with which a metric is published. A query must name exactly these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Volume,
    VolumeAndInstance,
    Instance,
    SnapshotAndZone,
    SourceRegion,
}

impl By {
    /// The names of the dimensions, in their order.
    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Volume => &["VolumeId"],
            Self::VolumeAndInstance => &["InstanceId", "VolumeId"],
            Self::Instance => &["InstanceId"],
            Self::SourceRegion => &["sourceRegion"],
            Self::SnapshotAndZone => &["AvailabilityZone", "SnapshotId"],
        }
    }
}

/// Where the value of a minute comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// The counters of a volume.
    Counters(fn(&MinuteMetrics) -> Option<f64>),
    /// The minutes in which an instance ran, with those of its volumes.
    Instance(fn(&InstanceMinute) -> Option<f64>),
    /// It is stored as it is.
    Gauge,
}

/// The volumes, or instances, that publish a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// All.
    All,
    /// Those with burst credits: gp2, st1, sc1.
    Burst,
    /// io1 and io2.
    Provisioned,
    /// All but `standard`.
    Checked,
    /// Instances with burst credits of operations.
    IoCredits,
    /// Instances with burst credits of bytes.
    ByteCredits,
}

impl Family {
    /// Under which mark the history finds it; none: each minute has it.
    pub(super) const fn mark(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Burst | Self::IoCredits => Some("burst"),
            Self::Provisioned | Self::ByteCredits => Some("provisioned"),
            Self::Checked => Some("checked"),
        }
    }

    /// Whether it has volumes of a type.
    pub(super) fn has(self, kind: &str) -> bool {
        let kind = kind.split('/').next().unwrap_or(kind);
        match self {
            Self::All => true,
            Self::Burst => matches!(kind, "gp2" | "st1" | "sc1"),
            Self::Provisioned => matches!(kind, "io1" | "io2"),
            Self::Checked => kind != "standard",
            Self::IoCredits | Self::ByteCredits => false,
        }
    }
}

/// A metric.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) by: By,
    pub(super) family: Family,
    pub(super) source: Source,
}

const fn metric(
    name: &'static str,
    unit: &'static str,
    by: By,
    family: Family,
    value: fn(&MinuteMetrics) -> Option<f64>,
) -> Metric {
    Metric { name, unit, by, family, source: Source::Counters(value) }
}

/// A metric of an instance.
const fn instance(
    name: &'static str,
    unit: &'static str,
    family: Family,
    value: fn(&InstanceMinute) -> Option<f64>,
) -> Metric {
    Metric { name, unit, by: By::Instance, family, source: Source::Instance(value) }
}

/// A metric that is neither of a volume nor of an instance.
const fn gauge(name: &'static str, unit: &'static str, by: By) -> Metric {
    Metric { name, unit, by, family: Family::All, source: Source::Gauge }
}

impl Metric {
    /// Whether a volume of a type publishes it.
    pub(super) fn is_of(&self, kind: &str) -> bool {
        self.family.has(kind) && (self.is_shared() || !kind.ends_with(SHARED))
    }

    /// Whether volumes with Multi-Attach publish it: AWS documents which do not, and has no view by instance.
    pub(super) fn is_shared(&self) -> bool {
        let alone =
            ["VolumeIdleTime", "VolumeThroughputPercentage", "VolumeTotalReadTime", "VolumeTotalWriteTime"];
        self.by == By::Volume && !alone.contains(&self.name)
    }
}

/// Those of `AWS/EBS`, in alphabetical order.
static EBS: [Metric; 21] = {
    use By::{Volume, VolumeAndInstance as Both};
    use Family::{All, Burst, Checked, Provisioned};
    [
        metric("BurstBalance", "Percent", Volume, Burst, |m| m.burst_balance),
        gauge("FastSnapshotRestoreCreditsBalance", "None", By::SnapshotAndZone),
        gauge("FastSnapshotRestoreCreditsBucketSize", "None", By::SnapshotAndZone),
        gauge("SnapshotCopyBytesTransferred", "Bytes", By::SourceRegion),
        metric("VolumeAvgIOPS", "Count/Second", Both, All, |m| Some(m.volume_avg_iops)),
        metric("VolumeAvgReadLatency", "Milliseconds", Both, All, |m| Some(m.volume_avg_read_latency)),
        metric("VolumeAvgThroughput", "Kilobytes/Second", Both, All, |m| Some(m.volume_avg_throughput)),
        metric("VolumeAvgWriteLatency", "Milliseconds", Both, All, |m| Some(m.volume_avg_write_latency)),
        metric("VolumeConsumedReadWriteOps", "Count", Volume, Provisioned, |m| {
            Some(m.volume_consumed_read_write_ops as f64)
        }),
        metric("VolumeIOPSExceededCheck", "None", Both, Checked, |m| {
            Some(f64::from(m.volume_iops_exceeded_check))
        }),
        metric("VolumeIdleTime", "Seconds", Volume, All, |m| Some(m.volume_idle_time)),
        metric("VolumeQueueLength", "Count", Volume, All, |m| Some(m.volume_queue_length)),
        metric("VolumeReadBytes", "Bytes", Volume, All, |m| Some(m.volume_read_bytes as f64)),
        metric("VolumeReadOps", "Count", Volume, All, |m| Some(m.volume_read_ops as f64)),
        metric("VolumeStalledIOCheck", "None", Both, All, |m| Some(f64::from(m.volume_stalled_io_check))),
        metric("VolumeThroughputExceededCheck", "None", Both, Checked, |m| {
            Some(f64::from(m.volume_throughput_exceeded_check))
        }),
        metric("VolumeThroughputPercentage", "Percent", Volume, Provisioned, |m| {
            m.volume_throughput_percentage
        }),
        metric("VolumeTotalReadTime", "Seconds", Volume, All, |m| Some(m.volume_total_read_time)),
        metric("VolumeTotalWriteTime", "Seconds", Volume, All, |m| Some(m.volume_total_write_time)),
        metric("VolumeWriteBytes", "Bytes", Volume, All, |m| Some(m.volume_write_bytes as f64)),
        metric("VolumeWriteOps", "Count", Volume, All, |m| Some(m.volume_write_ops as f64)),
    ]
};

/// Those of `AWS/EC2`, in alphabetical order. Nothing fails the checks of an instance itself: it is this host.
static EC2: [Metric; 12] = {
    use Family::{All, ByteCredits, IoCredits};
    const fn failed(is_failed: bool) -> f64 {
        if is_failed { 1.0 } else { 0.0 }
    }
    [
        instance("EBSByteBalance%", "Percent", ByteCredits, |m| Some(m.balances?.bytes? * 100.0)),
        instance("EBSIOBalance%", "Percent", IoCredits, |m| Some(m.balances?.io? * 100.0)),
        instance("EBSReadBytes", "Bytes", All, |m| Some(m.volumes.volume_read_bytes as f64)),
        instance("EBSReadOps", "Count", All, |m| Some(m.volumes.volume_read_ops as f64)),
        instance("EBSWriteBytes", "Bytes", All, |m| Some(m.volumes.volume_write_bytes as f64)),
        instance("EBSWriteOps", "Count", All, |m| Some(m.volumes.volume_write_ops as f64)),
        instance("InstanceEBSIOPSExceededCheck", "None", All, |m| {
            Some(f64::from(m.volumes.instance_ebs_iops_exceeded_check))
        }),
        instance("InstanceEBSThroughputExceededCheck", "None", All, |m| {
            Some(f64::from(m.volumes.instance_ebs_throughput_exceeded_check))
        }),
        instance("StatusCheckFailed", "Count", All, |m| Some(failed(m.is_stalled))),
        instance("StatusCheckFailed_AttachedEBS", "Count", All, |m| Some(failed(m.is_stalled))),
        instance("StatusCheckFailed_Instance", "Count", All, |_| Some(failed(false))),
        instance("StatusCheckFailed_System", "Count", All, |_| Some(failed(false))),
    ]
};

/// The metric of a namespace with a name.
pub(super) fn named(namespace: &str, name: &str) -> Option<&'static Metric> {
    let (_, metrics) = NAMESPACES.iter().find(|(known, _)| *known == namespace)?;
    metrics.binary_search_by_key(&name, |metric| metric.name).ok().map(|at| &metrics[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_in_the_order_in_which_they_are_looked_for() {
        for (_, metrics) in NAMESPACES {
            assert!(metrics.is_sorted_by_key(|metric| metric.name));
        }
    }
}
