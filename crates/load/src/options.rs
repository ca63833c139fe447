//! What to run, against which server: plain data, checked once.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, DistributionError};

/// An option that lies out of range or contradicts another one.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum OptionError {
    /// A number out of its range.
    #[error("--{option}={value} is out of range: {allowed}")]
    OutOfRange {
        /// The option's name, without dashes.
        option: &'static str,
        /// The value given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A name that nothing has.
    #[error("there is no workload '{0}': use one of {names}", names = Workload::names())]
    UnknownWorkload(String),
    /// Two options that exclude each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// The random distribution's parameters.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// A host name or address, and a port.
    Tcp {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How to encrypt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// A PEM file with the authority that signed the server's certificate. Without it the
    /// connection is encrypted and the certificate is not checked, as sysbench does.
    pub ca: Option<PathBuf>,
}

/// The server and the account.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Where it listens; several are used in turn, connection by connection.
    pub endpoints: Vec<Endpoint>,
    /// The account's name.
    pub user: String,
    /// The account's password.
    pub password: String,
    /// The database that holds the tables.
    pub database: String,
    /// Encrypt the connection.
    pub tls: Option<Tls>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("endpoints", &self.endpoints)
            .field("user", &self.user)
            .field("database", &self.database)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// The workloads: sysbench's OLTP scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// One primary-key read.
    PointSelect,
    /// Ten primary-key reads and four range reads in a transaction.
    ReadOnly,
    /// The reads of `ReadOnly` and the writes of `WriteOnly` in a transaction.
    ReadWrite,
    /// Two updates, a delete and an insert in a transaction.
    WriteOnly,
    /// One insert.
    Insert,
    /// One delete by primary key.
    Delete,
    /// One update of the indexed column.
    UpdateIndex,
    /// One update of a column without an index.
    UpdateNonIndex,
    /// Rows appended in statements of half a mebibyte.
    BulkInsert,
}

impl Workload {
    const ALL: [(Self, &'static str); 9] = [
        (Self::PointSelect, "oltp_point_select"),
        (Self::ReadOnly, "oltp_read_only"),
        (Self::ReadWrite, "oltp_read_write"),
        (Self::WriteOnly, "oltp_write_only"),
        (Self::Insert, "oltp_insert"),
        (Self::Delete, "oltp_delete"),
        (Self::UpdateIndex, "oltp_update_index"),
        (Self::UpdateNonIndex, "oltp_update_non_index"),
        (Self::BulkInsert, "bulk_insert"),
    ];

    /// sysbench's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(workload, _)| *workload == self).map_or("", |(_, name)| name)
    }

    /// All names, as a sentence's list.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(|(_, name)| name).join(", ")
    }

    /// Whether it changes data.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::PointSelect | Self::ReadOnly)
    }

    /// Whether sysbench wraps its statements in BEGIN and COMMIT.
    pub(crate) fn is_transaction(self) -> bool {
        matches!(self, Self::ReadOnly | Self::ReadWrite | Self::WriteOnly)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Workload {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        let wanted = text.trim_end_matches(".lua").replace('-', "_");
        let wanted = wanted.strip_prefix("oltp_").unwrap_or(&wanted);
        Self::ALL
            .iter()
            .find(|(_, name)| name.strip_prefix("oltp_").unwrap_or(name) == wanted)
            .map(|(workload, _)| *workload)
            .ok_or_else(|| OptionError::UnknownWorkload(text.to_owned()))
    }
}

/// The tables, as sysbench's `oltp_common.lua` defines them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Number of tables, `sbtest1` and up.
    pub tables: u32,
    /// Rows per table.
    pub table_size: u32,
    /// The id column is AUTO_INCREMENT.
    pub auto_inc: bool,
    /// The id has a secondary index in place of the primary key.
    pub secondary: bool,
    /// Column k has an index.
    pub create_secondary: bool,
    /// The storage engine.
    pub engine: String,
    /// Text appended to CREATE TABLE.
    pub create_table_options: String,
}

impl Default for Schema {
    fn default() -> Self {
        Self {
            tables: 1,
            table_size: 10_000,
            auto_inc: true,
            secondary: false,
            create_secondary: true,
            engine: "innodb".into(),
            create_table_options: String::new(),
        }
    }
}

impl Schema {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        in_range("tables", self.tables, 1, 100_000, "1 to 100000 tables")?;
        in_range(
            "table-size",
            self.table_size,
            0,
            MAX_TABLE_SIZE,
            "0 to 2147483647 rows, the range of INTEGER",
        )
    }
}

