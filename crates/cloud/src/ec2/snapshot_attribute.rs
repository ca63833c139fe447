//! Who may use a snapshot: Describe-, Modify- and ResetSnapshotAttribute.

use serde_json::{Map, Value, json};

use super::ask::{Ask, Input, Members};
use super::db::Change;
use super::describe_snapshots::unknown_attribute;
use super::ids::Kind;
use super::records::{Permissions, Snapshot};
use super::state::State;
use super::{Ec2, access, events, public_access, refuse, tier};
use crate::ApiError;

/// Most changes of a call.
const CHANGES: usize = 500;

const PERMISSION: &str = "createVolumePermission";

/// What a call adds or removes.
#[derive(Debug, Default)]
struct Modification {
    adds: bool,
    users: Vec<String>,
    all: bool,
}

impl Modification {
    /// Reads either form: `CreateVolumePermission`, or `OperationType` with accounts and groups. Both together are one
    /// operation where they are of the same direction.
    fn read(input: Input<'_>) -> Result<Self, ApiError> {
        if let Some(attribute) = input.text("Attribute").filter(|attribute| *attribute != PERMISSION) {
            return Err(unknown_attribute(attribute));
        }
        let one_only = || {
            refuse::invalid_combination(
                "One and only one operation type may be specified for createVolumePermissions",
            )
        };
        let permission = input.structure("CreateVolumePermission");
        let listed = |member| permission.map(|given| given.structures(member)).unwrap_or_default();
        let (add, remove) = (listed("Add"), listed("Remove"));
        let operation = input.text("OperationType").filter(|operation| !operation.is_empty());
        let operation = match operation {
            None => None,
            Some("add") => Some(true),
            Some("remove") => Some(false),
            Some(other) => return Err(refuse::unknown_value(other, "operationType")),
        };
        let (adds, listed) = match (add.is_empty(), remove.is_empty(), operation) {
            (false, true, None | Some(true)) => (true, add),
            (true, false, None | Some(false)) => (false, remove),
            (true, true, Some(adds)) => (adds, Vec::new()),
            _ => return Err(one_only()),
        };
        let texts = |name| input.texts(name).into_iter().map(str::to_owned);
        let mut users = members(&listed, "UserId");
        let mut groups = members(&listed, "Group");
        users.extend(texts("UserIds").filter(|_| operation.is_some()));
        groups.extend(texts("GroupNames").filter(|_| operation.is_some()));
        Self { adds, users, all: !groups.is_empty() }.checked(&groups)
    }

    fn checked(self, groups: &[String]) -> Result<Self, ApiError> {
        if self.users.len() + groups.len() > CHANGES {
            return Err(refuse::invalid_value(format!(
                "Modification size must not be greater than {CHANGES}."
            )));
        }
        let invalid = |message| Err(ApiError::client("InvalidAMIAttributeItemValue", message));
        let account = |user: &&String| user.len() == 12 && user.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(user) = self.users.iter().find(|user| !account(user)) {
            return invalid(format!("UserId ({user}) is invalid."));
        }
        if let Some(group) = groups.iter().find(|group| *group != "all") {
            return invalid(format!("UserGroup ({group}) is invalid."));
        }
        if self.users.is_empty() && groups.is_empty() {
            return Err(refuse::missing("userId"));
        }
        Ok(self)
    }

    fn apply(&self, permissions: &mut Permissions) {
        if self.all {
            (permissions.all, permissions.all_blocked) = (self.adds, false);
        }
        for user in &self.users {
            if self.adds {
                permissions.users.insert(user.clone());
            } else {
                permissions.users.remove(user);
            }
        }
    }
}

fn members(given: &[Input<'_>], name: &str) -> Vec<String> {
    given.iter().filter_map(|one| one.text(name)).map(str::to_owned).collect()
}

/// The snapshot of a call, by the order of the checks of Describe and Reset: rights, DryRun, the id, existence.
fn checked(ask: &Ask<'_>, state: &State) -> Result<Snapshot, ApiError> {
    let id = ask.input.text("SnapshotId").unwrap_or_default();
    let found = state.snapshot(ask, id).ok();
    access::maybe_snapshot(ask, ask.call.action, found, id).demand(ask)?;
    ask.end_dry_run()?;
    ask.input.required("SnapshotId", "snapshotId")?;
    Kind::Snapshot.check(id, "snapshotId")?;
    Ok(state.snapshot(ask, id)?.clone())
}

impl Ec2 {
    pub(super) fn describe_snapshot_attribute(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let snapshot = checked(ask, &self.state.lock())?;
        let mut members = Members::default();
        members.put("SnapshotId", snapshot.id.as_str());
        match ask.input.text("Attribute").unwrap_or_default() {
            PERMISSION => {
                let Permissions { users, all, .. } = &snapshot.permissions;
                let group = all.then(|| json!({"Group": "all"}));
                let users = users.iter().map(|user| json!({"UserId": user}));
                members.put("CreateVolumePermissions", group.into_iter().chain(users).collect::<Value>())
            }
            "productCodes" => members.put("ProductCodes", json!([])),
            other => return Err(unknown_attribute(other)),
        };
        Ok(members.end())
    }

    pub(super) fn modify_snapshot_attribute(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let change = Modification::read(ask.input)?;
        let id = ask.input.required("SnapshotId", "snapshotId")?;
        Kind::Snapshot.check(id, "snapshotId")?;
        let mut state = self.state.lock();
        let found = state.snapshot(ask, id).ok();
        let mut right = access::maybe_snapshot(ask, "ModifySnapshotAttribute", found, id);
        let verb = if change.adds { "Add" } else { "Remove" };
        for user in &change.users {
            right = right.with(format!("ec2:{verb}/userId"), user);
        }
        if change.all {
            right = right.with(format!("ec2:{verb}/group"), "all");
        }
        right.changes("Attribute", PERMISSION).demand(ask)?;
        let mut snapshot = state.snapshot(ask, id)?.clone();
        ask.end_dry_run()?;
        if let Some(key) = snapshot.kms_key.as_ref().filter(|_| change.adds) {
            let is_managed = self.kms.as_ref().is_some_and(|kms| kms.is_managed(key));
            let refused = |text| Err(ApiError::client("OperationNotPermitted", text));
            if change.all {
                return refused("Encrypted snapshots cannot be shared publicly.");
            }
            if is_managed {
                return refused("Encrypted snapshots with EBS default key cannot be shared");
            }
        }
        if change.adds {
            if change.all {
                public_access::demand_unblocked(ask, &state)?;
            }
            tier::demand_standard(&snapshot, "shared", ask.now())?;
        }
        let before = snapshot.permissions.users.clone();
        change.apply(&mut snapshot.permissions);
        self.end_fast_restores_of_strangers(ask.now(), &mut snapshot);
        state.commit(vec![Change::Snapshot(snapshot.clone())])?;
        for account in snapshot.permissions.users.difference(&before) {
            self.expect(events::of_share(&snapshot, account, ask.now()));
        }
        Ok(Map::new())
    }

    pub(super) fn reset_snapshot_attribute(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let mut state = self.state.lock();
        let snapshot = checked(ask, &state)?;
        match ask.input.text("Attribute").unwrap_or_default() {
            PERMISSION => {}
            other => return Err(unknown_attribute(other)),
        }
        let mut reset = Snapshot { permissions: Permissions::default(), ..snapshot };
        self.end_fast_restores_of_strangers(ask.now(), &mut reset);
        state.commit(vec![Change::Snapshot(reset)])?;
        Ok(Map::new())
    }
}
