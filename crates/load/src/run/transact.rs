//! What an event loop does for one client: send a statement, read its answer, count, go on.

use std::io;
use std::sync::atomic::Ordering;

use super::client::{After, State};
use super::nanos;
use super::worker::{Worker, refusal_of};
use crate::error::{LoadError, SERVER_LOST};
use crate::options::Workload;
use crate::wire::Received;
use crate::wire::answer::{Answer, Refusal};

/// What counts as a late start.
const LATE: u64 = 1_000_000;
/// The codes after which there is no connection any more, and those of the same meaning.
const LOST: [u16; 4] = [2006, 2011, SERVER_LOST, 2055];

impl Worker<'_> {
    /// Gives a client its next transaction, lets it wait for one, or retires it.
    pub(super) fn begin_next(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        let due = match &mut self.schedule {
            None if now < self.deadline => now,
            Some(schedule) if now < self.deadline => match schedule.take() {
                Some(due) => due,
                None => {
                    self.clients[at].state = State::Idle;
                    self.idle.push_back(at);
                    return Ok(());
                }
            },
            _ => {
                self.retire(at);
                return Ok(());
            }
        };
        if self.budget_is_spent() {
            self.retire(at);
            // No arrival will be served any more.
            self.deadline = self.deadline.min(now);
            return Ok(());
        }
        let client = &mut self.clients[at];
        client.state = State::Busy;
        client.due = due;
        client.began = now;
        client.restart();
        self.interval.late += u64::from(now - due > LATE);
        self.advance(at, now)
    }

    fn budget_is_spent(&self) -> bool {
        let Some(limit) = self.shared.options.events else { return false };
        self.shared.started.fetch_add(1, Ordering::Relaxed) >= limit
    }

    pub(super) fn retire(&mut self, at: usize) {
        let client = &mut self.clients[at];
        if client.state != State::Retired {
            client.state = State::Retired;
            self.active -= 1;
        }
    }

    /// Sends the client's next statement, or completes its transaction.
    fn advance(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        self.out.clear();
        let client = &mut self.clients[at];
        let more = if self.shared.options.workload == Workload::BulkInsert {
            let first = client.bulk_rows == 0;
            if first {
                client.write_bulk(self.shared, &mut self.out);
            }
            first
        } else {
            client.write_next(self.shared, &mut self.out)
        };
        if !more {
            return self.complete(at, now);
        }
        client.sent = now;
        self.send(at)
    }

    /// Sends what `out` holds; keeps what the socket does not take.
    fn send(&mut self, at: usize) -> Result<(), LoadError> {
        let link = self.clients[at].link.as_mut().expect("a busy client has a link");
        match link.transport.send_now(&self.out) {
            Ok(sent) if sent == self.out.len() && !link.transport.has_unsent() => Ok(()),
            Ok(sent) => {
                link.unsent.extend_from_slice(&self.out[sent..]);
                link.wants_room = true;
                self.kernel.watch_room(at, &link.transport, true)
            }
            Err(error) => self.lost(at, &error),
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
            Err(error) => self.lost(at, &error),
        }
    }

    /// Reads what has come for a client.
    pub(super) fn readable(&mut self, at: usize) -> Result<(), LoadError> {
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
                    return self.lost(at, &error);
                }
                Err(error) => return self.lost(at, &error),
            };
            let now = nanos(self.start.elapsed());
            let have = held + read;
            let (used, answer) = link
                .reader
                .feed(&self.scratch[..have])
                .map_err(|malformed| LoadError::Protocol(malformed.0.into()))?;
            link.held.clear();
            link.held.extend_from_slice(&self.scratch[used..have]);
            if let Some(answer) = answer {
                if self.schedule.is_none() {
                    self.interval.lag.saturating_record(now.saturating_sub(self.batch));
                }
                self.answered(at, answer, now)?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn answered(&mut self, at: usize, answer: Answer, now: u64) -> Result<(), LoadError> {
        let client = &self.clients[at];
        if client.state != State::Busy {
            // The server's goodbye to a connection that waits, such as 4031 after wait_timeout.
            return match answer {
                Answer::Refused(refusal) => self.refused(at, refusal, now),
                _ => Err(LoadError::Protocol("an answer to nothing".into())),
            };
        }
        let (stmt, took) = (client.stmt, now.saturating_sub(client.sent));
        match answer {
            Answer::Refused(refusal) => return self.refused(at, refusal, now),
            Answer::Rows(_) => self.interval.totals.reads += 1,
            Answer::Done { affected: 0 } => self.interval.totals.other += 1,
            Answer::Done { .. } => self.interval.totals.writes += 1,
        }
        self.statement(stmt).saturating_record(took);
        self.advance(at, now)
    }

    /// As sysbench does: an ignored error starts the transaction again, any other ends the run.
    fn refused(&mut self, at: usize, refusal: Refusal, now: u64) -> Result<(), LoadError> {
        let ignored = self.shared.options.ignore_errors.contains(refusal.code);
        self.interval.error(refusal.code, &refusal.message, ignored);
        let client = &mut self.clients[at];
        if !ignored {
            let stmt = client.stmt;
            self.retire(at);
            self.fail(refusal, stmt);
            return Ok(());
        }
        if LOST.contains(&refusal.code) {
            self.interval.totals.reconnects += 1;
            self.reconnect(at, After::Restart);
            return Ok(());
        }
        self.interval.totals.errors += 1;
        client.restart();
        client.bulk_rows = 0;
        self.advance(at, now)
    }

    /// The connection is gone.
    fn lost(&mut self, at: usize, error: &io::Error) -> Result<(), LoadError> {
        let idle = self.clients[at].state == State::Idle;
        if let Some(link) = self.clients[at].link.take() {
            self.kernel.forget(&link.transport);
        }
        if idle {
            self.idle.retain(|client| *client != at);
        }
        if self.clients[at].state == State::Retired {
            return Ok(());
        }
        let message = format!("the connection to the server was lost: {error}");
        let refusal = Refusal { code: SERVER_LOST, state: "HY000".into(), message };
        self.refused(at, refusal, self.now())
    }

    fn reconnect(&mut self, at: usize, after: After) {
        let client = &mut self.clients[at];
        if let Some(link) = client.link.take() {
            self.kernel.forget(&link.transport);
        }
        client.state = State::Reconnecting(after);
        self.connector.want(at, client.id);
    }

    /// Takes the connections that were made.
    pub(super) fn reconnected(&mut self) -> Result<(), LoadError> {
        for (at, made) in self.connector.made() {
            let link = match made {
                Ok(link) => link,
                Err(error) => {
                    let stmt = self.clients[at].stmt;
                    self.retire(at);
                    self.fail(refusal_of(&error), stmt);
                    continue;
                }
            };
            self.kernel.watch(at, &link.transport)?;
            let client = &mut self.clients[at];
            client.link = Some(link);
            client.since_reconnect = 0;
            let State::Reconnecting(after) = client.state else { continue };
            client.state = State::Busy;
            client.restart();
            client.bulk_rows = 0;
            let now = self.now();
            match after {
                After::Restart => self.advance(at, now)?,
                After::Complete => self.count(at, now)?,
            }
        }
        Ok(())
    }

    /// The transaction's last statement was answered.
    fn complete(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        if self.shared.plan.commits {
            client.commits += 1;
            if let Some(ledger) = &self.shared.ledger {
                ledger.record(client.id, client.commits, now)?;
                self.interval.ledger_records += 1;
            }
        }
        client.since_reconnect += 1;
        if client.since_reconnect == self.shared.options.reconnect_every {
            self.interval.totals.reconnects += 1;
            // As in sysbench, the transaction lasts until the connection is there again.
            self.reconnect(at, After::Complete);
            return Ok(());
        }
        self.count(at, now)
    }

    fn count(&mut self, at: usize, now: u64) -> Result<(), LoadError> {
        let client = &mut self.clients[at];
        let service = now.saturating_sub(client.began);
        let rows = std::mem::take(&mut client.bulk_rows);
        let events = if self.shared.options.workload == Workload::BulkInsert { rows } else { 1 };
        client.events += events;
        client.busy_ns += service;
        self.interval.totals.events += events;
        self.interval.response.saturating_record(now.saturating_sub(client.due));
        if let Some(histogram) = &mut self.interval.service {
            histogram.saturating_record(service);
        }
        self.begin_next(at, now)
    }
}
