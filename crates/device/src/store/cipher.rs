//! Encryption at rest: AES-256-XTS over the bytes that layers hold, in sectors of 512 bytes.
//!
//! A sector's tweak is its number in the volume. Layers, snapshots, clones and crash images of one data key therefore hold
//! the same bytes for the same content, and the store moves them without the key. XTS is here because the crate that has
//! it encrypts block by block, at a sixth of the speed: docs/decisions/encryption.md. It is checked with the vectors of
//! IEEE 1619-2007.

use std::cell::RefCell;
use std::fmt;
use std::io;

use aes::Aes256;
use aes::cipher::consts::U16;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

use super::key::{DATA_KEY_BYTES, DataKey};

/// Size of a sector, the least that is written to an encrypted volume, bytes: that of its guests' smallest requests.
pub(super) const SECTOR_BYTES: u64 = 512;
const SECTOR: usize = 512;
/// Sectors that are encrypted at a time: their masks and the data fit into the first cache.
const BATCH: usize = 8;
const BLOCKS_OF_SECTOR: usize = SECTOR / 16;
/// Longest part of a write that is encrypted at a time, bytes: the longest request of the exports.
pub(super) const PART_BYTES: usize = 1 << 20;

thread_local! {
    /// What a thread's writes are encrypted in, so that none of them allocates.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Encrypts and decrypts the sectors of a volume.
pub(super) struct Cipher {
    data: Aes256,
    tweak: Aes256,
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

impl Cipher {
    pub(super) fn new(key: &DataKey) -> Self {
        let cipher = |half: &[u8]| Aes256::new_from_slice(half).expect("half a data key has 32 bytes");
        let (data, tweak) = key.0.split_at(DATA_KEY_BYTES / 2);
        Self { data: cipher(data), tweak: cipher(tweak) }
    }

    /// Hands the ciphertext of `plain`, which is for `offset`, to `write`, in parts with their offsets.
    ///
    /// # Errors
    /// `InvalidInput` for a range that is not in whole sectors; what `write` answers.
    pub(super) fn encrypt(
        &self,
        plain: &[u8],
        offset: u64,
        mut write: impl FnMut(&[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        require_sectors(offset, plain.len())?;
        SCRATCH.with_borrow_mut(|scratch| {
            let mut at = offset;
            for part in plain.chunks(PART_BYTES) {
                scratch.clear();
                scratch.extend_from_slice(part);
                self.apply(scratch, at, |blocks| self.data.encrypt_blocks(blocks));
                write(scratch, at)?;
                at += u64::try_from(part.len()).map_err(io::Error::other)?;
            }
            Ok(())
        })
    }

    /// Decrypts what was read at `offset`, in place. A sector of zeroes stays: no layer has it, or a part of its block was
    /// written alone. No plain sector of any content becomes zeroes by encryption, except with a probability of 2^-4096.
    ///
    /// # Errors
    /// `InvalidInput` for a range that is not in whole sectors.
    pub(super) fn decrypt(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        require_sectors(offset, buf.len())?;
        let (mut at, mut rest) = (0, buf);
        let first = offset / SECTOR_BYTES;
        while !rest.is_empty() {
            let zeroes = rest.chunks(SECTOR).take_while(|sector| is_zero(sector)).count();
            rest = &mut rest[zeroes * SECTOR..];
            at += zeroes;
            let data = rest.chunks(SECTOR).take_while(|sector| !is_zero(sector)).count();
            let (run, after) = rest.split_at_mut(data * SECTOR);
            let begin = first + u64::try_from(at).map_err(io::Error::other)?;
            self.apply(run, begin * SECTOR_BYTES, |blocks| self.data.decrypt_blocks(blocks));
            (at, rest) = (at + data, after);
        }
        Ok(())
    }

    /// XEX: each block is masked before and after the cipher by its sector's tweak times a power of two.
    fn apply(&self, buf: &mut [u8], offset: u64, cipher: impl Fn(&mut [Array<u8, U16>])) {
        let mut sector = offset / SECTOR_BYTES;
        for batch in buf.chunks_mut(BATCH * SECTOR) {
            let mut tweaks = [[0; 16]; BATCH];
            let tweaks = &mut tweaks[..batch.len() / SECTOR];
            for tweak in &mut *tweaks {
                *tweak = u128::from(sector).to_le_bytes();
                sector += 1;
            }
            self.tweak.encrypt_blocks(Array::slice_as_chunks_mut(tweaks.as_flattened_mut()).0);
            let mut masks = [0_u128; BATCH * BLOCKS_OF_SECTOR];
            for (masks, tweak) in masks.chunks_exact_mut(BLOCKS_OF_SECTOR).zip(&*tweaks) {
                let mut tweak = u128::from_le_bytes(*tweak);
                for mask in masks {
                    *mask = tweak;
                    tweak = doubled(tweak);
                }
            }
            mask(batch, &masks);
            cipher(Array::slice_as_chunks_mut(batch).0);
            mask(batch, &masks);
        }
    }
}

/// Twice a tweak, in the field of 2^128 elements by x^128 + x^7 + x^2 + x + 1.
const fn doubled(tweak: u128) -> u128 {
    let carry = if tweak >> 127 == 1 { 0x87 } else { 0 };
    (tweak << 1) ^ carry
}

fn mask(batch: &mut [u8], masks: &[u128]) {
    for (block, mask) in batch.as_chunks_mut::<16>().0.iter_mut().zip(masks) {
        *block = (u128::from_le_bytes(*block) ^ mask).to_le_bytes();
    }
}

fn is_zero(sector: &[u8]) -> bool {
    sector.as_chunks::<16>().0.iter().all(|block| u128::from_ne_bytes(*block) == 0)
}

fn require_sectors(offset: u64, len: usize) -> io::Result<()> {
    if offset.is_multiple_of(SECTOR_BYTES) && len.is_multiple_of(SECTOR) {
        return Ok(());
    }
    let what = format!("{len} bytes at {offset}: an encrypted volume takes whole sectors of {SECTOR} bytes");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

#[cfg(test)]
#[path = "cipher/tests.rs"]
mod tests;
