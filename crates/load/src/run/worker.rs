//! The event loop: one thread, many connections, one statement in flight on each.
//!
//! A statement costs one send and one receive; a wait for the kernel is shared by all answers that
//! have come in meanwhile.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread::Scope;
use std::time::Instant;

use super::client::{Client, Link, State};
use super::connector::Connector;
use super::interval::Interval;
use super::kernel::{Kernel, Woken};
use super::{Shared, is_open_loop, nanos};
use crate::distribution::Random;
use crate::error::{LoadError, SERVER_LOST};
use crate::latency::{self, Nanos};
use crate::options::Workload;
use crate::schedule::Schedule;
use crate::sql::Stmt;
use crate::usage::thread_cpu_ns;
use crate::wire::Session;
use crate::wire::answer::Refusal;

/// What an event loop tells.
#[derive(Debug)]
pub(super) enum Message {
    /// All its connections are there: the server's version. Or why not.
    Ready(Result<String, LoadError>),
    /// A second of the run (`tick` counts them from 0) is over.
    Second { tick: u64, interval: Box<Interval> },
    /// The loop has ended.
    Ended(Box<Finish>),
}

/// The last words of an event loop.
#[derive(Debug)]
pub(super) struct Finish {
    /// The second that the interval belongs to.
    pub(super) tick: u64,
    pub(super) interval: Interval,
    /// ns of the run.
    pub(super) at: u64,
    pub(super) statements: Vec<(Stmt, Nanos)>,
    /// Transactions and busy ns of each client.
    pub(super) clients: Vec<(u64, u64)>,
    pub(super) cpu_ns: u64,
    /// Arrivals that the end left waiting or in progress, and the longest wait, ns.
    pub(super) unfinished: u64,
    pub(super) oldest_ns: u64,
    pub(super) failure: Option<(Refusal, Stmt)>,
}

pub(super) const SECOND: u64 = 1_000_000_000;
/// The longest sleep: how late a cancellation may be noticed.
const NAP: u64 = 200_000_000;
/// While every connection is busy, arrivals are taken in at least this often.
const SATURATED_NAP: u64 = 1_000_000;
/// How long transactions in flight may take after a cancellation or a failure.
const LAST_WORDS: u64 = SECOND;
/// Room for what one receive brings.
const SCRATCH: usize = 64 * 1024;

/// An event loop.
pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) clients: Vec<Client>,
    pub(super) kernel: Kernel,
    pub(super) connector: Connector,
    tell: mpsc::Sender<Message>,
    pub(super) start: Instant,
    pub(super) schedule: Option<Schedule>,
    /// Clients without a transaction, longest idle first.
    pub(super) idle: VecDeque<usize>,
    /// Clients that are not retired.
    pub(super) active: usize,
    pub(super) interval: Interval,
    pub(super) statements: [Option<Nanos>; Stmt::ALL.len()],
    tick: u64,
    pub(super) deadline: u64,
    /// When to give up on transactions in flight.
    give_up: u64,
    /// When the loop meant to look at the arrivals again.
    planned: u64,
    /// When the answers being handled were seen to have come in.
    pub(super) batch: u64,
    cpu_base: u64,
    pub(super) scratch: Vec<u8>,
    pub(super) out: Vec<u8>,
    pub(super) failure: Option<(Refusal, Stmt)>,
}

