//! A past that waited for a limit: by what it is known, and how large the load may have been.

use ebbtide_catalog::{InstanceType, Resolved};
use ebbtide_observe::{LoadInterval, VolumeLoad};
use ebbtide_volume::{Accounting, Limits, RateLimit};
use serde::Serialize;

use super::carry::Limit;
use super::demand::{Demand, operations_of};
use super::little::measured_latency_s;
use super::origin::LoadOrigin;

/// How much of the past was throttled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Throttled {
    /// Percent of the time.
    pub time_pct: f64,
    /// By what it is known, and of which limit.
    pub because: Vec<String>,
    /// Most operations a second that were seen in it, as the volume counts them.
    pub seen_iops: f64,
    /// Percent of the time in which burst credits had ended.
    pub credits_ended_pct: f64,
    /// Most operations a second that were served before burst credits ended; null where they did not end, or the record has no
    /// time before.
    pub served_before_iops: Option<f64>,
    /// The most that the load may have been, operations a second: what was served before the credits ended, or what came while
    /// the queue of work put off grew. Null where neither is known: clients that wait for an answer before they send their next
    /// request do not show what they would have sent.
    pub implied_iops: Option<f64>,
    /// Share of the time (0 to 1) that was throttled by each limit, in the order of [`Limit::ALL`].
    #[serde(skip)]
    pub by: [f64; 6],
    /// Intervals of the load, with what they may have been.
    #[serde(skip)]
    implied: Vec<Implied>,
    #[serde(skip)]
    origin: LoadOrigin,
}

/// What a throttled interval may have been without the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Implied {
    place: usize,
    /// The interval whose load it may have gone on with.
    like: usize,
    /// So many times that.
    times: f64,
}

/// The highest load before credits ended.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Before {
    place: usize,
    /// Whether the credits lasted for the whole interval: one in which they ended has less than the load in its mean.
    is_whole: bool,
}

/// From this share of a limit on it is reached.
const AT_LIMIT: f64 = 0.95;
/// Up to this share of a rate it is the rate that is reached, and not a higher limit.
const ABOVE_RATE: f64 = 1.05;
/// Credits below this share are used up.
pub(super) const NO_CREDITS: f64 = 0.01;
/// Credits from this share on are full: what came before does not belong to the burst that ended them.
const FULL_CREDITS: f64 = 0.99;
/// The longest time before the end of credits whose load may have gone on, s.
const LONGEST_BEFORE: f64 = 86_400.0;
/// A volume that takes so many times its latency waits for something.
pub(super) const SLOW: f64 = 2.0;
/// A queue that changes by less than this share of what is served does not change.
const STANDS_STILL: f64 = 0.01;
/// A bound that is not more than this times what was seen says nothing more.
const MORE: f64 = 1.01;

/// Why an interval counts as throttled.
#[derive(Debug, Default)]
struct Reasons {
    words: Vec<String>,
    limits: Vec<Limit>,
    /// Whether burst credits had ended.
    dry: bool,
}

impl Reasons {
    fn add(&mut self, limit: Limit, words: String) {
        self.dry |= limit == Limit::VolumeCredits;
        self.limits.push(limit);
        if !self.words.contains(&words) {
            self.words.push(words);
        }
    }
}

