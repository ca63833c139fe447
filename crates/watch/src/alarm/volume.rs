//! What is kept of volumes, devices and instances, and what it says of their rules.

use ebbtide_text::{figure, latency, percent, rough, whole};
use ebbtide_volume::{Nanos, RateLimit, Stats, VolumeInterval};

use crate::alarm::credit::{CreditForecast, CreditHistory};
use crate::alarm::credit_judge::{CreditCase, CreditUse};
use crate::alarm::event::Judgement;
use crate::alarm::floor::{LEAST_OPS, LearnedFloor};
use crate::alarm::rule::{RuleId, Verdict};
use crate::alarm::table::rule;
use crate::alarm::window::Window;
use crate::reading::{ExceededReading, ExceededTimes, InstanceReading, LatencyFloor, Moment, VolumeReading};

/// Means are of this time.
const MINUTE: Nanos = Nanos::from_secs(60);
/// Less than this is no mean.
const LEAST_SPAN: Nanos = Nanos::from_secs(10);
/// Over a longer gap two readings are not compared.
const LONGEST_GAP: Nanos = Nanos::from_secs(120);
/// An operation that takes less is no trouble, s.
const SHORT_S: f64 = 0.002;
/// From this mean number on, a request always waits.
const ALWAYS_WAITS: f64 = 0.9;
/// A smaller share of idle time is an error of its clocks.
const IDLE: f64 = 0.05;
/// Below this share of the credits the baseline is what is allowed.
const NO_CREDITS: f64 = 0.005;

/// What is kept of a volume.
#[derive(Debug, Clone)]
pub(crate) struct VolumeHistory {
    epoch: String,
    last: Option<(Nanos, Stats)>,
    minute: Window<Stats>,
    /// Times over limits of the last minute, by the times at which they were read.
    exceeded: Window<ExceededTimes>,
    credits: Option<CreditHistory>,
    learned: LearnedFloor,
}

/// The shares of the last minute in which limits held requests back, and of how many seconds they are.
#[derive(Debug, Clone, Copy)]
struct ExceededMinute {
    /// Over the volume's IOPS and throughput, then over those of the instance.
    shares: [f64; 4],
    seconds: f64,
}

impl VolumeHistory {
    pub(crate) fn new() -> Self {
        Self {
            epoch: String::new(),
            last: None,
            minute: Window::new(MINUTE, Nanos::ZERO),
            exceeded: Window::new(MINUTE, Nanos::ZERO),
            credits: None,
            learned: LearnedFloor::new(),
        }
    }

    /// What is forecast of the credits; None without any.
    pub(crate) fn credit_forecast(&mut self, now: Nanos) -> Option<CreditForecast> {
        self.credits.as_mut()?.forecast(now)
    }

    /// The floor of the latency: the given one, or the learned one.
    pub(crate) fn floor(&self, reading: &VolumeReading, now: Nanos) -> Option<LatencyFloor> {
        reading.limits.floor.or_else(|| self.learned.floor(now))
    }

    /// Takes a reading, and says what it means for each rule that applies.
    pub(crate) fn judge(&mut self, moment: Moment, reading: &VolumeReading) -> Vec<(RuleId, Judgement)> {
        let now = moment.elapsed;
        let step = self.take(now, reading);
        let minute = self.last_minute();
        if let Some(minute) = &minute {
            self.learned.push(now, minute);
        }
        let floor = self.floor(reading, now);
        let exceeded = self.last_exceeded();
        let seen = Seen { reading, minute, exceeded, floor, moment };
        let mut judged = Vec::new();
        if let Some(forecast) = self.credit_forecast(now) {
            judged.extend(seen.credits(&forecast));
        }
        judged.extend(seen.queue().map(|judgement| (RuleId::QueueLength, judgement)));
        if reading.exceeded().is_some() {
            judged.extend(seen.throttled());
        }
        judged.push((RuleId::Latency, seen.latency()));
        judged.push((RuleId::IoStalled, stalled(reading, step)));
        judged
    }

    /// What has grown since the reading before; None at a first one, and where the counters have begun again.
    fn take(&mut self, now: Nanos, reading: &VolumeReading) -> Option<VolumeInterval> {
        let stats = reading.stats;
        let follows = self.last.is_some_and(|(time, last)| {
            self.epoch == reading.epoch && now.since(time) <= LONGEST_GAP && grows(&last, &stats)
        });
        if !follows {
            self.epoch.clone_from(&reading.epoch);
            self.minute.clear();
            self.exceeded.clear();
            if let Some(credits) = &mut self.credits {
                credits.reset();
            }
        }
        self.minute.push(now, stats);
        let before = self.last.replace((now, stats)).filter(|_| follows);
        self.take_exceeded(reading);
        self.take_credits(now, reading);
        before.map(|(_, last)| stats.since(&last)).filter(|step| step.at > Nanos::ZERO)
    }

