//! Having the server answer a list of statements: above all the tables read through, the same way
//! before every trial.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ebbtide_load::{Cancel, LoadError, Session, Target};

use super::error::StepError;

/// Connections at most. The volume is without limits then, and the machine has few processors.
const READERS: usize = 4;
/// How often it is looked whether the user has ended the run.
const LOOK: Duration = Duration::from_millis(20);

/// Has the server answer statements, a few at a time. On a cancelled run `stop` is called, which must
/// end the server or its connections, so that those who wait for an answer come back.
pub(super) fn answer_all(
    target: &Target,
    statements: &[String],
    cancel: &Cancel,
    stop: impl FnOnce(),
) -> Result<(), StepError> {
    let next = AtomicUsize::new(0);
    let read = || -> Result<(), LoadError> {
        let mut session = Session::open(target, &target.endpoints[0])?;
        while let Some(sql) = statements.get(next.fetch_add(1, Ordering::Relaxed)) {
            if cancel.is_cancelled() {
                break;
            }
            session.execute(sql)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS.min(statements.len())).map(|_| scope.spawn(read)).collect();
        while !cancel.is_cancelled() && readers.iter().any(|reader| !reader.is_finished()) {
            std::thread::sleep(LOOK);
        }
        if cancel.is_cancelled() {
            stop();
        }
        let joined =
            readers.into_iter().map(|reader| reader.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        let read: Vec<Result<(), LoadError>> = joined.collect();
        if cancel.is_cancelled() {
            return Err(StepError::Cancelled);
        }
        Ok(read.into_iter().collect::<Result<(), LoadError>>()?)
    })
}
