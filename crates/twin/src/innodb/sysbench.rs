//! sysbench's OLTP family as page classes, for the tables, statements and distributions that `ebbtide load` executes.

use ebbtide_workload::log_bytes::{self, BinlogImage, Changes, LogMaker};
use ebbtide_workload::sysbench::{Mix, RowLengths, Schema, Sysbench, Workload};
use ebbtide_workload::{Distribution, Drawer, Random};

use super::pages::PageKind;
use super::shape::{EXTENT, Shape, TransactionType};

/// Rows of a leaf page: a row of `sbtest` takes about 204 bytes.
const ROWS_PER_PAGE: f64 = 75.0;
/// Entries of a leaf page of the index on k, two thirds full.
const ENTRIES_PER_PAGE: f64 = 640.0;
/// Rows of a statement of `bulk_insert`.
const BULK_ROWS: f64 = 1_000.0;
/// Parts into which a table is cut to see where the draws go.
const PARTS: u32 = 2_048;
const DRAWS: u32 = 400_000;

/// The part of the redo that describes undo records.
const UNDO_OF_REDO: f64 = 0.3;

/// What a transaction does to pages.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    reads: f64,
    /// Ranges that are longer than an extent, and the pages of one.
    scans: f64,
    run: f64,
    row_changes: f64,
    index_changes: f64,
    /// Inserted at the end of the tables, where they grow.
    grows: f64,
    updates: f64,
    /// Entries of the index, and rows, that are marked as deleted and that purge removes.
    purged_entries: f64,
    purged_rows: f64,
    statements: f64,
    /// What is written to the logs: by so many transactions, which the model commits together.
    changes: Changes,
    commits: f64,
}

impl Work {
    fn of(sysbench: &Sysbench) -> Self {
        let mix = &sysbench.mix;
        let index = f64::from(u8::from(sysbench.schema.create_secondary));
        let one = Self { statements: 1.0, ..Self::default() };
        // Each commits by itself, the model commits them together.
        let updates = |each: u32, index: f64, changes: fn(f64) -> Changes| {
            let each = f64::from(each.max(1));
            Self {
                changes: changes(each),
                commits: each,
                row_changes: each,
                index_changes: each * index,
                updates: each,
                purged_entries: each * index,
                statements: each,
                ..Self::default()
            }
        };
        match sysbench.workload {
            Workload::PointSelect => Self { reads: 1.0, ..one },
            Workload::ReadOnly => Self::reading(mix),
            Workload::ReadWrite => Self::reading(mix).and(Self::writing(mix, index)),
            Workload::WriteOnly => Self::writing(mix, index),
            Workload::Insert => Self {
                grows: 1.0,
                index_changes: index,
                changes: Changes { inserts: 1.0, ..Changes::default() },
                commits: 1.0,
                ..one
            },
            Workload::Delete => Self {
                row_changes: 1.0,
                index_changes: index,
                updates: 1.0,
                purged_entries: index,
                purged_rows: 1.0,
                changes: Changes { deletes: 1.0, ..Changes::default() },
                commits: 1.0,
                ..one
            },
            Workload::UpdateIndex => updates(mix.index_updates, index, |index_updates| Changes {
                index_updates,
                ..Changes::default()
            }),
            Workload::UpdateNonIndex => updates(mix.non_index_updates, 0.0, |plain_updates| Changes {
                plain_updates,
                ..Changes::default()
            }),
            Workload::BulkInsert => Self {
                grows: BULK_ROWS,
                changes: Changes { bulk_rows: BULK_ROWS, ..Changes::default() },
                commits: 1.0,
                ..one
            },
            // Its gets; `kinds` has its puts too.
            Workload::KeyValue => Self { reads: 1.0, ..one },
        }
    }

