//! Where a series' warm-up ends: MSER-5 (White, 1997; White, Cobb and Spratt, 2000).
//!
//! The cut is the one that leaves the mean of the rest with the smallest standard error, in batches of five
//! seconds. It assumes that the series settles within its first third. White lets it cut half, of series that are far longer
//! than a wave of flushing; of ours, half may be all of a wave's crest.

use super::series::{Noise, mean};

/// Values in a batch.
const BATCH: usize = 5;

/// Fewer values than this are not cut: what is left would show nothing.
const SHORTEST: usize = 20;

/// A part counts as warm-up from this difference to the rest on, in standard errors of the rest.
const APART: f64 = 3.0;

/// The first cut counts whose squared standard error is within this factor of the least one: noise alone
/// moves the least one to and fro, and seconds are worth keeping.
const NEARLY_LEAST: f64 = 1.1;

/// How many values at the beginning are warm-up, a multiple of five and at most a third.
///
/// MSER-5 always finds some smallest value. So that it does not cut at random what was steady from the start,
/// a part is only cut whose mean is above three standard errors from that of the rest, correlation counted in.
#[must_use]
pub fn warm_up(series: &[f64]) -> usize {
    if series.len() < SHORTEST {
        return 0;
    }
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    let errors: Vec<f64> = (0..=batches.len() / 3).map(|cut| standard_error(&batches[cut..])).collect();
    let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
    let cut = BATCH * errors.iter().position(|error| *error <= least * NEARLY_LEAST).unwrap_or(0);
    let (first, rest) = series.split_at(cut);
    if first.is_empty() {
        return 0;
    }
    let level = mean(rest);
    let noise = Noise::of(&rest.iter().map(|value| value - level).collect::<Vec<_>>(), 1);
    let lengths = [first.len() as f64, rest.len() as f64];
    let error = lengths.map(|length| noise.variance_of_mean(length)).iter().sum::<f64>().sqrt();
    if (mean(first) - level).abs() > APART * error { cut } else { 0 }
}

/// The square of MSER's standard error.
fn standard_error(batches: &[f64]) -> f64 {
    let mean = mean(batches);
    batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (batches.len() as f64).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_start_is_cut_and_no_more() {
        let series: Vec<f64> =
            (0..60).map(|i| if i < 10 { 300.0 } else { 1000.0 } + f64::from(i * 7 % 5) * 20.0).collect();
        assert_eq!(warm_up(&series), 10);
    }

    #[test]
    fn what_is_steady_or_short_is_left_alone() {
        let series: Vec<f64> = (0..60).map(|i| 1000.0 + f64::from(i * 7 % 5) * 20.0).collect();
        assert_eq!(warm_up(&series), 0);
        assert_eq!(warm_up(&[1.0, 100.0, 100.0, 100.0]), 0);
        assert_eq!(warm_up(&[]), 0);
    }
}
