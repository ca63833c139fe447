//! What devices and processors did: reports of `iostat -x` of any version, and `/proc/diskstats` read several times.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_observe::DeviceIo;
use ebbtide_proc::machine::{DiskCounts, parse_disk};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::machine::io;

/// Rates of devices.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Devices {
    /// Mean of all reports but the first, by device.
    reported: BTreeMap<String, DeviceIo>,
    /// First and last counters, and the seconds between, by device.
    counted: BTreeMap<String, DeviceIo>,
    /// Seconds between the first and the last counters.
    seconds: Option<f64>,
    /// Share of the processors' time that was busy, 0 to 1: mean of all reports but the first.
    busy_share: Option<f64>,
    /// Processors, as iostat's first line has them.
    processors: Option<u64>,
    /// Names of the machines that iostat ran on.
    pub(super) machines: BTreeSet<String>,
    /// What could not be used.
    pub(super) warnings: Vec<String>,
}

impl Devices {
    pub(super) fn add(&mut self, other: Self) {
        self.reported.extend(other.reported);
        self.counted.extend(other.counted);
        self.seconds = self.seconds.or(other.seconds);
        self.busy_share = self.busy_share.or(other.busy_share);
        self.processors = self.processors.or(other.processors);
        self.machines.extend(other.machines);
        self.warnings.extend(other.warnings);
    }

    /// What a device did: the kernel's counters go before a report.
    pub(super) fn io(&self, name: &str) -> Option<DeviceIo> {
        self.counted.get(name).or_else(|| self.reported.get(name)).copied()
    }

    /// Seconds over which it did, where that is known.
    pub(super) const fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// Share of the processors' time that was busy, where the reports have it.
    pub(super) const fn busy_share(&self) -> Option<f64> {
        self.busy_share
    }

    /// Processors of the machine, where the reports have their number.
    pub(super) const fn processors(&self) -> Option<u64> {
        self.processors
    }

