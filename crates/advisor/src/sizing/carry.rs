//! Whether a configuration carries a load: its limits and credits, with what waits for them, over the whole load.
//!
//! The buckets are those of a live volume ([`BurstBucket`]), fed with the even load of each step. What a step leaves waiting,
//! the next one has to carry too.

use ebbtide_volume::{BurstBucket, Instance, InstanceLimits, Limits, Nanos, QuantileCurve, WaitLine};
use serde::Serialize;

use super::demand::{Demand, Step, whole};

/// A wait for a limit that counts: about as long as an operation takes without one.
pub const WAIT_THAT_COUNTS: Nanos = Nanos::from_ms(1);

/// What is asked to carry a load.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The limits of one volume.
    pub limits: &'a Limits,
    /// How many of them are striped.
    pub members: u16,
    /// Bytes of a stripe on one of them.
    pub chunk_bytes: u64,
    /// The limits of the instance; None where nothing but the volumes limits.
    pub instance: Option<&'a InstanceLimits>,
}

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
        let (mut low, mut high) = (0_u64, self.latencies.most().0);
        while low < high {
            let middle = low + (high - low) / 2;
            // A microsecond is finer than any of the figures.
            if high - low < 1_000 {
                break;
            }
            if self.latencies.above(Nanos(middle)) > 1.0 - quantile {
                low = middle;
            } else {
                high = middle;
            }
        }
        Nanos(high)
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
        let allowed = most_waiting * self.steps.iter().map(|step| step.nanos as f64).sum::<f64>();
        let mut run = Run::new(self, setup);
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
            latencies: Latencies { waits: pass.waits, ..run.latencies },
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
    setup: &'a Setup<'a>,
    iops: Option<BurstBucket>,
    throughput: Option<BurstBucket>,
    instance: Option<Instance>,
    now: Nanos,
    /// How long what came last waits.
    backlog: Nanos,
    latencies: Latencies,
}

impl<'a> Run<'a> {
    fn new(demand: &'a Demand, setup: &'a Setup<'a>) -> Self {
        Self {
            demand,
            setup,
            iops: setup.limits.iops.map(BurstBucket::new),
            throughput: setup.limits.throughput.map(BurstBucket::new),
            instance: setup.instance.map(|limits| Instance::new(*limits)),
            now: Nanos::ZERO,
            backlog: Nanos::ZERO,
            latencies: Latencies::of(demand, setup.limits),
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
        let (begun, demand) = (self.now, self.demand);
        for step in &demand.steps {
            let lines = self.feed(step);
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
            let nanos = step.nanos as f64;
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
            pass.waits.push(Waiting { ios: step.ios, lines });
        }
        Some(pass)
    }

    /// Feeds a step; the waits that it has, by limit.
    fn feed(&mut self, step: &Step) -> Vec<(Limit, WaitLine)> {
        let (from, to) = (self.now, Nanos(self.now.0 + step.nanos));
        self.now = to;
        let Charge { operations, bytes } = Charge::of(step, self.setup);
        let mut lines = Vec::new();
        let mut add = |limit: Limit, line: WaitLine| {
            if line.at_start > 0 || line.at_end > 0 {
                lines.push((limit, line));
            }
        };
        let members = f64::from(self.setup.members);
        if let Some(bucket) = &mut self.iops {
            let wait = bucket.flow(whole(operations / members), from, to);
            add(Limit::VolumeIops, wait.ceiling);
            wait.credits.into_iter().for_each(|line| add(Limit::VolumeCredits, line));
        }
        if let Some(bucket) = &mut self.throughput {
            let wait = bucket.flow(whole(bytes / members), from, to);
            add(Limit::VolumeThroughput, wait.ceiling);
            wait.credits.into_iter().for_each(|line| add(Limit::VolumeCredits, line));
        }
        if let Some(instance) = &mut self.instance {
            let (iops, throughput) = instance.flow(whole(operations), whole(bytes), from, to);
            add(Limit::InstanceIops, iops.ceiling);
            add(Limit::InstanceThroughput, throughput.ceiling);
            let credits = iops.credits.into_iter().chain(throughput.credits);
            credits.for_each(|line| add(Limit::InstanceCredits, line));
        }
        lines
    }
}

/// Bytes that an operation begins at a multiple of: a page of InnoDB.
const PAGE: f64 = 16_384.0;

/// What the limits count of a step.
struct Charge {
    operations: f64,
    bytes: f64,
}

impl Charge {
    /// Operations are split at the volume's unit and at the ends of chunks, of which pages that are aligned have none. How
    /// sequential the load is, is not known: nothing is merged, and a disk charges whole units.
    fn of(step: &Step, setup: &Setup<'_>) -> Self {
        let accounting = &setup.limits.accounting;
        let beyond_a_page = (step.bytes - step.ios * PAGE).max(0.0);
        let split = if setup.members > 1 { beyond_a_page / setup.chunk_bytes as f64 } else { 0.0 };
        let unit = f64::from(accounting.unit_bytes);
        let operations = (step.ios + split).max(step.bytes / unit);
        let bytes = if accounting.whole_units { operations * unit } else { step.bytes };
        Self { operations, bytes }
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
    /// Operations in all.
    ios: f64,
    /// Share that reads.
    reads: f64,
    read: QuantileCurve,
    write: QuantileCurve,
    /// Time to transfer the mean operation.
    transfer: Nanos,
    waits: Vec<Waiting>,
}

impl Latencies {
    fn of(demand: &Demand, limits: &Limits) -> Self {
        let bytes = demand.io_bytes().unwrap_or(0.0);
        let transfer = Nanos(whole(bytes * f64::from(limits.service.transfer_ps_per_byte) / 1e3));
        Self {
            ios: demand.steps.iter().map(|step| step.ios).sum(),
            reads: demand.read_share().unwrap_or(0.0),
            read: limits.service.read.clone(),
            write: limits.service.write.clone(),
            transfer,
            waits: Vec::new(),
        }
    }

    /// More than the longest.
    fn most(&self) -> Nanos {
        let longest = self.waits.iter().flat_map(|wait| &wait.lines).map(|line| line.longest()).max();
        let service = self.read.quantile(1_000_000).max(self.write.quantile(1_000_000)) + self.transfer;
        service.max(longest.unwrap_or_default()) + Nanos(1)
    }

    /// Share of the I/Os that take longer.
    fn above(&self, time: Nanos) -> f64 {
        if self.ios <= 0.0 {
            return 0.0;
        }
        let of_service = self.reads * slower(&self.read, self.transfer, time)
            + (1.0 - self.reads) * slower(&self.write, self.transfer, time);
        let waiting: f64 = self.waits.iter().map(|wait| wait.ios * share_above(&wait.lines, time)).sum();
        let waiting = waiting / self.ios;
        waiting + (1.0 - waiting) * of_service
    }
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
