//! Whether figures of a load agree with each other, and whether the past was throttled.
//!
//! A load that waited for a limit was smaller than it would have been: what is sized for it is too small.

use ebbtide_catalog::{InstanceType, Resolved};
use ebbtide_observe::{LoadInterval, VolumeLoad};
use ebbtide_volume::RateLimit;
use serde::Serialize;

use super::demand::{Demand, spread_of};
use super::inconsistent::{Inconsistency, inconsistencies};

/// Where the figures of a load come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadOrigin {
    /// CloudWatch's metrics of a volume: operations are counted as its limits count them.
    EbsMetrics,
    /// A tool on the host, a trace or a run: operations are counted as they were submitted.
    Host,
    /// A model of a server on a volume without limits: nothing was recorded, and no volume of today had a part in it.
    Model,
}

/// Figures that cannot be true together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the interval at {at_s} s contradicts itself: {what}")]
pub struct Contradiction {
    /// Start of the interval on the clock of the load, s.
    pub at_s: f64,
    /// What does not agree.
    pub what: String,
}

/// What the figures of a load say of themselves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inputs {
    /// Whether queue, operations and latency agree (Little's law); null where one of them is not known.
    pub little: Option<Little>,
    /// Time without figures between the intervals, s.
    pub gaps_s: f64,
    /// Number of such gaps.
    pub gaps: usize,
    /// Metrics that EBS cannot have counted, or that today's volume cannot have given; empty of other loads.
    pub inconsistent: Vec<Inconsistency>,
    /// What waited for a limit; null where nothing did, as far as can be known, and of a modelled load.
    pub throttled: Option<Throttled>,
}

impl Inputs {
    /// Whether the figures agree with each other, as far as can be known: an answer is no better than they are.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.inconsistent.is_empty() && self.little.is_none_or(|little| little.agrees())
    }
}

/// Little's law: the mean queue is the operations a second times the mean time of one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Little {
    /// Percent of the time in which the queue is within 20%, or within half a request, of operations times latency.
    pub agrees_pct: f64,
    /// The mean queue.
    pub queue: f64,
    /// Operations a second times the mean time of one, the mean over time.
    pub expected: f64,
}

impl Little {
    /// Whether they agree in nine tenths of the time.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.agrees_pct >= AGREES_MOSTLY
    }
}

/// How much of the past was throttled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Throttled {
    /// Percent of the time.
    pub time_pct: f64,
    /// By what it is known, and of which limit.
    pub because: Vec<String>,
    /// Most operations a second that were seen in it.
    pub seen_iops: f64,
    /// What its queue would come to without the limit, operations a second at most: Little's law at the latency of the
    /// volume below its limits. Null where the queue or today's volume is not known.
    pub implied_iops: Option<f64>,
    #[serde(skip)]
    intervals: Vec<usize>,
    #[serde(skip)]
    service_s: Option<f64>,
}

/// Two figures that differ by less agree.
const AGREES: f64 = 0.2;
/// Percent of the time in which figures have to agree.
const AGREES_MOSTLY: f64 = 90.0;
/// Requests by which a mean queue may differ whatever its size: what is sampled is not exact.
const QUEUE_NEAR: f64 = 0.5;
/// Smallest operation of a block device, bytes; rounded figures get a tenth of room.
const LEAST_IO: f64 = 512.0 * 0.9;
/// Largest one, bytes: Linux splits below it.
const MOST_IO: f64 = 64.0 * 1_048_576.0;
/// From this share of a limit on it is reached.
const AT_LIMIT: f64 = 0.95;
/// Credits below this share are used up.
const NO_CREDITS: f64 = 0.01;
/// A volume that takes so many times its latency waits for something.
const SLOW: f64 = 2.0;

/// Looks at the figures of a load. `today` is the volume that carried it.
///
/// # Errors
/// The first interval that cannot be true.
pub fn examine(
    load: &VolumeLoad,
    origin: LoadOrigin,
    today: Option<&Resolved>,
    instance: Option<&InstanceType>,
) -> Result<Inputs, Contradiction> {
    load.intervals.iter().try_for_each(possible)?;
    let apart = load.intervals.windows(2).map(|pair| pair[1].start_s - pair[0].end_s());
    let gaps: Vec<f64> = apart.filter(|gap| *gap > 0.5).collect();
    Ok(Inputs {
        little: little(load),
        gaps_s: gaps.iter().sum(),
        gaps: gaps.len(),
        inconsistent: match origin {
            LoadOrigin::EbsMetrics => inconsistencies(load, today),
            LoadOrigin::Host | LoadOrigin::Model => Vec::new(),
        },
        throttled: match origin {
            LoadOrigin::EbsMetrics | LoadOrigin::Host => throttled(load, today, instance),
            LoadOrigin::Model => None,
        },
    })
}

