//! The host of live volumes: one home, its block store, and what is attached to the outside.
//!
//! A [`Host`] holds the home's lock for its whole life. What it mounts, attaches or listens on is
//! recorded before it is made, so that [`clear_leftovers`] finds it after the process was killed.

mod attach;
mod attachment;
mod block;
mod calibrate;
mod disk;
mod error;
mod extents;
mod filesystem;
mod follow;
mod fscheck;
mod holders;
mod home;
mod info;
mod instances;
mod loading;
mod parts;
mod record;
mod recover;
mod round_trip;
mod sampler;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_volume::{Array, Nanos};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::{Clock as _, MonotonicClock};
use crate::engine::VolumeTotals;
use crate::store::{StoreOptions, VolumeStore};

pub use attach::{AttachRequest, Detached, InstanceRequest};
pub use attachment::{Attachment, HostMatch};
pub use block::missing_for_block_devices;
pub use calibrate::{Calibration, HostFigures};
pub use disk::{DiskSpace, free_bytes};
pub use error::HostError;
pub use extents::{FileExtent, file_extents};
pub use filesystem::{CLUSTER_BYTES, FsType, ToolCause, ToolError, UnknownFs};
pub use follow::Follow;
pub use fscheck::{FsCheck, check_fs};
pub use holders::Holder;
pub use home::{Home, HomeError, HomeFolder, HomeLock};
pub use info::AttachmentInfo;
pub use loading::{LoadingDamage, SavedLoading};
pub use parts::{Export, MountRequest};
pub use recover::{ClearError, Leftover, clear_leftovers, release_dying};
pub use round_trip::local_round_trip;

use instances::Instances;
use sampler::AttachmentSampler;

/// Reports what is being done or waited for.
pub type Progress<'a> = &'a (dyn Fn(&str) + Sync);

/// How long a detached volume may be looked at: its counters, its credits.
const LOOKING: Duration = Duration::from_secs(5);

/// How a host runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostOptions {
    /// Whether flushes reach the host's disk. Without it answered writes survive the death of this
    /// process, but not the host's own crash.
    pub host_sync: bool,
}

/// Burst credits at a moment. They refill from there by the wall clock, attached or not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SavedCredits {
    /// Share of the capacity, 0 to 1.
    pub share: f64,
    /// When, in nanoseconds since 1970.
    pub at: Nanos,
}

/// Where the host keeps [`SavedCredits`] in a volume's metadata. Everything else in there but [`SavedLoading`]
/// belongs to the creator of the volume.
const CREDITS: &str = "credits";

impl SavedCredits {
    /// The credits of a volume's model now; none where it has none.
    #[must_use]
    pub fn of(array: &Array, now: Nanos) -> Option<Self> {
        array.credit_share(now).map(|share| Self { share, at: now })
    }

    /// Reads them from a volume's metadata.
    #[must_use]
    pub fn read(meta: &Value) -> Option<Self> {
        Self::deserialize(&meta[CREDITS]).ok()
    }

    /// Writes them, or their absence, into a volume's metadata.
    pub fn write(credits: Option<Self>, meta: &mut Value) {
        meta[CREDITS] = serde_json::to_value(credits).expect("two numbers are plain data");
    }
}

