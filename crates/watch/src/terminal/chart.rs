//! Graphs over time: a title with the last values, and below it the lines. A gap stays a gap.

use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Rect};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis as ChartAxis, Chart, Dataset, GraphType, Widget as _};

use super::axis::Axis;
use super::figures::{UNKNOWN, day_and_minute, in_unit, minute_of_day, time_of_day};
use super::label::{clean, shortened, width};
use super::theme::{Level, Theme};
use crate::view::{Graph, GraphLine};

/// From this width on two graphs are beside each other, cells.
const TWO_COLUMNS: u16 = 76;
/// What a graph needs: a title, four lines of values, the axis and its labels.
const LEAST_ROWS: u16 = 7;
/// In less, labels alone would fill a graph, cells.
const LEAST_COLUMNS: u16 = 20;
/// The most cells of the label of a line.
const LABEL: usize = 16;

/// How lines are told apart without colours, and the sign for it in the title.
const MARKERS: [(Marker, &str); 3] =
    [(Marker::Braille, "\u{28c0}"), (Marker::Dot, "\u{2022}"), (Marker::Bar, "\u{2584}")];

/// How many graphs fit into an area: columns and rows.
fn places(count: usize, area: Rect) -> (u16, u16) {
    let columns = if area.width >= TWO_COLUMNS && count > 1 { 2 } else { 1 };
    let wanted = u16::try_from(count.div_ceil(usize::from(columns))).unwrap_or(u16::MAX);
    let rows = if area.width < LEAST_COLUMNS { 0 } else { area.height / LEAST_ROWS };
    (columns, rows.min(wanted))
}

/// Draws as many graphs as fit, beginning with the one at `first`, and as large as they can be.
pub(super) fn draw_graphs(buffer: &mut Buffer, area: Rect, graphs: &[Graph], first: usize, time: Time) {
    let shown = graphs.get(first..).unwrap_or_default();
    let (columns, rows) = places(shown.len(), area);
    if rows == 0 {
        return;
    }
    // A cell between two columns.
    let (width, height) = ((area.width - (columns - 1)) / columns, area.height / rows);
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    for (graph, (row, column)) in shown.iter().zip(places) {
        let place = Rect { x: area.x + column * (width + 1), y: area.y + row * height, width, height };
        draw_graph(buffer, place, graph, time);
    }
}

/// How times and lines are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    /// What local time is ahead of UTC, seconds.
    pub(super) utc_offset_s: i64,
    /// Styles.
    pub(super) theme: Theme,
}

fn draw_graph(buffer: &mut Buffer, area: Rect, graph: &Graph, time: Time) {
    let title = title(graph, time.theme);
    let whole = title.width() <= usize::from(area.width);
    let (end, _) = buffer.set_line(area.x, area.y, &title, area.width);
    if !whole && end > area.x {
        buffer.set_string(end - 1, area.y, "\u{2026}", time.theme.style(Level::Dim));
    }
    let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let points = graph.lines.iter().map(|line| line.values.len()).max().unwrap_or(0);
    // The axis of time and its labels are below.
    let axis = Axis::new(graph, usize::from(below.height.saturating_sub(2)));
    match axis {
        Some(axis) if points >= 2 => draw_lines(buffer, below, graph, &axis, points, time),
        _ => {
            let text = "no values in this time";
            buffer.set_stringn(
                below.x,
                below.y,
                text,
                usize::from(below.width),
                time.theme.style(Level::Dim),
            );
        }
    }
}

fn draw_lines(buffer: &mut Buffer, area: Rect, graph: &Graph, axis: &Axis, points: usize, time: Time) {
    let theme = time.theme;
    let runs: Vec<(usize, Vec<(f64, f64)>)> = graph
        .lines
        .iter()
        .enumerate()
        .flat_map(|(place, line)| runs(line, axis).into_iter().map(move |run| (place, run)))
        .collect();
    let sets = runs.iter().map(|(place, run)| {
        Dataset::default()
            .data(run)
            .marker(marker(*place, theme).0)
            .graph_type(GraphType::Line)
            .style(theme.line(*place))
    });
    let dim = theme.style(Level::Dim);
    let last = points.saturating_sub(1);
    let end_s = graph
        .start_s
        .saturating_add(i64::try_from(last).unwrap_or(i64::MAX).saturating_mul(graph.step_s.into()));
    let label = axis.labels.iter().map(|label| width(label)).max().unwrap_or(0);
    let room = usize::from(area.width).saturating_sub(label + 1);
    let times = time_labels(graph.start_s, end_s, time.utc_offset_s, room);
    let x_axis = ChartAxis::default()
        .style(dim)
        .bounds([0.0, last as f64])
        .labels(times.into_iter().map(|label| Line::styled(label, dim)))
        .labels_alignment(Alignment::Right);
    let y_axis = ChartAxis::default()
        .style(dim)
        .bounds(axis.bounds)
        .labels(axis.labels.iter().map(|label| Line::styled(label.clone(), dim)))
        .labels_alignment(Alignment::Right);
    Chart::new(sets.collect()).x_axis(x_axis).y_axis(y_axis).legend_position(None).render(area, buffer);
}

