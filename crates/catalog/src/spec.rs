//! The text of a volume: `gp3:size=500GiB,iops=6000,throughput=250`.

use std::{fmt, str::FromStr};

use ebbtide_text::{closest, did_you_mean};
use ebbtide_volume::{KIB, MIB, TIB, binary_instead, format_size, parse_size};
use serde::{Deserialize, Serialize};

use crate::{AsOf, AsOfError};

/// The keys that a spec may give, in the order in which they are printed.
const KEYS: [&str; 5] = ["size", "iops", "throughput", "credits", "twp"];

/// Most volumes in one array: more than any EC2 instance attaches is a slip of the finger.
const MAX_MEMBERS: u16 = 128;

/// A volume or a RAID 0 of equal volumes, as text gives it.
///
/// ```text
/// SPEC   = VOLUME | "raid0(" N "x " VOLUME [ "; chunk=" SIZE ] ")"
/// VOLUME = TYPE [ "@" DATE ] [ ":" KEY "=" VALUE { "," KEY "=" VALUE } ]
/// ```
/// Parsing knows the grammar and the keys; which types exist and what they allow is decided by
/// [`Catalog::resolve`](crate::Catalog::resolve).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Spec {
    /// The volume, or each of the striped ones.
    pub volume: VolumeSpec,
    /// How it is striped; none: one plain volume.
    pub raid0: Option<Raid0>,
}

/// How an array is striped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Raid0 {
    /// Number of members, 1 to 128.
    pub members: u16,
    /// Bytes that go to one member before the next one's turn, a multiple of 4 KiB; none: the
    /// catalogue's default.
    pub chunk_bytes: Option<u64>,
}

/// One volume, as text gives it. What is left out is filled in by the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VolumeSpec {
    /// The type: `gp3`, `nvme`, `instance-store:i3en.large`, ...
    pub kind: String,
    /// The day whose limits hold; none: today's.
    pub as_of: Option<AsOf>,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// Provisioned operations a second.
    pub iops: Option<u64>,
    /// Provisioned throughput in MiB/s.
    pub throughput_mib_s: Option<u64>,
    /// Burst credits at creation.
    pub credits: Option<CreditShare>,
    /// Torn-write prevention; none: as the type has it on that day.
    pub twp: Option<bool>,
}

/// A share of full burst credits, in parts per million (0 to 1,000,000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreditShare(u32);

impl CreditShare {
    /// All credits.
    pub const FULL: Self = Self(1_000_000);

    /// A share in parts per million; more than a million counts as a million.
    #[must_use]
    pub const fn from_ppm(ppm: u32) -> Self {
        Self(if ppm > 1_000_000 { 1_000_000 } else { ppm })
    }

    /// The share as 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

/// A text that is no spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// Nothing where a type should be.
    #[error("'{0}' names no volume type: write a type first, like gp3:size=100GiB")]
    NoType(String),
    /// A type with characters that no type has.
    #[error("'{0}' is not a volume type's name: it may contain letters, digits, '-', '_', '.' and ':'")]
    TypeName(String),
    /// A part that is not `key=value`.
    #[error("'{0}' is not KEY=VALUE; the keys are {keys}", keys = KEYS.join(", "))]
    NotAPair(String),
    /// A key that does not exist.
    #[error(
        "unknown key '{key}'{suggestion}; the keys are {keys}",
        suggestion = did_you_mean(nearest.as_deref()),
        keys = KEYS.join(", ")
    )]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The known key that is most like it.
        nearest: Option<String>,
    },
    /// A key given more than once.
    #[error("'{0}' is given twice")]
    Twice(&'static str),
    /// A value that the key does not take.
    #[error("{key}={value}: {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value as written.
        value: String,
        /// What it takes instead.
        expected: &'static str,
    },
    /// A size with a decimal unit.
    #[error("{key}={value}: the unit is decimal, and sizes are binary: write {binary}")]
    Decimal {
        /// The key.
        key: &'static str,
        /// The value as written.
        value: String,
        /// What to write instead.
        binary: String,
    },
    /// A date that does not exist.
    #[error(transparent)]
    Date(#[from] AsOfError),
    /// A `raid0(...)` that does not parse.
    #[error(
        "'{0}' is not an array: write raid0(2x gp3:size=250GiB) or raid0(2x gp3:size=250GiB; chunk=64KiB)"
    )]
    Array(String),
    /// A number of members out of range.
    #[error("{0} volumes in an array: the number must be 1 to {MAX_MEMBERS}")]
    Members(String),
}

