//! Why nothing is watched, or no longer.

use std::io;
use std::path::PathBuf;

use ebbtide_history::HistoryError;
use ebbtide_http::LoopbackAddress;

/// Why nothing is watched, or no longer. The program gives it an exit code and a hint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The system gives no thread.
    #[error("a thread cannot be started")]
    Thread(#[from] io::Error),
    /// A thread ended by a panic, which was printed there.
    #[error("the thread that {0} ended by a panic")]
    Panicked(&'static str),
    /// A server is named twice.
    #[error("the server {name} is named twice")]
    NamedTwice {
        /// Its name.
        name: String,
    },
    /// The directory of a history cannot be made.
    #[error("the history in {} cannot be opened", .directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A history cannot be opened or made.
    #[error("the history in {} cannot be opened", .directory.display())]
    History {
        /// Its directory.
        directory: PathBuf,
        /// Why.
        source: HistoryError,
    },
    /// There is no history to replay.
    #[error("there is no history in {}", .directory.display())]
    NoHistory {
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// A history cannot be read.
    #[error("the history in {} cannot be read", .directory.display())]
    Unreadable {
        /// Its directory.
        directory: PathBuf,
        /// Why.
        source: HistoryError,
    },
    /// The address is taken, or cannot be listened at.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: LoopbackAddress,
        /// Why.
        source: io::Error,
    },
}
