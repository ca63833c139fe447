//! Files of records, and directories of them that a collection left: those of pt-stalk, samples of pt-diskstats, exports.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ebbtide_captured::bundle::{moment, names};
use ebbtide_captured::packed::{text, unpacked};
use ebbtide_captured::{Input, ReadFile, Recorded, RecordedError, Unusable, read_file, together};
use ebbtide_text::{count, first_of};
use ebbtide_volume::MIB;

use super::error::SizingError;

/// Largest file that is read as a text; a trace may be larger.
const MOST_TEXT: u64 = 256 * MIB;
/// Files that are not read whose names are written out.
const NAMES: usize = 4;
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

/// The records of a volume's load among files.
#[derive(Debug)]
pub(super) struct Records {
    /// Those of one tool.
    pub(super) files: Vec<Record>,
    /// How many these are, and how many of the collection were not needed, for people.
    pub(super) counts: String,
    /// What was left out and may have been meant, for people.
    pub(super) notes: Vec<String>,
}

/// A file that is the record of a tool.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) path: PathBuf,
    /// The file, or why it cannot be used.
    pub(super) read: Result<ReadFile, RecordedError>,
    /// What it records without the others; None where it lacks something for that.
    pub(super) alone: Option<Recorded>,
}

/// The records of a volume's load among files. Where they are of several tools, those of one: the kernel's counters say more than
/// what a tool printed of them. Each file is read once. `interval_s` is the length of an interval where the files do not tell it.
///
/// # Errors
/// None of them is one.
pub(super) fn records(
    path: &Path,
    files: &[PathBuf],
    interval_s: Option<f64>,
) -> Result<Records, SizingError> {
    let mut all: Vec<(&'static str, Record)> = Vec::new();
    let mut refused = None;
    let mut unread: Vec<String> = Vec::new();
    for file in files {
        match content(file, interval_s) {
            Content::Record(tool, record) => all.push((tool, record)),
            Content::Refused(error) if refused.is_none() => refused = Some(error),
            Content::Refused(_) => unread.push(format!("{} (cannot be used)", file_name(file))),
            Content::Other(why) if !is_collected(path, file) => {
                unread.push(format!("{} ({why})", file_name(file)))
            }
            Content::Other(_) => {}
        }
    }
    let tools = ["/proc/diskstats", "iostat", "sar", "pt-diskstats"];
    let rank = |tool: &str| tools.iter().position(|known| *known == tool).unwrap_or(0);
    let Some(tool) = all.iter().map(|(tool, _)| *tool).min_by_key(|tool| rank(tool)) else {
        return Err(SizingError::NoRecord { path: path.to_owned(), refused: refused.map(Box::new) });
    };
    let (taken, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(other, _)| *other == tool);
    let (beside, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|(_, record)| is_collected(path, &record.path));
    let of_others = others
        .iter()
        .map(|(other, record)| format!("{} ({other}; the others are {tool})", file_name(&record.path)));
    let unread: Vec<String> = of_others.chain(unread).collect();
    let left_out = refused.map(|error| format!("left out: {error}"));
    let files: Vec<Record> = taken.into_iter().map(|(_, record)| record).collect();
    let counts = match beside.len() {
        0 => count(files.len(), "file"),
        more => format!("{}; {more} of the same time not needed", count(files.len(), "file")),
    };
    Ok(Records { files, counts, notes: left_out.into_iter().chain(not_read(&unread)).collect() })
}

/// The files that are not read; None where there are none.
fn not_read(files: &[String]) -> Option<String> {
    (!files.is_empty()).then(|| format!("not read: {}", first_of(files, NAMES)))
}

fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// Whether a file is there since a collection has files of many kinds, such as pt-stalk's, or since a system hides it: nobody means it
/// to be read.
fn is_collected(path: &Path, file: &Path) -> bool {
    let name = file_name(file);
    !path.is_dir() || moment(&name).is_some() || name.starts_with('.')
}

/// What a file of a folder is.
enum Content {
    /// The record of a tool.
    Record(&'static str, Record),
    /// A record that cannot be read.
    Refused(RecordedError),
    /// A file of another kind, in words: it is of the collection, or not for this.
    Other(&'static str),
}

fn content(file: &Path, interval_s: Option<f64>) -> Content {
    let input = match text_of_file(file) {
        Ok(Some(input)) => input,
        Ok(None) => return Content::Other("no text"),
        Err(SizingError::Empty { .. }) => return Content::Other("empty"),
        Err(SizingError::Zip { .. }) => return Content::Other("a zip archive"),
        Err(_) => return Content::Other("cannot be opened"),
    };
    let alone = |interval_s| {
        let read = read_file(&input, interval_s)?;
        together(&[&read], interval_s).map(|recorded| (recorded, read))
    };
    let record = |recorded: Option<Recorded>, read| Record { path: file.to_owned(), read, alone: recorded };
    match alone(interval_s) {
        Ok((recorded, read)) => Content::Record(recorded.tool, record(Some(recorded), Ok(read))),
        Err(RecordedError::Unknown { .. }) => Content::Other("no known form"),
        Err(RecordedError::Unusable { why: Unusable::Elsewhere(_), .. }) => Content::Other("no load"),
        // A record that lacks the length of its intervals alone is one all the same.
        Err(error) => match alone(Some(1.0)) {
            Ok((recorded, _)) => Content::Record(recorded.tool, record(None, read_file(&input, interval_s))),
            Err(_) => Content::Refused(error),
        },
    }
}
