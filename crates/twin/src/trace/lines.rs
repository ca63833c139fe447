//! The lines of each text format.

use ebbtide_volume::Op;

use super::fields::{commas, direction, first_words, time, whole, words};
use super::format::{Format, SYSTOR_HEADING, is_device};
use super::stage::Stage;
use super::unused::{NO_DATA, PASSTHROUGH, Unused};

const SECTOR: u64 = 512;
const NS: u64 = 1;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

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

/// What a line or an event of a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row<'a> {
    /// An event of a read, a write or a flush.
    Event(Event<'a>),
    /// What is not replayed, and why.
    Unused(Unused<'a>),
}

/// What a line is; an error is what was expected.
type Parsed<'a> = Result<Row<'a>, &'static str>;

/// Reads lines of one format, with what earlier ones set.
#[derive(Debug)]
pub(super) struct Lines {
    format: Format,
    /// Nanoseconds of a unit of time, in the formats that do not fix it.
    unit_ns: u64,
    /// fio: the version of the log.
    version: u64,
    /// fio, version 2: the time of the next request by the waits so far, ns.
    waited: u64,
    /// fio, version 2: whether there were waits, and whether each counts from the one before it.
    has_waits: bool,
    waits_are_relative: bool,
    /// biosnoop: columns behind the command, and which of them has the latency.
    columns: usize,
    latency_column: usize,
    /// biosnoop: whether times are of the day, and what is added to them for the days before, ns.
    of_day: bool,
    days: u64,
    last_of_day: u64,
    /// blkparse: within a summary.
    summary: bool,
}

impl Lines {
    pub(super) fn new(format: Format, unit_ns: Option<u64>) -> Self {
        let unit = if format == Format::DiskSim { MS } else { US };
        Self {
            format,
            unit_ns: unit_ns.unwrap_or(unit),
            version: 0,
            waited: 0,
            has_waits: false,
            waits_are_relative: unit_ns == Some(US),
            columns: 6,
            latency_column: 5,
            of_day: false,
            days: 0,
            last_of_day: 0,
            summary: false,
        }
    }

    /// Whether waits of fio's version 2 were taken as its source has them.
    pub(super) const fn waits_of_source(&self) -> bool {
        self.has_waits && !self.waits_are_relative
    }

    /// Whether times count from the beginning: fio waits before the first request, too, where version 2 says so.
    pub(super) const fn counts_from_zero(&self) -> bool {
        self.has_waits
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

    /// What a line is that [`parse`](Self::parse) refused; None where it is damage. `cut_off` where the file ends within it.
    #[cold]
    pub(super) fn otherwise(&self, line: &[u8], cut_off: bool) -> Option<Unused<'static>> {
        if let Some(events) = lost(line) {
            return Some(Unused::Lost(events));
        }
        if line.starts_with(b"#") {
            return Some(Unused::Remark);
        }
        let separated = matches!(
            self.format,
            Format::Msr | Format::Alibaba | Format::Tencent | Format::Systor | Format::Spc
        );
        if separated && is_heading(line) {
            return Some(Unused::Heading);
        }
        if line.starts_with(b"Tracing ") || line.starts_with(b"Attaching ") {
            return Some(Unused::Remark);
        }
        cut_off.then_some(Unused::CutOff)
    }

    fn blkparse<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        const EXPECTED: &str = "MAJ,MIN CPU SEQUENCE SECONDS PID ACTION RWBS SECTOR + SECTORS";
        if self.summary || !line[0].is_ascii_digit() {
            if self.is_beside(line) {
                return Ok(Row::Unused(Unused::Heading));
            } else if !line[0].is_ascii_digit() {
                return Err(EXPECTED);
            }
        }
        let [device, _, _, at, pid, action, rwbs, sector, plus, sectors] = first_words(line);
        let stage = match action {
            b"Q" => Stage::Queued,
            b"D" => Stage::Issued,
            b"C" => Stage::Completed,
            b"R" => Stage::Requeued,
            [] | [_, _, _, ..] => return Err(EXPECTED),
            _ => return Ok(Row::Unused(Unused::Stage)),
        };
        let at = time(at, S).ok_or(EXPECTED)?;
        let client = whole(pid).ok_or(EXPECTED)?;
        if rwbs.is_empty() {
            return Err(EXPECTED);
        }
        let event = |op, offset, len| {
            Ok(Row::Event(Event { stage, client, ..Event::issued(at, device, op, offset, len) }))
        };
        let unused = |name| Ok(Row::Unused(Unused::Kind(stage, name)));
        let bytes = |count: u64| count.checked_mul(SECTOR).ok_or(EXPECTED);
        match (side(rwbs), whole(sector), plus, whole(sectors)) {
            (Some(op), Some(sector), b"+", Some(sectors)) if sectors > 0 => {
                event(op, bytes(sector)?, bytes(sectors)?)
            }
            _ if rwbs[0] == b'F' => event(Op::Flush, 0, 0),
            (None, ..) => unused(rwbs),
            // A command to the device: its length, and its bytes in brackets.
            (_, _, passed, _) if passed.starts_with(b"(") => unused(PASSTHROUGH),
            (Some(_), Some(_), b"+", Some(_)) if stage != Stage::Completed => unused(NO_DATA),
            // The name of the process, or the error of an answer, comes next where there is no length.
            (Some(op), Some(sector), next, _) if next.starts_with(b"[") || next == b"+" => {
                if stage == Stage::Completed { event(op, bytes(sector)?, 0) } else { unused(NO_DATA) }
            }
            (_, None, ..) if sector.starts_with(b"[") => unused(NO_DATA),
            _ => Err(EXPECTED),
        }
    }

    /// Whether a line of blkparse stands beside the events: a file that it opened, or its summary.
    #[cold]
    fn is_beside(&mut self, line: &[u8]) -> bool {
        if line.starts_with(b"Input file ") {
            self.summary = false;
            return true;
        }
        if lost(line).is_some() {
            return false;
        }
        // blkparse -s has the processes before the totals: `mysqld (4021)`.
        let begins = |prefix: &[u8]| line.starts_with(prefix);
        let process = line.ends_with(b")") && line.contains(&b'(') && !begins(b"(");
        if begins(b"CPU") || begins(b"Total") || begins(b"Skips:") || begins(b"Reads Queued:") || process {
            self.summary = true;
            return true;
        }
        if !self.summary {
            return false;
        }
        let [device, cpu, sequence, at] = first_words(line);
        let is_event = is_device(device) && whole(cpu).is_some() && whole(sequence).is_some();
        self.summary = !(is_event && time(at, S).is_some());
        self.summary
    }

    fn biosnoop<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        const EXPECTED: &str = "TIME COMM PID DISK T SECTOR BYTES LAT";
        if line.starts_with(b"TIME(s)") || line.starts_with(b"TIMESTAMP ") {
            let behind = || words(line).skip_while(|word| *word != b"PID");
            self.columns = behind().count();
            self.latency_column = behind().position(|word| word == b"LAT(ms)").ok_or(EXPECTED)?;
            self.of_day = line.starts_with(b"TIMESTAMP");
            if self.latency_column < 5 {
                return Err(EXPECTED);
            }
            return Ok(Row::Unused(Unused::Heading));
        }
        // A command may have blanks: what is behind it is counted from the end.
        let fields: Vec<&[u8]> = words(line).collect();
        let behind = fields.len().checked_sub(self.columns).filter(|behind| *behind >= 2).ok_or(EXPECTED)?;
        let [pid, device, kind, sector, bytes, ..] = fields[behind..] else { return Err(EXPECTED) };
        let end = if self.of_day { self.day_time(fields[0]) } else { time(fields[0], S) };
        let latency = time(fields[behind + self.latency_column], MS);
        let (end, latency) = end.zip(latency).ok_or(EXPECTED)?;
        let (client, len) = whole(pid).zip(whole(bytes)).ok_or(EXPECTED)?;
        let (op, len) = match side(kind) {
            Some(op) if len > 0 => (op, len),
            _ if kind.first() == Some(&b'F') => (Op::Flush, 0),
            Some(_) => return Ok(Row::Unused(Unused::Kind(Stage::Issued, NO_DATA))),
            None if kind.first().is_some_and(u8::is_ascii_alphabetic) => {
                return Ok(Row::Unused(Unused::Kind(Stage::Issued, kind)));
            }
            None => return Err(EXPECTED),
        };
        // The sector of a flush means nothing.
        let sector = if op == Op::Flush { 0 } else { whole(sector).ok_or(EXPECTED)? };
        let offset = sector.checked_mul(SECTOR).ok_or(EXPECTED)?;
        let at = end.saturating_sub(latency);
        Ok(Row::Event(Event { client, latency: Some(latency), ..Event::issued(at, device, op, offset, len) }))
    }

    /// A time of the day, `HH:MM:SS.mmm`, in ns since the first day began. Half a day back is the next day.
    fn day_time(&mut self, text: &[u8]) -> Option<u64> {
        const DAY: u64 = 86_400 * S;
        let mut parts = text.splitn(3, |byte| *byte == b':');
        let mut next = || parts.next();
        let (hours, minutes, seconds) = (whole(next()?)?, whole(next()?)?, time(next()?, S)?);
        // A leap second at most.
        let is_time = hours < 24 && minutes < 60 && seconds < 61 * S;
        let at = is_time.then(|| (hours * 60 + minutes) * 60 * S + seconds)?;
        if at + DAY / 2 < self.last_of_day {
            self.days += DAY;
        }
        self.last_of_day = at;
        Some(at + self.days)
    }

    fn disksim<'a>(&self, line: &'a [u8]) -> Parsed<'a> {
        const EXPECTED: &str = "ARRIVAL DEVICE SECTOR SECTORS TYPE";
        let all: Vec<&[u8]> = words(line).collect();
        let [at, device, sector, sectors, kind] = all[..] else { return Err(EXPECTED) };
        let op = if whole(kind).ok_or(EXPECTED)? & 1 == 1 { Op::Read } else { Op::Write };
        let bytes = |field| whole(field)?.checked_mul(SECTOR);
        let (offset, len) = bytes(sector).zip(bytes(sectors)).ok_or(EXPECTED)?;
        let at = time(at, self.unit_ns).ok_or(EXPECTED)?;
        Ok(Row::Event(Event::issued(at, device, op, offset, len)))
    }

    fn iolog<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        const EXPECTED: &str = "a line of fio's log, version 2 or 3";
        if let Some(rest) = line.strip_prefix(b"fio version ") {
            self.version = words(rest)
                .next()
                .and_then(whole)
                .filter(|version| [2, 3].contains(version))
                .ok_or(EXPECTED)?;
            self.waited = 0;
            return Ok(Row::Unused(Unused::Heading));
        }
        let (at, [file, action, first, second]) = match (self.version, first_words::<5>(line)) {
            (3, [at, rest @ ..]) => (time(at, self.unit_ns).ok_or(EXPECTED)?, rest),
            (2, [rest @ .., _]) => (self.waited, rest),
            _ => return Err("`fio version 2 iolog` or `fio version 3 iolog` as the first line"),
        };
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"sync" | b"datasync" => return Ok(Row::Event(Event::issued(at, file, Op::Flush, 0, 0))),
            b"add" | b"open" | b"close" => return Ok(Row::Unused(Unused::Remark)),
            b"wait" if self.version == 2 => {
                self.wait(whole(first).ok_or(EXPECTED)?).ok_or(EXPECTED)?;
                return Ok(Row::Unused(Unused::Remark));
            }
            // fio leaves actions out that it does not know.
            other if other.iter().all(u8::is_ascii_lowercase) && !other.is_empty() && !first.is_empty() => {
                return Ok(Row::Unused(Unused::Kind(Stage::Issued, other)));
            }
            _ => return Err(EXPECTED),
        };
        let (offset, len) = whole(first).zip(whole(second)).ok_or(EXPECTED)?;
        Ok(Row::Event(Event::issued(at, file, op, offset, len)))
    }

    /// A `wait` of fio's version 2. fio's source (`read_iolog_get` in `iolog.c`, 3.33 and 3.41) sleeps until so many milliseconds
    /// since it began. Its documentation has microseconds after the wait before; `--trace-unit us` takes them so.
    fn wait(&mut self, units: u64) -> Option<()> {
        self.has_waits = true;
        self.waited = if self.waits_are_relative {
            units.checked_mul(US).and_then(|ns| self.waited.checked_add(ns))?
        } else {
            // Without a unit, `unit_ns` is that of the times of version 3.
            let unit = if self.unit_ns == US { MS } else { self.unit_ns };
            units.checked_mul(unit)?.max(self.waited)
        };
        Some(())
    }
}

