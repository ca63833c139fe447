//! A configuration that is asked to carry a load.

use ebbtide_volume::{InstanceLimits, Limits};

/// What is asked to carry a load.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The limits of one volume.
    pub limits: &'a Limits,
    /// How many of them are striped.
    pub members: u16,
    /// Bytes of a stripe on one of them.
    pub chunk_bytes: u64,
    /// The limits of the instance; None where nothing but the volumes limits.
    pub instance: Option<&'a InstanceLimits>,
    /// Whether the volumes give at once what they saved while they were idle: a gp3 about a second of its rate. That was
    /// measured, and AWS does not promise it.
    pub counts_allowance: bool,
}
