//! What a volume carried minute by minute: metrics of AWS/EBS as `aws cloudwatch get-metric-data` and
//! `get-metric-statistics` print them, or as the console exports them (CSV).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ebbtide_observe::{Exceeded, Limited, LoadInterval, VolumeLoad, VolumePeaks};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::Unexpected;

use super::Input;
use super::record_error::{MissingFigures, RecordDamage};

/// The words by which such texts are known.
const HEADS: [&str; 2] = ["\"MetricDataResults\"", "\"Datapoints\""];
/// The metrics that the doctor looks at, as the labels of the results end with them.
const METRICS: [&str; 9] = [
    "VolumeReadOps",
    "VolumeWriteOps",
    "VolumeReadBytes",
    "VolumeWriteBytes",
    BALANCE,
    CHECKS[0],
    CHECKS[1],
    CHECKS[2],
    CHECKS[3],
];
/// The share of the burst credits that is left, percent.
const BALANCE: &str = "BurstBalance";
/// 1 in a minute over a limit.
const CHECKS: [&str; 4] = [
    "VolumeIOPSExceededCheck",
    "VolumeThroughputExceededCheck",
    "InstanceEBSIOPSExceededCheck",
    "InstanceEBSThroughputExceededCheck",
];
/// Seconds of a minute: longer periods hide peaks.
const MINUTE: i64 = 60;

/// A metric with its values by time, s since 1970.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metric {
    label: String,
    points: Vec<(i64, f64)>,
}

/// The metrics of a text.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Metrics {
    pub(super) all: Vec<Metric>,
    /// Rows of a CSV export that have fewer values than its header has metrics, and were left out.
    pub(super) short: Option<ShortRows>,
}

/// Rows that are cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShortRows {
    /// How many.
    pub(super) rows: usize,
    /// Line number of the first, from 1 on.
    pub(super) first: usize,
}

impl ShortRows {
    /// That they were left out, for people.
    pub(super) fn words(self, path: &Path) -> String {
        let Self { rows, first } = self;
        let path = path.display();
        if rows == 1 {
            return format!(
                "{path}: line {first} has fewer values than the header has metrics, and was left out: the file may be cut off"
            );
        }
        format!(
            "{path}: {rows} rows have fewer values than the header has metrics, and were left out; the first is line {first}"
        )
    }
}

/// Values of each minute, by metric and minute.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Minutes {
    sums: BTreeMap<(&'static str, i64), f64>,
    /// The volumes that the labels name.
    volumes: BTreeSet<String>,
    /// A metric that has two values of one minute: the labels do not tell the volumes apart.
    twice: Option<&'static str>,
    /// What was left out, for people.
    pub(super) warnings: Vec<String>,
}

/// Why metrics tell no peaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoPeaks {
    #[error("the metrics have neither VolumeReadOps nor VolumeWriteOps")]
    NoOperations,
    #[error("the metrics are of several volumes ({0}): give those of the volume of the data alone")]
    SeveralVolumes(String),
    #[error("{0} has two values of one minute: give the metrics of one volume, each once")]
    Twice(&'static str),
    #[error("the figures are not of single minutes: ask with --period 60 and the statistic Sum")]
    NotMinutes,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    metric_data_results: Vec<Answered>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answered {
    label: String,
    timestamps: Vec<Second>,
    values: Vec<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Statistics {
    label: String,
    datapoints: Vec<Datapoint>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Datapoint {
    timestamp: Second,
    sum: Option<f64>,
    average: Option<f64>,
    maximum: Option<f64>,
}

/// A time as the AWS CLI prints it, s since 1970: ISO 8601 (version 2), or a number of seconds, whole or with a fraction, which
/// is cut off (version 1, with services that answer in JSON or CBOR).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Second(i64);

impl<'de> Deserialize<'de> for Second {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecondVisitor)
    }
}

struct SecondVisitor;

impl serde::de::Visitor<'_> for SecondVisitor {
    type Value = Second;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a time such as 2026-11-22T10:00:00Z, or seconds since 1970 such as 1795341600")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Second, E> {
        let time = text.parse::<jiff::Timestamp>();
        time.map(|time| Second(time.as_second())).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Second, E> {
        let time = jiff::Timestamp::from_second(seconds);
        time.map(|_| Second(seconds)).map_err(|_| E::invalid_value(Unexpected::Signed(seconds), &self))
    }

    fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Second, E> {
        let signed = i64::try_from(seconds);
        signed
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(seconds), &self))
            .and_then(|signed| self.visit_i64(signed))
    }

    fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Second, E> {
        #[expect(clippy::cast_possible_truncation, reason = "float casts saturate, and the range is checked")]
        self.visit_i64(seconds.floor() as i64)
    }
}

