//! TPC-C as the workload of an experiment: what a file holds, and what is refused.

use ebbtide_lab::experiment::{self, DATA_SEED, Experiment, LoadKind};
use ebbtide_load::tpcc::{Isolation, Statements, WaitMode};
use ebbtide_workload::tpcc::TABLES;

use crate::support::{check, check_refused, mariadb, read, read_with, refused, set};

const TEN: &str = "[data]\nwarehouses = 10\n[load]\nworkload = \"tpcc\"\n";

#[test]
fn warehouses_make_the_tables_and_the_workload_tpcc() {
    for text in [TEN, "[data]\nwarehouses = 10\n"] {
        let experiment = read(text).unwrap();
        let arm = &experiment.arms[0];
        assert_eq!(arm.load.workload, LoadKind::Tpcc);
        assert_eq!((arm.load.isolation, arm.load.wait), (Isolation::RepeatableRead, WaitMode::None));
        assert_eq!((experiment.data.warehouses, experiment.data.tables), (Some(10), 9));
        let tables = arm.tables(experiment.data);
        let mut names: Vec<&str> = tables.tables.iter().map(|table| table.name.as_str()).collect();
        names.sort_unstable();
        let mut expected = TABLES;
        expected.sort_unstable();
        assert_eq!(names, expected);
        let size = tables.data_bytes() >> 20;
        assert!((700..1_500).contains(&size), "ten warehouses take about {size} MiB");
    }
    let text = "[data]\nwarehouses = 2\n[load]\nworkload = \"tpcc\"\ntrx_level = \"rc\"\nwait-mode = \"spec\"\n\
                statements = \"batched\"\nthreads = 20\n";
    let load = &read(text).unwrap().arms[0].load;
    assert_eq!((load.isolation, load.wait, load.connections), (Isolation::ReadCommitted, WaitMode::Spec, 20));
    assert_eq!(load.statements, Statements::Batched);
    assert_eq!(read(TEN).unwrap().arms[0].load.statements, Statements::Single);
    assert_eq!(read_with(TEN, &set("data.warehouses", "3")).unwrap().data.warehouses, Some(3));
}

#[test]
fn an_experiment_is_read_back_as_it_was_stored() {
    for text in [
        TEN,
        "[data]\nwarehouses = 1\n[load]\ntrx_level = \"ser\"\nstatements = \"batched\"\n",
        "[load]\nworkload = \"insert\"\n",
    ] {
        let experiment = read(text).unwrap();
        let stored = serde_json::to_string(&experiment).unwrap();
        assert_eq!(serde_json::from_str::<Experiment>(&stored).unwrap(), experiment, "{stored}");
    }
    let stored = serde_json::to_value(read(TEN).unwrap()).unwrap();
    assert_eq!(stored["arms"][0]["load"]["workload"], "tpcc");
}

#[test]
fn keys_and_tables_of_another_workload_are_refused() {
    for (text, words) in [
        (
            "[load]\nworkload = \"tpcc\"\n",
            "mine.toml line 2: load.workload = \"tpcc\": it needs the number of its warehouses: say, for example, \
             warehouses = 10 in [data]",
        ),
        (
            "[data]\nwarehouses = 1\n[load]\nworkload = \"read_only\"\n",
            "mine.toml line 4: load.workload = \"read_only\": [data] has warehouses, and oltp_read_only runs on sysbench's \
             tables: say workload = \"tpcc\", or take warehouses out",
        ),
        (
            "[data]\nwarehouses = 1\nrows = 5\n",
            "mine.toml line 3: data.rows = 5: it belongs to sysbench's tables, and [data] has warehouses: leave one of \
             them out",
        ),
        (
            "[data]\nwarehouses = 9001\n",
            "mine.toml line 2: data.warehouses = 9001: it must be a whole number from 1 to 9000",
        ),
        (
            "[data]\nwarehouses = 1\n[load]\nrange_size = 5\n",
            "mine.toml line 4: load.range_size = 5: it belongs to sysbench's workloads, and the workload is tpcc",
        ),
        (
            "[load]\ntrx_level = \"rc\"\n",
            "mine.toml line 2: load.trx_level = \"rc\": it belongs to tpcc, and the workload is oltp_read_write",
        ),
        (
            "[data]\nwarehouses = 1\n[load]\ntrx_level = \"ru\"\n",
            "mine.toml line 4: load.trx_level = \"ru\": 'ru' is none of rc, rr, ser",
        ),
        (
            "[load]\nstatements = \"batched\"\n",
            "mine.toml line 2: load.statements = \"batched\": it belongs to tpcc, and the workload is oltp_read_write",
        ),
        (
            "[data]\nwarehouses = 1\n[load]\nstatements = \"few\"\n",
            "mine.toml line 4: load.statements = \"few\": 'few' is none of single, batched",
        ),
        (
            "[data]\nwarehouses = 1\n[load]\nwait_mode = \"spec\"\nrate = 5\n",
            "mine.toml line 3: load.workload: --wait-mode=spec and --rate exclude each other: users who key and think make \
             the rate",
        ),
        (
            "[data]\nwarehouses = 1\n[batch]\nsql = \"SELECT {rows}\"\n",
            "mine.toml line 4: batch.sql = \"SELECT {rows}\": TPC-C's tables have no common number of rows: leave {rows} \
             out",
        ),
    ] {
        assert_eq!(refused(text), words, "{text}");
    }
}

#[test]
fn warehouses_that_do_not_fit_the_volume_are_refused_with_the_size_that_they_need() {
    let text = "[data]\nwarehouses = 500\n[volumes]\ndata = \"gp3:size=20GiB\"\n";
    let words = check_refused(text);
    assert!(words.starts_with("arm 'base': its data volume has 20480 MiB, and needs "), "{words}");
    assert!(words.ends_with("take a larger volume or fewer warehouses"), "{words}");
    let needed: u64 = words.split("and needs ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let with = |gib: u64| text.replace("20GiB", &format!("{gib}GiB"));
    assert!(check(&read(&with(needed / 1024 + 1)).unwrap(), &mariadb()).is_ok(), "{needed} MiB are enough");
    assert!(check(&read(&with(needed / 1024)).unwrap(), &mariadb()).is_err());
}

#[test]
fn prepared_data_and_the_estimate_follow_the_warehouses() {
    let of = |text: &str| {
        let experiment = read(text).unwrap();
        let key = check(&experiment, &mariadb()).unwrap().remove(0).prepare_key;
        (key, experiment::estimate(&experiment))
    };
    let (ten, ten_takes) = of(TEN);
    let (eleven, eleven_takes) = of(&TEN.replace("10", "11"));
    assert!(ten.contains(" warehouses=10 ") && ten.contains(&format!(" seed={DATA_SEED} ")), "{ten}");
    assert!(ten.contains(" tables-of=tpcc-"), "{ten}");
    assert_ne!(ten, eleven);
    assert!(eleven_takes > ten_takes);
    let (isolated, _) = of(&format!("{TEN}trx_level = \"rc\"\n"));
    assert_eq!(ten, isolated, "the level of the load makes no other tables");
}
