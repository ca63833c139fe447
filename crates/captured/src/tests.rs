//! Each kind of text: samples that the programs printed (`tests/fixtures`), and the forms of other versions.

use ebbtide_observe::{DeviceIo, Files, Flavour, Observation};

use super::{Hints, Input, is_known, observation};

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/", $name))
    };
}

fn of_hints(texts: &[&str], hints: &Hints) -> Observation {
    let inputs: Vec<Input> =
        texts.iter().map(|text| Input { path: "/none".into(), text: (*text).to_owned() }).collect();
    for input in &inputs {
        assert!(is_known(input), "{}", &input.text[..input.text.len().min(200)]);
    }
    observation("/c", &inputs, hints).unwrap()
}

fn of(texts: &[&str]) -> Observation {
    of_hints(texts, &Hints::default())
}

fn device(name: &str) -> Hints {
    Hints { devices: vec![(Files::Data, name.into())], ..Hints::default() }
}

fn io_of(texts: &[&str], name: &str) -> DeviceIo {
    let host = of_hints(texts, &device(name)).host.unwrap();
    host.place(Files::Data).unwrap().device.as_ref().unwrap().io.unwrap()
}

fn variable<'a>(seen: &'a Observation, name: &str) -> Option<&'a str> {
    seen.variables.as_ref()?.get(name)
}

