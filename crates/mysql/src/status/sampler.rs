//! Asks a server for its status over a connection of its own.

use std::collections::BTreeMap;
use std::time::Instant;

use ebbtide_load::{LoadError, Session};

use super::counters::Counters;
use super::sources::{BINLOG_FILE, FILES, Figure, MUTEXES, REDO_FILE, STATUS, metrics};
use crate::{Binary, Flavour};

/// A status that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read the server's status")]
pub struct StatusError(#[from] LoadError);

/// Reads a server's status, in two to four round trips.
#[derive(Debug)]
pub struct Sampler {
    session: Session,
    status: String,
    metrics: Option<String>,
    files: Option<String>,
    mutexes: Option<String>,
    binlogs: bool,
    flavour: Flavour,
}

impl Sampler {
    /// Takes a connection, finds out what this server counts, and has InnoDB count what is read here and
    /// is off by default: why pages are flushed and, on MySQL, the checkpoint's age.
    ///
    /// The account needs PROCESS, and SUPER or SYSTEM_VARIABLES_ADMIN to turn counters on; without, they
    /// stay none.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn open(mut session: Session, binary: &Binary) -> Result<Self, StatusError> {
        turn_on_metrics(&mut session, binary.flavour)?;
        Self::open_as_it_is(session, binary.flavour)
    }

    /// Takes a connection to a server that is not ours, and finds out what it counts. Nothing of it is
    /// changed, not even what it counts.
    ///
    /// What the account may not see is none: InnoDB's metrics need PROCESS, waits need SELECT on
    /// `performance_schema`, and the binary log's size on a MySQL without that needs REPLICATION CLIENT.
    ///
    /// # Errors
    /// A broken connection, or a server that refuses what every account may ask for.
    pub fn open_as_it_is(mut session: Session, flavour: Flavour) -> Result<Self, StatusError> {
        let names = STATUS.iter().map(|(name, _)| *name);
        let status = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", quoted(names));
        let metrics = open_metrics(&mut session, flavour)?;
        let waits = has_waits(&mut session)?;
        let files = if waits { open_files(&mut session)? } else { None };
        let mutexes = if waits { open_mutexes(&mut session)? } else { None };
        let log_bin = session.value("SELECT @@global.log_bin")?.as_deref() == Some("1");
        let binlogs = flavour != Flavour::MariaDb
            && log_bin
            && files.is_none()
            && accepted(session.rows("SHOW BINARY LOGS"))?.is_some();
        Ok(Self { session, status, metrics, files, mutexes, binlogs, flavour })
    }

    /// The connection, for other questions between two samples.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Reads the status.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub fn sample(&mut self) -> Result<Counters, StatusError> {
        let mut figures = BTreeMap::new();
        let rows = self.session.rows(&self.status)?;
        // A server that stalls counts until it answers.
        let at = Instant::now();
        for row in rows {
            if let Some((figure, value)) = figure_of(&row, &STATUS) {
                *figures.entry(figure).or_default() += value;
            }
        }
        if let Some(sql) = &self.metrics {
            for row in self.session.rows(sql)? {
                if let Some((figure, value)) = figure_of(&row, metrics(self.flavour)) {
                    figures.insert(figure, value);
                }
            }
        }
        if let Some(sql) = &self.files {
            for row in self.session.rows(sql)? {
                keep_file(&mut figures, &row);
            }
        }
        if let Some(sql) = &self.mutexes {
            for row in self.session.rows(sql)? {
                if let Some((figure, value)) = figure_of(&row, &MUTEXES) {
                    figures.insert(figure, value);
                }
            }
        }
        if self.binlogs {
            let sizes = self.session.rows("SHOW BINARY LOGS")?;
            let total = sizes.iter().filter_map(|row| number(row, 1)).sum();
            figures.insert(Figure::BinlogBytes, total);
        }
        Ok(Counters { at, figures })
    }
}

const METRICS: &str = "FROM INFORMATION_SCHEMA.INNODB_METRICS WHERE NAME IN";

/// The condition on a metric that is counted.
fn is_on(flavour: Flavour) -> &'static str {
    if flavour == Flavour::MariaDb { "ENABLED = 1" } else { "STATUS = 'enabled'" }
}

