//! The volumes under the server: every I/O of the model goes through here and is counted by the kind of file.

use ebbtide_observe::{Role, Volumes};
use ebbtide_volume::{Array, Instance, Io, Nanos, Op, Stats};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::file_kind::FileKind;

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

/// A volume and what lies on it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) role: Role,
    pub(crate) files: Vec<FileKind>,
    pub(crate) volume: Array,
    size: u64,
}

/// The volumes with what the model needs to use them. They share the instance's limits.
#[derive(Debug)]
pub(crate) struct Disk {
    parts: Vec<Part>,
    /// Of each kind of file, the place of its volume in `parts`.
    place: [usize; 5],
    instance: Option<Instance>,
    rng: Xoshiro256PlusPlus,
    next: [u64; 5],
    totals: [FileTotals; 5],
}

impl Disk {
    pub(crate) fn new(volumes: &Volumes<Array>, instance: Option<Instance>, seed: u64) -> Self {
        let part = |(role, volume): (Role, &Array)| Part {
            role,
            files: FileKind::on(volumes, role),
            volume: volume.clone(),
            size: volume.size_bytes(),
        };
        let parts: Vec<Part> = volumes.roles().map(part).collect();
        let place = FileKind::ALL.map(|kind| {
            parts.iter().position(|part| part.files.contains(&kind)).expect("each file has a volume")
        });
        let next = std::array::from_fn(|n| parts[place[n]].size / REGIONS * (n as u64 + 1) / 4096 * 4096);
        let rng = Xoshiro256PlusPlus::seed_from_u64(!seed);
        Self { parts, place, instance, rng, next, totals: [FileTotals::default(); 5] }
    }

    /// Submits an I/O of so many bytes; returns when it completes.
    pub(crate) fn submit(&mut self, kind: FileKind, len: u32, now: Nanos) -> Nanos {
        let op = if kind == FileKind::DataRead { Op::Read } else { Op::Write };
        let offset = match kind {
            FileKind::DataRead | FileKind::DataWrite => self.random_offset(kind, len),
            FileKind::Doublewrite | FileKind::Redo | FileKind::Binlog => self.next_offset(kind, len),
        };
        let io = Io { op, offset, len };
        let volume = &mut self.parts[self.place[kind as usize]].volume;
        let grant = volume.submit(io, now, &mut self.rng, self.instance.as_mut());
        let totals = &mut self.totals[kind as usize];
        totals.ios += 1;
        totals.operations += grant.operations;
        totals.bytes += u64::from(len);
        grant.completes
    }

    /// Flushes the volume of a kind of file; returns when that completes.
    pub(crate) fn flush(&mut self, kind: FileKind, now: Nanos) -> Nanos {
        let io = Io { op: Op::Flush, offset: 0, len: 0 };
        let volume = &mut self.parts[self.place[kind as usize]].volume;
        volume.submit(io, now, &mut self.rng, self.instance.as_mut()).completes
    }

    fn size(&self, kind: FileKind) -> u64 {
        self.parts[self.place[kind as usize]].size
    }

    fn random_offset(&mut self, kind: FileKind, len: u32) -> u64 {
        let pages = (self.size(kind) / u64::from(len)).max(1);
        let scaled = (u128::from(self.rng.next_u64()) * u128::from(pages)) >> 64;
        u64::try_from(scaled).expect("less than a u64 by construction") * u64::from(len)
    }

    fn next_offset(&mut self, kind: FileKind, len: u32) -> u64 {
        let region = self.size(kind) / REGIONS;
        let begin = region * (kind as u64 + 1) / 4096 * 4096;
        let next = &mut self.next[kind as usize];
        if *next + u64::from(len) > begin + region / 2 {
            *next = begin;
        }
        let offset = *next;
        *next += u64::from(len);
        offset
    }

    /// The volumes, that of the data first.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(crate) const fn instance(&self) -> Option<&Instance> {
        self.instance.as_ref()
    }

    /// The counters of each volume, in the order of [`Disk::parts`].
    pub(crate) fn stats(&mut self, now: Nanos) -> Vec<Stats> {
        self.parts.iter_mut().map(|part| part.volume.stats(now)).collect()
    }

    pub(crate) const fn totals(&self) -> [FileTotals; 5] {
        self.totals
    }
}
