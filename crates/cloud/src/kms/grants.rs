//! Grants of keys: they allow a principal some operations, besides the policies.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::cryptography::check_state;
use super::db::Change;
use super::input::seconds;
use super::policies::{
    Permit, demand, demand_any, demand_with, key_arn, own_refusal, permitted, refusal_of_missing,
    refuse_managed,
};
use super::records::{Grant, Key};
use super::state::State;
use super::{Ask, Kms, refuse};
use crate::{ApiError, partition};

/// What a grant of a symmetric key may allow.
const OPERATIONS: [&str; 9] = [
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "Encrypt",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
    "RetireGrant",
];
/// Most grants of a key (KMS developer guide, `resource-limits`).
const GRANTS: usize = 50_000;

fn row(state: &State, grant: &Grant) -> Value {
    let mut row = json!({
        "KeyId": state.keys().get(&grant.key).map(Key::arn),
        "GrantId": grant.id,
        "GranteePrincipal": grant.grantee,
        "Operations": grant.operations,
        "IssuingAccount": grant.issuer,
        "CreationDate": seconds(grant.created_ms),
    });
    let some = [
        ("Name", grant.name.clone().map(Value::from)),
        ("RetiringPrincipal", grant.retiring.clone().map(Value::from)),
        ("Constraints", grant.constraints.clone()),
    ];
    for (name, value) in some {
        if let Some(value) = value {
            row[name] = value;
        }
    }
    row
}

fn operations(ask: &Ask<'_>) -> Result<Vec<String>, ApiError> {
    let given: BTreeSet<&str> = ask.input.texts("Operations").into_iter().collect();
    if given.is_empty() {
        return Err(refuse::missing("Operations"));
    }
    if let Some(other) = given.iter().find(|one| !OPERATIONS.contains(one)) {
        let message = format!("A grant of a symmetric key cannot allow {other}: {}.", OPERATIONS.join(", "));
        return Err(refuse::validation(message));
    }
    Ok(given.into_iter().map(str::to_owned).collect())
}

/// Refuses what a caller's own grant does not have: operations of others, or fewer constraints.
fn may_pass_on(
    ask: &Ask<'_>,
    key: &Key,
    own: &Grant,
    (operations, constraints): (&[String], Option<&Value>),
) -> Result<(), ApiError> {
    let fits = operations.iter().all(|operation| own.operations.contains(operation))
        && (own.constraints.is_none() || own.constraints.as_ref() == constraints);
    if fits { Ok(()) } else { Err(refuse::beyond_grant(ask, key)) }
}

fn not_found(id: &str) -> ApiError {
    ApiError::client("NotFoundException", format!("Grant ID {id} not found"))
}

/// The refusal of a grant that does not exist. Who may retire grants of the named key, or of any key, is told so.
fn missing_grant(ask: &Ask<'_>, id: &str) -> ApiError {
    let refusal = match ask.input.text("KeyId") {
        Some(key) => refusal_of_missing(ask.call, "RetireGrant", key),
        None => own_refusal(ask.call, "RetireGrant", key_arn(ask.region(), ask.account(), "key/*")),
    };
    refusal.unwrap_or_else(|| not_found(id))
}

