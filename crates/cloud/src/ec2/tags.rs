//! Tags: their limits, those of new resources, and CreateTags, DeleteTags and DescribeTags.

use std::ops::Bound;

use serde_json::{Map, Value, json};

use super::Ec2;
use super::access::{self, Right};
use super::ask::{Ask, Input, Members};
use super::exports;
use super::filter::{Filters, Tagged, Tags, one};
use super::ids::Kind;
use super::page::{Page, Paging};
use super::records::{Power, Stage};
use super::refuse;
use super::state::{State, is_of};
use crate::ApiError;

/// Most tags of a resource.
const PER_RESOURCE: usize = 50;
/// Most characters of a key.
const KEY_CHARS: usize = 127;
/// Most characters of a value.
const VALUE_CHARS: usize = 256;
/// Most resources of a call.
const RESOURCES: usize = 1_000;
/// Keys that begin with it are AWS's own, in upper or lower case.
const RESERVED: &str = "aws:";

/// The members of tags.
pub(super) fn members(tags: &Tags) -> Value {
    tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect()
}

/// The tags that a call gives a resource of `kind` that it creates.
pub(super) fn of_new(input: Input<'_>, kind: Kind) -> Result<Tags, ApiError> {
    of_new_among(input, kind, &[kind])
}

/// The same, where the action creates resources of several kinds.
pub(super) fn of_new_among(input: Input<'_>, kind: Kind, allowed: &[Kind]) -> Result<Tags, ApiError> {
    let mut found = Tags::new();
    let mut seen: Vec<&str> = Vec::new();
    for specification in input.structures("TagSpecifications") {
        let name = specification.text("ResourceType").unwrap_or_default();
        if !allowed.iter().any(|allowed| allowed.name() == name) {
            let message = format!("'{name}' is not a valid taggable resource type for this operation.");
            return Err(refuse::invalid_value(message));
        }
        if seen.contains(&name) {
            let message = format!("Duplicate value '{name}' for parameter tagSpecification.resourceType.");
            return Err(refuse::invalid_value(message));
        }
        seen.push(name);
        let tags = read(specification.structures("Tags"))?;
        if tags.is_empty() {
            return Err(refuse::invalid_value("Tag specification must have at least one tag"));
        }
        limit(&tags)?;
        if name == kind.name() {
            found = tags;
        }
    }
    Ok(found)
}

/// Reads tags that are to be given.
fn read(given: Vec<Input<'_>>) -> Result<Tags, ApiError> {
    let mut tags = Tags::new();
    for tag in given {
        let key = tag.text("Key").unwrap_or_default();
        let value = tag.text("Value").unwrap_or_default();
        check_key(key)?;
        if value.chars().count() > VALUE_CHARS {
            let message = format!("Tag value exceeds the maximum length of {VALUE_CHARS} characters");
            return Err(refuse::invalid_value(message));
        }
        if tags.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(refuse::invalid_value(format!("Duplicate tag key '{key}' specified.")));
        }
    }
    Ok(tags)
}

fn check_key(key: &str) -> Result<(), ApiError> {
    if key.is_empty() {
        return Err(refuse::missing("tag.key"));
    }
    if key.chars().count() > KEY_CHARS {
        let message = format!("Tag key exceeds the maximum length of {KEY_CHARS} characters");
        return Err(refuse::invalid_value(message));
    }
    if key.get(..RESERVED.len()).is_some_and(|start| start.eq_ignore_ascii_case(RESERVED)) {
        let message = format!("Tag keys starting with '{RESERVED}' are reserved for internal use");
        return Err(refuse::invalid_value(message));
    }
    Ok(())
}

fn limit(tags: &Tags) -> Result<(), ApiError> {
    if tags.len() > PER_RESOURCE {
        let message = "The maximum number of Tags for a resource has been reached.";
        return Err(ApiError::client("TagLimitExceeded", message));
    }
    Ok(())
}

