//! The forms of each tool.
#![allow(clippy::unwrap_used)] // a test fails by a panic

use super::*;
use crate::record_error::RecordDamage;

fn file(text: &str) -> Input {
    Input { path: "/captures/file".into(), text: text.to_owned() }
}

fn read(text: &str) -> Result<Recorded, RecordedError> {
    recorded(&[file(text)], None)
}

/// A metric as `aws cloudwatch get-metric-data` prints it, from 10:00 on.
fn metric(label: &str, values: &[f64]) -> String {
    let times: Vec<String> =
        (0..values.len()).map(|n| format!("\"2026-11-22T10:{n:02}:00+00:00\"")).collect();
    format!(
        "{{\"Id\": \"m\", \"Label\": \"{label}\", \"Timestamps\": [{}], \"Values\": {values:?}}}",
        times.join(",")
    )
}

fn answer(metrics: &[String]) -> String {
    format!("{{\"MetricDataResults\": [{}]}}", metrics.join(","))
}

#[test]
fn metrics_of_cloudwatch_become_intervals_with_latency_queue_credits_and_checks() {
    let text = answer(&[
        metric("VolumeReadOps", &[60_000.0, 120_000.0]),
        metric("VolumeWriteOps", &[6_000.0, 0.0]),
        metric("VolumeReadBytes", &[60_000.0 * 16_384.0, 0.0]),
        metric("VolumeWriteBytes", &[6_000.0 * 4_096.0, 0.0]),
        metric("VolumeTotalReadTime", &[60.0, 240.0]),
        metric("VolumeTotalWriteTime", &[12.0, 0.0]),
        metric("VolumeQueueLength", &[1.2, 4.0]),
        metric("BurstBalance", &[50.0, 0.0]),
        metric("VolumeIOPSExceededCheck", &[0.0, 1.0]),
    ]);
    let all = read(&text).unwrap();
    assert_eq!((all.tool, all.loads.len()), ("CloudWatch", 1));
    let [first, second] = all.loads[""].intervals[..] else { panic!("two minutes") };
    assert_eq!((first.seconds, first.reads, first.writes), (60.0, 1_000.0, 100.0));
    assert_eq!((first.read_bytes, first.written_bytes), (16_384_000.0, 409_600.0));
    assert_eq!(
        (first.read_s, first.write_s, first.queue, first.credits),
        (Some(0.001), Some(0.002), Some(1.2), Some(0.5))
    );
    assert!(!first.limited.unwrap().any() && second.limited.unwrap().volume_iops);
    assert_eq!((second.write_s, second.end_s() - first.start_s), (None, 120.0));
}

#[test]
fn volumes_are_told_apart_and_what_names_none_belongs_to_all() {
    let of = |volume: &str| METRICS.map(|name| metric(&format!("{volume} {name}"), &[600.0])).to_vec();
    const METRICS: [&str; 4] = ["VolumeReadOps", "VolumeWriteOps", "VolumeReadBytes", "VolumeWriteBytes"];
    let mut metrics = [of("vol-0a"), of("vol-0b")].concat();
    metrics.push(metric("InstanceEBSIOPSExceededCheck", &[1.0]));
    let all = read(&answer(&metrics)).unwrap();
    assert_eq!(all.loads.keys().collect::<Vec<_>>(), ["vol-0a", "vol-0b"]);
    assert!(all.loads.values().all(|load| load.intervals[0].limited.unwrap().instance_iops));
}

#[test]
fn a_metric_that_is_missing_is_named_with_where_to_get_it_and_may_come_from_another_file() {
    let half = answer(&[metric("VolumeReadOps", &[1.0]), metric("VolumeReadBytes", &[4_096.0])]);
    let other = answer(&[metric("VolumeWriteOps", &[1.0]), metric("VolumeWriteBytes", &[4_096.0])]);
    let error = read(&half).unwrap_err();
    assert_eq!(error.to_string(), "/captures/file lacks the metrics VolumeWriteOps, VolumeWriteBytes");
    let RecordedError::Lacks { what, .. } = error else { panic!("{error}") };
    assert_eq!(what, MissingFigures::Metrics(vec!["VolumeWriteOps", "VolumeWriteBytes"]));
    assert!(what.hint().contains("--period 60"), "{what}");
    assert_eq!(recorded(&[file(&half), file(&other)], None).unwrap().loads[""].intervals.len(), 1);
    let damaged = &half[..half.len() - 40];
    assert!(
        matches!(read(damaged).unwrap_err(), RecordedError::Damaged { cause: RecordDamage::Json(words), .. } if words.contains("line 1 column"))
    );
}

