//! What a crash image costs from the cut to its end: taken, attached, mounted (its journal is replayed), unmounted,
//! checked, mounted again, thrown away. Each phase with its time and its processor time: this process, its children, and
//! the whole machine's, which has the kernel's own threads too and means something on an idle machine only.
//!
//! `cargo bench -p ebbtide-device --bench images -- [ROUNDS [VOLUME_GIB]]`. A tiny run (`BENCH_TINY=1`) takes one image
//! of 1 GiB and judges nothing.
#![allow(clippy::unwrap_used)] // a bench fails by a panic

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ebbtide_device::engine::{ImageRequest, Keep, crash_images};
use ebbtide_device::host::{
    AttachRequest, Attachment, Export, FsType, Home, Host, HostMatch, HostOptions, MountRequest,
    clear_leftovers,
};
use ebbtide_volume::{Array, Limits};
use serde_json::Value;

const VOLUME: &str = "vol";
/// Files of the load, and bytes in each.
const FILES: usize = 8;
const FILE_BYTES: u64 = 32 << 20;
/// Writes between two images: what a second of a small server may have written.
const WRITES: u64 = 400;

/// What SPECIFICATION.md promises: processor time of this process and its children for one image, and how
/// long writes wait for it.
const PROMISED_CPU: Duration = Duration::from_millis(100);
const PROMISED_PAUSE: Duration = Duration::from_millis(5);
const PAUSE: &str = "1 of which no write completed";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let (rounds, gib) = if ebbtide_testing::tiny() { (1, 1) } else { (10, 4) };
    let rounds: u32 = words.next().map_or(rounds, |word| word.parse().unwrap());
    let gib: u64 = words.next().map_or(gib, |word| word.parse().unwrap());
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        println!("SKIPPED: root and /dev/fuse, to attach block devices, are missing");
        return ExitCode::SUCCESS;
    }
    let kept = FsType::ALL.map(|fs| Fixture::new(fs, gib << 30).run(rounds));
    if kept.contains(&false) && !ebbtide_testing::tiny() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

struct Fixture {
    host: Host,
    fs: FsType,
    size: u64,
    original: Option<Arc<Attachment>>,
    files: Vec<File>,
    phases: Phases,
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new(fs: FsType, size: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let lock = Home::open(&dir.path().join("home")).unwrap().lock().unwrap();
        clear_leftovers(&lock).unwrap();
        let host = Host::open(lock, HostOptions::default()).unwrap();
        host.store().create_volume(VOLUME, size, Value::Null).unwrap();
        let mut fixture =
            Self { host, fs, size, original: None, files: Vec::new(), phases: Phases::default(), dir };
        let mount = MountRequest {
            dir: fixture.dir.path().join("mnt"),
            fs,
            destroy: false,
            grow: false,
            noexec: false,
        };
        let request = AttachRequest {
            volume: VOLUME.into(),
            meta: Value::Null,
            array: fixture.array(),
            seed: 1,
            block_bytes: 512,
            instance: None,
            export: Export::Block { mount: Some(mount) },
            host_match: HostMatch::default(),
        };
        fixture.original = Some(fixture.host.attach(request, &|_| ()).unwrap());
        fixture.files = (0..FILES)
            .map(|number| {
                let mut file = File::create(fixture.dir.path().join(format!("mnt/{number}"))).unwrap();
                file.write_all(&vec![1; usize::try_from(FILE_BYTES).unwrap()]).unwrap();
                file.sync_all().unwrap();
                file
            })
            .collect();
        fixture
    }

    fn array(&self) -> Array {
        let limits = Limits::unlimited(self.size);
        Array::single(limits, self.host.now()).unwrap()
    }

    /// What happens between two images, with metadata of the file system in its journal.
    fn load(&self, round: u64) {
        let page = vec![u8::try_from(round % 250).unwrap() + 2; 16 << 10];
        for write in 0..WRITES {
            let place = (round * WRITES + write).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let file = &self.files[usize::try_from(write).unwrap() % FILES];
            file.write_all_at(&page, ((place >> 20) % (FILE_BYTES >> 14)) << 14).unwrap();
            if write % 20 == 0 {
                file.sync_data().unwrap();
            }
        }
        for number in 0..8 {
            let mut file = File::create(self.dir.path().join(format!("mnt/new-{number}"))).unwrap();
            file.write_all(&page).unwrap();
            file.sync_all().unwrap();
        }
    }

