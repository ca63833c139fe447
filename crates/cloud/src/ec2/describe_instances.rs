//! DescribeInstances, and what answers show of an instance.

use std::collections::BTreeMap;
use std::ops::Bound;

use ebbtide_catalog::Catalog;
use serde_json::{Map, Value, json};

use super::ask::{Ask, Members, iso, seconds};
use super::devices::ROOT_DEVICE;
use super::filter::{Filters, Tagged, Values, flag, one, some};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::records::{Attachment, Instance, Power, Volume};
use super::state::{State, is_of};
use super::{DEFAULT_VPC, Ec2, access, images, networks, refuse, tags};
use crate::ApiError;

const FILTERS: [&str; 33] = [
    "architecture",
    "availability-zone",
    "block-device-mapping.attach-time",
    "block-device-mapping.delete-on-termination",
    "block-device-mapping.device-name",
    "block-device-mapping.status",
    "block-device-mapping.volume-id",
    "client-token",
    "ena-support",
    "hypervisor",
    "image-id",
    "instance-id",
    "instance-state-code",
    "instance-state-name",
    "instance-type",
    "instance.group-id",
    "instance.group-name",
    "ip-address",
    "key-name",
    "launch-index",
    "launch-time",
    "owner-id",
    "placement-group-name",
    "platform",
    "private-ip-address",
    "requester-id",
    "reservation-id",
    "root-device-name",
    "root-device-type",
    "subnet-id",
    "tenancy",
    "virtualization-type",
    "vpc-id",
];

/// The architecture of a type's processors.
fn architecture<'a>(catalog: &'a Catalog, kind: &str) -> &'a str {
    catalog.instance_named(kind).map_or("x86_64", |kind| kind.architecture.as_str())
}

/// An address by the launch's number, so that each instance of a reservation has its own.
fn address(instance: &Instance) -> String {
    let digits = instance.id.get(instance.id.len().saturating_sub(4)..).unwrap_or_default();
    let number = u32::from_str_radix(digits, 16).unwrap_or(1);
    let third = networks::third_number(&instance.region, &instance.zone);
    // AWS keeps the first four addresses of a subnet, and the last one.
    let last = (number & 0xFF).clamp(4, 254);
    format!("172.31.{}.{last}", third + usize::try_from((number >> 8) & 0xF).unwrap_or_default())
}

/// The volumes of an instance that are shown at it.
fn attached<'a>(
    ask: &'a Ask<'_>,
    state: &'a State,
    instance: &'a str,
) -> impl Iterator<Item = (&'a Volume, &'a Attachment)> {
    state.volumes_of(instance).filter(move |(_, at)| at.is_there(ask.now()))
}

/// The volumes of an instance, as it shows them.
pub(super) fn mappings(ask: &Ask<'_>, state: &State, instance: &str) -> Value {
    let now = ask.now();
    let mapping = |(volume, at): (&Volume, &Attachment)| {
        let status = match at.state(now) {
            "busy" => "detaching",
            status => status,
        };
        json!({
            "DeviceName": at.device,
            "Ebs": {
                "VolumeId": volume.id,
                "Status": status,
                "AttachTime": seconds(at.since_ms),
                "DeleteOnTermination": at.delete_on_termination,
            },
        })
    };
    attached(ask, state, instance).map(mapping).collect()
}

fn members(ask: &Ask<'_>, catalog: &Catalog, state: &State, instance: &Instance) -> Value {
    let now = ask.now();
    let power = instance.power(now);
    let mappings = mappings(ask, state, &instance.id);
    let mut members = Members::default();
    members
        .put("InstanceId", instance.id.as_str())
        .put("ImageId", instance.image.as_str())
        .put("State", json!({"Code": power.code(), "Name": power.name()}))
        .put("InstanceType", instance.kind.as_str())
        .put_time("LaunchTime", instance.launched_ms)
        .put("AmiLaunchIndex", instance.launch_index)
        .put("Placement", json!({"AvailabilityZone": instance.zone, "Tenancy": "default", "GroupName": ""}))
        .put("Monitoring", json!({"State": "disabled"}))
        .put("Architecture", architecture(catalog, &instance.kind))
        .put("Hypervisor", "xen")
        .put("VirtualizationType", "hvm")
        .put("RootDeviceName", ROOT_DEVICE)
        .put("RootDeviceType", images::root_type(&instance.image))
        .put("EbsOptimized", true)
        .put("EnaSupport", true)
        .put("SourceDestCheck", true)
        .put("BlockDeviceMappings", mappings)
        .put("SecurityGroups", if instance.is_ending() { json!([]) } else { networks::groups() })
        .put("NetworkInterfaces", json!([]))
        .put("ProductCodes", json!([]))
        .put("StateTransitionReason", "")
        .put("PublicDnsName", "")
        .put("ClientToken", instance.token.as_deref().unwrap_or_default())
        .put_some("KeyName", instance.key_name.as_deref());
    if !instance.is_ending() {
        let address = address(instance);
        let dns = format!("ip-{}.{}.compute.internal", address.replace('.', "-"), instance.region);
        members.put("PrivateDnsName", dns).put("PrivateIpAddress", address);
        let subnet = networks::subnet_of(&instance.region, &instance.zone);
        members.put("SubnetId", subnet).put("VpcId", DEFAULT_VPC);
    }
    if !instance.tags.is_empty() {
        members.put("Tags", tags::members(&instance.tags));
    }
    Value::Object(members.end())
}