impl<'a> Worker<'a> {
    /// A loop's whole life, on its own thread.
    pub(super) fn thread<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        shared: &'a Shared<'a>,
        index: u32,
        start: &mpsc::Receiver<Instant>,
        tell: mpsc::Sender<Message>,
    ) {
        let made = connect(shared, index).and_then(|(clients, version)| {
            Ok((Self::new(scope, shared, index, clients, tell.clone())?, version))
        });
        let mut worker = match made {
            Ok((worker, version)) => {
                drop(tell.send(Message::Ready(Ok(version))));
                worker
            }
            Err(error) => return drop(tell.send(Message::Ready(Err(error)))),
        };
        drop(tell);
        // Without a start, another loop has failed to connect.
        let Ok(start) = start.recv() else { return };
        worker.start = start;
        if let Err(error) = worker.work() {
            worker.fail(refusal_of(&error), Stmt::Begin);
        }
        worker.finish();
    }

    fn new<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        shared: &'a Shared<'a>,
        index: u32,
        clients: Vec<Client>,
        tell: mpsc::Sender<Message>,
    ) -> Result<Self, LoadError> {
        let options = shared.options;
        let kernel = Kernel::new()?;
        let connector = Connector::start(scope, shared)?;
        kernel.watch_connector(&connector)?;
        for (at, client) in clients.iter().enumerate() {
            kernel.watch(at, &client.link.as_ref().expect("a new client has a link").transport)?;
        }
        // Far from the clients' streams, whose numbers are 32 bits.
        let arrivals = Random::new(options.seed, (1 << 40) + u64::from(index));
        let schedule = Schedule::new(options.arrival, options.backlog, index, shared.loops, arrivals);
        Ok(Self {
            shared,
            active: clients.len(),
            clients,
            kernel,
            connector,
            tell,
            start: Instant::now(),
            schedule,
            idle: VecDeque::new(),
            interval: Interval::new(is_open_loop(options)),
            statements: [const { None }; Stmt::ALL.len()],
            tick: 0,
            deadline: shared.deadline(),
            give_up: u64::MAX,
            planned: 0,
            batch: 0,
            cpu_base: thread_cpu_ns(),
            scratch: vec![0; SCRATCH],
            out: Vec::new(),
            failure: None,
        })
    }

    /// Nanoseconds since the run's start.
    pub(super) fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    fn work(&mut self) -> Result<(), LoadError> {
        self.cpu_base = thread_cpu_ns();
        let now = self.now();
        for at in 0..self.clients.len() {
            self.begin_next(at, now)?;
        }
        while self.active > 0 {
            let now = self.now();
            self.watch_the_end(now);
            if now >= self.give_up {
                return Ok(());
            }
            self.turn(now)?;
        }
        Ok(())
    }

    /// Waits once, and handles what has come.
    fn turn(&mut self, now: u64) -> Result<(), LoadError> {
        let limit = self.set_alarm(now)?;
        self.kernel.wait(limit)?;
        self.batch = self.now();
        let overslept = self.batch.saturating_sub(now.saturating_add(limit));
        if self.kernel.rang() == 0 && self.schedule.is_none() && overslept > 0 {
            // Nobody was late for anything, unless the whole process stood still.
            self.interval.lag.saturating_record(overslept);
        }
        self.end_seconds(self.batch);
        self.take_arrivals(self.batch)?;
        for at in 0..self.kernel.rang() {
            match self.kernel.woken(at) {
                Woken::Timer => {}
                Woken::Connector => self.reconnected()?,
                Woken::Client(client) => {
                    self.writable(client)?;
                    self.readable(client)?;
                }
            }
        }
        if self.schedule.is_some() {
            self.take_arrivals(self.now())?;
        }
        Ok(())
    }

    /// Arranges for the next thing that happens by the clock; answers with how long to sleep at most.
    fn set_alarm(&mut self, now: u64) -> Result<u64, LoadError> {
        let second = (self.tick + 1).saturating_mul(SECOND);
        let mut until = second.min(now + NAP).min(self.give_up);
        if self.deadline > now {
            until = until.min(self.deadline);
        }
        self.planned = until;
        if let Some(schedule) = &self.schedule
            && now < self.deadline
        {
            let next = schedule.next();
            if self.idle.is_empty() {
                // No connection is free: an arrival can wait until it is written down.
                self.planned = next.max(now + SATURATED_NAP).min(until);
            } else {
                self.planned = next.min(until);
                if now < next && next < until {
                    self.kernel.set_timer(next - now)?;
                    return Ok(until - now);
                }
            }
        }
        Ok(self.planned.saturating_sub(now))
    }

    /// Takes in the arrivals that are due, and gives them to idle clients.
    fn take_arrivals(&mut self, now: u64) -> Result<(), LoadError> {
        let Some(schedule) = &mut self.schedule else { return Ok(()) };
        let (planned, lag) = (self.planned, &mut self.interval.lag);
        schedule.advance(now.min(self.deadline), |due| {
            lag.saturating_record(now.saturating_sub(due.max(planned)));
        });
        while self.schedule.as_ref().is_some_and(Schedule::is_waiting) {
            let Some(client) = self.idle.pop_front() else { break };
            self.clients[client].state = State::Idle;
            self.begin_next(client, now)?;
        }
        Ok(())
    }

    fn watch_the_end(&mut self, now: u64) {
        let stopping = self.shared.is_stopping();
        if stopping {
            self.deadline = self.deadline.min(now);
            self.give_up = self.give_up.min(now + LAST_WORDS);
        }
        if now >= self.deadline {
            if let Some(grace) = self.shared.options.grace {
                self.give_up = self.give_up.min(self.deadline.saturating_add(nanos(grace)));
            }
            while let Some(client) = self.idle.pop_front() {
                self.retire(client);
            }
        }
    }

    /// Tells the seconds that are over.
    fn end_seconds(&mut self, now: u64) {
        while now >= (self.tick + 1) * SECOND {
            self.gauge();
            self.interval.told_late = now - (self.tick + 1) * SECOND;
            let interval = std::mem::replace(&mut self.interval, Interval::new(self.schedule.is_some()));
            let message = Message::Second { tick: self.tick, interval: Box::new(interval) };
            // The collector lives as long as we do.
            let _ = self.tell.send(message);
            self.tick += 1;
            if self.tick == u64::from(self.shared.options.warmup_s) {
                self.forget_the_warmup();
            }
        }
    }

    fn gauge(&mut self) {
        if let Some(schedule) = &mut self.schedule {
            self.interval.arrivals = std::mem::take(&mut schedule.counts);
            self.interval.backlog = schedule.backlog();
        }
        let busy = self.clients.iter().filter(|client| client.state == State::Busy).count();
        self.interval.in_flight = u64::try_from(busy).expect("a count fits");
    }

    fn forget_the_warmup(&mut self) {
        self.statements = [const { None }; Stmt::ALL.len()];
        self.cpu_base = thread_cpu_ns();
        for client in &mut self.clients {
            (client.events, client.busy_ns) = (0, 0);
        }
    }

    /// Ends the run for all loops.
    pub(super) fn fail(&mut self, refusal: Refusal, stmt: Stmt) {
        self.shared.failed.store(true, std::sync::atomic::Ordering::Relaxed);
        self.failure.get_or_insert((refusal, stmt));
    }

    fn finish(mut self) {
        let at = self.now();
        self.end_seconds(at);
        let cpu_ns = thread_cpu_ns().saturating_sub(self.cpu_base);
        let (unfinished, oldest_ns) = self.count_unfinished(at);
        self.gauge();
        let statements = Stmt::ALL
            .into_iter()
            .filter_map(|stmt| Some((stmt, self.statements[stmt.index()].take()?)))
            .collect();
        let finish = Finish {
            tick: self.tick,
            interval: self.interval,
            at,
            statements,
            clients: self.clients.iter().map(|client| (client.events, client.busy_ns)).collect(),
            cpu_ns,
            unfinished,
            oldest_ns,
            failure: self.failure,
        };
        let _ = self.tell.send(Message::Ended(Box::new(finish)));
    }

    /// Open loop: what the end left undone has waited this long at least, and is counted with it.
    fn count_unfinished(&mut self, at: u64) -> (u64, u64) {
        let Some(schedule) = &mut self.schedule else { return (0, 0) };
        let busy =
            self.clients.iter().filter(|client| matches!(client.state, State::Busy | State::Reconnecting(_)));
        let (mut count, mut oldest) = (0, 0);
        let waiting: Vec<u64> = schedule.drain().chain(busy.map(|client| client.due)).collect();
        for due in waiting {
            let waited = at.min(self.deadline).saturating_sub(due);
            self.interval.response.saturating_record(waited);
            count += 1;
            oldest = oldest.max(waited);
        }
        (count, oldest)
    }

    /// The histogram of a kind of statement.
    pub(super) fn statement(&mut self, stmt: Stmt) -> &mut Nanos {
        self.statements[stmt.index()].get_or_insert_with(latency::coarse)
    }
}

