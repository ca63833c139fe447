//! What devices and processors did: reports of `iostat -x` of any version, and `/proc/diskstats` read several times.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_observe::DeviceIo;
use ebbtide_proc::machine::{DiskCounts, parse_disk};

use super::sysstat::{self, Recording, Report, Split, Text};

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
    match sysstat::iostat(text) {
        Some(Text::Recording(recording)) => Some(of_recording(&recording)),
        Some(Text::Unusable(why)) => Some(warned(format!("a file {why}: {}", why.hint()))),
        Some(Text::Damaged(why)) => Some(warned(format!("the JSON of iostat is damaged: {why}"))),
        None => counters(text),
    }
}

/// Nothing but a warning.
fn warned(warning: String) -> Devices {
    Devices { warnings: vec![warning], ..Devices::default() }
}

/// What iostat recorded: means of all reports but those since the machine's start.
fn of_recording(recording: &Recording) -> Devices {
    let later = recording.whole_reports();
    let busy: Vec<f64> = later.iter().filter_map(|report| report.busy_share).collect();
    let busy_share = (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64);
    let machines = recording.runs.iter().filter_map(|run| run.machine.clone()).collect();
    let processors = recording.runs.iter().find_map(|run| run.processors);
    let devices = Devices { busy_share, processors, machines, ..of_reports(&later) };
    let Some(row) = &recording.unread else { return devices };
    let warning = format!("a row of iostat was not understood, so none is used: {row}");
    Devices { reported: BTreeMap::new(), warnings: vec![warning], ..devices }
}

/// The mean of reports of an interval each.
fn of_reports(reports: &[&Report]) -> Devices {
    if reports.is_empty() {
        return warned(
            "iostat printed one report, which is the mean since the machine's start: `iostat -x 10 2` prints two".to_owned(),
        );
    }
    let rows = || reports.iter().flat_map(|report| &report.devices);
    if rows().any(|(_, row)| row.split != Split::Known) {
        return warned("iostat -s counts reads and writes together: run it without -s".to_owned());
    }
    let mut all: BTreeMap<String, Vec<DeviceIo>> = BTreeMap::new();
    for (name, row) in rows() {
        all.entry(name.clone()).or_default().push(row.io);
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

/// The counters of devices at a time, s since 1970; None where the text has no time.
pub(super) type Look = (Option<f64>, BTreeMap<String, DiskCounts>);

/// `/proc/diskstats`, each time after a line with the time: that of pt-stalk (`TS 1700000000.5 ...`), or `date +%s`. Without times a
/// device that comes again begins another look. None in another text.
pub(super) fn looks(text: &str) -> Option<Vec<Look>> {
    let mut looks: Vec<Look> = vec![(None, BTreeMap::new())];
    let (mut known, mut other) = (0_usize, 0_usize);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let of_stalk = || line.strip_prefix("TS ")?.split(' ').next()?.parse::<f64>().ok();
        if let Some(at) = of_stalk().or_else(|| epoch(line)) {
            looks.push((Some(at), BTreeMap::new()));
            continue;
        }
        match parse_disk(line) {
            Some((name, counts)) => {
                known += 1;
                let last = looks.last()?;
                if last.0.is_none() && last.1.contains_key(&name) {
                    looks.push((None, BTreeMap::new()));
                }
                looks.last_mut()?.1.insert(name, counts);
            }
            None => other += 1,
        }
    }
    looks.retain(|(_, counts)| !counts.is_empty());
    (known > 0 && other <= known).then_some(looks)
}

/// The time of a line of `date +%s` or `date +%s.%N`, s since 1970.
fn epoch(line: &str) -> Option<f64> {
    let whole = line.trim().split('.').next()?;
    let is_time = whole.len() == 10 && whole.bytes().all(|byte| byte.is_ascii_digit());
    line.trim().parse().ok().filter(|_| is_time)
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
        Some((name.clone(), device_io(*first.1.get(name).filter(|_| onward(name))?, *after, seconds)?))
    };
    Some(Devices {
        counted: last.1.iter().filter_map(rate).collect(),
        seconds: Some(seconds),
        ..Devices::default()
    })
}

/// What a device did between two looks at its counters, `seconds` apart. None for an interval of no length, and for counters that
/// went back.
#[must_use]
pub fn device_io(before: DiskCounts, after: DiskCounts, seconds: f64) -> Option<DeviceIo> {
    let rate = |before: u64, after: u64| Some(after.checked_sub(before)? as f64 / seconds);
    // Kernels keep these in 32 bits: one that went back costs the mean alone.
    let mean = |ms: (u64, u64), number: (u64, u64)| {
        let (ms, number) = (ms.1.checked_sub(ms.0)?, number.1.checked_sub(number.0)?);
        (number > 0).then(|| ms as f64 / 1000.0 / number as f64)
    };
    let io = DeviceIo {
        reads: rate(before.reads, after.reads)?,
        writes: rate(before.writes, after.writes)?,
        read_bytes: rate(before.read_bytes, after.read_bytes)?,
        written_bytes: rate(before.written_bytes, after.written_bytes)?,
        queue: rate(before.queue_ms, after.queue_ms)? / 1000.0,
        read_s: mean((before.read_ms, after.read_ms), (before.reads, after.reads)),
        write_s: mean((before.write_ms, after.write_ms), (before.writes, after.writes)),
    };
    (seconds > 0.0).then_some(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_counted_over_the_interval() {
        let before = DiskCounts {
            reads: 100,
            read_bytes: 409_600,
            writes: 200,
            written_bytes: 819_200,
            read_ms: 50,
            write_ms: 100,
            queue_ms: 1000,
        };
        let after = DiskCounts {
            reads: 120,
            read_bytes: 512_000,
            writes: 260,
            written_bytes: 1_331_200,
            read_ms: 90,
            write_ms: 100,
            queue_ms: 3000,
        };
        let io = device_io(before, after, 2.0).unwrap();
        assert_eq!((io.reads, io.writes, io.queue), (10.0, 30.0, 1.0));
        assert_eq!((io.read_bytes, io.written_bytes), (51_200.0, 256_000.0));
        assert_eq!((io.read_s, io.write_s), (Some(0.002), Some(0.0)));
        let wrapped = DiskCounts { read_ms: 1, ..after };
        assert_eq!(device_io(before, wrapped, 2.0).unwrap().read_s, None, "the rest is still known");
        assert_eq!(device_io(after, before, 2.0), None);
        assert_eq!(device_io(before, after, 0.0), None);
    }
}
