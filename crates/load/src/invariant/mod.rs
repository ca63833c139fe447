//! A load whose tables prove what a server kept: the workload for power cuts.
//!
//! What its transactions do, and its tables, are described in [`ebbtide_workload::invariant`]; the event loop of
//! [`crate::execute`] does them. The [`Journal`] knows when each COMMIT was sent and when its OK was read, and with it
//! [`check`] reports which acknowledged commits a recovered server has lost.
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
mod findings;
mod journal;
mod options;
mod prepare;
mod read;
mod running;
mod tally;

pub use check::check;
pub(crate) use check::check_marks;
pub use ebbtide_workload::invariant::Schema;
pub(crate) use findings::SHOWN;
pub use findings::{Evidence, Finding, Findings, Lost, Mark, Rule};
pub use journal::{Expected, Journal, JournalError};
pub(crate) use options::JOURNAL_COMMITS;
pub use options::Options;
pub use prepare::prepare;
pub use read::marks;
pub use running::{PauseHandle, Running, start};
pub(crate) use running::{Plan, launch};
pub use tally::{ClientEnd, InvariantReport, Second};
