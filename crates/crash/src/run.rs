//! A whole crash run: canaries first, then the arms in rounds, every cut into the results as it is judged.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use ebbtide_catalog::Catalog;
use ebbtide_lab::experiment::{Arm, ArmError, Experiment, ExperimentError, PlannedArm, cut_pace, stint_pace};
use ebbtide_lab::run::error::RunError;
use ebbtide_lab::run::event::EventSink;
use ebbtide_lab::run::home::Lab;
use ebbtide_lab::run::preflight::{self, Preflight, Requirements};
use ebbtide_lab::run::prepared::{self, Maker};
use ebbtide_lab::run::schedule::{self, Slot};
use ebbtide_lab::run::{self as lab_run, Plan, pace, proc};
use ebbtide_load::Cancel;
use ebbtide_mysql::{Binary, NamedServers};
use ebbtide_workload::invariant::MAX_CLIENTS;
use parking_lot::Mutex;

use super::error::StintError;
use super::event::{Event, Progress};
use super::kept_images::{ImageOrigin, ImageRetention};
use super::mounted_arm::ArmContext;
use super::record::{CrashRun, Cut, Stint};
use super::recovery_gate::RecoveryGate;
use super::results::CrashDatabase;
use super::stint::{Data, StintContext, waiting_for};
use super::stint_workload::StintWorkload;
use super::summary::{Standing, catches};
use super::{binlog, canary};

/// What an image keeps of its volume that has been written over since, and what recovery writes, bytes: a buffer
/// pool and a redo log of the usual size for these experiments.
const IMAGE_BYTES: u64 = 256 << 20;

/// Where and with what a crash experiment runs.
#[derive(Debug, Clone)]
pub struct CrashOptions {
    /// The home: the lab keeps its own below it, in `lab`.
    pub home: PathBuf,
    /// How the user named the server, for the record; none: it is the machine's own.
    pub server_named: Option<String>,
    /// Where the results go; made where it is missing.
    pub out: PathBuf,
    /// Go on with a run whose results are in [`Self::out`]: what it has judged is not cut again.
    pub resume: bool,
    /// Overrides of the built-in catalogue, for the record.
    pub overrides: Option<String>,
    /// Images that are judged side by side; none: as the machine has processors.
    pub checkers: Option<usize>,
    /// The command that runs it again, for the record.
    pub command: String,
    /// The program's version, for the record.
    pub ebbtide: String,
}

/// Runs what [`plan`] has made of a crash experiment.
///
/// A stint that fails is recorded and the others go on. `cancel` ends the run within a few seconds; what was
/// judged until then is in the results, and nothing is left mounted, attached or running in any case.
///
/// # Errors
/// What forbids the run before its first stint, [`RunError::Cancelled`], and results that cannot be written.
pub fn run(
    plan: CutPlan,
    options: CrashOptions,
    cancel: &Cancel,
    on_event: &mut (dyn FnMut(Event) + Send),
) -> Result<CrashRun, RunError> {
    let on_event = Mutex::new(on_event);
    let on_event = |event| (on_event.lock())(event);
    let on_lab_event = |event| on_event(Event::Lab(event));
    let events = EventSink::new(&on_lab_event);
    let started_ns = lab_run::unix_ns();
    let cpus = usize::try_from(proc::cpus()).unwrap_or(usize::MAX);
    let checkers = options.checkers.unwrap_or(cpus.saturating_mul(2));
    let requirements = Requirements {
        home: &options.home,
        // A slow host tears pages as a fast one does: it is noted, not refused.
        over_limit: true,
        room: room_for_images(checkers),
        counts: |arm| !is_canary(arm),
    };
    let Preflight { lab, plan, host, notes } = preflight::check(plan.0, &requirements, cancel, events)?;
    let header = CrashRun {
        started_ns,
        command: options.command,
        ebbtide: options.ebbtide,
        host,
        server: lab_run::server_facts(&plan),
        experiment: plan.experiment(),
        overrides: options.overrides,
        stints: Vec::new(),
        cuts: Vec::new(),
        gain: None,
    };
    let store = if options.resume {
        CrashDatabase::resume(&options.out, &header)?
    } else {
        CrashDatabase::create(&options.out, &header)?
    };
    let known = store.run()?;
    let named = options.server_named.as_deref();
    let origin = ImageOrigin { experiment: &header.experiment, binary: plan.server(), named };
    let retention = ImageRetention::new(&lab, origin, &known.cuts);
    let stints = Stints {
        lab: &lab,
        experiment: &header.experiment,
        plan: &plan,
        checkers,
        recoveries: RecoveryGate::new(cpus),
        cancel,
        on_event: &on_event,
        notes: &notes,
        store: Mutex::new(store),
        retention: &retention,
    };
    stints.run(known, events)
}

