//! What a server has, read in few statements: each table once by its clustered index, and each secondary
//! index once.

use std::collections::BTreeMap;

use ebbtide_workload::LEDGER_TABLE;
use ebbtide_workload::invariant::{ABORTED, ABORTED_PAYLOAD, ACCOUNT, BALLAST, CheckedTable, HISTORY, Index};

use crate::error::LoadError;
use crate::wire::Session;

/// Everything that the rules look at.
#[derive(Debug)]
pub(super) struct TableContents {
    /// Last commits by client.
    pub(super) marks: BTreeMap<u32, u64>,
    pub(super) account: Scan,
    pub(super) ballast: Scan,
    pub(super) history: Scan,
    pub(super) balance: i128,
    pub(super) versions: i128,
    pub(super) hits: i128,
    /// The history by client.
    pub(super) clients: BTreeMap<u32, Range>,
    /// History rows of transactions that were rolled back.
    pub(super) aborted_rows: i128,
    /// Markers of such.
    pub(super) aborted_markers: i128,
}

/// A table, by its clustered index and by the others.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) rows: i128,
    /// Rows that do not fit their checksum.
    pub(super) bad: i128,
    /// For each secondary index: what it should hold according to the rows, and what it holds.
    pub(super) indexes: Vec<(Print, Print)>,
}

/// Entries of an index: how many, and the sum of their prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) entries: i128,
    pub(super) sum: i128,
}

/// A client's history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) rows: u64,
    pub(super) oldest: u64,
    pub(super) newest: u64,
}

impl TableContents {
    pub(super) fn read(session: &mut Session) -> Result<Self, LoadError> {
        let marks = marks(session)?;
        let (account, sums) = scan(session, &ACCOUNT, &["SUM(balance)", "SUM(version)"])?;
        let (ballast, hits) = scan(session, &BALLAST, &["SUM(hits)"])?;
        let (history, clients, aborted_rows) = history(session)?;
        let markers = numbers(session, &format!("SELECT COUNT(*) FROM {ABORTED}"))?;
        Ok(Self {
            marks,
            account,
            ballast,
            history,
            balance: sums[0],
            versions: sums[1],
            hits: hits[0],
            clients,
            aborted_rows,
            aborted_markers: cell(&markers, 0, 0)?,
        })
    }
}

/// The number of each client's last commit that the server has.
///
/// # Errors
/// The server's, and [`LoadError::Tables`] where a value is there that no load wrote.
pub fn marks(session: &mut Session) -> Result<BTreeMap<u32, u64>, LoadError> {
    let rows = numbers(session, &format!("SELECT client, seq FROM {LEDGER_TABLE}"))?;
    (0..rows.len()).map(|row| Ok((narrow(cell(&rows, row, 0)?)?, narrow(cell(&rows, row, 1)?)?))).collect()
}

/// The table's rows, those that do not fit their checksum, and the prints of its indexes, as columns.
fn columns(table: &CheckedTable) -> String {
    let prints = table.indexes.iter().map(|index| format!(", COALESCE(SUM({}),0)", table.print(index)));
    format!("COUNT(*), COALESCE(SUM(crc<>{}),0){}", table.crc(), prints.collect::<String>())
}

/// A whole table, and further sums over it.
fn scan(session: &mut Session, table: &CheckedTable, sums: &[&str]) -> Result<(Scan, Vec<i128>), LoadError> {
    let sums: String = sums.iter().map(|sum| format!(", COALESCE({sum},0)")).collect();
    let sql = format!("SELECT {}{sums} FROM {} FORCE INDEX (PRIMARY)", columns(table), table.name);
    let rows = numbers(session, &sql)?;
    let mut scan = Scan::default();
    let row = rows.first().ok_or_else(short)?;
    scan.add(table, row)?;
    scan.read_indexes(session, table)?;
    Ok((scan, row[2 + table.indexes.len()..].to_vec()))
}

impl Scan {
    /// Adds what was read through the clustered index, laid out as [`columns`] does.
    fn add(&mut self, table: &CheckedTable, row: &[i128]) -> Result<(), LoadError> {
        self.indexes.resize_with(table.indexes.len(), Default::default);
        let [rows, bad, rest @ ..] = row else { return Err(short()) };
        self.rows += rows;
        self.bad += bad;
        for ((should, _), sum) in self.indexes.iter_mut().zip(rest) {
            should.entries += rows;
            should.sum += sum;
        }
        Ok(())
    }

    fn read_indexes(&mut self, session: &mut Session, table: &CheckedTable) -> Result<(), LoadError> {
        self.indexes.resize_with(table.indexes.len(), Default::default);
        for ((_, has), index) in self.indexes.iter_mut().zip(table.indexes) {
            let rows = numbers(session, &index_scan(table, index))?;
            *has = Print { entries: cell(&rows, 0, 0)?, sum: cell(&rows, 0, 1)? };
        }
        Ok(())
    }
}

/// Reads an index alone: all columns that it asks for are in the index.
fn index_scan(table: &CheckedTable, index: &Index) -> String {
    let print = table.print(index);
    format!("SELECT COUNT(*), COALESCE(SUM({print}),0) FROM {} FORCE INDEX ({})", table.name, index.name)
}

/// The history as a whole and by client, and its rows of transactions that were rolled back.
fn history(session: &mut Session) -> Result<(Scan, BTreeMap<u32, Range>, i128), LoadError> {
    let sql = format!(
        "SELECT client, MIN(seq), MAX(seq), SUM(payload LIKE '{ABORTED_PAYLOAD}%'), {} \
         FROM {} FORCE INDEX (PRIMARY) GROUP BY client",
        columns(&HISTORY),
        HISTORY.name
    );
    let (mut scan, mut clients, mut aborted) = (Scan::default(), BTreeMap::new(), 0);
    for row in numbers(session, &sql)? {
        let [client, oldest, newest, marked, rest @ ..] = &row[..] else { return Err(short()) };
        let rows = narrow(*rest.first().ok_or_else(short)?)?;
        scan.add(&HISTORY, rest)?;
        aborted += marked;
        clients.insert(narrow(*client)?, Range { rows, oldest: narrow(*oldest)?, newest: narrow(*newest)? });
    }
    scan.read_indexes(session, &HISTORY)?;
    Ok((scan, clients, aborted))
}

/// The rows of a query that answers with whole numbers only.
fn numbers(session: &mut Session, sql: &str) -> Result<Vec<Vec<i128>>, LoadError> {
    let number = |value: &Option<String>| {
        let text = value.as_deref().unwrap_or("NULL");
        text.parse().map_err(|_| LoadError::Tables(format!("{text} is no whole number, in: {sql}")))
    };
    session.rows(sql)?.iter().map(|row| row.iter().map(number).collect()).collect()
}

fn cell(rows: &[Vec<i128>], row: usize, column: usize) -> Result<i128, LoadError> {
    rows.get(row).and_then(|row| row.get(column)).copied().ok_or_else(short)
}

fn narrow<T: TryFrom<i128>>(value: i128) -> Result<T, LoadError> {
    T::try_from(value)
        .map_err(|_| LoadError::Tables(format!("{value} is no client, sequence number or count")))
}

fn short() -> LoadError {
    LoadError::Protocol("a result without the columns that were asked for".into())
}
