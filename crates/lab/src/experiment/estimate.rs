//! How long an experiment takes: what its parts take on a quiet machine of two cores, and by how much this machine differs, as far as
//! earlier runs of its home tell.
//!
//! A trial lasts as long as the experiment says (its load), and what the machine needs besides (clones, starts, reads of the tables).
//! The second is multiplied by the pace of earlier runs. The same holds for the stints and cuts of experiments whose power is cut.

use std::collections::BTreeSet;
use std::time::Duration;

use ebbtide_mysql::Binary;
use ebbtide_volume::MIB;
use serde::{Deserialize, Serialize};

use super::{
    Arm, BackupMethod, BackupPlan, CrashPlan, DataPlan, End, Experiment, PlannedArm, ServerRole, prepare_key,
};

/// Rows a second that are loaded on a machine of two cores, and bytes a second that are read from a
/// volume without limits there.
const ROWS_PER_SECOND: f64 = 150_000.0;
const READ_BYTES_PER_SECOND: u64 = 250 * MIB;

/// Rows a second of tables that are aged there, purge included.
const AGED_PER_SECOND: f64 = 200_000.0;

/// Warehouses whose consistency is checked in a second there.
const CHECKED_PER_SECOND: u32 = 2;

/// Bytes a second of a dump that are loaded there, and of restored tables that are checked.
const LOADED_PER_SECOND: u64 = 10 * MIB;
const CHECKED_BYTES_PER_SECOND: u64 = 60 * MIB;

/// What trying a server with the settings of an arm takes, s: a data directory without tables, a start and an end.
const TRIED_S: f64 = 2.0;
/// What the first run of a home takes besides, s: it measures what the host carries.
const MEASURED_S: f64 = 6.0;
/// What a trial takes besides its load, s: the clone, the start of the server, its end.
const TRIAL_OVERHEAD_S: u64 = 3;
/// What a stint takes besides its load and its cuts, s.
const STINT_OVERHEAD_S: f64 = 1.0;
/// What a cut takes on two processors, s, where its image is judged beside others; where a server is killed, recovers on its own
/// volumes and starts again; and where a replica goes on after it.
const CUT_S: f64 = 1.2;
const KILLED_S: f64 = 4.0;
const FOLLOWED_S: f64 = 3.0;
/// Cuts that a canary takes: it is through once it is caught, which its first cuts do.
const CUTS_OF_CANARY: u32 = 2;
/// What judging a cut takes longer for each warehouse of TPC-C, s.
const JUDGED_S: f64 = 4.0;
/// What prepared data take besides the rows, s: the data directory, a clean stop, the snapshot.
const PREPARE_OVERHEAD_S: f64 = 10.0;

/// Paces that are kept of each part and kind: a machine changes.
const KEPT: usize = 12;
/// The least and the most that this machine is taken to differ by: beyond, something else went wrong.
const DIFFERS: [f64; 2] = [0.1, 20.0];

/// A part of a run whose time depends on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Trying the servers with the settings of the arms, and looking at the host.
    Check,
    /// Making data.
    Prepare,
    /// A trial, without the time of its load.
    Trial,
    /// A stint, without the time of its load and its cuts.
    Stint,
    /// A cut, and the judgement of its image.
    Cut,
}

/// How long parts of a run took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Which part.
    pub part: Part,
    /// Which kind of it: what takes its time.
    pub kind: String,
    /// What it takes on a quiet machine of two cores, s.
    pub planned_s: f64,
    /// What it took, s.
    pub took_s: f64,
}

/// The paces of earlier runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Paces(Vec<Pace>);

impl Paces {
    /// Adds one; of each part and kind the newest are kept.
    pub fn add(&mut self, pace: Pace) {
        if !(pace.planned_s > 0.0 && pace.took_s > 0.0) {
            return;
        }
        let is_same = |other: &Pace| (other.part, &other.kind) == (pace.part, &pace.kind);
        if self.0.iter().filter(|other| is_same(other)).count() >= KEPT
            && let Some(oldest) = self.0.iter().position(is_same)
        {
            self.0.remove(oldest);
        }
        self.0.push(pace);
    }

