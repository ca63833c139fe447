//! Whether the server runs as the arms ask, found out before data are made: it is started once in each of
//! their ways, on a data directory without tables and a volume without limits.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use ebbtide_load::Cancel;
use ebbtide_mysql::{Binary, Layout, Server, ServerError, ServerPlan, Settings};
use ebbtide_volume::{GIB, parse_size};

use super::error::{RunError, StepError};
use super::event::EventSink;
use super::home::Lab;
use super::prepared::{fs_type, made_with};
use super::volume::{LabVolume, VolumeOrigin, VolumeRequest, ideal};
use crate::experiment::{self, Arm, Experiment, Role};

/// The volume, and the work directory of the server on it.
const NAME: &str = "rehearsal";
/// Room for two data directories without tables, redo logs not included.
const ROOM: u64 = 4 * GIB;

/// What trying the arms takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerCheckContext<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) binary: &'a Binary,
    pub(crate) cancel: &'a Cancel,
    pub(crate) events: EventSink<'a>,
}

/// Tries every arm of an experiment. Answers with why the server refuses the settings of arms that are to be left out, by
/// their names.
///
/// # Errors
/// [`RunError::Unfit`] for the first arm that cannot be left out ([`experiment::leave_out`]).
pub(crate) fn hold(
    context: ServerCheckContext<'_>,
    experiment: &Experiment,
) -> Result<BTreeMap<String, String>, RunError> {
    context.events.preparing(format!("trying {} with what the arms ask for", context.binary.name()));
    let ended = || context.cancel.is_cancelled();
    let servers = with_replicas(experiment);
    let refusals = Rehearsal::new(context, &servers)
        .map_err(|error| RunError::Untried(Box::new(error)))
        .and_then(|rehearsal| rehearsal.refusals(&servers));
    // What fails when the run was ended fails because of that.
    if ended() {
        return Err(RunError::Cancelled { done: 0, of: 0 });
    }
    left_out(experiment, refusals?, context.binary)
}

/// Servers that were refused for their settings, and the arms that ask for them.
struct Refused {
    arms: Vec<String>,
    error: StepError,
}

/// Why arms are to be left out, by their names.
fn left_out(
    experiment: &Experiment,
    refusals: Vec<Refused>,
    binary: &Binary,
) -> Result<BTreeMap<String, String>, RunError> {
    let of_arms = |refused: &Refused| {
        let why = refused.error.chain();
        refused.arms.iter().map(|arm| (arm.clone(), why.clone())).collect::<Vec<_>>()
    };
    let whys: BTreeMap<String, String> = refusals.iter().flat_map(of_arms).collect();
    let mut left = experiment.clone();
    experiment::leave_out(&mut left, |arm| whys.get(&arm.name).cloned());
    for Refused { mut arms, error } in refusals {
        arms.retain(|name| left.arms.iter().any(|arm| arm.name == *name));
        if let Some(first) = arms.first() {
            return Err(RunError::Unfit {
                arm: first.clone(),
                others: arms.len() - 1,
                server: binary.name(),
                error: Box::new(error),
                by_settings: true,
            });
        }
    }
    Ok(whys)
}

/// An experiment with the replicas of its arms as arms of their own, each after its source and by the same name.
fn with_replicas(experiment: &Experiment) -> Experiment {
    let arms = experiment.arms.iter().flat_map(|arm| std::iter::once(arm.clone()).chain(arm.replica()));
    Experiment { arms: arms.collect(), ..experiment.clone() }
}

/// Arms whose servers are started alike.
struct Alike<'a> {
    way: (&'a Settings, Vec<Role>, u64),
    arms: Vec<&'a Arm>,
}

