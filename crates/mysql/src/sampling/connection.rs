//! A connection for sampling: settings of its session alone, and the cost of what is asked over it.

use std::time::{Duration, Instant};

use ebbtide_load::{LoadError, Session, Target};
use ebbtide_observe::Version;
use ebbtide_observe::metric::Maker;

use super::reading::Cost;

/// A server that sends nothing for so long hangs, or its machine is gone. It is longer than the server's own limit for a SELECT.
pub(super) const LONGEST_ANSWER: Duration = Duration::from_secs(5);

/// Settings of every session: no statement waits for a lock on metadata, none gets into the slow log, whatever that takes in, times
/// are in UTC, so that no daylight saving time is in their differences, and the server does not end the session between two samples,
/// which are at most a minute apart.
const SETTINGS: [&str; 5] = [
    "SET SESSION long_query_time = 3600",
    "SET SESSION min_examined_row_limit = 4294967295",
    "SET SESSION lock_wait_timeout = 1",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION wait_timeout = 600",
];
/// The server ends a statement (MySQL: a SELECT) that takes longer.
const MARIADB_LIMIT: &str = "SET SESSION max_statement_time = 2";
/// In milliseconds.
const MYSQL_LIMIT: &str = "SET SESSION max_execution_time = 2000";

const IDENTITY: &str = "SELECT VERSION(), CURRENT_USER()";

/// Errors with which a server ends the connection too: `ER_SERVER_SHUTDOWN`, `ER_NEW_ABORTING_CONNECTION`, MariaDB's
/// `ER_CONNECTION_KILLED`, MySQL's `ER_SESSION_WAS_KILLED` and `ER_CLIENT_INTERACTION_TIMEOUT`.
const ENDS_CONNECTION: [u16; 5] = [1053, 1184, 1927, 3169, 4031];

/// What a server said to a statement that it did not execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) message: String,
}

/// A connection that is ready to be asked over.
#[derive(Debug)]
pub(super) struct Connection {
    session: Session,
    /// Whose counters the server keeps.
    pub(super) maker: Maker,
    /// Its version; None where it has no form that is known here.
    pub(super) release: Option<Version>,
    /// The account that it took us for, such as `monitor@%`.
    pub(super) account: String,
    /// Settings of the session that the server has refused.
    pub(super) refused_settings: Vec<(&'static str, Refusal)>,
    cost: Cost,
    counted_bytes: u64,
}

impl Connection {
    /// Connects, sets what the session needs, and finds out which server it is. Nothing of the server is changed.
    ///
    /// # Errors
    /// Everything from no server to a wrong password.
    pub(super) fn open(target: &Target) -> Result<Self, LoadError> {
        let started = Instant::now();
        let mut session = Session::open_without_database(target, target.endpoint(0)?)?;
        session.limit_answers(LONGEST_ANSWER)?;
        let mut refused_settings = Vec::new();
        for setting in SETTINGS {
            refused_settings.extend(set(&mut session, setting)?);
        }
        let identity = session.rows(IDENTITY)?.into_iter().next().unwrap_or_default();
        let mut identity = identity.into_iter().map(Option::unwrap_or_default);
        let (version, account) = (identity.next().unwrap_or_default(), identity.next().unwrap_or_default());
        let (maker, limit) = if version.contains("MariaDB") {
            (Maker::MariaDb, MARIADB_LIMIT)
        } else {
            (Maker::MySql, MYSQL_LIMIT)
        };
        refused_settings.extend(set(&mut session, limit)?);
        let cost = Cost {
            connections: 1,
            statements: SETTINGS.len() as u64 + 2,
            seconds: started.elapsed().as_secs_f64(),
            ..Cost::default()
        };
        let release = Version::parse(&version);
        Ok(Self { session, maker, release, account, refused_settings, cost, counted_bytes: 0 })
    }

    /// Asks the server. The inner error is its refusal; with the outer one, the connection is of no more use.
    ///
    /// # Errors
    /// A connection that broke, or a server that did not answer in time.
    pub(super) fn ask<T>(
        &mut self,
        sql: &str,
        read: impl FnOnce(&mut Session, &str) -> Result<T, LoadError>,
    ) -> Result<Result<T, Refusal>, LoadError> {
        let started = Instant::now();
        let answer = read(&mut self.session, sql);
        self.cost.statements += 1;
        self.cost.seconds += started.elapsed().as_secs_f64();
        match answer {
            Ok(answer) => Ok(Ok(answer)),
            Err(LoadError::Server { code, message, .. }) if !ENDS_CONNECTION.contains(&code) => {
                Ok(Err(Refusal { code, message }))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a server that did not answer in time has sent nothing since.
    pub(super) fn is_silent(&mut self) -> bool {
        self.session.is_silent(Duration::from_millis(10))
    }

    /// What has been spent since the last call.
    pub(super) fn take_cost(&mut self) -> Cost {
        let bytes = self.session.carried_bytes();
        let new_bytes = bytes - self.counted_bytes;
        self.counted_bytes = bytes;
        Cost { bytes: new_bytes, ..std::mem::take(&mut self.cost) }
    }
}

/// Sets a variable of the session. A server that refuses is sampled all the same; returns the setting with what the server said.
fn set(session: &mut Session, setting: &'static str) -> Result<Option<(&'static str, Refusal)>, LoadError> {
    match session.execute(setting) {
        Ok(_) => Ok(None),
        Err(LoadError::Server { code, message, .. }) => Ok(Some((setting, Refusal { code, message }))),
        Err(error) => Err(error),
    }
}

/// Whether a server did not answer in time, and may still be at work.
pub(super) fn is_timeout(error: &LoadError) -> bool {
    matches!(error, LoadError::Broken { source, .. } if source.kind() == std::io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_setting_of_a_session_changes_the_server() {
        for setting in SETTINGS.into_iter().chain([MARIADB_LIMIT, MYSQL_LIMIT]) {
            assert!(setting.starts_with("SET SESSION "), "{setting}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_in_time_is_told_from_one_that_is_gone() {
        let broken = |kind: std::io::ErrorKind| LoadError::Broken { during: "x", source: kind.into() };
        assert!(is_timeout(&broken(std::io::ErrorKind::TimedOut)));
        assert!(!is_timeout(&broken(std::io::ErrorKind::UnexpectedEof)));
    }
}
