//! The parts of an arm's servers in replication.

use ebbtide_lab::experiment::{CrashPlan, ServerRole};
use ebbtide_lab::run::topology;
use ebbtide_mysql::replication::ReplicationPart;

/// Whether an arm is about a replica.
pub(super) fn is_replica(plan: Option<&CrashPlan>) -> bool {
    plan.is_some_and(|plan| plan.role == ServerRole::Replica)
}

/// The part of an arm's server under its load; none for a primary, which nobody follows.
pub(super) fn of_server(plan: Option<&CrashPlan>) -> Option<ReplicationPart> {
    of_replica(plan, 1)
}

/// The part of the server that recovers alongside it: a source talks to one server of each number at a time.
pub(super) fn of_checker(plan: Option<&CrashPlan>, number: usize) -> Option<ReplicationPart> {
    of_replica(plan, 2 + u32::try_from(number).expect("64 checkers at most"))
}

fn of_replica(plan: Option<&CrashPlan>, number: u32) -> Option<ReplicationPart> {
    let plan = plan.filter(|plan| plan.role == ServerRole::Replica)?;
    Some(topology::replica_part(number, plan.replication))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_servers_of_a_source_have_the_same_number() {
        let plan = CrashPlan { role: ServerRole::Replica, ..CrashPlan::default() };
        let checkers = (0..64).map(|number| of_checker(Some(&plan), number).unwrap().server_id);
        let source = topology::source_part(plan.replication).server_id;
        let mut all: Vec<u32> =
            [source, of_server(Some(&plan)).unwrap().server_id].into_iter().chain(checkers).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 66);
        assert_eq!(of_server(Some(&CrashPlan::default())), None);
    }
}