#[test]
fn statistics_of_one_metric_and_a_csv_export_are_read_too() {
    let point = |unit: &str| {
        format!("{{\"Timestamp\": \"2026-11-22T10:00:00+00:00\", \"Sum\": 600.0, \"Unit\": \"{unit}\"}}")
    };
    let metrics =
        [("ReadOps", "Count"), ("WriteOps", "Count"), ("ReadBytes", "Bytes"), ("WriteBytes", "Bytes")];
    let files: Vec<Input> = metrics
        .iter()
        .map(|(name, unit)| {
            file(&format!("{{\"Label\": \"Volume{name}\", \"Datapoints\": [{}]}}", point(unit)))
        })
        .collect();
    assert_eq!(recorded(&files, None).unwrap().loads[""].intervals[0].reads, 10.0);
    let csv = "Full label,\"VolumeReadOps, Sum\",x\nLabel,VolumeReadOps,VolumeWriteOps,VolumeReadBytes,VolumeWriteBytes\n\
               2026/11/22 10:00:00,300,0,1228800,\n2026/11/22 10:05:00,600,3,2457600,12288\n";
    let load = &read(csv).unwrap().loads[""];
    assert_eq!(load.intervals.len(), 2);
    assert_eq!(
        (load.intervals[1].seconds, load.intervals[1].reads, load.intervals[0].written_bytes),
        (300.0, 2.0, 0.0)
    );
    let error = read(&csv.replace("300,0,", "300,x,")).unwrap_err().to_string();
    assert!(error.contains("line 3: expected a number") && error.ends_with("found 'x'"), "{error}");
}

#[test]
fn rows_of_a_csv_export_that_are_cut_short_are_left_out_and_counted() {
    let whole = "Label,VolumeReadOps,VolumeWriteOps,VolumeReadBytes,VolumeWriteBytes\nPeriod,300\n\
                 2026/11/22 10:00:00,300,0,1228800,0\n2026/11/22 10:05:00,600,3,2457600,12288\n";
    let all = read(whole).unwrap();
    assert_eq!((all.loads[""].intervals.len(), all.notes.is_empty()), (2, true));
    for cut in ["2026/11/22 10:10:00,600,3,24", "2026/11/22 10:10:00", "2026/11/2"] {
        let all = read(&format!("{whole}{cut}")).unwrap();
        assert_eq!(all.loads[""].intervals.len(), 2, "{cut}");
        let [note] = &all.notes[..] else { panic!("{:?}", all.notes) };
        assert!(note.starts_with("/captures/file: line 5 has fewer values than the header"), "{note}");
    }
    let two = whole.replace(
        "600,3,2457600,12288",
        "600\n2026/11/22 10:10:00,600,3,2457600,12288\n2026/11/22 10:15:00,7",
    );
    let all = read(&two).unwrap();
    assert!(
        all.notes[0].contains("2 rows have fewer") && all.notes[0].contains("the first is line 4"),
        "{:?}",
        all.notes
    );
    assert_eq!(all.loads[""].intervals.len(), 2);
}

const IOSTAT: &str = "Linux 6.1 (h) \t11/22/2026 \t_x86_64_\t(2 CPU)

11/22/2026 11:00:00 PM
Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
nvme1n1        999.00   9999.00     0.00   0.00    9.00    16.00  999.00    320.00     0.00   0.00    1.00    16.00    0.50   5.00

11/22/2026 11:00:10 PM
Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
nvme1n1         10.00    160.00     0.00   0.00    1.00    16.00   20.00    320.00     0.00   0.00    2.00    16.00    0.05   5.00

11/22/2026 11:00:20 PM
Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
nvme1n1         30.00    160.00     0.00   0.00    1.00    16.00    0.00      0.00     0.00   0.00    0.00     0.00    0.03   5.00
";

#[test]
fn reports_of_iostat_follow_each_other_without_the_first() {
    let load = read(IOSTAT).unwrap().loads["nvme1n1"].clone();
    let [first, second] = load.intervals[..] else { panic!("two reports") };
    assert_eq!((first.seconds, first.reads, first.writes, first.write_s), (10.0, 10.0, 20.0, Some(0.002)));
    assert_eq!((second.start_s - first.start_s, second.reads, second.write_s), (10.0, 30.0, None));
    let without: String =
        IOSTAT.lines().filter(|line| !line.starts_with("11/22")).map(|line| format!("{line}\n")).collect();
    let error = read(&without).unwrap_err();
    assert_eq!(error.to_string(), "/captures/file lacks the times of its reports");
    assert_eq!(recorded(&[file(&without)], Some(5.0)).unwrap().loads["nvme1n1"].intervals[1].start_s, 5.0);
    let one: String = IOSTAT.lines().take(5).map(|line| format!("{line}\n")).collect();
    assert!(read(&one).unwrap_err().to_string().contains("a second report"));
}