/// Has a server count the metrics that are read here.
fn turn_on_metrics(session: &mut Session, flavour: Flavour) -> Result<(), StatusError> {
    let names = quoted(metrics(flavour).iter().map(|(name, _)| *name));
    let on = is_on(flavour);
    for name in firsts(session.rows(&format!("SELECT NAME {METRICS} ({names}) AND NOT {on}"))?) {
        // A name that this version does not let itself be turned on is missing when they are read.
        accepted(session.execute(&format!("SET GLOBAL innodb_monitor_enable = '{name}'")))?;
    }
    Ok(())
}

/// The statement for the metrics that are on.
fn open_metrics(session: &mut Session, flavour: Flavour) -> Result<Option<String>, StatusError> {
    let names = quoted(metrics(flavour).iter().map(|(name, _)| *name));
    let on = is_on(flavour);
    let rows = accepted(session.rows(&format!("SELECT NAME {METRICS} ({names}) AND {on}")))?;
    let list = list_of(rows.unwrap_or_default());
    Ok(list.map(|list| format!("SELECT NAME, `COUNT` {METRICS} ({list})")))
}

/// Whether the performance schema is on, and hands what it is told to its tables.
fn has_waits(session: &mut Session) -> Result<bool, StatusError> {
    if session.value("SELECT @@global.performance_schema")?.as_deref() != Some("1") {
        return Ok(false);
    }
    let sql = "SELECT ENABLED FROM performance_schema.setup_consumers WHERE NAME = 'global_instrumentation'";
    // The schema's tables are missing where the server was not made or upgraded with them.
    Ok(accepted(session.value(sql))?.flatten().as_deref() == Some("YES"))
}

/// The statement for the files that are instrumented and timed.
fn open_files(session: &mut Session) -> Result<Option<String>, StatusError> {
    Ok(timed(session, &FILES)?.map(|list| {
        format!(
            "SELECT EVENT_NAME, SUM_TIMER_WAIT, COUNT_MISC, SUM_TIMER_MISC, SUM_NUMBER_OF_BYTES_WRITE \
             FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME IN ({list})"
        )
    }))
}

/// The statement for the mutexes that are instrumented and timed.
fn open_mutexes(session: &mut Session) -> Result<Option<String>, StatusError> {
    Ok(timed(session, &MUTEXES)?.map(|list| {
        format!(
            "SELECT EVENT_NAME, SUM_TIMER_WAIT \
             FROM performance_schema.events_waits_summary_global_by_event_name WHERE EVENT_NAME IN ({list})"
        )
    }))
}

/// Those of the instruments that are on and timed, as a list; none where none is.
fn timed(session: &mut Session, instruments: &[(&str, Figure)]) -> Result<Option<String>, StatusError> {
    let names = quoted(instruments.iter().map(|(name, _)| *name));
    let sql = format!(
        "SELECT NAME FROM performance_schema.setup_instruments \
         WHERE NAME IN ({names}) AND ENABLED = 'YES' AND TIMED = 'YES'"
    );
    Ok(list_of(accepted(session.rows(&sql))?.unwrap_or_default()))
}

/// The first column of rows as a list of SQL; none without rows.
fn list_of(rows: Vec<Vec<Option<String>>>) -> Option<String> {
    let names = firsts(rows);
    (!names.is_empty()).then(|| quoted(names.iter().map(String::as_str)))
}

fn firsts(rows: Vec<Vec<Option<String>>>) -> Vec<String> {
    rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
}

/// None for what the server refused; a broken connection stays an error.
fn accepted<T>(answer: Result<T, LoadError>) -> Result<Option<T>, StatusError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(LoadError::Server { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",")
}

fn number(row: &[Option<String>], column: usize) -> Option<u64> {
    row.get(column)?.as_ref()?.parse().ok()
}

/// The figure of a row of name and value.
fn figure_of(row: &[Option<String>], known: &[(&str, Figure)]) -> Option<(Figure, u64)> {
    let name = row.first()?.as_ref()?;
    let (_, figure) = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some((*figure, number(row, 1)?))
}

fn keep_file(figures: &mut BTreeMap<Figure, u64>, row: &[Option<String>]) {
    let Some(Some(name)) = row.first() else { return };
    let Some((_, wait)) = FILES.iter().find(|(known, _)| known == name) else { return };
    let mut set = |figure, column| {
        if let Some(value) = number(row, column) {
            figures.entry(figure).or_insert(value);
        }
    };
    set(*wait, 1);
    if name == REDO_FILE {
        set(Figure::RedoSyncCount, 2);
        set(Figure::RedoSyncTime, 3);
    }
    if name == BINLOG_FILE {
        // MariaDB's status counts it better, and was read before.
        set(Figure::BinlogBytes, 4);
    }
}
