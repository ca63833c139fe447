//! `sar -d` as text, and `sadf -d` and `sadf -p` of the same data.

use std::collections::BTreeMap;

use super::figures::{figure, of_sar};
use super::{Recording, Report, Run, Text, Time, banner, has_figure, shown};
use crate::record_error::{RecordDamage, Unusable};

/// Reads the output; None in another text.
pub(super) fn read(text: &str) -> Option<Text> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    if text.lines().any(|line| line.starts_with("# hostname;interval;timestamp")) {
        return Some(of_database(text));
    }
    if let Some(recording) = of_pairs(text) {
        return Some(Text::Recording(recording));
    }
    if text.get(..2_000).unwrap_or(text).contains("<sysstat") {
        return Some(Text::Unusable(Unusable::OtherForm("-x")));
    }
    if first.contains("; major; ") {
        return Some(Text::Unusable(Unusable::OtherForm("-r")));
    }
    of_tables(text)
}

/// A row that is none.
fn damaged(place: usize, line: &str) -> RecordDamage {
    RecordDamage::at(place, "a time, a device and its figures", &shown(line))
}

/// Makes a recording of reports; unread rows of the last line are where the text was cut.
fn recording(text: &str, mut runs: Vec<Run>, unread: Option<(usize, String)>) -> Text {
    let last = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).last();
    let last = last.map_or(0, |(place, _)| place);
    let is_cut = !text.ends_with('\n') && unread.as_ref().is_some_and(|(place, _)| *place == last);
    if let Some(report) = runs.last_mut().and_then(|run| run.reports.last_mut()) {
        report.is_cut = is_cut;
    }
    let unread = unread.filter(|_| !is_cut).map(|(place, line)| damaged(place, &line));
    runs.retain(|run| !run.reports.is_empty());
    Text::Recording(Recording { tool: "sar", runs, unread, is_cut })
}

/// `sadf -d`: a heading with names, and rows with semicolons. With -h a row has the figures of all devices.
fn of_database(text: &str) -> Text {
    let mut runs = vec![Run::default()];
    let (mut unread, mut header, mut has_disks) = (None, Vec::new(), false);
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if let Some(names) = line.strip_prefix("# ") {
            // Other activities have tables of their own.
            let names: Vec<&str> = names.trim().trim_end_matches("[...]").split(';').collect();
            header = if names.contains(&"DEV") && names.contains(&"tps") { names } else { Vec::new() };
            has_disks |= !header.is_empty();
            continue;
        }
        if line.contains("LINUX-RESTART") {
            runs.push(Run::default());
            continue;
        }
        if header.is_empty() || line.contains(";COM ") {
            continue;
        }
        if database_row(line.trim(), &header, runs.last_mut()).is_none() {
            unread = unread.or(Some((place, shown(line))));
        }
    }
    if has_disks { recording(text, runs, unread) } else { Text::Unusable(Unusable::NoDisks) }
}

fn database_row(line: &str, header: &[&str], run: Option<&mut Run>) -> Option<()> {
    let fields: Vec<&str> = line.split(';').collect();
    let ([_, interval, time], rest) = fields.split_first_chunk::<3>()?;
    let names = header.get(3..).filter(|names| !names.is_empty())?;
    let seconds = figure(interval)?.value();
    let report = at(&mut run?.reports, time, seconds)?;
    if rest.is_empty() || rest.len() % names.len() != 0 {
        return None;
    }
    for device in rest.chunks(names.len()) {
        let text = |name: &str| device.get(names.iter().position(|column| *column == name)?).copied();
        let row = of_sar(|name| figure(text(name)?))?;
        report.devices.insert(text("DEV")?.to_owned(), row);
    }
    Some(())
}

/// The report of a time, which is made where the last one is of another time; None without a length.
fn at<'a>(reports: &'a mut Vec<Report>, time: &str, seconds: f64) -> Option<&'a mut Report> {
    if seconds <= 0.0 {
        return None;
    }
    let end = Some(Time::of(time));
    if reports.last().is_none_or(|report| report.end != end) {
        reports.push(Report { end, seconds: Some(seconds), ..Report::default() });
    }
    reports.last_mut()
}

/// `sadf -p`: a line for each figure, of machine, interval, time, device, name and value; None in another text.
fn of_pairs(text: &str) -> Option<Recording> {
    let fields = |line: &str| -> Option<[String; 6]> {
        let fields: Vec<String> = line.split('\t').map(|field| field.trim().to_owned()).collect();
        fields.try_into().ok()
    };
    let mut reports: Vec<Report> = Vec::new();
    let mut cells: Vec<BTreeMap<String, BTreeMap<String, String>>> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.contains("LINUX-RESTART") {
            continue;
        }
        let [_, interval, time, device, name, value] = fields(line)?;
        let end = Time::of(&time);
        end.stamp()?;
        let seconds = Some(figure(&interval)?.value()).filter(|seconds| *seconds > 0.0);
        if reports.last().is_none_or(|report| report.end.as_ref() != Some(&end)) {
            reports.push(Report { end: Some(end), seconds, ..Report::default() });
            cells.push(BTreeMap::new());
        }
        cells.last_mut()?.entry(device).or_default().insert(name, value);
    }
    for (report, cells) in reports.iter_mut().zip(&cells) {
        for (device, cells) in cells.iter().filter(|(_, cells)| cells.contains_key("await")) {
            let row = of_sar(|name| figure(cells.get(name)?))?;
            report.devices.insert(device.clone(), row);
        }
    }
    // Other activities of the same times have lines of their own.
    reports.retain(|report| !report.devices.is_empty());
    let run = Run { reports, ..Run::default() };
    (!run.reports.is_empty()).then(|| Recording { tool: "sar", runs: vec![run], ..Recording::default() })
}

