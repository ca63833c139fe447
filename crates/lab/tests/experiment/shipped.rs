//! The experiments that come with the program.

use std::time::Duration;

use ebbtide_lab::experiment::{self, Experiment, Overrides, ServerRole, shipped};
use ebbtide_lab::summary::curves;

use crate::support::{check, names, servers};

fn both_forms(name: &str) -> [Experiment; 2] {
    [false, true].map(|quick| {
        let overrides = Overrides { quick, ..Overrides::default() };
        experiment::load(name, &overrides).unwrap_or_else(|error| panic!("{name}: {error}"))
    })
}

#[test]
fn every_shipped_experiment_runs_on_every_server_in_both_forms() {
    assert_eq!(shipped().len(), 21);
    for known in shipped() {
        assert!(!known.title.is_empty() && !known.question.is_empty(), "{}", known.name);
        for mut experiment in both_forms(known.name) {
            assert!(!experiment.scale.is_empty(), "{}", known.name);
            for server in servers() {
                let left_out = experiment::fit(&mut experiment, &server);
                let planned = check(&experiment, &server)
                    .unwrap_or_else(|error| panic!("{} on {}: {error}", known.name, server.version));
                assert_eq!(planned.len(), experiment.arms.len());
                println!("{} on {} {:?}", known.name, server.version, left_out);
            }
        }
    }
}

#[test]
fn every_shipped_experiment_compares_something() {
    for known in shipped() {
        for experiment in both_forms(known.name) {
            assert!(!experiment.comparisons.is_empty(), "{}", known.name);
            for comparison in &experiment.comparisons {
                let [arm, baseline] = [comparison.arm, comparison.baseline].map(|at| &experiment.arms[at]);
                let differing: Vec<_> =
                    arm.options.iter().zip(&baseline.options).filter(|(a, b)| a != b).collect();
                assert_eq!(differing.len(), 1, "{} against {}", arm.name, baseline.name);
                assert_eq!(differing[0].0.0, comparison.axis);
            }
        }
    }
}

#[test]
fn the_demo_is_two_arms_and_takes_less_than_six_minutes() {
    let [full, quick] = both_forms("tuned-vs-default");
    assert_eq!(full.arms.len(), 8);
    assert_eq!(names(&quick), ["default / gp2 / writes", "tuned / gp2 / writes"]);
    assert!(quick.trial.repeats >= 2, "one trial has no interval");
    let estimate = experiment::estimate(&quick);
    assert!(estimate < Duration::from_secs(360), "{estimate:?}");
}

#[test]
fn the_tuned_and_the_default_arm_are_the_papers_divided_by_eight() {
    let [full, _] = both_forms("tuned-vs-default");
    let arm = |name: &str| full.arms.iter().find(|arm| arm.name == name).unwrap();
    let default = arm("default / gp2 / writes");
    let tuned = arm("tuned / gp2 / writes");
    assert_eq!(default.settings.get("buffer_pool_size"), Some("16MiB"));
    assert_eq!(tuned.settings.get("flush_method"), Some("O_DIRECT"));
    assert_eq!(default.settings.get("doublewrite"), tuned.settings.get("doublewrite"));
    assert_eq!(default.load, tuned.load);
    let planned = check(&full, &servers()[0]).unwrap();
    let gp2 = &planned[0].volumes[&experiment::Role::Data];
    assert_eq!(gp2.members[0].iops.unwrap().ceiling, 3000 / 8);
    assert_eq!(planned[0].instance.as_ref().unwrap().limits.iops.rate, 30_000 / 8);
}

#[test]
fn the_gain_of_optimized_writes_is_measured_over_connections_where_iops_and_where_bytes_are_short() {
    let [full, quick] = both_forms("optimized-writes-gain");
    assert_eq!((full.arms.len(), quick.arms.len()), (3 * 2 * 11 * 2, 2 * 4 * 2));
    assert_eq!((full.comparisons.len(), quick.comparisons.len()), (66, 8));
    let counts: Vec<u32> = (0..11).map(|power| 1 << power).collect();
    assert_eq!(curves(&full).unwrap().counts, counts);
    assert_eq!(curves(&quick).unwrap().counts, [1, 16, 64, 256]);
    for experiment in [&full, &quick] {
        assert!(experiment.trial.repeats >= 2, "one trial has no interval");
        for arm in &check(experiment, &servers()[0]).unwrap() {
            let volume = &arm.volumes[&experiment::Role::Data].members[0];
            let page_iops = volume.throughput.unwrap().ceiling / 16_384;
            let iops = volume.iops.unwrap().ceiling;
            // Pages that are written once and read once as often: twice the bytes of the writes with doublewrite.
            match arm.arm.name.split(" / ").next().unwrap() {
                "gp3-iops" => assert!(2 * iops < page_iops, "{iops} of {page_iops}"),
                "gp3-mib" => assert!(page_iops < iops * 6 / 10, "{page_iops} of {iops}"),
                _ => assert_eq!((iops, page_iops), (6_250, 6_250), "io1 has 16 KiB for each of its IOPS"),
            }
        }
    }
    let estimate = experiment::estimate(&quick);
    assert!(estimate < Duration::from_secs(16 * 60), "{estimate:?}");
}

