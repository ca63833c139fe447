//! `ebbtide size`: what it answers for the files that people have, and what it refuses.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ebbtide_lab::experiment::Role;
use ebbtide_lab::record::VolumeSecond;
use ebbtide_lab::results::ResultsDatabase;
use serde_json::Value;
use tempfile::TempDir;

use crate::lab_run::{arm, run};
use ebbtide_testing::schema::assert_documented;

pub(crate) const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/metrics/shop-gp2.csv");
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/profiles/sysbench-tpcc-gp2.toml");

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.env("EBBTIDE_HOME", "/nonexistent/home").arg("size");
    command
}

fn size(arguments: &[&str]) -> Output {
    command().args(arguments).output().expect("the program that was just built runs")
}

pub(crate) fn answered(arguments: &[&str], code: i32) -> String {
    let output = size(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("the output is text")
}

/// The text with all details, on a terminal so wide that no sentence is wrapped.
pub(crate) fn told(arguments: &[&str], code: i32) -> String {
    let output = command().env("COLUMNS", "2000").args(arguments).arg("--details").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("the output is text")
}

pub(crate) fn json(arguments: &[&str], code: i32) -> Value {
    let text = answered(&[arguments, &["--json"]].concat(), code);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_documented(&["size"], &value);
    value
}

pub(crate) fn refused(arguments: &[&str], words: &[&str]) {
    let output = size(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    for word in words {
        assert!(error.contains(word), "'{word}' is not in: {error}");
    }
}

pub(crate) fn written(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("a temporary file can be written");
    path
}

pub(crate) fn word(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

/// A minute: reads and writes a second, the time of one in ms, and burst credits in percent.
#[derive(Clone, Copy)]
pub(crate) struct Minute {
    reads: f64,
    writes: f64,
    ms: f64,
    credits: f64,
}

/// Metrics as `aws cloudwatch get-metric-data` prints them, from 2026-11-01 on.
pub(crate) fn cloudwatch(minutes: &[Minute]) -> String {
    let time =
        |n: usize| format!("\"2026-11-{:02}T{:02}:{:02}:00+00:00\"", 1 + n / 1_440, n / 60 % 24, n % 60);
    let times: Vec<String> = (0..minutes.len()).map(time).collect();
    let metric = |name: &str, of: &dyn Fn(&Minute) -> f64| {
        let values: Vec<String> = minutes.iter().map(|minute| format!("{:.3}", of(minute))).collect();
        format!(
            "{{\"Id\": \"m\", \"Label\": \"{name}\", \"Timestamps\": [{}], \"Values\": [{}], \"StatusCode\": \"Complete\"}}",
            times.join(","),
            values.join(",")
        )
    };
    let metrics = [
        metric("VolumeReadOps", &|m| m.reads * 60.0),
        metric("VolumeWriteOps", &|m| m.writes * 60.0),
        metric("VolumeReadBytes", &|m| m.reads * 60.0 * 16_384.0),
        metric("VolumeWriteBytes", &|m| m.writes * 60.0 * 16_384.0),
        metric("VolumeTotalReadTime", &|m| m.reads * 60.0 * m.ms / 1e3),
        metric("VolumeTotalWriteTime", &|m| m.writes * 60.0 * m.ms / 1e3),
        metric("VolumeQueueLength", &|m| (m.reads + m.writes) * m.ms / 1e3),
        metric("BurstBalance", &|m| m.credits),
    ];
    format!("{{\"MetricDataResults\": [{}], \"Messages\": []}}", metrics.join(","))
}

const QUIET: Minute = Minute { reads: 200.0, writes: 100.0, ms: 0.7, credits: 100.0 };
const BUSY: Minute = Minute { reads: 1_500.0, writes: 900.0, ms: 0.8, credits: 80.0 };

/// A day with two busy hours.
pub(crate) fn a_day() -> Vec<Minute> {
    (0..1_440).map(|n| if (600..720).contains(&n) { BUSY } else { QUIET }).collect()
}

pub(crate) fn field<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_else(|| panic!("{path} is no text in {value}"))
}

#[test]
fn metrics_of_a_gp2_are_sized_priced_and_put_beside_today() {
    let dir = tempfile::tempdir().unwrap();
    let file = written(&dir, "metrics.json", &cloudwatch(&a_day()));
    let arguments = [word(&file), "--volume", "gp2:size=500GiB", "--instance", "r5.large"];
    let answer = json(&arguments, 0);
    // 2,400 with a fifth of headroom are within what gp3 has for nothing.
    assert_eq!(field(&answer, "/answer/volumes"), "gp3:size=500GiB,iops=3000,throughput=125");
    assert_eq!(answer["answer"]["storage"]["usd"].as_f64(), Some(40.0));
    assert_eq!(answer["today"]["choice"]["storage"]["usd"].as_f64(), Some(50.0));
    assert_eq!(answer["instance"], "r5.large");
    assert_eq!(answer["answer"]["usd"].as_f64(), Some(131.98));
    assert_eq!(answer["inputs"]["little"]["agrees_pct"].as_f64(), Some(100.0));
    assert_eq!(answer["inputs"]["throttled"], Value::Null);
    assert_eq!(answer["load"]["iops"]["max"].as_f64(), Some(2_400.0));
    let safer = answer["safer"].as_array().unwrap();
    assert_eq!(safer.len(), 5);
    let text = told(&arguments, 0);
    for words in [
        "gp3:size=500GiB,iops=3000,throughput=125 carries the load for $40.00 a month, $10.00 less than today.\n",
        "today: gp2:size=500GiB",
        "$10.00 a month less than today",
        "aws ec2 modify-volume --volume-id VOLUME_ID --volume-type gp3 --size 500 --iops 3000 --throughput 125",
        "resource \"aws_ebs_volume\" \"data\" {",
        "The AWS whitepaper's rule, 200 IOPS for each request in the queue",
        "Aurora I/O-Optimized",
        "?: the catalogue has no price in us-east-1 of an instance of db.r5.large on RDS with a standby; storage of RDS io2 with a standby;",
        "AmazonRDS and give it with --prices FILE: https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonRDS/current/us-east-1/index.csv",
    ] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
}

/// The answer is the first line, and on one screen; a command that is too long for a line can be pasted.
#[test]
fn the_answer_comes_first_on_one_screen_at_60_80_and_120_columns() {
    let arguments = [SHOP, "--volume", "gp2:size=600GiB", "--instance", "r5.2xlarge"];
    for (columns, most) in [(60, 32), (80, 24), (120, 24)] {
        let output = command().env("COLUMNS", columns.to_string()).args(arguments).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.starts_with("gp3:size=600GiB,iops=3400,throughput=125 carries the load"), "{shown}");
        let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains("carries the load for $50.00 a month, $10.00 less than today."), "{shown}");
        assert!(shown.lines().count() <= most, "{} lines: {shown}", shown.lines().count());
        let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= columns, "{longest} columns: {shown}");
        let pasted = shown.replace("\\\n", " ");
        let pasted = pasted.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(pasted.contains("--volume-type gp3 --size 600 --iops 3400 --throughput 125"), "{shown}");
    }
}

