//! Times: a latency, which a machine takes, and a span, for which people wait.

use std::time::Duration;

use crate::figure::{figure, fixed};

/// A latency given in us, with three digits and in its unit: `83 us`, `12.3 ms`, `1.00 s`. What would be rounded up to
/// a thousand of a unit is one of the next. From 9.995 us on, microseconds are whole.
#[must_use]
pub fn latency(us: f64) -> String {
    match us {
        999_500.0.. => format!("{} s", figure(us / 1e6)),
        999.5.. => format!("{} ms", figure(us / 1e3)),
        9.995.. | 0.0 => format!("{} us", fixed(us, 0)),
        _ => format!("{} us", figure(us)),
    }
}

/// A span: `20 ms`, `90.5 s`, and from two minutes on `33 min 20 s`, `1 h 5 s`, `2 d 3 h`; parts that are zero are left
/// out, and less than a millisecond too.
#[must_use]
pub fn span(span: Duration) -> String {
    let ms = span.as_millis();
    if (1..1_000).contains(&ms) {
        return format!("{ms} ms");
    }
    if ms < 120_000 {
        return format!("{} s", decimal(ms, 3));
    }
    let s = ms / 1_000;
    let mut parts = [(s / 86_400, "d"), (s % 86_400 / 3_600, "h"), (s % 3_600 / 60, "min")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect::<Vec<_>>();
    let rest = ms % 60_000;
    if rest > 0 {
        parts.push(format!("{} s", decimal(rest, 3)));
    }
    parts.join(" ")
}

/// A span that is an estimate, in seconds: whole seconds below two minutes, whole minutes below two days, whole hours from
/// then on: `71 s`, `1 h 24 min`, `5 d 3 h`.
#[must_use]
pub fn rough(seconds: f64) -> String {
    let unit = match seconds {
        172_800.0.. => 3_600.0,
        120.0.. => 60.0,
        _ => 1.0,
    };
    self::seconds((seconds / unit).round() * unit)
}

/// The same of seconds, rounded to whole ones; of what is no span, zero.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    span(Duration::from_secs(whole(seconds)))
}

/// The nearest whole number of seconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0 and a thousand years")]
fn whole(seconds: f64) -> u64 {
    if seconds.is_finite() { (seconds + 0.5).clamp(0.0, 3.2e10) as u64 } else { 0 }
}

/// A number of `10^-digits` with a point, and without zeros behind it.
fn decimal(value: u128, digits: u32) -> String {
    let unit = 10_u128.pow(digits);
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = usize::try_from(digits).unwrap_or(0);
    format!("{whole}.{}", format!("{rest:0width$}").trim_end_matches('0'))
}

/// A time in seconds since 1970 as RFC 3339 in UTC: `2026-11-28T13:04:42Z`. What is no such time stays a number.
#[must_use]
pub fn timestamp(unix_s: i64) -> String {
    jiff::Timestamp::from_second(unix_s).map_or_else(|_| unix_s.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_three_digits_at_any_size_and_never_a_thousand_of_a_unit() {
        for (us, text) in [
            (0.0, "0 us"),
            (0.42, "0.42 us"),
            (5.0, "5.00 us"),
            (83.4, "83 us"),
            (999.4, "999 us"),
            (999.6, "1.00 ms"),
            (1_234.0, "1.23 ms"),
            (9_996.0, "10.0 ms"),
            (12_345.0, "12.3 ms"),
            (99_960.0, "100 ms"),
            (123_456.0, "123 ms"),
            (999_400.0, "999 ms"),
            (999_600.0, "1.00 s"),
            (1_234_567.0, "1.23 s"),
            (95_885_040.0, "95.9 s"),
            (1.25e8, "125 s"),
            (1.25e9, "1,250 s"),
        ] {
            assert_eq!(latency(us), text);
        }
    }

    #[test]
    fn an_estimate_has_no_more_than_its_two_largest_units() {
        let texts = [71.484, 119.6, 151.0, 5_040.0, 86_400.0, 442_900.0, -1.0].map(rough);
        assert_eq!(texts, ["71 s", "2 min", "3 min", "1 h 24 min", "1 d", "5 d 3 h", "0 s"]);
    }

    #[test]
    fn spans_have_their_units_and_no_zeros() {
        for (ms, text) in [
            (0, "0 s"),
            (20, "20 ms"),
            (1_500, "1.5 s"),
            (90_500, "90.5 s"),
            (119_999, "119.999 s"),
            (120_000, "2 min"),
            (2_000_000, "33 min 20 s"),
            (3_605_000, "1 h 5 s"),
            (3_900_000, "1 h 5 min"),
            (150_250, "2 min 30.25 s"),
            (183_600_000, "2 d 3 h"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), text, "{ms}");
        }
        assert_eq!(span(Duration::from_nanos(999_999)), "0 s");
        assert_eq!([90.4, 3_604.6, -1.0, f64::NAN].map(seconds), ["90 s", "1 h 5 s", "0 s", "0 s"]);
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
    }
}
