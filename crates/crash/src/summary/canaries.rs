//! Whether the tester saw the damage that was put before it.

use ebbtide_lab::experiment::{Arm, Canary, ServerRole};

use super::model::CanarySummary;
use super::{arms, canary_of, has, sentences};
use crate::record::{CrashRun, Cut, VerdictKind};

/// The canaries that every run needs: each proves another part of the tester. One with replicas needs a further one.
const REQUIRED: [Canary; 3] = [Canary::AnswersEarly, Canary::IgnoresFlushes, Canary::TornPages];

/// Whether a cut shows the damage that a canary is there for: this ends it.
///
/// A cache that ignores flushes may lose so much that no server starts, which leaves nobody to count the lost
/// commits; that these are seen is proven by the volume that answers early, whose files stay whole.
#[must_use]
pub fn catches(canary: Canary, cut: &Cut) -> bool {
    match canary {
        Canary::AnswersEarly => has(cut, VerdictKind::LostCommits),
        Canary::IgnoresFlushes => has(cut, VerdictKind::LostCommits) || has(cut, VerdictKind::Corrupt),
        Canary::TornPages => has(cut, VerdictKind::Corrupt),
        Canary::StalePosition => has(cut, VerdictKind::ReplicationBroken),
    }
}

pub(super) fn canaries(run: &CrashRun, arms: &[(usize, &Arm)]) -> Vec<CanarySummary> {
    let summed_up = arms.iter().filter_map(|(index, arm)| {
        let canary = canary_of(arm)?;
        let mut cuts: Vec<&Cut> = run.cuts.iter().filter(|cut| cut.arm == arm.name).collect();
        cuts.sort_by_key(|cut| cut.number);
        let first = cuts.iter().position(|cut| catches(canary, cut));
        Some(CanarySummary {
            canary,
            caught: first.and_then(|place| u64::try_from(place + 1).ok()),
            arm: arms::arm(run, *index, arm),
        })
    });
    summed_up.collect()
}

/// Why nothing that the run found may be believed; empty where it may.
pub(super) fn void(run: &CrashRun, canaries: &[CanarySummary]) -> Vec<String> {
    let replicas = run
        .experiment
        .arms
        .iter()
        .any(|arm| arm.crash.as_ref().is_some_and(|crash| crash.role == ServerRole::Replica));
    let required = REQUIRED.iter().chain(replicas.then_some(&Canary::StalePosition));
    let missing = required.filter(|wanted| canaries.iter().all(|one| one.canary != **wanted));
    let mut reasons: Vec<String> = missing
        .map(|canary| format!("no arm proves that the tester sees {}", sentences::proves(*canary)))
        .collect();
    for canary in canaries.iter().filter(|canary| canary.caught.is_none()) {
        let arm = &canary.arm;
        let proves = sentences::proves(canary.canary);
        let failure = run.stints.iter().find(|stint| stint.arm == arm.name && stint.failed.is_some());
        let failure = failure.and_then(|stint| stint.failed.as_ref());
        reasons.push(match (arm.cuts, failure) {
            (0, Some(failure)) => format!(
                "the arm '{}' never ran ({}): nothing proves that the tester sees {proves}",
                arm.name, failure.why
            ),
            (0, None) => {
                format!("the arm '{}' never ran: nothing proves that the tester sees {proves}", arm.name)
            }
            (cuts, _) => format!(
                "the arm '{}' was not caught in {}: the tester did not see {proves}",
                arm.name,
                sentences::ends(cuts, arm.end)
            ),
        });
    }
    reasons
}
