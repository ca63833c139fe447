//! `ebbtide crash`: the crash lab on the command line.
//!
//! [`args`] is the command line, [`candidate`] looks at a server that is not ours, [`gain`] has the lab measure what
//! the risk buys. What a run found is a document of [`ebbtide_crash::page`].

mod args;
mod candidate;
mod gain;
mod text;

use std::path::{Path, PathBuf};

use crate::answers::{self, CrashEnded, CrashPlanned, DeletedAll, GainEnded, Replayed};
use crate::cli::Command;
use crate::document::{ColorWhen, print, text_options};
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::resume;
use crate::run::status::RunStatus;
use crate::run::{
    Shown, allowed, catalog, detect, directory_for, estimate_of, list, name_servers, outline, pairs, refuse,
    refuse_experiment, refuse_results, refuse_run, report_quick, rest, run_plan, show_missing, show_plan,
    unstarted, write_report,
};
use crate::signals::{cancel_on, signals};
use crate::text::{line, write};
use crate::version;
pub(crate) use args::CrashArgs;
use ebbtide_catalog::Catalog;
use ebbtide_crash::record::{CrashRun, GAIN_DIR};
use ebbtide_crash::results::CrashDatabase;
use ebbtide_crash::summary::{Standing, Summary, summarize};
use ebbtide_crash::{self as lab, CrashOptions, CutPlan, EventWords, KeptError};
use ebbtide_device::host::Home;
use ebbtide_lab::experiment::{self, Experiment, Known, Overrides};
use ebbtide_lab::run::RunError;
use ebbtide_lab::words::plan::outline as outline_words;
use ebbtide_load::Cancel;
use ebbtide_mysql::NamedServers;
use ebbtide_report::{Report, TextOptions};
use ebbtide_text::shell_words::quoted;
use gain::Gain;

/// Carries the command out.
///
/// # Errors
/// A wrong experiment or option (exit code 2); an environment that cannot run it (exit code 3).
pub(crate) fn run(args: &CrashArgs, place: &HomePath, color: ColorWhen, json: bool) -> anyhow::Result<Exit> {
    let text = text_options(color, args.details);
    if args.list {
        return Ok(list(true, json));
    }
    if args.candidate.is_asked()? {
        return candidate::run(&args.candidate, place, text, json);
    }
    if args.kept || args.delete_kept.is_some() {
        return kept(args, place, text, json);
    }
    if let Some(seed) = &args.replay {
        return replay(seed, args, place, text, json);
    }
    let Some(name) = args.experiment.as_deref() else { return resume(args, place, text, json) };
    let name = &resume::from_anywhere(name);
    if args.show {
        write(&crate::run::text_of(name)?)?;
        return Ok(Exit::Clean);
    }
    let seed = match (&args.out, args.seed) {
        // The cuts that are left belong to the run that was begun.
        (Some(out), None) if args.resume => Some(found_in(out)?.experiment.seed),
        (_, seed) => seed,
    };
    let overrides = Overrides { seed, ..changes(args)? };
    let experiment = experiment::load(name, &overrides).map_err(refuse_experiment)?;
    let known = ebbtide_lab::run::known(place.path());
    report_quick(name, &overrides, &experiment, &known.paces, json)?;
    let servers = allowed(args.allow_servers).and_named(experiment::servers_set(name, &overrides));
    name_servers(&experiment, name);
    let (catalog, laid_over) = catalog(place)?;
    let gained = gain::wanted(&experiment, args)?;
    if args.check {
        let servers = servers.unstarted();
        return check((experiment, gained), args.server.as_deref(), &servers, &catalog, known, json);
    }
    let server = detect(args.server.as_deref())?;
    let gain = gain::plan(gained, &catalog, &server, &servers)?;
    let (out, seed, named) = (directory_for(&experiment.name), experiment.seed, experiment.gain.clone());
    let plan = lab::plan_with(experiment, &catalog, &server, &servers).map_err(refuse_experiment)?;
    let options = CrashOptions {
        home: place.made()?.root().to_owned(),
        server_named: args.server.as_ref().map(|named| named.display().to_string()),
        out: args.out.clone().unwrap_or(out),
        resume: args.resume,
        overrides: laid_over,
        checkers: args.checkers.map(usize::from),
        command: command(name, args, place, seed),
        ebbtide: version::of_results(),
    };
    let gain = gain.map(|gain| Gain::new(gain, &named.unwrap_or_default(), args, &options));
    cut(plan, options, gain, text, json)
}

