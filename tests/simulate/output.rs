//! Tables and JSON.

use serde_json::Value;

use crate::support::{assert_near, json, simulate, simulate_with_overrides, text};
use ebbtide_testing::schema::assert_unknown_fields_are_found;

const GP2: &str = "gp2:size=100GiB";
const CLIFF: &str = "rw=randread,bs=16k,iodepth=64,runtime=45m";

#[test]
fn the_gp2_cliff_is_in_the_answer_and_in_the_rows() {
    let answer = text(&["--volume", GP2, "--job", CLIFF]);
    let first = answer.lines().next().unwrap();
    for part in [
        "gp2:size=100GiB: 2,",
        " IOPS, ",
        " over 45 min; credits ended after 2,000 s (33 min 20 s); from then on 300 IOPS, 4.7 MiB/s; $10.00 a month.",
    ] {
        assert!(first.contains(part), "no '{part}' in {first}");
    }
    assert!(answer.contains("Held back by the volume's IOPS limit"), "{answer}");
    assert!(answer.contains("\nseed 1; list prices of us-east-1, 2"), "{answer}");
    let details = text(&["--volume", GP2, "--job", CLIFF, "--details"]);
    let rows: Vec<&str> = details.lines().skip_while(|line| *line != "Over time").collect();
    assert!(rows.len() < 60, "condensed: {} lines", rows.len());
    let cliff = rows.iter().position(|row| row.starts_with("33 min 20 s")).unwrap();
    assert!(rows[cliff].contains(" 3,000 "), "{}", rows[cliff]);
    assert!(rows[cliff + 1].contains(" 300 "), "{}", rows[cliff + 1]);
    assert!(details.contains("\n... ") && details.contains(" alike\n"), "{details}");
}

#[test]
fn the_answer_comes_first_on_one_screen_at_60_80_and_120_columns() {
    println!("seed 1");
    let both = ["--volume", GP2, "--volume", "gp3:size=100GiB,iops=6000", "--job", CLIFF];
    for arguments in [&["--volume", GP2, "--job", CLIFF][..], &both] {
        for columns in [60, 80, 120] {
            let command = || {
                let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ebbtide"));
                command.env("EBBTIDE_HOME", "/nonexistent/home").env("COLUMNS", columns.to_string());
                command.arg("simulate").args(arguments);
                command
            };
            let shown = String::from_utf8(command().output().unwrap().stdout).unwrap();
            assert!(shown.starts_with("gp"), "{shown}");
            let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= columns, "{longest} columns of {columns}\n{shown}");
            assert!(columns < 80 || shown.lines().count() <= 24, "{shown}");
            let details = String::from_utf8(command().arg("--details").output().unwrap().stdout).unwrap();
            let longest = details.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= columns, "{longest} columns of {columns}\n{details}");
        }
    }
}

#[test]
fn a_section_of_the_details_is_printed_alone_by_its_name() {
    let run = ["--volume", "gp3:size=100GiB", "--job", "rw=randread,runtime=5"];
    let shown = text(&[&run[..], &["--show", "command,run"]].concat());
    assert!(shown.starts_with("The run\n"), "{shown}");
    assert!(shown.ends_with("--seed 1\n") && !shown.contains("IOPS"), "{shown}");
    let wrong = simulate(&[&run[..], &["--show", "comand"]].concat());
    let error = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2), "{error}");
    for part in ["did you mean 'command'?", "its sections are volumes, run, command, intervals"] {
        assert!(error.contains(part), "no '{part}' in {error}");
    }
}

#[test]
fn an_interval_that_is_given_shows_every_row() {
    let text = text(&[
        "--volume",
        "gp3:size=100GiB",
        "--job",
        "rw=randread,iodepth=32,runtime=60",
        "--interval",
        "1s",
    ]);
    let rows = text.lines().filter(|line| line.contains("MiB/s") || line.ends_with('%')).count();
    assert!(rows >= 60, "{rows} rows: {text}");
}

