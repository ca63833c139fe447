//! `ebbtide run` where no trial is needed: what it lists, plans and refuses. Trials themselves are the
//! lab's own tests.

use std::fs;

use crate::harness::{Home, Need, can};

#[test]
fn the_shipped_experiments_are_listed_and_each_can_be_shown_and_loaded() {
    let home = Home::new();
    let all = home.run(&["run", "--list", "--json"]).ok().json();
    let names: Vec<&str> = all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    for wanted in ["tuned-vs-default", "volume-types", "gp2-burst", "flush-settings", "instance-cap"] {
        assert!(names.contains(&wanted), "{wanted} is not in {names:?}");
    }
    for name in names {
        let text = home.run(&["run", name, "--show"]).ok().stdout;
        assert!(text.contains("title = "), "{name}: {text}");
    }
}

#[test]
fn an_unknown_experiment_is_refused_with_the_nearest_one() {
    let home = Home::new();
    home.run(&["run", "tuned-vs-defualt"])
        .refused(2, &["tuned-vs-defualt", "did you mean 'tuned-vs-default'?"]);
}

#[test]
fn an_unknown_key_of_a_file_is_refused_with_its_line_and_the_nearest_key() {
    let home = Home::new();
    let file = home.beside("mine.toml");
    fs::write(
        &file,
        "title = \"mine\"\n[load]\nconections = 4\n[arms.a]\n[arms.b.settings]\nsync_binlog = 0\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    home.run(&["run", file]).refused(2, &["mine.toml", "3", "conections", "connections"]);
}

#[test]
fn a_setting_without_a_value_and_a_server_that_is_none_are_refused() {
    let home = Home::new();
    home.run(&["run", "same-twice", "--set", "load.connections"]).refused(2, &["--set load.connections"]);
    home.run(&["run", "same-twice", "--server", "/bin/true"]).refused(3, &["/bin/true"]);
    home.run(&["run", "same-twice", "--server", "/nowhere/mysqld"]).refused(3, &["/nowhere/mysqld"]);
    home.run(&["run", "same-twice", "--measure", "1500ms"]).refused(2, &["whole seconds"]);
    assert!(!home.root().join("lab").exists(), "a refused run leaves nothing");
}

#[test]
fn a_check_says_what_would_run_in_the_servers_words_and_runs_nothing() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let plan = home.run(&["run", "tuned-vs-default", "--quick", "--check"]).ok().stdout;
    for text in ["innodb_log_file_size=67108864", "128 connections", "gp2:size=500GiB", "about "] {
        assert!(plan.contains(text), "'{text}' is not in: {plan}");
    }
    home.run(&["run", "tuned-vs-default", "--check", "--set", "tuned.io_capacity=7"])
        .refused(2, &["io_capacity", "7"]);
    home.run(&["run", "same-twice", "--check", "--volume", "gp3:size=1GiB,iops=99999"]).refused(2, &["iops"]);
    assert!(!home.root().join("lab").exists());
}

#[test]
fn a_run_that_was_never_begun_cannot_be_resumed() {
    let home = Home::new();
    let out = home.beside("out");
    home.run(&["run", "same-twice", "--resume", "--out", out.to_str().unwrap()])
        .refused(2, &["out", "holds no results", "without --resume"]);
    assert!(!out.exists(), "asking for results makes none");
}

#[test]
fn without_runs_there_is_no_prepared_data_to_list_or_delete() {
    let home = Home::new();
    assert_eq!(home.run(&["run", "--prepared"]).ok().line(), "no prepared data");
    home.run(&["run", "--delete-prepared", "prep-1"]).refused(2, &["prep-1", "--prepared"]);
    home.run(&["run", "--delete-prepared", "all"]).ok();
}
