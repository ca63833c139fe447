//! What EC2 and the control plane need of KMS: the key of a volume, data keys, and how they are unwrapped.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ebbtide_control::{DATA_KEY_BYTES, DataKey, KeyUnavailable, KeyUnwrapper, WrappedKey};

use super::db::Change;
use super::names::Name;
use super::policies::{permit, refusal_of_missing, tags_of};
use super::records::{Alias, Key, Schedule};
use super::state::State;
use super::{Kms, refuse, vault};
use crate::{Access, ApiError, Call, OwnPolicy};

/// The alias of the key that EBS uses where no other is named. The key appears with its first use.
pub(crate) const DEFAULT_ALIAS: &str = "alias/aws/ebs";

/// What EC2 binds a data key to: the volume or snapshot that it was made for.
const BOUND_TO: &str = "aws:ebs:id";

/// What a caller does with a key through EBS, by the rights that it needs (EBS user guide, `ebs-encryption-requirements` and
/// `how-ebs-encryption-works`, KMS developer guide, `services-ebs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// Something new is encrypted with it.
    New,
    /// Data that it encrypts are read or written, or something new keeps the data key.
    Data,
    /// Data that it encrypts get another key.
    From,
    /// Data of another key get this one.
    To,
}

impl KeyUse {
    const fn rights(self) -> &'static [&'static str] {
        match self {
            Self::New => &["DescribeKey", "GenerateDataKeyWithoutPlaintext", "CreateGrant"],
            Self::Data => &["Decrypt"],
            Self::From => &["Decrypt", "ReEncryptFrom"],
            Self::To => &["ReEncryptTo"],
        }
    }
}

/// A key that a volume can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VolumeKey {
    pub(crate) arn: String,
    /// Whether it is `alias/aws/ebs`.
    pub(crate) is_managed: bool,
}

/// Why a volume cannot have a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyProblem {
    /// The text has no form that a key is named in.
    Malformed,
    NotFound,
    /// With the cause as events name it, `arn:... is disabled.`
    NotUsable(String),
    /// The caller may not use it.
    Denied,
    /// This program or its host failed.
    Internal(String),
}

impl From<ApiError> for KeyProblem {
    fn from(error: ApiError) -> Self {
        Self::Internal(error.message)
    }
}

impl Kms {
    /// The key that a caller of EC2 names; the default of EBS where it names none.
    pub(crate) fn key_of_volume(&self, call: &Call<'_>, text: Option<&str>) -> Result<VolumeKey, KeyProblem> {
        let text = text.unwrap_or(DEFAULT_ALIAS);
        let name = Name::read(text).ok_or(KeyProblem::Malformed)?;
        self.make_managed(call, text)?;
        let state = self.state.lock();
        let account = call.caller.account.as_str();
        let missing = || {
            let refused = |right: &&str| refusal_of_missing(call, right, text).is_some();
            let is_refused = KeyUse::New.rights().iter().any(refused);
            if is_refused { KeyProblem::Denied } else { KeyProblem::NotFound }
        };
        let key = state.named(account, call.region, name).ok_or_else(missing)?;
        demand(call, &state, key, KeyUse::New)?;
        match key.obstacle() {
            Some(cause) => Err(KeyProblem::NotUsable(cause)),
            None => Ok(VolumeKey { arn: key.arn(), is_managed: key.is_managed }),
        }
    }

    /// Refuses what a caller may not do with a key.
    pub(crate) fn demand(&self, call: &Call<'_>, arn: &str, key_use: KeyUse) -> Result<(), KeyProblem> {
        let state = self.state.lock();
        let key = state.keys().values().find(|key| key.arn() == arn).ok_or(KeyProblem::NotFound)?;
        demand(call, &state, key, key_use)
    }

    /// Why a key cannot be used now; none where it can.
    pub(crate) fn obstacle(&self, arn: &str) -> Option<String> {
        let state = self.state.lock();
        match state.keys().values().find(|key| key.arn() == arn) {
            Some(key) => key.obstacle(),
            None => Some(format!("{arn} does not exist.")),
        }
    }

    /// Whether a key is one that AWS manages.
    pub(crate) fn is_managed(&self, arn: &str) -> bool {
        self.state.lock().keys().values().any(|key| key.is_managed && key.arn() == arn)
    }

    /// The ARN of a key by any of its names; none where there is no such key. Nothing is demanded.
    pub(crate) fn arn_of(&self, call: &Call<'_>, text: &str) -> Option<String> {
        let name = Name::read(text)?;
        self.state.lock().named(&call.caller.account, call.region, name).map(Key::arn)
    }

