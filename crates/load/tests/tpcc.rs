//! TPC-C on a real server: a load, runs at every isolation level, and a broken row for each consistency condition.

use std::time::{Duration, Instant};

use ebbtide_load::invariant::{Evidence, Expected, Findings, Rule};
use ebbtide_load::ledger::Ledger;
use ebbtide_load::tpcc::{
    self, CheckOptions, ConsistencyReport, Isolation, MarkedOptions, Statements, TpccOptions,
    TpccPrepareOptions, TpccReport, WaitMode,
};
use ebbtide_load::{Cancel, ClientOptions, Ended, LedgerOptions, Session, Target};
use ebbtide_workload::tpcc::{Scale, TABLES};

use crate::support::{Server, on_each};

/// A hundredth of the specification's scale: loaded in a second.
const SMALL: Scale = Scale { items: 1_000, customers: 30 };

fn prepare(server: &Server, warehouses: u32, scale: Scale) {
    println!("seed 3");
    let options =
        TpccPrepareOptions { warehouses, scale, seed: 3, threads: 2, ..TpccPrepareOptions::default() };
    let done = tpcc::prepare(&server.target(), &options, &Cancel::default(), &mut |_| ()).unwrap();
    assert_eq!(done.tables, 9);
}

fn run(server: &Server, options: &TpccOptions) -> TpccReport {
    let report = tpcc::run(&server.target(), options, &Cancel::default(), &mut |_| ()).unwrap();
    ebbtide_testing::schema::assert_documented(
        &["load", "run", "tpcc"],
        &serde_json::to_value(&report).unwrap(),
    );
    report
}

fn check(server: &Server) -> ConsistencyReport {
    let options = CheckOptions { warehouses: None, table_sets: 0, threads: 2 };
    let report = tpcc::check(&server.target(), options, &Cancel::default(), &|_, _| ()).unwrap();
    ebbtide_testing::schema::assert_documented(
        &["load", "check", "tpcc"],
        &serde_json::to_value(&report).unwrap(),
    );
    report
}

fn broken(report: &ConsistencyReport) -> Vec<u8> {
    report.conditions.iter().filter(|of| !of.holds).map(|of| of.condition).collect()
}

fn number(session: &mut Session, sql: &str) -> u64 {
    session.value(sql).unwrap().unwrap().parse().unwrap()
}

#[test]
fn a_database_that_was_loaded_and_run_on_is_consistent_at_every_isolation_level() {
    on_each(&[], |server| {
        prepare(server, 3, SMALL);
        let fresh = check(server);
        assert!(fresh.consistent, "{fresh:?}");
        assert_eq!((fresh.tables.warehouses, fresh.tables.items, fresh.tables.customers), (3, 1_000, 30));
        assert!(fresh.tables.c_last.is_some());
        for (isolation, prepared, statements) in [
            (Isolation::RepeatableRead, true, Statements::Single),
            (Isolation::ReadCommitted, false, Statements::Single),
            (Isolation::Serializable, true, Statements::Single),
            (Isolation::RepeatableRead, true, Statements::Batched),
            (Isolation::ReadCommitted, false, Statements::Batched),
            (Isolation::Serializable, true, Statements::Batched),
        ] {
            println!("{isolation}, {statements:?}");
            let options = TpccOptions {
                warehouses: 3,
                isolation,
                statements,
                clients: ClientOptions {
                    connections: 4,
                    prepared,
                    duration: None,
                    events: Some(600),
                    ..ClientOptions::default()
                },
                ..TpccOptions::default()
            };
            let mut session = server.session();
            let before = number(&mut session, "SELECT COUNT(*) FROM orders");
            let report = run(server, &options);
            let outcome = &report.outcome;
            assert_eq!(outcome.ended, Ended::Events, "{isolation}: {:?}", outcome.errors);
            assert_eq!(outcome.commits + outcome.rolled_back, outcome.totals.events, "{isolation}");
            let orders = &report.by_transaction[0];
            assert_eq!(orders.transaction, "new_order");
            let made = number(&mut session, "SELECT COUNT(*) FROM orders") - before;
            assert_eq!(made, orders.response.count - orders.rolled_back, "{isolation}");
            assert_eq!(orders.rolled_back, outcome.rolled_back);
            assert!(report.by_transaction.iter().all(|of| of.response.count > 0), "{isolation}: {report:?}");
            let (range, kit) = match statements {
                Statements::Single => (25.0..45.0, "tpcc-mysql"),
                Statements::Batched => (12.0..16.0, "tpcc-mysql, batched as by go-tpc"),
            };
            assert!(range.contains(&report.statements_per_transaction), "{report:?}");
            assert_eq!(report.kit.statements, kit);
            assert!(report.tpmc > 0.0 && (report.ceiling_tpmc - 38.58).abs() < 1e-9);
            let after = check(server);
            assert!(after.consistent, "{isolation}: {after:?}");
        }
        let mut session = server.session();
        for moved in [
            "SELECT COUNT(*) FROM stock WHERE s_order_cnt > 0",
            "SELECT COUNT(*) FROM stock WHERE s_remote_cnt > 0",
            "SELECT COUNT(*) FROM customer WHERE c_delivery_cnt > 0",
            "SELECT COUNT(*) FROM customer WHERE c_payment_cnt > 1",
            "SELECT COUNT(*) FROM history WHERE h_w_id <> h_c_w_id",
        ] {
            assert!(number(&mut session, moved) > 0, "{moved}");
        }
        let sold = "SELECT (SELECT SUM(s_ytd) FROM stock) = (SELECT SUM(ol_quantity) FROM order_line WHERE ol_o_id > 30)";
        assert_eq!(number(&mut session, sold), 1, "what was ordered has left the stock");
        assert_eq!(tpcc::cleanup(&server.target()).unwrap().len(), 9);
        assert!(tpcc::tables_present(&server.target()).unwrap().is_empty());
    });
}

