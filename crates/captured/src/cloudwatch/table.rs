//! CSV exports of CloudWatch's console: rows about the graph, such as `Label`, `Stat` and `Period`, then a row for each time.
//!
//! A spreadsheet that opened and saved one has written it in its own language: fields divided by semicolons or tabs, dates of any
//! order, clocks of 12 hours, separators of thousands and decimal commas.

use csv::{ReaderBuilder, StringRecord, Trim};
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use super::metric::{Label, volume};
use super::numbers::NumberStyle;
use super::{Declared, Figures, Place, Series};
use crate::record_error::{RecordDamage, RecordedError};
use crate::sysstat::clock::{self, DAY, Day, Order, Stamp};
use crate::sysstat::timeline;
use crate::{Input, offset};

/// Lines in which the names of the metrics are looked for: the console writes a few lines about the graph before them.
const HEADING_LINES: usize = 20;
/// What would be right in the first column.
const A_TIME: &str = "a time such as 2026/11/22 10:00:00";
/// What would be right in the others.
const A_NUMBER: &str = "a number such as 59246 or 44.43, in one style in the whole file";

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
}

/// The time of a row.
#[derive(Debug, Clone, PartialEq)]
enum RowTime {
    /// Seconds since 1970.
    Known(i64),
    /// A date in the language of a spreadsheet.
    Printed(Stamp),
}

impl RowTime {
    fn read(cell: &str) -> Option<Self> {
        second(cell).map(Self::Known).or_else(|| printed(cell).map(Self::Printed))
    }

    /// Seconds since 1970, of UTC; None where the numbers are no date in this order.
    fn seconds(&self, order: Order) -> Option<i64> {
        let stamp = match self {
            Self::Known(seconds) => return Some(*seconds),
            Self::Printed(stamp) => stamp,
        };
        #[expect(clippy::cast_possible_truncation, reason = "a second of a day, or of a date")]
        let second = stamp.second as i64;
        if stamp.day == Day::Epoch {
            return Some(second);
        }
        #[expect(clippy::cast_possible_truncation, reason = "a whole number")]
        let day = DAY as i64;
        Some(stamp.days(order)? * day + second)
    }
}

/// What divides the fields of an export: the first of these with which a line names metrics.
const DELIMITERS: [char; 3] = [',', ';', '\t'];

/// What divides the fields of an export; None where no line names a metric.
fn delimiter(text: &str) -> Option<char> {
    let names = |line: &str, delimiter: char| {
        line.contains(delimiter)
            && line.split(delimiter).any(|cell| Label::read(cell.trim().trim_matches('"')).is_some())
    };
    let lines: Vec<&str> = text.lines().take(HEADING_LINES).collect();
    DELIMITERS.into_iter().find(|delimiter| lines.iter().any(|line| names(line, *delimiter)))
}

/// Whether a text is meant to be such an export, damaged or not.
pub(super) fn is_meant(text: &str) -> bool {
    delimiter(text).is_some()
}

/// The rows of a text, with the line of each from 0 on.
fn rows(text: &str, delimiter: char) -> impl Iterator<Item = (usize, StringRecord)> + '_ {
    let reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(u8::try_from(delimiter).unwrap_or(b','))
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    // The place until which lines are counted, and their number.
    let (mut counted, mut line) = (0, 0);
    // A text in memory has no error: it is UTF-8, and rows may have any length.
    reader.into_records().map_while(Result::ok).map(move |record| {
        let begin = record.position().map_or(0, csv::Position::byte);
        let begin = usize::try_from(begin).unwrap_or(text.len()).min(text.len());
        // A row may begin with the rest of the line end before it, and with blank lines.
        let blank = text.as_bytes()[begin..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let begin = begin + blank;
        line += text.as_bytes()[counted..begin].iter().filter(|byte| **byte == b'\n').count();
        counted = begin;
        (line, record)
    })
}

/// Reads an export, whose text has no byte order mark.
pub(super) fn read(input: &Input, text: &str) -> Result<Figures, RecordedError> {
    let damaged = |cause| RecordedError::Damaged { path: input.path.clone(), cause };
    let delimiter = delimiter(text).unwrap_or(',');
    let mut heading = Heading::default();
    let mut columns: Vec<Column> = Vec::new();
    let mut short: Option<ShortRows> = None;
    // Of each row with values its line and its time, and the row.
    let mut times: Vec<(usize, RowTime)> = Vec::new();
    let mut values: Vec<StringRecord> = Vec::new();
    for (number, row) in rows(text, delimiter) {
        // `sep=;` of Excel, and rows of nothing.
        if row.iter().all(|cell| cell.is_empty() || cell.starts_with("sep=")) {
            continue;
        }
        let time = row.get(0).and_then(RowTime::read);
        if time.is_some() && columns.is_empty() {
            columns = heading.columns();
        }
        let needed = columns.last().map_or(0, |last| last.place + 1);
        match time {
            Some(_) if columns.is_empty() => return Err(damaged(RecordDamage::NoMetricNames)),
            _ if row.len() < needed => {
                short.get_or_insert(ShortRows { rows: 0, first: number + 1 }).rows += 1;
            }
            Some(time) => {
                values.push(row);
                times.push((number, time));
            }
            None => {
                let row: Vec<String> = row.iter().map(str::to_owned).collect();
                if columns.is_empty() && !heading.is_row_of_values(&row) {
                    heading.take(&row);
                    continue;
                }
                let found = row.join(&delimiter.to_string());
                return Err(damaged(RecordDamage::at(number, A_TIME, &beginning(&found))));
            }
        }
    }
    if columns.is_empty() {
        columns = heading.columns();
    }
    let mut figures = Figures::default();
    figures.notes.extend(short.map(|short| short.words(&input.path)));
    let seconds = seconds(&times, input, &mut figures.notes).map_err(damaged)?;
    let numbers = columns.iter().flat_map(|column| cells(&values, column.place).map(|(_, cell)| cell));
    let style = NumberStyle::of(numbers, delimiter);
    for column in columns {
        let value = |(row, cell): (usize, &str)| {
            let number = style.and_then(|style| style.read(cell));
            let number = number.ok_or_else(|| RecordDamage::at(times[row].0, A_NUMBER, &beginning(cell)));
            Ok((seconds[row], number?))
        };
        let values = cells(&values, column.place).map(value).collect::<Result<_, _>>().map_err(damaged)?;
        let cell = |row: &[String]| cell_of(row, column.place - 1);
        let declared = Declared {
            statistic: cell(&heading.statistics),
            period: cell(&heading.periods),
            unit: cell(&heading.units),
        };
        let label = heading.words[column.place - 1].first().map(String::as_str);
        let place = Place::new(&input.path, Some(&format!("column {}", column.place + 1)), label);
        figures.series.push(Series::of_values(place, column.label, declared, values)?);
    }
    Ok(figures)
}

