//! The answers of the volume commands as documents: the sentence first, then the figures.

use std::collections::BTreeSet;

use ebbtide_catalog::{MonthlyCost, Usd};
use ebbtide_device::engine::PacingReport;
use ebbtide_device::faults::Faults;
use ebbtide_device::host::{Calibration, HostFigures};
use ebbtide_report::{Block, Cell, Fact, Note, Report, Section, Table, Tone, spark};
use ebbtide_text::{count, fixed, rough, size, whole};
use ebbtide_volume::Nanos;

use crate::fault::in_force;
use crate::view::{
    CreditsView, InitializationState, InitializationView, LatencyView, LiveView, RecordingView, ShadowsView,
    VolumeDetail, VolumeView,
};

/// Points of the line of a minute in a fact, and in a table.
const POINTS: usize = 30;
const POINTS_IN_TABLE: usize = 12;
/// Credits below this share, in percent, are spoken of as none.
const NONE_LEFT: f64 = 0.05;
/// Credits that end sooner are pointed out, seconds.
const SOON_S: f64 = 3_600.0;

/// One section without a heading.
fn report(blocks: Vec<Block>) -> Report {
    Report { sections: vec![Section::new("", blocks)], ..Report::default() }
}

fn finding(sentence: impl Into<String>) -> Block {
    Block::Findings(vec![sentence.into()])
}

/// The answer of `volume list`.
#[must_use]
pub fn list(volumes: &[VolumeView]) -> Report {
    if volumes.is_empty() {
        return report(vec![finding("no volumes")]);
    }
    let attached = volumes.iter().filter(|volume| volume.attachment.is_some()).count();
    let costs: Vec<&MonthlyCost> = volumes.iter().filter_map(|volume| volume.monthly_cost.as_ref()).collect();
    let prices: BTreeSet<String> =
        costs.iter().map(|cost| format!("{}, {}", cost.region, cost.as_of)).collect();
    let price = if costs.is_empty() {
        "no prices".to_owned()
    } else {
        let usd: Usd = costs.iter().map(|cost| cost.usd).sum();
        let prices: Vec<String> = prices.into_iter().collect();
        format!("{usd} a month (list prices of {})", prices.join("; "))
    };
    let mut blocks =
        vec![finding(format!("{}, {attached} attached; {price}.", count(volumes.len(), "volume")))];
    let row = |volume: &VolumeView| {
        let cost = volume.monthly_cost.as_ref().map_or_else(|| "-".to_owned(), MonthlyCost::short);
        vec![
            Cell::from(volume.name.as_str()),
            Cell { tone: state_tone(volume), ..Cell::from(state(volume)) },
            size(volume.size_bytes).into(),
            credits_cell(volume),
            minute_cell(volume),
            cost.into(),
            place(volume).into(),
            size(volume.data_bytes).into(),
            volume.spec.as_str().into(),
        ]
    };
    let heads = ["Name", "State", "Size", "Credits", "IOPS", "Monthly", "Attached", "Written", "Spec"];
    let mut table = Table {
        columns: heads.map(str::to_owned).to_vec(),
        rows: volumes.iter().map(row).collect(),
        // What `volume show` has too.
        spare: vec![7, 8],
        ..Table::default()
    };
    if volumes.iter().all(|volume| volume.credits.is_none()) {
        table = table.without("Credits");
    }
    if volumes.iter().all(|volume| volume.last_minute.is_none()) {
        table = table.without("IOPS");
    }
    blocks.push(Block::Table(table));
    let notes = host_notes(volumes);
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    report(blocks)
}

