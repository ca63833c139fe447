//! Which server is modelled, and its settings with the defaults of that server.

use std::fmt;
use std::str::FromStr;

use ebbtide_volume::{GIB, KIB, MIB};
use ebbtide_workload::log_bytes::LogMaker;
use serde::{Deserialize, Serialize};

use super::memory::Memory;

/// A server whose InnoDB differs from the others in how it writes pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Flavour {
    /// MySQL and Percona Server 5.7.
    #[serde(rename = "mysql-5.7")]
    MySql57,
    /// MySQL and Percona Server 8.0.
    #[serde(rename = "mysql-8.0")]
    MySql80,
    /// MySQL 8.4 and 9.x.
    #[serde(rename = "mysql-8.4")]
    MySql84,
    /// MariaDB 10.5 to 10.11.
    #[serde(rename = "mariadb-10.5")]
    MariaDb105,
    /// MariaDB 11.x.
    #[serde(rename = "mariadb-11")]
    MariaDb11,
}

/// A text that names no flavour.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no server that the model knows: expected one of {names}", names = Flavour::names())]
pub struct UnknownFlavour(String);

impl Flavour {
    /// All of them, with their names in a profile.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::MySql57, "mysql-5.7"),
        (Self::MySql80, "mysql-8.0"),
        (Self::MySql84, "mysql-8.4"),
        (Self::MariaDb105, "mariadb-10.5"),
        (Self::MariaDb11, "mariadb-11"),
    ];

    /// Its name in a profile.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(flavour, _)| *flavour == self).map_or("", |(_, name)| name)
    }

    /// All names, as a sentence's list.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(|(_, name)| name).join(", ")
    }

    /// Whether it is a MariaDB.
    #[must_use]
    pub const fn is_mariadb(self) -> bool {
        matches!(self, Self::MariaDb105 | Self::MariaDb11)
    }

    /// Whose logs it writes.
    #[must_use]
    pub const fn log_maker(self) -> LogMaker {
        if self.is_mariadb() { LogMaker::MariaDb } else { LogMaker::MySql }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Flavour {
    type Err = UnknownFlavour;

    fn from_str(text: &str) -> Result<Self, UnknownFlavour> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(flavour, _)| *flavour).ok_or_else(|| UnknownFlavour(text.to_owned()))
    }
}

/// The file system under the data directory: what an `fsync` of a growing file adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4: a commit of the journal is two small writes.
    #[default]
    Ext4,
    /// XFS: one write to the log.
    Xfs,
}

impl FileSystem {
    /// Small writes that an `fsync` of a file that has grown adds.
    #[must_use]
    pub const fn journal_writes(self) -> u32 {
        match self {
            Self::Ext4 => 2,
            Self::Xfs => 1,
        }
    }
}

