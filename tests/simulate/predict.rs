//! `ebbtide predict`: what it prints, and what it refuses.

use std::process::{Command, Output};

use serde_json::Value;

use ebbtide_testing::schema::assert_documented;

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/profiles/sysbench-tpcc-gp2.toml");

fn predict(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebbtide"))
        .env("EBBTIDE_HOME", "/nonexistent/home")
        .arg("predict")
        .args(arguments)
        .output()
        .expect("the program that was just built runs")
}

fn text(arguments: &[&str]) -> String {
    let output = predict(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("the output is text")
}

fn json(arguments: &[&str]) -> Value {
    let text = text(&[arguments, &["--for", "1m", "--json"]].concat());
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_documented(&["predict"], &value);
    value
}

#[test]
fn a_published_row_is_within_its_interval_and_the_volumes_iops_limit_it() {
    println!("seed 1");
    let answer =
        json(&[PROFILE, "--volume", "gp2@2018:size=600GiB,credits=0%", "--volume", "gp2@2018:size=1200GiB"]);
    assert_eq!(answer["seed"], 1);
    let intervals = answer["profile"]["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 11);
    assert!(intervals[0]["comparisons"].as_u64().unwrap() >= 15, "{intervals:?}");
    // 133.1 was measured on the first, and 265.2 on the second.
    for (n, measured) in [133.1, 265.2].into_iter().enumerate() {
        let point = &answer["volumes"][n]["points"][0];
        let figure = |key: &str| point[key].as_f64().unwrap();
        assert!(figure("tps_low") < measured && measured < figure("tps_high"), "{point}");
        assert!((figure("tps") / measured - 1.0).abs() < 0.1, "{point}");
        for name in ["iops", "mib_s"] {
            let (low, high) = (figure(&format!("{name}_low")), figure(&format!("{name}_high")));
            // A figure at its limit is the end of its interval.
            assert!(low < figure(name) && figure(name) <= high, "{name}: {point}");
        }
        for file in point["files"].as_array().unwrap() {
            let of = |key: &str| file[key].as_f64().unwrap();
            assert!(of("iops_low") <= of("iops") && of("iops") <= of("iops_high"), "{file}");
            assert!(of("mib_s_low") <= of("mib_s") && of("mib_s") <= of("mib_s_high"), "{file}");
        }
        assert!(figure("cpu_low_pct") < figure("cpu_pct") && figure("cpu_pct") < figure("cpu_high_pct"));
        assert_eq!(point["outside"], serde_json::json!([]));
        for name in ["p50", "p95", "p99", "p999"] {
            let of = |part: &str| figure(&format!("{name}{part}_us"));
            assert!(of("_low") < of("") && of("") < of("_high"), "{name}: {point}");
        }
        assert_eq!(point["limiter"], "volume_iops");
        assert!(figure("p50_us") <= figure("p95_us") && figure("p95_us") <= figure("p99_us"), "{point}");
        let files: f64 =
            point["files"].as_array().unwrap().iter().map(|file| file["iops"].as_f64().unwrap()).sum();
        assert!((files / figure("iops") - 1.0).abs() < 0.01, "{files} {point}");
    }
}

#[test]
fn a_load_line_has_a_knee_and_the_same_seed_gives_it_again() {
    println!("seed 7");
    let arguments = [PROFILE, "--volume", "gp3:size=600GiB", "--clients", "1,4,16,64", "--seed", "7"];
    let answer = json(&arguments);
    let points = answer["volumes"][0]["points"].as_array().unwrap();
    let clients: Vec<u64> = points.iter().map(|point| point["clients"].as_u64().unwrap()).collect();
    assert_eq!(clients, [1, 4, 16, 64]);
    assert!(answer["volumes"][0]["knee"].as_u64().is_some_and(|knee| knee < 3), "{answer}");
    let p50 = |n: usize| points[n]["p50_us"].as_f64().unwrap();
    assert!(p50(3) > p50(0) * 4.0, "64 clients wait for one another");
    assert_eq!(answer, json(&arguments));
}

#[test]
fn logs_on_volumes_of_their_own_are_told_by_role_and_a_slow_one_limits() {
    println!("seed 1");
    let volume = "data=gp3:size=600GiB,iops=16000,throughput=1000,redo=io1:size=40GiB,iops=100";
    let answer =
        json(&[PROFILE, "--volume", volume, "--volume", "gp3:size=600GiB,iops=16000,throughput=1000"]);
    let point = |n: usize| answer["volumes"][n]["points"][0].clone();
    let (apart, together) = (point(0), point(1));
    assert_eq!(apart["limiter"], "redo_volume_iops", "{apart}");
    assert!(apart["tps"].as_f64() < together["tps"].as_f64(), "{apart} {together}");
    let of = |point: &Value, n: usize, key: &str| point["volumes"][n][key].clone();
    assert_eq!((of(&apart, 0, "role"), of(&apart, 1, "role")), ("data".into(), "redo".into()));
    assert_eq!(of(&apart, 1, "files"), serde_json::json!(["redo"]));
    assert!(of(&apart, 1, "iops_waited_pct").as_f64() > Some(50.0), "{apart}");
    assert!(of(&apart, 0, "iops_waited_pct").as_f64() < Some(5.0), "{apart}");
    assert!(apart["outside"].to_string().contains("logs on volumes of their own"), "{apart}");
    assert_eq!(
        (together["volumes"].as_array().map(Vec::len), of(&together, 0, "role")),
        (Some(1), "data".into())
    );
    let shown = text(&[PROFILE, "--volume", volume, "--for", "1m"]);
    for words in [
        "the IOPS of the redo log's volume",
        "redo volume: IOPS 100",
        "waits for its IOPS",
        "data volume: IOPS",
    ] {
        assert!(shown.contains(words), "'{words}' is not in: {shown}");
    }
    let swept = json(&[PROFILE, "--volume", volume, "--sweep", "redo.iops=100..400:300"]);
    let tps = |n: usize| swept["volumes"][n]["points"][0]["tps"].as_f64().unwrap();
    assert!(tps(1) > tps(0) * 1.5, "{swept}");
}

#[test]
fn logs_that_share_a_volume_have_its_limit_together_and_one_that_is_not_written_has_none() {
    println!("seed 1");
    let data = "data=gp3:size=600GiB,iops=16000,throughput=1000";
    let spec = "io1:size=40GiB,iops=100";
    let with = ["--set", "server.log_bin=true", "--set", "server.sync_binlog=1"];
    let shared = format!("{data},redo+binlog={spec}");
    let apart = format!("{data},redo={spec},binlog={spec}");
    let answer = json(&[&[PROFILE, "--volume", &shared, "--volume", &apart][..], &with].concat());
    let point = |n: usize| answer["volumes"][n]["points"][0].clone();
    let (shared_point, apart_point) = (point(0), point(1));
    let logs = &shared_point["volumes"][1];
    assert_eq!(
        (logs["role"].as_str(), &logs["files"]),
        (Some("redo+binlog"), &serde_json::json!(["redo", "binlog"]))
    );
    assert_eq!(shared_point["limiter"], "logs_volume_iops", "{shared_point}");
    assert!(shared_point["tps"].as_f64().unwrap() * 1.2 < apart_point["tps"].as_f64().unwrap(), "{answer}");
    let shown = text(&[&[PROFILE, "--volume", &shared, "--for", "1m"][..], &with].concat());
    assert!(
        shown.contains("the IOPS of the logs' volume") && shown.contains("redo+binlog volume: IOPS"),
        "{shown}"
    );
    for volume in [&shared, &apart] {
        let output = predict(&[PROFILE, "--volume", volume, "--set", "server.log_bin=false"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("writes no binary log") && error.contains("server.log_bin=true"), "{error}");
    }
}

#[test]
fn a_sweep_rises_with_its_iops_until_something_else_limits() {
    println!("seed 1");
    let answer = json(&[PROFILE, "--volume", "gp3:size=600GiB", "--sweep", "iops=3000..15000:6000"]);
    let volumes = answer["volumes"].as_array().unwrap();
    let specs: Vec<&str> = volumes.iter().map(|volume| volume["volume"].as_str().unwrap()).collect();
    assert_eq!(specs[0], "gp3:size=600GiB,iops=3000");
    let tps: Vec<f64> = volumes.iter().map(|volume| volume["points"][0]["tps"].as_f64().unwrap()).collect();
    assert!(tps.len() == 3 && tps[0] < tps[1] * 1.02 && tps[1] < tps[2] * 1.02, "{tps:?}");
}

#[test]
fn credits_that_end_and_an_open_load_are_in_the_text_and_the_page() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let page_text = page.to_str().unwrap();
    let shown = text(&[
        PROFILE,
        "--volume",
        "gp2@2018:size=600GiB,credits=1%",
        "--rate",
        "100,300",
        "--for",
        "2m",
        "--html",
        page_text,
    ]);
    assert!(shown.starts_with("seed 1\n"), "{shown}");
    for part in [
        "burst credits end after",
        "limited by",
        "interval 90% of the comparisons of",
        "Intervals:",
        "p99.9 ",
        "credits end after",
        "Limits and files:",
        "data_read IOPS",
        "redo IOPS",
        "rate",
        "the volume's IOPS",
    ] {
        assert!(shown.contains(part), "no '{part}' in {shown}");
    }
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("Burst credits")
            && html.contains("Transactions a second")
            && html.contains("data_read"),
        "the page has its charts"
    );
}

#[test]
fn a_workload_that_was_not_compared_is_predicted_with_a_wider_interval() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("shop.toml");
    let of = |flavour: &str| {
        let text = std::fs::read_to_string(PROFILE).unwrap();
        std::fs::write(&profile, text.replace("mysql-5.7", flavour)).unwrap();
        let answer = json(&[profile.to_str().unwrap(), "--volume", "gp3:size=600GiB"]);
        let point = answer["volumes"][0]["points"][0].clone();
        let width = point["tps_high"].as_f64().unwrap() / point["tps"].as_f64().unwrap();
        (width, answer["profile"]["validated"].as_bool().unwrap())
    };
    let ((compared, yes), (other, no)) = (of("mysql-5.7"), of("mariadb-11"));
    let neighbours = ["--set", "server.flush_neighbors=1", "--volume", "gp3:size=600GiB", "--for", "30s"];
    let said = text(&[&[PROFILE][..], &neighbours].concat());
    assert!(said.contains("not modelled: innodb_flush_neighbors = 1"), "{said}");
    assert!(yes && !no && other > compared * 1.05, "{compared} {other}");
}

