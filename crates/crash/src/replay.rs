//! Judging a kept cut again, from the same bytes.

use std::path::Path;
use std::time::Instant;

use ebbtide_catalog::Catalog;
use ebbtide_device::host::HostError;
use ebbtide_device::store::SnapshotInfo;
use ebbtide_lab::experiment::{self, Experiment};
use ebbtide_lab::run::error::RunError;
use ebbtide_lab::run::event::EventSink;
use ebbtide_lab::run::home::{self, Lab};
use ebbtide_lab::run::requirements;
use ebbtide_load::Cancel;
use ebbtide_load::invariant::Expected;
use ebbtide_mysql::Binary;
use serde::Serialize;

use super::binlog::has_binlog;
use super::checker::Checker;
use super::cutter::{self, CutState, Images, PendingCut};
use super::error::KeptError;
use super::kept_images::{ImageRetention, KeptMeta, can_be_asked_again, read, snapshots};
use super::mounted_arm::ArmContext;
use super::record::{Corruption, Cut, Took, Verdict};
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
    let kept = read(home::listed(home)?);
    let Some((_, meta)) = kept.iter().find(|(_, meta)| meta.cut.seed == seed) else {
        return Err(KeptError::NotKept { seed });
    };
    let binary = &server_of(meta, given)?;
    requirements::equipment(&meta.experiment).map_err(RunError::Missing)?;
    let lab = Lab::open(home, cancel, EventSink::new(&|_| ()))?;
    let found: Vec<_> = snapshots(&lab).into_iter().filter(|(_, meta)| meta.cut.seed == seed).collect();
    let Some((_, meta)) = found.first() else { return Err(KeptError::NotKept { seed }) };
    let arms = experiment::check(&without_source(&meta.experiment), catalog, binary)?;
    let context = ArmContext { lab: &lab, binary, planned: &arms[0], seed: meta.experiment.seed, cancel };
    let images = images(&lab, seed, &found)?;
    let expected = |&(client, acknowledged, sent): &(u32, u64, u64)| Expected {
        client,
        acknowledged,
        acknowledged_at: None,
        sent,
    };
    let retention = ImageRetention::none(&lab);
    let work = StintWorkload::of(meta.experiment.data);
    let checker = Checker {
        context,
        work: &work,
        has_binlog: has_binlog(&context.planned.arm, &context.planned.options, binary.is_mariadb()),
        retention: &retention,
        number: 0,
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
    Ok(Replayed { then, now: again, recovered, same, server: binary.clone() })
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
