//! Crash images: volumes as a power cut would leave them now, while the originals go on.

use std::time::Instant;

use ebbtide_volume::{AtomicUnit, Nanos};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;

use super::{
    EngineError, LiveVolume, PowerCutReport,
    cut::{self, Decided, InFlight, each_once},
    overlay::Survivors,
};
use crate::{
    store::{CloneRequest, OpenVolume, VolumeStore},
    sys::Boost,
};

/// Lost pages of a volatile cache that a [`CrashReport`] names at most.
pub const CACHED_LOST_NAMED: usize = 4096;

/// An image to take.
#[derive(Debug)]
pub struct ImageRequest<'a> {
    /// Of which volume. The same one may be asked for several times, with different seeds.
    pub volume: &'a LiveVolume,
    /// Name of the volume that the image becomes.
    pub image: &'a str,
    /// Decides what becomes of the writes in flight and of a volatile cache.
    pub seed: u64,
    /// Kept with the image.
    pub meta: Value,
}

/// Of which writes in flight a report keeps the contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// Of none.
    #[default]
    Nothing,
    /// Of those that are torn.
    Torn,
    /// Of all.
    All,
}

/// Images of several volumes at one instant.
#[derive(Debug, Clone)]
pub struct GroupCut {
    /// The instant: what was answered before it is in the images, what was submitted after it is not.
    pub at: Instant,
    /// How long no write could complete on any of the volumes.
    pub paused: Nanos,
    /// One report for each request, in the order of the requests.
    pub images: Vec<CrashReport>,
}

/// A crash image, and what taking it cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CrashReport {
    /// What the power cut that it shows would have done.
    pub cut: PowerCutReport,
    /// How long no write could complete.
    pub paused: Nanos,
    /// Every write in flight, in the order of submission.
    pub writes: Vec<CutWrite>,
    /// Where the volatile cache lost pages of 4 KiB that were answered, bytes from the beginning of
    /// the volume, ascending; the first [`CACHED_LOST_NAMED`] of them.
    pub cached_lost: Vec<u64>,
    /// How many more it lost.
    pub cached_lost_unnamed: u64,
}

/// What became of a write that was in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CutWrite {
    /// First byte on the volume.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// When it was submitted, in the volume's time.
    pub submitted: Nanos,
    /// Whether it makes zeroes (write-zeroes, discard) instead of bringing data.
    pub zeroes: bool,
    /// Aligned atomic units that it touches.
    pub units: u64,
    /// The units that are new, as offset and length in bytes; the others are old.
    pub new: Vec<(u64, u64)>,
    /// What was there before. Empty unless [`Keep`] asked for it and the write brings data.
    #[serde(skip)]
    pub before: Vec<u8>,
    /// What the write was to leave there. Empty where `before` is.
    #[serde(skip)]
    pub after: Vec<u8>,
}

impl CutWrite {
    /// Whether some of its units are new and some are old.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        !self.new.is_empty() && u64::try_from(self.new.len()).is_ok_and(|new| new < self.units)
    }
}

impl Keep {
    fn wants(self, write: &Decided) -> bool {
        write.data.is_some()
            && match self {
                Self::Nothing => false,
                Self::Torn => write.is_torn(),
                Self::All => true,
            }
    }
}

