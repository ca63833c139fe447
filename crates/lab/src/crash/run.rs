//! A whole crash run: canaries first, then the arms in rounds, every cut into the results as it is judged.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ebbtide_catalog::Catalog;
use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;
use parking_lot::Mutex;

use super::event::{Event, Progress};
use super::kept::Keeper;
use super::record::{CrashRun, Cut, Stint};
use super::results::Store;
use super::stage::Props;
use super::stint::Setting;
use super::{MOST_CLIENTS, canary, tables};
use crate::experiment::{self, Checked, Experiment, ExperimentError};
use crate::run::error::{RunError, StageError};
use crate::run::event::Teller;
use crate::run::home::Lab;
use crate::run::prepared::{self, Maker};
use crate::run::rehearse::Scene;
use crate::run::schedule::{self, Slot};
use crate::run::{self as lab_run, Plan, plan, proc, rehearse, require};

/// What an image keeps of its volume that has been written over since, and what recovery writes, bytes: a buffer
/// pool and a redo log of the usual size for these experiments.
const IMAGE_BYTES: u64 = 256 << 20;

/// MySQL's setting that puts statements into a binary log of rows.
pub(super) const STATEMENTS: &str = "raw.binlog_rows_query_log_events";

/// Where and with what a crash experiment runs.
#[derive(Debug, Clone)]
pub struct CrashOptions {
    /// The home: the lab keeps its own below it, in `lab`.
    pub home: PathBuf,
    /// The server whose power is cut.
    pub server: Binary,
    /// Where the results go; made where it is missing.
    pub out: PathBuf,
    /// What volume specs and instance types mean.
    pub catalog: Catalog,
    /// What was laid over the built-in catalogue, for the record.
    pub overrides: Option<String>,
    /// Images that are judged side by side; none: as the machine has processors.
    pub checkers: Option<usize>,
    /// The command that runs it again, for the record.
    pub command: String,
    /// The program's version, for the record.
    pub ebbtide: String,
}

/// Runs a crash experiment; its canaries are added.
///
/// A stint that fails is recorded and the others go on. `cancel` ends the run within a few seconds; what was
/// judged until then is in the results, and nothing is left mounted, attached or running in any case.
///
/// # Errors
/// What forbids the run before its first stint, [`RunError::Cancelled`], and results that cannot be written.
pub fn run(
    mut experiment: Experiment,
    options: CrashOptions,
    cancel: &Cancel,
    tell: &mut (dyn FnMut(Event) + Send),
) -> Result<CrashRun, RunError> {
    let tell = Mutex::new(tell);
    let tell = |event| (tell.lock())(event);
    let tell_lab = |event| tell(Event::Lab(event));
    let teller = Teller::new(&tell_lab);
    let began_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    refuse_what_cannot_be_cut(&experiment)?;
    let told = |left_out: Vec<String>| {
        left_out.into_iter().for_each(|text| teller.tell(lab_run::Event::Noted { text }));
    };
    canary::add(&mut experiment).expect("the settings of canaries are known to every server");
    name_transactions(&mut experiment, &options.server);
    let Plan { mut experiment, mut checked, left_out } = plan(experiment, &options.catalog, &options.server)?;
    told(left_out);
    require::memory(&experiment)?;
    let lab = Lab::open(&options.home, cancel, teller)?;
    require::space(&lab, &experiment, &checked, &prepared::needs(&checked.arms))?;
    let checkers = options.checkers.unwrap_or_else(|| usize::try_from(proc::cpus()).unwrap_or(usize::MAX));
    room_for_images(&lab, checkers)?;
    let scene = Scene { lab: &lab, binary: &options.server, cancel, teller };
    let left_out = rehearse::hold(scene, &mut experiment)?;
    if !left_out.is_empty() {
        told(left_out);
        checked = experiment::check(&experiment, &options.catalog, &options.server)?;
    }
    let needs = prepared::needs(&checked.arms);
    // A slow host tears pages as a fast one does: it is noted, not refused.
    let compared = require::host(&lab, &without_canaries(&experiment, &checked), true, cancel, teller)?;
    let mut host = proc::host_facts();
    host.calibration = compared.figures;
    let header = CrashRun {
        started_ns: u64::try_from(began_ns).unwrap_or(u64::MAX),
        command: options.command,
        ebbtide: options.ebbtide,
        host,
        server: lab_run::server_facts(&options.server, &checked),
        experiment,
        overrides: options.overrides,
        stints: Vec::new(),
        cuts: Vec::new(),
    };
    let store = Store::create(&options.out, &header)?;
    let maker = Maker { lab: &lab, experiment: &header.experiment, binary: &options.server, cancel, teller };
    let snapshots = maker.provide(&needs)?;
    let keeper = Keeper::new(&lab, &header.experiment, &options.server);
    let stints = Stints {
        lab: &lab,
        experiment: &header.experiment,
        checked: &checked,
        binary: &options.server,
        checkers,
        cancel,
        tell: &tell,
        notes: &compared.notes,
        store: Mutex::new(store),
        keeper: &keeper,
    };
    stints.run(&snapshots)
}

