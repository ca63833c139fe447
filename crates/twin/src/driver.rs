//! The discrete-event loop: submits, waits in virtual time, completes.

use ebbtide_volume::{Array, Instance, Io, Nanos, Op, Stats, format_size};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::balance::{BalanceChange, Balances};
use crate::job::{Job, Workload};
use crate::queue::EventQueue;
use crate::sample::{Done, Observer, Sampler, Totals};
use crate::thread::{Place, Step, Thread};

/// I/Os at one moment of virtual time after which a run is given up: no depth, pause or saved-up
/// allowance explains them, so the volume takes no time at all.
const STANDSTILL_IOS: u64 = 4 << 20;

/// Credit balances are looked at this often, whatever the interval, so that their end is known to
/// the second.
const BALANCE_TICK: Nanos = Nanos::SECOND;

/// What to run.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The volumes, created at [`Nanos::ZERO`]. Each gets the whole workload.
    pub volumes: Vec<Array>,
    /// The instance that all of them are attached to; none: nothing but the volumes limits.
    pub instance: Option<Instance>,
    /// The jobs.
    pub workload: &'a Workload,
    /// Decides every draw: addresses, sizes, service times.
    pub seed: u64,
    /// Length of the intervals that are reported; above zero.
    pub interval: Nanos,
}

/// What a run did.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Virtual time from the start to the end of the last job.
    pub duration: Nanos,
    /// Every volume, in the order of the setup.
    pub volumes: Vec<VolumeOutcome>,
}

/// What a run did on one volume.
#[derive(Debug, Clone)]
pub struct VolumeOutcome {
    /// Every job, in the order of the workload.
    pub jobs: Vec<Totals>,
    /// The volume's own counters at the end.
    pub stats: Stats,
    /// When burst credits ended and came back, in order.
    pub changes: Vec<BalanceChange>,
    /// Reads and writes that had not completed at the end; they are in no other figure.
    pub in_flight: u64,
}

impl VolumeOutcome {
    /// All jobs together.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut all = Totals::default();
        for job in &self.jobs {
            all.add(job);
        }
        all
    }
}

/// A workload that cannot run on a volume.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// A job's extent lies beyond the volume.
    #[error(
        "job '{job}': its extent {extent} does not fit the volume of {size}: give offset and size within it"
    )]
    BeyondVolume {
        /// The job's name.
        job: String,
        /// The extent.
        extent: String,
        /// The volume's size.
        size: String,
    },
    /// A job's extent is shorter than its blocks.
    #[error(
        "job '{job}': its extent of {extent} is shorter than its block of {block}: give a size of at least one block"
    )]
    ShorterThanBlock {
        /// The job's name.
        job: String,
        /// The extent's length.
        extent: String,
        /// The largest block.
        block: String,
    },
    /// The observer gave the run up.
    #[error("given up at {at}")]
    GivenUp {
        /// Where it was.
        at: String,
    },
    /// Virtual time stands still.
    #[error(
        "virtual time stands still at {at}: this volume answers at once and has no limits, so that a closed loop \
         on it never ends; give the job a pace with rate_iops or thinktime, or choose a volume with limits"
    )]
    Standstill {
        /// Where it stands.
        at: String,
    },
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Wake { thread: usize },
    Complete { thread: usize, submitted: Nanos, throttled: Nanos, op: Op, len: u32 },
}

/// Runs a workload on volumes in virtual time.
///
/// The run ends when every job has moved its amount, or at the latest runtime of the last phase;
/// what is in flight then is not counted, so that rates are exact over the runtime.
///
/// # Errors
/// See [`SimulateError`].
///
/// # Panics
/// Where the interval is zero.
pub fn simulate(setup: Setup<'_>, observer: &mut impl Observer) -> Result<Outcome, SimulateError> {
    assert!(setup.interval > Nanos::ZERO, "an interval has a length");
    let mut run = Run::new(setup)?;
    run.start_phase(0, Nanos::ZERO);
    run.drive(observer)?;
    run.finish(observer)
}

struct Run<'a> {
    workload: &'a Workload,
    volumes: Vec<Lane>,
    instance: Option<Instance>,
    threads: Vec<Thread>,
    events: EventQueue<Event>,
    interval: Nanos,
    next_interval: Nanos,
    next_tick: Nanos,
    phase: u32,
    /// Clones of this phase that are not finished.
    running: usize,
    /// When the run ends at the latest; none while something without a runtime goes on.
    deadline: Option<Nanos>,
    /// The latest end of a clone that its runtime ended.
    ends: Nanos,
    now: Nanos,
    issued_now: u64,
}