/// Ids are MySQL INTEGER.
const MAX_TABLE_SIZE: u32 = 2_147_483_647;

/// How many statements of each kind a transaction has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// Primary-key reads (`point_select` always has one).
    pub point_selects: u32,
    /// Range reads of column c.
    pub simple_ranges: u32,
    /// Range sums of column k.
    pub sum_ranges: u32,
    /// Range reads with ORDER BY.
    pub order_ranges: u32,
    /// Range reads with DISTINCT.
    pub distinct_ranges: u32,
    /// Rows per range.
    pub range_size: u32,
    /// Whether there are range reads at all.
    pub range_selects: bool,
    /// Updates of the indexed column.
    pub index_updates: u32,
    /// Updates of the column without an index.
    pub non_index_updates: u32,
    /// Pairs of a delete and an insert of the same id.
    pub delete_inserts: u32,
    /// No BEGIN and COMMIT: every statement commits by itself.
    pub skip_trx: bool,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_size: 100,
            range_selects: true,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            skip_trx: false,
        }
    }
}

/// When transactions start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Each connection starts the next one when the last one is answered. Hides stalls.
    Closed,
    /// At even intervals, whatever the server does.
    Fixed {
        /// Transactions a second.
        per_second: f64,
    },
    /// At exponentially distributed intervals, as independent users arrive (sysbench's `--rate`).
    Poisson {
        /// Transactions a second, on average.
        per_second: f64,
    },
}

impl Arrival {
    /// The offered rate in transactions a second, where there is one.
    #[must_use]
    pub fn per_second(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Fixed { per_second } | Self::Poisson { per_second } => Some(per_second),
        }
    }
}

/// Which server errors restart the transaction in place of ending the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IgnoreErrors {
    /// These codes.
    Codes(BTreeSet<u16>),
    /// Every code.
    All,
}

impl Default for IgnoreErrors {
    /// sysbench's list: deadlock, record changed since read, lock wait timeout.
    fn default() -> Self {
        Self::Codes(BTreeSet::from([1213, 1020, 1205]))
    }
}

impl IgnoreErrors {
    /// Whether the transaction is restarted after this code.
    #[must_use]
    pub fn contains(&self, code: u16) -> bool {
        match self {
            Self::Codes(codes) => codes.contains(&code),
            Self::All => true,
        }
    }
}

/// Where acknowledged commits are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerOptions {
    /// The file; an existing one is refused.
    pub path: PathBuf,
    /// Also write client and sequence number into the table `ebbtide_ledger` within each
    /// transaction, so that a recovered server can be compared with the file. Adds one update by
    /// primary key to every transaction, and BEGIN and COMMIT where there were none.
    pub marks: bool,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// What each transaction does.
    pub workload: Workload,
    /// The tables it does it on.
    pub schema: Schema,
    /// How many statements of each kind.
    pub mix: Mix,
    /// How ids are drawn.
    pub distribution: Distribution,
    /// Seed of everything random.
    pub seed: u64,
    /// Connections (sysbench's threads).
    pub connections: u32,
    /// Event-loop threads; `None` chooses one per 16 connections, at most half of the processors.
    pub loops: Option<u32>,
    /// When transactions start.
    pub arrival: Arrival,
    /// Open loop: how many arrivals may wait for a connection before further ones are shed.
    pub backlog: u32,
    /// Stop starting transactions after this time, warm-up included not.
    pub duration: Option<Duration>,
    /// Stop after this many transactions.
    pub events: Option<u64>,
    /// Time before the measurement, in whole seconds.
    pub warmup_s: u32,
    /// How long after the end to wait for transactions in flight; `None` waits for all of them.
    pub grace: Option<Duration>,
    /// Use prepared statements (the binary protocol).
    pub prepared: bool,
    /// Errors that restart the transaction.
    pub ignore_errors: IgnoreErrors,
    /// Reconnect after this many transactions of a connection; 0 never.
    pub reconnect_every: u32,
    /// Write acknowledged commits.
    pub ledger: Option<LedgerOptions>,
    /// A percentile to report besides the fixed ones (sysbench's `--percentile`).
    pub percentile: f64,
}

