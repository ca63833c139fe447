//! A command line of fio, as people copy it from a shell.

use super::words::{self, Draft};
use super::{FioError, Surroundings, UNNAMED, file, table, values};

/// Words before `fio` on a command line, at most: `sudo`, `ionice -c 3`, variables.
const MOST_BEFORE: usize = 12;

/// Whether a text is a command line: it begins with `fio`, maybe behind `sudo` and the like, or with an option.
pub(super) fn is_command(text: &str) -> bool {
    let first = text.split_ascii_whitespace().take(MOST_BEFORE);
    text.trim_start().starts_with('-') || program(first).is_some()
}

/// The place of the word that names the program.
fn program<'a>(words: impl Iterator<Item = &'a str>) -> Option<usize> {
    let is_program = |word: &str| word == "fio" || word.ends_with("/fio") || word.ends_with("fio.exe");
    let mut words = words.enumerate().skip_while(|(_, word)| !is_program(word));
    // An image of a container may have the name, too: `docker run someone/fio fio`.
    let (first, _) = words.next()?;
    Some(words.next().filter(|(_, word)| is_program(word)).map_or(first, |(second, _)| second))
}

/// What a command line asks for.
#[derive(Debug, Default)]
struct Command {
    /// Options with their values, in their order.
    options: Vec<(String, String)>,
    files: Vec<String>,
    sections: Vec<String>,
}

/// Reads a command line: `--name` begins a job, options before it hold for all, and job files come last.
pub(super) fn read(text: &str, surroundings: &dyn Surroundings) -> Result<Vec<Draft>, FioError> {
    let command = command(&shell_words(text)?)?;
    let mut global = Draft::new("global");
    let mut drafts = Vec::new();
    jobs(&command.options, &mut global, &mut drafts, surroundings)?;
    for (number, path) in command.files.iter().enumerate() {
        let text = surroundings.read(path);
        let text = text.map_err(|kind| FioError::Include { file: path.clone(), kind })?;
        let first = drafts.len();
        file::read(&text, path, &command.sections, &mut global, &mut drafts, surroundings)?;
        if let Some(draft) = drafts.get_mut(first).filter(|_| number > 0) {
            // fio runs several files one after the other.
            draft.stonewall = true;
        }
    }
    if drafts.is_empty() && command.files.is_empty() {
        drafts.push(global.section(UNNAMED));
    }
    Ok(drafts)
}

/// Reads words into jobs: those before the first `name` hold for all.
pub(super) fn jobs(
    options: &[(String, String)],
    global: &mut Draft,
    drafts: &mut Vec<Draft>,
    surroundings: &dyn Surroundings,
) -> Result<(), FioError> {
    let mut in_global = true;
    for (word, value) in options {
        if word == "name" && !value.is_empty() {
            in_global = value.starts_with("global");
            if !in_global {
                drafts.push(global.section(value));
            }
            continue;
        }
        let draft = if in_global { &mut *global } else { drafts.last_mut().unwrap_or(global) };
        draft.set(word, value, surroundings)?;
    }
    Ok(())
}

fn command(words: &[String]) -> Result<Command, FioError> {
    let mut command = Command::default();
    let begin = program(words.iter().take(MOST_BEFORE).map(String::as_str)).map_or(0, |place| place + 1);
    let mut words = words[begin..].iter().peekable();
    while let Some(text) = words.next() {
        let Some(option) = text.strip_prefix("--").or_else(|| text.strip_prefix('-')) else {
            // `bs=4k` is no option of fio's, but nobody names a file so.
            match text.split_once('=') {
                Some((word, value)) => command.options.push((word.into(), value.into())),
                None => command.files.push(text.clone()),
            }
            continue;
        };
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = long_name(name);
        let value = match value {
            Some(value) => value.to_owned(),
            None if table::has(table::JOB_FLAGS, &name) => values::BARE.into(),
            None if table::has(table::COMMAND_FLAGS, &name) => String::new(),
            None => {
                let is_value = |next: &&String| {
                    !next.starts_with('-') || next[1..].starts_with(|c: char| c.is_ascii_digit())
                };
                words.next_if(|next| is_value(next)).cloned().unwrap_or_default()
            }
        };
        if name == "section" {
            command.sections.push(value);
        } else {
            command.options.push((name, value));
        }
    }
    Ok(command)
}

/// The option that a name is the beginning of, if it is of one alone: fio's options may be cut short.
fn long_name(name: &str) -> String {
    let known = || words::known().chain(["section"]);
    if name.is_empty() || known().any(|word| word == name) {
        return name.into();
    }
    let mut longer = known().filter(|word| word.starts_with(name));
    match (longer.next(), longer.next()) {
        (Some(only), None) => only.into(),
        _ => name.into(),
    }
}

/// The words of a line of a shell, up to a redirection, a pipe or another command.
fn shell_words(text: &str) -> Result<Vec<String>, FioError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'\n') => {
                chars.next();
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '\'' | '"' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => {
                            let message =
                                format!("the command line ends within a quotation: close it with {c}");
                            return Err(FioError::Combination(message));
                        }
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => quoted.extend(chars.next()),
                        Some(inside) => quoted.push(inside),
                    }
                }
            }
            '>' | '|' | '&' | ';' => {
                // The number before a redirection belongs to it.
                word = word.filter(|word| c != '>' || !word.chars().all(|c| c.is_ascii_digit()));
                break;
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    // `--rw=read,--bs=4k`: options separated as words are elsewhere.
    Ok(words.iter().flat_map(|word| word.split(",--").enumerate().map(joined)).collect())
}

/// An option of several that commas separate.
fn joined((place, part): (usize, &str)) -> String {
    if place == 0 { part.into() } else { format!("--{part}") }
}
