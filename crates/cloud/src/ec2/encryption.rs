//! How volumes and snapshots are encrypted: by what a call asks, by their source, and by the Region's default.
//!
//! A record has the ARN of the key. The data key is in the block store, wrapped; the control plane has [`Kms`] unwrap it.

use std::sync::Arc;

use ebbtide_control::WrappedKey;
use serde_json::{Map, Value};

use super::ask::{Ask, Members};
use super::db::Change;
use super::records::{RegionSettings, Setting, Snapshot, Volume};
use super::state::State;
use super::{Ec2, access, refuse};
use crate::kms::{DEFAULT_ALIAS, KeyProblem, KeyUse, Kms, VolumeKey};
use crate::{ApiError, Call};

/// What something new begins as: a snapshot or a volume.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    owner: &'a str,
    /// The ARN of its key; None if it is not encrypted.
    key: Option<&'a str>,
}

impl<'a> From<&'a Snapshot> for Origin<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self { owner: &snapshot.owner, key: snapshot.kms_key.as_deref() }
    }
}

impl<'a> From<&'a Volume> for Origin<'a> {
    fn from(volume: &'a Volume) -> Self {
        Self { owner: &volume.owner, key: volume.kms_key.as_deref() }
    }
}

/// How something new is to be encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    Plain,
    /// With the data key of its source, which the key with this ARN wraps.
    Same(String),
    /// With a data key of its own, wrapped by the key that is named so.
    Own(String),
}

/// What a wish comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Plain,
    Same(String),
    Own(VolumeKey),
    /// The key cannot be used: what was named, and why.
    Unusable(String, KeyProblem),
}

impl Found {
    /// The key that is shown.
    pub(super) fn arn(&self) -> Option<String> {
        match self {
            Self::Plain => None,
            Self::Same(arn) | Self::Unusable(arn, _) => Some(arn.clone()),
            Self::Own(key) => Some(key.arn.clone()),
        }
    }
}

/// Why something with an unusable key fails, as events name it.
pub(super) fn cause(named: &str, problem: &KeyProblem) -> String {
    match problem {
        KeyProblem::NotUsable(cause) => cause.clone(),
        KeyProblem::Malformed | KeyProblem::NotFound => format!("{named} does not exist."),
        KeyProblem::Denied => format!("{named} is not accessible."),
        KeyProblem::Internal(text) => text.clone(),
    }
}

/// What a call asks of encryption.
struct Asked<'a> {
    encrypted: Option<bool>,
    key: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn of(ask: &Ask<'a>) -> Self {
        let key = ask.input.text("KmsKeyId").filter(|key| !key.is_empty());
        Self { encrypted: ask.input.flag("Encrypted"), key }
    }
}

impl Ec2 {
    /// The same service, which encrypts with the keys of `kms`. Without one, it refuses to encrypt.
    #[must_use]
    pub fn with_kms(mut self, kms: Arc<Kms>) -> Self {
        self.kms = Some(kms);
        self
    }

    pub(super) fn kms(&self) -> Result<&Kms, ApiError> {
        self.kms.as_deref().ok_or_else(|| refuse::unsupported("Encryption"))
    }

    /// Why a key cannot be used now; none where it can, or where there is no key.
    pub(super) fn obstacle(&self, arn: Option<&str>) -> Option<String> {
        let arn = arn?;
        let Some(kms) = &self.kms else { return Some(format!("{arn} does not exist.")) };
        kms.obstacle(arn)
    }

    /// Whether and with which key a volume is to be encrypted (EBS user guide, `ebs-encryption`, the table of outcomes).
    pub(super) fn wish_of_volume(
        &self,
        ask: &Ask<'_>,
        state: &State,
        source: Option<Origin<'_>>,
    ) -> Result<Wish, ApiError> {
        let Asked { encrypted, key } = Asked::of(ask);
        let settings = state.region_settings(ask.account(), ask.region());
        let source_key = source.and_then(|source| source.key);
        if source_key.is_some() && encrypted == Some(false) {
            return Err(refuse::invalid_combination(
                "Encrypted snapshots must be used to create encrypted volumes.",
            ));
        }
        if encrypted != Some(true) && source_key.is_none() && !settings.encrypts {
            return match key {
                None => Ok(Wish::Plain),
                Some(_) => {
                    let message = "The parameter KmsKeyId requires the parameter Encrypted to be set.";
                    Err(ApiError::client("InvalidParameterDependency", message))
                }
            };
        }
        let own = source.filter(|source| source.owner == ask.account());
        Ok(match (key, own.and_then(|source| source.key)) {
            (Some(key), _) => Wish::Own(key.to_owned()),
            (None, Some(arn)) => Wish::Same(arn.to_owned()),
            (None, None) => Wish::Own(settings.key_name()),
        })
    }

