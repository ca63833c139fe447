//! `ebbtide predict --profile-from`: from each source to a profile, and from that to a prediction.

use std::path::Path;
use std::process::{Command, Output};

use ebbtide_lab::experiment::Role;
use ebbtide_lab::results::ResultsDatabase;
use ebbtide_load::tpcc::Statements;
use ebbtide_observe::{Facts, Host, Observation, Origin, Rates, Span, Variables, Volumes};
use serde_json::{Value, json};

use crate::lab_run::{Measured, arm, run};
use ebbtide_testing::schema::assert_documented;

fn predict(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebbtide"))
        .env("EBBTIDE_HOME", "/nonexistent/home")
        .arg("predict")
        .args(arguments)
        .output()
        .expect("the program that was just built runs")
}

/// What it prints, where it ends with this code.
fn printed(arguments: &[&str], code: i32) -> String {
    let output = predict(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("the output is text")
}

/// The error of a refusal with exit code 2.
fn refused(arguments: &[&str]) -> String {
    let output = predict(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).expect("an error is text")
}

fn json_of(command: &str, arguments: &[&str], code: i32) -> Value {
    let text = printed(&[arguments, &["--json"]].concat(), code);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_documented(&command.split(' ').collect::<Vec<_>>(), &value);
    value
}

/// Predicts with a profile, and returns transactions a second and the whole answer.
fn predicted(profile: &Path, volume: &str) -> (f64, Value) {
    let arguments = [profile.to_str().unwrap(), "--volume", volume, "--for", "1m"];
    let answer = json_of("predict", &arguments, 0);
    (answer["volumes"][0]["points"][0]["tps"].as_f64().unwrap(), answer)
}

#[test]
fn a_run_of_the_lab_becomes_a_profile_that_predicts_its_other_arms() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let (dir, file) = (folder.path().join("run"), folder.path().join("lab.toml"));
    let arms = [
        arm("3000", "gp3:size=500GiB", 18.0, 15.0),
        arm("6000", "gp3:size=500GiB,iops=6000", 36.0, 15.0),
        arm("odd", "gp3:size=500GiB,iops=6000", 36.0, 75.0),
        Measured {
            options: &["innodb_buffer_pool_size=268435456"],
            ..arm("other", "gp3:size=500GiB", 18.0, 15.0)
        },
        arm("two", "gp3:size=500GiB", 18.0, 15.0),
        arm("undo", "gp3:size=500GiB", 18.0, 15.0),
    ];
    let mut run = run(&arms);
    run.experiment.arms[4].volumes.insert(Role::Redo, "gp3:size=10GiB".into());
    run.experiment.arms[5].volumes.insert(Role::Undo, "gp3:size=10GiB".into());
    ResultsDatabase::create(&dir, &run).unwrap();
    let (from, out) = (dir.to_str().unwrap(), file.to_str().unwrap());
    let made = json_of("predict --profile-from", &["--profile-from", from, "--out", out], 1);
    assert_eq!(made["points"], 3, "{made}");
    let odd = made["contradicting"][0].as_str().unwrap();
    assert!(odd.contains("point 3 (odd)") && odd.contains("pages read"), "{odd}");
    let notes = made["notes"].to_string();
    for part in [
        "one share of 8",
        "arm other is left out: its server's settings differs",
        "arm undo is left out: its undo has a volume of its own",
    ] {
        assert!(notes.contains(part), "no '{part}' in {notes}");
    }
    let text = std::fs::read_to_string(&file).unwrap();
    for part in [
        "flavour = \"mariadb-10.5\"",
        "kind = \"oltp_read_write\"",
        "table_size = 4000000",
        "rand_type = \"uniform\"",
        "divided_by = 8",
        "log_bin = false",
        "redo_bytes = 3000.0",
        "# point 3 (odd) contradicts",
        "volume = \"data=gp3:size=500GiB,redo=gp3:size=10GiB\"",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    // 375 and 750 IOPS by transactions of 15 reads and 5 writes.
    let (slow, answer) = predicted(&file, "gp3:size=500GiB");
    let (fast, _) = predicted(&file, "gp3:size=500GiB,iops=6000");
    assert_eq!(answer["divided_by"], 8);
    assert!((14.0..23.0).contains(&slow) && (1.8..2.2).contains(&(fast / slow)), "{slow} {fast}");
    // The directory itself does as well as the profile that is made of it.
    let direct = json_of("predict", &[from, "--volume", "gp3:size=500GiB", "--for", "1m"], 0);
    let direct_tps = direct["volumes"][0]["points"][0]["tps"].as_f64().unwrap();
    assert!((direct_tps / slow - 1.0).abs() < 0.01, "{direct_tps} {slow}");
    let said = printed(&[from, "--volume", "gp3:size=500GiB", "--for", "1m", "--show", "calibration"], 0);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Made with ") && said.contains("arm other is left out"), "{said}");
    let error = refused(&[out, "--volume", "gp3:size=500GiB", "--arm", "3000"]);
    assert!(error.contains("--arm: ") && error.contains("is a profile, which says it"), "{error}");
    let whole =
        json_of("predict", &[out, "--volume", "gp3:size=500GiB", "--for", "1m", "--divided-by", "1"], 0);
    assert!(whole["volumes"][0]["points"][0]["tps"].as_f64().unwrap() > slow * 4.0, "{whole}");
}

#[test]
fn logs_that_share_a_volume_in_the_lab_share_it_in_the_profile() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let (dir, file) = (folder.path().join("run"), folder.path().join("lab.toml"));
    let options = &["innodb_buffer_pool_size=268435456", "innodb_log_file_size=268435456", "log_bin=binlog"];
    let mut run = run(&[Measured { options, ..arm("both", "gp3:size=500GiB", 18.0, 15.0) }]);
    run.experiment.arms[0].volumes.insert(Role::Logs, "gp3:size=20GiB".into());
    ResultsDatabase::create(&dir, &run).unwrap();
    let (from, out) = (dir.to_str().unwrap(), file.to_str().unwrap());
    json_of("predict --profile-from", &["--profile-from", from, "--out", out], 0);
    let volume = "data=gp3:size=500GiB,redo+binlog=gp3:size=20GiB";
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&format!("volume = \"{volume}\"")) && text.contains("log_bin = true"), "{text}");
    let (tps, answer) = predicted(&file, volume);
    assert_eq!(answer["volumes"][0]["points"][0]["volumes"][1]["role"], "redo+binlog", "{answer}");
    assert!((9.0..27.0).contains(&tps), "{tps}");
}

