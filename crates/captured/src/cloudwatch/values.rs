//! The values of each volume, metric and time, of the series of all files together.

use std::collections::BTreeMap;

use super::Series;
use super::metric::{MINUTE, Metric, Quantity};
use super::statistic::{Given, Statistic};
use crate::record_error::{WrongMetrics, WrongStatistic};

/// Two values of one metric that differ by less than this share of them are equal: exports round.
const EQUAL: f64 = 1e-9;

/// A value of a period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Value {
    pub(super) value: f64,
    /// Seconds of the period, where a file says it.
    pub(super) period: Option<i64>,
}

/// Values by the start of their period, s since 1970.
pub(super) type ByTime = BTreeMap<i64, Value>;
/// The values of a volume.
pub(super) type OfVolume = BTreeMap<Quantity, ByTime>;

/// What is given of a period, and by which series.
#[derive(Debug, Default)]
struct Cell<'a> {
    given: Given,
    /// Most periods have one value.
    first: Option<Giver<'a>>,
    more: Vec<Giver<'a>>,
    period: Option<i64>,
}

/// A series that gives a statistic of a period; none where that has no name.
type Giver<'a> = (Option<Statistic>, &'a Series);

type Cells<'a> = BTreeMap<(String, Quantity), BTreeMap<i64, Cell<'a>>>;

/// Puts the values of all series together, by volume.
///
/// # Errors
/// Two values of one metric and time that differ, and statistics that do not tell what is needed.
pub(super) fn values(series: &[&Series]) -> Result<BTreeMap<String, OfVolume>, WrongMetrics> {
    let mut cells: Cells<'_> = BTreeMap::new();
    for &one in series {
        let key = (one.label.volume.clone(), one.label.metric.quantity);
        let by_time = cells.entry(key).or_default();
        for (time, given) in &one.points {
            by_time.entry(*time).or_default().take(*time, given, one)?;
        }
    }
    let mut wrong: Vec<WrongStatistic> = Vec::new();
    let mut volumes: BTreeMap<String, OfVolume> = BTreeMap::new();
    for ((volume, quantity), by_time) in &cells {
        let Some(metric) = by_time.values().find_map(|cell| Some(cell.first?.1.label.metric)) else {
            continue;
        };
        let is_minute = is_minutes(by_time);
        let of_volume = volumes.entry(volume.clone()).or_default().entry(*quantity).or_default();
        for (time, cell) in by_time {
            match cell.value(*time, metric, is_minute)? {
                Some(value) => {
                    of_volume.insert(*time, Value { value: metric.kept(value), period: cell.period });
                }
                None => note_wrong(&mut wrong, metric, cell),
            }
        }
    }
    if wrong.is_empty() { Ok(volumes) } else { Err(WrongMetrics::Statistics(wrong)) }
}

/// Whether periods are minutes: by what the files say, or by the times.
fn is_minutes(by_time: &BTreeMap<i64, Cell<'_>>) -> bool {
    match by_time.values().find_map(|cell| cell.period) {
        Some(period) => period == MINUTE,
        None => by_time.keys().zip(by_time.keys().skip(1)).any(|(time, next)| next - time == MINUTE),
    }
}

fn note_wrong(wrong: &mut Vec<WrongStatistic>, metric: &'static Metric, cell: &Cell<'_>) {
    let (found, needed) = (cell.given.names().join(" and "), metric.needed());
    let path = cell.first.map(|(_, series)| series.place.path.clone()).unwrap_or_default();
    match wrong.iter_mut().find(|known| known.found == found && known.needed == needed) {
        Some(known) if known.metrics.contains(&metric.name) => {}
        Some(known) => known.metrics.push(metric.name),
        None => wrong.push(WrongStatistic { path, metrics: vec![metric.name], found, needed }),
    }
}

fn equal(value: f64, other: f64) -> bool {
    value == other || (value - other).abs() <= EQUAL * value.abs().max(other.abs())
}

impl<'a> Cell<'a> {
    /// By whom its values are given.
    fn by(&self) -> impl Iterator<Item = Giver<'a>> {
        self.first.iter().chain(&self.more).copied()
    }

    fn give(&mut self, by: Giver<'a>) {
        match self.first {
            None => self.first = Some(by),
            Some(_) => self.more.push(by),
        }
    }

    /// Takes what a series gives of the period.
    fn take(&mut self, time: i64, given: &Given, series: &'a Series) -> Result<(), WrongMetrics> {
        for (statistic, value) in given.slots() {
            if let Some(known) = self.given.slot(statistic).filter(|known| !equal(*known, value)) {
                let first = self.by().find(|(by, _)| *by == statistic).map_or(series, |(_, first)| first);
                return Err(two_values(time, series, [(known, first), (value, series)]));
            }
            self.give((statistic, series));
        }
        if given.slots().next().is_none() {
            self.give((None, series));
        }
        if let Some([first, second]) =
            self.period.zip(series.period).map(<[i64; 2]>::from).filter(|[a, b]| a != b)
        {
            let name = series.label.metric.name;
            return Err(WrongMetrics::TwoPeriods { metrics: [name; 2], periods_s: [first, second] });
        }
        self.period = self.period.or(series.period);
        self.given.add(given);
        Ok(())
    }

    /// The value of the period; None where the statistics do not tell it.
    fn value(&self, time: i64, metric: &Metric, is_minute: bool) -> Result<Option<f64>, WrongMetrics> {
        let told = metric.value(&self.given, is_minute);
        let (Some(value), Some(unnamed)) = (told, self.given.unnamed) else {
            return Ok(told.or(self.given.unnamed));
        };
        let by = |is_named: bool| self.by().find(|(statistic, _)| statistic.is_some() == is_named);
        match (by(false), by(true)) {
            (Some((_, first)), Some((_, second))) if !equal(value, unnamed) => {
                Err(two_values(time, first, [(unnamed, first), (value, second)]))
            }
            _ => Ok(told),
        }
    }
}

fn two_values(time: i64, series: &Series, values: [(f64, &Series); 2]) -> WrongMetrics {
    let said = values.map(|(value, series)| format!("{value} of {}", series.place.said()));
    WrongMetrics::TwoValues { metric: series.label.metric.name, time: shown(time), values: said }
}

/// A time for people.
pub(super) fn shown(time: i64) -> String {
    jiff::Timestamp::from_second(time).map_or_else(|_| format!("{time} s"), |time| time.to_string())
}
