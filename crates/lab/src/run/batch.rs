//! The batch job that runs alongside the load: connections that repeat a statement over the tables, from one
//! second of the measurement to another. It is a workload of its own, which the load executes.

use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use ebbtide_load::{
    Cancel, Commit, Execution, IgnoreErrors, LoadError, Refused, RunObserver, Session, Target,
};
use ebbtide_workload::{Call, Description, Expr, Op, Program, Register, Statement, Step, Table, Transaction};
use parking_lot::{Condvar, Mutex};

use crate::experiment::Batch;
use crate::record::BatchUse;

/// How often a job that waits for its second looks whether it has come.
const LOOK: Duration = Duration::from_millis(20);
/// A statement that cannot succeed must not become a load of its own.
const AFTER_ERROR: Duration = Duration::from_millis(100);
/// How long statements may take to end after the server was asked to kill them.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

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

    /// Waits for a second; returns whether it came.
    pub(super) fn wait_for(&self, second: f64) -> bool {
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
    job: ScopedJoinHandle<'scope, ()>,
    recorder: Arc<Recorder<'scope>>,
}

/// What the connections did.
#[derive(Debug, Default)]
struct Done {
    took: Vec<Duration>,
    errors: u64,
    first_error: Option<String>,
}

/// Follows the job's connections.
struct Recorder<'a> {
    batch: &'a Batch,
    beat: &'a Beat,
    /// The connections, in the server's numbers.
    ids: Mutex<Vec<String>>,
    began: OnceLock<Instant>,
    done: Mutex<Done>,
}

impl Recorder<'_> {
    /// Whether the job is to leave. What is under way then has not failed.
    fn leaves(&self) -> bool {
        self.beat.is_over() || self.batch.end_s.is_some_and(|end| self.beat.has_reached(end.into()))
    }
}

/// A recorder, and the channel to report that the connections are open.
struct Starting<'a> {
    recorder: Arc<Recorder<'a>>,
    sender: mpsc::Sender<Result<(), LoadError>>,
}

impl RunObserver for Starting<'_> {
    fn connected(&self, _client: u32, session: &mut Session) -> Result<(), LoadError> {
        self.recorder.ids.lock().extend(session.value("SELECT CONNECTION_ID()")?);
        Ok(())
    }

    fn ready(&self) {
        // Whoever starts the job waits for it.
        let _ = self.sender.send(Ok(()));
    }

    fn held(&self) -> Option<Duration> {
        if !self.recorder.beat.has_reached(self.recorder.batch.start_s.into()) {
            return Some(LOOK);
        }
        self.recorder.began.get_or_init(Instant::now);
        None
    }

    fn committed(&self, commit: &Commit) -> Result<(), LoadError> {
        self.recorder.done.lock().took.push(Duration::from_nanos(commit.took_ns));
        Ok(())
    }

    fn refused(&self, error: &LoadError, _again: bool) {
        if !self.recorder.leaves() {
            let mut done = self.recorder.done.lock();
            done.errors += 1;
            done.first_error.get_or_insert_with(|| error.to_string());
        }
    }
}

/// Opens the job's connections, which join the load at their second. The measurement's start is
/// taken from the beat.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    batch: &'scope Batch,
    tables: &Description,
    target: &'scope Target,
    beat: &'scope Beat,
) -> Result<Running<'scope>, LoadError> {
    let program =
        Program::new(describe(batch, &tables.tables.iter().flat_map(Table::names).collect::<Vec<_>>()))
            .expect("our own description is in order");
    let execution = Execution {
        connections: batch.connections,
        loops: Some(1),
        refused: Refused::EndsClient { unless: IgnoreErrors::All },
        retry_after: AFTER_ERROR,
        cancel_grace: KILLED_WITHIN,
        ..Execution::default()
    };
    let recorder = Arc::new(Recorder {
        batch,
        beat,
        ids: Mutex::default(),
        began: OnceLock::new(),
        done: Mutex::default(),
    });
    let cancel = Cancel::default();
    let (sender, receiver) = mpsc::channel();
    let (starting, ending) = (Starting { recorder: Arc::clone(&recorder), sender }, cancel.clone());
    let job = scope.spawn(move || {
        let ended = ebbtide_load::execute(target, &program, &execution, &ending, &starting, &mut |_| ());
        if let Err(error) = ended {
            // Nobody listens any more once the job waits for its second.
            let _ = starting.sender.send(Err(error));
        }
    });
    // A job that has panicked sends nothing; its join returns the panic.
    receiver.recv().unwrap_or(Ok(()))?;
    // Opened now: later the server may be too busy to let anyone in.
    let ender = match Session::open(target, &target.endpoints[0]) {
        Ok(ender) => ender,
        Err(error) => {
            cancel.cancel();
            return Err(error);
        }
    };
    let ids = recorder.ids.lock().clone();
    scope.spawn(move || end(ender, &ids, batch, beat, &cancel));
    Ok(Running { job, recorder })
}

