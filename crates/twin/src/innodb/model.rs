//! The server as a whole: clients, processors, buffer pool, logs and page cleaner around one queue of events.

mod background;
mod cleaning;

use std::collections::VecDeque;

use ebbtide_observe::Volumes;
use ebbtide_volume::{Array, Instance, Nanos};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use self::cleaning::{Balanced, Waking};
use super::buffer::{BufferPool, around, of_statements, unit};
use super::cleaner::{FlushTargets, sleeps, whole};
use super::commit::CommitPipeline;
use super::cpu::{Machine, Processors};
use super::disk::Disk;
use super::file_kind::FileKind;
use super::flavour::Settings;
use super::meter::{ClientTime, Meter, ModelOutcome, SecondView};
use super::pages::{Pool, characteristic_time};
use super::purge::{Purger, Unpurged};
use super::redo::RedoLimits;
use super::shape::{EXTENT, Shape};
use super::writer::{PageWriter, Progress};
use crate::queue::EventQueue;

/// A server, what it does, and where.
#[derive(Debug, Clone)]
pub struct ModelSetup {
    /// The server.
    pub settings: Settings,
    /// The workload.
    pub shape: Shape,
    /// The machine.
    pub machine: Machine,
    /// What the calibration found.
    pub costs: Costs,
    /// The load.
    pub load: ModelLoad,
    /// The volumes, as they are at the start.
    pub volumes: Volumes<Array>,
    /// The instance that they are attached to; none: nothing but the volume limits.
    pub instance: Option<Instance>,
    /// Decides every draw.
    pub seed: u64,
    /// Length of the run.
    pub duration: Nanos,
    /// What is left out of the figures at its start.
    pub settle: Nanos,
    /// Whether the buffer pool is empty at the start; else it is as after a long time.
    pub cold: bool,
}

/// What a transaction costs, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Processor time on a core that nobody shares, us.
    pub cpu_us: f64,
    /// Round trip of a statement between client and server, us: the network, and the time that both take to wake up.
    pub round_trip_us: f64,
    /// Mean time that a client waits after a transaction before its next one in a closed loop, us; each wait is drawn from
    /// the exponential distribution.
    pub think_us: f64,
    /// Pages read for each page that the classes miss.
    pub reads: f64,
    /// Pages written for each page that the classes write.
    pub writes: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self { cpu_us: 1_000.0, round_trip_us: 0.0, think_us: 0.0, reads: 1.0, writes: 1.0 }
    }
}

/// Who sends transactions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelLoad {
    /// Connections.
    pub clients: u32,
    /// Transactions a second that arrive whatever happens; none: each client sends its next one when one ends.
    pub rate: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A transaction arrives, in an open loop.
    Arrive,
    Begin(usize),
    /// All round trips of a transaction are over: they are counted together, before its work.
    Sent(usize),
    Computed(usize),
    Read(usize),
    /// A page is written by a client that needs a free one.
    Freed(usize),
    Redo,
    Binlog,
    Batch(usize),
    Clean,
    /// Purge looks at the history; and a page that it reads is there.
    Purge,
    Purged,
    Second,
}

/// Where a client is in its transaction.
#[derive(Debug, Clone, Default)]
struct Client {
    kind: usize,
    started: Nanos,
    /// How many transactions had begun before this one; none while it has none.
    view: Option<f64>,
    reads: u32,
    /// Extents among them, which are read as a whole.
    extents: u32,
    /// Pages among them that the page cache has.
    cached: u32,
    /// Reads until the next slice of processor time.
    reads_in_row: u32,
    /// Slices of processor time that are left, and all of the transaction.
    slices: u32,
    planned: u32,
    slice_ns: f64,
    waits_since: Nanos,
    /// It adds new pages, and there was no place for them.
    needs_place: bool,
    dirtied: Vec<usize>,
}

