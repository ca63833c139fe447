//! The end of a trial with `promote`: the source is killed under its load, and its first replica takes over.
//!
//! The clients' ledger says what the source had acknowledged; the marks on the promoted replica, which each transaction
//! leaves there, say what of it is left.

use std::path::Path;
use std::time::{Duration, Instant};

use ebbtide_load::Cancel;
use ebbtide_load::ledger::{Ledger, LedgerError};
use ebbtide_mysql::Server;
use ebbtide_mysql::replication::{self, Heartbeat};

use super::error::StepError;
use crate::record::Promotion;

/// For so long the load goes on after the measurement, s: the source dies under it.
pub(super) const AFTER_S: u32 = 2;
/// How long a replica may take to apply what it has fetched.
const PATIENCE: Duration = Duration::from_secs(300);

/// Promotes a replica, and counts what is lost. `killed`: when its source ended; `ledger`: what was acknowledged.
///
/// # Errors
/// A replica that is not promoted, and a ledger that cannot be read.
pub(super) fn promote(
    replica: &Server,
    killed: Instant,
    ledger: &Path,
    cancel: &Cancel,
) -> Result<Promotion, StepError> {
    let mut session = replica.session()?;
    replication::promote(&mut session, PATIENCE, cancel)?;
    let applied_s = killed.elapsed().as_secs_f64();
    Heartbeat::open(replica)?.beat(0)?;
    let took_s = killed.elapsed().as_secs_f64();
    session.use_database(ebbtide_load::DATABASE)?;
    let ledger = Ledger::read(ledger).map_err(unread)?;
    let lost = ledger.lost(&mut session).map_err(unread)?;
    Ok(Promotion {
        applied_s,
        took_s,
        acknowledged: ledger.last_by_client().values().sum(),
        lost: lost.iter().map(|of| of.acknowledged - of.recovered).sum(),
        clients: u32::try_from(lost.len()).unwrap_or(u32::MAX),
    })
}

fn unread(error: LedgerError) -> StepError {
    match error {
        LedgerError::Server(error) => error.into(),
        error => StepError::Ledger(error),
    }
}
