//! A job: what a number of clients do on a volume, as fio describes it.

use ebbtide_volume::{Nanos, Op};

/// Which operations a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Reads and writes, drawn for every I/O.
    Mixed {
        /// Percent of reads, 0 to 100.
        read_percent: u8,
    },
}

/// Where a job's I/O goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Access {
    /// From the start of its extent to the end, and again. Reads and writes have a position each.
    Sequential,
    /// Anywhere in its extent, on a multiple of the smallest block size.
    Random(Distribution),
}

/// How random I/O is spread over the extent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Every block is as likely as any other.
    Uniform,
    /// The n-th most popular block is drawn in proportion to `n^-theta`. Popular blocks are
    /// scattered over the extent.
    Zipf {
        /// The exponent, above 0.
        theta: f64,
    },
    /// A power law: the share `1 - h` of the accesses goes to the share `h` of the blocks (0.2 is
    /// the 80/20 rule). Popular blocks are scattered over the extent.
    Pareto {
        /// Between 0 and 1, both excluded.
        h: f64,
    },
}

/// The block sizes of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSizes {
    /// (bytes, percent of the I/Os); the percentages add up to 100 and no size is zero.
    pub(crate) shares: Vec<(u32, u8)>,
}

impl BlockSizes {
    /// One size in bytes.
    #[must_use]
    pub fn fixed(bytes: u32) -> Self {
        Self { shares: vec![(bytes, 100)] }
    }

    /// The sizes in bytes and their percentages.
    #[must_use]
    pub fn shares(&self) -> &[(u32, u8)] {
        &self.shares
    }

    /// The smallest size in bytes.
    #[must_use]
    pub fn smallest(&self) -> u32 {
        self.shares.iter().map(|&(bytes, _)| bytes).min().unwrap_or(0)
    }

    /// The largest size in bytes.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.shares.iter().map(|&(bytes, _)| bytes).max().unwrap_or(0)
    }
}

/// A length or position on a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Bytes.
    Bytes(u64),
    /// Percent of the volume's size, 0 to 100.
    Percent(u8),
}

impl Extent {
    /// In bytes, on a volume of that size.
    #[must_use]
    pub fn bytes_of(self, volume_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                let bytes = u128::from(volume_bytes) * u128::from(percent) / 100;
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The pace at which I/O arrives, whether or not the volume keeps up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// I/Os a second.
    Iops(u64),
    /// Bytes a second.
    Bytes(u64),
}

/// One job. Times and sizes are as fio counts them; every clone of `clones` has its own position,
/// depth, rate and amount.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its name: the section of a job file, or `job`.
    pub name: String,
    /// Reads, writes or both.
    pub direction: Direction,
    /// Where it goes.
    pub access: Access,
    /// Sizes of reads and of writes.
    pub block_sizes: [BlockSizes; 2],
    /// I/Os that a clone keeps in flight, at most; 1 or more.
    pub depth: u32,
    /// How many clones run (fio's `numjobs`); 1 or more.
    pub clones: u32,
    /// How long a clone runs; none: until its amount is done.
    pub runtime: Option<Nanos>,
    /// Whether the runtime alone ends it (fio's `time_based`, or a runtime without an amount).
    pub time_based: bool,
    /// When it starts, after the phase that it belongs to.
    pub start_delay: Nanos,
    /// Where its extent begins.
    pub offset: Extent,
    /// How much further every next clone's extent begins.
    pub offset_increment: Extent,
    /// The extent's length; none: to the end of the volume.
    pub size: Option<Extent>,
    /// Bytes that a clone moves; none: the length of its extent, `loops` times.
    pub amount: Option<u64>,
    /// How often the extent's length is moved.
    pub loops: u64,
    /// I/Os that a clone does, at most.
    pub max_ios: Option<u64>,
    /// The pace of reads and of writes; none: the next I/O follows the one before it.
    pub rate: [Option<Rate>; 2],
    /// Whether paced I/O arrives at random (a Poisson process) instead of evenly.
    pub poisson: bool,
    /// Pause after every `think_blocks` I/Os, with nothing in flight; zero: none.
    pub think_time: Nanos,
    /// I/Os between two pauses; 1 or more.
    pub think_blocks: u32,
    /// Writes between two flushes; zero: none.
    pub flush_every: u32,
    /// The phase: it starts when every job of the phase before has ended (fio's `stonewall`).
    pub phase: u32,
}

