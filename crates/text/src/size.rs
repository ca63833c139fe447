//! Sizes.

use crate::figure::{fixed, without_zeros};

/// Units and the powers of two that they are, the largest first.
const UNITS: [(i32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];

/// A size in the largest unit that it fills, with up to three digits: `100 GiB`, `1.15 GiB`, `4.48 MiB`, `512 B`.
#[must_use]
pub fn size(bytes: u64) -> String {
    self::bytes(bytes as f64)
}

/// The same of a number of bytes that is measured, such as a mean.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    // What would be rounded up to 1024 of a unit is one of the next.
    let fills = |unit: f64| bytes >= unit * (1.0 - 0.5 / 1024.0);
    let units = UNITS.into_iter().map(|(power, name)| (2_f64.powi(power), name));
    let Some((unit, name)) = units.into_iter().find(|(unit, _)| fills(*unit)) else {
        return format!("{} B", fixed(bytes, 0));
    };
    let value = bytes / unit;
    let decimals = match value {
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    format!("{} {name}", without_zeros(&fixed(value, decimals)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn sizes_have_up_to_three_digits_and_never_1024_of_a_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (16 << 10, "16 KiB"),
            (4_700_000, "4.48 MiB"),
            (1_536 * MIB, "1.5 GiB"),
            (1_234_567_168, "1.15 GiB"),
            (100 * GIB, "100 GiB"),
            (12 * GIB + 350 * MIB, "12.3 GiB"),
            (99_999 * GIB / 1000, "100 GiB"),
            (MIB - 1, "1 MiB"),
            ((1 << 40) - 1, "1 TiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
        }
        assert_eq!([512.4, 1536.0, 99.945 * MIB as f64].map(bytes), ["512 B", "1.5 KiB", "99.9 MiB"]);
    }
}
