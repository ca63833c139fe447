//! AttachVolume and DetachVolume, and what they do on this host.
//!
//! Attaching and detaching can take seconds. The records are free for other calls meanwhile; the volume's own record says
//! what is being done to it.

use ebbtide_control::{AttachVolume, ControlError, ControlErrorKind, DetachVolume};
use serde_json::{Map, Value};

use super::ask::Ask;
use super::db::Change;
use super::devices::{ROOT_DEVICE, device_key};
use super::events::of_attachment;
use super::ids::Kind;
use super::records::{AttachFailure, AttachStage, Attachment, Instance, Power, Volume};
use super::state::State;
use super::{Ec2, access, describe_volumes, exports, links, multi_attach, refuse};
use crate::ApiError;
use crate::service::with_causes;

/// Between attempts to detach a volume that something on this host uses, in milliseconds.
const RETRY_MS: u64 = 1_000;

impl Ec2 {
    pub(super) fn attach_volume(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let id = ask.input.required("VolumeId", "volumeId")?;
        let instance = ask.input.required("InstanceId", "instanceId")?;
        let device = ask.input.required("Device", "device")?;
        Kind::Volume.check(id, "volumeId")?;
        Kind::Instance.check(instance, "instanceId")?;
        let _alone = self.sharing(id);
        let (volume, instance) = {
            let mut state = self.state.lock();
            let volume = access::permitted_volume(ask, &state, id)?.clone();
            let instance = access::permitted_instance(ask, &state, instance)?.clone();
            ask.end_dry_run()?;
            self.may_attach(ask, &state, &volume, &instance, device)?;
            exports::export(&self.options, &volume, &instance)?;
            let volume = volume.with_attachment(self.attachment(ask, &instance, device));
            state.commit(vec![Change::Volume(volume.clone())])?;
            (volume, instance)
        };
        // With a key that cannot be used, AWS answers, and the attachment fails later.
        let obstacle = self.obstacle(volume.kms_key.as_deref());
        let attached = if obstacle.is_some() || volume.is_held_besides(&instance.id) {
            Ok(())
        } else {
            self.attach_here(&volume, &instance)
        };
        let mut state = self.state.lock();
        // Tags may have changed meanwhile.
        let volume = state.volume(ask, id)?.clone();
        match attached {
            Ok(()) => {
                let mut attachment = self.attachment(ask, &instance, device);
                let fails = obstacle.is_some();
                attachment.stage = if fails {
                    AttachStage::Failed { until_ms: attachment.attached_ms }
                } else {
                    AttachStage::Ready
                };
                attachment.failure = obstacle.map(AttachFailure::Key);
                let mut answer = describe_volumes::attachment(id, &attachment, "attaching");
                self.exports.describe(id, &mut answer);
                // The instance may have been terminated meanwhile: the next call detaches the volume.
                if !fails && state.instances().get(&instance.id).is_none_or(Instance::is_ending) {
                    attachment.stage = AttachStage::Busy;
                    state.busy.insert((id.to_owned(), instance.id.clone()), 0);
                }
                state.commit(vec![Change::Volume(volume.with_attachment(attachment))])?;
                Ok(answer)
            }
            Err(error) => {
                // It is shown no more, and kept for its event.
                let failed = Attachment {
                    stage: AttachStage::Failed { until_ms: ask.now() },
                    failure: Some(AttachFailure::Host(error.to_string())),
                    ..self.attachment(ask, &instance, device)
                };
                let due = of_attachment(&volume, &failed);
                state.commit(vec![Change::Volume(volume.with_attachment(failed))])?;
                self.events.expect(due);
                Err(error)
            }
        }
    }

    fn attachment(&self, ask: &Ask<'_>, instance: &Instance, device: &str) -> Attachment {
        Attachment {
            instance: instance.id.clone(),
            device: device.to_owned(),
            since_ms: ask.now(),
            attached_ms: ask.now() + self.options.timing.attaching_ms,
            delete_on_termination: false,
            ebs_card: ask.input.number("EbsCardIndex").and_then(|card| u64::try_from(card).ok()),
            without_device: false,
            stage: AttachStage::Making,
            failure: None,
        }
    }