    fn run(mut self, rounds: u32) -> bool {
        for round in 0..u64::from(rounds) {
            self.load(round);
            self.cycle(round);
        }
        println!("\n{}: {rounds} images of {} GiB, means in ms", self.fs, self.size >> 30);
        let kept = self.phases.judge(rounds);
        self.files.clear();
        self.original = None;
        let detached = self.host.stop(&|text| println!("{text}"));
        let in_order = detached.len() == 1 && detached[0].forced.is_none();
        if !in_order {
            println!("not detached in order: {detached:?}");
        }
        kept && in_order
    }

    fn cycle(&mut self, round: u64) {
        let array = self.array();
        let (fs, host, phases) = (self.fs, &self.host, &mut self.phases);
        let (image, dir) = (format!("image-{round}"), self.dir.path().join("image"));
        let live = self.original.as_ref().unwrap().live();
        let group = phases.time("1 crash image", || {
            let request = ImageRequest { volume: live, image: &image, seed: round, meta: Value::Null };
            crash_images(host.store(), &[request], Keep::Nothing).unwrap()
        });
        phases.add(PAUSE, Duration::from_nanos(group.paused.0));
        let attached = phases.time("2 attach", || host.attach_bare(&image, array).unwrap());
        phases.time("3 mount", || attached.mount(fs, &dir).unwrap());
        phases.time("4 unmount", || attached.unmount().unwrap());
        let check = phases.time("5 check", || attached.check_fs(fs).unwrap());
        assert!(check.clean, "{}", check.output);
        phases.time("6 mount again", || attached.mount(fs, &dir).unwrap());
        drop(attached);
        phases.time("7 discard", || host.discard(&image).unwrap());
    }
}

/// Time, and processor time of this process, its children, and all.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    wall: Duration,
    own: Duration,
    children: Duration,
    machine: Duration,
}

#[derive(Default)]
struct Phases(BTreeMap<&'static str, Cost>);

impl Phases {
    fn time<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let (own, children) = (used(libc::RUSAGE_SELF), used(libc::RUSAGE_CHILDREN));
        let (all, began) = (machine(), Instant::now());
        let done = work();
        let total = self.0.entry(name).or_default();
        total.wall += began.elapsed();
        total.own += used(libc::RUSAGE_SELF) - own;
        total.children += used(libc::RUSAGE_CHILDREN) - children;
        total.machine += machine().saturating_sub(all);
        done
    }

    fn add(&mut self, name: &'static str, wall: Duration) {
        self.0.entry(name).or_default().wall += wall;
    }

    /// Prints the means, and whether they keep what is promised.
    fn judge(&self, rounds: u32) -> bool {
        println!("{:32} {:>8} {:>8} {:>8} {:>8}", "", "time", "own", "children", "machine");
        let line = |name: &str, cost: &Cost| {
            let ms = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(rounds);
            let [wall, own, children, machine] = [cost.wall, cost.own, cost.children, cost.machine].map(ms);
            println!("{name:32} {wall:8.1} {own:8.1} {children:8.1} {machine:8.1}");
        };
        self.0.iter().for_each(|(name, cost)| line(name, cost));
        let whole =
            self.0.values().filter(|cost| !cost.own.is_zero()).fold(Cost::default(), |sum, cost| Cost {
                wall: sum.wall + cost.wall,
                own: sum.own + cost.own,
                children: sum.children + cost.children,
                machine: sum.machine + cost.machine,
            });
        line("all of it", &whole);
        let kept = whole.own + whole.children < PROMISED_CPU * rounds
            && self.0[PAUSE].wall < PROMISED_PAUSE * rounds;
        println!(
            "under 100 ms of processor time and 5 ms of waiting: {}",
            if kept { "kept" } else { "MISSED" }
        );
        kept
    }
}

/// Processor time of this process or of its children that have ended.
fn used(who: libc::c_int) -> Duration {
    // SAFETY: all zeroes is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one rusage, which outlives the call.
    let done = unsafe { libc::getrusage(who, &raw mut usage) };
    assert_eq!(done, 0);
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.unsigned_abs()) + Duration::from_micros(t.tv_usec.unsigned_abs())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Processor time of everything on the machine: proc(5), ticks of 10 ms, without idle and waiting for I/O.
fn machine() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let fields: Vec<u64> =
        text.lines().next().unwrap().split_whitespace().skip(1).map(|field| field.parse().unwrap()).collect();
    Duration::from_millis((fields[0] + fields[1] + fields[2] + fields[5] + fields[6]) * 10)
}
