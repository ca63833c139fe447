//! The event loop: one thread, many connections, one statement in flight on each.
//!
//! A statement costs one send and one receive; a wait for the kernel is shared by all answers that
//! have come in meanwhile. What the loop does for one client is in [`transact`].

mod transact;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc;
use std::thread::Scope;
use std::time::{Duration, Instant};

use ebbtide_workload::Random;

use super::client::{Client, ClientState, Link};
use super::connector::Connector;
use super::interval::Interval;
use super::kernel::{Kernel, ReadySource};
use super::{Shared, is_open_loop, nanos};
use crate::error::LoadError;
use crate::execution::Refused;
use crate::latency::{self, Nanos};
use crate::schedule::Schedule;
use crate::usage::thread_cpu_ns;
use transact::code_and_message;

/// What an event loop reports.
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
    /// By statement, and by transaction.
    pub(super) statements: Vec<(usize, Nanos)>,
    pub(super) transactions: Vec<(usize, Nanos)>,
    /// How many were rolled back on purpose, by transaction.
    pub(super) rolled_back: Vec<u64>,
    /// Transactions and busy ns of each client.
    pub(super) clients: Vec<(u64, u64)>,
    pub(super) cpu_ns: u64,
    /// Arrivals that the end left waiting or in progress, and the longest wait, ns.
    pub(super) unfinished: u64,
    pub(super) oldest_ns: u64,
    pub(super) failure: Option<Failure>,
}

/// What has ended a run early.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) code: u16,
    pub(super) message: String,
    /// The name of the statement.
    pub(super) statement: &'static str,
}

pub(super) const SECOND: u64 = 1_000_000_000;
/// The longest sleep: how late a cancellation may be noticed.
const NAP: u64 = 200_000_000;
/// While every connection is busy, arrivals are taken in at least this often.
const SATURATED_NAP: u64 = 1_000_000;
/// Where no statement is under way.
const BEGIN: &str = "begin";
/// Room for what one receive brings.
const SCRATCH: usize = 64 * 1024;

/// An event loop.
pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    clients: Vec<Client>,
    kernel: Kernel,
    /// None where no client connects again.
    connector: Option<Connector>,
    sender: mpsc::Sender<Message>,
    start: Instant,
    schedule: Option<Schedule>,
    /// Clients without a transaction, longest idle first.
    idle: VecDeque<usize>,
    /// When clients that wait for their users go on, and which.
    pausing: BinaryHeap<Reverse<(u64, usize)>>,
    /// When what clients have sent arrives over the emulated network, and whose: in the order of these times, since all
    /// takes the same.
    under_way: VecDeque<(u64, usize)>,
    /// No transaction is to begin; how long until that is asked again.
    held: Option<Duration>,
    /// Clients that are not retired.
    active: usize,
    interval: Interval,
    statements: Vec<Option<Nanos>>,
    transactions: Vec<Option<Nanos>>,
    /// How many were rolled back on purpose, by transaction.
    rolled_back: Vec<u64>,
    tick: u64,
    deadline: u64,
    /// When to give up on transactions in flight.
    give_up: u64,
    /// When the loop meant to look at the arrivals again.
    planned: u64,
    /// When the answers being handled were seen to have come in.
    batch: u64,
    cpu_base: u64,
    scratch: Vec<u8>,
    out: Vec<u8>,
    failure: Option<Failure>,
}

