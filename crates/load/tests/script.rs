//! A workload that is described in full, executed on a real server: values from results, branches, loops, transactions
//! that are rolled back on purpose, a mix, pauses.

use std::sync::Mutex;
use std::time::Duration;

use ebbtide_load::{
    Cancel, Commit, Ended, Execution, IgnoreErrors, LoadError, Loading, Outcome, Refused, RunObserver,
    Session, execute, load,
};
use ebbtide_workload::{
    Bind, Call, Collect, Description, Expr, Fill, Keep, Op, ParamKind, Program, Register, Statement, Step,
    Table, Transaction,
};

use crate::support::{Server, on_each};

const ITEMS: u32 = 20;
const PRICE: Register = Register(0);
const NAME: Register = Register(1);
const ITEM: Register = Register(2);
const FOUND: Register = Register(3);
const TOTAL: Register = Register(4);
const LINES: Register = Register(5);
const WHEN: Register = Register(6);

const LOOK_UP: usize = 0;
const LAST: usize = 1;
const LINE: usize = 2;
const ORDER: usize = 3;
const BEGIN: usize = 4;
const COMMIT: usize = 5;
const ROLLBACK: usize = 6;

fn table(name: &str, create: &str, fill: Fill) -> Table {
    Table {
        name: name.into(),
        count: 0,
        create: format!("CREATE TABLE {name} ({create}) ENGINE=InnoDB"),
        indexes: Vec::new(),
        fill,
        row_bytes: 50,
        warm_up: Vec::new(),
        ageing: None,
    }
}

fn fill(rows: u32, values: Vec<Expr>) -> Fill {
    Fill { rows, values, stream_rows: 100, ..Fill::none() }
}

fn statement(name: &'static str, text: &str, params: Vec<ParamKind>) -> Statement {
    Statement { params, ..Statement::plain(name, text) }
}

fn send(call: Call) -> Step {
    Step::Send(vec![call])
}

fn bind(row: Expr, column: u16, into: Register) -> Bind {
    Bind { row, column, into }
}

/// Orders of one to three items, whose prices come from the server. An item that is not there (the last of
/// `ITEMS + 1`) rolls the order back.
fn shop() -> Description {
    let register = Expr::Register;
    let look_up = Call {
        binds: vec![bind(Expr::Int(0), 1, PRICE), bind(Expr::Int(0), 2, NAME), bind(Expr::Int(0), 3, WHEN)],
        count: Some(FOUND),
        ..Call::new(LOOK_UP, vec![register(ITEM)])
    };
    let missing = register(FOUND).op(Op::Equal, Expr::Int(0));
    let add = Step::Set(TOTAL, register(TOTAL).op(Op::Add, register(PRICE)));
    let line = Call::new(LINE, vec![Expr::Client, register(NAME), register(PRICE), register(WHEN)]);
    let buy = vec![
        Step::Set(TOTAL, Expr::Int(0)),
        Step::Set(ITEM, Expr::up_to(i64::from(ITEMS) + 1)),
        Step::Set(LINES, Expr::between(1, 3)),
        send(Call::new(BEGIN, Vec::new())),
        send(look_up),
        Step::If(
            missing,
            vec![Step::RollBack(Call::new(ROLLBACK, Vec::new()))],
            vec![
                Step::Repeat(register(LINES), vec![send(line), add]),
                send(Call::new(ORDER, vec![Expr::Client, Expr::Sequence, register(TOTAL), register(LINES)])),
                Step::Commit(Call::new(COMMIT, Vec::new())),
            ],
        ),
    ];
    // The middle row of all, as TPC-C chooses a customer by name.
    let middle = Expr::Int(i64::from(ITEMS) / 2);
    let browse = vec![send(Call {
        binds: vec![bind(middle, 0, ITEM), bind(Expr::Int(1_000), 0, NAME)],
        count: Some(FOUND),
        ..Call::new(LAST, Vec::new())
    })];
    Description {
        name: "shop".into(),
        form: "shop".into(),
        tables: tables(),
        statements: statements(),
        transactions: vec![
            Transaction { weight: 3, ..Transaction::alone("buy", buy) },
            Transaction::alone("browse", browse),
        ],
        session: vec!["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED".into()],
        opening: Vec::new(),
        undo: None,
        finish: Vec::new(),
        registers: 7,
    }
}

