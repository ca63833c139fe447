//! The answer as a document, from which the text, the page and the Markdown are made: the verdict, the findings in the order of
//! what they are worth with the first fix, then each finding in full, and what could not be checked.

use std::collections::BTreeMap;

use ebbtide_advisor::{Assessment, Confidence, Evidence, Finding, Seen, Severity};
use ebbtide_observe::{Observation, Origin};
use ebbtide_report::{Block, Cell, Fact, Listing, Note, Report, Section, Table, Tone};
use ebbtide_text::{count, figure, first_sentence, seconds, whole};

use super::proof_text;
use super::{Answer, by_severity};
use crate::baseline::{Comparison, Gone};

/// Findings that text shows without details.
const FIRST_FINDINGS: usize = 4;
/// Characters of a sentence in a table.
const BRIEF: usize = 80;

/// The answer as a document; `version` is that of the program.
#[must_use]
pub fn document(answer: &Answer<'_>, version: &str) -> Report {
    let mut sections = vec![first(answer)];
    sections.extend(answer.proof.map(proof_text::section));
    sections.extend(
        answer.found().iter().map(|finding| of_finding(answer, finding).named(finding.code).details()),
    );
    let missing = reasons(answer.observation, answer.findings).into_iter();
    let missing: Vec<Fact> = missing.map(|(reason, codes)| Fact::new(codes.join(" "), reason)).collect();
    if !missing.is_empty() {
        sections.push(
            Section::new("Could not be checked", vec![Block::Facts(missing)]).named("unchecked").details(),
        );
    }
    Report {
        title: format!("Storage of {}", server(answer.observation)),
        subtitle: "What the doctor found".into(),
        sections,
        footer: format!("ebbtide {version}. The server was only read."),
        ..Report::default()
    }
}

/// The verdict, what the server did, the findings, and the fix of the first one.
fn first(answer: &Answer<'_>) -> Section {
    let found = answer.found();
    let mut blocks = vec![Block::Findings(vec![verdict(answer)]), Block::Text(activity(answer.observation))];
    let cautions = ebbtide_advisor::cautions(answer.observation).into_iter();
    let mut notes: Vec<Note> =
        cautions.map(|caution| Note::caution(format!("{}  {}", caution.code, caution.text))).collect();
    notes.extend(answer.baseline.map(since).unwrap_or_default());
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    if !found.is_empty() {
        blocks.push(Block::Table(summary(&found)));
    }
    blocks.extend(first_fix(answer.observation, &found).map(Block::Listing));
    blocks.push(Block::Text(others(answer.findings)));
    Section::new("", blocks)
}

/// The fix of the worst finding, to be pasted: statements and what keeps them over a restart, or lines of my.cnf where no
/// statement does it.
fn first_fix(observation: &Observation, found: &[&Finding]) -> Option<Listing> {
    let first = found.first()?;
    let (_, mut text) = commands(first).into_iter().next()?;
    if let Some(fix) = first.fix.as_ref().filter(|fix| !fix.statements.is_empty()) {
        for comment in fix.my_cnf.iter().filter_map(|line| kept(observation, line)) {
            text = format!("{text}\n{comment}");
        }
    }
    Some(Listing { label: format!("Fix of {}", first.code), text })
}

/// A comment of SQL that says where a line of my.cnf keeps a statement over a restart; None where the option has the value there.
fn kept(observation: &Observation, line: &str) -> Option<String> {
    let (name, value) = line.split_once(" = ").unwrap_or((line, ""));
    let options = observation.configured.as_deref().unwrap_or_default();
    // The last one holds.
    let option = options.iter().rfind(|option| option.name == name);
    if option.is_some_and(|option| option.value == value) {
        return None;
    }
    let file = option.map(|option| option.place.rsplit_once(':').map_or(&*option.place, |(file, _)| file));
    let (place, setting) = match file {
        Some("the command line") => ("on the server's command line".to_owned(), format!("--{name}={value}")),
        Some(file) => (format!("in {file}"), line.to_owned()),
        None => ("in the option file, section [mysqld]".to_owned(), line.to_owned()),
    };
    let whole = format!("-- and {place}: {setting}");
    Some(if whole.chars().count() <= BRIEF { whole } else { format!("-- and {place}:\n-- {setting}") })
}

/// How many checks found nothing, have no meaning for this server, and had no answer.
fn others(findings: &[Finding]) -> String {
    let [fine, others, unknown] = [Assessment::Fine, Assessment::DoesNotApply, Assessment::Unknown]
        .map(|verdict| of(findings, verdict).count());
    format!("{} found nothing, {others} do not apply, {unknown} could not be checked.", count(fine, "check"))
}

