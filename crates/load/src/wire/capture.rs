//! Values that a script wants of a result: found in the rows as they pass, and kept.

use std::fmt::Write as _;
use std::ops::Range;

use ebbtide_workload::Datum;

use super::packet::{Malformed, length_encoded};

/// How a column's values are written in a binary row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnType {
    code: u8,
    unsigned: bool,
}

const TINY: u8 = 0x01;
const SHORT: u8 = 0x02;
const LONG: u8 = 0x03;
const FLOAT: u8 = 0x04;
const DOUBLE: u8 = 0x05;
const NULL: u8 = 0x06;
const TIMESTAMP: u8 = 0x07;
const LONGLONG: u8 = 0x08;
const INT24: u8 = 0x09;
const DATE: u8 = 0x0A;
const TIME: u8 = 0x0B;
const DATETIME: u8 = 0x0C;
const YEAR: u8 = 0x0D;
/// The flag of a column whose numbers have no sign.
const UNSIGNED: u8 = 0x20;

const SHORT_COLUMN: Malformed = Malformed("a short column");
const SHORT_ROW: Malformed = Malformed("a short row");

impl ColumnType {
    /// Reads the description of a column.
    pub(crate) fn of(packet: &[u8]) -> Result<Self, Malformed> {
        let mut rest = packet;
        // Catalogue, database, table and column with their real names.
        for _ in 0..6 {
            rest = text(rest)?.1;
        }
        // MariaDB may put a further type in between, whose length is not that of the fixed fields.
        while rest.first() != Some(&0x0C) {
            rest = text(rest)?.1;
        }
        // A length of 12: character set, width, type, flags.
        let [code, flags] = *rest.get(7..9).ok_or(SHORT_COLUMN)? else { return Err(SHORT_COLUMN) };
        Ok(Self { code, unsigned: flags & UNSIGNED != 0 })
    }

    fn is_whole(self) -> bool {
        matches!(self.code, TINY | SHORT | LONG | LONGLONG | INT24 | YEAR)
    }
}

/// A text and what comes behind it.
fn text(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (length, used) = length_encoded(bytes).ok_or(SHORT_COLUMN)?;
    let end = usize::try_from(length).ok().and_then(|length| used.checked_add(length)).ok_or(SHORT_COLUMN)?;
    Ok((bytes.get(used..end).ok_or(SHORT_COLUMN)?, &bytes[end..]))
}

/// A value that was found. Its text stays allocated.
#[derive(Debug, Clone, Default)]
struct CapturedValue {
    int: Option<i64>,
    /// None where the value is NULL or a number.
    is_text: bool,
    text: String,
    bytes: Vec<u8>,
}

/// What to keep of a result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Capture {
    binary: bool,
    columns: Vec<ColumnType>,
    /// The answer has brought the columns itself.
    renewed: bool,
    /// Rows and columns, from 0.
    wanted: Vec<(u64, usize)>,
    kept: Vec<CapturedValue>,
    /// The columns whose values are wanted of all rows. Those behind `collecting` were wanted before.
    collected: Vec<Collected>,
    collecting: usize,
}

/// A column whose values are wanted of all rows up to so many, and those of the rows so far.
#[derive(Debug, Clone, Default)]
struct Collected {
    column: usize,
    most: u64,
    rows: usize,
    values: Vec<CapturedValue>,
}

impl Capture {
    /// Forgets what was wanted before. The columns of a prepared statement are known: servers leave them out.
    pub(crate) fn begin(&mut self, binary: bool, columns: &[ColumnType]) {
        self.binary = binary;
        self.renewed = false;
        self.columns.clear();
        self.columns.extend_from_slice(columns);
        self.wanted.clear();
        self.collecting = 0;
    }

