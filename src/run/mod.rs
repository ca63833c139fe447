//! `ebbtide run`: the lab on the command line.
//!
//! [`args`] is the command line, [`status`] shows a run while it lasts, and [`repetition`] holds several runs against each other.
//! What a run found is a document of [`ebbtide_lab::page`].

mod args;
mod documents;
mod repetition;
pub(crate) mod status;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use ebbtide_catalog::Catalog;
use ebbtide_device::host::Home;
use ebbtide_lab::document_set::is_there;
use ebbtide_lab::experiment::{self, Experiment, ExperimentError, Known, Overrides, Paces, PlannedArm};
use ebbtide_lab::record::{LabRun, ServerFacts};
use ebbtide_lab::results::file::write_whole;
use ebbtide_lab::results::{Earlier, ResultsDatabase, ResultsError};
use ebbtide_lab::run::{self as lab, Plan, RunError, RunOptions};
use ebbtide_lab::summary::{Summary, all_measured, summarize};
use ebbtide_lab::words;
use ebbtide_lab::words::plan::AfterCuts;
use ebbtide_load::Cancel;
use ebbtide_mysql::{Binary, NamedServers, ServerError};
use ebbtide_report::{Report, TextOptions};
use ebbtide_text::shell_words::quoted;

use crate::answers::{self, DeletedAll, Listed, RunEnded, RunPlan};
use crate::cli::Command;
use crate::document::{ColorWhen, fitted, print, text_options};
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::refusal::refuse_overrides;
use crate::resume;
use crate::signals::{cancel_on, signals};
use crate::text::{line, write};
use crate::version;
pub(crate) use args::RunArgs;
use status::RunStatus;

/// The report's file in the directory of a run.
const REPORT: &str = "report.html";

/// Carries the command out.
///
/// # Errors
/// A wrong experiment or option (exit code 2); an environment that cannot run it (exit code 3).
pub(crate) fn run(args: &RunArgs, place: &HomePath, color: ColorWhen, json: bool) -> anyhow::Result<Exit> {
    let text = text_options(color, args.details);
    if args.list {
        return Ok(list(false, json));
    }
    if args.prepared || args.delete_prepared.is_some() {
        return prepared(args, place, text, json);
    }
    if !args.compare.is_empty() {
        return repetition::compare(&args.compare, text, json);
    }
    if args.documents {
        return documents::run(args, place, text, json);
    }
    let Some(name) = args.experiment.as_deref() else { return resume(args, place, text, json) };
    let name = &resume::from_anywhere(name);
    if args.show {
        write(&text_of(name)?)?;
        return Ok(Exit::Clean);
    }
    let earlier = repetition::earlier(&args.against, args.out.as_deref())?;
    let mut changes = changes(args)?;
    if let (true, Some(out), None) = (args.resume, &args.out, args.seed) {
        // The trials that are left belong to the run that was begun.
        changes.seed = Some(
            ResultsDatabase::open(out).and_then(|store| store.run()).map_err(refuse_results)?.experiment.seed,
        );
    }
    let experiment = experiment::load(name, &changes).map_err(refuse_experiment)?;
    let known = lab::known(place.path());
    report_quick(name, &changes, &experiment, &known.paces, json)?;
    let servers = allowed(args.allow_servers).and_named(experiment::servers_set(name, &changes));
    name_servers(&experiment, name);
    let (catalog, overrides) = catalog(place)?;
    if args.check {
        return check(experiment, args.server.as_deref(), &servers.unstarted(), &catalog, known, json);
    }
    let server = detect(args.server.as_deref())?;
    let plan = lab::plan_with(experiment, &catalog, &server, &servers).map_err(refuse_experiment)?;
    repetition::refuse_others(&plan, &earlier)?;
    let experiment = plan.experiment();
    let options = RunOptions {
        home: place.made()?.root().to_owned(),
        out: args.out.clone().unwrap_or_else(|| directory_for(&experiment.name)),
        resume: args.resume,
        over_limit: args.over_limit,
        command: command(name, args, place, experiment.seed),
        ebbtide: version::of_results(),
        overrides,
    };
    measure(plan, options, &earlier, text, json)
}

