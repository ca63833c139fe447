//! Locks of rules: a locked rule is neither changed nor deleted, and stays so for some days after it is unlocked.
//!
//! Source: "Lock a Recycle Bin retention rule" and "Unlock a Recycle Bin retention rule", EBS user guide. The messages are not
//! published.

use serde_json::{Map, Value, json};

use super::{Ask, Rbin, error, invalid, members};
use crate::ApiError;
use crate::ec2::bin::{Rule, RuleLock, RuleLockState};

/// What an answer has of a rule's lock; nothing of one that was never locked.
pub(super) fn shown(ask: &Ask<'_>, rule: &Rule) -> Map<String, Value> {
    let mut shown = Map::new();
    let Some(lock) = rule.lock else { return shown };
    let state = lock.state(ask.call.now_ms);
    shown.insert("LockState".to_owned(), name(state).into());
    if state != RuleLockState::Unlocked {
        let delay = json!({"UnlockDelayValue": lock.delay_days, "UnlockDelayUnit": "DAYS"});
        shown.insert("LockConfiguration".to_owned(), json!({ "UnlockDelay": delay }));
    }
    if let RuleLockState::Pending { ends_ms } = state {
        shown.insert("LockEndTime".to_owned(), (ends_ms / 1_000).into());
    }
    shown
}

const fn name(state: RuleLockState) -> &'static str {
    match state {
        RuleLockState::Locked => "locked",
        RuleLockState::Pending { .. } => "pending_unlock",
        RuleLockState::Unlocked => "unlocked",
    }
}

/// Whether a rule is in the lock state that a call asks for; every rule is where it asks for none.
pub(super) fn is_in(ask: &Ask<'_>, rule: &Rule) -> bool {
    let state = rule.lock.map(|lock| name(lock.state(ask.call.now_ms)));
    ask.text("LockState").is_none_or(|asked| state == Some(asked))
}

/// Refuses to change or delete a rule that is locked.
pub(super) fn refuse_locked(ask: &Ask<'_>, rule: &Rule) -> Result<(), ApiError> {
    match rule.lock.map(|lock| lock.state(ask.call.now_ms)) {
        Some(RuleLockState::Locked) => {
            Err(conflict(format!("The rule '{}' is locked. Unlock it first.", rule.id)))
        }
        Some(RuleLockState::Pending { ends_ms }) => {
            let end = jiff::Timestamp::from_millisecond(i64::try_from(ends_ms).unwrap_or(i64::MAX));
            let end = end.unwrap_or(jiff::Timestamp::MAX);
            Err(conflict(format!("The rule '{}' is locked until its unlock delay ends at {end}.", rule.id)))
        }
        Some(RuleLockState::Unlocked) | None => Ok(()),
    }
}

/// The lock that a call gives a rule; none where it gives none.
pub(super) fn asked(ask: &Ask<'_>, rule: &Rule) -> Result<Option<RuleLock>, ApiError> {
    let Some(configuration) = ask.call.input.get("LockConfiguration") else { return Ok(None) };
    if !rule.of.is_empty() || !rule.but.is_empty() {
        return Err(invalid("A rule with ResourceTags or ExcludeResourceTags cannot be locked."));
    }
    // The model has checked the days, 7 to 30, and the unit.
    let days = configuration["UnlockDelay"]["UnlockDelayValue"].as_u64().unwrap_or_default();
    Ok(Some(RuleLock { delay_days: days, unlocked_ms: None }))
}

fn conflict(message: impl Into<String>) -> ApiError {
    error("ConflictException", "INVALID_RULE_STATE", message, 409)
}

impl Rbin {
    pub(super) fn lock_rule(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut rule = self.named(ask, ask.text("Identifier").unwrap_or_default())?;
        let given = asked(ask, &rule)?;
        match (rule.lock, given) {
            (Some(old), _) if old.state(ask.call.now_ms) == RuleLockState::Locked => {
                return Err(conflict(format!("The rule '{}' is locked already.", rule.id)));
            }
            (Some(old), Some(new))
                if old.state(ask.call.now_ms) != RuleLockState::Unlocked
                    && old.delay_days != new.delay_days =>
            {
                let message =
                    format!("The unlock delay of rule '{}' stays {} days.", rule.id, old.delay_days);
                return Err(conflict(message));
            }
            _ => rule.lock = given,
        }
        self.put(ask, &rule)?;
        Ok(members(ask, &rule))
    }

    pub(super) fn unlock_rule(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut rule = self.named(ask, ask.text("Identifier").unwrap_or_default())?;
        let now_ms = ask.call.now_ms;
        match &mut rule.lock {
            Some(lock) if lock.state(now_ms) == RuleLockState::Locked => lock.unlocked_ms = Some(now_ms),
            _ => return Err(conflict(format!("The rule '{}' is not locked.", rule.id))),
        }
        self.put(ask, &rule)?;
        Ok(members(ask, &rule))
    }
}
