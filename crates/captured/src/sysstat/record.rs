//! Loads of volumes, made of what sysstat's programs recorded.

use std::collections::BTreeMap;
use std::path::Path;

use ebbtide_observe::{LoadInterval, VolumeLoad};

use super::clock::{DAY, Day, Order, Stamp};
use super::timeline::{Interval, Irregular, Mark, Timeline, order, timeline};
use super::{DeviceRow, Recording, Report, Run, Split, Time};
use crate::load::{Recorded, interval};
use crate::record_error::{MissingFigures, RecordedError, Unusable};

/// What sar cannot tell.
const BY_BYTES: &str =
    "sar counts reads and writes together: they are divided as their bytes are, with one latency for both";
/// What `iostat -x -s` cannot tell.
const HALVES: &str =
    "iostat -s counts reads and writes together: half of them is taken for each, with one latency for both";

/// The loads that recordings of one program have together. `interval_s` is the length of an interval that is given.
///
/// # Errors
/// A recording without times that are understood, with an interval that is far from the others, or with a row that is not
/// understood.
pub(crate) fn loads(
    recordings: &[(&Path, &Recording)],
    interval_s: Option<f64>,
) -> Result<Recorded, RecordedError> {
    let stamps: Vec<Vec<Vec<&Stamp>>> =
        recordings.iter().map(|(_, recording)| recording.runs.iter().map(stamps).collect()).collect();
    let together = order(&stamps.concat());
    let mut recorded = Recorded {
        tool: recordings.first().map_or("nothing", |(_, own)| own.tool),
        together: recordings.iter().any(|(_, own)| rows(own).any(|row| row.split != Split::Known)),
        loads: BTreeMap::new(),
        notes: Vec::new(),
    };
    for ((path, recording), stamps) in recordings.iter().zip(&stamps) {
        let orders = Orders { together, file: order(stamps) };
        add(&mut recorded, path, recording, orders, interval_s)?;
    }
    for load in recorded.loads.values_mut() {
        load.intervals.sort_by(|one, next| one.start_s.total_cmp(&next.start_s));
    }
    recorded.notes.dedup();
    Ok(recorded)
}

/// The orders that the dates of all files, and of this file, have.
#[derive(Debug, Clone, Copy)]
struct Orders {
    together: Option<Order>,
    file: Option<Order>,
}

/// The times of a run, in their order.
fn stamps(run: &Run) -> Vec<&Stamp> {
    let of_reports = run.reports.iter().flat_map(|report| [&report.start, &report.end]);
    run.date.iter().chain(of_reports.filter_map(|time| time.as_ref()?.stamp())).collect()
}

fn add(
    recorded: &mut Recorded,
    path: &Path,
    recording: &Recording,
    orders: Orders,
    interval_s: Option<f64>,
) -> Result<(), RecordedError> {
    if let Some(cause) = recording.unread.clone() {
        return Err(RecordedError::Damaged { path: path.to_owned(), cause });
    }
    if recording.reports().all(|report| report.is_since_start) {
        return Err(RecordedError::Lacks { path: path.to_owned(), what: MissingFigures::SecondReport });
    }
    let names = recording.names();
    // With -z a device without an operation is left out of a report.
    let omits_idle = recording.omits_idle();
    // Times without a date follow those of the files before.
    let ends = recorded.loads.values().filter_map(|load| load.intervals.last());
    let mut end_s = ends.map(LoadInterval::end_s).fold(0.0, f64::max);
    let (mut lacking, mut changed) = (0, false);
    for run in &recording.runs {
        let timeline = intervals(run, orders, interval_s, end_s).map_err(|why| why.of(path))?;
        lacking += timeline.lacking;
        changed |= timeline.changed;
        for Interval { place, start_s, seconds } in timeline.intervals {
            let Some(report) = run.reports.get(place) else { continue };
            end_s = start_s + seconds;
            for name in &names {
                let idle = || (omits_idle || !report.is_cut).then(DeviceRow::default);
                let Some(row) = report.devices.get(*name).copied().or_else(idle) else { continue };
                let load: &mut VolumeLoad = recorded.loads.entry((*name).clone()).or_default();
                load.intervals.push(interval(start_s, seconds, &row.io, row.both_s));
            }
        }
    }
    note(&mut recorded.notes, path, recording, lacking, changed);
    Ok(())
}