/// A condition, a statement that breaks it, one that mends it, and what the row at fault is called by.
type Planted = (u8, &'static str, &'static str, &'static str);

const PLANTED: [Planted; 12] = [
    (
        1,
        "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 2 AND d_id = 3",
        "UPDATE district SET d_ytd = d_ytd - 1 WHERE d_w_id = 2 AND d_id = 3",
        "w_id 2: w_ytd is 3000.00, the sum of d_ytd 3001.00",
    ),
    (
        2,
        "UPDATE district SET d_next_o_id = 40 WHERE d_w_id = 1 AND d_id = 10",
        "UPDATE district SET d_next_o_id = 31 WHERE d_w_id = 1 AND d_id = 10",
        "d_w_id 1, d_id 10: d_next_o_id - 1 is 39, the largest o_id 30, the largest no_o_id 30",
    ),
    (
        3,
        "DELETE FROM new_orders WHERE no_w_id = 1 AND no_d_id = 4 AND no_o_id = 25",
        "INSERT INTO new_orders (no_w_id, no_d_id, no_o_id) VALUES (1, 4, 25)",
        "no_w_id 1, no_d_id 4: no_o_id from 22 to 30 in 8 rows",
    ),
    (
        4,
        "UPDATE order_line SET ol_d_id = 11 WHERE ol_w_id = 2 AND ol_d_id = 7 AND ol_o_id = 9 AND ol_number = 1",
        "UPDATE order_line SET ol_d_id = 7 WHERE ol_w_id = 2 AND ol_d_id = 11",
        "d_w_id 2, d_id 7: the sum of o_ol_cnt is ",
    ),
    (
        5,
        "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 5",
        "UPDATE orders SET o_carrier_id = 3 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 5",
        "o_w_id 1, o_d_id 1, o_id 5: o_carrier_id is NULL, new_orders has no row",
    ),
    (
        6,
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 30",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 30",
        "o_w_id 1, o_d_id 2, o_id 30: o_ol_cnt is ",
    ),
    (
        7,
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 2",
        "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 2",
        "ol_w_id 1, ol_d_id 1, ol_o_id 1, ol_number 2: ol_delivery_d is NULL, o_carrier_id ",
    ),
    (
        8,
        "UPDATE warehouse SET w_ytd = w_ytd - 0.01 WHERE w_id = 1",
        "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 1",
        "w_id 1: w_ytd is 2999.99, the sum of h_amount 3000.00",
    ),
    (
        9,
        "UPDATE history SET h_d_id = 2 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 1",
        "UPDATE history SET h_d_id = 1 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 1",
        "d_w_id 1, d_id 1: d_ytd is 300.00, the sum of h_amount 290.00",
    ),
    (
        10,
        "UPDATE customer SET c_balance = c_balance + 5 WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 2",
        "UPDATE customer SET c_balance = c_balance - 5 WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 2",
        "c_w_id 2, c_d_id 2, c_id 2: c_balance is -5.00, the sum of ol_amount 0.00, the sum of h_amount 10.00",
    ),
    (
        11,
        "UPDATE customer SET c_delivery_cnt = 1 WHERE c_w_id = 1 AND c_d_id = 9 AND c_id = 30",
        "UPDATE customer SET c_delivery_cnt = 0 WHERE c_w_id = 1 AND c_d_id = 9 AND c_id = 30",
        "d_w_id 1, d_id 9: 30 orders, 9 new orders, 1 deliveries since the load, 21 before it",
    ),
    (
        12,
        "UPDATE customer SET c_ytd_payment = 11 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 7",
        "UPDATE customer SET c_ytd_payment = 10 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 7",
        "c_w_id 1, c_d_id 1, c_id 7: c_balance + c_ytd_payment is 1.00, the sum of ol_amount 0.00",
    ),
];

#[test]
fn a_broken_row_for_each_of_the_twelve_conditions_is_found_and_named() {
    on_each(&[], |server| {
        prepare(server, 2, SMALL);
        let mut session = server.session();
        session.execute("SET SESSION foreign_key_checks=0").unwrap();
        for (condition, breaks, mends, named) in PLANTED {
            assert_eq!(session.execute(breaks).unwrap(), 1, "{breaks}");
            let found = check(server);
            assert!(!found.consistent && broken(&found).contains(&condition), "{condition}: {found:?}");
            let of = &found.conditions[usize::from(condition) - 1];
            assert!(of.first_rows.iter().any(|row| row.starts_with(named)), "{condition}: {of:?}");
            assert!(of.rows_at_fault <= 2, "{of:?}");
            assert_eq!(session.execute(mends).unwrap(), 1, "{mends}");
            assert!(check(server).consistent, "{condition} is mended");
        }
        tpcc::cleanup(&server.target()).unwrap();
    });
}

#[test]
fn tables_that_are_missing_or_of_other_sizes_are_refused() {
    let Some(server) = Server::start() else { return };
    let refused = |options: &TpccOptions| {
        let error = tpcc::run(&server.target(), options, &Cancel::default(), &mut |_| ()).unwrap_err();
        assert!(error.hint().is_some() || error.to_string().contains("--"), "{error}");
        error.to_string()
    };
    let one = TpccOptions::default();
    let missing = refused(&one);
    assert!(missing.contains("it has no warehouse, district, customer"), "{missing}");
    prepare(&server, 2, SMALL);
    let other = refused(&one);
    assert!(other.contains("they have 2 warehouses, and --warehouses=1 was asked for"), "{other}");
    assert!(refused(&TpccOptions { warehouses: 0, ..one.clone() }).contains("1 to 9000 warehouses"));
    assert!(refused(&TpccOptions { warehouses: 9_001, ..one.clone() }).contains("1 to 9000 warehouses"));
    let options = CheckOptions { warehouses: Some(5), table_sets: 0, threads: 1 };
    let error = tpcc::check(&server.target(), options, &Cancel::default(), &|_, _| ()).unwrap_err();
    assert!(error.to_string().contains("they have 2 warehouses"), "{error}");
    server.session().execute("DELETE FROM new_orders").unwrap();
    let again = tpcc::prepare(
        &server.target(),
        &TpccPrepareOptions { scale: SMALL, ..TpccPrepareOptions::default() },
        &Cancel::default(),
        &mut |_| (),
    );
    assert_eq!(again.unwrap_err().code(), Some(1050), "tables that are there are not touched");
}

#[test]
fn sets_of_numbered_tables_are_loaded_run_on_checked_and_dropped() {
    // MySQL takes no lines by default: here it does.
    on_each(&["--local-infile=1"], |server| numbered_sets(server));
}

fn numbered_sets(server: &Server) {
    println!("seed 3");
    let (target, cancel) = (server.target(), Cancel::default());
    let options = TpccPrepareOptions {
        table_sets: 2,
        scale: SMALL,
        seed: 3,
        threads: 3,
        ..TpccPrepareOptions::default()
    };
    let done = tpcc::prepare(&target, &options, &cancel, &mut |_| ()).unwrap();
    assert_eq!(done.tables, 18);
    let mut session = server.session();
    let loads = session.rows("SHOW GLOBAL STATUS LIKE 'Com_load'").unwrap();
    assert!(loads[0][1].as_deref() >= Some("1"), "rows came as lines: {loads:?}");
    let keys = "SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()";
    assert_eq!(number(&mut session, keys), 20);
    let clients =
        ClientOptions { connections: 4, duration: None, events: Some(400), ..ClientOptions::default() };
    for (statements, before) in [(Statements::Single, 300..=300), (Statements::Batched, 340..=440)] {
        let clients = clients.clone();
        let options = TpccOptions { table_sets: 2, clients, statements, ..TpccOptions::default() };
        let orders =
            |session: &mut Session, set| number(session, &format!("SELECT COUNT(*) FROM orders{set}"));
        let had = [1, 2].map(|set| orders(&mut session, set));
        assert!(had.iter().all(|orders| before.contains(orders)), "{had:?}");
        let report = run(server, &options);
        assert_eq!(report.outcome.ended, Ended::Events, "{:?}", report.outcome.errors);
        assert!((report.ceiling_tpmc - 2.0 * 12.86).abs() < 1e-9, "two sets of one warehouse: {report:?}");
        for (set, had) in [1, 2].into_iter().zip(had) {
            let made = orders(&mut session, set) - had;
            assert!((40..140).contains(&made), "each set takes half of the New-Orders: {made}");
        }
    }
    let check = |table_sets| {
        let options = CheckOptions { warehouses: Some(1), table_sets, threads: 2 };
        tpcc::check(&target, options, &cancel, &|_, _| ())
    };
    assert!(check(2).unwrap().consistent);
    assert!(check(3).unwrap_err().to_string().contains("it has no warehouse3, district3"));
    assert!(check(0).unwrap_err().to_string().contains("it has no warehouse, district"));
    session.execute("UPDATE warehouse2 SET w_ytd = w_ytd + 1").unwrap();
    assert_eq!(broken(&check(2).unwrap()), [1, 8]);
    assert!(check(1).unwrap().consistent);
    assert_eq!(tpcc::cleanup(&target).unwrap().len(), 18);
    assert!(tpcc::tables_present(&target).unwrap().is_empty());
}

/// The tables as other tools make them, and in how many numbered sets (0: without a number).
const PEERS: [(&str, &str, u32); 2] = [
    ("tpcc-mysql", include_str!("fixtures/tpcc-mysql.sql"), 0),
    ("sysbench-tpcc", include_str!("fixtures/sysbench-tpcc.sql"), 1),
];

#[test]
fn a_run_and_a_check_work_on_the_tables_of_tpcc_mysql_and_of_sysbench_tpcc() {
    on_each(&[], |server| {
        prepare(server, 1, SMALL);
        for (tool, definitions, table_sets) in PEERS {
            println!("{tool}");
            on_tables_of_a_peer(server, definitions, table_sets);
        }
    });
}

/// Makes tables by another tool's definitions, fills them with rows that are there, and runs and checks on them.
fn on_tables_of_a_peer(server: &Server, definitions: &str, table_sets: u32) {
    let (own, mut session) = (server.target(), server.session());
    let target = Target { database: format!("peer{table_sets}"), ..server.target() };
    session.execute(&format!("CREATE DATABASE {}", target.database)).unwrap();
    session.use_database(&target.database).unwrap();
    let statements = definitions.split(";\n").map(str::trim).filter(|text| !text.is_empty());
    for text in statements {
        session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    session.execute("SET SESSION foreign_key_checks=0").unwrap();
    for table in TABLES {
        let name = if table_sets == 0 { table.to_owned() } else { format!("{table}1") };
        let list = format!(
            "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns WHERE table_schema = DATABASE() AND \
             table_name = '{name}'"
        );
        let columns = session.value(&list).unwrap().unwrap();
        let copy = format!("INSERT INTO {name} ({columns}) SELECT {columns} FROM {}.{table}", own.database);
        session.execute(&copy).unwrap();
    }
    let clients =
        ClientOptions { connections: 4, duration: None, events: Some(400), ..ClientOptions::default() };
    for statements in [Statements::Single, Statements::Batched] {
        let clients = clients.clone();
        let options =
            TpccOptions { warehouses: 1, table_sets, clients, statements, ..TpccOptions::default() };
        let report = tpcc::run(&target, &options, &Cancel::default(), &mut |_| ()).unwrap();
        assert_eq!(report.outcome.ended, Ended::Events, "{:?}", report.outcome.errors);
        assert_eq!(report.tables.c_last, None, "another tool does not keep it");
        assert!(report.by_transaction.iter().all(|of| of.response.count > 0), "{report:?}");
    }
    let check = || {
        let options = CheckOptions { warehouses: Some(1), table_sets, threads: 2 };
        tpcc::check(&target, options, &Cancel::default(), &|_, _| ()).unwrap()
    };
    assert!(check().consistent, "{:?}", check());
    let warehouse = if table_sets == 0 { "warehouse" } else { "warehouse1" };
    session.execute(&format!("UPDATE {warehouse} SET w_ytd = w_ytd + 1")).unwrap();
    assert_eq!(broken(&check()), [1, 8], "the check looks at these tables");
}

#[test]
fn every_acknowledged_transaction_is_in_the_ledger_and_in_the_server() {
    let Some(server) = Server::start() else { return };
    for statements in [Statements::Single, Statements::Batched] {
        ledger_of(&server, statements);
    }
}

fn ledger_of(server: &Server, statements: Statements) {
    prepare(server, 2, SMALL);
    let path = server.path(&format!("tpcc-{statements:?}"));
    let options = TpccOptions {
        warehouses: 2,
        statements,
        clients: ClientOptions {
            connections: 5,
            duration: None,
            events: Some(400),
            ..ClientOptions::default()
        },
        ledger: Some(LedgerOptions { path: path.clone(), marks: true }),
        ..TpccOptions::default()
    };
    let report = run(server, &options);
    assert_eq!(report.outcome.ended, Ended::Events, "{:?}", report.outcome.errors);
    let ledger = Ledger::read(&path).unwrap();
    let rolled_back: u64 = report.by_transaction.iter().map(|of| of.rolled_back).sum();
    assert_eq!(report.ledger_records, 400 - rolled_back, "a rollback is no commit");
    assert_eq!(ledger.commits.len() as u64, report.ledger_records);
    let mut session = server.session();
    assert_eq!(ledger.lost(&mut session).unwrap(), []);
    session.execute("UPDATE ebbtide_ledger SET seq = seq - 2 WHERE client = 3").unwrap();
    let lost = ledger.lost(&mut session).unwrap();
    assert_eq!((lost.len(), lost[0].client, lost[0].acknowledged), (1, 3, lost[0].recovered + 2));
    let sets = TpccOptions { table_sets: 2, ..options };
    let refused = tpcc::run(&server.target(), &sets, &Cancel::default(), &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("--table-sets"), "{refused}");
    let dropped = tpcc::cleanup(&server.target()).unwrap();
    assert_eq!((dropped.len(), dropped.last().unwrap().as_str()), (10, "ebbtide_ledger"));
}

#[test]
fn users_who_key_and_think_make_no_more_transactions_than_the_specification_allows() {
    let Some(server) = Server::start() else { return };
    prepare(&server, 2, SMALL);
    let options = TpccOptions {
        warehouses: 2,
        wait: WaitMode::Spec,
        clients: ClientOptions {
            connections: 20,
            duration: Some(Duration::from_secs(8)),
            ..ClientOptions::default()
        },
        ..TpccOptions::default()
    };
    let report = run(&server, &options);
    assert_eq!(report.outcome.ended, Ended::Time, "{:?}", report.outcome.errors);
    // The first transactions come after two seconds of keying, the orders after 18.
    assert!(report.outcome.totals.events < 20, "{:?}", report.outcome.totals);
    assert!(report.by_transaction[0].response.count == 0 && report.by_transaction[0].within_limit.is_none());
    assert!(report.ceiling_pct < 100.0);
}

#[test]
fn one_warehouse_of_full_size_has_the_rows_of_the_specification_and_is_consistent() {
    let Some(server) = Server::start_with(&["--innodb-buffer-pool-size=256M"]) else { return };
    prepare(&server, 1, Scale::default());
    let mut session = server.session();
    for (table, rows) in [
        ("warehouse", 1),
        ("district", 10),
        ("customer", 30_000),
        ("history", 30_000),
        ("new_orders", 9_000),
        ("orders", 30_000),
        ("item", 100_000),
        ("stock", 100_000),
    ] {
        assert_eq!(number(&mut session, &format!("SELECT COUNT(*) FROM {table}")), rows, "{table}");
    }
    let lines = number(&mut session, "SELECT COUNT(*) FROM order_line");
    assert!((298_000..302_000).contains(&lines), "{lines}");
    let indexes = "SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics WHERE table_schema = DATABASE() \
                   AND index_name IN ('idx_customer', 'idx_orders', 'fkey_stock_2', 'fkey_order_line_2')";
    assert_eq!(number(&mut session, indexes), 4);
    let keys = "SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()";
    assert_eq!(number(&mut session, keys), 10);
    let options = TpccOptions {
        clients: ClientOptions {
            connections: 4,
            duration: Some(Duration::from_secs(3)),
            ..ClientOptions::default()
        },
        ..TpccOptions::default()
    };
    let report = run(&server, &options);
    assert_eq!(report.outcome.ended, Ended::Time, "{:?}", report.outcome.errors);
    // Deliveries have ten times the statements of others: few transactions leave the mean uncertain.
    let transactions = report.outcome.totals.events as f64;
    let mean = report.statements_per_transaction;
    assert!((mean - 35.0).abs() < 2.0 + 100.0 / transactions.sqrt(), "{mean} in {transactions}");
    assert!(report.outcome.samples.len() >= 3);
    let found = check(&server);
    assert!(found.consistent, "{found:?}");
}

/// Runs a load with marks for a while, and answers with what its clients knew at its end.
fn run_marked(server: &Server, statements: Statements) -> Vec<Expected> {
    let running = tpcc::start(&MarkedOptions {
        target: server.target(),
        clients: 4,
        seed: 3,
        isolation: Isolation::RepeatableRead,
        wait: WaitMode::None,
        statements,
        grace: Duration::from_secs(10),
    });
    let running = running.unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let journal = running.journal().clone();
    let report = running.stop();
    assert!(report.ended.is_empty(), "{report:?}");
    journal.at(Instant::now()).unwrap()
}

#[test]
fn marks_say_which_acknowledged_transactions_are_gone_and_conditions_whether_the_rest_is_whole() {
    let Some(server) = Server::start() else { return };
    let options =
        TpccPrepareOptions { warehouses: 2, scale: SMALL, marks: 4, ..TpccPrepareOptions::default() };
    tpcc::prepare(&server.target(), &options, &Cancel::default(), &mut |_| ()).unwrap();
    let judged = |expected: &[Expected]| -> Findings {
        tpcc::check_marked(&server.target(), expected, &Cancel::default()).unwrap()
    };
    let first = run_marked(&server, Statements::Single);
    let clean = judged(&first);
    assert!(clean.is_clean() && clean.recovered.len() == 4, "{clean:?}");
    let expected = run_marked(&server, Statements::Batched);
    for (before, after) in first.iter().zip(&expected) {
        assert!(0 < before.acknowledged && before.acknowledged < after.acknowledged, "{before:?} {after:?}");
        assert_eq!(after.acknowledged, after.sent, "every transaction was waited for");
    }
    assert!(judged(&expected).is_clean(), "it went on after its marks");
    let mut session = server.session();
    let mut with = |breaks: &str, mends: &str| {
        assert_eq!(session.execute(breaks).unwrap(), 1, "{breaks}");
        let found = judged(&expected);
        assert_eq!(session.execute(mends).unwrap(), 1, "{mends}");
        found
    };
    let mark = |by: &str| format!("UPDATE ebbtide_ledger SET seq = seq {by} WHERE client = 1");
    let lost = with(&mark("- 2"), &mark("+ 2"));
    assert_eq!((lost.rules(), lost.lost_commits()), (vec![Rule::LostCommits], 2), "{lost:?}");
    let phantom = with(&mark("+ 1"), &mark("- 1"));
    assert_eq!(phantom.rules(), [Rule::Phantom], "{phantom:?}");
    let ytd = |by: &str| format!("UPDATE warehouse SET w_ytd = w_ytd {by} WHERE w_id = 2");
    let partial = with(&ytd("+ 1"), &ytd("- 1"));
    assert!(
        partial.rules() == [Rule::Consistency] && partial.shows(Evidence::PhantomOrPartial),
        "{partial:?}"
    );
    assert!(partial.findings[0].subject.starts_with("condition 1 of clause 3.3.2"), "{partial:?}");
    assert!(partial.findings[0].rows[0].starts_with("w_id 2: w_ytd is "), "{partial:?}");
    assert!(judged(&expected).is_clean());
}