/// How much of a load was throttled; None where nothing was, as far as can be known.
pub(super) fn throttled(
    load: &VolumeLoad,
    origin: LoadOrigin,
    today: Option<&Resolved>,
    instance: Option<&InstanceType>,
) -> Option<Throttled> {
    let reasons: Vec<Reasons> =
        load.intervals.iter().map(|interval| reasons(interval, origin, today, instance)).collect();
    let mut because: Vec<(String, f64)> = Vec::new();
    for (interval, reasons) in load.intervals.iter().zip(&reasons) {
        for reason in &reasons.words {
            match because.iter_mut().find(|(known, _)| known == reason) {
                Some((_, seconds)) => *seconds += interval.seconds,
                None => because.push((reason.clone(), interval.seconds)),
            }
        }
    }
    because.sort_by(|a, b| b.1.total_cmp(&a.1));
    let time: f64 = load.intervals.iter().map(|interval| interval.seconds).sum();
    let share = |counts: &dyn Fn(&Reasons) -> bool| {
        let chosen = load.intervals.iter().zip(&reasons).filter(|(_, reasons)| counts(reasons));
        chosen.map(|(interval, _)| interval.seconds).sum::<f64>() / time * 100.0
    };
    let places: Vec<usize> = (0..reasons.len()).filter(|place| !reasons[*place].words.is_empty()).collect();
    let past = Past {
        load,
        origin,
        accounting: today.map(|volume| volume.members[0].accounting),
        median_s: today.map(median_s),
        reasons: &reasons,
    };
    let seen_iops = places.iter().map(|place| past.iops(*place)).reduce(f64::max)?;
    let own = past.before(&places);
    let before = own.iter().flatten().max_by(|a, b| past.iops(a.place).total_cmp(&past.iops(b.place)));
    // A record that begins without credits has what other bursts of it had.
    let implied = places.iter().zip(&own).map(|(place, own)| {
        let before = own.as_ref().or(before.filter(|_| reasons[*place].dry));
        past.implied(*place, before.map(|before| before.place))
    });
    let implied: Vec<Implied> = implied.collect();
    let most = implied.iter().map(|interval| past.iops(interval.like) * interval.times).fold(0.0, f64::max);
    let more = implied
        .iter()
        .any(|interval| past.iops(interval.like) * interval.times > MORE * past.iops(interval.place));
    let known = own.iter().flatten().any(|before| before.is_whole)
        || places.iter().all(|place| past.shows_what_came(*place));
    Some(Throttled {
        time_pct: share(&|reasons| !reasons.words.is_empty()),
        because: because.into_iter().map(|(reason, _)| reason).collect(),
        seen_iops,
        credits_ended_pct: share(&|reasons| reasons.dry),
        by: Limit::ALL.map(|limit| share(&|reasons| reasons.limits.contains(&limit)) / 100.0),
        served_before_iops: before.map(|before| past.iops(before.place)),
        implied_iops: (more && known).then_some(most),
        implied,
        origin,
    })
}

/// A throttled load while it is bounded.
struct Past<'a> {
    load: &'a VolumeLoad,
    origin: LoadOrigin,
    /// How today's volume counts; None where it is not known.
    accounting: Option<Accounting>,
    /// The time of an I/O of today's volume that waits for nothing, s.
    median_s: Option<f64>,
    reasons: &'a [Reasons],
}

