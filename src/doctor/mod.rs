//! `ebbtide doctor`: what is wrong with the storage of a MySQL or MariaDB server, read-only.
//!
//! [`ebbtide_doctor`] looks, proves and says what was found, and [`ebbtide_advisor`] judges. [`args`] says what is asked, [`collect`]
//! has it observed and [`prove`] runs fixes in the lab; [`output`] writes files. [`refusal`] gives the errors of the library their
//! exit codes.

mod args;
mod collect;
mod output;
mod prove;
mod refusal;

use ebbtide_advisor::{Assessment, Check, Finding, in_order, judge};
use ebbtide_catalog::Catalog;
use ebbtide_doctor::answer::{self, Answer, Captured, Diagnosis, Explained};
use ebbtide_doctor::baseline::{Baseline, Comparison};
use ebbtide_report::{Report, wrapped_markdown};

use crate::answers;
use crate::document::{ColorWhen, fitted, terminal_columns, text_options};
use crate::exit::{self, Exit, Refusal};
use crate::home::HomePath;
use crate::text::{line, printable, write};
pub(crate) use args::DoctorArgs;
use args::{CaptureArgs, DoctorCommand, Explain};
use prove::Ended;
use refusal::refuse;

/// Judges a server, captures one, or explains a check. Only a proof needs a home; without a place for one there are no
/// overrides and no volumes of its own.
///
/// # Errors
/// A volume that there is not, or a file that is no capture (exit code 2); a server that does not answer (exit code 3).
pub(crate) fn run(
    args: &DoctorArgs,
    place: anyhow::Result<HomePath>,
    color: ColorWhen,
    json: bool,
) -> anyhow::Result<Exit> {
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
    let before = args.baseline.as_deref().map(Baseline::read).transpose().map_err(refuse)?;
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
    let document = answer::document(&answer, &crate::version::of_results());
    if json {
        answers::print(&Diagnosis::of(&answer));
    } else if args.cnf {
        write(&printable(&answer::fragment(&observation, &findings)))?;
    } else {
        refuse_absent(args.sections.names(), &answer)?;
        let options = text_options(color, args.details);
        let rest = if answer.found().is_empty() { "" } else { more(args) };
        args.sections.print(&document, options, rest)?;
    }
    // After the answer, which a full disk does not take away.
    let written = write_files(args, &document);
    if let Err(error) = written {
        // The answer is the one object on standard output.
        return Ok(exit::note_error(&error));
    }
    let counts = |finding: &&Finding| baseline.as_ref().is_none_or(|baseline| baseline.counts(finding));
    let worst = findings.iter().filter(counts).filter_map(|finding| finding.severity).max();
    Ok(if worst >= Some(args.fail_on) { Exit::Finding } else { Exit::Clean })
}

/// Refuses checks that have no section, and says why they have none.
///
/// # Errors
/// A check of `--show` that found nothing to show: exit code 2.
fn refuse_absent(names: &[String], answer: &Answer<'_>) -> anyhow::Result<()> {
    let shown = answer.found();
    for name in names {
        let of_name = |finding: &&Finding| finding.code.eq_ignore_ascii_case(name);
        let Some(finding) = answer.findings.iter().find(of_name) else { continue };
        let code = finding.code;
        let (reason, hint) = match finding.verdict {
            Assessment::Found if shown.iter().any(|other| other.code == code) => continue,
            Assessment::Found => ("is as in the baseline", "leave --baseline out to see it".to_owned()),
            Assessment::Unknown => ("could not be checked", "why: --show unchecked".to_owned()),
            Assessment::Fine => {
                ("found nothing", format!("what it looks at: ebbtide doctor --explain {code}"))
            }
            Assessment::DoesNotApply => {
                ("does not apply to this server", finding.why.trim_end_matches('.').to_owned())
            }
        };
        return Err(Refusal::usage(format!("--show {name}: {code} {reason}")).hint(hint).into());
    }
    Ok(())
}

/// The last line: where the rest is.
const fn more(args: &DoctorArgs) -> &'static str {
    if args.details {
        "more of a check: ebbtide doctor --explain CODE; settings as a file: --cnf"
    } else {
        "each in full: --details; settings as a file: --cnf; page: --html FILE"
    }
}

/// Writes the page and the Markdown, where they are asked for.
fn write_files(args: &DoctorArgs, document: &Report) -> anyhow::Result<()> {
    if let Some(file) = &args.html {
        output::write(file, &document.to_html())?;
    }
    if let Some(file) = &args.markdown {
        output::write(file, &printable(&document.to_markdown()))?;
    }
    Ok(())
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
    let captured = Captured { file: file.clone(), bytes: text.len() };
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
        answers::print(&Explained::of(check, catalog));
    } else {
        write(&fitted(answer::check_text(check, catalog)))?;
    }
    Ok(Exit::Clean)
}

fn explain_all(catalog: &Catalog, json: bool) -> anyhow::Result<Exit> {
    if json {
        let all = ebbtide_advisor::checks().map(|check| Explained::of(check, catalog));
        answers::print(&all.collect::<Vec<_>>());
    } else {
        let page = answer::all_checks(catalog);
        match terminal_columns() {
            Some(columns) => write(&wrapped_markdown(&page, columns))?,
            None => write(&page)?,
        }
    }
    Ok(Exit::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: DoctorArgs,
    }

    fn judged(file: &std::path::Path, more: &[&str]) -> anyhow::Result<Exit> {
        let words = [&["x", "--from", file.to_str().unwrap()][..], more].concat();
        let line = <Line as clap::Parser>::try_parse_from(words).unwrap();
        run(&line.args, Err(anyhow::anyhow!("there is no HOME")), ColorWhen::Never, false)
    }

    #[test]
    fn a_check_without_a_section_is_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("variables");
        std::fs::write(
            &file,
            "version\t8.0.36\nlog_bin\tON\nsync_binlog\t0\ninnodb_stats_on_metadata\tOFF\n",
        )
        .unwrap();
        assert_eq!(judged(&file, &["--show", "D03"]).unwrap(), Exit::Finding);
        for (code, reason) in [("R01", "R01 could not be checked"), ("c06", "C06 found nothing")] {
            let error = judged(&file, &["--show", code]).unwrap_err().to_string();
            assert_eq!(error, format!("--show {code}: {reason}"));
        }
        let error = judged(&file, &["--show", "R99"]).unwrap_err().to_string();
        assert!(error.contains("no such section"), "{error}");
    }

    #[test]
    fn a_unit_or_a_container_without_a_place_for_a_home_can_look() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("variables");
        std::fs::write(&file, "version\t8.0.36\nlog_bin\tON\nsync_binlog\t0\n").unwrap();
        let line = <Line as clap::Parser>::try_parse_from(["x", "--from", file.to_str().unwrap()]).unwrap();
        assert_eq!(
            run(&line.args, Err(anyhow::anyhow!("there is no HOME")), ColorWhen::Never, true).unwrap(),
            Exit::Finding
        );
    }
}
