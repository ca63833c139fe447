//! Forecasts of burst credits: when they end, at which load, and when they are full again.
//!
//! The law is the bucket's own: [`RateLimit::credits_end_s`] for an even load, and [`BurstBucket::flow`] minute by minute for the load of
//! yesterday. The load is what the credits themselves show: they earn the rate and pay for what is counted. So it has what the limit
//! counts, merged and split as the volume does it, and not what the kernel counts.

use ebbtide_volume::{BurstBucket, Nanos, RateLimit};

use crate::alarm::window::Window;

/// Length of a step. The shares of the credits differ by too little within a second.
const STEP: Nanos = Nanos::from_secs(10);
/// Over a longer gap nothing is known of the load.
const LONGEST_STEP: Nanos = Nanos::from_secs(180);
/// The present load is the mean of this time.
const PRESENT: Nanos = Nanos::from_secs(300);
/// The load that a view shows is the mean of this time, or of what was seen of it.
const RECENT: Nanos = Nanos::from_secs(60);
/// The load that goes on is the mean of this time.
const SUSTAINED: Nanos = Nanos::from_secs(1_800);
/// The least of the present load that has to be seen.
const LEAST_SEEN_S: f64 = 60.0;
/// Beyond these shares a bucket is full, or empty, and its level shows no load.
const FULL: f64 = 0.999_999;
const EMPTY: f64 = 0.000_01;

const MINUTES_OF_DAY: u64 = 1_440;
/// Minutes of a day that have to be known for a forecast by it.
const LEAST_MINUTES: usize = 1_200;
/// How far a forecast by yesterday looks ahead, minutes: a week of such days.
const HORIZON_MINUTES: u64 = 7 * MINUTES_OF_DAY;

/// What is forecast of the burst credits of a volume or an instance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CreditForecast {
    /// The limit that has them.
    pub limit: RateLimit,
    /// Share that is left, 0 to 1.
    pub share: f64,
    /// Load of the last 5 minutes, in units of the limit a second; None: too little was seen.
    pub load: Option<f64>,
    /// Seconds of the last 5 minutes that were seen: up to a step of 10 s more, at whose ends the credits are compared.
    pub load_seen_s: f64,
    /// Seconds until they end at this load; None: they are not being spent.
    pub ends_s: Option<f64>,
    /// The same at the mean load of the last minute, or of what was seen of it.
    pub recent_ends_s: Option<f64>,
    /// The same at the mean load of the last 30 minutes.
    pub sustained_ends_s: Option<f64>,
    /// Seconds of the last 30 minutes that were seen.
    pub sustained_seen_s: f64,
    /// Whether the load of yesterday is known.
    pub knows_yesterday: bool,
    /// Seconds until they end, if the load goes on as it did yesterday from this hour on; None: not within a week of such days.
    pub yesterday_ends_s: Option<f64>,
    /// Seconds until they are full again without any load.
    pub full_s: f64,
}

/// What is kept of the burst credits.
#[derive(Debug, Clone)]
pub(crate) struct CreditHistory {
    limit: RateLimit,
    /// Where the step that goes on has begun.
    mark: Option<Mark>,
    /// The newest reading.
    latest: Option<Mark>,
    /// Load and length of each step.
    loads: Window<(f64, f64)>,
    day: DayProfile,
    /// When the forecast by yesterday was made, and its seconds.
    yesterday: Option<(Nanos, Option<f64>)>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    /// By the clock of the counters: what was read some seconds before it is looked at is not of a longer time.
    read: Nanos,
    share: f64,
    counted: u64,
}

impl CreditHistory {
    pub(crate) fn new(limit: RateLimit) -> Self {
        let day = DayProfile::new();
        let loads = Window::new(SUSTAINED, Nanos::ZERO);
        Self { limit, mark: None, latest: None, loads, day, yesterday: None }
    }

    /// Forgets the counters, not the day: they have begun again.
    pub(crate) fn reset(&mut self) {
        (self.mark, self.latest) = (None, None);
        self.loads.clear();
    }

