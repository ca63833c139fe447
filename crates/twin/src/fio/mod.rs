//! fio's words: reads a job given inline or as a job file.
//!
//! Words, defaults and units are fio's (HOWTO, "Job parameters"): 4 KiB blocks, depth 1,
//! sequential reads, binary `k`, seconds. A word that this model cannot honour is an error that
//! reports it; a word that changes nothing in the model is accepted and noted.

mod command;
mod file;
mod table;
mod units;
mod values;
mod words;

use std::io::ErrorKind;

use crate::job::{Access, BlockSizes, Direction, Distribution, Job, Rate, Workload};
use words::Draft;

/// In-flight bound of a paced job without `iodepth`: an open loop, bounded so that an overloaded
/// volume cannot take all memory.
pub const OPEN_LOOP_DEPTH: u32 = 4096;

/// The name of a job given inline without one.
pub const UNNAMED: &str = "job";

/// Words that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FioError {
    /// Not one of fio's words that are known here.
    #[error("unknown fio word '{word}'{}", nearest.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default())]
    Unknown {
        /// The word.
        word: String,
        /// The known word that is spelled most like it.
        nearest: Option<&'static str>,
    },
    /// A word of fio's that the model cannot honour.
    #[error("fio's '{word}' is not supported here, as it is not modelled: {instead}")]
    Unsupported {
        /// The word, with its value where that is what is not supported.
        word: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// A value outside of what its word takes.
    #[error("{word}={value}: expected {expected}")]
    Value {
        /// The word.
        word: String,
        /// The value given.
        value: String,
        /// What it takes.
        expected: String,
    },
    /// Words that contradict each other, or one that lacks another.
    #[error("{0}")]
    Combination(String),
    /// Nothing to run.
    #[error("the job file has no job section: add one, such as [read] followed by rw=read")]
    NoJobs,
    /// A text that is no line of a job file.
    #[error("'{0}' is neither a [section] nor word=value")]
    Line(String),
    /// An error in a job file.
    #[error("line {number}: {source}")]
    InFile {
        /// The line, from 1.
        number: usize,
        /// What is wrong with it.
        source: Box<FioError>,
    },
    /// An error in an included file.
    #[error("{file}, line {number}: {source}")]
    InIncluded {
        /// The file, as the line names it.
        file: String,
        /// The line, from 1.
        number: usize,
        /// What is wrong with it.
        source: Box<FioError>,
    },
    /// A file that cannot be read.
    #[error("cannot read the file '{file}': {kind}")]
    Include {
        /// The file, as it is named.
        file: String,
        /// Why.
        kind: ErrorKind,
    },
    /// A value that lacks a variable of the environment.
    #[error("{source}; the environment variable {name} is not set")]
    Variable {
        /// The variable.
        name: String,
        /// What is wrong without it.
        source: Box<FioError>,
    },
}

impl FioError {
    pub(crate) fn value(word: &str, value: &str, expected: impl Into<String>) -> Self {
        Self::Value { word: word.into(), value: value.into(), expected: expected.into() }
    }
}

/// What jobs may name besides their words: variables of the environment, and files.
pub trait Surroundings {
    /// A variable of the environment; None where it is not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// The text of a file: an included one, or a job file that a command line names.
    ///
    /// # Errors
    /// A file that cannot be read, or is no text.
    fn read(&self, path: &str) -> Result<String, ErrorKind>;
}

/// Surroundings without files and variables.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn read(&self, _path: &str) -> Result<String, ErrorKind> {
        Err(ErrorKind::NotFound)
    }
}

/// Reads jobs from words between commas or spaces, such as `rw=randread,bs=16k,iodepth=64,runtime=3h`, or from a command line of
/// fio's, such as `fio --name=a --rw=read --bs=1m`.
///
/// A piece that starts with a digit and follows a word that takes several values belongs to it, so that `bs=4k,16k` is one word.
/// Each `name` begins a job; words before the first one hold for all.
///
/// # Errors
/// An unknown or unsupported word, or a value outside its range.
pub fn parse_words(text: &str, surroundings: &dyn Surroundings) -> Result<Workload, FioError> {
    if command::is_command(text) {
        return finish(command::read(text, surroundings)?);
    }
    let mut global = Draft::new(UNNAMED);
    let mut drafts = Vec::new();
    command::jobs(&pieces(text), &mut global, &mut drafts, surroundings)?;
    if drafts.is_empty() {
        drafts.push(global);
    }
    finish(drafts)
}

/// Splits inline words, giving pieces that continue a list back to the word before.
fn pieces(text: &str) -> Vec<(String, String)> {
    let mut pieces: Vec<(String, String)> = Vec::new();
    for piece in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|piece| !piece.is_empty()) {
        let continues = piece.starts_with(|c: char| c.is_ascii_digit() || c == '/') || piece.contains(':');
        if let (true, Some((_, value))) = (continues && !piece.contains('='), pieces.last_mut()) {
            value.push(',');
            value.push_str(piece);
            continue;
        }
        let piece = piece.trim_start_matches("--");
        let bare = if table::has(table::JOB_FLAGS, piece) { values::BARE } else { "" };
        let (word, value) = piece.split_once('=').unwrap_or((piece, bare));
        pieces.push((word.into(), value.into()));
    }
    pieces
}

/// Reads a job file: `[global]` sections give defaults to the sections after them; every other
/// section is a job, and all run at the same time unless `stonewall` separates them. `include FILE` is of the working directory,
/// or of the directory of `path`.
///
/// # Errors
/// As [`parse_words`], with the line; and a file without a job.
pub fn parse_file(text: &str, path: &str, surroundings: &dyn Surroundings) -> Result<Workload, FioError> {
    let (mut global, mut drafts) = (Draft::new("global"), Vec::new());
    file::read(text, path, &[], &mut global, &mut drafts, surroundings)?;
    finish(drafts)
}

fn finish(drafts: Vec<Draft>) -> Result<Workload, FioError> {
    if drafts.is_empty() {
        return Err(FioError::NoJobs);
    }
    let mut notes = Vec::new();
    let mut phase = 0;
    let mut jobs = Vec::new();
    for (number, draft) in drafts.into_iter().enumerate() {
        if draft.stonewall && number > 0 {
            phase += 1;
        }
        jobs.push(draft.finish(phase, &mut notes)?);
    }
    Ok(Workload { jobs, notes })
}

#[cfg(test)]
mod tests;
