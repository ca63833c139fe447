//! The volumes of a run with what is measured of each, and the clock of virtual time.

use ebbtide_volume::{Array, Grant, Instance, Io, Nanos, Op};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::balance::Balances;
use crate::outcome::{Outcome, SimulateError, VolumeOutcome};
use crate::sample::{Done, IntervalSampler, Observer};

/// I/Os at one moment of virtual time after which a run is given up: no depth, pause or saved-up
/// allowance explains them, so the volume takes no time at all.
const STANDSTILL_IOS: u64 = 4 << 20;

/// Credit balances are looked at this often, whatever the interval, so that their end is known to
/// the second.
const BALANCE_TICK: Nanos = Nanos::SECOND;

/// The volumes, their instance and the clock.
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    instance: Option<Instance>,
    interval: Nanos,
    next_interval: Nanos,
    next_tick: Nanos,
    now: Nanos,
    issued_now: u64,
}

/// A volume with what belongs to it alone.
struct Lane {
    volume: Array,
    rng: Xoshiro256PlusPlus,
    sampler: IntervalSampler,
    balances: Balances,
}

impl Lanes {
    /// The volumes at the start of virtual time.
    ///
    /// # Panics
    /// Where the interval is zero.
    pub(crate) fn new(
        volumes: Vec<Array>,
        instance: Option<Instance>,
        jobs: usize,
        seed: u64,
        interval: Nanos,
    ) -> Self {
        assert!(interval > Nanos::ZERO, "an interval has a length");
        let lanes = volumes.into_iter().zip(0_u64..).map(|(mut volume, number)| Lane {
            rng: Xoshiro256PlusPlus::seed_from_u64(!seed ^ number),
            sampler: IntervalSampler::new(jobs, &mut volume),
            balances: Balances::new(&volume, instance.as_ref()),
            volume,
        });
        Self {
            lanes: lanes.collect(),
            instance,
            interval,
            next_interval: interval,
            next_tick: BALANCE_TICK,
            now: Nanos::ZERO,
            issued_now: 0,
        }
    }

    /// The present.
    pub(crate) const fn now(&self) -> Nanos {
        self.now
    }

    /// How many volumes there are.
    pub(crate) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// Submits an I/O to a volume at the present.
    pub(crate) fn submit(&mut self, volume: usize, io: Io) -> Result<Grant, SimulateError> {
        self.issued_now += 1;
        if self.issued_now > STANDSTILL_IOS {
            return Err(SimulateError::Standstill { at: self.now.to_string() });
        }
        let lane = &mut self.lanes[volume];
        let grant = lane.volume.submit(io, self.now, &mut lane.rng, self.instance.as_mut());
        if io.op != Op::Flush {
            lane.sampler.submitted(self.now);
        }
        Ok(grant)
    }

    /// An I/O of a job has completed at the present.
    pub(crate) fn completed(&mut self, volume: usize, job: usize, done: &Done) {
        self.lanes[volume].sampler.completed(job, done, self.now);
    }

    /// Moves the clock, ending the intervals that are wholly before.
    pub(crate) fn pass_time(&mut self, to: Nanos, observer: &mut dyn Observer) -> Result<(), SimulateError> {
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
        for lane in &mut self.lanes {
            lane.balances.look(&lane.volume, self.instance.as_ref(), at);
        }
    }

    fn end_intervals(&mut self, at: Nanos, observer: &mut dyn Observer) -> Result<(), SimulateError> {
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            let (volume, instance) = (&mut lane.volume, self.instance.as_ref());
            let ended = lane.balances.any_ended();
            if lane.sampler.end_interval(number, volume, instance, ended, at, observer).is_break() {
                return Err(SimulateError::GivenUp { at: at.to_string() });
            }
        }
        Ok(())
    }

    /// Ends the run at the present.
    pub(crate) fn finish(mut self, observer: &mut dyn Observer) -> Result<Outcome, SimulateError> {
        let end = self.now;
        self.look_at_balances(end);
        self.end_intervals(end, observer)?;
        let volumes = self.lanes.into_iter().map(|mut lane| {
            let stats = lane.volume.stats(end);
            VolumeOutcome {
                in_flight: lane.sampler.queue(),
                loading: lane.volume.load_progress(end),
                jobs: lane.sampler.into_totals(),
                changes: lane.balances.into_changes(),
                stats,
            }
        });
        Ok(Outcome { duration: end, volumes: volumes.collect() })
    }
}
