//! `ebbtide run --documents`: the experiments of the public documents one after the other, and one report of what is left
//! of each document's claims.
//!
//! Each experiment has its results in a directory of its own, as if it had been run alone. What fails leaves a hole, and
//! the others go on. `documents.json` and the pages are written anew after each of them, so that a run that was ended can
//! be read, and resumed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ebbtide_catalog::Catalog;
use ebbtide_crash::CrashOptions;
use ebbtide_lab::documents::{
    DocumentExperiment, DocumentResults, ExperimentState, FILE, SCHEMA_VERSION, unmeasured,
};
use ebbtide_lab::experiment::{
    DocumentRun, Experiment, ExperimentError, check_without_server, documents, estimate, estimate_after,
};
use ebbtide_lab::page::documents::{FRONT, pages};
use ebbtide_lab::results::DATABASE;
use ebbtide_lab::run::{self as lab, Plan, RunOptions};
use ebbtide_lab::summary::{Document, JudgedClaim, NoReading};
use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;
use ebbtide_text::shell_words::quoted;

use super::status::span;
use super::{
    RunArgs, Shown, allowed, catalog, detect, directory_for, measured, refuse_experiment, show_missing,
    signals, write_whole,
};
use crate::answers::{self, DocumentsEnded, DocumentsPlan, PlannedExperiment};
use crate::cli::Command;
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::resume;
use crate::signals::cancel_on;
use crate::text::{TextTable, count, line, note};
use crate::version;

/// Whether a directory has results of the set.
pub(super) fn is_there(out: &Path) -> bool {
    out.join(FILE).is_file()
}

/// Runs the set.
pub(super) fn run(args: &RunArgs, place: &HomePath, json: bool) -> anyhow::Result<Exit> {
    if args.resume {
        let out = args.out.as_deref().expect("clap asks for it");
        return resume(args, out, json);
    }
    let seed = args.seed.unwrap_or_else(ebbtide_text::seed::fresh);
    if args.check {
        let server = super::unstarted(args.server.as_deref(), &[], &allowed(false).unstarted())?;
        return check(args.quick, seed, &catalog(place)?.0, server, json);
    }
    let server = detect(args.server.as_deref())?;
    let out = args.out.clone().unwrap_or_else(|| directory_for("documents"));
    if is_there(&out) {
        return Err(Refusal::usage(format!("{} holds results of the documents already", out.display()))
            .hint("name another directory, or go on with it: --resume --out DIR")
            .into());
    }
    let results = DocumentResults {
        schema_version: SCHEMA_VERSION,
        started_ns: lab::unix_ns(),
        command: command(args, place, seed),
        ebbtide: version::of_results(),
        quick: args.quick,
        seed,
        server: lab::program_facts(&server),
        experiments: Vec::new(),
    };
    let known = catalog(place)?.0;
    let mut made = BTreeSet::new();
    let experiments =
        documents().iter().map(|run| waiting(run, args.quick, seed, (&known, &server), &mut made));
    let results = DocumentResults { experiments: experiments.collect::<Result<_, _>>()?, ..results };
    Set::new(results, out, place, server, args.over_limit, json)?.run()
}

