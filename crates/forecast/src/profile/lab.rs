//! A profile of a run of the lab: one server and workload, with the arms that differ from it in volume, load or buffer
//! pool as its points.

use std::path::Path;

use ebbtide_lab::experiment::{Arm, InstancePlan, LoadKind, LoadPlan, Role};
use ebbtide_lab::record::{LabRun, Outcome};
use ebbtide_lab::results::{DATABASE, JSON, ResultsDatabase, ResultsError, read_json};
use ebbtide_lab::summary::{ArmSummary, Figures, Summary, TransactionFigures, summarize};
use ebbtide_observe::Facts;
use ebbtide_twin::innodb::{BinlogVolume, Memory, Volumes};
use ebbtide_twin::profile::{
    MachineTable, PagesTable, PointTable, Profile, ServerTable, TypeTable, WorkloadTable,
};
use ebbtide_volume::{MIB, format_size, parse_size};
use ebbtide_workload::tpcc::{Statements, WaitMode};

use super::busy::busy_pct;
use super::settings::server_table;
use super::{Draft, DraftError, rounded};
use crate::volumes::{parse, text};

/// Whether a directory has the results of a run.
#[must_use]
pub fn is_run(dir: &Path) -> bool {
    dir.join(DATABASE).is_file() || dir.join(JSON).is_file()
}

/// An arm that a profile can have as a point.
struct Usable<'a> {
    arm: &'a Arm,
    figures: &'a Figures,
    /// Kinds of transactions, where the load told them apart.
    kinds: &'a [TransactionFigures],
    server: ServerTable,
    notes: Vec<String>,
}

/// Why an arm is no point of a profile.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotAPoint {
    /// No trial of it was measured.
    #[error("none of its trials counts")]
    NoTrial,
    /// A trial has several regimes, by their labels.
    #[error("its conditions changed within a trial: {}", .0.join(", "))]
    ChangingConditions(Vec<String>),
    /// The model has no such volume.
    #[error("its {} has a volume of its own, which the model does not have", .0.holds())]
    Volume(Role),
    /// Its server has replicas.
    #[error("replicas follow its server, which the model has not")]
    Replicas,
    /// Its load is not alone.
    #[error("a batch job runs alongside its load")]
    Batch,
    /// Its clients have think times.
    #[error("its clients wait between transactions")]
    WaitingClients,
    /// It is no variant of the base of the profile.
    #[error("its {what} differs from that of {base}")]
    Differs {
        /// What differs.
        what: &'static str,
        /// The arm that the profile is of.
        base: String,
    },
}

/// The profile of an arm, and of the others that share its server, machine and workload.
///
/// # Errors
/// Results that cannot be read, an arm that there is not, or none that the model can express.
pub(super) fn draft(dir: &Path, arm: Option<&str>) -> Result<Draft, DraftError> {
    let run = read(dir)?;
    let summary = summarize(&run);
    let mut left_out = Vec::new();
    let mut usable = Vec::new();
    for (arm, measured) in run.experiment.arms.iter().zip(&summary.arms) {
        match look(&run, arm, measured) {
            Ok(one) => usable.push(one),
            Err(why) => left_out.push((arm.name.as_str(), why)),
        }
    }
    let base = base(dir, &usable, &left_out, arm)?;
    let mut points = Vec::new();
    for one in &usable {
        match differs(base, one) {
            None => points.push(one),
            Some(what) => {
                let base = base.arm.name.clone();
                left_out.push((one.arm.name.as_str(), NotAPoint::Differs { what, base }));
            }
        }
    }
    // The arm that was asked for is the first point: calibration and `--clients` go by it.
    points.sort_by_key(|one| one.arm.name != base.arm.name);
    Ok(compose(&run, &summary, base, &points, &left_out))
}

fn read(dir: &Path) -> Result<LabRun, DraftError> {
    let stored = match ResultsDatabase::open(dir) {
        Ok(store) => store.run(),
        Err(ResultsError::Missing { .. }) => read_json(dir).map(|results| results.run),
        Err(error) => Err(error),
    };
    stored.map_err(|source| DraftError::Results { dir: dir.to_owned(), source })
}

