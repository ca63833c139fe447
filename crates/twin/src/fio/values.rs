//! The values of fio's words.

use ebbtide_volume::{GIB, KIB, MIB, Nanos};

use super::units::{self, Reading};
use super::{BlockSizes, Distribution, FioError};
use crate::job::Extent;

/// Longest span that a word takes: ten years.
const LONGEST_S: u64 = 10 * 365 * 86_400;
/// The largest block; fio's own bound is the memory, and no volume sees larger requests than this.
const LARGEST_BLOCK: u64 = 64 * MIB;

/// What a span of time is, for messages.
pub(super) const SPAN: &str =
    "a whole number with us, ms, s, m, h or d, up to 3650d, like 90, 90s, 5m, 3h or 500ms";

/// A span of time; a bare number counts `default_unit_ns`.
pub(super) fn time(word: &str, value: &str, default_unit_ns: u64) -> Result<Nanos, FioError> {
    match units::span(value, default_unit_ns) {
        Some(Reading { value: ns, whole: true }) if ns <= LONGEST_S * 1_000_000_000 => Ok(Nanos(ns)),
        Some(Reading { value: ns, whole: false }) if !value.starts_with('-') => {
            let expected = format!("{SPAN}; fio reads this as {}", Nanos(ns));
            Err(FioError::value(word, value, expected))
        }
        _ => Err(FioError::value(word, value, SPAN)),
    }
}

/// A whole number within bounds; `k` and the other letters of sizes are fio's for every number.
pub(super) fn number<T>(word: &str, value: &str, base: u64, from: T, to: T) -> Result<T, FioError>
where
    T: TryFrom<u64> + PartialOrd + std::fmt::Display + Copy,
{
    let reading = units::count(value, base);
    let number = reading.filter(|reading| reading.whole).and_then(|reading| T::try_from(reading.value).ok());
    let number = number.filter(|number| (from..=to).contains(number));
    number.ok_or_else(|| {
        FioError::value(word, value, format!("a whole number from {from} to {to}{}", instead(value, reading)))
    })
}

/// What fio reads of a value that it does not read as a whole.
fn instead(value: &str, reading: Option<Reading>) -> String {
    match reading {
        Some(_) if value.ends_with('%') => {
            "; write it without the percent sign, with which fio reads another number".into()
        }
        Some(Reading { value: read, whole: false }) if !value.contains('-') => {
            format!("; fio reads this as {read}: it stops at what is no digit or unit")
        }
        _ => String::new(),
    }
}

/// What a flag without a value stands for.
pub(super) const BARE: &str = "1";

/// A flag: the bare word, which is read as [`BARE`], or a number, where 0 is off.
pub(super) fn flag(word: &str, value: &str) -> Result<bool, FioError> {
    let reading = units::count(value, 1024).filter(|reading| reading.whole);
    reading
        .map(|reading| reading.value != 0)
        .ok_or_else(|| FioError::value(word, value, "the word alone, or 0 or 1"))
}

/// Sizes of a range that has one size alone, such as `16k-16k`; None of another text.
pub(super) fn range_of_one(word: &str, value: &str, base: u64) -> Option<[Option<BlockSizes>; 2]> {
    let side = |text: &str| {
        let (from, to) = text.split_once(['-', ':'])?;
        let [from, to] = [from, to].map(|size| block(word, size, base).ok());
        from.filter(|_| from == to).map(BlockSizes::fixed)
    };
    let sides: Vec<BlockSizes> = value.split(',').map(side).collect::<Option<_>>()?;
    Some([sides.first().cloned(), sides.get(1).or(sides.first()).cloned()])
}

/// One number for reads and one for writes, as [`sides`]; fio separates numbers by colons and dashes, too.
pub(super) fn number_sides<T: Clone>(
    value: &str,
    read: impl Fn(&str) -> Result<T, FioError>,
) -> Result<[Option<T>; 2], FioError> {
    let separator =
        [',', ':', '-'].into_iter().find(|separator| value.trim_start_matches('-').contains(*separator));
    match separator {
        Some(separator @ (':' | '-')) => sides(&value.replace(separator, ","), read),
        _ => sides(value, read),
    }
}