fn of(findings: &[Finding], verdict: Assessment) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(move |finding| finding.verdict == verdict)
}

/// What is no longer found, what could not be checked now, and what is as it was.
fn since(baseline: &Comparison) -> Vec<Note> {
    let sentences = baseline.gone.iter().map(gone);
    let mut notes: Vec<Note> = sentences.map(Note::plain).collect();
    if !baseline.not_checked.is_empty() {
        let codes = baseline.not_checked.join(" ");
        notes.push(Note::caution(format!("Found before, and could not be checked now: {codes}")));
    }
    if !baseline.same.is_empty() {
        notes.push(Note::plain(format!("As before: {}", baseline.same.join(" "))));
    }
    notes
}

/// What was found and is no longer, in a line.
fn gone(gone: &Gone) -> String {
    let Gone { code, title, severity, found } = gone;
    if found.is_empty() {
        // The title is the rule, which says the opposite of what was found.
        return format!("Gone: {code}  the rule now holds: {title} ({severity})");
    }
    let (first, _) = first_sentence(found);
    format!("Gone: {code}  {first} ({severity})")
}

/// The first line.
fn verdict(answer: &Answer<'_>) -> String {
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
                    known.iter().filter_map(|(rate, unit)| Some(format!("{} {unit}", whole((*rate)?))));
                counted.collect::<Vec<_>>().join(", ")
            });
            let busy = busy.filter(|busy| !busy.is_empty()).map(|busy| format!(": {busy} a second"));
            format!("{server}, over {}{}.", seconds(span.seconds), busy.unwrap_or_default())
        }
        None => format!("{server}. The status was not read twice: rates are not known."),
    }
}

/// The findings, a line each.
fn summary(found: &[&Finding]) -> Table {
    let row = |finding: &&Finding| {
        let restart = match &finding.fix {
            Some(fix) if fix.restart => "yes",
            Some(fix) if !fix.set.is_empty() => "no",
            _ => "-",
        };
        let tone = match finding.severity {
            Some(Severity::Critical | Severity::High) => Tone::Bad,
            Some(Severity::Medium) => Tone::Caution,
            _ => Tone::Plain,
        };
        let severity = Cell { tone, ..Cell::from(severity(finding)) };
        let doubt = if finding.confidence == Confidence::Low { " (confidence low)" } else { "" };
        let sentence = format!("{}{doubt}", brief(&finding.why));
        vec![finding.code.into(), severity, sentence.into(), restart.into()]
    };
    Table {
        columns: ["Code", "Severity", "What", "Restart"].map(str::to_owned).to_vec(),
        rows: found.iter().map(row).collect(),
        prose: true,
        words: true,
        first_rows: Some(FIRST_FINDINGS),
        ..Table::default()
    }
}

fn severity(finding: &Finding) -> &'static str {
    finding.severity.map_or("", Severity::name)
}

/// A finding in full.
fn of_finding(answer: &Answer<'_>, finding: &Finding) -> Section {
    let mut facts: Vec<Fact> = rows(finding).into_iter().map(|(name, text)| Fact::new(name, text)).collect();
    if let Some(change) = answer.baseline.and_then(|baseline| baseline.change(finding.code)) {
        facts.insert(0, Fact::new("Before", change.what.join("; ")));
    }
    // The heading has the first sentence whole: a cut one may lack its figure.
    let (title, rest) = first_sentence(&finding.why);
    let mut blocks = Vec::new();
    if !rest.is_empty() {
        blocks.push(Block::Text(rest.to_owned()));
    }
    blocks.push(Block::Facts(facts));
    let listing = |(label, text): (&str, String)| Block::Listing(Listing { label: label.into(), text });
    blocks.extend(commands(finding).into_iter().map(listing));
    let sources = finding.sources.iter();
    let sources = sources.map(|source| Note::plain(format!("{} ({})", source.says, source.url)));
    blocks.push(Block::Notes(sources.collect()));
    let heading = format!("{}: {title}", finding.code);
    let lead = format!("Severity {}, confidence {}.", severity(finding), finding.confidence.name());
    Section::new(heading, blocks).lead(lead)
}

