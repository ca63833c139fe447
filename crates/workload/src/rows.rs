//! The rows of the tables: who loads which, and what is in them.

use crate::description::{Description, Fill};
use crate::distribution::Random;
use crate::expr::{Datum, Expr, Register, Scope, Slot};
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
/// are more connections than tables, and where it has the rows for it. Every table has a part.
#[must_use]
pub fn parts(description: &Description, connections: u32) -> Vec<Part> {
    let mut parts = Vec::new();
    let pieces = connections.div_ceil(description.table_count().max(1));
    for (place, table) in description.tables.iter().enumerate() {
        let Fill { rows, stream_rows, .. } = table.fill;
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

    /// Appends a row as SQL, in parentheses. Rows of a part come one after the other, from its first one.
    pub fn row(&mut self, row: u32, out: &mut Vec<u8>) {
        let stream_rows = self.fill.stream_rows;
        if (row - 1).is_multiple_of(stream_rows) {
            let stream = u64::from(self.number) << 32 | u64::from(row / stream_rows);
            self.random = Random::new(self.seed, stream);
        }
        for (register, expr) in &self.fill.lets {
            let value =
                evaluate(expr, row, &self.registers, &mut self.random, &self.unique, &mut self.scratch);
            // The value lies in the scratch buffer, not in a register.
            self.registers[usize::from(register.0)].set(value);
        }
        for (at, expr) in self.fill.values.iter().enumerate() {
            out.push(if at == 0 { b'(' } else { b',' });
            evaluate(expr, row, &self.registers, &mut self.random, &self.unique, &mut self.scratch)
                .write_sql(out);
        }
        out.push(b')');
    }
}

fn evaluate<'s>(
    expr: &Expr,
    row: u32,
    registers: &[Slot],
    random: &mut Random,
    unique: &UniqueIds,
    scratch: &'s mut Vec<u8>,
) -> Datum<'s> {
    scratch.clear();
    let mut scope = Scope { registers, random, client: 0, sequence: 0, row, unique };
    expr.evaluate(&mut scope, scratch).datum(scratch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;
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

    /// The lengths and checksums are those of the version before workloads were described as data: data that were
    /// prepared then are still the same.
    #[test]
    fn a_seed_gives_the_same_rows_in_every_version() {
        let description = sysbench(3, 25_000);
        let mut rows = RowWriter::new(&description.tables[0].fill, 1, 2);
        let mut out = Vec::new();
        (10_001..=25_000).for_each(|row| rows.row(row, &mut out));
        assert_eq!((out.len(), crc32fast::hash(&out)), (2_948_286, 0x2d5b_2318));
    }
}
