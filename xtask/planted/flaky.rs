//! A test program that `cargo xtask flaky` must see through. Its own tests compile it with `rustc --test`; it is part
//! of no crate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs, process, thread, time::Duration};

static ANOTHER_RAN: AtomicBool = AtomicBool::new(false);

/// How often this was asked before under the name, kept in a file next to the program.
fn times(name: &str) -> u32 {
    let path = env::current_exe().unwrap().with_file_name(name);
    let before = fs::read_to_string(&path).map_or(0, |text| text.parse().unwrap());
    fs::write(&path, (before + 1).to_string()).unwrap();
    before
}

#[test]
fn a_steady_one_passes() {
    ANOTHER_RAN.store(true, Ordering::Relaxed);
}

#[test]
fn every_third_run_fails() {
    assert!(times("third") % 3 != 2, "the third run");
}

#[test]
fn it_fails_alone() {
    assert!(ANOTHER_RAN.load(Ordering::Relaxed), "nothing ran before it");
}

#[test]
fn it_is_skipped() {
    println!("SKIPPED: the machine has no such thing");
}

#[test]
#[ignore = "an ignored test is not repeated"]
fn it_is_ignored() {
    panic!("it ran");
}

#[test]
fn the_second_run_hangs() {
    if times("hangs") == 1 {
        thread::sleep(Duration::from_secs(600));
    }
}

#[test]
fn the_third_run_aborts() {
    if times("aborts") == 2 {
        process::abort();
    }
}

#[test]
fn this_one_is_last() {}
