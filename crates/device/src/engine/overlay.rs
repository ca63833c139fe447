//! Volatile memory between the volume and its store: the write cache of a device without power-loss
//! protection, or the planted defect that answers early.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ebbtide_volume::{AtomicUnit, PowerCut, UnitWrite};
use parking_lot::RwLock;
use rand_core::Rng;

use crate::store::{BLOCK_BYTES, OpenVolume};

const PAGE: usize = 4096;

/// Answered writes that the store does not have yet. With a capacity of zero it passes everything
/// through, at the cost of one atomic load.
#[derive(Debug)]
pub(super) struct Overlay {
    /// Whether anything may be in here.
    active: AtomicBool,
    pages: RwLock<Pages>,
    /// What the volume's own cache holds, bytes; zero without one.
    own: u64,
}

#[derive(Debug, Default)]
struct Pages {
    capacity: u64,
    by_block: BTreeMap<u64, Page>,
    /// Block numbers by the order in which they became dirty, which is that of leaving.
    by_age: BTreeMap<u64, u64>,
    age: u64,
}

#[derive(Debug)]
struct Page {
    age: u64,
    /// Shared with the crash images that are being taken, so that they copy none while writes wait.
    bytes: Arc<[u8; PAGE]>,
}

/// What a power cut does to the pages: those of surviving units, and which are lost.
#[derive(Debug, Default)]
pub(super) struct Survivors {
    pub(super) writes: Vec<(u64, Arc<[u8; PAGE]>)>,
    pub(super) units_kept: u64,
    pub(super) units_lost: u64,
    /// Where the pages are that are lost, bytes.
    pub(super) lost: Vec<u64>,
}

impl Overlay {
    /// The volume's own volatile cache of `capacity` bytes.
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            active: AtomicBool::new(capacity > 0),
            pages: RwLock::new(Pages { capacity, ..Pages::default() }),
            own: capacity,
        }
    }

    fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// Begins to hold answered writes back, `capacity` bytes of them unless the volume's own cache
    /// is larger.
    pub(super) fn hold_back(&self, capacity: u64) {
        self.pages.write().capacity = self.own.max(capacity);
        self.active.store(true, Ordering::Release);
    }

    /// Ends [`Overlay::hold_back`]: only the volume's own cache remains.
    pub(super) fn let_go(&self, store: &OpenVolume) -> io::Result<()> {
        if !self.is_active() {
            return Ok(());
        }
        let mut pages = self.pages.write();
        pages.capacity = self.own;
        pages.make_room(store, 0)?;
        if self.own == 0 {
            self.active.store(false, Ordering::Release);
        }
        Ok(())
    }

    pub(super) fn read(&self, store: &OpenVolume, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if !self.is_active() {
            return store.read_at(buf, offset);
        }
        // Held across the store's read: a page that leaves meanwhile would be in neither.
        let pages = self.pages.read();
        store.read_at(buf, offset)?;
        let end = offset + len_of(buf);
        for (&block, page) in pages.by_block.range(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)) {
            let (within, at, len) = overlap(block, offset, end);
            buf[at..at + len].copy_from_slice(&page.bytes[within..within + len]);
        }
        Ok(())
    }

    pub(super) fn write(&self, store: &OpenVolume, data: &[u8], offset: u64) -> io::Result<()> {
        if !self.is_active() {
            return store.write_at(data, offset);
        }
        let mut pages = self.pages.write();
        let end = offset + len_of(data);
        for block in offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            let (within, at, len) = overlap(block, offset, end);
            let page = pages.dirty(store, block, len == PAGE)?;
            page[within..within + len].copy_from_slice(&data[at..at + len]);
        }
        pages.make_room(store, 0)
    }

    /// Writes to the store itself, and what was over the range before it.
    pub(super) fn write_through(&self, store: &OpenVolume, data: &[u8], offset: u64) -> io::Result<()> {
        if !self.is_active() {
            return store.write_at(data, offset);
        }
        let mut pages = self.pages.write();
        pages.evict(store, offset, len_of(data))?;
        store.write_at(data, offset)
    }

    pub(super) fn write_zeroes(&self, store: &OpenVolume, offset: u64, len: u64) -> io::Result<()> {
        if !self.is_active() {
            return store.write_zeroes(offset, len);
        }
        let mut pages = self.pages.write();
        pages.evict(store, offset, len)?;
        store.write_zeroes(offset, len)
    }

    /// Moves everything to the store.
    pub(super) fn flush(&self, store: &OpenVolume) -> io::Result<()> {
        if !self.is_active() {
            return Ok(());
        }
        let mut pages = self.pages.write();
        while pages.evict_oldest(store)? {}
        Ok(())
    }

    /// Decides about every unit, in the order of offsets. Nothing changes.
    pub(super) fn survivors(&self, unit: AtomicUnit, rng: &mut impl Rng) -> Survivors {
        let mut survivors = Survivors::default();
        let mut decided = None;
        for (&block, page) in &self.pages.read().by_block {
            let start = block * BLOCK_BYTES / unit.bytes() * unit.bytes();
            let kept = match decided {
                Some((unit_start, kept)) if unit_start == start => kept,
                _ => {
                    let fate: Option<UnitWrite> =
                        PowerCut::new(unit, rng).surviving(start, unit.bytes()).next();
                    survivors.units_kept += u64::from(fate.is_some());
                    survivors.units_lost += u64::from(fate.is_none());
                    fate.is_some()
                }
            };
            decided = Some((start, kept));
            let offset = block * BLOCK_BYTES;
            if kept {
                survivors.writes.push((offset, Arc::clone(&page.bytes)));
            } else {
                survivors.lost.push(offset);
            }
        }
        survivors
    }

    /// Forgets everything, as the loss of power does.
    pub(super) fn clear(&self) {
        let mut pages = self.pages.write();
        pages.by_block.clear();
        pages.by_age.clear();
    }
}

