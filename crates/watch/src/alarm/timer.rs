//! The state of one alarm: how verdicts become OK, ALARM and INSUFFICIENT_DATA.

use ebbtide_volume::Nanos;

use crate::alarm::rule::{AlarmState, Rule, Verdict};

/// After this time without data an alarm has insufficient data. A reading that is late, or a server that is asked less often because it
/// is slow, changes nothing before.
pub(crate) const MISSING_AFTER: Nanos = Nanos::from_secs(60);

/// The most that one step counts. The machine may have been suspended between two readings: what was true before and after it need
/// not have been true meanwhile.
const LONGEST_STEP: Nanos = Nanos::from_secs(120);

/// The most that a reading counts whose verdict is another one than that before it. What it says has begun at some time since: with an
/// interval of a minute one reading alone would be an alarm.
const FIRST_STEP: Nanos = Nanos::SECOND;

/// Times are of readings: a reading stands for the time since the one before it, where that had the same verdict, and for a second else.
#[derive(Debug, Clone)]
pub(crate) struct Timer {
    state: AlarmState,
    last: Option<(Nanos, Verdict)>,
    raised_for: Nanos,
    clear_for: Nanos,
    unknown_for: Nanos,
}

impl Timer {
    /// An alarm that has not seen anything.
    pub(crate) const fn new() -> Self {
        Self {
            state: AlarmState::InsufficientData,
            last: None,
            raised_for: Nanos::ZERO,
            clear_for: Nanos::ZERO,
            unknown_for: Nanos::ZERO,
        }
    }

    pub(crate) const fn state(&self) -> AlarmState {
        self.state
    }

    /// How long nothing is known.
    pub(crate) const fn unknown_for(&self) -> Nanos {
        self.unknown_for
    }

    /// Takes a verdict with its value, and returns the state before it where that has changed. A time that does not pass counts nothing.
    pub(crate) fn step(
        &mut self,
        rule: &Rule,
        (verdict, value): (Verdict, Option<f64>),
        now: Nanos,
    ) -> Option<AlarmState> {
        let passed = self.last.map_or(Nanos::ZERO, |(last, before)| {
            now.since(last).min(if before == verdict { LONGEST_STEP } else { FIRST_STEP })
        });
        self.last = Some((now, verdict));
        let before = self.state;
        match verdict {
            Verdict::Unknown => self.unknown(passed),
            Verdict::Raise => self.raise(passed, Nanos::from_secs(u64::from(rule.seconds_to_alarm(value)))),
            Verdict::Between => self.between(),
            Verdict::Clear => self.clear(passed, Nanos::from_secs(u64::from(rule.ok_after_s))),
        }
        (self.state != before).then_some(before)
    }

    fn unknown(&mut self, passed: Nanos) {
        self.unknown_for += passed;
        if self.unknown_for >= MISSING_AFTER {
            self.state = AlarmState::InsufficientData;
            (self.raised_for, self.clear_for) = (Nanos::ZERO, Nanos::ZERO);
        }
    }

    fn raise(&mut self, passed: Nanos, alarm_after: Nanos) {
        (self.clear_for, self.unknown_for) = (Nanos::ZERO, Nanos::ZERO);
        self.raised_for += passed;
        if self.raised_for >= alarm_after {
            self.state = AlarmState::Alarm;
        }
    }

    /// Neither an alarm nor the end of one comes nearer.
    fn between(&mut self) {
        (self.raised_for, self.clear_for, self.unknown_for) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        if self.state == AlarmState::InsufficientData {
            self.state = AlarmState::Ok;
        }
    }

