//! Room for the load's connections: a server's defaults end at 151 of them, and at 16,382 prepared
//! statements over all of them.

use crate::experiment::{Arm, Experiment};

/// Connections besides the load's: the sampler, those of the batch job's end and of the one who looks.
const OTHERS: u32 = 16;
/// Servers' own `max_connections`.
const USUAL_CONNECTIONS: u32 = 151;
/// Servers' own `max_prepared_stmt_count`.
const USUAL_STATEMENTS: u32 = 16_382;
/// Statements that a connection prepares for each table at most: `read_write` has eleven.
const STATEMENTS: u32 = 12;
/// The most that servers take.
const MOST_STATEMENTS: u32 = 1_048_576;

/// Raises what an arm's load needs and its settings do not say.
pub(crate) fn admit(experiment: &mut Experiment) {
    let tables = experiment.data.tables;
    for arm in &mut experiment.arms {
        let batch = arm.batch.as_ref().map_or(0, |batch| batch.connections);
        let connections = arm.load.connections.saturating_add(batch).saturating_add(OTHERS);
        raise(arm, "max_connections", connections, USUAL_CONNECTIONS);
        let statements = arm.load.connections.saturating_mul(tables).saturating_mul(STATEMENTS);
        raise(arm, "max_prepared_stmt_count", statements.min(MOST_STATEMENTS), USUAL_STATEMENTS);
    }
}

fn raise(arm: &mut Arm, name: &str, needed: u32, usual: u32) {
    if needed > usual && arm.settings.get(name).is_none() {
        arm.settings.set(name, &needed.to_string()).expect("both settings are counts that every server has");
    }
}