/// A volume with what belongs to it alone.
struct Lane {
    volume: Array,
    rng: Xoshiro256PlusPlus,
    sampler: Sampler,
    balances: Balances,
}

impl<'a> Run<'a> {
    fn new(setup: Setup<'a>) -> Result<Self, SimulateError> {
        let Setup { volumes, instance, workload, seed, interval } = setup;
        let mut threads = Vec::new();
        for (number, volume) in volumes.iter().enumerate() {
            for (job_number, job) in workload.jobs.iter().enumerate() {
                for clone in 0..job.clones {
                    let (base, length) = extent(job, clone, volume.size_bytes())?;
                    let place = Place { job: job_number, volume: number, clone };
                    threads.push(Thread::new(job, place, base, length, seed));
                }
            }
        }
        let lanes = volumes.into_iter().zip(0_u64..).map(|(mut volume, number)| Lane {
            rng: Xoshiro256PlusPlus::seed_from_u64(!seed ^ number),
            sampler: Sampler::new(workload.jobs.len(), &mut volume),
            balances: Balances::new(&volume, instance.as_ref()),
            volume,
        });
        Ok(Self {
            workload,
            volumes: lanes.collect(),
            instance,
            threads,
            events: EventQueue::new(),
            interval,
            next_interval: interval,
            next_tick: BALANCE_TICK,
            phase: 0,
            running: 0,
            deadline: None,
            ends: Nanos::ZERO,
            now: Nanos::ZERO,
            issued_now: 0,
        })
    }

    fn start_phase(&mut self, phase: u32, at: Nanos) {
        self.phase = phase;
        for (number, thread) in self.threads.iter_mut().enumerate() {
            let job = &self.workload.jobs[thread.place.job];
            if job.phase != phase {
                continue;
            }
            let start = at + job.start_delay;
            thread.start(start);
            thread.wakes = Some(start);
            self.events.push(start, Event::Wake { thread: number });
            self.running += 1;
        }
        self.set_deadline();
    }

    /// In the last phase nothing happens after the latest end of the clones that still run.
    fn set_deadline(&mut self) {
        let last = self.workload.jobs.iter().all(|job| job.phase <= self.phase);
        let running = self.threads.iter().filter(|thread| thread.running);
        let latest = running.map(|thread| thread.ends).max();
        self.deadline =
            latest.filter(|&latest| last && latest < Nanos(u64::MAX)).map(|latest| latest.max(self.now));
    }

    fn drive(&mut self, observer: &mut impl Observer) -> Result<(), SimulateError> {
        while self.running > 0 {
            let next = self.events.next_time().expect("a clone that runs has an event to come");
            if let Some(deadline) = self.deadline.filter(|&deadline| next > deadline) {
                return self.pass_time(deadline, observer);
            }
            self.pass_time(next, observer)?;
            if let Some((_, event)) = self.events.pop() {
                self.handle(event)?;
            }
        }
        let ends = self.ends.max(self.now);
        self.pass_time(ends, observer)
    }

    /// Moves the clock, ending the intervals that lie wholly before.
    fn pass_time(&mut self, to: Nanos, observer: &mut impl Observer) -> Result<(), SimulateError> {
        if to == self.now {
            return Ok(());
        }
        while self.next_tick.min(self.next_interval) < to {
            let at = self.next_tick.min(self.next_interval);
            if at == self.next_tick {
                self.look_at_balances(at);
                self.next_tick += BALANCE_TICK;
            }
            if at == self.next_interval {
                self.end_intervals(at, observer)?;
                self.next_interval += self.interval;
            }
        }
        self.now = to;
        self.issued_now = 0;
        Ok(())
    }

    fn look_at_balances(&mut self, at: Nanos) {
        for lane in &mut self.volumes {
            lane.balances.look(&lane.volume, self.instance.as_ref(), at);
        }
    }

