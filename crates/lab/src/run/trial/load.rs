//! What the load of a trial runs, by its workload, and the check of TPC-C's tables after it.

use std::path::PathBuf;
use std::time::Duration;

use ebbtide_load::tpcc::{self, CheckOptions, TpccOptions};
use ebbtide_load::{ClientOptions, LedgerOptions, RunOptions, Sample, Target};

use super::TrialContext;
use crate::experiment::LoadKind;
use crate::record::LoadReport;
use crate::run::error::StepError;
use crate::run::event::Phase;
use crate::run::{proc, promotion};

/// How long transactions that are in flight at the end are waited for. The server is killed then.
const GRACE: Duration = Duration::from_secs(2);
/// The name of the ledger.
const LEDGER: &str = "ledger";

impl TrialContext<'_> {
    fn clients(&self) -> ClientOptions {
        let (plan, warmup) = (&self.planned.arm.load, &self.planned.arm.warmup);
        let after_s = if self.planned.arm.topology.promote { promotion::AFTER_S } else { 0 };
        ClientOptions {
            seed: self.seed(),
            connections: plan.connections,
            round_trip: Duration::from_micros(plan.round_trip_us.into()),
            arrival: plan.arrival,
            duration: Some(Duration::from_secs((self.planned.arm.measure_s + after_s).into())),
            warmup_s: warmup.lead_in_s + warmup.settle_s,
            grace: Some(GRACE),
            ..ClientOptions::default()
        }
    }

    /// Where the load writes what was acknowledged, where that is compared with a promoted replica.
    pub(super) fn ledger(&self) -> Result<PathBuf, StepError> {
        let failed = |source| StepError::Io { action: "make a directory for the ledger".into(), source };
        Ok(self.lab.files_dir().map_err(failed)?.path().join(LEDGER))
    }

    fn new_ledger(&self) -> Result<LedgerOptions, StepError> {
        let removed = self.lab.files_dir().and_then(|dir| dir.remove_all(LEDGER));
        removed.map_err(|source| StepError::Io {
            action: "remove the ledger of another trial".into(),
            source,
        })?;
        Ok(LedgerOptions { path: self.ledger()?, marks: true })
    }

    /// Runs the load to its end.
    pub(super) fn run_load(
        &self,
        target: &Target,
        on_sample: &mut dyn FnMut(&Sample),
    ) -> Result<LoadReport, StepError> {
        let (plan, data) = (&self.planned.arm.load, self.experiment.data);
        let ledger = self.planned.arm.topology.promote.then(|| self.new_ledger()).transpose()?;
        match plan.workload {
            LoadKind::Tpcc => {
                let options = TpccOptions {
                    warehouses: data.warehouses.unwrap_or(1),
                    table_sets: 0,
                    isolation: plan.isolation,
                    wait: plan.wait,
                    statements: plan.statements,
                    clients: self.clients(),
                    ledger,
                };
                Ok(tpcc::run(target, &options, self.cancel, on_sample)?.into())
            }
            LoadKind::Sysbench(workload) => {
                let options = RunOptions {
                    schema: data.schema(),
                    mix: plan.mix.clone(),
                    distribution: plan.distribution,
                    clients: self.clients(),
                    ledger,
                    ..RunOptions::new(workload)
                };
                Ok(ebbtide_load::run(target, &options, self.cancel, on_sample)?.into())
            }
        }
    }

    /// Checks the consistency conditions of TPC-C on a server; another load has none.
    pub(super) fn with_consistency(
        &self,
        mut report: LoadReport,
        target: &Target,
    ) -> Result<LoadReport, StepError> {
        if let LoadReport::Tpcc(load) = &mut report {
            self.proceed()?;
            self.phase(Phase::Checking);
            let options = CheckOptions {
                warehouses: self.experiment.data.warehouses,
                table_sets: 0,
                threads: proc::cpus().clamp(1, 8),
            };
            load.consistency = Some(tpcc::check(target, options, self.cancel, &|_, _| ())?);
        }
        Ok(report)
    }
}
