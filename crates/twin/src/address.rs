//! Where the next I/O of a job goes.

use ebbtide_volume::Op;
use rand_core::Rng;
use rand_distr::Distribution as _;

use crate::job::{Access, BlockSizes, Distribution, Job};

/// The positions and sizes of one clone of a job.
#[derive(Debug)]
pub(crate) struct Addresses {
    base: u64,
    length: u64,
    pick: Pick,
    /// Next sequential position of reads and of writes, from the base.
    cursors: [u64; 2],
    sizes: [Sizes; 2],
    read_percent: u8,
}

#[derive(Debug)]
enum Pick {
    Sequential,
    Uniform,
    Zipf([rand_distr::Zipf<f64>; 2]),
    Pareto { power: f64 },
}

/// Block sizes, ready to draw from.
#[derive(Debug)]
struct Sizes {
    shares: Vec<(u32, u8)>,
    smallest: u64,
}

impl Sizes {
    fn new(sizes: &BlockSizes) -> Self {
        Self { shares: sizes.shares.clone(), smallest: u64::from(sizes.smallest()) }
    }

    fn draw(&self, rng: &mut impl Rng) -> u32 {
        let [(only, _)] = self.shares[..] else {
            let mut left = below(100, rng);
            for &(bytes, percent) in &self.shares {
                match left.checked_sub(u64::from(percent)) {
                    Some(rest) => left = rest,
                    None => return bytes,
                }
            }
            unreachable!("the percentages of block sizes add up to 100");
        };
        only
    }
}

const fn side(op: Op) -> usize {
    match op {
        Op::Read => 0,
        _ => 1,
    }
}

/// A number below `bound`, without a division.
fn below(bound: u64, rng: &mut impl Rng) -> u64 {
    let product = u128::from(rng.next_u64()) * u128::from(bound);
    u64::try_from(product >> 64).expect("the product of a 64-bit fraction and a bound is below the bound")
}

/// A fraction in 0..1.
pub(crate) fn fraction(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Scatters a rank, so that popular blocks are not adjacent.
const fn scatter(rank: u64) -> u64 {
    let mixed = (rank ^ (rank >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Addresses {
    /// `length` must be at least the largest block of every direction that the job has.
    pub(crate) fn new(job: &Job, base: u64, length: u64) -> Self {
        let sizes = [Sizes::new(&job.block_sizes[0]), Sizes::new(&job.block_sizes[1])];
        let pick = match job.access {
            Access::Sequential => Pick::Sequential,
            Access::Random(Distribution::Uniform) => Pick::Uniform,
            Access::Random(Distribution::Zipf { theta }) => Pick::Zipf([0, 1].map(|side: usize| {
                let blocks = (length / sizes[side].smallest).max(1);
                rand_distr::Zipf::new(blocks as f64, theta).expect("a job's theta is positive")
            })),
            Access::Random(Distribution::Pareto { h }) => Pick::Pareto { power: h.ln() / (1.0 - h).ln() },
        };
        let read_percent = match job.direction {
            crate::Direction::Read => 100,
            crate::Direction::Write => 0,
            crate::Direction::Mixed { read_percent } => read_percent,
        };
        Self { base, length, pick, cursors: [0, 0], sizes, read_percent }
    }

    /// Draws whether the next I/O reads or writes.
    pub(crate) fn operation(&self, rng: &mut impl Rng) -> Op {
        let read = match self.read_percent {
            0 => false,
            100 => true,
            percent => below(100, rng) < u64::from(percent),
        };
        if read { Op::Read } else { Op::Write }
    }

    /// Draws the length of an I/O in bytes, then its offset.
    pub(crate) fn place(&mut self, op: Op, rng: &mut impl Rng) -> (u64, u32) {
        let side = side(op);
        let len = self.sizes[side].draw(rng);
        let align = self.sizes[side].smallest;
        let positions = (self.length - u64::from(len)) / align + 1;
        let block = match &self.pick {
            Pick::Sequential => return (self.advance(side, len), len),
            Pick::Uniform => below(positions, rng),
            Pick::Zipf(zipf) => scatter(whole(zipf[side].sample(rng))) % positions,
            Pick::Pareto { power } => {
                scatter(whole((positions - 1) as f64 * fraction(rng).powf(*power))) % positions
            }
        };
        (self.base + block * align, len)
    }

    fn advance(&mut self, side: usize, len: u32) -> u64 {
        let len = u64::from(len);
        let cursor = &mut self.cursors[side];
        if *cursor + len > self.length {
            *cursor = 0;
        }
        let offset = self.base + *cursor;
        *cursor += len;
        offset
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank is a small whole number")]
fn whole(rank: f64) -> u64 {
    rank as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const SEED: u64 = 7;

    fn job(access: Access) -> Job {
        Job { access, ..Job::named("test") }
    }

    #[test]
    fn a_sequential_job_goes_round_its_extent() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut addresses = Addresses::new(&job(Access::Sequential), 1 << 20, 3 * 4096);
        let offsets: Vec<u64> =
            (0..5).map(|_| (addresses.place(Op::Read, &mut rng).0 - (1 << 20)) / 4096).collect();
        assert_eq!(offsets, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn uniform_offsets_are_aligned_stay_inside_and_reach_every_block() {
        println!("seed {SEED}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut addresses = Addresses::new(&job(Access::Random(Distribution::Uniform)), 8192, 16 * 4096);
        let mut seen = HashMap::new();
        for _ in 0..16_000 {
            *seen.entry(addresses.place(Op::Read, &mut rng).0).or_insert(0_u32) += 1;
        }
        assert_eq!(seen.len(), 16);
        assert!(seen.iter().all(|(offset, count)| {
            (8192..8192 + 16 * 4096).contains(offset)
                && (offset - 8192) % 4096 == 0
                && (850..1150).contains(count)
        }));
    }

    #[test]
    fn pareto_080_sends_80_percent_of_the_accesses_to_20_percent_of_the_blocks() {
        println!("seed {SEED}");
        let share = hottest_fifth(Distribution::Pareto { h: 0.2 });
        assert!((0.76..0.90).contains(&share), "{share}");
    }

    #[test]
    fn zipf_has_favourites_and_uniform_has_none() {
        println!("seed {SEED}");
        assert!(hottest_fifth(Distribution::Zipf { theta: 1.1 }) > 0.8);
        assert!(hottest_fifth(Distribution::Uniform) < 0.25);
    }

    fn hottest_fifth(distribution: Distribution) -> f64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut addresses = Addresses::new(&job(Access::Random(distribution)), 0, 1_000 * 4096);
        let mut counts = vec![0_u32; 1_000];
        for _ in 0..1_000_000 {
            let block = addresses.place(Op::Read, &mut rng).0 / 4096;
            counts[usize::try_from(block).unwrap()] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        f64::from(counts[..200].iter().sum::<u32>()) / 1e6
    }

    #[test]
    fn block_sizes_come_in_their_shares() {
        println!("seed {SEED}");
        let sizes = Sizes { shares: vec![(4096, 10), (65_536, 50), (32_768, 40)], smallest: 4096 };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut counts = HashMap::new();
        for _ in 0..100_000 {
            *counts.entry(sizes.draw(&mut rng)).or_insert(0_u32) += 1;
        }
        assert!(counts[&4096].abs_diff(10_000) < 500, "{counts:?}");
        assert!(counts[&65_536].abs_diff(50_000) < 800, "{counts:?}");
        assert!(counts[&32_768].abs_diff(40_000) < 800, "{counts:?}");
    }
}
