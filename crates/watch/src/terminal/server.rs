//! One server: its figures, where its files are, and its first graphs.

use super::answer::Answer;
use super::chart::{Time, draw_graphs};
use super::drawing::Drawing;
use super::figures::{UNKNOWN, bytes_per_second, known, lag, number, per_second, ratio, share, size, wait};
use super::label::{clean, wrapped};
use super::panel::Panel;
use super::table::grid;
use super::theme::Level;
use crate::view::ServerView;

/// The cells of the name of a figure, and a blank.
const LABEL: usize = 18;

/// What the selected server does.
pub(super) fn answer(drawing: &Drawing<'_>) -> Answer {
    let Some((place, server)) = drawing.state.server(drawing.view) else {
        return Answer::new(Level::Warning, "no server is watched: name one, or give --mysql-socket");
    };
    let name = &server.name;
    let count = drawing.view.servers.len();
    let position = if count > 1 { format!(" ({} of {count})", place + 1) } else { String::new() };
    if let Some(reason) = &server.down {
        return Answer::new(Level::Critical, format!("{name}{position} is not read: {reason}"));
    }
    if server.statements.is_none() {
        return Answer::new(Level::Warning, format!("{name}{position} has not answered twice yet: no rates"));
    }
    let text = format!(
        "{name}{position}: {} statements/s, {} commits/s, {} running",
        per_second(server.statements),
        per_second(server.commits),
        number(server.threads_running)
    );
    Answer::new(Level::Good, text)
}

/// Its figures, and below them the graphs that fit.
pub(super) fn body(drawing: &Drawing<'_>, panel: &mut Panel<'_>) {
    let Some((_, server)) = drawing.state.server(drawing.view) else { return };
    let theme = drawing.theme;
    let begun = wait(server.uptime_s);
    panel.text(
        &clean(&format!("{} at {}, up {begun}", version(server), server.address)),
        theme.style(Level::Dim),
    );
    if server.down.is_none() {
        let columns = panel.columns();
        panel.lines(grid(&figures(server), columns, LABEL, theme.style(Level::Dim)));
    }
    if !server.files.is_empty() {
        let files: Vec<String> =
            server.files.iter().map(|(role, storage)| format!("{role} on {storage}")).collect();
        let text = format!("files: {}", files.join(", "));
        for line in wrapped(&text, panel.columns(), 2) {
            panel.text(&line, theme.style(Level::Plain));
        }
    }
    let not_seen = drawing.view.not_seen.iter().filter(|figure| figure.subject == server.name).count();
    if not_seen > 0 {
        let text = format!("{} not seen: 6 has the reasons", ebbtide_text::count(not_seen, "figure"));
        panel.text(&text, theme.style(Level::Warning));
    }
    let time = Time { utc_offset_s: drawing.view.utc_offset_s, theme };
    let first = drawing.state.graph(drawing.graphs.len());
    let (buffer, area) = panel.rest();
    draw_graphs(buffer, area, drawing.graphs, first, time);
}

fn version(server: &ServerView) -> &str {
    if server.version.is_empty() { "version not known" } else { &server.version }
}

fn figures(server: &ServerView) -> Vec<(&'static str, String)> {
    let redo = server.redo.as_ref();
    let used = redo.and_then(|redo| ratio(redo.used_bytes, Some(redo.capacity_bytes)));
    let capacity = size(redo.map(|redo| redo.capacity_bytes));
    let connections = server.connections.map_or_else(
        || UNKNOWN.to_owned(),
        |(used, most)| format!("{} of {}", number(Some(used)), number(Some(most))),
    );
    let mut figures = vec![
        ("statements/s", per_second(server.statements)),
        ("writing ones/s", per_second(server.write_statements)),
        ("commits/s", per_second(server.commits)),
        ("running", number(server.threads_running)),
        ("connections", connections),
        ("row lock waits/s", per_second(server.row_lock_waits)),
        ("history list", known(server.history, ebbtide_text::whole)),
        ("main thread", share(server.main_thread)),
        ("pages read/s", per_second(server.page_reads)),
        ("pages written/s", per_second(server.page_writes)),
        ("buffer pool hits", share(server.pool_hits)),
        ("dirty pages", share(server.dirty)),
        ("free page waits/s", per_second(server.free_waits)),
        ("redo used", format!("{} of {capacity}", share(used))),
        ("redo written", bytes_per_second(redo.and_then(|redo| redo.written))),
        ("sync flush in", wait(redo.and_then(|redo| redo.sync_flush_s))),
        ("log waits/s", per_second(server.log_waits)),
        ("time in log syncs", share(server.log_time)),
    ];
    let behind = server.replicas.iter().map(|replica| lag(replica.lag_s)).collect::<Vec<_>>().join(", ");
    if !behind.is_empty() {
        figures.push(("behind its source", behind));
    }
    figures
}