/// The settings of a server that decide its I/O. [`Settings::of`] has the defaults of a flavour.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The server.
    pub flavour: Flavour,
    /// `innodb_buffer_pool_size`, bytes.
    pub buffer_pool_bytes: u64,
    /// `innodb_buffer_pool_instances`; 1 on MariaDB.
    pub buffer_pool_instances: u32,
    /// `innodb_page_size`, bytes.
    pub page_bytes: u32,
    /// `innodb_io_capacity`, pages a second.
    pub io_capacity: u32,
    /// `innodb_io_capacity_max`, pages a second.
    pub io_capacity_max: u32,
    /// `innodb_max_dirty_pages_pct`, percent.
    pub max_dirty_pages_pct: f64,
    /// `innodb_max_dirty_pages_pct_lwm`, percent; 0 turns it off.
    pub max_dirty_pages_pct_lwm: f64,
    /// `innodb_adaptive_flushing`.
    pub adaptive_flushing: bool,
    /// `innodb_adaptive_flushing_lwm`, percent of the redo capacity.
    pub adaptive_flushing_lwm: f64,
    /// `innodb_flushing_avg_loops`.
    pub flushing_avg_loops: u32,
    /// `innodb_flush_sync`.
    pub flush_sync: bool,
    /// `innodb_idle_flush_pct`, percent of `io_capacity` that MySQL writes in a second without a change, 0 to 100. MariaDB
    /// does not go by it.
    pub idle_flush_pct: u32,
    /// `innodb_lru_scan_depth`, pages of each instance.
    pub lru_scan_depth: u32,
    /// `innodb_flush_neighbors`: 0, 1 or 2. The model does not write neighbours; it is here to be said.
    pub flush_neighbors: u8,
    /// `innodb_doublewrite`.
    pub doublewrite: bool,
    /// `innodb_doublewrite = fast`, of MariaDB from 11.0.6 on: the data files are not flushed after a batch.
    pub doublewrite_fast: bool,
    /// Pages of a doublewrite batch.
    pub doublewrite_pages: u32,
    /// Doublewrite batches that are written at the same time. The next one waits until the pages of one of them are in
    /// the data files: with one batch, the page cleaner writes that many pages in the time of both writes and their flushes.
    pub doublewrite_batches: u32,
    /// Whether the doublewrite file and the data files are flushed after each batch (`innodb_flush_method`).
    pub flush_after_batch: bool,
    /// Whether data files go through the page cache of the operating system (`innodb_flush_method`). The machine's memory
    /// decides how much it holds.
    pub buffered: bool,
    /// `innodb_redo_log_capacity`, or the size of all redo log files, bytes.
    pub redo_capacity_bytes: u64,
    /// `innodb_thread_concurrency`.
    pub thread_concurrency: u32,
    /// `innodb_flush_log_at_trx_commit`: 0, 1 or 2.
    pub flush_log_at_commit: u8,
    /// Whether there is a binary log.
    pub log_bin: bool,
    /// `sync_binlog`: groups between two flushes; 0 leaves it to the file system.
    pub sync_binlog: u32,
    /// `binlog_group_commit_sync_delay`, us; MariaDB's `binlog_commit_wait_usec`.
    pub group_commit_delay_us: u64,
    /// The file system.
    pub file_system: FileSystem,
    /// `innodb_old_blocks_pct`: the part of the LRU list behind its midpoint, percent.
    pub old_blocks_pct: f64,
    /// Of changes to pages of secondary indexes that are not in the pool, the share that the change buffer keeps, 0 to 1
    /// (`innodb_change_buffering`: 1 is `all`).
    pub change_buffering: f64,
    /// `innodb_purge_threads`: reads of purge at the same time.
    pub purge_threads: u32,
    /// `innodb_purge_batch_size`: undo logs that purge takes before those before them are done.
    pub purge_batch: u32,
}

impl Settings {
    /// The defaults of a server with a buffer pool of so many bytes.
    #[must_use]
    pub fn of(flavour: Flavour, buffer_pool_bytes: u64) -> Self {
        let instances = match flavour {
            _ if flavour.is_mariadb() || buffer_pool_bytes < GIB => 1,
            _ => 8,
        };
        let base = Self {
            flavour,
            buffer_pool_bytes,
            buffer_pool_instances: instances,
            page_bytes: u32::try_from(16 * KIB).expect("16 KiB"),
            io_capacity: 200,
            io_capacity_max: 2_000,
            max_dirty_pages_pct: 90.0,
            max_dirty_pages_pct_lwm: 10.0,
            adaptive_flushing: true,
            adaptive_flushing_lwm: 10.0,
            flushing_avg_loops: 30,
            flush_sync: true,
            idle_flush_pct: 100,
            lru_scan_depth: 1_024,
            flush_neighbors: 0,
            doublewrite: true,
            doublewrite_fast: false,
            doublewrite_pages: 4,
            doublewrite_batches: 4.max(2 * instances),
            flush_after_batch: true,
            buffered: false,
            redo_capacity_bytes: 100 * MIB,
            thread_concurrency: 0,
            flush_log_at_commit: 1,
            log_bin: true,
            sync_binlog: 1,
            group_commit_delay_us: 0,
            file_system: FileSystem::default(),
            old_blocks_pct: 37.0,
            change_buffering: 1.0,
            purge_threads: 4,
            purge_batch: 300,
        };
        base.with_defaults_of(flavour)
    }

    fn with_defaults_of(self, flavour: Flavour) -> Self {
        match flavour {
            Flavour::MySql57 => Self {
                max_dirty_pages_pct: 75.0,
                max_dirty_pages_pct_lwm: 0.0,
                flush_neighbors: 1,
                doublewrite_pages: 120,
                doublewrite_batches: 1,
                redo_capacity_bytes: 96 * MIB,
                log_bin: false,
                buffered: true,
                ..self
            },
            Flavour::MySql80 => Self { buffered: true, ..self },
            Flavour::MySql84 => Self {
                io_capacity: 10_000,
                io_capacity_max: 20_000,
                doublewrite_pages: 128,
                flush_after_batch: false,
                change_buffering: 0.0,
                // Four on machines with more than 16 processors.
                purge_threads: 1,
                ..self
            },
            Flavour::MariaDb105 | Flavour::MariaDb11 => Self {
                max_dirty_pages_pct_lwm: 0.0,
                lru_scan_depth: 1_536,
                flush_neighbors: 1,
                // buf0dblwr.cc: of two buffers of 128 pages one is filled while the other is written.
                doublewrite_pages: 128,
                doublewrite_batches: 1,
                redo_capacity_bytes: 96 * MIB,
                log_bin: false,
                sync_binlog: 0,
                // Off from 10.5.15 on, and gone in 11.0.
                change_buffering: 0.0,
                purge_batch: 127,
                ..self
            },
        }
    }