#[test]
fn a_gp2_whose_credits_end_is_seen_throttled_and_the_need_is_not_taken_for_what_was_served() {
    // 100 GiB of gp2: 300 IOPS for ever. In the afternoon the credits are gone, and a queue of 50 waits.
    let minute = |n: usize| match n {
        0..400 => QUIET,
        400..700 => Minute { credits: 40.0, ..BUSY },
        700..900 => Minute { reads: 180.0, writes: 120.0, ms: 50.0 / 300.0 * 1e3, credits: 0.0 },
        _ => QUIET,
    };
    let dir = tempfile::tempdir().unwrap();
    let minutes: Vec<Minute> = (0..1_440).map(minute).collect();
    let file = written(&dir, "metrics.json", &cloudwatch(&minutes));
    let answer = json(&[word(&file), "--volume", "gp2:size=100GiB", "--raid0", "1"], 1);
    let throttled = &answer["inputs"]["throttled"];
    assert!((throttled["time_pct"].as_f64().unwrap() - 200.0 / 1_440.0 * 100.0).abs() < 0.1, "{throttled}");
    // What was served before the credits ended, and not the queue over a latency, which would be 71,000.
    assert_eq!(throttled["served_before_iops"].as_f64(), Some(2_400.0), "{throttled}");
    assert_eq!(throttled["implied_iops"].as_f64(), Some(2_400.0), "{throttled}");
    let today = &answer["today"];
    assert_eq!((&today["meets_now"], &today["meets"]), (&Value::Bool(false), &Value::Bool(false)));
    // The record wins: a twentieth of the I/O took 167 ms, and the credits ended after 700 minutes.
    assert_eq!(today["now"]["p99_us"].as_f64().map(|us| (us / 1e3).round()), Some(167.0), "{today}");
    assert_eq!(today["now"]["credits_end_s"].as_f64(), Some(42_000.0), "{today}");
    assert_eq!(today["now"]["lowest_credits_pct"].as_f64(), Some(0.0), "{today}");
    let implied = answer["safer"].as_array().unwrap().last().unwrap();
    assert_eq!(implied["kind"], "implied");
    // 2,400 with a fifth of headroom are within what gp3 has for nothing.
    assert_eq!(implied["volumes"], "gp3:size=100GiB,iops=3000,throughput=125");
    let text = told(&[word(&file), "--volume", "gp2:size=100GiB", "--raid0", "1"], 1);
    for words in [
        "THROTTLED in 14% of the time: burst credits were used up",
        "A throttled past understates the need: before the credits ended 2,400 IOPS were served",
        "it was throttled in 14% of the time; p99 of an I/O 167 ms by the record",
        "its burst credits were at 0 from 2026-11-01 11:40 to 15:00 UTC (14% of the time); an I/O took ",
        "what the throttled past may have needed",
    ] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
}

