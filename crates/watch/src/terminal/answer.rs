//! The first line of a screen: a sentence that answers.

use super::theme::Level;

/// The answer of a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The sentence. It may hold names of strangers.
    pub(super) text: String,
    /// How good or bad that is.
    pub(super) level: Level,
}

impl Answer {
    /// An answer.
    pub(super) fn new(level: Level, text: impl Into<String>) -> Self {
        Self { text: text.into(), level }
    }
}
