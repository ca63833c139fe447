//! How far the replicas of a trial are behind, while its load runs: one thread gives the source heartbeats, another
//! reads what the replicas show of them. A server that stalls delays nobody's sample.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use ebbtide_load::LoadError;
use ebbtide_mysql::Server;
use ebbtide_mysql::replication::{Heartbeat, Lag, LagReader};
use parking_lot::Mutex;

use super::error::StageError;
use crate::record::ReplicaSecond;

/// From one heartbeat to the next, where the source commits that fast.
const BEAT_EVERY: Duration = Duration::from_millis(100);
/// From one look at the replicas to the next: the end of a second finds one that is at most as old.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A look that is older shows nothing about the second that ends.
const STALE: Duration = Duration::from_millis(1_500);

/// What the replicas showed last, for whoever makes seconds.
#[derive(Debug)]
pub(super) struct LagWatch {
    began: Instant,
    latest: Mutex<Option<(Instant, Lag)>>,
    /// The servers are about to be killed: no answer is missed from then on.
    over: AtomicBool,
    lost: Mutex<Option<String>>,
}

impl LagWatch {
    /// Begins with threads of their own. The servers must be connected already.
    ///
    /// # Errors
    /// The servers'.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        source: &Server,
        replicas: &[Server],
    ) -> Result<(), StageError> {
        let mut heartbeat = Heartbeat::open(source)?;
        let mut reader = LagReader::open(source, replicas)?;
        scope.spawn(move || self.repeat(BEAT_EVERY, || heartbeat.beat(self.now_us())));
        scope.spawn(move || {
            self.repeat(LOOK_EVERY, || {
                let lag = reader.read(&|| self.now_us())?;
                *self.latest.lock() = lag.map(|lag| (Instant::now(), lag));
                Ok(())
            });
        });
        Ok(())
    }

    /// The replica that is farthest behind, as it was a moment ago; none where that is not known.
    pub(super) fn latest(&self) -> Option<ReplicaSecond> {
        let (at, lag) = (*self.latest.lock())?;
        (at.elapsed() < STALE).then(|| ReplicaSecond {
            lag_s: lag.age.as_secs_f64(),
            lag_transactions: lag.transactions.map(|count| count as f64),
            behind_s: lag.behind_s.map(|seconds| seconds as f64),
        })
    }

    /// Nobody is asked any more.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Why the lag is not known to the end, as a note of the trial.
    pub(super) fn note(&self) -> Option<String> {
        let lost = self.lost.lock();
        lost.as_ref().map(|why| format!("the lag of the replicas is not known to the end: {why}"))
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Does something again and again, until it fails or it is over.
    fn repeat(&self, every: Duration, mut act: impl FnMut() -> Result<(), LoadError>) {
        let mut due = Instant::now();
        while !self.over.load(Ordering::Acquire) {
            if let Err(error) = act() {
                if !self.over.load(Ordering::Acquire) {
                    self.lost.lock().get_or_insert_with(|| error.to_string());
                }
                return;
            }
            // What was missed while the server stalled is not made up for.
            due = (due + every).max(Instant::now());
            std::thread::sleep(due.saturating_duration_since(Instant::now()).min(every));
        }
    }
}

impl Default for LagWatch {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            latest: Mutex::default(),
            over: AtomicBool::new(false),
            lost: Mutex::default(),
        }
    }
}