#[test]
fn iostat_of_this_systems_sysstat_is_read_as_text_and_as_json() {
    for text in [
        include_str!("../../tests/fixtures/iostat-12.6.txt"),
        include_str!("../../tests/fixtures/iostat-12.6.json"),
    ] {
        let all = recorded(&[file(text)], Some(2.0)).unwrap();
        let vda = &all.loads["vda"].intervals;
        assert!(!vda.is_empty() && vda.iter().all(|one| one.seconds == 2.0), "{vda:?}");
    }
}

#[test]
fn sar_is_read_in_both_its_forms_and_over_midnight() {
    let sar = "Linux 6.1 (h) \t11/22/2026 \t_x86_64_\t(2 CPU)

11:40:01 PM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util
11:50:01 PM   nvme1n1    100.00   1200.00    400.00      0.00     16.00      0.20      2.00      5.00
11:50:01 PM   nvme0n1      1.00      0.00      4.00      0.00      4.00      0.00      1.00      0.10
12:00:01 AM   nvme1n1    200.00      0.00   3200.00      0.00     16.00      0.40      2.00      9.00
12:00:01 AM   nvme0n1      1.00      0.00      4.00      0.00      4.00      0.00      1.00      0.10

Average:      nvme1n1    150.00    600.00   1800.00      0.00     16.00      0.30      2.00      7.00
";
    let all = read(sar).unwrap();
    assert!(all.notes[0].contains("together"), "{:?}", all.notes);
    let [first, second] = all.loads["nvme1n1"].intervals[..] else { panic!("two samples") };
    assert_eq!((first.seconds, first.reads, first.writes), (600.0, 75.0, 25.0));
    assert_eq!(
        (second.seconds, second.writes, second.queue, second.write_s),
        (600.0, 200.0, Some(0.4), Some(0.002))
    );
    assert_eq!(second.start_s, first.end_s());
    let sadf = "# hostname;interval;timestamp;CPU;%user\nh;600;2026-11-22 00:10:01 UTC;-1;1.0\n\
                # hostname;interval;timestamp;DEV;tps;rd_sec/s;wr_sec/s;avgrq-sz;avgqu-sz;await;svctm;%util\n\
                h;600;2026-11-22 00:10:01 UTC;dev259-0;10.00;0.00;320.00;32.00;0.02;2.00;1.00;1.00\n";
    let load = read(sadf).unwrap().loads["dev259-0"].intervals[0];
    assert_eq!((load.seconds, load.writes, load.written_bytes), (600.0, 10.0, 163_840.0));
    let error = read(&sadf.replace("10.00;0.00;", "10.00;;")).unwrap_err().to_string();
    assert!(error.contains("line 4: expected a time, a device and its figures"), "{error}");
}

#[test]
fn pt_diskstats_is_read_by_its_columns() {
    let text = "  #ts device    rd_s rd_avkb rd_mb_s rd_mrg rd_cnc   rd_rt    wr_s wr_avkb wr_mb_s wr_mrg wr_cnc   wr_rt busy in_prg    io_s  qtime stime
  1.0 nvme1n1   466.5    16.0     7.3     0%    1.4     3.0  1184.0    16.0    18.5    18%    0.2     0.2  12%     18  1650.5    0.1   0.1
  3.0 nvme1n1   100.0    16.0     1.6     0%    0.1     1.0     0.0     0.0     0.0     0%    0.0     0.0  12%      0   100.0    0.1   0.1
";
    let [first, second] = read(text).unwrap().loads["nvme1n1"].intervals[..] else { panic!("two samples") };
    assert_eq!((first.seconds, first.reads, first.writes), (1.0, 466.5, 1_184.0));
    assert_eq!((first.read_bytes, first.read_s), (466.5 * 16_384.0, Some(0.003)));
    assert!((first.queue.unwrap() - 1.6).abs() < 1e-9);
    assert_eq!((second.seconds, second.write_s), (2.0, None));
    let error = read(&text.replace("3.0 nvme1n1", "{2} nvme1n1")).unwrap_err();
    assert!(error.to_string().contains("line 3: several samples"), "{error}");
    assert!(
        matches!(error, RecordedError::Damaged { cause: RecordDamage::Grouped { line: 3, .. }, .. }),
        "{error:?}"
    );
}