/// Instances of one reservation, of which there is at least one.
pub(super) fn reservation(
    ask: &Ask<'_>,
    catalog: &Catalog,
    state: &State,
    instances: &[&Instance],
) -> Map<String, Value> {
    let first = instances.first();
    Members::default()
        .put("ReservationId", first.map(|first| first.reservation.as_str()).unwrap_or_default())
        .put("OwnerId", ask.account())
        .put("Groups", json!([]))
        .put("Instances", instances.iter().map(|one| members(ask, catalog, state, one)).collect::<Value>())
        .end()
}

impl Ec2 {
    pub(super) fn describe_instances(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let ids = ask.input.texts("InstanceIds");
        let filters = Filters::read(ask.input, &FILTERS, Tagged::Yes)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &Paging::usual("instancesSet"))?;
        ids.iter().try_for_each(|id| Kind::Instance.check(id, "instanceId"))?;
        let catalog = &self.options.catalog;
        let state = self.state.lock();
        let seen = |instance: &&Instance| {
            let over = instance.power(ask.now()) == Power::Terminated
                && instance.until_ms.saturating_add(self.options.timing.terminated_ms) <= ask.now();
            is_of(ask, &instance.owner, &instance.region) && !over
        };
        let missing = |id: &&&str| state.instances().get(**id).filter(seen).is_none();
        let missing: Vec<&str> = ids.iter().filter(missing).copied().collect();
        if !missing.is_empty() {
            return Err(refuse::instances_not_found(&missing));
        }
        let from = page.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.instances().range::<str, _>((from, Bound::Unbounded)).map(|(_, instance)| instance);
        let shown = all.filter(seen).filter(|instance| {
            (ids.is_empty() || ids.contains(&instance.id.as_str()))
                && filters.pass(&instance.tags, |name| values(ask, catalog, &state, instance, name))
        });
        let (instances, next) =
            page.fill(ask.call.action, shown.map(|instance| (instance.id.as_str(), instance)));
        let mut reservations: BTreeMap<&str, Vec<&Instance>> = BTreeMap::new();
        for instance in instances {
            reservations.entry(&instance.reservation).or_default().push(instance);
        }
        let reservations: Value = reservations
            .into_values()
            .map(|mut instances| {
                instances.sort_by_key(|instance| instance.launch_index);
                Value::Object(reservation(ask, catalog, &state, &instances))
            })
            .collect();
        Ok(Members::default().put("Reservations", reservations).put_some("NextToken", next).end())
    }
}

/// What an instance has for a filter.
fn values<'a>(
    ask: &'a Ask<'_>,
    catalog: &'a Catalog,
    state: &'a State,
    instance: &'a Instance,
    name: &str,
) -> Values<'a> {
    let now = ask.now();
    if let Some(of_mapping) = name.strip_prefix("block-device-mapping.") {
        return attached(ask, state, &instance.id)
            .map(|(volume, at)| match of_mapping {
                "attach-time" => iso(at.since_ms).into(),
                "delete-on-termination" => flag(at.delete_on_termination).into(),
                "device-name" => at.device.as_str().into(),
                "status" => at.state(now).into(),
                _ => volume.id.as_str().into(),
            })
            .collect();
    }
    let power = instance.power(now);
    match name {
        "architecture" => one(architecture(catalog, &instance.kind)),
        "availability-zone" => one(instance.zone.as_str()),
        "client-token" => some(instance.token.as_deref()),
        "ena-support" => one(flag(true)),
        "hypervisor" => one("xen"),
        "image-id" => one(instance.image.as_str()),
        "instance-id" => one(instance.id.as_str()),
        "instance-state-code" => one(power.code().to_string()),
        "instance-state-name" => one(power.name()),
        "instance-type" => one(instance.kind.as_str()),
        "key-name" => some(instance.key_name.as_deref()),
        "launch-index" => one(instance.launch_index.to_string()),
        "launch-time" => one(iso(instance.launched_ms)),
        "owner-id" => one(instance.owner.as_str()),
        "private-ip-address" => one(address(instance)),
        "reservation-id" => one(instance.reservation.as_str()),
        "root-device-name" => one(ROOT_DEVICE),
        "instance.group-id" => one(networks::GROUP),
        "instance.group-name" => one(networks::GROUP_NAME),
        "root-device-type" => one(images::root_type(&instance.image)),
        "subnet-id" => one(networks::subnet_of(&instance.region, &instance.zone)),
        "tenancy" => one("default"),
        "virtualization-type" => one("hvm"),
        "vpc-id" => one(DEFAULT_VPC),
        // No stand-in has one of the others.
        _ => Vec::new(),
    }
}
