//! When a server is asked what: periods, back-off from a slow server, and pauses between attempts to connect. Pure: times come from the
//! caller, and count from one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use super::collector::Collector;

/// Callers' clocks tick unevenly: what is due so soon is due now.
const SLACK: Duration = Duration::from_millis(50);
/// A sample that takes no longer than this delays none.
const QUICK: Duration = Duration::from_millis(100);
/// After a slower one, the server is left alone for so many times as long: it works for us for a tenth of the time at most.
const REST: u32 = 10;
/// The pauses between attempts to connect: they double from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The pauses after a login that was refused, which double alike. Each attempt counts towards a lock of the account or of the host
/// (`FAILED_LOGIN_ATTEMPTS`, `max_password_errors`), and somebody has to change something before one succeeds.
const FIRST_LOGIN_PAUSE: Duration = Duration::from_secs(600);
const LONGEST_LOGIN_PAUSE: Duration = Duration::from_secs(3_600);
/// How long a collector waits that the server has refused: somebody may grant what it needs.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// How often a server that has no source is asked whether it has one.
const NO_SOURCE_PAUSE: Duration = Duration::from_secs(10);

/// When a server is asked next, and for what.
#[derive(Debug)]
pub(super) struct Schedule {
    due: BTreeMap<Collector, Duration>,
    rests_until: Duration,
    pause: Duration,
    login_pause: Duration,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It was answered with rows.
    Rows,
    /// It was answered without a row.
    Nothing,
    /// The server refused.
    Refused,
}

impl Schedule {
    /// Everything is due at once.
    pub(super) fn new() -> Self {
        let due = Collector::ALL.into_iter().map(|collector| (collector, Duration::ZERO)).collect();
        Self { due, rests_until: Duration::ZERO, pause: FIRST_PAUSE, login_pause: FIRST_LOGIN_PAUSE }
    }

    /// Until when the server is left alone; None where it may be asked now.
    pub(super) fn rest(&self, now: Duration) -> Option<Duration> {
        (self.rests_until > now + SLACK).then_some(self.rests_until)
    }

    /// What is due, the longest overdue first, so that none is left out for ever where each sample ends early.
    pub(super) fn due(&self, now: Duration) -> Vec<Collector> {
        let mut due: Vec<(Duration, Collector)> = self
            .due
            .iter()
            .filter(|(_, time)| **time <= now + SLACK)
            .map(|(collector, time)| (*time, *collector))
            .collect();
        due.sort_unstable();
        due.into_iter().map(|(_, collector)| collector).collect()
    }

    /// Notes that a collector was asked.
    pub(super) fn asked(&mut self, collector: Collector, now: Duration, became: Asked) {
        let pause = match (became, collector) {
            (Asked::Refused, _) => REFUSED_PAUSE,
            (Asked::Nothing, Collector::Replica) => NO_SOURCE_PAUSE,
            _ => collector.period(),
        };
        self.due.insert(collector, now + pause);
    }

    /// Has everything asked again: the server was started again.
    pub(super) fn renew(&mut self, now: Duration) {
        for time in self.due.values_mut() {
            *time = (*time).min(now);
        }
    }

    /// Notes that a sample has ended, and how long it took.
    pub(super) fn sampled(&mut self, end: Duration, took: Duration) {
        (self.pause, self.login_pause) = (FIRST_PAUSE, FIRST_LOGIN_PAUSE);
        if took > QUICK {
            self.rests_until = end + took * REST;
        }
    }

    /// Notes that the server was not reached, or was lost.
    pub(super) fn lost(&mut self, end: Duration) {
        self.rests_until = end + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.renew(end);
    }

    /// Notes that a statement was not answered within a time: the server may work for us still.
    pub(super) fn timed_out(&mut self, end: Duration, took: Duration) {
        self.lost(end);
        self.rests_until = self.rests_until.max(end + took * REST);
    }

