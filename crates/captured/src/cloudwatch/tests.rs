//! What files of CloudWatch say, and what is refused.
#![allow(clippy::unwrap_used)] // a test fails by a panic

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::{Input, Recorded, RecordedError, recorded};

const NAMES: [&str; 4] = ["VolumeReadOps", "VolumeWriteOps", "VolumeReadBytes", "VolumeWriteBytes"];
/// Sums of a minute: 3,000 reads and 2,000 writes a second of 16 KiB.
const SUMS: [f64; 4] = [180_000.0, 120_000.0, 180_000.0 * 16_384.0, 120_000.0 * 16_384.0];

fn file(name: &str, text: &str) -> Input {
    Input { path: name.into(), text: text.to_owned() }
}

fn read(text: &str) -> Result<Recorded, RecordedError> {
    recorded(&[file("a.json", text)], None)
}

fn refusal(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

/// A time of 2 November 2026, from 9:00 on.
fn time(second: usize) -> String {
    format!("2026-11-02T{:02}:{:02}:{:02}Z", 9 + second / 3_600, second / 60 % 60, second % 60)
}

/// A result of `get-metric-data`: values by the seconds after 9:00.
fn result(id: &str, label: &str, values: &[(usize, f64)]) -> String {
    let times: Vec<String> = values.iter().map(|(second, _)| format!("\"{}\"", time(*second))).collect();
    let values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    format!(
        "{{\"Id\": \"{id}\", \"Label\": \"{label}\", \"Timestamps\": [{}], \"Values\": {values:?}, \"StatusCode\": \"Complete\"}}",
        times.join(",")
    )
}

fn answer(results: &[String]) -> String {
    format!("{{\"MetricDataResults\": [{}]}}", results.join(","))
}

/// The four metrics of a volume, `minutes` of them from a minute on; `label` makes a label of a metric's name.
fn volume(label: impl Fn(&str) -> String, sums: [f64; 4], minutes: std::ops::Range<usize>) -> Vec<String> {
    let one = |(name, sum): (&&str, f64)| {
        let values: Vec<(usize, f64)> = minutes.clone().map(|minute| (minute * 60, sum)).collect();
        result(&format!("m{}", name.len()), &label(name), &values)
    };
    NAMES.iter().zip(sums).map(one).collect()
}

/// A console export with rows about the graph; values are the sums of a minute.
fn export(rows: &[&str], times: &[&str]) -> String {
    let mut text = format!("Label,{}\n", NAMES.join(","));
    rows.iter().for_each(|row| writeln!(text, "{row}").unwrap());
    for time in times {
        writeln!(text, "{time},180000,120000,2949120000,1966080000").unwrap();
    }
    text
}

const MINUTES: [&str; 3] = ["2026/11/02 09:00:00", "2026/11/02 09:01:00", "2026/11/02 09:02:00"];
const FIVE: [&str; 3] = ["2026/11/02 09:00:00", "2026/11/02 09:05:00", "2026/11/02 09:10:00"];

/// `get-metric-statistics` of one metric, its points as JSON without their time.
fn statistics(name: &str, points: &[String]) -> String {
    let points = points.iter().enumerate();
    let points: Vec<String> = points
        .map(|(minute, point)| format!("{{\"Timestamp\": \"{}\", {point}}}", time(minute * 60)))
        .collect();
    format!("{{\"Label\": \"{name}\", \"Datapoints\": [{}]}}", points.join(","))
}

/// Four files, each of one metric; `point` makes a point of a sum.
fn four(point: impl Fn(&str, f64) -> String) -> Vec<Input> {
    let one = |(name, sum): (&&str, f64)| {
        file(&format!("{name}.json"), &statistics(name, &[point(name, sum), point(name, sum)]))
    };
    NAMES.iter().zip(SUMS).map(one).collect()
}

fn assert_load(found: &Recorded, volume: &str, intervals: usize, reads: f64) {
    let load = &found.loads[volume].intervals;
    assert_eq!(load.len(), intervals, "{load:?}");
    assert!(load.iter().all(|one| (one.reads - reads).abs() < 1e-6), "{load:?}");
}

#[test]
fn an_export_of_averages_is_refused_with_the_metrics_and_the_statistic() {
    let text = include_str!("../../tests/fixtures/cloudwatch-average.csv");
    let error = read(text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a.json: VolumeReadOps, VolumeWriteOps, VolumeReadBytes, VolumeWriteBytes have the statistic Average: needed is Sum"
    );
    let RecordedError::Metrics { cause, .. } = error else { panic!("{error}") };
    assert!(cause.hint().contains("the statistic Sum"), "{}", cause.hint());
    let sums = read(&text.replace("Average", "Sum")).unwrap();
    assert_load(&sums, "vol-0a1b2c3d4e5f60718", 12, 600.0);
}

#[test]
fn every_row_and_word_that_names_a_statistic_is_read() {
    for row in ["Stat,Sum,Sum,Sum,Sum", "Statistic,Sum", "Statistics,sum,SUM,Sum,Sum", "stat,,,,"] {
        assert_load(&read(&export(&[row], &MINUTES)).unwrap(), "", 3, 3_000.0);
    }
    for (row, found) in [
        ("Stat,Sum,Average,Sum,Sum", "VolumeWriteOps has the statistic Average: needed is Sum"),
        ("Stat,Maximum", "have the statistic Maximum"),
        ("Statistic,Sum,Sum,Sum,SampleCount", "VolumeWriteBytes has the statistic SampleCount"),
        ("Stat,p99,Sum,Sum,Sum", "VolumeReadOps has the statistic p99"),
        ("Stat,Sum,Sum,TM(10%:90%),Sum", "VolumeReadBytes has the statistic TM(10%:90%)"),
        ("Stat,Summe", "the statistic Summe"),
    ] {
        let error = refusal(&export(&[row], &MINUTES));
        assert!(error.contains(found), "{row}: {error}");
    }
    let labelled = |label: &str| read(&answer(&volume(|name| label.replace("NAME", name), SUMS, 0..3)));
    for label in [
        "vol-0a NAME Sum",
        "vol-0a NAME (Sum) 60",
        "Sum of NAME vol-0a",
        "NAME sum vol-0a",
        "Sum vol-0a NAME",
    ] {
        assert_load(&labelled(label).unwrap(), "vol-0a", 3, 3_000.0);
    }
    for label in [
        "NAME Average",
        "Average vol-0a NAME",
        "avg NAME",
        "NAME (p99.9)",
        "NAME Max",
        "Minimum of NAME",
        "RATE(NAME)",
    ] {
        let error = labelled(label).unwrap_err().to_string();
        assert!(error.contains("have the statistic ") && error.contains("needed is Sum"), "{label}: {error}");
    }
    // Names of hosts are no statistics.
    for label in ["db-max NAME", "ts1 NAME", "average-joe NAME"] {
        assert_load(&labelled(label).unwrap(), "", 3, 3_000.0);
    }
}

#[test]
fn the_statistics_of_points_are_used_where_they_tell_what_is_needed() {
    let sums = four(|_, sum| format!("\"Sum\": {sum}, \"Maximum\": 1.0"));
    assert_load(&recorded(&sums, None).unwrap(), "", 2, 3_000.0);
    // 5 samples of a minute.
    let product = four(|_, sum| format!("\"Average\": {}, \"SampleCount\": 5.0", sum / 5.0));
    assert_load(&recorded(&product, None).unwrap(), "", 2, 3_000.0);
    for (point, found) in [
        ("\"Average\": 5.0", "Average"),
        ("\"Maximum\": 5.0", "Maximum"),
        ("\"SampleCount\": 5.0", "SampleCount"),
        ("\"Average\": 5.0, \"Maximum\": 9.0", "Average and Maximum"),
        ("\"ExtendedStatistics\": {\"p99\": 5.0}", "p99"),
    ] {
        let error = recorded(&four(|_, _| point.to_owned()), None).unwrap_err().to_string();
        assert!(error.contains(&format!("have the statistic {found}: needed is Sum")), "{point}: {error}");
    }
    let mixed = four(|name, sum| {
        let statistic = if name == "VolumeReadBytes" { "Average" } else { "Sum" };
        format!("\"{statistic}\": {sum}")
    });
    let error = recorded(&mixed, None).unwrap_err().to_string();
    assert_eq!(error, "VolumeReadBytes.json: VolumeReadBytes has the statistic Average: needed is Sum");
    // Two queries of one metric.
    let halves = |statistic: &str, of: fn(f64) -> f64| {
        volume(|name| format!("vol-0a {name} {statistic}"), SUMS.map(of), 0..3)
    };
    let both = [halves("Average", |sum| sum / 5.0), halves("SampleCount", |_| 5.0)].concat();
    assert_load(&read(&answer(&both)).unwrap(), "vol-0a", 3, 3_000.0);
}

#[test]
fn gauges_are_means_and_times_are_sums() {
    let with = |name: &str, point: &str| {
        let mut files = four(|_, sum| format!("\"Sum\": {sum}"));
        files.push(file("more.json", &statistics(name, &[point.to_owned(), point.to_owned()])));
        recorded(&files, None).map(|all| all.loads[""].intervals[0])
    };
    assert_eq!(with("VolumeQueueLength", "\"Average\": 4.0").unwrap().queue, Some(4.0));
    assert_eq!(with("VolumeQueueLength", "\"Sum\": 20.0, \"SampleCount\": 5.0").unwrap().queue, Some(4.0));
    assert_eq!(with("BurstBalance", "\"Average\": 40.0").unwrap().credits, Some(0.4));
    assert_eq!(with("BurstBalance", "\"Minimum\": 40.0").unwrap().credits, Some(0.4));
    assert_eq!(with("VolumeTotalReadTime", "\"Sum\": 90.0").unwrap().read_s, Some(0.0005));
    assert_eq!(
        with("VolumeTotalReadTime", "\"Sum\": 90000.0, \"Unit\": \"Milliseconds\"").unwrap().read_s,
        Some(0.0005)
    );
    assert_eq!(with("VolumeAvgReadLatency", "\"Average\": 0.5").unwrap().read_s, Some(0.0005));
    assert_eq!(with("VolumeAvgReadLatency", "\"Maximum\": 0.5").unwrap().read_s, Some(0.0005));
    assert_eq!(
        with("VolumeAvgReadLatency", "\"Average\": 500.0, \"Unit\": \"Microseconds\"").unwrap().read_s,
        Some(0.0005)
    );
    for statistic in ["Maximum", "Average", "Sum"] {
        let point = format!("\"{statistic}\": 0.2");
        assert!(with("VolumeIOPSExceededCheck", &point).unwrap().limited.unwrap().volume_iops, "{statistic}");
    }
    for (name, point) in [
        ("VolumeTotalReadTime", "\"Average\": 90.0"),
        ("VolumeQueueLength", "\"Sum\": 4.0"),
        ("VolumeQueueLength", "\"Maximum\": 4.0"),
        ("BurstBalance", "\"Sum\": 100.0"),
        ("VolumeIOPSExceededCheck", "\"SampleCount\": 1.0"),
    ] {
        let error = with(name, point).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} has the statistic ")), "{name} {point}: {error}");
    }
}

