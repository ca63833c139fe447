//! Whose server it is, and which version.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metric::{Maker, Servers};

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

impl Flavour {
    /// Whose counters its servers keep: Percona Server has those of MySQL.
    #[must_use]
    pub const fn maker(self) -> Maker {
        match self {
            Self::MariaDb => Maker::MariaDb,
            Self::MySql | Self::Percona => Maker::MySql,
        }
    }
}

impl Flavour {
    /// Whether a server of this maker and a version is among some.
    #[must_use]
    pub fn is_among(self, version: Version, servers: Servers) -> bool {
        let number = (version.major, version.minor, version.patch);
        let since = servers.since.is_none_or(|since| number >= since);
        servers.include(self.maker()) && since && servers.until.is_none_or(|until| number < until)
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MariaDb => "MariaDB",
            Self::MySql => "MySQL",
            Self::Percona => "Percona Server",
        })
    }
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

impl Version {
    /// A version.
    #[must_use]
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// The number at the start of a word such as `10.11.19-MariaDB-0+deb12u1`. What MariaDB puts before it for
    /// replicas of MySQL (`5.5.5-`) is left out.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let own = word.strip_prefix("5.5.5-").unwrap_or(word);
        let number = own.split(|c: char| !(c.is_ascii_digit() || c == '.')).next()?;
        let mut parts = number.split('.').map(str::parse::<u32>);
        let mut part = || parts.next()?.ok();
        Some(Self::new(part()?, part()?, part()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_servers_own_and_not_what_it_sends_to_replicas() {
        assert_eq!(Version::parse("5.5.5-10.11.19-MariaDB-log"), Some(Version::new(10, 11, 19)));
        assert_eq!(Version::parse("5.5.5"), Some(Version::new(5, 5, 5)));
    }
}
