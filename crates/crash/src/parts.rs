//! The parts of servers in replication, and their numbers.

use ebbtide_lab::experiment::{CrashPlan, ServerRole};
use ebbtide_mysql::replication::Part;

/// The source that a replica follows.
pub(super) const SOURCE: Part = Part { server_id: 1, replica: false };
/// The number of the arm's own server.
const REPLICA_ID: u32 = 2;
/// The number of the first checker's server; the others follow it.
const FIRST_CHECKER_ID: u32 = 3;

/// Whether an arm is about a replica.
pub(super) fn is_replica(plan: Option<&CrashPlan>) -> bool {
    plan.is_some_and(|plan| plan.role == ServerRole::Replica)
}

/// The part of an arm's server under its load; none for a primary, which nobody follows.
pub(super) fn part(plan: Option<&CrashPlan>) -> Option<Part> {
    is_replica(plan).then_some(Part { server_id: REPLICA_ID, replica: true })
}

/// The part of the server that recovers beside it: a source talks to one server of each number at a time.
pub(super) fn part_of_checker(plan: Option<&CrashPlan>, number: usize) -> Option<Part> {
    let server_id = FIRST_CHECKER_ID + u32::try_from(number).expect("64 checkers at most");
    part(plan).map(|part| Part { server_id, ..part })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_servers_of_a_source_have_the_same_number() {
        let plan = CrashPlan { role: ServerRole::Replica, ..CrashPlan::default() };
        let checkers = (0..64).map(|number| part_of_checker(Some(&plan), number).unwrap().server_id);
        let mut all: Vec<u32> =
            [SOURCE.server_id, part(Some(&plan)).unwrap().server_id].into_iter().chain(checkers).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 66);
        assert_eq!(part(Some(&CrashPlan::default())), None);
    }
}
