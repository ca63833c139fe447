//! Durations that people write for a program: in options, experiments, profiles and faults.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number alone: seconds to some programs, milliseconds to others.
    #[error("'{0}' has no unit: write it like {0}s, {0}ms or {0}m")]
    NoUnit(String),
    /// Less than zero.
    #[error("'{0}' is negative")]
    Negative(String),
    /// Anything else.
    #[error("'{0}' is no duration: write it like 500us, 2ms, 90s or 10m")]
    Unreadable(String),
}

/// Reads a duration: numbers with their units, such as `500us`, `90s`, `1.5h` and `1h 30m`.
///
/// The units are `ns`, `us`, `ms`, `s`, `m` or `min`, `h` and `d`, by their long names too, and a day has 24 hours. What [`span`]
/// prints is read. A number without a unit is refused, zero too, and so is one of more than 292 years.
///
/// This is the rule of everything that is ours. A file or an option that follows another tool's format is read by that
/// tool's rule, where it is read.
///
/// [`span`]: crate::span
///
/// # Errors
/// What is wrong with the text.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let trimmed = text.trim();
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) && trimmed.parse::<f64>().is_ok() {
        return Err(DurationError::NoUnit(trimmed.into()));
    }
    let unreadable = || DurationError::Unreadable(text.into());
    // A month or a year has no length without a date, and is refused here.
    let signed: SignedDuration = trimmed
        .to_ascii_lowercase()
        .parse::<Span>()
        .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()))
        .map_err(|_| unreadable())?;
    Duration::try_from(signed).map_err(|_| DurationError::Negative(text.into()))
}

/// A duration as [`parse_duration`] reads it back, exactly: a whole number of the largest unit that divides it, hours at
/// most. `24h`, `90s`, `1500ns`; none is `0s`.
#[must_use]
pub fn duration(duration: Duration) -> String {
    const UNITS: [(u128, &str); 5] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let ns = duration.as_nanos();
    if ns == 0 {
        return "0s".to_owned();
    }
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit)).unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_numbers_with_their_units() {
        for (text, ns) in [
            ("0s", 0),
            ("1500ns", 1_500),
            ("500us", 500_000),
            ("2ms", 2_000_000),
            ("90s", 90_000_000_000),
            ("90 s", 90_000_000_000),
            (" 90S ", 90_000_000_000),
            ("10m", 600_000_000_000),
            ("10min", 600_000_000_000),
            ("1.5m", 90_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1h 30m", 5_400_000_000_000),
            ("1 hour 30 minutes", 5_400_000_000_000),
            ("PT1H30M", 5_400_000_000_000),
            ("24h", 86_400_000_000_000),
            ("30d", 2_592_000_000_000_000),
            ("1d 12h", 129_600_000_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_what_to_write() {
        for text in ["90", "0", "1.5", " 90 "] {
            let error = parse_duration(text).unwrap_err();
            assert_eq!(error, DurationError::NoUnit(text.trim().into()));
        }
        let message = parse_duration("90").unwrap_err().to_string();
        assert_eq!(message, "'90' has no unit: write it like 90s, 90ms or 90m");
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in
            ["", "s", "1parsec", "ten s", "1m 2", "2 months", "1y", "inf", "nan", "99999999999999999999s"]
        {
            assert_eq!(parse_duration(text), Err(DurationError::Unreadable(text.into())));
        }
        for text in ["-1s", "-1ms", "1s ago"] {
            assert_eq!(parse_duration(text), Err(DurationError::Negative(text.into())));
        }
    }

    #[test]
    fn a_duration_is_written_in_its_largest_whole_unit() {
        for text in ["0s", "45s", "90s", "5m", "2h", "24h", "2ms", "1500us", "1500ns", "7ns"] {
            assert_eq!(duration(parse_duration(text).unwrap()), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_the_same(ns in 0..=i64::MAX.unsigned_abs(), unit in 0..6_usize) {
            let unit = [1, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000][unit];
            let written = Duration::from_nanos(ns / unit * unit);
            prop_assert_eq!(parse_duration(&duration(written)), Ok(written));
        }

        #[test]
        fn what_is_printed_for_people_is_read_back_to_the_millisecond(ms in 0..10_000_000_000_u64) {
            let printed = Duration::from_millis(ms);
            prop_assert_eq!(parse_duration(&crate::span(printed)), Ok(printed));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".*", digits in "[0-9]{1,30}[a-z]{0,3}( [0-9]{1,30}[a-z]{0,3})?") {
            let _ = parse_duration(&text);
            let _ = parse_duration(&digits);
        }
    }
}
