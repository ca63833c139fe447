//! The rows of the load: how long they are, so that a transaction writes about as much redo and binary log as the server's.
//!
//! A text column of the lab's tables has two lengths: that of `c`, which updates write, and that of `pad`, which inserts and
//! full row images of the binary log have too. [`Logs`] says what a transaction writes for them; [`fit`] searches the lengths.

use std::collections::BTreeMap;

use ebbtide_load::RowLengths;
use ebbtide_observe::Observation;
use ebbtide_observe::metric::Maker;
use ebbtide_workload::log_bytes::{self, BinlogImage, Changes, LogMaker};

use super::mix::{Mix, whole};
use super::shape::{Shape, page_bytes};

/// What decides how much of a change the logs of the lab's server hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Logs {
    /// Whose server it is.
    pub(crate) maker: LogMaker,
    /// What its binary log holds; None: it writes none, or compresses it, so that its bytes tell nothing of rows.
    pub(crate) binlog: Option<BinlogImage>,
    /// Bytes of its pages.
    pub(crate) page_bytes: u32,
}

impl Logs {
    /// Those of a server of a maker with the settings of the lab.
    pub(crate) fn of(settings: &BTreeMap<String, String>, maker: Maker, seen: &Observation) -> Self {
        let setting = |name: &str| settings.get(name).map(String::as_str);
        // The defaults are the makers' own.
        let format =
            setting("binlog_format").unwrap_or(if maker == Maker::MariaDb { "MIXED" } else { "ROW" });
        let image = setting("binlog_row_image").unwrap_or("FULL");
        let is_on = |name| setting(name).is_some_and(|word| word == "1" || word.eq_ignore_ascii_case("on"));
        let logs = is_on("log_bin") && !is_on("binlog_transaction_compression") && !is_on("log_bin_compress");
        Self {
            maker: if maker == Maker::MariaDb { LogMaker::MariaDb } else { LogMaker::MySql },
            binlog: logs.then(|| BinlogImage::of(format, image)),
            page_bytes: whole(page_bytes(seen)),
        }
    }

    /// Bytes of redo of a transaction of the load: one of the statements that write where each commits by itself.
    pub(crate) fn redo(&self, mix: Mix, autocommit: bool, lengths: RowLengths) -> f64 {
        of_one(mix, autocommit, |changes, commits| log_bytes::redo(self.maker, changes, commits, lengths))
    }

    /// Bytes of binary log of a transaction of the load; 0 without one.
    pub(crate) fn binlog(&self, mix: Mix, autocommit: bool, lengths: RowLengths) -> f64 {
        let Some(image) = self.binlog else { return 0.0 };
        of_one(mix, autocommit, |changes, commits| {
            log_bytes::binlog(self.maker, image, changes, commits, lengths)
        })
    }
}

/// Bytes of a transaction: all changes in one, or one of as many as there are statements that write.
fn of_one(mix: Mix, autocommit: bool, bytes: impl Fn(Changes, f64) -> f64) -> f64 {
    let changes = Changes {
        index_updates: f64::from(mix.index_updates),
        plain_updates: f64::from(mix.plain_updates),
        pairs: f64::from(mix.delete_inserts),
        ..Changes::default()
    };
    match mix.written() {
        0.0 => 0.0,
        written if autocommit => bytes(changes, written) / written,
        _ => bytes(changes, 1.0),
    }
}

/// Rows of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rows {
    /// The statements.
    pub(crate) mix: Mix,
    /// How long its rows are.
    pub(crate) lengths: RowLengths,
    /// Bytes of a row in its pages, free space included.
    pub(crate) row_bytes: f64,
}

/// Lengths of a column that are tried: in steps of 4% from 1 to the most.
const STEPS: i32 = 230;
/// Every so many of them are tried first, and then those around the best.
const COARSE: usize = 8;
/// Squares of the logarithm of what is off count so much for the mean length of a row, which is of all tables and not of those
/// that are written.
const ROW_WEIGHT: f64 = 0.02;
/// What it costs to leave the changes of the index out: worth it where the redo is off by a quarter otherwise.
const NO_INDEX: f64 = 0.05;
/// How much a column of the usual share of a row is preferred, where nothing else decides.
const SHARE_WEIGHT: f64 = 1e-3;

