//! Runs the volumes of a plan, each group of them on a thread of its own.

use std::thread;

use ebbtide_forecast::simulation::{SimulatedRun, SimulationPlan, VolumeGroup};

use super::plan::refusal;
use super::progress::Progress;
use super::trace;

/// Runs every volume of the plan.
///
/// # Errors
/// A job that does not fit a volume, or a run that would never end.
pub(super) fn all(plan: &SimulationPlan) -> anyhow::Result<Vec<SimulatedRun>> {
    let progress = Progress::new(plan.volumes.len(), plan.ends);
    let results: Vec<anyhow::Result<Vec<SimulatedRun>>> = thread::scope(|scope| {
        let progress = &progress;
        let started: Vec<_> = VolumeGroup::all(plan)
            .into_iter()
            .map(|group| scope.spawn(move || run_group(plan, group, progress)))
            .collect();
        let joined = started.into_iter().map(|group| group.join());
        joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    drop(progress);
    let mut runs = Vec::new();
    for result in results {
        runs.append(&mut result?);
    }
    Ok(runs)
}

fn run_group(
    plan: &SimulationPlan,
    group: VolumeGroup,
    progress: &Progress,
) -> anyhow::Result<Vec<SimulatedRun>> {
    let reached = |volume, time| progress.reached(volume, time);
    match &plan.trace {
        None => group.run_jobs(plan, &reached).map_err(|error| refusal(&error).into()),
        Some(trace) => trace::replayed(plan, trace, group, &reached),
    }
}
