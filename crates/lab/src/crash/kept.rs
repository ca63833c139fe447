//! Evidence: images of bad cuts, kept as snapshots, so that anyone can judge them again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ebbtide_catalog::Catalog;
use ebbtide_device::host::HostError;
use ebbtide_device::store::SnapshotInfo;
use ebbtide_load::Cancel;
use ebbtide_load::invariant::Expected;
use ebbtide_mysql::Binary;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::checker::Checker;
use super::cutter::{self, Images, Job, Known};
use super::record::{Corruption, Cut, Took, Verdict, VerdictKind};
use super::stage::Props;
use super::stint::has_binlog;
use crate::experiment::{self, Experiment, Role};
use crate::run::error::RunError;
use crate::run::event::Teller;
use crate::run::home::{self, Lab};
use crate::run::require;
use crate::run::volume::role_name;

/// Key of [`Meta`] in a snapshot's metadata.
pub(crate) const META: &str = "cut";
/// Room on the host's disk that evidence leaves alone, bytes.
const LEFT_FREE: u64 = 4 << 30;

/// What stands beside a kept image: all that judging it again takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Meta {
    cut: Cut,
    /// The experiment with the arm alone.
    experiment: Experiment,
    /// The server, in its own words.
    server: String,
    /// The server's program; none in images of earlier versions.
    #[serde(default)]
    binary: Option<Binary>,
    /// How the user named the server; none where it was the machine's own.
    #[serde(default)]
    named: Option<String>,
    /// Client, last acknowledged, last sent.
    expected: Vec<(u32, u64, u64)>,
    /// Which of the instance's volumes it is.
    role: Role,
}

/// A kept cut.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kept {
    /// Its seed, as `--replay` takes it.
    pub seed: u64,
    /// The experiment.
    pub experiment: String,
    /// The arm.
    pub arm: String,
    /// What was found.
    pub verdicts: Vec<VerdictKind>,
    /// The server that had written it, in its own words.
    pub server: String,
    /// Its program, which `--replay` starts; none in images of earlier versions.
    pub program: Option<PathBuf>,
    /// What it takes on the host's disk, bytes.
    pub allocated_bytes: u64,
    /// When it was kept, seconds since 1970.
    pub created_unix_s: u64,
}

/// What images are made by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) binary: &'a Binary,
    /// How the user named the server.
    pub(super) named: Option<&'a str>,
}

/// Decides which images are kept.
#[derive(Debug)]
pub(super) struct Keeper<'a> {
    lab: &'a Lab,
    /// What is written down beside them; none: nothing is kept.
    of: Option<Origin<'a>>,
    kept: Mutex<BTreeMap<(String, VerdictKind), u32>>,
}

impl<'a> Keeper<'a> {
    /// `known` are the cuts of the run that this one goes on with.
    pub(super) fn new(lab: &'a Lab, origin: Origin<'a>, known: &[Cut]) -> Self {
        let keeper = Self { lab, of: Some(origin), kept: Mutex::default() };
        known.iter().filter(|cut| cut.kept).for_each(|cut| count(&mut keeper.kept.lock(), cut));
        keeper
    }

    /// One that keeps nothing.
    const fn none(lab: &'a Lab) -> Self {
        Self { lab, of: None, kept: Mutex::new(BTreeMap::new()) }
    }

    /// Deletes the images of a cut; before that they are kept where it is bad and has something to tell that
    /// others of its arm do not. Says whether they are.
    pub(super) fn keep_or_delete(&self, images: &Images, cut: &Cut, expected: &[Expected]) -> bool {
        let kept = self.is_wanted(cut) && self.keep(images, cut, expected);
        cutter::delete(self.lab, images);
        kept
    }