#[test]
fn a_unit_is_converted_exactly_or_refused_by_name() {
    let with = |name: &str, unit: &str| {
        let point = |of: &str, sum: f64| {
            let unit = if of == name { format!(", \"Unit\": \"{unit}\"") } else { String::new() };
            format!("\"Sum\": {sum}{unit}")
        };
        recorded(&four(point), None)
    };
    for (name, unit) in [("VolumeReadOps", "Count"), ("VolumeReadOps", "None"), ("VolumeReadBytes", "Bytes")]
    {
        assert_load(&with(name, unit).unwrap(), "", 2, 3_000.0);
    }
    let bits = with("VolumeReadBytes", "Bits").unwrap().loads[""].intervals[0];
    assert_eq!(bits.read_bytes, 3_000.0 * 16_384.0 / 8.0);
    for (name, unit, expected) in [
        ("VolumeReadBytes", "Kilobytes", "Bytes"),
        ("VolumeReadBytes", "Megabytes", "Bytes"),
        ("VolumeReadBytes", "Bytes/Second", "Bytes"),
        ("VolumeReadOps", "Count/Second", "Count"),
        ("VolumeReadOps", "Percent", "Count"),
        ("VolumeReadOps", "Milliseconds", "Count"),
        ("VolumeReadOps", "Widgets", "Count"),
    ] {
        let error = with(name, unit).unwrap_err().to_string();
        let words = format!("{name}.json: {name} has the unit '{unit}', and has to have {expected}");
        assert_eq!(error, words);
    }
    let row = read(&export(&["Unit,Count,Count,Kilobytes,Kilobytes"], &MINUTES)).unwrap_err().to_string();
    assert!(row.contains("VolumeReadBytes has the unit 'Kilobytes'"), "{row}");
    for label in ["NAME/s", "NAME per second", "NAME (MiB)", "NAME [IOPS]", "NAME Count/Second"] {
        let text = answer(&volume(|name| label.replace("NAME", name), SUMS, 0..3));
        assert!(refusal(&text).contains("VolumeReadOps has the unit '"), "{label}: {}", refusal(&text));
    }
}