/// Goes on with the run in `--out`, as it was begun.
fn resume(args: &RunArgs, own: &HomePath, text: TextOptions, json: bool) -> anyhow::Result<Exit> {
    let out = args.out.as_deref().expect("clap asks for it");
    if is_there(out) {
        return documents::resume(args, own, out, text, json);
    }
    let changed = changes(args)?;
    resume::refuse_changes(&changed)?;
    let record = ResultsDatabase::open(out).and_then(|store| store.run()).map_err(refuse_results)?;
    let begun = resume::begun(&record.command, out)?;
    let Command::Run(begun_with) = &begun.command else { return Err(resume::other_command(out)) };
    let place = &resume::home(&begun, own, out)?;
    let earlier = repetition::earlier(&args.against, Some(out))?;
    let servers = allowed(args.allow_servers);
    let server = resume::server(args.server.as_deref(), &record.server, out, &servers)?;
    let (catalog, overrides) = catalog(place)?;
    name_servers(&record.experiment, &out.display().to_string());
    let options = RunOptions {
        home: place.made()?.root().to_owned(),
        out: out.to_owned(),
        resume: true,
        over_limit: args.over_limit || begun_with.over_limit,
        command: record.command,
        ebbtide: version::of_results(),
        overrides,
    };
    let plan = lab::plan_with(record.experiment, &catalog, &server, &servers).map_err(refuse_experiment)?;
    repetition::refuse_others(&plan, &earlier)?;
    measure(plan, options, &earlier, text, json)
}

/// The server programs that files may name.
pub(crate) fn allowed(any: bool) -> NamedServers {
    NamedServers::default().and_any(any)
}

/// Reports the server programs that an experiment names, before any of them is started.
pub(crate) fn name_servers(experiment: &Experiment, place: &str) {
    for server in experiment.named_servers() {
        crate::text::note(&format!("note: {place} names the server program {server}"));
    }
}

/// The run's server and whether all servers that experiments name are known without starting any; else those whose version is
/// not known so.
pub(crate) fn unstarted(
    named: Option<&Path>,
    experiments: &[&Experiment],
    servers: &NamedServers,
) -> anyhow::Result<Result<Binary, Vec<String>>> {
    let mut unknown = Vec::new();
    let own = match Binary::unstarted(named) {
        Ok(binary) => Some(binary),
        Err(ServerError::VersionUnknown { path }) => {
            unknown.push(path.display().to_string());
            None
        }
        Err(error) => return Err(refuse_server(error, named)),
    };
    for words in experiments.iter().flat_map(|experiment| experiment.named_servers()) {
        match servers.find(&words) {
            Err(ServerError::VersionUnknown { path }) => unknown.push(path.display().to_string()),
            Err(error @ ServerError::NotAllowed { .. }) => return Err(refuse(error, false, None)),
            // The plan says what is wrong with it, or leaves its arm out.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(own.filter(|_| unknown.is_empty()).ok_or(unknown))
}

/// Prints what would run. Nothing is started: what depends on a version that is not known so is left out, and named.
fn check(
    experiment: Experiment,
    named: Option<&Path>,
    servers: &NamedServers,
    catalog: &Catalog,
    mut known: Known,
    json: bool,
) -> anyhow::Result<Exit> {
    match unstarted(named, &[&experiment], servers)? {
        Ok(server) => {
            let plan = lab::plan_with(experiment, catalog, &server, servers).map_err(refuse_experiment)?;
            let (experiment, missing) = (plan.experiment(), lab::missing(&plan));
            let took = estimate_of(&plan, &mut known);
            show_plan(&plan, &experiment, took, None, &missing, json);
            Ok(show_missing(&missing, json))
        }
        Err(unknown) => {
            experiment::check_without_server(&experiment, catalog).map_err(refuse_experiment)?;
            let missing = lab::missing_on_machine(&experiment);
            let took = experiment::estimate_anew(&experiment, &known.paces);
            if json {
                answers::print(&outline(&experiment, took, unknown, &missing));
            } else {
                line(&words::plan::outline(&experiment, took, None, &unknown));
            }
            Ok(show_missing(&missing, json))
        }
    }
}

/// How long a plan takes in a home that knows something; it knows the data of the plan afterwards.
pub(crate) fn estimate_of(plan: &Plan, known: &mut Known) -> Duration {
    experiment::estimate_on(&plan.experiment(), &experiment::keys_of(plan.arms()), known)
}

/// What would run on servers whose versions are not known, as an object.
pub(crate) fn outline<'a>(
    experiment: &'a Experiment,
    took: Duration,
    not_started: Vec<String>,
    missing: &'a [String],
) -> RunPlan<'a> {
    RunPlan {
        experiment,
        server: None,
        not_started,
        sources: BTreeMap::new(),
        replicas: BTreeMap::new(),
        options: BTreeMap::new(),
        left_out: &[],
        estimate_s: took.as_secs(),
        missing,
    }
}

