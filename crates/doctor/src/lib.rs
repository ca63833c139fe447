//! Asks a server and its machine what is wrong: the only crate that does.
//!
//! [`look`] observes a running server, [`machine`] the machine that it runs on and [`storage`] its volumes; [`probe`] times syncs.
//! What other programs and captures hold is read by `ebbtide-captured`, and either is judged by `ebbtide-advisor`.
//! [`baseline`] holds findings against those of before, and [`proof`] makes an experiment of the lab that measures what fixes
//! gain. [`answer`] says what was found, as a document and for programs; [`candidate`] whether a server gains without the doublewrite
//! buffer. Nothing here prints, and nothing of a server is changed.
//!
//! # Where to begin reading
//!
//! - A look at a live server is [`look()`] in `src/look.rs`, its machine [`machine::Machine`] in `src/machine.rs`.
//! - Proofs: [`proof::propose`] in `src/proof/proposal.rs` makes an experiment of an observation, `fit` in `src/proof/rows.rs` the
//!   lengths of its rows. `src/doctor/prove.rs` of the program runs it, as `ebbtide run` runs its experiments.
//! - Every error is a variant of [`DoctorError`]. `src/doctor/refusal.rs` of the program gives each its exit code and hint. How another
//!   command uses this crate: docs/extending.md.
#![forbid(unsafe_code)]

pub mod answer;
pub mod baseline;
pub mod candidate;
pub mod look;
pub mod machine;
pub mod probe;
pub mod proof;
pub mod storage;

#[cfg(any(test, feature = "fixtures"))]
pub mod fixture;

pub use baseline::BaselineError;
pub use look::{LookError, LookOptions, Looked, look};
pub use probe::ProbeError;
pub use proof::ProofError;
pub use storage::StorageError;

/// Why the doctor has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// What was named of the server's storage is not there, or does not fit the server.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The server was not looked at.
    #[error(transparent)]
    Look(#[from] LookError),
    /// Syncs cannot be timed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A diagnosis of before cannot be read.
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    /// Nothing can be proved.
    #[error(transparent)]
    Proof(#[from] ProofError),
}
