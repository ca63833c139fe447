//! Binary log events as they are in a file (MySQL's `libs/mysql/binlog/event`, MariaDB's `log_event.h`).

use super::Meaning;

/// Bytes of an event's header: time, kind, server, length, end, flags.
const HEADER: usize = 19;
/// Bytes of a checksum.
const CHECKSUM: usize = 4;
/// Events longer than this are not looked for when a place to begin is: a guard against noise.
const LONGEST: usize = 1 << 30;

const QUERY: u8 = 2;
const STOP: u8 = 3;
const ROTATE: u8 = 4;
pub(super) const FORMAT_DESCRIPTION: u8 = 15;
const XID: u8 = 16;
const ROWS_QUERY: u8 = 29;
const GTID: u8 = 33;
const ANONYMOUS_GTID: u8 = 34;
/// MySQL: `XA PREPARE`, which is no commit.
const XA_PREPARE: u8 = 38;
/// MySQL: a whole transaction, compressed.
const TRANSACTION_PAYLOAD: u8 = 40;
const MARIADB_ANNOTATE_ROWS: u8 = 160;
const MARIADB_GTID: u8 = 162;
const MARIADB_START_ENCRYPTION: u8 = 164;
/// MariaDB: compressed statements and rows.
const MARIADB_COMPRESSED: std::ops::RangeInclusive<u8> = 165..=171;

/// A whole event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) kind: u8,
    body: &'a [u8],
    /// Bytes in the file.
    pub(super) len: usize,
}

impl<'a> Event<'a> {
    /// The event at the start of `bytes`, which are at `at` in their file; none where there is no whole
    /// one, or its checksum does not fit.
    pub(super) fn read(bytes: &'a [u8], at: u64, checksums: bool) -> Option<Self> {
        let header = bytes.get(..HEADER)?;
        let number = |from: usize| {
            header.get(from..from + 4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        };
        let (kind, len, end) = (header[4], usize::try_from(number(9)?).ok()?, number(13)?);
        let tail = if checksums { CHECKSUM } else { 0 };
        if !(HEADER + tail..LONGEST).contains(&len) {
            return None;
        }
        // MariaDB from 11.4 on leaves the end out inside of a transaction. Files of more than 4 GiB are not
        // made: their events' ends would not fit.
        if end != 0 && u64::from(end) != at + u64::try_from(len).ok()? {
            return None;
        }
        let event = bytes.get(..len)?;
        // The one at the start of a file is written anew when the file is closed.
        if checksums && kind != FORMAT_DESCRIPTION {
            let (covered, sum) = event.split_at(len - CHECKSUM);
            if crc32fast::hash(covered).to_le_bytes() != sum {
                return None;
            }
        }
        Some(Self { kind, body: &event[HEADER..len - tail], len })
    }

    /// Whether it is the last that a server writes into a file.
    pub(super) const fn ends_file(&self) -> bool {
        matches!(self.kind, STOP | ROTATE)
    }

    /// What it means; an error for what is not understood here.
    pub(super) fn meaning(&self) -> Result<Meaning<'a>, &'static str> {
        let meaning = match self.kind {
            QUERY => self.statement().map(Meaning::of_statement),
            XID => Some(Meaning::Commit),
            GTID | ANONYMOUS_GTID | MARIADB_GTID => Some(Meaning::Begin),
            // A byte of length is first, which is too small for a long one.
            ROWS_QUERY => self.body.get(1..).and_then(text).map(Meaning::Statement),
            MARIADB_ANNOTATE_ROWS => text(self.body).map(Meaning::Statement),
            XA_PREPARE => return Err("it holds XA transactions"),
            TRANSACTION_PAYLOAD => return Err("its transactions are compressed"),
            MARIADB_START_ENCRYPTION => return Err("it is encrypted"),
            kind if MARIADB_COMPRESSED.contains(&kind) => return Err("its events are compressed"),
            _ => None,
        };
        Ok(meaning.unwrap_or(Meaning::Other))
    }

    /// The text of a statement's event.
    fn statement(&self) -> Option<&'a str> {
        // Thread 4, time 4, length of the database's name 1, error 2, length of what follows 2.
        let database = usize::from(*self.body.get(8)?);
        let status = usize::from(u16::from_le_bytes([*self.body.get(11)?, *self.body.get(12)?]));
        text(self.body.get(13 + status + database + 1..)?)
    }
}

/// Text; none where it is not, which no mark is.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Whether the events of a file carry checksums, by its first event.
pub(super) fn has_checksums(description: &[u8]) -> Option<bool> {
    let len = u32::from_le_bytes([description[9], description[10], description[11], description[12]]);
    // The last byte before the event's own checksum names the algorithm: 0 none, 1 CRC-32.
    let at = usize::try_from(len).ok()?.checked_sub(CHECKSUM + 1)?;
    Some(*description.get(at)? == 1)
}
