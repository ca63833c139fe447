//! fio itself judges how its words are read: `fio --cmdhelp`, `--enghelp` and `--parse-only --debug=parse`.
//!
//! Without fio each test prints `SKIPPED:` and passes.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use ebbtide_twin::Workload;
use ebbtide_twin::fio::{self, FioError, Nothing};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, TestRunner};

/// What fio prints, and whether it accepts; None without fio.
fn fio(arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let child = Command::new("fio")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("SKIPPED: fio is not installed");
        return None;
    };
    // fio may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), text))
}

fn job_file(text: &str) -> Result<Workload, FioError> {
    fio::parse_file(text, "", &Nothing)
}

/// The names of a list of options: those before the colon.
fn names(text: &str) -> Vec<String> {
    let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
    let is_name = |name: &String| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    text.lines().filter_map(name).filter(is_name).collect()
}

#[test]
fn each_word_of_the_installed_fio_and_of_its_engines_is_known() {
    let Some((_, all)) = fio(&["--cmdhelp=all"], "") else { return };
    let mut words = names(&all);
    for name in words.clone() {
        let (_, help) = fio(&[&format!("--cmdhelp={name}")], "").unwrap();
        let alias = help.lines().find_map(|line| line.trim().strip_prefix("alias: "));
        words.extend(alias.map(str::to_owned));
    }
    let (_, engines) = fio(&["--enghelp"], "").unwrap();
    for engine in engines.lines().filter(|line| line.starts_with('\t')) {
        words.extend(names(&fio(&[&format!("--enghelp={}", engine.trim())], "").unwrap().1));
    }
    assert!(words.len() > 230, "{} words", words.len());
    let is_unknown = |word: &&String| {
        let unknown = |error: &FioError| matches!(error, FioError::InFile { source, .. } if matches!(**source, FioError::Unknown { .. }));
        job_file(&format!("[a]\n{word}=1\n")).is_err_and(|error| unknown(&error))
    };
    let unknown: Vec<&String> = words.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "fio has {unknown:?}");
}

/// What fio reads of each value of a word, in bytes, counts or microseconds.
fn readings(word: &str, values: &[String]) -> Option<Vec<u64>> {
    let sections = values.iter().enumerate().map(|(number, value)| format!("[j{number}]\n{word}={value}\n"));
    let (_, text) = fio(&["--parse-only", "--debug=parse", "-"], &sections.collect::<String>())?;
    let out = |line: &str| line.split_once("ret=0, out=")?.1.trim().parse().ok();
    Some(text.lines().filter_map(out).collect())
}

