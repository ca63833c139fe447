//! Loading the tables, and dropping them.

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, Drawer, Random};
use crate::error::LoadError;
use crate::options::{Endpoint, Schema, Target, Workload};
use crate::run::Cancel;
use crate::sql::{self, BULK_BYTES, C_GROUPS, LEDGER_TABLE, PAD_GROUPS};
use crate::wire::{Session, quoted};

/// What to load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrepareOptions {
    /// The workload it is for: `bulk_insert` has tables of its own, and `oltp_insert` without
    /// AUTO_INCREMENT starts on empty ones, as in sysbench. None means the OLTP tables.
    pub workload: Option<Workload>,
    /// The tables.
    pub schema: Schema,
    /// How the values of k are drawn.
    pub distribution: Distribution,
    /// The seed; the rows depend on it and on nothing else.
    pub seed: u64,
    /// Connections that load at the same time. More than there are tables split the tables.
    pub threads: u32,
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

/// Rows whose values come from one random stream, so that the data do not depend on the threads.
const STREAM_ROWS: u32 = 10_000;
/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Creates the tables (and the database, where it is missing), fills them, and creates the index.
///
/// # Errors
/// The server's, such as 1050 where a table is there already.
pub fn prepare(
    target: &Target,
    options: &PrepareOptions,
    cancel: &Cancel,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Prepared, LoadError> {
    options.schema.check()?;
    options.distribution.check().map_err(crate::options::OptionError::from)?;
    let began = Instant::now();
    let (mut session, database_created) = open_or_create_database(target)?;
    let mut done = Prepared {
        tables: options.schema.tables,
        rows: 0,
        elapsed_s: 0.0,
        server_version: session.version().to_owned(),
        database_created,
        cancelled: false,
    };
    if options.workload == Some(Workload::BulkInsert) {
        done.tables = options.threads;
        for table in 1..=options.threads {
            session.execute(&sql::create_bulk_table(table))?;
        }
    } else {
        for table in 1..=options.schema.tables {
            session.execute(&sql::create_table(&options.schema, table))?;
        }
        let work = Work::new(target, options, cancel);
        work.run(on_progress)?;
        done.rows = work.rows.load(Ordering::Relaxed);
        done.cancelled = cancel.is_cancelled();
    }
    done.elapsed_s = began.elapsed().as_secs_f64();
    Ok(done)
}

pub(crate) fn open_or_create_database(target: &Target) -> Result<(Session, bool), LoadError> {
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

fn first(target: &Target) -> Result<&Endpoint, LoadError> {
    target.endpoints.first().ok_or(LoadError::Options(crate::options::OptionError::Contradiction(
        "no server is named: give --mysql-socket, or --mysql-host and --mysql-port",
    )))
}

/// A stretch of rows of one table.
#[derive(Debug, Clone, Copy)]
struct Part {
    table: u32,
    first: u32,
    last: u32,
}

/// The loading, shared by its threads.
struct Work<'a> {
    target: &'a Target,
    options: &'a PrepareOptions,
    cancel: &'a Cancel,
    drawer: Drawer,
    parts: Vec<Part>,
    next: AtomicUsize,
    /// Parts of each table that are not loaded yet.
    left: Vec<AtomicU32>,
    rows: AtomicU64,
    tables: AtomicU32,
    failed: AtomicU32,
}

impl<'a> Work<'a> {
    fn new(target: &'a Target, options: &'a PrepareOptions, cancel: &'a Cancel) -> Self {
        let schema = &options.schema;
        let empty = options.workload == Some(Workload::Insert) && !schema.auto_inc;
        let rows = if empty { 0 } else { schema.table_size };
        let pieces = options.threads.div_ceil(schema.tables).clamp(1, rows.div_ceil(STREAM_ROWS).max(1));
        // Whole streams per part, so that two parts never share one.
        let length = rows.div_ceil(pieces).div_ceil(STREAM_ROWS).max(1) * STREAM_ROWS;
        let mut parts = Vec::new();
        let mut left = Vec::new();
        for table in 1..=schema.tables {
            let before = parts.len();
            let starts = (0..rows.max(1)).step_by(usize::try_from(length).expect("a u32 fits"));
            parts.extend(starts.map(|start| Part {
                table,
                first: start + 1,
                last: start.saturating_add(length).min(rows),
            }));
            left.push(AtomicU32::new(u32::try_from(parts.len() - before).expect("fewer parts than rows")));
        }
        Self {
            target,
            options,
            cancel,
            drawer: Drawer::new(options.distribution),
            parts,
            next: AtomicUsize::new(0),
            left,
            rows: AtomicU64::new(0),
            tables: AtomicU32::new(0),
            failed: AtomicU32::new(0),
        }
    }

    fn run(&self, on_progress: &mut dyn FnMut(&Progress)) -> Result<(), LoadError> {
        let total = self.parts.iter().map(|part| u64::from((part.last + 1).saturating_sub(part.first))).sum();
        thread::scope(|scope| {
            let (tell, told) = mpsc::channel::<Result<(), LoadError>>();
            for number in 0..self.options.threads.max(1) {
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
                    rows_total: total,
                    tables: self.tables.load(Ordering::Relaxed),
                    tables_total: self.options.schema.tables,
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
        while let Some(part) = self.parts.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let session = match &mut session {
                Some(session) => session,
                none => none.insert(Session::open(self.target, endpoint)?),
            };
            self.load_part(session, *part)?;
            if self.stopped() {
                break;
            }
            let at = usize::try_from(part.table - 1).expect("a u32 fits");
            if self.left[at].fetch_sub(1, Ordering::AcqRel) == 1 {
                if self.options.schema.create_secondary {
                    session.execute(&sql::create_index(part.table))?;
                }
                self.tables.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Writes the next statement while the server is at work on the one before.
    fn load_part(&self, session: &mut Session, part: Part) -> Result<(), LoadError> {
        let head = format!("INSERT INTO sbtest{} (id, k, c, pad) VALUES", part.table);
        let mut text = Vec::with_capacity(BULK_BYTES + 512);
        let mut outstanding = 0;
        let mut random = Random::new(self.options.seed, 0);
        let mut id = part.first;
        while id <= part.last && !self.stopped() {
            text.clear();
            text.extend_from_slice(head.as_bytes());
            let began = id;
            while id <= part.last && text.len() < BULK_BYTES - ROW_BYTES {
                if (id - 1).is_multiple_of(STREAM_ROWS) {
                    random = Random::new(self.options.seed, stream(part.table, id));
                }
                if id > began {
                    text.push(b',');
                }
                self.row(&mut text, id, &mut random);
                id += 1;
            }
            if outstanding > 0 {
                session.finish_query()?;
                self.rows.fetch_add(outstanding, Ordering::Relaxed);
            }
            session.send_query(&text)?;
            outstanding = u64::from(id - began);
        }
        if outstanding > 0 {
            session.finish_query()?;
            self.rows.fetch_add(outstanding, Ordering::Relaxed);
        }
        Ok(())
    }

    fn row(&self, text: &mut Vec<u8>, id: u32, random: &mut Random) {
        let k = self.drawer.id(random, self.options.schema.table_size);
        write!(text, "({id}, {k}, '").expect("a Vec takes everything");
        random.digit_groups(C_GROUPS, text);
        text.extend_from_slice(b"', '");
        random.digit_groups(PAD_GROUPS, text);
        text.extend_from_slice(b"')");
    }
}

/// More than any row takes.
const ROW_BYTES: usize = 256;

fn stream(table: u32, id: u32) -> u64 {
    u64::from(table) << 32 | u64::from(id / STREAM_ROWS)
}

/// The names among `sbtest1` to `sbtestN` and the ledger's table that are there.
///
/// # Errors
/// The server's.
pub fn tables_present(target: &Target, tables: u32) -> Result<Vec<String>, LoadError> {
    let mut session = Session::open(target, first(target)?)?;
    let rows = session.rows(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND \
         (table_name LIKE 'sbtest%' OR table_name = 'ebbtide_ledger')",
    )?;
    let ours = |name: &str| {
        let number = name.strip_prefix("sbtest").and_then(|number| number.parse::<u32>().ok());
        name == LEDGER_TABLE || number.is_some_and(|number| (1..=tables).contains(&number))
    };
    let mut names: Vec<String> = rows
        .into_iter()
        .filter_map(|row| row.into_iter().next().flatten())
        .filter(|name| ours(name))
        .collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    Ok(names)
}

/// Drops what [`tables_present`] names, and answers with it.
///
/// # Errors
/// The server's.
pub fn cleanup(target: &Target, tables: u32) -> Result<Vec<String>, LoadError> {
    let names = tables_present(target, tables)?;
    let mut session = Session::open(target, first(target)?)?;
    for name in &names {
        session.execute(&format!("DROP TABLE IF EXISTS {}", quoted(name)))?;
    }
    Ok(names)
}
