//! `ebbtide watch` on a real server on an emulated volume, and without one.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use ebbtide_mysql::{Binary, Layout, Server, ServerPlan, Settings, initialize};
use serde_json::Value;

use crate::aws::get;
use crate::candidate::{login, work};
use crate::harness::{Home, Need, Ran, can, wait_until};

/// A home whose server has a volume attached at `data`, and a database server on it.
struct Emulated {
    server: Server,
    home: Home,
}

/// None, and why, where there is no server, or where no volume can be attached.
fn emulated(spec: &str) -> Option<Emulated> {
    if !can(&[Need::BlockDevices, Need::Tool("mariadbd"), Need::Tool("mkfs.xfs")]) {
        return None;
    }
    let home = Home::served();
    home.run(&["volume", "create", "shop-data", spec]).ok();
    let mount = home.sibling("data");
    home.run(&["volume", "attach", "shop-data", "--mount", mount.to_str().unwrap(), "--fs", "xfs"]).ok();
    let dir = mount.parent().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir, mode).unwrap();
    let mut plan =
        ServerPlan::new(Binary::detect(None).unwrap(), Layout::single(mount.join("mysql")), work(dir));
    let mut settings = Settings::new();
    settings.set("buffer_pool_size", "8MiB").unwrap();
    plan.settings = settings;
    initialize(&plan, &|_| {}).unwrap();
    let server = Server::start(&plan, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    Some(Emulated { server, home })
}

impl Emulated {
    fn watch(&self, more: &[&str]) -> Ran {
        let socket = format!("--mysql-socket={}", self.server.target().endpoints[0]);
        let login = login(self.home.sibling("data").parent().unwrap());
        self.home.run(&[&["watch", &socket, &login], more].concat())
    }
}

/// Writes of 4 KiB past the page cache, one after the other, until it is dropped.
struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn start(file: &Path) -> Self {
        // O_DSYNC: each write is an operation of the volume before the next begins.
        let flags = (rustix::fs::OFlags::DSYNC).bits().cast_signed();
        let mut file = OpenOptions::new().create(true).write(true).custom_flags(flags).open(file).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                file.write_all(&[7; 4_096]).unwrap();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn storage<'a>(view: &'a Value, name: &str) -> &'a Value {
    let storage = view["storage"].as_array().unwrap();
    storage.iter().find(|storage| storage["name"] == name).unwrap_or_else(|| panic!("no {name} in {view}"))
}

/// The rules of the alarms that a view has.
fn rules(view: &Value) -> Vec<&str> {
    view["alarms"].as_array().unwrap().iter().map(|alarm| alarm["rule"].as_str().unwrap()).collect()
}

