//! Keys: made, described, enabled, disabled, deleted.

use serde_json::{Map, Value, json};

use super::db::Change;
use super::input::seconds;
use super::policies::{checked, default_policy, demand_any, permitted, refusal_of_missing, refuse_managed};
use super::records::{Key, KeyState};
use super::tags;
use super::{Ask, Kms, refuse};
use crate::ApiError;

/// Least and most days until a key is deleted, and the days where a call names none.
const WINDOW_DAYS: (u64, u64) = (7, 30);
const USUAL_DAYS: u64 = 30;
const DAY_MS: u64 = 86_400_000;
/// Most characters of a description.
const DESCRIPTION_CHARS: usize = 8_192;
/// Most keys of an account in a Region (KMS developer guide, `resource-limits`).
const KEYS: usize = 100_000;

/// What answers have of a key.
fn metadata(key: &Key) -> Value {
    let mut members = json!({
        "AWSAccountId": key.owner,
        "Arn": key.arn(),
        "CreationDate": seconds(key.created_ms),
        "CustomerMasterKeySpec": "SYMMETRIC_DEFAULT",
        "Description": key.description,
        "Enabled": key.state == KeyState::Enabled,
        "EncryptionAlgorithms": ["SYMMETRIC_DEFAULT"],
        "KeyId": key.id,
        "KeyManager": if key.is_managed { "AWS" } else { "CUSTOMER" },
        "KeySpec": "SYMMETRIC_DEFAULT",
        "KeyState": key.state.name(),
        "KeyUsage": "ENCRYPT_DECRYPT",
        "MultiRegion": false,
        "Origin": "AWS_KMS",
    });
    if let KeyState::PendingDeletion { at_ms, .. } = key.state {
        members["DeletionDate"] = seconds(at_ms);
    }
    members
}

fn described(key: &Key) -> Map<String, Value> {
    Map::from_iter([("KeyMetadata".to_owned(), metadata(key))])
}

/// Refuses keys that are not symmetric and made here.
fn refuse_unbuilt(ask: &Ask<'_>) -> Result<(), ApiError> {
    let input = ask.input;
    for member in ["KeySpec", "CustomerMasterKeySpec"] {
        if let Some(other) = input.text(member).filter(|spec| *spec != "SYMMETRIC_DEFAULT") {
            return Err(refuse::unsupported(&format!("{member} {other}")));
        }
    }
    if let Some(other) = input.text("KeyUsage").filter(|usage| *usage != "ENCRYPT_DECRYPT") {
        return Err(refuse::unsupported(&format!("KeyUsage {other}")));
    }
    if let Some(other) = input.text("Origin").filter(|origin| *origin != "AWS_KMS") {
        return Err(refuse::unsupported(&format!("Origin {other}")));
    }
    if input.flag("MultiRegion") == Some(true) {
        return Err(refuse::unsupported("MultiRegion"));
    }
    match input.text("CustomKeyStoreId").or(input.text("XksKeyId")) {
        Some(_) => Err(refuse::unsupported("A custom key store")),
        None => Ok(()),
    }
}

fn description(ask: &Ask<'_>) -> Result<String, ApiError> {
    let text = ask.input.text("Description").unwrap_or_default();
    match text.chars().count() {
        chars if chars > DESCRIPTION_CHARS => Err(refuse::validation(format!(
            "Description has {chars} characters; it has at most {DESCRIPTION_CHARS}."
        ))),
        _ => Ok(text.to_owned()),
    }
}

impl Kms {
    pub(super) fn create_key(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        demand_any(ask)?;
        refuse_unbuilt(ask)?;
        let mut key = Key {
            tags: tags::of(ask)?,
            description: description(ask)?,
            ..self.new_key(ask.account(), ask.region(), ask.now())?
        };
        if let Some(policy) = ask.input.text("Policy") {
            key.policy = checked(ask, &key, policy)?;
        }
        let mut state = self.state.lock();
        let own = |key: &&Key| key.owner == ask.account() && key.region == ask.region();
        if state.keys().values().filter(own).count() >= KEYS {
            let message = format!("You have reached the limit of {KEYS} keys.");
            return Err(ApiError::client("LimitExceededException", message));
        }
        state.commit(vec![Change::Key(Box::new(key.clone()))])?;
        Ok(described(&key))
    }