/// The arms of an experiment by how their servers are started, in the order of the first of each.
fn alike(experiment: &Experiment) -> Vec<Alike<'_>> {
    let mut all: Vec<Alike<'_>> = Vec::new();
    for arm in &experiment.arms {
        let way = (&arm.settings, arm.volumes.keys().copied().collect(), arm.instance.memory_bytes);
        match all.iter_mut().find(|alike| alike.way == way) {
            Some(alike) => alike.arms.push(arm),
            None => all.push(Alike { way, arms: vec![arm] }),
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
    fn new(context: ServerCheckContext<'a>, experiment: &Experiment) -> Result<Self, StepError> {
        let redo =
            experiment.arms.iter().filter_map(|arm| parse_size(arm.settings.get("redo_capacity")?).ok());
        let size = ROOM + redo.max().unwrap_or(0).saturating_mul(2).next_multiple_of(GIB);
        let request = VolumeRequest {
            name: NAME.into(),
            origin: VolumeOrigin::Blank,
            unlimited: ideal(size, context.lab.host.now()),
            fs: fs_type(&experiment.arms[0].instance.fs),
            rotational: false,
            seed: experiment.seed,
            cancel: context.cancel,
        };
        let volume = LabVolume::make(context.lab, request, &|_| ())?;
        Ok(Self { context, volume, fresh: RefCell::default() })
    }

    /// The servers that are refused for their settings.
    ///
    /// # Errors
    /// [`RunError::Unfit`] for the first that does not start for another reason.
    fn refusals(&self, experiment: &Experiment) -> Result<Vec<Refused>, RunError> {
        let mut refusals = Vec::new();
        for alike in alike(experiment) {
            let Err(error) = self.start(alike.arms[0]) else { continue };
            if !self.is_of_settings(&error, alike.arms[0].instance.memory_bytes) {
                return Err(RunError::Unfit {
                    arm: alike.arms[0].name.clone(),
                    others: alike.arms.len() - 1,
                    server: self.context.binary.name(),
                    error: Box::new(error),
                    by_settings: false,
                });
            }
            let mut arms: Vec<String> = alike.arms.iter().map(|arm| arm.name.clone()).collect();
            // A replica has the name of its source.
            arms.dedup();
            refusals.push(Refused { arms, error });
        }
        Ok(refusals)
    }

    /// Whether an arm's settings, or where it puts its files, are why its server did not start. Where its
    /// words do not report it, one without them shows it.
    fn is_of_settings(&self, error: &StepError, memory_bytes: u64) -> bool {
        match error {
            StepError::Server(ServerError::DidNotStart { .. }) => {
                self.start_with(&Settings::new(), &[], memory_bytes).is_ok()
            }
            StepError::Server(error) => !error.is_environment(),
            _ => false,
        }
    }

    fn start(&self, arm: &Arm) -> Result<(), StepError> {
        let roles: Vec<Role> = arm.volumes.keys().copied().filter(|role| *role != Role::Data).collect();
        self.start_with(&arm.settings, &roles, arm.instance.memory_bytes)
    }

    /// Starts the server and ends it again; all that it made is removed.
    fn start_with(&self, settings: &Settings, roles: &[Role], memory_bytes: u64) -> Result<(), StepError> {
        let fresh = self.fresh(&made_with(settings, self.context.binary))?;
        let at = |role: Role| self.volume.dir().join(role.key());
        let own = |role: Role| roles.contains(&role).then(|| at(role));
        let data = at(Role::Data);
        tool("cp", ["-a".as_ref(), "--reflink=auto".as_ref(), fresh.as_os_str(), data.as_os_str()])?;
        let layout = Layout {
            redo: own(Role::Redo),
            binlog: own(Role::Binlog),
            undo: own(Role::Undo),
            tmp: own(Role::Tmp),
            relay: own(Role::Relay),
            ..Layout::single(data)
        };
        let plan = ServerPlan {
            settings: settings.clone(),
            memory_bytes: Some(memory_bytes),
            ..self.plan(layout.clone())
        };
        let started = Server::start(&plan, &|_| ()).and_then(Server::kill);
        let made = layout.dirs().map(Path::as_os_str);
        tool("rm", ["-rf".as_ref()].into_iter().chain(made))?;
        Ok(started?)
    }

    /// A data directory without tables; made once for each set of settings that it keeps.
    fn fresh(&self, kept: &Settings) -> Result<PathBuf, StepError> {
        let key = kept.init_key(self.context.binary);
        if let Some(known) = self.fresh.borrow().get(&key) {
            return Ok(known.clone());
        }
        let dir = self.volume.dir().join(format!("fresh-{}", self.fresh.borrow().len()));
        let plan = ServerPlan { settings: kept.clone(), ..self.plan(Layout::single(dir.clone())) };
        ebbtide_mysql::initialize(&plan, &|_| ())?;
        self.fresh.borrow_mut().insert(key, dir.clone());
        Ok(dir)
    }

    fn plan(&self, layout: Layout) -> ServerPlan {
        let work_dir = self.context.lab.work_dir(NAME);
        let cancel = self.context.cancel.clone();
        ServerPlan { cancel, ..ServerPlan::new(self.context.binary.clone(), layout, work_dir) }
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
    use super::*;
    use crate::experiment::{self, Overrides};

    #[test]
    fn arms_that_differ_in_load_or_limits_alone_are_tried_once() {
        let text = "title = \"t\"\n[axes.volume.gp2.volumes]\ndata = \"gp2:size=100GiB\"\n\
                    [axes.volume.gp3.volumes]\ndata = \"gp3:size=100GiB\"\n\
                    [axes.how.plain.load]\nworkload = \"read_only\"\n\
                    [axes.how.large.settings]\nbuffer_pool_size = \"256MiB\"\n\
                    [axes.how.apart.volumes]\nredo = \"gp3:size=10GiB\"\n";
        let experiment = experiment::parse("t", "t.toml", text, &Overrides::default()).unwrap();
        let ways: Vec<Vec<&str>> = alike(&experiment)
            .iter()
            .map(|alike| alike.arms.iter().map(|arm| arm.name.as_str()).collect())
            .collect();
        let both = |how: &str| vec![format!("gp2 / {how}"), format!("gp3 / {how}")];
        assert_eq!(ways, [both("plain"), both("large"), both("apart")]);
    }

    #[test]
    fn a_replica_with_settings_of_its_own_is_tried_under_the_name_of_its_arm() {
        let text = "[settings]\nlog_bin = true\n[topology]\nreplicas = 2\n[topology.replica.settings]\nlog_bin = false\n\
                    [arms.a]\n";
        let experiment = experiment::parse("t", "t.toml", text, &Overrides::default()).unwrap();
        let servers = with_replicas(&experiment);
        let ways: Vec<(&str, Option<&str>)> = alike(&servers)
            .iter()
            .map(|alike| (alike.arms[0].name.as_str(), alike.arms[0].settings.get("log_bin")))
            .collect();
        assert_eq!(ways.len(), 2);
        assert!(ways.iter().all(|(name, _)| *name == "a"), "{ways:?}");
        assert_ne!(ways[0].1, ways[1].1);
    }
}