/// What is cut of an experiment on a server: its arms with the canaries before them.
#[derive(Debug, Clone, PartialEq)]
pub struct CutPlan(Plan);

impl CutPlan {
    /// The plan, as the lab has it.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.0
    }
}

/// What [`run`] runs of an experiment.
///
/// # Errors
/// As [`ebbtide_lab::experiment::check()`], and arms whose power cannot be cut.
pub fn plan(experiment: Experiment, catalog: &Catalog, server: &Binary) -> Result<CutPlan, ExperimentError> {
    plan_with(experiment, catalog, server, &NamedServers::default())
}

/// [`plan`] with the server programs that the experiment may name.
///
/// # Errors
/// As [`plan`].
pub fn plan_with(
    experiment: Experiment,
    catalog: &Catalog,
    server: &Binary,
    servers: &NamedServers,
) -> Result<CutPlan, ExperimentError> {
    lab_run::plan_with(with_canaries(experiment, server)?, catalog, server, servers).map(CutPlan)
}

/// Holds an experiment against the catalogue alone, without the canaries, which depend on the server.
///
/// # Errors
/// As [`ebbtide_lab::experiment::check_without_server`], and arms whose power cannot be cut.
pub fn check_without_server(experiment: &Experiment, catalog: &Catalog) -> Result<(), ExperimentError> {
    refuse_what_cannot_be_cut(experiment)?;
    ebbtide_lab::experiment::check_without_server(experiment, catalog)
}

/// The experiment that a run was begun with, from what the run has kept of it: [`run`] goes on with it.
#[must_use]
pub fn begun_with(run: &CrashRun) -> Experiment {
    let mut experiment = run.experiment.clone();
    canary::remove(&mut experiment);
    experiment
}

/// The stints of a run, and what all of them need.
struct Stints<'a> {
    lab: &'a Lab,
    experiment: &'a Experiment,
    plan: &'a Plan,
    checkers: usize,
    recoveries: RecoveryGate,
    cancel: &'a Cancel,
    on_event: &'a (dyn Fn(Event) + Sync),
    /// What every stint should carry.
    notes: &'a [String],
    store: Mutex<CrashDatabase>,
    retention: &'a ImageRetention<'a>,
}