#[test]
fn the_period_is_what_the_file_says_and_its_values_agree_with_it() {
    assert_load(&read(&export(&["Period,300,300,300,300"], &FIVE)).unwrap(), "", 3, 600.0);
    for row in ["Period,300", "Period,5 minutes", "Period (seconds),300,300,300,300"] {
        assert_load(&read(&export(&[row], &FIVE[..1])).unwrap(), "", 1, 600.0);
    }
    assert_load(&read(&export(&["Period,60"], &MINUTES[..1])).unwrap(), "", 1, 3_000.0);
    // An hour without values is no longer period.
    let gap = ["2026/11/02 09:00:00", "2026/11/02 10:00:00"];
    assert_load(&read(&export(&["Period,60"], &gap)).unwrap(), "", 2, 3_000.0);
    for (row, times, words) in [
        (
            "Period,300",
            MINUTES,
            "has the period 300 s by the file's own words, and its values are 60 s apart",
        ),
        ("Period,60", FIVE, "has the period 60 s by the file's own words, and its values are 300 s apart"),
        (
            "Period,60,60,300,300",
            FIVE,
            "has the period 60 s by the file's own words, and its values are 300 s apart",
        ),
        ("Period,fortnight", MINUTES, "the period 'fortnight' of VolumeReadOps is no time"),
    ] {
        let error = refusal(&export(&[row], &times));
        assert!(error.contains(words), "{row}: {error}");
    }
    let labels = answer(&volume(|name| format!("vol-0a {name} Sum 300"), SUMS, 0..1));
    assert_load(&read(&labels).unwrap(), "vol-0a", 1, 600.0);
}

