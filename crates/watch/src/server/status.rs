//! `mysql_global_status_*`: mysqld_exporter's collector `global_status` (`global_status.go`).

use ebbtide_observe::Variables;

use super::families::{Families, Kind, Labels};
use super::value::{number, valid_name};

/// Counters that stand under one name: what theirs begin with, the name, the label that has the rest, and the help.
const GROUPS: [(&str, &str, &str, &str); 5] = [
    ("com_", "mysql_global_status_commands_total", "command", "Total number of executed MySQL commands."),
    ("handler_", "mysql_global_status_handlers_total", "handler", "Total number of executed MySQL handlers."),
    (
        "connection_errors_",
        "mysql_global_status_connection_errors_total",
        "error",
        "Total number of MySQL connection errors.",
    ),
    (
        "innodb_rows_",
        "mysql_global_status_innodb_row_ops_total",
        "operation",
        "Total number of MySQL InnoDB row operations.",
    ),
    (
        "performance_schema_",
        "mysql_global_status_performance_schema_lost_total",
        "instrumentation",
        "Total number of MySQL instrumentations that could not be loaded or created due to memory constraints.",
    ),
];

/// What the counters of pages in the buffer pool begin with.
const POOL_PAGES: &str = "innodb_buffer_pool_pages_";

/// What `wsrep_evs_repl_latency` has between its slashes.
const GALERA_LATENCIES: [(&str, &str); 5] = [
    ("mysql_galera_evs_repl_latency_min_seconds", "PXC/Galera group communication latency. Min value."),
    ("mysql_galera_evs_repl_latency_avg_seconds", "PXC/Galera group communication latency. Avg value."),
    ("mysql_galera_evs_repl_latency_max_seconds", "PXC/Galera group communication latency. Max value."),
    ("mysql_galera_evs_repl_latency_stdev", "PXC/Galera group communication latency. Standard Deviation."),
    ("mysql_galera_evs_repl_latency_sample_size", "PXC/Galera group communication latency. Sample Size."),
];

/// Adds the families of SHOW GLOBAL STATUS. A variable that is no number has none.
pub(super) fn add(families: &mut Families, status: &Variables) {
    for (name, text) in status.iter() {
        if let Some(value) = number(text) {
            add_variable(families, &valid_name(name), value);
        }
    }
    add_galera(families, status);
}

fn add_variable(families: &mut Families, name: &str, value: f64) {
    for (prefix, family, label, help) in GROUPS {
        if let Some(rest) = name.strip_prefix(prefix) {
            families.add(family, Kind::Counter, help, vec![(label, rest.to_owned())], value);
            return;
        }
    }
    match name.strip_prefix(POOL_PAGES) {
        // The sum of the others.
        Some("total") => {}
        Some("dirty") => families.add(
            "mysql_global_status_buffer_pool_dirty_pages",
            Kind::Gauge,
            "Innodb buffer pool dirty pages.",
            Labels::new(),
            value,
        ),
        Some(state @ ("data" | "free" | "misc" | "old")) => families.add(
            "mysql_global_status_buffer_pool_pages",
            Kind::Gauge,
            "Innodb buffer pool pages by state.",
            vec![("state", state.to_owned())],
            value,
        ),
        Some(operation) => families.add(
            "mysql_global_status_buffer_pool_page_changes_total",
            Kind::Counter,
            "Innodb buffer pool page state changes.",
            vec![("operation", operation.to_owned())],
            value,
        ),
        None => families.add(
            &format!("mysql_global_status_{name}"),
            Kind::Untyped,
            "Generic metric from SHOW GLOBAL STATUS.",
            Labels::new(),
            value,
        ),
    }
}

