//! The description of a workload of sysbench: statements word for word sysbench's, so that a server cannot tell the two
//! tools apart.

use super::{Mix, NOTHING_TO_SEND, PAGE_BYTES, RowLengths, Schema, Sysbench, Workload};
use crate::LEDGER_TABLE;
use crate::description::{Description, Fill, Index, Opening, Table};
use crate::distribution::Drawer;
use crate::error::{OptionError, in_range};
use crate::expr::{Expr, Op, Register};
use crate::script::{Access, AccessKind, Append, Call, Key, ParamKind, Path, Statement, Step, Transaction};
use crate::values::Alphabet;

/// The kinds of statement, in the order of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stmt {
    Begin,
    Commit,
    PointSelects,
    SimpleRanges,
    SumRanges,
    OrderRanges,
    DistinctRanges,
    IndexUpdates,
    NonIndexUpdates,
    Deletes,
    Inserts,
    Mark,
    BulkInsert,
}

/// Groups of digits in column c.
const C_GROUPS: u32 = 10;
/// Groups of digits in column pad.
const PAD_GROUPS: u32 = 5;
/// sysbench's size of a multi-row INSERT, bytes.
pub const BULK_BYTES: usize = 512 * 1024;
/// More than a row of `bulk_insert` takes, bytes.
const BULK_ROW_BYTES: usize = 32;
/// What a row of sysbench's lengths takes on disk, its index included, bytes: 1.25 million rows make a file of about 290 MiB
/// on MariaDB 10.11 and MySQL 9.
const ROW_BYTES: u64 = 235;
/// The same of a row of `bulk_insert`, which has two numbers.
const BULK_ROW_DISK_BYTES: u64 = 35;
/// Ranges of ids that a table's primary key is read in.
const RANGES: u32 = 4;

/// The number of the table.
const TABLE: Register = Register(0);
/// The id of the row.
const ID: Register = Register(1);
/// The value of k of a row to insert.
const K: Register = Register(2);
/// `bulk_insert`: the last id of the client's table.
const LAST: Register = Register(3);
const REGISTERS: u16 = 4;

impl Sysbench {
    /// The workload as plain data.
    #[must_use]
    pub fn describe(&self) -> Description {
        let bulk = self.workload == Workload::BulkInsert;
        Description {
            name: self.workload.name().into(),
            form: String::new(),
            tables: vec![if bulk { self.bulk_table() } else { self.table() }],
            statements: self.statements(),
            transactions: vec![Transaction::alone(self.workload.name(), self.steps())],
            session: Vec::new(),
            opening: if bulk { vec![last_bulk_id()] } else { Vec::new() },
            undo: None,
            finish: Vec::new(),
            registers: REGISTERS,
        }
    }

    /// Refuses numbers of statements that leave a transaction nothing to send.
    ///
    /// # Errors
    /// The option that is too small.
    pub fn check(&self) -> Result<(), OptionError> {
        let Mix { index_updates, non_index_updates, gets_pct, .. } = self.mix;
        in_range("gets-pct", gets_pct, 0, 100, "0 to 100 percent of gets; the others are puts")?;
        if self.marks {
            return Ok(());
        }
        let allowed = "1 to 4294967295 updates in a transaction of this workload";
        match self.workload {
            Workload::UpdateIndex => in_range("index-updates", index_updates, 1, u32::MAX, allowed),
            Workload::UpdateNonIndex => {
                in_range("non-index-updates", non_index_updates, 1, u32::MAX, allowed)
            }
            _ if self.steps().is_empty() => Err(OptionError::Contradiction(NOTHING_TO_SEND)),
            _ => Ok(()),
        }
    }

