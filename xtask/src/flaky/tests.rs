//! The canary: a compiled test program with planted faults, repeated as any other.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    Request, count_signals,
    mode::Mode,
    programs::Program,
    repeat::{Limits, Plan, repeat},
    report::{Count, Findings},
};

/// The planted program, compiled into a directory.
fn planted(dir: &TempDir) -> Program {
    let path = dir.path().join("planted");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("planted/flaky.rs");
    let compiled = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--test", "--edition=2024", "-o"])
        .args([&path, &source])
        .status()
        .unwrap();
    assert!(compiled.success());
    Program::list("planted".into(), path, dir.path().into()).unwrap()
}

fn repeated(program: Program, rounds: u32, mode: Mode, signals: usize) -> (Findings, TempDir) {
    let out = tempfile::tempdir().unwrap();
    let limits = Limits { alone: Duration::from_secs(5), together: Duration::from_secs(5) };
    let plan = Plan { rounds, modes: vec![mode], limits, out: out.path().into() };
    let findings = repeat(&[program], &plan, &AtomicUsize::new(signals), |_| ()).unwrap();
    (findings, out)
}

fn count(findings: &Findings, test: &str) -> Count {
    let name = format!("planted {test}");
    let record = findings.records[0].iter().find(|record| record.name == name).unwrap();
    if record.alone == Count::default() { record.together } else { record.alone }
}

fn passed_failed(findings: &Findings, test: &str) -> (u32, u32) {
    let count = count(findings, test);
    (count.passed, count.failed)
}

#[test]
fn planted_flaky_tests_are_found_alone_with_their_counts_and_output() {
    let dir = tempfile::tempdir().unwrap();
    let (findings, _out) = repeated(planted(&dir), 3, Mode::Alone, 0);
    assert_eq!(passed_failed(&findings, "a_steady_one_passes"), (3, 0));
    assert_eq!(passed_failed(&findings, "every_third_run_fails"), (2, 1));
    assert_eq!(passed_failed(&findings, "it_fails_alone"), (0, 3));
    assert_eq!(passed_failed(&findings, "the_second_run_hangs"), (2, 1));
    assert_eq!(passed_failed(&findings, "the_third_run_aborts"), (2, 1));
    assert_eq!(count(&findings, "it_is_skipped"), Count { skipped: 3, ..Count::default() });
    assert!(!findings.records[0].iter().any(|record| record.name.ends_with("it_is_ignored")));
    assert_eq!(findings.exit(), 1);

    let text = findings.to_string();
    assert!(text.contains("planted every_third_run_fails failed 1 of 3 runs\n    alone: 1 of 3\n"), "{text}");
    assert!(text.contains("first: did not end within 5 s: "), "{text}");
    assert!(text.contains("first: ended the program by signal 6: "), "{text}");
    assert!(text.contains("planted it_is_skipped: SKIPPED: the machine has no such thing\n"), "{text}");
    assert!(text.ends_with("3 rounds: 4 of 6 tests do not always pass, 1 did not run\n"), "{text}");
    let record = findings.records[0].iter().find(|record| record.name.ends_with("every_third_run_fails"));
    let (_, log) = record.unwrap().first_failure.clone().unwrap();
    assert!(std::fs::read_to_string(log).unwrap().contains("the third run"));
}

#[test]
fn planted_flaky_tests_are_found_together_and_the_one_that_ends_the_program_is_blamed() {
    let dir = tempfile::tempdir().unwrap();
    let (findings, out) = repeated(planted(&dir), 4, Mode::Together, 0);
    // In the second and in the fourth round the program did not end by itself: those show nothing of the others.
    assert_eq!(passed_failed(&findings, "a_steady_one_passes"), (2, 0));
    assert_eq!(passed_failed(&findings, "every_third_run_fails"), (1, 1));
    assert_eq!(passed_failed(&findings, "it_fails_alone"), (2, 0));
    assert_eq!(passed_failed(&findings, "the_second_run_hangs"), (2, 1));
    assert_eq!(passed_failed(&findings, "the_third_run_aborts"), (2, 1));
    assert_eq!(passed_failed(&findings, "this_one_is_last"), (2, 0));
    assert_eq!(findings.exit(), 1);
    // Of passing runs nothing is kept.
    let kept: Vec<PathBuf> = out.path().read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
}

#[test]
fn steady_tests_alone_are_no_finding_and_a_name_picks_tests() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = planted(&dir);
    program.keep("planted a_steady");
    assert_eq!(program.tests, ["a_steady_one_passes"]);
    let (findings, _out) = repeated(program, 2, Mode::Alone, 0);
    assert_eq!(findings.exit(), 0);
    assert_eq!(findings.to_string(), "2 rounds: 0 of 1 tests do not always pass, 0 did not run\n");
}

#[test]
fn what_never_ran_is_no_success() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = planted(&dir);
    program.keep("skipped");
    assert_eq!(repeated(program.clone(), 1, Mode::Alone, 0).0.exit(), 3);
    let interrupted = repeated(program, 1, Mode::Alone, 1).0;
    assert_eq!(interrupted.exit(), 3);
    assert!(interrupted.to_string().contains("0 of 1 rounds (interrupted)"));
}

#[test]
fn a_request_to_end_is_counted_and_ends_nothing_at_once() {
    let count = count_signals().unwrap();
    for expected in [1, 2] {
        signal_hook::low_level::raise(signal_hook::consts::SIGTERM).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while count.load(Ordering::Relaxed) < expected && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(count.load(Ordering::Relaxed), expected);
    }
}

#[test]
fn a_second_request_kills_the_test_that_runs_and_counts_it_as_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = planted(&dir);
    program.keep("second_run_hangs");
    std::fs::write(dir.path().join("hangs"), "1").unwrap();
    let signals = AtomicUsize::new(0);
    let out = tempfile::tempdir().unwrap();
    let hour = Duration::from_secs(3_600);
    let limits = Limits { alone: hour, together: hour };
    let plan = Plan { rounds: 9, modes: vec![Mode::Alone], limits, out: out.path().into() };
    let findings = thread::scope(|scope| {
        let running = scope.spawn(|| repeat(&[program], &plan, &signals, |_| ()).unwrap());
        thread::sleep(Duration::from_millis(300));
        signals.store(2, Ordering::Relaxed);
        running.join().unwrap()
    });
    assert!(findings.interrupted);
    assert_eq!(passed_failed(&findings, "the_second_run_hangs"), (0, 0));
    assert_eq!(out.path().read_dir().unwrap().count(), 0);
}

#[test]
fn the_command_line_names_rounds_then_a_test() {
    let parse = |words: &[&str]| Request::parse(words);
    let request = parse(&["50", "detached", "--alone", "--out", "/tmp/x"]).unwrap();
    assert_eq!((request.rounds, request.name.as_str()), (50, "detached"));
    assert_eq!((request.modes, request.out), (vec![Mode::Alone], PathBuf::from("/tmp/x")));
    assert_eq!(parse(&["detached"]).unwrap().rounds, 20);
    assert_eq!(parse(&["3", "7"]).unwrap().name, "7");
    assert_eq!(parse(&["-p", "ebbtide-device"]).unwrap().package.as_deref(), Some("ebbtide-device"));
    for (words, error) in [
        (&["0"][..], "0 rounds: 1 to 100000 are possible"),
        (&["5", "a", "b"], "one NAME is possible"),
        (&["--out"], "--out needs a directory"),
        (&["--fast"], "no option is called --fast"),
    ] {
        assert!(parse(words).unwrap_err().contains(error), "{words:?}");
    }
}