impl Stints<'_> {
    fn run(self, known: CrashRun, events: EventSink<'_>) -> Result<CrashRun, RunError> {
        let slots = order(self.experiment);
        let left: Vec<(usize, &Slot, Vec<u32>)> = slots
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| Some((index, slot, missing(self.experiment, slot, &known)?)))
            .collect();
        let of_arms = left.iter().filter(|(_, slot, _)| !is_canary(&self.experiment.arms[slot.arm]));
        let cuts = of_arms.map(|(.., numbers)| count(numbers)).sum();
        (self.on_event)(Event::Planned { stints: left.len(), cuts, already: slots.len() - left.len() });
        if left.is_empty() {
            return Ok(known);
        }
        let Self { lab, experiment, cancel, .. } = self;
        let maker = Maker { lab, experiment, cancel, events };
        let snapshots = maker.provide(&prepared::needs(self.plan.arms()))?;
        let began = Instant::now();
        for (done, (index, slot, numbers)) in left.iter().enumerate() {
            let cancelled = || RunError::Cancelled { done: slots.len() - left.len() + done, of: slots.len() };
            if self.cancel.is_cancelled() {
                return Err(cancelled());
            }
            let each = (done > 0).then(|| began.elapsed().as_secs_f64() / done as f64);
            let eta_s = each.map(|each| each * (left.len() - done) as f64);
            let progress = self.progress(*index, slot, slots.len());
            (self.on_event)(Event::StintStarted(progress.clone()));
            let of = |planned: &PlannedArm| snapshots[&planned.prepare_key].as_str();
            let planned = &self.plan.arms()[slot.arm];
            let data = Data { own: of(planned), source: of(planned.source.as_deref().unwrap_or(planned)) };
            let (stint, judged, bad) = self.stint(slot, numbers, data, &progress, eta_s)?;
            let Some(stint) = stint else { return Err(cancelled()) };
            self.note_paces(&planned.arm, &stint, judged);
            let mut stint = with_earlier(stint, &known.stints);
            stint.notes.splice(0..0, self.notes.iter().cloned());
            self.store.lock().add_stint(&stint)?;
            (self.on_event)(Event::StintEnded {
                stint: progress,
                tps: stint.counted().map(|throughput| throughput.tps),
                disqualified: stint.throughput.as_ref().and_then(|measured| measured.disqualified.clone()),
                judged,
                bad,
                failed: stint.failed.map(|failed| failed.why),
            });
        }
        Ok(self.store.into_inner().run()?)
    }

    /// Keeps how long a stint took, for later estimates. A canary's cuts are taken beside what is thrown away.
    fn note_paces(&self, arm: &Arm, stint: &Stint, judged: u32) {
        if stint.failed.is_some() {
            return;
        }
        pace::note(self.lab, stint_pace(arm, stint.took_s - stint.cutting_s));
        if let Some(plan) = arm.crash.as_ref().filter(|_| !is_canary(arm)) {
            pace::note(self.lab, cut_pace(self.experiment.data, plan, judged, stint.cutting_s));
        }
    }

    fn progress(&self, index: usize, slot: &Slot, of: usize) -> Progress {
        let arm = self.experiment.arms[slot.arm].name.clone();
        Progress { number: index + 1, of, arm, repeat: slot.repeat }
    }

    fn stint(
        &self,
        slot: &Slot,
        numbers: &[u32],
        data: Data<'_>,
        progress: &Progress,
        eta_s: Option<f64>,
    ) -> Result<(Option<Stint>, u32, u32), RunError> {
        let of = count(numbers);
        let [judged, bad, verified] = [const { AtomicU32::new(0) }; 3];
        let broken = Mutex::new(None);
        let take = |cut: Cut| {
            if let Err(error) = self.store.lock().add_cut(&cut) {
                *broken.lock() = Some(error);
                return Err(StintError::Results);
            }
            let judged = judged.fetch_add(1, Ordering::Relaxed) + 1;
            bad.fetch_add(u32::from(cut.is_bad()), Ordering::Relaxed);
            let is_verified = Standing::of(&cut) != Standing::Unverified;
            verified.fetch_add(u32::from(is_verified), Ordering::Relaxed);
            let verdicts = cut.kinds();
            (self.on_event)(Event::Judged { stint: progress.clone(), judged, of, verdicts, eta_s });
            Ok(())
        };
        let doing =
            |what: &str| (self.on_event)(Event::Doing { stint: progress.clone(), what: what.to_owned() });
        let context = StintContext {
            context: ArmContext {
                lab: self.lab,
                binary: self.plan.server(),
                planned: &self.plan.arms()[slot.arm],
                seed: self.experiment.seed ^ (u64::from(slot.repeat) << 32),
                cancel: self.cancel,
            },
            experiment: self.experiment,
            data,
            work: StintWorkload::of(self.experiment.data),
            repeat: slot.repeat,
            numbers,
            checkers: self.checkers,
            recoveries: &self.recoveries,
            cancel: self.cancel,
            retention: self.retention,
            doing: &doing,
            judged: &take,
        };
        let stint = context.run().map(|stint| Stint { verified: verified.into_inner(), ..stint });
        if let Some(error) = broken.into_inner() {
            return Err(error.into());
        }
        Ok((stint, judged.into_inner(), bad.into_inner()))
    }
}

