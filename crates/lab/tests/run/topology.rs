//! Trials of a source and a replica, on each server that is there.

use std::path::Path;

use ebbtide_catalog::Catalog;
use ebbtide_lab::record::Outcome;
use ebbtide_lab::run::{self, Event};
use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;

use crate::support::{Bench, TWO_ARMS, left_of, needs, options, parse};

/// Measures a source with one replica, by position and by GTID. A MySQL 9.7 that feeds a replica needs more than 512 MiB.
fn is_measured(bench: &Bench, server: &Binary) {
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
        "{}[settings]\nlog_bin = true\nbuffer_pool_size = \"64MiB\"\n[topology]\nreplicas = 1\n\
         [topology.replica.settings]\nlog_bin = false\n[topology.replica.volumes]\ndata = \"gp3:size=3GiB\"\n\
         [arms.position.topology]\nby = \"position\"\n[arms.gtid.topology]\nby = \"gtid\"\npromote = true\n{semi_sync}",
        TWO_ARMS[..from].replace("memory = \"512MiB\"", "memory = \"1GiB\"")
    );
    let plan = run::plan(parse(&text), &Catalog::builtin(), server).unwrap();
    let mut on_event = |event: Event| println!("{event:?}");
    let run = run::run(plan, options(&bench.home(), &bench.out(), false), &Cancel::default(), &mut on_event)
        .unwrap();
    assert_eq!(run.trials.len(), 2);
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
        assert_eq!(trial.promotion.is_some(), trial.arm == "gtid");
        if let Some(promotion) = trial.promotion {
            println!("{promotion:?}");
            assert!(promotion.acknowledged > 0 && promotion.applied_s <= promotion.took_s, "{promotion:?}");
            assert!(semi_sync.is_empty() || promotion.lost == 0, "the source has waited: {promotion:?}");
        }
    }
    assert_eq!(left_of(&bench.home()), Vec::<String>::new());
}

fn on(name: Option<&str>) {
    match Binary::detect(name.map(Path::new)) {
        Ok(server) => is_measured(&Bench::new(), &server),
        Err(error) => println!(
            "SKIPPED: the server {}, which `./dev servers` fetches ({error})",
            name.unwrap_or("of the system")
        ),
    }
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