/// The rows of devices of all reports.
fn rows(recording: &Recording) -> impl Iterator<Item = &DeviceRow> {
    recording.reports().flat_map(|report| report.devices.values())
}

fn note(notes: &mut Vec<String>, path: &Path, recording: &Recording, lacking: usize, changed: bool) {
    let path = path.display();
    for (split, words) in [(Split::ByBytes, BY_BYTES), (Split::Halves, HALVES)] {
        if rows(recording).any(|row| row.split == split) && !notes.iter().any(|note| note == words) {
            notes.push(words.to_owned());
        }
    }
    if lacking > 0 {
        let reports = if lacking == 1 { "1 report is".to_owned() } else { format!("{lacking} reports are") };
        notes.push(format!(
            "{path}: {reports} missing by the times of the others: nothing is taken for that time"
        ));
    }
    if changed {
        notes.push(format!(
            "{path}: its clock was changed by an hour or half an hour: the intervals are taken as even"
        ));
    }
    if recording.is_cut {
        notes.push(format!("{path}: it ends in the middle of a report: what is cut off is left out"));
    }
}

/// Why the times of a run tell no intervals.
enum NoIntervals {
    Lacks(MissingFigures),
    Unusable(Unusable),
}

impl NoIntervals {
    fn of(self, path: &Path) -> RecordedError {
        let path = path.to_owned();
        match self {
            Self::Lacks(what) => RecordedError::Lacks { path, what },
            Self::Unusable(why) => RecordedError::Unusable { path, why },
        }
    }
}

/// The intervals of a run. Times without a date begin on the day of the run's first line, or after `end_s`.
fn intervals(
    run: &Run,
    orders: Orders,
    interval_s: Option<f64>,
    end_s: f64,
) -> Result<Timeline, NoIntervals> {
    if run.reports.iter().all(|report| report.seconds.is_some()) && !run.reports.is_empty() {
        return of_lengths(run);
    }
    let stamps = stamps(run);
    let fits = |order: &Order| {
        stamps.iter().all(|stamp| !matches!(stamp.day, Day::Numbers(_)) || stamp.days(*order).is_some())
    };
    let own = || order(std::slice::from_ref(&stamps));
    let order = orders.together.or(orders.file).filter(fits).or_else(own);
    let unread =
        run.reports.iter().flat_map(|report| [&report.start, &report.end]).find_map(|time| match time {
            Some(Time::Unread(text)) => Some(text.clone()),
            _ => None,
        });
    let own_times = run.reports.iter().filter(|report| !report.is_since_start);
    let lacks_times = own_times.clone().any(|report| report.end.is_none() && report.start.is_none());
    let order = match (order, unread, interval_s) {
        (Some(order), None, _) if !lacks_times => order,
        (_, _, Some(seconds)) => return Ok(counted(run, seconds, end_s)),
        (_, Some(text), None) => return Err(NoIntervals::Unusable(Unusable::UnreadTime(text))),
        (None, None, None) if !lacks_times => {
            let text = stamps.first().map_or(String::new(), |stamp| stamp.text.clone());
            return Err(NoIntervals::Unusable(Unusable::UnreadTime(text)));
        }
        _ => return Err(NoIntervals::Lacks(MissingFigures::ReportTimes)),
    };
    let marks = marks(run);
    let mut timeline = timeline(&marks, order, interval_s).map_err(|why| match why {
        Irregular::Far { first, second, seconds, usual } => {
            NoIntervals::Unusable(Unusable::FarInterval { first, second, apart_s: seconds, usual_s: usual })
        }
        Irregular::Other { given, usual } => {
            NoIntervals::Unusable(Unusable::OtherInterval { given_s: given, usual_s: usual })
        }
    })?;
    add_open_end(&mut timeline, run);
    let has_date = marks.iter().any(|mark| mark.stamp.days(order).is_some() || mark.stamp.day == Day::Epoch);
    if !has_date {
        let first = timeline.intervals.first().map_or(0.0, |interval| interval.start_s);
        let dated = run.date.as_ref().and_then(|date| date.days(order)).map(|days| days as f64 * DAY);
        let base = dated.unwrap_or_else(|| ((end_s - first) / DAY).ceil().max(0.0) * DAY);
        timeline.intervals.iter_mut().for_each(|interval| interval.start_s += base);
    }
    Ok(timeline)
}

