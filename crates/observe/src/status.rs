//! Every variable of SHOW GLOBAL STATUS: its last value and its growth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::Variables;
use crate::metric::LARGEST_STATUS;

/// All status variables of a server over an interval, by name in lower case. [`Rates`](crate::Rates) has those that are
/// recorded and compared; a check may need any other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusVariables {
    /// The values at the end, as the server spells them.
    pub last: Variables,
    /// Growth a second of each whole number that did not go back, and that is not below 0 (printed near 2^64); empty where the status was read once.
    pub growth_per_s: BTreeMap<String, f64>,
}

impl StatusVariables {
    /// A status that was read once: no growth is known.
    #[must_use]
    pub fn once(last: Variables) -> Self {
        Self { last, growth_per_s: BTreeMap::new() }
    }

    /// A status that was read twice, `seconds` apart.
    #[must_use]
    pub fn between(before: &Variables, last: Variables, seconds: f64) -> Self {
        let number = |text: &str| text.parse::<u64>().ok().filter(|value| *value <= LARGEST_STATUS);
        let growth = |(name, value): (&str, &str)| {
            let grown = number(value)?.checked_sub(number(before.get(name)?)?)?;
            Some((name.to_owned(), grown as f64 / seconds))
        };
        let growth_per_s =
            if seconds > 0.0 { last.iter().filter_map(growth).collect() } else { BTreeMap::new() };
        Self { last, growth_per_s }
    }
}

/// What SELECT statements did, a second: sums over their digests. No digest is kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SelectRates {
    /// Statements.
    pub count: f64,
    /// Rows that were looked at.
    pub rows_examined: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_known_of_numbers_that_were_read_twice_and_did_not_go_back() {
        let misc = "Innodb_buffer_pool_pages_misc";
        let before = Variables::from_iter([("A", "10"), ("B", "10"), ("C", "ON"), (misc, "3")]);
        let after = Variables::from_iter([
            ("A", "30"),
            ("B", "5"),
            ("C", "ON"),
            ("D", "7"),
            (misc, "18446744073709551614"),
        ]);
        let status = StatusVariables::between(&before, after.clone(), 4.0);
        assert_eq!(status.growth_per_s, BTreeMap::from([("a".to_owned(), 5.0)]));
        assert_eq!(status.last.get("c"), Some("ON"));
        assert!(StatusVariables::between(&before, after.clone(), 0.0).growth_per_s.is_empty());
        assert!(StatusVariables::once(after).growth_per_s.is_empty());
    }
}
