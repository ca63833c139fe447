//! The lines of each text format.

use ebbtide_volume::Op;

use super::fields::{commas, direction, first_words, time, whole, words};
use super::format::{Format, SYSTOR_HEADING};

const SECTOR: u64 = 512;
const NS: u64 = 1;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// Where a request is on its way through the block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// A client handed it in.
    Queued,
    /// It was given to the device.
    Issued,
    /// The device answered.
    Completed,
}

/// One event of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event<'a> {
    pub(super) stage: Stage,
    /// When, ns, on the trace's own clock.
    pub(super) at: u64,
    /// The device that it went to.
    pub(super) device: &'a [u8],
    /// Who sent it: a process, or 0.
    pub(super) client: u64,
    pub(super) op: Op,
    /// First byte.
    pub(super) offset: u64,
    /// Length, bytes; 0 for a flush.
    pub(super) len: u64,
    /// How long the answer took where the same line has it, ns.
    pub(super) latency: Option<u64>,
}

impl<'a> Event<'a> {
    fn issued(at: u64, device: &'a [u8], op: Op, offset: u64, len: u64) -> Self {
        Self { stage: Stage::Issued, at, device, client: 0, op, offset, len, latency: None }
    }
}

/// What a line is: a request, or nothing that a volume sees; an error is what was expected.
type Parsed<'a> = Result<Option<Event<'a>>, &'static str>;

/// Reads lines of one format, with what earlier ones set.
#[derive(Debug)]
pub(super) struct Lines {
    format: Format,
    /// Nanoseconds of a unit of time, in the formats that do not fix it.
    unit_ns: u64,
    /// fio: the version of the log.
    version: u64,
    /// fio, version 2: the waits so far, ns.
    waited: u64,
    /// biosnoop: columns behind the command.
    columns: usize,
    /// biosnoop: whether the time in the queue is a column.
    queued: bool,
    /// blkparse: the summary has begun.
    ended: bool,
}

impl Lines {
    pub(super) fn new(format: Format, unit_ns: Option<u64>) -> Self {
        let unit = if format == Format::DiskSim { MS } else { US };
        Self {
            format,
            unit_ns: unit_ns.unwrap_or(unit),
            version: 0,
            waited: 0,
            columns: 6,
            queued: false,
            ended: false,
        }
    }

