//! Starting the clients, looking at them while they work, and ending them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use ebbtide_workload::invariant::{ABORTED, Invariants};
use ebbtide_workload::{OptionError, Program};

use crate::error::LoadError;
use crate::execution::{Arrival, Execution, IgnoreErrors, Refused};
use crate::options::Target;
use crate::run::{Cancel, Commit, RunObserver, execute};
use crate::wire::Session;

use super::journal::Journal;
use super::options::Options;
use super::tally::{ClientEnd, InvariantReport, Second, Tally};

/// Deadlock, lock wait timeout, and MariaDB's "record has changed since last read": the transaction is
/// over or is ended, and done again under the same number.
const RETRIED: [u16; 3] = [1213, 1205, 1020];

/// How often a load that is held back looks whether it may go on.
const HELD: Duration = Duration::from_millis(2);

/// What the clients share with those who look at them.
#[derive(Debug)]
struct Shared {
    /// Each client's last commit before the load.
    marks: Vec<u64>,
    journal_commits: usize,
    /// Begins when all clients are connected.
    journal: OnceLock<Journal>,
    commits: AtomicU64,
    tally: Mutex<Tally>,
    held: AtomicBool,
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        // An event loop that panicked has left whole counts behind.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> &Journal {
        self.journal.get_or_init(|| Journal::new(&self.marks, self.journal_commits))
    }
}

/// Writes down what the event loops do.
struct Recorder {
    shared: Arc<Shared>,
    /// To report that the load runs.
    sender: mpsc::Sender<Result<(), LoadError>>,
}

impl RunObserver for Recorder {
    fn ready(&self) {
        self.shared.journal();
        // Whoever started the load waits for it.
        let _ = self.sender.send(Ok(()));
    }

    fn last_commit(&self, client: u32) -> u64 {
        self.shared.marks[usize::try_from(client).expect("64 clients at most")]
    }

    fn held(&self) -> Option<Duration> {
        self.shared.held.load(Ordering::Relaxed).then_some(HELD)
    }

    fn commit_sent(&self, client: u32, sequence: u64) {
        // Written down before it can have any effect, and acknowledged only when the OK was read.
        self.shared.journal().sent(client, sequence);
    }

    fn committed(&self, commit: &Commit) -> Result<(), LoadError> {
        self.shared.journal().acknowledged(commit.client);
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        let (since, took) = (Duration::from_nanos(commit.at_ns), Duration::from_nanos(commit.took_ns));
        self.shared.tally().commit(since, took);
        Ok(())
    }

    fn rolled_back(&self, _client: u32) {
        self.shared.tally().rolled_back += 1;
    }

    fn refused(&self, error: &LoadError, again: bool) {
        self.shared.tally().error(error, again);
    }

    fn ended(&self, client: u32, error: &LoadError, in_doubt: Option<u64>) {
        let (code, error) = (error.code(), error.to_string());
        self.shared.tally().end(ClientEnd { client, error, code, in_doubt });
    }
}

/// Holds the clients of a load back, from any thread.
#[derive(Clone)]
pub struct PauseHandle(Arc<Shared>);

impl fmt::Debug for PauseHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PauseHandle").field(&self.0.held).finish()
    }
}

impl PauseHandle {
    /// Has the clients begin no further transaction, or go on. Those that are under way come to their end.
    pub fn hold(&self, held: bool) {
        self.0.held.store(held, Ordering::Relaxed);
    }
}

/// A load at work. Dropping it ends it, as [`Running::stop`] does.
pub struct Running {
    shared: Arc<Shared>,
    clients: u32,
    cancel: Cancel,
    /// Carries the event loops; none once it was waited for.
    thread: Option<JoinHandle<()>>,
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
    let clients = options.clients;
    let load = Invariants { schema: options.schema.clone(), clients, abort_every: options.abort_every };
    launch(Plan {
        target: options.target.clone(),
        program: Program::new(load.describe()).expect("our own description is in order"),
        clients,
        seed: options.seed,
        rate: options.rate,
        journal_commits: options.journal_commits,
        grace: options.grace,
        durable: vec![
            format!("INSERT INTO {ABORTED} (client, seq) VALUES (-1,0)"),
            format!("DELETE FROM {ABORTED} WHERE client=-1"),
        ],
    })
}

/// A load whose transactions write their numbers into the marks of their clients.
pub(crate) struct Plan {
    pub(crate) target: Target,
    pub(crate) program: Program,
    pub(crate) clients: u32,
    pub(crate) seed: u64,
    /// Transactions a second of all clients together; None for a closed loop.
    pub(crate) rate: Option<f64>,
    pub(crate) journal_commits: usize,
    pub(crate) grace: Duration,
    /// Statements of a transaction that changes something and leaves nothing.
    pub(crate) durable: Vec<String>,
}

