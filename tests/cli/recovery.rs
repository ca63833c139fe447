//! What a killed server leaves behind, and that the next command clears it and nothing else.

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Home, Need, can, kill_9, left_of};

#[test]
fn a_kill_under_load_leaves_nothing_that_the_next_command_does_not_clear() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.xfs")]) {
        return;
    }
    let home = Home::served();
    let lock = home.root().join("serve.lock");
    let dir = home.sibling("mnt");
    home.run_line("volume create db gp3:size=10GiB").ok();
    home.run_line("volume create plain gp3:size=1GiB").ok();
    home.run_line("volume create net gp3:size=1GiB").ok();
    let attach = ["volume", "attach", "db", "--mount", dir.to_str().unwrap(), "--fs", "xfs"];
    for round in 0..3 {
        home.run(&attach).ok();
        home.run_line("volume attach plain").ok();
        let socket = home.sibling("net.sock");
        home.run(&["volume", "attach", "net", "--nbd", &format!("unix:{}", socket.display())]).ok();
        let synced = dir.join(format!("synced-{round}"));
        let mut file = File::create(&synced).unwrap();
        file.write_all(&[round; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        drop(file);
        let pid = std::fs::read_to_string(&lock).unwrap().trim().parse().unwrap();
        let written = under_load(&dir.join("load"), || kill_9(pid));
        assert!(written > 0, "the load was running");
        assert_ne!(left_of(&home.root()), Vec::<String>::new(), "a kill leaves something");
        let cleared = home.run_line("volume list").refused(3, &["cleared: ", "is not running"]);
        for what in ["mount", "loop device", "FUSE session", "NBD socket"] {
            assert!(cleared.stderr.contains(&format!("cleared: {what}")), "{what}: {}", cleared.stderr);
        }
        assert_eq!(left_of(&home.root()), Vec::<String>::new());
        assert!(!socket.exists());
        home.run_line("volume check").ok();
        home.serve();
        home.run(&attach).ok();
        for past in 0..=round {
            let content = std::fs::read(dir.join(format!("synced-{past}"))).unwrap();
            assert!(content == vec![past; 1 << 20], "what was synced before kill {round} is there");
        }
        home.run_line("volume detach db").ok();
    }
}

/// Writes synced blocks to a file until `end` has returned and a write fails; returns how many went.
fn under_load(path: &std::path::Path, end: impl FnOnce()) -> usize {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let Ok(mut file) = File::create(path) else { return 0 };
            let mut written = 0;
            while file.write_all(&[7; 16 << 10]).and_then(|()| file.sync_data()).is_ok() {
                written += 1;
                if ended.load(Ordering::Relaxed) {
                    break;
                }
            }
            written
        });
        std::thread::sleep(std::time::Duration::from_millis(500));
        end();
        ended.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    })
}

#[test]
fn a_starting_server_clears_what_its_predecessor_left() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    home.run_line("volume attach db").ok();
    let pid = std::fs::read_to_string(home.root().join("serve.lock")).unwrap().trim().parse().unwrap();
    kill_9(pid);
    home.serve();
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
    assert_eq!(home.show("db")["state"], "available");
    home.run_line("volume attach db").ok();
}

#[test]
fn a_live_volume_and_other_homes_are_never_touched() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.xfs")]) {
        return;
    }
    let (living, dead) = (Home::served(), Home::served());
    for home in [&living, &dead] {
        home.run_line("volume create db gp3:size=1GiB").ok();
        home.run_line("volume attach db").ok();
    }
    let before = left_of(&living.root());
    assert_ne!(before, Vec::<String>::new());
    let pid = std::fs::read_to_string(dead.root().join("serve.lock")).unwrap().trim().parse().unwrap();
    kill_9(pid);
    dead.run_line("volume list").refused(3, &["cleared: "]);
    living.run_line("serve").refused(3, &["already served"]);
    living.run_line("volume check").refused(3, &[]);
    assert_eq!(left_of(&living.root()), before);
    // A lock file that names another process proves nothing: the lock itself does.
    std::fs::write(living.root().join("serve.lock"), "1\n").unwrap();
    living.run_line("volume list").ok();
    living.run_line("serve").refused(3, &["already served"]);
    assert_eq!(left_of(&living.root()), before);
    std::fs::write(dead.root().join("serve.lock"), format!("{}\n", std::process::id())).unwrap();
    dead.run_line("volume list").refused(3, &["is not running"]);
}

