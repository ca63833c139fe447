//! What `ebbtide doctor` prints with `--json`.

use std::path::PathBuf;

use ebbtide_advisor::{Assessment, Caution, Check, Finding, Severity, Source};
use ebbtide_catalog::Catalog;
use ebbtide_observe::{Facts, NotSeen, Origin, Span};
use serde::Serialize;

use super::{Answer, explained};
use crate::baseline::Comparison;
use crate::proof::Proof;

/// The answers of all checks.
#[derive(Debug, Serialize)]
pub struct Diagnosis<'a> {
    /// Where the observation comes from.
    origin: &'a Origin,
    /// When it was made; null where the status was not read twice.
    span: Option<Span>,
    /// The server; null where its variables were not seen.
    server: Option<&'a Facts>,
    /// What lowers the worth of all that was seen.
    cautions: Vec<Caution>,
    /// The worst severity that was found; null without a finding.
    worst: Option<Severity>,
    /// What was found, in the order of what it is worth.
    findings: Vec<&'a Finding>,
    /// Checks without an answer, and why.
    unknown: Vec<&'a Finding>,
    /// Codes of the checks that found nothing.
    fine: Vec<&'static str>,
    /// Codes of the checks that have no meaning for this server.
    does_not_apply: Vec<&'static str>,
    /// What was asked for and not answered.
    not_seen: &'a [NotSeen],
    /// What changed since the diagnosis of `--baseline`; null without one.
    baseline: Option<&'a Comparison>,
    /// The run of the lab with `--prove`; null without.
    proof: Option<&'a Proof>,
}

impl<'a> Diagnosis<'a> {
    /// The answer for programs.
    #[must_use]
    pub fn of(answer: &Answer<'a>) -> Self {
        let Answer { observation, findings, baseline, proof } = *answer;
        let all = |verdict| findings.iter().filter(move |finding| finding.verdict == verdict);
        Self {
            origin: &observation.origin,
            span: observation.span,
            server: observation.facts.as_ref(),
            cautions: ebbtide_advisor::cautions(observation),
            worst: findings.iter().filter_map(|finding| finding.severity).max(),
            findings: all(Assessment::Found).collect(),
            unknown: all(Assessment::Unknown).collect(),
            fine: all(Assessment::Fine).map(|finding| finding.code).collect(),
            does_not_apply: all(Assessment::DoesNotApply).map(|finding| finding.code).collect(),
            not_seen: &observation.not_seen,
            baseline,
            proof,
        }
    }
}

/// What `doctor --explain` prints of a check.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// Name of the check.
    code: &'static str,
    /// What it looks at.
    title: &'static str,
    /// When it finds something.
    condition: String,
    /// Why the threshold is what it is.
    reason: String,
    /// Servers that it applies to.
    servers: String,
    /// How bad a finding is, unless the answer has another.
    severity: Severity,
    /// What the fix gains.
    gain: String,
    /// What can go wrong with the fix.
    risk: String,
    /// What the fix costs.
    cost: String,
    /// Where the facts come from.
    sources: &'static [Source],
}

impl Explained {
    /// A check, with the figures of the catalogue.
    #[must_use]
    pub fn of(check: &'static Check, catalog: &Catalog) -> Self {
        let words = check.words(catalog);
        Self {
            code: check.code,
            title: check.title,
            condition: words.condition,
            reason: words.reason,
            servers: explained::servers(check),
            severity: check.severity,
            gain: words.gain,
            risk: words.risk,
            cost: words.cost,
            sources: check.sources,
        }
    }
}

/// What `doctor capture -o` prints.
#[derive(Debug, Serialize)]
pub struct Captured {
    /// The file that was written.
    pub file: PathBuf,
    /// Its size, bytes.
    pub bytes: usize,
}
