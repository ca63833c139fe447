//! What a server is asked, how often, and in which words.

use std::time::Duration;

use ebbtide_observe::Version;
use ebbtide_observe::metric::Maker;

/// MySQL's words for replicas ("MySQL 8.0 Reference Manual", SHOW REPLICA STATUS). Each version knows one of both without a warning.
const REPLICA_WORDS: Version = Version::new(8, 0, 22);
/// MySQL's performance schema has the times at which transactions were committed on their first source
/// ("Performance Schema Replication Tables", 8.0).
const COMMIT_TIMES: Version = Version::new(8, 0, 1);

/// A set of readings that one statement brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collector {
    /// Counters and gauges of the server.
    Status,
    /// Settings.
    Variables,
    /// Replication as the server's columns have it, a row for each source.
    Replica,
    /// The threads that receive transactions, with the times of these. They are asked first: what is received meanwhile would seem to
    /// wait for longer than it does.
    Receivers,
    /// The threads that apply transactions, with the times of these.
    Appliers,
    /// InnoDB's counters that are on.
    InnodbMetrics,
    /// Compression of pages.
    PageCompression,
    /// Compressed pages in the buffer pool.
    CompressedPool,
    /// How long statements took, by classes of time.
    ResponseTimes,
    /// The files of the binary log.
    BinaryLogs,
}

impl Collector {
    /// All of them. Of those that are due at the same time, the first is asked first.
    pub const ALL: [Self; 10] = [
        Self::Status,
        Self::Variables,
        Self::Replica,
        Self::Receivers,
        Self::Appliers,
        Self::InnodbMetrics,
        Self::PageCompression,
        Self::CompressedPool,
        Self::ResponseTimes,
        Self::BinaryLogs,
    ];

    /// Its name in mysqld_exporter, such as `global_status`; where that has no such collector, the name of the source.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status => "global_status",
            Self::Variables => "global_variables",
            Self::Replica => "slave_status",
            Self::Appliers => "perf_schema.replication_applier_status_by_worker",
            Self::Receivers => "perf_schema.replication_connection_status",
            Self::InnodbMetrics => "info_schema.innodb_metrics",
            Self::PageCompression => "info_schema.innodb_cmp",
            Self::CompressedPool => "info_schema.innodb_cmpmem",
            Self::ResponseTimes => "info_schema.query_response_time",
            Self::BinaryLogs => "binlog_size",
        }
    }

    /// How often it is asked. What costs more than the status, or moves slowly, is asked less often.
    pub(super) const fn period(self) -> Duration {
        match self {
            Self::Status | Self::Replica | Self::Appliers | Self::Receivers => Duration::from_secs(1),
            Self::InnodbMetrics | Self::PageCompression | Self::CompressedPool | Self::ResponseTimes => {
                Duration::from_secs(10)
            }
            Self::Variables | Self::BinaryLogs => Duration::from_secs(60),
        }
    }

    /// Its statement for a server; None where the server's version does not know one. A statement that a version does not know is never
    /// sent: some servers write an error to their log for it. The cost of none grows with the number of tables.
    ///
    /// [`Collector::ResponseTimes`] has none here: its tables are plugins, one statement each.
    pub(super) const fn statement(self, maker: Maker, release: Option<Version>) -> Option<&'static str> {
        match self {
            Self::Status => Some("SHOW GLOBAL STATUS"),
            Self::Variables => Some("SHOW GLOBAL VARIABLES"),
            Self::Replica => replica_statement(maker, release),
            Self::Appliers if has_commit_times(maker, release) => Some(APPLIERS),
            Self::Receivers if has_commit_times(maker, release) => Some(RECEIVERS),
            Self::Appliers | Self::Receivers | Self::ResponseTimes => None,
            Self::InnodbMetrics => Some(match maker {
                Maker::MariaDb => MARIADB_METRICS,
                Maker::MySql => MYSQL_METRICS,
            }),
            Self::PageCompression => Some(
                "SELECT page_size, compress_ops, compress_ops_ok, compress_time, uncompress_ops, uncompress_time \
                 FROM information_schema.INNODB_CMP",
            ),
            Self::CompressedPool => Some(
                "SELECT page_size, buffer_pool_instance, pages_used, pages_free, relocation_ops, relocation_time \
                 FROM information_schema.INNODB_CMPMEM",
            ),
            Self::BinaryLogs => Some("SHOW BINARY LOGS"),
        }
    }

    /// The privilege that its statement needs, and on what; None where every account may ask.
    pub(super) const fn privilege(self, maker: Maker) -> Option<[&'static str; 2]> {
        match (self, maker) {
            (Self::Status | Self::Variables, _) => None,
            (Self::Replica, Maker::MariaDb) => Some(["REPLICA MONITOR", "*.*"]),
            (Self::BinaryLogs, Maker::MariaDb) => Some(["BINLOG MONITOR", "*.*"]),
            (Self::Replica | Self::BinaryLogs, Maker::MySql) => Some(["REPLICATION CLIENT", "*.*"]),
            (Self::Appliers | Self::Receivers, _) => Some(["SELECT", "performance_schema.*"]),
            (Self::InnodbMetrics | Self::PageCompression | Self::CompressedPool | Self::ResponseTimes, _) => {
                Some(["PROCESS", "*.*"])
            }
        }
    }
}

