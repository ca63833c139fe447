//! How version 2 was written, for tests: nothing writes it any more.

use crate::layout::Value;
use crate::varint::{put, put_text, zigzag};
use crate::volume::VolumeMinute;

use super::{FIELDS, FLAGS};

/// The chunk of minutes, by their numbers in the hour, with the volume's type in each.
pub(crate) fn pack(minutes: &[(u64, &str, VolumeMinute)]) -> Vec<u8> {
    let mut bytes = vec![2];
    let (mut kind, mut before) = ("", [0; FIELDS]);
    for (number, kind_now, minute) in minutes {
        bytes.push(u8::try_from(*number).unwrap());
        let now = numbers(minute);
        let changed = (0..FIELDS).filter(|place| now[*place] != before[*place]);
        let mask = changed.clone().fold(0, |mask, place| mask | 1 << place);
        let has_kind = *kind_now != kind;
        put(&mut bytes, mask << 1 | u64::from(has_kind));
        if has_kind {
            put_text(&mut bytes, kind_now);
        }
        for place in changed {
            put(&mut bytes, zigzag(now[place].wrapping_sub(before[place])));
        }
        (kind, before) = (kind_now, now);
    }
    bytes
}

/// A value that may be absent is two numbers: whether there is a value, and the value.
fn numbers(minute: &VolumeMinute) -> [u64; FIELDS] {
    let values = minute.values();
    let bits = |place: usize| values[place].map_or(0, Value::bits);
    let is_there = |bit: u32, place: usize| u64::from(values[place].is_some()) << bit;
    std::array::from_fn(|place| match place {
        FLAGS => is_there(0, 15) | is_there(1, 16) | is_there(2, 17) | is_there(3, 18),
        _ if place < FLAGS => bits(place),
        _ => bits(place - 1),
    })
}
