//! Multi-Attach: io1 and io2 volumes that are attached to several instances (EBS user guide, `ebs-volumes-multi`).
//!
//! All instances are stand-ins for this host. So the first attachment makes the device, the others share it, and the last
//! one removes it. Its limits are those of the volume, and of the instance whose attachment made it.

use ebbtide_control::ControlError;
use parking_lot::MutexGuard;

use super::ask::Ask;
use super::devices::{ROOT_DEVICE, device_key};
use super::records::{AttachStage, Attachment, Volume};
use super::shape::Asked;
use super::{Ec2, refuse};
use crate::ApiError;

/// Most instances of a volume.
const MOST: usize = 16;

/// The Regions in which io1 has it.
const IO1_REGIONS: [&str; 3] = ["ap-northeast-2", "us-east-1", "us-west-2"];

/// Refuses it for a new volume of a type that does not have it.
pub(super) fn check_new(ask: &Ask<'_>, kind: &str) -> Result<(), ApiError> {
    match kind {
        "io2" => Ok(()),
        "io1" if IO1_REGIONS.contains(&ask.region()) => Ok(()),
        "io1" => Err(refuse::invalid_combination(format!(
            "The parameter multi-attach-enabled is not supported for io1 volumes in {}.",
            ask.region()
        ))),
        _ => Err(refuse::invalid_combination(format!(
            "The parameter multi-attach-enabled is not supported for {kind} volumes."
        ))),
    }
}

/// Refuses a modification to a type that Multi-Attach does not allow.
pub(super) fn check_modification(
    ask: &Ask<'_>,
    volume: &Volume,
    asked: &Asked,
    kind: &str,
) -> Result<(), ApiError> {
    let (id, before) = (&volume.id, &volume.shape);
    let after = asked.multi_attach.unwrap_or(before.multi_attach);
    if after {
        check_new(ask, kind)?;
    }
    let is_of_io1 = before.kind == "io1" && kind == "io1";
    if after != before.multi_attach {
        if is_of_io1 {
            let message = format!("Multi-Attach of the io1 volume '{id}' can't be enabled or disabled.");
            return Err(ApiError::client("UnsupportedOperation", message));
        }
        if let Some(attachment) = volume.attachments_at(ask.now()).next() {
            return Err(refuse::incorrect_state(format!(
                "Multi-Attach of volume '{id}' can't be enabled or disabled while it is attached to {}.",
                attachment.instance
            )));
        }
    } else if before.multi_attach && is_of_io1 && (asked.size_gib.is_some() || asked.iops.is_some()) {
        let message =
            format!("Size and IOPS of the Multi-Attach enabled io1 volume '{id}' can't be modified.");
        return Err(ApiError::client("UnsupportedOperation", message));
    }
    Ok(())
}

/// Whether a volume that is attached already may be attached to one more instance.
pub(super) fn may_join(volume: &Volume, instance: &str, now: u64) -> Result<(), ApiError> {
    let there: Vec<&Attachment> = volume.attachments_at(now).collect();
    if there.iter().any(|attachment| attachment.instance == instance) {
        let message = format!("{} is already attached to an instance", volume.id);
        return Err(ApiError::client("VolumeInUse", message));
    }
    // Its device is not there yet: this was enabled in the meantime.
    if there.iter().any(|attachment| attachment.stage == AttachStage::Making) {
        return Err(refuse::incorrect_state(format!("{} is being attached.", volume.id)));
    }
    if there.len() >= MOST {
        let message =
            format!("Volume attachment limit exceeded: volume '{}' takes {MOST} instances.", volume.id);
        return Err(ApiError::client("AttachmentLimitExceeded", message));
    }
    Ok(())
}

/// A volume that is shared is not what an instance starts from.
pub(super) fn check_device(volume: &Volume, device: &str) -> Result<(), ApiError> {
    if volume.shape.multi_attach && device_key(device) == device_key(ROOT_DEVICE) {
        let message = format!("The Multi-Attach enabled volume '{}' can't be a root volume.", volume.id);
        return Err(ApiError::client("UnsupportedOperation", message));
    }
    Ok(())
}

impl Volume {
    /// Whether another instance than this one still has its device.
    pub(super) fn is_held_besides(&self, instance: &str) -> bool {
        self.attachments.iter().any(|at| at.instance != instance && at.holds())
    }
}

impl Ec2 {
    /// To be held, and taken before the records, while an attachment of a volume is made or ended. It keeps the other
    /// attachments of a shared volume from it, so that each finds the device made or removed. None for other volumes.
    pub(super) fn sharing(&self, id: &str) -> Option<MutexGuard<'_, ()>> {
        let is_shared = self.state.lock().volumes().get(id).is_some_and(|volume| volume.shape.multi_attach);
        is_shared.then(|| self.sharing.lock())
    }

    /// Detaches a volume on this host from an instance: its device stays while another instance has it.
    pub(super) fn detach_from(&self, id: &str, instance: &str, force: bool) -> Result<(), ControlError> {
        let volume_is_held = |volume: &Volume| volume.is_held_besides(instance);
        let is_held = self.state.lock().volumes().get(id).is_some_and(volume_is_held);
        if is_held { Ok(()) } else { self.detach_here(id, force) }
    }
}
