//! A workload as a whole: tables, statements, transactions.

use crate::error::DescriptionError;
use crate::expr::{Expr, Register};
use crate::script::{Call, Statement, Step, Transaction, numbered};

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
    /// Its name; `{}` stands for the number.
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
    /// How many.
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

    /// A text for each of the tables.
    fn each<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        self.numbers().map(move |number| numbered(text, number))
    }
}

impl Description {
    /// Rows of all tables.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.sum(|_| 1)
    }

    /// What the tables take on disk, bytes: an estimate.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.sum(|table| table.row_bytes)
    }

    fn sum(&self, of_row: impl Fn(&Table) -> u64) -> u64 {
        let of = |table: &Table| u64::from(table.count.max(1)) * u64::from(table.fill.rows) * of_row(table);
        self.tables.iter().map(of).sum()
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

    /// Checks that the scripts can be executed.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), DescriptionError> {
        if self.transactions.iter().all(|transaction| transaction.weight == 0) {
            return Err(DescriptionError::NoTransaction(self.name.clone()));
        }
        for transaction in &self.transactions {
            let checker = Checker { description: self, transaction: transaction.name };
            for pause in transaction.keying_us.iter().chain(&transaction.thinking_us) {
                checker.expr(pause)?;
            }
            checker.steps(&transaction.steps)?;
        }
        let checker = Checker { description: self, transaction: "before a retry" };
        self.undo.as_ref().map_or(Ok(()), |call| checker.call(call))
    }
}

struct Checker<'a> {
    description: &'a Description,
    transaction: &'a str,
}

impl Checker<'_> {
    fn steps(&self, steps: &[Step]) -> Result<(), DescriptionError> {
        steps.iter().try_for_each(|step| match step {
            Step::Set(register, expr) => self.register(*register).and_then(|()| self.expr(expr)),
            Step::Reseed { stream, .. } => self.expr(stream),
            Step::Send(calls) if calls.is_empty() => {
                Err(DescriptionError::NothingToSend(self.transaction.to_owned()))
            }
            Step::Send(calls) => calls.iter().try_for_each(|call| self.call(call)),
            Step::Commit(call) | Step::RollBack(call) => self.call(call),
            Step::Append(append) => {
                self.statement(append.statement)?;
                self.register(append.counter)?;
                append.values.iter().chain([&append.table]).try_for_each(|expr| self.expr(expr))
            }
            Step::Repeat(count, body) => self.expr(count).and_then(|()| self.steps(body)),
            Step::If(condition, then, otherwise) => {
                self.expr(condition)?;
                self.steps(then)?;
                self.steps(otherwise)
            }
            Step::RetryFromHere => Ok(()),
        })
    }

    fn call(&self, call: &Call) -> Result<(), DescriptionError> {
        let statement = self.statement(call.statement)?;
        let (kinds, values) = (statement.params.len(), call.params.len());
        let marks = if kinds == 0 { 0 } else { statement.text.matches('?').count() };
        if marks != kinds || kinds != values {
            let statement = statement.name.to_owned();
            return Err(DescriptionError::Parameters { statement, marks, kinds, values });
        }
        call.params.iter().chain(&call.table).try_for_each(|expr| self.expr(expr))?;
        call.count.map_or(Ok(()), |register| self.register(register))?;
        call.binds.iter().try_for_each(|bind| self.register(bind.into).and_then(|()| self.expr(&bind.row)))
    }

    fn statement(&self, at: usize) -> Result<&Statement, DescriptionError> {
        let statements = &self.description.statements;
        statements.get(at).ok_or_else(|| DescriptionError::NoStatement {
            transaction: self.transaction.to_owned(),
            statement: at,
            statements: statements.len(),
        })
    }

    fn register(&self, register: Register) -> Result<(), DescriptionError> {
        if register.0 < self.description.registers {
            return Ok(());
        }
        Err(DescriptionError::NoRegister {
            transaction: self.transaction.to_owned(),
            register: register.0,
            registers: self.description.registers,
        })
    }

    fn expr(&self, expr: &Expr) -> Result<(), DescriptionError> {
        let mut found = Ok(());
        expr.visit(&mut |part| {
            if let (Expr::Register(register), Ok(())) = (part, &found) {
                found = self.register(*register);
            }
        });
        found
    }
}
