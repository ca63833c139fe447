//! Every check one step inside its threshold, where it must find something, and one step outside, where it must not.

use std::collections::BTreeSet;

use ebbtide_catalog::Catalog;
use ebbtide_observe::{Device, DeviceIo, Files, Observation, Origin, ServerDirectory, Span};

use crate::finding::{Assessment, Confidence, Severity};
use pairs::{dirty, load, pairs, probed, redo, slow, with_file};
use support::{Seen, device, mariadb, mysql, server};

mod made;
mod pairs;
mod support;

#[test]
fn every_check_finds_what_is_inside_its_threshold_and_nothing_outside() {
    for (code, inside, outside, of) in pairs() {
        let found = of(inside).asks(code);
        assert_eq!(found.verdict, Assessment::Found, "{code} with {inside}: {found:#?}");
        assert!(
            found.severity.is_some() && !found.why.is_empty() && !found.evidence.is_empty(),
            "{found:#?}"
        );
        assert!(found.why.ends_with('.'), "{code}: {}", found.why);
        let fix = found.fix.unwrap_or_else(|| panic!("{code} has no fix"));
        assert!(!fix.text.is_empty() && fix.text.ends_with('.'), "{code}: {}", fix.text);
        let fine = of(outside).asks(code);
        assert_eq!(fine.verdict, Assessment::Fine, "{code} with {outside}: {fine:#?}");
    }
}

#[test]
fn a_fix_that_was_followed_is_not_advised_again() {
    for (code, inside, _, of) in pairs() {
        let set = of(inside).asks(code).fix.map(|fix| fix.set).unwrap_or_default();
        let followed =
            |seen: Seen| set.iter().fold(seen, |seen, change| seen.var(change.variable, &change.value));
        let after = followed(of(inside)).asks(code);
        let again = after.fix.map(|fix| fix.set).unwrap_or_default();
        assert!(set.is_empty() || again != set, "{code} with {inside}: {} {again:?}", after.why);
    }
}

#[test]
fn no_statement_deletes_binary_logs_where_space_ends_and_for_ever_ends_wherever_it_is_set() {
    let place = |place: &mut ServerDirectory| place.free_bytes = Some(32 << 30);
    let seen = mysql().var("binlog_expire_logs_seconds", "604800").rate("binlog_bytes", 465_000.0);
    let found = seen.place(place, device("sda")).asks("L03");
    let fix = found.fix.unwrap();
    assert!(fix.statements.is_empty() && fix.text.contains("holds 10 h"), "{}", fix.text);
    let fix = |purge: &str, kept: &str| {
        let seen =
            mysql().var("binlog_expire_logs_auto_purge", purge).var("binlog_expire_logs_seconds", kept);
        seen.asks("L03").fix.map(|fix| fix.set.len())
    };
    assert_eq!(
        [fix("ON", "60"), fix("OFF", "60"), fix("ON", "0"), fix("OFF", "0")],
        [None, Some(1), Some(1), Some(2)]
    );
}

#[test]
fn every_check_has_such_a_pair() {
    let have: BTreeSet<&str> = pairs().map(|pair| pair.0).collect();
    let all: BTreeSet<&str> = crate::checks().map(|check| check.code).collect();
    assert_eq!(have, all);
    assert_eq!(crate::checks().count(), all.len(), "a code stands for one check");
}

#[test]
fn what_was_not_observed_is_unknown_and_the_answer_names_what_is_missing() {
    let nothing = Observation::of(Origin::Capture { path: "/c".into() });
    for check in crate::checks() {
        let found = check.run(&nothing, &Catalog::builtin());
        assert_eq!(found.verdict, Assessment::Unknown, "{}", check.code);
        assert!(!found.missing.is_empty() && found.missing[0].why.len() > 5, "{}: {found:?}", check.code);
    }
}

