//! Requests that failed because the host failed: counted by operation and errno, and logged at a
//! limited rate.

use std::{
    fmt, io,
    sync::atomic::{AtomicU64, Ordering},
};

use ebbtide_volume::Nanos;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::request::Command;

/// Failures that are logged at once; after that one in each [`INTERVAL`].
const BURST: u32 = 5;

/// Time between two lines in the long run. A guest may retry thousands of times a second, and the log
/// may be on the very disk that is full.
const INTERVAL: Nanos = Nanos::from_secs(10);

/// Requests that failed in the same way because the host failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFailure {
    /// What was asked for.
    pub operation: Command,
    /// The errno of the host's answer, such as 28 (ENOSPC) or 5 (EIO); null where the host gave none, as for a data file that was cut.
    pub errno: Option<i32>,
    /// Requests that failed so.
    pub count: u64,
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        write!(f, "{} failed {times}: ", self.operation.name())?;
        match self.errno {
            Some(errno) => io::Error::from_raw_os_error(errno).fmt(f),
            None => f.write_str("the host gave no error number"),
        }
    }
}

/// A request, as a line of the log names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failed {
    pub(super) operation: Command,
    /// First byte.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) length: u32,
}

/// All failures of one volume since it was attached.
#[derive(Debug, Default)]
pub(super) struct HostFailures {
    total: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// One entry for each operation and errno; the host has few of them.
    kinds: Vec<HostFailure>,
    limiter: Limiter,
    /// Failures since the last line that no line has named.
    unlogged: u64,
}

impl HostFailures {
    /// Requests that failed.
    pub(super) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// The same by operation and errno, in the order in which they were first seen.
    pub(super) fn kinds(&self) -> Vec<HostFailure> {
        self.inner.lock().kinds.clone()
    }

    /// Counts a failure, and logs it unless too many were logged lately.
    pub(super) fn note(&self, volume: &str, failed: Failed, error: &io::Error, now: Nanos) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let Failed { operation, offset, length } = failed;
        let errno = error.raw_os_error();
        let mut inner = self.inner.lock();
        inner.count(operation, errno);
        if !inner.limiter.take(now) {
            inner.unlogged += 1;
            return;
        }
        let unlogged = std::mem::take(&mut inner.unlogged);
        drop(inner);
        tracing::error!(
            volume,
            operation = operation.name(),
            offset,
            length,
            errno,
            %error,
            unlogged,
            "the host's disk is full or broken: a request failed with an I/O error"
        );
    }

    /// Logs how many failures no line has named, unless too much was logged lately. Called every second.
    pub(super) fn log_rest(&self, volume: &str, now: Nanos) {
        let mut inner = self.inner.lock();
        if inner.unlogged > 0 && inner.limiter.take(now) {
            inner.log(volume, self.total());
        }
    }

    /// Logs the same whatever was logged lately: the volume ends.
    pub(super) fn log_last(&self, volume: &str) {
        let mut inner = self.inner.lock();
        if inner.unlogged > 0 {
            inner.log(volume, self.total());
        }
    }
}

impl Inner {
    fn log(&mut self, volume: &str, total: u64) {
        let unlogged = std::mem::take(&mut self.unlogged);
        tracing::error!(
            volume,
            unlogged,
            total,
            "the host's disk is full or broken: requests failed with an I/O error"
        );
    }

    fn count(&mut self, operation: Command, errno: Option<i32>) {
        let same = |kind: &&mut HostFailure| kind.operation == operation && kind.errno == errno;
        match self.kinds.iter_mut().find(same) {
            Some(kind) => kind.count += 1,
            None => self.kinds.push(HostFailure { operation, errno, count: 1 }),
        }
    }
}

/// At most [`BURST`] lines at once, and one in each [`INTERVAL`] in the long run.
#[derive(Debug, Default)]
struct Limiter {
    /// Until when the lines so far are paid for.
    paid_until: Nanos,
}

impl Limiter {
    /// Whether a line may be written now.
    fn take(&mut self, now: Nanos) -> bool {
        let from = self.paid_until.max(now);
        let ahead = from.since(now);
        let may = ahead.0 + INTERVAL.0 <= INTERVAL.0 * u64::from(BURST);
        if may {
            self.paid_until = Nanos(from.0 + INTERVAL.0);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_lines_are_written_at_once_and_then_one_in_each_interval() {
        let mut limiter = Limiter::default();
        let now = Nanos::from_secs(1_000);
        let at_once = (0..1_000).filter(|_| limiter.take(now)).count();
        assert_eq!(at_once, 5);
        let mut lines = 0;
        for ms in 0..100_000 {
            lines += usize::from(limiter.take(Nanos(now.0 + ms * 1_000_000)));
        }
        assert_eq!(lines, 9, "one at 10 s, 20 s, ... 90 s");
        let later = Nanos::from_secs(2_000);
        assert_eq!(
            (0..1_000).filter(|_| limiter.take(later)).count(),
            5,
            "a quiet time gives the burst back"
        );
    }

    #[test]
    fn failures_are_counted_by_operation_and_errno() {
        let failures = HostFailures::default();
        let note = |operation, errno| {
            let failed = Failed { operation, offset: 0, length: 4096 };
            failures.note("db", failed, &io::Error::from_raw_os_error(errno), Nanos::from_secs(1));
        };
        for _ in 0..3 {
            note(Command::Write, 28);
        }
        note(Command::Read, 5);
        note(Command::Write, 5);
        let cut = Failed { operation: Command::Read, offset: 0, length: 4096 };
        failures.note("db", cut, &io::ErrorKind::UnexpectedEof.into(), Nanos::from_secs(1));
        let kinds = failures.kinds();
        let found: Vec<_> = kinds.iter().map(|kind| (kind.operation, kind.errno, kind.count)).collect();
        assert_eq!(
            found,
            [
                (Command::Write, Some(28), 3),
                (Command::Read, Some(5), 1),
                (Command::Write, Some(5), 1),
                (Command::Read, None, 1),
            ]
        );
        assert_eq!(failures.total(), 6);
        assert_eq!(failures.inner.lock().unlogged, 1, "the sixth line was one too many");
        failures.log_rest("db", Nanos::from_secs(1));
        assert_eq!(failures.inner.lock().unlogged, 1);
        failures.log_last("db");
        assert_eq!(failures.inner.lock().unlogged, 0, "the end of a volume names the rest");
    }
}
