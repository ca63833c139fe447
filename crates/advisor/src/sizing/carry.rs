//! Whether a configuration carries a load: its limits and credits, with what waits for them, over the whole load.
//!
//! The buckets are those of a live volume ([`BurstBucket`]), fed with the even load of each step. What a step leaves waiting,
//! the next one has to carry too.

use ebbtide_volume::{BurstBucket, Instance, Limits, Nanos, QuantileCurve, RateLimit, WaitLine};
use serde::Serialize;

use super::charge::{Charge, Charges};
use super::demand::{Demand, Side, whole};
use super::setup::Setup;

/// A wait for a limit that counts: about as long as an operation takes without one.
pub const WAIT_THAT_COUNTS: Nanos = Nanos::from_ms(1);

/// A limit that load waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The volumes' IOPS.
    VolumeIops,
    /// The volumes' throughput.
    VolumeThroughput,
    /// The volumes' burst credits.
    VolumeCredits,
    /// The instance's IOPS.
    InstanceIops,
    /// The instance's throughput.
    InstanceThroughput,
    /// The instance's burst credits (30 minutes a day).
    InstanceCredits,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::VolumeIops,
        Self::VolumeThroughput,
        Self::VolumeCredits,
        Self::InstanceIops,
        Self::InstanceThroughput,
        Self::InstanceCredits,
    ];

    /// It in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::VolumeIops => "volume IOPS",
            Self::VolumeThroughput => "volume throughput",
            Self::VolumeCredits => "volume burst credits",
            Self::InstanceIops => "instance IOPS",
            Self::InstanceThroughput => "instance throughput",
            Self::InstanceCredits => "instance burst credits",
        }
    }
}

/// How a configuration carries a load that repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// Share of the time (0 to 1) in which I/O waits for a limit for longer than [`WAIT_THAT_COUNTS`].
    pub waiting: f64,
    /// The same for each limit alone, in the order of [`Limit::ALL`].
    pub by: [f64; 6],
    /// The longest wait.
    pub longest: Nanos,
    /// Whether what waits grows with each repetition: the load is more than the limits in the mean.
    pub overloaded: bool,
    /// The lowest share of the volume's burst credits, 0 to 1; None without credits.
    pub lowest_credits: Option<f64>,
    /// When full credits of the volume or the instance end for the first time; None where they last.
    pub credits_end: Option<Nanos>,
    latencies: Latencies,
}

impl Carried {
    /// The limit that most of the waiting is for; None where nothing waits.
    #[must_use]
    pub fn limited_by(&self) -> Option<Limit> {
        let most = Limit::ALL.into_iter().zip(self.by).max_by(|a, b| a.1.total_cmp(&b.1))?;
        (most.1 > 0.0).then_some(most.0)
    }

    /// A quantile (0 to 1) of the time of an I/O: of its service and its wait for the limits, whichever is longer.
    #[must_use]
    pub fn latency(&self, quantile: f64) -> Nanos {
        self::quantile(self.latencies.most(), 1.0 - quantile, |time| self.latencies.above(time))
    }

    /// Share of the I/Os (0 to 1) that take longer.
    #[must_use]
    pub fn slower_than(&self, time: Nanos) -> f64 {
        self.latencies.above(time)
    }
}

/// How often a load is repeated to find what burst credits come to.
const REPETITIONS: usize = 4;

impl Demand {
    /// How a configuration carries this load. Load that repeats for ever: burst credits count as far as they come back.
    #[must_use]
    pub fn carried_by(&self, setup: &Setup<'_>) -> Carried {
        self.carried_within(setup, f64::INFINITY).expect("an endless allowance is not exceeded")
    }

    /// The same; None as soon as more than a share of the time (0 to 1) waits.
    pub(super) fn carried_within(&self, setup: &Setup<'_>, most_waiting: f64) -> Option<Carried> {
        self.carried_as(&Charges::of(self, setup), setup, most_waiting)
    }

