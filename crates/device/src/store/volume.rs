//! One open volume: reading, writing and freeing blocks.
//!
//! The hot path, a read or an overwrite of blocks that the topmost layer holds, is one look into a bitmap and one
//! `pread` or `pwrite`. Only the first write to a block takes a lock that others may wait for, one of [`STRIPES`].

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use super::cipher::Cipher;
use super::layer::{Chain, Frozen, Top, blocks_touched};
use super::maps::Maps;
use super::registry::VolumeStore;
use super::{BLOCK_BYTES, Extent, ExtentKind, StoreError};

/// Locks that first writes and discards share.
const STRIPES: usize = 64;
/// Blocks under one lock: 1 MiB, the largest request of the exports, so that most take one lock.
const STRIPE_BLOCKS: u64 = 256;
const BLOCK: usize = 4096;
const ZEROES: [u8; BLOCK] = [0; BLOCK];

/// An open volume. All operations may be called from any number of threads; the last handle dropped closes it. One that is
/// encrypted takes ranges of whole sectors of 512 bytes only.
#[derive(Debug)]
pub struct OpenVolume {
    name: String,
    core: Arc<Core>,
    store: VolumeStore,
    /// What its layers hold is ciphertext of this; none: it is plain.
    cipher: Option<Arc<Cipher>>,
}

impl OpenVolume {
    pub(super) fn new(name: &str, core: Arc<Core>, store: VolumeStore, cipher: Option<Arc<Cipher>>) -> Self {
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
        let (chain, since) = self.store.chain_since(&self.name, &self.core, snapshot)?;
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
        self.store.close_volume(&self.name);
    }
}

/// What the store and the handle of an open volume share.
#[derive(Debug)]
pub(super) struct Core {
    /// Readers take the chain as it is; it is replaced, never changed.
    pub(super) chain: ArcSwap<Chain>,
    /// Held by every write while it runs, so that a layer is frozen between two writes, not in one.
    gate: RwLock<()>,
    stripes: [Mutex<()>; STRIPES],
    pub(super) size_bytes: AtomicU64,
    host_sync: bool,
}

impl Core {
    pub(super) fn new(chain: Chain, size_bytes: u64, host_sync: bool) -> Self {
        Self {
            chain: ArcSwap::from_pointee(chain),
            gate: RwLock::new(()),
            stripes: [const { Mutex::new(()) }; STRIPES],
            size_bytes: AtomicU64::new(size_bytes),
            host_sync,
        }
    }

    /// Waits for the writes that run, and keeps others out until the guard is dropped. Readers go on.
    pub(super) fn stop_writes(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write()
    }

    /// Puts an empty layer on top, and gives the one that is frozen by that.
    pub(super) fn freeze(&self, empty: Frozen) -> Frozen {
        let _gate = self.stop_writes();
        let chain = self.chain.load();
        let frozen = chain.top.freeze();
        if !self.host_sync {
            frozen.layer.journal.lock().seal();
        }
        let below = std::iter::once(frozen.clone()).chain(chain.below.iter().cloned()).collect();
        self.chain.store(Arc::new(Chain { top: Arc::new(Top::thaw(empty)), below }));
        frozen
    }

    fn check_range(&self, offset: u64, len: u64) -> io::Result<()> {
        let size = self.size_bytes.load(Ordering::Acquire);
        if offset.checked_add(len).is_some_and(|end| end <= size) {
            return Ok(());
        }
        let what = format!("{len} bytes at {offset} are not inside the volume, which has {size} bytes");
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    }

    fn write(&self, chain: &Chain, buf: &[u8], offset: u64) -> io::Result<()> {
        if chain.top.all_data(&blocks_touched(offset, buf.len())) {
            return chain.top.layer.files.write_at(buf, offset);
        }
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let room = stripe_end(at / BLOCK_BYTES) * BLOCK_BYTES - at;
            let len = usize::try_from(room).map_or(rest.len(), |room| room.min(rest.len()));
            let (part, after) = rest.split_at(len);
            self.write_first(chain, part, at)?;
            at += len_u64(len);
            rest = after;
        }
        Ok(())
    }

    /// A write inside one stripe to blocks that the topmost layer may not hold yet.
    fn write_first(&self, chain: &Chain, buf: &[u8], offset: u64) -> io::Result<()> {
        let blocks = blocks_touched(offset, buf.len());
        let _stripe = self.stripe(blocks.start).lock();
        let top = &chain.top;
        if top.all_data(&blocks) {
            return top.layer.files.write_at(buf, offset);
        }
        let written = write_whole_blocks(chain, buf, offset).and_then(|()| top.note_data(blocks.clone()));
        if written.is_err() && !top.layer.journal.lock().has_failed() {
            top.free_leftovers(blocks);
        }
        written
    }

    /// Makes whole blocks read as zeroes.
    fn free(&self, chain: &Chain, blocks: Range<u64>) -> io::Result<()> {
        let mut at = blocks.start;
        while at < blocks.end {
            let (holder, run_end) = chain.locate(at, blocks.end);
            if holder.is_none() {
                at = run_end;
                continue;
            }
            let until = run_end.min(stripe_end(at));
            let _stripe = self.stripe(at).lock();
            chain.top.free(at..until)?;
            at = until;
        }
        Ok(())
    }

    fn stripe(&self, block: u64) -> &Mutex<()> {
        let at =
            usize::try_from(block / STRIPE_BLOCKS % len_u64(STRIPES)).expect("below the number of stripes");
        &self.stripes[at]
    }
}

/// Writes `buf` so that every block it touches is whole in the topmost layer: the ends of blocks that are below are
/// brought up first. The stripe's lock is held.
fn write_whole_blocks(chain: &Chain, buf: &[u8], offset: u64) -> io::Result<()> {
    let files = &chain.top.layer.files;
    let (head, whole, tail) = split_at_blocks(offset, len_u64(buf.len()));
    for edge in [head, tail] {
        if edge.is_empty() {
            continue;
        }
        let block = edge.start / BLOCK_BYTES;
        let part = &buf[at(edge.start - offset)..at(edge.end - offset)];
        if chain.top.all_data(&(block..block + 1)) {
            files.write_at(part, edge.start)?;
            continue;
        }
        let mut merged = [0; BLOCK];
        chain.read(&mut merged, block * BLOCK_BYTES)?;
        merged[at(edge.start % BLOCK_BYTES)..][..part.len()].copy_from_slice(part);
        files.write_at(&merged, block * BLOCK_BYTES)?;
    }
    if whole.is_empty() {
        return Ok(());
    }
    let start = whole.start * BLOCK_BYTES;
    files.write_at(&buf[at(start - offset)..at(whole.end * BLOCK_BYTES - offset)], start)
}

/// The ragged beginning (bytes), the whole blocks (blocks) and the ragged end (bytes) of a range.
fn split_at_blocks(offset: u64, len: u64) -> (Range<u64>, Range<u64>, Range<u64>) {
    let end = offset + len;
    let (first, last) = (offset.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES);
    if first > last {
        return (offset..end, first..first, end..end); // inside one block
    }
    (offset..first * BLOCK_BYTES, first..last, last * BLOCK_BYTES..end)
}

fn stripe_end(block: u64) -> u64 {
    (block / STRIPE_BLOCKS + 1) * STRIPE_BLOCKS
}

fn at(bytes: u64) -> usize {
    usize::try_from(bytes).expect("an offset in a buffer")
}

fn len_u64(len: usize) -> u64 {
    u64::try_from(len).expect("a length fits into 64 bits")
}
