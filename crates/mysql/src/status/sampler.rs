//! Asks a server for its status over a connection of its own.

use std::collections::BTreeMap;
use std::time::Instant;

use ebbtide_load::{LoadError, Session};

use super::counters::Counters;
use super::sources::{BINLOG_FILE, FILES, Figure, REDO_FILE, STATUS, metrics};
use crate::{Binary, Flavour};

/// A status that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read the server's status")]
pub struct StatusError(#[from] LoadError);

/// Reads a server's status, in two or three round trips.
#[derive(Debug)]
pub struct Sampler {
    session: Session,
    status: String,
    metrics: Option<String>,
    files: Option<String>,
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
        let names = STATUS.iter().map(|(name, _)| *name);
        let status = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", quoted(names));
        let metrics = open_metrics(&mut session, binary)?;
        let files = open_files(&mut session)?;
        let log_bin = session.value("SELECT @@global.log_bin")?.as_deref() == Some("1");
        let binlogs = binary.flavour != Flavour::MariaDb && log_bin && files.is_none();
        Ok(Self { session, status, metrics, files, binlogs, flavour: binary.flavour })
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
            let known = |name: &str| STATUS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            keep(&mut figures, &row, |name| known(name).map(|(_, figure)| *figure));
        }
        if let Some(sql) = &self.metrics {
            for row in self.session.rows(sql)? {
                let known = |name: &str| metrics(self.flavour).iter().find(|(known, _)| *known == name);
                keep(&mut figures, &row, |name| known(name).map(|(_, figure)| *figure));
            }
        }
        if let Some(sql) = &self.files {
            for row in self.session.rows(sql)? {
                keep_file(&mut figures, &row);
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

/// The statement for the metrics that are on, or could be turned on.
fn open_metrics(session: &mut Session, binary: &Binary) -> Result<Option<String>, StatusError> {
    let names = quoted(metrics(binary.flavour).iter().map(|(name, _)| *name));
    let on = if binary.flavour == Flavour::MariaDb { "ENABLED = 1" } else { "STATUS = 'enabled'" };
    let from = "FROM INFORMATION_SCHEMA.INNODB_METRICS WHERE NAME IN";
    for row in session.rows(&format!("SELECT NAME {from} ({names}) AND NOT {on}"))? {
        if let Some(Some(name)) = row.first() {
            // A name that this version does not let itself be turned on is missing below.
            accepted(session.execute(&format!("SET GLOBAL innodb_monitor_enable = '{name}'")))?;
        }
    }
    let rows = session.rows(&format!("SELECT NAME {from} ({names}) AND {on}"))?;
    let counting: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    let list = quoted(counting.iter().map(String::as_str));
    Ok((!counting.is_empty()).then(|| format!("SELECT NAME, `COUNT` {from} ({list})")))
}

/// The statement for the performance schema's files that are instrumented and timed.
fn open_files(session: &mut Session) -> Result<Option<String>, StatusError> {
    if session.value("SELECT @@global.performance_schema")?.as_deref() != Some("1") {
        return Ok(None);
    }
    let names = quoted(FILES.iter().map(|(name, _)| *name));
    let sql = format!(
        "SELECT NAME FROM performance_schema.setup_instruments \
         WHERE NAME IN ({names}) AND ENABLED = 'YES' AND TIMED = 'YES'"
    );
    // The schema's tables are missing where the server was not made or upgraded with them.
    let Some(rows) = accepted(session.rows(&sql))? else { return Ok(None) };
    let timed: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    let list = quoted(timed.iter().map(String::as_str));
    Ok((!timed.is_empty()).then(|| {
        format!(
            "SELECT EVENT_NAME, SUM_TIMER_WAIT, COUNT_MISC, SUM_TIMER_MISC, SUM_NUMBER_OF_BYTES_WRITE \
             FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME IN ({list})"
        )
    }))
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

fn keep(figures: &mut BTreeMap<Figure, u64>, row: &[Option<String>], known: impl Fn(&str) -> Option<Figure>) {
    let figure = row.first().and_then(|name| known(name.as_ref()?));
    if let (Some(figure), Some(value)) = (figure, number(row, 1)) {
        figures.insert(figure, value);
    }
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
