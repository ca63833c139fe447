//! The description of the workload with invariants.

use super::schema::{ABORTED, ABORTED_PAYLOAD, ACCOUNT, BALLAST, CheckedTable, HISTORY, INITIAL_BALANCE};
use super::{Invariants, Schema};
use crate::LEDGER_TABLE;
use crate::description::{Description, Fill, Index, Table};
use crate::expr::{Expr, Op, Register};
use crate::script::{Access, AccessKind, Call, Key, ParamKind, Path, Statement, Step, Transaction};

/// The largest amount that is transferred.
const MAX_AMOUNT: i64 = 100;
/// Groups of eleven digits in the payload of a history row, and in the ballast's columns c and pad.
const PAYLOAD_GROUPS: u32 = 3;
const C_GROUPS: u32 = 10;
const PAD_GROUPS: u32 = 5;
/// What a row takes on disk, its index entries included, bytes.
const ACCOUNT_BYTES: u64 = 60;
const BALLAST_BYTES: u64 = 250;
const OTHER_BYTES: u64 = 150;

/// The kinds of statement.
#[derive(Debug, Clone, Copy)]
enum Stmt {
    Account,
    Ballast,
    History,
    Forget,
    Mark,
    Marker,
    Commit,
    Rollback,
}

/// The places of the tables in the description. The ballast comes last: see [`Invariants::describe`].
const ACCOUNTS: usize = 0;
const HISTORIES: usize = 1;
const MARKERS: usize = 2;
const MARKS: usize = 3;
const BALLASTS: usize = 4;

const FROM: Register = Register(0);
const TO: Register = Register(1);
const AMOUNT: Register = Register(2);
const ROW: Register = Register(3);
const PAYLOAD: Register = Register(4);
const CRC: Register = Register(5);
/// What the account with the lower id gets.
const LOWER_GETS: Register = Register(6);
/// 1 where a transaction that is rolled back comes first.
const DRAWN: Register = Register(7);
const REGISTERS: u16 = 8;

/// Whether a transaction is meant to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransactionEnd {
    Committed,
    RolledBack,
}

impl Invariants {
    /// The workload as plain data.
    ///
    /// The index of the ballast is created last, because a server makes the redo log durable up to a change of the
    /// schema, flush setting or not: what one connection has loaded is durable afterwards.
    #[must_use]
    pub fn describe(&self) -> Description {
        Description {
            name: "invariants".into(),
            form: format!("invariants-{:08x}", Schema::form()),
            tables: self.tables(),
            statements: statements(),
            transactions: vec![Transaction::alone("transfer", self.steps())],
            // Without automatic commits the statements of a transaction can be sent in one go: what follows a failed
            // one is rolled back with it. MariaDB's SIMULTANEOUS_ASSIGNMENT would compute checksums of old values.
            session: [
                "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                "SET SESSION sql_mode='STRICT_ALL_TABLES'",
                "SET SESSION autocommit=0",
            ]
            .map(str::to_owned)
            .into(),
            opening: Vec::new(),
            undo: Some(Stmt::Rollback.call(Vec::new())),
            finish: Vec::new(),
            registers: REGISTERS,
        }
    }

