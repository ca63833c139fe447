//! What is known of a server: the newest answer to each question. Plain data.

use std::collections::BTreeMap;
use std::time::Duration;

use ebbtide_observe::metric::Maker;
use ebbtide_observe::{Variables, Version};

use super::collector::Collector;

/// A row by the names of its columns, as the server spells them. A NULL is left out.
pub type ReplicaRow = BTreeMap<String, String>;

/// An answer, and when it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed<T> {
    /// When it was read, since the moment that the sampler's times count from.
    pub at: Duration,
    /// What was answered.
    pub value: T,
}

/// Everything that is known of one server. What it does not give, and what was not asked yet, is None; [`Reading::missing`] says why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// Whether it answered the last time. What it answered before is kept, with its time.
    pub up: bool,
    /// Number of the run of the server, from 0. It grows with each restart that was seen: what was counted in another run is not
    /// comparable.
    pub run: u64,
    /// Whose counters it keeps; None before it first answered.
    pub maker: Option<Maker>,
    /// Its version; None where it has no form that is known here.
    pub release: Option<Version>,
    /// SHOW GLOBAL STATUS.
    pub status: Option<Timed<Variables>>,
    /// SHOW GLOBAL VARIABLES.
    pub variables: Option<Timed<Variables>>,
    /// SHOW REPLICA STATUS in the words of the version; empty where the server has no source.
    pub replica: Option<Timed<Vec<ReplicaRow>>>,
    /// Threads that apply transactions; MySQL from 8.0.1 on.
    pub appliers: Option<Timed<Vec<Applier>>>,
    /// Threads that receive transactions; MySQL from 8.0.1 on.
    pub receivers: Option<Timed<Vec<Receiver>>>,
    /// InnoDB's counters that are on.
    pub innodb_metrics: Option<Timed<Vec<InnodbMetric>>>,
    /// Compression, by size of page.
    pub page_compression: Option<Timed<Vec<PageCompression>>>,
    /// Compressed pages in memory, by size of page.
    pub compressed_pool: Option<Timed<Vec<CompressedPool>>>,
    /// Times of statements: of all, of those that read, of those that write, as far as the server has them.
    pub response_times: Option<Timed<Vec<ResponseTimes>>>,
    /// The binary log; None where it is off.
    pub binary_logs: Option<Timed<BinaryLogs>>,
    /// How each collector did the last time.
    pub collectors: BTreeMap<Collector, CollectorRun>,
    /// How long the last connection took to be made.
    pub connect_time: Duration,
    /// What the server does not give.
    pub missing: Vec<Missing>,
    /// What the sampling has cost.
    pub cost: Cost,
}

/// The last run of a collector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectorRun {
    /// Whether the server answered with rows.
    pub success: bool,
    /// How long that took.
    pub took: Duration,
    /// Refusals so far.
    pub refusals: u64,
}

/// What sampling has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Statements.
    pub statements: u64,
    /// Time that was waited for their answers, s.
    pub seconds: f64,
    /// Bytes sent and received.
    pub bytes: u64,
    /// Samples that were taken.
    pub samples: u64,
    /// Samples that were left out because the server was slow or not there.
    pub skipped: u64,
    /// Connections that were made.
    pub connections: u64,
}

/// Something that a server does not give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What.
    pub subject: String,
    /// Why.
    pub reason: String,
    /// The statement, or what else enables it; None where nothing is known to.
    pub enable: Option<String>,
}

/// A thread that applies transactions of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applier {
    /// The channel; empty for the default one.
    pub channel: String,
    /// Whether it runs.
    pub running: bool,
    /// Number of the error that it stopped with; 0 without one.
    pub error: u32,
    /// The transaction that it has applied last.
    pub applied: Transaction,
    /// The transaction that it applies now.
    pub applying: Transaction,
}

/// The thread that receives transactions of a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receiver {
    /// The channel; empty for the default one.
    pub channel: String,
    /// Whether it is connected with its source.
    pub running: bool,
    /// Number of the error that it has met last; 0 without one.
    pub error: u32,
    /// The transaction that it has received last.
    pub queued: Transaction,
}

/// A transaction of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Its GTID, or `ANONYMOUS` for one without; empty where there is no transaction.
    pub gtid: String,
    /// When it was committed on the source that it was first committed on, as the server prints it; empty where that is not known.
    pub committed: String,
    /// How long ago that was by the clock of this server, us. It is below 0 where the clock of the source is ahead. None without a
    /// transaction.
    pub age_us: Option<i64>,
}

/// One of InnoDB's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnodbMetric {
    /// Its name.
    pub name: String,
    /// The part of InnoDB that counts it.
    pub subsystem: String,
    /// Its type in the server's word: `counter`, `status_counter`, `value`, `set_owner`, `set_member`, `gauge`.
    pub kind: String,
    /// Its value; some are below 0.
    pub count: i128,
}

