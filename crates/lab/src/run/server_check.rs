//! Whether the servers run as the arms ask, found out before data are made: each is started once in each of
//! their ways, on a data directory without tables and a volume without limits.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use ebbtide_load::Cancel;
use ebbtide_mysql::{Binary, Layout, Server, ServerError, ServerPlan, Settings};
use ebbtide_volume::{GIB, parse_size};

use super::Plan;
use super::arm_server::layout_on;
use super::error::{RunError, StepError};
use super::event::EventSink;
use super::home::Lab;
use super::prepared::{fs_type, made_with};
use super::volume::{LabVolume, VolumeOrigin, VolumeRequest, ideal};
use crate::experiment::{self, Arm, Experiment, PlannedArm, Role};

/// The volume, and the work directory of the server on it.
const NAME: &str = "rehearsal";
/// Room for two data directories without tables, redo logs not included.
const ROOM: u64 = 4 * GIB;

/// What trying the arms takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerCheckContext<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) cancel: &'a Cancel,
    pub(crate) events: EventSink<'a>,
}

/// Tries every arm of a plan. Answers with why a server refuses the settings of arms that are to be left out, by their
/// names.
///
/// # Errors
/// [`RunError::Unfit`] for the first arm that cannot be left out ([`experiment::leave_out`]).
pub(crate) fn hold(
    context: ServerCheckContext<'_>,
    plan: &Plan,
) -> Result<BTreeMap<String, String>, RunError> {
    let servers: Vec<&PlannedArm> = plan.arms().iter().flat_map(PlannedArm::servers).collect();
    let names: BTreeSet<String> = servers.iter().map(|planned| planned.server.name()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    context.events.preparing(format!("trying {names} with what the arms ask for"));
    let ended = || context.cancel.is_cancelled();
    let refusals = Rehearsal::new(context, plan)
        .map_err(|error| RunError::Untried(Box::new(error)))
        .and_then(|rehearsal| rehearsal.refusals(&servers));
    // What fails when the run was ended fails because of that.
    if ended() {
        return Err(RunError::Cancelled { done: 0, of: 0 });
    }
    left_out(&plan.experiment(), refusals?)
}

/// Servers that were refused for their settings, and the arms that ask for them.
struct Refused {
    arms: Vec<String>,
    /// Name and version of the server.
    server: String,
    error: StepError,
}

/// Why arms are to be left out, by their names.
fn left_out(experiment: &Experiment, refusals: Vec<Refused>) -> Result<BTreeMap<String, String>, RunError> {
    let of_arms = |refused: &Refused| {
        let why = refused.error.chain();
        refused.arms.iter().map(|arm| (arm.clone(), why.clone())).collect::<Vec<_>>()
    };
    let whys: BTreeMap<String, String> = refusals.iter().flat_map(of_arms).collect();
    let mut left = experiment.clone();
    experiment::leave_out(&mut left, |arm| whys.get(&arm.name).cloned());
    for Refused { mut arms, server, error } in refusals {
        arms.retain(|name| left.arms.iter().any(|arm| arm.name == *name));
        if let Some(first) = arms.first() {
            return Err(RunError::Unfit {
                arm: first.clone(),
                others: arms.len() - 1,
                server,
                error: Box::new(error),
                by_settings: true,
            });
        }
    }
    Ok(whys)
}

/// Arms whose servers are started alike.
struct Alike<'a> {
    way: (&'a Binary, &'a Settings, Vec<Role>, u64),
    servers: Vec<&'a PlannedArm>,
}

/// Servers by how they are started, in the order of the first of each. A replica has the name of its source's arm.
fn alike<'a>(servers: &[&'a PlannedArm]) -> Vec<Alike<'a>> {
    let mut all: Vec<Alike<'a>> = Vec::new();
    for &planned in servers {
        let PlannedArm { arm, server, .. } = planned;
        let roles = arm.volumes.keys().copied().collect();
        let way = (server, &arm.settings, roles, arm.instance.memory_bytes);
        match all.iter_mut().find(|alike| alike.way == way) {
            Some(alike) => alike.servers.push(planned),
            None => all.push(Alike { way, servers: vec![planned] }),
        }
    }
    all
}

