//! The volumes of an arm in a stint, and its server on them.

use std::collections::BTreeMap;
use std::process::Command;

use ebbtide_catalog::Resolved;
use ebbtide_device::faults::Faults;
use ebbtide_device::host::HostError;
use ebbtide_lab::experiment::{Fault, PlannedArm, Role};
use ebbtide_lab::run::arm_server::{self, Volumes};
use ebbtide_lab::run::error::StepError;
use ebbtide_lab::run::home::{Lab, TRIAL_PREFIX};
use ebbtide_lab::run::prepared::fs_type;
use ebbtide_lab::run::topology;
use ebbtide_lab::run::volume::{LabVolume, VolumeOrigin, VolumeRequest, without_limits};
use ebbtide_load::Cancel;
use ebbtide_mysql::{Binary, Layout, Server, ServerPlan};
use ebbtide_volume::Stats;

use super::file_map::FileMap;
use super::replication_part;

/// What mounting an arm and starting its server takes.
#[derive(Clone, Copy)]
pub(super) struct ArmContext<'a> {
    pub(super) lab: &'a Lab,
    pub(super) binary: &'a Binary,
    pub(super) planned: &'a PlannedArm,
    /// Seed of the volumes' draws.
    pub(super) seed: u64,
    pub(super) cancel: &'a Cancel,
}

impl ArmContext<'_> {
    /// The same for the source that the arm's server follows.
    pub(super) fn of_source(self) -> Self {
        let planned = self.planned.source.as_deref().unwrap_or(self.planned);
        Self { binary: &planned.server, planned, ..self }
    }
}

/// An arm's volumes, mounted.
#[derive(Debug)]
pub(super) struct MountedArm<'a> {
    pub(super) volumes: Volumes<'a>,
}

