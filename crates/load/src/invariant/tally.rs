//! What the clients of a load count, and the report made of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::latency::{self, Latency, Nanos, us};
use crate::report::{ErrorCount, per_second};

/// One second of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its number since the start, from 0.
    pub second: u32,
    /// Commits acknowledged in it.
    pub commits: u64,
    /// Mean latency of their transactions, us; 0 without commits.
    pub mean_us: f64,
    /// The longest, us.
    pub max_us: f64,
}

/// A client that ended before it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEnd {
    /// The client.
    pub client: u32,
    /// Why.
    pub error: String,
    /// The server's error code, or 2013 for a lost connection.
    pub code: Option<u16>,
    /// The commit whose answer it never read: the server may have it or not.
    pub in_doubt: Option<u64>,
}

/// What a load did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvariantReport {
    /// Clients.
    pub clients: u32,
    /// From the start to the last client's end, s.
    pub elapsed_s: f64,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Transactions rolled back on purpose.
    pub rolled_back: u64,
    /// From the first statement (with a rate: from the time the transaction was due) to the OK of
    /// COMMIT, attempts that failed included, to 1%.
    pub latency: Latency,
    /// Second by second, without the last, unfinished one.
    pub seconds: Vec<Second>,
    /// Server errors by code.
    pub errors: Vec<ErrorCount>,
    /// The clients that ended early, by client.
    pub ended: Vec<ClientEnd>,
}

impl InvariantReport {
    /// Commits a second.
    #[must_use]
    pub fn tps(&self) -> f64 {
        per_second(self.commits, self.elapsed_s)
    }
}

/// The counts of one second.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    commits: u64,
    total_ns: u64,
    max_ns: u64,
}

/// What all clients count together.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) commits: u64,
    pub(super) rolled_back: u64,
    latency: Nanos,
    slots: Vec<Slot>,
    errors: BTreeMap<u16, ErrorCount>,
    ended: Vec<ClientEnd>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            commits: 0,
            rolled_back: 0,
            latency: latency::coarse(),
            slots: Vec::new(),
            errors: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    /// A commit acknowledged `since` after the start, whose transaction took `took`.
    pub(super) fn commit(&mut self, since: Duration, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.commits += 1;
        self.latency.saturating_record(took);
        let second = usize::try_from(since.as_secs()).expect("a load ends within 136 years");
        if self.slots.len() <= second {
            self.slots.resize(second + 1, Slot::default());
        }
        let slot = &mut self.slots[second];
        slot.commits += 1;
        slot.total_ns = slot.total_ns.saturating_add(took);
        slot.max_ns = slot.max_ns.max(took);
    }

    pub(super) fn error(&mut self, error: &LoadError, retried: bool) {
        let Some(code) = error.code() else { return };
        let count = self.errors.entry(code).or_insert_with(|| ErrorCount {
            code,
            count: 0,
            retried: 0,
            message: error.to_string(),
        });
        count.count += 1;
        count.retried += u64::from(retried);
    }

    /// Each client ends once.
    pub(super) fn end(&mut self, end: ClientEnd) {
        if self.ended.iter().all(|ended| ended.client != end.client) {
            self.ended.push(end);
        }
    }

    /// Clients that have ended early.
    pub(super) fn ended(&self) -> u32 {
        u32::try_from(self.ended.len()).expect("64 clients at most")
    }

    /// The seconds that were over `since` after the start, those without commits included.
    pub(super) fn seconds(&self, since: Duration) -> Vec<Second> {
        let slot = |at: u32| {
            let slot =
                usize::try_from(at).ok().and_then(|at| self.slots.get(at)).copied().unwrap_or_default();
            let mean_us = us(slot.total_ns) / (slot.commits.max(1)) as f64;
            Second { second: at, commits: slot.commits, mean_us, max_us: us(slot.max_ns) }
        };
        (0..u32::try_from(since.as_secs()).unwrap_or(u32::MAX)).map(slot).collect()
    }

    pub(super) fn report(&self, clients: u32, elapsed: Duration) -> InvariantReport {
        let mut ended = self.ended.clone();
        ended.sort_by_key(|end| end.client);
        InvariantReport {
            clients,
            elapsed_s: elapsed.as_secs_f64(),
            commits: self.commits,
            rolled_back: self.rolled_back,
            latency: Latency::of(&self.latency),
            seconds: self.seconds(elapsed),
            errors: self.errors.values().cloned().collect(),
            ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_a_commit_is_in_the_series() {
        let mut tally = Tally::new();
        tally.commit(Duration::from_millis(500), Duration::from_micros(100));
        tally.commit(Duration::from_millis(900), Duration::from_micros(300));
        tally.commit(Duration::from_millis(2_100), Duration::from_millis(1_500));
        let seconds = tally.seconds(Duration::from_millis(3_500));
        let of = |at: usize| (seconds[at].commits, seconds[at].mean_us, seconds[at].max_us);
        assert_eq!(seconds.len(), 3);
        assert_eq!([of(0), of(1), of(2)], [(2, 200.0, 300.0), (0, 0.0, 0.0), (1, 1_500_000.0, 1_500_000.0)]);
        let report = tally.report(1, Duration::from_millis(3_000));
        assert!((report.tps() - 1.0).abs() < 1e-9);
    }
}
