//! Numbers that all clients of a run share and that never repeat.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::distribution::Random;

/// Each 32-bit integer once, in an order that looks random: squares modulo a prime are a permutation
/// (the public-domain construction of github.com/preshing/RandomSequence, which sysbench uses too).
#[derive(Debug)]
pub struct UniqueIds {
    index: AtomicU32,
    offset: u32,
}

impl UniqueIds {
    /// The order that belongs to a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let bits = Random::new(seed, u64::MAX).bits().to_le_bytes();
        let word = |at: usize| u32::from_le_bytes([bits[at], bits[at + 1], bits[at + 2], bits[at + 3]]);
        let start = permute(permute(word(0)).wrapping_add(0x682F_0161));
        let offset = permute(permute(word(4)).wrapping_add(0x4679_0905));
        Self { index: start.into(), offset }
    }

    /// The next one.
    pub fn next(&self) -> i32 {
        let index = self.index.fetch_add(1, Ordering::Relaxed);
        let value = permute(permute(index).wrapping_add(self.offset) ^ 0x5BF0_3635);
        value.wrapping_sub(1 << 31).cast_signed()
    }
}

fn permute(x: u32) -> u32 {
    /// The largest prime below 2^32 that leaves 3 when divided by 4.
    const PRIME: u32 = 4_294_967_291;
    if x >= PRIME {
        return x;
    }
    let residue = u32::try_from(u64::from(x) * u64::from(x) % u64::from(PRIME)).expect("below a u32 prime");
    if x <= PRIME / 2 { residue } else { PRIME - residue }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn unique_ids_do_not_repeat() {
        println!("seed 3");
        let unique = UniqueIds::new(3);
        let ids: BTreeSet<i32> = (0..100_000).map(|_| unique.next()).collect();
        assert_eq!(ids.len(), 100_000);
        assert!(ids.first() < Some(&-2_000_000_000) && ids.last() > Some(&2_000_000_000));
    }
}