/// Connects the clients of a loop.
fn connect(shared: &Shared<'_>, index: u32) -> Result<(Vec<Client>, String), LoadError> {
    let mut clients = Vec::new();
    let mut version = String::new();
    let step = usize::try_from(shared.loops).expect("a u32 fits");
    for id in (index..shared.options.connections).step_by(step) {
        if shared.is_stopping() {
            break;
        }
        let (link, seen) = Link::open(shared, id)?;
        version = seen;
        let mut client = Client::new(shared, id, link);
        if shared.options.workload == Workload::BulkInsert {
            client.set_bulk_id(last_bulk_id(shared, id)?);
        }
        clients.push(client);
    }
    Ok((clients, version))
}

fn last_bulk_id(shared: &Shared<'_>, id: u32) -> Result<u32, LoadError> {
    let endpoints = &shared.target.endpoints;
    let endpoint = &endpoints[usize::try_from(id).expect("a u32 fits") % endpoints.len()];
    let mut session = Session::open(shared.target, endpoint)?;
    let last = session.value(&format!("SELECT MAX(id) FROM sbtest{}", id + 1))?;
    Ok(last.and_then(|last| last.parse().ok()).unwrap_or(0))
}

/// An error of ours in the server's form.
pub(super) fn refusal_of(error: &LoadError) -> Refusal {
    match error {
        LoadError::Server { code, state, message, .. } => {
            Refusal { code: *code, state: state.clone(), message: message.clone() }
        }
        other => Refusal {
            code: other.code().unwrap_or(SERVER_LOST),
            state: "HY000".into(),
            message: other.to_string(),
        },
    }
}
