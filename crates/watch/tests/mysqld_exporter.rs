//! What is read of a real server beside mysqld_exporter (Debian's package `prometheus-mysqld-exporter`): the same names, labels and values.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test panics where something is missing")]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ebbtide_mysql::replication::{self, Position, ReplicationPart};
use ebbtide_mysql::sampling::{Reading, ServerSampler};
use ebbtide_mysql::{Binary, Layout, Server, ServerPlan, WorkPaths, initialize};
use ebbtide_watch::server::{Families, ServerLabels, ServerTrend, add_server};
use tempfile::TempDir;

const EXPORTER: &str = "prometheus-mysqld-exporter";
/// Long enough for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(180);

/// Beginnings of the names of what the exporter reports of itself as a program.
const OF_THE_PROGRAM: [&str; 4] = ["go_", "process_", "promhttp_", "mysqld_exporter_"];
/// Beginnings of the names whose values are of each program's own: how long its questions took, how many it has asked.
const OF_THE_SCRAPE: &str = "mysql_exporter_";
/// Beginnings of the names of values that go up and down at any moment, or count the connections that are there, of which each reader has its
/// own. They have to be there.
const OF_THE_MOMENT: [&str; 9] = [
    "mysql_global_status_threads_",
    "mysql_global_status_memory_used",
    "mysql_global_status_open_",
    "mysql_global_status_buffer_pool_dirty_pages",
    "mysql_global_status_innodb_buffer_pool_bytes_dirty",
    "mysql_global_status_innodb_checkpoint_age",
    "mysql_global_status_innodb_data_pending_",
    "mysql_global_status_innodb_history_list_length",
    "mysql_slave_status_seconds_behind_",
];

/// Values by their names with labels.
type Series = BTreeMap<String, f64>;

