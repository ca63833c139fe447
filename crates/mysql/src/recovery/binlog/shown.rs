//! Reading the binary log through the server: its own word, at its own pace.

use ebbtide_load::{LoadError, Session};

use super::{BinlogCommits, Follower, Meaning, TornTail};
use crate::recovery::Unverified;

/// Rows asked for at once.
const ROWS: u32 = 20_000;
/// `ER_ERROR_WHEN_EXECUTING_COMMAND`: how a server answers when it comes to an event that is not whole.
const CANNOT_READ: u16 = 1220;
/// Where the first event of a file is.
const FIRST: u64 = 4;

/// Has the server show its binary log (`SHOW BINARY LOGS`, `SHOW BINLOG EVENTS`), the newest file first,
/// until each of `clients` clients (from 0) was seen, and answers with the last transaction of each.
///
/// Files are shown from their beginning, which takes long where they are large;
/// [`binlog_tail`](super::binlog_tail) reads their ends.
///
/// # Errors
/// The server's: 1381 where it has no binary log.
pub fn binlog_commits(session: &mut Session, clients: u32) -> Result<BinlogCommits, Unverified> {
    let logs = session.rows("SHOW BINARY LOGS")?;
    let names = logs.into_iter().rev().filter_map(|row| row.into_iter().next().flatten());
    let mut commits = BinlogCommits::default();
    for name in names {
        let (follower, torn) = show(session, &name)?;
        commits.files.push(name);
        for (client, seq) in follower.last {
            commits.last.entry(client).or_insert(seq);
        }
        commits.torn = commits.torn.take().or(torn);
        if (0..clients).all(|client| commits.last.contains_key(&client)) {
            break;
        }
    }
    Ok(commits)
}

/// Reads the events of one file.
fn show(session: &mut Session, name: &str) -> Result<(Follower, Option<TornTail>), LoadError> {
    let mut follower = Follower::default();
    let mut rows_at_once = ROWS;
    // The last event that was read: the server begins with it again.
    let mut last: Option<u64> = None;
    loop {
        let at = last.unwrap_or(FIRST);
        let query = format!("SHOW BINLOG EVENTS IN '{name}' FROM {at} LIMIT {rows_at_once}");
        let rows = match session.rows(&query) {
            // It answers with nothing of what is before: fewer are asked for.
            Err(error) if error.code() == Some(CANNOT_READ) && rows_at_once > 2 => {
                rows_at_once = (rows_at_once / 8).max(2);
                continue;
            }
            Err(error) if error.code() == Some(CANNOT_READ) => {
                return Ok((follower, Some(TornTail { file: name.into(), at, bytes: None })));
            }
            rows => rows?,
        };
        for row in rows.iter().skip(usize::from(last.is_some())) {
            let (kind, info) = (column(row, 2).unwrap_or_default(), column(row, 5).unwrap_or_default());
            follower.take(&meaning(kind, info));
        }
        let end = rows.last().and_then(|row| column(row, 1)?.parse().ok());
        if end.is_none() || end == last {
            return Ok((follower, None));
        }
        last = end;
    }
}

fn column(row: &[Option<String>], column: usize) -> Option<&str> {
    row.get(column)?.as_deref()
}

/// What a row means, by the server's name of its event.
fn meaning<'a>(kind: &str, info: &'a str) -> Meaning<'a> {
    match kind {
        "Xid" => Meaning::Commit,
        "Gtid" | "Anonymous_Gtid" => Meaning::Begin,
        "Annotate_rows" | "Rows_query" => Meaning::Statement(info),
        // The database is before the statement where there is one.
        "Query" => match info.strip_prefix("use ").and_then(|rest| rest.split_once("; ")) {
            Some((_, statement)) => Meaning::of_statement(statement),
            None => Meaning::of_statement(info),
        },
        _ => Meaning::Other,
    }
}
