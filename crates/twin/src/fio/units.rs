//! Numbers as fio reads them: `parse.c`, `str_to_decimal` with `get_mult_bytes` and `get_mult_time`.
//!
//! fio reads digits, looks at the letters behind them, and leaves the rest: `1.5g` is 1 byte, and `1min` a microsecond. Such
//! values are read as fio reads them and marked as not whole, so that they can be refused with what fio makes of them.

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// What fio reads; the digits saturate at 2^63 - 1, before the unit.
    pub(super) value: u64,
    /// Whether fio reads all of the text, and as a person would.
    pub(super) whole: bool,
}

/// A number of bytes, or a count, where a `k` has `base` of the smaller units: 1024, or 1000 with `kb_base=1000`. Units such as
/// `KiB` have the other base.
pub(super) fn count(text: &str, base: u64) -> Option<Reading> {
    let other_base = if base == 1000 { 1024 } else { 1000 };
    let number = digits(text)?;
    let letters = behind_digits(text).to_ascii_lowercase();
    let power = |letter: Option<char>| letter.and_then(|letter| "kmgtp".find(letter)).map(|place| place + 1);
    let mut chars = letters.chars();
    let power = power(chars.next()).unwrap_or(0);
    let base = if power > 0 && letters[1..].starts_with("ib") { other_base } else { base };
    let value = (0..power).fold(number, |value, _| value.saturating_mul(base));
    let hexadecimal = text.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x"))
        && text[2..].chars().all(|c| c.is_ascii_hexdigit());
    let unit = match power {
        0 => matches!(letters.as_str(), "" | "b"),
        _ => matches!(&letters[1..], "" | "b" | "i" | "ib"),
    };
    let whole =
        hexadecimal || (unit && text.starts_with(|c: char| c.is_ascii_digit()) && joined(text, &letters));
    Some(Reading { value, whole })
}

/// A span of time in nanoseconds, where a number without a unit has `default_ns` of them.
pub(super) fn span(text: &str, default_ns: u64) -> Option<Reading> {
    let number = digits(text)?;
    let letters = behind_digits(text).to_ascii_lowercase();
    let unit_ns = match letters.as_str() {
        "" => default_ns,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        other if other.starts_with("ms") => 1_000_000,
        _ => 1_000,
    };
    let known = ["", "s", "m", "h", "d", "us", "usec", "ms", "msec"].contains(&letters.as_str());
    let whole = known && text.starts_with(|c: char| c.is_ascii_digit()) && joined(text, &letters);
    Some(Reading { value: number.saturating_mul(unit_ns), whole })
}

/// The number at the beginning: `strtoll`, with base 16 where the text has a `0x` anywhere.
fn digits(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    let radix = if lower.contains("0x") { 16 } else { 10 };
    let number = if radix == 16 { lower.strip_prefix("0x").unwrap_or(&lower) } else { &lower };
    let end = number.find(|c: char| !c.is_digit(radix)).unwrap_or(number.len());
    if end == 0 {
        return None;
    }
    let value = u64::from_str_radix(&number[..end], radix).unwrap_or(u64::MAX).min(i64::MAX.unsigned_abs());
    Some(if text.starts_with('-') { value.wrapping_neg() } else { value })
}

/// What follows the digits, if it begins with a letter, up to a separator of lists.
fn behind_digits(text: &str) -> &str {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '+' || c == '-');
    if !behind.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return "";
    }
    behind.split([':', '-', ',', '/']).next().unwrap_or_default()
}

/// Whether a text is digits and these letters, and nothing else.
fn joined(text: &str, letters: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    number.eq_ignore_ascii_case(letters)
}
