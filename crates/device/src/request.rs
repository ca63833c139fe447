//! A block request on its way through the engine: what it asks for, its data, and the duty to
//! answer it exactly once.

use std::{fmt, sync::Arc};

use ebbtide_volume::Op;
use serde::{Deserialize, Serialize};

use crate::transport::{FuseReply, NbdReply, ReplyPath};

pub use crate::outcome::{Buffer, BufferPool, IoError, Outcome};

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

/// The duty to answer a request. Dropped unanswered, it answers [`IoError::Io`].
pub struct Reply(Option<ReplyPath>);

// Requests in flight are moved in a heap by value, so that each byte of a reply costs every request.
const _: () = assert!(size_of::<Reply>() <= 40);

impl Reply {
    /// Answers by calling `callback`: once, on the pacer's real-time thread or inside `submit`. It must not block and must
    /// not submit. For requests that come from this process; it costs an allocation.
    #[must_use]
    pub fn callback(callback: impl FnOnce(Outcome) + Send + 'static) -> Self {
        Self(Some(ReplyPath::Callback(Box::new(callback))))
    }

    pub(crate) const fn fuse(reply: FuseReply) -> Self {
        Self(Some(ReplyPath::Fuse(reply)))
    }

    pub(crate) const fn nbd(reply: NbdReply) -> Self {
        Self(Some(ReplyPath::Nbd(reply)))
    }

    /// Answers.
    pub fn send(mut self, outcome: Outcome) {
        self.deliver(outcome);
    }

    /// Answers a read with data that the caller keeps.
    pub(crate) fn send_read(mut self, outcome: Result<&[u8], IoError>, pool: &Arc<BufferPool>) {
        if let Some(path) = self.0.take() {
            path.deliver_read(outcome, pool);
        }
    }

    fn deliver(&mut self, outcome: Outcome) {
        if let Some(path) = self.0.take() {
            path.deliver(outcome);
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
        write!(f, "Reply({})", self.0.as_ref().map_or("answered", ReplyPath::name))
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
