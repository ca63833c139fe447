//! `ebbtide run` where no trial is needed: what it lists, plans and refuses. Trials themselves are the
//! lab's own tests.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ebbtide_lab::experiment::{self, Experiment, Overrides};
use ebbtide_lab::record::{HostFacts, LabRun, Outcome, Second, ServerFacts, Trial};
use ebbtide_lab::results::ResultsDatabase;
use ebbtide_lab::summary::summarize;

use crate::harness::{EBBTIDE, Home, Need, Ran, can, left_of};
use crate::schemas::assert_results_are_documented;

#[test]
fn the_shipped_experiments_are_listed_and_each_can_be_shown_and_loaded() {
    let home = Home::new();
    let all = home.run(&["run", "--list", "--json"]).ok().json();
    let names: Vec<&str> = all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    for wanted in ["tuned-vs-default", "volume-types", "gp2-burst", "flush-settings", "instance-cap"] {
        assert!(names.contains(&wanted), "{wanted} is not in {names:?}");
    }
    for name in names {
        let text = home.run(&["run", name, "--show"]).ok().stdout;
        assert!(text.contains("title = "), "{name}: {text}");
    }
}

#[test]
fn an_unknown_experiment_is_refused_with_the_nearest_one() {
    let home = Home::new();
    home.run(&["run", "tuned-vs-defualt"])
        .refused(2, &["tuned-vs-defualt", "did you mean 'tuned-vs-default'?"]);
}

#[test]
fn an_unknown_key_of_a_file_is_refused_with_its_line_and_the_nearest_key() {
    let home = Home::new();
    let file = home.sibling("mine.toml");
    fs::write(
        &file,
        "title = \"mine\"\n[load]\nconections = 4\n[arms.a]\n[arms.b.settings]\nsync_binlog = 0\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    home.run(&["run", file]).refused(2, &["mine.toml", "3", "conections", "connections"]);
}

#[test]
fn a_setting_without_a_value_and_a_server_that_is_none_are_refused() {
    let home = Home::new();
    home.run(&["run", "same-twice", "--set", "load.connections"]).refused(2, &["--set load.connections"]);
    home.run(&["run", "same-twice", "--server", "/bin/true"]).refused(2, &["/bin/true"]);
    home.run(&["run", "same-twice", "--server", "/nowhere/mysqld"]).refused(2, &["/nowhere/mysqld"]);
    home.run(&["run", "same-twice", "--measure", "1500ms"]).refused(2, &["whole seconds"]);
    assert!(!home.root().join("lab").exists(), "a refused run leaves nothing");
}

#[test]
fn a_check_prints_what_would_run_in_the_servers_words_and_runs_nothing() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let plan = home.run(&["run", "tuned-vs-default", "--quick", "--check"]).planned().stdout;
    for text in ["innodb_log_file_size=33554432", "128 connections", "gp2:size=500GiB", "about "] {
        assert!(plan.contains(text), "'{text}' is not in: {plan}");
    }
    let plan = home.run(&["run", "same-twice", "--check", "--set", "load.connections=300"]).planned().stdout;
    assert!(plan.contains("max_connections=316"), "room for the load and the sampler: {plan}");
    home.run(&["run", "tuned-vs-default", "--check", "--set", "tuned.io_capacity=7"])
        .refused(2, &["io_capacity", "7"]);
    home.run(&["run", "same-twice", "--check", "--volume", "gp3:size=1GiB,iops=99999"]).refused(2, &["iops"]);
    assert!(!home.root().join("lab").exists());
}

/// A program that answers as a server that is too old does, and leaves who has started it in a file beside it.
fn stand_in(home: &Home, name: &str) -> (String, PathBuf) {
    let dir = home.sibling("");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    let (program, mark) = (dir.join(name), dir.join(format!("{name}.started")));
    let text = format!(
        "#!/bin/sh\nid -u >>'{}'\necho 'mysqld  Ver 5.0.1 for Linux on x86_64 (x)'\n",
        mark.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program.display().to_string(), mark)
}

