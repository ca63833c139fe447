//! Volumes and snapshots as things with names: create, list, show, modify, delete, check.

use serde_json::Value;

use crate::harness::{Home, Need, Ran, can, tool};

/// A text without its wrapping.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_volume_is_created_listed_shown_and_deleted() {
    let home = Home::served();
    let created = home
        .run_line(
            "volume create db gp3:size=100GiB,iops=6000,throughput=250 --seed 7 --block-size 4096 --json",
        )
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
    let listed = home.run_line("volume list --json").ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["spec"], created["spec"]);
    assert_eq!(home.show("db"), created);
    let text = home.run_line("volume show db").ok().stdout;
    assert!(text.starts_with("db: gp3 of 100 GiB, available.\n"), "{text}");
    let stored = home.run_line("volume show db --show stored").ok().stdout;
    assert!(stored.starts_with("Stored\n") && stored.contains("\nseed     7\n"), "{stored}");
    let table = home.run_line("volume list").ok();
    assert!(table.stdout.starts_with("1 volume, 0 attached; $"), "{}", table.stdout);
    assert_eq!(home.run_line("volume delete db --json").ok().json()["deleted"], "db");
    assert_eq!(home.run_line("volume list").ok().line(), "no volumes");
}

#[test]
fn a_volume_shows_what_it_costs_where_it_is_created_shown_and_listed() {
    let home = Home::served();
    let spec = "gp3:size=500GiB,iops=6000,throughput=250";
    let created = home.run_line(&format!("volume create db {spec}")).ok();
    let cost = "$60.00 a month: 500 GiB $40.00, 3000 of 6000 IOPS $15.00, 125 of 250 MiB/s $5.00 (us-east-1, prices of \
                2026-10-06)";
    for text in [created.stdout, home.run_line("volume show db").ok().stdout] {
        assert!(in_one_line(&text).contains(&format!(" cost {cost}")), "{text}");
    }
    let irish = home.run_line("volume show db --region eu-west-1 --json").ok().json();
    let monthly = &irish["monthly_cost"];
    assert_eq!((&monthly["usd"], &monthly["region"]), (&Value::from(66.0), &Value::from("eu-west-1")));
    assert_eq!(monthly["as_of"], "2026-10-06");
    home.run_line("volume create scratch ideal:size=1GiB").ok();
    home.run_line("volume create old standard:size=20GiB").ok();
    let table = home.run_line("volume list").ok().stdout;
    let has = |name: &str, cost: &str| {
        let line = table.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        assert!(line.contains(&format!("  {cost}  ")), "{cost} is not in {line}");
    };
    has("db", "$60.00");
    has("scratch", "-");
    has("old", "$1.00 + I/O");
    let first = "3 volumes, 0 attached; $61.00 a month (list prices of us-east-1, 2026-10-06).\n";
    assert!(table.starts_with(first), "{table}");
    let listed = home.run_line("volume list --region ap-northeast-1 --json").ok().json();
    let usd = |name: &str| {
        let all = listed.as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["monthly_cost"]["usd"].clone()
    };
    assert_eq!(["db", "scratch", "old"].map(usd), [72.0.into(), Value::Null, Value::Null]);
    let known = ["no prices for region 'mars-1'", "ap-northeast-1, eu-west-1, us-east-1, us-west-2"];
    home.run_line("volume list --region mars-1").refused(2, &known);
    home.run_line("volume show db --region mars-1").refused(2, &known);
    home.run_line("volume create other gp3:size=1GiB --region mars-1").refused(2, &known);
    assert_eq!(
        home.run_line("volume list --json").ok().json().as_array().unwrap().len(),
        3,
        "nothing was created"
    );
}

#[test]
fn credits_are_said_as_the_time_that_they_last_and_as_those_that_the_volume_has() {
    let home = Home::served();
    let created = home.run_line("volume create db gp2:size=100GiB,credits=10%").ok().stdout;
    // A tenth of 33 min 20 s, and some seconds less than nine tenths of 5 h: it is idle meanwhile.
    let shown = home.run_line("volume show db").ok().stdout;
    for text in [&created, &shown] {
        let text = in_one_line(text);
        assert!(
            text.contains("credits 10.") && text.contains("%: 3 min at 3,000 IOPS, full after 4 h "),
            "{text}"
        );
    }
    assert!(shown.starts_with("db: gp2 of 100 GiB, available; credits 10."), "{shown}");
    let json = home.show("db");
    let view = &json["credits"];
    let full = view["full_in_s"].as_f64().unwrap();
    assert!((15_000.0..16_201.0).contains(&full), "{json}");
    assert_eq!((&view["ends_in_s"], &json["last_minute"]), (&Value::Null, &Value::Null), "{json}");
}