/// Whether a text is meant to hold metrics, damaged or not.
pub(super) fn is_meant(text: &str) -> bool {
    let json = text.trim_start().starts_with('{') && HEADS.iter().any(|head| text.contains(head));
    json || header(text).is_some()
}

/// Reads the metrics; an error says what is wrong with the text, and where.
pub(super) fn metrics(text: &str) -> Result<Metrics, RecordDamage> {
    if !text.trim_start().starts_with('{') {
        return table(text);
    }
    if text.contains(HEADS[0]) {
        let answer: Answer =
            serde_json::from_str(text).map_err(|error| RecordDamage::Json(error.to_string()))?;
        let metric = |one: Answered| Metric {
            points: one.timestamps.iter().map(|time| time.0).zip(one.values).collect(),
            label: one.label,
        };
        let all = answer.metric_data_results.into_iter().map(metric).collect();
        return Ok(Metrics { all, short: None });
    }
    let statistics: Statistics =
        serde_json::from_str(text).map_err(|error| RecordDamage::Json(error.to_string()))?;
    let value = |point: &Datapoint| point.sum.or(point.average).or(point.maximum);
    let points = statistics.datapoints.iter().filter_map(|point| Some((point.timestamp.0, value(point)?)));
    let all = vec![Metric { points: points.collect(), label: statistics.label }];
    Ok(Metrics { all, short: None })
}

/// The line of a CSV export that has the names of the metrics, and its number; None where there is none.
fn header(text: &str) -> Option<(usize, &str)> {
    // The console writes a few lines about the graph before it.
    let named = |line: &str| cells(line).iter().any(|cell| known(cell).is_some());
    text.lines().take(20).enumerate().find(|(_, line)| line.contains(',') && named(line))
}

/// The fields of a line of CSV, without their quotes.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.trim_start_matches('\u{feff}').chars() {
        match (c, cells.last_mut()) {
            ('"', _) => quoted = !quoted,
            (',', _) if !quoted => cells.push(String::new()),
            (c, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// A CSV export: a column of times, and a column for each metric.
fn table(text: &str) -> Result<Metrics, RecordDamage> {
    let (place, line) = header(text).ok_or(RecordDamage::NoMetricNames)?;
    let labels = cells(line);
    let columns = labels.iter().rposition(|label| known(label).is_some()).map_or(0, |last| last + 1);
    let mut short: Option<ShortRows> = None;
    let mut metrics: Vec<Metric> =
        labels.iter().skip(1).map(|label| Metric { label: label.clone(), points: Vec::new() }).collect();
    for (number, line) in text.lines().enumerate().skip(place + 1).filter(|(_, line)| !line.trim().is_empty())
    {
        let cells = cells(line);
        let at = cells.first().and_then(|cell| second(cell));
        // More lines about the graph may follow, until the first value.
        let began = metrics.iter().any(|metric| !metric.points.is_empty());
        if cells.len() < columns && (began || at.is_some()) {
            short.get_or_insert(ShortRows { rows: 0, first: number + 1 }).rows += 1;
            continue;
        }
        let Some(at) = at else {
            if !began {
                continue;
            }
            return Err(RecordDamage::at(number, "a time such as 2026/11/22 10:00:00", line));
        };
        for (cell, metric) in cells.iter().skip(1).zip(&mut metrics) {
            if cell.is_empty() {
                continue;
            }
            let value = cell.parse().map_err(|_| RecordDamage::at(number, "a number", cell))?;
            metric.points.push((at, value));
        }
    }
    Ok(Metrics { all: metrics, short })
}

/// A time of a CSV export, s since 1970; times without a zone are taken for UTC.
fn second(text: &str) -> Option<i64> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_second());
    }
    ["%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M"].iter().find_map(|format| {
        let time = DateTime::strptime(format, text).ok()?;
        Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
    })
}

