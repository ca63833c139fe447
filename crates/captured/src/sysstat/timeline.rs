//! The intervals of reports, from the times that they were printed with.
//!
//! The program was given one interval: it is the one that most reports are apart. What differs from it has to have a reason,
//! such as a clock that changed by an hour or a report that the capture lacks; else the file is refused.

use super::clock::{DAY, Day, Order, Stamp};

/// Printed times are whole seconds, so two of them may be this much nearer or farther than they were, s.
const ROUNDING: f64 = 1.01;
/// By how much clocks change between winter and summer, s: an hour, on Lord Howe Island half an hour.
const CLOCK_CHANGES: [f64; 2] = [3_600.0, 1_800.0];
/// Hours of the day in which clocks are changed: from this one in the evening to this one in the morning.
const CHANGE_HOURS: (f64, f64) = (23.0, 4.0);
/// A distance of so many times the interval, or such a part of it, is no interval of the same program.
const FAR: f64 = 10.0;

/// A printed time, and whether the report of this place ends at it. Others begin a run, such as a mean since the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark<'a> {
    pub(super) stamp: &'a Stamp,
    pub(super) ends: Option<usize>,
}

/// The interval of a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    /// The report, by its place.
    pub(super) place: usize,
    /// Its start, s since 1970 as if the machine's zone were UTC, or since the first day where the times have no date.
    pub(super) start_s: f64,
    /// Its length, s.
    pub(super) seconds: f64,
}

/// The intervals of a run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Timeline {
    pub(super) intervals: Vec<Interval>,
    /// Reports that the run lacks.
    pub(super) lacking: usize,
    /// Whether its clock was changed between winter and summer.
    pub(super) changed: bool,
}

/// Times that cannot be of one run with one interval.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Irregular {
    #[error("{first} to {second}")]
    Far { first: String, second: String, seconds: f64, usual: Option<f64> },
    #[error("{given} s")]
    Other { given: f64, usual: f64 },
}

/// The order of the numbers in dates, which the sequence of all dates decides: that in which the times of each run go
/// onward with the least distance, and then the runs of a file. Without any difference it is the likely one. None where no
/// order makes dates of all numbers.
pub(crate) fn order(runs: &[Vec<&Stamp>]) -> Option<Order> {
    let has_numbers = |stamp: &&&Stamp| matches!(stamp.day, Day::Numbers(_));
    let Some(first) = runs.iter().flatten().find(has_numbers) else { return Some(Order::DayMonthYear) };
    let likely = first.likely_order(runs.iter().flatten().any(|stamp| stamp.twelve_hours));
    let mut orders: Vec<(f64, f64, bool, Order)> = Order::ALL
        .into_iter()
        .filter_map(|order| {
            let times: Vec<Vec<f64>> = runs.iter().map(|run| dated(run, order)).collect::<Option<_>>()?;
            let within = times.iter().map(|run| length_of(run)).sum();
            let ends = times.iter().flat_map(|run| run.first().into_iter().chain(run.last())).copied();
            Some((within, length_of(&ends.collect::<Vec<f64>>()), order != likely, order))
        })
        .collect();
    orders.sort_by(|one, other| {
        one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2))
    });
    orders.first().map(|(.., order)| *order)
}

/// The times of a run that have a date, s since 1970; None where one is no date in this order.
fn dated(run: &[&Stamp], order: Order) -> Option<Vec<f64>> {
    let has_date = |stamp: &&&Stamp| matches!(stamp.day, Day::Numbers(_) | Day::Known(_));
    run.iter().filter(has_date).map(|stamp| Some(stamp.days(order)? as f64 * DAY + stamp.second)).collect()
}

/// The way that times go, onward and back, s.
fn length_of(times: &[f64]) -> f64 {
    times.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum()
}

