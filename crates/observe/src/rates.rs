//! The table of metrics: [`Rates`] and [`METRICS`].
//!
//! A row is a field of [`Rates`] with its meaning, unit, kind and formula. The sampler, SQLite, JSON and its schemas are made
//! of the rows. Seen on MariaDB 10.11.19, 11.4.5 and 11.8.6, MySQL 8.0.15 and 9.7.4, under load.

use serde::{Deserialize, Serialize};

use crate::metric::Counter::{BinaryLogs, EngineStatus, FileIo, InnodbMetric, Status, Wait};
use crate::metric::FileColumn::{BytesWritten, MiscCount, MiscTime, Time};
use crate::metric::Formula::{FirstOf, Last, Less, LessNumber, Mean, Over, Rate, Sum};
use crate::metric::{Formula, Interval, Metric, MetricKind, Readings, Servers, Source, Unit};

const PICOSECONDS: f64 = 1e12;
const PICOSECONDS_IN_A_MICROSECOND: f64 = 1e6;

const REDO_FILE: &str = "wait/io/file/innodb/innodb_log_file";
const DATA_FILE: &str = "wait/io/file/innodb/innodb_data_file";
const BINLOG_FILE: &str = "wait/io/file/sql/binlog";
const DOUBLEWRITE_FILE: &str = "wait/io/file/innodb/innodb_dblwr_file";

/// Status variables that every server has, added up.
macro_rules! status {
    ($($variable:literal),+) => {
        &[Source(Servers::EVERY, &[$(Status($variable)),+])]
    };
}

/// The time that threads spend in the I/O of a kind of file.
macro_rules! file_time {
    ($servers:expr, $file:expr) => {
        &[Source($servers, &[FileIo($file, Time)])]
    };
}

const CHECKPOINT_AGE: &[Source] = &[
    Source(Servers::MYSQL, &[InnodbMetric("log_lsn_checkpoint_age")]),
    Source(Servers::EVERY, &[Status("innodb_checkpoint_age")]),
];
/// MySQL from 8.0.30 on; every server prints the others, and MariaDB before 10.5 nothing else.
const LSN: &[Source] = &[
    Source(Servers { since: Some((8, 0, 30)), ..Servers::MYSQL }, &[Status("innodb_redo_log_current_lsn")]),
    Source(Servers::EVERY, &[EngineStatus("Log sequence number")]),
];
const CHECKPOINT_LSN: &[Source] = &[
    Source(
        Servers { since: Some((8, 0, 30)), ..Servers::MYSQL },
        &[Status("innodb_redo_log_checkpoint_lsn")],
    ),
    Source(Servers::EVERY, &[EngineStatus("Last checkpoint at")]),
];
const CHECKPOINT_AGE_MAX: &[Source] = &[
    Source(Servers::MYSQL, &[InnodbMetric("log_max_modified_age_sync")]),
    Source(Servers::EVERY, &[Status("innodb_checkpoint_max_age")]),
];
const HISTORY_LENGTH: &[Source] = &[
    Source(Servers::MYSQL, &[InnodbMetric("trx_rseg_history_len")]),
    Source(Servers::EVERY, &[Status("innodb_history_list_length")]),
];

const ADAPTIVE_FLUSHED: &[Source] =
    &[Source(Servers::EVERY, &[InnodbMetric("buffer_flush_adaptive_total_pages")])];
const BACKGROUND_FLUSHED: &[Source] =
    &[Source(Servers::MYSQL, &[InnodbMetric("buffer_flush_background_total_pages")])];
const SYNC_FLUSHED: &[Source] = &[Source(Servers::EVERY, &[InnodbMetric("buffer_flush_sync_total_pages")])];
const NEIGHBOUR_FLUSHED: &[Source] =
    &[Source(Servers::EVERY, &[InnodbMetric("buffer_flush_neighbor_total_pages")])];