impl RunOptions {
    /// sysbench's defaults for a workload: one table of 10,000 rows, one connection, 10 s, the
    /// `special` distribution, seed 1.
    #[must_use]
    pub fn new(workload: Workload) -> Self {
        Self {
            workload,
            schema: Schema::default(),
            mix: Mix::default(),
            distribution: Distribution::default(),
            seed: 1,
            connections: 1,
            loops: None,
            arrival: Arrival::Closed,
            backlog: DEFAULT_BACKLOG,
            duration: Some(Duration::from_secs(10)),
            events: None,
            warmup_s: 0,
            grace: None,
            prepared: true,
            ignore_errors: IgnoreErrors::default(),
            reconnect_every: 0,
            ledger: None,
            percentile: 95.0,
        }
    }

    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// The first option that is wrong.
    pub fn check(&self) -> Result<(), OptionError> {
        self.schema.check()?;
        in_range("table-size", self.schema.table_size, 1, MAX_TABLE_SIZE, "1 to 2147483647 rows for a run")?;
        in_range("threads", self.connections, 1, 100_000, "1 to 100000 connections")?;
        in_range("range-size", self.mix.range_size, 1, MAX_TABLE_SIZE, "1 to 2147483647 rows")?;
        if let Some(loops) = self.loops {
            in_range("loop-threads", loops, 1, 1024, "1 to 1024 threads")?;
        }
        if !(0.0..=100.0).contains(&self.percentile) {
            let value = self.percentile.to_string();
            return Err(OptionError::OutOfRange { option: "percentile", value, allowed: "0 to 100" });
        }
        self.distribution.check()?;
        self.check_arrival()?;
        if self.duration.is_none() && self.events.is_none() {
            return Err(OptionError::Contradiction(
                "--time=0 and --events=0 together would never end: give one of them",
            ));
        }
        self.check_ledger()
    }

    fn check_arrival(&self) -> Result<(), OptionError> {
        if let Some(rate) = self.arrival.per_second()
            && !(rate > 0.0 && rate <= MAX_RATE)
        {
            let allowed = "more than 0, at most 10 million transactions a second";
            return Err(OptionError::OutOfRange { option: "rate", value: rate.to_string(), allowed });
        }
        if self.workload == Workload::BulkInsert && self.arrival != Arrival::Closed {
            return Err(OptionError::Contradiction(
                "bulk_insert has no arrival rate: its transactions are rows that share a statement",
            ));
        }
        in_range("backlog", self.backlog, 1, MAX_BACKLOG, "1 to 16777216 waiting transactions")
    }

    fn check_ledger(&self) -> Result<(), OptionError> {
        if self.ledger.is_none() {
            return Ok(());
        }
        if !self.workload.writes() {
            return Err(OptionError::Contradiction("--ledger needs a workload that commits something"));
        }
        if self.workload == Workload::BulkInsert {
            return Err(OptionError::Contradiction("--ledger does not go with bulk_insert"));
        }
        if self.mix.skip_trx && self.workload.is_transaction() {
            return Err(OptionError::Contradiction(
                "--ledger counts transactions: it does not go with --skip-trx=on",
            ));
        }
        Ok(())
    }
}

/// sysbench's queue length.
pub(crate) const DEFAULT_BACKLOG: u32 = 131_072;
const MAX_BACKLOG: u32 = 16_777_216;
const MAX_RATE: f64 = 1e7;

pub(crate) fn in_range(
    option: &'static str,
    value: u32,
    least: u32,
    most: u32,
    allowed: &'static str,
) -> Result<(), OptionError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(OptionError::OutOfRange { option, value: value.to_string(), allowed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_found_by_any_of_its_usual_spellings() {
        for text in ["oltp_read_write", "read_write", "read-write", "oltp_read_write.lua"] {
            assert_eq!(text.parse::<Workload>(), Ok(Workload::ReadWrite));
        }
        assert_eq!("bulk_insert".parse::<Workload>(), Ok(Workload::BulkInsert));
        let error = "oltp_raed".parse::<Workload>().unwrap_err().to_string();
        assert!(error.contains("oltp_read_only"), "{error}");
    }

    #[test]
    fn a_run_that_would_never_end_is_refused() {
        let options = RunOptions { duration: None, ..RunOptions::new(Workload::ReadOnly) };
        assert!(options.check().unwrap_err().to_string().contains("never end"));
    }

    #[test]
    fn a_rate_of_zero_and_a_rate_that_is_no_number_are_refused() {
        for per_second in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let arrival = Arrival::Poisson { per_second };
            let options = RunOptions { arrival, ..RunOptions::new(Workload::ReadOnly) };
            assert!(options.check().is_err(), "{per_second}");
        }
    }

    #[test]
    fn a_password_is_never_printed() {
        let target = Target {
            endpoints: vec![],
            user: "u".into(),
            password: "geheim".into(),
            database: "d".into(),
            tls: None,
        };
        assert!(!format!("{target:?}").contains("geheim"));
    }
}