#[test]
fn a_look_has_the_server_its_volume_with_the_limits_and_what_lies_where() {
    let Some(emulated) = emulated("gp3:size=10GiB") else { return };
    let ran = emulated.watch(&["--once", "--interval", "2s", "--json"]);
    let view = ran.json();
    let server = &view["servers"][0];
    assert!(server["version"].as_str().unwrap().starts_with("MariaDB "), "{server}");
    assert_eq!((&server["down"], server["uptime_s"].is_number()), (&Value::Null, true), "{server}");
    assert!(server["statements"].as_f64().is_some_and(|rate| rate < 1_000.0), "{server}");
    let files = server["files"].as_array().unwrap();
    assert!(files.contains(&serde_json::json!(["data", "shop-data"])), "{server}");
    let volume = storage(&view, "shop-data");
    assert_eq!((&volume["exact"], &volume["iops_limit"]), (&true.into(), &3_000.0.into()), "{volume}");
    let roles = volume["roles"].as_array().unwrap();
    assert_eq!(roles.len(), 1, "once for the server: {volume}");
    assert!(roles[0].as_str().unwrap().starts_with("data"), "{volume}");
    assert!(volume["spec"].as_str().unwrap().starts_with("gp3:size=10GiB"), "{volume}");

    // The same as text: the answer first, on one screen.
    let text = emulated.watch(&["--once"]).stdout;
    assert!(text.lines().count() <= 24 && text.contains("shop-data"), "{text}");

    emulated.server.kill_now().unwrap();
    let ran = emulated.watch(&["--once", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let view = ran.json();
    assert_eq!(rules(&view)[0], "server_down", "{view}");
    assert!(view["servers"][0]["down"].is_string());
    assert!(storage(&view, "shop-data")["writes"].is_number(), "the volume is watched on");
}

#[test]
fn credits_that_end_soon_raise_an_alarm_with_the_time() {
    let Some(emulated) = emulated("gp2:size=10GiB,credits=3%") else { return };
    let load = Load::start(&emulated.home.sibling("data").join("load"));
    let ran = emulated.watch(&["--once", "--interval", "70s", "--json"]);
    drop(load);
    let view = ran.json();
    let volume = storage(&view, "shop-data");
    assert!(volume["credits"]["end_s"].as_f64().is_some_and(|seconds| seconds < 7_200.0), "{volume}");
    assert_eq!(ran.code, 1, "{view}");
    let alarms = view["alarms"].as_array().unwrap();
    let alarm =
        alarms.iter().find(|alarm| alarm["rule"] == "credits_end").unwrap_or_else(|| panic!("{view}"));
    let reason = alarm["reason"].as_str().unwrap();
    assert!(reason.contains("end at") && reason.contains("IOPS"), "{reason}");
    emulated.server.kill_now().unwrap();
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let home = Home::new();
    home.run_line("watch --json").refused(2, &["--json needs an end", "--once"]);
    home.run_line("watch --interval 2m --for 5m").refused(2, &["--interval of 2 min", "1s to 60s"]);
    home.run_line("watch --silence nothing=2h --once").refused(2, &["no alarm has the rule 'nothing'"]);
    home.run_line("watch --listen 0.0.0.0:1").refused(2, &["is no loopback address"]);
    home.run_line("watch --webhook https://127.0.0.1/ --for 1s").refused(2, &["--alarm-command"]);
    let replay = "watch --replay 2026-11-28T20:00:00Z..2026-11-28T21:00:00Z";
    home.run_line(replay).refused(3, &["there is no history in", "--history DIR"]);
    home.run_line("watch --mysql-socket=/a,/b --volume gp3:size=1GiB --once")
        .refused(2, &["--volume is for one server, and 2 are watched"]);
}

#[test]
fn dashboards_and_rules_are_written() {
    let home = Home::new();
    let out = home.sibling("out");
    let out = out.to_str().unwrap();
    let wrote = home.run(&["watch", "rules", "--out", out, "--json"]).ok().json();
    assert_eq!(wrote["files"][0].as_str().unwrap(), format!("{out}/ebbtide.rules.yml"));
    assert!(home.run(&["watch", "dashboards", "--out", out]).ok().stdout.contains("ebbtide.json"));
    if can(&[Need::Tool("promtool")]) {
        crate::harness::tool("promtool", &["check", "rules", &format!("{out}/ebbtide.rules.yml")]);
    }
}

#[test]
fn a_server_that_is_not_there_is_an_alarm_that_a_command_is_told_of_and_that_can_be_silenced() {
    let home = Home::new();
    let socket = format!("--mysql-socket={}", home.sibling("none.sock").display());
    let ran = home.run(&["watch", &socket, "--once", "--json"]);
    assert_eq!((ran.code, rules(&ran.json())[0]), (1, "server_down"));
    let silenced = home.run(&["watch", &socket, "--once", "--silence", "server_down=1h", "--json"]);
    assert_eq!(silenced.code, 0, "{silenced:?}");
    let told = home.sibling("told");
    let command = format!("cat >> {}", told.display());
    let history = format!("--history={}", home.sibling("history").display());
    let words = ["watch", &socket, "--for", "40s", "--alarm-command", &command, &history];
    let ran = home.run(&words);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("ALARM server_down"), "a line for the change: {}", ran.stdout);
    let event: Value = serde_json::from_str(&std::fs::read_to_string(told).unwrap()).unwrap();
    assert_eq!((&event["rule"], &event["to"]), (&"server_down".into(), &"ALARM".into()));
    assert!(home.sibling("history").join("history.db").is_file());
}

#[test]
fn pages_and_metrics_are_served_until_the_end() {
    let home = Home::new();
    let history = format!("--history={}", home.sibling("history").display());
    let log = home.sibling("log");
    let mut command = home.command(&["watch", "--listen", "0", &history]);
    let mut child = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let mut url = String::new();
    wait_until("the address of the pages", || {
        let text = std::fs::read_to_string(&log).unwrap();
        url = text
            .split("serving ")
            .nth(1)
            .and_then(|rest| rest.split("/ ").next())
            .unwrap_or_default()
            .to_owned();
        !url.is_empty()
    });
    wait_until("a scrape with the machine", || get(&url, "/metrics").contains("ebbtide_build_info"));
    assert!(get(&url, "/").starts_with("HTTP/1.1 200"));
    crate::harness::tool("kill", &["-TERM", &child.id().to_string()]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn all_servers_of_a_named_file_are_watched() {
    let home = Home::new();
    let file = home.sibling("watch.toml");
    let socket = |name: &str| home.sibling(name).display().to_string();
    let text = format!(
        "[servers.shop]\nsocket = \"{}\"\n[servers.app]\nsocket = \"{}\"\n",
        socket("s"),
        socket("a")
    );
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let view = home.run(&["watch", "--config", file, "--once", "--json"]).json();
    let names: Vec<&str> =
        view["servers"].as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["app", "shop"]);
    let view = home.run(&["watch", "shop", "--config", file, "--once", "--json"]).json();
    assert_eq!(view["servers"].as_array().unwrap().len(), 1);
    home.run(&["watch", "shp", "--config", file, "--once"]).refused(2, &["shp", "did you mean"]);
    home.run(&["watch", "--config", "/nowhere.toml", "--once"])
        .refused(3, &["cannot read the file of names /nowhere.toml"]);
}