    /// CREATE TABLE as `oltp_common.lua` writes it. The index on k is created after the rows are in.
    fn table(&self) -> Table {
        let Schema { auto_inc, secondary, engine, create_table_options, table_size, .. } = &self.schema;
        let id = if *auto_inc { "INTEGER NOT NULL AUTO_INCREMENT" } else { "INTEGER NOT NULL" };
        let key = if *secondary { "KEY xid" } else { "PRIMARY KEY" };
        let empty = self.workload == Workload::Insert && !auto_inc;
        let lengths = self.schema.lengths.unwrap_or(RowLengths::SYSBENCH);
        let by_k = Index {
            name: "k_{}".into(),
            columns: vec!["k"],
            create: Some("CREATE INDEX k_{} ON sbtest{}(k)".into()),
            warm_up: Some("SELECT COUNT(k) FROM sbtest{} FORCE INDEX (k_{}) WHERE k >= 0".into()),
        };
        Table {
            name: "sbtest{}".into(),
            count: self.schema.tables,
            create: format!(
                "CREATE TABLE sbtest{{}}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
                 c {c} DEFAULT '' NOT NULL,\n  pad {pad} DEFAULT '' NOT NULL,\n  {key} (id)\n) \
                 /*! ENGINE = {engine} */ {create_table_options}",
                c = text_type(lengths.c),
                pad = text_type(lengths.pad),
            ),
            indexes: if self.schema.create_secondary { vec![by_k] } else { Vec::new() },
            fill: Fill {
                rows: if empty { 0 } else { *table_size },
                columns: "(id, k, c, pad)",
                lets: Vec::new(),
                values: vec![Expr::Row, self.id(), self.c(), self.pad()],
                stream_rows: 10_000,
                salt: 0,
                keep: None,
            },
            row_bytes: self.schema.lengths.map_or(ROW_BYTES, |of| whole_bytes(of.disk_bytes(PAGE_BYTES))),
            warm_up: warm_up(*table_size),
            // The random numbers are seeded: the same rows change on every machine.
            ageing: Some(format!(
                "UPDATE sbtest{{}} SET k = 1 + FLOOR(RAND({{}}) * {table_size}) WHERE id % 2 = 0"
            )),
        }
    }

    /// The two-column table of `bulk_insert.lua`, one for each client.
    fn bulk_table(&self) -> Table {
        Table {
            name: "sbtest{}".into(),
            count: self.clients,
            create: "CREATE TABLE IF NOT EXISTS sbtest{} (\n          id INTEGER NOT NULL,\n          \
                     k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
                .into(),
            indexes: Vec::new(),
            fill: Fill::none(),
            row_bytes: BULK_ROW_DISK_BYTES,
            warm_up: Vec::new(),
            ageing: None,
        }
    }

    /// A draw of an id, or of a value of k.
    fn id(&self) -> Expr {
        Expr::Id(Drawer::new(self.distribution), self.schema.table_size)
    }

    /// A value of column c.
    fn c(&self) -> Expr {
        self.schema.lengths.map_or(Expr::Digits(C_GROUPS), |lengths| digits(lengths.c))
    }

    /// A value of column pad.
    fn pad(&self) -> Expr {
        self.schema.lengths.map_or(Expr::Digits(PAD_GROUPS), |lengths| digits(lengths.pad))
    }

    fn steps(&self) -> Vec<Step> {
        let mix = &self.mix;
        let mut steps = match self.workload {
            Workload::PointSelect => self.repeat(Stmt::PointSelects, 1),
            Workload::ReadOnly => self.reads(),
            Workload::ReadWrite => [self.reads(), self.writes()].concat(),
            Workload::WriteOnly => self.writes(),
            Workload::Insert => self.fresh_insert(),
            Workload::Delete => self.repeat(Stmt::Deletes, 1),
            Workload::UpdateIndex => self.repeat(Stmt::IndexUpdates, mix.index_updates),
            Workload::UpdateNonIndex => self.repeat(Stmt::NonIndexUpdates, mix.non_index_updates),
            Workload::BulkInsert => return vec![append()],
            Workload::KeyValue => vec![self.get_or_put()],
        };
        if self.marks {
            steps.push(send(Stmt::Mark.call(vec![Expr::Sequence, Expr::Client])));
        }
        if self.marks || (self.workload.is_transaction() && !mix.skip_trx) {
            steps.insert(0, send(Stmt::Begin.call(Vec::new())));
            steps.push(Step::Commit(Stmt::Commit.call(Vec::new())));
        }
        steps
    }

    fn get_or_put(&self) -> Step {
        let is_get = Expr::up_to(100).op(Op::Less, Expr::Int(i64::from(self.mix.gets_pct) + 1));
        Step::If(is_get, self.repeat(Stmt::PointSelects, 1), self.repeat(Stmt::NonIndexUpdates, 1))
    }

    fn reads(&self) -> Vec<Step> {
        let mix = &self.mix;
        let mut steps = self.repeat(Stmt::PointSelects, mix.point_selects);
        if mix.range_selects {
            for (stmt, times) in [
                (Stmt::SimpleRanges, mix.simple_ranges),
                (Stmt::SumRanges, mix.sum_ranges),
                (Stmt::OrderRanges, mix.order_ranges),
                (Stmt::DistinctRanges, mix.distinct_ranges),
            ] {
                steps.extend(self.repeat(stmt, times));
            }
        }
        steps
    }

    fn writes(&self) -> Vec<Step> {
        let mix = &self.mix;
        let delete_insert = vec![
            Step::Set(ID, self.id()),
            send(on_table(Stmt::Deletes, vec![Expr::Register(ID)])),
            Step::Set(K, self.id()),
            send(self.insert()),
        ];
        [
            self.repeat(Stmt::IndexUpdates, mix.index_updates),
            self.repeat(Stmt::NonIndexUpdates, mix.non_index_updates),
            self.on_one_table(mix.delete_inserts, delete_insert),
        ]
        .concat()
    }

    /// The same statement several times.
    fn repeat(&self, stmt: Stmt, times: u32) -> Vec<Step> {
        let id = || Expr::Register(ID);
        let body = match stmt {
            Stmt::SimpleRanges | Stmt::SumRanges | Stmt::OrderRanges | Stmt::DistinctRanges => {
                let last = id().plus(i64::from(self.mix.range_size) - 1);
                vec![Step::Set(ID, self.id()), send(on_table(stmt, vec![id(), last]))]
            }
            Stmt::NonIndexUpdates => {
                let params = vec![self.c(), id()];
                vec![Step::Set(ID, self.id()), send(on_table(stmt, params))]
            }
            _ => vec![send(on_table(stmt, vec![self.id()]))],
        };
        self.on_one_table(times, body)
    }

    /// sysbench stays on one table for all repetitions.
    fn on_one_table(&self, times: u32, body: Vec<Step>) -> Vec<Step> {
        let chosen = Step::Set(TABLE, Expr::up_to(self.schema.tables.into()));
        match times {
            0 => Vec::new(),
            1 => [vec![chosen], body].concat(),
            _ => vec![chosen, Step::Repeat(Expr::Int(times.into()), body)],
        }
    }

    /// The single insert of `oltp_insert`, with an id of its own.
    fn fresh_insert(&self) -> Vec<Step> {
        let id = if self.schema.auto_inc { Expr::Int(0) } else { Expr::Unique };
        let chosen = Step::Set(TABLE, Expr::up_to(self.schema.tables.into()));
        vec![chosen, Step::Set(ID, id), Step::Set(K, self.id()), send(self.insert())]
    }

    /// The insert of the row whose id and k are in registers.
    fn insert(&self) -> Call {
        let columns = vec![Expr::Register(ID), Expr::Register(K), self.c(), self.pad()];
        on_table(Stmt::Inserts, columns)
    }

    fn statements(&self) -> Vec<Statement> {
        let Mix { range_size, .. } = self.mix;
        let read = |path, rows| access(AccessKind::Read, path, rows, &[]);
        let update = |column| access(AccessKind::Update, Path::Primary, 1, &[column]);
        let change = |kind| access(kind, Path::Primary, 1, &[]);
        let point = read(Path::Primary, 1);
        let range = || read(Path::Primary, range_size);
        let ints = |count| vec![ParamKind::Int; count];
        let of = |name, text: &str, params, access| Statement {
            tables: if self.workload == Workload::BulkInsert { self.clients } else { self.schema.tables },
            params,
            access: Some(access),
            ..Statement::plain(name, text)
        };
        vec![
            Statement::plain("begin", "BEGIN"),
            Statement::plain("commit", "COMMIT"),
            of("point_selects", "SELECT c FROM sbtest{} WHERE id=?", ints(1), point),
            of("simple_ranges", "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ?", ints(2), range()),
            of("sum_ranges", "SELECT SUM(k) FROM sbtest{} WHERE id BETWEEN ? AND ?", ints(2), range()),
            of(
                "order_ranges",
                "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c",
                ints(2),
                range(),
            ),
            of(
                "distinct_ranges",
                "SELECT DISTINCT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c",
                ints(2),
                range(),
            ),
            of("index_updates", "UPDATE sbtest{} SET k=k+1 WHERE id=?", ints(1), update("k")),
            of(
                "non_index_updates",
                "UPDATE sbtest{} SET c=? WHERE id=?",
                vec![ParamKind::Text, ParamKind::Int],
                Access { key: Key::Param(1), ..update("c") },
            ),
            of("deletes", "DELETE FROM sbtest{} WHERE id=?", ints(1), change(AccessKind::Delete)),
            Statement {
                // sysbench sends the insert of `oltp_insert` as text.
                prepare: self.workload != Workload::Insert,
                ..of(
                    "inserts",
                    "INSERT INTO sbtest{} (id, k, c, pad) VALUES (?, ?, ?, ?)",
                    vec![ParamKind::Int, ParamKind::Int, ParamKind::Text, ParamKind::Text],
                    change(AccessKind::Insert),
                )
            },
            Statement {
                params: vec![ParamKind::Long, ParamKind::Int],
                ..Statement::plain("ledger_marks", &format!("UPDATE {LEDGER_TABLE} SET seq=? WHERE client=?"))
            },
            of(
                "bulk_inserts",
                "INSERT INTO sbtest{} VALUES",
                Vec::new(),
                Access { key: Key::Next, ..change(AccessKind::Insert) },
            ),
        ]
    }
}