/// The resources that a call names.
fn resources<'a>(ask: &Ask<'a>) -> Result<Vec<(Kind, &'a str)>, ApiError> {
    let ids = ask.input.texts("Resources");
    if ids.is_empty() {
        return Err(refuse::missing_of_request("resourceIdSet"));
    }
    if ids.len() > RESOURCES {
        let message = format!(
            "The maximum number of resources in one request is {RESOURCES}; {} were given.",
            ids.len()
        );
        return Err(refuse::invalid_value(message));
    }
    let kind = |id: &'a str| {
        let kind = Kind::of(id).filter(|kind| kind.is_id(id));
        let error = || ApiError::client("InvalidID", format!("The ID '{id}' is not valid"));
        kind.map(|kind| (kind, id)).ok_or_else(error)
    };
    ids.into_iter().map(kind).collect()
}

/// Refuses to change how the volumes of an instance are exported while it has any: a start would export them in the new way.
fn keeps_exports(
    ask: &Ask<'_>,
    state: &State,
    (kind, id): (Kind, &str),
    tags: &Tags,
) -> Result<(), ApiError> {
    if kind != Kind::Instance || state.tags(ask, kind, id)?.get(exports::TAG) == tags.get(exports::TAG) {
        return Ok(());
    }
    if state.volumes_of(id).any(|(_, attachment)| attachment.holds() && !attachment.without_device) {
        let tag = exports::TAG;
        return Err(refuse::incorrect_state(format!(
            "The tag {tag} of instance '{id}' cannot be changed while volumes are attached to it."
        )));
    }
    Ok(())
}

/// The right to tag or untag a resource, whether it exists or not.
fn right(ask: &Ask<'_>, state: &State, kind: Kind, id: &str) -> Right {
    let action = ask.call.action;
    match kind {
        Kind::Volume => access::maybe_volume(ask, action, state.volume(ask, id).ok(), id),
        Kind::Snapshot => access::maybe_snapshot(ask, action, state.snapshot(ask, id).ok(), id),
        Kind::Instance => access::maybe_instance(ask, action, state.instance(ask, id).ok(), id),
    }
}

impl Ec2 {
    pub(super) fn create_tags(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let resources = resources(ask)?;
        let given = read(ask.input.structures("Tags"))?;
        if given.is_empty() {
            return Err(refuse::missing_of_request("tagSet"));
        }
        let mut state = self.state.lock();
        for (kind, id) in &resources {
            right(ask, &state, *kind, id).requests(&given).demand(ask)?;
        }
        resources.iter().try_for_each(|(kind, id)| state.tags(ask, *kind, id).map(drop))?;
        ask.end_dry_run()?;
        let mut changes = Vec::new();
        for (kind, id) in resources {
            let mut tags = state.tags(ask, kind, id)?.clone();
            tags.extend(given.clone());
            limit(&tags)?;
            keeps_exports(ask, &state, (kind, id), &tags)?;
            changes.push(state.retag(ask, kind, id, tags)?);
        }
        state.commit(changes)?;
        Ok(Map::new())
    }

    pub(super) fn delete_tags(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let resources = resources(ask)?;
        let named = ask.input.structures("Tags");
        let keys: Tags =
            named.iter().filter_map(|tag| Some((tag.text("Key")?.to_owned(), String::new()))).collect();
        keys.keys().try_for_each(|key| check_key(key))?;
        let mut state = self.state.lock();
        for (kind, id) in &resources {
            let mut right = right(ask, &state, *kind, id);
            for tag in &named {
                let key = tag.text("Key").unwrap_or_default();
                right = right.with("aws:TagKeys", key);
                if let Some(value) = tag.text("Value") {
                    right = right.with(format!("aws:RequestTag/{key}"), value);
                }
            }
            right.demand(ask)?;
        }
        resources.iter().try_for_each(|(kind, id)| state.tags(ask, *kind, id).map(drop))?;
        ask.end_dry_run()?;
        let mut changes = Vec::new();
        for (kind, id) in resources {
            let mut tags = state.tags(ask, kind, id)?.clone();
            if named.is_empty() {
                tags.clear();
            }
            // With a value, a tag goes only where it has that value.
            tags.retain(|key, has| {
                let named = named.iter().find(|tag| tag.text("Key") == Some(key.as_str()));
                named.is_none_or(|tag| tag.text("Value").is_some_and(|value| value != has.as_str()))
            });
            keeps_exports(ask, &state, (kind, id), &tags)?;
            changes.push(state.retag(ask, kind, id, tags)?);
        }
        state.commit(changes)?;
        Ok(Map::new())
    }

