//! What a file becomes.

use ebbtide_lab::experiment::{Arm, Experiment, LoadKind, Overrides, Role};
use ebbtide_load::{Arrival, Distribution, WORKLOADS, Workload};

use crate::support::{check, mariadb, names, read, read_with, refused, servers};

#[test]
fn an_empty_file_is_an_experiment_with_one_arm_and_all_defaults() {
    let experiment = read("").unwrap();
    assert_eq!(names(&experiment), ["base"]);
    assert_eq!(experiment.title, "mine");
    assert_eq!((experiment.data.tables, experiment.data.rows), (1, 1_000_000));
    assert_eq!((experiment.trial.repeats, experiment.arms[0].measure_s), (5, 60));
    let arm = &experiment.arms[0];
    assert_eq!(arm.load.workload, LoadKind::Sysbench(Workload::ReadWrite));
    assert_eq!(arm.load.distribution, Distribution::Uniform);
    assert_eq!(arm.load.arrival, Arrival::Closed);
    assert_eq!(arm.volumes[&Role::Data], "gp3:size=100GiB");
    assert!(experiment.comparisons.is_empty());
    check(&experiment, &mariadb()).unwrap();
}

#[test]
fn arms_are_patches_over_the_base_and_the_first_is_the_baseline() {
    let experiment = read(
        r#"
        [settings]
        io_capacity = 200
        flush_neighbors = 0
        [arms.before]
        [arms.after.settings]
        innodb_io_capacity = 2000   # the server's own word for the same setting
        "#,
    )
    .unwrap();
    assert_eq!(names(&experiment), ["before", "after"]);
    let [before, after] = [0, 1].map(|at| &experiment.arms[at].settings);
    assert_eq!(before.get("io_capacity"), Some("200"));
    assert_eq!(after.get("io_capacity"), Some("2000"));
    assert_eq!(after.get("flush_neighbors"), Some("0"));
    let [comparison] = experiment.comparisons.as_slice() else { panic!("one comparison") };
    assert_eq!((comparison.axis.as_str(), comparison.arm, comparison.baseline), ("arm", 1, 0));
}

const TWO_AXES: &str = r#"
    compare = [{ axis = "volume", baseline = "gp3" }, { axis = "mix" }]
    [axes.volume.gp2.volumes]
    data = "gp2:size=100GiB"
    [axes.volume.gp3.volumes]
    data = "gp3:size=100GiB"
    [axes.mix.writes.load]
    workload = "write_only"
    [axes.mix.reads.load]
    workload = "read_only"
"#;

#[test]
fn axes_multiply_in_the_order_of_the_file() {
    let experiment = read(TWO_AXES).unwrap();
    assert_eq!(names(&experiment), ["gp2 / writes", "gp2 / reads", "gp3 / writes", "gp3 / reads"]);
    let options = &experiment.arms[1].options;
    assert_eq!(options, &[("volume".into(), "gp2".into()), ("mix".into(), "reads".into())]);
    let pairs: Vec<_> = experiment.comparisons.iter().map(|c| (c.axis.as_str(), c.arm, c.baseline)).collect();
    assert_eq!(pairs, [("volume", 0, 2), ("volume", 1, 3), ("mix", 1, 0), ("mix", 3, 2)]);
}

#[test]
fn a_load_is_written_in_sysbenchs_words() {
    let experiment = read(
        r#"
        [data]
        tables = 4
        table-size = 10_000
        [load]
        workload = "oltp_read_only"
        threads = 8
        round-trip = "1450us"
        rand-type = "zipfian"
        rand-zipfian-exp = 1.1
        rate = 12.5
        arrival = "fixed"
        point-selects = 3
        skip_trx = true
        "#,
    )
    .unwrap();
    assert_eq!((experiment.data.tables, experiment.data.rows), (4, 10_000));
    let load = &experiment.arms[0].load;
    assert_eq!(load.workload, LoadKind::Sysbench(Workload::ReadOnly));
    assert_eq!((load.connections, load.round_trip_us), (8, 1450));
    assert_eq!(load.distribution, Distribution::Zipfian { exponent: 1.1 });
    assert_eq!(load.arrival, Arrival::Fixed { per_second: 12.5 });
    assert_eq!(load.mix.point_selects, 3);
    assert!(load.mix.skip_trx);
}

