//! The engine's inner part: one lock around the model and the requests in flight, and one gate that
//! lets a power cut or a snapshot see every write either before or after it happened.

use std::{
    collections::{BinaryHeap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use ebbtide_volume::{Io, Nanos, Stats};
use parking_lot::{Mutex, RwLock};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tracing::Level;

use super::{
    BUFFER_BYTES, Done, EARLY_BYTES, EngineError, LiveOptions, MAX_DATA_BYTES, SubmittedWrite,
    failures::{Failed, HostFailures},
    model::Model,
    observed::{Observed, ObservedIo},
    overlay::Overlay,
    pending::Pending,
    reading::GrowingTimes,
    write_callback::WriteCallback,
};
use crate::{
    alarm::Alarm,
    clock::Clock,
    faults::{Faults, InjectedFaults},
    lateness::Lateness,
    outcome::{OWN_BYTES, with_own_bytes},
    request::{BufferPool, Command, IoError, Reply, Request},
    store::OpenVolume,
    sys::{LastAnswer, note_held},
};

/// Requests in flight that need no allocation: what a loop device and some NBD connections queue.
const QUEUE_CAPACITY: usize = 1024;

/// What a pacer's thread does next.
pub(crate) enum Step {
    /// Complete a request.
    Perform(Pending),
    /// Sleep until someone needs a second pair of hands.
    Follow(u32),
    /// Sleep until the next completion time.
    Lead(u32, Nanos),
    /// The volume has stopped.
    End,
}

/// Which thread to wake after the lock is released.
enum Wake {
    None,
    Leader,
    Follower,
}

/// Everything that changes with each request.
#[derive(Debug)]
pub(crate) struct EngineState {
    pub(super) model: Model,
    rng: Xoshiro256PlusPlus,
    pub(super) faults: Faults,
    pub(super) injected: InjectedFaults,
    pub(super) times: GrowingTimes,
    queue: BinaryHeap<Pending>,
    /// What arrived during a stall; the model has not seen it.
    held_back: VecDeque<Pending>,
    /// The latest arrival that the model has seen.
    latest: Nanos,
    stalled_since: Option<Nanos>,
    sequence: u64,
    leading: bool,
    following: usize,
    ended: bool,
    /// The requests for a follower; none where nobody follows.
    pub(super) observed: Option<Observed>,
}

impl EngineState {
    pub(super) fn in_flight(&self) -> usize {
        self.queue.len() + self.held_back.len()
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.queue.peek().map(|next| next.due).filter(|_| self.stalled_since.is_none())
    }

    /// Everything in flight, in the order of submission.
    pub(super) fn in_order(&self) -> Vec<&Pending> {
        let mut all: Vec<_> = self.queue.iter().chain(&self.held_back).collect();
        all.sort_unstable_by_key(|pending| pending.sequence);
        all
    }

    pub(super) fn take_all(&mut self) -> Vec<Pending> {
        let mut all: Vec<_> = self.queue.drain().chain(self.held_back.drain(..)).collect();
        all.sort_unstable_by_key(|pending| pending.sequence);
        all
    }

    /// Charges the request to the model: when it is due, and how an injected fault ends it.
    fn charge(&mut self, request: &mut Pending, now: Nanos) {
        let io = Io { op: request.command.op(), offset: request.offset, len: request.len };
        let grant = self.model.submit(io, now, &mut self.rng);
        let added = self.faults.added_ns(request.command);
        request.due = grant.completes + Nanos(added);
        self.injected.delayed += u64::from(added > 0);
        // Another thread may have submitted in between: then the model's present is a little later than the arrival.
        self.latest = self.latest.max(now);
        request.waits = request.due > self.latest;
        if let Some(observed) = &mut self.observed {
            observed.push(ObservedIo { at: now, completes: request.due, io });
        }
        if let Some(error) = self.faults.error(request.command, request.offset, request.len, &mut self.rng) {
            request.fate = Err(error);
            self.injected.failed += 1;
        }
    }

    /// The model's counters at `now`. While I/O is stalled they show everything submitted as queued.
    pub(super) fn stats(&mut self, now: Nanos) -> Stats {
        let Some(since) = self.stalled_since else { return self.model.stats(now) };
        let mut stats = self.model.stats(since);
        let late = u64::try_from(self.held_back.len()).expect("a queue's length fits in 64 bits");
        stats.queue += late;
        stats.queue_time += Nanos(now.since(since).0.saturating_mul(stats.queue));
        stats.at = now;
        stats
    }

    fn enqueue(&mut self, pending: Pending) -> Wake {
        let first = self.queue.peek().is_none_or(|next| pending.due < next.due);
        self.queue.push(pending);
        match first {
            true if self.leading => Wake::Leader,
            true if self.following > 0 => Wake::Follower,
            _ => Wake::None,
        }
    }

    fn pop_due(&mut self, now: Nanos) -> Option<Pending> {
        self.next_due().filter(|due| *due <= now)?;
        self.queue.pop()
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

/// A live volume without its threads.
#[derive(Debug)]
pub(crate) struct Core {
    pub(super) name: String,
    pub(super) store: Arc<OpenVolume>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(super) block_bytes: u32,
    pub(super) pool: Arc<BufferPool>,
    pub(super) state: Mutex<EngineState>,
    /// Held shared while a request changes the store, alone while a power cut or a snapshot looks.
    pub(super) gate: RwLock<()>,
    pub(super) overlay: Overlay,
    pub(super) write_callback: ArcSwapOption<WriteCallback>,
    /// Changes only while the gate is held alone.
    live: AtomicBool,
    ignore_flush: AtomicBool,
    pub(super) array_bytes: AtomicU64,
    pub(super) failures: HostFailures,
    /// Writes that came, or were still waiting, when the volume had ended.
    pub(super) refused_writes: AtomicU64,
    pub(crate) leader: Alarm,
    pub(crate) followers: Alarm,
    pub(crate) lateness: Lateness,
    last_answer: LastAnswer,
}

impl Core {
    pub(super) fn new(options: LiveOptions) -> Self {
        let volatile = options.array.durability().volatile_cache_bytes;
        Self {
            name: options.name,
            store: options.store,
            clock: options.clock,
            block_bytes: options.block_bytes,
            pool: BufferPool::new(BUFFER_BYTES),
            gate: RwLock::new(()),
            overlay: Overlay::new(volatile),
            write_callback: ArcSwapOption::empty(),
            live: AtomicBool::new(true),
            ignore_flush: AtomicBool::new(false),
            array_bytes: AtomicU64::new(options.array.size_bytes()),
            failures: HostFailures::default(),
            refused_writes: AtomicU64::new(0),
            leader: Alarm::default(),
            followers: Alarm::default(),
            lateness: Lateness::new(),
            last_answer: LastAnswer::default(),
            state: Mutex::new(EngineState {
                model: Model::new(options.array, options.instance),
                rng: Xoshiro256PlusPlus::seed_from_u64(options.seed),
                faults: Faults::default(),
                injected: InjectedFaults::default(),
                times: GrowingTimes::default(),
                queue: BinaryHeap::with_capacity(QUEUE_CAPACITY),
                held_back: VecDeque::new(),
                latest: Nanos::ZERO,
                stalled_since: None,
                sequence: 0,
                leading: false,
                following: 0,
                ended: false,
                observed: None,
            }),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.store.size_bytes().min(self.array_bytes.load(Ordering::Relaxed))
    }

    pub(super) fn submit(&self, request: Request) {
        let Request { command, offset, len, .. } = request;
        let arrived = self.clock.now();
        if let Err(error) = self.check(command, offset, len, request.data.as_deref()) {
            request.reply.send(Err(error));
            return self.trace(command, offset, len, (arrived, arrived), Err(error));
        }
        let mut pending = Pending::arriving(request, arrived);
        if command == Command::Read && self.is_live() {
            let mut buffer = self.pool.take(usize::try_from(len).expect("a request fits in memory"));
            pending.fate = self.read(&mut buffer, offset);
            pending.data = Some(buffer);
        }
        let mut state = self.state.lock();
        if !self.is_live() {
            drop(state);
            return self.refuse(pending);
        }
        pending.sequence = state.next_sequence();
        if state.stalled_since.is_some() {
            state.held_back.push_back(pending);
            drop(state);
            return self.notify_write(command, offset, len);
        }
        state.charge(&mut pending, arrived);
        // Another thread may have submitted in between: then the model's present is a little later.
        if pending.due <= arrived || pending.due <= self.clock.now() {
            drop(state);
            self.perform_due(pending);
            return self.note_passed(arrived);
        }
        let wake = state.enqueue(pending);
        drop(state);
        self.wake(&wake);
        self.notify_write(command, offset, len);
        note_held(arrived);
    }

    /// As [`Core::submit`] for a read. One that the model lets pass at once is read into the thread's own memory and answered from
    /// there: no buffer of the pool passes from thread to thread.
    pub(super) fn submit_read(&self, offset: u64, len: u32, reply: Reply) {
        let command = Command::Read;
        let arrived = self.clock.now();
        if let Err(error) = self.check(command, offset, len, None) {
            reply.send(Err(error));
            return self.trace(command, offset, len, (arrived, arrived), Err(error));
        }
        let request = Request { command, offset, len, fua: false, data: None, reply };
        let mut pending = Pending::arriving(request, arrived);
        let charged = self.try_charge(&mut pending);
        let bytes = usize::try_from(len).expect("a request fits in memory");
        if charged && pending.due <= arrived && bytes <= OWN_BYTES {
            // The model has nothing to wait for: such an answer has no lateness.
            with_own_bytes(bytes, |data| {
                let done = pending.fate.and_then(|()| self.read(data, offset));
                let done = done.and_then(|()| self.apply(command, offset, len, false, None));
                let data = &*data;
                pending.reply.send_read(done.map(|()| data), &self.pool);
                self.trace(command, offset, len, (arrived, pending.due), done);
            });
            return self.note_passed(arrived);
        }
        if self.is_live() {
            let mut buffer = self.pool.take(bytes);
            pending.fate = pending.fate.and(self.read(&mut buffer, offset));
            pending.data = Some(buffer);
        }
        if charged && pending.due <= self.clock.now() {
            self.perform_due(pending);
            return self.note_passed(arrived);
        }
        self.hold(pending, charged);
        note_held(arrived);
    }

    /// Takes the bytes of a read from the store; notes where the host failed.
    fn read(&self, data: &mut [u8], offset: u64) -> Done {
        let length = u32::try_from(data.len()).expect("a request's length has 32 bits");
        let read = self.overlay.read(&self.store, data, offset);
        self.note(Failed { operation: Command::Read, offset, length }, read)
    }

    /// Charges a request to the model, unless the volume has ended or stalls.
    fn try_charge(&self, pending: &mut Pending) -> bool {
        let mut state = self.state.lock();
        let charged = self.is_live() && state.stalled_since.is_none();
        if charged {
            pending.sequence = state.next_sequence();
            let arrived = pending.arrived;
            state.charge(pending, arrived);
        }
        charged
    }

    /// As [`Core::submit`] for a write; the data are copied only if the write has to wait.
    pub(super) fn submit_write(&self, offset: u64, data: &[u8], reply: Reply) {
        let Ok(len) = u32::try_from(data.len()) else { return reply.send(Err(IoError::OutOfRange)) };
        let command = Command::Write;
        let arrived = self.clock.now();
        if let Err(error) = self.check(command, offset, len, Some(data)) {
            reply.send(Err(error));
            return self.trace(command, offset, len, (arrived, arrived), Err(error));
        }
        let request = Request { command, offset, len, fua: false, data: None, reply };
        let mut pending = Pending::arriving(request, arrived);
        let charged = self.try_charge(&mut pending);
        if charged && (pending.due <= arrived || pending.due <= self.clock.now()) {
            let done = pending.fate.and_then(|()| self.apply(command, offset, len, false, Some(data)));
            let (waits, due) = (pending.waits, pending.due);
            pending.reply.send(done.map(|()| None));
            self.trace(command, offset, len, (arrived, due), done);
            self.note_lateness(waits, due);
            return self.note_passed(arrived);
        }
        let mut buffer = self.pool.take(data.len());
        buffer.copy_from_slice(data);
        pending.data = Some(buffer);
        self.hold(pending, charged);
        note_held(arrived);
    }

    /// Puts a read in flight that has its data, or a write whose data had to be copied first.
    fn hold(&self, mut pending: Pending, charged: bool) {
        let Pending { command, offset, len, .. } = pending;
        let mut state = self.state.lock();
        if !self.is_live() {
            drop(state);
            return self.refuse(pending);
        }
        if !charged {
            pending.sequence = state.next_sequence();
            if state.stalled_since.is_some() {
                state.held_back.push_back(pending);
                drop(state);
                return self.notify_write(command, offset, len);
            }
            let arrived = pending.arrived;
            state.charge(&mut pending, arrived);
        }
        let wake = state.enqueue(pending);
        drop(state);
        self.wake(&wake);
        self.notify_write(command, offset, len);
    }

    /// Notes that the thread which submitted a request has answered it.
    fn note_passed(&self, arrived: Nanos) {
        self.last_answer.note_passed(arrived, || self.clock.now());
    }

    /// Calls the callback for a write that has come into flight.
    fn notify_write(&self, command: Command, offset: u64, len: u32) {
        if command == Command::Write
            && let Some(write_callback) = &*self.write_callback.load()
        {
            (write_callback.0)(SubmittedWrite { offset, len });
        }
    }

    fn check(&self, command: Command, offset: u64, len: u32, data: Option<&[u8]>) -> Done {
        if command == Command::Flush {
            return Ok(());
        }
        let block = u64::from(self.block_bytes);
        if !offset.is_multiple_of(block) || !u64::from(len).is_multiple_of(block) {
            return Err(IoError::Misaligned);
        }
        let carries_data = matches!(command, Command::Read | Command::Write);
        let end = offset.checked_add(u64::from(len)).ok_or(IoError::OutOfRange)?;
        if end > self.size_bytes() || (carries_data && len > MAX_DATA_BYTES) {
            return Err(IoError::OutOfRange);
        }
        if command == Command::Write && data.is_none_or(|data| u32::try_from(data.len()) != Ok(len)) {
            return Err(IoError::Misaligned);
        }
        Ok(())
    }

    fn wake(&self, wake: &Wake) {
        match wake {
            Wake::None => {}
            Wake::Leader => self.leader.ring(),
            Wake::Follower => self.followers.ring(),
        }
    }

    /// Completes a request that is due: changes the store and answers.
    fn perform(&self, pending: Pending) {
        let Pending { command, offset, len, fua, mut data, arrived, due, .. } = pending;
        let done = pending.fate.and_then(|()| self.apply(command, offset, len, fua, data.as_deref()));
        if command != Command::Read {
            data = None;
        }
        pending.reply.send(done.map(|()| data));
        self.trace(command, offset, len, (arrived, due), done);
    }

    /// Traces a request that has been answered, by when it had arrived and when it was due. Unless someone
    /// asked for it, this is one comparison with an atomic.
    #[inline]
    fn trace(&self, command: Command, offset: u64, length: u32, times: (Nanos, Nanos), done: Done) {
        if tracing::enabled!(Level::TRACE) {
            self.write_trace(command, offset, length, times, done);
        }
    }

    #[cold]
    fn write_trace(
        &self,
        command: Command,
        offset: u64,
        length: u32,
        (arrived, due): (Nanos, Nanos),
        done: Done,
    ) {
        let now = self.clock.now();
        tracing::trace!(
            volume = self.name,
            operation = command.name(),
            offset,
            length,
            errno = done.err().map_or(0, IoError::errno),
            took_us = now.since(arrived).0 / 1_000,
            late_us = now.since(due).0 / 1_000,
            "answered"
        );
    }

    /// As [`Core::perform`]; notes how late the request was answered.
    pub(crate) fn perform_due(&self, pending: Pending) {
        let Pending { waits, due, .. } = pending;
        self.perform(pending);
        self.note_lateness(waits, due);
    }

    /// Notes how late a request was answered, where it had a time to wait: also one that was late before it could wait.
    fn note_lateness(&self, waits: bool, due: Nanos) {
        if waits {
            self.lateness.record(self.clock.now().since(due));
        }
    }

    /// Answers that the volume has ended.
    fn refuse(&self, pending: Pending) {
        let Pending { command, offset, len, arrived, due, reply, .. } = pending;
        self.note_refused(command);
        reply.send(Err(IoError::PowerLost));
        self.trace(command, offset, len, (arrived, due), Err(IoError::PowerLost));
    }

    fn note_refused(&self, command: Command) {
        if matches!(command, Command::Write | Command::WriteZeroes) {
            self.refused_writes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn apply(&self, command: Command, offset: u64, len: u32, fua: bool, data: Option<&[u8]>) -> Done {
        if command == Command::Read {
            // It has its bytes and changes nothing: a cut or a snapshot need not wait for it, nor it for them.
            return if self.is_live() { Ok(()) } else { Err(IoError::PowerLost) };
        }
        let _open = self.gate.read();
        if !self.is_live() {
            self.note_refused(command);
            return Err(IoError::PowerLost);
        }
        let (store, overlay) = (&*self.store, &self.overlay);
        let done = match command {
            Command::Read => unreachable!("it has returned above"),
            Command::Write => {
                let data = data.expect("a checked write has data");
                if fua {
                    overlay.write_through(store, data, offset).and_then(|()| store.sync())
                } else {
                    overlay.write(store, data, offset)
                }
            }
            Command::WriteZeroes | Command::Discard => {
                let zeroed = overlay.write_zeroes(store, offset, u64::from(len));
                if fua { zeroed.and_then(|()| store.sync()) } else { zeroed }
            }
            Command::Flush if self.ignore_flush.load(Ordering::Relaxed) => Ok(()),
            Command::Flush => overlay.flush(store).and_then(|()| store.sync()),
        };
        self.note(Failed { operation: command, offset, length: len }, done)
    }

    /// Turns an error of the host into one for the guest, counts it and logs it.
    fn note(&self, request: Failed, done: std::io::Result<()>) -> Done {
        done.map_err(|error| {
            self.failures.note(&self.name, request, &error, self.clock.now());
            IoError::from(&error)
        })
    }

    pub(crate) fn next_step(&self) -> Step {
        let mut state = self.state.lock();
        if state.ended {
            return Step::End;
        }
        if let Some(pending) = state.pop_due(self.clock.now()) {
            let relay = !state.leading && state.following > 0 && state.next_due().is_some();
            drop(state);
            if relay {
                self.followers.ring();
            }
            return Step::Perform(pending);
        }
        match state.next_due() {
            Some(due) if !state.leading => {
                state.leading = true;
                Step::Lead(self.leader.listen(), due)
            }
            _ => {
                state.following += 1;
                Step::Follow(self.followers.listen())
            }
        }
    }

    pub(crate) fn stop_leading(&self) {
        self.state.lock().leading = false;
    }

    pub(crate) fn stop_following(&self) {
        self.state.lock().following -= 1;
    }

    pub(super) fn run_due(&self) {
        loop {
            let due = self.state.lock().pop_due(self.clock.now());
            match due {
                Some(pending) => self.perform_due(pending),
                None => return,
            }
        }
    }

    pub(super) fn stats(&self) -> Stats {
        let mut state = self.state.lock();
        state.stats(self.clock.now())
    }

    pub(super) fn set_faults(&self, faults: Faults) -> Result<(), EngineError> {
        self.ignore_flush.store(faults.ignore_flush, Ordering::Relaxed);
        // Between two requests: a write that goes past the cache must not meet one that fills a page of
        // it with what the store has of the same block.
        let alone = self.gate.write();
        let written = if faults.answer_early {
            self.overlay.hold_back(EARLY_BYTES);
            Ok(())
        } else {
            self.overlay.let_go(&self.store)
        };
        drop(alone);
        let mut state = self.state.lock();
        let now = self.clock.now();
        let stalled = faults.stalled;
        state.faults = faults;
        match (state.stalled_since, stalled) {
            (None, true) => state.stalled_since = Some(now),
            (Some(_), false) => self.resume(&mut state, now),
            _ => {}
        }
        drop(state);
        self.leader.ring_all();
        self.followers.ring_all();
        written.map_err(|source| EngineError::Io { action: "write out what was answered early", source })
    }

    /// Ends a stall: what was due during it is due now, what arrived during it arrives now.
    fn resume(&self, state: &mut EngineState, now: Nanos) {
        state.stalled_since = None;
        let mut queue = std::mem::take(&mut state.queue).into_vec();
        for pending in &mut queue {
            pending.due = pending.due.max(now);
        }
        state.queue = queue.into();
        for mut pending in std::mem::take(&mut state.held_back) {
            pending.arrived = now;
            state.charge(&mut pending, now);
            state.queue.push(pending);
        }
    }

    /// Waits until no request is changing the store.
    pub(super) fn settle(&self) {
        drop(self.gate.write());
    }

    /// Takes the volume's power. The caller holds the gate alone, and answers what it gets back.
    pub(super) fn go_dark(&self) -> Vec<Pending> {
        let mut state = self.state.lock();
        self.live.store(false, Ordering::Release);
        state.take_all()
    }

    pub(super) fn stop(&self) -> Result<(), EngineError> {
        let alone = self.gate.write();
        let was_live = self.is_live();
        let rest = self.go_dark();
        let written =
            if was_live { self.overlay.flush(&self.store).and_then(|()| self.store.sync()) } else { Ok(()) };
        drop(alone);
        for pending in rest {
            self.refuse(pending);
        }
        self.state.lock().ended = true;
        self.leader.ring_all();
        self.followers.ring_all();
        written.map_err(|source| EngineError::Io { action: "write out the volume's cache", source })
    }
}