#[test]
fn nights_without_credits_are_said_with_their_time_and_what_an_i_o_took() {
    // Four nights: from 02:00 to 02:40 without credits, an I/O takes 50 ms in place of 1.
    let minute = |n: usize| match n % 1_440 {
        120..160 => Minute { reads: 180.0, writes: 120.0, ms: 50.0, credits: 0.0 },
        _ => QUIET,
    };
    let minutes: Vec<Minute> = (0..4 * 1_440).map(minute).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = written(&dir, "metrics.json", &cloudwatch(&minutes));
    let page = dir.path().join("page.html");
    let arguments = [word(&file), "--volume", "gp2:size=100GiB", "--raid0", "1"];
    let text = told(&[&arguments[..], &["--html", word(&page)]].concat(), 1);
    for words in [
        "its burst credits were at 0 in 4 of 4 nights, 02:00 to 02:40 UTC (2.8% of the time); an I/O took 50.0 ms instead of ",
        "2026-11-01 00:00 to 2026-11-05 00:00 UTC: ",
    ] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    let html = std::fs::read_to_string(&page).unwrap();
    for part in
        ["BurstBalance", "limit of today", "limit of the answer", "Shaded: the load waited", "\"shade\""]
    {
        assert!(html.contains(part), "no '{part}' in the page");
    }
    let (_, plain) = ebbtide_testing::browser::without_scripts(&html);
    assert!(plain.contains("BurstBalance") && !plain.contains("throttled Lowest"), "{plain}");
}

#[test]
fn parts_of_the_answer_are_printed_by_their_names() {
    let shown = answered(&[SHOP, "--volume", "gp2:size=600GiB", "--raid0", "1", "--show", "terraform"], 0);
    assert!(shown.starts_with("Terraform\n") && shown.contains("aws_ebs_volume"), "{shown}");
    assert!(!shown.contains("carries the load"), "{shown}");
    refused(
        &[SHOP, "--volume", "gp2:size=600GiB", "--show", "terrafrom"],
        &["did you mean 'terraform'?", "aurora"],
    );
}

#[test]
fn rows_that_depend_on_burst_are_marked_where_the_past_was_throttled() {
    // 300 IOPS for ever, and a burst of a quarter of an hour each day that ends its credits once.
    let minute = |n: usize| match n % 1_440 {
        600..615 => Minute { credits: 60.0, ..BUSY },
        615..617 if n > 1_440 => Minute { reads: 180.0, writes: 120.0, ms: 100.0, credits: 0.0 },
        _ => QUIET,
    };
    let dir = tempfile::tempdir().unwrap();
    let sized = |minutes: Vec<Minute>, name: &str, code: i32| {
        let file = written(&dir, name, &cloudwatch(&minutes));
        let arguments = [word(&file), "--volume", "gp2:size=150GiB", "--raid0", "1"];
        (json(&arguments, code), told(&arguments, code))
    };
    let row = |answer: &Value, kind: &str| {
        let all = answer["choices"].as_array().unwrap().clone();
        all.into_iter().find(|choice| field(choice, "/volumes").starts_with(kind)).unwrap()
    };
    let (answer, text) = sized((0..2_880).map(minute).collect(), "throttled.json", 1);
    assert_eq!(
        (&row(&answer, "gp2")["needs_burst"], &row(&answer, "gp3")["needs_burst"]),
        (&true.into(), &false.into())
    );
    let gp2 = text.lines().find(|line| line.starts_with("gp2:")).unwrap();
    assert!(
        gp2.contains("x*  ") && text.contains("*  only while burst credits of the volume last. The past was"),
        "{text}"
    );
    let (answer, text) = sized((0..1_440).map(minute).collect(), "free.json", 0);
    assert_eq!(row(&answer, "gp2")["needs_burst"], true);
    assert!(!text.contains("only while burst credits"), "{text}");
    // Below the first rows an array has the mark: the legend is there, and not on the first screen.
    let busy = |n: usize| match n % 1_440 {
        600..615 => Minute { reads: 1_700.0, credits: 60.0, ..BUSY },
        _ => minute(n),
    };
    let file = written(&dir, "array.json", &cloudwatch(&(0..2_880).map(busy).collect::<Vec<_>>()));
    let arguments = [word(&file), "--volume", "gp2:size=150GiB"];
    let (screen, text) = (answered(&arguments, 1), told(&arguments, 1));
    assert!(!screen.contains('*'), "{screen}");
    assert!(text.contains("x*  ") && text.contains("*  only while burst credits of the volume"), "{text}");
}

