//! Numbers as a page carries them: four significant digits, whole ones without a point, and nothing
//! where a value is not finite, which JSON has no word for.

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
}
