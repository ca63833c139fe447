//! What was found, for people: the verdict, the findings in the order of what they are worth, and what could not be checked.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ebbtide_advisor::{Assessment, Evidence, Finding, Seen};
use ebbtide_doctor::baseline::Comparison;
use ebbtide_observe::{Observation, Origin};
use ebbtide_text::{figure, seconds, whole};

use super::proof_text::{self, gain};
use super::{Answer, by_severity};
use crate::text::{TextTable, count};

/// The whole answer, without an end of line.
pub(super) fn answer(answer: &Answer<'_>) -> String {
    let Answer { observation, findings, baseline, proof } = *answer;
    let found = answer.found();
    let mut text = format!("{}\n{}\n", verdict(answer), seen(observation));
    for finding in &found {
        let _ = write!(text, "\n{}", one(finding));
        if let Some(change) = baseline.and_then(|baseline| baseline.change(finding.code)) {
            let _ = writeln!(text, "  Before {}", change.what.join("; "));
        }
    }
    if found.len() > 1 {
        let _ = write!(text, "\n{}\n", summary(&found).text());
    }
    if let Some(baseline) = baseline {
        text += &since(baseline);
    }
    if let Some(proof) = proof {
        text += &proof_text::whole(proof);
    }
    text += &unknown(observation, findings);
    let [fine, others] =
        [Assessment::Fine, Assessment::DoesNotApply].map(|verdict| of(findings, verdict).count());
    let _ =
        write!(text, "\n{} found nothing; {others} have no meaning for this server.", count(fine, "check"));
    if !found.is_empty() {
        text += "\nMore of a check: ebbtide doctor --explain CODE. The settings as a file: --cnf.";
    }
    text
}

/// What is no longer found, and what is as it was.
fn since(baseline: &Comparison) -> String {
    let mut text = String::new();
    for gone in &baseline.gone {
        let _ = write!(text, "\nGone: {}  {} ({})", gone.code, gone.title, gone.severity);
    }
    if !baseline.not_checked.is_empty() {
        let _ =
            write!(text, "\nFound before, and could not be checked now: {}", baseline.not_checked.join(" "));
    }
    if !baseline.same.is_empty() {
        let _ = write!(text, "\nAs before: {}", baseline.same.join(" "));
    }
    if text.is_empty() { text } else { text + "\n" }
}

fn of(findings: &[Finding], verdict: Assessment) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(move |finding| finding.verdict == verdict)
}

/// The first line.
pub(super) fn verdict(answer: &Answer<'_>) -> String {
    let Answer { findings, baseline, .. } = *answer;
    if let Some(baseline) = baseline {
        return format!(
            "Since the baseline: {} new, {} gone, {} changed, {} as before.",
            baseline.new.len(),
            baseline.gone.len(),
            baseline.changed.len(),
            baseline.same.len()
        );
    }
    let found = of(findings, Assessment::Found).count();
    if found == 0 {
        let unknown = of(findings, Assessment::Unknown).count();
        let checked = findings.len() - unknown - of(findings, Assessment::DoesNotApply).count();
        return format!("Nothing found by {}; {unknown} had no answer.", count(checked, "check"));
    }
    let parts: Vec<String> = by_severity(findings)
        .filter(|(_, number)| *number > 0)
        .map(|(severity, number)| format!("{number} {}", severity.name()))
        .collect();
    format!("{}: {}.", count(found, "finding"), parts.join(", "))
}

/// Whose server it is, and where it was seen.
pub(super) fn server(observation: &Observation) -> String {
    let server = match &observation.facts {
        Some(facts) => format!("{} {}", facts.flavour, facts.version.split('-').next().unwrap_or_default()),
        None => "a server".to_owned(),
    };
    match &observation.origin {
        Origin::Server { at } => format!("{server} at {at}"),
        Origin::Capture { path } => format!("{server}, captured in {path}"),
        Origin::Trial { arm, repeat } => format!("{server}, arm {arm}, repeat {repeat}"),
    }
}

/// Whose server it is, and what it did in the interval.
pub(super) fn seen(observation: &Observation) -> String {
    let mut text = activity(observation);
    for caution in ebbtide_advisor::cautions(observation) {
        let _ = write!(text, "\n{}  {}", caution.code, caution.text);
    }
    text
}

fn activity(observation: &Observation) -> String {
    let server = server(observation);
    match observation.span {
        Some(span) if span.restarted => {
            format!("{server}. It was started again in the interval: rates are not known.")
        }
        Some(span) => {
            let busy = observation.rates.map(|rates| {
                // What the server does not count is left out.
                let known = [
                    (rates.write_statements, "statements that write"),
                    (rates.read_statements, "statements that read"),
                    (rates.page_reads, "page reads"),
                    (rates.page_writes, "page writes"),
                ];
                let counted =
                    known.iter().filter_map(|(rate, what)| Some(format!("{} {what}", whole((*rate)?))));
                counted.collect::<Vec<_>>().join(", ")
            });
            let busy = busy.filter(|busy| !busy.is_empty()).map(|busy| format!(": {busy} a second"));
            format!("{server}, over {}{}.", seconds(span.seconds), busy.unwrap_or_default())
        }
        None => format!("{server}. The status was not read twice: rates are not known."),
    }
}