#[test]
fn growth_more_transactions_headroom_and_a_p99_are_part_of_what_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let file = written(&dir, "metrics.json", &cloudwatch(&a_day()));
    let base = [word(&file), "--volume", "gp3:size=500GiB", "--raid0", "1", "--headroom", "0%"];
    let with = |more: &[&str]| json(&[&base[..], more].concat(), 0);
    let answer = with(&["--growth", "50%", "--horizon", "24"]);
    assert_eq!(answer["asked"]["growth"].as_f64(), Some(2.25));
    assert_eq!(answer["asked"]["size_gib"].as_u64(), Some(1_125));
    // 2,400 x 2.25.
    assert_eq!(field(&answer, "/answer/volumes"), "gp3:size=1125GiB,iops=5400,throughput=125");
    let answer = with(&["--tps", "900", "--tps-measured", "600"]);
    assert_eq!(field(&answer, "/answer/volumes"), "gp3:size=500GiB,iops=3600,throughput=125");
    let answer = with(&["--p99", "700us"]);
    assert!(field(&answer, "/answer/volumes").starts_with("io2:size=500GiB"), "{answer}");
    refused(&[&base[..], &["--tps", "900"]].concat(), &["--tps-measured"]);
    let none = json(&[&base[..], &["--p99", "10us"]].concat(), 1);
    assert_eq!(none["answer"], Value::Null);
}

#[test]
fn prices_of_another_region_are_taken_from_aws_list() {
    let dir = tempfile::tempdir().unwrap();
    let file = written(&dir, "metrics.json", &cloudwatch(&a_day()));
    let list = "\"FormatVersion\",\"v1.0\"\n\"Disclaimer\",\"x\"\n\"Publication Date\",\"2026-09-30T12:00:00Z\"\n\"Version\",\"1\"\n\"OfferCode\",\"AmazonEC2\"\n\
        \"SKU\",\"TermType\",\"Unit\",\"PricePerUnit\",\"Currency\",\"Product Family\",\"Region Code\",\"usageType\"\n\
        \"A\",\"OnDemand\",\"GB-Mo\",\"0.1190000000\",\"USD\",\"Storage\",\"eu-central-1\",\"EUC1-EBS:VolumeUsage.gp2\"\n";
    let prices = written(&dir, "index.csv", list);
    let answer = json(&[word(&file), "--volume", "gp2:size=500GiB", "--prices", word(&prices)], 0);
    assert_eq!(answer["region"], "eu-central-1");
    let base =
        [word(&file), "--volume", "gp2:size=500GiB", "--prices", word(&prices), "--instance", "r5.large"];
    let skipped = json(&base, 0)["instances_skipped"].to_string();
    assert!(skipped.contains("no price of r5.large in eu-central-1"), "{skipped}");
    assert!(told(&base, 0).contains("no other instance was looked for"));
    let kept = json(&[&base[..], &["--keep-instance"]].concat(), 0);
    assert_eq!(kept["instances_skipped"], Value::Null, "{kept}");
    assert!(field(&answer, "/answer/volumes").contains("gp2"), "the list has prices of gp2 alone: {answer}");
    refused(
        &[word(&file), "--size", "1GiB", "--prices", word(&file)],
        &["is no price list of AWS", "offers/v1.0"],
    );
}

#[test]
fn what_other_tools_print_is_sized_and_a_device_has_to_be_named_among_several() {
    let dir = tempfile::tempdir().unwrap();
    let mut iostat = String::from("Linux 6.1 (h) \t11/22/2026 \t_x86_64_\t(2 CPU)\n");
    for n in 0..30 {
        let _ = writeln!(
            iostat,
            "\n11/22/2026 11:00:{n:02} AM\nDevice r/s rkB/s r_await w/s wkB/s w_await aqu-sz %util\n\
             nvme1n1 1000.00 16000.00 0.80 500.00 8000.00 0.60 1.10 50.00\nnvme0n1 1.00 4.00 0.50 1.00 4.00 0.50 0.00 0.10"
        );
    }
    let file = written(&dir, "iostat.txt", &iostat);
    refused(&[word(&file), "--size", "100GiB"], &["nvme0n1 and nvme1n1", "--device"]);
    refused(
        &[word(&file), "--size", "100GiB", "--device", "sda"],
        &["no such device", "there are nvme0n1, nvme1n1"],
    );
    refused(&[word(&file), "--device", "nvme1n1"], &["the size that is needed is not known", "--volume"]);
    let answer = json(&[word(&file), "--size", "100GiB", "--device", "nvme1n1"], 0);
    assert_eq!(answer["load"]["iops"]["mean"].as_f64(), Some(1_500.0));
    assert_eq!(answer["load"]["seconds"].as_f64(), Some(29.0));
}