/// Rows of a finding that are texts.
fn rows(finding: &Finding) -> Vec<(&'static str, String)> {
    let evidence: Vec<String> = finding.evidence.iter().map(shown).collect();
    let fix = finding.fix.as_ref().map(|fix| fix.text.clone()).unwrap_or_default();
    let all = [
        ("Rule", finding.title.to_owned()),
        ("Seen", evidence.join(", ")),
        ("Fix", fix),
        ("Gain", expected_gain(finding)),
        ("Proved", finding.measured.as_ref().map(proof_text::gain).unwrap_or_default()),
        ("Risk", finding.risk.clone()),
        ("Cost", finding.cost.clone()),
    ];
    all.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// Statements and lines of my.cnf, to be copied.
fn commands(finding: &Finding) -> Vec<(&'static str, String)> {
    let Some(fix) = &finding.fix else { return Vec::new() };
    let statements: Vec<String> = fix.statements.iter().map(|sql| format!("{sql};")).collect();
    let restart = "my.cnf, section [mysqld]; then restart the server";
    let label = if fix.restart { restart } else { "my.cnf, section [mysqld]" };
    let all = [("SQL", statements.join("\n")), (label, fix.my_cnf.join("\n"))];
    all.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// What the fix gains, with its upper limit if one is known.
fn expected_gain(finding: &Finding) -> String {
    match finding.at_most {
        Some(most) => format!("{}; at most {} times {}", finding.gain, figure(most.at_most), most.of),
        None => finding.gain.clone(),
    }
}

/// A value with its name.
fn shown(evidence: &Evidence) -> String {
    let value = match &evidence.value {
        Seen::Text(text) if text.is_empty() => "(empty)".to_owned(),
        Seen::Text(text) => text.clone(),
        // As the server prints it, so that it can be found there.
        Seen::Number(number) if number.fract() == 0.0 => format!("{number:.0}"),
        Seen::Number(number) => figure(*number),
    };
    match evidence.of {
        Some(source) => format!("{source}: {} = {value}", evidence.name),
        None => format!("{} = {value}", evidence.name),
    }
}

/// What was found in a line: the first sentence, cut where it is long.
fn brief(why: &str) -> String {
    let (first, _) = first_sentence(why);
    if first.chars().count() <= BRIEF {
        return first.to_owned();
    }
    let cut: String = first.chars().take(BRIEF - 3).collect();
    format!("{}...", cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words))
}

/// Checks without an answer by reason.
fn reasons(observation: &Observation, findings: &[Finding]) -> BTreeMap<String, Vec<&'static str>> {
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

#[cfg(test)]
mod tests {
    use ebbtide_advisor::Benefit;
    use ebbtide_catalog::Catalog;
    use ebbtide_observe::{Configured, Facts, Variables};
    use ebbtide_report::TextOptions;

    use super::*;

    fn with(value: &str, check: impl FnOnce(&Answer<'_>)) {
        let variables: Variables =
            [("version", "8.0.36"), ("log_bin", "ON"), ("sync_binlog", value)].into_iter().collect();
        let observation = Observation {
            facts: Some(Facts::of(&variables)),
            variables: Some(variables),
            ..Observation::of(Origin::Capture { path: "/<b>c|d".into() })
        };
        let findings = ebbtide_advisor::judge(&observation, &Catalog::builtin());
        check(&Answer { observation: &observation, findings: &findings, baseline: None, proof: None });
    }

    fn details(answer: &Answer<'_>) -> String {
        document(answer, "test").to_text(TextOptions {
            columns: 500,
            details: true,
            ..TextOptions::default()
        })
    }

    #[test]
    fn the_answer_is_one_screen_with_the_first_fix_to_paste() {
        with("0", |answer| {
            for columns in [60, 80, 120] {
                let shown =
                    document(answer, "test").to_text(TextOptions { columns, ..TextOptions::default() });
                assert!(shown.starts_with("1 finding: 1 high.\nMySQL 8.0.36, captured in "), "{shown}");
                assert!(shown.contains("Fix of D03:\nSET PERSIST sync_binlog = 1;\n"), "{shown}");
                assert!(shown.lines().count() <= 24, "{shown}");
                assert!(shown.lines().all(|line| line.chars().count() <= columns), "{shown}");
                assert!(!shown.contains("Rule "), "details are left out: {shown}");
            }
        });
    }

    #[test]
    fn text_page_and_markdown_have_each_finding_with_its_commands() {
        with("0", |answer| {
            let document = document(answer, "test");
            let html = document.to_html();
            assert!(html.contains("D03") && html.contains("SET PERSIST sync_binlog = 1;"));
            assert!(!html.contains("<script src") && !html.contains("<link "), "it opens offline");
            let text = document.to_markdown();
            assert!(text.starts_with("# Storage of MySQL 8.0.36") && text.contains("\n## D03: "), "{text}");
            assert!(text.contains("```\nSET PERSIST sync_binlog = 1;\n```"), "{text}");
            assert!(text.contains("## Could not be checked"), "{text}");
        });
    }

    #[test]
    fn the_limit_of_a_gain_is_rounded_alike_on_the_terminal_and_in_the_reports() {
        with("0", |answer| {
            let mut findings = answer.findings.to_vec();
            let found = findings.iter_mut().find(|finding| finding.code == "D03").unwrap();
            found.at_most = Some(Benefit { at_most: 12.345, of: "the transactions" });
            let answer = Answer { findings: &findings, ..*answer };
            let document = document(&answer, "test");
            for text in [details(&answer), document.to_html(), document.to_markdown()] {
                assert!(text.contains("at most 12.3 times the transactions"), "{text}");
            }
        });
    }

    #[test]
    fn no_value_becomes_markup() {
        with("0 <img src=x> | [a](b) `c`\n# d", |answer| {
            let html = document(answer, "test").to_html();
            assert!(!html.contains("<img src=x>") && !html.contains("/<b>c"), "values are text");
            let text = document(answer, "test").to_markdown();
            assert!(!text.replace("\\<", "").contains("<img") && text.contains("/\\<b\\>c\\|d"), "{text}");
            assert!(!text.contains("\n# d") && !text.contains(" [a](b)"), "{text}");
        });
    }

    #[test]
    fn a_fix_that_a_restart_undoes_comes_with_the_line_of_the_option_file() {
        let shown = |place: Option<&str>, value: &str| {
            let variables: Variables =
                [("version", "10.11.19-MariaDB"), ("log_bin", "ON"), ("sync_binlog", "0")]
                    .into_iter()
                    .collect();
            let option = |place: &str| Configured {
                name: "sync_binlog".into(),
                value: value.into(),
                group: "mysqld".into(),
                place: place.into(),
            };
            let observation = Observation {
                facts: Some(Facts::of(&variables)),
                variables: Some(variables),
                configured: place.map(|place| vec![option(place)]),
                ..Observation::of(Origin::Capture { path: "/c".into() })
            };
            let mut findings = ebbtide_advisor::judge(&observation, &Catalog::builtin());
            findings.retain(|finding| finding.code == "D03");
            let answer =
                Answer { observation: &observation, findings: &findings, baseline: None, proof: None };
            document(&answer, "test").to_text(TextOptions { columns: 80, ..TextOptions::default() })
        };
        let fix = |kept: &str| format!("Fix of D03:\nSET GLOBAL sync_binlog = 1;\n{kept}\n");
        for (place, value, kept) in [
            (Some("/etc/my.cnf:7"), "0", "-- and in /etc/my.cnf: sync_binlog = 1\n"),
            (None, "", "-- and in the option file, section [mysqld]: sync_binlog = 1\n"),
            (Some("the command line:1"), "0", "-- and on the server's command line: --sync_binlog=1\n"),
            (Some("/etc/my.cnf:7"), "1", ""),
        ] {
            let shown = shown(place, value);
            assert!(shown.contains(&fix(kept)), "{kept}: {shown}");
        }
        let long = format!("/{}.cnf", "d".repeat(55));
        let shown = shown(Some(&format!("{long}:7")), "0");
        assert!(shown.contains(&fix(&format!("-- and in {long}:\n-- sync_binlog = 1\n"))), "{shown}");
    }

    #[test]
    fn a_finding_in_full_has_its_first_sentence_whole_and_once() {
        with("0", |answer| {
            let mut findings = answer.findings.to_vec();
            let found = findings.iter_mut().find(|finding| finding.code == "D03").unwrap();
            let first = format!("The volume has {}6,000 IOPS for a baseline of 100", "very ".repeat(20));
            found.why = format!("{first}. The rest.");
            let text = details(&Answer { findings: &findings, ..*answer });
            assert!(text.contains(&format!("D03: {first}\nSeverity high")), "{text}");
            assert_eq!(text.matches(&first).count(), 1, "{text}");
            assert!(text.contains("\nThe rest.\n"), "{text}");
        });
    }

    #[test]
    fn what_is_gone_is_what_was_found_and_not_the_rule() {
        let before = Gone {
            code: "D01".into(),
            title: "A commit waits for the redo log's sync".into(),
            severity: "critical".into(),
            found: "A crash loses commits of up to 1.5 s. It is so since 2 h.".into(),
        };
        assert_eq!(gone(&before), "Gone: D01  A crash loses commits of up to 1.5 s (critical)");
        let codes = Gone { found: String::new(), ..before };
        let said = "Gone: D01  the rule now holds: A commit waits for the redo log's sync (critical)";
        assert_eq!(gone(&codes), said);
    }

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
