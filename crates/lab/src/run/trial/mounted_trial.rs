//! The volumes of a trial: those of the server of the load, and those of each of its replicas.

use std::collections::BTreeMap;

use ebbtide_mysql::ServerPlan;

use super::{Failure, MeasurementStart, TrialContext};
use crate::experiment::{PlannedArm, Role};
use crate::run::arm_server::{self, Volumes};
use crate::run::error::StepError;
use crate::run::home::{Lab, TRIAL_PREFIX};
use crate::run::prepared::fs_type;
use crate::run::sampler::Watched;
use crate::run::topology;
use crate::run::verdict::VolumeEnd;
use crate::run::volume::{IopsLimit, LabVolume, VolumeOrigin, VolumeRequest, without_limits};

/// A file system with less room than this is full: InnoDB extends its files by up to this much.
const FULL_BYTES: u64 = 8 << 20;

/// The volumes of a trial, attached and mounted.
#[derive(Debug)]
pub(super) struct MountedTrial<'a> {
    lab: &'a Lab,
    /// Of the server of the load.
    pub(super) volumes: Volumes<'a>,
    /// Of each of its replicas.
    replicas: Vec<Volumes<'a>>,
}

impl<'a> MountedTrial<'a> {
    /// Clones the prepared data for every server, and attaches all volumes, without limits for now.
    pub(super) fn mount(context: &TrialContext<'a>) -> Result<Self, StepError> {
        let trial = (context.progress)().number;
        let volumes = Self::attach(context, context.planned, &format!("{TRIAL_PREFIX}{trial}"))?;
        let mut mounted = Self { lab: context.lab, volumes, replicas: Vec::new() };
        if let Some(replica) = &context.planned.replica {
            for number in 1..=context.planned.arm.topology.replicas {
                let prefix = format!("{TRIAL_PREFIX}{trial}-replica-{number}");
                mounted.replicas.push(Self::attach(context, replica, &prefix)?);
            }
        }
        Ok(mounted)
    }

