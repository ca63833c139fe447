//! The server itself: one for each home, started, detached, stopped.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;

use ebbtide_control::protocol;
use ebbtide_history::{Durability, Store};
use serde_json::Value;

use crate::harness::{Home, Need, can, kill_9, left_of, wait_until};

#[test]
fn a_home_has_one_server_at_a_time() {
    let home = Home::served();
    home.run_line("serve").refused(3, &["already served by process", "serve --stop"]);
    home.run_line("serve --detach").refused(3, &["already served by process"]);
    let change = "hint: change it with 'ebbtide serve --change --aws 0 --home ";
    home.run_line("serve --detach --aws 0").refused(3, &["already served by process", change]);
    let other = Home::served();
    other.run_line("volume create db gp3:size=1GiB").ok();
    assert_eq!(home.run_line("volume list").ok().line(), "no volumes", "homes are apart");
}

#[test]
fn the_status_of_a_server_has_its_requests_and_their_failures_by_operation() {
    let home = Home::new();
    home.run_line("serve --status").refused(3, &["is not running"]);
    let pid = home.serve();
    assert!(home.run_line("serve --status").ok().stdout.contains("\nno requests\n"));
    home.run_line("volume create db gp3:size=1GiB").ok();
    home.run_line("volume create db gp3:size=1GiB").refused(2, &["exists already"]);
    home.run_line("volume show none").refused(2, &["there is no volume"]);

    let status = home.run_line("serve --status --json").ok().json();
    assert_eq!((&status["pid"], &status["aws"]), (&pid.into(), &Value::Null));
    assert_eq!(status["metrics"], Value::Null);
    assert_eq!(status["home"], home.root().to_str().unwrap());
    let operations = status["requests"]["operations"].as_array().unwrap();
    let of = |name: &str| operations.iter().find(|one| one["operation"] == name).unwrap();
    let create = of("create");
    assert_eq!((&create["requests"], &create["running"]), (&2.into(), &0.into()));
    assert_eq!(create["failures"], serde_json::json!([{"kind": "conflict", "count": 1}]));
    assert!(create["max_us"].as_u64().unwrap() > 0, "{create}");
    assert_eq!(of("show")["failures"], serde_json::json!([{"kind": "not-found", "count": 1}]));
    assert_eq!(of("detach")["requests"], 0, "{status}");

    let text = home.run_line("serve --status").ok().stdout;
    let rows: Vec<Vec<&str>> = text.lines().skip(2).map(|row| row.split_whitespace().collect()).collect();
    let ends: Vec<_> =
        rows.iter().map(|row| (row[0], row[1], row[row.len() - 2], row[row.len() - 1])).collect();
    assert_eq!(ends, [("create", "2", "conflict", "1"), ("show", "1", "not-found", "1")], "{text}");
    for other in ["--stop", "--detach", "--host-sync", "--aws 0"] {
        home.run_line(&format!("serve --status {other}")).refused(2, &["cannot be used with"]);
    }
}

#[test]
fn minutes_of_volumes_are_recorded_without_the_aws_endpoint_and_a_home_without_any_has_no_file_of_them() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    home.run_line("serve --stop").ok();
    let file = home.root().join(ebbtide_history::FILE);
    assert!(!file.exists());
    home.serve();
    let socket = format!("unix:{}", home.sibling("db.sock").display());
    home.run(&["volume", "attach", "db", "--nbd", &socket]).ok();
    // The sample that sees the volume makes the file, and records it.
    wait_until("the file of minutes", || file.exists());
    let status = home.run_line("serve --status --json").ok().json();
    let mut operations = status["requests"]["operations"].as_array().unwrap().iter();
    let counters = operations.find(|row| row["operation"] == "counters").unwrap();
    assert_eq!(counters["requests"], 0, "its own samples are no requests: {status}");
    // An orderly end stores what the minute has so far.
    home.run_line("serve --stop").ok();
    let store = Store::open(&home.root(), Durability::Process, u64::MAX).unwrap();
    let found = store.volume_minutes(&[("volume", "db")], 0..u64::MAX).unwrap();
    let span: u64 = found.values().map(|(_, minute)| minute.counters.at.as_us()).sum();
    assert!(span > 0, "{found:?}");
}

