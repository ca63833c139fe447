//! The answer as a page that opens offline, and as Markdown.

use std::fmt::Write as _;

use ebbtide_advisor::{Finding, Severity};
use ebbtide_doctor::proof::Proof;
use ebbtide_report::{Block, Cell, Fact, Listing, Note, Report, Section, Table};

use super::Answer;
use super::proof_text::{self, HEADS};
use super::text::{brief, expected_gain, reasons, seen, server, shown, verdict};

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

fn severity(finding: &Finding) -> &'static str {
    finding.severity.map_or("", Severity::name)
}

/// The page.
pub(super) fn page(answer: &Answer<'_>) -> Report {
    let found = answer.found();
    let first = vec![verdict(answer), seen(answer.observation)];
    let mut sections = vec![Section::new("", vec![Block::Findings(first)])];
    if !found.is_empty() {
        let row = |finding: &&Finding| {
            let found = brief(&finding.why);
            let cells = [finding.code, severity(finding), finding.confidence.name(), found.as_str()];
            cells.map(Cell::from).to_vec()
        };
        let table = Table {
            columns: ["Code", "Severity", "Confidence", "What"].map(str::to_owned).to_vec(),
            rows: found.iter().map(row).collect(),
            prose: true,
            words: true,
            ..Table::default()
        };
        sections.push(Section::new("Findings", vec![Block::Table(table)]));
    }
    sections.extend(found.iter().map(|finding| of_finding(answer, finding)));
    if let Some(baseline) = answer.baseline.filter(|baseline| !baseline.gone.is_empty()) {
        let gone = baseline.gone.iter().map(|gone| Note::plain(format!("{}: {}", gone.code, gone.title)));
        sections.push(Section::new("Gone since the baseline", vec![Block::Notes(gone.collect())]));
    }
    sections.extend(answer.proof.map(of_proof));
    let missing: Vec<Fact> = reasons(answer.observation, answer.findings)
        .into_iter()
        .map(|(reason, codes)| Fact::new(codes.join(" "), reason))
        .collect();
    if !missing.is_empty() {
        sections.push(Section::new("Could not be checked", vec![Block::Facts(missing)]));
    }
    Report {
        title: "Storage of a database server".into(),
        subtitle: server(answer.observation),
        sections,
        footer: format!("ebbtide {}. The server was only read.", crate::version::of_results()),
        ..Report::default()
    }
}

fn of_proof(proof: &Proof) -> Section {
    let notes = proof_text::sentences(proof).into_iter().map(Note::plain).collect();
    let mut blocks = vec![Block::Notes(notes)];
    let rows = proof_text::rows(proof);
    if !rows.is_empty() {
        blocks.push(Block::Table(Table {
            columns: HEADS.map(capital).to_vec(),
            rows: rows.into_iter().map(|row| row.map(|cell| Cell::from(cell.as_str())).to_vec()).collect(),
            prose: true,
            ..Table::default()
        }));
    }
    Section::new("Proof", blocks)
}

/// The head of a column of a terminal as that of a page.
fn capital(head: &str) -> String {
    head[..1].to_owned() + &head[1..].to_lowercase()
}

fn of_finding(answer: &Answer<'_>, finding: &Finding) -> Section {
    let mut facts: Vec<Fact> = rows(finding).into_iter().map(|(name, text)| Fact::new(name, text)).collect();
    if let Some(change) = answer.baseline.and_then(|baseline| baseline.change(finding.code)) {
        facts.insert(0, Fact::new("Before", change.what.join("; ")));
    }
    let mut blocks = vec![Block::Text(finding.why.clone()), Block::Facts(facts)];
    let listing = |(label, text): (&str, String)| Block::Listing(Listing { label: label.into(), text });
    blocks.extend(commands(finding).into_iter().map(listing));
    let sources = finding.sources.iter();
    let sources = sources.map(|source| Note::plain(format!("{} ({})", source.says, source.url)));
    blocks.push(Block::Notes(sources.collect()));
    let heading = format!("{}: {}", finding.code, brief(&finding.why));
    let lead = format!("Severity {}, confidence {}.", severity(finding), finding.confidence.name());
    Section::new(heading, blocks).lead(lead)
}

