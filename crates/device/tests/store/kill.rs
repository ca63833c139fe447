//! `kill -9` at any moment: no answered write is lost, no metadata damaged.
//!
//! A child process writes, discards, snapshots and deletes, and reports through a pipe what it begins and what was answered.
//! It is killed at a random moment; the parent then reads the store and compares it with the log.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use ebbtide_device::store::{OpenVolume, VolumeStore, check};
use serde_json::Value;

use crate::support::{Rng, open, seed};

const CHILD: &str = "EBBTIDE_STORE_KILL_CHILD";
const SECTOR: u64 = 512;
const THREADS: u64 = 3;
/// Sectors of each thread's own part of the volume: 4 MiB.
const PART: u64 = 8192;
const KILLS: u64 = 50;

/// One operation, as reported through the pipe: begun, or answered.
#[derive(Debug, Clone, Copy)]
struct LogEntry {
    answered: bool,
    thread: u64,
    kind: u64,
    id: u64,
    sector: u64,
    sectors: u64,
}

const WRITE: u64 = 0;
const DISCARD: u64 = 1;
const ZEROES: u64 = 2;
const SNAPSHOT: u64 = 3;
const DELETE_SNAPSHOT: u64 = 4;

impl LogEntry {
    const BYTES: usize = 48;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let words = [u64::from(self.answered), self.thread, self.kind, self.id, self.sector, self.sectors];
        let mut bytes = [0; Self::BYTES];
        for (part, word) in bytes.chunks_mut(8).zip(words) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap());
        let answered = word(0) == 1;
        Self { answered, thread: word(1), kind: word(2), id: word(3), sector: word(4), sectors: word(5) }
    }
}

/// What is written: every sector begins with the number of its write.
fn pattern(id: u64, sectors: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(sectors * SECTOR).unwrap()];
    bytes.chunks_mut(512).for_each(|sector| {
        sector[..8].copy_from_slice(&id.to_le_bytes());
        sector[504..].copy_from_slice(&id.to_le_bytes());
    });
    bytes
}

/// The child's life, until it is killed. One that `cheats` answers a write before the store has it.
fn child(dir: &Path, seed: u64, cheats: bool) {
    let store = open(dir);
    let volume = store.open_volume("v").unwrap();
    let pipe = Mutex::new(std::io::stderr());
    let log = |entry: LogEntry| pipe.lock().unwrap().write_all(&entry.to_bytes()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (volume, log) = (&volume, &log);
            scope.spawn(move || {
                write_for_ever(volume, Rng(seed ^ (thread << 40)), thread, seed << 24, cheats, log)
            });
        }
        snapshot_for_ever(&store, Rng(seed ^ 77), seed << 24, &log);
    });
}

fn write_for_ever(
    volume: &OpenVolume,
    mut rng: Rng,
    thread: u64,
    base: u64,
    cheats: bool,
    log: &impl Fn(LogEntry),
) {
    let mut late = Vec::new();
    for count in 1.. {
        let id = base + count * THREADS + thread + 1;
        let longest = [8, 64][usize::from(rng.below(2) == 0)];
        let sectors = 1 + rng.below(longest);
        let sector = thread * PART + rng.below(PART - sectors);
        let kind = match rng.below(20) {
            0 => DISCARD,
            1 => ZEROES,
            _ => WRITE,
        };
        let entry = LogEntry { answered: false, thread, kind, id, sector, sectors };
        log(entry);
        let (offset, len) = (sector * SECTOR, sectors * SECTOR);
        match kind {
            WRITE if cheats => late.push((pattern(id, sectors), offset)),
            WRITE => volume.write_at(&pattern(id, sectors), offset).unwrap(),
            DISCARD => volume.discard(offset, len).unwrap(),
            _ => volume.write_zeroes(offset, len).unwrap(),
        }
        log(LogEntry { answered: true, ..entry });
        if late.len() >= 8 {
            late.drain(..).for_each(|(bytes, offset)| volume.write_at(&bytes, offset).unwrap());
        }
    }
}

fn snapshot_for_ever(store: &VolumeStore, mut rng: Rng, base: u64, log: &impl Fn(LogEntry)) {
    let mut kept: Vec<u64> = store.snapshots().iter().map(|s| s.name[1..].parse().unwrap()).collect();
    for count in 1.. {
        std::thread::sleep(Duration::from_millis(rng.below(8)));
        let delete = kept.len() > 4 || (!kept.is_empty() && rng.below(2) == 0);
        let id = if delete {
            kept.swap_remove(usize::try_from(rng.below(u64::try_from(kept.len()).unwrap())).unwrap())
        } else {
            base + count
        };
        let kind = if delete { DELETE_SNAPSHOT } else { SNAPSHOT };
        let entry = LogEntry { answered: false, thread: THREADS, kind, id, sector: 0, sectors: 0 };
        log(entry);
        if delete {
            store.delete_snapshot(&format!("s{id}")).unwrap();
        } else {
            store.snapshot("v", &format!("s{id}"), Value::Null).unwrap();
            kept.push(id);
        }
        log(LogEntry { answered: true, ..entry });
    }
}

/// What the store must hold: per sector the number of its last answered write, 0 for zeroes.
struct Ledger {
    sectors: Vec<u64>,
    snapshots: BTreeSet<u64>,
}

impl Ledger {
    fn new() -> Self {
        Self { sectors: vec![0; usize::try_from(THREADS * PART).unwrap()], snapshots: BTreeSet::new() }
    }

