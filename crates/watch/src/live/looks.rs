//! What the sources gave at the last look, as plain data.

use std::error::Error as _;
use std::sync::Arc;

use ebbtide_mysql::sampling::{Reading, SampleError};
use ebbtide_proc::process::OwnUsage;
use ebbtide_volume::Nanos;

use super::own_volume::OwnVolume;
use crate::host::{HostReading, Placement};
use crate::reading::CheckReading;

/// All that the sources have, each as it was when it last answered.
#[derive(Debug, Clone, Default)]
pub struct Looks {
    /// The servers, in the order in which they were named.
    pub servers: Vec<ServerLook>,
    /// The machine; None before it was first read, and where it is not watched.
    pub host: Option<HostLook>,
    /// Volumes of Ebbtide's own; None where none are served.
    pub own: Option<OwnLook>,
    /// Checks of the doctor that were answered since the last tick.
    pub checks: Vec<CheckReading>,
    /// What this process takes; None where the kernel does not report it.
    pub process: Option<OwnUsage>,
    /// Sources that could not be read.
    pub faults: Vec<SourceFault>,
}

impl Looks {
    /// Leaves out the machine and the volumes that were read before a time: what they gave is no longer so. Returns for each of both
    /// that was read at all whether it is of now, with the reason why it is not.
    pub(super) fn leave_out_before(&mut self, fresh_from: Nanos) -> Vec<(&'static str, Result<(), String>)> {
        let mut outcomes = Vec::new();
        if let Some(host) = &self.host {
            let is_old = host.elapsed < fresh_from;
            outcomes.push(("this machine", is_old, "the thread that reads it waits for the kernel"));
            if is_old {
                self.host = None;
            }
        }
        if let Some(own) = &self.own {
            let is_old = own.elapsed < fresh_from;
            outcomes.push(("volumes of Ebbtide", is_old, "the server of the home does not answer"));
            if is_old {
                self.own = None;
            }
        }
        let fault = |(subject, is_old, reason): &(&'static str, bool, &'static str)| {
            is_old.then(|| SourceFault {
                subject: (*subject).to_owned(),
                figure: "everything: it was not read for too long".to_owned(),
                reason: (*reason).to_owned(),
                remedy: String::new(),
            })
        };
        self.faults.extend(outcomes.iter().filter_map(fault));
        let outcome = |(subject, is_old, reason): (&'static str, bool, &'static str)| {
            (subject, if is_old { Err(reason.to_owned()) } else { Ok(()) })
        };
        outcomes.into_iter().map(outcome).collect()
    }
}

/// A server.
#[derive(Debug, Clone)]
pub struct ServerLook {
    /// Its name: as the user gave it, or its address.
    pub name: String,
    /// Host and port, or the socket.
    pub address: String,
    /// The newest answers.
    pub reading: Arc<Reading>,
    /// Whether it answers.
    pub state: ServerState,
    /// Where its files lie; empty where that is not known.
    pub placements: Arc<[Placement]>,
    /// Why the devices of its files are not known; None where they are, and before they were looked for.
    pub elsewhere: Option<String>,
}

/// Whether a server answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ServerState {
    /// It was not asked yet.
    #[default]
    NotAsked,
    /// It answered the last time.
    Answers,
    /// It is slow, and is left alone for a while. This is no fault.
    Rests,
    /// It did not answer.
    Unanswered {
        /// Why.
        kind: Unanswered,
        /// The error.
        error: String,
        /// How long it was waited for.
        waited: Nanos,
    },
}

/// Why a server gave no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no connection, or it was lost.
    Down,
    /// The server refuses the login.
    LoginRefused,
    /// The server took the connection or the question, and did not answer in time.
    Hangs,
}

/// How long a sampler waits for an answer (`ebbtide_mysql::sampling`).
const LONGEST_ANSWER: Nanos = Nanos::from_secs(5);

impl ServerState {
    /// The state of a server that gave no sample.
    #[must_use]
    pub fn of_error(error: &SampleError) -> Self {
        let kind = match error {
            _ if error.is_login_refused() => Unanswered::LoginRefused,
            _ if error.is_timeout() => Unanswered::Hangs,
            _ => Unanswered::Down,
        };
        let waited = match error {
            SampleError::Hangs { waits, .. } => (*waits).into(),
            _ => LONGEST_ANSWER,
        };
        // A cause has its own causes in its text.
        let error = error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        Self::Unanswered { kind, error, waited }
    }
}

/// The machine.
#[derive(Debug, Clone)]
pub struct HostLook {
    /// When it was read, by the clock of [`Moment::elapsed`](crate::reading::Moment::elapsed).
    pub elapsed: Nanos,
    /// What was read.
    pub reading: Arc<HostReading>,
}

/// Volumes of Ebbtide's own.
#[derive(Debug, Clone)]
pub struct OwnLook {
    /// When they were read, by the clock of [`Moment::elapsed`](crate::reading::Moment::elapsed).
    pub elapsed: Nanos,
    /// Those that are attached.
    pub volumes: Arc<[OwnVolume]>,
}

/// A source that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFault {
    /// The server, device or file.
    pub subject: String,
    /// What is not seen.
    pub figure: String,
    /// Why.
    pub reason: String,
    /// What would make it readable; empty where nothing is known to.
    pub remedy: String,
}
