//! The floor of a device's latency, learned of the device itself.

use ebbtide_volume::{Nanos, VolumeInterval};

use crate::reading::LatencyFloor;

/// Hours that are kept.
const HOURS: usize = 24;
/// Minutes that have to be seen before anything is said.
const LEAST_MINUTES: u32 = 30;
/// A minute with fewer operations a second shows no latency.
pub(crate) const LEAST_OPS: f64 = 10.0;

/// The least mean latency of a minute, by the hour.
#[derive(Debug, Clone)]
pub(crate) struct LearnedFloor {
    hours: [HourLow; HOURS],
    minutes: u32,
    last: Option<Nanos>,
}

#[derive(Debug, Clone, Copy)]
struct HourLow {
    hour: u64,
    read_s: f64,
    write_s: f64,
}

impl LearnedFloor {
    pub(crate) const fn new() -> Self {
        let unknown = HourLow { hour: 0, read_s: f64::INFINITY, write_s: f64::INFINITY };
        Self { hours: [unknown; HOURS], minutes: 0, last: None }
    }

    /// Takes what the last minute was, once a minute.
    pub(crate) fn push(&mut self, now: Nanos, minute: &VolumeInterval) {
        if self.last.is_some_and(|last| now.since(last) < Nanos::from_secs(60)) {
            return;
        }
        self.last = Some(now);
        let mean = |ops: u64, time: Nanos| {
            let seen = minute.per_second(ops) >= LEAST_OPS;
            if seen { time.as_secs_f64() / ops as f64 } else { f64::INFINITY }
        };
        let (read_s, write_s) =
            (mean(minute.read.ops, minute.read.time), mean(minute.write.ops, minute.write.time));
        if read_s.is_finite() || write_s.is_finite() {
            self.minutes = self.minutes.saturating_add(1);
        }
        let hour = hour_of(now);
        let low = &mut self.hours[usize::try_from(hour).unwrap_or(0) % HOURS];
        if low.hour != hour {
            *low = HourLow { hour, read_s: f64::INFINITY, write_s: f64::INFINITY };
        }
        low.read_s = low.read_s.min(read_s);
        low.write_s = low.write_s.min(write_s);
    }

    /// The floor; None: too little was seen. An operation that was not seen has the floor of the other.
    pub(crate) fn floor(&self, now: Nanos) -> Option<LatencyFloor> {
        if self.minutes < LEAST_MINUTES {
            return None;
        }
        let hour = hour_of(now);
        let recent = || self.hours.iter().filter(move |low| hour.saturating_sub(low.hour) < 24);
        let read_s = recent().map(|low| low.read_s).fold(f64::INFINITY, f64::min);
        let write_s = recent().map(|low| low.write_s).fold(f64::INFINITY, f64::min);
        let either = read_s.min(write_s);
        let known = |seconds: f64| if seconds.is_finite() { seconds } else { either };
        (either.is_finite() && either > 0.0)
            .then(|| LatencyFloor { read_s: known(read_s), write_s: known(write_s) })
    }
}

const fn hour_of(now: Nanos) -> u64 {
    now.0 / 3_600_000_000_000
}

#[cfg(test)]
mod tests {
    use ebbtide_volume::{OpStats, Stats};

    use super::*;

    fn minute(ops: u64, latency_us: u64) -> VolumeInterval {
        let write = OpStats { ops, bytes: ops * 4_096, time: Nanos::from_us(ops * latency_us) };
        VolumeInterval::of_growth(Stats { at: Nanos::from_secs(60), write, ..Stats::default() })
    }

    #[test]
    fn the_floor_is_that_of_the_quietest_minute_of_a_day() {
        let mut learned = LearnedFloor::new();
        for number in 0..29 {
            learned.push(Nanos::from_secs(number * 60), &minute(6_000, 900));
        }
        assert_eq!(learned.floor(Nanos::from_secs(1_740)), None, "half an hour is needed");
        learned.push(Nanos::from_secs(1_800), &minute(6_000, 700));
        learned.push(Nanos::from_secs(1_860), &minute(6_000, 90_000));
        learned.push(Nanos::from_secs(1_920), &minute(60, 1));
        let floor = learned.floor(Nanos::from_secs(1_920)).unwrap();
        assert!(
            (floor.write_s - 700e-6).abs() < 1e-12 && (floor.read_s - floor.write_s).abs() < 1e-12,
            "{floor:?}"
        );
        assert_eq!(learned.floor(Nanos::from_secs(1_920 + 86_400)), None, "it is of the last day");
    }
}
