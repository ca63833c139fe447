//! `--trace`: a file with the requests of another volume, packed or not.

use std::fs::File;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;

use ebbtide_captured::packed::unpacked;
use ebbtide_forecast::simulation::{
    Reached, SimulatedRun, SimulationPlan, TracePlan, TraceRead, VolumeGroup,
};
use ebbtide_text::{count, whole};
use ebbtide_twin::ReplayError;
use ebbtide_twin::trace::{Device, Options, Record, Trace, TraceError, Unbatched};

use super::plan::refusal as refuse_run;
use crate::exit::Refusal;
use crate::trace_options;

/// The options of a trace.
#[derive(Debug, clap::Args)]
pub(super) struct TraceArgs {
    /// A trace of block I/O to replay instead of a job, packed with gzip or zstd or not
    #[arg(long, value_name = "FILE", conflicts_with = "job", required_unless_present = "job")]
    pub(super) trace: Option<PathBuf>,
    /// The trace's format [default: known by its first lines]
    #[arg(long, value_name = "NAME", requires = "trace", conflicts_with = "job")]
    trace_format: Option<String>,
    /// The device of the trace whose requests are taken; all: those of every device, as if it were one
    #[arg(long, value_name = "NAME", requires = "trace", conflicts_with = "job")]
    trace_device: Option<String>,
    /// The unit of the trace's times, in formats that do not fix it, and of the waits of fio's log: ns, us, ms, s
    #[arg(long, value_name = "UNIT", requires = "trace", conflicts_with = "job")]
    trace_unit: Option<String>,
    /// Infer think times: a request waits for the answer that its client had waited for. Without it, requests arrive when
    /// they did, however long the volume takes
    #[arg(long, requires = "trace", conflicts_with = "job")]
    pub(super) think_times: bool,
}

impl TraceArgs {
    /// The options that were given, with their values.
    pub(super) fn words(&self) -> Vec<(&'static str, String)> {
        let path = self.trace.as_ref().map(|path| path.display().to_string());
        let given = [
            ("trace", path),
            ("trace-format", self.trace_format.clone()),
            ("trace-device", self.trace_device.clone()),
            ("trace-unit", self.trace_unit.clone()),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The trace to replay; none where there are jobs.
    ///
    /// # Errors
    /// An unknown name: a [`Refusal`].
    pub(super) fn plan(&self) -> anyhow::Result<Option<TracePlan>> {
        let Some(path) = self.trace.clone() else { return Ok(None) };
        let options = Options {
            format: self.trace_format.as_deref().map(trace_options::format).transpose()?,
            unit_ns: self.trace_unit.as_deref().map(trace_options::unit_ns).transpose()?,
            device: Device::named(self.trace_device.as_deref()),
        };
        let plan = TracePlan { path, think_times: self.think_times, options };
        // A file that is none, or of no known format, is refused before anything runs.
        open(&plan)?;
        Ok(Some(plan))
    }
}

/// Opens the file and unpacks it.
///
/// # Errors
/// A file that cannot be read, or is no trace: a [`Refusal`].
fn open(plan: &TracePlan) -> anyhow::Result<Trace<Box<dyn BufRead + Send>>> {
    let path = &plan.path;
    let unreadable = |error: std::io::Error| {
        Refusal::environment(format!("cannot read the trace {}: {error}", path.display()))
    };
    let file = File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        let message = format!("--trace {}: expected a regular file", path.display());
        return Err(Refusal::usage(message).into());
    }
    let input = unpacked(file).map_err(unreadable)?;
    Trace::open(input, &plan.options).map_err(|error| refusal(path, &error.into(), 0).into())
}

/// Replays the trace on volumes that run in one virtual time.
///
/// # Errors
/// A trace that cannot be replayed, or has no request: a [`Refusal`].
pub(super) fn replayed(
    plan: &SimulationPlan,
    trace: &TracePlan,
    group: VolumeGroup,
    reached: Reached<'_>,
) -> anyhow::Result<Vec<SimulatedRun>> {
    let mut records = open(trace)?;
    let runs = read_ahead(&mut records, |records| group.replay(plan, trace.think_times, records, reached));
    let read = TraceRead::of(&records, trace.think_times);
    match runs {
        Ok(_) if read.requests == 0 => Err(empty(&trace.path, &read).into()),
        Ok(mut runs) => {
            runs.iter_mut().for_each(|run| run.trace = Some(read.clone()));
            Ok(runs)
        }
        Err(ReplayError::Simulate(error)) => Err(refuse_run(&error).into()),
        Err(error) => Err(refusal(&trace.path, &error, read.requests).into()),
    }
}

/// Batches of requests that are read ahead, at most.
const BATCHES: usize = 4;

/// Hands the requests of a trace to `take`, in their order, while a thread of its own reads on: a trace takes as long to read as
/// to replay. Where `take` ends before the trace does, more of the trace was read than it took.
fn read_ahead<T>(
    trace: &mut Trace<Box<dyn BufRead + Send>>,
    take: impl FnOnce(&mut dyn Iterator<Item = Result<Record, TraceError>>) -> T,
) -> T {
    let (full, batches) = sync_channel(BATCHES);
    thread::scope(|scope| {
        scope.spawn(move || {
            while let Some(batch) = trace.next_batch() {
                if full.send(batch).is_err() {
                    return;
                }
            }
        });
        // The receiver ends here, before the thread is waited for, and so does the thread.
        let mut next = move || batches.recv().ok();
        take(&mut Unbatched::new(&mut next))
    })
}

/// A trace that cannot be replayed, with how far it was.
fn refusal(path: &Path, error: &ReplayError, requests: u64) -> Refusal {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let before = match (error, requests) {
        (ReplayError::Trace(_), 1..) => format!("; read before it: {}", count(requests, "request")),
        _ => String::new(),
    };
    let refusal = Refusal::usage(format!("--trace {}: {error}{cause}{before}", path.display()));
    let error = match error {
        ReplayError::Trace(error) => error,
        ReplayError::NoLatencies => {
            return refusal.hint("leave --think-times out, or record answers too: blktrace, biosnoop, MSR's and SYSTOR's formats have them");
        }
        _ => return refusal,
    };
    refusal.hint(match error {
        TraceError::Unknown => {
            "name the format with --trace-format; docs/simulate.md describes each. blkparse is read as it prints without options, not with -f or -F"
        }
        TraceError::Foreign { .. } | TraceError::Empty => "docs/simulate.md has the formats that are read",
        TraceError::Read { .. } | TraceError::Event { .. } => "the file may be cut off: copy it again",
        TraceError::Line { .. } | TraceError::Length { .. } => {
            "if the format was taken for another, name it with --trace-format; otherwise mend or cut the file there"
        }
        TraceError::Devices { .. } => {
            "choose one with --trace-device NAME, or replay all as one with --trace-device all"
        }
    })
}

/// A trace without a request.
fn empty(path: &Path, read: &TraceRead) -> Refusal {
    let kinds: Vec<String> =
        read.not_used.iter().map(|kind| format!("{} {}", whole(kind.rows as f64), kind.kind)).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
    let message = format!(
        "--trace {}: no request was taken of it ({}; {} are none, or are another device's{kinds})",
        path.display(),
        read.format,
        count(read.discarded, "line or event")
    );
    Refusal::usage(message).hint("look at --trace-format and --trace-device")
}
