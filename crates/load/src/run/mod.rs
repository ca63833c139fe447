//! Running a workload: event loops that carry the connections, and the reader of their counts.

mod client;
mod collect;
mod connector;
mod interval;
mod kernel;
mod transact;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::LoadError;
use crate::ledger::{self, Writer};
use crate::options::{Arrival, OptionError, RunOptions, Target};
use crate::plan::{Plan, UniqueIds};
use crate::report::{RunReport, Sample, ServerInfo};
use crate::wire::Session;

use collect::Collector;
use worker::{Message, Worker};

/// Ends a run from outside. Clones end the same run.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl From<Arc<AtomicBool>> for Cancel {
    /// A run that ends when the flag is set, as a signal handler does.
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

impl Cancel {
    /// Asks for the end: no transaction is started any more, and those in flight get a second.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What all event loops of a run share.
#[derive(Debug)]
struct Shared<'a> {
    target: &'a Target,
    options: &'a RunOptions,
    cancel: &'a Cancel,
    plan: Plan,
    texts: Vec<String>,
    unique: UniqueIds,
    ledger: Option<Writer>,
    /// Transactions started, counted only where the run has a number to reach.
    started: AtomicU64,
    /// An event loop met an error that ends the run.
    failed: AtomicBool,
    loops: u32,
}

impl Shared<'_> {
    fn is_stopping(&self) -> bool {
        self.cancel.is_cancelled() || self.failed.load(Ordering::Relaxed)
    }

    /// The time after which no transaction starts, in ns of the run.
    fn deadline(&self) -> u64 {
        let warmup = Duration::from_secs(self.options.warmup_s.into());
        self.options.duration.map_or(u64::MAX, |duration| nanos(duration.saturating_add(warmup)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs a workload and answers with what was found out. Calls `on_sample` once a second.
///
/// A server error that is not to be ignored ends the run early; the report is made all the same and
/// says so in [`RunReport::ended`].
///
/// # Errors
/// Wrong options, and everything that goes wrong before the first transaction.
pub fn run(
    target: &Target,
    options: &RunOptions,
    cancel: &Cancel,
    on_sample: &mut dyn FnMut(&Sample),
) -> Result<RunReport, LoadError> {
    options.check()?;
    if target.endpoints.is_empty() {
        return Err(OptionError::Contradiction("no server is named").into());
    }
    let plan = Plan::new(options);
    let mut shared = Shared {
        target,
        options,
        cancel,
        texts: plan.texts(),
        plan,
        unique: UniqueIds::new(options.seed),
        ledger: None,
        started: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        loops: loops(options),
    };
    shared.ledger = open_ledger(target, options)?;
    let shared = &shared;
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let mut starters = Vec::new();
        for index in 0..shared.loops {
            let (starter, start) = mpsc::channel::<Instant>();
            starters.push(starter);
            let tell = tell.clone();
            scope.spawn(move || Worker::thread(scope, shared, index, &start, tell));
        }
        drop(tell);
        let server = ready(&told, shared)?;
        let start = Instant::now();
        for starter in starters {
            // A loop that is gone has told why.
            let _ = starter.send(start);
        }
        let mut collector = Collector::new(shared, server);
        for message in told {
            collector.take(message, on_sample);
        }
        Ok(collector.finish())
    })
}

/// One loop for every 16 connections, and half of the processors at most: the server needs the rest.
fn loops(options: &RunOptions) -> u32 {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let most = u32::try_from(processors / 2).unwrap_or(u32::MAX).max(1);
    let wanted = options.loops.unwrap_or_else(|| options.connections.div_ceil(16).min(most));
    wanted.clamp(1, options.connections)
}

/// Waits until every loop has its connections.
fn ready(told: &mpsc::Receiver<Message>, shared: &Shared<'_>) -> Result<ServerInfo, LoadError> {
    let mut version = String::new();
    for _ in 0..shared.loops {
        match told.recv() {
            Ok(Message::Ready(Ok(seen))) => version = seen,
            Ok(Message::Ready(Err(error))) => {
                shared.failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
            Ok(_) | Err(_) => unreachable!("a loop tells first whether it is ready"),
        }
    }
    let endpoints: Vec<String> = shared.target.endpoints.iter().map(ToString::to_string).collect();
    Ok(ServerInfo { version, endpoint: endpoints.join(", "), tls: shared.target.tls.is_some() })
}

fn open_ledger(target: &Target, options: &RunOptions) -> Result<Option<Writer>, LoadError> {
    let Some(ledger) = &options.ledger else { return Ok(None) };
    if ledger.marks {
        let mut session = Session::open(target, &target.endpoints[0])?;
        ledger::set_marks(&mut session, options.connections, &options.schema.engine)?;
    }
    Writer::create(&ledger.path, options.seed, options.connections).map(Some)
}

fn is_open_loop(options: &RunOptions) -> bool {
    options.arrival != Arrival::Closed
}
