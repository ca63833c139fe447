//! What to run, against which server: plain data, checked once.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ebbtide_workload::sysbench::{MAX_TABLE_SIZE, Mix, Schema, Sysbench, Workload};
use ebbtide_workload::{Distribution, OptionError, in_range};
use serde::{Deserialize, Serialize};

use crate::execution::{Arrival, DEFAULT_BACKLOG, Execution, IgnoreErrors, Refused};

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

impl Target {
    /// Where a client connects: the endpoints are used in turn.
    ///
    /// # Errors
    /// There is none.
    pub fn endpoint(&self, client: u32) -> Result<&Endpoint, OptionError> {
        let client = usize::try_from(client).expect("a u32 fits");
        self.endpoints.get(client % self.endpoints.len().max(1)).ok_or(OptionError::Contradiction(
            "no server is named: give --mysql-socket, or --mysql-host and --mysql-port",
        ))
    }
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

/// The clients of a run, of whatever workload: how many, when they start transactions, and when they end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientOptions {
    /// Seed of everything random.
    pub seed: u64,
    /// Connections (sysbench's threads); with TPC-C's waits, terminals.
    pub connections: u32,
    /// Event-loop threads; `None` chooses one per 16 connections, at most half of the processors.
    pub loops: Option<u32>,
    /// The round trip of an emulated network between clients and server: 0 to 10 s. Left out where there is none.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub round_trip: Duration,
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
    /// A percentile to report besides the fixed ones (sysbench's `--percentile`).
    pub percentile: f64,
}

impl Default for ClientOptions {
    /// sysbench's defaults: one connection for 10 s, seed 1.
    fn default() -> Self {
        Self {
            seed: 1,
            connections: 1,
            loops: None,
            round_trip: Duration::ZERO,
            arrival: Arrival::Closed,
            backlog: DEFAULT_BACKLOG,
            duration: Some(Duration::from_secs(10)),
            events: None,
            warmup_s: 0,
            grace: None,
            prepared: true,
            ignore_errors: IgnoreErrors::default(),
            reconnect_every: 0,
            percentile: 95.0,
        }
    }
}

impl ClientOptions {
    /// How they execute a workload.
    #[must_use]
    pub fn execution(&self) -> Execution {
        Execution {
            seed: self.seed,
            connections: self.connections,
            loops: self.loops,
            round_trip: self.round_trip,
            arrival: self.arrival,
            backlog: self.backlog,
            duration: self.duration,
            events: self.events,
            warmup_s: self.warmup_s,
            grace: self.grace,
            prepared: self.prepared,
            refused: Refused::EndsRun { unless: self.ignore_errors.clone() },
            reconnect_every: self.reconnect_every,
            percentile: self.percentile,
            ..Execution::default()
        }
    }

    /// Checks ranges, and that the run ends.
    ///
    /// # Errors
    /// The first option that is wrong.
    pub fn check(&self) -> Result<(), OptionError> {
        self.execution().check()?;
        if self.duration.is_none() && self.events.is_none() {
            return Err(OptionError::Contradiction(
                "--time=0 and --events=0 together would never end: give one of them",
            ));
        }
        Ok(())
    }
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
    /// The clients that execute it.
    #[serde(flatten)]
    pub clients: ClientOptions,
    /// Write acknowledged commits.
    pub ledger: Option<LedgerOptions>,
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
            clients: ClientOptions::default(),
            ledger: None,
        }
    }

    /// The workload as plain data.
    #[must_use]
    pub fn sysbench(&self) -> Sysbench {
        Sysbench {
            workload: self.workload,
            schema: self.schema.clone(),
            mix: self.mix.clone(),
            distribution: self.distribution,
            clients: self.clients.connections,
            marks: self.ledger.as_ref().is_some_and(|ledger| ledger.marks),
        }
    }

    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// The first option that is wrong.
    pub fn check(&self) -> Result<(), OptionError> {
        self.schema.check()?;
        in_range("table-size", self.schema.table_size, 1, MAX_TABLE_SIZE, "1 to 2147483647 rows for a run")?;
        in_range("range-size", self.mix.range_size, 1, MAX_TABLE_SIZE, "1 to 2147483647 rows")?;
        self.distribution.check()?;
        self.sysbench().check()?;
        self.clients.check()?;
        if self.workload == Workload::BulkInsert && self.clients.arrival != Arrival::Closed {
            return Err(OptionError::Contradiction(
                "bulk_insert has no arrival rate: its transactions are rows that share a statement",
            ));
        }
        self.check_ledger()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_would_never_end_is_refused() {
        let mut options = RunOptions::new(Workload::ReadOnly);
        options.clients.duration = None;
        assert!(options.check().unwrap_err().to_string().contains("never end"));
    }

    #[test]
    fn a_rate_of_zero_and_a_rate_that_is_no_number_are_refused() {
        for per_second in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut options = RunOptions::new(Workload::ReadOnly);
            options.clients.arrival = Arrival::Poisson { per_second };
            assert!(options.check().is_err(), "{per_second}");
        }
    }

    #[test]
    fn clients_take_the_endpoints_in_turn_and_need_one() {
        let endpoints = ["a", "b", "c"].map(|name| Endpoint::Unix(name.into()));
        let target = |endpoints: &[Endpoint]| Target {
            endpoints: endpoints.to_vec(),
            user: "u".into(),
            password: String::new(),
            database: "d".into(),
            tls: None,
        };
        let three = target(&endpoints);
        let places: Vec<_> = (0..4).map(|client| three.endpoint(client).unwrap()).collect();
        assert_eq!(places, [&endpoints[0], &endpoints[1], &endpoints[2], &endpoints[0]]);
        assert!(target(&[]).endpoint(0).unwrap_err().to_string().contains("--mysql-socket"));
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
