//! `ebbtide doctor`: what is wrong with the storage of a MySQL or MariaDB server, read-only.
//!
//! [`collect`] observes a live server, [`probe`] times syncs where that is asked for, [`text`], [`page`] and [`json`] print what the checks of
//! [`ebbtide_advisor`] find, [`cnf`] makes a fragment of my.cnf, [`report`] pages,
//! [`prove`] runs fixes in the lab, and [`baseline`] holds an answer against an older one.

mod args;
mod baseline;
mod cnf;
mod collect;
#[cfg(test)]
mod fuzz;
pub(crate) mod json;
mod page;
mod probe;
mod prove;
mod report;
mod text;

use std::path::Path;

use ebbtide_advisor::{Assessment, Check, Finding, Severity};
use ebbtide_catalog::Catalog;
use ebbtide_observe::Observation;

use crate::answers;
use crate::bundle;
use crate::exit::{Exit, Refusal};
use crate::home::HomePath;
use crate::text::{line, printable, write};
pub(crate) use args::DoctorArgs;
use args::{CaptureArgs, DoctorCommand, Explain};
use baseline::Comparison;
use prove::{Ended, Proof};

/// Judges a server, captures one, or explains a check.
///
/// # Errors
/// A volume that there is not, or a file that is no capture (exit code 2); a server that does not answer (exit code 3).
pub(crate) fn run(args: &DoctorArgs, place: &HomePath, json: bool) -> anyhow::Result<Exit> {
    if let Some(DoctorCommand::Capture(capture)) = &args.command {
        return self::capture(capture, place, json);
    }
    match &args.explain {
        Some(Explain::All) => return explain_all(json),
        Some(Explain::One(check)) => return explain(check, json),
        None => {}
    }
    let server = prove::server(&args.proof)?;
    let (observation, catalog) = collect::observation(
        &args.look,
        args.captured().as_ref().map(|(from, hints)| (*from, hints)),
        place,
    )?;
    let mut findings = judge(&observation, &catalog);
    let proof = match args.proof.prove.zip(server) {
        None => None,
        Some((wanted, server)) => {
            match prove::prove(&args.proof, wanted, &observation, &mut findings, &server, place, json)? {
                Ended::Proof(proof) => Some(proof),
                Ended::Exit(exit) => return Ok(exit),
            }
        }
    };
    let baseline = args.baseline.as_deref().map(|file| Comparison::of(file, &findings)).transpose()?;
    let answer = Answer {
        observation: &observation,
        findings: &findings,
        baseline: baseline.as_ref(),
        proof: proof.as_deref(),
    };
    if let Some(file) = &args.html {
        put(file, &report::page(&answer).to_html())?;
    }
    if let Some(file) = &args.markdown {
        put(file, &printable(&report::markdown(&answer)))?;
    }
    if json {
        answers::print(&json::Diagnosis::of(&answer));
    } else if args.cnf {
        write(&printable(&cnf::fragment(&observation, &findings)))?;
    } else {
        line(&printable(&text::answer(&answer)));
    }
    let counts = |finding: &&Finding| baseline.as_ref().is_none_or(|baseline| baseline.counts(finding));
    let worst = findings.iter().filter(counts).filter_map(|finding| finding.severity).max();
    Ok(if worst >= Some(args.fail_on) { Exit::Finding } else { Exit::Clean })
}

/// What is printed: what was seen, what the checks found, and what changed since before.
#[derive(Debug, Clone, Copy)]
struct Answer<'a> {
    observation: &'a Observation,
    findings: &'a [Finding],
    baseline: Option<&'a Comparison>,
    proof: Option<&'a Proof>,
}

impl<'a> Answer<'a> {
    /// What was found; with a baseline what is new or another than before.
    fn found(self) -> Vec<&'a Finding> {
        let found = self.findings.iter().filter(|finding| finding.verdict == Assessment::Found);
        found.filter(|finding| self.baseline.is_none_or(|baseline| baseline.shows(finding))).collect()
    }
}

/// Writes an output file.
fn put(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).map_err(|error| {
        let refusal = Refusal::environment(format!("cannot write {}", file.display()))
            .hint("name a file in a directory that is there and that you may write");
        anyhow::Error::new(error).context(refusal)
    })
}

/// The answers of all checks: what was found first, in the order of what it is worth.
fn judge(observation: &Observation, catalog: &Catalog) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        ebbtide_advisor::checks().map(|check| check.run(observation, catalog)).collect();
    // The sort is stable: checks of one worth stay in the order of the table.
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, worth(finding))));
    findings
}

/// What sets findings of one severity apart: how sure they are.
fn worth(finding: &Finding) -> Option<ebbtide_advisor::Confidence> {
    (finding.verdict == Assessment::Found).then_some(finding.confidence)
}

fn capture(args: &CaptureArgs, place: &HomePath, json: bool) -> anyhow::Result<Exit> {
    let (observation, _) = collect::observation(&args.look, None, place)?;
    let text = bundle::text(observation);
    let Some(file) = &args.output else {
        write(&text)?;
        return Ok(Exit::Clean);
    };
    put(file, &text)?;
    let captured = json::Captured { file: file.clone(), bytes: text.len() };
    if json {
        answers::print(&captured);
    } else {
        line(&format!(
            "captured to {} ({}). Judge it anywhere: ebbtide doctor --from {}",
            file.display(),
            crate::text::size(text.len() as u64),
            file.display()
        ));
    }
    Ok(Exit::Clean)
}

fn explain(check: &'static Check, json: bool) -> anyhow::Result<Exit> {
    if json {
        answers::print(&json::Explained::of(check));
    } else {
        write(&page::check(check))?;
    }
    Ok(Exit::Clean)
}

fn explain_all(json: bool) -> anyhow::Result<Exit> {
    if json {
        answers::print(&ebbtide_advisor::checks().map(json::Explained::of).collect::<Vec<_>>());
    } else {
        write(&page::all())?;
    }
    Ok(Exit::Clean)
}

/// How many findings there are of each severity, the worst first.
fn by_severity(findings: &[Finding]) -> impl Iterator<Item = (Severity, usize)> {
    Severity::ALL.into_iter().rev().map(|severity| {
        (severity, findings.iter().filter(|finding| finding.severity == Some(severity)).count())
    })
}
