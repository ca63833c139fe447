//! A load whose tables prove what a server kept: the workload for power cuts.
//!
//! Every transaction moves an amount between two accounts, raises the counters of three rows, changes a
//! secondary index, writes a history row and drops an old one, and puts its number into its client's
//! mark (the table `ebbtide_ledger`). So whatever set of whole transactions a server has, sums and
//! counters agree with the marks; half a transaction breaks them. The [`Journal`] knows when each COMMIT
//! was sent and when its OK was read, and with it [`check`] says which acknowledged commits a recovered
//! server has lost.
//!
//! ```no_run
//! use std::time::Instant;
//! use ebbtide_load::{Cancel, Endpoint, LoadError, Session, Target, invariant};
//!
//! fn lost_by_a_crash(target: &Target, crash: impl FnOnce()) -> Result<u64, LoadError> {
//!     let schema = invariant::Schema::default();
//!     invariant::prepare(target, &schema, 1, 8, &Cancel::default())?;
//!     let running = invariant::start(&invariant::Options::new(target.clone(), schema.clone(), 8))?;
//!     let journal = running.journal().clone();
//!     let at = Instant::now();
//!     crash();
//!     running.stop();
//!     let expected = journal.at(at).expect("the journal is as long as the run");
//!     let mut session = Session::open(target, &target.endpoints[0])?;
//!     let mut findings = invariant::check(&mut session, &schema, &expected)?;
//!     findings.date(&journal, at);
//!     Ok(findings.lost_commits())
//! }
//! ```

mod check;
mod client;
mod findings;
mod journal;
mod options;
mod prepare;
mod read;
mod running;
mod schema;
mod tally;
mod transfer;

pub use check::check;
pub use findings::{Evidence, Finding, Findings, Lost, Mark, Rule};
pub use journal::{Expected, Journal, JournalError};
pub use options::Options;
pub use prepare::prepare;
pub use read::marks;
pub use running::{Brake, Running, start};
pub use schema::Schema;
pub use tally::{ClientEnd, InvariantReport, Second};