    /// A key with new material, not recorded yet.
    pub(super) fn new_key(&self, account: &str, region: &str, now_ms: u64) -> Result<Key, ApiError> {
        let id = self.vault.uuid().ok_or_else(|| refuse::failed("the system has no random bytes"))?;
        let material = self.vault.new_material(&id);
        let material = material.ok_or_else(|| refuse::failed("the system has no random bytes"))?;
        Ok(Key {
            id,
            owner: account.to_owned(),
            region: region.to_owned(),
            description: String::new(),
            created_ms: now_ms,
            state: KeyState::Enabled,
            is_managed: false,
            policy: default_policy(region, account),
            tags: std::collections::BTreeMap::new(),
            material,
            schedule: None,
            rotations: Vec::new(),
        })
    }

    pub(super) fn describe_key(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let name = ask.input.required("KeyId")?;
        let known = self.state.lock().key(ask, name).is_ok();
        if !known && refusal_of_missing(ask.call, ask.call.action, name).is_none() {
            self.make_managed(ask.call, name)?;
        }
        let state = self.state.lock();
        Ok(described(permitted(ask, &state, name)?))
    }

    pub(super) fn list_keys(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        demand_any(ask)?;
        let state = self.state.lock();
        let own =
            state.keys().values().filter(|key| key.owner == ask.account() && key.region == ask.region());
        let row = |key: &Key| json!({"KeyId": key.id, "KeyArn": key.arn()});
        ask.input.page("Keys", (100, 1_000), own.map(|key| (key.id.as_str(), row(key))))
    }

    /// Changes the state of a key that is not managed by AWS.
    fn change_state(
        &self,
        ask: &Ask<'_>,
        change: impl FnOnce(&Key) -> Result<KeyState, ApiError>,
    ) -> Result<Key, ApiError> {
        let mut state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?.clone();
        refuse_managed(ask, &key)?;
        let key = Key { state: change(&key)?, ..key };
        state.commit(vec![Change::Key(Box::new(key.clone()))])?;
        Ok(key)
    }

    pub(super) fn enable_key(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        self.change_state(ask, |key| match key.state {
            KeyState::PendingDeletion { .. } => Err(refuse::wrong_state(key)),
            _ => Ok(KeyState::Enabled),
        })?;
        Ok(Map::new())
    }

    pub(super) fn disable_key(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        self.change_state(ask, |key| match key.state {
            KeyState::PendingDeletion { .. } => Err(refuse::wrong_state(key)),
            _ => Ok(KeyState::Disabled),
        })?;
        Ok(Map::new())
    }

    pub(super) fn schedule_key_deletion(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let window_days = ask.input.bounded("PendingWindowInDays", WINDOW_DAYS)?.unwrap_or(USUAL_DAYS);
        let at_ms = ask.now().saturating_add(window_days * DAY_MS);
        let key = self.change_state(ask, |key| match key.state {
            KeyState::PendingDeletion { .. } => Err(refuse::wrong_state(key)),
            _ => Ok(KeyState::PendingDeletion { at_ms, window_days }),
        })?;
        Ok(Map::from_iter([
            ("KeyId".to_owned(), key.arn().into()),
            ("DeletionDate".to_owned(), seconds(at_ms)),
            ("KeyState".to_owned(), key.state.name().into()),
            ("PendingWindowInDays".to_owned(), window_days.into()),
        ]))
    }

    pub(super) fn cancel_key_deletion(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        // As AWS does it, the key is disabled after that.
        let key = self.change_state(ask, |key| match key.state {
            KeyState::PendingDeletion { .. } => Ok(KeyState::Disabled),
            _ => Err(ApiError::client(
                "KMSInvalidStateException",
                format!("{} is not pending deletion.", key.arn()),
            )),
        })?;
        Ok(Map::from_iter([("KeyId".to_owned(), key.arn().into())]))
    }

    pub(super) fn update_key_description(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?.clone();
        refuse_managed(ask, &key)?;
        if matches!(key.state, KeyState::PendingDeletion { .. }) {
            return Err(refuse::wrong_state(&key));
        }
        state.commit(vec![Change::Key(Box::new(Key { description: description(ask)?, ..key }))])?;
        Ok(Map::new())
    }
}
