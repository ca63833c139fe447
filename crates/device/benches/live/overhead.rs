//! An ideal volume compared with nbdkit, nbdfuse and a loop device: the same three steps (a server of a
//! file, FUSE, a block device) from other hands. The two take turns; the median of the rounds counts.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use ebbtide_testing::tiny;
use tempfile::TempDir;

use crate::{
    MIB, judge,
    support::{Attached, Measured, fill, fio, ideal, missing},
};

const SIZE: u64 = 1024 * MIB;
const ROUNDS: usize = 3;

/// Name, fio's words, and which figure is compared by what factor.
const JOBS: [(&str, &[&str], Promise); 5] = [
    ("read, depth 1", &["--rw=randread", "--iodepth=1"], Promise::Latency(0.5)),
    ("read, depth 32", &["--rw=randread", "--iodepth=32"], Promise::Iops(4.0)),
    ("write, depth 1", &["--rw=randwrite", "--iodepth=1"], Promise::Latency(0.5)),
    ("write, depth 32", &["--rw=randwrite", "--iodepth=32"], Promise::Iops(4.0)),
    ("write + fdatasync", &["--rw=randwrite", "--iodepth=1", "--fdatasync=1"], Promise::Iops(2.5)),
];

#[derive(Clone, Copy)]
enum Promise {
    /// At least this many times the peer's IOPS.
    Iops(f64),
    /// At most this share of the peer's mean latency.
    Latency(f64),
}

pub(crate) fn run(seconds: u32) -> bool {
    let ours = Attached::filled(ideal(SIZE));
    let peer = missing(&["nbdkit", "nbdfuse", "losetup"]).is_none().then(Pipeline::new);
    if let Some(peer) = &peer {
        fill(&peer.device);
    } else {
        println!("SKIPPED: the comparison, for which nbdkit, nbdfuse and losetup are needed");
    }
    println!("16 KiB random, ideal volume, page cache hot: IOPS (mean latency in us)");
    let mut kept = true;
    for (name, words, promise) in JOBS {
        let rounds = if tiny() { 1 } else { ROUNDS };
        let rounds: Vec<_> = (0..rounds)
            .map(|_| {
                (
                    job(&ours.path(), words, seconds),
                    peer.as_ref().map(|peer| job(&peer.device, words, seconds)),
                )
            })
            .collect();
        let mine = median(rounds.iter().map(|round| round.0).collect());
        print!("{name:20} ebbtide {:>8.0} ({:>6.1})", mine.iops, mine.mean_us);
        let theirs: Vec<_> = rounds.iter().filter_map(|round| round.1).collect();
        if theirs.is_empty() {
            println!();
            continue;
        }
        let theirs = median(theirs);
        println!("   nbdkit+nbdfuse+loop {:>8.0} ({:>6.1})", theirs.iops, theirs.mean_us);
        kept &= match promise {
            Promise::Iops(factor) => {
                let ratio = mine.iops / theirs.iops;
                judge(name, ratio, "times", ratio >= factor, &format!("at least {factor} times its IOPS"))
            }
            Promise::Latency(share) => {
                let ratio = mine.mean_us / theirs.mean_us;
                judge(name, ratio, "times", ratio <= share, &format!("at most {share} of its latency"))
            }
        };
    }
    kept
}

fn job(device: &Path, words: &[&str], seconds: u32) -> Measured {
    let runtime = format!("--runtime={seconds}");
    fio(device, &[words, &["--bs=16k", "--time_based", &runtime]].concat())
}

fn median(mut rounds: Vec<Measured>) -> Measured {
    rounds.sort_by(|a, b| a.iops.total_cmp(&b.iops));
    rounds[rounds.len() / 2]
}

/// `nbdkit file`, `nbdfuse` over its socket, and a loop device with direct I/O. Dropped, it is gone.
struct Pipeline {
    device: PathBuf,
    nbdkit: Child,
    nbdfuse: Child,
    dir: TempDir,
}

impl Pipeline {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let (data, socket, volume) =
            (dir.path().join("data"), dir.path().join("socket"), dir.path().join("volume"));
        let made = std::fs::File::create(&data).and_then(|file| file.set_len(SIZE));
        made.expect("the peer's file can be made");
        std::fs::write(&volume, "").expect("the mount point can be made");
        let quiet = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it is installed")
        };
        let nbdkit = quiet(Command::new("nbdkit").args(["-f", "-U"]).arg(&socket).arg("file").arg(&data));
        wait_until(|| socket.exists());
        let nbdfuse = quiet(Command::new("nbdfuse").arg(&volume).arg("--unix").arg(&socket));
        wait_until(|| std::fs::metadata(&volume).is_ok_and(|found| found.len() == SIZE));
        let losetup = ["--find", "--show", "--direct-io=on"];
        let output = Command::new("losetup").args(losetup).arg(&volume).output().expect("it is installed");
        assert!(output.status.success(), "losetup: {}", String::from_utf8_lossy(&output.stderr));
        let device = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Self { device, nbdkit, nbdfuse, dir }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
        // nbdfuse ends when its mount does.
        let volume = self.dir.path().join("volume");
        wait_until(|| {
            Command::new("umount").arg(&volume).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
        });
        let _ = self.nbdfuse.wait();
        let _ = self.nbdkit.kill();
        let _ = self.nbdkit.wait();
    }
}

/// Waits at most ten seconds.
fn wait_until(mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !done() && Instant::now() < end {
        sleep(Duration::from_millis(20));
    }
}
