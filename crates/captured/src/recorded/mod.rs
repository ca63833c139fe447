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
use std::path::{Path, PathBuf};

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

/// A file that was read, for [`together`].
#[derive(Debug)]
pub struct ReadFile {
    path: PathBuf,
    piece: Piece,
}

impl ReadFile {
    /// The tool that wrote it.
    #[must_use]
    pub const fn tool(&self) -> &'static str {
        self.piece.tool()
    }
}

/// Reads the loads that files have together. `interval_s` is the length of an interval where the files do not tell it.
///
/// # Errors
/// The first file that cannot be used.
pub fn recorded(files: &[Input], interval_s: Option<f64>) -> Result<Recorded, RecordedError> {
    let is_metrics = files.first().is_some_and(|first| cloudwatch::is_meant(&first.text));
    let mut read: Vec<ReadFile> = Vec::with_capacity(files.len());
    for file in files {
        if is_metrics && !cloudwatch::is_meant(&file.text) {
            return Err(RecordedError::Unknown { path: file.path.clone() });
        }
        let piece = if is_metrics { piece_of_metrics(file) } else { piece(file, interval_s) }?;
        let (tool, other) = (piece.tool(), read.first().map_or(piece.tool(), ReadFile::tool));
        if other != tool {
            return Err(RecordedError::Mixed { path: file.path.clone(), tool, other });
        }
        read.push(ReadFile { path: file.path.clone(), piece });
    }
    together(&read.iter().collect::<Vec<_>>(), interval_s)
}

/// Reads one file, whatever tool wrote it.
///
/// # Errors
/// A file that cannot be used.
pub fn read_file(file: &Input, interval_s: Option<f64>) -> Result<ReadFile, RecordedError> {
    let is_metrics = cloudwatch::is_meant(&file.text);
    let piece = if is_metrics { piece_of_metrics(file) } else { piece(file, interval_s) }?;
    Ok(ReadFile { path: file.path.clone(), piece })
}

/// The loads that files of one tool have together, as [`recorded`].
///
/// # Errors
/// Figures that contradict each other, and those of one file that cannot be used.
pub fn together(files: &[&ReadFile], interval_s: Option<f64>) -> Result<Recorded, RecordedError> {
    let metrics = files.iter().filter_map(|file| match &file.piece {
        Piece::Metrics(figures) => Some(figures),
        _ => None,
    });
    let metrics: Vec<&cloudwatch::Figures> = metrics.collect();
    if let (Some(first), false) = (files.first(), metrics.is_empty()) {
        return of_cloudwatch(&first.path, &metrics, interval_s);
    }
    let mut recordings: Vec<(&Path, &Recording)> = Vec::new();
    let mut all: Option<Recorded> = None;
    for file in files {
        match (&file.piece, &mut all) {
            (Piece::Sysstat(recording), _) => recordings.push((file.path.as_path(), recording)),
            (Piece::Other(recorded), None) => all = Some(recorded.clone()),
            (Piece::Other(recorded), Some(all)) => join(all, recorded.clone()),
            (Piece::Metrics(_), _) => {}
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
#[derive(Debug)]
enum Piece {
    Metrics(cloudwatch::Figures),
    Sysstat(Recording),
    Other(Recorded),
}

impl Piece {
    const fn tool(&self) -> &'static str {
        match self {
            Self::Metrics(_) => CLOUDWATCH,
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

fn piece_of_metrics(file: &Input) -> Result<Piece, RecordedError> {
    cloudwatch::figures(file).map(Piece::Metrics)
}

/// `first` is the file to name where no other is known.
fn of_cloudwatch(
    first: &Path,
    files: &[&cloudwatch::Figures],
    interval_s: Option<f64>,
) -> Result<Recorded, RecordedError> {
    let (loads, notes) = cloudwatch::loads(files, interval_s).map_err(|why| match why {
        cloudwatch::NoLoads::Lacks(what) => RecordedError::Lacks { path: first.to_owned(), what },
        cloudwatch::NoLoads::Wrong(cause) => {
            let path = cause.path().map_or_else(|| first.to_owned(), Clone::clone);
            RecordedError::Metrics { path, cause }
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
