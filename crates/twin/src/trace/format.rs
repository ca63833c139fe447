//! The formats of traces, and which one a text is of.

use std::fmt;
use std::str::FromStr;

use super::TraceError;
use super::fields::{commas, direction, time, whole, words};

/// A format of a trace of block I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The text that blkparse prints without options.
    Blkparse,
    /// The events that blktrace writes.
    Blktrace,
    /// The lines of bcc's biosnoop.
    Biosnoop,
    /// MSR Cambridge: `timestamp,host,disk,type,offset,size,response`, times in 100 ns.
    Msr,
    /// Alibaba 2020: `device,opcode,offset,length,timestamp`, times in us.
    Alibaba,
    /// Tencent CBS 2018: `timestamp,offset,size,type,volume`, times in whole seconds.
    Tencent,
    /// SYSTOR '17: `timestamp,response,type,lun,offset,size`, times in seconds.
    Systor,
    /// FIU: `ns pid process lba blocks R|W major minor hash`.
    Fiu,
    /// SPC (UMass): `asu,lba,size,opcode,timestamp`, times in seconds.
    Spc,
    /// DiskSim and MQSim: `arrival device sector sectors type`, type 1 a read.
    DiskSim,
    /// fio's log of a job (`write_iolog`), versions 2 and 3.
    Iolog,
}

/// All formats with their names.
const NAMES: [(Format, &str); 11] = [
    (Format::Blkparse, "blkparse"),
    (Format::Blktrace, "blktrace"),
    (Format::Biosnoop, "biosnoop"),
    (Format::Msr, "msr"),
    (Format::Alibaba, "alibaba"),
    (Format::Tencent, "tencent"),
    (Format::Systor, "systor"),
    (Format::Fiu, "fiu"),
    (Format::Spc, "spc"),
    (Format::DiskSim, "disksim"),
    (Format::Iolog, "iolog"),
];

/// The magic number of blktrace's events, without their version.
pub(super) const MAGIC: u32 = 0x6561_7400;

impl Format {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(format, _)| *format == self).map_or("", |(_, name)| name)
    }

    /// Whether answers are events of their own.
    pub(super) const fn has_answers(self) -> bool {
        matches!(self, Self::Blkparse | Self::Blktrace)
    }

    /// All names, for messages.
    #[must_use]
    pub fn names() -> String {
        NAMES.map(|(_, name)| name).join(", ")
    }

    /// The format of a file by its beginning; None where it is of none.
    #[must_use]
    pub fn of(beginning: &[u8]) -> Option<Self> {
        if let Some(magic) = beginning.first_chunk::<4>() {
            let known = |magic: u32| magic & 0xFFFF_FF00 == MAGIC;
            if known(u32::from_le_bytes(*magic)) || known(u32::from_be_bytes(*magic)) {
                return Some(Self::Blktrace);
            }
        }
        first_lines(beginning).find_map(Self::of_line)
    }

    fn of_line(line: &[u8]) -> Option<Self> {
        if line.starts_with(b"fio version ") {
            return Some(Self::Iolog);
        }
        if line.starts_with(b"TIME(s)") || line.starts_with(b"TIMESTAMP ") && line.ends_with(b"LAT(ms)") {
            return Some(Self::Biosnoop);
        }
        if line.eq_ignore_ascii_case(SYSTOR_HEADING) {
            return Some(Self::Systor);
        }
        if let Some(fields) = commas::<7>(line) {
            return (whole(fields[0]).is_some() && is_word_of_side(fields[3])).then_some(Self::Msr);
        }
        if let Some(fields) = commas::<6>(line)
            && time(fields[0], 1_000_000_000).is_some()
            && time(fields[1], 1_000_000_000).is_some()
        {
            return whole(fields[4]).map(|_| Self::Systor);
        }
        if let Some([a, b, c, d, e]) = five(line) {
            let numbers = |fields: &[&[u8]]| fields.iter().all(|field| whole(field).is_some());
            if is_side(b) && numbers(&[a, c, d, e]) {
                return Some(Self::Alibaba);
            }
            if is_side(d) && numbers(&[a, b, c]) && time(e, 1_000_000_000).is_some() {
                return Some(Self::Spc);
            }
            return numbers(&[a, b, c, d, e]).then_some(Self::Tencent);
        }
        let words: Vec<&[u8]> = words(line).collect();
        match &words[..] {
            [device, _, _, at, ..] if is_device(device) => time(at, 1_000_000_000).map(|_| Self::Blkparse),
            [at, device, sector, sectors, kind] => {
                let rest = [device, sector, sectors, kind].iter().all(|word| whole(word).is_some());
                (time(at, 1_000_000).is_some() && rest).then_some(Self::DiskSim)
            }
            [at, pid, .., side, _, _, _] if words.len() >= 9 => {
                (whole(at).is_some() && whole(pid).is_some() && is_side(side)).then_some(Self::Fiu)
            }
            _ => None,
        }
    }
}

