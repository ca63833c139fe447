//! Options out of range, and descriptions that contradict themselves.

use crate::distribution::DistributionError;
use crate::sysbench::Workload;

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
    #[error("there is no workload '{0}': use one of {names}", names = Workload::names())]
    UnknownWorkload(String),
    /// Two options that exclude each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// The random distribution's parameters.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}

/// Refuses a value outside of `least` to `most`, which `allowed` says in words.
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
    /// A call sends nothing.
    #[error("transaction {0} has a step that sends no statement: give it one or leave it out")]
    NothingToSend(String),
}