/// Runs the experiment, writes what it found, and prints a summary.
fn measure(
    plan: Plan,
    options: RunOptions,
    earlier: &[Earlier],
    text: TextOptions,
    json: bool,
) -> anyhow::Result<Exit> {
    let out = options.out.clone();
    let cancel = cancel_on(signals())?;
    let Some(measured) = measured(plan, options, earlier, &cancel, Shown { json, prefix: "" })? else {
        return Ok(Exit::Finding);
    };
    let Measured { record, summary, document, report, cancelled } = &measured;
    if json {
        answers::print(&RunEnded {
            directory: &out,
            report,
            results: &out.join("results.json"),
            database: &out.join("results.sqlite"),
            seed: record.experiment.seed,
            summary,
        });
    } else {
        line("");
        print(document, text, &rest(report, text.details))?;
    }
    if let Some(error) = cancelled {
        crate::text::note(&format!("{error}; go on with: {}", resume::command("run", &out, &record.server)));
    } else if !measured.is_whole() {
        let command = resume::command("run", &out, &record.server);
        crate::text::note(&format!("trials that failed or were disqualified are run again with: {command}"));
    }
    let agrees = summary.repeated.as_ref().is_none_or(repetition::agrees);
    Ok(if measured.is_whole() && agrees { Exit::Clean } else { Exit::Finding })
}

/// The last line of an answer: where the page is, and how to get the rest.
pub(crate) fn rest(report: &Path, details: bool) -> String {
    format!("report: {}{}", report.display(), if details { "" } else { "; more: --details" })
}

/// How a run is shown while it lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// Whether standard output carries JSON.
    pub(crate) json: bool,
    /// What the status line has before every text: which part of a set it is.
    pub(crate) prefix: &'a str,
}

/// A run of the lab with its report.
pub(crate) struct Measured {
    pub(crate) record: LabRun,
    pub(crate) summary: Summary,
    /// The answer.
    pub(crate) document: Report,
    /// The file of its page.
    pub(crate) report: PathBuf,
    /// That it was ended before its last trial.
    pub(crate) cancelled: Option<RunError>,
}

impl Measured {
    /// Whether every trial was made, and counts, and no arm had to be left out that the experiment needs.
    pub(crate) fn is_whole(&self) -> bool {
        let hole = self.record.experiment.left_out.iter().any(|one| !one.optional);
        self.cancelled.is_none() && !hole && all_measured(&self.summary)
    }
}

