//! ModifyInstanceAttribute: DeleteOnTermination of attached volumes, and the type of a stopped instance.
//!
//! Of the other attributes, the value that each stand-in has is accepted, and changes nothing.

use serde_json::{Map, Value};

use super::ask::{Ask, Input};
use super::db::Change;
use super::devices::device_key;
use super::ids::Kind;
use super::records::{Attachment, Instance, Power, Volume};
use super::state::State;
use super::{Ec2, access, networks, refuse};
use crate::ApiError;

/// Attributes with the only value that a stand-in has; none: any value is as good.
const FIXED: [(&str, Option<&str>); 11] = [
    ("DisableApiStop", Some("false")),
    ("DisableApiTermination", Some("false")),
    ("EbsOptimized", None),
    ("EnaSupport", Some("true")),
    ("EnclaveOptions", Some("false")),
    ("InstanceInitiatedShutdownBehavior", Some("stop")),
    ("Kernel", Some("")),
    ("Ramdisk", Some("")),
    ("SourceDestCheck", Some("true")),
    ("SriovNetSupport", None),
    ("UserData", Some("")),
];

/// What a call sets: in a member of its own, or as `Attribute` with `Value`. None where the call sets nothing of this name.
fn wanted<'a>(input: Input<'a>, member: &str) -> Option<&'a Value> {
    let own = input.0.get(member);
    let by_name = || {
        let attribute = input.text("Attribute")?;
        if attribute.eq_ignore_ascii_case(member) { input.0.get("Value") } else { None }
    };
    own.or_else(by_name)
}

/// A value as text: of a structure its `Value`, or its `Enabled`.
fn text(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            members.get("Value").or_else(|| members.get("Enabled")).map(text).unwrap_or_default()
        }
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Refuses attributes that a stand-in cannot have; true where the call names one that it has.
fn check_fixed(input: Input<'_>) -> Result<bool, ApiError> {
    let mut names_one = false;
    for (member, only) in FIXED {
        let Some(given) = wanted(input, member).map(text) else { continue };
        if only.is_some_and(|only| only != given) {
            return Err(refuse::unsupported(&format!("The value '{given}' of the attribute {member}")));
        }
        names_one = true;
    }
    let groups = input.texts("Groups");
    if groups.iter().any(|group| *group != networks::GROUP) {
        return Err(refuse::unsupported("A security group other than the default one"));
    }
    Ok(names_one || !groups.is_empty())
}

impl Ec2 {
    pub(super) fn modify_instance_attribute(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let input = ask.input;
        let id = input.required("InstanceId", "instanceId")?;
        Kind::Instance.check(id, "instanceId")?;
        let mappings = input.structures("BlockDeviceMappings");
        let kind = wanted(input, "InstanceType").map(text);
        let mut state = self.state.lock();
        let found = state.seen_instance(ask, id);
        let attribute = match (&kind, mappings.is_empty()) {
            (Some(_), _) => "InstanceType",
            (None, false) => "BlockDeviceMapping",
            (None, true) => input.text("Attribute").unwrap_or("Attribute"),
        };
        access::maybe_instance(ask, "ModifyInstanceAttribute", found, id)
            .with("ec2:Attribute", attribute)
            .demand(ask)?;
        let instance = state.instance(ask, id)?.clone();
        ask.end_dry_run()?;
        let names_fixed = check_fixed(input)?;
        if kind.is_none() && mappings.is_empty() && !names_fixed {
            return Err(refuse::unsupported("An attribute other than BlockDeviceMappings and InstanceType"));
        }
        let changes = mappings.into_iter().map(|mapping| remapped(ask, &state, id, mapping));
        let changes = changes.collect::<Result<Vec<_>, _>>()?;
        state.commit(changes)?;
        drop(state);
        match kind {
            Some(kind) => self.change_type(ask, &instance, &kind),
            None => Ok(Map::new()),
        }
    }

