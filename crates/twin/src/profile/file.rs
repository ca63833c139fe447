//! The keys of a profile, as they are written.

use ebbtide_text::{closest, did_you_mean};
use serde::{Deserialize, Serialize};

use super::ProfileError;
use crate::innodb::FileSystem;

/// A profile as its file has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// A name for people; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where its figures come from; empty where nobody says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The server.
    pub server: ServerTable,
    /// The machine.
    pub machine: MachineTable,
    /// The workload.
    pub workload: WorkloadTable,
    /// What was measured.
    #[serde(default, rename = "point", skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointTable>,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// Where the text is not TOML, has a key that no profile has, or lacks a table.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let whole = error.to_string();
            // The message is below the line that it is about.
            let (place, message) = whole.trim_end().rsplit_once('\n').unwrap_or(("", whole.trim_end()));
            let end = if place.is_empty() { "" } else { "\n" };
            ProfileError::Syntax(format!("{place}{end}{}", with_nearest(message)))
        })
    }
}

/// A message on a key that no table has, with the key that was meant in place of all that there are. Others stay as they are.
pub(super) fn with_nearest(message: &str) -> String {
    let nearest = || {
        let (begin, known) = message.split_once(", expected one of ")?;
        let key = begin.strip_prefix("unknown field `")?.strip_suffix('`')?;
        let meant = closest(key, known.split(", ").map(|name| name.trim_matches('`')))?;
        Some(format!("{begin}{}", did_you_mean(Some(meant))))
    };
    nearest().unwrap_or_else(|| message.to_owned())
}

/// A server: the names of its variables, without `innodb_`. What is left out has the default of the flavour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTable {
    /// `mysql-5.7`, `mysql-8.0`, `mysql-8.4`, `mariadb-10.5` or `mariadb-11`.
    pub flavour: Option<String>,
    /// Size of the buffer pool.
    pub buffer_pool_size: Option<String>,
    /// Its instances.
    pub buffer_pool_instances: Option<u32>,
    /// Page size.
    pub page_size: Option<String>,
    /// `innodb_io_capacity`.
    pub io_capacity: Option<u32>,
    /// `innodb_io_capacity_max`.
    pub io_capacity_max: Option<u32>,
    /// `innodb_max_dirty_pages_pct`.
    pub max_dirty_pages_pct: Option<f64>,
    /// `innodb_max_dirty_pages_pct_lwm`.
    pub max_dirty_pages_pct_lwm: Option<f64>,
    /// `innodb_adaptive_flushing`.
    pub adaptive_flushing: Option<bool>,
    /// `innodb_adaptive_flushing_lwm`.
    pub adaptive_flushing_lwm: Option<f64>,
    /// `innodb_flushing_avg_loops`.
    pub flushing_avg_loops: Option<u32>,
    /// `innodb_flush_sync`.
    pub flush_sync: Option<bool>,
    /// `innodb_idle_flush_pct`, percent of `io_capacity`.
    pub idle_flush_pct: Option<u32>,
    /// `innodb_lru_scan_depth`.
    pub lru_scan_depth: Option<u32>,
    /// `innodb_flush_neighbors`: 0, 1 or 2.
    pub flush_neighbors: Option<u8>,
    /// `innodb_doublewrite`: true, false or `fast`.
    pub doublewrite: Option<DoublewriteTable>,
    /// `innodb_doublewrite_pages`.
    pub doublewrite_pages: Option<u32>,
    /// `innodb_flush_method`.
    pub flush_method: Option<String>,
    /// `innodb_redo_log_capacity`, or the size of all redo log files together.
    pub redo_log_capacity: Option<String>,
    /// `innodb_flush_log_at_trx_commit`.
    pub flush_log_at_trx_commit: Option<u8>,
    /// Whether there is a binary log.
    pub log_bin: Option<bool>,
    /// `sync_binlog`.
    pub sync_binlog: Option<u32>,
    /// `binlog_group_commit_sync_delay`, us.
    pub binlog_group_commit_sync_delay: Option<u64>,
    /// `ext4` or `xfs`.
    pub file_system: Option<FileSystem>,
    /// `innodb_change_buffering`: `none`, `inserts`, `deletes`, `changes`, `purges` or `all`.
    pub change_buffering: Option<String>,
    /// `innodb_old_blocks_pct`.
    pub old_blocks_pct: Option<f64>,
    /// `innodb_purge_threads`.
    pub purge_threads: Option<u32>,
    /// `innodb_purge_batch_size`.
    pub purge_batch_size: Option<u32>,
}

/// Whether pages are written twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DoublewriteTable {
    /// On or off.
    Switch(bool),
    /// On, in another way.
    Mode(DoublewriteMode),
}

/// A way of writing pages twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DoublewriteMode {
    /// Without a flush of the data files after a batch: MariaDB from 11.0.6 on.
    Fast,
}

/// A machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineTable {
    /// Processors that the operating system sees.
    pub vcpus: Option<u32>,
    /// Threads of a core; 2 where nothing is said.
    pub threads_per_core: Option<u32>,
    /// Memory that the server and the page cache of its files share; that of the instance where nothing is said.
    pub memory: Option<String>,
    /// What neither the buffer pool nor the page cache has of it; 384 MiB where nothing is said.
    pub other_memory: Option<String>,
    /// EC2 instance type, for its limits.
    pub instance: Option<String>,
    /// Whether the half hour a day in which the instance's limits burst is there; true where nothing is said.
    pub burst: Option<bool>,
    /// The machine is one share of so many: volumes and the instance's limits are divided by it, latencies stay. 1 where
    /// nothing is said.
    pub divided_by: Option<u32>,
}

