//! Asks a server for its status over a connection of its own.

use std::time::Instant;

use ebbtide_load::{LoadError, Session};
use ebbtide_observe::metric::FileColumn;
use ebbtide_observe::{AskedCounters, Counter, Readings};

use super::counters::Counters;
use crate::{Binary, Flavour};

/// A status that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read the server's status")]
pub struct StatusError(#[from] LoadError);

/// Reads a server's status, in two to five round trips.
#[derive(Debug)]
pub struct StatusSampler {
    session: Session,
    asked: AskedCounters,
    status: String,
    metrics: Option<String>,
    files: Option<String>,
    mutexes: Option<String>,
    binlogs: bool,
    /// Whether SHOW ENGINE INNODB STATUS is asked for; false once the account may not.
    engine: bool,
}

impl StatusSampler {
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
        let asked = AskedCounters::of(flavour);
        let status = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", quoted(asked.status()));
        let metrics = open_metrics(&mut session, flavour, &asked)?;
        let waits = has_waits(&mut session)?;
        let files = if waits { open_files(&mut session, &asked)? } else { None };
        let mutexes = if waits { open_mutexes(&mut session, &asked)? } else { None };
        let log_bin = session.value("SELECT @@global.log_bin")?.as_deref() == Some("1");
        let binlogs = asked.has(Counter::BinaryLogs)
            && log_bin
            && files.is_none()
            && accepted(session.rows("SHOW BINARY LOGS"))?.is_some();
        Ok(Self { session, asked, status, metrics, files, mutexes, binlogs, engine: true })
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
        let mut readings = Readings::default();
        let rows = self.session.rows(&self.status)?;
        // A server that stalls counts until it answers.
        let at = Instant::now();
        keep(&mut readings, &rows, || self.asked.status(), Counter::Status);
        if let Some(sql) = &self.metrics {
            keep(&mut readings, &self.session.rows(sql)?, || self.asked.metrics(), Counter::InnodbMetric);
        }
        if self.engine && !has_checkpoint(&readings) {
            match accepted(self.session.rows("SHOW ENGINE INNODB STATUS"))? {
                Some(rows) => keep_lines(&mut readings, rows.first(), &self.asked),
                None => self.engine = false,
            }
        }
        if let Some(sql) = &self.files {
            for row in self.session.rows(sql)? {
                self.keep_file(&mut readings, &row);
            }
        }
        if let Some(sql) = &self.mutexes {
            keep(&mut readings, &self.session.rows(sql)?, || self.asked.waits(), Counter::Wait);
        }
        if self.binlogs {
            let sizes = self.session.rows("SHOW BINARY LOGS")?;
            let total = sizes.iter().filter_map(|row| number(row, 1)).sum();
            readings.insert(Counter::BinaryLogs, total);
        }
        Ok(Counters { at, readings })
    }

    /// Reads the gauges that move within an interval: threads that run, and what the checkpoint's age follows from.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub(super) fn moment(&mut self) -> Result<Readings, StatusError> {
        let mut readings = Readings::default();
        keep(&mut readings, &self.session.rows(MOMENT)?, || self.asked.status(), Counter::Status);
        Ok(readings)
    }

    /// Keeps the columns of a file's row that were asked for.
    fn keep_file(&self, readings: &mut Readings, row: &[Option<String>]) {
        let Some(Some(answered)) = row.first() else { return };
        let Some(name) = self.asked.files().into_iter().find(|name| *name == answered.as_str()) else {
            return;
        };
        for (place, (column, _)) in (1..).zip(FILE_COLUMNS) {
            let counter = Counter::FileIo(name, column);
            if let (true, Some(value)) = (self.asked.has(counter), number(row, place)) {
                readings.insert(counter, value);
            }
        }
    }
}

/// One look shows little of these; several show their mean and their highest values.
const MOMENT: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_running', 'Innodb_checkpoint_age', \
    'Innodb_redo_log_current_lsn', 'Innodb_redo_log_checkpoint_lsn')";

/// Whether the checkpoint's age is known. The status of the engine, a long text, is asked for without it alone.
fn has_checkpoint(readings: &Readings) -> bool {
    let known = [
        Counter::InnodbMetric("log_lsn_checkpoint_age"),
        Counter::Status("innodb_checkpoint_age"),
        Counter::Status("innodb_redo_log_checkpoint_lsn"),
    ];
    known.iter().any(|counter| readings.get(*counter).is_some())
}

/// Keeps the numbers of the lines that were asked for, from the last column of the engine's status.
fn keep_lines(readings: &mut Readings, row: Option<&Vec<Option<String>>>, asked: &AskedCounters) {
    let Some(Some(text)) = row.and_then(|row| row.last()) else { return };
    for name in asked.engine() {
        let number = |line: &str| line.trim().strip_prefix(name)?.trim().parse::<u64>().ok();
        if let Some(value) = text.lines().find_map(number) {
            readings.insert(Counter::EngineStatus(name), value);
        }
    }
}

/// Columns of performance_schema.file_summary_by_event_name, in the order in which they are asked for.
const FILE_COLUMNS: [(FileColumn, &str); 4] = [
    (FileColumn::Time, "SUM_TIMER_WAIT"),
    (FileColumn::MiscCount, "COUNT_MISC"),
    (FileColumn::MiscTime, "SUM_TIMER_MISC"),
    (FileColumn::BytesWritten, "SUM_NUMBER_OF_BYTES_WRITE"),
];

