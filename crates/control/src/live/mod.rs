//! The control plane of a served home: the rules of [`state`](crate::state), on a live host.

mod blocks;
mod calibration;
mod change;
mod create;
mod follow;
mod inventory;
mod look;
mod observe;
mod snapshots;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ebbtide_catalog::Catalog;
use ebbtide_device::host::{Attachment, Calibration, Detached, Host, HostError, Progress, Status};
use ebbtide_device::store::{KeyUnwrapper, StoreNames, VolumeInfo, WrappedKey};
use ebbtide_volume::Nanos;
use parking_lot::Mutex;

use self::blocks::Pending;
use self::follow::Following;
use self::inventory::VolumeIndex;
use crate::request_counters::{RequestCounters, RequestKind};
use crate::state::{Occupancy, VolumeState};
use crate::{
    AttachVolume, BeginSnapshot, ChangedBlock, ControlError, ControlPlane, CrashImageView, CreateSnapshot,
    CreateVolume, DetachView, DetachVolume, FaultView, InitializationView, ModifyVolume, Names, OwnerRequest,
    RecordVolume, RecordingView, RequestsView, SetFaults, SnapshotView, TakeCrashImage, UnixTime,
    VolumeCounters, VolumeDetail, VolumeIdentity, VolumeView,
};

/// The volumes of a home that this process serves.
#[derive(Debug)]
pub struct LiveControl {
    host: Host,
    stopping: AtomicBool,
    /// Serialises a stop by a caller and one by a signal.
    stop: Mutex<()>,
    /// Serialises creations with a token.
    create: Mutex<()>,
    /// Held while this host is measured: others that need the figures wait for them.
    calibrating: Mutex<()>,
    /// Held while the faults of a volume are read, changed and set.
    faults: Mutex<()>,
    /// What follows an attached volume, by its name.
    following: Mutex<BTreeMap<String, Arc<Following>>>,
    /// The ids of the volumes.
    index: VolumeIndex,
    /// Snapshots that are being put together from blocks.
    pending: Pending,
    /// What it was asked.
    counters: RequestCounters,
    /// Since when that is counted.
    since: UnixTime,
}

impl LiveControl {
    /// The control plane of a host's volumes. Those without an id, which an earlier version made, get one.
    #[must_use]
    pub fn new(host: Host) -> Self {
        let control = Self {
            since: UnixTime::of(host.now()),
            host,
            stopping: AtomicBool::new(false),
            stop: Mutex::new(()),
            create: Mutex::new(()),
            calibrating: Mutex::new(()),
            faults: Mutex::new(()),
            following: Mutex::new(BTreeMap::new()),
            index: VolumeIndex::default(),
            pending: Pending::new(),
            counters: RequestCounters::default(),
        };
        control.identify();
        control
    }

    /// Names who has the keys of encrypted volumes. Without one, they are listed, and can be neither attached nor read.
    pub fn set_key_unwrapper(&self, unwrapper: Arc<dyn KeyUnwrapper>) {
        self.host.store().set_key_unwrapper(unwrapper);
    }

    /// Refuses requests from now on and detaches everything, by force where it must: the process
    /// ends after that. Nothing is left to do after a [stop](ControlPlane::stop).
    pub fn end(&self) {
        let _alone = self.stop.lock();
        self.stopping.store(true, Ordering::Relaxed);
        self.host.stop(&|_| ());
        self.end_following();
        self.pending.close();
    }

    /// The names in this home, for a message: nobody has asked for them, so that it is not counted.
    #[must_use]
    pub fn known_names(&self) -> Names {
        let StoreNames { volumes, snapshots, pending } = self.host.store().names();
        Names { volumes, snapshots, pending }
    }

    /// The counters of attached volumes, for the server's own history: nobody has asked for them, so that it is not counted.
    ///
    /// # Errors
    /// The server stops.
    pub fn sample(&self) -> Result<Vec<VolumeCounters>, ControlError> {
        self.ready()?;
        Ok(self.counters_of_all())
    }

    /// The catalogue with this home's overrides. It is read anew for each request, so that a
    /// calibration counts at once.
    fn catalog(&self) -> Result<Catalog, ControlError> {
        crate::catalog(Some(self.host.home()))
    }