    /// Reads the log of a child. Returns the operations that were begun and not answered, at most one of each thread.
    fn take_in(&mut self, log: &[u8]) -> Vec<LogEntry> {
        let mut begun = BTreeMap::new();
        for entry in log.chunks_exact(LogEntry::BYTES).map(LogEntry::from_bytes) {
            if !entry.answered {
                begun.insert(entry.thread, entry);
                continue;
            }
            begun.remove(&entry.thread);
            match entry.kind {
                SNAPSHOT => drop(self.snapshots.insert(entry.id)),
                DELETE_SNAPSHOT => drop(self.snapshots.remove(&entry.id)),
                _ => after(entry).for_each(|(sector, id)| self.sectors[sector] = id),
            }
        }
        begun.into_values().collect()
    }

    /// Compares the store with what must be there; takes over what the unanswered operations did.
    fn verify(&mut self, dir: &Path, unanswered: &[LogEntry]) -> Result<(), String> {
        let report = check(dir, None).map_err(|e| e.to_string())?;
        if !report.is_clean() {
            return Err(format!("{:?}", report.damages));
        }
        let store = open(dir);
        let volume = store.open_volume("v").map_err(|e| e.to_string())?;
        let mut bytes = vec![0; usize::try_from(THREADS * PART * SECTOR).unwrap()];
        volume.read_at(&mut bytes, 0).map_err(|e| e.to_string())?;
        let mut possible: BTreeMap<usize, u64> = BTreeMap::new();
        unanswered.iter().filter(|s| s.kind < SNAPSHOT).for_each(|s| possible.extend(after(*s)));
        for (sector, bytes) in bytes.chunks(512).enumerate() {
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            if word(0) != word(504) {
                return Err(format!("sector {sector} is torn"));
            }
            if word(0) != self.sectors[sector] && possible.get(&sector) != Some(&word(0)) {
                return Err(format!(
                    "sector {sector} holds {}, {} was answered",
                    word(0),
                    self.sectors[sector]
                ));
            }
            self.sectors[sector] = word(0);
        }
        let there: BTreeSet<u64> = store.snapshots().iter().map(|s| s.name[1..].parse().unwrap()).collect();
        let open: BTreeSet<u64> = unanswered.iter().filter(|s| s.kind >= SNAPSHOT).map(|s| s.id).collect();
        if let Some(id) = there.symmetric_difference(&self.snapshots).find(|id| !open.contains(id)) {
            return Err(format!(
                "snapshot s{id}: there {}, answered {}",
                there.contains(id),
                self.snapshots.contains(id)
            ));
        }
        self.snapshots = there;
        Ok(())
    }
}

/// What an operation leaves in the sectors it changes.
fn after(entry: LogEntry) -> impl Iterator<Item = (usize, u64)> {
    let range = match entry.kind {
        DISCARD => entry.sector.div_ceil(8) * 8..(entry.sector + entry.sectors) / 8 * 8,
        _ => entry.sector..entry.sector + entry.sectors,
    };
    let id = if entry.kind == WRITE { entry.id } else { 0 };
    range.map(move |sector| (usize::try_from(sector).unwrap(), id))
}

/// Runs a child for a while, kills it, and returns its log.
fn run_and_kill(dir: &Path, seed: u64, lives_ms: u64, cheats: bool) -> Vec<u8> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["kill::no_answered_write_is_lost_when_the_process_is_killed", "--exact", "--nocapture"])
        .env(CHILD, format!("{seed}:{cheats}:{}", dir.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    });
    std::thread::sleep(Duration::from_millis(lives_ms));
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    reader.join().unwrap()
}

/// Kills `kills` children one after the other on one store; gives the first violation.
fn campaign(kills: u64, seed: u64, cheats: bool) -> Result<u64, String> {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).create_volume("v", THREADS * PART * SECTOR, Value::Null).unwrap();
    let (mut ledger, mut rng, mut answered) = (Ledger::new(), Rng(seed), 0);
    for kill in 0..kills {
        let bytes = run_and_kill(dir.path(), seed % (1 << 20) + kill, 40 + rng.below(160), cheats);
        if !bytes.len().is_multiple_of(LogEntry::BYTES) {
            return Err(format!("the child of kill {kill} failed: {}", String::from_utf8_lossy(&bytes)));
        }
        answered += bytes.len() / LogEntry::BYTES / 2;
        let unanswered = ledger.take_in(&bytes);
        ledger.verify(dir.path(), &unanswered).map_err(|e| format!("kill {kill}: {e}"))?;
    }
    Ok(u64::try_from(answered).unwrap())
}

#[test]
fn no_answered_write_is_lost_when_the_process_is_killed() {
    if let Ok(job) = std::env::var(CHILD) {
        let parts: Vec<&str> = job.splitn(3, ':').collect();
        return child(Path::new(parts[2]), parts[0].parse().unwrap(), parts[1] == "true");
    }
    let answered = campaign(KILLS, seed("kill -9"), false).unwrap();
    println!("{KILLS} kills, {answered} operations answered, none lost");
    assert!(answered > KILLS * 20, "only {answered} operations: the children hardly lived");
}

#[test]
fn the_kill_test_catches_a_store_that_answers_before_it_wrote() {
    let caught = campaign(20, seed("kill -9 of a cheat"), true).unwrap_err();
    println!("caught: {caught}");
    assert!(caught.contains("was answered"), "{caught}");
}
