//! The statements of replication, in the words of each server and version.
//!
//! Sources: MariaDB's documentation of CHANGE MASTER TO; MySQL's reference manuals 5.7, 8.0 and 9.x, "SQL Statements for
//! Controlling Source Servers" and "... Replica Servers".

use ebbtide_load::Session;

use super::{Address, Position};
use crate::binary::Version;

/// From this version on MySQL has the words source and replica for everything that is sent here: the last of them
/// is CHANGE REPLICATION SOURCE TO.
const SOURCE_WORDS: Version = Version::new(8, 0, 23);
/// From this version on MySQL logs replicas in with `caching_sha2_password`, which takes a password over a connection
/// without TLS only once the replica has asked for the source's key.
const ASKS_FOR_KEY: Version = Version::new(8, 0, 4);
/// From this version on MySQL has RESET BINARY LOGS AND GTIDS; it had RESET MASTER until 8.4.
const RESET_BINARY_LOGS: Version = Version::new(8, 2, 0);

/// The binary log that a source begins with once it was emptied, and where its first event is.
const FIRST: (&str, u32) = ("binlog.000001", 4);

/// Who is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// MariaDB.
    MariaDb,
    /// MySQL, and Percona Server of the same version.
    MySql(Version),
}

/// The columns of a replica's status whose names differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) fetching: &'static str,
    pub(super) applying: &'static str,
    pub(super) applying_state: &'static str,
    pub(super) applied: [&'static str; 2],
    pub(super) fetched: [&'static str; 2],
}

impl Words {
    /// The words of the server that a session is with.
    pub(super) fn of(session: &Session) -> Self {
        Self::of_version(session.version())
    }

    /// The words of a server that calls its version so.
    fn of_version(text: &str) -> Self {
        match Version::parse(text) {
            Some(version) if !text.contains("MariaDB") => Self::MySql(version),
            _ => Self::MariaDb,
        }
    }

    /// Whether it uses the words source and replica.
    fn uses_source(self) -> bool {
        matches!(self, Self::MySql(version) if version >= SOURCE_WORDS)
    }

    /// Has a server forget its binary logs and, on MySQL, which transactions it has executed.
    pub(super) fn reset(self) -> &'static str {
        match self {
            Self::MySql(version) if version >= RESET_BINARY_LOGS => "RESET BINARY LOGS AND GTIDS",
            _ => "RESET MASTER",
        }
    }

    /// Has a server that was copied from its source forget which transactions it has executed, so that it takes all.
    pub(super) fn forget(self, position: Position) -> Option<&'static str> {
        match (self, position) {
            (Self::MariaDb, _) => Some("SET GLOBAL gtid_slave_pos=''"),
            (Self::MySql(_), Position::Gtid) => Some(self.reset()),
            (Self::MySql(_), Position::Files) => None,
        }
    }

    /// Has a server take the binary log of a source from its beginning.
    pub(super) fn change_source(self, address: &Address, user: &str, position: Position) -> String {
        let (statement, word) = match self.uses_source() {
            true => ("CHANGE REPLICATION SOURCE TO", "SOURCE"),
            false => ("CHANGE MASTER TO", "MASTER"),
        };
        let Address { host, port, password } = address;
        let password = password.text();
        let (log, at) = FIRST;
        let by_file = format!("{word}_LOG_FILE='{log}', {word}_LOG_POS={at}");
        let begin = match (self, position) {
            (Self::MariaDb, Position::Files) => format!("MASTER_USE_GTID=no, {by_file}"),
            (Self::MariaDb, Position::Gtid) => "MASTER_USE_GTID=slave_pos".to_owned(),
            (Self::MySql(_), Position::Files) => by_file,
            (Self::MySql(_), Position::Gtid) => format!("{word}_AUTO_POSITION=1"),
        };
        let key = match self {
            // From 11.4 on a replica asks for TLS by default, which an older source does not have.
            Self::MariaDb => "MASTER_SSL=0, MASTER_SSL_VERIFY_SERVER_CERT=0, ".to_owned(),
            Self::MySql(version) if version >= ASKS_FOR_KEY => format!("GET_{word}_PUBLIC_KEY=1, "),
            Self::MySql(_) => String::new(),
        };
        format!(
            "{statement} {word}_HOST='{host}', {word}_PORT={port}, {word}_USER='{user}', {word}_PASSWORD='{password}', \
             {word}_CONNECT_RETRY=1, {key}{begin}"
        )
    }

    /// Has a replica fetch and apply.
    pub(super) fn start(self) -> &'static str {
        if self.uses_source() { "START REPLICA" } else { "START SLAVE" }
    }

    /// Has a replica end both.
    pub(super) fn stop(self) -> &'static str {
        if self.uses_source() { "STOP REPLICA" } else { "STOP SLAVE" }
    }

    /// Has a replica end fetching, and go on applying.
    pub(super) fn stop_fetching(self) -> &'static str {
        if self.uses_source() { "STOP REPLICA IO_THREAD" } else { "STOP SLAVE IO_THREAD" }
    }

    /// Has a server forget its source.
    pub(super) fn reset_replica(self) -> &'static str {
        if self.uses_source() { "RESET REPLICA ALL" } else { "RESET SLAVE ALL" }
    }

    /// Asks a replica for its status.
    pub(super) fn show_status(self) -> &'static str {
        if self.uses_source() { "SHOW REPLICA STATUS" } else { "SHOW SLAVE STATUS" }
    }

    /// The column of that answer with the replica's own estimate of its lag.
    pub(super) fn behind(self) -> &'static str {
        if self.uses_source() { "Seconds_Behind_Source" } else { "Seconds_Behind_Master" }
    }

    /// Asks a source which transactions are in its binary log.
    pub(super) fn logged(self) -> &'static str {
        match self {
            Self::MariaDb => "SELECT @@GLOBAL.gtid_binlog_pos",
            Self::MySql(_) => "SELECT @@GLOBAL.gtid_executed",
        }
    }

    /// Asks a replica which transactions it has applied.
    pub(super) fn applied(self) -> &'static str {
        match self {
            Self::MariaDb => "SELECT @@GLOBAL.gtid_slave_pos",
            Self::MySql(_) => "SELECT @@GLOBAL.gtid_executed",
        }
    }

    /// How many transactions of a source such an answer stands for; none where it names none of them. MariaDB counts in
    /// one domain here (`0-1-4711`); MySQL lists intervals by the source's UUID (`UUID:1-5:7,UUID:1-3`).
    pub(super) fn transactions(self, text: &str, uuid: &str) -> Option<u64> {
        match self {
            Self::MariaDb => {
                text.split(',').find_map(|one| one.trim().strip_prefix("0-")?.split_once('-')?.1.parse().ok())
            }
            Self::MySql(_) => {
                let own = text.split(',').find_map(|one| one.trim().strip_prefix(uuid)?.strip_prefix(':'))?;
                own.split(':').map(interval).sum()
            }
        }
    }

    /// Asks a replica that has stopped for the words of the thread that met the error; none where its status has them.
    /// MySQL's status of several applier threads refers to this table.
    pub(super) fn worker_error(self) -> Option<&'static str> {
        match self {
            Self::MariaDb => None,
            Self::MySql(_) => Some(
                "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker \
                 WHERE LAST_ERROR_NUMBER <> 0 LIMIT 1",
            ),
        }
    }

    /// The columns of that answer.
    pub(super) fn columns(self) -> Columns {
        if self.uses_source() {
            Columns {
                fetching: "Replica_IO_Running",
                applying: "Replica_SQL_Running",
                applying_state: "Replica_SQL_Running_State",
                applied: ["Relay_Source_Log_File", "Exec_Source_Log_Pos"],
                fetched: ["Source_Log_File", "Read_Source_Log_Pos"],
            }
        } else {
            Columns {
                fetching: "Slave_IO_Running",
                applying: "Slave_SQL_Running",
                applying_state: "Slave_SQL_Running_State",
                applied: ["Relay_Master_Log_File", "Exec_Master_Log_Pos"],
                fetched: ["Master_Log_File", "Read_Master_Log_Pos"],
            }
        }
    }
}

