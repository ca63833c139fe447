//! The arms of a run, predicted from its first one.

use std::path::Path;
use std::process::Command;

use ebbtide_catalog::{Catalog, Spec};
use ebbtide_forecast::profile::{busy_pct, server_table};
use ebbtide_lab::experiment::{Arm, Role};
use ebbtide_lab::record::{LabRun, Outcome};
use ebbtide_lab::results::ResultsDatabase;
use ebbtide_lab::summary::{Bottleneck, Figures, summarize};
use ebbtide_observe::Facts;
use ebbtide_twin::accuracy::{Class, Comparison, Figure};
use ebbtide_twin::innodb::{
    Calibrating, Calibration, FileKind, Limiter, ModelLoad, ModelOutcome, ModelSetup, Trials, calibrate, run,
};
use ebbtide_twin::profile::{MachineFacts, Planned, Profile, ServerTable};
use ebbtide_volume::{Array, Instance, Nanos};

use crate::EBBTIDE;

const SEED: u64 = 1;
/// Virtual time of a prediction, and what of it settles: a trial comes to its balance on volumes with multiplied limits.
const SPAN: Nanos = Nanos::from_secs(420);
const SETTLE: Nanos = Nanos::from_secs(240);
/// What a run of the calibration leaves out, as `ebbtide predict` does.
const TRIAL_SETTLE: Nanos = Nanos::from_secs(40);

/// The share of the processors that server and load keep busy at least where these limit them, as for the lab. Below it, other programs
/// had the rest, and nothing is known of what would have limited otherwise.
const OWN: f64 = 0.9;

/// An arm, measured and predicted.
pub(crate) struct Predicted {
    pub(crate) experiment: String,
    pub(crate) arm: String,
    pub(crate) calibrated: bool,
    pub(crate) measured: f64,
    pub(crate) predicted: f64,
    pub(crate) measured_limiter: &'static str,
    pub(crate) predicted_limiter: &'static str,
    /// What the prediction was based on.
    pub(crate) class: Class,
    /// Server and workload, as a profile names them.
    flavour: String,
    workload: String,
    /// Connections; None in an open loop.
    clients: Option<u32>,
    /// The buffer pool, times the data.
    pool: f64,
    /// Figures, measured and predicted.
    pub(crate) figures: Vec<(Figure, f64, f64)>,
    /// Whether `predict` says that the server does what the model does not.
    not_modelled: bool,
    /// Whether the limiters are the same; None where the measurement shows none.
    pub(crate) right: Option<bool>,
}

impl Predicted {
    pub(crate) fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// The rows of the file of comparisons; none of a calibrated arm, and of one whose prediction comes with a warning.
    pub(crate) fn comparisons(&self) -> Vec<Comparison> {
        let row = |&(figure, measured, predicted): &(Figure, f64, f64)| Comparison {
            experiment: format!("lab, {}", self.experiment),
            arm: self.arm.clone(),
            class: self.class,
            flavour: self.flavour.clone(),
            workload: self.workload.clone(),
            clients: self.clients,
            pool: self.pool,
            figure,
            predicted,
            measured,
        };
        if self.calibrated || self.not_modelled { Vec::new() } else { self.figures.iter().map(row).collect() }
    }
}

/// Whether every arm of a run has a trial that counts.
pub(crate) fn is_whole(results: &Path) -> bool {
    let run = ResultsDatabase::open(results).and_then(|store| store.run());
    run.is_ok_and(|run| summarize(&run).arms.iter().all(|arm| arm.whole.is_some()))
}

