//! Data keys: plain, wrapped, and who unwraps them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A data key as it is kept: encrypted with a key that this store does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrappedKey {
    /// Name of the key that wraps it: an ARN of KMS.
    pub key_id: String,
    /// The wrapped key as its owner gave it: base64 text.
    pub blob: String,
    /// What the wrapped key is bound to: KMS's encryption context.
    pub context: BTreeMap<String, String>,
}

/// Size of a data key, bytes: the key of the data and the key of the tweaks.
pub const DATA_KEY_BYTES: usize = 64;

/// The plain data key of a volume. Its memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct DataKey(pub(super) Zeroizing<[u8; DATA_KEY_BYTES]>);

impl DataKey {
    /// The key with these bytes.
    ///
    /// # Errors
    /// Two equal halves, which XTS forbids.
    pub fn new(bytes: [u8; DATA_KEY_BYTES]) -> Result<Self, KeyUnavailable> {
        let (data, tweak) = bytes.split_at(DATA_KEY_BYTES / 2);
        if data == tweak {
            return Err(KeyUnavailable("the two halves of the data key are equal".to_owned()));
        }
        Ok(Self(Zeroizing::new(bytes)))
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey")
    }
}

/// Why a data key cannot be unwrapped, for people: `arn:aws:kms:... is disabled.`
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyUnavailable(pub String);

/// Unwraps data keys. The store keeps wrapped ones only, and asks whenever it opens what is encrypted.
pub trait KeyUnwrapper: fmt::Debug + Send + Sync {
    /// The plain data key.
    ///
    /// # Errors
    /// [`KeyUnavailable`]: the wrapping key is disabled, deleted or not known, or the wrapped key is damaged.
    fn unwrap_key(&self, wrapped: &WrappedKey) -> Result<DataKey, KeyUnavailable>;
}
