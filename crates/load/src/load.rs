//! Making the tables of a workload and filling them, whatever the workload.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ebbtide_workload::sysbench::BULK_BYTES;
use ebbtide_workload::{Description, OptionError, Part, RowWriter, numbered, parts};
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

/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// More than any row takes as text, bytes.
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
    let mut session = Session::open_without_database(target, first(target)?)?;
    match session.use_database(&target.database) {
        Err(error) if error.code() == Some(1049) => {
            session.execute(&format!("CREATE DATABASE {}", quoted(&target.database)))?;
            session.use_database(&target.database)?;
            Ok((session, true))
        }
        other => other.map(|()| (session, false)),
    }
}

pub(crate) fn first(target: &Target) -> Result<&Endpoint, LoadError> {
    target.endpoints.first().ok_or(LoadError::Options(OptionError::Contradiction(
        "no server is named: give --mysql-socket, or --mysql-host and --mysql-port",
    )))
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
            let (tell, told) = mpsc::channel::<Result<(), LoadError>>();
            for number in 0..self.loading.connections.max(1) {
                let tell = tell.clone();
                scope.spawn(move || {
                    let result = self.load(number);
                    if result.is_err() {
                        self.failed.fetch_add(1, Ordering::Relaxed);
                    }
                    tell.send(result)
                });
            }
            drop(tell);
            let mut outcome = Ok(());
            loop {
                match told.recv_timeout(PROGRESS_EVERY) {
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
        let endpoints = &self.target.endpoints;
        let endpoint = &endpoints[usize::try_from(number).expect("a u32 fits") % endpoints.len()];
        let mut session: Option<Session> = None;
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = self.parts.get(at) else { return Ok(()) };
            let session = match &mut session {
                Some(session) => session,
                none => none.insert(Session::open(self.target, endpoint)?),
            };
            self.load_part(session, *part)?;
            if self.stopped() {
                return Ok(());
            }
            if self.left[self.table_of[at]].fetch_sub(1, Ordering::AcqRel) == 1 {
                let indexes = &self.description.tables[part.table].indexes;
                for create in indexes.iter().filter_map(|index| index.create.as_deref()) {
                    session.execute(&numbered(create, part.number))?;
                }
                self.tables.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Writes the next statement while the server is at work on the one before.
    fn load_part(&self, session: &mut Session, part: Part) -> Result<(), LoadError> {
        let table = &self.description.tables[part.table];
        let head =
            format!("INSERT INTO {} {} VALUES", numbered(&table.name, part.number), table.fill.columns);
        let mut text = Vec::with_capacity(BULK_BYTES + 512);
        let mut outstanding = 0;
        let mut rows = RowWriter::new(&table.fill, self.loading.seed, part.number);
        let mut row = part.first;
        while row <= part.last && !self.stopped() {
            text.clear();
            text.extend_from_slice(head.as_bytes());
            let began = row;
            while row <= part.last && text.len() < BULK_BYTES - ROW_BYTES {
                if row > began {
                    text.push(b',');
                }
                rows.row(row, &mut text);
                row += 1;
            }
            if outstanding > 0 {
                session.finish_query()?;
                self.rows.fetch_add(outstanding, Ordering::Relaxed);
            }
            session.send_query(&text)?;
            outstanding = u64::from(row - began);
        }
        if outstanding > 0 {
            session.finish_query()?;
            self.rows.fetch_add(outstanding, Ordering::Relaxed);
        }
        Ok(())
    }
}