/// Room for the images that are judged and wait, the one that is taken, and what recovery writes to their copies, bytes.
fn room_for_images(checkers: usize) -> u64 {
    let images = 2 * checkers + waiting_for(checkers) + 1;
    u64::try_from(images).unwrap_or(u64::MAX).saturating_mul(IMAGE_BYTES)
}

/// The experiment as it is run: its power can be cut, canaries come before its own arms, and its binary logs show
/// whose transactions they hold.
fn with_canaries(mut experiment: Experiment, binary: &Binary) -> Result<Experiment, ExperimentError> {
    refuse_what_cannot_be_cut(&experiment)?;
    canary::add(&mut experiment, binary.is_mariadb())
        .expect("the settings of canaries are known to every server");
    binlog::name_transactions(&mut experiment, binary);
    Ok(experiment)
}

/// Arms without settings of cuts, and loads that the tables are not made for.
fn refuse_what_cannot_be_cut(experiment: &Experiment) -> Result<(), ExperimentError> {
    let refused = experiment.arms.iter().find_map(|arm| {
        let clients = arm.load.connections;
        let why = if arm.crash.is_none() {
            ArmError::NotCut
        } else if clients > MAX_CLIENTS {
            ArmError::Clients { clients, most: MAX_CLIENTS }
        } else {
            return None;
        };
        Some(ExperimentError::of_arm(&arm.name, why))
    });
    refused.map_or(Ok(()), Err)
}

fn is_canary(arm: &Arm) -> bool {
    arm.crash.as_ref().is_some_and(|plan| plan.canary.is_some())
}

/// Canaries first, each once, since without them nothing else counts; then the arms, round by round.
fn order(experiment: &Experiment) -> Vec<Slot> {
    let all = schedule::order(experiment.arms.len(), experiment.trial.repeats, experiment.seed);
    let is_canary = |arm: usize| is_canary(&experiment.arms[arm]);
    let canaries = (0..experiment.arms.len()).filter(|arm| is_canary(*arm));
    let canaries = canaries.map(|arm| Slot { arm, repeat: 0 });
    canaries.chain(all.into_iter().filter(|slot| !is_canary(slot.arm))).collect()
}

/// Which cuts of its arm a stint takes.
fn numbers(experiment: &Experiment, slot: &Slot) -> std::ops::Range<u32> {
    let plan = experiment.arms[slot.arm].crash.as_ref().expect("every arm has its plan");
    let repeats = if plan.canary.is_some() { 1 } else { experiment.trial.repeats };
    let upto = |repeat: u32| {
        let share = u64::from(plan.cuts) * u64::from(repeat) / u64::from(repeats);
        u32::try_from(share).expect("no more than the cuts")
    };
    upto(slot.repeat)..upto(slot.repeat + 1)
}

/// Which cuts a stint still has to take, by what is known already; none where it has nothing left to do. A canary
/// that was caught is through; one that was missed in all of its cuts is tried again until it is caught.
fn missing(experiment: &Experiment, slot: &Slot, known: &CrashRun) -> Option<Vec<u32>> {
    let arm = &experiment.arms[slot.arm];
    let judged: BTreeSet<u32> =
        known.cuts.iter().filter(|cut| cut.arm == arm.name).map(|cut| cut.number).collect();
    let canary = arm.crash.as_ref().and_then(|plan| plan.canary);
    let shows = |cut: &Cut| cut.arm == arm.name && canary.is_some_and(|canary| catches(canary, cut));
    if known.cuts.iter().any(shows) {
        return None;
    }
    let numbers: Vec<u32> = numbers(experiment, slot).filter(|number| !judged.contains(number)).collect();
    let is_measured = known
        .stints
        .iter()
        .any(|stint| stint.arm == arm.name && stint.repeat == slot.repeat && stint.counted().is_some());
    (!numbers.is_empty() || !is_measured).then_some(numbers)
}

