//! A block request on its way through the engine: what it asks for, its data, and the duty to
//! answer it exactly once.

mod buffer;

use std::{fmt, sync::Arc};

use ebbtide_volume::Op;
use serde::{Deserialize, Serialize};

pub use buffer::{Buffer, BufferPool};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Reads bytes.
    Read,
    /// Writes the bytes of [`Request::data`].
    Write,
    /// Makes the range read as zeroes; charged as a write of its length.
    WriteZeroes,
    /// Gives the range's space back; it reads as zeroes afterwards. Costs nothing.
    Discard,
    /// Makes every write answered so far durable.
    Flush,
}

impl Command {
    /// As logs and JSON name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteZeroes => "write-zeroes",
            Self::Discard => "discard",
            Self::Flush => "flush",
        }
    }

    /// What the model charges.
    pub(crate) const fn op(self) -> Op {
        match self {
            Self::Read => Op::Read,
            Self::Write | Self::WriteZeroes => Op::Write,
            Self::Discard => Op::Discard,
            Self::Flush => Op::Flush,
        }
    }
}

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

/// Someone who takes answers, such as an NBD connection. Shared, so that an answer costs no
/// allocation.
pub trait Answer: Send + Sync {
    /// Takes the outcome of the request that was submitted with `cookie`.
    ///
    /// Called once for each request, on the pacer's real-time thread or inside `submit`: it must
    /// not block and must not submit.
    fn answer(&self, cookie: u64, outcome: Outcome);
}

/// The duty to answer a request. Dropped unanswered, it answers [`IoError::Io`].
pub struct Reply(Option<Sink>);

enum Sink {
    FuseRead(fuser::ReplyData),
    FuseWrite(fuser::ReplyWrite, u32),
    FuseEmpty(fuser::ReplyEmpty),
    Shared(Arc<dyn Answer>, u64),
    Callback(Box<dyn FnOnce(Outcome) + Send>),
}

impl Reply {
    /// Answers through `to`, which distinguishes its requests by `cookie`.
    #[must_use]
    pub fn shared(to: Arc<dyn Answer>, cookie: u64) -> Self {
        Self(Some(Sink::Shared(to, cookie)))
    }

    /// Answers by calling `callback`, under the same rules as [`Answer::answer`].
    #[must_use]
    pub fn callback(callback: impl FnOnce(Outcome) + Send + 'static) -> Self {
        Self(Some(Sink::Callback(Box::new(callback))))
    }

    pub(crate) const fn fuse_read(reply: fuser::ReplyData) -> Self {
        Self(Some(Sink::FuseRead(reply)))
    }

    /// `len` is the length of the write, which FUSE wants to hear back.
    pub(crate) const fn fuse_write(reply: fuser::ReplyWrite, len: u32) -> Self {
        Self(Some(Sink::FuseWrite(reply, len)))
    }

    pub(crate) const fn fuse_empty(reply: fuser::ReplyEmpty) -> Self {
        Self(Some(Sink::FuseEmpty(reply)))
    }

    /// Answers.
    pub fn send(mut self, outcome: Outcome) {
        self.deliver(outcome);
    }

    fn deliver(&mut self, outcome: Outcome) {
        let Some(sink) = self.0.take() else { return };
        let fuse_error = |error: IoError| fuser::Errno::from_i32(error.errno());
        match (sink, outcome) {
            (Sink::FuseRead(reply), Ok(data)) => reply.data(data.as_deref().unwrap_or_default()),
            (Sink::FuseRead(reply), Err(error)) => reply.error(fuse_error(error)),
            (Sink::FuseWrite(reply, len), Ok(_)) => reply.written(len),
            (Sink::FuseWrite(reply, _), Err(error)) => reply.error(fuse_error(error)),
            (Sink::FuseEmpty(reply), Ok(_)) => reply.ok(),
            (Sink::FuseEmpty(reply), Err(error)) => reply.error(fuse_error(error)),
            (Sink::Shared(to, cookie), outcome) => to.answer(cookie, outcome),
            (Sink::Callback(callback), outcome) => callback(outcome),
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.deliver(Err(IoError::Io));
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = match &self.0 {
            None => "answered",
            Some(Sink::FuseRead(_) | Sink::FuseWrite(..) | Sink::FuseEmpty(_)) => "fuse",
            Some(Sink::Shared(..)) => "shared",
            Some(Sink::Callback(_)) => "callback",
        };
        write!(f, "Reply({to})")
    }
}

/// One request.
#[derive(Debug)]
pub struct Request {
    /// What it asks for.
    pub command: Command,
    /// First byte; ignored for a flush.
    pub offset: u64,
    /// Length in bytes; ignored for a flush. Reads and writes are at most
    /// [`crate::engine::MAX_DATA_BYTES`] long.
    pub len: u32,
    /// Whether the answer means durable even on a volume with a volatile cache.
    pub fua: bool,
    /// The bytes of a write: exactly `len` of them, in a buffer of the volume's pool.
    pub data: Option<Buffer>,
    /// Where the answer goes.
    pub reply: Reply,
}
