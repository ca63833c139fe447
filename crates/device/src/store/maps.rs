//! Which blocks a layer decides: sets of block numbers, kept in compressed bitmaps.

use std::ops::{Range, RangeInclusive};

use roaring::RoaringBitmap;

use super::{BLOCK_BYTES, MAX_VOLUME_BYTES};

/// Blocks in one segment of a layer: 8 TiB, below the largest file of every host file system (ext4's is 16 TiB), and
/// few enough for 32-bit bitmaps.
pub(super) const SEGMENT_BLOCKS: u64 = 1 << 31;

/// Bytes in one segment.
pub(super) const SEGMENT_BYTES: u64 = SEGMENT_BLOCKS * BLOCK_BYTES;

/// Segments of the largest volume.
pub(super) const SEGMENTS: usize = 8;
const _: () = assert!(SEGMENT_BYTES * 8 == MAX_VOLUME_BYTES);

/// Ranges up to this long are inserted block by block: that keeps a container an array or a bitmap. A range makes it a
/// list of runs, which never turns back and is slow once it is long.
const SHORT_RANGE: u32 = 512;

/// What a layer has of a block that it decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// The block is in the layer's data file.
    Data,
    /// The block reads as zeroes, whatever the layers below hold.
    Hole,
}

/// The blocks that one layer decides. What it does not decide, the layer below does.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Maps {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Segment {
    data: RoaringBitmap,
    holes: RoaringBitmap,
}

impl Maps {
    /// Whether every block of the range is data here.
    pub(super) fn all_data(&self, blocks: &Range<u64>) -> bool {
        pieces(blocks.clone())
            .all(|(at, piece)| self.segments.get(at).is_some_and(|s| s.data.contains_range(piece)))
    }

    /// Whether any block of the range is data here.
    pub(super) fn any_data(&self, blocks: &Range<u64>) -> bool {
        pieces(blocks.clone())
            .any(|(at, piece)| self.segments.get(at).is_some_and(|s| s.data.range(piece).next().is_some()))
    }

    /// The state of `block`, and up to where (at most `end`) it is the same. A run may end early.
    pub(super) fn run_at(&self, block: u64, end: u64) -> (Option<BlockKind>, u64) {
        let Some((at, piece)) = pieces(block..end).next() else { return (None, end) };
        let (first, piece_end) = (*piece.start(), global(at, *piece.end()) + 1);
        let Some(segment) = self.segments.get(at) else { return (None, piece_end) };
        let mut nothing_until = piece_end;
        for (set, kind) in [(&segment.data, BlockKind::Data), (&segment.holes, BlockKind::Hole)] {
            if set.is_empty() {
                continue;
            }
            if let Some(run) = set.range(piece.clone()).next_range() {
                if *run.start() == first {
                    return (Some(kind), piece_end.min(global(at, *run.end()) + 1));
                }
                nothing_until = nothing_until.min(global(at, *run.start()));
            }
        }
        (None, nothing_until)
    }

    /// Decides a range. `holes_count` is false in a layer with nothing below, where a hole needs no entry.
    pub(super) fn set(&mut self, blocks: Range<u64>, kind: BlockKind, holes_count: bool) {
        for (at, piece) in pieces(blocks) {
            if self.segments.len() <= at {
                self.segments.resize_with(at + 1, Segment::default);
            }
            let segment = &mut self.segments[at];
            match kind {
                BlockKind::Data => {
                    if !segment.holes.is_empty() {
                        segment.holes.remove_range(piece.clone());
                    }
                    insert(&mut segment.data, piece);
                }
                BlockKind::Hole => {
                    segment.data.remove_range(piece.clone());
                    if holes_count {
                        insert(&mut segment.holes, piece);
                    }
                }
            }
        }
    }

    /// Every decided run, by kind and in order within a kind.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Range<u64>, BlockKind)> + '_ {
        self.segments.iter().enumerate().flat_map(|(at, segment)| {
            runs_of(at, &segment.data, BlockKind::Data).chain(runs_of(at, &segment.holes, BlockKind::Hole))
        })
    }

    /// Blocks that are data here.
    pub(super) fn data_blocks(&self) -> u64 {
        self.segments.iter().map(|s| s.data.len()).sum()
    }

    /// Blocks that are decided here.
    pub(super) fn decided_blocks(&self) -> u64 {
        self.segments.iter().map(|s| s.data.len() + s.holes.len()).sum()
    }

    /// Whether nothing is decided here.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.iter().all(|s| s.data.is_empty() && s.holes.is_empty())
    }

    /// Highest data block of a segment, counted from the segment's beginning.
    pub(super) fn last_data_in_segment(&self, segment: usize) -> Option<u64> {
        self.segments.get(segment).and_then(|s| s.data.max()).map(u64::from)
    }

    /// Highest data block.
    pub(super) fn last_data(&self) -> Option<u64> {
        (0..self.segments.len()).rev().find_map(|at| self.segments[at].data.max().map(|b| global(at, b)))
    }

    /// Makes the sets as small as they get.
    pub(super) fn optimize(&mut self) {
        for segment in &mut self.segments {
            segment.data.optimize();
            segment.holes.optimize();
        }
    }
}