fn one(finding: &Finding) -> String {
    let severity = finding.severity.map_or("", |severity| severity.name()).to_uppercase();
    let mut text = format!(
        "{severity}  {}  {} (confidence {})\n",
        finding.code,
        finding.why,
        finding.confidence.name(),
    );
    let evidence: Vec<String> = finding.evidence.iter().map(shown).collect();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<6} {value}");
        }
    };
    row("Rule", finding.title);
    row("Seen", &evidence.join(", "));
    if let Some(fix) = &finding.fix {
        row("Fix", &fix.text);
        for statement in &fix.statements {
            row("", &format!("{statement};"));
        }
        let after = if fix.restart { "   (then restart the server)" } else { "" };
        for line in &fix.my_cnf {
            row("", &format!("my.cnf: {line}{after}"));
        }
    }
    row("Gain", &expected_gain(finding));
    row("Proved", &finding.measured.as_ref().map(gain).unwrap_or_default());
    row("Risk", &finding.risk);
    row("Cost", &finding.cost);
    text
}

/// What the fix gains, with its upper limit if one is known.
pub(super) fn expected_gain(finding: &Finding) -> String {
    match finding.at_most {
        Some(most) => format!("{}; at most {} times {}", finding.gain, figure(most.at_most), most.of),
        None => finding.gain.clone(),
    }
}

/// A value with its name.
pub(super) fn shown(evidence: &Evidence) -> String {
    let value = match &evidence.value {
        Seen::Text(text) if text.is_empty() => "(empty)".to_owned(),
        Seen::Text(text) => text.clone(),
        // As the server prints it, so that it can be found there.
        Seen::Number(number) if number.fract() == 0.0 => format!("{number:.0}"),
        Seen::Number(number) => figure(*number),
    };
    match evidence.of {
        Some(of) => format!("{of}: {} = {value}", evidence.name),
        None => format!("{} = {value}", evidence.name),
    }
}

fn summary(found: &[&Finding]) -> TextTable {
    let mut table = TextTable::new(&["CODE", "SEVERITY", "CONFIDENCE", "WHAT", "RESTART"]);
    for finding in found {
        let severity = finding.severity.map_or("", |severity| severity.name());
        let restart = match &finding.fix {
            Some(fix) if fix.restart => "yes",
            Some(fix) if !fix.set.is_empty() => "no",
            _ => "-",
        };
        table.row(
            [finding.code, severity, finding.confidence.name(), &brief(&finding.why), restart]
                .map(str::to_owned),
        );
    }
    table
}

/// Characters of a sentence in a table.
const BRIEF: usize = 80;

/// What was found in a line: the first sentence, cut where it is long.
pub(super) fn brief(why: &str) -> String {
    let first = why.split_once(". ").map_or(why, |(first, _)| first).trim_end_matches('.');
    if first.chars().count() <= BRIEF {
        return first.to_owned();
    }
    let cut: String = first.chars().take(BRIEF - 3).collect();
    format!("{}...", cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words))
}

/// Checks without an answer by reason.
pub(super) fn reasons(
    observation: &Observation,
    findings: &[Finding],
) -> BTreeMap<String, Vec<&'static str>> {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for finding in of(findings, Assessment::Unknown) {
        let reason = match finding.missing.first() {
            // The server's own message is more exact than what would allow it in general.
            Some(missing) => {
                let own = observation.not_seen.iter().find(|own| missing.what.ends_with(own.what.as_str()));
                format!("{}: {}", missing.what, own.map_or(&missing.why, |own| &own.why))
            }
            None => finding.why.trim_end_matches('.').to_owned(),
        };
        reasons.entry(reason).or_default().push(finding.code);
    }
    reasons
}

/// Checks without an answer, together where the same is missing.
fn unknown(observation: &Observation, findings: &[Finding]) -> String {
    let reasons = reasons(observation, findings);
    if reasons.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nCould not be checked:\n");
    for (reason, codes) in reasons {
        let _ = writeln!(text, "  {}\n    {reason}", codes.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_does_not_count_is_left_out_of_the_line_of_its_work() {
        let of = |rates: ebbtide_observe::Rates| {
            let span = ebbtide_observe::Span { began_unix_s: None, seconds: 20.0, restarted: false };
            let origin = Origin::Server { at: "/s".into() };
            activity(&Observation { span: Some(span), rates: Some(rates), ..Observation::of(origin) })
        };
        let known = ebbtide_observe::Rates {
            write_statements: Some(317.0),
            page_reads: Some(96.0),
            ..ebbtide_observe::Rates::default()
        };
        let line = of(known);
        assert!(line.ends_with(", over 20 s: 317 statements that write, 96 page reads a second."), "{line}");
        let line = of(ebbtide_observe::Rates::default());
        assert!(line.ends_with(", over 20 s."), "{line}");
    }

    #[test]
    fn a_finding_in_a_line_is_its_first_sentence_cut_between_words() {
        assert_eq!(brief("The log is full after 1.5 s. It stalls."), "The log is full after 1.5 s");
        let long = "word ".repeat(30);
        let cut = brief(&long);
        assert!(cut.ends_with("word...") && cut.chars().count() <= BRIEF, "{cut}");
    }
}