/// The answer as Markdown.
pub(super) fn markdown(answer: &Answer<'_>) -> String {
    let found = answer.found();
    let mut text = format!(
        "# Storage of {}\n\n**{}** {}\n",
        plain(&server(answer.observation)),
        plain(&verdict(answer)),
        plain(&seen(answer.observation))
    );
    if !found.is_empty() {
        text += "\n| Code | Severity | Confidence | What |\n|---|---|---|---|\n";
    }
    for finding in &found {
        let (severity, confidence) = (severity(finding), finding.confidence.name());
        let _ = writeln!(
            text,
            "| {} | {severity} | {confidence} | {} |",
            finding.code,
            plain(&brief(&finding.why))
        );
    }
    for finding in &found {
        text += &markdown_of(answer, finding);
    }
    let mut list = |heading: &str, items: Vec<String>| {
        if !items.is_empty() {
            let _ = write!(text, "\n## {heading}\n\n");
            items.iter().for_each(|item| {
                let _ = writeln!(text, "- {item}");
            });
        }
    };
    let gone = answer.baseline.map(|baseline| &baseline.gone[..]).unwrap_or_default();
    let gone = gone.iter().map(|gone| format!("{}: {}", plain(&gone.code), plain(&gone.title)));
    list("Gone since the baseline", gone.collect());
    list(
        "Proof",
        answer.proof.map(proof_text::sentences).unwrap_or_default().iter().map(|one| plain(one)).collect(),
    );
    let missing = reasons(answer.observation, answer.findings).into_iter();
    let missing = missing.map(|(reason, codes)| format!("{}: {}", codes.join(" "), plain(&reason)));
    list("Could not be checked", missing.collect());
    if let Some(proof) = answer.proof.filter(|proof| !proof_text::rows(proof).is_empty()) {
        let _ = write!(
            text,
            "\n## Workload of the proof\n\n| {} |\n|---|---|---|---|\n",
            HEADS.map(capital).join(" | ")
        );
        for row in proof_text::rows(proof) {
            let _ = writeln!(text, "| {} |", row.map(|cell| plain(&cell)).join(" | "));
        }
    }
    text
}

fn markdown_of(answer: &Answer<'_>, finding: &Finding) -> String {
    let found = plain(&brief(&finding.why));
    let mut text = format!("\n## {}: {found}\n\n{}\n\n", finding.code, plain(&finding.why));
    if let Some(change) = answer.baseline.and_then(|baseline| baseline.change(finding.code)) {
        let _ = writeln!(text, "- Before: {}", plain(&change.what.join("; ")));
    }
    for (name, value) in rows(finding) {
        let _ = writeln!(text, "- {name}: {}", plain(&value));
    }
    for source in finding.sources {
        let _ = writeln!(text, "- Source: {} (<{}>)", plain(source.says), source.url);
    }
    for (label, commands) in commands(finding) {
        // Four backticks: a value with three does not end the block.
        let _ = write!(text, "\n{label}:\n\n````\n{commands}\n````\n");
    }
    text
}

/// A text of which Markdown makes nothing else: values come from a server or a file.
fn plain(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => all.push(' '),
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '#' => all.extend(['\\', c]),
            _ => all.push(c),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use ebbtide_advisor::Benefit;
    use ebbtide_catalog::Catalog;
    use ebbtide_observe::{Facts, Observation, Origin, Variables};

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

    #[test]
    fn the_page_and_the_markdown_have_each_finding_with_its_commands() {
        with("0", |answer| {
            let html = page(answer).to_html();
            assert!(html.contains("D03") && html.contains("SET PERSIST sync_binlog = 1;"));
            assert!(!html.contains("<script src") && !html.contains("<link "), "it opens offline");
            let text = markdown(answer);
            assert!(text.starts_with("# Storage of MySQL 8.0.36") && text.contains("\n## D03: "), "{text}");
            assert!(text.contains("````\nSET PERSIST sync_binlog = 1;\n````"), "{text}");
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
            for text in [super::super::text::answer(&answer), page(&answer).to_html(), markdown(&answer)] {
                assert!(text.contains("at most 12.3 times the transactions"), "{text}");
            }
        });
    }

    #[test]
    fn no_value_becomes_markup() {
        with("0 <img src=x> | [a](b) `c`\n# d", |answer| {
            let html = page(answer).to_html();
            assert!(!html.contains("<img src=x>") && !html.contains("/<b>c"), "values are text");
            let text = markdown(answer);
            assert!(!text.replace("\\<", "").contains("<img") && text.contains("/\\<b\\>c\\|d"), "{text}");
            assert!(!text.contains("\n# d") && !text.contains(" [a](b)"), "{text}");
        });
    }
}
