//! Access keys and unique ids, as AWS has them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SecureRandom;

/// An id as AWS has them: four letters for its kind, and 16 of base 32. None where the system has no random bytes.
pub(crate) fn id(kind: &str, random: &dyn SecureRandom) -> Option<String> {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut bytes = [0; 16];
    random.fill(&mut bytes).ok()?;
    let letters = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    Some(kind.chars().chain(letters).collect())
}

/// A secret access key, 40 characters. None where the system has no random bytes.
pub(crate) fn secret(random: &dyn SecureRandom) -> Option<String> {
    let mut bytes = [0; 30];
    random.fill(&mut bytes).ok()?;
    Some(STANDARD.encode(bytes))
}
