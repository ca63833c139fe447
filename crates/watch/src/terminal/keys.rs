//! Keys, and the bytes that a terminal in raw mode sends for them.
//!
//! crossterm's own reader is not used: at the end of a terminal that was closed it reads without an end.

/// The longest sequence of bytes that is one key. What is longer is no key, and is dropped.
const LONGEST: usize = 32;

const ESCAPE: u8 = 0x1b;

/// A key that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A printable character of ASCII.
    Char(char),
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Tab.
    Tab,
    /// Shift and Tab.
    BackTab,
    /// Enter.
    Enter,
    /// Escape, alone.
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L.
    Redraw,
}

/// Makes keys of bytes. A sequence may arrive in parts.
#[derive(Debug, Default)]
pub struct KeyDecoder {
    pending: Vec<u8>,
}

impl KeyDecoder {
    /// The keys of these bytes and of those that waited. An unknown sequence is no key.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().filter_map(|byte| self.next(*byte)).collect()
    }

    /// Nothing came for a while: an Escape that waited for a sequence is the key, and the begin of a sequence is dropped.
    pub fn idle(&mut self) -> Option<Key> {
        let escape = self.pending == [ESCAPE];
        self.pending.clear();
        escape.then_some(Key::Escape)
    }

    fn next(&mut self, byte: u8) -> Option<Key> {
        if byte == ESCAPE {
            // A second one begins anew, whatever the first one began.
            let escape = self.idle();
            self.pending.push(byte);
            return escape;
        }
        match self.pending.as_slice() {
            [] => plain(byte),
            [_] if matches!(byte, b'[' | b'O') => {
                self.pending.push(byte);
                None
            }
            // Alt and a key.
            [_] => {
                self.pending.clear();
                None
            }
            // The last byte of a sequence is of this range (ECMA-48, 5.4).
            [_, _, parameters @ ..] if matches!(byte, 0x40..=0x7e) => {
                let key = sequence(parameters, byte);
                self.pending.clear();
                key
            }
            pending if pending.len() >= LONGEST => {
                self.pending.clear();
                None
            }
            _ => {
                self.pending.push(byte);
                None
            }
        }
    }
}

fn plain(byte: u8) -> Option<Key> {
    match byte {
        0x03 => Some(Key::Interrupt),
        b'\t' => Some(Key::Tab),
        b'\r' | b'\n' => Some(Key::Enter),
        0x0c => Some(Key::Redraw),
        0x1a => Some(Key::Suspend),
        b' '..=b'~' => Some(Key::Char(char::from(byte))),
        _ => None,
    }
}

/// The key of a sequence of xterm, by its parameters and its last byte.
fn sequence(parameters: &[u8], last: u8) -> Option<Key> {
    match (parameters, last) {
        (_, b'A') => Some(Key::Up),
        (_, b'B') => Some(Key::Down),
        (_, b'C') => Some(Key::Right),
        (_, b'D') => Some(Key::Left),
        (_, b'Z') => Some(Key::BackTab),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_a_key_also_in_parts() {
        let mut decoder = KeyDecoder::default();
        assert!(decoder.push(b"\x1b").is_empty());
        assert!(decoder.push(b"[").is_empty());
        assert_eq!(
            decoder.push(b"Bq\x1bOA\x1b[6~\x1b[Z"),
            [Key::Down, Key::Char('q'), Key::Up, Key::PageDown, Key::BackTab]
        );
        assert_eq!(decoder.idle(), None);
    }

    #[test]
    fn escape_alone_is_a_key_once_nothing_follows() {
        let mut decoder = KeyDecoder::default();
        assert!(decoder.push(b"\x1b").is_empty());
        assert_eq!(decoder.idle(), Some(Key::Escape));
        assert_eq!(decoder.push(b"\x1b\x1b"), [Key::Escape]);
        assert_eq!(decoder.idle(), Some(Key::Escape));
    }

    #[test]
    fn what_is_no_key_is_dropped_and_what_follows_is_read() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.push(b"\x1b[200~\xc3\xa4\x7fx"), [Key::Char('x')]);
        decoder.push(b"\x1b[");
        decoder.push(&[b'1'; 100]);
        assert!(decoder.pending.len() <= LONGEST);
        decoder.idle();
        assert_eq!(
            decoder.push(b"\x03\x1a\x0c\t\r"),
            [Key::Interrupt, Key::Suspend, Key::Redraw, Key::Tab, Key::Enter]
        );
    }
}
