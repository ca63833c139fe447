//! Live volumes as the kernel sees them: FUSE, a loop device, a real clock and fio.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

#[path = "../../benches/live/sleeper.rs"]
mod bare;
mod loading;
mod sleeper;
#[allow(dead_code, reason = "the benches use the rest")]
mod support;

use std::{
    fs::File,
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ebbtide_device::{
    engine::{LiveOptions, LiveVolume},
    faults::{AddedLatency, Affected, Errors, Faults},
    fuse::{self, FuseExport},
    loopdev::{self, LoopDevice, LoopError, LoopOptions},
    request::{Command as Verb, Reply, Request},
    store::{StoreOptions, VolumeStore},
};
use ebbtide_volume::{Array, Nanos};
use serde_json::Value;
use support::{Attached, NAME, capped, fio, ideal, missing, slow, start};

const MIB: u64 = 1 << 20;

/// Returns from the test where the machine lacks something.
macro_rules! needs {
    ($($program:literal),*) => {
        if let Some(missing) = missing(&[$($program),*]) {
            println!("SKIPPED: {missing} is missing");
            return;
        }
    };
}

/// Opened past the page cache, as a database does.
fn direct(path: &Path) -> File {
    File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).unwrap()
}

/// A buffer that direct I/O accepts.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

#[test]
fn a_volume_is_a_block_device_that_keeps_what_fio_writes() {
    needs!("fio", "blockdev");
    let attached = Attached::new(ideal(64 * MIB));
    let device = attached.path();
    let output = Command::new("blockdev").arg("--getsize64").arg(&device).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), (64 * MIB).to_string());
    let verify = ["--rw=randwrite", "--bsrange=512-256k", "--iodepth=32", "--verify=crc32c", "--size=64M"];
    fio(&device, &[&verify[..], &["--verify_fatal=1", "--randseed=5"]].concat());
    let (dir, store) = attached.detach();
    let attached = Attached::over(dir, store, NAME, ideal(64 * MIB));
    fio(&attached.path(), &[&verify[..], &["--verify_fatal=1", "--randseed=5", "--verify_only=1"]].concat());
    let stats = attached.volume.stats();
    assert!(stats.read.bytes > 32 * MIB && stats.write.bytes == 0, "{stats:?}");
}

#[test]
fn the_device_presents_itself_as_asked() {
    needs!();
    let dir = tempfile::tempdir().unwrap();
    let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
    store.create_volume(NAME, 16 * MIB, Value::Null).unwrap();
    let volume = start(&store, NAME, ideal(16 * MIB));
    let export = FuseExport::mount(
        Arc::clone(&volume),
        dir.path().join("store").parent().unwrap().join("m").as_path(),
    );
    assert!(export.is_err(), "the directory must exist");
    let mount = dir.path().join("m");
    std::fs::create_dir(&mount).unwrap();
    let mut export = FuseExport::mount(volume, &mount).unwrap();
    let options = LoopOptions { block_bytes: 4096, rotational: true, max_sectors_kb: 128 };
    let mut device = LoopDevice::attach(&export.file(), &options).unwrap();
    let number = device.path().to_str().unwrap().strip_prefix("/dev/loop").unwrap().to_owned();
    let attribute = |name: &str| {
        std::fs::read_to_string(format!("/sys/block/loop{number}/{name}")).unwrap().trim().to_owned()
    };
    assert_eq!(attribute("queue/logical_block_size"), "4096");
    assert_eq!(attribute("queue/rotational"), "1");
    assert_eq!(attribute("queue/max_sectors_kb"), "128");
    assert!(attribute("queue/scheduler").contains("[none]"));
    assert_eq!(attribute("loop/dio"), "1");
    assert!(loopdev::list().iter().any(|used| used.device == device.path() && used.backing == export.file()));
    assert!(fuse::mounts().unwrap().iter().any(|m| m.dir == mount && m.volume == NAME));
    let path = device.path().to_owned();
    device.detach().unwrap();
    assert!(loopdev::list().iter().all(|used| used.device != path), "really gone");
    export.unmount().unwrap();
    assert!(fuse::mounts().unwrap().iter().all(|m| m.dir != mount));
}

