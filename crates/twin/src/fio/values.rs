//! The values of fio's words.

use ebbtide_volume::{GIB, KIB, MIB, Nanos, parse_size};

use super::{BlockSizes, Distribution, FioError};
use crate::job::Extent;

/// Longest span that a word takes: ten years.
const LONGEST_S: u64 = 10 * 365 * 86_400;
/// The largest block; fio's own bound is the memory, and no volume sees larger requests than this.
const LARGEST_BLOCK: u64 = 64 * MIB;

/// A span of time; a bare number counts `default_unit_ns`.
pub(super) fn time(word: &str, value: &str, default_unit_ns: u64) -> Result<Nanos, FioError> {
    let bad = || {
        FioError::value(
            word,
            value,
            "a whole number with us, ms, s, m, h or d, up to 3650d, like 90, 90s, 5m, 3h or 500ms",
        )
    };
    let split = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let number: u64 = value[..split].parse().map_err(|_| bad())?;
    let unit = match value[split..].trim().to_ascii_lowercase().as_str() {
        "" => default_unit_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(bad()),
    };
    let span = number.checked_mul(unit).filter(|&ns| ns <= LONGEST_S * 1_000_000_000);
    span.map(Nanos).ok_or_else(bad)
}

/// A whole number within bounds.
pub(super) fn number<T>(word: &str, value: &str, from: T, to: T) -> Result<T, FioError>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display + Copy,
{
    let number: Option<T> = value.parse().ok().filter(|number| (from..=to).contains(number));
    number.ok_or_else(|| FioError::value(word, value, format!("a whole number from {from} to {to}")))
}

/// A flag: the bare word, or 0 or 1.
pub(super) fn flag(word: &str, value: &str) -> Result<bool, FioError> {
    match value {
        "" | "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(FioError::value(word, value, "nothing, 0 or 1")),
    }
}

/// One value for reads and one for writes; a single one holds for both, and an empty one leaves
/// the side as it is.
pub(super) fn sides<T: Clone>(
    value: &str,
    read: impl Fn(&str) -> Result<T, FioError>,
) -> Result<[Option<T>; 2], FioError> {
    let mut parts = value.split(',');
    let side = |text: Option<&str>| match text {
        None | Some("") => Ok(None),
        Some(text) => read(text).map(Some),
    };
    let first = side(parts.next())?;
    match parts.next() {
        None => Ok([first.clone(), first]),
        second => Ok([first, side(second)?]),
    }
}

/// A block size in bytes.
pub(super) fn block(word: &str, value: &str) -> Result<u32, FioError> {
    let bytes = parse_size(value)
        .ok()
        .filter(|bytes| (512..=LARGEST_BLOCK).contains(bytes) && bytes.is_multiple_of(512));
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| FioError::value(word, value, "a multiple of 512 from 512 to 64m, like 4k or 16k"))
}

/// Block sizes with shares: `4k/10:64k/50:32k/40`; shares left out split what remains.
pub(super) fn block_shares(word: &str, value: &str) -> Result<BlockSizes, FioError> {
    let bad = || FioError::value(word, value, "sizes with percentages that add up to 100, like 4k/10:64k/90");
    let mut shares: Vec<(u32, Option<u8>)> = Vec::new();
    for part in value.split(':') {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent {
            "" => None,
            percent => Some(percent.parse::<u8>().map_err(|_| bad())?),
        };
        shares.push((block(word, size)?, percent));
    }
    let given: u32 = shares.iter().filter_map(|(_, percent)| *percent).map(u32::from).sum();
    let mut rest = 100_u32.checked_sub(given).ok_or_else(bad)?;
    let mut open =
        u32::try_from(shares.iter().filter(|(_, percent)| percent.is_none()).count()).map_err(|_| bad())?;
    if open == 0 && rest > 0 {
        return Err(bad());
    }
    let shares = shares.into_iter().map(|(bytes, percent)| {
        let percent = percent.unwrap_or_else(|| {
            let share = rest / open;
            rest -= share;
            open -= 1;
            u8::try_from(share).expect("a share of at most 100")
        });
        (bytes, percent)
    });
    Ok(BlockSizes { shares: shares.collect() })
}

/// A size in bytes, or a percentage of the volume.
pub(super) fn extent(word: &str, value: &str) -> Result<Extent, FioError> {
    let bad = || FioError::value(word, value, "a size like 10g, or a percentage of the volume like 25%");
    match value.strip_suffix('%') {
        Some(percent) => percent.parse().ok().filter(|&p| p <= 100).map(Extent::Percent).ok_or_else(bad),
        None => bytes(word, value).map(Extent::Bytes).map_err(|_| bad()),
    }
}

/// A number of bytes above zero... or zero, where the word allows it.
pub(super) fn bytes(word: &str, value: &str) -> Result<u64, FioError> {
    parse_size(value).map_err(|_| {
        FioError::value(word, value, "a whole number of bytes with k, m, g or t (binary units), like 10g")
    })
}

/// Bytes a second, at least one and at most a TiB.
pub(super) fn byte_rate(word: &str, value: &str) -> Result<u64, FioError> {
    let rate = bytes(word, value).ok().filter(|rate| (1..=KIB * GIB).contains(rate));
    rate.ok_or_else(|| FioError::value(word, value, "bytes a second from 1 to 1t, like 500k or 100m"))
}

/// How random I/O is spread.
pub(super) fn distribution(word: &str, value: &str) -> Result<Distribution, FioError> {
    let mut parts = value.split(':');
    let name = parts.next().unwrap_or_default();
    let parameter: Option<f64> = parts.next().and_then(|text| text.parse().ok());
    if parts.next().is_some() {
        return Err(FioError::Unsupported {
            word: format!("{word}={value}"),
            instead: "leave the centre out; popular blocks are scattered over the extent",
        });
    }
    match (name, parameter) {
        ("random", _) => Ok(Distribution::Uniform),
        ("zipf", Some(theta)) if theta > 0.0 && theta <= 10.0 => Ok(Distribution::Zipf { theta }),
        ("zipf", _) => {
            Err(FioError::value(word, value, "zipf:THETA with THETA above 0 and up to 10, like zipf:1.2"))
        }
        ("pareto", Some(h)) if h > 0.0 && h < 1.0 => Ok(Distribution::Pareto { h }),
        ("pareto", _) => {
            Err(FioError::value(word, value, "pareto:H with H between 0 and 1, like pareto:0.2"))
        }
        ("normal" | "zoned" | "zoned_abs", _) => Err(FioError::Unsupported {
            word: format!("{word}={name}"),
            instead: "use random, zipf:THETA or pareto:H",
        }),
        _ => Err(FioError::value(word, value, "random, zipf:THETA or pareto:H")),
    }
}
