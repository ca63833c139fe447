//! Captures: a readable file with all that was seen of a server, without passwords; and what clients printed of one.

use std::path::{Path, PathBuf};

use ebbtide_mysql::captured::{self, Hints, Input};
use ebbtide_observe::{Files, Observation, Origin, Variables, Version};
use serde::{Deserialize, Serialize};

use crate::exit::Refusal;

/// The word by which a file is known as one of ours.
const FORMAT: &str = "ebbtide-capture";
/// Version of the format; a reader takes its own and older ones.
const VERSION: u32 = 1;
/// Larger files are no captures: one of a server with a thousand variables has about 100 KiB.
const LARGEST: u64 = 64 << 20;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct Bundle {
    format: String,
    version: u32,
    program: String,
    observation: Observation,
}

/// The text of a capture.
pub(crate) fn text(mut observation: Observation) -> String {
    observation.variables = observation.variables.map(|variables| redacted(&variables));
    // What the variables have of a secret, an option file may have too.
    for line in observation.configured.iter_mut().flatten() {
        if is_hidden(&line.name) && !line.value.is_empty() {
            line.value = "(removed)".into();
        }
    }
    let bundle = Bundle {
        format: FORMAT.into(),
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").into(),
        observation,
    };
    let mut text = serde_json::to_string_pretty(&bundle).expect("an observation is plain data");
    text.push('\n');
    text
}

/// Whether a variable may hold a secret, or a statement or an address of the owner that no check reads.
fn is_hidden(name: &str) -> bool {
    let words = ["password", "passwd", "secret", "token", "_auth", "private_key", "credential"];
    words.iter().any(|word| name.contains(word))
        || name.starts_with("wsrep_")
        || matches!(name, "init_connect" | "init_slave" | "init_replica" | "init_file")
}

fn redacted(variables: &Variables) -> Variables {
    variables
        .iter()
        .map(|(name, value)| (name, if is_hidden(name) && !value.is_empty() { "(removed)" } else { value }))
        .collect()
}

/// The observation of files: one capture, or what other programs printed, in any number of files and directories.
pub(crate) fn read(paths: &[PathBuf], hints: &Hints) -> anyhow::Result<Observation> {
    let mut inputs = Vec::new();
    for path in paths {
        inputs.extend(texts(path)?);
    }
    let captures = inputs.iter().filter(|input| is_bundle(&input.text)).count();
    match &inputs[..] {
        [input] if captures == 1 => parse(&input.path, &input.text),
        _ if captures > 0 => {
            let message = "give one capture, or files with what other programs printed, not both";
            Err(Refusal::usage(message).into())
        }
        _ => Ok(captured::observation(&paths[0].display().to_string(), &inputs, hints)),
    }
}