impl<'a> MountedArm<'a> {
    /// Clones the prepared data and attaches every volume, without limits for now.
    pub(super) fn mount(
        context: ArmContext<'a>,
        snapshot: &str,
        name: &str,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, StepError> {
        let origin = |role| match role {
            Role::Data => VolumeOrigin::Snapshot(snapshot),
            _ => VolumeOrigin::Blank,
        };
        Self::attach(context, origin, |role| format!("{TRIAL_PREFIX}{name}-{}", role.volume_name()), progress)
    }

    /// Attaches volumes that are in the store, such as copies of crash images.
    pub(super) fn of_images(
        context: ArmContext<'a>,
        name: impl Fn(Role) -> String,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, StepError> {
        Self::attach(context, |_| VolumeOrigin::Stored, name, progress)
    }

    /// A clone of the prepared data on one volume that stays without limits.
    pub(super) fn unlimited(
        context: ArmContext<'a>,
        snapshot: &str,
        name: &str,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, StepError> {
        let name = format!("{TRIAL_PREFIX}{name}-{}", Role::Data.volume_name());
        let real = &context.planned.volumes[&Role::Data];
        let volume = Self::volume(context, real, name, VolumeOrigin::Snapshot(snapshot), progress)?;
        Ok(Self { volumes: [(Role::Data, volume)].into() })
    }

    fn attach<'b>(
        context: ArmContext<'a>,
        origin: impl Fn(Role) -> VolumeOrigin<'b>,
        name: impl Fn(Role) -> String,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, StepError> {
        let mut mounted = Self { volumes: BTreeMap::new() };
        for (role, real) in &context.planned.volumes {
            let volume = Self::volume(context, real, name(*role), origin(*role), progress)?;
            mounted.volumes.insert(*role, volume);
        }
        Ok(mounted)
    }

    fn volume(
        context: ArmContext<'a>,
        real: &Resolved,
        name: String,
        origin: VolumeOrigin<'_>,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<LabVolume<'a>, StepError> {
        let request = VolumeRequest {
            name,
            origin,
            unlimited: without_limits(real, context.lab.host.now()),
            fs: fs_type(&context.planned.arm.instance.fs),
            rotational: context.planned.arm.instance.rotational,
            seed: context.seed,
            cancel: context.cancel,
        };
        LabVolume::make(context.lab, request, progress)
    }

    /// The directories of a server on these volumes.
    pub(super) fn layout(&self) -> Layout {
        arm_server::layout(&self.volumes)
    }

    /// The server of the arm, as it runs under the load.
    pub(super) fn plan(&self, context: ArmContext<'_>, work: &str) -> ServerPlan {
        let work = context.lab.work(work);
        let plan = arm_server::server_plan(&self.volumes, context.planned, work, context.cancel);
        match replication_part::of_server(context.planned.arm.crash.as_ref()) {
            Some(part) => topology::with_part(plan, part),
            None => plan,
        }
    }

    /// Starts the arm's server.
    pub(super) fn start(
        &self,
        context: ArmContext<'_>,
        work: &str,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Server, StepError> {
        Ok(Server::start(&self.plan(context, work), &progress)?)
    }

    /// Switches the limits of all volumes on, and those of their instance.
    pub(super) fn limit(&self, context: ArmContext<'_>) -> Result<(), StepError> {
        arm_server::limit(&self.volumes, context.planned)
    }

    /// Switches them off again.
    pub(super) fn hasten(&self) -> Result<(), StepError> {
        self.volumes.values().try_for_each(LabVolume::unlimit)
    }

    /// Has all volumes do wrong.
    pub(super) fn plant(&self, fault: Option<Fault>) -> Result<(), StepError> {
        let faults = match fault {
            None => return Ok(()),
            // A device that acknowledges writes early, and flushes correctly, would not be caught by anyone who
            // flushes.
            Some(Fault::AnswerEarly) => {
                Faults { answer_early: true, ignore_flush: true, ..Faults::default() }
            }
            Some(Fault::IgnoreFlush) => Faults { ignore_flush: true, ..Faults::default() },
        };
        self.volumes.values().try_for_each(|volume| {
            volume.live().set_faults(faults.clone()).map_err(|error| HostError::from(error).into())
        })
    }

    /// Which file every part of the volumes belongs to, now.
    pub(super) fn map(&self, binary: &Binary) -> Result<BTreeMap<Role, FileMap>, StepError> {
        let draw =
            |(role, volume): (&Role, &LabVolume<'_>)| Ok((*role, FileMap::draw(volume.dir(), binary)?));
        self.volumes.iter().map(draw).collect::<std::io::Result<_>>().map_err(|source| StepError::Io {
            action: "look where the server's files are on their volumes".into(),
            source,
        })
    }

    /// Has the operating system write back what it holds of the volumes.
    pub(super) fn sync(&self) -> Result<(), StepError> {
        for volume in self.volumes.values() {
            let action = || format!("write back {}", volume.dir().display());
            let synced = Command::new("sync").arg("--file-system").arg(volume.dir()).status();
            match synced {
                Ok(status) if status.success() => {}
                Ok(status) => return Err(StepError::HostFailed(format!("cannot {}: {status}", action()))),
                Err(source) => return Err(StepError::Io { action: action(), source }),
            }
        }
        Ok(())
    }

    /// What the host failed of the volumes' requests, in words; none where it failed none.
    pub(super) fn host_failures(&self) -> Option<String> {
        let of = |(role, volume): (&Role, &LabVolume<'_>)| {
            let failures = volume.live().host_failures();
            failures.into_iter().map(|failure| format!("{}: {failure}", role.key())).collect::<Vec<_>>()
        };
        let all: Vec<String> = self.volumes.iter().flat_map(of).collect();
        (!all.is_empty()).then(|| format!("the host failed requests of the volumes: {}", all.join("; ")))
    }

    /// The counters of all volumes together.
    pub(super) fn io(&self) -> Stats {
        self.volumes.values().fold(Stats::default(), |sum, volume| sum.combined(&volume.live().stats()))
    }
}
