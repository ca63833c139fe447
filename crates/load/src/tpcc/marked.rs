//! TPC-C for power cuts: each transaction writes its number into its client's mark, and the tables are checked against
//! what the clients knew.
//!
//! The marks make the load a ledger: an acknowledged transaction whose number is not there was lost. The twelve
//! consistency conditions say whether what is there is whole.

use std::time::{Duration, Instant};

use ebbtide_workload::tpcc::{Constants, Isolation, Scale, Statements, Tpcc, WaitMode};
use ebbtide_workload::{LEDGER_TABLE, Program, invariant::check_clients};

use super::check::{CheckOptions, check};
use super::tables::inspect;
use crate::error::LoadError;
use crate::invariant::{Expected, Finding, Findings, Plan, Rule, Running, check_marks, launch};
use crate::options::Target;
use crate::run::Cancel;
use crate::wire::Session;

/// A load of TPC-C whose transactions are marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedOptions {
    /// The server; its tables were loaded with marks ([`Tpcc::marks`]).
    pub target: Target,
    /// Connections: 1 to 64, and no more than there are marks.
    pub clients: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// The isolation level of all connections.
    pub isolation: Isolation,
    /// Whether clients wait for keying and think times.
    pub wait: WaitMode,
    /// How the work of a transaction is divided into statements.
    pub statements: Statements,
    /// How long transactions in flight are waited for at the end.
    pub grace: Duration,
}

/// Connects all clients and lets them go. Each goes on after its mark.
///
/// # Errors
/// Wrong options, no server, tables that are missing, without marks, or with fewer than there are clients.
pub fn start(options: &MarkedOptions) -> Result<Running, LoadError> {
    check_clients(options.clients)?;
    let tables = inspect(&options.target, 0)?;
    let tpcc = Tpcc {
        warehouses: tables.warehouses,
        table_sets: 0,
        scale: Scale { items: tables.items, customers: tables.customers },
        constants: Constants::of_run(options.seed, tables.c_last),
        foreign_keys: false,
        isolation: options.isolation,
        wait: options.wait,
        statements: options.statements,
        marks: options.clients,
    };
    tpcc.check()?;
    let program = Program::new(tpcc.describe()).expect("our own description is in order");
    // A commit can be seen before it is durable. One of our own, after it, makes both durable alike.
    let durable = ["INSERT INTO", "DELETE FROM"].map(|verb| match verb {
        "INSERT INTO" => format!("{verb} {LEDGER_TABLE} (client, seq) VALUES (-1,0)"),
        _ => format!("{verb} {LEDGER_TABLE} WHERE client=-1"),
    });
    launch(Plan {
        target: options.target.clone(),
        program,
        clients: options.clients,
        seed: options.seed,
        rate: None,
        journal_commits: crate::invariant::JOURNAL_COMMITS,
        grace: options.grace,
        durable: durable.into(),
    })
}

/// Checks a server on which nobody works against what its clients knew when it was cut off: its marks, and the twelve
/// consistency conditions.
///
/// # Errors
/// The server's. They say that the tables could not be read, which is no finding.
pub fn check_marked(target: &Target, expected: &[Expected], cancel: &Cancel) -> Result<Findings, LoadError> {
    let began = Instant::now();
    let mut session = Session::open(target, target.endpoint(0)?)?;
    let mut findings = check_marks(&mut session, expected)?;
    drop(session);
    let report =
        check(target, CheckOptions { warehouses: None, table_sets: 0, threads: 1 }, cancel, &|_, _| ())?;
    let broken = report.conditions.into_iter().filter(|of| !of.holds).map(|of| Finding {
        rule: Rule::Consistency,
        subject: format!("condition {} of clause 3.3.2: {}", of.condition, of.about),
        expected: "no row at fault".into(),
        found: format!("{} rows at fault", of.rows_at_fault),
        rows: of.first_rows.into_iter().take(crate::invariant::SHOWN).collect(),
    });
    findings.findings.extend(broken);
    findings.took_ms = began.elapsed().as_secs_f64() * 1e3;
    Ok(findings)
}