    /// Takes another limit, as after a modification. The loads of the day stay true where the limit counts the same.
    pub(crate) fn set_limit(&mut self, limit: RateLimit) {
        if self.limit != limit {
            self.limit = limit;
            self.reset();
            self.yesterday = None;
        }
    }

    /// Takes the share that is left, and what the limit has counted since the counters began, as they were `read` by their own clock.
    pub(crate) fn push(&mut self, now: Nanos, read: Nanos, share: f64, counted: u64) {
        let here = Mark { read, share, counted };
        self.latest = Some(here);
        let Some(mark) = self.mark else {
            self.mark = Some(here);
            return;
        };
        let passed = read.since(mark.read);
        if passed > LONGEST_STEP || counted < mark.counted {
            self.mark = Some(here);
            self.loads.clear();
            return;
        }
        if passed < STEP {
            return;
        }
        self.mark = Some(here);
        let (load, seconds) = self.step(mark, here);
        self.loads.push(now, (load, seconds));
        self.day.add(now, load, seconds);
    }

    /// The load between two marks, and the seconds.
    fn step(&self, from: Mark, to: Mark) -> (f64, f64) {
        let seconds = to.read.since(from.read).as_secs_f64();
        (self.load(from, to, seconds), seconds)
    }

    /// The load between two marks. A full or an empty bucket shows none: there the counters have to do.
    fn load(&self, from: Mark, to: Mark, seconds: f64) -> f64 {
        let rate = self.limit.rate as f64;
        let counted = (to.counted - from.counted) as f64 / seconds;
        if from.share > FULL && to.share > FULL {
            return counted.min(rate);
        }
        if from.share < EMPTY && to.share < EMPTY {
            return counted.max(rate);
        }
        let spent = (from.share - to.share) * self.limit.credits as f64 / seconds;
        (rate + spent).max(0.0)
    }

    /// Mean load of a span before now, and how many seconds of it were seen: whole steps, and as much as there is of the one that goes on.
    fn mean(&self, now: Nanos, span: Nanos) -> Option<(f64, f64)> {
        let recent = self.loads.iter().rev().take_while(|(time, _)| now.since(*time) < span);
        let begun = self.mark.zip(self.latest).filter(|(mark, latest)| latest.read > mark.read);
        let steps = recent.map(|(_, step)| *step).chain(begun.map(|(mark, latest)| self.step(mark, latest)));
        let (sum, seconds) =
            steps.fold((0.0, 0.0), |(sum, total), (load, seconds)| (sum + load * seconds, total + seconds));
        (seconds > 0.0).then(|| (sum / seconds, seconds))
    }

    /// The forecast now; None before the first reading.
    pub(crate) fn forecast(&mut self, now: Nanos) -> Option<CreditForecast> {
        let share = self.latest?.share;
        let present = self.mean(now, PRESENT).filter(|(_, seconds)| *seconds >= LEAST_SEEN_S);
        let sustained = self.mean(now, SUSTAINED);
        let ends =
            |mean: Option<(f64, f64)>| mean.and_then(|(load, _)| self.limit.credits_end_s(share, load));
        let recent_ends_s = ends(self.mean(now, RECENT));
        let (ends_s, sustained_ends_s) = (ends(present), ends(sustained));
        let yesterday = self.by_yesterday(now, share);
        Some(CreditForecast {
            limit: self.limit,
            share,
            load: present.map(|(load, _)| load),
            load_seen_s: present.map_or(0.0, |(_, seconds)| seconds),
            ends_s,
            recent_ends_s,
            sustained_ends_s,
            sustained_seen_s: sustained.map_or(0.0, |(_, seconds)| seconds),
            knows_yesterday: yesterday.is_some(),
            yesterday_ends_s: yesterday.flatten(),
            full_s: self.limit.credits_full_s(share).unwrap_or(0.0),
        })
    }

