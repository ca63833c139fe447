//! Percentiles of the response time over some seconds of a trial.

use crate::record::{LoadSecond, Response, Second, TrialRecord};
use crate::stats::student::normal_below;

/// The percentiles that a summary shows, us.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Percentiles {
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
    pub(super) p99_9: f64,
}

/// Those of the load's own histogram where all seconds of the trial are meant; else put together from the
/// percentiles of the seconds.
pub(super) fn of(trial: &TrialRecord<'_>, seconds: &[&Second]) -> Percentiles {
    match trial.response {
        Some(response) if seconds.len() == trial.seconds.len() => exact(response),
        _ => together(&seconds.iter().map(|second| second.load).collect::<Vec<_>>()),
    }
}

fn exact(response: Response) -> Percentiles {
    let Response { p50_us, p95_us, p99_us, p99_9_us } = response;
    Percentiles { p50: p50_us, p95: p95_us, p99: p99_us, p99_9: p99_9_us }
}

/// Percentiles of the mixture of the seconds' distributions, each weighed with its transactions. Between
/// the percentiles that a second reports, its response times are taken to be distributed log-normally, and
/// below the median like above it; the tests show how far that is off.
fn together(seconds: &[LoadSecond]) -> Percentiles {
    let seconds: Vec<&LoadSecond> =
        seconds.iter().filter(|second| second.tps > 0.0 && second.p50_us > 0.0).collect();
    let at = |quantile| mixture_quantile(&seconds, quantile);
    Percentiles { p50: at(0.5), p95: at(0.95), p99: at(0.99), p99_9: at(0.999) }
}

fn mixture_quantile(seconds: &[&LoadSecond], quantile: f64) -> f64 {
    let all: f64 = seconds.iter().map(|second| second.tps).sum();
    if all <= 0.0 {
        return 0.0;
    }
    let shapes: Vec<Shape> = seconds.iter().map(|second| Shape::of(second)).collect();
    let below = |log: f64| -> f64 {
        let parts = seconds.iter().zip(&shapes).map(|(second, shape)| second.tps * shape.share_below(log));
        parts.sum::<f64>() / all
    };
    let mut low = shapes.iter().map(Shape::lowest).fold(f64::INFINITY, f64::min);
    let mut high = shapes.iter().map(Shape::highest).fold(f64::NEG_INFINITY, f64::max);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if below(middle) < quantile { low = middle } else { high = middle }
    }
    high.exp()
}

/// Where a standard normal distribution has the shares that a second reports: the median, 95%, 99%, 99.9%, and
/// the largest value, taken as the one that 1 of 10,000 exceeds.
const PLACES: [f64; 5] = [0.0, 1.6449, 2.3263, 3.0902, 3.7190];

/// Places of a second's distribution, rising: how far out, and the logarithm of the time there.
struct Shape([(f64, f64); 9]);

impl Shape {
    fn of(second: &LoadSecond) -> Self {
        let mut least = 0.0_f64;
        let logs = [second.p50_us, second.p95_us, second.p99_us, second.p99_9_us, second.max_us].map(|us| {
            least = least.max(us);
            least.ln()
        });
        let mut places = [(0.0, logs[0]); 9];
        for (index, (place, log)) in PLACES.into_iter().zip(logs).enumerate().skip(1) {
            places[4 + index] = (place, log);
            places[4 - index] = (-place, 2.0 * logs[0] - log);
        }
        Self(places)
    }

    fn lowest(&self) -> f64 {
        self.0[0].1
    }

    fn highest(&self) -> f64 {
        self.0[8].1
    }

    /// Share of the transactions that took at most `e^log` us.
    fn share_below(&self, log: f64) -> f64 {
        let Some(above) = self.0.iter().position(|(_, knot)| *knot > log) else { return 1.0 };
        let Some(before) = above.checked_sub(1) else { return 0.0 };
        let ((from, left), (to, right)) = (self.0[before], self.0[above]);
        normal_below(from + (to - from) * (log - left) / (right - left))
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;
    use rand_distr::{Distribution, LogNormal};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn at(sorted: &[f64], quantile: f64) -> f64 {
        let rank = (quantile * sorted.len() as f64).ceil().max(1.0);
        sorted[(0..sorted.len()).find(|place| (place + 1) as f64 >= rank).unwrap()]
    }

    #[test]
    fn seconds_together_have_nearly_the_percentiles_of_all_their_transactions() {
        println!("seed 11");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut all = Vec::new();
        let mut seconds = Vec::new();
        for second in 0..60 {
            // A third of the seconds is slow, and has fewer transactions.
            let (median, count) = if second % 3 == 0 { (9000.0_f64, 300) } else { (2000.0, 900) };
            let law = LogNormal::new(median.ln(), 0.5).unwrap();
            let mut sorted: Vec<f64> = (0..count).map(|_| law.sample(&mut random)).collect();
            sorted.sort_by(f64::total_cmp);
            seconds.push(LoadSecond {
                tps: f64::from(count),
                p50_us: at(&sorted, 0.5),
                p95_us: at(&sorted, 0.95),
                p99_us: at(&sorted, 0.99),
                p99_9_us: at(&sorted, 0.999),
                max_us: sorted[sorted.len() - 1],
                ..LoadSecond::default()
            });
            all.extend(sorted);
        }
        all.sort_by(f64::total_cmp);
        let ours = together(&seconds);
        for (got, quantile, allowed) in
            [(ours.p50, 0.5, 0.02), (ours.p95, 0.95, 0.02), (ours.p99, 0.99, 0.02), (ours.p99_9, 0.999, 0.08)]
        {
            let error = got / at(&all, quantile) - 1.0;
            println!("quantile {quantile}: off by {:.1}%", 100.0 * error);
            assert!(error.abs() < allowed, "quantile {quantile}: {error}");
        }
    }

    #[test]
    fn seconds_without_transactions_show_nothing() {
        assert_eq!(together(&[LoadSecond::default()]), Percentiles::default());
    }
}