    /// Whether the states of a volume and an instance allow an attachment.
    fn may_attach(
        &self,
        ask: &Ask<'_>,
        state: &State,
        volume: &Volume,
        instance: &Instance,
        device: &str,
    ) -> Result<(), ApiError> {
        let now = ask.now();
        let Some(key) = device_key(device) else {
            let message = format!(
                "Value ({device}) for parameter device is invalid. {device} is not a valid EBS device name."
            );
            return Err(refuse::invalid_value(message));
        };
        let power = instance.power(now);
        if !matches!(power, Power::Running | Power::Stopped) {
            return Err(refuse::incorrect_state(format!(
                "Instance '{}' is not 'running' or 'stopped'; it is '{}'.",
                instance.id,
                power.name()
            )));
        }
        multi_attach::check_device(volume, device)?;
        if volume.occupied {
            let message = format!("{} is already attached on this host by a command", volume.id);
            return Err(ApiError::client("VolumeInUse", message));
        }
        match volume.state(now) {
            Some("available") => {}
            Some("in-use") if volume.shape.multi_attach => multi_attach::may_join(volume, &instance.id, now)?,
            Some("in-use") => {
                let message = format!("{} is already attached to an instance", volume.id);
                return Err(ApiError::client("VolumeInUse", message));
            }
            _ => return Err(refuse::incorrect_state(format!("{} is not 'available'.", volume.id))),
        }
        if volume.zone != instance.zone {
            let message = format!(
                "The volume '{}' is not in the same availability zone as instance '{}'",
                volume.id, instance.id
            );
            return Err(ApiError::client("InvalidVolume.ZoneMismatch", message));
        }
        let others = || state.volumes_of(&instance.id).filter(|(_, at)| at.is_there(now));
        if others().any(|(_, at)| device_key(&at.device) == Some(key)) {
            let message = format!(
                "Invalid value '{device}' for unixDevice. Attachment point {device} is already in use"
            );
            return Err(refuse::invalid_value(message));
        }
        let slots = self.options.catalog.instance(&instance.kind).map_or(u32::MAX, |kind| kind.ebs_slots);
        if u32::try_from(others().count()).is_ok_and(|others| others >= slots) {
            let message = format!(
                "Volume attachment limit exceeded: instance '{}' of type {} takes {slots} volumes.",
                instance.id, instance.kind
            );
            return Err(ApiError::client("AttachmentLimitExceeded", message));
        }
        Ok(())
    }

    /// Attaches a volume on this host for an instance, and links its device, or notes where it is exported.
    pub(super) fn attach_here(&self, volume: &Volume, instance: &Instance) -> Result<(), ApiError> {
        let request = AttachVolume {
            name: volume.id.clone(),
            export: exports::export(&self.options, volume, instance)?,
            instance: Some(format!("{}/{}", instance.kind, instance.id)),
            // AWS attaches volumes that are faster than their instance, too; the volume has the mark in `volume list`.
            over_limit: true,
            shadows: Vec::new(),
        };
        match self.control.attach_volume(&request, &|_| ()) {
            Ok(detail) => {
                let (device, uri) = detail.volume.attachment.map_or((None, None), |at| (at.device, at.uri));
                links::make(&self.options, &volume.id, device.as_deref());
                if let Some(uri) = uri.filter(|_| exports::is_other_host(instance)) {
                    self.exports.note(&volume.id, &uri);
                }
                Ok(())
            }
            Err(error @ ControlError::Refused(_)) if error.kind() == ControlErrorKind::Conflict => {
                Err(ApiError::client("AttachmentLimitExceeded", error.to_string()))
            }
            Err(error @ ControlError::Refused(_)) => Err(ApiError::client(
                "UnsupportedOperation",
                format!("The volume cannot be attached on this host: {}", with_causes(&error)),
            )),
            // The tag of the instance asks for an address that others reach, or that is in use. What this host fails at is an
            // error of the service, as for other instances: clients try again.
            Err(error) if exports::is_other_host(instance) && error.kind() == ControlErrorKind::Usage => {
                let why = with_causes(&error);
                let message = format!("The volume cannot be exported for instance '{}': {why}", instance.id);
                Err(ApiError::client("UnsupportedOperation", message))
            }
            Err(error) => Err(refuse::of_control(&error)),
        }
    }

