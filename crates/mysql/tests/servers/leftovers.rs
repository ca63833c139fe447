//! What a killed process leaves: no server, and a cgroup that the next one removes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ebbtide_mysql::{Cleared, Layout, Server, ServerPlan, clear_leftovers};

use crate::support::{Bench, PATIENCE, lives, start, work};

/// Makes this program play the process that is killed: the server's program, and the directory.
const ROLE: &str = "EBBTIDE_TEST_KILLED_PARENT";

fn plan_in(bench: &Bench, dir: &Path) -> ServerPlan {
    let mut plan =
        ServerPlan::new(bench.binary.clone(), Layout::single(dir.join("data")), work(&dir.join("run"), "w"));
    plan.memory_bytes = Some(1 << 30);
    plan.require_memory = false;
    plan
}

/// Starts a server, prints its process and its cgroup, and waits to be killed.
fn play_the_killed_parent(bench: &Bench, dir: &Path) -> ! {
    let server = start(&plan_in(bench, dir));
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", server.pid())).unwrap();
    let group =
        groups.lines().find_map(|line| line.rsplit('/').next().filter(|name| name.starts_with("ebbtide-")));
    println!("server {} {}", server.pid(), group.unwrap_or("none"));
    loop {
        std::thread::park();
    }
}

fn cgroup_dir(name: &str) -> Option<PathBuf> {
    let places = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
    places.iter().map(|place| Path::new(place).join(name)).find(|dir| dir.is_dir())
}

#[test]
fn a_killed_process_leaves_no_server_and_the_next_one_clears_the_rest() {
    let Some(bench) = Bench::of("system") else { return };
    if let Some(dir) = std::env::var_os(ROLE) {
        play_the_killed_parent(&bench, Path::new(&dir));
    }
    let plan = bench.plan();
    let dir = plan.layout.data.parent().unwrap();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leftovers::a_killed_process_leaves_no_server_and_the_next_one_clears_the_rest"])
        .arg("--nocapture")
        .env(ROLE, dir)
        // What it makes for itself goes with our directory.
        .env("TMPDIR", dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let line =
        lines.map(Result::unwrap).find(|line| line.contains("server ")).expect("the parent names its server");
    let mut words = line.split("server ").nth(1).unwrap().split(' ');
    let pid: u32 = words.next().unwrap().parse().unwrap();
    let group = words.next().unwrap().to_owned();
    assert!(lives(pid));
    assert_eq!(clear_leftovers(&dir.join("run/records")), Cleared::default(), "its owner lives");

    parent.kill().unwrap();
    parent.wait().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while lives(pid) {
        assert!(Instant::now() < deadline, "the server outlives its parent");
        std::thread::sleep(Duration::from_millis(5));
    }
    let cleared = clear_leftovers(&dir.join("run/records")).cleared;
    if group == "none" {
        println!("SKIPPED: memory cgroups, of which one would be left");
    } else {
        assert!(cleared.iter().any(|line| line.ends_with(&group)), "{cleared:?}");
    }
    assert_eq!(cgroup_dir(&group), None);
    assert_eq!(clear_leftovers(&dir.join("run/records")), Cleared::default());
    start(&plan_in(&bench, dir)).stop(PATIENCE).unwrap();
}

#[test]
fn a_value_that_is_dropped_takes_its_server_and_its_cgroup_along() {
    let Some(bench) = Bench::of("system") else { return };
    let dir = bench.plan().layout.data.parent().unwrap().to_owned();
    let server: Server = start(&plan_in(&bench, &dir));
    let pid = server.pid();
    drop(server);
    assert!(!lives(pid));
    assert!(!dir.join("run/records/w.json").exists() && !dir.join("run/w/own").exists());
}