/// The state of each thread, what it has applied last and what it applies now, with the times of both commits on the first
/// source: as text, and as ages in microseconds by the clock of this server.
const APPLIERS: &str = "SELECT CHANNEL_NAME, SERVICE_STATE, LAST_ERROR_NUMBER, LAST_APPLIED_TRANSACTION, \
    LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, \
    TIMESTAMPDIFF(MICROSECOND, LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, NOW(6)), APPLYING_TRANSACTION, \
    TIMESTAMPDIFF(MICROSECOND, APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, NOW(6)) \
    FROM performance_schema.replication_applier_status_by_worker";

/// The same of what was received last.
const RECEIVERS: &str = "SELECT CHANNEL_NAME, SERVICE_STATE, LAST_ERROR_NUMBER, LAST_QUEUED_TRANSACTION, \
    LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, \
    TIMESTAMPDIFF(MICROSECOND, LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, NOW(6)) \
    FROM performance_schema.replication_connection_status";

/// MariaDB has the column ENABLED from 10.5 on.
const MARIADB_METRICS: &str =
    "SELECT NAME, SUBSYSTEM, TYPE, `COUNT` FROM information_schema.INNODB_METRICS WHERE ENABLED = 1";
const MYSQL_METRICS: &str =
    "SELECT NAME, SUBSYSTEM, TYPE, `COUNT` FROM information_schema.INNODB_METRICS WHERE STATUS = 'enabled'";

const fn replica_statement(maker: Maker, release: Option<Version>) -> Option<&'static str> {
    match (maker, release) {
        (_, None) => None,
        // SHOW REPLICA STATUS and SHOW SLAVE STATUS leave out connections that have a name.
        (Maker::MariaDb, Some(_)) => Some("SHOW ALL SLAVES STATUS"),
        (Maker::MySql, Some(release)) if is_before(release, REPLICA_WORDS) => Some("SHOW SLAVE STATUS"),
        (Maker::MySql, Some(_)) => Some("SHOW REPLICA STATUS"),
    }
}

const fn has_commit_times(maker: Maker, release: Option<Version>) -> bool {
    match (maker, release) {
        (Maker::MySql, Some(release)) => !is_before(release, COMMIT_TIMES),
        _ => false,
    }
}

/// Comparison of versions is not const.
const fn is_before(version: Version, other: Version) -> bool {
    if version.major != other.major {
        return version.major < other.major;
    }
    if version.minor != other.minor {
        return version.minor < other.minor;
    }
    version.patch < other.patch
}