#[test]
fn sizes_counts_and_times_are_those_that_fio_reads() {
    let number =
        prop_oneof![Just("1".to_owned()), "[1-9][0-9]{0,2}", "0x[1-9a-f][0-9a-f]{0,2}", "[1-9]\\.[0-9]"];
    let unit = select(vec![
        "", "k", "K", "kb", "KB", "ki", "Ki", "kib", "KiB", "m", "M", "mb", "Mi", "MiB", "g", "gb", "Gi",
        "GiB", "t", "TiB", "b", "B", "us", "ms", "s", "h", "d", "min", "sec", "usec", "msec", "hours", "x",
        "q",
    ]);
    let value = (number, unit).prop_map(|(number, unit)| format!("{number}{unit}"));
    let values = proptest::collection::vec(value, 40);
    let mut runner = TestRunner::new(Config { cases: 5, failure_persistence: None, ..Config::default() });
    let words = ["size", "io_size", "offset", "runtime", "startdelay", "thinktime", "number_ios"];
    let result = runner.run(&(select(words.to_vec()), values), |(word, values)| {
        let Some(readings) = readings(word, &values) else { return Ok(()) };
        prop_assert_eq!(readings.len(), values.len(), "{}: {:?}", word, values);
        for (value, read) in values.iter().zip(readings) {
            compare(word, value, read)?;
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// Compares what fio reads of a value with what is read here, or with what the refusal says of it.
fn compare(word: &str, value: &str, read: u64) -> Result<(), TestCaseError> {
    let is_time = matches!(word, "runtime" | "startdelay" | "thinktime");
    match job_file(&format!("[a]\n{word}={value}\n")) {
        Ok(workload) => {
            let job = &workload.jobs[0];
            let here = match word {
                "size" => job.size.unwrap().bytes_of(u64::MAX),
                "io_size" => job.amount.unwrap(),
                "offset" => job.offset.bytes_of(u64::MAX),
                "number_ios" => job.max_ios.unwrap(),
                "runtime" => job.runtime.unwrap().0 / 1_000,
                "startdelay" => job.start_delay.0 / 1_000,
                _ => job.think_time.0 / 1_000,
            };
            prop_assert_eq!(here, read, "{}={}", word, value);
        }
        Err(error) => {
            let message = error.to_string();
            prop_assert!(message.contains(&format!("{word}={value}")), "{}", message);
            let reading = if is_time {
                format!("fio reads this as {}", ebbtide_volume::Nanos(read.saturating_mul(1_000)))
            } else {
                format!("fio reads this as {read}")
            };
            // What is refused is either not what a person would read, or beyond what is modelled.
            let longest_us = 3_650 * 86_400 * 1_000_000;
            prop_assert!(message.contains(&reading) || is_time && read > longest_us, "{read}: {}", message);
        }
    }
    Ok(())
}

/// Lines of job files that fio accepts, one for each kind of value.
const LINES: &[&str] = &[
    "rw=randread",
    "rw=randrw:8",
    "rw=write:4k",
    "readwrite=readwrite",
    "rw=randtrim",
    "rwmixread=70",
    "rwmixwrite=30",
    "bs=16kb",
    "bs=4k,16k",
    "bs=4k-8k",
    "bs=,8k",
    "blocksize=0x1000",
    "bssplit=4k/10:64k/50:32k/40",
    "bssplit=4k/50:8k/,16k",
    "bsrange=4k-16k",
    "blocksize_range=1k-4k,2k-8k",
    "bs_unaligned",
    "ba=4k",
    "iodepth=64",
    "iodepth_batch=4",
    "iodepth_batch_complete_min=1",
    "numjobs=4",
    "stonewall",
    "stonewall=1",
    "wait_for_previous",
    "group_reporting",
    "group_reporting=1",
    "new_group",
    "size=25%",
    "size=45Gi",
    "size=1.5g",
    "io_size=4g",
    "io_limit=10%",
    "filesize=1g",
    "offset=10%",
    "offset_increment=1g",
    "fileoffset=4k",
    "runtime=1m",
    "timeout=60",
    "time_based",
    "time_based=1",
    "ramp_time=5s",
    "startdelay=5",
    "rate=,1m",
    "rate=10m,5m",
    "rate_iops=500",
    "rate_iops=500,300",
    "rate_min=1m",
    "ratemin=1m",
    "rate_process=poisson",
    "thinktime=250us",
    "thinktime_blocks=4",
    "thinktime_iotime=1s",
    "fsync=1",
    "fdatasync=8",
    "random_distribution=zipf:1.2",
    "random_distribution=pareto:0.2",
    "random_distribution=normal:50",
    "random_distribution=zoned:60/10:30/20:8/30:2/40",
    "random_distribution=zoned_abs:60/1g:40/2g",
    "random_generator=lfsr",
    "norandommap",
    "norandommap=1",
    "randrepeat=0",
    "percentage_random=50",
    "percentage_random=100",
    "kb_base=1000",
    "unit_base=8",
    "verify=0",
    "verify=crc32c",
    "do_verify=0",
    "verify_pattern=0xdeadbeef",
    "direct=1",
    "buffered=0",
    "ioengine=libaio",
    "ioengine=psync",
    "ioengine=null",
    "filename=/dev/x:/dev/y",
    "directory=/tmp",
    "nrfiles=4",
    "invalidate=1",
    "fallocate=none",
    "unlink=1",
    "log_avg_msec=1000",
    "write_bw_log",
    "write_lat_log=x",
    "percentile_list=50:99:99.9",
    "log_prio=1",
    "dedupe_mode=repeat",
    "dedupe_percentage=50",
    "buffer_compress_percentage=30",
    "refill_buffers",
    "latency_target=10ms",
    "latency_window=5s",
    "flow=8",
    "steadystate=iops:1%",
    "zonemode=none",
    "zonesize=1m",
    "loops=2",
    "number_ios=1000",
    "exitall",
    "thread",
    "prio=4",
    "nice=-5",
    "cpus_allowed=0",
    "sync=1",
    "max_latency=1s",
    "exec_prerun=true",
    "lockmem=1g",
    "mem=malloc",
    "clocksource=clock_gettime",
    "gtod_reduce=1",
    "continue_on_error=all",
    "description=it is a job",
    "unified_rw_reporting=1",
    "serialize_overlap=1",
];

/// Whether a refusal is one that a user can act on: it names a word of these lines, and does not call it unknown.
fn names_a_word(message: &str, lines: &[&str]) -> bool {
    let word = |line: &str| line.split('=').next().unwrap().to_owned();
    // `rate` and `stonewall` may be named by what they are about.
    !message.contains("unknown fio word") && lines.iter().any(|line| message.contains(&word(line)))
}

#[test]
fn job_files_that_fio_accepts_are_accepted_or_refused_by_the_word() {
    let section = || subsequence(LINES.to_vec(), 0..7).prop_shuffle();
    let style = select(vec!["", "  ", "\t"]);
    let tail = select(vec!["", " ; a remark", "  # a remark", "\r"]);
    let runs = (section(), proptest::collection::vec(section(), 1..4), style, tail);
    let mut runner = TestRunner::new(Config { cases: 25, failure_persistence: None, ..Config::default() });
    let mut accepted = (0_u32, 0_u32);
    let result = runner.run(&runs, |(global, jobs, before, behind)| {
        let lines =
            |lines: &[&str]| lines.iter().map(|line| format!("{before}{line}{behind}\n")).collect::<String>();
        let jobs_text =
            jobs.iter().enumerate().map(|(number, job)| format!("[j{number}]{behind}\n{}", lines(job)));
        let text =
            format!("; made by a test\n[global]\n{}\n{}", lines(&global), jobs_text.collect::<String>());
        let Some((true, _)) = fio(&["--parse-only", "-"], &text) else { return Ok(()) };
        judge(&job_file(&text), &[&global[..], &jobs.concat()].concat(), &text)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    // The lines one by one, so that each is tried alone.
    for line in LINES {
        let text = format!("[a]\n{line}\n");
        let Some((judged, _)) = fio(&["--parse-only", "-"], &text) else { return };
        accepted.0 += u32::from(judged);
        accepted.1 += u32::from(judged && job_file(&text).is_ok());
        if judged {
            judge(&job_file(&text), &[line], &text).unwrap();
        }
    }
    assert!(
        accepted.0 > 100 && accepted.1 > 70,
        "fio accepts {} lines, and {} are accepted here",
        accepted.0,
        accepted.1
    );
}

#[test]
fn values_that_fio_refuses_are_refused() {
    let words = [
        "rw",
        "bs",
        "bssplit",
        "iodepth",
        "numjobs",
        "runtime",
        "size",
        "io_size",
        "offset",
        "offset_increment",
        "loops",
        "number_ios",
        "rate",
        "rate_iops",
        "rate_process",
        "thinktime",
        "thinktime_blocks",
        "fsync",
        "rwmixread",
        "startdelay",
        "random_distribution",
        "time_based",
        "kb_base",
        "direct",
        "buffered",
        "ioengine",
    ];
    let values = ["", "x", "-1", "0", "2", "101", "1024", "foo:1", "zipf", "normal", "4k/60:8k/60"];
    let mut refused = 0;
    for (word, value) in words.iter().flat_map(|word| values.map(|value| (word, value))) {
        let text = format!("[a]\nrw=randread\nsize=1g\n{word}={value}\n");
        let Some((accepted, said)) = fio(&["--parse-only", "-"], &text) else { return };
        if !accepted {
            refused += 1;
            assert!(job_file(&text).is_err(), "{word}={value}: {said}");
        }
    }
    assert!(refused > 100, "fio refuses {refused} of them");
}

fn judge(read: &Result<Workload, FioError>, lines: &[&str], text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = read {
        prop_assert!(names_a_word(&error.to_string(), lines), "{}\n{}", error, text);
    }
    Ok(())
}

#[test]
fn command_lines_that_fio_accepts_are_accepted_or_refused_by_the_word() {
    let option = |line: &str, style: usize| -> Vec<String> {
        match (line.split_once('='), style) {
            (Some((word, value)), 0) => vec![format!("--{word}"), value.to_owned()],
            (Some(_), 1) => vec![format!("-{line}")],
            _ => vec![format!("--{line}")],
        }
    };
    let lines = subsequence(LINES.to_vec(), 0..6).prop_shuffle();
    let jobs = proptest::collection::vec((lines, 0_usize..3), 1..4);
    let mut runner = TestRunner::new(Config { cases: 25, failure_persistence: None, ..Config::default() });
    let result = runner.run(&jobs, |jobs| {
        let mut arguments = vec!["--parse-only".to_owned()];
        for (number, (lines, style)) in jobs.iter().enumerate() {
            arguments.push(format!("--name=j{number}"));
            for line in lines {
                // A flag takes no value in a word of its own.
                let style = if line.contains("time_based")
                    || line.contains("norandommap")
                    || line.contains("stonewall")
                    || line.contains("group_reporting")
                {
                    2
                } else {
                    *style
                };
                arguments.extend(option(line, style));
            }
        }
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let Some((true, _)) = fio(&words, "") else { return Ok(()) };
        let quoted: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
        let text = format!("sudo fio {} | tee fio.log", quoted.join(" \\\n  "));
        let read = fio::parse_words(&text, &Nothing);
        if let Ok(workload) = &read {
            prop_assert_eq!(workload.jobs.len(), jobs.len(), "{}", text);
        }
        let lines: Vec<&str> = jobs.iter().flat_map(|(lines, _)| lines.iter().copied()).collect();
        judge(&read, &lines, &text)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
