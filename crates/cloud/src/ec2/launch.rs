//! The volumes of BlockDeviceMappings of RunInstances: made and attached before the call answers, or none of it.
//!
//! An image has a mapping of its own, that of the root volume. Where the call does not name that device, the volume is made and
//! recorded as attached, and no device of this host is made for it: nobody asked for one.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::ask::{Ask, Input};
use super::db::Change;
use super::devices::{ROOT_DEVICE, device_key};
use super::encryption::{Found, refused_key};
use super::events::of_creation;
use super::filter::Tags;
use super::ids::Kind;
use super::records::{AttachStage, Attachment, Instance, Volume};
use super::state::State;
use super::volumes::{Wanted, refuse_unbuilt};
use super::{Ec2, images, quota, refuse, tags, tier};
use crate::{ApiError, Call};

/// Members of a mapping's EBS part, and what CreateVolume calls them.
const MEMBERS: [(&str, &str); 9] = [
    ("VolumeSize", "Size"),
    ("VolumeType", "VolumeType"),
    ("Iops", "Iops"),
    ("Throughput", "Throughput"),
    ("SnapshotId", "SnapshotId"),
    ("Encrypted", "Encrypted"),
    ("KmsKeyId", "KmsKeyId"),
    ("OutpostArn", "OutpostArn"),
    ("VolumeInitializationRate", "VolumeInitializationRate"),
];

/// A volume that a launch makes and attaches to each instance.
pub(super) struct Mapping {
    device: String,
    wanted: Wanted,
    delete_on_termination: bool,
    /// Whether the call named it: one of the image has no device on this host.
    is_asked_for: bool,
}

impl Ec2 {
    /// The mappings of a call, with the rights to make their volumes.
    pub(super) fn read_mappings(
        &self,
        ask: &Ask<'_>,
        state: &State,
        (kind, image, zone): (&str, &str, &str),
    ) -> Result<Vec<Mapping>, ApiError> {
        let root = device_key(ROOT_DEVICE).filter(|_| images::has_root(image));
        let tags = tags::of_new_among(ask.input, Kind::Volume, &[Kind::Instance, Kind::Volume])?;
        let mut keys = BTreeSet::new();
        let mut mappings = Vec::new();
        for given in ask.input.structures("BlockDeviceMappings") {
            let device = given.required("DeviceName", "blockDeviceMapping.deviceName")?;
            let Some(key) = device_key(device) else {
                let message = format!("Invalid device name {device}");
                return Err(ApiError::client("InvalidBlockDeviceMapping", message));
            };
            if given.text("VirtualName").is_some_and(|name| !name.is_empty()) {
                return Err(refuse::unsupported("The parameter VirtualName"));
            }
            if given.text("NoDevice").is_some() {
                // What the image would have there is left out.
                keys.insert(key.to_owned());
                continue;
            }
            let Some(ebs) = given.structure("Ebs") else { continue };
            if !keys.insert(key.to_owned()) {
                let message = format!("The device '{device}' is used in more than one block-device mapping");
                return Err(ApiError::client("InvalidBlockDeviceMapping", message));
            }
            let delete_on_termination = ebs.flag("DeleteOnTermination") != Some(false);
            let of_image = root == Some(key);
            let wanted = self.read_wanted(ask, state, (ebs, of_image), zone, &tags)?;
            let device = device.to_owned();
            mappings.push(Mapping { device, wanted, delete_on_termination, is_asked_for: true });
        }
        if root.is_some_and(|root| !keys.contains(root)) {
            let wanted = self.read_wanted(ask, state, (Input(&Map::new()), true), zone, &tags)?;
            let device = ROOT_DEVICE.to_owned();
            mappings.push(Mapping { device, wanted, delete_on_termination: true, is_asked_for: false });
        }
        let slots = self.options.catalog.instance(kind).map_or(u32::MAX, |kind| kind.ebs_slots);
        if u32::try_from(mappings.len()).is_ok_and(|count| count > slots) {
            let message = format!(
                "Volume attachment limit exceeded: {} volumes are mapped, an instance of type {kind} takes {slots}.",
                mappings.len()
            );
            return Err(ApiError::client("AttachmentLimitExceeded", message));
        }
        Ok(mappings)
    }

