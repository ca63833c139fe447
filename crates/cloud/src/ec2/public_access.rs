//! Block public access for snapshots: Get-, Enable- and Disable (EBS user guide, `block-public-access-snapshots`).

use serde_json::{Map, Value, json};

use super::ask::{Ask, Members};
use super::db::Change;
use super::records::{Setting, Snapshot};
use super::state::{State, is_of};
use super::{Ec2, access, refuse};
use crate::ApiError;

const UNBLOCKED: &str = "unblocked";
const BLOCK_ALL: &str = "block-all-sharing";
const BLOCK_NEW: &str = "block-new-sharing";

fn key(ask: &Ask<'_>) -> String {
    format!("public-access/{}/{}", ask.account(), ask.region())
}

fn present(ask: &Ask<'_>, state: &State) -> String {
    state.setting(&key(ask)).unwrap_or_else(|| UNBLOCKED.to_owned())
}

/// Refuses to share a snapshot with everyone where the caller's account forbids it.
pub(super) fn demand_unblocked(ask: &Ask<'_>, state: &State) -> Result<(), ApiError> {
    if present(ask, state) == UNBLOCKED {
        return Ok(());
    }
    let message = "Block public access for snapshots is enabled in this account and Region: a snapshot cannot be \
                   shared publicly.";
    Err(ApiError::client("OperationNotPermitted", message))
}

/// Sets the state. Snapshots that are public are not while all sharing is blocked, and are again afterwards.
fn set(ask: &Ask<'_>, state: &mut State, to: &str) -> Result<(), ApiError> {
    let hides = to == BLOCK_ALL;
    let concerned = |snapshot: &&Snapshot| {
        let permissions = &snapshot.permissions;
        is_of(ask, &snapshot.owner, &snapshot.region)
            && (if hides { permissions.all } else { permissions.all_blocked })
    };
    let changed = state.snapshots().values().filter(concerned).cloned().map(|mut snapshot| {
        (snapshot.permissions.all, snapshot.permissions.all_blocked) = (!hides, hides);
        Change::Snapshot(snapshot)
    });
    let mut changes: Vec<_> = changed.collect();
    changes.push(Change::Setting(Setting { key: key(ask), value: json!(to) }));
    state.commit(changes)
}

impl Ec2 {
    pub(super) fn get_snapshot_block_public_access_state(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        let state = present(ask, &self.state.lock());
        Ok(Members::default().put("State", state).put("ManagedBy", "account").end())
    }

    pub(super) fn enable_snapshot_block_public_access(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        let to = ask.input.required("State", "state")?;
        if !matches!(to, BLOCK_ALL | BLOCK_NEW) {
            return Err(refuse::unknown_value(to, "state"));
        }
        ask.end_dry_run()?;
        set(ask, &mut self.state.lock(), to)?;
        Ok(Members::default().put("State", to).end())
    }

    pub(super) fn disable_snapshot_block_public_access(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        access::demand_any(ask)?;
        ask.end_dry_run()?;
        set(ask, &mut self.state.lock(), UNBLOCKED)?;
        Ok(Members::default().put("State", UNBLOCKED).end())
    }
}
