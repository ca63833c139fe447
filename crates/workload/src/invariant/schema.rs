//! The tables of the load, and the rules by which each of their rows proves itself.

use serde::{Deserialize, Serialize};

use crate::error::{OptionError, in_range};

/// What every account holds at first.
pub const INITIAL_BALANCE: i64 = 1_000;
/// Clients of one set of tables, at most.
pub const MAX_CLIENTS: u32 = 64;
/// Ids are MySQL INTEGER.
const MAX_ROWS: u32 = 2_147_483_647;
/// A client's window of history, at most: 64 clients then have 64 million rows.
const MAX_WINDOW: u32 = 1_000_000;

/// The size of the tables. The check of a server needs the same values as `prepare` and the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schema {
    /// Accounts, 2 to 2147483647. Each row has about 60 bytes.
    pub accounts: u32,
    /// Rows of the ballast table, 1 to 2147483647. Each has about 250 bytes, with its index entry.
    pub rows: u32,
    /// Rows that the history keeps of each client, 1 to 1000000.
    pub window: u32,
    /// The storage engine.
    pub engine: String,
}

impl Default for Schema {
    /// 1,000 accounts, 10,000 rows of ballast, 100 rows of history a client, InnoDB.
    fn default() -> Self {
        Self { accounts: 1_000, rows: 10_000, window: 100, engine: "InnoDB".into() }
    }
}

impl Schema {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        in_range("accounts", self.accounts, 2, MAX_ROWS, "2 to 2147483647 accounts")?;
        in_range("rows", self.rows, 1, MAX_ROWS, "1 to 2147483647 rows")?;
        in_range("window", self.window, 1, MAX_WINDOW, "1 to 1000000 rows of history for each client")?;
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.engine.is_empty() || !self.engine.chars().all(word) {
            let allowed = "a storage engine's name of letters, digits and underscores, such as InnoDB";
            return Err(OptionError::OutOfRange { option: "engine", value: self.engine.clone(), allowed });
        }
        Ok(())
    }

    /// A number that changes with the form of the tables: what another version of this program prepared is
    /// not what this one checks.
    #[must_use]
    pub fn form() -> u32 {
        crc32fast::hash(include_bytes!("tables.sql"))
    }

    /// The statements that create accounts, ballast, history, and the markers of what was rolled back.
    pub(super) fn statements(&self) -> [String; 4] {
        let text = include_str!("tables.sql").replace("@ENGINE@", &self.engine);
        let mut parts = text.split(';').map(|part| part.trim().to_owned());
        std::array::from_fn(|_| parts.next().expect("the file has four statements"))
    }

    /// The lowest history row that a client with this mark has; 0 where it has none.
    #[must_use]
    pub fn oldest(&self, mark: u64) -> u64 {
        // A damaged mark may be any number.
        mark.min(mark.saturating_add(1).saturating_sub(self.window.into()).max(1))
    }
}

/// Checks a number of clients.
///
/// # Errors
/// A number outside of 1 to [`MAX_CLIENTS`].
pub fn check_clients(clients: u32) -> Result<(), OptionError> {
    in_range("clients", clients, 1, MAX_CLIENTS, "1 to 64 clients")
}

/// A table whose rows carry a checksum.
#[derive(Debug, Clone, Copy)]
pub struct CheckedTable {
    /// Its name.
    pub name: &'static str,
    /// The primary key's columns.
    pub key: &'static [&'static str],
    /// The columns under the checksum, as SQL lists them.
    pub summed: &'static str,
    /// Its secondary indexes.
    pub indexes: &'static [Index],
}

/// A secondary index.
#[derive(Debug, Clone, Copy)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its columns, without those of the primary key that InnoDB appends.
    pub columns: &'static [&'static str],
}

/// The accounts.
pub const ACCOUNT: CheckedTable =
    CheckedTable { name: "ebbtide_account", key: &["id"], summed: "id,balance,version", indexes: &[] };

/// Rows that make the tables larger than the buffer pool.
pub const BALLAST: CheckedTable = CheckedTable {
    name: "ebbtide_ballast",
    key: &["id"],
    summed: "id,k,c,pad,hits",
    indexes: &[Index { name: "by_k", columns: &["k"] }],
};

/// What each client did last.
pub const HISTORY: CheckedTable = CheckedTable {
    name: "ebbtide_history",
    key: &["client", "seq"],
    summed: "client,seq,a,b,amount,payload",
    indexes: &[
        Index { name: "by_a", columns: &["a"] },
        Index { name: "by_b_amount", columns: &["b", "amount"] },
    ],
};

/// Marker rows of transactions that are rolled back: nobody may ever see one.
pub const ABORTED: &str = "ebbtide_aborted";
/// The payload of a history row of such a transaction starts with this.
pub const ABORTED_PAYLOAD: &str = "aborted-";

impl CheckedTable {
    /// The checksum of a row as the server computes it.
    #[must_use]
    pub fn crc(&self) -> String {
        format!("CRC32(CONCAT_WS('|',{}))", self.summed)
    }

    /// The key's columns, as SQL lists them.
    #[must_use]
    pub fn key_list(&self) -> String {
        self.key.join(",")
    }

    /// A number for the entry of a row in an index, computed from columns that both hold.
    #[must_use]
    pub fn print(&self, index: &Index) -> String {
        format!("CRC32(CONCAT_WS('|',{},{}))", self.key_list(), index.columns.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_starts_a_window_behind_the_mark() {
        let schema = Schema { window: 10, ..Schema::default() };
        let oldest = [0, 1, 9, 10, 11, 25].map(|mark| schema.oldest(mark));
        assert_eq!(oldest, [0, 1, 1, 1, 2, 16]);
    }

    #[test]
    fn a_schema_out_of_range_is_refused_with_the_value_and_the_range() {
        let refused = |schema: Schema| schema.check().unwrap_err().to_string();
        let of = Schema::default;
        assert!(refused(Schema { accounts: 1, ..of() }).contains("--accounts=1 is out of range: 2 to"));
        assert!(refused(Schema { rows: 0, ..of() }).contains("--rows=0"));
        assert!(refused(Schema { window: 0, ..of() }).contains("--window=0"));
        assert!(refused(Schema { engine: "x; DROP".into(), ..of() }).contains("letters, digits"));
        assert_eq!(
            check_clients(65).unwrap_err().to_string(),
            "--clients=65 is out of range: 1 to 64 clients"
        );
    }

    #[test]
    fn every_statement_has_the_engine() {
        let statements = Schema { engine: "Aria".into(), ..Schema::default() }.statements();
        for statement in statements {
            assert!(statement.starts_with("CREATE TABLE ebbtide_") && statement.contains("ENGINE = Aria"));
        }
    }
}
