//! The events of blktrace: 48 bytes each, and a payload that is passed over.

use std::io::{self, BufRead, Read as _};

use ebbtide_volume::Op;

use super::format::MAGIC;
use super::lines::{Event, Stage};

const SECTOR: u64 = 512;
const BYTES: usize = 48;

/// Actions of the block layer, in the low half of the field.
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
/// Categories, in the high half.
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const DISCARD: u32 = 1 << 29;
/// Notices of the tracer itself.
const NOTIFY: u32 = 1 << 26;

/// Reads an event after another.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Whether the numbers are in the other byte order; known from the first event on.
    swapped: Option<bool>,
    /// The device of the last event, as `MAJ,MIN`.
    device: String,
    number: u32,
}

/// Why there is no event.
#[derive(Debug)]
pub(super) enum NoEvent {
    Io(io::Error),
    /// The bytes are no event.
    Damaged(&'static str),
}

impl From<io::Error> for NoEvent {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Events {
    /// Reads the next event, and the bytes that it took. The event is none where a volume sees nothing of it; both are
    /// none at the end.
    pub(super) fn next(
        &mut self,
        input: &mut impl BufRead,
    ) -> Result<Option<(u64, Option<Event<'_>>)>, NoEvent> {
        if input.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut bytes = [0; BYTES];
        input.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                NoEvent::Damaged("48 bytes of an event; the file ends within them")
            }
            _ => NoEvent::Io(error),
        })?;
        let magic = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let swapped = *self.swapped.get_or_insert(magic & 0xFFFF_FF00 != MAGIC);
        let magic = if swapped { magic.swap_bytes() } else { magic };
        if magic & 0xFFFF_FF00 != MAGIC {
            return Err(NoEvent::Damaged("an event of blktrace, which begins with 0x65617407"));
        }
        let long = |at: usize| {
            let value = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            if swapped { value.swap_bytes() } else { value }
        };
        let word = |at: usize| {
            let value = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
            if swapped { value.swap_bytes() } else { value }
        };
        let payload = u16::from_le_bytes([bytes[46], bytes[47]]);
        let payload = u64::from(if swapped { payload.swap_bytes() } else { payload });
        let passed = io::copy(&mut input.take(payload), &mut io::sink())?;
        if passed < payload {
            return Err(NoEvent::Damaged("the payload of an event; the file ends within it"));
        }
        let (at, sector, len) = (long(8), long(16), u64::from(word(24)));
        let (action, pid, device) = (word(28), word(32), word(36));
        self.name(device);
        Ok(Some((BYTES as u64 + payload, self.event(at, sector, len, action, pid))))
    }

    fn event(&self, at: u64, sector: u64, len: u64, action: u32, pid: u32) -> Option<Event<'_>> {
        let stage = match action & 0xFFFF {
            QUEUE => Stage::Queued,
            ISSUE => Stage::Issued,
            COMPLETE => Stage::Completed,
            _ => return None,
        };
        if action & (NOTIFY | DISCARD) != 0 {
            return None;
        }
        let op = match (len, action & FLUSH != 0, action & WRITE != 0) {
            (0, true, _) => Op::Flush,
            (0, false, _) => return None,
            (_, _, true) => Op::Write,
            (_, _, false) => Op::Read,
        };
        let offset = if op == Op::Flush { 0 } else { sector.checked_mul(SECTOR)? };
        let device = self.device.as_bytes();
        Some(Event { stage, at, device, client: pid.into(), op, offset, len, latency: None })
    }

    /// Writes the name of a device, unless it is that of the event before.
    fn name(&mut self, device: u32) {
        if self.device.is_empty() || self.number != device {
            self.number = device;
            self.device = format!("{},{}", device >> 20, device & 0xF_FFFF);
        }
    }
}
