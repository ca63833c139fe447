//! Options out of range, and descriptions that contradict themselves.

use crate::distribution::DistributionError;

/// An option that lies out of range or contradicts another one.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum OptionError {
    /// A number out of its range.
    #[error("--{option}={value} is out of range: {allowed}")]
    OutOfRange {
        /// The option's name, without dashes.
        option: &'static str,
        /// The value given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A name that nothing has.
    #[error("there is no workload '{given}': use one of {known}")]
    UnknownWorkload {
        /// The name given.
        given: String,
        /// The names that there are, as a sentence's list.
        known: String,
    },
    /// Two options that exclude each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// The random distribution's parameters.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}

/// Refuses a value outside of `least` to `most`, which `allowed` has in words.
///
/// # Errors
/// [`OptionError::OutOfRange`].
pub fn in_range(
    option: &'static str,
    value: u32,
    least: u32,
    most: u32,
    allowed: &'static str,
) -> Result<(), OptionError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(OptionError::OutOfRange { option, value: value.to_string(), allowed })
}

/// A description that cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// There is nothing to do.
    #[error("workload {0} has no transaction with a weight: give one of them a weight of 1 or more")]
    NoTransaction(String),
    /// A call names a statement that the description lacks.
    #[error("transaction {transaction} calls statement {statement}, and there are {statements}")]
    NoStatement {
        /// The transaction's name.
        transaction: String,
        /// The statement's place.
        statement: usize,
        /// How many there are.
        statements: usize,
    },
    /// A register that the description does not reserve.
    #[error("transaction {transaction} uses register {register}: there are {registers}, counted from 0")]
    NoRegister {
        /// The transaction's name.
        transaction: String,
        /// The register.
        register: u16,
        /// How many there are.
        registers: u16,
    },
    /// Question marks, kinds of parameters and values differ in number.
    #[error(
        "statement {statement} has {marks} question marks and {kinds} kinds of parameters, and a call gives {values} \
         values: make them equal"
    )]
    Parameters {
        /// The statement's name.
        statement: String,
        /// Question marks in its text.
        marks: usize,
        /// Kinds of parameters that it declares.
        kinds: usize,
        /// Values that the call gives.
        values: usize,
    },
    /// A call on a table that the description lacks.
    #[error(
        "transaction {transaction} calls statement {statement} with {given}, and there are {tables} tables for it: \
         give a number from 1 to that, or none where the statement has no numbered table"
    )]
    NoTable {
        /// The transaction's name.
        transaction: String,
        /// The statement's name.
        statement: String,
        /// What the call gives.
        given: String,
        /// How many tables the statement is for.
        tables: u32,
    },
    /// A statement is for more tables than are made.
    #[error("statement {statement} is for {tables} tables, and there are {count}: make them equal")]
    TooManyTables {
        /// The statement's name.
        statement: String,
        /// How many tables it is for.
        tables: u32,
        /// How many there are.
        count: u32,
    },
    /// What a statement declares of its rows names something that the description lacks.
    #[error("the access of statement {statement} names {what} {at}, and there are {count}, counted from 0")]
    Access {
        /// The statement's name.
        statement: String,
        /// What is missing.
        what: &'static str,
        /// Its place.
        at: usize,
        /// How many there are.
        count: usize,
    },
    /// A transaction whose steps may send nothing. It would be repeated without an end.
    #[error(
        "transaction {0} can end without sending a statement: send one on each way through it (a Repeat counts where \
         its number is a constant of 1 or more)"
    )]
    SendsNothing(String),
    /// A step sends nothing.
    #[error("transaction {0} has a step that sends no statement: give it one or leave it out")]
    NothingToSend(String),
}
