//! The table of facts: what a server's variables show of how it writes pages.
//!
//! A row is a field of [`Facts`] with its meaning, the variables that it is read of, and how.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::server::{Flavour, Version};

/// Global variables of a server by name, in lower case, with the values as the server spells them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// The value of a variable; None: the server does not have it, or was not asked.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Each with its value, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether nothing is known of any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Settings whose values differ `now`; positions and clocks, which the server moves by itself, are none.
    #[must_use]
    pub fn changed_in(&self, now: &Self) -> Vec<String> {
        let moves = |name: &str| {
            name.starts_with("gtid_")
                || matches!(name, "timestamp" | "rand_seed1" | "rand_seed2" | "innodb_thread_sleep_delay")
        };
        let differs =
            |(name, value): &(&str, &str)| !moves(name) && now.get(name).is_some_and(|now| now != *value);
        self.iter().filter(differs).map(|(name, _)| name.to_owned()).collect()
    }
}

impl<N: AsRef<str>, V: Into<String>> FromIterator<(N, V)> for Variables {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let pair = |(name, value): (N, V)| (name.as_ref().to_ascii_lowercase(), value.into());
        Self(variables.into_iter().map(pair).collect())
    }
}

impl<N: AsRef<str>, V: Into<String>> Extend<(N, V)> for Variables {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, variables: I) {
        let pair = |(name, value): (N, V)| (name.as_ref().to_ascii_lowercase(), value.into());
        self.0.extend(variables.into_iter().map(pair));
    }
}

/// One row of the table [`FACTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact {
    /// Name of the field of [`Facts`], and of the key in JSON.
    pub name: &'static str,
    /// What it means, as a sentence.
    pub meaning: &'static str,
    /// The global variables that it is read of.
    pub variables: &'static [&'static str],
}

/// Makes the structure and the table of rows that are written as fields.
macro_rules! facts {
    (
        $(#[$outer:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                #[fact([$($variable:literal),+], $read:expr)]
                pub $field:ident: $type:ty,
            )+
        }
    ) => {
        $(#[$outer])*
        pub struct $name {
            $(
                $(#[doc = $meaning])+
                pub $field: $type,
            )+
        }

        /// All facts of a server, in the order of the fields of [`Facts`].
        pub const FACTS: &[Fact] = &[$(
            Fact {
                name: stringify!($field),
                meaning: concat!($($meaning),+).trim_ascii_start(),
                variables: &[$($variable),+],
            }
        ),+];

        impl $name {
            /// What a server's variables show.
            #[must_use]
            pub fn of(variables: &Variables) -> Self {
                Self { $($field: $read(variables)),+ }
            }
        }
    };
}

facts! {
    /// A running server that may be anyone's.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Facts {
        /// Whose server it is.
        #[fact(["version", "version_comment"], flavour)]
        pub flavour: Flavour,
        /// Its version, in its own words.
        #[fact(["version"], version)]
        pub version: String,
        /// The version of Aurora, whose storage takes no pages; none elsewhere.
        #[fact(["aurora_version"], aurora)]
        pub aurora: Option<String>,
        /// `innodb_doublewrite` in its own words; none where it has none.
        #[fact(["innodb_doublewrite"], doublewrite)]
        pub doublewrite: Option<String>,
        /// `innodb_page_size`, bytes.
        #[fact(["innodb_page_size"], page_bytes)]
        pub page_bytes: Option<u64>,
        /// Whether data files are opened with `O_DIRECT`; None: no variable shows it.
        #[fact(["innodb_data_file_buffering", "innodb_flush_method"], direct)]
        pub direct: Option<bool>,
        /// Whether a page takes its neighbours along when it is written (`innodb_flush_neighbors`); none where no
        /// variable shows it.
        #[fact(["innodb_flush_neighbors"], flush_neighbors)]
        pub flush_neighbors: Option<bool>,
    }
}

impl Facts {
    /// The release, without what the distribution adds to it; none where the version has no such form.
    #[must_use]
    pub fn release(&self) -> Option<Version> {
        Version::parse(&self.version)
    }

    /// Bytes of the redo log by the variables alone: `innodb_redo_log_capacity`, or else the size of all files together; none
    /// where they do not have it. [`Observation::redo_capacity_bytes`](crate::Observation::redo_capacity_bytes) knows more.
    #[must_use]
    pub fn redo_bytes(&self, variables: &Variables) -> Option<u64> {
        let number = |name: &str| variables.get(name)?.parse::<u64>().ok();
        number("innodb_redo_log_capacity")
            .or_else(|| number("innodb_log_file_size")?.checked_mul(self.redo_files(variables)))
    }

    /// Files that `innodb_log_file_size` is the size of: one on MariaDB from 10.5 on.
    #[must_use]
    pub fn redo_files(&self, variables: &Variables) -> u64 {
        let one = self.flavour == Flavour::MariaDb && self.release() >= Some(Version::new(10, 5, 0));
        let files = variables.get("innodb_log_files_in_group").filter(|_| !one);
        files.and_then(|files| files.parse().ok()).unwrap_or(1)
    }
}