/// Reads the sums that the doctor looks at; None in another text.
pub(super) fn read(input: &Input) -> Option<Minutes> {
    if !is_meant(&input.text) {
        return None;
    }
    let read = metrics(&input.text).ok()?;
    let warnings = read.short.map(|short| short.words(&input.path)).into_iter().collect();
    let mut minutes = Minutes { warnings, ..Minutes::default() };
    for one in &read.all {
        let Some(name) = METRICS.into_iter().find(|name| one.label.ends_with(name)) else { continue };
        let id = volume(&one.label);
        minutes.volumes.extend((!id.is_empty()).then(|| id.to_owned()));
        for (time, value) in &one.points {
            if value.is_finite() && *value >= 0.0 {
                minutes.insert(name, *time, *value);
            }
        }
    }
    Some(minutes)
}

/// The metrics that make a load.
const KNOWN: [(&str, Known); 14] = [
    ("VolumeReadOps", Known::Reads),
    ("VolumeWriteOps", Known::Writes),
    ("VolumeReadBytes", Known::ReadBytes),
    ("VolumeWriteBytes", Known::WrittenBytes),
    ("VolumeTotalReadTime", Known::ReadTime),
    ("VolumeTotalWriteTime", Known::WriteTime),
    ("VolumeQueueLength", Known::Queue),
    ("BurstBalance", Known::Credits),
    ("VolumeAvgReadLatency", Known::ReadLatency),
    ("VolumeAvgWriteLatency", Known::WriteLatency),
    ("InstanceEBSIOPSExceededCheck", Known::InstanceIops),
    ("InstanceEBSThroughputExceededCheck", Known::InstanceThroughput),
    ("VolumeIOPSExceededCheck", Known::VolumeIops),
    ("VolumeThroughputExceededCheck", Known::VolumeThroughput),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    Reads,
    Writes,
    ReadBytes,
    WrittenBytes,
    ReadTime,
    WriteTime,
    Queue,
    Credits,
    ReadLatency,
    WriteLatency,
    VolumeIops,
    VolumeThroughput,
    InstanceIops,
    InstanceThroughput,
}

/// The metric that a label names.
fn known(label: &str) -> Option<Known> {
    let last = label.split_whitespace().last()?;
    KNOWN.iter().find(|(name, _)| last.ends_with(name)).map(|(_, known)| *known)
}

/// The volume that a label names; empty where it names none.
fn volume(label: &str) -> &str {
    let id = |word: &&str| word.starts_with("vol-");
    label.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').find(id).unwrap_or("")
}

/// The loads of the volumes that metrics tell of, by volume. `period_s` is the length of an interval where the times do not
/// tell it: of a single one.
pub(super) fn loads(
    metrics: &[Metric],
    period_s: Option<f64>,
) -> Result<BTreeMap<String, VolumeLoad>, MissingFigures> {
    let mut values: BTreeMap<&str, BTreeMap<i64, BTreeMap<Known, f64>>> = BTreeMap::new();
    for metric in metrics {
        let Some(known) = known(&metric.label) else { continue };
        for (at, value) in &metric.points {
            values.entry(volume(&metric.label)).or_default().entry(*at).or_default().insert(known, *value);
        }
    }
    let has = |known: Known| values.values().flat_map(BTreeMap::values).any(|of| of.contains_key(&known));
    let lacks: Vec<&'static str> = [
        (Known::Reads, "VolumeReadOps"),
        (Known::Writes, "VolumeWriteOps"),
        (Known::ReadBytes, "VolumeReadBytes"),
        (Known::WrittenBytes, "VolumeWriteBytes"),
    ]
    .into_iter()
    .filter(|(known, _)| !has(*known))
    .map(|(_, name)| name)
    .collect();
    if !lacks.is_empty() {
        return Err(MissingFigures::Metrics(lacks));
    }
    // What names no volume belongs to all of them, such as an instance's checks.
    let of_all = if values.len() > 1 { values.remove("") } else { None };
    let times = || values.values().flat_map(BTreeMap::keys).copied();
    let mut sorted: Vec<i64> = times().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let apart = sorted.windows(2).map(|pair| pair[1] - pair[0]).min();
    let seconds = apart.map(|s| s as f64).or(period_s).unwrap_or(MINUTE as f64);
    let load = |(name, by_time): (&str, BTreeMap<i64, BTreeMap<Known, f64>>)| {
        let intervals = by_time.iter().map(|(at, own)| {
            let shared = of_all.as_ref().and_then(|all| all.get(at));
            let get = |known: Known| own.get(&known).or_else(|| shared?.get(&known)).copied();
            interval(*at, seconds, get)
        });
        (name.to_owned(), VolumeLoad { intervals: intervals.collect() })
    };
    Ok(values.into_iter().map(load).collect())
}

