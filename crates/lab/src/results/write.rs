//! Into the database.

use rusqlite::types::Value;
use rusqlite::{Connection, Result, Transaction, params, params_from_iter};

use super::columns::Columns;
use super::encode::{json, word};
use super::{Header, RUN, SCHEMA_VERSION};
use crate::experiment::{Arm, Role};
use crate::record::{
    HostSecond, LabRun, LimitShares, LoadSecond, Outcome, ReplicaSecond, Second, ServerSecond, Trial,
    VolumeSecond,
};
use crate::summary::{ArmSummary, Compared, Figures, Ratio, Summary, Verdict, trial_figures};

const SCHEMA: &str = include_str!("schema.sql");
/// The line of the schema that represents the columns of the server.
const SERVER_COLUMNS: &str = "    -- columns of the server: the metrics of crates/observe, each REAL\n";

/// The schema with a column for each metric of a server.
fn schema() -> String {
    let columns: String = ServerSecond::NAMES.iter().map(|name| format!("    {name} REAL,\n")).collect();
    SCHEMA.replace(SERVER_COLUMNS, &columns)
}

/// Tables and header in one transaction.
pub(super) fn create(database: &mut Connection, run: &LabRun) -> Result<()> {
    let transaction = database.transaction()?;
    transaction.execute_batch(&schema())?;
    Header::from(run).write(&transaction, RUN, SCHEMA_VERSION)?;
    for (id, arm) in run.experiment.arms.iter().enumerate() {
        transaction.execute(
            "INSERT INTO arm VALUES (?, ?, ?, ?, ?, ?)",
            params![
                id,
                arm.name,
                arm.volumes.get(&Role::Data).map_or("", String::as_str),
                json(&arm.volumes)?,
                json(&arm.settings)?,
                arm.load.connections,
            ],
        )?;
    }
    transaction.commit()
}

/// `arm`: that of the trial; none where the experiment has none of its name.
pub(super) fn trial(database: &mut Connection, trial: &Trial, arm: Option<&Arm>) -> Result<()> {
    let transaction = database.transaction()?;
    transaction
        .execute("DELETE FROM trial WHERE arm = ? AND repeat = ?", params![trial.arm, trial.repeat])?;
    let (outcome, why, log) = match &trial.outcome {
        Outcome::Measured => ("measured", None, None),
        Outcome::Disqualified { why } => ("disqualified", Some(why), None),
        Outcome::Failed { why, log } => ("failed", Some(why), Some(json(log)?)),
    };
    let load = trial.load.as_ref();
    let figures = arm.and_then(|arm| trial_figures(trial, arm));
    transaction.execute(
        "INSERT INTO trial VALUES \
         ((SELECT coalesce(max(id), 0) + 1 FROM trial), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            trial.arm,
            trial.repeat,
            trial.started_ns,
            trial.took_s,
            outcome,
            why,
            log,
            figures.map(|figures| figures.tps),
            figures.map(|figures| figures.qps),
            figures.map(|figures| figures.p50_us),
            figures.map(|figures| figures.p95_us),
            figures.map(|figures| figures.p99_us),
            figures.map(|figures| figures.p99_9_us),
            load.map(|load| load.totals().errors),
            load.map(json).transpose()?,
            trial.batch.as_ref().map(json).transpose()?,
            json(&trial.notes)?,
            trial.promotion.as_ref().map(json).transpose()?,
            trial.backup.as_ref().map(json).transpose()?,
        ],
    )?;
    seconds(&transaction, transaction.last_insert_rowid(), &trial.seconds)?;
    transaction.commit()
}

/// An insert of these columns.
fn insert(table: &str, columns: &[&str]) -> String {
    let places = vec!["?"; columns.len()].join(", ");
    format!("INSERT INTO {table} ({}) VALUES ({places})", columns.join(", "))
}

