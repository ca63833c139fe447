//! How far the replicas of a trial are behind, while its load runs: one thread gives the source heartbeats, another
//! reads what the replicas show of them. A server that stalls delays nobody's sample.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use ebbtide_load::{LoadError, Session};
use ebbtide_mysql::Server;
use ebbtide_mysql::replication::{self, Heartbeat, Lag, LagReader};
use parking_lot::Mutex;

use super::error::StepError;
use crate::record::ReplicaSecond;

/// From one heartbeat to the next, where the source commits that fast.
const BEAT_EVERY: Duration = Duration::from_millis(100);
/// From one look at the replicas to the next: the end of a second finds one that is at most as old.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// From one check of the replicas to the next.
const CHECK_EVERY: Duration = Duration::from_secs(1);
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
    /// Why a replica no longer follows.
    broken: Mutex<Option<StepError>>,
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
        replicas: &'scope [Server],
    ) -> Result<(), StepError> {
        let mut heartbeat = Heartbeat::open(source)?;
        let mut reader = LagReader::open(source, replicas)?;
        let mut sessions: Vec<Session> = replicas.iter().map(Server::session).collect::<Result<_, _>>()?;
        scope.spawn(move || self.look_after(replicas, &mut sessions));
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

    /// Asks each replica once a second whether it follows still, until one does not or it is over.
    fn look_after(&self, replicas: &[Server], sessions: &mut [Session]) {
        let mut due = Instant::now();
        while !self.over.load(Ordering::Acquire) {
            if Instant::now() < due {
                std::thread::sleep(LOOK_EVERY);
                continue;
            }
            due = Instant::now() + CHECK_EVERY;
            for (replica, session) in replicas.iter().zip(sessions.iter_mut()) {
                let Err(lost) = replication::check_follows(session) else { continue };
                if !self.over.load(Ordering::Acquire) {
                    // A server that has died explains why it does not answer.
                    let error = replica.died().map_or_else(|| lost.into(), StepError::from);
                    self.broken.lock().get_or_insert(error);
                }
                return;
            }
        }
    }

    /// Whether a replica has stopped, or its server has ended.
    pub(super) fn has_broken_replica(&self) -> bool {
        self.broken.lock().is_some()
    }

    /// Why a replica no longer follows; none where all do.
    pub(super) fn take_broken_replica(&self) -> Option<StepError> {
        self.broken.lock().take()
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
            broken: Mutex::default(),
        }
    }
}
