//! Faults on command, seen through the block device.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::harness::{Home, Need, can};

/// A page at an address that direct I/O accepts.
#[repr(align(4096))]
struct Page([u8; 4096]);

/// `O_DIRECT`, so that every read and write reaches the volume.
fn direct(device: &str) -> File {
    const O_DIRECT: i32 = 0o40000;
    OpenOptions::new().read(true).write(true).custom_flags(O_DIRECT).open(device).unwrap()
}

fn read(device: &File, offset: u64) -> std::io::Result<Duration> {
    let mut page = Page([0; 4096]);
    let started = Instant::now();
    device.read_exact_at(&mut page.0, offset)?;
    Ok(started.elapsed())
}

fn write(device: &File, offset: u64, byte: u8) -> std::io::Result<Duration> {
    let started = Instant::now();
    device.write_all_at(&Page([byte; 4096]).0, offset)?;
    Ok(started.elapsed())
}

#[test]
fn added_latency_errors_and_error_ranges_reach_the_guest() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let attached = home.run_line("volume attach db").ok();
    let device = direct(attached.line());
    assert_eq!(home.run_line("volume fault db").ok().line(), "volume db: no faults");
    let answer = home.run_line("volume fault db latency=write:200ms").ok();
    assert_eq!(answer.line(), "volume db: latency=write:200ms");
    home.run_line("volume fault db error-range=1GiB+4KiB").refused(2, &["error-range=1GiB+4KiB", "has 1GiB"]);
    assert!(write(&device, 0, 1).unwrap() >= Duration::from_millis(200));
    // On a busy machine a read may wait for something else, but not each of them.
    assert!((0..50).any(|_| read(&device, 0).unwrap() < Duration::from_millis(150)));
    home.run_line("volume fault db latency=150ms").ok();
    assert!(read(&device, 0).unwrap() >= Duration::from_millis(150));
    // The latency of before is not added to this one.
    let spent: Vec<_> = (0..20).map(|_| write(&device, 0, 1).unwrap()).collect();
    assert!(spent.iter().all(|&spent| spent >= Duration::from_millis(150)), "{spent:?}");
    assert!(spent.iter().any(|&spent| spent < Duration::from_millis(350)), "{spent:?}");
    let shown = home.run_line("volume fault db latency=0ms errors=1000000ppm --json").ok().json();
    assert_eq!(shown["faults"]["latency"], serde_json::json!([]));
    read(&device, 0).unwrap_err();
    write(&device, 0, 1).unwrap_err();
    home.run_line("volume fault db errors=0ppm error-range=1MiB+4KiB").ok();
    read(&device, 0).unwrap();
    read(&device, 1 << 20).unwrap_err();
    read(&device, (1 << 20) + 4096).unwrap();
    let shown = home.run_line("volume show db").ok().stdout;
    let faults = shown.lines().find(|line| line.starts_with("faults ")).unwrap();
    assert!(faults.ends_with(" error-range=1MiB+4KiB"), "{shown}");
    home.run_line("volume fault db clear").ok();
    read(&device, 1 << 20).unwrap();
}

#[test]
fn stalled_io_waits_until_the_stall_ends_and_detaching_reports_it() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let attached = home.run_line("volume attach db").ok();
    let device = direct(attached.line());
    home.run_line("volume fault db stall=on").ok();
    let (done, finished) = mpsc::channel();
    let reader = std::thread::spawn(move || done.send(read(&device, 0).is_ok()).unwrap());
    finished.recv_timeout(Duration::from_millis(700)).unwrap_err();
    home.run_line("volume detach db").refused(3, &["is stalled", "stall=off"]);
    home.run_line("volume fault db stall=off").ok();
    assert!(finished.recv_timeout(Duration::from_secs(60)).unwrap());
    reader.join().unwrap();
    home.run_line("volume detach db").ok();
}

#[test]
fn a_stalled_volume_is_detached_by_force_and_a_forced_stop_ends_the_stall() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    for forced in [true, false] {
        let attached = home.run_line("volume attach db").ok();
        let device = direct(attached.line());
        home.run_line("volume fault db stall=on").ok();
        let reader = std::thread::spawn(move || read(&device, 0).is_ok());
        std::thread::sleep(Duration::from_millis(100));
        if forced {
            home.run_line("volume detach db --force").ok();
            assert!(!reader.join().unwrap(), "what was stalled has failed");
        } else {
            let stopped = home.run_line("serve --stop --force").ok();
            assert!(stopped.stderr.contains("the stall was ended"), "{}", stopped.stderr);
            reader.join().unwrap();
        }
    }
}

#[test]
fn a_power_cut_stops_the_volume_and_keeps_what_it_answered() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let attached = home.run_line("volume attach db").ok();
    let device = direct(attached.line());
    write(&device, 8192, 0xab).unwrap();
    let cut = home.run_line("volume fault db power-cut=7 --json").ok().json();
    assert_eq!((&cut["power_lost"], &cut["power_cut"]["seed"]), (&true.into(), &7.into()));
    read(&device, 8192).unwrap_err();
    drop(device);
    let shown = home.show("db");
    assert_eq!(
        (&shown["live"]["power_lost"], &shown["attachment"]["power_lost"]),
        (&true.into(), &true.into())
    );
    assert_eq!(home.run_line("volume fault db").ok().line(), "volume db: no faults; power is lost");
    let table = home.run_line("volume list").ok().stdout;
    assert!(table.contains("power lost") && !table.contains("in-use"), "{table}");
    let detached = home.run_line("volume detach db --json").ok();
    assert_eq!(detached.json()["power_cut"], true);
    assert!(detached.stderr.contains("power of volume 'db' was cut"), "{}", detached.stderr);
    let attached = home.run_line("volume attach db").ok();
    let mut page = Page([0; 4096]);
    direct(attached.line()).read_exact_at(&mut page.0, 8192).unwrap();
    assert_eq!(page.0, [0xab; 4096]);
}

#[test]
fn what_a_power_cut_kept_from_being_written_back_is_reported_by_the_detachment() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let dir = home.sibling("mnt");
    home.run(&["volume", "attach", "db", "--mount", dir.to_str().unwrap(), "--fs", "ext4"]).ok();
    std::fs::write(dir.join("cached"), [1; 8192]).unwrap();
    home.run_line("volume fault db power-cut=7").ok();
    let detached = home
        .run_line("volume detach db --json")
        .refused(1, &["not everything could be written back", "power was cut"]);
    assert!(!detached.json()["lost"].as_array().unwrap().is_empty(), "{}", detached.stdout);
    assert_eq!(home.show("db")["state"], "available");
}
