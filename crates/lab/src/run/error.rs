//! Why a run did not begin or did not come to its end.

use std::io;
use std::path::PathBuf;

use ebbtide_device::host::{HomeError, HostError};
use ebbtide_device::store::StoreError;
use ebbtide_load::LoadError;
use ebbtide_load::ledger::LedgerError;
use ebbtide_mysql::ServerError;
use ebbtide_mysql::backup::BackupError;
use ebbtide_mysql::replication::ReplicaLost;
use ebbtide_mysql::status::StatusError;

use crate::experiment::ExperimentError;
use crate::results::ResultsError;

/// A run that did not begin, or ended early. A trial that fails is none: it is recorded as failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Another run has the lab's home.
    #[error("another run is under way in {}, as process {pid}", home.display())]
    Busy {
        /// The lab's home.
        home: PathBuf,
        /// The process.
        pid: String,
    },
    /// The home.
    #[error(transparent)]
    Home(HomeError),
    /// The host of the volumes.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The experiment does not fit the catalogue or the server.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The host cannot carry what the experiment asks for.
    #[error("this host is slower than the experiment's volumes: {}", .0.join("; "))]
    HostTooSlow(
        /// Each volume with the figures, named by its arm and role.
        Vec<String>,
    ),
    /// The disk that holds the home has too little room.
    #[error(
        "the run needs about {} MiB on the disk that holds {}, and {} MiB are free",
        needed >> 20,
        dir.display(),
        free >> 20
    )]
    NoSpace {
        /// The lab's home.
        dir: PathBuf,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The machine, or the rights of this user, do not suffice.
    #[error("this cannot run here: {}", .0.join("; "))]
    Missing(
        /// What is missing, each in a few words.
        Vec<String>,
    ),
    /// The machine has too little memory.
    #[error(
        "arm '{arm}' gives its server {} MiB, and this machine has {} MiB available",
        needed >> 20,
        available >> 20
    )]
    NoMemory {
        /// The arm.
        arm: String,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are there.
        available: u64,
    },
    /// The server does not run as an arm asks.
    #[error("arm '{arm}'{} cannot run on {server}: {}{}", and_more(*others), error.chain(), lines(error))]
    Unfit {
        /// The arm.
        arm: String,
        /// How many further arms ask for the same.
        others: usize,
        /// The server and its version.
        server: String,
        /// Its message.
        error: Box<StepError>,
        /// Whether it runs without the arm's settings.
        by_settings: bool,
    },
    /// Whether the server runs as the arms ask could not be tried.
    #[error("the server could not be tried: {}", .0.chain())]
    Untried(Box<StepError>),
    /// The data could not be made.
    #[error("the data could not be prepared: {}{}", .0.chain(), lines(.0))]
    Prepare(Box<StepError>),
    /// The results cannot be kept.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The user ended it. What was measured is in the results.
    #[error("cancelled after {done} of {of} trials")]
    Cancelled {
        /// Trials or stints in the results.
        done: usize,
        /// Trials altogether.
        of: usize,
    },
    /// The first trial of each arm failed for one reason.
    #[error("the first trial of each arm failed, so the run ended after {done} of {of} trials: {why}")]
    AllFailed {
        /// The reason.
        why: String,
        /// Trials in the results.
        done: usize,
        /// Trials altogether.
        of: usize,
    },
    /// The operating system refused.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why not.
        source: io::Error,
    },
}

impl RunError {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }

    /// What to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Busy { .. } => "wait for its end, or name another home with --home",
            Self::HostTooSlow(_) => {
                "choose smaller volumes; --over-limit runs all the same and marks the results"
            }
            Self::NoSpace { .. } => {
                "free space there, take fewer rows or warehouses, delete prepared data that nothing needs, or name another home"
            }
            Self::Missing(_) => {
                "run it as root, on a host with /dev/fuse, loop devices and memory cgroups; a container needs \
                 --privileged"
            }
            Self::NoMemory { .. } => "give the instance less memory with --set",
            Self::Unfit { error, by_settings, .. } => return error.hint(*by_settings).map(str::to_owned),
            Self::Untried(error) | Self::Prepare(error) => return error.hint(false).map(str::to_owned),
            Self::Results(error) => return error.hint().map(str::to_owned),
            Self::Cancelled { .. } => "--resume goes on with what is missing",
            Self::AllFailed { .. } => {
                "mend the reason; --resume DIR then runs these trials again. If the data are the reason, \
                 ebbtide run --delete-prepared NAME has them made anew"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// Whether the machine is the reason, rather than the request.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        match self {
            Self::Experiment(_) => false,
            Self::Unfit { by_settings, error, .. } => !by_settings && error.is_environment(),
            Self::Results(error) => error.is_environment(),
            _ => true,
        }
    }
}

