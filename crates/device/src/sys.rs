//! What threads of the data path ask of the kernel: scheduling, timer slack, locked memory, and the
//! promise that writing out dirty pages may depend on them.

pub(crate) mod fusectl;
pub(crate) mod reclaim;

use std::{
    cell::Cell,
    fmt,
    num::NonZeroU64,
    sync::{
        Once,
        atomic::{AtomicU64, Ordering},
    },
};

use ebbtide_volume::Nanos;
use rustix::{
    mm::MlockAllFlags,
    process::{Resource, configure_io_flusher_behavior, getrlimit, setpriority_process},
    thread::set_current_timer_slack,
};

/// Real-time priority of the pacers: above everything that only hands them work.
const PACER_PRIORITY: i32 = 3;
/// Real-time priority of the threads that take requests from the kernel or from a socket. They must
/// be real-time too, since they share the model's lock with the pacers.
const EXPORT_PRIORITY: i32 = 2;
/// What a thread gets where real-time scheduling is not allowed.
const NICE: i32 = -20;

/// A thread's part in the data path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sleeps until completion times and answers.
    Pacer,
    /// Receives requests from the kernel or a socket and submits them.
    Export,
}

/// How the kernel schedules a thread of the data path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// `SCHED_FIFO`: preempts every ordinary process at once.
    RealTime,
    /// `SCHED_OTHER` with nice -20, where real-time was refused.
    Nice,
    /// Like everyone else: both were refused, and busy neighbours delay answers.
    #[default]
    Ordinary,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RealTime => "real-time",
            Self::Nice => "nice -20",
            Self::Ordinary => "ordinary",
        })
    }
}

/// Makes the calling thread one of the data path, as far as it is permitted, and returns how it is
/// scheduled. Threads that it spawns afterwards inherit all of it.
pub fn enter_data_path(role: Role) -> Scheduling {
    lock_memory();
    own_writes_may_wait_for_us();
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let favoured = setpriority_process(None, NICE).is_ok();
    let priority = match role {
        Role::Pacer => PACER_PRIORITY,
        Role::Export => EXPORT_PRIORITY,
    };
    if set_fifo(priority) {
        if role == Role::Export {
            RECENT_REQUESTS.set(Some(RecentRequests::REAL_TIME));
        }
        Scheduling::RealTime
    } else if favoured {
        Scheduling::Nice
    } else {
        Scheduling::Ordinary
    }
}

/// Keeps memory pressure from making the calling thread wait for the very writes that need it: those
/// that it is to answer, or that wait for what it holds.
pub(crate) fn own_writes_may_wait_for_us() {
    // Refused without CAP_SYS_RESOURCE: what that means is looked at before a mount, in `reclaim`.
    let _ = configure_io_flusher_behavior(true);
}

/// A thread that gets requests faster than this has more to do than real-time scheduling is good for.
const BUSY_GAP: Nanos = Nanos::from_us(100);
/// So has one whose volume had been without a request for less than this, however long each takes: at 3 GB/s in requests of
/// 256 KiB, one comes to each of four threads every 330 us. A client that waits for each answer leaves the volume idle for longer:
/// reads at depth 1 took 41 us through a loop device, while this process works for about 12 us on one. Derived from these two
/// figures, and not measured itself.
const IDLE_GAP: Nanos = Nanos::from_us(20);
/// Requests in a row that change how a thread is scheduled.
const MAX_SCORE: u8 = 64;

/// What a real-time thread of an export has been doing lately.
#[derive(Debug, Clone, Copy)]
struct RecentRequests {
    /// Between 0 (ordinary scheduling) and [`MAX_SCORE`] (real-time).
    score: u8,
    last: Nanos,
    scheduling: Scheduling,
}

impl RecentRequests {
    /// Those of a thread that has just become real-time.
    const REAL_TIME: Self = Self { score: MAX_SCORE, last: Nanos::ZERO, scheduling: Scheduling::RealTime };

    /// Takes a request into account. Returns how the thread is to be scheduled from now on, where that changes: between the two
    /// ends of the score it stays as it is, since each change is a system call.
    fn note(&mut self, now: Nanos, passed: Passed) -> Option<Scheduling> {
        let busy = match passed {
            Passed::Held => false,
            Passed::AtOnce { idle } => now.since(self.last) < BUSY_GAP || idle < IDLE_GAP,
        };
        self.score = if busy { self.score.saturating_sub(1) } else { (self.score + 1).min(MAX_SCORE) };
        self.last = now;
        let before = self.scheduling;
        match self.score {
            0 => self.scheduling = Scheduling::Nice,
            MAX_SCORE => self.scheduling = Scheduling::RealTime,
            _ => {}
        }
        (self.scheduling != before).then_some(self.scheduling)
    }
}

