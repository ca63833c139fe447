//! The volume itself: one state machine for live, virtual and shadow use.

use alloc::boxed::Box;

use rand_core::Rng;

use crate::{
    BurstBucket, CreditUnit, Credits, Grant, Instance, Io, Limits, LimitsError, LoadProgress, LoadState,
    Loader, Modification, ModificationPhase, Nanos, Op, RateLimit, Stats,
    account::{Accountant, Charge, Slots},
    in_flight::{InFlight, InFlightQueue},
    loading::Loading,
    stations::Stations,
};

/// A union of spans of waiting, fed in the order of their ends.
#[derive(Debug, Clone, Copy, Default)]
struct OverLimit {
    total: Nanos,
    until: Nanos,
}

impl OverLimit {
    #[inline]
    fn add(&mut self, from: Nanos, to: Nanos) {
        self.total += to.since(from.max(self.until));
        self.until = self.until.max(to);
    }

    /// The part of the total that is before `now`. Exact where the waiting is one span at `now`,
    /// which it is while the limit is exceeded.
    fn at(&self, now: Nanos) -> Nanos {
        Nanos(self.total.0.saturating_sub(self.until.since(now).0))
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct OverLimits {
    volume_iops: OverLimit,
    volume_throughput: OverLimit,
    instance_iops: OverLimit,
    instance_throughput: OverLimit,
}

/// A block volume: its limits, its credits, its queue and its counters.
///
/// Time given to it must not run backwards; an earlier `now` counts as the latest one seen.
#[derive(Debug, Clone)]
pub struct Volume {
    limits: Limits,
    iops: Option<BurstBucket>,
    throughput: Option<BurstBucket>,
    accountant: Accountant,
    stations: Stations,
    in_flight: InFlightQueue,
    /// Reads and writes in flight.
    queue: u64,
    /// Sum of the times that they were submitted at, modulo 2^64: only differences are taken.
    queue_submitted_sum: u64,
    idle_since: Nanos,
    now: Nanos,
    over: OverLimits,
    stats: Stats,
    modification: Option<Box<Modification>>,
    applied_phase: Option<ModificationPhase>,
    /// None where everything is there from the beginning.
    loading: Option<Box<Loading>>,
}

impl Volume {
    /// A fresh volume with full credits whose life begins at `now`.
    ///
    /// # Errors
    /// Where the limits contradict themselves.
    pub fn new(limits: Limits, now: Nanos) -> Result<Self, LimitsError> {
        limits.check()?;
        Ok(Self {
            iops: limits.iops.map(BurstBucket::new),
            throughput: limits.throughput.map(BurstBucket::new),
            accountant: Accountant::new(limits.accounting),
            stations: Stations::new(&limits.service),
            limits,
            in_flight: InFlightQueue::default(),
            queue: 0,
            queue_submitted_sum: 0,
            idle_since: now,
            now,
            over: OverLimits::default(),
            stats: Stats { at: now, ..Stats::default() },
            modification: None,
            applied_phase: None,
            loading: None,
        })
    }

    /// The limits in force.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Submits an I/O at `now`, on `instance` where the volume is attached to one.
    ///
    /// A read or write completes when it has been served and every limit covers it, whichever is
    /// last: a throttled volume releases answers at its rate and hides its service times behind
    /// the queue. A flush waits for no limit; a discard costs nothing. What has to be loaded for a
    /// read or write is waited for before it is served.
    pub fn submit(
        &mut self,
        io: Io,
        now: Nanos,
        rng: &mut impl Rng,
        instance: Option<&mut Instance>,
    ) -> Grant {
        self.advance(now);
        let now = self.now;
        let there = self.loading.as_mut().map_or(now, |loading| loading.touch(io, now, rng));
        let grant = match io.op {
            Op::Read | Op::Write => self.submit_data(io, there, rng, instance),
            Op::Flush => {
                let service = &self.limits.service;
                free(self.stations.flush(service.flush.draw(rng), service.flush_alone, now))
            }
            Op::Discard => free(now),
        };
        self.in_flight.insert(InFlight {
            completes: grant.completes,
            submitted: now,
            op: io.op,
            len: io.len,
        });
        grant
    }

    /// A read or write whose blocks are `there` from some time on.
    #[inline]
    fn submit_data(
        &mut self,
        io: Io,
        there: Nanos,
        rng: &mut impl Rng,
        instance: Option<&mut Instance>,
    ) -> Grant {
        let now = self.now;
        let charge = self.accountant.charge(io, now);
        let served = self.stations.serve(io, charge.sequential, &self.limits.service, now, rng);
        let unthrottled = served + there.since(now);
        let slots = self.take(charge, now, instance);
        let covered = slots.latest();
        let completes = unthrottled.max(covered);
        if covered > unthrottled {
            self.wait(slots, unthrottled);
        }
        self.accountant.granted(charge, slots, covered, completes);
        self.stats.consumed_ops += charge.operations;
        if self.queue == 0 {
            self.stats.idle_time += now.since(self.idle_since);
        }
        self.queue += 1;
        self.queue_submitted_sum = self.queue_submitted_sum.wrapping_add(now.0);
        Grant { completes, unthrottled, operations: charge.operations, bytes: charge.bytes }
    }

    /// Takes what an I/O costs from every limit. An I/O that begins no unit is covered with the unit that it belongs to,
    /// by each limit that it costs nothing.
    #[inline]
    fn take(&mut self, charge: Charge, now: Nanos, instance: Option<&mut Instance>) -> Slots {
        let unit = self.accountant.unit();
        let slot = |bucket: &mut BurstBucket, cost: u64, of_unit: Nanos| {
            if charge.begins_unit || cost > 0 { bucket.take(cost, now) } else { of_unit }
        };
        let mut slots = Slots::default();
        if let Some(iops) = &mut self.iops {
            slots.volume_iops = slot(iops, charge.operations, unit.volume_iops);
        }
        if let Some(throughput) = &mut self.throughput {
            slots.volume_throughput = slot(throughput, charge.bytes, unit.volume_throughput);
        }
        if let Some(instance) = instance {
            let (iops, throughput) = instance.buckets();
            slots.instance_iops = slot(iops, charge.operations, unit.instance_iops);
            slots.instance_throughput = slot(throughput, charge.bytes, unit.instance_throughput);
        }
        slots
    }

    /// Counts how long an I/O that was served waits for each limit.
    #[inline]
    fn wait(&mut self, slots: Slots, served: Nanos) {
        let wait = |slot: Nanos, over: &mut OverLimit| {
            if slot > served {
                over.add(served, slot);
            }
        };
        wait(slots.volume_iops, &mut self.over.volume_iops);
        wait(slots.volume_throughput, &mut self.over.volume_throughput);
        wait(slots.instance_iops, &mut self.over.instance_iops);
        wait(slots.instance_throughput, &mut self.over.instance_throughput);
    }

    /// Counts everything that has completed by `now`.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        while let Some(done) = self.in_flight.pop_completed(now) {
            let latency = done.completes.since(done.submitted);
            self.stats.completed(done.op, done.len, latency, self.limits.accounting.unit_bytes);
            if matches!(done.op, Op::Read | Op::Write) {
                self.queue -= 1;
                self.queue_submitted_sum = self.queue_submitted_sum.wrapping_sub(done.submitted.0);
                self.idle_since = done.completes;
            }
        }
        self.now = self.now.max(now);
        if self.modification.is_some() {
            self.apply_modification();
        }
    }

