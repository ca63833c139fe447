//! Files that may be packed with gzip or zstd, and texts that may be in UTF-16.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;
/// First bytes of packed files.
const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Marks of the byte order of a text: of UTF-8, and of UTF-16, as PowerShell's `>` of Windows writes it.
const UTF_8: [u8; 3] = [0xEF, 0xBB, 0xBF];
const LITTLE: [u8; 2] = [0xFF, 0xFE];
const BIG: [u8; 2] = [0xFE, 0xFF];

/// The content of a file, unpacked where it is packed, and in UTF-8 without its mark where it is a text with one.
///
/// # Errors
/// A file that cannot be read.
pub fn unpacked(file: File) -> io::Result<Box<dyn BufRead + Send>> {
    let mut packed = BufReader::with_capacity(BUFFER, file);
    let beginning = packed.fill_buf()?;
    let input: Box<dyn Read + Send> = if beginning.starts_with(&GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(packed))
    } else if beginning.starts_with(&ZSTD) {
        Box::new(zstd::Decoder::with_buffer(packed)?)
    } else {
        return unmarked(packed);
    };
    // A damaged file was opened: whoever reads on learns of the damage, with the place.
    unmarked(BufReader::with_capacity(BUFFER, input))
        .or_else(|error| Ok(Box::new(BufReader::new(Damaged(Some(error))))))
}

/// A packed file whose first bytes cannot be unpacked: the first read fails.
struct Damaged(Option<io::Error>);

impl Read for Damaged {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The text without the mark of its byte order, in UTF-8.
fn unmarked(mut input: impl BufRead + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    let beginning = input.fill_buf()?;
    let of_pair = match beginning {
        [0xFF, 0xFE, ..] => u16::from_le_bytes,
        [0xFE, 0xFF, ..] => u16::from_be_bytes,
        _ => {
            let mark = if beginning.starts_with(&UTF_8) { UTF_8.len() } else { 0 };
            input.consume(mark);
            return Ok(Box::new(input));
        }
    };
    input.consume(LITTLE.len());
    let text = Utf16 { input, of_pair, half: None, lead: None, ready: String::new(), taken: 0 };
    Ok(Box::new(BufReader::with_capacity(BUFFER, text)))
}

/// A text in UTF-16, read as UTF-8. What is no UTF-16 becomes U+FFFD.
struct Utf16<R> {
    input: R,
    of_pair: fn([u8; 2]) -> u16,
    /// The first byte of a pair whose second one is not read yet.
    half: Option<u8>,
    /// The first half of a letter of two units.
    lead: Option<u16>,
    /// What is decoded, and how much of it was handed over.
    ready: String,
    taken: usize,
}

impl<R: BufRead> Utf16<R> {
    /// Decodes what the input has next; nothing at its end.
    fn decode(&mut self) -> io::Result<()> {
        (self.taken, self.ready) = (0, String::new());
        while self.ready.is_empty() {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return Ok(());
            }
            for byte in bytes {
                let Some(first) = self.half.take() else {
                    self.half = Some(*byte);
                    continue;
                };
                let unit = (self.of_pair)([first, *byte]);
                let lead = self.lead.take();
                if matches!(unit, 0xD800..0xDC00) && lead.is_none() {
                    self.lead = Some(unit);
                    continue;
                }
                let letters = char::decode_utf16(lead.into_iter().chain([unit]));
                self.ready.extend(letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)));
            }
            let used = bytes.len();
            self.input.consume(used);
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Utf16<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ready.len() {
            self.decode()?;
        }
        let rest = &self.ready.as_bytes()[self.taken..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        Ok(count)
    }
}

/// The text of a file, as [`text`] reads it.
///
/// # Errors
/// A file that cannot be read, or is no text.
pub fn text_of(path: &Path) -> io::Result<String> {
    Ok(text(std::fs::read(path)?).ok_or(io::ErrorKind::InvalidData)?)
}

/// Whether bytes begin with a mark of UTF-16.
pub(crate) fn is_utf_16(bytes: &[u8]) -> bool {
    bytes.starts_with(&LITTLE) || bytes.starts_with(&BIG)
}

/// The text of a file: in UTF-8, in UTF-16 as Excel saves its "Unicode text", or in an old one-byte code, whose letters beyond ASCII
/// are lost. The mark of its byte order is left out. None of bytes that are no text.
#[must_use]
pub fn text(bytes: Vec<u8>) -> Option<String> {
    let text = decoded(bytes)?;
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn decoded(bytes: Vec<u8>) -> Option<String> {
    let pairs = |of_pair: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| of_pair([pair[0], pair[1]]));
        char::decode_utf16(units).collect::<Result<String, _>>().ok()
    };
    // Without a mark, the first of two bytes is zero or the second.
    match bytes[..] {
        [0xFF, 0xFE, ..] | [1..=255, 0, 1..=255, 0, ..] => return pairs(u16::from_le_bytes),
        [0xFE, 0xFF, ..] | [0, 1..=255, 0, 1..=255, ..] => return pairs(u16::from_be_bytes),
        _ => {}
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.as_bytes().contains(&0) => None,
        Err(error) => Some(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by a panic

    use super::*;

    #[test]
    fn a_stream_in_utf_16_is_read_as_utf_8_in_pieces_of_any_length() {
        let text = "259,0 Labél 𝄞 €\r\n".repeat(300);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for (mark, bytes) in
            [(&UTF_8[..], text.as_bytes()), (&LITTLE, &little), (&BIG, &big), (&[], text.as_bytes())]
        {
            std::fs::write(&path, [mark, bytes].concat()).unwrap();
            let mut read = String::new();
            unpacked(File::open(&path).unwrap()).unwrap().read_to_string(&mut read).unwrap();
            assert!(read == text, "{mark:?}");
            assert!(text_of(&path).unwrap() == text, "{mark:?}");
            // Buffers of any length, and a reader that hands over few bytes.
            let input = BufReader::with_capacity(3, io::Cursor::new([mark, bytes].concat()));
            let mut input = unmarked(input).unwrap();
            let mut all = Vec::new();
            let mut piece = [0; 7];
            loop {
                match input.read(&mut piece).unwrap() {
                    0 => break,
                    count => all.extend_from_slice(&piece[..count]),
                }
            }
            assert!(all == text.as_bytes(), "{mark:?}");
        }
        // A letter that is torn, and a byte alone at the end.
        let torn = [&LITTLE[..], &[0x41, 0, 0x34, 0xD8, 0x42, 0, 0x43]].concat();
        let mut read = String::new();
        unmarked(BufReader::new(io::Cursor::new(torn))).unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, "A\u{fffd}B");
    }

    #[test]
    fn texts_of_spreadsheets_are_read_and_binary_files_are_none() {
        let units: Vec<u16> = "Labél\tx".encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for (mark, bytes) in
            [(&[0xFF, 0xFE][..], &little), (&[], &little), (&[0xFE, 0xFF], &big), (&[], &big)]
        {
            let read = text([mark, bytes].concat()).unwrap();
            assert_eq!(read, "Labél\tx");
        }
        assert_eq!(text("Labél".into()).unwrap(), "Labél");
        assert_eq!(text(b"Lab\xe9l".to_vec()).unwrap(), "Lab\u{fffd}l");
        assert_eq!(text(vec![0x65, 0x61, 0x08, 0x07, 0, 0, 0, 0xFF]), None);
    }
}
