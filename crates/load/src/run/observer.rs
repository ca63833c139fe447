//! Who follows a run while it goes on: to write commits down as they happen, to hold clients back.

use std::time::Duration;

use crate::error::LoadError;
use crate::wire::Session;

/// A transaction whose commit the server has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The client, from 0.
    pub client: u32,
    /// Its number among the client's commits, from 1.
    pub sequence: u64,
    /// When the acknowledgement was read, ns since the run's start.
    pub at_ns: u64,
    /// How long the transaction took from the time it was due, ns.
    pub took_ns: u64,
}

/// Follows a run. The event loops call it from their threads; none of the calls may wait.
pub trait RunObserver: Sync {
    /// A connection of a client was made, before anything is sent on it. Called again after a reconnection.
    ///
    /// # Errors
    /// What ends the run before it begins.
    fn connected(&self, client: u32, session: &mut Session) -> Result<(), LoadError> {
        let _ = (client, session);
        Ok(())
    }

    /// All connections are there, and the run begins.
    fn ready(&self) {}

    /// The number of the client's last commit before the run.
    fn last_commit(&self, client: u32) -> u64 {
        let _ = client;
        0
    }

    /// Whether no transaction is to begin for now: after how long to ask again. Those under way come to their end.
    fn held(&self) -> Option<Duration> {
        None
    }

    /// The client's COMMIT is about to be sent.
    fn commit_sent(&self, client: u32, sequence: u64) {
        let _ = (client, sequence);
    }

    /// The server has acknowledged a commit, and the client has sent nothing since.
    ///
    /// # Errors
    /// What ends the run.
    fn committed(&self, commit: &Commit) -> Result<(), LoadError> {
        let _ = commit;
        Ok(())
    }

    /// The server has rolled a transaction back on purpose.
    fn rolled_back(&self, client: u32) {
        let _ = client;
    }

    /// The server has refused a statement, or a connection is lost; `again`: the transaction is done again.
    fn refused(&self, error: &LoadError, again: bool) {
        let _ = (error, again);
    }

    /// A client has ended before the run: because of what, and with which commit sent and not answered.
    fn ended(&self, client: u32, error: &LoadError, in_doubt: Option<u64>) {
        let _ = (client, error, in_doubt);
    }
}

/// Nobody follows.
impl RunObserver for () {}
