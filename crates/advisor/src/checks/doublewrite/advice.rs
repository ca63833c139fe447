//! What to do now. OFF is advised only where a gain is shown and every condition is known to be met.

use serde::Serialize;

use super::conditions::{Condition, Standing, open};
use super::verdict::Verdict;

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The doublewrite buffer is on, and stays on.
    LeaveOn,
    /// It may be turned off: a gain is shown, and every condition is known to be met.
    TurnOff,
    /// It is off, and may stay off: every condition is known to be met.
    LeaveOff,
    /// It is off where a condition is known not to be met.
    TurnOn,
    /// It is off, and a condition is not known to be met.
    FindOut,
}

/// What to do now, and the same in sentences for people.
pub(super) fn advise(verdict: Verdict, conditions: &[Condition]) -> (Action, String) {
    let (open, all) = (open(conditions), conditions.len());
    let fails = conditions.iter().any(|one| one.standing.fails());
    let broken = conditions.iter().any(|one| one.standing == Standing::Broken);
    match verdict {
        Verdict::AlreadyOff if fails => {
            let advice = "Turn the doublewrite buffer on: set innodb_doublewrite = ON and restart the server. \
                          It is off where a power cut can damage tables.";
            (Action::TurnOn, advice.to_owned())
        }
        Verdict::AlreadyOff if open > 0 => {
            let advice = format!(
                "Find out whether every safety condition holds: {open} of {all} are not known to. Turn the doublewrite \
                 buffer on where one does not."
            );
            (Action::FindOut, advice)
        }
        Verdict::AlreadyOff => {
            let advice = "Leave the doublewrite buffer off: every safety condition is known to hold.";
            (Action::LeaveOff, advice.to_owned())
        }
        Verdict::Yes if open == 0 => {
            let advice = "Measure gain and risk first: ebbtide crash optimized-writes. Then set innodb_doublewrite = OFF \
                          and restart the server. On RDS, choose an instance class with Optimized Writes instead.";
            (Action::TurnOff, advice.to_owned())
        }
        Verdict::Yes => {
            let advice = format!(
                "Leave the doublewrite buffer on for now: {open} of {all} safety conditions are not known to hold."
            );
            (Action::LeaveOn, advice)
        }
        Verdict::No if broken => {
            let advice = "Leave the doublewrite buffer on: without it, a power cut can damage tables.";
            (Action::LeaveOn, advice.to_owned())
        }
        Verdict::No => {
            (Action::LeaveOn, "Leave the doublewrite buffer on: there is nothing to gain.".to_owned())
        }
        Verdict::Perhaps => {
            (Action::LeaveOn, "Leave the doublewrite buffer on: no gain is shown.".to_owned())
        }
        Verdict::NotKnown => {
            (Action::LeaveOn, "Leave the doublewrite buffer on: nothing can be said yet.".to_owned())
        }
    }
}
