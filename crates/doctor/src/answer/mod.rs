//! What the doctor says: the answer as a document and for programs, and the checks themselves.

mod cnf;
mod diagnosis;
mod document;
mod explained;
#[cfg(test)]
mod fuzz;
mod proof_text;

use ebbtide_advisor::{Assessment, Finding, Severity};
use ebbtide_observe::Observation;

use crate::baseline::Comparison;
use crate::proof::Proof;

pub use self::cnf::fragment;
pub use self::diagnosis::{Captured, Diagnosis, Explained};
pub use self::document::document;
pub use self::explained::{all_checks, check_text};
pub use self::proof_text::proof_rows;

/// What is printed: what was seen, what the checks found, and what changed since before.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// What was seen of the server and its machine.
    pub observation: &'a Observation,
    /// The answers of all checks, in the order of what they are worth.
    pub findings: &'a [Finding],
    /// What changed since the diagnosis of before; none without one.
    pub baseline: Option<&'a Comparison>,
    /// The run of the lab that proves fixes; none without one.
    pub proof: Option<&'a Proof>,
}

impl<'a> Answer<'a> {
    /// What was found; with a baseline what is new or another than before.
    #[must_use]
    pub fn found(self) -> Vec<&'a Finding> {
        let found = self.findings.iter().filter(|finding| finding.verdict == Assessment::Found);
        found.filter(|finding| self.baseline.is_none_or(|baseline| baseline.shows(finding))).collect()
    }
}

/// How many findings there are of each severity, the worst first.
fn by_severity(findings: &[Finding]) -> impl Iterator<Item = (Severity, usize)> {
    Severity::ALL.into_iter().rev().map(|severity| {
        (severity, findings.iter().filter(|finding| finding.severity == Some(severity)).count())
    })
}
