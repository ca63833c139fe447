//! What a crash run reports while it goes on.

use ebbtide_lab::run::Event as LabEvent;

use super::record::{Cut, VerdictKind};

/// Something that happened, or goes on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// What every run of the lab reports: leftovers, notes, the making of data.
    Lab(LabEvent),
    /// What there is to do.
    Planned {
        /// Stints altogether.
        stints: usize,
        /// Cuts altogether, those of canaries not counted: the first that shows their damage ends them.
        cuts: u32,
        /// Stints that the run which this one goes on with has been through.
        already: usize,
    },
    /// A stint begins.
    StintStarted(Progress),
    /// What a stint is doing.
    Doing {
        /// Which stint.
        stint: Progress,
        /// What it does.
        what: String,
    },
    /// A cut was judged and is in the results.
    Judged {
        /// Which stint.
        stint: Progress,
        /// Cuts of this stint that are judged, this one included.
        judged: u32,
        /// Cuts of this stint altogether.
        of: u32,
        /// What was found; empty where it recovered clean.
        verdicts: Vec<VerdictKind>,
        /// Time to the end of the whole run, s; withheld until a stint has been through.
        eta_s: Option<f64>,
    },
    /// A stint has ended and is in the results.
    StintEnded {
        /// Which stint.
        stint: Progress,
        /// Transactions a second before the first cut; none where it did not come to that, or does not count.
        tps: Option<f64>,
        /// Why its throughput does not count; none where it does, or was not measured.
        disqualified: Option<String>,
        /// Cuts that were judged.
        judged: u32,
        /// Those among them that did not recover clean.
        bad: u32,
        /// Why it ended early; none where it did not.
        failed: Option<String>,
    },
}

/// Which stint, and how far the run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Number of the stint in this run's order, from 1.
    pub number: usize,
    /// Stints altogether.
    pub of: usize,
    /// The arm's name.
    pub arm: String,
    /// Which repeat of the arm, from 0.
    pub repeat: u32,
}

impl Cut {
    /// The kinds of what was found.
    #[must_use]
    pub fn kinds(&self) -> Vec<VerdictKind> {
        self.verdicts.iter().map(super::record::Verdict::kind).collect()
    }

    /// Whether something is wrong with it: an unverified one is neither bad nor clean.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.kinds().iter().any(|kind| *kind != VerdictKind::Unverified)
    }
}
