//! Loading the tables.

use std::io::Write as _;
use std::time::Instant;

use crate::distribution::Random;
use crate::error::LoadError;
use crate::ledger::set_marks;
use crate::options::Target;
use crate::prepare::{Prepared, open_or_create_database};
use crate::run::Cancel;
use crate::sql::{BULK_BYTES, C_GROUPS, PAD_GROUPS};
use crate::wire::Session;

use super::schema::{ACCOUNT, BALLAST, INITIAL_BALANCE, Schema, check_clients, crc_of};

/// Tables of the load, that of the marks included.
const TABLES: u32 = 5;
/// More than any row takes.
const ROW_BYTES: usize = 300;

/// Creates the tables (and the database, where it is missing) and loads them for up to `clients` clients. The
/// rows depend on the seed alone. What was loaded is durable afterwards, whatever the server's settings.
///
/// # Errors
/// Sizes out of range, and the server's errors, such as 1050 where a table is there already.
pub fn prepare(
    target: &Target,
    schema: &Schema,
    seed: u64,
    clients: u32,
    cancel: &Cancel,
) -> Result<Prepared, LoadError> {
    schema.check()?;
    check_clients(clients)?;
    let began = Instant::now();
    let (mut session, database_created) = open_or_create_database(target)?;
    for statement in schema.statements() {
        session.execute(&statement)?;
    }
    set_marks(&mut session, clients, &schema.engine)?;
    let accounts = fill(&mut session, ACCOUNT.name, schema.accounts, cancel, account)?;
    let ballast = fill(&mut session, BALLAST.name, schema.rows, cancel, |text, id| {
        ballast(text, id, schema.rows, seed);
    })?;
    // Last, because a server makes the redo log durable up to a change of the schema, flush setting or not.
    session.execute(&format!("CREATE INDEX by_k ON {} (k)", BALLAST.name))?;
    Ok(Prepared {
        tables: TABLES,
        rows: accounts + ballast,
        elapsed_s: began.elapsed().as_secs_f64(),
        server_version: session.version().to_owned(),
        database_created,
        cancelled: cancel.is_cancelled(),
    })
}

/// Inserts rows 1 to `rows`; writes the next statement while the server is at work on the one before.
fn fill(
    session: &mut Session,
    table: &str,
    rows: u32,
    cancel: &Cancel,
    row: impl Fn(&mut Vec<u8>, u32),
) -> Result<u64, LoadError> {
    let (mut id, mut outstanding) = (1, false);
    while id <= rows && !cancel.is_cancelled() {
        let mut text = format!("INSERT INTO {table} VALUES ").into_bytes();
        let first = id;
        while id <= rows && text.len() < BULK_BYTES - ROW_BYTES {
            if id > first {
                text.push(b',');
            }
            row(&mut text, id);
            id += 1;
        }
        if outstanding {
            session.finish_query()?;
        }
        session.send_query(&text)?;
        outstanding = true;
    }
    if outstanding {
        session.finish_query()?;
    }
    Ok(u64::from(id - 1))
}

fn account(text: &mut Vec<u8>, id: u32) {
    let crc = crc_of(format!("{id}|{INITIAL_BALANCE}|0").as_bytes());
    write!(text, "({id},{INITIAL_BALANCE},0,{crc})").expect("a Vec takes everything");
}

fn ballast(text: &mut Vec<u8>, id: u32, rows: u32, seed: u64) {
    let random = &mut Random::new(seed, id.into());
    let k = random.up_to(rows);
    let mut joined = format!("{id}|{k}|").into_bytes();
    let c = joined.len();
    random.digit_groups(C_GROUPS, &mut joined);
    let pad = joined.len() + 1;
    joined.push(b'|');
    random.digit_groups(PAD_GROUPS, &mut joined);
    let end = joined.len();
    joined.extend_from_slice(b"|0");
    write!(text, "({id},{k},'").expect("a Vec takes everything");
    text.extend_from_slice(&joined[c..pad - 1]);
    text.extend_from_slice(b"','");
    text.extend_from_slice(&joined[pad..end]);
    write!(text, "',0,{})", crc_of(&joined)).expect("a Vec takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_ballast_carries_the_checksum_of_its_columns() {
        let mut text = Vec::new();
        ballast(&mut text, 7, 100, 3);
        let text = String::from_utf8(text).unwrap();
        let inner = text.trim_matches(['(', ')']).replace('\'', "");
        let (columns, crc) = inner.rsplit_once(',').unwrap();
        assert_eq!(crc.parse::<u32>().unwrap(), crc_of(columns.replace(',', "|").as_bytes()));
        assert_eq!(columns.split(',').map(str::len).skip(2).collect::<Vec<_>>(), [119, 59, 1]);
        assert!(text.len() < ROW_BYTES);
    }
}
