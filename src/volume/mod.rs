//! `ebbtide volume`: the client's side.

pub(crate) mod args;
mod calibrate;
mod check;
mod print;
mod record;

use std::path::{Path, PathBuf};

use ebbtide_control::NbdAddress;
use ebbtide_control::protocol::Request;
use ebbtide_serve::attach_note;

use crate::control;
use crate::document::ColorWhen;
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::refusal::refuse;
use crate::text;
use args::{AttachArgs, VolumeCommand};

pub(crate) use print::warn_of_loss;

/// Runs a volume command.
///
/// # Errors
/// What the server refuses; no server.
pub(crate) fn run(
    command: &VolumeCommand,
    place: &HomePath,
    color: ColorWhen,
    json: bool,
) -> anyhow::Result<Exit> {
    let request = match command {
        VolumeCommand::Check(args) => return check::run(args, place, json),
        VolumeCommand::Calibrate(args) => return calibrate::run(args, place, color, json),
        VolumeCommand::Record(args) => return record::run(args, place, json),
        VolumeCommand::Create(args) => {
            // A wrong spec or region is wrong whether or not a server runs.
            let (spec, region) = (&args.spec, args.region.as_deref());
            ebbtide_control::check(place.existing()?.as_ref(), spec, args.initialization, region)
                .map_err(refuse)?;
            args.clone().into()
        }
        VolumeCommand::Attach(args) => absolute(args)?.into(),
        VolumeCommand::Detach(args) => args.clone().into(),
        VolumeCommand::Modify(args) => args.clone().into(),
        VolumeCommand::List(args) => args.clone().into(),
        VolumeCommand::Show(args) => args.clone().into(),
        VolumeCommand::Delete(args) => Request::VolumeDelete { name: args.name.clone() },
        VolumeCommand::Fault(args) => args.clone().into(),
        VolumeCommand::CrashImage(args) => args.clone().into(),
    };
    let answer = control::ask_unreported(&place.served()?, &request)?;
    if let VolumeCommand::Attach(_) = command {
        let volume = serde_json::from_value(answer.value.clone())?;
        attach_note(&place.served()?, &volume).iter().for_each(|text| text::note(text));
    }
    if let VolumeCommand::Detach(args) = command {
        warn_of_loss(&args.name, &answer.value);
    }
    answer.note_warnings();
    if json {
        text::print_json(&answer.value);
    } else {
        print::answer(command, answer.value, color)?;
    }
    Ok(answer.exit)
}

/// Paths are relative to where the user is, and the server is elsewhere.
fn absolute(args: &AttachArgs) -> anyhow::Result<AttachArgs> {
    let mut args = args.clone();
    args.mount = args.mount.as_deref().map(absolute_path).transpose()?;
    if let Some(text) = &args.nbd {
        let address = NbdAddress::parse(text).map_err(|error| Refusal::usage(error.to_string()))?;
        if let NbdAddress::Unix(path) = address {
            let path = absolute_path(&path)?;
            let path = path.to_str().ok_or_else(|| Refusal::usage("the socket's path is not UTF-8"))?;
            args.nbd = Some(format!("unix:{path}"));
        }
    }
    Ok(args)
}

/// Absolute, and without symbolic links as far as it exists, as the kernel lists mounts.
pub(super) fn absolute_path(path: &Path) -> anyhow::Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Err(Refusal::usage("a path is empty").into());
    }
    let path = std::path::absolute(path)?;
    let mut missing = Vec::new();
    let mut known = path.as_path();
    loop {
        if let Ok(known) = known.canonicalize() {
            return Ok(missing.iter().rev().fold(known, |path, name| path.join(name)));
        }
        match (known.parent(), known.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name.to_owned());
                known = parent;
            }
            _ => return Ok(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_absolute_even_where_it_does_not_exist_yet() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        let path = absolute_path(&real.join("link/a/b")).unwrap();
        assert_eq!(path, real.join("a/b"));
        assert!(absolute_path(Path::new("some/where")).unwrap().is_absolute());
        absolute_path(Path::new("")).unwrap_err();
    }
}
