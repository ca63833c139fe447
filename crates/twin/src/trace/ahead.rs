//! Reads a trace in a thread of its own, ahead of its reader: a trace takes as long to decode as to replay.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::vec;

use super::reader::{Requests, Trace};
use super::{Record, TraceError};

/// Requests that are handed over at once.
const BATCH: usize = 2048;
/// Batches that wait to be taken, at most.
const BATCHES: usize = 4;

/// The requests of a batch, or why there are no more.
type Batch = Result<Vec<Record>, TraceError>;

impl<R: Read + Send> Trace<R> {
    /// Hands the requests of the trace to `take`, in their order, while a thread of its own reads on.
    ///
    /// Where `take` ends before the trace does, more of the trace may have been read than it took.
    pub fn read_ahead<T>(
        &mut self,
        take: impl FnOnce(&mut dyn Iterator<Item = Result<Record, TraceError>>) -> T,
    ) -> T {
        let (input, requests) = self.parts();
        let (full, batches) = sync_channel(BATCHES);
        thread::scope(|scope| {
            scope.spawn(move || send_all(requests, input, &full));
            // The reading thread ends when nobody takes its batches any more: they end here, before it is waited for.
            let mut taken = Taken { batches, batch: Vec::new().into_iter() };
            take(&mut taken)
        })
    }
}

/// Reads to the end of the trace, or until nobody takes any more.
fn send_all(requests: &mut Requests, input: &mut dyn Read, full: &SyncSender<Batch>) {
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        let mut error = None;
        while batch.len() < BATCH {
            match requests.next(input) {
                Some(Ok(record)) => batch.push(record),
                Some(Err(found)) => {
                    error = Some(found);
                    break;
                }
                None => break,
            }
        }
        let ended = batch.len() < BATCH;
        if full.send(Ok(batch)).is_err() || error.is_some_and(|error| full.send(Err(error)).is_err()) || ended
        {
            return;
        }
    }
}

/// The requests of the batches.
struct Taken {
    batches: Receiver<Batch>,
    batch: vec::IntoIter<Record>,
}

impl Iterator for Taken {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.batch.next() {
                return Some(Ok(record));
            }
            match self.batches.recv().ok()? {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
