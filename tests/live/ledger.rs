//! A verified write load: every 4 KiB unit has who wrote it and when, and a ledger has what was
//! answered. From the two follows what a power cut may and may not have left.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The smallest unit that a power cut never tears.
pub(crate) const UNIT: usize = 4096;
/// Units in the region of one writer.
const REGION_UNITS: u64 = 256;
/// The longest write, in units.
const LONGEST: u64 = 16;

/// What one unit's content holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    unit: u64,
    sequence: u64,
}

const MAGIC: u64 = 0x4c45_4447_4552_3031;

fn fill(buffer: &mut [u8], stamp: Stamp) {
    for (word, bytes) in buffer.chunks_exact_mut(8).enumerate() {
        let value = match word % 3 {
            0 => MAGIC,
            1 => stamp.unit,
            _ => stamp.sequence,
        };
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

/// Reads a unit's stamp; an error where the unit is not one whole stamp (zeroes are sequence 0).
fn read_stamp(buffer: &[u8], unit: u64) -> Result<u64, String> {
    if buffer.iter().all(|&byte| byte == 0) {
        return Ok(0);
    }
    let word = |n: usize| u64::from_le_bytes(buffer[n * 8..][..8].try_into().unwrap());
    let stamp = Stamp { unit: word(1), sequence: word(2) };
    let mut whole = vec![0; UNIT];
    fill(&mut whole, stamp);
    if whole != buffer {
        return Err(format!("unit {unit} is torn inside its 4 KiB"));
    }
    if stamp.unit != unit {
        return Err(format!("unit {unit} holds what was written to unit {}", stamp.unit));
    }
    Ok(stamp.sequence)
}

/// Memory aligned for direct I/O.
pub(crate) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub(crate) fn new(len: usize) -> Self {
        let memory = vec![0; len + UNIT];
        let start = memory.as_ptr().align_offset(UNIT);
        Self { memory, start, len }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }
}

pub(crate) fn open_direct(path: &Path) -> io::Result<File> {
    let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("a flag is a small number");
    OpenOptions::new().read(true).write(true).custom_flags(direct).open(path)
}

/// One writer's writes: sequence n (from 1) covered `units` from `first`.
#[derive(Debug, Clone, Copy)]
struct Write {
    first: u64,
    units: u64,
}

/// One writer: it has one write in flight at a time, so each depends on the one before it.
#[derive(Debug, Default)]
struct Writer {
    writes: Mutex<Vec<Write>>,
    answered: AtomicU64,
}

/// The load: `writers` threads, each on its own region of the device.
pub(crate) struct Load {
    writers: Arc<Vec<Writer>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What was answered and what was submitted, at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    answered: Vec<u64>,
}

impl Mark {
    /// Answered writes over all writers.
    pub(crate) fn total(&self) -> u64 {
        self.answered.iter().sum()
    }
}

/// Every write up to now, to check an image against.
pub(crate) struct Ledger {
    histories: Vec<Vec<Write>>,
}

impl Load {
    /// Starts writing to the device. It ends by itself at the first I/O error.
    pub(crate) fn start(device: &Path, writers: u64, seed: u64) -> Self {
        println!("write load: {writers} writers, seed {seed}");
        let shared: Arc<Vec<Writer>> = Arc::new((0..writers).map(|_| Writer::default()).collect());
        let stop = Arc::new(AtomicBool::new(false));
        let spawn = |number: u64| {
            let (shared, stop, file) = (shared.clone(), stop.clone(), open_direct(device).unwrap());
            let rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ number);
            thread::spawn(move || write_until(&shared, number, &file, rng, &stop))
        };
        let threads = (0..writers).map(spawn).collect();
        Self { writers: shared, stop, threads }
    }

    /// What has been answered so far.
    pub(crate) fn mark(&self) -> Mark {
        Mark { answered: self.writers.iter().map(|w| w.answered.load(Ordering::SeqCst)).collect() }
    }

    /// What has been submitted so far.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger { histories: self.writers.iter().map(|w| w.writes.lock().unwrap().clone()).collect() }
    }

    /// Answered writes over all writers.
    pub(crate) fn answered(&self) -> u64 {
        self.mark().total()
    }

    /// Stops the writers, or waits for them where an error already has.
    pub(crate) fn stop(mut self) -> (Mark, Ledger) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        (self.mark(), self.ledger())
    }
}

