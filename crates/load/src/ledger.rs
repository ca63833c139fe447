//! The ledger: every acknowledged commit, written before its client sends anything further.
//!
//! A file holds a header of 32 bytes and then records of 24 bytes, all numbers little-endian:
//!
//! | header | bytes | | record | bytes |
//! |---|---|---|---|---|
//! | `EBBLEDG1` | 8 | | client, from 0 | 4 |
//! | the run's seed | 8 | | sequence number of the client's commit, from 1 | 8 |
//! | start of the run, ns since 1970 | 8 | | time of the acknowledgement, ns since the start | 8 |
//! | number of clients | 4 | | CRC-32C of the 20 bytes before | 4 |
//! | CRC-32C of the 28 bytes before | 4 | | | |
//!
//! Records of one client are in order; those of different clients may be out of order by what their
//! event loops were apart. The file is not flushed to disk: it is to survive the server's end, not
//! that of the machine that runs the load.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ebbtide_workload::LEDGER_TABLE;
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::wire::Session;

const MAGIC: &[u8; 8] = b"EBBLEDG1";
const HEADER: usize = 32;
const RECORD: usize = 24;

/// An open ledger that takes records from any thread.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    path: PathBuf,
    records: AtomicU64,
}

impl Writer {
    pub(crate) fn create(path: &Path, seed: u64, clients: u32) -> Result<Self, LoadError> {
        let fail = |source| LoadError::File { path: path.to_owned(), source };
        // Appending makes one write of a whole record atomic among the event loops.
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(fail)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&seed.to_le_bytes());
        header.extend_from_slice(&started.to_le_bytes());
        header.extend_from_slice(&clients.to_le_bytes());
        let sum = crc32c::crc32c(&header);
        header.extend_from_slice(&sum.to_le_bytes());
        (&file).write_all(&header).map_err(fail)?;
        Ok(Self { file, path: path.to_owned(), records: AtomicU64::new(0) })
    }

    pub(crate) fn record(&self, client: u32, sequence: u64, at_ns: u64) -> Result<(), LoadError> {
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&client.to_le_bytes());
        record[4..12].copy_from_slice(&sequence.to_le_bytes());
        record[12..20].copy_from_slice(&at_ns.to_le_bytes());
        let sum = crc32c::crc32c(&record[..20]);
        record[20..].copy_from_slice(&sum.to_le_bytes());
        let written = (&self.file).write_all(&record);
        written.map_err(|source| LoadError::File { path: self.path.clone(), source })?;
        self.records.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// How many records were written, those of a warm-up included.
    pub(crate) fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }
}

/// One acknowledged commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The client, from 0.
    pub client: u32,
    /// The client's commits are numbered from 1.
    pub sequence: u64,
    /// When it was acknowledged, ns since the run's start.
    pub at_ns: u64,
}

/// A ledger that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The run's seed.
    pub seed: u64,
    /// The run's start, ns since 1970.
    pub started_unix_ns: u64,
    /// Number of clients.
    pub clients: u32,
    /// The commits, in the order in which they were written.
    pub commits: Vec<Commit>,
    /// Bytes at the end that are no whole record: the load itself was killed while it wrote.
    pub torn_bytes: u64,
}

/// A ledger that cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Not a ledger.
    #[error("{} is no ledger: its header does not fit", path.display())]
    NoLedger {
        /// The file.
        path: PathBuf,
    },
    /// A record in the middle is damaged.
    #[error("{}: the record at byte {at} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        at: usize,
    },
    /// The server.
    #[error(transparent)]
    Server(#[from] LoadError),
}

/// A client whose acknowledged commits the server no longer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The client.
    pub client: u32,
    /// Its last acknowledged commit.
    pub acknowledged: u64,
    /// The last commit that the server has.
    pub recovered: u64,
}

