//! Elastic Volumes: a modification in progress.

use crate::{Limits, Nanos, RateLimit};

/// The state of a modification (EC2 `VolumeModificationState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModificationPhase {
    /// Being prepared; nothing has changed yet.
    Modifying,
    /// The size has changed; the performance moves from the source's to the target's.
    Optimizing {
        /// 0 to 99.
        percent: u8,
    },
    /// Done.
    Completed,
}

/// A modification of a volume: what it was, what it becomes, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Modification {
    /// The limits before.
    pub source: Limits,
    /// The limits after.
    pub target: Limits,
    /// When `modifying` began.
    pub started: Nanos,
    /// When `optimizing` begins and the new size is there.
    pub optimizing: Nanos,
    /// When it is completed.
    pub completes: Nanos,
}

impl Modification {
    /// The phase at `now`.
    #[must_use]
    pub fn phase(&self, now: Nanos) -> ModificationPhase {
        if now < self.optimizing {
            return ModificationPhase::Modifying;
        }
        let span = self.completes.since(self.optimizing).0;
        let done = now.since(self.optimizing).0;
        match u8::try_from(u128::from(done) * 100 / u128::from(span.max(1))) {
            Ok(percent @ 0..100) if span > 0 => ModificationPhase::Optimizing { percent },
            _ => ModificationPhase::Completed,
        }
    }

    /// The limits in force at a phase.
    ///
    /// While optimizing, a volume performs between its source and its target, and never below the
    /// lower of the two (EBS user guide, `monitoring-volume-modifications`); here each rate moves
    /// with the progress.
    #[must_use]
    pub fn limits(&self, phase: ModificationPhase) -> Limits {
        let percent = match phase {
            ModificationPhase::Modifying => return self.source.clone(),
            ModificationPhase::Optimizing { percent } => u64::from(percent),
            ModificationPhase::Completed => return self.target.clone(),
        };
        Limits {
            iops: between(self.source.iops, self.target.iops, percent),
            throughput: between(self.source.throughput, self.target.throughput, percent),
            ..self.target.clone()
        }
    }
}

/// A limit on the way from one to another. An unlimited end has no rate to move from or to, so
/// the limited end holds until the modification completes.
fn between(source: Option<RateLimit>, target: Option<RateLimit>, percent: u64) -> Option<RateLimit> {
    let (Some(source), Some(target)) = (source, target) else {
        return source.or(target);
    };
    let mix = |from: u64, to: u64| {
        let mixed =
            (u128::from(from) * u128::from(100 - percent) + u128::from(to) * u128::from(percent)) / 100;
        u64::try_from(mixed).unwrap_or(u64::MAX)
    };
    Some(RateLimit {
        rate: mix(source.rate, target.rate),
        ceiling: mix(source.ceiling, target.ceiling),
        allowance: mix(source.allowance, target.allowance),
        credits: target.credits,
    })
}