#[test]
fn a_round_trip_is_a_duration_of_at_most_ten_seconds() {
    let with = |value: &str| read(&format!("[load]\nround_trip = {value}\n[arms.a]\n"));
    assert_eq!(with("\"10s\"").unwrap().arms[0].load.round_trip_us, 10_000_000);
    assert_eq!(with("\"0s\"").unwrap().arms[0].load.round_trip_us, 0);
    for (value, expected) in [
        ("\"11s\"", "load.round_trip = \"11s\": it must be 0s to 10s"),
        ("\"500ns\"", "load.round_trip = \"500ns\": it must be a whole number of microseconds"),
        ("\"-1ms\"", "'-1ms' is negative"),
        ("\"2\"", "'2' has no unit: write it like 2s, 2ms or 2m"),
    ] {
        let error = with(value).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_patch_can_take_back_what_the_base_has() {
    let experiment = read(
        r#"
        [settings]
        io_capacity = 500
        log_bin = true
        [volumes]
        redo = "gp3:size=10GiB"
        [batch]
        sql = "SELECT 1"
        [instance]
        type = "r5.large"
        [arms.all]
        [arms.none]
        settings.io_capacity = "default"
        volumes.redo = "none"
        volumes."redo+binlog" = "gp3:size=20GiB"
        batch.connections = 0
        instance.type = "none"
        "#,
    )
    .unwrap();
    let [all, none] = experiment.arms.as_slice() else { panic!("two arms") };
    assert!(all.batch.is_some() && none.batch.is_none());
    assert!(all.volumes.contains_key(&Role::Redo) && !none.volumes.contains_key(&Role::Redo));
    assert_eq!(none.volumes[&Role::Logs], "gp3:size=20GiB");
    assert_eq!((all.settings.get("io_capacity"), none.settings.get("io_capacity")), (Some("500"), None));
    assert_eq!((all.instance.kind.as_deref(), none.instance.kind.as_deref()), (Some("r5.large"), None));
}

#[test]
fn an_experiment_survives_json() {
    let experiment = read(TWO_AXES).unwrap();
    let text = serde_json::to_string(&experiment).unwrap();
    assert_eq!(serde_json::from_str::<Experiment>(&text).unwrap(), experiment);
}

/// The TOML blocks of the manual.
fn manual() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments.md");
    let text = std::fs::read_to_string(path).expect("the manual is there");
    let blocks = text.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_manuals_ten_lines_are_an_experiment() {
    let text = &manual()[0];
    assert_eq!(text.lines().count(), 10);
    let experiment = read(text).unwrap();
    assert_eq!(names(&experiment), ["now", "larger"]);
    assert_eq!(experiment.comparisons.len(), 1);
    for server in servers() {
        check(&experiment, &server).unwrap_or_else(|error| panic!("{}: {error}", server.version));
    }
}

#[test]
fn the_manuals_logs_share_a_volume_on_every_server() {
    let experiment = read(&manual()[1]).unwrap();
    for server in servers() {
        let planned =
            check(&experiment, &server).unwrap_or_else(|error| panic!("{}: {error}", server.version));
        let roles = |at: usize| planned[at].volumes.keys().copied().collect::<Vec<_>>();
        assert_eq!(roles(0), [Role::Data, Role::Redo, Role::Binlog], "{}", server.version);
        assert_eq!(roles(1), [Role::Data, Role::Logs], "{}", server.version);
    }
}

#[test]
fn the_manuals_replicas_run_on_every_server() {
    let experiment = read(&manual()[2]).unwrap();
    assert_eq!(names(&experiment), ["alone", "followed"]);
    for server in servers() {
        let planned =
            check(&experiment, &server).unwrap_or_else(|error| panic!("{}: {error}", server.version));
        let followed: Vec<bool> = planned.iter().map(|arm| arm.replica.is_some()).collect();
        assert_eq!(followed, [false, true], "{}", server.version);
    }
}

#[test]
fn the_manuals_versions_are_those_of_their_roles() {
    let experiment = read(&manual()[3]).unwrap();
    assert_eq!(names(&experiment), ["same", "newer"]);
    let replica = |arm: &Arm| arm.replica()?.server;
    let replicas: Vec<String> = experiment.arms.iter().filter_map(replica).collect();
    assert!(experiment.arms.iter().all(|arm| arm.server.as_deref() == Some("mysql-8.0")));
    assert_eq!(replicas, ["mysql-8.0", "mysql-9.7"]);
}

#[test]
fn the_manuals_axes_have_the_arms_that_it_lists() {
    let experiment = read(&manual()[4]).unwrap();
    assert_eq!(names(&experiment), ["gp2 / writes", "gp2 / reads", "gp3 / writes", "gp3 / reads"]);
}

#[test]
fn the_manuals_backups_and_claims_are_read() {
    let experiment = read(&manual()[6]).unwrap();
    assert_eq!(names(&experiment), ["none", "copy", "snapshot"]);
    assert_eq!(experiment.arms.iter().filter(|arm| arm.backup.is_some()).count(), 2);
    for server in servers() {
        check(&experiment, &server).unwrap_or_else(|error| panic!("{}: {error}", server.version));
    }
    let [claim] = &read(&manual()[7]).unwrap().claims[..] else { panic!("one claim") };
    assert_eq!((claim.id.as_str(), claim.place.as_str()), ("tuned", "tables 3 and 4"));
}

#[test]
fn the_manuals_tpcc_runs_on_every_server() {
    let experiment = read(&manual()[5]).unwrap();
    assert_eq!((names(&experiment), experiment.data.warehouses), (vec!["gp3", "io2"], Some(10)));
    for server in servers() {
        check(&experiment, &server).unwrap_or_else(|error| panic!("{}: {error}", server.version));
    }
}

#[test]
fn a_batch_job_knows_the_rows_of_a_table() {
    let text =
        "[data]\nrows = 500\n[batch]\nsql = \"SELECT {rows} FROM {table}\"\nstart = \"20s\"\nend = \"40s\"\n";
    let experiment = read(text).unwrap();
    let batch = experiment.arms[0].batch.as_ref().unwrap();
    assert_eq!(batch.sql, "SELECT 500 FROM {table}");
    assert_eq!((batch.start_s, batch.end_s, batch.connections), (20, Some(40), 1));
}

#[test]
fn aged_data_are_named_and_keyed_apart() {
    let fresh = read("[data]\ntables = 2\nrows = 100\n").unwrap();
    let aged = read("[data]\ntables = 2\nrows = 100\naged = true\n").unwrap();
    let ageing = |experiment: &Experiment| experiment.arms[0].ageing(experiment.data);
    assert!(ageing(&fresh).is_empty());
    assert_eq!(ageing(&aged).len(), 2);
    let key = |experiment: &Experiment| check(experiment, &mariadb()).unwrap()[0].prepare_key.clone();
    assert_ne!(key(&fresh), key(&aged));
}

#[test]
fn rows_of_other_lengths_are_tables_of_their_own() {
    let usual = read("[data]\nrows = 100\n").unwrap();
    let same = read("[data]\nrows = 100\nc_length = 120\npad_length = 60\n").unwrap();
    let long = read("[data]\nrows = 100\nc_length = 600\n").unwrap();
    assert_eq!((usual.data, same.data.lengths), (same.data, None));
    let key = |experiment: &Experiment| check(experiment, &mariadb()).unwrap()[0].prepare_key.clone();
    assert_eq!(key(&usual), key(&same));
    assert_ne!(key(&usual), key(&long));
    let table = |experiment: &Experiment| experiment.arms[0].tables(experiment.data).tables[0].clone();
    assert!(table(&long).create.contains("c VARCHAR(600)") && table(&long).create.contains("pad CHAR(60)"));
    assert!(table(&long).row_bytes > 2 * table(&usual).row_bytes);
    let error = read("[data]\nc_length = 7001\n").unwrap_err().to_string();
    assert!(error.contains("data.c_length = 7001: it must be a whole number from 1 to 7000"), "{error}");
}

#[test]
fn arms_share_prepared_data_unless_what_made_them_differs() {
    let keys = |text: &str| -> Vec<String> {
        let experiment = read(text).unwrap();
        let planned = check(&experiment, &mariadb()).unwrap();
        planned.iter().map(|arm| arm.prepare_key.clone()).collect()
    };
    let same = keys("[arms.a.settings]\nio_capacity = 300\n[arms.b.volumes]\ndata = \"gp2:size=50GiB\"\n");
    assert_eq!(same[0], same[1]);
    let pages = keys("[arms.a]\n[arms.b.settings]\npage_size = \"4KiB\"\n");
    assert_ne!(pages[0], pages[1]);
    let files = keys("[arms.a]\n[arms.b.instance]\nfs = \"ext4\"\n");
    assert_ne!(files[0], files[1]);
}

#[test]
fn the_region_of_the_prices_comes_from_the_file_or_the_command_line_and_must_have_some() {
    let text = "region = \"eu-west-1\"\n";
    let experiment = read(text).unwrap();
    assert_eq!(experiment.region.as_deref(), Some("eu-west-1"));
    check(&experiment, &mariadb()).unwrap();
    let asked = Overrides { region: Some("mars-1".into()), ..Overrides::default() };
    let error = check(&read_with(text, &asked).unwrap(), &mariadb()).unwrap_err().to_string();
    assert!(error.contains("there are no prices for region 'mars-1'"), "{error}");
    assert!(error.contains("ap-northeast-1, eu-west-1, us-east-1, us-west-2"), "{error}");
    assert_eq!(read("").unwrap().region, None);
}

#[test]
fn each_workload_of_the_list_can_be_the_load_of_an_experiment() {
    for one in WORKLOADS {
        let data = if one.kind == LoadKind::Tpcc { "[data]\nwarehouses = 1\n" } else { "" };
        let experiment = read(&format!("{data}[load]\nworkload = \"{}\"\n", one.name)).unwrap();
        let arm = &experiment.arms[0];
        assert_eq!(arm.load.workload, one.kind, "{}", one.name);
        assert!(!arm.tables(experiment.data).tables.is_empty(), "{}", one.name);
        let stored = serde_json::to_string(&experiment).unwrap();
        assert_eq!(serde_json::from_str::<Experiment>(&stored).unwrap(), experiment, "{stored}");
        let message = refused("[load]\nworkload = \"none\"\n");
        assert!(message.contains(one.name), "{message}");
    }
}
