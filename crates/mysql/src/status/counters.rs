//! Counters and gauges of one moment, and the rates between two.

use std::time::{Duration, Instant};

use ebbtide_observe::{Interval, Rates, Readings, UPTIME};

/// A server's status at one moment.
#[derive(Debug, Clone)]
pub struct Counters {
    /// When it was read.
    pub at: Instant,
    pub(super) readings: Readings,
}

impl Counters {
    /// What happened between two moments, per second; gauges as they are `after`. A counter that went
    /// back, because the server was started again or its status flushed, is none for once.
    #[must_use]
    pub fn between(before: &Self, after: &Self) -> Rates {
        let seconds = after.at.duration_since(before.at).as_secs_f64();
        Rates::over(&Interval { before: &before.readings, after: &after.readings, seconds })
    }

    /// How long the server has run; none where it does not report.
    #[must_use]
    pub fn uptime(&self) -> Option<Duration> {
        self.readings.get(UPTIME).map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_observe::Counter;

    use super::*;

    fn counters(at: Instant, readings: &[(Counter, u64)]) -> Counters {
        Counters { at, readings: readings.iter().copied().collect() }
    }

    #[test]
    fn the_time_between_two_moments_makes_rates_of_counters() {
        let (at, reads) = (Instant::now(), Counter::Status("innodb_pages_read"));
        let before = counters(at, &[(reads, 100), (UPTIME, 7)]);
        let after = counters(at + Duration::from_secs(2), &[(reads, 400), (UPTIME, 9)]);
        assert_eq!(Counters::between(&before, &after), Rates { page_reads: Some(150.0), ..Rates::default() });
        assert_eq!(after.uptime(), Some(Duration::from_secs(9)));
    }
}