    fn reading(mix: &Mix) -> Self {
        let ranges = mix.simple_ranges + mix.sum_ranges + mix.order_ranges + mix.distinct_ranges;
        let ranges = if mix.range_selects { f64::from(ranges) } else { 0.0 };
        let points = f64::from(mix.point_selects);
        let run = 1.0 + f64::from(mix.range_size) / ROWS_PER_PAGE;
        let statements = points + ranges + 2.0;
        if run > EXTENT {
            return Self { reads: points, scans: ranges, run, statements, ..Self::default() };
        }
        Self { reads: points + ranges * run, statements, ..Self::default() }
    }

    fn writing(mix: &Mix, index: f64) -> Self {
        let (indexed, plain) = (f64::from(mix.index_updates), f64::from(mix.non_index_updates));
        let pairs = f64::from(mix.delete_inserts);
        Self {
            // The insert of a pair finds the page of its delete.
            row_changes: indexed + plain + pairs,
            index_changes: index * (indexed + 2.0 * pairs),
            updates: indexed + plain,
            // The row of a pair is there again before purge comes.
            purged_entries: index * (indexed + pairs),
            statements: indexed + plain + 2.0 * pairs + 2.0,
            changes: Changes { index_updates: indexed, plain_updates: plain, pairs, ..Changes::default() },
            commits: 1.0,
            ..Self::default()
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            scans: self.scans + other.scans,
            run: self.run.max(other.run),
            row_changes: self.row_changes + other.row_changes,
            index_changes: self.index_changes + other.index_changes,
            grows: self.grows + other.grows,
            updates: self.updates + other.updates,
            purged_entries: self.purged_entries + other.purged_entries,
            purged_rows: self.purged_rows + other.purged_rows,
            statements: self.statements + other.statements - 2.0,
            // The first only reads.
            changes: other.changes,
            commits: other.commits,
        }
    }

    /// References to pages of rows.
    fn touched(&self) -> f64 {
        self.reads + self.row_changes + self.scans
    }

    fn redo_bytes(&self, maker: LogMaker, lengths: RowLengths) -> f64 {
        log_bytes::redo(maker, self.changes, self.commits, lengths)
    }

    /// With whole row images.
    fn binlog_bytes(&self, maker: LogMaker, lengths: RowLengths) -> f64 {
        log_bytes::binlog(maker, BinlogImage::Full, self.changes, self.commits, lengths)
    }
}

/// The kinds of transaction with their shares.
fn kinds(sysbench: &Sysbench) -> Vec<(&'static str, f64, Work)> {
    if sysbench.workload != Workload::KeyValue {
        return vec![(sysbench.workload.name(), 1.0, Work::of(sysbench))];
    }
    let gets = f64::from(sysbench.mix.gets_pct) / 100.0;
    let mix = Mix { non_index_updates: 1, ..sysbench.mix.clone() };
    let of = |workload| Work::of(&Sysbench { workload, mix: mix.clone(), ..sysbench.clone() });
    let both = [("get", gets, of(Workload::KeyValue)), ("put", 1.0 - gets, of(Workload::UpdateNonIndex))];
    both.into_iter().filter(|(_, share, _)| *share > 0.0).collect()
}

