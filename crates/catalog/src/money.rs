//! Amounts of money, exact.

use std::{fmt, iter::Sum, ops::Add, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Micro-dollars of a dollar: the price list has up to five decimals (io2 at USD 0.03185 per IOPS).
const MICROS: u64 = 1_000_000;

/// Decimals that a price may have.
const DECIMALS: usize = 6;

/// US dollars, as whole micro-dollars. Sums are exact.
///
/// What is shown is rounded once, to the cent, half up ([`Usd::cents`]): as text (`$1,234.50`) and in JSON
/// (`1234.5`) alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(u64);

/// A text that is no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a price: write US dollars as a text with up to six decimals and at most 10000, like \"0.08\""
)]
pub struct UsdError(String);

impl Usd {
    /// The largest price that is read, in micro-dollars: 10,000 dollars. The largest array at this price fits
    /// 64 bits.
    const MAX_PRICE: u64 = 10_000 * MICROS;

    /// Whole micro-dollars.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Whole micro-dollars.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Whole cents, half a cent and more rounded up.
    #[must_use]
    pub const fn cents(self) -> u64 {
        (self.0 + MICROS / 200) / (MICROS / 100)
    }

    /// The amount as it is shown: whole cents.
    #[must_use]
    pub const fn to_cents(self) -> Self {
        Self(self.cents() * (MICROS / 100))
    }

    /// This price for each of `count` things.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// What is left after `other` is taken away; zero where that is more.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This price for so much of a thing, to the nearest micro-dollar; nothing for less than nothing of it.
    #[must_use]
    pub fn for_amount(self, amount: f64) -> Self {
        Self(crate::numbers::whole(self.0 as f64 * amount))
    }

    /// A share of 1/1,024: the price of a MiB where a GiB has this one. To the nearest micro-dollar, half up.
    pub(crate) const fn per_1024(self) -> Self {
        Self((self.0 + 512) / 1024)
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

impl FromStr for Usd {
    type Err = UsdError;

    fn from_str(text: &str) -> Result<Self, UsdError> {
        let bad = || UsdError(text.into());
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > DECIMALS {
            return Err(bad());
        }
        let micros: u64 = format!("{whole}{fraction:0<DECIMALS$}").parse().map_err(|_| bad())?;
        if micros > Self::MAX_PRICE { Err(bad()) } else { Ok(Self(micros)) }
    }
}

/// `$1,234.50`
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = self.cents();
        let whole = (cents / 100).to_string();
        let mut grouped = String::new();
        for (place, digit) in whole.chars().enumerate() {
            if place > 0 && (whole.len() - place).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        f.pad(&format!("${grouped}.{:02}", cents % 100))
    }
}

/// As a number of dollars with at most two decimals.
impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // The nearest binary number to a decimal of 15 digits is written as that decimal again.
        to.serialize_f64(self.cents() as f64 / 100.0)
    }
}

/// From a number of dollars, to the cent.
impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(from)?;
        Ok(Self(crate::numbers::whole(dollars * 100.0).saturating_mul(MICROS / 100)))
    }
}

/// A price as the data files have it: a text, exact to the micro-dollar.
pub(crate) mod price {
    use serde::{Deserialize as _, Deserializer, de::Error as _};

    use super::Usd;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Usd, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }

    pub(crate) mod option {
        use super::{Deserializer, Usd};

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Usd>, D::Error> {
            super::deserialize(from).map(Some)
        }
    }

    /// A price that may be empty, as in a table.
    pub(crate) mod optional {
        use serde::{Deserialize as _, de::Error as _};

        use super::{Deserializer, Usd};

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Usd>, D::Error> {
            let text = String::deserialize(from)?;
            if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(D::Error::custom) }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Usd {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_price_is_read_to_the_last_of_six_decimals_and_nothing_else_is_read() {
        assert_eq!(usd("0.03185").micros(), 31_850);
        assert_eq!(usd("40.96").micros(), 40_960_000);
        assert_eq!(usd("10000").micros(), 10_000_000_000);
        assert_eq!(usd("0.000001").micros(), 1);
        for bad in ["", ".5", "-1", "1e3", "0.0000001", "10000.01", "0,08", "$1", "٣", "99999999999999999999"]
        {
            assert!(bad.parse::<Usd>().is_err(), "{bad}");
        }
    }

    #[test]
    fn half_a_cent_is_rounded_up_and_thousands_are_grouped() {
        let shown = |micros| Usd::from_micros(micros).to_string();
        assert_eq!(shown(1_875_000), "$1.88");
        assert_eq!(shown(1_874_999), "$1.87");
        assert_eq!(shown(5_000), "$0.01");
        assert_eq!(shown(0), "$0.00");
        assert_eq!(shown(1_234_567_890_000), "$1,234,567.89");
        assert_eq!(shown(999_995_000), "$1,000.00");
        assert_eq!(format!("{:>9}", Usd::from_micros(8_000_000)), "    $8.00");
    }

    #[test]
    fn json_has_dollars_with_two_decimals_at_most() {
        let json = |text: &str| serde_json::to_string(&usd(text)).unwrap();
        assert_eq!(
            (json("56.25").as_str(), json("0.035").as_str(), json("8").as_str()),
            ("56.25", "0.04", "8.0")
        );
        let back: Usd = serde_json::from_str("1234.57").unwrap();
        assert_eq!(back, usd("1234.57"));
    }
}