    /// What these settings do and the model does not, for people; None where it has all. MariaDB writes neighbours on volumes that
    /// report that they are rotating disks, and nowhere else. Without a machine's memory the model has no page cache.
    #[must_use]
    pub fn not_modelled(&self, rotating: bool, memory: Option<Memory>) -> Option<String> {
        let writes = self.flush_neighbors > 0 && (rotating || !self.flavour.is_mariadb());
        let neighbours = writes.then(|| {
            format!(
                "innodb_flush_neighbors = {} writes dirty neighbours with a page, which the model does not: where points have no pages \
                 written, there are more than predicted",
                self.flush_neighbors
            )
        });
        let cache = (self.buffered && memory.is_none()).then(|| {
            "innodb_flush_method keeps data files in the page cache, whose size is not known: pages that are read from there need \
             no I/O, so that the server may do more than predicted; machine.memory of the profile gives it a size"
                .to_owned()
        });
        let all: Vec<String> = neighbours.into_iter().chain(cache).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Bytes of data files that the page cache of a machine holds; None where data files do not go through it, or the memory is
    /// not known.
    #[must_use]
    pub fn page_cache_bytes(&self, memory: Option<Memory>) -> Option<f64> {
        let memory = memory.filter(|_| self.buffered)?;
        Some(memory.page_cache_bytes(self.buffer_pool_bytes))
    }

    /// Pages of the buffer pool that hold data: 4% go to control blocks, the adaptive hash index and lock heaps.
    #[must_use]
    pub fn pool_pages(&self) -> f64 {
        self.buffer_pool_bytes as f64 / f64::from(self.page_bytes) * 0.96
    }

    /// Pages of a batch of page writes, and batches that are written at the same time. Without doublewrite nothing but the
    /// slots of asynchronous writes limits them: four threads with 256 each.
    #[must_use]
    pub const fn write_batches(&self) -> (u32, u32) {
        if self.doublewrite { (self.doublewrite_pages, self.doublewrite_batches) } else { (64, 4 * 256 / 64) }
    }

    /// Free pages that the page cleaner keeps.
    #[must_use]
    pub fn free_target(&self) -> u64 {
        u64::from(self.lru_scan_depth) * u64::from(self.buffer_pool_instances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flavour_is_found_by_its_name() {
        for (flavour, name) in Flavour::ALL {
            assert_eq!(name.parse(), Ok(flavour));
        }
        let error = "mysql-6".parse::<Flavour>().unwrap_err().to_string();
        assert!(error.contains("'mysql-6'") && error.contains("mariadb-11"), "{error}");
    }

    #[test]
    fn the_flavours_have_the_defaults_of_their_servers() {
        let of = |flavour| Settings::of(flavour, 8 * GIB);
        assert_eq!((of(Flavour::MySql84).io_capacity, of(Flavour::MySql80).io_capacity), (10_000, 200));
        assert_eq!(of(Flavour::MySql57).max_dirty_pages_pct, 75.0);
        let mariadb = of(Flavour::MariaDb11);
        assert_eq!((mariadb.lru_scan_depth, mariadb.buffer_pool_instances), (1_536, 1));
        assert_eq!(mariadb.max_dirty_pages_pct_lwm, 0.0);
        let said = |flavour, rotating| of(flavour).not_modelled(rotating, None).is_some();
        assert!(said(Flavour::MySql57, false) && !said(Flavour::MySql84, true));
        assert!(of(Flavour::MySql80).buffered, "fsync is its default");
        assert!(said(Flavour::MariaDb11, true) && !said(Flavour::MariaDb11, false));
        let buffered = Settings { buffered: true, ..of(Flavour::MySql57) };
        let both = buffered.not_modelled(false, None).unwrap();
        assert!(
            both.contains("innodb_flush_neighbors = 1") && both.contains("; innodb_flush_method"),
            "{both}"
        );
        let memory = Memory { bytes: 16 * GIB, other_bytes: 0 };
        let one = buffered.not_modelled(false, Some(memory)).unwrap();
        assert!(!one.contains("innodb_flush_method"), "{one}");
        let direct = of(Flavour::MySql84).page_cache_bytes(Some(memory));
        assert_eq!((direct, buffered.page_cache_bytes(None)), (None, None));
        assert!(buffered.page_cache_bytes(Some(memory)).is_some_and(|bytes| bytes > 7.1 * GIB as f64));
    }
}
