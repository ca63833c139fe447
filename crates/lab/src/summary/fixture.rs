//! Runs as a lab records them, made up for tests.

use std::collections::BTreeMap;

use ebbtide_load::tpcc::{Isolation, Statements, WaitMode};
use ebbtide_load::{Arrival, Distribution, Mix, RunReport, Workload};
use ebbtide_mysql::Settings;

use crate::experiment::{
    Arm, Comparison, DataPlan, Experiment, InstancePlan, LoadKind, LoadPlan, Role, Topology, TrialPlan,
    WarmupPlan,
};
use crate::record::{
    HostFacts, LabRun, LoadSecond, Outcome, Second, ServerFacts, ServerSecond, Trial, VolumeSecond,
};

/// An experiment whose arms differ in the size of their volume, each held against the first one.
pub fn experiment(names: &[&str]) -> Experiment {
    let arm = |(index, name): (usize, &&str)| Arm {
        name: (*name).to_owned(),
        options: vec![("volume".to_owned(), (*name).to_owned())],
        volumes: BTreeMap::from([(Role::Data, format!("gp2:size={}GiB", 100 + index))]),
        settings: Settings::default(),
        server: None,
        topology: Topology::default(),
        instance: InstancePlan::default(),
        load: LoadPlan {
            workload: LoadKind::Sysbench(Workload::ReadWrite),
            connections: 16,
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
        measure_s: 60,
        warmup: WarmupPlan { read_tables: true, lead_in_s: 0, lead_in_speed: 4, settle_s: 0 },
        crash: None,
        optional: false,
    };
    Experiment {
        name: "test".to_owned(),
        title: "Made up".to_owned(),
        question: String::new(),
        source: String::new(),
        scale: String::new(),
        data: DataPlan { tables: 1, rows: 1000, aged: false, warehouses: None, lengths: None },
        trial: TrialPlan { repeats: 3 },
        arms: names.iter().enumerate().map(arm).collect(),
        comparisons: (1..names.len())
            .map(|arm| Comparison { axis: "volume".to_owned(), arm, baseline: 0 })
            .collect(),
        claims: Vec::new(),
        gain: None,
        region: None,
        over_limit: false,
        left_out: Vec::new(),
        left_to_full: Vec::new(),
        seed: 7,
    }
}

/// A run of it without trials.
pub fn run(names: &[&str]) -> LabRun {
    LabRun {
        started_ns: 1_790_000_000_000_000_000,
        command: "ebbtide run test --seed 7".to_owned(),
        ebbtide: "0.1.0".to_owned(),
        experiment: experiment(names),
        overrides: None,
        host: HostFacts { cpus: 2, ..HostFacts::default() },
        server: ServerFacts { flavour: "mariadb".to_owned(), ..ServerFacts::default() },
        trials: Vec::new(),
    }
}

/// A second of `tps` transactions on a volume at its IOPS limit of 3,000.
pub fn second(t: u32, tps: f64) -> Second {
    let volume = VolumeSecond {
        read_iops: 1000.0,
        write_iops: 2000.0,
        consumed_iops: 3000.0,
        read_mib: 16.0,
        write_mib: 32.0,
        read_us: 900.0,
        write_us: 1100.0,
        queue: 3.1,
        flushes: 50.0,
        credits: None,
        limited: 0.99,
        limits: crate::record::LimitShares { volume_iops: 0.99, ..Default::default() },
    };
    Second {
        t_s: f64::from(t),
        load: LoadSecond {
            tps,
            qps: 20.0 * tps,
            p50_us: 9e6 / tps,
            p95_us: 16e6 / tps,
            p99_us: 24e6 / tps,
            p99_9_us: 40e6 / tps,
            max_us: 60e6 / tps,
            errors: 0,
        },
        volumes: BTreeMap::from([(Role::Data, volume)]),
        server: Some(ServerSecond {
            checkpoint_age: Some(6e7),
            checkpoint_age_max: Some(8e7),
            redo_bytes: Some(5000.0 * tps),
            page_reads: Some(1000.0),
            ..ServerSecond::default()
        }),
        host: crate::record::HostSecond {
            server_cpus: 0.5,
            load_cpus: 0.1,
            busy_cpus: 0.8,
            ..Default::default()
        },
        replica: None,
        replica_volumes: Vec::new(),
    }
}

/// A measured trial from its rates.
pub fn trial(arm: &str, repeat: u32, rates: &[f64]) -> Trial {
    Trial {
        arm: arm.to_owned(),
        repeat,
        started_ns: 1_790_000_000_000_000_001 + u64::from(repeat),
        took_s: 80.25,
        outcome: Outcome::Measured,
        load: None,
        seconds: (1..).zip(rates).map(|(t, tps)| second(t, *tps)).collect(),
        batch: None,
        promotion: None,
        backup: None,
        notes: Vec::new(),
    }
}

/// A report of the load with these percentiles.
pub fn report(p95_us: f64, p99_us: f64) -> RunReport {
    let latency = serde_json::json!({
        "count": 100, "min_us": 1.0, "mean_us": 2.5, "p50_us": p95_us / 2.0, "p90_us": p95_us * 0.9,
        "p95_us": p95_us, "p99_us": p99_us, "p99_9_us": p99_us * 1.5, "p99_99_us": p99_us * 2.0,
        "max_us": p99_us * 3.0,
    });
    let value = serde_json::json!({
        "options": ebbtide_load::RunOptions::new(Workload::ReadWrite),
        "server": { "version": "test", "endpoint": "socket", "tls": false },
        "ended": { "reason": "time" },
        "elapsed_s": 60.1,
        "totals": { "events": 100, "reads": 1400, "writes": 400, "other": 200, "errors": 3, "reconnects": 0 },
        "response": latency,
        "percentile_us": 1.0,
        "generator": { "loops": 1, "lag": latency },
        "client": { "cpu_s": 0.1, "cpu_us_per_query": 5.0, "peak_rss_mib": 20.0 },
        "fairness": { "events_mean": 1.0, "events_stddev": 0.0, "busy_mean_s": 1.0, "busy_stddev_s": 0.0 },
        "statements": [],
        "errors": [{ "code": 1213, "count": 3, "retried": 3, "message": "Deadlock" }],
        "ledger_records": 0,
        "samples": [],
        "histogram": [],
    });
    serde_json::from_value(value).unwrap()
}
