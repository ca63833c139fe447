//! What the command line changes.

use ebbtide_lab::experiment::{self, Overrides, Role};
use ebbtide_load::Arrival;

use crate::support::{names, read, read_with, set};

const FILE: &str = r#"
    [settings]
    io_capacity = 200
    [load]
    workload = "write_only"
    [arms.default]
    [arms.tuned.settings]
    io_capacity = 1000
    [axes.mix.writes]
    [axes.mix.reads.load]
    workload = "read_only"
    [quick]
    arms = ["writes"]
    [quick.trial]
    repeats = 2
    measure = "15s"
"#;

fn capacities(overrides: &Overrides) -> Vec<String> {
    let experiment = read_with(FILE, overrides).expect("the file is right");
    experiment.arms.iter().map(|arm| arm.settings.get("io_capacity").unwrap_or("-").to_owned()).collect()
}

#[test]
fn set_changes_one_arm_one_combination_or_all() {
    assert_eq!(capacities(&Overrides::default()), ["200", "200", "1000", "1000"]);
    assert_eq!(capacities(&set("tuned.io_capacity", "2000")), ["200", "200", "2000", "2000"]);
    assert_eq!(capacities(&set("arm.tuned.settings.io_capacity", "2000")), ["200", "200", "2000", "2000"]);
    assert_eq!(capacities(&set("tuned / reads.io_capacity", "3000")), ["200", "200", "1000", "3000"]);
}

#[test]
fn set_reaches_every_section() {
    let with = |path, value| read_with(FILE, &set(path, value)).unwrap();
    assert!(
        with("settings.innodb_flush_neighbors", "1")
            .arms
            .iter()
            .all(|arm| { arm.settings.get("flush_neighbors") == Some("1") })
    );
    assert!(with("load.connections", "64").arms.iter().all(|arm| arm.load.connections == 64));
    assert_eq!(with("trial.repeats", "3").trial.repeats, 3);
    assert_eq!(with("data.rows", "1_000").data.rows, 1000);
    assert_eq!(with("tuned.connections", "5").arms[2].load.connections, 5);
    assert_eq!(with("reads.rate", "20").arms[1].load.arrival, Arrival::Poisson { per_second: 20.0 });
    let volume = with("tuned.volumes.redo", "gp3:size=10GiB");
    assert_eq!(volume.arms[2].volumes[&Role::Redo], "gp3:size=10GiB");
    assert!(!volume.arms[0].volumes.contains_key(&Role::Redo));
    for path in ["tuned.volumes.redo+binlog", "tuned.redo+binlog"] {
        let both = with(path, "gp3:size=10GiB");
        assert_eq!(both.arms[2].volumes[&Role::Logs], "gp3:size=10GiB");
    }
}

#[test]
fn a_later_set_wins() {
    let connections = |overrides: &Overrides| -> Vec<u32> {
        read_with(FILE, overrides).unwrap().arms.iter().map(|arm| arm.load.connections).collect()
    };
    let mut overrides = set("load.connections", "30");
    overrides.set.push(("tuned.load.connections".into(), "40".into()));
    assert_eq!(connections(&overrides), [30, 30, 40, 40]);
    overrides.set.reverse();
    assert_eq!(connections(&overrides), [30; 4]);
}

#[test]
fn arms_that_the_command_line_makes_equal_are_refused() {
    let error = read_with(FILE, &set("settings.io_capacity", "300")).unwrap_err().to_string();
    assert!(error.starts_with("arm 'tuned / writes': it is the same as 'default / writes'"), "{error}");
}

#[test]
fn quick_patches_the_base_and_keeps_its_arms_and_the_command_line_still_wins() {
    let quick = Overrides { quick: true, ..Overrides::default() };
    let experiment = read_with(FILE, &quick).unwrap();
    assert_eq!(names(&experiment), ["default / writes", "tuned / writes"]);
    assert_eq!((experiment.trial.repeats, experiment.arms[0].measure_s), (2, 15));
    let more = Overrides { repeats: Some(9), measure_s: Some(40), arms: vec!["reads".into()], ..quick };
    let experiment = read_with(FILE, &more).unwrap();
    assert_eq!(names(&experiment), ["default / reads", "tuned / reads"]);
    assert_eq!((experiment.trial.repeats, experiment.arms[0].measure_s), (9, 40));
}

