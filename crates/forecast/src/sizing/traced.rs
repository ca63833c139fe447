//! The load of a trace of block I/O.

use std::fs::File;
use std::path::Path;

use ebbtide_advisor::sizing::SSD_UNIT;
use ebbtide_captured::packed::unpacked;
use ebbtide_observe::{LoadInterval, VolumeLoad};
use ebbtide_text::count;
use ebbtide_twin::trace::{Options, Trace, TraceError};
use ebbtide_volume::Op;

use super::error::SizingError;

/// Intervals that a trace is divided into, at most.
const MOST_INTERVALS: usize = 20_000;

/// Requests of a trace in intervals of a second, or of more where it is long.
struct Buckets {
    seconds: u64,
    all: Vec<Bucket>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    reads: f64,
    writes: f64,
    read_bytes: f64,
    written_bytes: f64,
    read_s: f64,
    write_s: f64,
    timed: bool,
}

impl Buckets {
    fn add(&mut self, at_s: u64, op: Op, len: u32, latency_s: Option<f64>) {
        let mut place = usize::try_from(at_s / self.seconds).unwrap_or(usize::MAX);
        while place >= MOST_INTERVALS {
            self.halve();
            place = usize::try_from(at_s / self.seconds).unwrap_or(usize::MAX);
        }
        if self.all.len() <= place {
            self.all.resize(place + 1, Bucket::default());
        }
        let bucket = &mut self.all[place];
        // What the limits of an SSD volume count.
        let operations = u64::from(len).div_ceil(SSD_UNIT).max(1) as f64;
        bucket.timed |= latency_s.is_some();
        let time = latency_s.unwrap_or(0.0) * operations;
        if op == Op::Read {
            bucket.reads += operations;
            bucket.read_bytes += f64::from(len);
            bucket.read_s += time;
        } else {
            bucket.writes += operations;
            bucket.written_bytes += f64::from(len);
            bucket.write_s += time;
        }
    }

    /// Intervals of twice the length.
    fn halve(&mut self) {
        let joined = self.all.chunks(2).map(|pair| {
            let mut sum = pair[0];
            for more in &pair[1..] {
                sum.reads += more.reads;
                sum.writes += more.writes;
                sum.read_bytes += more.read_bytes;
                sum.written_bytes += more.written_bytes;
                sum.read_s += more.read_s;
                sum.write_s += more.write_s;
                sum.timed |= more.timed;
            }
            sum
        });
        self.all = joined.collect();
        self.seconds *= 2;
    }

    fn load(self) -> VolumeLoad {
        let seconds = self.seconds as f64;
        let interval = |(place, one): (usize, &Bucket)| {
            let mean = |time: f64, number: f64| (one.timed && number > 0.0).then(|| time / number);
            LoadInterval {
                start_s: place as f64 * seconds,
                seconds,
                reads: one.reads / seconds,
                writes: one.writes / seconds,
                read_bytes: one.read_bytes / seconds,
                written_bytes: one.written_bytes / seconds,
                queue: None,
                read_s: mean(one.read_s, one.reads),
                write_s: mean(one.write_s, one.writes),
                credits: None,
                limited: None,
            }
        };
        VolumeLoad { intervals: self.all.iter().enumerate().map(interval).collect() }
    }
}

/// The load of a trace, and what has to be known of its figures.
///
/// # Errors
/// A file that cannot be read, or that has no request.
pub(super) fn of_trace(path: &Path, options: &Options) -> Result<(VolumeLoad, Vec<String>), SizingError> {
    let input = File::open(path)
        .and_then(unpacked)
        .map_err(|source| SizingError::TraceFile { path: path.to_owned(), source })?;
    let damaged = |cause: TraceError, requests| SizingError::Trace {
        path: path.to_owned(),
        cause: cause.into(),
        requests,
    };
    let mut trace = Trace::open(input, options).map_err(|cause| damaged(cause, 0))?;
    let mut buckets = Buckets { seconds: 1, all: Vec::new() };
    let mut requests = 0_u64;
    for record in trace.by_ref() {
        let record = record.map_err(|cause| damaged(cause, requests))?;
        requests += 1;
        if matches!(record.io.op, Op::Read | Op::Write) {
            let latency = record.latency.map(ebbtide_volume::Nanos::as_secs_f64);
            buckets.add(record.at.0 / 1_000_000_000, record.io.op, record.io.len, latency);
        }
    }
    let format = trace.counts().format;
    if buckets.all.is_empty() {
        return Err(SizingError::NoRequest { path: path.to_owned(), format });
    }
    let notes = vec![format!(
        "{} of the trace ({format}), in intervals of {} s; the last one may be cut short",
        count(requests, "request"),
        buckets.seconds
    )];
    Ok((buckets.load(), notes))
}
