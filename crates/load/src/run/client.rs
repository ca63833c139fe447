//! One connection of a run: its link to the server, and where it is in its transaction.

use std::ops::Range;
use std::sync::atomic::Ordering;

use ebbtide_workload::{Call, Collect, Datum, Next, Play, Register, Situation};

use super::Shared;
use crate::error::LoadError;
use crate::wire::answer::AnswerReader;
use crate::wire::{ColumnType, Prepared, Session, Transport, Values, command};

/// A statement prepared on this connection.
#[derive(Debug)]
struct Slot {
    id: u32,
    /// The server knows the parameters' types.
    bound: bool,
    /// The types of its columns, as the server sent them last; empty where no values are kept of them.
    columns: Vec<ColumnType>,
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
    /// The kernel is asked to report when the socket takes more.
    pub(super) wants_room: bool,
    /// What is under way on the emulated network, and when it arrives, ns of the run.
    pub(super) under_way: Vec<u8>,
    pub(super) arrives_at: u64,
    /// None: sent as text.
    slots: Vec<Option<Slot>>,
}

impl Link {
    /// Connects as client `id` and prepares everything that the run sends.
    pub(super) fn open(shared: &Shared<'_>, id: u32) -> Result<(Self, String), LoadError> {
        let mut session = Session::open(shared.target, shared.target.endpoint(id)?)?;
        for sql in &shared.program.description().session {
            session.execute(sql)?;
        }
        shared.observer.connected(id, &mut session)?;
        let prepared = session.prepare(&shared.slots.texts)?;
        let slot = |(prepared, typed): (Option<Prepared>, &bool)| {
            let Prepared { id, columns } = prepared?;
            Some(Slot { id, bound: false, columns: if *typed { columns } else { Vec::new() } })
        };
        let slots = prepared.into_iter().zip(&shared.slots.typed).map(slot).collect();
        let version = session.version().to_owned();
        let (transport, dialect) = session.into_transport();
        let reader = AnswerReader::new(dialect);
        let link = Self {
            transport,
            reader,
            held: Vec::new(),
            unsent: Vec::new(),
            wants_room: false,
            under_way: Vec::new(),
            arrives_at: 0,
            slots,
        };
        Ok((link, version))
    }
}

/// What a client is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientState {
    /// Waits for an arrival, or is held back.
    Idle,
    /// Waits for its user.
    Pausing,
    /// Waits before its transaction is done again.
    Retrying,
    /// Waits for the server.
    Busy,
    /// Waits for a new connection.
    Reconnecting(AfterReconnect),
    /// Will do nothing more.
    Retired,
}

/// What follows a reconnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterReconnect {
    /// The transaction is started again.
    Restart,
    /// The transaction was complete.
    Complete,
}

/// What the statements under way are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The work of the transaction.
    Work,
    /// To commit it.
    Commit,
    /// To roll it back on purpose.
    RollBack,
    /// To undo it before it is done again.
    Undo,
}

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u32,
    pub(super) link: Option<Link>,
    pub(super) state: ClientState,
    pub(super) play: Play,
    /// Whether the next transaction is chosen already.
    pub(super) chosen: bool,
    /// When its pause ends, ns of the run: what it was to end at before it lost its connection is past.
    pub(super) wakes_at: u64,
    /// When the transaction was due, began, and when its present statements were sent: ns of the run.
    pub(super) due: u64,
    pub(super) began: u64,
    pub(super) sent: u64,
    pub(super) purpose: Purpose,
    /// The calls under way whose answers have not come yet. Empty for an INSERT of many rows.
    calls: Range<usize>,
    /// The numbers of the tables of what was sent in one go.
    tables: Vec<u32>,
    /// Answers that are to come.
    pub(super) pending: usize,
    /// The statement whose answer comes next.
    pub(super) statement: usize,
    /// The first refusal among the answers to what was sent in one go.
    pub(super) refusal: Option<LoadError>,
    /// Whether the transaction has had its commit, or was rolled back on purpose.
    pub(super) ended: bool,
    /// Commits that the server acknowledged.
    pub(super) commits: u64,
    pub(super) events: u64,
    pub(super) busy_ns: u64,
    pub(super) since_reconnect: u32,
    /// The rows of the INSERT under way.
    pub(super) rows: u64,
    /// What was sent, where the number of changed rows is checked.
    text: Vec<u8>,
}

impl Client {
    pub(super) fn new(shared: &Shared<'_>, id: u32, link: Link) -> Self {
        Self {
            id,
            link: Some(link),
            state: ClientState::Idle,
            play: Play::new(shared.program, shared.execution.seed, u64::from(id) + 1),
            chosen: false,
            wakes_at: 0,
            due: 0,
            began: 0,
            sent: 0,
            purpose: Purpose::Work,
            calls: 0..0,
            tables: Vec::new(),
            pending: 0,
            statement: 0,
            refusal: None,
            ended: false,
            commits: shared.observer.last_commit(id),
            events: 0,
            busy_ns: 0,
            since_reconnect: 0,
            rows: 0,
            text: Vec::new(),
        }
    }

