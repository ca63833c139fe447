//! What a look costs the server: time, processor time, tables that are not counted, and nothing that is written.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::EBBTIDE;
use crate::servers::{Mounted, Program, Running};
use crate::situations::good;

/// What is promised: own time besides the interval, s, and the server's share of a core.
const OWN_S: f64 = 2.0;
const SHARE: f64 = 0.01;
const INTERVAL_S: f64 = 10.0;
/// Looks at each server and number of tables; odd, for a median.
const LOOKS: usize = 3;
/// How long a server is waited for that has made tables: windows of so many seconds, at most.
const REST_S: f64 = 5.0;
const REST_WINDOWS: u32 = 24;
/// Of 2,000 tables a look of 10 s asks for the sizes, and of more it does not. The first number is a little below that, because a
/// server has tables of its own.
const TABLES: [usize; 2] = [1_900, 20_000];

/// Measures on each server, prints, and says whether the promises are kept.
pub(crate) fn measure(programs: &[Program], dir: &Path) -> bool {
    println!(
        "\nWhat a look of {INTERVAL_S:.0} s costs (promised: {OWN_S} s besides the interval, {:.0}% of a core, no write)",
        SHARE * 100.0
    );
    let mut kept = true;
    for program in programs {
        let place = Mounted::make(dir, "cost", 8192, "noatime");
        let mut options = good(program.name);
        options.insert("innodb-flush-log-at-trx-commit".into(), "0".into());
        options.insert("general-log-file".into(), dir.join("w/general.log").to_string_lossy().into_owned());
        options.insert("log-output".into(), "FILE".into());
        options.insert("table-definition-cache".into(), "2000".into());
        let running = Running::start(program, &place.point().join("data"), &dir.join("w"), &options);
        let Ok(running) = running.inspect_err(|why| println!("{why}")) else { return false };
        kept &= look(program.name, "few tables", &running);
        kept &= writes_nothing(program.name, &running, dir);
        let mut made = 0;
        for tables in TABLES {
            let began = Instant::now();
            fill(&running, made..tables);
            made = tables;
            println!("{:<14} made {tables} tables in {:.0} s", program.name, began.elapsed().as_secs_f64());
            rest(&running);
            kept &= look(program.name, &format!("{tables} tables"), &running);
        }
    }
    kept
}

fn doctor(running: &Running, seconds: f64) -> (f64, serde_json::Value) {
    let socket = format!("--mysql-socket={}", running.socket.display());
    let interval = format!("--interval={seconds}s");
    let began = Instant::now();
    let out = Command::new(EBBTIDE)
        .args(["doctor", &socket, "--mysql-user=root", &interval, "--json"])
        .env("EBBTIDE_HOME", "/nonexistent")
        .output()
        .unwrap();
    let taken = began.elapsed().as_secs_f64() - seconds;
    (taken, serde_json::from_slice(&out.stdout).unwrap_or_default())
}

/// Looks in turns with idle time: a server does things of its own, so the median of three looks is judged.
fn look(server: &str, what: &str, running: &Running) -> bool {
    let share_in = |do_it: &mut dyn FnMut()| {
        let (before, begun) = (running.cpu_s(), Instant::now());
        do_it();
        (running.cpu_s() - before) / begun.elapsed().as_secs_f64()
    };
    let (mut idle, mut shares, mut own, mut skipped) = (Vec::new(), Vec::new(), Vec::new(), false);
    for _ in 0..LOOKS {
        let wait = &mut || std::thread::sleep(std::time::Duration::from_secs_f64(INTERVAL_S));
        idle.push(share_in(wait));
        shares.push(share_in(&mut || {
            let (taken, answer) = doctor(running, INTERVAL_S);
            own.push(taken);
            skipped |= answer["not_seen"].to_string().contains("are not counted");
        }));
    }
    let above: Vec<f64> = shares.iter().zip(&idle).map(|(share, idle)| share - idle).collect();
    let kept = middle(&own) < OWN_S && middle(&above) < SHARE;
    let percent = |of: &[f64]| {
        let all: Vec<String> = sorted(of).iter().map(|share| format!("{:.2}", share * 100.0)).collect();
        format!("{:.2}% of a core ({})", middle(of) * 100.0, all.join(", "))
    };
    println!(
        "{server:<14} {what:<14} {:.2} s besides the interval; the server used {} above idle, {} when idle{}{}",
        middle(&own),
        percent(&above),
        percent(&idle),
        if skipped { "; sizes of tables were skipped, with a note" } else { "" },
        if kept { "" } else { "  NOT KEPT" }
    );
    kept
}

