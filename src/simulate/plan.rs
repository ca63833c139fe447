//! From arguments to what will be run, refusing what cannot.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use ebbtide_captured::packed::text_of;
use ebbtide_catalog::{
    Catalog, CatalogError, Initialization, InstanceType, MonthlyCost, Prices, Resolved, Spec,
};
use ebbtide_text::shell_words::quoted;
use ebbtide_twin::fio::{self, FioError, Surroundings};
use ebbtide_twin::{Job, Workload};
use ebbtide_volume::{Array, Loader, Nanos, Op};

use super::Args;
use super::trace::TracePlan;
use crate::duration::virtual_time;
use crate::exit::Refusal;

/// Intervals that one run keeps at most: the limit of what a page or a JSON reader takes well.
pub(super) const MOST_INTERVALS: u64 = 1_000_000;
/// Intervals that a run without `--interval` aims to stay below: a day of seconds.
const DEFAULT_INTERVALS: u64 = 86_400;
/// Longest run without a runtime: as long as a runtime can be, 3650 days.
const LONGEST_RUN: Nanos = Nanos::from_secs(3_650 * 86_400);
/// Lengths of intervals and of table rows, in seconds, that people count in.
pub(super) const STEPS_S: [u64; 19] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 604_800,
];

/// What will be run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) volumes: Vec<Planned>,
    pub(super) workload: Workload,
    /// What is replayed instead of jobs.
    pub(super) trace: Option<TracePlan>,
    /// The jobs as they were given; with a trace, none.
    pub(super) job: String,
    /// Job files among them, with their texts.
    pub(super) job_files: Vec<(String, String)>,
    pub(super) instance: Option<InstanceType>,
    /// How the volumes get their blocks.
    pub(super) initialization: Initialization,
    /// The same for the model; none where all blocks are there.
    pub(super) loader: Option<Loader>,
    /// Whether all volumes share one instance.
    pub(super) together: bool,
    pub(super) seed: u64,
    pub(super) interval: Nanos,
    /// Whether the user named the interval, and wants to see every one.
    pub(super) interval_given: bool,
    /// When the run ends at the latest, where runtimes limit it.
    pub(super) ends: Option<Nanos>,
    /// The command line that makes this run again.
    pub(super) command: String,
}

/// One volume.
#[derive(Debug)]
pub(super) struct Planned {
    /// Its spec as it was given.
    pub(super) spec: String,
    pub(super) resolved: Resolved,
    /// What it costs a month; none where its type has no price in the region.
    pub(super) cost: Option<MonthlyCost>,
}

impl Planned {
    /// Its cost in a line; `-` where it has none.
    pub(super) fn cost_line(&self) -> String {
        self.cost.as_ref().map_or_else(|| "-".to_owned(), MonthlyCost::line)
    }

    /// Its cost in a cell; `-` where it has none.
    pub(super) fn cost_cell(&self) -> String {
        self.cost.as_ref().map_or_else(|| "-".to_owned(), MonthlyCost::short)
    }
}