/// Events that a recorder says that it lost: bcc's and bpftrace's tools, blkparse, perf and ftrace each have a sentence with
/// `lost` or `dropped` and a number before it or behind it.
fn lost(line: &[u8]) -> Option<u64> {
    let lower = line.to_ascii_lowercase();
    let names = |word: &[u8]| lower.windows(word.len()).any(|part| part == word);
    if !(names(b"lost ") || names(b"dropped event")) {
        return None;
    }
    let number = |word: &[u8]| whole(word.trim_ascii_end());
    words(&lower)
        .find_map(|word| number(word.strip_suffix(b"]").unwrap_or(word)))
        .filter(|events| *events > 0)
}

/// Whether a line is the names of columns: each field has a letter, and none is a number.
fn is_heading(line: &[u8]) -> bool {
    let is_name = |field: &[u8]| {
        field.iter().any(u8::is_ascii_alphabetic) && !field.first().is_some_and(u8::is_ascii_digit)
    };
    let mut fields = line.split(|byte| *byte == b',');
    fields.clone().count() >= 5 && fields.all(is_name)
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

/// What published traces call requests that are neither reads nor writes.
const OTHER_KINDS: [&str; 12] =
    ["D", "DS", "DISCARD", "T", "TRIM", "UNMAP", "F", "FLUSH", "SYNC", "N", "OTHER", "VERIFY"];

/// A row whose kind is neither a read nor a write; damage where no trace has such a kind.
fn other_kind<'a>(kind: &'a [u8], expected: &'static str) -> Parsed<'a> {
    if !OTHER_KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known.as_bytes())) {
        return Err(expected);
    }
    Ok(Row::Unused(Unused::Kind(Stage::Issued, kind)))
}

