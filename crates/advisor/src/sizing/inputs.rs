//! Whether figures of a load agree with each other, and whether the past was throttled.
//!
//! A load that waited for a limit was smaller than it would have been: what is sized for it is too small.

use ebbtide_catalog::{InstanceType, Resolved};
use ebbtide_observe::{LoadInterval, VolumeLoad};
use serde::Serialize;

use super::inconsistent::{Inconsistency, inconsistencies};
use super::little::{LittlesLaw, littles_law};
use super::origin::LoadOrigin;
use super::recorded::RecordedPast;
use super::throttled::{Throttled, throttled};

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
    pub little: Option<LittlesLaw>,
    /// Time without figures between the intervals, s.
    pub gaps_s: f64,
    /// Number of such gaps.
    pub gaps: usize,
    /// Metrics that EBS cannot have counted, or that today's volume cannot have given; empty of other loads.
    pub inconsistent: Vec<Inconsistency>,
    /// What waited for a limit; null where nothing did, as far as can be known, and of a modelled load.
    pub throttled: Option<Throttled>,
    /// What the record says of the volume that carried the load; None of a modelled load.
    #[serde(skip)]
    pub past: Option<RecordedPast>,
}

impl Inputs {
    /// Whether the figures agree with each other, as far as can be known: an answer is no better than they are.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.inconsistent.is_empty() && self.little.is_none_or(|little| little.agrees())
    }
}

/// Smallest operation of a block device, bytes; rounded figures get a tenth of room.
const LEAST_IO: f64 = 512.0 * 0.9;
/// Largest one, bytes: Linux splits below it.
const MOST_IO: f64 = 64.0 * 1_048_576.0;

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
    let modelled = origin == LoadOrigin::Model;
    let throttled = if modelled { None } else { throttled(load, origin, today, instance) };
    Ok(Inputs {
        little: littles_law(load),
        gaps_s: gaps.iter().sum(),
        gaps: gaps.len(),
        inconsistent: match origin {
            LoadOrigin::EbsMetrics => inconsistencies(load, today),
            LoadOrigin::Host | LoadOrigin::HostTogether | LoadOrigin::Trace | LoadOrigin::Model => Vec::new(),
        },
        past: (!modelled).then(|| RecordedPast::of(load, throttled.as_ref())),
        throttled,
    })
}

/// The longest interval that figures are a mean of, s: a year. Times of files that are damaged come to more.
const LONGEST_INTERVAL: f64 = 366.0 * 86_400.0;

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
    if interval.seconds > LONGEST_INTERVAL {
        return wrong(format!(
            "it lasts {} s: expected at most {LONGEST_INTERVAL} s, a year",
            interval.seconds
        ));
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
