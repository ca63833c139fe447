//! Service times: how long an I/O takes when nothing throttles it.

use alloc::{sync::Arc, vec::Vec};
use core::fmt;

use rand_core::Rng;

use crate::{LimitsError, Mechanics, Nanos};

/// A latency distribution given by some of its quantiles, interpolated between them.
///
/// Quantiles are what fio prints and what published measurements give, so an entry can be read off
/// a result. Everything is an integer: a seed gives the same run on every machine.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Vec<(u32, u64)>", into = "Vec<(u32, u64)>")
)]
pub struct QuantileCurve {
    /// (parts per million, latency in ns), both rising, from 0 to 1,000,000.
    points: Vec<(u32, u64)>,
    /// The curve cut into equal shares of probability, for drawing without a search.
    table: Arc<[Step]>,
}

/// A share of the curve: the latency at its beginning, and by how much it rises to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    from: u64,
    rise: u64,
}

/// Steps of the table's first level; its last step, the tail, is cut again into as many.
const STEPS: u32 = 256;

/// Quantiles that are no distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantileError {
    /// The first point is not the minimum, or the last not the maximum.
    #[error("the quantiles must start at 0 ppm and end at 1000000 ppm")]
    Ends,
    /// A latency over five minutes: the unit must be wrong.
    #[error("a latency of {0} ns is over five minutes")]
    TooLong(u64),
    /// A quantile or a latency is below the one before it.
    #[error("quantiles and latencies must rise; the point at {0} ppm does not")]
    NotRising(u32),
}

const PPM: u32 = 1_000_000;
/// Longest latency of a curve; draws multiply it by 2^24, which must fit.
const LONGEST_NS: u64 = 300_000_000_000;

impl QuantileCurve {
    /// A curve through (parts per million, latency in ns) points.
    ///
    /// # Errors
    /// Where the points do not run from 0 to 1,000,000 ppm, or do not rise.
    pub fn new(points: Vec<(u32, u64)>) -> Result<Self, QuantileError> {
        match (points.first(), points.last()) {
            (Some(first), Some(last)) if points.len() > 1 && first.0 == 0 && last.0 == PPM => {}
            _ => return Err(QuantileError::Ends),
        }
        if let Some(&(_, longest)) = points.last().filter(|(_, longest)| *longest > LONGEST_NS) {
            return Err(QuantileError::TooLong(longest));
        }
        match points.windows(2).find(|w| w[1].0 <= w[0].0 || w[1].1 < w[0].1) {
            Some(w) => Err(QuantileError::NotRising(w[1].0)),
            None => Ok(Self::tabulate(points)),
        }
    }

    fn tabulate(points: Vec<(u32, u64)>) -> Self {
        let ends = |low: u64, width: u64| {
            let from = interpolate(&points, low).0;
            Step { from, rise: interpolate(&points, low + width).0 - from }
        };
        let width = FULL / u64::from(STEPS);
        let body = (0..u64::from(STEPS - 1)).map(|n| ends(n * width, width));
        let tail = FULL - width;
        let narrow = width / u64::from(STEPS);
        let table = body.chain((0..u64::from(STEPS)).map(|n| ends(tail + n * narrow, narrow))).collect();
        Self { points, table }
    }

    /// A latency that never varies.
    #[must_use]
    pub fn constant(latency: Nanos) -> Self {
        Self::tabulate(alloc::vec![(0, latency.0), (PPM, latency.0)])
    }

    /// The latency at a quantile in parts per million (0 is the minimum; above 1,000,000 counts as
    /// the maximum).
    #[must_use]
    pub fn quantile(&self, ppm: u32) -> Nanos {
        interpolate(&self.points, u64::from(ppm.min(PPM)) << FRACTION_BITS)
    }

    /// The shortest latency of the distribution.
    #[must_use]
    pub fn minimum(&self) -> Nanos {
        Nanos(self.points[0].1)
    }

    /// Draws a latency. Within a 256th of the probability (a 65,536th in the tail) the curve counts
    /// as straight.
    #[inline]
    pub fn draw(&self, rng: &mut impl Rng) -> Nanos {
        let draw = rng.next_u32();
        let step = draw >> 24;
        let (step, into, bits) = if step < STEPS - 1 {
            (step, draw & 0x00FF_FFFF, 24)
        } else {
            (STEPS - 1 + (draw >> 16 & 0xFF), draw & 0xFFFF, 16)
        };
        let Step { from, rise } = self.table[step as usize];
        Nanos(from + ((rise * u64::from(into)) >> bits))
    }
}

