//! The first screen: servers, storage, alarms, and what watching costs.

use ratatui::text::Line;

use super::answer::Answer;
use super::drawing::Drawing;
use super::figures::{UNKNOWN, io_time, lag, number, per_second, ratio, share, size, sum, wait};
use super::label::clean;
use super::panel::Panel;
use super::table::{Column, Row, page, paged_head, shared, table};
use super::theme::Level;
use crate::view::{AlarmView, FileSystemView, OwnCost, ServerView, StorageView, Subject, View};

/// What stands before a row: before one that is not selected, and before the selected one.
const SELECTED: [&str; 2] = ["  ", "> "];

/// Whether anything alarms, and the worst of it.
pub(super) fn answer(drawing: &Drawing<'_>) -> Answer {
    let view = drawing.view;
    let mut alarming = view.alarms.iter().filter(|alarm| alarms_now(alarm, view.unix_s));
    if let Some(worst) = alarming.next() {
        let more = alarming.count();
        // How many there are is said first: a long reason is cut off at its end.
        let count = if more == 0 { "ALARM".to_owned() } else { format!("{} alarms, the worst:", more + 1) };
        let text = format!("{count} {}: {}: {}", worst.subject, worst.rule, worst.reason);
        return Answer::new(Level::from_severity(&worst.severity), text);
    }
    if view.servers.is_empty() && view.storage.is_empty() {
        return Answer::new(Level::Warning, "nothing is watched yet: no server and no volume has answered");
    }
    let down = view.servers.iter().filter(|server| server.down.is_some()).count();
    if down > 0 {
        let text = format!("{down} of {} not read", ebbtide_text::count(view.servers.len(), "server"));
        return Answer::new(Level::Warning, text);
    }
    if let Some(watched_s) = view.just_begun_s() {
        return Answer::new(
            Level::Good,
            format!("nothing alarms yet: watched for {}", wait(Some(watched_s))),
        );
    }
    let watched = format!(
        "nothing alarms: {}, {}",
        ebbtide_text::count(view.servers.len(), "server"),
        ebbtide_text::count(view.storage.len(), "volume")
    );
    Answer::new(Level::Good, watched)
}

/// Whether an alarm is one now: in the state ALARM, and not silenced.
pub(super) fn alarms_now(alarm: &AlarmView, unix_s: i64) -> bool {
    alarm.state == "ALARM" && alarm.silenced_until_s.is_none_or(|until_s| until_s <= unix_s)
}

/// The tables, in the lines that they share.
pub(super) fn body(drawing: &Drawing<'_>, panel: &mut Panel<'_>) {
    let view = drawing.view;
    let cost = cost(&view.own, panel.columns());
    let disk = fullest(view);
    let wanted = [view.servers.len(), view.storage.len(), view.alarms.len()];
    let heads = wanted.iter().filter(|count| **count > 0).count();
    let below = 1 + usize::from(disk.is_some());
    // Blank lines between the tables, where nothing is left out for them.
    let blanks = if heads + wanted.iter().sum::<usize>() + below + heads <= panel.rows() { 1 } else { 0 };
    let lines = panel.rows().saturating_sub(heads * (1 + blanks) + below);
    let [servers, storage, alarms] = shared(lines, wanted);
    let columns = panel.columns();
    let tables = [
        server_table(drawing, servers, columns),
        storage_table(drawing, storage, columns),
        alarm_rows(drawing, alarms, columns, None),
    ];
    for (table, count) in tables.into_iter().zip(wanted) {
        if count > 0 {
            panel.lines(table);
            (0..blanks).for_each(|_| panel.blank());
        }
    }
    if let Some((level, text)) = disk {
        panel.text(&text, drawing.theme.style(level));
    }
    panel.text(&cost, drawing.theme.style(Level::Dim));
}

