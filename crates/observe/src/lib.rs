//! What can be known of a server while it runs: plain data, which whoever asks a server fills and whoever judges it
//! reads. Neither has to know the other.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// A server over a stretch of time: differences of its status per second, gauges at its end. None where
/// the server does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// Checkpoint age, bytes; a gauge.
    pub checkpoint_age: Option<f64>,
    /// The checkpoint age at which the server drops everything to flush, bytes; a gauge. MariaDB makes
    /// writers wait there; MySQL a little later.
    pub checkpoint_age_max: Option<f64>,
    /// Dirty pages in the buffer pool; a gauge.
    pub dirty_pages: Option<f64>,
    /// Pages of the buffer pool with data; a gauge.
    pub data_pages: Option<f64>,
    /// Pages read from files a second, those read ahead included.
    pub page_reads: Option<f64>,
    /// Page requests a second.
    pub page_requests: Option<f64>,
    /// Pages written a second.
    pub page_writes: Option<f64>,
    /// Pages written a second because the LRU list needed free ones.
    pub lru_flushed: Option<f64>,
    /// Pages written a second for the checkpoint or the dirty share (flush list), all reasons.
    pub list_flushed: Option<f64>,
    /// Of these, by adaptive flushing.
    pub adaptive_flushed: Option<f64>,
    /// Of these, because the redo log was about to be full.
    pub sync_flushed: Option<f64>,
    /// Pages written a second because their neighbours were.
    pub neighbour_flushed: Option<f64>,
    /// Waits for a free page a second.
    pub wait_free: Option<f64>,
    /// Redo bytes written a second.
    pub redo_bytes: Option<f64>,
    /// Writes of the redo log a second.
    pub redo_writes: Option<f64>,
    /// Syncs of the redo log a second. MariaDB stopped counting them in 10.8.
    pub redo_syncs: Option<f64>,
    /// Mean time of a sync of the redo log, us, from `performance_schema`; none where that is off, without
    /// a sync, and on MariaDB, which does not instrument the redo log.
    pub redo_sync_us: Option<f64>,
    /// Syncs of data files a second: all syncs without the redo log's, where those are counted.
    pub data_syncs: Option<f64>,
    /// Syncs of all of InnoDB's files a second.
    pub syncs: Option<f64>,
    /// Waits for room in the log buffer a second.
    pub log_waits: Option<f64>,
    /// Doublewrite pages a second.
    pub doublewrite_pages: Option<f64>,
    /// Doublewrite batches a second: pages over batches are the pages that share a write.
    pub doublewrite_batches: Option<f64>,
    /// Mean number of threads in the doublewrite files' I/O, from `performance_schema`; none where that is
    /// off, and where the doublewrite buffer is part of a data file (MariaDB, MySQL before 8.0.20).
    pub doublewrite_wait: Option<f64>,
    /// Mean number of threads that wait for the doublewrite buffer's mutex, from `performance_schema`; none
    /// where the server was not told to time it, which is the default.
    pub doublewrite_mutex_wait: Option<f64>,
    /// Bytes a second that InnoDB counts as written. Redo is in it on MySQL, the doublewrite buffer is not
    /// where it has files of its own: compare it between like servers alone.
    pub data_bytes: Option<f64>,
    /// Binary log bytes a second.
    pub binlog_bytes: Option<f64>,
    /// Row lock waits a second.
    pub row_lock_waits: Option<f64>,
    /// Transactions that wait to be purged (history list length); a gauge.
    pub history_length: Option<f64>,
    /// Threads running, the sampler's own not counted; a gauge.
    pub threads_running: Option<f64>,
    /// Mean number of threads in the redo log's file I/O, from `performance_schema`; none where that is
    /// off, and on MariaDB, which does not instrument the redo log. Where one thread writes it (MySQL with
    /// `log_writer_threads` off), it is the share of the second.
    pub redo_wait: Option<f64>,
    /// Mean number of threads in data files' I/O, the server's own included; as above.
    pub data_wait: Option<f64>,
    /// Mean number of threads in the binary log's file I/O; as above.
    pub binlog_wait: Option<f64>,
    /// COMMIT and XA COMMIT a second; statements that commit by themselves are not in it.
    pub commits: Option<f64>,
    /// Statements a second that insert, update, delete, replace or load.
    pub write_statements: Option<f64>,
    /// SELECT statements a second.
    pub read_statements: Option<f64>,
}