    /// The forecast by yesterday, made once a minute; None: yesterday is not known.
    fn by_yesterday(&mut self, now: Nanos, share: f64) -> Option<Option<f64>> {
        let is_old = self.yesterday.is_none_or(|(made, _)| now.since(made) >= Nanos::from_secs(60));
        if is_old {
            let loads = self.day.ahead_of(now)?;
            self.yesterday = Some((now, replay(self.limit, share, &loads)));
        }
        let (made, ends_s) = self.yesterday?;
        Some(ends_s.map(|seconds| (seconds - now.since(made).as_secs_f64()).max(0.0)))
    }
}

/// Seconds until the credits end under loads by the minute, which begin again at their end; None: not within the horizon.
fn replay(limit: RateLimit, share: f64, loads: &[f64]) -> Option<f64> {
    let mut bucket = BurstBucket::new(limit);
    bucket.set_credit_share(share, Nanos::ZERO);
    for (minute, load) in (0..HORIZON_MINUTES).zip(loads.iter().cycle()) {
        let (from, to) = (Nanos::from_secs(minute * 60), Nanos::from_secs(minute * 60 + 60));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most the ceiling of a minute, and not below 0"
        )]
        let units = (load.clamp(0.0, limit.ceiling as f64) * 60.0).round() as u64;
        let line = bucket.flow(units, from, to).credits?;
        if line.at_end >= 0 {
            // Spare time is below zero: where the line from one end of the minute to the other crosses it, nothing is left.
            let spare = (-line.at_start).max(0) as f64;
            let into = spare / (spare + line.at_end as f64).max(1.0);
            return Some(from.as_secs_f64() + 60.0 * into);
        }
    }
    None
}

/// The mean load of each minute of the last day.
#[derive(Debug, Clone)]
struct DayProfile {
    /// By the number of the minute, modulo a day: load times seconds, and seconds.
    minutes: Vec<(f64, f64)>,
    /// The number of the latest minute.
    latest: u64,
}

impl DayProfile {
    fn new() -> Self {
        Self { minutes: vec![(0.0, 0.0); place(MINUTES_OF_DAY)], latest: 0 }
    }

    fn add(&mut self, now: Nanos, load: f64, seconds: f64) {
        let minute = now.0 / Nanos::from_secs(60).0;
        // Minutes that were not seen are not those of the day before.
        let skipped = minute.saturating_sub(self.latest).min(MINUTES_OF_DAY);
        for number in 0..skipped {
            self.minutes[place((minute - number) % MINUTES_OF_DAY)] = (0.0, 0.0);
        }
        self.latest = self.latest.max(minute);
        let entry = &mut self.minutes[place(minute % MINUTES_OF_DAY)];
        *entry = (entry.0 + load * seconds, entry.1 + seconds);
    }

    /// The loads from yesterday's minute of now on, of a whole day; None: too few are known. A minute that is not known has the load of
    /// the one before it.
    fn ahead_of(&self, now: Nanos) -> Option<Vec<f64>> {
        let known = self.minutes.iter().filter(|(_, seconds)| *seconds > 0.0).count();
        if known < LEAST_MINUTES {
            return None;
        }
        let minute = now.0 / Nanos::from_secs(60).0;
        let ahead = (0..MINUTES_OF_DAY).map(|number| self.minutes[place((minute + number) % MINUTES_OF_DAY)]);
        let mean = |(sum, seconds): (f64, f64)| (seconds > 0.0).then(|| sum / seconds);
        let first = ahead.clone().find_map(mean)?;
        let filled = ahead.scan(first, |last, entry| {
            *last = mean(entry).unwrap_or(*last);
            Some(*last)
        });
        Some(filled.collect())
    }
}

