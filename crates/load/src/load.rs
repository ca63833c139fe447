//! Making the tables of a workload and filling them, whatever the workload.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ebbtide_workload::sysbench::BULK_BYTES;
use ebbtide_workload::{Description, Part, RowWriter, numbered, parts};
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::options::{Endpoint, Target};
use crate::run::Cancel;
use crate::wire::{Session, quoted};

/// How tables are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loading {
    /// The seed; the rows depend on it and on nothing else.
    pub seed: u64,
    /// Connections that load at the same time. More than there are tables split the tables.
    pub connections: u32,
}

/// How far the loading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows loaded.
    pub rows: u64,
    /// Rows to load.
    pub rows_total: u64,
    /// Tables complete, with their index.
    pub tables: u32,
    /// Tables to load.
    pub tables_total: u32,
}

/// What was loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// Tables created.
    pub tables: u32,
    /// Rows loaded.
    pub rows: u64,
    /// How long it took, s.
    pub elapsed_s: f64,
    /// The server's version.
    pub server_version: String,
    /// Whether the database was created, too.
    pub database_created: bool,
    /// Whether it was cancelled before its end.
    pub cancelled: bool,
}

/// How often progress is reported.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// A transaction has so many bytes of rows, about: with one for each statement the disk would be waited for more often.
const COMMIT_BYTES: usize = 8 << 20;
/// Lines are sent in pieces of about so many bytes.
const PIECE_BYTES: usize = 128 << 10;
/// The form of [`RowWriter::line`], in words that no `sql_mode` changes.
const LINES: &str = "FIELDS TERMINATED BY x'09' ESCAPED BY x'5C' LINES TERMINATED BY x'0A'";
/// Room for another row in a statement, bytes. One with a longer row is longer than [`BULK_BYTES`] by less than that row.
const ROW_BYTES: usize = 300;

/// Creates the tables of a workload (and the database, where it is missing), fills them, and creates the indexes.
///
/// # Errors
/// The server's, such as 1050 where a table is there already.
pub fn load(
    target: &Target,
    description: &Description,
    loading: Loading,
    cancel: &Cancel,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Prepared, LoadError> {
    let began = Instant::now();
    let (mut session, database_created) = open_or_create_database(target)?;
    for table in &description.tables {
        for number in table.numbers() {
            session.execute(&numbered(&table.create, number))?;
        }
    }
    let work = Work::new(target, description, loading, cancel);
    work.run(on_progress)?;
    if !cancel.is_cancelled() {
        description.finish.iter().try_for_each(|text| session.execute(text).map(drop))?;
    }
    Ok(Prepared {
        tables: description.table_count(),
        rows: work.rows.load(Ordering::Relaxed),
        elapsed_s: began.elapsed().as_secs_f64(),
        server_version: session.version().to_owned(),
        database_created,
        cancelled: cancel.is_cancelled(),
    })
}

fn open_or_create_database(target: &Target) -> Result<(Session, bool), LoadError> {
    let mut session = Session::open_without_database(target, target.endpoint(0)?)?;
    match session.use_database(&target.database) {
        Err(error) if error.code() == Some(1049) => {
            session.execute(&format!("CREATE DATABASE {}", quoted(&target.database)))?;
            session.use_database(&target.database)?;
            Ok((session, true))
        }
        other => other.map(|()| (session, false)),
    }
}

/// The loading, shared by its threads.
struct Work<'a> {
    target: &'a Target,
    description: &'a Description,
    loading: Loading,
    cancel: &'a Cancel,
    parts: Vec<Part>,
    next: AtomicUsize,
    /// Parts of each table that are not loaded yet, by the place of the table's first part.
    left: Vec<AtomicU32>,
    /// For each part, the place of its table in `left`.
    table_of: Vec<usize>,
    rows: AtomicU64,
    tables: AtomicU32,
    failed: AtomicU32,
}

impl<'a> Work<'a> {
    fn new(target: &'a Target, description: &'a Description, loading: Loading, cancel: &'a Cancel) -> Self {
        let parts = parts(description, loading.connections);
        let (mut left, mut table_of) = (Vec::<u32>::new(), Vec::new());
        for (at, part) in parts.iter().enumerate() {
            let same = at > 0 && (parts[at - 1].table, parts[at - 1].number) == (part.table, part.number);
            if !same {
                left.push(0);
            }
            *left.last_mut().expect("the first part has begun a table") += 1;
            table_of.push(left.len() - 1);
        }
        Self {
            target,
            description,
            loading,
            cancel,
            parts,
            next: AtomicUsize::new(0),
            left: left.into_iter().map(AtomicU32::new).collect(),
            table_of,
            rows: AtomicU64::new(0),
            tables: AtomicU32::new(0),
            failed: AtomicU32::new(0),
        }
    }

