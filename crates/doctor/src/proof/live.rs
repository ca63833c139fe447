//! The load of a proof against the workload that it stands for, both on a real server.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ebbtide_advisor::{Finding, judge};
use ebbtide_catalog::Catalog;
use ebbtide_lab::experiment::{self, Overrides};
use ebbtide_load::{
    Cancel, ClientOptions, PrepareOptions, RowLengths, RunOptions, Session, Workload, prepare, run,
};
use ebbtide_mysql::status::Observer;
use ebbtide_mysql::{Binary, Layout, Server, ServerPlan, Settings, WorkPaths, initialize};
use ebbtide_observe::Observation;

use super::file::Scale;
use super::proposal::propose;

/// How far redo and binary log of a transaction may be from the observed ones, as a factor.
const NEAR: f64 = 1.5;
/// Rows of the table of the workload that is observed, and of each of the lab's.
const ROWS: u32 = 10_000;
const CLIENTS: u32 = 4;
const LOOK: Duration = Duration::from_secs(3);

/// What a server shows while so many threads work on it.
fn observed(server: &Server, threads: u32, work: impl Fn(&AtomicBool) + Sync) -> Observation {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(&done))).collect();
        std::thread::sleep(Duration::from_millis(500));
        let mut observer = Observer::open(server.session().unwrap(), "a test".into()).unwrap();
        observer.survey(LOOK).unwrap();
        let seen = observer.watch(LOOK, |_| true).unwrap().unwrap();
        done.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        seen
    })
}

/// Makes a table of orders with a note of so many characters.
fn make_orders(session: &mut Session, note: u32) {
    for sql in [
        "DROP DATABASE IF EXISTS shop".to_owned(),
        "CREATE DATABASE shop".to_owned(),
        format!(
            "CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, note VARCHAR({note}) NOT NULL, \
             KEY (customer)) ENGINE = InnoDB CHARACTER SET latin1"
        ),
        format!(
            "INSERT INTO shop.orders (customer, note) SELECT seq, REPEAT(CHAR(65 + seq % 26), {note}) FROM shop.seq_1_to_{ROWS}"
        ),
        "ANALYZE TABLE shop.orders".to_owned(),
    ] {
        session.execute(&sql).unwrap();
    }
}

/// Changes two notes, moves an order to another customer, and replaces an order, again and again.
fn trade(server: &Server, note: u32, done: &AtomicBool) {
    let mut session = server.session().unwrap();
    let id = format!("1 + FLOOR(RAND() * {ROWS})");
    let text = format!("REPEAT(CHAR(65 + FLOOR(RAND() * 26)), {note})");
    session.execute("SET @id = 0").unwrap();
    while !done.load(Ordering::Relaxed) {
        let mut send = |sql: &str| session.execute(sql).map(drop);
        let mut all = || {
            send("BEGIN")?;
            for _ in 0..2 {
                send(&format!("SET @id = {id}"))?;
                send(&format!("UPDATE shop.orders SET note = {text} WHERE id = @id"))?;
            }
            send(&format!("SET @id = {id}"))?;
            send("UPDATE shop.orders SET customer = customer + 1 WHERE id = @id")?;
            send(&format!("SET @id = {id}"))?;
            send("DELETE FROM shop.orders WHERE id = @id")?;
            send(&format!("INSERT INTO shop.orders VALUES (@id, @id, {text})"))?;
            for _ in 0..4 {
                send("SELECT note FROM shop.orders WHERE id = @id")?;
            }
            send("COMMIT")
        };
        // A deadlock has undone all of it.
        let _ = all();
    }
}

