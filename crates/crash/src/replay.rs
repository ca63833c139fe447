//! Judging a kept cut again, from the same bytes, and leaving its recovered server up for a look.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ebbtide_catalog::Catalog;
use ebbtide_device::host::HostError;
use ebbtide_device::store::SnapshotInfo;
use ebbtide_lab::experiment::{self, Experiment, PlannedArm};
use ebbtide_lab::run::error::{RunError, StepError, chain};
use ebbtide_lab::run::event::EventSink;
use ebbtide_lab::run::home::{self, Lab};
use ebbtide_lab::run::requirements;
use ebbtide_load::invariant::Expected;
use ebbtide_load::{Cancel, DATABASE};
use ebbtide_mysql::{Binary, ProcessEnd, Server, recovery};
use ebbtide_workload::invariant::HISTORY;
use parking_lot::Mutex;
use serde::Serialize;

use super::binlog::has_binlog;
use super::checker::{self, Checker};
use super::cutter::{self, CutState, Images, PendingCut};
use super::error::KeptError;
use super::kept_images::{ImageRetention, KeptMeta, can_be_asked_again, read, snapshots};
use super::mounted_arm::{ArmContext, MountedArm};
use super::record::{Corruption, Cut, Took, Verdict};
use super::recovery_gate::RecoveryGate;
use super::stint_workload::StintWorkload;

/// A kept cut that was judged again. Whether a replica goes on where it was is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// What was found when it was taken.
    pub then: Cut,
    /// What is found now.
    pub now: Cut,
    /// Whether a recovery ran now: the server came up on the image, or tried to and refused.
    pub recovered: bool,
    /// Whether both are the same; none where no recovery ran, so that there is nothing to compare.
    pub same: Option<bool>,
    /// The server that recovered.
    pub server: Binary,
    /// The lines that the server wrote while it recovered and was asked.
    #[serde(skip)]
    pub log: Vec<String>,
    /// The table with a row for each transaction, by client and number; None where the load is another one.
    #[serde(skip)]
    pub history: Option<String>,
}

/// Judges a kept cut again, from the same bytes, by the same rules, with the server that had written it, or with
/// `given` of the same version.
///
/// # Errors
/// [`KeptError::NotKept`], [`KeptError::ServerGone`], [`KeptError::OtherServer`], and whatever forbids a run.
pub fn replay(
    home: &Path,
    seed: u64,
    given: Option<&Binary>,
    catalog: &Catalog,
    cancel: &Cancel,
) -> Result<Replayed, KeptError> {
    let kept = KeptImage::open(home, seed, given, catalog, cancel)?;
    let (context, meta) = (kept.context(cancel), kept.meta());
    let images = kept.volumes(seed)?;
    let expected = |&(client, acknowledged, sent): &(u32, u64, u64)| Expected {
        client,
        acknowledged,
        acknowledged_at: None,
        sent,
    };
    let retention = ImageRetention::none(&kept.lab);
    let work = StintWorkload::of(meta.experiment.data);
    let (log, recoveries) = (Mutex::default(), RecoveryGate::new(1));
    let checker = Checker {
        context,
        work: &work,
        has_binlog: has_binlog(&context.planned.arm, &context.planned.options, kept.binary.is_mariadb()),
        retention: &retention,
        recoveries: &recoveries,
        number: 0,
        log: Some(&log),
    };
    let cut = Cut {
        verdicts: Vec::new(),
        torn_before: Vec::new(),
        loss: None,
        recovery: None,
        resumed: None,
        took: Took::default(),
        kept: true,
        ..meta.cut.clone()
    };
    let expected = meta.expected.iter().map(expected).collect();
    let state = CutState { expected, applied: None, journal: None, at: Instant::now() };
    let pending = PendingCut { cut, images, state };
    let mut again = checker.judge(pending).ok_or(RunError::Cancelled { done: 0, of: 1 })?;
    again.kept = true;
    if let (Some(loss), Some(before)) = (&mut again.loss, &meta.cut.loss) {
        // Only the run knew when each commit was acknowledged.
        loss.seconds = if loss.clients == before.clients { before.seconds } else { f64::NAN };
    }
    let mut then = meta.cut.clone();
    then.verdicts.retain(|verdict| can_be_asked_again(&verdict.kind()));
    let recovered = has_recovered(&again);
    let same = recovered.then(|| then.kinds() == again.kinds());
    let history =
        matches!(work, StintWorkload::Invariants(_)).then(|| format!("{DATABASE}.{}", HISTORY.name));
    let server = kept.binary.clone();
    Ok(Replayed { then, now: again, recovered, same, server, log: log.into_inner(), history })
}

