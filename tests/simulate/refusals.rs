//! Bad input: exit code 2, the value, the allowed range, and what to do.

use std::process::Command;

use serde_json::Value;

use crate::support::simulate;

const JOB: &str = "rw=randread,runtime=10";

#[test]
fn a_wrong_request_exits_with_2_and_reports_what_to_do() {
    let gp3 = "gp3:size=100GiB";
    let cases: &[(&[&str], &[&str])] = &[
        (&["--volume", "gp9:size=1GiB", "--job", JOB], &["gp9", "hint:"]),
        (&["--volume", "gp3:size=100TiB", "--job", JOB], &["65536", "hint:"]),
        (
            &["--volume", gp3, "--job", "rw=randread,iodpeth=4"],
            &["'iodpeth'", "did you mean 'iodepth'", "hint:"],
        ),
        (&["--volume", gp3, "--job", "rw=randread,iodepth=0"], &["iodepth=0", "from 1 to 65536"]),
        (&["--volume", gp3, "--job", "missing.fio"], &["missing.fio", "no such file"]),
        (&["--volume", gp3, "--job", "rw=randread,size=200g"], &["100GiB", "give offset and size within it"]),
        (
            &["--volume", gp3, "--job", JOB, "--interval", "1parsec"],
            &["--interval: '1parsec' is no duration", "90s or 10m"],
        ),
        (&["--volume", gp3, "--job", JOB, "--interval", "5"], &["--interval: '5' has no unit", "like 5s"]),
        (&["--volume", gp3, "--job", JOB, "--interval", "0s"], &["--interval 0s", "at least"]),
        (
            &["--volume", gp3, "--job", "rw=read,runtime=30d", "--interval", "1s"],
            &["at least 2.59 s", "hint:"],
        ),
        (&["--volume", gp3, "--job", JOB, "--instance", "r5.lage"], &["r5.lage", "r5.large"]),
        (
            &["--volume", gp3, "--job", JOB, "--region", "eu-west-9"],
            &["--region: there are no prices for region 'eu-west-9'", "us-west-2", "hint: Name one of these"],
        ),
        (&["--volume", gp3, "--job", JOB, "--together"], &["--instance"]),
        (
            &["--volume", gp3, "--job", JOB, "--initialization", "rate=99MiB/s"],
            &["--initialization: ", "99 MiB/s", "100 to 300 MiB/s", "hint: Give rate=100MiB/s"],
        ),
        (&["--volume", gp3, "--job", JOB, "--initialization", "slow"], &["'slow'", "lazy, none, or a rate"]),
        (&["--volume", "ideal:size=1GiB", "--job", JOB], &["virtual time does not advance", "rate_iops"]),
        (&["--job", JOB], &["--volume"]),
        (
            &["--volume", gp3, "--job", JOB, "--think-times"],
            &["--think-times", "cannot be used with", "--job"],
        ),
        (&["--volume", gp3, "--job", JOB, "--trace-unit", "ms"], &["--trace-unit", "cannot be used with"]),
        (&["--volume", gp3, "--job", ""], &["--job is empty", "hint: give fio's words"]),
        (&["--volume", gp3, "--job", JOB, "--job", " "], &["--job is empty"]),
    ];
    for (arguments, parts) in cases {
        let output = simulate(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        for part in *parts {
            assert!(error.contains(part), "{arguments:?}: no '{part}' in {error}");
        }
    }
}

#[test]
fn a_run_that_would_not_end_is_refused_before_it_begins() {
    let gp3 = "gp3:size=100GiB";
    let cases: &[(&[&str], &str)] = &[
        (&["rate=1"], "213503 days"),
        (&["rw=randwrite,rate=1,1,numjobs=4"], "213503 days"),
        (&["thinktime=30d"], "days of virtual time"),
        (&["loops=1000000"], "9481 days"),
        (&["rate_iops=1,loops=1000000"], "days of virtual time"),
        (&["rate=1k", "--interval", "1s"], "--interval 1s is too short"),
    ];
    for (job, part) in cases {
        let begin = std::time::Instant::now();
        let output = simulate(&[&["--volume", gp3, "--job"], *job].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{job:?}: {error}");
        assert!(error.contains(part) && error.contains("hint:"), "{job:?}: no '{part}' in {error}");
        // Nothing of the run may have been printed either: it was never begun, and would take days.
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{job:?}");
        assert!(begin.elapsed().as_secs() < 60, "{job:?}: refused after {:?}", begin.elapsed());
    }
}

#[test]
fn a_slow_job_gets_intervals_that_fit_its_length() {
    // Two million seconds, one I/O in 100 s: a second each would be too many intervals.
    let result = crate::support::json(&[
        "--volume",
        "gp3:size=10GiB",
        "--job",
        "rate_iops=1,bs=64k,thinktime=100s,size=10g,number_ios=20001",
    ]);
    assert!(result["interval_s"].as_f64().unwrap() > 20.0, "{}", result["interval_s"]);
}

#[test]
fn a_page_that_cannot_be_written_is_the_environments_fault() {
    let output = simulate(&["--volume", "gp3:size=1GiB", "--job", JOB, "--html", "/no/such/folder/a.html"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("/no/such/folder/a.html"), "{error}");
    assert!(error.contains("\nhint: give --html a file in a directory that is there"), "{error}");
    // The error is the one object on standard output.
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/profiles/sysbench-tpcc-gp2.toml");
    let metrics = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/metrics/shop-gp2.csv");
    for words in [
        vec!["simulate", "--volume", "gp3:size=1GiB", "--job", JOB],
        vec!["predict", profile, "--volume", "gp3:size=600GiB", "--for", "30s"],
        vec!["size", metrics, "--volume", "gp2:size=600GiB"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_ebbtide"))
            .env("EBBTIDE_HOME", "/nonexistent/home")
            .args(&words)
            .args(["--html", "/no/such/folder/a.html", "--json"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3), "{words:?}");
        let printed: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert_eq!(printed["error"]["exit"], "environment", "{words:?}: {printed}");
    }
}
