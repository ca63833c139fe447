//! Into the database.

use ebbtide_lab::experiment::{Arm, Canary, Fault, Role, ServerRole};
use ebbtide_lab::results::encode::{json, word};
use ebbtide_text::seed;
use rusqlite::{Connection, Error, Result, Transaction, named_params, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Header, RUN, SCHEMA_VERSION};
use crate::record::{CrashRun, Cut, Gained, Stint, Verdict, VerdictKind};
use crate::summary::{ArmSummary, Standing, Summary, has};

const SCHEMA: &str = include_str!("schema.sql");

/// Tables and header in one transaction.
pub(super) fn create(database: &mut Connection, run: &CrashRun) -> Result<()> {
    let transaction = database.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    Header::from(run).write(&transaction, RUN, SCHEMA_VERSION)?;
    for (id, arm) in run.experiment.arms.iter().enumerate() {
        add_arm(&transaction, id, arm)?;
    }
    transaction.commit()
}

fn add_arm(transaction: &Transaction<'_>, id: usize, arm: &Arm) -> Result<()> {
    let crash = arm.crash.as_ref();
    transaction
        .execute(
            "INSERT INTO arm VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                id,
                arm.name,
                crash.and_then(|crash| crash.canary).map(Canary::name),
                crash.map(|crash| crash.role.name()),
                crash.filter(|crash| crash.role == ServerRole::Replica).map(|crash| crash.replication.name()),
                crash.map(|crash| crash.end.name()),
                crash.and_then(|crash| crash.fault).map(Fault::name),
                arm.volumes.get(&Role::Data).map_or("", String::as_str),
                arm.instance.fs,
                json(&arm.volumes)?,
                json(&arm.settings)?,
                arm.load.connections,
            ],
        )
        .map(drop)
}

pub(super) fn stint(database: &mut Connection, stint: &Stint) -> Result<()> {
    let transaction = database.transaction()?;
    transaction
        .execute("DELETE FROM stint WHERE arm = ? AND repeat = ?", params![stint.arm, stint.repeat])?;
    let measured = stint.counted();
    transaction.execute(
        "INSERT INTO stint VALUES \
         ((SELECT coalesce(max(id), 0) + 1 FROM stint), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            stint.arm,
            stint.repeat,
            stint.started_ns,
            stint.took_s,
            stint.cutting_s,
            stint.verified,
            measured.map(|measured| measured.tps),
            measured.and_then(|measured| measured.p50_us),
            measured.and_then(|measured| measured.p95_us),
            measured.and_then(|measured| measured.p99_us),
            measured.map(|measured| measured.write_iops),
            measured.map(|measured| measured.write_bytes_s),
            stint.failed.as_ref().map(|failure| &failure.why),
            whole(stint)?,
        ],
    )?;
    transaction.commit()
}

/// Keeps what the risk buys; what was kept before goes.
pub(super) fn gain(database: &mut Connection, gain: &Gained) -> Result<()> {
    let transaction = database.transaction()?;
    transaction.execute("DELETE FROM gain", [])?;
    transaction.execute("INSERT INTO gain VALUES (?)", [whole(gain)?])?;
    transaction.commit()
}

/// The JSON of a record that can be read back: JSON has no word for what is not a number.
fn whole<T: Serialize + DeserializeOwned>(record: &T) -> Result<String> {
    let text = json(record)?;
    match serde_json::from_str::<T>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Error::ToSqlConversionFailure(Box::new(error))),
    }
}

const ADD_CUT: &str = "INSERT INTO cut VALUES ((SELECT coalesce(max(id), 0) + 1 FROM cut), \
    :arm, :repeat, :number, :seed, :moment, :met, :at_s, :paused_us, \
    :clean, :corrupt, :partial, :lost_commits, :binlog_disagrees, :replication_broken, :unverified, :corruption, \
    :lost_transactions, :lost_s, :missing_in_binlog, :missing_in_tables, \
    :recovery_s, :reads, :read_bytes, :writes, :written_bytes, :doublewrite_pages, :rolled_back, \
    :to_fetch_again, :caught_up_s, :writes_in_flight, :torn_writes, :torn_pages, :cached_units_lost, :took_s, :kept, :cut_json)";