#[test]
fn the_text_of_every_check_is_complete() {
    for check in crate::checks() {
        let texts = [check.title, check.condition, check.reason, check.gain, check.risk, check.cost];
        assert!(
            texts.iter().all(|text| !text.is_empty() && !text.ends_with('.')),
            "{}: {texts:?}",
            check.code
        );
        assert!(!check.sources.is_empty() && !check.servers.is_empty(), "{}", check.code);
        assert!(
            check.sources.iter().all(|source| !source.url.is_empty() && !source.says.is_empty()),
            "{}",
            check.code
        );
    }
}

#[test]
fn settings_are_certain_and_rates_are_as_sure_as_the_interval_is_long() {
    let of = |code: &str, seconds: f64, seen: Seen| {
        let mut seen = seen;
        seen.rest.span = Some(Span { began_unix_s: None, seconds, restarted: false });
        seen.asks(code).confidence
    };
    assert_eq!(of("D01", 1.0, mysql().var("innodb_flush_log_at_trx_commit", "2")), Confidence::High);
    let lengths = [59.0, 60.0, 899.0, 900.0].map(|seconds| of("R01", seconds, redo("1000")));
    assert_eq!(lengths, [Confidence::Low, Confidence::Medium, Confidence::Medium, Confidence::High]);
}

#[test]
fn what_a_file_does_not_set_is_unknown_and_its_fix_is_a_line_of_the_file() {
    let part = |name: &str, value: &str| {
        let mut seen = server("").var(name, value).var("log_bin", "ON");
        seen.rest.partial_variables = true;
        with_file(seen, &[(name, value)])
    };
    let found = part("sync_binlog", "0").asks("D03");
    assert_eq!((found.verdict, found.confidence), (Assessment::Found, Confidence::Medium));
    let fix = found.fix.unwrap();
    assert_eq!((fix.statements.len(), &*fix.my_cnf[0]), (0, "sync_binlog = 1"));
    let unknown = part("sync_binlog", "1").asks("C06");
    assert_eq!((unknown.verdict, unknown.missing[0].why.contains("default")), (Assessment::Unknown, true));
    assert_eq!(part("sync_binlog", "1").asks("C02").verdict, Assessment::Unknown, "no server was seen");
}

#[test]
fn a_file_that_turns_the_doublewrite_buffer_off_is_found_though_it_says_nothing_of_pages() {
    let part = |value: &str| {
        let mut seen = server("").var("innodb_doublewrite", value);
        seen.rest.partial_variables = true;
        with_file(seen, &[("innodb_doublewrite", value)])
    };
    for off in ["0", "OFF", "DETECT_ONLY"] {
        let found = part(off).asks("D04");
        assert_eq!((found.verdict, found.severity), (Assessment::Found, Some(Severity::High)), "{found:#?}");
        assert_eq!(found.fix.unwrap().my_cnf, ["innodb_doublewrite = ON"]);
    }
    let on = part("ON").asks("D04");
    assert_eq!((on.verdict, on.missing[0].what.as_str()), (Assessment::Unknown, "innodb_page_size"));
    let mut other = server("").var("sync_binlog", "1");
    other.rest.partial_variables = true;
    let unknown = other.asks("D04");
    assert_eq!(
        (unknown.verdict, unknown.missing[0].what.as_str()),
        (Assessment::Unknown, "innodb_doublewrite")
    );
}

#[test]
fn a_value_that_no_server_takes_is_no_answer() {
    for (code, name) in [
        ("D01", "innodb_flush_log_at_trx_commit"),
        ("D02", "innodb_flush_log_at_trx_commit"),
        ("F02", "innodb_flush_neighbors"),
        ("C07", "innodb_file_per_table"),
        ("D03", "sync_binlog"),
        ("D04", "innodb_doublewrite"),
    ] {
        let judged = mysql().var("innodb_page_size", "16384").var(name, "banana").asks(code);
        assert_eq!(judged.verdict, Assessment::Unknown, "{code}: {judged:#?}");
        assert!(judged.why.to_lowercase().contains("is banana"), "{code}: {}", judged.why);
    }
}

