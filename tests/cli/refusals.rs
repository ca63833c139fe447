//! Refusals of one kind end with one exit code, whichever command refuses; and what is missing is reported before
//! anything runs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use ebbtide_device::store::{StoreOptions, VolumeStore};
use serde_json::json;

use crate::harness::{EBBTIDE, Home, Need, Ran, can};

/// A kind of refusal, its exit code, and commands that are refused so.
type Kind = (&'static str, i32, &'static [&'static str]);

const KINDS: [Kind; 5] = [
    (
        "the request names a file or a directory that is not there",
        2,
        &[
            "run /nowhere/mine.toml",
            "run same-twice --server /nowhere/mysqld",
            "run --compare /nowhere/a /nowhere/b",
            "run same-twice --against /nowhere/a",
            "run same-twice --resume --out /nowhere/a",
            "crash /nowhere/mine.toml",
            "crash ssd-cache --server /nowhere/mysqld",
            "crash ssd-cache --resume --out /nowhere/a",
            "simulate --volume gp3:size=1GiB --job /nowhere/job.fio",
            "volume calibrate --fio /nowhere/fio.json --type gp3",
        ],
    ),
    (
        "the request names something that Ebbtide does not have",
        2,
        &[
            "run no-such-experiment",
            "run same-twice --arms nobody",
            "run --delete-prepared prep-1",
            "crash no-such-experiment",
            "crash --delete-kept 12ab",
            "crash --replay 12ab",
            "volume check nobody",
            "simulate --volume gp9:size=1GiB --job rw=randread,runtime=1s",
            "load run oltp_nothing",
            "load run tpcc --trx-level=ru",
            "load run tpcc --statements=few",
            "load check oltp_read_write",
        ],
    ),
    (
        "a value is out of its range",
        2,
        &[
            "run same-twice --set trial.repeats=0",
            "run same-twice --measure 1500ms",
            "crash ssd-cache --set crash.cuts=0",
            "crash ssd-cache --checkers 0",
            "crash --replay xyz",
            "simulate --volume gp3:size=1GiB,iops=99999 --job rw=randread,runtime=1s",
            "load run oltp_read_only --time=-1",
            "load run oltp_update_index --index-updates=0 --mysql-socket=/nowhere/mysqld.sock",
            "load run oltp_update_non_index --non-index-updates=0 --mysql-socket=/nowhere/mysqld.sock",
            "load prepare --threads=0",
            "load prepare tpcc --warehouses=0",
            "load prepare tpcc --threads=0",
            "load run tpcc --warehouses=9001",
            "load check tpcc --warehouses=0",
        ],
    ),
    (
        "the program that should be the server is none",
        2,
        &["run same-twice --server /bin/true", "crash ssd-cache --server /bin/true"],
    ),
    (
        "no server answers",
        3,
        &[
            "volume list",
            "volume detach db",
            "snapshot list",
            "serve --stop",
            "load prepare --mysql-socket=/nowhere/mysqld.sock",
            "load run tpcc --mysql-socket=/nowhere/mysqld.sock",
            "load check tpcc --mysql-socket=/nowhere/mysqld.sock",
            "load run oltp_read_only --mysql-socket=/nowhere/mysqld.sock",
            "crash --candidate --mysql-socket=/nowhere/mysqld.sock",
        ],
    ),
];

#[test]
fn refusals_of_one_kind_end_with_one_exit_code() {
    let home = Home::new();
    for (kind, code, commands) in KINDS {
        for command in commands {
            let ran = home.run_line(command);
            assert_eq!(ran.code, code, "{kind}: {command}\n{}{}", ran.stdout, ran.stderr);
            assert!(ran.stderr.starts_with("error: "), "{command}: {}", ran.stderr);
        }
    }
}

#[test]
fn overrides_of_a_home_that_mean_nothing_are_no_fault_of_the_request() {
    let home = Home::new();
    std::fs::create_dir_all(home.root()).unwrap();
    std::fs::write(home.root().join("catalog.toml"), "nonsense = [").unwrap();
    let mut commands = vec![
        "simulate --volume gp3:size=1GiB --job rw=randread,runtime=1s",
        "volume create db gp3:size=1GiB",
        "crash --candidate --mysql-socket=/nowhere/mysqld.sock --volume gp3:size=1GiB",
    ];
    if can(&[Need::Tool("mariadbd")]) {
        commands.extend(["run same-twice --check", "crash ssd-cache --check"]);
    }
    for command in commands {
        home.run_line(command)
            .refused(3, &["overrides cannot be used", "catalog.toml", "hint: mend or remove"]);
    }
}

#[test]
fn a_volume_that_is_used_or_stalled_refuses_with_one_exit_code_and_the_command_itself_does_not_use_it() {
    if !can(&[Need::BlockDevices, Need::Tool("mkfs.ext4")]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let dir = home.sibling("mnt");
    let attach = ["volume", "attach", "db", "--mount", dir.to_str().unwrap(), "--fs", "ext4"];
    home.run(&attach).ok();
    let inside = |words: &str| {
        let mut command = home.command(&words.split(' ').collect::<Vec<_>>());
        Ran::of(command.current_dir(&dir).output().unwrap())
    };
    let mut user = Command::new("sleep").arg("600").current_dir(&dir).spawn().unwrap();
    for words in ["volume detach db", "serve --stop"] {
        let refused = inside(words).refused(3, &["sleep (process", "what was written before is flushed"]);
        assert!(!refused.stderr.contains("ebbtide (process"), "{}", refused.stderr);
    }
    user.kill().unwrap();
    user.wait().unwrap();
    home.run_line("volume fault db stall=on").ok();
    for words in ["volume detach db", "serve --stop"] {
        home.run_line(words).refused(3, &["stalled"]);
    }
    home.run_line("volume fault db stall=off").ok();
    inside("volume detach db").ok();
    home.run(&attach).ok();
    inside("serve --stop").ok();
}

#[test]
fn force_flushes_what_was_written_before_and_fails_what_is_written_after() {
    use std::io::{Read as _, Write as _};
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    for (number, force) in [(1, "volume detach db --force"), (2, "serve --stop --force")] {
        let device = home.run_line("volume attach db").ok();
        let mut open = std::fs::File::options().write(true).open(device.line()).unwrap();
        open.write_all(&[number; 8192]).unwrap();
        home.run_line(force).ok();
        let _ = open.write_all(&[9; 8192]);
        open.sync_all().expect_err("what is written after it is written nowhere");
        drop(open);
        if number == 2 {
            home.serve();
        }
        let device = home.run_line("volume attach db").ok();
        let mut found = [0; 8192];
        std::fs::File::open(device.line()).unwrap().read_exact(&mut found).unwrap();
        assert_eq!(found, [number; 8192], "{force}");
        home.run_line("volume detach db").ok();
    }
}

#[test]
fn prepared_data_and_kept_images_are_listed_while_a_run_has_them() {
    let home = Home::new();
    let lab = ebbtide_device::host::Home::open(&home.root().join("lab")).unwrap();
    let _lock = lab.lock().unwrap();
    let store = VolumeStore::open(&lab.store_dir(), StoreOptions::default()).unwrap();
    store.create_volume("v", 1 << 20, json!(null)).unwrap();
    store.snapshot("v", "prep-1", json!({})).unwrap();
    let listed = home.run_line("run --prepared --json").ok().json();
    assert_eq!(listed[0]["name"], "prep-1", "{listed}");
    assert_eq!(home.run_line("crash --kept --json").ok().json(), json!([]));
    home.run_line("run --delete-prepared prep-1").refused(3, &["another run is under way"]);
    assert_eq!(store.snapshots().len(), 1);
}

#[test]
fn listings_of_a_home_that_is_not_there_are_empty_and_make_none() {
    let home = Home::new();
    for (words, text) in [("run --prepared", "no prepared data"), ("crash --kept", "no images are kept")] {
        assert_eq!(home.run_line(words).ok().line(), text);
        assert_eq!(home.run_line(&format!("{words} --json")).ok().json(), json!([]));
    }
    assert!(!home.root().exists());
}

/// The program as another user runs it, from a place and with a home that this user can reach.
fn as_nobody(dir: &Path, words: &[&str]) -> Ran {
    let program = dir.join("ebbtide");
    // Another user may not be able to enter the directory of the build.
    if !program.exists() {
        std::fs::copy(EBBTIDE, &program).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).args(words);
    let output = command.env("EBBTIDE_HOME", dir.join("home")).current_dir(dir).output().unwrap();
    Ran::of(output).with(words)
}

#[test]
fn without_root_a_check_and_a_run_name_what_is_missing_and_nothing_is_begun() {
    if !can(&[Need::BlockDevices, Need::Tool("mariadbd"), Need::Tool("setpriv")]) {
        return;
    }
    let dir = tempfile::Builder::new().prefix("ebbtide-cli-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for experiment in [["run", "same-twice"], ["crash", "ssd-cache"]] {
        let check = as_nobody(dir.path(), &[&experiment[..], &["--check"]].concat());
        assert_eq!(check.code, 3, "{}", check.stderr);
        for text in ["about ", "missing:", "root (this is user 65534)", "memory cgroups"] {
            assert!(check.stdout.contains(text), "'{text}' is not in: {}", check.stdout);
        }
        let check = as_nobody(dir.path(), &[&experiment[..], &["--check", "--json"]].concat());
        assert_eq!(check.code, 3, "{}", check.stderr);
        let missing = &check.json()["missing"];
        assert!(missing[0].as_str().unwrap().contains("root"), "{missing}");
        as_nobody(dir.path(), &[&experiment[..], &["--out", "out"]].concat())
            .refused(3, &["root (this is user 65534)", "memory cgroups", "hint: run it as root"]);
        assert!(!dir.path().join("out").exists());
    }
}
