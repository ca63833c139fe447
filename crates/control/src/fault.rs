//! Faults to set and to end, and their words.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ebbtide_device::faults::{Affected, Faults};
use ebbtide_volume::{Op, SizeError, binary_instead, format_size, parse_size};
use serde::{Deserialize, Serialize};

/// One thing to break or to mend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FaultSetting {
    /// Time added to reads, to writes, or to both where `op` is none.
    Latency {
        /// Which kind of I/O.
        op: Option<Op>,
        /// The time added.
        added: Duration,
    },
    /// Share of the I/O that fails, in parts per million.
    Errors {
        /// 0 to 1,000,000.
        ppm: u32,
    },
    /// A range in which every I/O fails; none ends it.
    ErrorRange(Option<(u64, u64)>),
    /// I/O no longer completes.
    Stall(bool),
    /// The power goes, with the seed that decides what survives.
    PowerCut(Option<u64>),
    /// Writes are answered before they are stored.
    AnswerEarly(bool),
    /// Flushes are answered without flushing.
    IgnoreFlush(bool),
    /// Every fault except a power cut ends.
    Clear,
}

/// The words that a setting begins with.
const FAULTS: [&str; 8] =
    ["latency", "errors", "error-range", "stall", "power-cut", "answer-early", "ignore-flush", "clear"];

/// The fault that was meant, to follow a word that is none.
fn meant(setting: &str) -> String {
    let fault = setting.split_once('=').map_or(setting, |(fault, _)| fault);
    ebbtide_text::did_you_mean(ebbtide_text::closest(fault, FAULTS))
}

/// A word that is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error(
        "'{}' is no fault{}: use latency=, errors=, error-range=, stall=, power-cut, answer-early=, \
         ignore-flush= or clear",
        .0,
        meant(.0)
    )]
    Unknown(String),
    /// A size with a decimal unit.
    #[error("error-range: {0}")]
    Decimal(SizeError),
    /// The fault exists, its value is wrong.
    #[error("'{value}' is no value for {fault}: {expected}")]
    Value {
        /// The fault.
        fault: &'static str,
        /// What was given.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
}

impl FromStr for FaultSetting {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (fault, value) = match text.split_once('=') {
            Some((fault, value)) => (fault, Some(value)),
            None => (text, None),
        };
        let given = value.unwrap_or_default();
        match (fault, value) {
            ("clear", None) => Ok(Self::Clear),
            ("power-cut", None) => Ok(Self::PowerCut(None)),
            ("power-cut", Some(seed)) => match seed.parse() {
                Ok(seed) => Ok(Self::PowerCut(Some(seed))),
                Err(_) => wrong("power-cut", given, "give the seed as a whole number, or none"),
            },
            ("latency", _) => latency(given),
            ("errors", _) => errors(given),
            ("error-range", _) => error_range(given),
            ("stall", _) => Ok(Self::Stall(switch("stall", given)?)),
            ("answer-early", _) => Ok(Self::AnswerEarly(switch("answer-early", given)?)),
            ("ignore-flush", _) => Ok(Self::IgnoreFlush(switch("ignore-flush", given)?)),
            _ => Err(FaultError::Unknown(text.into())),
        }
    }
}

fn wrong<T>(fault: &'static str, value: &str, expected: &'static str) -> Result<T, FaultError> {
    Err(FaultError::Value { fault, value: value.into(), expected })
}

fn switch(fault: &'static str, value: &str) -> Result<bool, FaultError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => wrong(fault, value, "say on or off"),
    }
}

fn latency(value: &str) -> Result<FaultSetting, FaultError> {
    let (op, time) = match value.split_once(':') {
        Some(("read", time)) => (Some(Op::Read), time),
        Some(("write", time)) => (Some(Op::Write), time),
        Some(_) => return wrong("latency", value, "only read: or write: may precede the time"),
        None => (None, value),
    };
    match ebbtide_text::parse_duration(time) {
        Ok(added) if added <= MOST_LATENCY => Ok(FaultSetting::Latency { op, added }),
        _ => wrong("latency", value, "give a time up to 1h with its unit, like 2ms or read:500us"),
    }
}

/// More than this is a stall.
const MOST_LATENCY: Duration = Duration::from_secs(3_600);

fn errors(value: &str) -> Result<FaultSetting, FaultError> {
    match value.strip_suffix("ppm").map(str::parse) {
        Some(Ok(ppm @ 0..=1_000_000)) => Ok(FaultSetting::Errors { ppm }),
        _ => wrong("errors", value, "give parts per million from 0ppm to 1000000ppm"),
    }
}

fn error_range(value: &str) -> Result<FaultSetting, FaultError> {
    if value == "off" {
        return Ok(FaultSetting::ErrorRange(None));
    }
    for part in value.split('+').filter(|part| binary_instead(part).is_some()) {
        parse_size(part).map_err(FaultError::Decimal)?;
    }
    let range = value
        .split_once('+')
        .and_then(|(offset, len)| Some((parse_size(offset).ok()?, parse_size(len).ok()?)))
        .filter(|&(offset, len)| len > 0 && offset.checked_add(len).is_some());
    match range {
        Some(range) => Ok(FaultSetting::ErrorRange(Some(range))),
        None => wrong("error-range", value, "give OFFSET+LENGTH, like 1GiB+4KiB, or off"),
    }
}