const FLUSHED: &[Source] = status!("innodb_buffer_pool_pages_flushed");
const LRU_FLUSHED: &[Source] = &[
    Source(Servers::MYSQL, &[InnodbMetric("buffer_LRU_batch_flush_total_pages")]),
    Source(Servers::EVERY, &[Status("innodb_buffer_pool_pages_lru_flushed")]),
];
/// MySQL counts by reason, and single pages that a query flushes by none. MariaDB counts all pages and those of the LRU
/// list.
const LIST_FLUSHED: Formula = FirstOf(&[
    Sum(&[Rate(ADAPTIVE_FLUSHED), Rate(BACKGROUND_FLUSHED), Rate(SYNC_FLUSHED)]),
    Less(&Rate(FLUSHED), &Rate(LRU_FLUSHED)),
]);

/// Pages and doublewrite pages on MariaDB 10.11 and 11.8, with redo as well on MySQL 8.0.15; pages and redo without the
/// doublewrite files on MySQL 9.7.4.
const DATA_BYTES: &[Source] = status!("innodb_data_written");
const SYNCS: &[Source] = status!("innodb_data_fsyncs");
const REDO_SYNCS: &[Source] = &[
    Source(Servers { until: Some((10, 8, 0)), ..Servers::MARIADB }, &[Status("innodb_os_log_fsyncs")]),
    Source(Servers::MYSQL, &[Status("innodb_os_log_fsyncs")]),
];
/// The misc operations of the redo log are syncs, and the rare opening, of which a running server has none.
const REDO_MISC_TIME: &[Source] = &[Source(Servers::MYSQL, &[FileIo(REDO_FILE, MiscTime)])];
const REDO_MISC_COUNT: &[Source] = &[Source(Servers::MYSQL, &[FileIo(REDO_FILE, MiscCount)])];

/// Before it, and on MariaDB, the doublewrite buffer is part of a data file.
const DOUBLEWRITE_FILES: Option<(u32, u32, u32)> = Some((8, 0, 20));
const DOUBLEWRITE_TIME: &[Source] =
    file_time!(Servers { since: DOUBLEWRITE_FILES, ..Servers::MYSQL }, DOUBLEWRITE_FILE);
/// No server instruments it unless it is configured to.
const DOUBLEWRITE_MUTEX: &[Source] = &[
    Source(
        Servers { since: DOUBLEWRITE_FILES, ..Servers::MYSQL },
        &[Wait("wait/synch/mutex/innodb/dblwr_mutex")],
    ),
    Source(
        Servers { until: DOUBLEWRITE_FILES, ..Servers::MYSQL },
        &[Wait("wait/synch/mutex/innodb/buf_dblwr_mutex")],
    ),
    Source(Servers::MARIADB, &[Wait("wait/synch/mutex/innodb/buf_dblwr_mutex")]),
];

/// MariaDB's status counts it best. On MySQL the performance schema does, and without it the size of the files.
const BINLOG_BYTES: &[Source] = &[
    Source(Servers::MARIADB, &[Status("binlog_bytes_written")]),
    Source(Servers::EVERY, &[FileIo(BINLOG_FILE, BytesWritten)]),
    Source(Servers::MYSQL, &[BinaryLogs]),
];
const WRITE_STATEMENTS: &[Source] = status!(
    "com_delete",
    "com_delete_multi",
    "com_insert",
    "com_insert_select",
    "com_load",
    "com_replace",
    "com_replace_select",
    "com_update",
    "com_update_multi"
);

