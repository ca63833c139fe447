//! The receiving half of a connection: a buffer that takes whatever the socket has.

use std::{io, os::fd::OwnedFd, time::Instant};

use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};

use crate::transport::nbd::output::wait_readable;

/// Bytes asked of the socket in one call: a dozen 16 KiB writes.
const BATCH: usize = 256 << 10;

/// Bytes that have arrived and not yet been looked at.
///
/// The payload of a write waits here, in memory of the connection, until it is complete: a client
/// that stops in the middle of one holds nothing that other clients need.
#[derive(Debug)]
pub(super) struct Input {
    socket: OwnedFd,
    /// Fresh pages of it cost nothing until bytes arrive in them.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// A buffer from which up to `largest` bytes can be taken at once.
    pub(super) fn new(socket: OwnedFd, largest: usize) -> Self {
        Self { socket, bytes: vec![0; largest + BATCH], start: 0, end: 0 }
    }

    /// The bytes at hand.
    pub(super) fn available(&self) -> usize {
        self.end - self.start
    }

    /// Takes `len` bytes, waiting for them until the deadline.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] where the client ended the stream, `TimedOut` at the
    /// deadline.
    pub(super) fn take(&mut self, len: usize, deadline: Option<Instant>) -> io::Result<&[u8]> {
        while self.available() < len {
            self.receive(len, deadline)?;
        }
        let taken = &self.bytes[self.start..self.start + len];
        self.start += len;
        Ok(taken)
    }

    /// Takes a message of fixed size.
    pub(super) fn array<const N: usize>(&mut self, deadline: Option<Instant>) -> io::Result<[u8; N]> {
        Ok(self.take(N, deadline)?.try_into().expect("as many bytes as were taken"))
    }

    /// Takes and forgets `len` bytes.
    pub(super) fn skip(&mut self, mut len: usize, deadline: Option<Instant>) -> io::Result<()> {
        while len > 0 {
            let some = len.min(BATCH);
            self.take(some, deadline)?;
            len -= some;
        }
        Ok(())
    }

    fn receive(&mut self, wanted: usize, deadline: Option<Instant>) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + wanted > self.bytes.len() || self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !wait_readable(&self.socket, Some(left)) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let room = BATCH.max(wanted).min(self.bytes.len() - self.end);
        match recv(&self.socket, &mut self.bytes[self.end..self.end + room], RecvFlags::empty()) {
            Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((received, _)) => {
                self.end += received;
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
