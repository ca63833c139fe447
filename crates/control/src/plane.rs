//! The trait that every adapter calls.

use std::io::Write;

use ebbtide_device::host::{Calibration, Detached, Progress};

use crate::{
    AttachVolume, BeginSnapshot, ChangedBlock, ControlError, CrashImageView, CreateSnapshot, CreateVolume,
    DetachView, DetachVolume, FaultView, InitializationView, ModifyVolume, Names, OwnerRequest, RecordVolume,
    RecordingView, RequestsView, SetFaults, SnapshotView, TakeCrashImage, VolumeCounters, VolumeDetail,
    VolumeIdentity, VolumeView, WrappedKey,
};

/// Everything that can be asked about volumes and done to them.
///
/// Several callers may call at once. Each request is done whole or refused. Of two that attach, detach, modify or
/// delete the same volume at the same time the later one is refused with [`ControlError::NotFree`]. After
/// [`Self::stop`] every request that has an error is refused with [`ControlError::Stopping`].
///
/// A request that was done already is refused with an error of its own, so that a caller who repeats it can
/// take that for success: [`ControlError::NotFree`] of an attach, [`ControlError::NotAttached`] of a detach,
/// [`ControlError::NotFound`] of a delete. A repeated create with the token of the first answers as the first
/// did ([`CreateVolume::token`]).
///
/// Wherever a volume that exists is named, its id does as well as its name.
///
/// `progress` receives a text, for people, of what is being done or waited for.
pub trait ControlPlane: std::fmt::Debug + Send + Sync {
    /// Whether requests are taken.
    ///
    /// # Errors
    /// [`ControlError::Stopping`].
    fn ready(&self) -> Result<(), ControlError>;

    /// The counters of all requests but this one, [`Self::ready`], [`Self::changed_volumes`] and [`Self::identity`]. It is answered
    /// after [`Self::stop`], too.
    fn requests(&self) -> RequestsView;

    /// Creates a volume.
    ///
    /// # Errors
    /// A spec, name, size or block size that cannot be; a name that is taken; a snapshot that is missing or
    /// larger than the volume; an initialization without a snapshot, or at a rate that AWS does not offer; a token that
    /// was used for something else.
    fn create_volume(&self, request: &CreateVolume) -> Result<VolumeDetail, ControlError>;

    /// All volumes by name, at the prices of a region, or of the default one.
    ///
    /// # Errors
    /// A region without prices.
    fn volumes(&self, region: Option<&str>) -> Result<Vec<VolumeView>, ControlError>;

    /// One volume, at the prices of a region, or of the default one.
    ///
    /// # Errors
    /// [`ControlError::NotFound`]; a region without prices.
    fn volume(&self, name: &str, region: Option<&str>) -> Result<VolumeDetail, ControlError>;

    /// How far volumes are loaded, in the order of their names, quickly; none for one of which all blocks were there from
    /// the beginning, and for one that the home does not have.
    ///
    /// # Errors
    /// A catalogue that cannot be read.
    fn initializations(&self, names: &[&str]) -> Result<Vec<Option<InitializationView>>, ControlError>;

    /// Attaches a volume. A host that was never calibrated is calibrated first.
    ///
    /// # Errors
    /// A volume that is missing, damaged or not free; a host that is too slow for it; an unknown instance or
    /// one without room; what the kernel or the network address does not allow.
    fn attach_volume(
        &self,
        request: &AttachVolume,
        progress: Progress<'_>,
    ) -> Result<VolumeDetail, ControlError>;

    /// Detaches a volume: unmounts it, drains it, keeps its credits.
    ///
    /// # Errors
    /// A volume that is missing, not attached, or on its way; one in use or stalled, without force.
    fn detach_volume(
        &self,
        request: &DetachVolume,
        progress: Progress<'_>,
    ) -> Result<DetachView, ControlError>;