#[test]
fn variables_are_the_same_with_tabs_and_in_a_table() {
    let (tabs, table) = (of(&[sample!("variables.tsv")]), of(&[sample!("variables.table")]));
    let values = |seen: &Observation| -> Vec<(String, String)> {
        let all = seen.variables.as_ref().unwrap();
        all.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    for (tab, table) in values(&tabs).into_iter().zip(values(&table)) {
        assert_eq!(tab, table);
    }
    assert!(!tabs.partial_variables);
    assert_eq!(tabs.facts.as_ref().unwrap().flavour, Flavour::MariaDb);
    assert_eq!(variable(&tabs, "innodb_buffer_pool_size"), Some("67108864"));
    assert_eq!(variable(&tabs, "innodb_flush_log_at_trx_commit"), Some("2"));
    let below = "*** 1. row ***\nVariable_name: version\n        Value: 8.0.36\n*** 2. row ***\nVariable_name: sync_binlog\n        Value: 0\n";
    assert_eq!(variable(&of(&[below]), "sync_binlog"), Some("0"));
}

#[test]
fn a_value_on_a_line_without_an_end_may_be_cut_off_and_is_left_out() {
    let seen = of(&["version\t10.11.6-MariaDB\ninnodb_buffer_pool_size\t1342"]);
    assert_eq!(variable(&seen, "innodb_buffer_pool_size"), None);
    assert!(
        seen.not_seen.iter().any(|one| one.what.contains("innodb_buffer_pool_size")),
        "{:?}",
        seen.not_seen
    );
    let table = of(&["| version | 8.0.36 |\n| sync_binlog | 0 |"]);
    assert_eq!(variable(&table, "sync_binlog"), Some("0"), "its bar ends the value");
}

#[test]
fn a_part_of_the_variables_is_known_as_one() {
    let seen = of(&["innodb_io_capacity\t200\nsync_binlog\t0\n"]);
    assert!(seen.partial_variables && seen.facts.unwrap().release().is_none());
    let hints = Hints { version: Some("8.0.36".into()), ..Hints::default() };
    let seen = of_hints(&["innodb_io_capacity\t200\n"], &hints);
    assert_eq!(seen.facts.unwrap().version, "8.0.36");
    let own = of_hints(&["version\t8.4.1\n"], &hints);
    assert_eq!(own.facts.unwrap().version, "8.4.1", "what was printed goes before a hint");
}

#[test]
fn two_statuses_give_rates_and_one_gives_none() {
    let seen = of(&[sample!("variables.tsv"), sample!("status.tsv")]);
    assert_eq!(seen.span.unwrap().seconds, 5.0);
    let growth = seen.status.unwrap().growth_per_s["binlog_commits"];
    assert!((30.0..80.0).contains(&growth), "sysbench sent 50 a second: {growth}");
    assert!(seen.rates.unwrap().redo_bytes.unwrap() > 50_000.0);
    let once = of(&["version\t8.0.36\n", "Uptime\t50\nCom_commit\t4\n"]);
    assert_eq!((once.rates, once.span), (None, None));
    assert_eq!(once.status.unwrap().last.get("com_commit"), Some("4"));
}

#[test]
fn a_status_whose_uptime_goes_back_gives_no_rates() {
    let relative = "Uptime\t500\nCom_commit\t900\n\nUptime\t10\nCom_commit\t5\n\nUptime\t10\nCom_commit\t6\n";
    let seen = of(&["version\t8.0.36\n", relative]);
    assert_eq!((seen.rates, seen.span), (None, None));
    assert!(seen.not_seen.iter().any(|one| one.why.contains("--relative")), "{:?}", seen.not_seen);
}

/// A status with counters that only grow.
fn status(uptime: u64, connections: u64, commits: u64) -> String {
    format!("Uptime\t{uptime}\nConnections\t{connections}\nInnodb_page_size\t16384\nCom_commit\t{commits}\n")
}

#[test]
fn a_restart_that_the_uptime_does_not_show_gives_no_rates() {
    let why = |texts: &[String]| {
        let texts: Vec<&str> =
            ["version\t8.0.36\n"].into_iter().chain(texts.iter().map(String::as_str)).collect();
        let seen = of(&texts);
        assert_eq!((seen.rates, seen.span), (None, None), "{texts:?}");
        seen.not_seen.iter().map(|one| one.why.clone()).collect::<String>()
    };
    let restarted = why(&[status(100, 5_000, 10), status(90_000, 40, 20_000)]);
    assert!(
        restarted.contains("connections went back") && restarted.contains("several servers"),
        "{restarted}"
    );
    // Of three, the one between shows it.
    let between = why(&[status(100, 5_000, 10), status(200, 40, 20), status(300, 9_000, 30)]);
    assert!(between.contains("went back"), "{between}");
    let relative =
        why(&[status(5, 9, 10), "Uptime\t10\nConnections\t9\nInnodb_page_size\t0\nCom_commit\t50\n".into()]);
    assert!(relative.contains("--relative"), "{relative}");
    assert!(why(&[status(5, 9, 10), status(5, 9, 10)]).contains("same Uptime"));
}

#[test]
fn files_of_several_servers_are_refused_and_two_of_one_have_the_later_values() {
    let of_two = |one: &str, other: &str| {
        let texts = [one, other].map(|text| Input { path: "/none".into(), text: text.to_owned() });
        observation("/c", &texts, &Hints::default()).map(|seen| (seen.variables, seen.changed))
    };
    let one = "version\t8.0.36\nhostname\tdb1\nsync_binlog\t1\n";
    for (name, other) in [("hostname", one.replace("db1", "db2")), ("version", one.replace("36", "37"))] {
        let error = of_two(one, &other).unwrap_err().to_string();
        assert!(error.contains(&format!("several servers: {name} is '")), "{error}");
        assert_eq!(of_two(&format!("{one}{other}"), one).unwrap_err().to_string(), error, "in one file too");
    }
    let (variables, changed) = of_two(one, &one.replace("sync_binlog\t1", "sync_binlog\t0")).unwrap();
    assert_eq!(
        (variables.unwrap().get("sync_binlog"), &changed[..]),
        (Some("0"), &["sync_binlog".to_owned()][..])
    );
    let in_one_file = format!("{one}{}", one.replace("sync_binlog\t1", "sync_binlog\t0"));
    assert_eq!(variable(&of(&[&in_one_file]), "sync_binlog"), Some("0"));
    let report =
        "# Percona Toolkit MySQL Summary Report #####\n# Report On Port 3306 #####\n Version | 5.7.44 x\n";
    assert!(of_two(one, report).is_err());
    let iostat = |machine: &str| {
        let report = "Device r/s w/s rkB/s wkB/s aqu-sz\nsda 1 0 0 0 0\n\n";
        format!("Linux 6.1.0 ({machine}) \t01/01/26 \t_x86_64_\t(2 CPU)\n\n{report}{report}")
    };
    assert!(of_two(&iostat("db1"), &iostat("db1")).is_ok());
    let error = of_two(&iostat("db1"), &iostat("db2")).unwrap_err().to_string();
    assert!(error.contains("the machine of iostat is 'db1' in one and 'db2'"), "{error}");
}

#[test]
fn the_files_of_pt_stalk_give_variables_rates_and_the_device_of_the_data() {
    let all = [
        sample!("stalk/2026_11_22_23_18_22-variables"),
        sample!("stalk/2026_11_22_23_18_22-mysqladmin"),
        sample!("stalk/2026_11_22_23_18_22-iostat"),
        sample!("stalk/2026_11_22_23_18_22-diskstats"),
        sample!("stalk/2026_11_22_23_18_22-df"),
        sample!("stalk/2026_11_22_23_18_22-meminfo"),
        sample!("stalk/2026_11_22_23_18_22-sysctl"),
        sample!("stalk/2026_11_22_23_18_22-slave-status"),
    ];
    let seen = of(&all);
    assert!(!seen.partial_variables && variable(&seen, "datadir") == Some("/tmp/doctor/data/"));
    assert_eq!(seen.span.unwrap().seconds, 11.0);
    let commits = seen.rates.unwrap().commits.unwrap();
    assert!((30.0..80.0).contains(&commits), "sysbench sent 50 a second: {commits}");
    assert!(seen.replica.as_ref().unwrap().is_empty(), "the server has no source");
    let host = seen.host.unwrap();
    assert_eq!(host.memory_bytes, Some(24_684_092 * 1024));
    assert_eq!((host.swap_bytes, host.aio_max), (Some(0), Some(65_536)));
    let data = host.place(Files::Data).unwrap();
    assert_eq!((&*data.mount_point, &*data.file_system), ("/", ""));
    assert_eq!((data.size_bytes, data.free_bytes), (Some(264_212_084 * 1024), Some(67_956_688 * 1024)));
    let device = data.device.as_ref().unwrap();
    assert!(device.name == "vda" && device.io.unwrap().writes > 0.0, "{device:?}");
    for other in ["output", "trigger", "vmstat"] {
        let path = format!("{}/tests/fixtures/stalk/2026_11_22_23_18_22-{other}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!is_known(&Input { path: path.into(), text }), "{other}");
    }
}

#[test]
fn a_report_of_pt_mysql_summary_is_known_by_any_of_its_sections() {
    let text = sample!("pt-mysql-summary.txt");
    let whole = of(&[text]);
    let from = |section: &str| of(&[&text[text.find(section).unwrap()..]]);
    // As it is pasted without the first lines, with the blanks that a mail adds.
    let cut = from("# Report On Port");
    assert_eq!(
        (cut.variables.as_ref(), cut.rates.as_ref()),
        (whole.variables.as_ref(), whole.rates.as_ref())
    );
    assert_eq!(
        variable(&from("# InnoDB ###"), "innodb_flush_log_at_trx_commit"),
        variable(&whole, "innodb_flush_log_at_trx_commit")
    );
    assert!(from("# Configuration File").configured.is_some());
    assert_eq!(of(&[&text.replace("####\n", "####  \r\n")]).variables, whole.variables);
    // A comment of an option file is no section.
    let comment = "# InnoDB settings\n[mysqld]\nsync_binlog = 1\n";
    assert!(of(&[comment]).rates.is_none() && of(&[comment]).configured.is_some());
}

#[test]
fn a_report_of_pt_mysql_summary_gives_what_it_prints_as_it_is() {
    let seen = of(&[sample!("pt-mysql-summary.txt")]);
    assert!(seen.partial_variables);
    let expect = [
        ("version", "10.11.19-MariaDB-0+deb12u1-log"),
        ("datadir", "/tmp/doctor/data/"),
        ("sync_binlog", "0"),
        ("binlog_format", "MIXED"),
        ("expire_logs_days", "0"),
        ("log_bin", "ON"),
    ];
    for (name, value) in expect {
        assert_eq!(variable(&seen, name), Some(value), "{name}");
    }
    assert_eq!(seen.span.unwrap().seconds, 10.0);
    let rates = seen.rates.unwrap();
    assert_eq!((rates.commits, rates.redo_bytes), (Some(50.0), Some(150_000.0)));
    assert_eq!(rates.checkpoint_age, None, "the growth of a gauge is no value of it");
    assert_eq!(seen.status.unwrap().growth_per_s.get("com_create_db"), None, "no figure is not 0");
    assert!(seen.configured.unwrap().iter().any(|line| line.name == "socket"));
}

#[test]
fn a_report_of_another_length_has_the_seconds_of_its_heading() {
    let text = sample!("pt-mysql-summary.txt");
    let of_length = |seconds: &str| of(&[&text.replacen("10 secs", seconds, 1)]);
    assert_eq!(of(&[text]).span.unwrap().seconds, 10.0);
    assert_eq!(of_length(" 4 secs").span.unwrap().seconds, 4.0);
    let none = of_length(" 0 secs");
    assert_eq!((none.span, none.rates), (None, None), "no time passed");
}

#[test]
fn a_report_on_mysql_has_rows_of_innodb() {
    let text = "# Percona Toolkit MySQL Summary Report #####\n# Report On Port 3306 #####\n       Version | 5.7.44-log MySQL Community\n\
                # InnoDB #####################\n  Version | 5.7.44\n Flush Method | O_DIRECT\n  Flush Log At Commit | 2\n   Doublewrite | ON\n\
                R/W I/O Threads | 4 2\n I/O Capacity | 200\n  Log File Size | 2 * 48.0M = 96.0M\n";
    let seen = of(&[text]);
    let expect = [
        ("version", "5.7.44-log"),
        ("innodb_flush_method", "O_DIRECT"),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("innodb_write_io_threads", "2"),
    ];
    for (name, value) in expect {
        assert_eq!(variable(&seen, name), Some(value), "{name}");
    }
    assert_eq!(variable(&seen, "innodb_log_file_size"), None, "it is rounded");
}

#[test]
fn iostat_is_read_in_the_form_of_any_version_without_its_first_report() {
    let new = io_of(&[sample!("iostat-12.6.txt")], "vda");
    assert!(new.reads < 400.0 && new.writes > 0.0, "the first report has 424 reads a second: {new:?}");
    assert!(io_of(&[sample!("iostat-12.6.json")], "vda").reads > 0.0);
    let expect = DeviceIo {
        reads: 10.0,
        writes: 20.0,
        read_bytes: 163_840.0,
        written_bytes: 327_680.0,
        queue: 0.5,
        ..DeviceIo::default()
    };
    let forms = [
        // sysstat 9: sectors.
        (
            "Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util",
            "sda 0.00 1.00 10.00 20.00 320.00 640.00 32.00 0.50 1.00 0.50 5.00",
        ),
        // sysstat 10, in kB.
        (
            "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await r_await w_await  svctm  %util",
            "sda 0.00 1.00 10.00 20.00 160.00 320.00 32.00 0.50 1.00 1.00 1.00 0.50 5.00",
        ),
        // sysstat 11.7, with decimal commas.
        (
            "Device            r/s     w/s     rkB/s     wkB/s   rrqm/s   wrqm/s  %rrqm  %wrqm r_await w_await aqu-sz rareq-sz wareq-sz  svctm  %util",
            "sda 10,00 20,00 160,00 320,00 0,00 0,00 0,00 0,00 1,00 1,00 0,50 16,00 16,00 0,50 5,00",
        ),
        // sysstat 12, in MB.
        (
            "Device            r/s     rMB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wMB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util",
            "sda 10.00 0.15625 0.00 0.00 1.00 16.00 20.00 0.3125 0.00 0.00 1.00 16.00 0.50 5.00",
        ),
    ];
    for (header, row) in forms {
        let text = format!(
            "Linux 5.10 (h) \t01/01/26\n\n{header}\n{}\n\n{header}\n{row}\n",
            row.replace("10", "99")
        );
        let time = header.contains("r_await").then_some(0.001);
        let expect = DeviceIo { read_s: time, write_s: time, ..expect };
        assert_eq!(io_of(&[&text], "sda"), expect, "{header}");
    }
}

#[test]
fn processors_are_read_of_iostat_too_without_its_first_report() {
    let text = "Linux 6.1.0 (db1) \t11/22/26 \t_x86_64_\t(8 CPU)\n\n\
        avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           1,00    0,00    1,00    3,00    0,00   95,00\n\n\
        Device r/s rkB/s w/s wkB/s aqu-sz\nnvme1n1 1.0 16.0 2.0 32.0 0.1\n\n\
        avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n          20,00    1,00    9,00   30,00    0,00   40,00\n\n\
        Device r/s rkB/s w/s wkB/s aqu-sz\nnvme1n1 100.0 1600.0 200.0 3200.0 2.1\n";
    let seen = observation("x", &[Input { path: "x".into(), text: text.into() }], &Hints::default()).unwrap();
    let host = seen.host.unwrap();
    assert_eq!(host.processors, Some(8));
    assert!((host.busy_share.unwrap() - 0.30).abs() < 1e-9, "{host:?}");
    let one = text.split("\n\navg-cpu").next().unwrap().to_owned();
    let seen = observation("x", &[Input { path: "x".into(), text: one }], &Hints::default()).unwrap();
    assert_eq!(seen.host.and_then(|host| host.busy_share), None, "the mean since the machine's start");
    let json = r#"{"sysstat": {"hosts": [{"number-of-cpus": 4, "statistics": [
        {"avg-cpu": {"user": 1.0, "nice": 0.0, "system": 1.0, "iowait": 0.0, "steal": 0.0, "idle": 98.0}, "disk": []},
        {"avg-cpu": {"user": 40.0, "nice": 0.0, "system": 10.0, "iowait": 0.0, "steal": 0.0, "idle": 50.0}, "disk": []}]}]}}"#;
    let seen = observation("x", &[Input { path: "x".into(), text: json.into() }], &Hints::default()).unwrap();
    let host = seen.host.unwrap();
    assert_eq!((host.processors, host.busy_share), (Some(4), Some(0.5)));
}