    fn tables(&self) -> Vec<Table> {
        let schema = &self.schema;
        let [account, ballast, history, aborted] = schema.statements();
        let mark = format!(
            "CREATE TABLE {LEDGER_TABLE} (client INT NOT NULL PRIMARY KEY, seq BIGINT UNSIGNED NOT NULL) ENGINE = {}",
            schema.engine
        );
        let balance = || vec![Expr::Row, Expr::Int(INITIAL_BALANCE), Expr::Int(0)];
        let [k, c, pad] = [0, 1, 2].map(Register);
        let row = || vec![Expr::Row, k.into(), c.into(), pad.into(), Expr::Int(0)];
        vec![
            Table {
                fill: fill(schema.accounts, Vec::new(), with_crc(balance)),
                row_bytes: ACCOUNT_BYTES,
                ..table(&ACCOUNT, account)
            },
            table(&HISTORY, history),
            Table { name: ABORTED.into(), ..plain(aborted) },
            Table {
                name: LEDGER_TABLE.into(),
                fill: fill(self.clients, Vec::new(), vec![Expr::Row.plus(-1), Expr::Int(0)]),
                ..plain(mark)
            },
            Table {
                indexes: vec![Index {
                    create: Some(format!("CREATE INDEX by_k ON {} (k)", BALLAST.name)),
                    ..index(&BALLAST, 0)
                }],
                fill: fill(
                    schema.rows,
                    vec![
                        (k, Expr::up_to(schema.rows.into())),
                        (c, Expr::Digits(C_GROUPS)),
                        (pad, Expr::Digits(PAD_GROUPS)),
                    ],
                    with_crc(row),
                ),
                row_bytes: BALLAST_BYTES,
                ..table(&BALLAST, ballast)
            },
        ]
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.abort_every > 0 {
            // Not the stream of the transaction itself: what it does must not depend on how often one is rolled back.
            steps.push(Step::Reseed { complement: true, stream: stream(TransactionEnd::RolledBack) });
            steps.push(Step::Set(DRAWN, Expr::up_to(self.abort_every.into())));
            let mut first = self.transfer(TransactionEnd::RolledBack);
            first.push(Step::RollBack(Stmt::Rollback.call(Vec::new())));
            let chosen = Expr::from(DRAWN).op(Op::Equal, Expr::Int(1));
            steps.push(Step::If(chosen, first, Vec::new()));
            steps.push(Step::RetryFromHere);
        }
        steps.extend(self.transfer(TransactionEnd::Committed));
        steps.push(Step::Commit(Stmt::Commit.call(Vec::new())));
        steps
    }

    /// Everything before COMMIT or ROLLBACK. Accounts come in the order of their ids and before the ballast, so
    /// that clients hardly ever wait for one another in a circle.
    fn transfer(&self, end: TransactionEnd) -> Vec<Step> {
        let accounts = i64::from(self.schema.accounts);
        let (from, to, amount) = (|| Expr::from(FROM), || Expr::from(TO), || Expr::from(AMOUNT));
        // Any account but that one.
        let other = from().plus(-1).op(Op::Add, Expr::up_to(accounts - 1));
        let mark = if end == TransactionEnd::RolledBack { ABORTED_PAYLOAD } else { "" };
        let minus = |value: Expr| Expr::Int(0).op(Op::Sub, value);
        let first_pays =
            Expr::Choose(from().op(Op::Less, to()).into(), minus(amount()).into(), amount().into());
        let moved = || vec![Expr::Client, Expr::Sequence, from(), to(), amount(), PAYLOAD.into()];
        let account = |by, id| Stmt::Account.call(vec![by, id]);
        let before = vec![
            account(LOWER_GETS.into(), from().op(Op::Min, to())),
            account(minus(LOWER_GETS.into()), from().op(Op::Max, to())),
            Stmt::Ballast.call(vec![ROW.into()]),
            Stmt::History.call([moved(), vec![CRC.into()]].concat()),
        ];
        let window = i64::from(self.schema.window);
        let old = Expr::Sequence.plus(-window);
        let forget = Stmt::Forget.call(vec![Expr::Client, old.clone()]);
        let last = match end {
            // The text is what the binary log is searched for.
            TransactionEnd::Committed => Stmt::Mark.call(vec![Expr::Sequence, Expr::Client]),
            TransactionEnd::RolledBack => Stmt::Marker.call(vec![Expr::Client, Expr::Sequence]),
        };
        let send = |forget: Vec<Call>| {
            let all = [before.clone(), forget, vec![last.clone()]].concat();
            vec![Step::Send(
                all.into_iter().map(|call| Call { changes: Some(Expr::Int(1)), ..call }).collect(),
            )]
        };
        vec![
            Step::Reseed { complement: false, stream: stream(end) },
            Step::Set(FROM, Expr::up_to(accounts)),
            Step::Set(TO, other.op(Op::Rem, Expr::Int(accounts)).plus(1)),
            Step::Set(AMOUNT, Expr::up_to(MAX_AMOUNT)),
            Step::Set(ROW, Expr::up_to(self.schema.rows.into())),
            Step::Set(PAYLOAD, Expr::Concat(vec![Expr::Text(mark.into()), Expr::Digits(PAYLOAD_GROUPS)])),
            Step::Set(CRC, Expr::Crc32(moved())),
            Step::Set(LOWER_GETS, first_pays),
            Step::If(Expr::Int(0).op(Op::Less, old), send(vec![forget]), send(Vec::new())),
        ]
    }
}

