//! The clock of a live volume, as a value: the engine never asks the system for the time itself.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use ebbtide_volume::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Where the engine gets the time from, in nanoseconds since 1970.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present time. Never runs backwards.
    fn now(&self) -> Nanos;

    /// The `CLOCK_MONOTONIC` reading at a time of this clock, for absolute sleeps; none for a clock
    /// that no thread can sleep on.
    fn to_monotonic(&self, at: Nanos) -> Option<Nanos>;
}

/// The time of this machine: `CLOCK_MONOTONIC`, moved once to the Unix epoch.
///
/// Unlike the wall clock it is not set back or forth while a volume runs, so that no step of the
/// host's time gives or takes credits.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicClock {
    /// Unix time at the zero point of `CLOCK_MONOTONIC`.
    epoch: Nanos,
}

impl MonotonicClock {
    /// A clock that agrees with the wall clock now.
    #[must_use]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch: Nanos::from(wall).since(monotonic()) }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Nanos {
        self.epoch + monotonic()
    }

    fn to_monotonic(&self, at: Nanos) -> Option<Nanos> {
        Some(at.since(self.epoch))
    }
}

/// Time that the calling thread has spent on a processor.
#[must_use]
pub fn thread_cpu_time() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

fn monotonic() -> Nanos {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).expect("the clock is never negative");
    let nanos = u64::try_from(time.tv_nsec).expect("nanoseconds are never negative");
    Nanos(seconds * 1_000_000_000 + nanos)
}

/// A clock that moves only when it is set: durability, faults and power cuts are tested on it
/// without sleeping.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that reads `now`.
    #[must_use]
    pub const fn new(now: Nanos) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Moves to `to`; a time before the present one is ignored.
    pub fn advance_to(&self, to: Nanos) {
        self.0.fetch_max(to.0, Ordering::Relaxed);
    }

    /// Moves on by `by`.
    pub fn advance(&self, by: Nanos) {
        self.0.fetch_add(by.0, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }

    fn to_monotonic(&self, _at: Nanos) -> Option<Nanos> {
        None
    }
}