/// A minute of a day as a place in the profile.
fn place(minute: u64) -> usize {
    usize::try_from(minute).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: RateLimit = RateLimit { rate: 300, ceiling: 3_000, allowance: 0, credits: 5_400_000 };

    #[test]
    fn a_replay_of_an_even_load_ends_when_the_formula_says() {
        for (load, share) in [(812.0, 1.0), (3_000.0, 0.5), (500.0, 0.01), (9_000.0, 0.25)] {
            let formula = LIMIT.credits_end_s(share, load).unwrap();
            let replayed = replay(LIMIT, share, &[load]).unwrap();
            assert!((replayed - formula).abs() < 1.0, "{load}: {replayed} s against {formula} s");
        }
        assert_eq!(replay(LIMIT, 1.0, &[300.0]), None);
        assert_eq!(replay(LIMIT, 1.0, &[0.0, 500.0]), None, "they come back in between");
    }

    #[test]
    fn a_full_bucket_shows_no_load_and_the_counters_do() {
        let mut history = CreditHistory::new(LIMIT);
        for step in 0..60 {
            let now = Nanos::from_secs(step * 10);
            history.push(now, now, 1.0, step * 10 * 100);
        }
        let forecast = history.forecast(Nanos::from_secs(590)).unwrap();
        assert_eq!((forecast.load, forecast.ends_s), (Some(100.0), None));
        assert!(!forecast.knows_yesterday);
    }

    #[test]
    fn the_end_at_the_load_of_some_seconds_is_known_at_once_and_alarms_wait_for_a_minute() {
        let mut history = CreditHistory::new(LIMIT);
        let share = |second: u64| 0.03 - (second * 1_200) as f64 / LIMIT.credits as f64;
        for second in 0..=61 {
            // It is looked at 3 s after it was read, at the end.
            let now = Nanos::from_secs(second + if second == 61 { 3 } else { 0 });
            history.push(now, Nanos::from_secs(second), share(second), second * 1_500);
            let forecast = history.forecast(now).unwrap();
            let expected = LIMIT.credits_end_s(share(second), 1_500.0).unwrap();
            let recent = forecast.recent_ends_s;
            assert_eq!(recent.is_some(), second > 0, "at {second} s");
            assert!(
                recent.is_none_or(|ends_s| (ends_s - expected).abs() < 0.01),
                "at {second} s: {recent:?}"
            );
            assert_eq!(forecast.load.is_some(), second >= 60, "at {second} s");
        }
        let forecast = history.forecast(Nanos::from_secs(64)).unwrap();
        assert!((forecast.load_seen_s - 61.0).abs() < 1e-9, "{forecast:?}");
    }

    #[test]
    fn a_counter_that_begins_again_and_a_gap_leave_no_load() {
        let mut history = CreditHistory::new(LIMIT);
        let push = |history: &mut CreditHistory, second: u64, share: f64, counted: u64| {
            let now = Nanos::from_secs(second);
            history.push(now, now, share, counted);
            history.forecast(now).and_then(|forecast| forecast.load)
        };
        for second in 0..20 {
            push(&mut history, second * 10, 1.0, second * 1_000);
        }
        assert!(push(&mut history, 200, 1.0, 20_000).is_some());
        assert_eq!(push(&mut history, 210, 1.0, 5), None, "it began again");
        for second in 22..40 {
            push(&mut history, second * 10, 1.0, second * 1_000);
        }
        assert_eq!(push(&mut history, 4_000, 0.5, 100_000), None, "an hour was not seen");
    }

    #[test]
    fn minutes_that_were_not_seen_are_not_those_of_the_day_before() {
        let mut day = DayProfile::new();
        for minute in 0..1_440 {
            day.add(Nanos::from_secs(minute * 60), 100.0, 60.0);
        }
        assert_eq!(day.ahead_of(Nanos::from_secs(1_440 * 60)).map(|loads| loads.len()), Some(1_440));
        // Five hours later 1,139 minutes are known, and the one of now.
        day.add(Nanos::from_secs((1_440 + 300) * 60), 100.0, 60.0);
        assert_eq!(day.ahead_of(Nanos::from_secs((1_440 + 300) * 60)), None);
    }
}