fn interval(at: i64, seconds: f64, get: impl Fn(Known) -> Option<f64>) -> LoadInterval {
    let rate = |known: Known| get(known).unwrap_or(0.0) / seconds;
    let mean = |time: Known, number: Known, mean_ms: Known| {
        let number = get(number).unwrap_or(0.0);
        let of_sums = get(time).filter(|_| number > 0.0).map(|s| s / number);
        of_sums.or_else(|| get(mean_ms).filter(|_| number > 0.0).map(|ms| ms / 1e3))
    };
    let check = |known: Known| get(known).map(|value| value > 0.0);
    let checks = [Known::VolumeIops, Known::VolumeThroughput, Known::InstanceIops, Known::InstanceThroughput]
        .map(check);
    let limited = Limited {
        volume_iops: checks[0] == Some(true),
        volume_throughput: checks[1] == Some(true),
        instance_iops: checks[2] == Some(true),
        instance_throughput: checks[3] == Some(true),
    };
    LoadInterval {
        start_s: at as f64,
        seconds,
        reads: rate(Known::Reads),
        writes: rate(Known::Writes),
        read_bytes: rate(Known::ReadBytes),
        written_bytes: rate(Known::WrittenBytes),
        queue: get(Known::Queue),
        read_s: mean(Known::ReadTime, Known::Reads, Known::ReadLatency),
        write_s: mean(Known::WriteTime, Known::Writes, Known::WriteLatency),
        credits: get(Known::Credits).map(|percent| percent / 100.0),
        limited: checks.iter().any(Option::is_some).then_some(limited),
    }
}