#[test]
fn the_json_of_a_gp2_follows_the_formula() {
    let run = json(&["--volume", GP2, "--job", CLIFF, "--seed", "7"]);
    assert_eq!((run["volume"].as_str(), run["job"].as_str()), (Some(GP2), Some(CLIFF)));
    assert_eq!(run["seed"], 7);
    let intervals = run["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 2_700);
    assert_eq!((intervals[0]["t_s"].as_f64(), intervals[2_699]["t_s"].as_f64()), (Some(1.0), Some(2_700.0)));
    assert_near("burst", &intervals[1_000]["iops"], 3_000.0, 0.001);
    assert_near("baseline", &intervals[2_500]["iops"], 300.0, 0.001);
    assert_near("credits", &intervals[999]["credit_pct"], 50.0, 0.001);
    assert_near("end", &run["changes"][0]["t_s"], 2_000.0, 0.001);
    assert_near("p50", &intervals[2_500]["p50_us"], 64.0 / 300.0 * 1e6, 0.002);
    assert_near("I/Os", &run["totals"]["ios"], 6_000_000.0 + 700.0 * 300.0, 0.001);
}

#[test]
fn gp3_has_no_credits_and_keeps_both_caps() {
    for (block, iops) in [("16k", 3_000.0), ("64k", 2_000.0)] {
        let job = format!("rw=randwrite,bs={block},iodepth=32,runtime=60");
        let run = json(&["--volume", "gp3:size=500GiB", "--job", &job]);
        let interval = &run["intervals"][30];
        assert_eq!(interval["credit_pct"], Value::Null);
        assert_near("IOPS", &interval["iops"], iops, 0.001);
        assert_eq!(run["totals"]["read"], Value::Null);
    }
}

#[test]
fn the_json_has_the_documented_fields_and_no_others() {
    let run = json(&["--volume", "gp2:size=1GiB,credits=0%", "--job", "rw=randrw,runtime=3"]);
    assert!(!run["changes"].as_array().unwrap().is_empty(), "{run}");
    let objects = assert_unknown_fields_are_found(&["simulate"], &run);
    assert!(objects >= 9, "run, totals with three inside, job with two inside, change, interval: {objects}");
}

#[test]
fn the_same_command_prints_the_same_and_another_seed_does_not() {
    let arguments =
        ["--volume", "gp3:size=100GiB", "--job", "rw=randrw,bs=4k,iodepth=2,runtime=10", "--json"];
    let first = text(&arguments);
    assert_eq!(first, text(&arguments));
    assert_ne!(first, text(&[&arguments[..], &["--seed", "2"]].concat()));
}

#[test]
fn the_command_in_the_json_makes_the_same_run() {
    let run = json(&["--volume", "raid0(2x gp3:size=10GiB)", "--job", "rw=randread,iodepth=4,runtime=2"]);
    let command = run["command"].as_str().unwrap();
    assert!(command.contains("--volume 'raid0(2x gp3:size=10GiB)'"), "{command}");
    let program = env!("CARGO_BIN_EXE_ebbtide");
    let line = command.replacen("ebbtide", program, 1) + " --json";
    let mut shell = std::process::Command::new("sh");
    let output = shell.env("EBBTIDE_HOME", "/nonexistent/home").args(["-c", &line]).output().unwrap();
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(again, run);
}

#[test]
fn volumes_stand_side_by_side_with_the_same_requests() {
    let arguments =
        ["--volume", GP2, "--volume", "gp3:size=100GiB", "--job", "rw=randread,rate_iops=1000,runtime=20"];
    let both = json(&arguments);
    let runs = both["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_near("I/Os", &run["totals"]["ios"], 20_000.0, 0.001);
    }
    assert_eq!((&runs[0]["volume"], &runs[1]["volume"]), (&GP2.into(), &"gp3:size=100GiB".into()));
    let text = text(&arguments);
    // Of equal rates the lower p99 decides.
    let best = "gp2:size=100GiB: 1,000 IOPS, 3.9 MiB/s and a p99 of ";
    let beside = ", the IOPS of gp3:size=100GiB, whose p99 is ";
    assert!(text.starts_with(best) && text.contains(beside), "{text}");
    assert!(text.contains("; $10.00 a month, $2.00 more."), "{text}");
    assert!(text.lines().any(|line| line.starts_with("gp2:size=100GiB  ")), "{text}");
}

#[test]
fn volumes_on_one_instance_share_its_limits_and_alone_they_do_not() {
    let base = [
        "--volume",
        "gp3:size=100GiB,iops=16000,throughput=1000",
        "--volume",
        "gp3:size=100GiB,iops=16000",
        "--instance",
        "m5.4xlarge",
        "--job",
        "rw=randread,bs=4k,iodepth=256,runtime=20",
    ];
    let sum = |json: &Value| -> f64 {
        let runs = json["runs"].as_array().unwrap();
        runs.iter().map(|run| run["intervals"][15]["iops"].as_f64().unwrap()).sum()
    };
    let alone = json(&base);
    let together = json(&[&base[..], &["--together"]].concat());
    assert!((sum(&alone) - 32_000.0).abs() < 100.0, "{}", sum(&alone));
    assert!((sum(&together) - 18_750.0).abs() < 100.0, "m5.4xlarge gives 18,750: {}", sum(&together));
    assert_eq!(together["runs"][0]["instance_shared"], true);
}

#[test]
fn a_job_file_runs_its_jobs_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("oltp.fio");
    let words = "[global]\nruntime=20\ngroup_reporting\n[pages]\nrw=randrw\nbs=16k\niodepth=16\n\
                 [redo]\nrw=write\nbs=4k\nfdatasync=1\n";
    std::fs::write(&path, words).unwrap();
    let run = json(&["--volume", "gp3:size=100GiB", "--job", path.to_str().unwrap()]);
    let jobs = run["jobs"].as_array().unwrap();
    assert_eq!((jobs[0]["name"].as_str(), jobs[1]["name"].as_str()), (Some("pages"), Some("redo")));
    assert!(jobs[1]["flushes"].as_u64() > Some(100) && jobs[1]["read"] == Value::Null);
    assert!(run["notes"][0].as_str().unwrap().starts_with("group_reporting"));
}

