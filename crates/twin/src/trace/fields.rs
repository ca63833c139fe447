//! Numbers and fields of a line, read in place.

use ebbtide_volume::Op;

/// A whole number without a sign.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let (eights, rest) = text.as_chunks::<8>();
    let mut sum = 0_u64;
    for eight in eights {
        sum = sum.checked_mul(100_000_000)?.checked_add(eight_digits(*eight)?)?;
    }
    rest.iter().try_fold(sum, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The number that eight digits are: in pairs, in fours, then all, since traces are read at millions of lines a second.
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const HIGH: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    let digits = u64::from_le_bytes(text);
    // Adding 6 changes the upper half of a byte only where it is more than a 9.
    let above = digits.wrapping_add(0x0606_0606_0606_0606);
    if digits & HIGH != 0x3030_3030_3030_3030 || above & HIGH != 0x3030_3030_3030_3030 {
        return None;
    }
    let pairs = (digits & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(10 * 256 + 1) >> 8;
    let fours = (pairs & 0x00FF_00FF_00FF_00FF).wrapping_mul(100 * 65_536 + 1) >> 16;
    Some((fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(10_000 * 4_294_967_296 + 1) >> 32)
}

/// The place of the first end of a line.
pub(super) fn newline(text: &[u8]) -> Option<usize> {
    let (eights, rest) = text.as_chunks::<8>();
    for (place, eight) in eights.iter().enumerate() {
        let found = equal(*eight, b'\n');
        if found != 0 {
            return Some(place * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|byte| *byte == b'\n').map(|place| eights.len() * 8 + place)
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
    let (mut count, mut begin) = (0, 0);
    let mut ends_at = |end: usize| {
        *fields.get_mut(count)? = line[begin..end].trim_ascii();
        (count, begin) = (count + 1, end + 1);
        Some(())
    };
    let (eights, rest) = line.as_chunks::<8>();
    for (place, eight) in eights.iter().enumerate() {
        let mut found = equal(*eight, b',');
        while found != 0 {
            ends_at(place * 8 + found.trailing_zeros() as usize / 8)?;
            found &= found - 1;
        }
    }
    for (place, _) in rest.iter().enumerate().filter(|(_, byte)| **byte == b',') {
        ends_at(eights.len() * 8 + place)?;
    }
    ends_at(line.len())?;
    (count == N).then_some(fields)
}

/// The highest bit of each byte that is `wanted`, and no other bit.
fn equal(text: [u8; 8], wanted: u8) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let other = u64::from_le_bytes(text) ^ u64::from_le_bytes([wanted; 8]);
    // A byte that is not zero has its highest bit, or gets it by the addition, which carries into no other byte.
    !(((other & LOW) + LOW) | other | LOW)
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
        for number in [0, 7, 12_345_678, 90_807_060, 123_456_789, 128_166_372_000_000_000] {
            assert_eq!(whole(number.to_string().as_bytes()), Some(number));
        }
        for text in ["", "-1", "1x", "18446744073709551616", "99999999999999999999999", " 1"] {
            assert_eq!(whole(text.as_bytes()), None, "{text}");
        }
        // Each byte that is no digit, at each place of eight.
        for place in 0..8 {
            for byte in (0..=255_u8).filter(|byte| !byte.is_ascii_digit()) {
                let mut text = *b"12345678";
                text[place] = byte;
                assert_eq!(whole(&text), None, "{text:?}");
            }
        }
    }

    #[test]
    fn the_first_end_of_a_line_is_found_wherever_it_is() {
        for length in 0..40 {
            for place in 0..length {
                let mut text = vec![b'\x0b'; length];
                text[place..].fill(b'\n');
                assert_eq!(newline(&text), Some(place), "{length}");
            }
            assert_eq!(newline(&vec![b'\x8a'; length]), None);
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
        let long = b"-,--,,abcdefgh,i,";
        assert_eq!(commas::<6>(long), Some([&b"-"[..], b"--", b"", b"abcdefgh", b"i", b""]));
        assert_eq!((commas::<5>(long), commas::<7>(long)), (None, None));
        assert_eq!(words(b"  a\tb  ").collect::<Vec<_>>(), [b"a", b"b"]);
    }
}