impl Minutes {
    fn insert(&mut self, name: &'static str, time: i64, value: f64) {
        // Files of neighbouring days may have a minute in common.
        if self.sums.insert((name, time), value).is_some_and(|before| before != value) {
            self.twice.get_or_insert(name);
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        for ((name, time), value) in other.sums {
            self.insert(name, time, value);
        }
        self.volumes.extend(other.volumes);
        self.twice = self.twice.or(other.twice);
        self.warnings.extend(other.warnings);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Sums of several metrics together, by minute.
    fn of(&self, metrics: [&str; 2]) -> BTreeMap<i64, f64> {
        let mut all = BTreeMap::new();
        for ((name, minute), value) in &self.sums {
            if metrics.contains(name) {
                *all.entry(*minute).or_insert(0.0) += value;
            }
        }
        all
    }

    /// The peaks.
    pub(super) fn peaks(&self) -> Result<VolumePeaks, NoPeaks> {
        if self.volumes.len() > 1 {
            let all: Vec<&str> = self.volumes.iter().map(String::as_str).collect();
            return Err(NoPeaks::SeveralVolumes(all.join(", ")));
        }
        if let Some(name) = self.twice {
            return Err(NoPeaks::Twice(name));
        }
        let ios = self.of(["VolumeReadOps", "VolumeWriteOps"]);
        let (Some((first, _)), Some((last, _))) = (ios.first_key_value(), ios.last_key_value()) else {
            return Err(NoPeaks::NoOperations);
        };
        let apart = ios.keys().zip(ios.keys().skip(1)).map(|(one, next)| next - one).min();
        if apart != Some(MINUTE) {
            return Err(NoPeaks::NotMinutes);
        }
        let bytes = self.of(["VolumeReadBytes", "VolumeWriteBytes"]);
        Ok(VolumePeaks {
            seconds: (last - first + MINUTE) as f64,
            minutes: ios.len() as u64,
            ios: peak(&ios),
            bytes: (!bytes.is_empty()).then(|| peak(&bytes)),
            burst_balance: self.values(BALANCE).reduce(f64::min).map(|percent| percent / 100.0),
            exceeded: self.exceeded(),
        })
    }

    /// The values of one metric.
    fn values<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = f64> + 'a {
        self.sums.iter().filter(move |((name, _), _)| *name == metric).map(|(_, value)| *value)
    }

    /// Shares of the minutes over each limit; None where no check is among the metrics.
    fn exceeded(&self) -> Option<Exceeded> {
        let share = |metric: &str| {
            let (all, over) =
                (self.values(metric).count(), self.values(metric).filter(|value| *value > 0.0).count());
            (all > 0).then(|| over as f64 / all as f64)
        };
        let shares = CHECKS.map(share);
        shares.iter().any(Option::is_some).then(|| {
            let [volume_iops, volume_throughput, instance_iops, instance_throughput] =
                shares.map(|share| share.unwrap_or(0.0));
            Exceeded { volume_iops, volume_throughput, instance_iops, instance_throughput }
        })
    }
}

/// The rate a second of the minute that one in a thousand is above.
fn peak(minutes: &BTreeMap<i64, f64>) -> f64 {
    let mut values: Vec<f64> = minutes.values().copied().collect();
    values.sort_by(f64::total_cmp);
    let above = values.len() / 1_000;
    values[values.len() - 1 - above] / MINUTE as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_or_iso_8601_and_others_are_refused() {
        let of = |time: &str| {
            let answer = format!(
                r#"{{"MetricDataResults": [{{"Label": "VolumeReadOps", "Timestamps": [{time}], "Values": [5.0]}}]}}"#
            );
            let point = format!(
                r#"{{"Label": "VolumeReadOps", "Datapoints": [{{"Timestamp": {time}, "Sum": 5.0}}]}}"#
            );
            let [one, other] = [answer, point].map(|text| metrics(&text));
            assert_eq!(one.is_ok(), other.is_ok(), "{time}: {one:?}, {other:?}");
            one.map(|one| (one.all[0].points.clone(), other.unwrap().all[0].points.clone()))
        };
        let at = vec![(1_795_647_480, 5.0)];
        for time in [
            "1795647480",
            "1795647480.0",
            "1795647480.75",
            "\"2026-11-25T22:58:00Z\"",
            "\"2026-11-25T23:58:00+01:00\"",
        ] {
            assert_eq!(of(time).unwrap(), (at.clone(), at.clone()), "{time}");
        }
        for time in ["\"1795647480\"", "1e300", "-1e300", "18446744073709551615", "true", "null", "\"\""] {
            let error = of(time).unwrap_err();
            assert!(
                error.to_string().contains("or seconds since 1970 such as 1795341600"),
                "{time}: {error}"
            );
        }
    }

    #[test]
    fn credits_and_minutes_over_a_limit_are_read_beside_the_operations() {
        let values = |metric: &str, values: [f64; 3]| {
            format!(
                r#"{{"Id": "x", "Label": "{metric}", "Timestamps": ["2026-11-22T10:00:00Z", "2026-11-22T10:01:00Z",
                "2026-11-22T10:02:00Z"], "Values": {values:?}}}"#
            )
        };
        let peaks = |all: &[String]| {
            let text = format!(r#"{{"MetricDataResults": [{}]}}"#, all.join(", "));
            read(&Input { path: "/none".into(), text }).unwrap().peaks().unwrap()
        };
        let ops = values("VolumeWriteOps", [60.0, 120.0, 60.0]);
        let all =
            [ops.clone(), values("BurstBalance", [80.0, 19.0, 90.0]), values(CHECKS[1], [0.0, 0.0, 1.0])];
        let peaks_of_all = peaks(&all);
        assert_eq!((peaks_of_all.ios, peaks_of_all.burst_balance), (2.0, Some(0.19)));
        let over = peaks_of_all.exceeded.unwrap();
        assert!((over.volume_throughput - 1.0 / 3.0).abs() < 1e-9 && over.volume_iops == 0.0, "{over:?}");
        let alone = peaks(&[ops]);
        assert_eq!((alone.burst_balance, alone.exceeded), (None, None));
    }
}
