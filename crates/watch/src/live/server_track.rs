//! Two readings of a server, and what happened between them.

use std::collections::BTreeMap;
use std::time::Duration;

use ebbtide_mysql::sampling::Reading;
use ebbtide_observe::metric::Maker;
use ebbtide_observe::{Flavour, Readings, UPTIME};
use ebbtide_volume::Nanos;

use crate::server::ServerTrend;

/// Over a longer gap two readings are not compared.
const LONGEST_GAP: Duration = Duration::from_secs(120);

/// Status variables whose growth is shown and that no rate of [`ebbtide_observe::Rates`] has.
const GROWING: [&str; 5] = [
    "questions",
    "innodb_buffer_pool_reads",
    "innodb_buffer_pool_read_requests",
    "innodb_master_thread_active_loops",
    "innodb_master_thread_idle_loops",
];
/// Counters of INNODB_METRICS of the same kind; they are asked less often than the status.
const METRICS: [&str; 3] =
    ["innodb_log_flush_usec", "innodb_master_active_loops", "innodb_master_idle_loops"];

/// Some counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CounterSet {
    read_at: Duration,
    values: BTreeMap<&'static str, u64>,
}

/// What some counters grew by in a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Growth {
    seconds: f64,
    values: BTreeMap<&'static str, u64>,
}

impl Growth {
    /// Growth a second; None of a counter that the server does not have, or that began again.
    pub(super) fn rate(&self, name: &str) -> Option<f64> {
        self.values.get(name).map(|grown| *grown as f64 / self.seconds)
    }

    /// The share of the first counter in the sum of both.
    pub(super) fn share(&self, first: &str, second: &str) -> Option<f64> {
        let (first, second) = (self.rate(first)?, self.rate(second)?);
        (first + second > 0.0).then(|| first / (first + second))
    }

    fn between(before: &CounterSet, after: &CounterSet) -> Option<Self> {
        let span = after.read_at.checked_sub(before.read_at)?;
        if span.is_zero() || span > LONGEST_GAP {
            return None;
        }
        let grown = |(name, after): (&&'static str, &u64)| {
            Some((*name, after.checked_sub(*before.values.get(name)?)?))
        };
        let values = after.values.iter().filter_map(grown).collect();
        Some(Self { seconds: span.as_secs_f64(), values })
    }
}

/// The newest reading of a server.
#[derive(Debug, Default)]
pub(super) struct ServerTrack {
    trend: ServerTrend,
    run: u64,
    status: Option<CounterSet>,
    metrics: Option<CounterSet>,
    grown: Option<Growth>,
    metrics_grown: Option<Growth>,
    /// The uptime of the first status of the run, s, and when that was taken.
    first_uptime: Option<(Duration, u64)>,
    seen: Nanos,
}

impl ServerTrack {
    /// Takes a reading. Returns whether its status is a new one: one that was taken before changes nothing.
    pub(super) fn take(&mut self, elapsed: Nanos, reading: &Reading) -> bool {
        if reading.run != self.run {
            // The server was started again, or is another one.
            *self = Self { trend: std::mem::take(&mut self.trend), run: reading.run, ..Self::default() };
        }
        self.trend.observe(reading);
        self.take_metrics(reading);
        let Some(status) = &reading.status else { return false };
        if self.status.as_ref().is_some_and(|last| last.read_at == status.at) {
            return false;
        }
        let value = |name: &'static str| Some((name, status.value.get(name)?.parse().ok()?));
        let now = CounterSet { read_at: status.at, values: GROWING.into_iter().filter_map(value).collect() };
        self.grown = self.status.as_ref().and_then(|before| Growth::between(before, &now));
        self.status = Some(now);
        if self.first_uptime.is_none() {
            let uptime_s = status.value.get("uptime").and_then(|seconds| seconds.parse().ok());
            self.first_uptime = uptime_s.map(|seconds| (status.at, seconds));
        }
        self.seen = elapsed;
        true
    }