#[test]
fn a_stop_while_mounted_writes_everything_back() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.ext4")]) {
        return;
    }
    let home = Home::served();
    let dir = home.sibling("mnt");
    home.run_line("volume create db gp3:size=1GiB").ok();
    let attach = ["volume", "attach", "db", "--mount", dir.to_str().unwrap(), "--fs", "ext4"];
    home.run(&attach).ok();
    std::fs::write(dir.join("unsynced"), vec![9; 8 << 20]).unwrap();
    home.run_line("serve --stop").ok();
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
    home.serve();
    home.run(&attach).ok();
    assert!(std::fs::read(dir.join("unsynced")).unwrap() == vec![9; 8 << 20]);
}

#[test]
fn volumes_with_the_names_of_files_of_the_home_are_cleared_like_all_others() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let names = [
        "a",
        "a.json",
        "a.json.json",
        "a.new",
        "a.json.new",
        "a.damaged",
        "a.json.damaged",
        "a.sock",
        "a.data",
        "a.journal",
        "a.lock",
        "run",
        "records",
        "store",
        "lab",
        "calibration.json",
        "calibration.store",
        "control.sock",
        "serve.lock",
        "aws",
        "aws.db",
        "aws.db-wal",
        "cloudwatch.db",
        "history.db",
        "endpoint",
    ];
    let home = Home::served();
    for round in 0..2 {
        for name in names {
            if round == 0 {
                home.run_line(&format!("volume create {name} gp3:size=1GiB")).ok();
            }
            home.run_line(&format!("volume attach {name}")).ok();
        }
        assert_ne!(left_of(&home.root()), Vec::<String>::new());
        if round == 0 {
            home.run_line("volume detach a.json").ok();
            home.run_line("volume attach a.json").ok();
            kill_9(std::fs::read_to_string(home.root().join("serve.lock")).unwrap().trim().parse().unwrap());
            let cleared = home.run_line("volume list").refused(3, &["is not running"]).stderr;
            for name in names {
                assert!(cleared.contains(&format!("of volume {name}, left by")), "{name}: {cleared}");
            }
        } else {
            home.run_line("serve --stop").ok();
        }
        assert_eq!(left_of(&home.root()), Vec::<String>::new());
        home.serve();
    }
}

#[test]
fn a_damaged_record_is_named_and_everything_else_is_cleared() {
    let home = Home::served();
    let socket = |name: &str| home.sibling(&format!("{name}.sock"));
    for name in ["db", "other"] {
        home.run_line(&format!("volume create {name} gp3:size=1GiB")).ok();
        home.run(&["volume", "attach", name, "--nbd", &format!("unix:{}", socket(name).display())]).ok();
    }
    kill_9(std::fs::read_to_string(home.root().join("serve.lock")).unwrap().trim().parse().unwrap());
    // As a power cut of the host leaves a file that was not synced.
    std::fs::write(home.root().join("records/db.json"), "").unwrap();
    let aside = home.root().join("records/db.json.damaged");
    let cleared = home
        .run_line("volume list")
        .refused(3, &["cleared: NBD socket", "is not running", "of volume other"]);
    assert!(cleared.stderr.contains("cleared: the record of volume db"), "{}", cleared.stderr);
    assert!(cleared.stderr.contains(aside.to_str().unwrap()), "{}", cleared.stderr);
    assert!(!socket("other").exists());
    let again = home.run_line("volume list").refused(3, &["is not running"]);
    assert!(!again.stderr.contains("cleared"), "{}", again.stderr);
    home.serve();
    home.run(&["volume", "attach", "db", "--nbd", &format!("unix:{}", socket("db").display())]).ok();
}