/// Whether a request has to wait for its time.
#[derive(Debug, Clone, Copy)]
enum Passed {
    /// It waits.
    Held,
    /// It was answered by the thread that submitted it.
    AtOnce {
        /// How long the volume had answered no request in this way when it arrived; zero if it did so meanwhile.
        idle: Nanos,
    },
}

/// When a volume last answered a request on the thread that submitted it.
#[derive(Debug, Default)]
pub(crate) struct LastAnswer(AtomicU64);

thread_local! {
    /// None for threads that are not real-time exports.
    static RECENT_REQUESTS: Cell<Option<RecentRequests>> = const { Cell::new(None) };
}

impl LastAnswer {
    /// Records for the calling thread that a request, which `arrived` then, has been answered by it `now`. Only real-time threads
    /// of an export look at the clock for it.
    ///
    /// Real-time threads answer at once, whatever else keeps the cores busy, and never sit on a lock that
    /// a pacer waits for. But they preempt the kernel's worker after every single request that it hands
    /// over, which costs a saturated volume a third of its IOPS (measured: 92,000 instead of 131,000 reads
    /// a second). So a thread whose requests come fast and pass at once is ordinary until that ends.
    pub(crate) fn note_passed(&self, arrived: Nanos, now: impl FnOnce() -> Nanos) {
        let Some(recent) = RECENT_REQUESTS.get() else { return };
        // Another thread's answer while this request was worked on is later than its arrival: then the idle time is zero.
        let idle = arrived.since(Nanos(self.0.load(Ordering::Relaxed)));
        self.0.store(now().0, Ordering::Relaxed);
        note_submission(recent, arrived, Passed::AtOnce { idle });
    }
}

/// Records for the calling thread that a request, which `arrived` then, waits for its time.
pub(crate) fn note_held(arrived: Nanos) {
    if let Some(recent) = RECENT_REQUESTS.get() {
        note_submission(recent, arrived, Passed::Held);
    }
}

fn note_submission(mut recent: RecentRequests, arrived: Nanos, passed: Passed) {
    let change = recent.note(arrived, passed);
    RECENT_REQUESTS.set(Some(recent));
    match change {
        None => {}
        Some(Scheduling::RealTime) => _ = set_fifo(EXPORT_PRIORITY),
        Some(_) => _ = set_ordinary(),
    }
}

fn set_ordinary() -> bool {
    set_scheduler(libc::SCHED_OTHER, SchedParam { priority: 0 })
}

fn set_fifo(priority: i32) -> bool {
    set_scheduler(libc::SCHED_FIFO, SchedParam { priority })
}

/// The kernel's `sched_param`. The system calls are made without the C library: musl's functions for them do nothing
/// but fail, and its `sched_param` has further fields.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct SchedParam {
    priority: libc::c_int,
}

/// Sets the policy and priority of the calling thread.
fn set_scheduler(policy: libc::c_int, parameters: SchedParam) -> bool {
    // SAFETY: the kernel reads one sched_param, which outlives the call; thread 0 is the caller.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) == 0 }
}

/// The policy and priority of the calling thread.
fn scheduler() -> Option<(libc::c_int, SchedParam)> {
    let mut parameters = SchedParam { priority: 0 };
    // SAFETY: no memory is involved; thread 0 is the caller.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    // SAFETY: the kernel writes one sched_param, which outlives the call.
    let known = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut parameters) } == 0;
    known.then_some((libc::c_int::try_from(policy).ok()?, parameters)).filter(|(policy, _)| *policy >= 0)
}

/// Allocations from which on the C library asks the kernel for each, bytes. The threads of a FUSE
/// session have a buffer of 16 MiB each, of which they touch as much as the largest request has.
const LARGE_BYTES: libc::c_int = 4 << 20;

/// Has large buffers come from the kernel, which gives zeroes without touching them. Left to itself,
/// the C library goes on to keep what was freed: each further session then fills 64 MiB with zeroes
/// (10 ms), and they stay locked in memory.
#[cfg(target_env = "gnu")]
fn leave_large_buffers_untouched() {
    for (parameter, value) in [(libc::M_MMAP_THRESHOLD, LARGE_BYTES), (libc::M_TRIM_THRESHOLD, LARGE_BYTES)] {
        // SAFETY: mallopt(3) may be called at any time; it takes the allocator's own locks.
        let _ = unsafe { libc::mallopt(parameter, value) };
    }
}

#[cfg(not(target_env = "gnu"))]
fn leave_large_buffers_untouched() {
    let _ = LARGE_BYTES;
}

