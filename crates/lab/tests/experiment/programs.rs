//! The server program of each role: which one is found, what is checked against it, and which data it starts from.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ebbtide_catalog::Catalog;
use ebbtide_lab::experiment::{self, Experiment, Overrides, PlannedArm};
use ebbtide_lab::run;
use ebbtide_mysql::{Binary, NamedServers};
use tempfile::TempDir;

use crate::support::{read, read_with, refused, set};

const MARIADB_10_11: &str = "mariadbd  Ver 10.11.14-MariaDB for Linux on x86_64 (x)";
const MARIADB_11_8: &str = "mariadbd  Ver 11.8.3-MariaDB for Linux on x86_64 (x)";
const MYSQL_9_7: &str = "mysqld  Ver 9.7.0 for Linux on x86_64 (x)";

/// Whatever an experiment names.
fn any() -> NamedServers {
    NamedServers::default().and_any(true)
}

/// Programs that answer as servers do, and nothing else.
struct Programs(TempDir);

impl Programs {
    fn new() -> Self {
        let programs = Self(tempfile::tempdir().expect("a directory"));
        // Root starts them as another user.
        fs::set_permissions(programs.0.path(), fs::Permissions::from_mode(0o755)).expect("our directory");
        for (name, version, collation) in [
            ("mariadb-10.11", MARIADB_10_11, "latin1_swedish_ci"),
            ("mariadb-11.8", MARIADB_11_8, "utf8mb4_uca1400_ai_ci"),
            ("mysql-9.7", MYSQL_9_7, "utf8mb4_0900_ai_ci"),
            ("mysql-8.0", "mysqld  Ver 8.0.36 for Linux on x86_64 (x)", "utf8mb4_0900_ai_ci"),
            ("mysql-5.7", "mysqld  Ver 5.7.44 for Linux on x86_64 (x)", "latin1_swedish_ci"),
        ] {
            let text = format!(
                "#!/bin/sh\ncase \"$*\" in\n*--help*) echo 'collation-server   {collation}';;\n*) echo '{version}';;\nesac\n"
            );
            let path = programs.path(name);
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        }
        programs
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn binary(&self, name: &str) -> Binary {
        Binary::detect(Some(Path::new(&self.path(name)))).expect("it answers")
    }

    /// A source of one server with a replica of another, and more lines.
    fn pair(&self, source: &str, replica: &str, more: &str) -> Experiment {
        let (source, replica) = (self.path(source), self.path(replica));
        let text = format!(
            "[settings]\nlog_bin = true\n[topology]\nreplicas = 2\n[topology.source]\nserver = \"{source}\"\n\
             [topology.replica]\nserver = \"{replica}\"\n{more}"
        );
        read(&text).expect("it must be read")
    }

    fn check(&self, experiment: &Experiment) -> Result<Vec<PlannedArm>, String> {
        let own = self.binary("mysql-9.7");
        experiment::check_with(experiment, &Catalog::builtin(), &own, &any())
            .map_err(|error| error.to_string())
    }
}

#[test]
fn a_replica_of_a_newer_version_starts_from_data_of_its_own_in_the_collation_of_its_source() {
    let programs = Programs::new();
    let planned = programs.check(&programs.pair("mariadb-10.11", "mariadb-11.8", "")).unwrap().remove(0);
    let replica = planned.replica.as_deref().unwrap();
    assert_eq!(planned.server.name(), "MariaDB 10.11.14");
    assert_eq!(replica.server.name(), "MariaDB 11.8.3");
    assert_ne!(replica.prepare_key, planned.prepare_key);
    assert!(replica.prepare_key.contains("11.8.3"), "{}", replica.prepare_key);
    assert!(replica.prepare_key.ends_with(" collation=latin1_swedish_ci"), "{}", replica.prepare_key);
    assert_eq!(
        (planned.collation.as_deref(), replica.collation.as_deref()),
        (None, Some("latin1_swedish_ci"))
    );

    let alike = programs.check(&programs.pair("mariadb-11.8", "mariadb-11.8", "")).unwrap().remove(0);
    let replica = alike.replica.as_deref().unwrap();
    assert_eq!((&replica.prepare_key, &replica.collation), (&alike.prepare_key, &None));
}

#[test]
fn a_replica_has_its_sources_program_and_a_source_the_runs_unless_they_name_one() {
    let programs = Programs::new();
    let named = programs.path("mariadb-11.8");
    let of = |lines: &str| {
        let experiment =
            read(&format!("[settings]\nlog_bin = true\n[topology]\nreplicas = 1\n{lines}")).unwrap();
        let own = programs.binary("mariadb-10.11");
        let plan = run::plan_with(experiment, &Catalog::builtin(), &own, &any()).unwrap();
        let facts = run::server_facts(&plan);
        let version = |of: &std::collections::BTreeMap<String, ebbtide_lab::record::ProgramFacts>| {
            of.get("base").map(|program| program.version.clone())
        };
        (version(&facts.sources), version(&facts.replicas))
    };
    let newer = || Some(MARIADB_11_8.to_owned());
    assert_eq!(of(""), (None, None));
    assert_eq!(of(&format!("[topology.replica]\nserver = \"{named}\"\n")), (None, newer()));
    assert_eq!(of(&format!("[topology.source]\nserver = \"{named}\"\n")), (newer(), newer()));
    assert_eq!(of("[topology.replica]\nserver = \"default\"\n"), (None, None));
}

#[test]
fn servers_that_do_not_go_together_are_refused_with_both_versions() {
    let programs = Programs::new();
    let refusal = |source, replica, more| programs.check(&programs.pair(source, replica, more)).unwrap_err();
    assert_eq!(
        refusal("mariadb-10.11", "mysql-9.7", ""),
        "arm 'base': its replica is MySQL 9.7.0, and its source MariaDB 10.11.14: MariaDB and MySQL do not follow each \
         other; give both servers of one of them (--server, topology.source.server, topology.replica.server, \
         crash.source)"
    );
    assert_eq!(
        refusal("mariadb-11.8", "mariadb-10.11", ""),
        "arm 'base': its replica, MariaDB 10.11.14, is older than its source, MariaDB 11.8.3: a replica has its source's \
         version or a newer one; change topology.replica.server, or the source's (--server, topology.source.server, crash.source)"
    );
    let lacks =
        refusal("mariadb-10.11", "mariadb-11.8", "[topology.replica.settings]\nchange_buffering = \"all\"\n");
    assert!(lacks.starts_with("arm 'base': as a replica: MariaDB 11.8.3 has no change_buffering"), "{lacks}");
    let missing = refusal("mariadb-10.11", "mariadb-11.9", "");
    assert!(
        missing.starts_with(&format!(
            "arm 'base': as a replica: its server '{}' cannot",
            programs.path("mariadb-11.9")
        )),
        "{missing}"
    );
    assert!(missing.contains("does not exist; fetch one with `./dev servers NAME`"), "{missing}");
    let crash = programs.pair("mariadb-10.11", "mariadb-11.8", "[crash]\ncuts = 3\n");
    let crash = Experiment {
        arms: crash.arms.into_iter().map(|arm| experiment_without_replicas(&arm)).collect(),
        ..crash
    };
    assert!(programs.check(&crash).unwrap_err().contains("its source may be another one (crash.source)"));
    let with_both = format!(
        "[settings]\nlog_bin = true\n[topology]\nreplicas = 1\n[crash]\ncuts = 3\nrole = \"replica\"\nsource = \"{}\"\n",
        programs.path("mysql-9.7")
    );
    assert!(
        programs.check(&read(&with_both).unwrap()).unwrap_err().contains("[topology] is for 'ebbtide run'")
    );
}

#[test]
fn a_replica_whose_power_is_cut_has_a_source_of_its_own_program_and_data_with_the_settings_that_it_takes() {
    let programs = Programs::new();
    let plan = |own: &str, source: &str| {
        let text = format!(
            "[settings]\nbuffer_pool_size = \"64MiB\"\n{}[crash]\ncuts = 3\nrole = \"replica\"\nsource = \"{}\"\n",
            if own == "mariadb-11.8" { "doublewrite = \"fast\"\n" } else { "" },
            programs.path(source)
        );
        let own = programs.binary(own);
        let plan = run::plan_with(read(&text).unwrap(), &Catalog::builtin(), &own, &any())
            .map_err(|error| error.to_string())?;
        let sources = run::server_facts(&plan).sources;
        Ok::<_, String>((plan.arms()[0].clone(), sources))
    };
    let (planned, sources) = plan("mariadb-11.8", "mariadb-10.11").unwrap();
    let source = planned.source.as_deref().unwrap();
    assert_eq!(
        (planned.server.name(), source.server.name()),
        ("MariaDB 11.8.3".into(), "MariaDB 10.11.14".into())
    );
    assert!(planned.prepare_key.ends_with(" collation=latin1_swedish_ci"), "{}", planned.prepare_key);
    assert!(source.prepare_key.contains("10.11.14"), "{}", source.prepare_key);
    assert_eq!(sources["base"].version, MARIADB_10_11);
    let settings = |planned: &PlannedArm| {
        planned.arm.settings.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(settings(&planned), ["buffer_pool_size", "doublewrite"]);
    assert_eq!(settings(source), ["buffer_pool_size"], "10.11 has no doublewrite = fast");
    assert_eq!(planned.servers().count(), 2, "both are tried, and have data");

    let (alike, sources) = plan("mariadb-10.11", "mariadb-10.11").unwrap();
    assert!(alike.source.is_none() && sources.is_empty(), "{sources:?}");
    let older = plan("mariadb-10.11", "mariadb-11.8").unwrap_err();
    assert!(older.contains("MariaDB 10.11.14, is older than its source, MariaDB 11.8.3"), "{older}");
    let unknown = plan("mysql-8.0", "mysql-5.7").unwrap_err();
    assert!(
        unknown.contains("the source of its replica: the settings of MySQL 5.7.44 are not known"),
        "{unknown}"
    );
    let missing = plan("mariadb-11.8", "mariadb-9.9").unwrap_err();
    assert!(missing.starts_with("arm 'base': the source of its replica: its server '"), "{missing}");
}

#[test]
fn the_source_of_a_primary_whose_power_is_cut_is_refused() {
    let of =
        |source: &str| read(&format!("[crash]\nsource = \"{source}\"\n")).map_err(|error| error.to_string());
    let primary = of("mariadb-11.8").unwrap_err();
    assert!(primary.contains("a primary has no source: say \"default\", or set role"), "{primary}");
    assert!(of(" ").unwrap_err().contains("it must be a fetched server"));
    assert_eq!(of("default").unwrap().arms[0].crash.as_ref().unwrap().source, None);
}

fn experiment_without_replicas(arm: &experiment::Arm) -> experiment::Arm {
    experiment::Arm { topology: experiment::Topology::default(), ..arm.clone() }
}

#[test]
fn an_optional_arm_whose_server_is_not_there_is_left_out() {
    let programs = Programs::new();
    let gone = programs.path("mariadb-11.9");
    let text = |optional: bool| {
        format!(
            "[settings]\nlog_bin = true\n[arms.alone]\n[arms.followed]\noptional = {optional}\n\
             [arms.followed.topology]\nreplicas = 1\n[arms.followed.topology.replica]\nserver = \"{gone}\"\n"
        )
    };
    let own = programs.binary("mariadb-10.11");
    let plan = |optional| run::plan_with(read(&text(optional)).unwrap(), &Catalog::builtin(), &own, &any());
    let left_out = plan(true).unwrap().left_out().concat();
    assert!(left_out.starts_with("arm 'followed' is left out: as a replica: its server"), "{left_out}");
    plan(false).unwrap_err();
}

#[test]
fn the_command_line_changes_the_program_and_a_path_in_a_file_counts_from_the_file() {
    let programs = Programs::new();
    let text = "[settings]\nlog_bin = true\n[arms.alone]\n[arms.followed.topology]\nreplicas = 1\n";
    let changed = read_with(text, &set("followed.topology.replica.server", "mariadb-11.8")).unwrap();
    let servers = |experiment: &Experiment| -> Vec<Option<String>> {
        experiment.arms.iter().map(|arm| arm.topology.replica.server.clone()).collect()
    };
    assert_eq!(servers(&changed), [None, Some("mariadb-11.8".to_owned())]);
    assert_eq!(changed.arms[1].replica().unwrap().server.as_deref(), Some("mariadb-11.8"));

    let file = programs.0.path().join("mine.toml");
    fs::write(&file, format!("{text}[arms.followed.topology.replica]\nserver = \"./mariadb-11.8\"\n"))
        .unwrap();
    let loaded = experiment::load(file.to_str().unwrap(), &Overrides::default()).unwrap();
    let found = servers(&loaded)[1].clone().unwrap();
    assert_eq!(Binary::detect(Some(Path::new(&found))).unwrap().text, MARIADB_11_8);
    assert!(Path::new(&found).is_absolute(), "{found}");
    fs::write(&file, "[crash]\ncuts = 3\nrole = \"replica\"\nsource = \"./mariadb-11.8\"\n").unwrap();
    let cut = experiment::load(file.to_str().unwrap(), &Overrides::default()).unwrap();
    assert_eq!(cut.arms[0].crash.as_ref().unwrap().source, Some(found), "so does that of a source");

    assert_eq!(
        refused("[topology.replica]\nserver = 118\n"),
        "mine.toml line 2: topology.replica.server = 118: it must be a fetched server, like \"mariadb-11.8\", a program or \
         its directory"
    );
}

#[test]
fn a_program_that_the_user_has_not_allowed_is_named_and_not_started() {
    let programs = Programs::new();
    let mark = programs.0.path().join("mark");
    let text = format!(
        "#!/bin/sh\n: >'{}'\ncase \"$*\" in\n*--help*) echo 'collation-server   utf8mb4_0900_ai_ci';;\n\
         *) echo '{MYSQL_9_7}';;\nesac\n",
        mark.display()
    );
    fs::write(programs.path("mysql-9.7"), text).unwrap();
    fs::set_permissions(programs.0.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let own = Binary { path: "/usr/sbin/mysqld".into(), ..programs.binary("mysql-8.0") };
    let experiment = programs.pair("mysql-8.0", "mysql-9.7", "");
    let named = programs.path("mysql-9.7");
    assert!(experiment.named_servers().contains(&named));
    let error = run::plan(experiment.clone(), &Catalog::builtin(), &own).unwrap_err().to_string();
    assert!(error.contains("was not started") && error.contains("--allow-servers"), "{error}");
    let only = NamedServers::default().and_named([programs.path("mysql-8.0")]);
    let error = run::plan_with(experiment.clone(), &Catalog::builtin(), &own, &only).unwrap_err().to_string();
    assert!(error.contains(&named), "{error}");
    experiment::check_without_server(&experiment, &Catalog::builtin()).unwrap();
    assert!(!mark.exists(), "nothing was started");
    run::plan_with(experiment, &Catalog::builtin(), &own, &any()).unwrap();
    assert!(mark.exists());
}