/// Makes each image a volume of `store`, as one power cut that hits all their volumes now would leave
/// them; the volumes, which are of that store, go on. Until the images are taken no write of any of
/// them is completed: what one volume has in its image when it depends on another's answer, the
/// other has in its own.
///
/// # Errors
/// Where the store cannot make a clone or does not take a surviving unit. There are no images then.
pub fn crash_images(
    store: &VolumeStore,
    requests: &[ImageRequest<'_>],
    keep: Keep,
) -> Result<GroupCut, EngineError> {
    let clones = requests.iter().map(|request| CloneRequest {
        source: request.volume.name(),
        name: request.image,
        meta: request.meta.clone(),
    });
    let clones: Vec<_> = clones.collect();
    let volumes = each_once(requests.iter().map(|request| request.volume));
    let boost = Boost::new();
    let began = Instant::now();
    let alone: Vec<_> = volumes.iter().map(|volume| volume.core.gate.write()).collect();
    let (at, moments) = look(&volumes, requests);
    let undone: Vec<_> =
        requests.iter().zip(moments).map(|(request, moment)| moment.undone(request)).collect();
    let cloned = store.clone_volumes(&clones);
    drop(alone);
    let paused = Nanos::from(began.elapsed());
    drop(boost);
    cloned?;
    let images = requests.iter().zip(undone).map(|(request, undone)| {
        let finished = undone.finish(store, request.volume.store(), request.image, keep);
        finished.map(|report| CrashReport { paused, ..report })
    });
    match images.collect() {
        Ok(images) => Ok(GroupCut { at, paused, images }),
        Err(error) => {
            // Without all that the reports would count, they are not the images that were asked for.
            for ImageRequest { image, .. } in requests {
                if let Err(stays) = store.delete_volume(image) {
                    tracing::warn!(image, error = %stays, "an unfinished crash image stays behind");
                }
            }
            Err(error)
        }
    }
}

impl LiveVolume {
    /// Makes `image` a volume of `store` as a power cut now would leave this one, while this one
    /// goes on: [`crash_images`] of one volume, without contents. `meta` is kept with the image.
    ///
    /// # Errors
    /// As there.
    pub fn crash_image(
        &self,
        store: &VolumeStore,
        image: &str,
        seed: u64,
        meta: Value,
    ) -> Result<CrashReport, EngineError> {
        let request = ImageRequest { volume: self, image, seed, meta };
        let mut group = crash_images(store, &[request], Keep::Nothing)?;
        Ok(group.images.pop().expect("one request has one report"))
    }
}

/// A volume at the instant of the cut. The caller holds its gate, so that its cache stays as it is.
struct Moment {
    now: Nanos,
    unit: AtomicUnit,
    in_flight: InFlight,
}

/// Notes the instant, and for each request what its volume has in flight then: while nothing can be
/// submitted to any of them.
fn look(volumes: &[&LiveVolume], requests: &[ImageRequest<'_>]) -> (Instant, Vec<Moment>) {
    let states: Vec<_> = volumes.iter().map(|volume| volume.core.state.lock()).collect();
    let at = Instant::now();
    let moments = requests.iter().map(|ImageRequest { volume, .. }| {
        let place = volumes.binary_search_by_key(&volume.key(), |volume| volume.key());
        let state = &states[place.expect("every volume that is asked for is locked")];
        Moment {
            now: volume.now(),
            unit: state.model.array.durability().atomic_unit,
            in_flight: InFlight::of(state.in_order()),
        }
    });
    (at, moments.collect())
}

impl Moment {
    /// Decides about the volatile cache, which changes as soon as the gate is open.
    fn undone(self, request: &ImageRequest<'_>) -> Undone {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(request.seed);
        let cached = request.volume.core.overlay.survivors(self.unit, &mut rng);
        Undone { moment: self, seed: request.seed, rng, cached }
    }
}

/// An image that lacks what survived the cut.
struct Undone {
    moment: Moment,
    seed: u64,
    rng: Xoshiro256PlusPlus,
    cached: Survivors,
}

impl Undone {
    /// Puts what survived into the clone.
    fn finish(
        self,
        store: &VolumeStore,
        source: &OpenVolume,
        image: &str,
        keep: Keep,
    ) -> Result<CrashReport, EngineError> {
        let Self { moment: Moment { now, unit, in_flight }, seed, mut rng, mut cached } = self;
        let requests = in_flight.requests;
        let decided = in_flight.decide(unit, &mut rng);
        let cut = cut::report(now, seed, requests, &decided, &cached);
        let writes = if decided.is_empty() && cached.writes.is_empty() {
            Vec::new()
        } else {
            let target = store.open_clone(image, source)?;
            let failed = |source| EngineError::Io { action: cut::LEAVING, source };
            cut::put_cached(&target, &cached).map_err(failed)?;
            let put = decided.into_iter().map(|write| put(write, &target, keep));
            put.collect::<Result<_, _>>().map_err(failed)?
        };
        let unnamed = cached.lost.len().saturating_sub(CACHED_LOST_NAMED);
        cached.lost.truncate(CACHED_LOST_NAMED);
        Ok(CrashReport {
            cut,
            paused: Nanos::ZERO,
            writes,
            cached_lost: cached.lost,
            cached_lost_unnamed: u64::try_from(unnamed).expect("a count fits in 64 bits"),
        })
    }
}

/// Puts the new units of a write into an image, and reports it. The image has all earlier ones.
fn put(write: Decided, target: &OpenVolume, keep: Keep) -> std::io::Result<CutWrite> {
    let kept = keep.wants(&write);
    let mut before = Vec::new();
    if kept {
        before.resize(usize::try_from(write.len).expect("a write fits in memory"), 0);
        target.read_at(&mut before, write.offset)?;
    }
    write.put(target)?;
    Ok(CutWrite {
        offset: write.offset,
        len: write.len,
        submitted: write.submitted,
        zeroes: write.data.is_none(),
        units: write.units,
        new: write.new.iter().map(|unit| (unit.offset, unit.len)).collect(),
        before,
        after: write.data.filter(|_| kept).unwrap_or_default(),
    })
}