/// Runs an experiment and writes its results and its report, telling how it goes on; none where it was ended before
/// anything was measured.
pub(crate) fn measured(
    plan: Plan,
    options: RunOptions,
    earlier: &[Earlier],
    cancel: &Cancel,
    shown: Shown<'_>,
) -> anyhow::Result<Option<Measured>> {
    let out = options.out.clone();
    if !shown.json {
        line(&words::plan::header(&plan, &out));
    }
    let mut status = RunStatus::new(shown.json, shown.prefix);
    let result = lab::run(plan, options, cancel, &mut |event| status.take(event));
    drop(status);
    let (record, cancelled) = match result {
        Ok(record) => (record, None),
        Err(error @ RunError::Cancelled { done, .. }) if done > 0 => {
            (ResultsDatabase::open(&out).and_then(|store| store.run()).map_err(refuse_results)?, Some(error))
        }
        Err(error @ RunError::Cancelled { .. }) => {
            crate::text::note(&format!("{error}: nothing was measured"));
            return Ok(None);
        }
        Err(error) => return Err(refuse_run(error)),
    };
    let summary = Summary { repeated: repetition::held(earlier, &out, &record), ..summarize(&record) };
    ResultsDatabase::open(&out).and_then(|mut store| store.finish(&summary)).map_err(refuse_results)?;
    let document = ebbtide_lab::page::document(&record, &summary, &out.display().to_string());
    let report = write_report(&out, &document.to_html())?;
    Ok(Some(Measured { record, summary, document, report, cancelled }))
}

/// Writes the report whole or not at all, and returns where it is.
pub(crate) fn write_report(out: &Path, page: &str) -> anyhow::Result<PathBuf> {
    write_whole(out, REPORT, page).map_err(refuse_results)?;
    let file = out.join(REPORT);
    Ok(std::path::absolute(&file).unwrap_or(file))
}

/// Reports what `--quick` changes in an experiment whose file has no `[quick]`, and how long it takes then.
pub(crate) fn report_quick(
    name: &str,
    overrides: &Overrides,
    experiment: &Experiment,
    paces: &Paces,
    json: bool,
) -> anyhow::Result<()> {
    let Some(changes) = experiment::generic_quick(name, overrides).map_err(refuse_experiment)? else {
        return Ok(());
    };
    let full = Overrides { quick: false, ..overrides.clone() };
    let full = experiment::load(name, &full).map_err(refuse_experiment)?;
    let span = |of: &Experiment| words::span(experiment::estimate_anew(of, paces).as_secs_f64());
    let what = if changes.is_empty() {
        "--quick changes nothing, it is as short already".to_owned()
    } else {
        format!("--quick means {}: about {} instead of {}", changes.join(", "), span(experiment), span(&full))
    };
    let text = format!("note: {name} has no [quick]: {what}");
    if json {
        crate::text::note(&text);
    } else {
        line(&text);
    }
    Ok(())
}

/// The file of an experiment: a shipped one's, or the user's own.
pub(crate) fn text_of(name: &str) -> anyhow::Result<String> {
    if let Some(shipped) = experiment::shipped().iter().find(|shipped| shipped.name == name) {
        return Ok(shipped.text.to_owned());
    }
    experiment::load(name, &Overrides::default()).map_err(refuse_experiment)?;
    std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))
}

/// Lists the shipped experiments: those of the crash lab, or those of the lab.
pub(crate) fn list(crash: bool, json: bool) -> Exit {
    let shipped: Vec<_> = experiment::shipped().iter().filter(|one| one.crash == crash).collect();
    if json {
        let all = shipped.iter();
        let all = all.map(|one| Listed { name: one.name, title: &one.title, question: &one.question });
        answers::print(&all.collect::<Vec<_>>());
    } else {
        line(&fitted(words::plan::list(shipped, if crash { "crash" } else { "run" })));
    }
    Exit::Clean
}

/// Reports what this machine or user lacks to run it, unless `json` has. The exit code shows it.
pub(crate) fn show_missing(missing: &[String], json: bool) -> Exit {
    if missing.is_empty() {
        return Exit::Clean;
    }
    if !json {
        line("\nmissing:");
        missing.iter().for_each(|what| line(&format!("    {what}")));
    }
    Exit::Environment
}