/// The stints of a run, and what all of them need.
struct Stints<'a> {
    lab: &'a Lab,
    experiment: &'a Experiment,
    checked: &'a Checked,
    binary: &'a Binary,
    checkers: usize,
    cancel: &'a Cancel,
    tell: &'a (dyn Fn(Event) + Sync),
    /// What every stint should carry.
    notes: &'a [String],
    store: Mutex<Store>,
    keeper: &'a Keeper<'a>,
}

impl Stints<'_> {
    fn run(self, snapshots: &std::collections::BTreeMap<String, String>) -> Result<CrashRun, RunError> {
        let slots = order(self.experiment);
        let planned = self.experiment.arms.iter().filter_map(|arm| arm.crash.as_ref());
        let cuts = planned.filter(|plan| plan.canary.is_none()).map(|plan| plan.cuts).sum();
        (self.tell)(Event::Planned { stints: slots.len(), cuts });
        let (began, mut done) = (Instant::now(), 0);
        for (index, slot) in slots.iter().enumerate() {
            let cancelled = || RunError::Cancelled { done: index, of: slots.len() };
            if self.cancel.is_cancelled() {
                return Err(cancelled());
            }
            let eta_s = (done > 0).then(|| {
                let each = began.elapsed().as_secs_f64() / f64::from(done);
                each * (slots.len() - index) as f64
            });
            let progress = self.progress(index, slot, slots.len());
            (self.tell)(Event::StintStarted(progress.clone()));
            let snapshot = &snapshots[&self.checked.arms[slot.arm].prepare_key];
            let (stint, judged, bad) = self.stint(slot, snapshot, &progress, eta_s)?;
            let Some(mut stint) = stint else { return Err(cancelled()) };
            stint.notes.splice(0..0, self.notes.iter().cloned());
            self.store.lock().add_stint(&stint)?;
            (self.tell)(Event::StintEnded {
                stint: progress,
                tps: stint.throughput.as_ref().map(|throughput| throughput.tps),
                judged,
                bad,
                failed: stint.failed.map(|failed| failed.why),
            });
            done += 1;
        }
        Ok(self.store.into_inner().run()?)
    }

    fn progress(&self, index: usize, slot: &Slot, of: usize) -> Progress {
        let arm = self.experiment.arms[slot.arm].name.clone();
        Progress { number: index + 1, of, arm, repeat: slot.repeat }
    }

    fn stint(
        &self,
        slot: &Slot,
        snapshot: &str,
        progress: &Progress,
        eta_s: Option<f64>,
    ) -> Result<(Option<Stint>, u32, u32), RunError> {
        let arm = &self.experiment.arms[slot.arm];
        let numbers = numbers(self.experiment, slot);
        let of = numbers.end - numbers.start;
        let (judged, bad) = (AtomicU32::new(0), AtomicU32::new(0));
        let broken = Mutex::new(None);
        let take = |cut: Cut| {
            if let Err(error) = self.store.lock().add_cut(&cut) {
                *broken.lock() = Some(error);
                return Err(StageError::LoadEnded("the results cannot be written".into()));
            }
            let judged = judged.fetch_add(1, Ordering::Relaxed) + 1;
            bad.fetch_add(u32::from(cut.is_bad()), Ordering::Relaxed);
            let verdicts = cut.kinds();
            (self.tell)(Event::Judged { stint: progress.clone(), judged, of, verdicts, eta_s });
            Ok(())
        };
        let doing = |what: &str| (self.tell)(Event::Doing { stint: progress.clone(), what: what.to_owned() });
        let setting = Setting {
            props: Props {
                lab: self.lab,
                binary: self.binary,
                arm,
                checked: &self.checked.arms[slot.arm],
                seed: self.experiment.seed ^ (u64::from(slot.repeat) << 32),
                cancel: self.cancel,
            },
            experiment: self.experiment,
            snapshot,
            schema: tables(self.experiment.data),
            repeat: slot.repeat,
            numbers,
            checkers: self.checkers,
            cancel: self.cancel,
            keeper: self.keeper,
            doing: &doing,
            judged: &take,
        };
        let stint = setting.run();
        if let Some(error) = broken.into_inner() {
            return Err(error.into());
        }
        Ok((stint, judged.into_inner(), bad.into_inner()))
    }
}