    fn is_wanted(&self, cut: &Cut) -> bool {
        let Some(Origin { experiment, .. }) = self.of else { return false };
        let room = self.lab.host.home().free_bytes().is_ok_and(|free| free > LEFT_FREE);
        if !cut.is_bad() || !room {
            return false;
        }
        let arm = experiment.arms.iter().find(|arm| arm.name == cut.arm);
        let most = arm.and_then(|arm| arm.crash.as_ref()).map_or(0, |plan| plan.keep);
        let mut kept = self.kept.lock();
        let kinds: Vec<VerdictKind> = cut.kinds().into_iter().filter(can_be_asked_again).collect();
        let counts = |kept: &BTreeMap<_, u32>, kind| kept.get(&(cut.arm.clone(), kind)).copied().unwrap_or(0);
        let wanted = kinds.iter().any(|kind| counts(&kept, *kind) < most);
        if wanted {
            count(&mut kept, cut);
        }
        wanted
    }

    fn keep(&self, images: &Images, cut: &Cut, expected: &[Expected]) -> bool {
        let Some(Origin { experiment, binary, named }) = self.of else { return false };
        let arms = experiment.arms.iter().filter(|arm| arm.name == cut.arm).cloned().collect();
        let experiment = Experiment { arms, comparisons: Vec::new(), ..experiment.clone() };
        let store = self.lab.host.store();
        // An earlier run with this seed has left its own: the newer one is what the report of today names.
        for role in images.keys() {
            let _ = store.delete_snapshot(&snapshot_name(cut.seed, *role));
        }
        for (role, image) in images {
            let meta = Meta {
                cut: Cut { kept: true, ..cut.clone() },
                experiment: experiment.clone(),
                server: binary.text.clone(),
                binary: Some(binary.clone()),
                named: named.map(str::to_owned),
                expected: expected.iter().map(|one| (one.client, one.acknowledged, one.sent)).collect(),
                role: *role,
            };
            let name = snapshot_name(cut.seed, *role);
            let kept = store.snapshot(image, &name, serde_json::json!({ META: meta }));
            if let Err(error) = kept {
                tracing::warn!(name, %error, "the image of a bad cut is not kept");
                for role in images.keys() {
                    let _ = store.delete_snapshot(&snapshot_name(cut.seed, *role));
                }
                return false;
            }
        }
        true
    }
}

/// Whether a verdict can be judged again from the image alone: the source of a replica is gone with the run.
fn can_be_asked_again(kind: &VerdictKind) -> bool {
    *kind != VerdictKind::ReplicationBroken
}

/// Counts a cut that is kept with each kind of its verdicts.
fn count(kept: &mut BTreeMap<(String, VerdictKind), u32>, cut: &Cut) {
    for kind in cut.kinds().into_iter().filter(can_be_asked_again) {
        *kept.entry((cut.arm.clone(), kind)).or_default() += 1;
    }
}

fn snapshot_name(seed: u64, role: Role) -> String {
    format!("cut-{seed:016x}-{}", role_name(role))
}

/// The kept cuts of a home. A run that is under way there goes on.
///
/// # Errors
/// A store that cannot be read.
pub fn list(home: &Path) -> Result<Vec<Kept>, RunError> {
    let mut all: BTreeMap<u64, Kept> = BTreeMap::new();
    for (info, meta) in read(home::snapshots(home)?) {
        let kept = all.entry(meta.cut.seed).or_insert_with(|| Kept {
            seed: meta.cut.seed,
            experiment: meta.experiment.name.clone(),
            arm: meta.cut.arm.clone(),
            verdicts: meta.cut.kinds(),
            server: meta.server.clone(),
            program: meta.binary.as_ref().map(|binary| binary.path.clone()),
            allocated_bytes: 0,
            created_unix_s: info.created_unix_s,
        });
        kept.allocated_bytes += info.allocated_bytes;
    }
    Ok(all.into_values().collect())
}

fn snapshots(lab: &Lab) -> Vec<(SnapshotInfo, Meta)> {
    read(lab.host.store().snapshots())
}

