//! Answers to the kernel, through `/dev/fuse`.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use parking_lot::Mutex;

use crate::outcome::{IoError, Outcome};

/// The answer that a request of the kernel waits for.
pub(crate) enum FuseReply {
    /// Data.
    Read(ReplyData),
    /// The length of a write, which FUSE wants to hear back.
    Write(ReplyWrite, u32),
    /// Success alone.
    Empty(ReplyEmpty),
    /// One piece of a request that was cut; the last one that ends answers it.
    Piece(Arc<CutRequest>),
}

/// A request that was cut in pieces.
pub(crate) struct CutRequest {
    left: AtomicU32,
    failed: Mutex<Option<IoError>>,
    reply: Mutex<Option<ReplyEmpty>>,
}

impl FuseReply {
    /// The replies of the `count` pieces that a request was cut into.
    pub(crate) fn pieces(reply: ReplyEmpty, count: u32) -> impl Iterator<Item = Self> {
        let cut = Arc::new(CutRequest {
            left: AtomicU32::new(count),
            failed: Mutex::new(None),
            reply: Mutex::new(Some(reply)),
        });
        (0..count).map(move |_| Self::Piece(Arc::clone(&cut)))
    }

    /// Takes the data of a read to the kernel, which copies them before this returns.
    pub(crate) fn finish_read(reply: ReplyData, outcome: Result<&[u8], IoError>) {
        match outcome {
            Ok(data) => reply.data(data),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Takes the outcome to the kernel.
    pub(crate) fn finish(self, outcome: Outcome) {
        match (self, outcome) {
            (Self::Read(reply), Ok(data)) => {
                Self::finish_read(reply, Ok(data.as_deref().unwrap_or_default()))
            }
            (Self::Read(reply), Err(error)) => Self::finish_read(reply, Err(error)),
            (Self::Write(reply, len), Ok(_)) => reply.written(len),
            (Self::Write(reply, _), Err(error)) => reply.error(errno(error)),
            (Self::Empty(reply), Ok(_)) => reply.ok(),
            (Self::Empty(reply), Err(error)) => reply.error(errno(error)),
            (Self::Piece(cut), outcome) => cut.finish_piece(outcome),
        }
    }
}

impl CutRequest {
    fn finish_piece(&self, outcome: Outcome) {
        if let Err(error) = outcome {
            self.failed.lock().get_or_insert(error);
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(reply) = self.reply.lock().take()
        {
            let failed = self.failed.lock().take();
            FuseReply::Empty(reply).finish(failed.map_or(Ok(None), Err));
        }
    }
}

fn errno(error: IoError) -> Errno {
    Errno::from_i32(error.errno())
}