#[test]
fn another_arm_is_asked_for_by_its_name_and_results_json_alone_is_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let other = Measured {
        options: &["innodb_buffer_pool_size=134217728"],
        ..arm("other", "gp3:size=500GiB", 18.0, 16.0)
    };
    let run = run(&[arm("3000", "gp3:size=500GiB", 18.0, 15.0), other]);
    let mut stored = ResultsDatabase::create(&dir, &run).unwrap();
    stored.finish(&ebbtide_lab::summary::summarize(&run)).unwrap();
    std::fs::remove_file(dir.join("results.sqlite")).unwrap();
    let from = dir.to_str().unwrap();
    let text = printed(&["--profile-from", from, "--arm", "other"], 0);
    assert!(
        text.contains("buffer_pool_size = \"128MiB\"") && text.contains("arm 3000 is left out"),
        "{text}"
    );
    let error = refused(&["--profile-from", from, "--arm", "none"]);
    assert!(error.contains("no arm of this name") && error.contains("3000, other"), "{error}");
}

#[test]
fn the_memory_of_the_servers_control_group_is_in_the_profile() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let buffered = Measured {
        options: &["innodb_buffer_pool_size=268435456"],
        ..arm("cached", "gp3:size=500GiB", 18.0, 15.0)
    };
    let mut run = run(&[arm("direct", "gp3:size=500GiB", 18.0, 15.0), buffered]);
    for arm in &mut run.experiment.arms {
        arm.instance.memory_bytes = 1 << 30;
    }
    for second in run.trials.iter_mut().flat_map(|trial| &mut trial.seconds) {
        second.host.memory_bytes = f64::from(400 << 20);
    }
    let dir = folder.path().join("run");
    ResultsDatabase::create(&dir, &run).unwrap();
    let of = |arm: &str| printed(&["--profile-from", dir.to_str().unwrap(), "--arm", arm], 0);
    // The pool of 256 MiB takes 282 MiB with its control structures.
    let direct = of("direct");
    assert!(direct.contains("memory = \"1GiB\"\nother_memory = \"118MiB\"\n"), "{direct}");
    // What the group had is the page cache too, where files may be in it.
    let cached = of("cached");
    assert!(cached.contains("memory = \"1GiB\"\n") && !cached.contains("other_memory"), "{cached}");
}