/// Reports what would run: `experiment` is that of the plan, `gain` what would be measured after its cuts.
pub(crate) fn show_plan(
    plan: &Plan,
    experiment: &Experiment,
    took: Duration,
    gain: Option<AfterCuts<'_>>,
    missing: &[String],
    json: bool,
) {
    if json {
        answers::print(&run_plan(plan, experiment, took, missing));
    } else {
        plan.left_out().iter().for_each(|text| line(&format!("note: {text}")));
        line(&words::plan::plan(plan, experiment, took, gain));
    }
}

/// What would run, as an object.
pub(crate) fn run_plan<'a>(
    plan: &'a Plan,
    experiment: &'a Experiment,
    took: Duration,
    missing: &'a [String],
) -> RunPlan<'a> {
    let options = |planned: &'a PlannedArm| (planned.arm.name.as_str(), planned.options.as_slice());
    let ServerFacts { sources, replicas, .. } = lab::server_facts(plan);
    RunPlan {
        experiment,
        server: Some(plan.server()),
        not_started: Vec::new(),
        sources,
        replicas,
        options: plan.arms().iter().map(options).collect(),
        left_out: plan.left_out(),
        estimate_s: took.as_secs(),
        missing,
    }
}

/// Lists or deletes the data that runs share.
fn prepared(args: &RunArgs, place: &HomePath, options: TextOptions, json: bool) -> anyhow::Result<Exit> {
    let home = place.existing()?;
    let root = home.as_ref().map(Home::root);
    let all = root.map_or(Ok(Vec::new()), lab::list_prepared).map_err(refuse_run)?;
    let Some(wanted) = &args.delete_prepared else {
        if json {
            answers::print(&all);
        } else {
            text::prepared(&all, options)?;
        }
        return Ok(Exit::Clean);
    };
    let names: Vec<_> =
        all.iter().map(|one| &one.name).filter(|name| wanted == "all" || name == &wanted).collect();
    if names.is_empty() && wanted != "all" {
        return Err(Refusal::usage(format!("there is no prepared data '{wanted}'"))
            .hint("'ebbtide run --prepared' lists what there is")
            .into());
    }
    for (root, name) in root.iter().flat_map(|root| names.iter().map(move |name| (root, name))) {
        lab::delete_prepared(root, name).map_err(refuse_run)?;
        if !json {
            line(&format!("deleted {name}"));
        }
    }
    if json {
        answers::print(&DeletedAll { deleted: names.into_iter().cloned().collect() });
    }
    Ok(Exit::Clean)
}

/// What the command line changes in the experiment.
pub(crate) fn changes(args: &RunArgs) -> anyhow::Result<Overrides> {
    Ok(Overrides {
        set: pairs(&args.set)?,
        quick: args.quick,
        volume: args.volume.clone(),
        seed: args.seed,
        repeats: args.repeats,
        measure_s: args.measure.map(whole_seconds).transpose()?,
        arms: args.arms.clone(),
        region: args.region.clone(),
    })
}

/// Each `PATH=VALUE` of `--set`.
pub(crate) fn pairs(set: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let pair = |text: &String| {
        text.split_once('=')
            .map(|(path, value)| (path.trim().to_owned(), value.trim().to_owned()))
            .ok_or_else(|| {
                Refusal::usage(format!("--set {text}: a path and a value are needed"))
                    .hint("write it like --set tuned.io_capacity=2000")
                    .into()
            })
    };
    set.iter().map(pair).collect()
}

fn whole_seconds(time: Duration) -> anyhow::Result<u32> {
    u32::try_from(time.as_secs()).ok().filter(|_| time.subsec_nanos() == 0).ok_or_else(|| {
        Refusal::usage(format!("--measure {time:?}: trials are measured in whole seconds"))
            .hint("write it like 60s or 10m")
            .into()
    })
}