    /// Gives a stopped instance another type. Its devices get the new limits, for which they are made anew.
    fn change_type(
        &self,
        ask: &Ask<'_>,
        instance: &Instance,
        kind: &str,
    ) -> Result<Map<String, Value>, ApiError> {
        let Some(figures) = self.options.catalog.instance_named(kind) else {
            let message = format!("Invalid value '{kind}' for InstanceType.");
            return Err(ApiError::client("InvalidInstanceAttributeValue", message));
        };
        if instance.power(ask.now()) != Power::Stopped {
            let message = format!("The instance '{}' is not in the 'stopped' state.", instance.id);
            return Err(ApiError::client("IncorrectInstanceState", message));
        }
        if instance.kind == kind {
            return Ok(Map::new());
        }
        let attached: Vec<(Volume, Attachment)> = {
            let state = self.state.lock();
            let all = state.volumes_of(&instance.id).filter(|(_, at)| at.is_there(ask.now()));
            all.map(|(volume, at)| (volume.clone(), at.clone())).collect()
        };
        if u32::try_from(attached.len()).is_ok_and(|count| count > figures.ebs_slots) {
            let message = format!(
                "Volume attachment limit exceeded: instance '{}' has {} volumes, one of type {kind} takes {}.",
                instance.id,
                attached.len(),
                figures.ebs_slots
            );
            return Err(ApiError::client("AttachmentLimitExceeded", message));
        }
        let changed = Instance { kind: kind.to_owned(), ..instance.clone() };
        // A shared device stays with the instance whose attachment made it.
        let devices = attached
            .into_iter()
            .filter(|(volume, at)| !at.without_device && at.holds() && !volume.is_held_besides(&instance.id));
        let devices: Vec<Volume> = devices.map(|(volume, _)| volume).collect();
        self.make_devices_anew(&devices, instance, &changed)?;
        // Tags may have changed meanwhile.
        let mut state = self.state.lock();
        let changed = Instance { kind: kind.to_owned(), ..state.instance(ask, &instance.id)?.clone() };
        state.commit(vec![Change::Instance(changed)])?;
        Ok(Map::new())
    }

    /// Attaches volumes again for another type of their instance. Where one is in use, all are as they were.
    fn make_devices_anew(
        &self,
        devices: &[Volume],
        before: &Instance,
        after: &Instance,
    ) -> Result<(), ApiError> {
        let mut moved: Vec<&Volume> = Vec::new();
        for volume in devices {
            let _alone = self.sharing(&volume.id);
            let detached = self.detach_here(&volume.id, false).map_err(|error| {
                refuse::incorrect_state(format!(
                    "The device of volume '{}' is in use on this host, and gets the limits of another type only while it is not: {}",
                    volume.id,
                    crate::service::with_causes(&error)
                ))
            });
            let attached = detached.and_then(|()| {
                moved.push(volume);
                self.attach_here(volume, after)
            });
            if let Err(error) = attached {
                for volume in moved {
                    let again =
                        self.detach_here(&volume.id, true).map_err(|error| refuse::of_control(&error));
                    if let Err(error) = again.and_then(|()| self.attach_here(volume, before)) {
                        tracing::error!(volume = volume.id, %error, "the volume could not be attached again");
                    }
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The volume at a device of an instance, with the DeleteOnTermination that a call gives it.
fn remapped(ask: &Ask<'_>, state: &State, instance: &str, mapping: Input<'_>) -> Result<Change, ApiError> {
    let device = mapping.required("DeviceName", "deviceName")?;
    let found = state
        .volumes_of(instance)
        .find(|(_, at)| at.is_there(ask.now()) && device_key(&at.device) == device_key(device));
    let Some((volume, attachment)) = found else {
        let message = format!("No device is currently mapped at {device}");
        return Err(ApiError::client("InvalidInstanceAttributeValue", message));
    };
    let given = mapping.structure("Ebs").and_then(|ebs| ebs.flag("DeleteOnTermination"));
    let delete_on_termination = given.unwrap_or(attachment.delete_on_termination);
    let attachment = Attachment { delete_on_termination, ..attachment.clone() };
    Ok(Change::Volume(volume.with_attachment(attachment)))
}
