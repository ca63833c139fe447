//! The NBD server compared with nbdkit's file plugin: fio's nbd engine over a Unix socket, 16 KiB random,
//! the data in the page cache, both in one run. Then an encrypted volume compared with a plain one.
//!
//! `cargo bench -p ebbtide-device --bench nbd [-- SECONDS]`. A tiny run (`BENCH_TINY=1`) measures each job once, for a
//! second.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use ebbtide_device::{
    engine::{LiveOptions, LiveVolume},
    nbd::{NbdAddress, NbdOptions, NbdServer},
    store::{DataKey, KeyUnavailable, KeyUnwrapper, StoreOptions, VolumeStore, WrappedKey},
};
use ebbtide_volume::{Accounting, Array, AtomicUnit, Durability, Limits, Merge, Nanos};
use serde_json::Value;

const SIZE: u64 = 1 << 30;

/// Rounds, of which the median counts; the two servers take turns.
const ROUNDS: usize = 3;

/// Name, direction, queue depth. Flushes are left out: nbdkit's reach the disk, those of a volume that
/// is only to survive its own process need not.
const JOBS: [(&str, &str, &str); 4] = [
    ("read, depth 1", "randread", "1"),
    ("read, depth 32", "randread", "32"),
    ("write, depth 1", "randwrite", "1"),
    ("write, depth 32", "randwrite", "32"),
];

fn main() -> ExitCode {
    // `cargo test --benches` passes --bench or --test as well; a number is the runtime.
    let seconds = std::env::args()
        .find_map(|argument| argument.parse::<u32>().ok())
        .unwrap_or(if ebbtide_testing::tiny() { 1 } else { 5 });
    for program in ["fio", "nbdkit"] {
        if Command::new(program).arg("--version").output().is_err() {
            println!("SKIPPED: {program} is not installed");
            return ExitCode::SUCCESS;
        }
    }
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let store =
        VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).expect("the store opens");
    store.set_key_unwrapper(Arc::new(OneKey));
    store.create_volume("ideal", SIZE, Value::Null).expect("the volume is created");
    let key = WrappedKey { key_id: "one".to_owned(), blob: String::new(), context: BTreeMap::new() };
    store.create_encrypted_volume("secret", SIZE, Value::Null, key).expect("the volume is created");
    let (_server, ours) = serve(&store, "ideal", dir.path());
    let (_server_too, secret) = serve(&store, "secret", dir.path());
    let (mut nbdkit, peer) = serve_nbdkit(dir.path());
    for uri in [&ours, &secret, &peer] {
        fio(uri, &["--rw=write", "--bs=1M", "--iodepth=4", &format!("--io_size={SIZE}")]);
    }
    println!("16 KiB random: IOPS (mean latency in us), and the server's CPU time per I/O in us");
    println!("{:26} {:>26} {:>26} {:>6}", "", "ebbtide", "nbdkit file", "ratio");
    let servers = [(ours.as_str(), std::process::id()), (peer.as_str(), nbdkit.id())];
    for (name, direction, depth) in JOBS {
        compare(servers, name, direction, depth, seconds);
    }
    println!("{:26} {:>26} {:>26} {:>6}", "", "encrypted", "plain", "ratio");
    let servers = [secret.as_str(), ours.as_str()].map(|uri| (uri, std::process::id()));
    for (name, direction, depth) in JOBS {
        compare(servers, name, direction, depth, seconds);
    }
    // It has nothing left to lose.
    let _ = nbdkit.kill();
    let _ = nbdkit.wait();
    ExitCode::SUCCESS
}

/// Has one data key.
#[derive(Debug)]
struct OneKey;

impl KeyUnwrapper for OneKey {
    fn unwrap_key(&self, _: &WrappedKey) -> Result<DataKey, KeyUnavailable> {
        DataKey::new(std::array::from_fn(|at| u8::try_from(at).expect("a key has 64 bytes")))
    }
}

