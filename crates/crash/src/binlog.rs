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

/// Whether an arm's server writes its transactions into a binary log: a replica does so where it is configured to.
pub(super) fn has_binlog(arm: &Arm, options: &[String]) -> bool {
    let on = |name: &str| {
        let value = arm.settings.get(name).unwrap_or("off").to_ascii_lowercase();
        ["on", "1", "true"].contains(&value.as_str())
    };
    let logs = options.iter().any(|line| line.starts_with("log_bin="));
    logs && (!replication_part::is_replica(arm.crash.as_ref()) || on("log_slave_updates"))
}