    pub(super) fn describe_tags(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        const KNOWN: [&str; 4] = ["key", "resource-id", "resource-type", "value"];
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let filters = Filters::read(ask.input, &KNOWN, Tagged::Yes)?;
        let paging = Paging { ids: None, ..Paging::usual("") };
        let page = Page::read(ask.input, ask.call.action, false, &paging)?;
        let state = self.state.lock();
        let after = page.after.as_deref().unwrap_or_default();
        let rows = rows(&state, ask, after).filter(|row| {
            let tag = Tags::from([(row.key.to_owned(), row.value.to_owned())]);
            // The values live as long as the rows, not as the tag.
            let values = |name: &str| match name {
                "key" => one(row.key.to_owned()),
                "resource-id" => one(row.id.to_owned()),
                "resource-type" => one(row.kind.name()),
                _ => one(row.value.to_owned()),
            };
            filters.pass(&tag, values)
        });
        let rows = rows.map(|row| {
            let member = json!({
                "Key": row.key, "Value": row.value, "ResourceId": row.id, "ResourceType": row.kind.name(),
            });
            (row.cursor(), member)
        });
        let (tags, next) = page.fill(ask.call.action, rows);
        Ok(Members::default().put("Tags", tags).put_some("NextToken", next).end())
    }
}

/// A tag of a resource.
struct Row<'a> {
    kind: Kind,
    id: &'a str,
    key: &'a str,
    value: &'a str,
}

impl Row<'_> {
    /// Where it is in the order of all rows. No id has a blank.
    fn cursor(&self) -> String {
        format!("{} {}", self.id, self.key)
    }
}

/// The tags of all resources that the caller sees behind a row, in the order of ids and keys.
fn rows<'a>(state: &'a State, ask: &'a Ask<'_>, after: &'a str) -> impl Iterator<Item = Row<'a>> {
    let now = ask.now();
    let first = after.split(' ').next().unwrap_or_default();
    let from = (Bound::Included(first), Bound::Unbounded);
    // The prefixes are in this order: i-, snap-, vol-.
    let instances = state.instances().range::<str, _>(from).filter_map(move |(id, instance)| {
        let seen = is_of(ask, &instance.owner, &instance.region) && instance.power(now) != Power::Terminated;
        seen.then_some((Kind::Instance, id, &instance.tags))
    });
    let snapshots = state.snapshots().range::<str, _>(from).filter_map(move |(id, snapshot)| {
        let seen = is_of(ask, &snapshot.owner, &snapshot.region) && snapshot.state(now).is_some();
        seen.then_some((Kind::Snapshot, id, &snapshot.tags))
    });
    let volumes = state.volumes().range::<str, _>(from).filter_map(move |(id, volume)| {
        let seen = is_of(ask, &volume.owner, &volume.region) && volume.stage == Stage::Ready;
        seen.then_some((Kind::Volume, id, &volume.tags))
    });
    let rows = instances
        .chain(snapshots)
        .chain(volumes)
        .flat_map(|(kind, id, tags)| tags.iter().map(move |(key, value)| Row { kind, id, key, value }));
    rows.filter(move |row| row.id != first || after.split_once(' ').is_none_or(|(_, last)| row.key > last))
}
