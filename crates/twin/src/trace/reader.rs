//! Reads a trace from its beginning to its end.

use std::io::{self, Read};
use std::ops::Range;

use ebbtide_volume::{Io, Op};

use super::events::Events;
use super::fields::newline;
use super::format::{Format, foreign};
use super::lines::{Event, Lines, Row};
use super::stage::Stage;
use super::unused::{Counter, NO_DATA, NotUsed, Unused};
use super::window::Window;
use super::{Counts, Device, Options, Record, TraceError};
use crate::percentiles::Percentiles;

/// Bytes from which the format is known.
const BEGINNING: u64 = 1 << 16;
/// Bytes of the longest line; one that is longer is no text. An event of blktrace is shorter, too, with its payload.
const LONGEST: usize = 1 << 16;
/// Bytes that are asked for at once: no fewer than a buffer of the input has, which is then passed over.
const READ_BYTES: usize = 1 << 18;
/// Characters of a line that a message shows.
const SHOWN: usize = 80;

/// A trace, as its requests in the order of their arrival. Memory does not grow with the trace.
#[derive(Debug)]
pub struct Trace<R> {
    input: R,
    requests: Requests,
}

/// What is known of a trace while it is read. It is of one type whatever the input is, so that it is compiled with this crate,
/// which is optimized for speed.
#[derive(Debug)]
pub(super) struct Requests {
    source: Source,
    arrival: Stage,
    device: Device,
    /// The one device whose requests were taken so far.
    taken: Vec<u8>,
    window: Window,
    unused: Counter,
    /// Whether the next event may be the first one of another recording.
    may_begin: bool,
    /// The first time of the recording, and what is added to its times, ns.
    begun: Option<u64>,
    shift: u64,
    counts: Counts,
    recorded: Percentiles,
    ended: bool,
    failed: bool,
    /// An error that is handed over after the batch before it.
    pub(super) failure: Option<TraceError>,
}

/// Where events come from, and how far it was read.
#[derive(Debug)]
struct Source {
    decoder: Decoder,
    buffer: Vec<u8>,
    /// The bytes of the buffer that are read from the input and not decoded yet.
    filled: Range<usize>,
    /// Whether the input has nothing more.
    exhausted: bool,
    /// Lines or events decoded.
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

/// What was decoded next.
enum Decoded<'a> {
    Row(Row<'a>),
    End,
}

impl Source {
    /// A source that begins with these bytes of its input.
    fn new(decoder: Decoder, beginning: Vec<u8>) -> Self {
        let filled = 0..beginning.len();
        Self { decoder, buffer: beginning, filled, exhausted: false, number: 0, bytes: 0 }
    }

    // Inlined, since an event that is handed from function to function is copied each time, at the cost of decoding it.
    #[inline(always)]
    fn next(&mut self, input: &mut dyn Read) -> Result<Decoded<'_>, TraceError> {
        let length = loop {
            let text = &self.buffer[self.filled.clone()];
            let whole = match &self.decoder {
                Decoder::Lines(_) => newline(&text[..text.len().min(LONGEST)]).map(|end| end + 1),
                Decoder::Events(events) => events.length(text),
            };
            // What is not whole at the end of the input, or is too long, is decoded as it is.
            if let Some(length) = whole {
                break length;
            }
            if self.exhausted || text.len() >= LONGEST + Events::HEAD {
                break text.len().min(LONGEST);
            }
            self.fill(input)?;
        };
        if length == 0 {
            return Ok(Decoded::End);
        }
        let (byte, number) = (self.bytes, self.number + 1);
        let read = &self.buffer[self.filled.start..self.filled.start + length];
        self.filled.start += length;
        let decoded = match &mut self.decoder {
            Decoder::Events(events) => {
                events.decode(read).map_err(|expected| TraceError::Event { number, byte, expected })?
            }
            Decoder::Lines(lines) => {
                let line = read.trim_ascii();
                let refused = |expected| TraceError::Line { number, byte, expected, found: shown(line) };
                if length == LONGEST && !read.ends_with(b"\n") {
                    return Err(refused("a line of less than 64 KiB"));
                }
                if line.is_empty() {
                    Row::Unused(Unused::Remark)
                } else {
                    // A recorder that is stopped leaves its last line as it is. Alone it is no trace.
                    let cut_off = number > 1 && !read.ends_with(b"\n");
                    match lines.parse(line) {
                        Ok(row) => row,
                        Err(expected) => {
                            Row::Unused(lines.otherwise(line, cut_off).ok_or_else(|| refused(expected))?)
                        }
                    }
                }
            }
        };
        (self.number, self.bytes) = (number, byte + length as u64);
        Ok(Decoded::Row(decoded))
    }

