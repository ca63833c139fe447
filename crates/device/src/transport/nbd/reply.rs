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
        Code, Command, Refusal, RequestHeader, chunk, chunk_head, command_flag, data_chunk_head, error_chunk,
        hole_chunk, simple_reply,
    },
};
use crate::outcome::{Buffer, IoError, Outcome};

/// Zeroes are looked for in units of this, bytes.
const ZERO_UNIT: usize = 4 << 10;

/// A run of zeroes within other data is left out of a reply from this length on, bytes. Below it
/// a chunk more costs the client as much as the zeroes do.
const ZERO_RUN: usize = 32 << 10;

/// What a client's request waits for: the whole answer, or one piece of it. It is small: see [`crate::request::Reply`].
pub(crate) struct NbdReply {
    replies: Arc<ReplySender>,
    /// The other pieces, where there are any.
    whole: Option<Arc<SplitRequest>>,
    cookie: u64,
    offset: u64,
    len: u32,
    /// Whether `len` bytes of data count as in flight.
    moves_data: bool,
    expected: Expected,
}

/// What the client expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Data.
    Data,
    /// Data in one chunk.
    WholeData,
    /// That a range was changed.
    Changed,
    /// That what it wrote is durable; no range.
    Flushed,
}

impl Expected {
    const fn of_request(request: &RequestHeader) -> Self {
        match request.command {
            Command::Read if request.has(command_flag::DF) => Self::WholeData,
            Command::Read => Self::Data,
            Command::Flush => Self::Flushed,
            _ => Self::Changed,
        }
    }

    const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::WholeData)
    }
}

/// A client's request that went to the volume in pieces.
#[derive(Debug)]
pub(crate) struct SplitRequest {
    left: AtomicUsize,
    /// The first byte that failed, and why.
    failure: Mutex<Option<(u64, IoError)>>,
}