#[test]
fn one_report_of_iostat_is_a_mean_since_the_start_and_is_not_used() {
    let header = "Device r/s w/s rkB/s wkB/s aqu-sz %util\nsda 1 1 1 1 1 1\n";
    let seen = of_hints(&[header], &device("sda"));
    assert_eq!(seen.host.unwrap().place(Files::Data).unwrap().device.as_ref().unwrap().io, None);
    assert!(seen.not_seen.iter().any(|one| one.why.contains("one report")), "{:?}", seen.not_seen);
    let seen = of(&[sample!("iostat-12.6.txt")]);
    assert!(seen.not_seen.iter().any(|one| one.why.contains("--device data=NAME")), "{:?}", seen.not_seen);
}

#[test]
fn a_second_run_of_iostat_begins_with_a_mean_since_the_start_too_and_an_idle_device_may_be_left_out() {
    let report = |reads: u32| format!("Device r/s w/s rkB/s wkB/s aqu-sz\nsda {reads} 0 0 0 0\n\n");
    let other = "Device r/s w/s rkB/s wkB/s aqu-sz\nsdb 1 0 0 0 0\n\n";
    let run = |first: u32, later: u32| {
        format!("Linux 6.1.0 (db1) \t01/01/26 \t_x86_64_\t(2 CPU)\n\n{}{}", report(first), report(later))
    };
    assert_eq!(io_of(&[&format!("{}{}", run(9_000, 10), run(9_000, 30))], "sda").reads, 20.0);
    // As `iostat -xz` prints it.
    assert_eq!(io_of(&[&format!("{}{other}", run(9_000, 10))], "sda").reads, 5.0);
    let json = r#"{"sysstat": {"hosts": [{"statistics": [
        {"disk": [{"disk_device": "sda", "r/s": 9000, "w/s": 0, "rkB/s": 0, "wkB/s": 0, "aqu-sz": 0}]},
        {"disk": [{"disk_device": "sda", "r/s": 10, "w/s": 0, "rkB/s": 0, "wkB/s": 0, "aqu-sz": 0}]},
        {"disk": []}]}]}}"#;
    assert_eq!(io_of(&[json], "sda").reads, 5.0);
}

