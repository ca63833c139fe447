//! The summary of a crash run: plain figures, for the page, the terminal and other programs.

use std::collections::BTreeMap;

use ebbtide_analysis::claim::JudgedClaim;
use ebbtide_analysis::stats::Share;
use ebbtide_lab::cost::Costs;
use ebbtide_lab::experiment::{Canary, End, Moment, ServerRole};
use ebbtide_lab::summary::{Measured, Note, Ratio, Verdict};
use serde::{Deserialize, Serialize};

use crate::record::{Corruption, FileKind, Took, VerdictKind};

/// The summary of a crash run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Whether anything in it may be believed: every canary that is needed ran and was caught.
    pub valid: bool,
    /// Why not; empty where it is valid.
    pub void: Vec<String>,
    /// What came out, a sentence each, for people; the wording may change.
    pub findings: Vec<String>,
    /// The arms that are asked about, in the order of the experiment.
    pub arms: Vec<ArmSummary>,
    /// The canaries.
    pub canaries: Vec<CanarySummary>,
    /// Place in [`Self::arms`] of the arm that gains are over, those of arms of its role; none where there is only one
    /// arm.
    pub baseline: Option<usize>,
    /// Throughput held against each other, as the experiment asks.
    pub comparisons: Vec<Gain>,
    /// How fast all cuts were judged, canaries included.
    pub pace: Pace,
    /// What documents claim about the experiment, held against this run; empty where it has no claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<JudgedClaim>,
    /// What the volumes of the arms cost a month, canaries included; none where the run is from a program without
    /// prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_cost: Option<Costs>,
    /// What to know before believing it.
    pub notes: Vec<Note>,
}

/// An arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// Its name.
    pub name: String,
    /// Its place in the experiment.
    pub index: usize,
    /// Whose power it was.
    pub role: ServerRole,
    /// What ended in its cuts.
    pub end: End,
    /// Cuts that were to be made.
    pub planned: u32,
    /// Cuts that were made.
    pub cuts: u64,
    /// Cuts that were looked at in full and with which nothing was wrong.
    pub clean: u64,
    /// Cuts with a bad verdict, of those with one and the clean ones.
    pub bad: Share,
    /// Cuts that nothing bad was seen in, and in which not everything could be looked at: neither clean nor
    /// bad.
    pub unverified: u64,
    /// Cuts with a bad verdict in which something else could not be looked at.
    pub bad_in_part: u64,
    /// Each kind of bad verdict that is looked for in a server of its role, of the cuts in which it could be looked for: nobody finds lost commits where
    /// the server does not start.
    pub verdicts: BTreeMap<VerdictKind, Share>,
    /// How corruption showed; a cut counts with its first verdict of the kind.
    pub corruption: BTreeMap<Corruption, u64>,
    /// What was lost, among the cuts that lost something; none where none did.
    pub loss: Option<LossSummary>,
    /// How the server recovered; none where it never did.
    pub recovery: Option<RecoverySummary>,
    /// How replicas went on; none for a primary, and where none came to that.
    pub resumed: Option<ResumedSummary>,
    /// Torn pages and writes.
    pub torn: TornSummary,
    /// Transactions that a replica would lack or have too much, at most; none where the logs agree.
    pub binlog: Option<BinlogSummary>,
    /// The moments, in the order of the plan.
    pub moments: Vec<MomentSummary>,
    /// What was in flight.
    pub in_flight: Vec<InFlightSummary>,
    /// What it carries while nobody cuts; none where that was not measured.
    pub throughput: Option<ThroughputSummary>,
    /// Stints whose throughput was measured and does not count: the load generator or the host could not keep up.
    #[serde(default)]
    pub disqualified: u64,
    /// That over the arm's of [`Self::gain_over`], always with its interval; none where the stints are too few for one.
    pub gain: Option<Ratio>,
    /// Place in [`Summary::arms`] of the arm that the gain is over: the baseline arm, or for arms of the other role
    /// the one that the experiment holds them against; none for these arms themselves.
    pub gain_over: Option<usize>,
    /// How fast its cuts were judged.
    pub pace: Pace,
}

/// The distribution of a figure over some cuts; all are observed values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many cuts.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The 5th percentile.
    pub p5: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The largest.
    pub max: f64,
}

/// Acknowledged transactions that were gone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossSummary {
    /// How many transactions a cut lost.
    pub transactions: Quantiles,
    /// From the first lost acknowledgement to the cut, s.
    pub seconds: Quantiles,
}

