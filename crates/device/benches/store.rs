//! The block store compared with plain `pread` and `pwrite` on one file: 16 KiB random reads and overwrites on one and on two
//! threads, the same on an encrypted volume, first writes, and snapshots of much data under load.
//!
//! `cargo bench -p ebbtide-device --bench store -- [DIR [DATA_MIB]]`. Operations a second are of the wall clock; the time
//! of one operation is the processor's, summed over the threads, so that it means the same on a busy machine. A tiny run
//! (`BENCH_TINY=1`, or under `cargo test`) takes no arguments. It has 16 MiB, a twentieth of a second for each figure, and two snapshots.
#![allow(clippy::unwrap_used)] // a bench fails by a panic

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ebbtide_device::store::{
    DataKey, KeyUnavailable, KeyUnwrapper, OpenVolume, StoreError, StoreOptions, VolumeStore, WrappedKey,
};

const IO: usize = 16 << 10;

/// How much is done.
#[derive(Clone, Copy)]
struct Scale {
    data_mib: u64,
    /// How long each figure is measured.
    run: Duration,
    snapshots: u32,
}

const FULL: Scale = Scale { data_mib: 512, run: Duration::from_secs(2), snapshots: 10 };
const TINY: Scale = Scale { data_mib: 16, run: Duration::from_millis(50), snapshots: 2 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test` hands every bench the filter of the tests' names.
    let args: Vec<String> =
        if ebbtide_testing::tiny() { Vec::new() } else { std::env::args().skip(1).collect() };
    let mut args = args.into_iter().filter(|arg| !arg.starts_with("--"));
    let temporary = tempfile::tempdir()?;
    let dir = args.next().map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let scale = if ebbtide_testing::tiny() { TINY } else { FULL };
    let data_mib: u64 = args.next().map_or(Ok(scale.data_mib), |mib| mib.parse())?;
    let rate = |what: &str, threads, span, io: Io<'_>| rate(scale.run, what, threads, span, io);
    let data = data_mib << 20;

    let store = VolumeStore::open(&dir.join("store"), StoreOptions::default())?;
    store.create_volume("bench", 100 << 30, serde_json::Value::Null)?;
    let volume = store.open_volume("bench")?;
    let begin = Instant::now();
    let chunk = vec![1_u8; 1 << 20];
    for mib in 0..data_mib {
        volume.write_at(&chunk, mib << 20)?;
    }
    println!(
        "{:<44} {:>12.0} MiB/s",
        "sequential first writes, 1 MiB",
        data_mib as f64 / begin.elapsed().as_secs_f64()
    );

    let plain = File::options().read(true).write(true).create(true).truncate(true).open(dir.join("plain"))?;
    let plain_data = data.min(1 << 30);
    for mib in 0..plain_data >> 20 {
        plain.write_all_at(&chunk, mib << 20)?;
    }
    for threads in [1, 2] {
        rate("pread", threads, plain_data, &|buf, at| plain.read_exact_at(buf, at).is_ok());
        rate("store read", threads, plain_data, &|buf, at| volume.read_at(buf, at).is_ok());
        rate("pwrite", threads, plain_data, &|buf, at| plain.write_all_at(buf, at).is_ok());
        rate("store overwrite", threads, plain_data, &|buf, at| volume.write_at(buf, at).is_ok());
    }
    encrypted(&store, plain_data, &rate)?;
    let base = 50 << 30;
    let next = AtomicU64::new(0);
    rate("store first write", 2, 1, &|buf, _| {
        let at = next.fetch_add(1, Ordering::Relaxed) * IO as u64;
        volume.write_at(buf, base + at % (1 << 30)).is_ok()
    });
    snapshot_under_load(&store, &volume, plain_data, scale.snapshots)?;
    rate("store read through a snapshot", 1, plain_data, &|buf, at| volume.read_at(buf, at).is_ok());
    Ok(())
}

/// Has one data key.
#[derive(Debug)]
struct OneKey;

impl KeyUnwrapper for OneKey {
    fn unwrap_key(&self, _: &WrappedKey) -> Result<DataKey, KeyUnavailable> {
        DataKey::new(std::array::from_fn(|at| u8::try_from(at).unwrap()))
    }
}

/// The same on an encrypted volume.
fn encrypted(
    store: &VolumeStore,
    data: u64,
    rate: &dyn Fn(&str, u64, u64, Io<'_>),
) -> Result<(), Box<dyn std::error::Error>> {
    store.set_key_unwrapper(Arc::new(OneKey));
    let key = WrappedKey { key_id: "one".to_owned(), blob: String::new(), context: BTreeMap::new() };
    store.create_encrypted_volume("secret", 100 << 30, serde_json::Value::Null, key)?;
    let volume = store.open_volume("secret")?;
    let chunk = vec![1_u8; 1 << 20];
    for mib in 0..data >> 20 {
        volume.write_at(&chunk, mib << 20)?;
    }
    for threads in [1, 2] {
        rate("encrypted read", threads, data, &|buf, at| volume.read_at(buf, at).is_ok());
        rate("encrypted overwrite", threads, data, &|buf, at| volume.write_at(buf, at).is_ok());
    }
    Ok(())
}

/// One operation with a buffer at an offset; whether it succeeded.
type Io<'a> = &'a (dyn Fn(&mut [u8], u64) -> bool + Sync);

fn rate(run: Duration, what: &str, threads: u64, span: u64, io: Io<'_>) {
    let (total, cpu_ns) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (total, cpu_ns) = (&total, &cpu_ns);
            scope.spawn(move || {
                let mut buf = vec![7; IO];
                let (mut x, begin, begin_cpu, mut ops) =
                    (thread * 977 + 1, Instant::now(), thread_cpu_ns(), 0);
                while begin.elapsed() < run {
                    for _ in 0..64 {
                        assert!(io(&mut buf, random(&mut x) % span / IO as u64 * IO as u64));
                        ops += 1;
                    }
                }
                total.fetch_add(ops, Ordering::Relaxed);
                cpu_ns.fetch_add(thread_cpu_ns() - begin_cpu, Ordering::Relaxed);
            });
        }
    });
    let ops = total.load(Ordering::Relaxed);
    let (per_second, ns) = (ops as f64 / run.as_secs_f64(), cpu_ns.load(Ordering::Relaxed) / ops);
    println!(
        "{:<44} {per_second:>12.0} op/s {ns:>8} ns of processor",
        format!("{what}, 16 KiB, {threads} threads")
    );
}

fn thread_cpu_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap()
}

fn snapshot_under_load(
    store: &VolumeStore,
    volume: &OpenVolume,
    span: u64,
    snapshots: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let (stop, worst) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (stop, worst) = (&stop, &worst);
            scope.spawn(move || {
                let (buf, mut x) = (vec![9; IO], thread * 31 + 5);
                while !stop.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    let at = random(&mut x) % span / IO as u64 * IO as u64;
                    assert!(volume.write_at(&buf, at).is_ok());
                    worst.fetch_max(
                        u64::try_from(begin.elapsed().as_micros()).unwrap_or(0),
                        Ordering::Relaxed,
                    );
                }
            });
        }
        let taken = (0..snapshots).try_for_each(|i| {
            std::thread::sleep(Duration::from_millis(200));
            let (before, begin) = (worst.swap(0, Ordering::Relaxed), Instant::now());
            store.snapshot("bench", &format!("s{i}"), serde_json::Value::Null)?;
            let took = begin.elapsed();
            std::thread::sleep(Duration::from_millis(20));
            let after = worst.swap(0, Ordering::Relaxed);
            println!(
                "snapshot under load: {took:>9.2?}; longest write around it {after} us, before it {before} us"
            );
            Ok::<_, StoreError>(())
        });
        stop.store(true, Ordering::Relaxed);
        taken
    })?;
    Ok(())
}

fn random(x: &mut u64) -> u64 {
    *x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *x >> 20
}