/// Blocks that are data through a chain of layers, the topmost first.
pub(super) fn visible_blocks(chain: &[&Maps]) -> u64 {
    let in_segment = |at: usize| {
        let mut seen = RoaringBitmap::new();
        for segment in chain.iter().rev().filter_map(|maps| maps.segments.get(at)) {
            seen -= &segment.holes;
            seen |= &segment.data;
        }
        seen.len()
    };
    (0..SEGMENTS).map(in_segment).sum()
}

fn runs_of(
    at: usize,
    set: &RoaringBitmap,
    kind: BlockKind,
) -> impl Iterator<Item = (Range<u64>, BlockKind)> + '_ {
    let mut iter = set.iter();
    std::iter::from_fn(move || {
        iter.next_range().map(|run| (global(at, *run.start())..global(at, *run.end()) + 1, kind))
    })
}

fn insert(set: &mut RoaringBitmap, piece: RangeInclusive<u32>) {
    if piece.end() - piece.start() < SHORT_RANGE {
        for block in piece {
            set.insert(block);
        }
    } else {
        set.insert_range(piece);
    }
}

/// Splits a range of blocks by segment.
fn pieces(blocks: Range<u64>) -> impl Iterator<Item = (usize, RangeInclusive<u32>)> {
    let mut at = blocks.start;
    std::iter::from_fn(move || {
        if at >= blocks.end {
            return None;
        }
        let segment = at / SEGMENT_BLOCKS;
        let end = blocks.end.min((segment + 1) * SEGMENT_BLOCKS);
        let piece = local(at)..=local(end - 1);
        at = end;
        Some((usize::try_from(segment).expect("a volume has at most 8 segments"), piece))
    })
}

fn local(block: u64) -> u32 {
    u32::try_from(block % SEGMENT_BLOCKS).expect("a segment has fewer than 2^32 blocks")
}

fn global(segment: usize, block: u32) -> u64 {
    u64::try_from(segment).expect("a volume has at most 8 segments") * SEGMENT_BLOCKS + u64::from(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(maps: &Maps, mut at: u64, end: u64) -> Vec<(u64, u64, Option<BlockKind>)> {
        let mut runs: Vec<(u64, u64, Option<BlockKind>)> = Vec::new();
        while at < end {
            let (kind, stop) = maps.run_at(at, end);
            assert!(stop > at && stop <= end, "{at} {stop} {end}");
            match runs.last_mut() {
                Some(last) if last.2 == kind => last.1 = stop,
                _ => runs.push((at, stop, kind)),
            }
            at = stop;
        }
        runs
    }

    #[test]
    fn runs_are_found_across_containers_and_segments() {
        let mut maps = Maps::default();
        let seam = SEGMENT_BLOCKS;
        maps.set(10..70_000, BlockKind::Data, true);
        maps.set(100..200, BlockKind::Hole, true);
        maps.set(seam - 3..seam + 5, BlockKind::Data, true);
        assert_eq!(
            described(&maps, 0, seam + 10),
            vec![
                (0, 10, None),
                (10, 100, Some(BlockKind::Data)),
                (100, 200, Some(BlockKind::Hole)),
                (200, 70_000, Some(BlockKind::Data)),
                (70_000, seam - 3, None),
                (seam - 3, seam + 5, Some(BlockKind::Data)),
                (seam + 5, seam + 10, None),
            ]
        );
        assert!(maps.all_data(&(seam - 3..seam + 5)));
        assert!(!maps.all_data(&(seam - 4..seam + 5)));
        assert!(maps.any_data(&(0..11)));
        assert!(!maps.any_data(&(100..200)));
        assert_eq!(maps.last_data(), Some(seam + 4));
        assert_eq!(maps.data_blocks(), 70_000 - 10 - 100 + 8);
    }

    #[test]
    fn a_hole_above_nothing_is_not_kept() {
        let mut maps = Maps::default();
        maps.set(0..10, BlockKind::Data, false);
        maps.set(0..1 << 33, BlockKind::Hole, false);
        assert!(maps.is_empty());
    }

    #[test]
    fn scattered_short_runs_cost_less_than_eight_bytes_a_block() {
        let mut maps = Maps::default();
        for i in 0..1_000_000_u64 {
            let block = i.wrapping_mul(2_654_435_761) % (1 << 24) * 4;
            maps.set(block..block + 4, BlockKind::Data, true);
        }
        let bytes: u64 = maps
            .segments
            .iter()
            .map(|s| s.data.statistics())
            .map(|s| s.n_bytes_array_containers + s.n_bytes_bitset_containers + s.n_bytes_run_containers)
            .sum();
        assert!(bytes < 8 * maps.data_blocks(), "{bytes} bytes for {} blocks", maps.data_blocks());
    }
}
