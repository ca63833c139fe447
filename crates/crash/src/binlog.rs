//! Whether an arm's server has a binary log, and whether that names transactions.

use ebbtide_lab::experiment::{Arm, Experiment};
use ebbtide_mysql::Binary;

use super::replication_part;

/// MySQL's setting that puts statements into a binary log of rows.
pub(super) const STATEMENTS: &str = "raw.binlog_rows_query_log_events";

/// Has MySQL write each statement into the binary log next to its rows, as MariaDB does by itself: without it
/// it would be unknown whose transaction the rows are of.
pub(super) fn name_transactions(experiment: &mut Experiment, binary: &Binary) {
    if binary.is_mariadb() {
        return;
    }
    for arm in &mut experiment.arms {
        // It writes one unless it is configured not to: naming it has it compared.
        if arm.settings.get("log_bin").is_none() {
            arm.settings.set("log_bin", "on").expect("every server has it");
        }
        let logs = arm.settings.get("log_bin").is_some_and(|value| value != "off");
        if logs && arm.settings.get(STATEMENTS).is_none() {
            arm.settings.set(STATEMENTS, "ON").expect("a raw setting is anything");
        }
    }
}

/// Whether an arm's server writes its transactions into a binary log: a replica does so where it is configured to, and one
/// of MySQL by default.
pub(super) fn has_binlog(arm: &Arm, options: &[String], is_mariadb: bool) -> bool {
    let logs = options.iter().any(|line| line.starts_with("log_bin="));
    if !replication_part::is_replica(arm.crash.as_ref()) {
        return logs;
    }
    let updates = arm.settings.get("log_slave_updates").map(str::to_ascii_lowercase);
    logs && updates.map_or(!is_mariadb, |value| ["on", "1", "true"].contains(&value.as_str()))
}

#[cfg(test)]
mod tests {
    use ebbtide_lab::experiment::{CrashPlan, Overrides, ServerRole, parse};

    use super::*;

    #[test]
    fn a_replica_of_mysql_logs_what_it_applies_unless_it_is_told_not_to_and_one_of_mariadb_where_it_is_told_to()
     {
        let has = |role, setting: &str, is_mariadb| {
            let text = format!("[crash]\ncuts = 1\n[settings]\nlog_bin = true\n{setting}");
            let mut arm = parse("t", "t.toml", &text, &Overrides::default()).unwrap().arms.remove(0);
            arm.crash = Some(CrashPlan { role, ..CrashPlan::default() });
            has_binlog(&arm, &["log_bin=binlog".to_owned()], is_mariadb)
        };
        let replica = ServerRole::Replica;
        assert!(has(ServerRole::Primary, "", true));
        assert_eq!((has(replica, "", true), has(replica, "", false)), (false, true));
        assert!(has(replica, "log_slave_updates = true\n", true));
        assert!(!has(replica, "log_slave_updates = false\n", false));
    }
}
