//! Server settings in one vocabulary, and what each server calls them.
//!
//! A [`Settings`] has what is wanted (`redo_capacity = 1GiB`); [`Settings::options_for`] gives the options of one
//! server's words (`innodb_log_file_size=1073741824`, or two files of half of it, or
//! `innodb_redo_log_capacity`); [`verify`] reads back what the running server made of it. What the servers
//! call things, allow and default to is data: `data/settings.toml`.

mod describe;
mod listed;
mod names;
mod render;
mod table;
mod value;
mod verify;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::error::SettingError;
pub use describe::{Difference, Effective, Known, KnownSpan, differences, known};
pub use verify::verify;

use crate::Binary;
use crate::error::ServerError;
use table::table;

/// The prefix of a server's own variable that the table lacks.
const RAW: &str = "raw.";

/// Settings by their canonical names, such as `redo_capacity`; values as people write them (`1GiB`).
///
/// `raw.NAME` represents a server's own option that the table lacks, by the whole name that the server lists. It is handed on
/// as it is, unless its value is a path, a library or a user, and the server judges it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Scalar>", into = "BTreeMap<String, String>")]
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
    /// A name that no server has, or one that is not the user's to set, or a value that it cannot take on
    /// any server.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        let (name, text) = (name.trim(), text.trim());
        let key = match name.strip_prefix(RAW) {
            Some(own) => names::check_raw(name, own, text)?,
            None => names::canonical(name, text)?,
        };
        self.values.insert(key, text.to_owned());
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
        Ok(render::render(self, binary)?.into_iter().flat_map(|rendered| rendered.options).collect())
    }

    /// Checks the settings that are handed on as they are against the options that the server lists (`--verbose --help`), for
    /// which it is started once without data.
    ///
    /// # Errors
    /// A name that is not the whole name of a listed option; a value that is a path, a library or a user; a server that does
    /// not print its options.
    pub(crate) fn check_raw(&self, binary: &Binary) -> Result<(), ServerError> {
        listed::check(self, binary)
    }

    /// Those settings that a data directory, or the tables in it, are made with and keep (`page_size` and
    /// the like), and the server: two servers with the same key can run on copies of the same directory.
    #[must_use]
    pub fn init_key(&self, binary: &Binary) -> String {
        let mut key = format!("{} {}", binary.name(), binary.text);
        for row in table().rows.values().filter(|row| row.made_with) {
            if let Some(text) = self.get(&row.name) {
                let shape = row.shape();
                let value = shape.read(text).map_or_else(|| text.to_owned(), |value| shape.show(&value));
                key.push_str(&format!("; {}={value}", row.name));
            }
        }
        key
    }
}

/// A value in a file, which need not be quoted.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Switch(bool),
    Whole(i64),
    Decimal(f64),
    Text(String),
}

impl TryFrom<BTreeMap<String, Scalar>> for Settings {
    type Error = SettingError;

    fn try_from(written: BTreeMap<String, Scalar>) -> Result<Self, SettingError> {
        let mut settings = Self::new();
        for (name, value) in written {
            let text = match value {
                Scalar::Switch(on) => value::on_off(on).to_lowercase(),
                Scalar::Whole(number) => number.to_string(),
                Scalar::Decimal(number) => number.to_string(),
                Scalar::Text(text) => text,
            };
            settings.set(&name, &text)?;
        }
        Ok(settings)
    }
}

impl From<Settings> for BTreeMap<String, String> {
    fn from(settings: Settings) -> Self {
        settings.values
    }
}