/// Goes on with the set in a directory, as it was begun.
pub(super) fn resume(args: &RunArgs, out: &Path, json: bool) -> anyhow::Result<Exit> {
    resume::refuse_changes(&super::changes(args)?)?;
    let path = out.join(FILE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let results = read(&path, &text)?;
    let begun = resume::begun(&results.command, out)?;
    let Command::Run(begun_with) = &begun.command else { return Err(resume::other_command(out)) };
    let place = &HomePath::of(&begun)?;
    let servers = allowed(args.allow_servers);
    let server = resume::server(args.server.as_deref(), &results.server, out, &servers)?;
    let over_limit = args.over_limit || begun_with.over_limit;
    Set::new(results, out.to_owned(), place, server, over_limit, json)?.run()
}

/// Reads the results of a set that goes on. Those of another version or of other experiments are refused.
fn read(path: &Path, text: &str) -> Result<DocumentResults, Refusal> {
    const HINT: &str = "begin anew in another directory";
    let file = path.display();
    let results: DocumentResults = serde_json::from_str(text)
        .map_err(|error| Refusal::environment(format!("{file} cannot be read: {error}")).hint(HINT))?;
    if results.schema_version != SCHEMA_VERSION || results.ebbtide != version::of_results() {
        let by = format!("{file} was written by another version, ebbtide {}", results.ebbtide);
        return Err(Refusal::usage(by).hint(HINT));
    }
    let named = results.experiments.iter().map(|one| one.name.as_str());
    if !named.eq(documents().iter().map(|run| run.name)) {
        let other = format!("{file} does not list the experiments of the documents; it was changed");
        return Err(Refusal::usage(other).hint(HINT));
    }
    Ok(results)
}

/// An experiment of the set as it would run on a server: those of the crash lab with their canaries.
fn planned(
    run: &DocumentRun,
    quick: bool,
    seed: u64,
    catalog: &Catalog,
    server: &Binary,
) -> Result<Plan, ExperimentError> {
    let experiment = run.load(quick, seed)?;
    if is_cut(&experiment) {
        return Ok(ebbtide_crash::plan(experiment, catalog, server)?.plan().clone());
    }
    lab::plan(experiment, catalog, server)
}

/// Whether it is for the crash lab.
fn is_cut(experiment: &Experiment) -> bool {
    experiment.arms.iter().any(|arm| arm.crash.is_some())
}

/// An experiment of the set that has not run. One that this server cannot run is a hole, and is tried again. `made` has the
/// data that those before it make.
fn waiting(
    run: &DocumentRun,
    quick: bool,
    seed: u64,
    (catalog, server): (&Catalog, &Binary),
    made: &mut BTreeSet<String>,
) -> anyhow::Result<DocumentExperiment> {
    let written = run.load(quick, seed).map_err(refuse_experiment)?;
    let plan = planned(run, quick, seed, catalog, server);
    let experiment = plan.map_or(written, |plan| plan.experiment());
    Ok(DocumentExperiment {
        name: run.name.to_owned(),
        title: experiment.title.clone(),
        state: ExperimentState::Waiting,
        estimate_s: estimate_after(&experiment, server, made).as_secs_f64(),
        took_s: 0.0,
        failed: None,
        claims: unmeasured(&experiment, &NoReading::NotRunYet),
    })
}

/// Prints what would run, and for how long, on a server that is not started; of one whose version is not known so, the
/// experiments as they are written.
fn check(
    quick: bool,
    seed: u64,
    catalog: &Catalog,
    server: Result<Binary, Vec<String>>,
    json: bool,
) -> anyhow::Result<Exit> {
    let mut all = Vec::new();
    let mut made = BTreeSet::new();
    let mut missing: Vec<String> = Vec::new();
    for run in documents() {
        let (experiment, estimate, lacks) = match &server {
            Ok(server) => {
                let plan = planned(run, quick, seed, catalog, server).map_err(refuse_experiment)?;
                let experiment = plan.experiment();
                let estimate = estimate_after(&experiment, server, &mut made);
                (experiment, estimate, lab::missing(&plan))
            }
            Err(_) => {
                let experiment = run.load(quick, seed).map_err(refuse_experiment)?;
                check_without_server(&experiment, catalog).map_err(refuse_experiment)?;
                let (estimate, lacks) = (estimate(&experiment), lab::missing_on_machine(&experiment));
                (experiment, estimate, lacks)
            }
        };
        for what in lacks {
            if !missing.contains(&what) {
                missing.push(what);
            }
        }
        let arms = experiment.arms.iter().map(|arm| arm.name.clone()).collect();
        all.push(PlannedExperiment {
            name: run.name,
            arms,
            claims: experiment.claims.len(),
            estimate_s: estimate.as_secs(),
        });
    }
    let total: u64 = all.iter().map(|one| one.estimate_s).sum();
    if json {
        let not_started = server.err().unwrap_or_default();
        answers::print(&DocumentsPlan {
            experiments: all,
            estimate_s: total,
            missing: &missing,
            not_started,
        });
    } else {
        let mut table = TextTable::new(&["EXPERIMENT", "ARMS", "CLAIMS", "ABOUT"]);
        for one in &all {
            let estimate = span(Duration::from_secs(one.estimate_s).as_secs_f64());
            table.row([one.name.to_owned(), one.arms.len().to_string(), one.claims.to_string(), estimate]);
        }
        line(&format!(
            "{}\n\n{}: about {}{}",
            table.text(),
            count(all.len(), "experiment"),
            span(total as f64),
            server.err().map_or(String::new(), |unknown| super::text::not_started(&unknown))
        ));
    }
    Ok(show_missing(&missing, json))
}

/// The set while it runs.
struct Set<'a> {
    results: DocumentResults,
    out: PathBuf,
    place: &'a HomePath,
    home: PathBuf,
    server: Binary,
    catalog: Catalog,
    overrides: Option<String>,
    over_limit: bool,
    json: bool,
}

