//! Time and sizes: the units that every interface of the volume uses.

use alloc::{format, string::String};
use core::time::Duration;
use core::{fmt, ops};

/// Bytes in one KiB.
pub const KIB: u64 = 1 << 10;
/// Bytes in one MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes in one GiB. Volume sizes that AWS prints as "GB" are GiB.
pub const GIB: u64 = 1 << 30;
/// Bytes in one TiB.
pub const TIB: u64 = 1 << 40;

/// A point in a volume's time, or a span of it, in nanoseconds.
///
/// The zero point is whatever the owner of the clock defines. 2^64 ns are 584 years, so sums of
/// a run's times do not overflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Nanos(pub u64);

impl Nanos {
    /// The zero point.
    pub const ZERO: Self = Self(0);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// A span of whole microseconds.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// A span of whole seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// The span in whole microseconds, rounded down.
    #[must_use]
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in seconds, for people.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to `self`; zero where `earlier` is later.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

/// Spans of more than 584 years become the longest.
impl From<Duration> for Nanos {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl ops::Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl ops::AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns @ 0..1_000 => write!(f, "{ns} ns"),
            ns @ 1_000..1_000_000 => write!(f, "{:.1} us", ns as f64 / 1e3),
            ns @ 1_000_000..1_000_000_000 => write!(f, "{:.2} ms", ns as f64 / 1e6),
            ns => write!(f, "{:.2} s", ns as f64 / 1e9),
        }
    }
}

/// A text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", not_a_size(.0))]
pub struct SizeError(String);

fn not_a_size(text: &str) -> String {
    match binary_instead(text) {
        Some(binary) => format!("'{text}' has a decimal unit, and sizes are binary: write {binary}"),
        None => format!(
            "'{text}' is not a size: give a whole number with TiB, GiB, MiB, KiB or B, below 16777216TiB, like 100GiB"
        ),
    }
}

/// What to write for a size with a decimal unit: `100GB` is `100GiB or 93GiB`, the same number of the binary unit, or as many
/// bytes, rounded. None for every other text.
#[must_use]
pub fn binary_instead(text: &str) -> Option<String> {
    const UNITS: [(&str, u64, &str, u64); 4] = [
        ("kb", 1_000, "KiB", KIB),
        ("mb", 1_000_000, "MiB", MIB),
        ("gb", 1_000_000_000, "GiB", GIB),
        ("tb", 1_000_000_000_000, "TiB", TIB),
    ];
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().ok()?;
    let unit = text[split..].trim().to_ascii_lowercase();
    let index = UNITS.iter().position(|(decimal, ..)| *decimal == unit)?;
    let (_, scale, same, _) = UNITS[index];
    let bytes = number.checked_mul(scale)?;
    // Below ten of a unit, rounding would change the size by more than a twentieth.
    let nearest = UNITS[..=index].iter().rev().find_map(|(_, _, name, unit)| {
        let count = bytes / unit + u64::from(bytes % unit >= unit / 2);
        (count >= 10).then(|| format!("{count}{name}"))
    });
    Some(format!("{number}{same} or {}", nearest.unwrap_or_else(|| format!("{bytes}B"))))
}

/// Reads a size: `100GiB`, `16k`, `4096`. One letter means the binary unit, as fio reads it; a bare
/// number is bytes. The decimal units (`GB`) are refused, since AWS and disks disagree on them.
///
/// # Errors
/// Where the text is no whole number with a known unit, or exceeds 2^64 bytes.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let bad = || SizeError(text.into());
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| bad())?;
    let unit = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => KIB,
        "m" | "mib" => MIB,
        "g" | "gib" => GIB,
        "t" | "tib" => TIB,
        _ => return Err(bad()),
    };
    number.checked_mul(unit).ok_or_else(bad)
}

/// Prints a size in the largest binary unit that divides it: `100GiB`, `1536MiB`, `17B`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")]
        .iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit))
        .map_or_else(|| format!("{bytes}B"), |(unit, name)| format!("{}{name}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn a_decimal_unit_is_answered_with_both_sizes_that_may_be_meant() {
        for (written, binary) in [
            ("100GB", "100GiB or 93GiB"),
            ("100 gb", "100GiB or 93GiB"),
            ("500GB", "500GiB or 466GiB"),
            ("1GB", "1GiB or 954MiB"),
            ("1TB", "1TiB or 931GiB"),
            ("16TB", "16TiB or 15TiB"),
            ("64kB", "64KiB or 63KiB"),
            ("1kB", "1KiB or 1000B"),
            ("0MB", "0MiB or 0B"),
        ] {
            assert_eq!(binary_instead(written).as_deref(), Some(binary), "{written}");
            let refused = parse_size(written).unwrap_err().to_string();
            assert!(refused.contains(binary), "{refused}");
        }
        for other in [
            "",
            "GB",
            "100",
            "100GiB",
            "100G",
            "1.5TB",
            "-1GB",
            "100PB",
            "99999999999999999999GB",
            "18446744073709551615TB",
        ] {
            assert_eq!(binary_instead(other), None, "{other}");
        }
    }
}
