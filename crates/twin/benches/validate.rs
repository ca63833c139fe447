//! How far the model of InnoDB is from published results, and how fast it runs. Run with `./dev bench twin`.
//!
//! S9 is sysbench-tpcc on two gp2 volumes with five buffer pools, and with less data (benches/published/s9.toml). The
//! model is calibrated on one row and predicts the others. With `--write` the tables go to docs/accuracy.md, and the
//! comparisons to the file that the intervals of `ebbtide predict` come from. `--speed` only shows how fast the model is, `--alone` only described workloads without a miss curve. A tiny run (`BENCH_TINY=1`, or under
//! `cargo test`) does the hour of one row in two minutes, and judges nothing.

#[path = "../../../benches/support/accuracy_plot.rs"]
mod plot;

use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use ebbtide_catalog::{Catalog, Spec};
use ebbtide_twin::accuracy::{self, Class, Comparison, Figure};
use ebbtide_twin::innodb::{
    Calibrating, Calibration, Costs, FileKind, MeasuredPoint, ModelLoad, ModelOutcome, ModelSetup, Trials,
    calibrate, run,
};
use ebbtide_twin::profile::{MachineFacts, PointTable, Profile};
use ebbtide_volume::{Array, Nanos};
use serde::Deserialize;

const HOUR: Nanos = Nanos::from_secs(3_600);
const HALF: Nanos = Nanos::from_secs(1_800);
const CLIENTS: u32 = 16;
/// Data of 1000 warehouses, GiB.
const DATA_GIB: f64 = 95.0;
const SEED: u64 = 1;
/// Redo and binary log of a transaction, KiB: what is written where the data fit in memory.
const LOGS_KIB: f64 = 10.0;
/// The interval of a described workload that lies outside of what was compared: a row determines the pages where half or twice as
/// many move its throughput by more.
const INTERVAL: (f64, f64) = (0.72, 1.44);
/// By how much the ends of credits may be off, percent.
const CREDITS_PCT: f64 = 10.0;
/// The row that calibrates, from 0: 600 GiB with a pool of 10 GiB. It was chosen before the model had run, since the end
/// of its credits is known best.
const CALIBRATED: usize = 1;

#[derive(Debug, Deserialize)]
struct Published {
    row: Vec<Row>,
    sweep: Vec<Sweep>,
}

#[derive(Debug, Clone, Deserialize)]
struct Row {
    volume: String,
    pool: String,
    tps: f64,
    read_kib: f64,
    written_kib: f64,
    cpu_pct: f64,
    /// 95th percentile of the whole hour.
    p95_ms: f64,
    credits_end_s: Option<f64>,
    /// Its volume had other credits at the start than the calibrated row's.
    #[serde(default)]
    other_start: bool,
    /// Its volume had so many credits that they lasted.
    #[serde(default)]
    burst: bool,
}

#[derive(Debug, Clone, Deserialize)]
struct Sweep {
    volume: String,
    tables: u32,
    tps: f64,
    p95_ms: f64,
}

/// A prediction beside what was measured.
#[derive(Default)]
struct Compared {
    label: String,
    measured: f64,
    predicted: f64,
    calibrated: bool,
    /// It belongs to the series with less data.
    less_data: bool,
    /// The buffer pool, times the data.
    pool: f64,
    /// Measured and predicted: the 95th percentile, us.
    p95_us: Option<(f64, f64)>,
    /// The same of other figures, where they are known.
    others: Vec<(Figure, f64, f64)>,
}

impl Compared {
    /// The rows of the file of comparisons.
    fn rows(&self, experiment: &str, class: Class, workload: &str) -> Vec<Comparison> {
        if self.calibrated {
            return Vec::new();
        }
        let mut figures = vec![(Figure::Tps, self.measured, self.predicted)];
        figures.extend(self.p95_us.map(|(measured, predicted)| (Figure::P95, measured, predicted)));
        figures.extend(&self.others);
        let row = |(figure, measured, predicted)| Comparison {
            experiment: if self.less_data {
                format!("{experiment}, less data")
            } else {
                experiment.to_owned()
            },
            arm: self.label.clone(),
            class,
            flavour: "mysql-5.7".to_owned(),
            workload: workload.to_owned(),
            clients: Some(CLIENTS),
            pool: self.pool,
            figure,
            predicted,
            measured,
        };
        figures.into_iter().map(row).collect()
    }

    fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

struct Bench {
    catalog: Catalog,
    profile: Profile,
    rows: Vec<Row>,
    sweep: Vec<Sweep>,
    hour: Nanos,
    half: Nanos,
}

impl Bench {
    fn new(profile: &str) -> Self {
        let published: Published =
            toml::from_str(include_str!("published/s9.toml")).expect("the rows are TOML");
        let mut profile = Profile::parse(profile).expect("the profile is one");
        profile.points.clear();
        let (hour, half) = if ebbtide_testing::tiny() {
            (Nanos::from_secs(120), Nanos::from_secs(60))
        } else {
            (HOUR, HALF)
        };
        Self { catalog: Catalog::builtin(), profile, rows: published.row, sweep: published.sweep, hour, half }
    }

    fn volume(&self, size: &str, credits: f64) -> Array {
        let spec = Spec::parse(&format!("gp2@2018:size={size}")).expect("a spec");
        let mut array = self.catalog.resolve(&spec).expect("gp2 was there in 2018").array(Nanos::ZERO);
        array.set_credit_share(credits, Nanos::ZERO);
        array
    }

    /// The measured point of a row, for calibration.
    fn point(&self, row: &Row) -> MeasuredPoint {
        let volume = format!("gp2@2018:size={}", row.volume);
        let table = PointTable {
            volume: Some(volume),
            clients: Some(CLIENTS),
            tps: Some(row.tps),
            reads: Some(row.read_kib / 16.0),
            writes: Some((row.written_kib - LOGS_KIB) / 32.0),
            cpu_pct: Some(row.cpu_pct),
            buffer_pool_size: Some(row.pool.clone()),
            ..PointTable::default()
        };
        let planned = Profile { points: vec![table], ..self.profile.clone() }
            .plan(MachineFacts::default(), SEED)
            .expect("a profile");
        let point = planned.points.into_iter().next().expect("the point that was given");
        point.clone().on(self.volume(&row.volume, if row.burst { 1.0 } else { 0.0 }).into(), None)
    }

    fn calibrated_on(&self, row: usize) -> Calibration {
        self.calibrated_by(&[self.point(&self.rows[row])])
    }

    fn calibrated_by(&self, points: &[MeasuredPoint]) -> Calibration {
        let planned = self.profile.plan(MachineFacts::default(), SEED).expect("a profile");
        let trials =
            Trials { machine: planned.machine, seed: SEED, settle: Nanos::from_secs(40), asked: None };
        let by = Calibrating { trials, given: planned.costs, cpu_given: false, interval: INTERVAL };
        calibrate(points, &by).expect("one row has all")
    }

    /// An hour from a cold pool, as the published runs; with tps of the time after `settle`.
    fn setup(
        &self,
        calibration: &Calibration,
        pool: &str,
        data: f64,
        volume: Array,
        settle: Nanos,
    ) -> ModelSetup {
        let mut profile = self.profile.clone();
        profile.server.buffer_pool_size = Some(pool.into());
        let point = PointTable {
            volume: Some("gp2".into()),
            clients: Some(CLIENTS),
            tps: Some(1.0),
            data_size: (data < 1.0).then(|| format!("{:.0}MiB", DATA_GIB * 1024.0 * data)),
            ..PointTable::default()
        };
        profile.points = vec![point];
        let planned = profile.plan(MachineFacts::default(), SEED).expect("a profile");
        ModelSetup {
            settings: planned.settings,
            shape: planned.points[0].shape.clone(),
            machine: planned.machine,
            costs: calibration.costs,
            load: ModelLoad { clients: CLIENTS, rate: None },
            volumes: volume.into(),
            instance: None,
            seed: SEED,
            duration: self.hour,
            settle,
            cold: true,
        }
    }

