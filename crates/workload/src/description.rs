//! A workload as a whole: tables, statements, transactions.

use crate::expr::{Expr, Register};
use crate::script::{Call, Statement, Transaction, numbered};

/// Everything that a workload is.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// What distinguishes its tables from those of other workloads and versions; empty for sysbench's. Data that were
    /// prepared for one form serve no other.
    pub form: String,
    /// Its tables, in the order in which they are made.
    pub tables: Vec<Table>,
    /// Its statements. Their order is that of a report.
    pub statements: Vec<Statement>,
    /// Its transactions.
    pub transactions: Vec<Transaction>,
    /// What each connection executes first.
    pub session: Vec<String>,
    /// What each client asks once, before its first transaction.
    pub opening: Vec<Opening>,
    /// What is sent before a transaction that was refused is done again. None where the refusal has undone it, or
    /// where nothing needs to be undone.
    pub undo: Option<Call>,
    /// Statements that are executed once all rows and indexes are in, on one connection: foreign keys, for one.
    pub finish: Vec<String>,
    /// How many registers its scripts use, from 0.
    pub registers: u16,
}

/// A value that a client needs from the server before it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// The query, with `{}` for the number of the table.
    pub text: String,
    /// The number.
    pub table: Expr,
    /// Where to keep the first column of the first row; 0 where there is none.
    pub into: Register,
}

/// A table, or several of the same form that differ by the number in their names.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name; `{}` represents the number.
    pub name: String,
    /// How many there are, numbered from 1; 0 for one without a number.
    pub count: u32,
    /// The statement that creates it.
    pub create: String,
    /// Its secondary indexes.
    pub indexes: Vec<Index>,
    /// Its rows.
    pub fill: Fill,
    /// What a row takes on disk, its index entries included, bytes.
    pub row_bytes: u64,
    /// Queries that read all of its rows once.
    pub warm_up: Vec<String>,
    /// The statement that gives it the state of a table in use; none where that differs little from a new one.
    pub ageing: Option<String>,
}

/// A secondary index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<&'static str>,
    /// The statement that creates it once the rows are in; none where CREATE TABLE does.
    pub create: Option<String>,
    /// The query that reads it once.
    pub warm_up: Option<String>,
}

/// The rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Fill {
    /// How many, those that are left out included.
    pub rows: u32,
    /// The columns that are given values, as SQL lists them; empty for all.
    pub columns: &'static str,
    /// Values that several columns need, worked out first.
    pub lets: Vec<(Register, Expr)>,
    /// The values of a row.
    pub values: Vec<Expr>,
    /// Rows whose values come from one random stream: so many, from the first one. They are the same however many
    /// connections load them.
    pub stream_rows: u32,
    /// Tells its random streams from those of tables with another one.
    pub salt: u8,
    /// Which rows are left out; none leaves none out.
    pub keep: Option<Keep>,
}

/// Which rows are loaded, where their number follows from what is in others.
#[derive(Debug, Clone, PartialEq)]
pub struct Keep {
    /// A row is left out unless this is a number other than 0. The values of [`Fill::lets`] are known.
    pub condition: Expr,
    /// How many of a hundred rows are kept, on average.
    pub percent: u32,
}

impl Fill {
    /// No rows.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            rows: 0,
            columns: "",
            lets: Vec::new(),
            values: Vec::new(),
            stream_rows: 1,
            salt: 0,
            keep: None,
        }
    }
}

impl Table {
    /// The numbers of the tables; 0 alone for one without a number.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        if self.count == 0 { 0..=0 } else { 1..=self.count }
    }

    /// The names of the tables.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.numbers().map(|number| numbered(&self.name, number))
    }

    /// Rows of all tables of this form: an estimate where rows are left out.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let percent = self.fill.keep.as_ref().map_or(100, |keep| keep.percent);
        u64::from(self.count.max(1)) * u64::from(self.fill.rows) * u64::from(percent) / 100
    }

    /// What one of them takes on disk, bytes: an estimate.
    pub(crate) fn bytes(&self) -> u64 {
        self.rows() * self.row_bytes / u64::from(self.count.max(1))
    }

    /// A text for each of the tables.
    fn each<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        self.numbers().map(move |number| numbered(text, number))
    }
}

impl Description {
    /// Rows of all tables: an estimate where rows are left out.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(Table::rows).sum()
    }

    /// What the tables take on disk, bytes: an estimate.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.rows() * table.row_bytes).sum()
    }

    /// How many tables there are.
    #[must_use]
    pub fn table_count(&self) -> u32 {
        self.tables.iter().map(|table| table.count.max(1)).sum()
    }

    /// Queries that read all rows by the primary key, and then all indexes.
    #[must_use]
    pub fn warm_up(&self) -> Vec<String> {
        let rows = |table: &Table| -> Vec<String> {
            let of = |number| table.warm_up.iter().map(move |text| numbered(text, number));
            table.numbers().flat_map(of).collect()
        };
        let mut all: Vec<String> = self.tables.iter().flat_map(rows).collect();
        for table in &self.tables {
            let texts = table.indexes.iter().filter_map(|index| index.warm_up.as_deref());
            all.extend(texts.flat_map(|text| table.each(text)));
        }
        all
    }

    /// Statements that give the tables the state of tables in use.
    #[must_use]
    pub fn ageing(&self) -> Vec<String> {
        let of = |table: &Table| table.ageing.as_deref().map(|text| table.each(text).collect::<Vec<_>>());
        self.tables.iter().filter_map(of).flatten().collect()
    }

    /// Statements that bring the optimizer's statistics up to date.
    #[must_use]
    pub fn analysis(&self) -> Vec<String> {
        self.tables.iter().flat_map(Table::names).map(|name| format!("ANALYZE TABLE {name}")).collect()
    }
}
