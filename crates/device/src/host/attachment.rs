//! One attached volume.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use ebbtide_volume::{MinuteMetrics, Nanos, Stats};
use parking_lot::Mutex;

use super::HostError;
use super::filesystem::FsType;
use super::follow::{Follow, FollowThread};
use super::fscheck::FsCheck;
use super::info::AttachmentInfo;
use super::parts::Parts;
use crate::engine::{LiveVolume, VolumeReading, VolumeTotals};
use crate::faults::Faults;

/// The span that CloudWatch's metrics cover.
const MINUTE: Nanos = Nanos::from_secs(60);

/// How an attached volume compares with what the host carries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostMatch {
    /// In which figures the volume exceeds what the host can carry; empty where it does not.
    pub too_slow: Vec<String>,
    /// Why it is not known whether the host can carry the volume; none where it is known.
    pub not_calibrated: Option<String>,
}

/// An attached volume and everything that was made for it.
#[derive(Debug)]
pub struct Attachment {
    /// Goes first: it hands on the last requests of the volume.
    follower: Mutex<Option<FollowThread>>,
    info: AttachmentInfo,
    host_match: Mutex<HostMatch>,
    live: Arc<LiveVolume>,
    /// What earlier attachments by this host have counted.
    earlier: VolumeTotals,
    /// What detaching takes apart.
    pub(super) parts: Mutex<Parts>,
    /// Counters of the last minute, a sample a second, oldest first.
    samples: Mutex<VecDeque<Stats>>,
}

impl Attachment {
    pub(super) fn new(
        info: AttachmentInfo,
        host_match: HostMatch,
        live: Arc<LiveVolume>,
        earlier: VolumeTotals,
        parts: Parts,
    ) -> Self {
        let samples = VecDeque::from([live.stats()]);
        Self {
            info,
            host_match: Mutex::new(host_match),
            live,
            earlier,
            parts: Mutex::new(parts),
            samples: Mutex::new(samples),
            follower: Mutex::new(None),
        }
    }

    /// Where it is attached.
    #[must_use]
    pub const fn info(&self) -> &AttachmentInfo {
        &self.info
    }

    /// How the volume compares with the host, as it was attached or last modified.
    #[must_use]
    pub fn host_match(&self) -> HostMatch {
        self.host_match.lock().clone()
    }

    /// Marks the volume with another comparison, after a modification.
    pub fn set_host_match(&self, host_match: HostMatch) {
        *self.host_match.lock() = host_match;
    }

    /// The volume itself.
    #[must_use]
    pub const fn live(&self) -> &Arc<LiveVolume> {
        &self.live
    }

    /// The last minute as CloudWatch would publish it, and the span that it really covers: less
    /// than a minute while the attachment is young.
    #[must_use]
    pub fn minute(&self) -> (Nanos, MinuteMetrics) {
        let latest = self.live.stats();
        let samples = self.samples.lock();
        let earliest = samples.front().copied().unwrap_or(latest);
        let happened = latest.since(&earliest);
        (happened.at, happened.metrics())
    }

    /// The volume as it is now. Its counters go on from those of its earlier attachments by this host.
    #[must_use]
    pub fn reading(&self) -> VolumeReading {
        let present = self.live.reading();
        VolumeReading { totals: self.earlier.then(&present.totals), ..present }
    }

    /// The oldest sample of the last minute.
    #[must_use]
    pub fn earliest_sample(&self) -> Option<Stats> {
        self.samples.lock().front().copied()
    }

    /// The counters of the last minute, a sample a second, oldest first, and those of now.
    #[must_use]
    pub fn samples(&self) -> Vec<Stats> {
        let latest = self.live.stats();
        self.samples.lock().iter().copied().chain([latest]).collect()
    }

    /// Hands every request from now on to a follower, on a thread of its own. An earlier follower gets no more.
    ///
    /// # Errors
    /// [`HostError::Io`] where the host refuses a thread.
    pub fn follow(&self, follower: Arc<dyn Follow>) -> Result<(), HostError> {
        let mut current = self.follower.lock();
        *current = None;
        let started = FollowThread::start(&self.live, follower);
        *current = Some(started.map_err(HostError::io("start a thread that follows a volume"))?);
        Ok(())
    }

    /// Waits until the follower has the requests up to now.
    pub fn catch_up(&self) {
        if let Some(follower) = &*self.follower.lock() {
            follower.catch_up();
        }
    }

    /// Hands the follower the requests up to now, and no more.
    pub fn end_following(&self) {
        *self.follower.lock() = None;
    }

    /// Takes a sample of the counters, forgets those older than a minute, and logs how many
    /// requests the host has failed that no line has named yet.
    pub(super) fn sample(&self) {
        let latest = self.live.stats();
        let mut samples = self.samples.lock();
        samples.push_back(latest);
        while samples.front().is_some_and(|oldest| latest.at.since(oldest.at) > MINUTE) {
            samples.pop_front();
        }
        drop(samples);
        self.live.log_host_failures();
    }

    /// Whether a fault stalls its I/O.
    pub(super) fn is_stalled(&self) -> bool {
        self.live.faults().stalled
    }

    /// Lets stalled I/O go on.
    pub(super) fn end_stall(&self) {
        let faults = Faults { stalled: false, ..self.live.faults() };
        if let Err(error) = self.live.set_faults(faults) {
            tracing::warn!(volume = self.live.name(), %error, "ending a stall");
        }
    }

    /// Gives the block device the volume's present size.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn grow(&self) -> Result<(), HostError> {
        self.parts.lock().grow()
    }

    /// Mounts a file system that is on the volume, which was [attached](super::Host::attach_bare)
    /// without; its journal is replayed. [`Self::info`] does not report it.
    ///
    /// # Errors
    /// A directory that cannot be mounted on, a volume that is mounted already or has no block
    /// device, and what mount(8) reports: a file system that does not recover is such a case.
    pub fn mount(&self, fs: FsType, dir: &Path) -> Result<(), HostError> {
        self.parts.lock().mount_again(self.live.name(), fs, dir)
    }

    /// Unmounts it again; everything written to it is on the volume then.
    ///
    /// # Errors
    /// [`HostError::InUse`] while files in it are open; [`HostError::NotMounted`].
    pub fn unmount(&self) -> Result<(), HostError> {
        self.parts.lock().unmount(self.live.name())
    }

    /// Checks the file system on the volume, which must have been unmounted in order, and changes
    /// nothing: see [`check_fs`](super::check_fs).
    ///
    /// # Errors
    /// As there, and a volume without a block device.
    pub fn check_fs(&self, fs: FsType) -> Result<FsCheck, HostError> {
        self.parts.lock().check_fs(self.live.name(), fs)
    }

    /// Has the block device report that it has a spinning disk, or none; without it, the model decides.
    /// Servers and file systems look at it when they start.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn set_rotational(&self, rotational: bool) -> Result<(), HostError> {
        self.parts.lock().set_rotational(rotational)
    }
}