    /// The next completion, where anything is in flight.
    #[must_use]
    pub fn next_completion(&self) -> Option<Nanos> {
        self.in_flight.next_completion()
    }

    /// The counters at `now`.
    pub fn stats(&mut self, now: Nanos) -> Stats {
        self.advance(now);
        let now = self.now;
        let waiting = now.0.wrapping_mul(self.queue).wrapping_sub(self.queue_submitted_sum);
        let done = self.stats.read.time + self.stats.write.time;
        Stats {
            at: now,
            queue: self.queue,
            queue_time: done + Nanos(waiting),
            idle_time: self.stats.idle_time
                + if self.queue == 0 { now.since(self.idle_since) } else { Nanos::ZERO },
            volume_iops_exceeded: self.over.volume_iops.at(now),
            volume_throughput_exceeded: self.over.volume_throughput.at(now),
            instance_iops_exceeded: self.over.instance_iops.at(now),
            instance_throughput_exceeded: self.over.instance_throughput.at(now),
            credit_share: self.credit_share(now),
            iops_rate: self.limits.iops.map(|limit| limit.rate),
            ..self.stats
        }
    }

    /// Share of the burst credits left, 0 to 1: gp2's I/O credits, st1's and sc1's throughput
    /// credits; none for types without credits.
    #[must_use]
    pub fn credit_share(&self, now: Nanos) -> Option<f64> {
        self.credit_bucket().and_then(|bucket| bucket.credit_share(now))
    }

