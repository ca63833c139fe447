//! Forecasts of credits against the model of the volume, in virtual time: how far the end is from the forecast at half the time.

use ebbtide_volume::{Accounting, Io, Limits, Merge, Nanos, Op, RateLimit, Volume};
use ebbtide_watch::alarm::{AlarmState, CreditForecast};
use ebbtide_watch::reading::{ReadingSet, Throttling, VolumeLimits, VolumeReading};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::support::{Watched, whole};

const SEED: u64 = 20_261_128;
/// Seconds between two readings.
const STEP: u64 = 10;

/// A volume under a load, watched until its credits end.
struct Watch {
    watched: Watched,
    volume: Volume,
    draws: Xoshiro256PlusPlus,
    len: u32,
    submitted: u64,
    /// Seconds since the beginning, with the forecast there.
    forecasts: Vec<(f64, CreditForecast)>,
}

impl Watch {
    fn new(limits: Limits, len: u32) -> Self {
        let volume = Volume::new(limits, Nanos::ZERO).unwrap();
        let draws = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut watched = Watched::new();
        watched.step = STEP;
        Self { watched, volume, draws, len, submitted: 0, forecasts: Vec::new() }
    }

    /// Loads the volume with so many operations a second, by the second, until the credits end or the time is over. The second at
    /// which they end; None: they do not.
    fn until_the_end(&mut self, seconds: u64, load: impl Fn(f64) -> f64) -> Option<f64> {
        for start in (0..seconds).step_by(usize::try_from(STEP).unwrap()) {
            self.submit(start, whole(load(start as f64) * STEP as f64));
            let end = start + STEP;
            self.look(end);
            if self.volume.credit_share(Nanos::from_secs(end)).unwrap() < 1e-4 {
                return Some(end as f64);
            }
        }
        None
    }

    fn submit(&mut self, start: u64, number: u64) {
        let slots = self.volume.limits().size_bytes / u64::from(self.len) / 2;
        for place in 0..number {
            let now = Nanos(Nanos::from_secs(start).0 + Nanos::from_secs(STEP).0 / number * place);
            self.submitted += 1;
            // Far apart: no two operations are neighbours.
            let slot = self.submitted.wrapping_mul(0x9E37_79B9_7F4A_7C15) % slots * 2;
            let io = Io { op: Op::Write, offset: slot * u64::from(self.len), len: self.len };
            self.volume.submit(io, now, &mut self.draws, None);
        }
    }

    fn look(&mut self, second: u64) {
        let limits = VolumeLimits::of_model(self.volume.limits());
        let reading = VolumeReading {
            name: "modelled".to_owned(),
            epoch: "1".to_owned(),
            stats: self.volume.stats(Nanos::from_secs(second)),
            throttling: Throttling::Counted,
            limits,
        };
        self.watched.second += STEP;
        self.watched.look(ReadingSet { volumes: vec![reading], ..ReadingSet::default() });
        if let Some(forecast) = self.watched.alarms.credit_forecast("modelled") {
            self.forecasts.push((second as f64, forecast));
        }
    }

    /// The forecast at half the time from a second to the end.
    fn at_half(&self, from: f64, end: f64) -> (f64, CreditForecast) {
        let half = f64::midpoint(from, end);
        *self.forecasts.iter().find(|(second, _)| *second >= half).unwrap()
    }

    /// Seconds before the end at which a rule went into ALARM for the first time.
    fn warned_before(&self, rule: &str, end: f64) -> f64 {
        let event =
            self.watched.events.iter().find(|event| event.rule == rule && event.to == AlarmState::Alarm);
        let start = Watched::new().moment().unix_s;
        end - (event.unwrap().unix_s - start) as f64
    }
}

/// A gp2 a tenth as large as one of 100 GiB: the same times with a tenth of the operations.
fn small_gp2(divided_by: u64) -> Limits {
    let iops = RateLimit {
        rate: 300 / divided_by,
        ceiling: 3_000 / divided_by,
        allowance: 0,
        credits: 5_400_000 / divided_by,
    };
    Limits { iops: Some(iops), ..Limits::unlimited(1 << 40) }
}

/// How far a forecast is from the end, as a share of the time that was left.
fn error(forecast: f64, second: f64, end: f64) -> f64 {
    ((forecast - (end - second)) / (end - second)).abs()
}

