//! Executing a workload: event loops that carry the connections, and the reader of their counts.

mod client;
mod collect;
mod connector;
mod interval;
mod kernel;
mod observer;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ebbtide_workload::{Program, UniqueIds, numbered};

use crate::error::LoadError;
use crate::execution::{Arrival, Execution};
use crate::ledger::{self, Writer};
use crate::options::{ClientOptions, LedgerOptions, RunOptions, Target};
use crate::report::{Outcome, RunReport, Sample, ServerInfo};
use crate::wire::Session;

use collect::Collector;
pub use observer::{Commit, RunObserver};
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
struct Shared<'a> {
    target: &'a Target,
    program: &'a Program,
    execution: &'a Execution,
    cancel: &'a Cancel,
    observer: &'a dyn RunObserver,
    slots: Slots,
    /// For each statement the first one of its name: that under which its latency is kept.
    kept_as: Vec<usize>,
    /// For each statement whether any call keeps values of what it returns.
    keeps: Vec<bool>,
    unique: UniqueIds,
    /// Whether clients pause before or after their transactions.
    pauses: bool,
    /// Transactions started, counted only where the run has a number to reach.
    started: AtomicU64,
    /// An event loop met an error that ends the run.
    failed: AtomicBool,
    loops: u32,
}

impl<'a> Shared<'a> {
    fn new(
        target: &'a Target,
        program: &'a Program,
        execution: &'a Execution,
        cancel: &'a Cancel,
        observer: &'a dyn RunObserver,
    ) -> Self {
        let description = program.description();
        let statements = &description.statements;
        let first = |name| statements.iter().position(|statement| statement.name == name);
        let pauses = |of: &ebbtide_workload::Transaction| of.keying_us.is_some() || of.thinking_us.is_some();
        Self {
            target,
            program,
            execution,
            cancel,
            observer,
            slots: Slots::new(program, execution.prepared),
            kept_as: statements.iter().filter_map(|statement| first(statement.name)).collect(),
            keeps: (0..statements.len()).map(|statement| program.binds(statement)).collect(),
            unique: UniqueIds::new(execution.seed),
            pauses: execution.arrival == Arrival::Closed && description.transactions.iter().any(pauses),
            started: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            loops: loops(execution),
        }
    }

    fn is_stopping(&self) -> bool {
        self.cancel.is_cancelled() || self.failed.load(Ordering::Relaxed)
    }

    /// The time after which no transaction starts, in ns of the run.
    fn deadline(&self) -> u64 {
        let warmup = Duration::from_secs(self.execution.warmup_s.into());
        self.execution.duration.map_or(u64::MAX, |duration| nanos(duration.saturating_add(warmup)))
    }

    fn name(&self, statement: usize) -> &'static str {
        self.program.description().statements[statement].name
    }
}

/// Where each connection keeps its prepared statements.
#[derive(Debug)]
struct Slots {
    /// The first slot of each statement that is prepared, and how many numbered tables have the next ones.
    of: Vec<Option<(usize, u32)>>,
    /// What to prepare, in the order of the slots.
    texts: Vec<String>,
    /// Whether the types of the statement's columns are needed, by slot.
    typed: Vec<bool>,
}

impl Slots {
    fn new(program: &Program, prepared: bool) -> Self {
        let statements = &program.description().statements;
        let mut slots = Self { of: vec![None; statements.len()], texts: Vec::new(), typed: Vec::new() };
        for place in program.called().into_iter().filter(|place| prepared && statements[*place].prepare) {
            slots.of[place] = Some((slots.texts.len(), statements[place].tables));
            let statement = &statements[place];
            let numbers = if statement.tables == 0 { 0..=0 } else { 1..=statement.tables };
            // As `Statement::text`: without tables there is no number to put in.
            let text = |number| match statement.tables {
                0 => statement.text.clone(),
                _ => numbered(&statement.text, number),
            };
            slots.texts.extend(numbers.map(text));
            slots.typed.resize(slots.texts.len(), program.binds(place));
        }
        slots
    }