    /// The same as an amount.
    #[must_use]
    pub fn credits(&self, now: Nanos) -> Option<Credits> {
        let bucket = self.credit_bucket()?;
        let (share, limit) = (bucket.credit_share(now)?, bucket.limit());
        let is_of_operations = self.iops.as_ref().is_some_and(|iops| iops.limit().credits > 0);
        Some(Credits {
            unit: if is_of_operations { CreditUnit::Operations } else { CreditUnit::Bytes },
            left: share * limit.credits as f64,
            capacity: limit.credits,
            refill_rate: limit.rate,
        })
    }

    /// Sets the burst credits to a share (0 to 1) of their capacity. No effect without credits.
    pub fn set_credit_share(&mut self, share: f64, now: Nanos) {
        for bucket in self.iops.iter_mut().chain(&mut self.throughput) {
            bucket.set_credit_share(share, now);
        }
    }

    fn credit_bucket(&self) -> Option<&BurstBucket> {
        [&self.iops, &self.throughput].into_iter().flatten().find(|bucket| bucket.limit().credits > 0)
    }

    /// Begins a modification at its `started` time. The rules for when one is allowed are the
    /// control plane's.
    pub fn modify(&mut self, modification: Modification) {
        self.advance(modification.started);
        self.modification = Some(Box::new(modification));
        self.applied_phase = None;
        self.apply_modification();
    }

    /// The latest modification and its phase at `now`.
    #[must_use]
    pub fn modification(&self, now: Nanos) -> Option<(&Modification, ModificationPhase)> {
        self.modification.as_deref().map(|modification| (modification, modification.phase(now)))
    }

    /// Has everything that a state calls missing loaded from now on, before it can be used.
    pub fn begin_loading(&mut self, loader: Loader, state: LoadState) {
        self.loading = Some(Box::new(Loading::new(loader, state)));
    }

    /// What is to be kept of the loading; none where there is none.
    #[must_use]
    pub fn load_state(&self, now: Nanos) -> Option<LoadState> {
        self.loading.as_ref().map(|loading| loading.state(now))
    }

    /// How far the loading is; none where there is none.
    #[must_use]
    pub fn load_progress(&self, now: Nanos) -> Option<LoadProgress> {
        self.loading.as_ref().map(|loading| loading.progress(now))
    }

    fn apply_modification(&mut self) {
        let Some(modification) = &self.modification else { return };
        let phase = modification.phase(self.now);
        if self.applied_phase == Some(phase) {
            return;
        }
        let limits = modification.limits(phase);
        self.applied_phase = Some(phase);
        self.set_limits(limits);
    }

    fn set_limits(&mut self, limits: Limits) {
        let now = self.now;
        let change =
            |bucket: &mut Option<BurstBucket>, limit: Option<RateLimit>| match (bucket.as_mut(), limit) {
                (Some(old), Some(limit)) => old.change(limit, now),
                (_, limit) => *bucket = limit.map(BurstBucket::new),
            };
        change(&mut self.iops, limits.iops);
        change(&mut self.throughput, limits.throughput);
        self.accountant.set_rules(limits.accounting);
        self.stations.change(&limits.service, now);
        self.limits = limits;
    }
}

/// A grant that costs nothing.
const fn free(completes: Nanos) -> Grant {
    Grant { completes, unthrottled: completes, operations: 0, bytes: 0 }
}