impl Kms {
    pub(super) fn create_grant(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let grantee = ask.input.required("GranteePrincipal")?.to_owned();
        let operations = operations(ask)?;
        let mut state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?.clone();
        let constraints = ask.input.0.get("Constraints").cloned();
        if let Permit::Grant(own) = demand(ask, &state, &key)? {
            may_pass_on(ask, &key, own, (&operations, constraints.as_ref()))?;
        }
        refuse_managed(ask, &key)?;
        check_state(&key)?;
        ask.end_dry_run()?;
        if state.grants().values().filter(|grant| grant.key == key.id).count() >= GRANTS {
            let message = format!("{} has {GRANTS} grants, which is the limit.", key.arn());
            return Err(ApiError::client("LimitExceededException", message));
        }
        let mut bytes = [0; 64];
        self.vault.fill(&mut bytes).ok_or_else(|| refuse::failed("the system has no random bytes"))?;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let grant = Grant {
            id: hex[..64].to_owned(),
            token: hex,
            key: key.id,
            grantee,
            retiring: ask.input.text("RetiringPrincipal").map(str::to_owned),
            operations,
            name: ask.input.text("Name").map(str::to_owned),
            constraints,
            issuer: format!("arn:{}:iam::{}:root", partition::of_region(ask.region()), ask.account()),
            created_ms: ask.now(),
        };
        // A repeated call with the name of a grant is answered with that one.
        let same = |other: &&Grant| {
            grant.name.is_some()
                && (
                    &other.key,
                    &other.name,
                    &other.grantee,
                    &other.retiring,
                    &other.operations,
                    &other.constraints,
                ) == (
                    &grant.key,
                    &grant.name,
                    &grant.grantee,
                    &grant.retiring,
                    &grant.operations,
                    &grant.constraints,
                )
        };
        let known = state.grants().values().find(same).cloned();
        let grant = match known {
            Some(known) => known,
            None => {
                state.commit(vec![Change::Grant(grant.clone())])?;
                grant
            }
        };
        Ok(Map::from_iter([
            ("GrantToken".to_owned(), grant.token.into()),
            ("GrantId".to_owned(), grant.id.into()),
        ]))
    }

    pub(super) fn list_grants(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?;
        let (id, grantee) = (ask.input.text("GrantId"), ask.input.text("GranteePrincipal"));
        let grants = state.grants().values().filter(|grant| {
            grant.key == key.id
                && id.is_none_or(|id| id == grant.id)
                && grantee.is_none_or(|grantee| grantee == grant.grantee)
        });
        ask.input.page("Grants", (50, 100), grants.map(|grant| (grant.id.as_str(), row(&state, grant))))
    }

    pub(super) fn list_retirable_grants(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        demand_any(ask)?;
        let retiring = ask.input.required("RetiringPrincipal")?;
        let state = self.state.lock();
        let grants = state.grants().values().filter(|grant| grant.retiring.as_deref() == Some(retiring));
        ask.input.page("Grants", (50, 100), grants.map(|grant| (grant.id.as_str(), row(&state, grant))))
    }

    pub(super) fn revoke_grant(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let id = ask.input.required("GrantId")?;
        let mut state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?;
        state.grants().get(id).filter(|grant| grant.key == key.id).ok_or_else(|| not_found(id))?;
        ask.end_dry_run()?;
        state.commit(vec![Change::DropGrant(id.to_owned())])?;
        Ok(Map::new())
    }

    pub(super) fn retire_grant(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let grant = match (ask.input.text("GrantToken"), ask.input.text("GrantId")) {
            (Some(token), _) => {
                let found = state.grants().values().find(|grant| grant.token == token);
                let bad = || ApiError::client("InvalidGrantTokenException", "The grant token is not valid.");
                found.ok_or_else(bad)?.clone()
            }
            (None, Some(id)) => {
                // A key that the call names is the grant's.
                let named = ask.input.text("KeyId").map(|text| state.key(ask, text).ok());
                let is_its =
                    |grant: &&Grant| named.is_none_or(|key| key.is_some_and(|key| key.id == grant.key));
                state.grants().get(id).filter(is_its).ok_or_else(|| missing_grant(ask, id))?.clone()
            }
            (None, None) => return Err(refuse::missing("GrantToken")),
        };
        let key = state.keys().get(&grant.key).ok_or_else(|| not_found(&grant.id))?;
        let caller = ask.call.caller;
        let is_its = grant.retiring.as_deref().is_some_and(|retiring| caller.is_named(retiring))
            || (caller.is_named(&grant.grantee)
                && grant.operations.iter().any(|operation| operation == "RetireGrant"));
        demand_with(ask, "RetireGrant", key, is_its.then_some(&grant))?;
        ask.end_dry_run()?;
        state.commit(vec![Change::DropGrant(grant.id)])?;
        Ok(Map::new())
    }
}