fn tables() -> Vec<Table> {
    vec![
        table(
            "item",
            "id INT PRIMARY KEY, price INT UNSIGNED NOT NULL, name VARCHAR(40) NULL, made DATETIME NOT NULL",
            fill(
                ITEMS,
                vec![
                    Expr::Row,
                    Expr::Row.op(Op::Mul, Expr::Int(10)),
                    // Every other item has no name.
                    Expr::Choose(
                        Expr::Row.op(Op::Rem, Expr::Int(2)).into(),
                        Expr::Concat(vec![Expr::Text("it's item ".into()), Expr::Row]).into(),
                        Expr::Null.into(),
                    ),
                    Expr::Text("2026-11-22 10:20:30".into()),
                ],
            ),
        ),
        table(
            "line",
            "id INT AUTO_INCREMENT PRIMARY KEY, client INT, name VARCHAR(40) NULL, price INT, made DATETIME",
            fill(0, Vec::new()),
        ),
        table("orders", "client INT, seq BIGINT, total INT, lines_left INT", fill(0, Vec::new())),
    ]
}

fn statements() -> Vec<Statement> {
    vec![
        statement("look_up", "SELECT id, price, name, made FROM item WHERE id=?", vec![ParamKind::Int]),
        statement("browse", "SELECT id FROM item ORDER BY id", Vec::new()),
        statement(
            "line",
            "INSERT INTO line (client, name, price, made) VALUES (?,?,?,?)",
            vec![ParamKind::Int, ParamKind::Text, ParamKind::Long, ParamKind::Text],
        ),
        statement(
            "order",
            "INSERT INTO orders VALUES (?,?,?,?)",
            vec![ParamKind::Int, ParamKind::Long, ParamKind::Long, ParamKind::Int],
        ),
        Statement::plain("begin", "BEGIN"),
        Statement::plain("commit", "COMMIT"),
        Statement::plain("rollback", "ROLLBACK"),
    ]
}

fn prepare(server: &Server, description: &Description) {
    let loading = Loading { seed: 1, connections: 2 };
    load(&server.target(), description, loading, &Cancel::default(), &mut |_| ()).unwrap();
}

fn executed(server: &Server, description: Description, execution: &Execution) -> Outcome {
    let program = Program::new(description).unwrap();
    execute(&server.target(), &program, execution, &Cancel::default(), &(), &mut |_| ()).unwrap()
}

#[test]
fn a_script_uses_what_statements_returned_and_rolls_back_on_purpose() {
    on_each(&[], |server| {
        for prepared in [true, false] {
            prepare(server, &shop());
            let execution = Execution { connections: 3, events: Some(600), prepared, ..Execution::default() };
            let outcome = executed(server, shop(), &execution);
            assert_eq!(outcome.ended, Ended::Events, "{:?}", outcome.errors);
            assert_eq!(outcome.totals.events, 600);
            let of = |name: &str| {
                let found = outcome.transactions.iter().find(|of| of.transaction == name);
                found.map_or(0, |of| of.response.count)
            };
            assert!((400..500).contains(&of("buy")), "{:?}", outcome.transactions);
            assert_eq!(of("buy") + of("browse"), 600);
            // One item of 21 is not there.
            assert!((5..60).contains(&outcome.rolled_back), "{}", outcome.rolled_back);
            assert_eq!(outcome.commits + outcome.rolled_back, 600);
            let mut session = server.session();
            let mut number = |sql: &str| session.value(sql).unwrap().unwrap().parse::<u64>().unwrap();
            let orders = number("SELECT COUNT(*) FROM orders");
            assert_eq!(orders, of("buy") - outcome.rolled_back);
            assert_eq!(
                number("SELECT CAST(SUM(total) AS UNSIGNED) FROM orders"),
                number("SELECT SUM(price) FROM line")
            );
            let lines = number("SELECT COUNT(*) FROM line");
            assert!(lines > orders && lines < 3 * orders, "{lines} lines of {orders} orders");
            let wrong = "SELECT COUNT(*) FROM line JOIN item USING (price) \
                         WHERE NOT (line.name <=> item.name) OR line.made <> '2026-11-22 10:20:30'";
            assert_eq!(number(wrong), 0, "names, NULL and times are those of the item");
            assert!(number("SELECT COUNT(*) FROM line WHERE name IS NULL") > 0);
            for table in ["item", "line", "orders"] {
                session.execute(&format!("DROP TABLE {table}")).unwrap();
            }
        }
    });
}

