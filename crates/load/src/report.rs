//! What a run found out. Times are in the unit that a field's name ends with.

use serde::{Deserialize, Serialize};

use crate::latency::{self, Bucket, Latency, Nanos};
use crate::options::RunOptions;

/// The server that was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Its version, in its own words.
    pub version: String,
    /// Where it was reached.
    pub endpoint: String,
    /// Whether the connections were encrypted.
    pub tls: bool,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Ended {
    /// The time was over.
    Time,
    /// The number of transactions was reached.
    Events,
    /// Someone cancelled it.
    Cancelled,
    /// A server error that is not in the list of ignored ones, or a lost connection (2013).
    Failed {
        /// The code.
        code: u16,
        /// The server's words.
        message: String,
        /// The statement's kind, such as `index_update`.
        statement: String,
    },
}

/// Counts over the measured time, in sysbench's classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Finished transactions (sysbench's events).
    pub events: u64,
    /// Statements that return rows.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Statements that did neither: BEGIN, COMMIT, writes that found no row.
    pub other: u64,
    /// Statements that failed with an ignored error; the transaction was started again.
    pub errors: u64,
    /// Connections made again.
    pub reconnects: u64,
}

impl Totals {
    /// Statements of every class.
    #[must_use]
    pub fn queries(&self) -> u64 {
        self.reads + self.writes + self.other
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.events += more.events;
        self.reads += more.reads;
        self.writes += more.writes;
        self.other += more.other;
        self.errors += more.errors;
        self.reconnects += more.reconnects;
    }
}

/// How often a server error came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// The server's code, such as 1213 (deadlock).
    pub code: u16,
    /// How often.
    pub count: u64,
    /// How many of them restarted their transaction.
    pub retried: u64,
    /// The first one's words.
    pub message: String,
}

/// One second of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The end of the interval, in seconds since the start of the measurement; negative or zero
    /// during warm-up.
    pub t_s: f64,
    /// The length of the interval: one second, less for the last one.
    pub length_s: f64,
    /// Whether it belongs to the warm-up, which no total contains.
    pub warmup: bool,
    /// Counts in it.
    pub totals: Totals,
    /// Response time of the transactions that finished in it.
    pub response: Latency,
    /// Open loop: time from the first statement sent to the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Latency>,
    /// Response time at the percentile that the options name, us.
    pub percentile_us: f64,
    /// The generator's own lag, 99th percentile, us.
    pub lag_p99_us: f64,
    /// The generator's own lag, largest, us.
    pub lag_max_us: f64,
    /// Open loop: arrivals that came due in it.
    pub due: u64,
    /// Open loop: arrivals that found the backlog full.
    pub shed: u64,
    /// Open loop: arrivals waiting at its end.
    pub backlog: u64,
    /// Transactions in progress at its end.
    pub in_flight: u64,
    /// Only while a sample is being reported; the report keeps none.
    #[serde(skip)]
    pub(crate) histogram: Option<Box<Nanos>>,
}

impl Sample {
    /// A percentile of the response times of several samples together, us. Takes samples as they are
    /// reported: those of a finished report have no histograms any more, and return 0.
    #[must_use]
    pub fn percentile_of(samples: &[Self], percentile: f64) -> f64 {
        let mut all = latency::fine();
        for histogram in samples.iter().filter_map(|sample| sample.histogram.as_deref()) {
            latency::merge(&mut all, histogram);
        }
        latency::percentile_us(&all, percentile)
    }
}

/// Open loop: what became of the arrivals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// The rate asked for, transactions a second.
    pub offered_per_s: f64,
    /// Arrivals that came due.
    pub due: u64,
    /// Arrivals that found the backlog full and never started.
    pub shed: u64,
    /// Arrivals still waiting or in progress when the time was over. Their wait until then is counted in the
    /// response time, which is less than it would have become.
    pub unfinished: u64,
    /// How long the longest-waiting of them had waited, ms.
    pub oldest_unfinished_ms: f64,
    /// The longest backlog.
    pub longest_backlog: u64,
    /// Transactions that started over 1 ms after they were due, in percent of the started ones.
    pub late_percent: f64,
}

/// Closed loop: what waiting for answers hid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Omission {
    /// The mean time from one transaction of a connection to the next, us: the interval at which a
    /// client that does not wait would have sent.
    pub interval_us: f64,
    /// The response time with the transactions filled in that were not sent while a slow one was
    /// waited for.
    pub corrected: Latency,
    /// Whether the corrected p99 is more than twice the plain one: the plain percentiles hide a stall.
    pub misleading: bool,
}

/// How well the generator kept its own schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Event-loop threads.
    pub loops: u32,
    /// How late the generator was. Open loop: from the time an arrival was due (or the time the loop
    /// meant to wake for it) to the time the loop noticed it. Closed loop: how long an answer that
    /// had come in waited for the loop to handle the ones before it.
    pub lag: Latency,
    /// Why this run measures the generator more than the server, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disqualified: Option<String>,
}

