//! A backup that is made while the load runs: it waits for its second of the measurement, is timed, and what it used of
//! the volumes is counted. After the load it is restored and checked ([`restore`]).

mod restore;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

use ebbtide_device::host::HostError;
use ebbtide_device::store::BLOCK_BYTES;
use ebbtide_load::{Cancel, DATABASE};
use ebbtide_mysql::backup::{self as tools, BackupError, Source};
use ebbtide_mysql::replication::{BEAT_DATABASE, Heartbeat, newest_beat};
use ebbtide_mysql::{Binary, Server};
use ebbtide_volume::Stats;

use super::batch::Beat;
use super::error::StepError;
use super::home::{Lab, SNAPSHOT_PREFIX};
use crate::experiment::{BackedUp, BackupMethod, BackupPlan, PlannedArm, Role};
use crate::record::{BackupUse, BackupVolume, Restored};
use crate::run::arm_server::Volumes;

pub(super) use restore::{Restore, restored};

/// The mark that a source without replicas is given at the begin; those with replicas have heartbeats.
const MARK: u64 = 1;

/// What a backup is made of, and with.
#[derive(Debug, Clone)]
pub(super) struct Subject<'a> {
    pub(super) plan: BackupPlan,
    pub(super) lab: &'a Lab,
    pub(super) binary: &'a Binary,
    /// The server that is backed up.
    pub(super) server: Source,
    /// Its volumes; the target is among them.
    pub(super) volumes: &'a Volumes<'a>,
    /// Whether heartbeats are committed anyway.
    pub(super) beats: bool,
    pub(super) cancel: &'a Cancel,
}

/// A backup that waits for its second, or is under way.
pub(super) struct Running<'scope> {
    job: ScopedJoinHandle<'scope, Result<Made<'scope>, StepError>>,
    stop: Cancel,
}

/// A backup that was made.
#[derive(Debug)]
pub(super) struct Made<'a> {
    began: Instant,
    ended: Instant,
    bytes: u64,
    volumes: BTreeMap<Role, BackupVolume>,
    /// The newest mark that the server showed at the begin: what is restored must have it.
    seen: Option<u64>,
    at: BackupPlace<'a>,
}

/// Where a backup is.
#[derive(Debug)]
enum BackupPlace<'a> {
    /// A file of statements.
    Dump(PathBuf),
    /// A directory of files.
    Files(PathBuf),
    /// A snapshot of the store.
    Snapshot(Kept<'a>),
}

/// A snapshot, which goes when nobody needs it any more.
#[derive(Debug)]
struct Kept<'a> {
    lab: &'a Lab,
    name: String,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.lab.host.store().delete_snapshot(&self.name) {
            self.lab.note_trouble(format!(
                "snapshot {} is left until the next run clears it: {error}",
                self.name
            ));
        }
    }
}

/// Refuses a machine without the tools of a backup, before anything is staged.
///
/// # Errors
/// The tool that is missing, in the words of the operating system.
pub(super) fn check_tools(plan: &BackupPlan, binary: &Binary) -> Result<(), BackupError> {
    match plan.method {
        BackupMethod::Dump => tools::check_dump(binary),
        BackupMethod::Physical => tools::check_physical(binary),
        BackupMethod::Snapshot => Ok(()),
    }
}

/// The backup tools that arms lack on this machine, each with the arms that fail without it.
pub(super) fn missing_tools(planned: &[PlannedArm]) -> Vec<String> {
    let mut arms: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for planned in planned {
        let Some(plan) = &planned.arm.backup else { continue };
        let backed_up = match plan.of {
            BackedUp::Source => planned,
            BackedUp::Replica => planned.replica.as_deref().unwrap_or(planned),
        };
        if let Err(error) = check_tools(plan, &backed_up.server) {
            arms.entry(error.to_string()).or_default().push(&planned.arm.name);
        }
    }
    arms.into_iter().map(|(why, arms)| format!("{why} (arms that fail: {})", arms.join(", "))).collect()
}

/// Has a backup wait for its second. The load must not run yet: the table of the marks is made here.
///
/// # Errors
/// The source's.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    subject: Subject<'scope>,
    source: &Server,
    beat: &'scope Beat,
) -> Result<Running<'scope>, StepError> {
    let heartbeat = if subject.beats { None } else { Some(Heartbeat::open(source)?) };
    let stop = Cancel::default();
    let stopped = stop.clone();
    let job = scope.spawn(move || {
        if !beat.wait_for(subject.plan.start_s.into()) {
            return Err(StepError::BackupTooLate);
        }
        let stop = || stopped.is_cancelled() || subject.cancel.is_cancelled();
        subject.make(heartbeat, &stop)
    });
    Ok(Running { job, stop })
}