/// The intervals of a run whose marks are in the order in which they were printed. `given` is the interval that is known.
///
/// # Errors
/// Two times are too far apart, or not as far as the given interval.
pub(super) fn timeline(marks: &[Mark<'_>], order: Order, given: Option<f64>) -> Result<Timeline, Irregular> {
    let times = times(marks, order);
    let apart: Vec<f64> = marks
        .windows(2)
        .zip(times.windows(2))
        .filter(|(pair, _)| pair[1].ends.is_some())
        .map(|(_, times)| times[1] - times[0])
        .collect();
    let usual = usual(&apart);
    if let (Some(given), Some(usual)) = (given, usual)
        && apart.len() > 1
        && (given - usual).abs() > ROUNDING.max(given / 10.0)
        && apart.iter().filter(|apart| (**apart - usual).abs() <= ROUNDING).count() > 1
    {
        return Err(Irregular::Other { given, usual });
    }
    let mut builder = TimelineBuilder { timeline: Timeline::default(), end: None, shift: 0.0 };
    for (place, mark) in marks.iter().enumerate() {
        let before = place.checked_sub(1);
        let Some(report) = mark.ends else {
            builder.end = None;
            continue;
        };
        let distance = before.map(|before| times[place] - times[before]);
        let Some(length) = length(distance, times[place], given.or(usual), given.is_some()) else {
            let first = before.map_or(String::new(), |before| marks[before].stamp.text.clone());
            let second = mark.stamp.text.clone();
            let others = usual.filter(|_| apart.len() > 1);
            return Err(Irregular::Far { first, second, seconds: distance.unwrap_or(0.0), usual: others });
        };
        builder.add(report, times[place], distance, length);
    }
    Ok(builder.timeline)
}

/// The interval that the program was given: the distance that is in the middle of all, the smaller one of two.
fn usual(apart: &[f64]) -> Option<f64> {
    let mut onward: Vec<f64> = apart.iter().copied().filter(|apart| *apart > 0.0).collect();
    onward.sort_by(f64::total_cmp);
    onward.get(onward.len().checked_sub(1)? / 2).copied()
}

/// What the distance of two times is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Length {
    /// An interval, of this length.
    Of(f64),
    /// An interval of the first length, after reports that are missing.
    After(f64, usize),
    /// An interval of this length, in which the clock was changed.
    Changed(f64),
}

/// What a distance is, where the interval is known; None where it is too far from it.
fn length(distance: Option<f64>, at_s: f64, usual: Option<f64>, is_given: bool) -> Option<Length> {
    // No program is given an interval of over a day.
    let usual = usual.filter(|usual| is_given || *usual <= DAY)?;
    let Some(distance) = distance else { return Some(Length::Of(usual)) };
    if (distance - usual).abs() <= ROUNDING {
        return Some(Length::Of(usual));
    }
    let hour = at_s.rem_euclid(DAY) / 3_600.0;
    let fits = |change: &f64| {
        (distance - usual + change).abs() <= ROUNDING || (distance - usual - change).abs() <= ROUNDING
    };
    let is_night = hour >= CHANGE_HOURS.0 || hour < CHANGE_HOURS.1;
    if is_night && CLOCK_CHANGES.iter().any(fits) {
        return Some(Length::Changed(usual));
    }
    let times = (distance / usual).round();
    let is_multiple = times >= 2.0 && (distance - times * usual).abs() <= ROUNDING.max(0.02 * distance);
    let is_near = distance > usual / FAR && distance < usual * FAR && distance < DAY;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is 2 to 9")]
    if is_near && is_multiple {
        return Some(Length::After(usual, times as usize - 1));
    }
    match (is_given, is_near) {
        (true, _) => Some(Length::After(usual, 1)),
        (false, true) => Some(Length::Of(distance)),
        (false, false) => None,
    }
}

/// The intervals so far.
struct TimelineBuilder {
    timeline: Timeline,
    /// The end of the last interval.
    end: Option<f64>,
    /// What the changes of the clock add to a printed time, s.
    shift: f64,
}

impl TimelineBuilder {
    fn add(&mut self, place: usize, at_s: f64, distance: Option<f64>, length: Length) {
        let seconds = match length {
            Length::Of(seconds) => seconds,
            Length::After(seconds, lacking) => {
                self.timeline.lacking += lacking;
                seconds
            }
            Length::Changed(seconds) => {
                self.timeline.changed = true;
                self.shift -= distance.unwrap_or(seconds) - seconds;
                seconds
            }
        };
        let printed = at_s + self.shift - seconds;
        // Printed times are rounded: intervals that follow each other have no gap of a second.
        let start_s = match self.end {
            Some(end) if !matches!(length, Length::After(..)) => end,
            Some(end) => printed.max(end),
            None => printed,
        };
        self.timeline.intervals.push(Interval { place, start_s, seconds });
        self.end = Some(start_s + seconds);
    }
}

/// The times of marks, s since 1970. Without a date a time that is before the last one is of the next day.
fn times(marks: &[Mark<'_>], order: Order) -> Vec<f64> {
    let mut days = 0_i64;
    let mut before: Option<(&Stamp, f64)> = None;
    let mut times = Vec::with_capacity(marks.len());
    for Mark { stamp, .. } in marks {
        let time = match (&stamp.day, stamp.days(order)) {
            (Day::Epoch, _) => stamp.second,
            (_, Some(known)) => known as f64 * DAY + stamp.second,
            (day, None) => {
                if let Some((last, _)) = before {
                    let is_next = match (day, &last.day) {
                        (Day::Named(text), Day::Named(other)) => text != other,
                        // A clock that is set back by an hour in the night does not make a day.
                        _ => stamp.second < last.second - 2.0 * CLOCK_CHANGES[0],
                    };
                    days += i64::from(is_next);
                }
                days as f64 * DAY + stamp.second
            }
        };
        before = Some((stamp, time));
        times.push(time);
    }
    times
}
