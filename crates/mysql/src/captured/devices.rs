//! What devices and processors did: reports of `iostat -x` of any version, and `/proc/diskstats` read several times.

use std::collections::BTreeMap;

use ebbtide_observe::DeviceIo;
use ebbtide_proc::machine::{DiskCounts, parse_disk};

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
    if let Some(all) = statistics(text) {
        let (reports, busy) = all.reports();
        return Some(Devices {
            busy_share: mean_of_later(&busy),
            processors: all.processors,
            ..of_reports(&reports)
        });
    }
    match reports(text) {
        Some(reports) => Some(Devices {
            busy_share: mean_of_later(&busy_shares(text)),
            processors: processors(text),
            ..of_reports(&reports)
        }),
        None => counters(text),
    }
}

/// The mean of all values but the first, which is that since the machine's start.
fn mean_of_later(values: &[f64]) -> Option<f64> {
    let (_, later) = values.split_first().filter(|(_, later)| !later.is_empty())?;
    Some(later.iter().sum::<f64>() / later.len() as f64)
}

type Report = BTreeMap<String, DeviceIo>;

fn of_reports(reports: &[Report]) -> Devices {
    // The first report is the mean since the machine's start.
    let Some((_, later)) = reports.split_first().filter(|(_, later)| !later.is_empty()) else {
        let warning = "iostat printed one report, which is the mean since the machine's start: `iostat -x 10 2` prints two";
        return Devices { warnings: vec![warning.to_owned()], ..Devices::default() };
    };
    let mut all: BTreeMap<String, Vec<DeviceIo>> = BTreeMap::new();
    for (name, io) in later.iter().flatten() {
        all.entry(name.clone()).or_default().push(*io);
    }
    let reported = all.into_iter().map(|(name, reports)| (name, mean(&reports))).collect();
    Devices { reported, ..Devices::default() }
}

/// The mean of reports of one length.
fn mean(reports: &[DeviceIo]) -> DeviceIo {
    let of = |value: fn(&DeviceIo) -> f64| reports.iter().map(value).sum::<f64>() / reports.len() as f64;
    // A report with more operations weighs more; one without any has no time of one.
    let time = |number: fn(&DeviceIo) -> f64, time: fn(&DeviceIo) -> Option<f64>| {
        let known = || reports.iter().filter_map(|io| Some((number(io), time(io)?)));
        let all: f64 = known().map(|(number, _)| number).sum();
        (all > 0.0).then(|| known().map(|(number, time)| number * time).sum::<f64>() / all)
    };
    DeviceIo {
        reads: of(|io| io.reads),
        writes: of(|io| io.writes),
        read_bytes: of(|io| io.read_bytes),
        written_bytes: of(|io| io.written_bytes),
        queue: of(|io| io.queue),
        read_s: time(|io| io.reads, |io| io.read_s),
        write_s: time(|io| io.writes, |io| io.write_s),
    }
}

/// Bytes of a unit in the name of a column.
const UNITS: [(&str, f64); 4] = [("B/s", 1.0), ("kB/s", 1024.0), ("MB/s", 1_048_576.0), ("sec/s", 512.0)];

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

/// The reports of `iostat -x`; None in another text.
fn reports(text: &str) -> Option<Vec<Report>> {
    let mut reports: Vec<Report> = Vec::new();
    let mut header: Vec<&str> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = fields.first() else {
            header.clear();
            continue;
        };
        if first.trim_end_matches(':') == "Device" && fields.contains(&"r/s") {
            header = fields;
            reports.push(Report::new());
        } else if fields.len() == header.len() {
            let value = |name: &str| {
                let place = header.iter().position(|column| *column == name)?;
                // Some languages write a comma.
                fields[place].replace(',', ".").parse::<f64>().ok()
            };
            if let (Some(io), Some(report)) = (row(value), reports.last_mut()) {
                report.insert((*first).to_owned(), io);
            }
        }
    }
    (!reports.is_empty()).then_some(reports)
}

/// The busy share of the processors in each report: %user, %nice and %system, which has interrupts in it.
fn busy_shares(text: &str) -> Vec<f64> {
    let mut lines = text.lines();
    let mut all = Vec::new();
    while let Some(line) = lines.next() {
        let Some(names) = line.trim().strip_prefix("avg-cpu:") else { continue };
        let values: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
        let value = |name: &str| {
            let place = names.split_whitespace().position(|column| column == name)?;
            values.get(place)?.replace(',', ".").parse::<f64>().ok()
        };
        all.extend(busy_share(value("%user"), value("%nice"), value("%system")));
    }
    all
}

/// A share of 0 to 1 of percents.
fn busy_share(user: Option<f64>, nice: Option<f64>, system: Option<f64>) -> Option<f64> {
    let share = (user? + nice? + system?) / 100.0;
    (0.0..=1.0).contains(&share).then_some(share)
}

/// The number in `(2 CPU)` of iostat's first line.
fn processors(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.trim_end().ends_with(" CPU)"))?;
    line.rsplit_once('(')?.1.split(' ').next()?.parse().ok()
}

/// What `iostat -x -o JSON` printed.
struct Statistics {
    all: Vec<serde_json::Value>,
    processors: Option<u64>,
}

/// The reports of `iostat -x -o JSON`; None in another text.
fn statistics(text: &str) -> Option<Statistics> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let all: serde_json::Value = serde_json::from_str(text).ok()?;
    let hosts = all.get("sysstat")?.get("hosts")?.as_array()?;
    let statistics = hosts.iter().filter_map(|host| host.get("statistics")?.as_array()).flatten();
    let processors = hosts.first().and_then(|host| host.get("number-of-cpus")?.as_u64());
    Some(Statistics { all: statistics.cloned().collect(), processors })
}

impl Statistics {
    /// What each report has of devices, and the busy shares of those that have processors.
    fn reports(&self) -> (Vec<Report>, Vec<f64>) {
        let report = |statistics: &serde_json::Value| -> Report {
            let disks = statistics.get("disk").and_then(|disks| disks.as_array());
            disks
                .into_iter()
                .flatten()
                .filter_map(|disk| {
                    let io = row(|name| disk.get(name)?.as_f64())?;
                    Some((disk.get("disk_device")?.as_str()?.to_owned(), io))
                })
                .collect()
        };
        let busy = self.all.iter().filter_map(|statistics| {
            let processors = statistics.get("avg-cpu")?;
            let value = |name: &str| processors.get(name)?.as_f64();
            busy_share(value("user"), value("nice"), value("system"))
        });
        (self.all.iter().map(report).collect(), busy.collect())
    }
}

/// `/proc/diskstats`, each time after a line of pt-stalk with the time (`TS 1700000000.5 ...`); None in another text.
fn counters(text: &str) -> Option<Devices> {
    let mut looks: Vec<(Option<f64>, BTreeMap<String, DiskCounts>)> = vec![(None, BTreeMap::new())];
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
    if known == 0 || other > known {
        return None;
    }
    looks.retain(|(_, counts)| !counts.is_empty());
    let (first, last) = (looks.first()?, looks.last()?);
    let seconds = last.0.zip(first.0).map(|(last, first)| last - first);
    let Some(seconds) = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0) else {
        let warning = "/proc/diskstats was read once, or without the times: no rates follow from it";
        return Some(Devices { warnings: vec![warning.to_owned()], ..Devices::default() });
    };
    let rate = |(name, after): (&String, &DiskCounts)| {
        Some((name.clone(), io(*first.1.get(name)?, *after, seconds)?))
    };
    Some(Devices {
        counted: last.1.iter().filter_map(rate).collect(),
        seconds: Some(seconds),
        ..Devices::default()
    })
}