#[test]
fn arms_that_divide_their_statements_otherwise_or_have_another_page_cache_are_no_points() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let cached = |name| Measured {
        options: &["innodb_buffer_pool_size=268435456"],
        ..arm(name, "gp3:size=500GiB", 18.0, 15.0)
    };
    let notes = |name: &str, change: &dyn Fn(&mut ebbtide_lab::experiment::Arm)| {
        let mut run = run(&[cached("one"), cached("other")]);
        change(&mut run.experiment.arms[1]);
        let dir = folder.path().join(name);
        ResultsDatabase::create(&dir, &run).unwrap();
        let out = folder.path().join(format!("{name}.toml"));
        let words = ["--profile-from", dir.to_str().unwrap(), "--out", out.to_str().unwrap()];
        json_of("predict --profile-from", &words, 0)["notes"].to_string()
    };
    assert!(!notes("same", &|_| {}).contains("is left out"));
    let batched = notes("batched", &|arm| arm.load.statements = Statements::Batched);
    assert!(batched.contains("arm other is left out: its workload differs"), "{batched}");
    let memory = notes("memory", &|arm| arm.instance.memory_bytes *= 2);
    assert!(memory.contains("arm other is left out: its machine differs"), "{memory}");
}

#[test]
fn the_local_round_trip_and_an_emulated_network_are_in_the_profile() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let arms = ["local", "distant", "far"].map(|name| arm(name, "gp3:size=500GiB", 18.0, 15.0));
    let mut run = run(&arms);
    run.host.local_round_trip_us = Some(41.375);
    run.experiment.arms[1].load.round_trip_us = 1_000;
    run.experiment.arms[2].load.round_trip_us = 1_000;
    let store = |name: &str, run: &ebbtide_lab::record::LabRun| {
        let dir = folder.path().join(name);
        ResultsDatabase::create(&dir, run).unwrap();
        dir.to_str().unwrap().to_owned()
    };
    let dir = store("new", &run);
    let text = printed(&["--profile-from", &dir], 0);
    assert!(text.contains("round_trip_us = 41.38\n") && text.contains("name = \"local\""), "{text}");
    for left_out in ["distant", "far"] {
        let note = format!("arm {left_out} is left out: its network differs from that of local");
        assert!(text.contains(&note), "no '{note}' in {text}");
    }
    let text = printed(&["--profile-from", &dir, "--arm", "distant"], 0);
    assert!(text.contains("round_trip_us = 1041.0\n") && text.contains("name = \"far\""), "{text}");
    assert!(text.contains("arm local is left out: its network differs"), "{text}");
    assert!(!text.contains("older than"), "{text}");
    // Results of a version that did not measure it.
    run.host.local_round_trip_us = None;
    let old = store("old", &run);
    let text = printed(&["--profile-from", &old], 0);
    assert!(!text.contains("round_trip_us = ") && text.contains("# the results are older than"), "{text}");
    let text = printed(&["--profile-from", &old, "--arm", "far"], 0);
    assert!(text.contains("round_trip_us = 1000.0\n"), "{text}");
}

#[test]
fn a_workload_that_its_description_does_not_fit_is_taken_as_it_was_observed() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let (dir, file) = (folder.path().join("run"), folder.path().join("lab.toml"));
    // All rows fit the pool by far: nothing would be read.
    let mut run = run(&[arm("3000", "gp3:size=500GiB", 18.0, 15.0)]);
    run.experiment.data.rows = 1_000;
    ResultsDatabase::create(&dir, &run).unwrap();
    let text = printed(&["--profile-from", dir.to_str().unwrap(), "--out", file.to_str().unwrap()], 0);
    assert!(text.contains("taken as it was observed") && text.contains("1 measured point"), "{text}");
    let profile = std::fs::read_to_string(&file).unwrap();
    assert!(profile.contains("kind = \"observed\"") && profile.contains("reads = 15.0"), "{profile}");
    let (tps, _) = predicted(&file, "gp3:size=500GiB");
    assert!((14.0..23.0).contains(&tps), "{tps}");
}