fn write_until(writers: &[Writer], number: u64, file: &File, mut rng: Xoshiro256PlusPlus, stop: &AtomicBool) {
    let writer = &writers[usize::try_from(number).unwrap()];
    let region = number * REGION_UNITS;
    let mut buffer = Aligned::new(usize::try_from(LONGEST).unwrap() * UNIT);
    for sequence in 1.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        // Half of the writes are whole aligned 16 KiB pages, as InnoDB's are.
        let (first, units) = if rng.next_u32().is_multiple_of(2) {
            (u64::from(rng.next_u32()) % (REGION_UNITS / 4) * 4, 4)
        } else {
            let units = 1 + u64::from(rng.next_u32()) % LONGEST;
            (u64::from(rng.next_u32()) % (REGION_UNITS - units), units)
        };
        let write = Write { first: region + first, units };
        let len = usize::try_from(units).unwrap() * UNIT;
        for n in 0..units {
            let at = usize::try_from(n).unwrap() * UNIT;
            fill(&mut buffer.bytes()[at..at + UNIT], Stamp { unit: write.first + n, sequence });
        }
        writer.writes.lock().unwrap().push(write);
        if file.write_all_at(&buffer.bytes()[..len], write.first * UNIT as u64).is_err() {
            return;
        }
        writer.answered.store(sequence, Ordering::SeqCst);
    }
}

/// A promise that an image breaks.
pub(crate) type Violation = String;

/// Checks an image of the device against the ledger.
///
/// For every writer: nothing that was answered before the cut (`answered`) is missing; what is there
/// is a prefix of its writes, of which only the last may be partial, since each was submitted after
/// the one before it was answered; and that last one is whole or absent per aligned atomic unit.
pub(crate) fn violations(
    image: &Path,
    answered: &Mark,
    ledger: &Ledger,
    atomic_bytes: u64,
) -> Vec<Violation> {
    let file = open_direct(image).unwrap();
    let region_bytes = usize::try_from(REGION_UNITS).unwrap() * UNIT;
    let mut buffer = Aligned::new(region_bytes);
    let mut found = Vec::new();
    for (number, history) in ledger.histories.iter().enumerate() {
        let base = number as u64 * REGION_UNITS;
        file.read_exact_at(buffer.bytes(), base * UNIT as u64).unwrap();
        let mut sequences = Vec::new();
        for (n, unit) in buffer.bytes().chunks_exact(UNIT).enumerate() {
            match read_stamp(unit, base + n as u64) {
                Ok(sequence) => sequences.push(sequence),
                Err(torn) => return vec![torn],
            }
        }
        check_writer(number, base, &sequences, answered.answered[number], history, atomic_bytes, &mut found);
    }
    found
}

fn check_writer(
    number: usize,
    base: u64,
    sequences: &[u64],
    answered: u64,
    history: &[Write],
    atomic_bytes: u64,
    found: &mut Vec<Violation>,
) {
    let newest = sequences.iter().copied().max().unwrap_or(0);
    if newest > history.len() as u64 {
        found.push(format!("writer {number}: write {newest} is there but was never submitted"));
        return;
    }
    // Everything before the newest write was answered before that one was submitted.
    let whole = answered.max(newest.saturating_sub(1));
    let mut expected = vec![0_u64; sequences.len()];
    for (write, sequence) in history.iter().zip(1..=whole) {
        for unit in write.first..write.first + write.units {
            expected[usize::try_from(unit - base).unwrap()] = sequence;
        }
    }
    let in_flight = history.get(usize::try_from(whole).unwrap()).copied();
    for (n, (&got, &wanted)) in sequences.iter().zip(&expected).enumerate() {
        let unit = base + n as u64;
        let covered = in_flight.is_some_and(|w| (w.first..w.first + w.units).contains(&unit));
        if got != wanted && !(covered && got == whole + 1) {
            found.push(format!(
                "writer {number}: unit {unit} holds write {got}, not {wanted} (answered: {answered})"
            ));
        }
    }
    let Some(write) = in_flight else { return };
    let per_atom = atomic_bytes / UNIT as u64;
    let atom = |unit: u64| unit / per_atom;
    for pair in (write.first..write.first + write.units).collect::<Vec<_>>().windows(2) {
        let new = |unit: u64| sequences[usize::try_from(unit - base).unwrap()] == whole + 1;
        if atom(pair[0]) == atom(pair[1]) && new(pair[0]) != new(pair[1]) {
            found.push(format!(
                "writer {number}: write {} is torn inside an atomic unit at {}",
                whole + 1,
                pair[0]
            ));
        }
    }
}
