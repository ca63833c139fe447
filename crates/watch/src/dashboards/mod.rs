//! Rule files for Prometheus and a dashboard for Grafana, made of the table of rules. Pure: texts come out.
//!
//! - [`rule_file`] is a rule file: one alert for each row of [`RULES`](crate::alarm::RULES), with its hysteresis (`for` and
//!   `keep_firing_for`, from Prometheus 2.42 on), its reason and its fix.
//! - [`dashboard`] is a dashboard: the rows of [`ROWS`], with the thresholds of the rules as lines.
//!
//! Names are those of mysqld_exporter, node_exporter and our own: a test knows all of them.

mod grafana;
mod panel;
mod rule_file;

pub use grafana::dashboard;
pub use panel::{Panel, PanelQuery, PanelRow, PanelUnit, ROWS};
pub use rule_file::{alert_name, rule_file};

/// All files, by their names.
#[must_use]
pub fn files() -> [(&'static str, String); 2] {
    [("ebbtide.rules.yml", rule_file()), ("ebbtide.json", dashboard())]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::alarm::{ALARM_FAMILIES, RULES, SubjectKind};
    use crate::names::FAMILIES;

    /// What the exporters of others have, as far as queries use it: mysqld_exporter 0.20 and node_exporter 1.12, `node_ebs_*` of its
    /// pull request 3695.
    const OTHERS: &[&str] = &[
        "mysql_up",
        "mysql_global_status_uptime",
        "mysql_global_status_innodb_log_waits",
        "mysql_global_status_innodb_os_log_written",
        "mysql_global_status_innodb_buffer_pool_wait_free",
        "mysql_global_status_innodb_master_thread_active_loops",
        "mysql_global_status_innodb_master_thread_idle_loops",
        "mysql_info_schema_innodb_metrics_server_innodb_checkpoint_usec_total",
        "mysql_info_schema_innodb_metrics_server_innodb_ibuf_merge_usec_total",
        "mysql_info_schema_innodb_metrics_server_innodb_log_flush_usec_total",
        "mysql_perf_schema_file_events_seconds_total",
        "mysql_slave_status_replica_io_running",
        "mysql_slave_status_replica_sql_running",
        "mysql_slave_status_seconds_behind_master",
        "mysql_slave_status_seconds_behind_source",
        "mysql_slave_status_slave_io_running",
        "mysql_slave_status_slave_sql_running",
        "mysql_slave_status_sql_delay",
        "mysql_slave_status_relay_log_space",
        "node_disk_read_time_seconds_total",
        "node_disk_reads_completed_total",
        "node_disk_write_time_seconds_total",
        "node_disk_writes_completed_total",
        "node_ebs_ec2_exceeded_iops_seconds_total",
        "node_ebs_ec2_exceeded_tp_seconds_total",
        "node_ebs_exceeded_iops_seconds_total",
        "node_ebs_exceeded_tp_seconds_total",
        "node_filesystem_avail_bytes",
        "node_filesystem_size_bytes",
        "node_pressure_io_stalled_seconds_total",
        "node_pressure_io_waiting_seconds_total",
    ];

    /// All expressions of both files, as they are before a dashboard fills its variables in.
    fn expressions() -> Vec<String> {
        let rules = RULES.iter().map(|rule| rule.expression());
        let panels = ROWS.iter().flat_map(|row| row.panels);
        let queries = panels.flat_map(|panel| panel.queries).map(|query| query.expression.to_owned());
        rules.chain(queries).collect()
    }

    fn words(expression: &str) -> impl Iterator<Item = &str> {
        expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
    }

    #[test]
    fn queries_name_only_what_there_is() {
        let ours = FAMILIES.iter().chain(ALARM_FAMILIES).map(|family| family.name);
        let known: BTreeSet<&str> = ours.chain(OTHERS.iter().copied()).collect();
        for expression in expressions() {
            let named = words(&expression)
                .filter(|word| ["mysql_", "node_", "ebbtide_"].iter().any(|prefix| word.starts_with(prefix)));
            for name in named {
                let of_a_histogram =
                    name.strip_suffix("_bucket").is_some_and(|family| known.contains(family));
                assert!(known.contains(name) || of_a_histogram, "{name} of {expression}");
            }
        }
    }

    #[test]
    fn rules_of_volumes_have_values_also_for_devices_that_serve_knows_nothing_of() {
        for rule in RULES.iter().filter(|rule| rule.subject == SubjectKind::Volume) {
            let names: BTreeSet<&str> = words(rule.query.value).collect();
            let is_exported = ALARM_FAMILIES.iter().any(|family| names.contains(family.name))
                || names.iter().any(|name| name.starts_with("node_ebs_"));
            assert!(is_exported, "{}: {}", rule.name, rule.query.value);
        }
    }

    #[test]
    fn brackets_and_quotes_are_closed() {
        for expression in expressions() {
            let mut open = Vec::new();
            let mut is_quoted = false;
            for c in expression.chars() {
                match c {
                    '"' => is_quoted = !is_quoted,
                    '(' | '[' | '{' if !is_quoted => open.push(c),
                    ')' if !is_quoted => assert_eq!(open.pop(), Some('('), "{expression}"),
                    ']' if !is_quoted => assert_eq!(open.pop(), Some('['), "{expression}"),
                    '}' if !is_quoted => assert_eq!(open.pop(), Some('{'), "{expression}"),
                    _ => {}
                }
            }
            assert!(open.is_empty() && !is_quoted, "{expression}");
        }
    }

    #[test]
    fn each_rule_with_a_value_of_its_own_has_a_panel() {
        let drawn: BTreeSet<_> =
            ROWS.iter().flat_map(|row| row.panels).flat_map(|panel| panel.rules).copied().collect();
        for rule in RULES {
            let is_a_word = rule.query.value.contains("ebbtide_alarm_state");
            assert!(is_a_word || drawn.contains(&rule.id), "{} is in no panel", rule.name);
        }
    }
}
