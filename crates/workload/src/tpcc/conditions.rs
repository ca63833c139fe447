//! The consistency conditions of clause 3.3.2.

use super::Scale;
use super::numbered::table_names;
use crate::script::numbered;

const TEXT: &str = include_str!("conditions.sql");

/// A consistency condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its number in clause 3.3.2, 1 to 12.
    pub number: u8,
    /// What it is about.
    pub about: &'static str,
    query: String,
}

impl Condition {
    /// Whether it reads `history`, which has no index by warehouse: each query reads all of it.
    #[must_use]
    pub fn reads_history(&self) -> bool {
        self.query.contains("FROM history")
    }

    /// The query that returns a text for each row at fault of the warehouses from `first` to `last`, and stops at so
    /// many. `set`: the number in the names of the tables, 0 for names without.
    #[must_use]
    pub fn query(&self, set: u32, first: u32, last: u32, most: u32) -> String {
        let query = if set == 0 { self.query.clone() } else { numbered(&table_names(&self.query), set) };
        let query = query.replace("{first}", &first.to_string()).replace("{last}", &last.to_string());
        format!("{query} LIMIT {most}")
    }
}

/// All of them. Condition 11 is about a database as it was loaded: it asks for 2,100 delivered orders in each district.
/// Here it counts the deliveries since then, which the customers have, so that it holds after a run, too.
#[must_use]
pub fn conditions(scale: Scale) -> Vec<Condition> {
    let delivered = scale.delivered().to_string();
    let of = |block: &'static str| {
        let (head, query) = block.split_once('\n').expect("a heading and a query");
        let (number, about) = head.split_once(": ").expect("a number and what it is about");
        Condition {
            number: number.parse().expect("1 to 12"),
            about,
            query: query.trim().trim_end_matches(';').replace("{delivered}", &delivered),
        }
    };
    TEXT.split("-- ").skip(1).map(of).collect()
}