#[test]
fn clients_and_pools_that_were_not_compared_are_named_and_have_wider_intervals() {
    println!("seed 1");
    let volume = ["--volume", "gp3:size=600GiB", "--clients", "16,64"];
    let with =
        |words: &[&str]| json(&[&[PROFILE][..], &volume, words].concat())["volumes"][0]["points"].clone();
    let width = |point: &Value| point["tps_high"].as_f64().unwrap() / point["tps_low"].as_f64().unwrap();
    let points = with(&[]);
    assert_eq!(points[0]["outside"], serde_json::json!([]));
    let outside = points[1]["outside"][0].as_str().unwrap();
    assert!(outside.contains("64 clients are outside of what was compared: 16"), "{outside}");
    assert!(width(&points[1]) > width(&points[0]) * 1.05, "{points}");
    let small = with(&["--set", "server.buffer_pool_size=1GiB"]);
    let outside = small[0]["outside"][0].as_str().unwrap();
    assert!(outside.contains("a buffer pool of 1.05% of the data"), "{outside}");
    let shown = text(&[&[PROFILE][..], &volume, &["--for", "1m"]].concat());
    assert!(shown.contains("interval at 64 clients: wider, since 64 clients are outside"), "{shown}");
}

#[test]
fn a_setting_is_predicted_with_another_value_and_the_points_keep_theirs() {
    println!("seed 1");
    let volume = ["--volume", "gp3:size=600GiB"];
    let with = |words: &[&str]| json(&[&[PROFILE][..], &volume, words].concat());
    let (before, after) = (with(&[]), with(&["--set", "server.buffer_pool_size=25GiB"]));
    let tps = |answer: &Value| answer["volumes"][0]["points"][0]["tps"].as_f64().unwrap();
    assert!(tps(&after) > tps(&before) * 1.2, "{} {}", tps(&before), tps(&after));
    assert_eq!(
        before["profile"]["residuals"], after["profile"]["residuals"],
        "the measured point had its own pool"
    );
    assert_eq!(after["set"][0], "server.buffer_pool_size = 25GiB");
    for (set, part) in
        [("point.tps=1", "points are what was measured"), ("server.pool=1GiB", "unknown field `pool`")]
    {
        let output = predict(&[&[PROFILE][..], &volume, &["--set", set]].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(part), "no '{part}' in {error}");
    }
}