#[test]
fn the_answers_of_volumes_and_snapshots_fit_a_screen_of_60_80_and_120_columns() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=500GiB,iops=6000,throughput=250").ok();
    home.run_line("volume create old gp2:size=100GiB,credits=2%").ok();
    home.run_line("snapshot create monday --volume db").ok();
    home.run_line("volume create lazy gp3:size=500GiB --snapshot monday").ok();
    for (line, first) in [
        ("volume list", "3 volumes, 0 attached; "),
        ("volume show old", "old: gp2 of 100 GiB"),
        ("volume show lazy --details", "lazy: gp3 of 500 GiB"),
        ("snapshot list", "1 snapshot; "),
    ] {
        for columns in [60, 80, 120] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut command = home.command(&words);
            let shown = Ran::of(command.env("COLUMNS", columns.to_string()).output().unwrap()).ok().stdout;
            assert!(shown.starts_with(first), "{line}: {shown}");
            let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= columns, "{line}: {longest} columns of {columns}\n{shown}");
            assert!(columns < 80 || shown.lines().count() <= 24, "{line}: {shown}");
        }
    }
    let colored = home.run_line("volume list --color always").ok().stdout;
    assert!(colored.starts_with("\u{1b}[1m3 volumes"), "{colored}");
}

#[test]
fn a_home_brings_its_own_prices_and_its_own_region() {
    let home = Home::served();
    let own = "default_region = \"eu-west-1\"\n[[override]]\nregion = \"eu-west-1\"\ntype = \"gp3\"\n\
               reason = \"our contract\"\nsource = \"a private pricing addendum\"\ndate = \"2026-11-01\"\n\
               set = { gb_month = \"0.05\" }\n";
    std::fs::write(home.root().join("catalog.toml"), own).unwrap();
    let created = home.run_line("volume create db gp3:size=100GiB --json").ok().json();
    let monthly = &created["monthly_cost"];
    assert_eq!((&monthly["usd"], &monthly["region"]), (&Value::from(5.0), &Value::from("eu-west-1")));
    assert_eq!(monthly["overridden"], "our contract");
    let text = home.run_line("volume show db").ok().stdout;
    let cost = "$5.00 a month: 100 GiB $5.00 (eu-west-1, own prices of 2026-11-01)";
    assert!(in_one_line(&text).contains(cost), "{text}");
}

#[test]
fn a_spec_is_stored_with_its_defaults_and_gives_the_same_volume_again() {
    let home = Home::served();
    let first = home.run_line("volume create a raid0(2x,gp3:size=250GiB) --json");
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
    home.run_line("volume create db gp3:size=10GiB").ok();
    let taken = home.run_line("snapshot create monday --volume db --json").ok().json();
    assert_eq!(taken["from_volume"], "db");
    assert_eq!(taken["size_bytes"], 10_u64 << 30);
    assert_eq!(home.run_line("snapshot list --json").ok().json()[0]["name"], "monday");
    let restored = home.run_line("volume create copy gp3:size=20GiB --snapshot monday --json").ok().json();
    assert_eq!(restored["from_snapshot"], "monday");
    home.run_line("volume create small gp3:size=9GiB --snapshot monday")
        .refused(2, &["needs 10 GiB", "hint: give it size=10GiB or more"]);
    home.run_line("snapshot create monday --volume db").refused(2, &["exists already"]);
    home.run_line("volume delete db").ok();
    home.run_line("snapshot delete monday").ok();
    assert_eq!(home.run_line("snapshot list").ok().line(), "no snapshots");
    assert_eq!(home.show("copy")["size_bytes"], 20_u64 << 30);
}

#[test]
fn a_volume_from_a_snapshot_shows_how_much_of_it_is_loaded_and_since_when() {
    let home = Home::served();
    home.run_line("volume create db ideal:size=1GiB").ok();
    home.run_line("snapshot create monday --volume db").ok();
    let lazy = home.run_line("volume create lazy gp3:size=1GiB --snapshot monday").ok().stdout;
    // Nothing was written: nothing is to be loaded.
    assert!(in_one_line(&lazy).contains(" loaded all 0 B of the snapshot; lazy, since 2"), "{lazy}");
    let shown = home.show("lazy");
    assert_eq!(shown["initialization"]["mode"], "lazy", "{shown}");
    assert_eq!(shown["initialization"]["state"], "completed", "{shown}");
    assert!(shown["initialization"]["since"].as_str().unwrap().ends_with('Z'), "{shown}");
    assert!(in_one_line(&home.run_line("volume show lazy").ok().stdout).contains(" loaded all 0 B"));
    let create = "volume create rated gp3:size=1GiB --snapshot monday --initialization rate=250MiB/s --json";
    assert_eq!(home.run_line(create).ok().json()["initialization"]["mode"], "rate=250MiB/s");
    let create = "volume create whole gp3:size=1GiB --snapshot monday --initialization none --json";
    assert_eq!(home.run_line(create).ok().json()["initialization"], Value::Null);
    assert_eq!(home.show("db")["initialization"], Value::Null);
}

