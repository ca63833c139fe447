//! Waking threads that sleep until a time.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
};

use ebbtide_volume::Nanos;
use rustix::{
    thread::futex,
    time::{Nsecs, Secs, Timespec},
};

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
    pub(crate) fn sleep(&self, listened: u32, until: Option<Nanos>) {
        let until = until.map(|at| Timespec {
            tv_sec: Secs::try_from(at.0 / 1_000_000_000).unwrap_or(Secs::MAX),
            tv_nsec: Nsecs::try_from(at.0 % 1_000_000_000).expect("less than a second"),
        });
        // Interrupted, timed out, rung: in every case the caller looks again.
        let _ = futex::wait_bitset(&self.0, futex::Flags::PRIVATE, listened, until.as_ref(), NonZeroU32::MAX);
    }
}
