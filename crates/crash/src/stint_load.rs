//! The load of a stint: on the arm's own server, or on the source of a replica, held back as far as the replica is
//! behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ebbtide_lab::run::error::StepError;
use ebbtide_load::invariant::{self, PauseHandle, Running};
use ebbtide_load::{Session, Target};
use ebbtide_mysql::replication::{self, ReplicaLost};
use parking_lot::Mutex;

/// The number of each client's last transaction.
pub(super) type Marks = BTreeMap<u32, u64>;

/// Transactions that a replica may be behind its source before the source waits, and behind which it goes on again:
/// so few are caught up in a second or two, and so many that the replica always has something to apply. The source must
/// not wait long: a recovered replica is caught up soon, and is judged by what comes then. A replica that applies 20
/// transactions a second takes 2.5 s for the difference.
const MOST_BEHIND: u64 = 400;
const FEW_BEHIND: u64 = 350;
/// How often it is looked how far a replica is behind.
const LOOK: Duration = Duration::from_millis(20);
/// How often it is looked whether it still follows.
const ASK: Duration = Duration::from_millis(500);

/// All transactions of all clients.
pub(super) fn sum(marks: &Marks) -> u64 {
    marks.values().sum()
}

/// The running load of a stint, and what holds it back for a replica.
#[derive(Debug)]
pub(super) struct StintLoad {
    /// Ends before the load does: it has a connection to the same server.
    throttle: Option<SourceThrottle>,
    pub(super) running: Running,
}

impl StintLoad {
    /// A load on a server that nobody follows.
    pub(super) const fn alone(running: Running) -> Self {
        Self { throttle: None, running }
    }

    /// A load on a source, which waits for its replica.
    pub(super) fn followed(running: Running, source: &Target, replica: &Target) -> Result<Self, StepError> {
        let throttle = SourceThrottle::start(source, replica, running.pause_handle())?;
        Ok(Self { throttle: Some(throttle), running })
    }

    /// What the replica had applied when it was last looked; none without one.
    pub(super) fn applied(&self) -> Option<Marks> {
        self.throttle.as_ref().map(|throttle| throttle.progress.lock().applied.clone())
    }

    /// How often the source had to wait for the replica so far; none without one.
    pub(super) fn throttle_counts(&self) -> Option<ThrottleCounts> {
        self.throttle.as_ref().map(|throttle| throttle.progress.lock().counts)
    }

    /// Why the replica no longer follows, the first time that it is asked; None while it does.
    pub(super) fn lost(&self) -> Option<ReplicaLost> {
        self.throttle.as_ref().and_then(|throttle| throttle.progress.lock().lost.take())
    }
}

/// Holds a source back while its replica is far behind.
#[derive(Debug)]
struct SourceThrottle {
    progress: Arc<Mutex<ReplicaProgress>>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How far a replica is.
#[derive(Debug, Default)]
struct ReplicaProgress {
    applied: Marks,
    lost: Option<ReplicaLost>,
    counts: ThrottleCounts,
}

/// How often a replica was compared with its source, and how often the source had to wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ThrottleCounts {
    all: u64,
    held: u64,
}

impl ThrottleCounts {
    /// Whether the source hardly waited since: what the replica applied was then all that there was to apply.
    pub(super) const fn kept_up_since(self, earlier: Self) -> bool {
        let (all, held) = (self.all - earlier.all, self.held - earlier.held);
        held * 20 < all
    }
}

impl SourceThrottle {
    fn start(source: &Target, replica: &Target, pauses: PauseHandle) -> Result<Self, StepError> {
        let open = |target: &Target| Session::open(target, &target.endpoints[0]);
        let (mut source, mut replica) = (open(source)?, open(replica)?);
        let first =
            ReplicaProgress { applied: invariant::marks(&mut replica)?, ..ReplicaProgress::default() };
        let (progress, ending) = (Arc::new(Mutex::new(first)), Arc::new(AtomicBool::new(false)));
        let (shared, end) = (Arc::clone(&progress), Arc::clone(&ending));
        let work = move || {
            if let Err(why) = watch(&mut source, &mut replica, &pauses, &shared, &end) {
                shared.lock().lost = Some(why);
            }
            pauses.hold(false);
        };
        let thread = std::thread::Builder::new().name("throttle".into()).spawn(work);
        let thread = thread.map_err(|source| StepError::Io { action: "start a thread".into(), source })?;
        Ok(Self { progress, ending, thread: Some(thread) })
    }
}

impl Drop for SourceThrottle {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing that a panic could leave half done.
            let _ = thread.join();
        }
    }
}

/// Compares the replica with its source until the end is asked for. An error is why the replica does not follow.
fn watch(
    source: &mut Session,
    replica: &mut Session,
    pauses: &PauseHandle,
    progress: &Mutex<ReplicaProgress>,
    ending: &AtomicBool,
) -> Result<(), ReplicaLost> {
    let unasked = ReplicaLost::Unasked;
    let (mut held, mut asked) = (false, Instant::now());
    while !ending.load(Ordering::Relaxed) {
        let applied = invariant::marks(replica).map_err(unasked)?;
        let all = sum(&invariant::marks(source).map_err(unasked)?);
        let behind = all.saturating_sub(sum(&applied));
        held = behind > if held { FEW_BEHIND } else { MOST_BEHIND };
        pauses.hold(held);
        let mut now = progress.lock();
        now.applied = applied;
        now.counts.all += 1;
        now.counts.held += u64::from(held);
        drop(now);
        if asked.elapsed() > ASK {
            asked = Instant::now();
            replication::check_follows(replica)?;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_keeps_up_where_its_source_hardly_waits() {
        let before = ThrottleCounts { all: 1_000, held: 1_000 };
        assert!(ThrottleCounts { all: 1_500, held: 1_024 }.kept_up_since(before));
        assert!(!ThrottleCounts { all: 1_500, held: 1_025 }.kept_up_since(before));
        assert!(!before.kept_up_since(before), "nothing is known of no time at all");
    }
}
