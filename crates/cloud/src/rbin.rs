//! The Recycle Bin service (`rbin`): retention rules of snapshots and volumes.
//!
//! A rule is a setting of EC2's records; what it keeps, and the way back, are EC2's ([`Ec2`]).

mod lock;

use std::collections::BTreeMap;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::ec2::Ec2;
use crate::ec2::bin::{Kept, Rule, RuleTag};
use crate::{Access, Answer, ApiError, Call, Service};

/// The actions, in alphabetical order.
const ACTIONS: [&str; 10] = [
    "CreateRule",
    "DeleteRule",
    "GetRule",
    "ListRules",
    "ListTagsForResource",
    "LockRule",
    "TagResource",
    "UnlockRule",
    "UntagResource",
    "UpdateRule",
];

/// Rules of an account in a Region (EBS user guide, `recycle-bin-quotas`).
const MOST_RULES: usize = 250;
/// Tags of a rule, and tags by which it chooses.
const MOST_TAGS: usize = 50;
/// Tags by which a rule of all resources leaves some out.
const MOST_EXCLUDED: usize = 5;
/// Rows of a page, where a call names no number.
const PAGE: usize = 1_000;

/// The service `rbin` of a home.
#[derive(Debug)]
pub struct Rbin {
    ec2: Arc<Ec2>,
}

/// A call, with what its parameters have in common.
struct Ask<'a> {
    call: &'a Call<'a>,
}

impl<'a> Ask<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.call.input.get(name).and_then(Value::as_str)
    }

    fn account(&self) -> (&'a str, &'a str) {
        (&self.call.caller.account, self.call.region)
    }

    fn arn(&self, id: &str) -> String {
        let (owner, region) = self.account();
        format!("arn:{}:rbin:{region}:{owner}:rule/{id}", crate::partition::of_region(region))
    }

    fn demand(&self, id: &str, context: BTreeMap<String, Vec<String>>) -> Result<(), ApiError> {
        let action = format!("rbin:{}", self.call.action).into();
        self.call.authorize(&Access { action, resource: self.arn(id), context })
    }

    /// Pairs of keys and values of a list of structures; a value may be absent.
    fn pairs(&self, list: &str, key: &str, value: &str) -> Vec<RuleTag> {
        let rows = self.call.input.get(list).and_then(Value::as_array).into_iter().flatten();
        let text = |row: &Value, name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
        rows.map(|row| (text(row, key).unwrap_or_default(), text(row, value))).collect()
    }
}

fn error(code: &'static str, reason: &str, message: impl Into<String>, status: u16) -> ApiError {
    let mut error = ApiError { status, ..ApiError::client(code, message) };
    error.members.insert("Reason".to_owned(), reason.into());
    error
}

fn invalid(message: impl Into<String>) -> ApiError {
    error("ValidationException", "INVALID_PARAMETER_VALUE", message, 400)
}

fn not_found(id: &str) -> ApiError {
    error("ResourceNotFoundException", "RULE_NOT_FOUND", format!("The rule '{id}' does not exist."), 404)
}

fn too_many(message: String) -> ApiError {
    error("ServiceQuotaExceededException", "SERVICE_QUOTA_EXCEEDED", message, 402)
}

fn internal(error_of: &dyn std::fmt::Display) -> ApiError {
    tracing::error!(%error_of, "a call failed");
    let message = format!("An internal error has occurred: {error_of}");
    ApiError { status: 500, ..ApiError::client("InternalServerException", message) }
}

/// What a rule keeps, by its name.
fn kept(name: &str) -> Result<Kept, ApiError> {
    match name {
        "EBS_SNAPSHOT" => Ok(Kept::Snapshots),
        "EBS_VOLUME" => Ok(Kept::Volumes),
        "EC2_IMAGE" => Err(invalid("ResourceType EC2_IMAGE is not supported by this endpoint.")),
        other => Err(invalid(format!(
            "Value ({other}) for parameter ResourceType is invalid. It must be EBS_SNAPSHOT or EBS_VOLUME."
        ))),
    }
}

const fn name(keeps: Kept) -> &'static str {
    match keeps {
        Kept::Snapshots => "EBS_SNAPSHOT",
        Kept::Volumes => "EBS_VOLUME",
    }
}

/// The days of a retention period: 1 to 365 of snapshots, 1 to 7 of volumes.
fn days(period: &Value, keeps: Kept) -> Result<u64, ApiError> {
    let most = match keeps {
        Kept::Snapshots => 365,
        Kept::Volumes => 7,
    };
    let unit = period.get("RetentionPeriodUnit").and_then(Value::as_str).unwrap_or_default();
    if unit != "DAYS" {
        let message =
            format!("Value ({unit}) for parameter RetentionPeriodUnit is invalid. It must be DAYS.");
        return Err(invalid(message));
    }
    let days = period.get("RetentionPeriodValue").and_then(Value::as_i64).unwrap_or_default();
    let good = u64::try_from(days).ok().filter(|days| (1..=most).contains(days));
    good.ok_or_else(|| {
        invalid(format!(
            "Value ({days}) for parameter RetentionPeriodValue is invalid. It must be between 1 and {most} days for {}.",
            name(keeps)
        ))
    })
}

