//! Bytes that statements of sysbench's scripts and TPC-C's transactions add to the redo log and the binary log of real servers.
//!
//! The table of `ebbtide_workload::log_bytes` is of this bench. Each case is executed alone, by 8 connections in a closed loop,
//! with both logs synced at each commit and whole row images in the binary log. Printed is what a transaction adds: to the log
//! sequence number, which counts the records of redo, to `Innodb_os_log_written`, which is what the server wrote, and to the
//! binary log. Redo is read once purge has ended, so that its records count too. A statement is measured once and ten times in a
//! transaction, which tells what the statement adds and what the transaction does.
//!
//! Before, each index is changed until its pages are no longer as full as they were loaded: splitting them is most of the redo of
//! the first changes, and little of that of a server that has run for hours.
//!
//! `--only WORD,WORD`: the servers whose names have one of the words. `--part statements|scripts|tpcc`: that alone. `--dir DIR` has the
//! data (default /var/tmp). In /dev/shm a sync takes no time, so that fewer commits share a write of the log: MySQL, which writes
//! blocks of 512 bytes, then has more written, and the same LSN. A tiny run (`BENCH_TINY=1`) takes one server and a few
//! transactions.
#![allow(clippy::unwrap_used)] // a bench fails by a panic

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use ebbtide_load::tpcc::TpccPrepareOptions;
use ebbtide_load::{
    Cancel, ClientOptions, Execution, Loading, Mix, RowLengths, RunOptions, Schema, Session, Workload,
    execute, load,
};
use ebbtide_mysql::{Binary, Layout, Server, ServerPlan, Settings, WorkPaths, initialize};
use ebbtide_testing::tiny;
use ebbtide_workload::tpcc::{Constants, Tpcc};
use ebbtide_workload::{Description, Distribution, Program};

/// The servers, and what `Binary::detect` calls them.
const SERVERS: [(&str, &str); 4] = [
    ("mariadb-10.11", "system"),
    ("mariadb-11.8", "mariadb-11.8"),
    ("mysql-8.0", "mysql-8.0"),
    ("mysql-9.7", "mysql-9.7"),
];
const SETTINGS: [(&str, &str); 7] = [
    ("log_bin", "on"),
    ("sync_binlog", "1"),
    ("flush_log_at_trx_commit", "1"),
    ("binlog_format", "ROW"),
    ("binlog_row_image", "FULL"),
    ("buffer_pool_size", "512MiB"),
    ("redo_capacity", "1GiB"),
];
const CONNECTIONS: u32 = 8;
const TABLES: u32 = 4;
const ROWS: u32 = 25_000;
/// Statements that are measured: index updates, other updates, pairs of a delete and an insert.
const STATEMENTS: [(&str, [u32; 3]); 3] =
    [("UPDATE of k", [1, 0, 0]), ("UPDATE of c", [0, 1, 0]), ("DELETE and INSERT", [0, 0, 1])];
/// Times that a statement is in a transaction.
const REPEATS: u32 = 10;

/// Bytes so far.
#[derive(Debug, Clone, Copy)]
struct Logs {
    /// The log sequence number.
    lsn: f64,
    /// `Innodb_os_log_written`.
    written: f64,
    binlog: f64,
}

impl Logs {
    fn read(session: &mut Session) -> Self {
        let status = session.rows("SHOW ENGINE INNODB STATUS").unwrap();
        let text = status[0].last().unwrap().clone().unwrap();
        let number = text.lines().find_map(|line| line.trim().strip_prefix("Log sequence number")).unwrap();
        let written = session.rows("SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'").unwrap();
        let files = session.rows("SHOW BINARY LOGS").unwrap();
        let size = |row: &Vec<Option<String>>| row[1].as_ref().unwrap().parse::<f64>().unwrap();
        Self {
            lsn: number.trim().parse().unwrap(),
            written: written[0][1].as_ref().unwrap().parse().unwrap(),
            binlog: files.iter().map(size).sum(),
        }
    }

    /// What was added for each of so many.
    fn each(self, before: Self, count: f64) -> Self {
        Self {
            lsn: (self.lsn - before.lsn) / count,
            written: (self.written - before.written) / count,
            binlog: (self.binlog - before.binlog) / count,
        }
    }
}

