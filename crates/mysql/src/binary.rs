//! Which server a program is.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// MariaDB.
    MariaDb,
    /// Oracle's MySQL.
    MySql,
    /// Percona Server for MySQL.
    Percona,
}

/// A server's version number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    /// Like the 10 of 10.11.6.
    pub major: u32,
    /// Like its 11.
    pub minor: u32,
    /// Like its 6.
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A server program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binary {
    /// The program.
    pub path: PathBuf,
    /// Whose it is.
    pub flavour: Flavour,
    /// Its version.
    pub version: Version,
    /// Its version in its own words (`--version`).
    pub text: String,
}
