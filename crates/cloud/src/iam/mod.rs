//! Policies of IAM: which actions a user may do, on which resources, under which conditions. Those of users say it for one
//! user; those of resources ([`ResourcePolicy`]) and of roles ([`TrustPolicy`]) name whom they are for.
//!
//! Sources: "IAM JSON policy elements reference" and "Policy evaluation logic", IAM User Guide. A deny of any statement
//! wins; else one statement must allow; else it is denied.

mod authorizer;
mod condition;
mod document;
mod pattern;
mod resource;
mod seal;
mod session;
#[cfg(test)]
mod tests;
mod trust;

pub use authorizer::{Environment, PolicyAuthorizer, Unrestricted};
pub use document::PolicyError;
pub use resource::{ResourcePolicy, Verdict};
pub use seal::Sealer;
pub use session::{SessionTag, SessionTerms};
pub use trust::TrustPolicy;
pub(crate) use trust::{ASSUME_ROLE, SET_SOURCE_IDENTITY, TAG_SESSION};

pub use crate::context::Context;

use condition::Condition;
use pattern::{Pattern, Patterns};

/// A policy that is attached to a user or a role, or that limits a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    statements: Vec<Statement>,
}

#[derive(Debug, Clone, PartialEq)]
struct Statement {
    /// Its name, or its number from 1.
    name: String,
    allows: bool,
    actions: Patterns,
    resources: Patterns,
    conditions: Vec<Condition>,
}

/// What policies say to an action on a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub is_allowed: bool,
    /// Whether a statement denies it; else it is denied where none allows it.
    pub is_explicit_deny: bool,
    /// The names of the statements that decided.
    pub statements: Vec<String>,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The place in the policy that is wrong, and why.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        document::parse(text)
    }

    /// A policy without statements, which allows nothing.
    pub(crate) const fn of_nothing() -> Self {
        Self { statements: Vec::new() }
    }

    /// What it says to an action on a resource.
    #[must_use]
    pub fn decide(&self, action: &str, resource: &str, context: &Context) -> Decision {
        let of_effect = |allows: bool| {
            let holds = |s: &&Statement| s.allows == allows && s.applies(action, resource, context);
            self.statements.iter().filter(holds).map(|s| s.name.clone()).collect::<Vec<_>>()
        };
        let denying = of_effect(false);
        if !denying.is_empty() {
            return Decision { is_allowed: false, is_explicit_deny: true, statements: denying };
        }
        let allowing = of_effect(true);
        Decision { is_allowed: !allowing.is_empty(), is_explicit_deny: false, statements: allowing }
    }
}

impl Statement {
    fn applies(&self, action: &str, resource: &str, context: &Context) -> bool {
        let of_action = |pattern: &Pattern| pattern.matches_ignoring_case(action);
        let of_resource = |pattern: &Pattern| pattern.matches(resource, context);
        self.actions.hold(of_action)
            && self.resources.hold(of_resource)
            && self.conditions.iter().all(|condition| condition.holds(context))
    }
}

/// A time in seconds since 1970, as policies compare it.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
    time.unwrap_or_default().to_string()
}
