//! Replays a trace with the think times of its clients.
//!
//! A recorded arrival says when the old volume had answered, so a faster volume shows no gain if arrivals are kept. Here a
//! request waits for the latest answer that its client had before it sent the request, and for the time that the client took
//! after it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use ebbtide_volume::{Io, Nanos};

use crate::lanes::Lanes;
use crate::outcome::{Outcome, SimulateError};
use crate::queue::EventQueue;
use crate::replay::{ReplayError, ReplaySetup, check_range};
use crate::sample::{Done, Observer};
use crate::trace::{Record, TraceError};

/// Requests that are read before they are due, at most. A client that pauses in the trace for longer than these take starts
/// again when it is read.
pub const READ_AHEAD: usize = 1 << 16;

/// Replays the requests of a trace in a closed loop: each is sent its client's think time after the answer that the client had
/// waited for. A client's first request arrives when it arrived.
///
/// # Errors
/// See [`ReplayError`].
///
/// # Panics
/// Where the interval is zero.
pub fn replay_closed(
    setup: ReplaySetup,
    // Of one type whatever the records come from, so that it is compiled with this crate, which is optimized for speed.
    records: &mut dyn Iterator<Item = Result<Record, TraceError>>,
    observer: &mut dyn Observer,
) -> Result<Outcome, ReplayError> {
    let smallest = setup.smallest();
    let ReplaySetup { volumes, instance, seed, interval } = setup;
    let mut run = Closed {
        lanes: Lanes::new(volumes, instance, 1, seed, interval),
        events: EventQueue::new(),
        clients: HashMap::new(),
        requests: HashMap::new(),
        unanswered: 0,
    };
    let mut records = (1_u64..).zip(records);
    let mut ended = false;
    let mut answers_known = false;
    loop {
        while !ended && run.unanswered < READ_AHEAD {
            let Some((number, record)) = records.next() else {
                ended = true;
                break;
            };
            let record = record?;
            check_range(number, record.io, smallest)?;
            answers_known |= record.latency.is_some();
            run.read(number, &record);
        }
        if !answers_known && run.unanswered > 0 {
            return Err(ReplayError::NoLatencies);
        }
        if !run.step(observer)? {
            break;
        }
    }
    Ok(run.lanes.finish(observer)?)
}

/// What happens at a time on one volume.
#[derive(Debug, Clone, Copy)]
enum Event {
    Send { volume: usize, number: u64 },
    Answer { volume: usize, number: u64, sent: Nanos, throttled: Nanos },
}

/// A request that was read.
#[derive(Debug)]
struct Request {
    io: Io,
    /// When each volume answered it.
    answered: Vec<Option<Nanos>>,
    /// Who waits for its answer, and for how long after it; empty when all volumes answered.
    waiting: Vec<(u64, Nanos)>,
    /// Whether a request that is read later may wait for it.
    named: bool,
}

impl Request {
    fn is_done(&self) -> bool {
        self.answered.iter().all(Option::is_some)
    }
}

/// What a client had in flight, and had been answered, at its latest arrival in the trace.
#[derive(Debug, Default)]
struct Client {
    /// In the order of their answers in the trace.
    in_flight: BinaryHeap<Reverse<(Nanos, u64)>>,
    latest: Option<(Nanos, u64)>,
}

struct Closed {
    lanes: Lanes,
    events: EventQueue<Event>,
    clients: HashMap<u64, Client>,
    requests: HashMap<u64, Request>,
    /// Requests that not all volumes have answered.
    unanswered: usize,
}

impl Closed {
    /// Takes a request of the trace: it waits for an answer, or is sent at its time.
    fn read(&mut self, number: u64, record: &Record) {
        let volumes = self.lanes.count();
        let waits_for = self.latest_answer(record.client, record.at);
        let request = Request {
            io: record.io,
            answered: vec![None; volumes],
            waiting: Vec::new(),
            named: record.latency.is_some(),
        };
        self.requests.insert(number, request);
        self.unanswered += 1;
        if let Some(latency) = record.latency {
            let client = self.clients.entry(record.client).or_default();
            client.in_flight.push(Reverse((record.at + latency, number)));
        }
        let Some((answered, other)) = waits_for else {
            (0..volumes).for_each(|volume| self.send_at(record.at, volume, number));
            return;
        };
        let think = record.at.since(answered);
        let before = self.requests.get_mut(&other).expect("a request that may be named is kept");
        if !before.is_done() {
            before.waiting.push((number, think));
        }
        let answers = before.answered.clone();
        for (volume, answer) in answers.into_iter().enumerate() {
            if let Some(at) = answer {
                self.send_at(at + think, volume, number);
            }
        }
    }

    /// The latest answer that a client had at a time of the trace, and the request that it answered.
    fn latest_answer(&mut self, client: u64, at: Nanos) -> Option<(Nanos, u64)> {
        let client = self.clients.entry(client).or_default();
        while let Some(Reverse(next)) = client.in_flight.peek().copied().filter(|Reverse(next)| next.0 <= at)
        {
            client.in_flight.pop();
            if let Some((_, before)) = client.latest.replace(next) {
                let request = self.requests.get_mut(&before).expect("a request that may be named is kept");
                request.named = false;
                if request.is_done() {
                    self.requests.remove(&before);
                }
            }
        }
        client.latest
    }

    /// Sends a request at a time, or now where that has passed.
    fn send_at(&mut self, at: Nanos, volume: usize, number: u64) {
        self.events.push(at.max(self.lanes.now()), Event::Send { volume, number });
    }

    /// Handles the next event; false where there is none.
    fn step(&mut self, observer: &mut dyn Observer) -> Result<bool, SimulateError> {
        let Some((at, event)) = self.events.pop() else { return Ok(false) };
        self.lanes.pass_time(at, observer)?;
        match event {
            Event::Send { volume, number } => {
                let io = self.requests[&number].io;
                let grant = self.lanes.submit(volume, io)?;
                let throttled = grant.completes.since(grant.unthrottled);
                self.events.push(grant.completes, Event::Answer { volume, number, sent: at, throttled });
            }
            Event::Answer { volume, number, sent, throttled } => {
                let request = self.requests.get_mut(&number).expect("a request is kept until it is answered");
                let Io { op, len, .. } = request.io;
                request.answered[volume] = Some(at);
                let waiting = request.waiting.clone();
                if request.is_done() {
                    self.unanswered -= 1;
                    request.waiting = Vec::new();
                    if !request.named {
                        self.requests.remove(&number);
                    }
                }
                self.lanes.completed(volume, 0, &Done { op, len, latency: at.since(sent), throttled });
                waiting.into_iter().for_each(|(next, think)| self.send_at(at + think, volume, next));
            }
        }
        Ok(true)
    }
}