#[test]
fn an_arm_has_its_own_times_and_the_quick_form_has_others() {
    let text = r#"
        [trial]
        measure = "90s"
        [arms.default]
        [arms.default.quick.trial]
        measure = "15s"
        [arms.tuned.trial]
        measure = "2m"
        [arms.tuned.warmup]
        lead_in = "30s"
        [arms.tuned.settings]
        io_capacity = 1000
        [quick.trial]
        measure = "20s"
        [quick.warmup]
        lead_in = "5s"
    "#;
    let times = |overrides: &Overrides| -> Vec<(u32, u32)> {
        let experiment = read_with(text, overrides).unwrap();
        experiment.arms.iter().map(|arm| (arm.measure_s, arm.warmup.lead_in_s)).collect()
    };
    assert_eq!(times(&Overrides::default()), [(90, 10), (120, 30)]);
    let quick = || Overrides { quick: true, ..Overrides::default() };
    // An arm's own time holds in the short form too, unless its own short form changes it.
    assert_eq!(times(&quick()), [(15, 5), (120, 30)]);
    assert_eq!(times(&Overrides { measure_s: Some(40), ..quick() }), [(40, 5), (40, 30)]);
    assert_eq!(times(&Overrides { quick: true, ..set("tuned.measure", "25s") }), [(15, 5), (25, 30)]);
}

#[test]
fn arms_that_differ_in_their_times_alone_are_equal() {
    let error = read("[arms.a]\n[arms.b.trial]\nmeasure = \"2m\"\n").unwrap_err().to_string();
    assert!(error.starts_with("arm 'b': it is the same as 'a'"), "{error}");
}

#[test]
fn arms_of_one_axis_add_up_and_of_several_narrow_down() {
    let kept = |arms: &[&str]| {
        let arms = arms.iter().map(|arm| (*arm).to_owned()).collect();
        let experiment = read_with(FILE, &Overrides { arms, ..Overrides::default() }).unwrap();
        names(&experiment).join(", ")
    };
    assert_eq!(kept(&["tuned"]), "tuned / writes, tuned / reads");
    assert_eq!(kept(&["tuned", "default", "reads"]), "default / reads, tuned / reads");
    assert_eq!(kept(&["tuned / reads", "default / writes"]), "default / writes, tuned / reads");
}

#[test]
fn without_its_baseline_the_first_arm_left_is_the_baseline() {
    let text = "[arms.a.settings]\nio_capacity = 1000\n[arms.b.settings]\nio_capacity = 2000\n\
                [arms.c.settings]\nio_capacity = 3000\n";
    let arms = vec!["b".into(), "c".into()];
    let experiment = read_with(text, &Overrides { arms, ..Overrides::default() }).unwrap();
    let [comparison] = experiment.comparisons.as_slice() else { panic!("one comparison") };
    assert_eq!(experiment.arms[comparison.baseline].name, "b");
    assert_eq!(experiment.arms[comparison.arm].name, "c");
}

#[test]
fn the_stand_in_is_of_the_arms_own_role() {
    let text = "[crash]\n[arms.a.settings]\nsync_binlog = 1\n[arms.b.settings]\nsync_binlog = 0\n\
                [arms.c.crash]\nrole = 'replica'\nmoments = ['random']\n\
                [arms.d.crash]\nrole = 'replica'\nmoments = ['random']\nreplication = 'gtid'\n";
    let held = |arms: &[&str]| -> Vec<String> {
        let arms = arms.iter().map(|arm| (*arm).to_owned()).collect();
        let experiment = read_with(text, &Overrides { arms, ..Overrides::default() }).unwrap();
        let name = |arm: usize| experiment.arms[arm].name.as_str();
        experiment
            .comparisons
            .iter()
            .map(|one| format!("{} over {}", name(one.arm), name(one.baseline)))
            .collect()
    };
    assert_eq!(held(&[]), ["b over a", "d over c"]);
    assert_eq!(held(&["b", "c", "d"]), ["d over c"]);
}

#[test]
fn a_volume_is_for_all_arms() {
    let volume = Some("gp2:size=200GiB".to_owned());
    let experiment = read_with(FILE, &Overrides { volume, ..Overrides::default() }).unwrap();
    assert!(experiment.arms.iter().all(|arm| arm.volumes[&Role::Data] == "gp2:size=200GiB"));
}

#[test]
fn a_seed_is_kept_and_without_one_runs_differ() {
    let fresh = || experiment::parse("mine", "mine.toml", "", &Overrides::default()).unwrap().seed;
    assert_eq!(read_with("", &Overrides::default()).unwrap().seed, 7);
    let seeds: std::collections::BTreeSet<u64> = (0..4).map(|_| fresh()).collect();
    println!("seeds {seeds:?}");
    assert!(seeds.len() > 1);
    assert!(seeds.iter().all(|seed| *seed <= u64::from(u32::MAX)));
}

#[test]
fn a_crash_experiment_names_the_experiment_that_measures_its_gain() {
    let text = "[crash]\ngain = \"same-twice\"\n";
    let mine = read(text).unwrap();
    assert_eq!(mine.gain.as_deref(), Some("same-twice"));
    let [long, short] = [false, true].map(|quick| experiment::load_gain(&mine, quick).unwrap().unwrap());
    assert_eq!((long.name.as_str(), long.seed), ("same-twice", mine.seed));
    assert!(short.arms[0].measure_s < long.arms[0].measure_s, "the quick form has the quick gain");
    let other = read_with(text, &set("crash.gain", "volume-types")).unwrap();
    assert_eq!(other.gain.as_deref(), Some("volume-types"));
    let none = read_with(text, &set("crash.gain", "none")).unwrap();
    assert_eq!(experiment::load_gain(&none, false).unwrap(), None);
}