/// The arms of an experiment that were measured; the first one calibrates.
pub(crate) fn experiment(name: &str, results: &Path) -> Result<Vec<Predicted>, String> {
    let run =
        ResultsDatabase::open(results).and_then(|store| store.run()).map_err(|error| error.to_string())?;
    let summary = summarize(&run);
    let catalog = run.catalog();
    let base = calibrating(&run)?;
    let costs = calibrated(&base, &run, &catalog)?;
    println!("{name}: {}", costs.notes.join("; "));
    let mut all = Vec::new();
    for (place, (arm, measured)) in run.experiment.arms.iter().zip(&summary.arms).enumerate() {
        let Some(figures) = &measured.whole else {
            println!("{name}: {} was not measured", arm.name);
            continue;
        };
        let planned = planned(&base, &run, arm)?;
        let outcome = predicted(&planned, &costs, arm, &catalog)?;
        let each = figures.per_transaction.unwrap_or_default();
        let busy = busy_pct(&run, &arm.name, figures);
        let pages = |kind| outcome.file(kind).ios as f64 / outcome.transactions.max(1) as f64;
        println!(
            "  {:<24} tps {:>7.1} {:>7.1}  reads {:>6.2} {:>6.2}  writes {:>6.2} {:>6.2}  cpu {:>4.0}% {:>4.0}%  iops {:>6.0} {:>6.0}  {:?} {}",
            arm.name,
            figures.tps.mean,
            outcome.tps(),
            each.page_reads.unwrap_or(0.0),
            pages(FileKind::DataRead),
            each.page_writes.unwrap_or(0.0),
            pages(FileKind::DataWrite),
            busy,
            outcome.processors_busy * 100.0,
            figures.volumes.get(&Role::Data).map_or(0.0, |volume| volume.consumed_iops),
            outcome.iops(),
            figures.limiter.what,
            outcome.limiter().0.name(),
        );
        let (limiter, _) = outcome.limiter();
        let host = &figures.host;
        let own = (host.server_cpus + host.load_cpus + host.steal_cpus) / f64::from(run.host.cpus.max(1));
        let foreign = figures.limiter.what == Bottleneck::Processors && own < OWN;
        let load = load(arm);
        all.push(Predicted {
            experiment: name.to_owned(),
            arm: arm.name.clone(),
            calibrated: place == 0,
            measured: figures.tps.mean,
            predicted: outcome.tps(),
            measured_limiter: if foreign {
                "processors beside the server and the load"
            } else {
                words(figures.limiter.what)
            },
            predicted_limiter: limiter.words(),
            flavour: planned.settings.flavour.name().to_owned(),
            workload: planned.workload.clone(),
            clients: load.rate.is_none().then_some(load.clients),
            pool: planned.pool_of_data.unwrap_or(0.0),
            not_modelled: planned.not_modelled(arm.instance.rotational).is_some(),
            class: if base.workload.kind.as_deref() == Some("observed") {
                Class::Observed
            } else {
                Class::Described
            },
            figures: all_figures(figures, busy, &outcome),
            right: is_right(figures.limiter.what, limiter).filter(|_| !foreign),
        });
    }
    Ok(all)
}

/// The figures that have intervals, measured and predicted.
fn all_figures(measured: &Figures, busy: f64, outcome: &ModelOutcome) -> Vec<(Figure, f64, f64)> {
    let latency = |quantile| outcome.latency_at(quantile).map_or(f64::NAN, |latency| latency.0 as f64 / 1e3);
    let data = measured.volumes.get(&Role::Data);
    let mib = |bytes: f64| bytes / 1_048_576.0;
    let mib_s = mib(outcome.bytes_per_second());
    let read = mib(outcome.file(FileKind::DataRead).bytes as f64 / outcome.measured.as_secs_f64());
    let all = [
        (Figure::Tps, measured.tps.mean, outcome.tps()),
        (Figure::P50, measured.p50_us.median, latency(0.5)),
        (Figure::P95, measured.p95_us.median, latency(0.95)),
        (Figure::P99, measured.p99_us.median, latency(0.99)),
        (Figure::P999, measured.p99_9_us.median, latency(0.999)),
        (Figure::Iops, data.map_or(f64::NAN, |data| data.consumed_iops), outcome.iops()),
        (Figure::MibS, data.map_or(f64::NAN, |data| data.read_mib + data.write_mib), mib_s),
        (Figure::Reads, data.map_or(f64::NAN, |data| data.read_mib), read),
        (Figure::Writes, data.map_or(f64::NAN, |data| data.write_mib), mib_s - read),
        (Figure::Cpu, busy, outcome.processors_busy * 100.0),
    ];
    all.into_iter().filter(|(_, measured, predicted)| *measured > 0.0 && *predicted > 0.0).collect()
}