    /// The same of a copy. An encrypted copy without a key has the Region's default.
    pub(super) fn wish_of_copy(
        &self,
        ask: &Ask<'_>,
        state: &State,
        source: Option<Origin<'_>>,
    ) -> Result<Wish, ApiError> {
        let Asked { encrypted, key } = Asked::of(ask);
        let settings = state.region_settings(ask.account(), ask.region());
        let is_source = source.is_some_and(|source| source.key.is_some());
        if is_source && encrypted == Some(false) {
            let message = "The parameter Encrypted cannot be false for a copy of an encrypted snapshot.";
            return Err(refuse::invalid_combination(message));
        }
        if encrypted != Some(true) && !is_source && !settings.encrypts {
            return match key {
                None => Ok(Wish::Plain),
                Some(_) => {
                    let message = "The parameter KmsKeyId requires the parameter Encrypted to be set.";
                    Err(ApiError::client("InvalidParameterDependency", message))
                }
            };
        }
        Ok(Wish::Own(key.map_or_else(|| settings.key_name(), str::to_owned)))
    }

    /// Looks for the key of a wish. What `source` has is kept where it is the same key.
    pub(super) fn find_key(
        &self,
        ask: &Ask<'_>,
        wish: Wish,
        source: Option<Origin<'_>>,
    ) -> Result<Found, ApiError> {
        let (name, same) = match wish {
            Wish::Plain => return Ok(Found::Plain),
            Wish::Same(arn) => (arn, true),
            Wish::Own(name) => (name, false),
        };
        let source_key = source.and_then(|source| source.key);
        // What is read anew must be readable.
        if let Some(cause) = self.obstacle(source_key) {
            return Ok(Found::Unusable(name, KeyProblem::NotUsable(cause)));
        }
        // Another account's snapshot is shared, and its key may not be.
        let of_other = source.filter(|source| source.owner != ask.account());
        if let Some(arn) = of_other.and_then(|source| source.key)
            && let Err(problem) = self.kms()?.key_of_volume(ask.call, Some(arn))
        {
            return Ok(Found::Unusable(name, problem));
        }
        let key = match self.kms()?.key_of_volume(ask.call, Some(&name)) {
            Ok(key) => key,
            Err(KeyProblem::Internal(text)) => return Err(refuse::internal(text)),
            Err(problem) => return Ok(Found::Unusable(name, problem)),
        };
        let same = same || Some(key.arn.as_str()) == source_key;
        if let Some(arn) = source_key {
            let from = if same { KeyUse::Data } else { KeyUse::From };
            if let Err(problem) = self.kms()?.demand(ask.call, arn, from) {
                return Ok(Found::Unusable(arn.to_owned(), problem));
            }
            // The same key encrypts nothing anew.
            if !same && let Err(problem) = self.kms()?.demand(ask.call, &key.arn, KeyUse::To) {
                return Ok(Found::Unusable(name, problem));
            }
        }
        Ok(if same { Found::Same(key.arn) } else { Found::Own(key) })
    }

    /// Refuses to read or write the data of a snapshot to whom its key does not allow it.
    pub(crate) fn demand_data(&self, call: &Call<'_>, arn: Option<&str>) -> Result<(), KeyProblem> {
        self.demand_key(call, arn, KeyUse::Data)
    }

    /// Refuses to begin a snapshot on top of an encrypted one to whom its key does not allow it.
    pub(crate) fn demand_parent(&self, call: &Call<'_>, arn: Option<&str>) -> Result<(), KeyProblem> {
        self.demand_key(call, arn, KeyUse::Data)?;
        self.demand_key(call, arn, KeyUse::New)
    }

    fn demand_key(&self, call: &Call<'_>, arn: Option<&str>, key_use: KeyUse) -> Result<(), KeyProblem> {
        let (Some(arn), Some(kms)) = (arn, self.kms.as_deref()) else { return Ok(()) };
        match kms.demand(call, arn, key_use) {
            // Nobody reads what a deleted key encrypts: the control plane says so.
            Err(KeyProblem::NotFound) => Ok(()),
            other => other,
        }
    }

    /// A data key for something new; none where it has its source's or is plain.
    pub(super) fn data_key(&self, found: &Found, id: &str) -> Result<Option<WrappedKey>, ApiError> {
        let Found::Own(key) = found else { return Ok(None) };
        let made = self.kms()?.new_data_key(key, id);
        made.map(Some).map_err(|problem| refuse::internal(cause(&key.arn, &problem)))
    }