/// Slices of processor time between the reads of a transaction, at most.
const SLICES: u32 = 4;
/// Pages at the end of the LRU list that a client looks at for a clean one (`buf_LRU_get_free_block`).
const SCANNED: u32 = 100;
/// How long a client sleeps before it writes a page itself.
const SLEEP_FOR_PAGE: Nanos = Nanos::from_ms(10);
/// The page cleaner's round.
const ROUND: Nanos = Nanos::SECOND;
/// How often purge looks at the history.
const PURGE_ROUND: Nanos = Nanos::from_ms(100);
/// The shortest pause between two rounds of it.
const SHORT_PAUSE: Nanos = Nanos::from_ms(10);

/// Bytes of redo that the oldest dirty page is behind, in the long run: what is written while a page stays in the
/// pool, or half of what the redo log allows. All of it on a MariaDB that evicts nothing and whose page cleaner sleeps until
/// then.
fn redo_horizon(shape: &Shape, settings: &Settings, limits: &RedoLimits) -> f64 {
    let pool = Pool::of(settings, &shape.classes);
    let kept = characteristic_time(&shape.classes, &pool);
    match kept {
        None if sleeps(settings) => limits.asynchronous,
        kept => (kept.unwrap_or(1e12) * shape.redo_bytes()).min(limits.asynchronous * 0.5),
    }
}

/// Runs a server in virtual time.
///
/// # Panics
/// Where there is no client, or no time is left to measure.
#[must_use]
pub fn run(setup: ModelSetup) -> ModelOutcome {
    assert!(setup.load.clients > 0, "a load has a client");
    assert!(setup.settle < setup.duration, "a run has time to measure");
    let mut model = Model::new(setup);
    model.begin();
    while let Some((at, event)) = model.events.pop() {
        if at > model.end {
            break;
        }
        model.now = at;
        model.handle(event);
    }
    model.finish()
}

struct Model {
    settings: Settings,
    limits: RedoLimits,
    costs: Costs,
    load: ModelLoad,
    vcpus: f64,
    warm: bool,
    settle: Nanos,
    end: Nanos,
    now: Nanos,
    events: EventQueue<Event>,
    rng: Xoshiro256PlusPlus,
    disk: Disk,
    processors: Processors,
    pool: BufferPool,
    commits: CommitPipeline,
    writer: PageWriter,
    /// None where a workload leaves nothing to purge.
    purger: Option<Purger>,
    meter: Meter,
    clients: Vec<Client>,
    idle: Vec<usize>,
    arrived: VecDeque<Nanos>,
    /// Shares of the kinds of transactions, summed up, with their statements relative to the mean.
    kinds: Vec<(f64, f64)>,
    client_time: ClientTime,
    lsn: u64,
    checkpoint: u64,
    /// Clients that wait for a checkpoint, and for a free page.
    stalled: VecDeque<usize>,
    pageless: VecDeque<usize>,
    cleaner: CleanerState,
    done: Vec<usize>,
}

/// The page cleaner between two of its rounds.
#[derive(Debug, Clone, Copy, Default)]
struct CleanerState {
    running: bool,
    /// When its next round begins; none while none is planned.
    next: Option<Nanos>,
    /// Whether it sleeps until it is woken.
    asleep: bool,
    urgent: bool,
    last: Nanos,
    /// When its last round began that was planned, and on MariaDB that of any.
    begun: Nanos,
    pages_per_s: f64,
    redo_per_s: f64,
    list_pages: u64,
    average_from: (Nanos, u64),
    targets: FlushTargets,
    /// The last change that it has seen, and when.
    changed: (u64, Nanos),
    /// Rounds since the start of the run.
    rounds: u64,
    balanced: Balanced,
    /// The throughput that dirty pages were balanced for.
    balanced_tps: Option<f64>,
}