/// The faults in force, in the words that make them; `no faults` where there are none.
#[must_use]
pub fn in_force(faults: &Faults) -> String {
    let mut all: Vec<FaultSetting> = Vec::new();
    all.extend(faults.latency.iter().map(|latency| FaultSetting::Latency {
        op: match latency.affected {
            Affected::Reads => Some(Op::Read),
            Affected::Writes => Some(Op::Write),
            Affected::All => None,
        },
        added: Duration::from_micros(latency.us.into()),
    }));
    all.extend(faults.errors.iter().map(|errors| match &errors.range {
        Some(range) => FaultSetting::ErrorRange(Some((range.start, range.end - range.start))),
        None => FaultSetting::Errors { ppm: errors.per_million },
    }));
    let switches = [
        (faults.stalled, FaultSetting::Stall(true)),
        (faults.answer_early, FaultSetting::AnswerEarly(true)),
        (faults.ignore_flush, FaultSetting::IgnoreFlush(true)),
    ];
    all.extend(switches.into_iter().filter_map(|(on, setting)| on.then_some(setting)));
    if all.is_empty() {
        return "no faults".to_owned();
    }
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// A time in the largest unit that divides it, as [`latency`] reads it.
fn time(span: Duration) -> String {
    [(60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")]
        .into_iter()
        .find(|(unit, _)| !span.is_zero() && span.as_nanos().is_multiple_of(*unit))
        .map_or_else(
            || format!("{}ns", span.as_nanos()),
            |(unit, name)| format!("{}{name}", span.as_nanos() / unit),
        )
}

impl fmt::Display for FaultSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on_off = |on: bool| if on { "on" } else { "off" };
        match self {
            Self::Latency { op, added } => {
                let kind = match op {
                    Some(Op::Read) => "read:",
                    Some(Op::Write) => "write:",
                    _ => "",
                };
                write!(f, "latency={kind}{}", time(*added))
            }
            Self::Errors { ppm } => write!(f, "errors={ppm}ppm"),
            Self::ErrorRange(None) => f.write_str("error-range=off"),
            Self::ErrorRange(Some((offset, len))) => {
                write!(f, "error-range={}+{}", format_size(*offset), format_size(*len))
            }
            Self::Stall(on) => write!(f, "stall={}", on_off(*on)),
            Self::PowerCut(None) => f.write_str("power-cut"),
            Self::PowerCut(Some(seed)) => write!(f, "power-cut={seed}"),
            Self::AnswerEarly(on) => write!(f, "answer-early={}", on_off(*on)),
            Self::IgnoreFlush(on) => write!(f, "ignore-flush={}", on_off(*on)),
            Self::Clear => f.write_str("clear"),
        }
    }
}

impl TryFrom<String> for FaultSetting {
    type Error = FaultError;

    fn try_from(text: String) -> Result<Self, FaultError> {
        text.parse()
    }
}

impl From<FaultSetting> for String {
    fn from(setting: FaultSetting) -> Self {
        setting.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_word_reads_back_as_it_was_printed() {
        for text in [
            "latency=2ms",
            "latency=read:500us",
            "latency=write:0ms",
            "latency=90s",
            "latency=2m",
            "latency=read:1500ns",
            "errors=100ppm",
            "errors=0ppm",
            "error-range=1GiB+4KiB",
            "error-range=off",
            "stall=on",
            "stall=off",
            "power-cut",
            "power-cut=7",
            "answer-early=on",
            "ignore-flush=off",
            "clear",
        ] {
            let setting: FaultSetting = text.parse().unwrap();
            assert_eq!(setting.to_string().parse(), Ok(setting), "{text}");
        }
    }

    #[test]
    fn a_range_with_a_decimal_unit_is_answered_with_the_binary_one() {
        let refused = "error-range=1GB+4KiB".parse::<FaultSetting>().unwrap_err().to_string();
        assert!(refused.contains("write 1GiB or 954MiB"), "{refused}");
        let refused = "error-range=1GiB".parse::<FaultSetting>().unwrap_err().to_string();
        assert!(refused.contains("give OFFSET+LENGTH"), "{refused}");
    }

    #[test]
    fn faults_in_force_are_reported_in_the_words_that_make_them() {
        use ebbtide_device::faults::{AddedLatency, Errors};
        let mut faults = Faults::default();
        assert_eq!(in_force(&faults), "no faults");
        faults.latency = vec![
            AddedLatency { affected: Affected::All, us: 500 },
            AddedLatency { affected: Affected::Writes, us: 5_000 },
        ];
        faults.errors = vec![
            Errors { affected: Affected::All, per_million: 100, range: None },
            Errors {
                affected: Affected::All,
                per_million: 1_000_000,
                range: Some(1 << 30..(1 << 30) + 4096),
            },
        ];
        (faults.stalled, faults.answer_early, faults.ignore_flush) = (true, true, true);
        assert_eq!(
            in_force(&faults),
            "latency=500us latency=write:5ms errors=100ppm error-range=1GiB+4KiB stall=on answer-early=on \
             ignore-flush=on"
        );
        for word in in_force(&faults).split(' ') {
            assert_eq!(word.parse::<FaultSetting>().unwrap().to_string(), word);
        }
    }

    #[test]
    fn a_wrong_word_is_refused_with_what_it_takes() {
        for (text, part) in [
            ("latency", "like 2ms"),
            ("latency=2", "like 2ms"),
            ("latency=2h", "up to 1h"),
            ("latency=trim:2ms", "only read: or write:"),
            ("errors=5", "parts per million"),
            ("errors=1000001ppm", "1000000ppm"),
            ("error-range=4096", "OFFSET+LENGTH"),
            ("error-range=0+0", "OFFSET+LENGTH"),
            ("stall", "on or off"),
            ("power-cut=x", "whole number"),
            ("explode", "is no fault"),
            ("latncy=5ms", "'latncy=5ms' is no fault (did you mean 'latency'?): use latency=, "),
        ] {
            let error = text.parse::<FaultSetting>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