fn possible(interval: &LoadInterval) -> Result<(), Contradiction> {
    let wrong = |what: String| Err(Contradiction { at_s: interval.start_s, what });
    let known = [interval.queue, interval.read_s, interval.write_s].into_iter().flatten();
    let figures = [interval.reads, interval.writes, interval.read_bytes, interval.written_bytes];
    if let Some(bad) = figures.into_iter().chain(known).find(|one| !one.is_finite() || *one < 0.0) {
        return wrong(format!("{bad} is no figure: expected zero or more"));
    }
    if !(interval.seconds.is_finite() && interval.seconds > 0.0) {
        return wrong(format!("it lasts {} s", interval.seconds));
    }
    for (kind, ios, bytes) in
        [("reads", interval.reads, interval.read_bytes), ("writes", interval.writes, interval.written_bytes)]
    {
        // Tools print two decimals: less is none.
        if ios * interval.seconds < 1.0 && ios < 0.01 {
            if bytes > 65_536.0 {
                return wrong(format!("{} bytes a second and no {kind}", bytes.round()));
            }
        } else if bytes > 0.0 && (bytes / ios < LEAST_IO || bytes / ios > MOST_IO) && ios >= 0.1 {
            return wrong(format!(
                "{ios:.1} {kind} of {} bytes a second are {:.1} bytes each: expected 512 bytes to 64 MiB",
                bytes.round(),
                bytes / ios
            ));
        }
    }
    Ok(())
}

fn little(load: &VolumeLoad) -> Option<Little> {
    let known = load.intervals.iter().filter_map(|one| {
        let expected = if one.ios() > 0.0 { one.ios() * one.latency_s()? } else { 0.0 };
        Some((one.queue?, expected, one.seconds))
    });
    let known: Vec<(f64, f64, f64)> = known.collect();
    let time: f64 = known.iter().map(|(_, _, seconds)| seconds).sum();
    if time <= 0.0 {
        return None;
    }
    let agree = |(queue, expected, _): &&(f64, f64, f64)| {
        (queue - expected).abs() <= QUEUE_NEAR.max(AGREES * queue.max(*expected))
    };
    let mean = |of: fn(&(f64, f64, f64)) -> f64| known.iter().map(of).sum::<f64>() / time;
    Some(Little {
        agrees_pct: known.iter().filter(agree).map(|(_, _, seconds)| seconds).sum::<f64>() / time * 100.0,
        queue: mean(|(queue, _, seconds)| queue * seconds),
        expected: mean(|(_, expected, seconds)| expected * seconds),
    })
}

fn throttled(
    load: &VolumeLoad,
    today: Option<&Resolved>,
    instance: Option<&InstanceType>,
) -> Option<Throttled> {
    let mut because: Vec<(String, f64)> = Vec::new();
    let mut intervals = Vec::new();
    for (place, one) in load.intervals.iter().enumerate() {
        let reasons = reasons(one, today, instance);
        if reasons.is_empty() {
            continue;
        }
        intervals.push(place);
        for reason in reasons {
            match because.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, seconds)) => *seconds += one.seconds,
                None => because.push((reason, one.seconds)),
            }
        }
    }
    if intervals.is_empty() {
        return None;
    }
    because.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: f64 = load.intervals.iter().map(|one| one.seconds).sum();
    let of = |place: &usize| &load.intervals[*place];
    let service_s = today.map(|volume| service_s(volume, load));
    let implied = intervals.iter().filter_map(|place| Some(of(place).queue? / service_s?));
    Some(Throttled {
        time_pct: intervals.iter().map(|place| of(place).seconds).sum::<f64>() / all * 100.0,
        because: because.into_iter().map(|(reason, _)| reason).collect(),
        seen_iops: intervals.iter().map(|place| of(place).ios()).fold(0.0, f64::max),
        implied_iops: implied.reduce(f64::max),
        intervals,
        service_s,
    })
}