    /// A volume as it is now: what the store knows of it, and what the rules look at.
    fn find(&self, name: &str) -> Result<(VolumeInfo, VolumeState), ControlError> {
        let info = self.host.store().volume(name)?;
        let state = VolumeState::of(&info, occupancy(&self.host.status(name)));
        Ok((info, state))
    }

    /// Carries out a request, in a span that names it, counts it, and logs how it ended.
    fn carry_out<T>(
        &self,
        kind: RequestKind,
        volume: &str,
        work: impl FnOnce() -> Result<T, ControlError>,
    ) -> Result<T, ControlError> {
        let _request = tracing::debug_span!("request", operation = kind.name(), volume).entered();
        let (outcome, took) = self.counted(kind, work);
        let took_ms = took.0 / 1_000_000;
        match &outcome {
            Ok(_) => tracing::debug!(took_ms, "done"),
            Err(error) => tracing::debug!(took_ms, kind = ?error.kind(), %error, "refused"),
        }
        outcome
    }

    /// Carries out a request, unless the server stops, and counts it. Also returns how long it took.
    fn counted<T>(
        &self,
        kind: RequestKind,
        work: impl FnOnce() -> Result<T, ControlError>,
    ) -> (Result<T, ControlError>, Nanos) {
        self.counters.begin(kind);
        let begun = self.host.now();
        let outcome = self.ready().and_then(|()| work());
        let took = self.host.now().since(begun);
        self.counters.end(kind, took, outcome.as_ref().err().map(ControlError::kind));
        (outcome, took)
    }

    fn stop_all(&self, force: bool, progress: Progress<'_>) -> Result<Vec<Detached>, Vec<HostError>> {
        if force {
            return Ok(self.host.stop(progress));
        }
        let in_use = self.host.in_use();
        if in_use.is_empty() {
            self.host.stop_in_order(progress).map_err(|error| vec![error])
        } else {
            Err(in_use)
        }
    }
}

/// Who has a volume, by what the host reports of it.
fn occupancy(status: &Status) -> Occupancy {
    match status {
        Status::Free => Occupancy::Free,
        Status::Busy(doing) => Occupancy::Busy(doing),
        Status::Attached(attachment) => attached(attachment),
    }
}

fn attached(attachment: &Attachment) -> Occupancy {
    Occupancy::Attached(attachment.info().place().to_string())
}

/// Why volumes keep the server from stopping.
fn still_in_use(errors: &[HostError]) -> ControlError {
    let volume = errors.iter().find_map(|error| match error {
        HostError::InUse { volume, .. } | HostError::Stalled { volume } => Some(volume.clone()),
        _ => None,
    });
    ControlError::StillInUse { volume, reasons: errors.iter().map(ToString::to_string).collect() }
}

impl ControlPlane for LiveControl {
    fn ready(&self) -> Result<(), ControlError> {
        if self.stopping.load(Ordering::Relaxed) { Err(ControlError::Stopping) } else { Ok(()) }
    }

    fn requests(&self) -> RequestsView {
        RequestsView { since: self.since, operations: self.counters.view() }
    }

    fn create_volume(&self, request: &CreateVolume) -> Result<VolumeDetail, ControlError> {
        self.carry_out(RequestKind::CreateVolume, &request.name, || self.create(request))
    }

    fn volumes(&self, region: Option<&str>) -> Result<Vec<VolumeView>, ControlError> {
        self.carry_out(RequestKind::Volumes, "", || self.list(region))
    }

    fn volume(&self, name: &str, region: Option<&str>) -> Result<VolumeDetail, ControlError> {
        let name = &*self.name_of(name);
        self.carry_out(RequestKind::Volume, name, || self.detail(name, region))
    }

    fn initializations(&self, names: &[&str]) -> Result<Vec<Option<InitializationView>>, ControlError> {
        self.carry_out(RequestKind::Initializations, "", || self.loading(names))
    }

