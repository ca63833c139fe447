//! A watch that runs: the one module of this crate with threads, the clock and sockets. The rest is handed what was read.
//!
//! # Where to begin reading
//!
//! - [`Sources::start`] reads each server, the machine and the volumes of a home, each on a thread of its own (`worker`). One that hangs
//!   delays no other.
//! - [`Watching::start`] hands what they have to the [`Watcher`](crate::live::Watcher), second by second (`ticker`), and what that says
//!   to the history, to a command, to a [`WebhookUrl`] and to a [`Voice`]. Each has a thread of its own, and a queue with a bound.
//!   What goes wrong there is among the `faults`, which the views show.
//! - [`look_twice`] is the look of `--once`; [`Replay`] plays the history. `listen` serves the pages of both.
//!
//! Errors are typed: the program gives them exit codes and hints in `src/refusal/watch.rs`.

mod error;
mod faults;
mod history;
mod listen;
mod notify;
mod replay;
mod servers;
mod sources;
mod ticker;
mod voice;
mod watching;
mod webhook;
mod worker;

pub use error::RunError;
pub use history::open_history;
pub use notify::Recipients;
pub use replay::{Player, Replay};
pub use servers::{WatchedServer, add_servers, named_volume};
pub use sources::{SourceOptions, Sources, machine_name};
pub use voice::Voice;
pub use watching::{Audience, Watching, look_twice};
pub use webhook::WebhookUrl;
pub use worker::{Clock, unix_s, wait_until};
