//! `ebbtide volume calibrate`: the host's figures, or a real volume's service times.

use std::path::Path;

use anyhow::Context as _;
use ebbtide_catalog::Catalog;
use ebbtide_catalog::calibrate::{FitOptions, Fitted, fit};
use ebbtide_control::protocol::Request;
use ebbtide_device::engine::PacingReport;
use ebbtide_device::host::{Calibration, HostFigures};
use ebbtide_volume::Nanos;

use super::args::CalibrateArgs;
use crate::answers::{self, FittedFromFio};
use crate::control;
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::text::{self, TextTable};

/// Runs the command.
///
/// # Errors
/// No server; a fio result that gives no service times.
pub(crate) fn run(args: &CalibrateArgs, place: &HomePath, json: bool) -> anyhow::Result<Exit> {
    if let (Some(file), Some(kind)) = (&args.fio, &args.kind) {
        return from_fio(file, kind, place, json);
    }
    let answer = control::ask(&place.served()?, &Request::Calibrate { quick: args.quick })?;
    if json {
        text::print_json(&answer.value);
    } else {
        print(&serde_json::from_value(answer.value)?);
    }
    Ok(answer.exit)
}

fn print(calibration: &Calibration) {
    let mut table = TextTable::new(&["", "BLOCK DEVICE", "NBD"]);
    let mut row = |name: &str, figure: &dyn Fn(&HostFigures) -> String| {
        let block = calibration.block.as_ref().map_or_else(|| "-".to_owned(), figure);
        table.row([name.to_owned(), block, figure(&calibration.nbd)]);
    };
    row("reads/s, 16 KiB, depth 32", &|f| format!("{:.0}", f.read_iops_depth_32));
    row("writes/s, 16 KiB, depth 32", &|f| format!("{:.0}", f.write_iops_depth_32));
    row("reads/s, 16 KiB, depth 1", &|f| format!("{:.0}", f.read_iops_depth_1));
    row("writes/s, 16 KiB, depth 1", &|f| format!("{:.0}", f.write_iops_depth_1));
    row("read latency, median", &|f| format!("{:.1} us", f.read_latency_us));
    row("write latency, median", &|f| format!("{:.1} us", f.write_latency_us));
    row("reads, 256 KiB", &|f| format!("{:.0} MiB/s", f.read_mib_s));
    row("writes, 256 KiB", &|f| format!("{:.0} MiB/s", f.write_mib_s));
    table.print("");
    let pacing = |name: &str, report: &PacingReport| {
        let (median, tail) = (Nanos(report.p50_ns), Nanos(report.p999_ns));
        text::line(&format!(
            "answers of a throttled volume on {name} machine: {median} late (median), {tail} (p99.9)"
        ));
    };
    pacing("an idle", &calibration.pacing_idle);
    pacing("a busy", &calibration.pacing_loaded);
    if calibration.others_attached > 0 {
        text::line("other volumes were attached meanwhile; their load makes these figures worse");
    }
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