#[test]
fn a_device_in_use_is_not_torn_away() {
    needs!();
    let mut attached = Attached::new(ideal(16 * MIB));
    let open = File::open(attached.path()).unwrap();
    let mut device = attached.take_device();
    let path = device.path().to_owned();
    let error = device.detach().unwrap_err();
    assert!(matches!(&error, LoopError::Busy(busy) if *busy == path), "{error}");
    drop(open);
    let end = Instant::now() + Duration::from_secs(5);
    while loopdev::list().iter().any(|used| used.device == path) {
        assert!(Instant::now() < end, "it goes with its last user");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_a_killed_process_leaves_is_found_and_cleared() {
    needs!();
    // A process of its own, so that it can be killed: this test again, as the victim.
    const VICTIM: &str = "EBBTIDE_TEST_VICTIM";
    if std::env::var_os(VICTIM).is_some() {
        let attached = Attached::new(ideal(16 * MIB));
        println!("attached {}", attached.path().display());
        thread::sleep(Duration::from_secs(60));
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_a_killed_process_leaves_is_found_and_cleared", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = io::BufRead::lines(io::BufReader::new(victim.stdout.take().unwrap()));
    let line = lines.find_map(|line| Some(line.unwrap().split_once("attached ")?.1.to_owned())).unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    let left = loopdev::list().into_iter().find(|used| used.device == Path::new(&line)).unwrap();
    let mount = left.backing.parent().unwrap().to_owned();
    assert!(fuse::mounts().unwrap().iter().any(|m| m.dir == mount));
    loopdev::detach_leftover(&left).unwrap();
    fuse::unmount_leftover(&mount).unwrap();
    assert!(loopdev::list().iter().all(|used| used.backing != left.backing));
    assert!(fuse::mounts().unwrap().iter().all(|m| m.dir != mount));
    std::fs::remove_dir_all(mount.parent().unwrap()).unwrap();
}

#[test]
fn a_mount_that_stayed_goes_at_the_next_attempt() {
    needs!();
    let dir = tempfile::tempdir().unwrap();
    let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
    store.create_volume(NAME, 16 * MIB, Value::Null).unwrap();
    let volume = start(&store, NAME, ideal(16 * MIB));
    let mount = dir.path().join("m");
    std::fs::create_dir(&mount).unwrap();
    let is_mounted = || fuse::mounts().unwrap().iter().any(|m| m.dir == mount);
    let mut ended = FuseExport::mount(Arc::clone(&volume), &mount).unwrap();
    ended.unmount().unwrap();
    assert!(!is_mounted());
    // Its session has ended, and there is a mount again.
    let _stayed = FuseExport::mount(volume, &mount).unwrap();
    ended.unmount().unwrap();
    assert!(!is_mounted());
    ended.unmount().unwrap();
}

#[test]
fn a_memory_limit_that_would_hang_the_guest_is_refused() {
    needs!();
    const VICTIM: &str = "EBBTIDE_TEST_LIMITED";
    let group = Path::new("/sys/fs/cgroup/memory/ebbtide-test");
    if std::env::var_os(VICTIM).is_some() {
        std::fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
        store.create_volume(NAME, 16 * MIB, Value::Null).unwrap();
        println!("{}", FuseExport::mount(start(&store, NAME, ideal(16 * MIB)), dir.path()).unwrap_err());
        return;
    }
    if rustix::process::is_io_flusher().is_ok() || !group.with_file_name("memory.limit_in_bytes").exists() {
        println!("SKIPPED: a process without CAP_SYS_RESOURCE in a version 1 memory group is missing");
        return;
    }
    std::fs::create_dir(group).unwrap();
    std::fs::write(group.join("memory.limit_in_bytes"), "536870912").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_memory_limit_that_would_hang_the_guest_is_refused", "--nocapture"])
        .env(VICTIM, "1")
        .output()
        .unwrap();
    std::fs::remove_dir(group).unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("limited to 536870912 bytes in /sys/fs/cgroup/memory/ebbtide-test"),
        "{output:?}"
    );
}

#[test]
fn a_discarded_range_reads_as_zeroes_and_gives_its_space_back() {
    needs!("fio", "blkdiscard");
    let attached = Attached::new(ideal(64 * MIB));
    let device = attached.path();
    support::fill(&device);
    let used = || attached.store.volume(NAME).unwrap().allocated_bytes;
    let full = used();
    let discard = |words: &[&str]| {
        assert!(Command::new("blkdiscard").args(words).arg(&device).status().unwrap().success());
    };
    discard(&["--force", "--offset", "1048576", "--length", "33554432"]);
    assert!(used() + 30 * MIB < full, "{} of {full} bytes still used", used());
    discard(&["--zeroout", "--force", "--offset", "0", "--length", "4096"]);
    let file = File::open(&device).unwrap();
    let mut bytes = vec![1; 4096];
    for (offset, zero) in [(0, true), (8192, false), (MIB, true), (33 * MIB - 4096, true), (33 * MIB, false)]
    {
        file.read_exact_at(&mut bytes, offset).unwrap();
        assert_eq!(bytes.iter().all(|&b| b == 0), zero, "at {offset}");
    }
}

#[test]
fn a_grown_volume_grows_under_the_device() {
    needs!();
    let attached = Attached::new(ideal(16 * MIB));
    attached.store.resize_volume(NAME, 32 * MIB).unwrap();
    let now = attached.volume.now();
    attached.volume.modify(&ideal(32 * MIB), now, now).unwrap();
    attached.device().refresh_size().unwrap();
    let size = io::Seek::seek(&mut File::open(attached.path()).unwrap(), io::SeekFrom::End(0)).unwrap();
    assert_eq!(size, 32 * MIB);
    let page = Page([7; 4096]);
    direct(&attached.path()).write_all_at(&page.0, 24 * MIB).unwrap();
}

#[test]
fn a_cap_holds_through_the_block_device_for_data_and_holes() {
    needs!("fio");
    let attached = Attached::new(capped(64 * MIB, 2_000));
    // The first reads meet only holes, the last only data, and they cost the same.
    for direction in ["--rw=randread", "--rw=randwrite", "--rw=randread"] {
        let measured =
            fio(&attached.path(), &[direction, "--bs=16k", "--iodepth=16", "--time_based", "--runtime=3"]);
        // A machine that is busy with other things starves fio now and then, so the mean may be lower.
        assert!(measured.iops < 2_010.0, "{direction}: {measured:?}");
        assert!((measured.p50_us / 8_000.0 - 1.0).abs() < 0.1, "16 / 2,000 s: {measured:?}");
    }
}

#[test]
fn added_latency_errors_and_stalls_reach_the_guest() {
    needs!();
    let attached = Attached::new(ideal(16 * MIB));
    let set = |faults| attached.volume.set_faults(faults).unwrap();
    let file = direct(&attached.path());
    let mut page = Page([0; 4096]);

    set(Faults {
        latency: vec![AddedLatency { affected: Affected::Reads, us: 30_000 }],
        ..Faults::default()
    });
    let began = Instant::now();
    file.read_exact_at(&mut page.0, 0).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(30), "{:?}", began.elapsed());

    let errors = vec![Errors { affected: Affected::Writes, per_million: 1_000_000, range: Some(0..4096) }];
    set(Faults { errors, ..Faults::default() });
    assert_eq!(file.write_all_at(&page.0, 0).unwrap_err().raw_os_error(), Some(libc::EIO));
    file.write_all_at(&page.0, 4096).unwrap();

    set(Faults { stalled: true, ..Faults::default() });
    let answered = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            file.write_all_at(&Page([1; 4096]).0, 8192).unwrap();
            answered.store(true, Ordering::Relaxed);
        });
        thread::sleep(Duration::from_millis(100));
        assert!(!answered.load(Ordering::Relaxed), "a stalled volume answers nothing");
        set(Faults::default());
    });
    assert!(answered.load(Ordering::Relaxed));
}