/// The lines by which a format is known. blkparse names each file that it opens: one for each processor.
fn first_lines(beginning: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = beginning.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"Input file ")).take(20)
}

/// Whether a word is the two numbers of a device.
pub(super) fn is_device(word: &[u8]) -> bool {
    commas::<2>(word).is_some_and(|two| two.iter().all(|number| whole(number).is_some()))
}

/// What tools that add up do not have.
const NO_REQUESTS: &str =
    "it has sums and no single requests; record with biosnoop of bcc or libbpf-tools, or with blktrace";

/// What is wrong with a beginning that is the output of a known tool, but of no format that has what a replay needs.
pub(super) fn foreign(beginning: &[u8]) -> Option<TraceError> {
    if beginning.iter().all(u8::is_ascii_whitespace) {
        return Some(TraceError::Empty);
    }
    let has = |line: &[u8], word: &[u8]| line.windows(word.len()).any(|part| part == word);
    first_lines(beginning).find_map(|line| {
        let (tool, lacks) = if line.starts_with(b"TIME(ms)") && has(line, b"LAT(ms)") {
            (
                "bpftrace's biosnoop",
                "it lacks the sector, the size and the kind of each request; record with biosnoop of bcc or libbpf-tools, or with blktrace",
            )
        } else if [&b"block_rq_"[..], b"block_bio_", b"block:"].iter().any(|name| has(line, name)) {
            ("perf or ftrace", "its events of the block layer are not read; record with blktrace and print with blkparse")
        } else if has(line, b"count ") && has(line, b"distribution") || line.starts_with(b"[") && has(line, b" |@") {
            ("a tool that counts, such as biolatency and bitesize", NO_REQUESTS)
        } else if line.starts_with(b"PID ") && has(line, b" MAJ MIN DISK") {
            ("biotop", NO_REQUESTS)
        } else if line.starts_with(b"COMM ") && has(line, b" BLOCK ") && has(line, b" LATms") {
            ("iosnoop", "its lines are not read; record with biosnoop of bcc or libbpf-tools, or with blktrace")
        } else if line.starts_with(b"Device") && has(line, b"r/s") || line.starts_with(b"avg-cpu:") {
            ("iostat", "it has rates and no requests; give it to ebbtide size")
        } else {
            return None;
        };
        Some(TraceError::Foreign { tool, lacks })
    })
}

/// The first line of a SYSTOR file.
pub(super) const SYSTOR_HEADING: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size";

/// Five fields; SPC allows more behind them, which nobody defines.
fn five(line: &[u8]) -> Option<[&[u8]; 5]> {
    let mut fields = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut first = [&[][..]; 5];
    for field in &mut first {
        *field = fields.next()?;
    }
    (fields.next().is_none() || is_side(first[3])).then_some(first)
}

fn is_side(field: &[u8]) -> bool {
    field.len() == 1 && direction(field).is_some()
}

fn is_word_of_side(field: &[u8]) -> bool {
    field.len() > 1 && direction(field).is_some()
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(format, _)| *format).ok_or(())
    }
}
