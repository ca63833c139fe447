//! Numbers and fields of a line, read in place.

use ebbtide_volume::Op;

/// A whole number without a sign.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    let (eights, rest) = text.as_chunks::<8>();
    let Some(last) = text.last_chunk::<8>() else {
        let mut digits = [b'0'; 8];
        digits[8 - text.len()..].copy_from_slice(text);
        return eight_digits(digits).filter(|_| !text.is_empty());
    };
    let mut sum = 0_u64;
    for eight in eights {
        sum = sum.checked_mul(TENS[8])?.checked_add(eight_digits(*eight)?)?;
    }
    if rest.is_empty() {
        return Some(sum);
    }
    // The rest with zeroes before it: without a loop, whose length no processor guesses.
    let before = u64::MAX >> (8 * rest.len());
    let digits = (u64::from_le_bytes(*last) & !before) | (ZEROES & before);
    sum.checked_mul(TENS[rest.len()])?.checked_add(eight_digits(digits.to_le_bytes())?)
}

/// Eight digits 0.
const ZEROES: u64 = u64::from_le_bytes([b'0'; 8]);

/// Powers of ten.
const TENS: [u64; 10] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

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
    let (counted, dropped) = part.split_at(part.len().min(9));
    let billionths = whole(counted)? * TENS[9 - counted.len()];
    if !dropped.iter().all(u8::is_ascii_digit) {
        return None;
    }
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
    let Some(mut found) = places(line, b',') else {
        let mut each = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        for field in &mut fields {
            *field = each.next()?;
        }
        return each.next().is_none().then_some(fields);
    };
    let mut begin = 0;
    for field in &mut fields[..N - 1] {
        if found == 0 {
            return None;
        }
        let end = found.trailing_zeros() as usize;
        *field = line[begin..end].trim_ascii();
        begin = end + 1;
        found &= found - 1;
    }
    fields[N - 1] = line[begin..].trim_ascii();
    (found == 0).then_some(fields)
}

/// A bit for each byte of a line that is `wanted`; None for a line of less than 8 bytes or more than 64.
fn places(line: &[u8], wanted: u8) -> Option<u64> {
    // Gathers the highest bits of eight bytes: each is moved to a place of its own in the highest byte.
    let gathered = |eight: [u8; 8]| (equal(eight, wanted) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let last = line.last_chunk::<8>().filter(|_| line.len() <= 64)?;
    let (eights, _) = line.as_chunks::<8>();
    let whole = eights.iter().zip(0..).fold(0, |all, (eight, place)| all | gathered(*eight) << (8 * place));
    Some(whole | gathered(*last) << (line.len() - 8))
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

/// The first words of a line, between blanks; those that it does not have are empty.
pub(super) fn first_words<const N: usize>(line: &[u8]) -> [&[u8]; N] {
    let mut words = [&[][..]; N];
    let mut open = None;
    let mut count = 0;
    // The highest bit of a byte is set where a word begins or ends there. Behind the line there are blanks.
    let mut ends_at = |mut changes: u64, place: usize| {
        while changes != 0 && count < N {
            let at = place + changes.trailing_zeros() as usize / 8;
            match open.take() {
                None => open = Some(at),
                Some(begin) => {
                    words[count] = &line[begin..at];
                    count += 1;
                }
            }
            changes &= changes - 1;
        }
        count < N
    };
    let (eights, rest) = line.as_chunks::<8>();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut before = HIGHEST;
    for (place, eight) in eights.iter().chain([&last]).enumerate() {
        let blank = blanks(*eight);
        if !ends_at(blank ^ (blank << 8 | before >> 56), place * 8) {
            break;
        }
        before = blank;
    }
    words
}

/// The highest bit of each byte that is a blank, and no other bit.
fn blanks(text: [u8; 8]) -> u64 {
    let all = u64::from_le_bytes(text);
    // A byte with its highest bit keeps it if it is not below 0x21 without it: the subtraction borrows from no other byte.
    let low = !((all | HIGHEST) - u64::from_le_bytes([0x21; 8])) & !all & HIGHEST;
    if low == equal(text, b' ') {
        return low;
    }
    // Other blanks, or bytes that are no text.
    u64::from_le_bytes(text.map(|byte| if byte.is_ascii_whitespace() { 0x80 } else { 0 }))
}

/// The highest bit of each byte.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        assert_eq!(commas::<1>(b""), Some([&b""[..]]));
        assert_eq!(words(b"  a\tb  ").collect::<Vec<_>>(), [b"a", b"b"]);
    }

    proptest! {
        #[test]
        fn the_fields_of_a_line_are_those_between_its_commas(
            line in proptest::collection::vec(prop_oneof![
                2 => Just(b','), 1 => Just(b' '), 6 => b'a'..=b'z', 1 => proptest::num::u8::ANY,
            ], 0..80),
        ) {
            let all: Vec<&[u8]> = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
            prop_assert_eq!(commas::<5>(&line).map(|five| five.to_vec()), (all.len() == 5).then_some(all));
        }

        #[test]
        fn a_whole_number_is_read_as_the_standard_library_reads_it(
            text in prop_oneof!["[0-9]{1,21}", "[0-9]{0,9}[^0-9][0-9]{0,9}"],
        ) {
            let wanted = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
            prop_assert_eq!(whole(text.as_bytes()), wanted);
        }

        #[test]
        fn the_first_words_of_a_line_are_those_between_its_blanks(
            line in proptest::collection::vec(prop_oneof![
                4 => Just(b' '), 1 => Just(b'\t'), 6 => b'a'..=b'z', 1 => proptest::num::u8::ANY,
            ], 0..60),
        ) {
            let mut wanted: Vec<&[u8]> = words(&line).collect();
            wanted.resize(wanted.len().max(4), &[]);
            prop_assert_eq!(&first_words::<4>(&line)[..], &wanted[..4]);
        }
    }
}
