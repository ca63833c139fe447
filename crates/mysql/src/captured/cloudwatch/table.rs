//! CSV exports of CloudWatch's console: rows about the graph, such as `Label`, `Stat` and `Period`, then a row for each time.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use super::metric::{Label, volume};
use super::{Declared, Figures, Place, Series};
use crate::captured::record_error::{RecordDamage, RecordedError};
use crate::captured::{Input, offset};

/// Lines in which the names of the metrics are looked for: the console writes a few lines about the graph before them.
const HEADING_LINES: usize = 20;
/// What would be right in the first column.
const A_TIME: &str = "a time such as 2026/11/22 10:00:00";

/// Rows that are cut short: they have fewer values than there are metrics, and are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShortRows {
    /// How many.
    rows: usize,
    /// Line number of the first, from 1 on.
    first: usize,
}

impl ShortRows {
    /// That they were left out, for people.
    fn words(self, path: &std::path::Path) -> String {
        let Self { rows, first } = self;
        let path = path.display();
        if rows == 1 {
            return format!(
                "{path}: line {first} has fewer values than the header has metrics, and was left out: the file may be cut off"
            );
        }
        format!(
            "{path}: {rows} rows have fewer values than the header has metrics, and were left out; the first is line {first}"
        )
    }
}

/// What the rows before the values say of each column but the first.
#[derive(Debug, Default)]
struct Heading {
    /// Cells that may name metric and volume, by column.
    words: Vec<Vec<String>>,
    statistics: Vec<String>,
    periods: Vec<String>,
    units: Vec<String>,
}

/// A metric's column.
struct Column {
    /// Its place in a row.
    place: usize,
    label: Label,
    values: Vec<(i64, f64)>,
}

/// Whether a text is meant to be such an export, damaged or not.
pub(super) fn is_meant(text: &str) -> bool {
    let names = |line: &str| cells(line).iter().any(|cell| Label::read(cell).is_some());
    text.lines().take(HEADING_LINES).any(|line| line.contains(',') && names(line))
}

/// Reads an export, whose text has no byte order mark.
pub(super) fn read(input: &Input, text: &str) -> Result<Figures, RecordedError> {
    let damaged = |cause| RecordedError::Damaged { path: input.path.clone(), cause };
    let mut heading = Heading::default();
    let mut columns: Vec<Column> = Vec::new();
    let mut short: Option<ShortRows> = None;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row = cells(line);
        let time = row.first().and_then(|cell| second(cell));
        if time.is_some() && columns.is_empty() {
            columns = heading.columns();
        }
        let needed = columns.last().map_or(0, |last| last.place + 1);
        match time {
            Some(_) if columns.is_empty() => return Err(damaged(RecordDamage::NoMetricNames)),
            _ if row.len() < needed => {
                short.get_or_insert(ShortRows { rows: 0, first: number + 1 }).rows += 1;
            }
            Some(time) => take_values(&row, time, &mut columns)
                .map_err(|cell| damaged(RecordDamage::at(number, "a number", &cell)))?,
            None if columns.is_empty() && !heading.is_row_of_values(&row) => heading.take(&row),
            None => return Err(damaged(RecordDamage::at(number, A_TIME, line))),
        }
    }
    if columns.is_empty() {
        columns = heading.columns();
    }
    let mut figures = Figures::default();
    figures.notes.extend(short.map(|short| short.words(&input.path)));
    for column in columns {
        let cell = |row: &[String]| cell_of(row, column.place - 1);
        let declared = Declared {
            statistic: cell(&heading.statistics),
            period: cell(&heading.periods),
            unit: cell(&heading.units),
        };
        let label = heading.words[column.place - 1].first().map(String::as_str);
        let place = Place::new(&input.path, Some(&format!("column {}", column.place + 1)), label);
        figures.series.push(Series::of_values(place, column.label, declared, column.values)?);
    }
    Ok(figures)
}

/// Takes a row's values; the error is the cell that is no number.
fn take_values(row: &[String], time: i64, columns: &mut [Column]) -> Result<(), String> {
    for column in columns {
        let cell = &row[column.place];
        if cell.is_empty() {
            continue;
        }
        column.values.push((time, cell.parse().map_err(|_| cell.clone())?));
    }
    Ok(())
}

