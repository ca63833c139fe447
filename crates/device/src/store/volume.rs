//! One open volume: reading, writing and freeing blocks.
//!
//! The hot path, a read or an overwrite of blocks that the topmost layer holds, is one look into a bitmap and one
//! `pread` or `pwrite`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cipher::Cipher;
use super::layer::{Chain, Frozen};
use super::maps::Maps;
use super::reclaim::BackgroundWorker;
use super::volume_core::{BLOCK, VolumeCore, len_u64, split_at_blocks};
use super::{BLOCK_BYTES, Extent, ExtentKind, StoreError};

const ZEROES: [u8; BLOCK] = [0; BLOCK];

/// An open volume. All operations may be called from any number of threads; the last handle dropped closes it. One that is
/// encrypted takes ranges of whole sectors of 512 bytes only.
#[derive(Debug)]
pub struct OpenVolume {
    name: String,
    core: Arc<VolumeCore>,
    store: Arc<BackgroundWorker>,
    /// What its layers hold is ciphertext of this; none: it is plain.
    cipher: Option<Arc<Cipher>>,
}

impl OpenVolume {
    pub(super) fn new(
        name: &str,
        core: Arc<VolumeCore>,
        store: Arc<BackgroundWorker>,
        cipher: Option<Arc<Cipher>>,
    ) -> Self {
        Self { name: name.to_owned(), core, store, cipher }
    }

    pub(super) const fn cipher(&self) -> Option<&Arc<Cipher>> {
        self.cipher.as_ref()
    }

    /// Whether what it writes is encrypted.
    pub const fn is_encrypted(&self) -> bool {
        self.cipher.is_some()
    }

    /// The volume's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Size, bytes.
    pub fn size_bytes(&self) -> u64 {
        self.core.size_bytes.load(Ordering::Acquire)
    }

