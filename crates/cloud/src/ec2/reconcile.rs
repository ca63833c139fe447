//! The start: what a killed process began is ended or taken back, and attached volumes are attached again.

use std::collections::BTreeSet;

use ebbtide_control::ControlError;

use super::db::Change;
use super::events::{of_failure, of_volume};
use super::ids::Kind;
use super::records::{AttachStage, Attachment, Direct, Snapshot, Stage, Volume};
use super::{Ec2, OpenError, links};

impl Ec2 {
    /// Makes records and volumes agree, and gives the ids of all volumes. Only what a record names is deleted: a volume that
    /// somebody made under a name of this form stays.
    pub(super) fn reconcile(&self) -> Result<Vec<String>, OpenError> {
        let ids = self.control.changed_volumes(true);
        let names = self.control.names()?;
        // One without an id, whose metadata another program wrote, is known by its name.
        let volumes: BTreeSet<String> = names.volumes.into_iter().chain(ids.iter().cloned()).collect();
        let snapshots: BTreeSet<String> = names.snapshots.into_iter().collect();
        let pending: BTreeSet<String> = names.pending.into_iter().collect();
        self.warn_of_unknown(&snapshots);
        self.clear_links();
        // Few records need anything: only those are copied.
        let unsettled = |volume: &&Volume| {
            (volume.stage != Stage::Ready
                || volume.pending.is_some()
                || !volume.attachments.is_empty()
                || volume.lost == volumes.contains(&volume.id))
                && volume.failure.is_none()
        };
        let records: Vec<Volume> = self.state.lock().volumes().values().filter(unsettled).cloned().collect();
        for volume in records {
            self.settle_volume(volume, &volumes)?;
        }
        let unsettled = |snapshot: &&Snapshot| {
            snapshot.stage != Stage::Ready
                || snapshot.is_unsealed()
                || pending.contains(&snapshot.id)
                || (snapshot.error.is_none() && !snapshots.contains(&snapshot.id))
        };
        let records: Vec<Snapshot> =
            self.state.lock().snapshots().values().filter(unsettled).cloned().collect();
        for snapshot in records {
            self.settle_snapshot(snapshot, &snapshots, &pending)?;
        }
        Ok(ids)
    }

    /// Removes the links of this home's volumes.
    pub(super) fn clear_links(&self) {
        if let Some(dir) = &self.options.device_links {
            links::clear(dir, |id| self.state.lock().volumes().contains_key(id));
        }
    }

    fn warn_of_unknown(&self, snapshots: &BTreeSet<String>) {
        let state = self.state.lock();
        let unknown =
            snapshots.iter().filter(|id| Kind::Snapshot.is_id(id) && !state.snapshots().contains_key(*id));
        let snapshots = unknown.count();
        if snapshots > 0 {
            tracing::warn!(snapshots, "snapshots have names of EC2, but no record: they stay");
        }
    }

    fn settle_volume(&self, volume: Volume, there: &BTreeSet<String>) -> Result<(), OpenError> {
        let exists = there.contains(&volume.id);
        match volume.stage {
            Stage::Making => {
                // One that was being encrypted anew is put together as a snapshot is.
                self.forget_blocks(&volume.id)?;
                self.forget_volume(&volume.id, exists)?;
                // Of a copy there may be its snapshot too.
                self.forget_copy(&volume.id)?;
                return self.note(Change::DropVolume(volume.id));
            }
            Stage::Gone { .. } => return self.forget_volume(&volume.id, exists),
            // It keeps its data, and has no attachment.
            Stage::Binned { .. } => return Ok(()),
            // A command has deleted it meanwhile.
            Stage::Ready if !exists && volume.name.is_some() => {
                return self.note(Change::DropVolume(volume.id));
            }
            Stage::Ready => {}
        }
        let before = volume.clone();
        let mut volume = volume;
        if volume.lost == exists {
            volume.lost = !exists;
            if volume.lost {
                tracing::error!(volume = volume.id, "the volume of a record is missing");
            }
        }
        if exists && volume.pending.is_some() {
            let begun = volume.clone();
            volume = self.finish_modification(volume).unwrap_or_else(|error| {
                tracing::warn!(volume = begun.id, %error, "a modification that was begun is given up");
                self.expect(of_failure(&begun, "modifyVolume", &error, 0));
                Volume { pending: None, ..begun }
            });
        }
        if self.settle_attachments(&mut volume)? {
            let until_ms = 0;
            self.expect(of_volume(&volume, "deleteVolume", "deleted", until_ms));
            self.note(Change::Volume(Volume { stage: Stage::Gone { until_ms }, ..volume.clone() }))?;
            return self.forget_volume(&volume.id, exists);
        }
        if volume == before { Ok(()) } else { self.note(Change::Volume(volume)) }
    }