#[test]
fn a_wrong_initialization_is_refused_with_what_is_possible() {
    let home = Home::served();
    home.run_line("volume create db ideal:size=1GiB").ok();
    home.run_line("snapshot create monday --volume db").ok();
    let create = |rest: &str| home.run_line(&format!("volume create copy gp3:size=1GiB {rest}"));
    for rate in ["99", "301MiB/s"] {
        create(&format!("--snapshot monday --initialization rate={rate}"))
            .refused(2, &["100 to 300 MiB/s", "hint: Give rate=100MiB/s to rate=300MiB/s"]);
    }
    create("--snapshot monday --initialization fast").refused(2, &["'fast'", "lazy, none, or a rate"]);
    create("--initialization lazy").refused(2, &["--snapshot"]);
    create("--initialization none").refused(2, &["--snapshot"]);
}

#[test]
fn a_modification_takes_effect_and_follows_the_rules_of_aws() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=100GiB").ok();
    let changed = home.run_line("volume modify db gp3:size=200GiB,iops=6000 --json").ok().json();
    assert_eq!(changed["size_bytes"], 200_u64 << 30);
    assert_eq!(changed["figures"]["iops"], 6000);
    assert_eq!(changed["modification"]["state"], "completed");
    home.run_line("volume modify db gp3:size=100GiB").refused(2, &[]);
    let slow = home.run_line("volume modify db gp3:iops=12000 --optimizing 10m --json").ok().json();
    assert_eq!(slow["modification"]["state"], "optimizing");
    home.run_line("volume modify db gp3:iops=13000").refused(2, &[]);
}

#[test]
fn the_check_of_a_stopped_store_is_clean_and_that_of_a_damaged_one_is_not() {
    let home = Home::served();
    home.run_line("volume create db gp3:size=1GiB").ok();
    home.run_line("volume check").refused(3, &["serve --stop"]);
    home.run_line("serve --stop").ok();
    let clean = home.run_line("volume check --json").ok().json();
    assert_eq!((&clean["clean"], &clean["volumes"]), (&true.into(), &1.into()));
    let text = home.run_line("volume check").ok();
    assert!(text.stdout.ends_with("\nmetadata clean; data carry no checksums\n"), "{}", text.stdout);
    home.run_line("volume check nobody").refused(2, &["nobody"]);
    let manifest = home.root().join("store/manifest");
    let mut bytes = std::fs::read(&manifest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] = !bytes[middle];
    std::fs::write(&manifest, bytes).unwrap();
    let damaged = home.run_line("volume check --json");
    assert_eq!(damaged.code, 1, "{} {}", damaged.stdout, damaged.stderr);
    let damaged = damaged.json();
    assert_eq!(damaged["clean"], false);
    assert_eq!(damaged["damages"][0]["file"], manifest.to_str().unwrap());
    home.run_line("serve --detach").refused(3, &["manifest is damaged at byte"]);
}

#[test]
fn service_times_are_fitted_from_a_fio_result_and_kept_with_earlier_ones() {
    if !can(&[Need::Tool("fio")]) {
        return;
    }
    let home = Home::new();
    let (file, result) = (home.sibling("file"), home.sibling("result.json"));
    let output = |name: &str, path: &std::path::Path| format!("--{name}={}", path.display());
    tool(
        "fio",
        &[
            "--name=probe",
            "--rw=randread",
            "--bs=16k",
            "--size=16m",
            "--runtime=1",
            "--time_based",
            "--output-format=json",
            &output("filename", &file),
            &output("output", &result),
        ],
    );
    for kind in ["gp3", "io1"] {
        let arguments = ["volume", "calibrate", "--fio", result.to_str().unwrap(), "--type", kind, "--json"];
        let fitted = home.run(&arguments).ok().json();
        assert!(fitted["read"].as_array().unwrap().len() > 3, "{fitted}");
        assert_eq!(fitted["write"], Value::Null);
        assert!(fitted["warnings"][0].as_str().unwrap().contains("direct=1"), "{fitted}");
    }
    let overrides = std::fs::read_to_string(home.root().join("catalog.toml")).unwrap();
    assert!(overrides.contains("\"gp3\"") && overrides.contains("\"io1\""), "{overrides}");
    home.serve();
    home.run_line("volume create db gp3:size=1GiB").ok();
    let kind = ["volume", "calibrate", "--fio", result.to_str().unwrap(), "--type", "gp9"];
    home.run(&kind).refused(2, &["gp9"]);
    std::fs::write(home.root().join("catalog.toml"), "nonsense").unwrap();
    home.run_line("volume create other gp3:size=1GiB").refused(3, &["catalog.toml"]);
}

#[test]
fn a_check_needs_no_home_that_can_be_written_and_changes_nothing() {
    if !can(&[Need::BlockDevices]) {
        return;
    }
    let home = Home::on_a_small_disk(24);
    home.serve();
    home.run_line("volume create db gp3:size=1GiB").ok();
    home.run_line("serve --stop").ok();
    let root = home.root();
    let seen = || tool("find", &[root.to_str().unwrap(), "-printf", "%p %m %s %T@ %C@\n"]);
    let before = seen();
    home.run_line("volume check").ok();
    assert_eq!(seen(), before);
    tool("mount", &["-o", "remount,ro", root.to_str().unwrap()]);
    assert!(home.run_line("volume check").ok().stdout.contains("metadata clean"));
    home.run_line("volume check db").ok();
    home.run_line("volume check none").refused(2, &["no volume 'none'"]);
}
