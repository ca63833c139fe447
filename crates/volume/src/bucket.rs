//! Token buckets: exact, in integers, and without a clock.

use crate::{LimitsError, Nanos};

/// A rate with, optionally, credits that allow a higher one for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RateLimit {
    /// Units a second that hold for ever. Operations or bytes, as the limit's owner says.
    pub rate: u64,
    /// Units a second while credits remain; equal to `rate` where there are no credits.
    pub ceiling: u64,
    /// Units that an idle limit has saved up and gives at once, beyond the rate (gp3 was measured
    /// to give about one second's worth).
    pub allowance: u64,
    /// Credit capacity in units, earned at `rate` and starting full; zero: no credits.
    pub credits: u64,
}

impl RateLimit {
    /// A plain rate, without allowance or credits.
    #[must_use]
    pub const fn flat(rate: u64) -> Self {
        Self { rate, ceiling: rate, allowance: 0, credits: 0 }
    }

    /// Checks the rate against itself.
    ///
    /// # Errors
    /// A zero rate, or a ceiling below the rate.
    pub const fn check(&self) -> Result<(), LimitsError> {
        match (self.rate, self.ceiling) {
            (0, _) => Err(LimitsError::ZeroRate),
            (rate, ceiling) if ceiling < rate => Err(LimitsError::CeilingBelowRate),
            _ => Ok(()),
        }
    }
}

/// Tokens in billionths of a unit, so that a nanosecond of any whole rate is a whole number.
type NanoUnits = i128;
const NANO: NanoUnits = 1_000_000_000;

/// One token bucket. The level may be negative: that is the backlog which later I/O waits behind.
#[derive(Debug, Clone)]
struct Bucket {
    rate: u64,
    capacity: NanoUnits,
    level: NanoUnits,
    at: Nanos,
}

impl Bucket {
    fn full(rate: u64, capacity_units: u64) -> Self {
        let capacity = NanoUnits::from(capacity_units) * NANO;
        Self { rate, capacity, level: capacity, at: Nanos::ZERO }
    }

    fn level_at(&self, now: Nanos) -> NanoUnits {
        let earned = NanoUnits::from(self.rate) * NanoUnits::from(now.since(self.at).0);
        (self.level + earned).min(self.capacity)
    }

    fn advance(&mut self, now: Nanos) {
        self.level = self.level_at(now);
        self.at = self.at.max(now);
    }

    /// Takes `units` and says from when on they are covered: `now`, or later by the backlog.
    fn take(&mut self, units: u64, now: Nanos) -> Nanos {
        self.advance(now);
        self.level -= NanoUnits::from(units) * NANO;
        self.covered_at(now)
    }

    fn covered_at(&self, now: Nanos) -> Nanos {
        let debt = (-self.level).max(0);
        let wait = (debt + NanoUnits::from(self.rate) - 1) / NanoUnits::from(self.rate);
        now + Nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    fn set_rate(&mut self, rate: u64, capacity_units: u64, now: Nanos) {
        self.advance(now);
        self.rate = rate;
        self.capacity = NanoUnits::from(capacity_units) * NANO;
        self.level = self.level.min(self.capacity);
    }
}

/// A [`RateLimit`] in force: the ceiling, and the credits behind it where there are any.
///
/// With credits this is a plain token bucket: it earns `rate` a second at all times and pays one
/// unit for one unit, so a burst at `ceiling` drains `ceiling - rate` a second. That gives AWS's
/// own formula for the length of a burst, `credits / (ceiling - rate)`.
#[derive(Debug, Clone)]
pub struct BurstBucket {
    limit: RateLimit,
    ceiling: Bucket,
    credits: Option<Bucket>,
}

impl BurstBucket {
    /// A bucket that starts with its allowance and its credits full.
    #[must_use]
    pub fn new(limit: RateLimit) -> Self {
        let credits = (limit.credits > 0 && limit.ceiling > limit.rate)
            .then(|| Bucket::full(limit.rate, limit.credits));
        Self { limit, ceiling: Bucket::full(limit.ceiling, limit.allowance), credits }
    }

    /// The limit in force.
    #[must_use]
    pub const fn limit(&self) -> &RateLimit {
        &self.limit
    }

    /// Takes `units` and says from when on the limit covers them (`now` when it does at once).
    pub fn take(&mut self, units: u64, now: Nanos) -> Nanos {
        let slot = self.ceiling.take(units, now);
        match &mut self.credits {
            Some(credits) => slot.max(credits.take(units, now)),
            None => slot,
        }
    }

    /// Share of the credits that is left, 0 to 1; none where the limit has no credits.
    #[must_use]
    pub fn credit_share(&self, now: Nanos) -> Option<f64> {
        let credits = self.credits.as_ref()?;
        Some(credits.level_at(now).max(0) as f64 / credits.capacity as f64)
    }

    /// Sets the credits to a share (clamped to 0..=1) of their capacity. No effect without credits.
    pub fn set_credit_share(&mut self, share: f64, now: Nanos) {
        if let Some(credits) = &mut self.credits {
            credits.advance(now);
            #[expect(clippy::cast_possible_truncation, reason = "a share of a capacity below 2^94")]
            let level = (credits.capacity as f64 * share.clamp(0.0, 1.0)) as NanoUnits;
            credits.level = level;
        }
    }

    /// Replaces the limit at `now`. Credits keep their number where both limits have them, cut to
    /// the new capacity, and start full where only the new one does; a backlog is kept.
    pub fn change(&mut self, limit: RateLimit, now: Nanos) {
        self.ceiling.set_rate(limit.ceiling, limit.allowance, now);
        let has_credits = limit.credits > 0 && limit.ceiling > limit.rate;
        self.credits = match (self.credits.take(), has_credits) {
            (_, false) => None,
            (Some(mut credits), true) => {
                credits.set_rate(limit.rate, limit.credits, now);
                Some(credits)
            }
            (None, true) => {
                let mut credits = Bucket::full(limit.rate, limit.credits);
                credits.at = now;
                Some(credits)
            }
        };
        self.limit = limit;
    }
}