/// What a volume is doing, as its name's owner.
#[derive(Debug)]
enum Slot {
    Busy(&'static str),
    Attached(Arc<Attachment>),
}

/// The state of a volume.
#[derive(Debug, Clone)]
pub enum Status {
    /// Neither attached nor on its way.
    Free,
    /// Being attached or detached.
    Busy(&'static str),
    /// Attached.
    Attached(Arc<Attachment>),
}

/// Who has which volume's name.
#[derive(Debug, Default)]
struct Slots {
    by_name: BTreeMap<String, Slot>,
    /// Whether the host stops, so that nothing may be attached any more.
    closed: bool,
}

/// The attached volumes of a home, shared with the thread that keeps their credits and loading.
#[derive(Debug)]
struct Shared {
    store: VolumeStore,
    slots: Mutex<Slots>,
    /// What attachments that have ended have counted, by the volume's name.
    earlier: Mutex<BTreeMap<String, VolumeTotals>>,
    /// Serialises reading and replacing a volume's metadata.
    meta: Mutex<()>,
}

/// A served home.
#[derive(Debug)]
pub struct Host {
    shared: Arc<Shared>,
    instances: Mutex<Instances>,
    sampler: Mutex<Option<AttachmentSampler>>,
    clock: MonotonicClock,
    lock: HomeLock,
}

impl Host {
    /// Opens the block store of a locked home. Call [`clear_leftovers`] before.
    ///
    /// # Errors
    /// Where the store is damaged or the host refuses it.
    pub fn open(lock: HomeLock, options: HostOptions) -> Result<Self, HostError> {
        let store =
            VolumeStore::open_in(lock.home().make_store()?, StoreOptions { host_sync: options.host_sync })?;
        let (slots, earlier, meta) = (Mutex::default(), Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { store, slots, earlier, meta });
        let sampler = AttachmentSampler::start(shared.clone()).map_err(HostError::io("start a thread"))?;
        Ok(Self {
            shared,
            instances: Mutex::default(),
            sampler: Mutex::new(Some(sampler)),
            clock: MonotonicClock::new(),
            lock,
        })
    }

    /// The home.
    #[must_use]
    pub const fn home(&self) -> &Home {
        self.lock.home()
    }

    /// The block store.
    #[must_use]
    pub fn store(&self) -> &VolumeStore {
        &self.shared.store
    }

    /// The time that volumes run by: nanoseconds since 1970.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Changes a volume's metadata.
    ///
    /// # Errors
    /// Where there is no such volume or the store cannot write.
    pub fn update_meta(&self, volume: &str, change: impl FnOnce(&mut Value)) -> Result<(), HostError> {
        self.shared.update_meta(volume, change)
    }

    /// The state of a volume.
    #[must_use]
    pub fn status(&self, volume: &str) -> Status {
        match self.shared.slots.lock().by_name.get(volume) {
            None => Status::Free,
            Some(Slot::Busy(why)) => Status::Busy(why),
            Some(Slot::Attached(attachment)) => Status::Attached(attachment.clone()),
        }
    }

    /// What a volume's attachments that have ended have counted since this host was opened; none where it had none.
    #[must_use]
    pub fn earlier_totals(&self, volume: &str) -> Option<VolumeTotals> {
        self.shared.earlier.lock().get(volume).copied()
    }

    /// Forgets these counters: the volume is deleted, and a new one of its name begins at zero.
    pub fn forget_totals(&self, volume: &str) {
        self.shared.earlier.lock().remove(volume);
    }

    /// The attachment of a volume.
    ///
    /// # Errors
    /// [`HostError::NotAttached`] where it has none, [`HostError::NotFree`] where it is on its way.
    pub fn attached(&self, volume: &str) -> Result<Arc<Attachment>, HostError> {
        let volume = volume.to_owned();
        match self.status(&volume) {
            Status::Attached(attachment) => Ok(attachment),
            Status::Busy(why) => Err(HostError::NotFree { volume, state: why.to_owned() }),
            Status::Free => {
                self.store().volume(&volume)?;
                Err(HostError::NotAttached { volume })
            }
        }
    }

    /// Keeps a detached volume from being attached while `work` is done on it.
    ///
    /// # Errors
    /// [`HostError::NotFree`] where it is attached or on its way.
    pub fn while_free<T>(
        &self,
        volume: &str,
        doing: &'static str,
        work: impl FnOnce() -> T,
    ) -> Result<T, HostError> {
        let _reserved = self.shared.reserve(volume, doing)?;
        Ok(work())
    }

    /// Keeps others from attaching, detaching or deleting a volume while `work` is done on it, which
    /// is given the attachment where there is one.
    ///
    /// # Errors
    /// [`HostError::NotFree`] where the volume is on its way.
    pub fn while_alone<T>(
        &self,
        volume: &str,
        doing: &'static str,
        work: impl FnOnce(Option<&Attachment>) -> T,
    ) -> Result<T, HostError> {
        let (_reserved, attachment) = self.shared.reserve_any(volume, doing)?;
        Ok(work(attachment.as_deref()))
    }