    /// The share of credits at the start with which those of the calibrated row end when they did.
    fn credits_at_start(&self, calibration: &Calibration) -> f64 {
        let row = &self.rows[CALIBRATED];
        let wanted = row.credits_end_s.expect("the calibrated row has an end of its credits");
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..if ebbtide_testing::tiny() { 1 } else { 7 } {
            let middle = f64::midpoint(low, high);
            let end = self.credits_end(calibration, row, middle);
            if end.is_some_and(|end| end < wanted) { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    }

    fn credits_end(&self, calibration: &Calibration, row: &Row, start: f64) -> Option<f64> {
        let outcome =
            run(self.setup(calibration, &row.pool, 1.0, self.volume(&row.volume, start), Nanos::ZERO));
        end_of_credits(&outcome)
    }

    fn rows_compared(&self, calibration: &Calibration, by: usize, start: f64) -> Vec<Compared> {
        let compare = |(n, row): (usize, &Row)| {
            let volume = self.volume(&row.volume, if row.burst { 1.0 } else { start });
            let outcome = run(self.setup(calibration, &row.pool, 1.0, volume.clone(), self.half));
            // The percentile was published of the whole hour.
            let hour = run(self.setup(calibration, &row.pool, 1.0, volume, Nanos::ZERO));
            Compared {
                label: format!("gp2 {}, pool {}", row.volume, row.pool),
                measured: row.tps,
                predicted: outcome.tps(),
                calibrated: n == by,
                pool: gib(&row.pool) / DATA_GIB,
                p95_us: Some((row.p95_ms * 1e3, p95_us(&hour))),
                others: others(row, &outcome, &hour),
                ..Compared::default()
            }
        };
        in_parallel(&self.rows.iter().enumerate().collect::<Vec<_>>(), |one| compare(*one))
    }

    /// Five minutes of a row in balance, with what the row `by` has calibrated.
    fn steady(&self, calibration: &Calibration, by: usize, (n, row): (usize, &Row)) -> Compared {
        let volume = self.volume(&row.volume, if row.burst { 1.0 } else { 0.0 });
        let setup = self.setup(calibration, &row.pool, 1.0, volume, Nanos::from_secs(40));
        let predicted = run(ModelSetup { duration: Nanos::from_secs(340), cold: false, ..setup }).tps();
        Compared {
            label: format!("gp2 {}, pool {}, by row {}", row.volume, row.pool, by + 1),
            measured: row.tps,
            predicted,
            calibrated: n == by,
            pool: gib(&row.pool) / DATA_GIB,
            ..Compared::default()
        }
    }

    fn sweep_compared(&self, calibration: &Calibration) -> Vec<Compared> {
        let compare = |sweep: &Sweep| {
            let data = f64::from(sweep.tables) / 10.0;
            let volume = self.volume(&sweep.volume, 1.0);
            let outcome = run(self.setup(calibration, "25GiB", data, volume, Nanos::ZERO));
            Compared {
                label: format!("gp2 {}, {} tables", sweep.volume, sweep.tables),
                measured: sweep.tps,
                predicted: outcome.tps(),
                less_data: true,
                pool: 25.0 / (DATA_GIB * data),
                p95_us: Some((sweep.p95_ms * 1e3, p95_us(&outcome))),
                ..Compared::default()
            }
        };
        in_parallel(&self.sweep, compare)
    }
}

/// Maps on as many threads as the machine has processors: each run is on its own.
fn in_parallel<T: Sync, U: Send>(all: &[T], map: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(place) else { return done };
            done.push((place, map(one)));
        }
    };
    let mut done: Vec<(usize, U)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a run does not panic")).collect()
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, mapped)| mapped).collect()
}

