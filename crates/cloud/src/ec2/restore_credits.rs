//! Fast snapshot restore of a snapshot in a zone: its states, and its volume creation credits.
//!
//! Both are functions of the time (EBS user guide, `ebs-fast-snapshot-restore` and `volume-creation-credits`).

use serde::{Deserialize, Serialize};

use super::options::Timing;

/// Milliseconds of an hour.
const HOUR_MS: u64 = 3_600_000;

/// GiB of a TiB.
const TIB_GIB: u64 = 1 << 10;

/// Most credits of a bucket, and most that come in an hour.
const MOST: u64 = 10;

/// Fast snapshot restore of a snapshot in one zone, as one account has enabled it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FastRestore {
    pub(super) account: String,
    pub(super) zone: String,
    /// When `enabling` began.
    pub(super) enabling_ms: u64,
    pub(super) optimizing_ms: u64,
    pub(super) enabled_ms: u64,
    /// When `disabling` begins, and `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) disabling_ms: Option<(u64, u64)>,
    /// The credits at `counted_ms`, in shares of a credit: see [`Bucket`].
    shares: u64,
    counted_ms: u64,
}

/// The credits of a snapshot of a size. A credit has as many shares as make the shares of a millisecond a whole number.
struct Bucket {
    credit: u64,
    size: u64,
    per_ms: u64,
}

impl Bucket {
    /// `MAX(1, MIN(10, 1024 / GiB))` credits, filled by `MIN(10, 1024 / GiB)` an hour.
    fn of(size_gib: u64) -> Self {
        let size_gib = size_gib.max(1);
        let per_ms = TIB_GIB.min(MOST * size_gib);
        let credit = size_gib * HOUR_MS;
        Self { credit, size: (per_ms * HOUR_MS).max(credit), per_ms }
    }

    fn credits(&self, shares: u64) -> f64 {
        shares as f64 / self.credit as f64
    }
}

impl FastRestore {
    /// One that is enabled at a time, for a snapshot of a size.
    pub(super) fn enable(account: &str, zone: &str, size_gib: u64, now: u64, timing: &Timing) -> Self {
        let optimizing_ms = now + timing.restore_enabling_ms;
        let enabled_ms = optimizing_ms + (timing.restore_tib_ms * size_gib).div_ceil(TIB_GIB);
        Self {
            account: account.to_owned(),
            zone: zone.to_owned(),
            enabling_ms: now,
            optimizing_ms,
            enabled_ms,
            disabling_ms: None,
            shares: if timing.restore_credits_at_once { Bucket::of(size_gib).size } else { 0 },
            counted_ms: enabled_ms,
        }
    }

    /// Disables it; one that is disabled already stays as it is.
    pub(super) fn disable(&mut self, now: u64, timing: &Timing) {
        self.disabling_ms.get_or_insert((now, now + timing.restore_disabling_ms));
    }

