//! `--trace`: a file with the requests of another volume, packed or not.

use std::fs::File;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;

use ebbtide_captured::packed::unpacked;
use ebbtide_text::count;
use ebbtide_twin::trace::{Device, Format, NotUsed, Options, Record, Trace, TraceError, Unbatched};
use ebbtide_twin::{Percentiles, ReplayError};

use super::figures::{latency, percent, whole};
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

/// A trace to replay.
#[derive(Debug, Clone)]
pub(super) struct TracePlan {
    pub(super) path: PathBuf,
    /// Whether requests wait for answers.
    pub(super) think_times: bool,
    options: Options,
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
        plan.open()?;
        Ok(Some(plan))
    }
}

/// The share of requests from which the first line says that they are not replayed.
const NOTICED: f64 = 0.01;

/// What was read of a trace.
#[derive(Debug, Clone)]
pub(super) struct TraceRead {
    pub(super) format: Format,
    pub(super) requests: u64,
    pub(super) discarded: u64,
    pub(super) late: u64,
    pub(super) bytes: u64,
    /// Recordings that stand one behind another in the file.
    pub(super) recordings: u64,
    waits_of_source: bool,
    /// Rows that are not replayed, by kind.
    pub(super) not_used: Vec<NotUsed>,
    /// The latencies that it has; empty where it has none.
    pub(super) recorded: Percentiles,
    /// Whether requests waited for answers.
    pub(super) think_times: bool,
}

impl TraceRead {
    pub(super) fn of<R>(trace: &Trace<R>, think_times: bool) -> Self {
        let counts = trace.counts();
        Self {
            format: counts.format,
            requests: counts.requests,
            discarded: counts.discarded,
            late: counts.late,
            bytes: counts.bytes,
            recordings: counts.recordings,
            waits_of_source: counts.waits_of_source,
            not_used: trace.not_used(),
            recorded: trace.recorded().clone(),
            think_times,
        }
    }

    /// Rows of requests that are not replayed.
    fn left_out(&self) -> u64 {
        let requests = self.not_used.iter().filter(|kind| kind.requests);
        requests.fold(0, |sum, kind| sum.saturating_add(kind.rows))
    }

    /// The share of the rows of requests that are not replayed, 0 to 1.
    pub(super) fn left_out_share(&self) -> f64 {
        let left_out = self.left_out() as f64;
        left_out / (left_out + self.requests as f64).max(1.0)
    }

    /// The kinds of requests that are not replayed, with how many there are.
    fn kinds(&self) -> String {
        let requests = self.not_used.iter().filter(|kind| kind.requests);
        let kinds: Vec<String> =
            requests.map(|kind| format!("{} {}", whole(kind.rows as f64), kind.kind)).collect();
        kinds.join(", ")
    }

    /// What is said before anything else: that more than 1% of the requests are not replayed, or not at their times.
    pub(super) fn warning(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.left_out_share() > NOTICED {
            let share = percent(Some(self.left_out_share()));
            parts.push(format!("{share} of the trace's requests are not replayed: {}", self.kinds()));
        }
        if self.late as f64 > NOTICED * self.requests as f64 {
            let share = percent(Some(self.late as f64 / self.requests as f64));
            parts.push(format!(
                "{share} of the trace's requests stand more than 10 s or 65,536 requests too late in the file and arrive when they are read"
            ));
        }
        (!parts.is_empty()).then(|| format!("warning: {}", parts.join("; ")))
    }

    /// What a reader of the figures has to know, in sentences.
    pub(super) fn sentences(&self) -> Vec<String> {
        let arrivals = if self.think_times {
            "Each waits for the answer that its client had waited for, and for the client's think time."
        } else {
            "They arrive when they did, however long the volume takes."
        };
        let requests = whole(self.requests as f64);
        let mut all = vec![format!("The trace ({}) has {requests} requests. {arrivals}", self.format)];
        if let Some(p50) = self.recorded.at(0.50) {
            let p99 = latency(self.recorded.at(0.99));
            all.push(format!("Recorded in the trace: p50 {}, p99 {p99}.", latency(Some(p50))));
        }
        if self.left_out() > 0 {
            all.push(format!("Not replayed: {}.", self.kinds()));
        }
        if self.recordings > 1 {
            all.push(format!(
                "The file has {} recordings: behind a heading its times begin again. Each is replayed behind the one before it.",
                whole(self.recordings as f64)
            ));
        }
        if self.waits_of_source {
            all.push(
                "Its waits are taken as fio's source has them, as milliseconds since the beginning; fio's documentation has \
                 microseconds after the wait before, which --trace-unit us takes."
                    .into(),
            );
        }
        if self.late > 0 {
            all.push(format!(
                "{} requests stand more than 10 s or 65,536 requests too late in the file; they arrive when they are read.",
                whole(self.late as f64)
            ));
        }
        if self.format == Format::Tencent {
            all.push("Its times are whole seconds: the requests of a second arrive at once, and wait longer than they did.".into());
        }
        all
    }
}

impl TracePlan {
    /// Opens the file and unpacks it.
    ///
    /// # Errors
    /// A file that cannot be read, or is no trace: a [`Refusal`].
    pub(super) fn open(&self) -> anyhow::Result<Trace<Box<dyn BufRead + Send>>> {
        let unreadable = |error: std::io::Error| {
            Refusal::environment(format!("cannot read the trace {}: {error}", self.path.display()))
        };
        let file = File::open(&self.path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            let message = format!("--trace {}: expected a regular file", self.path.display());
            return Err(Refusal::usage(message).into());
        }
        let input = unpacked(file).map_err(unreadable)?;
        Trace::open(input, &self.options).map_err(|error| refusal(&self.path, &error.into(), 0).into())
    }
}

/// Batches of requests that are read ahead, at most.
const BATCHES: usize = 4;

/// Hands the requests of a trace to `take`, in their order, while a thread of its own reads on: a trace takes as long to read as
/// to replay. Where `take` ends before the trace does, more of the trace was read than it took.
pub(super) fn read_ahead<T>(
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
pub(super) fn refusal(path: &Path, error: &ReplayError, requests: u64) -> Refusal {
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
pub(super) fn empty(path: &Path, read: &TraceRead) -> Refusal {
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