#[test]
fn a_volume_too_slow_for_a_hundred_syncs_is_found_by_the_longest_of_few() {
    let few = |writes| {
        let mut seen = probed(60_000.0, 700_000.0);
        seen.rest.sync_probe.as_mut().unwrap().writes = writes;
        seen.asks("O04").why
    };
    assert_eq!(few(31), "A sync takes 60.0 ms in the median, and the longest of 31 took 700.0 ms.");
    assert!(few(100).ends_with("and one in a hundred takes over 700.0 ms."), "{}", few(100));
}

#[test]
fn a_volume_at_its_baseline_on_which_all_wait_has_no_credits_left_and_is_no_slow_device() {
    let on = |ios, latency| slow(ios, latency, 4_096.0, "gp2:size=100GiB");
    let ended = on(300.0, 0.1).asks("E02");
    assert_eq!(ended.severity, Some(Severity::High), "{ended:#?}");
    assert_eq!(
        ended.why,
        "The credits have ended: 300 operations a second, at a baseline of 300, and each waits."
    );
    assert!(ended.fix.unwrap().text.contains("gp3:size=100GiB,iops=3000"));
    assert_eq!(on(300.0, 0.1).asks("E05").verdict, Assessment::Fine, "another device is not faster");
    // One operation after the other, at most as fast as the baseline allows.
    assert_eq!(on(300.0, 1.0 / 300.0).asks("E02").verdict, Assessment::Found);
    assert!(on(352.0, 0.07).asks("E02").why.starts_with("The credits have ended"));
    let left = |code| slow(300.0, 0.1, 4_096.0, "gp2:size=100GiB,credits=50%").asks(code).verdict;
    assert_eq!([left("E02"), left("E05")], [Assessment::Fine, Assessment::Found]);
    for (ios, latency) in [(300.0, 0.001), (269.0, 0.1), (300.0, 0.0025), (352.0, 0.004)] {
        assert_eq!(on(ios, latency).asks("E02").verdict, Assessment::Fine, "{ios} {latency}");
    }
    assert!(on(460.0, 0.1).asks("E02").why.starts_with("Full credits end"));
    assert_eq!(on(200.0, 0.1).asks("E05").verdict, Assessment::Found);
}

#[test]
fn tables_that_the_account_does_not_see_are_not_taken_for_none() {
    let asks = |engine: &str, hidden| {
        let mut seen = mysql().tables(engine, 3, 0);
        seen.rest.tables.as_mut().unwrap().hidden = hidden;
        seen.asks("D11").verdict
    };
    assert_eq!([asks("InnoDB", false), asks("InnoDB", true)], [Assessment::Fine, Assessment::Unknown]);
    assert_eq!([asks("MyISAM", false), asks("MyISAM", true)], [Assessment::Found; 2]);
}

#[test]
fn a_moment_is_no_latency_of_a_device() {
    let verdict = |seconds: f64| {
        let mut seen = slow(1_000.0, 0.02, 4_096.0, "gp3:size=500GiB");
        seen.rest.span = Some(Span { began_unix_s: None, seconds, restarted: false });
        seen.asks("E05").verdict
    };
    assert_eq!([verdict(4.9), verdict(5.0)], [Assessment::Unknown, Assessment::Found]);
}

#[test]
fn an_array_is_judged_by_what_all_members_do_against_the_limits_of_all() {
    let array = |writes: f64, spec: &str| {
        let mut seen = load(writes, spec);
        for place in &mut seen.rest.host.as_mut().unwrap().places {
            place.device.as_mut().unwrap().members = vec!["nvme1n1".into(), "nvme2n1".into()];
        }
        seen
    };
    let raid0 = "raid0(2x gp3:size=500GiB)";
    assert_eq!(array(5_401.0, raid0).asks("E03").verdict, Assessment::Found, "over 90% of 2 x 3,000");
    assert_eq!(array(5_400.0, raid0).asks("E03").verdict, Assessment::Fine);
    let one = array(5_401.0, "gp3:size=500GiB").asks("E03");
    assert_eq!(one.verdict, Assessment::Unknown);
    assert!(
        one.why.contains("nvme1n1, nvme2n1") && one.why.contains("raid0(2x gp3:size=500GiB"),
        "{}",
        one.why
    );
}

