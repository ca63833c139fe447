//! The replication channels of all servers.

use super::answer::Answer;
use super::drawing::Drawing;
use super::figures::lag;
use super::label::{clean, wrapped};
use super::panel::Panel;
use super::table::{Column, Row, page, paged_head, table};
use super::theme::Level;
use crate::view::{ReplicaView, View};

/// From this lag on a channel is behind, s: the figure is rounded to whole seconds by servers.
const BEHIND_S: f64 = 2.0;

/// How far the worst channel is behind.
pub(super) fn answer(drawing: &Drawing<'_>) -> Answer {
    let channels = channels(drawing.view);
    if channels.is_empty() {
        return Answer::new(Level::Plain, "no server that is watched has a replication channel");
    }
    let stopped = channels.iter().filter(|(_, replica)| is_stopped(replica)).count();
    let count = ebbtide_text::count(channels.len(), "channel");
    if stopped > 0 {
        return Answer::new(Level::Critical, format!("{stopped} of {count} not running"));
    }
    let unknown = channels.iter().filter(|(_, replica)| replica.lag_s.is_none()).count();
    if unknown > 0 {
        return Answer::new(Level::Warning, format!("the lag of {unknown} of {count} is not known"));
    }
    let lag_of = |replica: &ReplicaView| replica.lag_s.unwrap_or(0.0);
    let worst = channels.iter().max_by(|(_, first), (_, second)| lag_of(first).total_cmp(&lag_of(second)));
    let Some((server, worst)) = worst else { return Answer::new(Level::Plain, count) };
    let level = if lag_of(worst) >= BEHIND_S { Level::Warning } else { Level::Good };
    Answer::new(level, format!("{server} is {} behind, the most of {count}", lag(worst.lag_s)))
}

/// A row for each channel, and what is known of the selected one.
pub(super) fn body(drawing: &Drawing<'_>, panel: &mut Panel<'_>) {
    let channels = channels(drawing.view);
    if channels.is_empty() {
        return;
    }
    let selected = drawing.state.place(channels.len());
    let lines = channels.len().min(panel.rows().saturating_sub(6).max(1));
    let shown = page(channels.len(), lines, Some(selected));
    let columns = [
        Column::texts(format!("  {}", paged_head("SERVER", &shown, channels.len())), 12, 0),
        Column::texts("CHANNEL", 8, 4),
        Column::texts("SOURCE", 10, 1),
        Column::texts("RECEIVER", 8, 2),
        Column::texts("APPLIER", 8, 2),
        Column::figures("BEHIND", 10, 0),
        Column::texts("BY", 9, 3),
    ];
    let rows = channels[shown.clone()].iter().zip(shown).map(|((server, replica), place)| {
        let mark = if place == selected { "> " } else { "  " };
        let [receiver, applier] = &replica.threads;
        let cells = vec![
            format!("{mark}{}", clean(server)),
            clean(&replica.channel),
            clean(&replica.source),
            clean(receiver),
            clean(applier),
            lag(replica.lag_s),
            clean(&replica.lag_by),
        ];
        let level = match replica.lag_s {
            _ if is_stopped(replica) => Level::Critical,
            None => Level::Warning,
            Some(lag_s) if lag_s >= BEHIND_S => Level::Warning,
            Some(_) => Level::Plain,
        };
        Row::new(cells, drawing.theme.style(level))
    });
    let rows: Vec<Row> = rows.collect();
    let cells = panel.columns();
    panel.lines(table(&columns, &rows, cells, drawing.theme.style(Level::Head)));
    panel.blank();
    if let Some((server, replica)) = channels.get(selected) {
        let text = if replica.error.is_empty() {
            format!("{server}: no error")
        } else {
            format!("{server}: {}", replica.error)
        };
        let lines = panel.rows();
        for line in wrapped(&text, cells, lines) {
            panel.text(&line, drawing.theme.style(Level::Plain));
        }
    }
}

fn is_stopped(replica: &ReplicaView) -> bool {
    replica.threads.iter().any(|thread| thread != "running")
}

/// Each channel with the name of its server.
fn channels(view: &View) -> Vec<(&str, &ReplicaView)> {
    let channels = view
        .servers
        .iter()
        .flat_map(|server| server.replicas.iter().map(|replica| (server.name.as_str(), replica)));
    channels.collect()
}