impl<'a> Worker<'a> {
    /// A loop's whole life, on its own thread.
    pub(super) fn thread<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        shared: &'a Shared<'a>,
        index: u32,
        start: &mpsc::Receiver<Instant>,
        sender: mpsc::Sender<Message>,
    ) {
        let made = connect(shared, index).and_then(|(clients, version)| {
            Ok((Self::new(scope, shared, index, clients, sender.clone())?, version))
        });
        let mut worker = match made {
            Ok((worker, version)) => {
                drop(sender.send(Message::Ready(Ok(version))));
                worker
            }
            Err(error) => return drop(sender.send(Message::Ready(Err(error)))),
        };
        drop(sender);
        // Without a start, another loop has failed to connect.
        let Ok(start) = start.recv() else { return };
        worker.start = start;
        if let Err(error) = worker.work() {
            worker.give_clients_up(&error);
            let (code, message) = code_and_message(&error);
            worker.fail(code, message, BEGIN);
        }
        worker.finish();
    }

    fn new<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        shared: &'a Shared<'a>,
        index: u32,
        clients: Vec<Client>,
        sender: mpsc::Sender<Message>,
    ) -> Result<Self, LoadError> {
        let execution = shared.execution;
        let kernel = Kernel::new()?;
        let reconnects =
            matches!(execution.refused, Refused::EndsRun { .. }) || execution.reconnect_every > 0;
        let connector = reconnects.then(|| Connector::start(scope, shared)).transpose()?;
        if let Some(connector) = &connector {
            kernel.watch_connector(connector)?;
        }
        for (at, client) in clients.iter().enumerate() {
            kernel.watch(at, &client.link.as_ref().expect("a new client has a link").transport)?;
        }
        // Far from the clients' streams, whose numbers are 32 bits.
        let arrivals = Random::new(execution.seed, (1 << 40) + u64::from(index));
        let schedule = Schedule::new(execution.arrival, execution.backlog, index, shared.loops, arrivals);
        Ok(Self {
            shared,
            active: clients.len(),
            clients,
            kernel,
            connector,
            sender,
            start: Instant::now(),
            schedule,
            idle: VecDeque::new(),
            pausing: BinaryHeap::new(),
            under_way: VecDeque::new(),
            held: None,
            interval: Interval::new(is_open_loop(execution)),
            statements: vec![None; shared.kept_as.len()],
            transactions: vec![None; shared.program.description().transactions.len()],
            rolled_back: vec![0; shared.program.description().transactions.len()],
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
    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    fn work(&mut self) -> Result<(), LoadError> {
        self.cpu_base = thread_cpu_ns();
        let now = self.now();
        self.held = self.shared.observer.held();
        for at in 0..self.clients.len() {
            if self.shared.pauses {
                self.pause(at, now, false)?;
            } else {
                self.begin_next(at, now)?;
            }
        }
        while self.active > 0 {
            let now = self.now();
            self.watch_the_end(now);
            if now >= self.give_up {
                let late = std::io::Error::new(
                    std::io::ErrorKind::TimedOut,
                    "the answer did not come before the load was to end",
                );
                self.give_clients_up(&LoadError::Broken { during: "waiting for an answer", source: late });
                return Ok(());
            }
            self.turn(now)?;
        }
        Ok(())
    }

    /// Where each client has an end of its own: ends those that are left.
    fn give_clients_up(&mut self, error: &LoadError) {
        if matches!(self.shared.execution.refused, Refused::EndsRun { .. }) {
            return;
        }
        for at in 0..self.clients.len() {
            if self.clients[at].state != ClientState::Retired {
                self.shared.observer.refused(error, false);
                self.end_client(at, error);
            }
        }
    }

    /// Waits once, and handles what has come.
    fn turn(&mut self, now: u64) -> Result<(), LoadError> {
        let limit = self.set_alarm(now)?;
        self.kernel.wait(limit)?;
        self.batch = self.now();
        let overslept = self.batch.saturating_sub(now.saturating_add(limit));
        if self.kernel.rang() == 0 && self.schedule.is_none() && overslept > 0 {
            // No client was late, unless the whole process stalled.
            self.interval.lag.saturating_record(overslept);
        }
        self.end_seconds(self.batch);
        self.held = self.shared.observer.held();
        self.take_arrivals(self.batch)?;
        self.wake_up(self.batch)?;
        self.arrive(self.batch)?;
        for at in 0..self.kernel.rang() {
            match self.kernel.ready_source(at) {
                ReadySource::Timer => {}
                ReadySource::Connector => self.reconnected()?,
                ReadySource::Client(client) => {
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
        if let Some(held) = self.held {
            until = until.min(now + nanos(held));
        }
        if let Some(Reverse((due, _))) = self.pausing.peek() {
            until = until.min((*due).max(now));
        }
        if self.deadline > now {
            until = until.min(self.deadline);
        }
        self.planned = until;
        // A sleep would end too late for these.
        let mut timed = self.under_way.front().map(|&(due, _)| due);
        let mut limit = until;
        if let Some(schedule) = &self.schedule
            && now < self.deadline
        {
            let next = schedule.next();
            if self.idle.is_empty() || self.held.is_some() {
                // No connection is free: an arrival can wait until it is written down.
                self.planned = next.max(now + SATURATED_NAP).min(until);
                limit = self.planned;
            } else {
                self.planned = next.min(until);
                if now < next {
                    timed = Some(timed.map_or(next, |due| due.min(next)));
                } else {
                    limit = self.planned;
                }
            }
        }
        match timed {
            Some(due) if due <= now => return Ok(0),
            Some(due) if due < limit => self.kernel.set_timer(due - now)?,
            _ => {}
        }
        Ok(limit.saturating_sub(now))
    }

    /// Sends what arrives over the emulated network.
    fn arrive(&mut self, now: u64) -> Result<(), LoadError> {
        while let Some(&(due, at)) = self.under_way.front() {
            if due > now {
                break;
            }
            self.under_way.pop_front();
            // What a connection had under way is gone with it.
            let link = self.clients[at].link.as_mut().filter(|link| link.arrives_at == due);
            let Some(link) = link else { continue };
            link.arrives_at = 0;
            self.out.clone_from(&link.under_way);
            self.interval.lag.saturating_record(now - due);
            self.send(at)?;
        }
        Ok(())
    }

    /// Takes in the arrivals that are due, and gives them to idle clients.
    fn take_arrivals(&mut self, now: u64) -> Result<(), LoadError> {
        let Some(schedule) = &mut self.schedule else { return Ok(()) };
        let (planned, lag) = (self.planned, &mut self.interval.lag);
        schedule.advance(now.min(self.deadline), |due| {
            lag.saturating_record(now.saturating_sub(due.max(planned)));
        });
        while self.held.is_none() && self.schedule.as_ref().is_some_and(Schedule::is_waiting) {
            let Some(client) = self.idle.pop_front() else { break };
            self.clients[client].state = ClientState::Idle;
            self.begin_next(client, now)?;
        }
        Ok(())
    }

    /// Lets clients go on whose pause is over, or that were held back.
    fn wake_up(&mut self, now: u64) -> Result<(), LoadError> {
        if self.held.is_none() && self.schedule.is_none() {
            while let Some(client) = self.idle.pop_front() {
                self.begin_next(client, now)?;
            }
        }
        while let Some(Reverse((due, client))) = self.pausing.peek().copied() {
            if due > now {
                break;
            }
            self.pausing.pop();
            // Any other client has ended meanwhile, or has lost its connection and begun another pause.
            if self.clients[client].pauses_until(due) {
                self.interval.lag.saturating_record(now - due);
                self.end_pause(client, now)?;
            }
        }
        Ok(())
    }

    fn watch_the_end(&mut self, now: u64) {
        let stopping = self.shared.is_stopping();
        if stopping {
            self.deadline = self.deadline.min(now);
            let grace = nanos(self.shared.execution.cancel_grace);
            self.give_up = self.give_up.min(now.saturating_add(grace));
        }
        if now >= self.deadline {
            if let Some(grace) = self.shared.execution.grace {
                self.give_up = self.give_up.min(self.deadline.saturating_add(nanos(grace)));
            }
            while let Some(client) = self.idle.pop_front() {
                self.retire(client);
            }
            while let Some(Reverse((_, client))) = self.pausing.pop() {
                if matches!(self.clients[client].state, ClientState::Pausing | ClientState::Retrying) {
                    self.retire(client);
                }
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
            let _ = self.sender.send(message);
            self.tick += 1;
            if self.tick == u64::from(self.shared.execution.warmup_s) {
                self.forget_the_warmup();
            }
        }
    }

    fn gauge(&mut self) {
        if let Some(schedule) = &mut self.schedule {
            self.interval.arrivals = std::mem::take(&mut schedule.counts);
            self.interval.backlog = schedule.backlog();
        }
        let busy = self.clients.iter().filter(|client| client.state == ClientState::Busy).count();
        self.interval.in_flight = u64::try_from(busy).expect("a count fits");
    }

    fn forget_the_warmup(&mut self) {
        self.statements.fill(None);
        self.transactions.fill(None);
        self.rolled_back.fill(0);
        self.cpu_base = thread_cpu_ns();
        for client in &mut self.clients {
            (client.events, client.busy_ns) = (0, 0);
        }
    }

    /// Ends the run for all loops.
    fn fail(&mut self, code: u16, message: String, statement: &'static str) {
        self.shared.failed.store(true, std::sync::atomic::Ordering::Relaxed);
        self.failure.get_or_insert(Failure { code, message, statement });
    }

    fn finish(mut self) {
        let at = self.now();
        self.end_seconds(at);
        let cpu_ns = thread_cpu_ns().saturating_sub(self.cpu_base);
        let (unfinished, oldest_ns) = self.count_unfinished(at);
        self.gauge();
        let [statements, transactions] = [&mut self.statements, &mut self.transactions].map(|all| {
            let kept = all.drain(..).enumerate();
            kept.filter_map(|(at, histogram)| Some((at, histogram?))).collect()
        });
        let finish = Finish {
            tick: self.tick,
            interval: self.interval,
            at,
            statements,
            transactions,
            rolled_back: self.rolled_back,
            clients: self.clients.iter().map(|client| (client.events, client.busy_ns)).collect(),
            cpu_ns,
            unfinished,
            oldest_ns,
            failure: self.failure,
        };
        let _ = self.sender.send(Message::Ended(Box::new(finish)));
    }

    /// Open loop: what the end left undone has waited this long at least, and is counted with it.
    fn count_unfinished(&mut self, at: u64) -> (u64, u64) {
        let Some(schedule) = &mut self.schedule else { return (0, 0) };
        let busy = self
            .clients
            .iter()
            .filter(|client| matches!(client.state, ClientState::Busy | ClientState::Reconnecting(_)));
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

    /// The histogram of a statement's name.
    fn statement(&mut self, statement: usize) -> &mut Nanos {
        self.statements[self.shared.kept_as[statement]].get_or_insert_with(latency::coarse)
    }

    /// The histogram of a kind of transaction.
    fn transaction(&mut self, transaction: usize) -> &mut Nanos {
        self.transactions[transaction].get_or_insert_with(latency::coarse)
    }
}

/// Connects the clients of a loop.
fn connect(shared: &Shared<'_>, index: u32) -> Result<(Vec<Client>, String), LoadError> {
    let mut clients = Vec::new();
    let mut version = String::new();
    let step = usize::try_from(shared.loops).expect("a u32 fits");
    for id in (index..shared.execution.connections).step_by(step) {
        if shared.is_stopping() {
            break;
        }
        let (link, seen) = Link::open(shared, id)?;
        version = seen;
        let mut client = Client::new(shared, id, link);
        client.ask_opening(shared)?;
        clients.push(client);
    }
    Ok((clients, version))
}