    /// The same, of a load that was counted already.
    ///
    /// # Panics
    /// If other volumes counted it.
    pub(super) fn carried_as(
        &self,
        charges: &Charges,
        setup: &Setup<'_>,
        most_waiting: f64,
    ) -> Option<Carried> {
        assert!(charges.are_of(setup), "a load is counted as its volumes count it");
        let allowed = most_waiting * self.steps.iter().map(|step| step.nanos as f64).sum::<f64>();
        let mut run = Run::new(self, charges, setup);
        let first = run.pass(allowed)?;
        let credits_end = first.credits_end;
        let (mut before, mut pass) = (Levels::FULL, first);
        let mut after = run.levels();
        for _ in 1..REPETITIONS {
            if after.holds(&before) {
                break;
            }
            before = after;
            pass = run.pass(allowed)?;
            after = run.levels();
        }
        let mut overloaded = false;
        if !after.holds(&before) {
            // The credits go down each time: in the long run they are used up.
            run.empty();
            let _ = run.pass(allowed)?;
            let waits = run.backlog;
            pass = run.pass(allowed)?;
            overloaded = run.backlog > waits + Nanos::from_us(1);
        }
        let time = self.steps.iter().map(|step| step.nanos as f64).sum::<f64>().max(1.0);
        Some(Carried {
            waiting: pass.waiting / time,
            by: pass.by.map(|nanos| nanos / time),
            longest: pass.longest,
            overloaded,
            lowest_credits: pass.lowest_credits,
            credits_end,
            latencies: Latencies { service: Service::of(self, setup.limits), waits: pass.waits },
        })
    }
}

/// What the buckets hold at the end of a repetition.
#[derive(Debug, Clone, Copy)]
struct Levels {
    shares: [f64; 4],
    backlog: Nanos,
}

impl Levels {
    /// Of volumes that were idle.
    const FULL: Self = Self { shares: [1.0; 4], backlog: Nanos::ZERO };

    /// Whether a repetition from these would be as one from the levels before.
    fn holds(&self, before: &Self) -> bool {
        let kept = self.shares.iter().zip(before.shares).all(|(after, before)| *after >= before - 1e-6);
        kept && self.backlog <= before.backlog + Nanos::from_us(1)
    }
}

/// What waits in a step, and for what.
#[derive(Debug, Clone, PartialEq)]
struct Waiting {
    ios: f64,
    lines: Vec<WaitLine>,
}

/// What came of one repetition. Times are ns.
#[derive(Debug, Default)]
struct Pass {
    waiting: f64,
    by: [f64; 6],
    longest: Nanos,
    lowest_credits: Option<f64>,
    credits_end: Option<Nanos>,
    waits: Vec<Waiting>,
}

/// A configuration while a load is fed to it.
struct Run<'a> {
    demand: &'a Demand,
    charges: &'a Charges,
    iops: Option<BurstBucket>,
    throughput: Option<BurstBucket>,
    instance: Option<Instance>,
    now: Nanos,
    /// How long what came last waits.
    backlog: Nanos,
}

impl<'a> Run<'a> {
    fn new(demand: &'a Demand, charges: &'a Charges, setup: &Setup<'_>) -> Self {
        let bucket = |limit: RateLimit| {
            let allowance = if setup.counts_allowance { limit.allowance } else { 0 };
            BurstBucket::new(RateLimit { allowance, ..limit })
        };
        Self {
            demand,
            charges,
            iops: setup.limits.iops.map(bucket),
            throughput: setup.limits.throughput.map(bucket),
            instance: setup.instance.map(|limits| Instance::new(*limits)),
            now: Nanos::ZERO,
            backlog: Nanos::ZERO,
        }
    }

    fn volume_credits(&self) -> Option<f64> {
        let share =
            |bucket: &Option<BurstBucket>| bucket.as_ref().and_then(|bucket| bucket.credit_share(self.now));
        share(&self.iops).or_else(|| share(&self.throughput))
    }

    fn levels(&self) -> Levels {
        let volume = |bucket: &Option<BurstBucket>| bucket.as_ref().and_then(|b| b.credit_share(self.now));
        let instance = |share: fn(&Instance, Nanos) -> Option<f64>| {
            self.instance.as_ref().and_then(|instance| share(instance, self.now))
        };
        let shares = [
            volume(&self.iops),
            volume(&self.throughput),
            instance(Instance::io_balance),
            instance(Instance::byte_balance),
        ];
        Levels { shares: shares.map(|share| share.unwrap_or(1.0)), backlog: self.backlog }
    }