impl Spec {
    /// Reads a spec.
    ///
    /// # Errors
    /// Reports which part is wrong and what it may be.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        match text.strip_prefix("raid0") {
            Some(array) if array.trim_start().starts_with('(') => parse_array(text, array.trim()),
            _ => Ok(Self { volume: parse_volume(text)?, raid0: None }),
        }
    }

    /// Number of volumes, 1 where nothing is striped.
    #[must_use]
    pub fn members(&self) -> u16 {
        self.raid0.map_or(1, |raid0| raid0.members)
    }
}

fn parse_array(text: &str, parenthesised: &str) -> Result<Spec, SpecError> {
    let bad = || SpecError::Array(text.into());
    let inner = parenthesised.strip_prefix('(').and_then(|s| s.strip_suffix(')')).ok_or_else(bad)?;
    let (striped, option) = match inner.split_once(';') {
        Some((striped, option)) => (striped, Some(option)),
        None => (inner, None),
    };
    let (count, volume) = striped.trim().split_once('x').ok_or_else(bad)?;
    let count = count.trim();
    if count.is_empty() || !count.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let members = match count.parse::<u16>() {
        Ok(members @ 1..=MAX_MEMBERS) => members,
        _ => return Err(SpecError::Members(count.into())),
    };
    let chunk_bytes = option.map(parse_chunk).transpose()?;
    Ok(Spec { volume: parse_volume(volume.trim())?, raid0: Some(Raid0 { members, chunk_bytes }) })
}

fn parse_chunk(option: &str) -> Result<u64, SpecError> {
    let value = match option.trim().split_once('=') {
        Some((key, value)) if key.trim() == "chunk" => value.trim(),
        _ => return Err(SpecError::Array(option.trim().into())),
    };
    match parse_size(value) {
        Ok(bytes) if bytes > 0 && bytes.is_multiple_of(4 * KIB) => Ok(bytes),
        _ => Err(no_size("chunk", value, "a multiple of 4KiB, like 64KiB")),
    }
}

fn parse_volume(text: &str) -> Result<VolumeSpec, SpecError> {
    // A type may itself contain a colon (`instance-store:i3en.large`): the settings begin at the
    // colon before the first '='.
    let head_end = text.find('=').unwrap_or(text.len());
    let (head, settings) = match (text[..head_end].rfind(':'), head_end < text.len()) {
        (Some(colon), true) => (&text[..colon], Some(&text[colon + 1..])),
        (None, true) => return Err(SpecError::NoType(text.into())),
        _ => (text, None),
    };
    let (kind, as_of) = match head.split_once('@') {
        Some((kind, date)) => (kind.trim(), Some(date.trim().parse()?)),
        None => (head.trim(), None),
    };
    check_kind(kind, text)?;
    let mut volume = VolumeSpec { kind: kind.to_ascii_lowercase(), as_of, ..VolumeSpec::default() };
    for pair in settings.into_iter().flat_map(|settings| settings.split(',')) {
        let (key, value) = pair.split_once('=').ok_or_else(|| SpecError::NotAPair(pair.trim().into()))?;
        set(&mut volume, key.trim(), value.trim())?;
    }
    Ok(volume)
}

fn check_kind(kind: &str, text: &str) -> Result<(), SpecError> {
    if kind.is_empty() {
        return Err(SpecError::NoType(text.into()));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if kind.chars().all(allowed) && !kind.starts_with(':') && !kind.ends_with(':') {
        Ok(())
    } else {
        Err(SpecError::TypeName(kind.into()))
    }
}

fn set(volume: &mut VolumeSpec, key: &str, value: &str) -> Result<(), SpecError> {
    let number = |key, expected| {
        value.parse::<u64>().map_err(|_| SpecError::Value { key, value: value.into(), expected })
    };
    match key.to_ascii_lowercase().as_str() {
        "size" => once("size", &mut volume.size_bytes, parse_volume_size(value)?),
        "iops" => once("iops", &mut volume.iops, number("iops", "a whole number, like 6000")?),
        "throughput" => once("throughput", &mut volume.throughput_mib_s, parse_throughput(value)?),
        "credits" => once("credits", &mut volume.credits, parse_credits(value)?),
        "twp" => once("twp", &mut volume.twp, parse_switch(value)?),
        _ => Err(SpecError::UnknownKey { key: key.into(), nearest: closest(key, KEYS).map(str::to_owned) }),
    }
}

fn once<T>(key: &'static str, slot: &mut Option<T>, value: T) -> Result<(), SpecError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(SpecError::Twice(key)),
    }
}

