//! What is done to a volume that exists: attach, detach, modify, delete, break.

use ebbtide_catalog::Resolved;
use ebbtide_device::faults::{AddedLatency, Affected, Errors, Faults};
use ebbtide_device::host::{AttachRequest, Attachment, Export, HostMatch, InstanceRequest, Progress};
use ebbtide_text::seed;
use ebbtide_volume::Op;

use super::LiveControl;
use super::calibration::Demand;
use crate::record::at;
use crate::state::{Occupancy, Operation, VolumeState};
use crate::{
    AttachVolume, ControlError, DetachView, DetachVolume, FaultSetting, FaultView, ModifyVolume, SetFaults,
    VolumeDetail,
};

impl LiveControl {
    /// Attaches a volume.
    pub(super) fn attach(
        &self,
        request: &AttachVolume,
        progress: Progress<'_>,
    ) -> Result<VolumeDetail, ControlError> {
        let (info, state) = self.find(&request.name)?;
        // Before the catalogue is read, which may be damaged.
        state.permits(Operation::Attach)?;
        let (record, array) = state.attach(&self.catalog()?, self.host.now())?;
        let instance = request.instance.as_deref().map(|text| self.instance_of(text)).transpose()?;
        let demand = Demand {
            volume: &request.name,
            array: &array,
            instance: instance.as_ref(),
            through_nbd: matches!(request.export, Export::Nbd(_)),
            over_limit: request.over_limit,
            modify: false,
        };
        let host_match = self.require_of_host(&demand, progress)?;
        let shadows = self.shadows_of(request, instance.as_ref(), info.size_bytes, record.seed)?;
        let attached = AttachRequest {
            volume: request.name.clone(),
            meta: info.meta,
            array,
            seed: record.seed,
            block_bytes: record.block_size,
            instance,
            export: request.export.clone(),
            host_match,
        };
        let attached = self.host.attach(attached, progress);
        self.index.changed(&request.name);
        attached?;
        if let Err(error) = self.follow(&request.name, shadows) {
            let detached = self.host.detach(&request.name, true, progress);
            self.index.changed(&request.name);
            detached?;
            return Err(error);
        }
        self.detail(&request.name, None)
    }

    /// An instance by `TYPE[/ID]`. Without an identifier, all volumes that name the type share one.
    fn instance_of(&self, text: &str) -> Result<InstanceRequest, ControlError> {
        let kind = text.split('/').next().unwrap_or(text);
        let found = self.catalog()?.instance(kind)?;
        Ok(InstanceRequest {
            id: text.to_owned(),
            kind: found.name,
            limits: found.limits,
            slots: found.ebs_slots,
        })
    }

    /// Detaches a volume.
    pub(super) fn detach(
        &self,
        request: &DetachVolume,
        progress: Progress<'_>,
    ) -> Result<DetachView, ControlError> {
        let (_, state) = self.find(&request.name)?;
        state.permits(Operation::Detach)?;
        let detached = self.host.detach(&request.name, request.force, progress);
        self.index.changed(&request.name);
        let detached = detached?;
        let ended = self.host.now();
        // With the attachment its follower has ended, and has handed on the last requests.
        let followed = self.end_following_of(&request.name);
        tracing::info!(volume = request.name, force = request.force, "detached");
        Ok(DetachView {
            shadows: followed.as_ref().and_then(|followed| followed.shadows(ended)),
            recording: followed.as_ref().and_then(|followed| followed.end_recording()),
            volume: self.detail(&request.name, None)?,
            lost: detached.lost,
            host_errors: detached.host_errors,
            power_cut: detached.power_cut,
        })
    }

    /// Deletes a volume.
    pub(super) fn delete(&self, name: &str) -> Result<(), ControlError> {
        let (_, state) = self.find(name)?;
        state.permits(Operation::Delete)?;
        self.host.while_free(name, "being deleted", || self.host.store().delete_volume(name))??;
        self.host.forget_totals(name);
        self.index.remove(name);
        tracing::info!(volume = name, "deleted");
        Ok(())
    }

    /// Modifies a volume.
    pub(super) fn modify(
        &self,
        request: &ModifyVolume,
        progress: Progress<'_>,
    ) -> Result<VolumeDetail, ControlError> {
        let change = |attachment: Option<&Attachment>| self.modify_alone(request, attachment, progress);
        let changed = self.host.while_alone(&request.name, "being modified", change);
        // Also where it was refused: the size may have grown by then.
        self.index.changed(&request.name);
        changed??;
        self.detail(&request.name, None)
    }

