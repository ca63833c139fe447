//! What a record shows to be too little: no answer may give only so much again, whatever the model says of it.
//!
//! A load that a limit held back fits the limit, and credits that the model begins with had ended in the record.

use ebbtide_catalog::{InstanceType, Resolved};
use ebbtide_volume::RateLimit;

use super::carry::Limit;
use super::objective::Objective;
use super::recorded::{RecordedLatency, RecordedPast};

/// Today's volume and instance, with what the record says of them.
#[derive(Debug, Clone, Copy)]
pub struct TooLittle<'a> {
    /// The volume.
    pub volume: &'a Resolved,
    /// The instance; None where no other may be chosen.
    pub instance: Option<&'a InstanceType>,
    /// What the record says of them.
    pub past: &'a RecordedPast,
    /// How long the I/O took; None where the record does not have it.
    pub latency: Option<&'a RecordedLatency>,
}

/// A limit of all volumes of an array together: what it gives for ever, and at most.
fn rate_and_ceiling(volumes: &Resolved, limit: Limit) -> (u64, u64) {
    let own = &volumes.members[0];
    let limit = if limit == Limit::VolumeIops { own.iops } else { own.throughput };
    let members = u64::from(volumes.spec.members());
    limit.map_or((u64::MAX, u64::MAX), |limit| (limit.rate * members, limit.ceiling * members))
}

impl TooLittle<'_> {
    /// Whether the record shows that today's volume and instance do not meet the objective: they were throttled for longer than
    /// it allows, or I/O took longer.
    #[must_use]
    pub fn is_shown(&self, objective: &Objective) -> bool {
        self.was_throttled(objective) || self.was_slow(objective)
    }

    fn was_throttled(&self, objective: &Objective) -> bool {
        self.past.throttled > 1.0 - objective.carried + 1e-12
    }

    fn was_slow(&self, objective: &Objective) -> bool {
        objective.p99.zip(self.latency).is_some_and(|(most, latency)| latency.slower_than(most) > 0.01)
    }

    /// Whether an instance gives no more of a limit that the record shows to be too low.
    pub(super) fn rules_out_instance(&self, objective: &Objective, instance: &InstanceType) -> bool {
        let Some(today) = self.instance.filter(|_| self.was_throttled(objective)) else { return false };
        let (limits, today) = (&instance.limits, &today.limits);
        self.exceeded().any(|limit| match limit {
            Limit::InstanceIops => limits.iops.ceiling <= today.iops.ceiling,
            Limit::InstanceThroughput => limits.throughput.ceiling <= today.throughput.ceiling,
            _ => false,
        })
    }

    /// Whether volumes give no more of a limit that the record shows to be too low, or are no better than today's where I/O took
    /// too long.
    pub(super) fn rules_out(&self, objective: &Objective, volumes: &Resolved) -> bool {
        let limited =
            self.was_throttled(objective) && self.exceeded().any(|limit| self.no_more(volumes, limit));
        limited || (self.was_slow(objective) && self.no_better(volumes))
    }

    fn exceeded(&self) -> impl Iterator<Item = Limit> {
        Limit::ALL.into_iter().zip(self.past.by).filter(|(_, share)| *share > 0.0).map(|(limit, _)| limit)
    }

    fn no_more(&self, volumes: &Resolved, limit: Limit) -> bool {
        let rate = |limit| rate_and_ceiling(volumes, limit).0 <= rate_and_ceiling(self.volume, limit).0;
        match limit {
            Limit::VolumeIops | Limit::VolumeThroughput => {
                rate_and_ceiling(volumes, limit).1 <= rate_and_ceiling(self.volume, limit).1
            }
            Limit::VolumeCredits => {
                // More credits of the same rate end too, only later.
                let own = &self.volume.members[0];
                let ended = |limit: Option<RateLimit>| limit.is_some_and(|limit| limit.has_credits());
                (ended(own.iops) && rate(Limit::VolumeIops))
                    || (ended(own.throughput) && rate(Limit::VolumeThroughput))
            }
            Limit::InstanceIops | Limit::InstanceThroughput | Limit::InstanceCredits => false,
        }
    }

    /// Whether volumes are of today's type, and have less of something, or no more of anything.
    fn no_better(&self, volumes: &Resolved) -> bool {
        let figures = |volumes| {
            let [iops, throughput] =
                [Limit::VolumeIops, Limit::VolumeThroughput].map(|limit| rate_and_ceiling(volumes, limit));
            [iops.0, iops.1, throughput.0, throughput.1]
        };
        let (those, today) = (figures(volumes), figures(self.volume));
        let has_less = those.iter().zip(&today).any(|(those, today)| those < today);
        volumes.spec.volume.kind == self.volume.spec.volume.kind && (has_less || those == today)
    }
}
