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
    /// The n-th most popular block is drawn in proportion to `n^-theta`. Popular blocks lie
    /// scattered over the extent.
    Zipf {
        /// The exponent, above 0.
        theta: f64,
    },
    /// A power law: the share `1 - h` of the accesses goes to the share `h` of the blocks (0.2 is
    /// the 80/20 rule). Popular blocks lie scattered over the extent.
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

    /// Whether the job does that operation.
    #[must_use]
    pub fn does(&self, op: Op) -> bool {
        match self.direction {
            Direction::Read => op == Op::Read,
            Direction::Write => op == Op::Write,
            Direction::Mixed { .. } => matches!(op, Op::Read | Op::Write),
        }
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