impl Plan {
    pub(super) fn read(args: &Args, catalog: &Catalog) -> anyhow::Result<Self> {
        let prices = catalog.prices(args.region.as_deref()).map_err(refuse_region)?;
        let volumes: Vec<Planned> =
            args.volume.iter().map(|spec| planned(catalog, prices, spec)).collect::<Result<_, _>>()?;
        let instance = args.instance.as_deref().map(|name| instance(catalog, name)).transpose()?;
        let (mut workload, job_files) = workload(&args.job)?;
        workload.notes.extend(volumes.iter().filter_map(overridden));
        let trace = args.trace.plan()?;
        let loader = catalog.loader(args.initialization).map_err(refuse_rate)?;
        let ends = latest_end(&workload.jobs).filter(|_| trace.is_none());
        let mut plan = Self {
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
        plan.refuse_endless()?;
        plan.interval = match &args.interval {
            Some(text) => plan.given_interval(text)?,
            None => plan.default_interval(),
        };
        Ok(plan)
    }

    /// The volumes at the beginning of the run.
    pub(super) fn arrays(&self) -> Vec<Array> {
        let begin = |volume: &Planned| {
            let mut array = volume.resolved.array(Nanos::ZERO);
            if let Some(loader) = &self.loader {
                let whole = 0..array.size_bytes();
                let states = array.new_load_states(&[whole], Nanos::ZERO);
                array.begin_loading(loader, states).expect("an array has a state for each of its members");
            }
            array
        };
        self.volumes.iter().map(begin).collect()
    }

    fn given_interval(&self, text: &str) -> anyhow::Result<Nanos> {
        let interval = virtual_time("--interval", text)?;
        let ends = self.ends.unwrap_or_else(|| self.least_end());
        let shortest = Nanos((ends.0 / MOST_INTERVALS).max(1_000_000));
        if interval < shortest {
            let message = format!(
                "--interval {text} is too short: expected at least {shortest}, since a run keeps at most \
                 {MOST_INTERVALS} intervals of 1 ms or more"
            );
            return Err(Refusal::usage(message).hint("give a longer --interval or a shorter runtime").into());
        }
        Ok(interval)
    }

    /// A second, or more where the run would have more than a day of them.
    fn default_interval(&self) -> Nanos {
        let seconds = self.ends.unwrap_or_else(|| self.estimated_end()).0 / 1_000_000_000;
        let fits = |step: &&u64| seconds / **step <= DEFAULT_INTERVALS;
        Nanos::from_secs(STEPS_S.iter().find(fits).copied().unwrap_or(STEPS_S[STEPS_S.len() - 1]))
    }

    /// Refuses jobs that end by their amount alone where that is beyond any use.
    fn refuse_endless(&self) -> anyhow::Result<()> {
        let least = self.least_end();
        if self.ends.is_some() || least <= LONGEST_RUN {
            return Ok(());
        }
        let days = least.0 / Nanos::from_secs(86_400).0;
        let message = format!(
            "--job {}: the run takes {days} days of virtual time or more, and 3650 days are the most",
            self.job
        );
        Err(Refusal::usage(message)
            .hint("give a higher rate, or end the job with runtime, size or number_ios")
            .into())
    }

    /// A time before which the run cannot end.
    fn least_end(&self) -> Nanos {
        let phases = self.workload.jobs.iter().map(|job| job.phase).max().unwrap_or(0);
        let on_volume = |volume: &Planned| {
            let size = volume.resolved.size_bytes();
            let of_phase = |phase| {
                let jobs = self.workload.jobs.iter().filter(|job| job.phase == phase);
                jobs.map(|job| job.least_time(size).0).max().unwrap_or(0)
            };
            let paced = (0..=phases).map(of_phase).fold(0, u64::saturating_add);
            paced.max(self.least_transfer(volume).0)
        };
        Nanos(self.volumes.iter().map(on_volume).max().unwrap_or(0))
    }

    /// How long a volume takes for the bytes of all jobs when its burst never ends; zero where a
    /// runtime may end a job before.
    fn least_transfer(&self, volume: &Planned) -> Nanos {
        let ceilings = volume.resolved.members.iter().map(|limits| Some(limits.throughput?.ceiling));
        let Some(ceilings) = ceilings.collect::<Option<Vec<_>>>() else { return Nanos::ZERO };
        let rate = ceilings.into_iter().fold(0, u64::saturating_add).max(1);
        if self.workload.jobs.iter().any(|job| job.runtime.is_some() || job.max_ios.is_some()) {
            return Nanos::ZERO;
        }
        Nanos((self.bytes_on(volume) / rate).saturating_mul(Nanos::SECOND.0))
    }

    /// How long jobs that end by their amount take at the slowest volume's sustained limits. Only
    /// the length of intervals hangs on it.
    fn estimated_end(&self) -> Nanos {
        let bytes = self.volumes.iter().map(|volume| self.bytes_on(volume)).max().unwrap_or(0);
        let block = self.workload.jobs.iter().map(|job| job.block_sizes[0].smallest()).min().unwrap_or(4096);
        let members = self.volumes.iter().flat_map(|volume| &volume.resolved.members);
        let seconds = members.map(|limits| {
            let by_iops = limits.iops.map_or(0, |limit| bytes / u64::from(block) / limit.rate);
            let by_bytes = limits.throughput.map_or(0, |limit| bytes / limit.rate);
            by_iops.max(by_bytes)
        });
        let limited = Nanos(seconds.max().unwrap_or(0).saturating_mul(Nanos::SECOND.0));
        limited.max(self.least_end())
    }

    fn bytes_on(&self, volume: &Planned) -> u64 {
        let size = volume.resolved.size_bytes();
        let of_job = |job: &Job| {
            let once = job.size.map_or(size, |extent| extent.bytes_of(size)).saturating_mul(job.loops);
            job.amount.unwrap_or(once).saturating_mul(u64::from(job.clones))
        };
        self.workload.jobs.iter().map(of_job).fold(0, u64::saturating_add)
    }

    /// Whether any job reads, and whether any writes. Of a trace this is not known before.
    pub(super) fn does(&self, op: Op) -> bool {
        self.workload.jobs.iter().any(|job| job.does(op))
    }

    /// What the volumes get, for people: the jobs, or the trace.
    pub(super) fn load(&self) -> String {
        self.trace.as_ref().map_or_else(|| self.job.clone(), |trace| trace.path.display().to_string())
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

fn planned(catalog: &Catalog, prices: Prices<'_>, text: &str) -> anyhow::Result<Planned> {
    let refuse = |error: &dyn std::error::Error| {
        Refusal::usage(format!("--volume {text}: {error}")).hint(
            "a volume is TYPE:KEY=VALUE,... such as gp3:size=500GiB,iops=6000 or raid0(2x gp2:size=100GiB)",
        )
    };
    let spec = Spec::parse(text).map_err(|error| refuse(&error))?;
    let resolved = catalog.resolve(&spec).map_err(|error| refuse(&error))?;
    let cost = prices.monthly_cost(&resolved);
    Ok(Planned { spec: text.into(), resolved, cost })
}

/// A note on a volume whose figures are not the built-in ones.
fn overridden(volume: &Planned) -> Option<String> {
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

/// The end of the last phase, where every job has a runtime.
fn latest_end(jobs: &[Job]) -> Option<Nanos> {
    let phases = jobs.iter().map(|job| job.phase).max().unwrap_or(0);
    let mut ends = Nanos::ZERO;
    for phase in 0..=phases {
        let in_phase = jobs.iter().filter(|job| job.phase == phase);
        let spans = in_phase.map(|job| job.runtime.map(|runtime| job.start_delay + runtime));
        ends += spans.collect::<Option<Vec<_>>>()?.into_iter().max().unwrap_or(Nanos::ZERO);
    }
    Some(ends)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_known_only_where_every_job_has_a_runtime() {
        let jobs = |text: &str| fio::parse_file(text, "", &fio::Nothing).unwrap().jobs;
        let ends =
            latest_end(&jobs("[a]\nruntime=60\nstartdelay=5\n[b]\nruntime=30\n[c]\nstonewall\nruntime=10\n"));
        assert_eq!(ends, Some(Nanos::from_secs(75)));
        assert_eq!(latest_end(&jobs("[a]\nruntime=60\n[b]\nsize=1g\n")), None);
    }
}
