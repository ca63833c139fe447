//! What a power cut leaves behind: the durability rules of SEMANTICS.md, as code.

use rand_core::Rng;

/// The largest aligned piece of a write that a power cut leaves wholly old or wholly new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum AtomicUnit {
    /// 4 KiB: what every volume keeps.
    FourKib,
    /// 16 KiB: torn-write prevention, as on EBS volumes of Nitro instances.
    SixteenKib,
}

impl AtomicUnit {
    /// The unit in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::FourKib => 4 << 10,
            Self::SixteenKib => 16 << 10,
        }
    }
}

/// What a volume promises about writes when the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Durability {
    /// The piece of a write in flight that is never torn.
    pub atomic_unit: AtomicUnit,
    /// Bytes of volatile write cache: answered writes since the last flush that a power cut may
    /// lose. Zero: an answered write is durable (EBS, and SSDs with power-loss protection).
    pub volatile_cache_bytes: u64,
}

/// One atomic unit's share of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitWrite {
    /// First byte on the volume.
    pub offset: u64,
    /// Bytes, at most one atomic unit.
    pub len: u64,
}

/// Decides the fate of the writes that a power cut catches, from the generator it is given.
#[derive(Debug)]
pub struct PowerCut<'a, R> {
    unit: AtomicUnit,
    rng: &'a mut R,
}

impl<'a, R: Rng> PowerCut<'a, R> {
    /// A power cut on a volume with this atomic unit.
    pub const fn new(unit: AtomicUnit, rng: &'a mut R) -> Self {
        Self { unit, rng }
    }

    /// The units of one write that reached the medium; each does with probability one half,
    /// independently of the others. Calling it for writes in submission order keeps the run
    /// reproducible from its seed.
    pub fn surviving(&mut self, offset: u64, len: u64) -> impl Iterator<Item = UnitWrite> {
        units(self.unit, offset, len).filter(|_| self.rng.next_u32() & 1 == 1)
    }
}

/// Splits a write at the boundaries of the aligned atomic units.
fn units(unit: AtomicUnit, offset: u64, len: u64) -> impl Iterator<Item = UnitWrite> {
    let end = offset + len;
    let mut next = offset;
    core::iter::from_fn(move || {
        let start = next;
        next = (start / unit.bytes() * unit.bytes() + unit.bytes()).min(end);
        (start < end).then(|| UnitWrite { offset: start, len: next - start })
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_write_splits_at_aligned_units_only() {
        let pieces: Vec<_> = units(AtomicUnit::SixteenKib, 12 << 10, 24 << 10)
            .map(|u| (u.offset >> 10, u.len >> 10))
            .collect();
        assert_eq!(pieces, [(12, 4), (16, 16), (32, 4)]);
        let aligned = units(AtomicUnit::SixteenKib, 32 << 10, 16 << 10).count();
        assert_eq!(aligned, 1, "an aligned 16 KiB page is one unit");
        assert_eq!(units(AtomicUnit::FourKib, 32 << 10, 16 << 10).count(), 4);
        assert_eq!(units(AtomicUnit::FourKib, 4096, 0).count(), 0);
    }
}