    /// Why attached volumes cannot be detached in order, one refusal for each that is in use;
    /// nothing is touched.
    #[must_use]
    pub fn in_use(&self) -> Vec<HostError> {
        let attachments = self.shared.attachments();
        let refusals = attachments.iter().filter_map(|attachment| {
            let volume = attachment.live().name();
            if attachment.is_stalled() {
                return Some(HostError::Stalled { volume: volume.to_owned() });
            }
            attachment.parts.lock().require_unused(volume).err()
        });
        refusals.collect()
    }

    /// Detaches everything in order and attaches nothing any more: writes back what is mounted, saves the credits, closes the
    /// store's volumes. Ask [`Self::in_use`] before.
    ///
    /// # Errors
    /// Where a volume has come into use meanwhile: it and those after it stay attached.
    pub fn stop_in_order(&self, progress: Progress<'_>) -> Result<Vec<Detached>, HostError> {
        let stopped = self.stop_each(|name| self.detach(name, false, progress).map(Some));
        self.shared.slots.lock().closed = stopped.is_ok();
        stopped
    }

    /// Detaches everything: as [`Self::stop_in_order`], but what cannot be detached in order is
    /// detached by force, which the log and the answer report.
    pub fn stop(&self, progress: Progress<'_>) -> Vec<Detached> {
        let detached = self.stop_each(|name| Ok(self.stop_one(name, progress)));
        detached.expect("detaching by force is never refused")
    }

    fn stop_each(
        &self,
        detach: impl Fn(&str) -> Result<Option<Detached>, HostError>,
    ) -> Result<Vec<Detached>, HostError> {
        self.shared.slots.lock().closed = true;
        let mut all = Vec::new();
        loop {
            let depth = |attachment: &Attachment| {
                attachment.info().mount.as_ref().map_or(0, |dir| dir.components().count())
            };
            // A mount that lies below another one keeps that from being unmounted. The first of equals is taken.
            let attached = |(name, slot): (&String, &Slot)| match slot {
                Slot::Attached(attachment) => Some((Reverse(depth(attachment)), name.clone())),
                Slot::Busy(_) => None,
            };
            let next =
                self.shared.slots.lock().by_name.iter().filter_map(attached).min().map(|(_, name)| name);
            let busy = self.shared.slots.lock().by_name.values().any(|slot| matches!(slot, Slot::Busy(_)));
            match next {
                Some(name) => all.extend(detach(&name)?),
                None if busy => std::thread::sleep(Duration::from_millis(20)),
                None => break,
            }
        }
        drop(self.sampler.lock().take());
        Ok(all)
    }

    fn stop_one(&self, name: &str, progress: Progress<'_>) -> Option<Detached> {
        let mut forced = Vec::new();
        if let Status::Attached(attachment) = self.status(name)
            && attachment.is_stalled()
        {
            tracing::warn!(volume = name, "ending its stall");
            attachment.end_stall();
            forced.push("its I/O was stalled: the stall was ended".to_owned());
        }
        let progress = |text: &str| {
            tracing::info!(volume = name, "{text}");
            progress(text);
        };
        let detached = self.detach(name, false, &progress).or_else(|error| {
            tracing::warn!(volume = name, %error, "detaching by force");
            forced.push(error.to_string());
            self.detach(name, true, &progress)
        });
        match detached {
            Ok(detached) => {
                tracing::info!(volume = name, "detached");
                let forced = (!forced.is_empty()).then(|| forced.join("; "));
                Some(Detached { forced, ..detached })
            }
            Err(error) => {
                tracing::error!(volume = name, %error, "not detached; the next command clears it");
                self.shared.slots.lock().by_name.remove(name);
                None
            }
        }
    }
}

impl Shared {
    fn update_meta(&self, volume: &str, change: impl FnOnce(&mut Value)) -> Result<(), HostError> {
        let _alone = self.meta.lock();
        let before = self.store.meta(volume)?;
        let mut meta = before.clone();
        change(&mut meta);
        if meta != before {
            self.store.set_meta(volume, meta)?;
        }
        Ok(())
    }