    /// Attaches or detaches a volume as its record has it. True where the volume ends with its last attachment.
    fn settle_attachments(&self, volume: &mut Volume) -> Result<bool, OpenError> {
        if !volume.attachments.iter().any(Attachment::holds) {
            return Ok(false);
        }
        let attached = match self.control.volume(&volume.id, None) {
            Ok(detail) => detail.volume.attachment.is_some(),
            Err(ControlError::NotFound { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        let instance =
            |attachment: &Attachment| self.state.lock().instances().get(&attachment.instance).cloned();
        let is_ending = |attachment: &Attachment| instance(attachment).is_none_or(|it| it.is_ending());
        let lost = volume.lost;
        let stays = |attachment: &Attachment| {
            attachment.stage == AttachStage::Ready && !is_ending(attachment) && !lost
        };
        let first = volume.attachments.iter().find(|attachment| stays(attachment)).cloned();
        if let Some(host) = first.as_ref().and_then(instance) {
            let has_device = first.as_ref().is_some_and(|attachment| !attachment.without_device);
            if has_device
                && !attached
                && let Err(error) = self.attach_here(volume, &host)
            {
                tracing::error!(volume = volume.id, %error, "the volume could not be attached again");
                self.expect(of_failure(volume, "reattachVolume", &error, 0));
                volume.attachments.retain(|attachment| !attachment.holds());
                return Ok(false);
            }
        } else if attached && let Err(error) = self.detach_here(&volume.id, true) {
            tracing::error!(volume = volume.id, %error, "the volume could not be detached");
            return Ok(false);
        }
        let ended = |attachment: &Attachment| !stays(attachment) && attachment.holds();
        let is_deleted = volume.attachments.iter().any(|attachment| {
            let was_there = attachment.stage != AttachStage::Making;
            ended(attachment) && was_there && is_ending(attachment) && attachment.delete_on_termination
        });
        volume.attachments.retain(|attachment| !ended(attachment));
        Ok(is_deleted && first.is_none())
    }

    fn forget_volume(&self, id: &str, exists: bool) -> Result<(), OpenError> {
        match if exists { self.control.delete_volume(id) } else { Ok(()) } {
            Ok(()) | Err(ControlError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn settle_snapshot(
        &self,
        snapshot: Snapshot,
        there: &BTreeSet<String>,
        pending: &BTreeSet<String>,
    ) -> Result<(), OpenError> {
        let (exists, is_pending) = (there.contains(&snapshot.id), pending.contains(&snapshot.id));
        if matches!(snapshot.stage, Stage::Binned { .. }) {
            return Ok(());
        }
        if snapshot.stage != Stage::Ready {
            self.forget_snapshot(&snapshot)?;
            return self.note(Change::DropSnapshot(snapshot.id));
        }
        if is_pending {
            // One that was sealed with an error is not needed any more; an open one waits for its blocks.
            return if snapshot.is_unsealed() { Ok(()) } else { Ok(self.forget_blocks(&snapshot.id)?) };
        }
        if exists && snapshot.is_unsealed() {
            return self.seal_completed(snapshot);
        }
        if !exists && snapshot.error.is_none() {
            tracing::error!(snapshot = snapshot.id, "the snapshot of a record is missing");
            let error = Some("The data of the snapshot are missing".to_owned());
            let direct = snapshot.direct.clone().map(|direct| Direct { sealed: true, ..direct });
            return self.note(Change::Snapshot(Snapshot { error, direct, ..snapshot }));
        }
        Ok(())
    }

    /// Records that a snapshot of blocks was completed, after a kill between the two.
    fn seal_completed(&self, mut snapshot: Snapshot) -> Result<(), OpenError> {
        snapshot.data_bytes = self.control.snapshot(&snapshot.id)?.data_bytes;
        snapshot.direct = snapshot.direct.map(|direct| Direct { sealed: true, ..direct });
        self.note(Change::Snapshot(snapshot))
    }

    fn note(&self, change: Change) -> Result<(), OpenError> {
        self.state.lock().try_commit(vec![change]).map_err(OpenError::from)
    }
}