    /// By how much parts of a kind take longer than planned: by those of the kind, else by all of the part; 1 without any.
    #[must_use]
    pub fn factor(&self, part: Part, kind: &str) -> f64 {
        let of_part = |is_own: bool| {
            let taken = self.0.iter().filter(|pace| pace.part == part && (!is_own || pace.kind == kind));
            let (planned, took) = taken
                .fold((0.0, 0.0), |(planned, took), pace| (planned + pace.planned_s, took + pace.took_s));
            (planned > 0.0).then(|| (took / planned).clamp(DIFFERS[0], DIFFERS[1]))
        };
        of_part(true).or_else(|| of_part(false)).unwrap_or(1.0)
    }
}

/// What a home knows before a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// How long parts of earlier runs took.
    pub paces: Paces,
    /// Whose data are there: [`prepare_key`]s.
    pub prepared: BTreeSet<String>,
}

impl Known {
    /// Whether no run has looked at the host before.
    fn is_new(&self) -> bool {
        self.prepared.is_empty() && !self.paces.0.iter().any(|pace| pace.part == Part::Check)
    }
}

/// A time that the experiment sets, and one that depends on the machine, s.
#[derive(Debug, Clone, PartialEq)]
struct Plan {
    /// What the load lasts.
    load_s: f64,
    /// What is done besides, as on a quiet machine of two cores.
    work_s: f64,
    part: Part,
    kind: String,
}

impl Plan {
    /// How long it takes on a machine of these paces, s.
    fn on(&self, paces: &Paces) -> f64 {
        self.load_s + self.work_s * paces.factor(self.part, &self.kind)
    }

    /// Its pace, where it took so long.
    fn pace(&self, took_s: f64) -> Pace {
        Pace {
            part: self.part,
            kind: self.kind.clone(),
            planned_s: self.work_s,
            took_s: (took_s - self.load_s).max(0.0),
        }
    }
}

/// How long a run takes, prepared data included, on a quiet machine of two cores that carries it.
#[must_use]
pub fn estimate(experiment: &Experiment) -> Duration {
    estimate_with(experiment, programs(experiment), &Known::default())
}

/// As [`estimate`], on a machine whose home knows something. `keys`: whose data it needs ([`keys_of`]); they are known afterwards.
#[must_use]
pub fn estimate_on(experiment: &Experiment, keys: &BTreeSet<String>, known: &mut Known) -> Duration {
    let missing = keys.difference(&known.prepared).count();
    let took = estimate_with(experiment, u32::try_from(missing).unwrap_or(u32::MAX), known);
    known.prepared.extend(keys.iter().cloned());
    took
}

/// As [`estimate_on`], for an experiment whose servers all have the run's program.
#[must_use]
pub fn estimate_after(experiment: &Experiment, binary: &Binary, known: &mut Known) -> Duration {
    let keys = experiment.arms.iter().map(|arm| prepare_key(experiment, arm, binary)).collect();
    estimate_on(experiment, &keys, known)
}

/// As [`estimate`], on a machine of these paces that has no data.
#[must_use]
pub fn estimate_anew(experiment: &Experiment, paces: &Paces) -> Duration {
    let known = Known { paces: paces.clone(), ..Known::default() };
    estimate_with(experiment, programs(experiment), &known)
}

/// Whose data the servers of a plan's arms start from.
#[must_use]
pub fn keys_of(arms: &[PlannedArm]) -> BTreeSet<String> {
    arms.iter().flat_map(PlannedArm::servers).map(|planned| planned.prepare_key.clone()).collect()
}