/// The register that counts a connection's statements.
const TURN: Register = Register(0);

/// One statement after the other on each table in turn; connections start on different tables.
fn describe(batch: &Batch, tables: &[String]) -> Description {
    let turn = || Expr::Register(TURN);
    let next = Expr::Choose(turn().into(), turn().plus(1).into(), Expr::Client.plus(1).into());
    let statement = |table: &String| Statement {
        prepare: false,
        ..Statement::plain("batch", &batch.sql.replace("{table}", table))
    };
    let steps = [vec![Step::Set(TURN, next)], on_table(0, tables.len(), tables.len())].concat();
    Description {
        name: "batch".into(),
        form: String::new(),
        tables: Vec::new(),
        statements: tables.iter().map(statement).collect(),
        transactions: vec![Transaction::alone("batch", steps)],
        session: Vec::new(),
        opening: Vec::new(),
        undo: None,
        finish: Vec::new(),
        registers: 1,
    }
}

/// The statement whose turn it is, of those from `first` to before `end` of `all`.
fn on_table(first: usize, end: usize, all: usize) -> Vec<Step> {
    if end - first <= 1 {
        return vec![Step::Send(vec![Call::new(first, Vec::new())])];
    }
    let int = |number: usize| Expr::Int(i64::try_from(number).expect("fewer tables than 2^63"));
    let middle = first.midpoint(end);
    let at = Expr::Register(TURN).plus(-1).op(Op::Rem, int(all));
    vec![Step::If(at.op(Op::Less, int(middle)), on_table(first, middle, all), on_table(middle, end, all))]
}

impl Running<'_> {
    /// What the job got done. Call it when the server is gone, or the load over and the beat ended.
    pub(super) fn join(self, measured_from: Option<Instant>, batch: &Batch, measured_s: f64) -> BatchUse {
        // What was done before a panic is kept.
        let _ = self.job.join();
        let done = std::mem::take(&mut *self.recorder.done.lock());
        let took: Vec<f64> = done.took.iter().map(Duration::as_secs_f64).collect();
        let since = |at: Instant| measured_from.map(|from| at.saturating_duration_since(from).as_secs_f64());
        BatchUse {
            began_s: self.recorder.began.get().copied().and_then(since),
            ended_s: batch.end_s.map_or(measured_s, |end| f64::from(end).min(measured_s)),
            statements: u64::try_from(took.len()).unwrap_or(u64::MAX),
            // The sum of no numbers at all is -0.
            mean_s: took.iter().sum::<f64>().max(0.0) / (took.len().max(1) as f64),
            max_s: took.iter().copied().fold(0.0, f64::max),
            errors: done.errors,
            first_error: done.first_error,
        }
    }
}

/// Ends the job when it is to leave, and what is under way.
fn end(mut session: Session, ids: &[String], batch: &Batch, beat: &Beat, cancel: &Cancel) {
    beat.wait_for_end(batch.end_s.map(f64::from));
    cancel.cancel();
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

    #[test]
    fn connections_take_the_tables_in_turn_from_different_ones_on() {
        use ebbtide_workload::{Next, Play, Situation, UniqueIds};
        let batch = Batch { start_s: 0, end_s: None, connections: 2, sql: "CHECKSUM TABLE {table}".into() };
        let tables: Vec<String> = (1..=5).map(|table| format!("t{table}")).collect();
        let program = Program::new(describe(&batch, &tables)).unwrap();
        let unique = UniqueIds::new(1);
        let texts = |client: u32| {
            let situation = Situation { client, sequence: 1, unique: &unique };
            let mut play = Play::new(&program, 1, client.into());
            let mut texts = Vec::new();
            for _ in 0..6 {
                play.choose(&program);
                let Next::Send(calls) = play.next(&program, &situation) else { panic!() };
                texts.push(program.statement(program.call(calls.start)).text.clone());
                assert_eq!(play.next(&program, &situation), Next::Done);
            }
            texts.join(" ").replace("CHECKSUM TABLE ", "")
        };
        assert_eq!(texts(0), "t1 t2 t3 t4 t5 t1");
        assert_eq!(texts(8), "t4 t5 t1 t2 t3 t4");
    }
}