/// Clients have 40 bits each.
fn stream(end: TransactionEnd) -> Expr {
    let of_client = Expr::Client.plus(1).op(Op::Mul, Expr::Int(1 << 40));
    let of_number =
        Expr::Sequence.op(Op::Mul, Expr::Int(2)).plus(i64::from(end == TransactionEnd::RolledBack));
    of_client.op(Op::Add, of_number)
}

impl Stmt {
    fn call(self, params: Vec<Expr>) -> Call {
        Call::new(self as usize, params)
    }
}

impl From<Register> for Expr {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

fn statements() -> Vec<Statement> {
    use AccessKind::{Delete, Insert, Update};
    use ParamKind::{Int, Long, Text};
    let of = |name, text: String, params: &[ParamKind], table, kind, changes: &[&'static str]| {
        let key = Key::Param(if kind == Update { params.len() - 1 } else { 0 });
        let access = Access { table, kind, path: Path::Primary, key, rows: 1, changes: changes.to_vec() };
        // As text, which a binary log shows.
        Statement {
            params: params.to_vec(),
            prepare: false,
            access: Some(access),
            ..Statement::plain(name, &text)
        }
    };
    let plain = |name, text| Statement { prepare: false, ..Statement::plain(name, text) };
    // Assignments are made from left to right: the checksum is of the new values.
    let account = format!(
        "UPDATE {} SET balance=balance+(?),version=version+1,crc={} WHERE id=?",
        ACCOUNT.name,
        ACCOUNT.crc()
    );
    let ballast = format!("UPDATE {} SET k=k+1,hits=hits+1,crc={} WHERE id=?", BALLAST.name, BALLAST.crc());
    let history =
        format!("INSERT INTO {} (client,seq,a,b,amount,payload,crc) VALUES (?,?,?,?,?,?,?)", HISTORY.name);
    let forget = format!("DELETE FROM {} WHERE client=? AND seq=?", HISTORY.name);
    let marker = format!("INSERT INTO {ABORTED} (client, seq) VALUES (?,?)");
    let mark = format!("UPDATE {LEDGER_TABLE} SET seq=? WHERE client=?");
    vec![
        of("accounts", account, &[Int, Int], ACCOUNTS, Update, &["balance", "version", "crc"]),
        of("ballast", ballast, &[Int], BALLASTS, Update, &["k", "hits", "crc"]),
        of("history", history, &[Int, Long, Int, Int, Int, Text, Long], HISTORIES, Insert, &[]),
        of("forget", forget, &[Int, Long], HISTORIES, Delete, &[]),
        of("marks", mark, &[Long, Int], MARKS, Update, &["seq"]),
        of("markers", marker, &[Int, Long], MARKERS, Insert, &[]),
        plain("commit", "COMMIT"),
        plain("rollback", "ROLLBACK"),
    ]
}

fn fill(rows: u32, lets: Vec<(Register, Expr)>, values: Vec<Expr>) -> Fill {
    Fill { rows, lets, values, ..Fill::none() }
}

/// The values of a row, and the checksum that the server computes of them.
fn with_crc(values: impl Fn() -> Vec<Expr>) -> Vec<Expr> {
    [values(), vec![Expr::Crc32(values())]].concat()
}

/// A table without rows or indexes.
fn plain(create: String) -> Table {
    Table {
        name: String::new(),
        count: 0,
        create,
        indexes: Vec::new(),
        fill: fill(0, Vec::new(), Vec::new()),
        row_bytes: OTHER_BYTES,
        warm_up: Vec::new(),
        ageing: None,
    }
}

fn table(of: &CheckedTable, create: String) -> Table {
    Table {
        name: of.name.into(),
        indexes: (0..of.indexes.len()).map(|at| index(of, at)).collect(),
        warm_up: vec![format!("SELECT COUNT(crc) FROM {} FORCE INDEX (PRIMARY)", of.name)],
        ..plain(create)
    }
}

fn index(of: &CheckedTable, at: usize) -> Index {
    let index = &of.indexes[at];
    Index {
        name: index.name.into(),
        columns: index.columns.to_vec(),
        create: None,
        warm_up: Some(format!(
            "SELECT COUNT({}) FROM {} FORCE INDEX ({})",
            index.columns[0], of.name, index.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Random;
    use crate::invariant::Schema;
    use crate::sent::{Sent, transaction};

    /// What a client sends for one transaction, as text.
    fn sent(of: &Invariants, seed: u64, client: u32, sequence: u64) -> Vec<String> {
        transaction(of.describe(), seed, client, sequence).iter().map(Sent::sql).collect()
    }

    fn load(schema: Schema, abort_every: u32) -> Invariants {
        Invariants { schema, clients: 8, abort_every }
    }

    #[test]
    fn a_transaction_is_the_same_whenever_it_is_drawn() {
        let load = load(Schema::default(), 0);
        assert_eq!(sent(&load, 5, 3, 9), sent(&load, 5, 3, 9));
        assert_ne!(sent(&load, 5, 3, 9), sent(&load, 5, 3, 10));
    }

    #[test]
    fn what_a_transaction_does_does_not_depend_on_how_often_one_is_rolled_back() {
        let (with, without) = (load(Schema::default(), 2), load(Schema::default(), 0));
        let mut aborts = 0;
        for sequence in 1..50 {
            let (with, without) = (sent(&with, 5, 3, sequence), sent(&without, 5, 3, sequence));
            assert!(with.ends_with(&without), "{with:?}");
            aborts += usize::from(with.len() > without.len());
        }
        assert!((10..40).contains(&aborts), "{aborts}");
    }

    #[test]
    fn a_transfer_has_two_accounts_of_the_table_even_where_there_are_but_two() {
        let load = load(Schema { accounts: 2, rows: 1, ..Schema::default() }, 0);
        for sequence in 1..500 {
            let sent = sent(&load, 5, 0, sequence);
            assert!(sent[0].ends_with(" WHERE id=1") && sent[1].ends_with(" WHERE id=2"), "{sent:?}");
            assert!(sent[2].ends_with(" WHERE id=1"), "{sent:?}");
        }
    }

    #[test]
    fn the_statements_of_a_transaction_are_these() {
        let sent = sent(&load(Schema::default(), 0), 5, 3, 101);
        let random = &mut Random::new(5, 4 << 40 | 101 << 1);
        let from = random.up_to(1_000);
        let to = (from - 1 + random.up_to(999)) % 1_000 + 1;
        let (amount, row) = (i64::from(random.up_to(100)), random.up_to(10_000));
        let mut payload = Vec::new();
        random.digit_groups(3, &mut payload);
        let payload = String::from_utf8(payload).unwrap();
        let mut moves = [(from, -amount), (to, amount)];
        moves.sort_unstable();
        let [lower, higher] = moves.map(|(id, by)| {
            format!(
                "UPDATE ebbtide_account SET balance=balance+({by}),version=version+1,\
                 crc=CRC32(CONCAT_WS('|',id,balance,version)) WHERE id={id}"
            )
        });
        let crc = crc32fast::hash(format!("3|101|{from}|{to}|{amount}|{payload}").as_bytes());
        let ballast = format!(
            "UPDATE ebbtide_ballast SET k=k+1,hits=hits+1,crc=CRC32(CONCAT_WS('|',id,k,c,pad,hits)) WHERE id={row}"
        );
        let history = format!(
            "INSERT INTO ebbtide_history (client,seq,a,b,amount,payload,crc) VALUES \
             (3,101,{from},{to},{amount},'{payload}',{crc})"
        );
        let rest = [
            "DELETE FROM ebbtide_history WHERE client=3 AND seq=1",
            "UPDATE ebbtide_ledger SET seq=101 WHERE client=3",
            "COMMIT",
        ];
        assert_eq!(sent[..4], [lower, higher, ballast, history]);
        assert_eq!(sent[4..], rest);
    }

    #[test]
    fn a_transaction_to_be_rolled_back_leaves_markers_and_no_mark() {
        let sent = sent(&load(Schema::default(), 1), 5, 3, 7);
        let end = sent.iter().position(|sql| sql == "ROLLBACK").unwrap();
        let aborted = &sent[..end];
        assert!(aborted.iter().all(|sql| !sql.contains("ebbtide_ledger")), "{aborted:?}");
        assert!(aborted.iter().any(|sql| sql.contains("INTO ebbtide_aborted")));
        assert!(aborted.iter().any(|sql| sql.contains("'aborted-")));
        assert_eq!(sent.last().unwrap(), "COMMIT");
    }

    #[test]
    fn about_one_in_so_many_transactions_has_an_abort_before_it() {
        let load = load(Schema::default(), 16);
        let aborts = (1..=4_000).filter(|seq| sent(&load, 5, 2, *seq).contains(&"ROLLBACK".to_owned()));
        let count = aborts.count();
        assert!((200..300).contains(&count), "seed 5: {count}");
    }

    #[test]
    fn a_row_of_ballast_carries_the_checksum_of_its_columns() {
        let description = load(Schema { rows: 100, ..Schema::default() }, 0).describe();
        let mut text = Vec::new();
        crate::rows::RowWriter::new(&description.tables[BALLASTS].fill, 3, 0).row(7, false, &mut text);
        let text = String::from_utf8(text).unwrap();
        let inner = text.trim_matches(['(', ')']).replace('\'', "");
        let (columns, crc) = inner.rsplit_once(',').unwrap();
        assert_eq!(crc.parse::<u32>().unwrap(), crc32fast::hash(columns.replace(',', "|").as_bytes()));
        assert_eq!(columns.split(',').map(str::len).skip(2).collect::<Vec<_>>(), [119, 59, 1]);
    }

    /// The lengths and checksums are those of the version before workloads were described as data.
    #[test]
    fn a_seed_gives_the_same_rows_and_transactions_in_every_version() {
        let mut out = Vec::new();
        let large = load(Schema { accounts: 500, rows: 700, ..Schema::default() }, 0).describe();
        for table in [ACCOUNTS, BALLASTS] {
            let mut rows = crate::rows::RowWriter::new(&large.tables[table].fill, 3, 0);
            (1..=500).for_each(|row| {
                rows.row(row, false, &mut out);
            });
        }
        assert_eq!((out.len(), crc32fast::hash(&out)), (113_940, 0xf3b9_790c));
        let small = load(Schema { accounts: 50, rows: 500, window: 20, ..Schema::default() }, 4);
        let mut out = String::new();
        for client in [0, 5, 63] {
            for sequence in 1..=60 {
                for sql in sent(&small, 9, client, sequence) {
                    out.push_str(&sql);
                    out.push('\n');
                }
            }
        }
        assert_eq!((out.len(), crc32fast::hash(out.as_bytes())), (133_138, 0x2f19_dca0));
    }
}
