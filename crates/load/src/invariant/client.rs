//! One client: a connection and the thread that works on it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::error::LoadError;
use crate::wire::Session;

use super::running::Shared;
use super::tally::ClientEnd;
use super::transfer::{Fate, Statement, Transfer, abort_comes_first};

/// Deadlock, lock wait timeout, and MariaDB's "record has changed since last read": the transaction is
/// over or is ended, and done again under the same number.
const RETRIED: [u16; 3] = [1213, 1205, 1020];

/// How often a client that is held back looks whether it may go on.
const HELD: Duration = Duration::from_millis(2);

/// A client at work.
#[derive(Debug)]
pub(super) struct Client {
    number: u32,
    session: Session,
    /// The last sequence number that the server has of it.
    seq: u64,
    shared: Arc<Shared>,
}

/// What a transaction ended with.
enum Step {
    Done,
    /// The end was asked for while it was being retried.
    Stopped,
}

/// Makes a connection that never commits by itself: statements can then be sent in one go, and what
/// follows a failed one is rolled back with it.
pub(super) fn set_up(session: &mut Session) -> Result<(), LoadError> {
    session.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    // MariaDB's SIMULTANEOUS_ASSIGNMENT would compute checksums of old values.
    session.execute("SET SESSION sql_mode='STRICT_ALL_TABLES'")?;
    session.execute("SET SESSION autocommit=0").map(drop)
}

impl Client {
    pub(super) fn new(number: u32, session: Session, seq: u64, shared: Arc<Shared>) -> Self {
        Self { number, session, seq, shared }
    }

    /// Works until the end is asked for or something goes wrong, which is counted.
    pub(super) fn run(mut self) {
        let pace = self.shared.pace(self.number);
        let mut turn = 0;
        while let Some(due) = self.next_turn(pace, turn) {
            turn += 1;
            let seq = self.seq + 1;
            match self.transaction(seq, due) {
                Ok(Step::Done) => self.seq = seq,
                Ok(Step::Stopped) => return,
                Err((error, in_doubt)) => return self.end(&error, in_doubt),
            }
        }
    }

    fn end(&self, error: &LoadError, in_doubt: Option<u64>) {
        let mut tally = self.shared.tally();
        tally.error(error, false);
        let (client, code) = (self.number, error.code());
        tally.end(ClientEnd { client, error: error.to_string(), code, in_doubt });
    }

    /// When the next transaction is due; none at the end. Waits for it.
    fn next_turn(&self, pace: Option<(Duration, Duration)>, turn: u32) -> Option<Instant> {
        while self.shared.is_held() && !self.shared.is_stopping() {
            std::thread::park_timeout(HELD);
        }
        let Some((first, interval)) = pace else {
            return (!self.shared.is_stopping()).then(Instant::now);
        };
        let due = self.shared.journal.start() + first + interval.saturating_mul(turn);
        loop {
            if self.shared.is_stopping() {
                return None;
            }
            match due.checked_duration_since(Instant::now()) {
                None | Some(Duration::ZERO) => return Some(due),
                // `stop` wakes it up.
                Some(wait) => std::thread::park_timeout(wait),
            }
        }
    }

    /// One transaction, and sometimes one before it that is rolled back. An error comes with the commit
    /// that it leaves in doubt.
    fn transaction(&mut self, seq: u64, due: Instant) -> Result<Step, (LoadError, Option<u64>)> {
        let (seed, every) = (self.shared.seed, self.shared.abort_every);
        if abort_comes_first(seed, self.number, seq, every) {
            self.roll_back_on_purpose(seq).map_err(|error| (error, None))?;
        }
        let schema = &self.shared.schema;
        let transfer = Transfer::draw(schema, seed, self.number, seq, Fate::Committed);
        let statements = transfer.statements(schema);
        while let Err(error) = self.attempt(&statements) {
            if !error.code().is_some_and(|code| RETRIED.contains(&code)) {
                return Err((error, None));
            }
            self.shared.tally().error(&error, true);
            self.session.execute("ROLLBACK").map_err(|error| (error, None))?;
            if self.shared.is_stopping() {
                return Ok(Step::Stopped);
            }
        }
        self.commit(seq).map_err(|error| (error, Some(seq)))?;
        let (start, now) = (self.shared.journal.start(), Instant::now());
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        self.shared.tally().commit(now - start, now.saturating_duration_since(due));
        Ok(Step::Done)
    }

    fn commit(&mut self, seq: u64) -> Result<(), LoadError> {
        // Written down before it can have any effect, and acknowledged only when the OK was read.
        self.shared.journal.sent(self.number, seq);
        self.session.send_query(b"COMMIT")?;
        self.session.finish_query()?;
        self.shared.journal.acknowledged(self.number);
        Ok(())
    }

    /// A deadlock among these statements does no harm: everything is rolled back in any case.
    fn roll_back_on_purpose(&mut self, seq: u64) -> Result<(), LoadError> {
        let schema = &self.shared.schema;
        let transfer = Transfer::draw(schema, self.shared.seed, self.number, seq, Fate::RolledBack);
        let statements = transfer.statements(schema);
        if let Err(error) = self.attempt(&statements) {
            let harmless = error.code().is_some_and(|code| RETRIED.contains(&code));
            if !harmless {
                return Err(error);
            }
            self.shared.tally().error(&error, true);
        }
        self.session.execute("ROLLBACK")?;
        self.shared.tally().rolled_back += 1;
        Ok(())
    }

    /// Sends all statements at once, and reads all answers, whatever they are. The first refusal counts.
    fn attempt(&mut self, statements: &[Statement]) -> Result<(), LoadError> {
        self.session.send_queries(statements.iter().map(|statement| statement.sql.as_bytes()))?;
        let mut outcome = Ok(());
        for statement in statements {
            let answer = match self.session.finish_query() {
                Ok(changed) if changed == statement.changes => Ok(()),
                Ok(changed) => Err(unexpected(statement, changed)),
                Err(error @ LoadError::Server { .. }) => Err(error),
                // Nothing more will be answered.
                Err(error) => return Err(error),
            };
            outcome = outcome.and(answer);
        }
        outcome
    }
}

fn unexpected(statement: &Statement, changed: u64) -> LoadError {
    LoadError::Tables(format!("{changed} rows were changed by: {}", statement.sql))
}

impl Shared {
    pub(super) fn tally(&self) -> std::sync::MutexGuard<'_, super::tally::Tally> {
        // A client that panicked has left whole counts behind.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