/// `made` data are made.
fn estimate_with(experiment: &Experiment, made: u32, known: &Known) -> Duration {
    let paces = &known.paces;
    let of_arm = |arm: &Arm| match &arm.crash {
        None => trial(experiment.data, arm).on(paces) * f64::from(experiment.trial.repeats),
        Some(plan) => {
            let repeats = if plan.canary.is_some() { 1 } else { experiment.trial.repeats };
            let cuts = if plan.canary.is_some() { CUTS_OF_CANARY } else { plan.cuts };
            stint(arm).on(paces) * f64::from(repeats) + cut(experiment.data, plan).on(paces) * f64::from(cuts)
        }
    };
    let of_arms: f64 = experiment.arms.iter().map(of_arm).sum();
    let before = check(experiment, known).on(paces) + prepare(experiment.data).on(paces) * f64::from(made);
    Duration::from_secs_f64((before + of_arms).round())
}

/// How many server programs make data.
fn programs(experiment: &Experiment) -> u32 {
    let replicas = experiment.arms.iter().filter_map(Arm::replica).map(|replica| replica.server);
    let sources =
        experiment.arms.iter().filter_map(Arm::cut_replicas_source).map(|name| Some(name.to_owned()));
    let own = experiment.arms.iter().map(|arm| arm.server.clone());
    let all: BTreeSet<Option<String>> = own.chain(replicas).chain(sources).collect();
    u32::try_from(all.len().max(1)).unwrap_or(u32::MAX)
}

/// What is looked at before anything runs: each server once in each of its ways.
fn check(experiment: &Experiment, known: &Known) -> Plan {
    let ways: BTreeSet<String> = experiment
        .arms
        .iter()
        .flat_map(|arm| [Some(arm.clone()), arm.replica()])
        .flatten()
        .map(|arm| {
            let roles: Vec<_> = arm.volumes.keys().collect();
            format!("{:?} {:?} {roles:?} {}", arm.server, arm.settings, arm.instance.memory_bytes)
        })
        .collect();
    let is_new = known.is_new();
    let work_s = TRIED_S * ways.len() as f64 + if is_new { MEASURED_S } else { 0.0 };
    let kind = if is_new { "first" } else { "again" };
    Plan { load_s: 0.0, work_s, part: Part::Check, kind: kind.to_owned() }
}

/// What making the data takes.
fn prepare(data: DataPlan) -> Plan {
    let rows = data.all_rows() as f64;
    let aged = if data.aged { rows } else { 0.0 };
    let work_s = PREPARE_OVERHEAD_S + rows / ROWS_PER_SECOND + aged / AGED_PER_SECOND;
    Plan { load_s: 0.0, work_s, part: Part::Prepare, kind: tables(data).to_owned() }
}

const fn tables(data: DataPlan) -> &'static str {
    if data.warehouses.is_some() { "tpcc" } else { "rows" }
}

/// What one trial of an arm takes.
fn trial(data: DataPlan, arm: &Arm) -> Plan {
    let warmup = arm.warmup;
    let data_bytes = arm.tables(data).data_bytes();
    let read = if warmup.read_tables { data_bytes / READ_BYTES_PER_SECOND } else { 0 };
    let check = data.warehouses.map_or(0, |warehouses| warehouses.div_ceil(CHECKED_PER_SECOND));
    let restore = arm.backup.as_ref().map_or(0, |backup| restore_s(backup, data_bytes));
    let work_s = (TRIAL_OVERHEAD_S + read) * arm.topology.servers() + u64::from(check) + restore;
    let backup = arm.backup.as_ref().map_or_else(String::new, |backup| format!(" {:?}", backup.method));
    Plan {
        load_s: f64::from(warmup.lead_in_s + warmup.settle_s + arm.measure_s),
        work_s: work_s as f64,
        part: Part::Trial,
        kind: format!("{}{}", tables(data), backup.to_lowercase()),
    }
}

/// How long one trial of an arm takes.
pub(crate) fn trial_estimate(data: DataPlan, arm: &Arm, paces: &Paces) -> Duration {
    Duration::from_secs_f64(trial(data, arm).on(paces))
}

/// How long trials of arms take, and the data before them that the home does not know, s.
pub(crate) fn trials_estimate<'a>(
    data: DataPlan,
    arms: impl Iterator<Item = &'a Arm>,
    keys: &BTreeSet<String>,
    known: &Known,
) -> f64 {
    let missing = keys.difference(&known.prepared).count();
    let trials: f64 = arms.map(|arm| trial(data, arm).on(&known.paces)).sum();
    prepare(data).on(&known.paces) * missing as f64 + trials
}