/// A sample of what sysstat prints.
fn sysstat(name: &str) -> String {
    format!("{}/crates/captured/tests/fixtures/sysstat/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn what_sysstat_prints_in_other_languages_and_with_other_options_has_the_intervals_that_it_was_given() {
    for name in [
        "day-first-over-midnight.txt",
        "day-first-over-midnight.json",
        "two-digits-day-first.txt",
        "chinese.txt",
        "japanese.txt",
        "colours.txt",
    ] {
        let text = told(&[&sysstat(name), "--size", "100GiB"], 0);
        assert!(text.contains("30 s in 3 intervals of 10 s"), "{name}: {text}");
        let answer = json(&[&sysstat(name), "--size", "100GiB"], 0);
        let iops = |figure: &str| answer["load"]["iops"][figure].as_f64().map(f64::round);
        assert_eq!((iops("mean"), iops("max")), (Some(267.0), Some(400.0)), "{name}");
    }
    let text = told(&[&sysstat("human.txt"), "--size", "100GiB"], 0);
    assert!(text.contains("20 s in 2 intervals of 10 s"), "{text}");
    let text = told(&[&sysstat("sadf.json"), "--size", "100GiB"], 0);
    assert!(text.contains("20 min in 2 intervals of 10 min"), "{text}");
    let text = told(&[&sysstat("one-await.txt"), "--size", "100GiB"], 0);
    assert!(text.contains("within 20% in 100% of the time (mean queue 3.10, expected 3.10)"), "{text}");
    let volume = ["--volume", "gp2:size=100GiB"];
    let [with, without] = ["idle-left-out.txt", "idle-printed.txt"].map(|name| {
        let path = sysstat(name);
        let text = told(&[&[path.as_str()], &volume[..]].concat(), 0);
        assert!(text.contains("4 h in 24 intervals of 10 min"), "{text}");
        text.replace(name, "FILE")
    });
    assert_eq!(with, without);
}

#[test]
fn an_interval_far_from_the_others_and_iostat_without_x_are_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let report = |time: &str| {
        format!("{time}\nDevice r/s rkB/s w/s wkB/s aqu-sz\nsda 10.00 160.00 0.00 0.00 0.01\n\n")
    };
    let times = ["01/25/26 10:00:00", "01/25/26 10:00:10", "01/25/26 10:00:20", "01/25/26 14:00:25"];
    let file = written(&dir, "iostat.txt", &times.map(report).concat());
    refused(
        &[word(&file), "--size", "100GiB"],
        &["'01/25/26 10:00:20' and '01/25/26 14:00:25', which are 4 h 5 s apart", "give --interval 10s"],
    );
    let answer = json(&[word(&file), "--size", "100GiB", "--interval", "10s"], 0);
    assert_eq!(answer["load"]["seconds"].as_f64(), Some(30.0));
    let basic = "Linux 6.1 (h) \t01/25/26 \t_x86_64_\t(2 CPU)\n\nDevice tps kB_read/s kB_wrtn/s kB_read kB_wrtn\nsda 1 1 1 1 1\n\n";
    let file = written(&dir, "basic.txt", basic);
    refused(&[word(&file), "--size", "100GiB"], &["is iostat's output without -x", "iostat -x -t 10"]);
}

/// A trace in the format of MSR Cambridge: 500 reads a second of 16 KiB for 20 s.
fn msr() -> String {
    let mut text = String::new();
    for n in 0..10_000_u64 {
        let _ = writeln!(text, "{},h,0,Read,{},16384,8000", 128_166_372_000_000_000 + n * 20_000, n * 65_536);
    }
    text
}

