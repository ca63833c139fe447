//! When a file system is full: growth, with the saw-tooth of what is purged taken out.
//!
//! Binary logs grow and are purged, so that used space rises and falls back. A line through the rise says each day that the disk is full
//! by night. Here a fall is a *purge*, and the space before it a *peak*. After a purge, growth up to the last peak is what was there
//! before; what counts is how the peaks grow, and growth beyond them.

use ebbtide_text::{percent, rough, size};
use ebbtide_volume::Nanos;

use crate::alarm::event::{Judgement, time_of_day};
use crate::alarm::rule::{RuleId, Verdict};
use crate::alarm::table::rule;
use crate::alarm::window::Window;
use crate::reading::{FileSystemReading, Moment};

/// The present growth is that of this time.
const PRESENT: Nanos = Nanos::from_secs(1_800);
/// The growth that goes on is that of this time.
const SUSTAINED_S: f64 = 10_800.0;
/// Purges are remembered for this time: of binary logs that are purged once a day three peaks are seen.
const REMEMBERED: Nanos = Nanos::from_secs(3 * 86_400);
/// Less than this shows no growth, s.
const LEAST_SPAN_S: f64 = 900.0;
/// A fall of less than this share of the file system is no purge.
const PURGE: f64 = 0.005;
/// A rise above the last peak of less than this share is the same peak.
const SAME_PEAK: f64 = 0.01;
/// With less than this share free, it is full whatever its growth is.
const NOTHING_FREE: f64 = 0.03;
/// With so many bytes free, it is not: 3% of a large volume are much.
const ENOUGH_FREE_BYTES: u64 = 32 << 30;
/// With more than this share free, a day is no haste.
const MUCH_FREE: f64 = 0.4;

/// What is forecast of a file system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpaceForecast {
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Bytes that are used.
    pub used_bytes: u64,
    /// Growth that counts, bytes a second; 0 where nothing grows beyond what was purged before.
    pub growth_per_s: f64,
    /// Purges that were seen in the last three days.
    pub purges: usize,
    /// Seconds until it is full; None: not at this growth.
    pub full_in_s: Option<f64>,
}

/// What is kept of a file system.
#[derive(Debug, Clone)]
pub(crate) struct SpaceHistory {
    size_bytes: u64,
    /// Used bytes by the minute.
    present: Window<f64>,
    /// Used bytes by ten minutes.
    long: Window<f64>,
}

impl SpaceHistory {
    pub(crate) const fn new() -> Self {
        let (minute, ten_minutes) = (Nanos::from_secs(60), Nanos::from_secs(600));
        Self {
            size_bytes: 0,
            present: Window::new(PRESENT, minute),
            long: Window::new(REMEMBERED, ten_minutes),
        }
    }

    /// Takes a reading. What was used before the file system got another size is no growth.
    pub(crate) fn push(&mut self, now: Nanos, reading: &FileSystemReading) {
        if reading.size_bytes != self.size_bytes {
            self.size_bytes = reading.size_bytes;
            self.present.clear();
            self.long.clear();
        }
        let used = reading.size_bytes.saturating_sub(reading.free_bytes) as f64;
        self.present.push(now, used);
        self.long.push(now, used);
    }

    /// The forecast; None: too little was seen.
    pub(crate) fn forecast(&self, now: Nanos, reading: &FileSystemReading) -> Option<SpaceForecast> {
        let size = reading.size_bytes as f64;
        let used = size - reading.free_bytes.min(reading.size_bytes) as f64;
        let peaks = self.peaks(PURGE * size);
        let present = since_a_fall(&points(&self.present), PURGE * size);
        let present = slope(&present).filter(|_| self.present.covered().as_secs_f64() >= LEAST_SPAN_S)?;
        let long = points(&self.long);
        let latest_s = long.last()?.0;
        let recent: Vec<(f64, f64)> =
            long.into_iter().filter(|(time, _)| latest_s - time <= SUSTAINED_S).collect();
        // A rise of both: a copy of some minutes is in the first, and what ended an hour ago in the second.
        let sustained = slope(&since_a_fall(&recent, PURGE * size)).unwrap_or(present);
        let rise = present.min(sustained).max(0.0);
        let growth = slope(&peaks).unwrap_or(0.0).max(0.0);
        // The last peak, moved to now by the growth of the peaks.
        let peak = peaks.last().map(|(time, peak)| peak + growth * (now.as_secs_f64() - time));
        let (growth_per_s, full_in_s) = match peak {
            Some(peak) if used <= peak + SAME_PEAK * size => (growth, time_to(size - peak, growth)),
            _ => (rise, time_to(size - used, rise)),
        };
        Some(SpaceForecast {
            size_bytes: reading.size_bytes,
            used_bytes: reading.size_bytes.saturating_sub(reading.free_bytes),
            growth_per_s,
            purges: peaks.len(),
            full_in_s,
        })
    }