/// The times of a run's reports. A start that is the end of the report before it is left out.
fn marks(run: &Run) -> Vec<Mark<'_>> {
    let mut marks: Vec<Mark<'_>> = Vec::new();
    for (place, report) in run.reports.iter().enumerate() {
        if let Some(start) = report.start.as_ref().and_then(Time::stamp)
            && marks.last().is_none_or(|mark| mark.stamp.text != start.text)
        {
            marks.push(Mark { stamp: start, ends: None });
        }
        if let Some(end) = report.end.as_ref().and_then(Time::stamp) {
            marks.push(Mark { stamp: end, ends: (!report.is_since_start).then_some(place) });
        }
    }
    marks
}

/// Adds the interval of a last report that has a start and no end: it is as long as the one before it.
fn add_open_end(timeline: &mut Timeline, run: &Run) {
    let is_open = |report: &&Report| report.end.is_none() && report.start.is_some();
    if run.reports.last().filter(is_open).is_some()
        && let Some(Interval { start_s, seconds, .. }) = timeline.intervals.last().copied()
    {
        let place = run.reports.len() - 1;
        timeline.intervals.push(Interval { place, start_s: start_s + seconds, seconds });
    }
}

/// The intervals of reports that have their own lengths.
fn of_lengths(run: &Run) -> Result<Timeline, NoIntervals> {
    let mut timeline = Timeline::default();
    for (place, report) in run.reports.iter().enumerate() {
        let end_s = match &report.end {
            Some(Time::Read(stamp)) => match (&stamp.day, stamp.days(Order::DayMonthYear)) {
                (Day::Epoch, _) => Some(stamp.second),
                (_, days) => days.map(|days| days as f64 * DAY + stamp.second),
            },
            _ => None,
        };
        let (Some(end_s), Some(seconds)) = (end_s, report.seconds) else {
            let text = match &report.end {
                Some(Time::Read(stamp)) => stamp.text.clone(),
                Some(Time::Unread(text)) => text.clone(),
                None => String::new(),
            };
            return Err(NoIntervals::Unusable(Unusable::UnreadTime(text)));
        };
        if seconds > DAY {
            let text = |place: usize| match run.reports.get(place).and_then(|report| report.end.as_ref()) {
                Some(Time::Read(stamp)) => stamp.text.clone(),
                _ => "the start".to_owned(),
            };
            let (first, second) = (text(place.wrapping_sub(1)), text(place));
            let why = Unusable::FarInterval { first, second, apart_s: seconds, usual_s: None };
            return Err(NoIntervals::Unusable(why));
        }
        timeline.intervals.push(Interval { place, start_s: end_s - seconds, seconds });
    }
    Ok(timeline)
}

/// The intervals of reports without times, of one given length, after `end_s`.
fn counted(run: &Run, seconds: f64, end_s: f64) -> Timeline {
    let places = run.reports.iter().enumerate().filter(|(_, report)| !report.is_since_start);
    let mut start_s = end_s;
    let mut timeline = Timeline::default();
    for (place, _) in places {
        timeline.intervals.push(Interval { place, start_s, seconds });
        start_s += seconds;
    }
    timeline
}