/// By what it is known that an interval waited for a limit.
fn reasons(one: &LoadInterval, today: Option<&Resolved>, instance: Option<&InstanceType>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    if let Some(limited) = one.limited {
        let checks = [
            (limited.volume_iops, "its metrics say that the volume's IOPS were exceeded"),
            (limited.volume_throughput, "its metrics say that the volume's throughput was exceeded"),
            (limited.instance_iops, "its metrics say that the instance's IOPS were exceeded"),
            (limited.instance_throughput, "its metrics say that the instance's throughput was exceeded"),
        ];
        all.extend(checks.into_iter().filter(|(is, _)| *is).map(|(_, words)| words.to_owned()));
    }
    let dry = one.credits.is_some_and(|credits| credits <= NO_CREDITS);
    if dry && one.ios() > 0.0 {
        all.push("burst credits were used up".to_owned());
    }
    // At a limit, and waiting: a volume that happens to need exactly its limit answers at once.
    let waits = match (one.latency_s(), today) {
        (Some(latency), Some(volume)) => latency >= SLOW * median_s(volume),
        (None, _) | (_, None) => true,
    };
    if !waits {
        return all;
    }
    if let Some(volume) = today {
        let members = f64::from(volume.spec.members());
        let reached = |used: f64, rate: Option<RateLimit>| {
            rate.is_some_and(|rate| {
                let most = if dry { rate.rate } else { rate.ceiling };
                used >= AT_LIMIT * most as f64 * members
            })
        };
        if reached(one.ios(), volume.members[0].iops) {
            all.push(format!("it ran at the IOPS of {}", volume.spec.volume.kind));
        }
        if reached(one.bytes(), volume.members[0].throughput) {
            all.push(format!("it ran at the throughput of {}", volume.spec.volume.kind));
        }
    }
    if let Some(instance) = instance {
        let (iops, bytes) = (instance.limits.iops, instance.limits.throughput);
        if one.ios() >= AT_LIMIT * iops.ceiling as f64 || one.bytes() >= AT_LIMIT * bytes.ceiling as f64 {
            all.push(format!("it ran at the EBS limits of {}", instance.name));
        }
    }
    all
}

/// The median time of an I/O below the limits, s.
fn median_s(volume: &Resolved) -> f64 {
    let service = &volume.members[0].service;
    service.read.quantile(500_000).max(service.write.quantile(500_000)).as_secs_f64()
}

/// The time of an operation of this load below the limits, s: the least that the load itself had in a tenth of its time, or
/// that of the type.
fn service_s(volume: &Resolved, load: &VolumeLoad) -> f64 {
    let measured = load.intervals.iter().filter_map(|one| Some((one.latency_s()?, one.seconds)));
    let measured = spread_of(measured.collect()).map(|spread| spread.p50);
    let typical = median_s(volume);
    // A load that was throttled all the time shows no latency of its own.
    measured.filter(|s| *s < SLOW * typical && *s > 0.0).unwrap_or(typical)
}

impl Throttled {
    /// The load with what the queues of its throttled intervals imply in place of what was seen: at most so much would have
    /// come without the limit. None where that is not known.
    #[must_use]
    pub fn implied(&self, load: &VolumeLoad, factor: f64) -> Option<Demand> {
        let service_s = self.service_s?;
        let mut implied = load.clone();
        let mut known = false;
        for place in &self.intervals {
            let one = &mut implied.intervals[*place];
            let Some(queue) = one.queue.filter(|_| one.ios() > 0.0) else { continue };
            let more = (queue / service_s / one.ios()).max(1.0);
            known |= more > 1.0;
            one.reads *= more;
            one.writes *= more;
            one.read_bytes *= more;
            one.written_bytes *= more;
        }
        known.then(|| Demand::of(&implied, factor))
    }
}

/// Rules of thumb that take the mean queue for a measure of the IOPS that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QueueRule {
    /// The mean queue.
    pub queue: f64,
    /// IOPS by the whitepaper's rule, 200 for each request in the queue.
    pub whitepaper_iops: f64,
    /// IOPS by AWS's newer rule, 1,000 for each request in the queue.
    pub newer_iops: f64,
    /// Operations a second that were there.
    pub seen_iops: f64,
    /// The mean time of an operation, ms; null where it is not known.
    pub latency_ms: Option<f64>,
}

/// The rules for a load; None where its queue is not known.
#[must_use]
pub fn queue_rule(load: &VolumeLoad) -> Option<QueueRule> {
    let known: Vec<&LoadInterval> = load.intervals.iter().filter(|one| one.queue.is_some()).collect();
    let time: f64 = known.iter().map(|one| one.seconds).sum();
    if time <= 0.0 {
        return None;
    }
    let mean =
        |of: &dyn Fn(&LoadInterval) -> f64| known.iter().map(|one| of(one) * one.seconds).sum::<f64>() / time;
    let queue = mean(&|one| one.queue.unwrap_or(0.0));
    let ios = mean(&LoadInterval::ios);
    let timed = |one: &LoadInterval| one.latency_s().map_or(0.0, |s| s * one.ios());
    let waited = mean(&timed);
    Some(QueueRule {
        queue,
        whitepaper_iops: queue * 200.0,
        newer_iops: queue * 1_000.0,
        seen_iops: ios,
        latency_ms: (waited > 0.0).then(|| waited / ios * 1e3),
    })
}