/// What a word means for a switch, as settings and servers write it: MariaDB prints `YES` in places. None for any other word.
#[must_use]
pub fn switch(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" => Some(true),
        "off" | "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

fn flavour(variables: &Variables) -> Flavour {
    let texts = ["version", "version_comment"].map(|name| variables.get(name).unwrap_or_default());
    let is = |maker: &str| texts.iter().any(|text| text.contains(maker));
    match () {
        () if is("MariaDB") => Flavour::MariaDb,
        () if is("Percona") => Flavour::Percona,
        () => Flavour::MySql,
    }
}

fn version(variables: &Variables) -> String {
    variables.get("version").unwrap_or_default().to_owned()
}

fn aurora(variables: &Variables) -> Option<String> {
    variables.get("aurora_version").map(str::to_owned)
}

fn doublewrite(variables: &Variables) -> Option<String> {
    variables.get("innodb_doublewrite").map(str::to_owned)
}

fn page_bytes(variables: &Variables) -> Option<u64> {
    variables.get("innodb_page_size")?.parse().ok()
}

fn direct(variables: &Variables) -> Option<bool> {
    // MariaDB's newer variable decides where there are both.
    if let Some(buffering) = variables.get("innodb_data_file_buffering") {
        return Some(!buffering.eq_ignore_ascii_case("on"));
    }
    let method = variables.get("innodb_flush_method")?.to_ascii_uppercase();
    Some(matches!(&*method, "O_DIRECT" | "O_DIRECT_NO_FSYNC" | "ALL_O_DIRECT"))
}

fn flush_neighbors(variables: &Variables) -> Option<bool> {
    variables.get("innodb_flush_neighbors").map(|value| value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_was_changed_is_named_and_a_position_is_none() {
        let before = Variables::from_iter([("sync_binlog", "1"), ("gtid_executed", "a:1"), ("port", "3306")]);
        let now = Variables::from_iter([("sync_binlog", "0"), ("gtid_executed", "a:2"), ("port", "3306")]);
        assert_eq!(before.changed_in(&now), ["sync_binlog"]);
        assert!(before.changed_in(&before).is_empty());
    }

    #[test]
    fn each_fact_is_read_of_variables() {
        for fact in FACTS {
            assert!(!fact.variables.is_empty() && fact.meaning.ends_with('.'), "{}", fact.name);
            assert!(fact.variables.iter().all(|name| *name == name.to_lowercase()), "{}", fact.name);
        }
    }

    fn facts(variables: &[(&str, &str)]) -> Facts {
        Facts::of(&variables.iter().copied().collect())
    }

    #[test]
    fn a_server_is_known_by_its_version_or_its_comment() {
        let flavour = |version, comment| facts(&[("version", version), ("version_comment", comment)]).flavour;
        assert_eq!(flavour("10.11.19-MariaDB-log", "Debian 12"), Flavour::MariaDb);
        assert_eq!(flavour("8.0.36-28", "Percona Server (GPL), Release 28"), Flavour::Percona);
        assert_eq!(flavour("8.0.35", "Source distribution"), Flavour::MySql);
        assert_eq!(facts(&[("aurora_version", "3.04.0")]).aurora.as_deref(), Some("3.04.0"));
    }

    #[test]
    fn data_files_go_past_the_page_cache_as_the_newer_variable_reports_or_else_the_older() {
        let direct = |variables: &[(&str, &str)]| facts(variables).direct;
        assert_eq!(direct(&[]), None);
        assert_eq!(direct(&[("innodb_flush_method", "O_DIRECT_NO_FSYNC")]), Some(true));
        assert_eq!(direct(&[("innodb_flush_method", "fsync")]), Some(false));
        let both = [("innodb_flush_method", "O_DIRECT"), ("innodb_data_file_buffering", "ON")];
        assert_eq!(direct(&both), Some(false));
        assert_eq!(direct(&[("innodb_data_file_buffering", "OFF")]), Some(true));
    }

    #[test]
    fn a_redo_log_has_as_many_files_as_the_release_makes() {
        let files = |version| {
            let variables = Variables::from_iter([("version", version), ("innodb_log_files_in_group", "3")]);
            Facts::of(&variables).redo_files(&variables)
        };
        assert_eq!([files("5.7.44"), files("8.0.36"), files("10.4.34-MariaDB")], [3, 3, 3]);
        assert_eq!(files("10.11.19-MariaDB"), 1);
    }

    #[test]
    fn neighbours_travel_along_with_every_value_but_0() {
        let along = |value| facts(&[("innodb_flush_neighbors", value)]).flush_neighbors;
        assert_eq!(["0", "1", "2"].map(along), [Some(false), Some(true), Some(true)]);
        assert_eq!(facts(&[]).flush_neighbors, None);
    }
}
