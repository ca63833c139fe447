//! What is stored of keys, aliases and grants.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::partition;

/// Whether a key can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KeyState {
    Enabled,
    Disabled,
    PendingDeletion {
        /// When it is deleted, in milliseconds since 1970.
        at_ms: u64,
        window_days: u64,
    },
}

impl KeyState {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Enabled => "Enabled",
            Self::Disabled => "Disabled",
            Self::PendingDeletion { .. } => "PendingDeletion",
        }
    }
}

/// A symmetric key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) owner: String,
    pub(super) region: String,
    #[serde(default)]
    pub(super) description: String,
    pub(super) created_ms: u64,
    pub(super) state: KeyState,
    /// Whether AWS manages it: `alias/aws/ebs`.
    pub(super) is_managed: bool,
    pub(super) policy: String,
    #[serde(default)]
    pub(super) tags: BTreeMap<String, String>,
    /// The 32 bytes of the key, sealed with the master key; base64.
    pub(super) material: String,
    /// When it is rotated next; none where that is not enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) schedule: Option<Schedule>,
    /// The earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rotations: Vec<RotationRecord>,
}

/// How often a key is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Schedule {
    pub(super) period_days: u64,
    /// In milliseconds since 1970.
    pub(super) next_ms: u64,
}

/// A rotation that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RotationRecord {
    /// In milliseconds since 1970.
    pub(super) rotated_ms: u64,
    pub(super) kind: RotationKind,
    /// The material that it replaced, as [`Key::material`].
    pub(super) earlier_material: String,
}

/// Why a key was rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RotationKind {
    Automatic,
    OnDemand,
}

impl RotationKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Automatic => "AUTOMATIC",
            Self::OnDemand => "ON_DEMAND",
        }
    }
}

impl Key {
    /// All its material, the present one first: a ciphertext is of one of them.
    pub(super) fn materials(&self) -> impl Iterator<Item = &str> {
        let earlier = self.rotations.iter().rev().map(|rotation| rotation.earlier_material.as_str());
        std::iter::once(self.material.as_str()).chain(earlier)
    }

    pub(super) fn arn(&self) -> String {
        format!(
            "arn:{}:kms:{}:{}:key/{}",
            partition::of_region(&self.region),
            self.region,
            self.owner,
            self.id
        )
    }

    /// Why it cannot be used; none where it can.
    pub(super) fn obstacle(&self) -> Option<String> {
        match self.state {
            KeyState::Enabled => None,
            KeyState::Disabled => Some(format!("{} is disabled.", self.arn())),
            KeyState::PendingDeletion { .. } => Some(format!("{} is pending deletion.", self.arn())),
        }
    }
}

/// A name of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Alias {
    /// With `alias/`.
    pub(super) name: String,
    pub(super) owner: String,
    pub(super) region: String,
    /// The id of its key.
    pub(super) key: String,
    pub(super) created_ms: u64,
    pub(super) updated_ms: u64,
}

impl Alias {
    pub(super) fn arn(&self) -> String {
        format!("arn:{}:kms:{}:{}:{}", partition::of_region(&self.region), self.region, self.owner, self.name)
    }
}

/// A permission to use a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) id: String,
    pub(super) token: String,
    /// The id of its key.
    pub(super) key: String,
    pub(super) grantee: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retiring: Option<String>,
    pub(super) operations: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// As the caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) constraints: Option<serde_json::Value>,
    pub(super) issuer: String,
    pub(super) created_ms: u64,
}

impl Grant {
    /// Whether it allows an action with an encryption context. Constraints are those of cryptographic actions (KMS API
    /// reference, `GrantConstraints`).
    pub(super) fn allows(&self, action: &str, encryption: &BTreeMap<String, String>) -> bool {
        let is_cryptographic = !["CreateGrant", "DescribeKey", "RetireGrant"].contains(&action);
        self.operations.iter().any(|operation| operation == action)
            && (!is_cryptographic || self.fits(encryption))
    }

    fn fits(&self, encryption: &BTreeMap<String, String>) -> bool {
        let pairs = |name: &str| self.constraints.as_ref()?.get(name)?.as_object();
        let has = |(name, value): (&String, &serde_json::Value)| {
            encryption.get(name).map(String::as_str) == value.as_str()
        };
        let subset = pairs("EncryptionContextSubset").is_none_or(|all| all.iter().all(has));
        let equals = pairs("EncryptionContextEquals")
            .is_none_or(|all| all.len() == encryption.len() && all.iter().all(has));
        subset && equals
    }
}
