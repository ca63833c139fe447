//! Crash runs that never happened, for tests: every figure is drawn from a seed.

use std::collections::BTreeMap;

use ebbtide_lab::experiment::{
    Arm, Canary, Comparison, CrashPlan, End, Experiment, Fault, Moment, Role, ServerRole,
};
use ebbtide_lab::record::{HostFacts, ServerFacts};
use ebbtide_lab::summary::fixture;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::record::{
    Corruption, CrashRun, Cut, CutCpu, CuttingCpu, FileKind, InFlight, Loss, PageFound, PageState, Recovery,
    Resumed, Stint, Throughput, Took, TornWrite, Verdict,
};

/// How an arm fares, of a hundred cuts.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) volume: &'static str,
    pub(crate) fs: &'static str,
    pub(crate) options: &'static [&'static str],
    pub(crate) end: End,
    pub(crate) fault: Option<Fault>,
    pub(crate) canary: Option<Canary>,
    pub(crate) role: ServerRole,
    pub(crate) tps: f64,
    pub(crate) corrupt: u32,
    pub(crate) lost: u32,
    pub(crate) binlog: u32,
    pub(crate) partial: u32,
    pub(crate) unverified: u32,
    pub(crate) broken: u32,
    /// Within which time commits are lost, s.
    pub(crate) window_s: f64,
}

const SAFE: Shape = Shape {
    name: "",
    volume: "gp3:size=40GiB",
    fs: "xfs",
    options: &["innodb_doublewrite=ON", "innodb_flush_log_at_trx_commit=1", "sync_binlog=1"],
    end: End::PowerCut,
    fault: None,
    canary: None,
    role: ServerRole::Primary,
    tps: 1140.0,
    corrupt: 0,
    lost: 0,
    binlog: 0,
    partial: 0,
    unverified: 0,
    broken: 0,
    window_s: 0.0,
};

/// Arms of every kind, as an operator would compare them, and the three canaries.
pub(crate) const PLAUSIBLE: [Shape; 9] = [
    Shape { name: "doublewrite on, 4 KiB tearing", ..SAFE },
    Shape {
        name: "doublewrite off, 16 KiB atomic",
        volume: "gp3:size=40GiB,torn-write-prevention=16KiB",
        fs: "ext4-bigalloc",
        options: &["innodb_doublewrite=OFF", "innodb_flush_log_at_trx_commit=1", "sync_binlog=1"],
        tps: 1395.0,
        ..SAFE
    },
    Shape {
        name: "doublewrite off, 4 KiB tearing",
        options: &["innodb_doublewrite=OFF", "innodb_flush_log_at_trx_commit=1", "sync_binlog=1"],
        tps: 1402.0,
        corrupt: 61,
        ..SAFE
    },
    Shape {
        name: "flush at commit 2",
        options: &["innodb_doublewrite=ON", "innodb_flush_log_at_trx_commit=2", "sync_binlog=0"],
        tps: 2210.0,
        lost: 88,
        binlog: 23,
        unverified: 2,
        window_s: 1.0,
        ..SAFE
    },
    Shape {
        name: "flush at commit 0",
        options: &["innodb_doublewrite=ON", "innodb_flush_log_at_trx_commit=0", "sync_binlog=1000"],
        tps: 2395.0,
        lost: 95,
        binlog: 40,
        partial: 5,
        window_s: 1.3,
        ..SAFE
    },
    Shape { name: "kill -9", end: End::Kill, ..SAFE },
    Shape {
        name: "canary: answers early",
        fault: Some(Fault::AnswerEarly),
        canary: Some(Canary::AnswersEarly),
        lost: 70,
        corrupt: 10,
        window_s: 0.02,
        ..SAFE
    },
    Shape {
        name: "canary: ignores flushes",
        volume: "nvme-consumer",
        fault: Some(Fault::IgnoreFlush),
        canary: Some(Canary::IgnoresFlushes),
        lost: 40,
        corrupt: 45,
        window_s: 4.0,
        ..SAFE
    },
    Shape {
        name: "canary: torn pages",
        options: &["innodb_doublewrite=OFF", "innodb_flush_log_at_trx_commit=1", "sync_binlog=1"],
        canary: Some(Canary::TornPages),
        corrupt: 55,
        ..SAFE
    },
];

