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

/// Raises what the loads need and the settings do not set: for all arms alike, as the largest load needs it. Servers
/// size more than their connections by it, and arms that differ in their connections should differ in nothing else.
pub(crate) fn admit(experiment: &mut Experiment) {
    let tables = experiment.data.tables;
    let connections = |arm: &Arm| {
        let batch = arm.batch.as_ref().map_or(0, |batch| batch.connections);
        arm.load.connections.saturating_add(batch).saturating_add(OTHERS)
    };
    let statements = |arm: &Arm| arm.load.connections.saturating_mul(tables).saturating_mul(STATEMENTS);
    let connections = experiment.arms.iter().map(connections).max().unwrap_or(0);
    let statements = experiment.arms.iter().map(statements).max().unwrap_or(0).min(MOST_STATEMENTS);
    for arm in &mut experiment.arms {
        raise(arm, "max_connections", connections, USUAL_CONNECTIONS);
        raise(arm, "max_prepared_stmt_count", statements, USUAL_STATEMENTS);
    }
}

fn raise(arm: &mut Arm, name: &str, needed: u32, usual: u32) {
    if needed > usual && arm.settings.get(name).is_none() {
        arm.settings.set(name, &needed.to_string()).expect("both settings are counts that every server has");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{self, Overrides};
    use crate::summary::curves;

    #[test]
    fn all_arms_get_the_room_of_the_largest_load_and_stay_curves() {
        for quick in [false, true] {
            let overrides = Overrides { quick, ..Overrides::default() };
            let mut experiment = experiment::load("optimized-writes-gain", &overrides).unwrap();
            let found = curves(&experiment).unwrap();
            admit(&mut experiment);
            let most = found.counts.last().unwrap() + OTHERS;
            for arm in &experiment.arms {
                assert_eq!(
                    arm.settings.get("max_connections"),
                    Some(most.to_string().as_str()),
                    "{}",
                    arm.name
                );
            }
            assert_eq!(curves(&experiment), Some(found), "what is run are curves too");
        }
    }

    #[test]
    fn what_an_arm_sets_itself_stays() {
        let overrides = Overrides {
            set: vec![("settings.max_connections".into(), "5000".into())],
            ..Overrides::default()
        };
        let mut experiment = experiment::load("optimized-writes-gain", &overrides).unwrap();
        admit(&mut experiment);
        assert!(experiment.arms.iter().all(|arm| arm.settings.get("max_connections") == Some("5000")));
    }
}
