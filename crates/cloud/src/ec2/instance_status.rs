//! What clients read of instances besides DescribeInstances: DescribeInstanceStatus, DescribeInstanceAttribute,
//! DescribeInstanceCreditSpecifications, and RebootInstances.

use std::ops::Bound;

use serde_json::{Map, Value, json};

use super::ask::{Ask, Members};
use super::devices::ROOT_DEVICE;
use super::filter::{Filters, Tagged, Tags, Values, one};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::records::{Instance, Power};
use super::state::{State, is_of};
use super::{Ec2, access, describe_instances, networks, places, refuse};
use crate::ApiError;

const STATUS_FILTERS: [&str; 16] = [
    "attached-ebs-status.status",
    "availability-zone",
    "availability-zone-id",
    "event.code",
    "event.description",
    "event.instance-event-id",
    "event.not-after",
    "event.not-before",
    "event.not-before-deadline",
    "instance-state-code",
    "instance-state-name",
    "instance-status.reachability",
    "instance-status.status",
    "operator.managed",
    "system-status.reachability",
    "system-status.status",
];

const CREDIT_FILTERS: [&str; 1] = ["instance-id"];

/// The status of an instance's checks and the reachability behind it.
const fn checks(power: Power, is_checked: bool) -> (&'static str, Option<&'static str>) {
    match (power, is_checked) {
        (Power::Running, true) => ("ok", Some("passed")),
        (Power::Running, false) => ("initializing", Some("initializing")),
        _ => ("not-applicable", None),
    }
}

/// The processor credits of a type that has them: the start of its name, and what AWS sets where a launch sets nothing.
fn credits(kind: &str) -> Option<&'static str> {
    match kind.split('.').next().unwrap_or_default() {
        "t2" => Some("standard"),
        "t3" | "t3a" | "t4g" => Some("unlimited"),
        _ => None,
    }
}

impl Ec2 {
    fn status_of(&self, instance: &Instance, now: u64) -> (&'static str, Option<&'static str>) {
        let checked_ms = instance.until_ms.saturating_add(self.options.timing.checking_ms);
        checks(instance.power(now), now >= checked_ms)
    }

