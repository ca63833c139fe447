//! What `ebbtide.service` does: volumes come back at a start, and a running server changes.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ebbtide_history::{Durability, Store};

use crate::harness::{EBBTIDE, Home, Need, Ran, can, kill_9, left_of, tool, wait_until};

/// A server as systemd starts it; returns when it has said that it serves, with its status.
struct Unit(Child);

impl Unit {
    fn start(home: &Home, more: &[&str]) -> (Self, String) {
        let path = home.sibling("notify");
        let _ = fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let log = fs::File::options().create(true).append(true).open(home.root().join("serve.log")).unwrap();
        let mut command = home.command(&[&["serve", "--restore"][..], more].concat());
        command.env("NOTIFY_SOCKET", &path).stdout(log.try_clone().unwrap()).stderr(log);
        let unit = Self(command.spawn().unwrap());
        let mut text = [0; 1024];
        let length = socket.recv(&mut text).unwrap_or_else(|error| panic!("{error}: {}", home.log()));
        (unit, String::from_utf8_lossy(&text[..length]).into_owned())
    }

    fn kill(mut self) {
        kill_9(self.0.id());
        self.0.wait().unwrap();
    }

    fn end(mut self) {
        tool("kill", &["-TERM", &self.0.id().to_string()]);
        assert!(self.0.wait().unwrap().success());
    }
}

fn is_mounted(dir: &Path) -> bool {
    Command::new("mountpoint").arg("-q").arg(dir).status().unwrap().success()
}

#[test]
fn after_a_kill_and_after_a_stop_volumes_are_back_and_mounted_in_the_order_of_their_mounts() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.ext4")]) {
        return;
    }
    let home = Home::calibrated();
    let (unit, status) = Unit::start(&home, &[]);
    assert_eq!(status, "READY=1\nSTATUS=0 of 0 volumes attached again");
    let (outer, inner) = (home.sibling("db"), home.sibling("db").join("log"));
    for (name, dir) in [("data", &outer), ("log", &inner)] {
        home.run(&["volume", "create", name, "gp3:size=1GiB"]).ok();
        home.run(&["volume", "attach", name, "--mount", dir.to_str().unwrap(), "--fs", "ext4"]).ok();
        fs::write(dir.join("kept"), name).unwrap();
        tool("sync", &["-f", dir.join("kept").to_str().unwrap()]);
    }
    // Another order of attachments: the one that lies below comes first.
    let socket = format!("unix:{}", home.sibling("net.sock").display());
    for name in ["net", "gone"] {
        home.run(&["volume", "create", name, "gp3:size=1GiB"]).ok();
    }
    home.run(&["volume", "attach", "net", "--nbd", &socket]).ok();
    home.run_line("volume attach gone").ok();
    home.run_line("volume detach gone").ok();
    let back = || {
        for (name, dir) in [("data", &outer), ("log", &inner)] {
            assert!(is_mounted(dir), "{name}: {}", home.log());
            assert_eq!(fs::read_to_string(dir.join("kept")).unwrap(), name);
        }
        assert_eq!(home.show("net")["attachment"]["kind"], "nbd");
        assert_eq!(home.show("gone")["state"], "available", "it was detached on purpose");
    };
    unit.kill();
    let (unit, status) = Unit::start(&home, &[]);
    assert_eq!(status, "READY=1\nSTATUS=3 of 3 volumes attached again", "{}", home.log());
    back();
    unit.end();
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
    assert!(!home.log().contains("by force"), "what lies below is unmounted first: {}", home.log());
    let (unit, _) = Unit::start(&home, &[]);
    back();
    unit.end();
    // A server without --restore begins with nothing attached, and so does the next one.
    home.serve();
    assert_eq!(home.show("data")["state"], "available");
    home.run_line("serve --stop").ok();
    let started = home.run_line("serve --restore --detach --json").ok().json();
    assert!(started["pid"].is_u64());
    assert_eq!(home.show("data")["state"], "available");
}

#[test]
fn a_volume_that_cannot_come_back_keeps_no_other_from_it_and_is_tried_again() {
    let home = Home::calibrated();
    let (unit, _) = Unit::start(&home, &[]);
    let sockets = ["a", "b"].map(|name| home.sibling(&format!("{name}.sock")));
    for (name, socket) in ["a", "b"].iter().zip(&sockets) {
        home.run(&["volume", "create", name, "gp3:size=1GiB"]).ok();
        home.run(&["volume", "attach", name, "--nbd", &format!("unix:{}", socket.display())]).ok();
    }
    unit.end();
    fs::write(&sockets[0], "somebody's file").unwrap();
    let (unit, status) = Unit::start(&home, &[]);
    assert!(status.ends_with("1 of 2 volumes attached again"), "{status}");
    assert!(home.log().contains("could not be attached again"), "{}", home.log());
    unit.end();
    fs::remove_file(&sockets[0]).unwrap();
    // A start without --restore that comes to nothing leaves the list as it is.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    home.run_line(&format!("serve --aws {port}")).refused(3, &["cannot listen"]);
    let (unit, status) = Unit::start(&home, &[]);
    assert!(status.ends_with("2 of 2 volumes attached again"), "{status}: {}", home.log());
    unit.end();
}

