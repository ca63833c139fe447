//! A view as a document: the answer first, then what is watched, on one screen.

use ebbtide_report::{Block, Cell, Report, Section, Table};
use ebbtide_text::{bytes, count, figure, latency, percent, rate, rough};

use crate::alarm::AlarmState;
use crate::view::{AlarmView, FileSystemView, ServerView, StorageView, View};

/// Alarms that the first screen has; the others are among the details.
const FIRST_ALARMS: usize = 3;
/// Rows of a table that the first screen has.
const FIRST_ROWS: usize = 6;

/// The document of a view.
#[must_use]
pub fn document(view: &View) -> Report {
    let mut sections = vec![Section::new("", vec![Block::Text(answer(view))])];
    let raised: Vec<&AlarmView> = raised(view).collect();
    if raised.len() > 1 || view.alarms.len() > raised.len() {
        sections.push(Section::new("Alarms", vec![Block::Table(alarms(view))]));
    }
    if !view.servers.is_empty() {
        sections.push(Section::new("Servers", vec![Block::Table(servers(&view.servers))]));
    }
    if !view.storage.is_empty() {
        sections.push(Section::new("Storage", vec![Block::Table(storage(&view.storage))]));
    }
    if !view.file_systems.is_empty() {
        let table = file_systems(&view.file_systems);
        sections.push(Section::new("File systems", vec![Block::Table(table)]).details());
    }
    if !view.not_seen.is_empty() {
        sections.push(Section::new("Not seen", vec![Block::Table(not_seen(view))]).details());
    }
    sections.push(Section::new("", vec![Block::Text(cost(view))]));
    Report {
        title: "ebbtide watch".to_owned(),
        subtitle: ebbtide_text::timestamp(view.unix_s),
        sections,
        ..Report::default()
    }
}

/// Alarms whose state is ALARM and that are not silenced.
fn raised(view: &View) -> impl Iterator<Item = &AlarmView> {
    let is_raised =
        |alarm: &&AlarmView| alarm.state == AlarmState::Alarm.name() && alarm.silenced_until_s.is_none();
    view.alarms.iter().filter(is_raised)
}

/// Whether an alarm is raised that is not silenced.
#[must_use]
pub fn has_alarm(view: &View) -> bool {
    raised(view).next().is_some()
}

/// The first sentence: what to know of all.
#[must_use]
pub fn answer(view: &View) -> String {
    let mut raised = raised(view);
    let Some(worst) = raised.next() else { return calm(view) };
    let others = match raised.count() {
        0 => String::new(),
        others => format!(" {} more.", count(others, "alarm")),
    };
    let fix = if worst.fix.is_empty() { String::new() } else { format!(" To do: {}", sentence(&worst.fix)) };
    format!("{} ({}): {}{fix}{others}", worst.rule, worst.severity, sentence(&worst.reason))
}

fn calm(view: &View) -> String {
    let mut watched = Vec::new();
    if !view.servers.is_empty() {
        watched.push(count(view.servers.len(), "server"));
    }
    if !view.storage.is_empty() {
        watched.push(storage_count(view.storage.len()));
    }
    let not_seen = match view.not_seen.len() {
        0 => String::new(),
        1 => " 1 figure is not seen: --details.".to_owned(),
        figures => format!(" {figures} figures are not seen: --details."),
    };
    if watched.is_empty() {
        return format!(
            "Nothing is watched: name a server, or run it where there are block devices.{not_seen}"
        );
    }
    format!("Nothing alarms: {} watched.{not_seen}", watched.join(" and "))
}

fn storage_count(number: usize) -> String {
    if number == 1 { "1 volume or device".to_owned() } else { format!("{number} volumes and devices") }
}

/// A text that ends with a full stop.
fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// A figure that may not be known.
fn known(value: Option<f64>, text: impl Fn(f64) -> String) -> Cell {
    match value.filter(|value| value.is_finite()) {
        Some(value) => Cell::value(text(value), value, ""),
        None => Cell::from("-"),
    }
}

fn table(columns: &[&str], rows: Vec<Vec<Cell>>, spare: &[usize]) -> Table {
    Table {
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        rows,
        spare: spare.to_vec(),
        first_rows: Some(FIRST_ROWS),
        ..Table::default()
    }
}

fn alarms(view: &View) -> Table {
    let row = |alarm: &AlarmView| {
        let state = match alarm.silenced_until_s {
            Some(until) => format!("{} (silenced until {})", alarm.state, ebbtide_text::timestamp(until)),
            None => alarm.state.clone(),
        };
        [&alarm.rule, &state, &alarm.reason].map(|text| Cell::from(text.as_str())).to_vec()
    };
    let rows = view.alarms.iter().map(row).collect();
    let columns = ["Rule", "State", "Why"];
    Table { prose: true, words: true, first_rows: Some(FIRST_ALARMS), ..table(&columns, rows, &[]) }
}

fn servers(servers: &[ServerView]) -> Table {
    let row = |server: &ServerView| {
        let name = Cell::from(server.name.as_str());
        let Some(reason) = &server.down else {
            let redo = server.redo.and_then(|redo| {
                (redo.capacity_bytes > 0.0).then(|| redo.used_bytes.map(|used| used / redo.capacity_bytes))?
            });
            let lag = server.replicas.iter().filter_map(|replica| replica.lag_s).reduce(f64::max);
            return vec![
                name,
                Cell::from(server.version.as_str()),
                known(server.statements, rate),
                known(server.commits, rate),
                known(server.threads_running, figure),
                known(server.pool_hits, percent),
                known(redo, percent),
                known(lag, rough),
            ];
        };
        let down = Cell::from(format!("down: {reason}"));
        [name, down].into_iter().chain((0..6).map(|_| Cell::from("-"))).collect()
    };
    let columns =
        ["Server", "Version", "Statements/s", "Commits/s", "Running", "Pool hits", "Redo used", "Lag"];
    table(&columns, servers.iter().map(row).collect(), &[3, 4, 5])
}

