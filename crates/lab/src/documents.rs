//! The results of the documents' set: what each of its experiments came to, with the claims that it decides. Plain data,
//! from which the pages are made.

use std::collections::BTreeMap;

use ebbtide_analysis::claim::{
    ArmIo, ClaimMetric, ClaimPhase, ClaimTest, Document, Evidence, JudgedClaim, NoReading, Reading, judge,
};
use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::record::ServerFacts;

/// Version of the form of `documents.json`.
pub const SCHEMA_VERSION: u32 = 1;

/// The file of the results in the directory of the set.
pub const FILE: &str = "documents.json";

/// The results of the set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentResults {
    /// Version of this form.
    pub schema_version: u32,
    /// When it began, ns since 1970.
    pub started_ns: u64,
    /// The command that runs it again.
    pub command: String,
    /// The program's version.
    pub ebbtide: String,
    /// Whether the experiments run in their short forms.
    pub quick: bool,
    /// The seed of all experiments.
    pub seed: u64,
    /// The server; its options are in the results of each experiment.
    pub server: ServerFacts,
    /// The experiments, in the order in which they run.
    pub experiments: Vec<DocumentExperiment>,
}

/// An experiment of the set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentExperiment {
    /// Its name; its results are in a directory of this name.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// How far it has come.
    pub state: ExperimentState,
    /// How long it was estimated to take, s.
    pub estimate_s: f64,
    /// How long it took, in all of its parts where it was resumed, s.
    pub took_s: f64,
    /// Why it has no results, or not all; none where it has all or has not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// What documents claim about it, with what was measured; not measured where it has no results.
    pub claims: Vec<JudgedClaim>,
}

/// How far an experiment has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentState {
    /// It has not run.
    Waiting,
    /// It has results, and lacks some trials.
    Partly,
    /// Everything was measured.
    Whole,
    /// It has no results.
    Failed,
}

impl DocumentExperiment {
    /// Whether it has a report.
    #[must_use]
    pub const fn has_report(&self) -> bool {
        matches!(self.state, ExperimentState::Partly | ExperimentState::Whole)
    }

    /// Its report, from the directory of the set.
    #[must_use]
    pub fn report(&self) -> String {
        format!("{}/report.html", self.name)
    }
}

impl DocumentResults {
    /// The claims of a document, with the experiments that decide them.
    pub fn claims(&self, document: Document) -> impl Iterator<Item = (&DocumentExperiment, &JudgedClaim)> {
        let all = self.experiments.iter().flat_map(|one| one.claims.iter().map(move |claim| (one, claim)));
        all.filter(move |(_, judged)| judged.claim.document == document)
    }

    /// How many claims have each verdict, in the words of the verdicts; of one document, or of all.
    #[must_use]
    pub fn counts(&self, document: Option<Document>) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        let claims = self.experiments.iter().flat_map(|one| &one.claims);
        for judged in claims.filter(|one| document.is_none_or(|document| one.claim.document == document)) {
            *counts.entry(judged.verdict.words()).or_default() += 1;
        }
        counts
    }

    /// Whether every experiment was measured whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.experiments.iter().all(|one| one.state == ExperimentState::Whole)
    }

    /// Time for the experiments that wait, s: their estimates, by how much those that ended exceeded theirs. None before one
    /// has ended.
    #[must_use]
    pub fn left_s(&self) -> Option<f64> {
        let ended = || self.experiments.iter().filter(|one| one.state == ExperimentState::Whole);
        let (planned, took): (f64, f64) =
            (ended().map(|one| one.estimate_s).sum(), ended().map(|one| one.took_s).sum());
        let waiting = self.experiments.iter().filter(|one| one.state == ExperimentState::Waiting);
        (planned > 0.0).then(|| waiting.map(|one| one.estimate_s).sum::<f64>() * took / planned)
    }
}

/// The claims of an experiment that has no results, each with `why`. Those that its short form does not
/// decide say so, whatever became of it.
#[must_use]
pub fn unmeasured(experiment: &Experiment, why: &NoReading) -> Vec<JudgedClaim> {
    let judged = experiment.claims.iter().map(|claim| {
        let mut judged = judge(claim, &Nothing(why));
        judged.refer_to_full_form(|arms| experiment.full_form(arms));
        judged
    });
    judged.collect()
}

/// No results, and why.
struct Nothing<'a>(&'a NoReading);

impl Evidence for Nothing<'_> {
    fn reading(&self, _: &str, _: ClaimMetric, _: &[ClaimPhase]) -> Result<Reading, NoReading> {
        Err(self.0.clone())
    }

    fn ratio(&self, _: &ClaimTest, _: &str) -> Option<Reading> {
        None
    }

    fn io(&self, _: &str, _: &[ClaimPhase]) -> ArmIo {
        ArmIo::default()
    }
}
