//! Loading a volume from a snapshot: which blocks are there, and what the first touch of another one costs.
//!
//! AWS documents (EBS user guide, `initalize-volume`): a volume from a snapshot can be used at once. A block must have come
//! from S3 before it can be accessed. It comes when it is accessed first, or in the background. An empty volume loads
//! nothing. The page names I/O operations and makes no difference between reads and writes. So a write of a part of a
//! block waits here as a read does. A write of a whole block needs nothing of the snapshot, and does not wait.

use alloc::collections::BTreeMap;
use core::{num::NonZeroU64, ops::Range};

use rand_core::Rng;
use roaring::RoaringBitmap;

use crate::{Io, KIB, Nanos, Op, QuantileCurve};

/// Bytes of a block of a snapshot, which is loaded as a whole (EBS user guide, `ebsapi-elements`: 524,288).
pub const LOAD_BLOCK_BYTES: u64 = 512 * KIB;

/// How blocks are loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loader {
    /// How long a block takes that an I/O touches. AWS publishes no figure: the catalogue names the source of this one.
    pub first_touch: QuantileCurve,
    /// Bytes a second that are loaded in the background, in the order of the offsets; none: only what is touched. AWS
    /// publishes no rate but the provisioned one (EBS user guide, `initalize-volume`).
    pub rate: Option<NonZeroU64>,
}

/// What a volume has of its snapshot and what it has not: plain data, which its owner keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadState {
    /// The blocks that are not loaded, by their number from the beginning of the volume. Of a volume of more than 2 PiB,
    /// blocks beyond that count as loaded.
    pub missing: RoaringBitmap,
    /// When the loading began.
    pub since: Nanos,
    /// When the background began with the first of the missing blocks.
    pub at: Nanos,
    /// How the others have come.
    pub counts: LoadCounts,
}

/// Blocks that are not missing any more, by why. Each counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LoadCounts {
    /// Loaded because an I/O touched them.
    pub touched: u64,
    /// Loaded in the background.
    pub background: u64,
    /// Written as a whole before they were loaded.
    pub overwritten: u64,
    /// Discarded as a whole before they were loaded.
    pub discarded: u64,
}

impl LoadCounts {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.touched + self.background + self.overwritten + self.discarded
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            touched: self.touched + other.touched,
            background: self.background + other.background,
            overwritten: self.overwritten + other.overwritten,
            discarded: self.discarded + other.discarded,
        }
    }
}

/// How far the loading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadProgress {
    /// When it began.
    pub since: Nanos,
    /// Blocks that are not there yet.
    pub missing: u64,
    /// The blocks that the snapshot has and that are not missing.
    pub counts: LoadCounts,
    /// When the background will have loaded the rest; none where nothing is missing or it loads nothing.
    pub completes: Option<Nanos>,
}

impl LoadProgress {
    /// Blocks that the snapshot has.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.counts.total() + self.missing
    }

    /// Of two volumes together.
    pub(crate) fn combined(self, other: Self) -> Self {
        Self {
            since: self.since.min(other.since),
            missing: self.missing + other.missing,
            counts: self.counts.plus(other.counts),
            completes: self.completes.max(other.completes),
        }
    }
}

impl LoadState {
    /// A volume whose loading begins. `data` are the ranges of bytes that the snapshot has.
    #[must_use]
    pub fn new(data: impl IntoIterator<Item = Range<u64>>, since: Nanos) -> Self {
        let mut missing = RoaringBitmap::new();
        for range in data.into_iter().filter(|range| !range.is_empty()) {
            missing.insert_range(touched_blocks(&range));
        }
        missing.optimize();
        Self { missing, since, at: since, counts: LoadCounts::default() }
    }
}

/// The number of a block, or of the block where a range of them ends.
fn number(block: u64) -> u32 {
    u32::try_from(block).unwrap_or(u32::MAX)
}

/// The blocks that a range of bytes touches.
fn touched_blocks(bytes: &Range<u64>) -> Range<u32> {
    number(bytes.start / LOAD_BLOCK_BYTES)..number(bytes.end.div_ceil(LOAD_BLOCK_BYTES))
}

/// The blocks that are inside a range of bytes; it may begin after its end, and is empty then.
fn whole_blocks(bytes: &Range<u64>) -> Range<u32> {
    number(bytes.start.div_ceil(LOAD_BLOCK_BYTES))..number(bytes.end / LOAD_BLOCK_BYTES)
}

/// The loading of one volume.
#[derive(Debug, Clone)]
pub(crate) struct Loading {
    loader: Loader,
    state: LoadState,
    /// Blocks that were touched and are on their way, and when each is there.
    coming: BTreeMap<u32, Nanos>,
    /// When the first of them is there.
    next: Nanos,
}

/// Later than any time.
const NEVER: Nanos = Nanos(u64::MAX);

impl Loading {
    pub(crate) const fn new(loader: Loader, state: LoadState) -> Self {
        Self { loader, state, coming: BTreeMap::new(), next: NEVER }
    }

