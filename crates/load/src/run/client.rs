//! One connection of a run: its link to the server, and where it stands in its transaction.

use std::sync::atomic::Ordering;

use super::Shared;
use crate::distribution::Random;
use crate::error::LoadError;
use crate::plan::{Cursor, Draw};
use crate::sql::{BULK_BYTES, Stmt};
use crate::wire::answer::AnswerReader;
use crate::wire::{Session, Transport, command};

/// A statement prepared on this connection.
#[derive(Debug, Clone, Copy)]
struct Slot {
    id: u32,
    /// The server knows the parameters' types.
    bound: bool,
}

/// A live connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) transport: Transport,
    pub(super) reader: AnswerReader,
    /// The front of a packet whose rest has not come yet.
    pub(super) held: Vec<u8>,
    /// What the socket has not taken yet.
    pub(super) unsent: Vec<u8>,
    /// The kernel is asked to tell when the socket takes more.
    pub(super) wants_room: bool,
    /// None: sent as text.
    slots: Vec<Option<Slot>>,
}

impl Link {
    /// Connects as client `id` and prepares everything that the run sends.
    pub(super) fn open(shared: &Shared<'_>, id: u32) -> Result<(Self, String), LoadError> {
        let endpoints = &shared.target.endpoints;
        let at = usize::try_from(id).expect("a u32 fits") % endpoints.len();
        let mut session = Session::open(shared.target, &endpoints[at])?;
        let ids = session.prepare(&shared.texts)?;
        let slots = ids.into_iter().map(|id| Some(Slot { id: id?, bound: false })).collect();
        let version = session.version().to_owned();
        let (transport, dialect) = session.into_transport();
        let reader = AnswerReader::new(dialect);
        Ok((
            Self { transport, reader, held: Vec::new(), unsent: Vec::new(), wants_room: false, slots },
            version,
        ))
    }
}

/// What a client is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for an arrival.
    Idle,
    /// Waits for the server.
    Busy,
    /// Waits for a new connection.
    Reconnecting(After),
    /// Will do nothing more.
    Retired,
}

/// What follows a reconnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The transaction is started again.
    Restart,
    /// The transaction was complete.
    Complete,
}

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u32,
    pub(super) link: Option<Link>,
    pub(super) state: State,
    random: Random,
    cursor: Cursor,
    /// When the transaction was due, began, and when its present statement was sent: ns of the run.
    pub(super) due: u64,
    pub(super) began: u64,
    pub(super) sent: u64,
    /// The present statement.
    pub(super) stmt: Stmt,
    /// Commits that the server acknowledged.
    pub(super) commits: u64,
    pub(super) events: u64,
    pub(super) busy_ns: u64,
    pub(super) since_reconnect: u32,
    /// `bulk_insert`: the last id sent, and the rows of the statement under way.
    bulk_id: u32,
    pub(super) bulk_rows: u64,
}

impl Client {
    pub(super) fn new(shared: &Shared<'_>, id: u32, link: Link) -> Self {
        Self {
            id,
            link: Some(link),
            state: State::Idle,
            random: Random::new(shared.options.seed, u64::from(id) + 1),
            cursor: Cursor::default(),
            due: 0,
            began: 0,
            sent: 0,
            stmt: Stmt::Begin,
            commits: 0,
            events: 0,
            busy_ns: 0,
            since_reconnect: 0,
            bulk_id: 0,
            bulk_rows: 0,
        }
    }

    /// Back to the transaction's first statement.
    pub(super) fn restart(&mut self) {
        self.cursor.restart();
    }

    /// `bulk_insert`: goes on after the ids that the table has.
    pub(super) fn set_bulk_id(&mut self, last: u32) {
        self.bulk_id = last;
    }

    /// Writes the transaction's next statement to `out`; false at the transaction's end.
    pub(super) fn write_next(&mut self, shared: &Shared<'_>, out: &mut Vec<u8>) -> bool {
        let mut draw = Draw {
            random: &mut self.random,
            client: self.id,
            sequence: self.commits + 1,
            unique: &shared.unique,
        };
        let Some(next) = self.cursor.next(&shared.plan, &mut draw) else { return false };
        self.stmt = next.stmt;
        let link = self.link.as_mut().expect("a busy client has a link");
        match shared.plan.slot(&next).and_then(|slot| link.slots[slot].as_mut()) {
            Some(slot) => {
                command::execute(out, slot.id, !slot.bound, next.params.as_slice(), &mut self.random);
                slot.bound = true;
            }
            None => {
                let text = next.stmt.text(next.table);
                command::query_with(out, &text, next.params.as_slice(), &mut self.random);
            }
        }
        true
    }

    /// Writes a multi-row insert as long as sysbench's, or as long as the run's budget allows.
    pub(super) fn write_bulk(&mut self, shared: &Shared<'_>, out: &mut Vec<u8>) {
        self.stmt = Stmt::BulkInsert;
        let limit = shared.options.events.unwrap_or(u64::MAX);
        let mut rows = 0;
        command::query(out, |out| {
            out.extend_from_slice(Stmt::BulkInsert.text(self.id + 1).as_bytes());
            // The first row was taken from the budget when the transaction was started.
            while rows == 0
                || (out.len() < BULK_BYTES - 32 && shared.started.fetch_add(1, Ordering::Relaxed) < limit)
            {
                self.bulk_id += 1;
                let separator = if rows > 0 { "," } else { "" };
                out.extend_from_slice(format!("{separator}({0},{0})", self.bulk_id).as_bytes());
                rows += 1;
            }
        });
        self.bulk_rows = rows;
    }
}