    /// The slot of a statement on a table, where it is prepared. None for a table that is not there: the server then
    /// reports it of the text.
    fn of(&self, statement: usize, table: u32) -> Option<usize> {
        match self.of[statement]? {
            (only, 0) => Some(only),
            (first, tables) if (1..=tables).contains(&table) => {
                Some(first + usize::try_from(table - 1).expect("a u32 fits"))
            }
            _ => None,
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Executes a workload and answers with what was found out. Calls `on_sample` once a second.
///
/// A server error that is not in the list of [`Execution::refused`] ends the run or its client; the outcome reports it.
///
/// # Errors
/// Wrong options, and everything that goes wrong before the first transaction.
pub fn execute(
    target: &Target,
    program: &Program,
    execution: &Execution,
    cancel: &Cancel,
    observer: &dyn RunObserver,
    on_sample: &mut dyn FnMut(&Sample),
) -> Result<Outcome, LoadError> {
    execution.check()?;
    let shared = &Shared::new(target, program, execution, cancel, observer);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let mut starters = Vec::new();
        for index in 0..shared.loops {
            let (starter, start) = mpsc::channel::<Instant>();
            starters.push(starter);
            let sender = sender.clone();
            scope.spawn(move || Worker::thread(scope, shared, index, &start, sender));
        }
        drop(sender);
        let server = ready(&receiver, shared)?;
        observer.ready();
        let start = Instant::now();
        for starter in starters {
            // A loop that is gone has sent why.
            let _ = starter.send(start);
        }
        let mut collector = Collector::new(shared, server);
        for message in receiver {
            collector.take(message, on_sample);
        }
        Ok(collector.finish())
    })
}

/// Runs a workload of sysbench and answers with what was found out. Calls `on_sample` once a second.
///
/// A server error that is not to be ignored ends the run early; the report is made all the same and
/// reports it in [`RunReport::ended`].
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
    let program = Program::new(options.sysbench().describe()).expect("our own description is in order");
    let ledger = options.ledger.as_ref().map(|ledger| (ledger, options.schema.engine.as_str()));
    let (outcome, records) =
        execute_with_ledger(target, &program, &options.clients, ledger, cancel, on_sample)?;
    Ok(RunReport::new(options.clone(), outcome, records))
}

/// Executes a program whose commits are written to a ledger, where there is one. It comes with the storage engine of
/// the marks' table, and the number of records is returned.
pub(crate) fn execute_with_ledger(
    target: &Target,
    program: &Program,
    clients: &ClientOptions,
    ledger: Option<(&LedgerOptions, &str)>,
    cancel: &Cancel,
    on_sample: &mut dyn FnMut(&Sample),
) -> Result<(Outcome, u64), LoadError> {
    let execution = clients.execution();
    let Some((ledger, engine)) = ledger else {
        return Ok((execute(target, program, &execution, cancel, &(), on_sample)?, 0));
    };
    if ledger.marks {
        let mut session = Session::open(target, target.endpoint(0)?)?;
        ledger::set_marks(&mut session, clients.connections, engine)?;
    }
    let writer = Writer::create(&ledger.path, clients.seed, clients.connections)?;
    let outcome = execute(target, program, &execution, cancel, &writer, on_sample)?;
    Ok((outcome, writer.records()))
}

/// One loop for every 16 connections, and half of the processors at most: the server needs the rest.
fn loops(execution: &Execution) -> u32 {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let most = u32::try_from(processors / 2).unwrap_or(u32::MAX).max(1);
    let wanted = execution.loops.unwrap_or_else(|| execution.connections.div_ceil(16).min(most));
    wanted.clamp(1, execution.connections)
}

