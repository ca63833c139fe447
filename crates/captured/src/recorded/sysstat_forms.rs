//! What sysstat's programs print, in the forms of languages, options and versions.
#![allow(clippy::unwrap_used)] // a test fails by a panic

use ebbtide_observe::LoadInterval;

use crate::{Input, Recorded, RecordedError, Unusable, recorded};

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../tests/fixtures/sysstat/", $name))
    };
}

fn read(text: &str) -> Result<Recorded, RecordedError> {
    read_with(text, None)
}

fn read_with(text: &str, interval_s: Option<f64>) -> Result<Recorded, RecordedError> {
    recorded(&[Input { path: "/captures/file".into(), text: text.to_owned() }], interval_s)
}

fn intervals(text: &str, device: &str) -> Vec<LoadInterval> {
    let all = read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    all.loads
        .get(device)
        .unwrap_or_else(|| panic!("{device} is not in {:?}", all.loads.keys()))
        .intervals
        .clone()
}

/// Length, operations a second and whether it follows the interval before it, of each interval.
fn shape(intervals: &[LoadInterval]) -> Vec<(f64, f64, bool)> {
    let mut end = None;
    let shape = |interval: &LoadInterval| {
        let follows = end.is_none_or(|end: f64| (interval.start_s - end).abs() < 1e-6);
        end = Some(interval.end_s());
        (interval.seconds, interval.ios(), follows)
    };
    intervals.iter().map(shape).collect()
}

/// The three intervals of the samples over midnight.
const NIGHT: [(f64, f64, bool); 3] = [(10.0, 300.0, true), (10.0, 400.0, true), (10.0, 100.0, true)];

#[test]
fn dates_of_any_order_and_language_over_midnight_are_an_interval_apart() {
    for text in [
        sample!("day-first-over-midnight.txt"),
        sample!("day-first-over-midnight.json"),
        sample!("two-digits-day-first.txt"),
        sample!("chinese.txt"),
        sample!("japanese.txt"),
        sample!("colours.txt"),
    ] {
        assert_eq!(shape(&intervals(text, "nvme1n1")), NIGHT, "{text}");
    }
}

#[test]
fn a_device_that_is_left_out_of_a_report_did_nothing_in_it() {
    let (with, without) = (sample!("idle-left-out.txt"), sample!("idle-printed.txt"));
    assert_eq!(intervals(with, "nvme1n1"), intervals(without, "nvme1n1"));
    assert_eq!(intervals(with, "nvme1n1").len(), 24);
    // The same of two devices, one of which is idle at times, at the end of a text without an empty line too.
    let report = |second: u32, rows: &str| {
        format!("01/25/26 10:00:{second:02}\nDevice r/s rkB/s w/s wkB/s aqu-sz\n{rows}\n")
    };
    let row = |name: &str| format!("{name} 10.00 160.00 0.00 0.00 0.01\n");
    let both = row("sda") + &row("sdb");
    let text = [
        report(0, &both),
        report(10, &both),
        report(20, &row("sda")),
        report(30, ""),
        report(40, &row("sda")),
    ]
    .concat();
    let ios = |text: &str| intervals(text, "sdb").iter().map(LoadInterval::ios).collect::<Vec<_>>();
    assert_eq!(ios(&text), [10.0, 0.0, 0.0, 0.0]);
    assert_eq!(ios(text.trim_end()), [10.0, 0.0, 0.0, 0.0]);
    // A text that ends within its last report says nothing of the devices that this lacks.
    let cut = [report(0, &both), report(10, &both), report(20, &row("sda"))].concat();
    assert_eq!(ios(cut.trim_end()), [10.0]);
    assert_eq!(ios(&cut), [10.0, 0.0]);
}

#[test]
fn one_await_is_the_latency_of_reads_and_writes() {
    let load = intervals(sample!("one-await.txt"), "xvdf");
    assert_eq!(shape(&load), [(10.0, 800.0, true), (10.0, 1_300.0, true), (10.0, 400.0, true)]);
    assert_eq!(
        (load[0].read_s, load[0].write_s, load[0].latency_s()),
        (Some(0.0025), Some(0.0025), Some(0.0025))
    );
}

