//! The engine of a live volume.

/// Largest read or write, in bytes. Longer ones are [`crate::request::IoError::OutOfRange`].
pub const MAX_DATA_BYTES: u32 = 32 << 20;
/// Bytes of answered writes that the fault `answer_early` keeps in volatile memory at most.
pub const EARLY_BYTES: u64 = 4 << 20;