/// The rows with which the load writes about as much as the server. Where nothing of that was observed, they are sysbench's.
pub(crate) fn fit(shape: &Shape, logs: &Logs) -> Rows {
    let mix = Mix::of(shape);
    let usual = RowLengths::SYSBENCH;
    let writes = mix.written() > 0.0;
    // Of a transaction, or of a statement that writes: others may be counted as transactions where each commits by itself.
    let parts = if shape.autocommit { shape.writing() } else { 1.0 };
    let wanted = |bytes: Option<f64>| {
        bytes.map(|bytes| bytes / parts).filter(|bytes| writes && bytes.is_finite() && *bytes > 0.0)
    };
    let redo = wanted(shape.redo_bytes);
    let binlog = wanted(shape.binlog_bytes).filter(|_| logs.binlog.is_some());
    let rows =
        |mix, lengths: RowLengths| Rows { mix, lengths, row_bytes: lengths.page_bytes(logs.page_bytes) };
    if redo.is_none() && binlog.is_none() && shape.row_bytes.is_none() {
        return rows(mix, usual);
    }
    let off = |wanted: Option<f64>, is: f64| wanted.map_or(0.0, |wanted| (is / wanted).ln().powi(2));
    let usual_share = (f64::from(usual.c) / f64::from(usual.pad)).ln();
    let cost = |rows: &Rows| {
        let Rows { mix, lengths, row_bytes } = *rows;
        let share = (f64::from(lengths.c) / f64::from(lengths.pad)).ln() - usual_share;
        let left_out = if mix.index_updates == 0 { NO_INDEX } else { 0.0 };
        off(redo, logs.redo(mix, shape.autocommit, lengths))
            + off(binlog, logs.binlog(mix, shape.autocommit, lengths))
            + ROW_WEIGHT * off(shape.row_bytes, row_bytes)
            + SHARE_WEIGHT * share.powi(2)
            + left_out
    };
    let tried = tried();
    let best = |all: &mut dyn Iterator<Item = (Mix, usize, usize)>| {
        let all = all.map(|(mix, c, pad)| (mix, c, pad, RowLengths { c: tried[c], pad: tried[pad] }));
        let all = all.filter(|(.., lengths)| lengths.record_bytes() <= most_of_page(logs.page_bytes));
        all.map(|(mix, c, pad, lengths)| (c, pad, rows(mix, lengths)))
            .min_by(|(.., one), (.., other)| cost(one).total_cmp(&cost(other)))
    };
    let places = || (0..tried.len()).step_by(COARSE);
    let mut coarse = [mix, mix.without_index()]
        .into_iter()
        .flat_map(|mix| places().flat_map(move |c| places().map(move |pad| (mix, c, pad))));
    let Some((c, pad, Rows { mix, .. })) = best(&mut coarse) else { return rows(mix, usual) };
    let around = |place: usize| place.saturating_sub(COARSE)..(place + COARSE + 1).min(tried.len());
    let mut fine = around(c).flat_map(|c| around(pad).map(move |pad| (mix, c, pad)));
    best(&mut fine).map_or(rows(mix, usual), |(.., found)| found)
}

/// A longer record leaves its page in part (`page_get_free_space_of_empty` over 2).
const fn most_of_page(page_bytes: u32) -> u32 {
    page_bytes / 2 - 128
}