    /// Whether it is in a pause that ends at `due`.
    pub(super) fn pauses_until(&self, due: u64) -> bool {
        self.wakes_at == due && matches!(self.state, ClientState::Pausing | ClientState::Retrying)
    }

    fn situation<'a>(&self, shared: &'a Shared<'_>) -> Situation<'a> {
        Situation { client: self.id, sequence: self.commits + 1, unique: &shared.unique }
    }

    /// Asks the server for what the scripts need to begin with.
    pub(super) fn ask_opening(&mut self, shared: &Shared<'_>) -> Result<(), LoadError> {
        let openings = &shared.program.description().opening;
        if openings.is_empty() {
            return Ok(());
        }
        let mut session = Session::open(shared.target, shared.target.endpoint(self.id)?)?;
        let situation = self.situation(shared);
        for opening in openings {
            let table = table(self.play.number(&opening.table, &situation));
            let value = session.value(&ebbtide_workload::numbered(&opening.text, table))?;
            let number = value.and_then(|value| value.parse().ok()).unwrap_or(0);
            self.play.set(opening.into, Datum::Int(number));
        }
        Ok(())
    }

    /// Goes to the beginning of a transaction.
    pub(super) fn begin(&mut self, shared: &Shared<'_>) {
        if !std::mem::take(&mut self.chosen) {
            self.play.choose(shared.program);
        }
        self.ended = false;
        self.rows = 0;
    }

    /// Back to where the transaction is done again from.
    pub(super) fn retry(&mut self) {
        self.play.retry();
        self.ended = false;
        self.rows = 0;
    }

    /// Back to the transaction's first statement.
    pub(super) fn restart(&mut self, shared: &Shared<'_>) {
        self.play.restart(shared.program);
        (self.pending, self.refusal) = (0, None);
        self.chosen = false;
        self.ended = false;
        self.rows = 0;
    }

    /// How long the client waits before its next transaction, which it chooses; after one also for what it read, ns.
    pub(super) fn pause(&mut self, shared: &Shared<'_>, after: bool) -> u64 {
        let situation = self.situation(shared);
        let thinking = if after { self.play.thinking_us(shared.program, &situation) } else { 0 };
        self.play.choose(shared.program);
        self.chosen = true;
        thinking.saturating_add(self.play.keying_us(shared.program, &situation)).saturating_mul(1_000)
    }

    /// Writes what the transaction sends next to `out`; false at the transaction's end.
    pub(super) fn write_next(&mut self, shared: &Shared<'_>, out: &mut Vec<u8>) -> bool {
        let situation = self.situation(shared);
        let (purpose, calls) = match self.play.next(shared.program, &situation) {
            Next::Send(calls) => (Purpose::Work, calls),
            Next::Commit(call) => {
                shared.observer.commit_sent(self.id, situation.sequence);
                (Purpose::Commit, call..call + 1)
            }
            Next::RollBack(call) => (Purpose::RollBack, call..call + 1),
            Next::Append(append) => {
                self.write_append(shared, append, out);
                return true;
            }
            Next::Done => return false,
        };
        self.write_calls(shared, purpose, calls, out);
        true
    }

    /// Writes calls to be sent in one go.
    pub(super) fn write_calls(
        &mut self,
        shared: &Shared<'_>,
        purpose: Purpose,
        calls: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        let situation = self.situation(shared);
        let mut checked = false;
        self.tables.clear();
        for call in calls.clone() {
            let call = shared.program.call(call);
            self.write_call(shared, call, situation, out);
            checked |= call.changes.is_some();
        }
        if checked {
            self.text.clear();
            self.text.extend_from_slice(out);
        }
        self.purpose = purpose;
        self.pending = calls.len();
        self.calls = calls;
        self.expect_answer(shared);
    }

    fn write_call(&mut self, shared: &Shared<'_>, call: &Call, situation: Situation<'_>, out: &mut Vec<u8>) {
        let statement = shared.program.statement(call);
        let number = call.table.as_ref().map_or(0, |number| table(self.play.number(number, &situation)));
        self.tables.push(number);
        let link = self.link.as_mut().expect("a busy client has a link");
        let slot = shared.slots.of(call.statement, number).and_then(|slot| link.slots[slot].as_mut());
        let mut values = Values { play: &mut self.play, params: &call.params, situation };
        match slot {
            Some(slot) => {
                command::execute(out, slot.id, !slot.bound, &statement.params, &mut values);
                slot.bound = true;
            }
            None => command::query_with(out, statement, number, &mut values),
        }
    }

