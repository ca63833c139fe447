//! The pages of the documents' set: one for each document with its claims, and one in front of them.

use ebbtide_analysis::claim::{ClaimVerdict, Document, JudgedClaim};
use ebbtide_report::{Cell, Link, Note, Report, Section, Table, Tone, Verdict};

use super::claims::{COLUMNS, row};
use super::{Block, setup, text};
use crate::documents::{DocumentExperiment, DocumentResults, ExperimentState};

/// The page in front of the others.
pub const FRONT: &str = "report.html";

const FOOTER: &str = "Every figure beside those of the documents was measured on a real server; the volumes were emulated on \
    this machine.";
const LEAD: &str = "Each claim with the document's figures, and what was measured here. Reproduced: the measured figure is in the \
    claim's range with all of its interval; not reproduced: all of the interval is outside. The reason names what the arms \
    waited for and their I/O.";
/// Verdicts in the order in which they are listed.
const ORDER: [&str; 7] = [
    "reproduced",
    "not reproduced",
    "undecided",
    "contradicted by its own tables",
    "not testable here",
    "not in the short form",
    "not measured",
];

/// The pages, each with its file in the directory of the set.
#[must_use]
pub fn pages(results: &DocumentResults) -> Vec<(String, String)> {
    let of_documents = Document::ALL.into_iter().map(|document| (file(document), page(results, document)));
    std::iter::once((FRONT.to_owned(), front(results)))
        .chain(of_documents)
        .map(|(file, report)| (file, report.to_html()))
        .collect()
}

/// The file of a document's page.
fn file(document: Document) -> String {
    format!("{}.html", document.key())
}

fn footer(results: &DocumentResults) -> String {
    format!("ebbtide {}, {}. {FOOTER}", results.ebbtide, text::moment(results.started_ns))
}

/// `12 reproduced, 3 not reproduced and 1 undecided`.
fn counted(results: &DocumentResults, document: Option<Document>) -> String {
    let counts = results.counts(document);
    let parts = ORDER.iter().filter_map(|words| Some(format!("{} {words}", counts.get(words)?)));
    text::list(&parts.collect::<Vec<_>>())
}

pub(super) fn front(results: &DocumentResults) -> Report {
    let form = if results.quick { "in their short forms" } else { "in full" };
    let counts = results.counts(None);
    let of = |words: &str| counts.get(words).copied().unwrap_or(0);
    let decided = of("reproduced") + of("not reproduced");
    let verdict = Verdict {
        figure: format!("{} of {decided}", of("reproduced")),
        context: String::new(),
        headline: "of the claims that the measurements decide are reproduced".into(),
        details: vec![format!("All claims: {}.", counted(results, None))],
        tone: Tone::Plain,
    };
    let mut sections = vec![Section::new("", vec![Block::Verdicts(vec![verdict])])];
    sections.push(Section::new(
        "Documents",
        Document::ALL.iter().flat_map(|one| of_document(results, *one)).collect(),
    ));
    sections.push(Section::new("Experiments", experiments(results)));
    sections.push(setup::again(
        &results.command,
        "Results, figures and charts of each experiment are in its directory.",
    ));
    Report {
        title: "The claims of five documents, measured".into(),
        subtitle: format!(
            "Experiments of public documents on MySQL and block storage, repeated {form} on {}",
            results.server.version
        ),
        sections,
        footer: footer(results),
        ..Report::default()
    }
}

fn of_document(results: &DocumentResults, document: Document) -> Vec<Block> {
    let about = document.about();
    vec![
        Block::Link(Link { text: about.title.to_owned(), file: file(document) }),
        Block::Text(format!("{}: {}.", about.by, counted(results, Some(document)))),
    ]
}

/// The experiments with their state; what is missing is in the table too.
fn experiments(results: &DocumentResults) -> Vec<Block> {
    let columns = ["Experiment", "State", "Took", "Claims"];
    let row = |one: &DocumentExperiment| {
        let (state, tone) = match one.state {
            ExperimentState::Whole => ("measured", Tone::Good),
            ExperimentState::Partly => ("measured in part", Tone::Caution),
            ExperimentState::Waiting => ("not run yet", Tone::Caution),
            ExperimentState::Failed => ("failed", Tone::Bad),
        };
        let took = if one.took_s > 0.0 { ebbtide_text::rough(one.took_s) } else { "\u{2013}".to_owned() };
        vec![
            Cell { text: one.name.clone(), detail: one.title.clone(), ..Cell::default() },
            Cell {
                text: state.into(),
                detail: one.failed.clone().unwrap_or_default(),
                tone,
                ..Cell::default()
            },
            Cell::value(took, one.took_s, format!("{} estimated", ebbtide_text::rough(one.estimate_s))),
            Cell::from(one.claims.len().to_string()),
        ]
    };
    let table = Table {
        columns: columns.map(str::to_owned).into(),
        rows: results.experiments.iter().map(row).collect(),
        prose: true,
        words: true,
        ..Table::default()
    };
    let links = results.experiments.iter().filter(|one| one.has_report());
    let links =
        links.map(|one| Block::Link(Link { text: format!("{}: its report", one.name), file: one.report() }));
    std::iter::once(Block::Table(table)).chain(links).collect()
}

