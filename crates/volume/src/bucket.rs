//! Token buckets: exact, in integers, and without a clock.

use crate::{LimitsError, Nanos};

/// A rate with, optionally, credits that allow a higher one for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RateLimit {
    /// Units a second that hold for ever. Operations or bytes, as the limit's owner defines.
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

    /// Whether credits change anything: there are some, and a ceiling to spend them on.
    #[must_use]
    pub const fn has_credits(&self) -> bool {
        self.credits > 0 && self.ceiling > self.rate
    }

    /// Seconds in which a share of the credits (0 to 1) is spent by an even load, units a second; what is over the ceiling waits
    /// and spends nothing. None where the load does not spend them.
    #[must_use]
    pub fn credits_end_s(&self, share: f64, load: f64) -> Option<f64> {
        let over = load.min(self.ceiling as f64) - self.rate as f64;
        (self.has_credits() && over > 0.0).then(|| share * self.credits as f64 / over)
    }

    /// Seconds in which the credits are full again from a share (0 to 1) on, without any load. None where there are none.
    #[must_use]
    pub fn credits_full_s(&self, share: f64) -> Option<f64> {
        self.has_credits().then(|| (1.0 - share) * self.credits as f64 / self.rate as f64)
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

/// One token bucket, kept as the time at which its level was, or will be, zero.
///
/// The level in units is `(now - empty_at) * rate`, at most the capacity; a time in the future is a
/// backlog that later I/O waits behind. Fractions of a nanosecond are carried exactly, so no rounding
/// adds up over a run.
#[derive(Debug, Clone)]
struct Bucket {
    rate: u64,
    /// Time that an empty bucket takes to fill, in nanoseconds.
    fill_ns: i64,
    empty_at: i64,
    /// Numerator over `rate` of the nanosecond that `empty_at` leaves out.
    fraction: u64,
    /// The last cost and what it is in nanoseconds and `rate`-ths of one: most I/Os cost the same.
    cost: Cost,
}

#[derive(Debug, Clone, Copy)]
struct Cost {
    units: u64,
    ns: i64,
    fraction: u64,
}

impl Cost {
    fn of(units: u64, rate: u64) -> Self {
        let scaled = u128::from(units) * u128::from(NS_PER_SECOND);
        let ns = i64::try_from(scaled / u128::from(rate)).unwrap_or(i64::MAX / 2);
        let fraction = u64::try_from(scaled % u128::from(rate)).expect("a remainder is below its divisor");
        Self { units, ns, fraction }
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;

impl Bucket {
    fn full(rate: u64, capacity_units: u64, now: Nanos) -> Self {
        let fill_ns = Cost::of(capacity_units, rate).ns;
        let empty_at = now.0.cast_signed() - fill_ns;
        Self { rate, fill_ns, empty_at, fraction: 0, cost: Cost::of(1, rate) }
    }

    /// Takes `units` and returns from when on they are covered: `now`, or later by the backlog of what was taken
    /// before. What they cost themselves is the backlog of those that come after them.
    #[inline]
    fn take(&mut self, units: u64, now: Nanos) -> Nanos {
        self.spill(now);
        let covered = self.empty_at + i64::from(self.fraction > 0);
        if units != self.cost.units {
            self.cost = Cost::of(units, self.rate);
        }
        self.empty_at += self.cost.ns;
        self.fraction += self.cost.fraction;
        if self.fraction >= self.rate {
            self.fraction -= self.rate;
            self.empty_at += 1;
        }
        now.max(Nanos(covered.max(0).cast_unsigned()))
    }

    /// Takes `units` that arrive evenly from `from` to `to`: the limit of many small takings. Answers with the levels at
    /// both ends, the second before anything is lost at the capacity; between them the level changes evenly.
    fn flow(&mut self, units: u64, from: Nanos, to: Nanos) -> (i64, i64) {
        self.spill(from);
        let at_start = from.0.cast_signed() - self.empty_at;
        let cost = if units == self.cost.units { self.cost } else { Cost::of(units, self.rate) };
        self.cost = cost;
        self.empty_at += cost.ns;
        self.fraction += cost.fraction;
        if self.fraction >= self.rate {
            self.fraction -= self.rate;
            self.empty_at += 1;
        }
        let at_end = to.0.cast_signed() - self.empty_at;
        self.spill(to);
        (at_start, at_end)
    }

    /// What is earned beyond the capacity is lost.
    #[inline]
    fn spill(&mut self, now: Nanos) {
        let full = now.0.cast_signed() - self.fill_ns;
        if self.empty_at < full {
            self.empty_at = full;
            self.fraction = 0;
        }
    }

    /// The level as the time that it takes to earn it; negative for a backlog.
    fn level_ns(&self, now: Nanos) -> i64 {
        now.0.cast_signed().saturating_sub(self.empty_at).min(self.fill_ns)
    }

    fn share(&self, now: Nanos) -> f64 {
        self.level_ns(now).max(0) as f64 / self.fill_ns as f64
    }

    fn set_share(&mut self, share: f64, now: Nanos) {
        #[expect(clippy::cast_possible_truncation, reason = "a share of a time that fits")]
        let level = (self.fill_ns as f64 * share.clamp(0.0, 1.0)) as i64;
        self.empty_at = now.0.cast_signed() - level;
        self.fraction = 0;
    }

    /// Changes rate and capacity, and keeps the number of units.
    fn change(&mut self, rate: u64, capacity_units: u64, now: Nanos) {
        let units_scaled = i128::from(self.level_ns(now)) * i128::from(self.rate);
        let level = i64::try_from(units_scaled / i128::from(rate)).unwrap_or(i64::MAX / 2);
        *self = Self::full(rate, capacity_units, now);
        self.empty_at = now.0.cast_signed() - level.min(self.fill_ns);
    }
}

/// How long an I/O waits that arrives at the start of a span, and at its end, ns. It changes evenly between; below zero
/// there is no wait, and so much to spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitLine {
    /// At the start of the span.
    pub at_start: i64,
    /// At its end.
    pub at_end: i64,
}

impl WaitLine {
    /// The longest wait of the span; zero without one.
    #[must_use]
    pub const fn longest(self) -> Nanos {
        let most = if self.at_start > self.at_end { self.at_start } else { self.at_end };
        Nanos(if most > 0 { most.cast_unsigned() } else { 0 })
    }
}

/// How an even load of a span waits for a limit: for the ceiling and for the credits, whichever is longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowWait {
    /// For the ceiling.
    pub ceiling: WaitLine,
    /// For the credits; none where the limit has none.
    pub credits: Option<WaitLine>,
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
    /// A bucket whose allowance and credits are full, whenever its use begins.
    #[must_use]
    pub fn new(limit: RateLimit) -> Self {
        let full = |rate, units| Bucket::full(rate, units, Nanos::ZERO);
        let credits = limit.has_credits().then(|| full(limit.rate, limit.credits));
        Self { limit, ceiling: full(limit.ceiling, limit.allowance), credits }
    }

    /// The limit in force.
    #[must_use]
    pub const fn limit(&self) -> &RateLimit {
        &self.limit
    }

    /// Takes `units` and returns from when on the limit covers them: `now`, or when all that was taken before has been
    /// earned. Below the limit nothing waits, however large it is; what comes after a large one does.
    #[inline]
    pub fn take(&mut self, units: u64, now: Nanos) -> Nanos {
        let slot = self.ceiling.take(units, now);
        match &mut self.credits {
            Some(credits) => slot.max(credits.take(units, now)),
            None => slot,
        }
    }

    /// Takes `units` that arrive evenly over a span, as a mean over an interval has them: what many small takings at even
    /// distances come to. Spans must follow each other in time.
    pub fn flow(&mut self, units: u64, from: Nanos, to: Nanos) -> FlowWait {
        let line = |(at_start, at_end): (i64, i64)| WaitLine { at_start: -at_start, at_end: -at_end };
        FlowWait {
            ceiling: line(self.ceiling.flow(units, from, to)),
            credits: self.credits.as_mut().map(|credits| line(credits.flow(units, from, to))),
        }
    }

    /// Share of the credits that is left, 0 to 1; none where the limit has no credits.
    #[must_use]
    pub fn credit_share(&self, now: Nanos) -> Option<f64> {
        self.credits.as_ref().map(|credits| credits.share(now))
    }

    /// Sets the credits to a share (clamped to 0..=1) of their capacity. No effect without credits.
    pub fn set_credit_share(&mut self, share: f64, now: Nanos) {
        if let Some(credits) = &mut self.credits {
            credits.set_share(share, now);
        }
    }

    /// Replaces the limit at `now`. Credits keep their number where both limits have them, cut to
    /// the new capacity, and start full where only the new one does; a backlog is kept.
    pub fn change(&mut self, limit: RateLimit, now: Nanos) {
        self.ceiling.change(limit.ceiling, limit.allowance, now);
        self.credits = match (self.credits.take(), limit.has_credits()) {
            (_, false) => None,
            (Some(mut credits), true) => {
                credits.change(limit.rate, limit.credits, now);
                Some(credits)
            }
            (None, true) => Some(Bucket::full(limit.rate, limit.credits, now)),
        };
        self.limit = limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_as_time_are_what_the_bucket_does() {
        let limit = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
        for (load, share) in [(812.0, 1.0), (3_000.0, 0.25), (301.0, 0.5)] {
            let mut bucket = BurstBucket::new(limit);
            bucket.set_credit_share(share, Nanos::ZERO);
            let seconds = limit.credits_end_s(share, load).unwrap();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "days at most")]
            let end = Nanos((seconds * 1e9) as u64);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole units")]
            let units = (load * seconds) as u64;
            bucket.flow(units, Nanos::ZERO, end);
            let left = bucket.credit_share(end).unwrap();
            assert!(left < 1e-6, "{load}: {left} left after {seconds} s");
            let full = limit.credits_full_s(0.0).unwrap();
            assert_eq!(bucket.credit_share(end + Nanos::from_secs(18_001)), Some(1.0), "{full}");
        }
        assert_eq!(limit.credits_end_s(1.0, 300.0), None, "what is earned is not spent");
        assert_eq!(limit.credits_end_s(1.0, 9_000.0), limit.credits_end_s(1.0, 3_000.0));
        let flat = RateLimit::flat(3_000);
        assert_eq!((flat.credits_end_s(1.0, 9_000.0), flat.credits_full_s(0.0)), (None, None));
    }
}
