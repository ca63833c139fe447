//! Packets of the protocol: where they end, the integers in them, and whole ones over a transport.

use std::io::{Read as _, Write as _};

use super::command::{self, MAX_PAYLOAD};
use super::transport::Transport;
use crate::error::LoadError;

/// The server sent something that has no place here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl From<Malformed> for LoadError {
    fn from(malformed: Malformed) -> Self {
        Self::Protocol(malformed.0.into())
    }
}

/// Whole packets in and out of a transport.
#[derive(Debug)]
pub(super) struct Packets {
    transport: Transport,
    held: Vec<u8>,
    at: usize,
    sequence: u8,
    /// Bytes that were sent and received.
    carried: u64,
}

impl Packets {
    pub(super) fn new(transport: Transport) -> Self {
        Self { transport, held: Vec::new(), at: 0, sequence: 0, carried: 0 }
    }

    pub(super) fn transport(&mut self) -> &mut Transport {
        &mut self.transport
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.transport.is_encrypted()
    }

    /// Bytes that were sent and received so far.
    pub(super) fn carried(&self) -> u64 {
        self.carried
    }

    /// The transport alone. Nothing of an answer may be unread.
    pub(super) fn into_transport(self) -> Transport {
        debug_assert_eq!(self.at, self.held.len(), "an answer was left unread");
        self.transport
    }

    /// What has come in and was not consumed.
    pub(super) fn unread(&self) -> &[u8] {
        &self.held[self.at..]
    }

    /// Takes bytes off the front of [`Self::unread`].
    pub(super) fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// The next packet's payload.
    pub(super) fn read(&mut self, during: &'static str) -> Result<Vec<u8>, LoadError> {
        loop {
            match packet_at(&self.held, self.at) {
                Err(malformed) => return Err(malformed.into()),
                Ok(Some((payload, end))) => {
                    let payload = payload.to_vec();
                    self.sequence = self.held[self.at + 3].wrapping_add(1);
                    self.at = end;
                    return Ok(payload);
                }
                Ok(None) => self.more(during)?,
            }
        }
    }

    /// Waits for more bytes, and keeps what was not consumed.
    pub(super) fn more(&mut self, during: &'static str) -> Result<(), LoadError> {
        self.held.drain(..self.at);
        self.at = 0;
        let mut chunk = [0; 16 * 1024];
        let read = self.transport.read(&mut chunk).map_err(in_words).map_err(LoadError::broken(during))?;
        if read == 0 {
            let closed = std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the server closed it");
            return Err(LoadError::Broken { during, source: closed });
        }
        self.held.extend_from_slice(&chunk[..read]);
        self.carried += read as u64;
        Ok(())
    }

    /// Sends one packet of the login's conversation.
    pub(super) fn write(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), LoadError> {
        let mut out = Vec::new();
        command::packet(&mut out, self.sequence, fill);
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&out)
    }

    /// Sends whole packets.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        self.carried += bytes.len() as u64;
        self.transport
            .write_all(bytes)
            .and_then(|()| self.transport.flush())
            .map_err(LoadError::broken("sending a statement"))
    }
}

/// The error of a read; one that took too long is "Resource temporarily unavailable" to the system.
fn in_words(error: std::io::Error) -> std::io::Error {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            std::io::Error::new(std::io::ErrorKind::TimedOut, "the server does not answer")
        }
        _ => error,
    }
}

/// The payload of the packet at `at` and where it ends, if all of it is there.
#[inline]
pub(crate) fn packet_at(bytes: &[u8], at: usize) -> Result<Option<(&[u8], usize)>, Malformed> {
    let Some(&[a, b, c, _sequence]) = bytes.get(at..at + 4) else { return Ok(None) };
    let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
    if length == MAX_PAYLOAD {
        return Err(Malformed("a packet of 16 MiB"));
    }
    let end = at + 4 + length;
    Ok(bytes.get(at + 4..end).map(|payload| (payload, end)))
}

/// A length-encoded integer and how many bytes it took. None where bytes are missing or it is NULL.
#[inline]
pub(crate) fn length_encoded(bytes: &[u8]) -> Option<(u64, usize)> {
    let wide = |n: usize| {
        let mut word = [0; 8];
        word[..n].copy_from_slice(bytes.get(1..=n)?);
        Some((u64::from_le_bytes(word), n + 1))
    };
    match *bytes.first()? {
        small @ 0..=0xFA => Some((small.into(), 1)),
        0xFC => wide(2),
        0xFD => wide(3),
        0xFE => wide(8),
        _ => None,
    }
}
