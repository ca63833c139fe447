//! Advice that fits the server: what it is part of, what its release and its machine allow, and what else is advised.

use ebbtide_observe::{DeviceIo, Files, Variables};

use super::pairs::{load, redo};
use super::support::{Seen, device, mariadb, mysql, server};
use crate::finding::{Assessment, Finding, Severity};

const GIB: u64 = 1 << 30;

fn with_free(seen: Seen, bytes: u64) -> Seen {
    seen.place(|place| place.free_bytes = Some(bytes), device("sda"))
}

fn settings(found: &Finding) -> Vec<(&'static str, &str)> {
    let set = found.fix.as_ref().map(|fix| &fix.set);
    set.into_iter().flatten().map(|change| (change.variable, &*change.value)).collect()
}

#[test]
fn a_promoted_server_whose_old_source_is_left_is_no_replica() {
    let severity = |read_only: &str, threads: [&str; 2]| {
        let replica = [("slave_io_running", threads[0]), ("slave_sql_running", threads[1])];
        let mut seen = mysql().var("innodb_flush_log_at_trx_commit", "2").var("read_only", read_only);
        seen.rest.replica = Some(Variables::from_iter(replica));
        seen.asks("D01").severity
    };
    assert_eq!(severity("OFF", ["No", "No"]), Some(Severity::Critical));
    let of_two = [("slave_io_running", "No"), ("slave_sql_running", "No"), ("any_channel_running", "Yes")];
    let mut seen = mysql().var("innodb_flush_log_at_trx_commit", "2").var("read_only", "OFF");
    seen.rest.replica = Some(Variables::from_iter(of_two));
    assert_eq!(seen.asks("D01").severity, Some(Severity::Low), "another source is followed");
    for (read_only, threads) in [("ON", ["No", "No"]), ("OFF", ["Yes", "No"]), ("OFF", ["Connecting", "Yes"])]
    {
        assert_eq!(severity(read_only, threads), Some(Severity::Low), "{read_only} {threads:?}");
    }
}

#[test]
fn a_node_of_a_galera_cluster_can_be_made_again_and_keeps_its_log_of_updates() {
    let node = |size: &str| mariadb().var("wsrep_on", "ON").last("wsrep_cluster_size", size);
    let commit = |seen: Seen| seen.var("innodb_flush_log_at_trx_commit", "0").asks("D01").severity;
    assert_eq!(commit(node("3")), Some(Severity::Low));
    assert_eq!(commit(node("1")), Some(Severity::Critical), "a cluster of one");
    assert_eq!(node("3").var("sync_binlog", "0").asks("D03").severity, Some(Severity::Low));
    let log = node("3").var("log_slave_updates", "ON").last("slaves_connected", "0").replica(&[]).asks("L07");
    assert_eq!(log.verdict, Assessment::DoesNotApply);
    let store = |seen: Seen| seen.on("instance-store:i3en.large").asks("E10").severity;
    assert_eq!([store(node("3")), store(mariadb())], [Some(Severity::Low), Some(Severity::High)]);
}

#[test]
fn a_group_before_8_0_21_has_no_checksums_and_must_not() {
    let verdict = |version: &str, group: &str| {
        let seen = server(version).var("log_bin", "ON").var("binlog_checksum", "NONE");
        seen.var("group_replication_group_name", group).asks("L10").verdict
    };
    assert_eq!(verdict("8.0.20", "aaaa"), Assessment::DoesNotApply);
    assert_eq!([verdict("8.0.20", ""), verdict("8.0.21", "aaaa")], [Assessment::Found; 2]);
}

#[test]
fn a_larger_redo_log_leaves_half_of_the_free_space() {
    // An hour at 1 MB/s is 3,456 MiB, and a quarter more is advised.
    let capacity = |free: u64| with_free(redo("104857600"), free).asks("R01");
    assert_eq!(settings(&capacity(9 * GIB)), [("innodb_redo_log_capacity", "4563402752")]);
    let less = capacity(2 * GIB);
    assert_eq!(settings(&less), [("innodb_redo_log_capacity", "1140850688")]);
    assert!(less.fix.unwrap().text.contains("4.25 GiB would be enough"));
    let none = capacity(16 << 20);
    assert!(none.verdict == Assessment::Found && settings(&none).is_empty(), "{none:?}");
    // MariaDB has the old file beside the new one for a while.
    let twice = mariadb().var("innodb_log_file_size", "1073741824").rate("redo_bytes", 1e6);
    assert_eq!(settings(&with_free(twice, 3 * GIB).asks("R01")), [("innodb_log_file_size", "1610612736")]);
}