    fn attach_volume(
        &self,
        request: &AttachVolume,
        progress: Progress<'_>,
    ) -> Result<VolumeDetail, ControlError> {
        let request = AttachVolume { name: self.name_of(&request.name).into_owned(), ..request.clone() };
        self.carry_out(RequestKind::AttachVolume, &request.name, || self.attach(&request, progress))
    }

    fn detach_volume(
        &self,
        request: &DetachVolume,
        progress: Progress<'_>,
    ) -> Result<DetachView, ControlError> {
        let request = DetachVolume { name: self.name_of(&request.name).into_owned(), ..request.clone() };
        self.carry_out(RequestKind::DetachVolume, &request.name, || self.detach(&request, progress))
    }

    fn record_volume(
        &self,
        request: &RecordVolume,
        output: Box<dyn Write + Send>,
    ) -> Result<RecordingView, ControlError> {
        let request = RecordVolume { name: self.name_of(&request.name).into_owned(), ..request.clone() };
        self.carry_out(RequestKind::RecordVolume, &request.name, || self.record(&request, output))
    }

    fn end_recording(&self, name: &str) -> Result<RecordingView, ControlError> {
        let name = &*self.name_of(name);
        self.carry_out(RequestKind::EndRecording, name, || self.end_recording_of(name))
    }

    fn modify_volume(
        &self,
        request: &ModifyVolume,
        progress: Progress<'_>,
    ) -> Result<VolumeDetail, ControlError> {
        let request = ModifyVolume { name: self.name_of(&request.name).into_owned(), ..request.clone() };
        self.carry_out(RequestKind::ModifyVolume, &request.name, || self.modify(&request, progress))
    }

    fn set_owner(&self, name: &str, owner: &OwnerRequest) -> Result<(), ControlError> {
        let name = &*self.name_of(name);
        self.carry_out(RequestKind::SetOwner, name, || self.give(name, owner))
    }

    fn changed_volumes(&self, anew: bool) -> Vec<String> {
        self.index.take_changed(anew)
    }

    fn identity(&self, id: &str) -> Option<VolumeIdentity> {
        self.identity_of(id)
    }

    fn delete_volume(&self, name: &str) -> Result<(), ControlError> {
        let name = &*self.name_of(name);
        self.carry_out(RequestKind::DeleteVolume, name, || self.delete(name))
    }

    fn set_faults(&self, request: &SetFaults) -> Result<FaultView, ControlError> {
        let request = SetFaults { name: self.name_of(&request.name).into_owned(), ..request.clone() };
        self.carry_out(RequestKind::SetFaults, &request.name, || self.fault(&request))
    }

    fn take_crash_image(&self, request: &TakeCrashImage) -> Result<CrashImageView, ControlError> {
        let request = TakeCrashImage { name: self.name_of(&request.name).into_owned(), ..request.clone() };
        self.carry_out(RequestKind::TakeCrashImage, &request.name, || self.crash_image(&request))
    }

    fn create_snapshot(&self, request: &CreateSnapshot) -> Result<SnapshotView, ControlError> {
        let taken = self.carry_out(RequestKind::CreateSnapshot, &request.volume, || {
            self.take_snapshots(std::slice::from_ref(request))
        });
        taken.map(|mut taken| taken.pop().expect("one request has one snapshot"))
    }

    fn create_snapshots(&self, requests: &[CreateSnapshot]) -> Result<Vec<SnapshotView>, ControlError> {
        self.carry_out(RequestKind::CreateSnapshots, "", || self.take_snapshots(requests))
    }

    fn copy_snapshot(&self, snapshot: &str, name: &str) -> Result<SnapshotView, ControlError> {
        self.carry_out(RequestKind::CopySnapshot, "", || {
            self.host.store().copy_snapshot(snapshot, name)?;
            tracing::info!(snapshot, copy = name, "snapshot copied");
            self.find_snapshot(name)
        })
    }

    fn encrypt_snapshot(
        &self,
        snapshot: &str,
        name: &str,
        key: &WrappedKey,
    ) -> Result<SnapshotView, ControlError> {
        self.carry_out(RequestKind::EncryptSnapshot, "", || {
            self.host.store().copy_snapshot_encrypted(snapshot, name, key.clone())?;
            tracing::info!(snapshot, copy = name, key = key.key_id, "snapshot copied and encrypted");
            self.find_snapshot(name)
        })
    }