/// The pace of looking at servers and host.
pub(crate) fn check_pace(experiment: &Experiment, known: &Known, took_s: f64) -> Pace {
    check(experiment, known).pace(took_s)
}

/// The pace of data that took so long to make.
pub(crate) fn prepare_pace(data: DataPlan, took_s: f64) -> Pace {
    prepare(data).pace(took_s)
}

/// The pace of a trial that took so long.
pub(crate) fn trial_pace(data: DataPlan, arm: &Arm, took_s: f64) -> Pace {
    trial(data, arm).pace(took_s)
}

/// The pace of a stint that took so long without its cuts.
#[must_use]
pub fn stint_pace(arm: &Arm, took_s: f64) -> Pace {
    stint(arm).pace(took_s)
}

/// The pace of so many cuts that took so long together.
#[must_use]
pub fn cut_pace(data: DataPlan, plan: &CrashPlan, cuts: u32, took_s: f64) -> Pace {
    let of_a_cut = cut(data, plan);
    Plan { work_s: of_a_cut.work_s * f64::from(cuts), ..of_a_cut }.pace(took_s)
}

/// What restoring and checking a backup takes, s.
fn restore_s(backup: &BackupPlan, data_bytes: u64) -> u64 {
    let bytes_a_second = match backup.method {
        BackupMethod::Dump => LOADED_PER_SECOND,
        BackupMethod::Physical | BackupMethod::Snapshot => CHECKED_BYTES_PER_SECOND,
    };
    TRIAL_OVERHEAD_S + data_bytes / bytes_a_second
}

/// What a stint of an arm takes whose power is cut, without its cuts.
fn stint(arm: &Arm) -> Plan {
    let is_replica = arm.crash.as_ref().is_some_and(|plan| plan.role == ServerRole::Replica);
    Plan {
        load_s: f64::from(arm.warmup.settle_s + arm.measure_s),
        work_s: STINT_OVERHEAD_S * if is_replica { 2.0 } else { 1.0 },
        part: Part::Stint,
        kind: if is_replica { "replica" } else { "primary" }.to_owned(),
    }
}