    /// The volume of a mapping, by the rules of CreateVolume. One of the root device has size and type of the image's.
    fn read_wanted(
        &self,
        ask: &Ask<'_>,
        state: &State,
        (ebs, of_image): (Input<'_>, bool),
        zone: &str,
        tags: &Tags,
    ) -> Result<Wanted, ApiError> {
        let mut input = Map::new();
        input.insert("AvailabilityZone".to_owned(), json!(zone));
        for (given, own) in MEMBERS {
            if let Some(value) = ebs.0.get(given) {
                input.insert(own.to_owned(), value.clone());
            }
        }
        if of_image {
            if !input.contains_key("SnapshotId") {
                input.entry("Size").or_insert_with(|| json!(images::ROOT_GIB));
            }
            input.entry("VolumeType").or_insert_with(|| json!(images::ROOT_TYPE));
        }
        if !tags.is_empty() {
            let tags = json!([{"ResourceType": "volume", "Tags": tags::members(tags)}]);
            input.insert("TagSpecifications".to_owned(), tags);
        }
        let call = Call { input: &input, ..*ask.call };
        let as_if = Ask::new(&call);
        let wanted = Wanted::read(self, &as_if, state)?;
        let shape = &wanted.provision.shape;
        self.demand_volume(&as_if, &wanted)?;
        refuse_unbuilt(&as_if, &shape.kind)?;
        if let Some(snapshot) = &wanted.snapshot {
            let status = snapshot.state(ask.now()).unwrap_or("error");
            if status != "completed" {
                return Err(refuse::incorrect_state(format!("Snapshot is in invalid state - {status}")));
            }
            tier::demand_usable(snapshot, ask.now())?;
        }
        quota::room_for_volume(&self.options.quotas, state, ask, shape, None)?;
        Ok(wanted)
    }

    /// Makes and attaches the volumes of instances that are not recorded yet, and gives their ids. Where one cannot be, all
    /// are deleted.
    pub(super) fn launch_volumes(
        &self,
        ask: &Ask<'_>,
        instances: &[Instance],
        mappings: &[Mapping],
    ) -> Result<Vec<String>, ApiError> {
        let mut made = Vec::new();
        for instance in instances {
            for mapping in mappings {
                if let Err(error) = self.launch_volume(ask, instance, mapping, &mut made) {
                    self.take_back(ask.now(), &made);
                    return Err(error);
                }
            }
        }
        let state = self.state.lock();
        let made_ones = made.iter().filter_map(|id| state.volumes().get(id));
        made_ones.for_each(|volume| self.expect(of_creation(volume)));
        drop(state);
        Ok(made)
    }

    fn launch_volume(
        &self,
        ask: &Ask<'_>,
        instance: &Instance,
        mapping: &Mapping,
        made: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let volume = {
            let mut state = self.state.lock();
            let wanted = mapping.wanted.clone();
            let key =
                self.find_key(ask, wanted.encryption.clone(), wanted.snapshot.as_ref().map(Into::into))?;
            if let Found::Unusable(name, problem) = &key {
                return Err(refused_key(name, problem));
            }
            let volume = self.make_volume(ask, &mut state, (wanted, &key), None)?;
            made.push(volume.id.clone());
            let attachment = Attachment {
                instance: instance.id.clone(),
                device: mapping.device.clone(),
                since_ms: ask.now(),
                attached_ms: ask.now() + self.options.timing.attaching_ms,
                delete_on_termination: mapping.delete_on_termination,
                ebs_card: None,
                without_device: !mapping.is_asked_for,
                // A start after a kill does not find the instance, and ends the attachment.
                stage: AttachStage::Ready,
                failure: None,
            };
            let volume = volume.with_attachment(attachment);
            state.commit(vec![Change::Volume(volume.clone())])?;
            volume
        };
        if mapping.is_asked_for { self.attach_here(&volume, instance) } else { Ok(()) }
    }

    /// Deletes the volumes of a launch that has failed.
    pub(super) fn take_back(&self, now: u64, made: &[String]) {
        for id in made {
            let detached = self.detach_here(id, true);
            let mut state = self.state.lock();
            let Some(volume) = state.volumes().get(id).cloned() else { continue };
            let deleted = detached.map_err(|error| refuse::of_control(&error)).and_then(|()| {
                self.remove_volume_for_good(now, &mut state, Volume { attachments: Vec::new(), ..volume })
            });
            if let Err(error) = deleted {
                tracing::warn!(volume = id, %error, "a volume of an instance that was not launched stays");
            }
        }
    }
}

/// What a repeated call must ask for too.
pub(super) fn parameters(mappings: &[Mapping]) -> Vec<Value> {
    let asked = mappings.iter().filter(|mapping| mapping.is_asked_for);
    let parameters = asked
        .map(|mapping| json!([mapping.device, mapping.wanted.parameters(), mapping.delete_on_termination]));
    parameters.collect()
}
