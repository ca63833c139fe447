//! From what the volume answers to what the client reads.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use super::{
    output::Cost,
    reply_sender::ReplySender,
    wire::{
        Code, Command, Refusal, RequestHeader, chunk, chunk_head, data_chunk_head, error_chunk, hole_chunk,
        simple_reply,
    },
};
use crate::request::{Buffer, IoError, Outcome};

/// Zeroes are looked for in units of this, bytes.
const ZERO_UNIT: usize = 4 << 10;

/// A run of zeroes within other data is left out of a reply from this length on, bytes. Below it
/// a chunk more costs the client as much as the zeroes do.
const ZERO_RUN: usize = 32 << 10;

/// A request to the volume on behalf of a client's request, which it answers in whole or in part.
pub(super) struct Piece {
    pub(super) replies: Arc<ReplySender>,
    pub(super) request: RequestHeader,
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) cost: Cost,
    /// The other pieces, where there are any.
    pub(super) whole: Option<Arc<SplitRequest>>,
}

/// A client's request that went to the volume in pieces.
#[derive(Debug)]
pub(super) struct SplitRequest {
    left: AtomicUsize,
    /// The first byte that failed, and why.
    failure: Mutex<Option<(u64, IoError)>>,
}

impl SplitRequest {
    pub(super) fn new(pieces: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(pieces), failure: Mutex::new(None) })
    }

    fn note(&self, offset: u64, error: IoError) {
        let mut failure = self.failure.lock();
        if failure.is_none_or(|(first, _)| offset < first) {
            *failure = Some((offset, error));
        }
    }

    /// Counts a piece as done; whether it was the last.
    fn finish_one(&self) -> bool {
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Piece {
    /// Takes the volume's answer. Called on the pacer's thread: it waits for nobody.
    pub(super) fn finish(self, outcome: Outcome) {
        match outcome {
            Ok(data) if self.request.command == Command::Read => self.finish_read(data),
            Ok(_) => self.finish_write(None),
            Err(error) if self.request.command == Command::Read => self.fail_read(error),
            Err(error) => self.finish_write(Some(error)),
        }
    }

    fn finish_read(self, data: Option<Buffer>) {
        let Some(data) = data.filter(|data| u32::try_from(data.len()) == Ok(self.len)) else {
            return self.fail_read(IoError::Io);
        };
        if self.replies.structured() {
            self.send_chunks(data);
        } else {
            let mut head = Vec::with_capacity(16);
            simple_reply(&mut head, self.request.cookie, 0);
            self.replies.send_buffer(head, data, self.cost);
        }
        self.close_chunks();
    }

    fn send_chunks(&self, data: Buffer) {
        let (cookie, done) = (self.request.cookie, self.whole.is_none());
        let whole_chunk = self.request.has(super::wire::command_flag::DF);
        let runs = if whole_chunk { Vec::new() } else { zero_runs(&data) };
        if runs.is_empty() {
            let mut head = Vec::with_capacity(28);
            data_chunk_head(&mut head, cookie, done, self.offset, self.len);
            return self.replies.send_buffer(head, data, self.chunk_cost());
        }
        let mut out = Vec::new();
        let mut at = 0;
        for (start, end) in runs {
            self.append_data(&mut out, &data, at, start, done);
            let hole = u32::try_from(end - start).expect("within a request");
            hole_chunk(&mut out, cookie, done && end == data.len(), self.position(start), hole);
            at = end;
        }
        self.append_data(&mut out, &data, at, data.len(), done);
        drop(data);
        self.replies.send(&out, &[], self.chunk_cost());
    }

    fn append_data(&self, out: &mut Vec<u8>, data: &[u8], start: usize, end: usize, done: bool) {
        if start == end {
            return;
        }
        let len = u32::try_from(end - start).expect("within a request");
        let last = done && end == data.len();
        data_chunk_head(out, self.request.cookie, last, self.position(start), len);
        out.extend_from_slice(&data[start..end]);
    }

    fn position(&self, at: usize) -> u64 {
        self.offset + u64::try_from(at).expect("within a request")
    }

    fn fail_read(self, error: IoError) {
        let done = self.whole.is_none();
        let mut out = Vec::new();
        encode_error(&mut out, &self.replies, &self.request, done, error, self.offset);
        self.replies.send(&out, &[], self.chunk_cost());
        self.close_chunks();
    }

    /// What a chunk gives back when it has left. A piece of several stays counted as a request
    /// until the end of the reply is on its way.
    const fn chunk_cost(&self) -> Cost {
        match self.whole {
            None => self.cost,
            Some(_) => Cost { requests: 0, bytes: self.cost.bytes },
        }
    }

    /// Ends the reply of a read in pieces once all of them have been sent.
    fn close_chunks(self) {
        let Some(whole) = self.whole else { return };
        // The piece that ends the reply may finish on another thread, and must not overtake this one.
        self.replies.flush_own_batch();
        if whole.finish_one() {
            let mut out = Vec::with_capacity(20);
            chunk_head(&mut out, self.request.cookie, chunk::NONE, true, 0);
            self.replies.send(&out, &[], Cost::of(0));
        } else {
            self.replies.give_back(Cost::of(0));
        }
    }

    fn finish_write(self, error: Option<IoError>) {
        let failure = match &self.whole {
            None => error.map(|error| (self.offset, error)),
            Some(whole) => {
                if let Some(error) = error {
                    whole.note(self.offset, error);
                }
                if !whole.finish_one() {
                    return self.replies.give_back(self.cost);
                }
                *whole.failure.lock()
            }
        };
        let mut out = Vec::with_capacity(16);
        match failure {
            None => simple_reply(&mut out, self.request.cookie, 0),
            Some((offset, error)) => {
                encode_error(&mut out, &self.replies, &self.request, true, error, offset);
            }
        }
        self.replies.send(&out, &[], self.cost);
    }
}

/// Appends a reply that the volume failed.
fn encode_error(
    out: &mut Vec<u8>,
    replies: &ReplySender,
    request: &RequestHeader,
    done: bool,
    error: IoError,
    offset: u64,
) {
    let code = match error {
        IoError::Io | IoError::PowerLost => Code::Io,
        IoError::NoSpace => Code::NoSpc,
        IoError::OutOfRange | IoError::Misaligned => Code::Inval,
    };
    if replies.structured() {
        let offset = (request.command != Command::Flush).then_some(offset);
        error_chunk(out, request.cookie, done, code, &error.to_string(), offset);
    } else {
        simple_reply(out, request.cookie, code.value());
    }
}

/// Appends the reply to a request that never reached the volume.
pub(super) fn encode_refusal(out: &mut Vec<u8>, structured: bool, cookie: u64, refusal: &Refusal) {
    if structured {
        error_chunk(out, cookie, true, refusal.code, &refusal.message, None);
    } else {
        simple_reply(out, cookie, refusal.code.value());
    }
}

/// Appends the reply to a request of no bytes.
pub(super) fn encode_nothing(out: &mut Vec<u8>, structured: bool, cookie: u64) {
    if structured {
        chunk_head(out, cookie, chunk::NONE, true, 0);
    } else {
        simple_reply(out, cookie, 0);
    }
}

/// The runs of zeroes worth leaving out: all of the data, or [`ZERO_RUN`] and more.
fn zero_runs(data: &[u8]) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut start = None;
    let mut at = 0;
    for unit in data.chunks(ZERO_UNIT) {
        if is_zero(unit) {
            start.get_or_insert(at);
        } else {
            close_run(&mut runs, start.take(), at, data.len());
        }
        at += unit.len();
    }
    close_run(&mut runs, start, at, data.len());
    runs
}

fn close_run(runs: &mut Vec<(usize, usize)>, start: Option<usize>, end: usize, all: usize) {
    if let Some(start) = start
        && (end - start >= ZERO_RUN || end - start == all)
    {
        runs.push((start, end));
    }
}

fn is_zero(unit: &[u8]) -> bool {
    unit.chunks(64).all(|line| line.iter().fold(0, |bits, byte| bits | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_runs_of_zeroes_or_all_zeroes_are_left_out() {
        let k = 1024;
        assert_eq!(zero_runs(&vec![0; 16 * k]), [(0, 16 * k)]);
        assert_eq!(zero_runs(&vec![0; 512]), [(0, 512)]);
        assert_eq!(zero_runs(&vec![1; 64 * k]), []);
        let mut data = vec![0; 128 * k];
        data[5] = 1;
        data[60 * k] = 1;
        assert_eq!(zero_runs(&data), [(4 * k, 60 * k), (64 * k, 128 * k)]);
        data[20 * k] = 1;
        data[40 * k] = 1;
        assert_eq!(zero_runs(&data), [(64 * k, 128 * k)]);
        *data.last_mut().unwrap() = 1;
        assert_eq!(zero_runs(&data), [(64 * k, 124 * k)]);
    }
}