impl Model {
    fn new(setup: ModelSetup) -> Self {
        let ModelSetup {
            settings,
            shape,
            machine,
            costs,
            load,
            volumes,
            instance,
            seed,
            duration,
            settle,
            cold,
        } = setup;
        let disk = Disk::new(&volumes, instance, seed);
        let limits = RedoLimits::of(&settings);
        let mean = shape.statements().max(1e-9);
        let mut sum = 0.0;
        let kinds = shape.types.iter().map(|of| {
            sum += of.share;
            (sum, of.statements / mean)
        });
        let kinds = kinds.collect();
        let meter = Meter::new(settle, duration, load.clients, load.rate.is_none(), &disk);
        let grain = whole(redo_horizon(&shape, &settings, &limits) / 512.0).max(1);
        let purges = shape.types.iter().any(|of| of.undo_bytes > 0.0 || !of.purged.is_empty());
        let pool = Pool::of(&settings, &shape.classes);
        let cache =
            settings.page_cache_bytes(machine.memory).map(|bytes| bytes / f64::from(settings.page_bytes));
        let pool = BufferPool::new(shape, pool, cache, cold, settings.free_target(), grain);
        Self {
            limits,
            costs,
            load,
            vcpus: f64::from(machine.vcpus),
            warm: !cold,
            settle,
            end: duration,
            now: Nanos::ZERO,
            events: EventQueue::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            disk,
            processors: Processors::new(machine),
            commits: CommitPipeline::new(&settings),
            writer: PageWriter::new(&settings, costs.writes),
            purger: purges.then(|| Purger::new(&settings)),
            pool,
            meter,
            clients: vec![Client::default(); load.clients as usize],
            idle: Vec::new(),
            arrived: VecDeque::new(),
            kinds,
            client_time: ClientTime::default(),
            lsn: whole(limits.full),
            checkpoint: whole(limits.full),
            stalled: VecDeque::new(),
            pageless: VecDeque::new(),
            cleaner: CleanerState::default(),
            done: Vec::new(),
            settings,
        }
    }