    /// Makes ready for the next answer. One of a statement whose columns are needed is looked at even where nothing is
    /// kept of it: after a change of the table it alone brings the columns.
    fn expect_answer(&mut self, shared: &Shared<'_>) {
        let Some(at) = self.calls.clone().next() else { return };
        let call = shared.program.call(at);
        self.statement = call.statement;
        if !shared.keeps[call.statement] {
            return;
        }
        let situation = self.situation(shared);
        let slot = self.slot(shared, call);
        let link = self.link.as_mut().expect("a busy client has a link");
        let prepared = slot.and_then(|slot| link.slots[slot].as_ref());
        let capture = link.reader.capture();
        capture.begin(prepared.is_some(), prepared.map_or(&[], |slot| &slot.columns));
        for bind in &call.binds {
            let row = self.play.number(&bind.row, &situation).and_then(|row| u64::try_from(row).ok());
            capture.want(row.unwrap_or(u64::MAX), bind.column.into());
        }
        for collect in &call.collect {
            let column =
                self.play.number(&collect.column, &situation).and_then(|column| usize::try_from(column).ok());
            capture.collect(column.unwrap_or(usize::MAX), collect.most.into());
        }
    }

    /// The slot of the call whose answer comes next.
    fn slot(&self, shared: &Shared<'_>, call: &Call) -> Option<usize> {
        shared.slots.of(call.statement, self.tables[self.tables.len() - self.pending])
    }

    /// Takes what an answer brought, so many rows, and makes ready for the next one.
    pub(super) fn take_answer(&mut self, shared: &Shared<'_>, rows: Option<u64>) {
        let Some(at) = self.calls.next() else {
            self.pending -= 1;
            return;
        };
        let call = shared.program.call(at);
        let slot = if shared.keeps[call.statement] { self.slot(shared, call) } else { None };
        self.pending -= 1;
        if let Some(rows) = rows {
            if let Some(register) = call.count {
                self.play.set(register, Datum::Int(i64::try_from(rows).unwrap_or(i64::MAX)));
            }
            let situation = self.situation(shared);
            let changes = call.changes.as_ref().map(|changes| self.play.number(changes, &situation));
            if changes.is_some_and(|changes| changes != i64::try_from(rows).ok()) {
                let sql = self.sent_text(self.pending);
                self.refusal.get_or_insert(LoadError::Tables(format!("{rows} rows were changed by: {sql}")));
            }
        }
        let Link { reader, slots, .. } = self.link.as_mut().expect("an answer came from a link");
        if let Some(capture) = reader.captured() {
            for (at, bind) in call.binds.iter().enumerate() {
                self.play.set(bind.into, capture.value(at));
            }
            for (at, Collect { into, .. }) in call.collect.iter().enumerate() {
                for (place, value) in (into.0..).zip(capture.collected(at)) {
                    self.play.set(Register(place), value);
                }
            }
            if let (Some(columns), Some(slot)) =
                (capture.renewed(), slot.and_then(|slot| slots[slot].as_mut()))
            {
                slot.columns.clear();
                slot.columns.extend_from_slice(columns);
            }
        }
        self.expect_answer(shared);
    }

    /// The statement behind which `behind` others were sent.
    fn sent_text(&self, behind: usize) -> String {
        let mut texts = Vec::new();
        let mut rest = &self.text[..];
        while let [a, b, c, _sequence, _command, payload @ ..] = rest {
            let length = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            let (text, more) = payload.split_at(length.saturating_sub(1).min(payload.len()));
            texts.push(text);
            rest = more;
        }
        let text = texts.len().checked_sub(behind + 1).map_or(&[][..], |at| texts[at]);
        String::from_utf8_lossy(text).into_owned()
    }

    /// Writes an INSERT of as many rows as fit, or as the run's budget allows.
    fn write_append(&mut self, shared: &Shared<'_>, append: usize, out: &mut Vec<u8>) {
        let append = shared.program.append(append);
        let situation = self.situation(shared);
        let number = table(self.play.number(&append.table, &situation));
        let head = &shared.program.description().statements[append.statement].text;
        let limit = shared.execution.events.unwrap_or(u64::MAX);
        let mut rows = 0;
        command::query(out, |out| {
            command::write_numbered(out, head, number);
            // The first row was taken from the budget when the transaction was started.
            while rows == 0
                || (out.len() < append.bytes && shared.started.fetch_add(1, Ordering::Relaxed) < limit)
            {
                let Datum::Int(last) = self.play.register(append.counter) else { return };
                self.play.set(append.counter, Datum::Int(last + 1));
                out.extend_from_slice(if rows > 0 { b",(" } else { b"(" });
                for (at, value) in append.values.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    self.play.value(value, &situation).write_sql(out);
                }
                out.push(b')');
                rows += 1;
            }
        });
        (self.purpose, self.statement, self.rows) = (Purpose::Work, append.statement, rows);
        (self.calls, self.pending) = (0..0, 1);
    }
}

fn table(number: Option<i64>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}