#[test]
fn a_redo_log_that_is_full_is_given_the_hour_that_r01_advises() {
    let full = || redo("104857600").rate("checkpoint_age", 90.0).rate("checkpoint_age_max", 100.0);
    assert_eq!(settings(&full().asks("R02")), settings(&full().asks("R01")));
    let slow = full().rate("redo_bytes", 1.0).asks("R02");
    assert_eq!(settings(&slow), [("innodb_redo_log_capacity", "209715200")], "twice the present one");
}

#[test]
fn what_is_advised_for_flushing_is_not_too_much_for_the_volume() {
    let behind = |iops: &str| {
        mysql()
            .var("innodb_io_capacity", "200")
            .var("innodb_io_capacity_max", "2000")
            .on(&format!("gp3:size=500GiB,iops={iops}"))
            .rate("checkpoint_age", 70.0)
            .rate("checkpoint_age_max", 100.0)
    };
    for iops in ["3000", "6000", "80000"] {
        let set = behind(iops).asks("F03");
        let followed = settings(&set).iter().fold(behind(iops), |seen, (name, value)| seen.var(name, value));
        let after = followed.rate("checkpoint_age", 0.0).asks("F03");
        assert_eq!(after.verdict, Assessment::Fine, "{iops}: {:?}, then {}", settings(&set), after.why);
    }
    assert_eq!(settings(&behind("3000").asks("F03")), [("innodb_io_capacity", "900")]);
    // Room for reads is not made by more flushing.
    let low = behind("3000").var("innodb_io_capacity_max", "20000").asks("F03");
    assert_eq!(settings(&low), [("innodb_io_capacity_max", "1800")]);
}

#[test]
fn a_pool_grows_while_the_server_runs_only_where_the_release_takes_it() {
    let grown = |seen: Seen| {
        let seen = seen.rate("page_reads", 1_000.0).rate("page_requests", 10_000.0);
        let found = seen.host(|host| host.memory_bytes = Some(16 * GIB)).asks("B02");
        let fix = found.fix.unwrap();
        (fix.restart, fix.set.len())
    };
    let pool = || mariadb().var("innodb_buffer_pool_size", "1073741824");
    assert_eq!(grown(pool()), (false, 1));
    assert_eq!(grown(pool().var("innodb_buffer_pool_size_max", "1073741824")), (true, 1));
    assert_eq!(grown(pool().var("innodb_buffer_pool_size_max", "2147483648")), (true, 2));
    assert_eq!(grown(pool().var("innodb_buffer_pool_size_max", "17179869184")), (false, 1));
}

#[test]
fn a_pool_that_holds_all_data_is_not_to_blame() {
    let seen = mysql().var("innodb_buffer_pool_size", "4294967296").tables("InnoDB", 1, GIB);
    let fix =
        seen.rate("wait_free", 1.0).host(|host| host.memory_bytes = Some(16 * GIB)).asks("B03").fix.unwrap();
    assert!(fix.set.is_empty() && fix.text.contains("larger than the data"), "{}", fix.text);
}

#[test]
fn the_fullest_file_system_is_the_one_that_is_reported() {
    let mut seen = mysql().device(device("sda"));
    for place in &mut seen.rest.host.as_mut().unwrap().places {
        let free = match place.files {
            Files::Data => 140,
            Files::Binlog => 40,
            _ => 500,
        };
        (place.size_bytes, place.free_bytes) = (Some(1_000), Some(free));
    }
    let found = seen.asks("O09");
    assert_eq!(found.severity, Some(Severity::High));
    assert!(found.why.contains("binary log") && found.why.contains("4"), "{}", found.why);
    let share = found.evidence.iter().find(|one| one.name == "free_share").unwrap();
    assert_eq!(share.value, crate::finding::Seen::Number(0.04));
}