/// A directory that the servers' user may enter.
fn open_dir() -> TempDir {
    let dir = tempfile::Builder::new().prefix("ebbtide-watch-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// Brings a server up on new data.
fn start(binary: &Binary, dir: &Path, part: ReplicationPart) -> Server {
    let name = if part.replica { "replica" } else { "source" };
    let work = WorkPaths { dir: dir.join(name), records: dir.join("records") };
    let mut plan = ServerPlan::new(binary.clone(), Layout::single(dir.join(format!("{name}-data"))), work);
    plan.start_timeout = PATIENCE;
    plan.tcp = !part.replica;
    plan.part = Some(part);
    plan.settings.set("buffer_pool_size", "16MiB").unwrap();
    if !part.replica {
        plan.settings.set("log_bin", "on").unwrap();
    }
    initialize(&plan, &|_| {}).unwrap();
    Server::start(&plan, &|_| {}).unwrap_or_else(|error| panic!("{error}\n{}", error.log().join("\n")))
}

/// The exporter with its default collectors.
struct Exporter {
    child: Child,
    address: String,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Exporter {
    fn start(server: &Server, dir: &Path) -> Self {
        let target = server.target();
        let file = dir.join("exporter.cnf");
        let socket = server.socket();
        let options = format!(
            "[client]\nuser={}\npassword={}\nsocket={}\n",
            target.user,
            target.password,
            socket.display()
        );
        std::fs::write(&file, options).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let child = Command::new(EXPORTER)
            .arg(format!("--config.my-cnf={}", file.display()))
            .arg(format!("--web.listen-address={address}"))
            .env_remove("DATA_SOURCE_NAME")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let exporter = Self { child, address };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&exporter.address).is_err() {
            assert!(Instant::now() < deadline, "the exporter does not listen at {}", exporter.address);
            std::thread::sleep(Duration::from_millis(50));
        }
        exporter
    }

    fn scrape(&self) -> Series {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // Without the chunks of HTTP 1.1.
        write!(stream, "GET /metrics HTTP/1.0\r\nhost: {}\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{head}");
        series(body)
    }
}

/// The values of a text of Prometheus, by their names with labels in order.
fn series(text: &str) -> Series {
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (key(name), value.parse().unwrap())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(value).collect()
}

/// A name with its labels sorted.
fn key(text: &str) -> String {
    let Some((name, labels)) = text.split_once('{') else { return text.to_owned() };
    let mut sorted = Vec::new();
    let mut label = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for c in labels.strip_suffix('}').unwrap().chars() {
        if c == ',' && !quoted {
            sorted.push(std::mem::take(&mut label));
            continue;
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        label.push(c);
    }
    sorted.push(label);
    sorted.sort_unstable();
    format!("{name}{{{}}}", sorted.join(","))
}

/// Everything that a new sampler reads.
fn read(server: &Server) -> Series {
    let mut sampler = ServerSampler::new(server.target());
    let began = Instant::now();
    let is_complete = |reading: &Reading| {
        reading.status.is_some()
            && reading.variables.is_some()
            && reading.replica.is_some()
            && reading.page_compression.is_some()
            && reading.compressed_pool.is_some()
    };
    while !is_complete(sampler.reading()) {
        assert!(began.elapsed() < PATIENCE, "{:?}", sampler.reading());
        sampler.sample(began.elapsed()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut trend = ServerTrend::default();
    trend.observe(sampler.reading());
    let mut families = Families::default();
    add_server(&mut families, sampler.reading(), &trend, &ServerLabels::default());
    series(&families.text())
}

/// Why a value of the exporter, which was read between two of ours, is not theirs; None where it is.
fn difference(name: &str, value: f64, ours: [Option<&f64>; 2]) -> Option<String> {
    let [Some(before), Some(after)] = ours else { return Some(format!("{name} is missing")) };
    let begins = |with: &[&str]| with.iter().any(|with| name.starts_with(with));
    if name.starts_with(OF_THE_SCRAPE) || begins(&OF_THE_MOMENT) {
        return None;
    }
    // A gauge may have left the range in between, and come back; what stood still has to be equal.
    let moved = (after - before).abs();
    let slack = if moved == 0.0 { 0.0 } else { moved + 0.02 * before.abs().max(after.abs()) };
    let range = before.min(*after) - slack..=before.max(*after) + slack;
    (!range.contains(&value)).then(|| format!("{name} is {value}, and was {before} before and {after} after"))
}

/// Compares what both read of a server that is at work.
fn compare(server: &Server, dir: &Path, work: &mut impl FnMut()) -> Series {
    let exporter = Exporter::start(server, dir);
    // The first connection of the exporter loads what the server keeps of it from then on.
    exporter.scrape();
    work();
    let before = read(server);
    work();
    let theirs = exporter.scrape();
    work();
    let after = read(server);
    let compared: Vec<(&String, f64)> = theirs
        .iter()
        .filter(|(name, _)| !OF_THE_PROGRAM.iter().any(|program| name.starts_with(program)))
        .map(|(name, value)| (name, *value))
        .collect();
    assert!(compared.len() > 500, "the exporter has {} values", compared.len());
    let differences: Vec<String> = compared
        .iter()
        .filter_map(|(name, value)| difference(name, *value, [before.get(*name), after.get(*name)]))
        .collect();
    println!("{} values of the exporter, {} of ours", compared.len(), after.len());
    assert!(
        differences.is_empty(),
        "{} of {}:\n{}",
        differences.len(),
        compared.len(),
        differences.join("\n")
    );
    theirs
}

/// Whether the exporter is here; prints what is missing.
fn has_exporter() -> bool {
    let ran = Command::new(EXPORTER).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if ran.is_err() {
        println!("SKIPPED: {EXPORTER} is missing");
    }
    ran.is_ok()
}

#[test]
fn a_replica_of_mariadb_has_every_name_and_every_value_of_the_default_collectors() {
    if !has_exporter() {
        return;
    }
    let binary = match Binary::detect(None) {
        Ok(binary) if binary.is_mariadb() => binary,
        found => return println!("SKIPPED: MariaDB as the system's server ({found:?})"),
    };
    let dir = open_dir();
    let part = |server_id, replica| ReplicationPart { server_id, replica, position: Position::Gtid };
    let source = start(&binary, dir.path(), part(1, false));
    let replica = start(&binary, dir.path(), part(2, true));
    let address = replication::open(&source).unwrap();
    replication::follow(&mut replica.session().unwrap(), &address, Position::Gtid).unwrap();
    let mut session = source.session().unwrap();
    session.execute("CREATE DATABASE test").unwrap();
    session.execute("CREATE TABLE test.t (id INT PRIMARY KEY AUTO_INCREMENT) ENGINE=InnoDB").unwrap();
    let mut work = || {
        for _ in 0..20 {
            session.execute("INSERT INTO test.t VALUES ()").unwrap();
        }
    };
    let theirs = compare(&replica, dir.path(), &mut work);
    let has = |name: &str| theirs.keys().any(|key| key.starts_with(name));
    for name in [
        "mysql_up",
        "mysql_version_info",
        "mysql_global_status_uptime",
        "mysql_global_variables_innodb_page_size",
        "mysql_slave_status_slave_io_running",
        "mysql_info_schema_innodb_cmp_compress_ops_total",
        "mysql_info_schema_innodb_cmpmem_pages_used_total",
    ] {
        assert!(has(name), "the exporter's collector of {name} has failed");
    }
    replica.kill().unwrap();
    source.kill().unwrap();
}

#[test]
fn the_order_of_labels_is_of_no_meaning() {
    assert_eq!(key("a{y=\"1,\\\"2\",x=\"\"}"), "a{x=\"\",y=\"1,\\\"2\"}");
    assert_eq!(key("a"), "a");
    let found = series("# TYPE a gauge\na{x=\"b c\"} 1\nb +Inf\n");
    assert_eq!(found, Series::from([("a{x=\"b c\"}".to_owned(), 1.0), ("b".to_owned(), f64::INFINITY)]));
}

#[test]
fn a_value_that_is_missing_or_off_is_found() {
    let found =
        |name, value, ours: [Option<f64>; 2]| difference(name, value, [ours[0].as_ref(), ours[1].as_ref()]);
    assert!(found("a", 1.0, [Some(1.0), None]).unwrap().contains("missing"));
    assert!(found("a", 2.0, [Some(1.0), Some(1.0)]).unwrap().contains("is 2"));
    assert_eq!(found("a", 1.0, [Some(1.0), Some(1.0)]), None);
    assert_eq!(found("a", 105.0, [Some(100.0), Some(110.0)]), None);
    assert!(found("a", 300.0, [Some(100.0), Some(110.0)]).is_some());
    assert_eq!(found("mysql_global_status_threads_connected", 9.0, [Some(1.0), Some(1.0)]), None);
}