/// The workload as page classes, with the logs of a maker's server. `seed` decides the sample of its distribution.
#[must_use]
pub fn shape(sysbench: &Sysbench, maker: LogMaker, seed: u64) -> Shape {
    let kinds = kinds(sysbench);
    let lengths = sysbench.schema.lengths.unwrap_or(RowLengths::SYSBENCH);
    let types = kinds.iter().map(|&(name, share, work)| TransactionType {
        name: name.into(),
        share,
        statements: work.statements,
        redo_bytes: work.redo_bytes(maker, lengths),
        binlog_bytes: work.binlog_bytes(maker, lengths),
        ..TransactionType::default()
    });
    let mut shape = Shape::new(sysbench.workload.name(), types.collect());
    let (rows, entries) = pages(&sysbench.schema);
    let levels = levels(sysbench.distribution, seed);
    // What each kind references of a class, and the share of that which it changes.
    let touches = |of: &dyn Fn(&Work) -> (f64, f64)| -> Vec<(usize, f64, f64)> {
        let all = kinds.iter().enumerate().map(|(kind, (_, _, work))| (kind, of(work)));
        all.filter(|(_, (references, _))| *references > 0.0)
            .map(|(kind, (references, changes))| (kind, references, changes / references))
            .collect()
    };
    let any = |of: &dyn Fn(&Work) -> f64| kinds.iter().any(|(_, _, work)| of(work) > 0.0);
    if any(&Work::touched) {
        let of_rows = touches(&|work| (work.reads + work.row_changes, work.row_changes));
        for (class, draws) in add(&mut shape, "rows", rows, &levels, &of_rows, false) {
            for (kind, (_, _, work)) in kinds.iter().enumerate() {
                if work.scans > 0.0 {
                    // A range is on neighbouring pages, which differ little in heat.
                    shape.scan(class, kind, work.scans * work.run * draws, work.run);
                }
                shape.purge(class, kind, work.purged_rows * draws);
            }
        }
    }
    if any(&|work| work.index_changes) {
        // Values of k are drawn like ids, and spread when they are updated.
        let of_index = touches(&|work| (work.index_changes, work.index_changes));
        for (class, draws) in add(&mut shape, "index on k", entries, &levels, &of_index, true) {
            for (kind, (_, _, work)) in kinds.iter().enumerate() {
                shape.purge(class, kind, work.purged_entries * draws);
            }
        }
    }
    if any(&|work| work.grows) {
        let grown = touches(&|work| (work.grows / ROWS_PER_PAGE, work.grows / ROWS_PER_PAGE));
        shape.class("grown", PageKind::Once { read: false }, &grown);
    }
    let upper = ((rows + entries) / 700.0).max(1.0);
    let kind = PageKind::Reused { pages: upper, revisits: None };
    let of_upper = touches(&|work| (2.0 * (work.touched() + work.index_changes).max(1.0), 0.0));
    shape.class("upper levels", kind, &of_upper);
    shape.undo(UNDO_OF_REDO);
    shape
}

/// Leaf pages of the rows and of the index on k.
fn pages(schema: &Schema) -> (f64, f64) {
    let rows = f64::from(schema.tables) * f64::from(schema.table_size);
    ((rows / ROWS_PER_PAGE).max(1.0), (rows / ENTRIES_PER_PAGE).max(1.0))
}

/// Adds the levels of a table or of its index; returns their classes with their shares of the draws.
fn add(
    shape: &mut Shape,
    name: &str,
    pages: f64,
    levels: &[(f64, f64)],
    touches: &[(usize, f64, f64)],
    secondary: bool,
) -> Vec<(usize, f64)> {
    let level = |&(of_pages, of_draws): &(f64, f64)| {
        let kind = PageKind::Reused { pages: pages * of_pages, revisits: None };
        let touches: Vec<_> =
            touches.iter().map(|&(of, references, modified)| (of, references * of_draws, modified)).collect();
        let class =
            if secondary { shape.secondary(name, kind, &touches) } else { shape.class(name, kind, &touches) };
        (class, of_draws)
    };
    levels.iter().map(level).collect()
}