#[test]
fn metrics_of_different_periods_are_refused_by_name_and_weeks_of_different_periods_follow_each_other() {
    let with = |bytes: &[usize]| {
        let all: Vec<(usize, f64)> = (0..11).map(|minute| (minute * 60, SUMS[0])).collect();
        let bytes: Vec<(usize, f64)> = bytes.iter().map(|second| (*second, SUMS[2])).collect();
        answer(&[
            result("a", NAMES[0], &all),
            result("b", NAMES[1], &all),
            result("c", NAMES[2], &bytes),
            result("d", NAMES[3], &bytes),
        ])
    };
    assert_eq!(
        refusal(&with(&[0, 300, 600])),
        "a.json: VolumeReadOps has a period of 60 s and VolumeReadBytes of 300 s, of the same volume and time"
    );
    // What is missing here and there is left out and counted.
    let torn = read(&with(&[0, 60, 120, 300])).unwrap();
    assert_load(&torn, "", 4, 3_000.0);
    assert_eq!(
        torn.notes,
        [
            "7 of 11 intervals were left out: at 2026-11-02T09:03:00Z there is VolumeReadOps, and no VolumeReadBytes"
        ]
    );
    // Five minutes that begin at other times.
    let from = |name: usize, first: usize| {
        let values: Vec<(usize, f64)> = (0..4).map(|five| (first + five * 300, SUMS[name])).collect();
        result("m", NAMES[name], &values)
    };
    let shifted = refusal(&answer(&[from(0, 0), from(1, 120), from(2, 0), from(3, 120)]));
    assert_eq!(
        shifted,
        "a.json: the metrics are not of the same periods: at 2026-11-02T09:00:00Z there is VolumeReadOps, and no VolumeWriteOps"
    );
    // Five minutes each until 9:10, then minutes.
    let coarse = |name: usize| (0..2).map(|five| (five * 300, SUMS[name] * 5.0)).collect::<Vec<_>>();
    let old: Vec<String> = (0..4).map(|name| result("o", NAMES[name], &coarse(name))).collect();
    let files =
        [file("old.json", &answer(&old)), file("new.json", &answer(&volume(str::to_owned, SUMS, 10..13)))];
    let both = recorded(&files, None).unwrap();
    assert_load(&both, "", 5, 3_000.0);
    let lengths: Vec<f64> = both.loads[""].intervals.iter().map(|one| one.seconds).collect();
    assert_eq!(lengths, [300.0, 300.0, 60.0, 60.0, 60.0]);
}

#[test]
fn two_values_of_one_metric_and_time_are_an_error_that_names_both() {
    let small = SUMS.map(|sum| sum / 100.0);
    let [big, other] = [SUMS, small].map(|sums| answer(&volume(str::to_owned, sums, 0..3)));
    for (first, second) in [(&big, &other), (&other, &big)] {
        let error = recorded(&[file("a.json", first), file("b.json", second)], None).unwrap_err();
        let words = error.to_string();
        for part in [
            "two values of VolumeReadOps at 2026-11-02T09:00:00Z",
            "180000 of ",
            "1800 of ",
            "in a.json",
            "in b.json",
        ] {
            assert!(words.contains(part), "'{part}' is not in: {words}");
        }
        let RecordedError::Metrics { cause, .. } = error else { panic!("{words}") };
        assert!(cause.hint().contains("volume's id into each label"), "{}", cause.hint());
    }
    let one = answer(&[volume(str::to_owned, SUMS, 0..3), volume(str::to_owned, small, 0..3)].concat());
    assert!(
        refusal(&one).contains("two values of VolumeReadOps at 2026-11-02T09:00:00Z: 180000 of m13"),
        "{}",
        refusal(&one)
    );
    // Days that overlap are one load.
    let files = [0..3, 1..5].map(|minutes| file("day.json", &answer(&volume(str::to_owned, SUMS, minutes))));
    assert_load(&recorded(&files, None).unwrap(), "", 5, 3_000.0);
    let tables = [
        file("a.csv", &export(&[], &MINUTES)),
        file("b.csv", &export(&[], &MINUTES).replace("180000", "18")),
    ];
    let error = recorded(&tables, None).unwrap_err().to_string();
    assert!(error.contains("180000 of column 2 'VolumeReadOps' in a.csv and 18 of column 2"), "{error}");
}

