//! Power cuts, crash images and snapshots: the moments at which a volume's state is looked at as a
//! whole.

use ebbtide_volume::{AtomicUnit, Nanos, PowerCut};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;

use super::{
    EngineError, LiveVolume,
    core::Pending,
    overlay::{Survivors, page_len},
};
use crate::{
    request::{Command, IoError},
    store::{BLOCK_BYTES, BlockStore, Store},
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

/// A crash image, and what taking it cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CrashReport {
    /// What the power cut that it shows would have done.
    pub cut: PowerCutReport,
    /// How long no write could complete.
    pub paused: Nanos,
}

/// One piece of the medium as the cut leaves it; no data means zeroes.
struct Piece {
    offset: u64,
    len: u64,
    data: Option<Vec<u8>>,
}

impl Piece {
    fn put(&self, store: &BlockStore) -> std::io::Result<()> {
        match &self.data {
            Some(data) => store.write_at(data, self.offset),
            None => store.write_zeroes(self.offset, self.len),
        }
    }
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
        let (mut report, pieces) = decide(lost.iter(), unit, &mut rng);
        report.at = core.clock.now();
        report.seed = seed;
        report.cached_units_kept = cached.units_kept;
        report.cached_units_lost = cached.units_lost;
        core.overlay.clear();
        let put = put_all(&core.store, &cached, &pieces);
        drop(alone);
        for pending in lost {
            pending.reply.send(Err(IoError::PowerLost));
        }
        put.map(|()| report)
    }

    /// Makes `image` a volume of `store` as a power cut now would leave this one, while this one
    /// goes on. `meta` is kept with the image.
    ///
    /// # Errors
    /// Where the store cannot make the clone or does not take a surviving unit.
    pub fn crash_image(
        &self,
        store: &Store,
        image: &str,
        seed: u64,
        meta: Value,
    ) -> Result<CrashReport, EngineError> {
        let core = &*self.core;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let boost = Boost::new();
        let began = core.clock.now();
        let alone = core.gate.write();
        let unit = self.inspect(|array, _| array.durability().atomic_unit);
        let cached = core.overlay.survivors(unit, &mut rng);
        let (mut cut, pieces) = decide(core.state.lock().in_order().into_iter(), unit, &mut rng);
        cut.at = began;
        cut.seed = seed;
        cut.cached_units_kept = cached.units_kept;
        cut.cached_units_lost = cached.units_lost;
        let cloned = store.clone_volume(core.name.as_str(), image, meta);
        drop(alone);
        let paused = core.clock.now().since(began);
        drop(boost);
        cloned?;
        let put = store
            .open_volume(image)
            .map_err(EngineError::from)
            .and_then(|target| put_all(&target, &cached, &pieces));
        if let Err(error) = put {
            // Without all that the report would count, it is not the image that was asked for.
            if let Err(stays) = store.delete_volume(image) {
                tracing::warn!(image, error = %stays, "an unfinished crash image stays behind");
            }
            return Err(error);
        }
        Ok(CrashReport { cut, paused })
    }

    /// Takes a snapshot that holds exactly the writes answered by now, while the volume goes on.
    ///
    /// # Errors
    /// Where the store cannot take it, or the volatile cache could not be written out before.
    pub fn snapshot(&self, store: &Store, name: &str, meta: Value) -> Result<(), EngineError> {
        let core = &*self.core;
        let _boost = Boost::new();
        let _alone = core.gate.write();
        core.overlay.flush(&core.store).map_err(|source| EngineError::Io {
            action: "write out the volume's cache before its snapshot",
            source,
        })?;
        Ok(store.snapshot(core.name.as_str(), name, meta)?)
    }
}

/// Decides about the writes in flight, in the order of their submission.
fn decide<'a>(
    in_flight: impl Iterator<Item = &'a Pending>,
    unit: AtomicUnit,
    rng: &mut Xoshiro256PlusPlus,
) -> (PowerCutReport, Vec<Piece>) {
    let mut report = PowerCutReport::default();
    let mut pieces = Vec::new();
    for pending in in_flight {
        report.requests_in_flight += 1;
        let changes = !matches!(pending.command, Command::Read | Command::Flush);
        if !changes || pending.fate.is_err() || pending.len == 0 {
            continue;
        }
        report.writes_in_flight += 1;
        let (offset, len) = (pending.offset, u64::from(pending.len));
        let units = (offset + len).div_ceil(unit.bytes()) - offset / unit.bytes();
        let before = pieces.len();
        pieces.extend(PowerCut::new(unit, rng).surviving(offset, len).map(|new| {
            let slice = |data: &[u8]| {
                let at = |bytes: u64| usize::try_from(bytes).expect("a part of a buffer");
                data[at(new.offset - offset)..at(new.offset - offset + new.len)].to_vec()
            };
            Piece { offset: new.offset, len: new.len, data: pending.data.as_deref().map(slice) }
        }));
        let survived = u64::try_from(pieces.len() - before).expect("a count fits in 64 bits");
        report.units_new += survived;
        report.units_old += units - survived;
    }
    (report, pieces)
}

/// Puts the survivors on the medium: answered ones first, since they are the older.
fn put_all(store: &BlockStore, cached: &Survivors, pieces: &[Piece]) -> Result<(), EngineError> {
    let answered = cached
        .writes
        .iter()
        .map(|(offset, page)| store.write_at(&page[..page_len(store, offset / BLOCK_BYTES)], *offset));
    let in_flight = pieces.iter().map(|piece| piece.put(store));
    // Each is tried, whatever became of the one before.
    let failed =
        answered.chain(in_flight).filter_map(Result::err).fold(None, |first, error| first.or(Some(error)));
    failed.map_or(Ok(()), |source| {
        Err(EngineError::Io { action: "write what a power cut leaves behind", source })
    })
}
