//! Values: how people write them, how servers do, and how they are shown.

use std::fmt;

use ebbtide_observe::switch;
use serde::Deserialize;

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ValueKind {
    /// A size: bytes, or with `KiB`, `MiB`, `GiB`, `TiB`, or the servers' `K`, `M`, `G`, `T`.
    Bytes,
    /// A whole number.
    Count,
    /// A share in percent, decimals allowed.
    Percent,
    /// A time: in the server's unit, or with `us`, `ms` or `s`.
    Duration,
    /// `on` or `off`; also `1`, `0`, `true`, `false`, `yes`, `no`.
    Switch,
    /// One of several words.
    Word,
    /// Anything on one line.
    Text,
}

/// The unit in which a server takes a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    Us,
    Ms,
    S,
}

impl Unit {
    const ALL: [Self; 3] = [Self::S, Self::Ms, Self::Us];

    fn suffix(self) -> &'static str {
        match self {
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }

    fn micros(self) -> u64 {
        match self {
            Self::Us => 1,
            Self::Ms => 1_000,
            Self::S => 1_000_000,
        }
    }
}

/// A value, understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Bytes, a count, or a duration in the server's unit.
    Number(u64),
    Percent(f64),
    Switch(bool),
    /// As the server writes it.
    Word(String),
    Text(String),
}

/// What a text can be read as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'a> {
    pub(crate) kind: ValueKind,
    pub(crate) unit: Unit,
    pub(crate) words: &'a [String],
}

impl Shape<'_> {
    /// Reads what people write, and what servers answer.
    pub(crate) fn read(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        match self.kind {
            ValueKind::Bytes => bytes(text).map(Value::Number),
            ValueKind::Count => text.replace('_', "").parse().ok().map(Value::Number),
            ValueKind::Percent => percent(text).map(Value::Percent),
            ValueKind::Duration => duration(text, self.unit).map(Value::Number),
            ValueKind::Switch => switch(text).map(Value::Switch),
            ValueKind::Word => self.word(text).map(Value::Word),
            ValueKind::Text => (!text.contains(['\n', '\r'])).then(|| Value::Text(text.to_owned())),
        }
    }

    fn word(&self, text: &str) -> Option<String> {
        let plain = |word: &str| word.to_ascii_lowercase().replace('_', "-");
        let known = |text: &str| self.words.iter().find(|word| plain(word) == plain(text)).cloned();
        known(text).or_else(|| known(if switch(text)? { "ON" } else { "OFF" }))
    }

    /// How a value is shown to people.
    pub(crate) fn show(&self, value: &Value) -> String {
        match value {
            Value::Number(number) => self.show_number(*number),
            Value::Percent(percent) => format!("{percent}%"),
            Value::Switch(on) => on_off(*on).to_lowercase(),
            Value::Word(word) => word.clone(),
            Value::Text(text) => text.clone(),
        }
    }

    pub(crate) fn show_number(&self, number: u64) -> String {
        match self.kind {
            ValueKind::Bytes => show_bytes(number),
            ValueKind::Duration => show_duration(number, self.unit),
            _ => number.to_string(),
        }
    }
}

/// As an option file takes it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Percent(percent) => write!(f, "{percent}"),
            Self::Switch(on) => f.write_str(on_off(*on)),
            Self::Word(text) | Self::Text(text) => f.write_str(text),
        }
    }
}

pub(crate) fn on_off(on: bool) -> &'static str {
    if on { "ON" } else { "OFF" }
}

const BYTES: [(u64, &str); 5] =
    [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];

/// A size in bytes: `134217728`, `128MiB`, `128M`, `1.5 GiB`. `MB` is none: it could mean either.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.to_ascii_lowercase();
    let (scale, _) = match unit.as_str() {
        "" => (1, ""),
        unit => *BYTES.iter().find(|(_, name)| {
            let name = name.to_ascii_lowercase();
            unit == name || (unit.len() == 1 && name.starts_with(unit))
        })?,
    };
    let number = number.trim().replace('_', "");
    match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(scale),
        Some((whole, part)) => {
            let denominator = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
            let part = part.parse::<u64>().ok()?.checked_mul(scale)?;
            let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
            (part % denominator == 0).then(|| whole.checked_add(part / denominator))?
        }
    }
}