/// What the rows below a heading are.
#[derive(Debug)]
enum Below<'a> {
    /// Of disks, with these columns.
    Disks(Vec<&'a str>),
    /// Of another activity, or means.
    Other,
}

#[derive(Debug)]
struct Reader<'a> {
    runs: Vec<Run>,
    below: Below<'a>,
    /// The time in the last heading of disks that no row followed: the start of an interval.
    begun: Option<Time>,
    has_disks: bool,
    unread: Option<(usize, String)>,
}

/// Tables of sar; None in another text.
fn of_tables(text: &str) -> Option<Text> {
    let mut reader = Reader {
        runs: vec![Run::default()],
        below: Below::Other,
        begun: None,
        has_disks: false,
        unread: None,
    };
    let (mut has_banner, mut has_tables) = (false, false);
    for (place, line) in text.lines().enumerate() {
        if let Some(run) = banner(line) {
            reader.end_run();
            reader.runs.push(run);
            has_banner = true;
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        has_tables |= is_heading(&fields);
        reader.take(place, line, &fields);
    }
    reader.end_run();
    if reader.has_disks {
        return Some(recording(text, reader.runs, reader.unread));
    }
    (has_banner && has_tables).then_some(Text::Unusable(Unusable::NoDisks))
}

/// Whether a line is the heading of a table of any activity.
fn is_heading(fields: &[&str]) -> bool {
    let is_name = |field: &&&str| {
        field.ends_with("/s") || field.starts_with('%') && field.len() > 1 || **field == "DEV"
    };
    fields.iter().filter(is_name).count() >= 2
}

impl<'a> Reader<'a> {
    fn take(&mut self, place: usize, line: &'a str, fields: &[&'a str]) {
        if fields.is_empty() {
            return;
        }
        if line.contains("LINUX RESTART") {
            self.end_run();
            let last = self.runs.last();
            let next = Run {
                machine: last.and_then(|run| run.machine.clone()),
                processors: last.and_then(|run| run.processors),
                ..Run::default()
            };
            self.runs.push(next);
        } else if is_heading(fields) {
            self.heading(fields);
        } else if let Below::Disks(columns) = &self.below
            && !line.contains("  COM ")
        {
            let columns = columns.clone();
            self.row(place, line, fields, &columns);
        }
    }

    fn heading(&mut self, fields: &[&'a str]) {
        self.below = Below::Other;
        let Some(first) = fields.iter().position(|field| ["DEV", "tps"].contains(field)) else { return };
        let (time, columns) = (fields[..first].join(" "), fields[first..].to_vec());
        if !columns.contains(&"DEV") {
            return;
        }
        self.has_disks = true;
        // Means have a word in the place of the time.
        if !time.chars().any(char::is_numeric) {
            return;
        }
        let time = Time::of(&time);
        // With -z nothing is printed between two headings, where no disk did something.
        if let Some(begun) = self.begun.take().filter(|begun| *begun != time) {
            self.push(Report { start: Some(begun), end: Some(time.clone()), ..Report::default() });
        }
        self.begun = Some(time);
        self.below = Below::Disks(columns);
    }

    fn row(&mut self, place: usize, line: &str, fields: &[&str], columns: &[&str]) {
        let first = fields.len().saturating_sub(columns.len());
        let (time, figures) = fields.split_at(first);
        let time = time.join(" ");
        if figures.len() < columns.len() || time.is_empty() {
            if has_figure(fields) {
                self.unread = self.unread.take().or_else(|| Some((place, shown(line))));
            }
            return;
        }
        if !time.chars().any(char::is_numeric) {
            return;
        }
        let text = |name: &str| figures.get(columns.iter().position(|column| *column == name)?).copied();
        let row = text("DEV").zip(of_sar(|name| figure(text(name)?)));
        let Some((device, row)) = row else {
            self.unread = self.unread.take().or_else(|| Some((place, shown(line))));
            return;
        };
        let end = Time::of(&time);
        let is_same =
            self.begun.is_none() && self.last().is_some_and(|report| report.end.as_ref() == Some(&end));
        if !is_same {
            let start = self.begun.take();
            self.push(Report { start, end: Some(end), ..Report::default() });
        }
        if let Some(report) = self.runs.last_mut().and_then(|run| run.reports.last_mut()) {
            report.devices.insert(device.to_owned(), row);
        }
    }

    fn last(&self) -> Option<&Report> {
        self.runs.last()?.reports.last()
    }

    fn push(&mut self, report: Report) {
        if let Some(run) = self.runs.last_mut() {
            run.reports.push(report);
        }
    }

    /// Ends a run. An interval that began and has no row and no end is one of -z, where other intervals have none too.
    fn end_run(&mut self) {
        self.below = Below::Other;
        let begun = self.begun.take();
        let omits_idle =
            self.runs.iter().flat_map(|run| &run.reports).any(|report| report.devices.is_empty());
        if let Some(begun) = begun.filter(|_| omits_idle) {
            self.push(Report { start: Some(begun), ..Report::default() });
        }
    }
}