/// Shares of pages and of draws, from the hottest part of a table to the coldest: neighbours in heat within a factor of
/// two are one level.
fn levels(distribution: Distribution, seed: u64) -> Vec<(f64, f64)> {
    if distribution == Distribution::Uniform {
        return vec![(1.0, 1.0)];
    }
    let drawer = Drawer::new(distribution);
    let mut random = Random::new(seed, 0x1D_57);
    let mut counts = vec![0_u32; PARTS as usize];
    for _ in 0..DRAWS {
        counts[drawer.id(&mut random, PARTS) as usize - 1] += 1;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let mut levels: Vec<(f64, f64)> = Vec::new();
    let mut hottest = 0;
    for count in counts {
        if levels.is_empty() || count * 2 < hottest {
            hottest = count;
            levels.push((0.0, 0.0));
        }
        let level = levels.last_mut().expect("one was pushed for the first count");
        level.0 += 1.0 / f64::from(PARTS);
        level.1 += f64::from(count) / f64::from(DRAWS);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::super::pages::{Pool, pages_per_transaction};
    use super::*;

    fn sysbench(workload: Workload, distribution: Distribution) -> Sysbench {
        let schema = Schema { tables: 8, table_size: 1_000_000, ..Schema::default() };
        Sysbench { workload, schema, mix: Mix::default(), distribution, clients: 1, marks: false }
    }

    #[test]
    fn uniform_point_selects_read_the_share_that_does_not_fit() {
        let shape = shape(&sysbench(Workload::PointSelect, Distribution::Uniform), LogMaker::MariaDb, 1);
        let (rows, _) = pages(&Schema { tables: 8, table_size: 1_000_000, ..Schema::default() });
        let (reads, writes) = pages_per_transaction(&shape.classes, &Pool::plain(rows / 2.0));
        assert!((reads - 0.5).abs() < 0.01, "{reads}");
        assert_eq!((writes, shape.redo_bytes()), (0.0, 0.0));
    }

    #[test]
    fn the_special_distribution_needs_a_small_pool_for_three_quarters_of_its_draws() {
        let shape = shape(&sysbench(Workload::PointSelect, Distribution::default()), LogMaker::MariaDb, 1);
        let (rows, _) = pages(&Schema { tables: 8, table_size: 1_000_000, ..Schema::default() });
        let (reads, _) = pages_per_transaction(&shape.classes, &Pool::plain(rows * 0.05));
        assert!((0.15..0.30).contains(&reads), "{reads}");
    }

    #[test]
    fn only_the_puts_of_a_key_value_workload_write_logs() {
        let mut of = sysbench(Workload::KeyValue, Distribution::Uniform);
        of.mix.gets_pct = 80;
        let both = shape(&of, LogMaker::MariaDb, 1);
        let named: Vec<_> =
            both.types.iter().map(|kind| (kind.name.as_str(), kind.redo_bytes > 0.0)).collect();
        assert_eq!(named, [("get", false), ("put", true)]);
        assert!((both.types[0].share - 0.8).abs() < 1e-9 && (both.types[1].share - 0.2).abs() < 1e-9);
        let put = shape(&sysbench(Workload::UpdateNonIndex, Distribution::Uniform), LogMaker::MariaDb, 1);
        assert!((both.redo_bytes() / put.redo_bytes() - 0.2).abs() < 1e-9);
        let rows = &both.classes[0];
        assert!((rows.references - 1.0).abs() < 1e-9 && (rows.modified - 0.2).abs() < 1e-9, "{rows:?}");
        of.mix.gets_pct = 0;
        assert_eq!(shape(&of, LogMaker::MariaDb, 1).types.len(), 1);
    }

    #[test]
    fn a_read_write_transaction_has_the_logs_that_servers_were_measured_to_write() {
        // oltp_write_only of docs/decisions/log-bytes.md.
        for (maker, redo, binlog) in
            [(LogMaker::MariaDb, 1_905.0, 2_141.0), (LogMaker::MySql, 2_650.0, 1_746.0)]
        {
            let shape = shape(&sysbench(Workload::ReadWrite, Distribution::Uniform), maker, 1);
            assert!((shape.redo_bytes() / redo - 1.0).abs() < 0.15, "{maker:?}: {}", shape.redo_bytes());
            assert!(
                (shape.binlog_bytes() / binlog - 1.0).abs() < 0.05,
                "{maker:?}: {}",
                shape.binlog_bytes()
            );
            assert_eq!(shape.statements(), 20.0);
        }
    }
}