#[test]
fn rows_of_iostat_that_are_not_understood_give_no_rates_and_are_named() {
    let text = |row: &str| {
        let report =
            format!("Device r/s rkB/s w/s wkB/s aqu-sz\nsda 175.23 4.8M 20.00 11.2M 0.11\n{row}\n\n");
        format!("Linux 6.1.0 (db1) \t01/01/26 \t_x86_64_\t(2 CPU)\n\n{report}{report}")
    };
    assert_eq!(
        io_of(&[&text("")], "sda").read_bytes,
        4.8 * 1_048_576.0,
        "figures of --human have their units"
    );
    let seen = of_hints(&[&text("sdb 1.00 x 0.00 0.00 0.11")], &device("sda"));
    assert_eq!(seen.host.unwrap().place(Files::Data).unwrap().device.as_ref().unwrap().io, None);
    let why = "a row of iostat was not understood, so none is used: line 5";
    assert!(
        seen.not_seen.iter().any(|one| one.why.contains(why) && one.why.contains("'sdb 1.00 x")),
        "{:?}",
        seen.not_seen
    );
}

#[test]
fn iostat_without_x_or_with_s_gives_no_rates_and_the_way_to_record_them() {
    let run = |heading: &str, row: &str| {
        format!(
            "Linux 6.1.0 (db1) \t01/01/26 \t_x86_64_\t(2 CPU)\n\n{heading}\n{row}\n\n{heading}\n{row}\n\n"
        )
    };
    for (text, words) in [
        (run("Device tps kB_read/s kB_wrtn/s kB_read kB_wrtn", "sda 1.0 1.0 1.0 1 1"), "iostat -x -t 10"),
        (
            run("Device tps kB/s rqm/s await areq-sz aqu-sz %util", "sda 1.0 1.0 1.0 1.0 1.0 1.0 1.0"),
            "without -s",
        ),
    ] {
        let seen = of_hints(&[&text], &device("sda"));
        assert_eq!(seen.host.unwrap().place(Files::Data).unwrap().device.as_ref().unwrap().io, None);
        assert!(seen.not_seen.iter().any(|one| one.why.contains(words)), "{:?}", seen.not_seen);
    }
}