#[test]
fn tables_with_the_device_last_and_figures_with_units_are_read() {
    let load = intervals(sample!("human.txt"), "nvme1n1");
    assert_eq!(shape(&load), [(10.0, 50.0, true), (10.0, 60.0, true)]);
    assert_eq!((load[0].read_bytes, load[0].written_bytes), (491_520.0, 327_680.0));
    assert_eq!((load[0].queue, load[0].read_s, load[0].write_s), (Some(0.08), Some(0.002), Some(0.001)));
    // `-h --compact`, with decimal commas.
    let compact = "Linux 6.1 (h) \t28-11-2026 \t_x86_64_\t(2 CPU)\n\n28-11-2026 04:18:26\n\
        avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n          44,3%   13,9%   15,3%    2,5%    0,1%   24,0%\n\n\
        r/s rkB/s rareq-sz w/s wkB/s wareq-sz aqu-sz %util Device\n9,00 0,1k 0,1k 0,00 0,0k 0,0k 0,01 0,2% vda\n\n\n\
        28-11-2026 04:18:27\n\
        r/s rkB/s rareq-sz w/s wkB/s wareq-sz aqu-sz %util Device\n248,00 1,5M 6,2k 0,00 0,0k 0,0k 1,13 99,6% vda\n\n";
    let load = intervals(compact, "vda");
    assert_eq!(shape(&load), [(1.0, 248.0, true)]);
    assert!((load[0].read_bytes - 248.0 * 6.2 * 1_024.0).abs() < 1.0, "{load:?}");
    // sysstat 10 to 11.5: -h has the device on a line of its own.
    let lines = "Linux 3.10 (h) \t11/28/2026 \t_x86_64_\t(2 CPU)\n\n\
        11/28/2026 11:59:50 PM\nDevice:  rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await svctm %util\n\
        mapper-with-a-long-name\n  0.00 0.00 1.00 1.00 16.00 16.00 32.00 0.01 1.00 1.00 1.00 0.10 0.10\n\n\
        11/29/2026 12:00:00 AM\nDevice:  rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await svctm %util\n\
        mapper-with-a-long-name\n  0.00 0.00 30.00 10.00 480.00 160.00 32.00 0.01 1.00 1.00 2.00 0.10 0.10\n\n";
    let load = intervals(lines, "mapper-with-a-long-name");
    assert_eq!((shape(&load), load[0].write_s), (vec![(10.0, 40.0, true)], Some(0.002)));
}

#[test]
fn reads_and_writes_that_are_counted_together_are_halved_and_told() {
    let text = "Linux 6.1 (h) \t11/28/26 \t_x86_64_\t(2 CPU)\n\n11/28/26 10:00:00\n\
        Device tps kB/s rqm/s await areq-sz aqu-sz %util\nsda 9.00 9.00 0.00 1.00 1.00 0.01 1.0\n\n11/28/26 10:00:10\n\
        Device tps kB/s rqm/s await areq-sz aqu-sz %util\nsda 100.00 1600.00 0.00 2.00 16.00 0.20 20.0\n\n";
    let json = r#"{"sysstat": {"hosts": [{"nodename": "h", "date": "11/28/26", "statistics": [
        {"timestamp": "11/28/26 10:00:00", "disk": [{"disk_device": "sda", "tps": 9.00, "kB/s": 9.00, "await": 1.00, "aqu-sz": 0.01}]},
        {"timestamp": "11/28/26 10:00:10", "disk": [{"disk_device": "sda", "tps": 100.00, "kB/s": 1600.00, "rqm/s": 0.00,
         "await": 2.00, "areq-sz": 16.00, "aqu-sz": 0.20, "util": 20.00}]}]}]}}"#;
    for text in [text, json] {
        let all = read(text).unwrap();
        let load = &all.loads["sda"].intervals;
        assert_eq!(shape(load), [(10.0, 100.0, true)]);
        assert_eq!((load[0].reads, load[0].bytes(), load[0].latency_s()), (50.0, 1_638_400.0, Some(0.002)));
        assert!(all.notes[0].contains("iostat -s counts reads and writes together"), "{:?}", all.notes);
    }
}

