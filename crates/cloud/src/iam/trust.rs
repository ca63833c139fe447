//! The trust policy of a role: who may assume it.

use serde_json::Value;

use super::resource::statements_of;
use super::{PolicyError, ResourcePolicy, Verdict};
use crate::service::{Caller, Judgement, OwnPolicy};

/// The action that it allows.
pub(crate) const ASSUME_ROLE: &str = "sts:AssumeRole";
/// What a session with tags needs besides.
pub(crate) const TAG_SESSION: &str = "sts:TagSession";
/// What a session with a source identity needs besides.
pub(crate) const SET_SOURCE_IDENTITY: &str = "sts:SetSourceIdentity";

/// A policy whose resource is the role that has it.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustPolicy(ResourcePolicy);

impl TrustPolicy {
    /// Reads a policy: its statements have principals and actions of STS, and no resources.
    ///
    /// # Errors
    /// The place in the policy that is wrong, and why.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut document: Value = serde_json::from_str(text).unwrap_or_default();
        for (number, statement) in statements_of(&mut document).into_iter().enumerate() {
            let Some(fields) = statement.as_object_mut() else { continue };
            for name in ["Resource", "NotResource"] {
                if fields.contains_key(name) {
                    let place = format!("Statement[{number}].{name}");
                    return Err(PolicyError::at(place, "a trust policy has none: its resource is the role"));
                }
            }
            let actions = fields.get("Action").map(texts).unwrap_or_default();
            let is_of_sts =
                |action: &&str| action.get(..4).is_some_and(|service| service.eq_ignore_ascii_case("sts:"));
            if let Some(other) = actions.iter().find(|action| !is_of_sts(action)) {
                let place = format!("Statement[{number}].Action");
                let why = format!("'{other}' is no action of STS, such as {ASSUME_ROLE}");
                return Err(PolicyError::at(place, why));
            }
            fields.insert("Resource".to_owned(), "*".into());
        }
        let text = if document.is_object() { document.to_string() } else { text.to_owned() };
        ResourcePolicy::parse(&text).map(Self)
    }

    /// Whether a caller of the role's account may do an action of STS on it, by this policy and by what the caller's own say. As
    /// on AWS, a statement that names the caller is enough; where it names the account, the caller's own policy must allow it, too.
    pub(crate) fn allows(&self, action: &str, caller: &Caller, role: &str, judgement: &Judgement) -> bool {
        let verdict = self.0.decide(caller, action, role, &judgement.context);
        match (&judgement.says, verdict) {
            (OwnPolicy::Unchecked, _) => true,
            (OwnPolicy::Denies(_), _) | (_, Verdict::Denies | Verdict::Silent) => false,
            (_, Verdict::Allows) => true,
            (own, Verdict::Delegates) => *own == OwnPolicy::Allows,
        }
    }
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::iam::Context;
    use crate::service::ApiError;

    const ROLE: &str = "arn:aws:iam::000000000000:role/backup";

    fn caller(arn: &str) -> Caller {
        let account = arn.split(':').nth(4).unwrap().to_owned();
        Caller { account, arn: arn.to_owned(), user_id: String::new(), access_key: None }
    }

    fn trust(statement: &Value) -> Result<TrustPolicy, PolicyError> {
        TrustPolicy::parse(&json!({"Version": "2012-10-17", "Statement": statement}).to_string())
    }

    fn allows(principal: &str, arn: &str, says: &OwnPolicy) -> bool {
        let statement =
            json!([{"Effect": "Allow", "Principal": {"AWS": principal}, "Action": "sts:AssumeRole"}]);
        let judgement = Judgement { says: says.clone(), context: Context::default() };
        trust(&statement).unwrap().allows(ASSUME_ROLE, &caller(arn), ROLE, &judgement)
    }

    #[test]
    fn a_caller_who_is_named_may_assume_it_and_one_of_the_account_who_may_by_his_own_policy() {
        let denied = || ApiError::client("AccessDenied", "denied");
        let (silent, denies) = (OwnPolicy::Silent(denied()), OwnPolicy::Denies(denied()));
        let anna = "arn:aws:iam::000000000000:user/anna";
        let root = "arn:aws:iam::000000000000:root";
        for (principal, says, expected) in [
            (anna, &OwnPolicy::Allows, true),
            (anna, &silent, true),
            (anna, &denies, false),
            (root, &OwnPolicy::Allows, true),
            (root, &silent, false),
            ("000000000000", &OwnPolicy::Allows, true),
            ("arn:aws:iam::000000000000:user/bert", &OwnPolicy::Allows, false),
            ("arn:aws:iam::000000000000:user/bert", &OwnPolicy::Unchecked, true),
        ] {
            assert_eq!(allows(principal, anna, says), expected, "{principal} {says:?}");
        }
        // A session is named by its role, or by itself.
        let session = "arn:aws:sts::000000000000:assumed-role/first/s";
        for (principal, expected) in [
            ("arn:aws:iam::000000000000:role/first", true),
            (session, true),
            ("arn:aws:iam::000000000000:role/second", false),
            ("arn:aws:sts::000000000000:assumed-role/first/other", false),
        ] {
            assert_eq!(allows(principal, session, &silent), expected, "{principal}");
        }
    }

    #[test]
    fn a_trust_policy_has_principals_and_actions_of_sts_and_no_resources() {
        let wrong = |more: &[(&str, Value)]| {
            let mut statement = json!({"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"});
            statement.as_object_mut().unwrap().extend(more.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
            trust(&statement).unwrap_err().to_string()
        };
        assert!(
            wrong(&[("Resource", json!("*"))]).starts_with("Statement[0].Resource: a trust policy has none")
        );
        assert!(
            wrong(&[("Action", json!(["sts:AssumeRole", "ec2:*"]))]).contains("'ec2:*' is no action of STS")
        );
        assert!(wrong(&[("Action", json!("*"))]).contains("'*' is no action of STS"));
        let without = json!({"Effect": "Allow", "Action": "sts:AssumeRole"});
        assert_eq!(
            trust(&without).unwrap_err().to_string(),
            "Statement[0].Principal: A statement has no Principal."
        );
        assert!(TrustPolicy::parse("{").is_err());
    }
}