#[test]
fn a_load_that_asks_for_too_much_is_reported() {
    let text =
        text(&["--volume", "gp3:size=100GiB", "--job", "rw=randread,bs=16k,rate_iops=4000,runtime=60"]);
    assert!(text.contains("asked for 4,000 IOPS of reads and got 3,0"), "{text}");
    let fine =
        self::text(&["--volume", "gp3:size=100GiB", "--job", "rw=randread,bs=16k,rate_iops=400,runtime=60"]);
    assert!(!fine.contains("asked for") && fine.contains("No limit held it back"), "{fine}");
}

#[test]
fn the_overrides_of_the_home_hold_here_too_and_are_reported() {
    let overrides = "[[override]]\ntype = \"gp3\"\nreason = \"a slower region\"\nsource = \"fio\"\n\
                     date = \"2026-11-20\"\n[override.service]\nread = [[0, 2000], [100, 2000]]\n";
    let arguments = ["--volume", "gp3:size=100GiB", "--job", "rw=randread,runtime=10"];
    let output = simulate_with_overrides(overrides, &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("gp3:size=100GiB has figures of this home's own: a slower region"), "{text}");
    assert!(text.contains(" 2.0"), "2 ms of service and the transfer: {text}");
    let broken = simulate_with_overrides("[[override]]\ntype = 3\n", &arguments);
    assert_eq!(broken.status.code(), Some(3), "{}", String::from_utf8_lossy(&broken.stderr));
}

#[test]
fn every_volume_has_its_cost_in_text_json_and_page() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("run.html");
    let volumes = [
        "--volume",
        "gp3:size=500GiB,iops=6000",
        "--volume",
        "raid0(2x gp2:size=250GiB)",
        "--volume",
        "nvme",
    ];
    let job = ["--job", "rw=randread,bs=16k,iodepth=4,runtime=2"];
    let printed = text(&[&volumes[..], &job, &["--details", "--html", page.to_str().unwrap()]].concat());
    for line in [
        "Cost    $55.00 a month: 500 GiB $40.00, 3000 of 6000 IOPS $15.00 (us-east-1, prices of 2026-10-06)\n",
        "Cost    $50.00 a month: 500 GiB $50.00 (us-east-1, prices of 2026-10-06)\n",
        "Cost    -\n",
    ] {
        assert!(printed.contains(line), "{line} is not in {printed}");
    }
    let table: Vec<&str> = printed.lines().skip_while(|line| !line.starts_with("Volume")).take(4).collect();
    let last: Vec<_> = table.iter().map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(last, ["Monthly", "$55.00", "$50.00", "-"], "{table:?}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("Monthly") && html.contains("$55.00 a month: 500 GiB $40.00"));
    let runs = json(&[&volumes[..], &job, &["--region", "eu-west-1"]].concat());
    let usd = |index: usize| runs["runs"][index]["monthly_cost"]["usd"].clone();
    // 500 x 0.088 + 3,000 x 0.0055; 500 x 0.11
    assert_eq!([usd(0), usd(1)], [60.5.into(), Value::from(55.0)]);
    assert_eq!(runs["runs"][2]["monthly_cost"], Value::Null);
    assert_eq!(runs["runs"][0]["monthly_cost"]["region"], "eu-west-1");
    assert!(runs["runs"][0]["command"].as_str().unwrap().contains(" --region eu-west-1"));
}

