//! Decides the calls of one request, and words what it denies as each service does.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::{Context, Decision, Policy, Sealer, SessionTerms, date};
use crate::service::{Access, ApiError, Authorizer, Caller, Judgement, OwnPolicy};

/// Allows everything.
#[derive(Debug)]
pub struct Unrestricted;

impl Authorizer for Unrestricted {
    fn authorize(&self, _: &Caller, _: &Access) -> Result<(), ApiError> {
        Ok(())
    }

    fn judge(&self, _: &Caller, access: &Access) -> Judgement {
        Judgement { says: OwnPolicy::Unchecked, context: access.keys() }
    }
}

/// What the keys `aws:...` of a request are.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Where the request comes from.
    pub source: Option<IpAddr>,
    /// Whether it came over TLS.
    pub is_secure: bool,
    /// The program that sent it.
    pub user_agent: Option<String>,
    /// The region that it is signed for.
    pub region: String,
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
}

/// Decides by the policy of a user or a role.
#[derive(Debug)]
pub struct PolicyAuthorizer<'a> {
    /// The policy; a user or role without one may do everything.
    pub policy: Option<&'a Policy>,
    /// The session of a temporary key; none of others.
    pub session: Option<SessionTerms<'a>>,
    /// The service, by its name in a signature's scope.
    pub service: &'a str,
    /// What the keys `aws:...` are.
    pub environment: &'a Environment,
    /// Encodes what is denied.
    pub sealer: &'a Sealer,
}

impl Authorizer for PolicyAuthorizer<'_> {
    fn authorize(&self, caller: &Caller, access: &Access) -> Result<(), ApiError> {
        match self.judge(caller, access).says {
            OwnPolicy::Unchecked | OwnPolicy::Allows => Ok(()),
            OwnPolicy::Silent(error) | OwnPolicy::Denies(error) => Err(error),
        }
    }

    fn judge(&self, caller: &Caller, access: &Access) -> Judgement {
        let context = self.context(caller, access);
        let decide = |policy: &Policy| policy.decide(&access.action, &access.resource, &context);
        let own = self.policy.map(decide);
        let of_session = self.session.and_then(|session| session.policy).map(decide);
        let refused = [(own, PolicyKind::IdentityBased), (of_session, PolicyKind::Session)]
            .into_iter()
            .filter_map(|(decision, kind)| Some((decision.filter(|decision| !decision.is_allowed)?, kind)))
            // A deny wins, and what the session does not allow nothing else can.
            .max_by_key(|(decision, kind)| (decision.is_explicit_deny, *kind));
        let Some((decision, kind)) = refused else {
            tracing::debug!(action = %access.action, resource = %access.resource, user = %caller.arn, "allowed");
            return Judgement { says: OwnPolicy::Allows, context };
        };
        tracing::info!(
            action = %access.action,
            resource = %access.resource,
            user = %caller.arn,
            explicit = decision.is_explicit_deny,
            "no {kind} policy allows it"
        );
        let error = self.denied(caller, access, (&decision, kind), &context);
        let is_silent = kind == PolicyKind::IdentityBased && !decision.is_explicit_deny;
        let says = if is_silent { OwnPolicy::Silent(error) } else { OwnPolicy::Denies(error) };
        Judgement { says, context }
    }
}

/// Whose policy refuses, in the order in which refusals are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PolicyKind {
    IdentityBased,
    Session,
}

impl std::fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::IdentityBased => "identity-based",
            Self::Session => "session",
        })
    }
}

impl PolicyAuthorizer<'_> {
    fn context(&self, caller: &Caller, access: &Access) -> Context {
        let Environment { source, is_secure, user_agent, region, now_ms } = self.environment;
        let mut context = Context::default();
        if let Some(session) = self.session {
            session.set_keys(&mut context);
        }
        let mut set = |key: &str, value: String| context.set(key, [value]);
        let seconds = now_ms / 1000;
        set("aws:CurrentTime", date(seconds));
        set("aws:EpochTime", seconds.to_string());
        set("aws:PrincipalAccount", caller.account.clone());
        set("aws:PrincipalArn", caller.principal_arn().into_owned());
        set("aws:PrincipalType", if caller.is_role_session() { "AssumedRole" } else { "User" }.to_owned());
        set("aws:RequestedRegion", region.clone());
        set("aws:SecureTransport", is_secure.to_string());
        set("aws:userid", caller.user_id.clone());
        if let Some((_, name)) = caller.arn.split_once(":user/") {
            set("aws:username", name.to_owned());
        }
        if let Some(source) = source {
            set("aws:SourceIp", source.to_string());
        }
        if let Some(agent) = user_agent {
            set("aws:UserAgent", agent.clone());
        }
        if access.action.starts_with("ec2:") {
            set("ec2:Region", region.clone());
        }
        for (key, values) in &access.context {
            context.set(key, values.iter().cloned());
        }
        context
    }

    fn denied(
        &self,
        caller: &Caller,
        access: &Access,
        (decision, kind): (&Decision, PolicyKind),
        context: &Context,
    ) -> ApiError {
        let Access { action, resource, .. } = access;
        let why = match kind {
            PolicyKind::IdentityBased if decision.is_explicit_deny => {
                "with an explicit deny in an identity-based policy".to_owned()
            }
            PolicyKind::Session if decision.is_explicit_deny => {
                "with an explicit deny in a session policy".to_owned()
            }
            kind => format!("because no {kind} policy allows the {action} action"),
        };
        let on = if resource == "*" { String::new() } else { format!(" on resource: {resource}") };
        let text = format!("User: {} is not authorized to perform: {action}{on} {why}", caller.arn);
        let (code, status) = match self.service {
            "ec2" => ("UnauthorizedOperation", 403),
            "kms" => ("AccessDeniedException", 400),
            "ebs" | "rbin" => ("AccessDeniedException", 403),
            _ => ("AccessDenied", 403),
        };
        let message = match self.service {
            "ec2" if resource == "*" => format!("You are not authorized to perform this operation. {text}"),
            "ec2" => {
                let sealed = self.sealer.seal(&details(caller, access, decision, context).to_string());
                format!(
                    "You are not authorized to perform this operation. {text}. Encoded authorization failure message: {sealed}"
                )
            }
            _ => text,
        };
        let mut members = Map::new();
        if self.service == "ebs" {
            members.insert("Reason".to_owned(), "UNAUTHORIZED_ACCOUNT".into());
        }
        ApiError { status, members, ..ApiError::client(code, message) }
    }
}

/// What `sts:DecodeAuthorizationMessage` answers.
fn details(caller: &Caller, access: &Access, decision: &Decision, context: &Context) -> Value {
    let values = |values: &[String]| values.iter().map(|value| json!({ "value": value })).collect::<Vec<_>>();
    let conditions =
        context.0.iter().map(|(key, all)| json!({ "key": key, "values": { "items": values(all) } }));
    let matched = decision.statements.iter().map(|name| json!({ "statementId": name, "effect": "DENY" }));
    json!({
        "allowed": false,
        "explicitDeny": decision.is_explicit_deny,
        "matchedStatements": { "items": matched.collect::<Vec<_>>() },
        "failures": { "items": [] },
        "context": {
            "principal": {
                "id": caller.user_id,
                "name": caller.arn.rsplit('/').next(),
                "arn": caller.arn,
            },
            "action": access.action,
            "resource": access.resource,
            "conditions": { "items": conditions.collect::<Vec<_>>() },
        },
    })
}