    /// The instances that a call sees, as long as they are described.
    fn seen_instances<'s>(&self, ask: &Ask<'_>, state: &'s State, after: Option<&str>) -> Vec<&'s Instance> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let all = state.instances().range::<str, _>((from, Bound::Unbounded)).map(|(_, instance)| instance);
        let over = |instance: &Instance| {
            instance.power(ask.now()) == Power::Terminated
                && instance.until_ms.saturating_add(self.options.timing.terminated_ms) <= ask.now()
        };
        all.filter(|it| is_of(ask, &it.owner, &it.region) && !over(it)).collect()
    }

    pub(super) fn describe_instance_status(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let now = ask.now();
        let ids = ask.input.texts("InstanceIds");
        let filters = Filters::read(ask.input, &STATUS_FILTERS, Tagged::No)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &Paging::usual("instancesSet"))?;
        let state = self.state.lock();
        check_ids(ask, &state, &ids)?;
        let all = ask.input.flag("IncludeAllInstances") == Some(true);
        let none = Tags::new();
        let shown = self.seen_instances(ask, &state, page.after.as_deref()).into_iter().filter(|instance| {
            (ids.is_empty() || ids.contains(&instance.id.as_str()))
                && (all || instance.power(now) == Power::Running)
                && filters.pass(&none, |name| self.status_values(instance, now, name))
        });
        let rows = shown.map(|instance| (instance.id.as_str(), self.status_row(instance, now)));
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("InstanceStatuses", rows).put_some("NextToken", next).end())
    }

    fn status_row(&self, instance: &Instance, now: u64) -> Value {
        let (status, reachability) = self.status_of(instance, now);
        let details: Value =
            reachability.iter().map(|status| json!({"Name": "reachability", "Status": status})).collect();
        let summary = || json!({"Status": status, "Details": details});
        let power = instance.power(now);
        let mut members = Members::default();
        members
            .put("InstanceId", instance.id.as_str())
            .put("AvailabilityZone", instance.zone.as_str())
            .put("AvailabilityZoneId", places::zone_id(&instance.region, &instance.zone))
            .put("InstanceState", json!({"Code": power.code(), "Name": power.name()}))
            .put("InstanceStatus", summary())
            .put("SystemStatus", summary())
            .put("AttachedEbsStatus", summary())
            .put("Operator", json!({"Managed": false}));
        Value::Object(members.end())
    }

    fn status_values<'a>(&self, instance: &'a Instance, now: u64, name: &str) -> Values<'a> {
        let (status, reachability) = self.status_of(instance, now);
        let power = instance.power(now);
        match name {
            "availability-zone" => one(instance.zone.as_str()),
            "availability-zone-id" => one(places::zone_id(&instance.region, &instance.zone)),
            "instance-state-code" => one(power.code().to_string()),
            "instance-state-name" => one(power.name()),
            "attached-ebs-status.status" | "instance-status.status" | "system-status.status" => one(status),
            "instance-status.reachability" | "system-status.reachability" => {
                reachability.into_iter().map(Into::into).collect()
            }
            "operator.managed" => one("false"),
            // There are no events.
            _ => Vec::new(),
        }
    }

    pub(super) fn describe_instance_attribute(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let id = ask.input.required("InstanceId", "instanceId")?;
        Kind::Instance.check(id, "instanceId")?;
        let attribute = ask.input.required("Attribute", "attribute")?;
        let state = self.state.lock();
        let instance = access::permitted_instance(ask, &state, id)?;
        ask.end_dry_run()?;
        let value = |value: Value| json!({"Value": value});
        let (member, shown) = match attribute {
            "blockDeviceMapping" => {
                ("BlockDeviceMappings", describe_instances::mappings(ask, &state, &instance.id))
            }
            "disableApiStop" => ("DisableApiStop", value(json!(false))),
            "disableApiTermination" => ("DisableApiTermination", value(json!(false))),
            "ebsOptimized" => ("EbsOptimized", value(json!(true))),
            "enaSupport" => ("EnaSupport", value(json!(true))),
            "enclaveOptions" => ("EnclaveOptions", json!({"Enabled": false})),
            "groupSet" => ("Groups", networks::groups()),
            "instanceInitiatedShutdownBehavior" => {
                ("InstanceInitiatedShutdownBehavior", value(json!("stop")))
            }
            "instanceType" => ("InstanceType", value(json!(instance.kind))),
            "kernel" => ("KernelId", json!({})),
            "productCodes" => ("ProductCodes", json!([])),
            "ramdisk" => ("RamdiskId", json!({})),
            "rootDeviceName" => ("RootDeviceName", value(json!(ROOT_DEVICE))),
            "sourceDestCheck" => ("SourceDestCheck", value(json!(true))),
            "sriovNetSupport" => ("SriovNetSupport", json!({})),
            "userData" => ("UserData", json!({})),
            other => {
                let message =
                    format!("Value ({other}) for parameter attribute is invalid. Unknown attribute.");
                return Err(refuse::invalid_value(message));
            }
        };
        Ok(Members::default().put("InstanceId", id).put(member, shown).end())
    }

    pub(super) fn describe_instance_credit_specifications(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let ids = ask.input.texts("InstanceIds");
        let filters = Filters::read(ask.input, &CREDIT_FILTERS, Tagged::No)?;
        let page = Page::read(ask.input, ask.call.action, !ids.is_empty(), &Paging::usual("instancesSet"))?;
        let state = self.state.lock();
        check_ids(ask, &state, &ids)?;
        let without = |id: &&&str| state.instance(ask, id).is_ok_and(|it| credits(&it.kind).is_none());
        if let Some(id) = ids.iter().find(without) {
            let message = format!("The instance '{id}' is not a burstable performance instance.");
            return Err(ApiError::client("InstanceCreditSpecification.NotSupported", message));
        }
        let none = Tags::new();
        let rows =
            self.seen_instances(ask, &state, page.after.as_deref()).into_iter().filter_map(|instance| {
                let credits = credits(&instance.kind)?;
                let shown = (ids.is_empty() || ids.contains(&instance.id.as_str()))
                    && filters.pass(&none, |_| one(instance.id.as_str()));
                shown.then(|| {
                    (instance.id.as_str(), json!({"InstanceId": instance.id, "CpuCredits": credits}))
                })
            });
        let (rows, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("InstanceCreditSpecifications", rows).put_some("NextToken", next).end())
    }

    /// A stand-in does nothing that a reboot could interrupt.
    pub(super) fn reboot_instances(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let state = self.state.lock();
        for instance in super::instances::named(ask, &state)? {
            let power = instance.power(ask.now());
            if power != Power::Running {
                let message = format!(
                    "The instance '{}' is not in a state from which it can be rebooted: it is '{}'.",
                    instance.id,
                    power.name()
                );
                return Err(ApiError::client("IncorrectInstanceState", message));
            }
        }
        Ok(Map::new())
    }
}

/// Checks the ids that a call names: the form of all, then that all exist.
fn check_ids(ask: &Ask<'_>, state: &State, ids: &[&str]) -> Result<(), ApiError> {
    ids.iter().try_for_each(|id| Kind::Instance.check(id, "instanceId"))?;
    let missing: Vec<&str> =
        ids.iter().copied().filter(|id| state.seen_instance(ask, id).is_none()).collect();
    if missing.is_empty() { Ok(()) } else { Err(refuse::instances_not_found(&missing)) }
}
