//! Every variable of SHOW GLOBAL STATUS: its last value and its growth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::Variables;

/// All status variables of a server over an interval, by name in lower case. [`Rates`](crate::Rates) has those that are
/// recorded and compared; a check may need any other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusVariables {
    /// The values at the end, as the server spells them.
    pub last: Variables,
    /// Growth a second of each whole number that did not go back; empty where the status was read once.
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
        let growth = |(name, value): (&str, &str)| {
            let grown = value.parse::<u64>().ok()?.checked_sub(before.get(name)?.parse().ok()?)?;
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
        let before = Variables::from_iter([("A", "10"), ("B", "10"), ("C", "ON")]);
        let after = Variables::from_iter([("A", "30"), ("B", "5"), ("C", "ON"), ("D", "7")]);
        let status = StatusVariables::between(&before, after.clone(), 4.0);
        assert_eq!(status.growth_per_s, BTreeMap::from([("a".to_owned(), 5.0)]));
        assert_eq!(status.last.get("c"), Some("ON"));
        assert!(StatusVariables::between(&before, after.clone(), 0.0).growth_per_s.is_empty());
        assert!(StatusVariables::once(after).growth_per_s.is_empty());
    }
}
