//! The rows of the tables: who loads which, and what is in them.

use crate::description::{Description, Fill, Keep};
use crate::distribution::Random;
use crate::expr::{Datum, Evaluated, Expr, Register, Scope, Slot};
use crate::unique::UniqueIds;

/// A stretch of rows of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The table's place in [`Description::tables`].
    pub table: usize,
    /// Its number, from 1; 0 for a table without one.
    pub number: u32,
    /// The first row, from 1.
    pub first: u32,
    /// The last row; less than the first one where the table stays empty.
    pub last: u32,
}

/// The rows of all tables in parts, for as many connections to load at the same time. A table is split where there
/// has more bytes than a connection's share of all, and where it has the rows for it. Every table has a part.
#[must_use]
pub fn parts(description: &Description, connections: u32) -> Vec<Part> {
    let mut parts = Vec::new();
    let all = u128::from(description.data_bytes());
    for (place, table) in description.tables.iter().enumerate() {
        let Fill { rows, stream_rows, .. } = table.fill;
        // A table has as many pieces as its share of the bytes is in those of a connection.
        let share = u128::from(table.bytes()) * u128::from(connections);
        let pieces = u32::try_from(share.div_ceil(all.max(1))).unwrap_or(u32::MAX);
        let pieces = pieces.clamp(1, rows.div_ceil(stream_rows).max(1));
        // Whole streams per part, so that two parts never share one.
        let length = rows.div_ceil(pieces).div_ceil(stream_rows).max(1).saturating_mul(stream_rows);
        let step = usize::try_from(length).expect("a u32 fits");
        for number in table.numbers() {
            parts.extend((0..rows.max(1)).step_by(step).map(|start| Part {
                table: place,
                number,
                first: start + 1,
                last: start.saturating_add(length).min(rows),
            }));
        }
    }
    parts
}

/// Writes the rows of one table.
#[derive(Debug)]
pub struct RowWriter<'a> {
    fill: &'a Fill,
    seed: u64,
    number: u32,
    random: Random,
    registers: Vec<Slot>,
    unique: UniqueIds,
    scratch: Vec<u8>,
}

impl<'a> RowWriter<'a> {
    /// For the table with this number.
    #[must_use]
    pub fn new(fill: &'a Fill, seed: u64, number: u32) -> Self {
        let registers = fill.lets.iter().map(|(Register(at), _)| usize::from(*at) + 1).max().unwrap_or(0);
        Self {
            fill,
            seed,
            number,
            random: Random::new(seed, 0),
            registers: vec![Slot::default(); registers],
            unique: UniqueIds::new(seed),
            scratch: Vec::new(),
        }
    }

    /// Appends a row as SQL, in parentheses, with a comma before it if `follows`; false where the table
    /// leaves the row out. Rows of a part come one after the other, from its first one.
    pub fn row(&mut self, row: u32, follows: bool, out: &mut Vec<u8>) -> bool {
        if !self.begin(row) {
            return false;
        }
        if follows {
            out.push(b',');
        }
        self.values(row, b"(", b',', out, |datum, out| datum.write_sql(out));
        out.push(b')');
        true
    }

    /// Appends a row as a line for LOAD DATA with the default of its FIELDS and LINES; false where the table leaves the row
    /// out. Rows of a part come one after the other, from its first one.
    pub fn line(&mut self, row: u32, out: &mut Vec<u8>) -> bool {
        if !self.begin(row) {
            return false;
        }
        self.values(row, b"", b'\t', out, |datum, out| datum.write_field(out));
        out.push(b'\n');
        true
    }

    /// Draws what a row's values depend on; false where the table leaves the row out.
    fn begin(&mut self, row: u32) -> bool {
        let stream_rows = self.fill.stream_rows;
        if (row - 1).is_multiple_of(stream_rows) {
            // Numbers of tables have 17 bits.
            let table = u64::from(self.fill.salt) << 24 | u64::from(self.number);
            let stream = table << 32 | u64::from(row / stream_rows);
            self.random = Random::new(self.seed, stream);
        }
        let fill = self.fill;
        for (register, expr) in &fill.lets {
            let value = self.evaluate(expr, row);
            // The value is in the scratch buffer, not in a register.
            self.registers[usize::from(register.0)].set(value.datum(&self.scratch));
        }
        match &fill.keep {
            Some(Keep { condition, .. }) => {
                matches!(self.evaluate(condition, row), Evaluated::Int(number) if number != 0)
            }
            None => true,
        }
    }

