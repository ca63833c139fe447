//! Trials of a source and a replica, on each server that is there.

use std::path::{Path, PathBuf};

use ebbtide_catalog::Catalog;
use ebbtide_lab::experiment::Role;
use ebbtide_lab::record::Outcome;
use ebbtide_lab::run::{self, Event};
use ebbtide_load::{Cancel, Endpoint, Session, Target};
use ebbtide_mysql::Binary;

use crate::support::{Bench, TWO_ARMS, left_of, mounts, needs, options, parse, server};

/// Measures a source with one replica, by position and by GTID. A MySQL 9.7 that feeds a replica needs more than 512 MiB.
/// `replica` names the program of the replica where that is another one.
fn is_measured(bench: &Bench, server: &Binary, replica: Option<&str>) {
    let named = replica.map(|name| format!("[topology.replica]\nserver = \"{name}\"\n")).unwrap_or_default();
    // The plugin is not in every archive of MySQL.
    let semi_sync = match server.is_mariadb() || server.version.major >= 9 {
        true => {
            "[arms.gtid.topology.source.settings]\nsemi_sync_source = true\nsemi_sync_timeout = \"60s\"\n\
             [arms.gtid.topology.replica.settings]\nsemi_sync_replica = true\nreplica_parallel_workers = 2\n"
        }
        false => "",
    };
    let from = TWO_ARMS.find("[arms.one.settings]").unwrap();
    let text = format!(
        "{}[settings]\nlog_bin = true\nbinlog_format = \"ROW\"\nbuffer_pool_size = \"64MiB\"\n[topology]\nreplicas = 1\n\
         {named}[topology.replica.settings]\nlog_bin = false\n[topology.replica.volumes]\ndata = \"gp3:size=3GiB\"\n\
         [arms.position.topology]\nby = \"position\"\n[arms.gtid.topology]\nby = \"gtid\"\npromote = true\n{semi_sync}",
        TWO_ARMS[..from].replace("memory = \"512MiB\"", "memory = \"1GiB\"")
    );
    let plan = run::plan(parse(&text), &Catalog::builtin(), server).unwrap();
    let mut on_event = |event: Event| println!("{event:?}");
    let run = run::run(plan, options(&bench.home(), &bench.out(), false), &Cancel::default(), &mut on_event)
        .unwrap();
    assert_eq!(run.trials.len(), 2);
    let program = replica.map(|name| Binary::detect(Some(Path::new(name))).unwrap().text);
    for arm in ["position", "gtid"] {
        assert_eq!(run.server.replicas.get(arm).map(|facts| &facts.version), program.as_ref());
    }
    for trial in &run.trials {
        assert!(!matches!(trial.outcome, Outcome::Failed { .. }), "{}: {:?}", trial.arm, trial.outcome);
        assert!(trial.load.as_ref().unwrap().tps() > 1.0, "{}", trial.arm);
        let lags: Vec<_> = trial.seconds.iter().filter_map(|second| second.replica).collect();
        assert!(2 * lags.len() > trial.seconds.len(), "{}: {:?}", trial.arm, trial.notes);
        let numbered = server.is_mariadb() || trial.arm == "gtid";
        assert!(
            lags.iter().all(|lag| lag.lag_s < 60.0 && (lag.lag_transactions.is_some() || !numbered)),
            "{lags:?}"
        );
        let of_replica = trial.seconds.iter().filter_map(|second| second.replica_volumes.first());
        let written: f64 = of_replica.filter_map(|volumes| Some(volumes.get(&Role::Data)?.write_iops)).sum();
        assert!(written > 0.0, "{}: the replica's own volume is recorded", trial.arm);
        assert_eq!(trial.promotion.is_some(), trial.arm == "gtid");
        if let Some(promotion) = trial.promotion {
            println!("{promotion:?}");
            assert!(promotion.acknowledged > 0 && promotion.applied_s <= promotion.took_s, "{promotion:?}");
            assert!(semi_sync.is_empty() || promotion.lost == 0, "the source has waited: {promotion:?}");
        }
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

/// The work directory of the first replica of a home's trial.
fn replicas_work(home: &Path) -> PathBuf {
    let mounts = mounts(home);
    let mount = mounts.iter().find(|dir| dir.starts_with("/run/ebbtide-")).unwrap();
    Path::new(mount).parent().unwrap().join("replica-1.run")
}

/// The password of a server's `root`, from its work directory, which root alone can read.
fn password(work: &Path) -> String {
    let options = std::fs::read_to_string(work.join("client.cnf")).unwrap();
    options.lines().find_map(|line| line.strip_prefix("password=")).unwrap().to_owned()
}

#[test]
fn a_replica_that_breaks_under_the_load_fails_its_trial_at_once_with_its_own_error() {
    needs!();
    let server = server().unwrap();
    let bench = Bench::new();
    let from = TWO_ARMS.find("[arms.one.settings]").unwrap();
    let text = format!(
        "{}[settings]\nlog_bin = true\nbuffer_pool_size = \"64MiB\"\n[topology]\nreplicas = 1\n\
         [topology.replica.settings]\nlog_bin = false\n",
        TWO_ARMS[..from].replace("memory = \"512MiB\"", "memory = \"1GiB\"").replace("\"10s\"", "\"120s\"")
    );
    let plan = run::plan(parse(&text), &Catalog::builtin(), &server).unwrap();
    let (mut broken, mut seconds) = (false, 0);
    let home = bench.home();
    let mut on_event = |event: Event| match event {
        Event::Tick { .. } if !broken => {
            let work = replicas_work(&home);
            let target = Target {
                endpoints: vec![Endpoint::Unix(work.join("own/sock"))],
                user: "root".into(),
                password: password(&work),
                database: "sbtest".into(),
                tls: None,
            };
            let stranger = Target { password: String::new(), ..target.clone() };
            assert!(Session::open(&stranger, &stranger.endpoints[0]).is_err(), "it has a password");
            let mut session = Session::open(&target, &target.endpoints[0]).unwrap();
            session.execute("SET SESSION sql_log_bin=0").unwrap();
            session.execute("DROP TABLE sbtest1").unwrap();
            broken = true;
        }
        Event::Tick { .. } => seconds += 1,
        other => println!("{other:?}"),
    };
    let run = run::run(plan, options(&home, &bench.out(), false), &Cancel::default(), &mut on_event).unwrap();
    let Outcome::Failed { why, .. } = &run.trials[0].outcome else { panic!("{:?}", run.trials[0].outcome) };
    assert!(why.contains("the replica has stopped") && why.contains("sbtest1"), "{why}");
    assert!(seconds < 30, "it is noticed during the load of two minutes: after {seconds} s");
    assert_eq!(left_of(&home), Vec::<String>::new());
}

fn find(name: Option<&str>) -> Option<Binary> {
    let found = Binary::detect(name.map(Path::new));
    found
        .inspect_err(|error| {
            let name = name.unwrap_or("of the system");
            println!("SKIPPED: the server {name}, which `./dev servers` fetches ({error})");
        })
        .ok()
}

fn on(name: Option<&str>) {
    if let Some(server) = find(name) {
        is_measured(&Bench::new(), &server, None);
    }
}

/// A source of one version with a replica of a newer one.
fn upgraded(source: Option<&str>, replica: &str) {
    let (Some(source), Some(newer)) = (find(source), find(Some(replica))) else { return };
    if source.is_mariadb() != newer.is_mariadb() || newer.version <= source.version {
        println!("SKIPPED: a source older than {}; it is {}", newer.name(), source.name());
        return;
    }
    is_measured(&Bench::new(), &source, Some(replica));
}

#[test]
fn a_replica_of_mariadb_11_8_follows_an_older_source() {
    needs!();
    upgraded(None, "mariadb-11.8");
}

#[test]
fn a_replica_of_mysql_9_7_follows_a_source_of_mysql_8_0() {
    needs!();
    upgraded(Some("mysql-8.0"), "mysql-9.7");
}

#[test]
fn a_replica_follows_a_source_under_load_on_the_systems_server() {
    needs!();
    on(None);
}

#[test]
fn a_replica_follows_a_source_under_load_on_mysql_9_7() {
    needs!();
    on(Some("mysql-9.7"));
}

#[test]
fn a_replica_follows_a_source_under_load_on_mysql_8_0() {
    needs!();
    on(Some("mysql-8.0"));
}