/// Connects all clients of a load and lets them go, each after its mark.
pub(crate) fn launch(plan: Plan) -> Result<Running, LoadError> {
    let Plan { target, program, clients, .. } = plan;
    let mut session = Session::open(&target, target.endpoint(0)?)?;
    for sql in &program.description().session {
        session.execute(sql)?;
    }
    let shared = Arc::new(Shared {
        marks: marks(&mut session, clients, &plan.durable)?,
        journal_commits: plan.journal_commits,
        journal: OnceLock::new(),
        commits: AtomicU64::new(0),
        tally: Mutex::new(Tally::new()),
        held: AtomicBool::new(false),
    });
    drop(session);
    let execution = Execution {
        seed: plan.seed,
        connections: clients,
        arrival: plan.rate.map_or(Arrival::Closed, |per_second| Arrival::Fixed { per_second }),
        cancel_grace: plan.grace,
        refused: Refused::EndsClient { unless: IgnoreErrors::Codes(RETRIED.into()) },
        ..Execution::default()
    };
    let cancel = Cancel::default();
    let (sender, receiver) = mpsc::channel();
    let (recorder, ending) = (Recorder { shared: Arc::clone(&shared), sender }, cancel.clone());
    let work = move || {
        if let Err(error) = execute(&target, &program, &execution, &ending, &recorder, &mut |_| ()) {
            // The receiver is gone once the load runs: every client has reported then why it ended.
            let _ = recorder.sender.send(Err(error));
        }
    };
    let thread = std::thread::Builder::new()
        .name("invariant-load".into())
        .spawn(work)
        .map_err(|source| LoadError::System { what: "a thread", source })?;
    match receiver.recv() {
        Ok(Ok(())) => Ok(Running { shared, clients, cancel, thread: Some(thread) }),
        Ok(Err(error)) => Err(error),
        Err(mpsc::RecvError) => std::panic::resume_unwind(
            thread.join().expect_err("a load that neither runs nor says why has panicked"),
        ),
    }
}

/// Each client's last commit, as durable as the server's settings make any commit.
fn marks(session: &mut Session, clients: u32, durable: &[String]) -> Result<Vec<u64>, LoadError> {
    let found = super::read::marks(session)?;
    let marks = (0..clients).map(|client| found.get(&client).copied()).collect::<Option<Vec<u64>>>();
    // A commit can be seen before it is durable. One of our own, after it, makes both durable alike.
    for sql in durable {
        session.execute(sql)?;
    }
    session.execute("COMMIT")?;
    marks.ok_or_else(|| {
        let value = clients.to_string();
        let allowed = "no more than the tables were prepared for";
        OptionError::OutOfRange { option: "clients", value, allowed }.into()
    })
}

impl Running {
    /// What holds its clients back.
    #[must_use]
    pub fn pause_handle(&self) -> PauseHandle {
        PauseHandle(Arc::clone(&self.shared))
    }

    /// When each COMMIT was sent and acknowledged.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        self.shared.journal()
    }

    /// Commits acknowledged so far.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// Commits a second since the start.
    #[must_use]
    pub fn tps(&self) -> f64 {
        let elapsed = self.elapsed().as_secs_f64();
        self.commits() as f64 / elapsed.max(f64::MIN_POSITIVE)
    }

    fn elapsed(&self) -> Duration {
        self.journal().start().elapsed()
    }

    /// The seconds that are over.
    #[must_use]
    pub fn seconds(&self) -> Vec<Second> {
        self.shared.tally().seconds(self.elapsed())
    }

    /// Clients that are still at work. Those whose connection was lost do not come back: the load is started
    /// again when the server has recovered.
    #[must_use]
    pub fn alive(&self) -> u32 {
        let works = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        if works { self.clients.saturating_sub(self.shared.tally().ended()) } else { 0 }
    }

    /// What was done so far.
    #[must_use]
    pub fn report(&self) -> InvariantReport {
        self.shared.tally().report(self.clients, self.elapsed())
    }

    /// Lets every client finish its transaction, closes the connections of those that do not within the grace,
    /// and answers with what was done.
    #[must_use = "the report says which clients ended early, and why"]
    pub fn stop(mut self) -> InvariantReport {
        self.finish();
        self.report()
    }

    fn finish(&mut self) {
        self.cancel.cancel();
        let Some(thread) = self.thread.take() else { return };
        if thread.join().is_err() {
            let mut tally = self.shared.tally();
            for client in 0..self.clients {
                let error = "the load panicked".into();
                tally.end(ClientEnd { client, error, code: None, in_doubt: None });
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.finish();
    }
}
