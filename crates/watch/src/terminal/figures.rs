//! Figures in cells. One that is not known, or is no number or far too large, is a dash.

use ebbtide_text::{bytes, fixed, latency, percent, rate, rough, timestamp};

/// What stands for a figure that is not known.
pub(super) const UNKNOWN: &str = "-";

/// What no figure is larger than: a larger one comes of a counter that was read wrongly, and would fill the screen with digits.
const MOST: f64 = 1e18;

/// A figure as a function writes it.
pub(super) fn known(value: Option<f64>, write: impl FnOnce(f64) -> String) -> String {
    value.filter(|value| value.abs() <= MOST).map_or_else(|| UNKNOWN.to_owned(), write)
}

/// Events a second.
pub(super) fn per_second(value: Option<f64>) -> String {
    known(value, rate)
}

/// A number such as that of threads.
pub(super) fn number(value: Option<f64>) -> String {
    known(value, |value| if value.fract() == 0.0 { ebbtide_text::whole(value) } else { rate(value) })
}

/// A share of 1.
pub(super) fn share(value: Option<f64>) -> String {
    known(value, percent)
}

/// A mean time of I/O, given in seconds.
pub(super) fn io_time(value: Option<f64>) -> String {
    known(value, |seconds| latency(seconds * 1e6))
}

/// A time that people wait for, given in seconds.
pub(super) fn wait(value: Option<f64>) -> String {
    known(value, |seconds| rough(seconds.max(0.0)))
}

/// How far a replica is behind, given in seconds: with decimals below 10.
pub(super) fn lag(value: Option<f64>) -> String {
    known(
        value,
        |seconds| if seconds < 9.95 { format!("{} s", fixed(seconds.max(0.0), 1)) } else { rough(seconds) },
    )
}

/// Bytes.
pub(super) fn size(value: Option<f64>) -> String {
    known(value, |value| bytes(value.max(0.0)))
}

/// Bytes a second.
pub(super) fn bytes_per_second(value: Option<f64>) -> String {
    known(value, |value| format!("{}/s", bytes(value.max(0.0))))
}

/// A part of a whole; None where one is not known, or the whole is nothing.
pub(super) fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    (whole > 0.0 && part.is_finite()).then(|| part / whole)
}

/// The sum of what is known; None where nothing is.
pub(super) fn sum(first: Option<f64>, second: Option<f64>) -> Option<f64> {
    match (first, second) {
        (None, None) => None,
        (first, second) => Some(first.unwrap_or(0.0) + second.unwrap_or(0.0)),
    }
}

/// The value of a graph in its unit.
pub(super) fn in_unit(value: f64, unit: &str) -> String {
    let value = Some(value);
    match unit {
        "/s" => known(value, |value| format!("{}/s", rate(value))),
        "s" => io_time(value),
        "bytes" => size(value),
        "bytes/s" => bytes_per_second(value),
        "share" => share(value),
        _ => known(value, ebbtide_text::figure),
    }
}

/// The time of day, such as `13:04:42`, where local time is so many seconds ahead of UTC.
pub(super) fn time_of_day(unix_s: i64, utc_offset_s: i64) -> String {
    let second = unix_s.saturating_add(utc_offset_s).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

/// The same without seconds.
pub(super) fn minute_of_day(unix_s: i64, utc_offset_s: i64) -> String {
    time_of_day(unix_s, utc_offset_s)[..5].to_owned()
}

/// The day and the time of day, such as `11-28 13:04`.
pub(super) fn day_and_minute(unix_s: i64, utc_offset_s: i64) -> String {
    let local = timestamp(unix_s.saturating_add(utc_offset_s));
    let day = local.get(5..10).unwrap_or_default();
    format!("{day} {}", minute_of_day(unix_s, utc_offset_s)).trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_or_no_number_is_a_dash_and_never_zero() {
        for value in [None, Some(f64::NAN), Some(f64::INFINITY), Some(f64::MAX)] {
            for text in
                [per_second(value), share(value), io_time(value), wait(value), lag(value), size(value)]
            {
                assert_eq!(text, UNKNOWN);
            }
        }
        assert_eq!(ratio(Some(1.0), Some(0.0)), None);
        assert_eq!(sum(None, None), None);
        assert_eq!(sum(Some(2.0), None), Some(2.0));
    }

    #[test]
    fn times_are_those_of_the_user() {
        assert_eq!(time_of_day(1_796_000_000, 0), time_of_day(1_796_000_000 - 3_600, 3_600));
        assert_eq!(time_of_day(0, 5_400), "01:30:00");
        assert_eq!(time_of_day(-1, 0), "23:59:59");
        assert_eq!(day_and_minute(0, -60), "12-31 23:59");
        assert_eq!(day_and_minute(i64::MAX, 60).len(), 11, "a time out of range is no panic");
    }

    #[test]
    fn values_have_the_unit_of_their_graph() {
        let texts = [("/s", 3000.0), ("s", 0.0012), ("bytes/s", 1_048_576.0), ("share", 0.5), ("", 3.0)]
            .map(|(unit, value)| in_unit(value, unit));
        assert_eq!(texts, ["3,000/s", "1.20 ms", "1 MiB/s", "50%", "3.00"]);
    }
}
