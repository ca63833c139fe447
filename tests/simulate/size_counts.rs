//! `ebbtide size`: what its figures count. Reads and writes by their own sizes, samples that are shorter than a request, and peaks of
//! a second.

use std::fmt::Write as _;

use serde_json::Value;

use crate::size::{SHOP, a_day, cloudwatch, field, json, told, word, written};

/// A minute of `iostat -x -t` for each of so many minutes: (operations a second, KiB of one) of reads and of writes.
fn iostat(reads: (f64, f64), writes: (f64, f64), minutes: usize) -> String {
    let mut text = String::from("Linux 6.1.0 (db1) \t11/01/26 \t_x86_64_\t(8 CPU)\n");
    for n in 0..=minutes {
        let _ = writeln!(
            text,
            "\n11/01/26 00:{n:02}:00\nDevice r/s rkB/s r_await w/s wkB/s w_await aqu-sz %util\n\
             nvme1n1 {:.2} {:.2} 0.80 {:.2} {:.2} 0.80 {:.2} 50.00",
            reads.0,
            reads.0 * reads.1,
            writes.0,
            writes.0 * writes.1,
            (reads.0 + writes.0) * 0.8e-3
        );
    }
    text
}

#[test]
fn reads_and_writes_are_counted_each_by_their_own_size() {
    let dir = tempfile::tempdir().unwrap();
    let small_beside_large = written(&dir, "iostat.txt", &iostat((3_600.0, 4.0), (400.0, 1_024.0), 30));
    let arguments = [word(&small_beside_large), "--size", "500GiB", "--raid0", "1"];
    let answer = json(&arguments, 0);
    assert_eq!(field(&answer, "/answer/volumes"), "gp3:size=500GiB,iops=6300,throughput=500");
    assert_eq!(answer["answer"]["usd"].as_f64(), Some(71.5));
    let load = &answer["load"];
    assert_eq!(
        (load["iops"]["mean"].as_f64(), load["requests"]["mean"].as_f64()),
        (Some(5_200.0), Some(4_000.0))
    );
    assert_eq!(
        (load["read_bytes"].as_f64(), load["write_bytes"].as_f64()),
        (Some(4_096.0), Some(1_048_576.0))
    );
    for choice in answer["choices"].as_array().unwrap() {
        let volumes = field(choice, "/volumes");
        let iops: u64 = volumes.split("iops=").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
        assert!(iops >= 6_300, "{volumes}");
    }
    let text = told(&arguments, 0);
    for words in [
        "mean 5,200,",
        "90% reads of 4 KiB, writes of 1 MiB; IOPS are as an SSD volume of EBS counts them, one for up to 256 KiB, from 4,000 requests",
        "a mix of sizes inside one of them is not seen, and may come to 8.8% more IOPS at most",
    ] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    // A disk counts a MiB as one.
    let with =
        |more: &[&str], code: i32| json(&[&[word(&small_beside_large), "--raid0", "1"], more].concat(), code);
    let disk = with(&["--volume", "st1:size=4000GiB"], 0);
    assert_eq!(disk["load"]["iops"]["mean"].as_f64(), Some(4_000.0), "{}", disk["load"]);
    // Growth and more transactions are more requests of the same sizes: 5,200 x 1.5 x 1.5.
    let more =
        ["--size", "500GiB", "--headroom", "0%", "--growth", "50%", "--tps", "300", "--tps-measured", "200"];
    assert!(field(&with(&more, 0), "/answer/volumes").contains(",iops=11700,"));
    let large_reads = written(&dir, "reads.txt", &iostat((100.0, 512.0), (0.0, 0.0), 30));
    let answer = json(&[word(&large_reads), "--size", "100GiB"], 0);
    assert_eq!(
        (answer["load"]["iops"]["max"].as_f64(), &answer["load"]["write_bytes"]),
        (Some(200.0), &Value::Null)
    );
}

#[test]
fn operations_that_ebs_or_a_trace_counted_are_not_counted_again() {
    let dir = tempfile::tempdir().unwrap();
    // Full operations, of a minute whose bytes were cut a moment later than its operations.
    let metrics = cloudwatch(&a_day()[..60]).replace("196608000.000", "3303014400.000");
    let file = written(&dir, "metrics.json", &metrics);
    let load =
        json(&[word(&file), "--volume", "gp3:size=500GiB,throughput=1000,iops=4000"], 0)["load"].clone();
    assert_eq!(load["requests"]["mean"].as_f64(), Some(300.0));
    assert!((300.0..311.0).contains(&load["iops"]["mean"].as_f64().unwrap()), "{load}");
    assert_eq!(load["most_mixed_pct"], Value::Null);
    let mut trace = String::new();
    for n in 0..1_000_u64 {
        let bytes = if n % 10 == 0 { 1_048_576 } else { 4_096 };
        let _ = writeln!(
            trace,
            "{},h,0,Write,{},{bytes},8000",
            128_166_372_000_000_000 + n * 100_000,
            n * 4_194_304
        );
    }
    let file = written(&dir, "db.msr", &trace);
    let load = json(&[word(&file), "--size", "5000GiB"], 0)["load"].clone();
    // Of ten, nine are one and the tenth is four.
    assert_eq!(
        (load["iops"]["max"].as_f64(), &load["most_mixed_pct"]),
        (Some(130.0), &Value::Null),
        "{load}"
    );
}

