//! Making a replica the server that takes writes, after its source is gone.

use std::time::{Duration, Instant};

use ebbtide_load::{Cancel, Session};

use super::following::ReplicaLost;
use super::status::{Status, status};
use super::words::Words;

/// How often it is asked how far a replica is.
const LOOK: Duration = Duration::from_millis(5);
/// The source may have died in the middle of a transaction: the part that was fetched is never applied, and the positions
/// never meet. An applier that says that it has read everything, and does not get on for so long, is done.
const STANDSTILL: Duration = Duration::from_secs(1);

/// Has a replica apply what it has fetched, for `patience` at most, and take writes then. What it has not fetched from its
/// source is lost to it.
///
/// # Errors
/// [`ReplicaLost`]; [`ReplicaLost::Behind`] where it has not applied everything in time.
pub fn promote(session: &mut Session, patience: Duration, cancel: &Cancel) -> Result<(), ReplicaLost> {
    let words = Words::of(session);
    session.execute(words.stop_fetching()).map_err(ReplicaLost::Unasked)?;
    wait_until_applied(session, patience, cancel)?;
    for sql in [words.stop(), words.reset_replica(), "SET GLOBAL read_only=0"] {
        session.execute(sql).map_err(ReplicaLost::Unasked)?;
    }
    Ok(())
}

fn wait_until_applied(session: &mut Session, patience: Duration, cancel: &Cancel) -> Result<(), ReplicaLost> {
    let began = Instant::now();
    let mut last = (String::new(), began);
    loop {
        let status = status(session).map_err(ReplicaLost::Unasked)?.ok_or(ReplicaLost::Alone)?;
        if let (false, Some(error)) = (status.applying, &status.apply_error) {
            return Err(ReplicaLost::Stopped { error: error.clone(), place: status.place() });
        }
        if last.0 != status.applied {
            last = (status.applied.clone(), Instant::now());
        }
        if is_done(&status, last.1.elapsed()) {
            return Ok(());
        }
        if cancel.is_cancelled() {
            return Err(ReplicaLost::Cancelled);
        }
        if began.elapsed() > patience {
            return Err(ReplicaLost::Behind { seconds: patience.as_secs(), place: status.place() });
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether a replica has applied everything that it can; `stands` for so long it has not got on.
fn is_done(status: &Status, stands: Duration) -> bool {
    status.applied == status.fetched || (status.has_read_all && stands > STANDSTILL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_done_at_the_end_of_what_it_has_or_before_half_a_transaction() {
        let at = |applied: &str, has_read_all| Status {
            applied: applied.into(),
            fetched: "binlog.000001:900".into(),
            has_read_all,
            ..Status::default()
        };
        let long = STANDSTILL * 2;
        assert!(is_done(&at("binlog.000001:900", false), Duration::ZERO));
        assert!(is_done(&at("binlog.000001:850", true), long), "the rest is half a transaction");
        assert!(!is_done(&at("binlog.000001:850", true), Duration::ZERO));
        assert!(
            !is_done(&at("binlog.000001:850", false), long),
            "a transaction that takes long is not the end"
        );
    }
}