    /// Devices that did something, without loop devices and RAM disks.
    pub(super) fn names(&self) -> Vec<&str> {
        let busy = |io: &DeviceIo| io.reads + io.writes > 0.0;
        let all = self.counted.iter().chain(&self.reported);
        let mut names: Vec<&str> = all
            .filter(|(name, io)| busy(io) && !name.starts_with("loop") && !name.starts_with("ram"))
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Reads reports or counters; None in another text.
pub(super) fn read(text: &str) -> Option<Devices> {
    let Some(reports) = reports(text) else { return counters(text) };
    let later: Vec<&TimedReport> = reports.iter().filter(|report| !report.is_since_start).collect();
    let busy: Vec<f64> = later.iter().filter_map(|report| report.busy_share).collect();
    let busy_share = (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64);
    let mut devices =
        Devices { busy_share, processors: processors(text), machines: machines(text), ..of_reports(&later) };
    if let Some(row) = reports.iter().find_map(|report| report.unread.as_ref()) {
        let warning = format!(
            "rows of iostat have figures that are no numbers, and were left out: run it without -h and --human; the last of \
             a report is '{row}'"
        );
        devices.warnings.push(warning);
    }
    Some(devices)
}

/// Names of machines: in parentheses in the first line of a run, `nodename` in JSON.
fn machines(text: &str) -> BTreeSet<String> {
    if let Some(hosts) = hosts(text) {
        let name = |host: &serde_json::Value| Some(host.get("nodename")?.as_str()?.to_owned());
        return hosts.iter().filter_map(name).collect();
    }
    text.lines().filter_map(machine).map(str::to_owned).collect()
}

/// The name in the first line of a run, `Linux 6.1.0-13-amd64 (db1) ...`; None in another line, such as that of `uname -a`.
fn machine(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix("Linux ")?.trim_start().split_once(char::is_whitespace)?;
    Some(rest.trim_start().strip_prefix('(')?.split_once(')')?.0)
}

/// What devices did, by name.
pub(super) type Report = BTreeMap<String, DeviceIo>;

/// A report of `iostat -x`, with its time where it prints one (`-t`).
#[derive(Debug, Default)]
pub(super) struct TimedReport {
    /// Its end, s since 1970 as if the machine's zone were UTC.
    pub(super) at_s: Option<f64>,
    /// Whether it is the first of a run of iostat: the mean since the machine's start.
    pub(super) is_since_start: bool,
    /// Share of the processors' time that was busy, 0 to 1.
    busy_share: Option<f64>,
    /// A row whose figures are no numbers.
    unread: Option<String>,
    pub(super) devices: Report,
}

/// The reports of `iostat -x`, as text or as JSON; None in another text.
pub(super) fn reports(text: &str) -> Option<Vec<TimedReport>> {
    json(text).or_else(|| printed(text))
}

/// The mean of reports of an interval each.
fn of_reports(reports: &[&TimedReport]) -> Devices {
    if reports.is_empty() {
        let warning = "iostat printed one report, which is the mean since the machine's start: `iostat -x 10 2` prints two";
        return Devices { warnings: vec![warning.to_owned()], ..Devices::default() };
    }
    let mut all: BTreeMap<String, Vec<DeviceIo>> = BTreeMap::new();
    for (name, io) in reports.iter().flat_map(|report| &report.devices) {
        all.entry(name.clone()).or_default().push(*io);
    }
    // With -z a device is left out of the reports in which it did nothing.
    let reported = all.into_iter().map(|(name, own)| (name, mean(&own, reports.len()))).collect();
    Devices { reported, ..Devices::default() }
}

/// The mean of a device's reports, over so many of one length; a report with more operations weighs more in their times.
fn mean(own: &[DeviceIo], reports: usize) -> DeviceIo {
    let all = DeviceIo::together(own).unwrap_or_default();
    let of = |sum: f64| sum / reports as f64;
    DeviceIo {
        reads: of(all.reads),
        writes: of(all.writes),
        read_bytes: of(all.read_bytes),
        written_bytes: of(all.written_bytes),
        queue: of(all.queue),
        ..all
    }
}

/// Bytes of a unit in the name of a column.
pub(super) const UNITS: [(&str, f64); 4] =
    [("B/s", 1.0), ("kB/s", 1024.0), ("MB/s", 1_048_576.0), ("sec/s", 512.0)];

/// A row by the names of its columns; None where a figure is missing or no number.
fn row(value: impl Fn(&str) -> Option<f64>) -> Option<DeviceIo> {
    let bytes =
        |side: &str| UNITS.iter().find_map(|(unit, size)| Some(value(&format!("{side}{unit}"))? * size));
    let time = |name: &str| value(name).map(|ms| ms / 1e3).filter(|s| s.is_finite() && *s >= 0.0);
    let io = DeviceIo {
        reads: value("r/s")?,
        writes: value("w/s")?,
        read_bytes: bytes("r")?,
        written_bytes: bytes("w")?,
        queue: value("aqu-sz").or_else(|| value("avgqu-sz"))?,
        read_s: time("r_await"),
        write_s: time("w_await"),
    };
    let all = [io.reads, io.writes, io.read_bytes, io.written_bytes, io.queue];
    all.iter().all(|one| one.is_finite() && *one >= 0.0).then_some(io)
}

/// The reports of `iostat -x` as text; None in another text.
fn printed(text: &str) -> Option<Vec<TimedReport>> {
    let mut reports: Vec<TimedReport> = Vec::new();
    let mut header: Vec<&str> = Vec::new();
    let (mut at_s, mut busy_share, mut is_since_start) = (None, None, true);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = fields.first() else {
            header.clear();
            continue;
        };
        // A run begins with the kernel and the machine's name.
        if machine(line).is_some() {
            is_since_start = true;
        } else if *first == "avg-cpu:" {
            let values: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
            let value = |name: &str| {
                let place = fields[1..].iter().position(|column| *column == name)?;
                number(values.get(place)?)
            };
            busy_share = share(value("%user"), value("%nice"), value("%system"));
        } else if first.trim_end_matches(':') == "Device" && fields.contains(&"r/s") {
            header = fields;
            reports.push(TimedReport {
                at_s: at_s.take(),
                is_since_start: std::mem::take(&mut is_since_start),
                busy_share: busy_share.take(),
                ..TimedReport::default()
            });
        } else if fields.len() == header.len() {
            let value = |name: &str| {
                let place = header.iter().position(|column| *column == name)?;
                number(fields[place])
            };
            match (row(value), reports.last_mut()) {
                (Some(io), Some(report)) => {
                    report.devices.insert((*first).to_owned(), io);
                }
                (None, Some(report)) => report.unread = Some(line.trim().to_owned()),
                (_, None) => {}
            }
        } else if let Some(time) = clock(line.trim()) {
            at_s = Some(time);
        }
    }
    (!reports.is_empty()).then_some(reports)
}

/// A figure; some languages write a comma.
fn number(text: &str) -> Option<f64> {
    text.replace(',', ".").parse().ok()
}

/// The busy share of the processors, 0 to 1, of percents: %system has interrupts in it.
fn share(user: Option<f64>, nice: Option<f64>, system: Option<f64>) -> Option<f64> {
    let share = (user? + nice? + system?) / 100.0;
    (0.0..=1.0).contains(&share).then_some(share)
}

/// The number of processors: `(2 CPU)` in iostat's first line, `number-of-cpus` in its JSON.
fn processors(text: &str) -> Option<u64> {
    if let Some(hosts) = hosts(text) {
        return hosts.first()?.get("number-of-cpus")?.as_u64();
    }
    let line = text.lines().find(|line| line.trim_end().ends_with(" CPU)"))?;
    line.rsplit_once('(')?.1.split(' ').next()?.parse().ok()
}

/// The machines in `iostat -x -o JSON`; None in another text.
fn hosts(text: &str) -> Option<Vec<serde_json::Value>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let all: serde_json::Value = serde_json::from_str(text).ok()?;
    all.get("sysstat")?.get("hosts")?.as_array().cloned()
}

