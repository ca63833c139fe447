//! Reads a trace from its beginning to its end.

use std::io::{self, BufRead, Chain, Cursor, Read as _};

use ebbtide_volume::{Io, Op};

use super::events::{Events, NoEvent};
use super::fields::newline;
use super::format::Format;
use super::lines::{Event, Lines, Stage};
use super::window::Window;
use super::{Counts, Device, Options, Record, TraceError};
use crate::sample::Percentiles;

/// Bytes from which the format is known.
const BEGINNING: u64 = 1 << 16;
/// Bytes of the longest line; one that is longer is no text.
const LONGEST: usize = 1 << 16;
/// Characters of a line that a message shows.
const SHOWN: usize = 80;

/// A trace, as its requests in the order of their arrival. Memory does not grow with the trace.
#[derive(Debug)]
pub struct Trace<R> {
    source: Source<Chain<Cursor<Vec<u8>>, R>>,
    arrival: Stage,
    device: Device,
    /// The one device whose requests were taken so far.
    taken: Vec<u8>,
    window: Window,
    counts: Counts,
    recorded: Percentiles,
    ended: bool,
    failed: bool,
}

/// Where events come from, and how far it was read.
#[derive(Debug)]
struct Source<R> {
    input: R,
    decoder: Decoder,
    /// A line that was not whole in the input's buffer.
    line: Vec<u8>,
    /// Bytes of the input's buffer that were read in place and are not consumed yet.
    lent: usize,
    /// Lines or events read.
    number: u64,
    bytes: u64,
}

#[derive(Debug)]
enum Decoder {
    Lines(Lines),
    Events(Events),
}

impl Decoder {
    fn new(format: Format, options: &Options) -> Self {
        match format {
            Format::Blktrace => Self::Events(Events::default()),
            _ => Self::Lines(Lines::new(format, options.unit_ns)),
        }
    }
}

/// What was read next.
enum Read<'a> {
    Event(Event<'a>),
    /// Nothing that a volume sees.
    Nothing,
    End,
}

impl<R: BufRead> Source<R> {
    fn next(&mut self) -> Result<Read<'_>, TraceError> {
        let (at, number) = (self.bytes, self.number + 1);
        match &mut self.decoder {
            Decoder::Events(events) => match events.next(&mut self.input) {
                Ok(None) => Ok(Read::End),
                Ok(Some((bytes, event))) => {
                    self.bytes += bytes;
                    self.number = number;
                    Ok(event.map_or(Read::Nothing, Read::Event))
                }
                Err(NoEvent::Io(source)) => Err(TraceError::Read { byte: at, source }),
                Err(NoEvent::Damaged(expected)) => Err(TraceError::Event { number, byte: at, expected }),
            },
            Decoder::Lines(lines) => {
                let unreadable = |source| TraceError::Read { byte: at, source };
                self.input.consume(std::mem::take(&mut self.lent));
                let end = match self.input.fill_buf() {
                    Ok(buffer) => newline(&buffer[..buffer.len().min(LONGEST)]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
                    Err(error) => return Err(unreadable(error)),
                };
                let read = if let Some(end) = end {
                    // Lines are read in place where the buffer has them whole.
                    self.lent = end + 1;
                    &self.input.fill_buf().map_err(unreadable)?[..=end]
                } else {
                    self.line.clear();
                    let mut rest = self.input.by_ref().take(LONGEST as u64);
                    rest.read_until(b'\n', &mut self.line).map_err(unreadable)?;
                    self.line.as_slice()
                };
                if read.is_empty() {
                    return Ok(Read::End);
                }
                self.bytes += read.len() as u64;
                self.number = number;
                let line = read.trim_ascii();
                if read.len() == LONGEST && !read.ends_with(b"\n") {
                    let expected = "a line of less than 64 KiB";
                    return Err(TraceError::Line { number, byte: at, expected, found: shown(line) });
                }
                if line.is_empty() {
                    return Ok(Read::Nothing);
                }
                match lines.parse(line) {
                    Ok(event) => Ok(event.map_or(Read::Nothing, Read::Event)),
                    Err(expected) => Err(TraceError::Line { number, byte: at, expected, found: shown(line) }),
                }
            }
        }
    }
}

/// The beginning of a line, for a message.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let plain = text.chars().map(|c| if c.is_control() { '?' } else { c });
    let mut shown: String = plain.take(SHOWN).collect();
    if text.chars().count() > SHOWN {
        shown.push_str("...");
    }
    shown
}