/// The attached volumes that this host cannot carry, or may not.
fn host_notes(volumes: &[VolumeView]) -> Vec<Note> {
    let note = |words: &str, applies: &dyn Fn(&VolumeView) -> bool| {
        let names: Vec<&str> = volumes
            .iter()
            .filter(|volume| volume.attachment.is_some() && applies(volume))
            .map(|volume| volume.name.as_str())
            .collect();
        (!names.is_empty()).then(|| Note::caution(format!("{words}: {}", names.join(", "))))
    };
    let not_calibrated = note("host not calibrated", &|volume| volume.not_calibrated.is_some());
    let too_slow =
        note("host too slow", &|volume| volume.not_calibrated.is_none() && !volume.host_too_slow.is_empty());
    [not_calibrated, too_slow].into_iter().flatten().collect()
}

/// Credits with the time that they last.
fn credits_cell(volume: &VolumeView) -> Cell {
    let Some(credits) = &volume.credits else { return "-".into() };
    let ends_soon = credits.ends_in_s.is_some_and(|seconds| seconds < SOON_S);
    Cell {
        detail: credits.ends_in_s.map(|seconds| format!("for {}", rough(seconds))).unwrap_or_default(),
        tone: if ends_soon || credits.left_pct < NONE_LEFT { Tone::Bad } else { Tone::Plain },
        ..Cell::from(percent(credits.left_pct))
    }
}

/// The line of the last minute's IOPS with its last value.
fn minute_cell(volume: &VolumeView) -> Cell {
    let Some(minute) = volume.last_minute.as_ref().filter(|minute| !minute.iops.is_empty()) else {
        return "-".into();
    };
    let points = condensed(&minute.iops, POINTS_IN_TABLE);
    let last = minute.iops.last().copied().unwrap_or(0.0);
    format!("{} {}", spark(&points), whole(last)).into()
}

/// Means of neighbouring values, so that at most so many are left.
fn condensed(values: &[f64], points: usize) -> Vec<Option<f64>> {
    let mean = |values: &[f64]| Some(values.iter().sum::<f64>() / values.len() as f64);
    values.chunks(values.len().div_ceil(points).max(1)).map(mean).collect()
}

/// The answer of `volume create`.
#[must_use]
pub fn created(volume: &VolumeView) -> Report {
    let mut facts = vec![Fact::new("cost", cost(volume))];
    // What it has now may be less than the full credits of its description.
    facts.extend(credits(volume).map(|credits| Fact::new("credits", credits)));
    facts.extend(volume.initialization.as_ref().map(|loading| Fact::new("loaded", loaded(loading))));
    report(vec![
        finding(format!("created volume {}: {}", volume.name, volume.description)),
        Block::Facts(facts),
    ])
}

/// The answer of `volume modify`.
#[must_use]
pub fn modified(volume: &VolumeView) -> Report {
    let mut facts = vec![Fact::new("cost", cost(volume))];
    facts.extend(credits(volume).map(|credits| Fact::new("credits", credits)));
    facts.extend(modification(volume).map(|change| Fact::new("modified", change)));
    report(vec![
        finding(format!("volume {} becomes {}", volume.name, volume.description)),
        Block::Facts(facts),
    ])
}

/// The answer of `volume modify` where only the owner changes.
#[must_use]
pub fn given(volume: &VolumeView) -> Report {
    let owner = volume.owner.as_ref().map(ToString::to_string).unwrap_or_default();
    report(vec![finding(format!("volume {} belongs to {owner}", volume.name))])
}

/// The answer of `volume detach`.
#[must_use]
pub fn detached(name: &str, shadows: Option<&ShadowsView>, recording: Option<&RecordingView>) -> Report {
    let mut blocks = vec![finding(format!("detached volume {name}"))];
    blocks.extend(
        recording
            .map(|recording| Block::Text(format!("recorded {} to {}", so_far(recording), recording.path))),
    );
    blocks.extend(shadows.into_iter().flat_map(shadow_blocks));
    report(blocks)
}

