//! What the judgement is made from.

use ebbtide_catalog::{Catalog, Resolved, Spec};
use ebbtide_observe::{Facts, FileSystem, Flavour, Observation, Version};
use serde::Serialize;

use super::error::NotJudged;

/// What a server did over an interval, a second unless stated otherwise. None where it does not report.
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
    /// Waits for a free page of the buffer pool: a thread waited until pages were written.
    pub free_page_waits: Option<f64>,
    /// Mean number of threads in the doublewrite files' I/O.
    pub doublewrite_wait: Option<f64>,
    /// Mean number of threads that waited for the doublewrite buffer's mutex.
    pub doublewrite_mutex_wait: Option<f64>,
}

impl Workload {
    /// What was observed.
    ///
    /// # Errors
    /// Counters that the judgement needs were not seen, which are named.
    pub fn of(observation: &Observation) -> Result<Self, NotJudged> {
        let (Some(rates), Some(span)) = (&observation.rates, observation.span) else {
            return Err(NotJudged::NoRates);
        };
        let mut missing = Vec::new();
        let mut needed = |name, rate: Option<f64>| {
            rate.unwrap_or_else(|| {
                missing.push(name);
                f64::NAN
            })
        };
        let work = Self {
            seconds: span.seconds,
            page_writes: needed("Innodb_pages_written", rates.page_writes),
            doublewrite_pages: needed("Innodb_dblwr_pages_written", rates.doublewrite_pages),
            doublewrite_batches: needed("Innodb_dblwr_writes", rates.doublewrite_batches),
            page_reads: needed("Innodb_pages_read", rates.page_reads),
            redo_bytes: needed("Innodb_os_log_written", rates.redo_bytes),
            redo_writes: rates.redo_syncs.or(rates.redo_writes),
            binlog_bytes: rates.binlog_bytes,
            commits: rates.commits,
            write_statements: needed("Com_insert, Com_update and their kin", rates.write_statements),
            read_statements: needed("Com_select", rates.read_statements),
            free_page_waits: rates.wait_free,
            doublewrite_wait: rates.doublewrite_wait,
            doublewrite_mutex_wait: rates.doublewrite_mutex_wait,
        };
        match (missing.is_empty(), span.restarted) {
            (true, _) => Ok(work),
            // Behind a proxy, whose connection outlives the server.
            (false, true) => Err(NotJudged::Restarted),
            (false, false) => Err(NotJudged::NotCounted { names: missing }),
        }
    }
}

/// The setting `innodb_doublewrite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doublewrite {
    /// Every page is written twice (MariaDB's FAST and MySQL's DETECT_AND_RECOVER too).
    On,
    /// MySQL's DETECT_ONLY: a torn page is detected, and cannot be restored.
    DetectOnly,
    /// No page is.
    Off,
}

/// What decides whether it could be done safely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageWriteSettings {
    /// Whether pages are written twice.
    pub doublewrite: Doublewrite,
    /// Bytes of a page (`innodb_page_size`), 4096 to 65536.
    pub page_bytes: u64,
    /// Whether data files go past the page cache; none: the server does not report it in words known here.
    pub direct: Option<bool>,
    /// Whether a page takes its neighbours along when it is written, in one operation with them; none: not known.
    pub flush_neighbors: Option<bool>,
    /// The file system of the data files; none: not known.
    pub files: Option<FileSystem>,
    /// The release of the server; none: not known.
    pub release: Option<Release>,
}

impl Doublewrite {
    /// What was observed.
    ///
    /// # Errors
    /// The setting was not seen, or is no word of it.
    pub fn of(facts: &Facts) -> Result<Self, NotJudged> {
        let word = facts.doublewrite.as_deref().unwrap_or_default().to_ascii_uppercase();
        match &*word {
            "ON" | "1" | "TRUE" | "FAST" | "DETECT_AND_RECOVER" => Ok(Self::On),
            "DETECT_ONLY" => Ok(Self::DetectOnly),
            "OFF" | "0" | "FALSE" => Ok(Self::Off),
            "" => Err(NotJudged::NoDoublewrite),
            _ => Err(NotJudged::UnknownDoublewrite { word }),
        }
    }
}

impl PageWriteSettings {
    /// What was observed.
    ///
    /// # Errors
    /// The server has no pages that are written twice, or does not report what they are.
    pub fn of(observation: &Observation) -> Result<Self, NotJudged> {
        let facts = observation.facts.as_ref().ok_or(NotJudged::NoFacts)?;
        if let Some(version) = &facts.aurora {
            return Err(NotJudged::Aurora { version: version.clone() });
        }
        let doublewrite = Doublewrite::of(facts)?;
        let page_bytes = facts.page_bytes.filter(|bytes| *bytes > 0).ok_or(NotJudged::NoPageSize)?;
        Ok(Self {
            doublewrite,
            page_bytes,
            direct: facts.direct,
            flush_neighbors: facts.flush_neighbors,
            files: observation.file_system.clone(),
            release: Release::of(facts),
        })
    }
}

/// The release of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Release {
    /// Maker and version, such as `MariaDB 10.11.19`.
    pub name: String,
    /// Whether AWS lists it as one that RDS runs without the doublewrite buffer.
    pub listed: bool,
}

impl Release {
    /// The release that a server reports; None where its version has no such form.
    #[must_use]
    pub fn of(facts: &Facts) -> Option<Self> {
        let version = facts.release()?;
        Some(Self {
            name: format!("{} {version}", facts.flavour),
            listed: runs_without_doublewrite(facts.flavour, version),
        })
    }
}

/// Whether AWS lists the version as one that RDS runs without the doublewrite buffer (RDS User Guide, "Improving
/// write performance with Amazon RDS Optimized Writes" for MySQL and for MariaDB, read in November 2026). Percona
/// Server writes pages as the MySQL of the same version.
pub(super) fn runs_without_doublewrite(flavour: Flavour, version: Version) -> bool {
    let Version { major, minor, patch } = version;
    match (flavour, major, minor) {
        (Flavour::MariaDb, 10, 6) => patch >= 10,
        (Flavour::MariaDb, 10, 11) => patch >= 4,
        (Flavour::MariaDb, 11, 4) => patch >= 3,
        (Flavour::MariaDb, 11, minor) => minor >= 8,
        (Flavour::MariaDb, major, _) => major > 11,
        (Flavour::MySql | Flavour::Percona, 8, 0) => patch >= 30,
        (Flavour::MySql | Flavour::Percona, 8, minor) => minor >= 4,
        (Flavour::MySql | Flavour::Percona, major, _) => major > 8,
    }
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
    /// Whether that was given for the volume (`twp=on`), and not only of its type.
    pub whole_is_said: bool,
}

impl Storage {
    /// The volume that a spec names.
    ///
    /// # Errors
    /// A text that is no spec, what AWS would refuse, and a volume on which an operation takes a whole unit.
    pub fn named(spec: &str, catalog: &Catalog) -> Result<Self, NotJudged> {
        let written = Spec::parse(spec)?;
        let resolved = catalog.resolve(&written)?;
        if resolved.members[0].accounting.whole_units {
            return Err(NotJudged::WholeUnits { spec: spec.to_owned() });
        }
        Ok(Self::of(&written, &resolved))
    }

    /// A spec as it was written and resolved; of stripes all together.
    #[must_use]
    pub fn of(written: &Spec, resolved: &Resolved) -> Self {
        let member = &resolved.members[0];
        let members = resolved.members.len() as f64;
        let unit = member.durability.atomic_unit.bytes();
        // A page that is on two members is two writes.
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