/// An ideal volume: no limits, no service time.
fn serve(store: &VolumeStore, name: &str, dir: &Path) -> (NbdServer, String) {
    let limits = Limits {
        accounting: Accounting { merge: Merge::Waiting, ..Accounting::per_io() },
        durability: Durability { atomic_unit: AtomicUnit::SixteenKib, volatile_cache_bytes: 0 },
        ..Limits::unlimited(SIZE)
    };
    let array = Array::single(limits, Nanos::ZERO).expect("the limits are valid");
    let blocks = store.open_volume(name).expect("the volume opens");
    let volume = LiveVolume::start(LiveOptions::new(name, array, blocks, 1)).expect("the volume starts");
    let address = NbdAddress::Unix(dir.join(format!("{name}.sock")));
    let server = NbdServer::listen(Arc::clone(&volume), &address, NbdOptions::new(name)).expect("it listens");
    let uri = server.uri();
    (server, uri)
}

fn serve_nbdkit(dir: &Path) -> (Child, String) {
    let (file, socket) = (dir.join("nbdkit.raw"), dir.join("nbdkit.sock"));
    fs::File::create(&file).and_then(|file| file.set_len(SIZE)).expect("a file can be made");
    let child = Command::new("nbdkit")
        .args(["--foreground", "--unix"])
        .arg(&socket)
        .arg("file")
        .arg(&file)
        .stdout(Stdio::null())
        .spawn()
        .expect("nbdkit starts");
    while !socket.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    (child, format!("nbd+unix:///?socket={}", socket.display()))
}

/// Runs fio and returns its first job's report.
fn fio(uri: &str, arguments: &[&str]) -> Value {
    let output = Command::new("fio")
        .args(["--name=bench", "--ioengine=nbd", "--output-format=json"])
        .arg(format!("--uri={uri}"))
        .arg(format!("--size={SIZE}"))
        .args(arguments)
        .output()
        .expect("fio runs");
    assert!(output.status.success(), "fio: {}", String::from_utf8_lossy(&output.stdout));
    // fio prints notes before the object.
    let start = output.stdout.iter().position(|&byte| byte == b'{').expect("fio prints an object");
    let mut report: Value = serde_json::from_slice(&output.stdout[start..]).expect("fio prints JSON");
    report["jobs"][0].take()
}

/// CPU time that a process has used, in microseconds, to 10 ms.
fn cpu_us(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("the process lives");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() * 10_000.0
}

#[derive(Clone, Copy)]
struct Figures {
    iops: f64,
    latency_us: f64,
    server_us: f64,
}

fn measure((uri, server): (&str, u32), direction: &str, arguments: &[&str]) -> Figures {
    let before = cpu_us(server);
    let job = fio(uri, arguments);
    let used = cpu_us(server) - before;
    let side = &job[direction.trim_start_matches("rand")];
    let number = |value: &Value| value.as_f64().expect("a number");
    Figures {
        iops: number(&side["iops"]),
        latency_us: number(&side["lat_ns"]["mean"]) / 1_000.0,
        server_us: used / number(&side["total_ios"]),
    }
}

fn compare(servers: [(&str, u32); 2], name: &str, direction: &str, depth: &str, seconds: u32) {
    let (rw, depth) = (format!("--rw={direction}"), format!("--iodepth={depth}"));
    let runtime = format!("--runtime={seconds}");
    let mut figures = [Vec::new(), Vec::new()];
    let rounds = if ebbtide_testing::tiny() { 1 } else { ROUNDS };
    for round in 0..rounds {
        for at in [round % 2, 1 - round % 2] {
            let arguments = [&rw, &depth, &runtime, "--time_based", "--bs=16k"];
            figures[at].push(measure(servers[at], direction, &arguments));
        }
    }
    let [ours, peer] = figures.map(|mut figures| {
        figures.sort_by(|a, b| a.iops.total_cmp(&b.iops));
        figures[rounds / 2]
    });
    let cell = |it: Figures| format!("{:.0} ({:.0}), {:.1}", it.iops, it.latency_us, it.server_us);
    println!("{name:26} {:>26} {:>26} {:>6.2}", cell(ours), cell(peer), ours.iops / peer.iops);
}
