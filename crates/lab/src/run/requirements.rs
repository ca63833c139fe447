//! What must hold before anything runs: rights and devices, a host that is faster than the volumes, room, memory.

use std::collections::BTreeSet;

use ebbtide_device::host::{Calibration, HostError};
use ebbtide_load::Cancel;
use ebbtide_volume::{MIB, Nanos, parse_size};

use super::error::RunError;
use super::event::EventSink;
use super::home::Lab;
use super::prepared::{Need, fs_type, missing_bytes};
use super::proc;
use crate::experiment::{Arm, Experiment, PlannedArm, ServerRole};

/// Memory that the machine keeps for everything but the server.
const OTHER_MEMORY: u64 = 256 * MIB;
/// Host space that a trial takes besides its data and logs.
const OTHER_SPACE: u64 = 512 * MIB;
/// The redo log where no setting changes it.
const USUAL_REDO: u64 = 100 * MIB;

/// How the host compares with the experiment.
#[derive(Debug, Default)]
pub(crate) struct HostComparison {
    /// The host's figures, as labels and values; empty where it could not be measured.
    pub(crate) figures: Vec<(String, String)>,
    /// What every trial should carry as a note.
    pub(crate) notes: Vec<String>,
}

/// Refuses a machine, or a user, without what volumes and bounded servers need.
///
/// # Errors
/// All that is missing, each in a few words.
pub fn equipment(experiment: &Experiment) -> Result<(), Vec<String>> {
    let mut missing = ebbtide_device::host::missing_for_block_devices();
    if let Some(why) = ebbtide_mysql::missing_for_memory_limit() {
        missing.push(format!("memory cgroups (the server's memory cannot be limited: {why})"));
    }
    let tools = experiment.arms.iter().filter_map(|arm| fs_type(&arm.instance.fs).missing_tool());
    let tools: BTreeSet<String> = tools.map(|error| error.to_string()).collect();
    missing.extend(tools);
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

/// Refuses a machine that has less memory than an arm's server may take.
pub(crate) fn memory(experiment: &Experiment) -> Result<(), RunError> {
    let Some(available) = proc::available_memory() else { return Ok(()) };
    let takes = |arm: &Arm| arm.instance.memory_bytes * servers(arm) + OTHER_MEMORY;
    let largest = experiment.arms.iter().max_by_key(|arm| takes(arm));
    match largest {
        Some(arm) if takes(arm) > available => {
            Err(RunError::NoMemory { arm: arm.name.clone(), needed: takes(arm), available })
        }
        _ => Ok(()),
    }
}

/// Servers that run for an arm at once: a replica whose power is cut has its source running.
fn servers(arm: &Arm) -> u64 {
    let is_cut = arm.crash.as_ref().is_some_and(|crash| crash.role == ServerRole::Replica);
    arm.topology.servers() + u64::from(is_cut)
}

/// Refuses a disk that cannot take the data that are to be made, the largest trial, and `room` bytes besides.
pub(crate) fn space(lab: &Lab, arms: &[PlannedArm], needs: &[Need<'_>], room: u64) -> Result<(), RunError> {
    let home = lab.host.home();
    let Ok(free) = home.free_bytes() else { return Ok(()) };
    let needed = missing_bytes(lab, needs) + arms.iter().map(trial_bytes).max().unwrap_or(0) + room;
    if needed > free {
        return Err(RunError::NoSpace { dir: home.root().to_owned(), needed, free });
    }
    Ok(())
}

/// What a clone grows by at most: every page written once, and the redo log.
fn trial_bytes(planned: &PlannedArm) -> u64 {
    let arm = &planned.arm;
    let redo = arm.settings.get("redo_capacity").and_then(|text| parse_size(text).ok());
    let copy = planned.data_bytes / 4 * 5 + redo.unwrap_or(USUAL_REDO) + OTHER_SPACE;
    // A backup is one more copy, and what is restored of it another one.
    let copies = servers(arm) + if arm.backup.is_some() { 2 } else { 0 };
    copy * copies
}

/// Refuses a host that is slower than an arm's volumes, unless that is to be marked alone.
pub(crate) fn host(
    lab: &Lab,
    arms: &[&PlannedArm],
    over_limit: bool,
    cancel: &Cancel,
    events: EventSink<'_>,
) -> Result<HostComparison, RunError> {
    let file = lab.host.home().calibration_file();
    let known = Calibration::load(&file).filter(|known| known.block.is_some());
    let calibration = match known {
        Some(known) => known,
        None => match measure(lab, true, cancel, events) {
            Ok(calibration) => calibration,
            Err(error) => return proceed(cancel).map(|()| not_calibrated(&error)),
        },
    };
    proceed(cancel)?;
    let mut calibration = calibration;
    let mut exceeded = exceeded(&calibration, arms);
    // A moment in which the machine was busy must not refuse a run.
    if !exceeded.is_empty() && calibration.quick {
        calibration = match measure(lab, false, cancel, events) {
            Ok(calibration) => calibration,
            Err(error) => return proceed(cancel).map(|()| not_calibrated(&error)),
        };
        proceed(cancel)?;
        exceeded = self::exceeded(&calibration, arms);
    }
    if !exceeded.is_empty() && !over_limit {
        return Err(RunError::HostTooSlow(exceeded));
    }
    let notes = exceeded.into_iter().map(|text| format!("this host is slower than a volume: {text}"));
    Ok(HostComparison { figures: figures(&calibration), notes: notes.collect() })
}

fn proceed(cancel: &Cancel) -> Result<(), RunError> {
    if cancel.is_cancelled() { Err(RunError::Cancelled { done: 0, of: 0 }) } else { Ok(()) }
}

fn not_calibrated(error: &HostError) -> HostComparison {
    let note =
        format!("this host could not be calibrated ({error}): whether it carries the volumes is not known");
    HostComparison { figures: Vec::new(), notes: vec![note] }
}

fn measure(lab: &Lab, quick: bool, cancel: &Cancel, events: EventSink<'_>) -> Result<Calibration, HostError> {
    let span = if quick { "3 seconds" } else { "20 seconds" };
    events.preparing(format!("measuring what this host carries, for about {span}"));
    lab.host.calibrate_unless(&|| cancel.is_cancelled(), quick, &|text| events.preparing(text))
}

/// In what the volumes exceed the host, each figure once.
fn exceeded(calibration: &Calibration, arms: &[&PlannedArm]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let replicas = arms.iter().filter_map(|arm| arm.replica.as_deref());
    for arm in arms.iter().copied().chain(replicas) {
        for (role, volume) in &arm.volumes {
            let array = volume.array(Nanos::ZERO);
            let instance = arm.instance.as_ref().map(|instance| &instance.limits);
            let place = format!("{} volume {}", role.key(), volume.spec);
            for figure in calibration.exceeded_by(&array, instance, false) {
                let text = format!("{place}: {figure}");
                if !all.contains(&text) {
                    all.push(text);
                }
            }
        }
    }
    all
}

fn figures(calibration: &Calibration) -> Vec<(String, String)> {
    let Some(block) = &calibration.block else { return Vec::new() };
    let pacing = |report: &ebbtide_device::engine::PacingReport| {
        format!("{:.0} us median, {:.0} us p99", report.p50_ns as f64 / 1e3, report.p99_ns as f64 / 1e3)
    };
    let rows = [
        ("reads of 16 KiB, one at a time", format!("{:.0} IOPS", block.read_iops_depth_1)),
        ("reads of 16 KiB, 32 at a time", format!("{:.0} IOPS", block.read_iops_depth_32)),
        ("writes of 16 KiB, one at a time", format!("{:.0} IOPS", block.write_iops_depth_1)),
        ("writes of 16 KiB, 32 at a time", format!("{:.0} IOPS", block.write_iops_depth_32)),
        ("a lone read", format!("{:.0} us", block.read_latency_us)),
        ("a lone write", format!("{:.0} us", block.write_latency_us)),
        ("reads of 256 KiB", format!("{:.0} MiB/s", block.read_mib_s)),
        ("writes of 256 KiB", format!("{:.0} MiB/s", block.write_mib_s)),
        ("answers late, idle machine", pacing(&calibration.pacing_idle)),
        ("answers late, busy machine", pacing(&calibration.pacing_loaded)),
    ];
    rows.map(|(label, value)| (label.to_owned(), value)).into()
}