    /// A new data key for a volume or snapshot, wrapped.
    pub(crate) fn new_data_key(&self, key: &VolumeKey, id: &str) -> Result<WrappedKey, KeyProblem> {
        let state = self.state.lock();
        let key = state.keys().values().find(|known| known.arn() == key.arn).ok_or(KeyProblem::NotFound)?;
        if let Some(cause) = key.obstacle() {
            return Err(KeyProblem::NotUsable(cause));
        }
        let mut plain = zeroize::Zeroizing::new([0; DATA_KEY_BYTES]);
        self.vault.fill(&mut *plain).ok_or_else(|| refuse::failed("the system has no random bytes"))?;
        let context = BTreeMap::from([(BOUND_TO.to_owned(), id.to_owned())]);
        let blob = STANDARD.encode(self.seal(key, &context, &*plain)?);
        Ok(WrappedKey { key_id: key.arn(), blob, context })
    }

    /// Makes the key that AWS manages for EBS, where a call names it and it is not there yet.
    pub(super) fn make_managed(&self, call: &Call<'_>, text: &str) -> Result<(), ApiError> {
        let (account, region) = (call.caller.account.as_str(), call.region);
        let is_its_arn = || Name::read(text) == Some(Name::Arn(region, account, DEFAULT_ALIAS));
        if text != DEFAULT_ALIAS && !is_its_arn() {
            return Ok(());
        }
        let mut state = self.state.lock();
        if state.named(account, region, Name::Alias(DEFAULT_ALIAS)).is_some() {
            return Ok(());
        }
        let description = "Default key that protects my EBS volumes when no other key is defined".to_owned();
        let schedule = Some(Schedule::managed(call.now_ms));
        let key =
            Key { description, is_managed: true, schedule, ..self.new_key(account, region, call.now_ms)? };
        let alias = Alias {
            name: DEFAULT_ALIAS.to_owned(),
            owner: account.to_owned(),
            region: region.to_owned(),
            key: key.id.clone(),
            created_ms: call.now_ms,
            updated_ms: call.now_ms,
        };
        state.commit(vec![Change::Key(Box::new(key)), Change::Alias(alias)])
    }
}

/// The key that AWS manages is open to all of its account through EC2, but for whom their own policies deny it.
fn demand(call: &Call<'_>, state: &State, key: &Key, key_use: KeyUse) -> Result<(), KeyProblem> {
    if key.is_managed && key.owner != call.caller.account {
        return Err(KeyProblem::Denied);
    }
    for action in key_use.rights() {
        let mut context = tags_of(key);
        let mut set = |name: &str, value: String| context.insert(name.to_owned(), vec![value]);
        set("kms:CallerAccount", call.caller.account.clone());
        set("kms:ViaService", format!("ec2.{}.amazonaws.com", call.region));
        set("kms:GrantIsForAWSResource", "true".to_owned());
        let access = Access { action: format!("kms:{action}").into(), resource: key.arn(), context };
        if key.is_managed {
            let says = call.authorizer.judge(call.caller, &access).says;
            if matches!(says, OwnPolicy::Denies(_)) {
                return Err(KeyProblem::Denied);
            }
            continue;
        }
        let grant = state.grant_for(call.caller, key, action, &BTreeMap::new());
        permit(call, key, &access, grant).map_err(|_| KeyProblem::Denied)?;
    }
    Ok(())
}

impl KeyUnwrapper for Kms {
    fn unwrap_key(&self, wrapped: &WrappedKey) -> Result<DataKey, KeyUnavailable> {
        let state = self.state.lock();
        let damaged = || KeyUnavailable(format!("the data key that {} wrapped is damaged", wrapped.key_id));
        let blob = STANDARD.decode(&wrapped.blob).map_err(|_| damaged())?;
        let id = vault::key_id(&blob).ok_or_else(damaged)?;
        let missing = || KeyUnavailable(format!("{} does not exist.", wrapped.key_id));
        let key = state.keys().get(id).ok_or_else(missing)?;
        if let Some(cause) = key.obstacle() {
            return Err(KeyUnavailable(cause));
        }
        let plain = self.open_sealed(key, &wrapped.context, &blob).ok_or_else(damaged)?;
        let plain = zeroize::Zeroizing::new(plain);
        DataKey::new(plain.as_slice().try_into().map_err(|_| damaged())?)
    }
}
