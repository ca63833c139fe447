//! Where servers keep what: names of status variables, of InnoDB's metrics, and of the performance
//! schema's files.
//!
//! Seen on MariaDB 10.11.19, 11.4.5 and 11.8.6, MySQL 8.0.15 and 9.7.4, under load. A name that a version
//! does not have is not answered, and its figure stays none.

use crate::Flavour;

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Figure {
    AdaptiveFlushed,
    BackgroundFlushed,
    BinlogBytes,
    /// Picoseconds that threads spent in the binary log's file I/O.
    BinlogWait,
    CheckpointAge,
    CheckpointAgeMax,
    /// Transactions that a statement ended: COMMIT and XA COMMIT, not autocommit.
    Commits,
    /// Bytes that InnoDB counts as written; what is in it differs, see [`STATUS`].
    DataBytes,
    DataPages,
    DataWait,
    DirtyPages,
    DoublewriteBatches,
    /// Picoseconds that threads waited for the mutex of the doublewrite buffer.
    DoublewriteMutexWait,
    DoublewritePages,
    /// Picoseconds that threads spent in the file I/O of the doublewrite files.
    DoublewriteWait,
    /// Pages flushed for any reason.
    Flushed,
    HistoryLength,
    LogWaits,
    LruFlushed,
    NeighbourFlushed,
    PageReads,
    PageRequests,
    PageWrites,
    ReadStatements,
    RedoBytes,
    /// Syncs of the redo log, and the picoseconds they took, by the performance schema.
    RedoSyncCount,
    RedoSyncTime,
    RedoSyncs,
    RedoWait,
    RedoWrites,
    RowLockWaits,
    SyncFlushed,
    /// Syncs of all of InnoDB's files.
    Syncs,
    ThreadsRunning,
    /// Seconds since the server's start.
    Uptime,
    WaitFree,
    WriteStatements,
}

use Figure as F;

/// Variables of SHOW GLOBAL STATUS; those of one figure are added up.
///
/// `Innodb_data_written` is pages and doublewrite pages on MariaDB 10.11 and 11.8, with redo beside them on
/// MySQL 8.0.15, and pages and redo without the doublewrite files on MySQL 9.7.4.
pub(super) const STATUS: [(&str, Figure); 35] = [
    ("binlog_bytes_written", F::BinlogBytes),
    ("com_commit", F::Commits),
    ("com_delete", F::WriteStatements),
    ("com_delete_multi", F::WriteStatements),
    ("com_insert", F::WriteStatements),
    ("com_insert_select", F::WriteStatements),
    ("com_load", F::WriteStatements),
    ("com_replace", F::WriteStatements),
    ("com_replace_select", F::WriteStatements),
    ("com_select", F::ReadStatements),
    ("com_update", F::WriteStatements),
    ("com_update_multi", F::WriteStatements),
    ("com_xa_commit", F::Commits),
    ("innodb_buffer_pool_pages_data", F::DataPages),
    ("innodb_buffer_pool_pages_dirty", F::DirtyPages),
    ("innodb_buffer_pool_pages_flushed", F::Flushed),
    ("innodb_buffer_pool_pages_lru_flushed", F::LruFlushed),
    ("innodb_buffer_pool_read_requests", F::PageRequests),
    ("innodb_buffer_pool_wait_free", F::WaitFree),
    ("innodb_checkpoint_age", F::CheckpointAge),
    ("innodb_checkpoint_max_age", F::CheckpointAgeMax),
    ("innodb_data_fsyncs", F::Syncs),
    ("innodb_data_written", F::DataBytes),
    ("innodb_dblwr_pages_written", F::DoublewritePages),
    ("innodb_dblwr_writes", F::DoublewriteBatches),
    ("innodb_history_list_length", F::HistoryLength),
    ("innodb_log_waits", F::LogWaits),
    ("innodb_log_writes", F::RedoWrites),
    ("innodb_os_log_fsyncs", F::RedoSyncs),
    ("innodb_os_log_written", F::RedoBytes),
    ("innodb_pages_read", F::PageReads),
    ("innodb_pages_written", F::PageWrites),
    ("innodb_row_lock_waits", F::RowLockWaits),
    ("threads_running", F::ThreadsRunning),
    ("uptime", F::Uptime),
];

/// Rows of INFORMATION_SCHEMA.INNODB_METRICS that a flavour has and its status does not.
pub(super) fn metrics(flavour: Flavour) -> &'static [(&'static str, Figure)] {
    const BOTH: [(&str, Figure); 3] = [
        ("buffer_flush_adaptive_total_pages", F::AdaptiveFlushed),
        ("buffer_flush_sync_total_pages", F::SyncFlushed),
        ("buffer_flush_neighbor_total_pages", F::NeighbourFlushed),
    ];
    const MYSQL: [(&str, Figure); 8] = [
        BOTH[0],
        BOTH[1],
        BOTH[2],
        ("buffer_LRU_batch_flush_total_pages", F::LruFlushed),
        ("buffer_flush_background_total_pages", F::BackgroundFlushed),
        ("log_lsn_checkpoint_age", F::CheckpointAge),
        ("log_max_modified_age_sync", F::CheckpointAgeMax),
        ("trx_rseg_history_len", F::HistoryLength),
    ];
    if flavour == Flavour::MariaDb { &BOTH } else { &MYSQL }
}

/// Instruments of the performance schema, and what is made of their waits. MariaDB has none for the redo
/// log.
pub(super) const FILES: [(&str, Figure); 4] = [
    (REDO_FILE, F::RedoWait),
    // From MySQL 8.0.20 on. Before it, and on MariaDB, the doublewrite buffer is part of a data file.
    ("wait/io/file/innodb/innodb_dblwr_file", F::DoublewriteWait),
    ("wait/io/file/innodb/innodb_data_file", F::DataWait),
    (BINLOG_FILE, F::BinlogWait),
];
/// Whose misc operations are syncs (and the rare opening, of which a running server has none).
pub(super) const REDO_FILE: &str = "wait/io/file/innodb/innodb_log_file";
/// Whose bytes stand in where the status has none, which is MySQL.
pub(super) const BINLOG_FILE: &str = "wait/io/file/sql/binlog";

/// Mutexes of the performance schema, none of which a server instruments unless it is told to.
pub(super) const MUTEXES: [(&str, Figure); 2] = [
    // MariaDB, and MySQL before 8.0.20.
    ("wait/synch/mutex/innodb/buf_dblwr_mutex", F::DoublewriteMutexWait),
    ("wait/synch/mutex/innodb/dblwr_mutex", F::DoublewriteMutexWait),
];
