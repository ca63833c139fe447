//! The volume under the server: every I/O of the model goes through here and is counted by the kind of file.

use ebbtide_volume::{Array, Instance, Io, Nanos, Op, Stats};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The kind of file that an I/O goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Data files, read.
    DataRead,
    /// Data files, written.
    DataWrite,
    /// The doublewrite file.
    Doublewrite,
    /// The redo log.
    Redo,
    /// The binary log, and the file system's journal that its growth needs.
    Binlog,
}

impl FileKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::DataRead, Self::DataWrite, Self::Doublewrite, Self::Redo, Self::Binlog];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataRead => "data_read",
            Self::DataWrite => "data_write",
            Self::Doublewrite => "doublewrite",
            Self::Redo => "redo",
            Self::Binlog => "binlog",
        }
    }
}

/// I/O of one kind of file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileTotals {
    /// I/Os that the server submits.
    pub ios: u64,
    /// Operations that the volume counts for them.
    pub operations: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Files that grow begin here and there on the volume, far enough apart that their streams do not meet.
const REGIONS: u64 = 8;

/// A volume with what the model needs to use it.
#[derive(Debug)]
pub(crate) struct Disk {
    volume: Array,
    instance: Option<Instance>,
    rng: Xoshiro256PlusPlus,
    size: u64,
    next: [u64; 5],
    totals: [FileTotals; 5],
}

impl Disk {
    pub(crate) fn new(volume: Array, instance: Option<Instance>, seed: u64) -> Self {
        let size = volume.size_bytes();
        let next = std::array::from_fn(|n| size / REGIONS * (n as u64 + 1) / 4096 * 4096);
        let rng = Xoshiro256PlusPlus::seed_from_u64(!seed);
        Self { volume, instance, rng, size, next, totals: [FileTotals::default(); 5] }
    }

    /// Submits an I/O of so many bytes; returns when it completes.
    pub(crate) fn submit(&mut self, kind: FileKind, len: u32, now: Nanos) -> Nanos {
        let op = if kind == FileKind::DataRead { Op::Read } else { Op::Write };
        let offset = match kind {
            FileKind::DataRead | FileKind::DataWrite => self.random_offset(len),
            FileKind::Doublewrite | FileKind::Redo | FileKind::Binlog => self.next_offset(kind, len),
        };
        let io = Io { op, offset, len };
        let grant = self.volume.submit(io, now, &mut self.rng, self.instance.as_mut());
        let totals = &mut self.totals[kind as usize];
        totals.ios += 1;
        totals.operations += grant.operations;
        totals.bytes += u64::from(len);
        grant.completes
    }

    /// Flushes; returns when that completes.
    pub(crate) fn flush(&mut self, now: Nanos) -> Nanos {
        let io = Io { op: Op::Flush, offset: 0, len: 0 };
        self.volume.submit(io, now, &mut self.rng, self.instance.as_mut()).completes
    }

    fn random_offset(&mut self, len: u32) -> u64 {
        let pages = (self.size / u64::from(len)).max(1);
        let scaled = (u128::from(self.rng.next_u64()) * u128::from(pages)) >> 64;
        u64::try_from(scaled).expect("less than a u64 by construction") * u64::from(len)
    }

    fn next_offset(&mut self, kind: FileKind, len: u32) -> u64 {
        let region = self.size / REGIONS;
        let begin = region * (kind as u64 + 1) / 4096 * 4096;
        let next = &mut self.next[kind as usize];
        if *next + u64::from(len) > begin + region / 2 {
            *next = begin;
        }
        let offset = *next;
        *next += u64::from(len);
        offset
    }

    pub(crate) const fn volume(&self) -> &Array {
        &self.volume
    }

    pub(crate) const fn instance(&self) -> Option<&Instance> {
        self.instance.as_ref()
    }

    pub(crate) fn stats(&mut self, now: Nanos) -> Stats {
        self.volume.stats(now)
    }

    pub(crate) const fn totals(&self) -> [FileTotals; 5] {
        self.totals
    }
}
