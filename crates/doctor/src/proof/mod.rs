//! Proofs of findings: an experiment of the lab on volumes like the server's and under a load of its workload's shape, and what
//! it measured.
//!
//! `shape` is what counters show of the workload, `mix` are the statements of the load and `rows` the rows that they are on.
//! `settings` are the server's variables as settings of the lab. [`propose`] makes an experiment of all of them, which `file`
//! writes, and [`Proof`] holds what was measured. The lab runs it, as any other experiment.

mod credits;
mod file;
#[cfg(test)]
mod live;
mod measured;
mod mix;
mod proposal;
mod rows;
mod settings;
mod shape;

use ebbtide_advisor::{Assessment, Check, Finding};
use ebbtide_mysql::{Binary, Flavour};
use ebbtide_observe::Observation;

pub use file::{BEFORE, Scale};
pub use measured::{Matched, Proof, attach};
pub use proposal::{NoProposal, NotProved, Proposal, propose};
pub use shape::UnknownWorkload;

/// The file of an experiment in the directory of its results.
pub const FILE: &str = "experiment.toml";

/// Why nothing is proved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The check found nothing.
    #[error("there is no finding {code} to prove: {why}")]
    NoFinding {
        /// Code of the check.
        code: &'static str,
        /// What it answered, as a sentence.
        why: String,
    },
    /// The observation does not say whose server it is.
    #[error("nothing can be proved: whose server it is, is not known")]
    UnknownMaker,
    /// The lab's server is of another maker, and a gain on it says nothing of this one.
    #[error("the server is {server}, and the lab's is {lab}")]
    OtherMaker {
        /// The flavour of the observed server.
        server: Flavour,
        /// The flavour of the lab's.
        lab: Flavour,
    },
    /// No experiment stands for the server.
    #[error("nothing can be proved: {0}")]
    NoProposal(NoProposal),
    /// The one finding that is to be proved is none that the lab can express.
    #[error("the lab cannot prove {}: {}", .0.code, .0.why)]
    NotProved(NotProved),
}

/// The findings that are to be proved, the worst first: those of one check, or all.
///
/// # Errors
/// The one check found nothing.
pub fn choose<'a>(
    check: Option<&'static Check>,
    findings: &'a [Finding],
) -> Result<Vec<&'a Finding>, ProofError> {
    let found = |finding: &&Finding| finding.verdict == Assessment::Found;
    let Some(check) = check else { return Ok(findings.iter().filter(found).collect()) };
    let finding = findings.iter().find(|finding| finding.code == check.code).filter(found);
    finding.map(|finding| vec![finding]).ok_or_else(|| no_finding(check, findings))
}

fn no_finding(check: &Check, findings: &[Finding]) -> ProofError {
    let answer = findings.iter().find(|finding| finding.code == check.code);
    let why = match answer.map(|finding| (finding.verdict, &finding.why)) {
        Some((Assessment::Unknown, why)) => format!("it has no answer. {why}"),
        Some((Assessment::DoesNotApply, why)) => format!("it has no meaning for this server. {why}"),
        _ => "it finds nothing on this server".to_owned(),
    };
    ProofError::NoFinding { code: check.code, why }
}

/// Refuses to prove on a server of another maker.
///
/// # Errors
/// It is one, or the maker of the observed server is not known.
pub fn check_maker(seen: &Observation, binary: &Binary) -> Result<(), ProofError> {
    let Some(facts) = &seen.facts else { return Err(ProofError::UnknownMaker) };
    if facts.flavour.maker() == binary.flavour.maker() {
        return Ok(());
    }
    Err(ProofError::OtherMaker { server: facts.flavour, lab: binary.flavour })
}