/// Keeps this process in memory, so that no answer waits for a page to be read back.
fn lock_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        leave_large_buffers_untouched();
        // With a limit in force, a lock on future memory would make later allocations fail.
        if rustix::process::geteuid().is_root() || getrlimit(Resource::Memlock).current.is_none() {
            let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
            if let Err(error) = rustix::mm::mlockall(flags) {
                tracing::debug!(%error, "memory is not locked");
            }
        }
    });
}

/// Raises the calling thread to the pacers' priority while it holds what they wait for.
#[derive(Debug)]
pub(crate) struct Boost {
    before: Option<(libc::c_int, SchedParam)>,
}

impl Boost {
    pub(crate) fn new() -> Self {
        own_writes_may_wait_for_us();
        let before = scheduler().filter(|_| set_fifo(PACER_PRIORITY));
        Self { before }
    }
}

impl Drop for Boost {
    fn drop(&mut self) {
        if let Some((policy, parameters)) = self.before {
            let _ = set_scheduler(policy, parameters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Nanos = Nanos::from_us(50);
    const LONG: Nanos = Nanos::from_us(200);
    /// A request that passed after the volume had been idle for long.
    const ALONE: Passed = Passed::AtOnce { idle: SHORT };

    /// How the thread is to be scheduled after each of `count` requests that are `gap` apart, where that changes.
    fn changes(
        recent: &mut RecentRequests,
        count: u32,
        gap: Nanos,
        passed: Passed,
    ) -> Vec<(u32, Scheduling)> {
        let noted = (1..=count).filter_map(|number| {
            let now = recent.last + gap;
            Some((number, recent.note(now, passed)?))
        });
        noted.collect()
    }

    #[test]
    fn a_thread_is_ordinary_after_64_requests_in_a_row_and_real_time_after_64_held_ones() {
        let mut recent = RecentRequests::REAL_TIME;
        assert_eq!(changes(&mut recent, 200, SHORT, ALONE), [(64, Scheduling::Nice)]);
        assert_eq!(changes(&mut recent, 200, SHORT, Passed::Held), [(64, Scheduling::RealTime)]);
    }

    #[test]
    fn a_thread_of_a_volume_that_is_never_idle_is_ordinary_however_long_its_requests_take() {
        let mut recent = RecentRequests::REAL_TIME;
        assert!(changes(&mut recent, 200, LONG, ALONE).is_empty(), "a client that waits for each answer");
        let saturated = Passed::AtOnce { idle: Nanos::from_us(3) };
        assert_eq!(changes(&mut recent, 200, LONG, saturated), [(64, Scheduling::Nice)]);
    }

    #[test]
    fn requests_with_short_and_long_gaps_in_turns_change_no_scheduling() {
        for fast in [0, 64] {
            let mut recent = RecentRequests::REAL_TIME;
            changes(&mut recent, fast, SHORT, ALONE);
            for _ in 0..100 {
                let long = changes(&mut recent, 1, LONG, ALONE);
                let short = changes(&mut recent, 1, SHORT, ALONE);
                assert!(long.is_empty() && short.is_empty(), "after {fast} fast requests");
            }
        }
    }

    #[test]
    fn the_idle_time_of_a_volume_is_that_since_the_last_answer_of_any_thread() {
        let answers = LastAnswer::default();
        let noted = |arrived, answered| {
            RECENT_REQUESTS.set(Some(RecentRequests::REAL_TIME));
            answers.note_passed(Nanos::from_us(arrived), || Nanos::from_us(answered));
            RECENT_REQUESTS.take().unwrap().score
        };
        assert_eq!(noted(1_000, 1_010), MAX_SCORE, "the first one");
        assert_eq!(noted(1_020, 1_030), MAX_SCORE - 1, "10 us after it");
        assert_eq!(noted(1_025, 1_040), MAX_SCORE - 1, "beside it");
        assert_eq!(noted(1_100, 1_110), MAX_SCORE, "60 us after it");
        answers.note_passed(Nanos::ZERO, || panic!("a thread that is no real-time export asks for no time"));
    }

    #[test]
    fn a_boost_raises_the_thread_and_lowers_it_again() {
        let policy = || scheduler().map(|(policy, parameters)| (policy, parameters.priority)).unwrap();
        let before = policy();
        let boost = Boost::new();
        if boost.before.is_none() {
            println!("SKIPPED: the right to real-time priorities is missing");
            return;
        }
        assert_eq!(policy(), (libc::SCHED_FIFO, PACER_PRIORITY));
        drop(boost);
        assert_eq!(policy(), before);
    }
}