/// Refuses a disk that cannot take the images that are judged and wait, and what recovery writes to their copies.
fn room_for_images(lab: &Lab, checkers: usize) -> Result<(), RunError> {
    let home = lab.host.home();
    let Ok(free) = home.free_bytes() else { return Ok(()) };
    let needed = u64::try_from(2 * checkers + 2).unwrap_or(u64::MAX).saturating_mul(IMAGE_BYTES);
    if needed > free {
        return Err(RunError::NoSpace { dir: home.root().to_owned(), needed, free });
    }
    Ok(())
}

/// Arms that say nothing about cuts, and loads that the tables are not made for.
fn refuse_what_cannot_be_cut(experiment: &Experiment) -> Result<(), ExperimentError> {
    let refused = experiment.arms.iter().find_map(|arm| {
        let clients = arm.load.connections;
        let why = if arm.crash.is_none() {
            "it says nothing about cuts: give the file a section [crash]".to_owned()
        } else if clients > MOST_CLIENTS {
            format!("load.connections = {clients}: the load with invariants has 1 to {MOST_CLIENTS} clients")
        } else {
            return None;
        };
        Some(ExperimentError::Arm { arm: arm.name.clone(), message: why })
    });
    refused.map_or(Ok(()), Err)
}

/// Has MySQL write each statement into the binary log beside its rows, as MariaDB does by itself: without it
/// nobody could say whose transaction the rows are of.
fn name_transactions(experiment: &mut Experiment, binary: &Binary) {
    if binary.is_mariadb() {
        return;
    }
    for arm in &mut experiment.arms {
        // It writes one unless it is told not to: saying so has it compared.
        if arm.settings.get("log_bin").is_none() {
            arm.settings.set("log_bin", "on").expect("every server has it");
        }
        let logs = arm.settings.get("log_bin").is_some_and(|value| value != "off");
        if logs && arm.settings.get(STATEMENTS).is_none() {
            arm.settings.set(STATEMENTS, "ON").expect("a raw setting is anything");
        }
    }
}

/// The arms that the experiment is about.
fn without_canaries(experiment: &Experiment, checked: &Checked) -> Checked {
    let arms = checked.arms.iter().enumerate().filter(|(index, _)| !is_canary(experiment, *index));
    Checked { arms: arms.map(|(_, arm)| arm.clone()).collect() }
}

fn is_canary(experiment: &Experiment, arm: usize) -> bool {
    experiment.arms[arm].crash.as_ref().is_some_and(|plan| plan.canary.is_some())
}

/// Canaries first, each once, since without them nothing else counts; then the arms, round by round.
fn order(experiment: &Experiment) -> Vec<Slot> {
    let all = schedule::order(experiment.arms.len(), experiment.trial.repeats, experiment.seed);
    let canaries = (0..experiment.arms.len()).filter(|arm| is_canary(experiment, *arm));
    let canaries = canaries.map(|arm| Slot { arm, repeat: 0 });
    canaries.chain(all.into_iter().filter(|slot| !is_canary(experiment, slot.arm))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Overrides;

    fn experiment() -> Experiment {
        let text = "[crash]\ncuts = 10\n[trial]\nrepeats = 3\n[arms.a.settings]\nsync_binlog = 0\n\
                    [arms.b.settings]\nsync_binlog = 1\n";
        let overrides = Overrides { seed: Some(1), ..Overrides::default() };
        let mut experiment = experiment::parse("cuts", "cuts.toml", text, &overrides).unwrap();
        canary::add(&mut experiment).unwrap();
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
    fn comparisons_still_mean_the_arms_that_they_meant() {
        let experiment = experiment();
        let [comparison] = experiment.comparisons.as_slice() else { panic!("{:?}", experiment.comparisons) };
        assert_eq!(experiment.arms[comparison.arm].name, "b");
        assert_eq!(experiment.arms[comparison.baseline].name, "a");
    }
}
