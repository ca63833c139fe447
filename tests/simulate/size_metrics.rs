//! `ebbtide size` on metrics of CloudWatch: their statistics, pages and volumes.

use std::path::PathBuf;

use ebbtide_catalog::Catalog;
use ebbtide_volume::{Io, MinuteMetrics, Nanos, Op, Stats};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json as object};

use crate::size::{json, refused, told, word, written};

const AVERAGES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/crates/captured/tests/fixtures/cloudwatch-average.csv");
const PAGE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/crates/captured/tests/fixtures/cloudwatch-page.json");
const NAMES: [&str; 4] = ["VolumeReadOps", "VolumeWriteOps", "VolumeReadBytes", "VolumeWriteBytes"];

/// Ten minutes of a volume with so many reads and as many writes a second, of 16 KiB; `prefix` is before each metric's name.
fn results(prefix: &str, per_second: f64) -> Vec<Value> {
    let times: Vec<String> = (0..10).map(|minute| format!("2026-11-02T09:{minute:02}:00Z")).collect();
    let sums =
        [per_second * 60.0, per_second * 60.0, per_second * 60.0 * 16_384.0, per_second * 60.0 * 16_384.0];
    let result = |(name, sum): (&&str, f64)| {
        object!({"Id": name.to_lowercase(), "Label": format!("{prefix}{name}"), "Timestamps": times, "Values": vec![sum; 10],
            "StatusCode": "Complete"})
    };
    NAMES.iter().zip(sums).map(result).collect()
}

fn answer(results: &[Value]) -> String {
    object!({"MetricDataResults": results}).to_string()
}

#[test]
fn an_export_of_averages_is_refused_and_with_sums_it_is_sized() {
    let volume = ["--volume", "gp3:size=500GiB,iops=6000"];
    refused(
        &[&[AVERAGES][..], &volume].concat(),
        &[
            "VolumeReadOps, VolumeWriteOps, VolumeReadBytes, VolumeWriteBytes have the statistic Average: needed is Sum",
            "hint: export or ask for operations, bytes and times with the statistic Sum",
        ],
    );
    let dir = tempfile::tempdir().unwrap();
    let sums = std::fs::read_to_string(AVERAGES).unwrap().replace("Average", "Sum");
    let sums = written(&dir, "sums.csv", &sums);
    let sized = json(&[&[word(&sums)][..], &volume].concat(), 0);
    assert_eq!(sized["load"]["iops"]["mean"].as_f64(), Some(1_000.0), "{sized}");
    assert_eq!(sized["load"]["notes"], object!([]));
}

#[test]
fn a_page_of_several_is_noted_in_text_and_json() {
    let arguments = [PAGE, "--volume", "gp3:size=500GiB"];
    assert!(json(&arguments, 0)["load"]["notes"].to_string().contains("is one page of several (NextToken)"));
    assert!(told(&arguments, 0).contains("cloudwatch-page.json is one page of several (NextToken)"));
    let screen = told_of(&arguments);
    assert!(
        screen.contains("one page of several"),
        "the first screen says that figures are missing: {screen}"
    );
}