/// The published figures of a row beside the predicted ones: what was read and written, the processors, and the end of
/// credits, of a run that has it whole. That of a volume which started with credits of its own says nothing.
fn others(row: &Row, outcome: &ModelOutcome, hour: &ModelOutcome) -> Vec<(Figure, f64, f64)> {
    let mib_s = |kib: f64| kib / 1024.0 * row.tps;
    let all = outcome.bytes_per_second() / 1_048_576.0;
    let read = outcome.file(FileKind::DataRead).bytes as f64 / outcome.measured.as_secs_f64() / 1_048_576.0;
    let mut others = vec![
        (Figure::MibS, mib_s(row.read_kib + row.written_kib), all),
        (Figure::Reads, mib_s(row.read_kib), read),
        (Figure::Writes, mib_s(row.written_kib), all - read),
        (Figure::Cpu, row.cpu_pct, outcome.processors_busy * 100.0),
    ];
    let end = row.credits_end_s.filter(|_| !row.other_start).zip(end_of_credits(hour));
    others.extend(end.map(|(measured, predicted)| (Figure::CreditsEnd, measured, predicted)));
    others
}

fn end_of_credits(outcome: &ModelOutcome) -> Option<f64> {
    outcome.credits_end().map(Nanos::as_secs_f64)
}

fn gib(size: &str) -> f64 {
    ebbtide_volume::parse_size(size).expect("a size") as f64 / ebbtide_volume::GIB as f64
}

fn p95_us(outcome: &ModelOutcome) -> f64 {
    outcome.latency_at(0.95).map_or(f64::NAN, |latency| latency.0 as f64 / 1e3)
}

fn table(all: &[Compared]) -> String {
    let mut text = "| Row | Measured tps | Predicted | Error | Measured p95 | Predicted | Error |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for one in all {
        let mark = if one.calibrated { " (calibrated)" } else { "" };
        let error = one.error() * 100.0;
        let (measured, predicted) = one.p95_us.unwrap_or((f64::NAN, f64::NAN));
        let _ = writeln!(
            text,
            "| {}{mark} | {:.1} | {:.1} | {error:+.1}% | {:.0} ms | {:.0} ms | {:+.0}% |",
            one.label,
            one.measured,
            one.predicted,
            measured / 1e3,
            predicted / 1e3,
            (predicted / measured - 1.0) * 100.0
        );
    }
    text
}