#[test]
fn sar_has_one_mean_size_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut sar = String::from("Linux 6.1.0 (db1) \t2026-11-01 \t_x86_64_\t(8 CPU)\n\n");
    sar += "00:00:01 DEV tps rkB/s wkB/s areq-sz aqu-sz await %util\n";
    for n in 1..30 {
        let _ = writeln!(sar, "00:{n:02}:01 nvme1n1 4000.00 14400.00 409600.00 106.00 3.20 0.80 50.00");
    }
    let file = written(&dir, "sar.txt", &sar);
    let text = told(&[word(&file), "--size", "500GiB"], 0);
    assert!(
        text.contains("sizes are one mean of reads and writes: small ones beside large ones are not seen"),
        "{text}"
    );
    // 4,000 of 106 KiB: a mix may come to 41% more.
    assert!(text.contains("may come to 41% more IOPS at most"), "{text}");
}

/// `/proc/diskstats` once a second: every two seconds 20 reads start and take 1.2 s. The kernel counts the queue as it passes, and
/// the reads when they end.
fn straddling_diskstats(seconds: u64) -> String {
    let mut text = String::new();
    let (mut reads, mut read_ms, mut queued_ms) = (5_000, 7_000, 9_000);
    for n in 0..seconds {
        let _ = writeln!(text, "TS {}.000000000 2026-01-25 10:00:00", 1_769_335_200 + n);
        let in_flight = if n % 2 == 1 { 20 } else { 0 };
        let _ = writeln!(
            text,
            " 202      80 xvdf {reads} 0 {} {read_ms} 0 0 0 0 {in_flight} {} {queued_ms}",
            reads * 32,
            9_000 + n * 600
        );
        if n % 2 == 1 {
            reads += 20;
            read_ms += 24_000;
        }
        queued_ms += if n % 2 == 0 { 20_000 } else { 4_000 };
    }
    text
}

#[test]
fn requests_longer_than_a_sample_leave_a_sound_record_consistent() {
    let dir = tempfile::tempdir().unwrap();
    for seconds in [41, 1_001] {
        let file = written(&dir, "diskstats.txt", &straddling_diskstats(seconds));
        let little = json(&[word(&file), "--size", "100GiB"], 0)["inputs"]["little"].clone();
        assert_eq!(little["agrees_pct"].as_f64(), Some(100.0), "{little}");
        assert_eq!(little["queue"], little["expected"], "{little}");
    }
}

#[test]
fn aurora_charges_reads_and_writes_by_their_own_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut csv = String::from(
        "Label,VolumeReadOps,VolumeWriteOps,VolumeReadBytes,VolumeWriteBytes,VolumeTotalReadTime,VolumeTotalWriteTime,VolumeQueueLength\n",
    );
    for n in 0..12 {
        let _ = writeln!(
            csv,
            "2026/11/01 00:{:02}:00,300000,60000,4915200000,7864320000,240.000,48.000,0.960",
            n * 5
        );
    }
    let file = written(&dir, "metrics.csv", &csv);
    let bills = |arguments: &[&str]| {
        let answer = json(arguments, 0);
        let platforms = answer["platforms"].as_array().unwrap().clone();
        let io = |name: &str| {
            let platform = platforms.iter().find(|one| one["name"] == name).unwrap();
            let usd = |place: usize| platform["io_usd"][place].as_f64().unwrap();
            [usd(0), usd(1)]
        };
        [io("Aurora Standard"), io("Aurora Serverless v2")]
    };
    let base = [word(&file), "--size", "600GiB", "--instance", "r5.2xlarge", "--raid0", "1"];
    // 1,000 pages a second, and 200 x 32 units of log at most.
    assert_eq!(bills(&base), [[525.6, 3_889.44]; 2]);
    assert_eq!(
        bills(&[SHOP, "--volume", "gp2:size=600GiB", "--instance", "r5.2xlarge"]),
        [[301.69, 1_283.74]; 2]
    );
    let text = told(&base, 0);
    assert!(text.contains("$525.60 to $3,889.44"), "{text}");
}

#[test]
fn a_peak_of_a_second_is_not_carried_by_what_an_idle_gp3_gives_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = String::from("Linux 6.1 (h) \t11/22/2026 \t_x86_64_\t(2 CPU)\n");
    for n in 0..60 {
        let reads = if n == 30 { 37_631.0 } else { 500.0 };
        let _ = writeln!(
            text,
            "\n11/22/2026 11:00:{n:02} AM\nDevice r/s rkB/s r_await w/s wkB/s w_await aqu-sz %util\n\
             nvme1n1 {reads:.2} {:.2} 0.60 0.00 0.00 0.00 {:.2} 50.00",
            reads * 4.0,
            reads * 0.6e-3
        );
    }
    let file = written(&dir, "iostat.txt", &text);
    let answer = json(&[word(&file), "--size", "500GiB", "--raid0", "1"], 0);
    // 37,631 with a fifth of headroom are 45,158.
    assert_eq!(field(&answer, "/answer/volumes"), "gp3:size=500GiB,iops=45200,throughput=180");
    let counted = &answer["counting_allowance"];
    assert!(counted["usd"].as_f64() < answer["answer"]["storage"]["usd"].as_f64(), "{counted}");
    let text = told(&[word(&file), "--size", "500GiB", "--raid0", "1"], 0);
    assert!(text.contains("an idle gp3 gives twice its rate for about a second"), "{text}");
}
