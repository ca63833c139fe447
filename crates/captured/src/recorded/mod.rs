//! What volumes carried over time, of the files that people have: CloudWatch's metrics, `iostat -x`, `sar -d`, pt-diskstats and
//! `/proc/diskstats`.

mod pt_diskstats;
#[cfg(test)]
mod sysstat_dates;
#[cfg(test)]
mod sysstat_forms;
#[cfg(test)]
mod sysstat_live;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use ebbtide_observe::{LoadInterval, VolumeLoad};

pub use super::load::Recorded;
use super::load::interval;
use super::record_error::{MissingFigures, RecordedError, Unusable};
use super::sysstat::{self, Recording, Text};
use super::{Input, cloudwatch, devices, elsewhere};
use crate::devices::device_io;

/// What can be read, for messages.
pub const KNOWN_RECORDS: &str = "the output of `aws cloudwatch get-metric-data` or `get-metric-statistics`, a CSV export of \
                                 CloudWatch, `iostat -x` with -t, `sar -d`, `sadf -d -- -d` or `sadf -j -- -d`, `pt-diskstats`, and /proc/diskstats as \
                                 pt-stalk keeps it";

/// [`Recorded::tool`] of metrics, whose operations are counted as EBS counts them.
pub const CLOUDWATCH: &str = "CloudWatch";

const PT_DISKSTATS: &str = "pt-diskstats";

/// Reads the loads that files have together. `interval_s` is the length of an interval where the files do not tell it.
///
/// # Errors
/// The first file that cannot be used.
pub fn recorded(files: &[Input], interval_s: Option<f64>) -> Result<Recorded, RecordedError> {
    if let Some(first) = files.first().filter(|first| cloudwatch::is_meant(&first.text)) {
        return of_cloudwatch(first, files, interval_s);
    }
    let mut recordings: Vec<(PathBuf, Recording)> = Vec::new();
    let mut all: Option<Recorded> = None;
    let mut first = None;
    for file in files {
        let piece = piece(file, interval_s)?;
        let tool = piece.tool();
        match first {
            Some(other) if other != tool => {
                return Err(RecordedError::Mixed { path: file.path.clone(), tool, other });
            }
            _ => first = Some(tool),
        }
        match (piece, &mut all) {
            (Piece::Sysstat(recording), _) => recordings.push((file.path.clone(), recording)),
            (Piece::Other(recorded), None) => all = Some(recorded),
            (Piece::Other(recorded), Some(all)) => join(all, recorded),
        }
    }
    let recorded = match all {
        // It prints times of the day without a date: those of two days are alike.
        Some(all) if all.tool == PT_DISKSTATS => return Ok(all),
        Some(all) => all,
        // The dates of all files together tell which number of a date is the day.
        None => sysstat::loads(&recordings, interval_s)?,
    };
    without_repeats(recorded)
}

/// Two intervals that have more than this share of the shorter one in common are of one time: times are printed in whole seconds.
const ONE_TIME: f64 = 0.5;

/// Drops intervals that stand twice, as in files that overlap, and refuses two of one time that differ: those are of two machines, or
/// of two devices with one name.
fn without_repeats(mut recorded: Recorded) -> Result<Recorded, RecordedError> {
    for (device, load) in &mut recorded.loads {
        load.intervals.sort_by(|interval, next| interval.start_s.total_cmp(&next.start_s));
        let mut kept: Vec<LoadInterval> = Vec::with_capacity(load.intervals.len());
        for interval in &load.intervals {
            let common = |last: &LoadInterval| {
                (last.end_s() - interval.start_s) / last.seconds.min(interval.seconds) > ONE_TIME
            };
            let Some(last) = kept.last().filter(|last| common(last)) else {
                kept.push(*interval);
                continue;
            };
            let figures = |interval: &LoadInterval| {
                (interval.reads, interval.writes, interval.read_bytes, interval.written_bytes)
            };
            if figures(last) != figures(interval) {
                return Err(RecordedError::Overlap {
                    device: device.clone(),
                    at_s: interval.start_s,
                    ios: last.ios(),
                    other_ios: interval.ios(),
                });
            }
        }
        load.intervals = kept;
    }
    Ok(recorded)
}