/// A look of pt-stalk at /proc/diskstats.
fn look(at: u32, reads: u32) -> String {
    format!("TS {at}.0 2026-11-22 23:18:22\n 8 0 sda {reads} 0 0 0 0 0 0 0 0 0 0\n")
}

#[test]
fn a_clock_or_counters_that_go_back_give_no_rates_of_devices() {
    let of_looks = |looks: [(u32, u32); 3]| {
        let text: String = looks.into_iter().map(|(at, reads)| look(at, reads)).collect();
        let seen = of_hints(&[&text], &device("sda"));
        let io = seen.host.unwrap().place(Files::Data).unwrap().device.as_ref().unwrap().io;
        (io.map(|io| io.reads), seen.not_seen.into_iter().map(|one| one.why).collect::<String>())
    };
    assert_eq!(of_looks([(100, 0), (110, 50), (120, 100)]), (Some(5.0), String::new()));
    let (reads, why) = of_looks([(100, 0), (90, 50), (120, 100)]);
    assert!(reads.is_none() && why.contains("go back"), "{reads:?} {why}");
    assert_eq!(of_looks([(100, 10), (110, 0), (120, 100)]).0, None);
}

#[test]
fn the_space_of_another_file_system_is_not_that_of_the_mount() {
    let variables = "datadir\t/data/mysql\nversion\t8.0.36\n";
    let mount = "/dev/sda1 on / type ext4 (rw)\n/dev/nvme1n1 on /data type xfs (rw)\n";
    let df = |rows: &str| format!("Filesystem 1K-blocks Used Available Use% Mounted on\n{rows}");
    let size = |texts: &[&str]| {
        let host = of(&[&[variables], texts].concat()).host.unwrap();
        let place = host.place(Files::Data).unwrap();
        (place.mount_point.clone(), place.size_bytes)
    };
    let root = "/dev/sda1 100 50 50 50% /\n";
    assert_eq!(size(&[mount, &df(root)]), ("/data".to_owned(), None));
    let both = df(&format!("{root}/dev/nvme1n1 1000 50 950 5% /data\n"));
    assert_eq!(size(&[mount, &both]), ("/data".to_owned(), Some(1_024_000)));
    // `df -m`, and a directory with a blank in its name.
    let mib = both.replace("1K-blocks", "1M-blocks").replace("/data", "/da ta");
    let host = of(&["datadir\t/da ta/mysql\nversion\t8.0.36\n", &mib]).host.unwrap();
    let place = host.place(Files::Data).unwrap();
    assert_eq!((&*place.mount_point, place.size_bytes), ("/da ta", Some(1_000 << 20)));
}