#[test]
fn a_power_cut_under_load_fails_the_device_and_keeps_every_answered_write() {
    needs!();
    for seed in 0..5 {
        power_cut_under_load(seed);
    }
}

/// Writers with numbers for data, each in its own place; a cut; which writes of each were acknowledged
/// must be there, and nothing that it never wrote.
fn power_cut_under_load(seed: u64) {
    const WRITERS: u64 = 4;
    let attached = Attached::new(slow(16 * MIB, Nanos::from_us(300)));
    let acknowledged: Vec<_> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let tried: Vec<_> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let path = attached.path();
    let report = thread::scope(|scope| {
        for (writer, (acknowledged, tried)) in (0..).zip(acknowledged.iter().zip(&tried)) {
            let file = direct(&path);
            scope.spawn(move || {
                for number in 1_u64.. {
                    let mut page = Page([0; 4096]);
                    page.0.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&number.to_le_bytes()));
                    tried.store(number, Ordering::SeqCst);
                    if file.write_all_at(&page.0, writer * 4096).is_err() {
                        return;
                    }
                    acknowledged.store(number, Ordering::SeqCst);
                }
            });
        }
        // A busy machine gives a writer its turn late.
        let end = Instant::now() + Duration::from_secs(30);
        while acknowledged.iter().any(|one| one.load(Ordering::SeqCst) <= 10) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        attached.volume.power_cut(seed).unwrap()
    });
    assert_eq!(report.cached_units_lost, 0);
    let mut page = Page([0; 4096]);
    assert!(direct(&path).read_exact_at(&mut page.0, 0).is_err(), "no power, no answers");
    for (writer, (acknowledged, tried)) in (0..).zip(acknowledged.iter().zip(&tried)) {
        attached.volume.store().read_at(&mut page.0, writer * 4096).unwrap();
        let found = u64::from_le_bytes(page.0[..8].try_into().unwrap());
        assert!(page.0.chunks(8).all(|chunk| chunk == found.to_le_bytes()), "torn, seed {seed}");
        let range = acknowledged.load(Ordering::SeqCst)..=tried.load(Ordering::SeqCst);
        assert!(range.contains(&found), "found {found}, acknowledged and tried {range:?}, seed {seed}");
        assert!(*range.start() > 10, "the writers wrote");
    }
}

