//! What survives `kill -9` of the host and a power cut of the volume, by a ledger of every write.

use std::{path::PathBuf, thread, time::Duration};

use ebbtide_testing::repeats;

use crate::{
    host::{Host, skipped},
    ledger::{Load, Violation, violations},
};

/// Kills under load; SPECIFICATION.md promises this many.
const KILLS: u64 = 50;
/// Power cuts under load with each atomic unit. All of them, with `two_hundred_power_cuts_keep_every_answered_write_and_tear_no_unit`
/// on the block store alone, are the promise; the usual ones see that kernel and host do not break it.
fn cuts() -> u32 {
    repeats(30, 100)
}

const WRITERS: u64 = 8;

/// One round: load, kill, restart; what the volume then breaks of its promise, and the answered writes.
fn kill_under_load(host: &mut Host, round: u64, faults: &[&str]) -> (Vec<Violation>, u64) {
    let name = format!("kill{round}");
    let spec = if round.is_multiple_of(2) { "ideal:size=1GiB" } else { "gp3:size=1GiB" };
    let device = host.attached(&name, spec, &[]);
    if !faults.is_empty() {
        host.json(&[&["volume", "fault", &name], faults].concat());
    }
    let load = Load::start(&device, WRITERS, round);
    thread::sleep(Duration::from_millis(100 + round * 7 % 100));
    host.kill();
    let (mark, ledger) = load.stop();
    host.restart();
    let device = host.attach(&name, &[]);
    // A store write of more than 4 KiB can be cut by the kill, so the unit here is 4 KiB.
    let found = violations(&device, &mark, &ledger, 4096);
    host.json(&["volume", "detach", &name]);
    host.json(&["volume", "delete", &name]);
    (found, mark.total())
}

#[test]
fn fifty_kills_of_the_host_lose_no_answered_write() {
    if skipped() {
        return;
    }
    let mut host = Host::start();
    let mut writes = 0;
    for round in 0..KILLS {
        let (found, answered) = kill_under_load(&mut host, round, &[]);
        assert!(found.is_empty(), "round {round}: {found:#?}");
        writes += answered;
    }
    assert!(writes > 50 * KILLS, "the load hardly wrote: {writes} writes");
    println!("{KILLS} kills, {writes} answered writes, none lost");
    host.stop();
    let check = host.run(&["volume", "check"]);
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

#[test]
fn a_host_that_answers_before_it_is_durable_is_caught_by_a_kill() {
    if skipped() {
        return;
    }
    let mut host = Host::start();
    let caught = (0..5).any(|round| !kill_under_load(&mut host, round, &["answer-early=on"]).0.is_empty());
    assert!(caught, "five kills of a host that answers early lost nothing");
}

/// Takes one crash image under load and returns what it breaks of the promise.
fn image_under_load(host: &Host, volume: &str, load: &Load, seed: u64, atomic_bytes: u64) -> Vec<Violation> {
    let answered = load.mark();
    host.json(&["volume", "crash-image", volume, "image", "--seed", &seed.to_string()]);
    let submitted = load.ledger();
    let device = host.attach("image", &[]);
    let found = violations(&device, &answered, &submitted, atomic_bytes);
    host.json(&["volume", "detach", "image"]);
    host.json(&["volume", "delete", "image"]);
    found
}

fn volume_under_load(host: &Host, spec: &str) -> (PathBuf, Load) {
    let device = host.attached("data", spec, &[]);
    let load = Load::start(&device, WRITERS, 1);
    while load.answered() < 100 {
        thread::sleep(Duration::from_millis(5));
    }
    (device, load)
}

fn every_image_keeps_the_promise(spec: &str, atomic_bytes: u64) {
    if skipped() {
        return;
    }
    let host = Host::start();
    let (_, load) = volume_under_load(&host, spec);
    let cuts = cuts();
    for seed in 0..u64::from(cuts) {
        let found = image_under_load(&host, "data", &load, seed, atomic_bytes);
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
    }
    println!("{cuts} power cuts, {} answered writes, no promise broken", load.answered());
    load.stop();
}

#[test]
fn power_cuts_leave_every_4_kib_unit_old_or_new() {
    every_image_keeps_the_promise("gp3:size=1GiB,twp=off", 4096);
}

#[test]
fn power_cuts_with_torn_write_prevention_leave_every_16_kib_unit_old_or_new() {
    every_image_keeps_the_promise("gp3:size=1GiB,twp=on", 16384);
}

#[test]
fn without_torn_write_prevention_16_kib_pages_do_tear() {
    if skipped() {
        return;
    }
    let host = Host::start();
    let (_, load) = volume_under_load(&host, "gp3:size=1GiB,twp=off");
    let torn = (0..40).any(|seed| !image_under_load(&host, "data", &load, seed, 16384).is_empty());
    assert!(torn, "forty power cuts tore no 16 KiB page: the check or the cut does nothing");
    load.stop();
}

#[test]
fn a_volume_that_answers_before_it_is_durable_is_caught_by_a_power_cut() {
    if skipped() {
        return;
    }
    let host = Host::start();
    let (_, load) = volume_under_load(&host, "gp3:size=1GiB");
    host.json(&["volume", "fault", "data", "answer-early=on"]);
    let caught = (0..10).any(|seed| !image_under_load(&host, "data", &load, seed, 16384).is_empty());
    assert!(caught, "ten power cuts of a volume that answers early lost nothing");
    load.stop();
}

#[test]
fn a_power_cut_of_the_volume_itself_keeps_every_answered_write() {
    if skipped() {
        return;
    }
    let host = Host::start();
    for seed in 0..10 {
        let name = format!("cut{seed}");
        let device = host.attached(&name, "gp3:size=1GiB", &[]);
        let load = Load::start(&device, WRITERS, seed);
        thread::sleep(Duration::from_millis(100));
        host.json(&["volume", "fault", &name, &format!("power-cut={seed}")]);
        let (mark, ledger) = load.stop();
        assert!(mark.total() > 0);
        host.json(&["volume", "detach", &name]);
        let device = host.attach(&name, &[]);
        let found = violations(&device, &mark, &ledger, 16384);
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
        host.json(&["volume", "detach", &name]);
    }
}
