//! Volumes and snapshots as things with names: create, list, show, modify, delete, check.

use serde_json::Value;

use crate::harness::Home;

#[test]
fn a_volume_is_created_listed_shown_and_deleted() {
    let home = Home::served();
    let created = home
        .say("volume create db gp3:size=100GiB,iops=6000,throughput=250 --seed 7 --block-size 4096 --json")
        .ok()
        .json();
    for (key, value) in [
        ("name", Value::from("db")),
        ("state", "available".into()),
        ("size_bytes", (100_u64 << 30).into()),
        ("data_bytes", 0.into()),
        ("block_size", 4096.into()),
        ("seed", 7.into()),
        ("credit_pct", Value::Null),
        ("attachment", Value::Null),
        ("live", Value::Null),
    ] {
        assert_eq!(created[key], value, "{key} in {created}");
    }
    assert_eq!(created["figures"]["iops"], 6000);
    assert!(created["spec"].as_str().unwrap().starts_with("gp3:size=100GiB"), "{created}");
    let listed = home.say("volume list --json").ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["spec"], created["spec"]);
    assert_eq!(home.show("db"), created);
    let text = home.say("volume show db").ok();
    assert!(text.stdout.contains("seed 7"), "{}", text.stdout);
    let table = home.say("volume list").ok();
    assert!(table.stdout.starts_with("NAME"), "{}", table.stdout);
    assert_eq!(home.say("volume delete db --json").ok().json()["deleted"], "db");
    assert_eq!(home.say("volume list").ok().line(), "no volumes");
}

#[test]
fn a_spec_is_stored_with_its_defaults_and_gives_the_same_volume_again() {
    let home = Home::served();
    let first = home.say("volume create a raid0(2x,gp3:size=250GiB) --json");
    // The spec has a blank, which is why it is one argument here.
    assert_eq!(first.code, 2, "{}", first.stderr);
    let first = home.run(&["volume", "create", "a", "raid0(2x gp3:size=250GiB)", "--json"]).ok().json();
    assert_eq!(first["size_bytes"], 500_u64 << 30);
    let spec = first["spec"].as_str().unwrap();
    let second = home.run(&["volume", "create", "b", spec, "--json"]).ok().json();
    assert_eq!(second["spec"], first["spec"]);
    assert_eq!(second["size_bytes"], first["size_bytes"]);
}

#[test]
fn snapshots_are_created_listed_used_and_deleted() {
    let home = Home::served();
    home.say("volume create db gp3:size=10GiB").ok();
    let taken = home.say("snapshot create monday --volume db --json").ok().json();
    assert_eq!(taken["from_volume"], "db");
    assert_eq!(taken["size_bytes"], 10_u64 << 30);
    assert_eq!(home.say("snapshot list --json").ok().json()[0]["name"], "monday");
    let restored = home.say("volume create copy gp3:size=20GiB --snapshot monday --json").ok().json();
    assert_eq!(restored["from_snapshot"], "monday");
    home.say("volume create small gp3:size=9GiB --snapshot monday")
        .refused(2, &["needs 10GiB", "hint: give it size=10GiB or more"]);
    home.say("snapshot create monday --volume db").refused(2, &["exists already"]);
    home.say("volume delete db").ok();
    home.say("snapshot delete monday").ok();
    assert_eq!(home.say("snapshot list").ok().line(), "no snapshots");
    assert_eq!(home.show("copy")["size_bytes"], 20_u64 << 30);
}

#[test]
fn a_modification_takes_effect_and_follows_the_rules_of_aws() {
    let home = Home::served();
    home.say("volume create db gp3:size=100GiB").ok();
    let changed = home.say("volume modify db gp3:size=200GiB,iops=6000 --json").ok().json();
    assert_eq!(changed["size_bytes"], 200_u64 << 30);
    assert_eq!(changed["figures"]["iops"], 6000);
    assert_eq!(changed["modification"]["state"], "completed");
    home.say("volume modify db gp3:size=100GiB").refused(2, &[]);
    let slow = home.say("volume modify db gp3:iops=12000 --optimizing 10m --json").ok().json();
    assert_eq!(slow["modification"]["state"], "optimizing");
    home.say("volume modify db gp3:iops=13000").refused(2, &[]);
}

#[test]
fn the_check_of_a_stopped_store_is_clean_and_that_of_a_damaged_one_is_not() {
    let home = Home::served();
    home.say("volume create db gp3:size=1GiB").ok();
    home.say("volume check").refused(3, &["serve --stop"]);
    home.say("serve --stop").ok();
    let clean = home.say("volume check --json").ok().json();
    assert_eq!((&clean["clean"], &clean["volumes"]), (&true.into(), &1.into()));
    home.say("volume check nobody").refused(2, &["nobody"]);
    let store = home.root().join("store");
    let (_, victim) = files(&store).into_iter().max().expect("a store has files");
    let mut bytes = std::fs::read(&victim).unwrap();
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
    std::fs::write(&victim, bytes).unwrap();
    let damaged = home.say("volume check");
    assert!([1, 3].contains(&damaged.code), "{} {}", damaged.code, damaged.stderr);
    let all = damaged.stdout + &damaged.stderr;
    assert!(all.contains(victim.file_name().unwrap().to_str().unwrap()), "{all}");
}

/// All files below a directory with their sizes, lock files excepted.
fn files(dir: &std::path::Path) -> Vec<(u64, std::path::PathBuf)> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .flat_map(|entry| {
            let meta = entry.metadata().unwrap();
            let path = entry.path();
            if meta.is_dir() { files(&path) } else { vec![(meta.len(), path)] }
        })
        .filter(|(_, path)| {
            !path.to_str().unwrap().contains("lock") && !path.to_str().unwrap().contains("data")
        })
        .collect()
}
