//! Live volumes: the engine that holds I/O until the model completes it, the block store
//! behind it, and the exports to the kernel and to NBD clients.

mod alarm;
pub mod clock;
pub mod engine;
pub mod faults;
pub mod fuse;
pub mod host;
mod lateness;
pub mod loopdev;
pub mod nbd;
pub mod nvme;
pub mod request;
pub mod socket;
pub mod store;
pub mod sys;