    /// Detaches a volume on this host; one that is not attached is none to detach.
    pub(super) fn detach_here(&self, id: &str, force: bool) -> Result<(), ControlError> {
        let request = DetachVolume { name: id.to_owned(), force };
        match self.control.detach_volume(&request, &|_| ()) {
            Ok(_) | Err(ControlError::NotAttached { .. } | ControlError::NotFound { .. }) => {
                links::remove(&self.options, id);
                self.exports.forget(id);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn detach_volume(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let id = ask.input.required("VolumeId", "volumeId")?;
        Kind::Volume.check(id, "volumeId")?;
        let force = ask.input.flag("Force") == Some(true);
        let _alone = self.sharing(id);
        let attachment = {
            let mut state = self.state.lock();
            let volume = access::permitted_volume(ask, &state, id)?.clone();
            let attachment = self.may_detach(ask, &state, &volume)?;
            if matches!(
                attachment.stage,
                AttachStage::Ending | AttachStage::Gone { .. } | AttachStage::Failed { .. }
            ) {
                return Ok(describe_volumes::attachment(id, &attachment, "detaching"));
            }
            state.busy.remove(&(id.to_owned(), attachment.instance.clone()));
            let ending = Attachment { stage: AttachStage::Ending, ..attachment.clone() };
            state.commit(vec![Change::Volume(volume.with_attachment(ending))])?;
            attachment
        };
        let detached = self.detach_from(id, &attachment.instance, force);
        self.end_attachment(ask.now(), (id, &attachment.instance), detached, attachment.stage)?;
        Ok(describe_volumes::attachment(id, &attachment, "detaching"))
    }

    /// The attachment of a volume, where it may be ended.
    fn may_detach(&self, ask: &Ask<'_>, state: &State, volume: &Volume) -> Result<Attachment, ApiError> {
        let now = ask.now();
        let id = &volume.id;
        let named = ask.input.text("InstanceId").filter(|id| !id.is_empty());
        if let Some(named) = named {
            Kind::Instance.check(named, "instanceId")?;
            access::permitted_instance(ask, state, named)?;
        }
        ask.end_dry_run()?;
        let to_named = |at: &&Attachment| named == Some(at.instance.as_str());
        let found = volume.attachments_at(now).find(to_named).or_else(|| volume.attachments_at(now).next());
        let Some(attachment) = found else {
            if volume.occupied {
                let message =
                    format!("Volume '{id}' is attached on this host by a command, and not to an instance.");
                return Err(refuse::incorrect_state(message));
            }
            let state = volume.state(now).unwrap_or("available");
            return Err(refuse::incorrect_state(format!("Volume '{id}' is in the '{state}' state.")));
        };
        if volume.shape.multi_attach && named.is_none() {
            return Err(refuse::missing_of_request("InstanceId"));
        }
        let device = ask.input.text("Device").filter(|device| !device.is_empty());
        let other_device = device.is_some_and(|device| device_key(device) != device_key(&attachment.device));
        if other_device || named.is_some_and(|instance| instance != attachment.instance) {
            let place = named.unwrap_or(&attachment.instance);
            let device = device.unwrap_or(&attachment.device);
            let message =
                format!("The volume '{id}' is not attached to instance '{place}' as device '{device}'.");
            return Err(ApiError::client("InvalidAttachment.NotFound", message));
        }
        if attachment.stage == AttachStage::Making {
            return Err(refuse::incorrect_state(format!("Volume '{id}' is in the 'attaching' state.")));
        }
        let running = state
            .instances()
            .get(&attachment.instance)
            .is_some_and(|instance| matches!(instance.power(now), Power::Running | Power::Pending));
        if running && device_key(&attachment.device) == device_key(ROOT_DEVICE) {
            let message =
                format!("Unable to detach root volume '{id}' from instance '{}'", attachment.instance);
            return Err(ApiError::client("OperationNotPermitted", message));
        }
        Ok(attachment.clone())
    }

    /// Notes how a detach ended. `before` is the attachment's stage to return to where it failed.
    pub(super) fn end_attachment(
        &self,
        now: u64,
        (id, instance): (&str, &str),
        detached: Result<(), ControlError>,
        before: AttachStage,
    ) -> Result<(), ApiError> {
        let mut state = self.state.lock();
        let Some(volume) = state.volumes().get(id) else { return Ok(()) };
        let Some(mut attachment) = volume.attachment_to(instance).cloned() else { return Ok(()) };
        let failed = match detached {
            Ok(()) => {
                let is_ending = state.instances().get(instance).is_none_or(Instance::is_ending);
                // Of several attachments the last one decides.
                if attachment.delete_on_termination && is_ending && !volume.is_held_besides(instance) {
                    let volume = volume.without_attachment(instance);
                    self.remove_volume(now, &mut state, volume)?;
                    self.expect_deletion(&state, id);
                    return Ok(());
                }
                attachment.stage = AttachStage::Gone { until_ms: now + self.options.timing.detaching_ms };
                None
            }
            Err(error) if error.kind() == ControlErrorKind::InUse => {
                attachment.stage = AttachStage::Busy;
                None
            }
            Err(error) => {
                attachment.stage = before;
                Some(refuse::of_control(&error))
            }
        };
        let volume = volume.with_attachment(attachment.clone());
        if failed.is_none() && attachment.stage == AttachStage::Busy {
            state.busy.insert((id.to_owned(), instance.to_owned()), now);
        }
        state.commit(vec![Change::Volume(volume)])?;
        failed.map_or(Ok(()), Err)
    }

    /// Tries again to detach what something on this host used.
    pub(super) fn retry_detaches(&self, now: u64) {
        let due: Vec<(String, String)> = {
            let mut state = self.state.lock();
            let due = state.busy.iter().filter(|(_, last)| now >= last.saturating_add(RETRY_MS));
            let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
            for key in &due {
                state.busy.remove(key);
            }
            due
        };
        for (id, instance) in due {
            let _alone = self.sharing(&id);
            let ending = self.state.lock().instances().get(&instance).is_none_or(Instance::is_ending);
            let detached = self.detach_from(&id, &instance, ending);
            if let Err(error) = self.end_attachment(now, (&id, &instance), detached, AttachStage::Busy) {
                tracing::warn!(volume = id, %error, "still not detached");
                self.state.lock().busy.insert((id, instance), now);
            }
        }
    }
}
