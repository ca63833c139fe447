//! The output of Percona's pt-diskstats.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_observe::{LoadInterval, VolumeLoad};

use super::Read;
use crate::record_error::RecordDamage;

/// Bytes of the tool's megabyte: 2,048 sectors.
const MB: f64 = 1_048_576.0;
/// From so many samples on their usual distance is known to be the interval.
const MANY: usize = 3;
/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// Reads the output; None in another text, an error where it is damaged.
pub(super) fn read(text: &str) -> Option<Result<Read, RecordDamage>> {
    let is_header = |line: &&str| {
        let mut fields = line.split_whitespace();
        fields.next() == Some("#ts") && fields.next() == Some("device")
    };
    let header: Vec<&str> = text.lines().find(is_header)?.split_whitespace().collect();
    let lines = text.lines().enumerate().filter(|(_, line)| !is_header(line) && !line.trim().is_empty());
    Some(rows(&header, lines))
}

fn rows<'a>(header: &[&str], lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Read, RecordDamage> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut clock = Clock::default();
    for (place, line) in lines {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Lines that other tools of a collection print between the tables.
        if fields.len() != header.len() {
            continue;
        }
        let wrong = |expected| RecordDamage::at(place, expected, line);
        if fields[0].starts_with('{') || fields[1].starts_with('{') {
            return Err(RecordDamage::Grouped { line: place + 1, found: line.to_owned() });
        }
        let (start, end) = clock.read(fields[0]).ok_or_else(|| wrong("seconds or a time"))?;
        let value = |name: &str| -> Option<f64> {
            let value = fields.get(header.iter().position(|column| *column == name)?)?.parse::<f64>().ok()?;
            value.is_finite().then_some(value)
        };
        let row = row(value).ok_or_else(|| wrong("numbers"))?;
        if samples.last().is_none_or(|sample| sample.end_s != end) {
            samples.push(Sample { start_s: start, end_s: end, devices: BTreeMap::new() });
        }
        if let Some(sample) = samples.last_mut() {
            sample.devices.insert(fields[1].to_owned(), row);
        }
    }
    Ok(Read { loads: loads(&samples), notes: Vec::new() })
}

/// What the devices did until a time. Those that did nothing are left out, unless the tool has --show-inactive.
struct Sample {
    /// The time before it; None of the first one with a time of day.
    start_s: Option<f64>,
    end_s: f64,
    devices: BTreeMap<String, LoadInterval>,
}

fn loads(samples: &[Sample]) -> BTreeMap<String, VolumeLoad> {
    let mut apart: Vec<f64> =
        samples.iter().filter_map(|sample| Some(sample.end_s - sample.start_s?)).collect();
    apart.sort_by(f64::total_cmp);
    // The interval that the tool was given: between some samples no device did something, and nothing was printed.
    let Some(usual) = apart.get(apart.len().saturating_sub(1) / 2).copied() else { return BTreeMap::new() };
    let names: BTreeSet<&String> = samples.iter().flat_map(|sample| sample.devices.keys()).collect();
    let mut loads: BTreeMap<String, VolumeLoad> = BTreeMap::new();
    for sample in samples {
        let start_s = sample.start_s.unwrap_or(sample.end_s - usual);
        let idle_s = if apart.len() >= MANY && sample.end_s - start_s >= 1.5 * usual {
            sample.end_s - start_s - usual
        } else {
            0.0
        };
        for name in &names {
            let intervals = &mut loads.entry((*name).clone()).or_default().intervals;
            if idle_s > 0.0 {
                intervals.push(LoadInterval { start_s, seconds: idle_s, ..IDLE });
            }
            let row = sample.devices.get(*name).copied().unwrap_or(IDLE);
            let start_s = start_s + idle_s;
            intervals.push(LoadInterval { start_s, seconds: sample.end_s - start_s, ..row });
        }
    }
    loads
}

/// An interval without an operation.
const IDLE: LoadInterval = LoadInterval {
    start_s: 0.0,
    seconds: 0.0,
    reads: 0.0,
    writes: 0.0,
    read_bytes: 0.0,
    written_bytes: 0.0,
    queue: Some(0.0),
    read_s: None,
    write_s: None,
    credits: None,
    limited: None,
};

/// A row without its time; None where a figure is missing or no number.
fn row(value: impl Fn(&str) -> Option<f64>) -> Option<LoadInterval> {
    let (reads, writes) = (value("rd_s")?, value("wr_s")?);
    // Megabytes have one decimal: the mean size of an operation says more.
    let bytes = |ios: f64, mean: &str, rough: &str| match value(mean) {
        Some(kb) => Some(kb * 1_024.0 * ios),
        None => Some(value(rough)? * MB),
    };
    let (read_ms, write_ms) = (value("rd_rt")?, value("wr_rt")?);
    Some(LoadInterval {
        reads,
        writes,
        read_bytes: bytes(reads, "rd_avkb", "rd_mb_s")?,
        written_bytes: bytes(writes, "wr_avkb", "wr_mb_s")?,
        queue: value("rd_cnc").zip(value("wr_cnc")).map(|(reads, writes)| reads + writes),
        read_s: (reads > 0.0).then_some(read_ms / 1e3),
        write_s: (writes > 0.0).then_some(write_ms / 1e3),
        ..IDLE
    })
}

/// The times of rows, in the order of the lines.
#[derive(Debug, Default)]
struct Clock {
    /// What is added to a printed time, s: days that have passed, or runs of the tool before this one.
    base_s: f64,
    /// The start and the end of the last sample.
    last: Option<(Option<f64>, f64)>,
}

impl Clock {
    /// The start and the end of the sample of a row, s; None for a text that is no time.
    ///
    /// A time of day that goes back is of the next day. Seconds count from the start of the tool, so those that go back are of
    /// a second run.
    fn read(&mut self, text: &str) -> Option<(Option<f64>, f64)> {
        let printed = seconds(text).filter(|seconds| seconds.is_finite())?;
        let is_clock = text.contains(':');
        let sample = match self.last {
            Some((start, end)) if printed + self.base_s == end => (start, end),
            Some((_, end)) if printed + self.base_s > end => (Some(end), printed + self.base_s),
            Some(_) if is_clock => {
                let end = self.last.map(|(_, end)| end);
                self.base_s += DAY;
                (end, printed + self.base_s)
            }
            Some((_, end)) => {
                self.base_s = end;
                (Some(end), printed + end)
            }
            None => ((!is_clock).then_some(0.0), printed),
        };
        self.last = Some(sample);
        Some(sample)
    }
}

/// Seconds as the tool counts them, or of a time of day.
fn seconds(text: &str) -> Option<f64> {
    if !text.contains(':') {
        return text.parse().ok();
    }
    text.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
}