    /// Takes times over limits that are new. One that is missing leaves a gap, and those after it have grown in the whole time.
    fn take_exceeded(&mut self, reading: &VolumeReading) {
        let Some(now) = reading.exceeded() else { return };
        if let Some((read, times)) = self.exceeded.newest().copied() {
            if now.read == read {
                return;
            }
            if now.shares_since(&ExceededReading { read, times }).is_none() {
                self.exceeded.clear();
            }
        }
        self.exceeded.push(now.read, now.times);
    }

    /// What the last minute was over limits, or as much of it as was seen.
    fn last_exceeded(&self) -> Option<ExceededMinute> {
        let covered = self.exceeded.covered();
        if covered < LEAST_SPAN {
            return None;
        }
        let reading = |entry: &(Nanos, ExceededTimes)| ExceededReading { read: entry.0, times: entry.1 };
        let (first, last) = (reading(self.exceeded.oldest()?), reading(self.exceeded.newest()?));
        Some(ExceededMinute { shares: last.means_since(&first)?, seconds: covered.as_secs_f64() })
    }

    fn take_credits(&mut self, now: Nanos, reading: &VolumeReading) {
        let (Some(limit), Some(share)) = (reading.limits.credited(), reading.stats.credit_share) else {
            self.credits = None;
            return;
        };
        let credits = self.credits.get_or_insert_with(|| CreditHistory::new(limit));
        credits.set_limit(limit);
        let stats = &reading.stats;
        let counted = match credit_use(reading) {
            CreditUse::Operations => stats.consumed_ops,
            CreditUse::Bytes => stats.read.bytes + stats.write.bytes,
        };
        credits.push(now, stats.at, share, counted);
    }

    /// What the last minute was, or as much of it as was seen.
    fn last_minute(&self) -> Option<VolumeInterval> {
        let ((_, first), (_, last)) = (self.minute.oldest()?, self.minute.newest()?);
        let interval = last.since(first);
        (interval.at >= LEAST_SPAN).then_some(interval)
    }
}

/// Whether counters that only grow have not gone back. The idle time of a device is a difference of two clocks, and may.
fn grows(before: &Stats, after: &Stats) -> bool {
    let counters =
        |stats: &Stats| [stats.at.0, stats.read.ops, stats.write.ops, stats.read.bytes, stats.write.bytes];
    counters(before).iter().zip(counters(after)).all(|(before, after)| *before <= after)
}

fn credit_use(reading: &VolumeReading) -> CreditUse {
    let of_operations = reading.limits.iops.is_some_and(|limit| limit.has_credits());
    if of_operations { CreditUse::Operations } else { CreditUse::Bytes }
}

fn unknown(reason: impl Into<String>) -> Judgement {
    Judgement { verdict: Verdict::Unknown, value: None, reason: reason.into(), in_s: None }
}

/// A judgement of a value that is no time ahead.
fn of_value(id: RuleId, value: f64, reason: String) -> Judgement {
    Judgement { verdict: rule(id).threshold.verdict(value), value: Some(value), reason, in_s: None }
}

/// All that is known of a volume at a moment.
struct Seen<'a> {
    reading: &'a VolumeReading,
    minute: Option<VolumeInterval>,
    exceeded: Option<ExceededMinute>,
    floor: Option<LatencyFloor>,
    moment: Moment,
}