    fn snapshot(&self, name: &str) -> Result<SnapshotView, ControlError> {
        self.carry_out(RequestKind::Snapshot, "", || self.find_snapshot(name))
    }

    fn names(&self) -> Result<Names, ControlError> {
        self.carry_out(RequestKind::Names, "", || Ok(self.known_names()))
    }

    fn counters(&self) -> Result<Vec<VolumeCounters>, ControlError> {
        // A sampler asks every second: the log has no line of it.
        self.counted(RequestKind::Counters, || Ok(self.counters_of_all())).0
    }

    fn snapshots(&self) -> Result<Vec<SnapshotView>, ControlError> {
        let all = || Ok(self.host.store().snapshots().iter().map(snapshots::view).collect());
        self.carry_out(RequestKind::Snapshots, "", all)
    }

    fn delete_snapshot(&self, name: &str) -> Result<(), ControlError> {
        self.carry_out(RequestKind::DeleteSnapshot, name, || {
            self.host.store().delete_snapshot(name)?;
            tracing::info!(snapshot = name, "snapshot deleted");
            Ok(())
        })
    }

    fn begin_snapshot(&self, request: &BeginSnapshot) -> Result<(), ControlError> {
        self.carry_out(RequestKind::BeginSnapshot, &request.name, || self.begin(request))
    }

    fn write_block(&self, name: &str, block: u64, data: &[u8]) -> Result<(), ControlError> {
        self.carry_out(RequestKind::WriteBlock, name, || self.write_one(name, block, data))
    }

    fn written_blocks(&self, name: &str) -> Result<Vec<u64>, ControlError> {
        self.carry_out(RequestKind::WrittenBlocks, name, || self.written(name))
    }

    fn read_written_block(&self, name: &str, block: u64) -> Result<Vec<u8>, ControlError> {
        self.carry_out(RequestKind::ReadWrittenBlock, name, || self.read_written(name, block))
    }

    fn complete_snapshot(&self, name: &str) -> Result<SnapshotView, ControlError> {
        self.carry_out(RequestKind::CompleteSnapshot, name, || self.complete(name))
    }

    fn abandon_snapshot(&self, name: &str) -> Result<(), ControlError> {
        self.carry_out(RequestKind::AbandonSnapshot, name, || self.abandon(name))
    }

    fn snapshot_blocks(&self, name: &str, from: u64, most: usize) -> Result<Vec<u64>, ControlError> {
        self.carry_out(RequestKind::SnapshotBlocks, name, || {
            Ok(self.host.store().snapshot_blocks(name, from, most)?)
        })
    }

    fn changed_blocks(
        &self,
        first: &str,
        second: &str,
        from: u64,
        most: usize,
    ) -> Result<Vec<ChangedBlock>, ControlError> {
        self.carry_out(RequestKind::ChangedBlocks, second, || self.changed((first, second), from, most))
    }

    fn read_block(&self, snapshot: &str, block: u64) -> Result<Vec<u8>, ControlError> {
        self.carry_out(RequestKind::ReadBlock, snapshot, || {
            Ok(self.host.store().read_snapshot_block(snapshot, block)?)
        })
    }

    fn calibrate(&self, quick: bool, progress: Progress<'_>) -> Result<Calibration, ControlError> {
        self.carry_out(RequestKind::Calibrate, "", || {
            // Beside a calibration that is under way the host refuses this one.
            let _alone = self.calibrating.try_lock();
            Ok(self.host.calibrate(quick, progress)?)
        })
    }

    fn stop(&self, force: bool, progress: Progress<'_>) -> Result<Vec<Detached>, ControlError> {
        self.carry_out(RequestKind::Stop, "", || {
            let _alone = self.stop.lock();
            self.stopping.store(true, Ordering::Relaxed);
            let stopped = self.stop_all(force, progress).map_err(|errors| {
                self.stopping.store(false, Ordering::Relaxed);
                still_in_use(&errors)
            })?;
            self.end_following();
            self.pending.close();
            Ok(stopped)
        })
    }
}
