//! Where a watch says what has changed.

use std::fmt;

/// Where changes of alarms and troubles are said. A text may have names that are somebody else's: make it printable.
pub trait Voice: fmt::Debug + Send + Sync {
    /// Says a trouble, in a sentence.
    fn note(&self, text: &str);

    /// Says that an alarm has changed, in a line ([`Event::line`](crate::alarm::Event::line)).
    fn alarm(&self, line: &str);
}
