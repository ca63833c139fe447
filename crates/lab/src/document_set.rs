//! The experiments of the public documents one after the other, and one report of what is left of each document's claims.
//!
//! Each experiment has its results in a directory of its own, as if it had been run alone. What fails leaves a hole, and the
//! others go on. `documents.json` and the pages are written anew after each of them, so that a run that was ended can be read,
//! and resumed. Which lab runs an experiment is the caller's ([`Labs`]): some of them cut power.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;
use ebbtide_report::{Block, Cell, Report, Section, Table};
use ebbtide_text::count;
use ebbtide_text::shell_words::quoted;

use crate::documents::{
    DocumentExperiment, DocumentResults, ExperimentState, FILE, SCHEMA_VERSION, unmeasured,
};
use crate::experiment::{DocumentRun, Experiment, ExperimentError, Known, documents, estimate_after};
use crate::page::documents::pages;
use crate::results::ResultsError;
use crate::results::file::write_whole;
use crate::summary::{Document, JudgedClaim, NoReading};
use crate::words::span;

/// Whether a directory has results of the set.
#[must_use]
pub fn is_there(out: &Path) -> bool {
    out.join(FILE).is_file()
}

/// Results with which a set does not go on.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// They are none.
    #[error("{} cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Another version of the program wrote them.
    #[error("{} was written by another version, ebbtide {version}", file.display())]
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// The version.
        version: String,
    },
    /// They have other experiments.
    #[error("{} does not list the experiments of the documents; it was changed", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
}

/// Reads the results of a set that goes on, in a program of this version.
///
/// # Errors
/// Those of another version or of other experiments are refused.
pub fn read(path: &Path, text: &str, version: &str) -> Result<DocumentResults, SetError> {
    let file = || path.to_path_buf();
    let results: DocumentResults =
        serde_json::from_str(text).map_err(|source| SetError::Unreadable { file: file(), source })?;
    if results.schema_version != SCHEMA_VERSION || results.ebbtide != version {
        return Err(SetError::OtherVersion { file: file(), version: results.ebbtide });
    }
    let named = results.experiments.iter().map(|experiment| experiment.name.as_str());
    if !named.eq(documents().iter().map(|run| run.name)) {
        return Err(SetError::Changed { file: file() });
    }
    Ok(results)
}

/// How an experiment of the set is planned and run.
pub trait Labs {
    /// The experiment as it would run on the server of the set.
    ///
    /// # Errors
    /// This server cannot run it.
    fn planned(&self, experiment: Experiment) -> Result<Experiment, ExperimentError>;

    /// Runs an experiment; None where it was ended before anything was measured.
    ///
    /// # Errors
    /// Why it has no results, in words.
    fn measure(&self, step: &Step<'_>, cancel: &Cancel) -> Result<Option<Ended>, String>;
}

/// An experiment of the set that runs now.
#[derive(Debug)]
pub struct Step<'a> {
    /// Which of the set.
    pub run: &'a DocumentRun,
    /// The experiment as it is written.
    pub experiment: &'a Experiment,
    /// Where its results go.
    pub out: PathBuf,
    /// What a status line has before every text.
    pub prefix: &'a str,
}

/// What became of an experiment of the set.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Its claims.
    pub claims: Vec<JudgedClaim>,
    /// Whether everything was measured.
    pub whole: bool,
    /// Whether the user ended it.
    pub cancelled: bool,
}

/// The experiments of a set that has not begun, in a home that knows something. One that this server cannot run is a hole, and is
/// tried again.
///
/// # Errors
/// A shipped experiment that cannot be read.
pub fn waiting(
    quick: bool,
    seed: u64,
    labs: &dyn Labs,
    server: &Binary,
    mut known: Known,
) -> Result<Vec<DocumentExperiment>, ExperimentError> {
    let mut experiment = |run: &DocumentRun| {
        let written = run.load(quick, seed)?;
        let experiment = labs.planned(written.clone()).unwrap_or(written);
        Ok(DocumentExperiment {
            name: run.name.to_owned(),
            title: experiment.title.clone(),
            state: ExperimentState::Waiting,
            estimate_s: estimate_after(&experiment, server, &mut known).as_secs_f64(),
            took_s: 0.0,
            failed: None,
            claims: unmeasured(&experiment, &NoReading::NotRunYet),
        })
    };
    documents().iter().map(&mut experiment).collect()
}

/// The set while it runs.
#[derive(Debug)]
pub struct DocumentSet {
    /// What it came to so far.
    pub results: DocumentResults,
    /// The directory of the results.
    pub out: PathBuf,
}

