//! The families of a server that nobody else has. Those of mysqld_exporter are made of the server's own names.

use crate::family::{Family, FamilyKind};

macro_rules! families {
    ($($constant:ident: $kind:ident $name:literal, $unit:literal, $labels:expr, $help:literal, $source:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Family = Family {
                name: $name,
                kind: FamilyKind::$kind,
                unit: $unit,
                labels: &$labels,
                help: $help,
                source: $source,
            };
        )*

        /// All of them, in the order of this file.
        pub const SERVER_FAMILIES: &[Family] = &[$($constant),*];
    };
}

families! {
    RESTARTS: Counter "ebbtide_server_restarts_total", "restarts", [],
        "Restarts of the server that were seen, by its uptime or by its identity.",
        "`Uptime`, `server_uuid`, `hostname`, `port`, `datadir`";
    LOG_WAITS: Gauge "ebbtide_server_log_waits_per_second", "waits a second", [],
        "Waits for room in the log buffer between the last two samples.",
        "`Innodb_log_waits`";
    FREE_PAGE_WAITS: Gauge "ebbtide_server_free_page_waits_per_second", "waits a second", [],
        "Waits for a free page in the buffer pool between the last two samples.",
        "`Innodb_buffer_pool_wait_free`";
    REDO_CAPACITY: Gauge "ebbtide_server_redo_capacity_bytes", "bytes", [],
        "Size of all files of the redo log.",
        "`Innodb_redo_log_capacity_resized`, or the variables that size the log in this version";
    REDO_USED: Gauge "ebbtide_server_redo_used_bytes", "bytes", [],
        "Redo since the last checkpoint, which cannot be overwritten yet.",
        "`Innodb_checkpoint_age`, `Innodb_redo_log_*_lsn`, or `log_lsn_checkpoint_age` of INNODB_METRICS";
    REDO_SYNC_FLUSH: Gauge "ebbtide_server_redo_sync_flush_bytes", "bytes", [],
        "Use of the redo log at which the server flushes pages before all else, and writers wait.",
        "`Innodb_checkpoint_max_age`, `log_max_modified_age_sync`, or 83% of the capacity";
    REDO_WRITTEN: Gauge "ebbtide_server_redo_written_bytes_per_second", "bytes a second", [],
        "Redo written between the last two samples.",
        "the redo log's position, or `Innodb_os_log_written`";
    REDO_GROWTH: Gauge "ebbtide_server_redo_used_growth_bytes_per_second", "bytes a second", [],
        "Growth of the use of the redo log over the last minute; below 0 where the checkpoint gains.",
        "`ebbtide_server_redo_used_bytes`";
    REDO_SECONDS: Gauge "ebbtide_server_redo_sync_flush_seconds", "seconds", [],
        "Time until the sync flush if the use grows as in the last minute; absent while it does not grow, and 0 when it is there.",
        "the four families above";
    REDO_HEADROOM: Gauge "ebbtide_server_redo_headroom_seconds", "seconds", [],
        "Time until the sync flush at the present writes if no page were flushed.",
        "the families above";
    REPLICA_LAG: Gauge "ebbtide_server_replica_lag_seconds", "seconds", ["channel"],
        "How far a replica is behind, by the best evidence; absent where a thread has stopped, or the lag is not known.",
        "the evidence that `ebbtide_server_replica_lag_evidence` names";
    REPLICA_EVIDENCE: Gauge "ebbtide_server_replica_lag_evidence", "1", ["channel", "evidence"],
        "What the lag is known by (commit_time, all_applied, event_times, seconds_behind), or why it is not (applier_stopped, receiver_stopped, nothing); its value is always 1.",
        "performance_schema, GTIDs, SHOW REPLICA STATUS";
    REPLICA_THREAD: Gauge "ebbtide_server_replica_thread_running", "0 or 1", ["channel", "thread"],
        "Whether a thread of replication runs: the receiver, which needs a connection with the source, or the applier.",
        "SHOW REPLICA STATUS";
    REPLICA_TRANSACTIONS: Gauge "ebbtide_server_replica_transactions_behind", "transactions", ["channel"],
        "Transactions that were received and are not applied; MariaDB with GTIDs.",
        "`Gtid_IO_Pos` and `Gtid_Slave_Pos`";
    SAMPLES: Counter "ebbtide_server_samples_total", "samples", [],
        "Samples of the server that were taken.",
        "the sampler";
    SKIPPED: Counter "ebbtide_server_samples_skipped_total", "samples", [],
        "Samples that were left out because the server was slow, hung, or was not there.",
        "the sampler";
    STATEMENTS: Counter "ebbtide_server_sampling_statements_total", "statements", [],
        "Statements that the sampling has sent.",
        "the sampler";
    STATEMENT_TIME: Counter "ebbtide_server_sampling_seconds_total", "seconds", [],
        "Time that the sampling has waited for the server's answers.",
        "the sampler";
    BYTES: Counter "ebbtide_server_sampling_bytes_total", "bytes", [],
        "Bytes that the sampling has sent and received.",
        "the sampler";
    CONNECTIONS: Counter "ebbtide_server_sampling_connections_total", "connections", [],
        "Connections that the sampling has made.",
        "the sampler";
    MISSING: Gauge "ebbtide_server_missing", "1", ["subject"],
        "Something that the server does not give; `ebbtide watch` has the reason, and the statement that enables it.",
        "the server's answers";
}