/// Replicas with a primary, and their canary after the others.
pub(crate) const REPLICAS: [Shape; 7] = [
    PLAUSIBLE[0],
    Shape { name: "replica by position", role: ServerRole::Replica, tps: 355.0, broken: 97, ..SAFE },
    Shape { name: "replica by GTID", role: ServerRole::Replica, tps: 371.0, ..SAFE },
    PLAUSIBLE[6],
    PLAUSIBLE[7],
    PLAUSIBLE[8],
    Shape {
        name: "canary: stale position",
        canary: Some(Canary::StalePosition),
        role: ServerRole::Replica,
        broken: 100,
        ..SAFE
    },
];

/// A run of these arms with so many cuts of each, canaries with a tenth of them.
pub(crate) fn plausible(shapes: &[Shape], cuts: u32, seed: u64) -> CrashRun {
    let mut draw = Draw::new(seed);
    let mut run = header(shapes, cuts);
    for shape in shapes {
        let cuts = planned(shape, cuts);
        for repeat in 0..3 {
            let range = cuts * repeat / 3..cuts * (repeat + 1) / 3;
            run.stints.push(stint(shape, repeat, range.end - range.start, &mut draw));
            run.cuts.extend(range.map(|number| cut(shape, repeat, number, &mut draw)));
        }
    }
    run
}

fn planned(shape: &Shape, cuts: u32) -> u32 {
    if shape.canary.is_some() { cuts.div_ceil(10) } else { cuts }
}

/// The same without stints and cuts.
pub(crate) fn header(shapes: &[Shape], cuts: u32) -> CrashRun {
    let experiment = experiment(shapes, cuts);
    let options = shapes.iter().map(|shape| {
        let lines = shape.options.iter().map(|line| (*line).to_owned());
        (
            shape.name.to_owned(),
            lines.chain(["innodb_buffer_pool_size=64M", "log_bin=/binlog/log"].map(str::to_owned)).collect(),
        )
    });
    CrashRun {
        started_ns: 1_790_000_000_000_000_000,
        command: "ebbtide crash durability --seed 7".to_owned(),
        ebbtide: "0.1.0".to_owned(),
        overrides: None,
        host: HostFacts {
            cpus: 2,
            cpu_model: "Made up".to_owned(),
            memory_bytes: 24 << 30,
            kernel: "6.1.0".to_owned(),
            ..HostFacts::default()
        },
        server: ServerFacts {
            path: "/usr/sbin/mariadbd".to_owned(),
            flavour: "mariadb".to_owned(),
            version: "mariadbd  Ver 10.11.19-MariaDB for debian-linux-gnu on x86_64".to_owned(),
            options: options.collect::<BTreeMap<_, _>>(),
            ..ServerFacts::default()
        },
        experiment,
        stints: Vec::new(),
        cuts: Vec::new(),
        gain: None,
    }
}

fn experiment(shapes: &[Shape], cuts: u32) -> Experiment {
    let names: Vec<&str> = shapes.iter().map(|shape| shape.name).collect();
    let mut experiment = fixture::experiment(&names);
    experiment.name = "durability".to_owned();
    experiment.title = "What a power cut costs".to_owned();
    experiment.question =
        "Which transactions and pages does a power cut cost under each setting, and what does the risk buy?"
            .to_owned();
    for (arm, shape) in experiment.arms.iter_mut().zip(shapes) {
        arm.volumes.insert(Role::Data, shape.volume.to_owned());
        arm.instance.fs = shape.fs.to_owned();
        arm.options = vec![("arm".to_owned(), shape.name.to_owned())];
        let Shape { role, end, fault, canary, .. } = *shape;
        arm.crash =
            Some(CrashPlan { role, cuts: planned(shape, cuts), end, fault, canary, ..CrashPlan::default() });
    }
    let asked = |arm: &Arm| arm.crash.as_ref().is_some_and(|crash| crash.canary.is_none());
    let others = experiment.arms.iter().enumerate().filter(|(_, arm)| asked(arm));
    let first = |arm: usize| shapes.iter().position(|shape| shape.role == shapes[arm].role).unwrap();
    experiment.comparisons = others
        .map(|(arm, _)| Comparison { axis: "arm".to_owned(), arm, baseline: first(arm) })
        .filter(|one| one.arm != one.baseline)
        .collect();
    experiment
}

pub(crate) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Evenly between 0 and 1.
    fn even(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }

    /// A whole number below `end`.
    fn below(&mut self, end: u32) -> u32 {
        self.0.next_u32() % end
    }

    /// Whether it is so, in so many of a hundred cases.
    fn of_hundred(&mut self, cases: u32) -> bool {
        self.below(100) < cases
    }
}

