//! EC2 instance types and their EBS limits.

use ebbtide_volume::{InstanceLimits, RateLimit};
use serde::Serialize;

use crate::data::{EbsOptimized, InstanceRow, InstanceRules, Slots, YesNo};
use crate::{DataError, InstanceDataError};

/// Bytes a second in one megabit a second.
const BYTES_PER_MBPS: u64 = 1_000_000 / 8;

/// Limits of a type without published ones: 500 times what the fastest instance of 2026 does (1.44 million IOPS,
/// 37.5 GB/s), so that nothing waits for them.
const UNLIMITED_IOPS: u64 = 1_000_000_000;
const UNLIMITED_BYTES_S: u64 = 20_000_000_000_000;

/// What is said of an instance type without published limits, behind its name.
pub const NO_LIMITS: &str =
    "not EBS-optimized, AWS publishes no EBS limits of it: no limit of the instance is modelled";

/// An EC2 instance type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstanceType {
    /// `r5.large`.
    pub name: String,
    /// Number of virtual CPUs.
    pub vcpus: u32,
    /// Memory in GiB (i3.large has 15.25).
    pub memory_gib: f64,
    /// Of its processors, as AWS names it: `x86_64` or `arm64`; of a Mac with `_mac` behind it.
    #[serde(skip)]
    pub architecture: String,
    /// Who makes its processors: `Intel`, `AMD`, `AWS` or `Apple`; empty where an override does not say it.
    #[serde(skip)]
    pub manufacturer: String,
    /// Whether it has bandwidth for EBS of its own.
    #[serde(skip)]
    pub ebs_optimized: EbsOptimized,
    /// Whether AWS counts it to the current generation.
    #[serde(skip)]
    pub current: bool,
    /// EBS bandwidth that holds for ever, in Mb/s; zero where AWS publishes none: see [`Self::has_limits`].
    pub baseline_mbps: u64,
    /// EBS bandwidth for 30 minutes a day, in Mb/s; equal to the baseline where it holds for ever.
    pub maximum_mbps: u64,
    /// Operations a second of 16 KiB that hold for ever; zero where AWS publishes none.
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
    /// The limits, for [`ebbtide_volume::Instance`]. Without published ones they are beyond every volume's.
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

    /// Whether AWS publishes EBS limits of it. A type that is not EBS-optimized has none: its volumes share the network.
    #[must_use]
    pub const fn has_limits(&self) -> bool {
        self.baseline_mbps > 0
    }

    /// Whether its EBS limits hold without being asked for: what a recommendation may name.
    #[must_use]
    pub fn is_ebs_optimized(&self) -> bool {
        self.has_limits() && self.ebs_optimized == EbsOptimized::Default
    }

    /// Whether it has Arm processors: programs and systems of the other kind do not run on it.
    #[must_use]
    pub fn is_arm(&self) -> bool {
        self.architecture.starts_with("arm64")
    }

    /// Whether its processors are of the same maker and kind: so many of them do about as much.
    #[must_use]
    pub fn has_processors_of(&self, other: &Self) -> bool {
        self.is_arm() == other.is_arm() && self.manufacturer == other.manufacturer
    }

    pub(crate) fn from_row(
        row: &InstanceRow,
        rules: &InstanceRules,
        provenance: crate::Provenance,
    ) -> Result<Self, DataError> {
        if let Some(cause) = contradiction(row) {
            return Err(DataError::Instance { name: row.name.clone(), cause });
        }
        let rate = |rate: u64, ceiling: u64, unlimited: u64| match rate {
            0 => RateLimit::flat(unlimited),
            _ => RateLimit { rate, ceiling, allowance: 0, credits: (ceiling - rate) * rules.burst_s },
        };
        let (baseline, maximum) = (row.baseline_mbps * BYTES_PER_MBPS, row.maximum_mbps * BYTES_PER_MBPS);
        Ok(Self {
            name: row.name.clone(),
            vcpus: row.vcpus,
            memory_gib: row.memory_gib,
            architecture: row.architecture.clone(),
            manufacturer: row.manufacturer.clone(),
            ebs_optimized: row.ebs_optimized,
            current: row.current == YesNo::Yes,
            baseline_mbps: row.baseline_mbps,
            maximum_mbps: row.maximum_mbps,
            baseline_iops: row.baseline_iops,
            maximum_iops: row.maximum_iops,
            ebs_slots: row.ebs_slots,
            slots_shared: row.slots == Slots::Shared,
            store_disks: row.store_disks,
            store_disk_gb: row.store_disk_gb,
            limits: InstanceLimits {
                iops: rate(row.baseline_iops, row.maximum_iops, UNLIMITED_IOPS),
                throughput: rate(baseline, maximum, UNLIMITED_BYTES_S),
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
    let is_zero =
        [row.baseline_mbps, row.maximum_mbps, row.baseline_iops, row.maximum_iops].map(|figure| figure == 0);
    if row.ebs_optimized == EbsOptimized::Unsupported && is_zero == [true; 4] {
        return None;
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
