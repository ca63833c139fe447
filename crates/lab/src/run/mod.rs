//! Running an experiment: data prepared once, volumes cloned from it for every trial, a real server
//! on them, its load measured second by second, and nothing left behind.
//!
//! [`plan()`] decides what is run, and [`run`] is the whole of running it. `home` holds the lab's lock and clears what a
//! killed run left, `requirements` refuses what the machine cannot carry, `server_check` what the server does not take
//! (`preflight` has both labs ask them), `prepared` makes the data, `schedule` decides the order, and `trial` runs one
//! trial: an `arm_server` on its `volume`s, and those of its `topology` that follow it. `statements` reads the tables, `sampler` samples, `batch` joins, `backup` copies, and `verdict` decides
//! whether to believe it. `pace` remembers how long all of it took. `abandon` gives volumes up when the user ends the run.

pub mod error;
pub mod event;

pub mod arm_server;
pub mod home;
mod plan;
pub mod preflight;
pub mod prepared;
pub mod requirements;
pub mod schedule;
pub(crate) mod server_check;
pub mod topology;
mod trial;

mod abandon;
mod backup;
mod batch;
pub(crate) mod connections;
mod lag;
pub mod pace;
pub mod proc;
mod promotion;
pub mod sampler;
pub(crate) mod statements;
pub mod verdict;
pub mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;
use parking_lot::Mutex;

pub use error::{RunError, StepError};
pub use event::{Event, Phase, Progress, Tick};
pub use plan::{Plan, plan, plan_with};
pub use prepared::known;
pub use prepared::{Prepared, delete as delete_prepared, list as list_prepared};

use crate::experiment::{self, Arm, ArmError, ArmPrograms, Experiment, ExperimentError, PlannedArm};
use crate::record::{LabRun, Outcome, ProgramFacts, ServerFacts, Trial};
use crate::results::{Earlier, ResultsDatabase, ResultsError};
use crate::summary;

use event::EventSink;
use home::Lab;
use preflight::{Preflight, Requirements};
use prepared::Maker;
use schedule::{Eta, Slot};
use trial::TrialContext;

/// Where and with what an experiment runs.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The home: the lab keeps its own below it, in `lab`.
    pub home: PathBuf,
    /// Where the results go; made where it is missing.
    pub out: PathBuf,
    /// Go on with a run whose results are in [`Self::out`]: what it has measured is not run again.
    pub resume: bool,
    /// What the catalogue of the plan has over the built-in one, as the user's file gives it; None: nothing.
    pub overrides: Option<String>,
    /// Run although the host is slower than a volume; the trials are marked with it.
    pub over_limit: bool,
    /// The command that runs it again, for the record.
    pub command: String,
    /// The program's version, for the record.
    pub ebbtide: String,
}

/// Runs an experiment.
///
/// A trial that fails is recorded and the others go on. `cancel` ends the run within a couple of
/// seconds; what was measured until then is in the results, and nothing is left mounted, attached or
/// running in any case.
///
/// # Errors
/// What forbids the run before its first trial, [`RunError::Cancelled`], and results that cannot be
/// written.
pub fn run(
    plan: Plan,
    options: RunOptions,
    cancel: &Cancel,
    on_event: &mut (dyn FnMut(Event) + Send),
) -> Result<LabRun, RunError> {
    let on_event = Mutex::new(on_event);
    let on_event = |event| (on_event.lock())(event);
    let events = EventSink::new(&on_event);
    let started_ns = unix_ns();
    let cut = plan.arms().iter().map(|planned| &planned.arm).find(|arm| arm.crash.is_some());
    if let Some(arm) = cut {
        let why = ArmError::IsCut { experiment: plan.experiment().name };
        return Err(ExperimentError::of_arm(&arm.name, why).into());
    }
    let repeats = plan.experiment().trial.repeats;
    let of = plan.arms().len() * usize::try_from(repeats).unwrap_or(usize::MAX);
    let requirements =
        Requirements { home: &options.home, over_limit: options.over_limit, room: 0, counts: |_| true };
    let Preflight { lab, plan, host, notes } = preflight::check(plan, &requirements, cancel, events)
        .map_err(|error| RunProgress { done: 0, of, eta: Eta::default() }.counted(error))?;
    let header = LabRun {
        started_ns,
        command: options.command,
        ebbtide: options.ebbtide,
        host,
        server: server_facts(&plan),
        experiment: plan.experiment(),
        overrides: options.overrides,
        trials: Vec::new(),
    };
    let store = if options.resume {
        ResultsDatabase::resume(&options.out, &header)?
    } else {
        ResultsDatabase::create(&options.out, &header)?
    };
    let trials =
        Trials { lab: &lab, experiment: &header.experiment, plan: &plan, cancel, events, notes: &notes };
    trials.run(store)
}

/// What this machine, or the rights of this user, lack for a plan, in a few words each: root, kernel devices, memory cgroups,
/// tools, memory. Empty where nothing is missing. Space and speed of the disk are looked at when it runs. Arms whose backup
/// tool is missing fail, and the others run.
#[must_use]
pub fn missing(plan: &Plan) -> Vec<String> {
    let machine = missing_on_machine(&plan.experiment());
    machine.into_iter().chain(backup::missing_tools(plan.arms())).collect()
}

