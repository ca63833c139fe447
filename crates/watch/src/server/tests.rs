//! All families of a server together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ebbtide_mysql::sampling::{Collector, CollectorRun, Cost, Missing, Reading, Timed};
use ebbtide_observe::metric::Maker;

use super::*;

const NO_LABELS: &[(&str, &str)] = &[];

fn timed<T>(value: T) -> Option<Timed<T>> {
    Some(Timed { at: Duration::from_secs(1), value })
}

/// A replica of MySQL that answers.
fn server() -> Reading {
    let status = [("Uptime", "10"), ("Com_select", "3"), ("Innodb_checkpoint_age", "7")];
    let variables = [("version", "8.4.6"), ("innodb_redo_log_capacity", "104857600"), ("log_bin", "ON")];
    let replica =
        [("Replica_IO_Running", "Yes"), ("Replica_SQL_Running", "Yes"), ("Seconds_Behind_Source", "2")];
    let replica = replica.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Reading {
        up: true,
        maker: Some(Maker::MySql),
        status: timed(status.into_iter().collect()),
        variables: timed(variables.into_iter().collect()),
        replica: timed(vec![BTreeMap::from(replica)]),
        collectors: BTreeMap::from([
            (Collector::Status, CollectorRun { success: true, ..CollectorRun::default() }),
            (Collector::InnodbMetrics, CollectorRun { refusals: 2, ..CollectorRun::default() }),
        ]),
        missing: vec![Missing { subject: "counters of InnoDB".into(), reason: "r".into(), enable: None }],
        cost: Cost { statements: 9, samples: 4, ..Cost::default() },
        ..Reading::default()
    }
}

fn families(reading: &Reading, labels: &ServerLabels) -> Families {
    let mut trend = ServerTrend::default();
    trend.observe(reading);
    let mut families = Families::default();
    add_server(&mut families, reading, &trend, labels);
    families
}

#[test]
fn a_server_has_the_names_of_mysqld_exporter_and_the_projects_own() {
    let families = families(&server(), &ServerLabels::default());
    for (name, labels, value) in [
        ("mysql_up", NO_LABELS, 1.0),
        ("mysql_global_status_uptime", &[], 10.0),
        ("mysql_global_status_commands_total", &[("command", "select")], 3.0),
        ("mysql_global_variables_log_bin", &[], 1.0),
        ("mysql_exporter_collector_success", &[("collector", "collect.global_status")], 1.0),
        (
            "mysql_exporter_collector_success",
            &[("collector", "collect.info_schema.query_response_time")],
            1.0,
        ),
        ("mysql_exporter_collector_success", &[("collector", "collect.info_schema.innodb_metrics")], 0.0),
        ("mysql_exporter_scrape_errors_total", &[("collector", "collect.info_schema.innodb_metrics")], 2.0),
        ("mysql_exporter_collector_duration_seconds", &[("collector", "connection")], 0.0),
        ("mysql_exporter_last_scrape_error", &[], 1.0),
        ("ebbtide_server_redo_used_bytes", &[], 7.0),
        ("ebbtide_server_replica_lag_seconds", &[("channel", "")], 2.0),
        ("ebbtide_server_replica_lag_evidence", &[("channel", ""), ("evidence", "seconds_behind")], 1.0),
        ("ebbtide_server_replica_thread_running", &[("channel", ""), ("thread", "applier")], 1.0),
        ("ebbtide_server_missing", &[("subject", "counters of InnoDB")], 1.0),
        ("ebbtide_server_sampling_statements_total", &[], 9.0),
    ] {
        assert_eq!(families.value(name, labels), Some(value), "{name} {labels:?}");
    }
    // One look is no interval.
    assert_eq!(families.value("ebbtide_server_log_waits_per_second", &[]), None);
}

#[test]
fn every_sample_has_the_constant_labels() {
    let labels = ServerLabels { service_name: Some("shop".into()), node_name: Some("db\n1".into()) };
    let text = families(&server(), &labels).text();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.contains("service_name=\"shop\",node_name=\"db\\n1\""), "{line}");
    }
    let comments = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    let names: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert_eq!(names.len(), comments, "each family stands in one place");
}

#[test]
fn of_a_server_that_does_not_answer_nothing_old_is_shown() {
    let families = families(&Reading { up: false, ..server() }, &ServerLabels::default());
    assert_eq!(families.value("mysql_up", &[]), Some(0.0));
    for (name, _) in families.iter() {
        let shown = name == "mysql_up" || name.contains("_sampl") || name == "ebbtide_server_restarts_total";
        assert!(shown, "{name}");
    }
}

#[test]
fn families_have_names_of_their_own_with_the_endings_of_their_types() {
    let names: BTreeSet<&str> = SERVER_FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!(names.len(), SERVER_FAMILIES.len());
    for family in SERVER_FAMILIES {
        assert!(family.name.starts_with("ebbtide_server_"), "{}", family.name);
        assert_eq!(
            Kind::from(family.kind) == Kind::Counter,
            family.name.ends_with("_total"),
            "{}",
            family.name
        );
        assert!(family.help.ends_with('.') && !family.help.contains(['\\', '\n']), "{}", family.name);
    }
}