    pub(super) const fn state(&self, now: u64) -> &'static str {
        match self.disabling_ms {
            Some((_, disabled)) if disabled <= now => "disabled",
            Some((disabling, _)) if disabling <= now => "disabling",
            _ if self.enabled_ms <= now => "enabled",
            _ if self.optimizing_ms <= now => "optimizing",
            _ => "enabling",
        }
    }

    /// Why it is in its state, in AWS's words.
    pub(super) const fn reason(state: &str) -> &'static str {
        match state.as_bytes() {
            b"enabling" | b"disabling" => "Client.UserInitiated",
            _ => "Client.UserInitiated - Lifecycle state transition",
        }
    }

    /// Whether it counts as enabled: from the request on, until it is disabled.
    pub(super) const fn is_on(&self) -> bool {
        self.disabling_ms.is_none()
    }

    /// The states that were reached by a time, with when.
    pub(super) fn times(&self, now: u64) -> impl Iterator<Item = (&'static str, u64)> {
        let end = self.disabling_ms.map_or(u64::MAX, |(disabling, _)| disabling);
        let up = [
            ("enabling", self.enabling_ms),
            ("optimizing", self.optimizing_ms),
            ("enabled", self.enabled_ms),
        ];
        // What it was disabled before, it never reached.
        let up = up.into_iter().filter(move |(state, at)| *at < end || *state == "enabling");
        let down = self.disabling_ms.map(|(from, to)| [("disabling", from), ("disabled", to)]);
        up.chain(down.into_iter().flatten()).filter(move |(_, at)| *at <= now)
    }

    fn shares_at(&self, bucket: &Bucket, now: u64) -> u64 {
        let filled = now.saturating_sub(self.counted_ms).saturating_mul(bucket.per_ms);
        self.shares.saturating_add(filled).min(bucket.size)
    }

    /// The size of the bucket of a snapshot of a size, and the balance at a time, in credits; none while it is not enabled.
    pub(super) fn credits(&self, size_gib: u64, now: u64) -> Option<(f64, f64)> {
        let bucket = Bucket::of(size_gib);
        let balance = || bucket.credits(self.shares_at(&bucket, now));
        (self.state(now) == "enabled").then(|| (bucket.credits(bucket.size), balance()))
    }

    /// The same with a credit less; none with less than one credit, and while it is not enabled.
    pub(super) fn without_credit(&self, size_gib: u64, now: u64) -> Option<Self> {
        let bucket = Bucket::of(size_gib);
        let left = self.shares_at(&bucket, now).checked_sub(bucket.credit);
        let left = left.filter(|_| self.state(now) == "enabled")?;
        Some(Self { shares: left, counted_ms: now, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;

    fn enabled(size_gib: u64) -> FastRestore {
        FastRestore::enable("a", "z", size_gib, 0, &Timing::AWS)
    }

    fn balance(restore: &FastRestore, size_gib: u64, after_ms: u64) -> f64 {
        restore.credits(size_gib, restore.enabled_ms + after_ms).unwrap().1
    }

    #[test]
    fn buckets_have_the_sizes_and_fill_as_documented() {
        // The examples of the user guide: size of the snapshot, credits of the bucket, credits an hour.
        for (size_gib, size, hourly) in [
            (8, 10.0, 10.0),
            (64, 10.0, 10.0),
            (128, 8.0, 8.0),
            (512, 2.0, 2.0),
            (1024, 1.0, 1.0),
            (4096, 1.0, 0.25),
        ] {
            let restore = enabled(size_gib);
            assert_eq!(restore.credits(size_gib, restore.enabled_ms), Some((size, 0.0)), "{size_gib} GiB");
            assert_eq!(balance(&restore, size_gib, 6 * MINUTE_MS), hourly / 10.0, "{size_gib} GiB");
            assert_eq!(balance(&restore, size_gib, 1_000 * HOUR_MS), size, "{size_gib} GiB");
        }
    }

    #[test]
    fn a_credit_is_taken_only_where_there_is_a_whole_one() {
        let restore = enabled(128);
        let first = restore.enabled_ms + 450_000;
        assert_eq!(restore.without_credit(128, first - 1), None);
        let taken = restore.without_credit(128, first).unwrap();
        assert_eq!(taken.credits(128, first), Some((8.0, 0.0)));
        assert_eq!(taken.without_credit(128, first), None);
        assert!(taken.without_credit(128, first + 450_000).is_some());
    }

    #[test]
    fn states_follow_each_other_by_the_size_of_the_snapshot() {
        let mut restore = enabled(512);
        let optimized = 36_000 + 30 * MINUTE_MS;
        for (now, state) in
            [(0, "enabling"), (36_000, "optimizing"), (optimized - 1, "optimizing"), (optimized, "enabled")]
        {
            assert_eq!(restore.state(now), state);
        }
        restore.disable(MINUTE_MS, &Timing::AWS);
        restore.disable(2 * MINUTE_MS, &Timing::AWS);
        assert_eq!(restore.state(MINUTE_MS), "disabling");
        assert_eq!(restore.state(MINUTE_MS + 36_000), "disabled");
        let reached: Vec<_> = restore.times(optimized).map(|(state, _)| state).collect();
        assert_eq!(reached, ["enabling", "optimizing", "disabling", "disabled"], "it was never enabled");
        assert_eq!(restore.credits(512, optimized), None);
        assert_eq!(restore.without_credit(512, 10 * HOUR_MS), None);
    }
}