impl Seen<'_> {
    fn credits(&self, forecast: &CreditForecast) -> [(RuleId, Judgement); 2] {
        let is_over =
            self.exceeded.is_some_and(|ExceededMinute { shares: [iops, throughput, ..], .. }| {
                iops.max(throughput) >= rule(RuleId::ThrottledVolumeIops).threshold.clear
            });
        let waits = is_over || self.minute.as_ref().is_some_and(|minute| minute.mean_queue() >= ALWAYS_WAITS);
        let name = self.reading.name.as_str();
        let case = CreditCase { name, paid: credit_use(self.reading), forecast, waits, moment: self.moment };
        [
            (RuleId::CreditsEnd, case.at_present(rule(RuleId::CreditsEnd))),
            (RuleId::CreditsEndYesterday, case.by_yesterday(rule(RuleId::CreditsEndYesterday))),
        ]
    }

    /// None where the volume's IOPS are not known, or do not limit it.
    fn queue(&self) -> Option<Judgement> {
        let limit = self.reading.limits.iops?;
        let (Some(minute), Some(floor)) = (&self.minute, self.floor) else {
            return Some(unknown("too little was seen of the queue and of the volume's floor"));
        };
        let allowed = allowed_rate(limit, self.reading.stats.credit_share);
        let operation_s = weighed(minute, floor);
        let need = (allowed * operation_s).max(1.0);
        let queue = minute.mean_queue();
        let reason = format!(
            "{} requests wait on {}, {} times the {} that {} IOPS of {} each need",
            figure(queue),
            self.reading.name,
            figure(queue / need),
            figure(need),
            whole(allowed),
            latency(operation_s * 1e6)
        );
        Some(of_value(RuleId::QueueLength, queue / need, reason))
    }

    fn throttled(&self) -> Vec<(RuleId, Judgement)> {
        let causes = [
            (RuleId::ThrottledVolumeIops, "the volume's IOPS"),
            (RuleId::ThrottledVolumeThroughput, "the volume's throughput"),
            (RuleId::ThrottledInstanceIops, "the instance's IOPS"),
            (RuleId::ThrottledInstanceThroughput, "the instance's throughput"),
        ];
        let judged = causes.into_iter().enumerate().map(|(place, (id, cause))| {
            let (Some(minute), Some(exceeded)) = (&self.minute, &self.exceeded) else {
                return (id, unknown("too little was seen of the volume"));
            };
            let share = exceeded.shares[place];
            let reason = format!(
                "{cause} held requests of {} back for {} of the last {}, at {} IOPS and {}/s",
                self.reading.name,
                percent(share),
                rough(exceeded.seconds),
                whole(minute.per_second(minute.ios())),
                ebbtide_text::bytes(minute.per_second(minute.bytes()))
            );
            (id, of_value(id, share, reason))
        });
        judged.collect()
    }

    fn latency(&self) -> Judgement {
        let (Some(minute), Some(floor)) = (&self.minute, self.floor) else {
            return unknown("too little was seen of the volume to know its floor");
        };
        let kinds = [("reads", minute.read, floor.read_s), ("writes", minute.write, floor.write_s)];
        let busy = kinds.into_iter().filter(|(_, ops, _)| minute.per_second(ops.ops) >= LEAST_OPS);
        let means = busy.map(|(kind, ops, floor_s)| (kind, ops.time.as_secs_f64() / ops.ops as f64, floor_s));
        let worst = means.max_by(|(_, mean, floor), (_, other, other_floor)| {
            (mean / floor).total_cmp(&(other / other_floor))
        });
        let Some((kind, mean_s, floor_s)) = worst else {
            let reason = format!("{} has fewer than 10 reads and 10 writes a second", self.reading.name);
            return Judgement { verdict: Verdict::Clear, value: None, reason, in_s: None };
        };
        let times = mean_s / floor_s;
        let reason = format!(
            "{kind} of {} take {}, {} times the {} of its floor",
            self.reading.name,
            latency(mean_s * 1e6),
            figure(times),
            latency(floor_s * 1e6)
        );
        let judgement = of_value(RuleId::Latency, times, reason);
        if mean_s < SHORT_S {
            // No value that a query would compare with the threshold.
            return Judgement { verdict: Verdict::Clear, value: None, ..judgement };
        }
        judgement
    }
}

/// Operations a second that a limit gives now.
fn allowed_rate(limit: RateLimit, credit_share: Option<f64>) -> f64 {
    let is_held_down = limit.has_credits() && credit_share.is_some_and(|share| share < NO_CREDITS);
    (if is_held_down { limit.rate } else { limit.ceiling }) as f64
}

/// The floor of an operation of the mix of an interval, s.
fn weighed(minute: &VolumeInterval, floor: LatencyFloor) -> f64 {
    let (reads, writes) = (minute.read.ops as f64, minute.write.ops as f64);
    let all = reads + writes;
    if all > 0.0 { (reads * floor.read_s + writes * floor.write_s) / all } else { floor.write_s }
}

/// Whether requests wait and none completed since the reading before. The kernel counts flushes and discards among those that wait: where
/// one of these completes, the device works.
fn stalled(reading: &VolumeReading, step: Option<VolumeInterval>) -> Judgement {
    let Some(step) = step else { return unknown("the volume was read once") };
    let completed = step.ios() + step.flush_ops + step.discard_ops;
    let is_stalled = completed == 0 && step.queue > 0 && step.share(step.idle_time) < IDLE;
    let reason = if is_stalled {
        format!("{} requests wait on {}, and none completes", step.queue, reading.name)
    } else {
        format!("requests on {} complete", reading.name)
    };
    of_value(RuleId::IoStalled, f64::from(u8::from(is_stalled)), reason)
}