#[test]
fn a_binary_log_is_turned_on_as_other_checks_want_it() {
    let off = |seen: Seen| seen.var("log_bin", "OFF");
    let of_mariadb = off(mariadb())
        .var("sync_binlog", "0")
        .var("expire_logs_days", "0")
        .var("binlog_expire_logs_seconds", "0")
        .var("slave_connections_needed_for_purge", "1")
        .asks("L11");
    let names =
        ["log_bin", "sync_binlog", "binlog_expire_logs_seconds", "slave_connections_needed_for_purge"];
    assert_eq!(settings(&of_mariadb).iter().map(|one| one.0).collect::<Vec<_>>(), names);
    let old = off(server("5.7.44")).var("server_id", "0").var("sync_binlog", "1").asks("L11");
    assert_eq!(settings(&old), [("log_bin", "binlog"), ("server_id", "1")]);
}

#[test]
fn rds_is_set_by_its_parameter_group_and_aurora_has_no_pages_to_tune() {
    let rds = mysql().var("datadir", "/rdsdbdata/db/").var("sync_binlog", "0").asks("D03").fix.unwrap();
    assert_eq!((rds.statements.len(), &*rds.my_cnf[0], rds.restart), (0, "sync_binlog = 1", false));
    assert!(rds.text.ends_with("parameter group."), "{}", rds.text);
    let aurora = |seen: Seen, code: &str| seen.var("aurora_version", "3.04.0").asks(code).verdict;
    assert_eq!(aurora(redo("1000"), "R01"), Assessment::DoesNotApply);
    assert_eq!(aurora(mysql().var("innodb_flush_log_at_trx_commit", "2"), "D01"), Assessment::Found);
    for code in crate::aurora::NOT_ON_AURORA {
        assert_eq!(aurora(mysql(), code), Assessment::DoesNotApply, "{code}");
    }
}

#[test]
fn a_lazy_redo_log_is_not_made_lazier_where_commits_should_wait() {
    let lazy =
        || mariadb().var("innodb_flush_log_at_trx_commit", "2").var("innodb_log_file_buffering", "OFF");
    let found = lazy().asks("R05");
    assert!(found.verdict == Assessment::Found && settings(&found).is_empty(), "{found:?}");
    assert_eq!(settings(&lazy().replica(&[]).asks("R05")), [("innodb_log_file_buffering", "ON")]);
}

#[test]
fn a_larger_instance_runs_the_same_programs_and_a_larger_limit_can_be_bought() {
    let mut seen = mysql().on("io2:size=500GiB,iops=10000");
    seen.rest.instance = Some("m5.large".into());
    let fix = seen.asks("E04").fix.unwrap().text;
    let name = fix.split_once('(').unwrap().1.split(' ').next().unwrap().to_owned();
    assert!(name.contains('.') && !name.split('.').next().unwrap()[1..].contains('g'), "{fix}");
    let raised = |writes: f64, spec: &str| {
        let fix = load(writes, spec).asks("E03").fix.unwrap();
        (fix.volumes.first().map(|volume| volume.spec.clone()), fix.text)
    };
    assert_eq!(
        raised(59_000.0, "gp3:size=500GiB,iops=60000,throughput=2000").0.unwrap(),
        "gp3:size=500GiB,iops=75000,throughput=2000"
    );
    let (most, text) = raised(79_000.0, "gp3:size=500GiB,iops=80000,throughput=2000");
    assert!(most.is_none() && text.contains("no more IOPS"), "{text}");
    // Half more than 500 MiB/s needs 3,000 IOPS as they are; half more than 750 MiB/s needs 4,500.
    let full = |mib_s: f64, spec: &str| {
        let mut seen = load(100.0, spec);
        let device = seen.rest.host.as_mut().unwrap().places[0].device.as_mut().unwrap();
        device.io =
            Some(DeviceIo { writes: 100.0, written_bytes: mib_s * 1_048_576.0, ..DeviceIo::default() });
        seen.asks("E03").fix.unwrap().volumes[0].spec.clone()
    };
    assert_eq!(full(490.0, "gp3:size=500GiB,throughput=500"), "gp3:size=500GiB,iops=3000,throughput=750");
    assert_eq!(full(2_500.0, "io2:size=500GiB,iops=10000"), "io2:size=500GiB,iops=15000");
    assert_eq!(full(740.0, "gp3:size=500GiB,throughput=750"), "gp3:size=500GiB,iops=4500,throughput=1125");
}

