//! Canaries: arms in which the tester must find damage. A tester that does not find it is broken, and then no clean
//! result of its run counts.

use ebbtide_lab::experiment::{
    Arm, Canary, CrashPlan, End, Experiment, Fault, Moment, Replication, Role, ServerRole,
};
use ebbtide_mysql::{SettingError, Settings};

use super::replication_part;

/// How often a canary's power is cut at most; the first cut that shows the damage ends it. On an idle machine one of the
/// first few does. On a starved one, where the server has few pages in flight, a torn page may take tens.
pub(super) const CUTS: u32 = 120;

/// Storage that loses what was not flushed: a consumer SSD with a volatile cache.
const VOLATILE: &str = "sata-ssd:size=10GiB";
/// Storage that tears pages.
const TEARING: &str = "gp3:size=10GiB,twp=off";

/// Settings under which nothing that was acknowledged may be lost on storage that keeps its promises.
const DURABLE: [(&str, &str); 3] =
    [("flush_log_at_trx_commit", "1"), ("sync_binlog", "1"), ("doublewrite", "on")];

/// Room for all changed pages: what a volume that answers early loses is then the end of the redo log, so that
/// a server is there to be asked for its commits.
const ROOMY: [(&str, &str); 2] = [("buffer_pool_size", "128MiB"), ("redo_capacity", "64MiB")];

/// A replica of MariaDB that never has its position written: after a cut it is where the operating system last wrote it,
/// up to half a minute ago, and the tables are not.
const UNSYNCED: [(&str, &str); 4] = [
    ("sync_relay_log", "0"),
    ("sync_relay_log_info", "0"),
    ("sync_master_info", "0"),
    ("relay_log_recovery", "off"),
];

/// A replica of MySQL commits its position with the transaction, in a table. What it never has written here is the relay
/// log that this position is in, and it does not fetch it again: after a cut the position is behind the log's end.
const UNSYNCED_RELAY_LOG: [(&str, &str); 2] = [("sync_relay_log", "0"), ("relay_log_recovery", "off")];

/// Adds the canaries to an experiment, before its own arms: each with the settings of its first arm, made
/// durable. None is optional, whatever that arm is: a server that cannot run them all is refused.
pub(super) fn add(experiment: &mut Experiment, is_mariadb: bool) -> Result<(), SettingError> {
    let Some(first) = experiment.arms.first().cloned() else { return Ok(()) };
    let of_replica =
        experiment.arms.iter().find(|arm| replication_part::is_replica(arm.crash.as_ref())).cloned();
    let mut canaries = vec![
        arm(&first, Canary::AnswersEarly, TEARING, Some(Fault::AnswerEarly), &ROOMY)?,
        arm(&first, Canary::IgnoresFlushes, VOLATILE, Some(Fault::IgnoreFlush), &[])?,
        arm(&first, Canary::TornPages, TEARING, None, &[("doublewrite", "off")])?,
    ];
    if let Some(replica) = of_replica {
        let unsynced: &[_] = if is_mariadb { &UNSYNCED } else { &UNSYNCED_RELAY_LOG };
        canaries.push(arm(&replica, Canary::StalePosition, TEARING, None, unsynced)?);
    }
    for comparison in &mut experiment.comparisons {
        comparison.arm += canaries.len();
        comparison.baseline += canaries.len();
    }
    experiment.arms.splice(0..0, canaries);
    Ok(())
}

/// Takes the canaries of an experiment away: what [`add`] was given.
pub(super) fn remove(experiment: &mut Experiment) {
    let is_own = |arm: &Arm| arm.crash.as_ref().is_none_or(|plan| plan.canary.is_none());
    let canaries = experiment.arms.iter().take_while(|arm| !is_own(arm)).count();
    experiment.arms.drain(..canaries);
    for comparison in &mut experiment.comparisons {
        comparison.arm -= canaries;
        comparison.baseline -= canaries;
    }
}

fn arm(
    first: &Arm,
    canary: Canary,
    volume: &str,
    fault: Option<Fault>,
    settings: &[(&str, &str)],
) -> Result<Arm, SettingError> {
    let mut arm = first.clone();
    arm.name = format!("canary {}", canary.name());
    arm.options = Vec::new();
    arm.optional = false;
    arm.volumes = [(Role::Data, volume.to_owned())].into();
    arm.instance.divided_by = 1;
    let mut all = Settings::new();
    for (name, value) in DURABLE.iter().chain(settings) {
        all.set(name, value)?;
    }
    arm.settings.merge(&all);
    let role = match canary {
        Canary::StalePosition => ServerRole::Replica,
        Canary::AnswersEarly | Canary::IgnoresFlushes | Canary::TornPages => ServerRole::Primary,
    };
    arm.crash = Some(CrashPlan {
        role,
        replication: Replication::Position,
        source: None,
        cuts: CUTS,
        end: End::PowerCut,
        fault,
        moments: vec![if canary == Canary::TornPages { Moment::Page } else { Moment::Random }],
        canary: Some(canary),
        keep: first.crash.as_ref().map_or(0, |plan| plan.keep),
    });
    Ok(arm)
}
