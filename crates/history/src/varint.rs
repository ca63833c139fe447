//! Numbers in as few bytes as they need.

/// Takes the first byte.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// Takes the first bytes.
pub(crate) fn take_many<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(first)
}

/// Small differences of either sign are small numbers.
pub(crate) const fn zigzag(difference: u64) -> u64 {
    if difference >> 63 == 1 { !(difference << 1) } else { difference << 1 }
}

/// The difference of a number that [`zigzag`] made.
pub(crate) const fn unzigzag(number: u64) -> u64 {
    if number & 1 == 1 { !(number >> 1) } else { number >> 1 }
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// A number that [`put`] wrote.
pub(crate) fn get(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes)?;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A text with its length before it.
pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, u64::try_from(text.len()).unwrap_or_default());
    bytes.extend(text.bytes());
}

/// A text that [`put_text`] wrote.
pub(crate) fn get_text(bytes: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(get(bytes)?).ok()?;
    String::from_utf8(take_many(bytes, length)?.to_vec()).ok()
}