#[test]
fn no_rate_is_expected_above_what_the_volumes_may_do() {
    println!("seed 1");
    let answer = json(&[
        PROFILE,
        "--volume",
        "gp3:size=600GiB",
        "--volume",
        "data=gp3:size=600GiB,redo=gp3:size=40GiB",
    ]);
    for (n, most) in [3_000.0, 6_000.0].into_iter().enumerate() {
        let point = &answer["volumes"][n]["points"][0];
        let high = |of: &Value| of["iops_high"].as_f64().unwrap();
        assert!((2_900.0..=most * 1.01).contains(&high(point)), "{point}");
        assert!(point["files"].as_array().unwrap().iter().all(|file| high(file) <= 3_000.0), "{point}");
    }
}

#[test]
fn the_instance_that_is_asked_about_lends_no_memory_to_the_measured_points() {
    println!("seed 1");
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(PROFILE).unwrap();
    let buffered = text.replace("flush_method = \"O_DIRECT_NO_FSYNC\"", "flush_method = \"fsync\"");
    assert_ne!(buffered, text);
    let path = folder.path().join("buffered.toml");
    std::fs::write(&path, buffered).unwrap();
    let costs = |words: &[&str]| {
        let all = [&[path.to_str().unwrap(), "--volume", "gp3:size=600GiB"][..], words].concat();
        let profile = json(&all)["profile"].clone();
        assert!(!profile["residuals"].as_array().unwrap().is_empty(), "{profile}");
        ["cpu_us", "reads_factor", "writes_factor", "residuals"].map(|figure| profile[figure].clone())
    };
    let alone = costs(&[]);
    assert_eq!(costs(&["--instance", "r5.2xlarge"]), alone);
}