impl Ledger {
    /// Reads a ledger.
    ///
    /// # Errors
    /// No file, another kind of file, or a damaged record before the last one.
    pub fn read(path: &Path) -> Result<Self, LedgerError> {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(|source| LedgerError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&bytes, path)
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self, LedgerError> {
        let header = bytes.get(..HEADER).filter(|header| {
            header.starts_with(MAGIC) && crc32c::crc32c(&header[..28]) == word(&header[28..])
        });
        let header = header.ok_or_else(|| LedgerError::NoLedger { path: path.to_owned() })?;
        let mut ledger = Self {
            seed: long(&header[8..]),
            started_unix_ns: long(&header[16..]),
            clients: word(&header[24..]),
            commits: Vec::with_capacity((bytes.len() - HEADER) / RECORD),
            torn_bytes: 0,
        };
        for (at, record) in bytes[HEADER..].chunks(RECORD).enumerate() {
            let at = HEADER + at * RECORD;
            let whole = record.len() == RECORD && crc32c::crc32c(&record[..20]) == word(&record[20..]);
            if whole {
                let (client, sequence, at_ns) = (word(record), long(&record[4..]), long(&record[12..]));
                ledger.commits.push(Commit { client, sequence, at_ns });
            } else if at + record.len() == bytes.len() {
                ledger.torn_bytes = u64::try_from(record.len()).expect("at most a record");
            } else {
                return Err(LedgerError::Damaged { path: path.to_owned(), at });
            }
        }
        Ok(ledger)
    }

    /// The last acknowledged commit of each client that has one.
    #[must_use]
    pub fn last_by_client(&self) -> BTreeMap<u32, u64> {
        let mut last = BTreeMap::new();
        for commit in &self.commits {
            let known = last.entry(commit.client).or_insert(0);
            *known = commit.sequence.max(*known);
        }
        last
    }

    /// Compares with the marks that the run left in the server ([`crate::LedgerOptions::marks`]).
    /// Empty where every acknowledged commit is there.
    ///
    /// # Errors
    /// The server's, such as 1146 where the run left no marks.
    pub fn lost(&self, session: &mut Session) -> Result<Vec<Lost>, LedgerError> {
        let rows = session.rows(&format!("SELECT client, seq FROM {LEDGER_TABLE}"))?;
        let number = |value: &Option<String>| value.as_deref().and_then(|text| text.parse::<u64>().ok());
        let recovered: BTreeMap<u64, u64> =
            rows.iter().filter_map(|row| Some((number(row.first()?)?, number(row.get(1)?)?))).collect();
        let lost = self.last_by_client().into_iter().filter_map(|(client, acknowledged)| {
            let recovered = recovered.get(&u64::from(client)).copied().unwrap_or(0);
            (recovered < acknowledged).then_some(Lost { client, acknowledged, recovered })
        });
        Ok(lost.collect())
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn long(bytes: &[u8]) -> u64 {
    u64::from(word(bytes)) | u64::from(word(&bytes[4..])) << 32
}

/// Creates the marks' table and sets every client's mark to 0.
pub(crate) fn set_marks(session: &mut Session, clients: u32, engine: &str) -> Result<(), LoadError> {
    session.execute(&format!(
        "CREATE TABLE IF NOT EXISTS {LEDGER_TABLE} (client INT NOT NULL PRIMARY KEY, \
         seq BIGINT UNSIGNED NOT NULL) ENGINE = {engine}"
    ))?;
    session.execute(&format!("DELETE FROM {LEDGER_TABLE}"))?;
    let rows: Vec<String> = (0..clients).map(|client| format!("({client},0)")).collect();
    session.execute(&format!("INSERT INTO {LEDGER_TABLE} (client, seq) VALUES {}", rows.join(","))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(commits: &[Commit]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.ledger");
        let writer = Writer::create(&path, 77, 2).unwrap();
        for commit in commits {
            writer.record(commit.client, commit.sequence, commit.at_ns).unwrap();
        }
        (dir, path)
    }

    const COMMITS: [Commit; 3] = [
        Commit { client: 0, sequence: 1, at_ns: 5 },
        Commit { client: 1, sequence: 1, at_ns: 6 },
        Commit { client: 0, sequence: 2, at_ns: 1 << 40 },
    ];

    #[test]
    fn a_ledger_is_read_as_it_was_written() {
        let (_dir, path) = written(&COMMITS);
        let ledger = Ledger::read(&path).unwrap();
        assert_eq!(ledger.commits, COMMITS);
        assert_eq!((ledger.seed, ledger.clients, ledger.torn_bytes), (77, 2, 0));
        assert_eq!(ledger.last_by_client(), BTreeMap::from([(0, 2), (1, 1)]));
    }

    #[test]
    fn a_torn_last_record_is_left_out_and_counted() {
        let (_dir, path) = written(&COMMITS);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
        let ledger = Ledger::read(&path).unwrap();
        assert_eq!(ledger.commits, COMMITS[..2]);
        assert_eq!(ledger.torn_bytes, 19);
    }

    #[test]
    fn a_damaged_record_in_the_middle_and_a_foreign_file_are_refused() {
        let (_dir, path) = written(&COMMITS);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[HEADER + 3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(Ledger::read(&path), Err(LedgerError::Damaged { at: HEADER, .. })));
        std::fs::write(&path, b"hello").unwrap();
        assert!(matches!(Ledger::read(&path), Err(LedgerError::NoLedger { .. })));
    }

    #[test]
    fn an_existing_ledger_is_never_written_over() {
        let (_dir, path) = written(&COMMITS);
        assert!(Writer::create(&path, 1, 1).is_err());
        assert_eq!(Ledger::read(&path).unwrap().commits.len(), 3);
    }
}