#[test]
fn a_cache_of_each_connection_stays_small() {
    let fix = |bytes: &str| {
        let seen = mysql().var("binlog_cache_size", bytes).grew("binlog_cache_use", 100.0);
        seen.grew("binlog_cache_disk_use", 2.0).asks("L06").fix.unwrap().set.len()
    };
    assert_eq!([fix("4194304"), fix("4194305")], [1, 0]);
}

#[test]
fn a_cache_holds_the_transactions_that_did_not_fit() {
    // 2 transactions of 100 a second do not fit.
    let fix = |binlog_bytes_s: f64| {
        let seen = mysql().var("binlog_cache_size", "32768").grew("binlog_cache_use", 100.0);
        let seen = seen.grew("binlog_cache_disk_use", 2.0).rate("binlog_bytes", binlog_bytes_s);
        seen.asks("L06").fix.unwrap().set.first().map(|change| change.value.clone())
    };
    assert_eq!(fix(100_000.0).as_deref(), Some("131072"), "four times as much");
    assert_eq!(fix(1_000_000.0).as_deref(), Some("1048576"), "twice 500,000 bytes");
    assert_eq!(fix(40_000_000.0), None, "40 MB are too much for each connection");
}

#[test]
fn aria_has_a_log_and_an_old_replica_applies_one_schema_in_parallel_only_when_it_is_told_to() {
    let severity = |engine: &str| mariadb().tables(engine, 1, 1).asks("D11").severity;
    assert_eq!([severity("Aria"), severity("MyISAM")], [Some(Severity::Low), Some(Severity::Medium)]);
    let old = || {
        server("5.7.44")
            .var("log_bin", "ON")
            .var("slave_parallel_workers", "0")
            .var("slave_parallel_type", "DATABASE")
            .var("slave_preserve_commit_order", "OFF")
            .replica(&[("seconds_behind_master", "60")])
    };
    let names = |seen: Seen| settings(&seen.asks("L09")).iter().map(|one| one.0).collect::<Vec<_>>();
    let all = ["slave_parallel_type", "slave_parallel_workers", "slave_preserve_commit_order"];
    assert_eq!(names(old().var("log_slave_updates", "ON")), all);
    assert_eq!(names(old().var("log_slave_updates", "OFF")), all[..2]);
}

#[test]
fn a_disk_is_as_slow_as_its_type() {
    let slow = super::pairs::slow(100.0, 0.02, 4_096.0, "st1:size=500GiB").asks("E05");
    assert_eq!(slow.verdict, Assessment::DoesNotApply);
}

#[test]
fn the_time_that_may_be_lost_is_a_number_or_says_on_what_it_depends() {
    let lost = |version: &str, timeout: Option<&str>, whole: bool| {
        let mut seen = server(version).var("innodb_flush_log_at_trx_commit", "2");
        if let Some(timeout) = timeout {
            seen = seen.var("innodb_flush_log_at_timeout", timeout);
        }
        seen.rest.partial_variables = !whole;
        seen.asks("D01").why.replace("A crash of the machine loses acknowledged commits of ", "")
    };
    let unknown = "up to a second, or innodb_flush_log_at_timeout if that is set.";
    assert_eq!(lost("5.5.62", None, false), "about a second.");
    assert_eq!(lost("5.5.62-MariaDB", None, false), "about a second.");
    assert_eq!(lost("8.0.36", None, false), unknown);
    assert_eq!(lost("10.11.19-MariaDB", None, false), unknown);
    assert_eq!(lost("8.0.36", Some("3"), false), "up to 3 s.");
    assert_eq!(lost("8.0.36", Some("a while"), false), unknown, "what is no number is not printed as one");
    assert_eq!(lost("8.0.36", None, true), "about a second.", "the server has no such variable");
}