#[test]
fn keying_and_thinking_are_waited_for_and_are_in_no_latency() {
    let Some(server) = Server::start() else { return };
    prepare(&server, &shop());
    let mut description = shop();
    for transaction in &mut description.transactions {
        transaction.keying_us = Some(Expr::between(10_000, 30_000));
        transaction.thinking_us = Some(Expr::Int(30_000));
    }
    let duration = Some(Duration::from_secs(2));
    let outcome =
        executed(&server, description, &Execution { connections: 10, duration, ..Execution::default() });
    assert_eq!(outcome.ended, Ended::Time);
    // Ten clients whose cycle is 50 ms and the response time: at most 400 and the first of each in two seconds.
    assert!((1..=420).contains(&outcome.totals.events), "{}", outcome.totals.events);
    // With keying and thinking in the latency, the clients' time would be all response: ten times two seconds.
    let responding_s = outcome.totals.events as f64 * outcome.response.mean_us / 1e6;
    assert!(responding_s < 15.0, "{responding_s} s of 20: {:?}", outcome.response);
}

/// Records the commits that are reported to it.
#[derive(Default)]
struct Notes(Mutex<Vec<(u32, u64)>>);

impl RunObserver for Notes {
    fn last_commit(&self, client: u32) -> u64 {
        u64::from(client) * 100
    }

    fn committed(&self, commit: &Commit) -> Result<(), LoadError> {
        self.0.lock().unwrap().push((commit.client, commit.sequence));
        Ok(())
    }
}

#[test]
fn commits_are_reported_in_order_and_go_on_after_the_last_one() {
    let Some(server) = Server::start() else { return };
    prepare(&server, &shop());
    let mut description = shop();
    description.transactions.truncate(1);
    let program = Program::new(description).unwrap();
    let execution = Execution { connections: 2, events: Some(100), ..Execution::default() };
    let notes = Notes::default();
    let outcome =
        execute(&server.target(), &program, &execution, &Cancel::default(), &notes, &mut |_| ()).unwrap();
    let noted = notes.0.into_inner().unwrap();
    assert_eq!(u64::try_from(noted.len()).unwrap(), outcome.commits);
    for client in 0..2_u32 {
        let of: Vec<u64> = noted.iter().filter(|(of, _)| *of == client).map(|(_, number)| *number).collect();
        let first = u64::from(client) * 100 + 1;
        assert!(of.iter().copied().eq((first..).take(of.len())), "{of:?}");
        let stored = server.session().value(&format!("SELECT MAX(seq) FROM orders WHERE client={client}"));
        assert_eq!(stored.unwrap().unwrap(), of.last().unwrap().to_string());
    }
}

/// Changes a table's columns once, after a commit.
struct Alters<'a> {
    server: &'a Server,
    after: u64,
    statement: &'a str,
}

impl RunObserver for Alters<'_> {
    fn committed(&self, commit: &Commit) -> Result<(), LoadError> {
        if commit.sequence == self.after {
            self.server.session().execute(self.statement)?;
        }
        Ok(())
    }
}

/// A server that has sent the columns of a prepared statement leaves them out of its further answers until they change.
#[test]
fn columns_that_change_during_a_run_are_read_as_they_are_now() {
    // Which call of the statement is the first after the change: one that keeps a value, or one that does not.
    for keeps_first in [true, false] {
        on_each(&[], |server| {
            let look_up = Call::new(0, vec![Expr::Int(7)]);
            let keeping =
                Call { binds: vec![bind(Expr::Int(0), 1, PRICE)], count: Some(FOUND), ..look_up.clone() };
            let [first, second] = if keeps_first { [keeping.clone(), keeping] } else { [look_up, keeping] };
            let steps = vec![
                send(first),
                Step::Send(vec![second.clone(), second]),
                send(Call::new(1, vec![Expr::Sequence, Expr::Register(PRICE)])),
            ];
            let description = Description {
                tables: vec![
                    table(
                        "item",
                        "id INT PRIMARY KEY, price INT NOT NULL, name VARCHAR(9) NOT NULL",
                        fill(ITEMS, vec![Expr::Row, Expr::Row.plus(400), Expr::Text("it".into())]),
                    ),
                    table("seen", "seq BIGINT PRIMARY KEY, price VARCHAR(20) NULL", fill(0, Vec::new())),
                ],
                statements: vec![
                    statement("look_up", "SELECT id, price, name FROM item WHERE id=?", vec![ParamKind::Int]),
                    statement(
                        "seen",
                        "INSERT INTO seen VALUES (?,?)",
                        vec![ParamKind::Long, ParamKind::Text],
                    ),
                ],
                transactions: vec![Transaction::alone("look", steps)],
                ..shop()
            };
            prepare(server, &description);
            let program = Program::new(description).unwrap();
            let statement = "ALTER TABLE item MODIFY price VARCHAR(20) NOT NULL";
            let alters = Alters { server, after: 5, statement };
            let execution = Execution { events: Some(20), ..Execution::default() };
            let outcome =
                execute(&server.target(), &program, &execution, &Cancel::default(), &alters, &mut |_| ())
                    .unwrap();
            assert_eq!(outcome.ended, Ended::Events, "{:?}", outcome.errors);
            let mut session = server.session();
            let right = session.value("SELECT COUNT(*) FROM seen WHERE price='407'").unwrap();
            assert_eq!(right.as_deref(), Some("20"));
        });
    }
}

