//! The open loop's arrivals: when they are due, how many wait, how many are shed. Holds no clock.

use std::collections::VecDeque;

use ebbtide_workload::Random;

use crate::execution::Arrival;
use crate::latency::whole_u64;

/// Arrivals of one event loop. Times are nanoseconds since the run's start.
#[derive(Debug)]
pub(crate) struct Schedule {
    mean_ns: f64,
    poisson: bool,
    random: Random,
    /// Kept as a float so that a period of a fraction of a nanosecond does not drift.
    next_ns: f64,
    waiting: VecDeque<u64>,
    capacity: usize,
    pub(crate) counts: ArrivalCounts,
}

/// What became of the arrivals since the last reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ArrivalCounts {
    /// Came due.
    pub(crate) due: u64,
    /// Found the backlog full.
    pub(crate) shed: u64,
    /// The longest the backlog was.
    pub(crate) longest: u64,
}

impl Schedule {
    /// The arrivals of loop `index` of `loops`; together they make `arrival`. None for a closed loop.
    pub(crate) fn new(
        arrival: Arrival,
        backlog: u32,
        index: u32,
        loops: u32,
        random: Random,
    ) -> Option<Self> {
        let per_second = arrival.per_second()? / f64::from(loops);
        let poisson = matches!(arrival, Arrival::Poisson { .. });
        let mean_ns = 1e9 / per_second;
        let capacity = usize::try_from(backlog.div_ceil(loops)).expect("a u32 fits");
        let mut schedule = Self {
            mean_ns,
            poisson,
            random,
            next_ns: 0.0,
            waiting: VecDeque::new(),
            capacity,
            counts: ArrivalCounts::default(),
        };
        // Loops at a fixed rate take turns.
        schedule.next_ns =
            if poisson { schedule.gap() } else { mean_ns * (f64::from(index) + 1.0) / f64::from(loops) };
        Some(schedule)
    }

    fn gap(&mut self) -> f64 {
        if self.poisson { self.mean_ns * self.random.exponential() } else { self.mean_ns }
    }

    /// When the next arrival is due.
    pub(crate) fn next(&self) -> u64 {
        whole_u64(self.next_ns)
    }

    /// Takes in every arrival that is due by `now`, calling `noticed` with the due time of each.
    pub(crate) fn advance(&mut self, now: u64, mut noticed: impl FnMut(u64)) {
        while self.next() <= now {
            let due = self.next();
            self.next_ns += self.gap();
            self.counts.due += 1;
            noticed(due);
            if self.waiting.len() < self.capacity {
                self.waiting.push_back(due);
            } else {
                self.counts.shed += 1;
            }
        }
        let length = u64::try_from(self.waiting.len()).expect("a length fits");
        self.counts.longest = self.counts.longest.max(length);
    }

    /// The arrival that has waited longest.
    pub(crate) fn take(&mut self) -> Option<u64> {
        self.waiting.pop_front()
    }

    /// Whether any arrival waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many wait.
    pub(crate) fn backlog(&self) -> u64 {
        u64::try_from(self.waiting.len()).expect("a length fits")
    }

    /// Empties the backlog: the arrivals that the run's end left waiting.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = u64> + '_ {
        self.waiting.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_times(arrival: Arrival, index: u32, loops: u32, until: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(arrival, 1_000_000, index, loops, Random::new(9, 0)).unwrap();
        let mut due = Vec::new();
        schedule.advance(until, |at| due.push(at));
        due
    }

    #[test]
    fn a_fixed_rate_is_even_and_does_not_drift() {
        let due = due_times(Arrival::Fixed { per_second: 3.0 }, 0, 1, 3_000_000_000_000);
        assert_eq!(due.len(), 9_000);
        assert_eq!(due[0], 333_333_333);
        assert_eq!(due[8_999], 3_000_000_000_000);
    }

    #[test]
    fn loops_at_a_fixed_rate_take_turns() {
        let mut all: Vec<u64> = (0..4)
            .flat_map(|index| due_times(Arrival::Fixed { per_second: 1_000.0 }, index, 4, 1_000_000_000))
            .collect();
        all.sort_unstable();
        assert_eq!(all.len(), 1_000);
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000), "{:?}", &all[..8]);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_the_spread_of_an_exponential() {
        println!("seed 9");
        let due = due_times(Arrival::Poisson { per_second: 1_000.0 }, 0, 1, 100_000_000_000);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{}", variance.sqrt() / mean);
    }

    #[test]
    fn arrivals_during_a_freeze_keep_the_time_they_were_due() {
        let mut schedule =
            Schedule::new(Arrival::Fixed { per_second: 5_000.0 }, 131_072, 0, 1, Random::new(1, 0)).unwrap();
        schedule.advance(1_000_000_000, |_| {});
        while schedule.take().is_some() {}
        // The generator is frozen for two seconds.
        let now = 3_000_000_000;
        let mut lags = Vec::new();
        schedule.advance(now, |due| lags.push(now - due));
        assert_eq!(lags.len(), 10_000);
        assert_eq!(schedule.take(), Some(1_000_200_000));
        assert_eq!(lags[0], 1_999_800_000);
    }

    #[test]
    fn a_full_backlog_sheds_the_newest_and_counts_them() {
        let arrival = Arrival::Fixed { per_second: 1_000.0 };
        let mut schedule = Schedule::new(arrival, 10, 0, 1, Random::new(1, 0)).unwrap();
        schedule.advance(100_000_000, |_| {});
        assert_eq!(schedule.counts, ArrivalCounts { due: 100, shed: 90, longest: 10 });
        assert_eq!(schedule.take(), Some(1_000_000));
        assert_eq!(schedule.drain().count(), 9);
        assert!(!schedule.is_waiting());
    }
}