/// Refuses tags that a rule cannot choose by.
fn check_choice(of: &[RuleTag], but: &[RuleTag]) -> Result<(), ApiError> {
    if !of.is_empty() && !but.is_empty() {
        return Err(invalid("ResourceTags and ExcludeResourceTags cannot be used together."));
    }
    for (list, tags, most) in [("ResourceTags", of, MOST_TAGS), ("ExcludeResourceTags", but, MOST_EXCLUDED)] {
        if tags.len() > most {
            return Err(invalid(format!("{list} has {} tags; it can have at most {most}.", tags.len())));
        }
        if tags.iter().any(|(key, _)| key.is_empty()) {
            return Err(invalid(format!("A tag of {list} has no ResourceTagKey.")));
        }
    }
    Ok(())
}

fn listed(tags: &[RuleTag]) -> Value {
    let row = |(key, value): &RuleTag| {
        let mut row = json!({"ResourceTagKey": key});
        if let Some(value) = value {
            row["ResourceTagValue"] = json!(value);
        }
        row
    };
    tags.iter().map(row).collect()
}

fn shown_tags(rule: &Rule) -> Value {
    rule.tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect()
}

/// What most answers have of a rule.
fn members(ask: &Ask<'_>, rule: &Rule) -> Map<String, Value> {
    let mut shown = json!({
        "Identifier": rule.id,
        "RuleArn": ask.arn(&rule.id),
        "Description": rule.description,
        "RetentionPeriod": {"RetentionPeriodValue": rule.days, "RetentionPeriodUnit": "DAYS"},
        "ResourceType": name(rule.keeps),
        "ResourceTags": listed(&rule.of),
        "Status": "available",
    });
    if !rule.but.is_empty() {
        shown["ExcludeResourceTags"] = listed(&rule.but);
    }
    let mut shown = shown.as_object().cloned().unwrap_or_default();
    shown.extend(lock::shown(ask, rule));
    shown
}

impl Rbin {
    /// The service over the records of EC2, which is open in the same home.
    #[must_use]
    pub const fn new(ec2: Arc<Ec2>) -> Self {
        Self { ec2 }
    }

    fn rules(&self, ask: &Ask<'_>) -> Vec<Rule> {
        let (owner, region) = ask.account();
        self.ec2.rules(owner, region)
    }

    fn put(&self, ask: &Ask<'_>, rule: &Rule) -> Result<(), ApiError> {
        let (owner, region) = ask.account();
        self.ec2.put_rule(owner, region, rule).map_err(|error| internal(&error))
    }

    /// The rule of a call.
    fn named(&self, ask: &Ask<'_>, id: &str) -> Result<Rule, ApiError> {
        ask.demand(id, BTreeMap::new())?;
        self.rules(ask).into_iter().find(|rule| rule.id == id).ok_or_else(|| not_found(id))
    }

    fn create_rule(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let keeps = ask.text("ResourceType").unwrap_or_default();
        let context = [("rbin:Request/ResourceType".to_owned(), vec![keeps.to_owned()])];
        ask.demand("*", context.into())?;
        let keeps = kept(keeps)?;
        let days = days(ask.call.input.get("RetentionPeriod").unwrap_or(&Value::Null), keeps)?;
        let of = ask.pairs("ResourceTags", "ResourceTagKey", "ResourceTagValue");
        let but = ask.pairs("ExcludeResourceTags", "ResourceTagKey", "ResourceTagValue");
        check_choice(&of, &but)?;
        let tags = ask.pairs("Tags", "Key", "Value").into_iter();
        let tags: BTreeMap<_, _> = tags.map(|(key, value)| (key, value.unwrap_or_default())).collect();
        if tags.len() > MOST_TAGS {
            return Err(invalid(format!(
                "Tags has {} tags; a rule can have at most {MOST_TAGS}.",
                tags.len()
            )));
        }
        let rules = self.rules(ask);
        if rules.len() >= MOST_RULES {
            return Err(too_many(format!("You have reached the limit of {MOST_RULES} retention rules.")));
        }
        let description = ask.text("Description").unwrap_or_default().to_owned();
        let id = self.ec2.new_rule_id(|id| rules.iter().any(|rule| rule.id == id));
        let mut rule = Rule { id, keeps, days, description, tags, of, but, lock: None };
        rule.lock = lock::asked(ask, &rule)?;
        self.put(ask, &rule)?;
        let mut answer = members(ask, &rule);
        answer.insert("Tags".to_owned(), shown_tags(&rule));
        Ok(answer)
    }

    fn get_rule(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        Ok(members(ask, &self.named(ask, ask.text("Identifier").unwrap_or_default())?))
    }