/// The texts of a path: a file, the files of a directory, or those whose names begin with it, as pt-stalk's do.
fn texts(path: &Path) -> anyhow::Result<Vec<Input>> {
    if path.is_dir() {
        return several(path, path, "");
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !path.exists() && !name.is_empty() && !names(parent, &format!("{name}-")).is_empty() {
        return several(path, parent, &format!("{name}-"));
    }
    let input = Input { path: path.to_owned(), text: contents(path)? };
    if is_bundle(&input.text) || captured::is_known(&input) {
        Ok(vec![input])
    } else {
        Err(foreign(path, "its content is of no known kind"))
    }
}

/// Files of a directory whose names begin so, by name.
fn names(dir: &Path, prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let mut names: Vec<String> = entries.filter_map(name).filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

/// The time with which pt-stalk begins the names of its files, such as `2026_11_22_23_18_22`.
fn moment(name: &str) -> Option<&str> {
    let (moment, _) = name.split_once('-')?;
    let digits = |part: &str| matches!(part.len(), 2 | 4) && part.bytes().all(|byte| byte.is_ascii_digit());
    (moment.split('_').count() == 6 && moment.split('_').all(digits)).then_some(moment)
}

/// The files of a directory that are of a known kind.
fn several(named: &Path, dir: &Path, prefix: &str) -> anyhow::Result<Vec<Input>> {
    let names = names(dir, prefix);
    let mut moments: Vec<&str> = names.iter().filter_map(|name| moment(name)).collect();
    moments.dedup();
    if let [first, .., last] = moments[..] {
        let message = format!("{} has files of {} runs of pt-stalk", named.display(), moments.len());
        let hint = format!("name one, from {} to {last}", dir.join(first).display());
        return Err(Refusal::usage(message).hint(hint).into());
    }
    let input = |name: &String| {
        let path = dir.join(name);
        let text = contents(&path).ok()?;
        let input = Input { path, text };
        captured::is_known(&input).then_some(input)
    };
    let known: Vec<Input> = names.iter().filter_map(input).collect();
    if known.is_empty() {
        return Err(foreign(named, "no file in it is of a known kind"));
    }
    Ok(known)
}

pub(crate) fn contents(file: &Path) -> anyhow::Result<String> {
    let refused = |error: std::io::Error| {
        let refusal = Refusal::usage(format!("cannot read {}", file.display()));
        anyhow::Error::new(error).context(refusal)
    };
    let metadata = std::fs::metadata(file).map_err(refused)?;
    if !metadata.is_file() {
        return Err(Refusal::usage(format!("{} is no file", file.display())).into());
    }
    if metadata.len() > LARGEST {
        let size = crate::text::size(metadata.len());
        return Err(foreign(
            file,
            &format!("it has {size}, and captures have up to {}", crate::text::size(LARGEST)),
        ));
    }
    let bytes = std::fs::read(file).map_err(refused)?;
    String::from_utf8(bytes).map_err(|_| foreign(file, "it is no text"))
}

fn is_bundle(text: &str) -> bool {
    let text = text.trim_start();
    let head: String = text.chars().take(200).collect();
    // iostat and CloudWatch print JSON too.
    text.starts_with('{') && !["\"sysstat\"", "\"MetricDataResults\""].iter().any(|word| head.contains(word))
}

/// The observation of a capture's text.
pub(crate) fn parse(file: &Path, text: &str) -> anyhow::Result<Observation> {
    /// What is read before the rest.
    #[derive(Deserialize)]
    struct Head {
        format: Option<String>,
        version: Option<u32>,
    }
    let broken = |error: serde_json::Error| {
        let what = if error.is_eof() { "its end is missing" } else { "it is damaged, or no capture" };
        foreign(file, &format!("{what}: {error}"))
    };
    let head: Head = serde_json::from_str(text).map_err(broken)?;
    if head.format.as_deref() != Some(FORMAT) {
        return Err(foreign(file, &format!("it does not say that its format is {FORMAT}")));
    }
    if let Some(version) = head.version.filter(|version| *version > VERSION) {
        let message = format!(
            "{}: this capture has version {version}, and this program reads up to {VERSION}",
            file.display()
        );
        return Err(Refusal::usage(message).hint("use the ebbtide that wrote it, or a newer one").into());
    }
    let bundle: Bundle = serde_json::from_str(text).map_err(broken)?;
    let origin = Origin::Capture { path: file.display().to_string() };
    Ok(Observation { origin, ..bundle.observation })
}

fn foreign(file: &Path, why: &str) -> anyhow::Error {
    let message = format!("{} cannot be used: {why}", file.display());
    Refusal::usage(message).hint(format!("what is known: {}", captured::KNOWN)).into()
}

/// A version as the server has it in its variables: MariaDB's has its name.
pub(crate) fn parse_version(text: &str) -> Result<String, String> {
    let version = Version::parse(text).ok_or("use a version such as 8.0.36 or 10.11.6-MariaDB")?;
    // MySQL has no release 10.
    let bare = version.major >= 10 && !text.contains("MariaDB");
    Ok(if bare { format!("{text}-MariaDB") } else { text.to_owned() })
}

/// A device with what lies on it; without a role, the data.
pub(crate) fn parse_device(text: &str) -> Result<(Files, String), String> {
    let (files, name) = match text.split_once('=') {
        Some((role, name)) => (role_of_device(role)?, name),
        None => (Files::Data, text),
    };
    let name = name.trim_start_matches("/dev/");
    if name.is_empty() { Err("a name is missing, such as nvme1n1".into()) } else { Ok((files, name.into())) }
}

fn role_of_device(role: &str) -> Result<Files, String> {
    match role {
        "data" => Ok(Files::Data),
        "redo" => Ok(Files::Redo),
        "binlog" => Ok(Files::Binlog),
        _ => Err(format!("{role} is no role: use data, redo or binlog, as in data=nvme1n1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Observation {
        let variables = [
            ("version", "8.0.36"),
            ("report_password", "s3cret"),
            ("init_connect", "SET @k = 's3cret'"),
            ("sync_binlog", "0"),
        ];
        Observation {
            variables: Some(variables.into_iter().collect()),
            configured: Some(vec![ebbtide_observe::Configured {
                name: "report_password".into(),
                value: "s3cret".into(),
                group: "mysqld".into(),
                place: "/c:1".into(),
            }]),
            ..Observation::of(Origin::Server { at: "/s".into() })
        }
    }

    #[test]
    fn a_capture_comes_back_as_it_was_but_for_secrets() {
        let text = text(seen());
        assert!(!text.contains("s3cret"), "{text}");
        let back = parse(Path::new("/c"), &text).unwrap();
        let variables = back.variables.unwrap();
        assert_eq!(
            (variables.get("sync_binlog"), variables.get("report_password")),
            (Some("0"), Some("(removed)"))
        );
        assert_eq!(back.origin, Origin::Capture { path: "/c".into() });
    }

    #[test]
    fn every_beginning_of_a_capture_is_refused_and_none_panics() {
        let text = text(seen());
        let whole = text.trim_end().len();
        for end in (0..whole).filter(|end| text.is_char_boundary(*end)) {
            assert!(parse(Path::new("/c"), &text[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn foreign_json_is_refused_in_a_sentence() {
        let why = |text: &str| parse(Path::new("/c"), text).unwrap_err().to_string();
        assert!(why("{\"a\": 1}").contains("does not say that its format"));
        assert!(why("{\"format\": \"ebbtide-capture\", \"version\": 9}").contains("version 9"));
        let deep = format!("{{\"format\":{}", "[".repeat(100_000));
        assert!(why(&deep).contains("cannot be used"));
    }
}
