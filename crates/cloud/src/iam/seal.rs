//! The encoded message of a denied call, which only this endpoint can decode.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// More text than this is in no message.
const MAX_BYTES: u64 = 64 * 1024;

/// Encodes messages with a key of its own, which ends with it.
#[derive(Debug)]
pub struct Sealer {
    key: LessSafeKey,
    random: SystemRandom,
}

impl Sealer {
    /// A sealer with a new key; none where the system has no random bytes.
    #[must_use]
    pub fn new() -> Option<Self> {
        let random = SystemRandom::new();
        let mut bytes = [0; 32];
        random.fill(&mut bytes).ok()?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).ok()?;
        Some(Self { key: LessSafeKey::new(key), random })
    }

    /// Encodes a message; an empty text where the system has no random bytes.
    pub(super) fn seal(&self, message: &str) -> String {
        self.try_seal(message).unwrap_or_default()
    }

    fn try_seal(&self, message: &str) -> Option<String> {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(message.as_bytes()).ok()?;
        let mut bytes = packed.finish().ok()?;
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let sealed = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(sealed, Aad::empty(), &mut bytes).ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &bytes].concat()))
    }

    /// Decodes a message; none where it is none of this sealer's.
    pub(crate) fn open(&self, text: &str) -> Option<String> {
        let mut bytes = URL_SAFE_NO_PAD.decode(text.trim()).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let packed = self.key.open_in_place(nonce, Aad::empty(), sealed).ok()?;
        let mut message = String::new();
        DeflateDecoder::new(&*packed).take(MAX_BYTES).read_to_string(&mut message).ok()?;
        Some(message)
    }
}
