//! Files of records, and directories of them that a collection left: those of pt-stalk, samples of pt-diskstats, exports.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ebbtide_captured::bundle::names;
use ebbtide_captured::packed::{text, unpacked};
use ebbtide_captured::{Input, RecordedError, Unusable, recorded};
use ebbtide_text::count;
use ebbtide_volume::MIB;

use super::error::SizingError;

/// Largest file that is read as a text; a trace may be larger.
const MOST_TEXT: u64 = 256 * MIB;
/// First bytes of a zip archive.
const ZIP: &[u8] = b"PK\x03\x04";

/// A file as a text; None where it is none.
pub(super) fn text_of_file(path: &Path) -> Result<Option<Input>, SizingError> {
    let unreadable = |error| SizingError::Unreadable { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    unpacked(file).map_err(unreadable)?.take(MOST_TEXT).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(SizingError::Empty { path: path.to_owned() });
    }
    if bytes.starts_with(ZIP) {
        return Err(SizingError::Zip { path: path.to_owned() });
    }
    let text = text(bytes).filter(|text| (text.len() as u64) < MOST_TEXT);
    Ok(text.map(|text| Input { path: path.to_owned(), text }))
}

/// The files that a path stands for: those of a directory, or those whose names begin with it, as pt-stalk's do. None of a path that
/// is one file.
pub(super) fn of(path: &Path) -> Option<Vec<PathBuf>> {
    let (dir, prefix) = if path.is_dir() {
        (path, String::new())
    } else if path.exists() {
        return None;
    } else {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        (parent, format!("{}-", path.file_name()?.to_string_lossy()))
    };
    let names = names(dir, &prefix);
    let files: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).filter(|path| path.is_file()).collect();
    (path.is_dir() || !files.is_empty()).then_some(files)
}

/// The records of a volume's load among files, and what was left out, for people. Where they are of several tools, those of one: the
/// kernel's counters say more than what a tool printed of them.
///
/// # Errors
/// None of them is one.
pub(super) fn records(path: &Path, files: &[PathBuf]) -> Result<(Vec<Input>, Vec<String>), SizingError> {
    let mut all: Vec<(&'static str, Input)> = Vec::new();
    let mut refused = None;
    for file in files {
        // Files of other kinds are of the collection, and not for this.
        let Ok(Some(input)) = text_of_file(file) else { continue };
        match recorded(std::slice::from_ref(&input), Some(1.0)) {
            Ok(record) => all.push((record.tool, input)),
            Err(
                RecordedError::Unknown { .. } | RecordedError::Unusable { why: Unusable::Elsewhere(_), .. },
            ) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let tools = ["/proc/diskstats", "iostat", "sar", "pt-diskstats"];
    let rank = |tool: &str| tools.iter().position(|known| *known == tool).unwrap_or(0);
    let Some(tool) = all.iter().map(|(tool, _)| *tool).min_by_key(|tool| rank(tool)) else {
        return Err(SizingError::NoRecord { path: path.to_owned(), refused: refused.map(Box::new) });
    };
    let (taken, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(other, _)| *other == tool);
    let taken: Vec<Input> = taken.into_iter().map(|(_, input)| input).collect();
    let mut notes = vec![format!("{}: {tool}", count(taken.len(), "file"))];
    if let Some(error) = refused {
        notes.push(format!("left out: {error}"));
    }
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|(_, input)| input.path.display().to_string()).collect();
        notes.push(format!("of the same time, and not needed: {}", names.join(", ")));
    }
    Ok((taken, notes))
}