impl Job {
    /// A job with fio's defaults: 4 KiB sequential reads of the whole volume, one in flight.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            direction: Direction::Read,
            access: Access::Sequential,
            block_sizes: [BlockSizes::fixed(4096), BlockSizes::fixed(4096)],
            depth: 1,
            clones: 1,
            runtime: None,
            time_based: false,
            start_delay: Nanos::ZERO,
            offset: Extent::Bytes(0),
            offset_increment: Extent::Bytes(0),
            size: None,
            amount: None,
            loops: 1,
            max_ios: None,
            rate: [None, None],
            poisson: false,
            think_time: Nanos::ZERO,
            think_blocks: 1,
            flush_every: 0,
            phase: 0,
        }
    }

    /// Bytes of an extent that begins at `base`. As in fio, a percentage ends with the volume; a size in bytes may exceed it.
    pub(crate) fn length(&self, base: u64, volume_bytes: u64) -> u64 {
        let rest = volume_bytes.saturating_sub(base);
        match self.size {
            None => rest,
            Some(Extent::Bytes(bytes)) => bytes,
            Some(size @ Extent::Percent(_)) => size.bytes_of(volume_bytes).min(rest),
        }
    }

    /// Whether the job does that operation.
    #[must_use]
    pub fn does(&self, op: Op) -> bool {
        match self.direction {
            Direction::Read => op == Op::Read,
            Direction::Write => op == Op::Write,
            Direction::Mixed { .. } => matches!(op, Op::Read | Op::Write),
        }
    }

    /// The least virtual time from the start of its phase to its end on a volume of that size, as
    /// far as its runtime, its pace and its pauses decide it; the volume's limits only add to it.
    /// Saturates at `Nanos(u64::MAX)`, 584 years.
    #[must_use]
    pub fn least_time(&self, volume_bytes: u64) -> Nanos {
        let runtime = self.runtime.unwrap_or(Nanos(u64::MAX));
        let spent = if self.time_based { runtime } else { self.least_time_of_amount(volume_bytes) };
        Nanos(self.start_delay.0.saturating_add(spent.min(runtime).0))
    }

    fn least_time_of_amount(&self, volume_bytes: u64) -> Nanos {
        let sides = || [Op::Read, Op::Write].into_iter().zip(0..).filter(|(op, _)| self.does(*op));
        let sizes = || sides().map(|(_, side): (_, usize)| &self.block_sizes[side]);
        let largest = u64::from(sizes().map(BlockSizes::largest).max().unwrap_or(0).max(1));
        let smallest = u64::from(sizes().map(BlockSizes::smallest).min().unwrap_or(0));
        let once = self.length(self.offset.bytes_of(volume_bytes), volume_bytes);
        let amount = self.amount.unwrap_or(once.saturating_mul(self.loops));
        let most_ios = self.max_ios.unwrap_or(u64::MAX);
        // The first I/O waits for nothing.
        let ios = amount.div_ceil(largest).min(most_ios).saturating_sub(1);
        let bytes = amount.min(most_ios.saturating_mul(smallest)).saturating_sub(largest);
        let rates: Option<Vec<Rate>> = sides().map(|(_, side)| self.rate[side]).collect();
        let (mut iops, mut byte_rate) = (0_u64, 0_u64);
        for rate in rates.iter().flatten() {
            match rate {
                Rate::Iops(rate) => iops = iops.saturating_add(*rate),
                Rate::Bytes(rate) => byte_rate = byte_rate.saturating_add(*rate),
            }
        }
        let paced = match (iops, byte_rate) {
            (rate @ 1.., 0) => span(ios, rate),
            (0, rate @ 1..) => span(bytes, rate),
            _ => Nanos::ZERO,
        };
        let pauses = ios / u64::from(self.think_blocks);
        paced.max(Nanos(pauses.saturating_mul(self.think_time.0)))
    }
}

/// How long `units` take at `rate` of them a second.
fn span(units: u64, rate: u64) -> Nanos {
    Nanos(u64::try_from(u128::from(units) * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use crate::fio::{Nothing, parse_words};

    #[test]
    fn the_least_time_of_a_job_follows_from_its_pace_its_pauses_and_its_runtime() {
        let least = |words: &str| parse_words(words, &Nothing).unwrap().jobs[0].least_time(1 << 30).0;
        let second = 1_000_000_000;
        // 1 GiB in blocks of 4 KiB is 262,144 I/Os.
        assert_eq!(least("rate=4k"), 262_143 * second);
        assert_eq!(least("rate_iops=2,number_ios=101"), 50 * second);
        assert_eq!(least("rw=randrw,rate_iops=3,1,number_ios=401"), 100 * second);
        assert_eq!(least("thinktime=2s,thinktime_blocks=4,number_ios=401,startdelay=7"), 207 * second);
        assert_eq!(least("rate=1,size=1m,runtime=60"), 60 * second);
        assert_eq!(least("rate=1,runtime=60"), 60 * second);
        assert_eq!(least("rw=randread"), 0);
        assert_eq!(least("rate=1,loops=1000000"), u64::MAX);
    }
}

/// Jobs that run together on a volume, and what the reader of their words should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The jobs, in the order given; at least one.
    pub jobs: Vec<Job>,
    /// Words that have no meaning here or differ from fio, one sentence each.
    pub notes: Vec<String>,
}
