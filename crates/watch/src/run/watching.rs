//! A watch that goes on until it is ended, and a look.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ebbtide_history::Samples;
use ebbtide_http::{LoopbackAddress, Server};
use ebbtide_load::Cancel;

use super::error::RunError;
use super::history::HistoryWriter;
use super::listen;
use super::notify::{Notifier, Recipients};
use super::sources::Sources;
use super::ticker::Ticker;
use super::voice::Voice;
use super::worker::wait_until;
use crate::live::{LiveSource, Watcher};
use crate::view::View;

/// How long a single look waits for a source besides the interval: a server may not be there, or hang.
const PATIENCE: Duration = Duration::from_secs(7);
/// How often it is looked whether the sources are there.
const LOOK: Duration = Duration::from_millis(20);

/// Who is told and shown what is watched.
#[derive(Debug)]
pub struct Audience {
    /// Whom alarms are sent.
    pub recipients: Recipients,
    /// Where alarms and troubles are said.
    pub voice: Arc<dyn Voice>,
    /// Where samples are recorded; None: nowhere.
    pub history: Option<Arc<Samples>>,
    /// Where pages and metrics are served; None: nowhere.
    pub listen: Option<LoopbackAddress>,
}

/// A watch that goes on.
#[derive(Debug)]
pub struct Watching {
    source: Arc<LiveSource>,
    server: Option<Server>,
    ticking: JoinHandle<()>,
}

impl Watching {
    /// Begins to look at what the sources have every `interval`, until `stop`.
    ///
    /// # Errors
    /// A thread cannot be started, or the address cannot be listened at.
    pub fn start(
        watcher: Watcher,
        sources: &Arc<Sources>,
        audience: Audience,
        interval: Duration,
        stop: &Cancel,
    ) -> Result<Self, RunError> {
        let Audience { recipients, voice, history, listen: address } = audience;
        let source = watcher.source();
        let said = Arc::clone(&voice);
        let notifier = Notifier::start(recipients, move |line| said.note(line))?;
        let said = Arc::clone(&voice);
        let writer = HistoryWriter::start(history, sources.faults.clone(), move |line| said.note(line))?;
        let server = address.map(|address| listen::start(address, &source)).transpose()?;
        let ticker = Ticker { watcher, sources: Arc::clone(sources), notifier, writer, voice };
        let ticking = ticker.start(interval, stop)?;
        Ok(Self { source, server, ticking })
    }

    /// What is watched.
    #[must_use]
    pub const fn source(&self) -> &Arc<LiveSource> {
        &self.source
    }

    /// Where the pages are; None where none are served.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(Server::address)
    }

    /// Waits for the end, which `stop` brings: the last samples and alarms are handed over in order.
    ///
    /// # Errors
    /// The thread that watches ended by a panic.
    pub fn end(self) -> Result<(), RunError> {
        self.ticking.join().map_err(|_| RunError::Panicked("watches"))
    }
}

/// Looks twice, an interval apart, and gives what a look can say. None: it was stopped before the second look.
#[must_use]
pub fn look_twice(
    mut watcher: Watcher,
    sources: &Sources,
    interval: Duration,
    stop: &Cancel,
) -> Option<View> {
    let give_up = Instant::now() + PATIENCE;
    while !sources.are_known() && Instant::now() < give_up && !stop.is_cancelled() {
        thread::sleep(LOOK);
    }
    watcher.tick(sources.clock().moment(), sources.looks());
    // The sources read on their own time: a second reading is there soon after an interval.
    wait_until(Instant::now() + interval + interval.min(PATIENCE) / 2, stop);
    if stop.is_cancelled() {
        return None;
    }
    watcher.tick(sources.clock().moment(), sources.looks());
    Some(watcher.source().single_look())
}
