//! The sending half of a connection: replies go straight to the socket where it takes them, and
//! otherwise to a queue with its own thread, so that the answering thread never waits for a client.
//!
//! At any moment at most one thread sends. Replies that arrive meanwhile queue up and the sender
//! takes them along. Once the socket is full, everything queued is copied out of the volume's
//! buffers, so that a client which does not read holds memory of its own connection only; how much
//! that is, [`Gauge`] bounds.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    net::Shutdown,
    os::fd::OwnedFd,
};

use parking_lot::{Condvar, Mutex};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{SendAncillaryBuffer, SendFlags, sendmsg},
};

use crate::outcome::Buffer;

/// Replies up to this size are sent by the thread that has them, even the pacer. Copying one into the
/// socket takes about 10 us; a longer one would hold up the answers behind it.
const DIRECT_MAX: usize = 64 << 10;

/// Rounds that a thread with other duties sends before the connection's own thread takes over.
const DIRECT_ROUNDS: usize = 2;

/// Pieces of memory in one call; more than a client has in flight as a rule.
const SLICES: usize = 64;

/// What a reply occupies until the client has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) requests: usize,
    pub(crate) bytes: usize,
}

impl Cost {
    pub(crate) const NONE: Self = Self { requests: 0, bytes: 0 };

    pub(crate) const fn of(bytes: usize) -> Self {
        Self { requests: 1, bytes }
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

/// Bounds what one connection has in flight: taken before a request is submitted, given back when
/// its reply has left.
#[derive(Debug)]
pub(crate) struct Gauge {
    held: Mutex<Cost>,
    given_back: Condvar,
    max: Cost,
}

impl Gauge {
    pub(crate) const fn new(max: Cost) -> Self {
        Self { held: Mutex::new(Cost::NONE), given_back: Condvar::new(), max }
    }

    /// Takes what fits; a cost beyond the bound fits once nothing else is held.
    #[must_use]
    pub(crate) fn try_take(&self, cost: Cost) -> bool {
        self.admit(&mut self.held.lock(), cost)
    }

    /// Takes, waiting for as long as it does not fit.
    pub(crate) fn take(&self, cost: Cost) {
        let mut held = self.held.lock();
        while !self.admit(&mut held, cost) {
            self.given_back.wait(&mut held);
        }
    }

    fn admit(&self, held: &mut Cost, cost: Cost) -> bool {
        let fits = held.requests == 0
            || held.requests + cost.requests <= self.max.requests
                && held.bytes + cost.bytes <= self.max.bytes;
        if fits {
            held.add(cost);
        }
        fits
    }

    pub(crate) fn give_back(&self, cost: Cost) {
        if cost == Cost::NONE {
            return;
        }
        let mut held = self.held.lock();
        held.requests -= cost.requests;
        held.bytes -= cost.bytes;
        drop(held);
        self.given_back.notify_one();
    }

    /// Waits until nothing is in flight.
    pub(crate) fn wait_until_empty(&self) {
        let mut held = self.held.lock();
        while held.requests > 0 {
            self.given_back.wait(&mut held);
        }
    }
}

/// A queued reply, or what is left of it.
#[derive(Debug)]
struct Item {
    head: Vec<u8>,
    body: Option<Buffer>,
    sent: usize,
    cost: Cost,
}

impl Item {
    fn copied(parts: [&[u8]; 2], skip: usize, cost: Cost) -> Self {
        let mut head = parts.concat();
        head.drain(..skip);
        Self { head, body: None, sent: 0, cost }
    }

    fn len(&self) -> usize {
        self.head.len() + self.body.as_ref().map_or(0, |body| body.len())
    }

    fn unsent(&self) -> [&[u8]; 2] {
        let body = self.body.as_deref().unwrap_or_default();
        let in_head = self.sent.min(self.head.len());
        [&self.head[in_head..], &body[self.sent - in_head..]]
    }

    /// Gives the volume's buffer back.
    fn copy_out(&mut self) {
        if let Some(body) = self.body.take() {
            self.head.extend_from_slice(&body);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nobody sends.
    Idle,
    /// A thread sends, and will look at the queue afterwards.
    Sending,
    /// The writer is to send next.
    HandedOver,
    /// The writer waits for the client to read.
    Blocked,
    /// The client is gone; replies are dropped.
    Dead,
}

#[derive(Debug)]
struct OutputState {
    mode: Mode,
    queue: VecDeque<Item>,
    ending: bool,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Output {
    socket: OwnedFd,
    gauge: Gauge,
    state: Mutex<OutputState>,
    changed: Condvar,
}

enum Sent {
    Bytes(usize),
    Full,
    Failed,
}

impl Output {
    pub(crate) fn new(socket: OwnedFd, max_in_flight: Cost) -> Self {
        let state = OutputState { mode: Mode::Idle, queue: VecDeque::new(), ending: false };
        Self { socket, gauge: Gauge::new(max_in_flight), state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) const fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// Sends a reply that is at hand. Never waits for the client.
    pub(crate) fn send(&self, head: &[u8], body: &[u8], cost: Cost) {
        if let Some(mut state) = self.begin(cost) {
            if state.mode != Mode::Idle {
                state.queue.push_back(Item::copied([head, body], 0, cost));
                return;
            }
            state.mode = Mode::Sending;
            drop(state);
            self.send_directly([head, body], cost);
        }
    }

    /// Sends a reply whose body is in a buffer of the volume. Never waits for the client.
    pub(crate) fn send_buffer(&self, head: &[u8], body: Buffer, cost: Cost) {
        if body.len() <= DIRECT_MAX {
            return self.send(head, &body, cost);
        }
        let Some(mut state) = self.begin(cost) else { return };
        let mut item = Item { head: head.to_vec(), body: Some(body), sent: 0, cost };
        if state.mode == Mode::Blocked {
            item.copy_out();
        }
        state.queue.push_back(item);
        if state.mode == Mode::Idle {
            self.hand_over(&mut state);
        }
    }

    /// The state, unless the client is gone.
    fn begin(&self, cost: Cost) -> Option<parking_lot::MutexGuard<'_, OutputState>> {
        let state = self.state.lock();
        if state.mode != Mode::Dead {
            return Some(state);
        }
        drop(state);
        self.gauge.give_back(cost);
        None
    }

    fn hand_over(&self, state: &mut OutputState) {
        state.mode = Mode::HandedOver;
        self.changed.notify_one();
    }

    /// Sends as the one sender, then what queued up meanwhile.
    fn send_directly(&self, parts: [&[u8]; 2], cost: Cost) {
        let len = parts[0].len() + parts[1].len();
        let sent = match self.send_some(&parts.map(IoSlice::new)) {
            Sent::Failed => {
                self.gauge.give_back(cost);
                return self.die();
            }
            Sent::Full => 0,
            Sent::Bytes(sent) => sent,
        };
        if sent < len {
            let rest = Item::copied(parts, sent, cost);
            let mut state = self.state.lock();
            state.queue.push_front(rest);
            return self.hand_over(&mut state);
        }
        self.gauge.give_back(cost);
        let mut batch = VecDeque::new();
        for _ in 1..DIRECT_ROUNDS {
            let mut state = self.state.lock();
            if state.queue.is_empty() {
                return self.rest(&mut state);
            }
            std::mem::swap(&mut batch, &mut state.queue);
            drop(state);
            match self.send_batch(&mut batch) {
                Sent::Failed => return self.die(),
                _ if batch.is_empty() => {}
                _ => break,
            }
        }
        self.put_back(batch);
    }

    /// Leaves the rest, if there is one, to the writer.
    fn put_back(&self, mut batch: VecDeque<Item>) {
        let mut state = self.state.lock();
        batch.append(&mut state.queue);
        state.queue = batch;
        if state.queue.is_empty() {
            self.rest(&mut state);
        } else {
            self.hand_over(&mut state);
        }
    }

    /// Nothing is left to send; a writer that is to end waits for that.
    fn rest(&self, state: &mut OutputState) {
        state.mode = Mode::Idle;
        if state.ending {
            self.changed.notify_one();
        }
    }

    /// Sends from the front of the batch and drops what has left.
    fn send_batch(&self, batch: &mut VecDeque<Item>) -> Sent {
        let sent = {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let parts = batch.iter().flat_map(Item::unsent).filter(|part| !part.is_empty());
            let used = slices.iter_mut().zip(parts).map(|(slice, part)| *slice = IoSlice::new(part)).count();
            self.send_some(&slices[..used])
        };
        let Sent::Bytes(mut left) = sent else { return sent };
        let mut gone = Cost::NONE;
        while let Some(item) = batch.front_mut() {
            let unsent = item.len() - item.sent;
            if left < unsent {
                item.sent += left;
                break;
            }
            left -= unsent;
            gone.add(item.cost);
            batch.pop_front();
        }
        self.gauge.give_back(gone);
        sent
    }

    fn send_some(&self, slices: &[IoSlice<'_>]) -> Sent {
        loop {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match sendmsg(&self.socket, slices, &mut SendAncillaryBuffer::default(), flags) {
                Ok(sent) => return Sent::Bytes(sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Sent::Full,
                Err(_) => return Sent::Failed,
            }
        }
    }

    /// Sends what others hand over, until [`Output::end`]. The body of the connection's own thread.
    pub(crate) fn run_writer(&self) {
        loop {
            let mut batch = {
                let mut state = self.state.lock();
                while state.mode != Mode::HandedOver {
                    if state.ending && matches!(state.mode, Mode::Idle | Mode::Dead) {
                        return;
                    }
                    self.changed.wait(&mut state);
                }
                state.mode = Mode::Sending;
                std::mem::take(&mut state.queue)
            };
            match self.send_batch(&mut batch) {
                Sent::Failed => {
                    self.drop_all(batch);
                    self.die();
                }
                Sent::Full => {
                    self.wait_for_reader(&mut batch);
                    self.put_back(batch);
                }
                Sent::Bytes(_) => self.put_back(batch),
            }
        }
    }

    /// Frees the volume's buffers, then waits until the client reads.
    fn wait_for_reader(&self, batch: &mut VecDeque<Item>) {
        {
            let mut state = self.state.lock();
            state.mode = Mode::Blocked;
            batch.append(&mut state.queue);
        }
        batch.iter_mut().for_each(Item::copy_out);
        wait_writable(&self.socket, None);
    }

    fn drop_all(&self, items: VecDeque<Item>) {
        items.into_iter().for_each(|item| self.gauge.give_back(item.cost));
    }

    /// Gives the client up: what is queued or comes later is dropped, and the reader wakes.
    pub(crate) fn die(&self) {
        let queue = {
            let mut state = self.state.lock();
            state.mode = Mode::Dead;
            std::mem::take(&mut state.queue)
        };
        self.drop_all(queue);
        self.shut(Shutdown::Both);
        self.changed.notify_one();
    }

    /// Lets the writer end once everything has left.
    pub(crate) fn end(&self) {
        self.state.lock().ending = true;
        self.changed.notify_one();
    }

    /// Shuts the socket; `Shutdown::Both` also wakes a sender that waits for the client.
    pub(crate) fn shut(&self, how: Shutdown) {
        let how = match how {
            Shutdown::Read => rustix::net::Shutdown::Read,
            Shutdown::Write => rustix::net::Shutdown::Write,
            Shutdown::Both => rustix::net::Shutdown::Both,
        };
        // Fails only where the peer was faster.
        let _ = rustix::net::shutdown(&self.socket, how);
    }
}

/// Waits until the socket takes bytes (or has failed); `false` where the time ran out first.
pub(crate) fn wait_writable(socket: &OwnedFd, timeout: Option<std::time::Duration>) -> bool {
    wait(socket, PollFlags::OUT, timeout)
}

/// Waits until the socket has bytes (or has ended); `false` where the time ran out first.
pub(crate) fn wait_readable(socket: &OwnedFd, timeout: Option<std::time::Duration>) -> bool {
    wait(socket, PollFlags::IN, timeout)
}

fn wait(socket: &OwnedFd, event: PollFlags, timeout: Option<std::time::Duration>) -> bool {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    loop {
        match poll(&mut [PollFd::new(socket, event)], timeout.as_ref()) {
            Ok(ready) => return ready > 0,
            // A signal is rare: beginning the wait anew is acceptable.
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// Sends everything before the deadline; for the negotiation, where nothing else is under way.
pub(crate) fn send_all(socket: &OwnedFd, mut bytes: &[u8], deadline: std::time::Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let slices = [IoSlice::new(bytes)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(socket, &slices, &mut SendAncillaryBuffer::default(), flags) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = deadline.saturating_duration_since(std::time::Instant::now());
                if left.is_zero() || !wait_writable(socket, Some(left)) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
