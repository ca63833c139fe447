//! What is replayed in place of jobs, and what was read of it.

use std::path::PathBuf;

use ebbtide_twin::Percentiles;
use ebbtide_twin::trace::{Format, NotUsed, Options, Trace};

use super::figures::{latency, percent, whole};

/// A trace to replay.
#[derive(Debug, Clone)]
pub struct TracePlan {
    /// Its file.
    pub path: PathBuf,
    /// Whether requests wait for answers.
    pub think_times: bool,
    /// How the file is read.
    pub options: Options,
}

/// The share of requests from which the first line says that they are not replayed.
const NOTICED: f64 = 0.01;

/// What was read of a trace.
#[derive(Debug, Clone)]
pub struct TraceRead {
    /// Its format.
    pub format: Format,
    /// Its requests: reads, writes and flushes.
    pub requests: u64,
    /// Lines or events that are no request to the volume.
    pub discarded: u64,
    pub(super) late: u64,
    pub(super) bytes: u64,
    /// Recordings that stand one behind another in the file.
    pub(super) recordings: u64,
    waits_of_source: bool,
    /// Rows that are not replayed, by kind.
    pub not_used: Vec<NotUsed>,
    /// The latencies that it has; empty where it has none.
    pub(super) recorded: Percentiles,
    /// Whether requests waited for answers.
    pub(super) think_times: bool,
}

impl TraceRead {
    /// What was read of a trace.
    #[must_use]
    pub fn of<R>(trace: &Trace<R>, think_times: bool) -> Self {
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