    /// Whether times count from the beginning of the trace, and not from its first request.
    fn counts_from_zero(&self) -> bool {
        matches!(&self.decoder, Decoder::Lines(lines) if lines.counts_from_zero())
    }

    /// Reads on, behind what is not decoded yet.
    fn fill(&mut self, input: &mut dyn Read) -> Result<(), TraceError> {
        let kept = self.filled.len();
        self.buffer.copy_within(self.filled.clone(), 0);
        self.buffer.resize(kept + READ_BYTES, 0);
        let read = loop {
            match input.read(&mut self.buffer[kept..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let read = read.map_err(|source| TraceError::Read { byte: self.bytes, source })?;
        self.exhausted = read == 0;
        self.filled = 0..kept + read;
        Ok(())
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

impl<R: Read> Trace<R> {
    /// Begins to read a trace.
    ///
    /// # Errors
    /// [`TraceError::Unknown`] where the text is of no known format and the options name none; [`TraceError::Read`].
    pub fn open(mut input: R, options: &Options) -> Result<Self, TraceError> {
        let mut beginning = Vec::new();
        let read = input.by_ref().take(BEGINNING).read_to_end(&mut beginning);
        read.map_err(|source| TraceError::Read { byte: 0, source })?;
        Ok(Self { input, requests: Requests::new(beginning, options)? })
    }
}

impl<R> Trace<R> {
    /// What was read so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Requests { window, source, counts, unused, .. } = &self.requests;
        let waits_of_source = matches!(&source.decoder, Decoder::Lines(lines) if lines.waits_of_source());
        let discarded = unused.total();
        Counts { discarded, late: window.late, bytes: source.bytes, waits_of_source, ..*counts }
    }

    /// The lines and events that were read so far and are not replayed, by kind: requests first, the most frequent kinds first.
    #[must_use]
    pub fn not_used(&self) -> Vec<NotUsed> {
        self.requests.unused.list()
    }

    /// Latencies of the reads and writes that were read so far, as far as the trace has them.
    #[must_use]
    pub fn recorded(&self) -> &Percentiles {
        &self.requests.recorded
    }

    /// The input, and what decodes it.
    pub(super) fn parts(&mut self) -> (&mut R, &mut Requests) {
        (&mut self.input, &mut self.requests)
    }
}

impl<R: Read> Iterator for Trace<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.requests.next(&mut self.input)
    }
}

impl Requests {
    fn new(beginning: Vec<u8>, options: &Options) -> Result<Self, TraceError> {
        let format = match options.format.or_else(|| Format::of(&beginning)) {
            Some(format) => format,
            None => return Err(foreign(&beginning).unwrap_or(TraceError::Unknown)),
        };
        let source = |beginning| Source::new(Decoder::new(format, options), beginning);
        let arrival = if issues(source(beginning.clone())) { Stage::Issued } else { Stage::Queued };
        Ok(Self {
            source: source(beginning),
            arrival,
            device: options.device.clone(),
            taken: Vec::new(),
            window: Window::default(),
            unused: Counter::default(),
            may_begin: false,
            begun: None,
            shift: 0,
            counts: Counts {
                format,
                requests: 0,
                discarded: 0,
                late: 0,
                bytes: 0,
                recordings: 1,
                waits_of_source: false,
            },
            recorded: Percentiles::default(),
            ended: false,
            failed: false,
            failure: None,
        })
    }

    /// The next request. After an error there is none.
    pub(super) fn next(&mut self, input: &mut dyn Read) -> Option<Result<Record, TraceError>> {
        if self.failed {
            return None;
        }
        let next = self.advance(input);
        self.failed = next.is_err();
        next.transpose()
    }

    /// Reads on until a request is known to be the next one.
    fn advance(&mut self, input: &mut dyn Read) -> Result<Option<Record>, TraceError> {
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
            let mut event = match self.source.next(input)? {
                Decoded::Row(Row::Event(event)) => event,
                Decoded::Row(Row::Unused(unused)) => {
                    self.may_begin |= unused == Unused::Heading && self.begun.is_some();
                    self.unused.add(unused, self.arrival);
                    if self.begun.is_none() && self.source.counts_from_zero() {
                        self.window.first = Some(0);
                    }
                    continue;
                }
                Decoded::End => {
                    self.ended = true;
                    continue;
                }
            };
            if self.may_begin || self.begun.is_none() {
                let recording =
                    Recording { begun: self.begun, shift: self.shift, newest: self.window.newest };
                let recording = recording.at(event.at);
                self.counts.recordings += u64::from(recording.shift != self.shift);
                (self.begun, self.shift, self.may_begin) = (recording.begun, recording.shift, false);
            }
            event.at = event.at.saturating_add(self.shift);
            if !is_taken(&self.device, &mut self.taken, event.device)? {
                self.unused.other_devices += 1;
                continue;
            }
            match event.stage {
                // Its request is not in the trace.
                Stage::Completed if !self.window.answered(&event) => {
                    self.unused.add(Unused::Stage, self.arrival);
                }
                Stage::Completed => {}
                Stage::Requeued => {
                    self.window.taken_back(&event);
                    self.unused.add(Unused::Stage, self.arrival);
                }
                stage if stage == self.arrival && event.len == 0 && event.op != Op::Flush => {
                    self.unused.add(Unused::Kind(stage, NO_DATA), self.arrival);
                }
                stage if stage == self.arrival => {
                    let io = io(&event).ok_or(TraceError::Length { bytes: event.len })?;
                    let answered_later = event.latency.is_none() && self.counts.format.has_answers();
                    self.window.arrived(&event, io, answered_later);
                }
                _ => {}
            }
        }
    }
}

/// The times of one of several recordings in a file.
struct Recording {
    /// Its first time as the file has it, ns; none before its first event.
    begun: Option<u64>,
    /// What is added to its times, ns.
    shift: u64,
    /// The latest time so far, with what was added, ns.
    newest: u64,
}

impl Recording {
    /// The recording of an event that stands behind a heading. Times that are nearer to the beginning than to the end have begun
    /// again; those that are less out of order may be a heading within a recording.
    fn at(self, at: u64) -> Self {
        let Some(begun) = self.begun else { return Self { begun: Some(at), ..self } };
        let newest = self.newest.saturating_sub(self.shift);
        if at.saturating_sub(begun) < newest.saturating_sub(at) {
            Self { begun: Some(at), shift: self.newest.saturating_sub(at), ..self }
        } else {
            self
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
fn issues(mut source: Source) -> bool {
    let mut queued = false;
    loop {
        match source.next(&mut io::empty()) {
            Ok(Decoded::Row(Row::Event(event))) if event.stage == Stage::Issued => return true,
            Ok(Decoded::Row(Row::Event(event))) => queued |= event.stage == Stage::Queued,
            Ok(Decoded::Row(Row::Unused(_))) => {}
            // The beginning may end within a line.
            Ok(Decoded::End) | Err(_) => return !queued,
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