impl Stmt {
    fn call(self, params: Vec<Expr>) -> Call {
        Call::new(self as usize, params)
    }
}

fn on_table(stmt: Stmt, params: Vec<Expr>) -> Call {
    stmt.call(params).on(Expr::Register(TABLE))
}

/// The type of a text column: CHAR has 255 characters at most.
fn text_type(length: u32) -> String {
    let name = if length <= 255 { "CHAR" } else { "VARCHAR" };
    format!("{name}({length})")
}

/// So many random digits.
fn digits(length: u32) -> Expr {
    Expr::RandomText(Alphabet::Digits, Box::new(Expr::Int(length.into())))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a page at most")]
fn whole_bytes(bytes: f64) -> u64 {
    bytes as u64
}

fn send(call: Call) -> Step {
    Step::Send(vec![call])
}

fn access(kind: AccessKind, path: Path, rows: u32, changes: &[&'static str]) -> Access {
    Access { table: 0, kind, path, key: Key::Param(0), rows, changes: changes.to_vec() }
}

fn append() -> Step {
    Step::Append(Append {
        statement: Stmt::BulkInsert as usize,
        table: Expr::Client.plus(1),
        counter: LAST,
        values: vec![Expr::Register(LAST), Expr::Register(LAST)],
        bytes: BULK_BYTES - BULK_ROW_BYTES,
    })
}

/// `bulk_insert` goes on after the ids that the table has.
fn last_bulk_id() -> Opening {
    Opening { text: "SELECT MAX(id) FROM sbtest{}".into(), table: Expr::Client.plus(1), into: LAST }
}

fn warm_up(rows: u32) -> Vec<String> {
    let step = rows.div_ceil(RANGES).max(1);
    let starts = (1..=rows).step_by(usize::try_from(step).expect("a u32 fits"));
    let read = |first: u32| {
        let last = first.saturating_add(step - 1);
        format!(
            "SELECT SUM(LENGTH(c)) FROM sbtest{{}} FORCE INDEX (PRIMARY) WHERE id BETWEEN {first} AND {last}"
        )
    };
    starts.map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::distribution::Distribution;
    use crate::script::numbered;
    use crate::sent::Sent;

    fn sysbench(workload: Workload) -> Sysbench {
        Sysbench {
            workload,
            schema: Schema::default(),
            mix: Mix::default(),
            distribution: Distribution::default(),
            clients: 1,
            marks: false,
        }
    }

    /// What client 7 sends for its transaction 42.
    fn transaction(of: &Sysbench) -> Vec<Sent> {
        crate::sent::transaction(of.describe(), 1, 7, 42)
    }

    fn names(of: &Sysbench) -> Vec<&'static str> {
        transaction(of).iter().map(|sent| sent.name).collect()
    }

    #[test]
    fn read_write_is_sysbenchs_twenty_statements_in_its_order() {
        let mut expected = vec!["begin"];
        expected.extend(["point_selects"; 10]);
        expected.extend(["simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"]);
        expected.extend(["index_updates", "non_index_updates", "deletes", "inserts", "commit"]);
        assert_eq!(names(&sysbench(Workload::ReadWrite)), expected);
    }

    #[test]
    fn the_point_selects_of_a_transaction_share_a_table_and_a_delete_its_id_with_the_insert() {
        let mut of = sysbench(Workload::ReadWrite);
        of.schema.tables = 1_000;
        of.mix.delete_inserts = 3;
        let sent = transaction(&of);
        let named = |wanted| sent.iter().filter(move |sent| sent.name == wanted);
        assert_eq!(named("point_selects").map(|sent| sent.table).collect::<BTreeSet<_>>().len(), 1);
        let deleted: Vec<_> = named("deletes").map(|sent| &sent.params[0]).collect();
        let inserted: Vec<_> = named("inserts").map(|sent| &sent.params[0]).collect();
        assert_eq!(deleted.len(), 3);
        assert_eq!(deleted, inserted);
        let all: BTreeSet<_> = sent.iter().map(|sent| sent.table).collect();
        assert!(all.len() > 3, "lines choose their tables by themselves: {all:?}");
    }

    #[test]
    fn a_range_covers_as_many_ids_as_asked() {
        let mut of = sysbench(Workload::ReadOnly);
        of.mix = Mix { range_size: 25, skip_trx: true, ..Mix::default() };
        let sent = transaction(&of);
        assert_eq!(sent.len(), 14);
        let id = |at: usize| sent[11].params[at].parse::<i64>().unwrap();
        assert_eq!(id(1) - id(0), 24);
    }

    #[test]
    fn a_key_value_transaction_is_a_get_or_a_put_in_the_share_that_was_asked_for() {
        let gets_of = |gets_pct| {
            let of = Sysbench { mix: Mix { gets_pct, ..Mix::default() }, ..sysbench(Workload::KeyValue) };
            let sent: Vec<_> =
                (0..2_000).map(|client| crate::sent::transaction(of.describe(), 1, client, 42)).collect();
            assert!(sent.iter().all(|one| one.len() == 1), "one statement each");
            sent.iter().filter(|one| one[0].name == "point_selects").count()
        };
        assert_eq!((gets_of(100), gets_of(0)), (2_000, 0));
        let half = gets_of(50);
        assert!((900..1_100).contains(&half), "{half}");
        let of = Sysbench { mix: Mix { gets_pct: 101, ..Mix::default() }, ..sysbench(Workload::KeyValue) };
        assert!(of.check().unwrap_err().to_string().starts_with("--gets-pct=101 is out of range: 0 to 100"));
    }

    #[test]
    fn a_marked_ledger_wraps_a_single_statement_in_a_transaction() {
        let of = Sysbench { marks: true, ..sysbench(Workload::UpdateIndex) };
        assert_eq!(names(&of), ["begin", "index_updates", "ledger_marks", "commit"]);
        assert_eq!(transaction(&of)[2].params, ["42", "7"]);
    }

    #[test]
    fn a_mix_without_statements_is_refused_with_the_option_and_its_range() {
        let none = Mix {
            point_selects: 0,
            range_selects: false,
            index_updates: 0,
            non_index_updates: 0,
            delete_inserts: 0,
            ..Mix::default()
        };
        for workload in crate::WORKLOADS.iter().filter_map(|one| one.kind.sysbench()) {
            for (skip_trx, marks) in [(false, false), (true, false), (false, true)] {
                let of = Sysbench { mix: Mix { skip_trx, ..none.clone() }, marks, ..sysbench(workload) };
                // Both know the same transactions as empty.
                assert_eq!(of.check().is_ok(), of.describe().check().is_ok(), "{of:?}");
            }
        }
        let of = |workload| Sysbench { mix: Mix { skip_trx: true, ..none.clone() }, ..sysbench(workload) };
        for (workload, words) in [
            (Workload::UpdateIndex, "--index-updates=0 is out of range: 1 to 4294967295"),
            (Workload::UpdateNonIndex, "--non-index-updates=0 is out of range: 1 to 4294967295"),
            (Workload::ReadOnly, "--skip-trx=on and no statement"),
        ] {
            let error = of(workload).check().unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }

    #[test]
    fn every_row_is_read_once_and_every_index() {
        let mut of = sysbench(Workload::ReadWrite);
        (of.schema.tables, of.schema.table_size) = (2, 10);
        let all = of.describe().warm_up();
        assert_eq!(all.len(), 2 * 4 + 2);
        assert!(all[0].ends_with("BETWEEN 1 AND 3") && all[3].ends_with("BETWEEN 10 AND 12"), "{all:?}");
        assert!(all[9].contains("sbtest2") && all[9].contains("k_2"), "{all:?}");
        (of.schema.tables, of.schema.table_size) = (1, 1);
        assert_eq!(of.describe().warm_up().len(), 2);
    }

    /// What a model of a server reads: no script is executed for it.
    #[test]
    fn the_rows_that_a_transaction_reads_and_changes_can_be_counted_from_the_description() {
        fn count(description: &Description, steps: &[Step], reads: &mut u32, changes: &mut u32) {
            for step in steps {
                match step {
                    Step::Send(calls) => {
                        for call in calls {
                            let Some(access) = &description.statements[call.statement].access else {
                                continue;
                            };
                            match access.kind {
                                AccessKind::Read => *reads += access.rows,
                                _ => *changes += access.rows,
                            }
                        }
                    }
                    Step::Repeat(Expr::Int(times), body) => {
                        for _ in 0..*times {
                            count(description, body, reads, changes);
                        }
                    }
                    _ => {}
                }
            }
        }
        let description = sysbench(Workload::ReadWrite).describe();
        let (mut reads, mut changes) = (0, 0);
        count(&description, &description.transactions[0].steps, &mut reads, &mut changes);
        assert_eq!((reads, changes), (10 + 4 * 100, 4));
        let changed = description.statements[Stmt::IndexUpdates as usize].access.as_ref().unwrap();
        let index = &description.tables[0].indexes[0];
        assert!(
            changed.changes.iter().any(|column| index.columns.contains(column)),
            "the index on k changes"
        );
    }

    #[test]
    fn rows_of_other_lengths_have_columns_values_and_bytes_of_them() {
        let mut of = sysbench(Workload::ReadWrite);
        of.schema.lengths = Some(RowLengths { c: 40, pad: 900 });
        let table = &of.describe().tables[0];
        let create = &table.create;
        assert!(create.contains("c CHAR(40) ") && create.contains("pad VARCHAR(900) "), "{create}");
        let sent = transaction(&of);
        let named = |wanted| sent.iter().find(move |sent| sent.name == wanted).unwrap();
        assert_eq!(named("non_index_updates").params[0].trim_matches('\'').len(), 40);
        let inserted = &named("inserts").params;
        assert_eq!([2, 3].map(|at: usize| inserted[at].trim_matches('\'').len()), [40, 900]);
        // 15 rows of 968 bytes on a page of 16 KiB.
        assert_eq!(table.row_bytes, 16_384 / 15 + 14);
        assert_eq!(sysbench(Workload::ReadWrite).describe().tables[0].row_bytes, 235);
        of.schema.lengths = Some(RowLengths { c: 0, pad: 900 });
        assert!(of.schema.check().unwrap_err().to_string().contains("1 to 7000"));
    }

    #[test]
    fn the_texts_are_those_of_sysbench() {
        let description = sysbench(Workload::ReadWrite).describe();
        let create = numbered(&description.tables[0].create, 3);
        assert_eq!(
            create,
            "CREATE TABLE sbtest3(\n  id INTEGER NOT NULL AUTO_INCREMENT,\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
             c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) \
             /*! ENGINE = innodb */ "
        );
        let index = description.tables[0].indexes[0].create.as_deref().unwrap();
        assert_eq!(numbered(index, 3), "CREATE INDEX k_3 ON sbtest3(k)");
    }
}