/// When each client committed, ns of the run; client 0 keeps the event loop from everything else for a while then.
struct Times {
    commits: Mutex<Vec<(u32, u64)>>,
    connections: Mutex<Vec<String>>,
    blocks: Duration,
}

impl Times {
    fn new(blocks: Duration) -> Self {
        Self { commits: Mutex::default(), connections: Mutex::default(), blocks }
    }
}

impl RunObserver for Times {
    fn connected(&self, _: u32, session: &mut Session) -> Result<(), LoadError> {
        let id = session.value("SELECT CONNECTION_ID()")?.unwrap();
        self.connections.lock().unwrap().push(id);
        Ok(())
    }

    fn committed(&self, commit: &Commit) -> Result<(), LoadError> {
        self.commits.lock().unwrap().push((commit.client, commit.at_ns));
        if commit.client == 0 {
            std::thread::sleep(self.blocks);
        }
        Ok(())
    }
}

/// One statement, and a pause after it.
fn pausing(thinking: Duration) -> Description {
    let thinking = i64::try_from(thinking.as_micros()).unwrap();
    Description {
        tables: Vec::new(),
        statements: vec![Statement::plain("do", "DO 1")],
        transactions: vec![Transaction {
            thinking_us: Some(Expr::Int(thinking)),
            ..Transaction::alone("do", vec![send(Call::new(0, Vec::new()))])
        }],
        ..shop()
    }
}

#[test]
fn a_connection_that_is_lost_in_a_pause_shortens_no_later_pause() {
    const PAUSE: Duration = Duration::from_millis(600);
    let Some(server) = Server::start() else { return };
    let program = Program::new(pausing(PAUSE)).unwrap();
    let unless = IgnoreErrors::Codes([1927, 2013].into());
    let execution = Execution {
        duration: Some(Duration::from_secs(4)),
        refused: Refused::EndsRun { unless },
        ..Execution::default()
    };
    let times = Times::new(Duration::ZERO);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while times.commits.lock().unwrap().len() < 2 {
                std::thread::sleep(Duration::from_millis(5));
            }
            // In the middle of a pause.
            std::thread::sleep(PAUSE / 2);
            let id = times.connections.lock().unwrap()[0].clone();
            server.session().execute(&format!("KILL {id}")).unwrap();
        });
        execute(&server.target(), &program, &execution, &Cancel::default(), &times, &mut |_| ()).unwrap()
    });
    assert_eq!(outcome.ended, Ended::Time, "{:?}", outcome.errors);
    assert_eq!(outcome.totals.reconnects, 1, "{:?}", outcome.errors);
    let commits: Vec<u64> = times.commits.into_inner().unwrap().iter().map(|(_, at)| *at).collect();
    let short = commits.windows(2).filter(|pair| u128::from(pair[1] - pair[0]) < PAUSE.as_nanos()).count();
    // The pause in which the connection was lost ends with it.
    assert_eq!(short, 1, "{commits:?}");
}

#[test]
fn a_pause_that_ends_late_is_the_generators_lag() {
    let Some(server) = Server::start() else { return };
    let program = Program::new(pausing(Duration::from_millis(40))).unwrap();
    let duration = Some(Duration::from_secs(2));
    let execution = Execution { duration, ..Execution::default() };
    let times = Times::new(Duration::from_millis(150));
    let outcome =
        execute(&server.target(), &program, &execution, &Cancel::default(), &times, &mut |_| ()).unwrap();
    let lag = outcome.generator.lag;
    // The pause begins with the answer, and ends while the loop stands still.
    assert!(lag.max_us > 60_000.0, "{lag:?}");
    let why = outcome.generator.disqualified.unwrap();
    assert!(why.contains("late at its own 99th percentile"), "{why}");
}

