//! Policies of resources, such as a key's: statements that name whom they are for.
//!
//! Source: "AWS JSON policy elements: Principal" and "Policy evaluation logic", IAM User Guide.

use serde_json::Value;

use super::{Context, Policy, PolicyError};
use crate::partition;
use crate::service::Caller;

/// A policy that a resource has.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourcePolicy {
    statements: Policy,
    /// Whom each statement is for.
    principals: Vec<Principals>,
}

/// What the policy of a resource says to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A statement denies it, whatever the caller's own policy says.
    Denies,
    /// A statement names the caller and allows it. In the account of the resource, the caller's own policy must only not
    /// deny it.
    Allows,
    /// A statement names the caller's account and allows it: the caller's own policy must allow it, too.
    Delegates,
    /// Nothing allows it.
    Silent,
}

/// Whom a statement is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Principals {
    Everyone,
    /// Accounts, their roots, users, roles and sessions of roles. Services and others are no callers here.
    These(Vec<String>),
}

/// How a statement names a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    Caller,
    Account,
}

impl ResourcePolicy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The place in the policy that is wrong, and why.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut document: Value = serde_json::from_str(text).unwrap_or_default();
        let mut principals = Vec::new();
        for (number, statement) in statements_of(&mut document).into_iter().enumerate() {
            let place = format!("Statement[{number}].Principal");
            let Some(fields) = statement.as_object_mut() else { continue };
            // Names of statements may have spaces here.
            if let Some(Value::String(name)) = fields.get_mut("Sid") {
                name.retain(|c| c.is_ascii_alphanumeric());
                *name = format!("{name}{number}");
            }
            match fields.remove("Principal") {
                Some(principal) => principals.push(Principals::read(&principal, &place)?),
                None => return Err(PolicyError::at(place, "A statement has no Principal.")),
            }
        }
        // All elements but the principals are those of an identity-based policy.
        let text = if document.is_object() { document.to_string() } else { text.to_owned() };
        Ok(Self { statements: Policy::parse(&text)?, principals })
    }

    /// What it says to an action on the resource.
    #[must_use]
    pub fn decide(&self, caller: &Caller, action: &str, resource: &str, context: &Context) -> Verdict {
        let mut verdict = Verdict::Silent;
        for (statement, principals) in self.statements.statements.iter().zip(&self.principals) {
            let Some(naming) = principals.name(caller) else { continue };
            if !statement.applies(action, resource, context) {
                continue;
            }
            match (statement.allows, naming) {
                (false, _) => return Verdict::Denies,
                (true, Naming::Caller) => verdict = Verdict::Allows,
                (true, Naming::Account) if verdict == Verdict::Silent => verdict = Verdict::Delegates,
                (true, Naming::Account) => {}
            }
        }
        verdict
    }
}

/// The statements of a policy's document, which may be a list or one.
pub(super) fn statements_of(document: &mut Value) -> Vec<&mut Value> {
    match document.get_mut("Statement") {
        Some(Value::Array(all)) => all.iter_mut().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    }
}

impl Principals {
    fn read(principal: &Value, place: &str) -> Result<Self, PolicyError> {
        let kinds = match principal {
            Value::String(text) if text == "*" => return Ok(Self::Everyone),
            Value::Object(kinds) => kinds,
            _ => return Err(PolicyError::at(place, "it is neither \"*\" nor a JSON object")),
        };
        let known = ["AWS", "CanonicalUser", "Federated", "Service"];
        if let Some(other) = kinds.keys().find(|kind| !known.contains(&kind.as_str())) {
            return Err(PolicyError::at(place, format!("'{other}' is none of {}", known.join(", "))));
        }
        let names = match kinds.get("AWS") {
            None => Vec::new(),
            Some(Value::Array(all)) => all.iter().collect(),
            Some(one) => vec![one],
        };
        let text = |name: &Value| match name.as_str() {
            Some(name) => Ok(name.to_owned()),
            None => Err(PolicyError::at(place, "a principal is no text")),
        };
        let names = names.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
        match names.iter().find(|name| !is_principal(name)) {
            Some(other) => Err(PolicyError::at(
                place,
                format!("'{other}' is neither \"*\", an account, nor the ARN of a root, a user or a role"),
            )),
            None if names.iter().any(|name| name == "*") => Ok(Self::Everyone),
            None => Ok(Self::These(names)),
        }
    }

    /// How they name a caller; none where they do not.
    fn name(&self, caller: &Caller) -> Option<Naming> {
        let Self::These(names) = self else { return Some(Naming::Caller) };
        if names.iter().any(|name| caller.is_named(name)) {
            return Some(Naming::Caller);
        }
        let root = format!("{}:root", caller.account);
        let means =
            |name: &String| *name == caller.account || partition::global_arn(name, "iam") == Some(&root);
        names.iter().any(means).then_some(Naming::Account)
    }
}