    fn clear(&mut self, passed: Nanos, ok_after: Nanos) {
        (self.raised_for, self.unknown_for) = (Nanos::ZERO, Nanos::ZERO);
        self.clear_for += passed;
        if self.state != AlarmState::Alarm || self.clear_for >= ok_after {
            self.state = AlarmState::Ok;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::alarm::rule::RuleId;
    use crate::alarm::table::rule;

    use super::*;

    const Y: Verdict = Verdict::Raise;
    const N: Verdict = Verdict::Clear;
    const B: Verdict = Verdict::Between;
    const U: Verdict = Verdict::Unknown;

    /// The states after spans of verdicts of log_waits (30 s to ALARM, 120 s to OK), seen each second.
    fn states(spans: &[(u64, Verdict)]) -> Vec<AlarmState> {
        let mut timer = Timer::new();
        let mut now = Nanos::ZERO;
        let mut after = Vec::new();
        for (seconds, verdict) in spans {
            for _ in 0..*seconds {
                timer.step(rule(RuleId::LogWaits), (*verdict, None), now);
                now += Nanos::SECOND;
            }
            after.push(timer.state());
        }
        after
    }

    #[test]
    fn an_alarm_begins_and_ends_after_its_times() {
        use AlarmState::{Alarm, InsufficientData, Ok};
        assert_eq!(states(&[(1, N), (29, Y), (1, Y), (119, N), (1, N)]), [Ok, Ok, Alarm, Alarm, Ok]);
        assert_eq!(states(&[(10, Y), (30, Y)]), [InsufficientData, Alarm], "it begins without data");
    }

    #[test]
    fn what_flaps_neither_raises_nor_ends_an_alarm() {
        use AlarmState::{Alarm, Ok};
        let flapping: Vec<(u64, Verdict)> = (0..100).flat_map(|_| [(1, N), (20, Y)]).collect();
        assert!(states(&flapping).iter().skip(1).all(|state| *state == Ok));
        let raised = [(1, N), (31, Y)].into_iter().chain((0..100).flat_map(|_| [(100, N), (1, Y)]));
        assert!(states(&raised.collect::<Vec<_>>()).iter().skip(1).all(|state| *state == Alarm));
    }

    #[test]
    fn a_value_between_the_thresholds_keeps_the_state() {
        use AlarmState::{Alarm, Ok};
        assert_eq!(states(&[(1, N), (20, Y), (5, B), (20, Y), (500, B)]), [Ok; 5]);
        assert_eq!(states(&[(1, N), (40, Y), (500, B), (100, N), (5, B), (100, N)])[1..], [Alarm; 5]);
    }

    #[test]
    fn missing_data_is_said_after_a_minute_and_counts_for_nothing() {
        use AlarmState::{Alarm, InsufficientData, Ok};
        assert_eq!(states(&[(1, N), (59, U), (1, N)]), [Ok; 3]);
        assert_eq!(states(&[(1, N), (60, U), (1, N)]), [Ok, InsufficientData, Ok]);
        assert_eq!(
            states(&[(1, N), (40, Y), (60, U), (29, Y), (2, Y)])[1..],
            [Alarm, InsufficientData, InsufficientData, Alarm]
        );
        assert_eq!(
            states(&[(1, N), (20, Y), (10, U), (9, Y), (2, Y)])[2..],
            [Ok, Ok, Alarm],
            "a gap is not held against it"
        );
    }

    #[test]
    fn with_long_intervals_the_first_reading_of_a_row_is_no_alarm_and_no_end_of_one() {
        let row = rule(RuleId::LogWaits);
        let mut timer = Timer::new();
        let mut after = |minute: u64, verdict| {
            timer.step(row, (verdict, None), Nanos::from_secs(minute * 60));
            timer.state()
        };
        assert_eq!(after(0, N), AlarmState::Ok);
        assert_eq!(after(1, Y), AlarmState::Ok, "it may have begun a second ago");
        assert_eq!(after(2, Y), AlarmState::Alarm, "true for a minute at least");
        assert_eq!(after(3, N), AlarmState::Alarm);
        assert_eq!(after(4, N), AlarmState::Alarm, "for 61 of 120 s");
        assert_eq!(after(5, N), AlarmState::Ok);
        assert_eq!(after(6, U), AlarmState::Ok, "one reading alone is missing");
    }

    #[test]
    fn a_suspended_machine_does_not_make_an_alarm_of_a_moment() {
        let row = rule(RuleId::DiskFills);
        let mut timer = Timer::new();
        timer.step(row, (N, None), Nanos::ZERO);
        timer.step(row, (Y, None), Nanos::from_secs(1));
        timer.step(row, (Y, None), Nanos::from_secs(36_000));
        assert_eq!(timer.state(), AlarmState::Ok);
    }
}