#[test]
fn volumes_are_told_apart_by_their_ids_wherever_a_file_has_them() {
    let two = |label: fn(&str, &str) -> String| {
        let of = |id: &str, factor: f64| volume(|name| label(id, name), SUMS.map(|sum| sum * factor), 0..3);
        read(&answer(&[of("vol-0a", 1.0), of("vol-0b", 0.01)].concat())).unwrap()
    };
    for label in [
        (|id, name| format!("{id} {name}")) as fn(&str, &str) -> String,
        |id, name| format!("{name} {id}"),
        |id, name| format!("{name} (VolumeId: {id}) Sum"),
        |id, name| format!("{id}/{name}"),
    ] {
        let all = two(label);
        assert_load(&all, "vol-0a", 3, 3_000.0);
        assert_load(&all, "vol-0b", 3, 30.0);
    }
    let rows = ["VolumeId,vol-0a,vol-0a,vol-0a,vol-0a"];
    assert_load(&read(&export(&rows, &MINUTES)).unwrap(), "vol-0a", 3, 3_000.0);
    let files =
        ["vol-0a", "vol-0b"].map(|id| file(id, &export(&[&format!("Id,{id},{id},{id},{id}")], &MINUTES)));
    assert_eq!(recorded(&files, None).unwrap().loads.len(), 2);
    // A second volume without an id is not lost, and one that lacks a metric is named.
    let mut results = volume(|name| format!("vol-0a {name}"), SUMS, 0..3);
    results.extend(volume(str::to_owned, SUMS.map(|sum| sum / 100.0), 0..3));
    let all = read(&answer(&results)).unwrap();
    assert_load(&all, "vol-0a", 3, 3_000.0);
    assert_load(&all, "", 3, 30.0);
    let mut results = volume(|name| format!("vol-0a {name}"), SUMS, 0..3);
    results.push(result("x", "vol-0b VolumeReadOps", &[(0, 1.0)]));
    assert_eq!(
        refusal(&answer(&results)),
        "a.json lacks the metrics VolumeWriteOps, VolumeReadBytes, VolumeWriteBytes of vol-0b"
    );
}

#[test]
fn an_answer_that_is_a_page_of_several_is_noted_and_pages_that_follow_are_one_load() {
    let text = include_str!("../../tests/fixtures/cloudwatch-page.json");
    let page = read(text).unwrap();
    assert_load(&page, "", 5, 1_000.0);
    let [note] = &page.notes[..] else { panic!("{:?}", page.notes) };
    assert!(note.contains("a.json is one page of several (NextToken)"), "{note}");
    let next =
        text.replace("T09:", "T10:").replace("PartialData", "Complete").replace("\"NextToken\"", "\"x\"");
    let both = read(&format!("{text}\n{next}")).unwrap();
    assert_eq!((both.loads[""].intervals.len(), &both.notes), (10, &Vec::new()));
    assert_load(&both, "", 10, 1_000.0);
    let files = recorded(&[file("1.json", text), file("2.json", &next)], None).unwrap();
    assert_eq!((files.loads[""].intervals.len(), files.notes.len()), (10, 0));
    let list = read(&format!("[{text},{next}]")).unwrap();
    assert_eq!((list.loads[""].intervals.len(), list.notes.len()), (10, 0));
    // Another volume's answer is no page of it.
    let other = answer(&volume(|name| format!("vol-0b {name}"), SUMS, 0..3));
    let files = recorded(&[file("1.json", text), file("2.json", &other)], None).unwrap();
    assert!(files.notes.iter().any(|note| note.starts_with("1.json is one page")), "{:?}", files.notes);
    let partial = read(&text.replace("\"NextToken\"", "\"x\"")).unwrap();
    assert!(partial.notes[0].contains("not complete: VolumeReadOps (PartialData)"), "{:?}", partial.notes);
    let damaged = format!("{text}\n{}", &next[..next.len() / 2]);
    assert!(refusal(&damaged).contains("is damaged"), "{}", refusal(&damaged));
    let foreign = read(&format!("{text}\n{{\"Error\": 5}}")).unwrap();
    assert!(
        foreign.notes.iter().any(|note| note.contains("the JSON documents 2 (from 1)")),
        "{:?}",
        foreign.notes
    );
}