#[test]
fn idle_devices_that_pt_diskstats_leaves_out_midnight_and_a_second_run_keep_the_interval() {
    let header = "#ts device rd_s rd_avkb rd_mb_s rd_cnc rd_rt wr_s wr_avkb wr_mb_s wr_cnc wr_rt\n";
    let row =
        |time: &str, device: &str| format!("{time} {device} 10.0 16.0 0.2 0.1 1.0 0.0 0.0 0.0 0.0 0.0\n");
    let shape = |text: String, device: &str| -> Vec<(f64, f64, f64)> {
        let load = read(&text).unwrap().loads[device].clone();
        load.intervals.iter().map(|one| (one.start_s, one.seconds, one.reads)).collect()
    };
    // sdb did nothing until 3.0, and none did between 4.0 and 7.0.
    let rows = [
        row("1.0", "sda"),
        row("2.0", "sda"),
        row("3.0", "sda"),
        row("3.0", "sdb"),
        row("4.0", "sda"),
        row("7.0", "sda"),
    ];
    let text = format!("{header}{}", rows.concat());
    let idle = |start: f64, seconds: f64| (start, seconds, 0.0);
    assert_eq!(
        shape(text.clone(), "sdb"),
        [idle(0.0, 1.0), idle(1.0, 1.0), (2.0, 1.0, 10.0), idle(3.0, 1.0), idle(4.0, 2.0), idle(6.0, 1.0)]
    );
    assert_eq!(shape(text, "sda")[4..], [idle(4.0, 2.0), (6.0, 1.0, 10.0)]);
    let night =
        [row("23:59:58", "sda"), row("23:59:59", "sda"), row("00:00:00", "sda"), row("00:00:01", "sda")];
    let text = format!("{header}{}", night.concat());
    let lengths = shape(text, "sda");
    assert_eq!(lengths.iter().map(|one| one.1).collect::<Vec<_>>(), [1.0; 4]);
    assert_eq!(lengths[3].0 - lengths[0].0, 3.0);
    let run = [row("1.0", "sda"), row("2.0", "sda")].concat();
    let two = shape(format!("{header}{run}{header}{run}"), "sda");
    assert_eq!(two, [(0.0, 1.0, 10.0), (1.0, 1.0, 10.0), (2.0, 1.0, 10.0), (3.0, 1.0, 10.0)]);
}

#[test]
fn counters_of_the_kernel_give_an_interval_between_looks() {
    let text = include_str!("../../tests/fixtures/stalk/2026_11_22_23_18_22-diskstats");
    let all = read(text).unwrap();
    let vda = &all.loads["vda"].intervals;
    assert!(!vda.is_empty() && vda.iter().all(|one| one.seconds > 0.0 && one.ios() >= 0.0), "{vda:?}");
}

#[test]
fn other_texts_are_refused_and_tools_are_not_mixed() {
    for text in ["", "hello\n", "{\"a\": 1}", "a,b\n1,2\n"] {
        assert!(matches!(read(text), Err(RecordedError::Unknown { .. })), "{text}");
    }
    let sadf = "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;await\nh;600;2026-11-22 00:10:01 UTC;sda;1;0;4;1\n";
    let error = recorded(&[file(IOSTAT), file(sadf)], None).unwrap_err();
    assert!(error.to_string().contains("is of sar, and the files before it are of iostat"), "{error}");
}

#[test]
fn counters_below_a_plain_time_or_with_an_interval_that_is_given_are_read() {
    let look = |number: u32| {
        let disk = |name: &str, reads: u32| {
            format!("259 0 {name} {reads} 0 {sectors} 50 0 0 0 0 0 10 10 0 0 0 0 0 0", sectors = reads * 32)
        };
        format!("{}\n{}\n", disk("nvme0n1", number * 7), disk("nvme1n1", number * 1_000))
    };
    let timed =
        |time: fn(u32) -> String| (0..3).map(|n| format!("{}\n{}", time(n), look(n))).collect::<String>();
    let ios = |recorded: &Recorded| {
        let load = &recorded.loads["nvme1n1"];
        load.intervals.iter().map(|interval| (interval.seconds, interval.reads)).collect::<Vec<_>>()
    };
    let dated = read(&timed(|n| (1_700_000_000 + 10 * n).to_string())).unwrap();
    assert_eq!(ios(&dated), [(10.0, 100.0), (10.0, 100.0)]);
    let parts = read(&timed(|n| format!("{}.500000000", 1_700_000_000 + 20 * n))).unwrap();
    assert_eq!(ios(&parts), [(20.0, 50.0), (20.0, 50.0)]);
    let plain: String = (0..3).map(look).collect();
    assert_eq!(ios(&recorded(&[file(&plain)], Some(5.0)).unwrap()), [(5.0, 200.0), (5.0, 200.0)]);
    assert!(read(&plain).unwrap_err().to_string().contains("lacks two looks"), "no length is guessed");
}
