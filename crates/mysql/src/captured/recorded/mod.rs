//! What volumes carried over time, of the files that people have: CloudWatch's metrics, `iostat -x`, `sar -d`, pt-diskstats and
//! `/proc/diskstats`.

mod pt_diskstats;
mod sar;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ebbtide_observe::{DeviceIo, LoadInterval, VolumeLoad};

use super::record_error::{MissingFigures, RecordDamage, RecordedError};
use super::{Input, cloudwatch, devices};
use crate::machine::io;

/// What can be read, for messages.
pub const KNOWN_RECORDS: &str = "the output of `aws cloudwatch get-metric-data` or `get-metric-statistics`, a CSV export of \
                                 CloudWatch, `iostat -x` with -t, `sar -d` or `sadf -d -- -d`, `pt-diskstats`, and /proc/diskstats as \
                                 pt-stalk keeps it";

/// [`Recorded::tool`] of metrics, whose operations are counted as EBS counts them.
pub const CLOUDWATCH: &str = "CloudWatch";

/// The loads of volumes or devices, by their name. CloudWatch's metrics of one volume may name none: its name is empty then.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The tool that recorded them.
    pub tool: &'static str,
    /// The loads.
    pub loads: BTreeMap<String, VolumeLoad>,
    /// What has to be known of the figures.
    pub notes: Vec<String>,
}

/// Reads the loads that files have together. `interval_s` is the length of an interval where the files do not tell it.
///
/// # Errors
/// The first file that cannot be used.
pub fn recorded(files: &[Input], interval_s: Option<f64>) -> Result<Recorded, RecordedError> {
    if let Some(first) = files.first().filter(|first| cloudwatch::is_meant(&first.text)) {
        return of_cloudwatch(first, files, interval_s);
    }
    let mut all: Option<Recorded> = None;
    for file in files {
        let one = one(file, interval_s)?;
        match &mut all {
            None => all = Some(one),
            Some(all) if all.tool == one.tool => join(all, one),
            Some(all) => {
                return Err(RecordedError::Mixed {
                    path: file.path.clone(),
                    tool: one.tool,
                    other: all.tool,
                });
            }
        }
    }
    Ok(all.unwrap_or(Recorded { tool: "nothing", loads: BTreeMap::new(), notes: Vec::new() }))
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
    Ok(Recorded { tool: CLOUDWATCH, loads, notes })
}

fn one(file: &Input, interval_s: Option<f64>) -> Result<Recorded, RecordedError> {
    let lacks = |what| RecordedError::Lacks { path: file.path.clone(), what };
    if let Some(reports) = devices::reports(&file.text) {
        return of_iostat(&reports, interval_s).map_err(lacks);
    }
    let readers: [(&str, Reader); 2] = [("sar", sar::read), ("pt-diskstats", pt_diskstats::read)];
    for (tool, read) in readers {
        if let Some(read) = read(&file.text) {
            let read = read.map_err(|cause| RecordedError::Damaged { path: file.path.clone(), cause })?;
            return Ok(Recorded { tool, loads: read.loads, notes: read.notes });
        }
    }
    if let Some(looks) = devices::looks(&file.text) {
        return of_counters(&looks).ok_or_else(|| lacks(MissingFigures::TimedCounters));
    }
    Err(RecordedError::Unknown { path: file.path.clone() })
}

/// Reads a tool's output; None in the output of another tool.
type Reader = fn(&str) -> Option<Result<Read, RecordDamage>>;

/// What a reader of a tool's output found.
#[derive(Debug, Default)]
struct Read {
    loads: BTreeMap<String, VolumeLoad>,
    notes: Vec<String>,
}

fn interval(start_s: f64, seconds: f64, io: &DeviceIo) -> LoadInterval {
    LoadInterval {
        start_s,
        seconds,
        reads: io.reads,
        writes: io.writes,
        read_bytes: io.read_bytes,
        written_bytes: io.written_bytes,
        queue: Some(io.queue),
        read_s: io.read_s.filter(|_| io.reads > 0.0),
        write_s: io.write_s.filter(|_| io.writes > 0.0),
        ..LoadInterval::default()
    }
}

fn of_iostat(reports: &[devices::TimedReport], interval_s: Option<f64>) -> Result<Recorded, MissingFigures> {
    if reports.iter().all(|report| report.is_since_start) {
        return Err(MissingFigures::SecondReport);
    }
    let mut loads: BTreeMap<String, VolumeLoad> = BTreeMap::new();
    let mut before = None;
    for (place, report) in reports.iter().enumerate() {
        if report.is_since_start {
            before = report.at_s;
            continue;
        }
        let seconds = match (before, report.at_s, interval_s) {
            (Some(before), Some(at), _) if at > before => at - before,
            (_, _, Some(seconds)) => seconds,
            _ => return Err(MissingFigures::ReportTimes),
        };
        let end = report.at_s.unwrap_or(place as f64 * seconds);
        for (name, io) in &report.devices {
            loads.entry(name.clone()).or_default().intervals.push(interval(end - seconds, seconds, io));
        }
        before = report.at_s;
    }
    Ok(Recorded { tool: "iostat", loads, notes: Vec::new() })
}

fn of_counters(looks: &[devices::Look]) -> Option<Recorded> {
    let mut loads: BTreeMap<String, VolumeLoad> = BTreeMap::new();
    for pair in looks.windows(2) {
        let (before, after) = (pair[0].0?, pair[1].0?);
        let seconds = after - before;
        for (name, counts) in &pair[1].1 {
            let Some(io) = pair[0].1.get(name).and_then(|old| io(*old, *counts, seconds)) else { continue };
            loads.entry(name.clone()).or_default().intervals.push(interval(before, seconds, &io));
        }
    }
    (!loads.is_empty()).then(|| Recorded { tool: "/proc/diskstats", loads, notes: Vec::new() })
}
