//! What the session of a temporary key adds to the policy of its user or role.

use serde::{Deserialize, Serialize};

use super::{Context, Policy};

/// What the session of a temporary key adds.
#[derive(Debug, Clone, Copy)]
pub struct SessionTerms<'a> {
    /// What it may do at most, whatever else allows it; without a policy, all that its user or role may.
    pub policy: Option<&'a Policy>,
    /// When the key was issued, in milliseconds since 1970.
    pub issued_ms: u64,
    /// Its tags, which policies know as `aws:PrincipalTag/KEY`.
    pub tags: &'a [SessionTag],
    /// Its source identity, which policies know as `aws:SourceIdentity`.
    pub source_identity: Option<&'a str>,
}

/// A tag of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionTag {
    /// Its key, 1 to 128 characters. No other tag of the session has it, also in another case.
    pub key: String,
    /// Its value, 0 to 256 characters.
    pub value: String,
    /// Whether sessions that this session assumes have the tag, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_transitive: bool,
}

impl SessionTerms<'_> {
    /// Sets the condition keys that only requests with a temporary key have.
    ///
    /// Source: "AWS global condition context keys", IAM User Guide.
    pub(super) fn set_keys(&self, context: &mut Context) {
        context.set("aws:TokenIssueTime", [super::date(self.issued_ms / 1000)]);
        // AWS has it with temporary keys alone; no user of a home has a device.
        context.set("aws:MultiFactorAuthPresent", ["false".to_owned()]);
        for tag in self.tags {
            context.set(&format!("aws:PrincipalTag/{}", tag.key), [tag.value.clone()]);
        }
        if let Some(identity) = self.source_identity {
            context.set("aws:SourceIdentity", [identity.to_owned()]);
        }
    }
}
