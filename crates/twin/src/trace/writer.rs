//! Writes requests as a trace, in the text of blkparse.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use ebbtide_volume::{Io, Nanos, Op};

const SECTOR: u64 = 512;

/// A line that is not written yet: its time, its place in the order, and what it says.
type Line = (Nanos, u64, Stage, LineIo);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Issued,
    Completed,
}

/// An I/O in an order of no meaning, which the heap asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LineIo {
    rwbs: &'static str,
    sector: u64,
    sectors: u64,
}

/// Writes requests and their answers, in the order of time.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    begun: Option<Nanos>,
    lines: BinaryHeap<Reverse<Line>>,
    requests: u64,
    written: u64,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// A trace without requests.
    pub const fn new(to: W) -> Self {
        Self { to, begun: None, lines: BinaryHeap::new(), requests: 0, written: 0, bytes: 0 }
    }

    /// Requests so far.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Bytes so far, before any packing.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a request: when it arrived, what it does, and when it was answered. Times count from the first one's arrival.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn add(&mut self, at: Nanos, io: Io, answered: Nanos) -> io::Result<()> {
        let begun = *self.begun.get_or_insert(at);
        let rwbs = match io.op {
            Op::Read => "R",
            Op::Write => "WS",
            Op::Flush => "FN",
            Op::Discard => "D",
        };
        let line = LineIo { rwbs, sector: io.offset / SECTOR, sectors: u64::from(io.len) / SECTOR };
        self.requests += 1;
        self.lines.push(Reverse((at.since(begun), self.requests, Stage::Issued, line)));
        self.lines.push(Reverse((answered.since(begun), self.requests, Stage::Completed, line)));
        self.write_until(at.since(begun))
    }

    /// Writes the answers that are left.
    ///
    /// # Errors
    /// Where the output cannot be written.
    pub fn finish(&mut self) -> io::Result<()> {
        self.write_until(Nanos(u64::MAX))?;
        self.to.flush()
    }

    fn write_until(&mut self, to: Nanos) -> io::Result<()> {
        while let Some(Reverse((at, _, stage, io))) =
            self.lines.peek().copied().filter(|Reverse(line)| line.0 <= to)
        {
            self.lines.pop();
            self.written += 1;
            let text = line(self.written, at, stage, io);
            self.bytes += text.len() as u64;
            self.to.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

fn line(number: u64, at: Nanos, stage: Stage, io: LineIo) -> String {
    let (seconds, nanos) = (at.0 / Nanos::SECOND.0, at.0 % Nanos::SECOND.0);
    let LineIo { rwbs, sector, sectors } = io;
    let (action, tail) = match stage {
        Stage::Issued => ("D", "[ebbtide]"),
        Stage::Completed => ("C", "[0]"),
    };
    let range = if rwbs == "FN" { String::new() } else { format!("{sector} + {sectors} ") };
    format!("259,0    0 {number:>8} {seconds:>5}.{nanos:09}     0 {action:>2} {rwbs:>3} {range}{tail}\n")
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Options, Record, Trace};
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let ios =
            [(Op::Write, 0, 16_384), (Op::Read, 1 << 30, 4_096), (Op::Flush, 0, 0), (Op::Read, 8_192, 512)];
        let begun = Nanos::from_secs(1_700_000_000);
        let mut writer = Writer::new(Vec::new());
        let mut expected = Vec::new();
        for (number, (op, offset, len)) in (0_u64..).zip(ios) {
            let (io, at) = (Io { op, offset, len }, Nanos(number * 700_000));
            // The first answer comes last.
            let latency = Nanos(5_000_001 - number * 1_000_000);
            writer.add(begun + at, io, begun + at + latency).unwrap();
            expected.push(Record { at, io, client: 0, latency: Some(latency) });
        }
        // A discard, which no replay takes.
        writer
            .add(
                begun + Nanos(9_000_000),
                Io { op: Op::Discard, offset: 0, len: 4_096 },
                begun + Nanos(9_000_000),
            )
            .unwrap();
        assert_eq!(writer.requests(), 5);
        writer.finish().unwrap();
        let text = writer.to;
        let mut trace = Trace::open(&text[..], &Options::default()).unwrap();
        let read: Vec<_> = trace.by_ref().map(Result::unwrap).collect();
        assert_eq!(read, expected, "{}", String::from_utf8_lossy(&text));
        assert_eq!(trace.counts().format, Format::Blkparse);
    }

    #[test]
    fn lines_are_in_the_order_of_time_and_few_wait() {
        let mut writer = Writer::new(Vec::new());
        for number in 0..10_000_u64 {
            let at = Nanos(number * 100_000);
            let io = Io { op: Op::Write, offset: number * 16_384, len: 16_384 };
            writer.add(at, io, at + Nanos(350_000)).unwrap();
            assert!(writer.lines.len() <= 5);
        }
        writer.finish().unwrap();
        let text = String::from_utf8(writer.to).unwrap();
        let times: Vec<f64> =
            text.lines().map(|line| line.split_whitespace().nth(3).unwrap().parse().unwrap()).collect();
        assert_eq!(times.len(), 20_000);
        assert!(times.is_sorted());
    }
}
