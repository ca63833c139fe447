//! What the load of a trial measured, whatever the workload.

use ebbtide_load::tpcc::{ConsistencyReport, TpccReport};
use ebbtide_load::{
    Bucket, ClientUse, Ended, ErrorCount, Generator, Latency, Omission, OpenLoop, RunReport, Sample, Totals,
};
use serde::{Deserialize, Serialize};

/// What the load of a trial measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LoadReport {
    /// TPC-C.
    Tpcc(Box<TpccLoad>),
    /// One of sysbench's workloads.
    Sysbench(Box<RunReport>),
}

/// A load of TPC-C, and what its tables were found to be afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TpccLoad {
    /// What the load measured.
    pub tpcc: TpccReport,
    /// The twelve consistency conditions after it; none where they were not checked.
    pub consistency: Option<ConsistencyReport>,
}

impl From<RunReport> for LoadReport {
    fn from(report: RunReport) -> Self {
        Self::Sysbench(Box::new(report))
    }
}

impl From<TpccReport> for LoadReport {
    fn from(tpcc: TpccReport) -> Self {
        Self::Tpcc(Box::new(TpccLoad { tpcc, consistency: None }))
    }
}

/// A method for each figure that all reports have.
macro_rules! figures {
    ($($(#[$text:meta])* $field:ident: $kind:ty),+ $(,)?) => {
        impl LoadReport {$(
            $(#[$text])*
            #[must_use]
            pub fn $field(&self) -> &$kind {
                match self {
                    Self::Tpcc(load) => &load.tpcc.outcome.$field,
                    Self::Sysbench(report) => &report.$field,
                }
            }
        )+}
    };
}

figures! {
    /// Why it ended.
    ended: Ended,
    /// The measured time, s.
    elapsed_s: f64,
    /// Counts.
    totals: Totals,
    /// Server errors by code.
    errors: Vec<ErrorCount>,
    /// Response time of all transactions.
    response: Latency,
    /// Closed loop: what it hides.
    omission: Option<Omission>,
    /// Open loop: the arrivals.
    open_loop: Option<OpenLoop>,
    /// How well the generator kept up.
    generator: Generator,
    /// What the generator took.
    client: ClientUse,
    /// Second by second; empty in a trial, which has its own seconds.
    samples: Vec<Sample>,
    /// The whole histogram of response times.
    histogram: Vec<Bucket>,
}

impl LoadReport {
    /// What TPC-C measured; none for another workload.
    #[must_use]
    pub fn tpcc(&self) -> Option<&TpccLoad> {
        match self {
            Self::Tpcc(load) => Some(load),
            Self::Sysbench(_) => None,
        }
    }

    /// Transactions a second.
    #[must_use]
    pub fn tps(&self) -> f64 {
        let (events, elapsed_s) = (self.totals().events, *self.elapsed_s());
        if elapsed_s > 0.0 { events as f64 / elapsed_s } else { 0.0 }
    }

    /// Forgets the samples: a trial has its own seconds.
    pub(crate) fn drop_samples(&mut self) {
        match self {
            Self::Tpcc(load) => load.tpcc.outcome.samples = Vec::new(),
            Self::Sysbench(report) => report.samples = Vec::new(),
        }
    }

    /// The consistency conditions of TPC-C that do not hold, in words; none where all hold or none was checked.
    #[must_use]
    pub fn inconsistency(&self) -> Option<String> {
        inconsistency(self.tpcc()?.consistency.as_ref()?)
    }
}

/// The consistency conditions that do not hold, in words; None where all do.
pub(crate) fn inconsistency(found: &ConsistencyReport) -> Option<String> {
    let broken = found.conditions.iter().filter(|condition| !condition.holds);
    let words = broken.map(|condition| {
        let first = condition.first_rows.first().map(|row| format!(", such as {row}")).unwrap_or_default();
        format!(
            "consistency condition {} of TPC-C does not hold ({}): rows at fault: {}{first}",
            condition.condition, condition.about, condition.rows_at_fault,
        )
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("; "))
}