impl fmt::Debug for QuantileCurve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuantileCurve").field("points", &self.points).finish_non_exhaustive()
    }
}

/// Probabilities are parts per million with this many fractional bits.
const FRACTION_BITS: u32 = 32;
const FULL: u64 = (PPM as u64) << FRACTION_BITS;

fn interpolate(points: &[(u32, u64)], position: u64) -> Nanos {
    let upper = points.partition_point(|&(ppm, _)| u64::from(ppm) << FRACTION_BITS <= position);
    let (Some(&(low_ppm, low)), Some(&(high_ppm, high))) =
        (points.get(upper.wrapping_sub(1)), points.get(upper))
    else {
        return Nanos(points[points.len() - 1].1);
    };
    let into = u128::from(position - (u64::from(low_ppm) << FRACTION_BITS));
    let width = u128::from(high_ppm - low_ppm) << FRACTION_BITS;
    let rise = u128::from(high - low) * into / width;
    Nanos(low + u64::try_from(rise).unwrap_or(u64::MAX))
}

impl TryFrom<Vec<(u32, u64)>> for QuantileCurve {
    type Error = QuantileError;
    fn try_from(points: Vec<(u32, u64)>) -> Result<Self, QuantileError> {
        Self::new(points)
    }
}

impl From<QuantileCurve> for Vec<(u32, u64)> {
    fn from(curve: QuantileCurve) -> Self {
        curve.points
    }
}

/// Service times of a volume, by operation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ServiceTimes {
    /// A read that does not continue the one before it. With `mechanics`: of the electronics alone.
    pub read: QuantileCurve,
    /// A write that does not continue the one before it. With `mechanics`: of the electronics alone.
    pub write: QuantileCurve,
    /// A read or write that continues its stream, where that is faster (no seek); none: no
    /// difference. With `mechanics`: a read alone, which the drive has read ahead. A write that
    /// comes after the one before it was answered waits for the platter.
    pub sequential: Option<QuantileCurve>,
    /// A flush. EBS has no volatile cache: zero.
    pub flush: QuantileCurve,
    /// Whether a flush is served alone: it waits for what is being served, and what comes after waits
    /// for it (ATA's FLUSH CACHE, which is no queued command). Needs `parallelism`.
    pub flush_alone: bool,
    /// Transfer time added for every byte, in picoseconds (5,000 ps/byte is 200 MB/s).
    pub transfer_ps_per_byte: u32,
    /// How many I/Os are served at the same time; more wait in a queue. None: all of them.
    pub parallelism: Option<u16>,
    /// How many writes are served at the same time, apart from the reads: what the flash behind a
    /// buffer programs at a time. None: writes are served with the reads.
    pub write_parallelism: Option<u16>,
    /// An arm and platters. The volume then serves one I/O at a time: `parallelism` is 1.
    pub mechanics: Option<Mechanics>,
}

impl ServiceTimes {
    /// The median of a read of no bytes that finds the volume idle: with an arm, half a turn more.
    #[must_use]
    pub fn median_read(&self) -> Nanos {
        let half_turn = self.mechanics.map_or(0, |mechanics| mechanics.turn.0 / 2);
        self.read.quantile(500_000) + Nanos(half_turn)
    }

    /// Checks that the stations fit each other.
    pub(crate) fn check(&self) -> Result<(), LimitsError> {
        if self.parallelism == Some(0) || self.write_parallelism == Some(0) {
            return Err(LimitsError::ZeroParallelism);
        }
        if self.flush_alone && (self.parallelism.is_none() || self.mechanics.is_some()) {
            return Err(LimitsError::FlushAlone);
        }
        let Some(mechanics) = self.mechanics else { return Ok(()) };
        if self.parallelism != Some(1) || self.write_parallelism.is_some() {
            return Err(LimitsError::ParallelArm);
        }
        if mechanics.is_possible() && self.transfer_ps_per_byte > 0 {
            Ok(())
        } else {
            Err(LimitsError::Mechanics)
        }
    }

    /// No time at all: for the `ideal` volume and for tests of the limits alone.
    #[must_use]
    pub fn instant() -> Self {
        let zero = QuantileCurve::constant(Nanos::ZERO);
        Self {
            read: zero.clone(),
            write: zero.clone(),
            sequential: None,
            flush: zero,
            transfer_ps_per_byte: 0,
            flush_alone: false,
            parallelism: None,
            write_parallelism: None,
            mechanics: None,
        }
    }
}
