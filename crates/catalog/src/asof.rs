//! The day whose limits a spec asks for.

use std::{fmt, str::FromStr};

use jiff::civil::Date;

/// A day in the past, written `2016`, `2016-11` or `2016-11-30`.
///
/// A year or a month means its first day, so that `gp2@2018` is what the year began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AsOf {
    day: Date,
    precision: Precision,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Precision {
    Year,
    Month,
    Day,
}

impl AsOf {
    /// The day meant.
    pub(crate) const fn day(self) -> Date {
        self.day
    }
}

/// A text that is not a day of the Gregorian calendar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a date: write a year, a month or a day, like 2016, 2016-11 or 2016-11-30")]
pub struct AsOfError(String);

impl FromStr for AsOf {
    type Err = AsOfError;

    fn from_str(text: &str) -> Result<Self, AsOfError> {
        let bad = || AsOfError(text.into());
        let (padded, precision) = match text.len() {
            4 => (format!("{text}-01-01"), Precision::Year),
            7 => (format!("{text}-01"), Precision::Month),
            10 => (text.to_owned(), Precision::Day),
            _ => return Err(bad()),
        };
        if !text.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            return Err(bad());
        }
        Ok(Self { day: padded.parse().map_err(|_| bad())?, precision })
    }
}

impl fmt::Display for AsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = match self.precision {
            Precision::Year => "%Y",
            Precision::Month => "%Y-%m",
            Precision::Day => "%Y-%m-%d",
        };
        write!(f, "{}", self.day.strftime(format))
    }
}