#[test]
fn the_binary_log_is_held_against_none_in_every_format_and_with_every_sync() {
    let [full, quick] = both_forms("binlog");
    assert_eq!((full.arms.len(), quick.arms.len()), (1 + 4 * 3, 4));
    let off = full.arms.iter().position(|arm| arm.name == "off").unwrap();
    assert_eq!(full.comparisons.len(), 12);
    assert!(full.comparisons.iter().all(|one| one.baseline == off));
    for arm in full.arms.iter().filter(|arm| arm.name != "off") {
        let (format, sync) = arm.name.split_once('-').unwrap();
        let said = |name: &str| arm.settings.get(name).unwrap_or("").to_ascii_uppercase();
        assert_eq!(said("sync_binlog"), sync, "{}", arm.name);
        let (format, image) = match format {
            "minimal" => ("ROW".to_owned(), "MINIMAL"),
            format => (format.to_uppercase(), ""),
        };
        assert_eq!(
            (said("binlog_format"), said("binlog_row_image").as_str()),
            (format, image),
            "{}",
            arm.name
        );
    }
    let estimate = experiment::estimate(&quick);
    assert!(estimate < Duration::from_secs(6 * 60), "{estimate:?}");
}

#[test]
fn the_tiers_are_whole_devices_with_one_for_the_data_and_one_for_the_redo_log() {
    let [full, quick] = both_forms("ssd-tiers");
    assert_eq!((full.arms.len(), quick.arms.len()), (4 * 4, 4));
    assert_eq!((full.comparisons.len(), quick.comparisons.len()), (3 * 4, 3));
    assert_eq!(curves(&full).unwrap().counts, [50, 100, 150, 200]);
    for planned in check(&full, &servers()[0]).unwrap() {
        let kinds: Vec<&str> =
            planned.volumes.values().map(|volume| volume.spec.volume.kind.as_str()).collect();
        assert_eq!(kinds.len(), 2, "{}: data and redo", planned.arm.name);
        let [tier, _] = planned.arm.name.split(" / ").collect::<Vec<_>>().try_into().unwrap();
        let alike = kinds.iter().all(|kind| *kind == kinds[0] && kind.contains(tier));
        assert!(alike, "{}: {kinds:?}", planned.arm.name);
        let stations = planned.volumes[&experiment::Role::Data].members[0].service.parallelism;
        assert_eq!(stations == Some(1), tier == "hdd", "a whole device: {stations:?}");
    }
}

#[test]
fn the_samsung_configurations_differ_in_pool_page_cache_and_redo_log() {
    let [full, quick] = both_forms("ssd-configs");
    assert_eq!(
        (full.arms.len(), quick.arms.len()),
        (3 * (4 + 2), 4),
        "three devices, two more with 250 connections"
    );
    let said = |name: &str| {
        let arm = full.arms.iter().find(|arm| arm.name == format!("nvme / {name}")).unwrap();
        ["buffer_pool_size", "flush_method", "redo_capacity"].map(|key| arm.settings.get(key).unwrap())
    };
    assert_eq!(said("initial"), ["64MiB", "fsync", "12MiB"]);
    assert_eq!(said("suboptimal"), ["64MiB", "O_DIRECT", "64MiB"]);
    assert_eq!(said("optimal"), ["256MiB", "O_DIRECT", "64MiB"]);
    assert_eq!(said("percona"), ["256MiB", "O_DIRECT", "600MiB"]);
    // The paper's memory held three fifths of its data.
    for planned in check(&full, &servers()[0]).unwrap() {
        let share = planned.arm.instance.memory_bytes as f64 / planned.data_bytes as f64;
        assert!((0.6..0.9).contains(&share), "{share}");
    }
}

#[test]
fn experiments_of_devices_run_on_a_host_that_is_slower_than_these() {
    for known in shipped() {
        for experiment in both_forms(known.name) {
            let devices = ["ssd-tiers", "ssd-configs"].contains(&known.name);
            assert_eq!(experiment.over_limit, devices, "{}", known.name);
        }
    }
}

#[test]
fn on_auroras_storage_every_file_has_the_volume_of_its_kind() {
    let [full, quick] = both_forms("aurora-binlog");
    assert_eq!((full.arms.len(), quick.arms.len()), (12, 4));
    assert!(full.comparisons.iter().all(|one| full.arms[one.baseline].name == "off"));
    for planned in check(&full, &servers()[0]).unwrap() {
        let kind = |role| {
            let kind = planned.volumes.get(&role).map(|volume| volume.spec.volume.kind.as_str());
            // The same storage at another price.
            kind.map(|kind| kind.strip_suffix("-io-optimized").unwrap_or(kind))
        };
        assert_eq!(kind(experiment::Role::Data), Some("aurora-pages"), "{}", planned.arm.name);
        assert_eq!(kind(experiment::Role::Redo), Some("aurora-log"), "{}", planned.arm.name);
        let binlog = match planned.arm.name.split('-').next().unwrap() {
            "off" => None,
            "classic" => Some("aurora-log"),
            _ => Some("aurora-enhanced-binlog"),
        };
        assert_eq!(kind(experiment::Role::Binlog), binlog, "{}", planned.arm.name);
    }
}

