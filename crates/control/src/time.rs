//! Moments, as views name them.

use std::fmt;

use ebbtide_volume::Nanos;
use serde::{Deserialize, Serialize};

/// A moment in whole seconds since 1970; as text RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct UnixTime(pub i64);

/// A text that is no time in RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no time: write it like 2026-01-31T12:00:00Z")]
pub struct TimeError(String);

impl UnixTime {
    /// The second of a moment; the last possible one where it is beyond it.
    #[must_use]
    pub fn of(at: Nanos) -> Self {
        Self::of_seconds(at.0 / Nanos::SECOND.0)
    }

    /// A moment by its seconds since 1970; the last possible one where it is beyond it.
    #[must_use]
    pub fn of_seconds(seconds: u64) -> Self {
        Self(i64::try_from(seconds).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0) {
            Ok(time) => time.fmt(f),
            // Beyond the year 9999.
            Err(_) => self.0.fmt(f),
        }
    }
}

impl From<UnixTime> for String {
    fn from(time: UnixTime) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for UnixTime {
    type Error = TimeError;

    fn try_from(text: String) -> Result<Self, TimeError> {
        let second = text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_second).ok();
        second.or_else(|| text.parse().ok()).map(Self).ok_or(TimeError(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_back_as_it_was_written() {
        for (second, text) in [(0, "1970-01-01T00:00:00Z"), (1_700_000_000, "2023-11-14T22:13:20Z")] {
            let time = UnixTime(second);
            assert_eq!(time.to_string(), text);
            assert_eq!(UnixTime::try_from(text.to_owned()), Ok(time));
        }
        let beyond = UnixTime(i64::MAX);
        assert_eq!(UnixTime::try_from(beyond.to_string()), Ok(beyond));
        UnixTime::try_from("yesterday".to_owned()).unwrap_err();
    }
}