    /// Reads a line that is not empty.
    pub(super) fn parse<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        match self.format {
            Format::Blkparse => self.blkparse(line),
            Format::Blktrace => Err("events of blktrace, which are no text"),
            Format::Biosnoop => self.biosnoop(line),
            Format::Msr => msr(line),
            Format::Alibaba => alibaba(line),
            Format::Tencent => tencent(line),
            Format::Systor => systor(line),
            Format::Fiu => fiu(line),
            Format::Spc => spc(line),
            Format::DiskSim => self.disksim(line),
            Format::Iolog => self.iolog(line),
        }
    }

    fn blkparse<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        const EXPECTED: &str = "MAJ,MIN CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + SECTORS";
        if self.ended || line.starts_with(b"CPU") || line.starts_with(b"Total") {
            self.ended = true;
            return Ok(None);
        }
        let [device, _, _, at, pid, action, rwbs, sector, _, sectors] = first_words(line);
        let stage = match action {
            b"Q" => Stage::Queued,
            b"D" => Stage::Issued,
            b"C" => Stage::Completed,
            b"" => return Err(EXPECTED),
            _ => return Ok(None),
        };
        let at = time(at, S).ok_or(EXPECTED)?;
        let client = whole(pid).ok_or(EXPECTED)?;
        if rwbs.is_empty() {
            return Err(EXPECTED);
        }
        let (sector, sectors) = (whole(sector), whole(sectors));
        let event =
            |op, offset, len| Ok(Some(Event { stage, client, ..Event::issued(at, device, op, offset, len) }));
        match (side(rwbs), sector, sectors) {
            (Some(op), Some(sector), Some(sectors)) if sectors > 0 => {
                let bytes = |count: u64| count.checked_mul(SECTOR).ok_or(EXPECTED);
                event(op, bytes(sector)?, bytes(sectors)?)
            }
            _ if rwbs.first() == Some(&b'F') => event(Op::Flush, 0, 0),
            (None, ..) | (_, _, Some(_)) => Ok(None),
            _ => Err(EXPECTED),
        }
    }

    fn biosnoop<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        const EXPECTED: &str = "TIME COMM PID DISK T SECTOR BYTES LAT";
        if line.starts_with(b"TIME(s)") {
            let known = words(line).skip_while(|word| *word != b"PID").count();
            if known < 6 {
                return Err(EXPECTED);
            }
            (self.columns, self.queued) = (known, words(line).any(|word| word == b"QUE(ms)"));
            return Ok(None);
        }
        // A command may have blanks: what is behind it is counted from the end.
        let all: Vec<&[u8]> = words(line).collect();
        let behind = all.len().checked_sub(self.columns).filter(|behind| *behind >= 2).ok_or(EXPECTED)?;
        let [pid, device, kind, sector, bytes, ref rest @ ..] = all[behind..] else { return Err(EXPECTED) };
        let end = time(all[0], S).ok_or(EXPECTED)?;
        let spans = rest.iter().take(if self.queued { 2 } else { 1 });
        let spans: Vec<u64> = spans.map(|span| time(span, MS)).collect::<Option<_>>().ok_or(EXPECTED)?;
        let latency: u64 = *spans.last().ok_or(EXPECTED)?;
        let op = match kind {
            b"R" => Op::Read,
            b"W" => Op::Write,
            _ => return Ok(None),
        };
        let (sector, len) = whole(sector).zip(whole(bytes)).ok_or(EXPECTED)?;
        if len == 0 {
            return Ok(None);
        }
        let offset = sector.checked_mul(SECTOR).ok_or(EXPECTED)?;
        Ok(Some(Event {
            client: whole(pid).ok_or(EXPECTED)?,
            latency: Some(latency),
            ..Event::issued(end.saturating_sub(latency), device, op, offset, len)
        }))
    }

    fn disksim<'a>(&self, line: &'a [u8]) -> Parsed<'a> {
        const EXPECTED: &str = "ARRIVAL DEVICE SECTOR SECTORS TYPE";
        let all: Vec<&[u8]> = words(line).collect();
        let [at, device, sector, sectors, kind] = all[..] else { return Err(EXPECTED) };
        let op = if whole(kind).ok_or(EXPECTED)? & 1 == 1 { Op::Read } else { Op::Write };
        let bytes = |field| whole(field)?.checked_mul(SECTOR);
        let (offset, len) = bytes(sector).zip(bytes(sectors)).ok_or(EXPECTED)?;
        let at = time(at, self.unit_ns).ok_or(EXPECTED)?;
        Ok(Some(Event::issued(at, device, op, offset, len)))
    }

    fn iolog<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        const EXPECTED: &str = "a line of fio's log, version 2 or 3";
        if let Some(rest) = line.strip_prefix(b"fio version ") {
            self.version = words(rest)
                .next()
                .and_then(whole)
                .filter(|version| [2, 3].contains(version))
                .ok_or(EXPECTED)?;
            return Ok(None);
        }
        let (at, [file, action, first, second]) = match (self.version, first_words::<5>(line)) {
            (3, [at, rest @ ..]) => (time(at, self.unit_ns).ok_or(EXPECTED)?, rest),
            (2, [rest @ .., _]) => (self.waited, rest),
            _ => return Err("`fio version 2 iolog` or `fio version 3 iolog` as the first line"),
        };
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"sync" | b"datasync" => return Ok(Some(Event::issued(at, file, Op::Flush, 0, 0))),
            b"add" | b"open" | b"close" | b"trim" => return Ok(None),
            b"wait" if self.version == 2 => {
                let us = whole(first).ok_or(EXPECTED)?;
                self.waited =
                    us.checked_mul(US).and_then(|ns| self.waited.checked_add(ns)).ok_or(EXPECTED)?;
                return Ok(None);
            }
            _ => return Err(EXPECTED),
        };
        let (offset, len) = whole(first).zip(whole(second)).ok_or(EXPECTED)?;
        Ok(Some(Event::issued(at, file, op, offset, len)))
    }
}

/// Read or write by the letters of blktrace; None for a discard and what carries no data.
fn side(rwbs: &[u8]) -> Option<Op> {
    let kind = rwbs.iter().find(|letter| **letter != b'F')?;
    match kind {
        b'R' => Some(Op::Read),
        b'W' => Some(Op::Write),
        _ => None,
    }
}