/// The values between gaps, as positions: the place of a value in time, and that on the axis.
fn runs(line: &GraphLine, axis: &Axis) -> Vec<Vec<(f64, f64)>> {
    let mut runs = vec![Vec::new()];
    for (place, value) in line.values.iter().enumerate() {
        match value.and_then(|value| axis.position(value)) {
            Some(position) => {
                if let Some(run) = runs.last_mut() {
                    run.push((place as f64, position));
                }
            }
            None => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// The title: what the graph shows, and each line with its last value.
fn title(graph: &Graph, theme: Theme) -> Line<'static> {
    let mut spans = vec![Span::styled(clean(graph.title), theme.style(Level::Head))];
    if graph.logarithmic {
        spans.push(Span::styled(" (log)", theme.style(Level::Dim)));
    }
    for (place, line) in graph.lines.iter().enumerate() {
        let value = last_value(line).map_or_else(|| UNKNOWN.to_owned(), |value| in_unit(value, graph.unit));
        let text = format!("  {} {} {value}", marker(place, theme).1, shortened(&line.label, LABEL));
        spans.push(Span::styled(text, theme.line(place)));
    }
    Line::from(spans)
}

/// The last value, or one of the two before: the last second may not have been read yet.
fn last_value(line: &GraphLine) -> Option<f64> {
    line.values.iter().rev().take(3).copied().flatten().find(|value| value.is_finite())
}

fn marker(place: usize, theme: Theme) -> (Marker, &'static str) {
    if theme.has_color() { MARKERS[0] } else { MARKERS[place % MARKERS.len()] }
}

/// The times at the begin, in the middle and at the end of an axis of so many cells; without the middle where it has no room.
fn time_labels(from_s: i64, to_s: i64, utc_offset_s: i64, room: usize) -> Vec<String> {
    let span_s = to_s.saturating_sub(from_s);
    let write: fn(i64, i64) -> String = match span_s {
        86_400.. => day_and_minute,
        1_200.. => minute_of_day,
        _ => time_of_day,
    };
    let times = [from_s, from_s.saturating_add(span_s / 2), to_s].map(|unix_s| write(unix_s, utc_offset_s));
    // Each label has a third of the axis, with a blank beside it.
    let fits = times[1].len() < room / 3;
    let shown = times.into_iter().enumerate().filter(|(place, _)| fits || *place != 1);
    shown.map(|(_, label)| label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(values: Vec<Option<f64>>) -> Graph {
        let line = GraphLine { label: "reads".into(), values };
        Graph {
            key: "iops",
            title: "operations",
            unit: "/s",
            logarithmic: false,
            start_s: 0,
            step_s: 60,
            lines: vec![line],
        }
    }

    fn drawn(graph: &Graph, width: u16, height: u16) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        let time = Time { utc_offset_s: 0, theme: Theme::new(false) };
        draw_graphs(&mut buffer, area, std::slice::from_ref(graph), 0, time);
        let rows = buffer.content().chunks(usize::from(width));
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect()).collect()
    }

    #[test]
    fn a_gap_is_not_drawn_over() {
        let axis = Axis::new(&graph(vec![Some(1.0)]), 6).unwrap();
        let line = GraphLine {
            label: String::new(),
            values: vec![None, Some(1.0), Some(0.5), None, Some(f64::NAN), Some(0.0)],
        };
        assert_eq!(runs(&line, &axis), [vec![(1.0, 1.0), (2.0, 0.5)], vec![(5.0, 0.0)]]);
        let mut values = vec![Some(10.0); 40];
        values[10..30].fill(None);
        let rows = drawn(&graph(values), 60, 8);
        let dots = |text: &str| text.chars().filter(|sign| ('\u{2801}'..='\u{28ff}').contains(sign)).count();
        let count: usize = rows[1..].iter().map(|row| dots(row)).sum();
        assert!((20..40).contains(&count), "{count} cells of 57 are drawn: {rows:#?}");
    }

    #[test]
    fn the_title_has_the_last_values_and_a_mark_where_it_is_cut() {
        assert!(drawn(&graph(vec![Some(1.0), Some(3000.0), None]), 60, 8)[0].contains("reads 3,000/s"));
        assert!(drawn(&graph(vec![Some(1.0), Some(3000.0)]), 20, 8)[0].ends_with('\u{2026}'));
        assert!(drawn(&graph(vec![Some(1.0), None, None, None]), 60, 8)[0].contains("reads -"));
    }

    #[test]
    fn nothing_to_draw_is_said() {
        assert!(drawn(&graph(vec![None; 9]), 60, 8)[1].contains("no values in this time"));
        assert!(drawn(&graph(Vec::new()), 60, 8)[1].contains("no values in this time"));
    }

    #[test]
    fn any_size_can_be_drawn() {
        let graph = graph(vec![Some(1.0), Some(3000.0), None, Some(5.0)]);
        for width in (0..90).step_by(3) {
            for height in (0..30).step_by(2) {
                drawn_at(&graph, width, height);
            }
        }
    }

    fn drawn_at(graph: &Graph, width: u16, height: u16) {
        let area = Rect::new(0, 0, width, height);
        let graphs = [graph.clone(), graph.clone(), graph.clone()];
        for first in [0, 2, 9] {
            let time = Time { utc_offset_s: 0, theme: Theme::new(true) };
            draw_graphs(&mut Buffer::empty(area), area, &graphs, first, time);
        }
    }

    #[test]
    fn times_are_as_fine_as_the_span() {
        assert_eq!(time_labels(0, 600, 0, 60), ["00:00:00", "00:05:00", "00:10:00"]);
        assert_eq!(time_labels(0, 3_600, 0, 60), ["00:00", "00:30", "01:00"]);
        assert_eq!(time_labels(0, 172_800, 0, 32), ["01-01 00:00", "01-03 00:00"]);
    }
}