#[test]
fn a_running_server_changes_its_log_and_begins_the_aws_endpoint() {
    let home = Home::served();
    home.run_line("serve --change").refused(2, &["changes nothing", "--log"]);
    home.run_line("serve --change --log loud").refused(2, &["'loud' is no level"]);
    home.run_line("volume list").ok();
    assert!(!home.log().contains("DEBUG"), "{}", home.log());
    let changed = home.run_line("serve --change --log debug --json").ok().json();
    assert_eq!((&changed["log"], &changed["aws"]), (&"debug".into(), &serde_json::Value::Null));
    home.run_line("volume list").ok();
    wait_until("a line of level DEBUG", || home.log().contains("DEBUG"));
    let changed = home.run_line("serve --change --aws 0 --region eu-west-1 --log error").ok().stdout;
    let url = changed.lines().find_map(|line| line.strip_prefix("AWS endpoint: ")).unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{changed}");
    assert_eq!(home.run_line("serve --status --json").ok().json()["aws"], url);
    home.run_line("serve --change --aws 0").refused(2, &["served already", url]);
    home.run_line("serve --change --aws 0.0.0.0:0 --open").refused(2, &["--open is for this machine"]);
    home.run_line("serve --stop").ok();
    home.run_line("serve --change --log debug").refused(3, &["is not running"]);
}

#[test]
fn minutes_are_recorded_by_one_sampler_before_a_change_after_it_and_after_one_that_failed() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    home.run_line(&format!("serve --change --aws {port}")).refused(3, &["cannot listen"]);
    // The endpoint that did not begin has made it, and no longer has it open.
    let file = home.root().join(ebbtide_history::FILE);
    let _ = fs::remove_file(&file);
    let socket = format!("unix:{}", home.sibling("db.sock").display());
    home.run(&["volume", "attach", "db", "--nbd", &socket]).ok();
    wait_until("the file of minutes", || file.exists());
    home.run_line("serve --change --aws 0").ok();
    let samples = || {
        let status = home.run_line("serve --status --json").ok().json();
        let operations = status["requests"]["operations"].as_array().unwrap();
        operations.iter().find(|row| row["operation"] == "counters").unwrap()["requests"].as_u64().unwrap()
    };
    let before = samples();
    wait_until("two more samples", || samples() >= before + 2);
    home.run_line("serve --stop").ok();
    let store = Store::open(&home.root(), Durability::Process, u64::MAX).unwrap();
    let found = store.volume_minutes(&[("volume", "db")], 0..u64::MAX).unwrap();
    assert!(!found.is_empty());
    assert!(!home.log().contains("are lost"), "{}", home.log());
}

#[test]
fn the_unit_is_one_that_systemd_takes_and_its_options_are_those_of_the_program() {
    let unit =
        fs::read_to_string(format!("{}/packaging/ebbtide.service", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/ebbtide ")).unwrap();
    let help = Ran::of(Command::new(EBBTIDE).args(["serve", "--help"]).output().unwrap()).ok().stdout;
    for option in line.split(' ').filter(|word| word.starts_with("--")) {
        assert!(help.contains(option), "{option}");
    }
    if !can(&[Need::Tool("systemd-analyze")]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ebbtide.service");
    // The program of the package is not installed here, nor are its pages.
    fs::write(&path, unit.replace("/usr/bin/ebbtide", EBBTIDE).replace("Documentation=", "#")).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--recursive-errors=no"]).arg(&path).stdin(Stdio::null());
    let verified = Ran::of(verify.output().unwrap());
    let ours: Vec<&str> = verified.stderr.lines().filter(|line| line.contains("ebbtide")).collect();
    assert!(ours.is_empty(), "{}", verified.stderr);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

#[test]
fn what_a_home_takes_on_the_disk_is_what_was_written() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=10GiB").ok();
    let socket = home.sibling("db.sock");
    home.run(&["volume", "attach", "db", "--nbd", &format!("unix:{}", socket.display())]).ok();
    let taken = || -> u64 {
        let printed = tool("du", &["--summarize", "--block-size=1", home.root().to_str().unwrap()]);
        printed.split_whitespace().next().unwrap().parse().unwrap()
    };
    let before = taken();
    assert!(before < 64 << 20, "a volume of 10 GiB takes {before} bytes");
    if !can(&[Need::Tool("qemu-io")]) {
        return;
    }
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    tool("qemu-io", &["-f", "raw", "-c", "write -P 7 0 8M", "-c", "flush", &uri]);
    let written = taken() - before;
    assert!((8 << 20..24 << 20).contains(&written), "8 MiB were written, {written} bytes taken");
}

#[test]
fn an_attach_says_that_the_disk_of_the_home_is_smaller_than_what_a_volume_may_take() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::on_a_small_disk(256);
    home.calibrate();
    home.serve();
    home.run_line("volume create large gp3:size=10GiB").ok();
    home.run_line("volume create small ideal:size=16MiB").ok();
    let attach = |name: &str| {
        let socket = format!("unix:{}", home.sibling(name).display());
        home.run(&["volume", "attach", name, "--nbd", &socket]).ok().stderr
    };
    let said = attach("large");
    for part in ["note: volume 'large' may still take 10 GiB", "free: when the disk is full", "I/O errors"] {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
    assert_eq!(attach("small"), "");
    home.run_line("volume detach large").ok();
    // The server looks at its start, too.
    home.run_line("serve --stop").ok();
    fs::write(home.root().join("lost+found"), vec![7; 236 << 20]).unwrap();
    home.serve();
    wait_until("the warning of a full disk", || home.log().contains("the disk of the home is 9"));
}
