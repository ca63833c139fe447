//! Sizes and spans of time for people: one form of each, in every table, sentence and report.
//!
//! A size that a program or a user reads back, in a spec or an option, is written by [`crate::format_size`] instead.

use alloc::format;
use alloc::string::{String, ToString};

use crate::units::{GIB, KIB, MIB, Nanos, TIB};

/// A size in the largest unit that it fills, with up to three digits: `100 GiB`, `1.15 GiB`, `4.48 MiB`, `512 B`.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let units = [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
    let Some(place) = units.iter().position(|(unit, _)| bytes >= *unit) else { return format!("{bytes} B") };
    let (unit, name) = units[place];
    let hundredths = (u128::from(bytes) * 100 + u128::from(unit) / 2) / u128::from(unit);
    let (figure, whole) = match hundredths {
        0..=999 => (hundredths, hundredths / 100),
        1_000..=9_994 => ((hundredths + 5) / 10 * 10, (hundredths + 5) / 100),
        _ => ((hundredths + 50) / 100 * 100, (hundredths + 50) / 100),
    };
    match (whole, place.checked_sub(1)) {
        // What would be rounded up to 1024 of a unit is one of the next.
        (1024, Some(next)) => format!("1 {}", units[next].1),
        _ => format!("{} {name}", decimal(figure, 2)),
    }
}

/// A span: `20 ms`, `90.5 s`, and from two minutes on `33 min 20 s`, `1 h 5 s`, `2 d 3 h`; parts that are zero are left
/// out, and less than a millisecond too.
#[must_use]
pub fn span_text(span: Nanos) -> String {
    let ms = span.0 / 1_000_000;
    if (1..1_000).contains(&ms) {
        return format!("{ms} ms");
    }
    if ms < 120_000 {
        return format!("{} s", decimal(u128::from(ms), 3));
    }
    let s = ms / 1_000;
    let mut parts = [(s / 86_400, "d"), (s % 86_400 / 3_600, "h"), (s % 3_600 / 60, "min")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect::<alloc::vec::Vec<_>>();
    let rest = ms % 60_000;
    if rest > 0 {
        parts.push(format!("{} s", decimal(u128::from(rest), 3)));
    }
    parts.join(" ")
}

/// The same of seconds, rounded to whole ones; of what is no span, zero.
#[must_use]
pub fn seconds_text(seconds: f64) -> String {
    span_text(Nanos::from_secs(whole(seconds)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_up_to_three_digits_and_never_1024_of_a_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (16 << 10, "16 KiB"),
            (4_700_000, "4.48 MiB"),
            (1_536 * MIB, "1.5 GiB"),
            (1_234_567_168, "1.15 GiB"),
            (100 * GIB, "100 GiB"),
            (12 * GIB + 350 * MIB, "12.3 GiB"),
            (99_999 * GIB / 1000, "100 GiB"),
            (MIB - 1, "1 MiB"),
            (TIB - 1, "1 TiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(size_text(bytes), text, "{bytes}");
        }
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
            assert_eq!(span_text(Nanos::from_ms(ms)), text, "{ms}");
        }
        assert_eq!(span_text(Nanos(999_999)), "0 s");
        assert_eq!([90.4, 3_604.6, -1.0, f64::NAN].map(seconds_text), ["90 s", "1 h 5 s", "0 s", "0 s"]);
    }
}