#[test]
fn each_volume_is_judged_and_one_that_is_not_named_leaves_the_answer_open() {
    let on = |redo: Option<&str>| {
        let mut seen = load(2_701.0, "gp3:size=500GiB");
        let redo_place = &mut seen.rest.host.as_mut().unwrap().places[1];
        assert_eq!(redo_place.files, Files::Redo);
        let io = redo_place.device.as_ref().unwrap().io;
        redo_place.device = Some(Device { io, ..device("nvme2n1") });
        seen.rest.redo_volume = redo.map(str::to_owned);
        seen
    };
    // Both are at their limit: one finding, with both figures apart.
    let both = on(Some("gp3:size=20GiB")).asks("E03");
    let why = &both.why;
    assert!(why.starts_with("The volume is at") && why.contains("of the redo log is at"), "{why}");
    let of: Vec<_> = both.evidence.iter().filter(|one| one.name == "volume").map(|one| one.of).collect();
    assert_eq!(of, [None, Some("redo log")]);
    // The redo log has room: its evidence does not stand beside the finding.
    let one = on(Some("gp3:size=20GiB,iops=6000")).asks("E03");
    assert!(one.evidence.iter().all(|one| one.of.is_none()), "{:?}", one.evidence);
    // It is found on a device of its own, and nothing says which volume that is.
    assert_eq!(on(None).asks("E03").verdict, Assessment::Found, "that of the data is known");
    let open = on(None).asks("E01");
    assert_eq!((open.verdict, &*open.missing[0].what), (Assessment::Unknown, "the volume of the redo log"));
}

/// A server whose logs lie on one device, which writes so many pages of 4 KiB a second.
fn logs_together(writes: f64) -> Seen {
    let mut seen = load(10.0, "gp3:size=500GiB");
    for place in &mut seen.rest.host.as_mut().unwrap().places {
        if matches!(place.files, Files::Redo | Files::Binlog) {
            let io = DeviceIo { writes, written_bytes: writes * 4_096.0, ..DeviceIo::default() };
            place.device = Some(Device { io: Some(io), ..device("nvme2n1") });
        }
    }
    seen
}

/// The same with one volume that is named for both logs.
fn named_together(writes: f64, spec: &str) -> Seen {
    let mut seen = logs_together(writes);
    let spec = Some(spec.to_owned());
    (seen.rest.redo_volume, seen.rest.binlog_volume, seen.rest.logs_share_volume) =
        (spec.clone(), spec, true);
    seen
}

#[test]
fn logs_that_share_a_volume_are_judged_once_by_what_both_write() {
    let spec = "gp3:size=20GiB,iops=4000";
    let full = named_together(3_601.0, spec).asks("E03");
    assert_eq!(full.verdict, Assessment::Found);
    assert!(
        full.why.starts_with("The volume of the redo log and binary log is at its limit"),
        "{}",
        full.why
    );
    let of: Vec<_> = full.evidence.iter().map(|one| one.of).collect();
    assert!(!of.is_empty() && of.iter().all(|of| *of == Some("redo log and binary log")), "{of:?}");
    let change = &full.fix.unwrap().volumes[0];
    assert_eq!((change.role, &*change.spec), ("redo+binlog", "gp3:size=20GiB,iops=6000,throughput=125"));
    assert_eq!(named_together(3_599.0, spec).asks("E03").verdict, Assessment::Fine);
    let old = named_together(1.0, "gp2:size=20GiB").asks("E01");
    assert!(old.why.starts_with("The redo log and binary log are on gp2."), "{}", old.why);
    // A volume that is named for one of the two is that of both where they have one device.
    let mut one = logs_together(3_601.0);
    one.rest.binlog_volume = Some(spec.into());
    assert_eq!(one.asks("E03").why, full.why);
    let open = logs_together(1.0).asks("E01");
    assert_eq!(
        (open.verdict, &*open.missing[0].what),
        (Assessment::Unknown, "the volume of the redo log and binary log")
    );
    assert!(open.missing[0].why.contains("--volume redo+binlog=SPEC"), "{:?}", open.missing);
}