/// Goes on with the run in `--out`, as it was begun.
fn resume(args: &CrashArgs, own: &HomePath, text: TextOptions, json: bool) -> anyhow::Result<Exit> {
    let out = args.out.as_deref().expect("clap asks for it");
    resume::refuse_changes(&changes(args)?)?;
    let record = found_in(out)?;
    let begun = resume::begun(&record.command, out)?;
    let Command::Crash(begun_with) = &begun.command else { return Err(resume::other_command(out)) };
    let place = &resume::home(&begun, own, out)?;
    let servers = allowed(args.allow_servers);
    let server = resume::server(args.server.as_deref(), &record.server, out, &servers)?;
    let (catalog, laid_over) = catalog(place)?;
    let experiment = lab::begun_with(&record);
    name_servers(&experiment, &out.display().to_string());
    let gain = gain::plan(gain::wanted(&experiment, begun_with)?, &catalog, &server, &servers)?;
    let named = args.server.as_ref().or(begun_with.server.as_ref());
    let options = CrashOptions {
        home: place.made()?.root().to_owned(),
        server_named: named.map(|named| named.display().to_string()),
        out: out.to_owned(),
        resume: true,
        overrides: laid_over,
        checkers: args.checkers.or(begun_with.checkers).map(usize::from),
        command: record.command,
        ebbtide: version::of_results(),
    };
    let named = experiment.gain.clone().unwrap_or_default();
    let gain = gain.map(|gain| Gain::new(gain, &named, begun_with, &options));
    let plan = lab::plan_with(experiment, &catalog, &server, &servers).map_err(refuse_experiment)?;
    cut(plan, options, gain, text, json)
}

/// Prints what would run. Nothing is started: what depends on a version that is not known so is left out, and named.
fn check(
    (experiment, gained): (Experiment, Option<Experiment>),
    named: Option<&Path>,
    servers: &NamedServers,
    catalog: &Catalog,
    mut known: Known,
    json: bool,
) -> anyhow::Result<Exit> {
    let all: Vec<&Experiment> = [&experiment].into_iter().chain(&gained).collect();
    match unstarted(named, &all, servers)? {
        Ok(server) => {
            let gain = gain::plan(gained, catalog, &server, servers)?;
            let plan = lab::plan_with(experiment, catalog, &server, servers).map_err(refuse_experiment)?;
            let (experiment, missing) = (plan.plan().experiment(), ebbtide_lab::run::missing(plan.plan()));
            let took = estimate_of(plan.plan(), &mut known);
            let gain = gain.map(|gain| (gain.experiment(), estimate_of(&gain, &mut known)));
            let gain = gain.as_ref().map(|(gain, after)| (gain, *after));
            if json {
                let plan = run_plan(plan.plan(), &experiment, took, &missing);
                answers::print(&CrashPlanned { plan, gain: gain.map(gain::planned) });
            } else {
                show_plan(plan.plan(), &experiment, took, gain, &missing, json);
            }
            Ok(show_missing(&missing, json))
        }
        Err(unknown) => {
            lab::check_without_server(&experiment, catalog).map_err(refuse_experiment)?;
            if let Some(gain) = &gained {
                experiment::check_without_server(gain, catalog).map_err(refuse_experiment)?;
            }
            let missing = ebbtide_lab::run::missing_on_machine(&experiment);
            let anew = |planned: &Experiment| experiment::estimate_anew(planned, &known.paces);
            let (took, gain) = (anew(&experiment), gained.as_ref().map(|gain| (gain, anew(gain))));
            if json {
                let plan = outline(&experiment, took, unknown, &missing);
                answers::print(&CrashPlanned { plan, gain: gain.map(gain::planned) });
            } else {
                line(&outline_words(&experiment, took, gain, &unknown));
                line("nor are the canaries shown, which depend on the server");
            }
            Ok(show_missing(&missing, json))
        }
    }
}

/// What the command line changes in the experiment.
pub(crate) fn changes(args: &CrashArgs) -> anyhow::Result<Overrides> {
    Ok(Overrides {
        set: pairs(&args.set)?,
        quick: args.quick,
        seed: args.seed,
        arms: args.arms.clone(),
        region: args.region.clone(),
        ..Overrides::default()
    })
}

/// What a run has found so far, by the directory of its results.
fn found_in(out: &Path) -> anyhow::Result<CrashRun> {
    CrashDatabase::open(out).and_then(|store| store.run()).map_err(refuse_results)
}

/// A crash run with its report.
pub(crate) struct Cut {
    pub(crate) record: CrashRun,
    pub(crate) summary: Summary,
    /// The answer.
    pub(crate) document: Report,
    /// The file of its page.
    pub(crate) report: PathBuf,
    /// That it was ended before its last cut.
    pub(crate) cancelled: Option<RunError>,
}

