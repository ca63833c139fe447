//! Tables of iostat as text.

use std::collections::BTreeMap;

use super::figures::{figure, of_iostat};
use super::{Recording, Report, Run, Text, Time, banner, clock, has_figure, shown};
use crate::record_error::{RecordDamage, Unusable};

/// The columns of a table. The device is the first or the last one (`--pretty`).
#[derive(Debug)]
struct Table<'a> {
    columns: Vec<&'a str>,
    device_last: bool,
    /// A name that stands on a line of its own, as sysstat 10 and 11 print it with -h.
    pending: Option<&'a str>,
}

/// The figures of a report, by device and column: with --pretty each is in one of several tables.
#[derive(Debug, Default)]
struct Cells<'a> {
    by_device: BTreeMap<&'a str, (BTreeMap<&'a str, &'a str>, usize, &'a str)>,
}

/// Reads the output; None in another text.
pub(super) fn read(text: &str) -> Option<Text> {
    let mut reader = Reader { runs: vec![Run::default()], is_first: true, ..Reader::default() };
    for (place, line) in text.lines().enumerate() {
        reader.take(place, line);
    }
    reader.finish_report();
    let is_iostat = reader.has_banner && (reader.has_processors || reader.has_basic);
    let mut runs = reader.runs;
    runs.retain(|run| !run.reports.is_empty());
    if runs.is_empty() {
        return is_iostat.then_some(Text::Unusable(Unusable::NotExtended));
    }
    let last_line = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).last();
    let last_place = last_line.map_or(0, |(place, _)| place);
    let mut recording = Recording { tool: "iostat", runs, unread: None, is_cut: false };
    // A capture that was ended in the middle of a row ends with half a row.
    let is_open = !text.ends_with('\n');
    let (cut, unread): (Vec<_>, Vec<_>) =
        reader.unread.into_iter().partition(|(place, _)| is_open && *place == last_place);
    recording.unread = unread.into_iter().next().map(|(place, line)| damaged(place, &line));
    recording.is_cut = !cut.is_empty();
    if let Some(report) = recording.runs.last_mut().and_then(|run| run.reports.last_mut()) {
        // Each report ends with an empty line.
        report.is_cut = recording.is_cut || !text.ends_with("\n\n");
    }
    Some(Text::Recording(recording))
}

fn damaged(place: usize, line: &str) -> RecordDamage {
    RecordDamage::at(place, "a device and its figures", line)
}

#[derive(Debug, Default)]
struct Reader<'a> {
    runs: Vec<Run>,
    /// Whether the next report is the first one of its run.
    is_first: bool,
    has_banner: bool,
    has_processors: bool,
    /// Whether there is a table of iostat without -x.
    has_basic: bool,
    /// The time of the next report.
    time: Option<Time>,
    busy_share: Option<f64>,
    /// The columns of the line `avg-cpu:`, whose figures are on the next line.
    processors: Option<Vec<&'a str>>,
    table: Option<Table<'a>>,
    cells: Cells<'a>,
    unread: Vec<(usize, String)>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, place: usize, line: &'a str) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = fields.first() else {
            (self.table, self.processors) = (None, None);
            return;
        };
        if let Some(run) = banner(line) {
            self.finish_report();
            (self.table, self.time, self.has_banner, self.is_first) = (None, None, true, true);
            self.runs.push(run);
        } else if *first == "avg-cpu:" {
            (self.table, self.has_processors) = (None, true);
            self.processors = Some(fields[1..].to_vec());
        } else if let Some(columns) = self.processors.take() {
            let value = |name: &str| {
                let column = columns.iter().position(|column| *column == name)?;
                figure(fields.get(column)?)
            };
            self.busy_share = busy_share([value("%user"), value("%nice"), value("%system")]);
        } else if let Some(table) = heading(&fields) {
            self.open(table);
        } else if !self.row(place, line, &fields) {
            self.outside(line);
        }
    }

    /// Opens a table: one with all operations or reads begins a report, others of --pretty go on with it.
    fn open(&mut self, table: Table<'a>) {
        let has = |name: &str| table.columns.contains(&name);
        if has("r/s") || has("await") && has("tps") {
            self.finish_report();
            let report = Report {
                end: self.time.take(),
                is_since_start: std::mem::take(&mut self.is_first),
                busy_share: self.busy_share.take(),
                ..Report::default()
            };
            if let Some(run) = self.runs.last_mut() {
                run.reports.push(report);
            }
        } else if has("tps") {
            self.has_basic = true;
            (self.table, self.time) = (None, None);
            return;
        }
        self.table = Some(table);
    }

    /// Takes a row of the table; false for a line that is none.
    fn row(&mut self, place: usize, line: &'a str, fields: &[&'a str]) -> bool {
        let Some(table) = &mut self.table else { return false };
        if fields.len() == 1 && !table.device_last {
            table.pending = Some(fields[0]);
            return true;
        }
        let width = table.columns.len();
        let (name, figures) = match (table.pending.take(), table.device_last, fields) {
            (_, false, [name, figures @ ..]) if figures.len() == width => (*name, figures),
            (_, true, [figures @ .., name]) if figures.len() == width => (*name, figures),
            (Some(name), false, figures) if figures.len() == width => (name, figures),
            _ => {
                let is_time = clock::stamp(line).is_some();
                if !is_time && has_figure(fields) {
                    self.unread.push((place, shown(line)));
                }
                return !is_time;
            }
        };
        let row = self.cells.by_device.entry(name).or_insert_with(|| (BTreeMap::new(), place, line));
        row.0.extend(table.columns.iter().copied().zip(figures.iter().copied()));
        true
    }

    /// A line that is in no table: the time of the next report, if it has digits.
    fn outside(&mut self, line: &str) {
        self.table = None;
        let time = Time::of(line);
        let known = matches!(self.time, Some(Time::Read(_)));
        if time.stamp().is_some() || !known && line.chars().any(char::is_numeric) {
            self.time = Some(time);
        }
    }

    /// Makes the rows of the present report.
    fn finish_report(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        let Some(report) = self.runs.last_mut().and_then(|run| run.reports.last_mut()) else { return };
        for (name, (cells, place, line)) in cells.by_device {
            match of_iostat(|column| figure(cells.get(column)?)) {
                Some(row) => {
                    report.devices.insert(name.to_owned(), row);
                }
                None => self.unread.push((place, shown(line))),
            }
        }
    }
}

/// The table that a line is the heading of; None for another line.
fn heading<'a>(fields: &[&'a str]) -> Option<Table<'a>> {
    let is_device = |field: &&str| field.trim_end_matches(':') == "Device";
    let (columns, device_last) = match fields {
        [first, columns @ ..] if is_device(first) => (columns, false),
        [columns @ .., last] if is_device(last) => (columns, true),
        _ => return None,
    };
    let is_known = ["r/s", "w/s", "d/s", "f/s", "tps"].iter().any(|name| columns.contains(name));
    is_known.then(|| Table { columns: columns.to_vec(), device_last, pending: None })
}

/// The busy share of the processors, 0 to 1, of percents: %system has interrupts in it.
fn busy_share(percents: [Option<super::figures::Figure>; 3]) -> Option<f64> {
    let [user, nice, system] = percents.map(|figure| figure.map(super::figures::Figure::value));
    share(user?, nice?, system?)
}

/// The busy share, 0 to 1, of percents.
pub(super) fn share(user: f64, nice: f64, system: f64) -> Option<f64> {
    let share = (user + nice + system) / 100.0;
    (0.0..=1.0).contains(&share).then_some(share)
}
