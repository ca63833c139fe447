//! The terminal view: what is drawn of a [`View`](crate::view::View) and its [`Graph`](crate::view::Graph)s, and what keys do.
//!
//! It is pure. The program opens the terminal, reads its bytes, has the clock, and restores the terminal; tests draw on a buffer.
//!
//! # Where to begin reading
//!
//! - [`draw`] in `draw.rs` draws the answer in the first line, the body of the screen, and the keys in the last lines.
//! - One file has each screen: `overview.rs`, `server.rs`, `storage.rs`, `replication.rs`, `history.rs`, `alarms.rs`, `help.rs`. Each has
//!   an `answer` and a `body`.
//! - [`TerminalState`] in `state.rs` is which screen is shown and what is selected; [`KeyDecoder`] in `keys.rs` makes keys of bytes.
//! - [`GraphCache`] in `cache.rs` decides when the history is read again.
//! - `chart.rs` draws a graph. ratatui has no logarithmic axis: values are drawn as their logarithm, and decades are labelled here.
//! - `label.rs` escapes and measures text. A name of a server or a volume is a stranger's: all text passes through it.

mod alarms;
mod answer;
mod axis;
mod cache;
mod chart;
mod draw;
mod drawing;
mod figures;
mod help;
mod history;
mod keys;
mod label;
mod overview;
mod panel;
mod replication;
mod server;
mod state;
mod storage;
mod table;
mod theme;

pub use cache::GraphCache;
pub use draw::draw;
pub use keys::{Key, KeyDecoder};
pub use state::{Action, Screen, TerminalState};