/// The answer of `volume show`.
#[must_use]
pub fn show(detail: &VolumeDetail) -> Report {
    let volume = &detail.volume;
    let mut facts = vec![Fact::new("is", volume.description.as_str()), Fact::new("cost", cost(volume))];
    facts.extend(volume.id.as_ref().map(|id| Fact::new("id", id.as_str())));
    facts.extend(volume.owner.as_ref().map(|owner| Fact::new("owner", owner.to_string())));
    facts.extend(volume.damage.as_ref().map(|damage| Fact::new("damage", damage.as_str())));
    facts.extend(credits(volume).map(|credits| Fact::new("credits", credits)));
    facts.extend(volume.initialization.as_ref().map(|loading| Fact::new("loaded", loaded(loading))));
    facts.extend(modification(volume).map(|change| Fact::new("modified", change)));
    if let Some(attached) = &volume.attachment {
        let place = attached.device.as_deref().or(attached.uri.as_deref()).unwrap_or_default();
        let mount = attached.mount.as_ref().map(|dir| format!(" on {dir}")).unwrap_or_default();
        let instance = attached.instance.as_ref().map(|id| format!(", instance {id}")).unwrap_or_default();
        facts.push(Fact::new("attached", format!("{place}{mount}{instance}, since {}", attached.since)));
    }
    facts.extend(detail.live.iter().flat_map(|live| live_facts(volume, live)));
    let mut blocks = vec![finding(sentence(detail)), Block::Facts(facts)];
    let mut notes: Vec<Note> = volume
        .host_too_slow
        .iter()
        .map(|figure| Note::caution(format!("this host is too slow for the volume: {figure}")))
        .collect();
    notes.extend(
        volume.not_calibrated.iter().map(|why| {
            Note::caution(format!("it is not known whether this host can carry the volume: {why}"))
        }),
    );
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    let live = detail.live.as_ref();
    blocks.extend(live.and_then(|live| live.shadows.as_ref()).map(shadow_blocks).into_iter().flatten());
    let mut sections = vec![Section::new("", blocks)];
    sections.push(Section::new("Stored", vec![Block::Facts(stored(volume))]).named("stored").details());
    sections.extend(live.map(|live| {
        Section::new("Since it was attached", vec![Block::Facts(since(live))]).named("attached").details()
    }));
    Report { sections, ..Report::default() }
}

/// What the volume is doing, and how long its credits last.
fn sentence(detail: &VolumeDetail) -> String {
    let volume = &detail.volume;
    let kind = volume.spec.split([':', ',']).next().unwrap_or_default();
    let mut sentence = format!("{}: {kind} of {}, {}", volume.name, size(volume.size_bytes), state(volume));
    if let Some(live) = detail.live.as_ref().filter(|live| !live.power_lost) {
        let minute = &live.minute;
        sentence.push_str(&format!(
            "; {} IOPS, {} MiB/s in {}",
            whole(minute.volume_avg_iops),
            fixed(minute.volume_avg_throughput / 1024.0, 1),
            span_words(live.minute_seconds),
        ));
    }
    if let Some(left) = &volume.credits {
        sentence.push_str(&format!("; credits {}", percent(left.left_pct)));
        if let Some(ends) = left.ends_in_s {
            sentence.push_str(&format!(", which last {}", rough(ends)));
        }
    }
    sentence.push('.');
    sentence
}

/// The span of the last minute's figures.
fn span_words(seconds: f64) -> String {
    if seconds >= 59.0 {
        "the last minute".to_owned()
    } else {
        format!("the {} since it was attached", self::seconds(seconds))
    }
}

/// Burst credits as time: `2.4%: 7 min at the last minute's rate, full after 4 h 53 min idle`.
fn credits(volume: &VolumeView) -> Option<String> {
    let view = volume.credits.as_ref()?;
    let full = view.full_in_s.filter(|seconds| *seconds >= 1.0);
    let full = full.map(|seconds| format!("full after {} idle", rough(seconds)));
    let lasts = spending(volume, view);
    let parts: Vec<String> = lasts.into_iter().chain(full).collect();
    Some(match parts.is_empty() {
        true => format!("{}: full", percent(view.left_pct)),
        false => format!("{}: {}", percent(view.left_pct), parts.join(", ")),
    })
}

