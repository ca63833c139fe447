//! Replays a trace on volumes in virtual time, at the pace of its arrivals.

use ebbtide_volume::{Array, Instance, Io, Nanos, Op};

use crate::lanes::Lanes;
use crate::outcome::{Outcome, SimulateError};
use crate::queue::EventQueue;
use crate::sample::{Done, Observer};
use crate::trace::{Record, TraceError};

/// What to replay a trace on.
#[derive(Debug)]
pub struct ReplaySetup {
    /// The volumes, created at [`Nanos::ZERO`]. Each gets every request.
    pub volumes: Vec<Array>,
    /// The instance that all of them are attached to; none: nothing but the volumes limits.
    pub instance: Option<Instance>,
    /// Decides the service times.
    pub seed: u64,
    /// Length of the intervals that are reported; above zero.
    pub interval: Nanos,
}

impl ReplaySetup {
    /// Size in bytes of the smallest volume.
    pub(crate) fn smallest(&self) -> u64 {
        self.volumes.iter().map(Array::size_bytes).min().unwrap_or(u64::MAX)
    }
}

/// A trace that cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The run cannot go on.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// Think times cannot be inferred.
    #[error(
        "the trace says of no request how long its answer took, so the clients' think times are not known"
    )]
    NoLatencies,
    /// A request is beyond a volume's end.
    #[error(
        "request {number} of the trace ends at {end}, beyond the volume of {size}: give a volume of at least {enough}GiB"
    )]
    BeyondVolume {
        /// The request's number, from 1 on.
        number: u64,
        /// Where it ends.
        end: String,
        /// The size of the smallest volume.
        size: String,
        /// A size that is enough, GiB.
        enough: u64,
    },
}

#[derive(Debug, Clone, Copy)]
struct Completion {
    volume: usize,
    submitted: Nanos,
    throttled: Nanos,
    op: Op,
    len: u32,
}

/// Replays the requests of a trace in an open loop: each arrives when it arrived, however long the volume takes.
///
/// The run ends when the last request is answered.
///
/// # Errors
/// See [`ReplayError`].
///
/// # Panics
/// Where the interval is zero.
pub fn replay(
    setup: ReplaySetup,
    // Of one type whatever the records come from, so that it is compiled with this crate, which is optimized for speed.
    records: &mut dyn Iterator<Item = Result<Record, TraceError>>,
    observer: &mut dyn Observer,
) -> Result<Outcome, ReplayError> {
    let smallest = setup.smallest();
    let ReplaySetup { volumes, instance, seed, interval } = setup;
    let mut run =
        Replay { lanes: Lanes::new(volumes, instance, 1, seed, interval), events: EventQueue::new() };
    for (record, number) in records.zip(1_u64..) {
        let Record { at, io, .. } = record?;
        check_range(number, io, smallest)?;
        run.complete_until(at, observer)?;
        run.lanes.pass_time(at, observer)?;
        for volume in 0..run.lanes.count() {
            let grant = run.lanes.submit(volume, io)?;
            let throttled = grant.completes.since(grant.unthrottled);
            let completion = Completion { volume, submitted: at, throttled, op: io.op, len: io.len };
            run.events.push(grant.completes, completion);
        }
    }
    run.complete_until(Nanos(u64::MAX), observer)?;
    Ok(run.lanes.finish(observer)?)
}

/// Refuses a request, by its number in the trace, that is beyond the end of the smallest volume.
pub(crate) fn check_range(number: u64, io: Io, smallest: u64) -> Result<(), ReplayError> {
    let end = io.offset + u64::from(io.len);
    if end <= smallest {
        return Ok(());
    }
    let enough = end.div_ceil(1 << 30);
    let (end, size) = (ebbtide_text::size(end), ebbtide_text::size(smallest));
    Err(ReplayError::BeyondVolume { number, end, size, enough })
}

struct Replay {
    lanes: Lanes,
    events: EventQueue<Completion>,
}

impl Replay {
    /// Handles the answers up to a time, that time included.
    fn complete_until(&mut self, to: Nanos, observer: &mut dyn Observer) -> Result<(), SimulateError> {
        while let Some(at) = self.events.next_time().filter(|at| *at <= to) {
            self.lanes.pass_time(at, observer)?;
            let Some((_, Completion { volume, submitted, throttled, op, len })) = self.events.pop() else {
                break;
            };
            let done = Done { op, len, latency: at.since(submitted), throttled };
            self.lanes.completed(volume, 0, &done);
        }
        Ok(())
    }
}