impl Cut {
    /// Whether every stint was made, and the canaries prove that damage is seen.
    pub(crate) fn is_whole(&self) -> bool {
        self.cancelled.is_none()
            && self.summary.valid
            && self.record.stints.iter().all(|stint| stint.failed.is_none())
            && self.record.gain.as_ref().is_none_or(|gain| gain.failed.is_none())
    }
}

/// Runs the experiment, writes what it found, and prints a summary.
fn cut(
    plan: CutPlan,
    options: CrashOptions,
    gain: Option<Gain>,
    text: TextOptions,
    json: bool,
) -> anyhow::Result<Exit> {
    let out = options.out.clone();
    let cancel = cancel_on(signals())?;
    let Some(cut) = measured(plan, options, gain, &cancel, Shown { json, prefix: "" })? else {
        return Ok(Exit::Finding);
    };
    let Cut { record, summary, document, report, cancelled } = &cut;
    if json {
        let directory = out.join(GAIN_DIR);
        let gain = record.gain.as_ref().map(|gain| GainEnded {
            directory: &directory,
            failed: gain.failed.as_deref(),
            summary: gain.measured.as_ref().map(|measured| &measured.summary),
        });
        answers::print(&CrashEnded {
            directory: &out,
            report,
            results: &out.join("results.json"),
            database: &out.join("results.sqlite"),
            seed: record.experiment.seed,
            summary,
            gain,
        });
    } else {
        line("");
        print(document, text, &rest(report, text.details))?;
    }
    if let Some(error) = cancelled {
        crate::text::note(&format!(
            "{error}; go on with: {}",
            resume::command("crash", &out, &record.server)
        ));
    }
    let clean = cut.is_whole() && record.cuts.iter().all(is_expected(record));
    Ok(if clean { Exit::Clean } else { Exit::Finding })
}

/// Runs the experiment and writes its results and its report, telling how it goes on; None where it was ended before
/// anything was judged.
pub(crate) fn measured(
    plan: CutPlan,
    options: CrashOptions,
    gain: Option<Gain>,
    cancel: &Cancel,
    shown: Shown<'_>,
) -> anyhow::Result<Option<Cut>> {
    let (out, json) = (options.out.clone(), shown.json);
    let (experiment, server) = (plan.plan().experiment(), &plan.plan().server().text);
    let seed = experiment.seed;
    if !json {
        let title = &experiment.title;
        line(&format!("{}: {title}\nserver: {server}\nseed: {seed}", experiment.name));
    }
    let (mut status, mut words) = (RunStatus::new(json, shown.prefix), EventWords::default());
    let result = lab::run(plan, options, cancel, &mut |event| status.show(words.take(event)));
    drop(status);
    let (mut record, cancelled) = match result {
        Ok(record) => (record, None),
        Err(error @ RunError::Cancelled { .. }) => match found_in(&out) {
            Ok(record) if record.experiment.seed == seed && !record.cuts.is_empty() => (record, Some(error)),
            _ => {
                crate::text::note("cancelled: nothing was judged");
                return Ok(None);
            }
        },
        Err(error) => return Err(refuse_run(error)),
    };
    let mut store = CrashDatabase::open(&out).map_err(refuse_results)?;
    if let (Some(gain), None) = (gain, &cancelled) {
        let gained = gain.measure(cancel, json);
        store.set_gain(&gained).map_err(refuse_results)?;
        record.gain = Some(gained);
    }
    let summary = summarize(&record);
    store.finish(&summary).map_err(refuse_results)?;
    let document = lab::page::document(&record, &summary);
    let report = write_report(&out, &document.to_html())?;
    Ok(Some(Cut { record, summary, document, report, cancelled }))
}

/// Whether a cut is no evidence against its arm: it is clean, or a canary's.
fn is_expected(run: &CrashRun) -> impl Fn(&ebbtide_crash::record::Cut) -> bool + '_ {
    |cut| {
        let arm = run.experiment.arms.iter().find(|arm| arm.name == cut.arm);
        let plan = arm.and_then(|arm| arm.crash.as_ref());
        Standing::of(cut) == Standing::Clean || plan.is_some_and(|plan| plan.canary.is_some())
    }
}

/// A seed as the report prints it: hexadecimal.
fn parse_seed(text: &str) -> anyhow::Result<u64> {
    ebbtide_text::seed::from_hex(text).ok_or_else(|| {
        Refusal::usage(format!("{text} is no seed of a cut: it has up to 16 hexadecimal digits"))
            .hint("'ebbtide crash --kept' lists the cuts whose images are kept")
            .into()
    })
}

