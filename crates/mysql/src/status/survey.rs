//! What a server is asked once: replication, the origin of its variables, and the sizes of its tables.

use std::fmt::Display;
use std::time::Duration;

use ebbtide_load::{LoadError, Session};
use ebbtide_observe::metric::Maker;
use ebbtide_observe::{
    Engine, NotSeen, Observation, RowStatistics, Tables, Variables, Version, worst_channel,
};

use super::StatusError;
use super::facts::pairs;

/// Tables whose sizes are asked for, for each second of the interval: MariaDB opens the definition of each, and a look may take 1% of a
/// core (`./dev bench doctor`).
const TABLES_A_SECOND: f64 = 200.0;
/// With more tables than this their sizes are not asked for in any interval, so that a server with a hundred thousand is not
/// held up.
const MOST_TABLES: u64 = 10_000;
/// Of so many times fewer tables the rows are asked for: MySQL 8 opens each table for that.
const COUNTED: u64 = 4;
/// Tables of fewer rows are left out of the mean length of a row: they do not fill their pages.
const LEAST_ROWS: u64 = 1_000;
/// The server's own schemas.
const OWN_SCHEMAS: &str = "('mysql','sys','information_schema','performance_schema')";

/// Whether the account has a privilege on all tables: `TABLES` lists no others. A privilege of a role is not counted.
const SEES_ALL: &str = "SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE', \
    'ALTER', 'CREATE', 'DROP') AND GRANTEE = CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))";

/// What the tables of files in the performance schema tell.
const WAITS: &str = "waits for files";
/// What an account needs to read the performance schema.
const PERFORMANCE_SCHEMA: &str = "SELECT on performance_schema.*";

/// Asks, and notes what is refused. The longer the interval of the look is, the more tables are counted.
pub(super) fn survey(
    session: &mut Session,
    seen: &mut Observation,
    interval: Duration,
) -> Result<(), StatusError> {
    let Some((maker, version)) =
        seen.facts.as_ref().and_then(|facts| Some((facts.flavour.maker(), facts.release()?)))
    else {
        note(
            seen,
            "replication, origins of variables and sizes of tables",
            &"the server's version is not known here",
        );
        return Ok(());
    };
    match replica(session, maker, version)? {
        Ok(replica) => seen.replica = Some(replica),
        Err(refused) => {
            let privilege = "REPLICATION CLIENT (MySQL) or REPLICA MONITOR (MariaDB)";
            note(seen, "replication", &refused.without(privilege));
        }
    }
    if maker == Maker::MySql && version >= Version::new(8, 0, 0) {
        let sql = "SELECT VARIABLE_NAME, VARIABLE_SOURCE FROM performance_schema.variables_info";
        match answered(session.rows(sql))? {
            Ok(rows) => seen.origins = Some(pairs(rows)),
            Err(refused) => {
                note(seen, "origins of variables", &refused.without(PERFORMANCE_SCHEMA));
            }
        }
    }
    match tables(session, maker, version, most_tables(interval))? {
        Ok(tables) => {
            // Tables of the system tablespace have no file of their own to be counted.
            let own = seen.variables.as_ref().and_then(|all| all.get("innodb_file_per_table"));
            let bounded = own.is_some_and(|word| word.eq_ignore_ascii_case("off"));
            seen.tables = Some(Tables { bounded, ..tables });
        }
        Err(refused) => note(seen, "sizes of tables", &refused),
    }
    match seen.variables.as_ref().and_then(|all| all.get("performance_schema")) {
        Some("OFF") => note(seen, WAITS, &"performance_schema is OFF; it needs a restart"),
        Some(_) => {
            let sql = "SELECT 1 FROM performance_schema.file_summary_by_event_name LIMIT 1";
            if let Err(refused) = answered(session.rows(sql))? {
                note(seen, WAITS, &refused.without(PERFORMANCE_SCHEMA));
            }
        }
        None => {}
    }
    Ok(())
}

fn note(seen: &mut Observation, what: &str, why: &dyn Display) {
    seen.not_seen.push(NotSeen { what: what.to_owned(), why: why.to_string() });
}

/// Why something is not seen of a server that answers.
#[derive(Debug, thiserror::Error)]
enum Refused {
    /// The server refused, in its own words.
    #[error("{0}")]
    ByServer(String),
    /// The server refused for want of a privilege.
    #[error("{message}; grant {privilege}")]
    NoPrivilege { message: String, privilege: &'static str },
    /// The answer would cost the server too much.
    #[error("the server has over {most} tables, which are not counted in this interval, to spare the server{}", longer(*.most))]
    TooManyTables { most: u64 },
}

/// Tables whose sizes are asked for in a look of this length.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a length is not negative, and float casts saturate"
)]
fn most_tables(interval: Duration) -> u64 {
    MOST_TABLES.min((interval.as_secs_f64() * TABLES_A_SECOND) as u64)
}

/// The interval in which most tables are counted, where this one is shorter.
fn longer(most: u64) -> String {
    if most == MOST_TABLES {
        return String::new();
    }
    let seconds = (MOST_TABLES as f64 / TABLES_A_SECOND).ceil();
    format!("; --interval={seconds}s counts up to {MOST_TABLES}")
}

impl Refused {
    /// The same refusal of a statement that needs a privilege.
    fn without(self, privilege: &'static str) -> Self {
        match self {
            Self::ByServer(message) => Self::NoPrivilege { message, privilege },
            other => other,
        }
    }
}