    /// Wants a column of all rows, so many at most.
    pub(crate) fn collect(&mut self, column: usize, most: u64) {
        if self.collected.len() == self.collecting {
            self.collected.push(Collected::default());
        }
        let collected = &mut self.collected[self.collecting];
        (collected.column, collected.most, collected.rows) = (column, most, 0);
        self.collecting += 1;
    }

    /// The values of a wanted column, by its place, row by row.
    pub(crate) fn collected(&self, at: usize) -> impl Iterator<Item = Datum<'_>> {
        let collected = &self.collected[at];
        collected.values[..collected.rows].iter().map(CapturedValue::datum)
    }

    /// Wants a value.
    pub(crate) fn want(&mut self, row: u64, column: usize) {
        if self.kept.len() == self.wanted.len() {
            self.kept.push(CapturedValue::default());
        }
        let kept = &mut self.kept[self.wanted.len()];
        (kept.int, kept.is_text) = (None, false);
        self.wanted.push((row, column));
    }

    /// What was found for a wanted value, by its place: NULL where there was no such row or column.
    pub(crate) fn value(&self, at: usize) -> Datum<'_> {
        self.kept[at].datum()
    }

    /// The columns that the answer has brought: a server leaves them out of later answers. None where it has left
    /// them out of this one.
    pub(crate) fn renewed(&self) -> Option<&[ColumnType]> {
        self.renewed.then_some(&self.columns)
    }

    pub(super) fn renew_columns(&mut self) {
        self.columns.clear();
        self.renewed = true;
    }

    pub(super) fn column(&mut self, packet: &[u8]) -> Result<(), Malformed> {
        self.columns.push(ColumnType::of(packet)?);
        Ok(())
    }

    /// Looks at row `number` of the result.
    pub(super) fn row(&mut self, number: u64, packet: &[u8]) -> Result<(), Malformed> {
        let wanted = self.wanted.iter().any(|(row, _)| *row == number);
        let collected = &mut self.collected[..self.collecting];
        if !wanted && collected.iter().all(|of| of.most <= number) {
            return Ok(());
        }
        collected.iter_mut().filter(|of| number < of.most).for_each(Collected::add_row);
        let nulls =
            if self.binary { packet.get(1..1 + (self.columns.len() + 9) / 8).ok_or(SHORT_ROW)? } else { &[] };
        let mut rest = if self.binary { &packet[1 + nulls.len()..] } else { packet };
        for (at, column) in self.columns.iter().enumerate() {
            let is_null = match nulls.get((at + 2) / 8) {
                Some(byte) => byte >> ((at + 2) % 8) & 1 == 1,
                None => rest.first() == Some(&0xFB),
            };
            if is_null {
                rest = if self.binary { rest } else { &rest[1..] };
                continue;
            }
            let range = if self.binary { binary_range(*column, rest)? } else { text_range(rest)? };
            let bytes = rest.get(range.clone()).ok_or(SHORT_ROW)?;
            rest = &rest[range.end..];
            if wanted {
                let places = self.wanted.iter().zip(&mut self.kept);
                for (_, kept) in places.filter(|((row, of), _)| (*row, *of) == (number, at)) {
                    kept.set(*column, bytes, self.binary);
                }
            }
            for of in collected.iter_mut().filter(|of| of.column == at && number < of.most) {
                of.values[of.rows - 1].set(*column, bytes, self.binary);
            }
        }
        Ok(())
    }
}

impl Collected {
    /// Makes room for the value of another row: NULL until it is found.
    fn add_row(&mut self) {
        if self.values.len() == self.rows {
            self.values.push(CapturedValue::default());
        }
        let value = &mut self.values[self.rows];
        (value.int, value.is_text) = (None, false);
        self.rows += 1;
    }
}

/// Where a value in the text protocol is in the rest of a row.
fn text_range(rest: &[u8]) -> Result<Range<usize>, Malformed> {
    let (value, behind) = text(rest)?;
    let end = rest.len() - behind.len();
    Ok(end - value.len()..end)
}