/// A table of the times of statements: all of them, those that read, those that write. MariaDB and Percona Server 5.7 have them as
/// plugins of the same names.
pub(super) const RESPONSE_TIME_TABLES: [&str; 3] =
    ["QUERY_RESPONSE_TIME", "QUERY_RESPONSE_TIME_READ", "QUERY_RESPONSE_TIME_WRITE"];

/// Asks which of [`RESPONSE_TIME_TABLES`] a server has.
pub(super) const RESPONSE_TIME_PLUGINS: &str = "SELECT PLUGIN_NAME FROM information_schema.PLUGINS \
    WHERE PLUGIN_NAME LIKE 'QUERY_RESPONSE_TIME%' AND PLUGIN_STATUS = 'ACTIVE'";

/// Reads one of them. The names are in capitals: in small letters Percona Server answers with those of all statements.
pub(super) fn response_times(table: &str) -> String {
    format!("SELECT `TIME`, `COUNT`, `TOTAL` FROM INFORMATION_SCHEMA.{table}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The words of each server for its replication, and whether it has the times of commits.
    #[test]
    fn a_server_is_asked_in_the_words_of_its_version_alone() {
        for (text, replica, has_times) in [
            ("5.7.44", "SHOW SLAVE STATUS", false),
            ("8.0.0", "SHOW SLAVE STATUS", false),
            ("8.0.15", "SHOW SLAVE STATUS", true),
            ("8.0.21", "SHOW SLAVE STATUS", true),
            ("8.0.22", "SHOW REPLICA STATUS", true),
            ("8.0.46", "SHOW REPLICA STATUS", true),
            ("8.4.6", "SHOW REPLICA STATUS", true),
            ("9.7.4", "SHOW REPLICA STATUS", true),
            ("10.6.22-MariaDB", "SHOW ALL SLAVES STATUS", false),
            ("10.11.19-MariaDB-0+deb12u1-log", "SHOW ALL SLAVES STATUS", false),
            ("11.8.9-MariaDB", "SHOW ALL SLAVES STATUS", false),
            ("12.2.1-MariaDB", "SHOW ALL SLAVES STATUS", false),
        ] {
            let maker = if text.contains("MariaDB") { Maker::MariaDb } else { Maker::MySql };
            let release = Version::parse(text);
            let statement = |collector: Collector| collector.statement(maker, release);
            assert_eq!(statement(Collector::Replica), Some(replica), "{text}");
            let times =
                [Collector::Appliers, Collector::Receivers].map(|collector| statement(collector).is_some());
            assert_eq!(times, [has_times; 2], "{text}");
            let column = if maker == Maker::MariaDb { "ENABLED = 1" } else { "STATUS = 'enabled'" };
            assert!(statement(Collector::InnodbMetrics).unwrap().ends_with(column), "{text}");
        }
        assert_eq!(Collector::Replica.statement(Maker::MySql, None), None, "of an unknown version");
        assert!(Collector::Status.statement(Maker::MySql, None).is_some());
    }

    #[test]
    fn no_statement_changes_a_server_or_reads_a_list_of_tables() {
        for maker in [Maker::MySql, Maker::MariaDb] {
            for release in [Version::new(5, 7, 44), Version::new(9, 7, 4), Version::new(10, 11, 19)] {
                for collector in Collector::ALL {
                    let Some(statement) = collector.statement(maker, Some(release)) else { continue };
                    assert!(
                        statement.starts_with("SHOW ") || statement.starts_with("SELECT "),
                        "{statement}"
                    );
                    for table in
                        ["information_schema.TABLES", "INNODB_TABLESPACES", "INNODB_SYS", "STATISTICS"]
                    {
                        assert!(!statement.contains(table), "{statement}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_collector_has_a_name_of_its_own_and_stands_in_its_list_once() {
        let names: BTreeSet<_> = Collector::ALL.iter().map(|collector| collector.name()).collect();
        assert_eq!(names.len(), Collector::ALL.len());
        assert!(Collector::ALL.is_sorted());
    }
}
