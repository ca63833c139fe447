//! The bare sleepers of the bench `pacing`, with which it compares the pacer: they see a processor that stalls,
//! and excuse nothing else.

use std::time::{Duration, Instant};

use rustix::thread::sched_getaffinity;

use crate::bare::{LATE_PERCENT, Late, Pattern, Sleepers, added_percent, bind, later_than, median_limit_ns};

const LIMIT: Duration = Duration::from_micros(500);

/// Keeps a core from everyone for some milliseconds, again and again, as a hypervisor does.
fn stall(core: usize, times: u32, length: Duration) {
    let stalled = std::thread::spawn(move || {
        for _ in 0..times {
            std::thread::sleep(Duration::from_millis(50));
            if !bind(core, 60) {
                return false;
            }
            let began = Instant::now();
            while began.elapsed() < length {}
        }
        true
    });
    assert!(stalled.join().unwrap(), "real-time scheduling was refused");
}

#[test]
fn the_bare_sleeper_of_a_core_that_stalls_is_late_as_the_pacer_would_be() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: root, for real-time scheduling, is missing");
        return;
    }
    let may = sched_getaffinity(None).unwrap();
    let core = (0..1_024).find(|&core| may.is_set(core)).unwrap();
    for (pattern, depth, least) in [
        // All that is due within a stall is late, and then the loop waits: 9.5 ms of it at a gap of 333 us, or
        // the depth once.
        (Pattern::Gap(Duration::from_micros(333)), 32, 4 * 25),
        (Pattern::Service(Duration::from_micros(500)), 8, 4 * 8),
        (Pattern::Service(Duration::from_micros(500)), 1, 4),
    ] {
        let sleepers = Sleepers::start(pattern, depth);
        // Half of them count: other real-time threads of the machine may shorten a stall.
        stall(core, 8, Duration::from_millis(10));
        let late = later_than(&sleepers.finish()[0], LIMIT);
        assert!(late.late >= least, "{pattern:?}, depth {depth}: {late:?} of at least {least}");
        // Several times the share that the bench lets the pacer add.
        assert!(late.percent() > 3.0 * LATE_PERCENT, "{pattern:?}, depth {depth}: {late:?}");
    }
}

#[test]
fn lateness_of_the_pacer_alone_is_not_excused_and_that_of_the_machine_is() {
    let share = |late| Late { late, all: 100_000 };
    // On an idle machine all lateness comes from the pacer.
    assert!(added_percent(share(101), &[share(0), share(0)]) > 0.1);
    assert!(added_percent(share(99), &[share(0), share(0)]) < 0.1);
    // A stalled one: only what goes beyond the stalls of all cores.
    assert!(added_percent(share(700), &[share(400), share(300)]) < 0.1);
    assert!(added_percent(share(900), &[share(400), share(300)]) > 0.1);
    // The median: 50 us, until a bare sleeper's own is above the half of it.
    assert_eq!(median_limit_ns(&[5_000, 25_000]), 50_000);
    assert_eq!(median_limit_ns(&[5_000, 28_000]), 56_000);
}