#[test]
fn the_output_reports_a_buffer_pool_that_the_memory_does_not_hold() {
    println!("seed 1");
    let said = |memory: &str| {
        let memory = format!("machine.memory={memory}");
        let answer = json(&[PROFILE, "--volume", "gp3:size=600GiB", "--set", &memory]);
        answer["profile"]["not_modelled"].as_str().unwrap_or_default().to_owned()
    };
    assert!(
        said("10GiB").contains("a buffer pool of 10GiB takes a tenth more, and the machine has 10GiB"),
        "{}",
        said("10GiB")
    );
    assert!(!said("12GiB").contains("a buffer pool of"));
}

#[test]
fn a_page_cache_saves_reads_where_the_memory_is_known() {
    println!("seed 1");
    let volume = ["--volume", "gp3:size=600GiB", "--set", "server.flush_method=fsync"];
    let with = |words: &[&str]| json(&[&[PROFILE][..], &volume, words].concat());
    let figures = |answer: &Value| {
        let point = &answer["volumes"][0]["points"][0];
        let reads = point["files"][0]["iops"].as_f64().unwrap();
        (point["tps"].as_f64().unwrap(), reads, point["page_cache_reads"].as_f64().unwrap())
    };
    let unknown = with(&[]);
    let said = unknown["profile"]["not_modelled"].as_str().unwrap();
    assert!(
        said.contains("page cache, whose size is not known") && said.contains("machine.memory"),
        "{said}"
    );
    assert!(unknown["profile"]["page_cache_bytes"].is_null());
    let (direct, reads, none) = figures(&unknown);
    assert!(reads > 1_000.0 && none == 0.0, "{reads} {none}");
    // Of 64 GiB the pool takes 11 and the rest of the server 384 MiB. The measured pools up to 80 GiB say what 52.6 more hold.
    for words in
        [&["--set", "machine.memory=64GiB"][..], &["--instance", "r5.2xlarge", "--set", "machine.vcpus=8"]]
    {
        let some = with(words);
        let gib = some["profile"]["page_cache_bytes"].as_f64().unwrap() / f64::from(1 << 30);
        assert!((52.5..52.7).contains(&gib), "{gib}");
        let (tps, reads, cached) = figures(&some);
        assert!(tps > direct * 1.2 && cached > reads, "{tps} after {direct}, {cached} and {reads}");
        assert!(some["profile"]["not_modelled"].is_null(), "{some}");
        let outside = some["volumes"][0]["points"][0]["outside"].to_string();
        assert!(outside.contains("a page cache was compared in one arm alone"), "{outside}");
    }
    // 85.6 GiB are more than the largest measured pool, and less than the data.
    let beyond = with(&["--set", "machine.memory=87GiB"]);
    let said = beyond["profile"]["not_modelled"].as_str().unwrap();
    assert!(said.contains("[[workload.pages]]") && said.contains("workload.data_size"), "{said}");
    let all = with(&["--set", "machine.memory=128GiB"]);
    let (tps, reads, cached) = figures(&all);
    assert!(reads == 0.0 && cached > 5.0 * tps && all["profile"]["not_modelled"].is_null(), "{all}");
    let shown = text(&[&[PROFILE][..], &volume, &["--for", "1m", "--set", "machine.memory=64GiB"]].concat());
    assert!(shown.contains("page cache 53,") && shown.contains("pages a second are read from it"), "{shown}");
    let output = predict(&[&[PROFILE][..], &volume, &["--set", "machine.other_memory=1GiB"]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("machine.memory"), "{error}");
}

#[test]
fn a_network_and_clients_that_think_are_predicted_where_they_are_set() {
    println!("seed 1");
    let point = |set: &str| {
        let answer = json(&[PROFILE, "--volume", "gp3:size=600GiB", "--set", set]);
        let of = |key: &str| answer["volumes"][0]["points"][0][key].as_f64().unwrap();
        (of("tps"), of("p50_us"))
    };
    // 16 clients, and 28.4 statements of a transaction.
    let (tps, p50_us) = point("workload.round_trip_us=10000");
    assert!(p50_us > 28.4 * 10_000.0 && (40.0..16.0 / 0.284).contains(&tps), "{tps} {p50_us}");
    // 16 clients, each about every two seconds: 480 in a minute, which varies by a twentieth.
    let (tps, p50_us) = point("workload.think_ms=2000");
    assert!(p50_us < 500_000.0 && (6.0..10.0).contains(&tps), "{tps} {p50_us}");
}

#[test]
fn a_wrong_profile_exits_with_2_and_says_what_is_missing_and_where_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.toml");
    let good = std::fs::read_to_string(PROFILE).unwrap();
    let again = good[good.find("[[point]]").unwrap()..].replace("reads = 6.75", "reads = 60");
    let cases: &[(String, &[&str])] = &[
        (good.replace("flavour = \"mysql-5.7\"\n", ""), &["server.flavour", "SELECT VERSION()"]),
        (good.replace("mysql-5.7", "mysql-6"), &["'mysql-6'", "mariadb-11"]),
        (good.replace("vcpus = 8\n", ""), &["machine.vcpus", "nproc"]),
        (good.replace("redo_bytes = 8700 ", "#"), &["workload.redo_bytes", "Innodb_os_log_written"]),
        (good.replace("cpu_pct = 7.0\n", ""), &["cpu_us", "vmstat"]),
        (good.replace("cpu_pct = 7.0", "cpu_pct = 700"), &["point 1: cpu_pct = 700", "at most 100"]),
        (
            good.replace("io_capacity = 200", "io_capacity = 2"),
            &["server.io_capacity = 2", "100 to 10000000"],
        ),
        (good.replace("io_capacity_max = 500", "io_capacity_max = 150"), &["150", "give at least 200"]),
        (good.replace("redo_log_capacity", "redo_log_capacty"), &["redo_log_capacty", "unknown field"]),
        (good.replace("reads = 6.75", "reads = 675"), &["pages read", "0.2 to 5 times"]),
        (format!("{good}\n{again}"), &["points 1 and 2 contradict each other"]),
        (
            good.replace("kind = \"observed\"", "kind = \"tpcc\"\nwarehouses = 10")
                .replace("[machine]", "page_size = \"4KiB\"\n[machine]"),
            &["server.page_size", "16KiB only"],
        ),
        (good.replace("tps = 133.1\n", ""), &["point.tps", "Com_commit"]),
    ];
    for (text, parts) in cases {
        std::fs::write(&file, text).unwrap();
        let output = predict(&[file.to_str().unwrap(), "--volume", "gp3:size=600GiB"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{parts:?}: {error}");
        for part in *parts {
            assert!(error.contains(part), "no '{part}' in {error}");
        }
    }
}

#[test]
fn a_wrong_argument_exits_with_2_and_names_the_range() {
    let volume = ["--volume", "gp3:size=600GiB"];
    let cases: &[(&[&str], &[&str])] = &[
        (&["--for", "1s"], &["--for 1s", "30s to 30 days"]),
        (&["--clients", "0"], &["--clients 0", "1 to 10000"]),
        (&["--rate", "-1"], &["-1"]),
        (&["--sweep", "iops=5..1:1"], &["--sweep iops=5..1:1", "iops=1000..30000:1000"]),
        (&["--sweep", "iops=3000..9000:1"], &["at most 200", "larger step"]),
        (&["--instance", "r5.lage"], &["r5.lage", "r5.large"]),
        (&["--volume", "gp9:size=1GiB"], &["gp9"]),
        (
            &["--volume", "gp3:size=1GiB"],
            &[
                "--volume gp3:size=1GiB: the volume of the data has 1 GiB, and 125 GiB must lie on it: 95 GiB of data and 30 GiB of redo log",
                "hint: give a size of 125 GiB or more",
            ],
        ),
        (
            &["--volume", "data=gp3:size=100GiB,redo=gp3:size=20GiB"],
            &["the volume of the redo log has 20 GiB, and 30 GiB must lie on it"],
        ),
        (
            &["--volume", "data=gp3:size=90GiB,redo=gp3:size=30GiB"],
            &["and 95 GiB must lie on it: 95 GiB of data"],
        ),
        (&["--sweep", "size=100..200:50"], &["--volume gp3:size=100GiB", "125 GiB must lie on it"]),
        (
            &["--volume", "gp3:size=125GiB", "--set", "server.redo_log_capacity=31GiB"],
            &["126 GiB must lie on it", "31 GiB of redo log"],
        ),
    ];
    for (arguments, parts) in cases {
        let output = predict(&[&[PROFILE][..], &volume, arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        for part in *parts {
            assert!(error.contains(part), "{arguments:?}: no '{part}' in {error}");
        }
    }
    let output = predict(&["/nonexistent.toml", "--volume", "gp3:size=600GiB"]);
    assert_eq!(output.status.code(), Some(2));
}
