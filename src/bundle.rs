//! Captures and files of other programs, as commands name them.

use std::path::PathBuf;

use ebbtide_captured::Hints;
use ebbtide_captured::bundle;
use ebbtide_observe::{Files, Observation, Role, Version};

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

/// A volume with what lies on it; without a role, the data. A spec has `=` in it too: what stands before the first one decides.
pub(crate) fn parse_volume(text: &str) -> Result<(Role, String), String> {
    let (files, spec) = match text.split_once('=') {
        Some((role, spec)) if !role.contains([':', '(']) => {
            (Role::named(role).map_err(|error| error.to_string())?, spec)
        }
        _ => (Role::Data, text),
    };
    if spec.is_empty() {
        Err("a spec is missing, such as gp3:size=500GiB".into())
    } else {
        Ok((files, spec.into()))
    }
}

fn role_of_device(role: &str) -> Result<Files, String> {
    match Role::named(role) {
        Ok(Role::Data) => Ok(Files::Data),
        Ok(Role::Redo) => Ok(Files::Redo),
        Ok(Role::Binlog) => Ok(Files::Binlog),
        _ => Err(format!("{role} is no role: use data, redo or binlog, as in data=nvme1n1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_has_a_role_or_is_that_of_the_data() {
        let of = |text| parse_volume(text).unwrap();
        assert_eq!(of("data=gp2:size=500GiB"), (Role::Data, "gp2:size=500GiB".into()));
        assert_eq!(of("redo=io2:size=20GiB,iops=1000").0, Role::Redo);
        assert_eq!(of("redo+binlog=nvme"), (Role::Logs, "nvme".into()));
        assert_eq!(of("gp2:size=500GiB"), (Role::Data, "gp2:size=500GiB".into()));
        assert_eq!(of("raid0(2x gp3:size=250GiB)").0, Role::Data);
        assert_eq!(of("nvme"), (Role::Data, "nvme".into()));
        let error = parse_volume("logs=gp2:size=1GiB").unwrap_err();
        assert!(error.contains("logs is no role") && error.contains("redo+binlog"), "{error}");
        assert!(parse_volume("data=").is_err());
    }
}
