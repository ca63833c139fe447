//! Numbers and fields of a line, read in place.

use ebbtide_volume::Op;

/// A whole number without a sign.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A time such as `12.5` in nanoseconds, where a unit has `unit_ns` of them, at most 10^9. What is below a nanosecond is
/// dropped.
pub(super) fn time(text: &[u8], unit_ns: u64) -> Option<u64> {
    let dot = text.iter().position(|byte| *byte == b'.');
    let (units, part) = dot.map_or((text, &[][..]), |at| (&text[..at], &text[at + 1..]));
    let units = whole(units)?.checked_mul(unit_ns)?;
    if part.is_empty() {
        return Some(units);
    }
    if !part.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let billionths =
        (0..9).fold(0, |sum, at| sum * 10 + part.get(at).map_or(0, |digit| u64::from(digit - b'0')));
    units.checked_add(billionths * unit_ns / 1_000_000_000)
}

/// Read or write by a letter or a word.
pub(super) fn direction(field: &[u8]) -> Option<Op> {
    let is = |word: &[u8]| field.eq_ignore_ascii_case(word);
    if is(b"r") || is(b"read") {
        Some(Op::Read)
    } else if is(b"w") || is(b"write") {
        Some(Op::Write)
    } else {
        None
    }
}

/// The fields of a line between commas; None where their number is not `N`.
pub(super) fn commas<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    let mut fields = [&[][..]; N];
    let mut all = line.split(|byte| *byte == b',');
    for field in &mut fields {
        *field = all.next()?.trim_ascii();
    }
    all.next().is_none().then_some(fields)
}

/// The words of a line, between blanks.
pub(super) fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_and_no_number_is_taken_for_one() {
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "-1", "1x", "18446744073709551616", " 1"] {
            assert_eq!(whole(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn times_keep_their_nanoseconds() {
        assert_eq!(time(b"1538323199.123456789", 1_000_000_000), Some(1_538_323_199_123_456_789));
        assert_eq!(time(b"0.5", 1_000_000), Some(500_000));
        assert_eq!(time(b"7", 1_000), Some(7_000));
        assert_eq!(time(b"1.0000000019", 1_000_000_000), Some(1_000_000_001));
        assert_eq!(time(b"1.", 1_000), Some(1_000));
        for text in [".5", "1.5.1", "1e3", "-1", ""] {
            assert_eq!(time(text.as_bytes(), 1_000), None, "{text}");
        }
    }

    #[test]
    fn fields_are_counted() {
        assert_eq!(commas::<2>(b"a, b"), Some([&b"a"[..], b"b"]));
        assert_eq!((commas::<2>(b"a"), commas::<2>(b"a,b,c")), (None, None));
        assert_eq!(words(b"  a\tb  ").collect::<Vec<_>>(), [b"a", b"b"]);
    }
}
