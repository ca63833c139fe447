//! Live volumes: the engine that holds I/O until the model completes it, the block store
//! behind it, and the exports to the kernel and to NBD clients.
//!
//! # Where to begin reading
//!
//! [`engine::LiveVolume::submit`] is where a request is charged and begins to wait. The modules, in the order in which a request
//! passes:
//!
//! - [`fuse`] and [`loopdev`], or [`nbd`]: translate a protocol to a [`request::Request`]. They do not know time or limits.
//! - [`request`]: the operation, its buffer, and a [`request::Reply`] that answers exactly once.
//! - `transport`: the ways back of an answer, an enum of the protocols. It knows neither time nor volumes.
//! - [`engine`]: charges the request to the model, keeps it in flight, and performs it when it is due. With the model it decides
//!   what a power cut leaves; [`engine::crash_images`] is the instant of the cut. It counts and logs failures of the host
//!   (`failures`).
//! - `engine::pacer`: the threads that sleep until the next completion. `alarm` wakes them, and `lateness` is a histogram of how
//!   late they were.
//! - [`store`]: layers of 4 KiB blocks in sparse files. [`store::OpenVolume`] encrypts above them (`cipher`), with data keys that a
//!   [`store::KeyUnwrapper`] unwraps. It does not know time, limits or the kernel's block layer. `src/store/blocks.rs` and
//!   `src/store/pending.rs` have the blocks of snapshots, for the EBS direct APIs.
//! - [`faults`]: injected faults. [`clock`]: the time of live volumes.
//! - [`host`]: one home with its store and its attachments: mounts, loop devices, file systems, burst credits, and what dead
//!   processes left of them. Also what the machine can carry (`calibrate`), and its local round trip (`round_trip`).
//! - [`sys`]: calls of data path threads to the kernel: scheduling, timer slack, locked memory.
//!
//! Another export makes requests as [`nbd`] does, with a variant of `transport::ReplyPath`, and calls `submit`: from there on
//! there is no difference. `tests/store` kills,
//! damages and fills up the block store, `tests/nbd` has real clients, `tests/live` the kernel, FUSE and loop devices.

mod alarm;
#[cfg(test)]
mod allocations;
pub mod clock;
pub mod engine;
pub mod faults;
pub mod fuse;
pub mod host;
mod lateness;
pub mod loopdev;
pub mod nbd;
pub mod nvme;
mod outcome;
pub mod request;
pub mod socket;
pub mod store;
pub mod sys;
mod transport;
