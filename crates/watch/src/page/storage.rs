//! The page of a volume or device, and the table of them.

use super::figures::{UNKNOWN, byte_rate, latency, number, rate, share, span};
use super::layout::{Sheet, no_alarm, not_seen, roles};
use super::markup::{Cell, Table};
use super::{alarms, links};
use crate::view::{ServerView, StorageView, Subject, View};

/// The table of some volumes.
pub(super) fn table(view: &View, wanted: impl Fn(&StorageView) -> bool) -> Table<'static> {
    Table {
        caption: "Volumes and devices",
        columns: &[
            "Name",
            "What it is",
            "On it",
            "Reads/s",
            "Writes/s",
            "Limit/s",
            "Read",
            "Written",
            "Limit",
            "Read time",
            "Write time",
            "Queue",
            "Throttled",
            "Credits",
            "Credits end in",
        ],
        rows: view.storage.iter().filter(|storage| wanted(storage)).map(row).collect(),
    }
}

fn row(storage: &StorageView) -> Vec<Cell> {
    vec![
        Cell::link(&storage.name, links::path(&Subject::Storage(storage.name.clone()))),
        Cell::from(spec(storage)),
        Cell::from(roles(storage)),
        Cell::from(rate(storage.reads)),
        Cell::from(rate(storage.writes)),
        Cell::from(rate(storage.iops_limit)),
        Cell::from(byte_rate(storage.read_bytes)),
        Cell::from(byte_rate(storage.written_bytes)),
        Cell::from(byte_rate(storage.bytes_limit)),
        Cell::from(latency(storage.read_s)),
        Cell::from(latency(storage.write_s)),
        Cell::from(number(storage.queue)),
        throttled(storage),
        Cell::from(share(storage.credits.map(|credits| credits.share))),
        Cell::from(credits_end(storage)),
    ]
}

/// The page of a volume; None where the view has none of this name.
pub(super) fn sheet(view: &View, name: &str) -> Option<Sheet> {
    let storage = view.storage.iter().find(|storage| storage.name == name)?;
    let subject = Subject::Storage(name.to_owned());
    let mut sheet = Sheet::new(name, links::path(&subject));
    let source = if storage.exact { "the volume's model: they are exact" } else { "the kernel's counters" };
    sheet.begin("state", "State");
    sheet.facts(&[
        ("What it is", storage.spec.clone()),
        ("Mounted at", storage.mounts.join(", ")),
        ("On it", storage.roles.join("; ")),
        ("Figures are of", source.to_owned()),
    ]);
    sheet.end();
    sheet.graphs(&[subject]);
    sheet.table("figures", &table(view, |other| other.name == name), "");
    limits(&mut sheet, storage);
    sheet.table("servers", &servers(view, name), "No watched server has files on it.");
    sheet.table("alarms", &alarms::table(view, |alarm| alarm.subject == name), no_alarm(view));
    let missing = not_seen(view, |item| item.subject == name);
    if !missing.rows.is_empty() {
        sheet.table("not-seen", &missing, "");
    }
    Some(sheet)
}

/// How near its limits it is.
fn limits(sheet: &mut Sheet, storage: &StorageView) {
    sheet.begin("limits", "Limits");
    let sum = |first: Option<f64>, second: Option<f64>| Some(first? + second?);
    let used = |load: Option<f64>, limit: Option<f64>| Some(load? / limit.filter(|limit| *limit > 0.0)?);
    let operations = sum(storage.reads, storage.writes);
    let transferred = sum(storage.read_bytes, storage.written_bytes);
    sheet.facts(&[
        ("Operations limit in use", share(used(operations, storage.iops_limit))),
        ("Throughput limit in use", share(used(transferred, storage.bytes_limit))),
        ("Time in which I/O waited for a limit", share(storage.throttled)),
        ("The limit that was reached", storage.limited_by.clone().unwrap_or_default()),
    ]);
    if let Some(credits) = &storage.credits {
        sheet.facts(&[
            ("Credits left", share(Some(credits.share))),
            ("Credits end in", credits_end(storage)),
            ("Full without load in", span(credits.full_s)),
        ]);
    }
    sheet.end();
}

fn spec(storage: &StorageView) -> String {
    if storage.spec.is_empty() { UNKNOWN.to_owned() } else { storage.spec.clone() }
}

fn throttled(storage: &StorageView) -> Cell {
    let figure = share(storage.throttled);
    match (&storage.limited_by, storage.throttled) {
        (Some(limit), Some(part)) if part > 0.0 => Cell::from(format!("{figure} by {limit}")).toned("bad"),
        _ => Cell::from(figure),
    }
}

/// When the credits end; a load that they carry for ever is said.
fn credits_end(storage: &StorageView) -> String {
    match storage.credits {
        None => UNKNOWN.to_owned(),
        Some(credits) => credits.end_s.map_or_else(|| "never at this load".to_owned(), |end| span(Some(end))),
    }
}

fn servers(view: &View, name: &str) -> Table<'static> {
    let row = |server: &ServerView| {
        let roles: Vec<&str> = server
            .files
            .iter()
            .filter(|(_, storage)| storage == name)
            .map(|(role, _)| role.as_str())
            .collect();
        let link = Cell::link(&server.name, links::path(&Subject::Server(server.name.clone())));
        (!roles.is_empty()).then(|| vec![link, Cell::from(roles.join(", "))])
    };
    Table {
        caption: "Servers on it",
        columns: &["Server", "Files"],
        rows: view.servers.iter().filter_map(row).collect(),
    }
}