/// A server with 200 transactions a second, each of which reads 5 pages and writes 2.5.
fn observation() -> Observation {
    let variables: Variables = [
        ("version", "8.0.36"),
        ("innodb_buffer_pool_size", "1073741824"),
        ("innodb_redo_log_capacity", "1073741824"),
        ("innodb_flush_method", "O_DIRECT"),
        ("log_bin", "ON"),
    ]
    .into_iter()
    .collect();
    let rates = Rates {
        commits: Some(200.0),
        write_statements: Some(800.0),
        read_statements: Some(2_000.0),
        page_reads: Some(1_000.0),
        page_writes: Some(500.0),
        redo_bytes: Some(600_000.0),
        binlog_bytes: Some(300_000.0),
        threads_running: Some(12.0),
        ..Rates::default()
    };
    Observation {
        facts: Some(Facts::of(&variables)),
        variables: Some(variables),
        span: Some(Span { began_unix_s: None, seconds: 600.0, restarted: false }),
        rates: Some(rates),
        volumes: Volumes::new(Some("gp3:size=500GiB".into())),
        host: Some(Host {
            processors: Some(4),
            threads_per_core: Some(2),
            busy_share: Some(0.2),
            memory_bytes: Some(16 << 30),
            memory_limit_bytes: Some(12 << 30),
            ..Host::default()
        }),
        ..Observation::of(Origin::Server { at: "/run/mysqld/mysqld.sock".into() })
    }
}

fn capture(file: &Path, observation: &Observation) {
    let bundle =
        json!({"format": "ebbtide-capture", "version": 1, "program": "test", "observation": observation});
    std::fs::write(file, bundle.to_string()).unwrap();
}

#[test]
fn a_capture_of_the_doctor_becomes_a_profile_that_predicts() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let (source, file) = (folder.path().join("db1.capture"), folder.path().join("db1.toml"));
    capture(&source, &observation());
    let (from, out) = (source.to_str().unwrap(), file.to_str().unwrap());
    let made = json_of("predict --profile-from", &["--profile-from", from, "--out", out], 0);
    assert_eq!((made["points"].as_u64(), made["file"].as_str()), (Some(1), Some(out)), "{made}");
    assert!(
        made["profile"].as_str().unwrap().contains("memory = \"12GiB\"\n"),
        "the limit of the group: {made}"
    );
    let (here, answer) = predicted(&file, "gp3:size=500GiB");
    let residual = answer["profile"]["residuals"][0].as_f64().unwrap();
    assert!((0.5..2.5).contains(&residual), "{answer}");
    let (slower, _) = predicted(&file, "gp2:size=100GiB,credits=0%");
    assert!(slower < here * 0.5, "{slower} {here}");
}

