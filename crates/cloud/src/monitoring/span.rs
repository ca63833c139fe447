//! The span of a query, by periods.

/// The least age of a start, in days, from which AWS rounds it to more than a minute, with the seconds to which it does (API
/// references of GetMetricStatistics and GetMetricData). The oldest come first.
const GRAINS: [(u64, u64); 2] = [(63, 3_600), (15, 300)];
const MINUTE: u64 = 60;
const DAY: u64 = 86_400;

/// A span that is cut into periods, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    /// Exclusive: no period begins at it or later.
    pub(super) end: u64,
    pub(super) period: u64,
}

impl Span {
    /// Where each period begins.
    pub(super) fn starts(self) -> impl DoubleEndedIterator<Item = u64> {
        let count = self.end.saturating_sub(self.start).div_ceil(self.period);
        (0..count).map(move |number| self.start + number * self.period)
    }
}

/// The start and end of a call or of an evaluation, in seconds since 1970. Its periods are counted from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeRange {
    start: u64,
    /// Exclusive.
    end: u64,
    /// To a multiple of how many seconds the start is rounded down.
    grain: u64,
}

impl TimeRange {
    /// That of a call, whose start AWS rounds down: to the minute, and to more where it lies long ago.
    pub(super) fn of_call(start: u64, end: u64, now_ms: u64) -> Self {
        let days = (now_ms / 1_000).saturating_sub(start) / DAY;
        let grain = GRAINS.iter().find(|(least, _)| days >= *least).map_or(MINUTE, |(_, grain)| *grain);
        Self { start, end, grain }
    }

    /// One that begins at a time exactly.
    pub(super) const fn exact(start: u64, end: u64) -> Self {
        Self { start, end, grain: 1 }
    }

    /// The same cut into periods, of which the first one begins at the start. A period below a minute, which divides one,
    /// has a start that is rounded to itself: at 01:05:23, the periods of 10 seconds begin at 01:05:20.
    pub(super) const fn periods(self, period: u64) -> Span {
        let grain = if period < MINUTE { period } else { self.grain };
        Span { start: self.start / grain * grain, end: self.end, period }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-09-21T14:15:00Z.
    const NOW: u64 = 1_790_000_100;

    /// The start of the first period, in seconds before the hour's own start.
    fn start(seconds_ago: u64, period: u64) -> u64 {
        TimeRange::of_call(NOW - seconds_ago, NOW, NOW * 1_000).periods(period).start
    }

    #[test]
    fn a_start_is_rounded_down_by_its_age_and_below_a_minute_by_the_period() {
        let minutes_of = |at: u64| at / 60 % 60;
        assert_eq!(start(57 * 60 - 34, 3_600), NOW - 57 * 60, "14:15:00 - 57 minutes + 34 seconds");
        // 14 days, 23 hours and some: to the minute.
        assert_eq!(minutes_of(start(15 * DAY - 7 * 60, 3_600)), 22);
        // 15 days and 7 minutes: 14:08 to 14:05, of 63 days: 14:00.
        assert_eq!(minutes_of(start(15 * DAY + 7 * 60, 3_600)), 5);
        assert_eq!(minutes_of(start(63 * DAY + 7 * 60, 3_600)), 0);
        // The API reference's own examples: 01:05:23 for periods of 10 seconds, 15:02:17 for those of 5.
        assert_eq!(start(37, 10), NOW - 40);
        assert_eq!(start(43, 5), NOW - 45);
        assert_eq!(start(43, 1), NOW - 43);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn periods_are_counted_from_a_start_that_is_at_most_a_minute_earlier(
            ago in 1_u64..15 * DAY,
            minutes in 1_u64..5_000,
            length in 1_u64..100_000,
        ) {
            let (first, period) = (NOW - ago, minutes * 60);
            let span = TimeRange::of_call(first, first + length, NOW * 1_000).periods(period);
            let starts: Vec<u64> = span.starts().collect();
            prop_assert_eq!(starts[0], first / 60 * 60);
            prop_assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == period));
            let last = starts[starts.len() - 1];
            prop_assert!(last < first + length && last + period >= first + length);
        }
    }
}
