//! Random trials as servers make them, and how often something happened among them.

use ebbtide_analysis::stats::Sample;
use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Seconds of a trial.
pub(crate) const SECONDS: usize = 60;

/// Draws what servers do. The seed is printed, and is part of the failure of every test.
pub(crate) struct Draws {
    random: Xoshiro256PlusPlus,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        println!("seed {seed}");
        Self { random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    pub(crate) fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.random)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.random.next_u64() >> 32).expect("32 bits fit") % n
    }

    /// Noise of variance 1 whose values have the correlation `r` with the next ones.
    pub(crate) fn correlated(&mut self, n: usize, r: f64) -> Vec<f64> {
        let mut value = self.normal();
        let mut series = Vec::with_capacity(n);
        for _ in 0..n {
            series.push(value);
            value = r * value + (1.0 - r * r).sqrt() * self.normal();
        }
        series
    }

    /// A trial: 1000 transactions a second, `between` from trial to trial and `inside` from second to second.
    pub(crate) fn trial(&mut self, between: f64, inside: f64, r: f64) -> Vec<f64> {
        let level = 1000.0 * (between * self.normal()).exp();
        self.correlated(SECONDS, r).iter().map(|noise| (level * (1.0 + inside * noise)).max(1.0)).collect()
    }

    /// A trial whose seconds scatter as they do on a volume at its limit, where commits wait for each other
    /// and come in crowds: from nothing to several times the mean, independent of each other.
    pub(crate) fn crowds(&mut self, between: f64) -> Vec<f64> {
        let level = 1000.0 * (between * self.normal()).exp();
        (0..SECONDS).map(|_| level * (self.normal() - 0.5).exp()).collect()
    }

    pub(crate) fn crowded_arm(&mut self, trials: usize, between: f64) -> Vec<Sample> {
        (0..trials).map(|_| Sample::of_mean(&self.crowds(between)).expect("rates are over 0")).collect()
    }

    pub(crate) fn sample(&mut self, between: f64) -> Sample {
        Sample::of_mean(&self.trial(between, 0.15, 0.6)).expect("rates are over 0")
    }

    pub(crate) fn arm(&mut self, trials: usize, between: f64) -> Vec<Sample> {
        (0..trials).map(|_| self.sample(between)).collect()
    }

    /// Flush waves: the rate falls along each wave by `depth` and comes back at once, period by period.
    pub(crate) fn waves(&mut self, n: usize, period: f64, depth: f64, inside: f64) -> Vec<f64> {
        let begin = period * (self.below(1000) as f64) / 1000.0;
        (0..n)
            .map(|second| {
                let phase = ((second as f64 + begin) / period).fract();
                1000.0 * (1.0 - depth * phase) * (1.0 + inside * self.normal()).max(0.01)
            })
            .collect()
    }
}

/// `hits` of `cases`, in percent.
pub(crate) fn percent(hits: usize, cases: usize) -> f64 {
    100.0 * hits as f64 / cases as f64
}