#[test]
fn a_trace_is_sized_and_a_damaged_one_is_refused_with_line_byte_and_what_was_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = written(&dir, "db.msr", &msr());
    let answer = json(&[word(&file), "--size", "100GiB"], 0);
    assert_eq!(
        (answer["load"]["iops"]["p50"].as_f64(), answer["load"]["intervals"].as_u64()),
        (Some(500.0), Some(20))
    );
    let named = json(&[word(&file), "--size", "100GiB", "--trace-format", "msr"], 0);
    assert_eq!(named["load"]["iops"], answer["load"]["iops"]);
    refused(
        &[word(&file), "--size", "100GiB", "--trace-format", "nfs"],
        &["--trace-format nfs: expected one of", "msr"],
    );
    refused(
        &[word(&file), "--size", "100GiB", "--trace-unit", "h"],
        &["--trace-unit h: expected one of ns, us, ms, s"],
    );
    refused(
        &[PROFILE, "--size", "100GiB", "--trace-unit", "ms"],
        &["--trace-unit: ", "no trace of block I/O"],
    );
    let damaged = msr().replacen(",Read,655294464,", ",Xead,655294464,", 1);
    let file = written(&dir, "damaged.msr", &damaged);
    let byte = damaged.find("Xead").map(|at| damaged[..at].rfind('\n').unwrap() + 1).unwrap();
    refused(
        &[word(&file), "--size", "100GiB"],
        &["line 10000 of the trace", &format!("at byte {byte}"), "TIMESTAMP,HOST,DISK", "read before it: "],
    );
}

#[test]
fn a_profile_is_sized_by_its_model_and_lacks_nothing_in_silence() {
    println!("seed 1");
    let answer = json(&[PROFILE, "--tps", "300", "--size", "600GiB", "--raid0", "1"], 0);
    assert_eq!(answer["asked"]["tps"].as_f64(), Some(300.0));
    let model = &answer["answer"]["model"];
    assert_eq!(model["meets"], true);
    // The low tps and the high p99 are what is judged. No more is carried than what arrives, and no less where it meets it.
    for choice in answer["choices"].as_array().unwrap() {
        let model = &choice["model"];
        let (tps, low) = (model["tps"].as_f64().unwrap(), model["tps_low"].as_f64().unwrap());
        assert!(low <= tps && tps <= 300.001, "{choice}");
        assert_eq!(model["meets"].as_bool().unwrap(), low >= 299.7, "{choice}");
    }
    let (p99, high) = (model["p99_us"].as_f64().unwrap(), model["p99_high_us"].as_f64().unwrap());
    assert!(high > p99 * 1.01, "{model}");
    // No type is quicker by that much: a p99 that is met in the middle of its interval alone is not enough.
    let between = format!("{}us", ((p99 + high) / 2.0).round());
    let none = json(&[PROFILE, "--tps", "300", "--size", "600GiB", "--raid0", "1", "--p99", &between], 1);
    assert_eq!((&none["answer"], &none["choices"]), (&Value::Null, &serde_json::json!([])));
    // Of the same types some are slower than the answer: they are left where they do not meet it.
    let close = format!("{}us", (high * 1.1).round());
    let answer = json(&[PROFILE, "--tps", "300", "--size", "600GiB", "--raid0", "1", "--p99", &close], 0);
    assert!(answer["answer"]["model"]["p99_high_us"].as_f64().unwrap() <= high * 1.1, "{}", answer["answer"]);
    let dir = tempfile::tempdir().unwrap();
    let bare = written(
        &dir,
        "bare.toml",
        "[server]\nflavour = \"mysql-8.0\"\n[machine]\n[workload]\nkind = \"tpcc\"\n",
    );
    refused(
        &[word(&bare), "--size", "100GiB"],
        &["the profile lacks server.buffer_pool_size", "SHOW GLOBAL VARIABLES"],
    );
    let output = size(&[PROFILE, "--tps", "100000", "--size", "600GiB"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("no storage lets this server carry 100,000 transactions a second"), "{error}");
}

#[test]
fn each_volume_of_a_run_is_judged_by_itself_and_a_share_is_multiplied() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = run(&[arm("two", "gp3:size=500GiB", 18.0, 15.0)]);
    run.experiment.arms[0].volumes.insert(Role::Redo, "gp3:size=10GiB".into());
    for second in run.trials.iter_mut().flat_map(|trial| &mut trial.seconds) {
        let of = |read_iops: f64, write_iops: f64| VolumeSecond {
            read_iops,
            write_iops,
            write_mib: write_iops / 64.0,
            ..VolumeSecond::default()
        };
        second.volumes = [(Role::Data, of(300.0, 100.0)), (Role::Redo, of(0.0, 50.0))].into();
    }
    let results = dir.path().join("run");
    let mut stored = ResultsDatabase::create(&results, &run).unwrap();
    stored.finish(&ebbtide_lab::summary::summarize(&run)).unwrap();
    let base = [word(&results), "--size", "100GiB"];
    let data = json(&base, 0);
    // An eighth of a machine did 400.
    assert_eq!(data["load"]["iops"]["max"].as_f64(), Some(3_200.0), "{data}");
    let notes = data["load"]["notes"].to_string();
    assert!(notes.contains("one share of 8") && notes.contains("--device redo"), "{notes}");
    let redo = json(&[&base[..], &["--device", "redo"]].concat(), 0);
    assert_eq!(redo["load"]["iops"]["max"].as_f64(), Some(400.0), "{redo}");
    assert_eq!(redo["answer"]["volumes"], "gp3:size=100GiB,iops=3000,throughput=125");
    refused(
        &[&base[..], &["--device", "binlog"]].concat(),
        &["--device binlog: the arm two has no volume of that name", "it has data, redo"],
    );
}