    fn end_intervals(&mut self, at: Nanos, observer: &mut impl Observer) -> Result<(), SimulateError> {
        for (number, lane) in self.volumes.iter_mut().enumerate() {
            let (volume, instance) = (&mut lane.volume, self.instance.as_ref());
            let ended = lane.balances.any_ended();
            if lane.sampler.end_interval(number, volume, instance, ended, at, observer).is_break() {
                return Err(SimulateError::GivenUp { at: at.to_string() });
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), SimulateError> {
        match event {
            Event::Wake { thread } => {
                self.threads[thread].wakes = None;
                self.pump(thread)
            }
            Event::Complete { thread, submitted, throttled, op, len } => {
                let latency = self.now.since(submitted);
                let done = Done { op, len, latency, throttled };
                let place = self.threads[thread].place;
                self.volumes[place.volume].sampler.completed(place.job, &done, self.now);
                self.threads[thread].completed(op);
                self.pump(thread)
            }
        }
    }

    /// Lets a clone issue all that it may at this moment.
    fn pump(&mut self, number: usize) -> Result<(), SimulateError> {
        loop {
            let thread = &mut self.threads[number];
            match thread.step(self.now) {
                Step::Issue(io) => self.submit(number, io)?,
                Step::Wait(until) => {
                    if thread.wakes.is_none() {
                        thread.wakes = Some(until);
                        self.events.push(until, Event::Wake { thread: number });
                    }
                    return Ok(());
                }
                Step::Blocked => return Ok(()),
                Step::Ended => {
                    if thread.in_flight() == 0 && thread.wakes.is_none() {
                        self.ended(number);
                    }
                    return Ok(());
                }
            }
        }
    }

    fn submit(&mut self, thread: usize, io: Io) -> Result<(), SimulateError> {
        self.issued_now += 1;
        if self.issued_now > STANDSTILL_IOS {
            return Err(SimulateError::Standstill { at: self.now.to_string() });
        }
        let lane = &mut self.volumes[self.threads[thread].place.volume];
        let grant = lane.volume.submit(io, self.now, &mut lane.rng, self.instance.as_mut());
        if io.op != Op::Flush {
            lane.sampler.submitted(self.now);
        }
        let throttled = grant.completes.since(grant.unthrottled);
        let event = Event::Complete { thread, submitted: self.now, throttled, op: io.op, len: io.len };
        self.events.push(grant.completes, event);
        Ok(())
    }

    fn ended(&mut self, number: usize) {
        let thread = &mut self.threads[number];
        thread.running = false;
        if thread.ended_by_time {
            self.ends = self.ends.max(thread.ends);
        }
        self.running -= 1;
        if self.running > 0 {
            self.set_deadline();
            return;
        }
        let later = self.workload.jobs.iter().map(|job| job.phase).filter(|&phase| phase > self.phase);
        if let Some(next) = later.min() {
            self.start_phase(next, self.ends.max(self.now));
        }
    }

    fn finish(mut self, observer: &mut impl Observer) -> Result<Outcome, SimulateError> {
        let end = self.now;
        self.look_at_balances(end);
        self.end_intervals(end, observer)?;
        let volumes = self.volumes.into_iter().map(|mut lane| {
            let stats = lane.volume.stats(end);
            VolumeOutcome {
                in_flight: lane.sampler.queue(),
                jobs: lane.sampler.into_totals(),
                changes: lane.balances.into_changes(),
                stats,
            }
        });
        Ok(Outcome { duration: end, volumes: volumes.collect() })
    }
}

/// Start and length in bytes of a clone's extent on a volume.
fn extent(job: &Job, clone: u32, volume_bytes: u64) -> Result<(u64, u64), SimulateError> {
    let step = job.offset_increment.bytes_of(volume_bytes).saturating_mul(u64::from(clone));
    let base = job.offset.bytes_of(volume_bytes).saturating_add(step);
    let rest = volume_bytes.saturating_sub(base);
    let length = job.size.map_or(rest, |size| size.bytes_of(volume_bytes));
    if length > rest || rest == 0 {
        return Err(SimulateError::BeyondVolume {
            job: job.name.clone(),
            extent: format!("from {} for {}", format_size(base), format_size(length)),
            size: format_size(volume_bytes),
        });
    }
    let sides = [Op::Read, Op::Write].into_iter().zip(&job.block_sizes);
    let block = sides.filter(|(op, _)| job.does(*op)).map(|(_, sizes)| sizes.largest()).max().unwrap_or(0);
    if length < u64::from(block) {
        return Err(SimulateError::ShorterThanBlock {
            job: job.name.clone(),
            extent: format_size(length),
            block: format_size(u64::from(block)),
        });
    }
    Ok((base, length))
}