/// Absolute errors of the predictions, rising, percent.
fn errors(all: &[Compared]) -> Vec<f64> {
    let mut errors: Vec<f64> =
        all.iter().filter(|one| !one.calibrated).map(|one| one.error().abs() * 100.0).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

fn median(rising: &[f64]) -> f64 {
    let middle = rising.len() / 2;
    if rising.len() % 2 == 1 { rising[middle] } else { f64::midpoint(rising[middle - 1], rising[middle]) }
}

/// One way to describe the workload, judged.
struct Judged {
    text: String,
    errors: Vec<f64>,
    /// Errors of the ends of credits, of rows that began as the calibrated one did, percent.
    ends: Vec<f64>,
    calibration: Calibration,
    comparisons: Vec<Comparison>,
}

fn judge(name: &str, experiment: &str, class: Class, bench: &Bench) -> Judged {
    let calibration = bench.calibrated_on(CALIBRATED);
    let start = bench.credits_at_start(&calibration);
    let mut all = bench.rows_compared(&calibration, CALIBRATED, start);
    all.extend(bench.sweep_compared(&calibration));
    let errors = errors(&all);
    let (middle, worst) = (median(&errors), errors[errors.len() - 1]);
    let workload = if class == Class::Observed { "observed" } else { "tpcc" };
    let mut text = format!("### {name}\n\n{}\n", table(&all));
    let _ = writeln!(
        text,
        "{} predictions: median error {middle:.1}%, worst {worst:.1}%. Costs: {:.0} us of a processor, reads {:.2} and \
         writes {:.2} times those of the workload.\n",
        errors.len(),
        calibration.costs.cpu_us,
        calibration.costs.reads,
        calibration.costs.writes,
    );
    text.push_str("| Credits end | Measured, s | Predicted, s | Error |\n|---|---|---|---|\n");
    let mut ends = Vec::new();
    for (n, row) in bench.rows.iter().enumerate().filter(|(_, row)| row.credits_end_s.is_some()) {
        let measured = row.credits_end_s.expect("it was filtered for");
        let end = bench.credits_end(&calibration, row, start);
        if !row.other_start {
            ends.push(end.map_or(f64::INFINITY, |end| (end / measured - 1.0).abs() * 100.0));
        }
        let error = end.map_or("-".to_owned(), |end| format!("{:+.1}%", (end / measured - 1.0) * 100.0));
        let end = end.map_or("-".to_owned(), |end| format!("{end:.0}"));
        let mark = if n == CALIBRATED {
            " (calibrated)"
        } else if row.other_start {
            " (started with other credits)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "| gp2 {}, pool {}{mark} | {measured:.0} | {end} | {error} |",
            row.volume, row.pool
        );
    }
    let _ = writeln!(
        text,
        "\nCredits at the start, from the calibrated row: {:.1}% of 5.4 million.\n",
        start * 100.0
    );
    let comparisons = all.iter().flat_map(|one| one.rows(experiment, class, workload)).collect();
    Judged { text, errors, ends, calibration, comparisons }
}

/// All rows with the workload described and nothing but the processor time of a transaction calibrated.
fn without_factors(bench: &Bench, calibration: &Calibration) -> (String, Vec<Comparison>) {
    let costs = Costs { reads: 1.0, writes: 1.0, ..calibration.costs };
    let plain = Calibration { costs, ..calibration.clone() };
    let start = bench.credits_at_start(&plain);
    let mut all = bench.rows_compared(&plain, usize::MAX, start);
    all.extend(bench.sweep_compared(&plain));
    let errors = errors(&all);
    let (middle, worst) = (median(&errors), errors[errors.len() - 1]);
    let text = format!(
        "### With TPC-C as it is described, and no factors on its pages\n\n{} predictions: median error {middle:.1}%, worst \
         {worst:.1}%.\n\n",
        errors.len()
    );
    let rows =
        all.iter().flat_map(|one| one.rows("Percona 2018, without factors", Class::Uncalibrated, "tpcc"));
    (text, rows.collect())
}

/// The errors of the ten rows where each row in turn calibrates, five minutes of each with a pool in its steady state.
fn each_in_turn(bench: &Bench) -> (String, Vec<Comparison>) {
    let mut text = "| Calibrated on | Median error of the other nine | Worst |\n|---|---|---|\n".to_owned();
    let mut all = Vec::new();
    for by in 0..bench.rows.len() {
        let calibration = bench.calibrated_on(by);
        let compared = in_parallel(&bench.rows.iter().enumerate().collect::<Vec<_>>(), |one| {
            bench.steady(&calibration, by, *one)
        });
        let errors = errors(&compared);
        let row = &bench.rows[by];
        let (middle, worst) = (median(&errors), errors[errors.len() - 1]);
        let _ = writeln!(text, "| gp2 {}, pool {} | {middle:.1}% | {worst:.1}% |", row.volume, row.pool);
        all.extend(
            compared
                .iter()
                .flat_map(|one| one.rows("Percona 2018, each row in turn", Class::Observed, "observed")),
        );
    }
    (text, all)
}

/// The errors of the ten rows with TPC-C as it is described, where each row in turn calibrates by its throughput and its processors
/// alone: no pages were counted, and no miss curve was measured. Five minutes of each in balance.
fn by_throughput_alone(bench: &Bench) -> (String, Vec<f64>, Vec<Comparison>) {
    let mut text =
        "| Calibrated on | Factor on pages | Its own error | Median error of the other nine | Worst |\n|---|---|---|---|---|\n"
            .to_owned();
    let (mut rows, mut all_errors) = (Vec::new(), Vec::new());
    let calibrations = in_parallel(&(0..bench.rows.len()).collect::<Vec<_>>(), |by| {
        let point = MeasuredPoint { reads: None, writes: None, ..bench.point(&bench.rows[*by]) };
        bench.calibrated_by(&[point])
    });
    for (by, calibration) in calibrations.iter().enumerate() {
        let compared = in_parallel(&bench.rows.iter().enumerate().collect::<Vec<_>>(), |one| {
            bench.steady(calibration, by, *one)
        });
        let errors = errors(&compared);
        let row = &bench.rows[by];
        let (middle, worst) = (median(&errors), errors[errors.len() - 1]);
        let _ = writeln!(
            text,
            "| gp2 {}, pool {} | {:.2} | {:+.1}% | {middle:.1}% | {worst:.1}% |",
            row.volume,
            row.pool,
            calibration.costs.reads,
            (calibration.residuals[0] - 1.0) * 100.0,
        );
        all_errors.extend(errors);
        let described = |one: &Compared| one.rows("Percona 2018, throughput alone", Class::Described, "tpcc");
        rows.extend(compared.iter().flat_map(described));
    }
    all_errors.sort_by(f64::total_cmp);
    let (middle, worst) = (median(&all_errors), all_errors[all_errors.len() - 1]);
    let _ =
        writeln!(text, "\n{} predictions: median error {middle:.1}%, worst {worst:.1}%.", all_errors.len());
    (text, all_errors, rows)
}

/// Processor time of this thread so far, s; none where the system does not report it.
fn processor_s() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<u64>().ok()? as f64 / 1e9)
}