impl Pages {
    /// The page of a block for writing, filled from the store unless all of it will be replaced.
    fn dirty(&mut self, store: &OpenVolume, block: u64, whole: bool) -> io::Result<&mut [u8; PAGE]> {
        if !self.by_block.contains_key(&block) {
            let mut bytes = [0; PAGE];
            if !whole {
                let len = page_len(store, block);
                store.read_at(&mut bytes[..len], block * BLOCK_BYTES)?;
            }
            self.make_room(store, BLOCK_BYTES)?;
            self.age += 1;
            self.by_age.insert(self.age, block);
            self.by_block.insert(block, Page { age: self.age, bytes: Arc::new(bytes) });
        }
        let page = self.by_block.get_mut(&block).expect("it was there or has just been put there");
        Ok(Arc::make_mut(&mut page.bytes))
    }

    fn bytes(&self) -> u64 {
        u64::try_from(self.by_block.len()).expect("a count of pages fits in 64 bits") * BLOCK_BYTES
    }

    /// Lets the oldest go until `more` bytes fit. One page always may stay while it is being written.
    fn make_room(&mut self, store: &OpenVolume, more: u64) -> io::Result<()> {
        while self.bytes() + more > self.capacity && self.evict_oldest(store)? {}
        Ok(())
    }

    fn evict_oldest(&mut self, store: &OpenVolume) -> io::Result<bool> {
        let Some((_, &block)) = self.by_age.first_key_value() else { return Ok(false) };
        self.evict_block(store, block)?;
        Ok(true)
    }

    fn evict(&mut self, store: &OpenVolume, offset: u64, len: u64) -> io::Result<()> {
        let range = offset / BLOCK_BYTES..(offset + len).div_ceil(BLOCK_BYTES);
        while let Some((&block, _)) = self.by_block.range(range.clone()).next() {
            self.evict_block(store, block)?;
        }
        Ok(())
    }

    /// Moves one page to the store; it stays where the store does not take it.
    fn evict_block(&mut self, store: &OpenVolume, block: u64) -> io::Result<()> {
        let page = &self.by_block[&block];
        let len = page_len(store, block);
        store.write_at(&page.bytes[..len], block * BLOCK_BYTES)?;
        self.by_age.remove(&page.age);
        self.by_block.remove(&block);
        Ok(())
    }
}

/// Bytes of a block that are within the volume.
pub(super) fn page_len(store: &OpenVolume, block: u64) -> usize {
    let len = BLOCK_BYTES.min(store.size_bytes().saturating_sub(block * BLOCK_BYTES));
    usize::try_from(len).expect("at most a block")
}

fn len_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).expect("a length fits in 64 bits")
}

/// The part of `start..end` in a block: where it begins in the block, where in the range, and how
/// long it is.
fn overlap(block: u64, start: u64, end: u64) -> (usize, usize, usize) {
    let block_start = block * BLOCK_BYTES;
    let from = start.max(block_start);
    let to = end.min(block_start + BLOCK_BYTES);
    let size = |bytes: u64| usize::try_from(bytes).expect("a part of a buffer");
    (size(from - block_start), size(from - start), size(to - from))
}
