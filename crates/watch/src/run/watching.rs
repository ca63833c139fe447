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
    sources: Arc<Sources>,
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
        let notifier = Notifier::start(recipients, sources.faults.clone(), move |line| said.note(line))?;
        let said = Arc::clone(&voice);
        let writer = HistoryWriter::start(history, sources.faults.clone(), move |line| said.note(line))?;
        let server = address.map(|address| listen::start(address, &source)).transpose()?;
        let ticker = Ticker { watcher, sources: Arc::clone(sources), writer, notifier, voice };
        let ticking = ticker.start(interval, stop)?;
        Ok(Self { source, sources: Arc::clone(sources), server, ticking })
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

    /// Waits for the end, which `stop` brings: the last samples are written, then the last alarms are sent, for some seconds at most,
    /// and the sessions of servers end.
    ///
    /// # Errors
    /// The thread that watches ended by a panic, which brings the end, too.
    pub fn end(self) -> Result<(), RunError> {
        let ended = self.ticking.join().map_err(|_| RunError::Panicked("watches"));
        self.sources.end();
        ended
    }
}

/// Looks twice, an interval apart, and gives what a look can say. None: it was stopped before the second look. The sources end with it.
#[must_use]
pub fn look_twice(
    mut watcher: Watcher,
    sources: &Sources,
    interval: Duration,
    stop: &Cancel,
) -> Option<View> {
    let view = second_look(&mut watcher, sources, interval, stop);
    stop.cancel();
    sources.end();
    view
}

fn second_look(watcher: &mut Watcher, sources: &Sources, interval: Duration, stop: &Cancel) -> Option<View> {
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

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;
    use ebbtide_load::{Endpoint, Target};

    use super::*;
    use crate::live::WatchOptions;
    use crate::run::servers::WatchedServer;
    use crate::run::sources::SourceOptions;
    use crate::run::worker::Clock;

    /// A voice that panics at the first trouble.
    #[derive(Debug)]
    struct Panics;

    impl Voice for Panics {
        fn note(&self, text: &str) {
            panic!("a test panics at: {text}");
        }

        fn alarm(&self, _: &str) {}
    }

    #[test]
    fn a_panic_of_the_thread_that_watches_brings_the_end_and_is_an_error() {
        let (stop, interval) = (Cancel::default(), Duration::from_millis(50));
        let target = Target {
            endpoints: vec![Endpoint::Unix("/nowhere/mysqld.sock".into())],
            user: String::new(),
            password: String::new(),
            database: String::new(),
            tls: None,
        };
        let servers = [WatchedServer { name: "shop".to_owned(), target }];
        let options = SourceOptions { interval, clock: Clock::start(), has_ebs_pages: false, stop: &stop };
        let sources = Arc::new(Sources::start(&servers, None, Catalog::builtin(), &options).unwrap());
        let audience = Audience {
            recipients: Recipients::default(),
            voice: Arc::new(Panics),
            history: None,
            listen: None,
        };
        let watcher = Watcher::new(WatchOptions::default(), None);
        let watching = Watching::start(watcher, &sources, audience, interval, &stop).unwrap();
        wait_until(Instant::now() + Duration::from_secs(60), &stop);
        assert!(stop.is_cancelled(), "nobody else has stopped it");
        assert!(matches!(watching.end(), Err(RunError::Panicked(_))));
    }
}