/// Keeps rows of name and value, as far as their names were asked for.
fn keep<I: Iterator<Item = &'static str>>(
    readings: &mut Readings,
    rows: &[Vec<Option<String>>],
    asked: impl Fn() -> I,
    counter: fn(&'static str) -> Counter,
) {
    for row in rows {
        let Some(Some(answered)) = row.first() else { continue };
        let name = asked().find(|name| name.eq_ignore_ascii_case(answered));
        if let (Some(name), Some(value)) = (name, number(row, 1)) {
            readings.insert(counter(name), value);
        }
    }
}

const METRICS: &str = "FROM INFORMATION_SCHEMA.INNODB_METRICS WHERE NAME IN";

/// The condition on a metric that is counted.
fn is_on(flavour: Flavour) -> &'static str {
    if flavour == Flavour::MariaDb { "ENABLED = 1" } else { "STATUS = 'enabled'" }
}

/// Has a server count the metrics that are read here.
fn turn_on_metrics(session: &mut Session, flavour: Flavour) -> Result<(), StatusError> {
    let names = quoted(AskedCounters::of(flavour).metrics());
    let on = is_on(flavour);
    for name in firsts(session.rows(&format!("SELECT NAME {METRICS} ({names}) AND NOT {on}"))?) {
        // A name that this version does not let itself be turned on is missing when they are read.
        accepted(session.execute(&format!("SET GLOBAL innodb_monitor_enable = '{name}'")))?;
    }
    Ok(())
}

/// The statement for the metrics that are on.
fn open_metrics(
    session: &mut Session,
    flavour: Flavour,
    asked: &AskedCounters,
) -> Result<Option<String>, StatusError> {
    let names = quoted(asked.metrics());
    let on = is_on(flavour);
    let rows = accepted(session.rows(&format!("SELECT NAME {METRICS} ({names}) AND {on}")))?;
    let list = list_of(rows.unwrap_or_default());
    Ok(list.map(|list| format!("SELECT NAME, `COUNT` {METRICS} ({list})")))
}

/// Whether the performance schema is on, and hands what it is asked to its tables.
fn has_waits(session: &mut Session) -> Result<bool, StatusError> {
    if session.value("SELECT @@global.performance_schema")?.as_deref() != Some("1") {
        return Ok(false);
    }
    let sql = "SELECT ENABLED FROM performance_schema.setup_consumers WHERE NAME = 'global_instrumentation'";
    // The schema's tables are missing where the server was not made or upgraded with them.
    Ok(accepted(session.value(sql))?.flatten().as_deref() == Some("YES"))
}

/// The statement for the files that are instrumented and timed.
fn open_files(session: &mut Session, asked: &AskedCounters) -> Result<Option<String>, StatusError> {
    let columns = FILE_COLUMNS.map(|(_, column)| column).join(", ");
    Ok(timed(session, asked.files().into_iter())?.map(|list| {
        format!(
            "SELECT EVENT_NAME, {columns} FROM performance_schema.file_summary_by_event_name \
             WHERE EVENT_NAME IN ({list})"
        )
    }))
}

/// The statement for the mutexes that are instrumented and timed.
fn open_mutexes(session: &mut Session, asked: &AskedCounters) -> Result<Option<String>, StatusError> {
    Ok(timed(session, asked.waits())?.map(|list| {
        format!(
            "SELECT EVENT_NAME, SUM_TIMER_WAIT \
             FROM performance_schema.events_waits_summary_global_by_event_name WHERE EVENT_NAME IN ({list})"
        )
    }))
}

/// Those of the instruments that are on and timed, as a list; none where none is.
fn timed<'a>(
    session: &mut Session,
    instruments: impl Iterator<Item = &'a str>,
) -> Result<Option<String>, StatusError> {
    let names = quoted(instruments);
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
pub(super) fn accepted<T>(answer: Result<T, LoadError>) -> Result<Option<T>, StatusError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of the log, as MySQL 5.7 and MariaDB 10.4, and as MySQL 8.0 print it.
    #[test]
    fn the_lines_of_the_log_are_read_of_the_engines_status() {
        let asked = AskedCounters::of(Flavour::MySql);
        let keep = |text: &str| {
            let mut readings = Readings::default();
            let row = ["InnoDB", "", text].map(|cell| Some(cell.to_owned())).to_vec();
            keep_lines(&mut readings, Some(&row), &asked);
            ["Log sequence number", "Last checkpoint at"]
                .map(|line| readings.get(Counter::EngineStatus(line)))
        };
        let old = "---\nLOG\n---\nLog sequence number 2501\nLog flushed up to   2501\nPages flushed up to 2500\n\
                   Last checkpoint at  2492\n0 pending log flushes, 0 pending chkp writes\n";
        assert_eq!(keep(old), [Some(2_501), Some(2_492)]);
        let new = "Log sequence number          19563041\nLog buffer assigned up to    19563041\n\
                   Last checkpoint at           19563000\n";
        assert_eq!(keep(new), [Some(19_563_041), Some(19_563_000)]);
        // Before 5.5 the number has two parts.
        assert_eq!(keep("Log sequence number 0 46886\n"), [None, None]);
        let mut readings = Readings::default();
        keep_lines(&mut readings, None, &asked);
        assert!(!has_checkpoint(&readings));
        readings.insert(Counter::Status("innodb_redo_log_checkpoint_lsn"), 1);
        assert!(has_checkpoint(&readings), "a long text is not asked for twice");
    }
}