/// What a file is.
enum Piece {
    Sysstat(Recording),
    Other(Recorded),
}

impl Piece {
    const fn tool(&self) -> &'static str {
        match self {
            Self::Sysstat(recording) => recording.tool,
            Self::Other(recorded) => recorded.tool,
        }
    }
}

fn join(all: &mut Recorded, more: Recorded) {
    for (name, load) in more.loads {
        let intervals = &mut all.loads.entry(name).or_default().intervals;
        intervals.extend(load.intervals);
        intervals.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    }
    all.notes.extend(more.notes);
    all.notes.dedup();
}

fn of_cloudwatch(first: &Input, files: &[Input], interval_s: Option<f64>) -> Result<Recorded, RecordedError> {
    let figures = |file: &Input| {
        if !cloudwatch::is_meant(&file.text) {
            return Err(RecordedError::Unknown { path: file.path.clone() });
        }
        cloudwatch::figures(file)
    };
    let figures: Vec<cloudwatch::Figures> = files.iter().map(figures).collect::<Result<_, _>>()?;
    let (loads, notes) = cloudwatch::loads(figures, interval_s).map_err(|why| match why {
        cloudwatch::NoLoads::Lacks(what) => RecordedError::Lacks { path: first.path.clone(), what },
        cloudwatch::NoLoads::Wrong(cause) => {
            RecordedError::Metrics { path: cause.path().unwrap_or(&first.path).clone(), cause }
        }
    })?;
    Ok(Recorded { tool: CLOUDWATCH, together: false, loads, notes })
}

fn piece(file: &Input, interval_s: Option<f64>) -> Result<Piece, RecordedError> {
    let path = || file.path.clone();
    let damaged = |cause| RecordedError::Damaged { path: path(), cause };
    match sysstat::iostat(&file.text).or_else(|| sysstat::sar(&file.text)) {
        Some(Text::Recording(recording)) => return Ok(Piece::Sysstat(recording)),
        Some(Text::Damaged(cause)) => return Err(damaged(cause)),
        Some(Text::Unusable(why)) => return Err(RecordedError::Unusable { path: path(), why }),
        None => {}
    }
    if let Some(read) = pt_diskstats::read(&file.text) {
        let Read { loads, notes } = read.map_err(damaged)?;
        return Ok(Piece::Other(Recorded { tool: PT_DISKSTATS, together: false, loads, notes }));
    }
    if let Some(mut looks) = devices::looks(&file.text) {
        if let Some(seconds) = interval_s.filter(|_| looks.iter().all(|(time, _)| time.is_none())) {
            for (place, (time, _)) in looks.iter_mut().enumerate() {
                *time = Some(place as f64 * seconds);
            }
        }
        let lacks = || RecordedError::Lacks { path: path(), what: MissingFigures::TimedCounters };
        return of_counters(&looks).map(Piece::Other).ok_or_else(lacks);
    }
    if let Some(why) = cloudwatch::other_form(&file.text) {
        return Err(RecordedError::Unusable { path: path(), why });
    }
    if let Some(kind) = elsewhere::found(&file.text) {
        return Err(RecordedError::Unusable { path: path(), why: Unusable::Elsewhere(kind) });
    }
    Err(RecordedError::Unknown { path: path() })
}

/// What a reader of a tool's output found.
#[derive(Debug, Default)]
struct Read {
    loads: BTreeMap<String, VolumeLoad>,
    notes: Vec<String>,
}

fn of_counters(looks: &[devices::Look]) -> Option<Recorded> {
    let mut loads: BTreeMap<String, VolumeLoad> = BTreeMap::new();
    for pair in looks.windows(2) {
        let (before, after) = (pair[0].0?, pair[1].0?);
        let seconds = after - before;
        for (name, counts) in &pair[1].1 {
            let Some(io) = pair[0].1.get(name).and_then(|old| device_io(*old, *counts, seconds)) else {
                continue;
            };
            loads.entry(name.clone()).or_default().intervals.push(interval(before, seconds, &io, None));
        }
    }
    (!loads.is_empty()).then(|| Recorded {
        tool: "/proc/diskstats",
        together: false,
        loads,
        notes: Vec::new(),
    })
}
