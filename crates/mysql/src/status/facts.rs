//! What a running server is, and how it writes pages, asked of itself.

use std::collections::BTreeMap;

use ebbtide_load::Session;
use serde::{Deserialize, Serialize};

use super::StatusError;
use crate::{Flavour, Version};

/// The variables that are asked for.
const VARIABLES: [&str; 8] = [
    "aurora_version",
    "innodb_data_file_buffering",
    "innodb_doublewrite",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_page_size",
    "version",
    "version_comment",
];

/// A running server that may be anyone's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Whose server it is.
    pub flavour: Flavour,
    /// Its version, in its own words.
    pub version: String,
    /// The version of Aurora, whose storage takes no pages; none elsewhere.
    pub aurora: Option<String>,
    /// `innodb_doublewrite` in its own words; none where it has none.
    pub doublewrite: Option<String>,
    /// `innodb_page_size`, bytes.
    pub page_bytes: Option<u64>,
    /// Whether data files are opened with `O_DIRECT`; none where no variable says so.
    pub direct: Option<bool>,
    /// Whether a page takes its neighbours along when it is written (`innodb_flush_neighbors`); none where no
    /// variable says so.
    pub flush_neighbors: Option<bool>,
}

impl Facts {
    /// Asks a server; any account may.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn read(session: &mut Session) -> Result<Self, StatusError> {
        let names = VARIABLES.map(|name| format!("'{name}'")).join(",");
        let rows = session.rows(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"))?;
        let pair = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter();
            Some((cells.next()??, cells.next()??))
        };
        Ok(Self::of(rows.into_iter().filter_map(pair).collect()))
    }

    /// The release, without what the distribution adds to it; none where the version has no such form.
    #[must_use]
    pub fn release(&self) -> Option<Version> {
        Version::parse(&self.version)
    }

    fn of(mut variables: BTreeMap<String, String>) -> Self {
        let mut take = |name: &str| variables.remove(name);
        let version = take("version").unwrap_or_default();
        let comment = take("version_comment").unwrap_or_default();
        let is = |maker: &str| version.contains(maker) || comment.contains(maker);
        let flavour = match () {
            () if is("MariaDB") => Flavour::MariaDb,
            () if is("Percona") => Flavour::Percona,
            () => Flavour::MySql,
        };
        let method = take("innodb_flush_method").map(|method| method.to_ascii_uppercase());
        // MariaDB's newer variable decides where there are both.
        let buffered = take("innodb_data_file_buffering").map(|value| value.eq_ignore_ascii_case("on"));
        Self {
            flavour,
            aurora: take("aurora_version"),
            doublewrite: take("innodb_doublewrite"),
            page_bytes: take("innodb_page_size").and_then(|bytes| bytes.parse().ok()),
            direct: buffered
                .map(|buffered| !buffered)
                .or(method
                    .map(|method| matches!(&*method, "O_DIRECT" | "O_DIRECT_NO_FSYNC" | "ALL_O_DIRECT"))),
            flush_neighbors: take("innodb_flush_neighbors").map(|value| value != "0"),
            version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(variables: &[(&str, &str)]) -> Facts {
        Facts::of(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_server_is_told_by_its_version_or_its_comment() {
        let flavour = |version, comment| facts(&[("version", version), ("version_comment", comment)]).flavour;
        assert_eq!(flavour("10.11.19-MariaDB-log", "Debian 12"), Flavour::MariaDb);
        assert_eq!(flavour("8.0.36-28", "Percona Server (GPL), Release 28"), Flavour::Percona);
        assert_eq!(flavour("8.0.35", "Source distribution"), Flavour::MySql);
        assert_eq!(facts(&[("aurora_version", "3.04.0")]).aurora.as_deref(), Some("3.04.0"));
    }

    #[test]
    fn data_files_go_past_the_page_cache_as_the_newer_variable_says_or_else_the_older() {
        let direct = |variables: &[(&str, &str)]| facts(variables).direct;
        assert_eq!(direct(&[]), None);
        assert_eq!(direct(&[("innodb_flush_method", "O_DIRECT_NO_FSYNC")]), Some(true));
        assert_eq!(direct(&[("innodb_flush_method", "fsync")]), Some(false));
        let both = [("innodb_flush_method", "O_DIRECT"), ("innodb_data_file_buffering", "ON")];
        assert_eq!(direct(&both), Some(false));
        assert_eq!(direct(&[("innodb_data_file_buffering", "OFF")]), Some(true));
    }

    #[test]
    fn neighbours_travel_along_with_every_value_but_0() {
        let along = |value| facts(&[("innodb_flush_neighbors", value)]).flush_neighbors;
        assert_eq!(["0", "1", "2"].map(along), [Some(false), Some(true), Some(true)]);
        assert_eq!(facts(&[]).flush_neighbors, None);
    }
}
