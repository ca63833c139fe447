//! Encrypt, Decrypt, ReEncrypt and GenerateDataKey.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::policies::{demand_action, permitted, permitted_action, refusal_of_missing, refuse_managed};
use super::records::Key;
use super::state::State;
use super::{Ask, Kms, refuse, vault};
use crate::ApiError;

/// Most bytes that Encrypt takes.
const PLAIN_BYTES: usize = 4_096;
/// Most bytes that Decrypt takes.
const BLOB_BYTES: usize = 6_144;
/// Most bytes of a data key.
const DATA_KEY_BYTES: (u64, u64) = (1, 1_024);
const ALGORITHM: &str = "SYMMETRIC_DEFAULT";

fn check_algorithm(ask: &Ask<'_>, member: &str) -> Result<(), ApiError> {
    match ask.input.text(member) {
        None | Some(ALGORITHM) => Ok(()),
        Some(other) => {
            let message = format!("{member} {other} is not one of the key's: {ALGORITHM}.");
            Err(ApiError::client("InvalidKeyUsageException", message))
        }
    }
}

/// Refuses a key that cannot be used now.
pub(super) fn check_state(key: &Key) -> Result<(), ApiError> {
    if key.obstacle().is_some() { Err(refuse::wrong_state(key)) } else { Ok(()) }
}

/// A key that the caller may encrypt with.
fn usable<'a>(ask: &Ask<'_>, state: &'a State, member: &str, action: &str) -> Result<&'a Key, ApiError> {
    let key = permitted_action(ask, state, action, ask.input.required(member)?)?;
    refuse_managed(ask, key)?;
    check_state(key)?;
    Ok(key)
}

/// The key that made a blob, where the caller may decrypt with it.
fn maker<'a>(
    ask: &Ask<'_>,
    state: &'a State,
    blob: &[u8],
    (member, action): (&str, &str),
) -> Result<&'a Key, ApiError> {
    let named = ask.input.text(member).map(|id| permitted_action(ask, state, action, id)).transpose()?;
    let id = vault::key_id(blob).ok_or_else(refuse::invalid_ciphertext)?;
    let key =
        state.keys().get(id).filter(|key| key.region == ask.region()).ok_or_else(|| {
            refusal_of_missing(ask.call, action, id).unwrap_or_else(refuse::invalid_ciphertext)
        })?;
    demand_action(ask, state, action, key)?;
    if named.is_some_and(|named| named.id != key.id) {
        let message = "The key ID in the request does not identify a CMK that can perform this operation.";
        return Err(ApiError::client("IncorrectKeyException", message));
    }
    refuse_managed(ask, key)?;
    check_state(key)?;
    Ok(key)
}

