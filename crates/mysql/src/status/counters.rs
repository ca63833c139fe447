//! Counters and gauges of one moment, and the rates between two.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// A server's status at one moment. Counters only grow; gauges say so.
#[derive(Debug, Clone, Copy)]
pub struct Counters {
    /// When it was read.
    pub at: Instant,
}

impl Counters {
    /// What happened between two moments, per second; gauges as they are `after`.
    #[must_use]
    pub fn between(before: &Self, after: &Self) -> Rates {
        let _ = (before, after);
        Rates::default()
    }
}

/// A server over a stretch of time: differences of its status per second, gauges at its end. None where
/// the server does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Checkpoint age, bytes; a gauge.
    pub checkpoint_age: Option<f64>,
    /// The checkpoint age at which the server makes writers wait, bytes; a gauge.
    pub checkpoint_age_max: Option<f64>,
    /// Dirty pages in the buffer pool; a gauge.
    pub dirty_pages: Option<f64>,
    /// Pages of the buffer pool with data; a gauge.
    pub data_pages: Option<f64>,
    /// Page reads from the device a second: misses.
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
    /// Redo syncs a second.
    pub redo_syncs: Option<f64>,
    /// Data file syncs a second.
    pub data_syncs: Option<f64>,
    /// Waits for room in the log buffer a second.
    pub log_waits: Option<f64>,
    /// Doublewrite pages a second.
    pub doublewrite_pages: Option<f64>,
    /// Binary log bytes a second.
    pub binlog_bytes: Option<f64>,
    /// Row lock waits a second.
    pub row_lock_waits: Option<f64>,
    /// Undo records that wait to be purged (history list length); a gauge.
    pub history_length: Option<f64>,
    /// Threads running; a gauge.
    pub threads_running: Option<f64>,
    /// Mean number of threads that waited for the redo log's file I/O, from `performance_schema`; none
    /// where that is off or does not instrument the file.
    pub redo_wait: Option<f64>,
}