/// Makes the structure and the table of rows that are written as fields.
macro_rules! metrics {
    (
        $(#[$outer:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                #[metric($unit:ident, $kind:ident, $formula:expr)]
                pub $field:ident: Option<f64>,
            )+
        }
    ) => {
        $(#[$outer])*
        pub struct $name {
            $(
                $(#[doc = $meaning])+
                pub $field: Option<f64>,
            )+
        }

        /// All metrics of a server, in the order of the fields of [`Rates`].
        pub const METRICS: &[Metric] = &[$(
            Metric {
                name: stringify!($field),
                unit: Unit::$unit,
                kind: MetricKind::$kind,
                meaning: concat!($($meaning),+).trim_ascii_start(),
                formula: $formula,
            }
        ),+];

        impl $name {
            /// Names of the metrics, in the order of the fields.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            /// The value of each metric, in the order of [`METRICS`].
            #[must_use]
            pub fn to_values(self) -> Vec<Option<f64>> {
                vec![$(self.$field),+]
            }

            /// The value of each metric from its place in [`METRICS`] and its row.
            #[must_use]
            pub fn from_fn(mut of: impl FnMut(usize, &'static Metric) -> Option<f64>) -> Self {
                let mut values = METRICS.iter().enumerate().map(|(place, metric)| of(place, metric));
                Self { $($field: values.next().flatten()),+ }
            }
        }
    };
}

metrics! {
    /// A server over a stretch of time: differences of its status per second, gauges at its end. None where
    /// the server does not report.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Rates {
        /// Checkpoint age, bytes; a gauge.
        #[metric(Bytes, Gauge, FirstOf(&[Last(CHECKPOINT_AGE), Less(&Last(LSN), &Last(CHECKPOINT_LSN))]))]
        pub checkpoint_age: Option<f64>,
        /// The checkpoint age at which the server drops everything to flush, bytes; a gauge. MariaDB makes
        /// writers wait there; MySQL a little later.
        #[metric(Bytes, Gauge, Last(CHECKPOINT_AGE_MAX))]
        pub checkpoint_age_max: Option<f64>,
        /// Dirty pages in the buffer pool; a gauge.
        #[metric(Pages, Gauge, Last(status!("innodb_buffer_pool_pages_dirty")))]
        pub dirty_pages: Option<f64>,
        /// Pages of the buffer pool with data; a gauge.
        #[metric(Pages, Gauge, Last(status!("innodb_buffer_pool_pages_data")))]
        pub data_pages: Option<f64>,
        /// Pages read from files a second, those read ahead included.
        #[metric(Pages, Counter, Rate(status!("innodb_pages_read")))]
        pub page_reads: Option<f64>,
        /// Page requests a second.
        #[metric(Pages, Counter, Rate(status!("innodb_buffer_pool_read_requests")))]
        pub page_requests: Option<f64>,
        /// Pages written a second.
        #[metric(Pages, Counter, Rate(status!("innodb_pages_written")))]
        pub page_writes: Option<f64>,
        /// Pages written a second because the LRU list needed free ones.
        #[metric(Pages, Counter, Rate(LRU_FLUSHED))]
        pub lru_flushed: Option<f64>,
        /// Pages written a second for the checkpoint or the dirty share (flush list), all reasons.
        #[metric(Pages, Counter, LIST_FLUSHED)]
        pub list_flushed: Option<f64>,
        /// Of these, by adaptive flushing.
        #[metric(Pages, Counter, Rate(ADAPTIVE_FLUSHED))]
        pub adaptive_flushed: Option<f64>,
        /// Of these, because the redo log was about to be full.
        #[metric(Pages, Counter, Rate(SYNC_FLUSHED))]
        pub sync_flushed: Option<f64>,
        /// Pages written a second because their neighbours were.
        #[metric(Pages, Counter, Rate(NEIGHBOUR_FLUSHED))]
        pub neighbour_flushed: Option<f64>,
        /// Waits for a free page a second.
        #[metric(Events, Counter, Rate(status!("innodb_buffer_pool_wait_free")))]
        pub wait_free: Option<f64>,
        /// Redo bytes written a second.
        #[metric(Bytes, Counter, Rate(status!("innodb_os_log_written")))]
        pub redo_bytes: Option<f64>,
        /// Writes of the redo log a second.
        #[metric(Events, Counter, Rate(status!("innodb_log_writes")))]
        pub redo_writes: Option<f64>,
        /// Syncs of the redo log a second. MariaDB stopped counting them in 10.8.
        #[metric(Events, Counter, Rate(REDO_SYNCS))]
        pub redo_syncs: Option<f64>,
        /// Mean time of a sync of the redo log, us, from `performance_schema`; none where that is off, without
        /// a sync, and on MariaDB, which does not instrument the redo log.
        #[metric(Microseconds, Mean, Over(&Mean(REDO_MISC_TIME, REDO_MISC_COUNT), PICOSECONDS_IN_A_MICROSECOND))]
        pub redo_sync_us: Option<f64>,
        /// Syncs of data files a second: all syncs without the redo log's, where those are counted.
        #[metric(Events, Counter, Less(&Rate(SYNCS), &Rate(REDO_SYNCS)))]
        pub data_syncs: Option<f64>,
        /// Syncs of all of InnoDB's files a second.
        #[metric(Events, Counter, Rate(SYNCS))]
        pub syncs: Option<f64>,
        /// Waits for room in the log buffer a second.
        #[metric(Events, Counter, Rate(status!("innodb_log_waits")))]
        pub log_waits: Option<f64>,
        /// Doublewrite pages a second. With DETECT_ONLY MySQL counts pages here whose contents it does not write twice.
        #[metric(Pages, Counter, Rate(status!("innodb_dblwr_pages_written")))]
        pub doublewrite_pages: Option<f64>,
        /// Doublewrite batches a second: pages over batches are the pages that share a write.
        #[metric(Events, Counter, Rate(status!("innodb_dblwr_writes")))]
        pub doublewrite_batches: Option<f64>,
        /// Mean number of threads in the doublewrite files' I/O, from `performance_schema`; none where that is
        /// off, and where the doublewrite buffer is part of a data file (MariaDB, MySQL before 8.0.20).
        #[metric(Threads, Counter, Over(&Rate(DOUBLEWRITE_TIME), PICOSECONDS))]
        pub doublewrite_wait: Option<f64>,
        /// Mean number of threads that wait for the doublewrite buffer's mutex, from `performance_schema`; none
        /// where the server does not time it, which is the default.
        #[metric(Threads, Counter, Over(&Rate(DOUBLEWRITE_MUTEX), PICOSECONDS))]
        pub doublewrite_mutex_wait: Option<f64>,
        /// Bytes a second that InnoDB counts as written. Redo is in it on MySQL, the doublewrite buffer is not
        /// where it has files of its own: compare it between like servers alone.
        #[metric(Bytes, Counter, Rate(DATA_BYTES))]
        pub data_bytes: Option<f64>,
        /// Binary log bytes a second.
        #[metric(Bytes, Counter, Rate(BINLOG_BYTES))]
        pub binlog_bytes: Option<f64>,
        /// Row lock waits a second.
        #[metric(Events, Counter, Rate(status!("innodb_row_lock_waits")))]
        pub row_lock_waits: Option<f64>,
        /// Transactions that wait to be purged (history list length); a gauge.
        #[metric(Events, Gauge, Last(HISTORY_LENGTH))]
        pub history_length: Option<f64>,
        /// Threads running, the sampler's own not counted; a gauge.
        #[metric(Threads, Gauge, LessNumber(&Last(status!("threads_running")), 1.0))]
        pub threads_running: Option<f64>,
        /// Mean number of threads in the redo log's file I/O, from `performance_schema`; none where that is
        /// off, and on MariaDB, which does not instrument the redo log. Where one thread writes it (MySQL with
        /// `log_writer_threads` off), it is the share of the second.
        #[metric(Threads, Counter, Over(&Rate(file_time!(Servers::MYSQL, REDO_FILE)), PICOSECONDS))]
        pub redo_wait: Option<f64>,
        /// Mean number of threads in data files' I/O, the server's own included; as above.
        #[metric(Threads, Counter, Over(&Rate(file_time!(Servers::EVERY, DATA_FILE)), PICOSECONDS))]
        pub data_wait: Option<f64>,
        /// Mean number of threads in the binary log's file I/O; as above.
        #[metric(Threads, Counter, Over(&Rate(file_time!(Servers::EVERY, BINLOG_FILE)), PICOSECONDS))]
        pub binlog_wait: Option<f64>,
        /// COMMIT and XA COMMIT a second; statements that commit by themselves are not in it.
        #[metric(Events, Counter, Rate(status!("com_commit", "com_xa_commit")))]
        pub commits: Option<f64>,
        /// Statements a second that insert, update, delete, replace or load.
        #[metric(Events, Counter, Rate(WRITE_STATEMENTS))]
        pub write_statements: Option<f64>,
        /// SELECT statements a second.
        #[metric(Events, Counter, Rate(status!("com_select")))]
        pub read_statements: Option<f64>,
    }
}

/// With fewer COMMIT statements for a statement that writes, these commit by themselves.
const COMMITTED: f64 = 0.05;
/// With fewer statements that write among all, the server is read alone: what is written is its own bookkeeping.
const WRITTEN: f64 = 0.001;

impl Rates {
    /// What happened in an interval.
    #[must_use]
    pub fn over(interval: &Interval<'_>) -> Self {
        Self::from_fn(|_, metric| interval.value(&metric.formula))
    }

    /// The gauges of a moment. Nothing else is known of it.
    #[must_use]
    pub fn at(moment: &Readings) -> Self {
        Self::over(&Interval { before: moment, after: moment, seconds: 0.0 })
    }

    /// Transactions a second, and whether each statement is one: COMMIT statements; where there are few, statements that
    /// write; and where nothing is written, SELECT statements. None where the counters are not known.
    #[must_use]
    pub fn transactions(&self) -> Option<(f64, bool)> {
        let (writes, reads) = (self.write_statements?, self.read_statements?);
        let commits = self.commits.unwrap_or(0.0);
        if writes <= WRITTEN * (writes + reads) {
            return Some((reads, true));
        }
        Some(if commits > COMMITTED * writes { (commits, false) } else { (writes, true) })
    }

    /// The mean of each metric over those seconds that have it, such as the seconds of a trial.
    #[must_use]
    pub fn mean<'a>(seconds: impl IntoIterator<Item = &'a Self>) -> Self {
        let values: Vec<Vec<Option<f64>>> = seconds.into_iter().map(|second| second.to_values()).collect();
        Self::from_fn(|place, _| {
            let known: Vec<f64> = values.iter().filter_map(|values| values[place]).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metric::Counter;

    fn rates(before: &[(Counter, u64)], after: &[(Counter, u64)], seconds: f64) -> Rates {
        let [before, after] = [before, after].map(|all| all.iter().copied().collect::<Readings>());
        Rates::over(&Interval { before: &before, after: &after, seconds })
    }

    #[test]
    fn the_kind_of_a_metric_is_that_of_its_formula() {
        fn kind(formula: &Formula) -> MetricKind {
            match formula {
                Rate(_) => MetricKind::Counter,
                Last(_) => MetricKind::Gauge,
                Mean(..) => MetricKind::Mean,
                Over(inner, _) | LessNumber(inner, _) | Less(inner, _) => kind(inner),
                Sum(parts) | FirstOf(parts) => kind(&parts[0]),
            }
        }
        for metric in METRICS {
            assert_eq!(kind(&metric.formula), metric.kind, "{}", metric.name);
            assert!(metric.meaning.ends_with('.') && !metric.meaning.starts_with(' '), "{}", metric.name);
        }
        assert_eq!(METRICS.iter().map(|metric| metric.name).collect::<BTreeSet<_>>().len(), METRICS.len());
        assert_eq!(METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>(), Rates::NAMES);
    }

    #[test]
    fn a_value_comes_back_at_the_place_of_its_name() {
        let rates = Rates::from_fn(|place, _| Some(place as f64));
        assert_eq!(rates.to_values(), (0..METRICS.len()).map(|place| Some(place as f64)).collect::<Vec<_>>());
        let place = Rates::NAMES.iter().position(|name| *name == "page_writes").unwrap();
        assert_eq!(rates.page_writes, Some(place as f64));
    }

    #[test]
    fn a_mean_is_that_of_the_seconds_which_have_the_metric() {
        let second = |page_writes, syncs| Rates { page_writes, syncs, ..Rates::default() };
        let mean = Rates::mean(&[second(Some(1.0), None), second(Some(3.0), Some(5.0))]);
        assert_eq!(mean, second(Some(2.0), Some(5.0)));
    }

    #[test]
    fn counters_become_rates_and_gauges_stay_as_they_are() {
        let before = [
            (Status("innodb_pages_read"), 100),
            (Status("innodb_buffer_pool_pages_dirty"), 7),
            (Status("threads_running"), 9),
        ];
        let after = [
            (Status("innodb_pages_read"), 400),
            (Status("innodb_buffer_pool_pages_dirty"), 5),
            (Status("threads_running"), 3),
        ];
        let rates = rates(&before, &after, 2.0);
        assert_eq!(rates.page_reads, Some(150.0));
        assert_eq!(rates.dirty_pages, Some(5.0));
        assert_eq!(rates.threads_running, Some(2.0), "the sampler's own thread runs whenever it asks");
        let moment = Rates::at(&after.iter().copied().collect());
        assert_eq!(moment, Rates { page_reads: None, ..rates });
    }

    #[test]
    fn what_is_not_counted_is_none_and_so_is_a_counter_that_went_back() {
        let before = [(Status("innodb_pages_read"), 100), (Status("innodb_data_fsyncs"), 10)];
        let after = [(Status("innodb_pages_read"), 50), (Status("innodb_data_fsyncs"), 30)];
        let over = rates(&before, &after, 1.0);
        assert_eq!(over.page_reads, None);
        assert_eq!(over.syncs, Some(20.0));
        assert_eq!((over.redo_syncs, over.data_syncs), (None, None));
        assert_eq!(rates(&after, &after, 0.0), Rates::default());
    }

    #[test]
    fn pages_of_the_flush_list_are_all_that_the_lru_list_did_not_flush_where_no_reason_is_counted() {
        let [all, lru] =
            ["innodb_buffer_pool_pages_flushed", "innodb_buffer_pool_pages_lru_flushed"].map(Status);
        assert_eq!(rates(&[(all, 0), (lru, 0)], &[(all, 50), (lru, 30)], 1.0).list_flushed, Some(20.0));
        let reasons = [
            InnodbMetric("buffer_flush_adaptive_total_pages"),
            InnodbMetric("buffer_flush_background_total_pages"),
            InnodbMetric("buffer_flush_sync_total_pages"),
        ];
        let before: Vec<_> = reasons.iter().map(|reason| (*reason, 0)).chain([(all, 0), (lru, 0)]).collect();
        let after: Vec<_> = reasons.iter().map(|reason| (*reason, 5)).chain([(all, 50), (lru, 30)]).collect();
        assert_eq!(rates(&before, &after, 1.0).list_flushed, Some(15.0));
    }

    #[test]
    fn the_checkpoints_age_is_the_redo_since_it_where_no_counter_has_it() {
        let age = |after: &[(Counter, u64)]| rates(&[], after, 1.0).checkpoint_age;
        let status =
            [(Status("innodb_redo_log_current_lsn"), 900), (Status("innodb_redo_log_checkpoint_lsn"), 300)];
        let printed = [(EngineStatus("Log sequence number"), 70), (EngineStatus("Last checkpoint at"), 50)];
        assert_eq!((age(&status), age(&printed)), (Some(600.0), Some(20.0)));
        assert_eq!(age(&[status[0], status[1], printed[0], printed[1]]), Some(600.0));
        assert_eq!(age(&[status[0], status[1], (InnodbMetric("log_lsn_checkpoint_age"), 7)]), Some(7.0));
        assert_eq!((age(&status[..1]), age(&printed[1..])), (None, None));
    }

    #[test]
    fn waits_are_threads_and_a_sync_takes_its_mean_time() {
        let columns = [Time, MiscCount, MiscTime].map(|column| FileIo(REDO_FILE, column));
        let before = columns.map(|column| (column, 0));
        let after = [(columns[0], 500_000_000_000), (columns[1], 100), (columns[2], 400_000_000_000)];
        let rates = rates(&before, &after, 1.0);
        assert_eq!(rates.redo_wait, Some(0.5));
        assert_eq!(rates.redo_sync_us, Some(4000.0));
    }

    #[test]
    fn the_first_source_that_a_server_has_is_taken_and_its_variables_are_added_up() {
        let mariadb = [(Status("binlog_bytes_written"), 10), (FileIo(BINLOG_FILE, BytesWritten), 90)];
        let none = mariadb.map(|(counter, _)| (counter, 0));
        assert_eq!(rates(&none, &mariadb, 1.0).binlog_bytes, Some(10.0));
        assert_eq!(rates(&none[1..], &mariadb[1..], 1.0).binlog_bytes, Some(90.0));
        let statements = [(Status("com_commit"), 3), (Status("com_xa_commit"), 4)];
        let before = statements.map(|(counter, _)| (counter, 0));
        assert_eq!(rates(&before, &statements, 1.0).commits, Some(7.0));
    }
}