/// The same for an experiment whose servers are not known: without the tools that come with them.
#[must_use]
pub fn missing_on_machine(experiment: &Experiment) -> Vec<String> {
    let memory = requirements::memory(experiment).err().map(|error| error.to_string());
    requirements::equipment(experiment).err().into_iter().flatten().chain(memory).collect()
}

/// Refuses earlier runs that this plan would be no repeat of.
///
/// # Errors
/// The first of them, with everything that differs.
pub fn refuse_others(plan: &Plan, earlier: &[Earlier]) -> Result<(), ResultsError> {
    let server = ServerFacts { options: BTreeMap::default(), ..server_facts(plan) };
    let experiment = plan.experiment();
    earlier.iter().try_for_each(|one| one.refuse_other(&experiment, &server))
}

/// The time by the wall clock, ns since 1970.
#[must_use]
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// What is known of the servers of a run: programs and versions, and the options of each arm.
#[must_use]
pub fn server_facts(plan: &Plan) -> ServerFacts {
    let options = plan.arms().iter().map(|planned| (planned.arm.name.clone(), planned.options.clone()));
    let programs = plan.arms().iter().map(|planned| {
        let replica = planned.replica.as_deref().map(|replica| &replica.server);
        let source = planned.source.as_deref().unwrap_or(planned);
        (planned.arm.name.as_str(), ArmPrograms { source: &source.server, replica })
    });
    ServerFacts { options: options.collect(), ..facts(plan.server(), programs) }
}

/// What is known of the run's server and of those of its arms, by the arms' names.
fn facts<'p>(own: &Binary, arms: impl Iterator<Item = (&'p str, ArmPrograms<'p>)>) -> ServerFacts {
    let mut facts = program_facts(own);
    for (arm, ArmPrograms { source, replica }) in arms {
        if source != own {
            facts.sources.insert(arm.to_owned(), source.into());
        }
        if let Some(replica) = replica.filter(|replica| *replica != own) {
            facts.replicas.insert(arm.to_owned(), replica.into());
        }
    }
    facts
}

/// What is known of a server before it has options.
#[must_use]
pub fn program_facts(binary: &Binary) -> ServerFacts {
    let ProgramFacts { path, flavour, version } = binary.into();
    ServerFacts { path, flavour, version, ..ServerFacts::default() }
}

/// The trials of a run, and what all of them need.
struct Trials<'a> {
    lab: &'a Lab,
    experiment: &'a Experiment,
    plan: &'a Plan,
    cancel: &'a Cancel,
    events: EventSink<'a>,
    /// What every trial should carry.
    notes: &'a [String],
}

impl Trials<'_> {
    fn run(&self, mut store: ResultsDatabase) -> Result<LabRun, RunError> {
        let repeats = self.experiment.trial.repeats;
        let slots = schedule::order(self.plan.arms().len(), repeats, self.experiment.seed);
        let known = store.run()?.trials;
        let is_known = |slot: &Slot| schedule::is_measured(&known, &self.arm(slot).arm.name, slot.repeat);
        let done = slots.iter().filter(|slot| is_known(slot)).count();
        let mut state = RunProgress { done, of: slots.len(), eta: Eta::default() };
        let left: Vec<(usize, &Slot)> =
            slots.iter().enumerate().filter(|(_, slot)| !is_known(slot)).collect();
        let known = prepared::known_in(self.lab);
        let arms = left.iter().map(|(_, slot)| &self.arm(slot).arm);
        let keys = experiment::keys_of(self.plan.arms());
        let estimate_s = experiment::trials_estimate(self.experiment.data, arms, &keys, &known);
        self.events.send(Event::Planned { of: state.of, already: done, estimate_s });
        if left.is_empty() {
            return Ok(store.run()?);
        }
        let maker =
            Maker { lab: self.lab, experiment: self.experiment, cancel: self.cancel, events: self.events };
        let needs = prepared::needs(self.plan.arms());
        let snapshots = maker.provide(&needs).map_err(|error| state.counted(error))?;
        let data = self.experiment.data;
        let plan_of = |slot: &Slot| experiment::trial_estimate(data, &self.arm(slot).arm, &known.paces);
        let mut later: Duration = left.iter().map(|(_, slot)| plan_of(slot)).sum();
        let mut first = FirstFailures::of(left.iter().map(|(_, slot)| slot.arm), done > 0);
        for (index, slot) in left {
            if self.cancel.is_cancelled() {
                return Err(state.cancelled());
            }
            state.eta.begin(plan_of(slot));
            later -= plan_of(slot);
            let arm = &self.arm(slot).arm;
            let progress = || state.progress(index, slot, arm, later);
            let context = self.context(slot, &snapshots, &progress);
            let Some(mut trial) = context.run() else { return Err(state.cancelled()) };
            trial.notes.splice(0..0, self.notes.iter().cloned());
            store.add_trial(&trial)?;
            if trial.outcome == Outcome::Measured {
                pace::note(self.lab, experiment::trial_pace(data, arm, trial.took_s));
            }
            state.eta.end(trial.outcome == Outcome::Measured);
            state.done += 1;
            let progress = state.progress(index, slot, arm, later);
            self.events.send(ended(&trial, arm, progress));
            if let Some(why) = first.ended(slot.arm, &trial.outcome).filter(|_| state.done < state.of) {
                return Err(RunError::AllFailed { why, done: state.done, of: state.of });
            }
        }
        Ok(store.run()?)
    }

    fn arm(&self, slot: &Slot) -> &PlannedArm {
        &self.plan.arms()[slot.arm]
    }

    fn context<'a>(
        &'a self,
        slot: &Slot,
        snapshots: &'a BTreeMap<String, String>,
        progress: &'a (dyn Fn() -> Progress + Sync),
    ) -> TrialContext<'a> {
        let planned = self.arm(slot);
        TrialContext {
            lab: self.lab,
            experiment: self.experiment,
            planned,
            snapshots,
            repeat: slot.repeat,
            cancel: self.cancel,
            events: self.events,
            progress,
        }
    }
}