/// The part of a line from one of its fields to the end of a later one: two fields that name a device together.
fn between<'a>(line: &'a [u8], first: &[u8], last: &[u8]) -> &'a [u8] {
    let start = first.as_ptr().addr() - line.as_ptr().addr();
    &line[start..last.as_ptr().addr() - line.as_ptr().addr() + last.len()]
}

fn msr(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "TIMESTAMP,HOST,DISK,Read|Write,OFFSET,SIZE,RESPONSE";
    const TICK: u64 = 100 * NS;
    let [at, host, disk, kind, offset, size, response] = commas(line).ok_or(EXPECTED)?;
    let ticks = |field| whole(field)?.checked_mul(TICK);
    let (at, latency) = ticks(at).zip(ticks(response)).ok_or(EXPECTED)?;
    let (offset, len) = whole(offset).zip(whole(size)).ok_or(EXPECTED)?;
    let (device, op) = (between(line, host, disk), direction(kind).ok_or(EXPECTED)?);
    Ok(Some(Event { latency: Some(latency), ..Event::issued(at, device, op, offset, len) }))
}

fn alibaba(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "DEVICE,R|W,OFFSET,LENGTH,MICROSECONDS";
    let [device, kind, offset, len, at] = commas(line).ok_or(EXPECTED)?;
    let (offset, len) = whole(offset).zip(whole(len)).ok_or(EXPECTED)?;
    let at = time(at, US).ok_or(EXPECTED)?;
    Ok(Some(Event::issued(at, device, direction(kind).ok_or(EXPECTED)?, offset, len)))
}

fn tencent(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "SECONDS,SECTOR,SECTORS,0|1,VOLUME";
    let [at, sector, sectors, kind, device] = commas(line).ok_or(EXPECTED)?;
    let op = match kind {
        b"0" => Op::Read,
        b"1" => Op::Write,
        _ => return Err(EXPECTED),
    };
    let bytes = |field| whole(field)?.checked_mul(SECTOR);
    let (offset, len) = bytes(sector).zip(bytes(sectors)).ok_or(EXPECTED)?;
    Ok(Some(Event::issued(time(at, S).ok_or(EXPECTED)?, device, op, offset, len)))
}

fn systor(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "SECONDS,RESPONSE,R|W,LUN,OFFSET,SIZE";
    if line.eq_ignore_ascii_case(SYSTOR_HEADING) {
        return Ok(None);
    }
    let [at, response, kind, device, offset, size] = commas(line).ok_or(EXPECTED)?;
    if kind.is_empty() {
        return Ok(None);
    }
    let (offset, len) = whole(offset).zip(whole(size)).ok_or(EXPECTED)?;
    let latency = if response.is_empty() { None } else { Some(time(response, S).ok_or(EXPECTED)?) };
    let (at, op) = time(at, S).zip(direction(kind)).ok_or(EXPECTED)?;
    Ok(Some(Event { latency, ..Event::issued(at, device, op, offset, len) }))
}

fn fiu(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "NANOSECONDS PID PROCESS SECTOR SECTORS R|W MAJOR MINOR HASH";
    let all: Vec<&[u8]> = words(line).collect();
    // The name of a process may have blanks.
    let behind = all.len().checked_sub(6).filter(|behind| *behind >= 3).ok_or(EXPECTED)?;
    let [sector, sectors, kind, major, minor, _] = all[behind..] else { return Err(EXPECTED) };
    let bytes = |field| whole(field)?.checked_mul(SECTOR);
    let (offset, len) = bytes(sector).zip(bytes(sectors)).ok_or(EXPECTED)?;
    let (at, client) = whole(all[0]).zip(whole(all[1])).ok_or(EXPECTED)?;
    let op = direction(kind).ok_or(EXPECTED)?;
    Ok(Some(Event { client, ..Event::issued(at, between(line, major, minor), op, offset, len) }))
}

fn spc(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "ASU,SECTOR,BYTES,r|w,SECONDS";
    let mut fields = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut next = || fields.next().ok_or(EXPECTED);
    let (device, sector, len, kind, at) = (next()?, next()?, next()?, next()?, next()?);
    let offset = whole(sector).and_then(|sector| sector.checked_mul(SECTOR)).ok_or(EXPECTED)?;
    let (len, op) = whole(len).zip(direction(kind)).ok_or(EXPECTED)?;
    Ok(Some(Event::issued(time(at, S).ok_or(EXPECTED)?, device, op, offset, len)))
}