/// Compression of pages of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCompression {
    /// Bytes of a compressed page, as the server prints it.
    pub page_size: String,
    /// Pages that were compressed, or tried.
    pub compress_ops: i64,
    /// Of these, those that fitted.
    pub compress_ops_ok: i64,
    /// Time of these, s.
    pub compress_seconds: i64,
    /// Pages that were expanded.
    pub uncompress_ops: i64,
    /// Time of these, s.
    pub uncompress_seconds: i64,
}

/// Compressed pages of one size in the buffer pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressedPool {
    /// Bytes of a compressed page, as the server prints it.
    pub page_size: String,
    /// Number of the buffer pool, as the server prints it.
    pub instance: String,
    /// Blocks in use.
    pub pages_used: i64,
    /// Blocks that are free.
    pub pages_free: i64,
    /// Blocks that were moved.
    pub relocation_ops: i64,
    /// Time that moves of pages took, whole seconds: the servers divide their microseconds by a million, and MySQL's manual calls the
    /// column microseconds (findings/innodb-cmpmem-seconds.sh).
    pub relocation_s: i64,
}

/// The times of statements of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseTimes {
    /// The table that they were read of, such as `QUERY_RESPONSE_TIME_READ`.
    pub table: String,
    /// Classes of time, shortest first.
    pub classes: Vec<ResponseClass>,
}

/// Statements that took no longer than a time, and longer than the class before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResponseClass {
    /// The longest time of the class, s; None for the last class, which has no end.
    pub up_to_s: Option<f64>,
    /// Statements.
    pub count: u64,
    /// Their times together, s; 0 for the last class, of which the server does not print it.
    pub total_s: f64,
}

/// The files of the binary log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BinaryLogs {
    /// How many.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// The number at the end of the newest one's name.
    pub newest: Option<u64>,
}

/// Seconds by which a server's uptime, which has whole seconds, may lag behind our clock within one run.
const UPTIME_TOLERANCE_S: f64 = 3.0;

/// Whether a server was started again between two looks at its uptime over two connections: it went back, or grew by less than the time
/// that passed. A server whose clock was set back shows the same, so that it is asked of connections that did not last alone.
pub(super) fn is_restarted(before: &Timed<u64>, after: &Timed<u64>) -> bool {
    let passed = after.at.saturating_sub(before.at).as_secs_f64();
    after.value < before.value || (after.value as f64) + UPTIME_TOLERANCE_S < before.value as f64 + passed
}

/// A row by the places of its columns.
type Cells = [Option<String>];

fn text(row: &Cells, column: usize) -> String {
    row.get(column).cloned().flatten().unwrap_or_default()
}

fn number<T: std::str::FromStr>(row: &Cells, column: usize) -> Option<T> {
    row.get(column)?.as_ref()?.trim().parse().ok()
}

/// A transaction in three columns from `column` on: name, time of its commit, age.
fn transaction(row: &Cells, column: usize) -> Transaction {
    let gtid = text(row, column);
    let age_us = if gtid.is_empty() { None } else { number(row, column + 2) };
    Transaction { gtid, committed: text(row, column + 1), age_us }
}

/// A transaction in two columns from `column` on: name and age.
fn transaction_without_time(row: &Cells, column: usize) -> Transaction {
    let gtid = text(row, column);
    let age_us = if gtid.is_empty() { None } else { number(row, column + 1) };
    Transaction { gtid, committed: String::new(), age_us }
}

impl Applier {
    /// Reads a row of the statement of [`Collector::Appliers`].
    pub(super) fn read(row: &Cells) -> Self {
        Self {
            channel: text(row, 0),
            running: text(row, 1) == "ON",
            error: number(row, 2).unwrap_or(0),
            applied: transaction(row, 3),
            applying: transaction_without_time(row, 6),
        }
    }
}

impl Receiver {
    /// Reads a row of the statement of [`Collector::Receivers`].
    pub(super) fn read(row: &Cells) -> Self {
        Self {
            channel: text(row, 0),
            running: text(row, 1) == "ON",
            error: number(row, 2).unwrap_or(0),
            queued: transaction(row, 3),
        }
    }
}

impl InnodbMetric {
    pub(super) fn read(row: &Cells) -> Option<Self> {
        let (name, subsystem, kind) = (text(row, 0), text(row, 1), text(row, 2));
        Some(Self { name, subsystem, kind, count: number(row, 3)? })
    }
}

impl PageCompression {
    pub(super) fn read(row: &Cells) -> Option<Self> {
        Some(Self {
            page_size: text(row, 0),
            compress_ops: number(row, 1)?,
            compress_ops_ok: number(row, 2)?,
            compress_seconds: number(row, 3)?,
            uncompress_ops: number(row, 4)?,
            uncompress_seconds: number(row, 5)?,
        })
    }
}

impl CompressedPool {
    pub(super) fn read(row: &Cells) -> Option<Self> {
        Some(Self {
            page_size: text(row, 0),
            instance: text(row, 1),
            pages_used: number(row, 2)?,
            pages_free: number(row, 3)?,
            relocation_ops: number(row, 4)?,
            relocation_s: number(row, 5)?,
        })
    }
}

