//! What AssumeRole gives a session besides its keys and its policy: tags and a source identity, also those of the session that
//! calls.
//!
//! Sources: "Pass session tags in AWS STS" and "Monitor and control actions taken with assumed roles", IAM User Guide. The errors
//! of tags are those that AWS answered to the tests of LocalStack, which records them in `test_sts.snapshot.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{check_form, invalid, text};
use crate::iam::{SET_SOURCE_IDENTITY, SessionTag, TAG_SESSION};
use crate::service::{ApiError, Call};
use crate::sessions::Session;

/// What tags consist of, as AWS words it.
const TAG_CHARS: &str = "[\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]";

/// The tags and the source identity of a session that a role is assumed for.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    /// The tags of the call, and the transitive ones of the session that calls.
    pub(super) tags: Vec<SessionTag>,
    /// That of the call, or of the session that calls.
    pub(super) source_identity: Option<String>,
}

impl Attributes {
    /// Those of a call. `from` is the session that calls, if it is one.
    ///
    /// # Errors
    /// `ValidationError` of a value with other characters; `InvalidParameterValue` of tags that are there twice, of keys that AWS
    /// reserves, of transitive keys without a tag, and of what would change something of the session that calls.
    pub(super) fn read(call: &Call<'_>, from: Option<&Session>) -> Result<Self, ApiError> {
        let mut tags = given(call)?;
        let inherited: Vec<SessionTag> = from
            .into_iter()
            .flat_map(|session| session.tags.iter().filter(|tag| tag.is_transitive).cloned())
            .collect();
        if tags.iter().any(|tag| inherited.iter().any(|other| is_same(&tag.key, &other.key))) {
            return Err(refused(
                "One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from the \
                 calling session.",
            ));
        }
        for key in texts(call, "TransitiveTagKeys") {
            let Some(tag) = tags.iter_mut().find(|tag| is_same(&tag.key, key)) else {
                return Err(refused(
                    "The specified transitive tag key must be included in the requested tags.",
                ));
            };
            tag.is_transitive = true;
        }
        tags.extend(inherited);
        Ok(Self { tags, source_identity: source_identity(call, from)? })
    }

    /// What the caller must be allowed to do besides assuming the role.
    pub(super) fn actions(&self) -> impl Iterator<Item = &'static str> {
        let of_tags = (!self.tags.is_empty()).then_some(TAG_SESSION);
        of_tags.into_iter().chain(self.source_identity.as_ref().map(|_| SET_SOURCE_IDENTITY))
    }

    /// Their condition keys.
    pub(super) fn keys(&self) -> BTreeMap<String, Vec<String>> {
        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for SessionTag { key, value, is_transitive } in &self.tags {
            keys.insert(format!("aws:RequestTag/{key}"), vec![value.clone()]);
            keys.entry("aws:TagKeys".to_owned()).or_default().push(key.clone());
            if *is_transitive {
                keys.entry("sts:TransitiveTagKeys".to_owned()).or_default().push(key.clone());
            }
        }
        if let Some(identity) = &self.source_identity {
            keys.insert("sts:SourceIdentity".to_owned(), vec![identity.clone()]);
        }
        keys
    }

    /// Characters of the tags.
    pub(super) fn tag_chars(&self) -> usize {
        self.tags.iter().map(|tag| tag.key.chars().count() + tag.value.chars().count()).sum()
    }
}

/// The tags of a call, whose lengths and number the model bounds.
fn given(call: &Call<'_>) -> Result<Vec<SessionTag>, ApiError> {
    let rows = call.input.get("Tags").and_then(Value::as_array).into_iter().flatten();
    let (mut tags, mut keys) = (Vec::new(), BTreeSet::new());
    for (number, row) in (1..).zip(rows) {
        let text = |member: &str| row.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        let tag = SessionTag { key: text("Key"), value: text("Value"), is_transitive: false };
        check_chars(&format!("tags.{number}.member.key"), &tag.key, "+")?;
        check_chars(&format!("tags.{number}.member.value"), &tag.value, "*")?;
        if tag.key.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("aws:")) {
            return Err(refused("Tag keys that begin with aws: are reserved for system use."));
        }
        if !keys.insert(tag.key.to_lowercase()) {
            return Err(refused("Duplicate tag keys found. Please note that Tag keys are case insensitive."));
        }
        tags.push(tag);
    }
    Ok(tags)
}

/// The source identity of the new session. One that is set stays the same in the whole chain.
fn source_identity(call: &Call<'_>, from: Option<&Session>) -> Result<Option<String>, ApiError> {
    let given = text(call, "SourceIdentity");
    check_form("sourceIdentity", given.unwrap_or_default(), "[\\w+=,.@-]*", "_+=,.@-")?;
    match (given, from.and_then(|session| session.source_identity.as_deref())) {
        (Some(given), Some(kept)) if given != kept => Err(refused(
            "The specified source identity can't be set because it conflicts with the source identity of the calling session.",
        )),
        (given, kept) => Ok(given.or(kept).map(str::to_owned)),
    }
}

fn texts<'a>(call: &'a Call<'_>, member: &str) -> impl Iterator<Item = &'a str> {
    call.input.get(member).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Keys of tags have no case.
fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Letters, separators, digits and some marks. The embedded model has no patterns.
fn check_chars(member: &str, value: &str, count: &str) -> Result<(), ApiError> {
    let is_separator = |c: char| c.is_whitespace() && !c.is_control();
    if value.chars().all(|c| c.is_alphanumeric() || is_separator(c) || "_.:/=+-@".contains(c)) {
        return Ok(());
    }
    Err(invalid(format!(
        "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: Member must satisfy regular \
         expression pattern: {TAG_CHARS}{count}"
    )))
}

fn refused(message: &str) -> ApiError {
    ApiError::client("InvalidParameterValue", message)
}