impl DocumentSet {
    /// Runs what is not whole; `say` gets lines for people. Answers with whether the user ended it.
    ///
    /// # Errors
    /// Results that cannot be written.
    pub fn run(
        &mut self,
        labs: &dyn Labs,
        cancel: &Cancel,
        say: &dyn Fn(&str),
        note: &dyn Fn(&str),
    ) -> Result<bool, ResultsError> {
        let left: f64 = self.left().map(|experiment| experiment.estimate_s).sum();
        say(&format!(
            "{}, {} left: about {}; results: {}",
            count(self.results.experiments.len(), "experiment"),
            self.left().count(),
            span(left),
            self.out.display()
        ));
        self.write()?;
        let mut cancelled = false;
        for place in 0..self.results.experiments.len() {
            if self.results.experiments[place].state == ExperimentState::Whole || cancelled {
                continue;
            }
            cancelled = self.experiment(place, labs, cancel, say, note);
            self.write()?;
        }
        Ok(cancelled)
    }

    /// Those that are not whole.
    pub fn left(&self) -> impl Iterator<Item = &DocumentExperiment> {
        self.results.experiments.iter().filter(|experiment| experiment.state != ExperimentState::Whole)
    }

    /// Runs an experiment, and takes up what it came to. Answers with whether the user ended it.
    fn experiment(
        &mut self,
        place: usize,
        labs: &dyn Labs,
        cancel: &Cancel,
        say: &dyn Fn(&str),
        note: &dyn Fn(&str),
    ) -> bool {
        let run = documents()[place];
        let (quick, seed) = (self.results.quick, self.results.seed);
        let number = format!("{} of {}", place + 1, self.results.experiments.len());
        self.results.experiments[place].state = ExperimentState::Partly;
        let after = self.results.left_s().filter(|left| *left > 0.0);
        let after = after.map_or_else(String::new, |left| format!("; after it about {}", span(left)));
        let estimate = span(self.results.experiments[place].estimate_s);
        say(&format!("\nexperiment {number}, {}: about {estimate}{after}", run.name));
        let prefix = format!("[{number}{after}] ");
        let began = Instant::now();
        let written = run.load(quick, seed);
        let ended = match &written {
            Ok(experiment) => {
                let out = self.out.join(run.name);
                labs.measure(&Step { run: &run, experiment, out, prefix: &prefix }, cancel)
            }
            Err(error) => Err(error.to_string()),
        };
        let result = &mut self.results.experiments[place];
        result.took_s += began.elapsed().as_secs_f64();
        match ended {
            Ok(Some(ended)) => {
                result.claims = ended.claims;
                result.state = if ended.whole { ExperimentState::Whole } else { ExperimentState::Partly };
                let lacks = "some of its trials failed, were disqualified or are missing";
                result.failed = (!ended.whole).then(|| lacks.to_owned());
                ended.cancelled
            }
            Ok(None) => {
                (result.state, result.failed) = (ExperimentState::Waiting, None);
                true
            }
            Err(why) => {
                note(&format!("{}: {why}; the other experiments go on", run.name));
                if let Ok(experiment) = &written {
                    result.claims = unmeasured(experiment, &NoReading::NoResults(why.clone()));
                }
                (result.state, result.failed) = (ExperimentState::Failed, Some(why));
                cancel.is_cancelled()
            }
        }
    }

    /// Writes results and pages, each whole or not at all.
    fn write(&self) -> Result<(), ResultsError> {
        let json = serde_json::to_string(&self.results).expect("the results are plain data") + "\n";
        let files = pages(&self.results).into_iter().chain([(FILE.to_owned(), json)]);
        files.into_iter().try_for_each(|(name, text)| write_whole(&self.out, &name, &text))
    }
}

/// How many claims of each document have each verdict, as a document.
#[must_use]
pub fn answer(results: &DocumentResults) -> Report {
    const VERDICTS: [(&str, &str); 7] = [
        ("Reproduced", "reproduced"),
        ("Not", "not reproduced"),
        ("Undecided", "undecided"),
        ("Contradicted", "contradicted by its own tables"),
        ("Untestable", "not testable here"),
        ("In full only", "not in the short form"),
        ("Not measured", "not measured"),
    ];
    let number =
        |document: Option<Document>, words: &str| results.counts(document).get(words).copied().unwrap_or(0);
    let row = |document: Document| {
        let counts = VERDICTS.map(|(_, words)| Cell::from(number(Some(document), words).to_string()));
        std::iter::once(Cell::from(document.key())).chain(counts).collect()
    };
    let (reproduced, not) = (number(None, "reproduced"), number(None, "not reproduced"));
    let answer = format!(
        "{reproduced} of the {} that the measurements decide are reproduced.",
        count(reproduced + not, "claim")
    );
    let heads = std::iter::once("Document").chain(VERDICTS.map(|(head, _)| head));
    let table = Table {
        columns: heads.map(str::to_owned).collect(),
        rows: Document::ALL.into_iter().map(row).collect(),
        spare: vec![6, 5, 4],
        ..Table::default()
    };
    let blocks = vec![Block::Findings(vec![answer]), Block::Table(table)];
    Report { sections: vec![Section::new("", blocks)], ..Report::default() }
}

