//! Volumes through NBD, which needs neither root nor FUSE.

use std::process::{Command, Stdio};

use crate::harness::{EBBTIDE, Home, Need, Ran, can, tool};

#[test]
fn a_volume_is_served_over_a_socket_and_keeps_what_was_written() {
    if !can(&[Need::Tool("nbdcopy"), Need::Tool("nbdinfo")]) {
        return;
    }
    let home = Home::served();
    home.say("volume create db gp3:size=64MiB").refused(2, &[]);
    home.say("volume create db gp3:size=1GiB").ok();
    let socket = home.beside("db.sock");
    let attach = ["volume", "attach", "db", "--nbd", &format!("unix:{}", socket.display())];
    let uri = home.run(&attach).ok();
    assert!(uri.line().starts_with("nbd+unix:///"), "{}", uri.line());
    assert_eq!(tool("nbdinfo", &["--size", uri.line()]).trim(), (1_u64 << 30).to_string());
    let content = home.beside("content");
    std::fs::write(&content, (0..1_u32 << 20).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
    tool("nbdcopy", &[content.to_str().unwrap(), uri.line()]);
    home.run(&attach).refused(2, &["is attached at nbd+unix"]);
    home.say("volume detach db").ok();
    assert!(!socket.exists());
    let uri = home.run(&attach).ok();
    let back = home.beside("back");
    tool("nbdcopy", &[uri.line(), back.to_str().unwrap()]);
    let (written, read) = (std::fs::read(&content).unwrap(), std::fs::read(&back).unwrap());
    assert!(read[..written.len()] == written, "the content differs");
    assert_eq!(home.show("db")["data_bytes"], 4 << 20);
}

#[test]
fn a_tcp_port_is_chosen_and_only_this_machine_may_use_it() {
    let home = Home::served();
    home.say("volume create db gp3:size=1GiB").ok();
    let shown = home.say("volume attach db --nbd tcp:127.0.0.1:0 --json").ok().json();
    let uri = shown["attachment"]["uri"].as_str().unwrap();
    assert!(uri.starts_with("nbd://127.0.0.1:") && !uri.contains(":0/"), "{uri}");
    assert_eq!(shown["attachment"]["device"], serde_json::Value::Null);
    home.say("volume detach db").ok();
    let attached = home.say("volume attach db --nbd tcp:127.0.0.1:0").ok();
    for part in ["every user of this machine", "take all of its connections", "--nbd unix:PATH"] {
        assert!(attached.stderr.contains(part), "no '{part}' in {}", attached.stderr);
    }
    home.say("volume detach db").ok();
    let socket = format!("unix:{}", home.beside("quiet.sock").display());
    assert_eq!(home.run(&["volume", "attach", "db", "--nbd", &socket]).ok().stderr, "");
    home.say("volume detach db").ok();
    let refused = home.say("volume attach db --nbd tcp:0.0.0.0:0");
    let advice = ["0.0.0.0", "tcp:127.0.0.1:PORT", "unix:PATH"];
    let refused = refused.refused(2, &advice);
    // What it advises is what the command takes.
    let help = home.say("volume attach --help").ok().stdout;
    let options = refused.stderr.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    for option in options.filter(|word| word.starts_with("--")) {
        assert!(help.contains(option), "{option} is no option of attach: {}", refused.stderr);
    }
    assert!(!refused.stderr.contains("allow it explicitly"), "nothing allows it: {}", refused.stderr);
    assert!(help.contains("unix:PATH or tcp:HOST:PORT"), "{help}");
}

#[test]
fn an_ordinary_user_has_nbd_and_is_told_about_it() {
    if !can(&[Need::BlockDevices, Need::Tool("setpriv"), Need::Tool("nbdinfo")]) {
        return;
    }
    let home = Home::new();
    let (root, socket) = (home.root(), home.beside("db.sock"));
    std::fs::create_dir(&root).unwrap();
    for path in [root.as_path(), root.parent().unwrap()] {
        tool("chown", &["65534:65534", path.to_str().unwrap()]);
    }
    // The program may lie where only root can reach it.
    let program = home.beside("ebbtide");
    std::fs::copy(EBBTIDE, &program).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).args(arguments);
        command.arg("--home").arg(&root).stdin(Stdio::null()).current_dir("/");
        Ran::of(command.output().unwrap())
    };
    run(&["serve", "--detach"]).ok();
    run(&["volume", "create", "db", "gp3:size=1GiB"]).ok();
    run(&["volume", "attach", "db"]).refused(3, &["does not run as root", "--nbd unix:PATH"]);
    let uri = run(&["volume", "attach", "db", "--nbd", &format!("unix:{}", socket.display())]).ok();
    assert_eq!(tool("nbdinfo", &["--size", uri.line()]).trim(), (1_u64 << 30).to_string());
    run(&["serve", "--stop"]).ok();
    assert!(!socket.exists());
}

#[test]
fn a_host_that_was_never_calibrated_is_calibrated_at_the_first_attachment() {
    let home = Home::new();
    home.serve();
    home.say("volume create db gp3:size=1GiB").ok();
    let socket = format!("unix:{}", home.beside("s").display());
    // A busy machine may be too slow even for this volume, which is not the question here.
    home.run(&["volume", "attach", "db", "--nbd", &socket, "--over-limit"]).ok();
    assert!(home.log().contains("never calibrated"), "{}", home.log());
    let stored = std::fs::read_to_string(home.root().join("calibration.json")).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    assert!(stored["nbd"]["read_iops_depth_32"].as_f64().unwrap() > 1_000.0, "{stored}");
    assert!(stored["pacing_idle"]["count"].as_u64().unwrap() > 100, "{stored}");
    assert!(!home.root().join("calibration.store").exists());
}
