//! What the connections of a server share.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use parking_lot::{Condvar, Mutex};

use super::NbdOptions;
use crate::engine::LiveVolume;

/// What the connections of a server share.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) volume: Arc<LiveVolume>,
    pub(super) options: NbdOptions,
    stopping: AtomicBool,
    /// The sockets, by number of connection, to wake their threads through.
    open: Mutex<HashMap<u64, OwnedFd>>,
    closed: Condvar,
}

impl Hub {
    pub(super) fn new(volume: Arc<LiveVolume>, options: NbdOptions) -> Self {
        let stopping = AtomicBool::new(false);
        Self { volume, options, stopping, open: Mutex::default(), closed: Condvar::new() }
    }

    /// Has [`Self::stopping`] answer true from now on.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(super) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Connections that are open.
    pub(super) fn connections(&self) -> usize {
        self.open.lock().len()
    }

    /// Ends a direction of every open connection.
    pub(super) fn shut_all(&self, how: rustix::net::Shutdown) {
        for socket in self.open.lock().values() {
            // Fails only where the client was faster.
            let _ = rustix::net::shutdown(socket, how);
        }
    }

    /// Waits until no connection is open; `false` at the deadline.
    pub(super) fn wait_until_closed(&self, deadline: Instant) -> bool {
        let mut open = self.open.lock();
        while !open.is_empty() {
            if self.closed.wait_until(&mut open, deadline).timed_out() {
                return open.is_empty();
            }
        }
        true
    }
}

/// A connection's place in the hub, given up however its thread ends.
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) hub: Arc<Hub>,
}

impl Entry {
    /// Gives a connection its place.
    pub(super) fn new(number: u64, socket: &OwnedFd, hub: &Arc<Hub>) -> io::Result<Self> {
        hub.open.lock().insert(number, socket.try_clone()?);
        Ok(Self { number, hub: Arc::clone(hub) })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(socket) = self.hub.open.lock().remove(&self.number) {
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        self.hub.closed.notify_all();
    }
}
