//! Points of one series in a few bytes each.
//!
//! Of each point there is only what differs from the one before, as differences of variable length. The growth of a counter that
//! grows evenly is a small difference, too. A volume without I/O needs about 6 bytes a minute, a busy one about 50.
//!
//! A chunk is a version and points. A point is a head with flags and the length of the mask of changed columns; its number in the chunk, if
//! it is not the next one; where they changed, its kind and the mask of columns with a value; the mask of changed columns; a
//! difference for each of these.

use crate::earlier;
use crate::layout::{Layout, Value};
use crate::varint::{get, get_text, put, put_text, take, take_many, unzigzag, zigzag};

/// The first byte. [`earlier`] reads smaller ones.
const VERSION: u8 = 3;

const KIND_CHANGED: u64 = 1;
const PRESENCE_CHANGED: u64 = 2;
const NUMBER_GIVEN: u64 = 4;
const FLAG_BITS: u32 = 3;

/// The bits of columns; without trailing zeros where it is `trimmed`.
fn mask(columns: impl IntoIterator<Item = bool>, trimmed: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (position, is_set) in columns.into_iter().enumerate() {
        if position % 8 == 0 {
            bytes.push(0);
        }
        if let (true, Some(byte)) = (is_set, bytes.last_mut()) {
            *byte |= 1_u8 << (position % 8);
        }
    }
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(if trimmed { end } else { bytes.len() });
    bytes
}

fn is_set(mask: &[u8], position: usize) -> bool {
    mask.get(position / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
}

/// Packs points by their numbers in the chunk, in their order, with the kind of each.
pub(crate) fn pack<'a>(points: impl IntoIterator<Item = (u64, &'a str, &'a [Option<Value>])>) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    let (mut next, mut kind, mut present, mut before) = (0, "", Vec::new(), Vec::new());
    for (position, kind_now, values) in points {
        before.resize(values.len(), 0);
        let now: Vec<u64> =
            values.iter().zip(&before).map(|(value, before)| value.map_or(*before, Value::bits)).collect();
        let present_now = mask(values.iter().map(Option::is_some), false);
        let changed = mask(now.iter().zip(&before).map(|(now, before)| now != before), true);
        let mut head = u64::try_from(changed.len()).unwrap_or_default() << FLAG_BITS;
        head |= if position == next { 0 } else { NUMBER_GIVEN };
        head |= if kind_now == kind { 0 } else { KIND_CHANGED };
        head |= if present_now == present { 0 } else { PRESENCE_CHANGED };
        put(&mut bytes, head);
        if head & NUMBER_GIVEN != 0 {
            put(&mut bytes, position);
        }
        if head & KIND_CHANGED != 0 {
            put_text(&mut bytes, kind_now);
        }
        if head & PRESENCE_CHANGED != 0 {
            bytes.extend(&present_now);
        }
        bytes.extend(&changed);
        for (now, before) in now.iter().zip(&before).filter(|(now, before)| now != before) {
            put(&mut bytes, zigzag(now.wrapping_sub(*before)));
        }
        (next, kind, present, before) = (position + 1, kind_now, present_now, now);
    }
    bytes
}

/// Visits the points of a chunk in a layout, with number and kind; none of what is not complete.
pub(crate) fn unpack(mut bytes: &[u8], layout: &Layout, mut visit: impl FnMut(u64, &str, &[Option<Value>])) {
    match take(&mut bytes) {
        Some(VERSION) => {}
        Some(version) => return earlier::unpack(version, bytes, visit),
        None => return,
    }
    let columns = layout.columns();
    let mut state = Unpacking {
        next: 0,
        kind: String::new(),
        present: vec![0; columns.len().div_ceil(8)],
        numbers: vec![0; columns.len()],
    };
    let mut values = vec![None; columns.len()];
    while let Some(position) = state.read(&mut bytes) {
        for (place, column) in columns.iter().enumerate() {
            let is_present = is_set(&state.present, place);
            values[place] = is_present.then(|| column.number.value(state.numbers[place]));
        }
        visit(position, &state.kind, &values);
    }
}

/// The latest point that was read.
struct Unpacking {
    /// The number of the point behind it.
    next: u64,
    kind: String,
    present: Vec<u8>,
    numbers: Vec<u64>,
}

impl Unpacking {
    /// Reads the next point. Returns its number in the chunk.
    fn read(&mut self, bytes: &mut &[u8]) -> Option<u64> {
        let head = get(bytes)?;
        let position = if head & NUMBER_GIVEN == 0 { self.next } else { get(bytes)? };
        self.next = position.checked_add(1)?;
        if head & KIND_CHANGED != 0 {
            self.kind = get_text(bytes)?;
        }
        if head & PRESENCE_CHANGED != 0 {
            let present = take_many(bytes, self.present.len())?;
            self.present.copy_from_slice(present);
        }
        let changed = take_many(bytes, usize::try_from(head >> FLAG_BITS).ok()?)?;
        for (place, number) in self.numbers.iter_mut().enumerate() {
            if is_set(changed, place) {
                *number = number.wrapping_add(unzigzag(get(bytes)?));
            }
        }
        Some(position)
    }
}

#[cfg(test)]
mod tests;