fn seconds(transaction: &Transaction<'_>, trial: i64, seconds: &[Second]) -> Result<()> {
    let columns =
        [&["trial", "n", "t_s", "server_asked"], LoadSecond::NAMES, HostSecond::NAMES, ServerSecond::NAMES]
            .concat();
    let mut second_in = transaction.prepare(&insert("second", &columns))?;
    let columns = [&["trial", "n", "role"], VolumeSecond::NAMES, LimitShares::NAMES].concat();
    let mut volume_in = transaction.prepare(&insert("volume_second", &columns))?;
    let columns = [&["trial", "n", "replica", "role"], VolumeSecond::NAMES, LimitShares::NAMES].concat();
    let mut replica_volume_in = transaction.prepare(&insert("replica_volume_second", &columns))?;
    let columns = [&["trial", "n"], ReplicaSecond::NAMES].concat();
    let mut replica_in = transaction.prepare(&insert("replica_second", &columns))?;
    for (n, second) in (0_i64..).zip(seconds) {
        let mut values: Vec<Value> =
            vec![trial.into(), n.into(), second.t_s.into(), second.server.is_some().into()];
        values.extend(second.load.values());
        values.extend(second.host.values());
        values.extend(second.server.unwrap_or_default().values());
        second_in.execute(params_from_iter(values))?;
        for (role, volume) in &second.volumes {
            let mut values: Vec<Value> = vec![trial.into(), n.into(), word(role)?.into()];
            values.extend(volume.values());
            values.extend(volume.limits.values());
            volume_in.execute(params_from_iter(values))?;
        }
        for (number, volumes) in (1_i64..).zip(&second.replica_volumes) {
            for (role, volume) in volumes {
                let mut values: Vec<Value> = vec![trial.into(), n.into(), number.into(), word(role)?.into()];
                values.extend(volume.values());
                values.extend(volume.limits.values());
                replica_volume_in.execute(params_from_iter(values))?;
            }
        }
        if let Some(replica) = &second.replica {
            let mut values: Vec<Value> = vec![trial.into(), n.into()];
            values.extend(replica.values());
            replica_in.execute(params_from_iter(values))?;
        }
    }
    Ok(())
}

/// Replaces the tables that come from a summary.
pub(super) fn summary(database: &mut Connection, run: &LabRun, summary: &Summary) -> Result<()> {
    let transaction = database.transaction()?;
    transaction.execute_batch("DELETE FROM arm_result; DELETE FROM comparison;")?;
    for arm in &summary.arms {
        arm_results(&transaction, arm)?;
    }
    for compared in &summary.comparisons {
        comparison(&transaction, run, compared)?;
    }
    transaction.commit()
}

fn arm_results(transaction: &Transaction<'_>, arm: &ArmSummary) -> Result<()> {
    let whole = arm.whole.iter().map(|figures| ("", figures));
    let regimes = arm.regimes.iter().map(|regime| (regime.label.as_str(), &regime.figures));
    for (regime, figures) in whole.chain(regimes) {
        let Figures { tps, limiter, per_transaction: cost, .. } = figures;
        transaction.execute(
            "INSERT INTO arm_result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                arm.name,
                regime,
                figures.trials,
                figures.seconds,
                tps.mean,
                tps.interval.map(|interval| interval.low),
                tps.interval.map(|interval| interval.high),
                tps.spread,
                figures.p50_us.median,
                figures.p95_us.median,
                figures.p99_us.median,
                figures.p99_9_us.median,
                cost.map(|cost| cost.consumed_ios),
                cost.map(|cost| cost.written_kib),
                cost.map(|cost| cost.read_kib),
                word(&limiter.what)?,
                limiter.share,
            ],
        )?;
    }
    Ok(())
}

fn comparison(transaction: &Transaction<'_>, run: &LabRun, compared: &Compared) -> Result<()> {
    let name = |arm: usize| run.experiment.arms.get(arm).map_or("", |arm| arm.name.as_str());
    let ends = |ratio: &Option<Ratio>| {
        let interval = ratio.and_then(|ratio| ratio.interval);
        (ratio.map(|ratio| ratio.ratio), interval.map(|i| i.low), interval.map(|i| i.high))
    };
    let (verdict, why) = match &compared.verdict {
        Verdict::Faster => ("faster", None),
        Verdict::Slower => ("slower", None),
        Verdict::NoDifferenceSeen => ("no_difference_seen", None),
        Verdict::NotComparable { why } => ("not_comparable", Some(why)),
    };
    let (tps, p95) = (ends(&compared.tps), ends(&compared.p95));
    transaction
        .execute(
            "INSERT INTO comparison VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                compared.axis,
                name(compared.arm),
                name(compared.baseline),
                compared.label,
                tps.0,
                tps.1,
                tps.2,
                p95.0,
                p95.1,
                p95.2,
                verdict,
                why,
                compared.smallest_effect,
            ],
        )
        .map(drop)
}
