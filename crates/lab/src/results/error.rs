//! What can be wrong with results.

use std::path::PathBuf;

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
        "{dir} was written with schema {found}, and this program reads {reads}: \
         read it with the program that wrote it"
    )]
    Schema {
        /// The directory.
        dir: PathBuf,
        /// Its schema.
        found: u32,
        /// The schema that this program reads.
        reads: u32,
    },
    /// They are those of another command.
    #[error("{dir} does not hold the results of {of}")]
    OtherKind {
        /// The directory.
        dir: PathBuf,
        /// The command whose results were looked for.
        of: &'static str,
    },
    /// A run cannot go on with them: it would not be the same one.
    #[error("the run in {dir} was another one: {}", differences.join("; "))]
    Different {
        /// The directory.
        dir: PathBuf,
        /// What differs, each with both values.
        differences: Vec<String>,
    },
    /// A run cannot be held against another of which it is no repeat.
    #[error("{dir} holds a run of something else: {}", differences.join("; "))]
    OtherExperiment {
        /// The directory.
        dir: PathBuf,
        /// What differs: what it is there, and what it is in the other run.
        differences: Vec<String>,
    },
    /// A run would be held against itself.
    #[error("{dir} and {other} hold the same run, which agrees with itself")]
    SameRun {
        /// A directory.
        dir: PathBuf,
        /// The other one.
        other: PathBuf,
    },
    /// A run is still under way, or was killed.
    #[error("the run in {dir} has not ended")]
    Unended {
        /// The directory.
        dir: PathBuf,
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
        matches!(self, Self::Schema { .. } | Self::Database { .. } | Self::File { .. } | Self::Damaged { .. })
    }

    /// What to do about it, where that is known.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some("without --resume a run begins anew"),
            Self::Different { .. } => Some(
                "--resume and --out alone go on with the run as it was begun, on the same machine, with the same server, \
                 catalogue and program; or begin anew in another directory",
            ),
            Self::OtherExperiment { .. } => {
                Some("name runs of the same experiment, options and server: only the seed may be another")
            }
            Self::SameRun { .. } => Some("name each run once"),
            Self::Unended { .. } => Some("wait for its end, or go on with it: --resume with --out"),
            _ => None,
        }
    }
}