pub(super) fn cut(database: &mut Connection, cut: &Cut) -> Result<()> {
    let transaction = database.transaction()?;
    transaction.execute("DELETE FROM cut WHERE arm = ? AND number = ?", params![cut.arm, cut.number])?;
    let has = |kind| has(cut, kind);
    let corruption = cut.verdicts.iter().find_map(|verdict| match verdict {
        Verdict::Corrupt { how, .. } => Some(word(how)),
        _ => None,
    });
    let disagreement = cut.verdicts.iter().find_map(|verdict| match verdict {
        Verdict::BinlogDisagrees { missing_in_binlog, missing_in_tables, .. } => {
            Some((missing_in_binlog, missing_in_tables))
        }
        _ => None,
    });
    let (loss, recovery) = (cut.loss.as_ref(), cut.recovery.as_ref());
    transaction.execute(
        ADD_CUT,
        named_params! {
            ":arm": cut.arm,
            ":repeat": cut.repeat,
            ":number": cut.number,
            ":seed": seed::hex(cut.seed),
            ":moment": cut.moment.name(),
            ":met": cut.met,
            ":at_s": cut.at_s,
            ":paused_us": cut.paused_us,
            ":clean": Standing::of(cut) == Standing::Clean,
            ":corrupt": has(VerdictKind::Corrupt),
            ":partial": has(VerdictKind::Partial),
            ":lost_commits": has(VerdictKind::LostCommits),
            ":binlog_disagrees": has(VerdictKind::BinlogDisagrees),
            ":replication_broken": has(VerdictKind::ReplicationBroken),
            ":unverified": has(VerdictKind::Unverified),
            ":corruption": corruption.transpose()?,
            ":lost_transactions": loss.map(|loss| loss.transactions),
            ":lost_s": loss.map(|loss| loss.seconds),
            ":missing_in_binlog": disagreement.map(|(binlog, _)| binlog),
            ":missing_in_tables": disagreement.map(|(_, tables)| tables),
            ":recovery_s": recovery.map(|recovery| recovery.seconds),
            ":reads": recovery.map(|recovery| recovery.reads),
            ":read_bytes": recovery.map(|recovery| recovery.read_bytes),
            ":writes": recovery.map(|recovery| recovery.writes),
            ":written_bytes": recovery.map(|recovery| recovery.written_bytes),
            ":doublewrite_pages": recovery.map(|recovery| recovery.doublewrite_pages),
            ":rolled_back": recovery.map(|recovery| recovery.rolled_back),
            ":to_fetch_again": cut.resumed.as_ref().map(|resumed| resumed.to_fetch_again),
            ":caught_up_s": cut.resumed.as_ref().and_then(|resumed| resumed.caught_up_s),
            ":writes_in_flight": cut.writes_in_flight,
            ":torn_writes": cut.torn_writes.len(),
            ":torn_pages": cut.torn_before.len(),
            ":cached_units_lost": cut.cached_units_lost,
            ":took_s": cut.took.total,
            ":kept": cut.kept,
            ":cut_json": whole(cut)?,
        },
    )?;
    transaction.commit()
}

/// Replaces the tables that come from a summary.
pub(super) fn summary(database: &mut Connection, summary: &Summary) -> Result<()> {
    let transaction = database.transaction()?;
    transaction.execute_batch("DELETE FROM arm_result; DELETE FROM verdict_share;")?;
    for arm in &summary.arms {
        arm_result(&transaction, arm, None)?;
    }
    for canary in &summary.canaries {
        arm_result(&transaction, &canary.arm, Some((canary.canary, canary.caught.is_some())))?;
    }
    transaction.commit()
}

fn arm_result(transaction: &Transaction<'_>, arm: &ArmSummary, canary: Option<(Canary, bool)>) -> Result<()> {
    let tps = arm.throughput.as_ref().map(|throughput| throughput.tps);
    let interval = tps.and_then(|tps| tps.interval);
    let gain = arm.gain.and_then(|gain| gain.interval);
    let (loss, recovery) = (arm.loss.as_ref(), arm.recovery.as_ref());
    transaction.execute(
        "INSERT INTO arm_result VALUES \
         (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            arm.name,
            canary.map(|(canary, _)| canary.name()),
            canary.map(|(_, caught)| caught),
            arm.cuts,
            arm.clean,
            arm.bad.count,
            arm.unverified,
            arm.bad.share,
            arm.bad.low,
            arm.bad.high,
            loss.map(|loss| loss.transactions.max),
            loss.map(|loss| loss.seconds.p50),
            loss.map(|loss| loss.seconds.max),
            recovery.map(|recovery| recovery.seconds.p50),
            recovery.map(|recovery| recovery.seconds.p95),
            recovery.map(|recovery| recovery.seconds.max),
            arm.pace.cuts_a_minute,
            tps.map(|tps| tps.mean),
            interval.map(|interval| interval.low),
            interval.map(|interval| interval.high),
            arm.gain.map(|gain| gain.ratio),
            gain.map(|interval| interval.low),
            gain.map(|interval| interval.high),
        ],
    )?;
    for (kind, share) in &arm.verdicts {
        transaction.execute(
            "INSERT INTO verdict_share VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![arm.name, word(kind)?, share.count, share.of, share.share, share.low, share.high],
        )?;
    }
    Ok(())
}
