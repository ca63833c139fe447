//! What the volume commands print for people.

use std::collections::BTreeSet;

use ebbtide_catalog::MonthlyCost;
use ebbtide_control::{
    InitializationState, InitializationView, LatencyView, LiveView, RecordingView, ShadowsView, VolumeDetail,
    VolumeView, in_force,
};
use ebbtide_device::faults::Faults;
use ebbtide_volume::Nanos;
use serde_json::Value;

use super::args::VolumeCommand;
use super::record::so_far;
use crate::text::{self, TextTable};

/// Prints the server's answer to a command.
///
/// # Errors
/// Where the answer has another shape than this program expects.
pub(super) fn answer(command: &VolumeCommand, value: Value) -> anyhow::Result<()> {
    match command {
        VolumeCommand::List(_) => list(&serde_json::from_value::<Vec<VolumeView>>(value)?),
        VolumeCommand::Show(_) => show(&serde_json::from_value(value)?),
        VolumeCommand::Create(_) => {
            let VolumeDetail { volume, .. } = serde_json::from_value(value)?;
            text::line(&format!("created volume {}: {}", volume.name, volume.description));
            text::line(&format!("cost: {}", cost(&volume)));
            if let Some(initialization) = &volume.initialization {
                text::line(&format!("loaded: {}", loaded(initialization)));
            }
        }
        VolumeCommand::Modify(_) => {
            let VolumeDetail { volume, .. } = serde_json::from_value(value)?;
            text::line(&format!("volume {} becomes {}", volume.name, volume.description));
            warn_of_host(&volume);
        }
        VolumeCommand::Attach(_) => attached(&serde_json::from_value::<VolumeDetail>(value)?.volume),
        VolumeCommand::Detach(args) => {
            text::line(&format!("detached volume {}", args.name));
            if let Some(shadows) = serde_json::from_value(value["shadows"].clone())? {
                show_shadows(&shadows);
            }
            if let Some(recording) =
                serde_json::from_value::<Option<RecordingView>>(value["recording"].clone())?
            {
                text::line(&format!("recorded {} to {}", so_far(&recording), recording.path));
            }
        }
        VolumeCommand::Delete(args) => text::line(&format!("deleted volume {}", args.name)),
        VolumeCommand::Fault(args) => faults(&args.name, &value)?,
        VolumeCommand::CrashImage(_) => crash_image(&value),
        VolumeCommand::Record(_) | VolumeCommand::Check(_) | VolumeCommand::Calibrate(_) => {}
    }
    Ok(())
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

fn list(volumes: &[VolumeView]) {
    let mut table =
        TextTable::new(&["NAME", "STATE", "SIZE", "DATA", "CREDITS", "COST/MONTH", "ATTACHED", "SPEC"]);
    for volume in volumes {
        table.row([
            volume.name.clone(),
            state(volume).to_owned(),
            text::size(volume.size_bytes),
            text::size(volume.data_bytes),
            percent(volume.credit_pct),
            volume.monthly_cost.as_ref().map_or_else(|| "-".to_owned(), MonthlyCost::short),
            place(volume),
            volume.spec.clone(),
        ]);
    }
    table.print("no volumes");
    let costs = volumes.iter().filter_map(|volume| volume.monthly_cost.as_ref());
    let of: BTreeSet<String> = costs.map(|cost| format!("{}, {}", cost.region, cost.as_of)).collect();
    if !of.is_empty() {
        let of: Vec<String> = of.into_iter().collect();
        text::line(&format!("COST/MONTH: US dollars, list prices ({})", of.join("; ")));
    }
}

/// What a volume costs a month, in a line.
fn cost(volume: &VolumeView) -> String {
    volume.monthly_cost.as_ref().map_or_else(|| "-".to_owned(), MonthlyCost::line)
}

/// The state in one word or two. A volume without power is attached and answers nothing.
fn state(volume: &VolumeView) -> &'static str {
    match &volume.attachment {
        Some(at) if at.power_lost => "power lost",
        _ => volume.state.name(),
    }
}

fn place(volume: &VolumeView) -> String {
    let Some(at) = &volume.attachment else { return "-".to_owned() };
    let mark = match (&volume.not_calibrated, volume.host_too_slow.is_empty()) {
        (Some(_), _) => " (host not calibrated)",
        (None, false) => " (host too slow)",
        (None, true) => "",
    };
    let at = at.mount.as_deref().or(at.device.as_deref()).or(at.uri.as_deref());
    format!("{}{mark}", at.unwrap_or("-"))
}

fn percent(credits: Option<f64>) -> String {
    credits.map_or_else(|| "-".to_owned(), |credits| format!("{credits:.1}%"))
}

/// How much of its snapshot a volume has, in a line.
fn loaded(initialization: &InitializationView) -> String {
    let InitializationView { mode, state, progress_pct, total_bytes, loaded_bytes, since, completes } =
        initialization;
    let total = text::size(*total_bytes);
    if *state == InitializationState::Completed {
        return format!("all {total} of the snapshot; {mode}, since {since}");
    }
    let rest = match completes {
        Some(completes) => format!("the rest by {completes}"),
        None => "the rest when it is touched".to_owned(),
    };
    format!(
        "{progress_pct}%, {} of {total} of the snapshot; {mode}, since {since}, {rest}",
        text::size(*loaded_bytes)
    )
}