#[test]
fn variables_and_two_statuses_below_each_other_are_three_blocks() {
    let row = |name: &str, value: u32| {
        format!(
            "*************************** 1. row ***************************\nVariable_name: {name}\n        Value: {value}\n"
        )
    };
    let next = |name: &str, value: &str| {
        format!(
            "*************************** 2. row ***************************\nVariable_name: {name}\n        Value: {value}\n"
        )
    };
    let text = row("ssl_cipher", 1)
        + &next("version", "8.0.36")
        + &row("Com_commit", 5)
        + &next("Ssl_cipher", "")
        + &next("Uptime", "100")
        + &row("Com_commit", 25)
        + &next("Ssl_cipher", "")
        + &next("Uptime", "110");
    let seen = of(&[&text]);
    assert_eq!(seen.status.unwrap().growth_per_s.get("com_commit"), Some(&2.0));
}

#[test]
fn a_file_with_the_output_of_several_programs_gives_what_each_printed() {
    let below = |place: u32, name: &str, value: &str| {
        format!(
            "*************************** {place}. row ***************************\nVariable_name: {name}\n        Value: {value}\n"
        )
    };
    let replica = "*************************** 1. row ***************************\n  Slave_IO_Running: No\n Slave_SQL_Running: Yes\n";
    let df = "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 100 50 50 50% /\n";
    let text = below(1, "version", "8.0.36") + &below(2, "datadir", "/data") + replica + df;
    let seen = of(&[&text]);
    assert_eq!(variable(&seen, "datadir"), Some("/data"));
    assert_eq!(seen.replica.as_ref().unwrap().get("slave_io_running"), Some("No"));
    assert_eq!(seen.host.unwrap().place(Files::Data).unwrap().size_bytes, Some(102_400));
}

#[test]
fn a_channel_that_stopped_is_found_among_several() {
    let channel = |name: &str, io: &str| {
        format!(
            "*************************** 1. row ***************************\n  Slave_IO_Running: {io}\n   Channel_Name: {name}\n"
        )
    };
    let running = |text: &str| of(&[text]).replica.unwrap().get("slave_io_running").map(str::to_owned);
    for text in [channel("a", "Yes") + &channel("b", "No"), channel("a", "No") + &channel("b", "Yes")] {
        assert_eq!(running(&text).as_deref(), Some("No"));
    }
    let later = channel("a", "No") + &channel("a", "Yes");
    assert_eq!(running(&later).as_deref(), Some("Yes"), "the last look");
}

#[test]
fn mounts_are_read_as_mount_and_the_kernel_print_them() {
    let variables = "datadir\t/data/mysql\nversion\t8.0.36\n";
    let forms = [
        "/dev/nvme0n1p1 on / type ext4 (rw,relatime)\n/dev/nvme1n1p1 on /data type xfs (rw,noatime,nobarrier)\n",
        "/dev/nvme0n1p1 / ext4 rw,relatime 0 0\n/dev/nvme1n1p1 /data xfs rw,noatime,nobarrier 0 0\n",
        "22 1 8:1 / / rw - ext4 /dev/nvme0n1p1 rw\n30 22 259:3 / /data rw,noatime shared:2 - xfs /dev/nvme1n1p1 nobarrier\n",
    ];
    for form in forms {
        let host = of(&[variables, form]).host.unwrap();
        let data = host.place(Files::Data).unwrap();
        assert_eq!((&*data.mount_point, &*data.file_system), ("/data", "xfs"), "{form}");
        assert!(data.options.iter().any(|option| option == "nobarrier"), "{form}");
        assert_eq!(data.device.as_ref().unwrap().name, "nvme1n1", "{form}");
    }
    let names = [
        ("/dev/sda1", Some("sda")),
        ("/dev/nvme0n1", Some("nvme0n1")),
        ("/dev/md0", Some("md0")),
        ("/dev/xvdf", Some("xvdf")),
        ("/dev/mapper/vg-data", None),
        ("tmpfs", None),
    ];
    for (path, name) in names {
        let host = of(&[variables, &format!("{path} on /data type xfs (rw)\n")]).host.unwrap();
        let device = host.place(Files::Data).unwrap().device.clone();
        assert_eq!(device.map(|device| device.name).as_deref(), name, "{path}");
    }
}

