//! Instances: stand-ins for this host, to which volumes are attached.
//!
//! RunInstances, StartInstances, StopInstances, TerminateInstances.

use ebbtide_catalog::Catalog;
use serde_json::{Map, Value, json};

use super::access::{self, Right};
use super::ask::{Ask, Members};
use super::db::Change;
use super::ids::Kind;
use super::places;
use super::records::{AttachStage, Attachment, Instance, Power};
use super::state::{State, client_token, use_token};
use super::{Ec2, describe_instances, images, launch, quota, refuse, tags, unbuilt};
use crate::ApiError;

/// The type of an instance whose call names none. AWS's is m1.small, which has no figures here.
const DEFAULT_TYPE: &str = "m5.large";

/// Most instances of a call.
const MOST: i64 = 1_000;

/// How many instances a call asks for.
fn count(ask: &Ask<'_>) -> Result<u64, ApiError> {
    let number = |name: &str, parameter: &str| {
        ask.input.number(name).ok_or_else(|| refuse::missing_of_request(parameter))
    };
    let (least, most) = (number("MinCount", "MinCount")?, number("MaxCount", "MaxCount")?);
    for (name, value) in [("minCount", least), ("maxCount", most)] {
        if !(1..=MOST).contains(&value) {
            let message =
                format!("Value ({value}) for parameter {name} is invalid. It must be between 1 and {MOST}.");
            return Err(refuse::invalid_value(message));
        }
    }
    if least > most {
        let message = format!("The value ({most}) for maxCount is smaller than that of minCount ({least}).");
        return Err(refuse::invalid_combination(message));
    }
    Ok(most.unsigned_abs())
}

/// The instances that a call names, with the right to do it to them.
pub(super) fn named<'s>(ask: &Ask<'_>, state: &'s State) -> Result<Vec<&'s Instance>, ApiError> {
    let ids = ask.input.texts("InstanceIds");
    if ids.is_empty() {
        return Err(refuse::missing_of_request("InstanceId"));
    }
    ids.iter().try_for_each(|id| Kind::Instance.check(id, "instanceId"))?;
    let instances = access::permitted_instances(ask, state, &ids)?;
    ask.end_dry_run()?;
    Ok(instances)
}

impl Ec2 {
    pub(super) fn run_instances(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let input = ask.input;
        let count = count(ask)?;
        let kind = self.instance_type(ask)?;
        let zone = run_zone(ask)?;
        let tags = tags::of_new_among(input, Kind::Instance, &[Kind::Instance, Kind::Volume])?;
        let mut state = self.state.lock();
        let right = Right::on(ask, "RunInstances", Kind::Instance, "*").requests(&tags);
        let right = right.with("ec2:AvailabilityZone", &zone).with("ec2:InstanceType", kind);
        right.with("ec2:RootDeviceType", "ebs").with("ec2:Tenancy", "default").demand(ask)?;
        access::demand_tagging(ask, Kind::Instance, &tags)?;
        unbuilt::refuse_of_instance(input)?;
        let image = input.text("ImageId").filter(|image| !image.is_empty()).unwrap_or(images::DEFAULT_IMAGE);
        images::check(image)?;
        // A dry run asks for the rights to all that the call would make.
        let mappings = self.read_mappings(ask, &state, (kind, image, &zone))?;
        ask.end_dry_run()?;
        let parameters = json!([count, kind, image, tags, launch::parameters(&mappings)]).to_string();
        if let Some(known) = state.made_by(ask, &parameters)? {
            let instances: Vec<&Instance> =
                known.made.iter().filter_map(|id| state.instances().get(id)).collect();
            return Ok(describe_instances::reservation(ask, &self.options.catalog, &state, &instances));
        }
        let more = usize::try_from(count).unwrap_or(usize::MAX);
        quota::room_for_instances(&self.options.quotas, &state, ask, more)?;
        let reservation = state.new_reservation();
        let instance = |launch_index| Instance {
            id: state.new_id(Kind::Instance),
            owner: ask.account().to_owned(),
            region: ask.region().to_owned(),
            zone: zone.clone(),
            kind: kind.to_owned(),
            image: image.to_owned(),
            reservation: reservation.clone(),
            launch_index,
            launched_ms: ask.now(),
            during: Power::Pending,
            after: Power::Running,
            until_ms: ask.now() + self.options.timing.pending_ms,
            key_name: input.text("KeyName").map(str::to_owned),
            tags: tags.clone(),
            token: client_token(ask).ok().flatten().map(str::to_owned),
        };
        let instances: Vec<Instance> = (0..count).map(instance).collect();
        if mappings.is_empty() {
            return record(ask, &self.options.catalog, &mut state, &instances, parameters);
        }
        // The records are free meanwhile: to attach can take seconds.
        drop(state);
        let volumes = self.launch_volumes(ask, &instances, &mappings)?;
        let recorded = {
            let mut state = self.state.lock();
            // Another call with the same token may have been faster.
            match state.made_by(ask, &parameters).map(|known| known.is_some()) {
                Ok(false) => record(ask, &self.options.catalog, &mut state, &instances, parameters),
                Ok(true) => {
                    Err(refuse::incorrect_state("Another launch with this client token has just ended."))
                }
                Err(error) => Err(error),
            }
        };
        if recorded.is_err() {
            self.take_back(ask.now(), &volumes);
        }
        recorded
    }