/// How long credits last: at the rate of the last minute, or at the burst ceiling where nothing is attached.
fn spending(volume: &VolumeView, view: &CreditsView) -> Option<String> {
    if view.left_pct < NONE_LEFT {
        return Some("the volume is at its baseline".to_owned());
    }
    if let (Some(ends), Some(over)) = (view.ends_in_s, view.over_s) {
        let rate = if over >= 59.0 {
            "the last minute's rate".to_owned()
        } else {
            format!("the rate since it was attached, {} ago", seconds(over))
        };
        return Some(format!("{} at {rate}", rough(ends)));
    }
    if view.over_s.is_some() {
        return (view.left_pct < 100.0 - NONE_LEFT).then(|| "they are not being spent".to_owned());
    }
    let figures = volume.figures.as_ref()?;
    let lasts = figures.burst_seconds? * view.left_pct / 100.0;
    let rate = match (figures.burst_iops, figures.burst_throughput_mib_s) {
        (Some(iops), _) => format!("{} IOPS", whole(iops as f64)),
        (None, Some(rate)) => format!("{} MiB/s", whole(rate)),
        (None, None) => return None,
    };
    Some(format!("{} at {rate}", rough(lasts)))
}

/// What it does now.
fn live_facts(volume: &VolumeView, live: &LiveView) -> Vec<Fact> {
    let minute = &live.minute;
    let mut facts = vec![Fact::new(
        "last minute",
        format!(
            "read {} ms, write {} ms, queue {} (over {})",
            fixed(minute.volume_avg_read_latency, 2),
            fixed(minute.volume_avg_write_latency, 2),
            fixed(minute.volume_queue_length, 1),
            seconds(live.minute_seconds)
        ),
    )];
    if let Some(by_second) = volume.last_minute.as_ref().filter(|minute| !minute.iops.is_empty()) {
        let mut line = |name: &str, values: &[f64]| {
            let highest = values.iter().copied().fold(0.0, f64::max);
            facts.push(Fact::new(
                name,
                format!("{} highest {}", spark(&condensed(values, POINTS)), whole(highest)),
            ));
        };
        line("IOPS", &by_second.iops);
        line("MiB/s", &by_second.mib_s);
    }
    if live.host_errors > 0 {
        facts.push(Fact::new(
            "host",
            format!("{} requests failed: its disk is full or broken", live.host_errors),
        ));
    }
    if live.power_lost {
        facts.push(Fact::new("power", "lost; detach and attach it again"));
    }
    if live.faults != Faults::default() {
        facts.push(Fact::new("faults", in_force(&live.faults)));
    }
    if let Some(recording) = &live.recording {
        let text = format!("{}: {}, since {}", recording.path, so_far(recording), recording.since);
        facts.push(Fact::new("recording", text));
    }
    facts
}

fn stored(volume: &VolumeView) -> Vec<Fact> {
    let [data, shared, own] = [volume.data_bytes, volume.shared_bytes, volume.allocated_bytes].map(size);
    let mut facts = vec![
        Fact::new("spec", volume.spec.as_str()),
        Fact::new("data", format!("{data} written; on the host {own} of its own and {shared} shared")),
        Fact::new("blocks", format!("{} bytes", volume.block_size)),
        Fact::new("seed", volume.seed.to_string()),
        Fact::new("created", volume.created.to_string()),
    ];
    let origin = volume.from_snapshot.as_ref().or(volume.from_volume.as_ref());
    facts.extend(origin.map(|origin| Fact::new("made from", origin.as_str())));
    facts
}

/// Counters of the attachment, and how late answers were.
fn since(live: &LiveView) -> Vec<Fact> {
    let stats = &live.stats;
    let counters = format!(
        "{} reads of {}, {} writes of {}, {} flushes, {} discards",
        stats.read.ops,
        size(stats.read.bytes),
        stats.write.ops,
        size(stats.write.bytes),
        stats.flush_ops,
        stats.discard_ops
    );
    let pacing = &live.pacing;
    let late = |ns: u64| Nanos(ns).to_string();
    let pacing = format!(
        "answers late by {} (median), {} (p99.9), {} (most); {} of them, scheduled {}",
        late(pacing.p50_ns),
        late(pacing.p999_ns),
        late(pacing.max_ns),
        pacing.count,
        pacing.scheduling
    );
    vec![Fact::new("I/O", counters), Fact::new("pacing", pacing)]
}