/// A date and a time as sysstat prints them; s since 1970 as if its zone were UTC.
pub(super) fn clock(text: &str) -> Option<f64> {
    const FORMATS: [&str; 8] = [
        "%m/%d/%Y %I:%M:%S %p",
        "%m/%d/%Y %H:%M:%S",
        "%m/%d/%y %I:%M:%S %p",
        "%m/%d/%y %H:%M:%S",
        "%d/%m/%Y %H:%M:%S",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%S",
        "%d.%m.%Y %H:%M:%S",
    ];
    // ISO times end with the difference to UTC, which one machine does not change.
    let text = text.strip_suffix(" UTC").unwrap_or(text);
    let text = match text.char_indices().nth(19) {
        Some((at, '+' | '-' | 'Z')) if text.as_bytes().get(10) == Some(&b'T') => &text[..at],
        _ => text,
    };
    let time = FORMATS.iter().find_map(|format| DateTime::strptime(format, text).ok())?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second() as f64)
}

/// The reports of `iostat -x -o JSON`; None in another text.
fn json(text: &str) -> Option<Vec<TimedReport>> {
    let hosts = hosts(text)?;
    let report = |(place, statistics): (usize, &serde_json::Value)| {
        let disks = statistics.get("disk").and_then(|disks| disks.as_array());
        let devices = disks.into_iter().flatten().filter_map(|disk| {
            let io = row(|name| disk.get(name)?.as_f64())?;
            Some((disk.get("disk_device")?.as_str()?.to_owned(), io))
        });
        let time = statistics.get("timestamp").and_then(|time| time.as_str());
        let busy_share = statistics.get("avg-cpu").and_then(|processors| {
            let value = |name: &str| processors.get(name)?.as_f64();
            share(value("user"), value("nice"), value("system"))
        });
        let at_s = time.and_then(clock);
        TimedReport { at_s, is_since_start: place == 0, busy_share, devices: devices.collect(), unread: None }
    };
    let runs = hosts.iter().filter_map(|host| host.get("statistics")?.as_array());
    Some(runs.flat_map(|reports| reports.iter().enumerate().map(report)).collect())
}

/// The counters of devices at a time, s since 1970; None where the text has no time.
pub(super) type Look = (Option<f64>, BTreeMap<String, DiskCounts>);

/// `/proc/diskstats`, each time after a line of pt-stalk with the time (`TS 1700000000.5 ...`); None in another text.
pub(super) fn looks(text: &str) -> Option<Vec<Look>> {
    let mut looks: Vec<Look> = vec![(None, BTreeMap::new())];
    let (mut known, mut other) = (0_usize, 0_usize);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(at) =
            line.strip_prefix("TS ").and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok())
        {
            looks.push((Some(at), BTreeMap::new()));
            continue;
        }
        match parse_disk(line) {
            Some((name, counts)) => {
                known += 1;
                looks.last_mut()?.1.insert(name, counts);
            }
            None => other += 1,
        }
    }
    looks.retain(|(_, counts)| !counts.is_empty());
    (known > 0 && other <= known).then_some(looks)
}

/// The rates between the first and the last look; None in another text.
fn counters(text: &str) -> Option<Devices> {
    let looks = looks(text)?;
    let (first, last) = (looks.first()?, looks.last()?);
    if looks.windows(2).any(|pair| pair[0].0 > pair[1].0) {
        let warning = "the times in the looks at /proc/diskstats go back: the clock was set, or the files are of several runs";
        return Some(Devices { warnings: vec![warning.to_owned()], ..Devices::default() });
    }
    let seconds = last.0.zip(first.0).map(|(last, first)| last - first);
    let Some(seconds) = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0) else {
        let warning = "/proc/diskstats was read once, or without the times: no rates follow from it";
        return Some(Devices { warnings: vec![warning.to_owned()], ..Devices::default() });
    };
    let onward = |name: &str| {
        let counts = looks.iter().filter_map(|(_, disks)| disks.get(name));
        counts.is_sorted_by(|one, next| one.reads <= next.reads && one.writes <= next.writes)
    };
    let rate = |(name, after): (&String, &DiskCounts)| {
        // A machine that was started again counts anew.
        Some((name.clone(), io(*first.1.get(name).filter(|_| onward(name))?, *after, seconds)?))
    };
    Some(Devices {
        counted: last.1.iter().filter_map(rate).collect(),
        seconds: Some(seconds),
        ..Devices::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_that_of_iostat_and_not_a_word_of_uname() {
        assert_eq!(machine("Linux 6.1.0-13-amd64 (db1) \t11/22/2026 \t_x86_64_\t(2 CPU)"), Some("db1"));
        let uname =
            "Linux db1 6.1.0-13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 (2023-09-29) x86_64 GNU/Linux";
        let version = "Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org) (gcc-12 12.2.0)";
        assert_eq!([machine(uname), machine(version), machine("Linux")], [None; 3]);
    }
}