/// Why a step of a run failed: a server could not be brought to work on its volumes, or its load did not run. During the
/// preparation it ends the run; in a trial it fails the trial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The volumes.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The block store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The load, or a statement of ours.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The file system on a volume ran full.
    #[error("volume full: the {role} volume of {} MiB has {} MiB of room left", size >> 20, free >> 20)]
    VolumeFull {
        /// What it holds.
        role: &'static str,
        /// Its size, bytes.
        size: u64,
        /// What its file system still has, bytes; a server may have asked for more at a time.
        free: u64,
    },
    /// The load ended early, with an error of the server.
    #[error("the load ended with the server's error {code} ({statement}): {message}")]
    LoadFailed {
        /// The server's error code, such as 1213.
        code: u16,
        /// The server's words.
        message: String,
        /// The kind of statement.
        statement: String,
    },
    /// What the load had seen acknowledged cannot be read.
    #[error(transparent)]
    Ledger(LedgerError),
    /// A replica does not follow its source.
    #[error(transparent)]
    Replica(ReplicaLost),
    /// The backup under the load was not made.
    #[error("the backup was not made")]
    Backup(#[source] BackupError),
    /// The load ended before the backup was to begin.
    #[error("the load ended before the backup was to begin")]
    BackupTooLate,
    /// A restored backup does not hold what it should.
    #[error("{0}")]
    NotRestored(String),
    /// The server's status could not be read.
    #[error(transparent)]
    Status(#[from] StatusError),
    /// The disk of the host ran full, or broke: a fault of the machine, not of the arm.
    #[error("{0}")]
    HostFailed(String),
    /// The user ended the run.
    #[error("cancelled")]
    Cancelled,
    /// The operating system refused.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why not.
        source: io::Error,
    },
}

impl From<BackupError> for StepError {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Cancelled => Self::Cancelled,
            error => Self::Backup(error),
        }
    }
}

impl From<ReplicaLost> for StepError {
    fn from(lost: ReplicaLost) -> Self {
        match lost {
            ReplicaLost::Cancelled => Self::Cancelled,
            lost => Self::Replica(lost),
        }
    }
}

/// The server's own lines, where it left any.
fn lines(error: &StepError) -> String {
    error.log().iter().map(|line| format!("\n    {line}")).collect()
}

fn and_more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" (and {count} more like it)") }
}

impl StepError {
    /// The server's own lines, where it left any.
    #[must_use]
    pub fn log(&self) -> &[String] {
        if let Self::Server(error) = self { error.log() } else { &[] }
    }

    /// Whether the machine is the reason, rather than what was asked.
    fn is_environment(&self) -> bool {
        if let Self::Server(error) = self { error.is_environment() } else { true }
    }

    /// What to do about it, where that is known.
    fn hint(&self, by_settings: bool) -> Option<&'static str> {
        let Self::Server(error) = self else { return None };
        match error {
            ServerError::Setting(_) | ServerError::SettingRefused { .. } => {
                Some("change the setting, or take it back with --set ARM.SETTING=default")
            }
            ServerError::NothingToMove { .. } => Some(
                "run it without an undo volume (--set volumes.undo=none), on a newer server, or with undo_tablespaces \
                 in its settings",
            ),
            other => other.hint().or(by_settings.then_some(
                "it starts without this arm's settings: one of them, or some together, keep it from that",
            )),
        }
    }

    /// Its words and those of its causes.
    #[must_use]
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// An error's words and those of its causes.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
