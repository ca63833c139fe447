//! Figures of a view as the pages write them. What is not known is a dash, never zero.

/// Where there is no value.
pub(super) const UNKNOWN: &str = "\u{2013}";

fn known(value: Option<f64>, write: impl FnOnce(f64) -> String) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| UNKNOWN.to_owned(), write)
}

/// Something a second.
pub(super) fn rate(value: Option<f64>) -> String {
    known(value, ebbtide_text::rate)
}

/// A number with three digits.
pub(super) fn number(value: Option<f64>) -> String {
    known(value, ebbtide_text::figure)
}

/// A size, bytes.
pub(super) fn bytes(value: Option<f64>) -> String {
    known(value, ebbtide_text::bytes)
}

/// Bytes a second.
pub(super) fn byte_rate(value: Option<f64>) -> String {
    known(value, |value| format!("{}/s", ebbtide_text::bytes(value)))
}

/// A time that a machine takes, s.
pub(super) fn latency(value: Option<f64>) -> String {
    known(value, |value| ebbtide_text::latency(value * 1e6))
}

/// A share, 0 to 1.
pub(super) fn share(value: Option<f64>) -> String {
    known(value, ebbtide_text::percent)
}

/// A span that is an estimate, s.
pub(super) fn span(value: Option<f64>) -> String {
    known(value, ebbtide_text::rough)
}

/// A time in seconds since 1970, as the clock of the machine shows it: `2026-11-28 14:04:42`.
pub(super) fn local_time(unix_s: i64, utc_offset_s: i64) -> String {
    ebbtide_text::timestamp(unix_s.saturating_add(utc_offset_s)).trim_end_matches('Z').replace('T', " ")
}

/// What local time is ahead of UTC: `UTC`, `UTC+01:00`, `UTC-03:30`.
pub(super) fn zone(utc_offset_s: i64) -> String {
    let minutes = utc_offset_s.unsigned_abs() / 60;
    let sign = match utc_offset_s {
        ..0 => '-',
        0 => return "UTC".to_owned(),
        1.. => '+',
    };
    format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash_and_no_zero() {
        for value in [None, Some(f64::NAN), Some(f64::INFINITY)] {
            assert_eq!([rate(value), bytes(value), latency(value), share(value), span(value)], [UNKNOWN; 5]);
        }
        assert_eq!(latency(Some(0.0123)), "12.3 ms");
        assert_eq!(byte_rate(Some(1_048_576.0)), "1 MiB/s");
        assert_eq!(rate(Some(0.0)), "0.0");
    }

    #[test]
    fn times_are_local_and_say_their_zone() {
        assert_eq!(local_time(0, 3_600), "1970-01-01 01:00:00");
        assert_eq!([zone(0), zone(3_600), zone(-12_600)], ["UTC", "UTC+01:00", "UTC-03:30"]);
    }
}
