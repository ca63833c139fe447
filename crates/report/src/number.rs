//! Numbers as a page carries them: four significant digits, whole ones without a point, and nothing
//! where a value is not finite, which JSON has no word for.

use ebbtide_text::{figure, latency, typeset, without_zeros};
use serde::{Serialize, Serializer, ser::SerializeSeq};

/// A number with four significant digits; null where it is not finite.
pub(crate) struct Rounded(pub(crate) f64);

impl Serialize for Rounded {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if !self.0.is_finite() {
            return to.serialize_none();
        }
        let value = four_digits(self.0);
        if value.fract() == 0.0 && value.abs() < 1e15 {
            return to.serialize_i64(whole(value));
        }
        to.serialize_f64(value)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole and below 1e15, which an i64 holds exactly")]
fn whole(value: f64) -> i64 {
    value as i64
}

/// More digits than a chart's pixels can show would only make the file larger.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().expect("a formatted number is a number")
}

/// The points of an axis: to a thousandth, because four digits would make neighbours fall together.
pub(crate) fn axis<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(values.len()))?;
    for value in values {
        let value = (value * 1e3).round() / 1e3;
        if value.fract() == 0.0 && value.abs() < 1e15 {
            list.serialize_element(&whole(value))?;
        } else {
            list.serialize_element(&value)?;
        }
    }
    list.end()
}

pub(crate) fn rounded_option<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    value.map(Rounded).serialize(to)
}

pub(crate) fn rounded_values<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(values.len()))?;
    for value in values {
        list.serialize_element(&Rounded(*value))?;
    }
    list.end()
}

pub(crate) fn rounded_options<S: Serializer>(values: &[Option<f64>], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(values.len()))?;
    for value in values {
        list.serialize_element(&value.map(Rounded))?;
    }
    list.end()
}

/// Pairs; null where there is none or an end is not finite.
pub(crate) fn rounded_pairs<S: Serializer>(pairs: &[Option<(f64, f64)>], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(pairs.len()))?;
    for pair in pairs {
        let finite = pair.filter(|(low, high)| low.is_finite() && high.is_finite());
        list.serialize_element(&finite.map(|(low, high)| (Rounded(low), Rounded(high))))?;
    }
    list.end()
}

/// Three significant digits where they are needed, no exponent: `0.034`, `12.3`, `1,235`. What the page's script has in
/// `text.js`, as the other functions below.
pub(crate) fn short(value: f64) -> String {
    without_zeros(&figure(value)).to_owned()
}

/// A time given in microseconds: `250 us`, `1.5 ms`, `2 s`, with the Greek letter.
pub(crate) fn microseconds(us: f64) -> String {
    let text = latency(us);
    let (figure, unit) = text.split_once(' ').unwrap_or((&text, ""));
    typeset(&format!("{} {unit}", without_zeros(figure)))
}

/// A size given in bytes.
pub(crate) fn bytes(value: f64) -> String {
    typeset(&ebbtide_text::bytes(value))
}

/// A span of seconds in its units: `1 h 30 min`, `0.5 s`.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        return if seconds == 0.0 { "0".into() } else { format!("{}\u{a0}s", short(seconds)) };
    }
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (unit, name) in [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min")] {
        let count = (rest / unit).floor();
        rest -= count * unit;
        if count > 0.0 {
            parts.push(format!("{count}\u{a0}{name}"));
        }
    }
    let rest = (rest * 10.0).round() / 10.0;
    if rest > 0.0 {
        parts.push(format!("{rest}\u{a0}s"));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: f64) -> String {
        serde_json::to_string(&Rounded(value)).unwrap()
    }

    #[test]
    fn numbers_take_no_more_room_than_they_need() {
        assert_eq!(written(375.0), "375");
        assert_eq!(written(0.123_456), "0.1235");
        assert_eq!(written(1_234_567.0), "1235000");
        assert_eq!(written(-2.5), "-2.5");
        assert_eq!(written(0.0), "0");
        assert_eq!(written(3.0e-7), "3e-7");
    }

    #[test]
    fn what_is_no_number_leaves_a_gap() {
        assert_eq!(written(f64::NAN), "null");
        assert_eq!(written(f64::INFINITY), "null");
    }

    #[test]
    fn numbers_are_written_as_the_script_writes_them() {
        let shorts = [0.0, 0.0345, 0.5, 1.0, 9.996, 12.34, 99.94, 100.0, 1234.5, -0.25].map(short);
        assert_eq!(shorts, ["0", "0.035", "0.5", "1", "10", "12.3", "99.9", "100", "1,235", "-0.25"]);
        let times = [250.0, 1500.0, 2e6].map(microseconds);
        assert_eq!(times, ["250\u{a0}\u{b5}s", "1.5\u{a0}ms", "2\u{a0}s"]);
        assert_eq!([512.0, 1536.0, 3e9].map(bytes), ["512\u{a0}B", "1.5\u{a0}KiB", "2.79\u{a0}GiB"]);
        let spans =
            [0.0, 0.5, 90.0, 5400.0, 86_400.0, 2000.04].map(duration).map(|span| span.replace('\u{a0}', " "));
        assert_eq!(spans, ["0", "0.5 s", "1 min 30 s", "1 h 30 min", "1 d", "33 min 20 s"]);
    }
}
