//! Captures and files of other programs, as commands name them.

use std::path::PathBuf;

use ebbtide_captured::Hints;
use ebbtide_captured::bundle;
use ebbtide_observe::{Files, Observation, Version};

use crate::refusal::refuse_bundle;
use crate::text::note;

/// The observation of files: one capture, or what other programs printed. Files that are left out are named.
pub(crate) fn read(paths: &[PathBuf], hints: &Hints) -> anyhow::Result<Observation> {
    bundle::read(paths, hints, |file| note(&format!("warning: {file}"))).map_err(refuse_bundle)
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
