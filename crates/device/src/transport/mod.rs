//! How an answer goes back by the transport that its request came by.
//!
//! Each transport has the answering half here, below the engine, and the half that reads requests above it:
//! [`crate::fuse`] and [`crate::nbd`]. Another one, such as FUSE by io_uring, is a file here with a variant of
//! [`ReplyPath`], and a module above.

mod fuse;
pub(crate) mod nbd;

use std::sync::Arc;

use crate::outcome::{BufferPool, IoError, Outcome};

pub(crate) use fuse::FuseReply;
pub(crate) use nbd::NbdReply;

/// The way back of one answer. An enum, since each I/O takes it: a trait object would cost an allocation for each request.
///
/// An answer is delivered on the pacer's real-time thread or inside `submit`: no transport may block there, or submit.
pub(crate) enum ReplyPath {
    /// To the kernel, through `/dev/fuse`.
    Fuse(FuseReply),
    /// To a client of NBD.
    Nbd(NbdReply),
    /// To this process: calibration, benches, tests.
    Callback(Box<dyn FnOnce(Outcome) + Send>),
}

impl ReplyPath {
    /// Takes the answer there.
    pub(crate) fn deliver(self, outcome: Outcome) {
        match self {
            Self::Fuse(reply) => reply.finish(outcome),
            Self::Nbd(reply) => reply.finish(outcome),
            Self::Callback(callback) => callback(outcome),
        }
    }

    /// Takes the answer to a read there whose data the caller keeps. Where they have to outlive this call, they are copied into a
    /// buffer of `pool`, for which it may wait.
    pub(crate) fn deliver_read(self, outcome: Result<&[u8], IoError>, pool: &Arc<BufferPool>) {
        if let Self::Fuse(FuseReply::Read(reply)) = self {
            return FuseReply::finish_read(reply, outcome);
        }
        self.deliver(outcome.map(|data| {
            let mut buffer = pool.take(data.len());
            buffer.copy_from_slice(data);
            Some(buffer)
        }));
    }

    /// As a log names it.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Fuse(_) => "fuse",
            Self::Nbd(_) => "nbd",
            Self::Callback(_) => "callback",
        }
    }
}
