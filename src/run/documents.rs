//! `ebbtide run --documents`: the set of [`ebbtide_lab::document_set`] on the command line, with the lab that runs each experiment.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ebbtide_catalog::Catalog;
use ebbtide_crash::CrashOptions;
use ebbtide_lab::document_set::{
    DocumentSet, Ended, Labs, SetError, SetPlace, Step, again, answer, is_there, plan as plan_of_set, read,
    waiting,
};
use ebbtide_lab::documents::{DocumentResults, ExperimentState, FILE, SCHEMA_VERSION};
use ebbtide_lab::experiment::{
    Experiment, ExperimentError, Known, check_without_server, documents, estimate_anew,
};
use ebbtide_lab::page::documents::FRONT;
use ebbtide_lab::results::DATABASE;
use ebbtide_lab::run::{self as lab, Plan, RunOptions};
use ebbtide_lab::words::plan::not_started;
use ebbtide_load::Cancel;
use ebbtide_mysql::Binary;
use ebbtide_report::TextOptions;
use ebbtide_text::shell_words::quoted;

use super::{
    RunArgs, Shown, allowed, catalog, detect, directory_for, measured, refuse_experiment, refuse_results,
    show_missing,
};
use crate::answers::{self, DocumentsEnded, DocumentsPlan, PlannedExperiment};
use crate::cli::Command;
use crate::document::print;
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::resume;
use crate::signals::{cancel_on, signals};
use crate::text::{line, note, write};
use crate::version;

/// Runs the set.
pub(super) fn run(args: &RunArgs, place: &HomePath, text: TextOptions, json: bool) -> anyhow::Result<Exit> {
    if args.resume {
        let out = args.out.as_deref().expect("clap asks for it");
        return resume(args, place, out, text, json);
    }
    let seed = args.seed.unwrap_or_else(ebbtide_text::seed::fresh);
    if args.check {
        let server = super::unstarted(args.server.as_deref(), &[], &allowed(false).unstarted())?;
        let known = lab::known(place.path());
        return check((args.quick, seed), &catalog(place)?.0, server, known, text, json);
    }
    let server = detect(args.server.as_deref())?;
    let out = args.out.clone().unwrap_or_else(|| directory_for("documents"));
    if is_there(&out) {
        return Err(Refusal::usage(format!("{} holds results of the documents already", out.display()))
            .hint("name another directory, or go on with it: --resume --out DIR")
            .into());
    }
    let (catalog, overrides) = catalog(place)?;
    let (quick, over_limit, home) = (args.quick, args.over_limit, place.made()?.root().to_owned());
    let known = lab::known(&home);
    let labs = SetLabs { place, home, server, catalog, overrides, quick, seed, over_limit, json };
    let results = DocumentResults {
        schema_version: SCHEMA_VERSION,
        started_ns: lab::unix_ns(),
        command: command(args, place, seed),
        ebbtide: version::of_results(),
        quick,
        seed,
        server: lab::program_facts(&labs.server),
        experiments: waiting(quick, seed, &labs, &labs.server, known).map_err(refuse_experiment)?,
    };
    labs.run_set(results, out, text)
}

/// Goes on with the set in a directory, as it was begun.
pub(super) fn resume(
    args: &RunArgs,
    own: &HomePath,
    out: &Path,
    text: TextOptions,
    json: bool,
) -> anyhow::Result<Exit> {
    resume::refuse_changes(&super::changes(args)?)?;
    let path = out.join(FILE);
    let file = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let results = read(&path, &file, &version::of_results()).map_err(|error| refuse_set(&error))?;
    let begun = resume::begun(&results.command, out)?;
    let Command::Run(begun_with) = &begun.command else { return Err(resume::other_command(out)) };
    let place = &resume::home(&begun, own, out)?;
    let servers = allowed(args.allow_servers);
    let server = resume::server(args.server.as_deref(), &results.server, out, &servers)?;
    let over_limit = args.over_limit || begun_with.over_limit;
    let (catalog, overrides) = catalog(place)?;
    let (quick, seed, home) = (results.quick, results.seed, place.made()?.root().to_owned());
    let labs = SetLabs { place, home, server, catalog, overrides, quick, seed, over_limit, json };
    labs.run_set(results, out.to_owned(), text)
}

/// Results that a set does not go on with.
fn refuse_set(error: &SetError) -> anyhow::Error {
    let refusal = match error {
        SetError::Unreadable { .. } => Refusal::environment(error.to_string()),
        SetError::OtherVersion { .. } | SetError::Changed { .. } => Refusal::usage(error.to_string()),
    };
    refusal.hint("begin anew in another directory").into()
}

/// An experiment of the set as it would run on a server: those of the crash lab with their canaries.
fn planned(experiment: Experiment, catalog: &Catalog, server: &Binary) -> Result<Plan, ExperimentError> {
    if experiment.is_cut() {
        return Ok(ebbtide_crash::plan(experiment, catalog, server)?.plan().clone());
    }
    lab::plan(experiment, catalog, server)
}