/// The arm as a point.
fn look<'a>(run: &LabRun, arm: &'a Arm, measured: &'a ArmSummary) -> Result<Usable<'a>, NotAPoint> {
    let figures = measured.whole.as_ref().ok_or(NotAPoint::NoTrial)?;
    if !measured.regimes.is_empty() {
        let labels = measured.regimes.iter().map(|regime| regime.label.clone());
        return Err(NotAPoint::ChangingConditions(labels.collect()));
    }
    let modelled = [Role::Data, Role::Redo, Role::Binlog, Role::Logs];
    let own = arm.volumes.keys().find(|role| !modelled.contains(role));
    if let Some(role) = own {
        return Err(NotAPoint::Volume(*role));
    }
    if !arm.topology.is_single() {
        return Err(NotAPoint::Replicas);
    }
    if arm.batch.is_some() {
        return Err(NotAPoint::Batch);
    }
    if arm.load.wait == WaitMode::Spec {
        return Err(NotAPoint::WaitingClients);
    }
    let trial = run.trials.iter().find(|trial| trial.arm == arm.name && trial.outcome == Outcome::Measured);
    let seen = run.observation(trial.ok_or(NotAPoint::NoTrial)?);
    let variables = seen.variables.unwrap_or_default();
    let facts = seen.facts.unwrap_or_else(|| Facts::of(&variables));
    let file_system = seen.file_system.as_ref().map(|of| of.name.as_str());
    let (server, notes) = server_table(&facts, &variables, file_system);
    let kinds = measured.tpcc.as_ref().map_or(&[][..], |tpcc| &tpcc.transactions);
    Ok(Usable { arm, figures, kinds, server, notes })
}

/// The arm that the profile is of.
fn base<'a, 'b>(
    dir: &Path,
    usable: &'b [Usable<'a>],
    left_out: &[(&str, NotAPoint)],
    wanted: Option<&str>,
) -> Result<&'b Usable<'a>, DraftError> {
    let Some(wanted) = wanted else {
        return usable.first().ok_or_else(|| {
            let reasons = left_out.iter().map(|(name, why)| format!("{name}: {why}"));
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            DraftError::NoUsableArm { dir: dir.to_owned(), reasons }
        });
    };
    if let Some(found) = usable.iter().find(|one| one.arm.name == wanted) {
        return Ok(found);
    }
    let arm = wanted.to_owned();
    let usable = usable.iter().map(|one| one.arm.name.clone()).collect();
    Err(match left_out.iter().find(|(name, _)| *name == wanted) {
        Some((_, why)) => DraftError::UnusableArm { arm, why: why.clone(), usable },
        None => DraftError::UnknownArm { arm, usable },
    })
}

/// What keeps an arm from being a point of the base's profile, in words; None where nothing does.
fn differs(base: &Usable<'_>, one: &Usable<'_>) -> Option<&'static str> {
    let without_pool = |server: &ServerTable| ServerTable { buffer_pool_size: None, ..server.clone() };
    let machine =
        |plan: &InstancePlan| (plan.kind.clone(), plan.divided_by, plan.kind.is_some() && plan.burst);
    let work = |load: &LoadPlan| {
        (load.workload, load.distribution, load.mix.clone(), load.isolation, load.statements)
    };
    // Where data files do not go through the page cache, memory beside the pool changes no page.
    let memory = |one: &Usable<'_>| (!is_direct(&one.server)).then_some(one.arm.instance.memory_bytes);
    if without_pool(&base.server) != without_pool(&one.server) {
        Some("server's settings")
    } else if machine(&base.arm.instance) != machine(&one.arm.instance) || memory(base) != memory(one) {
        Some("machine")
    } else if work(&base.arm.load) != work(&one.arm.load) {
        Some("workload")
    } else if base.arm.load.round_trip_us != one.arm.load.round_trip_us {
        // The workload of a profile has one round trip for all points.
        Some("network")
    } else {
        None
    }
}

