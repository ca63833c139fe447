//! Evidence: images of bad cuts, kept as snapshots, so that anyone can judge them again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ebbtide_device::host::HostError;
use ebbtide_device::store::SnapshotInfo;
use ebbtide_lab::experiment::{Experiment, Role};
use ebbtide_lab::run::event::EventSink;
use ebbtide_lab::run::home::{self, Lab};
use ebbtide_load::Cancel;
use ebbtide_load::invariant::Expected;
use ebbtide_mysql::Binary;
use ebbtide_text::seed;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::cutter::{self, Images};
use super::error::KeptError;
use super::record::{Cut, VerdictKind};

/// Key of [`KeptMeta`] in a snapshot's metadata.
const META: &str = "cut";
/// Room on the host's disk that evidence leaves alone, bytes.
const LEFT_FREE: u64 = 4 << 30;

/// What is stored with a kept image: all that judging it again takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptMeta {
    pub(super) cut: Cut,
    /// The experiment with the arm alone.
    pub(super) experiment: Experiment,
    /// The server, in its own words.
    pub(super) server: String,
    /// The server's program; none in images of earlier versions.
    #[serde(default)]
    pub(super) binary: Option<Binary>,
    /// How the user named the server; none where it was the machine's own.
    #[serde(default)]
    pub(super) named: Option<String>,
    /// Client, last acknowledged, last sent.
    pub(super) expected: Vec<(u32, u64, u64)>,
    /// Which of the instance's volumes it is.
    pub(super) role: Role,
}

/// A kept cut.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeptCut {
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
pub(super) struct ImageOrigin<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) binary: &'a Binary,
    /// How the user named the server.
    pub(super) named: Option<&'a str>,
}

/// Decides which images are kept.
#[derive(Debug)]
pub(super) struct ImageRetention<'a> {
    lab: &'a Lab,
    /// What is written down with them; None: nothing is kept.
    of: Option<ImageOrigin<'a>>,
    kept: Mutex<BTreeMap<(String, VerdictKind), u32>>,
}

impl<'a> ImageRetention<'a> {
    /// `known` are the cuts of the run that this one goes on with.
    pub(super) fn new(lab: &'a Lab, origin: ImageOrigin<'a>, known: &[Cut]) -> Self {
        let retention = Self { lab, of: Some(origin), kept: Mutex::default() };
        known.iter().filter(|cut| cut.kept).for_each(|cut| count(&mut retention.kept.lock(), cut));
        retention
    }

    /// One that keeps nothing.
    pub(super) const fn none(lab: &'a Lab) -> Self {
        Self { lab, of: None, kept: Mutex::new(BTreeMap::new()) }
    }

    /// Deletes the images of a cut; before that they are kept where it is bad and shows something that
    /// others of its arm do not. Reports whether they are.
    pub(super) fn keep_or_delete(&self, images: &Images, cut: &Cut, expected: &[Expected]) -> bool {
        let kept = self.is_wanted(cut) && self.keep(images, cut, expected);
        cutter::delete(self.lab, images);
        kept
    }

    fn is_wanted(&self, cut: &Cut) -> bool {
        let Some(ImageOrigin { experiment, .. }) = self.of else { return false };
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
        let Some(ImageOrigin { experiment, binary, named }) = self.of else { return false };
        let arms = experiment.arms.iter().filter(|arm| arm.name == cut.arm).cloned().collect();
        let experiment = Experiment { arms, comparisons: Vec::new(), ..experiment.clone() };
        let store = self.lab.host.store();
        // An earlier run with this seed has left its own: the newer one is what the report of today names.
        for role in images.keys() {
            let _ = store.delete_snapshot(&snapshot_name(cut.seed, *role));
        }
        for (role, image) in images {
            let meta = KeptMeta {
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
pub(super) fn can_be_asked_again(kind: &VerdictKind) -> bool {
    *kind != VerdictKind::ReplicationBroken
}

/// Counts a cut that is kept with each kind of its verdicts.
fn count(kept: &mut BTreeMap<(String, VerdictKind), u32>, cut: &Cut) {
    for kind in cut.kinds().into_iter().filter(can_be_asked_again) {
        *kept.entry((cut.arm.clone(), kind)).or_default() += 1;
    }
}

fn snapshot_name(seed: u64, role: Role) -> String {
    format!("cut-{}-{}", seed::hex(seed), role.volume_name())
}

/// The kept cuts of a home. A run that is under way there goes on.
///
/// # Errors
/// A store that cannot be read.
pub fn list(home: &Path) -> Result<Vec<KeptCut>, KeptError> {
    let mut all: BTreeMap<u64, KeptCut> = BTreeMap::new();
    for (info, meta) in read(home::snapshots(home)?) {
        let kept = all.entry(meta.cut.seed).or_insert_with(|| KeptCut {
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

pub(super) fn snapshots(lab: &Lab) -> Vec<(SnapshotInfo, KeptMeta)> {
    read(lab.host.store().snapshots())
}

pub(super) fn read(snapshots: Vec<SnapshotInfo>) -> Vec<(SnapshotInfo, KeptMeta)> {
    let read = |info: SnapshotInfo| KeptMeta::deserialize(&info.meta[META]).ok().map(|meta| (info, meta));
    snapshots.into_iter().filter_map(read).collect()
}

/// Deletes the images of a kept cut.
///
/// # Errors
/// [`KeptError::Run`] while a run has them, and where none are kept of that seed.
pub fn delete(home: &Path, seed: u64) -> Result<(), KeptError> {
    let lab = Lab::open(home, &Cancel::default(), EventSink::new(&|_| ()))?;
    let found: Vec<_> = snapshots(&lab).into_iter().filter(|(_, meta)| meta.cut.seed == seed).collect();
    if found.is_empty() {
        return Err(KeptError::NotKept { seed });
    }
    for (info, _) in found {
        lab.host.store().delete_snapshot(&info.name).map_err(HostError::from)?;
    }
    lab.host.store().settle();
    Ok(())
}