/// The cell of a column; a row of a single cell is true of all columns.
fn cell_of(row: &[String], place: usize) -> Option<String> {
    let mut filled = row.iter().filter(|cell| !cell.is_empty());
    let only = filled.next().filter(|_| filled.next().is_none());
    row.get(place).filter(|cell| !cell.is_empty()).or(only).cloned()
}

impl Heading {
    /// Takes a row about the graph.
    fn take(&mut self, row: &[String]) {
        let Some((name, rest)) = row.split_first() else { return };
        let name: String =
            name.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
        match name.as_str() {
            "stat" | "stats" | "statistic" | "statistics" => self.statistics = rest.to_vec(),
            "period" | "periods" | "periodseconds" => self.periods = rest.to_vec(),
            "unit" | "units" => self.units = rest.to_vec(),
            _ => {
                let missing = rest.len().saturating_sub(self.words.len());
                self.words.extend(std::iter::repeat_n(Vec::new(), missing));
                for (words, cell) in self.words.iter_mut().zip(rest) {
                    words.push(cell.clone());
                }
            }
        }
    }

    /// Whether a row has values, and a first cell that ought to be a time.
    fn is_row_of_values(&self, row: &[String]) -> bool {
        let named = self.words.iter().flatten().any(|cell| Label::read(cell).is_some());
        let numbers = row.iter().skip(1).any(|cell| cell.parse::<f64>().is_ok());
        let digits = row.first().is_some_and(|cell| cell.contains(|c: char| c.is_ascii_digit()));
        named && numbers && digits
    }

    /// The columns of metrics that are read.
    fn columns(&self) -> Vec<Column> {
        let column = |(number, words): (usize, &Vec<String>)| {
            let mut labels = words.iter().filter_map(|cell| Label::read(cell));
            let mut label = labels.next()?;
            for other in labels {
                label.statistic = label.statistic.or(other.statistic);
                label.other_statistic = label.other_statistic.or(other.other_statistic);
                label.unit = label.unit.or(other.unit);
                label.period = label.period.or(other.period);
            }
            if label.volume.is_empty() {
                let id = words.iter().map(|cell| volume(cell)).find(|id| !id.is_empty());
                id.unwrap_or_default().clone_into(&mut label.volume);
            }
            Some(Column { place: number + 1, label, values: Vec::new() })
        };
        self.words.iter().enumerate().filter_map(column).collect()
    }
}

/// The fields of a line of CSV, without their quotes.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match (c, cells.last_mut()) {
            ('"', _) => quoted = !quoted,
            (',', _) if !quoted => cells.push(String::new()),
            (c, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// A time of an export, s since 1970; times without a zone are taken for UTC.
fn second(text: &str) -> Option<i64> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_second());
    }
    let (text, offset_s) = match text.strip_suffix("UTC").or_else(|| text.strip_suffix("GMT")) {
        Some(rest) => (rest.trim_end(), None),
        None => offset::split(text),
    };
    let zone = Offset::from_seconds(offset_s.unwrap_or(0)).ok()?;
    let text = text.replacen('T', " ", 1);
    let formats = ["%Y/%m/%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M"];
    formats.iter().find_map(|format| {
        let time = DateTime::strptime(format, &text).ok()?;
        Some(time.to_zoned(TimeZone::fixed(zone)).ok()?.timestamp().as_second())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_an_offset_or_are_of_utc() {
        let utc = second("2026/11/02 09:00:00").unwrap();
        for same in [
            "2026-11-02 09:00:00",
            "2026/11/02 09:00",
            "2026-11-02T09:00:00Z",
            "2026-11-02T09:00:00.000Z",
            "2026-11-02 09:00:00 UTC",
            "2026/11/02 09:00:00 GMT",
            "2026-11-02T10:00:00+01:00",
            "2026/11/02 10:00:00 +0100",
            "2026/11/02 10:00 +01",
            "2026-11-02 03:30:00-05:30",
        ] {
            assert_eq!(second(same), Some(utc), "{same}");
        }
        for other in
            ["", "Period", "300", "11/02/2026 09:00", "2026/11/02 09:00:00 +9", "2026/13/02 09:00:00"]
        {
            assert_eq!(second(other), None, "{other}");
        }
    }
}
