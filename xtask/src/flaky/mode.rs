//! How the tests of a program are repeated.

use std::fmt;

/// How the tests of a program share processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// All in one process, one after the other.
    Together,
    /// Each in a process of its own.
    Alone,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Together => "together",
            Self::Alone => "alone",
        })
    }
}