#[test]
fn a_check_starts_no_program_whoever_names_it_and_says_what_it_cannot_know() {
    let home = Home::new();
    let (program, mark) = stand_in(&home, "mysqld");
    let file = home.sibling("mine.toml");
    let text = format!(
        "[settings]\nlog_bin = true\n[topology]\nreplicas = 1\n[topology.replica]\nserver = \"{program}\"\n[arms.a]\n"
    );
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    home.run(&["run", file, "--check"])
        .refused(2, &["names the server program", &program, "--allow-servers"]);
    let asked = [
        vec!["run", file, "--check", "--allow-servers"],
        vec!["run", "same-twice", "--check", "--server", &program],
        vec!["crash", "ssd-cache", "--check", "--server", &program],
        vec!["crash", "optimized-writes", "--check", "--server", &program],
        vec!["run", "--documents", "--check", "--server", &program],
    ];
    for words in &asked {
        let plan = home.run(words).planned().stdout;
        for expected in ["about ", "not checked: the settings", &program, "--check starts nothing"] {
            assert!(plan.contains(expected), "{words:?}: '{expected}' is not in: {plan}");
        }
        let json = home.run(&[&words[..], &["--json"]].concat()).planned().json();
        assert_eq!(json["not_started"], serde_json::json!([program]), "{words:?}: {json}");
    }
    let set = format!("topology.source.server={program}");
    let own = home.run(&["run", "same-twice", "--check", "--set", &set]).planned();
    assert!(own.stdout.contains("not checked"), "{}", own.stdout);
    home.run(&["run", "same-twice", "--check", "--server", &program, "--volume", "gp3:size=1GiB,iops=99999"])
        .refused(2, &["iops"]);
    assert!(!mark.exists(), "nothing was started");
}

#[test]
fn a_program_that_a_file_names_is_named_and_needs_to_be_allowed_and_is_never_started_as_root() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let (program, mark) = stand_in(&home, "mysqld");
    let file = home.sibling("mine.toml");
    fs::write(&file, format!("[topology.source]\nserver = \"{program}\"\n[arms.a]\n")).unwrap();
    let file = file.to_str().unwrap();
    let named = format!("note: {file} names the server program {program}");
    home.run(&["run", file]).refused(2, &[&named, "was not started", "--allow-servers"]);
    assert!(!mark.exists(), "nothing was started");
    let user = || {
        let text = fs::read_to_string(&mark).unwrap();
        fs::remove_file(&mark).unwrap();
        text.trim().to_owned()
    };
    home.run(&["run", file, "--allow-servers"]).refused(2, &[&named, "is too old"]);
    let first = user();
    home.run(&["run", "same-twice", "--server", &program]).refused(2, &["is too old"]);
    let second = user();
    let set = format!("topology.source.server={program}");
    home.run(&["run", "same-twice", "--set", &set]).refused(2, &["is too old"]);
    let users = [first, second, user()];
    if rustix::process::geteuid().is_root() {
        assert!(users.iter().all(|user| user != "0" && user.parse::<u32>().is_ok()), "{users:?}");
    }
}

#[test]
fn what_a_directory_of_results_names_is_not_started_unless_it_is_allowed() {
    let home = Home::new();
    let (program, mark) = stand_in(&home, "mysqld");
    let out = home.sibling("out");
    let run = LabRun {
        // What the directory says of itself allows nothing.
        command: format!(
            "ebbtide run same-twice --home {} --server {program} --allow-servers",
            home.root().display()
        ),
        server: ServerFacts { path: program.clone(), ..ServerFacts::default() },
        ..unmeasured(same_twice(true, 1))
    };
    ResultsDatabase::create(&out, &run).unwrap();
    let resume = ["run", "--resume", "--out", out.to_str().unwrap()];
    home.run(&resume).refused(2, &["names the server program", &program, "was not started", "--server PATH"]);
    assert!(!mark.exists(), "nothing was started");
    home.run(&[&resume[..], &["--allow-servers"]].concat()).refused(3, &["is gone", "too old"]);
    assert!(mark.exists());

    // An arm of the stored experiment names it, on the machine's own server.
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    fs::remove_file(&mark).unwrap();
    let mut experiment = same_twice(true, 2);
    experiment.arms[0].server = Some(program.clone());
    let own = ebbtide_mysql::Binary::detect(None).unwrap().path.display().to_string();
    let out = home.sibling("other");
    let run = LabRun {
        command: run.command,
        server: ServerFacts { path: own, ..ServerFacts::default() },
        ..unmeasured(experiment)
    };
    ResultsDatabase::create(&out, &run).unwrap();
    home.run(&["run", "--resume", "--out", out.to_str().unwrap()])
        .refused(2, &["names the server program", &program, "was not started"]);
    assert!(!mark.exists(), "nothing was started");
}