    /// Begins to record the requests of an attached volume, as blkparse would print them. It ends with
    /// [`Self::end_recording`] or with the attachment.
    ///
    /// # Errors
    /// A volume that is missing, not attached, or recorded already.
    fn record_volume(
        &self,
        request: &RecordVolume,
        output: Box<dyn Write + Send>,
    ) -> Result<RecordingView, ControlError>;

    /// Ends the recording of an attached volume, when all that was asked so far is in it.
    ///
    /// # Errors
    /// A volume that is missing, not attached, or not recorded.
    fn end_recording(&self, name: &str) -> Result<RecordingView, ControlError>;

    /// Changes type, size, IOPS or throughput, attached or not.
    ///
    /// # Errors
    /// A volume that is missing or on its way; what AWS would refuse; a host that is too slow for the target.
    fn modify_volume(
        &self,
        request: &ModifyVolume,
        progress: Progress<'_>,
    ) -> Result<VolumeDetail, ControlError>;

    /// Gives a volume to another owner. Nothing else of it changes.
    ///
    /// # Errors
    /// A volume that is missing or on its way, or that another program made.
    fn set_owner(&self, name: &str, owner: &OwnerRequest) -> Result<(), ControlError>;

    /// The ids of the volumes that were created, modified, attached, detached, deleted or given to another owner since the last
    /// call. With `anew` those of all volumes, and changes are noted from now on. For one reader: the AWS endpoint. Nobody has
    /// asked for it, so that it is not counted, and it is answered after [`Self::stop`], too.
    fn changed_volumes(&self, anew: bool) -> Vec<String>;

    /// What is known quickly of the volume with an id; None without such a volume. As [`Self::changed_volumes`] it is not counted.
    fn identity(&self, id: &str) -> Option<VolumeIdentity>;

    /// Deletes a detached volume and its data.
    ///
    /// # Errors
    /// A volume that is missing, attached, or on its way.
    fn delete_volume(&self, name: &str) -> Result<(), ControlError>;

    /// Breaks an attached volume, or mends it.
    ///
    /// # Errors
    /// A volume that is missing or not attached; a range beyond its end.
    fn set_faults(&self, request: &SetFaults) -> Result<FaultView, ControlError>;

    /// Creates a volume with what a power cut of an attached one would leave now.
    ///
    /// # Errors
    /// A volume that is missing or not attached; a name that is taken.
    fn take_crash_image(&self, request: &TakeCrashImage) -> Result<CrashImageView, ControlError>;

    /// Copies a volume as it is now, without stopping its load.
    ///
    /// # Errors
    /// A volume that is missing, damaged, or on its way; a name that is taken.
    fn create_snapshot(&self, request: &CreateSnapshot) -> Result<SnapshotView, ControlError>;

    /// Copies several volumes as they are at one instant, without stopping their load: all of them or none.
    ///
    /// # Errors
    /// As [`Self::create_snapshot`].
    fn create_snapshots(&self, requests: &[CreateSnapshot]) -> Result<Vec<SnapshotView>, ControlError>;

    /// Makes a second snapshot of a snapshot's content. It takes no space, and each can be deleted first.
    ///
    /// # Errors
    /// A snapshot that is missing; a name that is taken.
    fn copy_snapshot(&self, snapshot: &str, name: &str) -> Result<SnapshotView, ControlError>;

    /// Makes a second snapshot of a snapshot's content, encrypted with a data key of its own. It takes the time and the
    /// space of the data. A kill meanwhile leaves a pending snapshot of its name.
    ///
    /// # Errors
    /// As [`Self::copy_snapshot`]; [`ControlError::Key`] of either.
    fn encrypt_snapshot(
        &self,
        snapshot: &str,
        name: &str,
        key: &WrappedKey,
    ) -> Result<SnapshotView, ControlError>;

    /// One snapshot.
    ///
    /// # Errors
    /// [`ControlError::NotFound`].
    fn snapshot(&self, name: &str) -> Result<SnapshotView, ControlError>;

    /// The names of all volumes and snapshots, quickly.
    ///
    /// # Errors
    /// [`ControlError::Stopping`].
    fn names(&self) -> Result<Names, ControlError>;

