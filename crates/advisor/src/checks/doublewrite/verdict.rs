//! The answer in a word.

use serde::Serialize;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Page writes hold the server back, and it would have fewer of them.
    Yes,
    /// It would have fewer page writes, and they are not known to hold it back.
    Perhaps,
    /// There is nothing to gain, or it must not be.
    No,
    /// The doublewrite buffer is off.
    AlreadyOff,
    /// The interval does not report.
    NotKnown,
}
