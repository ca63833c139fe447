//! How a workload is executed, whatever it is.

use std::collections::BTreeSet;
use std::time::Duration;

use ebbtide_workload::{OptionError, in_range};
use serde::{Deserialize, Serialize};

/// How a workload is executed: by how many clients, when, for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Seed of everything random.
    pub seed: u64,
    /// Connections, one for each client: 1 to 100000.
    pub connections: u32,
    /// Event-loop threads, 1 to 1024; `None` chooses one per 16 connections, at most half of the processors.
    pub loops: Option<u32>,
    /// The network between clients and server, as if it had this round trip: whatever a client sends arrives so much
    /// later. At most [`LONGEST_ROUND_TRIP`].
    pub round_trip: Duration,
    /// When transactions start. Pauses of a workload count in a closed loop only.
    pub arrival: Arrival,
    /// Open loop: how many arrivals may wait for a connection before further ones are shed, 1 to 16777216.
    pub backlog: u32,
    /// Stop starting transactions after this time, warm-up included not. None: until the run is cancelled.
    pub duration: Option<Duration>,
    /// Stop after this many transactions.
    pub events: Option<u64>,
    /// Time before the measurement, in whole seconds.
    pub warmup_s: u32,
    /// How long after the end to wait for transactions in flight; `None` waits for all of them.
    pub grace: Option<Duration>,
    /// The same after the run was cancelled or has failed.
    pub cancel_grace: Duration,
    /// Use prepared statements (the binary protocol).
    pub prepared: bool,
    /// What an error of the server does.
    pub refused: Refused,
    /// How long to wait before a transaction that was refused is done again; its latency then counts from there.
    pub retry_after: Duration,
    /// Reconnect after this many transactions of a connection; 0 never.
    pub reconnect_every: u32,
    /// A percentile to report besides the fixed ones, 0 to 100.
    pub percentile: f64,
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

/// What an error of the server does that is not in a list. One that is has its transaction done again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It ends the run. Where a lost connection is in the list, the client connects again.
    EndsRun {
        /// The list.
        unless: IgnoreErrors,
    },
    /// It ends its client; the others go on. So does a lost connection, and every error of a commit.
    EndsClient {
        /// The list.
        unless: IgnoreErrors,
    },
}

impl Default for Execution {
    /// One connection in a closed loop until it is cancelled, with seed 1, prepared statements and sysbench's list of
    /// errors.
    fn default() -> Self {
        Self {
            seed: 1,
            connections: 1,
            loops: None,
            round_trip: Duration::ZERO,
            arrival: Arrival::Closed,
            backlog: DEFAULT_BACKLOG,
            duration: None,
            events: None,
            warmup_s: 0,
            grace: None,
            cancel_grace: Duration::from_secs(1),
            prepared: true,
            refused: Refused::EndsRun { unless: IgnoreErrors::default() },
            retry_after: Duration::ZERO,
            reconnect_every: 0,
            percentile: 95.0,
        }
    }
}

impl Execution {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        in_range("threads", self.connections, 1, 100_000, "1 to 100000 connections")?;
        if let Some(loops) = self.loops {
            in_range("loop-threads", loops, 1, 1024, "1 to 1024 threads")?;
        }
        if self.round_trip > LONGEST_ROUND_TRIP {
            let value = format!("{:?}", self.round_trip);
            return Err(OptionError::OutOfRange { option: "round-trip", value, allowed: "0s to 10s" });
        }
        if !(0.0..=100.0).contains(&self.percentile) {
            let value = self.percentile.to_string();
            return Err(OptionError::OutOfRange { option: "percentile", value, allowed: "0 to 100" });
        }
        if let Some(rate) = self.arrival.per_second()
            && !(rate > 0.0 && rate <= MAX_RATE)
        {
            let allowed = "more than 0, at most 10 million transactions a second";
            return Err(OptionError::OutOfRange { option: "rate", value: rate.to_string(), allowed });
        }
        in_range("backlog", self.backlog, 1, MAX_BACKLOG, "1 to 16777216 waiting transactions")
    }
}

/// The longest round trip of an emulated network.
pub const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(10);
/// sysbench's queue length.
pub(crate) const DEFAULT_BACKLOG: u32 = 131_072;
const MAX_BACKLOG: u32 = 16_777_216;
const MAX_RATE: f64 = 1e7;