#[test]
fn a_gain_that_is_nowhere_is_refused_with_the_nearest_one() {
    let refused = |name: &str| {
        let mine = read(&format!("[crash]\ngain = \"{name}\"\n")).unwrap();
        experiment::load_gain(&mine, false).unwrap_err().to_string()
    };
    let unknown = refused("same-twic");
    assert!(unknown.starts_with("mine: crash.gain = \"same-twic\": there is no experiment"), "{unknown}");
    assert!(unknown.contains("did you mean 'same-twice'?"), "{unknown}");
    assert!(refused("ssd-cache").contains("its power is cut"), "that is for the other lab");
    let missing = refused("./none.toml");
    assert!(missing.contains("./none.toml") && missing.contains("No such file"), "{missing}");
}

#[test]
fn the_path_of_a_gain_counts_from_the_file_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    put("gain.toml", "title = 'The gain'\n");
    let load = |path: &str| {
        let mine = experiment::load(path, &Overrides::default()).unwrap();
        experiment::load_gain(&mine, false).unwrap().unwrap().title
    };
    assert_eq!(load(&put("mine.toml", "[crash]\ngain = 'gain.toml'\n")), "The gain");
    assert_eq!(load(&put("other.toml", "[crash]\ngain = './gain.toml'\n")), "The gain");
}

const WITHOUT_QUICK: &str = r#"
    [load]
    workload = "write_only"
    [trial]
    repeats = 7
    [warmup]
    settle = "1s"
    [arms.one.settings]
    io_capacity = 200
    [arms.two.settings]
    io_capacity = 1000
"#;

#[test]
fn quick_shortens_an_experiment_that_does_not_define_quick() {
    let quick = Overrides { quick: true, ..Overrides::default() };
    let short = read_with(WITHOUT_QUICK, &quick).unwrap();
    assert_eq!((short.trial.repeats, short.arms[0].measure_s), (2, 20));
    assert_eq!(
        (short.arms[0].warmup.lead_in_s, short.arms[0].warmup.settle_s),
        (5, 1),
        "what is shorter stays"
    );
    assert_eq!(short.arms.len(), 2);
    let full = read_with(WITHOUT_QUICK, &Overrides::default()).unwrap();
    assert!(experiment::estimate(&short) < experiment::estimate(&full) / 4);
    let given = Overrides { repeats: Some(4), measure_s: Some(90), ..quick };
    let given = read_with(WITHOUT_QUICK, &given).unwrap();
    assert_eq!((given.trial.repeats, given.arms[1].measure_s), (4, 90), "the command line wins");
}

#[test]
fn quick_leaves_a_batch_job_its_time_and_takes_fewer_cuts_of_every_arm() {
    let quick = Overrides { quick: true, ..Overrides::default() };
    let batch = format!("{WITHOUT_QUICK}[batch]\nsql = \"SELECT 1\"\nstart = \"15s\"\nend = \"30s\"\n");
    assert_eq!(read_with(&batch, &quick).unwrap().arms[0].measure_s, 40);
    let crash = format!("{WITHOUT_QUICK}[arms.two.crash]\ncuts = 7\n[crash]\ncuts = 300\n");
    let short = read_with(&crash, &quick).unwrap();
    let cuts = |of: &experiment::Experiment| -> Vec<u32> {
        of.arms.iter().map(|arm| arm.crash.as_ref().unwrap().cuts).collect()
    };
    assert_eq!((cuts(&short), short.trial.repeats, short.arms[0].measure_s), (vec![20, 7], 1, 10));
    let given = Overrides { set: vec![("crash.cuts".into(), "50".into())], ..quick };
    assert_eq!(cuts(&read_with(&crash, &given).unwrap()), [50, 50]);
}

#[test]
fn what_a_generic_quick_changes_is_reported_and_that_of_a_file_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let changes = |text: &str, overrides: &Overrides| {
        let file = dir.path().join("mine.toml");
        std::fs::write(&file, text).unwrap();
        experiment::generic_quick(file.to_str().unwrap(), overrides).unwrap()
    };
    let quick = Overrides { quick: true, ..Overrides::default() };
    let expected = [
        "trials of each arm: 2 instead of 7",
        "seconds measured: 20 instead of 60",
        "seconds of lead-in: 5 instead of 10",
    ];
    assert_eq!(changes(WITHOUT_QUICK, &quick).unwrap(), expected);
    assert_eq!(changes(WITHOUT_QUICK, &Overrides::default()), None);
    assert_eq!(changes(FILE, &quick), None);
}