    /// Notes that the server does not let the account in.
    pub(super) fn login_refused(&mut self, end: Duration) {
        self.lost(end);
        self.rests_until = end + self.login_pause;
        self.login_pause = (self.login_pause * 2).min(LONGEST_LOGIN_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Samples of a server that answers in `took`, each second of `0..until`: how often each collector is asked.
    fn run(until: u64, took: Duration, became: impl Fn(Collector) -> Asked) -> BTreeMap<Collector, u32> {
        let mut schedule = Schedule::new();
        let mut counts = BTreeMap::new();
        // The clock of the caller is uneven.
        for now in (0..until).map(|second| seconds(second) + Duration::from_millis(20 * (second % 2))) {
            if schedule.rest(now).is_some() {
                continue;
            }
            for collector in schedule.due(now) {
                *counts.entry(collector).or_insert(0) += 1;
                schedule.asked(collector, now, became(collector));
            }
            schedule.sampled(now + took, took);
        }
        counts
    }

    #[test]
    fn a_quick_server_is_asked_for_its_status_each_second_and_for_its_variables_each_minute() {
        let counts = run(120, Duration::from_millis(5), |_| Asked::Rows);
        assert_eq!(counts[&Collector::Status], 120);
        assert_eq!(counts[&Collector::Replica], 120);
        assert_eq!(counts[&Collector::InnodbMetrics], 12);
        assert_eq!((counts[&Collector::Variables], counts[&Collector::BinaryLogs]), (2, 2));
    }

    #[test]
    fn a_slow_server_is_left_alone_ten_times_as_long_as_it_took() {
        let counts = run(110, Duration::from_secs(1), |_| Asked::Rows);
        assert_eq!(counts[&Collector::Status], 10, "one second of eleven");
        let mut schedule = Schedule::new();
        schedule.sampled(seconds(5), Duration::from_millis(101));
        assert_eq!(schedule.rest(seconds(5)), Some(seconds(5) + Duration::from_millis(1_010)));
        let mut schedule = Schedule::new();
        schedule.sampled(seconds(5), Duration::from_millis(100));
        assert_eq!(schedule.rest(seconds(5)), None);
    }

    #[test]
    fn what_is_refused_and_what_has_no_rows_is_asked_less_often() {
        let counts = run(120, Duration::ZERO, |collector| match collector {
            Collector::Replica => Asked::Nothing,
            Collector::InnodbMetrics => Asked::Refused,
            _ => Asked::Rows,
        });
        assert_eq!((counts[&Collector::Replica], counts[&Collector::InnodbMetrics]), (12, 2));
    }

    #[test]
    fn the_longest_overdue_is_asked_first() {
        let mut schedule = Schedule::new();
        for collector in Collector::ALL {
            schedule.asked(collector, seconds(0), Asked::Rows);
        }
        assert!(schedule.due(seconds(0)).is_empty());
        schedule.asked(Collector::Status, seconds(59), Asked::Rows);
        let due = schedule.due(seconds(60));
        assert_eq!(due.first(), Some(&Collector::Replica));
        assert_eq!(due[due.len() - 3..], [Collector::Status, Collector::Variables, Collector::BinaryLogs]);
        schedule.renew(seconds(60));
        assert_eq!(schedule.due(seconds(60)).len(), Collector::ALL.len());
    }

    #[test]
    fn pauses_between_attempts_to_connect_double_up_to_a_minute() {
        let mut schedule = Schedule::new();
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            schedule.lost(now);
            let next = schedule.rest(now).unwrap();
            pauses.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        schedule.sampled(now, Duration::ZERO);
        schedule.lost(now);
        assert_eq!(schedule.rest(now), Some(now + seconds(1)), "it was there in between");
    }

    #[test]
    fn a_login_that_is_refused_is_tried_again_after_10_minutes_and_then_each_hour() {
        let mut schedule = Schedule::new();
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..5 {
            schedule.login_refused(now);
            let next = schedule.rest(now).unwrap();
            pauses.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [600, 1_200, 2_400, 3_600, 3_600]);
        schedule.sampled(now, Duration::ZERO);
        schedule.login_refused(now);
        assert_eq!(schedule.rest(now), Some(now + seconds(600)), "it let us in in between");
    }

    #[test]
    fn a_statement_that_timed_out_is_followed_by_ten_times_its_time_or_by_the_pause() {
        let mut schedule = Schedule::new();
        schedule.timed_out(seconds(5), seconds(5));
        assert_eq!(schedule.rest(seconds(5)), Some(seconds(55)));
        let mut now = seconds(55);
        for _ in 0..8 {
            schedule.timed_out(now, seconds(5));
            now = schedule.rest(now).unwrap();
        }
        schedule.timed_out(now, seconds(5));
        assert_eq!(schedule.rest(now), Some(now + seconds(60)), "the pause is longer by now");
    }
}