#[test]
fn records_of_a_metric_stream_are_read_with_their_volume_and_their_sums() {
    let mut text = String::new();
    for minute in 0..3_u64 {
        for (name, sum) in NAMES.iter().zip(SUMS) {
            let unit = if name.ends_with("Ops") { "Count" } else { "Bytes" };
            let ms = (1_793_610_000 + minute * 60) * 1_000;
            writeln!(
                text,
                "{{\"metric_stream_name\":\"s\",\"account_id\":\"1\",\"region\":\"eu-west-1\",\"namespace\":\"AWS/EBS\",\
                 \"metric_name\":\"{name}\",\"dimensions\":{{\"VolumeId\":\"vol-0a\"}},\"timestamp\":{ms},\
                 \"value\":{{\"max\":9.0,\"min\":1.0,\"sum\":{sum},\"count\":5.0}},\"unit\":\"{unit}\"}}"
            )
            .unwrap();
        }
    }
    assert_load(&read(&text).unwrap(), "vol-0a", 3, 3_000.0);
    let by_class =
        text.replace("\"VolumeId\":\"vol-0a\"", "\"DatabaseClass\":\"db.r5.large\"").replace("180000", "1");
    assert_eq!(read(&format!("{text}{by_class}")).unwrap().loads.len(), 1);
    assert!(refusal(&text.replace("\"Count\"", "\"Count/Second\"")).contains("has the unit 'Count/Second'"));
}

#[test]
fn metrics_of_rds_are_rates_whose_mean_is_right() {
    let rates = [
        ("ReadIOPS", 3_000.0, "Count/Second"),
        ("WriteIOPS", 2_000.0, "Count/Second"),
        ("ReadThroughput", 3_000.0 * 16_384.0, "Bytes/Second"),
        ("WriteThroughput", 2_000.0 * 16_384.0, "Bytes/Second"),
        ("ReadLatency", 0.0005, "Seconds"),
        ("DiskQueueDepth", 1.5, "Count"),
    ];
    let files = |statistic: &str| {
        let one = |(name, value, unit): &(&str, f64, &str)| {
            let point = format!("\"{statistic}\": {value}, \"Unit\": \"{unit}\"");
            file(&format!("{name}.json"), &statistics(name, &[point.clone(), point]))
        };
        rates.iter().map(one).collect::<Vec<_>>()
    };
    let all = recorded(&files("Average"), None).unwrap();
    assert_load(&all, "", 2, 3_000.0);
    let first = all.loads[""].intervals[0];
    assert_eq!((first.writes, first.read_bytes, first.queue), (2_000.0, 3_000.0 * 16_384.0, Some(1.5)));
    assert!((first.read_s.unwrap() - 0.0005).abs() < 1e-12);
    let error = recorded(&files("Sum"), None).unwrap_err().to_string();
    assert!(
        error.contains("ReadIOPS, WriteIOPS, ReadThroughput")
            && error.contains("the statistic Sum: needed is Average"),
        "{error}"
    );
    let lacks = recorded(&files("Average")[..2], None).unwrap_err().to_string();
    assert!(lacks.contains("lacks the metrics ReadThroughput, WriteThroughput"), "{lacks}");
}

#[test]
fn exports_have_marks_line_ends_quotes_and_zones_of_their_own() {
    let plain = export(&["Stat,Sum", "Period,60"], &MINUTES);
    let marked = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
    let quoted =
        plain.replace("Label,VolumeReadOps", "\"Full label, with a comma\",\"vol-0a, data VolumeReadOps\"");
    let zoned = plain.replace(":00,", ":00 +01:00,");
    for (text, name) in [(&marked, ""), (&zoned, ""), (&format!("\n{plain}"), "")] {
        assert_load(&read(text).unwrap(), name, 3, 3_000.0);
    }
    let starts = [&plain, &zoned].map(|text| read(text).unwrap().loads[""].intervals[0].start_s);
    assert_eq!(starts[0] - starts[1], 3_600.0);
    assert!(read(&quoted).unwrap().loads.contains_key("vol-0a"));
    let american = plain.replace("2026/11/02 ", "11/2/2026 ");
    assert_load(&read(&american).unwrap(), "", 3, 3_000.0);
    let wrong = plain.replacen("2026/11/02 ", "2026/11/31 ", 1);
    assert!(
        refusal(&wrong).contains("line 4: expected a time such as 2026/11/22 10:00:00"),
        "{}",
        refusal(&wrong)
    );
    let json = format!("\u{feff}\n{}", answer(&volume(str::to_owned, SUMS, 0..3)));
    assert_load(&read(&json).unwrap(), "", 3, 3_000.0);
}

#[test]
fn queries_that_are_kept_beside_their_results_name_statistic_period_unit_and_volume() {
    let with = |stat: &str, period: u64| {
        let results: Vec<String> = NAMES
            .iter()
            .zip(SUMS)
            .enumerate()
            .map(|(n, (_, sum))| result(&format!("m{n}"), "x", &[(0, sum)]))
            .collect();
        let queries: Vec<String> = NAMES
            .iter()
            .enumerate()
            .map(|(n, name)| {
                format!(
                    "{{\"Id\": \"m{n}\", \"MetricStat\": {{\"Metric\": {{\"Namespace\": \"AWS/EBS\", \"MetricName\": \"{name}\", \"Dimensions\": \
                     [{{\"Name\": \"VolumeId\", \"Value\": \"vol-0a\"}}]}}, \"Period\": {period}, \"Stat\": \"{stat}\"}}}}"
                )
            })
            .collect();
        format!(
            "{{\"MetricDataQueries\": [{}], \"MetricDataResults\": [{}]}}",
            queries.join(","),
            results.join(",")
        )
    };
    assert_load(&read(&with("Sum", 300)).unwrap(), "vol-0a", 1, 600.0);
    assert!(refusal(&with("Average", 300)).contains("have the statistic Average"));
}

