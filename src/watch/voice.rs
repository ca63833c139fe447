//! Where changes of alarms and troubles are printed.

use ebbtide_watch::run::Voice;

use crate::text::{line, note};

/// Where changes of alarms and troubles are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// Nowhere: the views have them.
    Nowhere,
    /// Alarms on standard output, troubles on standard error.
    Lines,
    /// All on standard error: standard output has one JSON value.
    Notes,
}

impl Voice for Said {
    fn note(&self, text: &str) {
        if *self != Self::Nowhere {
            note(text);
        }
    }

    fn alarm(&self, text: &str) {
        match self {
            Self::Nowhere => {}
            Self::Lines => line(text),
            Self::Notes => note(text),
        }
    }
}