    /// Modifies a volume that nobody else can change meanwhile.
    fn modify_alone(
        &self,
        request: &ModifyVolume,
        attachment: Option<&Attachment>,
        progress: Progress<'_>,
    ) -> Result<(), ControlError> {
        let info = self.host.store().volume(&request.name)?;
        let occupancy = attachment.map_or(Occupancy::Free, super::attached);
        let state = VolumeState::of(&info, occupancy);
        state.permits(Operation::Modify)?;
        let change = state.modify(&self.catalog()?, &request.spec, request.optimizing, self.host.now())?;
        let required = |attachment| self.require_of_attached(request, &change.target, attachment, progress);
        let host_match = attachment.map(required).transpose()?;
        let target_size = change.target.size_bytes();
        if target_size > info.size_bytes {
            self.host.store().resize_volume(&request.name, target_size)?;
        }
        // Written before the live volume changes: a kill in between leaves the new volume, which
        // is what the next attachment then finds.
        self.host.update_meta(&request.name, |whole| change.record.write(whole))?;
        if let Some(attachment) = attachment {
            let (optimizing, completes) = (change.latest.optimizing_unix_s, change.latest.completes_unix_s);
            attachment
                .live()
                .modify(&change.target.members[0], at(optimizing), at(completes))
                .map_err(ControlError::contradiction("the catalogue's limits contradict themselves"))?;
            attachment.set_host_match(host_match.unwrap_or_default());
            attachment.grow()?;
        }
        tracing::info!(volume = request.name, spec = change.record.spec, "modified");
        Ok(())
    }

    /// How an attached volume compares with the host once it is modified; a detached one is
    /// compared when it is attached.
    fn require_of_attached(
        &self,
        request: &ModifyVolume,
        target: &Resolved,
        attachment: &Attachment,
        progress: Progress<'_>,
    ) -> Result<HostMatch, ControlError> {
        let info = attachment.info();
        let instance = info.instance.as_deref().map(|text| self.instance_of(text)).transpose()?;
        let demand = Demand {
            volume: &request.name,
            array: &target.array(self.host.now()),
            instance: instance.as_ref(),
            through_nbd: info.device.is_none(),
            over_limit: request.over_limit,
            modify: true,
        };
        self.require_of_host(&demand, progress)
    }

    /// Breaks a volume, or mends it.
    pub(super) fn fault(&self, request: &SetFaults) -> Result<FaultView, ControlError> {
        let (info, state) = self.find(&request.name)?;
        state.permits(Operation::SetFaults)?;
        let attachment = self.host.attached(&request.name)?;
        let live = attachment.live();
        let size_bytes = info.size_bytes;
        let alone = self.faults.lock();
        let mut faults = live.faults();
        let mut cut = None;
        for setting in &request.settings {
            match setting {
                FaultSetting::PowerCut(seed) => cut = Some(seed.unwrap_or_else(seed::fresh)),
                FaultSetting::ErrorRange(Some((offset, len))) if offset + len > size_bytes => {
                    let (volume, setting) = (request.name.clone(), setting.clone());
                    return Err(ControlError::BeyondEnd { volume, setting, size_bytes });
                }
                other => apply(&mut faults, other),
            }
        }
        if !request.settings.is_empty() {
            live.set_faults(faults)?;
            let settings: Vec<_> = request.settings.iter().map(ToString::to_string).collect();
            tracing::info!(volume = request.name, "faults: {}", settings.join(" "));
        }
        drop(alone);
        let power_cut = cut.map(|seed| live.power_cut(seed)).transpose()?;
        let (faults, power_lost) = (live.faults(), !live.is_live());
        Ok(FaultView { volume: request.name.clone(), faults, power_lost, power_cut })
    }
}

/// Changes the faults in force as one setting specifies.
fn apply(faults: &mut Faults, setting: &FaultSetting) {
    match setting {
        FaultSetting::Latency { op, added } => {
            let affected = match op {
                Some(Op::Read) => Affected::Reads,
                Some(Op::Write) => Affected::Writes,
                _ => Affected::All,
            };
            // `latency=` without a kind replaces whatever was added to one kind.
            faults.latency.retain(|old| affected != Affected::All && old.affected != affected);
            let us = u32::try_from(added.as_micros()).unwrap_or(u32::MAX);
            if us > 0 {
                faults.latency.push(AddedLatency { affected, us });
            }
        }
        FaultSetting::Errors { ppm } => {
            faults.errors.retain(|old| old.range.is_some());
            if *ppm > 0 {
                faults.errors.push(Errors { affected: Affected::All, per_million: *ppm, range: None });
            }
        }
        FaultSetting::ErrorRange(range) => {
            faults.errors.retain(|old| old.range.is_none());
            if let Some((offset, len)) = *range {
                let range = Some(offset..offset + len);
                faults.errors.push(Errors { affected: Affected::All, per_million: 1_000_000, range });
            }
        }
        FaultSetting::Stall(on) => faults.stalled = *on,
        FaultSetting::AnswerEarly(on) => faults.answer_early = *on,
        FaultSetting::IgnoreFlush(on) => faults.ignore_flush = *on,
        FaultSetting::Clear => *faults = Faults::default(),
        FaultSetting::PowerCut(_) => {}
    }
}
