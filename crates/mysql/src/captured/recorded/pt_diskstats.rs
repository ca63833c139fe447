//! The output of Percona's pt-diskstats.

use std::collections::BTreeMap;

use ebbtide_observe::LoadInterval;

use super::Read;
use crate::captured::record_error::RecordDamage;

/// Bytes of the tool's megabyte: 2,048 sectors.
const MB: f64 = 1_048_576.0;

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
    let mut read = Read::default();
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
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
        let end = seconds(fields[0]).ok_or_else(|| wrong("seconds or a time"))?;
        let value = |name: &str| -> Option<f64> {
            fields.get(header.iter().position(|column| *column == name)?)?.parse().ok()
        };
        let all = || {
            Some((
                value("rd_s")?,
                value("wr_s")?,
                value("rd_mb_s")? * MB,
                value("wr_mb_s")? * MB,
                value("rd_rt")?,
                value("wr_rt")?,
            ))
        };
        let (reads, writes, rough_read, rough_written, read_ms, write_ms) =
            all().ok_or_else(|| wrong("numbers"))?;
        // Megabytes have one decimal: the mean size of an operation says more.
        let bytes = |ios: f64, kb: Option<f64>, rough: f64| kb.map_or(rough, |kb| kb * 1_024.0 * ios);
        let device = fields[1].to_owned();
        // The first row is of the time since the tool began.
        let before =
            last.insert(device.clone(), end).unwrap_or(if fields[0].contains(':') { end } else { 0.0 });
        if end <= before {
            continue;
        }
        read.loads.entry(device).or_default().intervals.push(LoadInterval {
            start_s: before,
            seconds: end - before,
            reads,
            writes,
            read_bytes: bytes(reads, value("rd_avkb"), rough_read),
            written_bytes: bytes(writes, value("wr_avkb"), rough_written),
            queue: value("rd_cnc").zip(value("wr_cnc")).map(|(reads, writes)| reads + writes),
            read_s: (reads > 0.0).then_some(read_ms / 1e3),
            write_s: (writes > 0.0).then_some(write_ms / 1e3),
            ..LoadInterval::default()
        });
    }
    Ok(read)
}

/// Seconds as the tool counts them, or of a time of day.
fn seconds(text: &str) -> Option<f64> {
    if !text.contains(':') {
        return text.parse().ok();
    }
    text.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
}
