//! A live volume as a block device, and fio on it. Shared by the tests and the benches.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use ebbtide_device::{
    engine::{LiveOptions, LiveVolume},
    fuse::FuseExport,
    loopdev::{LoopDevice, LoopOptions},
    store::{StoreOptions, VolumeStore},
};
use ebbtide_volume::{Array, Limits, Nanos, QuantileCurve, RateLimit, ServiceTimes};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const NAME: &str = "vol";

/// What the machine lacks for a block device of ours, if anything: then tests print it and return.
pub(crate) fn missing(programs: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("root, to mount and to set up loop devices".to_owned());
    }
    let files = ["/dev/fuse", "/dev/loop-control"];
    let file = files.iter().find(|file| !Path::new(file).exists());
    let absent = |program: &&&str| Command::new(program).arg("--version").output().is_err();
    file.or_else(|| programs.iter().find(absent)).map(|name| (*name).to_owned())
}

/// No limits and no time of its own.
pub(crate) fn ideal(size_bytes: u64) -> Limits {
    Limits::unlimited(size_bytes)
}

/// Nothing but a cap.
pub(crate) fn capped(size_bytes: u64, iops: u64) -> Limits {
    Limits { iops: Some(RateLimit::flat(iops)), ..ideal(size_bytes) }
}

/// Nothing but a service time.
pub(crate) fn slow(size_bytes: u64, time: Nanos) -> Limits {
    let curve = QuantileCurve::constant(time);
    let service = ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() };
    Limits { service, ..ideal(size_bytes) }
}

/// A volume with everything on top of it and below. Dropping it takes all of it down.
pub(crate) struct Attached {
    device: Option<LoopDevice>,
    export: Option<FuseExport>,
    pub(crate) volume: Arc<LiveVolume>,
    pub(crate) store: VolumeStore,
    pub(crate) dir: TempDir,
}

impl Attached {
    pub(crate) fn new(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
        store.create_volume(NAME, limits.size_bytes, Value::Null).unwrap();
        Self::over(dir, store, NAME, limits)
    }

    /// A volume whose every block has been written, past its limits.
    pub(crate) fn filled(limits: Limits) -> Self {
        Self::filled_in(tempfile::tempdir().unwrap(), limits)
    }

    /// The same, with its store in a directory of the caller's.
    pub(crate) fn filled_in(dir: TempDir, limits: Limits) -> Self {
        let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
        store.create_volume(NAME, limits.size_bytes, Value::Null).unwrap();
        let data = store.open_volume(NAME).unwrap();
        for offset in (0..limits.size_bytes).step_by(1 << 20) {
            data.write_at(&vec![0xA5; 1 << 20], offset).unwrap();
        }
        drop(data);
        Self::over(dir, store, NAME, limits)
    }

    /// Attaches a volume that a store already has.
    pub(crate) fn over(dir: TempDir, store: VolumeStore, name: &str, limits: Limits) -> Self {
        let volume = start(&store, name, limits);
        Self::with(dir, store, volume)
    }

    /// Attaches a volume that lives already.
    pub(crate) fn with(dir: TempDir, store: VolumeStore, volume: Arc<LiveVolume>) -> Self {
        let mount = dir.path().join("mount");
        std::fs::create_dir_all(&mount).unwrap();
        let export = FuseExport::mount(Arc::clone(&volume), &mount).unwrap();
        let device = LoopDevice::attach(&export.file(), &LoopOptions::default()).unwrap();
        Self { device: Some(device), export: Some(export), volume, store, dir }
    }

    pub(crate) fn device(&self) -> &LoopDevice {
        self.device.as_ref().unwrap()
    }

    /// The device alone, for the caller to take down.
    pub(crate) fn take_device(&mut self) -> LoopDevice {
        self.device.take().unwrap()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.device().path().to_owned()
    }

    /// Takes it down in order and returns what went wrong.
    pub(crate) fn detach(mut self) -> (TempDir, VolumeStore) {
        self.device.take().unwrap().detach().unwrap();
        self.export.take().unwrap().unmount().unwrap();
        self.volume.stop().unwrap();
        let fresh = tempfile::tempdir().unwrap();
        (std::mem::replace(&mut self.dir, fresh), self.store.clone())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(mut device) = self.device.take() {
            let _ = device.detach();
        }
        if let Some(mut export) = self.export.take() {
            let _ = export.unmount();
        }
    }
}

pub(crate) fn start(store: &VolumeStore, name: &str, limits: Limits) -> Arc<LiveVolume> {
    use ebbtide_device::clock::{Clock, MonotonicClock};
    let clock = MonotonicClock::new();
    let array = Array::single(limits, clock.now()).unwrap();
    let mut options = LiveOptions::new(name, array, store.open_volume(name).unwrap(), 1);
    options.clock = Arc::new(clock);
    LiveVolume::start(options).unwrap()
}

/// What a fio job measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) ios: u64,
    pub(crate) iops: f64,
    pub(crate) mean_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
}

/// Runs a fio job of direct I/O on a device; panics with fio's words where it fails.
pub(crate) fn fio(device: &Path, arguments: &[&str]) -> Measured {
    let output = Command::new("fio")
        .args([
            "--name=job",
            "--direct=1",
            "--ioengine=libaio",
            "--output-format=json",
            "--verify_state_save=0",
        ])
        .arg(format!("--filename={}", device.display()))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "fio {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    // fio prints notes before its JSON.
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let job = &report["jobs"][0];
    let side = ["read", "write"].map(|side| &job[side]).into_iter();
    let side = side.max_by_key(|side| side["total_ios"].as_u64()).unwrap();
    let us = |value: &Value| value.as_f64().unwrap_or(0.0) / 1e3;
    Measured {
        ios: side["total_ios"].as_u64().unwrap(),
        iops: side["iops"].as_f64().unwrap(),
        mean_us: us(&side["clat_ns"]["mean"]),
        p50_us: us(&side["clat_ns"]["percentile"]["50.000000"]),
        p99_us: us(&side["clat_ns"]["percentile"]["99.000000"]),
        max_us: us(&side["clat_ns"]["max"]),
    }
}

/// Writes the whole device once, so that reads meet data.
pub(crate) fn fill(device: &Path) {
    fio(device, &["--rw=write", "--bs=1M", "--iodepth=4"]);
}