fn storage(storage: &[StorageView]) -> Table {
    let row = |subject: &StorageView| {
        let time = |seconds: f64| latency(seconds * 1e6);
        let credits = match subject.credits {
            Some(credits) => match credits.end_s {
                Some(end_s) => Cell::from(format!("{}, end in {}", percent(credits.share), rough(end_s))),
                None => Cell::from(percent(credits.share)),
            },
            None => Cell::from("-"),
        };
        vec![
            Cell { detail: subject.roles.join("; "), ..Cell::from(subject.name.as_str()) },
            Cell::from(subject.spec.as_str()),
            known(subject.reads, rate),
            known(subject.writes, rate),
            known(subject.read_s, time),
            known(subject.write_s, time),
            known(subject.iops_limit, figure),
            known(subject.throttled, percent),
            credits,
        ]
    };
    let columns =
        ["Storage", "Spec", "Reads/s", "Writes/s", "Read", "Write", "Limit/s", "Over limit", "Credits"];
    // What is throttled stays: its limit, the time over it, and the credits.
    table(&columns, storage.iter().map(row).collect(), &[1, 2, 4, 3, 5])
}

fn file_systems(systems: &[FileSystemView]) -> Table {
    let row = |system: &FileSystemView| {
        vec![
            Cell::from(system.mount.as_str()),
            Cell::from(system.device.as_str()),
            Cell::from(bytes(system.size_bytes)),
            Cell::from(bytes(system.free_bytes)),
            known(system.full_s, rough),
        ]
    };
    let columns = ["Mounted at", "Device", "Size", "Free", "Full in"];
    table(&columns, systems.iter().map(row).collect(), &[])
}

fn not_seen(view: &View) -> Table {
    let rows = view.not_seen.iter().map(|row| {
        [&row.subject, &row.figure, &row.reason, &row.remedy].map(|text| Cell::from(text.as_str())).to_vec()
    });
    let columns = ["Subject", "Figure", "Why", "What would show it"];
    Table { prose: true, words: true, ..table(&columns, rows.collect(), &[]) }
}

fn cost(view: &View) -> String {
    let own = &view.own;
    let mut parts = Vec::new();
    parts.extend(own.processor_share.map(|share| format!("{} of a core", percent(share))));
    parts.extend(own.resident_bytes.map(|resident| bytes(resident as f64)));
    parts
        .extend(own.server_share.map(|share| format!("{} of a second of the servers' time", percent(share))));
    if own.skipped > 0 {
        parts.push(format!("{} left out", count(own.skipped, "sample")));
    }
    if parts.is_empty() { String::new() } else { format!("Watching costs: {}.", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use ebbtide_report::TextOptions;

    use super::*;
    use crate::view::{CreditsView, NotSeenView};

    fn alarm(rule: &str) -> AlarmView {
        AlarmView {
            rule: rule.to_owned(),
            subject: "db".to_owned(),
            state: "ALARM".to_owned(),
            severity: "critical".to_owned(),
            reason: "credits of db (9% left) end at 02:40, in 12 min".to_owned(),
            fix: "Provision a gp3".to_owned(),
            ..AlarmView::default()
        }
    }

    fn view() -> View {
        let storage = StorageView {
            name: "db".to_owned(),
            spec: "gp2:size=100GiB".to_owned(),
            roles: vec!["data of shop".to_owned()],
            writes: Some(812.0),
            write_s: Some(0.0012),
            credits: Some(CreditsView { share: 0.09, end_s: Some(720.0), full_s: None }),
            ..StorageView::default()
        };
        let server =
            ServerView { name: "shop".to_owned(), down: Some("refused".to_owned()), ..ServerView::default() };
        View { servers: vec![server], storage: vec![storage], ..View::default() }
    }

    #[test]
    fn the_first_sentence_is_the_worst_alarm_or_that_there_is_none() {
        let mut seen = view();
        assert_eq!(answer(&seen), "Nothing alarms: 1 server and 1 volume or device watched.");
        assert!(!has_alarm(&seen));
        seen.alarms = vec![alarm("credits_end"), alarm("latency")];
        let first = answer(&seen);
        assert!(first.starts_with("credits_end (critical): credits of db"), "{first}");
        assert!(first.contains("To do: Provision a gp3.") && first.ends_with("1 alarm more."), "{first}");
        seen.alarms = vec![AlarmView { silenced_until_s: Some(9), ..alarm("latency") }];
        assert!(!has_alarm(&seen) && answer(&seen).starts_with("Nothing alarms"), "a silenced alarm");
        seen.not_seen = vec![NotSeenView::default()];
        assert!(answer(&seen).ends_with("1 figure is not seen: --details."), "{}", answer(&seen));
        assert!(answer(&View::default()).starts_with("Nothing is watched"));
    }

    #[test]
    fn a_screen_has_the_servers_and_the_storage_within_80_columns() {
        let text = document(&view()).to_text(TextOptions::default());
        for part in
            ["down: refused", "data of shop", "1.20 ms", "Limit/s", "Over limit", "9.0%, end in 12 min"]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(text.lines().count() <= 24, "{text}");
    }
}