/// A value that is no size, or none that the key takes.
fn no_size(key: &'static str, value: &str, expected: &'static str) -> SpecError {
    match binary_instead(value.strip_suffix("/s").unwrap_or(value)) {
        Some(binary) => SpecError::Decimal { key, value: value.into(), binary },
        None => SpecError::Value { key, value: value.into(), expected },
    }
}

/// The largest size of one volume, in bytes: a thousand times AWS's largest, and little enough that
/// [`MAX_MEMBERS`] of them are counted in 64 bits.
const MAX_VOLUME_BYTES: u64 = 65_536 * TIB;

fn parse_volume_size(value: &str) -> Result<u64, SpecError> {
    let bad = |expected| no_size("size", value, expected);
    if value.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad("a size is a whole number with its unit, like 500GiB"));
    }
    match parse_size(value) {
        Ok(bytes @ 1..=MAX_VOLUME_BYTES) if bytes.is_multiple_of(4 * KIB) => Ok(bytes),
        _ => Err(bad(
            "a whole number of TiB, GiB, MiB or KiB from 4KiB to 65536TiB, a multiple of 4KiB, like 500GiB",
        )),
    }
}

fn parse_throughput(value: &str) -> Result<u64, SpecError> {
    if let Ok(mib) = value.parse() {
        return Ok(mib);
    }
    let bad = || no_size("throughput", value, "whole MiB a second, like 250 or 250MiB/s");
    let bytes = parse_size(value.strip_suffix("/s").unwrap_or(value)).map_err(|_| bad())?;
    if bytes.is_multiple_of(MIB) { Ok(bytes / MIB) } else { Err(bad()) }
}

fn parse_credits(value: &str) -> Result<CreditShare, SpecError> {
    let bad = || SpecError::Value {
        key: "credits",
        value: value.into(),
        expected: "a percentage of full credits from 0% to 100%, like 2%",
    };
    let percent = value.strip_suffix('%').ok_or_else(bad)?.trim();
    let (whole, fraction) = percent.split_once('.').unwrap_or((percent, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 4 {
        return Err(bad());
    }
    let ppm: u64 = format!("{whole}{fraction:0<4}").parse().map_err(|_| bad())?;
    match u32::try_from(ppm) {
        Ok(ppm @ 0..=1_000_000) => Ok(CreditShare(ppm)),
        _ => Err(bad()),
    }
}

fn parse_switch(value: &str) -> Result<bool, SpecError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(SpecError::Value { key: "twp", value: value.into(), expected: "on or off" }),
    }
}

impl fmt::Display for CreditShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:04}", self.0 % 10_000);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}%", self.0 / 10_000),
            fraction => write!(f, "{}.{fraction}%", self.0 / 10_000),
        }
    }
}

impl fmt::Display for VolumeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let Some(as_of) = self.as_of {
            write!(f, "@{as_of}")?;
        }
        let settings = [
            self.size_bytes.map(|bytes| format!("size={}", format_size(bytes))),
            self.iops.map(|iops| format!("iops={iops}")),
            self.throughput_mib_s.map(|mib| format!("throughput={mib}")),
            self.credits.map(|credits| format!("credits={credits}")),
            self.twp.map(|on| format!("twp={}", if on { "on" } else { "off" })),
        ];
        let settings: Vec<_> = settings.into_iter().flatten().collect();
        if settings.is_empty() { Ok(()) } else { write!(f, ":{}", settings.join(",")) }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.raid0 {
            None => write!(f, "{}", self.volume),
            Some(Raid0 { members, chunk_bytes: None }) => write!(f, "raid0({members}x {})", self.volume),
            Some(Raid0 { members, chunk_bytes: Some(chunk) }) => {
                write!(f, "raid0({members}x {}; chunk={})", self.volume, format_size(chunk))
            }
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Spec {
    type Error = SpecError;
    fn try_from(text: String) -> Result<Self, SpecError> {
        Self::parse(&text)
    }
}

impl From<Spec> for String {
    fn from(spec: Spec) -> Self {
        spec.to_string()
    }
}