impl<R: BufRead> Trace<R> {
    /// Begins to read a trace.
    ///
    /// # Errors
    /// [`TraceError::Unknown`] where the text is of no known format and the options name none; [`TraceError::Read`].
    pub fn open(mut input: R, options: &Options) -> Result<Self, TraceError> {
        let mut beginning = Vec::new();
        let read = input.by_ref().take(BEGINNING).read_to_end(&mut beginning);
        read.map_err(|source| TraceError::Read { byte: 0, source })?;
        let format = options.format.or_else(|| Format::of(&beginning)).ok_or(TraceError::Unknown)?;
        let source = |input| Source {
            input,
            decoder: Decoder::new(format, options),
            line: Vec::new(),
            lent: 0,
            number: 0,
            bytes: 0,
        };
        let arrival = if issues(source(&beginning[..])) { Stage::Issued } else { Stage::Queued };
        let Source { decoder, line, lent, number, bytes, .. } = source(&[][..]);
        let input = Cursor::new(beginning).chain(input);
        Ok(Self {
            source: Source { input, decoder, line, lent, number, bytes },
            arrival,
            device: options.device.clone(),
            taken: Vec::new(),
            window: Window::default(),
            counts: Counts { format, requests: 0, discarded: 0, late: 0, bytes: 0 },
            recorded: Percentiles::default(),
            ended: false,
            failed: false,
        })
    }

    /// What was read so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { late: self.window.late, bytes: self.source.bytes, ..self.counts }
    }

    /// Latencies of the reads and writes that were read so far, as far as the trace has them.
    #[must_use]
    pub fn recorded(&self) -> &Percentiles {
        &self.recorded
    }

    /// Reads on until a request is known to be the next one.
    fn advance(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some(record) = self.window.next(self.ended) {
                self.counts.requests += 1;
                if let Some(latency) = record.latency.filter(|_| record.io.op != Op::Flush) {
                    self.recorded.record(latency);
                }
                return Ok(Some(record));
            }
            if self.ended {
                return Ok(None);
            }
            let event = match self.source.next()? {
                Read::Event(event) => event,
                Read::Nothing => {
                    self.counts.discarded += 1;
                    continue;
                }
                Read::End => {
                    self.ended = true;
                    continue;
                }
            };
            if !is_taken(&self.device, &mut self.taken, event.device)? {
                self.counts.discarded += 1;
            } else if event.stage == Stage::Completed {
                self.window.answered(&event);
            } else if event.stage == self.arrival && (event.len > 0 || event.op == Op::Flush) {
                let io = io(&event).ok_or(TraceError::Length { bytes: event.len })?;
                let answered_later = event.latency.is_none() && self.counts.format.has_answers();
                self.window.arrived(&event, io, answered_later);
            }
        }
    }
}

/// Whether the requests of a device are taken.
fn is_taken(choice: &Device, taken: &mut Vec<u8>, device: &[u8]) -> Result<bool, TraceError> {
    match choice {
        Device::All => Ok(true),
        Device::Named(name) => Ok(name.as_bytes() == device),
        Device::Only if taken == device => Ok(true),
        Device::Only if taken.is_empty() => {
            taken.extend_from_slice(device);
            Ok(true)
        }
        Device::Only => Err(TraceError::Devices { one: shown(taken), other: shown(device) }),
    }
}

/// Whether requests are seen as they are issued to a device, by the beginning of a trace. Devices that are made of others
/// have none but queued ones.
fn issues(mut source: Source<&[u8]>) -> bool {
    let mut queued = false;
    loop {
        match source.next() {
            Ok(Read::Event(event)) if event.stage == Stage::Issued => return true,
            Ok(Read::Event(event)) => queued |= event.stage == Stage::Queued,
            Ok(Read::Nothing) => {}
            // The beginning may end within a line.
            Ok(Read::End) | Err(_) => return !queued,
        }
    }
}

fn io(event: &Event<'_>) -> Option<Io> {
    let len = u32::try_from(event.len).ok()?;
    event.offset.checked_add(event.len)?;
    Some(if event.op == Op::Flush {
        Io { op: Op::Flush, offset: 0, len: 0 }
    } else {
        Io { op: event.op, offset: event.offset, len }
    })
}

impl<R: BufRead> Iterator for Trace<R> {
    type Item = Result<Record, TraceError>;

    /// The next request. After an error there is none.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance();
        self.failed = next.is_err();
        next.transpose()
    }
}