#[test]
fn the_json_of_sadf_is_read_as_sadf_and_not_as_that_of_iostat() {
    let all = read(sample!("sadf.json")).unwrap();
    assert_eq!(all.tool, "sar");
    let load = &all.loads["nvme1n1"].intervals;
    assert_eq!(shape(load), [(600.0, 300.0, true), (600.0, 600.0, true)]);
    assert_eq!((load[0].reads, load[0].written_bytes, load[0].write_s), (150.0, 2_457_600.0, Some(0.002)));
    assert_eq!(read_with(sample!("sadf.json"), Some(600.0)).unwrap(), all);
    // sysstat before 11.2.8 writes a comma in some languages, and sectors alone.
    let old = r#"{"sysstat": {"hosts": [{"nodename": "db1", "file-date": "2026-01-25", "statistics": [
        {"timestamp": {"date": "2026-01-25", "time": "00:10:01", "utc": 1, "interval": 600},
         "disk": [{"disk-device": "sda", "tps": 300,50, "rd_sec": 4800,00, "wr_sec": 4800,00, "avgrq-sz": 32,00,
                   "avgqu-sz": 0,60, "await": 2,00, "svctm": 0,10, "util-percent": 40,00}]}]}]}}"#;
    let load = intervals(old, "sda");
    assert_eq!((shape(&load), load[0].read_bytes), (vec![(600.0, 300.5, true)], 2_457_600.0));
}

#[test]
fn json_that_was_ended_within_a_report_has_its_whole_reports_and_several_documents_are_several_runs() {
    let whole = sample!("day-first-over-midnight.json");
    let cut = &whole[..whole.rfind("\"wkB/s\"").unwrap()];
    let all = read(cut).unwrap();
    assert_eq!(shape(&all.loads["nvme1n1"].intervals), NIGHT[..2]);
    assert!(all.notes[0].contains("ends in the middle of a report"), "{:?}", all.notes);
    let later = whole
        .replace("05/06/2026 23:59", "07/06/2026 10:00")
        .replace("06/06/2026 00:00:00", "07/06/2026 10:01:00");
    let load = intervals(&format!("{whole}\n{later}"), "nvme1n1");
    assert_eq!(load.len(), 6);
    assert_eq!(load[3].start_s - load[0].start_s, 86_400.0 + 10.0 * 3_600.0 + 60.0, "{load:?}");
    let damaged = read(&whole.replacen("\"r/s\":", "\"r/s\"", 1)).unwrap_err();
    assert!(damaged.to_string().contains("/captures/file is damaged: expected `:`"), "{damaged}");
}

/// A text of iostat with a report of 10 I/Os a second at each time.
fn iostat_at(times: &[&str]) -> String {
    let report = |time: &&str| {
        format!("{time}\nDevice r/s rkB/s w/s wkB/s aqu-sz\nsda 10.00 160.00 0.00 0.00 0.01\n\n")
    };
    let reports: String = times.iter().map(report).collect();
    format!("Linux 6.1 (h) \t01/02/26 \t_x86_64_\t(2 CPU)\n\n{reports}")
}