    /// The type of new instances.
    fn instance_type<'a>(&self, ask: &Ask<'a>) -> Result<&'a str, ApiError> {
        let kind = ask.input.text("InstanceType").filter(|kind| !kind.is_empty()).unwrap_or(DEFAULT_TYPE);
        if self.options.catalog.instance_named(kind).is_none() {
            let message = format!("Invalid value '{kind}' for InstanceType.");
            return Err(refuse::invalid_value(message));
        }
        Ok(kind)
    }

    pub(super) fn start_instances(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let ms = self.options.timing.pending_ms;
        let step = |power| match power {
            Power::Stopped => Ok(Some((Power::Pending, Power::Running, ms))),
            Power::Pending | Power::Running => Ok(None),
            _ => Err("started"),
        };
        self.change_power(ask, "StartingInstances", step)
    }

    pub(super) fn stop_instances(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let ms = self.options.timing.stopping_ms;
        let step = |power| match power {
            Power::Running => Ok(Some((Power::Stopping, Power::Stopped, ms))),
            Power::Stopping | Power::Stopped => Ok(None),
            _ => Err("stopped"),
        };
        self.change_power(ask, "StoppingInstances", step)
    }

    /// Starts or stops instances. `step` gives what a state becomes, for how long first, or the word of the refusal.
    fn change_power(
        &self,
        ask: &Ask<'_>,
        member: &str,
        step: impl Fn(Power) -> Result<Option<(Power, Power, u64)>, &'static str>,
    ) -> Result<Map<String, Value>, ApiError> {
        let now = ask.now();
        let mut state = self.state.lock();
        let instances = named(ask, &state)?;
        let mut changes = Vec::new();
        let mut answers = Vec::new();
        for instance in instances {
            let before = instance.power(now);
            let changed = match step(before) {
                Ok(None) => instance.clone(),
                Ok(Some((during, after, ms))) => {
                    Instance { during, after, until_ms: now + ms, ..instance.clone() }
                }
                Err(word) => {
                    let message = format!(
                        "The instance '{}' is not in a state from which it can be {word}.",
                        instance.id
                    );
                    return Err(ApiError::client("IncorrectInstanceState", message));
                }
            };
            answers.push(state_change(&changed, before, changed.during_at(now)));
            changes.push(Change::Instance(changed));
        }
        state.commit(changes)?;
        Ok(Members::default().put(member, answers).end())
    }

    pub(super) fn terminate_instances(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let now = ask.now();
        let mut answers = Vec::new();
        let mut ending = Vec::new();
        {
            let mut state = self.state.lock();
            let instances = named(ask, &state)?;
            let mut changes = Vec::new();
            for instance in instances {
                let before = instance.power(now);
                let mut ended = instance.clone();
                if !instance.is_ending() {
                    ended.during = Power::ShuttingDown;
                    ended.after = Power::Terminated;
                    ended.until_ms = now + self.options.timing.stopping_ms;
                }
                answers.push(state_change(&ended, before, ended.during_at(now)));
                changes.push(Change::Instance(ended));
                for (volume, attachment) in state.volumes_of(&instance.id) {
                    // What is being attached or detached ends with that.
                    if !matches!(attachment.stage, AttachStage::Ready | AttachStage::Busy) {
                        continue;
                    }
                    ending.push((volume.id.clone(), instance.id.clone()));
                    let attachment = Attachment { stage: AttachStage::Ending, ..attachment.clone() };
                    changes.push(Change::Volume(volume.with_attachment(attachment)));
                }
            }
            state.commit(changes)?;
        }
        for (id, instance) in ending {
            let _alone = self.sharing(&id);
            let detached = self.detach_from(&id, &instance, true);
            if let Err(error) = self.end_attachment(now, (&id, &instance), detached, AttachStage::Busy) {
                tracing::warn!(volume = id, %error, "a volume of a terminated instance is not detached");
                self.state.lock().busy.insert((id, instance), now);
            }
        }
        Ok(Members::default().put("TerminatingInstances", answers).end())
    }
}

impl Instance {
    /// The state that the answer of a change has: the one that lasts for a while, even where that is no time.
    fn during_at(&self, now: u64) -> Power {
        if self.until_ms >= now { self.during } else { self.after }
    }
}

fn state_change(instance: &Instance, before: Power, after: Power) -> Value {
    let state = |power: Power| json!({"Code": power.code(), "Name": power.name()});
    json!({"InstanceId": instance.id, "PreviousState": state(before), "CurrentState": state(after)})
}

/// Records new instances, with the token of their call, and answers with them.
fn record(
    ask: &Ask<'_>,
    catalog: &Catalog,
    state: &mut State,
    instances: &[Instance],
    parameters: String,
) -> Result<Map<String, Value>, ApiError> {
    let made = instances.iter().map(|instance| instance.id.clone()).collect();
    let mut changes: Vec<_> = instances.iter().cloned().map(Change::Instance).collect();
    changes.extend(use_token(ask, parameters, made));
    state.commit(changes)?;
    let instances: Vec<&Instance> = instances.iter().collect();
    Ok(describe_instances::reservation(ask, catalog, state, &instances))
}

/// The zone of new instances: the named one, or the first.
fn run_zone(ask: &Ask<'_>) -> Result<String, ApiError> {
    let placement = ask.input.structure("Placement");
    let named = placement.and_then(|placement| placement.text("AvailabilityZone"));
    let zones = places::zones(ask.region());
    match named.filter(|zone| !zone.is_empty()) {
        None => Ok(zones.into_iter().next().map(|zone| zone.name).unwrap_or_default()),
        Some(name) => {
            let zone = zones.into_iter().find(|zone| zone.name == name);
            zone.map(|zone| zone.name).ok_or_else(|| refuse::zone_not_found(name))
        }
    }
}