/// An hour at 3,000 IOPS: the processor time that it takes, s.
fn hour_at_3000(bench: &Bench, calibration: &Calibration) -> f64 {
    let mut setup =
        bench.setup(calibration, "10GiB", 1.0, bench.volume("1000GiB", 1.0), Nanos::from_secs(60));
    setup.cold = false;
    let (began, before) = (Instant::now(), processor_s());
    let outcome = run(setup);
    println!("an hour at {:.0} IOPS", outcome.iops());
    match (before, processor_s()) {
        (Some(before), Some(after)) => after - before,
        _ => began.elapsed().as_secs_f64(),
    }
}

/// Thirty volumes of 1,000 to 30,000 IOPS for ten minutes each, as `ebbtide predict --sweep` runs them: the processor
/// time that they take, s.
fn sweep_of_30(bench: &Bench, calibration: &Calibration) -> f64 {
    let (began, before) = (Instant::now(), processor_s());
    let span = bench.hour.min(Nanos::from_secs(620));
    for step in 1..=if ebbtide_testing::tiny() { 2 } else { 30 } {
        let spec = Spec::parse(&format!("io2:size=600GiB,iops={}", step * 1_000)).expect("a spec");
        let volume = bench.catalog.resolve(&spec).expect("io2 has up to 64,000 IOPS").array(Nanos::ZERO);
        let setup = bench.setup(calibration, "10GiB", 1.0, volume, Nanos::from_secs(20));
        let outcome = run(ModelSetup { duration: span, cold: false, ..setup });
        assert!(outcome.transactions > 0, "{spec:?} stood still");
    }
    match (before, processor_s()) {
        (Some(before), Some(after)) => after - before,
        _ => began.elapsed().as_secs_f64(),
    }
}

const OBSERVED: &str = include_str!("../../../examples/profiles/sysbench-tpcc-gp2.toml");
const DESCRIBED: &str = include_str!("published/s9-tpcc.toml");