#[test]
fn what_a_source_lacks_is_named_with_where_to_get_it_and_can_be_added() {
    let folder = tempfile::tempdir().unwrap();
    let (source, file) = (folder.path().join("db1.capture"), folder.path().join("db1.toml"));
    let seen = Observation { volumes: Volumes::new(None), host: None, ..observation() };
    let rates = seen.rates.map(|rates| Rates { binlog_bytes: None, ..rates });
    capture(&source, &Observation { rates, ..seen });
    let (from, out) = (source.to_str().unwrap(), file.to_str().unwrap());
    let error = refused(&["--profile-from", from, "--out", out]);
    for part in [
        "machine.vcpus (`nproc`",
        "workload.binlog_bytes (the growth of the files in SHOW BINARY LOGS",
        "point.volume (",
        "point.cpu_pct (us + sy of vmstat",
        "--set machine.vcpus=VALUE",
    ] {
        assert!(error.contains(part), "no '{part}' in {error}");
    }
    assert!(!file.exists(), "no half of a profile is written");
    let add = |text: &'static str| ["--set", text];
    let given = [
        add("machine.vcpus=4"),
        add("workload.binlog_bytes=1500"),
        add("point.volume=gp3:size=500GiB"),
        add("point.cpu_pct=20"),
    ];
    printed(&[&["--profile-from", from, "--out", out][..], &given.concat()].concat(), 0);
    assert!(predicted(&file, "gp3:size=500GiB").0 > 0.0);
    let error = refused(&["--profile-from", from, "--set", "machine.vcpu=4"]);
    assert!(error.contains("unknown field `vcpu`"), "{error}");
    let error = refused(&["--profile-from", from, "--set", "machine"]);
    assert!(error.contains("KEY=VALUE"), "{error}");
    let error = refused(&["--profile-from", from, "--volume", "gp3:size=500GiB"]);
    assert!(error.contains("--volume"), "{error}");
    let error = refused(&["--volume", "gp3:size=500GiB"]);
    assert!(error.contains("PROFILE"), "{error}");
}

#[test]
fn status_samples_with_iostat_become_a_profile_that_predicts() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let variables = "version\t10.11.19-MariaDB\ninnodb_buffer_pool_size\t1073741824\nlog_bin\tOFF\n\
                     innodb_log_file_size\t536870912\ninnodb_flush_method\tO_DIRECT\nsync_binlog\t0\n";
    std::fs::write(at("variables"), variables).unwrap();
    let status = |n: u64| {
        format!(
            "Uptime\t{}\nCom_commit\t{}\nCom_select\t{}\nCom_update\t{}\nCom_insert\t0\nCom_insert_select\t0\n\
             Com_delete\t0\nCom_delete_multi\t0\nCom_update_multi\t0\nCom_replace\t0\nCom_replace_select\t0\nCom_load\t0\n\
             Com_xa_commit\t0\nInnodb_pages_read\t{}\nInnodb_pages_written\t{}\nInnodb_os_log_written\t{}\n\
             Threads_running\t9\n",
            1_000 + 600 * n,
            120_000 * n,
            1_200_000 * n,
            480_000 * n,
            600_000 * n,
            300_000 * n,
            360_000_000 * n
        )
    };
    std::fs::write(at("status"), status(1) + &status(2)).unwrap();
    let iostat = "Linux 6.1.0 (db1) \t11/22/26 \t_x86_64_\t(4 CPU)\n\n\
        avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           1.00    0.00    1.00    3.00    0.00   95.00\n\n\
        Device r/s rkB/s w/s wkB/s aqu-sz\nnvme1n1 1.0 16.0 2.0 32.0 0.1\n\n\
        avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n          15.00    0.00    5.00   30.00    0.00   50.00\n\n\
        Device r/s rkB/s w/s wkB/s aqu-sz\nnvme1n1 300.0 4800.0 900.0 16000.0 2.1\n";
    std::fs::write(at("iostat"), iostat).unwrap();
    let (variables, status, iostat, out) = (at("variables"), at("status"), at("iostat"), at("p.toml"));
    let words = ["--profile-from", &variables, &status, &iostat, "--device", "nvme1n1", "--out", &out];
    let words = [&words[..], &["--set", "point.volume=gp3:size=500GiB"]].concat();
    let text = printed(&words, 0);
    assert!(text.contains("reads 1000 pages a second and its device 300"), "{text}");
    let profile = std::fs::read_to_string(&out).unwrap();
    for part in [
        "vcpus = 4",
        "cpu_pct = 20.0",
        "tps = 200.0",
        "redo_bytes = 3000.0",
        "reads = 5.0",
        "clients = 8",
        "redo_log_capacity = \"512MiB\"",
    ] {
        assert!(profile.contains(part), "no '{part}' in {profile}");
    }
    let (tps, answer) = predicted(Path::new(&out), "gp3:size=500GiB");
    assert!(tps > 50.0, "{answer}");
    let once = refused(&["--profile-from", &variables, &iostat]);
    assert!(once.contains("point.tps (two SHOW GLOBAL STATUS"), "{once}");
}