fn read(snapshots: Vec<SnapshotInfo>) -> Vec<(SnapshotInfo, Meta)> {
    let read = |info: SnapshotInfo| Meta::deserialize(&info.meta[META]).ok().map(|meta| (info, meta));
    snapshots.into_iter().filter_map(read).collect()
}

/// Deletes the images of a kept cut.
///
/// # Errors
/// [`RunError::Busy`] while a run has them, and where none are kept of that seed.
pub fn delete(home: &Path, seed: u64) -> Result<(), RunError> {
    let lab = Lab::open(home, &Cancel::default(), Teller::new(&|_| ()))?;
    let found: Vec<_> = snapshots(&lab).into_iter().filter(|(_, meta)| meta.cut.seed == seed).collect();
    if found.is_empty() {
        return Err(RunError::NotKept { seed });
    }
    for (info, _) in found {
        lab.host.store().delete_snapshot(&info.name).map_err(HostError::from)?;
    }
    lab.host.store().settle();
    Ok(())
}

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
/// [`RunError::NotKept`], [`RunError::ServerGone`], [`RunError::OtherServer`], and whatever forbids a run.
pub fn replay(
    home: &Path,
    seed: u64,
    given: Option<&Binary>,
    catalog: &Catalog,
    cancel: &Cancel,
) -> Result<Replayed, RunError> {
    let kept = read(home::snapshots(home)?);
    let Some((_, meta)) = kept.iter().find(|(_, meta)| meta.cut.seed == seed) else {
        return Err(RunError::NotKept { seed });
    };
    let binary = &server_of(meta, given)?;
    require::equipment(&meta.experiment).map_err(RunError::Missing)?;
    let lab = Lab::open(home, cancel, Teller::new(&|_| ()))?;
    let found: Vec<_> = snapshots(&lab).into_iter().filter(|(_, meta)| meta.cut.seed == seed).collect();
    let Some((_, meta)) = found.first() else { return Err(RunError::NotKept { seed }) };
    let checked = experiment::check(&meta.experiment, catalog, binary)?;
    let props = Props {
        lab: &lab,
        binary,
        arm: &meta.experiment.arms[0],
        checked: &checked.arms[0],
        seed: meta.experiment.seed,
        cancel,
    };
    let images = images(&lab, seed, &found)?;
    let expected = |&(client, acknowledged, sent): &(u32, u64, u64)| Expected {
        client,
        acknowledged,
        acknowledged_at: None,
        sent,
    };
    let keeper = Keeper::none(&lab);
    let schema = meta.experiment.data.invariants().schema;
    let checker = Checker {
        props,
        schema: &schema,
        has_binlog: has_binlog(props.arm, &props.checked.options),
        keeper: &keeper,
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
    let known = Known { expected, applied: None, journal: None, at: Instant::now() };
    let job = Job { cut, images, known };
    let mut again = checker.judge(job).ok_or(RunError::Cancelled { done: 0, of: 1 })?;
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
fn images(lab: &Lab, seed: u64, kept: &[(SnapshotInfo, Meta)]) -> Result<Images, HostError> {
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

/// The server that recovers an image: the one that had written it, or another program of its version.
fn server_of(meta: &Meta, given: Option<&Binary>) -> Result<Binary, RunError> {
    let gone =
        |why: String| RunError::ServerGone { server: meta.server.clone(), why, named: meta.named.clone() };
    let Some(writer) = &meta.binary else {
        // An image of an earlier version knows what its server said of itself.
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

fn other(meta: &Meta, given: &Binary) -> RunError {
    RunError::OtherServer { server: meta.server.clone(), given: given.name() }
}

/// Whether a server can recover what another one has left: it is of the same series. Neither MariaDB nor MySQL
/// upgrades data after a crash.
fn is_alike(writer: &Binary, other: &Binary) -> bool {
    let series = |binary: &Binary| (binary.flavour, binary.version.major, binary.version.minor);
    series(writer) == series(other)
}