#[test]
fn an_interval_that_is_far_from_the_others_is_refused_and_named() {
    let far = iostat_at(&[
        "01/25/26 10:00:00",
        "01/25/26 10:00:10",
        "01/25/26 10:00:20",
        "01/25/26 14:00:25",
        "01/25/26 14:00:35",
    ]);
    let error = read(&far).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/captures/file has reports of '01/25/26 10:00:20' and '01/25/26 14:00:25', which are 4 h 5 s apart, and most others 10 s"
    );
    let RecordedError::Unusable { why, .. } = error else { panic!("it is a file of iostat") };
    assert!(why.hint().contains("give --interval 10s"), "{}", why.hint());
    let load = read_with(&far, Some(10.0)).unwrap().loads["sda"].intervals.clone();
    assert_eq!(load.iter().map(|interval| interval.seconds).collect::<Vec<_>>(), [10.0; 4]);
    for bad in [
        // A clock that goes back, and one that stands still.
        &["01/25/26 10:00:00", "01/25/26 10:00:10", "01/25/26 10:00:20", "01/25/26 09:30:00"][..],
        &["01/25/26 10:00:00", "01/25/26 10:00:10", "01/25/26 10:00:20", "01/25/26 10:00:20"],
        &["01/25/26 10:00:00", "01/25/26 10:00:00"],
        &["01/25/26 10:00:00", "03/25/26 10:00:10"],
    ] {
        let error = read(&iostat_at(bad)).unwrap_err();
        assert!(
            matches!(error, RecordedError::Unusable { why: Unusable::FarInterval { .. }, .. }),
            "{bad:?}: {error}"
        );
    }
    let even =
        iostat_at(&["01/25/26 10:00:00", "01/25/26 10:00:10", "01/25/26 10:00:20", "01/25/26 10:00:30"]);
    let error = read_with(&even, Some(600.0)).unwrap_err().to_string();
    assert!(error.contains("has reports that are 10 s apart, not 10 min"), "{error}");
    assert_eq!(read_with(&even, Some(10.0)).unwrap(), read(&even).unwrap());
}

#[test]
fn a_report_that_is_missing_is_no_longer_interval_and_clocks_that_are_rounded_make_no_gap() {
    let all = read(&iostat_at(&[
        "01/25/26 10:00:00",
        "01/25/26 10:00:10",
        "01/25/26 10:00:40",
        "01/25/26 10:00:50",
    ]))
    .unwrap();
    let load = &all.loads["sda"].intervals;
    assert_eq!(shape(load), [(10.0, 10.0, true), (10.0, 10.0, false), (10.0, 10.0, true)]);
    assert_eq!(load[1].start_s - load[0].start_s, 30.0);
    assert!(all.notes.iter().any(|note| note.contains("2 reports are missing")), "{:?}", all.notes);
    let rounded = read(&iostat_at(&[
        "01/25/26 10:00:00",
        "01/25/26 10:00:01",
        "01/25/26 10:00:03",
        "01/25/26 10:00:03",
        "01/25/26 10:00:04",
    ]))
    .unwrap();
    assert_eq!(shape(&rounded.loads["sda"].intervals), [(1.0, 10.0, true); 4]);
    assert!(rounded.notes.is_empty(), "{:?}", rounded.notes);
}

#[test]
fn a_clock_that_is_changed_between_winter_and_summer_makes_no_interval_of_an_hour() {
    for times in [
        ["2026-03-29 01:59:40", "2026-03-29 01:59:50", "2026-03-29 03:00:00", "2026-03-29 03:00:10"],
        ["25/10/26 02:59:40", "25/10/26 02:59:50", "25/10/26 02:00:00", "25/10/26 02:00:10"],
        [
            "11/01/2026 01:59:40 AM",
            "11/01/2026 01:59:50 AM",
            "11/01/2026 01:00:00 AM",
            "11/01/2026 01:00:10 AM",
        ],
        [
            "2026-03-29T01:59:40+0100",
            "2026-03-29T01:59:50+0100",
            "2026-03-29T03:00:00+0200",
            "2026-03-29T03:00:10+0200",
        ],
        ["01:59:40", "01:59:50", "01:00:00", "01:00:10"],
    ] {
        assert_eq!(shape(&intervals(&iostat_at(&times), "sda")), [(10.0, 10.0, true); 3], "{times:?}");
    }
}

#[test]
fn a_second_run_has_a_mean_since_the_start_and_an_interval_of_its_own() {
    let first = iostat_at(&["13/06/26 23:59:40", "13/06/26 23:59:50", "14/06/26 00:00:00"]);
    let second = iostat_at(&["15/06/26 10:00:00", "15/06/26 10:01:00", "15/06/26 10:02:00"]);
    let load = intervals(&(first.clone() + &second), "sda");
    assert_eq!(
        shape(&load),
        [(10.0, 10.0, true), (10.0, 10.0, true), (60.0, 10.0, false), (60.0, 10.0, true)]
    );
    // Files of one machine: the dates of one tell how those of the others are read.
    let ambiguous = iostat_at(&["12/06/26 10:00:00", "12/06/26 10:00:10"]);
    let inputs = [&second, &ambiguous].map(|text| Input { path: "x".into(), text: text.clone() });
    let load = recorded(&inputs, None).unwrap().loads["sda"].intervals.clone();
    assert_eq!(load[1].start_s - load[0].start_s, 3.0 * 86_400.0, "{load:?}");
}

