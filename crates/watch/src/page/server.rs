//! The page of a server, and its row in the table of servers.

use ebbtide_text::whole;

use super::figures::{UNKNOWN, byte_rate, bytes, number, rate, share, span};
use super::layout::{Sheet, no_alarm, not_seen};
use super::markup::{Cell, Table};
use super::{alarms, links, storage};
use crate::view::{RedoView, ReplicaView, ServerView, Subject, View};

/// The columns of the table of servers.
pub(super) const COLUMNS: &[&str] = &[
    "Server",
    "State",
    "Statements/s",
    "Commits/s",
    "Running",
    "Connections",
    "Pages read/s",
    "Pages written/s",
    "Pool hits",
    "Redo used",
    "Time in logs",
    "Main thread",
    "Lag",
];

/// A row of it.
pub(super) fn row(server: &ServerView) -> Vec<Cell> {
    let state = match &server.down {
        Some(_) => Cell::from("not read".to_owned()).toned("bad"),
        None => Cell::from(server.version.clone()),
    };
    vec![
        Cell::link(&server.name, links::path(&Subject::Server(server.name.clone()))),
        state,
        Cell::from(rate(server.statements)),
        Cell::from(rate(server.commits)),
        Cell::from(number(server.threads_running)),
        Cell::from(connections(server)),
        Cell::from(rate(server.page_reads)),
        Cell::from(rate(server.page_writes)),
        Cell::from(share(server.pool_hits)),
        Cell::from(share(server.redo.and_then(|redo| redo_share(&redo)))),
        Cell::from(share(server.log_time)),
        Cell::from(share(server.main_thread)),
        lag(server),
    ]
}

/// The page of a server; None where the view has none of this name.
pub(super) fn sheet(view: &View, name: &str) -> Option<Sheet> {
    let server = view.servers.iter().find(|server| server.name == name)?;
    let subject = Subject::Server(name.to_owned());
    let mut sheet = Sheet::new(name, links::path(&subject));
    sheet.begin("state", "State");
    if let Some(reason) = &server.down {
        sheet.content.element("p", &[("class", "bad")], &format!("It is not read: {reason}"));
    }
    sheet.facts(&[
        ("Address", server.address.clone()),
        ("Version", server.version.clone()),
        ("Running for", span(server.uptime_s)),
    ]);
    sheet.end();
    sheet.graphs(&[subject]);
    figures(&mut sheet, server);
    if !server.replicas.is_empty() {
        sheet.table("replication", &replication(server), "");
    }
    sheet.table("files", &files(view, server), "It is not known which device has its files.");
    let has_files = |name: &str| server.files.iter().any(|(_, storage)| storage == name);
    sheet.table(
        "storage",
        &storage::table(view, |storage| has_files(&storage.name)),
        "None of its volumes is watched.",
    );
    sheet.table("alarms", &alarms::table(view, |alarm| alarm.subject == name), no_alarm(view));
    let missing = not_seen(view, |item| item.subject == name);
    if !missing.rows.is_empty() {
        sheet.table("not-seen", &missing, "");
    }
    Some(sheet)
}

fn figures(sheet: &mut Sheet, server: &ServerView) {
    sheet.begin("figures", "Figures");
    sheet.facts(&[
        ("Statements", per_second(server.statements)),
        ("Statements that write", per_second(server.write_statements)),
        ("Commits", per_second(server.commits)),
        ("Threads that run a statement", number(server.threads_running)),
        ("Connections", connections(server)),
        ("Pages read", per_second(server.page_reads)),
        ("Pages written", per_second(server.page_writes)),
        ("Requests that the buffer pool had", share(server.pool_hits)),
        ("Buffer pool that is dirty", share(server.dirty)),
        ("Waits for a free page", per_second(server.free_waits)),
        ("Waits for room in the log buffer", per_second(server.log_waits)),
        ("Waits for row locks", per_second(server.row_lock_waits)),
        ("History list", number(server.history)),
        ("Time in syncs of logs", share(server.log_time)),
        ("Main thread active", share(server.main_thread)),
    ]);
    if let Some(redo) = &server.redo {
        sheet.facts(&[
            ("Redo log", bytes(Some(redo.capacity_bytes))),
            ("Redo since the last checkpoint", bytes(redo.used_bytes)),
            ("Redo used", share(redo_share(redo))),
            ("Redo written", byte_rate(redo.written)),
            ("Sync flush in", span(redo.sync_flush_s)),
        ]);
    }
    sheet.end();
}

fn per_second(value: Option<f64>) -> String {
    let figure = rate(value);
    if figure == UNKNOWN { figure } else { format!("{figure}/s") }
}

fn connections(server: &ServerView) -> String {
    let written = |(now, most)| format!("{} of {}", whole(now), whole(most));
    server.connections.map_or_else(|| UNKNOWN.to_owned(), written)
}

/// Share of the redo log that is used, 0 to 1.
fn redo_share(redo: &RedoView) -> Option<f64> {
    redo.used_bytes.filter(|_| redo.capacity_bytes > 0.0).map(|used| used / redo.capacity_bytes)
}

/// The longest lag of the channels. A channel whose lag is not known is not zero, and is said first.
fn lag(server: &ServerView) -> Cell {
    if server.replicas.is_empty() {
        return Cell::from("no replica".to_owned());
    }
    if server.replicas.iter().any(|replica| replica.lag_s.is_none()) {
        return Cell::from("not known".to_owned()).toned("bad");
    }
    Cell::from(span(server.replicas.iter().filter_map(|replica| replica.lag_s).reduce(f64::max)))
}

fn replication(server: &ServerView) -> Table<'static> {
    let row = |replica: &ReplicaView| {
        let [receiver, applier] = &replica.threads;
        let channel = if replica.channel.is_empty() { "(the only one)" } else { replica.channel.as_str() };
        let thread = |state: &String| {
            let tone = if state == "running" { "" } else { "bad" };
            Cell::from(state.clone()).toned(tone)
        };
        vec![
            Cell::from(channel.to_owned()),
            Cell::from(replica.source.clone()),
            thread(receiver),
            thread(applier),
            Cell::from(span(replica.lag_s)),
            Cell::words(&replica.lag_by),
            Cell::words(&replica.error),
        ]
    };
    Table {
        caption: "Replication",
        columns: &["Channel", "Source", "Receiver", "Applier", "Lag", "Measured by", "Last error"],
        rows: server.replicas.iter().map(row).collect(),
    }
}

fn files(view: &View, server: &ServerView) -> Table<'static> {
    let row = |(role, name): &(String, String)| {
        let subject = Subject::Storage(name.clone());
        let place = if links::has(view, &subject) {
            Cell::link(name, links::path(&subject))
        } else {
            Cell::from(name.clone())
        };
        vec![Cell::from(role.clone()), place]
    };
    Table { caption: "Files", columns: &["Role", "Volume"], rows: server.files.iter().map(row).collect() }
}
