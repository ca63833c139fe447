//! Files that may be packed with gzip or zstd, and texts that may be in UTF-16.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;
/// First bytes of packed files.
const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// The content of a file, unpacked where it is packed.
///
/// # Errors
/// A file that cannot be read.
pub fn unpacked(file: File) -> std::io::Result<Box<dyn BufRead + Send>> {
    let mut packed = BufReader::with_capacity(BUFFER, file);
    let beginning = packed.fill_buf()?;
    let input: Box<dyn Read + Send> = if beginning.starts_with(&GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(packed))
    } else if beginning.starts_with(&ZSTD) {
        Box::new(zstd::Decoder::with_buffer(packed)?)
    } else {
        return Ok(Box::new(packed));
    };
    Ok(Box::new(BufReader::with_capacity(BUFFER, input)))
}

/// The text of a file: in UTF-8, in UTF-16 as Excel saves its "Unicode text", or in an old one-byte code, whose letters beyond ASCII
/// are lost. None of bytes that are no text.
#[must_use]
pub fn text(bytes: Vec<u8>) -> Option<String> {
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
    use super::text;

    #[test]
    fn texts_of_spreadsheets_are_read_and_binary_files_are_none() {
        let units: Vec<u16> = "Labél\tx".encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for (mark, bytes) in
            [(&[0xFF, 0xFE][..], &little), (&[], &little), (&[0xFE, 0xFF], &big), (&[], &big)]
        {
            let read = text([mark, bytes].concat()).unwrap();
            assert_eq!(read.trim_start_matches('\u{feff}'), "Labél\tx");
        }
        assert_eq!(text("Labél".into()).unwrap(), "Labél");
        assert_eq!(text(b"Lab\xe9l".to_vec()).unwrap(), "Lab\u{fffd}l");
        assert_eq!(text(vec![0x65, 0x61, 0x08, 0x07, 0, 0, 0, 0xFF]), None);
    }
}