/// How servers recovered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecoverySummary {
    /// From the start to the first answer, s.
    pub seconds: Quantiles,
    /// Reads until then.
    pub reads: Quantiles,
    /// What they read, bytes.
    pub read_bytes: Quantiles,
    /// Writes until then.
    pub writes: Quantiles,
    /// What they wrote, bytes.
    pub written_bytes: Quantiles,
    /// Transactions that were rolled back, in all cuts.
    pub rolled_back: u64,
}

/// How replicas went on after their recovery.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ResumedSummary {
    /// Transactions that they had applied before the cut and had to fetch again, at least.
    pub to_fetch_again: Quantiles,
    /// Until they had them all, s; none where none ever had.
    pub caught_up_s: Option<Quantiles>,
}

/// Pages that were torn, and what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TornSummary {
    /// Writes in flight of which the image had a part, of any kind.
    pub writes: u64,
    /// Images with invalid pages before recovery.
    pub images: u64,
    /// Those pages.
    pub pages: u64,
    /// Pages that the doublewrite buffer gave back, by the server's log.
    pub given_back: u64,
    /// Images in which a page stayed invalid although the doublewrite buffer had a valid copy of it.
    pub not_restored: u64,
    /// Images with invalid pages before recovery that recovered clean.
    pub mended: u64,
}

/// How far tables and binary log were apart at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinlogSummary {
    /// Transactions that the tables had and the binary log lacked.
    pub missing_in_binlog: u64,
    /// Transactions that the binary log had and the tables lacked.
    pub missing_in_tables: u64,
}

/// The cuts at one kind of moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MomentSummary {
    /// The moment.
    pub moment: Moment,
    /// Cuts that looked for it.
    pub cuts: u64,
    /// Those of them with whose server it can come at all: without a doublewrite buffer, no batch of it does.
    #[serde(default)]
    pub possible: u64,
    /// Those that met it.
    pub met: u64,
    /// Clean ones among the cuts.
    pub clean: u64,
    /// Those that nothing bad was seen in, and in which not everything could be looked at.
    pub unverified: u64,
    /// Those with each kind of bad verdict.
    pub verdicts: BTreeMap<VerdictKind, u64>,
}

/// Writes of a kind of file, at the moments of the cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlightSummary {
    /// What they were writes of.
    pub kind: FileKind,
    /// Cuts with such a write in flight.
    pub cuts: u64,
    /// Writes that were kept, which are the largest where a cut had many.
    pub writes: u64,
    /// Those of which the image had a part.
    pub torn: u64,
}

/// What an arm carries while nobody cuts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThroughputSummary {
    /// Stints that measured it, and count.
    pub stints: u64,
    /// Transactions a second.
    pub tps: Measured,
    /// 95th percentile of the response time, us: median stint; none for a replica, for which nobody waits.
    pub p95_us: Option<f64>,
    /// Writes a second of all volumes, as the guest submitted them: mean.
    pub write_iops: f64,
    /// What they wrote, bytes a second: mean.
    pub write_bytes_s: f64,
}

/// Throughput of one arm over another's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The axis in which they differ.
    pub axis: String,
    /// Place in [`Summary::arms`].
    pub arm: usize,
    /// Place in [`Summary::arms`] of the arm that it is held against.
    pub baseline: usize,
    /// The ratio, always with its interval; none where the stints are too few for one.
    pub tps: Option<Ratio>,
    /// What the data carry.
    pub verdict: Verdict,
    /// The true difference that such a run sees in 4 of 5 cases, as a share.
    pub smallest_effect: Option<f64>,
}

/// How fast cuts were judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Cuts.
    pub cuts: u64,
    /// From the first cut of a stint to its last verdict, over all stints, s.
    pub cutting_s: f64,
    /// Verified cuts a minute of that time, the load included; none without such a time.
    pub cuts_a_minute: Option<f64>,
    /// The tester's own time for a cut, mean, s.
    pub took: Took,
    /// How long no write of the live volumes could complete for a cut, mean, us.
    pub paused_us: f64,
}

/// An arm that is there to prove that the tester sees damage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CanarySummary {
    /// What it is to prove.
    pub canary: Canary,
    /// After how many of its cuts the damage that it proves was seen; none: never.
    pub caught: Option<u64>,
    /// Its figures.
    pub arm: ArmSummary,
}

impl ArmSummary {
    /// Cuts with this kind of verdict.
    #[must_use]
    pub fn count(&self, kind: VerdictKind) -> u64 {
        self.verdicts.get(&kind).map_or(0, |share| share.count)
    }
}
