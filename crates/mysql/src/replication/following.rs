//! Whether a replica follows its source.

use std::time::{Duration, Instant};

use ebbtide_load::{Cancel, LoadError, Session};

use super::status::{Status, status};

/// How often it is asked whether a replica follows by now.
const LOOK: Duration = Duration::from_millis(20);

/// Why a replica does not follow its source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicaLost {
    /// It has stopped with an error.
    #[error("the replica has stopped: {error}; {place}")]
    Stopped {
        /// Its error.
        error: String,
        /// Where it is.
        place: String,
    },
    /// It does not apply what it fetches.
    #[error("the replica applies nothing, and does not say why; {place}")]
    Idle {
        /// Where it is.
        place: String,
    },
    /// It did not reach its source in time.
    #[error("the replica has not reached its source after {seconds} s{}; {place}", because(error.as_deref()))]
    NotConnected {
        /// How long it was waited for.
        seconds: u64,
        /// Its message.
        error: Option<String>,
        /// Where it is.
        place: String,
    },
    /// It has not applied what it has fetched in time.
    #[error("the replica has not applied what it has fetched after {seconds} s; {place}")]
    Behind {
        /// How long it was waited for.
        seconds: u64,
        /// Where it is.
        place: String,
    },
    /// It knows of no source.
    #[error("the replica follows nobody")]
    Alone,
    /// The user ended the run.
    #[error("cancelled")]
    Cancelled,
    /// It, or its source, could not be asked.
    #[error("{0}")]
    Unasked(LoadError),
}

fn because(error: Option<&str>) -> String {
    error.map(|error| format!(": {error}")).unwrap_or_default()
}

/// Refuses a replica that has stopped, or that applies nothing. One that still connects has not given up.
///
/// # Errors
/// [`ReplicaLost`].
pub fn check_follows(session: &mut Session) -> Result<Status, ReplicaLost> {
    let status = status(session).map_err(ReplicaLost::Unasked)?.ok_or(ReplicaLost::Alone)?;
    if let Some(error) = status.stopped_by() {
        return Err(ReplicaLost::Stopped { error: error.to_owned(), place: status.place() });
    }
    if !status.applying {
        return Err(ReplicaLost::Idle { place: status.place() });
    }
    Ok(status)
}

/// Waits until a replica is connected to its source and applies what it fetches.
///
/// # Errors
/// [`ReplicaLost`]; it is given `patience` to connect.
pub fn wait_until_following(
    session: &mut Session,
    patience: Duration,
    cancel: &Cancel,
) -> Result<Status, ReplicaLost> {
    let began = Instant::now();
    loop {
        let status = check_follows(session)?;
        if status.connected {
            return Ok(status);
        }
        if cancel.is_cancelled() {
            return Err(ReplicaLost::Cancelled);
        }
        if began.elapsed() > patience {
            let place = status.place();
            return Err(ReplicaLost::NotConnected {
                seconds: patience.as_secs(),
                error: status.fetch_error,
                place,
            });
        }
        std::thread::sleep(LOOK);
    }
}
