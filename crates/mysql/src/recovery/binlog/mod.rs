//! How far the binary log has come, client by client.
//!
//! A load that marks each of its transactions with `UPDATE ebbtide_ledger SET seq=N WHERE client=C` leaves
//! these statements in the binary log: as they are with `binlog_format = STATEMENT`, next to the rows
//! otherwise. MariaDB writes them there by itself (`binlog_annotate_row_events`, on by default); MySQL
//! needs `binlog_rows_query_log_events = ON`. A transaction counts when its end is there too.

mod events;
mod files;
mod shown;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use files::{binlog_tail, own_binlog_index};
pub use shown::binlog_commits;

/// The table of marks.
const TABLE: &str = "ebbtide_ledger";

/// The last transaction of each client in a binary log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinlogCommits {
    /// The highest number of each client whose transaction is there to its end. A client that is missing
    /// has none in the files that were read: these are all of them then.
    pub last: BTreeMap<u32, u64>,
    /// Files that were read, the newest first.
    pub files: Vec<String>,
    /// Where a file ends inside of an event: what follows in it is lost to every reader of the log.
    pub torn: Option<TornTail>,
}

/// The end of a binary log file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TornTail {
    /// The file.
    pub file: PathBuf,
    /// The first byte that is of no whole event; where the server shows the log, which does not report it,
    /// the beginning of the last event that is whole.
    pub at: u64,
    /// Bytes from there to the end of the file, where they are known.
    pub bytes: Option<u64>,
}

/// Follows the events of a log from one transaction to the next.
#[derive(Debug, Default)]
struct Follower {
    /// Marks of a transaction whose end has not come.
    open: Vec<(u32, u64)>,
    last: BTreeMap<u32, u64>,
}

/// What an event means for the end of transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning<'a> {
    /// One begins: what was open before has no end.
    Begin,
    /// Its text may be a mark.
    Statement(&'a str),
    /// It ends, and counts.
    Commit,
    /// It ends, and does not count.
    Rollback,
    /// Nothing of this.
    Other,
}

impl<'a> Meaning<'a> {
    /// Of a statement in the log.
    fn of_statement(text: &'a str) -> Self {
        match text.trim() {
            "BEGIN" => Self::Begin,
            "COMMIT" => Self::Commit,
            "ROLLBACK" => Self::Rollback,
            text => Self::Statement(text),
        }
    }
}

impl Follower {
    fn take(&mut self, meaning: &Meaning<'_>) {
        match meaning {
            Meaning::Begin | Meaning::Rollback => self.open.clear(),
            Meaning::Statement(text) => self.open.extend(mark(text)),
            Meaning::Commit => {
                for (client, seq) in self.open.drain(..) {
                    let last = self.last.entry(client).or_default();
                    *last = seq.max(*last);
                }
            }
            Meaning::Other => {}
        }
    }
}

/// The client and the number of a mark's statement.
fn mark(text: &str) -> Option<(u32, u64)> {
    let (before, rest) = text.split_once(TABLE)?;
    if !before.trim_start_matches(['#', ' ']).get(..6)?.eq_ignore_ascii_case("update") {
        return None;
    }
    Some((u32::try_from(value(rest, "client")?).ok()?, value(rest, "seq")?))
}

/// The number that a column is set to or compared with.
fn value(text: &str, column: &str) -> Option<u64> {
    let rest = text.split_once(column)?.1.trim_start_matches(['`', ' ']).strip_prefix('=')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_from_its_statement_and_from_nothing_else() {
        assert_eq!(mark("UPDATE ebbtide_ledger SET seq=17 WHERE client=3"), Some((3, 17)));
        assert_eq!(mark("# update `d`.`ebbtide_ledger` set `seq` = 5 where `client` = 0;"), Some((0, 5)));
        assert_eq!(mark("INSERT INTO ebbtide_ledger VALUES (1, 2)"), None);
        assert_eq!(mark("UPDATE ebbtide_ledger SET seq=? WHERE client=?"), None);
        assert_eq!(mark("UPDATE account SET balance=1 WHERE id=2"), None);
    }

    #[test]
    fn a_transaction_counts_with_its_end_alone() {
        let mark =
            |client: u32, seq: u64| format!("UPDATE ebbtide_ledger SET seq={seq} WHERE client={client}");
        let (one, two, three) = (mark(1, 7), mark(2, 8), mark(1, 8));
        let mut follower = Follower::default();
        for meaning in [
            Meaning::Begin,
            Meaning::Statement(&one),
            Meaning::Commit,
            Meaning::Begin,
            Meaning::Statement(&two),
            Meaning::Rollback,
            Meaning::Commit,
            Meaning::Begin,
            Meaning::Statement(&three),
        ] {
            follower.take(&meaning);
        }
        assert_eq!(follower.last, BTreeMap::from([(1, 7)]));
        follower.take(&Meaning::Begin);
        follower.take(&Meaning::Commit);
        assert_eq!(follower.last, BTreeMap::from([(1, 7)]), "its end never came");
    }
}