/// Whether the first trial of each arm that is left fails for one reason: then every later one would, too.
#[derive(Debug)]
struct FirstFailures {
    /// Arms whose first trial has not ended yet.
    waiting: BTreeSet<usize>,
    /// The reason so far, without its figures; None before the first failure.
    reason: Option<String>,
    /// Whether a trial was measured, or failed for another reason.
    differ: bool,
}

impl FirstFailures {
    /// `measured`: whether an earlier run has measured a trial, which then did not fail.
    fn of(arms: impl Iterator<Item = usize>, measured: bool) -> Self {
        Self { waiting: arms.collect(), reason: None, differ: measured }
    }

    /// Takes the end of a trial; the reason, once the first trials of all arms have failed for it.
    fn ended(&mut self, arm: usize, outcome: &Outcome) -> Option<String> {
        let is_first = self.waiting.remove(&arm);
        match outcome {
            Outcome::Failed { why, .. } if !self.differ => {
                // Times, process ids and addresses differ between two failures of one kind.
                let kind: String = why.chars().filter(|letter| !letter.is_ascii_digit()).collect();
                self.differ = self.reason.get_or_insert_with(|| kind.clone()) != &kind;
                (is_first && self.waiting.is_empty() && !self.differ).then(|| why.clone())
            }
            _ => {
                self.differ = true;
                None
            }
        }
    }
}

/// That a trial has ended, with the figures that the summary will have for it.
pub(crate) fn ended(trial: &Trial, arm: &Arm, progress: Progress) -> Event {
    Event::TrialEnded {
        trial: progress,
        outcome: trial.outcome.clone(),
        figures: summary::trial_figures(trial, arm),
    }
}

/// How far a run is.
#[derive(Debug)]
struct RunProgress {
    /// Trials that have ended, in this run or before.
    done: usize,
    of: usize,
    eta: Eta,
}

impl RunProgress {
    /// Where the run is in a trial, when `later` is planned for those after it.
    fn progress(&self, index: usize, slot: &Slot, arm: &Arm, later: Duration) -> Progress {
        Progress {
            number: index + 1,
            of: self.of,
            arm: arm.name.clone(),
            repeat: slot.repeat,
            eta_s: self.eta.left_s(later),
        }
    }

    fn cancelled(&self) -> RunError {
        RunError::Cancelled { done: self.done, of: self.of }
    }

    /// A cancelled preparation does not know of the trials.
    fn counted(&self, error: RunError) -> RunError {
        match error {
            RunError::Cancelled { .. } => self.cancelled(),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(why: &str) -> Outcome {
        Outcome::Failed { why: why.into(), log: Vec::new() }
    }

    #[test]
    fn a_run_ends_when_the_first_trial_of_each_arm_failed_for_one_reason() {
        let mut first = FirstFailures::of([0, 1, 0, 1].into_iter(), false);
        assert_eq!(first.ended(1, &failed("no file: error 13, process 4711")), None);
        let why = first.ended(0, &failed("no file: error 13, process 5122"));
        assert_eq!(why.as_deref(), Some("no file: error 13, process 5122"));
    }

    #[test]
    fn a_run_goes_on_where_an_arm_was_measured_or_failed_otherwise() {
        for other in [Outcome::Measured, failed("the volume is full")] {
            let mut first = FirstFailures::of([0, 1].into_iter(), false);
            assert_eq!(first.ended(0, &failed("no file")), None);
            assert_eq!(first.ended(1, &other), None, "{other:?}");
            assert_eq!(first.ended(1, &failed("no file")), None, "later trials decide nothing");
        }
        let mut measured = FirstFailures::of([0, 1].into_iter(), false);
        assert_eq!(measured.ended(0, &Outcome::Measured), None);
        assert_eq!(measured.ended(1, &failed("no file")), None);
        let mut resumed = FirstFailures::of([1].into_iter(), true);
        assert_eq!(resumed.ended(1, &failed("no file")), None, "the other arm was measured before");
    }
}
