//! `ebbtide crash` where no power need be cut: what it lists and refuses. Cuts themselves are the lab's own
//! tests.

use std::fs;

use crate::harness::{Home, Need, can};

#[test]
fn the_shipped_experiments_are_listed_apart_from_those_of_the_lab() {
    let home = Home::new();
    let names = |command: &str| -> Vec<String> {
        let all = home.run(&[command, "--list", "--json"]).ok().json();
        all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let cuts = names("crash");
    assert_eq!(
        cuts,
        [
            "durability-matrix",
            "tpcc-crash",
            "binlog-recovery",
            "optimized-writes",
            "file-systems",
            "ssd-cache",
            "migration"
        ]
    );
    assert!(names("run").iter().all(|name| !cuts.contains(name)));
    for name in cuts {
        let text = home.run(&["crash", &name, "--show"]).ok().stdout;
        assert!(text.contains("[crash]"), "{name}: {text}");
    }
}

#[test]
fn each_lab_refuses_the_experiments_of_the_other_and_names_the_command_that_runs_them() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    home.run(&["run", "ssd-cache"]).refused(2, &["run it with 'ebbtide crash ssd-cache'"]);
    home.run(&["crash", "same-twice"]).refused(2, &["give the file a section [crash]"]);
    home.run(&["crash", "ssd-cache", "--set", "load.connections=65"]).refused(2, &["65", "1 to 64 clients"]);
    assert!(!home.root().join("lab").exists(), "a refused run leaves nothing");
}

#[test]
fn words_that_a_plan_of_cuts_does_not_know_are_refused() {
    let home = Home::new();
    let file = home.sibling("mine.toml");
    fs::write(&file, "[crash]\nmoments = [\"checkpint\"]\n").unwrap();
    home.run(&["crash", file.to_str().unwrap()]).refused(2, &["mine.toml", "did you mean 'checkpoint'?"]);
    home.run(&["crash", "durability-matrix", "--set", "crash.cuts=0"]).refused(2, &["1 to 1000000"]);
    home.run(&["crash", "durability-matrix", "--checkers", "0"]).refused(2, &["1..=64"]);
    home.run(&["crash", "durability-matrix", "--set", "crash.moments=redo,pgae"])
        .refused(2, &["'pgae' is none of", "did you mean 'page'?"]);
}

#[test]
fn a_check_prints_what_would_run_with_the_canaries_and_runs_nothing() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let check = ["crash", "durability-matrix", "--quick", "--check"];
    let asked = ["--arms", "flush-2", "--set", "crash.moments=redo, page", "--set", "crash.keep=7"];
    let text = home.run(&[&check[..], &asked[..]].concat()).planned().stdout;
    assert!(text.contains("canary torn-pages\n"), "{text}");
    assert!(text.contains("16 clients, 30 cuts (power-cut) at the moments redo, page\n"), "{text}");
    assert!(text.contains("7 arms, 1 stint of each"), "{text}");
    let json = home.run(&[&check[..], &asked[..], &["--json"]].concat()).planned().json();
    assert_eq!(json["experiment"]["arms"][3]["crash"]["keep"], 7, "{json}");
    assert!(json["estimate_s"].as_u64().unwrap() > 120, "{json}");
    assert!(!home.root().join("lab").exists());
}

#[test]
fn a_gain_that_cannot_be_measured_is_refused_before_anything_is_cut() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let gain = |name: &str| format!("crash.gain={name}");
    let crash = |set: &str| home.run(&["crash", "optimized-writes", "--quick", "--set", set]);
    crash(&gain("optimized-writes-gian")).refused(2, &["did you mean 'optimized-writes-gain'?"]);
    crash(&gain("durability-matrix")).refused(2, &["its power is cut"]);
    let file = home.sibling("mine.toml");
    fs::write(&file, "[volumes]\ndata = \"io1:size=10GiB,iops=99999\"\n").unwrap();
    crash(&gain(file.to_str().unwrap())).refused(2, &["io1"]);
    assert!(!home.root().join("lab").exists(), "a refused run leaves nothing");
}

#[test]
fn a_check_shows_the_gain_and_can_do_without_it() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let check = ["crash", "optimized-writes", "--quick", "--check"];
    let text = home.run(&check).planned().stdout;
    let expected =
        "after the cuts, what it gains: optimized-writes-gain, 16 arms, 2 trials of each, 12 s measured";
    assert!(text.contains(expected), "{text}");
    let plan = home.run(&[&check[..], &["--json"]].concat()).planned().json();
    assert_eq!(plan["gain"]["name"], "optimized-writes-gain");
    assert_eq!(plan["gain"]["arms"].as_array().map(Vec::len), Some(16), "{}", plan["gain"]);
    assert!(plan["gain"]["estimate_s"].as_u64() > Some(60), "{}", plan["gain"]);
    let plan = home.run(&[&check[..], &["--json", "--no-gain"]].concat()).planned().json();
    assert_eq!(plan.get("gain"), Some(&serde_json::Value::Null));
    let without = home.run(&[&check[..], &["--no-gain"]].concat()).planned().stdout;
    assert!(!without.contains("what it gains"), "{without}");
}

#[test]
fn nothing_is_gone_on_with_where_nothing_was_begun() {
    let home = Home::new();
    let none = home.sibling("none");
    let none = none.to_str().unwrap();
    home.run(&["crash", "ssd-cache", "--resume"]).refused(2, &["--out"]);
    home.run(&["crash", "ssd-cache", "--resume", "--out", none]).refused(2, &[none]);
}

#[test]
fn a_seed_that_is_none_or_of_which_nothing_is_kept_is_refused() {
    let home = Home::new();
    home.run(&["crash", "--replay", "xyz"]).refused(2, &["xyz", "hexadecimal"]);
    if can(&[Need::Tool("mariadbd")]) {
        home.run(&["crash", "--replay", "12ab"]).refused(2, &["00000000000012ab", "ebbtide crash --kept"]);
    }
    let kept = home.run(&["crash", "--kept", "--json"]).ok().json();
    assert_eq!(kept.as_array().map(Vec::len), Some(0));
}
