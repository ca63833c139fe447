//! The engine on a clock that moves only when it is set: nothing here sleeps.

mod encrypted;
mod faults;
mod group;
mod images;
mod ledger;
mod loading;
mod models;
mod requests;
mod volatile;

use std::sync::{Arc, mpsc};

use ebbtide_volume::{Array, AtomicUnit, Durability, KIB, Limits, MIB, Nanos, QuantileCurve, ServiceTimes};
use serde_json::Value;
use tempfile::TempDir;

use super::{LiveOptions, LiveVolume};
use crate::{
    clock::ManualClock,
    request::{Command, IoError, Reply, Request},
    store::{StoreOptions, VolumeStore},
};

const NAME: &str = "vol";
const SIZE: u64 = 4 * MIB;
/// Some day in 2026.
const START: Nanos = Nanos::from_secs(1_780_000_000);
/// Service time of every read and write, and a tenth of it for a flush.
const SERVICE: Nanos = Nanos::from_us(500);

/// A volume on a manual clock, with its store in a directory of its own.
struct Fixture {
    dir: TempDir,
    store: VolumeStore,
    clock: Arc<ManualClock>,
    volume: Arc<LiveVolume>,
}

/// What a request came to; reads bring their data.
type Outcome = Result<Vec<u8>, IoError>;

/// An answer that may not have come yet.
struct Awaited(mpsc::Receiver<Outcome>);

impl Awaited {
    fn now(&self) -> Option<Outcome> {
        self.0.try_recv().ok()
    }
}

fn limits(unit: AtomicUnit, volatile_cache_bytes: u64) -> Limits {
    let service = ServiceTimes {
        read: QuantileCurve::constant(SERVICE),
        write: QuantileCurve::constant(SERVICE),
        flush: QuantileCurve::constant(Nanos(SERVICE.0 / 10)),
        ..ServiceTimes::instant()
    };
    Limits {
        service,
        durability: Durability { atomic_unit: unit, volatile_cache_bytes },
        ..Limits::unlimited(SIZE)
    }
}

fn ebs() -> Limits {
    limits(AtomicUnit::FourKib, 0)
}

impl Fixture {
    fn new(limits: Limits) -> Self {
        Self::on(limits, |store, size| store.create_volume(NAME, size, Value::Null).unwrap())
    }

    /// On a volume that `create` makes in the store, with a size in bytes.
    fn on(limits: Limits, create: impl FnOnce(&VolumeStore, u64)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = VolumeStore::open(&dir.path().join("store"), StoreOptions::default()).unwrap();
        create(&store, limits.size_bytes);
        let clock = Arc::new(ManualClock::new(START));
        let volume = start(&store, NAME, limits, &clock);
        Self { dir, store, clock, volume }
    }

    fn ask(&self, command: Command, offset: u64, len: u32, data: Option<&[u8]>, fua: bool) -> Awaited {
        let (sender, receiver) = mpsc::channel();
        let reply = Reply::callback(move |outcome| {
            // Some tests do not listen.
            let _ = sender.send(outcome.map(|data| data.map_or_else(Vec::new, |data| data.to_vec())));
        });
        let data = data.map(|bytes| {
            let mut buffer = self.volume.buffer(u32::try_from(bytes.len()).unwrap());
            buffer.copy_from_slice(bytes);
            buffer
        });
        self.volume.submit(Request { command, offset, len, fua, data, reply });
        Awaited(receiver)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Awaited {
        self.ask(Command::Write, offset, u32::try_from(data.len()).unwrap(), Some(data), false)
    }

    /// A write and the time that it takes.
    fn write_and_wait(&self, offset: u64, data: &[u8]) {
        let awaited = self.write(offset, data);
        self.pass(SERVICE);
        awaited.now().expect("the write is due").expect("the write succeeds");
    }

    fn read(&self, offset: u64, len: u32) -> Awaited {
        self.ask(Command::Read, offset, len, None, false)
    }

    fn flush(&self) -> Awaited {
        self.ask(Command::Flush, 0, 0, None, false)
    }

    /// Lets time pass, with everything that falls due in it.
    fn pass(&self, time: Nanos) {
        self.clock.advance(time);
        self.volume.run_due();
    }

    /// What the store holds, past the engine.
    fn stored(&self, offset: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(len).unwrap()];
        self.volume.store().read_at(&mut bytes, offset).unwrap();
        bytes
    }

    /// All of another volume in the store.
    fn contents(&self, name: &str) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(SIZE).unwrap()];
        self.store.open_volume(name).unwrap().read_at(&mut bytes, 0).unwrap();
        bytes
    }
}

fn start(store: &VolumeStore, name: &str, limits: Limits, clock: &Arc<ManualClock>) -> Arc<LiveVolume> {
    let array = Array::single(limits, crate::clock::Clock::now(&**clock)).unwrap();
    let mut options = LiveOptions::new(name, array, store.open_volume(name).unwrap(), 7);
    options.clock = Arc::<ManualClock>::clone(clock);
    LiveVolume::start(options).unwrap()
}

fn filled(byte: u8, len: u64) -> Vec<u8> {
    vec![byte; usize::try_from(len).unwrap()]
}

const PAGE: u64 = 4 * KIB;
