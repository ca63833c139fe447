//! Power cuts and snapshots: the moments at which a volume's state is looked at as a whole, and what
//! becomes of the writes that a cut finds in flight.

use ebbtide_volume::{AtomicUnit, Nanos, PowerCut, UnitWrite};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;

use super::{
    EngineError, LiveVolume,
    overlay::{Survivors, page_len},
    pending::Pending,
};
use crate::{
    request::{Command, IoError},
    store::{BLOCK_BYTES, OpenVolume, SnapshotRequest, VolumeStore},
    sys::Boost,
};

/// What a power cut did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PowerCutReport {
    /// When it happened, in the volume's time.
    pub at: Nanos,
    /// The seed that decided.
    pub seed: u64,
    /// Requests that were in flight, of every kind.
    pub requests_in_flight: u64,
    /// Writes, write-zeroes and discards among them.
    pub writes_in_flight: u64,
    /// Atomic units of writes in flight that are wholly new.
    pub units_new: u64,
    /// Atomic units of writes in flight that are wholly old.
    pub units_old: u64,
    /// Atomic units of answered writes in volatile memory that survived.
    pub cached_units_kept: u64,
    /// Atomic units of answered writes in volatile memory that are lost. Always zero on a volume
    /// that keeps what it answers.
    pub cached_units_lost: u64,
}

impl LiveVolume {
    /// Takes the power away. Every answered write is kept (but for the subset of a volatile cache
    /// that the seed decides on); each write in flight is wholly old or wholly new in every aligned
    /// atomic unit, from the seed. From then on everything fails, until the volume is started anew.
    ///
    /// # Errors
    /// Where the host's disk did not take a surviving unit; that unit is then old.
    pub fn power_cut(&self, seed: u64) -> Result<PowerCutReport, EngineError> {
        let _boost = Boost::new();
        let core = &*self.core;
        let alone = core.gate.write();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let unit = self.inspect(|array, _| array.durability().atomic_unit);
        let cached = core.overlay.survivors(unit, &mut rng);
        let lost = core.go_dark();
        let at = core.clock.now();
        let in_flight = InFlight::of(&lost);
        let requests = in_flight.requests;
        let decided = in_flight.decide(unit, &mut rng);
        core.overlay.clear();
        // Each is tried, whatever became of the one before.
        let put = put_cached(&core.store, &cached);
        let put = decided.iter().map(|write| write.put(&core.store)).fold(put, Result::and);
        drop(alone);
        for pending in lost {
            pending.reply.send(Err(IoError::PowerLost));
        }
        put.map(|()| report(at, seed, requests, &decided, &cached))
            .map_err(|source| EngineError::Io { action: LEAVING, source })
    }

    /// Takes a snapshot that holds exactly the writes answered by now, while the volume goes on.
    ///
    /// # Errors
    /// Where the store cannot take it, or the volatile cache could not be written out before.
    pub fn snapshot(&self, store: &VolumeStore, name: &str, meta: Value) -> Result<(), EngineError> {
        let request = SnapshotRequest { volume: self.core.name.as_str(), name, meta };
        snapshots_at_once(store, &[self], &[request])
    }
}

/// Takes snapshots of volumes at one instant, all of them or none: until they are taken, no write of a volume of `live` is
/// completed. Volumes that no engine runs may be among the requests, but not those of another engine.
///
/// # Errors
/// Where the store cannot take them, or a volatile cache could not be written out before.
pub fn snapshots_at_once(
    store: &VolumeStore,
    live: &[&LiveVolume],
    requests: &[SnapshotRequest<'_>],
) -> Result<(), EngineError> {
    let volumes = each_once(live.iter().copied());
    let _boost = Boost::new();
    let _alone: Vec<_> = volumes.iter().map(|volume| volume.core.gate.write()).collect();
    for volume in &volumes {
        volume.core.overlay.flush(&volume.core.store).map_err(|source| EngineError::Io {
            action: "write out the volume's cache before its snapshot",
            source,
        })?;
    }
    Ok(store.take_snapshots(requests)?)
}

/// Volumes, each once, in the one order in which their locks are taken.
pub(super) fn each_once<'a>(volumes: impl Iterator<Item = &'a LiveVolume>) -> Vec<&'a LiveVolume> {
    let mut volumes: Vec<_> = volumes.collect();
    volumes.sort_unstable_by_key(|volume| volume.key());
    volumes.dedup_by_key(|volume| volume.key());
    volumes
}

