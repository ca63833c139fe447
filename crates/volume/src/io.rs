//! What is asked of a volume, and what it answers.

use crate::Nanos;

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Op {
    /// Reads bytes.
    Read,
    /// Writes bytes (or zeroes).
    Write,
    /// Makes answered writes durable, where a volatile cache could lose them.
    Flush,
    /// Gives space back.
    Discard,
}

/// One I/O as the guest submits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// What it does.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; ignored for a flush.
    pub len: u32,
}

/// The volume's answer to a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// When the I/O completes.
    pub completes: Nanos,
    /// When it would have completed without any limit; the difference is throttling.
    pub unthrottled: Nanos,
    /// Operations that it cost, after splitting and merging.
    pub operations: u64,
    /// Bytes that it cost.
    pub bytes: u64,
}