#[test]
fn warehouses_are_planned_and_those_that_do_not_fit_the_volume_are_refused_before_anything_is_made() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let file = home.sibling("tpcc.toml");
    fs::write(&file, "[data]\nwarehouses = 10\n[volumes]\ndata = \"gp3:size=20GiB\"\n").unwrap();
    let run = ["run", file.to_str().unwrap()];
    let plan = home.run(&[&run[..], &["--quick", "--check"]].concat()).planned().stdout;
    for text in ["tpcc with 16 connections", "of data", "2 trials of each, 20 s measured: about "] {
        assert!(plan.contains(text), "'{text}' is not in: {plan}");
    }
    let many = [&run[..], &["--set", "data.warehouses=1000"]].concat();
    home.run(&many).refused(2, &["data volume has 20480 MiB, and needs ", "fewer warehouses"]);
    home.run(&[&run[..], &["--set", "data.warehouses=0"]].concat()).refused(2, &["1 to 9000"]);
    assert!(!home.root().join("lab").exists());
}

#[test]
fn what_the_server_rejects_and_a_machine_without_memory_cgroups_are_refused_before_anything_is_made() {
    if !can(&[Need::BlockDevices, Need::Tool("mariadbd"), Need::Tool("mkfs.xfs"), Need::Tool("unshare")]) {
        return;
    }
    let home = Home::new();
    let out = home.sibling("out");
    let run = ["run", "same-twice", "--out", out.to_str().unwrap()];
    let raw = [&run[..], &["--set", "settings.raw.innodb_nonsense=1"]].concat();
    home.run(&raw).refused(2, &["lists no option of this whole name", "(and 1 more like it)", "hint: "]);
    let hidden = "mount --make-rprivate / && umount --recursive /sys/fs/cgroup && exec \"$0\" \"$@\"";
    let mut without = Command::new("unshare");
    without.args(["--mount", "sh", "-c", hidden, EBBTIDE]).args(run).arg("--home").arg(home.root());
    Ran::of(without.output().unwrap())
        .refused(3, &["memory cannot be limited", "no memory controller", "hint: "]);
    assert!(!out.exists());
    assert_eq!(home.run(&["run", "--prepared"]).ok().line(), "no prepared data");
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
}

#[test]
fn a_run_that_was_never_begun_cannot_be_resumed() {
    let home = Home::new();
    let out = home.sibling("out");
    home.run(&["run", "same-twice", "--resume", "--out", out.to_str().unwrap()])
        .refused(2, &["out", "holds no results", "without --resume"]);
    assert!(!out.exists(), "asking for results makes none");
}

#[test]
fn without_runs_there_is_no_prepared_data_to_list_or_delete() {
    let home = Home::new();
    assert_eq!(home.run(&["run", "--prepared"]).ok().line(), "no prepared data");
    home.run(&["run", "--delete-prepared", "prep-1"]).refused(2, &["prep-1", "--prepared"]);
    home.run(&["run", "--delete-prepared", "all"]).ok();
}

/// The shipped A/A experiment, short or long.
fn same_twice(quick: bool, seed: u64) -> Experiment {
    experiment::load("same-twice", &Overrides { quick, seed: Some(seed), ..Overrides::default() }).unwrap()
}

/// A run of the experiment before its first trial.
fn unmeasured(experiment: Experiment) -> LabRun {
    LabRun {
        started_ns: 1_790_000_000_000_000_000 + experiment.seed,
        command: String::new(),
        ebbtide: env!("CARGO_PKG_VERSION").into(),
        host: HostFacts::default(),
        server: ServerFacts::default(),
        experiment,
        overrides: None,
        trials: Vec::new(),
    }
}

