//! Tokens of blocks and pages: an index and a time, bound to snapshots by a key that only this home has.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// The folder of the home, and the file of the key in it. Without the key, tokens would end with the process.
const FOLDER: &str = "aws";
const FILE: &str = "ebs-tokens.key";

/// Bytes of a key, and of a code.
const KEY_BYTES: usize = 32;
/// Bytes of a token before its code: the index and the time.
const HEAD_BYTES: usize = 16;

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To read a block.
    Block,
    /// To list the blocks of a snapshot from an index on.
    Blocks,
    /// To list the changed blocks of two snapshots from an index on.
    ChangedBlocks,
}

/// What a token is bound to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Binding<'a> {
    pub(super) purpose: Purpose,
    /// The first snapshot of a comparison; else empty.
    pub(super) first: &'a str,
    pub(super) snapshot: &'a str,
}

/// Makes tokens, and reads its own.
#[derive(Debug)]
pub(super) struct Tokens {
    key: hmac::Key,
}

impl Tokens {
    /// Tokens by the key of a home, which is made where there is none.
    pub(super) fn open(home: &Path) -> io::Result<Self> {
        let folder = home.join(FOLDER);
        let file = folder.join(FILE);
        let bytes = match fs::read(&file) {
            Ok(bytes) if bytes.len() == KEY_BYTES => bytes,
            Ok(_) => make(&folder, &file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(&folder, &file)?,
            Err(error) => return Err(error),
        };
        Ok(Self { key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) })
    }

    pub(super) fn issue(&self, binding: Binding<'_>, index: u64, expires_ms: u64) -> String {
        let mut token = [index.to_be_bytes(), expires_ms.to_be_bytes()].concat();
        let code = hmac::sign(&self.key, &message(binding, &token));
        token.extend_from_slice(code.as_ref());
        STANDARD.encode(token)
    }

    /// The index of a token; none where it is another's, altered or expired.
    pub(super) fn index(&self, binding: Binding<'_>, token: &str, now_ms: u64) -> Option<u64> {
        let bytes = STANDARD.decode(token).ok()?;
        let (head, code) = bytes.split_at_checked(HEAD_BYTES)?;
        hmac::verify(&self.key, &message(binding, head), code).ok()?;
        let (index, expires_ms) = head.split_at_checked(HEAD_BYTES / 2)?;
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
        (now_ms < number(expires_ms)?).then_some(number(index)?)
    }
}

/// What a code is of. No id has a zero byte.
fn message(binding: Binding<'_>, head: &[u8]) -> Vec<u8> {
    let purpose: &[u8] = match binding.purpose {
        Purpose::Block => b"block",
        Purpose::Blocks => b"blocks",
        Purpose::ChangedBlocks => b"changed",
    };
    [purpose, binding.first.as_bytes(), binding.snapshot.as_bytes(), head].join(&0)
}

/// Makes a key, whole or not at all.
fn make(folder: &Path, file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system has no random bytes"))?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = file.with_extension("new");
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    options.open(&new)?.write_all(&bytes)?;
    fs::rename(&new, file)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_000_000_000;

    #[test]
    fn a_token_is_good_for_what_it_was_issued_for_until_it_expires() {
        let home = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(home.path()).unwrap();
        let binding = Binding { purpose: Purpose::Block, first: "", snapshot: "snap-1" };
        let token = tokens.issue(binding, 7, NOW + 10);
        assert!(
            token.len() <= 256 && token.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
        );
        assert_eq!(tokens.index(binding, &token, NOW + 9), Some(7));
        assert_eq!(tokens.index(binding, &token, NOW + 10), None, "expired");
        for other in [
            Binding { purpose: Purpose::Blocks, ..binding },
            Binding { snapshot: "snap-2", ..binding },
            Binding { first: "snap-1", ..binding },
        ] {
            assert_eq!(tokens.index(other, &token, NOW), None, "{other:?}");
        }
        let again = Tokens::open(home.path()).unwrap();
        assert_eq!(again.index(binding, &token, NOW), Some(7), "the key outlives the process");
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(Tokens::open(elsewhere.path()).unwrap().index(binding, &token, NOW), None);
    }

    #[test]
    fn no_altered_token_is_accepted() {
        let home = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(home.path()).unwrap();
        let binding = Binding { purpose: Purpose::Blocks, first: "", snapshot: "snap-1" };
        let token = STANDARD.decode(tokens.issue(binding, 7, NOW)).unwrap();
        for at in 0..token.len() {
            let mut altered = token.clone();
            altered[at] ^= 1;
            assert_eq!(tokens.index(binding, &STANDARD.encode(altered), 0), None, "byte {at}");
        }
        for bad in ["", "?", "AAAA", &STANDARD.encode([0; 16])] {
            assert_eq!(tokens.index(binding, bad, 0), None, "{bad}");
        }
    }
}
