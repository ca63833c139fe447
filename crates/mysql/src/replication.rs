//! Replication: a source that others follow, a replica that follows it, and what the replica says of itself.
//!
//! Spoken in MariaDB's words. MySQL keeps a replica's position in InnoDB tables alone (from 8.0 on by default, from
//! 9 on always), so that there is no file of it to lose: [`check`] refuses it.

use std::collections::BTreeMap;

use ebbtide_load::{Endpoint, LoadError, Session};

use crate::{Binary, Server, ServerError};

/// The account that replicas log in with.
const USER: &str = "ebbtide_replica";
/// It is good for a server that listens on 127.0.0.1 alone and lives for minutes.
const PASSWORD: &str = "ebbtide";
/// The binary log that a source begins with once it was emptied, and where its first event is.
const FIRST: (&str, u32) = ("binlog.000001", 4);

/// A server's part in replication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1 on; each server that talks to a source needs one of its own.
    pub server_id: u32,
    /// Whether it follows another: it is read-only, has relay logs, and does not begin by itself.
    pub replica: bool,
}

impl Part {
    /// The option lines for it.
    pub(crate) fn lines(self) -> Vec<String> {
        let mut lines = vec![format!("server-id={}", self.server_id)];
        if self.replica {
            lines.extend(["relay-log=relay", "skip-slave-start", "read-only=1"].map(str::to_owned));
        }
        lines
    }
}

/// How a replica remembers how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// By file and offset of the source's binary log, in the files `relay-log.info` and `master.info`.
    Files,
    /// By global transaction id, in the InnoDB table `mysql.gtid_slave_pos`, with each transaction.
    Gtid,
}

/// A source, as a replica reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    host: String,
    port: u16,
}

/// A server on which the position of a replica cannot be lost as a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{server} keeps a replica's position in InnoDB tables, and replicas are measured with MariaDB alone: leave arms \
     with role = \"replica\" out with --arms, or name a mariadbd with --server"
)]
pub struct NotMeasured {
    /// The server and its version.
    pub server: String,
}

/// Refuses a server on which the position of a replica cannot be lost as a file.
///
/// # Errors
/// [`NotMeasured`] for every server but MariaDB.
pub fn check(binary: &Binary) -> Result<(), NotMeasured> {
    if binary.is_mariadb() { Ok(()) } else { Err(NotMeasured { server: binary.name() }) }
}

/// Makes a started server a source: its binary log begins anew, and replicas have an account. The server needs
/// a binary log and a TCP port ([`ServerPlan::tcp`](crate::ServerPlan::tcp)).
///
/// # Errors
/// The server's.
///
/// # Panics
/// Where the server listens on its socket alone.
pub fn open(server: &Server) -> Result<Source, ServerError> {
    let mut session = server.session()?;
    for sql in [
        "SET SESSION sql_log_bin=0".to_owned(),
        format!("CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'"),
        format!("CREATE USER IF NOT EXISTS '{USER}'@'localhost' IDENTIFIED BY '{PASSWORD}'"),
        format!("GRANT REPLICATION SLAVE ON *.* TO '{USER}'@'%'"),
        format!("GRANT REPLICATION SLAVE ON *.* TO '{USER}'@'localhost'"),
        "RESET MASTER".to_owned(),
    ] {
        session.execute(&sql)?;
    }
    let tcp = server.target().endpoints.into_iter().find_map(|endpoint| match endpoint {
        Endpoint::Tcp { host, port } => Some(Source { host, port }),
        Endpoint::Unix(_) => None,
    });
    Ok(tcp.expect("a source is started with a port"))
}

/// Has a server follow a source from the beginning of its binary log.
///
/// # Errors
/// The server's.
pub fn follow(session: &mut Session, source: &Source, position: Position) -> Result<(), LoadError> {
    let Source { host, port } = source;
    let begin = match position {
        Position::Files => {
            let (log, at) = FIRST;
            format!("MASTER_USE_GTID=no, MASTER_LOG_FILE='{log}', MASTER_LOG_POS={at}")
        }
        Position::Gtid => "MASTER_USE_GTID=slave_pos".to_owned(),
    };
    session.execute("SET GLOBAL gtid_slave_pos=''")?;
    session.execute(&format!(
        "CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{USER}', \
         MASTER_PASSWORD='{PASSWORD}', MASTER_CONNECT_RETRY=1, {begin}"
    ))?;
    resume(session)
}

/// Has a replica go on where it thinks that it was.
///
/// # Errors
/// The server's: it may be unable to read its own position.
pub fn resume(session: &mut Session) -> Result<(), LoadError> {
    session.execute("START SLAVE").map(drop)
}

/// Stops a replica between two transactions.
///
/// # Errors
/// The server's.
pub fn pause(session: &mut Session) -> Result<(), LoadError> {
    session.execute("STOP SLAVE").map(drop)
}

/// What a replica says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether it fetches from its source.
    pub fetching: bool,
    /// Whether it applies what it has fetched.
    pub applying: bool,
    /// Why it does not fetch, or has trouble with it, in its own words.
    pub fetch_error: Option<String>,
    /// The number of that error; 0 without one.
    pub fetch_errno: u32,
    /// Why it does not apply.
    pub apply_error: Option<String>,
    /// Up to where it has applied: file and offset of the source's binary log.
    pub applied: String,
    /// Up to where it has fetched, alike.
    pub fetched: String,
    /// Up to where it has applied: file and offset of its own relay log.
    pub relay: String,
    /// Up to where it has applied, by global transaction id, where it follows by that.
    pub gtid: Option<String>,
}