    /// The counters of all attached volumes, quickly: a sampler asks every second.
    ///
    /// # Errors
    /// [`ControlError::Stopping`].
    fn counters(&self) -> Result<Vec<VolumeCounters>, ControlError>;

    /// All snapshots by name.
    ///
    /// # Errors
    /// [`ControlError::Stopping`].
    fn snapshots(&self) -> Result<Vec<SnapshotView>, ControlError>;

    /// Deletes a snapshot; volumes made from it keep their content.
    ///
    /// # Errors
    /// [`ControlError::NotFound`].
    fn delete_snapshot(&self, name: &str) -> Result<(), ControlError>;

    /// Begins a snapshot that is put together from blocks of [`SNAPSHOT_BLOCK_BYTES`](crate::SNAPSHOT_BLOCK_BYTES). It is
    /// pending until it is completed, also over a restart: no volume can be made of it, and it is in no list but
    /// [`Names::pending`].
    ///
    /// # Errors
    /// A name or a size that cannot be; a name that is taken; a parent that is missing, damaged or larger.
    fn begin_snapshot(&self, request: &BeginSnapshot) -> Result<(), ControlError>;

    /// Writes a block of a pending snapshot, the first time or again. It survives the death of this process.
    ///
    /// # Errors
    /// [`ControlError::NotFound`]; a block beyond the end; a full disk.
    fn write_block(&self, name: &str, block: u64, data: &[u8]) -> Result<(), ControlError>;

    /// The blocks of a pending snapshot that were written, in order; those of its parent are not among them.
    ///
    /// # Errors
    /// [`ControlError::NotFound`].
    fn written_blocks(&self, name: &str) -> Result<Vec<u64>, ControlError>;

    /// Reads a block of a pending snapshot.
    ///
    /// # Errors
    /// [`ControlError::NotFound`]; a block beyond the end.
    fn read_written_block(&self, name: &str, block: u64) -> Result<Vec<u8>, ControlError>;

    /// Completes a pending snapshot: from then on it is like every other, and nothing can be written.
    ///
    /// # Errors
    /// [`ControlError::NotFound`], also of one that is completed.
    fn complete_snapshot(&self, name: &str) -> Result<SnapshotView, ControlError>;

    /// Deletes a pending snapshot.
    ///
    /// # Errors
    /// [`ControlError::NotFound`], also of one that is completed.
    fn abandon_snapshot(&self, name: &str) -> Result<(), ControlError>;

    /// The blocks of a snapshot that hold data, in order: at most `most`, from `from` on.
    ///
    /// # Errors
    /// [`ControlError::NotFound`]; damage.
    fn snapshot_blocks(&self, name: &str, from: u64, most: usize) -> Result<Vec<u64>, ControlError>;

    /// The blocks in which two snapshots differ, in order: at most `most`, from `from` on.
    ///
    /// # Errors
    /// [`ControlError::NotFound`]; damage; [`ControlError::Unrelated`].
    fn changed_blocks(
        &self,
        first: &str,
        second: &str,
        from: u64,
        most: usize,
    ) -> Result<Vec<ChangedBlock>, ControlError>;

    /// Reads a block of a snapshot; one that was never written has zeroes.
    ///
    /// # Errors
    /// [`ControlError::NotFound`]; damage.
    fn read_block(&self, snapshot: &str, block: u64) -> Result<Vec<u8>, ControlError>;

    /// Measures what this host can carry: for about 20 s, or 3 s where it is `quick`.
    ///
    /// # Errors
    /// A disk without room; what the kernel does not allow.
    fn calibrate(&self, quick: bool, progress: Progress<'_>) -> Result<Calibration, ControlError>;

    /// Detaches everything and takes no request any more. Where it is refused, everything goes on.
    ///
    /// # Errors
    /// [`ControlError::StillInUse`], without force.
    fn stop(&self, force: bool, progress: Progress<'_>) -> Result<Vec<Detached>, ControlError>;
}
