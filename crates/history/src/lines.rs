//! Points as what is drawn: for each metric a value over time, with gaps where nothing was recorded.

use std::ops::Range;
use std::sync::Arc;

use crate::error::HistoryError;
use crate::key::{Selector, SeriesKey};
use crate::layout::{Aggregate, Layout, Value};
use crate::store::{Scanned, Store};
use crate::tier::Tier;

/// The column that each point of servers and machines has: the time that the point covers, ns. The growth of a counter divided by it
/// is a rate, also where a sample came late.
pub const SPAN: &str = "span";

/// What is drawn of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The growth of a counter, a second.
    Rate,
    /// The mean of a gauge in the interval; in seconds its value.
    Mean,
    /// The least value of a gauge in the interval; in seconds its value.
    Minimum,
    /// The greatest value of a gauge in the interval; in seconds its value.
    Maximum,
}

/// Figures of one series over time, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// The intervals.
    pub tier: Tier,
    /// When each begins, in milliseconds since 1970, in ascending order.
    pub start_ms: Vec<u64>,
    /// For each figure that was asked for a value for each interval. Where nothing was recorded there is one interval in which all
    /// are None, so that a line is not drawn across.
    pub values: Vec<Vec<Option<f64>>>,
}

/// A point of a series in a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The series.
    pub key: SeriesKey,
    /// What the subject was: the version of a server, the model of a device.
    pub kind: String,
    /// The columns.
    pub layout: Arc<Layout>,
    /// A value for each, where there is one.
    pub values: Vec<Option<Value>>,
}

/// Intervals that may be missing within a line. A sample that comes late by a part of a second leaves one second without a point,
/// and the next point covers both.
const fn tolerated(tier: Tier) -> u64 {
    match tier {
        Tier::Second => 1,
        Tier::Minute | Tier::Hour => 0,
    }
}

/// How many intervals of a replay are in memory at a time.
const REPLAYED_AT_ONCE: u64 = 60;

/// Where a column was found last, so that it is not looked for among hundreds each time.
#[derive(Debug, Default)]
struct Place(usize);

impl Place {
    fn value(&mut self, point: &Scanned<'_>, name: &str, aggregate: Aggregate) -> Option<Value> {
        let columns = point.layout.columns();
        let is_wanted = |place: usize| {
            columns.get(place).is_some_and(|column| column.aggregate == aggregate && column.name == name)
        };
        if !is_wanted(self.0) {
            self.0 = (0..columns.len()).find(|place| is_wanted(*place))?;
        }
        *point.values.get(self.0)?
    }
}

/// A figure with the places of the columns that it is made of.
struct Source<'a> {
    metric: &'a str,
    figure: Figure,
    first: Place,
    second: Place,
}

impl Source<'_> {
    fn value(&mut self, tier: Tier, point: &Scanned<'_>) -> Option<f64> {
        use Aggregate::{Count, Latest, Maximum, Minimum, Sum};
        let metric = self.metric;
        let value = match (self.figure, tier) {
            (Figure::Rate, _) => {
                let growth = self.first.value(point, metric, Sum)?.as_f64();
                let seconds = self.second.value(point, SPAN, Sum)?.as_f64() / 1e9;
                growth / seconds
            }
            (_, Tier::Second) => self.first.value(point, metric, Latest)?.as_f64(),
            (Figure::Mean, _) => {
                let sum = self.first.value(point, metric, Sum)?.as_f64();
                sum / self.second.value(point, metric, Count)?.as_f64()
            }
            (Figure::Minimum, _) => self.first.value(point, metric, Minimum)?.as_f64(),
            (Figure::Maximum, _) => self.first.value(point, metric, Maximum)?.as_f64(),
        };
        // A span or a count of 0 is no figure.
        Some(value).filter(|value| value.is_finite())
    }
}

impl Store {
    /// Figures of one series in a span of time, in milliseconds since 1970. A metric that the series does not have is None all along.
    ///
    /// # Errors
    /// As [`Store::scan`].
    pub fn lines(
        &self,
        tier: Tier,
        key: &SeriesKey,
        figures: &[(&str, Figure)],
        span_ms: &Range<u64>,
    ) -> Result<Lines, HistoryError> {
        let mut sources: Vec<Source<'_>> = figures
            .iter()
            .map(|(metric, figure)| Source {
                metric: *metric,
                figure: *figure,
                first: Place::default(),
                second: Place::default(),
            })
            .collect();
        let mut lines = Lines { tier, start_ms: Vec::new(), values: vec![Vec::new(); figures.len()] };
        let mut next: Option<u64> = None;
        self.scan_key(tier, key, numbers(tier, span_ms), |point| {
            if let Some(gap) = next.filter(|next| point.number > next + tolerated(tier)) {
                lines.start_ms.push(tier.start_ms(gap));
                lines.values.iter_mut().for_each(|values| values.push(None));
            }
            next = Some(point.number + 1);
            lines.start_ms.push(tier.start_ms(point.number));
            for (source, values) in sources.iter_mut().zip(&mut lines.values) {
                values.push(source.value(tier, &point));
            }
        })?;
        Ok(lines)
    }

    /// Visits the points of all selected series in a span of time, interval by interval: what a screen showed then. `visit` is given
    /// the time at which the interval begins, in milliseconds since 1970. Intervals without any point are left out.
    ///
    /// # Errors
    /// As [`Store::scan`].
    pub fn replay(
        &self,
        tier: Tier,
        selector: Selector<'_>,
        span_ms: &Range<u64>,
        mut visit: impl FnMut(u64, &[Replayed]),
    ) -> Result<(), HistoryError> {
        let keys: Vec<SeriesKey> = self.series(selector)?.into_iter().map(|row| row.key).collect();
        let all = numbers(tier, span_ms);
        let mut from = all.start;
        while from < all.end {
            let to = all.end.min(from.saturating_add(REPLAYED_AT_ONCE));
            let mut intervals = vec![Vec::new(); usize::try_from(to - from).unwrap_or_default()];
            for key in &keys {
                let mut known: Option<Arc<Layout>> = None;
                self.scan_key(tier, key, from..to, |point| {
                    let layout = known.take().filter(|known| **known == *point.layout);
                    let layout = layout.unwrap_or_else(|| Arc::new(point.layout.clone()));
                    known = Some(Arc::clone(&layout));
                    let place = usize::try_from(point.number - from).unwrap_or(usize::MAX);
                    if let Some(interval) = intervals.get_mut(place) {
                        let (kind, values) = (point.kind.to_owned(), point.values.to_vec());
                        interval.push(Replayed { key: key.clone(), kind, layout, values });
                    }
                })?;
            }
            for (number, interval) in (from..to).zip(&intervals) {
                if !interval.is_empty() {
                    visit(tier.start_ms(number), interval);
                }
            }
            from = to;
        }
        Ok(())
    }
}

/// The numbers of the intervals that begin in a span of time.
const fn numbers(tier: Tier, span_ms: &Range<u64>) -> Range<u64> {
    let length_ms = tier.seconds() * 1_000;
    span_ms.start.div_ceil(length_ms)..span_ms.end.div_ceil(length_ms)
}

#[cfg(test)]
mod tests;