fn stint(shape: &Shape, repeat: u32, cuts: u32, draw: &mut Draw) -> Stint {
    let tps = shape.tps * (0.985 + 0.03 * draw.even());
    Stint {
        arm: shape.name.to_owned(),
        repeat,
        started_ns: 1_790_000_000_000_000_001 + u64::from(repeat),
        took_s: 25.0 + 0.9 * f64::from(cuts),
        cutting_s: 0.81 * f64::from(cuts),
        verified: cuts,
        cutting_cpu: Some(CuttingCpu {
            seconds: 0.81 * f64::from(cuts),
            cpus: 2,
            busy_s: 1.4 * f64::from(cuts),
            steal_s: 0.0,
            servers_s: 0.42 * f64::from(cuts),
            load_s: 0.11 * f64::from(cuts),
            tester_s: 0.3 * f64::from(cuts),
        }),
        throughput: Some(Throughput {
            seconds: 15.0,
            tps,
            p50_us: Some(11_000.0),
            p95_us: Some(19_500.0),
            p99_us: Some(31_000.0),
            write_iops: 2.4 * tps,
            write_bytes_s: 30_000.0 * tps,
            disqualified: None,
        }),
        failed: None,
        notes: Vec::new(),
    }
}

/// A cut with which nothing is wrong.
pub(crate) fn clean(arm: &str, number: u32) -> Cut {
    Cut {
        arm: arm.to_owned(),
        repeat: 0,
        number,
        seed: 0x9e37_79b9_7f4a_7c15 ^ u64::from(number),
        moment: Moment::Random,
        met: true,
        at_s: 12.25,
        paused_us: 212.5,
        in_flight: Vec::new(),
        writes_in_flight: 0,
        cached_units_lost: 0,
        torn_before: Vec::new(),
        torn_writes: Vec::new(),
        verdicts: Vec::new(),
        loss: None,
        recovery: Some(Recovery {
            seconds: 0.31,
            reads: 420,
            read_bytes: 9_800_000,
            writes: 160,
            written_bytes: 5_200_000,
            doublewrite_pages: 0,
            rolled_back: 9,
            failed_start: None,
        }),
        resumed: None,
        took: Took {
            image: 0.004,
            attach: 0.041,
            file_system: 0.118,
            pages: 0.162,
            start: 0.43,
            ask: 0.139,
            resume: 0.0,
            clear: 0.087,
            total: 0.981,
            awaited: Some(0.03125),
            cpu: Some(CutCpu { start: 0.25, ask: 0.125, checker: 0.0625 }),
        },
        kept: false,
    }
}

fn cut(shape: &Shape, repeat: u32, number: u32, draw: &mut Draw) -> Cut {
    let moments = CrashPlan::default().moments;
    let moment = moments[usize::try_from(number).unwrap() % moments.len()];
    let mut cut = Cut {
        repeat,
        seed: draw.0.next_u64(),
        moment,
        met: moment == Moment::Random || draw.of_hundred(93),
        at_s: 16.0 + 0.81 * f64::from(number),
        paused_us: 150.0 + 200.0 * draw.even(),
        ..clean(shape.name, number)
    };
    in_flight(&mut cut, shape, draw);
    if let Some(recovery) = &mut cut.recovery {
        recovery.seconds = 0.24 + 0.35 * draw.even() * draw.even();
        recovery.reads = u64::from(300 + draw.below(400));
        recovery.rolled_back = u64::from(draw.below(16));
    }
    let guarded = shape.options.contains(&"innodb_doublewrite=ON");
    if guarded && shape.fs == "xfs" && draw.of_hundred(30) {
        cut.torn_before.push(invalid("bank/history.ibd", 1201));
        cut.recovery.iter_mut().for_each(|recovery| recovery.doublewrite_pages = 1);
    }
    add_verdicts(&mut cut, shape, draw);
    cut
}

fn in_flight(cut: &mut Cut, shape: &Shape, draw: &mut Draw) {
    let write = |kind, file: &str, offset, units: u32, new_units: u32| InFlight {
        role: Role::Data,
        kind,
        file: file.to_owned(),
        offset,
        len: u64::from(units) * 4096,
        units: units.into(),
        new_units: new_units.into(),
    };
    cut.in_flight = vec![write(FileKind::Redo, "ib_logfile0", 41_984, 1, draw.below(2))];
    for page in 0..draw.below(4) {
        let units = if shape.fs == "ext4-bigalloc" { 1 } else { 4 };
        let new = if shape.corrupt == 0 { units * draw.below(2) } else { draw.below(units + 1) };
        cut.in_flight.push(write(
            FileKind::Page,
            "bank/ballast.ibd",
            u64::from(310 + page) * 16_384,
            units,
            new,
        ));
    }
    if draw.of_hundred(30) {
        cut.in_flight.push(write(FileKind::Doublewrite, "ibdata1", 1_048_576, 16, draw.below(17)));
    }
    if draw.of_hundred(12) {
        cut.in_flight.push(write(FileKind::Binlog, "binlog.000003", 77_824, 1, 0));
    }
    cut.writes_in_flight = u64::try_from(cut.in_flight.len()).unwrap();
}