    /// Begins to load what an I/O needs. Returns when that is there: `now` where nothing is missing.
    pub(crate) fn touch(&mut self, io: Io, now: Nanos, rng: &mut impl Rng) -> Nanos {
        if self.state.missing.is_empty() && self.coming.is_empty() {
            return now;
        }
        self.advance(now);
        let bytes = io.offset..io.offset + u64::from(io.len);
        if bytes.is_empty() {
            return now;
        }
        let (touched, whole) = (touched_blocks(&bytes), whole_blocks(&bytes));
        match io.op {
            Op::Flush => now,
            Op::Discard => {
                self.discard(&bytes, now);
                now
            }
            Op::Read => self.arrival_of_all(touched, now, rng),
            Op::Write => {
                self.state.counts.overwritten += self.forget(&whole);
                let head = touched.start..whole.start.min(touched.end);
                let tail = whole.end.max(whole.start)..touched.end;
                let first = self.arrival_of_all(head, now, rng);
                first.max(self.arrival_of_all(tail, now, rng))
            }
        }
    }

    /// The blocks inside a range need no loading any more: they read as zeroes.
    fn discard(&mut self, bytes: &Range<u64>, now: Nanos) {
        self.advance(now);
        self.state.counts.discarded += self.forget(&whole_blocks(bytes));
    }

    /// What is to be kept of it. A block that is on its way counts as missing.
    pub(crate) fn state(&self, now: Nanos) -> LoadState {
        let mut later = self.clone();
        later.advance(now);
        later.state.missing.extend(later.coming.keys().copied());
        later.state
    }

    /// How far it is, as [`Self::state`] would have it. The blocks are only counted, since a volume waits meanwhile.
    pub(crate) fn progress(&self, now: Nanos) -> LoadProgress {
        let state = &self.state;
        let mut counts = state.counts;
        let arrived = self.coming.values().filter(|there| **there <= now).count() as u64;
        let coming = self.coming.len() as u64 - arrived;
        let background = self.background_by(now);
        counts.touched += arrived;
        counts.background += background;
        let rest = state.missing.len() - background + coming;
        let rate = self.loader.rate.filter(|_| rest > 0);
        let completes = rate.map(|rate| state.at + time_of(background, rate) + time_of(rest, rate));
        LoadProgress { since: state.since, missing: rest, counts, completes }
    }

    /// Missing blocks that the background has loaded by `now`.
    fn background_by(&self, now: Nanos) -> u64 {
        let Some(rate) = self.loader.rate else { return 0 };
        let elapsed = u128::from(now.since(self.state.at).0);
        let loaded = elapsed * u128::from(rate.get()) / (u128::from(LOAD_BLOCK_BYTES) * PER_SECOND);
        u64::try_from(loaded).unwrap_or(u64::MAX).min(self.state.missing.len())
    }

    /// Counts what is there by `now`.
    fn advance(&mut self, now: Nanos) {
        if self.next <= now {
            let before = self.coming.len();
            self.coming.retain(|_, there| *there > now);
            self.state.counts.touched += (before - self.coming.len()) as u64;
            self.next = self.coming.values().copied().min().unwrap_or(NEVER);
        }
        let Some(rate) = self.loader.rate else { return };
        let loaded = self.background_by(now);
        if loaded == 0 {
            return;
        }
        self.state.missing.remove_smallest(loaded);
        self.state.counts.background += loaded;
        self.state.at += time_of(loaded, rate);
    }

    /// When several blocks are there.
    fn arrival_of_all(&mut self, blocks: Range<u32>, now: Nanos, rng: &mut impl Rng) -> Nanos {
        blocks.fold(now, |all, block| all.max(self.arrival(block, now, rng)))
    }

    /// When a block is there. It comes because it was touched, or in its turn where that is sooner.
    fn arrival(&mut self, block: u32, now: Nanos, rng: &mut impl Rng) -> Nanos {
        if let Some(there) = self.coming.get(&block) {
            return *there;
        }
        if !self.state.missing.contains(block) {
            return now;
        }
        let touched = now + self.loader.first_touch.draw(rng);
        let in_turn =
            self.loader.rate.map(|rate| self.state.at + time_of(self.state.missing.rank(block), rate));
        if let Some(in_turn) = in_turn.filter(|in_turn| *in_turn <= touched) {
            return in_turn;
        }
        self.state.missing.remove(block);
        self.coming.insert(block, touched);
        self.next = self.next.min(touched);
        touched
    }

    /// Takes blocks out of what is to be loaded; returns how many of them were.
    fn forget(&mut self, blocks: &Range<u32>) -> u64 {
        if blocks.is_empty() {
            return 0;
        }
        let before = self.coming.len();
        self.coming.retain(|block, _| !blocks.contains(block));
        self.state.missing.remove_range(blocks.clone()) + (before - self.coming.len()) as u64
    }
}

const PER_SECOND: u128 = Nanos::SECOND.0 as u128;

/// How long the background takes for some blocks, rounded up: a rate is never exceeded.
fn time_of(blocks: u64, rate: NonZeroU64) -> Nanos {
    let bytes = u128::from(blocks) * u128::from(LOAD_BLOCK_BYTES);
    let time = (bytes * PER_SECOND).div_ceil(u128::from(rate.get()));
    Nanos(u64::try_from(time).unwrap_or(u64::MAX))
}
