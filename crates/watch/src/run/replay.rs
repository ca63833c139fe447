//! The history in place of what is, second by second.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ebbtide_history::{HistoryError, Samples};
use ebbtide_http::{LoopbackAddress, Server};
use ebbtide_load::Cancel;

use super::error::RunError;
use super::listen;
use super::sources::machine_name;
use super::worker::{unix_ms, wait_until};
use crate::live::ReplaySource;
use crate::view::{View, ViewSource};

/// An interval of the history is shown for so long.
const STEP: Duration = Duration::from_secs(1);

/// A span of the history, which is shown from its beginning on.
#[derive(Debug)]
pub struct Replay {
    source: Arc<ReplaySource>,
    directory: PathBuf,
}

impl Replay {
    /// Opens the history of a directory, for a span of milliseconds since 1970. It is only read.
    ///
    /// # Errors
    /// There is no history there, it cannot be read, or it is of another version.
    pub fn open(directory: &Path, span_ms: &std::ops::Range<u64>) -> Result<Self, RunError> {
        if !directory.join(ebbtide_history::FILE).is_file() {
            return Err(RunError::NoHistory { directory: directory.to_owned() });
        }
        let samples = Samples::open_read_only(directory).map_err(|source| unreadable(directory, source))?;
        let source = ReplaySource::new(Arc::new(samples), machine_name(), span_ms, unix_ms());
        let source = source.map_err(|source| unreadable(directory, source))?;
        Ok(Self { source: Arc::new(source), directory: directory.to_owned() })
    }

    /// What is shown.
    #[must_use]
    pub fn source(&self) -> Arc<dyn ViewSource> {
        Arc::<ReplaySource>::clone(&self.source)
    }

    /// The last moment of the span.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn last_moment(&self) -> Result<Arc<View>, RunError> {
        self.source.seek_end().map_err(|source| unreadable(&self.directory, source))?;
        Ok(self.source.view())
    }

    /// Serves the pages, until the server is dropped.
    ///
    /// # Errors
    /// The address is taken, or cannot be listened at.
    pub fn listen(&self, address: LoopbackAddress) -> Result<Server, RunError> {
        listen::start_replay(address, &self.source())
    }

    /// Begins to move on, an interval each second, until the end, which stays shown, or until `stop`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn play(&self, stop: &Cancel) -> Result<Player, RunError> {
        let (source, stop) = (Arc::clone(&self.source), stop.clone());
        let run = move || {
            while !stop.is_cancelled() {
                wait_until(Instant::now() + STEP, &stop);
                match source.advance() {
                    Ok(true) => {}
                    // The view says of which time it is.
                    Ok(false) | Err(_) => return,
                }
            }
        };
        Ok(Player(thread::Builder::new().name("replay".to_owned()).spawn(run)?))
    }
}

fn unreadable(directory: &Path, source: HistoryError) -> RunError {
    RunError::Unreadable { directory: directory.to_owned(), source }
}

/// The thread that moves a replay on.
#[derive(Debug)]
pub struct Player(thread::JoinHandle<()>);

impl Player {
    /// Waits for the end, which `stop` brings.
    ///
    /// # Errors
    /// It ended by a panic.
    pub fn end(self) -> Result<(), RunError> {
        self.0.join().map_err(|_| RunError::Panicked("plays"))
    }
}
