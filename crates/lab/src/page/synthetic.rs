//! Runs that never happened, for looking at the page: every figure is drawn from a seed.

use std::collections::BTreeMap;

use ebbtide_load::tpcc::{Isolation, Statements, WaitMode};
use ebbtide_load::{Arrival, Bucket, Distribution, Ended, Latency, Mix, RunOptions, RunReport, Workload};
use ebbtide_mysql::Settings;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::experiment::{
    Arm, Comparison, DataPlan, Experiment, InstancePlan, LoadKind, LoadPlan, Role, Topology, TrialPlan,
    WarmupPlan,
};
use crate::record::{
    HostFacts, HostSecond, LabRun, LimitShares, LoadSecond, Outcome, Second, ServerFacts, ServerSecond,
    Trial, VolumeSecond,
};

/// What an arm does, before noise.
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    pub(super) volume: &'static str,
    pub(super) options: &'static [&'static str],
    pub(super) tps: f64,
    /// Throughput after the credits are gone, and when that is.
    pub(super) after: Option<(f64, u32)>,
    /// I/Os of a transaction.
    pub(super) ios: f64,
}

pub(super) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Evenly between 0 and 1.
    fn even(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }

    /// About 1, with this spread: four even draws are near enough to a bell.
    fn near(&mut self, spread: f64) -> f64 {
        let sum: f64 = (0..4).map(|_| self.even() - 0.5).sum();
        (1.0 + spread * sum * 1.7).max(0.01)
    }
}

/// Two arms far apart.
pub const TUNED: [Shape; 2] = [
    Shape {
        name: "default",
        volume: "gp2:size=125GiB,credits=0%",
        options: &["innodb_buffer_pool_size=16M", "innodb_flush_method=fsync", "innodb_log_file_size=12M"],
        tps: 34.0,
        after: None,
        ios: 10.6,
    },
    Shape {
        name: "tuned",
        volume: "gp2:size=125GiB,credits=0%",
        options: &["innodb_buffer_pool_size=1G", "innodb_flush_method=O_DIRECT", "innodb_log_file_size=64M"],
        tps: 431.0,
        after: None,
        ios: 0.87,
    },
];

/// Four arms, one of which loses its credits.
pub(super) const VOLUMES: [Shape; 4] = [
    Shape {
        name: "gp2",
        volume: "gp2:size=100GiB,credits=2%",
        options: &[],
        tps: 512.0,
        after: Some((58.0, 35)),
        ios: 5.8,
    },
    Shape { name: "gp3", volume: "gp3:size=100GiB", options: &[], tps: 515.0, after: None, ios: 5.8 },
    Shape {
        name: "io1",
        volume: "io1:size=100GiB,iops=3000",
        options: &[],
        tps: 519.0,
        after: None,
        ios: 5.8,
    },
    Shape {
        name: "io2",
        volume: "io2:size=100GiB,iops=3000",
        options: &[],
        tps: 524.0,
        after: None,
        ios: 5.8,
    },
];