#[test]
fn what_is_not_understood_is_quoted_and_iostat_without_x_is_told() {
    let error =
        read(&iostat_at(&["05. jan. 2026 kl. 09.08 +0000", "05. jan. 2026 kl. 09.09 +0000"])).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("has a time of a report that is not understood: '05. jan. 2026 kl. 09.08 +0000'"),
        "{error}"
    );
    let counted = read_with(
        &iostat_at(&["05. jan. 2026 kl. 09.08 +0000", "05. jan. 2026 kl. 09.09 +0000"]),
        Some(60.0),
    )
    .unwrap();
    assert_eq!(shape(&counted.loads["sda"].intervals), [(60.0, 10.0, true)]);
    let basic = "Linux 6.1 (h) \t11/28/26 \t_x86_64_\t(2 CPU)\n\n11/28/26 04:18:30\n\
        Device             tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\nsda 6.55 43.69 21.60 30510 15084\n\n";
    let processors = "Linux 6.1 (h) \t11/28/26 \t_x86_64_\t(2 CPU)\n\n\
        avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n  44.16 13.93 15.31 2.68 0.15 23.77\n\n";
    let json = r#"{"sysstat": {"hosts": [{"statistics": [{"disk": [{"disk_device": "sda", "tps": 1.0, "kB_read/s": 1.0}]}]}]}}"#;
    for text in [basic, processors, json] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("is iostat's output without -x"), "{error}");
    }
    let sar = "Linux 6.1 (h) \t11/28/26 \t_x86_64_\t(2 CPU)\n\n12:00:01 AM     CPU     %user     %nice   %system\n12:10:01 AM     all 1.0 1.0 1.0\n";
    assert!(read(sar).unwrap_err().to_string().contains("without its table of disks"));
    let damaged = iostat_at(&["01/25/26 10:00:00", "01/25/26 10:00:10", "01/25/26 10:00:20"]).replacen(
        "sda 10.00 160.00 0.00",
        "sda 10.00 160.00 x",
        2,
    );
    let error = read(&damaged).unwrap_err().to_string();
    assert!(
        error.contains("line 5: expected a device and its figures, found 'sda 10.00 160.00 x 0.00 0.01'"),
        "{error}"
    );
    let whole = iostat_at(&["01/25/26 10:00:00", "01/25/26 10:00:10", "01/25/26 10:00:20"]);
    let all = read(&whole[..whole.len() - 8]).unwrap();
    assert_eq!(all.loads["sda"].intervals.len(), 1);
    assert!(all.notes[0].contains("ends in the middle of a report"), "{:?}", all.notes);
}

const SAR: &str = "Linux 6.1 (h) \tDATE \t_x86_64_\t(2 CPU)\n\n\
    23:40:01          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n\
    23:50:01      nvme1n1    100.00   1200.00    400.00      0.00     16.00      0.20      2.00      5.00\n\
    00:00:01      nvme1n1    200.00      0.00   3200.00      0.00     16.00      0.40      2.00      9.00\n\n\
    Average:          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n\
    Average:      nvme1n1    150.00    600.00   1800.00      0.00     16.00      0.30      2.00      7.00\n";

/// The sample with other times: each is hours, minutes and seconds.
fn sar(date: &str, form: impl Fn(u32, u32, u32) -> String) -> String {
    let mut text = SAR.replace("DATE", date);
    for (hour, minute) in [(23, 40), (23, 50), (0, 0)] {
        text = text.replace(&format!("{hour:02}:{minute:02}:01"), &form(hour, minute, 1));
    }
    text
}

