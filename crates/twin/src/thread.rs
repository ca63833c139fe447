//! One clone of a job: when it issues its next I/O, and what that is.

use ebbtide_volume::{Io, Nanos, Op};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::address::{Addresses, fraction};
use crate::job::{Job, Rate};

/// Where a clone of a job runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CloneId {
    /// The job's number in the workload.
    pub(crate) job: usize,
    /// The volume's number in the run.
    pub(crate) volume: usize,
    /// The clone's number in the job.
    pub(crate) clone: u32,
}

/// What a clone does at this moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// Submits this.
    Issue(Io),
    /// Nothing before that time, unless an I/O completes.
    Wait(Nanos),
    /// Nothing until an I/O completes.
    Blocked,
    /// Nothing any more: it has issued all that it will.
    Ended,
}

/// The state of one clone.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) id: CloneId,
    addresses: Addresses,
    rng: Xoshiro256PlusPlus,
    depth: u32,
    in_flight: u32,
    /// Bytes and I/Os that may still be issued.
    bytes_left: u64,
    ios_left: u64,
    runtime: Option<Nanos>,
    started: Nanos,
    /// Whether its phase has begun and it has not ended.
    pub(crate) running: bool,
    /// When it stops issuing; `Nanos(u64::MAX)` without a runtime.
    pub(crate) ends: Nanos,
    /// Whether its runtime, not its amount, ended it.
    pub(crate) ended_by_time: bool,
    think: Option<Think>,
    resumes: Nanos,
    flush: Option<Flush>,
    pace: Option<[Option<Pace>; 2]>,
    poisson: bool,
    /// The time that it asked to be woken at.
    pub(crate) wakes: Option<Nanos>,
}

#[derive(Debug)]
struct Think {
    time: Nanos,
    every: u32,
    issued: u32,
}

#[derive(Debug)]
struct Flush {
    every: u32,
    writes: u32,
    in_flight: bool,
}

/// The schedule of one direction of an open loop.
#[derive(Debug)]
struct Pace {
    rate: Rate,
    /// I/Os or bytes so far.
    issued: u64,
    next: Nanos,
}

