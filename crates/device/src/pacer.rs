//! The pacer: threads that sleep until the model's completion times, and the record of how late
//! they answered.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread::{Builder, JoinHandle},
};

use ebbtide_volume::Nanos;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use rustix::{
    thread::futex,
    time::{Nsecs, Secs, Timespec},
};

use crate::{
    engine::core::{Core, Step},
    sys::{Role, Scheduling, enter_data_path},
};

/// Threads of one volume's pacer. One sleeps until the next completion; the other takes over that
/// duty while the first is busy with a completion, so that a slow write on the host delays no other.
pub(crate) const THREADS: usize = 2;

/// Longest lateness that has a bucket of its own, in nanoseconds: a minute.
const LATEST_NS: u64 = 60_000_000_000;

/// How late answers were against the model's completion times, from the due time to the moment when
/// the answer had been handed over. Only I/O that the model makes wait is counted; what it lets pass
/// at once never meets the pacer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PacingReport {
    /// Answers counted.
    pub count: u64,
    /// Median lateness in nanoseconds, to 1%.
    pub p50_ns: u64,
    /// 99th percentile in nanoseconds, to 1%.
    pub p99_ns: u64,
    /// 99.9th percentile in nanoseconds, to 1%.
    pub p999_ns: u64,
    /// Largest lateness in nanoseconds, to 1%; above a minute counts as a minute.
    pub max_ns: u64,
    /// How the pacer's threads are scheduled.
    pub scheduling: Scheduling,
}

/// Collects lateness without allocating.
#[derive(Debug)]
pub(crate) struct Lateness {
    histogram: Mutex<Histogram<u64>>,
    scheduling: Mutex<Scheduling>,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, LATEST_NS, 2).expect("the bounds are constants in order");
        Self { histogram: Mutex::new(histogram), scheduling: Mutex::default() }
    }

    pub(crate) fn record(&self, late: Nanos) {
        self.histogram.lock().saturating_record(late.0);
    }

    pub(crate) fn reset(&self) {
        self.histogram.lock().reset();
    }

    pub(crate) fn later_than(&self, limit: Nanos) -> u64 {
        let histogram = self.histogram.lock();
        let late = histogram.iter_recorded().filter(|value| value.value_iterated_to() > limit.0);
        late.map(|value| value.count_since_last_iteration()).sum()
    }

    pub(crate) fn report(&self) -> PacingReport {
        let histogram = self.histogram.lock();
        PacingReport {
            count: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
            scheduling: *self.scheduling.lock(),
        }
    }
}

/// A word that threads sleep on.
#[derive(Debug, Default)]
pub(crate) struct Alarm(AtomicU32);

impl Alarm {
    /// The value to sleep on. Taken under the lock that also guards what is being waited for, so
    /// that a ring in between is not missed.
    pub(crate) fn listen(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Wakes one sleeper, or keeps the next one from falling asleep.
    pub(crate) fn ring(&self) {
        self.ring_up_to(1);
    }

    /// Wakes everyone.
    pub(crate) fn ring_all(&self) {
        self.ring_up_to(u32::from(u16::MAX));
    }

    fn ring_up_to(&self, sleepers: u32) {
        self.0.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, sleepers);
    }

    /// Sleeps until a ring after `listened`, or until a time of `CLOCK_MONOTONIC`.
    fn sleep(&self, listened: u32, until: Option<Nanos>) {
        let until = until.map(|at| Timespec {
            tv_sec: Secs::try_from(at.0 / 1_000_000_000).unwrap_or(Secs::MAX),
            tv_nsec: Nsecs::try_from(at.0 % 1_000_000_000).expect("less than a second"),
        });
        // Interrupted, timed out, rung: in every case the caller looks again.
        let _ = futex::wait_bitset(&self.0, futex::Flags::PRIVATE, listened, until.as_ref(), NonZeroU32::MAX);
    }
}

/// Starts the threads. They end when the engine stops.
pub(crate) fn spawn(core: &Arc<Core>) -> std::io::Result<Vec<JoinHandle<()>>> {
    (0..THREADS)
        .map(|number| {
            let core = Arc::clone(core);
            Builder::new().name(format!("pacer-{number}")).spawn(move || run(&core))
        })
        .collect()
}

fn run(core: &Core) {
    *core.lateness.scheduling.lock() = enter_data_path(Role::Pacer);
    loop {
        match core.next_step() {
            Step::Perform(pending) => core.perform_due(pending),
            Step::Follow(listened) => {
                core.followers.sleep(listened, None);
                core.stop_following();
            }
            Step::Lead(listened, until) => {
                core.leader.sleep(listened, core.clock.to_monotonic(until));
                core.stop_leading();
            }
            Step::End => return,
        }
    }
}