/// Where a value in the binary protocol is in the rest of a row.
fn binary_range(column: ColumnType, rest: &[u8]) -> Result<Range<usize>, Malformed> {
    let fixed = |bytes| Ok(0..bytes);
    match column.code {
        TINY => fixed(1),
        SHORT | YEAR => fixed(2),
        LONG | INT24 | FLOAT => fixed(4),
        LONGLONG | DOUBLE => fixed(8),
        NULL => fixed(0),
        _ => text_range(rest),
    }
}

impl CapturedValue {
    fn datum(&self) -> Datum<'_> {
        match self.int {
            Some(int) => Datum::Int(int),
            None if self.is_text => Datum::Text(&self.bytes),
            None => Datum::Null,
        }
    }

    fn set(&mut self, column: ColumnType, bytes: &[u8], binary: bool) {
        self.bytes.clear();
        self.text.clear();
        if column.is_whole() {
            let text = || std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<i128>().ok());
            let number = if binary { Some(whole(column, bytes)) } else { text() };
            self.int = number.and_then(|number| i64::try_from(number).ok());
            if self.int.is_some() {
                return;
            }
            // Over 63 bits.
            write!(self.text, "{}", number.unwrap_or(0)).expect("a String takes everything");
        } else if binary {
            self.write_binary(column, bytes);
        }
        self.is_text = true;
        let written = if self.text.is_empty() { bytes } else { self.text.as_bytes() };
        self.bytes.extend_from_slice(written);
    }

    /// As SQL writes it, where the bytes themselves are not that.
    fn write_binary(&mut self, column: ColumnType, bytes: &[u8]) {
        let text = &mut self.text;
        let written = match column.code {
            FLOAT => bytes.try_into().map(|bytes| write!(text, "{}", f32::from_le_bytes(bytes))).ok(),
            DOUBLE => bytes.try_into().map(|bytes| write!(text, "{}", f64::from_le_bytes(bytes))).ok(),
            DATE | DATETIME | TIMESTAMP => Some(write_date(text, column.code, bytes)),
            TIME => Some(write_time(text, bytes)),
            _ => None,
        };
        if let Some(written) = written {
            written.expect("a String takes everything");
        }
    }
}

