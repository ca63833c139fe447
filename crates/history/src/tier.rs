//! How long the intervals of points are, and how long points are kept.

/// Intervals of one length, with two tables of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tier {
    /// Seconds, for 24 hours.
    Second,
    /// Minutes, for 15 days, as AWS keeps its own.
    Minute,
    /// Hours, for two years.
    Hour,
}

impl Tier {
    /// All of them, the shortest intervals first.
    pub const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    /// Seconds of an interval. Its number is the number of intervals since 1970.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        }
    }

    /// How many intervals are packed together. A chunk of seconds is a minute: longer ones are hardly smaller
    /// (docs/decisions/history.md), and a reader unpacks whole chunks.
    pub(crate) const fn per_chunk(self) -> u64 {
        match self {
            Self::Second | Self::Minute => 60,
            Self::Hour => 24,
        }
    }

    /// How many intervals are kept.
    #[must_use]
    pub const fn kept(self) -> u64 {
        match self {
            Self::Second => 24 * 3_600,
            Self::Minute => 15 * 24 * 60,
            Self::Hour => 2 * 365 * 24,
        }
    }

    /// The tier that is made of this one; None for the longest intervals.
    #[must_use]
    pub const fn longer(self) -> Option<Self> {
        match self {
            Self::Second => Some(Self::Minute),
            Self::Minute => Some(Self::Hour),
            Self::Hour => None,
        }
    }

    /// The shortest intervals that still cover a span of time, in milliseconds since 1970, with at most so many points a series. The
    /// longest ones where none do.
    #[must_use]
    pub fn for_span(span_ms: &std::ops::Range<u64>, now_ms: u64, most_points: u64) -> Self {
        let seconds = span_ms.end.saturating_sub(span_ms.start).div_ceil(1_000);
        let fits = |tier: &Self| {
            let oldest = tier.number(now_ms).saturating_sub(tier.kept());
            seconds.div_ceil(tier.seconds()) <= most_points && tier.number(span_ms.start) >= oldest
        };
        Self::ALL.into_iter().find(fits).unwrap_or(Self::Hour)
    }

    /// The table of points that are not packed yet.
    pub(crate) const fn points(self) -> &'static str {
        match self {
            Self::Second => "seconds",
            Self::Minute => "minutes",
            Self::Hour => "hours",
        }
    }

    /// The table of packed ones.
    pub(crate) const fn chunks(self) -> &'static str {
        match self {
            Self::Second => "second_chunks",
            Self::Minute => "minute_chunks",
            Self::Hour => "hour_chunks",
        }
    }

    /// The number of the interval that has a time, in milliseconds since 1970.
    #[must_use]
    pub const fn number(self, ms: u64) -> u64 {
        ms / 1_000 / self.seconds()
    }

    /// When an interval begins, in milliseconds since 1970.
    #[must_use]
    pub const fn start_ms(self, number: u64) -> u64 {
        number.saturating_mul(self.seconds()).saturating_mul(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_in_the_shortest_intervals_that_cover_it_with_few_points() {
        const NOW_MS: u64 = 1_790_000_000_000;
        const HOUR_MS: u64 = 3_600_000;
        let tier = |hours: u64, most| Tier::for_span(&(NOW_MS - hours * HOUR_MS..NOW_MS), NOW_MS, most);
        assert_eq!((tier(1, 3_600), tier(1, 3_599)), (Tier::Second, Tier::Minute));
        assert_eq!((tier(24, 100_000), tier(25, 100_000)), (Tier::Second, Tier::Minute));
        assert_eq!((tier(15 * 24, 100_000), tier(16 * 24, 100_000)), (Tier::Minute, Tier::Hour));
        assert_eq!(tier(10 * 365 * 24, 1), Tier::Hour, "the longest there are");
    }

    #[test]
    fn an_interval_begins_at_its_number() {
        for tier in Tier::ALL {
            let number = tier.number(1_790_000_000_999);
            assert!(
                (tier.start_ms(number)..tier.start_ms(number + 1)).contains(&1_790_000_000_999),
                "{tier:?}"
            );
        }
    }
}
