//! An arm's server on its volumes, in a trial as under power cuts: its directories, its plan, and the volumes' limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_load::Cancel;
use ebbtide_mysql::{Layout, ServerPlan, WorkPaths};
use ebbtide_volume::Instance;
use parking_lot::Mutex;

use super::error::StepError;
use super::volume::LabVolume;
use crate::experiment::{PlannedArm, Role};

/// A server that has to bring its redo log to another size, on a volume without limits.
const START: Duration = Duration::from_secs(120);

/// The volumes of an arm, attached and mounted.
pub type Volumes<'a> = BTreeMap<Role, LabVolume<'a>>;

/// The directories of a server on these volumes.
///
/// # Panics
/// Without a data volume: every arm has one.
#[must_use]
pub fn layout(volumes: &Volumes<'_>) -> Layout {
    layout_on(|role| volumes.get(&role).map(|volume| volume.dir().to_owned()))
}

/// The directories of a server, by where the volume of each role is mounted; None: there is none of that role. Each has
/// the name of what it holds, so that several volumes may have one mount.
///
/// # Panics
/// Without a data volume.
pub(super) fn layout_on(mount: impl Fn(Role) -> Option<PathBuf>) -> Layout {
    let own = |role: Role| Some(mount(role)?.join(role.key()));
    let log = |role: Role| Some(mount(role).or_else(|| mount(Role::Logs))?.join(role.key()));
    Layout {
        redo: log(Role::Redo),
        binlog: log(Role::Binlog),
        undo: own(Role::Undo),
        tmp: own(Role::Tmp),
        relay: own(Role::Relay),
        ..Layout::single(own(Role::Data).expect("every arm has a data volume"))
    }
}

/// The server of an arm, as it runs under its load.
#[must_use]
pub fn server_plan(
    volumes: &Volumes<'_>,
    planned: &PlannedArm,
    work: WorkPaths,
    cancel: &Cancel,
) -> ServerPlan {
    let PlannedArm { arm, server, .. } = planned;
    ServerPlan {
        settings: arm.settings.clone(),
        memory_bytes: Some(arm.instance.memory_bytes),
        start_timeout: START,
        cancel: cancel.clone(),
        ..ServerPlan::new(server.clone(), layout(volumes), work)
    }
}

/// Switches the limits of all volumes on, and those of their instance.
///
/// # Errors
/// A volume that is gone.
pub fn limit(volumes: &Volumes<'_>, planned: &PlannedArm) -> Result<(), StepError> {
    let instance = planned.instance.as_ref();
    let instance = instance.map(|instance| Arc::new(Mutex::new(Instance::new(instance.limits))));
    volumes.iter().try_for_each(|(role, volume)| volume.limit(&planned.volumes[role], instance.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_logs_have_a_directory_each_on_the_volume_that_they_share() {
        let of = |roles: &[Role]| {
            layout_on(|role| {
                roles.contains(&role).then(|| PathBuf::from(format!("/m/{}", role.volume_name())))
            })
        };
        let shared = of(&[Role::Data, Role::Logs]);
        assert_eq!(shared.redo, Some("/m/redo-binlog/redo".into()));
        assert_eq!(shared.binlog, Some("/m/redo-binlog/binlog".into()));
        assert_eq!((shared.data, shared.undo), ("/m/data/data".into(), None));
        let apart = of(&[Role::Data, Role::Redo]);
        assert_eq!((apart.redo, apart.binlog), (Some("/m/redo/redo".into()), None));
    }
}
