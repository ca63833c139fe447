//! What is watched now: readings of all sources become alarms, a view, samples for the history, and the text of a scrape.
//!
//! It is pure: the caller reads the sources, each on a thread of its own, and has the clock. A source that does not answer delays
//! nobody: [`Watcher::tick`] takes what the others have.
//!
//! # Where to begin reading
//!
//! - [`Looks`] in `looks` is what was read, as plain data. [`OwnVolume`] in `own_volume` is a volume of Ebbtide's own.
//! - [`Watcher::tick`] in `watcher` takes it, and returns a [`Tick`]: events of alarms, samples, and sentences that are said once.
//! - `server_track` and `storage_track` keep two readings of a subject, and know what happened between them. A counter that began again,
//!   another life of the subject, and a long pause leave a gap.
//! - `answers` makes the input of the alarms, and `latest` keeps it for a scrape; `server_view`, `storage_view` and `builder` make the [`View`](crate::view::View).
//! - `columns` is the one table of what the history keeps of a view, and how a replay reads it. `graphs` draws of the history,
//!   also subjects that have `gone`.
//! - [`LiveSource`] in `source` is what terminal and pages read; [`ReplaySource`] in `replay` is the same of the history.

mod answers;
mod builder;
mod columns;
mod complaints;
mod devices;
mod gone;
mod graphs;
mod latest;
mod looks;
mod names;
mod own_cost;
mod own_volume;
mod replay;
mod replica_error;
mod scrape;
mod server_track;
mod server_view;
mod source;
mod state;
mod storage_track;
mod storage_view;
mod watcher;

pub use complaints::Complaints;
pub use looks::{HostLook, Looks, OwnLook, ServerLook, ServerState, SourceFault, Unanswered};
pub use own_volume::OwnVolume;
pub use replay::ReplaySource;
pub use source::LiveSource;
pub use state::{NamedVolume, WatchOptions};
pub use watcher::{Tick, Watcher};

/// The subjects of the series that are recorded: their minutes are made of seconds, and their hours of minutes.
pub const SUBJECTS: &[&str] = &[
    ebbtide_history::SERVER,
    columns::STORAGE,
    ebbtide_history::DEVICE,
    ebbtide_history::FILE_SYSTEM,
    ebbtide_history::MACHINE,
];
