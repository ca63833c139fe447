//! A job file, as fio reads it: `init.c`, `__parse_jobs_ini`.

use super::table::{JOB_FLAGS, has};
use super::values::BARE;
use super::words::Draft;
use super::{FioError, Surroundings};

/// Files inside one another, at most: fio has no bound but the open files of a process.
const MOST_NESTED: usize = 16;

/// A word of a section, and where it is.
#[derive(Debug, Clone)]
struct Entry {
    /// The included files that it is in, from the outermost on, with the lines of the `include`s; then its own line.
    place: Vec<(Option<String>, usize)>,
    word: String,
    value: String,
}

impl Entry {
    fn refused(&self, error: FioError) -> FioError {
        located(&self.place, error)
    }
}

/// An error with the lines and files that lead to it.
fn located(place: &[(Option<String>, usize)], error: FioError) -> FioError {
    place.iter().rev().fold(error, |error, (file, number)| {
        let source = Box::new(error);
        match file {
            None => FioError::InFile { number: *number, source },
            Some(file) => FioError::InIncluded { file: file.clone(), number: *number, source },
        }
    })
}

/// A section with its words.
#[derive(Debug)]
struct Section {
    name: String,
    entries: Vec<Entry>,
}

/// Reads a job file behind jobs that were read before; `global` has the words that all of its sections begin with, `sections`
/// the names of those that are wanted, if not all are.
pub(super) fn read(
    text: &str,
    path: &str,
    sections: &[String],
    global: &mut Draft,
    drafts: &mut Vec<Draft>,
    surroundings: &dyn Surroundings,
) -> Result<(), FioError> {
    for section in sections_of(text, path, surroundings)? {
        // fio takes each name that begins so.
        if section.name.starts_with("global") {
            apply(global, section.entries, surroundings)?;
        } else if sections.is_empty() || sections.contains(&section.name) {
            let mut draft = global.section(&section.name);
            apply(&mut draft, section.entries, surroundings)?;
            drafts.push(draft);
        }
    }
    Ok(())
}

/// Reads the words of a section. fio reads the base of its units before the sizes, wherever it stands.
fn apply(
    draft: &mut Draft,
    mut entries: Vec<Entry>,
    surroundings: &dyn Surroundings,
) -> Result<(), FioError> {
    entries.sort_by_key(|entry| entry.word != "kb_base");
    for entry in entries {
        draft.set(&entry.word, &entry.value, surroundings).map_err(|error| entry.refused(error))?;
    }
    Ok(())
}

fn sections_of(text: &str, path: &str, surroundings: &dyn Surroundings) -> Result<Vec<Section>, FioError> {
    // Words before the first section hold for all; fio refuses them.
    let mut sections = vec![Section { name: "global".into(), entries: Vec::new() }];
    for (line, number) in lines(text) {
        let at_line = |source| located(&[(None, number)], source);
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.strip_suffix(']').ok_or_else(|| at_line(FioError::Line(line.into())))?;
            sections.push(Section { name: name.into(), entries: Vec::new() });
            continue;
        }
        let section = sections.last_mut().expect("there is one from the beginning");
        entry(line, &mut vec![(None, number)], &[path], &mut section.entries, surroundings)?;
    }
    Ok(sections)
}

/// Reads a line that is no heading: a word, or the words of an included file.
fn entry(
    line: &str,
    place: &mut Vec<(Option<String>, usize)>,
    paths: &[&str],
    entries: &mut Vec<Entry>,
    surroundings: &dyn Surroundings,
) -> Result<(), FioError> {
    let Some(name) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t', '='])) else {
        let bare = if has(JOB_FLAGS, line) { BARE } else { "" };
        let (word, value) = line.split_once('=').unwrap_or((line, bare));
        entries.push(Entry { place: place.clone(), word: word.trim().into(), value: value.trim().into() });
        return Ok(());
    };
    let name = name[1..].trim();
    if paths.len() > MOST_NESTED {
        let message = format!("include {name}: more than {MOST_NESTED} files inside one another");
        return Err(located(place, FioError::Combination(message)));
    }
    // Of the working directory, or else of the directory of the file with the line.
    let folder = paths.last().and_then(|path| path.rfind('/').map(|end| &path[..=end])).unwrap_or_default();
    let beside = format!("{folder}{name}");
    let found = [name, beside.as_str()].into_iter().map(|path| (path, surroundings.read(path)));
    let found = found.reduce(|first, second| if first.1.is_ok() { first } else { second });
    let (path, text) = found.expect("there are two");
    let text = text.map_err(|kind| located(place, FioError::Include { file: name.into(), kind }))?;
    for (line, number) in lines(&text) {
        place.push((Some(name.into()), number));
        if line.starts_with('[') {
            let message = "an included file has no sections: only words".to_owned();
            return Err(located(place, FioError::Combination(message)));
        }
        entry(line, place, &[paths, &[path]].concat(), entries, surroundings)?;
        place.pop();
    }
    Ok(())
}

/// The lines of a file that say something, with their numbers. What follows `;` or `#` is a remark.
fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let said = |line: &'_ str| -> usize { line.find([';', '#']).unwrap_or(line.len()) };
    let lines = text.lines().zip(1..).map(move |(line, number)| (line[..said(line)].trim(), number));
    lines.filter(|(line, _)| !line.is_empty())
}