    /// The key of a snapshot that is put together from blocks: none where it is plain.
    pub(crate) fn key_of_direct(
        &self,
        call: &Call<'_>,
        asks: bool,
        name: Option<&str>,
    ) -> Result<Option<VolumeKey>, KeyProblem> {
        let settings = self.state.lock().region_settings(&call.caller.account, call.region);
        if !asks && name.is_none() && !settings.encrypts {
            return Ok(None);
        }
        let unbuilt = || KeyProblem::Internal("there is no KMS in this process".to_owned());
        let kms = self.kms.as_deref().ok_or_else(unbuilt)?;
        let default = settings.key_name();
        kms.key_of_volume(call, Some(name.unwrap_or(&default))).map(Some)
    }

    // ---- Defaults of a Region -----------------------------------------------------------------------------------------

    /// What is set, for a caller that may read it.
    fn permitted_settings(&self, ask: &Ask<'_>) -> Result<RegionSettings, ApiError> {
        permit(ask)?;
        Ok(self.state.lock().region_settings(ask.account(), ask.region()))
    }

    fn change_settings(
        &self,
        ask: &Ask<'_>,
        change: impl FnOnce(&mut RegionSettings),
    ) -> Result<RegionSettings, ApiError> {
        let mut state = self.state.lock();
        let mut settings = state.region_settings(ask.account(), ask.region());
        change(&mut settings);
        let value = serde_json::to_value(&settings).expect("settings are plain data with text keys");
        let key = RegionSettings::key(ask.account(), ask.region());
        state.commit(vec![Change::Setting(Setting { key, value })])?;
        Ok(settings)
    }

    pub(super) fn enable_ebs_encryption_by_default(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        permit(ask)?;
        self.kms()?;
        self.change_settings(ask, |settings| settings.encrypts = true)?;
        Ok(Members::default().put("EbsEncryptionByDefault", true).end())
    }

    pub(super) fn disable_ebs_encryption_by_default(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        permit(ask)?;
        self.change_settings(ask, |settings| settings.encrypts = false)?;
        Ok(Members::default().put("EbsEncryptionByDefault", false).end())
    }

    pub(super) fn get_ebs_encryption_by_default(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        let encrypts = self.permitted_settings(ask)?.encrypts;
        let kind = if encrypts { "sse-kms" } else { "none" };
        Ok(Members::default().put("EbsEncryptionByDefault", encrypts).put("SseType", kind).end())
    }

    pub(super) fn get_ebs_default_kms_key_id(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let name = self.permitted_settings(ask)?.key_name();
        Ok(Members::default().put("KmsKeyId", name).end())
    }

    pub(super) fn modify_ebs_default_kms_key_id(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        permit(ask)?;
        let name = ask.input.required("KmsKeyId", "kmsKeyId")?;
        let key = self.kms()?.key_of_volume(ask.call, Some(name));
        let key = key.map_err(|problem| refused_key(name, &problem))?;
        self.change_settings(ask, |settings| settings.kms_key = Some(key.arn.clone()))?;
        Ok(Members::default().put("KmsKeyId", key.arn).end())
    }

    pub(super) fn reset_ebs_default_kms_key_id(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        permit(ask)?;
        let settings = self.change_settings(ask, |settings| settings.kms_key = None)?;
        Ok(Members::default().put("KmsKeyId", settings.key_name()).end())
    }
}

/// Lets a caller go on that may do what it asks, and does not only ask whether it may.
fn permit(ask: &Ask<'_>) -> Result<(), ApiError> {
    access::demand_any(ask)?;
    ask.end_dry_run()
}

impl RegionSettings {
    /// The key of the setting.
    pub(super) fn key(account: &str, region: &str) -> String {
        format!("encryption/{account}/{region}")
    }

    /// The key of what is encrypted without naming one.
    pub(super) fn key_name(&self) -> String {
        self.kms_key.clone().unwrap_or_else(|| DEFAULT_ALIAS.to_owned())
    }
}

/// A key that a call refuses at once.
pub(super) fn refused_key(name: &str, problem: &KeyProblem) -> ApiError {
    match problem {
        KeyProblem::Malformed | KeyProblem::NotFound => {
            refuse::invalid_value(format!("The specified keyId {name} is invalid"))
        }
        KeyProblem::NotUsable(_) => refuse::invalid_value(format!("The specified keyId {name} is disabled")),
        // AWS's text ends with a blank.
        KeyProblem::Denied => ApiError {
            status: 403,
            ..ApiError::client("AuthFailure", format!("Not authorized to use key {name} "))
        },
        KeyProblem::Internal(text) => refuse::internal(text),
    }
}
