//! `ebbtide crash --candidate` on real servers: what it answers, and that it answers with an exit code.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ebbtide_mysql::{Binary, Layout, Server, ServerPlan, Settings, WorkPaths, initialize};
use tempfile::TempDir;

use crate::harness::{Home, Ran};

/// A started server, and the directory that it is in.
pub(crate) struct Started {
    pub(crate) server: Server,
    binary: Binary,
    dir: TempDir,
}

/// A server with a small pool, so that a little work moves pages; none, and why, where there is none.
pub(crate) fn started(name: &str, settings: &[(&str, &str)]) -> Option<Started> {
    let path = (name != "system").then(|| Path::new(name));
    let binary = match Binary::detect(path) {
        Ok(binary) => binary,
        Err(error) => {
            println!("SKIPPED: the server {name}, which `./dev servers` fetches ({error})");
            return None;
        }
    };
    let dir = tempfile::Builder::new().prefix("ebbtide-cli-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let layout = Layout::single(dir.path().join("data"));
    let mut plan = ServerPlan::new(binary.clone(), layout, work(dir.path()));
    let mut all = Settings::new();
    let small = [("buffer_pool_size", "8MiB"), ("redo_capacity", "8MiB"), ("performance_schema", "on")];
    for (name, text) in small.iter().chain(settings) {
        all.set(name, text).unwrap();
    }
    plan.settings = all;
    initialize(&plan, &|_| {}).unwrap();
    let server = Server::start(&plan, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    Some(Started { server, binary, dir })
}

/// The option that logs in as `root` of a server with the files of [`work`].
pub(crate) fn login(dir: &Path) -> String {
    format!("--defaults-file={}", work(dir).dir.join("client.cnf").display())
}

/// Where the files of a server are that are not its data.
pub(crate) fn work(dir: &Path) -> WorkPaths {
    WorkPaths { dir: dir.join("w"), records: dir.join("records") }
}

impl Started {
    /// The option that logs in as `root`.
    pub(crate) fn login(&self) -> String {
        login(self.dir.path())
    }

    /// The server program.
    pub(crate) fn program(&self) -> &Path {
        &self.binary.path
    }

    pub(crate) fn socket(&self) -> String {
        format!("--mysql-socket={}", self.server.target().endpoints[0])
    }

    fn ask(&self, home: &Home, more: &[&str]) -> Ran {
        let socket = self.socket();
        let login = self.login();
        let words = ["crash", "--candidate", &socket, &login, "--json"];
        home.run(&[&words, more].concat())
    }

    fn prepare(&self, home: &Home) {
        let login = self.login();
        let tables = [&login, "--tables=2", "--table-size=30000"];
        home.run(&[&["load", "prepare", &self.socket()], &tables[..]].concat()).ok();
    }

    /// A load that goes on until it is dropped.
    fn load(&self, home: &Home, workload: &str) -> Load {
        let socket = self.socket();
        let login = self.login();
        let tables = [&login, "--tables=2", "--table-size=30000", "--rand-type=uniform"];
        let words = ["load", "run", workload, &socket, "--threads=4", "--time=600"];
        let mut command = home.command(&[&words, &tables[..]].concat());
        Load(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is reported about a server that writes, asked again until its first pages are on their way.
fn answer_under(started: &Started, home: &Home, more: &[&str]) -> Ran {
    let end = Instant::now() + Duration::from_secs(90);
    loop {
        let ran = started.ask(home, &[&["--interval", "3s"], more].concat());
        let known = ran.json()["judgement"]["verdict"] != "not-known";
        if known || Instant::now() > end {
            return ran;
        }
    }
}

fn a_writer_is_one_and_a_reader_is_none(name: &str) {
    let Some(started) = started(name, &[]) else { return };
    let home = Home::new();
    started.prepare(&home);
    let writes = started.load(&home, "oltp_write_only");
    let ran = answer_under(&started, &home, &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let answer = ran.json();
    let judgement = &answer["judgement"];
    assert!(["yes", "perhaps"].contains(&judgement["verdict"].as_str().unwrap()), "{answer}");
    let gain = |name: &str| judgement["gain"][name].as_f64().unwrap();
    assert!(gain("if_throughput") > 1.1 && gain("if_throughput") <= 2.0, "{answer}");
    assert!(gain("if_iops") < gain("if_throughput"), "batches are fewer operations than pages: {answer}");
    assert!(answer["workload"]["doublewrite_batches"].as_f64().unwrap() > 0.0, "{answer}");
    let version = started.binary.version.to_string();
    assert!(answer["server"]["version"].as_str().unwrap().starts_with(&version), "{answer}");
    let torn = answer_under(&started, &home, &["--volume", "gp3:size=500GiB,twp=off"]);
    assert_eq!(torn.code, 0, "{torn:?}");
    assert_eq!(torn.json()["judgement"]["verdict"], "no", "it would not be safe there");
    drop(writes);
    let _reads = started.load(&home, "oltp_read_only");
    let ran = reader(&started, &home);
    assert_eq!((ran.code, &ran.json()["judgement"]["verdict"]), (0, &"no".into()), "{ran:?}");
    started.server.kill().unwrap();
}

/// What is reported about a server that reads, once the pages of the writes before are written.
fn reader(started: &Started, home: &Home) -> Ran {
    let end = Instant::now() + Duration::from_secs(90);
    loop {
        let ran = started.ask(home, &["--interval", "2s"]);
        if ran.code == 0 || Instant::now() > end {
            return ran;
        }
    }
}

#[test]
fn a_server_that_writes_is_a_candidate_and_one_that_reads_is_none() {
    a_writer_is_one_and_a_reader_is_none("system");
}

#[test]
fn a_mysql_that_writes_is_a_candidate_and_one_that_reads_is_none() {
    a_writer_is_one_and_a_reader_is_none("mysql-9.7");
}

#[test]
fn an_idle_server_is_no_answer_and_one_without_the_buffer_has_it_off_already() {
    let Some(started) = started("system", &[("doublewrite", "off")]) else { return };
    let home = Home::new();
    let ran = started.ask(&home, &["--interval", "1s"]);
    assert_eq!((ran.code, &ran.json()["judgement"]["verdict"]), (0, &"already-off".into()), "{ran:?}");
    assert!(ran.json()["judgement"]["gain"].is_null(), "{ran:?}");
    started.server.kill().unwrap();
    let Some(idle) = self::started("system", &[]) else { return };
    let ran = idle.ask(&home, &["--interval", "1s"]);
    assert_eq!((ran.code, &ran.json()["judgement"]["verdict"]), (3, &"not-known".into()), "{ran:?}");
    idle.server.kill().unwrap();
}

#[test]
fn a_server_that_dies_between_the_looks_and_one_that_refuses_are_no_answer() {
    let Some(started) = started("system", &[]) else { return };
    let home = Home::new();
    let (socket, login) = (started.socket(), started.login());
    home.run(&["crash", "--candidate", &socket, "--mysql-user=root", "--mysql-password=wrong"])
        .refused(3, &["1045", "--mysql-user"]);
    let words = ["crash", "--candidate", &socket, &login, "--interval", "20s"];
    let mut command = home.command(&words);
    let looking = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_a_look(&started);
    started.server.kill().unwrap();
    Ran::of(looking.wait_with_output().unwrap()).refused(3, &["the connection was lost"]);
}

#[test]
fn a_look_outlasts_the_time_after_which_a_server_drops_idle_connections() {
    let Some(started) = started("system", &[]) else { return };
    started.server.session().unwrap().execute("SET GLOBAL wait_timeout = 4").unwrap();
    let ran = started.ask(&Home::new(), &["--interval", "7s"]);
    assert_eq!((ran.code, &ran.json()["judgement"]["verdict"]), (3, &"not-known".into()), "{ran:?}");
    started.server.kill().unwrap();
}

/// Waits until the first look is done and the second is awaited: the connection sleeps for longer than between two questions
/// of a look.
fn wait_for_a_look(started: &Started) {
    let mut session = started.server.session().unwrap();
    let asleep = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Sleep'";
    let end = Instant::now() + Duration::from_secs(90);
    let mut seen = 0;
    while seen < 8 {
        assert!(Instant::now() < end, "nobody looks");
        seen = if session.value(asleep).unwrap().as_deref() == Some("0") { 0 } else { seen + 1 };
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn words_that_do_not_go_together_are_refused_and_no_server_is_asked() {
    let home = Home::new();
    home.run(&["crash", "--candidate", "--mysql-socket=/nowhere.sock"]).refused(3, &["/nowhere.sock"]);
    home.run(&["crash", "--candidate", "--interval", "0s"]).refused(2, &["1s to 24h"]);
    home.run(&["crash", "--candidate", "durability-matrix"]).refused(2, &["--candidate"]);
    home.run(&["crash", "--candidate", "--seed", "7"]).refused(2, &["--seed"]);
    home.run(&["crash", "durability-matrix", "--interval", "9s"]).refused(2, &["--candidate alone"]);
    home.run(&["crash", "durability-matrix", "--volume", "gp3:size=5GiB"]).refused(2, &["--candidate alone"]);
    home.run(&["crash", "--candidate", "--volume", "gp9"]).refused(2, &["gp9"]);
    home.run(&["crash", "--candidate", "--mysql-host=a,b"]).refused(2, &["one server"]);
    home.run(&["crash", "durability-matrix", "--mysql-user=root"]).refused(2, &["--candidate alone"]);
    for hdd in ["st1:size=500GiB", "sc1:size=500GiB"] {
        home.run(&["crash", "--candidate", "--volume", hdd]).refused(2, &[hdd, "SSD volume"]);
    }
    home.run(&["crash", "durability-matrix", "--mysql-socket=/nowhere.sock"])
        .refused(2, &["--candidate alone", "starts itself"]);
    assert!(!home.root().exists(), "looking makes no home");
}
