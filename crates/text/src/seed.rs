//! Seeds: where they come from, how one is written, and how one makes many.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A seed that nobody chose. Whoever takes it shows and keeps it, so that the run can be repeated: 32 bits are short
/// enough to type, and exact in every JSON reader. The standard library draws its hash keys from the operating system.
#[must_use]
pub fn fresh() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}

/// The seed of stream `number` of `seed`. An odd multiplier keeps pairs apart; the generator that it seeds mixes the rest.
#[must_use]
pub const fn stream(seed: u64, number: u64) -> u64 {
    seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A derived seed, which has 64 bits, as 16 hexadecimal digits: the seed of a power cut.
#[must_use]
pub fn hex(seed: u64) -> String {
    format!("{seed:016x}")
}

/// Reads what [`hex`] writes, with or without `0x` and zeros in front; None where it is no such number.
#[must_use]
pub fn from_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// FNV-1a, 64 bits: a number that follows from bytes, the same on every machine and in every version of this program, for
/// names and seeds. It keeps nobody out.
#[must_use]
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_test_vectors_come_out() {
        assert_eq!(fnv1a([]), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv1a(*b"foobar"), 0x8594_4171_F739_67E8);
    }

    #[test]
    fn a_seed_is_read_as_it_is_written() {
        for seed in [0, 0x1f, u64::MAX, stream(7, 3)] {
            assert_eq!(from_hex(&hex(seed)), Some(seed));
        }
        assert_eq!(hex(0x1f), "000000000000001f");
        assert_eq!(
            [from_hex("0x1F"), from_hex("1f"), from_hex("seven"), from_hex("")],
            [Some(0x1f), Some(0x1f), None, None]
        );
    }

    #[test]
    fn streams_stay_as_they_are_in_every_version() {
        assert_eq!(stream(7, 0), 7);
        assert_eq!(stream(0, 1), 0x9E37_79B9_7F4A_7C15);
        assert_eq!(stream(7, u64::MAX), 7 ^ 0x61C8_8646_80B5_83EB);
    }

    #[test]
    fn fresh_seeds_differ_and_can_be_typed() {
        assert_ne!((fresh(), fresh()), (fresh(), fresh()));
        assert!(fresh() < 1 << 32);
    }
}