    /// The used space before each purge, with its time.
    fn peaks(&self, least: f64) -> Vec<(f64, f64)> {
        let long = points(&self.long);
        let mut peaks = Vec::new();
        let mut highest: Option<(f64, f64)> = None;
        for point in long {
            match highest {
                Some(peak) if peak.1 - point.1 > least => {
                    peaks.push(peak);
                    highest = Some(point);
                }
                // A file system that is purged little by little stays where it is: its highest point is not new each time.
                Some(peak) if peak.1 > point.1 => {}
                _ => highest = Some(point),
            }
        }
        peaks
    }

    /// Takes a reading, and says what it means for both rules.
    pub(crate) fn judge(&mut self, moment: Moment, reading: &FileSystemReading) -> [(RuleId, Judgement); 2] {
        self.push(moment.elapsed, reading);
        let free = reading.free_bytes as f64 / (reading.size_bytes as f64).max(1.0);
        let rows = [RuleId::DiskFull, RuleId::DiskFills];
        if free < NOTHING_FREE && reading.free_bytes < ENOUGH_FREE_BYTES {
            let reason = format!(
                "{} of {} is free on {}",
                percent(free),
                size(reading.size_bytes),
                reading.mount_point
            );
            return rows.map(|id| {
                let reason = reason.clone();
                (id, Judgement { verdict: Verdict::Raise, value: Some(0.0), reason, in_s: None })
            });
        }
        let Some(forecast) = self.forecast(moment.elapsed, reading) else {
            let reason = format!("less than 15 minutes of {} were seen", reading.mount_point);
            return rows.map(|id| {
                let reason = reason.clone();
                (id, Judgement { verdict: Verdict::Unknown, value: None, reason, in_s: None })
            });
        };
        let full_in_s = forecast.full_in_s;
        rows.map(|id| {
            let verdict = rule(id).threshold.verdict(full_in_s.unwrap_or(f64::INFINITY));
            let is_roomy = id == RuleId::DiskFills && free >= MUCH_FREE;
            let verdict = if is_roomy { Verdict::Clear } else { verdict };
            let reason = words(moment, reading, &forecast, free);
            (id, Judgement { verdict, value: full_in_s, reason, in_s: full_in_s })
        })
    }
}

fn words(moment: Moment, reading: &FileSystemReading, forecast: &SpaceForecast, free: f64) -> String {
    let purged = match forecast.purges {
        0 => String::new(),
        number => format!("; after {}, growth beyond the peaks counts", ebbtide_text::count(number, "purge")),
    };
    let start = format!("{} ({} free)", reading.mount_point, percent(free));
    match forecast.full_in_s {
        Some(seconds) => format!(
            "{start} is full at {}, in {}, at {} an hour{purged}",
            time_of_day(moment, seconds),
            rough(seconds),
            ebbtide_text::bytes(forecast.growth_per_s * 3_600.0)
        ),
        None => format!("{start} does not grow{purged}"),
    }
}

/// Values with their times in seconds.
fn points(window: &Window<f64>) -> Vec<(f64, f64)> {
    window.iter().map(|(time, value)| (time.as_secs_f64(), *value)).collect()
}

/// The points after the last fall of more than `least`.
fn since_a_fall(points: &[(f64, f64)], least: f64) -> Vec<(f64, f64)> {
    let fall = points.windows(2).rposition(|pair| pair[0].1 - pair[1].1 > least);
    points[fall.map_or(0, |place| place + 1)..].to_vec()
}

