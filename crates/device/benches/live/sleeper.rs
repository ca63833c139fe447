//! Bare real-time sleepers: what the machine itself does to a thread that sleeps as the pacer does.
//!
//! A hypervisor that takes a processor away for milliseconds, or a kernel that holds it, makes every sleeper late,
//! the pacer too. One sleeper on each core sleeps in the same way (the same system call, to absolute times), with the
//! same pattern of times (a closed loop of the same depth on the same cap or service time) and in the same scheduling
//! class, but one priority above the pacer, so that nothing of ours delays it. It does nothing when it wakes.

use std::{
    collections::VecDeque,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread::{Builder, JoinHandle},
    time::Duration,
};

use hdrhistogram::Histogram;
use rustix::{
    thread::{CpuSet, futex, sched_getaffinity, sched_setaffinity},
    time::{ClockId, Timespec, clock_gettime},
};

/// At most so many of the pacer's answers, in percent, may be late beyond those that the machine makes late.
pub(crate) const LATE_PERCENT: f64 = 0.1;

/// The pacer's priority is 3 (`crates/device/src/sys.rs`).
const PRIORITY: i32 = 4;
/// Longest lateness that has a bucket of its own: a minute.
const LATEST_NS: u64 = 60_000_000_000;

/// When the next completion is due, in a closed loop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pattern {
    /// So long after the one before it, as under a cap of IOPS.
    Gap(Duration),
    /// So long after its submission, as with a constant service time.
    Service(Duration),
}

/// How many of how many were late by more than a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) late: u64,
    pub(crate) all: u64,
}

impl Late {
    /// In percent.
    pub(crate) fn percent(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.late as f64 / self.all as f64 * 100.0 }
    }
}

/// What the pacer adds to the machine's own lateness, in percent of the answers: its share of late answers less the
/// shares of late wakes of the bare sleepers, of all cores together. An answer is late when the core on which the pacer
/// sleeps stalls, and when another does on which a thread holds what the pacer needs. On a machine whose
/// sleepers are never late it is the pacer's share.
pub(crate) fn added_percent(pacer: Late, bare: &[Late]) -> f64 {
    pacer.percent() - bare.iter().map(|core| core.percent()).sum::<f64>()
}

/// The latest that the median answer may be, in nanoseconds, where the bare sleepers of the cores have these medians: 50 us,
/// and on a machine that wakes them later than after 25 us, twice the largest. Handing the answer to the kernel costs
/// about as much as waking does.
pub(crate) fn median_limit_ns(bare_ns: &[u64]) -> u64 {
    bare_ns.iter().map(|median| median * 2).fold(50_000, u64::max)
}

/// Sleepers at work, one on each core that this thread may run on.
pub(crate) struct Sleepers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Histogram<u64>>>,
}

impl Sleepers {
    /// Starts them with a pattern at a queue depth. They are ordinary threads where real-time is refused.
    pub(crate) fn start(pattern: Pattern, depth: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let may = sched_getaffinity(None).expect("the kernel reports a thread's cores");
        let cores = (0..CpuSet::MAX_CPU).filter(|&core| may.is_set(core));
        let threads = cores
            .map(|core| {
                let stop = Arc::clone(&stop);
                let sleeper = move || {
                    bind(core, PRIORITY);
                    sleep_until_stopped(pattern, depth, &stop)
                };
                Builder::new()
                    .name(format!("sleeper-{core}"))
                    .spawn(sleeper)
                    .expect("a thread can be started")
            })
            .collect();
        Self { stop, threads }
    }

    /// Ends them. How late each core's sleeper woke, in nanoseconds to 1%.
    pub(crate) fn finish(self) -> Vec<Histogram<u64>> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().expect("a sleeper does not panic")).collect()
    }
}

/// How many were later than a limit.
pub(crate) fn later_than(histogram: &Histogram<u64>, limit: Duration) -> Late {
    let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let late = histogram.iter_recorded().filter(|value| value.value_iterated_to() > limit);
    Late { late: late.map(|value| value.count_since_last_iteration()).sum(), all: histogram.len() }
}

/// Keeps the calling thread on a core, with `SCHED_FIFO` if that is allowed.
pub(crate) fn bind(core: usize, priority: i32) -> bool {
    let mut set = CpuSet::new();
    set.set(core);
    let bound = sched_setaffinity(None, &set).is_ok();
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads one sched_param, which outlives the call; thread 0 is the caller.
    let real_time = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 };
    bound && real_time
}

fn sleep_until_stopped(pattern: Pattern, depth: u32, stop: &AtomicBool) -> Histogram<u64> {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut late = Histogram::new_with_bounds(1, LATEST_NS, 2).expect("the bounds are constants in order");
    let word = AtomicU32::new(0);
    let ns = |time: Duration| u64::try_from(time.as_nanos()).expect("it is short");
    let mut due: VecDeque<u64> = VecDeque::new();
    let start = now();
    for place in 1..=u64::from(depth) {
        due.push_back(match pattern {
            Pattern::Gap(gap) => start + ns(gap) * place,
            Pattern::Service(time) => start + ns(time) * place / u64::from(depth),
        });
    }
    while !stop.load(Ordering::Relaxed) {
        let Some(at) = due.pop_front() else { break };
        while now() < at {
            let until = Timespec {
                tv_sec: i64::try_from(at / 1_000_000_000).expect("the clock is not that old"),
                tv_nsec: i64::try_from(at % 1_000_000_000).expect("less than a second"),
            };
            let _ = futex::wait_bitset(&word, futex::Flags::PRIVATE, 0, Some(&until), NonZeroU32::MAX);
        }
        let woke = now();
        late.saturating_record(woke - at);
        due.push_back(match pattern {
            Pattern::Gap(gap) => woke.max(due.back().copied().unwrap_or(at) + ns(gap)),
            Pattern::Service(time) => woke + ns(time),
        });
    }
    late
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).expect("the clock is not negative")
}