#[test]
fn an_option_file_gives_what_it_sets_and_nothing_else() {
    let seen = of(&[
        "[client]\nuser=x\n[mysqld]\nsync_binlog=0\nsync-binlog=1\ninnodb_buffer_pool_size=1G\n[mysqld-5.7]\nx=1\n",
    ]);
    assert!(seen.partial_variables && seen.rates.is_none());
    assert_eq!(variable(&seen, "sync_binlog"), Some("1"));
    assert_eq!(variable(&seen, "innodb_buffer_pool_size"), Some("1073741824"));
    assert_eq!(seen.configured.as_ref().unwrap().len(), 3);
    assert!(seen.not_seen.iter().any(|one| one.why.contains("mysqld-5.7")), "{:?}", seen.not_seen);
    let server = of(&["version\t8.0.36\nsync_binlog\t1\n", "[mysqld]\nsync_binlog=0\n"]);
    assert_eq!(variable(&server, "sync_binlog"), Some("1"), "a running server's goes before a file's");
}

#[test]
fn texts_of_no_kind_are_known_as_none() {
    for text in [
        "",
        "\n",
        "hello\n",
        "a\tb\nc\td\n",
        "a\tb\nc\td",
        "[client]\nuser=x\n",
        "{}",
        "a | b\n",
        "1 2 3 4 5 6\n",
    ] {
        assert!(!is_known(&Input { path: "/none".into(), text: text.into() }), "{text:?}");
    }
}

/// What `aws cloudwatch get-metric-data` prints of some minutes of one metric.
fn minutes(label: &str, from: u32, values: &[f64]) -> String {
    let time = |minute: u32| {
        format!("\"2026-11-{:02}T{:02}:{:02}:00+00:00\"", 1 + minute / 1440, minute / 60 % 24, minute % 60)
    };
    let times: Vec<String> = (from..).take(values.len()).map(time).collect();
    format!(
        "{{\"MetricDataResults\": [{{\"Id\": \"m1\", \"Label\": \"{label}\", \"Timestamps\": [{}], \"Values\": {values:?}, \"StatusCode\": \"Complete\"}}], \"Messages\": []}}",
        times.join(",")
    )
}

#[test]
fn minutes_of_a_volume_are_added_up_over_files_and_metrics() {
    let mut reads = vec![600.0; 2_000];
    (reads[7], reads[9], reads[11]) = (60_000.0, 45_000.0, 30_000.0);
    let writes = vec![60.0; 1_000];
    let first = minutes("VolumeReadOps", 0, &reads[..1_000]);
    let second = minutes("VolumeReadOps", 1_000, &reads[1_000..]);
    let seen = of(&[&first, &second, &minutes("vol-1 VolumeWriteOps", 0, &writes)]);
    let peaks = seen.peaks.unwrap();
    assert_eq!((peaks.seconds, peaks.minutes, peaks.bytes), (120_000.0, 2_000, None));
    assert_eq!(peaks.ios, 501.0, "of 2,000 minutes two are above");
    let bytes = minutes("VolumeWriteBytes", 0, &[6_000.0, 120.0]);
    assert_eq!(of(&[&first, &bytes]).peaks.unwrap().bytes, Some(100.0));
}

#[test]
fn metrics_of_several_volumes_give_no_peaks() {
    let values = [600.0, 60.0, 6.0];
    let why = |texts: [&str; 2]| {
        let seen = of(&texts);
        assert_eq!(seen.peaks, None);
        seen.not_seen.iter().map(|one| one.why.clone()).collect::<String>()
    };
    let (one, other) =
        (minutes("vol-1 VolumeReadOps", 0, &values), minutes("vol-2 VolumeReadOps", 9, &values));
    assert!(why([&one, &other]).contains("several volumes (vol-1, vol-2)"));
    let (one, other) =
        (minutes("db1 VolumeReadOps", 0, &values), minutes("db2 VolumeReadOps", 0, &[600.0, 61.0, 6.0]));
    assert!(why([&one, &other]).contains("VolumeReadOps has two values of one minute"));
    // The same minutes in two files are the same.
    assert!(of(&[&one, &one]).peaks.is_some());
}