#[test]
fn a_lazy_volume_pays_the_first_touch_of_each_block_once() {
    let job = "rw=read,bs=128k,size=64m,loops=2";
    let lazy = ["--volume", "gp3:size=1GiB", "--initialization", "lazy", "--job", job];
    let run = json(&lazy);
    let loaded = &run["initialization"];
    assert_eq!((&loaded["mode"], &loaded["blocks"]), (&"lazy".into(), &2_048.into()), "{loaded}");
    assert_eq!((&loaded["touched"], &loaded["background"]), (&128.into(), &0.into()), "{loaded}");
    assert_eq!(loaded["missing"], 2_048 - 128);
    let first = run["totals"]["duration_s"].as_f64().unwrap();
    let none = json(&["--volume", "gp3:size=1GiB", "--initialization", "none", "--job", job]);
    assert_eq!(none["initialization"], Value::Null);
    let there = none["totals"]["duration_s"].as_f64().unwrap();
    // 128 blocks at 36 ms in the mean, one after the other.
    assert!((2.5..8.0).contains(&(first - there)), "{first} s and {there} s");
    assert!(run["command"].as_str().unwrap().contains("--initialization lazy"), "{run}");
    let text = text(&[&lazy[..], &["--details"]].concat());
    assert!(text.contains("Initialization  lazy: a snapshot has every block\n"), "{text}");
    assert!(text.contains("Loaded  128 of 2,048 blocks of 512 KiB; 128 at the first touch"), "{text}");
}

#[test]
fn a_provisioned_rate_loads_the_volume_in_its_time() {
    let job = "rw=randread,bs=16k,iodepth=1,runtime=20";
    let run = json(&["--volume", "gp3:size=4GiB", "--initialization", "rate=256MiB/s", "--job", job]);
    let loaded = &run["initialization"];
    assert_eq!((&loaded["blocks"], &loaded["missing"]), (&8_192.into(), &0.into()), "{loaded}");
    let count = |name: &str| loaded[name].as_u64().unwrap();
    assert_eq!(count("touched") + count("background"), 8_192, "{loaded}");
    assert!(count("touched") > 0 && count("background") > count("touched"), "{loaded}");
    // 4 GiB are there after 16 s at the latest: from then on no read is slow.
    let slowest = |from: usize| {
        let intervals = run["intervals"].as_array().unwrap()[from..].iter();
        intervals.map(|interval| interval["p50_us"].as_f64().unwrap()).fold(0.0, f64::max)
    };
    assert!(slowest(0) > 5_000.0 && slowest(17) < 2_000.0, "{} and {}", slowest(0), slowest(17));
}

#[test]
fn a_run_that_takes_no_time_has_no_rate() {
    let run = ["--volume", "ideal:size=1GiB", "--job", "rw=read,bs=4k,size=1m"];
    // Validated against the schema, as every JSON here.
    let json = json(&run);
    let totals = &json["totals"];
    assert_eq!((&totals["ios"], &totals["duration_s"]), (&256.into(), &0.0.into()), "{totals}");
    for rate in ["iops", "mib_s"] {
        assert_eq!((&totals[rate], &json["jobs"][0]["read"][rate]), (&Value::Null, &Value::Null), "{json}");
    }
    let text = text(&[&run[..], &["--details"]].concat());
    assert!(text.starts_with("ideal:size=1GiB: 256 I/Os in no time."), "{text}");
    assert!(text.contains("Reads   256 I/Os, - IOPS, - MiB/s"), "{text}");
    assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
}
