//! EC2 instance types and their EBS limits.

use ebbtide_volume::{InstanceLimits, RateLimit};
use serde::Serialize;

use crate::data::{InstanceRow, InstanceRules, Slots, YesNo};
use crate::{DataError, InstanceDataError};

/// Bytes a second in one megabit a second.
const BYTES_PER_MBPS: u64 = 1_000_000 / 8;

/// An EC2 instance type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstanceType {
    /// `r5.large`.
    pub name: String,
    /// Number of virtual CPUs.
    pub vcpus: u32,
    /// Memory in GiB (i3.large has 15.25).
    pub memory_gib: f64,
    /// EBS bandwidth that holds for ever, in Mb/s.
    pub baseline_mbps: u64,
    /// EBS bandwidth for 30 minutes a day, in Mb/s; equal to the baseline where it holds for ever.
    pub maximum_mbps: u64,
    /// Operations a second of 16 KiB that hold for ever.
    pub baseline_iops: u64,
    /// Operations a second for 30 minutes a day.
    pub maximum_iops: u64,
    /// EBS volumes that can be attached with one network interface.
    pub ebs_slots: u32,
    /// Whether network interfaces and instance-store disks take the same slots.
    pub slots_shared: bool,
    /// Instance-store disks.
    pub store_disks: u32,
    /// Size of each instance-store disk in GB (10^9 bytes).
    pub store_disk_gb: u64,
    /// The limits, for [`ebbtide_volume::Instance`].
    pub limits: InstanceLimits,
    /// Where the figures come from.
    pub provenance: crate::Provenance,
}

impl InstanceType {
    /// Whether the maximum holds for only 30 minutes a day.
    #[must_use]
    pub const fn bursts(&self) -> bool {
        self.maximum_mbps > self.baseline_mbps || self.maximum_iops > self.baseline_iops
    }

    pub(crate) fn from_row(
        row: &InstanceRow,
        rules: &InstanceRules,
        provenance: crate::Provenance,
    ) -> Result<Self, DataError> {
        if let Some(cause) = contradiction(row) {
            return Err(DataError::Instance { name: row.name.clone(), cause });
        }
        let rate = |rate: u64, ceiling: u64| RateLimit {
            rate,
            ceiling,
            allowance: 0,
            credits: (ceiling - rate) * rules.burst_s,
        };
        Ok(Self {
            name: row.name.clone(),
            vcpus: row.vcpus,
            memory_gib: row.memory_gib,
            baseline_mbps: row.baseline_mbps,
            maximum_mbps: row.maximum_mbps,
            baseline_iops: row.baseline_iops,
            maximum_iops: row.maximum_iops,
            ebs_slots: row.ebs_slots,
            slots_shared: row.slots == Slots::Shared,
            store_disks: row.store_disks,
            store_disk_gb: row.store_disk_gb,
            limits: InstanceLimits {
                iops: rate(row.baseline_iops, row.maximum_iops),
                throughput: rate(row.baseline_mbps * BYTES_PER_MBPS, row.maximum_mbps * BYTES_PER_MBPS),
            },
            provenance,
        })
    }
}

/// What is wrong with a row, where anything is.
fn contradiction(row: &InstanceRow) -> Option<InstanceDataError> {
    if row.vcpus == 0 || row.memory_gib <= 0.0 || row.ebs_slots == 0 {
        return Some(InstanceDataError::Nothing);
    }
    if row.baseline_mbps == 0 || row.baseline_iops == 0 {
        return Some(InstanceDataError::ZeroBaseline);
    }
    if row.baseline_mbps > row.maximum_mbps || row.baseline_iops > row.maximum_iops {
        return Some(InstanceDataError::BaselineAboveMaximum);
    }
    let bursts = row.baseline_mbps < row.maximum_mbps || row.baseline_iops < row.maximum_iops;
    if bursts != (row.bursts == YesNo::Yes) {
        return Some(InstanceDataError::Bursts);
    }
    // AWS rounds either figure on its own; they agree to 0.2 % in all rows.
    let agree = |mbps: u64, mb_s: f64| (mbps as f64 / 8.0 - mb_s).abs() <= mb_s * 0.002 + 0.01;
    if !agree(row.baseline_mbps, row.baseline_mb_s) || !agree(row.maximum_mbps, row.maximum_mb_s) {
        return Some(InstanceDataError::Bandwidth);
    }
    if (row.store_disks == 0) != (row.store_disk_gb == 0) {
        return Some(InstanceDataError::Disks);
    }
    None
}
