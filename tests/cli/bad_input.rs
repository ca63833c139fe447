//! Every wrong request: its exit code and its message.

use std::process::Command;

use crate::harness::{EBBTIDE, Home, Ran};

#[test]
fn a_request_outside_of_the_limits_is_refused_in_the_words_of_aws() {
    let home = Home::served();
    for (spec, text) in [
        ("gp3:size=100GiB,iops=80001", "80001"),
        ("gp3:size=1GiB,iops=3001", "ratio"),
        ("gp3:size=100GiB,throughput=3000", "throughput"),
        ("io1:size=100GiB,iops=99", "99"),
        ("gp2:size=100GiB,iops=3000", "iops"),
        ("st1:size=1GiB", "st1"),
        ("gp9:size=1GiB", "gp9"),
        ("gp3", "size"),
        ("gp3:size=1GB", "1GB"),
        ("gp3:size=1.5GiB", "a whole number"),
        ("raid0(16x ideal:size=16777215TiB)", "to 65536TiB"),
    ] {
        home.run(&["volume", "create", "db", spec]).refused(2, &[text, "error: "]);
    }
    assert_eq!(home.run_line("volume list").ok().line(), "no volumes");
}

#[test]
fn wrong_names_and_missing_things_are_named() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    for (words, texts) in [
        ("volume create db gp3:size=1GiB", &["'db' exists already"][..]),
        ("volume create ../db gp3:size=1GiB", &["'../db' is not a valid name"]),
        ("volume create .calibration gp3:size=1GiB", &["is not a valid name"]),
        ("volume create other gp3:size=1GiB --block-size 1000", &["1000", "512 or 4096"]),
        ("volume create other gp3:size=1GiB --snapshot none", &["no snapshot 'none'", "snapshot list"]),
        ("volume show none", &["no volume 'none'", "hint: 'ebbtide volume list'"]),
        ("volume attach none --nbd unix:/tmp/none.sock", &["no volume 'none'"]),
        ("volume attach db --instance r9.large --nbd unix:/tmp/none.sock", &["r9.large"]),
        ("volume attach db --nbd /tmp/none.sock", &["unix:PATH or tcp:HOST:PORT"]),
        ("volume detach db", &["'db' is not attached", "ebbtide volume attach db"]),
        ("volume detach none", &["no volume 'none'"]),
        ("volume delete none", &["no volume 'none'"]),
        ("volume modify none gp3:iops=4000", &["no volume 'none'"]),
        ("volume fault none clear", &["no volume 'none'"]),
        ("volume fault db clear", &["'db' is not attached"]),
        ("volume fault db explode", &["'explode' is no fault"]),
        ("volume crash-image db image", &["'db' is not attached"]),
        ("snapshot create s --volume none", &["no volume 'none'"]),
        ("snapshot delete none", &["no snapshot 'none'"]),
        ("volume attach db --mount /tmp/x", &["--fs xfs, ext4 or ext4-bigalloc"]),
        ("volume attach db --execute", &["--mount"]),
        ("volume calibrate --fio /nowhere.json --type gp3", &["/nowhere.json"]),
    ] {
        home.run_line(words).refused(2, texts);
    }
}

#[test]
fn a_refusal_is_json_too_where_json_is_asked_for() {
    let home = Home::served();
    let error = home.run_line("volume show none --json").refused(2, &[]).json();
    assert_eq!(error["error"]["exit"], "usage");
    assert!(error["error"]["chain"][0].as_str().unwrap().contains("'none'"), "{error}");
    for (words, what) in [
        ("volume show --json", "<NAME>"),
        ("--json volume lst", "'lst'"),
        ("volume list --json --no-such", "'--no-such'"),
        ("volume create db gp3:size=1GiB --json --seed x", "'x'"),
        ("volume --json", "requires a subcommand"),
    ] {
        let refused = home.run_line(words).refused(2, &[]);
        let error = &refused.json()["error"];
        assert_eq!(error["exit"], "usage", "{words}");
        assert!(error["chain"][0].as_str().unwrap().contains(what), "{words}: {error}");
        assert!(error["hint"].as_str().unwrap().contains("--help"), "{words}: {error}");
        assert!(!refused.stderr.is_empty(), "{words}: people read it on standard error");
    }
    let output = Command::new(EBBTIDE).args(["--json", "volume"]).output().unwrap();
    assert_eq!(Ran::of(output).refused(2, &[]).json()["error"]["chain"][0], "a command is missing");
}

#[test]
fn without_a_server_a_command_prints_how_to_start_one() {
    let home = Home::new();
    let refused = home.run_line("volume list").refused(3, &["is not running", "serve --home", "systemd"]);
    assert!(refused.stderr.contains(home.root().to_str().unwrap()));
    home.run_line("snapshot list").refused(3, &["is not running"]);
    home.run_line("volume create db gp3:size=1GiB").refused(3, &["is not running"]);
    home.run_line("volume create db gp3:size=1GiB,iops=9000").refused(2, &["ratio"]);
    home.run_line("serve --stop").refused(3, &["is not running"]);
}

#[test]
fn a_home_that_cannot_be_used_is_an_environment_error() {
    for words in [&["volume", "list"][..], &["serve"], &["serve", "--stop"]] {
        let output = Command::new(EBBTIDE).args(words).args(["--home", "/proc/nobody"]).output();
        Ran::of(output.unwrap()).refused(3, &["/proc/nobody", "EBBTIDE_HOME"]);
    }
}

