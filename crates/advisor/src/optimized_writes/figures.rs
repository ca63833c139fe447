//! What the judgement is made from.

use ebbtide_catalog::{Resolved, Spec};
use serde::Serialize;

/// What a server did over an interval, a second where nothing else is said. None where it does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Workload {
    /// Length of the interval, s; over 0.
    pub seconds: f64,
    /// Pages written (`Innodb_pages_written`).
    pub page_writes: f64,
    /// Pages written to the doublewrite buffer (`Innodb_dblwr_pages_written`).
    pub doublewrite_pages: f64,
    /// Batches of them (`Innodb_dblwr_writes`).
    pub doublewrite_batches: f64,
    /// Pages read (`Innodb_pages_read`).
    pub page_reads: f64,
    /// Redo bytes (`Innodb_os_log_written`).
    pub redo_bytes: f64,
    /// Writes of the redo log that reached the volume, at least: its syncs where the server counts them, as
    /// MySQL writes it through the page cache, else its writes.
    pub redo_writes: Option<f64>,
    /// Bytes of the binary log; none also without one.
    pub binlog_bytes: Option<f64>,
    /// COMMIT statements; transactions of one statement are not in it.
    pub commits: Option<f64>,
    /// Statements that change rows.
    pub write_statements: f64,
    /// SELECT statements.
    pub read_statements: f64,
    /// Waits for a free page of the buffer pool: a thread stood until pages were written.
    pub free_page_waits: Option<f64>,
    /// Mean number of threads in the doublewrite files' I/O.
    pub doublewrite_wait: Option<f64>,
    /// Mean number of threads that waited for the doublewrite buffer's mutex.
    pub doublewrite_mutex_wait: Option<f64>,
}

/// The setting `innodb_doublewrite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doublewrite {
    /// Every page is written twice (MariaDB's FAST and MySQL's DETECT_AND_RECOVER too).
    On,
    /// MySQL's DETECT_ONLY: what is torn would be known, and could not be mended.
    DetectOnly,
    /// No page is.
    Off,
}

/// What decides whether it could be done safely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Whether pages are written twice.
    pub doublewrite: Doublewrite,
    /// Bytes of a page (`innodb_page_size`), 4096 to 65536.
    pub page_bytes: u64,
    /// Whether data files go past the page cache; none: the server does not say so in words known here.
    pub direct: Option<bool>,
    /// Whether a page takes its neighbours along when it is written, in one operation with them; none: not known.
    pub flush_neighbors: Option<bool>,
    /// The file system of the data files; none: not known.
    pub files: Option<FileSystem>,
    /// The release of the server; none: not known.
    pub release: Option<Release>,
}

/// The file system that data files lie on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSystem {
    /// Its name, such as `ext4-bigalloc`.
    pub name: String,
    /// Bytes in which it allocates, aligned on the device: a page of this size or less stays in one piece; 0 where it
    /// makes no such promise.
    pub aligned_bytes: u64,
}

/// The release of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Release {
    /// Maker and version, such as `MariaDB 10.11.19`.
    pub name: String,
    /// Whether AWS lists it as one that RDS runs without the doublewrite buffer.
    pub listed: bool,
}

/// The volume below the server, as far as the judgement needs it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Storage {
    /// Its spec, as it was written.
    pub spec: String,
    /// Operations a second that it carries for ever; none: no limit.
    pub iops: Option<f64>,
    /// Bytes a second that it carries for ever; none: no limit.
    pub bytes_s: Option<f64>,
    /// Whether it carries more for a while, on credits.
    pub bursts: bool,
    /// Bytes in a row that count as one operation: 256 KiB on EBS's SSD volumes.
    pub unit_bytes: u64,
    /// Bytes of an aligned write that a power cut leaves wholly old or wholly new.
    pub whole_bytes: u64,
    /// Whether that was said of the volume (`twp=on`), and not only of its type.
    pub whole_is_said: bool,
}

impl Storage {
    /// What a spec says as it was written and resolved; of stripes all together.
    #[must_use]
    pub fn of(written: &Spec, resolved: &Resolved) -> Self {
        let member = &resolved.members[0];
        let members = resolved.members.len() as f64;
        let unit = member.durability.atomic_unit.bytes();
        // A page that lies on two members is two writes.
        let striped = resolved.members.len() > 1;
        let whole_bytes = if striped { common_power(unit, resolved.chunk_bytes) } else { unit };
        Self {
            spec: written.to_string(),
            iops: member.iops.map(|rate| rate.rate as f64 * members),
            bytes_s: member.throughput.map(|rate| rate.rate as f64 * members),
            bursts: member.iops.iter().chain(&member.throughput).any(|rate| rate.credits > 0),
            unit_bytes: u64::from(member.accounting.unit_bytes),
            whole_bytes,
            whole_is_said: written.volume.twp == Some(true),
        }
    }
}

/// The largest part of a unit, halved again and again, that divides a chunk.
fn common_power(unit: u64, chunk: u64) -> u64 {
    let mut part = unit;
    while !chunk.is_multiple_of(part) {
        part /= 2;
    }
    part
}