#[test]
fn under_a_steady_load_the_end_is_within_5_percent_at_half_the_time() {
    for load in [40.0, 81.2, 150.0, 299.0] {
        let mut watch = Watch::new(small_gp2(10), 4_096);
        let end = watch.until_the_end(200_000, |_| load).unwrap();
        let (second, forecast) = watch.at_half(0.0, end);
        let error = error(forecast.ends_s.unwrap(), second, end);
        assert!(error < 0.05, "{load} IOPS: {:.1}% off at {second} s of {end} s", error * 100.0);
        let warned = watch.warned_before("credits_end", end);
        assert!(warned > 600.0, "{load} IOPS: {warned} s before the end");
        // An hour ahead where the credits last for longer than that.
        assert!(end < 7_200.0 || (3_000.0..3_700.0).contains(&warned), "{load} IOPS: {warned} s of {end} s");
    }
}

#[test]
fn a_load_that_jumps_is_forecast_from_its_last_five_minutes() {
    let mut watch = Watch::new(small_gp2(10), 4_096);
    let end = watch.until_the_end(50_000, |second| if second < 3_000.0 { 60.0 } else { 120.0 }).unwrap();
    let (second, forecast) = watch.at_half(3_000.0, end);
    let error = error(forecast.ends_s.unwrap(), second, end);
    assert!(error < 0.05, "{:.1}% off at {second} s of {end} s", error * 100.0);
}

#[test]
fn small_reads_and_writes_of_an_st1_cost_whole_units_and_the_forecast_knows() {
    // 64 KiB at random cost 1 MiB each: the bytes that the kernel counts are a sixteenth.
    let throughput = RateLimit { rate: 4 << 20, ceiling: 25 << 20, allowance: 0, credits: 20 << 30 };
    let accounting = Accounting {
        unit_bytes: 1 << 20,
        merge: Merge::Contiguous,
        whole_units: true,
        ..Accounting::per_io()
    };
    let limits = Limits { throughput: Some(throughput), accounting, ..Limits::unlimited(1 << 40) };
    let mut watch = Watch::new(limits, 64 << 10);
    let end = watch.until_the_end(20_000, |_| 10.0).unwrap();
    assert!((end - 20.0 * 1_024.0 / 6.0).abs() < 60.0, "{end} s");
    let (second, forecast) = watch.at_half(0.0, end);
    let error = error(forecast.ends_s.unwrap(), second, end);
    assert!(error < 0.05, "{:.1}% off", error * 100.0);
}

/// A load that rises and falls with the day, and differs by up to a tenth from moment to moment.
fn wave(mean: f64, height: f64) -> impl Fn(f64) -> f64 {
    move |second| {
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(SEED ^ whole(second));
        let noise = 0.9 + 0.2 * f64::from(draws.next_u32()) / f64::from(u32::MAX);
        (mean + height * (second / 86_400.0 * std::f64::consts::TAU).sin()) * noise
    }
}

#[test]
fn under_a_daily_wave_the_end_is_within_15_percent_at_half_the_time() {
    const DAY: f64 = 86_400.0;
    // The credits survive the first peak, and end in the second or the third.
    for (mean, height) in [(3.2, 1.5), (3.2, 1.0)] {
        let mut watch = Watch::new(small_gp2(100), 4_096);
        let end = watch.until_the_end(4 * 86_400, wave(mean, height)).unwrap();
        assert!(end > 1.2 * DAY, "{mean} and {height}: they end at {end} s already");
        let (second, forecast) = watch.at_half(DAY, end);
        assert!(forecast.knows_yesterday);
        let ends_s = forecast.yesterday_ends_s.unwrap();
        let error = error(ends_s, second, end);
        assert!(
            error < 0.15,
            "{mean} and {height}: {:.1}% off at {second} s of {end} s: {ends_s}",
            error * 100.0
        );
        let warned = watch.warned_before("credits_end_yesterday", end);
        assert!(warned > 4.0 * 3_600.0, "{mean} and {height}: {warned} s before the end");
    }
}

#[test]
fn a_daily_wave_that_the_credits_survive_does_not_alarm() {
    let mut watch = Watch::new(small_gp2(100), 4_096);
    assert_eq!(watch.until_the_end(3 * 86_400, wave(2.6, 1.3)), None);
    let raised = watch.watched.raised();
    assert!(raised.is_empty(), "{raised:?}");
}

#[test]
fn the_first_alarm_says_when_and_at_which_load() {
    let mut watch = Watch::new(small_gp2(10), 4_096);
    watch.until_the_end(30_000, |_| 81.2).unwrap();
    let event = watch.watched.events.iter().find(|event| event.to == AlarmState::Alarm).unwrap();
    assert_eq!(
        (event.rule, event.subject.name.as_str(), event.check),
        ("credits_end", "modelled", Some("E02"))
    );
    let words = ["credits of modelled (", " end at 0", "at the 81 IOPS of the last 5 min", "after it stops"];
    for part in words {
        assert!(event.reason.contains(part), "{part} is not in: {}", event.reason);
    }
    assert!(event.fix.contains("gp3"), "{}", event.fix);
}
