//! Which workload the tables of an arm belong to: the one place that decides it.

use ebbtide_load::tpcc::TpccPrepareOptions;
use ebbtide_load::{Distribution, Mix, Schema, Workload};
use ebbtide_workload::Description;
use ebbtide_workload::invariant::{self, Invariants, MAX_CLIENTS};
use ebbtide_workload::sysbench::Sysbench;
use ebbtide_workload::tpcc::Tpcc;

use super::{Arm, DATA_SEED, DataPlan};

/// How often a transaction is preceded by one that is rolled back on purpose: one in so many.
const ABORT_EVERY: u32 = 16;

impl DataPlan {
    /// sysbench's tables.
    #[must_use]
    pub fn schema(&self) -> Schema {
        Schema { tables: self.tables, table_size: self.rows, lengths: self.lengths, ..Schema::default() }
    }

    /// TPC-C as its tables are loaded; none where they are sysbench's.
    #[must_use]
    pub fn tpcc(&self) -> Option<Tpcc> {
        let warehouses = self.warehouses?;
        Some(TpccPrepareOptions { warehouses, seed: DATA_SEED, ..TpccPrepareOptions::new() }.tpcc())
    }

    /// Rows of all tables together, about.
    #[must_use]
    pub fn all_rows(&self) -> u64 {
        match self.tpcc() {
            Some(tpcc) => tpcc.describe().rows(),
            None => u64::from(self.tables) * u64::from(self.rows),
        }
    }

    /// The tables with invariants, for as many clients as any arm may have.
    #[must_use]
    pub fn invariants(&self) -> Invariants {
        let schema = invariant::Schema { rows: self.rows, ..invariant::Schema::default() };
        Invariants { schema, clients: MAX_CLIENTS, abort_every: ABORT_EVERY }
    }
}

impl Arm {
    /// The statements that age its tables; none where they stay as they were loaded.
    #[must_use]
    pub fn ageing(&self, data: DataPlan) -> Vec<String> {
        if data.aged { self.tables(data).ageing() } else { Vec::new() }
    }

    /// The workload whose tables it starts from: their names, sizes and rows, what loads, ages and warms them.
    #[must_use]
    pub fn tables(&self, data: DataPlan) -> Description {
        match (&self.crash, data.tpcc()) {
            (Some(_), Some(tpcc)) => Tpcc { marks: MAX_CLIENTS, ..tpcc }.describe(),
            (None, Some(tpcc)) => tpcc.describe(),
            (Some(_), None) => data.invariants().describe(),
            (None, None) => Sysbench {
                workload: Workload::ReadWrite,
                schema: data.schema(),
                mix: Mix::default(),
                // The rows serve loads with every distribution.
                distribution: Distribution::Uniform,
                clients: 1,
                marks: false,
            }
            .describe(),
        }
    }
}
