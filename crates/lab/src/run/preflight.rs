//! What is made sure of before the first trial or cut of either lab: an open lab with room for the plan, a server that
//! takes its settings, and a host whose figures are known.

use std::path::Path;
use std::time::Instant;

use ebbtide_device::clock::MonotonicClock;
use ebbtide_device::host::local_round_trip;
use ebbtide_load::Cancel;

use super::error::RunError;
use super::event::{Event, EventSink};
use super::home::Lab;
use super::server_check::{self, ServerCheckContext};
use super::{Plan, pace, prepared, proc, requirements};
use crate::experiment::{Arm, PlannedArm, check_pace};
use crate::record::HostFacts;

/// What a run requires of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Requirements<'a> {
    /// The home: the lab keeps its own below it.
    pub home: &'a Path,
    /// Run although the host is slower than a volume.
    pub over_limit: bool,
    /// Room on the host's disk besides the data and the largest trial, bytes.
    pub room: u64,
    /// The arms whose volumes the host must be faster than.
    pub counts: fn(&Arm) -> bool,
}

/// A run that may begin.
#[derive(Debug)]
pub struct Preflight {
    /// The lab, locked.
    pub lab: Lab,
    /// What is run, without the arms that the server refused and that may be left out.
    pub plan: Plan,
    /// The machine, with its calibration and its local round trip.
    pub host: HostFacts,
    /// What every trial should carry.
    pub notes: Vec<String>,
}

/// Refuses what cannot run, leaves out what is optional, and measures the host.
///
/// # Errors
/// What forbids the run.
pub fn check(
    mut plan: Plan,
    requirements: &Requirements<'_>,
    cancel: &Cancel,
    events: EventSink<'_>,
) -> Result<Preflight, RunError> {
    let began = Instant::now();
    let note = |text: &String| events.send(Event::Noted { text: text.clone() });
    plan.left_out().iter().for_each(note);
    let experiment = plan.experiment();
    requirements::equipment(&experiment).map_err(RunError::Missing)?;
    requirements::memory(&experiment)?;
    let lab = Lab::open(requirements.home, cancel, events)?;
    requirements::space(&lab, plan.arms(), &prepared::needs(plan.arms()), requirements.room)?;
    let refusals = server_check::hold(ServerCheckContext { lab: &lab, cancel, events }, &plan)?;
    plan.leave_out(|arm| refusals.get(&arm.name).cloned())?.iter().for_each(note);
    let counting: Vec<&PlannedArm> =
        plan.arms().iter().filter(|planned| (requirements.counts)(&planned.arm)).collect();
    let over_limit = requirements.over_limit || experiment.over_limit;
    let compared = requirements::host(&lab, &counting, over_limit, cancel, events)?;
    let known = prepared::known_in(&lab);
    pace::note(&lab, check_pace(&experiment, &known, began.elapsed().as_secs_f64()));
    let home = std::path::absolute(requirements.home).unwrap_or_else(|_| requirements.home.to_owned());
    let host = HostFacts {
        calibration: compared.figures,
        local_round_trip_us: round_trip_us(events),
        home: home.display().to_string(),
        ..proc::host_facts()
    };
    Ok(Preflight { lab, plan, host, notes: compared.notes })
}

/// The host's local round trip, us; None, with a note, where it cannot be measured. Nothing that is measured needs it.
fn round_trip_us(events: EventSink<'_>) -> Option<f64> {
    match local_round_trip(&MonotonicClock::new()) {
        Ok(took) => Some(took.0 as f64 / 1e3),
        Err(error) => {
            let text = format!("the local round trip of this host could not be measured: {error}");
            events.send(Event::Noted { text });
            None
        }
    }
}