fn show_bytes(bytes: u64) -> String {
    let exact = BYTES.iter().find(|(scale, _)| bytes >= *scale && bytes.is_multiple_of(*scale));
    match exact {
        Some((1, _)) | None => bytes.to_string(),
        Some((scale, unit)) => format!("{}{unit}", bytes / scale),
    }
}

fn percent(text: &str) -> Option<f64> {
    text.trim_end_matches('%').trim().parse().ok().filter(|percent: &f64| percent.is_finite())
}

/// A number alone is the server's, in its own unit; with a unit it is a duration as anywhere else.
fn duration(text: &str, own: Unit) -> Option<u64> {
    let text = text.replace('_', "");
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let duration = ebbtide_text::parse_duration(&text).ok()?.as_nanos();
    let own = u128::from(own.micros()) * 1_000;
    duration.is_multiple_of(own).then(|| u64::try_from(duration / own).ok())?
}

fn show_duration(number: u64, own: Unit) -> String {
    let Some(micros) = number.checked_mul(own.micros()) else { return number.to_string() };
    let fits = |unit: &Unit| micros >= unit.micros() && micros.is_multiple_of(unit.micros());
    let unit = Unit::ALL.into_iter().find(fits).unwrap_or(own);
    format!("{}{}", micros / unit.micros(), unit.suffix())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(kind: ValueKind) -> Shape<'static> {
        Shape { kind, unit: Unit::Ms, words: &[] }
    }

    #[test]
    fn sizes_are_read_in_our_units_and_in_the_servers() {
        let shape = shape(ValueKind::Bytes);
        for (text, size) in [
            ("134217728", 128 << 20),
            ("128MiB", 128 << 20),
            ("128 mib", 128 << 20),
            ("128M", 128 << 20),
            ("1g", 1 << 30),
            ("1.5GiB", 3 << 29),
            ("512B", 512),
        ] {
            assert_eq!(shape.read(text), Some(Value::Number(size)), "{text}");
        }
        for text in ["128MB", "-1", "1.0000001KiB", "lots", "", "M", "99999999T"] {
            assert_eq!(shape.read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_read_back_the_same() {
        for number in [0, 1, 512, 1024, 5 << 20, (5 << 20) + 1, 96 << 30, u64::MAX] {
            for kind in [ValueKind::Bytes, ValueKind::Count, ValueKind::Duration] {
                let shape = shape(kind);
                assert_eq!(shape.read(&shape.show_number(number)), Some(Value::Number(number)), "{kind:?}");
            }
        }
    }

    #[test]
    fn a_time_that_is_no_whole_number_of_the_servers_unit_is_refused() {
        let shape = shape(ValueKind::Duration);
        assert_eq!(shape.read("2s"), Some(Value::Number(2000)));
        assert_eq!(shape.read("2"), Some(Value::Number(2)));
        assert_eq!(shape.read("2000us"), Some(Value::Number(2)));
        assert_eq!(shape.read("2h"), Some(Value::Number(7_200_000)));
        assert_eq!(shape.read("1_000us"), Some(Value::Number(1)));
        for text in ["1500us", "-2s", "1.5", "2 parsecs"] {
            assert_eq!(shape.read(text), None, "{text}");
        }
    }

    #[test]
    fn words_are_found_in_any_case_and_on_and_off_among_them_by_any_name() {
        let words: Vec<String> = ["ON", "OFF", "DETECT_ONLY"].map(str::to_owned).into();
        let shape = Shape { kind: ValueKind::Word, unit: Unit::S, words: &words };
        assert_eq!(shape.read("detect-only"), Some(Value::Word("DETECT_ONLY".into())));
        assert_eq!(shape.read("0"), Some(Value::Word("OFF".into())));
        assert_eq!(shape.read("maybe"), None);
    }
}
