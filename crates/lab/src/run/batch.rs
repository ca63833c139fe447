//! The batch job beside the load: connections that repeat a statement over the tables, from one
//! second of the measurement to another.

use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use ebbtide_load::{LoadError, Session, Target};
use parking_lot::{Condvar, Mutex};

use crate::experiment::Batch;
use crate::record::BatchUse;

/// The second that the load has reached, for those who wait for one.
#[derive(Debug, Default)]
pub(super) struct Beat {
    reached: Mutex<Reached>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    /// Seconds of the measurement; none before it.
    second: Option<f64>,
    over: bool,
}

impl Beat {
    /// A second of the measurement is reached, 0 at its start.
    pub(super) fn reach(&self, second: f64) {
        self.reached.lock().second = Some(second);
        self.changed.notify_all();
    }

    /// There will be no further second.
    pub(super) fn end(&self) {
        self.reached.lock().over = true;
        self.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.reached.lock().over
    }

    /// Waits for a second; says whether it came.
    fn wait_for(&self, second: f64) -> bool {
        let mut reached = self.reached.lock();
        loop {
            if reached.second.is_some_and(|now| now >= second) {
                return true;
            }
            if reached.over {
                return false;
            }
            self.changed.wait(&mut reached);
        }
    }

    /// Waits for the end, or for a second where one is given.
    fn wait_for_end(&self, second: Option<f64>) {
        self.wait_for(second.unwrap_or(f64::INFINITY));
    }
}

/// A job whose connections are open and wait for their second.
pub(super) struct Running<'scope> {
    connections: Vec<ScopedJoinHandle<'scope, Done>>,
}

/// What one connection did.
#[derive(Debug, Default)]
struct Done {
    began: Option<Instant>,
    took: Vec<Duration>,
    errors: u64,
    first_error: Option<String>,
}

/// Opens the job's connections, which join the load at their second. The measurement's start is
/// taken from the beat.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    batch: &'scope Batch,
    tables: u32,
    target: &'scope Target,
    beat: &'scope Beat,
) -> Result<Running<'scope>, LoadError> {
    let mut connections = Vec::new();
    let mut ids = Vec::new();
    for connection in 0..batch.connections {
        let mut session = Session::open(target, &target.endpoints[0])?;
        ids.extend(session.value("SELECT CONNECTION_ID()")?);
        connections.push(scope.spawn(move || repeat(session, batch, connection, tables, beat)));
    }
    // Opened now: later the server may be too busy to let anyone in.
    let ender = Session::open(target, &target.endpoints[0])?;
    scope.spawn(move || end(ender, &ids, batch, beat));
    Ok(Running { connections })
}

impl Running<'_> {
    /// What the job got done. Call it when the server is gone, or the load over and the beat ended.
    pub(super) fn join(self, measured_from: Option<Instant>, batch: &Batch, measured_s: f64) -> BatchUse {
        let joined = self.connections.into_iter().map(|connection| connection.join().unwrap_or_default());
        let done: Vec<Done> = joined.collect();
        let took: Vec<f64> = done.iter().flat_map(|done| &done.took).map(Duration::as_secs_f64).collect();
        let began = done.iter().filter_map(|done| done.began).min();
        let since = |at: Instant| measured_from.map(|from| at.saturating_duration_since(from).as_secs_f64());
        BatchUse {
            began_s: began.and_then(since),
            ended_s: batch.end_s.map_or(measured_s, |end| f64::from(end).min(measured_s)),
            statements: u64::try_from(took.len()).unwrap_or(u64::MAX),
            // The sum of no numbers at all is -0.
            mean_s: took.iter().sum::<f64>().max(0.0) / (took.len().max(1) as f64),
            max_s: took.iter().copied().fold(0.0, f64::max),
            errors: done.iter().map(|done| done.errors).sum(),
            first_error: done.into_iter().find_map(|done| done.first_error),
        }
    }
}

/// Repeats the statement; connections start on different tables.
fn repeat(mut session: Session, batch: &Batch, connection: u32, tables: u32, beat: &Beat) -> Done {
    let mut done = Done::default();
    if !beat.wait_for(batch.start_s.into()) {
        return done;
    }
    done.began = Some(Instant::now());
    let leaves = || beat.is_over() || batch.end_s.is_some_and(|end| beat.has_reached(end.into()));
    let mut table = connection % tables.max(1);
    while !leaves() {
        let sql = batch.sql.replace("{table}", &format!("sbtest{}", table + 1));
        let began = Instant::now();
        match session.execute(&sql) {
            Ok(_) => done.took.push(began.elapsed()),
            // Its end came while it was under way.
            Err(_) if leaves() => break,
            Err(error) => {
                done.errors += 1;
                let lost = error.code().is_none();
                done.first_error.get_or_insert_with(|| error.to_string());
                if lost {
                    break;
                }
                // A statement that cannot succeed must not become a load of its own.
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        table = (table + 1) % tables.max(1);
    }
    done
}

/// Ends what is under way when the job is to leave.
fn end(mut session: Session, ids: &[String], batch: &Batch, beat: &Beat) {
    beat.wait_for_end(batch.end_s.map(f64::from));
    for id in ids {
        // It may have ended by itself, or the server be gone.
        let _ = session.execute(&format!("KILL {id}"));
    }
}

impl Beat {
    fn has_reached(&self, second: f64) -> bool {
        self.reached.lock().second.is_some_and(|now| now >= second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_for_a_second_get_it_and_those_for_a_later_one_the_end() {
        let beat = Beat::default();
        std::thread::scope(|scope| {
            let [early, late] = [2.0, 9.0].map(|second| {
                let beat = &beat;
                scope.spawn(move || beat.wait_for(second))
            });
            beat.reach(0.0);
            assert!(!beat.has_reached(2.0));
            beat.reach(2.5);
            beat.end();
            assert!(early.join().unwrap());
            assert!(!late.join().unwrap());
        });
    }
}
