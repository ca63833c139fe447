//! The layers of one open volume, and writes to the topmost.
//!
//! Only the first write to a block takes a lock that others may wait for, one of [`STRIPES`].

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use super::BLOCK_BYTES;
use super::layer::{Chain, Frozen, Top, blocks_touched};

/// Locks that first writes and discards share.
const STRIPES: usize = 64;
/// Blocks under one lock: 1 MiB, the largest request of the exports, so that most take one lock.
const STRIPE_BLOCKS: u64 = 256;
pub(super) const BLOCK: usize = 4096;

/// What the store and the handle of an open volume share.
#[derive(Debug)]
pub(super) struct VolumeCore {
    /// Readers take the chain as it is; it is replaced, never changed.
    pub(super) chain: ArcSwap<Chain>,
    /// Held by every write while it runs, so that a layer is frozen between two writes, not in one.
    pub(super) gate: RwLock<()>,
    stripes: [Mutex<()>; STRIPES],
    pub(super) size_bytes: AtomicU64,
    pub(super) host_sync: bool,
}

impl VolumeCore {
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

    pub(super) fn check_range(&self, offset: u64, len: u64) -> io::Result<()> {
        let size = self.size_bytes.load(Ordering::Acquire);
        if offset.checked_add(len).is_some_and(|end| end <= size) {
            return Ok(());
        }
        let what = format!("{len} bytes at {offset} are not inside the volume, which has {size} bytes");
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    }

    pub(super) fn write(&self, chain: &Chain, buf: &[u8], offset: u64) -> io::Result<()> {
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
    pub(super) fn free(&self, chain: &Chain, blocks: Range<u64>) -> io::Result<()> {
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
pub(super) fn split_at_blocks(offset: u64, len: u64) -> (Range<u64>, Range<u64>, Range<u64>) {
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

pub(super) fn len_u64(len: usize) -> u64 {
    u64::try_from(len).expect("a length fits into 64 bits")
}
