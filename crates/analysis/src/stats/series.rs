//! What one series of seconds shows about its own mean.

/// Arithmetic mean; 0 for an empty series.
#[must_use]
pub fn mean(series: &[f64]) -> f64 {
    if series.is_empty() { 0.0 } else { series.iter().sum::<f64>() / series.len() as f64 }
}

/// Sample variance (n - 1 below the line); 0 for fewer than two values.
#[must_use]
pub fn variance(series: &[f64]) -> f64 {
    if series.len() < 2 {
        return 0.0;
    }
    let mean = mean(series);
    series.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (series.len() - 1) as f64
}

/// Median; 0 for an empty series.
#[must_use]
pub fn median(series: &[f64]) -> f64 {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// Correlation of two series, -1 to 1; 0 where one of them does not vary.
#[must_use]
pub fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let product: f64 = a.iter().zip(b).map(|(x, y)| (x - mean_a) * (y - mean_b)).sum();
    let squares = |series: &[f64], mean: f64| series.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let size = (squares(a, mean_a) * squares(b, mean_b)).sqrt();
    if size > 0.0 { product / size } else { 0.0 }
}

/// A series without what another explains of it: the residuals of a straight line over the other, around
/// the series' own mean.
#[must_use]
pub fn without(series: &[f64], cause: &[f64]) -> Vec<f64> {
    let slope =
        correlation(series, cause) * (variance(series) / variance(cause).max(f64::MIN_POSITIVE)).sqrt();
    let middle = mean(cause);
    series.iter().zip(cause).map(|(value, cause)| value - slope * (cause - middle)).collect()
}

/// Variance of the mean of an autocorrelated series, by overlapping batch means: the exact value of what
/// a moving-block bootstrap of the mean would draw. 0 for fewer than eight values, which show nothing about it.
///
/// The blocks are of `sqrt(n)` values. A correlation that lasts longer than that is counted short.
#[must_use]
pub fn variance_of_mean(series: &[f64]) -> f64 {
    let n = series.len();
    let block = n.isqrt();
    if block < 2 || n < 8 {
        return 0.0;
    }
    let mean = mean(series);
    let batches = series.windows(block);
    let count = batches.len() as f64;
    let squares: f64 = batches.map(|batch| (batch.iter().sum::<f64>() / block as f64 - mean).powi(2)).sum();
    // Each block mean is measured from the mean of all, which holds the block itself.
    let unbiased = n as f64 / (n - block) as f64;
    squares / count * unbiased * block as f64 / n as f64
}

/// The noise of a series around its level, as a first-order autoregression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Variance of a value.
    pub variance: f64,
    /// Correlation of a value with the next, 0 to 0.95; never less than 0, so that noise is not taken for
    /// less than it may be.
    pub correlation: f64,
}

impl Noise {
    /// From the distances to `fitted` levels, or figures of a line.
    ///
    /// What was fitted has taken correlation out of them; Kendall's correction (1954) puts it back.
    #[must_use]
    pub fn of(residuals: &[f64], fitted: usize) -> Self {
        let n = residuals.len() as f64;
        let lost = fitted as f64;
        let squares: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
        let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let raw = if squares > 0.0 { products / squares } else { 0.0 };
        let correlation = (raw + lost * (1.0 + 4.0 * raw.max(0.0)) / n.max(1.0)).clamp(0.0, 0.95);
        Self { variance: squares / (n - lost).max(1.0), correlation }
    }

    /// As how many independent values `n` of these count.
    #[must_use]
    pub fn effective(&self, n: f64) -> f64 {
        n * (1.0 - self.correlation) / (1.0 + self.correlation)
    }

    /// Variance of the mean of `n` values.
    #[must_use]
    pub fn variance_of_mean(&self, n: f64) -> f64 {
        self.variance / self.effective(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn correlated_values_count_for_fewer() {
        let series: Vec<f64> = (0..400).map(|i| f64::sin(f64::from(i) / 5.0)).collect();
        let noise = Noise::of(&series, 1);
        assert!(noise.correlation > 0.9 && noise.effective(400.0) < 20.0, "{noise:?}");
        let alternating: Vec<f64> = (0..40).map(|i| f64::from(i % 2) - 0.5).collect();
        assert_eq!(Noise::of(&alternating, 1).correlation, 0.0);
        assert_eq!(Noise::of(&[0.0; 10], 1), Noise { variance: 0.0, correlation: 0.025 * 4.0 });
    }

    #[test]
    fn a_constant_series_has_no_doubt_about_its_mean() {
        assert_eq!(variance_of_mean(&[5.0; 60]), 0.0);
        assert_eq!(variance_of_mean(&[1.0, 2.0, 3.0]), 0.0, "too short to say");
    }
}