/// The cells of a column that are not empty, with the places of their rows.
fn cells(rows: &[StringRecord], place: usize) -> impl Iterator<Item = (usize, &str)> {
    let cells = rows.iter().enumerate().map(move |(row, cells)| (row, &cells[place]));
    cells.filter(|(_, cell)| !cell.is_empty())
}

/// Letters of a cell that are shown, at most: a quotation mark without its second may have the rest of the file in one.
const SHOWN: usize = 80;

fn beginning(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// The times of rows, s since 1970. The order of the numbers in dates is that in which the times of all rows go onward with the
/// least distance.
fn seconds(
    times: &[(usize, RowTime)],
    input: &Input,
    notes: &mut Vec<String>,
) -> Result<Vec<i64>, RecordDamage> {
    let stamps: Vec<&Stamp> = times
        .iter()
        .filter_map(|(_, time)| match time {
            RowTime::Printed(stamp) => Some(stamp),
            RowTime::Known(_) => None,
        })
        .collect();
    let refuse = |(line, time): &(usize, RowTime)| {
        let found = match time {
            RowTime::Printed(stamp) => stamp.text.clone(),
            RowTime::Known(seconds) => seconds.to_string(),
        };
        RecordDamage::at(*line, A_TIME, &found)
    };
    let Some(first) = stamps.first() else {
        return Ok(times.iter().filter_map(|(_, time)| time.seconds(Order::DayMonthYear)).collect());
    };
    let order = timeline::order(std::slice::from_ref(&stamps)).ok_or_else(|| refuse(&times[0]))?;
    if matches!(first.day, Day::Numbers(_)) {
        let part = match order {
            Order::DayMonthYear => "day",
            Order::MonthDayYear => "month",
            Order::YearMonthDay => "year",
        };
        notes.push(format!(
            "{}: dates such as '{}' are read with the {part} first, and as UTC",
            input.path.display(),
            first.text
        ));
    }
    times.iter().map(|row| row.1.seconds(order).ok_or_else(|| refuse(row))).collect()
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
        let is_number = |cell: &String| {
            let style = NumberStyle::of(std::iter::once(cell.as_str()), ';');
            style.is_some_and(|style| style.read(cell).is_some())
        };
        let numbers = row.iter().skip(1).any(is_number);
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
            Some(Column { place: number + 1, label })
        };
        self.words.iter().enumerate().filter_map(column).collect()
    }
}

/// The time that the console itself writes, such as `2026/11/22 10:00:00`, or with hyphens: most rows have it.
fn plain_second(text: &str) -> Option<i64> {
    let bytes: &[u8; 19] = text.as_bytes().try_into().ok()?;
    let mark = bytes[4];
    if [bytes[7], bytes[10], bytes[13], bytes[16]] != [mark, b' ', b':', b':'] || !matches!(mark, b'/' | b'-')
    {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0_i16, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + i16::from(byte - b'0'))
        })
    };
    let part = |from: usize| number(from, from + 2).and_then(|part| i8::try_from(part).ok());
    let time = DateTime::new(number(0, 4)?, part(5)?, part(8)?, part(11)?, part(14)?, part(17)?, 0).ok()?;
    Some(Offset::UTC.to_timestamp(time).ok()?.as_second())
}

/// A time of an export, s since 1970; times without a zone are taken for UTC.
fn second(text: &str) -> Option<i64> {
    if let Some(time) = plain_second(text) {
        return Some(time);
    }
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

/// A time as a spreadsheet prints it, with seconds, without, or a date alone; None in a text that is none.
fn printed(text: &str) -> Option<Stamp> {
    let with_seconds = match text.match_indices(':').collect::<Vec<_>>()[..] {
        [(colon, _)] => {
            let minutes = colon + 1;
            let end = text[minutes..].find(|letter: char| !letter.is_ascii_digit());
            let end = end.map_or(text.len(), |end| minutes + end);
            Some(format!("{}:00{}", &text[..end], &text[end..]))
        }
        [] => None,
        _ => Some(text.to_owned()),
    };
    let stamp = match with_seconds {
        Some(time) => Stamp { text: text.to_owned(), ..clock::stamp(&time)? },
        None => clock::date(text)?,
    };
    matches!(stamp.day, Day::Known(_) | Day::Numbers(_) | Day::Epoch).then_some(stamp)
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