/// The profile that `predict --profile-from` makes of a run that has the first arm alone.
fn calibrating(run: &LabRun) -> Result<Profile, String> {
    let mut alone = run.clone();
    alone.experiment.arms.truncate(1);
    alone.experiment.comparisons.clear();
    let first = alone.experiment.arms.first().ok_or("it has no arm")?.name.clone();
    alone.trials.retain(|trial| trial.arm == first);
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let results = dir.path().join("results");
    ResultsDatabase::create(&results, &alone).map_err(|error| error.to_string())?;
    let output = Command::new(EBBTIDE)
        .args(["predict", "--profile-from"])
        .arg(&results)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Profile::parse(&text).map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn calibrated(base: &Profile, run: &LabRun, catalog: &Catalog) -> Result<Calibration, String> {
    let arm = &run.experiment.arms[0];
    let planned = base.plan(known(run), SEED).map_err(|error| error.to_string())?;
    let (volume, instance) = devices(arm, catalog)?;
    let points: Vec<_> = planned
        .points
        .iter()
        .cloned()
        .map(|point| point.on(volume.clone().into(), instance.clone()))
        .collect();
    let trials = Trials { machine: planned.machine, seed: SEED, settle: TRIAL_SETTLE, asked: None };
    // The arms that calibrate have their pages counted, so that nothing is searched for a throughput.
    let by = Calibrating { trials, given: planned.costs, cpu_given: planned.cpu_given, interval: (1.0, 1.0) };
    calibrate(&points, &by).map_err(|error| error.to_string())
}

/// The volume of the data and the instance, as the lab had them.
fn devices(arm: &Arm, catalog: &Catalog) -> Result<(Array, Option<Instance>), String> {
    let by = arm.instance.divided_by;
    let spec = Spec::parse(&arm.volumes[&Role::Data]).map_err(|error| error.to_string())?;
    let volume = catalog.resolve(&spec).map_err(|error| error.to_string())?.divided(by);
    let instance = arm.instance.kind.as_ref().map(|kind| {
        let instance = catalog.instance(kind).map_err(|error| error.to_string())?;
        let instance = if arm.instance.burst { instance } else { instance.without_burst() };
        Ok::<_, String>(Instance::new(instance.divided(by).limits))
    });
    Ok((volume.array(Nanos::ZERO), instance.transpose()?))
}

/// What the lab knows of its machine.
fn known(run: &LabRun) -> MachineFacts {
    MachineFacts { vcpus: Some(run.host.cpus), memory_bytes: None }
}

/// The server and the workload of an arm.
fn planned(base: &Profile, run: &LabRun, arm: &Arm) -> Result<Planned, String> {
    let profile = Profile { server: server(run, arm), points: Vec::new(), ..base.clone() };
    profile.plan(known(run), SEED).map_err(|error| error.to_string())
}

fn load(arm: &Arm) -> ModelLoad {
    ModelLoad { clients: arm.load.connections, rate: arm.load.arrival.per_second() }
}

/// What the model makes of an arm with the costs of the first.
fn predicted(
    planned: &Planned,
    calibration: &Calibration,
    arm: &Arm,
    catalog: &Catalog,
) -> Result<ModelOutcome, String> {
    let (volume, instance) = devices(arm, catalog)?;
    Ok(run(ModelSetup {
        settings: planned.settings.clone(),
        shape: planned.shape.clone(),
        machine: planned.machine,
        costs: calibration.costs,
        load: load(arm),
        volumes: volume.into(),
        instance,
        seed: SEED,
        duration: SPAN,
        settle: SETTLE,
        cold: false,
    }))
}

/// The server's table of an arm.
fn server(run: &LabRun, arm: &Arm) -> ServerTable {
    let trial = run.trials.iter().find(|trial| trial.arm == arm.name && trial.outcome == Outcome::Measured);
    let seen = run.observation(trial.expect("the arm was measured"));
    let variables = seen.variables.unwrap_or_default();
    let facts = seen.facts.unwrap_or_else(|| Facts::of(&variables));
    server_table(&facts, &variables, seen.file_system.as_ref().map(|of| of.name.as_str())).0
}

const fn words(what: Bottleneck) -> &'static str {
    match what {
        Bottleneck::VolumeIops => "the volume's IOPS",
        Bottleneck::VolumeThroughput => "the volume's throughput",
        Bottleneck::InstanceIops => "the instance's IOPS",
        Bottleneck::InstanceThroughput => "the instance's throughput",
        Bottleneck::Processors => "the processors",
        Bottleneck::Checkpoint => "the redo log",
        Bottleneck::RowLocks => "row locks",
        Bottleneck::VolumeLatency => "the volume's latency",
        Bottleneck::OfferedRate => "the rate of the load",
        Bottleneck::Unknown => "none that was recorded",
    }
}

/// Whether the model names what the lab found; None where the lab found nothing.
fn is_right(measured: Bottleneck, predicted: Limiter) -> Option<bool> {
    Some(match measured {
        Bottleneck::VolumeIops => predicted == Limiter::VolumeIops,
        Bottleneck::VolumeThroughput => predicted == Limiter::VolumeThroughput,
        Bottleneck::InstanceIops => predicted == Limiter::InstanceIops,
        Bottleneck::InstanceThroughput => predicted == Limiter::InstanceThroughput,
        Bottleneck::Processors => predicted == Limiter::Processors,
        Bottleneck::Checkpoint => predicted == Limiter::RedoCapacity,
        Bottleneck::RowLocks => false,
        // The lab does not tell whose latency it is.
        Bottleneck::VolumeLatency => {
            matches!(predicted, Limiter::ReadLatency | Limiter::CommitLatency | Limiter::FreePages)
        }
        Bottleneck::OfferedRate => predicted == Limiter::Load,
        Bottleneck::Unknown => return None,
    })
}
