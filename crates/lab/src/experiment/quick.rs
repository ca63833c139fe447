//! The short form of an experiment whose file has no `[quick]`: the same arms, in less time.

use super::set_option::{self, ArmChange};
use super::tree::{Node, WrittenAt};
use super::{Arm, Experiment};

/// Trials of each arm at most: two give an interval.
const REPEATS: u32 = 2;
/// Time measured in each trial at most, unless a batch job needs more, s.
const MEASURE_S: u32 = 20;
/// Time that is measured while a batch job runs, at least, s.
const WITH_BATCH_S: u32 = 10;
/// Time that is measured from the begin of a backup on, at least, s.
const WITH_BACKUP_S: u32 = 30;
/// The load on multiplied limits at most, s.
const LEAD_IN_S: u32 = 5;
/// The load on the volumes' own limits before the measurement at most, s.
const SETTLE_S: u32 = 2;
/// Cuts of each arm at most.
const CUTS: u32 = 20;
/// Time for which the throughput is measured before cuts at most, s.
const MEASURE_BEFORE_CUTS_S: u32 = 10;

/// What the short form changes. It goes before what the command line gives, which wins.
pub(super) fn changes(full: &Experiment) -> Vec<ArmChange> {
    let repeats = full.trial.repeats.min(if full.is_cut() { 1 } else { REPEATS });
    let of_all = set_option::of_all("trial", "repeats", patch_of(&repeats.to_string()));
    std::iter::once(of_all).chain(full.arms.iter().flat_map(of_arm)).collect()
}

/// What it changes in one arm.
fn of_arm(arm: &Arm) -> Vec<ArmChange> {
    let most = if arm.crash.is_some() {
        MEASURE_BEFORE_CUTS_S
    } else {
        MEASURE_S.max(batch_s(arm)).max(backup_s(arm))
    };
    let seconds = |of: u32| format!("{of}s");
    let mut all = vec![
        ("trial", "measure", seconds(arm.measure_s.min(most))),
        ("warmup", "lead_in", seconds(arm.warmup.lead_in_s.min(LEAD_IN_S))),
        ("warmup", "settle", seconds(arm.warmup.settle_s.min(SETTLE_S))),
    ];
    all.extend(arm.crash.as_ref().map(|crash| ("crash", "cuts", crash.cuts.min(CUTS).to_string())));
    let change =
        |(section, key, value): (_, _, String)| set_option::of_arm(&arm.name, section, key, patch_of(&value));
    all.into_iter().map(change).collect()
}

/// How long a trial has to be measured so that its batch job has run for a while and left; 0 without one.
fn batch_s(arm: &Arm) -> u32 {
    arm.batch.as_ref().map_or(0, |batch| batch.end_s.unwrap_or(batch.start_s) + WITH_BATCH_S)
}

/// How long a trial has to be measured so that its backup has time; 0 without one.
fn backup_s(arm: &Arm) -> u32 {
    arm.backup.as_ref().map_or(0, |backup| backup.start_s + WITH_BACKUP_S)
}

fn patch_of(value: &str) -> Node {
    Node::of_option(value, WrittenAt::option("--quick"))
}

/// What sets the short form of an experiment apart from the full one, a few words for each change.
pub(super) fn differences(full: &Experiment, quick: &Experiment) -> Vec<String> {
    let mut changes = Vec::new();
    let mut note = |what: &str, before: u32, now: u32| {
        if before != now {
            changes.push(format!("{what} {now} instead of {before}"));
        }
    };
    let most = |of: &Experiment, figure: fn(&Arm) -> u32| of.arms.iter().map(figure).max().unwrap_or(0);
    let cuts = |arm: &Arm| arm.crash.as_ref().map_or(0, |crash| crash.cuts);
    let what = if most(full, cuts) > 0 { "stints of each arm:" } else { "trials of each arm:" };
    note(what, full.trial.repeats, quick.trial.repeats);
    let mut note_most = |what, figure| note(what, most(full, figure), most(quick, figure));
    note_most("cuts of each arm: at most", cuts);
    note_most("seconds measured:", |arm| arm.measure_s);
    note_most("seconds of lead-in:", |arm| arm.warmup.lead_in_s);
    note_most("seconds to settle:", |arm| arm.warmup.settle_s);
    changes
}
