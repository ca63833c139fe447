//! The events of blktrace: 48 bytes each, and a payload that is passed over.

use ebbtide_volume::Op;

use super::format::MAGIC;
use super::lines::{Event, Row};
use super::stage::Stage;
use super::unused::{NO_DATA, PASSTHROUGH, Unused};

const SECTOR: u64 = 512;

/// Actions of the block layer, in the low half of the field.
const QUEUE: u32 = 1;
const REQUEUE: u32 = 6;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
/// Categories, in the high half.
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const DISCARD: u32 = 1 << 29;
/// Commands that a program sent to the device itself.
const PASSED_THROUGH: u32 = 1 << 25;
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

impl Events {
    /// Bytes of an event, without its payload.
    pub(super) const HEAD: usize = 48;

    /// Bytes of the event that a text begins with; None where the text does not have them all.
    pub(super) fn length(&self, text: &[u8]) -> Option<usize> {
        let head = text.first_chunk::<{ Self::HEAD }>()?;
        let length = Self::HEAD + self.payload(head);
        (length <= text.len()).then_some(length)
    }

    /// Decodes an event with its payload. The file ends where the text is no whole event; behind other events that is no error.
    /// An error is what was expected.
    pub(super) fn decode(&mut self, text: &[u8]) -> Result<Row<'_>, &'static str> {
        let behind_others = self.swapped.is_some();
        let Some(head) = text.first_chunk::<{ Self::HEAD }>() else {
            return if behind_others {
                Ok(Row::Unused(Unused::CutOff))
            } else {
                Err("48 bytes of an event; the file ends within them")
            };
        };
        let swapped = self.swapped(head);
        self.swapped = Some(swapped);
        let long = |at: usize| {
            let value = u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
            if swapped { value.swap_bytes() } else { value }
        };
        let word = |at: usize| {
            let value = u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
            if swapped { value.swap_bytes() } else { value }
        };
        if word(0) & 0xFFFF_FF00 != MAGIC {
            return Err("an event of blktrace, which begins with 0x65617407");
        }
        if text.len() < Self::HEAD + self.payload(head) {
            return if behind_others {
                Ok(Row::Unused(Unused::CutOff))
            } else {
                Err("the payload of an event; the file ends within it")
            };
        }
        let (at, sector, len) = (long(8), long(16), u64::from(word(24)));
        let (action, pid, device) = (word(28), word(32), word(36));
        self.name(device);
        Ok(self.event(at, sector, len, action, pid))
    }

    /// Whether the numbers of this event are in the other byte order: as those of the first event are.
    fn swapped(&self, head: &[u8; Self::HEAD]) -> bool {
        let magic = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        self.swapped.unwrap_or(magic & 0xFFFF_FF00 != MAGIC)
    }

    fn payload(&self, head: &[u8; Self::HEAD]) -> usize {
        let bytes = [head[46], head[47]];
        usize::from(if self.swapped(head) { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn event(&self, at: u64, sector: u64, len: u64, action: u32, pid: u32) -> Row<'_> {
        if action & NOTIFY != 0 {
            return Row::Unused(Unused::Remark);
        }
        let stage = match action & 0xFFFF {
            QUEUE => Stage::Queued,
            ISSUE => Stage::Issued,
            COMPLETE => Stage::Completed,
            REQUEUE => Stage::Requeued,
            _ => return Row::Unused(Unused::Stage),
        };
        let unused = |name| Row::Unused(Unused::Kind(stage, name));
        if action & (DISCARD | PASSED_THROUGH) != 0 {
            return unused(if action & DISCARD == 0 { PASSTHROUGH } else { b"D" });
        }
        let op = match (len, action & FLUSH != 0, action & WRITE != 0) {
            (0, true, _) => Op::Flush,
            // The end of a request may have no length; it is known by its place.
            (0, false, _) if stage != Stage::Completed => return unused(NO_DATA),
            (_, _, true) => Op::Write,
            (_, _, false) => Op::Read,
        };
        let sector = if op == Op::Flush { 0 } else { sector };
        let Some(offset) = sector.checked_mul(SECTOR) else { return unused(b"beyond 2^64") };
        let device = self.device.as_bytes();
        Row::Event(Event { stage, at, device, client: pid.into(), op, offset, len, latency: None })
    }

    /// Writes the name of a device, unless it is that of the event before.
    fn name(&mut self, device: u32) {
        if self.device.is_empty() || self.number != device {
            self.number = device;
            self.device = format!("{},{}", device >> 20, device & 0xF_FFFF);
        }
    }
}