/// Waits until every loop has its connections.
fn ready(receiver: &mpsc::Receiver<Message>, shared: &Shared<'_>) -> Result<ServerInfo, LoadError> {
    let mut version = String::new();
    for _ in 0..shared.loops {
        match receiver.recv() {
            Ok(Message::Ready(Ok(seen))) => version = seen,
            Ok(Message::Ready(Err(error))) => {
                shared.failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
            Ok(_) | Err(_) => unreachable!("a loop reports first whether it is ready"),
        }
    }
    let endpoints: Vec<String> = shared.target.endpoints.iter().map(ToString::to_string).collect();
    Ok(ServerInfo { version, endpoint: endpoints.join(", "), tls: shared.target.tls.is_some() })
}

impl RunObserver for Writer {
    fn committed(&self, commit: &Commit) -> Result<(), LoadError> {
        self.record(commit.client, commit.sequence, commit.at_ns)
    }
}

fn is_open_loop(execution: &Execution) -> bool {
    execution.arrival != Arrival::Closed
}

#[cfg(test)]
mod tests {
    use ebbtide_workload::{Next, Play, Situation};

    use super::*;
    use crate::options::LedgerOptions;
    use crate::wire::{Values, command};
    use crate::{Schema, Workload};

    /// What a client sends in 50 transactions.
    fn sent(workload: Workload, prepared: bool) -> Vec<u8> {
        let mut options = RunOptions::new(workload);
        let auto_inc = workload != Workload::Insert;
        options.schema = Schema { tables: 7, table_size: 12_345, auto_inc, ..Schema::default() };
        options.mix.delete_inserts = 2;
        options.ledger = workload.writes().then(|| LedgerOptions { path: "x".into(), marks: true });
        let program = Program::new(options.sysbench().describe()).unwrap();
        let slots = Slots::new(&program, prepared);
        let unique = UniqueIds::new(5);
        let (mut play, mut out) = (Play::new(&program, 5, 4), Vec::new());
        for sequence in 1..=50 {
            let situation = Situation { client: 3, sequence, unique: &unique };
            play.choose(&program);
            loop {
                let calls = match play.next(&program, &situation) {
                    Next::Send(calls) => calls,
                    Next::Commit(call) => call..call + 1,
                    Next::Done => break,
                    other => panic!("{other:?}"),
                };
                for call in calls.map(|at| program.call(at)) {
                    let statement = program.statement(call);
                    let table = call.table.as_ref().and_then(|table| play.number(table, &situation));
                    let table = u32::try_from(table.unwrap_or(0)).unwrap();
                    let slot = slots.of(call.statement, table);
                    let mut values = Values { play: &mut play, params: &call.params, situation };
                    match slot {
                        Some(slot) => {
                            let id = u32::try_from(slot).unwrap();
                            command::execute(&mut out, id, true, &statement.params, &mut values);
                        }
                        None => command::query_with(&mut out, statement, table, &mut values),
                    }
                }
            }
        }
        out
    }

    #[test]
    fn a_table_that_is_not_there_has_no_prepared_statement() {
        let mut options = RunOptions::new(Workload::PointSelect);
        options.schema.tables = 3;
        let program = Program::new(options.sysbench().describe()).unwrap();
        let slots = Slots::new(&program, true);
        let statement = program.called()[0];
        let of = |table| slots.of(statement, table).map(|slot| slots.texts[slot].as_str());
        assert_eq!((of(0), of(4)), (None, None));
        assert_eq!(of(1), Some("SELECT c FROM sbtest1 WHERE id=?"));
        assert_eq!(of(3), Some("SELECT c FROM sbtest3 WHERE id=?"));
    }

    /// The lengths and checksums are those of the version before workloads were described as data.
    #[test]
    fn a_seed_sends_the_same_bytes_in_every_version() {
        for (workload, prepared, length, crc) in [
            (Workload::PointSelect, true, 1_100, 0x5888_e712),
            (Workload::PointSelect, false, 2_000, 0x2089_098b),
            (Workload::ReadOnly, true, 18_000, 0x96c6_03a6),
            (Workload::ReadOnly, false, 34_250, 0x93fd_c6ef),
            (Workload::ReadWrite, true, 51_300, 0x6f0f_28ad),
            (Workload::ReadWrite, false, 75_441, 0xa00d_b9e4),
            (Workload::WriteOnly, true, 34_700, 0x3641_7cd1),
            (Workload::WriteOnly, false, 42_241, 0xac7a_0f15),
            (Workload::Insert, true, 15_607, 0x6657_3c83),
            (Workload::Insert, false, 16_248, 0xf913_ff68),
            (Workload::Delete, true, 4_100, 0x155c_e8c9),
            (Workload::Delete, false, 5_541, 0x9ef8_f7aa),
            (Workload::UpdateIndex, true, 4_100, 0x155c_e8c9),
            (Workload::UpdateIndex, false, 5_791, 0xf739_5ec4),
            (Workload::UpdateNonIndex, true, 10_200, 0x71a0_6071),
            (Workload::UpdateNonIndex, false, 11_691, 0xc630_5a78),
        ] {
            let sent = sent(workload, prepared);
            let mut sum = flate2::Crc::new();
            sum.update(&sent);
            assert_eq!((sent.len(), sum.sum()), (length, crc), "{workload}, prepared: {prepared}");
        }
    }
}
