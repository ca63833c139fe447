//! What a run of any workload found out, for the answer and for sysbench's summary.

use crate::{
    Bucket, ClientOptions, ClientUse, Ended, ErrorCount, Fairness, Generator, Latency, Omission, OpenLoop,
    Outcome, RunReport, ServerInfo, StatementLatency, Totals,
};

/// What a summary shows, whatever the workload was.
pub struct LoadSummary<'a> {
    pub(super) clients: &'a ClientOptions,
    pub(super) server: &'a ServerInfo,
    pub(super) ended: &'a Ended,
    pub(super) elapsed_s: f64,
    pub(super) totals: &'a Totals,
    pub(super) response: &'a Latency,
    /// The percentile of sysbench's lines ([`ClientOptions::percentile`]), us.
    pub(super) percentile_us: f64,
    pub(super) service: Option<&'a Latency>,
    pub(super) omission: Option<&'a Omission>,
    pub(super) open_loop: Option<&'a OpenLoop>,
    pub(super) generator: &'a Generator,
    pub(super) client: &'a ClientUse,
    pub(super) fairness: &'a Fairness,
    pub(super) statements: &'a [StatementLatency],
    pub(super) errors: &'a [ErrorCount],
    pub(super) ledger_records: u64,
    pub(super) histogram: &'a [Bucket],
}

/// The fields that the report of a run and the outcome of an execution have both.
macro_rules! load_summary {
    ($of:expr, $clients:expr, $ledger_records:expr) => {
        LoadSummary {
            clients: $clients,
            server: &$of.server,
            ended: &$of.ended,
            elapsed_s: $of.elapsed_s,
            totals: &$of.totals,
            response: &$of.response,
            percentile_us: $of.percentile_us,
            service: $of.service.as_ref(),
            omission: $of.omission.as_ref(),
            open_loop: $of.open_loop.as_ref(),
            generator: &$of.generator,
            client: &$of.client,
            fairness: &$of.fairness,
            statements: &$of.statements,
            errors: &$of.errors,
            ledger_records: $ledger_records,
            histogram: &$of.histogram,
        }
    };
}

impl<'a> LoadSummary<'a> {
    /// Of a workload of sysbench.
    #[must_use]
    pub fn of_run(report: &'a RunReport) -> Self {
        load_summary!(report, &report.options.clients, report.ledger_records)
    }

    pub(super) fn of_outcome(outcome: &'a Outcome, clients: &'a ClientOptions, ledger_records: u64) -> Self {
        load_summary!(outcome, clients, ledger_records)
    }
}