struct Rehearsal<'a> {
    context: ServerCheckContext<'a>,
    volume: LabVolume<'a>,
    /// Data directories without tables, by the settings that they were made with.
    fresh: RefCell<BTreeMap<String, PathBuf>>,
}

impl<'a> Rehearsal<'a> {
    fn new(context: ServerCheckContext<'a>, plan: &Plan) -> Result<Self, StepError> {
        let arms = || plan.arms().iter().flat_map(PlannedArm::servers).map(|planned| &planned.arm);
        let redo = arms().filter_map(|arm| parse_size(arm.settings.get("redo_capacity")?).ok());
        let size = ROOM + redo.max().unwrap_or(0).saturating_mul(2).next_multiple_of(GIB);
        let request = VolumeRequest {
            name: NAME.into(),
            origin: VolumeOrigin::Blank,
            unlimited: ideal(size, context.lab.host.now()),
            fs: fs_type(&plan.arms()[0].arm.instance.fs),
            rotational: false,
            seed: plan.experiment().seed,
            cancel: context.cancel,
        };
        let volume = LabVolume::make(context.lab, request, &|_| ())?;
        Ok(Self { context, volume, fresh: RefCell::default() })
    }

    /// The servers that are refused for their settings.
    ///
    /// # Errors
    /// [`RunError::Unfit`] for the first that does not start for another reason.
    fn refusals(&self, servers: &[&PlannedArm]) -> Result<Vec<Refused>, RunError> {
        let mut refusals = Vec::new();
        for Alike { servers, .. } in alike(servers) {
            let first = servers[0];
            let Err(error) = self.start(first) else { continue };
            let server = first.server.name();
            if !self.is_of_settings(&error, first) {
                return Err(RunError::Unfit {
                    arm: first.arm.name.clone(),
                    others: servers.len() - 1,
                    server,
                    error: Box::new(error),
                    by_settings: false,
                });
            }
            let mut arms: Vec<String> = servers.iter().map(|planned| planned.arm.name.clone()).collect();
            // A replica has the name of its source.
            arms.dedup();
            refusals.push(Refused { arms, server, error });
        }
        Ok(refusals)
    }

    /// Whether an arm's settings, or where it puts its files, are why its server did not start. Where its
    /// words do not report it, one without them shows it.
    fn is_of_settings(&self, error: &StepError, planned: &PlannedArm) -> bool {
        match error {
            StepError::Server(ServerError::DidNotStart { .. }) => {
                let bare = Arm { settings: Settings::new(), volumes: BTreeMap::new(), ..planned.arm.clone() };
                self.start(&PlannedArm { arm: bare, ..planned.clone() }).is_ok()
            }
            StepError::Server(error) => !error.is_environment(),
            _ => false,
        }
    }

    /// Starts the server and ends it again; all that it made is removed.
    fn start(&self, planned: &PlannedArm) -> Result<(), StepError> {
        let PlannedArm { arm, server: binary, .. } = planned;
        let fresh = self.fresh(&made_with(&arm.settings, binary), binary)?;
        // All on the one volume; an arm without volumes has its data here too.
        let layout = layout_on(|role| {
            let is_there = role == Role::Data || arm.volumes.contains_key(&role);
            is_there.then(|| self.volume.dir().to_owned())
        });
        let data = &layout.data;
        tool("cp", ["-a".as_ref(), "--reflink=auto".as_ref(), fresh.as_os_str(), data.as_os_str()])?;
        let plan = ServerPlan {
            settings: arm.settings.clone(),
            memory_bytes: Some(arm.instance.memory_bytes),
            ..self.plan(layout.clone(), binary)
        };
        let started = Server::start(&plan, &|_| ()).and_then(Server::kill);
        let made = layout.dirs().map(Path::as_os_str);
        tool("rm", ["-rf".as_ref()].into_iter().chain(made))?;
        Ok(started?)
    }