impl Status {
    /// The error that it has stopped with; none while both sides run or try to.
    #[must_use]
    pub fn stopped_by(&self) -> Option<&str> {
        let applying = self.apply_error.as_deref().filter(|_| !self.applying);
        applying.or(self.fetch_error.as_deref().filter(|_| !self.fetching))
    }

    /// Whether it does not reach its source, which is the source's doing: the number of its error is one of the client
    /// library (2000 to 2999, `errmsg.h`), or one by which a server refuses or ends a connection
    /// (`ER_CON_COUNT_ERROR`, `ER_ACCESS_DENIED_ERROR`, `ER_SERVER_SHUTDOWN`, `ER_HOST_IS_BLOCKED`,
    /// `ER_HOST_NOT_PRIVILEGED`, `ER_CONNECTION_KILLED`).
    #[must_use]
    pub const fn is_alone(&self) -> bool {
        matches!(self.fetch_errno, 2000..=2999 | 1040 | 1045 | 1053 | 1129 | 1130 | 1927)
    }

    /// Where it is, in a sentence.
    #[must_use]
    pub fn place(&self) -> String {
        let Self { applied, fetched, relay, gtid, .. } = self;
        match gtid {
            // One that was just started has thrown its relay logs away and knows this alone.
            Some(gtid) => format!("applied up to the transaction {gtid}"),
            None => format!(
                "applied up to {applied} of the source's log ({relay} of the relay log), fetched up to {fetched}"
            ),
        }
    }

    fn read(row: &BTreeMap<String, String>, gtid: Option<String>) -> Self {
        let text = |name: &str| row.get(name).map_or("", String::as_str);
        let error = |number: &str, words: &str| {
            let number = Some(text(number)).filter(|number| !number.is_empty() && *number != "0")?;
            Some(format!("error {number}: {}", text(words)))
        };
        let place = |file: &str, at: &str| format!("{}:{}", text(file), text(at));
        Self {
            // While it connects, it has not given up.
            fetching: text("Slave_IO_Running") != "No",
            applying: text("Slave_SQL_Running") == "Yes",
            fetch_error: error("Last_IO_Errno", "Last_IO_Error"),
            fetch_errno: text("Last_IO_Errno").parse().unwrap_or(0),
            apply_error: error("Last_SQL_Errno", "Last_SQL_Error"),
            applied: place("Relay_Master_Log_File", "Exec_Master_Log_Pos"),
            fetched: place("Master_Log_File", "Read_Master_Log_Pos"),
            relay: place("Relay_Log_File", "Relay_Log_Pos"),
            gtid,
        }
    }
}

/// What a replica says of itself; none for a server that follows nobody.
///
/// # Errors
/// The server's.
pub fn status(session: &mut Session) -> Result<Option<Status>, LoadError> {
    let Some(row) = session.named_row("SHOW SLAVE STATUS")? else { return Ok(None) };
    let by_gtid = row.get("Using_Gtid").is_some_and(|using| using != "No");
    let gtid = if by_gtid { session.value("SELECT @@GLOBAL.gtid_slave_pos")? } else { None };
    Ok(Some(Status::read(&row, gtid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_replica_that_has_stopped_with_an_error_says_which_and_where() {
        let status = Status::read(
            &row(&[
                ("Slave_IO_Running", "Yes"),
                ("Slave_SQL_Running", "No"),
                ("Last_IO_Errno", "0"),
                ("Last_IO_Error", ""),
                ("Last_SQL_Errno", "1062"),
                ("Last_SQL_Error", "Duplicate entry '3-17' for key 'PRIMARY'"),
                ("Relay_Master_Log_File", "binlog.000001"),
                ("Exec_Master_Log_Pos", "4711"),
                ("Master_Log_File", "binlog.000001"),
                ("Read_Master_Log_Pos", "9000"),
                ("Relay_Log_File", "relay.000002"),
                ("Relay_Log_Pos", "5000"),
            ]),
            None,
        );
        assert_eq!(status.stopped_by(), Some("error 1062: Duplicate entry '3-17' for key 'PRIMARY'"));
        assert_eq!(
            status.place(),
            "applied up to binlog.000001:4711 of the source's log (relay.000002:5000 of the relay log), fetched up \
             to binlog.000001:9000"
        );
    }

    #[test]
    fn a_replica_that_still_connects_has_not_given_up() {
        let connecting = row(&[
            ("Slave_IO_Running", "Connecting"),
            ("Slave_SQL_Running", "Yes"),
            ("Last_IO_Errno", "2003"),
            ("Last_IO_Error", "error connecting to master"),
        ]);
        let status = Status::read(&connecting, None);
        assert!(status.stopped_by().is_none() && status.fetch_error.is_some());
        assert!(status.is_alone());
        let unreadable = Status { fetch_errno: 1236, ..status };
        assert!(!unreadable.is_alone(), "its source answers, and does not have what it asks for");
    }

    #[test]
    fn a_replica_is_read_only_and_waits_to_be_started_and_a_source_is_neither() {
        let lines = |replica| Part { server_id: 7, replica }.lines();
        assert_eq!(lines(false), ["server-id=7"]);
        assert_eq!(lines(true), ["server-id=7", "relay-log=relay", "skip-slave-start", "read-only=1"]);
    }
}