    /// Waits until nobody looks at a volume any more that has just been taken apart, and the last of them has
    /// closed its files in the store. That there are no handles would show less: the thread that gave up the
    /// last one closes the files after that.
    fn wait_until_closed(&self, volume: &str) {
        if !self.store.wait_until_closed(volume, LOOKING) {
            tracing::warn!(volume, "still looked at; it cannot be attached or deleted until that ends");
        }
    }

    /// Takes a free volume's name for as long as the answer lives.
    fn reserve(&self, volume: &str, doing: &'static str) -> Result<Reserved<'_>, HostError> {
        match self.reserve_any(volume, doing)? {
            (reserved, None) => Ok(reserved),
            (_, Some(attachment)) => {
                let state = format!("attached {}", attachment.info().place());
                Err(HostError::NotFree { volume: volume.to_owned(), state })
            }
        }
    }

    /// Takes an attached volume's name for as long as the answer lives; it is attached again after
    /// that, unless it was [released](Reserved::release).
    fn reserve_attached(
        &self,
        volume: &str,
        doing: &'static str,
    ) -> Result<(Reserved<'_>, Arc<Attachment>), HostError> {
        match self.reserve_any(volume, doing)? {
            (reserved, Some(attachment)) => Ok((reserved, attachment)),
            (_, None) => {
                self.store.volume(volume)?;
                Err(HostError::NotAttached { volume: volume.to_owned() })
            }
        }
    }

    /// Takes a volume's name for as long as the answer lives; then it is what it was before.
    fn reserve_any(
        &self,
        volume: &str,
        doing: &'static str,
    ) -> Result<(Reserved<'_>, Option<Arc<Attachment>>), HostError> {
        let not_free =
            |state: &str| HostError::NotFree { volume: volume.to_owned(), state: state.to_owned() };
        let mut slots = self.slots.lock();
        let attachment = match slots.by_name.get(volume) {
            None if slots.closed => return Err(not_free("not to be had: the server is stopping")),
            None => None,
            Some(Slot::Busy(why)) => return Err(not_free(why)),
            Some(Slot::Attached(attachment)) => Some(attachment.clone()),
        };
        slots.by_name.insert(volume.to_owned(), Slot::Busy(doing));
        let becomes = attachment.clone();
        Ok((Reserved { shared: self, volume: volume.to_owned(), becomes }, attachment))
    }

    fn attachments(&self) -> Vec<Arc<Attachment>> {
        let slots = self.slots.lock();
        let attached = slots.by_name.values().filter_map(|slot| match slot {
            Slot::Attached(attachment) => Some(attachment.clone()),
            Slot::Busy(_) => None,
        });
        attached.collect()
    }

    /// Saves the credits and the loading of an attached volume as they are now.
    fn save_state(&self, attachment: &Attachment) {
        let state = |array: &Array, now| (SavedCredits::of(array, now), SavedLoading::of(array, now));
        let (credits, loading) = attachment.live().inspect(state);
        let volume = attachment.live().name();
        let saved = self.update_meta(volume, |meta| {
            SavedCredits::write(credits, meta);
            SavedLoading::write(loading, meta);
        });
        if let Err(error) = saved {
            tracing::warn!(volume, %error, "the burst credits and the state of loading could not be saved");
        }
    }
}

/// A volume's name, taken until this is dropped.
#[derive(Debug)]
struct Reserved<'a> {
    shared: &'a Shared,
    volume: String,
    becomes: Option<Arc<Attachment>>,
}

impl Reserved<'_> {
    /// The volume is attached from now on.
    fn attach(mut self, attachment: Arc<Attachment>) {
        self.becomes = Some(attachment);
    }

    /// The volume is free from now on.
    fn release(mut self, attachment: Arc<Attachment>) {
        self.becomes = None;
        drop(attachment);
        self.shared.wait_until_closed(&self.volume);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut slots = self.shared.slots.lock();
        match self.becomes.take() {
            Some(attachment) => slots.by_name.insert(self.volume.clone(), Slot::Attached(attachment)),
            None => slots.by_name.remove(&self.volume),
        };
    }
}
