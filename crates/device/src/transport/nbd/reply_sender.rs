//! The order in which a client's replies leave.

use std::thread::{self, ThreadId};

use parking_lot::Mutex;

use super::output::{Cost, Output};
use crate::outcome::Buffer;

/// Replies that the reader's own thread produced leave together from this many bytes on. Waiting
/// for more would leave the client idle.
const BATCH_BYTES: usize = 128 << 10;

/// Sends the replies of one connection.
#[derive(Debug)]
pub(crate) struct ReplySender {
    output: Output,
    /// Whether replies are structured.
    structured: bool,
    /// The thread that reads the client's requests.
    reader: ThreadId,
    /// Replies that the reader's thread holds until it has looked at what else has arrived.
    batch: Mutex<ReplyBatch>,
}

#[derive(Debug)]
struct ReplyBatch {
    bytes: Vec<u8>,
    cost: Cost,
}

impl ReplySender {
    /// The calling thread is the reader.
    pub(crate) fn new(output: Output, structured: bool) -> Self {
        let batch = Mutex::new(ReplyBatch { bytes: Vec::new(), cost: Cost::NONE });
        Self { output, structured, reader: thread::current().id(), batch }
    }

    pub(crate) const fn structured(&self) -> bool {
        self.structured
    }

    pub(crate) const fn output(&self) -> &Output {
        &self.output
    }

    /// Sends a reply of the reader's own, which is bounded like any other: a client that sends
    /// nonsense and reads no replies must not fill the memory.
    pub(crate) fn send_own(&self, out: &[u8]) {
        let cost = Cost::of(out.len());
        self.admit(cost);
        self.send(out, &[], cost);
    }

    /// Waits until the client has room for another request.
    pub(crate) fn admit(&self, cost: Cost) {
        let gauge = self.output.gauge();
        if !gauge.try_take(cost) {
            self.flush_batch();
            gauge.take(cost);
        }
    }

    pub(crate) fn give_back(&self, cost: Cost) {
        self.output.gauge().give_back(cost);
    }

    /// Sends a reply, or batches it where the reader's thread itself has it.
    pub(crate) fn send(&self, head: &[u8], body: &[u8], cost: Cost) {
        let len = head.len() + body.len();
        if thread::current().id() != self.reader {
            return self.output.send(head, body, cost);
        }
        let mut batch = self.batch.lock();
        if batch.bytes.len() + len > BATCH_BYTES {
            self.flush(&mut batch);
        }
        if len > BATCH_BYTES {
            return self.output.send(head, body, cost);
        }
        batch.bytes.extend_from_slice(head);
        batch.bytes.extend_from_slice(body);
        batch.cost.add(cost);
    }

    /// As [`Self::send`], for a body in a buffer of the volume.
    pub(crate) fn send_buffer(&self, head: &[u8], body: Buffer, cost: Cost) {
        if head.len() + body.len() <= BATCH_BYTES / 2 {
            return self.send(head, &body, cost);
        }
        self.flush_own_batch();
        self.output.send_buffer(head, body, cost);
    }

    /// Lets the batched replies go where the calling thread is the one that batches.
    pub(crate) fn flush_own_batch(&self) {
        if thread::current().id() == self.reader {
            self.flush_batch();
        }
    }

    /// Lets the batched replies go. On the reader's thread only.
    pub(crate) fn flush_batch(&self) {
        self.flush(&mut self.batch.lock());
    }

    fn flush(&self, batch: &mut ReplyBatch) {
        if !batch.bytes.is_empty() {
            self.output.send(&batch.bytes, &[], std::mem::replace(&mut batch.cost, Cost::NONE));
            batch.bytes.clear();
        }
    }
}
