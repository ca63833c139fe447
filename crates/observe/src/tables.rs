//! How much data a server has, and in which engines.

use serde::{Deserialize, Serialize};

/// Tables of users: those of the server's own schemas are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tables {
    /// Number of tables, and what they take, by engine.
    pub engines: Vec<Engine>,
    /// Whether there were more tables than are asked for, so that the figures are too small.
    pub bounded: bool,
    /// Whether the account sees only tables that it has privileges on, so that engines may be missing.
    #[serde(default)]
    pub hidden: bool,
    /// Rows of the larger tables in InnoDB; None where the server was not asked, or has no statistics of them.
    #[serde(default)]
    pub rows: Option<RowStatistics>,
}

/// What InnoDB's statistics say of the rows of tables: estimates, of the tables that are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowStatistics {
    /// Number of rows; over 0.
    pub rows: u64,
    /// Bytes of the pages that they are in (`data_length`), without those of secondary indexes.
    pub bytes: u64,
}

impl RowStatistics {
    /// Bytes of a row, free space of its page included (`avg_row_length`).
    #[must_use]
    pub fn row_bytes(&self) -> f64 {
        self.bytes as f64 / self.rows.max(1) as f64
    }
}

/// The tables of one engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// Its name, such as `InnoDB`.
    pub name: String,
    /// Number of tables.
    pub tables: u64,
    /// Bytes of their rows and indexes, as the server estimates them.
    pub bytes: u64,
}

impl Tables {
    /// Bytes of the tables in InnoDB.
    #[must_use]
    pub fn innodb_bytes(&self) -> u64 {
        self.engines
            .iter()
            .filter(|engine| engine.name.eq_ignore_ascii_case("innodb"))
            .map(|engine| engine.bytes)
            .sum()
    }
}
