//! Traces of block I/O, of whatever tool: their requests in the order of their arrival.
//!
//! A trace is read as a stream; a caller unpacks it. [`Format::of`] knows the format by the first lines.

mod batches;
mod events;
mod fields;
mod format;
mod lines;
mod reader;
mod stage;
mod unused;
mod window;
mod writer;

#[cfg(test)]
mod tests;

use std::io;

use ebbtide_volume::{Io, Nanos};

pub use batches::{Batch, Unbatched};
pub use format::Format;
pub use reader::Trace;
pub use unused::NotUsed;
pub use writer::Writer;

/// A request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it arrived, since the first one; never before the one before it.
    pub at: Nanos,
    /// What it does.
    pub io: Io,
    /// Who sent it: a process, or 0 where the trace names none.
    pub client: u64,
    /// How long its answer took; none where the trace does not have it.
    pub latency: Option<Nanos>,
}

/// Whose requests of a trace are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Device {
    /// Those of the only device; a second one is an error.
    #[default]
    Only,
    /// Those of the device of this name.
    Named(String),
    /// Those of all, as if they were one.
    All,
}

impl Device {
    /// The device that a name stands for: `all` for those of every device, and none for the only one.
    #[must_use]
    pub fn named(name: Option<&str>) -> Self {
        match name {
            None => Self::Only,
            Some("all") => Self::All,
            Some(name) => Self::Named(name.to_owned()),
        }
    }
}

/// How a trace is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Its format; none: known by its beginning.
    pub format: Option<Format>,
    /// Whose requests are taken.
    pub device: Device,
    /// Nanoseconds of a unit of time, 1 to 10^9, in the formats that do not fix it: DiskSim (none: ms), fio's version 3
    /// (none: us), and the waits of fio's version 2 (none: ms since the beginning, as fio's source has it; 1,000: us after the
    /// wait before, as fio's documentation has it).
    pub unit_ns: Option<u64>,
}

/// What was read of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// The format.
    pub format: Format,
    /// Requests.
    pub requests: u64,
    /// Lines or events that are no request to the volume: other devices, discards, merges, headings. [`Trace::not_used`] has
    /// them by kind.
    pub discarded: u64,
    /// Requests out of order by more than 10 s, or by more than 65,536 requests: they arrive as soon as they are read.
    pub late: u64,
    /// Bytes of the trace, unpacked.
    pub bytes: u64,
    /// Recordings that stand one behind another in the file: behind a heading, times began again. Each is replayed behind the
    /// one before it.
    pub recordings: u64,
    /// Whether waits of fio's version 2 were taken as fio's source has them, which its documentation contradicts.
    pub waits_of_source: bool,
}

/// A trace that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The beginning is of no known format.
    #[error("the trace is of no known format; known are {}", Format::names())]
    Unknown,
    /// There is nothing to read.
    #[error("the trace is empty")]
    Empty,
    /// The beginning is of a tool whose output cannot be replayed.
    #[error("the trace is the output of {tool}: {lacks}")]
    Foreign {
        /// The tool.
        tool: &'static str,
        /// Why it cannot be replayed.
        lacks: &'static str,
    },
    /// The file cannot be read, or cannot be unpacked.
    #[error("the trace cannot be read on at byte {byte}")]
    Read {
        /// Bytes before it, unpacked.
        byte: u64,
        /// Why.
        source: io::Error,
    },
    /// A line is not what its format has.
    #[error("line {number} of the trace, at byte {byte}: expected {expected}, found '{found}'")]
    Line {
        /// The line's number, from 1 on.
        number: u64,
        /// Bytes before it, unpacked.
        byte: u64,
        /// What the format has.
        expected: &'static str,
        /// The line, or its beginning.
        found: String,
    },
    /// An event of blktrace is damaged.
    #[error("event {number} of the trace, at byte {byte}: expected {expected}")]
    Event {
        /// The event's number, from 1 on.
        number: u64,
        /// Bytes before it, unpacked.
        byte: u64,
        /// What the format has.
        expected: &'static str,
    },
    /// A request is longer than any device takes.
    #[error(
        "a request of the trace has {bytes} bytes or ends beyond 2^64; expected at most 4294967295 bytes"
    )]
    Length {
        /// Its length.
        bytes: u64,
    },
    /// The requests are of more than one device.
    #[error("the trace has requests of several devices, among them {one} and {other}")]
    Devices {
        /// The first one.
        one: String,
        /// Another one.
        other: String,
    },
}