fn invalid(file: &str, page: u64) -> PageFound {
    PageFound { file: file.to_owned(), page, message: format!("Fail: page::{page} invalid"), copy: None }
}

/// A page that innochecksum names.
pub(crate) fn page_found() -> PageFound {
    invalid("bank/history.ibd", 1201)
}

/// A page of which the image has the first part.
pub(crate) fn torn_write() -> TornWrite {
    let state = |lsn, lsn_tail| PageState { lsn, lsn_tail, kind: "index".to_owned(), blank: false };
    TornWrite {
        file: "bank/ballast.ibd".to_owned(),
        page: 311,
        new: vec![true, true, false, false],
        before: state(5_731_204, 5_731_204),
        after: state(5_902_118, 5_902_118),
        found: state(5_902_118, 5_731_204),
    }
}

/// A replica that applies transactions a second time.
pub(crate) fn replication_broken() -> Verdict {
    Verdict::ReplicationBroken {
        messages: vec!["error 1062: Duplicate entry '3-881' for key 'PRIMARY'".to_owned()],
        place: "applied up to binlog.000001:4711 of the source's log".to_owned(),
    }
}

/// A server that does not start.
pub(crate) fn corrupt() -> Verdict {
    Verdict::Corrupt {
        how: Corruption::NoStart,
        messages: [
            "[ERROR] InnoDB: Unable to apply log to corrupted page 311 in file ./bank/ballast.ibd",
            "[ERROR] InnoDB: Plugin initialization aborted with error Data structure corruption",
            "[ERROR] Plugin 'InnoDB' registration as a STORAGE ENGINE failed.",
        ]
        .map(str::to_owned)
        .to_vec(),
        pages: vec![invalid("bank/ballast.ibd", 311)],
    }
}

fn add_verdicts(cut: &mut Cut, shape: &Shape, draw: &mut Draw) {
    if draw.of_hundred(shape.corrupt) {
        cut.torn_before = vec![invalid("bank/ballast.ibd", 311)];
        cut.torn_writes = vec![torn_write()];
        cut.verdicts.push(corrupt());
        cut.recovery = None;
        cut.kept = true;
        return;
    }
    if draw.of_hundred(shape.unverified) {
        cut.verdicts.push(Verdict::Unverified {
            why: "innochecksum ended by signal 9".to_owned(),
            log: vec!["[Note] InnoDB: Starting crash recovery from checkpoint LSN=5711884".to_owned()],
        });
    }
    if draw.of_hundred(shape.lost) {
        let seconds = shape.window_s * draw.even();
        let clients: Vec<(u32, u64, u64)> =
            (0..4).map(|client| (client, 881 + u64::from(draw.below(12)), 880)).collect();
        let transactions = clients.iter().map(|(_, acknowledged, recovered)| acknowledged - recovered).sum();
        cut.loss = Some(Loss { transactions, seconds, clients });
        cut.verdicts.push(Verdict::LostCommits);
    }
    if draw.of_hundred(shape.binlog) {
        cut.verdicts.push(Verdict::BinlogDisagrees {
            missing_in_binlog: u64::from(draw.below(9)),
            missing_in_tables: 1 + u64::from(draw.below(5)),
            differences: vec!["client 3: tables up to 903, binary log up to 905".to_owned()],
        });
    }
    if shape.role == ServerRole::Replica {
        let broken = draw.of_hundred(shape.broken);
        cut.resumed = Some(Resumed {
            place: "applied up to binlog.000001:4711 of the source's log".to_owned(),
            to_fetch_again: u64::from(draw.below(3)),
            caught_up_s: (!broken).then_some(0.4),
        });
        cut.verdicts.extend(broken.then(replication_broken));
    }
    if draw.of_hundred(shape.partial) {
        cut.verdicts.push(Verdict::Partial {
            findings: vec!["order: client 2 has transaction 880 and lacks 879".to_owned()],
        });
    }
}
