//! `ebbtide volume calibrate`: the host's figures, or a real volume's service times.

use std::path::Path;

use anyhow::Context as _;
use ebbtide_catalog::Catalog;
use ebbtide_catalog::calibrate::{FitOptions, Fitted, fit};
use ebbtide_control::protocol::Request;

use super::args::CalibrateArgs;
use super::print;
use crate::answers::{self, FittedFromFio};
use crate::control;
use crate::document::ColorWhen;
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::text;

/// Runs the command.
///
/// # Errors
/// No server; a fio result that gives no service times.
pub(crate) fn run(
    args: &CalibrateArgs,
    place: &HomePath,
    color: ColorWhen,
    json: bool,
) -> anyhow::Result<Exit> {
    if let (Some(file), Some(kind)) = (&args.fio, &args.kind) {
        return from_fio(file, kind, place, json);
    }
    let answer = control::ask(&place.served()?, &Request::Calibrate { quick: args.quick })?;
    if json {
        text::print_json(&answer.value);
    } else {
        print::calibration(&serde_json::from_value(answer.value)?, color)?;
    }
    Ok(answer.exit)
}

/// Fits service times and puts them into the home's catalogue overrides.
fn from_fio(file: &Path, kind: &str, place: &HomePath, json: bool) -> anyhow::Result<Exit> {
    let result = std::fs::read_to_string(file).map_err(|error| {
        anyhow::Error::new(error).context(Refusal::usage(format!("cannot read {}", file.display())))
    })?;
    let now = jiff::Timestamp::now();
    let options = FitOptions {
        kind: kind.to_owned(),
        name: None,
        source: format!("fio result {}", file.display()),
        date: now.strftime("%Y-%m-%d").to_string(),
        iops_limit: None,
        throughput_limit_mib_s: None,
    };
    let fitted = fit(&result, &options).map_err(|error| {
        anyhow::Error::new(error)
            .context(Refusal::usage(format!("{} gives no service times", file.display())))
    })?;
    let overrides = place.made()?.overrides_file();
    add_override(&overrides, &fitted.toml)?;
    if json {
        let Fitted { read, write, flush, warnings, .. } = &fitted;
        answers::print(&FittedFromFio { kind, read, write, flush, warnings, overrides: &overrides });
    } else {
        print_fitted(kind, &fitted, &overrides);
    }
    Ok(Exit::Clean)
}

/// Adds an entry to the overrides file, after those that are there: the last one of a type holds.
/// The file changes only where the catalogue reads the new one.
fn add_override(overrides: &Path, entry: &str) -> anyhow::Result<()> {
    let failed = |action: &str| format!("cannot {action} {}", overrides.display());
    let mut all = match std::fs::read_to_string(overrides) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| failed("read"))? + "\n",
    };
    all.push_str(entry);
    let new = overrides.with_extension("new");
    std::fs::write(&new, all).with_context(|| failed("write"))?;
    if let Err(error) = Catalog::with_overrides(&new) {
        let _ = std::fs::remove_file(&new);
        return Err(anyhow::Error::new(error).context(Refusal::invariant("the fitted entry is refused")));
    }
    std::fs::rename(&new, overrides).with_context(|| failed("replace"))
}

fn print_fitted(kind: &str, fitted: &Fitted, overrides: &Path) {
    for (name, curve) in [("read", &fitted.read), ("write", &fitted.write), ("flush", &fitted.flush)] {
        let Some(curve) = curve else { continue };
        let points: Vec<_> = curve.iter().map(|(percent, us)| format!("p{percent} {us:.0} us")).collect();
        text::line(&format!("{kind} {name}: {}", points.join(", ")));
    }
    for warning in &fitted.warnings {
        text::line(&format!("warning: {warning}"));
    }
    text::line(&format!("written to {}; volumes attached from now on use it", overrides.display()));
}
