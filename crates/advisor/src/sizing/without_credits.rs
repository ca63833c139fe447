//! When burst credits were used up, and what an I/O took then.

use ebbtide_observe::{LoadInterval, VolumeLoad};

use super::throttled::NO_CREDITS;

/// Times without credits that are no further apart are one, s: the credits of a moment end at once.
const TOGETHER: f64 = 1_800.0;

/// The times of a record in which its volume had no burst credits.
#[derive(Debug, Clone, PartialEq)]
pub struct WithoutCredits {
    /// Each from its start to its end, s on the clock of the load; there is one at least.
    pub spans: Vec<(f64, f64)>,
    /// Mean time of an I/O in them and outside of them, s; None where the record does not have both.
    pub latency_s: Option<(f64, f64)>,
}

impl WithoutCredits {
    /// Those of a load; None where its credits lasted, or were not recorded.
    #[must_use]
    pub fn of_load(load: &VolumeLoad) -> Option<Self> {
        let is_empty =
            |interval: &&LoadInterval| interval.credits.is_some_and(|credits| credits <= NO_CREDITS);
        let mut spans: Vec<(f64, f64)> = Vec::new();
        for interval in load.intervals.iter().filter(is_empty) {
            match spans.last_mut() {
                Some((_, end)) if interval.start_s - *end <= TOGETHER => *end = interval.end_s(),
                _ => spans.push((interval.start_s, interval.end_s())),
            }
        }
        let (empty, others): (Vec<_>, Vec<_>) = load.intervals.iter().partition(is_empty);
        let latency_s = mean_s(&empty).zip(mean_s(&others));
        (!spans.is_empty()).then_some(Self { spans, latency_s })
    }
}

/// Mean time of an I/O of these intervals, s.
fn mean_s(intervals: &[&LoadInterval]) -> Option<f64> {
    let timed = intervals.iter().filter_map(|interval| {
        let ios = interval.ios() * interval.seconds;
        Some((interval.latency_s()? * ios, ios))
    });
    let (time, ios) = timed.fold((0.0, 0.0), |(time, ios), (more, number)| (time + more, ios + number));
    (ios > 0.0).then(|| time / ios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_credits_are_joined_over_a_moment_and_have_their_latency() {
        let interval = |start_s: f64, credits: f64, ms: f64| LoadInterval {
            start_s,
            seconds: 300.0,
            reads: 100.0,
            read_s: Some(ms / 1e3),
            credits: Some(credits),
            ..LoadInterval::default()
        };
        let load = VolumeLoad {
            intervals: vec![
                interval(0.0, 1.0, 1.0),
                interval(300.0, 0.0, 50.0),
                interval(600.0, 0.02, 1.0),
                interval(900.0, 0.0, 50.0),
                interval(9_000.0, 0.0, 50.0),
            ],
        };
        let without = WithoutCredits::of_load(&load).unwrap();
        assert_eq!(without.spans, [(300.0, 1_200.0), (9_000.0, 9_300.0)]);
        let (then, otherwise) = without.latency_s.unwrap();
        assert!((then - 0.05).abs() < 1e-9 && (otherwise - 0.001).abs() < 1e-9, "{then} {otherwise}");
        let lasting = VolumeLoad { intervals: vec![interval(0.0, 0.5, 1.0)] };
        assert_eq!(WithoutCredits::of_load(&lasting), None);
    }
}