#[test]
fn a_command_that_puts_nothing_into_a_home_makes_none() {
    let dir = tempfile::tempdir().unwrap();
    for (words, code, text) in [
        ("volume list", 3, "is not running"),
        ("volume show db", 3, "is not running"),
        ("volume create db gp3:size=1GiB", 3, "is not running"),
        ("volume create db gp9:size=1GiB", 2, "gp9"),
        ("volume calibrate", 3, "is not running"),
        ("volume check", 2, "no store in /"),
        ("snapshot list", 3, "is not running"),
        ("serve --stop", 3, "is not running"),
    ] {
        let mut command = Command::new(EBBTIDE);
        command.args(words.split(' ')).env("EBBTIDE_HOME", "rel").current_dir(&dir);
        Ran::of(command.output().unwrap())
            .refused(code, &[text, "rel"][..1 + usize::from(words != "volume create db gp9:size=1GiB")]);
        assert!(!dir.path().join("rel").exists(), "{words}");
    }
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let commands = [
        "serve",
        "snapshot create",
        "snapshot list",
        "snapshot delete",
        "volume create",
        "volume attach",
        "volume detach",
        "volume modify",
        "volume list",
        "volume show",
        "volume delete",
        "volume check",
        "volume fault",
        "volume crash-image",
        "volume calibrate",
    ];
    for command in commands {
        let output = Command::new(EBBTIDE).args(command.split(' ')).arg("--help").output().unwrap();
        let help = Ran::of(output).ok().stdout;
        assert!(help.contains("Example"), "{command}: {help}");
        assert!(help.contains(&format!("ebbtide {command}")), "{command}: {help}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_a_reader_that_left_is_none() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    for words in [
        "volume list",
        "volume list --json",
        "volume show db",
        "snapshot list",
        "snapshot create monday --volume db",
        "volume list --help",
    ] {
        home.run_into_a_full_disk(words).refused(3, &["standard output", "No space left"]);
    }
    assert_eq!(
        home.run_line("snapshot list --json").ok().json()[0]["name"],
        "monday",
        "it was done all the same"
    );
    for words in ["volume list", "volume show db --json", "snapshot list", "volume list --help"] {
        assert_eq!(home.run_into_a_closed_pipe(words).ok().stderr, "", "{words}");
    }
}

#[test]
fn a_name_or_a_path_that_is_taken_is_an_error_of_usage_everywhere() {
    let home = Home::served();
    home.run_line("volume create maria gp3:size=1GiB").ok();
    home.run_line("volume create db gp3:size=1GiB").ok();
    home.run_line("volume create db gp3:size=1GiB").refused(2, &["'db' exists already"]);
    let ordinary = home.sibling("ordinary");
    std::fs::write(&ordinary, "not a socket").unwrap();
    let nbd = |path: &std::path::Path| format!("unix:{}", path.display());
    home.run(&["volume", "attach", "maria", "--nbd", &nbd(&ordinary)])
        .refused(2, &[ordinary.to_str().unwrap(), "is not a socket"]);
    assert_eq!(std::fs::read_to_string(&ordinary).unwrap(), "not a socket");
    let socket = nbd(&home.sibling("maria.sock"));
    home.run(&["volume", "attach", "maria", "--nbd", &socket]).ok();
    home.run(&["volume", "attach", "db", "--nbd", &socket]).refused(2, &["is in use by another server"]);
    home.run_line("volume crash-image maria db").refused(2, &["'db' exists already"]);
    home.run_line("volume crash-image maria Not/A/Name").refused(2, &["is not a valid name"]);
    home.run_line("snapshot create monday --volume maria").ok();
    home.run_line("snapshot create monday --volume maria").refused(2, &["'monday' exists already"]);
}

#[test]
fn a_name_is_refused_by_the_rule_that_the_help_gives() {
    let home = Home::served();
    let rule = "a-z, 0-9, '.', '_' and '-'";
    for words in ["volume create", "volume crash-image", "snapshot create"] {
        let help = home.run_line(&format!("{words} --help")).ok().stdout;
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(rule) && help.contains("at most 63"), "{words}: {help}");
    }
    home.run_line("volume create Db gp3:size=1GiB")
        .refused(2, &["'Db' is not a valid name", rule, "1 to 63"]);
    home.run_line("volume create 0.a_b-c gp3:size=1GiB").ok();
    home.run_line("snapshot create Monday --volume 0.a_b-c")
        .refused(2, &["'Monday' is not a valid name", rule]);
}

#[test]
fn control_characters_of_a_request_never_reach_the_terminal() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let bad = "x\u{1b}[31m\u{7}\u{9b}2J\r\nerror: y";
    for arguments in [
        &["volume", "create", bad, "gp3:size=1GiB"][..],
        &["volume", "create", "other", bad],
        &["volume", "create", "other", "gp3:size=1GiB", "--snapshot", bad],
        &["volume", "create", "other", "gp3:size=1GiB", "--seed", bad],
        &["volume", "show", bad],
        &["volume", "detach", bad],
        &["volume", "fault", "db", bad],
        &["volume", "attach", "db", "--nbd", bad],
        &["volume", "calibrate", "--fio", bad, "--type", "gp3"],
        &["volume", bad],
        &["snapshot", "create", bad, "--volume", "db"],
        &["snapshot", "delete", bad],
        &["simulate", bad],
        &["run", bad],
        &["crash", bad],
    ] {
        let refused = home.run(arguments);
        assert!([2, 3].contains(&refused.code), "{arguments:?}: {refused:?}");
        let stderr = &refused.stderr;
        assert!(!stderr.contains(|c: char| c.is_control() && c != '\n'), "{arguments:?}: {stderr:?}");
        let mut messages = stderr.lines().filter(|line| line.starts_with("error: "));
        assert!(messages.next().is_some() && messages.all(|line| !line.contains("error: y")), "{stderr:?}");
    }
    home.run(&["volume", "show", bad]).refused(2, &[r"x\u{1b}[31m\u{7}\u{9b}2J\u{d}"]);
}