/// What is kept of an instance.
#[derive(Debug, Clone)]
pub(crate) struct InstanceHistory {
    operations: Option<CreditHistory>,
    bytes: Option<CreditHistory>,
}

impl InstanceHistory {
    pub(crate) const fn new() -> Self {
        Self { operations: None, bytes: None }
    }

    /// The forecasts of both kinds of credits; None without any.
    pub(crate) fn forecasts(&mut self, now: Nanos) -> [Option<CreditForecast>; 2] {
        [&mut self.operations, &mut self.bytes].map(|history| history.as_mut()?.forecast(now))
    }

    /// Takes a reading, and says when the credits end first; None where the instance has none.
    pub(crate) fn judge(&mut self, moment: Moment, reading: &InstanceReading) -> Option<Judgement> {
        let now = moment.elapsed;
        let kept = [
            (&mut self.operations, reading.limits.iops, reading.io_share),
            (&mut self.bytes, reading.limits.throughput, reading.byte_share),
        ];
        for (history, limit, share) in kept {
            match share.filter(|_| limit.has_credits()) {
                // An instance has no counters of its own: full credits show no load, and none is needed.
                Some(share) => {
                    let credits = history.get_or_insert_with(|| CreditHistory::new(limit));
                    credits.set_limit(limit);
                    credits.push(now, now, share, 0);
                }
                None => *history = None,
            }
        }
        let uses = [CreditUse::Operations, CreditUse::Bytes];
        let forecasts = self.forecasts(now);
        let row = rule(RuleId::InstanceCreditsEnd);
        let judged = forecasts.iter().zip(uses).filter_map(|(forecast, paid)| {
            let forecast = forecast.as_ref()?;
            let case = CreditCase { name: &reading.name, paid, forecast, waits: true, moment };
            Some(case.at_present(row))
        });
        judged.min_by(|a, b| order(a).total_cmp(&order(b)))
    }
}

/// Judgements that end sooner come first, and those that know nothing last.
fn order(judgement: &Judgement) -> f64 {
    match judgement.verdict {
        Verdict::Unknown => f64::MAX,
        _ => judgement.value.unwrap_or(1e300),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{DeviceReading, VolumeLimits};

    /// What two readings of a device a second apart say of `io_stalled`.
    fn device_stalls(busy_ms: u64, discards: u64, queue: u64) -> Verdict {
        let device = |busy: Nanos, discard_ops: u64| DeviceReading {
            name: "nvme1n1".to_owned(),
            identity: String::new(),
            read: ebbtide_volume::OpStats::default(),
            write: ebbtide_volume::OpStats::default(),
            flush_ops: 0,
            discard_ops,
            queue,
            busy,
            queue_time: Nanos::ZERO,
            exceeded: None,
            credit_share: None,
            limits: VolumeLimits::default(),
        };
        // Busy for a month before the program began.
        let month = Nanos::from_secs(30 * 86_400);
        let mut history = VolumeHistory::new();
        let mut verdict = Verdict::Unknown;
        for (second, grown) in [(1, 0), (2, 1)] {
            let moment = Moment { elapsed: Nanos::from_secs(second), ..Moment::default() };
            let busy = month + Nanos::from_ms(busy_ms * grown);
            let reading = device(busy, discards * grown).as_volume(moment.elapsed);
            let judged = history.judge(moment, &reading);
            let judgement = judged.into_iter().find(|(id, _)| *id == RuleId::IoStalled);
            verdict = judgement.map_or(Verdict::Unknown, |(_, judgement)| judgement.verdict);
        }
        verdict
    }

    #[test]
    fn a_device_stalls_where_it_is_busy_all_the_time_and_nothing_completes() {
        assert_eq!(device_stalls(1_000, 0, 1), Verdict::Raise);
        assert_eq!(device_stalls(2, 0, 1), Verdict::Clear, "a request that has just come");
        assert_eq!(device_stalls(1_000, 1, 1), Verdict::Clear, "it discards");
        assert_eq!(device_stalls(1_000, 0, 0), Verdict::Clear, "nothing waits");
    }

    #[test]
    fn what_is_allowed_is_the_baseline_once_the_credits_have_ended() {
        let limit = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };
        let rates = [Some(0.5), Some(0.001), None].map(|share| allowed_rate(limit, share));
        assert_eq!(rates.map(whole), ["3,000", "300", "3,000"]);
        assert_eq!(whole(allowed_rate(RateLimit::flat(6_000), Some(0.0))), "6,000");
    }
}
