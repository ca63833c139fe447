//! What can be wrong with results.

use std::path::PathBuf;

use super::SCHEMA_VERSION;

/// Results cannot be kept, or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The directory holds results already.
    #[error("{dir} holds the results of a run already: name another directory, or go on with --resume")]
    Exists {
        /// The directory.
        dir: PathBuf,
    },
    /// There are none.
    #[error("{dir} holds no results of a run")]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// They were written by a program with another schema.
    #[error(
        "{dir} was written with schema {found}, and this program reads {SCHEMA_VERSION}: \
         read it with the program that wrote it"
    )]
    Schema {
        /// The directory.
        dir: PathBuf,
        /// Its schema.
        found: u32,
    },
    /// A run cannot go on with them: it would not be the same one.
    #[error("the run in {dir} was another one: {}", differences.join("; "))]
    Different {
        /// The directory.
        dir: PathBuf,
        /// What differs, each with both values.
        differences: Vec<String>,
    },
    /// The database refused.
    #[error("the database of {dir} failed")]
    Database {
        /// The directory.
        dir: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// A file could not be written or read.
    #[error("cannot {action} {path}")]
    File {
        /// What was tried: `write`, `read`, `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A stored value is not what this program writes.
    #[error("{dir} is damaged: {what}")]
    Damaged {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl ResultsError {
    /// Whether the machine is the reason, rather than the request.
    #[must_use]
    pub const fn is_environment(&self) -> bool {
        !matches!(self, Self::Exists { .. } | Self::Missing { .. } | Self::Different { .. })
    }

    /// What to do about it, where that is known.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some("without --resume a run begins anew"),
            Self::Different { .. } => Some(
                "go on with the same file, options, server and program, or begin anew in another directory",
            ),
            _ => None,
        }
    }
}
