//! The load of a calibration: random I/O for a span of time, counted.

use std::time::{Duration, Instant};

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Which way the data go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

/// One kind of load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// Which way.
    pub(super) way: Direction,
    /// Bytes of an I/O.
    pub(super) bytes: u32,
    /// How many at a time.
    pub(super) depth: u32,
    /// For how long.
    pub(super) span: Duration,
    /// Size of the device, a multiple of `bytes`.
    pub(super) device_bytes: u64,
}

/// What a load got done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// I/Os a second.
    pub(super) iops: f64,
    /// Median latency in microseconds.
    pub(super) median_us: f64,
}

/// Random offsets, the same in every run.
#[derive(Debug)]
pub(super) struct Offsets {
    rng: Xoshiro256PlusPlus,
    blocks: u64,
    bytes: u64,
}

impl Offsets {
    pub(super) fn new(job: &Job) -> Self {
        let bytes = u64::from(job.bytes);
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(1), blocks: job.device_bytes / bytes, bytes }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.rng.next_u64() % self.blocks * self.bytes
    }
}

/// Counts completions until the span is over.
#[derive(Debug)]
pub(super) struct Counter {
    started: Instant,
    span: Duration,
    latencies_ns: Vec<u64>,
}

impl Counter {
    pub(super) fn start(job: &Job) -> Self {
        Self { started: Instant::now(), span: job.span, latencies_ns: Vec::with_capacity(1 << 16) }
    }

    /// One I/O has completed that was submitted at `submitted`; returns whether to go on.
    pub(super) fn completed(&mut self, submitted: Instant) -> bool {
        let latency = submitted.elapsed().as_nanos();
        self.latencies_ns.push(u64::try_from(latency).unwrap_or(u64::MAX));
        self.started.elapsed() < self.span
    }

    pub(super) fn measured(mut self) -> Measured {
        let seconds = self.started.elapsed().as_secs_f64();
        let count = self.latencies_ns.len();
        let middle = count / 2;
        let median = match self.latencies_ns.get(middle) {
            Some(_) => *self.latencies_ns.select_nth_unstable(middle).1,
            None => 0,
        };
        Measured { iops: count as f64 / seconds, median_us: median as f64 / 1e3 }
    }
}