#[test]
fn a_signal_stops_the_server_in_order_and_its_volumes_are_there_again() {
    for signal in ["-TERM", "-INT"] {
        let home = Home::new();
        let pid = home.serve();
        home.run_line("volume create db gp3:size=1GiB").ok();
        assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
        while home.root().join("control.sock").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!home.log().contains("ERROR"), "{}", home.log());
        home.run_line("serve --stop").refused(3, &["is not running"]);
        home.serve();
        assert_eq!(home.show("db")["state"], "available");
    }
}

#[test]
fn a_server_whose_socket_was_removed_ends_on_a_signal_and_gives_the_home_back() {
    let home = Home::new();
    let pid = home.serve();
    home.run_line("volume create db gp3:size=1GiB").ok();
    std::fs::remove_file(home.root().join("control.sock")).unwrap();
    assert!(Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap().success());
    wait_for_end(pid);
    assert!(home.log().contains("stopped"), "{}", home.log());
    home.serve();
    assert_eq!(home.show("db")["state"], "available");
}

#[test]
fn a_server_ends_although_a_client_does_not_read_its_answer() {
    let home = Home::new();
    let pid = home.serve();
    let ask = |request: &Value| {
        let mut client = UnixStream::connect(home.root().join("control.sock")).unwrap();
        let envelope = serde_json::json!({"v": protocol::VERSION, "request": request});
        client.write_all(format!("{envelope}\n").as_bytes()).unwrap();
        client
    };
    for number in 0..500 {
        let create =
            serde_json::json!({"name": format!("v{number}"), "spec": "gp3:size=1GiB", "block_size": 512});
        let mut answer = String::new();
        ask(&serde_json::json!({"volume-create": create})).read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("{\"done\""), "{answer}");
    }
    let list = serde_json::json!({"volume-list": {}});
    let mut whole = Vec::new();
    ask(&list).read_to_end(&mut whole).unwrap();
    let mut client = ask(&list);
    // The answer has begun, and no more of it is read until the server has ended.
    let mut got = vec![0];
    client.read_exact(&mut got).unwrap();
    assert!(Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap().success());
    wait_for_end(pid);
    // Its end may be lost with the connection; what the sockets hold is there.
    let _ = client.read_to_end(&mut got);
    assert!(whole.starts_with(&got), "it is the same answer");
    assert!(
        got.len() < whole.len(),
        "the sockets hold all {} bytes: the server was not waiting",
        whole.len()
    );
}

/// Waits until a process is gone, or dead and not collected.
#[track_caller]
fn wait_for_end(pid: u32) {
    let lives = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
    };
    wait_until(&format!("the end of process {pid}"), || !lives());
}

