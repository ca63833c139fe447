//! The span of a query, by periods.

/// A span that is cut into periods, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    /// Exclusive: no period begins at it or later.
    pub(super) end: u64,
    pub(super) period: u64,
}

impl Span {
    /// Whole periods from before a start until an end; those of a day begin at midnight.
    pub(super) const fn aligned(start: u64, end: u64, period: u64) -> Self {
        Self { start: start / period * period, end, period }
    }

    /// Where each period begins.
    pub(super) fn starts(self) -> impl DoubleEndedIterator<Item = u64> {
        let count = self.end.saturating_sub(self.start).div_ceil(self.period);
        (0..count).map(move |number| self.start + number * self.period)
    }
}