fn is_principal(name: &str) -> bool {
    let is_account = |text: &str| text.len() == 12 && text.bytes().all(|b| b.is_ascii_digit());
    let of_iam = || {
        let mut parts = partition::global_arn(name, "iam")?.splitn(2, ':');
        let (account, rest) = (parts.next()?, parts.next()?);
        let fits = rest == "root" || ["user/", "role/"].iter().any(|kind| rest.starts_with(kind));
        Some(is_account(account) && fits)
    };
    name == "*" || is_account(name) || partition::global_arn(name, "sts").is_some() || of_iam() == Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(statements: Value, arn: &str) -> Verdict {
        let policy = json!({"Version": "2012-10-17", "Statement": statements});
        let policy = ResourcePolicy::parse(&policy.to_string()).unwrap();
        let account = arn.split(':').nth(4).unwrap().to_owned();
        let caller = Caller { account, arn: arn.to_owned(), user_id: String::new(), access_key: None };
        let mut context = Context::default();
        context.set("kms:ViaService", ["ec2.us-east-1.amazonaws.com".to_owned()]);
        policy.decide(&caller, "kms:Decrypt", "arn:aws:kms:us-east-1:111122223333:key/k", &context)
    }

    const ANNA: &str = "arn:aws:iam::111122223333:user/anna";
    const BOB: &str = "arn:aws:iam::111122223333:user/bob";
    const OTHER: &str = "arn:aws:iam::444455556666:user/anna";

    fn allow(principal: Value, action: &str) -> Value {
        json!({"Effect": "Allow", "Principal": principal, "Action": action, "Resource": "*"})
    }

    #[test]
    fn a_statement_for_the_account_delegates_and_one_for_the_user_allows() {
        let root = allow(json!({"AWS": "arn:aws:iam::111122223333:root"}), "kms:*");
        let account = allow(json!({"AWS": ["444455556666"]}), "kms:De*");
        let anna = allow(json!({"AWS": [ANNA]}), "kms:Decrypt");
        let everyone = allow(json!("*"), "kms:Decrypt");
        let service = allow(json!({"Service": "ec2.amazonaws.com"}), "kms:*");
        let of = |statements: &[&Value], arn| verdict(json!(statements), arn);
        assert_eq!(of(&[&root], ANNA), Verdict::Delegates);
        assert_eq!(of(&[&root], OTHER), Verdict::Silent);
        assert_eq!(of(&[&account], OTHER), Verdict::Delegates);
        assert_eq!(of(&[&root, &anna], ANNA), Verdict::Allows);
        assert_eq!(of(&[&anna, &root], ANNA), Verdict::Allows);
        assert_eq!(of(&[&anna], BOB), Verdict::Silent);
        assert_eq!(of(&[&everyone], OTHER), Verdict::Allows);
        assert_eq!(of(&[&service], ANNA), Verdict::Silent);
        assert_eq!(of(&[&allow(json!({"AWS": [ANNA]}), "kms:Encrypt")], ANNA), Verdict::Silent);
    }

    #[test]
    fn a_deny_wins_wherever_it_is_and_conditions_count() {
        let root = allow(json!({"AWS": "arn:aws:iam::111122223333:root"}), "kms:*");
        let mut deny = allow(json!({"AWS": [ANNA]}), "kms:*");
        deny["Effect"] = "Deny".into();
        assert_eq!(verdict(json!([root, deny]), ANNA), Verdict::Denies);
        assert_eq!(verdict(json!([deny, root]), BOB), Verdict::Delegates);
        let mut via = allow(json!({"AWS": [ANNA]}), "kms:Decrypt");
        for (service, expected) in [("ec2", Verdict::Allows), ("s3", Verdict::Silent)] {
            let service = format!("{service}.us-east-1.amazonaws.com");
            via["Condition"] = json!({"StringEquals": {"kms:ViaService": service}});
            assert_eq!(verdict(json!([via]), ANNA), expected);
        }
    }

    #[test]
    fn what_is_wrong_with_a_policy_is_said_with_its_place() {
        let wrong = |statement: Value| {
            ResourcePolicy::parse(&json!({"Statement": [statement]}).to_string()).unwrap_err().to_string()
        };
        let mut none = allow(json!("*"), "kms:*");
        none.as_object_mut().unwrap().remove("Principal");
        assert_eq!(wrong(none), "Statement[0].Principal: A statement has no Principal.");
        assert!(wrong(allow(json!({"AWS": "anna"}), "kms:*")).contains("'anna' is neither"));
        assert!(wrong(allow(json!({"Users": "anna"}), "kms:*")).contains("'Users' is none of"));
        assert!(wrong(allow(json!("*"), "decrypt")).starts_with("Statement[0].Action"));
        assert!(ResourcePolicy::parse("[]").unwrap_err().to_string().contains("no JSON object"));
        // As AWS's console names it.
        let mut named = allow(json!("*"), "kms:*");
        named["Sid"] = "Enable IAM User Permissions".into();
        ResourcePolicy::parse(&json!({"Statement": named}).to_string()).unwrap();
    }
}
