//! A thread that hands the requests of a volume to a follower.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::engine::{LiveVolume, ObservedIo};

/// How often the requests are fetched.
const FETCH: Duration = Duration::from_millis(20);

/// Who follows the requests of an attached volume.
pub trait Follow: fmt::Debug + Send + Sync {
    /// Takes the requests since the last call, in the order in which they were charged. `lost` more were not kept, since this
    /// took too long.
    fn requests(&self, batch: &[ObservedIo], lost: u64);
}

/// The running thread; dropping it hands the last requests on and ends it.
#[derive(Debug)]
pub(super) struct FollowThread {
    live: Weak<LiveVolume>,
    /// Asks for the requests so far, with where to answer when they were handed on. It ends the thread when it goes.
    ask: Option<mpsc::Sender<mpsc::Sender<()>>>,
    thread: Option<JoinHandle<()>>,
}

impl FollowThread {
    /// Starts the thread.
    pub(super) fn start(live: &Arc<LiveVolume>, follower: Arc<dyn Follow>) -> std::io::Result<Self> {
        let (ask, asked) = mpsc::channel::<mpsc::Sender<()>>();
        let followed = Arc::downgrade(live);
        let weak = Weak::clone(&followed);
        let thread = std::thread::Builder::new().name("follower".into()).spawn(move || {
            let mut batch = Vec::new();
            loop {
                let asked = asked.recv_timeout(FETCH);
                let Some(live) = weak.upgrade() else { break };
                let lost = live.take_observed(&mut batch);
                drop(live);
                if !batch.is_empty() || lost > 0 {
                    follower.requests(&batch, lost);
                }
                match asked {
                    // Who asked may have gone.
                    Ok(answer) => drop(answer.send(())),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        })?;
        live.observe(true);
        Ok(Self { live: followed, ask: Some(ask), thread: Some(thread) })
    }

    /// Waits until the requests so far were handed on.
    pub(super) fn catch_up(&self) {
        let (answer, answered) = mpsc::channel();
        if self.ask.as_ref().is_some_and(|ask| ask.send(answer).is_ok()) {
            // An error: the thread has ended, with the volume.
            let _ = answered.recv();
        }
    }
}

impl Drop for FollowThread {
    fn drop(&mut self) {
        drop(self.ask.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the follower thread had panicked");
        }
        if let Some(live) = self.live.upgrade() {
            live.observe(false);
        }
    }
}