fn answer<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Kms {
    /// Encrypts with a key.
    pub(super) fn seal(
        &self,
        key: &Key,
        context: &BTreeMap<String, String>,
        plain: &[u8],
    ) -> Result<Vec<u8>, ApiError> {
        let blob = self.vault.encrypt(&key.id, &key.material, context, plain);
        blob.ok_or_else(|| refuse::failed(&format!("the material of {} does not open", key.arn())))
    }

    /// Decrypts what [`Self::seal`] made, also before the key was rotated; none where the context is another, or a bit has changed.
    pub(super) fn open_sealed(
        &self,
        key: &Key,
        context: &BTreeMap<String, String>,
        blob: &[u8],
    ) -> Option<Vec<u8>> {
        key.materials().find_map(|material| self.vault.decrypt(&key.id, material, context, blob))
    }

    pub(super) fn encrypt(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let plain = ask.input.bytes("Plaintext", (1, PLAIN_BYTES))?;
        let state = self.state.lock();
        let key = usable(ask, &state, "KeyId", "Encrypt")?;
        check_algorithm(ask, "EncryptionAlgorithm")?;
        ask.end_dry_run()?;
        let blob = self.seal(key, &ask.input.context("EncryptionContext"), &plain)?;
        Ok(answer([
            ("CiphertextBlob", STANDARD.encode(blob).into()),
            ("KeyId", key.arn().into()),
            ("EncryptionAlgorithm", ALGORITHM.into()),
        ]))
    }

    pub(super) fn decrypt(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let blob = ask.input.bytes("CiphertextBlob", (1, BLOB_BYTES))?;
        let state = self.state.lock();
        let key = maker(ask, &state, &blob, ("KeyId", "Decrypt"))?;
        check_algorithm(ask, "EncryptionAlgorithm")?;
        ask.end_dry_run()?;
        let context = ask.input.context("EncryptionContext");
        let plain = self.open_sealed(key, &context, &blob);
        let plain = plain.ok_or_else(refuse::invalid_ciphertext)?;
        Ok(answer([
            ("Plaintext", STANDARD.encode(plain).into()),
            ("KeyId", key.arn().into()),
            ("EncryptionAlgorithm", ALGORITHM.into()),
        ]))
    }

    pub(super) fn re_encrypt(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let blob = ask.input.bytes("CiphertextBlob", (1, BLOB_BYTES))?;
        let state = self.state.lock();
        let source = maker(ask, &state, &blob, ("SourceKeyId", "ReEncryptFrom"))?;
        let to = usable(ask, &state, "DestinationKeyId", "ReEncryptTo")?;
        check_algorithm(ask, "SourceEncryptionAlgorithm")?;
        check_algorithm(ask, "DestinationEncryptionAlgorithm")?;
        ask.end_dry_run()?;
        let context = ask.input.context("SourceEncryptionContext");
        let plain = self.open_sealed(source, &context, &blob);
        let plain = plain.ok_or_else(refuse::invalid_ciphertext)?;
        let blob = self.seal(to, &ask.input.context("DestinationEncryptionContext"), &plain)?;
        Ok(answer([
            ("CiphertextBlob", STANDARD.encode(blob).into()),
            ("KeyId", to.arn().into()),
            ("SourceKeyId", source.arn().into()),
            ("SourceEncryptionAlgorithm", ALGORITHM.into()),
            ("DestinationEncryptionAlgorithm", ALGORITHM.into()),
        ]))
    }

    pub(super) fn generate_data_key(&self, ask: &Ask<'_>) -> Result<Map<String, Value>, ApiError> {
        let (mut output, plain) = self.data_key(ask)?;
        output.insert("Plaintext".to_owned(), STANDARD.encode(plain).into());
        Ok(output)
    }

    pub(super) fn generate_data_key_without_plaintext(
        &self,
        ask: &Ask<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        Ok(self.data_key(ask)?.0)
    }

    fn data_key(&self, ask: &Ask<'_>) -> Result<(Map<String, Value>, Vec<u8>), ApiError> {
        let number = ask.input.bounded("NumberOfBytes", DATA_KEY_BYTES)?;
        let bytes = match (ask.input.text("KeySpec"), number) {
            (Some("AES_256"), None) => 32,
            (Some("AES_128"), None) => 16,
            (None, Some(number)) => usize::try_from(number).unwrap_or(usize::MAX),
            (Some("AES_256" | "AES_128") | None, _) => {
                return Err(refuse::validation("Please specify either number of bytes or key spec."));
            }
            (Some(other), _) => {
                return Err(refuse::validation(format!("KeySpec is {other}; it is AES_256 or AES_128.")));
            }
        };
        let state = self.state.lock();
        let key = permitted(ask, &state, ask.input.required("KeyId")?)?;
        refuse_managed(ask, key)?;
        check_state(key)?;
        ask.end_dry_run()?;
        let mut plain = vec![0; bytes];
        self.vault.fill(&mut plain).ok_or_else(|| refuse::failed("the system has no random bytes"))?;
        let blob = self.seal(key, &ask.input.context("EncryptionContext"), &plain)?;
        let output = [("CiphertextBlob", STANDARD.encode(blob).into()), ("KeyId", key.arn().into())];
        Ok((answer(output), plain))
    }
}
