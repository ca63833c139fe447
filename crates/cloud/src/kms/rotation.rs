//! Rotation: new material under the same key. What was encrypted before stays readable, by the material of its time.
//!
//! A key is rotated after each period while that is enabled, and when a caller asks for it. KMS's API reference of
//! EnableKeyRotation, RotateKeyOnDemand and GetKeyRotationStatus is the source of the rules.

use serde_json::{Map, Value, json};

use super::cryptography::check_state;
use super::db::Change;
use super::input::seconds;
use super::policies::{permitted, refuse_managed};
use super::records::{Key, KeyState, RotationKind, RotationRecord, Schedule};
use super::{Ask, Kms, refuse};
use crate::ApiError;

/// Least and most days between rotations, and the days where a call names none.
const PERIOD_DAYS: (u64, u64) = (90, 2_560);
const USUAL_DAYS: u64 = 365;
const DAY_MS: u64 = 86_400_000;
/// Most rotations on demand of a key in all.
const ON_DEMAND: usize = 25;

impl Schedule {
    fn from(now_ms: u64, period_days: u64) -> Self {
        Self { period_days, next_ms: now_ms.saturating_add(period_days * DAY_MS) }
    }

    /// That of a key that AWS manages: each year, which nobody changes.
    pub(super) fn managed(created_ms: u64) -> Self {
        Self::from(created_ms, USUAL_DAYS)
    }
}

impl Kms {
    /// The same key with new material.
    fn rotated(&self, key: Key, now_ms: u64, kind: RotationKind) -> Result<Key, ApiError> {
        let material = self.vault.new_material(&key.id);
        let material = material.ok_or_else(|| refuse::failed("the system has no random bytes"))?;
        let mut rotations = key.rotations;
        rotations.push(RotationRecord { rotated_ms: now_ms, kind, earlier_material: key.material });
        Ok(Key { material, rotations, ..key })
    }

    /// Rotates the keys whose time has come. A key that cannot be used is not rotated until it can be again.
    pub(super) fn rotate_due(&self, now_ms: u64) -> Result<(), ApiError> {
        let mut state = self.state.lock();
        let is_due = |key: &&Key| {
            key.state == KeyState::Enabled && key.schedule.is_some_and(|schedule| schedule.next_ms <= now_ms)
        };
        let due: Vec<Key> = state.keys().values().filter(is_due).cloned().collect();
        if due.is_empty() {
            return Ok(());
        }
        let rotate = |key: Key| {
            let schedule = key.schedule.map(|schedule| Schedule::from(now_ms, schedule.period_days));
            let key = Key { schedule, ..self.rotated(key, now_ms, RotationKind::Automatic)? };
            Ok(Change::Key(Box::new(key)))
        };
        let changes = due.into_iter().map(rotate).collect::<Result<_, ApiError>>()?;
        state.commit(changes)
    }

    /// Changes the rotation of a key that is enabled and not managed by AWS.
    fn change_rotation(
        &self,
        ask: &Ask<'_>,
        change: impl FnOnce(Key) -> Result<Key, ApiError>,
    ) -> Result<String, ApiError> {
        let mut state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?.clone();
        refuse_managed(ask, &key)?;
        check_state(&key)?;
        let key = change(key)?;
        let arn = key.arn();
        state.commit(vec![Change::Key(Box::new(key))])?;
        Ok(arn)
    }

    pub(super) fn enable_key_rotation(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let period_days = ask.input.bounded("RotationPeriodInDays", PERIOD_DAYS)?.unwrap_or(USUAL_DAYS);
        self.change_rotation(ask, |key| {
            // The same setting once more does not move the next rotation.
            let same = key.schedule.filter(|schedule| schedule.period_days == period_days);
            let schedule = same.unwrap_or_else(|| Schedule::from(ask.now(), period_days));
            Ok(Key { schedule: Some(schedule), ..key })
        })?;
        Ok(Map::new())
    }

    pub(super) fn disable_key_rotation(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        self.change_rotation(ask, |key| Ok(Key { schedule: None, ..key }))?;
        Ok(Map::new())
    }

    pub(super) fn rotate_key_on_demand(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let arn = self.change_rotation(ask, |key| {
            let made = key.rotations.iter().filter(|rotation| rotation.kind == RotationKind::OnDemand);
            if made.count() >= ON_DEMAND {
                let message = format!(
                    "{} was rotated on demand {ON_DEMAND} times, the most that a key can be.",
                    key.arn()
                );
                return Err(ApiError::client("LimitExceededException", message));
            }
            self.rotated(key, ask.now(), RotationKind::OnDemand)
        })?;
        Ok(Map::from_iter([("KeyId".to_owned(), arn.into())]))
    }

    pub(super) fn get_key_rotation_status(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?;
        // While a key is pending deletion its status is false; the setting comes back when that is cancelled.
        let is_pending = matches!(key.state, KeyState::PendingDeletion { .. });
        let schedule = key.schedule.filter(|_| !is_pending);
        let mut status = Map::from_iter([
            ("KeyId".to_owned(), key.arn().into()),
            ("KeyRotationEnabled".to_owned(), schedule.is_some().into()),
        ]);
        if let Some(Schedule { period_days, next_ms }) = schedule {
            status.insert("RotationPeriodInDays".to_owned(), period_days.into());
            status.insert("NextRotationDate".to_owned(), seconds(next_ms));
        }
        Ok(status)
    }

    pub(super) fn list_key_rotations(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        if let Some(other) = ask.input.text("IncludeKeyMaterial").filter(|wanted| *wanted != "ROTATIONS_ONLY")
        {
            return Err(refuse::unsupported(&format!("IncludeKeyMaterial {other}")));
        }
        let state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?;
        let rows: Vec<(String, Value)> = (0_usize..)
            .zip(&key.rotations)
            .map(|(number, rotation)| {
                let row = json!({
                    "KeyId": key.arn(),
                    "RotationDate": seconds(rotation.rotated_ms),
                    "RotationType": rotation.kind.name(),
                });
                // Markers are compared as text.
                (format!("{number:010}"), row)
            })
            .collect();
        ask.input.page(
            "Rotations",
            (100, 1_000),
            rows.iter().map(|(marker, row)| (marker.as_str(), row.clone())),
        )
    }
}
