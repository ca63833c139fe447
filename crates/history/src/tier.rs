//! How long the intervals of points are, and how long points are kept.

/// Intervals of one length, with two tables of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tier {
    /// Minutes, for 15 days, as AWS keeps its own.
    Minute,
}

impl Tier {
    /// Seconds of an interval. Its number is the number of intervals since 1970.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Minute => 60,
        }
    }

    /// How many intervals are packed together.
    pub(crate) const fn per_chunk(self) -> u64 {
        match self {
            Self::Minute => 60,
        }
    }

    /// How many intervals are kept.
    #[must_use]
    pub const fn kept(self) -> u64 {
        match self {
            Self::Minute => 15 * 24 * 60,
        }
    }

    /// The table of points that are not packed yet.
    pub(crate) const fn points(self) -> &'static str {
        match self {
            Self::Minute => "minutes",
        }
    }

    /// The table of packed ones.
    pub(crate) const fn chunks(self) -> &'static str {
        match self {
            Self::Minute => "minute_chunks",
        }
    }

    /// The number of the interval that has a time.
    pub(crate) const fn number(self, ms: u64) -> u64 {
        ms / 1_000 / self.seconds()
    }
}
