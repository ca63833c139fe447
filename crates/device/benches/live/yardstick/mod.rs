//! An ideal volume beside the smallest FUSE server of one file: what our own code costs a request. `./dev bench overhead --yardstick`
//!
//! Both are on the file system of the temporary directory and on tmpfs, below the same loop device. They take turns within a
//! round, and the order changes from round to round. All four are served by this process, so that its processor time is
//! that of the server which is under load; fio is another process. It judges nothing.

mod bare;
pub(crate) mod janitor;

use std::{
    path::{Path, PathBuf},
    process::id,
};

use ebbtide_proc::process::Stat;
use ebbtide_testing::tiny;
use tempfile::{Builder, TempDir};

use self::{bare::Bare, janitor::Janitor};
use crate::{
    MIB,
    support::{Attached, fio, ideal},
};

/// Bytes of each of the four devices. All of it stays in the page cache.
const SIZE: u64 = 512 * MIB;
const ROUNDS: usize = 5;
/// A tmpfs that every Linux system has.
const TMPFS: &str = "/dev/shm";

/// A load: its name, fio's words, and the bytes of a request where throughput is what counts.
struct Load {
    name: &'static str,
    words: &'static [&'static str],
    request_bytes: Option<u64>,
}

const LOADS: [Load; 6] = [
    Load {
        name: "16 KiB random reads, depth 32",
        words: &["--rw=randread", "--bs=16k", "--iodepth=32"],
        request_bytes: None,
    },
    Load {
        name: "128 KiB sequential reads, depth 8",
        words: &["--rw=read", "--bs=128k", "--iodepth=8"],
        request_bytes: Some(128 << 10),
    },
    Load {
        name: "1 MiB sequential reads, depth 4",
        words: &["--rw=read", "--bs=1m", "--iodepth=4"],
        request_bytes: Some(MIB),
    },
    Load {
        name: "128 KiB sequential writes, depth 8",
        words: &["--rw=write", "--bs=128k", "--iodepth=8"],
        request_bytes: Some(128 << 10),
    },
    Load {
        name: "1 MiB sequential writes, depth 4",
        words: &["--rw=write", "--bs=1m", "--iodepth=4"],
        request_bytes: Some(MIB),
    },
    Load {
        name: "16 KiB write + fdatasync, depth 1",
        words: &["--rw=randwrite", "--bs=16k", "--iodepth=1", "--fdatasync=1"],
        request_bytes: None,
    },
];

/// What one run of a load measured.
#[derive(Clone, Copy)]
struct Sample {
    /// Requests a second, or MiB a second.
    rate: f64,
    /// Processor time of the server for each request of fio, microseconds.
    cpu_us: f64,
}

/// A device under load.
struct Contender {
    name: &'static str,
    device: PathBuf,
    samples: Vec<Sample>,
}

/// Runs it, `seconds` for each load, device and round.
pub(crate) fn run(seconds: u32) {
    let dirs = [place(&std::env::temp_dir()), place(Path::new(TMPFS))];
    // Dropped last: what is left behind then is left behind by a fault.
    let _janitor = Janitor::start(&[dirs[0].as_path(), dirs[1].as_path()]);
    let volumes = dirs.each_ref().map(|dir| Attached::filled_in(inside(dir), ideal(SIZE)));
    let bare_dirs = dirs.each_ref().map(|dir| inside(dir));
    let servers = bare_dirs.each_ref().map(|dir| Bare::filled_in(dir.path(), SIZE));
    let contender = |name, device| Contender { name, device, samples: Vec::new() };
    let mut contenders = [
        contender("ebbtide, temporary directory", volumes[0].path()),
        contender("bare, temporary directory", servers[0].path()),
        contender("ebbtide, tmpfs", volumes[1].path()),
        contender("bare, tmpfs", servers[1].path()),
    ];
    let rounds = if tiny() { 1 } else { ROUNDS };
    println!("median [lowest-highest] of {rounds} rounds; processor time of the server for a request of fio");
    for load in &LOADS {
        for round in 0..rounds {
            for turn in 0..contenders.len() {
                let contender = &mut contenders[(round + turn) % 4];
                let sample = measure(load, &contender.device, seconds);
                contender.samples.push(sample);
            }
        }
        report(load, &contenders);
        contenders.iter_mut().for_each(|contender| contender.samples.clear());
    }
}

/// A directory of this run, by its canonical path. It is the janitor's to remove.
fn place(parent: &Path) -> PathBuf {
    let dir = Builder::new().prefix("ebbtide-yardstick-").tempdir_in(parent);
    dir.expect("a temporary directory can be made").keep().canonicalize().expect("it exists")
}

fn inside(dir: &Path) -> TempDir {
    tempfile::tempdir_in(dir).expect("a temporary directory can be made")
}

fn measure(load: &Load, device: &Path, seconds: u32) -> Sample {
    let runtime = format!("--runtime={seconds}");
    let before = processor_us();
    let measured = fio(device, &[load.words, &["--time_based", &runtime]].concat());
    let cpu_us = (processor_us() - before) / measured.ios.max(1) as f64;
    let rate = load.request_bytes.map_or(measured.iops, |bytes| measured.iops * bytes as f64 / MIB as f64);
    Sample { rate, cpu_us }
}

/// Processor time of this process so far, microseconds. The kernel gives it in steps of 10 ms.
fn processor_us() -> f64 {
    Stat::of(id()).expect("this process exists").cpu.as_secs_f64() * 1e6
}

fn report(load: &Load, contenders: &[Contender; 4]) {
    let unit = if load.request_bytes.is_some() { "MiB/s" } else { "IOPS" };
    println!("{}", load.name);
    for contender in contenders {
        let rate = Spread::new(contender.samples.iter().map(|sample| sample.rate));
        let cpu = Spread::new(contender.samples.iter().map(|sample| sample.cpu_us));
        println!("  {:30} {} {unit:5}  {} us", contender.name, rate.text(9, 0), cpu.text(8, 1));
    }
    for pair in contenders.chunks_exact(2) {
        let ratios = |figure: fn(&Sample) -> f64| {
            let rounds = pair[0].samples.iter().zip(&pair[1].samples);
            Spread::new(rounds.map(move |(ours, bare)| figure(ours) / figure(bare)))
        };
        let (rate, cpu) = (ratios(|sample| sample.rate), ratios(|sample| sample.cpu_us));
        println!(
            "  {:30} {}        {} times",
            format!("{} : bare", pair[0].name),
            rate.text(9, 2),
            cpu.text(8, 2)
        );
    }
}

/// A median and the range around it.
struct Spread {
    low: f64,
    median: f64,
    high: f64,
}

impl Spread {
    /// Of at least one figure.
    fn new(figures: impl Iterator<Item = f64>) -> Self {
        let mut figures: Vec<_> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let (low, high) = (figures[0], figures[figures.len() - 1]);
        Self { low, median: figures[figures.len() / 2], high }
    }

    fn text(&self, width: usize, digits: usize) -> String {
        let Self { low, median, high } = self;
        format!("{median:>width$.digits$} [{low:.digits$}-{high:.digits$}]")
    }
}
