//! The crash lab: what a power cut costs under each durability setting and on each kind of storage.
//!
//! [`run()`] is the whole of it. A `stint` puts an arm's server under a load with invariants, measures its throughput
//! while `machine_watch` watches the machine, and then cuts its power again and again, while `cutting_watch` counts what
//! that takes of the processors: `moments` waits for the instant, `cutter`
//! takes crash images of all volumes, and `checker`s, side by side with the load, let the file system and the server
//! recover on them and judge what is there, by the rules of `verdict`. `canary` arms prove in every run that damage is
//! seen. `kept` images can be judged again (`replay`). A `replica` follows a source that lives on, and is judged by whether it
//! still does. [`harm()`] names what is wrong with a cut, [`results`] keeps it all, [`summary`] reports what was found, [`page`] makes the report of it.
//!
//! Experiments, prepared data, volumes and their servers are those of `ebbtide_lab`, which knows nothing of this crate.
//!
//! # Where to begin reading
//!
//! [`run()`] in `src/run.rs`; the verdict on an image in `src/checker.rs`, with the rules of `src/verdict.rs`, for a replica in
//! `src/replica.rs`. The instant of a cut is `crash_images` of `ebbtide_device::engine`, the load with invariants
//! `ebbtide_load::invariant`, and `ebbtide_mysql::recovery` reads what a recovered server left.
//!
//! The gain of a risky setting is a run of the lab, which `src/crash/gain.rs` of the program starts after the cuts. A crash run keeps
//! its summary, and its report uses the lab's verdicts and curves (`verdicts_and_curves` of `crates/lab/src/page`).
#![forbid(unsafe_code)]

#[cfg(test)]
#[path = "../../../tests/support/documented.rs"]
mod documented;
mod event;
#[cfg(test)]
mod fixture;
pub mod page;
pub mod record;
pub mod results;
#[cfg(test)]
#[path = "../../../tests/support/sections.rs"]
mod sections;
pub mod summary;

mod binlog;
mod canary;
mod checker;
mod cutter;
mod cutting_watch;
mod error;
mod file_map;
mod harm;
mod kept_images;
mod machine_watch;
mod moments;
mod mounted_arm;
mod recovery_gate;
mod replay;
mod replica;
mod replication_part;
mod run;
mod stint;
mod stint_load;
mod stint_workload;
mod verdict;
mod words;

pub use error::KeptError;
pub use event::{Event, Progress};
pub use harm::harm;
pub use kept_images::{KeptCut, delete as delete_kept, list as list_kept};
pub use replay::{LeftRunning, Replayed, keep_running, replay};
pub use run::{CrashOptions, CutPlan, begun_with, check_without_server, plan, plan_with, run};
pub use words::EventWords;