    fn run(&self, on_progress: &mut dyn FnMut(&Progress)) -> Result<(), LoadError> {
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel::<Result<(), LoadError>>();
            for number in 0..self.loading.connections.max(1) {
                let sender = sender.clone();
                scope.spawn(move || {
                    let result = self.load(number);
                    if result.is_err() {
                        self.failed.fetch_add(1, Ordering::Relaxed);
                    }
                    sender.send(result)
                });
            }
            drop(sender);
            let mut outcome = Ok(());
            loop {
                match receiver.recv_timeout(PROGRESS_EVERY) {
                    Ok(result) => outcome = outcome.and(result),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => return outcome,
                }
                on_progress(&Progress {
                    rows: self.rows.load(Ordering::Relaxed),
                    rows_total: self.description.rows(),
                    tables: self.tables.load(Ordering::Relaxed),
                    tables_total: self.description.table_count(),
                });
            }
        })
    }

    fn stopped(&self) -> bool {
        self.cancel.is_cancelled() || self.failed.load(Ordering::Relaxed) > 0
    }

    fn load(&self, number: u32) -> Result<(), LoadError> {
        let endpoint = self.target.endpoint(number)?;
        let mut connection: Option<Connection> = None;
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = self.parts.get(at) else { return Ok(()) };
            let connection = match &mut connection {
                Some(connection) => connection,
                none => none.insert(Connection::open(self.target, endpoint)?),
            };
            self.load_part(connection, *part)?;
            if self.stopped() {
                return Ok(());
            }
            if self.left[self.table_of[at]].fetch_sub(1, Ordering::AcqRel) == 1 {
                let indexes = &self.description.tables[part.table].indexes;
                for create in indexes.iter().filter_map(|index| index.create.as_deref()) {
                    connection.session.execute(&numbered(create, part.number))?;
                }
                self.tables.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn load_part(&self, connection: &mut Connection, part: Part) -> Result<(), LoadError> {
        if connection.takes_lines {
            let first = self.send_lines(&mut connection.session, part)?;
            if first > part.last || self.stopped() {
                return Ok(());
            }
            connection.takes_lines = false;
        }
        self.insert(&mut connection.session, part)
    }

    /// Sends the rows as lines, which costs a server half of what statements cost that it must parse (measured on MariaDB
    /// 10.11). Answers with the first row that is not in: that of the part where the server takes no lines.
    fn send_lines(&self, session: &mut Session, part: Part) -> Result<u32, LoadError> {
        let table = &self.description.tables[part.table];
        let name = numbered(&table.name, part.number);
        let sql = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET latin1 {LINES} {}",
            table.fill.columns
        );
        let mut rows = RowWriter::new(&table.fill, self.loading.seed, part.number);
        let mut text = Vec::with_capacity(PIECE_BYTES + ROW_BYTES);
        let mut row = part.first;
        while row <= part.last && !self.stopped() {
            if !session.begin_lines(&sql)? {
                return Ok(row);
            }
            let (mut written, mut bytes) = (0, 0);
            while row <= part.last && bytes < COMMIT_BYTES {
                text.clear();
                while row <= part.last && text.len() < PIECE_BYTES {
                    written += u64::from(rows.line(row, &mut text));
                    row += 1;
                }
                bytes += text.len();
                // An empty packet would end the lines.
                if !text.is_empty() {
                    session.send_lines(&text)?;
                }
            }
            let loaded = session.finish_lines()?;
            if loaded != written {
                return Err(LoadError::RowsRefused { table: name, sent: written, loaded });
            }
            self.rows.fetch_add(written, Ordering::Relaxed);
        }
        Ok(row)
    }

    /// Inserts the rows, and writes the next statement while the server is at work on the one before.
    fn insert(&self, session: &mut Session, part: Part) -> Result<(), LoadError> {
        let table = &self.description.tables[part.table];
        let head =
            format!("INSERT INTO {} {} VALUES", numbered(&table.name, part.number), table.fill.columns);
        let mut text = Vec::with_capacity(BULK_BYTES + 512);
        session.execute("START TRANSACTION")?;
        let mut sent = Sent::new(session);
        let mut rows = RowWriter::new(&table.fill, self.loading.seed, part.number);
        let mut row = part.first;
        while row <= part.last && !self.stopped() {
            text.clear();
            text.extend_from_slice(head.as_bytes());
            let mut written = 0;
            while row <= part.last && text.len() < BULK_BYTES - ROW_BYTES {
                written += u64::from(rows.row(row, written > 0, &mut text));
                row += 1;
            }
            self.rows.fetch_add(sent.answered()?, Ordering::Relaxed);
            if written > 0 {
                sent.send(&text, written)?;
            }
        }
        self.rows.fetch_add(sent.answered()?, Ordering::Relaxed);
        session.execute("COMMIT").map(drop)
    }
}

/// A connection that loads.
struct Connection {
    session: Session,
    /// Whether the server takes rows as lines, as far as is known.
    takes_lines: bool,
}

impl Connection {
    fn open(target: &Target, endpoint: &Endpoint) -> Result<Self, LoadError> {
        Ok(Self { session: Session::open(target, endpoint)?, takes_lines: true })
    }
}

/// What a connection in a transaction was sent and has not answered.
struct Sent<'a> {
    session: &'a mut Session,
    /// Bytes of statements since the last commit.
    bytes: usize,
    /// Statements, and the rows in them.
    statements: u32,
    rows: u64,
}

impl<'a> Sent<'a> {
    fn new(session: &'a mut Session) -> Self {
        Self { session, bytes: 0, statements: 0, rows: 0 }
    }

    /// Sends a statement with so many rows, and a commit after it where it is time for one.
    fn send(&mut self, text: &[u8], rows: u64) -> Result<(), LoadError> {
        self.session.send_query(text)?;
        (self.statements, self.rows) = (self.statements + 1, self.rows + rows);
        self.bytes += text.len();
        if self.bytes >= COMMIT_BYTES {
            self.session.send_query(b"COMMIT AND CHAIN")?;
            (self.statements, self.bytes) = (self.statements + 1, 0);
        }
        Ok(())
    }

    /// Waits for all answers; returns the number of rows that are in now.
    fn answered(&mut self) -> Result<u64, LoadError> {
        for _ in 0..std::mem::take(&mut self.statements) {
            self.session.finish_query()?;
        }
        Ok(std::mem::take(&mut self.rows))
    }
}