#[test]
fn contradictions_and_wrong_values_are_refused_with_what_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let mut minutes = a_day();
    minutes.truncate(10);
    let whole = cloudwatch(&minutes);
    let file = written(&dir, "metrics.json", &whole);
    let base = [word(&file), "--size", "100GiB"];
    let with = |more: &[&'static str], words: &[&str]| refused(&[&base[..], more].concat(), words);
    with(&["--headroom", "2000%"], &["--headroom 2000%", "0% to 1000%"]);
    with(&["--carry", "20%"], &["--carry 20%", "50% to 100%"]);
    with(&["--raid0", "0"], &["--raid0 0", "1 to 16"]);
    with(&["--horizon", "0"], &["--horizon 0", "1 to 120"]);
    with(&["--volume", "gp9:size=1GiB"], &["--volume gp9:size=1GiB"]);
    with(&["--instance", "r5.lage"], &["--instance r5.lage", "did you mean"]);
    with(&["--region", "mars-1"], &["--region", "mars-1"]);
    // Bytes without operations.
    let odd = whole.replacen("\"Values\": [12000.000,", "\"Values\": [0.000,", 1);
    let odd = written(&dir, "odd.json", &odd);
    refused(&[word(&odd), "--size", "100GiB"], &["contradicts itself", "bytes a second and no reads"]);
    let half = whole.replace("VolumeWriteBytes", "Other");
    let half = written(&dir, "half.json", &half);
    refused(&[word(&half), "--size", "100GiB"], &["lacks the metrics VolumeWriteBytes", "--period 60"]);
    let cut = written(&dir, "cut.json", &whole[..whole.len() / 2]);
    refused(&[word(&cut), "--size", "100GiB"], &["is damaged", "line 1 column"]);
    let other = written(&dir, "other.txt", "hello\n");
    refused(&[word(&other), "--size", "100GiB"], &["of no known format", "get-metric-data"]);
    refused(&["/nonexistent.json", "--size", "100GiB"], &["cannot read /nonexistent.json"]);
}

#[test]
fn a_page_has_the_load_beside_the_limits_of_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let file = written(&dir, "metrics.json", &cloudwatch(&a_day()));
    let page = dir.path().join("sizing.html");
    answered(&[word(&file), "--volume", "gp2:size=500GiB", "--html", word(&page)], 0);
    let html = std::fs::read_to_string(&page).unwrap();
    for words in ["limit of the answer", "Operations a second", "gp3:size=500GiB,iops=3000"] {
        assert!(html.contains(words), "'{words}' is not in the page");
    }
}

/// The metrics of the example, with other values: `change` gets the column and the value of each.
fn shop(change: impl Fn(usize, &str) -> String) -> String {
    let text = std::fs::read_to_string(SHOP).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    let row = |row: &str| {
        let cells = row.split(',').enumerate();
        cells
            .map(|(n, cell)| if n == 0 { cell.into() } else { change(n, cell) })
            .collect::<Vec<_>>()
            .join(",")
    };
    format!("{head}\n{}\n", rows.lines().map(row).collect::<Vec<_>>().join("\n"))
}

#[test]
fn metrics_of_the_aws_cli_version_1_have_times_as_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let text = cloudwatch(&a_day());
    let mut numbers = text.clone();
    for n in 0..1_440 {
        let time = format!("\"2026-11-01T{:02}:{:02}:00+00:00\"", n / 60, n % 60);
        // 2026-11-01T00:00:00Z.
        numbers = numbers.replace(&time, &format!("{}.0", 1_793_491_200 + n * 60));
    }
    assert!(!numbers.contains("2026-11"));
    let [one, other] = [("iso.json", text), ("numbers.json", numbers)]
        .map(|(name, text)| json(&[word(&written(&dir, name, &text)), "--volume", "gp2:size=500GiB"], 0));
    assert_eq!(one["answer"], other["answer"]);
    assert_eq!(one["load"]["iops"], other["load"]["iops"]);
}

