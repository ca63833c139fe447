//! How single values are made: random texts, decimals, draws that a key decides.

use std::io::Write as _;

use crate::distribution::Random;

/// The characters of a random text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// `0` to `9`.
    Digits,
    /// `0` to `9`, `A` to `Z`, `a` to `z`.
    Alphanumeric,
}

impl Alphabet {
    fn characters(self) -> &'static [u8] {
        const ALL: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        match self {
            Self::Digits => &ALL[..10],
            Self::Alphanumeric => ALL,
        }
    }
}

/// Characters that one draw of 64 bits gives.
const FROM_ONE_DRAW: usize = 8;

/// Appends so many random characters.
pub(crate) fn random_text(random: &mut Random, alphabet: Alphabet, length: usize, out: &mut Vec<u8>) {
    let characters = alphabet.characters();
    let base = u64::try_from(characters.len()).expect("an alphabet is short");
    let mut left = length;
    while left > 0 {
        // A fraction of 58 bits: each multiplication moves one character above them.
        let mut fraction = random.bits() >> 6;
        let now = left.min(FROM_ONE_DRAW);
        for _ in 0..now {
            let scaled = fraction * base;
            fraction = scaled & ((1 << 58) - 1);
            let at = usize::try_from(scaled >> 58).expect("less than the alphabet's length");
            out.push(characters[at]);
        }
        left -= now;
    }
}

/// Appends a whole number with its last digits behind a point.
pub(crate) fn write_decimal(units: i64, digits: u8, out: &mut Vec<u8>) {
    let one = 10_u64.pow(u32::from(digits.min(18)));
    let (sign, size) = (if units < 0 { "-" } else { "" }, units.unsigned_abs());
    let written = match digits {
        0 => write!(out, "{units}"),
        _ => write!(out, "{sign}{}.{:0width$}", size / one, size % one, width = usize::from(digits.min(18))),
    };
    written.expect("a Vec takes everything");
}

/// A decimal as a whole number of units of its last digit. None where the text is no decimal, or has more digits.
pub(crate) fn units(text: &[u8], digits: u8) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = usize::from(digits);
    let (kept, beyond) = part.split_at_checked(digits).unwrap_or((part, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole)
        || !plain(part)
        || (whole.is_empty() && part.is_empty())
        || beyond.bytes().any(|byte| byte != b'0')
    {
        return None;
    }
    let all = format!("{whole}{kept:0<digits$}");
    let units: i64 = all.parse().ok()?;
    Some(if negative { -units } else { units })
}

/// The random stream that belongs to a key alone.
pub(crate) fn keyed(seed: u64, key: i64) -> Random {
    // The complement keeps it apart from the streams of clients and rows.
    Random::new(!seed, key.cast_unsigned())
}

/// The place of `number` in a random order of 1 to `most`; `order` selects it. Each order has every number once.
pub(crate) fn shuffled(seed: u64, number: u32, most: u32, order: i64) -> u32 {
    // A Feistel network permutes 0 to a power of 4; numbers that leave the range go through it again.
    let half = (u32::BITS - most.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u32 << half) - 1;
    let mut random = keyed(seed, order);
    let keys: [u64; 4] = std::array::from_fn(|_| random.bits());
    let mut place = number - 1;
    loop {
        let (mut left, mut right) = (place >> half, place & mask);
        for key in keys {
            let mixed = (u64::from(right) ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let mixed = u32::try_from(mixed).expect("the upper half of 64 bits") & mask;
            (left, right) = (right, left ^ mixed);
        }
        place = left << half | right;
        if place < most {
            return place + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_random_text_has_its_length_and_all_of_its_alphabet() {
        println!("seed 11");
        let mut random = Random::new(11, 1);
        for (alphabet, size) in [(Alphabet::Digits, 10), (Alphabet::Alphanumeric, 62)] {
            let mut text = Vec::new();
            random_text(&mut random, alphabet, 62_003, &mut text);
            assert_eq!(text.len(), 62_003);
            let seen: BTreeSet<u8> = text.iter().copied().collect();
            assert_eq!(seen, alphabet.characters().iter().copied().collect());
            let zeros = text.iter().filter(|byte| **byte == b'0').count() as f64;
            assert!((zeros * f64::from(size) / 62_003.0 - 1.0).abs() < 0.12, "{zeros}");
        }
        random_text(&mut random, Alphabet::Digits, 0, &mut Vec::new());
    }

    #[test]
    fn a_decimal_and_its_units_are_the_same_number() {
        for (units_of, digits, text) in [
            (1_234, 2, "12.34"),
            (-5, 2, "-0.05"),
            (0, 2, "0.00"),
            (7, 0, "7"),
            (i64::MIN, 4, "-922337203685477.5808"),
        ] {
            let mut out = Vec::new();
            write_decimal(units_of, digits, &mut out);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), text);
            if units_of != i64::MIN {
                assert_eq!(units(&out, digits), Some(units_of));
            }
        }
        assert_eq!(units(b"3", 2), Some(300));
        assert_eq!(units(b"3.1000", 2), Some(310));
        assert_eq!(units(b".5", 1), Some(5));
        for wrong in [&b"3.105"[..], b"", b"-", b".", b"1e3", b"x", b"--1", b"1.-5"] {
            assert_eq!(units(wrong, 2), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_shuffle_has_every_number_once_and_depends_on_its_order() {
        println!("seed 5");
        for most in [1, 2, 3, 16, 17, 3_000] {
            let of = |order| (1..=most).map(move |number| shuffled(5, number, most, order));
            assert_eq!(of(1).collect::<BTreeSet<_>>(), (1..=most).collect());
            assert!(of(1).eq(of(1)));
            assert!(most < 16 || !of(1).eq(of(2)), "{most}");
        }
        let stayed = (1..=3_000).filter(|number| shuffled(5, *number, 3_000, 9) == *number).count();
        assert!(stayed < 12, "a random order leaves about one number in its place: {stayed}");
    }
}
