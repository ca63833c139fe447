//! Volumes and devices: all of them, and the figures and graphs of the selected one.

use super::answer::Answer;
use super::chart::{Time, draw_graphs};
use super::drawing::Drawing;
use super::figures::{bytes_per_second, io_time, number, per_second, ratio, share, sum, wait};
use super::label::{clean, wrapped};
use super::overview::storage_rows;
use super::panel::Panel;
use super::table::grid;
use super::theme::Level;
use crate::view::StorageView;

/// The cells of the name of a figure, and a blank.
const LABEL: usize = 18;

/// From this share of the time on, a limit is what the answer is about.
const HELD: f64 = 0.01;

/// How near the selected volume is to its limits, and when its credits end.
pub(super) fn answer(drawing: &Drawing<'_>) -> Answer {
    let Some((_, storage)) = drawing.state.storage(drawing.view) else {
        return Answer::new(Level::Warning, "no volume and no device is watched");
    };
    let iops = sum(storage.reads, storage.writes);
    let used = match storage.iops_limit {
        Some(limit) => format!("{} of {} IOPS", per_second(iops), per_second(Some(limit))),
        None => format!("{} IOPS", per_second(iops)),
    };
    let mut parts = vec![format!("{}: {used}", storage.name)];
    let held = storage.throttled.filter(|held| *held >= HELD);
    if let Some(held) = held {
        let limit = storage.limited_by.as_deref().unwrap_or("a limit");
        parts.push(format!("held by {limit} {} of the time", share(Some(held))));
    }
    let end_s = storage.credits.as_ref().and_then(|credits| credits.end_s);
    if end_s.is_some() {
        parts.push(format!("credits end in {}", wait(end_s)));
    }
    let level = if held.is_some() || end_s.is_some() { Level::Warning } else { Level::Good };
    Answer::new(level, parts.join(", "))
}

/// All volumes in a third of the lines, then the selected one.
pub(super) fn body(drawing: &Drawing<'_>, panel: &mut Panel<'_>) {
    let Some((place, storage)) = drawing.state.storage(drawing.view) else { return };
    let theme = drawing.theme;
    let lines = drawing.view.storage.len().min((panel.rows() / 3).saturating_sub(1).max(1));
    let columns = panel.columns();
    panel.lines(storage_rows(drawing, lines, columns, Some(place)));
    for line in wrapped(&about(storage), columns, 2) {
        panel.text(&line, theme.style(Level::Dim));
    }
    panel.lines(grid(&figures(storage), columns, LABEL, theme.style(Level::Dim)));
    let time = Time { utc_offset_s: drawing.view.utc_offset_s, theme };
    let first = drawing.state.graph(drawing.graphs.len());
    let (buffer, area) = panel.rest();
    draw_graphs(buffer, area, drawing.graphs, first, time);
}

/// What it is, where it is mounted, what lies on it, and whose figures these are.
fn about(storage: &StorageView) -> String {
    let mut parts = vec![clean(&storage.name)];
    if !storage.spec.is_empty() {
        parts.push(clean(&storage.spec));
    }
    if !storage.mounts.is_empty() {
        parts.push(format!("at {}", storage.mounts.join(", ")));
    }
    if !storage.roles.is_empty() {
        parts.push(format!("has {}", storage.roles.join(" and ")));
    }
    parts.push(if storage.exact { "figures of the model" } else { "figures of the kernel" }.to_owned());
    clean(&parts.join("; "))
}

fn figures(storage: &StorageView) -> Vec<(&'static str, String)> {
    let bytes = sum(storage.read_bytes, storage.written_bytes);
    let bytes_used = share(ratio(bytes, storage.bytes_limit));
    let iops_used = share(ratio(sum(storage.reads, storage.writes), storage.iops_limit));
    let mut figures = vec![
        ("IOPS limit used", format!("{iops_used} of {}", per_second(storage.iops_limit))),
        ("bytes limit used", format!("{bytes_used} of {}", bytes_per_second(storage.bytes_limit))),
        ("read", bytes_per_second(storage.read_bytes)),
        ("written", bytes_per_second(storage.written_bytes)),
        ("read time", io_time(storage.read_s)),
        ("write time", io_time(storage.write_s)),
        ("queue", number(storage.queue)),
        ("held by a limit", share(storage.throttled)),
    ];
    if let Some(credits) = &storage.credits {
        figures.push(("credits", share(Some(credits.share))));
        let end = credits.end_s.map_or_else(|| "not at this load".to_owned(), |end_s| wait(Some(end_s)));
        figures.push(("credits end in", end));
        figures.push(("full if idle in", wait(credits.full_s)));
    }
    figures
}
