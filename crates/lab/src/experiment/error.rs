//! What can be wrong with an experiment, before anything runs.

use super::ArmError;

/// An experiment that cannot be run as it is written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// Neither a shipped experiment nor a file.
    #[error(
        "there is no experiment '{name}'{}; the experiments are {known}; a file of your own needs a '/' or ends in .toml",
        ebbtide_text::did_you_mean(nearest.as_deref())
    )]
    Unknown {
        /// The name given.
        name: String,
        /// The shipped one that is most like it.
        nearest: Option<String>,
        /// All of them.
        known: String,
    },
    /// A file that cannot be read.
    #[error("cannot read the experiment {path}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Something in the file or on the command line.
    #[error("{place}: {message}")]
    Wrong {
        /// Where: a file's line, or an option of the command line.
        place: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// [`super::fit`] left no arm.
    #[error("this server lacks settings of every arm: choose other arms or another server")]
    NoArms,
    /// Something that the whole of an arm, a server or the catalogue does not allow.
    #[error("arm '{arm}': {why}")]
    Arm {
        /// The arm.
        arm: String,
        /// What is wrong, and what would be right.
        why: Box<ArmError>,
    },
}

impl ExperimentError {
    /// An arm that cannot be run as it is written.
    pub fn of_arm(arm: &str, why: impl Into<ArmError>) -> Self {
        Self::Arm { arm: arm.to_owned(), why: Box::new(why.into()) }
    }
}