/// Prints what would run, and for how long, on a server that is not started; of one whose version is not known so, the
/// experiments as they are written.
fn check(
    (quick, seed): (bool, u64),
    catalog: &Catalog,
    server: Result<Binary, Vec<String>>,
    mut known: Known,
    text: TextOptions,
    json: bool,
) -> anyhow::Result<Exit> {
    let mut all = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    for run in documents() {
        let (experiment, estimate, lacks) = match &server {
            Ok(server) => {
                let written = run.load(quick, seed).map_err(refuse_experiment)?;
                let plan = planned(written, catalog, server).map_err(refuse_experiment)?;
                let experiment = plan.experiment();
                let estimate = super::estimate_of(&plan, &mut known);
                (experiment, estimate, lab::missing(&plan))
            }
            Err(_) => {
                let experiment = run.load(quick, seed).map_err(refuse_experiment)?;
                check_without_server(&experiment, catalog).map_err(refuse_experiment)?;
                let (estimate, lacks) =
                    (estimate_anew(&experiment, &known.paces), lab::missing_on_machine(&experiment));
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
        let rows = all.iter().map(|run| (run.name, run.arms.len(), run.claims, run.estimate_s));
        write(&plan_of_set(rows).to_text(text))?;
        server.err().iter().for_each(|unknown| line(not_started(unknown).trim_start_matches('\n')));
    }
    Ok(show_missing(&missing, json))
}

/// The labs that run the experiments of a set.
struct SetLabs<'a> {
    place: &'a HomePath,
    home: PathBuf,
    server: Binary,
    catalog: Catalog,
    overrides: Option<String>,
    quick: bool,
    seed: u64,
    over_limit: bool,
    json: bool,
}

impl Labs for SetLabs<'_> {
    fn planned(&self, experiment: Experiment) -> Result<Experiment, ExperimentError> {
        planned(experiment, &self.catalog, &self.server).map(|plan| plan.experiment())
    }

    fn measure(&self, step: &Step<'_>, cancel: &Cancel) -> Result<Option<Ended>, String> {
        self.run(step, cancel).map_err(|error| format!("{error:#}"))
    }
}

impl SetLabs<'_> {
    /// Runs an experiment by its lab.
    fn run(&self, step: &Step<'_>, cancel: &Cancel) -> anyhow::Result<Option<Ended>> {
        let (experiment, out) = (step.experiment.clone(), step.out.clone());
        let resume = out.join(DATABASE).exists();
        let (home, server) =
            (self.place.path().display().to_string(), self.server.path.display().to_string());
        let place = SetPlace { home: &home, server: &server, over_limit: self.over_limit };
        let command = again(step.run, self.quick, self.seed, experiment.is_cut(), place);
        let (home, ebbtide) = (self.home.clone(), version::of_results());
        let overrides = self.overrides.clone();
        let shown = Shown { json: self.json, prefix: step.prefix };
        if experiment.is_cut() {
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

    /// Runs the set in a directory, and prints what it came to.
    fn run_set(&self, results: DocumentResults, out: PathBuf, text: TextOptions) -> anyhow::Result<Exit> {
        std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
        let cancel = cancel_on(signals())?;
        let say = |text: &str| if self.json { note(text) } else { line(text) };
        let mut set = DocumentSet { results, out };
        let cancelled = set.run(self, &cancel, &say, &note).map_err(refuse_results)?;
        let absolute = |name: &str| {
            let file = set.out.join(name);
            std::path::absolute(&file).unwrap_or(file)
        };
        let report = absolute(FRONT);
        if self.json {
            let (directory, results) = (&set.out, absolute(FILE));
            let documents = &set.results;
            answers::print(&DocumentsEnded { directory, report: &report, results: &results, documents });
        } else {
            line("");
            print(&answer(&set.results), text, &format!("report: {}", report.display()))?;
        }
        for failed in set.left().filter(|experiment| experiment.state == ExperimentState::Failed) {
            note(&format!("{} failed: {}", failed.name, failed.failed.as_deref().unwrap_or_default()));
        }
        let whole = set.results.is_whole();
        if cancelled || !whole {
            let command = resume::command("run", &set.out, &set.results.server);
            note(&format!("go on with what is missing: {command}"));
        }
        Ok(if whole { Exit::Clean } else { Exit::Finding })
    }
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
    use ebbtide_lab::experiment::{DocumentRun, estimate_after};
    use ebbtide_mysql::{Flavour, Version};

    use super::*;

    fn mariadb() -> Binary {
        let version = Version { major: 10, minor: 11, patch: 19 };
        let text = "mariadbd  Ver 10.11.19-MariaDB".to_owned();
        Binary { path: "/usr/sbin/mariadbd".into(), flavour: Flavour::MariaDb, version, text }
    }

    #[test]
    fn the_short_forms_end_within_an_hour_on_two_cores_by_their_estimates() {
        let (catalog, server) = (Catalog::builtin(), mariadb());
        let mut known = Known::default();
        let mut seconds = |run: &DocumentRun| {
            let written = run.load(true, 1).unwrap();
            let experiment = planned(written, &catalog, &server).unwrap().experiment();
            (run.name, estimate_after(&experiment, &server, &mut known).as_secs())
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
            let place = SetPlace { home: "/srv/my home", server: "/usr/sbin/mariadbd", over_limit: false };
            let words = again(run, true, 7, experiment.is_cut(), place);
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