/// Waits until the server has done what is left of the work before: three windows in a row with less than the promised share.
fn rest(running: &Running) {
    let mut calm = 0;
    for _ in 0..REST_WINDOWS {
        let before = running.cpu_s();
        std::thread::sleep(std::time::Duration::from_secs_f64(REST_S));
        calm = if running.cpu_s() - before < SHARE * REST_S { calm + 1 } else { 0 };
        if calm == 3 {
            return;
        }
    }
    println!("the server was not idle after {:.0} s", f64::from(REST_WINDOWS) * REST_S);
}

fn sorted(of: &[f64]) -> Vec<f64> {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(of: &[f64]) -> f64 {
    sorted(of)[of.len() / 2]
}

/// Makes the tables of these numbers.
fn fill(running: &Running, tables: std::ops::Range<usize>) {
    let mut session = running.session();
    session.execute("SET SESSION sql_log_bin = 0").unwrap();
    for number in tables {
        session.execute(&format!("CREATE DATABASE IF NOT EXISTS many{}", number / 1_000)).unwrap();
        session
            .execute(&format!("CREATE TABLE many{}.t{number} (a INT PRIMARY KEY)", number / 1_000))
            .unwrap();
    }
}

/// Variables, and counters of statements that change something.
fn state(running: &Running) -> BTreeMap<String, String> {
    let mut session = running.session();
    let mut rows = session.rows("SHOW GLOBAL VARIABLES").unwrap();
    rows.extend(session.rows("SHOW GLOBAL STATUS LIKE 'Com\\_%'").unwrap());
    rows.extend(session.rows("SHOW GLOBAL STATUS LIKE 'Innodb\\_rows\\_%'").unwrap());
    let reads = [
        "com_select",
        "com_show",
        // How long the session waits for a lock.
        "com_set_option",
        "com_do",
        "com_stmt",
        "innodb_rows_read",
        "timestamp",
        "gtid_",
    ];
    let pairs = rows.into_iter().filter_map(|row| Some((row[0].as_ref()?.to_lowercase(), row[1].clone()?)));
    pairs.filter(|(name, _)| !reads.iter().any(|read| name.starts_with(read))).collect()
}

/// Whether a look leaves variables and counters as they were, and sends statements that read alone.
fn writes_nothing(server: &str, running: &Running, dir: &Path) -> bool {
    let mut session = running.session();
    session.execute("SET GLOBAL general_log = ON").unwrap();
    let before = state(running);
    let _ = doctor(running, 1.0);
    let after = state(running);
    session.execute("SET GLOBAL general_log = OFF").unwrap();
    let changed: Vec<&String> = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(*value))
        .map(|(name, _)| name)
        .collect();
    let log = std::fs::read_to_string(dir.join("w/general.log")).unwrap_or_default();
    let sent: Vec<&str> = log
        .lines()
        .filter_map(|line| ["Query\t", "Execute\t"].iter().find_map(|kind| Some(line.split_once(kind)?.1)))
        .collect();
    let reads =
        ["SELECT ", "SHOW ", "DO 1", "SET NAMES", "SET SESSION lock_wait_timeout", "SET GLOBAL general_log"];
    let others: Vec<&&str> =
        sent.iter().filter(|sql| !reads.iter().any(|read| sql.trim_start().starts_with(read))).collect();
    let kept = changed.is_empty() && others.is_empty() && sent.len() > 5;
    println!(
        "{server:<14} {} statements in the general log, {} that do not read; variables and counters that changed: {}{}",
        sent.len(),
        others.len(),
        if changed.is_empty() { "none".to_owned() } else { format!("{changed:?}") },
        if kept { "" } else { "  NOT KEPT" }
    );
    others.iter().take(5).for_each(|sql| println!("  {sql}"));
    kept
}