impl Past<'_> {
    fn unit(&self) -> u64 {
        self.accounting.map_or(super::demand::SSD_UNIT, |accounting| accounting.unit_bytes.into())
    }

    /// Operations a second as today's volume counts them: what its credits pay for, of a disk its units.
    fn iops(&self, place: usize) -> f64 {
        operations_of(&self.load.intervals[place], self.origin, self.unit())
    }

    /// Of each place, the highest load before the credits ended that had ended there. None where credits had not ended, or nothing
    /// of the time before was recorded. `places` rise.
    fn before(&self, places: &[usize]) -> Vec<Option<Before>> {
        let mut found = Vec::with_capacity(places.len());
        // One end of credits serves all places that follow it: a day of seconds may have as many.
        let mut last: Option<(usize, Option<Before>)> = None;
        let mut end = None;
        let mut next = 0;
        for place in places {
            end = (next..*place).rfind(|place| !self.reasons[*place].dry).or(end);
            next = *place;
            let is_dry = self.reasons[*place].dry;
            found.push(end.filter(|_| is_dry).and_then(|end| match last {
                Some((known, before)) if known == end => before,
                _ => {
                    let before = self.before_end(end);
                    last = Some((end, before));
                    before
                }
            }));
        }
        found
    }

    /// The highest load before credits ended, of which `end` is the last interval with credits: since they were last full, or had
    /// ended before, within a day.
    fn before_end(&self, end: usize) -> Option<Before> {
        let intervals = &self.load.intervals;
        let full = |place: usize| intervals[place].credits.is_some_and(|credits| credits >= FULL_CREDITS);
        let mut burst: Vec<usize> = (0..=end)
            .rev()
            .take_while(|place| !self.reasons[*place].dry)
            .take_while(|place| intervals[end].end_s() - intervals[*place].start_s <= LONGEST_BEFORE)
            .collect();
        if let Some(last) = burst.iter().position(|place| full(*place)) {
            burst.truncate(last + 1);
        }
        // The first interval without credits has the end of the burst in it. Of equal ones a whole one is taken.
        burst.insert(0, end + 1);
        let place = burst.into_iter().max_by(|a, b| self.iops(*a).total_cmp(&self.iops(*b)))?;
        let left = intervals[place].credits.is_some_and(|credits| credits > 0.0);
        Some(Before { place, is_whole: place != end + 1 || left })
    }

    /// What a throttled interval may have been. Work is put off and not lost: what came is what was served, and what the queue
    /// grew by. Where credits ended, the load before may have gone on.
    fn implied(&self, place: usize, before: Option<usize>) -> Implied {
        let interval = &self.load.intervals[place];
        let served = interval.ios();
        let came = if served > 0.0 { 1.0 + self.put_off(place) / served } else { 1.0 };
        let own = Implied { place, like: place, times: came };
        match before {
            Some(like) if self.iops(like) > self.iops(place) * came => Implied { place, like, times: 1.0 },
            _ => own,
        }
    }

    /// Requests a second by which the queue grew. Clients that wait for an answer have a queue of one length, and add next to
    /// nothing.
    ///
    /// Only means of the queue are known. Between two intervals of steady growth they differ by that growth, and by half of it
    /// where only one of the two has it. So the larger difference to the neighbours is taken, or their sum where the intervals
    /// beyond them have no growth.
    fn put_off(&self, place: usize) -> f64 {
        let queue = |place: Option<usize>| self.load.intervals.get(place?)?.queue;
        let grown = |earlier: Option<usize>, later: Option<usize>| {
            queue(later).zip(queue(earlier)).map_or(0.0, |(later, earlier)| (later - earlier).max(0.0))
        };
        let before = place.checked_sub(1);
        let (into, out) = (grown(before, Some(place)), grown(Some(place), Some(place + 1)));
        let beyond = grown(place.checked_sub(2), before).max(grown(Some(place + 1), Some(place + 2)));
        into.max(out).max(into + out - beyond) / self.load.intervals[place].seconds
    }

    /// Whether the queue of an interval shows what came: it grows, it shrinks, or nothing waits. One that stands still at a limit is
    /// of clients that wait, or as long as the system has it.
    fn shows_what_came(&self, place: usize) -> bool {
        let interval = &self.load.intervals[place];
        let waits = match (interval.queue, self.median_s) {
            (Some(queue), Some(median_s)) => queue >= SLOW * median_s * interval.ios(),
            (None, _) | (_, None) => true,
        };
        let moves = |other: Option<usize>| {
            let other = self.load.intervals.get(other?)?;
            let apart = (other.queue? - interval.queue?).abs() / interval.seconds;
            Some(apart > STANDS_STILL * interval.ios())
        };
        !waits || [place.checked_sub(1), Some(place + 1)].into_iter().filter_map(moves).any(|moves| moves)
    }
}

/// By what it is known that an interval waited for a limit.
fn reasons(
    interval: &LoadInterval,
    origin: LoadOrigin,
    today: Option<&Resolved>,
    instance: Option<&InstanceType>,
) -> Reasons {
    let mut found = Reasons::default();
    if let Some(limited) = interval.limited {
        let checks = [
            (limited.volume_iops, Limit::VolumeIops, "volume's IOPS were"),
            (limited.volume_throughput, Limit::VolumeThroughput, "volume's throughput was"),
            (limited.instance_iops, Limit::InstanceIops, "instance's IOPS were"),
            (limited.instance_throughput, Limit::InstanceThroughput, "instance's throughput was"),
        ];
        for (_, limit, words) in checks.into_iter().filter(|(exceeded, ..)| *exceeded) {
            found.add(limit, format!("its metrics say that the {words} exceeded"));
        }
    }
    // At a limit, and waiting: a volume that happens to need exactly its limit answers at once.
    let waits =
        measured_latency_s(interval).zip(today).map(|(latency, volume)| latency >= SLOW * median_s(volume));
    let dry = interval.credits.is_some_and(|credits| credits <= NO_CREDITS) && interval.ios() > 0.0;
    // A load below the baseline needs no credits.
    let held_back = match (waits, today.map(|volume| at_baseline(interval, origin, volume))) {
        (None, None) => true,
        (waits, at_baseline) => waits == Some(true) || at_baseline == Some(true),
    };
    if dry && held_back {
        found.add(Limit::VolumeCredits, "burst credits were used up".to_owned());
    }
    let waits = waits.unwrap_or(true);
    if waits {
        at_limits(interval, origin, today, instance, &mut found);
    }
    found
}