#[test]
fn a_shared_volume_counts_once_for_its_instance() {
    let sum = |seen: Seen| {
        let mut seen = seen;
        seen.rest.instance = Some("r5.large".into());
        let judged = seen.asks("E04");
        let of_volumes = judged.evidence.iter().find(|one| one.name == "volumes_iops").unwrap();
        of_volumes.value.clone()
    };
    let mut apart = named_together(1.0, "gp3:size=20GiB");
    apart.rest.logs_share_volume = false;
    apart.rest.host.as_mut().unwrap().places[2].device = Some(device("nvme3n1"));
    assert_eq!(sum(named_together(1.0, "gp3:size=20GiB")), crate::finding::Seen::Number(6_000.0));
    assert_eq!(sum(apart), crate::finding::Seen::Number(9_000.0));
}

#[test]
fn a_recovery_reads_the_redo_log_from_the_volume_that_it_shares() {
    let on = |spec: &str| {
        let mut seen = dirty("0").rate("checkpoint_age", 39_321_600_001.0);
        (seen.rest.binlog_volume, seen.rest.logs_share_volume) = (Some(spec.into()), true);
        seen.asks("R04").verdict
    };
    assert_eq!(on("gp3:size=200GiB"), Assessment::Found, "over 300 s at 125 MiB/s");
    assert_eq!(on("gp3:size=200GiB,iops=4000,throughput=1000"), Assessment::Fine);
}

#[test]
fn without_a_device_the_binary_log_leaves_the_load_of_a_shared_volume_open() {
    let mut named = named_together(1.0, "gp3:size=20GiB").rate("redo_writes", 10.0).rate("redo_bytes", 1e4);
    for place in &mut named.rest.host.as_mut().unwrap().places {
        place.device = place.device.take().filter(|_| place.files == Files::Data);
    }
    let open = named.clone().asks("E03");
    assert_eq!((open.verdict, &*open.missing[0].what), (Assessment::Unknown, "what the device did"));
    // A server without a binary log has the redo log alone on it.
    let alone = named.var("log_bin", "OFF").asks("E03");
    assert_eq!(alone.verdict, Assessment::Fine, "{alone:#?}");
    assert!(alone.evidence.iter().any(|one| one.of == Some("redo log")), "{:?}", alone.evidence);
}

#[test]
fn days_are_those_of_the_calendar() {
    let days = crate::checks::volumes::days;
    assert_eq!(
        [days("1970-01-01"), days("2000-03-01"), days("2026-10-06")],
        [Some(0), Some(11_017), Some(20_732)]
    );
    assert_eq!([days(""), days("2026-10"), days("x-y-z")], [None; 3]);
}

#[test]
fn an_interval_that_saw_little_redo_is_no_rate_of_writing() {
    let found = |redo_bytes: f64| {
        let mut seen = mysql().var("innodb_redo_log_capacity", "8388608").rate("redo_bytes", redo_bytes);
        seen.rest.span = Some(Span { began_unix_s: None, seconds: 10.0, restarted: false });
        seen.asks("R01")
    };
    let under = found(104_857.0);
    assert_eq!(
        under.verdict,
        Assessment::Unknown,
        "just under 1 MiB, with which the log lasts 80 s: {under:?}"
    );
    assert!(under.why.contains("--interval=60s"), "{}", under.why);
    assert_eq!(found(2_330.0).verdict, Assessment::Fine, "whatever the rate is: the log lasts an hour");
    assert_eq!(found(104_858.0).verdict, Assessment::Found);
}