fn msr(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "TIMESTAMP,HOST,DISK,Read|Write,OFFSET,SIZE,RESPONSE";
    const TICK: u64 = 100 * NS;
    let [at, host, disk, kind, offset, size, response] = commas(line).ok_or(EXPECTED)?;
    let ticks = |field| whole(field)?.checked_mul(TICK);
    let (at, latency) = ticks(at).zip(ticks(response)).ok_or(EXPECTED)?;
    let (offset, len) = whole(offset).zip(whole(size)).ok_or(EXPECTED)?;
    let Some(op) = direction(kind) else { return other_kind(kind, EXPECTED) };
    let device = between(line, host, disk);
    Ok(Row::Event(Event { latency: Some(latency), ..Event::issued(at, device, op, offset, len) }))
}

fn alibaba(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "DEVICE,R|W,OFFSET,LENGTH,MICROSECONDS";
    let [device, kind, offset, len, at] = commas(line).ok_or(EXPECTED)?;
    let (offset, len) = whole(offset).zip(whole(len)).ok_or(EXPECTED)?;
    let at = time(at, US).ok_or(EXPECTED)?;
    let Some(op) = direction(kind) else { return other_kind(kind, EXPECTED) };
    Ok(Row::Event(Event::issued(at, device, op, offset, len)))
}