fn add_galera(families: &mut Families, status: &Variables) {
    let text = |name: &str| status.get(name).unwrap_or_default();
    if !text("wsrep_local_state_uuid").is_empty() {
        let names = ["wsrep_local_state_uuid", "wsrep_cluster_state_uuid", "wsrep_provider_version"];
        // A word that is a number has a family of its own, and is then no label.
        let label = |name: &'static str| {
            let value = Some(text(name)).filter(|text| number(text).is_none()).unwrap_or_default();
            (name, value.to_owned())
        };
        families.add(
            "mysql_galera_status_info",
            Kind::Gauge,
            "PXC/Galera status information.",
            names.map(label).to_vec(),
            1.0,
        );
    }
    let latencies: Vec<&str> = text("wsrep_evs_repl_latency").split('/').collect();
    let values: Option<Vec<f64>> = latencies.iter().map(|text| text.parse().ok()).collect();
    if let Some(values) = values.filter(|values| values.len() == GALERA_LATENCIES.len()) {
        for ((name, help), value) in GALERA_LATENCIES.into_iter().zip(values) {
            families.add(name, Kind::Gauge, help, Labels::new(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families(rows: &[(&str, &str)]) -> Families {
        let mut families = Families::default();
        add(&mut families, &rows.iter().copied().collect());
        families
    }

    /// The rows and the values of mysqld_exporter's own test.
    #[test]
    fn each_variable_has_the_name_and_the_labels_of_mysqld_exporter() {
        let families = families(&[
            ("Com_alter_db", "1"),
            ("Com_select", "3"),
            ("Connection_errors_internal", "4"),
            ("Handler_commit", "5"),
            ("Innodb_buffer_pool_pages_data", "6"),
            ("Innodb_buffer_pool_pages_dirty", "7"),
            ("Innodb_buffer_pool_pages_free", "8"),
            ("Innodb_buffer_pool_pages_total", "11"),
            ("Innodb_buffer_pool_pages_LRU_flushed", "13"),
            ("Innodb_rows_read", "8"),
            ("Performance_schema_users_lost", "9"),
            ("Slave_running", "OFF"),
            ("Ssl_version", ""),
            ("Uptime", "10"),
            ("validate_password.dictionary_file_words_count", "11"),
            ("wsrep_cluster_status", "Primary"),
            ("wsrep_local_state_uuid", "6c06e583-686f-11e6-b9e3-8336ad58138c"),
            ("wsrep_cluster_state_uuid", "6c06e583-686f-11e6-b9e3-8336ad58138c"),
            ("wsrep_provider_version", "3.16(r5c765eb)"),
            ("wsrep_evs_repl_latency", "0.000227664/0.00034135/0.000544298/6.03708e-05/212"),
        ]);
        for (name, labels, value) in [
            ("mysql_global_status_commands_total", &[("command", "alter_db")][..], 1.0),
            ("mysql_global_status_commands_total", &[("command", "select")], 3.0),
            ("mysql_global_status_connection_errors_total", &[("error", "internal")], 4.0),
            ("mysql_global_status_handlers_total", &[("handler", "commit")], 5.0),
            ("mysql_global_status_buffer_pool_pages", &[("state", "data")], 6.0),
            ("mysql_global_status_buffer_pool_dirty_pages", &[], 7.0),
            ("mysql_global_status_buffer_pool_pages", &[("state", "free")], 8.0),
            ("mysql_global_status_buffer_pool_page_changes_total", &[("operation", "lru_flushed")], 13.0),
            ("mysql_global_status_innodb_row_ops_total", &[("operation", "read")], 8.0),
            ("mysql_global_status_performance_schema_lost_total", &[("instrumentation", "users_lost")], 9.0),
            ("mysql_global_status_slave_running", &[], 0.0),
            ("mysql_global_status_uptime", &[], 10.0),
            ("mysql_global_status_validate_password_dictionary_file_words_count", &[], 11.0),
            ("mysql_global_status_wsrep_cluster_status", &[], 1.0),
            ("mysql_galera_evs_repl_latency_min_seconds", &[], 0.000_227_664),
            ("mysql_galera_evs_repl_latency_stdev", &[], 6.037_08e-5),
            ("mysql_galera_evs_repl_latency_sample_size", &[], 212.0),
        ] {
            assert_eq!(families.value(name, labels), Some(value), "{name} {labels:?}");
        }
        let text = families.text();
        assert!(text.contains("# TYPE mysql_global_status_uptime untyped\n"), "{text}");
        assert!(
            text.contains(
                "mysql_galera_status_info{wsrep_local_state_uuid=\"6c06e583-686f-11e6-b9e3-8336ad58138c\""
            ),
            "{text}"
        );
        for absent in ["ssl_version", "pages_total", "state=\"total\""] {
            assert!(!text.contains(absent), "{absent}");
        }
    }
}