/// The words of a command with these files.
fn with<'a>(rest: &[&'a str], files: &[&'a PathBuf]) -> Vec<&'a str> {
    files.iter().map(|path| word(path)).chain(rest.iter().copied()).collect()
}

#[test]
fn volumes_of_one_input_are_sized_one_by_one_with_a_total() {
    let dir = tempfile::tempdir().unwrap();
    let [big, small] = [("vol-0big ", 2_000.0), ("vol-0small ", 20.0)]
        .map(|(prefix, per_second)| results(prefix, per_second));
    let [a, b] =
        [("a.json", &big), ("b.json", &small)].map(|(name, results)| written(&dir, name, &answer(results)));
    let both = written(&dir, "both.json", &answer(&[big, small].concat()));
    let rest = ["--volume", "gp3:size=500GiB,iops=6000", "--raid0", "1"];
    let sized = json(&with(&rest, &[&both]), 0);
    let volumes = sized["volumes"].as_array().unwrap();
    let means: Vec<(&str, f64)> = volumes
        .iter()
        .map(|one| (one["volume"].as_str().unwrap(), one["load"]["iops"]["mean"].as_f64().unwrap()))
        .collect();
    assert_eq!(means, [("vol-0big", 4_000.0), ("vol-0small", 40.0)]);
    let costs: f64 = volumes.iter().map(|one| one["answer"]["storage"]["usd"].as_f64().unwrap()).sum();
    assert!((sized["storage_usd"].as_f64().unwrap() - costs).abs() < 1e-9, "{sized}");
    assert_eq!(sized["today_storage_usd"].as_f64(), Some(110.0));
    for files in [[&a, &b], [&b, &a]] {
        let other = json(&with(&rest, &files), 0);
        for (one, other) in volumes.iter().zip(other["volumes"].as_array().unwrap()) {
            assert_eq!((&one["volume"], &one["answer"]), (&other["volume"], &other["answer"]));
        }
    }
    let text = told(&with(&rest, &[&both]), 0);
    for words in ["\nvol-0big\n", "\nvol-0small\n", "2 volumes (vol-0big, vol-0small): the answers cost $"] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    // One of them alone is answered as the only volume of a file.
    let named = json(&[with(&rest, &[&both]), vec!["--device", "vol-0big"]].concat(), 0);
    assert_eq!(named["answer"], json(&with(&rest, &[&a]), 0)["answer"]);
    refused(
        &[with(&rest, &[&both]), vec!["--html", "/nonexistent/page.html"]].concat(),
        &["--html: a page shows one volume", "--device"],
    );
    // The worst exit code counts: 6,000 IOPS are more than today's volume of one of them gives.
    let text = told(&[word(&both), "--volume", "gp3:size=500GiB", "--raid0", "1"], 1);
    assert!(text.contains("INCONSISTENT") && text.contains("\nvol-0small\n"), "{text}");
    let idle = written(
        &dir,
        "idle.json",
        &answer(&[results("vol-0big ", 2_000.0), results("vol-0idle ", 0.0)].concat()),
    );
    let notes = json(&with(&rest, &[&idle]), 0)["load"]["notes"].to_string();
    assert!(notes.contains("no operation of them: vol-0idle"), "{notes}");
}

#[test]
fn a_folder_of_volumes_is_sized_one_by_one_and_listed_by_money() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("fleet");
    std::fs::create_dir(&folder).unwrap();
    let loads: Vec<(String, f64)> =
        (0..12_u32).map(|number| (format!("db{number:02}"), 10.0 + 400.0 * f64::from(number))).collect();
    for (name, per_second) in &loads {
        std::fs::write(folder.join(format!("{name}.json")), answer(&results("", *per_second))).unwrap();
    }
    let rest = ["--volume", "gp3:size=500GiB,iops=16000,throughput=1000", "--raid0", "1"];
    let sized = json(&with(&rest, &[&folder]), 0);
    let volumes = sized["volumes"].as_array().unwrap();
    let names: Vec<&str> = volumes.iter().map(|one| one["volume"].as_str().unwrap()).collect();
    assert_eq!(names, loads.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
    // Each is answered as if it were alone.
    let last = folder.join("db11.json");
    assert_eq!(volumes[11]["answer"], json(&with(&rest, &[&last]), 0)["answer"]);
    let named = json(&[with(&rest, &[&folder]), vec!["--device", "db11"]].concat(), 0);
    assert_eq!(named["answer"], volumes[11]["answer"]);
    refused(&[with(&rest, &[&folder]), vec!["--device", "db12"]].concat(), &["db12", "db11"]);
    for columns in [60, 80, 120] {
        let output = command(&with(&rest, &[&folder])).env("COLUMNS", columns.to_string()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with("12 volumes (db00, db01, db02 and 9 more): "), "{text}");
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= columns, "{longest} columns of {columns}\n{text}");
        assert!(columns < 80 || text.lines().count() <= 24, "{text}");
        assert!(!text.contains("charts"), "a page shows one volume: {text}");
        // What saves most comes first, and those that are not shown are counted.
        assert!(text.lines().any(|line| line == "and 6 more"), "{text}");
        let saved = text.lines().filter(|line| line.starts_with("db")).filter_map(|line| {
            let amount = line.split_whitespace().filter(|word| word.starts_with('$')).nth(1)?;
            amount.trim_start_matches('$').replace(',', "").parse().ok()
        });
        let saved: Vec<f64> = saved.collect();
        assert!(saved.len() > 2 && saved.windows(2).all(|pair| pair[0] >= pair[1]), "{saved:?}\n{text}");
    }
    let shown = told_of(&[with(&rest, &[&folder]), vec!["--show", "db03"]].concat());
    assert!(shown.starts_with("db03\n") && !shown.contains("db04"), "{shown}");
}

