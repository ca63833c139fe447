//! In which order trials run, and how long the rest of them will take.

use std::time::{Duration, Instant};

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::record::{Outcome, Trial};

/// A trial that is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Index of the arm.
    pub arm: usize,
    /// Which repeat of it, from 0: the round.
    pub repeat: u32,
}

/// All trials: every round holds each arm once, in an order drawn from the seed. What drifts on the
/// host over the run then falls on all arms alike.
pub fn order(arms: usize, repeats: u32, seed: u64) -> Vec<Slot> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut slots = Vec::new();
    for repeat in 0..repeats {
        let mut round: Vec<usize> = (0..arms).collect();
        shuffle(&mut round, &mut rng);
        slots.extend(round.into_iter().map(|arm| Slot { arm, repeat }));
    }
    slots
}

/// Fisher and Yates.
fn shuffle(items: &mut [usize], rng: &mut Xoshiro256PlusPlus) {
    for last in (1..items.len()).rev() {
        let bound = u64::try_from(last + 1).expect("a length fits in 64 bits");
        let other = usize::try_from(rng.next_u64() % bound).expect("it is at most the length");
        items.swap(last, other);
    }
}

/// Whether an earlier run has measured a trial. One that failed or was disqualified is run again.
pub(crate) fn is_measured(trials: &[Trial], arm: &str, repeat: u32) -> bool {
    trials
        .iter()
        .any(|trial| trial.arm == arm && trial.repeat == repeat && trial.outcome == Outcome::Measured)
}

/// How long the rest takes, by the trials that have ended in this run. Arms may differ in how long their
/// trials are planned to take, so what is learnt is by how much trials exceed their plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Eta {
    /// Of the trials that were measured: planned, and taken.
    planned: Duration,
    took: Duration,
    /// The trial that runs: its begin, and what is planned for it.
    running: Option<(Instant, Duration)>,
}

impl Eta {
    pub(crate) fn begin(&mut self, planned: Duration) {
        self.running = Some((Instant::now(), planned));
    }

    /// The trial that began last has ended. One that failed early is no estimate for the others.
    pub(crate) fn end(&mut self, measured: bool) {
        if let Some((began, planned)) = self.running.take()
            && measured
        {
            self.planned += planned;
            self.took += began.elapsed();
        }
    }

    /// Time until the end of the run, s, where `later` is planned for the trials after the present one;
    /// none before one has been measured.
    pub(crate) fn left_s(&self, later: Duration) -> Option<f64> {
        let running = self.running.map(|(began, planned)| (began.elapsed(), planned));
        estimate(self.planned, self.took, running, later)
    }
}

fn estimate(
    planned: Duration,
    took: Duration,
    running: Option<(Duration, Duration)>,
    later: Duration,
) -> Option<f64> {
    (!planned.is_zero()).then(|| {
        let excess = took.as_secs_f64() / planned.as_secs_f64();
        let present = running
            .map_or(0.0, |(spent, planned)| (planned.as_secs_f64() * excess - spent.as_secs_f64()).max(0.0));
        present + later.as_secs_f64() * excess
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_holds_each_arm_once_and_the_seed_decides_the_order() {
        let slots = order(4, 6, 7);
        for (repeat, round) in slots.chunks(4).enumerate() {
            assert!(round.iter().all(|slot| usize::try_from(slot.repeat).unwrap() == repeat));
            let mut arms: Vec<_> = round.iter().map(|slot| slot.arm).collect();
            arms.sort_unstable();
            assert_eq!(arms, [0, 1, 2, 3]);
        }
        assert_eq!(slots, order(4, 6, 7));
        assert_ne!(slots, order(4, 6, 8));
        let firsts: Vec<_> = slots.chunks(4).map(|round| round[0].arm).collect();
        assert!(firsts.iter().any(|&arm| arm != firsts[0]), "rounds are ordered anew: {firsts:?}");
    }

    #[test]
    fn every_arm_comes_first_equally_often_in_the_long_run() {
        let slots = order(3, 3_000, 1);
        for arm in 0..3 {
            let first = slots.chunks(3).filter(|round| round[0].arm == arm).count();
            assert!((900..1_100).contains(&first), "arm {arm}: {first} of 3,000 rounds");
        }
    }

    #[test]
    fn the_time_left_is_withheld_until_a_trial_has_been_measured() {
        let [ten, twenty] = [10, 20].map(Duration::from_secs);
        let five = Duration::from_secs(5);
        assert_eq!(estimate(Duration::ZERO, Duration::ZERO, Some((five, ten)), twenty), None);
        // Twice as long as planned: 15 s are left of the present one, and 40 s of the later ones.
        assert_eq!(estimate(ten, twenty, Some((five, ten)), twenty), Some(15.0 + 40.0));
        assert_eq!(estimate(ten, ten, Some((twenty, ten)), Duration::ZERO), Some(0.0), "overdue");
        assert_eq!(estimate(ten, ten, None, Duration::ZERO), Some(0.0));
    }
}