#[test]
fn a_fix_holds_over_a_restart_where_a_deprecated_option_would_undo_it() {
    let fix = |method: &str| {
        let seen = server("11.8.9-MariaDB").var("innodb_data_file_buffering", "ON");
        seen.var("innodb_flush_method", method).asks("F01").fix.unwrap()
    };
    let fsync = fix("fsync");
    assert_eq!(fsync.statements, ["SET GLOBAL innodb_data_file_buffering = OFF"]);
    assert_eq!(fsync.my_cnf, ["innodb_data_file_buffering = OFF", "innodb_flush_method = O_DIRECT"]);
    assert!(fsync.text.contains("remove it from the option files") && !fsync.restart, "{}", fsync.text);
    let direct = fix("O_DIRECT");
    assert_eq!(direct.my_cnf, ["innodb_data_file_buffering = OFF"]);
}

#[test]
fn the_doublewrite_buffer_is_turned_on_as_the_release_takes_it() {
    let fix = |version: &str, value: &str| {
        let seen = server(version).var("innodb_doublewrite", value).var("innodb_page_size", "16384");
        let fix = seen.asks("D04").fix.unwrap();
        (fix.statements, fix.my_cnf, fix.restart)
    };
    let now = vec!["SET GLOBAL innodb_doublewrite = ON".to_owned()];
    let file = vec!["innodb_doublewrite = ON".to_owned()];
    assert_eq!(fix("9.7.4", "DETECT_ONLY"), (now.clone(), file.clone(), false), "SET PERSIST is error 1238");
    assert_eq!(fix("9.7.4", "OFF"), (Vec::new(), file.clone(), true), "SET GLOBAL is error 1210");
    assert_eq!(fix("8.0.15", "OFF"), (Vec::new(), file.clone(), true), "SET GLOBAL is error 1238");
    assert_eq!(fix("11.8.9-MariaDB", "OFF"), (now, file.clone(), false));
    assert_eq!(fix("10.11.19-MariaDB", "OFF"), (Vec::new(), file, true), "SET GLOBAL is error 1238");
}

#[test]
fn a_resize_on_mariadb_says_what_it_breaks_and_reads_the_size_back() {
    let found = mariadb().var("innodb_log_file_size", "16777216").rate("redo_bytes", 1e6).asks("R01");
    let fix = found.fix.unwrap();
    assert!(fix.statements[0].starts_with("SET GLOBAL innodb_log_file_size = "), "{:?}", fix.statements);
    assert_eq!(fix.statements[1], "SELECT @@GLOBAL.innodb_log_file_size");
    assert!(
        fix.text.contains("Read the size back") && found.risk.contains("mariadb-backup"),
        "{}",
        found.risk
    );
    assert!(found.risk.contains("through the page cache"), "{}", found.risk);
    let mysql = mysql().var("innodb_redo_log_capacity", "16777216").rate("redo_bytes", 1e6).asks("R01");
    assert_eq!(mysql.fix.unwrap().statements.len(), 1);
}

/// Pages that are evicted unused are not counted by the kind of read-ahead that brought them: each kind that brings many is ended.
#[test]
fn each_kind_of_read_ahead_that_brings_many_pages_is_ended() {
    let ahead = |linear: f64, random: f64| {
        mysql()
            .var("innodb_random_read_ahead", if random > 0.0 { "ON" } else { "OFF" })
            .var("innodb_read_ahead_threshold", "56")
            .grew("innodb_buffer_pool_read_ahead", linear)
            .grew("innodb_buffer_pool_read_ahead_rnd", random)
            .grew("innodb_buffer_pool_read_ahead_evicted", 50.0)
            .asks("B07")
    };
    let (random, linear) = (("innodb_random_read_ahead", "OFF"), ("innodb_read_ahead_threshold", "64"));
    assert_eq!(settings(&ahead(5.0, 100.0)), [random]);
    assert_eq!(settings(&ahead(100.0, 0.0)), [linear]);
    assert_eq!(settings(&ahead(100.0, 100.0)), [random, linear]);
    assert!(ahead(200.0, 100.0).fix.is_none(), "a sixth is not much");
}
