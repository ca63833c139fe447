//! An EC2 instance's own EBS limits, shared by all volumes attached to it.

use crate::{BurstBucket, FlowWait, LimitsError, Nanos, RateLimit};

/// IOPS and bandwidth of an instance, each with its baseline and burst.
///
/// Sizes whose maximum exceeds their baseline hold the maximum for 30 minutes at least once in 24
/// hours (EC2 user guide, `ebs-optimized`): credits of `(maximum - baseline) * 1800 s`, earned at
/// the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InstanceLimits {
    /// Operations a second over all volumes.
    pub iops: RateLimit,
    /// Bytes a second over all volumes.
    pub throughput: RateLimit,
}

impl InstanceLimits {
    /// Checks both limits.
    ///
    /// # Errors
    /// See [`RateLimit::check`].
    pub const fn check(&self) -> Result<(), LimitsError> {
        match self.iops.check() {
            Ok(()) => self.throughput.check(),
            error => error,
        }
    }
}

/// The state of an instance's limits. Every volume attached to it passes it to its submissions.
#[derive(Debug, Clone)]
pub struct Instance {
    iops: BurstBucket,
    throughput: BurstBucket,
}

impl Instance {
    /// An instance that starts with full burst credits.
    #[must_use]
    pub fn new(limits: InstanceLimits) -> Self {
        Self { iops: BurstBucket::new(limits.iops), throughput: BurstBucket::new(limits.throughput) }
    }

    /// The limits in force.
    #[must_use]
    pub const fn limits(&self) -> InstanceLimits {
        InstanceLimits { iops: *self.iops.limit(), throughput: *self.throughput.limit() }
    }

    /// Share of the I/O credits left, 0 to 1 (CloudWatch `EBSIOBalance%`); none where the size
    /// sustains its maximum.
    #[must_use]
    pub fn io_balance(&self, now: Nanos) -> Option<f64> {
        self.iops.credit_share(now)
    }

    /// Share of the byte credits left, 0 to 1 (CloudWatch `EBSByteBalance%`).
    #[must_use]
    pub fn byte_balance(&self, now: Nanos) -> Option<f64> {
        self.throughput.credit_share(now)
    }

    /// Sets both credit balances to a share (0 to 1) of their capacity.
    pub fn set_balance(&mut self, share: f64, now: Nanos) {
        self.iops.set_credit_share(share, now);
        self.throughput.set_credit_share(share, now);
    }

    /// Takes what arrives evenly over a span: the waits for the IOPS and for the throughput. See [`BurstBucket::flow`].
    pub fn flow(&mut self, operations: u64, bytes: u64, from: Nanos, to: Nanos) -> (FlowWait, FlowWait) {
        (self.iops.flow(operations, from, to), self.throughput.flow(bytes, from, to))
    }

    /// The limits of IOPS and of throughput.
    pub(crate) const fn buckets(&mut self) -> (&mut BurstBucket, &mut BurstBucket) {
        (&mut self.iops, &mut self.throughput)
    }
}
