//! From arguments to what will be run, refusing what cannot.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use ebbtide_captured::packed::text_of;
use ebbtide_catalog::{Catalog, CatalogError, Initialization, InstanceType, Prices, Spec};
use ebbtide_forecast::simulation::{MOST_INTERVALS, SimulatedVolume, SimulationPlan, latest_end};
use ebbtide_text::shell_words::quoted;
use ebbtide_twin::fio::{self, FioError, Surroundings};
use ebbtide_twin::{SimulateError, Workload};
use ebbtide_volume::Nanos;

use super::Args;
use crate::duration::virtual_time;
use crate::exit::Refusal;

/// Reads the arguments.
///
/// # Errors
/// A wrong volume, job, trace, instance, region or interval: a [`Refusal`].
pub(super) fn read(args: &Args, catalog: &Catalog) -> anyhow::Result<SimulationPlan> {
    let prices = catalog.prices(args.region.as_deref()).map_err(refuse_region)?;
    let volumes: Vec<SimulatedVolume> =
        args.volume.iter().map(|spec| planned(catalog, prices, spec)).collect::<Result<_, _>>()?;
    let instance = args.instance.as_deref().map(|name| instance(catalog, name)).transpose()?;
    let (mut workload, job_files) = workload(&args.job)?;
    workload.notes.extend(volumes.iter().filter_map(overridden));
    let trace = args.trace.plan()?;
    let loader = catalog.loader(args.initialization).map_err(refuse_rate)?;
    let ends = latest_end(&workload.jobs).filter(|_| trace.is_none());
    let mut plan = SimulationPlan {
        volumes,
        workload,
        trace,
        job: args.job.join(" + "),
        job_files,
        instance,
        initialization: args.initialization,
        loader,
        together: args.together,
        seed: args.seed,
        interval: Nanos::SECOND,
        interval_given: args.interval.is_some(),
        ends,
        command: command(args),
    };
    refuse_endless(&plan)?;
    plan.interval = match &args.interval {
        Some(text) => given_interval(&plan, text)?,
        None => plan.default_interval(),
    };
    Ok(plan)
}

fn given_interval(plan: &SimulationPlan, text: &str) -> anyhow::Result<Nanos> {
    let interval = virtual_time("--interval", text)?;
    let shortest = plan.shortest_interval();
    if interval < shortest {
        let message = format!(
            "--interval {text} is too short: expected at least {shortest}, since a run keeps at most \
             {MOST_INTERVALS} intervals of 1 ms or more"
        );
        return Err(Refusal::usage(message).hint("give a longer --interval or a shorter runtime").into());
    }
    Ok(interval)
}

/// Refuses jobs that end by their amount alone where that is beyond any use.
fn refuse_endless(plan: &SimulationPlan) -> anyhow::Result<()> {
    let Some(days) = plan.endless_days() else { return Ok(()) };
    let message = format!(
        "--job {}: the run takes {days} days of virtual time or more, and 3650 days are the most",
        plan.job
    );
    Err(Refusal::usage(message)
        .hint("give a higher rate, or end the job with runtime, size or number_ios")
        .into())
}

/// A run that was given up, or that does not fit a volume.
pub(super) fn refusal(error: &SimulateError) -> Refusal {
    match error {
        SimulateError::GivenUp { at } => Refusal::usage(format!(
            "at {at} of virtual time the run had {MOST_INTERVALS} intervals, the most that are kept"
        ))
        .hint("give a longer --interval, or a runtime"),
        other => Refusal::usage(other.to_string()),
    }
}

/// A rate that is not offered, with what to do.
fn refuse_rate(error: CatalogError) -> anyhow::Error {
    Refusal { hint: error.hint(), ..Refusal::usage(format!("--initialization: {error}")) }.into()
}

/// A region without prices, with what to do.
fn refuse_region(error: CatalogError) -> anyhow::Error {
    Refusal { hint: error.hint(), ..Refusal::usage(format!("--region: {error}")) }.into()
}

fn planned(catalog: &Catalog, prices: Prices<'_>, text: &str) -> anyhow::Result<SimulatedVolume> {
    let refuse = |error: &dyn std::error::Error| {
        Refusal::usage(format!("--volume {text}: {error}")).hint(
            "a volume is TYPE:KEY=VALUE,... such as gp3:size=500GiB,iops=6000 or raid0(2x gp2:size=100GiB)",
        )
    };
    let spec = Spec::parse(text).map_err(|error| refuse(&error))?;
    let resolved = catalog.resolve(&spec).map_err(|error| refuse(&error))?;
    let cost = prices.monthly_cost(&resolved);
    Ok(SimulatedVolume { spec: text.into(), resolved, cost })
}