fn compose(
    run: &LabRun,
    summary: &Summary,
    base: &Usable<'_>,
    points: &[&Usable<'_>],
    left_out: &[(&str, NotAPoint)],
) -> Draft {
    let mut notes = base.notes.clone();
    if run.overrides.is_some() {
        notes.push("the run had overrides of the catalogue: predict with the same ones in --home".into());
    }
    if base.arm.instance.divided_by > 1 {
        notes.push(format!(
            "the machine is one share of {}: `predict` divides every volume by it; --divided-by 1 takes whole ones",
            base.arm.instance.divided_by
        ));
    }
    if run.host.local_round_trip_us.is_none() {
        notes.push(
            "the results are older than the lab's measurement of the local round trip: with few clients predictions are too \
             fast; workload.round_trip_us adds one"
                .into(),
        );
    }
    notes.extend(left_out.iter().map(|(name, why)| format!("arm {name} is left out: {why}")));
    let known = known(run, base);
    let observed = observed(run, base, points);
    if known.is_none() {
        notes.push("its workload is none that a profile can name: it is taken as it was observed".into());
    }
    let profile = Profile {
        name: format!("{}, {}", run.experiment.title, base.arm.name),
        source: format!(
            "ebbtide run {}, seed {}, {}; {} trials counted",
            run.experiment.name,
            run.experiment.seed,
            ebbtide_text::timestamp(i64::try_from(run.started_ns / 1_000_000_000).unwrap_or(0)),
            summary.arms.iter().map(|arm| arm.trials.measured).sum::<u32>(),
        ),
        server: base.server.clone(),
        machine: machine(run, base),
        workload: known.clone().unwrap_or_else(|| observed.clone()),
        points: points.iter().map(|one| point(run, base, one)).collect(),
    };
    Draft { profile, observed: known.map(|_| observed), notes }
}

fn machine(run: &LabRun, base: &Usable<'_>) -> MachineTable {
    let plan = &base.arm.instance;
    MachineTable {
        vcpus: Some(run.host.cpus).filter(|cpus| *cpus > 0),
        threads_per_core: run.host.threads_per_core,
        instance: plan.kind.clone(),
        burst: plan.kind.as_ref().map(|_| plan.burst).filter(|burst| !burst),
        divided_by: Some(plan.divided_by).filter(|by| *by > 1),
        // The control group that the server runs in: nothing of the operating system is in it.
        memory: Some(format_size(plan.memory_bytes)),
        other_memory: other_memory(base).map(format_size),
    }
}

/// Whether data files do not go through the page cache.
fn is_direct(server: &ServerTable) -> bool {
    server.flush_method.as_deref().is_some_and(|method| method.to_ascii_uppercase().contains("O_DIRECT"))
}

/// What the server's control group had besides the buffer pool in the mean, bytes, in whole MiB. None where files in the page
/// cache are a part of it: data files, binary logs, and the redo log of MySQL.
fn other_memory(base: &Usable<'_>) -> Option<u64> {
    let server = &base.server;
    let mariadb = server.flavour.as_deref().is_some_and(|flavour| flavour.starts_with("mariadb"));
    let pool = parse_size(server.buffer_pool_size.as_deref()?).ok()?;
    if !mariadb || !is_direct(server) || server.log_bin != Some(false) {
        return None;
    }
    let mib = (base.figures.host.memory_bytes - Memory::of_pool(pool)) / MIB as f64;
    // A control group that was not looked at has used nothing.
    if mib < 1.0 { None } else { parse_size(&format!("{mib:.0}MiB")).ok() }
}

/// What a statement waits for on its way to the server and back, us: the local round trip of the host, and that of the
/// emulated network. None where neither is known.
///
/// Nothing of it is in the processor time that calibration takes: an idle processor that is woken has run no thread yet.
/// The system calls of both ends are in both, some microseconds.
fn round_trip_us(run: &LabRun, arm: &Arm) -> Option<f64> {
    let network = f64::from(arm.load.round_trip_us);
    match run.host.local_round_trip_us {
        Some(local) => Some(rounded(local + network)),
        None => (network > 0.0).then_some(network),
    }
}

/// The workload by its name, with the logs that it was measured to write; None where its statements commit one by
/// one, which no profile says.
fn known(run: &LabRun, base: &Usable<'_>) -> Option<WorkloadTable> {
    let load = &base.arm.load;
    let data = run.experiment.data;
    let described = match load.workload {
        LoadKind::Tpcc => WorkloadTable {
            kind: Some(load.workload.name().into()),
            warehouses: Some(data.warehouses?),
            batched: (load.statements == Statements::Batched).then_some(true),
            ..WorkloadTable::default()
        },
        // The model's rows have sysbench's lengths.
        LoadKind::Sysbench(_) if data.lengths.is_some() => return None,
        LoadKind::Sysbench(_) => {
            let table = WorkloadTable {
                kind: Some(load.workload.name().into()),
                tables: Some(data.tables),
                table_size: Some(data.rows),
                ..WorkloadTable::default()
            };
            table.with_distribution(load.distribution).with_mix(&load.mix)?
        }
    };
    let (redo_bytes, binlog_bytes) = logs(base.figures);
    let round_trip_us = round_trip_us(run, base.arm);
    Some(WorkloadTable { redo_bytes, binlog_bytes, round_trip_us, ..described })
}

/// Bytes of redo and of binary log of a transaction; None where the server was not asked.
fn logs(figures: &Figures) -> (Option<f64>, Option<f64>) {
    let each = figures.per_transaction.unwrap_or_default();
    (each.redo_bytes.map(rounded), each.binlog_bytes.map(rounded))
}

/// The workload as what was measured of it: a miss curve of the arms' pools.
fn observed(run: &LabRun, base: &Usable<'_>, points: &[&Usable<'_>]) -> WorkloadTable {
    let (redo_bytes, binlog_bytes) = logs(base.figures);
    let mut pages: Vec<PagesTable> = Vec::new();
    for one in points {
        let each = one.figures.per_transaction.unwrap_or_default();
        let (Some(pool), Some(reads), Some(writes)) =
            (one.server.buffer_pool_size.clone(), each.page_reads, each.page_writes)
        else {
            continue;
        };
        // Of arms with one pool, the base comes first.
        if pages.iter().all(|entry| entry.pool != pool) {
            pages.push(PagesTable { pool, reads: rounded(reads), writes: rounded(writes) });
        }
    }
    let figures = base.figures;
    let statements = (figures.tps.mean > 0.0).then(|| rounded(figures.qps.mean / figures.tps.mean));
    WorkloadTable {
        kind: Some("observed".into()),
        data_size: Some(format_size(base.arm.tables(run.experiment.data).data_bytes())),
        statements: statements.filter(|statements| *statements > 0.0),
        redo_bytes,
        binlog_bytes,
        round_trip_us: round_trip_us(run, base.arm),
        pages,
        types: types(base.kinds),
        ..WorkloadTable::default()
    }
}