impl<'scope> Running<'scope> {
    /// Waits for its end; a load that has failed has it end at once.
    pub(super) fn join(self, loaded: bool) -> Result<Made<'scope>, StepError> {
        if !loaded {
            self.stop.cancel();
        }
        self.job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<'a> Subject<'a> {
    fn make(&self, heartbeat: Option<Heartbeat>, stop: &dyn Fn() -> bool) -> Result<Made<'a>, StepError> {
        if let Some(mut heartbeat) = heartbeat {
            heartbeat.beat(MARK)?;
        }
        let seen = newest_beat(&mut self.server.session()?)?;
        let before = self.stats();
        let began = Instant::now();
        let at = self.write(stop)?;
        let ended = Instant::now();
        let after = self.stats();
        let used = |(role, before): (Role, Stats)| Some((role, volume_use(&before, after.get(&role)?)));
        let bytes = self.bytes(&at)?;
        let volumes = before.into_iter().filter_map(used).collect();
        Ok(Made { began, ended, bytes, volumes, seen, at })
    }

    fn stats(&self) -> BTreeMap<Role, Stats> {
        self.volumes.iter().map(|(role, volume)| (*role, volume.live().stats())).collect()
    }

    fn write(&self, stop: &dyn Fn() -> bool) -> Result<BackupPlace<'a>, StepError> {
        let target = || {
            let volume = self.volumes.get(&Role::Backup).expect("a checked arm has the volume of its backup");
            volume.dir().join(Role::Backup.key())
        };
        let data = self.volumes.get(&Role::Data).expect("every arm has a data volume");
        Ok(match self.plan.method {
            BackupMethod::Dump => {
                let file = target().join("dump.sql");
                tools::dump(&self.server, self.binary, &[DATABASE, BEAT_DATABASE], &file, stop)?;
                BackupPlace::Dump(file)
            }
            BackupMethod::Physical => {
                let (from, to) = (data.dir().join(Role::Data.key()), target());
                tools::copy_files(&self.server, self.binary, &from, &to, stop)?;
                BackupPlace::Files(to)
            }
            BackupMethod::Snapshot => {
                let name = format!("{SNAPSHOT_PREFIX}{}", data.name());
                let store = self.lab.host.store();
                data.live().snapshot(store, &name, serde_json::Value::Null).map_err(HostError::from)?;
                BackupPlace::Snapshot(Kept { lab: self.lab, name })
            }
        })
    }

    fn bytes(&self, at: &BackupPlace<'_>) -> Result<u64, BackupError> {
        match at {
            BackupPlace::Dump(path) | BackupPlace::Files(path) => tools::bytes_of(path),
            BackupPlace::Snapshot(Kept { name, .. }) => {
                let snapshots = self.lab.host.store().snapshots();
                let blocks = snapshots.iter().find(|one| one.name == *name).map_or(0, |one| one.data_blocks);
                Ok(blocks * BLOCK_BYTES)
            }
        }
    }
}

impl Made<'_> {
    /// What is kept of it; `from` is when the measurement began.
    pub(super) fn record(self, plan: BackupPlan, from: Instant, restored: Restored) -> BackupUse {
        let since = |at: Instant| at.saturating_duration_since(from).as_secs_f64();
        BackupUse {
            method: plan.method,
            of: plan.of,
            began_s: since(self.began),
            ended_s: since(self.ended),
            bytes: self.bytes,
            volumes: self.volumes,
            restored,
        }
    }
}

fn volume_use(before: &Stats, after: &Stats) -> BackupVolume {
    let happened = after.since(before);
    BackupVolume {
        read_bytes: happened.read.bytes,
        written_bytes: happened.write.bytes,
        consumed_ops: happened.consumed_ops,
        credits_before: before.credit_share,
        credits_after: after.credit_share,
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;
    use ebbtide_mysql::{Flavour, Version};

    use super::*;
    use crate::experiment::{Arm, Overrides, check, load};

    #[test]
    fn a_backup_tool_that_is_missing_is_named_once_with_the_arms_that_need_it() {
        let experiment = load("backup-load", &Overrides::default()).unwrap();
        let physical =
            |arm: &&Arm| arm.backup.as_ref().is_some_and(|plan| plan.method == BackupMethod::Physical);
        let arms: Vec<&str> = experiment.arms.iter().filter(physical).map(|arm| arm.name.as_str()).collect();
        let server = Binary {
            path: "/usr/sbin/mysqld".into(),
            flavour: Flavour::MySql,
            version: Version { major: 8, minor: 4, patch: 0 },
            text: "mysqld  Ver 8.4.0".to_owned(),
        };
        let planned = check(&experiment, &Catalog::builtin(), &server).unwrap();
        let missing = missing_tools(&planned);
        let named: Vec<_> = missing.iter().filter(|what| what.contains("mariadb-backup")).collect();
        let [what] = named[..] else { panic!("{missing:?}") };
        assert!(what.ends_with(&format!("(arms that fail: {})", arms.join(", "))), "{what}");
    }

    #[test]
    fn what_a_backup_used_is_the_growth_of_the_counters_and_both_levels_of_the_credits() {
        let mut before = Stats::default();
        (before.read.bytes, before.consumed_ops, before.credit_share) = (100, 7, Some(0.5));
        let mut after = before;
        (after.read.bytes, after.write.bytes, after.consumed_ops) = (350, 40, 19);
        after.credit_share = Some(0.25);
        let expected = BackupVolume {
            read_bytes: 250,
            written_bytes: 40,
            consumed_ops: 12,
            credits_before: Some(0.5),
            credits_after: Some(0.25),
        };
        assert_eq!(volume_use(&before, &after), expected);
    }
}