/// What a volume costs a month, in a line.
fn cost(volume: &VolumeView) -> String {
    volume.monthly_cost.as_ref().map_or_else(|| "-".to_owned(), MonthlyCost::line)
}

/// The state in one word or two. A volume without power is attached and answers nothing.
fn state(volume: &VolumeView) -> &'static str {
    match &volume.attachment {
        Some(attached) if attached.power_lost => "power lost",
        _ => volume.state.name(),
    }
}

fn state_tone(volume: &VolumeView) -> Tone {
    let power_lost = volume.attachment.as_ref().is_some_and(|attached| attached.power_lost);
    if power_lost || volume.damage.is_some() { Tone::Bad } else { Tone::Plain }
}

fn place(volume: &VolumeView) -> String {
    let Some(attached) = &volume.attachment else { return "-".to_owned() };
    let place = attached.mount.as_deref().or(attached.device.as_deref()).or(attached.uri.as_deref());
    place.unwrap_or("-").to_owned()
}

fn percent(credits: f64) -> String {
    format!("{}%", fixed(credits, 1))
}

fn modification(volume: &VolumeView) -> Option<String> {
    let change = volume.modification.as_ref()?;
    let (state, done, from) = (change.state.name(), change.progress_pct, &change.source);
    Some(format!("{state} {done}%, from {from}, until {}", change.completes))
}

/// How much of its snapshot a volume has, in a line.
fn loaded(initialization: &InitializationView) -> String {
    let InitializationView { mode, state, progress_pct, total_bytes, loaded_bytes, since, completes } =
        initialization;
    let total = size(*total_bytes);
    if *state == InitializationState::Completed {
        return format!("all {total} of the snapshot; {mode}, since {since}");
    }
    let rest = match completes {
        Some(completes) => format!("the rest by {completes}"),
        None => "the rest when it is touched".to_owned(),
    };
    format!(
        "{progress_pct}%, {} of {total} of the snapshot; {mode}, since {since}, {rest}",
        size(*loaded_bytes)
    )
}

/// What shadows would have done beside the volume itself.
fn shadow_blocks(shadows: &ShadowsView) -> Vec<Block> {
    let requests = count(shadows.requests, "request");
    let heads = [
        "Volume",
        "Read p50",
        "Read p99",
        "Read max",
        "Write p50",
        "Write p99",
        "Write max",
        "Over its limits",
        "Credits",
        "Monthly",
    ];
    let latency = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), ebbtide_text::latency);
    let latencies = |view: &LatencyView| [view.p50_us, view.p99_us, view.max_us].map(latency);
    let row = |name: &str, read, write, rest: [String; 3]| -> Vec<Cell> {
        let texts = [&[name.to_owned()][..], &latencies(read), &latencies(write), &rest].concat();
        texts.into_iter().map(Cell::from).collect()
    };
    let none = || "-".to_owned();
    let mut rows = vec![row("(this one)", &shadows.live_read, &shadows.live_write, [none(), none(), none()])];
    for shadow in &shadows.shadows {
        let over = [
            shadow.over_volume_iops_pct,
            shadow.over_volume_throughput_pct,
            shadow.over_instance_iops_pct,
            shadow.over_instance_throughput_pct,
        ];
        let over = over.into_iter().fold(0.0, f64::max);
        let cost = shadow.monthly_cost.as_ref().map_or_else(none, MonthlyCost::short);
        let credits = shadow.credit_pct.map_or_else(none, percent);
        rows.push(row(&shadow.spec, &shadow.read, &shadow.write, [percent(over), credits, cost]));
    }
    let table = Table {
        caption: format!("shadows, for {} ({requests}):", seconds(shadows.seconds)),
        columns: heads.map(str::to_owned).to_vec(),
        rows,
        // The largest and the median latencies: the p99 stays.
        spare: vec![3, 6, 1, 4, 8],
        ..Table::default()
    };
    let mut blocks = vec![Block::Table(table)];
    if shadows.lost > 0 {
        let lost = count(shadows.lost, "request");
        let note = Note::caution(format!("the shadows did not get {lost}: this machine was too slow"));
        blocks.push(Block::Notes(vec![note]));
    }
    blocks
}