/// Whether an interval ran at what a volume with burst credits has for ever, or above it.
fn at_baseline(interval: &LoadInterval, origin: LoadOrigin, volume: &Resolved) -> bool {
    let limits = &volume.members[0];
    let (operations, bytes) = used(interval, origin, limits);
    let reached = |used: f64, rate: Option<RateLimit>| {
        let rate = rate.filter(RateLimit::has_credits);
        rate.is_some_and(|rate| used >= AT_LIMIT * rate.rate as f64 * f64::from(volume.spec.members()))
    };
    reached(operations, limits.iops) || reached(bytes, limits.throughput)
}

/// Operations and bytes a second that a volume with these limits counts in an interval.
fn used(interval: &LoadInterval, origin: LoadOrigin, limits: &Limits) -> (f64, f64) {
    let unit = u64::from(limits.accounting.unit_bytes);
    let operations = operations_of(interval, origin, unit);
    let bytes = if limits.accounting.whole_units { operations * unit as f64 } else { interval.bytes() };
    (operations, bytes)
}

/// The limits that an interval ran at.
fn at_limits(
    interval: &LoadInterval,
    origin: LoadOrigin,
    today: Option<&Resolved>,
    instance: Option<&InstanceType>,
    found: &mut Reasons,
) {
    let mut counted = None;
    if let Some(volume) = today {
        let (limits, members) = (&volume.members[0], f64::from(volume.spec.members()));
        let (operations, bytes) = used(interval, origin, limits);
        counted = Some((operations, bytes));
        let kind = &volume.spec.volume.kind;
        // Where the credits were not recorded, a volume that has its baseline and waits has none.
        let unknown = interval.credits.is_none() && measured_latency_s(interval).is_some();
        let mut reached = |used: f64, rate: Option<RateLimit>, limit: Limit, name: &str| {
            let Some(rate) = rate else { return };
            let share = |most: u64| used / (most as f64 * members);
            let at_baseline = (AT_LIMIT..=ABOVE_RATE).contains(&share(rate.rate));
            if share(rate.ceiling) >= AT_LIMIT {
                found.add(limit, format!("it ran at the {name} of {kind}"));
            } else if rate.has_credits() && unknown && at_baseline {
                let words = format!("it ran at the baseline {name} of {kind}, as without burst credits");
                found.add(Limit::VolumeCredits, words);
            }
        };
        reached(operations, limits.iops, Limit::VolumeIops, "IOPS");
        reached(bytes, limits.throughput, Limit::VolumeThroughput, "throughput");
    }
    if let Some(instance) = instance {
        let (iops, throughput) = (instance.limits.iops, instance.limits.throughput);
        let (operations, bytes) = counted
            .unwrap_or_else(|| (operations_of(interval, origin, super::demand::SSD_UNIT), interval.bytes()));
        let words = format!("it ran at the EBS limits of {}", instance.name);
        if operations >= AT_LIMIT * iops.ceiling as f64 {
            found.add(Limit::InstanceIops, words.clone());
        }
        if bytes >= AT_LIMIT * throughput.ceiling as f64 {
            found.add(Limit::InstanceThroughput, words);
        }
    }
}

/// The median time of an I/O below the limits, s.
pub(super) fn median_s(volume: &Resolved) -> f64 {
    let service = &volume.members[0].service;
    service.read.quantile(500_000).max(service.write.quantile(500_000)).as_secs_f64()
}

impl Throttled {
    /// The throttled intervals of the load, by their places.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.implied.iter().map(|interval| interval.place)
    }

    /// The load with the most that its throttled intervals may have been in place of what was seen, times `factor`. None where
    /// that is not known.
    ///
    /// # Panics
    /// If the factor is not above zero, or the load is another one.
    #[must_use]
    pub fn implied(&self, load: &VolumeLoad, factor: f64) -> Option<Demand> {
        self.implied_iops?;
        let mut implied = load.clone();
        for Implied { place, like, times } in &self.implied {
            let like = load.intervals[*like];
            let interval = &mut implied.intervals[*place];
            interval.reads = like.reads * times;
            interval.writes = like.writes * times;
            interval.read_bytes = like.read_bytes * times;
            interval.written_bytes = like.written_bytes * times;
        }
        Some(Demand::from_origin(&implied, self.origin, factor))
    }
}
