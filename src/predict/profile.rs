//! `--profile-from`: a profile of what was measured of a server, as a file.

use std::path::PathBuf;

use anyhow::Context as _;
use ebbtide_captured::Hints;
use ebbtide_catalog::Catalog;
use ebbtide_forecast::profile::{Draft, DraftError, MadeProfile, is_run};
use ebbtide_forecast::server::read_profile;
use serde::Serialize;

use super::{PredictArgs, ProfileArgs};
use crate::answers;
use crate::exit::{Exit, Refusal};
use crate::refusal::refused;
use crate::text::{line, note, write};

/// What `predict --profile-from` prints.
#[derive(Debug, Serialize)]
pub(super) struct ProfileMade<'a> {
    /// The file that was written; null without --out.
    file: Option<&'a PathBuf>,
    /// The profile, as TOML.
    profile: String,
    /// Measured points in it.
    points: usize,
    /// What a reader of it must know, in sentences: what was assumed, and what was left out. For people; the wording may
    /// change.
    notes: &'a [String],
    /// Points that contradict the others and were left out, in sentences.
    contradicting: &'a [String],
}

/// Makes the profile, checks that `predict` can use it, and writes it.
///
/// # Errors
/// A source that cannot be read, or that lacks something which `--set` does not give: exit code 2.
pub(super) fn make(args: &PredictArgs, catalog: &Catalog, json: bool) -> anyhow::Result<Exit> {
    let mut draft = draft(&args.source.profile_from, &args.source)?;
    draft.set(&args.set).map_err(refused)?;
    let made = draft.finish(catalog, args.seed).map_err(refused)?;
    let text = text(args, &made);
    if let Some(file) = &args.source.out {
        std::fs::write(file, &text).with_context(|| {
            Refusal::environment(format!("cannot write {}", file.display()))
                .hint("give --out a file in a directory that is there and that you may write")
        })?;
    }
    show(args, &made, text, json)?;
    Ok(if made.contradicting.is_empty() { Exit::Clean } else { Exit::Finding })
}

fn show(args: &PredictArgs, made: &MadeProfile, text: String, json: bool) -> anyhow::Result<()> {
    let points = made.profile.points.len();
    let file = args.source.out.as_ref();
    let MadeProfile { notes, contradicting, .. } = made;
    if json {
        answers::print(&ProfileMade { file, profile: text, points, notes, contradicting });
        return Ok(());
    }
    match file {
        None => write(&text)?,
        Some(file) => {
            notes.iter().for_each(|text| line(text));
            let s = if points == 1 { "" } else { "s" };
            line(&format!("wrote {} with {points} measured point{s}", file.display()));
        }
    }
    contradicting.iter().for_each(|text| note(text));
    Ok(())
}

/// The profile of what was measured, where the files are none: those of [`make`], given in place of one.
///
/// # Errors
/// As [`make`]; options of such files beside a profile.
pub(super) fn of_measured(args: &PredictArgs, catalog: &Catalog) -> anyhow::Result<Option<MadeProfile>> {
    if let [path] = &args.profile[..]
        && (path.extension().is_some_and(|extension| extension == "toml") || read_profile(path).is_ok())
    {
        let source = &args.source;
        let given = [
            ("--arm", source.arm.is_some()),
            ("--server-version", source.server_version.is_some()),
            ("--device", !source.device.is_empty()),
        ];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                let message = format!("{option}: {} is a profile, which says it", path.display());
                Err(Refusal::usage(message).hint("change its file, or give --set KEY=VALUE").into())
            }
            None => Ok(None),
        };
    }
    // A point is what was measured: its keys belong to the source, the others to the prediction.
    let of_points = args.set.iter().filter(|(key, _)| key.starts_with(POINT)).cloned().collect::<Vec<_>>();
    let source = draft(&args.profile, &args.source)?;
    let mut draft = source.clone();
    draft.set(&of_points).map_err(refused)?;
    match draft.finish(catalog, args.seed) {
        Ok(made) => Ok(Some(made)),
        // Of the others, what the source lacks describes what was measured too.
        Err(DraftError::Missing(missing)) if of_points.len() < args.set.len() => {
            let is_of_source = |key: &str| key.starts_with(POINT) || missing.iter().any(|one| one.takes(key));
            let of_source: Vec<_> = args.set.iter().filter(|(key, _)| is_of_source(key)).cloned().collect();
            let mut draft = source;
            draft.set(&of_source).map_err(refused)?;
            draft.finish(catalog, args.seed).map(Some).map_err(refused)
        }
        Err(error) => Err(refused(error)),
    }
}

/// What keys of points begin with.
pub(super) const POINT: &str = "point.";

fn draft(paths: &[PathBuf], source: &ProfileArgs) -> anyhow::Result<Draft> {
    if let [dir] = paths
        && is_run(dir)
    {
        return Draft::of_run(dir, source.arm.as_deref()).map_err(refused);
    }
    if let Some(arm) = &source.arm {
        let message = format!("--arm {arm}: the source is no run of the lab, and has no arms");
        return Err(Refusal::usage(message).hint("give the directory of `ebbtide run`, or no --arm").into());
    }
    let hints = Hints { version: source.server_version.clone(), devices: source.device.clone() };
    let seen = crate::bundle::read(paths, &hints)?;
    Draft::of_observation(&seen).map_err(refused)
}

/// The file: what a reader must know as comments, and the profile.
fn text(args: &PredictArgs, made: &MadeProfile) -> String {
    let sources: Vec<String> =
        args.source.profile_from.iter().map(|path| path.display().to_string()).collect();
    let mut text = format!(
        "# Made of {} by `ebbtide predict --profile-from`, {}. Keys: docs/predict.md.\n",
        sources.join(", "),
        crate::version::of_results()
    );
    for one in made.notes.iter().chain(&made.contradicting) {
        text.push_str(&format!("# {}\n", one.replace('\n', " ")));
    }
    text.push('\n');
    text.push_str(&made.profile.to_toml());
    text
}