/// Lists or deletes the images that are kept.
fn kept(args: &CrashArgs, place: &HomePath, options: TextOptions, json: bool) -> anyhow::Result<Exit> {
    let home = place.existing()?;
    let root = home.as_ref().map(Home::root);
    let all = root.map_or(Ok(Vec::new()), lab::list_kept).map_err(refuse_kept)?;
    let Some(wanted) = &args.delete_kept else {
        if json {
            answers::print(&all);
        } else {
            text::kept(&all, options)?;
        }
        return Ok(Exit::Clean);
    };
    let seeds: Vec<u64> =
        if wanted == "all" { all.iter().map(|one| one.seed).collect() } else { vec![parse_seed(wanted)?] };
    for seed in &seeds {
        let root = root.ok_or(KeptError::NotKept { seed: *seed }).map_err(refuse_kept)?;
        lab::delete_kept(root, *seed).map_err(refuse_kept)?;
    }
    if json {
        let deleted: Vec<_> = seeds.iter().map(|seed| ebbtide_text::seed::hex(*seed)).collect();
        answers::print(&DeletedAll { deleted });
    } else {
        line(&format!("deleted {} kept images", seeds.len()));
    }
    Ok(Exit::Clean)
}

/// An error about kept images, with its exit code and what to do.
fn refuse_kept(error: KeptError) -> anyhow::Error {
    if let KeptError::Run(error) = error {
        return refuse_run(error);
    }
    let (environment, hint) = (error.is_environment(), error.hint());
    refuse(error, environment, hint)
}

/// Judges a kept image again, and leaves the recovered server up where that is asked for.
fn replay(
    seed: &str,
    args: &CrashArgs,
    place: &HomePath,
    text: TextOptions,
    json: bool,
) -> anyhow::Result<Exit> {
    let seed = parse_seed(seed)?;
    let server = args.server.as_deref().map(|named| detect(Some(named))).transpose()?;
    let Some(home) = place.existing()? else { return Err(refuse_kept(KeptError::NotKept { seed })) };
    let (catalog, cancel) = (catalog(place)?.0, cancel_on(signals())?);
    let replayed = lab::replay(home.root(), seed, server.as_ref(), &catalog, &cancel).map_err(refuse_kept)?;
    if json {
        let lab::Replayed { then, now, recovered, same, server, .. } = &replayed;
        answers::print(&Replayed { then, now, recovered: *recovered, same: *same, server });
    } else {
        let root = home.root().display().to_string();
        let document = lab::page::replayed(&replayed, (!args.keep_running).then_some(root.as_str()));
        write(&document.to_text(text))?;
    }
    if args.keep_running && replayed.now.recovery.is_none() {
        crate::text::note("no server is left up: none came up on the image");
    } else if args.keep_running {
        lab::keep_running(home.root(), seed, server.as_ref(), &catalog, &cancel, &mut |left| {
            left_running(left, json);
        })
        .map_err(refuse_kept)?;
    }
    Ok(if replayed.now.verdicts.is_empty() { Exit::Clean } else { Exit::Finding })
}

/// Prints how to look at a server that is left up.
fn left_running(left: &lab::LeftRunning<'_>, json: bool) {
    let client = if left.binary.is_mariadb() { "mariadb" } else { "mysql" };
    let command: Vec<String> = left.server.client_options().iter().map(|word| quoted(word)).collect();
    let text = format!(
        "\nthe recovered server is up on a copy of the image; what you change is thrown away\n{client} {}\n\
         socket: {}\ndata: {}\nCtrl-C ends it, unmounts, detaches and deletes the copy",
        command.join(" "),
        left.server.socket().display(),
        left.data.display()
    );
    if json { crate::text::note(text.trim_start()) } else { line(&text) }
}

/// The command that makes the same run again: all that was given, and the seed.
fn command(name: &str, args: &CrashArgs, place: &HomePath, seed: u64) -> String {
    let mut words = vec!["ebbtide crash".to_owned(), quoted(name)];
    words.push(format!("--home {}", quoted(&place.path().display().to_string())));
    let mut add = |option: &str, value: &str| words.push(format!("{option} {}", quoted(value)));
    args.set.iter().for_each(|set| add("--set", set));
    args.server.iter().for_each(|path| add("--server", &path.display().to_string()));
    args.checkers.iter().for_each(|checkers| add("--checkers", &checkers.to_string()));
    if !args.arms.is_empty() {
        add("--arms", &args.arms.join(","));
    }
    add("--seed", &seed.to_string());
    args.region.iter().for_each(|region| add("--region", region));
    words.extend(args.quick.then(|| "--quick".to_owned()));
    words.extend(args.no_gain.then(|| "--no-gain".to_owned()));
    words.extend(args.allow_servers.then(|| "--allow-servers".to_owned()));
    words.join(" ")
}
