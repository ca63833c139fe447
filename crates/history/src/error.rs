//! Why the history cannot be used.

use crate::FILE;

/// A history that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The file cannot be opened, made, or kept from other users.
    #[error("{FILE} cannot be opened or made")]
    Private(#[source] std::io::Error),
    /// SQLite does not do it.
    #[error("{FILE} cannot be used")]
    Sqlite(#[from] rusqlite::Error),
    /// A later version of this program wrote the file.
    #[error("{FILE} has version {found}, {known} is known; use the program that wrote it")]
    Version {
        /// The version found.
        found: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// An earlier version of this program wrote the file, which is only read.
    #[error(
        "{FILE} has version {found}, and {known} is read; a program that records into it brings it up: begin ebbtide watch once"
    )]
    Earlier {
        /// The version found.
        found: i64,
        /// The version that is read.
        known: i64,
    },
    /// A series or a layout that cannot be read.
    #[error("{FILE} is damaged: row {id} of {table}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The row.
        id: i64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}
