//! Files that may be packed with gzip or zstd.

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
pub(crate) fn unpacked(file: File) -> std::io::Result<Box<dyn BufRead + Send>> {
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