    fn take_metrics(&mut self, reading: &Reading) {
        let Some(metrics) = &reading.innodb_metrics else { return };
        if self.metrics.as_ref().is_some_and(|last| last.read_at == metrics.at) {
            return;
        }
        let value = |name: &'static str| {
            let found = metrics.value.iter().find(|metric| metric.name == name)?;
            Some((name, u64::try_from(found.count).ok()?))
        };
        let now = CounterSet { read_at: metrics.at, values: METRICS.into_iter().filter_map(value).collect() };
        self.metrics_grown = self.metrics.as_ref().and_then(|before| Growth::between(before, &now));
        self.metrics = Some(now);
    }

    /// Rates, and the redo log.
    pub(super) const fn trend(&self) -> &ServerTrend {
        &self.trend
    }

    /// What the counters of the status grew by; None after the first reading, after a restart and after a pause.
    pub(super) const fn grown(&self) -> Option<&Growth> {
        self.grown.as_ref()
    }

    /// The same of INNODB_METRICS.
    pub(super) const fn metrics_grown(&self) -> Option<&Growth> {
        self.metrics_grown.as_ref()
    }

    /// Seconds between the last two readings of the status; None where they are not compared.
    pub(super) fn seconds(&self) -> Option<f64> {
        self.grown.as_ref().map(|grown| grown.seconds)
    }

    /// When the newest status was taken, by the caller's clock.
    pub(super) const fn seen(&self) -> Nanos {
        self.seen
    }

    /// The least that the uptime can be by now, s: what it was, and what has passed since. A server whose clock was set back says less.
    fn least_uptime_s(&self) -> Option<u64> {
        let ((first, uptime_s), status) = (self.first_uptime?, self.status.as_ref()?);
        Some(uptime_s.saturating_add(status.read_at.saturating_sub(first).as_secs()))
    }

    /// The counters of the newest status as the alarms take them; None before the server has answered. Within a run the uptime grows.
    pub(super) fn counters(&self, reading: &Reading) -> Option<(Flavour, Readings)> {
        let flavour = match reading.maker? {
            Maker::MariaDb => Flavour::MariaDb,
            Maker::MySql => Flavour::MySql,
        };
        let mut counters = self.trend.readings()?.clone();
        if let Some(uptime_s) = self.least_uptime_s().max(counters.get(UPTIME)) {
            counters.insert(UPTIME, uptime_s);
        }
        Some((flavour, counters))
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::sampling::Timed;
    use ebbtide_observe::Variables;

    use super::*;

    fn reading(run: u64, second: u64, questions: u64) -> Reading {
        let status: Variables =
            [("uptime", second.to_string()), ("questions", questions.to_string())].into_iter().collect();
        Reading {
            up: true,
            run,
            maker: Some(Maker::MariaDb),
            status: Some(Timed { at: Duration::from_secs(second), value: status }),
            ..Reading::default()
        }
    }

    #[test]
    fn a_restart_a_reset_and_a_pause_give_no_rate() {
        let mut track = ServerTrack::default();
        let mut rates = Vec::new();
        for (run, second, questions) in
            [(0, 1, 10), (0, 2, 40), (1, 3, 5), (1, 4, 6), (1, 5, 0), (1, 6, 7), (1, 500, 900)]
        {
            assert!(track.take(Nanos::from_secs(second), &reading(run, second, questions)));
            rates.push(track.grown().and_then(|grown| grown.rate("questions")));
        }
        assert_eq!(rates, [None, Some(30.0), None, Some(1.0), None, Some(7.0), None]);
    }

    #[test]
    fn a_status_that_was_taken_before_is_no_new_one() {
        let mut track = ServerTrack::default();
        assert!(track.take(Nanos::from_secs(1), &reading(0, 1, 10)));
        assert!(!track.take(Nanos::from_secs(2), &reading(0, 1, 10)));
        assert_eq!(track.seen(), Nanos::from_secs(1));
        assert!(!track.take(Nanos::from_secs(3), &Reading::default()));
    }

    #[test]
    fn the_uptime_of_a_run_grows_also_where_the_clock_of_the_server_was_set_back() {
        let mut track = ServerTrack::default();
        let mut uptime_s = |run: u64, second: u64, uptime: &str| {
            let mut reading = reading(run, second, second);
            let status: Variables = [("uptime", uptime), ("questions", "1")].into_iter().collect();
            reading.status = Some(Timed { at: Duration::from_secs(second), value: status });
            track.take(Nanos::from_secs(second), &reading);
            track.counters(&reading).unwrap().1.get(UPTIME)
        };
        assert_eq!(uptime_s(0, 10, "5000"), Some(5_000));
        assert_eq!(uptime_s(0, 11, "1401"), Some(5_001), "set back by an hour");
        assert_eq!(uptime_s(0, 12, "9000"), Some(9_000), "and set ahead");
        assert_eq!(uptime_s(1, 60, "3"), Some(3), "started again");
    }

    #[test]
    fn counters_of_the_alarms_have_the_uptime() {
        let mut track = ServerTrack::default();
        track.take(Nanos::from_secs(77), &reading(0, 77, 1));
        let (flavour, counters) = track.counters(&reading(0, 77, 1)).unwrap();
        assert_eq!((flavour, counters.get(UPTIME)), (Flavour::MariaDb, Some(77)));
        assert!(track.counters(&Reading::default()).is_none());
    }
}