    fn begin(&mut self) {
        if !self.pool.is_filling() {
            self.begin_balanced();
        }
        self.checkpoint = self.writer.checkpoint(&self.pool, self.lsn);
        self.events.push(Nanos::SECOND, Event::Second);
        self.schedule_cleaner(ROUND);
        if self.purger.is_some() {
            self.events.push(PURGE_ROUND, Event::Purge);
        }
        let clients = 0..self.clients.len();
        if self.load.rate.is_some() {
            self.idle = clients.rev().collect();
            self.next_arrival();
        } else {
            // Clients do not start at the same instant.
            let spread = whole((self.costs.cpu_us + self.costs.think_us) * 1e3);
            let count = self.clients.len() as u64;
            for client in clients {
                self.events.push(Nanos(spread * client as u64 / count), Event::Begin(client));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive => self.arrive(),
            Event::Begin(client) => self.start(client, self.now),
            Event::Sent(client) => self.compute(client),
            Event::Computed(client) => self.computed(client),
            Event::Read(client) => self.read_done(client),
            Event::Freed(client) => self.freed(client),
            Event::Redo => self.redo_done(),
            Event::Binlog => self.binlog_done(),
            Event::Batch(slot) => self.batch_event(slot),
            // A round that began sooner has taken the place of the planned one.
            Event::Clean if self.cleaner.next == Some(self.now) => {
                let is_due = self.now.since(self.cleaner.begun) >= ROUND;
                self.clean(if is_due { Waking::Planned } else { Waking::Woken });
            }
            Event::Clean => {}
            Event::Purge => self.purge(),
            Event::Purged => self.purged(),
            Event::Second => self.second(),
        }
    }

    fn next_arrival(&mut self) {
        let Some(rate) = self.load.rate.filter(|rate| *rate > 0.0) else { return };
        let gap = -(1.0 - unit(&mut self.rng)).ln() / rate;
        self.events.push(self.now + Nanos(whole(gap * 1e9)), Event::Arrive);
    }

    fn arrive(&mut self) {
        self.next_arrival();
        match self.idle.pop() {
            Some(client) => self.start(client, self.now),
            None => self.arrived.push_back(self.now),
        }
    }

    fn start(&mut self, client: usize, arrived: Nanos) {
        let at = unit(&mut self.rng);
        let kind = self.kinds.partition_point(|(sum, _)| *sum <= at).min(self.kinds.len() - 1);
        let view = self.pool.seen();
        let touched = self.pool.touch(kind, &mut self.rng);
        let reads = around(f64::from(touched.misses) * self.costs.reads, &mut self.rng);
        let cached = match touched.cached {
            0 => 0,
            some => around(f64::from(reads) * f64::from(some) / f64::from(touched.misses), &mut self.rng),
        };
        let extents = around(f64::from(touched.ahead) * self.costs.reads / EXTENT, &mut self.rng);
        let all_reads = reads + extents;
        let slices = all_reads.min(SLICES - 1) + 1;
        let share = self.kinds[kind].1;
        let statements = self.pool.shape().types[kind].statements;
        let one = &mut self.clients[client];
        self.pool.take_dirtied(&mut one.dirtied);
        one.kind = kind;
        one.started = arrived;
        one.view = Some(view);
        one.reads = all_reads;
        one.extents = extents;
        one.cached = cached;
        one.reads_in_row = 0;
        one.slices = slices;
        one.planned = slices;
        one.slice_ns = self.costs.cpu_us * 1e3 * share / f64::from(slices);
        // Pages that a class misses beyond those that are read, and pages that are new, need a place too.
        let placed = touched.created + touched.placed + touched.misses.saturating_sub(reads);
        self.pool.owe_free(placed.into());
        self.clients[client].needs_place = touched.created > 0 && self.pool.owed() > 0;
        for _ in 0..touched.background {
            self.read_for_nobody();
        }
        let trips = Nanos(whole(self.costs.round_trip_us * 1e3 * statements));
        if trips > Nanos::ZERO {
            self.events.push(self.now + trips, Event::Sent(client));
        } else {
            self.compute(client);
        }
    }

    /// The client needs a processor for a slice. New pages need a place first.
    fn compute(&mut self, client: usize) {
        if self.clients[client].needs_place {
            self.meter.page_waits += 1;
            self.clients[client].waits_since = self.now;
            self.pageless.push_back(client);
            self.wake_cleaner();
            return;
        }
        let one = &self.clients[client];
        let statements = self.pool.shape().types[one.kind].statements / f64::from(one.planned.max(1));
        let work = of_statements(statements, &mut self.rng) * one.slice_ns;
        if let Some(at) = self.processors.request(client, work, self.now) {
            self.events.push(at, Event::Computed(client));
        }
    }

    fn computed(&mut self, client: usize) {
        if let Some((next, at)) = self.processors.release(self.now) {
            self.events.push(at, Event::Computed(next));
        }
        let one = &mut self.clients[client];
        one.slices -= 1;
        if one.reads == 0 {
            self.work_done(client);
            return;
        }
        one.reads_in_row = one.reads.div_ceil(one.slices.max(1));
        self.read(client);
    }

    /// The client reads a page, once there is a place for it.
    fn read(&mut self, client: usize) {
        self.clients[client].waits_since = self.now;
        if self.pool.take_free() {
            self.submit_read(client);
            return;
        }
        self.meter.page_waits += 1;
        if self.settings.flavour.is_mariadb() {
            self.pageless.push_back(client);
        } else if self.pool.finds_clean(SCANNED, &mut self.rng) {
            self.submit_read(client);
        } else {
            self.write_single_page(client);
        }
        self.wake_cleaner();
    }

    fn submit_read(&mut self, client: usize) {
        let one = &mut self.clients[client];
        let at = if one.extents > 0 {
            one.extents -= 1;
            self.read_extent()
        } else if one.cached > 0 {
            one.cached -= 1;
            self.meter.page_cache_reads += 1;
            self.now
        } else {
            self.disk.submit(FileKind::DataRead, self.settings.page_bytes, self.now)
        };
        self.events.push(at, Event::Read(client));
    }

    /// A client that finds no clean page sleeps, and writes a dirty one itself.
    fn write_single_page(&mut self, client: usize) {
        self.pool.evict(&mut self.rng);
        let mut at = self.now;
        if self.settings.doublewrite {
            at = self.disk.submit(FileKind::Doublewrite, self.settings.page_bytes, at);
        }
        let written = self.disk.submit(FileKind::DataWrite, self.settings.page_bytes, self.now);
        // The page follows its copy: the time of both, one after the other.
        let both = at.since(self.now) + written.since(self.now);
        self.events.push(self.now + both + SLEEP_FOR_PAGE, Event::Freed(client));
    }

    fn freed(&mut self, client: usize) {
        let waited = self.now.since(self.clients[client].waits_since);
        self.client_time.waiting_for_pages += waited.0 as f64;
        self.clients[client].waits_since = self.now;
        self.submit_read(client);
    }

    fn read_done(&mut self, client: usize) {
        let one = &mut self.clients[client];
        self.client_time.reading += self.now.since(one.waits_since).0 as f64;
        one.reads -= 1;
        one.reads_in_row -= 1;
        if one.reads_in_row > 0 && one.reads > 0 {
            self.read(client);
        } else {
            self.compute(client);
        }
    }

    /// All statements are done: the transaction commits, where it has changed anything.
    fn work_done(&mut self, client: usize) {
        let kind = self.clients[client].kind;
        self.clients[client].waits_since = self.now;
        if self.pool.shape().types[kind].redo_bytes <= 0.0 {
            self.end(client);
        } else if (self.lsn - self.checkpoint) as f64 > self.limits.full {
            self.meter.redo_waits += 1;
            self.stalled.push_back(client);
            self.wake_cleaner();
        } else {
            self.commit(client);
        }
    }

    fn commit(&mut self, client: usize) {
        let one = &mut self.clients[client];
        let waited = self.now.since(one.waits_since);
        self.client_time.waiting_for_redo += waited.0 as f64;
        one.waits_since = self.now;
        let redo = self.pool.shape().types[one.kind].redo_bytes;
        self.lsn += whole(redo);
        self.pool.changed(&one.dirtied, self.lsn);
        let age = (self.lsn - self.checkpoint) as f64;
        let is_asked = self.cleaner.targets.raise(&self.settings, &self.limits, self.lsn, age);
        // A page cleaner that is awake goes on with its round of each second (measured: seconds of commits and of page writes
        // alternate).
        let is_woken = is_asked && (self.cleaner.asleep || self.cleaner.targets.is_urgent());
        self.cleaner.asleep &= !is_asked;
        let (kind, seen) = (one.kind, self.pool.seen());
        self.leave_undo(Unpurged { kind, seen, lsn: self.lsn });
        self.commits.enqueue(client, redo);
        self.begin_redo();
        if is_woken {
            self.wake_cleaner();
        }
    }

    fn begin_redo(&mut self) {
        if let Some(at) = self.commits.begin_redo(self.now, &mut self.disk) {
            self.events.push(at, Event::Redo);
        }
    }

    fn redo_done(&mut self) {
        let (clients, types) = (&self.clients, &self.pool.shape().types);
        self.commits.end_redo(|client| types[clients[client].kind].binlog_bytes, &mut self.done);
        self.end_all();
        self.begin_redo();
        self.begin_binlog();
    }

    fn begin_binlog(&mut self) {
        if let Some(at) = self.commits.begin_binlog(self.now, &mut self.disk) {
            self.events.push(at, Event::Binlog);
        }
    }

    /// A step of the sync of the binary log is done.
    fn binlog_done(&mut self) {
        if let Some(at) = self.commits.sync_binlog(self.now, &mut self.disk) {
            self.events.push(at, Event::Binlog);
            return;
        }
        self.commits.end_binlog(&mut self.done);
        self.end_all();
        self.begin_binlog();
    }

    fn end_all(&mut self) {
        while let Some(client) = self.done.pop() {
            let waited = self.now.since(self.clients[client].waits_since);
            self.client_time.committing += waited.0 as f64;
            self.end(client);
        }
    }

    fn end(&mut self, client: usize) {
        let latency = self.now.since(self.clients[client].started);
        self.clients[client].view = None;
        self.meter.finished(latency, self.now);
        if self.load.rate.is_none() && self.costs.think_us > 0.0 {
            let think = -(1.0 - unit(&mut self.rng)).ln() * self.costs.think_us;
            self.events.push(self.now + Nanos(whole(think * 1e3)), Event::Begin(client));
        } else if self.load.rate.is_none() {
            self.start(client, self.now);
        } else if let Some(arrived) = self.arrived.pop_front() {
            self.start(client, arrived);
        } else {
            self.idle.push(client);
        }
    }

    fn start_batches(&mut self) {
        let Self { writer, disk, pool, rng, events, now, .. } = self;
        while let Some((slot, at)) = writer.start(*now, disk, pool, rng) {
            events.push(at, Event::Batch(slot));
        }
        if self.writer.is_idle() && self.cleaner.running {
            self.cleaner.running = false;
            if self.settings.flavour.is_mariadb() {
                self.take_checkpoint();
            }
            // It does not sleep while somebody waits for a page.
            let is_urgent = self.cleaner.urgent || self.cleaner.targets.is_urgent();
            let at_once = is_urgent || !self.pageless.is_empty();
            // A round that began between two seconds does not put off that of the next second.
            let next = if at_once { self.cleaner.last + SHORT_PAUSE } else { self.cleaner.begun + ROUND };
            self.schedule_cleaner(next.since(self.now));
        }
    }

    fn batch_event(&mut self, slot: usize) {
        match self.writer.event(slot, self.now, &mut self.disk, &mut self.rng) {
            Progress::Until(at) => self.events.push(at, Event::Batch(slot)),
            Progress::Done { freed } => {
                self.pool.add_free(freed);
                self.serve_pageless();
                if !self.settings.flavour.is_mariadb() {
                    self.take_checkpoint();
                }
                self.start_batches();
            }
        }
    }

    /// The checkpoint moves to the oldest change that is not in the data files. MySQL has a thread for it. MariaDB's page
    /// cleaner takes it at the end of each of its rounds, so that transactions wait for all pages of a round.
    fn take_checkpoint(&mut self) {
        self.checkpoint = self.writer.checkpoint(&self.pool, self.lsn);
        self.cleaner.targets.reach(self.checkpoint);
        self.release_stalled();
    }

    fn serve_pageless(&mut self) {
        while let Some(&client) = self.pageless.front() {
            let adds = self.clients[client].needs_place;
            if (adds && self.pool.free() == 0) || (!adds && !self.pool.take_free()) {
                return;
            }
            self.pageless.pop_front();
            if adds {
                self.clients[client].needs_place = false;
                let waited = self.now.since(self.clients[client].waits_since);
                self.client_time.waiting_for_pages += waited.0 as f64;
                self.compute(client);
            } else {
                self.freed(client);
            }
        }
    }

    fn release_stalled(&mut self) {
        while (self.lsn - self.checkpoint) as f64 <= self.limits.full
            && let Some(client) = self.stalled.pop_front()
        {
            self.commit(client);
        }
    }

    fn second(&mut self) {
        if !self.settings.flavour.is_mariadb() {
            self.take_checkpoint();
        }
        self.commits.write_back(self.now, &mut self.disk);
        if self.pool.is_filling() {
            self.pool.refresh();
        }
        if self.warm && self.now < self.settle {
            self.rebalance();
        }
        let view = self.view();
        self.meter.second(self.now, &mut self.disk, &view);
        self.events.push(self.now + Nanos::SECOND, Event::Second);
    }

    fn view(&mut self) -> SecondView {
        SecondView {
            busy_seconds: self.processors.busy_seconds(self.now),
            vcpus: self.vcpus,
            clients: self.client_time,
            backlog: self.arrived.len(),
            begun: self.clients.len() - self.idle.len(),
        }
    }

    fn finish(mut self) -> ModelOutcome {
        self.now = self.end;
        let view = self.view();
        let dirty = self.pool.flush_list().total();
        let unpurged = self.purger.as_ref().map_or(0, Purger::history);
        ModelOutcome { unpurged, ..self.meter.finish(&mut self.disk, &view, dirty) }
    }
}