/// Leaves what a run of the experiment would, whose second arm carries so many times the first one's rate.
fn ended(dir: &Path, experiment: Experiment, ratio: f64) {
    let trial = |repeat: u32, arm: usize| {
        let level = 400.0 * ratio.powi(i32::try_from(arm).unwrap()) * (1.0 + 0.01 * f64::from(repeat));
        let second = |t: u32| {
            let mut second = Second { t_s: f64::from(t), ..Second::default() };
            second.load.tps = level * (1.0 + 0.02 * f64::from((t * 7 + repeat) % 5));
            second
        };
        Trial {
            arm: experiment.arms[arm].name.clone(),
            repeat,
            started_ns: 1,
            took_s: 60.0,
            outcome: Outcome::Measured,
            load: None,
            seconds: (1..=30).map(second).collect(),
            batch: None,
            promotion: None,
            backup: None,
            notes: Vec::new(),
        }
    };
    let trials = (0..3).flat_map(|repeat| [trial(repeat, 0), trial(repeat, 1)]).collect();
    let run = LabRun { trials, ..unmeasured(experiment) };
    ResultsDatabase::create(dir, &run).unwrap().finish(&summarize(&run)).unwrap();
}

#[test]
fn finished_runs_are_compared_and_the_exit_code_shows_whether_they_agree() {
    let home = Home::new();
    let [first, second, third] = ["first", "second", "third"].map(|name| home.sibling(name));
    ended(&first, same_twice(false, 1), 1.0);
    ended(&second, same_twice(false, 2), 1.01);
    ended(&third, same_twice(false, 3), 1.5);
    let [first, second, third] = [&first, &second, &third].map(|dir| dir.to_str().unwrap());
    assert_results_are_documented("run", Path::new(first));
    let listed = |dir: &str| fs::read_dir(dir).unwrap().map(|one| one.unwrap().path()).collect::<Vec<_>>();
    let before = listed(first);
    let agree = home.run(&["run", "--compare", first, second]).ok().stdout;
    assert!(agree.starts_with("The 2 runs of same-twice agree: the intervals overlap.\n"), "{agree}");
    let words = agree.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in
        ["two over one: two runs: 1.00 (", "the intervals overlap, from ", "Run Started", first, second]
    {
        assert!(words.contains(text), "'{text}' is not in: {agree}");
    }
    let json = home.run(&["run", "--compare", first, second, "--json"]).ok().json();
    assert_eq!((json["overlap"].as_bool(), json["runs"].as_array().unwrap().len()), (Some(true), 2));
    let part = home.run(&["run", "--compare", first, second, third]);
    assert_eq!(part.code, 1, "{}", part.stderr);
    assert!(part.stdout.contains("the intervals do not all overlap"), "{}", part.stdout);
    assert_eq!(listed(first), before, "comparing writes nothing");
    assert!(!home.root().exists(), "not even a home");
}

#[test]
fn what_is_no_other_run_of_the_same_experiment_is_not_compared() {
    let home = Home::new();
    let [long, short, empty] = ["long", "short", "empty"].map(|name| home.sibling(name));
    ended(&long, same_twice(false, 1), 1.0);
    ended(&short, same_twice(true, 2), 1.0);
    fs::create_dir(&empty).unwrap();
    let [long, short, empty] = [&long, &short, &empty].map(|dir| dir.to_str().unwrap());
    home.run(&["run", "--compare", long]).refused(2, &["two runs at least"]);
    home.run(&["run", "--compare", long, empty]).refused(2, &[empty, "holds no results", "results.json"]);
    home.run(&["run", "--compare", long, "/nowhere"]).refused(2, &["/nowhere", "holds no results"]);
    home.run(&["run", "--compare", long, long]).refused(2, &["the same run", "once"]);
    home.run(&["run", "--compare", long, short])
        .refused(2, &[short, "something else", "measure_s was 25, is 90"]);
    home.run(&["run", "same-twice", "--compare", long, short]).refused(2, &["--compare"]);
    home.run(&["run", "same-twice", "--against", empty]).refused(2, &[empty, "holds no results"]);
    home.run(&["run", "same-twice", "--out", long, "--against", long]).refused(2, &["own results go"]);
}

#[test]
fn a_run_is_refused_before_it_begins_where_the_earlier_one_was_another() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let dir = home.sibling("earlier");
    ended(&dir, same_twice(false, 1), 1.0);
    let dir = dir.to_str().unwrap();
    home.run(&["run", "tuned-vs-default", "--quick", "--against", dir])
        .refused(2, &[dir, "experiment.name was 'same-twice', is 'tuned-vs-default'", "same experiment"]);
    home.run(&["run", "same-twice", "--against", dir]).refused(2, &["server.flavour was '', is 'mariadb'"]);
    assert!(!home.root().join("lab").exists(), "nothing was begun");
}