/// A workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadTable {
    /// `tpcc`, `observed`, or a script of sysbench such as `oltp_read_write`.
    pub kind: Option<String>,
    /// TPC-C: warehouses.
    pub warehouses: Option<u32>,
    /// TPC-C: `tpcc-mysql` or `sysbench-tpcc`.
    pub kit: Option<String>,
    /// TPC-C: whether statements are batched, as `ebbtide load run tpcc --statements=batched` sends them.
    pub batched: Option<bool>,
    /// TPC-C: `nurand` or `uniform`; those of the kit where nothing is said.
    pub keys: Option<String>,
    /// sysbench: tables.
    pub tables: Option<u32>,
    /// sysbench: rows of a table.
    pub table_size: Option<u32>,
    /// sysbench: `special`, `uniform`, `gaussian`, `pareto` or `zipfian`.
    pub rand_type: Option<String>,
    /// sysbench: rows of a range; 100 where nothing is said.
    pub range_size: Option<u32>,
    /// sysbench: reads of a row by its key in a transaction.
    pub point_selects: Option<u32>,
    /// sysbench: plain ranges.
    pub simple_ranges: Option<u32>,
    /// sysbench: sums of a range.
    pub sum_ranges: Option<u32>,
    /// sysbench: ranges in an order.
    pub order_ranges: Option<u32>,
    /// sysbench: distinct values of a range.
    pub distinct_ranges: Option<u32>,
    /// sysbench: whether there are ranges at all.
    pub range_selects: Option<bool>,
    /// sysbench: updates of the column with an index.
    pub index_updates: Option<u32>,
    /// sysbench: updates of the column without one.
    pub non_index_updates: Option<u32>,
    /// sysbench: deletes with an insert of the same row.
    pub delete_inserts: Option<u32>,
    /// `key_value`: gets, percent of all.
    pub gets_pct: Option<u32>,
    /// sysbench: draws averaged, of `special` and `gaussian`.
    pub rand_spec_iter: Option<u32>,
    /// sysbench: the special part of the rows, percent.
    pub rand_spec_pct: Option<u32>,
    /// sysbench: draws from the special part, percent.
    pub rand_spec_res: Option<u32>,
    /// sysbench: the parameter of `pareto`.
    pub rand_pareto_h: Option<f64>,
    /// sysbench: the exponent of `zipfian`.
    pub rand_zipfian_exp: Option<f64>,
    /// Size of the data on the volume.
    pub data_size: Option<String>,
    /// Observed: size of the data at which `pages` were measured; that of `data_size` where nothing is said.
    pub pages_of_data: Option<String>,
    /// Statements of a transaction, BEGIN and COMMIT included.
    pub statements: Option<f64>,
    /// Bytes of redo of a transaction.
    pub redo_bytes: Option<f64>,
    /// Bytes of binary log of a transaction.
    pub binlog_bytes: Option<f64>,
    /// Processor time of a transaction, us.
    pub cpu_us: Option<f64>,
    /// Round trip of a statement, us: from the client to the server and back, with the time that both take to wake up.
    pub round_trip_us: Option<f64>,
    /// Mean time that a client waits after a transaction before it sends the next one, ms; in a closed loop.
    pub think_ms: Option<f64>,
    /// Observed: what was measured for pools of some sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<PagesTable>,
    /// Observed: kinds of transactions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<TypeTable>,
}

/// Pages of a transaction with a pool of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagesTable {
    /// Size of the buffer pool.
    pub pool: String,
    /// Pages read by a transaction.
    pub reads: f64,
    /// Pages written by a transaction, without doublewrite.
    pub writes: f64,
}

/// A kind of transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeTable {
    /// Its name.
    pub name: String,
    /// Its share of all transactions, in any unit: shares are divided by their sum.
    pub share: f64,
    /// What it does, relative to the others.
    pub size: f64,
}

/// How a server was when a measurement began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PointState {
    /// After a long time under the same load: the buffer pool is full, and as many pages turn dirty as are written.
    #[default]
    Balanced,
    /// With an empty buffer pool.
    Cold,
}

/// What was measured at one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointTable {
    /// A name for people.
    pub name: Option<String>,
    /// The volume.
    pub volume: Option<String>,
    /// Connections.
    pub clients: Option<u32>,
    /// Transactions a second that arrived, in an open loop.
    pub rate: Option<f64>,
    /// Transactions a second that were finished.
    pub tps: Option<f64>,
    /// Pages read by a transaction.
    pub reads: Option<f64>,
    /// Pages written by a transaction, without doublewrite.
    pub writes: Option<f64>,
    /// Processors busy, percent of all.
    pub cpu_pct: Option<f64>,
    /// How the server was when the measurement began: `balanced` or `cold`; `balanced` where nothing is said.
    pub state: Option<PointState>,
    /// How long was measured, such as `30m`.
    pub time: Option<String>,
    /// The buffer pool, where it differs from the server's.
    pub buffer_pool_size: Option<String>,
    /// The data, where their size differs from the workload's.
    pub data_size: Option<String>,
}
