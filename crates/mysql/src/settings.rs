//! Server settings in one vocabulary, and what each server calls them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Settings by their canonical names, such as `redo_capacity`; values as people write them (`1GiB`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings {
    values: BTreeMap<String, String>,
}

/// A setting that cannot be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingError {
    /// No server has it.
    #[error("there is no setting '{name}'")]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest one that there is.
        nearest: Option<String>,
    },
}
