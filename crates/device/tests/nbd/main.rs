//! The NBD server before the clients that people use, and before those that nobody should.
#![allow(clippy::unwrap_used)] // in a test a failed step is a failed test

mod clients;
mod hostile;
mod life;
mod raw;
mod scripts;

use std::{path::PathBuf, process::Command, sync::Arc, time::Duration};

use ebbtide_device::{
    engine::{LiveOptions, LiveVolume},
    nbd::{NbdAddress, NbdOptions, NbdServer},
    store::{StoreOptions, VolumeStore},
};
use ebbtide_volume::{
    Accounting, Array, AtomicUnit, Durability, Limits, Merge, Nanos, QuantileCurve, ServiceTimes,
};

const MIB: u64 = 1 << 20;

/// A volume on a store of its own, served on a Unix socket.
struct Served {
    volume: Arc<LiveVolume>,
    store: VolumeStore,
    server: NbdServer,
    dir: tempfile::TempDir,
}

impl Served {
    /// An unlimited volume whose I/O completes as it arrives, unless it is given a service time.
    fn new(mib: u64, service_us: u64) -> Self {
        Self::with(mib, service_us, |_| {})
    }

    fn with(mib: u64, service_us: u64, adjust: impl FnOnce(&mut NbdOptions)) -> Self {
        Self::over(limits(mib * MIB, service_us), adjust)
    }

    fn over(limits: Limits, adjust: impl FnOnce(&mut NbdOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
        store.create_volume("vol", limits.size_bytes, serde_json::Value::Null).unwrap();
        let array = Array::single(limits, Nanos::ZERO).unwrap();
        let blocks = store.open_volume("vol").unwrap();
        let volume = LiveVolume::start(LiveOptions::new("vol", array, blocks, 7)).unwrap();
        let mut options = NbdOptions::new("vol");
        // Longer than clients wait: nobody is served only because another's time is up.
        options.handshake_timeout = Duration::from_secs(600);
        options.description = "a volume under test".into();
        let names = store.clone();
        options.snapshots = Arc::new(move || names.snapshots().into_iter().map(|info| info.name).collect());
        adjust(&mut options);
        let address = NbdAddress::Unix(dir.path().join("vol.sock"));
        let server = NbdServer::listen(Arc::clone(&volume), &address, options).unwrap();
        Self { volume, store, server, dir }
    }

    fn uri(&self) -> String {
        self.server.uri()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn limits(size_bytes: u64, service_us: u64) -> Limits {
    let time = QuantileCurve::constant(Nanos(service_us * 1_000));
    Limits {
        accounting: Accounting { merge: Merge::Waiting, ..Accounting::per_io() },
        service: ServiceTimes { read: time.clone(), write: time, ..ServiceTimes::instant() },
        durability: Durability { atomic_unit: AtomicUnit::SixteenKib, volatile_cache_bytes: 0 },
        ..Limits::unlimited(size_bytes)
    }
}

/// Whether a program is installed; prints that the test is skipped where it is not.
fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("SKIPPED: {program} is not installed");
    }
    found
}

/// Runs a program that must succeed, and returns what it printed.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// Bytes that look like data: no run of them repeats, and no 4 KiB are alike.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(len).collect()
}