/// One value for reads and one for writes; a single one holds for both, and an empty one leaves
/// the side as it is.
pub(super) fn sides<T: Clone>(
    value: &str,
    read: impl Fn(&str) -> Result<T, FioError>,
) -> Result<[Option<T>; 2], FioError> {
    if value.is_empty() {
        // No value leaves no side as it is: fio refuses it.
        let side = read(value)?;
        return Ok([Some(side.clone()), Some(side)]);
    }
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
pub(super) fn block(word: &str, value: &str, base: u64) -> Result<u32, FioError> {
    let reading = units::count(value, base);
    let bytes = reading
        .filter(|reading| reading.whole && (512..=LARGEST_BLOCK).contains(&reading.value))
        .filter(|reading| reading.value.is_multiple_of(512));
    let bytes = bytes.and_then(|reading| u32::try_from(reading.value).ok());
    bytes.ok_or_else(|| {
        let read = match reading {
            Some(Reading { value: bytes, whole: true }) if value != bytes.to_string() => {
                format!("; fio reads this as {bytes} bytes")
            }
            reading => instead(value, reading),
        };
        FioError::value(word, value, format!("a multiple of 512 from 512 to 64m, like 4k or 16k{read}"))
    })
}

/// Block sizes with shares: `4k/10:64k/50:32k/40`; shares left out split what remains.
pub(super) fn block_shares(word: &str, value: &str, base: u64) -> Result<BlockSizes, FioError> {
    let bad =
        || FioError::value(word, value, "sizes with whole percentages that add up to 100, like 4k/10:64k/90");
    let mut shares: Vec<(u32, Option<u8>)> = Vec::new();
    for part in value.split(':') {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent {
            "" => None,
            percent => Some(percent.parse::<u8>().map_err(|_| bad())?),
        };
        shares.push((block(word, size, base)?, percent));
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
pub(super) fn extent(word: &str, value: &str, base: u64) -> Result<Extent, FioError> {
    const EXPECTED: &str = "a size like 10g, or a whole percentage of the volume like 25%";
    if let Some(percent) = value.strip_suffix('%') {
        let percent = percent.parse().ok().filter(|&percent| percent <= 100).map(Extent::Percent);
        return percent.ok_or_else(|| FioError::value(word, value, EXPECTED));
    }
    match units::count(value, base) {
        Some(Reading { value: bytes, whole: true }) => Ok(Extent::Bytes(bytes)),
        _ if value.ends_with('z') => {
            Err(FioError::value(word, value, format!("{EXPECTED}; zones are not modelled")))
        }
        reading => Err(FioError::value(word, value, format!("{EXPECTED}{}", instead(value, reading)))),
    }
}

/// A number of bytes above zero... or zero, where the word allows it.
pub(super) fn bytes(word: &str, value: &str, base: u64) -> Result<u64, FioError> {
    let reading = units::count(value, base);
    let bytes = reading.filter(|reading| reading.whole).map(|reading| reading.value);
    bytes.ok_or_else(|| {
        let read = if value.ends_with('%') {
            "; a percentage is not modelled here".into()
        } else {
            instead(value, reading)
        };
        let expected = format!("a whole number of bytes with k, m, g or t (binary units), like 10g{read}");
        FioError::value(word, value, expected)
    })
}

/// Bytes a second, at most a TiB.
pub(super) fn byte_rate(word: &str, value: &str, base: u64) -> Result<u64, FioError> {
    let rate = bytes(word, value, base)?;
    let range =
        || FioError::value(word, value, "bytes a second up to 1t, like 500k or 100m, or 0 for no limit");
    Some(rate).filter(|rate| (0..=KIB * GIB).contains(rate)).ok_or_else(range)
}

/// How random I/O is spread.
pub(super) fn distribution(word: &str, value: &str) -> Result<Distribution, FioError> {
    let mut parts = value.split(':');
    let name = parts.next().unwrap_or_default();
    // fio's defaults (FIO_DEF_ZIPF and FIO_DEF_PARETO).
    let parameter: Option<f64> = match (name, parts.next()) {
        ("zipf", None) => Some(1.1),
        ("pareto", None) => Some(0.2),
        (_, text) => text.and_then(|text| text.parse().ok()),
    };
    if parts.next().is_some() && matches!(name, "zipf" | "pareto") {
        return Err(FioError::Unsupported {
            word: format!("{word}={value}"),
            instead: "leave the centre out; popular blocks are scattered over the extent",
        });
    }
    match (name, parameter) {
        ("random", _) => Ok(Distribution::Uniform),
        ("zipf", Some(0.0)) => Ok(Distribution::Uniform),
        ("zipf", Some(1.0)) => Err(FioError::value(
            word,
            value,
            "zipf:THETA with another THETA than 1, like zipf:1.01; fio refuses 1",
        )),
        ("zipf", Some(theta)) if theta > 0.0 && theta <= 10.0 => Ok(Distribution::Zipf { theta }),
        ("zipf", _) => Err(FioError::value(word, value, "zipf:THETA with THETA from 0 to 10, like zipf:1.2")),
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