    /// The volumes of a server, each cloned from the prepared data or blank.
    fn attach(
        context: &TrialContext<'a>,
        planned: &PlannedArm,
        prefix: &str,
    ) -> Result<Volumes<'a>, StepError> {
        let mut volumes = Volumes::new();
        for (role, real) in &planned.volumes {
            let origin = match role {
                Role::Data => VolumeOrigin::Snapshot(&context.snapshots[&planned.prepare_key]),
                _ => VolumeOrigin::Blank,
            };
            let request = VolumeRequest {
                name: format!("{prefix}-{}", role.volume_name()),
                origin,
                unlimited: without_limits(real, context.lab.host.now()),
                fs: fs_type(&planned.arm.instance.fs),
                rotational: planned.arm.instance.rotational,
                seed: context.seed(),
                cancel: context.cancel,
            };
            context.proceed()?;
            let progress = |text: &str| context.waiting(text);
            volumes.insert(*role, LabVolume::make(context.lab, request, &progress)?);
        }
        Ok(volumes)
    }

    /// The server of the load.
    pub(super) fn plan(&self, context: &TrialContext<'_>) -> ServerPlan {
        let arm = &context.planned.arm;
        let work = self.lab.work("trial");
        let plan = arm_server::server_plan(&self.volumes, context.planned, work, context.cancel);
        if arm.topology.is_single() {
            return plan;
        }
        topology::as_source(plan, arm.topology.by)
    }

    /// The replicas that follow it.
    pub(super) fn replica_plans(&self, context: &TrialContext<'_>) -> Vec<ServerPlan> {
        let by = context.planned.arm.topology.by;
        let Some(replica) = &context.planned.replica else { return Vec::new() };
        let plan = |(number, volumes): (u32, &Volumes<'_>)| {
            let work = self.lab.work(&format!("replica-{number}"));
            let plan = arm_server::server_plan(volumes, replica, work, context.cancel);
            topology::as_replica(plan, number, by)
        };
        (1..).zip(&self.replicas).map(plan).collect()
    }

    /// The live volumes of the server of the load, and those of each of its replicas.
    pub(super) fn watched(&self) -> (Watched<'_>, Vec<Watched<'_>>) {
        fn live<'v>(volumes: &'v Volumes<'_>) -> Watched<'v> {
            volumes.iter().map(|(role, volume)| (*role, volume.live())).collect()
        }
        (live(&self.volumes), self.replicas.iter().map(live).collect())
    }

    /// The volumes of the first replica; none without replicas.
    pub(super) fn replica_volumes(&self) -> Option<&Volumes<'a>> {
        self.replicas.first()
    }

    /// The servers' volumes, each with what they resolve to: the server of the load first.
    fn servers<'s>(
        &'s self,
        planned: &'s PlannedArm,
    ) -> impl Iterator<Item = (&'s Volumes<'a>, &'s PlannedArm)> {
        let of_replicas = planned.replica.as_deref().into_iter();
        let replicas =
            of_replicas.flat_map(move |replica| self.replicas.iter().map(move |one| (one, replica)));
        std::iter::once((&self.volumes, planned)).chain(replicas)
    }

    /// All volumes of all servers.
    pub(super) fn all_volumes(&self) -> impl Iterator<Item = &LabVolume<'a>> {
        std::iter::once(&self.volumes).chain(&self.replicas).flat_map(BTreeMap::values)
    }

    /// Switches the limits of all volumes on, multiplied.
    pub(super) fn lead_in(&self, context: &TrialContext<'_>) -> Result<(), StepError> {
        let speed = context.planned.arm.warmup.lead_in_speed;
        for (volumes, planned) in self.servers(context.planned) {
            for (role, volume) in volumes {
                volume.lead_in(&planned.volumes[role], speed)?;
            }
        }
        Ok(())
    }

    /// Switches the limits of all volumes on, and those of the instance of each server.
    pub(super) fn limit(&self, context: &TrialContext<'_>) -> Result<(), StepError> {
        self.servers(context.planned).try_for_each(|(volumes, planned)| arm_server::limit(volumes, planned))
    }

    /// The figures of the volumes, when they were measured since `begun`.
    pub(super) fn ends(&self, planned: &PlannedArm, begun: Option<&MeasurementStart>) -> Vec<VolumeEnd> {
        let instance = planned.instance.as_ref().map(|instance| &instance.limits);
        let end = |(role, volume): (&Role, &LabVolume<'_>)| VolumeEnd {
            role: *role,
            pacing: volume.live().pacing(),
            host_errors: volume.live().host_errors(),
            limit: IopsLimit::of(&planned.volumes[role], instance),
            device_queue: begun.and_then(|begun| begun.mean_queue(*role, volume)),
        };
        self.volumes.iter().map(end).collect()
    }

    /// Switches all limits off.
    pub(super) fn release(&self) {
        self.all_volumes().for_each(LabVolume::release);
    }

    /// The cause of a failure, as far as the volumes report it.
    pub(super) fn explain(&self, failure: Failure) -> Failure {
        if matches!(*failure.error, StepError::Cancelled) {
            return failure;
        }
        let errors: u64 = self.all_volumes().map(|volume| volume.live().host_errors()).sum();
        if errors > 0 {
            let free = self.lab.host.home().free_bytes().unwrap_or(0);
            let why = format!(
                "the host failed {errors} requests of the volumes: its disk is full or broken ({} MiB are free \
                 on the disk that holds the lab): {}",
                free >> 20,
                failure.error.chain()
            );
            return Failure { error: Box::new(StepError::HostFailed(why)), ..failure };
        }
        let full = self.full();
        let full =
            full.or_else(|| self.fullest().filter(|_| reports_full(&failure.log)).map(|(_, full)| full));
        match full {
            Some(error) => Failure { error: Box::new(error), ..failure },
            None => failure,
        }
    }

    /// The volume whose file system has no room left, as an error.
    pub(super) fn full(&self) -> Option<StepError> {
        let (free, fullest) = self.fullest()?;
        (free < FULL_BYTES).then_some(fullest)
    }

    /// The volume with the least room left, bytes, and the error of its being full.
    fn fullest(&self) -> Option<(u64, StepError)> {
        let all = std::iter::once(&self.volumes).chain(&self.replicas).flatten();
        let room = |(role, volume): (&Role, &LabVolume<'_>)| {
            let free = ebbtide_device::host::free_bytes(volume.dir()).ok()?;
            let size = volume.live().size_bytes();
            Some((free, StepError::VolumeFull { role: role.key(), size, free }))
        };
        all.filter_map(room).min_by_key(|(free, _)| *free)
    }
}

/// Whether a server's log reports that a file could not grow. Servers ask for tens of MiB at a time, so
/// that some room may be left then.
fn reports_full(log: &[String]) -> bool {
    // ENOSPC, as MariaDB and MySQL put it.
    let words = ["error 28", "errno: 28", "error number 28", "No space left on device", "is full"];
    log.iter().any(|line| words.iter().any(|word| line.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_reports_that_a_file_could_not_grow() {
        let log = |line: &str| [line.to_owned()];
        assert!(reports_full(&log(
            "[ERROR] InnoDB: preallocating 79691776 bytes for file ./ibdata1 failed with error 28"
        )));
        assert!(reports_full(&log("[ERROR] [MY-012639] [InnoDB] Write to file ./x.ibd failed, errno: 28")));
        assert!(!reports_full(&log("2026-11-20 11:28:28 0 [Note] mariadbd: ready for connections.")));
    }
}