/// The server's refusal in its own words; a broken connection stays an error.
fn answered<T>(answer: Result<T, LoadError>) -> Result<Result<T, Refused>, StatusError> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(LoadError::Server { message, .. }) => Ok(Err(Refused::ByServer(message))),
        Err(error) => Err(error.into()),
    }
}

fn replica(
    session: &mut Session,
    maker: Maker,
    version: Version,
) -> Result<Result<Variables, Refused>, StatusError> {
    // MariaDB's SHOW REPLICA STATUS leaves out connections that have a name.
    let sql = match maker {
        Maker::MariaDb => "SHOW ALL SLAVES STATUS",
        Maker::MySql if version >= Version::new(8, 0, 22) => "SHOW REPLICA STATUS",
        Maker::MySql => "SHOW SLAVE STATUS",
    };
    let rows = answered(session.named_rows(sql))?;
    Ok(rows.map(|rows| worst_channel(rows.into_iter().map(|row| row.into_iter().collect()))))
}

/// Tables of users by engine, and the bytes of InnoDB's files. Nothing here has the server read or keep statistics.
fn tables(
    session: &mut Session,
    maker: Maker,
    version: Version,
    most: u64,
) -> Result<Result<Tables, Refused>, StatusError> {
    let old = maker == Maker::MariaDb || version < Version::new(8, 0, 0);
    // Each table has one clustered index, whose type is odd, and MariaDB lists indexes in a quarter of the time that tables
    // take. MySQL 8 opens every table for INNODB_TABLES; the brief list is of its dictionary alone.
    let (all, files) = if old {
        ("INNODB_SYS_INDEXES WHERE TYPE & 1", "INNODB_SYS_TABLESPACES")
    } else {
        ("INNODB_TABLESPACES_BRIEF", "INNODB_TABLESPACES")
    };
    let number = |rows: Vec<Vec<Option<String>>>| {
        rows.first().and_then(|row| row.first()?.as_ref()?.parse::<u64>().ok()).unwrap_or(0)
    };
    let sql = format!(
        "SELECT COUNT(*) FROM (SELECT 1 FROM information_schema.{all} LIMIT {}) AS counted",
        most + 1
    );
    let count = match answered(session.rows(&sql))? {
        Ok(rows) => number(rows),
        Err(refused) => return Ok(Err(refused.without("PROCESS"))),
    };
    if count > most {
        return Ok(Err(Refused::TooManyTables { most }));
    }
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(FILE_SIZE), 0) AS UNSIGNED) FROM information_schema.{files} \
         WHERE NAME LIKE '%/%' AND NAME NOT LIKE 'mysql/%' AND NAME NOT LIKE 'sys/%'"
    );
    let bytes = match answered(session.rows(&sql))? {
        Ok(rows) => number(rows),
        Err(refused) => return Ok(Err(refused.without("PROCESS"))),
    };
    let sql = format!(
        "SELECT ENGINE, COUNT(*) FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA NOT IN {OWN_SCHEMAS} AND TABLE_TYPE = 'BASE TABLE' AND ENGINE IS NOT NULL GROUP BY ENGINE"
    );
    let rows = match answered(session.rows(&sql))? {
        Ok(rows) => rows,
        Err(refused) => return Ok(Err(refused)),
    };
    let engine = |(name, tables): (&str, &str)| {
        let bytes = if name.eq_ignore_ascii_case("innodb") { bytes } else { 0 };
        Some(Engine { name: name.to_owned(), tables: tables.parse().ok()?, bytes })
    };
    let mut engines: Vec<Engine> = pairs(rows).iter().filter_map(engine).collect();
    // An account may read the sizes of files and see no table.
    if bytes > 0 && !engines.iter().any(|engine| engine.name.eq_ignore_ascii_case("innodb")) {
        engines.push(Engine { name: "InnoDB".into(), tables: 0, bytes });
    }
    let hidden = match answered(session.rows(SEES_ALL))? {
        Ok(rows) => number(rows) == 0,
        Err(_) => true,
    };
    let rows = if count > most / COUNTED { None } else { row_statistics(session, old)? };
    Ok(Ok(Tables { engines, bounded: false, hidden, rows }))
}

/// Rows and bytes of InnoDB's tables, by the statistics that it has in memory; None where there are none, or where the server
/// refuses. Nothing is counted or kept for it: a table without statistics has 0 rows here (`i_s.cc`).
fn row_statistics(session: &mut Session, old: bool) -> Result<Option<RowStatistics>, StatusError> {
    let view = if old { "INNODB_SYS_TABLESTATS" } else { "INNODB_TABLESTATS" };
    let sql = format!(
        "SELECT CAST(SUM(NUM_ROWS) AS UNSIGNED), CAST(SUM(CLUST_INDEX_SIZE) * @@innodb_page_size AS UNSIGNED) \
         FROM information_schema.{view} WHERE NUM_ROWS >= {LEAST_ROWS} \
         AND NAME LIKE '%/%' AND NAME NOT LIKE 'mysql/%' AND NAME NOT LIKE 'sys/%'"
    );
    let Ok(rows) = answered(session.rows(&sql))? else { return Ok(None) };
    let number = |at: usize| rows.first()?.get(at)?.as_ref()?.parse::<u64>().ok();
    let known = number(0).filter(|rows| *rows > 0).zip(number(1));
    Ok(known.map(|(rows, bytes)| RowStatistics { rows, bytes }))
}