/// A stint with what an earlier attempt at it has in the results: its cuts are there, and its throughput is
/// where this one came to none.
fn with_earlier(stint: Stint, known: &[Stint]) -> Stint {
    let is_same = |one: &&Stint| one.arm == stint.arm && one.repeat == stint.repeat;
    let Some(earlier) = known.iter().find(is_same) else { return stint };
    Stint {
        took_s: earlier.took_s + stint.took_s,
        cutting_s: earlier.cutting_s + stint.cutting_s,
        verified: earlier.verified + stint.verified,
        cutting_cpu: match (&earlier.cutting_cpu, &stint.cutting_cpu) {
            (Some(before), Some(since)) => Some(before.plus(since)),
            (before, since) => before.or(*since),
        },
        throughput: match stint.counted() {
            None => earlier.counted().cloned().or(stint.throughput),
            Some(_) => stint.throughput,
        },
        ..stint
    }
}

fn count(numbers: &[u32]) -> u32 {
    u32::try_from(numbers.len()).expect("cuts are counted in 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{Corruption, Verdict};
    use ebbtide_lab::experiment::{self, Overrides};
    use ebbtide_mysql::{Flavour, Version};

    fn experiment() -> Experiment {
        let text = "[crash]\ncuts = 10\n[trial]\nrepeats = 3\n[arms.a.settings]\nsync_binlog = 0\n\
                    [arms.b.settings]\nsync_binlog = 1\n";
        let overrides = Overrides { seed: Some(1), ..Overrides::default() };
        let mut experiment = experiment::parse("cuts", "cuts.toml", text, &overrides).unwrap();
        canary::add(&mut experiment, true).unwrap();
        experiment
    }

    #[test]
    fn canaries_run_first_and_once_and_the_arms_in_rounds() {
        let experiment = experiment();
        let slots = order(&experiment);
        let names: Vec<_> = slots.iter().map(|slot| experiment.arms[slot.arm].name.as_str()).collect();
        assert_eq!(names[..3], ["canary answers-early", "canary ignores-flushes", "canary torn-pages"]);
        assert_eq!(names.len(), 3 + 2 * 3);
        for round in names[3..].chunks(2) {
            assert!(round.contains(&"a") && round.contains(&"b"), "{names:?}");
        }
    }

    #[test]
    fn a_server_that_cannot_run_the_canaries_is_refused() {
        let text = "[volumes]\ndata = \"gp3:size=10GiB\"\n[crash]\ncuts = 10\n[arms.a]\noptional = true\n\
                    [arms.a.settings]\nuse_fdatasync = \"on\"\n[arms.b.settings]\nsync_binlog = 1\n";
        let experiment = experiment::parse("cuts", "cuts.toml", text, &Overrides::default()).unwrap();
        let version = Version { major: 10, minor: 11, patch: 14 };
        let text = "Ver 10.11.14-MariaDB".to_owned();
        let server = Binary { path: "/usr/sbin/mariadbd".into(), flavour: Flavour::MariaDb, version, text };
        let error = plan(experiment, &Catalog::builtin(), &server).unwrap_err().to_string();
        let expected = "arm 'canary answers-early': MariaDB 10.11.14 has no use_fdatasync";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn the_cuts_of_an_arm_are_shared_out_over_its_repeats_without_gap_or_double() {
        let experiment = experiment();
        let own = order(&experiment).into_iter().filter(|slot| slot.arm == 3);
        let mut all: Vec<u32> = own.flat_map(|slot| numbers(&experiment, &slot)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        let canary = Slot { arm: 0, repeat: 0 };
        assert_eq!(numbers(&experiment, &canary), 0..canary::CUTS);
    }

    #[test]
    fn a_run_that_is_gone_on_with_takes_the_cuts_that_are_missing_and_no_other() {
        let experiment = experiment();
        let header = fixture::header(&fixture::PLAUSIBLE, 1);
        let mut known = CrashRun { experiment: experiment.clone(), stints: Vec::new(), ..header };
        let left = |known: &CrashRun, arm, repeat| missing(&experiment, &Slot { arm, repeat }, known);
        assert_eq!(left(&known, 3, 0), Some(vec![0, 1, 2]));
        known.cuts.extend([0, 2].map(|number| fixture::clean("a", number)));
        assert_eq!(left(&known, 3, 0), Some(vec![1]));
        assert_eq!(left(&known, 4, 0), Some(vec![0, 1, 2]), "another arm's cuts");
        known.cuts.push(fixture::clean("a", 1));
        assert_eq!(left(&known, 3, 0), Some(Vec::new()), "its throughput is missing");
        let stint = fixture::plausible(&fixture::PLAUSIBLE, 3, 1).stints.remove(0);
        known.stints.push(Stint { arm: "a".into(), repeat: 0, ..stint });
        assert_eq!(left(&known, 3, 0), None);
        assert_eq!(left(&known, 3, 1), Some(vec![3, 4, 5]));
        known.stints[0].throughput = None;
        assert_eq!(left(&known, 3, 0), Some(Vec::new()), "it ended before it was measured");
    }

    #[test]
    fn what_an_earlier_attempt_at_a_stint_came_to_is_not_lost() {
        let earlier = fixture::plausible(&fixture::PLAUSIBLE, 30, 1).stints.remove(0);
        let failed = Stint { throughput: None, verified: 2, cutting_s: 3.0, ..earlier.clone() };
        let both = with_earlier(failed.clone(), std::slice::from_ref(&earlier));
        assert_eq!(both.throughput, earlier.throughput);
        assert_eq!(both.verified, earlier.verified + 2);
        assert!((both.cutting_s - earlier.cutting_s - 3.0).abs() < 1e-9);
        let [before, cpu] = [&earlier, &both].map(|stint| stint.cutting_cpu.unwrap());
        assert!((cpu.busy_s - 2.0 * before.busy_s).abs() < 1e-9, "{cpu:?}");
        let other = Stint { repeat: 9, ..earlier };
        assert_eq!(with_earlier(failed.clone(), &[other]), failed);
    }

    #[test]
    fn a_canary_that_was_caught_is_through_and_one_that_was_missed_is_not_asked_again() {
        let experiment = experiment();
        let canary = Slot { arm: 2, repeat: 0 };
        let name = experiment.arms[2].name.clone();
        let run = fixture::plausible(&fixture::PLAUSIBLE, 3, 1);
        let stint = Stint { arm: name.clone(), repeat: 0, ..run.stints[0].clone() };
        let cuts: Vec<Cut> = (0..canary::CUTS).map(|number| fixture::clean(&name, number)).collect();
        let mut known = CrashRun { experiment: experiment.clone(), stints: vec![stint], cuts, ..run };
        assert_eq!(missing(&experiment, &canary, &known), None);
        known.cuts.truncate(2);
        assert_eq!(missing(&experiment, &canary, &known), Some((2..canary::CUTS).collect()));
        let torn = Verdict::Corrupt { how: Corruption::NoStart, messages: Vec::new(), pages: Vec::new() };
        known.cuts[1].verdicts.push(torn);
        assert_eq!(missing(&experiment, &canary, &known), None);
    }

    #[test]
    fn what_a_run_has_kept_of_its_experiment_makes_the_same_run_again() {
        let experiment = experiment();
        let header = fixture::header(&fixture::PLAUSIBLE, 1);
        let run = CrashRun { experiment: experiment.clone(), ..header };
        let mut again = begun_with(&run);
        assert_eq!(again.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        canary::add(&mut again, true).unwrap();
        assert_eq!(again, experiment);
    }

    #[test]
    fn there_is_room_for_the_images_that_are_judged_wait_and_are_taken() {
        for (checkers, images) in [(1, 4), (2, 7), (64, 133)] {
            assert_eq!(room_for_images(checkers), images * IMAGE_BYTES, "{checkers}");
        }
    }

    #[test]
    fn comparisons_still_mean_the_arms_that_they_meant() {
        let experiment = experiment();
        let [comparison] = experiment.comparisons.as_slice() else { panic!("{:?}", experiment.comparisons) };
        assert_eq!(experiment.arms[comparison.arm].name, "b");
        assert_eq!(experiment.arms[comparison.baseline].name, "a");
    }
}
