//! Where the level of a series changes for good.
//!
//! For each number of changes up to [`MOST`] the division with the least squared error is found exactly
//! (dynamic programming: Bai and Perron, 2003). The largest number counts at which every change is larger than
//! what the noise of this division makes: a jump is compared with the standard error of the two means next to
//! it, with the correlation from one second to the next taken into account, so that flush waves and bursts
//! of noise, which are correlated, are not called changes.

use super::series::{Noise, mean, median};
use super::trend::Line;

/// A level lasts at least this long.
pub const SHORTEST: usize = 5;

/// Levels that differ by less than this share of the higher one are one level.
pub const APART: f64 = 0.10;

/// At most so many changes are looked for.
pub const MOST: usize = 4;

/// A change is larger than this many standard errors. Far more than a test at one known place takes,
/// because the best of all places is tested; the figure is calibrated by `tests/statistics`.
const ERRORS: f64 = 5.6;

/// A value further than this many standard deviations of its neighbours from their median is moved there: one
/// second of a stall is not a level.
const OUTLIER: f64 = 3.0;

/// The standard deviation of a normal distribution over the median absolute deviation.
const MAD: f64 = 1.4826;

/// The places at which a new level begins, in order; empty where there is one level, or where a straight
/// line describes the series better than levels do: that is a drift.
#[must_use]
pub fn level_changes(series: &[f64]) -> Vec<usize> {
    let tame = winsorized(series);
    let divisions = Divisions::of(&tame);
    let found = (1..=divisions.most()).rev().map(|changes| divisions.best(changes)).find(|changes| {
        let levels = means(&tame, changes);
        let apart = levels.windows(2).all(|pair| {
            (pair[1] - pair[0]).abs() >= APART * pair[0].abs().max(pair[1].abs()) && pair[0] != pair[1]
        });
        apart && are_beyond_noise(&tame, changes, &levels)
    });
    found.filter(|changes| !line_is_better(&tame, changes)).unwrap_or_default()
}

/// Moves single outliers to where their neighbours end.
fn winsorized(series: &[f64]) -> Vec<f64> {
    let near = |i: usize| &series[i.saturating_sub(SHORTEST - 1)..(i + SHORTEST).min(series.len())];
    let tame = |(i, value): (usize, &f64)| {
        let middle = median(near(i));
        let distances: Vec<f64> = near(i).iter().map(|value| (value - middle).abs()).collect();
        let most = OUTLIER * MAD * median(&distances);
        value.clamp(middle - most, middle + most)
    };
    series.iter().enumerate().map(tame).collect()
}

/// The best divisions of a series for every number of changes.
struct Divisions {
    len: usize,
    /// `begin[changes][end]`: where the last level of the values before `end` begins.
    begin: Vec<Vec<usize>>,
}

impl Divisions {
    fn of(series: &[f64]) -> Self {
        let n = series.len();
        let cost = squared_error(series);
        let most = (n / SHORTEST).saturating_sub(1).min(MOST);
        let mut least: Vec<f64> =
            (0..=n).map(|end| if end < SHORTEST { f64::INFINITY } else { cost(0, end) }).collect();
        let mut begin = vec![vec![0; n + 1]];
        for changes in 1..=most {
            let mut next = vec![f64::INFINITY; n + 1];
            let mut from_where = vec![0; n + 1];
            for end in SHORTEST * (changes + 1)..=n {
                let beginnings = SHORTEST * changes..=end - SHORTEST;
                let totals = beginnings.map(|from| (from, least[from] + cost(from, end)));
                if let Some((from, total)) = totals.min_by(|a, b| a.1.total_cmp(&b.1)) {
                    (next[end], from_where[end]) = (total, from);
                }
            }
            least = next;
            begin.push(from_where);
        }
        Self { len: n, begin }
    }

    fn most(&self) -> usize {
        self.begin.len() - 1
    }

    fn best(&self, changes: usize) -> Vec<usize> {
        let mut places = vec![self.len];
        for left in (1..=changes).rev() {
            let end = places[places.len() - 1];
            places.push(self.begin[left][end]);
        }
        places.reverse();
        places.pop();
        places
    }
}