/// What the generator itself took of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientUse {
    /// CPU time of the event-loop threads while measuring, s.
    pub cpu_s: f64,
    /// The same by statement, us.
    pub cpu_us_per_query: f64,
    /// The process's largest resident memory so far, MiB.
    pub peak_rss_mib: f64,
}

/// How evenly the connections were served (sysbench's "Threads fairness").
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Mean of the transactions by connection.
    pub events_mean: f64,
    /// Their standard deviation.
    pub events_stddev: f64,
    /// Mean of the time spent in transactions by connection, s.
    pub busy_mean_s: f64,
    /// Its standard deviation, s.
    pub busy_stddev_s: f64,
}

/// Latency of one kind of statement, to 1%.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementLatency {
    /// The kind, in sysbench's word, such as `point_selects`.
    pub statement: String,
    /// From the statement sent to its whole answer received.
    pub latency: Latency,
}

/// Latency of one kind of transaction, to 1%.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransactionLatency {
    /// The kind.
    pub transaction: String,
    /// The response time of those that finished, committed or rolled back on purpose.
    pub response: Latency,
    /// How many of them were rolled back on purpose.
    pub rolled_back: u64,
}

/// What executing a workload found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The server.
    pub server: ServerInfo,
    /// Why it ended.
    pub ended: Ended,
    /// The measured time, s, warm-up not included.
    pub elapsed_s: f64,
    /// Counts.
    pub totals: Totals,
    /// Transactions whose commit was acknowledged.
    pub commits: u64,
    /// Transactions rolled back on purpose.
    pub rolled_back: u64,
    /// Response time; see [`RunReport::response`].
    pub response: Latency,
    /// Response time at the percentile that was asked for, us.
    pub percentile_us: f64,
    /// Open loop: service time, from the first statement sent to the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Latency>,
    /// Closed loop: what it hides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omission: Option<Omission>,
    /// Open loop: the arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// How well the generator kept up.
    pub generator: Generator,
    /// What the generator took.
    pub client: ClientUse,
    /// How evenly the connections were served.
    pub fairness: Fairness,
    /// By name of statement, in the order of the description.
    pub statements: Vec<StatementLatency>,
    /// By kind of transaction, in the order of the description. Reports put it in their own words.
    #[serde(skip)]
    pub transactions: Vec<TransactionLatency>,
    /// Server errors by code.
    pub errors: Vec<ErrorCount>,
    /// Second by second.
    pub samples: Vec<Sample>,
    /// The whole response-time histogram.
    pub histogram: Vec<Bucket>,
}

/// Everything that a run found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// What was asked for, seed included.
    pub options: RunOptions,
    /// The server.
    pub server: ServerInfo,
    /// Why it ended.
    pub ended: Ended,
    /// The measured time, s, warm-up not included.
    pub elapsed_s: f64,
    /// Counts.
    pub totals: Totals,
    /// Response time: from the intended start in an open loop, from the first statement sent in a
    /// closed one, restarts after errors included.
    pub response: Latency,
    /// Response time at the percentile that the options name, us.
    pub percentile_us: f64,
    /// Open loop: service time, from the first statement sent to the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Latency>,
    /// Closed loop: what it hides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omission: Option<Omission>,
    /// Open loop: the arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// How well the generator kept up.
    pub generator: Generator,
    /// What the generator took.
    pub client: ClientUse,
    /// How evenly the connections were served.
    pub fairness: Fairness,
    /// By kind of statement.
    pub statements: Vec<StatementLatency>,
    /// Server errors by code.
    pub errors: Vec<ErrorCount>,
    /// Commits written to the ledger, those of the warm-up included.
    pub ledger_records: u64,
    /// Second by second.
    pub samples: Vec<Sample>,
    /// The whole response-time histogram.
    pub histogram: Vec<Bucket>,
}

impl RunReport {
    pub(crate) fn new(options: RunOptions, outcome: Outcome, ledger_records: u64) -> Self {
        Self {
            ledger_records,
            options,
            server: outcome.server,
            ended: outcome.ended,
            elapsed_s: outcome.elapsed_s,
            totals: outcome.totals,
            response: outcome.response,
            percentile_us: outcome.percentile_us,
            service: outcome.service,
            omission: outcome.omission,
            open_loop: outcome.open_loop,
            generator: outcome.generator,
            client: outcome.client,
            fairness: outcome.fairness,
            statements: outcome.statements,
            errors: outcome.errors,
            samples: outcome.samples,
            histogram: outcome.histogram,
        }
    }

    /// Transactions a second.
    #[must_use]
    pub fn tps(&self) -> f64 {
        per_second(self.totals.events, self.elapsed_s)
    }

    /// Statements a second.
    #[must_use]
    pub fn qps(&self) -> f64 {
        per_second(self.totals.queries(), self.elapsed_s)
    }
}

pub(crate) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