/// What would run, as a document: each experiment with its arms, claims and time.
#[must_use]
pub fn plan<'a>(experiments: impl IntoIterator<Item = (&'a str, usize, usize, u64)>) -> Report {
    let mut total = 0;
    let row = |(name, arms, claims, estimate_s): (&str, usize, usize, u64)| {
        total += estimate_s;
        let estimate = span(Duration::from_secs(estimate_s).as_secs_f64());
        [name.to_owned(), arms.to_string(), claims.to_string(), estimate].map(Cell::from).to_vec()
    };
    let rows: Vec<Vec<Cell>> = experiments.into_iter().map(row).collect();
    let answer = format!("{}: about {}.", count(rows.len(), "experiment"), span(total as f64));
    let table = Table {
        columns: ["Experiment", "Arms", "Claims", "About"].map(str::to_owned).to_vec(),
        rows,
        ..Table::default()
    };
    let blocks = vec![Block::Findings(vec![answer]), Block::Table(table)];
    Report { sections: vec![Section::new("", blocks)], ..Report::default() }
}

/// Where the set runs, for the commands that repeat parts of it.
#[derive(Debug, Clone, Copy)]
pub struct SetPlace<'a> {
    /// The home.
    pub home: &'a str,
    /// The server's program.
    pub server: &'a str,
    /// Whether a host that is slower than the volumes promise may run it.
    pub over_limit: bool,
}

/// The command that runs one experiment of the set again, in its lab.
#[must_use]
pub fn again(run: &DocumentRun, quick: bool, seed: u64, cut: bool, place: SetPlace<'_>) -> String {
    let changes = run.overrides(quick, seed);
    let lab = if cut { "crash" } else { "run" };
    let mut words =
        vec![format!("ebbtide {lab} {}", quoted(run.name)), format!("--home {}", quoted(place.home))];
    words.extend(
        changes.set.iter().map(|(path, value)| format!("--set {}", quoted(&format!("{path}={value}")))),
    );
    words.push(format!("--server {}", quoted(place.server)));
    if !changes.arms.is_empty() {
        words.push(format!("--arms {}", quoted(&changes.arms.join(","))));
    }
    words.push(format!("--seed {seed}"));
    words.extend(quick.then(|| "--quick".to_owned()));
    words.extend(cut.then(|| "--no-gain".to_owned()));
    words.extend((!cut && place.over_limit).then(|| "--over-limit".to_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerFacts;

    #[test]
    fn results_that_were_changed_by_hand_or_come_from_another_version_are_not_gone_on_with() {
        let experiment = |name: &str| DocumentExperiment {
            name: name.to_owned(),
            title: String::new(),
            state: ExperimentState::Waiting,
            estimate_s: 1.0,
            took_s: 0.0,
            failed: None,
            claims: Vec::new(),
        };
        let results = DocumentResults {
            schema_version: SCHEMA_VERSION,
            started_ns: 0,
            command: String::new(),
            ebbtide: "0.1.0".to_owned(),
            quick: true,
            seed: 1,
            server: ServerFacts::default(),
            experiments: documents().iter().map(|run| experiment(run.name)).collect(),
        };
        let tried = |results: &DocumentResults| {
            read(Path::new("documents.json"), &serde_json::to_string(results).unwrap(), "0.1.0")
        };
        assert_eq!(tried(&results).unwrap(), results);
        let (mut renamed, mut shorter, mut longer) = (results.clone(), results.clone(), results.clone());
        renamed.experiments[0].name = "other".to_owned();
        shorter.experiments.pop();
        longer.experiments.push(experiment("one-more"));
        for changed in [renamed, shorter, longer] {
            assert!(matches!(tried(&changed), Err(SetError::Changed { .. })));
        }
        let elsewhere = DocumentResults { ebbtide: "0.0.1".to_owned(), ..results };
        assert!(matches!(tried(&elsewhere), Err(SetError::OtherVersion { .. })));
        let cut = read(Path::new("documents.json"), "{", "0.1.0");
        assert!(matches!(cut, Err(SetError::Unreadable { .. })));
    }
}
