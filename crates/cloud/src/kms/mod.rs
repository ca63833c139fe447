//! KMS, as far as encrypted volumes need it: symmetric keys that wrap data keys, their aliases, policies and grants.
//!
//! [`Kms`] answers calls, gives EC2 data keys ([`volumes`]), and unwraps them for the control plane
//! ([`KeyUnwrapper`](ebbtide_control::KeyUnwrapper)). The material of a key is in `kms.db` of the home, sealed with the
//! master key in the file `aws/kms-master.key` ([`vault`]). docs/aws-reference.md has what is different from AWS.

mod aliases;
mod cryptography;
mod db;
mod grants;
mod input;
mod keys;
mod names;
mod policies;
mod records;
mod refuse;
mod rotation;
mod state;
mod tags;
mod vault;
mod volumes;

use std::path::Path;

use parking_lot::Mutex;
use serde_json::{Map, Value};

pub use vault::VaultError;
pub(crate) use volumes::{DEFAULT_ALIAS, KeyProblem, KeyUse, VolumeKey};

use db::Db;
use input::Input;
use state::State;
use vault::Vault;

use crate::{Answer, ApiError, Call, RecordsError, Service};

/// The KMS service of a home.
#[derive(Debug)]
pub struct Kms {
    vault: Vault,
    state: Mutex<State>,
}

/// A service that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The records cannot be used.
    #[error("the records of KMS cannot be used")]
    Db(#[from] RecordsError),
    /// The master key cannot be used.
    #[error("the master key of KMS cannot be used")]
    Vault(#[from] VaultError),
}

impl Kms {
    /// Opens the service of a home. A home without keys gets a master key.
    ///
    /// # Errors
    /// Records or a master key that cannot be read or written; keys whose master key is missing.
    pub fn open(home: &Path) -> Result<Self, OpenError> {
        let db = Db::open(home)?;
        let records = db.load()?;
        let vault = Vault::open(home, records.keys.is_empty())?;
        Ok(Self { vault, state: Mutex::new(State::new(db, records)) })
    }

    /// Whether a home has keys.
    #[must_use]
    pub fn is_in(home: &Path) -> bool {
        home.join(db::FILE).exists()
    }
}

/// A call.
#[derive(Debug, Clone, Copy)]
struct Ask<'a> {
    call: &'a Call<'a>,
    input: Input<'a>,
}

impl<'a> Ask<'a> {
    fn account(&self) -> &'a str {
        &self.call.caller.account
    }

    const fn region(&self) -> &'a str {
        self.call.region
    }

    const fn now(&self) -> u64 {
        self.call.now_ms
    }

    /// Ends a call that only asks whether it would be allowed.
    fn end_dry_run(&self) -> Result<(), ApiError> {
        if self.input.flag("DryRun") == Some(true) { Err(refuse::dry_run()) } else { Ok(()) }
    }
}

/// How an action is carried out.
type Action = fn(&Kms, &Ask<'_>) -> Result<Map<String, Value>, ApiError>;

macro_rules! actions {
    ($($name:literal => $method:ident,)*) => {
        /// The actions, in alphabetical order.
        const NAMES: &[&str] = &[$($name),*];
        const METHODS: &[Action] = &[$(Kms::$method),*];
    };
}

actions! {
    "CancelKeyDeletion" => cancel_key_deletion,
    "CreateAlias" => create_alias,
    "CreateGrant" => create_grant,
    "CreateKey" => create_key,
    "Decrypt" => decrypt,
    "DeleteAlias" => delete_alias,
    "DescribeKey" => describe_key,
    "DisableKey" => disable_key,
    "DisableKeyRotation" => disable_key_rotation,
    "EnableKey" => enable_key,
    "EnableKeyRotation" => enable_key_rotation,
    "Encrypt" => encrypt,
    "GenerateDataKey" => generate_data_key,
    "GenerateDataKeyWithoutPlaintext" => generate_data_key_without_plaintext,
    "GetKeyPolicy" => get_key_policy,
    "GetKeyRotationStatus" => get_key_rotation_status,
    "ListAliases" => list_aliases,
    "ListGrants" => list_grants,
    "ListKeyPolicies" => list_key_policies,
    "ListKeyRotations" => list_key_rotations,
    "ListKeys" => list_keys,
    "ListResourceTags" => list_resource_tags,
    "ListRetirableGrants" => list_retirable_grants,
    "PutKeyPolicy" => put_key_policy,
    "ReEncrypt" => re_encrypt,
    "RetireGrant" => retire_grant,
    "RevokeGrant" => revoke_grant,
    "RotateKeyOnDemand" => rotate_key_on_demand,
    "ScheduleKeyDeletion" => schedule_key_deletion,
    "TagResource" => tag_resource,
    "UntagResource" => untag_resource,
    "UpdateAlias" => update_alias,
    "UpdateKeyDescription" => update_key_description,
}

impl Service for Kms {
    fn name(&self) -> &'static str {
        "kms"
    }

    fn actions(&self) -> &'static [&'static str] {
        NAMES
    }

    fn call(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        let Ok(at) = NAMES.binary_search(&call.action) else {
            let message = format!("The operation {} is not known.", call.action);
            return Err(ApiError::client("UnknownOperationException", message));
        };
        self.state.lock().sweep(call.now_ms)?;
        self.rotate_due(call.now_ms)?;
        let output = METHODS[at](self, &Ask { call, input: Input(call.input) })?;
        Ok(Answer { output, payload: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::NAMES;
    use crate::model::Model;

    #[test]
    fn every_operation_of_the_reduced_model_is_built() {
        let model = Model::of("kms").unwrap();
        assert_eq!(model.actions().collect::<Vec<_>>(), NAMES);
    }
}