/// How many numbers `7` or `1-5` are.
fn interval(text: &str) -> Option<u64> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (last >= first).then(|| last - first + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::Password;

    fn change(version: &str, position: Position) -> String {
        let password = Password::fixed("p");
        let address = Address { host: "127.0.0.1".into(), port: 3307, password };
        Words::of_version(version).change_source(&address, "u", position)
    }

    #[test]
    fn a_source_is_named_in_the_words_of_each_server() {
        let account = |word: &str| {
            format!(
                "{word}_HOST='127.0.0.1', {word}_PORT=3307, {word}_USER='u', {word}_PASSWORD='p', \
                 {word}_CONNECT_RETRY=1"
            )
        };
        let (master, source) = (account("MASTER"), account("SOURCE"));
        let mariadb = "10.11.19-MariaDB-0+deb12u1-log";
        let plain = "MASTER_SSL=0, MASTER_SSL_VERIFY_SERVER_CERT=0";
        assert_eq!(
            change(mariadb, Position::Files),
            format!(
                "CHANGE MASTER TO {master}, {plain}, MASTER_USE_GTID=no, MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4"
            )
        );
        assert_eq!(
            change(mariadb, Position::Gtid),
            format!("CHANGE MASTER TO {master}, {plain}, MASTER_USE_GTID=slave_pos")
        );
        assert_eq!(
            change("5.7.44-log", Position::Files),
            format!("CHANGE MASTER TO {master}, MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4")
        );
        assert_eq!(
            change("8.0.15", Position::Gtid),
            format!("CHANGE MASTER TO {master}, GET_MASTER_PUBLIC_KEY=1, MASTER_AUTO_POSITION=1")
        );
        assert_eq!(
            change("9.7.4-2", Position::Files),
            format!(
                "CHANGE REPLICATION SOURCE TO {source}, GET_SOURCE_PUBLIC_KEY=1, SOURCE_LOG_FILE='binlog.000001', \
                 SOURCE_LOG_POS=4"
            )
        );
    }

    #[test]
    fn transactions_are_counted_from_the_numbers_of_each_server() {
        let uuid = "ebb71de0-0000-4000-8000-000000000001";
        let mariadb = Words::of_version("10.11.19-MariaDB");
        for (text, counted) in
            [("0-1-4711", Some(4711)), ("1-2-3,0-1-8", Some(8)), ("", None), ("1-2-3", None)]
        {
            assert_eq!(mariadb.transactions(text, ""), counted, "{text}");
        }
        let mysql = Words::of_version("9.7.4");
        for (text, counted) in [
            (format!("{uuid}:1-5:7"), Some(6)),
            (format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9,\n{uuid}:1-5"), Some(5)),
            ("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9".to_owned(), None),
            (String::new(), None),
            (format!("{uuid}:9-1"), None),
        ] {
            assert_eq!(mysql.transactions(&text, uuid), counted, "{text}");
        }
        assert_eq!((mysql.behind(), mariadb.behind()), ("Seconds_Behind_Source", "Seconds_Behind_Master"));
    }

    #[test]
    fn words_that_a_version_dropped_are_not_sent_to_it() {
        let of = Words::of_version;
        assert_eq!(
            (of("8.0.36").reset(), of("8.4.0").reset()),
            ("RESET MASTER", "RESET BINARY LOGS AND GTIDS")
        );
        assert_eq!((of("8.0.22").start(), of("8.0.23").start()), ("START SLAVE", "START REPLICA"));
        assert_eq!(of("12.0.2-MariaDB").show_status(), "SHOW SLAVE STATUS");
        assert_eq!(of("11.8.3-MariaDB").reset(), "RESET MASTER");
        assert_eq!(of("9.7.4").columns().fetching, "Replica_IO_Running");
    }
}
