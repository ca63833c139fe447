//! The file of a recording.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::ServeError;

/// Makes a new file, for this user alone; what is written is packed where its name ends in `.zst`.
///
/// # Errors
/// A file that is there already, or cannot be made: [`ServeError::RecordingExists`], [`ServeError::Recording`].
pub(crate) fn create(path: &Path) -> Result<Box<dyn Write + Send>, ServeError> {
    let refusal = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => ServeError::RecordingExists { file: path.to_owned() },
        _ => ServeError::Recording { file: path.to_owned(), error },
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(refusal)?;
    let file = BufWriter::with_capacity(1 << 18, file);
    if path.extension().is_none_or(|extension| extension != "zst") {
        return Ok(Box::new(file));
    }
    let encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(refusal)?;
    let end = |ended: std::io::Result<BufWriter<File>>| {
        if let Err(error) = ended.and_then(|mut file| file.flush()) {
            tracing::error!(%error, "the end of a recording could not be written");
        }
    };
    Ok(Box::new(encoder.on_finish(end)))
}