    fn update_rule(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut rule = self.named(ask, ask.text("Identifier").unwrap_or_default())?;
        lock::refuse_locked(ask, &rule)?;
        if ask.text("ResourceType").is_some_and(|other| other != name(rule.keeps)) {
            return Err(invalid("The resource type of a rule cannot be changed."));
        }
        if let Some(period) = ask.call.input.get("RetentionPeriod") {
            rule.days = days(period, rule.keeps)?;
        }
        if let Some(description) = ask.text("Description") {
            description.clone_into(&mut rule.description);
        }
        for (list, tags) in [("ResourceTags", &mut rule.of), ("ExcludeResourceTags", &mut rule.but)] {
            if ask.call.input.contains_key(list) {
                *tags = ask.pairs(list, "ResourceTagKey", "ResourceTagValue");
            }
        }
        check_choice(&rule.of, &rule.but)?;
        self.put(ask, &rule)?;
        Ok(members(ask, &rule))
    }

    fn delete_rule(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let rule = self.named(ask, ask.text("Identifier").unwrap_or_default())?;
        lock::refuse_locked(ask, &rule)?;
        let (owner, region) = ask.account();
        self.ec2.drop_rule(owner, region, &rule.id).map_err(|error| internal(&error))?;
        Ok(Map::new())
    }

    fn list_rules(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        ask.demand("*", BTreeMap::new())?;
        let keeps = kept(ask.text("ResourceType").unwrap_or_default())?;
        let of = ask.pairs("ResourceTags", "ResourceTagKey", "ResourceTagValue");
        let but = ask.pairs("ExcludeResourceTags", "ResourceTagKey", "ResourceTagValue");
        let after = ask.text("NextToken").unwrap_or_default();
        let most = ask.call.input.get("MaxResults").and_then(Value::as_u64);
        let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(PAGE).clamp(1, PAGE);
        let mut rules = self.rules(ask);
        rules.retain(|rule| {
            rule.keeps == keeps
                && rule.id.as_str() > after
                && of.iter().all(|tag| rule.of.contains(tag))
                && but.iter().all(|tag| rule.but.contains(tag))
                && lock::is_in(ask, rule)
        });
        let row = |rule: &Rule| {
            let mut row = members(ask, rule);
            row.retain(|name, _| {
                matches!(
                    name.as_str(),
                    "Identifier" | "Description" | "RetentionPeriod" | "LockState" | "RuleArn"
                )
            });
            row
        };
        let mut answer = Map::new();
        answer.insert("Rules".to_owned(), rules.iter().take(most).map(row).collect());
        if rules.len() > most {
            answer.insert("NextToken".to_owned(), json!(rules[most - 1].id));
        }
        Ok(answer)
    }

    /// The rule of a call that names an ARN.
    fn of_arn(&self, ask: &Ask<'_>) -> Result<Rule, ApiError> {
        let arn = percent_decode_str(ask.text("ResourceArn").unwrap_or_default()).decode_utf8_lossy();
        let id = arn.rsplit('/').next().unwrap_or_default();
        let rule = self.named(ask, id)?;
        if arn == ask.arn(id) { Ok(rule) } else { Err(not_found(&arn)) }
    }

    fn list_tags(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let rule = self.of_arn(ask)?;
        Ok([("Tags".to_owned(), shown_tags(&rule))].into_iter().collect())
    }

    fn tag(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut rule = self.of_arn(ask)?;
        let given = ask.pairs("Tags", "Key", "Value").into_iter();
        rule.tags.extend(given.map(|(key, value)| (key, value.unwrap_or_default())));
        if rule.tags.len() > MOST_TAGS {
            return Err(too_many(format!("A rule can have at most {MOST_TAGS} tags.")));
        }
        self.put(ask, &rule)?;
        Ok(Map::new())
    }

    fn untag(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut rule = self.of_arn(ask)?;
        let keys = ask.call.input.get("TagKeys").and_then(Value::as_array).into_iter().flatten();
        for key in keys.filter_map(Value::as_str) {
            rule.tags.remove(key);
        }
        self.put(ask, &rule)?;
        Ok(Map::new())
    }
}

impl Service for Rbin {
    fn name(&self) -> &'static str {
        "rbin"
    }

    fn actions(&self) -> &'static [&'static str] {
        &ACTIONS
    }

    fn call(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        let ask = &Ask { call };
        let output = match call.action {
            "CreateRule" => self.create_rule(ask),
            "DeleteRule" => self.delete_rule(ask),
            "GetRule" => self.get_rule(ask),
            "ListRules" => self.list_rules(ask),
            "ListTagsForResource" => self.list_tags(ask),
            "LockRule" => self.lock_rule(ask),
            "TagResource" => self.tag(ask),
            "UnlockRule" => self.unlock_rule(ask),
            "UntagResource" => self.untag(ask),
            "UpdateRule" => self.update_rule(ask),
            other => Err(ApiError::client(
                "UnknownOperationException",
                format!("The operation {other} is not known."),
            )),
        }?;
        Ok(Answer { output, payload: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::ACTIONS;
    use crate::model::Model;

    #[test]
    fn every_operation_of_the_model_is_built() {
        let model = Model::of("rbin").unwrap();
        assert_eq!(model.actions().collect::<Vec<_>>(), ACTIONS);
    }
}