/// The squared error of the values from one place up to another around their mean, in constant time.
fn squared_error(series: &[f64]) -> impl Fn(usize, usize) -> f64 {
    let base = mean(series);
    let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
    let (mut sum, mut square) = (0.0, 0.0);
    for value in series {
        sum += value - base;
        square += (value - base).powi(2);
        sums.push(sum);
        squares.push(square);
    }
    move |from, to| squares[to] - squares[from] - (sums[to] - sums[from]).powi(2) / (to - from) as f64
}

fn bounds(len: usize, changes: &[usize]) -> Vec<usize> {
    std::iter::once(0).chain(changes.iter().copied()).chain([len]).collect()
}

fn means(series: &[f64], changes: &[usize]) -> Vec<f64> {
    bounds(series.len(), changes).windows(2).map(|part| mean(&series[part[0]..part[1]])).collect()
}

/// Distances of the values from the level that they are on.
fn residuals(series: &[f64], changes: &[usize], levels: &[f64]) -> Vec<f64> {
    let bounds = bounds(series.len(), changes);
    let parts = bounds.windows(2).zip(levels);
    parts.flat_map(|(part, level)| series[part[0]..part[1]].iter().map(move |value| value - level)).collect()
}

fn are_beyond_noise(series: &[f64], changes: &[usize], levels: &[f64]) -> bool {
    let noise = Noise::of(&residuals(series, changes, levels), levels.len());
    let lengths: Vec<f64> =
        bounds(series.len(), changes).windows(2).map(|part| (part[1] - part[0]) as f64).collect();
    levels.windows(2).zip(lengths.windows(2)).all(|(level, length)| {
        let error = (noise.variance_of_mean(length[0]) + noise.variance_of_mean(length[1])).sqrt();
        (level[1] - level[0]).abs() > ERRORS * error
    })
}

fn line_is_better(series: &[f64], changes: &[usize]) -> bool {
    let line = Line::fit(series);
    let around_line: f64 = series.iter().enumerate().map(|(i, value)| (value - line.at(i)).powi(2)).sum();
    let around_levels: f64 =
        residuals(series, changes, &means(series, changes)).iter().map(|residual| residual.powi(2)).sum();
    around_line <= around_levels * LINE_IS_SIMPLER.powi(i32::try_from(changes.len()).unwrap_or(1))
}

/// A line has two figures, and every level adds two: it may err by so much more for each change.
const LINE_IS_SIMPLER: f64 = 1.15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cliff_is_found_where_it_is() {
        let series: Vec<f64> =
            (0..60).map(|i| if i < 37 { 900.0 } else { 120.0 } + f64::from(i * 7 % 5) * 10.0).collect();
        assert_eq!(level_changes(&series), [37]);
    }

    #[test]
    fn a_slump_has_a_begin_and_an_end() {
        let low = 20..35;
        let series: Vec<f64> = (0..60)
            .map(|i| if low.contains(&i) { 500.0 } else { 900.0 } + f64::from(i * 7 % 5) * 10.0)
            .collect();
        assert_eq!(level_changes(&series), [20, 35]);
    }

    #[test]
    fn one_second_of_a_stall_is_no_level() {
        let mut series: Vec<f64> = (0..60).map(|i| 900.0 + f64::from(i * 7 % 5) * 10.0).collect();
        series[20] = 0.0;
        assert_eq!(level_changes(&series), Vec::<usize>::new());
    }

    #[test]
    fn a_ramp_is_a_drift_and_not_a_stair() {
        let series: Vec<f64> = (0..80).map(|i| 500.0 + f64::from(i) * 10.0 + f64::from(i * 7 % 5)).collect();
        assert_eq!(level_changes(&series), Vec::<usize>::new());
    }

    #[test]
    fn short_and_constant_series_have_one_level() {
        assert!(level_changes(&[]).is_empty());
        assert!(level_changes(&[1.0; 9]).is_empty());
        assert!(level_changes(&[7.0; 100]).is_empty());
        assert!(level_changes(&[0.0; 100]).is_empty());
    }
}
