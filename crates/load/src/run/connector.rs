//! New connections for clients that lost theirs, made aside so that no event loop waits for a login.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc;
use std::thread::Scope;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use super::Shared;
use super::client::Link;
use crate::error::LoadError;

/// Between two attempts to reach a server that is away.
const RETRY: Duration = Duration::from_millis(10);

/// A connector of one event loop.
#[derive(Debug)]
pub(super) struct Connector {
    wanted: mpsc::Sender<(usize, u32)>,
    made: mpsc::Receiver<(usize, Result<Link, LoadError>)>,
    bell: OwnedFd,
}

impl Connector {
    pub(super) fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        shared: &'env Shared<'env>,
    ) -> Result<Self, LoadError> {
        let (wanted, orders) = mpsc::channel::<(usize, u32)>();
        let (deliver, made) = mpsc::channel();
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let bell = eventfd(0, flags).map_err(LoadError::system("an event descriptor"))?;
        let ringer = bell.try_clone().map_err(|source| LoadError::System { what: "a descriptor", source })?;
        scope.spawn(move || {
            while let Ok((slot, id)) = orders.recv() {
                if deliver.send((slot, open(shared, id))).is_err() {
                    return;
                }
                // A full counter rings as well.
                let _ = rustix::io::write(&ringer, &1_u64.to_ne_bytes());
            }
        });
        Ok(Self { wanted, made, bell })
    }

    /// Asks for a connection of client `id`, which the loop knows as `slot`.
    pub(super) fn want(&self, slot: usize, id: u32) {
        // The thread ends only after this sender is gone.
        let _ = self.wanted.send((slot, id));
    }

    /// The connections made since the last call.
    pub(super) fn made(&self) -> Vec<(usize, Result<Link, LoadError>)> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut count);
        self.made.try_iter().collect()
    }
}

impl AsFd for Connector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Tries until it works, the run stops, or the server refuses for another reason than being away.
fn open(shared: &Shared<'_>, id: u32) -> Result<Link, LoadError> {
    loop {
        match Link::open(shared, id) {
            Err(LoadError::Unreachable { .. } | LoadError::Broken { .. }) if !shared.is_stopping() => {
                std::thread::sleep(RETRY);
            }
            other => return other.map(|(link, _)| link),
        }
    }
}