    /// Fills `buf` from `offset`, any range inside the volume. What was never written reads as zeroes.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a range outside the volume; otherwise the host's error. `UnexpectedEof` means that a data file
    /// was cut by someone else.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.core.check_range(offset, len_u64(buf.len()))?;
        let mut done = self.core.chain.load().read(buf, offset);
        if let (Some(cipher), true) = (&self.cipher, done.is_ok()) {
            done = cipher.decrypt(buf, offset);
        }
        self.trace("read", offset, len_u64(buf.len()), done)
    }

    /// Writes `buf` at `offset`, any range inside the volume. Survives `kill -9` of this process once it returned.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a range outside the volume; `StorageFull` when the host's disk is full: the range is then, block
    /// by block, as it was or as it was to become, and everything else is untouched; otherwise the host's error.
    pub fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.core.check_range(offset, len_u64(buf.len()))?;
        let _gate = self.core.gate.read();
        let done = self.put(&self.core.chain.load(), buf, offset);
        self.trace("write", offset, len_u64(buf.len()), done)
    }

    /// Writes what the layers are to hold.
    fn put(&self, chain: &Chain, buf: &[u8], offset: u64) -> io::Result<()> {
        match &self.cipher {
            None => self.core.write(chain, buf, offset),
            Some(cipher) => cipher.encrypt(buf, offset, |part, at| self.core.write(chain, part, at)),
        }
    }

    /// Makes the range read as zeroes; whole blocks free their host space.
    ///
    /// # Errors
    ///
    /// As [`Self::write_at`].
    pub fn write_zeroes(&self, offset: u64, len: u64) -> io::Result<()> {
        self.core.check_range(offset, len)?;
        let _gate = self.core.gate.read();
        let chain = self.core.chain.load();
        let (head, whole, tail) = split_at_blocks(offset, len);
        let edges = [head, tail].into_iter().try_for_each(|edge| {
            let block = edge.start / BLOCK_BYTES;
            if edge.is_empty() || chain.locate(block, block + 1).0.is_none() {
                return Ok(());
            }
            let len = usize::try_from(edge.end - edge.start).map_err(io::Error::other)?;
            self.put(&chain, &ZEROES[..len], edge.start)
        });
        let done = edges.and_then(|()| self.core.free(&chain, whole));
        self.trace("write-zeroes", offset, len, done)
    }

    /// Frees the whole blocks inside the range, which read as zeroes from then on; its ragged ends stay as they are.
    ///
    /// # Errors
    ///
    /// As [`Self::write_at`].
    pub fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        self.core.check_range(offset, len)?;
        let _gate = self.core.gate.read();
        let done = self.core.free(&self.core.chain.load(), split_at_blocks(offset, len).1);
        self.trace("discard", offset, len, done)
    }

    /// Puts every answered write on the host's disk when the store was opened with `host_sync`; otherwise only seals the
    /// journal, so that it is noticed when someone cuts it off.
    ///
    /// # Errors
    ///
    /// The host's. The next call tries again, but what the host's disk failed to take may be lost.
    pub fn sync(&self) -> io::Result<()> {
        let done = if self.core.host_sync {
            // The chain is taken after the writes to be synced were answered: it has every layer that they went to.
            let chain = self.core.chain.load_full();
            let below = || chain.below.iter().try_for_each(|frozen| frozen.layer.sync());
            chain.top.layer.sync().and_then(|()| below())
        } else {
            self.core.chain.load().top.layer.seal()
        };
        self.trace("sync", 0, 0, done)
    }

    /// Traces what the host's file system answered; errno 0 where it did what was asked.
    fn trace(
        &self,
        operation: &'static str,
        offset: u64,
        length: u64,
        done: io::Result<()>,
    ) -> io::Result<()> {
        let errno = || done.as_ref().err().map_or(Some(0), io::Error::raw_os_error);
        tracing::trace!(volume = self.name, operation, offset, length, errno = errno(), "done");
        done
    }

    /// What the topmost layer decides now.
    pub(super) fn top_maps(&self) -> Arc<Maps> {
        self.core.chain.load().top.maps()
    }

    /// What holds data and what does not, in order and without gaps, neighbours of one kind joined. The part of the range
    /// beyond the volume's end is left out.
    pub fn extents(&self, offset: u64, len: u64) -> Vec<Extent> {
        let chain = self.core.chain.load_full();
        self.describe(offset, len, |block, end| {
            let (holder, run_end) = chain.locate(block, end);
            (holder.is_some(), run_end)
        })
    }

    /// What changed since `snapshot`, which must be an ancestor, in order and without gaps: `Data` was written or
    /// discarded since, `Hole` is as it was. The part of the range beyond the volume's end is left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::NotAncestor`].
    pub fn dirty_since(&self, snapshot: &str, offset: u64, len: u64) -> Result<Vec<Extent>, StoreError> {
        let (chain, since) = self.store.shared().chain_since(&self.name, &self.core, snapshot)?;
        let top = chain.top.freeze();
        let above = std::iter::once(&top).chain(&chain.below).take(since);
        let above: Vec<&Frozen> = above.collect();
        Ok(self.describe(offset, len, |block, end| {
            let mut unchanged_until = end;
            for frozen in &above {
                let (kind, run_end) = frozen.maps.run_at(block, unchanged_until);
                if kind.is_some() {
                    return (true, run_end);
                }
                unchanged_until = run_end;
            }
            (false, unchanged_until)
        }))
    }

    fn describe(
        &self,
        offset: u64,
        len: u64,
        mut run_at: impl FnMut(u64, u64) -> (bool, u64),
    ) -> Vec<Extent> {
        let end = offset.saturating_add(len).min(self.size_bytes());
        let mut extents: Vec<Extent> = Vec::new();
        let mut at = offset;
        while at < end {
            let (is_data, run_end) = run_at(at / BLOCK_BYTES, end.div_ceil(BLOCK_BYTES));
            let kind = if is_data { ExtentKind::Data } else { ExtentKind::Hole };
            let until = end.min(run_end * BLOCK_BYTES);
            match extents.last_mut() {
                Some(last) if last.kind == kind => last.len += until - at,
                _ => extents.push(Extent { offset: at, len: until - at, kind }),
            }
            at = until;
        }
        extents
    }
}

impl Drop for OpenVolume {
    fn drop(&mut self) {
        self.store.shared().close_volume(&self.name);
    }
}