#[test]
fn bursts_that_are_not_counted_are_ruled_out_where_the_checkpoint_was_never_so_far_behind() {
    let flushes = |age: f64, moved: f64| {
        let seen = mysql()
            .var("innodb_flush_sync", "ON")
            .var("innodb_redo_log_capacity", "10000")
            .on("gp3:size=500GiB")
            .rate("checkpoint_age", age)
            .grew("innodb_redo_log_checkpoint_lsn", moved);
        seen.asks("F08")
    };
    // Within the 900 s of the interval the checkpoint moved by 900 or by 9,000 bytes.
    assert_eq!(flushes(7_000.0, 1.0).verdict, Assessment::Fine);
    let unsure = flushes(7_000.0, 10.0);
    assert_eq!(unsure.verdict, Assessment::Unknown);
    assert!(unsure.missing[0].why.contains("innodb_monitor_enable"), "{unsure:?}");
    let unseen = redo("100").asks("R02");
    assert!(unseen.missing[0].why.contains("log_lsn_checkpoint_age"), "{unseen:?}");
}

#[test]
fn severity_grows_with_the_evidence() {
    let severity = |code: &str, seen: Seen| seen.asks(code).severity.unwrap();
    assert_eq!(severity("R01", redo("599000000")), Severity::High);
    assert_eq!(severity("R01", redo("601000000")), Severity::Medium);
    assert_eq!(severity("E02", load(3_000.0, "gp2:size=400GiB")), Severity::High);
    assert_eq!(severity("E02", load(1_600.0, "gp2:size=500GiB")), Severity::Medium);
    let commit = mysql().var("innodb_flush_log_at_trx_commit", "2");
    assert_eq!(severity("D01", commit.clone()), Severity::Critical);
    assert_eq!(severity("D01", commit.replica(&[])), Severity::Low, "a replica can be made again");
}

#[test]
fn a_check_of_another_server_does_not_apply() {
    let verdict = |code: &str, seen: Seen| seen.asks(code).verdict;
    assert_eq!(verdict("D05", mariadb().last("innodb_redo_log_enabled", "OFF")), Assessment::DoesNotApply);
    assert_eq!(verdict("F11", server("8.0.25").var("innodb_use_fdatasync", "OFF")), Assessment::DoesNotApply);
    assert_eq!(
        verdict("C10", server("11.8.6-MariaDB").var("innodb_change_buffering", "all")),
        Assessment::DoesNotApply
    );
    assert_eq!(
        verdict("D03", mysql().var("log_bin", "OFF").var("sync_binlog", "0")),
        Assessment::DoesNotApply
    );
    assert_eq!(verdict("L09", mysql()), Assessment::DoesNotApply, "no replica");
}

#[test]
fn the_fix_is_in_the_words_of_the_release() {
    let fix = |code: &str, seen: Seen| seen.asks(code).fix.unwrap();
    assert_eq!(fix("R01", redo("1000")).statements, ["SET PERSIST innodb_redo_log_capacity = 4563402752"]);
    let old = fix(
        "R01",
        server("8.0.15")
            .var("innodb_log_file_size", "1000")
            .var("innodb_log_files_in_group", "2")
            .rate("redo_bytes", 1e6),
    );
    assert_eq!((old.my_cnf, old.restart), (vec!["innodb_log_file_size = 2281701376".to_owned()], true));
    let mariadb = fix("R01", mariadb().var("innodb_log_file_size", "1000").rate("redo_bytes", 1e6));
    assert_eq!(
        mariadb.statements,
        ["SET GLOBAL innodb_log_file_size = 4563402752", "SELECT @@GLOBAL.innodb_log_file_size"]
    );
    assert_eq!(
        fix("L01", mysql().var("binlog_format", "MIXED")).statements,
        ["SET PERSIST binlog_format = 'ROW'"]
    );
    let gp3 = fix("E01", mysql().on("gp2:size=500GiB")).text;
    assert!(
        gp3.contains("gp3:size=500GiB,iops=3000") && gp3.contains("$45.00") && gp3.contains("$50.00"),
        "{gp3}"
    );
}