impl LiveVolume {
    /// Distinguishes volumes, as their names would within one store.
    pub(super) fn key(&self) -> usize {
        std::sync::Arc::as_ptr(&self.core).addr()
    }
}

/// What fails where the host does not take a surviving unit.
pub(super) const LEAVING: &str = "write what a power cut leaves behind";

/// What a cut finds in flight, in the order of submission; nothing is decided yet.
#[derive(Debug)]
pub(super) struct InFlight {
    /// Requests of every kind.
    pub(super) requests: u64,
    writes: Vec<Caught>,
}

/// A write, write-zeroes or discard in flight.
#[derive(Debug)]
struct Caught {
    offset: u64,
    len: u64,
    submitted: Nanos,
    /// What it brings; none where it makes zeroes.
    data: Option<Vec<u8>>,
}

impl InFlight {
    /// Copies what the writes bring, since they go on to complete.
    pub(super) fn of<'a>(in_order: impl IntoIterator<Item = &'a Pending>) -> Self {
        let mut found = Self { requests: 0, writes: Vec::new() };
        for pending in in_order {
            found.requests += 1;
            let changes = !matches!(pending.command, Command::Read | Command::Flush);
            if changes && pending.fate.is_ok() && pending.len > 0 {
                found.writes.push(Caught {
                    offset: pending.offset,
                    len: pending.len.into(),
                    submitted: pending.arrived,
                    data: pending.data.as_deref().map(<[u8]>::to_vec),
                });
            }
        }
        found
    }

    /// Draws what reached the medium.
    pub(super) fn decide(self, unit: AtomicUnit, rng: &mut Xoshiro256PlusPlus) -> Vec<Decided> {
        let decide = |Caught { offset, len, submitted, data }| {
            let units = (offset + len).div_ceil(unit.bytes()) - offset / unit.bytes();
            let new = PowerCut::new(unit, rng).surviving(offset, len).collect();
            Decided { offset, len, submitted, data, units, new }
        };
        self.writes.into_iter().map(decide).collect()
    }
}

/// A write in flight whose fate is known.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) submitted: Nanos,
    /// What it brings; none where it makes zeroes.
    pub(super) data: Option<Vec<u8>>,
    /// Atomic units that it touches.
    pub(super) units: u64,
    /// Those that are new.
    pub(super) new: Vec<UnitWrite>,
}

impl Decided {
    /// Units that are new, as a figure for a report.
    fn units_new(&self) -> u64 {
        u64::try_from(self.new.len()).expect("a count fits in 64 bits")
    }

    /// Whether it is neither wholly old nor wholly new.
    pub(super) fn is_torn(&self) -> bool {
        (1..self.units).contains(&self.units_new())
    }

    /// Puts the new units on the medium.
    pub(super) fn put(&self, store: &OpenVolume) -> std::io::Result<()> {
        let at = |bytes: u64| usize::try_from(bytes).expect("a part of a buffer");
        let put = |new: &UnitWrite| match &self.data {
            Some(data) => {
                let start = at(new.offset - self.offset);
                store.write_at(&data[start..start + at(new.len)], new.offset)
            }
            None => store.write_zeroes(new.offset, new.len),
        };
        self.new.iter().map(put).fold(Ok(()), Result::and)
    }
}

/// Puts the surviving pages of a volatile cache on the medium. They were answered, so they are older
/// than any write in flight.
pub(super) fn put_cached(store: &OpenVolume, cached: &Survivors) -> std::io::Result<()> {
    let writes = cached.writes.iter();
    let put =
        writes.map(|(offset, page)| store.write_at(&page[..page_len(store, offset / BLOCK_BYTES)], *offset));
    put.fold(Ok(()), Result::and)
}

/// The figures of a cut.
pub(super) fn report(
    at: Nanos,
    seed: u64,
    requests_in_flight: u64,
    decided: &[Decided],
    cached: &Survivors,
) -> PowerCutReport {
    let units_new = decided.iter().map(Decided::units_new).sum();
    PowerCutReport {
        at,
        seed,
        requests_in_flight,
        writes_in_flight: u64::try_from(decided.len()).expect("a count fits in 64 bits"),
        units_new,
        units_old: decided.iter().map(|write| write.units).sum::<u64>() - units_new,
        cached_units_kept: cached.units_kept,
        cached_units_lost: cached.units_lost,
    }
}