fn server_table(drawing: &Drawing<'_>, lines: usize, cells: usize) -> Vec<Line<'static>> {
    let view = drawing.view;
    let selected = match drawing.state.subject(view) {
        Some(Subject::Server(name)) => view.servers.iter().position(|server| server.name == name),
        _ => None,
    };
    let shown = page(view.servers.len(), lines, selected);
    let columns = [
        Column::texts(format!("  {}", paged_head("SERVER", &shown, view.servers.len())), 12, 0),
        Column::figures("STMT/S", 7, 0),
        Column::figures("COMMIT/S", 8, 3),
        Column::figures("RUN", 4, 1),
        Column::figures("CONN", 8, 6),
        Column::figures("HITS", 5, 7),
        Column::figures("DIRTY", 5, 8),
        Column::figures("REDO", 5, 2),
        Column::figures("LOG", 5, 4),
        Column::figures("LAG", 7, 5),
    ];
    let rows = view.servers[shown.clone()]
        .iter()
        .zip(shown)
        .map(|(server, place)| server_row(server, selected == Some(place), drawing));
    table(&columns, &rows.collect::<Vec<_>>(), cells, drawing.theme.style(Level::Head))
}

fn server_row(server: &ServerView, selected: bool, drawing: &Drawing<'_>) -> Row {
    let name = format!("{}{}", SELECTED[usize::from(selected)], clean(&server.name));
    if let Some(reason) = &server.down {
        let style = drawing.theme.style(Level::Critical);
        return Row::note(name, format!("not read: {reason}"), style);
    }
    let worst = server
        .replicas
        .iter()
        .filter_map(|replica| replica.lag_s)
        .fold(None, |worst: Option<f64>, lag_s| Some(worst.map_or(lag_s, |worst| worst.max(lag_s))));
    // A channel whose lag is not known may be any time behind.
    let behind = if server.replicas.iter().any(|replica| replica.lag_s.is_none()) { None } else { worst };
    let redo = server.redo.as_ref().and_then(|redo| ratio(redo.used_bytes, Some(redo.capacity_bytes)));
    let connections = server.connections.map_or_else(
        || UNKNOWN.to_owned(),
        |(used, most)| format!("{}/{}", number(Some(used)), number(Some(most))),
    );
    let cells = vec![
        name,
        per_second(server.statements),
        per_second(server.commits),
        number(server.threads_running),
        connections,
        share(server.pool_hits),
        share(server.dirty),
        share(redo),
        share(server.log_time),
        lag(behind),
    ];
    Row::new(cells, drawing.theme.style(if selected { Level::Head } else { Level::Plain }))
}

fn storage_table(drawing: &Drawing<'_>, lines: usize, cells: usize) -> Vec<Line<'static>> {
    let selected = match drawing.state.subject(drawing.view) {
        Some(Subject::Storage(name)) => drawing.view.storage.iter().position(|storage| storage.name == name),
        _ => None,
    };
    storage_rows(drawing, lines, cells, selected)
}

/// A table of so many volumes and devices: the page of the selected one.
pub(super) fn storage_rows(
    drawing: &Drawing<'_>,
    lines: usize,
    cells: usize,
    selected: Option<usize>,
) -> Vec<Line<'static>> {
    let storage = &drawing.view.storage;
    let shown = page(storage.len(), lines, selected);
    let columns = [
        Column::texts(format!("  {}", paged_head("VOLUME", &shown, storage.len())), 12, 0),
        Column::figures("READ/S", 7, 0),
        Column::figures("WRITE/S", 7, 0),
        Column::figures("R TIME", 7, 5),
        Column::figures("W TIME", 7, 3),
        Column::figures("QUEUE", 5, 6),
        Column::figures("IOPS", 5, 2),
        Column::figures("BYTES", 5, 7),
        Column::figures("HELD", 5, 1),
        Column::figures("CREDITS", 7, 3),
        Column::figures("END IN", 10, 0),
    ];
    let rows = storage[shown.clone()]
        .iter()
        .zip(shown)
        .map(|(volume, place)| storage_row(volume, selected == Some(place), drawing));
    table(&columns, &rows.collect::<Vec<_>>(), cells, drawing.theme.style(Level::Head))
}

fn storage_row(storage: &StorageView, selected: bool, drawing: &Drawing<'_>) -> Row {
    let credits = storage.credits.as_ref();
    let cells = vec![
        format!("{}{}", SELECTED[usize::from(selected)], clean(&storage.name)),
        per_second(storage.reads),
        per_second(storage.writes),
        io_time(storage.read_s),
        io_time(storage.write_s),
        number(storage.queue),
        share(ratio(sum(storage.reads, storage.writes), storage.iops_limit)),
        share(ratio(sum(storage.read_bytes, storage.written_bytes), storage.bytes_limit)),
        share(storage.throttled),
        share(credits.map(|credits| credits.share)),
        wait(credits.and_then(|credits| credits.end_s)),
    ];
    let level = match (storage.throttled, selected) {
        (Some(held), _) if held >= 0.1 => Level::Warning,
        (_, true) => Level::Head,
        (_, false) => Level::Plain,
    };
    Row::new(cells, drawing.theme.style(level))
}

/// A table of so many alarms: the page of the selected one.
pub(super) fn alarm_rows(
    drawing: &Drawing<'_>,
    lines: usize,
    cells: usize,
    selected: Option<usize>,
) -> Vec<Line<'static>> {
    let alarms = &drawing.view.alarms;
    let shown = page(alarms.len(), lines, selected);
    let columns = [
        Column::texts(format!("  {}", paged_head("ALARM", &shown, alarms.len())), 12, 0),
        Column::texts("SEVERITY", 8, 2),
        Column::texts("SUBJECT", 8, 1),
        Column::texts("REASON", 16, 3),
    ];
    let rows = alarms[shown.clone()].iter().zip(shown).map(|(alarm, place)| {
        let state = match (alarm.state.as_str(), alarms_now(alarm, drawing.view.unix_s)) {
            ("ALARM", true) => alarm.severity.clone(),
            ("ALARM", false) => "silenced".to_owned(),
            ("INSUFFICIENT_DATA", _) => "no data".to_owned(),
            (state, _) => clean(state),
        };
        let rule = format!("{}{}", SELECTED[usize::from(selected == Some(place))], clean(&alarm.rule));
        let level = if alarms_now(alarm, drawing.view.unix_s) {
            Level::from_severity(&alarm.severity)
        } else {
            Level::Dim
        };
        Row::new(vec![rule, state, clean(&alarm.subject), clean(&alarm.reason)], drawing.theme.style(level))
    });
    table(&columns, &rows.collect::<Vec<_>>(), cells, drawing.theme.style(Level::Head))
}