/// The lengths of a column that are tried, each once.
fn tried() -> Vec<u32> {
    let most = f64::from(RowLengths::MOST);
    let mut all: Vec<u32> =
        (0..=STEPS).map(|step| whole(most.powf(f64::from(step) / f64::from(STEPS)).round())).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::super::shape::RowsWritten;
    use super::*;

    /// Two updates, an insert and a delete in a transaction.
    fn shape(redo: Option<f64>, binlog: Option<f64>, row: Option<f64>) -> Shape {
        Shape {
            tps: 100.0,
            autocommit: false,
            reads: 10.0,
            rows_per_read: 1.0,
            updates: 2.0,
            inserts: 1.0,
            deletes: 1.0,
            clients: 8.0,
            working_set: 1e9,
            rows: Some(RowsWritten { updated: 2.0, inserted: 1.0, deleted: 1.0 }),
            redo_bytes: redo,
            binlog_bytes: binlog,
            row_bytes: row,
        }
    }

    const LOGS: Logs = Logs { maker: LogMaker::MariaDb, binlog: Some(BinlogImage::Full), page_bytes: 16_384 };

    fn near(is: f64, wanted: f64, by: f64) {
        assert!((is / wanted).max(wanted / is) < by, "{is} is not within {by} of {wanted}");
    }

    #[test]
    fn rows_are_found_that_write_both_logs_and_have_the_length_of_the_servers() {
        for lengths in [
            RowLengths { c: 20, pad: 10 },
            RowLengths { c: 120, pad: 60 },
            RowLengths { c: 60, pad: 1_500 },
            RowLengths { c: 2_000, pad: 300 },
        ] {
            let mix = Mix::of(&shape(None, None, None));
            let (redo, binlog) = (LOGS.redo(mix, false, lengths), LOGS.binlog(mix, false, lengths));
            let row = lengths.page_bytes(16_384);
            let rows = fit(&shape(Some(redo), Some(binlog), Some(row)), &LOGS);
            near(LOGS.redo(rows.mix, false, rows.lengths), redo, 1.1);
            near(LOGS.binlog(rows.mix, false, rows.lengths), binlog, 1.1);
            near(rows.row_bytes, row, 1.25);
        }
    }

    #[test]
    fn the_logs_go_before_the_mean_length_of_a_row() {
        let wanted = shape(Some(10_000.0), Some(24_000.0), Some(100.0));
        let rows = fit(&wanted, &LOGS);
        near(LOGS.redo(rows.mix, false, rows.lengths), 10_000.0, 1.15);
        near(LOGS.binlog(rows.mix, false, rows.lengths), 24_000.0, 1.15);
        // Without a binary log the redo alone decides, and the row's length where that leaves a choice.
        let of_redo = Logs { binlog: None, ..LOGS };
        let rows = fit(&Shape { binlog_bytes: None, ..wanted }, &of_redo);
        near(of_redo.redo(rows.mix, false, rows.lengths), 10_000.0, 1.15);
        assert_eq!(of_redo.binlog(rows.mix, false, rows.lengths), 0.0);
        let updates = RowsWritten { updated: 4.0, ..RowsWritten::default() };
        let long = Shape {
            rows: Some(updates),
            binlog_bytes: None,
            row_bytes: Some(3_000.0),
            ..shape(Some(2_500.0), None, None)
        };
        let rows = fit(&long, &of_redo);
        assert!(rows.lengths.c < 600 && rows.lengths.pad > 1_500, "{rows:?}");
    }

    #[test]
    fn where_nothing_was_observed_rows_are_sysbenchs_and_a_server_that_only_reads_has_the_length_alone() {
        assert_eq!(fit(&shape(None, None, None), &LOGS).lengths, RowLengths::SYSBENCH);
        let reads =
            Shape { rows: Some(RowsWritten::default()), ..shape(Some(500.0), Some(0.0), Some(1_000.0)) };
        let rows = fit(&reads, &LOGS);
        near(rows.row_bytes, 1_000.0, 1.1);
        assert_eq!((LOGS.redo(rows.mix, true, rows.lengths), rows.mix.written()), (0.0, 0.0));
    }

    #[test]
    fn redo_that_is_too_little_for_an_index_leaves_its_changes_out() {
        assert_eq!(fit(&shape(Some(6_000.0), None, None), &LOGS).mix.index_updates, 1);
        let updates = RowsWritten { updated: 2.0, ..RowsWritten::default() };
        let little = Shape { rows: Some(updates), ..shape(Some(330.0), None, None) };
        let rows = fit(&little, &LOGS);
        assert_eq!((rows.mix.index_updates, rows.mix.plain_updates), (0, 2));
        near(LOGS.redo(rows.mix, false, rows.lengths), 330.0, 1.1);
    }

    #[test]
    fn bytes_of_statements_that_commit_by_themselves_are_those_of_one_that_writes() {
        // Two reads for each update, and all are counted: the redo of the updates is a third for each.
        let updates =
            Shape { updates: 1.0, inserts: 0.0, deletes: 0.0, autocommit: true, ..shape(None, None, None) };
        let of_one = fit(&Shape { redo_bytes: Some(900.0), ..updates.clone() }, &LOGS);
        let of_all = Shape { reads: 2.0 / 3.0, updates: 1.0 / 3.0, redo_bytes: Some(300.0), ..updates };
        assert_eq!(fit(&of_all, &LOGS).lengths, of_one.lengths);
        near(LOGS.redo(of_one.mix, true, of_one.lengths), 900.0, 1.1);
    }

    #[test]
    fn a_statement_that_commits_by_itself_has_a_share_of_what_is_repeated() {
        let mix = Mix {
            index_updates: 0,
            plain_updates: 4,
            delete_inserts: 0,
            ..Mix::of(&shape(None, None, None))
        };
        let lengths = RowLengths { c: 500, pad: 100 };
        let (one, all) = (LOGS.redo(mix, true, lengths), LOGS.redo(mix, false, lengths));
        let changes = Changes { plain_updates: 4.0, ..Changes::default() };
        let of = |commits| log_bytes::redo(LOGS.maker, changes, commits, lengths);
        let transaction = of(1.0) - of(0.0);
        near(one, transaction + (all - transaction) / 4.0, 1.001);
        assert!(LOGS.binlog(mix, true, lengths) > LOGS.binlog(mix, false, lengths) / 4.0);
    }

    #[test]
    fn a_row_has_half_a_page_at_most() {
        for page_bytes in [4_096, 16_384] {
            let rows = fit(&shape(Some(1e6), Some(1e6), Some(1e5)), &Logs { page_bytes, ..LOGS });
            assert!(rows.lengths.record_bytes() < page_bytes / 2, "{rows:?}");
            assert!(rows.lengths.record_bytes() > page_bytes / 3, "{rows:?}");
        }
    }

    #[test]
    fn the_settings_of_the_binary_log_say_what_it_holds() {
        use BinlogImage::{Full, FullOnce, Minimal, Statement};
        let of = [
            ("ROW", "FULL"),
            ("row", "noblob"),
            ("ROW", "MINIMAL"),
            ("ROW", "full_nodup"),
            ("MIXED", "FULL"),
        ];
        assert_eq!(
            of.map(|(format, image)| BinlogImage::of(format, image)),
            [Full, Full, Minimal, FullOnce, Statement]
        );
        let mix = Mix::of(&shape(None, None, None));
        let long = RowLengths { c: 100, pad: 1_000 };
        let bytes = [Full, FullOnce, Minimal]
            .map(|image| Logs { binlog: Some(image), ..LOGS }.binlog(mix, false, long));
        assert!(bytes[0] > bytes[1] && bytes[1] > bytes[2], "{bytes:?}");
        let seen = Observation::of(ebbtide_observe::Origin::Capture { path: "/c".into() });
        let settings =
            |all: &[(&str, &str)]| all.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let on = Logs::of(&settings(&[("log_bin", "on")]), Maker::MySql, &seen);
        assert_eq!((on.binlog, on.page_bytes), (Some(Full), 16_384));
        assert_eq!(Logs::of(&settings(&[("log_bin", "off")]), Maker::MySql, &seen).binlog, None);
        let mariadb = Logs::of(&settings(&[("log_bin", "on")]), Maker::MariaDb, &seen);
        assert_eq!(mariadb.binlog, Some(Statement), "MIXED is its default");
    }
}