/// Many arms near one another.
pub(super) fn many() -> Vec<Shape> {
    const NAMES: [(&str, &[&str], f64); 20] = [
        ("baseline", &[], 300.0),
        ("flush_method=fsync", &["innodb_flush_method=fsync"], 281.0),
        ("flush_method=O_DIRECT_NO_FSYNC", &["innodb_flush_method=O_DIRECT_NO_FSYNC"], 301.0),
        ("flush_neighbors=1", &["innodb_flush_neighbors=1"], 298.0),
        ("flush_neighbors=2", &["innodb_flush_neighbors=2"], 262.0),
        ("redo=12MiB", &["innodb_log_file_size=12M"], 121.0),
        ("redo=256MiB", &["innodb_log_file_size=256M"], 356.0),
        ("redo=1GiB", &["innodb_log_file_size=1G"], 401.0),
        ("buffer pool=64MiB", &["innodb_buffer_pool_size=64M"], 96.0),
        ("buffer pool=512MiB", &["innodb_buffer_pool_size=512M"], 402.0),
        ("io_capacity=2000", &["innodb_io_capacity=2000"], 297.0),
        ("io_capacity=10000", &["innodb_io_capacity=10000"], 285.0),
        ("adaptive hash index off", &["innodb_adaptive_hash_index=OFF"], 302.0),
        ("page cleaners=1", &["innodb_page_cleaners=1"], 300.0),
        ("page cleaners=4", &["innodb_page_cleaners=4"], 299.0),
        ("separate log volume", &[], 322.0),
        ("flush_log_at_trx_commit=0", &["innodb_flush_log_at_trx_commit=0"], 388.0),
        ("flush_log_at_trx_commit=2", &["innodb_flush_log_at_trx_commit=2"], 384.0),
        ("sync_binlog=1", &["log_bin=ON", "sync_binlog=1"], 243.0),
        ("sync_binlog=0", &["log_bin=ON", "sync_binlog=0"], 280.0),
    ];
    let shape = |(name, options, tps): (&'static str, &'static [&'static str], f64)| Shape {
        name,
        volume: "gp3:size=100GiB,iops=3000",
        options,
        tps,
        after: None,
        ios: 3_000.0 / tps,
    };
    NAMES.into_iter().map(shape).collect()
}

/// A run of these arms.
pub fn run(shapes: &[Shape], repeats: u32, seconds: u32, seed: u64) -> LabRun {
    let mut draw = Draw::new(seed);
    let mut trials = Vec::new();
    for repeat in 0..repeats {
        for shape in shapes {
            trials.push(trial(shape, repeat, seconds, &mut draw));
        }
    }
    LabRun {
        started_ns: 1_790_000_000_000_000_000,
        command: format!("ebbtide run synthetic --seed {seed}"),
        ebbtide: "0.1.0".into(),
        experiment: experiment(shapes, repeats, seconds, seed),
        overrides: None,
        host: HostFacts {
            cpus: 2,
            threads_per_core: Some(2),
            cpu_model: "A processor of the imagination".into(),
            memory_bytes: 8 << 30,
            kernel: "6.1.0".into(),
            calibration: vec![
                ("4 KiB random reads".into(), "21,400 IOPS, p99 310 us".into()),
                ("16 KiB random writes".into(), "14,900 IOPS, p99 820 us".into()),
            ],
            local_round_trip_us: Some(41.4),
            load_before: 0.31,
            home: String::new(),
        },
        server: ServerFacts {
            path: "/usr/sbin/mariadbd".into(),
            flavour: "mariadb".into(),
            version: "10.11.14-MariaDB (synthetic)".into(),
            options: shapes.iter().map(|shape| (shape.name.to_owned(), option_lines(shape))).collect(),
            ..ServerFacts::default()
        },
        trials,
    }
}

fn option_lines(shape: &Shape) -> Vec<String> {
    let common = ["innodb_flush_neighbors=0", "innodb_io_capacity=300", "socket=/run/somewhere"];
    common.iter().chain(shape.options).map(|line| (*line).to_owned()).collect()
}

fn experiment(shapes: &[Shape], repeats: u32, seconds: u32, seed: u64) -> Experiment {
    let arm = |shape: &Shape| Arm {
        name: shape.name.into(),
        options: vec![("setup".into(), shape.name.into())],
        volumes: BTreeMap::from([(Role::Data, shape.volume.into())]),
        settings: settings(shape),
        server: None,
        topology: Topology::default(),
        instance: InstancePlan { kind: Some("r5.large".into()), ..InstancePlan::default() },
        load: LoadPlan {
            workload: LoadKind::Sysbench(Workload::ReadWrite),
            connections: 128,
            round_trip_us: 0,
            arrival: Arrival::Closed,
            distribution: Distribution::Uniform,
            mix: Mix::default(),
            isolation: Isolation::default(),
            wait: WaitMode::None,
            statements: Statements::default(),
        },
        batch: None,
        backup: None,
        measure_s: seconds,
        warmup: WarmupPlan { read_tables: true, lead_in_s: 20, lead_in_speed: 4, settle_s: 5 },
        crash: None,
        optional: false,
    };
    // The place of an arm in the file makes its settings its own.
    fn settings(shape: &Shape) -> Settings {
        let mut settings = Settings::default();
        settings.set("io_capacity", &format!("{}", 200 + shape.name.len())).unwrap();
        settings.set("io_capacity_max", &format!("{:.0}", 2_000.0 + shape.tps)).unwrap();
        settings
    }
    Experiment {
        name: "synthetic".into(),
        title: "Is the tuned server faster than the default one? (synthetic data)".into(),
        question: "What the settings of the whitepaper are worth on one volume. Nothing here was measured."
            .into(),
        source: "No one's measurement: figures drawn from a seed".into(),
        scale: "1/8 of nothing".into(),
        data: DataPlan { tables: 1, rows: 1_250_000, aged: true, warehouses: None, lengths: None },
        trial: TrialPlan { repeats },
        arms: shapes.iter().map(arm).collect(),
        comparisons: (1..shapes.len())
            .map(|arm| Comparison { axis: "setup".into(), arm, baseline: 0 })
            .collect(),
        claims: Vec::new(),
        gain: None,
        region: None,
        over_limit: false,
        left_out: Vec::new(),
        left_to_full: Vec::new(),
        seed,
    }
}

fn trial(shape: &Shape, repeat: u32, seconds: u32, draw: &mut Draw) -> Trial {
    let level = draw.near(0.012);
    let seconds: Vec<Second> = (1..=seconds).map(|t| second(shape, t, level, draw)).collect();
    Trial {
        arm: shape.name.into(),
        repeat,
        started_ns: 1_790_000_000_000_000_000 + u64::from(repeat) * 90_000_000_000,
        took_s: seconds.len() as f64 + 31.5,
        outcome: Outcome::Measured,
        load: Some(load(shape, draw, seconds.len() as f64).into()),
        seconds,
        notes: Vec::new(),
        batch: None,
        promotion: None,
        backup: None,
    }
}

fn second(shape: &Shape, t: u32, level: f64, draw: &mut Draw) -> Second {
    let gone = shape.after.filter(|(_, at)| t > *at);
    let tps = gone.map_or(shape.tps, |(after, _)| after) * level * draw.near(0.06);
    let response = 128.0 / tps * 1e6;
    let volume = volume(shape, t, tps, draw);
    Second {
        t_s: f64::from(t),
        load: LoadSecond {
            tps,
            qps: tps * 20.0,
            p50_us: response * 0.8 * draw.near(0.05),
            p95_us: response * 2.1 * draw.near(0.1),
            p99_us: response * 3.4 * draw.near(0.15),
            p99_9_us: response * 5.0 * draw.near(0.15),
            max_us: response * 6.0,
            errors: 0,
        },
        volumes: BTreeMap::from([(Role::Data, volume)]),
        server: Some(server(t, tps, draw)),
        host: HostSecond {
            server_cpus: 0.2 + tps * 0.002,
            load_cpus: 0.05 + tps * 0.000_2,
            busy_cpus: 0.45 + tps * 0.002_4,
            steal_cpus: 0.01 * draw.even(),
            memory_bytes: 1.3e9,
            pacing_p99_us: 60.0 * draw.near(0.1),
            sampler_cpus: 0.004,
        },
        replica: None,
        replica_volumes: Vec::new(),
    }
}

fn volume(shape: &Shape, t: u32, tps: f64, draw: &mut Draw) -> VolumeSecond {
    let ios = tps * shape.ios * draw.near(0.03);
    let credits = shape.after.map(|(_, at)| (0.02 * (1.0 - f64::from(t) / f64::from(at))).max(0.0));
    let limited = 0.97 * draw.near(0.01);
    VolumeSecond {
        read_iops: ios * 0.3,
        write_iops: ios * 0.7,
        consumed_iops: ios,
        read_mib: ios * 0.3 * 16.0 / 1024.0,
        write_mib: ios * 0.7 * 18.0 / 1024.0,
        read_us: 9e6 / ios * draw.near(0.1),
        write_us: 11e6 / ios * draw.near(0.1),
        queue: 12.0 * draw.near(0.1),
        flushes: 0.0,
        credits,
        limited: limited.min(1.0),
        limits: LimitShares { volume_iops: limited.min(1.0), ..LimitShares::default() },
    }
}

fn server(t: u32, tps: f64, draw: &mut Draw) -> ServerSecond {
    ServerSecond {
        checkpoint_age: Some(48e6 + 6e6 * (f64::from(t) / 7.0).sin()),
        checkpoint_age_max: Some(60e6),
        dirty_pages: Some(5_200.0 * draw.near(0.03)),
        data_pages: Some(8_000.0),
        page_reads: Some(tps * 0.4),
        page_requests: Some(tps * 120.0),
        page_writes: Some(tps * 1.2),
        lru_flushed: Some(tps * 0.3 * draw.near(0.2)),
        list_flushed: Some(tps * 0.9 * draw.near(0.2)),
        wait_free: Some(0.0),
        redo_bytes: Some(tps * 5_300.0),
        redo_syncs: Some(tps * 0.2),
        data_syncs: Some(3.0 * draw.even()),
        log_waits: Some(0.0),
        doublewrite_pages: Some(tps * 1.2),
        row_lock_waits: Some(2.0 * draw.even()),
        threads_running: Some(120.0),
        ..ServerSecond::default()
    }
}

fn load(shape: &Shape, draw: &mut Draw, elapsed_s: f64) -> RunReport {
    let median = 128.0 / shape.tps * 0.8e6;
    let events = shape.tps * elapsed_s;
    // A curve with a tail: the share above falls by ten while the time grows by 1.8.
    let steps = (0..300).map(|step| f64::from(step) / 100.0);
    let mut left = events;
    let histogram = steps
        .map(|decade| {
            let above = events * 0.5 * 10_f64.powf(-decade * 1.6);
            let count = (left - above).max(0.0).round();
            left -= count;
            Bucket { up_to_us: median * 1.8_f64.powf(decade * 1.6) * draw.near(0.001), count: whole(count) }
        })
        .collect();
    let mut report = empty_report();
    report.elapsed_s = elapsed_s;
    report.totals.events = whole(events);
    report.response = Latency {
        count: whole(events),
        p50_us: median,
        p95_us: median * 3.5,
        p99_us: median * 6.0,
        ..Latency::default()
    };
    report.histogram = histogram;
    report
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of a synthetic run")]
fn whole(value: f64) -> u64 {
    value as u64
}

fn empty_report() -> RunReport {
    RunReport {
        options: RunOptions::new(Workload::ReadWrite),
        server: ebbtide_load::ServerInfo::default(),
        ended: Ended::Time,
        elapsed_s: 0.0,
        totals: ebbtide_load::Totals::default(),
        response: Latency::default(),
        percentile_us: 0.0,
        service: None,
        omission: None,
        open_loop: None,
        generator: ebbtide_load::Generator { loops: 1, lag: Latency::default(), disqualified: None },
        client: ebbtide_load::ClientUse::default(),
        fairness: ebbtide_load::Fairness::default(),
        statements: Vec::new(),
        errors: Vec::new(),
        ledger_records: 0,
        samples: Vec::new(),
        histogram: Vec::new(),
    }
}

/// Connections of [`curve`].
pub const COUNTS: [u32; 4] = [1, 16, 128, 1024];

/// Arms over connections, on two volumes and with the doublewrite buffer on and off: off carries twice as much on
/// `narrow` from 16 connections on, and as much as on everywhere else.
pub fn curve(repeats: u32, seconds: u32, seed: u64) -> LabRun {
    let mut shapes = Vec::new();
    let mut options = Vec::new();
    for volume in ["wide", "narrow"] {
        for count in COUNTS {
            for doublewrite in ["on", "off"] {
                let gains = volume == "narrow" && doublewrite == "off" && count >= 16;
                let level = if count == 1 { 90.0 } else { 200.0 };
                let name: &'static str =
                    Box::leak(format!("{volume} / {count} / {doublewrite}").into_boxed_str());
                shapes.push(Shape {
                    name,
                    volume: if volume == "wide" {
                        "gp3:size=100GiB,throughput=500"
                    } else {
                        "gp3:size=100GiB"
                    },
                    options: &[],
                    tps: if gains { 2.0 * level } else { level },
                    after: None,
                    ios: if gains { 4.0 } else { 8.0 },
                });
                options.push((volume, count, doublewrite));
            }
        }
    }
    let mut run = run(&shapes, repeats, seconds, seed);
    let arms = &mut run.experiment.arms;
    for (arm, (volume, count, doublewrite)) in arms.iter_mut().zip(options) {
        let option = |axis: &str, option: &str| (axis.to_owned(), option.to_owned());
        arm.options = vec![
            option("volume", volume),
            option("connections", &count.to_string()),
            option("doublewrite", doublewrite),
        ];
        arm.settings = Settings::default();
        arm.settings.set("doublewrite", doublewrite).unwrap();
        arm.load.connections = count;
    }
    let pairs = (1..shapes.len()).step_by(2);
    run.experiment.comparisons =
        pairs.map(|arm| Comparison { axis: "doublewrite".into(), arm, baseline: arm - 1 }).collect();
    run
}
