//! Volumes through NBD, which needs neither root nor FUSE.

use std::process::{Command, Stdio};

use crate::harness::{EBBTIDE, Home, Need, Ran, can, tool};

#[test]
fn a_volume_is_served_over_a_socket_and_keeps_what_was_written() {
    if !can(&[Need::Tool("nbdcopy"), Need::Tool("nbdinfo")]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=64MiB").refused(2, &[]);
    home.run_line("volume create db gp3:size=1GiB").ok();
    let socket = home.sibling("db.sock");
    let attach = ["volume", "attach", "db", "--nbd", &format!("unix:{}", socket.display())];
    let uri = home.run(&attach).ok();
    assert!(uri.line().starts_with("nbd+unix:///"), "{}", uri.line());
    assert_eq!(tool("nbdinfo", &["--size", uri.line()]).trim(), (1_u64 << 30).to_string());
    let content = home.sibling("content");
    std::fs::write(&content, (0..1_u32 << 20).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
    tool("nbdcopy", &[content.to_str().unwrap(), uri.line()]);
    home.run(&attach).refused(2, &["is attached at nbd+unix"]);
    home.run_line("volume detach db").ok();
    assert!(!socket.exists());
    let uri = home.run(&attach).ok();
    let back = home.sibling("back");
    tool("nbdcopy", &[uri.line(), back.to_str().unwrap()]);
    let (written, read) = (std::fs::read(&content).unwrap(), std::fs::read(&back).unwrap());
    assert!(read[..written.len()] == written, "the content differs");
    assert_eq!(home.show("db")["data_bytes"], 4 << 20);
}

#[test]
fn a_volume_has_shadows_and_is_recorded_for_a_replay() {
    if !can(&[Need::Tool("nbdcopy")]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=2GiB").ok();
    let socket = format!("unix:{}", home.sibling("db.sock").display());
    let attach = ["volume", "attach", "db", "--nbd", &socket, "--shadow", "gp2"];
    let and = |spec| home.run(&[&attach[..], &["--shadow", spec]].concat());
    and("gp3:size=1GiB").refused(2, &["smaller than volume 'db'"]);
    and("gp9").refused(2, &["gp9"]);
    let uri = home.run(&attach).ok();

    let trace = home.sibling("db.blkparse.zst");
    let trace = trace.to_str().unwrap();
    let recorder = home.command(&["volume", "record", "db", trace]).stdout(Stdio::piped()).spawn().unwrap();
    let began = std::time::Instant::now();
    while home.show("db")["live"]["recording"].is_null() {
        assert!(began.elapsed().as_secs() < 60, "it never began");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    home.run(&["volume", "record", "db", trace]).refused(2, &["exists already"]);
    let content = home.sibling("content");
    std::fs::write(&content, vec![7; 4 << 20]).unwrap();
    tool("nbdcopy", &[content.to_str().unwrap(), uri.line()]);
    // Ctrl-C ends it in order.
    tool("kill", &["-INT", &recorder.id().to_string()]);
    let recorded = Ran::of(recorder.wait_with_output().unwrap()).ok().stdout;
    assert!(recorded.contains("requests") && recorded.contains("--trace"), "{recorded}");
    home.run_line("volume record db --stop").refused(2, &["is not being recorded"]);

    let shadows = &home.show("db")["live"]["shadows"];
    let (own, shadow) = (&shadows["live_write"]["ops"], &shadows["shadows"][0]);
    assert!(own.as_u64().unwrap() > 0 && shadows["lost"] == 0, "{shadows}");
    assert!(&shadow["write"]["ops"] == own && shadow["credit_pct"].is_number(), "{shadow}");
    let text = home.run_line("volume show db").ok().stdout;
    assert!(text.contains("shadows, for") && text.contains("(this one)"), "{text}");
    let replay = ["simulate", "--volume", "gp2:size=2GiB", "--trace", trace, "--json"];
    assert_eq!(&home.run(&replay).ok().json()["totals"]["write"]["ios"], own);
    let detached = home.run_line("volume detach db").ok().stdout;
    assert!(detached.contains("shadows, for"), "{detached}");
}

#[test]
fn a_tcp_port_is_chosen_and_only_this_machine_may_use_it() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let shown = home.run_line("volume attach db --nbd tcp:127.0.0.1:0 --json").ok().json();
    let uri = shown["attachment"]["uri"].as_str().unwrap();
    assert!(uri.starts_with("nbd://127.0.0.1:") && !uri.contains(":0/"), "{uri}");
    assert_eq!(shown["attachment"]["device"], serde_json::Value::Null);
    home.run_line("volume detach db").ok();
    let attached = home.run_line("volume attach db --nbd tcp:127.0.0.1:0").ok();
    for part in ["every user of this machine", "take all of its connections", "--nbd unix:PATH"] {
        assert!(attached.stderr.contains(part), "no '{part}' in {}", attached.stderr);
    }
    home.run_line("volume detach db").ok();
    let socket = format!("unix:{}", home.sibling("quiet.sock").display());
    assert_eq!(home.run(&["volume", "attach", "db", "--nbd", &socket]).ok().stderr, "");
    home.run_line("volume detach db").ok();
    let refused = home.run_line("volume attach db --nbd tcp:0.0.0.0:0");
    let advice = ["0.0.0.0", "tcp:127.0.0.1:PORT", "unix:PATH"];
    let refused = refused.refused(2, &advice);
    // What it advises is what the command takes.
    let help = home.run_line("volume attach --help").ok().stdout;
    let options = refused.stderr.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    for option in options.filter(|word| word.starts_with("--")) {
        assert!(help.contains(option), "{option} is no option of attach: {}", refused.stderr);
    }
    assert!(!refused.stderr.contains("allow it explicitly"), "nothing allows it: {}", refused.stderr);
    assert!(help.contains("unix:PATH or tcp:HOST:PORT"), "{help}");
}

#[test]
fn an_ordinary_user_has_nbd_and_is_pointed_to_it() {
    if !can(&[Need::BlockDevices, Need::Tool("setpriv"), Need::Tool("nbdinfo")]) {
        return;
    }
    let home = Home::new();
    let (root, socket) = (home.root(), home.sibling("db.sock"));
    std::fs::create_dir(&root).unwrap();
    for path in [root.as_path(), root.parent().unwrap()] {
        tool("chown", &["65534:65534", path.to_str().unwrap()]);
    }
    // The program may be where only root can reach it.
    let program = home.sibling("ebbtide");
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
    home.run_line("volume create db gp3:size=1GiB").ok();
    let socket = format!("unix:{}", home.sibling("s").display());
    // A busy machine may be too slow even for this volume, which is not the question here.
    home.run(&["volume", "attach", "db", "--nbd", &socket, "--over-limit"]).ok();
    assert!(home.log().contains("never calibrated"), "{}", home.log());
    let stored = std::fs::read_to_string(home.root().join("calibration.json")).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    assert!(stored["nbd"]["read_iops_depth_32"].as_f64().unwrap() > 1_000.0, "{stored}");
    assert!(stored["pacing_idle"]["count"].as_u64().unwrap() > 100, "{stored}");
    assert!(!home.root().join("calibration.store").exists());
}
