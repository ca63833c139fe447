//! What the check of a server found, as data.

use std::fmt;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::journal::Journal;

/// What must hold in the tables whatever the load was doing when the server was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Every commit that was acknowledged to a client is there.
    LostCommits,
    /// No commit is there that its client had not sent.
    Phantom,
    /// Every client has its mark.
    Marks,
    /// Accounts and ballast have as many rows as were loaded.
    Rows,
    /// The accounts' versions add up to two for each marked transaction.
    Versions,
    /// The ballast's hits add up to one for each marked transaction.
    Hits,
    /// Transfers move money: the sum of all balances stays.
    Balance,
    /// The newest history row of each client is that of its mark.
    HistoryEnd,
    /// A client's history has no gap.
    HistoryGap,
    /// The oldest history row of each client is the one that its last transaction left.
    HistoryStart,
    /// Nothing is there of a transaction that was rolled back.
    Aborted,
    /// Every row fits its checksum.
    Checksum,
    /// A secondary index has the entries of the clustered one.
    Index,
    /// TPC-C: the consistency conditions of clause 3.3.2 hold.
    Consistency,
}

/// What a broken rule is evidence of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Acknowledged commits are gone; what is there is whole.
    LostCommits,
    /// A transaction is there that no client sent, that was rolled back, or only in part.
    PhantomOrPartial,
    /// Rows or indexes are damaged.
    Corrupt,
}

impl Rule {
    /// What it is evidence of when it is broken.
    #[must_use]
    pub fn evidence(self) -> Evidence {
        match self {
            Self::LostCommits => Evidence::LostCommits,
            Self::Checksum | Self::Index | Self::Rows => Evidence::Corrupt,
            _ => Evidence::PhantomOrPartial,
        }
    }

    /// The rule as a sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::LostCommits => "every acknowledged commit is there",
            Self::Phantom => "no commit is there that was not sent",
            Self::Marks => "every client has its mark",
            Self::Rows => "every loaded row is there",
            Self::Versions => "the accounts' versions fit the marks",
            Self::Hits => "the ballast's hits fit the marks",
            Self::Balance => "the sum of the balances stays",
            Self::HistoryEnd => "the newest history row is that of the mark",
            Self::HistoryGap => "the history has no gap",
            Self::HistoryStart => "the oldest history row is the one that the last transaction left",
            Self::Aborted => "nothing is there of what was rolled back",
            Self::Checksum => "every row fits its checksum",
            Self::Index => "secondary and clustered index agree",
            Self::Consistency => "the consistency conditions of TPC-C hold",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The table or index that breaks it; empty where the rule names it.
    pub subject: String,
    /// What had to be there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// The first rows or clients that break it, at most 5. Empty for a sum that no single row breaks.
    pub rows: Vec<String>,
}

/// How many offending rows a finding shows.
pub(crate) const SHOWN: usize = 5;

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken: {}", self.rule)?;
        if !self.subject.is_empty() {
            write!(f, " ({})", self.subject)?;
        }
        write!(f, "; expected {}, found {}", self.expected, self.found)?;
        for row in &self.rows {
            write!(f, "\n  {row}")?;
        }
        Ok(())
    }
}

/// How far a client had come in the server that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The client.
    pub client: u32,
    /// Its last commit.
    pub seq: u64,
}

/// A client that misses acknowledged commits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// The client.
    pub client: u32,
    /// Its last acknowledged commit.
    pub acknowledged: u64,
    /// Its last commit that the server has.
    pub recovered: u64,
    /// From the first acknowledgement that was lost to the cut, ms. None before [`Findings::date`], or where the
    /// journal no longer knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ms: Option<f64>,
}

impl Lost {
    /// How many commits.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.acknowledged - self.recovered
    }
}

/// What the check of a server found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// How far each client had come, by client.
    pub recovered: Vec<Mark>,
    /// The clients that miss acknowledged commits.
    pub lost: Vec<Lost>,
    /// The broken rules, in the order of [`Rule`].
    pub findings: Vec<Finding>,
    /// How long the check took, ms.
    pub took_ms: f64,
}

impl Findings {
    /// Whether every rule holds.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The rules that are broken, each once.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        let mut rules: Vec<Rule> = self.findings.iter().map(|finding| finding.rule).collect();
        rules.dedup();
        rules
    }

    /// Whether anything is evidence of that.
    #[must_use]
    pub fn shows(&self, evidence: Evidence) -> bool {
        self.findings.iter().any(|finding| finding.rule.evidence() == evidence)
    }

    /// Acknowledged commits that are gone, of all clients.
    #[must_use]
    pub fn lost_commits(&self) -> u64 {
        self.lost.iter().map(Lost::commits).sum()
    }

    /// From the first acknowledgement that was lost, of any client, to the cut, ms: the data loss in time.
    /// None where nothing was lost or nothing is dated.
    #[must_use]
    pub fn lost_ms(&self) -> Option<f64> {
        self.lost.iter().filter_map(|lost| lost.span_ms).reduce(f64::max)
    }

    /// Reports for each client that lost commits how far back the loss reaches from the cut at `at`.
    pub fn date(&mut self, journal: &Journal, at: Instant) {
        for lost in &mut self.lost {
            let first = journal.acknowledged_at(lost.client, lost.recovered + 1);
            lost.span_ms = first.map(|first| at.saturating_duration_since(first).as_secs_f64() * 1e3);
        }
    }
}