fn main() {
    let write = std::env::args().any(|word| word == "--write");
    if ebbtide_testing::tiny() {
        println!("a tiny run: the hour is two minutes, and no figure means anything");
    }
    let observed = Bench::new(OBSERVED);
    if std::env::args().any(|word| word == "--alone") {
        println!("{}", by_throughput_alone(&Bench::new(DESCRIBED)).0);
        return;
    }
    if std::env::args().any(|word| word == "--speed") {
        speed(&observed, &observed.calibrated_on(CALIBRATED));
        return;
    }
    let by_curve = judge(
        "With the miss curve of the same workload on another machine",
        "Percona 2018, observed",
        Class::Observed,
        &observed,
    );
    println!("{}", by_curve.text);
    let took = speed(&observed, &by_curve.calibration);
    if ebbtide_testing::tiny() {
        return;
    }
    let described = Bench::new(DESCRIBED);
    let ((by_tables, plain, of_plain), (turns, of_turns)) = thread::scope(|scope| {
        let turns = scope.spawn(|| each_in_turn(&observed));
        let by_tables =
            judge("With TPC-C as it is described", "Percona 2018, described", Class::Described, &described);
        let (plain, of_plain) = without_factors(&described, &by_tables.calibration);
        ((by_tables, plain, of_plain), turns.join().expect("a run does not panic"))
    });
    println!("{}\n{turns}\n{plain}", by_tables.text);
    let (alone, alone_errors, of_alone) = by_throughput_alone(&described);
    println!("{alone}");
    if write {
        let rows = [by_curve.comparisons.as_slice(), &by_tables.comparisons, &of_plain, &of_turns, &of_alone]
            .concat();
        let alone = format!("### Described workloads without a miss curve\n\n{alone}\n");
        save(&[by_curve.text.clone(), by_tables.text, plain, alone], &turns, took, &rows);
    }
    let (middle, worst) = (median(&alone_errors), alone_errors[alone_errors.len() - 1]);
    assert!(
        middle <= 10.0 && worst <= 25.0,
        "throughput alone: median {middle:.1}% and worst {worst:.1}% exceed 10% and 25%"
    );
    let (middle, worst) = (median(&by_curve.errors), by_curve.errors[by_curve.errors.len() - 1]);
    assert!(middle <= 10.0 && worst <= 25.0, "median {middle:.1}% and worst {worst:.1}% exceed 10% and 25%");
    for (of, ends) in [("observed", &by_curve.ends), ("described", &by_tables.ends)] {
        let worst = ends.iter().copied().fold(0.0, f64::max);
        assert!(
            ends.len() == 3 && worst <= CREDITS_PCT,
            "{of}: credits end {worst:.1}% off, over {CREDITS_PCT}%: {ends:?}"
        );
    }
}

/// Prints how fast the model is, and panics where it is too slow; returns the time of an hour.
fn speed(bench: &Bench, calibration: &Calibration) -> f64 {
    let took = hour_at_3000(bench, calibration);
    println!("an hour at 3,000 IOPS took {took:.2} s (limit: 5 s)\n");
    let sweep = sweep_of_30(bench, calibration);
    println!("a sweep of 30 volumes took {sweep:.1} s (limit: 30 s)\n");
    assert!(ebbtide_testing::tiny() || took <= 5.0, "an hour at 3,000 IOPS took {took:.2} s");
    assert!(ebbtide_testing::tiny() || sweep <= 30.0, "a sweep of 30 volumes took {sweep:.1} s");
    took
}

const BEGIN: &str = "<!-- written by ./dev bench twin --write: begin -->";
const END: &str = "<!-- written by ./dev bench twin --write: end -->";

fn save(texts: &[String], turns: &str, took: f64, rows: &[Comparison]) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let page = format!("{root}docs/accuracy.md");
    let text = fs::read_to_string(&page).expect("docs/accuracy.md is there");
    let (before, rest) = text.split_once(BEGIN).expect("it has the mark of the beginning");
    let (_, after) = rest.split_once(END).expect("it has the mark of the end");
    let body = format!(
        "{}### Each row in turn\n\n{turns}\nAn hour of virtual time at 3,000 IOPS took {took:.1} s of a processor.\n",
        texts.concat()
    );
    fs::write(&page, format!("{before}{BEGIN}\n\n{body}\n{END}{after}"))
        .expect("docs/accuracy.md can be written");
    let path = format!("{root}crates/twin/data/comparisons.toml");
    let old = fs::read_to_string(&path).expect("data/comparisons.toml is there");
    let new = accuracy::replaced(&old, rows).expect("data/comparisons.toml has comparisons");
    fs::write(path, &new).expect("the data can be written");
    let all = accuracy::parse(&new).expect("it was written just now");
    fs::write(format!("{root}docs/images/accuracy.svg"), plot::svg(&all)).expect("the plot can be written");
}
