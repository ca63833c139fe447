//! Statements, and the scripts of transactions that are made of them.

use crate::expr::{Expr, Register};

/// A statement that a workload sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What its latency is kept under. Several statements may share a name.
    pub name: &'static str,
    /// The text. Where it has parameters, each question mark represents one; where it has numbered tables, each `{}`
    /// represents the number. Otherwise it is sent unchanged.
    pub text: String,
    /// How many numbered tables it is for, from 1; 0 where its text has no number.
    pub tables: u32,
    /// How each parameter is sent.
    pub params: Vec<ParamKind>,
    /// Whether it is prepared where the run prepares statements. One that is not is always sent as text.
    pub prepare: bool,
    /// What it reads and changes, for a model of a server.
    pub access: Option<Access>,
}

impl Statement {
    /// A statement without parameters, table or effect on rows, such as COMMIT.
    #[must_use]
    pub fn plain(name: &'static str, text: &str) -> Self {
        Self { name, text: text.into(), tables: 0, params: Vec::new(), prepare: true, access: None }
    }
}

/// A text with the number of a table in place of each `{}`.
#[must_use]
pub fn numbered(text: &str, number: u32) -> String {
    if text.contains("{}") { text.replace("{}", &number.to_string()) } else { text.to_owned() }
}

/// How a parameter is sent where the statement is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// A 32-bit INTEGER; a number outside of its range becomes the nearest one in it.
    Int,
    /// A 64-bit BIGINT.
    Long,
    /// Text.
    Text,
    /// A DECIMAL, from a text of digits with a point.
    Decimal,
}

/// What a statement does to the rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The table's place in [`crate::Description::tables`].
    pub table: usize,
    /// What it does.
    pub kind: AccessKind,
    /// How it finds the rows.
    pub path: Path,
    /// Which rows.
    pub key: Key,
    /// How many rows, at most.
    pub rows: u32,
    /// The columns that an update changes; with them, the indexes that it changes.
    pub changes: Vec<&'static str>,
}

/// What a statement does to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads it.
    Read,
    /// Reads it and changes columns.
    Update,
    /// Makes it.
    Insert,
    /// Removes it.
    Delete,
}

/// How a statement finds its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// By the primary key.
    Primary,
    /// By the index at this place of [`crate::Table::indexes`].
    Index(usize),
}

/// Where the key of the first row comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The parameter at this place, from 0.
    Param(usize),
    /// The next number of an AUTO_INCREMENT column.
    Next,
}

/// A statement with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The statement's place in [`crate::Description::statements`].
    pub statement: usize,
    /// The number of its table, from 1, where the statement has one.
    pub table: Option<Expr>,
    /// The parameters. They are worked out in their order, when the statement is written.
    pub params: Vec<Expr>,
    /// How many rows it must change, worked out when it has answered; another number means that the tables are not what
    /// they should be.
    pub changes: Option<Expr>,
    /// Values to keep of the rows that it returns.
    pub binds: Vec<Bind>,
    /// Columns to keep of all rows that it returns.
    pub collect: Vec<Collect>,
    /// Where to keep how many rows it returned, or changed.
    pub count: Option<Register>,
}

impl Call {
    /// A call that keeps nothing of its answer.
    #[must_use]
    pub fn new(statement: usize, params: Vec<Expr>) -> Self {
        Self {
            statement,
            table: None,
            params,
            changes: None,
            binds: Vec::new(),
            collect: Vec::new(),
            count: None,
        }
    }

    /// The same on a numbered table.
    #[must_use]
    pub fn on(self, table: Expr) -> Self {
        Self { table: Some(table), ..self }
    }
}

/// A value to keep of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Bind {
    /// The row, from 0; worked out when the answer is awaited.
    pub row: Expr,
    /// The column, from 0.
    pub column: u16,
    /// Where to keep it. NULL where there is no such row.
    pub into: Register,
}

/// A column of a result to keep as an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Collect {
    /// The column, from 0; worked out when the answer is awaited.
    pub column: Expr,
    /// Where to keep the value of the first row; those of the others follow.
    pub into: Register,
    /// How many rows, at most. Further ones are counted by [`Call::count`] and not kept.
    pub most: u16,
}

/// A step of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Works a value out and keeps it.
    Set(Register, Expr),
    /// Works a value out and keeps it in the array that begins with the register, at this place from 0. Nothing is
    /// kept where the place is no number or behind the last register.
    SetElement(Register, Expr, Expr),
    /// Sorts the array that begins with the register, so many elements, by their numbers; what is none comes first.
    Sort(Register, Expr),
    /// Draws from another random stream from here on: `stream` of the run's seed, or of its complement. What a
    /// transaction then draws depends on the stream alone, not on what its client did before.
    Reseed {
        /// Take the complement of the seed.
        complement: bool,
        /// The stream's number.
        stream: Expr,
    },
    /// Sends the statements in one go, and waits for all answers.
    Send(Vec<Call>),
    /// Sends the statement whose answer acknowledges the transaction.
    Commit(Call),
    /// Sends the statement that undoes the transaction on purpose.
    RollBack(Call),
    /// Sends a multi-row INSERT.
    Append(Append),
    /// Does the steps as often as the number; not at all where it is NULL or less than 1.
    Repeat(Expr, Vec<Self>),
    /// Does the first steps where the value is a number other than 0, else the others.
    If(Expr, Vec<Self>, Vec<Self>),
    /// A transaction that the server has refused is done again from here. Without it, from its beginning.
    RetryFromHere,
}

/// An INSERT of as many rows as fit. Each row counts as a transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The statement up to VALUES.
    pub statement: usize,
    /// The number of its table, from 1.
    pub table: Expr,
    /// Is raised by one before each row.
    pub counter: Register,
    /// The values of a row.
    pub values: Vec<Expr>,
    /// Rows are added while the statement is shorter than this, bytes.
    pub bytes: usize,
}

/// A kind of transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    /// What its latency is kept under.
    pub name: &'static str,
    /// Its share of the mix, in parts of the sum of all weights.
    pub weight: u32,
    /// How long a client takes to enter its values before it begins, us.
    pub keying_us: Option<Expr>,
    /// How long a client looks at the result before it chooses the next transaction, us.
    pub thinking_us: Option<Expr>,
    /// What it does.
    pub steps: Vec<Step>,
}

impl Transaction {
    /// The only transaction of a workload, without pauses.
    #[must_use]
    pub fn alone(name: &'static str, steps: Vec<Step>) -> Self {
        Self { name, weight: 1, keying_us: None, thinking_us: None, steps }
    }
}
