//! What to know before believing a crash run.

use ebbtide_lab::experiment::Moment;
use ebbtide_lab::page::text as print;
use ebbtide_lab::summary::Note;

use super::model::{ArmSummary, Summary};
use super::sentences;
use crate::record::{CrashRun, Stint};

/// What the tester is to reach, verified cuts a minute.
pub(crate) const PACE: f64 = 60.0;

/// A moment that was met in less than this share of the cuts that looked for it is reported.
const SELDOM: f64 = 0.5;

pub(super) fn notes(run: &CrashRun, summary: &Summary) -> Vec<Note> {
    // A canary that was caught has done what it was there for, with however few cuts.
    let canaries = summary.canaries.iter().filter(|canary| canary.caught.is_none());
    let canaries = canaries.map(|canary| &canary.arm);
    let mut notes = Vec::new();
    for arm in summary.arms.iter().chain(canaries) {
        let mut note = |text: String| notes.push(Note { arm: Some(arm.name.clone()), text });
        short_of(arm).into_iter().for_each(&mut note);
        unmet(arm).into_iter().for_each(&mut note);
        started_twice(run, arm).into_iter().for_each(&mut note);
    }
    // Canaries come first in the run, and last in what is told.
    let is_canary = |stint: &&Stint| summary.canaries.iter().any(|canary| canary.arm.name == stint.arm);
    let (of_canaries, of_arms): (Vec<_>, Vec<_>) = run.stints.iter().partition(is_canary);
    for stint in of_arms.into_iter().chain(of_canaries) {
        let mut note = |text: String| notes.push(Note { arm: Some(stint.arm.clone()), text });
        let number = stint.repeat + 1;
        if let Some(failure) = &stint.failed {
            note(format!("Stint {number} ended early: {}.", failure.why.trim_end_matches('.')));
        }
        if let Some(why) = stint.throughput.as_ref().and_then(|measured| measured.disqualified.as_ref()) {
            note(format!("Stint {number}: its throughput is not counted: {}.", why.trim_end_matches('.')));
        }
        stint.notes.iter().for_each(|text| note(format!("Stint {number}: {text}")));
    }
    notes
}

fn short_of(arm: &ArmSummary) -> Option<String> {
    let planned = sentences::ends(u64::from(arm.planned), arm.end);
    (arm.cuts < u64::from(arm.planned)).then(|| match arm.cuts {
        0 => format!("None of {planned} was made."),
        made => format!("Only {} of {planned} were made.", print::whole(made as f64)),
    })
}

fn unmet(arm: &ArmSummary) -> Option<String> {
    let seldom = arm.moments.iter().filter(|one| {
        one.moment != Moment::Random && one.possible > 0 && (one.met as f64) < SELDOM * one.possible as f64
    });
    let seldom: Vec<String> = seldom
        .map(|one| format!("{} ({} of {})", sentences::moment(one.moment), one.met, one.possible))
        .collect();
    (!seldom.is_empty()).then(|| format!("Moments that were seldom met: {}.", print::list(&seldom)))
}

/// A crash of the server's own code that a second start mended is no damage, and no quiet recovery either.
fn started_twice(run: &CrashRun, arm: &ArmSummary) -> Option<String> {
    let recovered = run.cuts.iter().filter(|cut| cut.arm == arm.name).filter_map(|cut| cut.recovery.as_ref());
    let failed: Vec<_> = recovered.filter_map(|recovery| recovery.failed_start.as_ref()).collect();
    let first = failed.first()?;
    Some(format!(
        "After {} the server crashed at its first start, and recovered at a second: {}.",
        sentences::ends(failed.len() as u64, arm.end),
        first.why.trim_end_matches('.')
    ))
}