    /// Takes all credits away.
    fn empty(&mut self) {
        for bucket in self.iops.iter_mut().chain(&mut self.throughput) {
            bucket.set_credit_share(0.0, self.now);
        }
        if let Some(instance) = &mut self.instance {
            instance.set_balance(0.0, self.now);
        }
    }

    /// Feeds the load once; None as soon as more than `allowed` ns of it wait.
    fn pass(&mut self, allowed: f64) -> Option<Pass> {
        let mut pass = Pass { lowest_credits: self.volume_credits(), ..Pass::default() };
        let begun = self.now;
        for (step, charge) in self.demand.steps.iter().zip(&self.charges.steps) {
            let lines = self.feed(charge);
            let longest = lines.iter().map(|(_, line)| line.longest()).max().unwrap_or_default();
            self.backlog =
                Nanos(lines.iter().map(|(_, line)| line.at_end.max(0)).max().unwrap_or(0).cast_unsigned());
            if let Some(credits) = self.volume_credits() {
                pass.lowest_credits = pass.lowest_credits.map(|lowest| lowest.min(credits));
            }
            if longest == Nanos::ZERO {
                continue;
            }
            pass.longest = pass.longest.max(longest);
            let nanos = charge.nanos as f64;
            for (limit, line) in &lines {
                let share = share_above(std::slice::from_ref(line), WAIT_THAT_COUNTS);
                pass.by[*limit as usize] += share * nanos;
                let of_credits = matches!(limit, Limit::VolumeCredits | Limit::InstanceCredits);
                if of_credits && pass.credits_end.is_none() {
                    let dry = share_above(std::slice::from_ref(line), Nanos::ZERO);
                    pass.credits_end =
                        (dry > 0.0).then(|| Nanos((self.now.0 - begun.0).saturating_sub(whole(dry * nanos))));
                }
            }
            let lines: Vec<WaitLine> = lines.iter().map(|(_, line)| *line).collect();
            pass.waiting += share_above(&lines, WAIT_THAT_COUNTS) * nanos;
            if pass.waiting > allowed {
                return None;
            }
            pass.waits.push(Waiting { ios: step.ios(), lines });
        }
        Some(pass)
    }

    /// Feeds a step; the waits that it has, by limit.
    fn feed(&mut self, charge: &Charge) -> Vec<(Limit, WaitLine)> {
        let (from, to) = (self.now, Nanos(self.now.0 + charge.nanos));
        self.now = to;
        let mut lines = Vec::new();
        let mut add = |limit: Limit, line: WaitLine| {
            if line.at_start > 0 || line.at_end > 0 {
                lines.push((limit, line));
            }
        };
        if let Some(bucket) = &mut self.iops {
            let wait = bucket.flow(charge.member_operations, from, to);
            add(Limit::VolumeIops, wait.ceiling);
            wait.credits.into_iter().for_each(|line| add(Limit::VolumeCredits, line));
        }
        if let Some(bucket) = &mut self.throughput {
            let wait = bucket.flow(charge.member_bytes, from, to);
            add(Limit::VolumeThroughput, wait.ceiling);
            wait.credits.into_iter().for_each(|line| add(Limit::VolumeCredits, line));
        }
        if let Some(instance) = &mut self.instance {
            let (iops, throughput) = instance.flow(charge.operations, charge.bytes, from, to);
            add(Limit::InstanceIops, iops.ceiling);
            add(Limit::InstanceThroughput, throughput.ceiling);
            let credits = iops.credits.into_iter().chain(throughput.credits);
            credits.for_each(|line| add(Limit::InstanceCredits, line));
        }
        lines
    }
}

