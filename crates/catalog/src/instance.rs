//! EC2 instance types and their EBS limits.

use ebbtide_volume::InstanceLimits;
use serde::Serialize;

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
}

impl InstanceType {
    /// Whether the maximum holds for only 30 minutes a day.
    #[must_use]
    pub const fn bursts(&self) -> bool {
        self.maximum_mbps > self.baseline_mbps || self.maximum_iops > self.baseline_iops
    }
}
