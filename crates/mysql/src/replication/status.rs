//! What a replica reports of itself.

use std::collections::BTreeMap;

use ebbtide_load::{LoadError, Session};

use super::words::{Columns, Words};

/// What a replica reports of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether it fetches from its source.
    pub fetching: bool,
    /// Whether it has reached its source.
    pub connected: bool,
    /// Whether it applies what it has fetched.
    pub applying: bool,
    /// Whether its applier says that it has read all that was fetched; threads of it may still be at work.
    pub has_read_all: bool,
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

    fn read(row: &BTreeMap<String, String>, columns: Columns, gtid: Option<String>) -> Self {
        let text = |name: &str| row.get(name).map_or("", String::as_str);
        let error = |number: &str, words: &str| {
            let number = Some(text(number)).filter(|number| !number.is_empty() && *number != "0")?;
            Some(format!("error {number}: {}", text(words)))
        };
        let place = |[file, at]: [&str; 2]| format!("{}:{}", text(file), text(at));
        Self {
            // While it connects, it has not given up.
            fetching: text(columns.fetching) != "No",
            connected: text(columns.fetching) == "Yes",
            applying: text(columns.applying) == "Yes",
            has_read_all: text(columns.applying_state).contains("has read all relay log"),
            fetch_error: error("Last_IO_Errno", "Last_IO_Error"),
            fetch_errno: text("Last_IO_Errno").parse().unwrap_or(0),
            apply_error: error("Last_SQL_Errno", "Last_SQL_Error"),
            applied: place(columns.applied),
            fetched: place(columns.fetched),
            relay: place(["Relay_Log_File", "Relay_Log_Pos"]),
            gtid,
        }
    }
}

/// What a replica reports of itself; none for a server that follows nobody.
///
/// # Errors
/// The server's.
pub fn status(session: &mut Session) -> Result<Option<Status>, LoadError> {
    let words = Words::of(session);
    let Some(row) = session.named_row(words.show_status())? else { return Ok(None) };
    let gtid = match words {
        Words::MariaDb if row.get("Using_Gtid").is_some_and(|using| using != "No") => {
            session.value("SELECT @@GLOBAL.gtid_slave_pos")?
        }
        Words::MySql(_) if row.get("Auto_Position").is_some_and(|auto| auto == "1") => {
            // A set of several servers has a line for each.
            row.get("Executed_Gtid_Set").map(|set| set.replace('\n', ""))
        }
        _ => None,
    };
    let mut status = Status::read(&row, words.columns(), gtid);
    if let (Some(error), Some(sql)) = (&mut status.apply_error, words.worker_error())
        && let Some(worker) = session.value(sql)?.filter(|worker| !error.contains(worker.as_str()))
    {
        error.push_str("; ");
        error.push_str(&worker);
    }
    Ok(Some(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::Version;

    fn row(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_replica_that_has_stopped_with_an_error_reports_which_and_where() {
        let status = Status::read(
            &row(&[
                ("Slave_IO_Running", "Yes"),
                ("Slave_SQL_Running", "No"),
                ("Slave_SQL_Running_State", "Slave has read all relay log; waiting for more updates"),
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
            Words::MariaDb.columns(),
            None,
        );
        assert!(status.has_read_all);
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
        let status = Status::read(&connecting, Words::MariaDb.columns(), None);
        assert!(status.stopped_by().is_none() && status.fetch_error.is_some());
        assert!(status.is_alone());
        let unreadable = Status { fetch_errno: 1236, ..status };
        assert!(!unreadable.is_alone(), "its source answers, and does not have what it asks for");
    }

    #[test]
    fn the_status_of_a_mysql_with_the_word_source_is_read_alike() {
        let row = row(&[
            ("Replica_IO_Running", "No"),
            ("Replica_SQL_Running", "Yes"),
            ("Last_IO_Errno", "13117"),
            ("Last_IO_Error", "equal UUIDs"),
            ("Relay_Source_Log_File", "binlog.000001"),
            ("Exec_Source_Log_Pos", "157"),
            ("Source_Log_File", "binlog.000002"),
            ("Read_Source_Log_Pos", "4"),
        ]);
        let words = Words::MySql(Version::new(9, 7, 4));
        let status = Status::read(&row, words.columns(), None);
        assert!(!status.fetching && status.applying);
        assert_eq!(status.stopped_by(), Some("error 13117: equal UUIDs"));
        assert_eq!(
            (status.applied.as_str(), status.fetched.as_str()),
            ("binlog.000001:157", "binlog.000002:4")
        );
    }
}
