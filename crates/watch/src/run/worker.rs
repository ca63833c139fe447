//! Threads that read a source again and again, and the clock of all of them.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::reading::Moment;
use ebbtide_load::Cancel;

/// How soon a thread notices that it is to end.
const SLICE: Duration = Duration::from_millis(100);
/// How often it is looked whether a thread has ended.
const END_LOOK: Duration = Duration::from_millis(10);

/// The clock: what has passed since the program began, which no step of the wall clock changes.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// What has passed.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// This moment. Times are printed in UTC, as everywhere in the program.
    #[must_use]
    pub fn moment(self) -> Moment {
        Moment { elapsed: self.elapsed().into(), unix_s: unix_s(), utc_offset_s: 0 }
    }
}

/// The wall clock, milliseconds since 1970; 0 where it is before.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The wall clock, seconds since 1970.
#[must_use]
pub fn unix_s() -> i64 {
    i64::try_from(unix_ms() / 1_000).unwrap_or(i64::MAX)
}

/// What a thread has read last.
#[derive(Debug, Default)]
pub(super) struct Slot<T>(Arc<Mutex<T>>);

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Slot<T> {
    /// One with a first value.
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(value)))
    }

    /// The value. A thread that ended by a panic leaves it as it was.
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` every `interval` on a thread of its own, from now until `stop`. Work that takes longer leaves times out: nothing is
/// done twice at once. The thread may hang in the kernel: who waits for its end must not wait without one ([`have_ended`]).
///
/// # Errors
/// The thread cannot be started.
pub(super) fn every(
    name: &str,
    interval: Duration,
    stop: &Cancel,
    mut work: impl FnMut() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let stop = stop.clone();
    let run = move || {
        let mut next = Instant::now();
        while !stop.is_cancelled() {
            work();
            next += interval;
            let now = Instant::now();
            while next < now {
                next += interval;
            }
            wait_until(next, &stop);
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// Waits until threads have ended, for so long at most. Returns whether they have; what a thread owned is dropped then.
pub(super) fn have_ended(threads: &[JoinHandle<()>], patience: Duration) -> bool {
    let give_up = Instant::now() + patience;
    while !threads.iter().all(JoinHandle::is_finished) {
        if Instant::now() >= give_up {
            return false;
        }
        thread::sleep(END_LOOK);
    }
    true
}

/// Waits for a time, or until `stop`.
pub fn wait_until(time: Instant, stop: &Cancel) {
    while !stop.is_cancelled() {
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(SLICE));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_is_done_again_until_it_is_stopped_and_never_twice_at_once() {
        let (stop, (sender, done)) = (Cancel::default(), mpsc::channel());
        let work = move || {
            thread::sleep(Duration::from_millis(5));
            let _ = sender.send(());
        };
        let threads = [every("test", Duration::from_millis(1), &stop, work).unwrap()];
        assert!(!have_ended(&threads, Duration::ZERO));
        for _ in 0..3 {
            done.recv().unwrap();
        }
        stop.cancel();
        // The sender is dropped when the thread ends.
        while done.recv().is_ok() {}
        assert!(have_ended(&threads, Duration::from_secs(60)));
    }
}