#[test]
fn sar_is_read_in_any_language_with_means_in_any_language() {
    let half = |hour: u32, minute: u32, second: u32, words: [&str; 2]| {
        let word = words[usize::from(hour >= 12)];
        (format!("{:02}:{minute:02}:{second:02}", (hour + 11) % 12 + 1), word.to_owned())
    };
    let texts = [
        sar("06/12/26", |h, m, s| format!("{h:02}:{m:02}:{s:02}")),
        sar("06/12/2026", |h, m, s| half(h, m, s, ["AM", "PM"]).0 + " " + &half(h, m, s, ["AM", "PM"]).1),
        sar("12/6/26", |h, m, s| {
            half(h, m, s, ["पूर्वाह्न", "अपराह्न"]).0 + " " + &half(h, m, s, ["पूर्वाह्न", "अपराह्न"]).1 + " IST"
        }),
        sar("2026年06月12日", |h, m, s| format!("{h:02}时{m:02}分{s:02}秒")).replace("Average:", "平均时间:"),
        sar("2026年06月12日", |h, m, s| format!("{h:02}時{m:02}分{s:02}秒"))
            .replace("Average:", "平均時間："),
        sar("2026년 06월 12일", |h, m, s| format!("{h:02}시 {m:02}분 {s:02}초"))
            .replace("Average:", "평균값:"),
        sar("12.06.2026", |h, m, s| format!("{h:02}.{m:02}.{s:02}")).replace("Average:", "Keskiarvo:"),
        sar("12/06/2026", |h, m, s| format!("{h:02}:{m:02}:{s:02}"))
            .replace(".00", ",00")
            .replace("Average:", "Moyenne\u{202f}:"),
        sar("12/06/2026", |h, m, s| format!("{h:02}:{m:02}:{s:02}")).replace("Average:", "Trung bình:"),
        sar("12/06/2026", |h, m, s| format!("{h:02}:{m:02}:{s:02}")).replace("Average:", "Gj.snitt:"),
    ];
    for text in texts {
        assert_eq!(
            shape(&intervals(&text, "nvme1n1")),
            [(600.0, 100.0, true), (600.0, 200.0, true)],
            "{text}"
        );
    }
}

#[test]
fn sar_with_idle_disks_left_out_restarts_and_several_days_has_the_intervals_of_each_run() {
    let heading = "DEV tps rkB/s wkB/s areq-sz aqu-sz await %util";
    let row = "sda 10.00 160.00 0.00 16.00 0.01 1.00 1.00";
    let omitted = format!(
        "Linux 6.1 (h) \t06/12/26 \t_x86_64_\t(2 CPU)\n\n00:00:01 {heading}\n00:10:01 {row}\n\n00:10:01 {heading}\n\n\
         00:20:01 {heading}\n00:30:01 {row}\n\n00:30:01 {heading}\n"
    );
    let shown = shape(&intervals(&omitted, "sda"));
    assert_eq!(shown, [(600.0, 10.0, true), (600.0, 0.0, true), (600.0, 10.0, true), (600.0, 0.0, true)]);
    let restart = format!(
        "Linux 6.1 (h) \t06/12/26 \t_x86_64_\t(2 CPU)\n\n00:00:01 {heading}\n00:10:01 {row}\n00:20:01 {row}\n\n\
         03:17:44       LINUX RESTART\t(2 CPU)\n\n03:20:01 {heading}\n03:30:01 {row}\n03:40:01 {row}\n"
    );
    assert_eq!(
        shape(&intervals(&restart, "sda")),
        [(600.0, 10.0, true), (600.0, 10.0, true), (600.0, 10.0, false), (600.0, 10.0, true)]
    );
    // The next day's file after this one: its heading has the start of its first interval.
    let day = |date: &str| {
        format!("Linux 6.1 (h) \t{date} \t_x86_64_\t(2 CPU)\n\n00:00:01 {heading}\n00:10:01 {row}\n23:50:01 {row}\n")
            .replace("23:50:01", "00:20:01")
    };
    let load = intervals(&(day("12/06/26") + &day("13/06/26")), "sda");
    assert_eq!(load.iter().map(|interval| interval.seconds).collect::<Vec<_>>(), [600.0; 4]);
    assert_eq!(load[2].start_s - load[0].start_s, 86_400.0);
    let pretty =
        SAR.replace("DATE", "06/12/26").replace("DEV       tps", "tps").replace("%util", "%util DEV");
    let pretty: String = pretty
        .lines()
        .map(|line| match line.split_once("nvme1n1") {
            Some((time, figures)) => format!("{time}{figures} nvme1n1\n"),
            None => format!("{line}\n"),
        })
        .collect();
    assert_eq!(
        shape(&intervals(&pretty, "nvme1n1")),
        [(600.0, 100.0, true), (600.0, 200.0, true)],
        "{pretty}"
    );
}