/// Share of a span (0 to 1) in which the longest of the waits is longer than `time`.
fn share_above(lines: &[WaitLine], time: Nanos) -> f64 {
    let (mut from, mut to) = (0.0_f64, 1.0_f64);
    for line in lines {
        let (start, end) =
            ((line.at_start - time.0.cast_signed()) as f64, (line.at_end - time.0.cast_signed()) as f64);
        match (start > 0.0, end > 0.0) {
            (false, false) => {}
            (true, true) => return 1.0,
            (true, false) => from = from.max(start / (start - end)),
            (false, true) => to = to.min(-start / (end - start)),
        }
    }
    1.0 - (to - from).max(0.0)
}

/// The times of the I/Os of a load.
#[derive(Debug, Clone, PartialEq)]
struct Latencies {
    service: Service,
    waits: Vec<Waiting>,
}

impl Latencies {
    /// More than the longest.
    fn most(&self) -> Nanos {
        let longest = self.waits.iter().flat_map(|wait| &wait.lines).map(|line| line.longest()).max();
        self.service.most().max(longest.unwrap_or_default()) + Nanos(1)
    }

    /// Share of the I/Os that take longer.
    fn above(&self, time: Nanos) -> f64 {
        let ios = self.service.ios();
        if ios <= 0.0 {
            return 0.0;
        }
        let waiting: f64 = self.waits.iter().map(|wait| wait.ios * share_above(&wait.lines, time)).sum();
        let waiting = waiting / ios;
        waiting + (1.0 - waiting) * self.service.above(time)
    }
}

/// The times of the I/Os of a load where nothing is waited for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Service {
    directions: [Served; 2],
}

/// One direction.
#[derive(Debug, Clone, PartialEq)]
struct Served {
    ios: f64,
    curve: QuantileCurve,
    /// Time to transfer a request of the mean size.
    transfer: Nanos,
}

impl Service {
    /// Those of a volume with these limits.
    pub(super) fn of(demand: &Demand, limits: &Limits) -> Self {
        let served = |side: Side, curve: &QuantileCurve| {
            let bytes = if side.ios > 0.0 { side.bytes / side.ios } else { 0.0 };
            let transfer = Nanos(whole(bytes * f64::from(limits.service.transfer_ps_per_byte) / 1e3));
            Served { ios: side.ios, curve: curve.clone(), transfer }
        };
        let reads = served(demand.total(|step| step.reads), &limits.service.read);
        let writes = served(demand.total(|step| step.writes), &limits.service.write);
        Self { directions: [reads, writes] }
    }

    fn ios(&self) -> f64 {
        self.directions.iter().map(|direction| direction.ios).sum()
    }

    /// The longest.
    pub(super) fn most(&self) -> Nanos {
        let longest = |served: &Served| served.curve.quantile(1_000_000) + served.transfer;
        self.directions.iter().map(longest).max().unwrap_or_default()
    }

    /// Share of the I/Os (0 to 1) that take longer; 0 without any.
    pub(super) fn above(&self, time: Nanos) -> f64 {
        let ios = self.ios();
        if ios <= 0.0 {
            return 0.0;
        }
        let slow = |served: &Served| served.ios * slower(&served.curve, served.transfer, time);
        self.directions.iter().map(slow).sum::<f64>() / ios
    }
}

/// The least time, to a microsecond, that no more than a share of the I/Os (0 to 1) exceed. `most` is above all of them.
pub(super) fn quantile(most: Nanos, exceeded: f64, above: impl Fn(Nanos) -> f64) -> Nanos {
    let (mut low, mut high) = (0_u64, most.0);
    // A microsecond is finer than any of the figures.
    while high - low >= 1_000 {
        let middle = low + (high - low) / 2;
        if above(Nanos(middle)) > exceeded { low = middle } else { high = middle }
    }
    Nanos(high)
}

/// Share of the services (0 to 1) that take longer.
fn slower(curve: &QuantileCurve, transfer: Nanos, time: Nanos) -> f64 {
    let time = time.since(transfer);
    let (mut low, mut high) = (0_u32, 1_000_000_u32);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if curve.quantile(middle) <= time { low = middle } else { high = middle - 1 }
    }
    let shortest = curve.minimum() <= time;
    if shortest { 1.0 - f64::from(low) / 1e6 } else { 1.0 }
}
