//! `ebbtide doctor`: what is wrong with the storage of a MySQL or MariaDB server, read-only.
//!
//! [`collect`] observes a live server, [`storage`] its volumes, [`probe`] times syncs where that is asked for, [`text`], [`page`] and [`json`] print what the checks of
//! [`ebbtide_advisor`] find, [`cnf`] makes a fragment of my.cnf, [`report`] pages, [`output`] writes files,
//! [`prove`] runs fixes in the lab, and [`baseline`] holds an answer against an older one.

mod args;
mod baseline;
mod cnf;
mod collect;
#[cfg(test)]
mod fuzz;
pub(crate) mod json;
mod output;
mod page;
mod password;
mod probe;
mod prove;
mod report;
mod storage;
mod text;

use ebbtide_advisor::{Assessment, Check, Finding, Severity};
use ebbtide_catalog::Catalog;
use ebbtide_observe::Observation;

use crate::answers;
use crate::exit::{self, Exit};
use crate::home::HomePath;
use crate::text::{line, printable, write};
pub(crate) use args::DoctorArgs;
use args::{CaptureArgs, DoctorCommand, Explain};
use baseline::{Baseline, Comparison};
use prove::{Ended, Proof};

/// Judges a server, captures one, or explains a check. Only a proof needs a home; without a place for one there are no
/// overrides and no volumes of its own.
///
/// # Errors
/// A volume that there is not, or a file that is no capture (exit code 2); a server that does not answer (exit code 3).
pub(crate) fn run(args: &DoctorArgs, place: anyhow::Result<HomePath>, json: bool) -> anyhow::Result<Exit> {
    let home = place.as_ref().ok();
    if let Some(DoctorCommand::Capture(capture)) = &args.command {
        return self::capture(capture, home, json);
    }
    match &args.explain {
        Some(Explain::All) => return explain_all(&collect::catalog(home)?, json),
        Some(Explain::One(check)) => return explain(check, &collect::catalog(home)?, json),
        None => {}
    }
    let server = prove::server(&args.proof)?;
    // Before the look, which may take a day.
    let before = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let files = [&args.html, &args.markdown];
    files.into_iter().flatten().try_for_each(|file| output::check(file))?;
    let (observation, catalog) =
        collect::observation(&args.look, args.captured().as_ref().map(|(from, hints)| (*from, hints)), home)?;
    let mut findings = judge(&observation, &catalog);
    let proof = match args.proof.prove.zip(server) {
        None => None,
        Some((wanted, server)) => {
            match prove::prove(&args.proof, wanted, &observation, &mut findings, &server, &place?, json)? {
                Ended::Proof(proof) => {
                    in_order(&mut findings);
                    Some(proof)
                }
                Ended::Exit(exit) => return Ok(exit),
            }
        }
    };
    let baseline = before.map(|before| Comparison::of(&before, &findings));
    let answer = Answer {
        observation: &observation,
        findings: &findings,
        baseline: baseline.as_ref(),
        proof: proof.as_deref(),
    };
    if json {
        answers::print(&json::Diagnosis::of(&answer));
    } else if args.cnf {
        write(&printable(&cnf::fragment(&observation, &findings)))?;
    } else {
        line(&printable(&text::answer(&answer)));
    }
    // After the answer, which a full disk does not take away.
    let written = write_files(args, &answer);
    if let Err(error) = written {
        // The answer is the one object on standard output.
        return Ok(exit::note_error(&error));
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

/// Writes the page and the Markdown, where they are asked for.
fn write_files(args: &DoctorArgs, answer: &Answer<'_>) -> anyhow::Result<()> {
    if let Some(file) = &args.html {
        output::write(file, &report::page(answer).to_html())?;
    }
    if let Some(file) = &args.markdown {
        output::write(file, &printable(&report::markdown(answer)))?;
    }
    Ok(())
}

/// The answers of all checks: what was found first, in the order of what it is worth.
fn judge(observation: &Observation, catalog: &Catalog) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        ebbtide_advisor::checks().map(|check| check.run(observation, catalog)).collect();
    in_order(&mut findings);
    findings
}

/// Puts findings into the order of what they are worth: severity, then what the fix gains, then how sure that is. The sort is
/// stable: checks of one worth stay in the order of the table.
fn in_order(findings: &mut [Finding]) {
    let gain =
        |finding: &Finding| if finding.verdict == Assessment::Found { finding.gain_factor() } else { 0.0 };
    findings.sort_by(|one, other| {
        let by_gain = || gain(other).total_cmp(&gain(one));
        other.severity.cmp(&one.severity).then_with(by_gain).then(other.confidence.cmp(&one.confidence))
    });
}

fn capture(args: &CaptureArgs, place: Option<&HomePath>, json: bool) -> anyhow::Result<Exit> {
    args.output.as_deref().map(output::check).transpose()?;
    let (observation, _) = collect::observation(&args.look, None, place)?;
    let text = ebbtide_captured::bundle::text(observation);
    let Some(file) = &args.output else {
        write(&text)?;
        return Ok(Exit::Clean);
    };
    output::write(file, &text)?;
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

fn explain(check: &'static Check, catalog: &Catalog, json: bool) -> anyhow::Result<Exit> {
    if json {
        answers::print(&json::Explained::of(check, catalog));
    } else {
        write(&page::check(check, catalog))?;
    }
    Ok(Exit::Clean)
}

fn explain_all(catalog: &Catalog, json: bool) -> anyhow::Result<Exit> {
    if json {
        let all = ebbtide_advisor::checks().map(|check| json::Explained::of(check, catalog));
        answers::print(&all.collect::<Vec<_>>());
    } else {
        write(&page::all(catalog))?;
    }
    Ok(Exit::Clean)
}

/// How many findings there are of each severity, the worst first.
fn by_severity(findings: &[Finding]) -> impl Iterator<Item = (Severity, usize)> {
    Severity::ALL.into_iter().rev().map(|severity| {
        (severity, findings.iter().filter(|finding| finding.severity == Some(severity)).count())
    })
}

#[cfg(test)]
mod tests {
    use ebbtide_advisor::{Benefit, Confidence, MeasuredGain};
    use ebbtide_observe::Origin;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: DoctorArgs,
    }

    #[test]
    fn a_unit_or_a_container_without_a_place_for_a_home_can_look() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("variables");
        std::fs::write(&file, "version\t8.0.36\nlog_bin\tON\nsync_binlog\t0\n").unwrap();
        let line = <Line as clap::Parser>::try_parse_from(["x", "--from", file.to_str().unwrap()]).unwrap();
        assert_eq!(run(&line.args, Err(anyhow::anyhow!("there is no HOME")), true).unwrap(), Exit::Finding);
    }

    #[test]
    fn findings_come_in_the_order_of_severity_then_gain_then_confidence() {
        let nothing = Observation::of(Origin::Capture { path: "/c".into() });
        let any = ebbtide_advisor::check("D01").unwrap().run(&nothing, &Catalog::builtin());
        let found = |code, severity, confidence, gain: Option<f64>| Finding {
            code,
            verdict: Assessment::Found,
            severity: Some(severity),
            confidence,
            at_most: gain.map(|at_most| Benefit { at_most, of: "transactions" }),
            ..any.clone()
        };
        let measured = |times, difference| {
            let gain =
                MeasuredGain { times, low: None, high: None, of: "transactions", trials: 3, difference };
            Finding { measured: Some(gain), ..found("E", Severity::High, Confidence::Low, None) }
        };
        let mut all = vec![
            found("A", Severity::Low, Confidence::High, Some(9.0)),
            found("B", Severity::High, Confidence::High, None),
            found("C", Severity::High, Confidence::Low, Some(1.5)),
            found("D", Severity::High, Confidence::Low, None),
            measured(2.0, true),
            Finding { code: "F", ..measured(5.0, false) },
            any.clone(),
        ];
        in_order(&mut all);
        let codes: Vec<_> = all.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, ["E", "C", "B", "D", "F", "A", "D01"]);
    }
}