proptest! {
    /// Whatever statistics a point has: the load is that of the sums, or there is none.
    #[test]
    fn a_load_is_that_of_the_sums_or_is_refused(given in prop::collection::vec(any::<[bool; 5]>(), 4), samples in 1_u32..9) {
        let count = f64::from(samples);
        let point = |sum: f64, given: [bool; 5]| {
            let all = [("Sum", sum), ("Average", sum / count), ("Minimum", 1.0), ("Maximum", 2.0), ("SampleCount", count)];
            let points = all.iter().zip(given).filter(|(_, is)| *is).map(|((name, value), _)| format!("\"{name}\": {value}, "));
            points.collect::<String>() + "\"Unit\": \"None\""
        };
        let files: Vec<Input> = NAMES.iter().zip(SUMS).zip(&given).map(|((name, sum), given)| {
            file(name, &statistics(name, &[point(sum, *given)]))
        }).collect();
        let tells = given.iter().all(|[sum, average, _, _, samples]| *sum || (*average && *samples));
        match recorded(&files, None) {
            Ok(all) => {
                prop_assert!(tells);
                let first = all.loads[""].intervals[0];
                prop_assert!((first.reads - 3_000.0).abs() < 1e-6 && (first.written_bytes - 2_000.0 * 16_384.0).abs() < 1e-3);
            }
            Err(_) => prop_assert!(!tells),
        }
    }

    /// Whatever files the results of two volumes are in, and in which order: the loads are the same.
    #[test]
    fn loads_do_not_depend_on_files_and_their_order(
        cut in 1_usize..9,
        places in prop::collection::vec((0_usize..3, any::<u32>()), 16),
        factor in 0.01_f64..3.0,
    ) {
        let of = |id: &str, factor: f64, minutes| volume(|name| format!("{id} {name}"), SUMS.map(|sum| sum * factor), minutes);
        let parts = |minutes: std::ops::Range<usize>| [of("vol-0a", 1.0, minutes.clone()), of("vol-0b", factor, minutes)].concat();
        let whole = read(&answer(&parts(0..10))).unwrap();
        let mut results: Vec<(String, (usize, u32))> = [parts(0..cut), parts(cut..10)].concat().into_iter().zip(places).collect();
        results.sort_by_key(|(_, (_, order))| *order);
        let files: Vec<Input> = (0..3)
            .map(|number| {
                let own = results.iter().filter(|(_, (place, _))| *place == number);
                file(&number.to_string(), &answer(&own.map(|(result, _)| result.clone()).collect::<Vec<_>>()))
            })
            .collect();
        prop_assert_eq!(recorded(&files, None).unwrap().loads, whole.loads);
    }
}

/// An export as a spreadsheet saves it: its times, its delimiter and how it writes a number.
fn saved(times: &[&str], delimiter: char, number: impl Fn(f64) -> String) -> String {
    let line = |first: &str, cells: Vec<String>| {
        let cells: Vec<String> = std::iter::once(first.to_owned()).chain(cells).collect();
        cells.join(&delimiter.to_string()) + "\r\n"
    };
    let mut text = line("Label", NAMES.map(str::to_owned).to_vec());
    for time in times {
        text += &line(time, SUMS.iter().map(|sum| number(*sum)).collect());
    }
    text
}

/// A number with a mark between its thousands, and three decimals where they are asked for.
fn grouped(value: f64, mark: &str, decimals: Option<char>) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text += mark;
        }
        text.push(digit);
    }
    text + &decimals.map_or_else(String::new, |mark| format!("{mark}000"))
}