fn tencent(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "SECONDS,SECTOR,SECTORS,0|1,VOLUME";
    let [at, sector, sectors, kind, device] = commas(line).ok_or(EXPECTED)?;
    let op = match kind {
        b"0" => Op::Read,
        b"1" => Op::Write,
        _ if whole(kind).is_some() => return Ok(Row::Unused(Unused::Kind(Stage::Issued, kind))),
        _ => return Err(EXPECTED),
    };
    let bytes = |field| whole(field)?.checked_mul(SECTOR);
    let (offset, len) = bytes(sector).zip(bytes(sectors)).ok_or(EXPECTED)?;
    Ok(Row::Event(Event::issued(time(at, S).ok_or(EXPECTED)?, device, op, offset, len)))
}

fn systor(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "SECONDS,RESPONSE,R|W,LUN,OFFSET,SIZE";
    if line.eq_ignore_ascii_case(SYSTOR_HEADING) {
        return Ok(Row::Unused(Unused::Heading));
    }
    let [at, response, kind, device, offset, size] = commas(line).ok_or(EXPECTED)?;
    if kind.is_empty() {
        return Ok(Row::Unused(Unused::Kind(Stage::Issued, NO_DATA)));
    }
    let (offset, len) = whole(offset).zip(whole(size)).ok_or(EXPECTED)?;
    let latency = if response.is_empty() { None } else { Some(time(response, S).ok_or(EXPECTED)?) };
    let at = time(at, S).ok_or(EXPECTED)?;
    let Some(op) = direction(kind) else { return other_kind(kind, EXPECTED) };
    Ok(Row::Event(Event { latency, ..Event::issued(at, device, op, offset, len) }))
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
    let Some(op) = direction(kind) else { return other_kind(kind, EXPECTED) };
    Ok(Row::Event(Event { client, ..Event::issued(at, between(line, major, minor), op, offset, len) }))
}

fn spc(line: &[u8]) -> Parsed<'_> {
    const EXPECTED: &str = "ASU,SECTOR,BYTES,r|w,SECONDS";
    let mut fields = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut next = || fields.next().ok_or(EXPECTED);
    let (device, sector, len, kind, at) = (next()?, next()?, next()?, next()?, next()?);
    let offset = whole(sector).and_then(|sector| sector.checked_mul(SECTOR)).ok_or(EXPECTED)?;
    let (len, at) = whole(len).zip(time(at, S)).ok_or(EXPECTED)?;
    let Some(op) = direction(kind) else { return other_kind(kind, EXPECTED) };
    Ok(Row::Event(Event::issued(at, device, op, offset, len)))
}