/// What it prints on a wide terminal.
fn told_of(arguments: &[&str]) -> String {
    let output = command(arguments).env("COLUMNS", "2000").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn command(arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.env("EBBTIDE_HOME", "/nonexistent/home").arg("size").args(arguments);
    command
}

#[test]
fn volumes_that_the_labels_do_not_tell_apart_are_refused_whatever_the_order() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = [("a.json", 1_000.0), ("b.json", 10.0)]
        .map(|(name, per_second)| written(&dir, name, &answer(&results("", per_second))));
    for files in [[&a, &b], [&b, &a]] {
        refused(
            &[word(files[0]), word(files[1]), "--size", "500GiB"],
            &[
                "two values of VolumeReadOps at 2026-11-02T09:00:00Z",
                "a.json",
                "b.json",
                "volume's id into each label",
            ],
        );
    }
    let both = written(&dir, "both.json", &answer(&[results("", 1_000.0), results("", 10.0)].concat()));
    refused(&[word(&both), "--size", "500GiB"], &["two values of VolumeReadOps", "60000 of ", "600 of "]);
}

/// What CloudWatch shows of a volume of the model in some minutes, of which each operation has a random size of 4 KiB to 1 MiB.
fn modelled(spec: &str, kib: std::ops::RangeInclusive<u64>) -> String {
    let mut array = Catalog::builtin().resolve(&spec.parse().unwrap()).unwrap().array(Nanos::ZERO);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(23);
    let mut minutes: Vec<MinuteMetrics> = Vec::new();
    let mut earlier = Stats::default();
    for minute in 0..5_u64 {
        for number in 0..60 * 40_u64 {
            let now = Nanos::from_secs(minute * 60) + Nanos(number * Nanos::SECOND.0 / 40);
            let size = kib.start() + rng.next_u64() % (kib.end() - kib.start() + 1);
            let op = if rng.next_u64().is_multiple_of(3) { Op::Write } else { Op::Read };
            let io =
                Io { op, offset: (rng.next_u64() % 10_000) << 22, len: u32::try_from(size << 10).unwrap() };
            array.submit(io, now, &mut rng, None);
        }
        let later = array.stats(Nanos::from_secs(minute * 60 + 60));
        minutes.push(later.since(&earlier).metrics());
        earlier = later;
    }
    let metric = |name: &str, value: fn(&MinuteMetrics) -> f64| {
        let times: Vec<String> =
            (0..minutes.len()).map(|minute| format!("2026-11-02T09:{minute:02}:00Z")).collect();
        let values: Vec<f64> = minutes.iter().map(value).collect();
        object!({"Id": "m", "Label": format!("vol-0a {name}"), "Timestamps": times, "Values": values})
    };
    answer(&[
        metric("VolumeReadOps", |minute| minute.volume_read_ops as f64),
        metric("VolumeWriteOps", |minute| minute.volume_write_ops as f64),
        metric("VolumeReadBytes", |minute| minute.volume_read_bytes as f64),
        metric("VolumeWriteBytes", |minute| minute.volume_write_bytes as f64),
        metric("VolumeTotalReadTime", |minute| minute.volume_total_read_time),
        metric("VolumeTotalWriteTime", |minute| minute.volume_total_write_time),
        metric("VolumeQueueLength", |minute| minute.volume_queue_length),
    ])
}

#[test]
fn metrics_of_our_own_volumes_are_consistent_whatever_the_size_of_an_operation() {
    println!("seed 23");
    let dir = tempfile::tempdir().unwrap();
    for (spec, kib) in [
        ("gp3:size=500GiB,throughput=250", 4..=1_024),
        ("gp3:size=500GiB", 411..=411),
        ("io2:size=500GiB,iops=3000", 1_024..=1_024),
        ("st1:size=500GiB", 512..=1_024),
    ] {
        let file = written(&dir, "own.json", &modelled(spec, kib.clone()));
        let sized = json(&[word(&file), "--volume", spec, "--raid0", "1"], 0);
        assert_eq!(sized["inputs"]["inconsistent"], object!([]), "{spec}, {kib:?}: {}", sized["inputs"]);
        assert_eq!(sized["inputs"]["little"]["agrees_pct"].as_f64(), Some(100.0), "{spec}, {kib:?}");
    }
}