/// The built-in catalogue with the home's overrides, where it has any, and the text of these.
pub(crate) fn catalog(place: &HomePath) -> anyhow::Result<(Catalog, Option<String>)> {
    let file = place.existing()?.map(|home| home.overrides_file()).filter(|file| file.exists());
    let Some(file) = file else { return Ok((Catalog::builtin(), None)) };
    let name = file.display().to_string();
    let text = std::fs::read_to_string(&file).map_err(|error| refuse_overrides(&file, error.into()))?;
    let catalog = Catalog::with_overrides_text(&name, &text);
    Ok((catalog.map_err(|error| refuse_overrides(&file, error.into()))?, Some(text)))
}

/// `NAME-20261120-104530` in the present directory.
pub(crate) fn directory_for(name: &str) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    PathBuf::from(format!("{name}-{now}"))
}

/// The command that makes the same run again: all that was given, and the seed.
fn command(name: &str, args: &RunArgs, place: &HomePath, seed: u64) -> String {
    let mut words = vec!["ebbtide run".to_owned(), quoted(name)];
    words.push(format!("--home {}", quoted(&place.path().display().to_string())));
    let mut add = |option: &str, value: &str| words.push(format!("{option} {}", quoted(value)));
    args.set.iter().for_each(|set| add("--set", set));
    args.volume.iter().for_each(|spec| add("--volume", spec));
    args.server.iter().for_each(|path| add("--server", &path.display().to_string()));
    args.repeats.iter().for_each(|repeats| add("--repeats", &repeats.to_string()));
    args.measure.iter().for_each(|time| add("--measure", &format!("{}s", time.as_secs())));
    if !args.arms.is_empty() {
        add("--arms", &args.arms.join(","));
    }
    add("--seed", &seed.to_string());
    args.region.iter().for_each(|region| add("--region", region));
    words.extend(args.quick.then(|| "--quick".to_owned()));
    words.extend(args.over_limit.then(|| "--over-limit".to_owned()));
    words.extend(args.allow_servers.then(|| "--allow-servers".to_owned()));
    words.join(" ")
}

pub(crate) fn refuse_experiment(error: ExperimentError) -> anyhow::Error {
    let unreadable = matches!(error, ExperimentError::Unreadable { .. });
    let refusal = Refusal::usage(error.to_string());
    let refusal = match &error {
        ExperimentError::Unknown { .. } => refusal.hint("'ebbtide run --list' says what each one asks"),
        _ => refusal,
    };
    // An error of the operating system is worth reading; every other message is complete.
    if unreadable { anyhow::Error::new(error).context(refusal) } else { refusal.into() }
}

/// The server of `--server`, or the machine's own. A program that was named and is no server, or not there, is the
/// request being wrong; that the machine has none is not.
pub(crate) fn detect(named: Option<&Path>) -> anyhow::Result<Binary> {
    Binary::detect(named).map_err(|error| refuse_server(error, named))
}

fn refuse_server(error: ServerError, named: Option<&Path>) -> anyhow::Error {
    let (environment, hint) = (named.is_none() && error.is_environment(), error.hint().map(str::to_owned));
    refuse(error, environment, hint)
}

pub(crate) fn refuse_results(error: ResultsError) -> anyhow::Error {
    let (environment, hint) = (error.is_environment(), error.hint().map(str::to_owned));
    refuse(error, environment, hint)
}

pub(crate) fn refuse_run(error: RunError) -> anyhow::Error {
    if let RunError::Cancelled { .. } = error {
        return Refusal::cancelled("cancelled").into();
    }
    let (environment, hint) = (error.is_environment(), error.hint());
    refuse(error, environment, hint)
}

/// An error with its exit code and what to do.
pub(crate) fn refuse(
    error: impl std::error::Error + Send + Sync + 'static,
    environment: bool,
    hint: Option<String>,
) -> anyhow::Error {
    let message = error.to_string();
    let refusal = if environment { Refusal::environment(message) } else { Refusal::usage(message) };
    anyhow::Error::new(error).context(Refusal { hint, ..refusal })
}