impl Pace {
    /// Moves to the arrival after one of `len` bytes. Even arrivals are computed from the start,
    /// so that no rounding adds up.
    fn arrived(&mut self, len: u32, started: Nanos, random: Option<f64>) {
        let (units, rate) = match self.rate {
            Rate::Iops(rate) => (1, rate),
            Rate::Bytes(rate) => (u64::from(len), rate),
        };
        self.issued += units;
        self.next = match random {
            None => {
                let span = u128::from(self.issued) * 1_000_000_000 / u128::from(rate);
                started + Nanos(u64::try_from(span).unwrap_or(u64::MAX))
            }
            Some(fraction) => {
                let mean = units as f64 * 1e9 / rate as f64;
                self.next + nanos(-(1.0 - fraction).ln() * mean)
            }
        };
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive span, saturating")]
fn nanos(span: f64) -> Nanos {
    Nanos(span as u64)
}

impl Thread {
    /// A clone on an extent of the volume that it can use.
    pub(crate) fn new(job: &Job, id: CloneId, base: u64, length: u64, seed: u64) -> Self {
        // The volume is not part of it: every volume of a comparison sees the same requests.
        let lane = (u64::try_from(id.job).expect("a job's number is small") << 32) | u64::from(id.clone);
        let rng = Xoshiro256PlusPlus::seed_from_u64(ebbtide_text::seed::stream(seed, lane));
        let amount = job.amount.unwrap_or(length.saturating_mul(job.loops));
        let does = |side: usize| job.does([Op::Read, Op::Write][side]);
        let paced = [0, 1].into_iter().any(|side| does(side) && job.rate[side].is_some());
        Self {
            id,
            addresses: Addresses::new(job, base, length),
            rng,
            depth: job.depth,
            in_flight: 0,
            bytes_left: if job.time_based { u64::MAX } else { amount },
            ios_left: job.max_ios.unwrap_or(u64::MAX),
            runtime: job.runtime,
            started: Nanos::ZERO,
            running: false,
            ends: Nanos(u64::MAX),
            ended_by_time: false,
            think: (job.think_time > Nanos::ZERO).then_some(Think {
                time: job.think_time,
                every: job.think_blocks,
                issued: 0,
            }),
            resumes: Nanos::ZERO,
            flush: (job.flush_every > 0).then_some(Flush {
                every: job.flush_every,
                writes: 0,
                in_flight: false,
            }),
            pace: paced.then(|| {
                [0, 1].map(|side: usize| {
                    job.rate[side].filter(|_| does(side)).map(|rate| Pace {
                        rate,
                        issued: 0,
                        next: Nanos::ZERO,
                    })
                })
            }),
            poisson: job.poisson,
            wakes: None,
        }
    }

    /// Sets the start; it ends a runtime later.
    pub(crate) fn start(&mut self, at: Nanos) {
        self.started = at;
        self.running = true;
        self.ends = self.runtime.map_or(Nanos(u64::MAX), |runtime| at + runtime);
        for pace in self.pace.iter_mut().flatten().flatten() {
            pace.next = at;
        }
    }

    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// An I/O of it has completed.
    pub(crate) fn completed(&mut self, op: Op) {
        self.in_flight -= 1;
        if let (Op::Flush, Some(flush)) = (op, &mut self.flush) {
            flush.in_flight = false;
        }
    }

    /// What to do at `now`.
    pub(crate) fn step(&mut self, now: Nanos) -> Step {
        if now >= self.ends {
            self.ended_by_time = true;
            return Step::Ended;
        }
        if self.bytes_left == 0 || self.ios_left == 0 {
            return Step::Ended;
        }
        if let Some(step) = self.flush_or_wait() {
            return step;
        }
        if self.in_flight >= self.depth {
            return Step::Blocked;
        }
        if let Some(step) = self.thinks(now) {
            return step;
        }
        let op = match self.next_arrival() {
            None => self.addresses.operation(&mut self.rng),
            Some((at, _)) if at >= self.ends => {
                self.ended_by_time = true;
                return Step::Ended;
            }
            Some((at, _)) if at > now => return Step::Wait(at),
            Some((_, op)) => op,
        };
        self.issue(op)
    }

    fn issue(&mut self, op: Op) -> Step {
        let (offset, len) = self.addresses.place(op, &mut self.rng);
        self.in_flight += 1;
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(len));
        self.ios_left -= 1;
        if let Some(think) = &mut self.think {
            think.issued += 1;
        }
        if let (Op::Write, Some(flush)) = (op, &mut self.flush) {
            flush.writes += 1;
        }
        if let Some(pace) = &mut self.pace {
            let random = self.poisson.then(|| fraction(&mut self.rng));
            let side = usize::from(op == Op::Write);
            pace[side].as_mut().expect("an arrival has a pace").arrived(len, self.started, random);
        }
        Step::Issue(Io { op, offset, len })
    }

    /// A flush when it is due. It takes a place of the depth, as fio's does, so that at depth 1 it
    /// follows its write; while it runs the clone submits nothing else.
    fn flush_or_wait(&mut self) -> Option<Step> {
        let flush = self.flush.as_mut()?;
        if flush.in_flight {
            return Some(Step::Blocked);
        }
        if flush.writes < flush.every {
            return None;
        }
        if self.in_flight >= self.depth {
            return Some(Step::Blocked);
        }
        flush.writes = 0;
        flush.in_flight = true;
        self.in_flight += 1;
        Some(Step::Issue(Io { op: Op::Flush, offset: 0, len: 0 }))
    }

    /// A pause begins when everything that was issued before it has completed.
    fn thinks(&mut self, now: Nanos) -> Option<Step> {
        let think = self.think.as_mut()?;
        if think.issued >= think.every {
            if self.in_flight > 0 {
                return Some(Step::Blocked);
            }
            think.issued = 0;
            self.resumes = now + think.time;
        }
        (now < self.resumes).then_some(Step::Wait(self.resumes))
    }

    /// The next arrival of a paced job and its operation; none in a closed loop.
    fn next_arrival(&self) -> Option<(Nanos, Op)> {
        let [read, write] = self.pace.as_ref()?;
        let at = |pace: &Option<Pace>| pace.as_ref().map(|pace| pace.next);
        match (at(read), at(write)) {
            (Some(read), Some(write)) if write < read => Some((write, Op::Write)),
            (Some(read), _) => Some((read, Op::Read)),
            (None, Some(write)) => Some((write, Op::Write)),
            (None, None) => None,
        }
    }
}