/// The answer of `volume calibrate`.
#[must_use]
pub fn calibration(calibration: &Calibration) -> Report {
    let figures = calibration.block.as_ref().unwrap_or(&calibration.nbd);
    let how = if calibration.block.is_some() { "as a block device" } else { "through NBD" };
    let sentence = format!(
        "this host carries {} reads and {} writes a second of 16 KiB, {} and {} MiB/s, {how}",
        whole(figures.read_iops_depth_32),
        whole(figures.write_iops_depth_32),
        whole(figures.read_mib_s),
        whole(figures.write_mib_s),
    );
    let row = |name: &str, figure: &dyn Fn(&HostFigures) -> String| {
        let block = calibration.block.as_ref().map_or_else(|| "-".to_owned(), figure);
        [name.to_owned(), block, figure(&calibration.nbd)].map(Cell::from).to_vec()
    };
    let table = Table {
        columns: ["", "Block device", "NBD"].map(str::to_owned).to_vec(),
        rows: vec![
            row("reads/s, 16 KiB, depth 32", &|f| whole(f.read_iops_depth_32)),
            row("writes/s, 16 KiB, depth 32", &|f| whole(f.write_iops_depth_32)),
            row("reads/s, 16 KiB, depth 1", &|f| whole(f.read_iops_depth_1)),
            row("writes/s, 16 KiB, depth 1", &|f| whole(f.write_iops_depth_1)),
            row("read latency, median", &|f| format!("{} us", fixed(f.read_latency_us, 1))),
            row("write latency, median", &|f| format!("{} us", fixed(f.write_latency_us, 1))),
            row("reads, 256 KiB", &|f| format!("{} MiB/s", whole(f.read_mib_s))),
            row("writes, 256 KiB", &|f| format!("{} MiB/s", whole(f.write_mib_s))),
        ],
        ..Table::default()
    };
    let pacing = |name: &str, report: &PacingReport| {
        let (median, tail) = (Nanos(report.p50_ns), Nanos(report.p999_ns));
        Block::Text(format!(
            "answers of a throttled volume on {name} machine: {median} late (median), {tail} (p99.9)"
        ))
    };
    let mut blocks = vec![
        finding(sentence),
        Block::Table(table),
        pacing("an idle", &calibration.pacing_idle),
        pacing("a busy", &calibration.pacing_loaded),
    ];
    if calibration.others_attached > 0 {
        let others = "other volumes were attached meanwhile; their load makes these figures worse";
        blocks.push(Block::Notes(vec![Note::caution(others)]));
    }
    report(blocks)
}

/// How much was recorded, for people.
#[must_use]
pub fn so_far(view: &RecordingView) -> String {
    format!("{}, {}", count(view.requests, "request"), size(view.bytes))
}

/// A span of seconds for people, with one decimal below one second.
fn seconds(span: f64) -> String {
    match span {
        0.95.. => ebbtide_text::seconds(span),
        0.05.. => format!("{} s", fixed(span, 1)),
        _ => "less than 0.1 s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_below_a_second_is_never_shown_as_none() {
        let shown = [0.01, 0.05, 0.44, 0.949, 0.95, 59.6, 3_605.0].map(seconds);
        assert_eq!(shown, ["less than 0.1 s", "0.1 s", "0.4 s", "0.9 s", "1 s", "60 s", "1 h 5 s"]);
    }
}