/// A note on a volume whose figures are not the built-in ones.
fn overridden(volume: &SimulatedVolume) -> Option<String> {
    let reason = volume.resolved.provenance.overridden.as_ref()?;
    Some(format!("{} has figures of this home's own: {reason}", volume.spec))
}

fn instance(catalog: &Catalog, name: &str) -> anyhow::Result<InstanceType> {
    catalog.instance(name).map_err(|error| Refusal::usage(format!("--instance {name}: {error}")).into())
}

/// Reads every `--job`. Jobs of several run at the same time; a file's phases count from its start.
fn workload(jobs: &[String]) -> anyhow::Result<(Workload, Vec<(String, String)>)> {
    let mut files = Vec::new();
    let mut all = Workload { jobs: Vec::new(), notes: Vec::new() };
    for (text, number) in jobs.iter().zip(1..) {
        let mut read = one_workload(text, &mut files)?;
        if let ([job], true) = (&mut read.jobs[..], jobs.len() > 1)
            && job.name == fio::UNNAMED
        {
            job.name = format!("job {number}");
        }
        all.jobs.append(&mut read.jobs);
        for note in read.notes {
            if !all.notes.contains(&note) {
                all.notes.push(note);
            }
        }
    }
    Ok((all, files))
}

fn one_workload(text: &str, files: &mut Vec<(String, String)>) -> anyhow::Result<Workload> {
    if text.trim().is_empty() {
        // fio's defaults alone would read a whole volume one block after the other.
        return Err(Refusal::usage("--job is empty: expected a job").hint(FIO_HINT).into());
    }
    let machine = Machine::default();
    let refuse = |error: FioError, source: &str| Refusal::usage(format!("{source}: {error}")).hint(FIO_HINT);
    let path = Path::new(text);
    let read = if path.is_file() {
        let file =
            text_of(path).with_context(|| Refusal::usage(format!("cannot read the job file {text}")))?;
        let read = fio::parse_file(&file, text, &machine).map_err(|error| refuse(error, text))?;
        files.push((text.into(), file));
        read
    } else if !text.contains(['=', ' ']) && (text.ends_with(".fio") || text.contains('/')) {
        let message = format!("--job {text}: there is no such file");
        return Err(Refusal::usage(message).hint(FIO_HINT).into());
    } else {
        fio::parse_words(text, &machine).map_err(|error| refuse(error, "--job"))?
    };
    files.append(&mut machine.read.into_inner());
    Ok(read)
}

/// The machine's files and environment, for the words of jobs; it keeps what was read.
#[derive(Debug, Default)]
struct Machine {
    read: RefCell<Vec<(String, String)>>,
}

impl Surroundings for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &str) -> Result<String, ErrorKind> {
        let text = text_of(Path::new(path)).map_err(|error| error.kind())?;
        let file = (path.to_owned(), text.clone());
        let mut read = self.read.borrow_mut();
        if !read.contains(&file) {
            read.push(file);
        }
        Ok(text)
    }
}

const FIO_HINT: &str = "give fio's words, such as rw=randread,bs=16k,iodepth=64,runtime=3h, or a job file; docs/simulate.md lists them";

/// The command line that makes this run again, quoted for a shell.
fn command(args: &Args) -> String {
    let mut words = vec!["ebbtide simulate".to_owned()];
    let mut option = |name: &str, value: &str| words.push(format!("--{name} {}", quoted(value)));
    args.volume.iter().for_each(|spec| option("volume", spec));
    args.job.iter().for_each(|job| option("job", job));
    args.trace.words().iter().for_each(|(name, value)| option(name, value));
    args.interval.iter().for_each(|interval| option("interval", interval));
    args.instance.iter().for_each(|name| option("instance", name));
    args.region.iter().for_each(|name| option("region", name));
    if args.initialization != Initialization::None {
        option("initialization", &args.initialization.to_string());
    }
    option("seed", &args.seed.to_string());
    args.html.iter().for_each(|path| option("html", &path.display().to_string()));
    if args.trace.think_times {
        words.push("--think-times".into());
    }
    if args.together {
        words.push("--together".into());
    }
    words.join(" ")
}