/// A recovered server that is left up for a look, on a copy of an image that is thrown away afterwards.
#[derive(Debug)]
pub struct LeftRunning<'a> {
    /// The server.
    pub server: &'a Server,
    /// Where its data are mounted.
    pub data: PathBuf,
    /// Its program.
    pub binary: &'a Binary,
}

/// Lets a server recover on a kept cut and leaves it up until `cancel`, or until it is shut down. `on_up` is called once it
/// answers. Nothing of it is left then: the server is ended, its volumes are unmounted, detached and deleted.
///
/// # Errors
/// As [`replay`], [`KeptError::NotUp`] and [`KeptError::NotEnded`].
pub fn keep_running(
    home: &Path,
    seed: u64,
    given: Option<&Binary>,
    catalog: &Catalog,
    cancel: &Cancel,
    on_up: &mut dyn FnMut(&LeftRunning<'_>),
) -> Result<(), KeptError> {
    let kept = KeptImage::open(home, seed, given, catalog, cancel)?;
    let context = kept.context(cancel);
    let images = kept.volumes(seed)?;
    let not_up = |error: StepError| KeptError::NotUp(Box::new(error));
    // The volumes stay without limits: a look need not wait for them.
    let mounted = MountedArm::of_images(context, |role| cutter::image_name(seed, role), &|_| ());
    let mounted = mounted.map_err(|error| {
        checker::delete_copies(&kept.lab, images.into_values());
        not_up(error)
    })?;
    recovery::own_binlog_index(&mounted.layout())
        .map_err(|error| not_up(StepError::HostFailed(format!("the binary log: {}", chain(&error)))))?;
    let plan = mounted.plan(context, "kept");
    let (layout, work) = (plan.layout.clone(), plan.work.clone());
    let plan = plan.for_recovery(layout, work);
    let server = checker::start(&plan).0.map_err(|error| not_up(error.into()))?;
    on_up(&LeftRunning { server: &server, data: mounted.layout().data, binary: &kept.binary });
    while !cancel.is_cancelled() && server.end() == ProcessEnd::Running {
        std::thread::sleep(LOOK_EVERY);
    }
    // One that was shut down has ended as it was asked to.
    let died = server.died().filter(|_| server.end() != ProcessEnd::Exited { code: 0 });
    // What it has in memory is on no volume that is kept.
    let ended = server.kill();
    drop(mounted);
    kept.lab.host.store().settle();
    died.map_or(ended.map(drop), Err).map_err(|error| KeptError::NotEnded(Box::new(error.into())))
}

/// How often a server that is left up is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A kept cut with what its recovery takes.
struct KeptImage {
    lab: Lab,
    binary: Binary,
    /// Its arm alone.
    arms: Vec<PlannedArm>,
    /// The snapshots, one for each volume.
    snapshots: Vec<(SnapshotInfo, KeptMeta)>,
}

impl KeptImage {
    /// Takes the lab of a home, once the cut and its server are known to be there.
    fn open(
        home: &Path,
        seed: u64,
        given: Option<&Binary>,
        catalog: &Catalog,
        cancel: &Cancel,
    ) -> Result<Self, KeptError> {
        let kept = read(home::listed(home)?);
        let Some((_, meta)) = kept.iter().find(|(_, meta)| meta.cut.seed == seed) else {
            return Err(KeptError::NotKept { seed });
        };
        let binary = server_of(meta, given)?;
        requirements::equipment(&meta.experiment).map_err(RunError::Missing)?;
        let lab = Lab::open(home, cancel, EventSink::new(&|_| ()))?;
        let snapshots: Vec<_> =
            snapshots(&lab).into_iter().filter(|(_, meta)| meta.cut.seed == seed).collect();
        let Some((_, meta)) = snapshots.first() else { return Err(KeptError::NotKept { seed }) };
        let arms = experiment::check(&without_source(&meta.experiment), catalog, &binary)?;
        Ok(Self { lab, binary, arms, snapshots })
    }

    fn meta(&self) -> &KeptMeta {
        &self.snapshots[0].1
    }

    fn context<'a>(&'a self, cancel: &'a Cancel) -> ArmContext<'a> {
        let seed = self.meta().experiment.seed;
        ArmContext { lab: &self.lab, binary: &self.binary, planned: &self.arms[0], seed, cancel }
    }

    /// Makes volumes of the snapshots.
    fn volumes(&self, seed: u64) -> Result<Images, HostError> {
        images(&self.lab, seed, &self.snapshots)
    }
}

/// Volumes with the content of a cut's kept images.
fn images(lab: &Lab, seed: u64, kept: &[(SnapshotInfo, KeptMeta)]) -> Result<Images, HostError> {
    let mut images = Images::new();
    for (info, meta) in kept {
        let name = cutter::image_name(seed, meta.role);
        let nothing = serde_json::Value::Null;
        lab.host.store().create_from_snapshot(&name, &info.name, info.size_bytes, nothing)?;
        images.insert(meta.role, name);
    }
    Ok(images)
}

/// Whether a server came up on an image, or tried to recover and refused.
fn has_recovered(cut: &Cut) -> bool {
    let refused = |verdict: &Verdict| {
        matches!(verdict, Verdict::Corrupt { how: Corruption::NoStart | Corruption::FileSystem, .. })
    };
    cut.recovery.is_some() || cut.verdicts.iter().any(refused)
}

/// The experiment of an image, whose replica follows nobody any more: its source need not be there.
fn without_source(experiment: &Experiment) -> Experiment {
    let mut experiment = experiment.clone();
    experiment.arms.iter_mut().filter_map(|arm| arm.crash.as_mut()).for_each(|crash| crash.source = None);
    experiment
}

/// The server that recovers an image: the one that had written it, or another program of its version.
fn server_of(meta: &KeptMeta, given: Option<&Binary>) -> Result<Binary, KeptError> {
    let gone =
        |why: String| KeptError::ServerGone { server: meta.server.clone(), why, named: meta.named.clone() };
    let Some(writer) = &meta.binary else {
        // An image of an earlier version has what its server printed as its version.
        let binary = match given {
            Some(given) => given.clone(),
            None => Binary::detect(None).map_err(|error| gone(error.to_string()))?,
        };
        let release = |text: &str| text.split_once("Ver ").map_or(text, |(_, of)| of).trim().to_owned();
        return match (release(&binary.text) == release(&meta.server), given) {
            (true, _) => Ok(binary),
            (false, Some(_)) => Err(other(meta, &binary)),
            (false, None) => Err(gone(format!("{} is {}", binary.path.display(), binary.name()))),
        };
    };
    if let Some(given) = given {
        return if is_alike(writer, given) { Ok(given.clone()) } else { Err(other(meta, given)) };
    }
    let found = Binary::detect(Some(&writer.path)).map_err(|error| gone(error.to_string()))?;
    if !is_alike(writer, &found) {
        return Err(gone(format!("{} is {} by now", found.path.display(), found.name())));
    }
    Ok(found)
}

fn other(meta: &KeptMeta, given: &Binary) -> KeptError {
    KeptError::OtherServer { server: meta.server.clone(), given: given.name() }
}

/// Whether a server can recover what another one has left: it is of the same series. Neither MariaDB nor MySQL
/// upgrades data after a crash.
fn is_alike(writer: &Binary, other: &Binary) -> bool {
    let series = |binary: &Binary| (binary.flavour, binary.version.major, binary.version.minor);
    series(writer) == series(other)
}
