//! What the load of a stint does, and how the tables of a recovered server are checked: with invariants, or TPC-C.

use std::time::Duration;

use ebbtide_lab::experiment::{Arm, DataPlan};
use ebbtide_load::invariant::{self, Expected, Findings, Options, Running, Schema};
use ebbtide_load::tpcc::{self, MarkedOptions};
use ebbtide_load::{Cancel, LoadError, Session, Target};

/// How long transactions in flight are waited for.
const GRACE: Duration = Duration::from_secs(2);

/// The load of a stint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StintWorkload {
    /// The load with invariants, on these tables.
    Invariants(Schema),
    /// TPC-C with marks.
    Tpcc,
}

impl StintWorkload {
    /// The load on these data.
    pub(super) fn of(data: DataPlan) -> Self {
        match data.warehouses {
            Some(_) => Self::Tpcc,
            None => Self::Invariants(data.invariants().schema),
        }
    }

    /// Starts it: each client goes on after its mark.
    pub(super) fn start(&self, target: Target, arm: &Arm, seed: u64) -> Result<Running, LoadError> {
        let clients = arm.load.connections;
        match self {
            Self::Invariants(schema) => {
                let options = Options::new(target, schema.clone(), clients);
                invariant::start(&Options { seed, grace: GRACE, ..options })
            }
            Self::Tpcc => {
                let (isolation, wait, statements) = (arm.load.isolation, arm.load.wait, arm.load.statements);
                tpcc::start(&MarkedOptions {
                    target,
                    clients,
                    seed,
                    isolation,
                    wait,
                    statements,
                    grace: GRACE,
                })
            }
        }
    }

    /// Checks the tables of a server on which nobody works against what the clients knew.
    pub(super) fn check(
        &self,
        target: &Target,
        expected: &[Expected],
        cancel: &Cancel,
    ) -> Result<Findings, LoadError> {
        match self {
            Self::Invariants(schema) => {
                let mut session = Session::open(target, target.endpoint(0)?)?;
                invariant::check(&mut session, schema, expected)
            }
            Self::Tpcc => tpcc::check_marked(target, expected, cancel),
        }
    }
}
