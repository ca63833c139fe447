//! Graphs of a server or a volume over the last minutes to days.

use super::answer::Answer;
use super::chart::{Time, draw_graphs};
use super::drawing::Drawing;
use super::figures::{day_and_minute, in_unit, minute_of_day};
use super::panel::Panel;
use super::theme::Level;
use crate::view::{Graph, Subject};

/// The most that the first graph shows, in which time.
pub(super) fn answer(drawing: &Drawing<'_>) -> Answer {
    let Some(subject) = drawing.state.subject(drawing.view) else {
        return Answer::new(Level::Warning, "no history: no server and no volume is watched");
    };
    let (Subject::Server(name) | Subject::Storage(name)) = subject;
    let span = ebbtide_text::seconds(drawing.state.span_s() as f64);
    let time = match drawing.state.wanted(drawing.view, 0) {
        Some((_, range)) if !drawing.state.is_now() => {
            let write = if range.to_s.saturating_sub(range.from_s) >= 86_400 {
                day_and_minute
            } else {
                minute_of_day
            };
            format!("{span} to {}", write(range.to_s, drawing.view.utc_offset_s))
        }
        _ => format!("last {span}"),
    };
    let most =
        drawing.graphs.first().and_then(|graph| most(graph).map(|(label, value)| (graph, label, value)));
    match most {
        Some((graph, label, value)) => {
            let value = in_unit(value, graph.unit);
            Answer::new(Level::Head, format!("{name}, {time}: {} up to {value} ({label})", graph.title))
        }
        None => Answer::new(Level::Warning, format!("{name}, {time}: no values were recorded")),
    }
}

/// The graphs that fit, those of the first row first.
pub(super) fn body(drawing: &Drawing<'_>, panel: &mut Panel<'_>) {
    let time = Time { utc_offset_s: drawing.view.utc_offset_s, theme: drawing.theme };
    let first = drawing.state.graph(drawing.graphs.len());
    let (buffer, area) = panel.rest();
    draw_graphs(buffer, area, drawing.graphs, first, time);
}

/// The largest value of a graph, and its line.
fn most(graph: &Graph) -> Option<(&str, f64)> {
    let values = graph
        .lines
        .iter()
        .flat_map(|line| line.values.iter().flatten().map(|value| (line.label.as_str(), *value)));
    values.filter(|(_, value)| value.is_finite()).max_by(|first, second| first.1.total_cmp(&second.1))
}
