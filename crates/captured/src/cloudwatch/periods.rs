//! How long the period of each value is: what the files say, or how far the values are apart.

use super::Series;
use super::metric::{MINUTE, Quantity};
use crate::record_error::WrongMetrics;

/// From this number of values on, times that are equally far apart tell the period.
const REGULAR: usize = 3;

/// The times of a series.
#[derive(Debug)]
struct Run<'a> {
    series: &'a Series,
    first: i64,
    last: i64,
    /// Least seconds between two values.
    apart: i64,
    /// Whether most are so far apart, all others a multiple of it, and there are enough of them: that is no accident.
    is_regular: bool,
}

/// The periods of one volume's values, of which the files do not say how long they are.
#[derive(Debug)]
pub(super) struct Periods<'a> {
    /// Of the metrics without which there is no load.
    core: Vec<Run<'a>>,
    /// Seconds where no run tells them.
    otherwise: i64,
}

impl<'a> Run<'a> {
    fn of(series: &'a Series) -> Option<Self> {
        let times = series.times();
        let (first, last) = (*times.first()?, *times.last()?);
        let apart = || times.windows(2).map(|pair| pair[1] - pair[0]);
        let least = apart().min()?;
        let steps = apart().filter(|gap| *gap == least).count();
        let is_regular =
            times.len() >= REGULAR && 2 * steps >= times.len() - 1 && apart().all(|gap| gap % least == 0);
        Some(Self { series, first, last, apart: least, is_regular })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.first < other.last && other.first < self.last
    }

    fn name(&self) -> &'static str {
        self.series.label.metric.name
    }
}

/// Least seconds between two values of any metric; None where no metric has two.
pub(super) fn least_apart(series: &[&Series]) -> Option<i64> {
    let mut times: Vec<i64> = series.iter().flat_map(|metric| metric.times()).collect();
    times.sort_unstable();
    times.dedup();
    times.windows(2).map(|pair| pair[1] - pair[0]).min()
}

impl<'a> Periods<'a> {
    /// Looks at the series of a volume. `otherwise` is the period where their times do not tell it, s.
    ///
    /// # Errors
    /// Values that are closer together than the period that the file says, or all farther apart; metrics of different periods.
    pub(super) fn of(series: &[&'a Series], otherwise: Option<i64>) -> Result<Self, WrongMetrics> {
        let runs: Vec<Run<'a>> = series.iter().filter_map(|one| Run::of(one)).collect();
        for run in &runs {
            if let Some(period_s) = run.series.period.filter(|period| is_wrong(*period, run, &runs)) {
                return Err(WrongMetrics::Spacing { metric: run.name(), period_s, apart_s: run.apart });
            }
        }
        let is_core = |run: &Run<'_>| run.series.label.metric.quantity.is_core();
        let (core, other): (Vec<Run<'a>>, Vec<Run<'a>>) = runs.into_iter().partition(is_core);
        for (place, run) in core.iter().enumerate() {
            for second in core[place + 1..].iter().chain(&other) {
                refuse_different(run, second)?;
            }
        }
        Ok(Self { core, otherwise: otherwise.unwrap_or(MINUTE) })
    }

    /// The period of the values at a time, s; None where the next values come before its end. `next` is their time.
    pub(super) fn at(&self, time: i64, next: Option<i64>) -> Option<i64> {
        let runs = self.core.iter().filter(|run| (run.first..=run.last).contains(&time));
        let shortest = runs.min_by_key(|run| (run.apart, !run.is_regular));
        let period = shortest.map_or(self.otherwise, |run| run.apart);
        match next.map(|next| next - time).filter(|apart| *apart < period) {
            Some(_) if shortest.is_some_and(|run| run.is_regular) => None,
            // Of metrics that are published only while something happens, the times tell at most how long a period is.
            Some(apart) => Some(apart),
            None => Some(period),
        }
    }
}

/// Whether the times of a run, and of what it runs beside, contradict the period that is said.
fn is_wrong(period: i64, run: &Run<'_>, all: &[Run<'_>]) -> bool {
    let beside = all.iter().filter(|other| other.overlaps(run)).map(|other| other.apart).min();
    run.apart < period || (run.is_regular && beside.unwrap_or(run.apart).min(run.apart) > period)
}

fn refuse_different(run: &Run<'_>, other: &Run<'_>) -> Result<(), WrongMetrics> {
    let said = |run: &Run<'_>| run.series.period.unwrap_or(run.apart);
    let periods_s = [said(run), said(other)];
    let is_sure = |run: &Run<'_>| run.series.period.is_some() || run.is_regular;
    // What is published only while something happens may be farther apart than it is long, but not in equal steps.
    let longer = if periods_s[0] > periods_s[1] { run } else { other };
    if !run.overlaps(other) || periods_s[0] == periods_s[1] || !is_sure(longer) {
        return Ok(());
    }
    Err(WrongMetrics::TwoPeriods { metrics: [run.name(), other.name()], periods_s })
}

/// Whether one of a volume's quantities is of RDS.
pub(super) fn is_of_rds(quantities: impl Iterator<Item = Quantity>) -> bool {
    quantities.into_iter().any(|quantity| super::metric::CORE[1].contains(&quantity))
}