/// What a cut takes, and its judgement.
fn cut(data: DataPlan, plan: &CrashPlan) -> Plan {
    let is_replica = plan.role == ServerRole::Replica;
    let of_end = match plan.end {
        End::PowerCut => CUT_S,
        End::Kill => KILLED_S,
    };
    let of_replica = if is_replica { FOLLOWED_S } else { 0.0 };
    let of_tpcc = f64::from(data.warehouses.unwrap_or(0)) * JUDGED_S;
    let role = if is_replica { " replica" } else { "" };
    Plan {
        load_s: 0.0,
        work_s: of_end + of_replica + of_tpcc,
        part: Part::Cut,
        kind: format!("{} {}{role}", plan.end.name(), tables(data)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Overrides, parse};

    /// Two arms of three trials: 20 s of load each, on a million rows that are there, or are made.
    fn trials() -> Experiment {
        let text = "[data]\nrows = 1_500_000\n[trial]\nrepeats = 3\nmeasure = \"15s\"\n\
                    [warmup]\nlead_in = \"3s\"\nsettle = \"2s\"\nread_tables = false\n\
                    [arms.a]\n[arms.b.settings]\nsync_binlog = 0\n";
        parse("t", "t.toml", text, &Overrides::default()).unwrap()
    }

    fn cuts() -> Experiment {
        let text = "[data]\nrows = 20_000\n[crash]\ncuts = 30\n[trial]\nrepeats = 1\nmeasure = \"10s\"\n\
                    [warmup]\nsettle = \"3s\"\n[arms.a]\n";
        parse("t", "t.toml", text, &Overrides::default()).unwrap()
    }

    fn pace(part: Part, kind: &str, planned_s: f64, took_s: f64) -> Pace {
        Pace { part, kind: kind.to_owned(), planned_s, took_s }
    }

    fn keys() -> BTreeSet<String> {
        BTreeSet::from(["key".to_owned()])
    }

    fn seconds(experiment: &Experiment, known: &Known) -> f64 {
        estimate_on(experiment, &keys(), &mut known.clone()).as_secs_f64()
    }

    #[test]
    fn a_home_that_knows_nothing_has_the_pace_of_a_quiet_machine() {
        // Two ways of a server and the host, a million and a half rows, six trials.
        let expected = (2.0 * 2.0 + 6.0) + (10.0 + 10.0) + 6.0 * (20.0 + 3.0);
        assert_eq!(seconds(&trials(), &Known::default()), expected);
        assert_eq!(estimate(&trials()).as_secs_f64(), expected);
        let expected: f64 = (2.0 + 6.0) + (10.0 + 20.0 / 150.0) + (13.0 + 1.0) + 30.0 * 1.2;
        assert_eq!(seconds(&cuts(), &Known::default()), expected.round());
    }

    #[test]
    fn what_a_machine_takes_longer_is_its_own_work_and_never_the_time_of_the_load() {
        let mut known = Known { prepared: keys(), ..Known::default() };
        let quick = seconds(&trials(), &known);
        assert_eq!(quick, 2.0 * 2.0 + 6.0 * 23.0, "the data are there, and the host is known");
        let trial = trial_pace(trials().data, &trials().arms[0], 20.0 + 3.0 * 3.0);
        assert_eq!((trial.planned_s, trial.took_s), (3.0, 9.0), "20 s are the load's");
        known.paces.add(trial);
        assert_eq!(seconds(&trials(), &known), quick + 6.0 * 6.0);
        known.paces.add(pace(Part::Check, "again", 4.0, 2.0));
        assert_eq!(seconds(&trials(), &known), quick + 6.0 * 6.0 - 2.0);
        known.prepared.clear();
        known.paces.add(pace(Part::Prepare, "rows", 100.0, 150.0));
        assert_eq!(seconds(&trials(), &known), quick + 6.0 * 6.0 - 2.0 + 1.5 * 20.0);
    }

    #[test]
    fn cuts_take_as_long_as_those_of_their_kind_took() {
        let mut known = Known { prepared: keys(), ..Known::default() };
        let quick = seconds(&cuts(), &known);
        let plan = cuts().arms[0].crash.clone().unwrap();
        known.paces.add(cut_pace(cuts().data, &CrashPlan { end: End::Kill, ..plan.clone() }, 10, 120.0));
        assert_eq!(
            seconds(&cuts(), &known),
            quick + 2.0 * 36.0,
            "of another kind, where nothing else is known"
        );
        known.paces.add(cut_pace(cuts().data, &plan, 30, 72.0));
        assert_eq!(seconds(&cuts(), &known), quick + 36.0);
        known.paces.add(stint_pace(&cuts().arms[0], 13.0 + 5.0));
        assert_eq!(seconds(&cuts(), &known), quick + 36.0 + 4.0);
    }

    #[test]
    fn the_newest_paces_decide_and_none_is_beyond_reason() {
        let mut paces = Paces::default();
        paces.add(pace(Part::Trial, "rows", 1.0, 1e9));
        assert_eq!(paces.factor(Part::Trial, "rows"), 20.0);
        (0..KEPT).for_each(|_| paces.add(pace(Part::Trial, "rows", 4.0, 6.0)));
        assert_eq!(paces.factor(Part::Trial, "rows"), 1.5, "the first is forgotten");
        assert_eq!(paces.factor(Part::Cut, "rows"), 1.0);
        paces.add(pace(Part::Cut, "rows", 0.0, 5.0));
        assert_eq!(paces.factor(Part::Cut, "rows"), 1.0, "what was not planned tells nothing");
        let text = serde_json::to_string(&paces).unwrap();
        assert!(
            text.starts_with(r#"[{"part":"trial","kind":"rows","planned_s":4.0,"took_s":6.0}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Paces>(&text).unwrap(), paces);
    }
}