#[test]
fn the_server_of_a_home_that_was_made_again_is_not_disturbed_by_the_old_one() {
    let home = Home::new();
    let serve = || home.run_line("serve --detach --json --aws 0 --open --instant").ok().json();
    let call = |url: &Value, query: &str| {
        let url = url.as_str().unwrap();
        let answer = crate::aws::get(url, &format!("/?Version=2016-11-15&{query}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    };
    const CREATE: &str = "Action=CreateVolume&Size=1&VolumeType=gp3&AvailabilityZone=us-east-1a";
    let old = serve();
    home.run_line("volume create db gp3:size=1GiB").ok();
    call(&old["aws"], CREATE);
    std::fs::remove_dir_all(home.root()).unwrap();
    let new = serve();
    home.run_line("volume create other gp3:size=1GiB").ok();
    call(&new["aws"], CREATE);
    let old = u32::try_from(old["pid"].as_u64().unwrap()).unwrap();
    assert!(Command::new("kill").args(["-TERM", &old.to_string()]).status().unwrap().success());
    wait_for_end(old);
    let named = std::fs::read_to_string(home.root().join("aws/endpoint")).unwrap();
    assert_eq!(named.trim(), new["aws"].as_str().unwrap());
    // The write-ahead log of SQLite: without it, a kill would lose the records of the new server.
    assert!(home.root().join("aws.db-wal").exists());
    kill_9(u32::try_from(new["pid"].as_u64().unwrap()).unwrap());
    let again = serve();
    let listed = call(&again["aws"], "Action=DescribeVolumes");
    assert_eq!(listed.matches("<volumeId>").count(), 2, "that of the call and that of the command: {listed}");
    let names = home.run_line("volume list --json").ok().json();
    let has_other = names.as_array().unwrap().iter().any(|volume| volume["name"] == "other");
    assert!(has_other && names.as_array().unwrap().len() == 2, "{names}");
    for (path, mode) in modes(&home.root()) {
        assert_eq!(mode & 0o077, 0, "others have no right to {}: {mode:o}", path.display());
    }
}

/// What is in a folder, with its permissions. What is mounted in it is not looked at.
fn modes(folder: &std::path::Path) -> Vec<(std::path::PathBuf, u32)> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let about = entry.metadata().unwrap();
        if about.is_dir() {
            found.extend(modes(&entry.path()));
        }
        found.push((entry.path(), about.permissions().mode() & 0o777));
    }
    found
}

#[test]
fn a_killed_server_is_replaced_at_once() {
    let home = Home::new();
    let first = home.serve();
    home.run_line("volume create db gp3:size=1GiB").ok();
    kill_9(first);
    home.run_line("volume list").refused(3, &["is not running"]);
    let second = home.serve();
    assert_ne!(first, second);
    assert_eq!(home.show("db")["state"], "available");
}

#[test]
fn a_server_that_cannot_start_gives_the_reason() {
    let home = Home::new();
    std::fs::create_dir_all(home.root()).unwrap();
    std::fs::write(home.root().join("store"), "not a directory").unwrap();
    home.run_line("serve --detach").refused(3, &["the server ended at once", "serve.log"]);
}

#[test]
fn credits_refill_by_the_clock_and_survive_a_kill() {
    let home = Home::served();
    home.run(&["volume", "create", "slow", "gp2:size=100GiB,credits=2%"]).ok();
    let share = |home: &Home| home.show("slow")["credit_pct"].as_f64().unwrap();
    let first = share(&home);
    assert!((2.0..2.1).contains(&first), "{first}");
    home.run(&["volume", "attach", "slow", "--nbd", &format!("unix:{}", home.sibling("s").display())]).ok();
    let attached = share(&home);
    assert!((first..2.2).contains(&attached), "{attached}");
    let pid: u32 = std::fs::read_to_string(home.root().join("serve.lock")).unwrap().trim().parse().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(6));
    kill_9(pid);
    home.serve();
    let after = share(&home);
    // 300 credits a second into 5.4 million: 0.0056 % a second.
    assert!((attached + 0.03..2.3).contains(&after), "{attached} {after}");
}

#[test]
fn a_stop_is_refused_while_files_are_open_and_touches_nothing_until_it_is_forced() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    let dir = home.sibling("mnt");
    home.run_line("volume create other gp3:size=1GiB").ok();
    home.run_line("volume attach other").ok();
    home.run_line("volume create db gp3:size=1GiB").ok();
    home.run(&["volume", "attach", "db", "--mount", dir.to_str().unwrap(), "--fs", "ext4"]).ok();
    let mut holder = Command::new("sleep").arg("60").current_dir(&dir).spawn().unwrap();
    let named = format!("sleep (process {})", holder.id());
    let hints = ["volume detach db --force", "serve --stop --force"];
    home.run_line("serve --stop").refused(3, &["'db'", &named, hints[0], hints[1]]);
    assert_eq!(home.show("db")["state"], "in-use");
    assert_eq!(home.show("other")["state"], "in-use", "nothing is torn down before the check");
    let stopped = home.run_line("serve --stop --force --json");
    holder.kill().unwrap();
    holder.wait().unwrap();
    let stopped = stopped.ok();
    let detached = stopped.json()["detached"].clone();
    assert!(detached[0]["forced"].as_str().unwrap().contains(&named), "{detached}");
    assert_eq!((&detached[1]["volume"], &detached[1]["forced"]), (&"other".into(), &Value::Null));
    assert!(stopped.stderr.contains("'db' was detached by force"), "{}", stopped.stderr);
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
}

#[test]
fn a_stop_is_refused_while_a_device_is_open_and_a_signal_forces_it() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::calibrated();
    let pid = home.serve();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let device = home.run_line("volume attach db").ok();
    let open = std::fs::File::open(device.line()).unwrap();
    home.run_line("serve --stop").refused(3, &["'db' is in use at", device.line(), "serve --stop --force"]);
    drop(open);
    home.run_line("volume fault db stall=on").ok();
    home.run_line("serve --stop").refused(3, &["'db' is stalled", "serve --stop --force"]);
    home.run_line("volume fault db stall=off").ok();
    let open = std::fs::File::open(device.line()).unwrap();
    assert!(Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap().success());
    while home.root().join("control.sock").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(open);
    assert!(home.log().contains("detaching by force"), "{}", home.log());
}
