//! How a request ends: with its data, or with an error.

mod buffer;

pub use buffer::{Buffer, BufferPool};
pub(crate) use buffer::{OWN_BYTES, with_own_bytes};

/// Why a request failed, as the guest will see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IoError {
    /// The store failed, a fault was injected, or the request was dropped unanswered.
    #[error("input/output error")]
    Io,
    /// The host's disk is full: the write has not happened.
    #[error("no space left on the host")]
    NoSpace,
    /// The range is not within the volume, or exceeds the largest request.
    #[error("the range is outside the volume")]
    OutOfRange,
    /// Offset or length is no multiple of the volume's block size.
    #[error("the range is not aligned to the volume's blocks")]
    Misaligned,
    /// The volume has lost its power and must be attached again.
    #[error("the volume has lost its power")]
    PowerLost,
}

impl IoError {
    /// The error as an errno value.
    #[must_use]
    pub const fn errno(self) -> i32 {
        match self {
            Self::Io | Self::PowerLost => rustix::io::Errno::IO.raw_os_error(),
            Self::NoSpace => rustix::io::Errno::NOSPC.raw_os_error(),
            Self::OutOfRange | Self::Misaligned => rustix::io::Errno::INVAL.raw_os_error(),
        }
    }
}

impl From<&std::io::Error> for IoError {
    fn from(error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded => Self::NoSpace,
            _ => Self::Io,
        }
    }
}

/// The outcome of a request: for a read its data, otherwise nothing.
pub type Outcome = Result<Option<Buffer>, IoError>;
