//! fio's words: reads a job given inline or as a job file.
//!
//! Words, defaults and units are fio's (HOWTO, "Job parameters"): 4 KiB blocks, depth 1,
//! sequential reads, binary `k`, seconds. A word that this model cannot honour is an error that
//! reports it; a word that changes nothing in the model is accepted and noted.

mod values;
mod words;

use ebbtide_volume::Nanos;

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
    #[error("fio's '{word}' is not supported here: {instead}")]
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
}

impl FioError {
    pub(crate) fn value(word: &str, value: &str, expected: impl Into<String>) -> Self {
        Self::Value { word: word.into(), value: value.into(), expected: expected.into() }
    }
}

/// Reads one job from words between commas or spaces: `rw=randread,bs=16k,iodepth=64,runtime=3h`.
///
/// A piece that starts with a digit and follows a word that takes several values belongs to it, so
/// that `bs=4k,16k` is one word. Leading dashes are allowed: `--rw=read --bs=1m`.
///
/// # Errors
/// An unknown or unsupported word, or a value outside its range.
pub fn parse_words(text: &str) -> Result<Workload, FioError> {
    let mut draft = Draft::new(UNNAMED);
    for (word, value) in pieces(text) {
        draft.set(&word, &value)?;
    }
    let mut notes = Vec::new();
    let job = draft.finish(0, &mut notes)?;
    Ok(Workload { jobs: vec![job], notes })
}

/// Reads a span of time as fio's words do: `90`, `90s`, `5m`, `3h`, `500ms`; `word` names it in the
/// error.
///
/// # Errors
/// A text that is no span, or one above ten years.
pub fn parse_time(word: &str, text: &str) -> Result<Nanos, FioError> {
    values::time(word, text, Nanos::SECOND.0)
}

/// Splits inline words, giving pieces that continue a list back to the word before.
fn pieces(text: &str) -> Vec<(String, String)> {
    let mut pieces: Vec<(String, String)> = Vec::new();
    for piece in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|piece| !piece.is_empty()) {
        let continues = piece.starts_with(|c: char| c.is_ascii_digit()) && !piece.contains('=');
        if let (true, Some((_, value))) = (continues, pieces.last_mut()) {
            value.push(',');
            value.push_str(piece);
            continue;
        }
        let piece = piece.trim_start_matches("--");
        let (word, value) = piece.split_once('=').unwrap_or((piece, ""));
        pieces.push((word.into(), value.into()));
    }
    pieces
}

/// Reads a job file: `[global]` sections give defaults to the sections after them; every other
/// section is a job, and all run at the same time unless `stonewall` separates them.
///
/// # Errors
/// As [`parse_words`], with the line; and a file without a job.
pub fn parse_file(text: &str) -> Result<Workload, FioError> {
    let mut global = Draft::new("global");
    let mut drafts: Vec<Draft> = Vec::new();
    let mut in_global = true;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let at_line = |source| FioError::InFile { number, source: Box::new(source) };
        if let Some(section) = line.strip_prefix('[') {
            let Some(name) = section.strip_suffix(']') else {
                return Err(at_line(FioError::Line(line.into())));
            };
            in_global = name.eq_ignore_ascii_case("global");
            if !in_global {
                drafts.push(global.section(name));
            }
            continue;
        }
        let (word, value) = line.split_once('=').unwrap_or((line, ""));
        let draft = if in_global { &mut global } else { drafts.last_mut().unwrap_or(&mut global) };
        draft.set(word.trim(), value.trim()).map_err(at_line)?;
    }
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