impl SplitRequest {
    pub(crate) fn new(pieces: usize) -> Arc<Self> {
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

impl NbdReply {
    /// The reply to a part of a client's request, which has been let in at [`Self::cost_of`].
    pub(crate) fn new(
        replies: Arc<ReplySender>,
        request: &RequestHeader,
        (offset, len): (u64, u32),
        moves_data: bool,
        whole: Option<Arc<SplitRequest>>,
    ) -> Self {
        let expected = Expected::of_request(request);
        Self { replies, whole, cookie: request.cookie, offset, len, moves_data, expected }
    }

    /// What a piece of `len` bytes holds until its answer has left.
    pub(crate) fn cost_of(len: u32, moves_data: bool) -> Cost {
        Cost::of(if moves_data { usize::try_from(len).expect("a u32 fits into a usize") } else { 0 })
    }

    fn cost(&self) -> Cost {
        Self::cost_of(self.len, self.moves_data)
    }

    /// Takes the volume's answer. Called on the pacer's thread: it waits for nobody.
    pub(crate) fn finish(self, outcome: Outcome) {
        match outcome {
            Ok(data) if self.expected.is_data() => self.finish_read(data),
            Ok(_) => self.finish_write(None),
            Err(error) if self.expected.is_data() => self.fail_read(error),
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
            self.replies.send_buffer(&simple_reply(self.cookie, 0), data, self.cost());
        }
        self.close_chunks();
    }

    fn send_chunks(&self, data: Buffer) {
        let (cookie, done) = (self.cookie, self.whole.is_none());
        let runs = if self.expected == Expected::WholeData { Vec::new() } else { zero_runs(&data) };
        if runs.is_empty() {
            let head = data_chunk_head(cookie, done, self.offset, self.len);
            return self.replies.send_buffer(&head, data, self.chunk_cost());
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
        out.extend_from_slice(&data_chunk_head(self.cookie, last, self.position(start), len));
        out.extend_from_slice(&data[start..end]);
    }

    fn position(&self, at: usize) -> u64 {
        self.offset + u64::try_from(at).expect("within a request")
    }

    fn fail_read(self, error: IoError) {
        let done = self.whole.is_none();
        let mut out = Vec::new();
        self.encode_error(&mut out, done, error, self.offset);
        self.replies.send(&out, &[], self.chunk_cost());
        self.close_chunks();
    }

    /// What a chunk gives back when it has left. A piece of several stays counted as a request
    /// until the end of the reply is on its way.
    fn chunk_cost(&self) -> Cost {
        match self.whole {
            None => self.cost(),
            Some(_) => Cost { requests: 0, ..self.cost() },
        }
    }

    /// Ends the reply of a read in pieces once all of them have been sent.
    fn close_chunks(self) {
        let Some(whole) = &self.whole else { return };
        // The piece that ends the reply may finish on another thread, and must not overtake this one.
        self.replies.flush_own_batch();
        if whole.finish_one() {
            self.replies.send(&chunk_head(self.cookie, chunk::NONE, true, 0), &[], Cost::of(0));
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
                    return self.replies.give_back(self.cost());
                }
                *whole.failure.lock()
            }
        };
        let Some((offset, error)) = failure else {
            return self.replies.send(&simple_reply(self.cookie, 0), &[], self.cost());
        };
        let mut out = Vec::new();
        self.encode_error(&mut out, true, error, offset);
        self.replies.send(&out, &[], self.cost());
    }

    /// Appends the reply that the volume failed.
    fn encode_error(&self, out: &mut Vec<u8>, done: bool, error: IoError, offset: u64) {
        let code = match error {
            IoError::Io | IoError::PowerLost => Code::Io,
            IoError::NoSpace => Code::NoSpc,
            IoError::OutOfRange | IoError::Misaligned => Code::Inval,
        };
        if self.replies.structured() {
            let offset = (self.expected != Expected::Flushed).then_some(offset);
            error_chunk(out, self.cookie, done, code, &error.to_string(), offset);
        } else {
            out.extend_from_slice(&simple_reply(self.cookie, code.value()));
        }
    }
}

/// Appends the reply to a request that never reached the volume.
pub(crate) fn encode_refusal(out: &mut Vec<u8>, structured: bool, cookie: u64, refusal: &Refusal) {
    if structured {
        error_chunk(out, cookie, true, refusal.code, &refusal.message, None);
    } else {
        out.extend_from_slice(&simple_reply(cookie, refusal.code.value()));
    }
}

/// Appends the reply to a request of no bytes.
pub(crate) fn encode_nothing(out: &mut Vec<u8>, structured: bool, cookie: u64) {
    if structured {
        out.extend_from_slice(&chunk_head(cookie, chunk::NONE, true, 0));
    } else {
        out.extend_from_slice(&simple_reply(cookie, 0));
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
    use std::{io::Read as _, os::unix::net::UnixStream, thread};

    use super::*;
    use crate::{
        allocations::allocations_of,
        request::{BufferPool, Reply},
        transport::nbd::output::Output,
    };

    #[test]
    fn an_answer_that_the_socket_takes_costs_no_allocation() {
        const LEN: u32 = 16 << 10;
        let pool = BufferPool::new(1 << 20);
        drop(pool.take(16 << 10));
        for structured in [false, true] {
            let (_client, server) = UnixStream::pair().unwrap();
            let output = Output::new(server.into(), Cost { requests: 16, bytes: 1 << 20 });
            // This thread is not the reader, whose replies wait for more of them.
            let replies =
                thread::spawn(move || Arc::new(ReplySender::new(output, structured))).join().unwrap();
            for command in [Command::Read, Command::Write, Command::Flush] {
                let request = RequestHeader { flags: 0, command, cookie: 9, offset: 4096, len: LEN };
                let moves_data = command != Command::Flush;
                let data = (command == Command::Read).then(|| {
                    let mut data = pool.take(16 << 10);
                    data.fill(1);
                    data
                });
                replies.admit(NbdReply::cost_of(LEN, moves_data));
                let count = allocations_of(|| {
                    let reply = NbdReply::new(Arc::clone(&replies), &request, (4096, LEN), moves_data, None);
                    Reply::nbd(reply).send(Ok(data));
                });
                assert_eq!(count, 0, "{command:?}, structured {structured}");
            }
        }
    }

    #[test]
    fn a_reply_that_is_dropped_tells_the_client_of_an_error() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let output = Output::new(server.into(), Cost { requests: 16, bytes: 1 << 20 });
        let replies = thread::spawn(move || Arc::new(ReplySender::new(output, false))).join().unwrap();
        let request = RequestHeader { flags: 0, command: Command::Write, cookie: 9, offset: 0, len: 4096 };
        replies.admit(NbdReply::cost_of(4096, true));
        drop(Reply::nbd(NbdReply::new(Arc::clone(&replies), &request, (0, 4096), true, None)));
        replies.output().gauge().wait_until_empty();
        drop(replies);
        let mut told = Vec::new();
        client.read_to_end(&mut told).unwrap();
        assert_eq!(told, simple_reply(9, Code::Io.value()), "once");
    }

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