/// Waits until purge has removed what it can.
fn wait_for_purge(session: &mut Session, is_mariadb: bool) {
    let query = if is_mariadb {
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'INNODB_HISTORY_LIST_LENGTH'"
    } else {
        "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"
    };
    let (mut least, mut unchanged) = (u64::MAX, 0);
    while unchanged < 8 {
        let length: u64 = session.value(query).unwrap().unwrap().parse().unwrap();
        if length < least {
            (least, unchanged) = (length, 0);
        } else {
            unchanged += 1;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// A server that runs.
struct Bench {
    server: Server,
    is_mariadb: bool,
    seed: u64,
}

impl Bench {
    fn start(binary: Binary, dir: &Path) -> Self {
        let is_mariadb = binary.is_mariadb();
        let data = dir.join("data");
        std::fs::create_dir(&data).unwrap();
        let work = WorkPaths { dir: dir.join("w"), records: dir.join("records") };
        let mut settings = Settings::new();
        SETTINGS.iter().for_each(|(name, value)| settings.set(name, value).unwrap());
        let plan = ServerPlan { settings, ..ServerPlan::new(binary, Layout::single(data), work) };
        initialize(&plan, &|_| {}).unwrap();
        Self { server: Server::start(&plan, &|_| {}).unwrap(), is_mariadb, seed: 1 }
    }

    fn session(&self) -> Session {
        self.server.session().unwrap()
    }

    fn load(&self, description: &Description) {
        self.session().execute(&format!("DROP DATABASE IF EXISTS {}", ebbtide_load::DATABASE)).unwrap();
        let loading = Loading { seed: 1, connections: 2 };
        load(&self.server.target(), description, loading, &Cancel::default(), &mut |_| {}).unwrap();
    }

    /// Executes transactions: what each committed one adds to the logs.
    fn measure(&mut self, description: Description, transactions: u64) -> Logs {
        self.seed += 1;
        let program = Program::new(description).unwrap();
        let execution = Execution {
            seed: self.seed,
            connections: CONNECTIONS,
            events: Some(transactions),
            ..Execution::default()
        };
        let mut session = self.session();
        wait_for_purge(&mut session, self.is_mariadb);
        let before = Logs::read(&mut session);
        let target = self.server.target();
        let outcome = execute(&target, &program, &execution, &Cancel::default(), &(), &mut |_| {}).unwrap();
        wait_for_purge(&mut session, self.is_mariadb);
        // A transaction that only reads answers without a commit.
        let count = outcome.commits.max(outcome.totals.events);
        Logs::read(&mut session).each(before, count as f64)
    }

    /// Changes every row and index entry about twice, without waiting for the disk.
    fn warm_up(&mut self, lengths: RowLengths, transactions: u64) {
        let wait = |session: &mut Session, value: u32| {
            for name in ["innodb_flush_log_at_trx_commit", "sync_binlog"] {
                session.execute(&format!("SET GLOBAL {name} = {value}")).unwrap();
            }
        };
        let mut session = self.session();
        wait(&mut session, 0);
        let mix = Mix { index_updates: REPEATS, delete_inserts: REPEATS / 2, ..Mix::default() };
        self.sysbench(Workload::WriteOnly, lengths, mix, transactions * 2);
        wait(&mut session, 1);
    }

    fn sysbench(&mut self, workload: Workload, lengths: RowLengths, mix: Mix, transactions: u64) -> Logs {
        let options = options(workload, lengths, mix);
        self.measure(options.sysbench().describe(), transactions)
    }
}

fn options(workload: Workload, lengths: RowLengths, mix: Mix) -> RunOptions {
    let lengths = (lengths != RowLengths::SYSBENCH).then_some(lengths);
    let schema = Schema { tables: TABLES, table_size: ROWS, lengths, ..Schema::default() };
    // `bulk_insert` has a table for each.
    let clients = ClientOptions { connections: CONNECTIONS, ..ClientOptions::default() };
    RunOptions { schema, mix, distribution: Distribution::Uniform, clients, ..RunOptions::new(workload) }
}

fn row(what: &str, logs: Logs) {
    println!("{what:<46} {:>9.0} {:>9.0} {:>9.0}", logs.lsn, logs.written, logs.binlog);
}

/// The statements of sysbench's scripts that write, by the length of their texts.
fn statements(bench: &mut Bench, transactions: u64) {
    let all_lengths = [RowLengths { c: 30, pad: 30 }, RowLengths::SYSBENCH, RowLengths { c: 600, pad: 300 }];
    for lengths in all_lengths {
        bench.load(&options(Workload::ReadWrite, lengths, Mix::default()).sysbench().describe());
        bench.warm_up(lengths, transactions);
        let RowLengths { c, pad } = lengths;
        for (name, [index_updates, non_index_updates, delete_inserts]) in STATEMENTS {
            let mix = |times: u32| Mix {
                index_updates: times * index_updates,
                non_index_updates: times * non_index_updates,
                delete_inserts: times * delete_inserts,
                ..Mix::default()
            };
            let once = bench.sysbench(Workload::WriteOnly, lengths, mix(1), transactions);
            let ten = transactions.div_ceil(u64::from(REPEATS / 2));
            let ten = bench.sysbench(Workload::WriteOnly, lengths, mix(REPEATS), ten);
            row(&format!("{name}, c {c}, pad {pad}"), once);
            row(&format!("{REPEATS} times {name}, c {c}, pad {pad}"), ten);
        }
    }
}

/// sysbench's scripts that write.
fn scripts(bench: &mut Bench, transactions: u64) {
    let usual = RowLengths::SYSBENCH;
    for workload in [
        Workload::UpdateIndex,
        Workload::UpdateNonIndex,
        Workload::Delete,
        Workload::Insert,
        Workload::WriteOnly,
    ] {
        bench.load(&options(workload, usual, Mix::default()).sysbench().describe());
        bench.warm_up(usual, transactions);
        let logs = bench.sysbench(workload, usual, Mix::default(), transactions);
        row(workload.name(), logs);
    }
    let bulk = options(Workload::BulkInsert, usual, Mix::default());
    let description = bulk.sysbench().describe();
    bench.load(&description);
    row("bulk_insert, a row", bench.measure(description, transactions * 20));
}

/// The transactions of TPC-C.
fn tpcc(bench: &mut Bench, transactions: u64) {
    let prepare = TpccPrepareOptions { threads: 2, ..TpccPrepareOptions::new() };
    bench.load(&prepare.tpcc().describe());
    let tpcc = Tpcc { constants: Constants::of_run(1, None), ..prepare.tpcc() };
    // New orders are delivered later: they come first.
    for (name, count) in [
        ("new_order", transactions),
        ("payment", transactions),
        ("delivery", transactions / 20),
        ("order_status", transactions),
        ("stock_level", transactions / 4),
    ] {
        let mut description = tpcc.describe();
        description.transactions.retain(|transaction| transaction.name == name);
        assert_eq!(description.transactions.len(), 1, "{name} is not a transaction of TPC-C");
        row(&format!("TPC-C {name}"), bench.measure(description, count.max(20)));
    }
}

/// A part of the bench: measures so many transactions of each kind.
type Part = fn(&mut Bench, u64);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let option =
        |name: &str| words.iter().position(|word| word == name).and_then(|place| words.get(place + 1));
    let (only, part) = (option("--only"), option("--part"));
    let base = option("--dir").map_or("/var/tmp", String::as_str);
    let is_wanted = |name: &str| only.is_none_or(|words| words.split(',').any(|word| name.contains(word)));
    let transactions = if tiny() { 40 } else { 8_000 };
    let mut measured = 0;
    for (name, detect) in SERVERS.into_iter().filter(|(name, _)| is_wanted(name)) {
        let path = (detect != "system").then(|| Path::new(detect));
        let binary = match Binary::detect(path) {
            Ok(binary) => binary,
            Err(error) => {
                println!("SKIPPED: the server {name}, which `./dev servers` fetches ({error})");
                continue;
            }
        };
        println!("{name} ({}), seed 1, {CONNECTIONS} connections", binary.version);
        println!("{:<46} {:>9} {:>9} {:>9}", "bytes of a transaction", "redo LSN", "written", "binlog");
        let dir = tempfile::Builder::new().prefix("ebbtide-lb-").tempdir_in(base).unwrap();
        // The server's user passes through it.
        let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o711);
        std::fs::set_permissions(dir.path(), open).unwrap();
        let mut bench = Bench::start(binary, dir.path());
        let parts: [(&str, Part); 3] = [("statements", statements), ("scripts", scripts), ("tpcc", tpcc)];
        for (_, measure) in parts.into_iter().filter(|(name, _)| part.is_none_or(|part| part == name)) {
            measure(&mut bench, transactions);
        }
        bench.server.stop(Duration::from_secs(120)).unwrap();
        measured += 1;
        if tiny() {
            break;
        }
    }
    ExitCode::from(if measured == 0 { 3 } else { 0 })
}