#[test]
fn quick_of_a_file_that_does_not_define_it_reports_what_it_changes() {
    if !can(&[Need::Tool("mariadbd")]) {
        return;
    }
    let home = Home::new();
    let file = home.sibling("mine.toml");
    fs::write(&file, "[trial]\nrepeats = 6\n[arms.a]\n[arms.b.settings]\nsync_binlog = 0\n").unwrap();
    let check = ["run", file.to_str().unwrap(), "--check", "--quick"];
    let text = home.run(&check).planned().stdout;
    for expected in [
        "has no [quick]",
        "trials of each arm: 2 instead of 6",
        "about 3 min instead of 17 min",
        "2 trials of each, 20 s measured",
    ] {
        assert!(text.contains(expected), "'{expected}' is not in: {text}");
    }
    assert!(!home.run(&check[..3]).planned().stdout.contains("[quick]"));
}

/// A short experiment of two trials.
const SHORT: &str = "title = \"Short\"\n[data]\ntables = 1\nrows = 5_000\n[volumes]\ndata = \"gp3:size=2GiB\"\n\
    [instance]\nmemory = \"512MiB\"\n[settings]\nbuffer_pool_size = \"64MiB\"\nredo_capacity = \"16MiB\"\n\
    [load]\nworkload = \"write_only\"\nconnections = 2\n[trial]\nrepeats = 1\n[warmup]\nlead_in = \"1s\"\nsettle = \"1s\"\n\
    [arms.one.settings]\nflush_log_at_trx_commit = 1\n[arms.two.settings]\nflush_log_at_trx_commit = 0\n";

#[test]
fn a_run_that_was_ended_is_gone_on_with_by_the_command_that_it_prints_and_no_other_option() {
    use std::io::{BufRead as _, BufReader, Read as _};
    if !can(&[Need::BlockDevices, Need::Tool("mariadbd"), Need::Tool("mkfs.xfs")]) {
        return;
    }
    let home = Home::new();
    let (file, out) = (home.sibling("mine.toml"), home.sibling("my out"));
    fs::write(&file, SHORT).unwrap();
    let mut command = Command::new(EBBTIDE);
    // Relative paths, a home of its own, and options that the directory has to remember.
    command.args([
        "run",
        "mine.toml",
        "--out",
        "my out",
        "--home",
        "home",
        "--measure",
        "10s",
        "--over-limit",
    ]);
    command.args(["--set", "one.flush_log_at_trx_commit=2"]).current_dir(home.sibling(""));
    let mut begun =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(begun.stdout.take().unwrap()).lines().map(Result::unwrap);
    let pid = begun.id().to_string();
    for line in lines {
        if line.starts_with("trial 1 of 2") {
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        }
    }
    let mut stderr_text = String::new();
    begun.stderr.take().unwrap().read_to_string(&mut stderr_text).unwrap();
    assert_eq!(begun.wait().unwrap().code(), Some(1), "{stderr_text}");
    fs::remove_file(&file).unwrap();
    let printed = stderr_text.split("go on with: ").nth(1).unwrap_or_else(|| panic!("{stderr_text}")).trim();
    assert_eq!(printed, format!("ebbtide run --resume --out '{}'", out.display()));
    let again = format!("set -- {}; shift; exec {EBBTIDE} \"$@\"", printed);
    let again = Ran::of(Command::new("sh").args(["-c", &again]).current_dir("/").output().unwrap());
    assert!(again.code == 0 || again.code == 1, "{}{}", again.stdout, again.stderr);
    let run = ResultsDatabase::open(&out).unwrap().run().unwrap();
    let arms: Vec<&str> = run.trials.iter().map(|trial| trial.arm.as_str()).collect();
    assert_eq!(arms.len(), 2, "{arms:?}: {}", again.stderr);
    assert!(
        again.stdout.contains("2 trials, 1 of them measured already") || again.code == 1,
        "{}",
        again.stdout
    );
    assert_eq!(run.host.home, home.root().canonicalize().unwrap().display().to_string());
    let changed = home.run(&["run", "--resume", "--out", out.to_str().unwrap(), "--quick"]);
    changed.refused(2, &["as it was begun", "hint: give --resume and --out alone"]);
    assert_eq!(left_of(&home.root()), Vec::<String>::new());
}
