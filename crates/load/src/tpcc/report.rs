//! What a run found out, and what one must know to compare it with another.

use ebbtide_workload::tpcc::{Constants, Statements, TPMC_PER_WAREHOUSE};
use serde::{Deserialize, Serialize};

use super::options::TpccOptions;
use super::tables::TpccTables;
use crate::latency::Latency;
use crate::report::{Outcome, per_second};

/// The kit: which program sends what. Two kits differ in statements by transaction, and so in tpmC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kit {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whose statements it sends, and whether they are batched.
    pub statements: String,
    /// The revision of the specification.
    pub revision: String,
}

/// One of the five transactions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TpccTransaction {
    /// Its name.
    pub transaction: String,
    /// Its share of all finished transactions, percent.
    pub share_pct: f64,
    /// How many were rolled back on purpose, for an unused item. They are finished transactions.
    pub rolled_back: u64,
    /// Response time of those that finished, restarts after errors included.
    pub response: Latency,
    /// The limit of the 90th percentile (clause 5.2.5.7), s.
    pub limit_s: f64,
    /// Whether the 90th percentile is below the limit; null where no such transaction finished.
    pub within_limit: Option<bool>,
}

/// Everything that a run found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TpccReport {
    /// What was asked for, seed included.
    pub options: TpccOptions,
    /// What the tables hold.
    pub tables: TpccTables,
    /// The constants of the non-uniform draws.
    pub constants: Constants,
    /// Which program sent what.
    pub kit: Kit,
    /// New-Order transactions a minute, those that were rolled back on purpose included (clause 5.4.2).
    pub tpmc: f64,
    /// The most that the specification allows for these warehouses: 12.86 for each.
    pub ceiling_tpmc: f64,
    /// tpmC as a share of that, percent. Over 100: the clients did not wait, and the figure is no tpmC of the
    /// specification.
    pub ceiling_pct: f64,
    /// Statements by transaction, COMMIT and ROLLBACK included.
    pub statements_per_transaction: f64,
    /// The five transactions, in the order of the specification.
    pub by_transaction: Vec<TpccTransaction>,
    /// Commits written to the ledger, those of the warm-up included.
    #[serde(default)]
    pub ledger_records: u64,
    /// What the execution found out.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The limits of clause 5.2.5.7, s. A Delivery is executed at once, and must keep the limit of its response.
const LIMITS: [(&str, f64); 5] =
    [("new_order", 5.0), ("payment", 5.0), ("order_status", 5.0), ("delivery", 5.0), ("stock_level", 20.0)];

impl TpccReport {
    pub(super) fn new(
        options: TpccOptions,
        tables: TpccTables,
        constants: Constants,
        outcome: Outcome,
        ledger_records: u64,
    ) -> Self {
        let by_transaction: Vec<TpccTransaction> =
            LIMITS.iter().map(|(name, limit_s)| transaction(name, *limit_s, &outcome)).collect();
        let new_orders = by_transaction.first().map_or(0, |of| of.response.count);
        let tpmc = 60.0 * per_second(new_orders, outcome.elapsed_s);
        let ceiling_tpmc = TPMC_PER_WAREHOUSE * f64::from(tables.all_warehouses());
        Self {
            kit: Kit {
                name: "ebbtide".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                statements: match options.statements {
                    Statements::Single => "tpcc-mysql".into(),
                    Statements::Batched => "tpcc-mysql, batched as by go-tpc".into(),
                },
                revision: "5.11".into(),
            },
            tpmc,
            ceiling_tpmc,
            ceiling_pct: 100.0 * tpmc / ceiling_tpmc,
            statements_per_transaction: outcome.totals.queries() as f64 / outcome.totals.events.max(1) as f64,
            by_transaction,
            ledger_records,
            options,
            tables,
            constants,
            outcome,
        }
    }
}

fn transaction(name: &str, limit_s: f64, outcome: &Outcome) -> TpccTransaction {
    let found = outcome.transactions.iter().find(|of| of.transaction == name);
    let response = found.map_or_else(Latency::default, |of| of.response.clone());
    TpccTransaction {
        transaction: name.into(),
        share_pct: 100.0 * response.count as f64 / outcome.totals.events.max(1) as f64,
        rolled_back: found.map_or(0, |of| of.rolled_back),
        within_limit: (response.count > 0).then_some(response.p90_us < limit_s * 1e6),
        response,
        limit_s,
    }
}