/// Kinds of transactions by their share, each with its median response time for what it does: on a volume that limits, the
/// time of a transaction goes with its pages.
fn types(kinds: &[TransactionFigures]) -> Vec<TypeTable> {
    let some = kinds.iter().filter(|kind| kind.count > 0 && kind.p50_us.median > 0.0);
    let all: f64 = some.clone().map(|kind| kind.share_pct).sum();
    let mean = some.clone().map(|kind| kind.share_pct * kind.p50_us.median).sum::<f64>() / all.max(1e-9);
    let of = |kind: &TransactionFigures| TypeTable {
        name: kind.transaction.clone(),
        share: rounded(kind.share_pct / 100.0),
        size: rounded(kind.p50_us.median / mean),
    };
    some.map(of).collect()
}

/// The specs of the volumes by role; of the data's alone where all files lie on it.
fn volumes(arm: &Arm) -> Option<String> {
    let of = |role: Role| arm.volumes.get(&role).and_then(|spec| parse(spec).ok()).map(|specs| specs.data);
    let (redo, binlog) = match of(Role::Logs) {
        Some(both) => (Some(both), BinlogVolume::Redo),
        None => (of(Role::Redo), of(Role::Binlog).map_or(BinlogVolume::Data, BinlogVolume::Own)),
    };
    Some(text(&Volumes { data: of(Role::Data)?, redo, binlog }))
}

fn point(run: &LabRun, base: &Usable<'_>, one: &Usable<'_>) -> PointTable {
    let figures = one.figures;
    let each = figures.per_transaction.unwrap_or_default();
    let rate = one.arm.load.arrival.per_second();
    let busy = busy_pct(run, &one.arm.name, figures);
    PointTable {
        name: Some(one.arm.name.clone()),
        volume: volumes(one.arm),
        clients: Some(one.arm.load.connections),
        rate,
        tps: Some(rounded(figures.tps.mean)).filter(|tps| *tps > 0.0),
        reads: each.page_reads.map(rounded),
        writes: each.page_writes.map(rounded),
        cpu_pct: Some(rounded(busy.min(100.0))).filter(|busy| *busy > 0.0),
        buffer_pool_size: one
            .server
            .buffer_pool_size
            .clone()
            .filter(|pool| Some(pool) != base.server.buffer_pool_size.as_ref()),
        ..PointTable::default()
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_lab::summary::{Across, fixture};

    use super::*;

    #[test]
    fn a_statement_waits_for_the_local_round_trip_and_for_that_of_the_network() {
        let mut run = fixture::run(&["one"]);
        let of = |run: &LabRun| round_trip_us(run, &run.experiment.arms[0]);
        assert_eq!(of(&run), None, "older results");
        run.experiment.arms[0].load.round_trip_us = 1_450;
        assert_eq!(of(&run), Some(1_450.0));
        run.host.local_round_trip_us = Some(41.375);
        assert_eq!(of(&run), Some(1_491.0), "of four digits");
        run.experiment.arms[0].load.round_trip_us = 0;
        assert_eq!(of(&run), Some(41.38));
    }

    #[test]
    fn kinds_of_transactions_have_their_share_and_their_time_relative_to_the_mean() {
        let kind = |name: &str, count, share_pct, median| TransactionFigures {
            transaction: name.into(),
            count,
            share_pct,
            p50_us: Across { median, min: median, max: median },
            ..TransactionFigures::default()
        };
        let kinds =
            [kind("small", 90, 90.0, 1_000.0), kind("large", 10, 10.0, 11_000.0), kind("none", 0, 0.0, 0.0)];
        let types = types(&kinds);
        let of = |n: usize| (types[n].name.as_str(), types[n].share, types[n].size);
        assert_eq!((types.len(), of(0), of(1)), (2, ("small", 0.9, 0.5), ("large", 0.1, 5.5)));
    }
}