#[test]
fn metrics_of_five_minutes_are_no_peaks_and_hostile_ones_no_figures() {
    let five = minutes("VolumeReadOps", 0, &[1.0, 2.0]).replace("00:01:00", "00:05:00");
    let seen = of(&[&five]);
    assert!(
        seen.peaks.is_none() && seen.not_seen.iter().any(|one| one.why.contains("--period 60")),
        "{seen:?}"
    );
    for values in ["[1e999, -5.0]", "[\"x\", null]", "7", "[]"] {
        let text = minutes("VolumeReadOps", 0, &[1.0, 2.0]).replace("[1.0, 2.0]", values);
        let input = Input { path: "/none".into(), text };
        assert!(super::cloudwatch::read(&input).is_none_or(|minutes| minutes.peaks().is_err()), "{values}");
    }
    let damaged = Input { path: "/none".into(), text: "{\"MetricDataResults\": 5}".into() };
    assert!(super::cloudwatch::read(&damaged).is_none());
}

#[test]
fn rows_of_an_export_that_are_cut_short_are_left_out_and_named() {
    let rows = "Label,VolumeReadOps,VolumeWriteOps\n2026/11/22 10:00:00,600,60\n2026/11/22 10:01:00,660,60\n";
    let whole = of(&[rows]);
    assert_eq!((whole.peaks.unwrap().ios, whole.not_seen.len()), (12.0, 0));
    let cut = of(&[&format!("{rows}2026/11/22 10:02:00,9")]);
    assert_eq!(cut.peaks.unwrap().minutes, 2);
    assert!(cut.not_seen.iter().any(|one| one.why.contains("line 4 has fewer values")), "{:?}", cut.not_seen);
}

#[test]
fn an_export_of_averages_gives_no_peaks_and_says_why() {
    let minutes = "Label,VolumeReadOps,VolumeWriteOps\nStat,Average,Sum\n2026/11/22 10:00:00,600,60\n2026/11/22 10:01:00,660,60\n";
    let seen = of(&[minutes]);
    assert_eq!(seen.peaks, None);
    let why: String = seen.not_seen.iter().map(|one| one.why.clone()).collect();
    assert!(why.contains("VolumeReadOps has the statistic Average: needed is Sum"), "{why}");
    let wrong = minutes.replace("Stat,Average,Sum", "Unit,Percent,Count");
    assert!(of(&[&wrong]).not_seen.iter().any(|one| one.why.contains("has the unit 'Percent'")));
    assert!(of(&[&minutes.replace("Average", "Sum")]).peaks.is_some());
}

#[test]
fn variables_are_read_as_csv_and_not_of_tables_with_more_columns() {
    let rows =
        [("datadir", "/d/"), ("innodb_flush_method", "O_DIRECT"), ("sql_mode", "A,B"), ("version", "8.0.36")];
    for (separator, quote) in [(',', "\""), (';', "\""), (',', ""), (';', "")] {
        let line =
            |(name, value): (&str, &str)| format!("{quote}{name}{quote}{separator}{quote}{value}{quote}\r\n");
        let text: String = [("Variable_name", "Value")].into_iter().chain(rows).map(line).collect();
        let seen = of(&[&text]);
        for (name, value) in rows {
            assert_eq!(variable(&seen, name), Some(value), "{text}");
        }
    }
    let wide = "VARIABLE_NAME\tSESSION_VALUE\tGLOBAL_VALUE\nINNODB_FLUSH_METHOD\tNULL\tO_DIRECT\nVERSION\tNULL\t8.0.36\n";
    assert!(
        !is_known(&Input { path: "/w".into(), text: wide.into() }),
        "a value is not all that follows a name"
    );
    let boxed = format!("| {} |\n", wide.trim_end().replace('\t', " | ").replace('\n', " |\n| "));
    assert!(!is_known(&Input { path: "/w".into(), text: boxed.clone() }), "{boxed}");
}

#[test]
fn the_blocks_of_df_may_have_any_unit() {
    let variables = "datadir\t/d/\nversion\t8.0.36\n";
    for (heading, numbers, size) in [
        ("1K-blocks", ["100", "40", "60"], 100 << 10),
        ("1B-blocks", ["1000", "400", "600"], 1_000),
        ("1G-blocks", ["252G", "42G", "210G"], 252 << 30),
        ("1kB-blocks", ["5kB", "1kB", "4kB"], 5_000),
        ("1M-blocks", ["7", "1", "6"], 7 << 20),
        ("512-blocks", ["8", "1", "7"], 8 * 512),
    ] {
        let [all, used, free] = numbers;
        let df = format!(
            "Filesystem {heading} Used Available Use% Mounted on\n/dev/nvme1n1 {all} {used} {free} 17% /d\n"
        );
        let places = of(&[variables, &df]).host.unwrap().places;
        assert_eq!(places[0].size_bytes, Some(size), "{df}");
    }
}
