//! What CloudWatch's metrics of an instance are made of.

use ebbtide_control::MinuteMetrics;
use ebbtide_history::Balances;

/// What an instance and all its volumes together did in one minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct InstanceMinute {
    /// The volumes' counters; zero without volumes.
    pub(super) volumes: MinuteMetrics,
    /// Whether I/O of one of the volumes was stalled.
    pub(super) is_stalled: bool,
    /// What a running instance had left; none where it did not run.
    pub(super) balances: Option<Balances>,
}
