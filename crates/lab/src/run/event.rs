//! What a run reports while it goes on: enough for a status line, nothing that is needed afterwards.

use crate::record::Outcome;
use crate::summary::TrialFigures;

/// Something that happened, or goes on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A killed run had left something, and it has been cleared.
    Cleared {
        /// What it was.
        what: String,
    },
    /// Something that should be known, such as an arm that this server cannot have.
    Noted {
        /// What it is.
        text: String,
    },
    /// Work before the trials: calibrating the host, making data.
    Preparing {
        /// What is being done.
        what: String,
        /// How much of it is done, 0 to 1; none where that cannot be determined.
        share: Option<f64>,
    },
    /// Which trials there are.
    Planned {
        /// Trials altogether.
        of: usize,
        /// How many of them an earlier run has measured already.
        already: usize,
        /// How long those that are left will take, s, estimated from the experiment.
        estimate_s: f64,
    },
    /// A trial begins.
    TrialStarted(Progress),
    /// A trial enters a phase.
    Phase {
        /// Which trial.
        trial: Progress,
        /// The phase.
        phase: Phase,
    },
    /// A second of a trial's load is over.
    Tick {
        /// Which trial.
        trial: Progress,
        /// What was seen.
        tick: Tick,
    },
    /// What is waited for, while something takes longer than a second.
    Waiting {
        /// Which trial; none before the first one.
        trial: Option<Progress>,
        /// What for.
        why: String,
    },
    /// A trial has ended and is in the results.
    TrialEnded {
        /// Which trial.
        trial: Progress,
        /// How it ended.
        outcome: Outcome,
        /// Its figures, as the summary has them: without warm-up; none where it did not come to a measurement.
        figures: Option<TrialFigures>,
    },
}

/// Which trial, and how far the run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Number of the trial in this run's order, from 1.
    pub number: usize,
    /// Trials altogether.
    pub of: usize,
    /// The arm's name.
    pub arm: String,
    /// Which repeat of the arm, from 0.
    pub repeat: u32,
    /// Time to the end of the whole run, s; withheld until a trial has been measured.
    pub eta_s: Option<f64>,
}

/// What a trial is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Cloning the data and attaching volumes.
    Cloning,
    /// Starting the server.
    Starting,
    /// Reading the tables through, without limits.
    Reading,
    /// Running the load on multiplied limits.
    LeadIn,
    /// Running the load on the volumes' limits, before the measurement.
    Settling,
    /// Measuring.
    Measuring,
    /// Checking the consistency of TPC-C's tables, without limits.
    Checking,
    /// Waiting for the end of the backup, on the volumes' limits.
    BackingUp,
    /// Restoring the backup and checking it, without limits.
    Restoring,
    /// Promoting a replica after the source was killed.
    Promoting,
    /// Ending the server and throwing the volumes away.
    Clearing,
}

/// A second of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    /// The phase.
    pub phase: Phase,
    /// The end of the second, s since the start of the measurement; negative before it.
    pub t_s: f64,
    /// The length of the measurement, s.
    pub measure_s: u32,
    /// Transactions a second.
    pub tps: f64,
    /// 95th percentile of the response time, us.
    pub p95_us: f64,
    /// The lowest burst credits of the volumes, share of 0 to 1; none without.
    pub credits: Option<f64>,
    /// I/Os a second of all volumes, as their IOPS limits count them.
    pub volume_iops: f64,
}

/// Where a run sends its events, from any of its threads.
#[derive(Clone, Copy)]
pub struct EventSink<'a>(&'a (dyn Fn(Event) + Sync));

impl<'a> EventSink<'a> {
    /// Hands every event to `handler`.
    #[must_use]
    pub const fn new(handler: &'a (dyn Fn(Event) + Sync)) -> Self {
        Self(handler)
    }

    /// Something has happened.
    pub fn send(&self, event: Event) {
        (self.0)(event);
    }

    /// Something is being done before the trials.
    pub fn preparing(&self, what: impl Into<String>) {
        self.send(Event::Preparing { what: what.into(), share: None });
    }
}

impl std::fmt::Debug for EventSink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventSink")
    }
}
