//! Starting the clients, looking at them while they work, and ending them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::LoadError;
use crate::options::OptionError;
use crate::wire::{Closer, Session};

use super::client::{Client, set_up};
use super::journal::Journal;
use super::options::Options;
use super::schema::{ABORTED, Schema};
use super::tally::{ClientEnd, InvariantReport, Second, Tally};

/// What the clients share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) schema: Schema,
    pub(super) seed: u64,
    pub(super) abort_every: u32,
    /// Time between two transactions of a client, and between the first ones of two clients.
    interval: Option<(Duration, Duration)>,
    pub(super) journal: Journal,
    pub(super) commits: AtomicU64,
    pub(super) tally: Mutex<Tally>,
    stopping: AtomicBool,
    held: AtomicBool,
}

impl Shared {
    fn new(options: &Options, journal: Journal) -> Self {
        let interval = options.rate.map(|rate| {
            let apart = Duration::from_secs_f64(1.0 / rate);
            (apart.saturating_mul(options.clients), apart)
        });
        Self {
            schema: options.schema.clone(),
            seed: options.seed,
            abort_every: options.abort_every,
            interval,
            journal,
            commits: AtomicU64::new(0),
            tally: Mutex::new(Tally::new()),
            stopping: AtomicBool::new(false),
            held: AtomicBool::new(false),
        }
    }

    /// Whether no further transaction is to begin for now.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// When a client's first transaction is due after the start, and the time from one to the next.
    pub(super) fn pace(&self, client: u32) -> Option<(Duration, Duration)> {
        self.interval.map(|(interval, apart)| (apart.saturating_mul(client), interval))
    }
}

/// A client's thread, and the way to end its connection from here.
#[derive(Debug)]
struct Worker {
    thread: JoinHandle<()>,
    closer: Closer,
}

/// Holds the clients of a load back, from any thread.
#[derive(Clone)]
pub struct Brake(Arc<Shared>);

impl fmt::Debug for Brake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Brake").field(&self.0.is_held()).finish()
    }
}

impl Brake {
    /// Has the clients begin no further transaction, or go on. Those that are under way come to their end.
    pub fn hold(&self, held: bool) {
        self.0.held.store(held, Ordering::Relaxed);
    }
}

/// A load at work. Dropping it ends it, as [`Running::stop`] does.
pub struct Running {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// Each client says when it is through.
    through: mpsc::Receiver<()>,
    ended: u32,
    clients: u32,
    grace: Duration,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("clients", &self.clients).finish_non_exhaustive()
    }
}

/// Connects all clients and lets them go. Each goes on after its mark in the server: on fresh tables
/// with 1, on a recovered server with what was recovered.
///
/// # Errors
/// Wrong options, no server, tables that are missing (1146) or were prepared for fewer clients.
pub fn start(options: &Options) -> Result<Running, LoadError> {
    options.check()?;
    let target = &options.target;
    let mut sessions = Vec::new();
    for client in 0..options.clients {
        let at = usize::try_from(client).expect("64 clients at most") % target.endpoints.len();
        let mut session = Session::open(target, &target.endpoints[at])?;
        set_up(&mut session)?;
        sessions.push(session);
    }
    let marks = marks(&mut sessions[0], options.clients)?;
    let shared = Arc::new(Shared::new(options, Journal::new(&marks, options.journal_commits)));
    let (tell, through) = mpsc::channel();
    let mut running = Running {
        shared,
        workers: Vec::new(),
        through,
        ended: 0,
        clients: options.clients,
        grace: options.grace,
    };
    for ((number, session), seq) in (0..).zip(sessions).zip(marks) {
        running.spawn(number, session, seq, tell.clone())?;
    }
    Ok(running)
}

/// Each client's last commit, as durable as the server's settings make any commit.
fn marks(session: &mut Session, clients: u32) -> Result<Vec<u64>, LoadError> {
    let found = super::read::marks(session)?;
    let marks = (0..clients).map(|client| found.get(&client).copied()).collect::<Option<Vec<u64>>>();
    // A commit can be seen before it is durable. One of our own, after it, makes both durable alike.
    session.execute(&format!("INSERT INTO {ABORTED} (client, seq) VALUES (-1,0)"))?;
    session.execute(&format!("DELETE FROM {ABORTED} WHERE client=-1"))?;
    session.execute("COMMIT")?;
    marks.ok_or_else(|| {
        let value = clients.to_string();
        let allowed = "no more than the tables were prepared for";
        OptionError::OutOfRange { option: "clients", value, allowed }.into()
    })
}

impl Running {
    fn spawn(
        &mut self,
        number: u32,
        session: Session,
        seq: u64,
        tell: mpsc::Sender<()>,
    ) -> Result<(), LoadError> {
        let closer = session.closer().map_err(|source| LoadError::System { what: "a descriptor", source })?;
        let client = Client::new(number, session, seq, Arc::clone(&self.shared));
        let work = move || {
            client.run();
            // Nobody listens any more only where the load is being dropped.
            let _ = tell.send(());
        };
        let thread = std::thread::Builder::new()
            .name(format!("bank-{number}"))
            .spawn(work)
            .map_err(|source| LoadError::System { what: "a thread", source })?;
        self.workers.push(Worker { thread, closer });
        Ok(())
    }

    /// What holds its clients back.
    #[must_use]
    pub fn brake(&self) -> Brake {
        Brake(Arc::clone(&self.shared))
    }

    /// When each COMMIT was sent and acknowledged.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    /// Commits acknowledged so far.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// Commits a second since the start.
    #[must_use]
    pub fn tps(&self) -> f64 {
        let elapsed = self.shared.journal.start().elapsed().as_secs_f64();
        self.commits() as f64 / elapsed.max(f64::MIN_POSITIVE)
    }

    /// The seconds that are over.
    #[must_use]
    pub fn seconds(&self) -> Vec<Second> {
        self.shared.tally().seconds(self.shared.journal.start().elapsed())
    }

    /// Clients that are still at work. Those whose connection was lost do not come back: the load is started
    /// again when the server has recovered.
    #[must_use]
    pub fn alive(&self) -> u32 {
        let alive = self.workers.iter().filter(|worker| !worker.thread.is_finished()).count();
        u32::try_from(alive).expect("64 clients at most")
    }

    /// What was done so far.
    #[must_use]
    pub fn report(&self) -> InvariantReport {
        self.shared.tally().report(self.clients, self.shared.journal.start().elapsed())
    }

    /// Lets every client finish its transaction, closes the connections of those that do not within the grace,
    /// and answers with what was done.
    #[must_use = "the report says which clients ended early, and why"]
    pub fn stop(mut self) -> InvariantReport {
        self.finish();
        self.report()
    }

    fn finish(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        for worker in &self.workers {
            worker.thread.thread().unpark();
        }
        let deadline = Instant::now() + self.grace;
        let all = u32::try_from(self.workers.len()).expect("64 clients at most");
        while self.ended < all {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.through.recv_timeout(left).is_err() {
                break;
            }
            self.ended += 1;
        }
        for (client, worker) in (0..).zip(self.workers.drain(..)) {
            if !worker.thread.is_finished() && self.ended < all {
                worker.closer.close();
            }
            if worker.thread.join().is_err() {
                let error = "the client panicked".into();
                self.shared.tally().end(ClientEnd { client, error, code: None, in_doubt: None });
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.finish();
    }
}