fn whole(column: ColumnType, bytes: &[u8]) -> i128 {
    let negative = !column.unsigned && bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut wide = [if negative { 0xFF } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

fn number(bytes: &[u8]) -> u32 {
    let mut wide = [0; 4];
    wide[..bytes.len()].copy_from_slice(bytes);
    u32::from_le_bytes(wide)
}

/// Year (2 bytes), month, day; hour, minute, second; microseconds (4). What is all zero at the end is left out.
fn write_date(out: &mut String, code: u8, bytes: &[u8]) -> std::fmt::Result {
    let mut all = [0; 11];
    let length = bytes.len().min(11);
    all[..length].copy_from_slice(&bytes[..length]);
    write!(out, "{:04}-{:02}-{:02}", number(&all[..2]), all[2], all[3])?;
    if code != DATE {
        write!(out, " {:02}:{:02}:{:02}", all[4], all[5], all[6])?;
        write_micros(out, number(&all[7..]))?;
    }
    Ok(())
}

/// Sign, days (4 bytes), hour, minute, second; microseconds (4).
fn write_time(out: &mut String, bytes: &[u8]) -> std::fmt::Result {
    let mut all = [0; 12];
    let length = bytes.len().min(12);
    all[..length].copy_from_slice(&bytes[..length]);
    let sign = if all[0] == 1 { "-" } else { "" };
    write!(
        out,
        "{sign}{:02}:{:02}:{:02}",
        u64::from(number(&all[1..5])) * 24 + u64::from(all[5]),
        all[6],
        all[7]
    )?;
    write_micros(out, number(&all[8..]))
}

fn write_micros(out: &mut String, micros: u32) -> std::fmt::Result {
    if micros == 0 { Ok(()) } else { write!(out, ".{micros:06}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(code: u8, unsigned: bool) -> ColumnType {
        ColumnType { code, unsigned }
    }

    fn shown(columns: &[ColumnType], row: &[u8], at: usize) -> String {
        let mut capture = Capture::default();
        capture.begin(true, columns);
        capture.want(0, at);
        capture.row(0, row).unwrap();
        match capture.value(0) {
            Datum::Null => "NULL".into(),
            Datum::Int(int) => int.to_string(),
            Datum::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        }
    }

    #[test]
    fn values_of_a_binary_row_are_found_behind_others_of_every_length() {
        let columns = [
            column(LONG, false),
            column(0xFD, false),
            column(LONGLONG, true),
            column(DATETIME, false),
            column(DOUBLE, false),
            column(TINY, false),
        ];
        // No column is NULL; the bitmap leaves its first two bits free.
        let mut row = vec![0, 0];
        row.extend((-5_i32).to_le_bytes());
        row.extend([2, b'a', b'b']);
        row.extend(u64::MAX.to_le_bytes());
        row.extend([7, 0xEA, 0x07, 11, 22, 16, 30, 5]);
        row.extend(0.5_f64.to_le_bytes());
        row.push(0xFF);
        let all: Vec<String> = (0..6).map(|at| shown(&columns, &row, at)).collect();
        assert_eq!(all, ["-5", "'ab'", "'18446744073709551615'", "'2026-11-22 16:30:05'", "'0.5'", "-1"]);
    }

    #[test]
    fn null_takes_no_bytes_and_a_missing_row_or_column_is_null() {
        let columns = [column(LONG, false), column(TINY, false)];
        assert_eq!(shown(&columns, &[0, 0b100, 9], 0), "NULL");
        assert_eq!(shown(&columns, &[0, 0b100, 9], 1), "9");
        assert_eq!(shown(&columns, &[0, 0b100, 9], 5), "NULL");
        let mut capture = Capture::default();
        capture.begin(true, &columns);
        capture.want(3, 0);
        capture.row(0, &[0, 0, 1, 0, 0, 0, 1]).unwrap();
        assert_eq!(capture.value(0), Datum::Null);
        assert!(Capture { wanted: vec![(0, 0)], ..capture }.row(0, &[0, 0, 1]).is_err(), "a row cut short");
    }

    #[test]
    fn columns_are_collected_of_all_rows_up_to_the_most() {
        let mut capture = Capture::default();
        for round in 0..2 {
            capture.begin(false, &[column(LONG, false), column(0xFD, false)]);
            capture.collect(0, 2);
            capture.collect(1, 3);
            capture.want(2, 1);
            capture.row(0, b"\x017\x01a").unwrap();
            capture.row(1, b"\xFB\x01b").unwrap();
            capture.row(2, b"\x019\x01c").unwrap();
            let collected = |at| capture.collected(at).collect::<Vec<_>>();
            assert_eq!(collected(0), [Datum::Int(7), Datum::Null], "round {round}");
            assert_eq!(collected(1), [b"a", b"b", b"c"].map(|text| Datum::Text(text)), "round {round}");
            assert_eq!(capture.value(0), Datum::Text(b"c"));
        }
        capture.begin(false, &[]);
        capture.collect(0, 2);
        assert_eq!(capture.collected(0).count(), 0);
    }

    #[test]
    fn a_text_row_gives_the_same_values() {
        let mut capture = Capture::default();
        capture.begin(false, &[column(LONG, false), column(0xFD, false), column(LONG, false)]);
        capture.want(0, 0);
        capture.want(0, 1);
        capture.want(0, 2);
        capture.row(0, b"\x0212\x03abc\xFB").unwrap();
        assert_eq!(capture.value(0), Datum::Int(12));
        assert_eq!(capture.value(1), Datum::Text(b"abc"));
        assert_eq!(capture.value(2), Datum::Null);
    }
}
