//! Longer intervals out of shorter ones: minutes of seconds, hours of minutes.

use std::ops::Range;

use crate::error::HistoryError;
use crate::key::{Selector, SeriesKey};
use crate::layout::{Layout, Value};
use crate::store::{NewPoint, Scanned, Store};
use crate::tier::Tier;

/// A longer interval that is being put together.
#[derive(Debug)]
struct Rolling {
    number: u64,
    kind: String,
    /// The columns of the points that it is made of.
    source: Layout,
    layout: Layout,
    values: Vec<Option<Value>>,
}

impl Rolling {
    fn new(number: u64, first: &Scanned<'_>) -> Self {
        Self {
            number,
            kind: first.kind.to_owned(),
            source: first.layout.clone(),
            layout: first.layout.rolled_up(),
            values: first.layout.roll(first.values),
        }
    }

    fn add(&mut self, point: &Scanned<'_>) {
        if self.source != *point.layout {
            let layout = point.layout.rolled_up();
            self.values = layout.translate(&self.layout, &self.values);
            (self.source, self.layout) = (point.layout.clone(), layout);
        }
        if self.kind != point.kind {
            point.kind.clone_into(&mut self.kind);
        }
        self.layout.add(&mut self.values, &point.layout.roll(point.values));
    }
}

impl Store {
    /// Makes intervals of the next longer tier, by their numbers, out of those of a tier, for each selected series: counters are added
    /// up, a gauge keeps sum, count, least and greatest value. An interval without any point is not written: it stays a gap. One that
    /// is there already is replaced. Returns how many were written; 0 for the longest tier.
    ///
    /// # Errors
    /// As [`Store::scan`] and [`Store::write`].
    pub fn roll_up(
        &mut self,
        tier: Tier,
        selector: Selector<'_>,
        numbers: Range<u64>,
    ) -> Result<usize, HistoryError> {
        let Some(longer) = tier.longer() else { return Ok(0) };
        let ratio = longer.seconds() / tier.seconds();
        let span = numbers.start.saturating_mul(ratio)..numbers.end.saturating_mul(ratio);
        let mut count = 0;
        // A subject that has gone has nothing to be added up.
        let first_minute = numbers.start.saturating_mul(longer.seconds()) / 60;
        for row in self.series_since(selector, first_minute)? {
            let rolled = self.rolled(tier, &row.key, &span, ratio)?;
            let points = rolled.iter().map(|rolled| NewPoint {
                key: &row.key,
                number: rolled.number,
                kind: &rolled.kind,
                layout: &rolled.layout,
                values: rolled.values.clone(),
                marks: Vec::new(),
            });
            let points: Vec<_> = points.collect();
            // Each transaction costs pages of the log, so there is none for a series that stands still.
            if !points.is_empty() {
                self.write(longer, &points)?;
            }
            count += points.len();
        }
        Ok(count)
    }

    /// The longer intervals of one series, of `ratio` shorter ones each.
    fn rolled(
        &self,
        tier: Tier,
        key: &SeriesKey,
        span: &Range<u64>,
        ratio: u64,
    ) -> Result<Vec<Rolling>, HistoryError> {
        let mut rolled: Vec<Rolling> = Vec::new();
        self.scan_key(tier, key, span.clone(), |point| {
            let number = point.number / ratio;
            match rolled.last_mut() {
                Some(latest) if latest.number == number => latest.add(&point),
                _ => rolled.push(Rolling::new(number, &point)),
            }
        })?;
        Ok(rolled)
    }
}