/// The file system that is full first, or has the smallest share left.
fn fullest(view: &View) -> Option<(Level, String)> {
    let left = |system: &FileSystemView| ratio(Some(system.free_bytes), Some(system.size_bytes));
    let end_s = |system: &FileSystemView| system.full_s.unwrap_or(f64::INFINITY);
    let first =
        view.file_systems.iter().filter(|system| left(system).is_some()).min_by(|first, second| {
            let shares = left(first).unwrap_or(1.0).total_cmp(&left(second).unwrap_or(1.0));
            end_s(first).total_cmp(&end_s(second)).then(shares)
        })?;
    let free = left(first)?;
    let end = first.full_s.map_or_else(String::new, |seconds| format!(", full in {}", wait(Some(seconds))));
    let used = share(Some((1.0 - free).clamp(0.0, 1.0)));
    let text =
        format!("disk: {} is {used} full, {} free{end}", clean(&first.mount), size(Some(first.free_bytes)));
    let level = match first.full_s {
        Some(seconds) if seconds < 86_400.0 => Level::Warning,
        _ => Level::Dim,
    };
    Some((level, text))
}

/// What watching costs, in a sentence that fits.
fn cost(own: &OwnCost, cells: usize) -> String {
    let bytes = own.resident_bytes.map(|bytes| bytes as f64);
    let (core, memory, time) = (share(own.processor_share), size(bytes), share(own.server_share));
    let long =
        format!("watch itself: {core} of a core, {memory}, {time} of servers' time, {} skipped", own.skipped);
    if long.len() <= cells {
        long
    } else {
        format!("watch: {core} core, {memory}, {time} server, {} skipped", own.skipped)
    }
}
