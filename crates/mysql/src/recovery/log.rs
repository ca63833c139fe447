//! What a server logs of its recovery: the words of MariaDB 10.6 to 11.8 and MySQL 8.0 to 9.7.

use serde::{Deserialize, Serialize};

/// Of each kind of line as many are kept.
const KEPT: usize = 100;

/// What a server's log reports of a recovery. Of each kind at most a hundred lines are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEvidence {
    /// Whether InnoDB found that it had not been shut down cleanly.
    pub recovered: bool,
    /// Pages that were restored from the doublewrite buffer.
    pub doublewrite: Vec<RecoveredPage>,
    /// Lines that mean damage: to pages, to the redo log, to the dictionary. What a recovery that goes well
    /// reports is not among them, such as a torn page that the doublewrite buffer restores.
    pub corruption: Vec<String>,
    /// Lines of the server's own end: a failed assertion, a signal.
    pub crash: Vec<String>,
    /// Lines about the recovery of the binary log and of prepared transactions.
    pub binlog: Vec<String>,
    /// Transactions that were found in the state prepared, between redo log and binary log.
    pub prepared: u64,
    /// Transactions that were found unfinished.
    pub unfinished: u64,
    /// Transactions that had been rolled back when the log was read: this goes on behind a server that
    /// already answers.
    pub rolled_back: u64,
}

/// A page that was restored from the doublewrite buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveredPage {
    /// Its tablespace.
    pub space: u32,
    /// Its number.
    pub page: u32,
    /// The server's words.
    pub line: String,
}

/// Words that open a recovery after a crash.
const RECOVERY: [&str; 3] =
    ["Starting crash recovery", "Starting XA crash recovery", "was not shut down normally"];
/// Words of a page that is restored: tried first, whatever else the line has.
const RESTORED: [&str; 2] = ["Recovered page", "Recovered the page"];
/// Words of a page that is about to be restored, which also give the reason.
const RESTORING: [&str; 2] = ["rying to recover", "to be recovered from the doublewrite"];
/// Words that mean damage.
const CORRUPTION: [&str; 32] = [
    "page corruption",
    "corrupted page",
    "Corrupted page",
    "is corrupt",
    "are corrupt",
    "be corrupt",
    "marked as corrupt",
    "Flagged corruption",
    "appears corrupted",
    "appears to be corrupted",
    "looks corrupted",
    "corrupt record",
    "orruption in the InnoDB",
    "orruption of an index",
    "ndex corruption",
    "data corruption",
    "Data structure corruption",
    "Redo log corruption",
    "pparent corruption",
    "is in the future!",
    "Cannot recover from detect_only",
    "Cannot recover it from the doublewrite",
    "could not be found in the doublewrite buffer",
    "Malformed log record",
    "Missing FILE_",
    "Missing MLOG_",
    "No valid checkpoint was found",
    "Invalid log header checksum",
    "The log was only scanned up to",
    "We scanned the log up to",
    "is marked as crashed",
    // MySQL prints a page that it cannot use, and may print the reason only later, or never where it waits for ever.
    "End of page dump",
];
/// Words of lines that speak of damage and mean none to what a server stores: what it prints after any crash of its
/// own, advice, and what a replica's applier says of a relay log that it cannot go on with, which its state reports.
const HARMLESS: [&str; 6] = [
    "Relay log read failure",
    "recovery: automatic recovery failed",
    "libraries it was linked against",
    "You can use CHECK TABLE",
    "Ignoring a doublewrite copy",
    "possibly get a corrupted database",
];
/// Words of the server's own end.
const CRASH: [&str; 4] =
    ["Assertion failure", "got signal", "We intentionally generate a memory trap", "We intentionally crash"];
/// Words of the binary log's recovery, and of prepared transactions.
const BINLOG: [&str; 14] = [
    "Recovering after a crash using",
    "Starting table crash recovery",
    "Crash table recovery",
    "Starting XA crash recovery",
    "XA crash recovery finished",
    "Crash recovery finished",
    "Crash recovery failed",
    "Crashed binlog file",
    "crashed binlog file",
    "truncated binlog file",
    "prepared transaction",
    "prepared XA transaction",
    "read_log_event()",
    "during recovery. Aborting",
];

impl LogEvidence {
    /// Reads the lines of one start.
    #[must_use]
    pub fn read(lines: &[String]) -> Self {
        let mut evidence = Self::default();
        for line in lines {
            evidence.take(line);
        }
        evidence
    }

    fn take(&mut self, line: &str) {
        let has = |words: &[&str]| words.iter().any(|words| line.contains(words));
        self.recovered |= has(&RECOVERY);
        if has(&BINLOG) {
            keep(&mut self.binlog, line);
        }
        self.count(line);
        if has(&RESTORED) {
            if let (Some(space), Some(page)) = (number(line, "space="), number(line, "page number="))
                && self.doublewrite.len() < KEPT
            {
                self.doublewrite.push(RecoveredPage { space, page, line: line.to_owned() });
            }
        } else if has(&CRASH) {
            keep(&mut self.crash, line);
        } else if has(&CORRUPTION) && !has(&RESTORING) && !has(&HARMLESS) {
            keep(&mut self.corruption, line);
        }
    }

    fn count(&mut self, line: &str) {
        if line.contains("in the XA prepared state") || line.contains("Found prepared transaction with xid") {
            self.prepared += 1;
        }
        let found = line.find("Found ").filter(|_| line.contains("prepared transaction"));
        if let Some(count) = found.and_then(|at| number(&line[at..], "Found ")) {
            self.prepared = self.prepared.max(count.into());
        }
        if let Some(before) = line.split(" transaction(s) which must be rolled back").next()
            && before.len() < line.len()
        {
            self.unfinished = before.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
        }
        let done = line.contains("Rolled back recovered transaction")
            || (line.contains("Rollback of trx with id") && line.contains("completed"));
        self.rolled_back += u64::from(done);
    }
}

fn keep(lines: &mut Vec<String>, line: &str) {
    if lines.len() < KEPT {
        lines.push(line.to_owned());
    }
}

/// The number after a word.
fn number(line: &str, word: &str) -> Option<u32> {
    let rest = line.split_once(word)?.1;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As MariaDB 10.11 and MySQL 8.0 print it.
    #[test]
    fn a_replica_that_cannot_read_its_relay_log_is_no_damage_and_one_that_meets_a_corrupt_table_is() {
        let why = "Relay log read failure: Could not parse relay log event entry. The possible reasons are: the \
                   master's binary log is corrupted (you can check this by running 'mysqlbinlog' on the binary log), \
                   the slave's relay log is corrupted";
        let lines = [
            format!("2026-11-25 15:23:09 9 [ERROR] Slave SQL: {why}. Internal MariaDB error code: 1594"),
            format!("2026-11-25T15:23:09Z 9 [ERROR] [MY-010596] [Repl] Replica SQL for channel '': {why}"),
            "2026-11-26T03:11:09Z 0 [Warning] [MY-010532] [Repl] MTS recovery: automatic recovery failed. Either the slave \
             server had stopped due to an error during an earlier session or relay logs are corrupted."
                .to_owned(),
            "2026-11-25 15:23:09 9 [ERROR] Slave SQL: Error 'Index for table 't' is corrupt; try to repair it' on query."
                .to_owned(),
        ];
        let found = LogEvidence::read(&lines);
        assert_eq!(found.corruption, lines[3..]);
    }
}
