//! `sar -d` as text, and `sadf -d -- -d`.

use std::collections::BTreeMap;

use ebbtide_observe::{LoadInterval, VolumeLoad};

use super::Read;
use crate::captured::devices::{UNITS, clock};
use crate::captured::record_error::RecordDamage;

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// What sar cannot tell.
const TOGETHER: &str =
    "sar counts reads and writes together: they are divided as their bytes are, with one latency for both";

/// Reads the output; None in another text, an error where it is damaged.
pub(super) fn read(text: &str) -> Option<Result<Read, RecordDamage>> {
    let semicolons =
        text.lines().any(|line| line.starts_with("# hostname;interval;timestamp") && line.contains(";tps;"));
    let is_header = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.contains(&"DEV") && fields.contains(&"tps")
    };
    let read = if semicolons {
        sadf(text)
    } else if text.lines().any(is_header) {
        sar(text)
    } else {
        return None;
    };
    Some(read.map(|loads| Read { loads, notes: vec![TOGETHER.to_owned()] }))
}

type Loads = BTreeMap<String, VolumeLoad>;

/// A row by the names of its columns; None where one is missing or no number.
fn row(start_s: f64, seconds: f64, value: impl Fn(&str) -> Option<f64>) -> Option<LoadInterval> {
    let bytes = |read: &str, old: &str| {
        let named = UNITS.iter().find_map(|(unit, size)| Some(value(&format!("{read}{unit}"))? * size));
        named.or_else(|| value(old).map(|sectors| sectors * 512.0))
    };
    let (read_bytes, written_bytes) = (bytes("r", "rd_sec/s")?, bytes("w", "wr_sec/s")?);
    let ios = value("tps")?;
    let share =
        if read_bytes + written_bytes > 0.0 { read_bytes / (read_bytes + written_bytes) } else { 0.0 };
    let time = value("await").map(|ms| ms / 1e3).filter(|_| ios > 0.0);
    let queue = value("aqu-sz").or_else(|| value("avgqu-sz"));
    let reads = ios * share;
    Some(LoadInterval {
        start_s,
        seconds,
        reads,
        writes: ios - reads,
        read_bytes,
        written_bytes,
        queue,
        read_s: time,
        write_s: time,
        ..LoadInterval::default()
    })
}

/// A number; some languages write a comma.
fn number(text: &str) -> Option<f64> {
    text.replace(',', ".").parse().ok()
}

/// A row that is none; a long one is cut off.
fn damaged(place: usize, line: &str) -> RecordDamage {
    let shown: String = line.chars().take(80).collect();
    RecordDamage::at(place, "a time, a device and its figures", &shown)
}

fn sadf(text: &str) -> Result<Loads, RecordDamage> {
    let mut loads = Loads::new();
    let mut header: Vec<&str> = Vec::new();
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if let Some(names) = line.strip_prefix("# ") {
            // Other activities have tables of their own.
            header = if names.contains(";tps;") { names.trim().split(';').collect() } else { Vec::new() };
            continue;
        }
        if header.is_empty() || line.contains("LINUX-RESTART") {
            continue;
        }
        let fields: Vec<&str> = line.trim().split(';').collect();
        let get = |name: &str| fields.get(header.iter().position(|column| *column == name)?).copied();
        let interval = get("interval").and_then(number).filter(|seconds| *seconds > 0.0);
        let end = get("timestamp").and_then(clock);
        let read = interval.zip(end).zip(get("DEV")).and_then(|((seconds, end), device)| {
            Some((device, row(end - seconds, seconds, |name| get(name).and_then(number))?))
        });
        let (device, interval) = read.ok_or_else(|| damaged(place, line))?;
        loads.entry(device.to_owned()).or_default().intervals.push(interval);
    }
    Ok(loads)
}

fn sar(text: &str) -> Result<Loads, RecordDamage> {
    let mut loads = Loads::new();
    let mut header: Vec<&str> = Vec::new();
    // The time before the present one, and the present one.
    let mut times: (Option<f64>, Option<f64>) = (None, None);
    for (place, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let of_devices = fields.contains(&"DEV") && fields.contains(&"tps");
        let Some(time) = time_of_day(&fields) else {
            // A blank line, the first line, a mean, a restart.
            if line.contains("RESTART") {
                times = (None, None);
            }
            if !of_devices {
                header.clear();
            }
            continue;
        };
        if line.contains("RESTART") {
            times = (None, None);
            continue;
        }
        if fields.iter().any(|field| field.ends_with("/s") || *field == "DEV" || field.starts_with('%')) {
            header = if of_devices { fields } else { Vec::new() };
            // The heading of the first table has the time at which sar began.
            times.1 = times.1.or(Some(time));
            continue;
        }
        if header.is_empty() {
            continue;
        }
        let after = |before: f64| {
            if time < before % DAY - 1.0 {
                before - before % DAY + DAY + time
            } else {
                before - before % DAY + time
            }
        };
        match times.1 {
            None => {
                times = (None, Some(time));
                continue;
            }
            Some(now) => {
                let time = after(now);
                if time > now {
                    times = (Some(now), Some(time));
                }
            }
        }
        let (Some(before), Some(now)) = times else { continue };
        if fields.len() != header.len() {
            return Err(damaged(place, line));
        }
        let get = |name: &str| fields.get(header.iter().position(|column| *column == name)?).copied();
        let read = get("DEV").zip(row(before, now - before, |name| get(name).and_then(number)));
        let (device, interval) = read.ok_or_else(|| damaged(place, line))?;
        loads.entry(device.to_owned()).or_default().intervals.push(interval);
    }
    Ok(loads)
}

/// The time of day at the start of a line, s.
fn time_of_day(fields: &[&str]) -> Option<f64> {
    let mut parts = fields.first()?.split(':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || hours > 24.0 || minutes > 59.0 || seconds > 60.0 {
        return None;
    }
    let hours = match fields.get(1) {
        Some(&"AM") => hours % 12.0,
        Some(&"PM") => hours % 12.0 + 12.0,
        _ => hours,
    };
    Some(hours * 3_600.0 + minutes * 60.0 + seconds)
}