fn show(detail: &VolumeDetail) {
    let volume = &detail.volume;
    let row = |name: &str, value: &str| text::line(&format!("{name:<12}{value}"));
    row("name", &volume.name);
    row("spec", &volume.spec);
    row("is", &volume.description);
    row("cost", &cost(volume));
    row("state", state(volume));
    if let Some(damage) = &volume.damage {
        row("damage", damage);
    }
    let (data, shared) = (text::size(volume.data_bytes), text::size(volume.shared_bytes));
    let size = text::size(volume.size_bytes);
    let own = text::size(volume.allocated_bytes);
    row("size", &format!("{size}, {data} written; on the host {own} of its own and {shared} shared"));
    row("blocks", &format!("{} bytes; seed {}; created {}", volume.block_size, volume.seed, volume.created));
    if let Some(origin) = volume.from_snapshot.as_ref().or(volume.from_volume.as_ref()) {
        row("made from", origin);
    }
    if let Some(initialization) = &volume.initialization {
        row("loaded", &loaded(initialization));
    }
    if volume.credit_pct.is_some() {
        row("credits", &percent(volume.credit_pct));
    }
    if let Some(change) = &volume.modification {
        let (state, done, from) = (change.state.name(), change.progress_pct, &change.source);
        row("modified", &format!("{state} {done}%, from {from}, until {}", change.completes));
    }
    if let Some(at) = &volume.attachment {
        let place = at.device.as_deref().or(at.uri.as_deref()).unwrap_or_default();
        let mount = at.mount.as_ref().map(|dir| format!(" on {dir}")).unwrap_or_default();
        let instance = at.instance.as_ref().map(|id| format!(", instance {id}")).unwrap_or_default();
        row("attached", &format!("{place}{mount}{instance}, since {}", at.since));
    }
    for figure in &volume.host_too_slow {
        row("host", &format!("too slow: {figure}"));
    }
    if let Some(why) = &volume.not_calibrated {
        row("host", &format!("not calibrated: {why}"));
    }
    if let Some(live) = &detail.live {
        show_live(live, &row);
    }
}

fn show_live(live: &LiveView, row: &dyn Fn(&str, &str)) {
    let (stats, minute) = (&live.stats, &live.minute);
    row(
        "since then",
        &format!(
            "{} reads of {}, {} writes of {}, {} flushes, {} discards",
            stats.read.ops,
            text::size(stats.read.bytes),
            stats.write.ops,
            text::size(stats.write.bytes),
            stats.flush_ops,
            stats.discard_ops
        ),
    );
    row(
        "last minute",
        &format!(
            "{:.0} IOPS, {:.1} MiB/s, read {:.2} ms, write {:.2} ms, queue {:.1} (over {})",
            minute.volume_avg_iops,
            minute.volume_avg_throughput / 1024.0,
            minute.volume_avg_read_latency,
            minute.volume_avg_write_latency,
            minute.volume_queue_length,
            text::seconds(live.minute_seconds)
        ),
    );
    let late = |ns: u64| Nanos(ns).to_string();
    let pacing = &live.pacing;
    row(
        "pacing",
        &format!(
            "answers late by {} (median), {} (p99.9), {} (most); {} of them, scheduled {}",
            late(pacing.p50_ns),
            late(pacing.p999_ns),
            late(pacing.max_ns),
            pacing.count,
            pacing.scheduling
        ),
    );
    if live.host_errors > 0 {
        row("host", &format!("{} requests failed: its disk is full or broken", live.host_errors));
    }
    if live.power_lost {
        row("power", "lost; detach and attach it again");
    }
    if live.faults != Faults::default() {
        row("faults", &in_force(&live.faults));
    }
    if let Some(recording) = &live.recording {
        row("recording", &format!("{}: {}, since {}", recording.path, so_far(recording), recording.since));
    }
    if let Some(shadows) = &live.shadows {
        show_shadows(shadows);
    }
}

/// What shadows would have done beside the volume itself.
fn show_shadows(shadows: &ShadowsView) {
    let requests = ebbtide_text::count(shadows.requests, "request");
    text::line(&format!("\nshadows, for {} ({requests}):", text::seconds(shadows.seconds)));
    let heads = [
        "VOLUME",
        "READ P50",
        "P99",
        "MAX",
        "WRITE P50",
        "P99",
        "MAX",
        "OVER ITS LIMITS",
        "CREDITS",
        "A MONTH",
    ];
    let mut table = TextTable::new(&heads);
    let latency = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), ebbtide_text::latency);
    let latencies = |view: &LatencyView| [view.p50_us, view.p99_us, view.max_us].map(latency);
    let mut row = |name: &str, read, write, rest: [String; 3]| {
        table.row([&[name.to_owned()][..], &latencies(read), &latencies(write), &rest].concat());
    };
    let none = || "-".to_owned();
    row("(this one)", &shadows.live_read, &shadows.live_write, [none(), none(), none()]);
    for shadow in &shadows.shadows {
        let over = [
            shadow.over_volume_iops_pct,
            shadow.over_volume_throughput_pct,
            shadow.over_instance_iops_pct,
            shadow.over_instance_throughput_pct,
        ];
        let over = over.into_iter().fold(0.0, f64::max);
        let cost = shadow.monthly_cost.as_ref().map_or_else(none, MonthlyCost::short);
        row(
            &shadow.spec,
            &shadow.read,
            &shadow.write,
            [format!("{over:.1}%"), percent(shadow.credit_pct), cost],
        );
    }
    table.print("");
    if shadows.lost > 0 {
        let lost = ebbtide_text::count(shadows.lost, "request");
        text::line(&format!("  the shadows did not get {lost}: this machine was too slow"));
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
