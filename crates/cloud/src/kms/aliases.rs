//! Aliases of keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::db::Change;
use super::input::seconds;
use super::names::is_alias;
use super::policies::{demand, demand_alias, demand_any, key_arn, permitted, refuse_managed};
use super::records::{Alias, Key, KeyState};
use super::state::State;
use super::{Ask, DEFAULT_ALIAS, Kms, refuse};
use crate::ApiError;

/// What begins the names that are AWS's own.
const RESERVED: &str = "alias/aws/";

/// The name of an alias that a caller may have.
fn name<'a>(ask: &Ask<'a>) -> Result<&'a str, ApiError> {
    let name = ask.input.required("AliasName")?;
    if !name.starts_with("alias/") {
        let message = "Alias must start with the prefix \"alias/\". Please see \
                       https://docs.aws.amazon.com/kms/latest/developerguide/kms-alias.html";
        return Err(refuse::validation(message));
    }
    if !is_alias(name) {
        let message = format!(
            "1 validation error detected: Value '{name}' at 'aliasName' failed to satisfy constraint: Member must \
             satisfy regular expression pattern: ^alias/[a-zA-Z0-9/_-]+$"
        );
        return Err(refuse::validation(message));
    }
    if name.starts_with(RESERVED) {
        let message = format!("The alias name prefix {RESERVED} is reserved for AWS managed keys.");
        return Err(ApiError::client("NotAuthorizedException", message));
    }
    Ok(name)
}

fn arn(ask: &Ask<'_>, name: &str) -> String {
    key_arn(ask.region(), ask.account(), name)
}

/// A key that a caller may give an alias.
fn target<'a>(ask: &Ask<'_>, state: &'a State) -> Result<&'a Key, ApiError> {
    let id = ask.input.required("TargetKeyId")?;
    if id.starts_with("alias/") {
        return Err(refuse::validation("Aliases must refer to keys. Not aliases"));
    }
    let key = permitted(ask, state, id)?;
    refuse_managed(ask, key)?;
    if matches!(key.state, KeyState::PendingDeletion { .. }) {
        return Err(refuse::wrong_state(key));
    }
    Ok(key)
}

impl Kms {
    pub(super) fn create_alias(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let name = name(ask)?;
        let mut state = self.state.lock();
        let arn = arn(ask, name);
        demand_alias(ask, &arn)?;
        let key = target(ask, &state)?.id.clone();
        if state.aliases().contains_key(&arn) {
            let message = format!("An alias with the name {arn} already exists");
            return Err(ApiError::client("AlreadyExistsException", message));
        }
        let alias = Alias {
            name: name.to_owned(),
            owner: ask.account().to_owned(),
            region: ask.region().to_owned(),
            key,
            created_ms: ask.now(),
            updated_ms: ask.now(),
        };
        state.commit(vec![Change::Alias(alias)])?;
        Ok(Map::new())
    }

    pub(super) fn update_alias(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let name = name(ask)?;
        let mut state = self.state.lock();
        let arn = arn(ask, name);
        demand_alias(ask, &arn)?;
        let alias = state.aliases().get(&arn).cloned().ok_or_else(|| refuse::alias_not_found(&arn))?;
        // The right to the present key, too: the alias is taken from it.
        if let Some(key) = state.keys().get(&alias.key) {
            demand(ask, &state, key)?;
        }
        let key = target(ask, &state)?.id.clone();
        state.commit(vec![Change::Alias(Alias { key, updated_ms: ask.now(), ..alias })])?;
        Ok(Map::new())
    }

    pub(super) fn delete_alias(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let name = name(ask)?;
        let mut state = self.state.lock();
        let arn = arn(ask, name);
        demand_alias(ask, &arn)?;
        let alias = state.aliases().get(&arn).ok_or_else(|| refuse::alias_not_found(&arn))?;
        if let Some(key) = state.keys().get(&alias.key) {
            demand(ask, &state, key)?;
        }
        state.commit(vec![Change::DropAlias(arn)])?;
        Ok(Map::new())
    }

    pub(super) fn list_aliases(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        demand_any(ask)?;
        let state = self.state.lock();
        let key = ask.input.text("KeyId").map(|id| state.own_key(ask, id)).transpose()?;
        let own = state.aliases().values().filter(|alias| {
            alias.owner == ask.account()
                && alias.region == ask.region()
                && key.is_none_or(|key| key.id == alias.key)
        });
        let row = |alias: &Alias| {
            json!({
                "AliasName": alias.name,
                "AliasArn": alias.arn(),
                "TargetKeyId": alias.key,
                "CreationDate": seconds(alias.created_ms),
                "LastUpdatedDate": seconds(alias.updated_ms),
            })
        };
        let mut rows: BTreeMap<&str, Value> = own.map(|alias| (alias.name.as_str(), row(alias))).collect();
        // A predefined alias is there before its key, and has neither that nor dates (KMS API reference, ListAliases).
        let predefined = arn(ask, DEFAULT_ALIAS);
        if key.is_none() && !state.aliases().contains_key(&predefined) {
            rows.insert(DEFAULT_ALIAS, json!({"AliasName": DEFAULT_ALIAS, "AliasArn": predefined}));
        }
        ask.input.page("Aliases", (50, 100), rows.into_iter())
    }
}
