//! What an event loop does for one client: send statements, read their answers, count, go on.

use std::io;
use std::sync::atomic::Ordering;

use super::Worker;
use crate::error::{LoadError, SERVER_LOST};
use crate::execution::Refused;
use crate::run::client::{AfterReconnect, ClientState, Purpose};
use crate::run::nanos;
use crate::run::observer::Commit;
use crate::wire::Received;
use crate::wire::answer::Answer;

/// What counts as a late start.
const LATE: u64 = 1_000_000;
/// The codes after which there is no connection any more, and those of the same meaning.
const LOST: [u16; 4] = [2006, 2011, SERVER_LOST, 2055];

impl Worker<'_> {
    /// Gives a client its next transaction, lets it wait for one, or retires it.
    pub(super) fn begin_next(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        let due = match &mut self.schedule {
            _ if now >= self.deadline => {
                self.retire(at);
                return Ok(());
            }
            _ if self.held.is_some() => {
                self.wait_for_work(at);
                return Ok(());
            }
            None => now,
            Some(schedule) => match schedule.take() {
                Some(due) => due,
                None => {
                    self.wait_for_work(at);
                    return Ok(());
                }
            },
        };
        if self.budget_is_spent() {
            self.retire(at);
            // No arrival will be served any more.
            self.deadline = self.deadline.min(now);
            return Ok(());
        }
        let client = &mut self.clients[at];
        client.state = ClientState::Busy;
        client.due = due;
        client.began = now;
        client.begin(self.shared);
        self.interval.late += u64::from(now - due > LATE);
        self.advance(at, now)
    }

    fn wait_for_work(&mut self, at: usize) {
        self.clients[at].state = ClientState::Idle;
        self.idle.push_back(at);
    }

    fn budget_is_spent(&self) -> bool {
        let Some(limit) = self.shared.execution.events else { return false };
        self.shared.started.fetch_add(1, Ordering::Relaxed) >= limit
    }

    pub(super) fn retire(&mut self, at: usize) {
        let client = &mut self.clients[at];
        if client.state != ClientState::Retired {
            client.state = ClientState::Retired;
            self.active -= 1;
        }
    }

    /// Sends the client's next statements, or completes its transaction.
    fn advance(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        self.out.clear();
        let client = &mut self.clients[at];
        if !client.write_next(self.shared, &mut self.out) {
            return self.complete(at, now);
        }
        self.depart(at, now)
    }

    /// Sends what `out` holds, over the emulated network where there is one. The whole round trip is before the server
    /// gets it: between two statements the server waits as long, and a transaction holds its locks as long.
    fn depart(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        client.sent = now;
        let round_trip = nanos(self.shared.execution.round_trip);
        if round_trip == 0 {
            return self.send(at);
        }
        let link = client.link.as_mut().expect("a busy client has a link");
        link.under_way.clone_from(&self.out);
        link.arrives_at = now.saturating_add(round_trip);
        self.under_way.push_back((link.arrives_at, at));
        Ok(())
    }

    /// Sends what `out` holds; keeps what the socket does not take.
    pub(super) fn send(&mut self, at: usize) -> Result<(), LoadError> {
        let link = self.clients[at].link.as_mut().expect("a busy client has a link");
        match link.transport.send_now(&self.out) {
            Ok(sent) if sent == self.out.len() && !link.transport.has_unsent() => Ok(()),
            Ok(sent) => {
                link.unsent.extend_from_slice(&self.out[sent..]);
                link.wants_room = true;
                self.kernel.watch_room(at, &link.transport, true)
            }
            Err(error) => self.lost(at, "sending a statement", error),
        }
    }

    /// Sends what was kept, if anything was.
    pub(super) fn writable(&mut self, at: usize) -> Result<(), LoadError> {
        let Some(link) = self.clients[at].link.as_mut().filter(|link| link.wants_room) else { return Ok(()) };
        let sent = link.transport.flush_now().and_then(|_| link.transport.send_now(&link.unsent));
        match sent {
            Ok(sent) => {
                link.unsent.drain(..sent);
                if link.unsent.is_empty() && !link.transport.has_unsent() {
                    link.wants_room = false;
                    return self.kernel.watch_room(at, &link.transport, false);
                }
                Ok(())
            }
            Err(error) => self.lost(at, "sending a statement", error),
        }
    }

    /// Reads what has come for a client.
    pub(super) fn readable(&mut self, at: usize) -> Result<(), LoadError> {
        const DURING: &str = "waiting for an answer";
        loop {
            let Some(link) = &mut self.clients[at].link else { return Ok(()) };
            let held = link.held.len();
            if held + 4096 > self.scratch.len() {
                self.scratch.resize(2 * self.scratch.len(), 0);
            }
            self.scratch[..held].copy_from_slice(&link.held);
            let (read, more) = match link.transport.receive(&mut self.scratch[held..]) {
                Ok(Received::Nothing) => return Ok(()),
                Ok(Received::All(read)) => (read, false),
                Ok(Received::Some(read)) => (read, true),
                Ok(Received::Closed) => {
                    let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it");
                    return self.lost(at, DURING, error);
                }
                Err(error) => return self.lost(at, DURING, error),
            };
            link.held.clear();
            let now = nanos(self.start.elapsed());
            self.take_answers(at, held + read, now)?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Takes the answers out of the first `have` bytes of the scratch buffer, and keeps what is no whole one.
    fn take_answers(&mut self, at: usize, have: usize, now: u64) -> Result<(), LoadError> {
        let mut taken = 0;
        while taken < have {
            // An answer may have ended the connection.
            let Some(link) = &mut self.clients[at].link else { return Ok(()) };
            let (used, answer) = match link.reader.feed(&self.scratch[taken..have]) {
                Ok(fed) => fed,
                Err(malformed) => return self.nonsense(at, malformed.0, now),
            };
            taken += used;
            let Some(answer) = answer else {
                link.held.extend_from_slice(&self.scratch[taken..have]);
                return Ok(());
            };
            if self.schedule.is_none() {
                self.interval.lag.saturating_record(now.saturating_sub(self.batch));
            }
            self.answered(at, answer, now)?;
        }
        Ok(())
    }

    /// An answer that cannot be: it ends the run, or its client where clients end one by one.
    fn nonsense(&mut self, at: usize, what: &'static str, now: u64) -> Result<(), LoadError> {
        let error = LoadError::Protocol(what.into());
        match self.shared.execution.refused {
            Refused::EndsRun { .. } => Err(error),
            Refused::EndsClient { .. } => self.refused(at, error, now),
        }
    }

    fn answered(&mut self, at: usize, answer: Answer, now: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        if client.state != ClientState::Busy {
            // The server's goodbye to a connection that waits, such as 4031 after wait_timeout.
            return match answer {
                Answer::Refused(refusal) => self.refused(at, refusal.into(), now),
                _ => self.nonsense(at, "an answer to nothing", now),
            };
        }
        let (statement, took) = (client.statement, now.saturating_sub(client.sent));
        let totals = &mut self.interval.totals;
        let rows = match answer {
            Answer::Refused(refusal) => {
                client.refusal.get_or_insert_with(|| refusal.into());
                None
            }
            Answer::Rows(rows) => {
                totals.reads += 1;
                Some(rows)
            }
            Answer::Done { affected } => {
                *(if affected == 0 { &mut totals.other } else { &mut totals.writes }) += 1;
                Some(affected)
            }
        };
        client.take_answer(self.shared, rows);
        if rows.is_some() {
            self.statement(statement).saturating_record(took);
        }
        let client = &mut self.clients[at];
        if client.pending > 0 {
            return Ok(());
        }
        match client.refusal.take() {
            Some(refusal) => self.refused(at, refusal, now),
            None => self.go_on(at, now),
        }
    }

    /// What was sent has its answers.
    fn go_on(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        match client.purpose {
            Purpose::Work => {}
            Purpose::Commit => {
                client.ended = true;
                self.acknowledge(at, now)?;
            }
            Purpose::RollBack => {
                client.ended = true;
                self.interval.rolled_back += 1;
                let transaction = client.play.transaction();
                self.rolled_back[transaction] += 1;
                let client = &self.clients[at];
                self.shared.observer.rolled_back(client.id);
            }
            Purpose::Undo => return self.retry(at, now),
        }
        self.advance(at, now)
    }

    /// The server has committed the client's transaction.
    fn acknowledge(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        client.commits += 1;
        client.purpose = Purpose::Work;
        let took_ns = now.saturating_sub(client.due);
        self.interval.commits += 1;
        self.shared.observer.committed(&Commit {
            client: client.id,
            sequence: client.commits,
            at_ns: now,
            took_ns,
        })
    }

    /// An error in the list has the transaction done again; any other ends the run or the client.
    fn refused(&mut self, at: usize, error: LoadError, now: u64) -> Result<(), LoadError> {
        let shared = self.shared;
        let client = &mut self.clients[at];
        let code = error.code();
        let (ends_client, again) = match &shared.execution.refused {
            Refused::EndsRun { unless } => (false, code.is_some_and(|code| unless.contains(code))),
            Refused::EndsClient { unless } => {
                let again = code.is_some_and(|code| unless.contains(code) && !LOST.contains(&code));
                (true, again && client.purpose != Purpose::Commit)
            }
        };
        let (code, message) = code_and_message(&error);
        self.interval.error(code, &message, again);
        shared.observer.refused(&error, again);
        if !again {
            if ends_client {
                self.end_client(at, &error);
            } else {
                let statement = client.statement;
                self.retire(at);
                self.fail(code, message, shared.name(statement));
            }
            return Ok(());
        }
        if LOST.contains(&code) {
            self.interval.totals.reconnects += 1;
            self.reconnect(at, AfterReconnect::Restart);
            return Ok(());
        }
        self.interval.totals.errors += 1;
        let Some(undo) = shared.program.undo() else { return self.retry(at, now) };
        self.out.clear();
        client.write_calls(shared, Purpose::Undo, undo..undo + 1, &mut self.out);
        self.depart(at, now)
    }

    /// Does the client's transaction again, at once or after a while. A run that stops leaves it undone: it holds no
    /// locks by now, for which other clients would wait.
    fn retry(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        if self.shared.is_stopping() && matches!(self.shared.execution.refused, Refused::EndsClient { .. }) {
            self.retire(at);
            return Ok(());
        }
        let client = &mut self.clients[at];
        client.retry();
        let after = nanos(self.shared.execution.retry_after);
        if after == 0 {
            return self.advance(at, now);
        }
        self.wait(at, ClientState::Retrying, now.saturating_add(after));
        Ok(())
    }

    /// Has a client wait until a time, ns of the run.
    fn wait(&mut self, at: usize, state: ClientState, until: u64) {
        let client = &mut self.clients[at];
        (client.state, client.wakes_at) = (state, until);
        self.pausing.push(std::cmp::Reverse((until, at)));
    }

    /// Goes on after a while.
    pub(super) fn end_pause(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        match client.state {
            ClientState::Pausing => self.begin_next(at, now),
            ClientState::Retrying => {
                client.state = ClientState::Busy;
                (client.due, client.began) = (now, now);
                self.advance(at, now)
            }
            _ => Ok(()),
        }
    }

    /// Ends a client before the run.
    pub(super) fn end_client(&mut self, at: usize, error: &LoadError) {
        let client = &mut self.clients[at];
        let committing = client.state == ClientState::Busy && client.purpose == Purpose::Commit;
        let in_doubt = committing.then_some(client.commits + 1);
        self.shared.observer.ended(client.id, error, in_doubt);
        if let Some(link) = client.link.take() {
            self.kernel.forget(&link.transport);
        }
        self.idle.retain(|idle| *idle != at);
        self.retire(at);
    }

    /// The connection is gone.
    fn lost(&mut self, at: usize, during: &'static str, source: io::Error) -> Result<(), LoadError> {
        let now = self.now();
        let client = &mut self.clients[at];
        if let Some(link) = client.link.take() {
            self.kernel.forget(&link.transport);
        }
        match client.state {
            ClientState::Retired => return Ok(()),
            ClientState::Idle | ClientState::Pausing | ClientState::Retrying => {
                self.idle.retain(|idle| *idle != at);
                (client.due, client.began) = (now, now);
            }
            ClientState::Busy | ClientState::Reconnecting(_) => {}
        }
        self.refused(at, LoadError::Broken { during, source }, now)
    }

    fn reconnect(&mut self, at: usize, after: AfterReconnect) {
        let client = &mut self.clients[at];
        if let Some(link) = client.link.take() {
            self.kernel.forget(&link.transport);
        }
        client.state = ClientState::Reconnecting(after);
        let connector = self.connector.as_ref().expect("a run whose clients connect again has a connector");
        connector.want(at, client.id);
    }

    /// Takes the connections that were made.
    pub(super) fn reconnected(&mut self) -> Result<(), LoadError> {
        let Some(connector) = &self.connector else { return Ok(()) };
        for (at, made) in connector.made() {
            let link = match made {
                Ok(link) => link,
                Err(error) => {
                    let statement = self.shared.name(self.clients[at].statement);
                    self.retire(at);
                    let (code, message) = code_and_message(&error);
                    self.fail(code, message, statement);
                    continue;
                }
            };
            self.kernel.watch(at, &link.transport)?;
            let now = self.now();
            let client = &mut self.clients[at];
            client.link = Some(link);
            client.since_reconnect = 0;
            let ClientState::Reconnecting(after) = client.state else { continue };
            client.state = ClientState::Busy;
            match after {
                AfterReconnect::Restart => {
                    client.restart(self.shared);
                    self.advance(at, now)?;
                }
                AfterReconnect::Complete => self.count(at, now)?,
            }
        }
        Ok(())
    }

    /// The transaction's last statement was answered.
    fn complete(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        if !self.clients[at].ended {
            // Its statements have committed themselves.
            self.acknowledge(at, now)?;
        }
        let client = &mut self.clients[at];
        client.since_reconnect += 1;
        if client.since_reconnect == self.shared.execution.reconnect_every {
            self.interval.totals.reconnects += 1;
            // As in sysbench, the transaction lasts until the connection is there again.
            self.reconnect(at, AfterReconnect::Complete);
            return Ok(());
        }
        self.count(at, now)
    }

    fn count(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        let service = now.saturating_sub(client.began);
        let response = now.saturating_sub(client.due);
        let events = std::mem::take(&mut client.rows).max(1);
        let transaction = client.play.transaction();
        client.events += events;
        client.busy_ns += service;
        self.interval.totals.events += events;
        self.interval.response.saturating_record(response);
        if let Some(histogram) = &mut self.interval.service {
            histogram.saturating_record(service);
        }
        self.transaction(transaction).saturating_record(response);
        if self.shared.pauses { self.pause(at, now, true) } else { self.begin_next(at, now) }
    }

    /// Lets a client wait before its next transaction.
    pub(super) fn pause(&mut self, at: usize, now: u64, after: bool) -> Result<(), LoadError> {
        let pause = self.clients[at].pause(self.shared, after);
        if pause == 0 || now >= self.deadline {
            return self.begin_next(at, now);
        }
        self.wait(at, ClientState::Pausing, now.saturating_add(pause));
        Ok(())
    }
}

/// An error as the server sends it, or as a client would report it: its code and its message.
pub(super) fn code_and_message(error: &LoadError) -> (u16, String) {
    match error {
        LoadError::Server { code, message, .. } => (*code, message.clone()),
        LoadError::Broken { source, .. } => {
            (SERVER_LOST, format!("the connection to the server was lost: {source}"))
        }
        other => (other.code().unwrap_or(SERVER_LOST), other.to_string()),
    }
}