/// What became of an experiment of the set.
struct Ended {
    claims: Vec<JudgedClaim>,
    /// Whether everything was measured.
    whole: bool,
    /// Whether the user ended it.
    cancelled: bool,
}

impl<'a> Set<'a> {
    fn new(
        results: DocumentResults,
        out: PathBuf,
        place: &'a HomePath,
        server: Binary,
        over_limit: bool,
        json: bool,
    ) -> anyhow::Result<Self> {
        let (catalog, overrides) = catalog(place)?;
        let home = place.made()?.root().to_owned();
        std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
        Ok(Self { results, out, place, home, server, catalog, overrides, over_limit, json })
    }

    fn run(mut self) -> anyhow::Result<Exit> {
        let cancel = cancel_on(signals())?;
        let left: f64 = self.left().map(|one| one.estimate_s).sum();
        self.say(&format!(
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
            cancelled = self.experiment(place, &cancel);
            self.write()?;
        }
        self.ended(cancelled)
    }

    /// Those that are not whole.
    fn left(&self) -> impl Iterator<Item = &DocumentExperiment> {
        self.results.experiments.iter().filter(|one| one.state != ExperimentState::Whole)
    }

    /// Runs an experiment, and takes up what it came to. Answers with whether the user ended it.
    fn experiment(&mut self, place: usize, cancel: &Cancel) -> bool {
        let run = documents()[place];
        let (quick, seed) = (self.results.quick, self.results.seed);
        let number = format!("{} of {}", place + 1, self.results.experiments.len());
        self.results.experiments[place].state = ExperimentState::Partly;
        let after = self.results.left_s().filter(|left| *left > 0.0);
        let after = after.map_or_else(String::new, |left| format!("; after it about {}", span(left)));
        let estimate = span(self.results.experiments[place].estimate_s);
        self.say(&format!("\nexperiment {number}, {}: about {estimate}{after}", run.name));
        let prefix = format!("[{number}{after}] ");
        let began = Instant::now();
        let ended = self.measure(&run, Shown { json: self.json, prefix: &prefix }, cancel);
        let one = &mut self.results.experiments[place];
        one.took_s += began.elapsed().as_secs_f64();
        match ended {
            Ok(Some(ended)) => {
                one.claims = ended.claims;
                one.state = if ended.whole { ExperimentState::Whole } else { ExperimentState::Partly };
                let lacks = "some of its trials failed, were disqualified or are missing";
                one.failed = (!ended.whole).then(|| lacks.to_owned());
                ended.cancelled
            }
            Ok(None) => {
                (one.state, one.failed) = (ExperimentState::Waiting, None);
                true
            }
            Err(error) => {
                let why = format!("{error:#}");
                note(&format!("{}: {why}; the other experiments go on", run.name));
                if let Ok(experiment) = run.load(quick, seed) {
                    one.claims = unmeasured(&experiment, &NoReading::NoResults(why.clone()));
                }
                (one.state, one.failed) = (ExperimentState::Failed, Some(why));
                cancel.is_cancelled()
            }
        }
    }

    /// Runs an experiment by its lab; None where it was ended before anything was measured.
    fn measure(&self, run: &DocumentRun, shown: Shown<'_>, cancel: &Cancel) -> anyhow::Result<Option<Ended>> {
        let experiment = run.load(self.results.quick, self.results.seed).map_err(refuse_experiment)?;
        let out = self.out.join(run.name);
        let resume = out.join(DATABASE).exists();
        let command = self.command(run, &experiment);
        let (home, ebbtide) = (self.home.clone(), version::of_results());
        let overrides = self.overrides.clone();
        if is_cut(&experiment) {
            let plan =
                ebbtide_crash::plan(experiment, &self.catalog, &self.server).map_err(refuse_experiment)?;
            let options = CrashOptions {
                home,
                server_named: Some(self.server.path.display().to_string()),
                out,
                resume,
                overrides,
                checkers: None,
                command,
                ebbtide,
            };
            // What the risk gains is an experiment of the set.
            let cut = crate::crash::measured(plan, options, None, cancel, shown)?;
            return Ok(cut.map(|cut| Ended {
                whole: cut.is_whole(),
                cancelled: cut.cancelled.is_some(),
                claims: cut.summary.claims,
            }));
        }
        let plan = lab::plan(experiment, &self.catalog, &self.server).map_err(refuse_experiment)?;
        let over_limit = self.over_limit;
        let options = RunOptions { home, out, resume, overrides, over_limit, command, ebbtide };
        let measured = measured(plan, options, &[], cancel, shown)?;
        Ok(measured.map(|measured| Ended {
            whole: measured.is_whole(),
            cancelled: measured.cancelled.is_some(),
            claims: measured.summary.claims,
        }))
    }

    /// The command that runs one experiment of the set again.
    fn command(&self, run: &DocumentRun, experiment: &Experiment) -> String {
        let lab = if is_cut(experiment) { "crash" } else { "run" };
        let (home, server) =
            (self.place.path().display().to_string(), self.server.path.display().to_string());
        again(run, self.results.quick, self.results.seed, lab, &home, &server, self.over_limit)
    }

    /// Writes results and pages, each whole or not at all.
    fn write(&self) -> anyhow::Result<()> {
        let json = serde_json::to_string(&self.results).context("the results are plain data")? + "\n";
        let files = pages(&self.results).into_iter().chain([(FILE.to_owned(), json)]);
        for (name, text) in files {
            write_whole(&self.out, &name, &text)?;
        }
        Ok(())
    }

    fn ended(&self, cancelled: bool) -> anyhow::Result<Exit> {
        let absolute = |name: &str| {
            let file = self.out.join(name);
            std::path::absolute(&file).unwrap_or(file)
        };
        let report = absolute(FRONT);
        if self.json {
            let results = absolute(FILE);
            answers::print(&DocumentsEnded {
                directory: &self.out,
                report: &report,
                results: &results,
                documents: &self.results,
            });
        } else {
            line(&format!("\n{}\nreport: {}", table(&self.results), report.display()));
        }
        for one in self.left().filter(|one| one.state == ExperimentState::Failed) {
            note(&format!("{} failed: {}", one.name, one.failed.as_deref().unwrap_or_default()));
        }
        if cancelled || !self.results.is_whole() {
            note(&format!(
                "go on with what is missing: {}",
                resume::command("run", &self.out, &self.results.server)
            ));
        }
        Ok(if self.results.is_whole() { Exit::Clean } else { Exit::Finding })
    }

    fn say(&self, text: &str) {
        if self.json { note(text) } else { line(text) }
    }
}

/// How many claims of each document have each verdict.
fn table(results: &DocumentResults) -> String {
    let mut table = TextTable::new(&[
        "DOCUMENT",
        "REPRODUCED",
        "NOT",
        "UNDECIDED",
        "CONTRADICTED",
        "UNTESTABLE",
        "IN FULL ONLY",
        "NOT MEASURED",
    ]);
    for document in Document::ALL {
        let counts = results.counts(Some(document));
        let of = |words: &str| counts.get(words).copied().unwrap_or(0).to_string();
        table.row([
            document.key().to_owned(),
            of("reproduced"),
            of("not reproduced"),
            of("undecided"),
            of("contradicted by its own tables"),
            of("not testable here"),
            of("not in the short form"),
            of("not measured"),
        ]);
    }
    table.text()
}

/// The command that runs one experiment of the set again, in one of the labs.
fn again(
    run: &DocumentRun,
    quick: bool,
    seed: u64,
    lab: &str,
    home: &str,
    server: &str,
    over_limit: bool,
) -> String {
    let changes = run.overrides(quick, seed);
    let mut words = vec![format!("ebbtide {lab} {}", quoted(run.name)), format!("--home {}", quoted(home))];
    words.extend(
        changes.set.iter().map(|(path, value)| format!("--set {}", quoted(&format!("{path}={value}")))),
    );
    words.push(format!("--server {}", quoted(server)));
    if !changes.arms.is_empty() {
        words.push(format!("--arms {}", quoted(&changes.arms.join(","))));
    }
    words.push(format!("--seed {seed}"));
    words.extend(quick.then(|| "--quick".to_owned()));
    let is_cut = lab == "crash";
    words.extend(is_cut.then(|| "--no-gain".to_owned()));
    words.extend((!is_cut && over_limit).then(|| "--over-limit".to_owned()));
    words.join(" ")
}

/// The command that runs the set again.
fn command(args: &RunArgs, place: &HomePath, seed: u64) -> String {
    let mut words = vec!["ebbtide run --documents".to_owned()];
    words.push(format!("--home {}", quoted(&place.path().display().to_string())));
    words.extend(args.server.iter().map(|path| format!("--server {}", quoted(&path.display().to_string()))));
    words.push(format!("--seed {seed}"));
    words.extend(args.quick.then(|| "--quick".to_owned()));
    words.extend(args.over_limit.then(|| "--over-limit".to_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use ebbtide_mysql::{Flavour, Version};

    use super::*;

    fn mariadb() -> Binary {
        let version = Version { major: 10, minor: 11, patch: 19 };
        let text = "mariadbd  Ver 10.11.19-MariaDB".to_owned();
        Binary { path: "/usr/sbin/mariadbd".into(), flavour: Flavour::MariaDb, version, text }
    }

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
            ebbtide: version::of_results(),
            quick: true,
            seed: 1,
            server: lab::program_facts(&mariadb()),
            experiments: documents().iter().map(|run| experiment(run.name)).collect(),
        };
        let tried = |results: &DocumentResults| {
            read(Path::new("documents.json"), &serde_json::to_string(results).unwrap())
        };
        assert_eq!(tried(&results).unwrap(), results);
        let (mut renamed, mut shorter, mut longer) = (results.clone(), results.clone(), results.clone());
        renamed.experiments[0].name = "other".to_owned();
        shorter.experiments.pop();
        longer.experiments.push(experiment("one-more"));
        for changed in [renamed, shorter, longer] {
            assert_eq!(tried(&changed).unwrap_err().exit, Exit::Usage);
        }
        let elsewhere = DocumentResults { ebbtide: "0.0.1".to_owned(), ..results };
        assert_eq!(tried(&elsewhere).unwrap_err().exit, Exit::Usage);
        let cut = read(Path::new("documents.json"), "{").unwrap_err();
        assert_eq!(cut.exit, Exit::Environment);
    }

    #[test]
    fn the_short_forms_end_within_an_hour_on_two_cores_by_their_estimates() {
        let (catalog, server) = (Catalog::builtin(), mariadb());
        let mut made = BTreeSet::new();
        let mut seconds = |run: &DocumentRun| {
            let experiment = planned(run, true, 1, &catalog, &server).unwrap().experiment();
            (run.name, estimate_after(&experiment, &server, &mut made).as_secs())
        };
        let each: Vec<(&str, u64)> = documents().iter().map(&mut seconds).collect();
        let all: u64 = each.iter().map(|(_, seconds)| seconds).sum();
        println!("{all} s: {each:?}");
        assert!(all <= 3600, "{all} s: {each:?}");
    }

    #[test]
    fn the_command_of_an_experiment_is_one_that_the_program_takes() {
        use clap::Parser as _;
        for run in documents() {
            let experiment = run.load(true, 7).unwrap();
            let lab = if is_cut(&experiment) { "crash" } else { "run" };
            let words = again(run, true, 7, lab, "/srv/my home", "/usr/sbin/mariadbd", false);
            let cli = crate::cli::Cli::try_parse_from(ebbtide_text::shell_words::unquoted(&words).unwrap())
                .unwrap();
            let changes = match &cli.command {
                Command::Run(args) => super::super::changes(args).unwrap(),
                Command::Crash(args) => crate::crash::changes(args).unwrap(),
                other => panic!("{other:?}"),
            };
            assert_eq!(changes, run.overrides(true, 7), "{words}");
        }
    }
}
