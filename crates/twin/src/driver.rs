//! The discrete-event loop: submits, waits in virtual time, completes.

use ebbtide_volume::{Array, Instance, Io, Nanos, Op, format_size};

use crate::job::{Job, Workload};
use crate::lanes::Lanes;
use crate::outcome::{Outcome, SimulateError};
use crate::queue::EventQueue;
use crate::sample::{Done, Observer};
use crate::thread::{CloneId, Step, Thread};

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
pub fn simulate(setup: Setup<'_>, observer: &mut dyn Observer) -> Result<Outcome, SimulateError> {
    let mut run = DriverRun::new(setup)?;
    run.start_phase(0, Nanos::ZERO);
    run.drive(observer)?;
    run.lanes.finish(observer)
}

struct DriverRun<'a> {
    workload: &'a Workload,
    lanes: Lanes,
    threads: Vec<Thread>,
    events: EventQueue<Event>,
    phase: u32,
    /// Clones of this phase that are not finished.
    running: usize,
    /// When the run ends at the latest; none while something without a runtime goes on.
    deadline: Option<Nanos>,
    /// The latest end of a clone that its runtime ended.
    ends: Nanos,
}

impl<'a> DriverRun<'a> {
    fn new(setup: Setup<'a>) -> Result<Self, SimulateError> {
        let Setup { volumes, instance, workload, seed, interval } = setup;
        let mut threads = Vec::new();
        for (number, volume) in volumes.iter().enumerate() {
            for (job_number, job) in workload.jobs.iter().enumerate() {
                for clone in 0..job.clones {
                    let (base, length) = extent(job, clone, volume.size_bytes())?;
                    let id = CloneId { job: job_number, volume: number, clone };
                    threads.push(Thread::new(job, id, base, length, seed));
                }
            }
        }
        Ok(Self {
            lanes: Lanes::new(volumes, instance, workload.jobs.len(), seed, interval),
            workload,
            threads,
            events: EventQueue::new(),
            phase: 0,
            running: 0,
            deadline: None,
            ends: Nanos::ZERO,
        })
    }

    fn start_phase(&mut self, phase: u32, at: Nanos) {
        self.phase = phase;
        for (number, thread) in self.threads.iter_mut().enumerate() {
            let job = &self.workload.jobs[thread.id.job];
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
        self.deadline = latest
            .filter(|&latest| last && latest < Nanos(u64::MAX))
            .map(|latest| latest.max(self.lanes.now()));
    }

    fn drive(&mut self, observer: &mut dyn Observer) -> Result<(), SimulateError> {
        while self.running > 0 {
            let next = self.events.next_time().expect("a clone that runs has an event to come");
            if let Some(deadline) = self.deadline.filter(|&deadline| next > deadline) {
                return self.lanes.pass_time(deadline, observer);
            }
            self.lanes.pass_time(next, observer)?;
            if let Some((_, event)) = self.events.pop() {
                self.handle(event)?;
            }
        }
        let ends = self.ends.max(self.lanes.now());
        self.lanes.pass_time(ends, observer)
    }

    fn handle(&mut self, event: Event) -> Result<(), SimulateError> {
        match event {
            Event::Wake { thread } => {
                self.threads[thread].wakes = None;
                self.pump(thread)
            }
            Event::Complete { thread, submitted, throttled, op, len } => {
                let latency = self.lanes.now().since(submitted);
                let done = Done { op, len, latency, throttled };
                let id = self.threads[thread].id;
                self.lanes.completed(id.volume, id.job, &done);
                self.threads[thread].completed(op);
                self.pump(thread)
            }
        }
    }

    /// Lets a clone issue all that it may at this moment.
    fn pump(&mut self, number: usize) -> Result<(), SimulateError> {
        loop {
            let thread = &mut self.threads[number];
            match thread.step(self.lanes.now()) {
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
        let volume = self.threads[thread].id.volume;
        let grant = self.lanes.submit(volume, io)?;
        let throttled = grant.completes.since(grant.unthrottled);
        let event =
            Event::Complete { thread, submitted: self.lanes.now(), throttled, op: io.op, len: io.len };
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
            self.start_phase(next, self.ends.max(self.lanes.now()));
        }
    }
}

/// Start and length in bytes of a clone's extent on a volume.
fn extent(job: &Job, clone: u32, volume_bytes: u64) -> Result<(u64, u64), SimulateError> {
    let step = job.offset_increment.bytes_of(volume_bytes).saturating_mul(u64::from(clone));
    let base = job.offset.bytes_of(volume_bytes).saturating_add(step);
    let rest = volume_bytes.saturating_sub(base);
    let length = job.length(base, volume_bytes);
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