#[test]
fn metrics_that_ebs_cannot_have_counted_are_told_and_exit_with_1() {
    let dir = tempfile::tempdir().unwrap();
    let rates = shop(|n, cell| match n {
        1 | 2 => (cell.parse::<f64>().unwrap() / 300.0).to_string(),
        _ => cell.to_owned(),
    });
    let file = written(&dir, "rates.csv", &rates);
    let arguments = [word(&file), "--volume", "gp2:size=600GiB"];
    let found = &json(&arguments, 1)["inputs"]["inconsistent"];
    assert_eq!(found.as_array().map(Vec::len), Some(2), "{found}");
    assert_eq!(found[0]["time_pct"].as_f64(), Some(100.0));
    let text = told(&arguments, 1);
    for words in [
        "INCONSISTENT at 2026-11-01 01:20 UTC",
        "its reads have 4.69 MiB each",
        "EBS counts at most 256 KiB as one operation of gp2",
        "probably given as a rate",
    ] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    let text = told(&[SHOP, "--volume", "io1:size=600GiB,iops=1000"], 1);
    assert!(
        text.contains("it shows 2,751 IOPS, and io1:size=600GiB,iops=1000 gives at most 1,000"),
        "{text}"
    );
    let sound = json(&[SHOP, "--volume", "gp2:size=600GiB"], 0);
    assert_eq!(sound["inputs"]["inconsistent"], serde_json::json!([]));
    // A queue that operations times latency do not explain.
    let queue = shop(|n, cell| if n == 7 { "40.0".into() } else { cell.to_owned() });
    let file = written(&dir, "queue.csv", &queue);
    let text = told(&[word(&file), "--volume", "gp2:size=600GiB"], 1);
    assert!(text.contains("INCONSISTENT: queue = IOPS x latency within"), "{text}");
    assert!(text.contains("The answer is no better than these figures"), "{text}");
}

#[test]
fn rows_that_are_cut_are_told_and_files_without_a_load_are_refused_with_what_they_lack() {
    let dir = tempfile::tempdir().unwrap();
    let whole = shop(|_, cell| cell.to_owned());
    let cut = written(&dir, "cut.csv", &whole[..whole.len() - 30]);
    let notes = json(&[word(&cut), "--size", "600GiB"], 0)["load"]["notes"].to_string();
    assert!(notes.contains("line 289 has fewer values than the header has metrics"), "{notes}");
    let zero = written(&dir, "zero.csv", &shop(|_, _| "0".into()));
    let wrong = ["the files have no operation in 288 intervals", "record the load while the server works"];
    refused(&[word(&zero), "--size", "600GiB"], &wrong);
    refused(
        &[SHOP, "--size", "600GiB", "--device", "vol-1"],
        &["no such device", "hint: the files name no device: leave --device out"],
    );
    for (name, text) in [("empty.csv", ""), ("blank.json", " \n")] {
        let file = written(&dir, name, text);
        refused(
            &[word(&file), "--size", "600GiB"],
            &[&format!("{} is empty", word(&file)), "get-metric-data"],
        );
    }
}

#[test]
fn a_size_has_a_unit_and_holds_what_lies_on_a_profiles_volume() {
    for size in ["10", "0", "0GiB", "512MiB", "2000TiB", "GiB", ""] {
        refused(
            &[SHOP, "--size", size],
            &[
                &format!("--size {size}: expected a whole number with its unit from 1GiB to 1024TiB"),
                "like 500GiB",
            ],
        );
    }
    refused(&[SHOP, "--size", "10GB"], &["--size: '10GB' has a decimal unit", "write 10GiB or 9537MiB"]);
    refused(
        &[PROFILE, "--tps", "100", "--p99", "5"],
        &["--p99: '5' has no unit: write it like 5s, 5ms or 5m"],
    );
    let figures = ["125 GiB: 95 GiB of data and 30 GiB of redo log", "hint: give 125 GiB or more"];
    refused(&[PROFILE, "--tps", "100", "--size", "124GiB"], &[&["--size: 124 GiB"][..], &figures].concat());
    refused(
        &[PROFILE, "--tps", "100", "--volume", "gp3:size=1GiB"],
        &[&["--volume: 1 GiB"][..], &figures].concat(),
    );
    let answer = json(&[PROFILE, "--tps", "100", "--raid0", "1"], 0);
    assert_eq!(answer["asked"]["size_gib"].as_u64(), Some(157), "a fifth of the volume is free");
}

#[test]
fn a_modelled_load_is_no_past_of_todays_volume() {
    let arguments = [PROFILE, "--tps", "300", "--volume", "gp3:size=600GiB", "--raid0", "1"];
    let text = told(&arguments, 0);
    assert!(!text.contains("THROTTLED") && text.contains("today: gp3:size=600GiB"), "{text}");
}