#[test]
fn exports_that_a_spreadsheet_saved_are_read_whatever_its_language() {
    let plain = |value: f64| value.to_string();
    let expected = read(&saved(&MINUTES, ',', plain)).unwrap();
    assert_load(&expected, "", 3, 3_000.0);
    let us = ["11/2/2026 9:00:00 AM", "11/2/2026 9:01:00 AM", "11/2/2026 9:02:00 AM"];
    let short = ["11/02/2026 9:00 AM", "11/02/2026 9:01 AM", "11/02/2026 9:02 AM"];
    let twelve = ["2026/11/02 09:00:00 AM", "2026/11/02 09:01:00 AM", "2026/11/02 09:02:00 AM"];
    let german = ["02.11.2026 09:00", "02.11.2026 09:01", "02.11.2026 09:02"];
    let named = ["2-Nov-2026 09:00", "2-Nov-2026 09:01", "2-Nov-2026 09:02"];
    let quoted = |number: String| format!("\"{number}\"");
    let texts = [
        saved(&us, ',', |value| quoted(grouped(value, ",", None))),
        saved(&short, '\t', plain),
        saved(&twelve, ',', plain),
        saved(&german, ';', plain),
        saved(&german, ';', |value| grouped(value, ".", Some(','))),
        saved(&german, ';', |value| grouped(value, "\u{a0}", Some(','))),
        saved(&named, ';', |value| grouped(value, "\u{202f}", None)),
        format!("sep=;\r\n{}", saved(&MINUTES, ';', plain)),
        saved(&us, '\t', |value| quoted(grouped(value, ",", Some('.')))),
    ];
    for text in texts {
        let found = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(found.loads[""].intervals, expected.loads[""].intervals, "{text}");
    }
    // The times of all rows tell the day from the month, and a note says so.
    let midnight = ["05/06/2026 23:58", "05/06/2026 23:59", "06/06/2026 00:00"];
    let found = read(&saved(&midnight, ';', plain)).unwrap();
    assert_eq!(found.loads[""].intervals.len(), 3);
    assert!(found.notes.iter().any(|note| note.contains("'05/06/2026 23:58' are read with the day first")));
    let midnight = ["6/5/2026 11:58 PM", "6/5/2026 11:59 PM", "6/6/2026 12:00 AM"];
    let found = read(&saved(&midnight, ',', plain)).unwrap();
    let starts: Vec<f64> = found.loads[""].intervals.iter().map(|one| one.start_s).collect();
    assert_eq!((starts[1] - starts[0], starts[2] - starts[1]), (60.0, 60.0));
    assert!(found.notes.iter().any(|note| note.contains("the month first")), "{:?}", found.notes);
}

#[test]
fn numbers_of_two_styles_and_wrong_dates_are_refused_with_the_line() {
    let plain = |value: f64| value.to_string();
    let mixed =
        saved(&MINUTES, ';', plain).replacen("180000", "180.000,5", 1).replacen("180000", "1,800.5", 1);
    assert!(refusal(&mixed).contains("expected a number such as 59246"), "{}", refusal(&mixed));
    let dates = saved(&["02.13.2026 09:00", "14.11.2026 09:01"], ';', plain);
    let error = refusal(&dates);
    assert!(
        error.contains("line 2: expected a time such as 2026/11/22 10:00:00, found '02.13.2026 09:00'"),
        "{error}"
    );
    let open = saved(&MINUTES, ',', plain).replacen(",180000", ",\"180000", 1);
    assert!(refusal(&open).len() < 300 || read(&open).is_ok(), "{}", refusal(&open));
}

#[test]
fn results_without_their_answer_are_read_as_with_it() {
    let label = |name: &str| format!("vol-1 {name}");
    let whole = read(&answer(&volume(label, SUMS, 0..5))).unwrap();
    let results = volume(label, SUMS, 0..5);
    for text in [format!("[{}]", results.join(",")), results.join("\n")] {
        assert_eq!(read(&text).unwrap(), whole, "{text}");
    }
    let lower = volume(|name| format!("vol-1 {}", name.to_lowercase()), SUMS, 0..5);
    assert_eq!(read(&answer(&lower)).unwrap(), whole, "labels in small letters");
    let ids = |name: &str, sum: f64| {
        let values: Vec<(usize, f64)> = (0..5).map(|minute| (minute * 60, sum)).collect();
        result(&name.to_lowercase(), "of vol-1", &values)
    };
    let by_id: Vec<String> = NAMES.iter().zip(SUMS).map(|(name, sum)| ids(name, sum)).collect();
    assert_eq!(read(&answer(&by_id)).unwrap(), whole, "the id of the query names the metric");
}

#[test]
fn an_answer_in_another_form_is_refused_with_the_form_to_ask_for() {
    for (text, part) in [
        ("VolumeReadOps\nDATAPOINTS\t60.0\t2026-11-22T10:00:00Z\tCount\n", "answer as text"),
        ("METRICDATARESULTS\tm1\tVolumeReadOps\tComplete\n", "answer as text"),
        ("MetricDataResults:\n- Id: m1\n  Label: x\n", "answer as yaml"),
        ("-----\n|   GetMetricStatistics   |\n+-----+\n|| Sum | Timestamp ||\n", "answer as table"),
        (
            "[{\"Timestamp\": \"2026-11-22T10:00:00Z\", \"Sum\": 6.0, \"Unit\": \"Count\"}]",
            "without the name of their metric",
        ),
    ] {
        assert!(refusal(text).contains(part), "{text}: {}", refusal(text));
    }
}