    /// A data directory without tables; made once for each server and set of settings that it keeps.
    fn fresh(&self, kept: &Settings, binary: &Binary) -> Result<PathBuf, StepError> {
        let key = kept.init_key(binary);
        if let Some(known) = self.fresh.borrow().get(&key) {
            return Ok(known.clone());
        }
        let dir = self.volume.dir().join(format!("fresh-{}", self.fresh.borrow().len()));
        let plan = ServerPlan { settings: kept.clone(), ..self.plan(Layout::single(dir.clone()), binary) };
        ebbtide_mysql::initialize(&plan, &|_| ())?;
        self.fresh.borrow_mut().insert(key, dir.clone());
        Ok(dir)
    }

    fn plan(&self, layout: Layout, binary: &Binary) -> ServerPlan {
        let work = self.context.lab.work(NAME);
        let cancel = self.context.cancel.clone();
        ServerPlan { cancel, ..ServerPlan::new(binary.clone(), layout, work) }
    }
}

/// Runs a tool on files of a volume: in a child process, since this one answers for their I/O.
fn tool<'a>(name: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<(), StepError> {
    let failed = |source| StepError::Io { action: format!("run {name}"), source };
    let output = Command::new(name).args(arguments).output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(std::io::Error::other(message)))
}

#[cfg(test)]
mod tests {
    use ebbtide_catalog::Catalog;
    use ebbtide_mysql::{Flavour, Version};

    use super::*;
    use crate::experiment::{self, Overrides};

    /// What is planned of an experiment on MariaDB 10.11, by how its servers are started: the names of the arms.
    fn ways(text: &str) -> Vec<Vec<String>> {
        let experiment = experiment::parse("t", "t.toml", text, &Overrides::default()).unwrap();
        let version = Version { major: 10, minor: 11, patch: 14 };
        let text = "Ver 10.11.14-MariaDB".to_owned();
        let server = Binary { path: "/usr/sbin/mariadbd".into(), flavour: Flavour::MariaDb, version, text };
        let arms = experiment::check(&experiment, &Catalog::builtin(), &server).unwrap();
        let servers: Vec<&PlannedArm> = arms.iter().flat_map(PlannedArm::servers).collect();
        let names = |alike: &Alike<'_>| {
            alike.servers.iter().map(|planned| planned.arm.name.clone()).collect::<Vec<_>>()
        };
        alike(&servers).iter().map(names).collect()
    }

    #[test]
    fn arms_that_differ_in_load_or_limits_alone_are_tried_once() {
        let text = "title = \"t\"\n[axes.volume.gp2.volumes]\ndata = \"gp2:size=100GiB\"\n\
                    [axes.volume.gp3.volumes]\ndata = \"gp3:size=100GiB\"\n\
                    [axes.how.plain.load]\nworkload = \"read_only\"\n\
                    [axes.how.large.settings]\nbuffer_pool_size = \"256MiB\"\n\
                    [axes.how.apart.volumes]\nredo = \"gp3:size=10GiB\"\n";
        let both = |how: &str| vec![format!("gp2 / {how}"), format!("gp3 / {how}")];
        assert_eq!(ways(text), [both("plain"), both("large"), both("apart")]);
    }

    #[test]
    fn a_replica_with_settings_of_its_own_is_tried_under_the_name_of_its_arm() {
        let text = "[settings]\nlog_bin = true\n[topology]\nreplicas = 2\n[topology.replica.settings]\nlog_bin = false\n\
                    [arms.a]\n";
        assert_eq!(ways(text), [["a"], ["a"]]);
    }
}
