//! What a screen is drawn of.

use super::state::TerminalState;
use super::theme::Theme;
use crate::view::{Graph, View};

/// What a screen is drawn of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawing<'a> {
    /// The view.
    pub(super) view: &'a View,
    /// The graphs that the state wants.
    pub(super) graphs: &'a [Graph],
    /// What is shown and selected.
    pub(super) state: &'a TerminalState,
    /// Styles.
    pub(super) theme: Theme,
}
