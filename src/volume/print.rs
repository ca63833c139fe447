//! What the volume commands print for people.

use ebbtide_control::{RecordingView, ShadowsView, VolumeDetail, VolumeView, document, in_force};
use ebbtide_device::faults::Faults;
use ebbtide_device::host::Calibration;
use ebbtide_report::{Report, TextOptions};
use serde_json::Value;

use super::args::VolumeCommand;
use crate::document::{ColorWhen, print, text_options};
use crate::text;

/// Prints the server's answer to a command.
///
/// # Errors
/// Where the answer has another shape than this program expects; a section that it does not have.
pub(super) fn answer(command: &VolumeCommand, value: Value, color: ColorWhen) -> anyhow::Result<()> {
    let options = text_options(color, false);
    match command {
        VolumeCommand::List(_) => {
            plain(&document::list(&serde_json::from_value::<Vec<VolumeView>>(value)?), options)
        }
        VolumeCommand::Show(args) => {
            let document = document::show(&serde_json::from_value(value)?);
            let rest = if args.details { "" } else { "spec, seed, counters and pacing: --details" };
            args.sections.print(&document, TextOptions { details: args.details, ..options }, rest)
        }
        VolumeCommand::Create(_) => {
            plain(&document::created(&serde_json::from_value::<VolumeDetail>(value)?.volume), options)
        }
        VolumeCommand::Modify(args) => {
            let VolumeDetail { volume, .. } = serde_json::from_value(value)?;
            if args.owner.is_some() {
                plain(&document::given(&volume), options)?;
            }
            if args.spec.is_none() {
                return Ok(());
            }
            plain(&document::modified(&volume), options)?;
            warn_of_host(&volume);
            Ok(())
        }
        VolumeCommand::Attach(_) => {
            attached(&serde_json::from_value::<VolumeDetail>(value)?.volume);
            Ok(())
        }
        VolumeCommand::Detach(args) => {
            let shadows = serde_json::from_value::<Option<ShadowsView>>(value["shadows"].clone())?;
            let recording = serde_json::from_value::<Option<RecordingView>>(value["recording"].clone())?;
            plain(&document::detached(&args.name, shadows.as_ref(), recording.as_ref()), options)
        }
        VolumeCommand::Delete(args) => {
            text::line(&format!("deleted volume {}", args.name));
            Ok(())
        }
        VolumeCommand::Fault(args) => faults(&args.name, &value),
        VolumeCommand::CrashImage(_) => {
            crash_image(&value);
            Ok(())
        }
        VolumeCommand::Record(_) | VolumeCommand::Check(_) | VolumeCommand::Calibrate(_) => Ok(()),
    }
}

/// Prints what `volume calibrate` measured.
///
/// # Errors
/// Standard output takes no more.
pub(super) fn calibration(calibration: &Calibration, color: ColorWhen) -> anyhow::Result<()> {
    plain(&document::calibration(calibration), text_options(color, false))
}

/// Prints a document that has no details.
fn plain(document: &Report, options: TextOptions) -> anyhow::Result<()> {
    print(document, options, "")
}

/// The device or the URI alone on standard output, so that scripts can take it as it is.
fn attached(volume: &VolumeView) {
    let Some(at) = &volume.attachment else { return };
    text::line(at.device.as_deref().or(at.uri.as_deref()).unwrap_or_default());
    if let (Some(dir), Some(fs)) = (&at.mount, &at.fs) {
        let made = if at.made_fs { "new" } else { "existing" };
        text::note(&format!("mounted the {made} {fs} file system on {dir}"));
    }
    if let Some(uri) = at.uri.as_deref().filter(|uri| uri.starts_with("nbd:")) {
        text::note(&format!(
            "warning: every user of this machine can read and write the volume at {uri}, and can take all of its \
             connections: NBD over TCP asks for no password"
        ));
        text::note("hint: --nbd unix:PATH makes a socket for its owner alone");
    }
    warn_of_host(volume);
}

/// What is known against this host's carrying an attached volume.
fn warn_of_host(volume: &VolumeView) {
    for figure in &volume.host_too_slow {
        text::note(&format!("warning: this host is too slow for the volume: {figure}"));
    }
    if let Some(why) = &volume.not_calibrated {
        text::note(&format!(
            "warning: it is not known whether this host can carry the volume: calibrating failed: {why}"
        ));
        text::note("hint: mend that, then 'ebbtide volume calibrate', and attach the volume again");
    }
}

fn faults(name: &str, value: &Value) -> anyhow::Result<()> {
    let faults: Faults = serde_json::from_value(value["faults"].clone())?;
    let power = if value["power_lost"] == true { "; power is lost" } else { "" };
    text::line(&format!("volume {name}: {}{power}", in_force(&faults)));
    let cut = &value["power_cut"];
    if !cut.is_null() {
        text::line(&format!(
            "power cut with seed {}: {} writes were in flight, {} of their units are new and {} old",
            cut["seed"], cut["writes_in_flight"], cut["units_new"], cut["units_old"]
        ));
    }
    Ok(())
}

/// Prints on standard error what a detachment could not write back, and why.
pub(crate) fn warn_of_loss(volume: &str, detached: &Value) {
    let lost = detached["lost"].as_array().map(Vec::as_slice).unwrap_or_default();
    let host_errors = detached["host_errors"].as_u64().unwrap_or_default();
    let cut = detached["power_cut"].as_bool().unwrap_or_default();
    if !lost.is_empty() {
        let why = if cut { ": its power was cut, so that this is expected" } else { "" };
        text::note(&format!("warning: not everything could be written back to volume '{volume}'{why}"));
    } else if cut {
        text::note(&format!(
            "the power of volume '{volume}' was cut; nothing was waiting to be written back"
        ));
    }
    for text in lost.iter().filter_map(Value::as_str) {
        text::note(&format!("warning: volume '{volume}': {text}"));
    }
    if host_errors > 0 {
        text::note(&format!(
            "warning: {host_errors} requests of volume '{volume}' failed because the host's disk is full or broken; \
             what they were to write is lost unless it was written again"
        ));
    }
}

fn crash_image(value: &Value) {
    let cut = &value["report"]["cut"];
    text::line(&format!(
        "created {} as a power cut with seed {} would leave {} now: {} writes in flight, {} units new, {} old",
        value["image"].as_str().unwrap_or_default(),
        value["seed"],
        value["volume"].as_str().unwrap_or_default(),
        cut["writes_in_flight"],
        cut["units_new"],
        cut["units_old"],
    ));
}