/// Collects the prices from the highest to the lowest, sorts them, and writes all but the last one down, doubled.
fn bookkeeping() -> Description {
    let (place, found, array) = (Register(0), Register(1), Register(2));
    let boxed = |register| Box::new(Expr::Register(register));
    let cents = Expr::Units(Box::new(Expr::Element(array, boxed(place))), 2);
    let doubled = Expr::Decimal(Box::new(cents.clone().op(Op::Add, cents)), 2);
    let collect = vec![Collect { column: Expr::Int(1), into: array, most: 15 }];
    let whole = |expr| Expr::Units(Box::new(expr), 2);
    let sorted_by_number = vec![
        Step::Set(place, Expr::Int(0)),
        Step::Repeat(
            Expr::Int(15),
            vec![
                Step::SetElement(array, Expr::Register(place), whole(Expr::Element(array, boxed(place)))),
                Step::Set(place, Expr::Register(place).plus(1)),
            ],
        ),
        Step::Sort(array, Expr::Int(15)),
        Step::Set(place, Expr::Int(0)),
    ];
    let write = vec![
        Step::SetElement(
            array,
            Expr::Register(place),
            Expr::Decimal(Box::new(Expr::Element(array, boxed(place))), 2),
        ),
        send(Call { changes: Some(Expr::Int(1)), ..Call::new(1, vec![doubled]) }),
        Step::Set(place, Expr::Register(place).plus(1)),
    ];
    let steps = [
        vec![send(Call { collect, count: Some(found), ..Call::new(0, Vec::new()) })],
        sorted_by_number,
        vec![Step::Repeat(Expr::Int(14), write), send(Call::new(2, vec![Expr::Register(found)]))],
    ];
    Description {
        name: "bookkeeping".into(),
        form: String::new(),
        tables: vec![
            table(
                "price",
                "id INT PRIMARY KEY, price DECIMAL(6,2)",
                Fill {
                    keep: Some(Keep { condition: Expr::Row.op(Op::Rem, Expr::Int(2)), percent: 50 }),
                    ..fill(40, vec![Expr::Row, Expr::Decimal(Expr::Row.op(Op::Mul, Expr::Int(25)).into(), 2)])
                },
            ),
            table(
                "booked",
                "id INT AUTO_INCREMENT PRIMARY KEY, price DECIMAL(6,2), found INT",
                fill(0, Vec::new()),
            ),
        ],
        statements: vec![
            Statement::plain("prices", "SELECT id, price FROM price ORDER BY price DESC"),
            statement("book", "INSERT INTO booked (price) VALUES (?-0.01+0.01)", vec![ParamKind::Decimal]),
            statement("count", "INSERT INTO booked (found) VALUES (?)", vec![ParamKind::Int]),
        ],
        transactions: vec![Transaction::alone("book", steps.concat())],
        session: Vec::new(),
        opening: Vec::new(),
        undo: None,
        finish: vec!["ALTER TABLE booked ADD INDEX made_last (price)".into()],
        registers: 17,
    }
}

#[test]
fn a_column_of_all_rows_is_an_array_that_a_script_sorts_and_loops_over() {
    on_each(&[], |server| {
        for prepared in [true, false] {
            prepare(server, &bookkeeping());
            let execution = Execution { events: Some(1), prepared, ..Execution::default() };
            let outcome = executed(server, bookkeeping(), &execution);
            assert_eq!(outcome.totals.events, 1, "{:?}", outcome.errors);
            let mut session = server.session();
            let mut value = |sql: &str| session.value(sql).unwrap().unwrap();
            assert_eq!(value("SELECT COUNT(*) FROM price"), "20", "every other row was left out");
            // The 15 highest of 20 prices: rows 11 to 39, 25 hundredths each; then all but the highest.
            let doubled: Vec<String> =
                (11..=37).step_by(2).map(|row| format!("{:.2}", f64::from(row) * 0.5)).collect();
            let booked =
                "SELECT GROUP_CONCAT(price ORDER BY id SEPARATOR ' ') FROM booked USE INDEX (made_last)";
            assert_eq!(value(booked), doubled.join(" "));
            assert_eq!(value("SELECT MAX(found) FROM booked"), "20", "rows beyond the array are counted");
            for table in ["price", "booked"] {
                session.execute(&format!("DROP TABLE {table}")).unwrap();
            }
        }
    });
}
