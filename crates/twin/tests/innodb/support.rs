//! Servers and volumes for the tests.

use ebbtide_twin::innodb::{
    Costs, CurvePoint, Flavour, Machine, MissCurve, ModelLoad, ModelSetup, PageKind, Settings, Shape,
    TransactionType,
};
use ebbtide_volume::{
    Accounting, Array, AtomicUnit, Durability, GIB, Limits, MIB, Merge, Nanos, QuantileCurve, RateLimit,
    ServiceTimes,
};

/// A volume whose reads and writes take `latency` and which does `iops` operations and `mib_s` MiB a second.
pub(crate) fn volume(latency: Nanos, iops: Option<u64>, mib_s: Option<u64>) -> Array {
    let curve = QuantileCurve::constant(latency);
    let limits = Limits {
        size_bytes: 500 * GIB,
        iops: iops.map(RateLimit::flat),
        throughput: mib_s.map(|rate| RateLimit::flat(rate * MIB)),
        accounting: Accounting { merge: Merge::Waiting, ..Accounting::per_io() },
        service: ServiceTimes { read: curve.clone(), write: curve, ..ServiceTimes::instant() },
        durability: Durability { atomic_unit: AtomicUnit::FourKib, volatile_cache_bytes: 0 },
    };
    Array::single(limits, Nanos::ZERO).expect("the limits are sound")
}

fn one_kind(redo_bytes: f64) -> Shape {
    let kind = TransactionType {
        name: "t".into(),
        share: 1.0,
        statements: 1.0,
        redo_bytes,
        ..TransactionType::default()
    };
    Shape::new("test", vec![kind])
}

/// Transactions that read one page each, never none and never two: the slices of processor time of all then have the
/// same mean, without which first come, first served has no product form.
pub(crate) fn one_read() -> Shape {
    let mut shape = one_kind(0.0);
    shape.class("pages", PageKind::Reused { pages: 1e12, revisits: None }, &[(0, 1.0, 0.0)]);
    shape
}

/// Transactions of one kind that read and write so many pages on average, with so many bytes of redo.
pub(crate) fn shape(reads: f64, writes: f64, redo_bytes: f64) -> Shape {
    let mut shape = one_kind(redo_bytes);
    let curve = MissCurve { points: vec![CurvePoint { pool_pages: 1.0, reads, writes }], data_pages: None };
    shape.class("pages", PageKind::Observed(curve), &[(0, 1.0, 1.0)]);
    shape
}

/// Transactions that change ten pages each of data that a pool holds.
pub(crate) fn in_memory() -> Shape {
    let mut shape = one_kind(10_000.0);
    shape.class("hot", PageKind::Reused { pages: 50_000.0, revisits: None }, &[(0, 10.0, 1.0)]);
    shape
}

pub(crate) fn settings(flavour: Flavour) -> Settings {
    Settings { log_bin: false, redo_capacity_bytes: 64 * GIB, ..Settings::of(flavour, 2 * GIB) }
}

/// A run of a minute after forty seconds, in which dirty pages come to their balance, with one thread of a core and no network.
pub(crate) fn setup(shape: Shape, volume: Array, clients: u32, cpu_us: f64, vcpus: u32) -> ModelSetup {
    ModelSetup {
        settings: settings(Flavour::MySql80),
        shape,
        machine: Machine { vcpus, threads_per_core: 1, memory: None },
        costs: Costs { cpu_us, ..Costs::default() },
        load: ModelLoad { clients, rate: None },
        volumes: volume.into(),
        instance: None,
        seed: 1,
        duration: Nanos::from_secs(100),
        settle: Nanos::from_secs(40),
        cold: false,
    }
}