/// Seconds until `room` is used; None without growth, and beyond a year.
fn time_to(room: f64, growth_per_s: f64) -> Option<f64> {
    let seconds = room.max(0.0) / growth_per_s;
    (growth_per_s > 0.0 && seconds < 3.2e7).then_some(seconds)
}

/// The median slope of all pairs of points (Theil and Sen), a second: a step that comes once does not move it. None of fewer than two.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes: Vec<f64> = points
        .iter()
        .enumerate()
        .flat_map(|(place, from)| {
            points[place + 1..].iter().map(move |to| (to.1 - from.1) / (to.0 - from.0).max(1e-9))
        })
        .collect();
    if slopes.is_empty() {
        return None;
    }
    let middle = slopes.len() / 2;
    slopes.select_nth_unstable_by(middle, f64::total_cmp);
    Some(slopes[middle])
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// The forecast after `minutes` of a file system of 100 GiB whose used GiB are given by the minute.
    fn after(minutes: u64, used_gib: impl Fn(f64) -> f64) -> SpaceForecast {
        let mut history = SpaceHistory::new();
        let mut latest = None;
        for minute in 0..=minutes {
            let now = Nanos::from_secs(minute * 60);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size of a test")]
            let used = (used_gib(minute as f64) * GIB as f64) as u64;
            let reading = FileSystemReading {
                mount_point: "/data".to_owned(),
                size_bytes: 100 * GIB,
                free_bytes: 100 * GIB - used,
                read_only: false,
            };
            history.push(now, &reading);
            latest = history.forecast(now, &reading);
        }
        latest.unwrap()
    }

    #[test]
    fn an_even_growth_is_a_line() {
        let forecast = after(240, |minute| 20.0 + minute / 12.0);
        let hours = forecast.full_in_s.unwrap() / 3_600.0;
        assert!((hours - 12.0).abs() < 0.1 && forecast.purges == 0, "{hours} h: {forecast:?}");
    }

    #[test]
    fn a_saw_tooth_does_not_fill_and_one_that_climbs_does() {
        // 10 GiB of binary logs in four hours, purged at once; the data below stay, or grow by 1 GiB a cycle.
        let saw = |minute: f64| 60.0 + (minute % 240.0) / 24.0;
        let flat = after(1_200 + 200, saw);
        assert_eq!((flat.full_in_s, flat.purges), (None, 5), "{flat:?}");
        let climbing = after(1_200 + 120, |minute| saw(minute) + (minute / 240.0).floor());
        // The peak before the last purge was 73.6 GiB: 26.4 more cycles from there.
        let cycles = climbing.full_in_s.unwrap() / (240.0 * 60.0);
        assert!((cycles - 25.5).abs() < 1.5, "{cycles} cycles: {climbing:?}");
    }

    #[test]
    fn growth_beyond_the_last_peak_counts() {
        let forecast = after(1_440, |minute| match minute {
            0.0..240.0 => 60.0 + minute / 24.0,
            _ => 60.0 + (minute - 240.0) / 40.0,
        });
        // 90 GiB are used at the end, 1.5 GiB more an hour.
        let hours = forecast.full_in_s.unwrap() / 3_600.0;
        assert!((hours - 10.0 / 1.5).abs() < 0.2, "{hours} h: {forecast:?}");
    }

    #[test]
    fn a_copy_of_some_minutes_is_no_growth_that_goes_on() {
        let forecast = after(300, |minute| if minute < 275.0 { 40.0 } else { 40.0 + minute - 275.0 });
        assert_eq!(forecast.full_in_s, None, "{forecast:?}");
    }

    #[test]
    fn a_file_system_that_was_enlarged_begins_again() {
        let mut history = SpaceHistory::new();
        let reading = |size_gib: u64, free_gib: u64| FileSystemReading {
            mount_point: "/data".to_owned(),
            size_bytes: size_gib * GIB,
            free_bytes: free_gib * GIB,
            read_only: false,
        };
        for minute in 0..60 {
            history.push(Nanos::from_secs(minute * 60), &reading(100, 10));
        }
        let now = Nanos::from_secs(3_600);
        assert!(history.forecast(now, &reading(100, 10)).is_some());
        history.push(now, &reading(200, 110));
        assert_eq!(history.forecast(now, &reading(200, 110)), None);
    }
}
