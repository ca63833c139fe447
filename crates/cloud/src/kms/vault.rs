//! Sealing: the master key of the home seals the material of keys, and that seals what callers encrypt.
//!
//! AES-256-GCM with a random nonce. What is authenticated besides is the key's id, and of callers' data their encryption
//! context. A nonce has 96 bits: a key may seal 2^32 times (NIST SP 800-38D, 8.3), far more than a home does.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The folder of the home, and the file of the master key in it: 32 bytes that only the owner can read.
const FOLDER: &str = "aws";
const FILE: &str = "kms-master.key";

/// Bytes of the master key, and of a key's material.
pub(super) const KEY_BYTES: usize = 32;

/// The first byte of what callers get: the version of its form.
const VERSION: u8 = 1;
/// Characters of a key's id.
const ID_CHARS: usize = 36;

/// A master key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// The file cannot be read or made.
    #[error("cannot use {}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is missing, while there are keys that it sealed.
    #[error("{} is missing, and {} has keys that it sealed; restore it from a copy", file.display(), super::db::FILE)]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file is no master key.
    #[error("{} has {bytes} bytes, a master key has {KEY_BYTES}; restore it from a copy", file.display())]
    Length {
        /// The file.
        file: PathBuf,
        /// What it has.
        bytes: usize,
    },
    /// Others may read the file.
    #[error("{} has mode {mode:03o}, and other users may use it; give it mode 600", file.display())]
    Mode {
        /// The file.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// The master key, and random bytes.
#[derive(Debug)]
pub(super) struct Vault {
    master: LessSafeKey,
    random: SystemRandom,
}

impl Vault {
    /// The master key of a home. It is made where it is missing and `may_make`.
    pub(super) fn open(home: &Path, may_make: bool) -> Result<Self, VaultError> {
        let random = SystemRandom::new();
        let (folder, file) = (home.join(FOLDER), home.join(FOLDER).join(FILE));
        let failed = |source| VaultError::Io { file: file.clone(), source };
        let bytes = match OpenOptions::new().read(true).open(&file) {
            Ok(mut open) => {
                let mode = open.metadata().map_err(failed)?.mode() & 0o777;
                if mode & 0o077 != 0 {
                    return Err(VaultError::Mode { file, mode });
                }
                let mut bytes = Vec::new();
                open.read_to_end(&mut bytes).map_err(failed)?;
                bytes
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && may_make => {
                make(&folder, &file, &random).map_err(failed)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(VaultError::Missing { file });
            }
            Err(error) => return Err(failed(error)),
        };
        let master = key(&bytes).ok_or(VaultError::Length { file, bytes: bytes.len() })?;
        Ok(Self { master, random })
    }

    /// Random bytes; none where the system has none.
    pub(super) fn fill(&self, bytes: &mut [u8]) -> Option<()> {
        self.random.fill(bytes).ok()
    }

    /// A UUID of version 4.
    pub(super) fn uuid(&self) -> Option<String> {
        let mut bytes = [0; 16];
        self.fill(&mut bytes)?;
        let (mask, version) = ((0xf << 76) | (0b11 << 62), (4 << 76) | (0b10 << 62));
        let bits = (u128::from_be_bytes(bytes) & !mask) | version;
        let hex = format!("{bits:032x}");
        Some([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
    }

    /// New material of a key, sealed.
    pub(super) fn new_material(&self, id: &str) -> Option<String> {
        let mut bytes = [0; KEY_BYTES];
        self.fill(&mut bytes)?;
        Some(STANDARD.encode(self.seal_with(&self.master, id.as_bytes(), &bytes)?))
    }

    /// Encrypts with a key: version, the key's id, nonce, ciphertext.
    pub(super) fn encrypt(
        &self,
        id: &str,
        material: &str,
        context: &BTreeMap<String, String>,
        plain: &[u8],
    ) -> Option<Vec<u8>> {
        let key = self.key_of(id, material)?;
        let mut blob = vec![VERSION];
        blob.extend_from_slice(id.as_bytes());
        blob.extend(self.seal_with(&key, &bound_to(id, context), plain)?);
        Some(blob)
    }

    /// Decrypts what [`Self::encrypt`] made; none where the key or the context is another, or a bit has changed.
    pub(super) fn decrypt(
        &self,
        id: &str,
        material: &str,
        context: &BTreeMap<String, String>,
        blob: &[u8],
    ) -> Option<Vec<u8>> {
        let sealed = blob.get(1 + ID_CHARS..)?;
        open_with(&self.key_of(id, material)?, &bound_to(id, context), sealed)
    }

    fn key_of(&self, id: &str, material: &str) -> Option<LessSafeKey> {
        key(&open_with(&self.master, id.as_bytes(), &STANDARD.decode(material).ok()?)?)
    }

    fn seal_with(&self, key: &LessSafeKey, aad: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.fill(&mut nonce)?;
        let mut sealed = plain.to_vec();
        let nonce_of = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(nonce_of, Aad::from(aad), &mut sealed).ok()?;
        Some([&nonce, &sealed[..]].concat())
    }
}

/// The id of the key that made a blob; none where it has not the form of one.
pub(super) fn key_id(blob: &[u8]) -> Option<&str> {
    let (&VERSION, rest) = blob.split_first()? else { return None };
    std::str::from_utf8(rest.get(..ID_CHARS)?).ok()
}

/// The canonical form of a context is JSON with its keys in order.
fn bound_to(id: &str, context: &BTreeMap<String, String>) -> Vec<u8> {
    let context = serde_json::to_string(context).expect("texts by texts are plain data");
    [&[VERSION], id.as_bytes(), context.as_bytes()].concat()
}

fn key(bytes: &[u8]) -> Option<LessSafeKey> {
    (bytes.len() == KEY_BYTES).then(|| UnboundKey::new(&AES_256_GCM, bytes).ok().map(LessSafeKey::new))?
}

fn open_with(key: &LessSafeKey, aad: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
    let mut plain = sealed.to_vec();
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let len = key.open_in_place(nonce, Aad::from(aad), &mut plain).ok()?.len();
    plain.truncate(len);
    Some(plain)
}

/// Makes a master key. It is on the disk, whole, before anything is sealed with it.
fn make(folder: &Path, file: &Path, random: &SystemRandom) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; KEY_BYTES];
    random.fill(&mut bytes).map_err(|_| io::Error::other("the system has no random bytes"))?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = file.with_extension("new");
    let mut open = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
    open.write_all(&bytes)?;
    open.sync_all()?;
    std::fs::rename(&new, file)?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_sealed_opens_with_the_same_key_and_context_alone() {
        let home = tempfile::tempdir().unwrap();
        let vault = Vault::open(home.path(), true).unwrap();
        let (id, other) = (vault.uuid().unwrap(), vault.uuid().unwrap());
        assert_eq!((id.len(), &id[14..15]), (ID_CHARS, "4"));
        let (material, other_material) =
            (vault.new_material(&id).unwrap(), vault.new_material(&other).unwrap());
        let bound = context(&[("b", "2"), ("a", "1")]);
        let blob = vault.encrypt(&id, &material, &bound, b"secret").unwrap();
        assert_eq!(key_id(&blob), Some(id.as_str()));
        let again = Vault::open(home.path(), false).unwrap();
        assert_eq!(again.decrypt(&id, &material, &bound, &blob).unwrap(), b"secret");
        assert_eq!(again.decrypt(&id, &material, &context(&[("a", "1")]), &blob), None);
        assert_eq!(again.decrypt(&other, &other_material, &bound, &blob), None);
        // Material is bound to its id, too.
        assert_eq!(again.decrypt(&other, &material, &bound, &blob), None);
        for at in [0, 20, blob.len() - 1] {
            let mut damaged = blob.clone();
            damaged[at] ^= 1;
            let opened = key_id(&damaged).filter(|found| *found == id);
            assert_eq!(opened.and_then(|_| again.decrypt(&id, &material, &bound, &damaged)), None, "{at}");
        }
        assert_ne!(vault.encrypt(&id, &material, &bound, b"secret").unwrap(), blob);
        for short in [&[][..], &[VERSION], &blob[..30]] {
            assert_eq!(key_id(short), None);
        }
    }

    #[test]
    fn a_master_key_that_is_lost_cut_or_open_to_others_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let missing = Vault::open(home.path(), false).unwrap_err();
        assert!(matches!(missing, VaultError::Missing { .. }), "{missing}");
        Vault::open(home.path(), true).unwrap();
        let file = home.path().join(FOLDER).join(FILE);
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = Vault::open(home.path(), false).unwrap_err();
        assert!(open.to_string().contains("mode 644"), "{open}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&file, [1; 31]).unwrap();
        let cut = Vault::open(home.path(), true).unwrap_err();
        assert!(cut.to_string().contains("31 bytes"), "{cut}");
    }
}