#[test]
fn sadf_is_read_in_its_other_forms_and_refused_in_those_that_are_not_read() {
    let rows = "h;2;2026-06-12 23:59:56 UTC;loop0;0,00;0,00;0,00;0,00;0,00;0,00;0,00;0,00";
    let other = "vda;624,00;6874,00;42934,00;20,00;79,85;2,85;4,33;94,60";
    let heading = "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util";
    let pairs =
        ["tps\t624.00", "rkB/s\t6874.00", "wkB/s\t42934.00", "aqu-sz\t2.85", "await\t4.33", "%util\t94.60"]
            .map(|pair| format!("h\t2\t2026-06-12 23:59:56 UTC\tvda\t{pair}\n"))
            .concat();
    let texts = [
        format!("{heading}\n{rows}\nh;2;2026-06-12 23:59:56 UTC;{other}\n"),
        format!("{heading}[...]\n{rows};{other}\n"),
        format!("{heading}\nh;2;1781308796;{other}\n"),
        format!(
            "{heading}\nh;-1;2026-06-12 23:50:00 UTC;LINUX-RESTART\t(2 CPU)\nh;2;2026-06-12 23:59:56;{other}\n"
        ),
        pairs,
    ];
    for text in texts {
        let load = intervals(&text, "vda");
        assert_eq!(shape(&load), [(2.0, 624.0, true)], "{text}");
        assert_eq!(load[0].end_s(), 1_781_308_796.0, "{text}");
    }
    let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sysstat\nxmlns=\"x\">\n";
    assert!(read(xml).unwrap_err().to_string().contains("is output of `sadf -x`, which is not read"));
    let raw = "23:59:56 UTC; major; 7; minor; 0; DEV; loop0; tps; 4573; 4573;\n";
    assert!(read(raw).unwrap_err().to_string().contains("`sadf -r`"));
}

#[test]
fn files_of_one_time_are_one_where_they_are_equal_and_are_refused_where_they_differ() {
    let reports = |reads: u32, minutes: std::ops::Range<u32>| {
        let report = |second: u32| {
            let (minute, second) = (second / 60, second % 60);
            format!(
                "2026-11-02T10:{minute:02}:{second:02}+0000\nDevice r/s rkB/s r_await w/s wkB/s w_await aqu-sz\n\
                 nvme1n1 {reads}.00 {}.00 1.00 0.00 0.00 0.00 1.00\n\n",
                reads * 16
            )
        };
        let times = (minutes.start * 60..minutes.end * 60).step_by(10);
        let head = "Linux 6.1.0 (db1) \t11/02/2026 \t_x86_64_\t(2 CPU)\n\n".to_owned();
        head + &times.map(report).collect::<String>()
    };
    let read = |texts: [String; 2]| {
        let files = ["a.txt", "b.txt"].into_iter().zip(texts);
        let files: Vec<Input> = files.map(|(name, text)| Input { path: name.into(), text }).collect();
        recorded(&files, None)
    };
    let all = read([reports(1_000, 0..5), reports(1_000, 2..7)]).unwrap();
    let seconds: f64 = all.loads["nvme1n1"].intervals.iter().map(|interval| interval.seconds).sum();
    assert!((400.0..=420.0).contains(&seconds), "{seconds}");
    let error = read([reports(1_000, 0..5), reports(10, 0..5)]).unwrap_err().to_string();
    assert!(error.starts_with("nvme1n1 has two loads at one time (at 2026-11-02T10:00:"), "{error}");
    assert!(error.contains("1000.0") && error.contains("10.0 operations a second"), "{error}");
}