#[test]
fn the_short_forms_of_the_documents_on_storage_take_minutes() {
    for name in ["ssd-tiers", "ssd-configs", "aurora-binlog"] {
        let [_, quick] = both_forms(name);
        assert!(quick.trial.repeats >= 2, "one trial has no interval");
        let estimate = experiment::estimate(&quick);
        assert!(estimate < Duration::from_secs(10 * 60), "{name}: {estimate:?}");
    }
}

#[test]
fn the_migration_holds_primaries_against_primaries_and_replicas_against_replicas() {
    for experiment in both_forms("migration") {
        let role = |arm: usize| experiment.arms[arm].crash.as_ref().unwrap().role;
        let name = |arm: usize| experiment.arms[arm].options[0].1.as_str();
        let primaries =
            experiment.arms.iter().filter(|arm| arm.crash.as_ref().unwrap().role == ServerRole::Primary);
        assert_eq!(2 * primaries.count(), experiment.arms.len());
        for one in &experiment.comparisons {
            assert_eq!(role(one.arm), role(one.baseline), "{one:?}");
            let baseline = if role(one.arm) == ServerRole::Primary { "synced" } else { "replica-synced" };
            assert_eq!(name(one.baseline), baseline);
        }
        assert_eq!(
            experiment.comparisons.len(),
            experiment.arms.len() / 4 * 3,
            "each but the baselines, once"
        );
    }
}

#[test]
fn the_gp2_of_the_burst_experiment_runs_dry_within_the_measurement() {
    for experiment in both_forms("gp2-burst") {
        let planned = check(&experiment, &servers()[0]).unwrap();
        let volume = &planned[0].volumes[&experiment::Role::Data];
        let rate = volume.members[0].iops.unwrap();
        // What the load alone, and load and batch job together, make of a volume that does not hold them
        // back: as measured on a busy host, and on one that answers at once.
        let baseline = rate.rate as f64;
        let batch = experiment.arms[0].batch.as_ref().unwrap();
        let measure = f64::from(experiment.arms[0].measure_s);
        for (alone, together) in [(570.0, 1150.0), (570.0, 2000.0)] {
            let before = f64::from(experiment.arms[0].warmup.settle_s + batch.start_s) * (alone - baseline);
            let left = rate.credits as f64 * volume.credit_share.unwrap() - before;
            let lasts = left / (together - baseline);
            assert!(lasts > 10.0, "{lasts}");
            assert!(f64::from(batch.start_s) + lasts < measure - 30.0, "{lasts} of {measure}");
        }
    }
}

#[test]
fn a_setting_that_a_server_lacks_leaves_out_only_the_arms_that_permit_it() {
    let [mut on_mariadb, _] = both_forms("flush-settings");
    let mut on_mysql = on_mariadb.clone();
    let [mariadb, _, _, mysql] = servers().try_into().unwrap_or_else(|_| panic!("four servers"));
    let left_out = experiment::fit(&mut on_mariadb, &mariadb);
    assert!(left_out.iter().any(|why| why.contains("cleaners-4")), "{left_out:?}");
    assert!(!names(&on_mariadb).contains(&"cleaners-4"));
    assert_eq!(on_mariadb.comparisons.len(), on_mariadb.arms.len() - 1);
    for comparison in &on_mariadb.comparisons {
        assert_eq!(on_mariadb.arms[comparison.baseline].name, "base");
        assert_ne!(comparison.arm, comparison.baseline);
    }
    assert_eq!(experiment::fit(&mut on_mysql, &mysql), Vec::<String>::new());
    assert!(names(&on_mysql).contains(&"cleaners-4"));
}

#[test]
fn an_experiment_of_which_a_server_lacks_every_arm_is_refused() {
    let overrides = Overrides { arms: vec!["cleaners-4".into()], ..Overrides::default() };
    let mut experiment = experiment::load("flush-settings", &overrides).unwrap();
    experiment::fit(&mut experiment, &servers()[0]);
    assert_eq!(
        check(&experiment, &servers()[0]).unwrap_err().to_string(),
        "this server lacks settings of every arm: choose other arms or another server"
    );
}

#[test]
fn an_unknown_name_lists_the_experiments_and_names_the_nearest() {
    let error = experiment::load("tuned-vs-defualt", &Overrides::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no experiment 'tuned-vs-defualt' (did you mean 'tuned-vs-default'?); the experiments are \
         tuned-vs-default, volume-types, gp2-burst, flush-settings, instance-cap, optimized-writes-gain, ssd-tiers, ssd-configs, binlog, binlog-locks, aurora-binlog, replicas, backup-load, same-twice, durability-matrix, tpcc-crash, binlog-recovery, optimized-writes, file-systems, ssd-cache, migration; a file of your own \
         needs a '/' or ends in .toml"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = experiment::load("./none.toml", &Overrides::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the experiment ./none.toml");
}
