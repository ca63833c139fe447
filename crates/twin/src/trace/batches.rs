//! Requests in batches, for a caller that reads a trace in a thread and replays it in another.

use std::io::Read;
use std::vec;

use super::reader::{Requests, Trace};
use super::{Record, TraceError};

/// Requests of a batch, at most.
const BATCH: usize = 2048;

/// Requests, or why there are no more.
pub type Batch = Result<Vec<Record>, TraceError>;

impl<R: Read> Trace<R> {
    /// The next requests; None at the end. After an error there are none.
    pub fn next_batch(&mut self) -> Option<Batch> {
        let (input, requests) = self.parts();
        batch_of(requests, input)
    }
}

fn batch_of(requests: &mut Requests, input: &mut dyn Read) -> Option<Batch> {
    if let Some(error) = requests.failure.take() {
        return Some(Err(error));
    }
    let mut batch = Vec::with_capacity(BATCH);
    while batch.len() < BATCH {
        match requests.next(input) {
            Some(Ok(record)) => batch.push(record),
            Some(Err(error)) => {
                // It comes after the requests before it.
                requests.failure = Some(error);
                break;
            }
            None => break,
        }
    }
    if batch.is_empty() { requests.failure.take().map(Err) } else { Some(Ok(batch)) }
}

/// The requests of batches, one after another.
pub struct Unbatched<'a> {
    next: &'a mut dyn FnMut() -> Option<Batch>,
    batch: vec::IntoIter<Record>,
}

impl<'a> Unbatched<'a> {
    /// The requests of the batches that `next` gives, up to the first None.
    pub fn new(next: &'a mut dyn FnMut() -> Option<Batch>) -> Self {
        Self { next, batch: Vec::new().into_iter() }
    }
}

impl Iterator for Unbatched<'_> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.batch.next() {
                return Some(Ok(record));
            }
            match (self.next)()? {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