impl ResponseClass {
    /// Reads a row: a time, or `TOO LONG`, statements, and their times together.
    pub(super) fn read(row: &Cells) -> Option<Self> {
        let up_to_s = number::<f64>(row, 0).filter(|seconds| *seconds > 0.0);
        Some(Self { up_to_s, count: number(row, 1)?, total_s: number(row, 2).unwrap_or(0.0) })
    }
}

impl BinaryLogs {
    pub(super) fn read(rows: &[Vec<Option<String>>]) -> Self {
        let newest = rows.last().map(|row| text(row, 0));
        Self {
            files: rows.len() as u64,
            bytes: rows.iter().filter_map(|row| number::<u64>(row, 1)).sum(),
            // A name may have dots of its own.
            newest: newest.and_then(|name| name.rsplit_once('.')?.1.parse().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<Option<String>> {
        cells.iter().map(|cell| (*cell != "NULL").then(|| (*cell).to_owned())).collect()
    }

    #[test]
    fn a_server_is_restarted_where_its_uptime_does_not_keep_up() {
        let look = |seconds: u64, uptime| Timed { at: Duration::from_secs(seconds), value: uptime };
        for (before, after, restarted) in [
            (look(0, 100), look(1, 101), false),
            (look(0, 100), look(1, 100), false),
            (look(0, 100), look(60, 158), false),
            (look(0, 100), look(1, 2), true),
            (look(0, 10), look(60, 30), true),
            // The machine slept, or the server's clock was set forward.
            (look(0, 100), look(1, 4_000), false),
        ] {
            assert_eq!(is_restarted(&before, &after), restarted, "{before:?} {after:?}");
        }
    }

    /// A worker of MySQL 8.4 that applies, and one that has nothing to do.
    #[test]
    fn a_thread_that_applies_has_the_age_of_its_transaction_and_an_idle_one_none() {
        let uuid = "ebb71de0-0000-4000-8000-000000000001";
        let (applied, applying) = (format!("{uuid}:41"), format!("{uuid}:42"));
        let time = "2026-11-29 06:00:01.000001";
        let worker = Applier::read(&row(&["", "ON", "0", &applied, time, "5000000", &applying, "4000000"]));
        assert!(worker.running && worker.error == 0);
        assert_eq!(worker.applied.committed, time);
        assert_eq!((worker.applied.age_us, worker.applying.age_us), (Some(5_000_000), Some(4_000_000)));
        let idle =
            Applier::read(&row(&["a", "OFF", "1062", "", "0000-00-00 00:00:00.000000", "NULL", "", "NULL"]));
        assert!(!idle.running && idle.error == 1062 && idle.channel == "a");
        assert_eq!((idle.applied.age_us, idle.applying.age_us), (None, None));
        let received = Receiver::read(&row(&["", "CONNECTING", "2003", &applied, time, "-20"]));
        assert!(!received.running);
        assert_eq!(received.queued.age_us, Some(-20), "the source's clock is ahead");
    }

    #[test]
    fn rows_of_innodb_are_read_as_the_servers_print_them() {
        let metric =
            InnodbMetric::read(&row(&["trx_rseg_history_len", "transaction", "value", "-1"])).unwrap();
        assert_eq!((metric.name.as_str(), metric.count), ("trx_rseg_history_len", -1));
        assert_eq!(InnodbMetric::read(&row(&["a", "b", "counter", "NULL"])), None);
        let pages = PageCompression::read(&row(&["8192", "10", "9", "1", "4", "0"])).unwrap();
        assert_eq!((pages.compress_ops, pages.compress_ops_ok, pages.uncompress_ops), (10, 9, 4));
        let pool = CompressedPool::read(&row(&["1024", "0", "1", "2", "3", "4000"])).unwrap();
        assert_eq!((pool.instance.as_str(), pool.relocation_s), ("0", 4_000));
    }

    #[test]
    fn the_last_class_of_times_has_no_end() {
        let class = ResponseClass::read(&row(&["      0.000010", "4", "      0.000021"])).unwrap();
        assert_eq!((class.up_to_s, class.count), (Some(0.000_010), 4));
        let last = ResponseClass::read(&row(&["TOO LONG", "1", "TOO LONG"])).unwrap();
        assert_eq!((last.up_to_s, last.count, last.total_s), (None, 1, 0.0));
    }

    #[test]
    fn binary_logs_have_a_number_behind_the_last_dot() {
        let logs =
            BinaryLogs::read(&[row(&["db.1-bin.000009", "100"]), row(&["db.1-bin.000010", "50", "No"])]);
        assert_eq!(logs, BinaryLogs { files: 2, bytes: 150, newest: Some(10) });
        assert_eq!(BinaryLogs::read(&[]), BinaryLogs::default());
    }
}