/// Waits until purge has come to its end.
fn wait_for_purge(session: &mut Session) {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        let rows = session.rows("SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'").unwrap();
        if rows[0][1].as_deref().unwrap().parse::<u32>().unwrap() < 100 {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What the server shows under the load of the proposal for an observation, at the lengths that it has or at others.
fn under_load(
    server: &Server,
    binary: &Binary,
    seen: &Observation,
    other: Option<RowLengths>,
) -> (Observation, RowLengths) {
    let findings = judge(seen, &Catalog::builtin());
    let sync: Vec<&Finding> = findings.iter().filter(|finding| finding.code == "D03").collect();
    let proposal = propose(seen, &sync, &Catalog::builtin(), binary, Scale::QUICK).unwrap();
    let overrides = Overrides { seed: Some(7), ..Overrides::default() };
    let mut planned = experiment::parse("t", "t", &proposal.text, &overrides).unwrap();
    planned.data.rows = ROWS;
    planned.data.lengths = other.or(planned.data.lengths);
    let (arm, schema) = (&planned.arms[0], planned.data.schema());
    let mut session = server.session().unwrap();
    let target = server.target();
    session.execute(&format!("DROP DATABASE IF EXISTS {}", target.database)).unwrap();
    let options = PrepareOptions {
        workload: None,
        schema: schema.clone(),
        distribution: arm.load.distribution,
        seed: 7,
        threads: 2,
    };
    prepare(&target, &options, &Cancel::default(), &mut |_| {}).unwrap();
    session.use_database(&target.database).unwrap();
    for sql in arm.ageing(planned.data) {
        session.execute(&sql).unwrap();
    }
    wait_for_purge(&mut session);
    let time = Some(LOOK + Duration::from_secs(2));
    let options = RunOptions {
        schema,
        mix: arm.load.mix.clone(),
        distribution: arm.load.distribution,
        clients: ClientOptions { connections: CLIENTS, duration: time, ..ClientOptions::default() },
        ..RunOptions::new(Workload::ReadWrite)
    };
    let work = |_: &AtomicBool| drop(run(&target, &options, &Cancel::default(), &mut |_| {}).unwrap());
    (observed(server, 1, work), planned.data.lengths.unwrap_or(RowLengths::SYSBENCH))
}

/// Redo and binary log of a transaction, bytes.
fn logs(seen: &Observation) -> [f64; 2] {
    let rates = seen.rates.unwrap();
    let (tps, _) = rates.transactions().unwrap();
    [rates.redo_bytes, rates.binlog_bytes].map(|bytes| bytes.unwrap() / tps)
}

/// How far one is from the other, as a factor of 1 or more.
fn apart(one: f64, other: f64) -> f64 {
    (one / other).max(other / one)
}

#[test]
fn the_load_writes_about_as_much_redo_and_binary_log_as_a_workload_of_short_and_of_long_rows() {
    let Ok(binary) = Binary::detect(None) else { return println!("SKIPPED: no server program") };
    if binary.flavour != ebbtide_mysql::Flavour::MariaDb {
        return println!("SKIPPED: the server is no MariaDB");
    }
    let dir = tempfile::Builder::new().prefix("ebbtide-proof-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let work = WorkPaths { dir: dir.path().join("w"), records: dir.path().join("records") };
    let mut plan = ServerPlan::new(binary.clone(), Layout::single(dir.path().join("data")), work);
    let settings = [
        ("buffer_pool_size", "128MiB"),
        ("redo_capacity", "128MiB"),
        ("log_bin", "on"),
        ("binlog_format", "ROW"),
    ];
    plan.settings = Settings::new();
    settings.iter().for_each(|(name, value)| plan.settings.set(name, value).unwrap());
    initialize(&plan, &|_| {}).unwrap();
    let server = Server::start(&plan, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    let mut session = server.session().unwrap();
    let mut unfitted: f64 = 1.0;
    for note in [40, 1_000] {
        // The lab's tables would be in the mean length of a row.
        session.execute(&format!("DROP DATABASE IF EXISTS {}", server.target().database)).unwrap();
        make_orders(&mut session, note);
        let seen = observed(&server, CLIENTS, |done| trade(&server, note, done));
        let seen = Observation { volume: Some("gp3:size=20GiB".into()), ..seen };
        let row = seen.tables.as_ref().unwrap().rows.unwrap().row_bytes();
        assert!(row > f64::from(note), "{row} bytes of a row with a note of {note}");
        session.execute("DROP DATABASE shop").unwrap();
        let (lab, lengths) = under_load(&server, &binary, &seen, None);
        let (wanted, is) = (logs(&seen), logs(&lab));
        println!(
            "note {note}: {lengths:?}, rows of {row:.0} bytes; redo and binary log {wanted:.0?}, in the lab {is:.0?}"
        );
        for at in 0..2 {
            assert!(
                apart(wanted[at], is[at]) < NEAR,
                "{wanted:?} observed, {is:?} in the lab, with {lengths:?}"
            );
        }
        // Both by InnoDB's statistics, which count what a small table has reserved.
        let lab_row = lab.tables.unwrap().rows.unwrap().row_bytes();
        assert!(apart(lab_row, row) < 2.0, "{lab_row} bytes of a row of {lengths:?}, {row} observed");
        let (usual, _) = under_load(&server, &binary, &seen, Some(RowLengths::SYSBENCH));
        let usual = logs(&usual);
        println!("note {note}: with sysbench's rows {usual:.0?}");
        unfitted = unfitted.max(apart(wanted[0], usual[0]));
    }
    assert!(unfitted > NEAR, "sysbench's rows would do: {unfitted}");
    server.kill().unwrap();
}