#[test]
fn snapshots_and_crash_images_under_load_are_points_in_time() {
    needs!();
    let attached = Attached::new(ideal(16 * MIB));
    let file = direct(&attached.path());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // One writer, two places, one after the other: the second never runs ahead of the first.
        scope.spawn(|| {
            for number in 1_u64.. {
                for offset in [0, MIB] {
                    let mut page = Page([0; 4096]);
                    page.0[..8].copy_from_slice(&number.to_le_bytes());
                    file.write_all_at(&page.0, offset).unwrap();
                }
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        // However the rounds end: the writer would go on for ever.
        let _end = SetAtEnd(&done);
        for round in 0..20 {
            thread::sleep(Duration::from_millis(5));
            let copy = format!("copy-{round}");
            if round % 2 == 0 {
                let snapshot = format!("snap-{round}");
                attached.volume.snapshot(&attached.store, &snapshot, Value::Null).unwrap();
                attached.store.create_from_snapshot(&copy, &snapshot, 16 * MIB, Value::Null).unwrap();
            } else {
                attached.volume.crash_image(&attached.store, &copy, round, Value::Null).unwrap();
            }
            let copy = attached.store.open_volume(&copy).unwrap();
            let [first, second] = [0, MIB].map(|offset| {
                let mut bytes = [0; 8];
                copy.read_at(&mut bytes, offset).unwrap();
                u64::from_le_bytes(bytes)
            });
            assert!(first == second || first == second + 1, "round {round}: {first}, then {second}");
        }
    });
}

/// Sets the flag when it is dropped, in a panic too.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_full_queue_of_the_largest_requests_is_answered_whole() {
    needs!("fio");
    let attached = Attached::new(slow(256 * MIB, Nanos::from_ms(2)));
    let words =
        ["--rw=write", "--bs=1M", "--iodepth=64", "--verify=crc32c", "--verify_fatal=1", "--size=256M"];
    fio(&attached.path(), &words);
    let pacing = attached.volume.pacing();
    assert!(pacing.count >= 2 * 256, "{pacing:?}");
}

#[test]
fn closing_and_stopping_with_requests_in_flight_answers_them() {
    needs!();
    let dir = tempfile::tempdir().unwrap();
    let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
    store.create_volume(NAME, 16 * MIB, Value::Null).unwrap();
    let volume: Arc<LiveVolume> = start(&store, NAME, slow(16 * MIB, Nanos::from_secs(3600)));
    let (sender, receiver) = std::sync::mpsc::channel();
    for _ in 0..100 {
        let sender = sender.clone();
        let reply = Reply::callback(move |outcome| sender.send(outcome.is_err()).unwrap());
        volume.submit(Request { command: Verb::Read, offset: 0, len: 4096, fua: false, data: None, reply });
    }
    assert!(!volume.drain(Duration::from_millis(10)), "an hour is longer");
    drop(volume);
    drop(sender);
    assert_eq!(receiver.iter().filter(|failed| *failed).count(), 100);
}

#[test]
fn an_absolute_sleep_does_not_end_early() {
    let dir = tempfile::tempdir().unwrap();
    let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
    store.create_volume(NAME, 16 * MIB, Value::Null).unwrap();
    let limits = slow(16 * MIB, Nanos::from_us(700));
    let array = Array::single(limits, Nanos::ZERO).unwrap();
    let volume =
        LiveVolume::start(LiveOptions::new(NAME, array, store.open_volume(NAME).unwrap(), 1)).unwrap();
    for _ in 0..200 {
        let (sender, receiver) = std::sync::mpsc::channel();
        let reply = Reply::callback(move |outcome| {
            outcome.unwrap();
            sender.send(Instant::now()).unwrap();
        });
        let began = Instant::now();
        volume.submit(Request { command: Verb::Read, offset: 0, len: 512, fua: false, data: None, reply });
        assert!(receiver.recv().unwrap() - began >= Duration::from_micros(700));
    }
    volume.stop().unwrap();
    assert_eq!(volume.pacing().count, 200);
}

#[test]
fn physics_that_are_switched_on_under_load_hold_from_then_on() {
    needs!("fio");
    let attached = Attached::new(ideal(64 * MIB));
    let words = ["--rw=randwrite", "--bs=16k", "--iodepth=16", "--time_based", "--runtime=1"];
    let free = fio(&attached.path(), &words);
    assert!(free.iops > 2_010.0, "{free:?}");
    let before = attached.volume.stats();
    let array = Array::single(capped(64 * MIB, 2_000), attached.volume.now()).unwrap();
    attached.volume.replace_model(array, None).unwrap();
    let held = fio(&attached.path(), &words);
    assert!(held.iops < 2_050.0, "{held:?}");
    let after = attached.volume.stats();
    assert!(after.write.ops > before.write.ops, "{after:?}");
}