    /// Appends the values of a row, `before` the first of them and `between` two.
    fn values(
        &mut self,
        row: u32,
        before: &[u8],
        between: u8,
        out: &mut Vec<u8>,
        write: fn(Datum<'_>, &mut Vec<u8>),
    ) {
        out.extend_from_slice(before);
        for (at, expr) in self.fill.values.iter().enumerate() {
            if at > 0 {
                out.push(between);
            }
            let value = self.evaluate(expr, row);
            write(value.datum(&self.scratch), out);
        }
    }

    /// Works a value out; a text is in the scratch buffer.
    fn evaluate(&mut self, expr: &Expr, row: u32) -> Evaluated {
        self.scratch.clear();
        let Self { seed, random, registers, unique, scratch, .. } = self;
        let mut scope = Scope { registers, seed: *seed, random, client: 0, sequence: 0, row, unique };
        expr.evaluate(&mut scope, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;
    use crate::expr::Op;
    use crate::sysbench::{Mix, Schema, Sysbench, Workload};

    fn sysbench(tables: u32, table_size: u32) -> Description {
        let schema = Schema { tables, table_size, ..Schema::default() };
        let (mix, distribution) = (Mix::default(), Distribution::Uniform);
        let workload = Workload::ReadWrite;
        Sysbench { workload, schema, mix, distribution, clients: 1, marks: false }.describe()
    }

    #[test]
    fn tables_are_split_into_whole_streams_where_there_are_more_connections() {
        let bounds = |connections| {
            let parts = parts(&sysbench(3, 25_000), connections);
            parts.iter().map(|part| (part.number, part.first, part.last)).collect::<Vec<_>>()
        };
        assert_eq!(bounds(3), [(1, 1, 25_000), (2, 1, 25_000), (3, 1, 25_000)]);
        let split = [1, 2, 3].map(|number| [(number, 1, 20_000), (number, 20_001, 25_000)]);
        assert_eq!(bounds(4), split.concat());
    }

    #[test]
    fn a_table_without_rows_has_a_part_for_its_index() {
        let mut description = sysbench(1, 10);
        description.tables[0].fill.rows = 0;
        assert_eq!(parts(&description, 4), [Part { table: 0, number: 1, first: 1, last: 0 }]);
    }

    #[test]
    fn a_larger_table_has_more_parts_and_a_condition_leaves_rows_out() {
        let mut description = sysbench(1, 30_000);
        let mut small = description.tables[0].clone();
        (small.name, small.fill.rows) = ("small{}".into(), 10_000);
        small.fill.keep = Some(Keep { condition: Expr::Row.op(Op::Rem, Expr::Int(2)), percent: 50 });
        description.tables.push(small);
        let of = |table| parts(&description, 4).into_iter().filter(move |part| part.table == table).count();
        assert_eq!((of(0), of(1)), (3, 1), "{:?}", parts(&description, 4));
        assert_eq!(description.rows(), 35_000);
        let mut rows = RowWriter::new(&description.tables[1].fill, 1, 1);
        let mut out = Vec::new();
        let kept = (1..=10).filter(|row| rows.row(*row, !out.is_empty(), &mut out)).count();
        let text = String::from_utf8(out).unwrap();
        assert_eq!((kept, text.matches("),(").count()), (5, 4), "{text}");
        assert!(text.starts_with("(1,") && text.contains("),(9,"), "{text}");
    }

    #[test]
    fn a_line_has_the_values_of_its_row() {
        let mut description = sysbench(1, 100);
        let fill = &mut description.tables[0].fill;
        fill.columns = "";
        fill.values =
            vec![Expr::Row, Expr::Null, Expr::Text("a\tb\\c\nd'e\0".into()), Expr::up_to(1_000_000)];
        let fill = &description.tables[0].fill;
        let (mut as_sql, mut as_lines) = (RowWriter::new(fill, 1, 1), RowWriter::new(fill, 1, 1));
        let (mut sql, mut lines) = (Vec::new(), Vec::new());
        assert!(as_sql.row(1, false, &mut sql) && as_lines.line(1, &mut lines));
        let (sql, lines) = (String::from_utf8(sql).unwrap(), String::from_utf8(lines).unwrap());
        let drawn = sql.rsplit(',').next().unwrap().trim_end_matches(')');
        assert_eq!(lines, format!("1\t\\N\ta\\\tb\\\\c\\\nd'e\\0\t{drawn}\n"));
    }

    /// The lengths and checksums are those of the version before workloads were described as data: data that were
    /// prepared then are still the same.
    #[test]
    fn a_seed_gives_the_same_rows_in_every_version() {
        let description = sysbench(3, 25_000);
        let mut rows = RowWriter::new(&description.tables[0].fill, 1, 2);
        let mut out = Vec::new();
        (10_001..=25_000).for_each(|row| {
            rows.row(row, false, &mut out);
        });
        assert_eq!((out.len(), crc32fast::hash(&out)), (2_948_286, 0x2d5b_2318));
    }
}