/// The page of a document: its claims, experiment by experiment.
pub(super) fn page(results: &DocumentResults, document: Document) -> Report {
    let about = document.about();
    let mut sections = vec![
        Section::new(
            "",
            vec![
                Block::Text(format!("{}.", counted(results, Some(document)))),
                Block::Link(Link { text: "All documents".into(), file: FRONT.into() }),
            ],
        )
        .lead(LEAD),
    ];
    for one in &results.experiments {
        let claims: Vec<&JudgedClaim> =
            one.claims.iter().filter(|judged| judged.claim.document == document).collect();
        if !claims.is_empty() {
            sections.push(Section::new(one.title.clone(), of_experiment(one, &claims)));
        }
    }
    Report {
        title: about.title.into(),
        subtitle: format!("{}: claim by claim", about.by),
        sections,
        footer: footer(results),
        ..Report::default()
    }
}

fn of_experiment(one: &DocumentExperiment, claims: &[&JudgedClaim]) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(why) = &one.failed {
        blocks.push(Block::Notes(vec![Note::caution(format!("{} lacks results: {why}", one.name))]));
    }
    let table = Table {
        columns: COLUMNS.map(str::to_owned).into(),
        rows: claims.iter().map(|judged| row(judged, &|_| None)).collect(),
        prose: true,
        words: true,
        ..Table::default()
    };
    blocks.push(Block::Table(table));
    if one.has_report() {
        blocks
            .push(Block::Link(Link { text: format!("The run behind it: {}", one.name), file: one.report() }));
    } else if !claims.iter().all(|judged| matches!(judged.verdict, ClaimVerdict::NotTestable { .. })) {
        blocks.push(Block::Text(format!("{} has no run yet.", one.name)));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ebbtide_analysis::claim::Claim;

    use super::*;
    use crate::documents::SCHEMA_VERSION;
    use crate::record::ServerFacts;

    fn judged(document: Document, verdict: ClaimVerdict) -> JudgedClaim {
        let claim = Claim {
            id: "a".into(),
            document,
            place: "table 1".into(),
            says: "It is faster.".into(),
            printed: String::new(),
            figures: BTreeMap::new(),
            test: None,
            contradicted: None,
            untestable: Some("no reason".into()),
        };
        JudgedClaim { claim, verdict, theirs: None, ours: None, arms: Vec::new() }
    }

    fn experiment(name: &str, state: ExperimentState, verdict: ClaimVerdict) -> DocumentExperiment {
        DocumentExperiment {
            name: name.into(),
            title: format!("The title of {name}"),
            state,
            estimate_s: 100.0,
            took_s: if state == ExperimentState::Whole { 150.0 } else { 0.0 },
            failed: (state == ExperimentState::Failed).then(|| "the server died".to_owned()),
            claims: vec![judged(Document::Whitepaper, verdict)],
        }
    }

    fn results() -> DocumentResults {
        let why = || "the server died".to_owned();
        DocumentResults {
            schema_version: SCHEMA_VERSION,
            started_ns: 1_790_000_000_000_000_000,
            command: "ebbtide run --documents --quick".into(),
            ebbtide: "0.1.0".into(),
            quick: true,
            seed: 7,
            server: ServerFacts::default(),
            experiments: vec![
                experiment("one", ExperimentState::Whole, ClaimVerdict::Reproduced { why: why() }),
                experiment("two", ExperimentState::Failed, ClaimVerdict::NotMeasured { why: why() }),
                experiment("three", ExperimentState::Waiting, ClaimVerdict::NotMeasured { why: why() }),
            ],
        }
    }

    #[test]
    fn there_is_a_page_for_each_document_and_one_in_front_and_a_hole_is_shown_with_its_reason() {
        let pages = pages(&results());
        let files: Vec<&str> = pages.iter().map(|(file, _)| file.as_str()).collect();
        assert_eq!(files[..2], ["report.html", "whitepaper.html"]);
        assert_eq!(files.len(), 6);
        let front = &pages[0].1;
        for text in ["whitepaper.html", "one/report.html", "the server died", "failed", "1 of 1"] {
            assert!(front.contains(text), "{text}");
        }
        assert!(!front.contains("two/report.html"), "what has no report is no link");
        let whitepaper = &pages[1].1;
        for text in ["The title of one", "one/report.html", "two lacks results", "not measured", "reproduced"]
        {
            assert!(whitepaper.contains(text), "{text}");
        }
    }

    #[test]
    fn the_time_left_is_withheld_until_an_experiment_has_ended() {
        let mut results = results();
        assert_eq!(
            results.left_s(),
            Some(150.0),
            "one waits, and the other took half as long again as estimated"
        );
        results.experiments.remove(0);
        assert_eq!(results.left_s(), None);
        assert!(!results.is_whole());
    }
}
