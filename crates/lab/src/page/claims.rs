//! What documents claim, beside what was measured: a section of the report of a run, and the pages of the documents.

use ebbtide_analysis::claim::{ClaimPhase, ClaimVerdict, Document, JudgedClaim, Reading};
use ebbtide_report::{Cell, Section, Table, Tone};

use super::{Block, text};

const LEAD: &str = "Each claim of a document with its figures and those of this run. It is reproduced where the measured figure \
    is in the claim's range with all of its interval, and not reproduced where all of the interval is outside. Intervals of \
    throughput are 95% intervals; of other figures, and of two parts of the same trials, they are the range of the trials.";

/// The claims of an experiment; None where it has none. `group` is the number of an arm's colour.
#[must_use]
pub fn section(claims: &[JudgedClaim], group: &dyn Fn(&str) -> Option<usize>) -> Option<Section> {
    if claims.is_empty() {
        return None;
    }
    let blocks = Document::ALL.into_iter().filter_map(|document| {
        let own: Vec<&JudgedClaim> = claims.iter().filter(|one| one.claim.document == document).collect();
        (!own.is_empty()).then(|| Block::Table(table(document, &own, group)))
    });
    Some(Section::new("What the documents say", blocks.collect()).lead(LEAD))
}

fn table(document: Document, claims: &[&JudgedClaim], group: &dyn Fn(&str) -> Option<usize>) -> Table {
    let about = document.about();
    Table {
        caption: format!("\u{201c}{}\u{201d}: {}", about.title, about.by),
        columns: COLUMNS.map(str::to_owned).into(),
        rows: claims.iter().map(|claim| row(claim, group)).collect(),
        prose: true,
        words: true,
        ..Table::default()
    }
}

/// The columns of a table of claims.
pub const COLUMNS: [&str; 4] = ["Claim", "The document", "Measured here", "Verdict"];

/// The row of a claim.
#[must_use]
pub fn row(judged: &JudgedClaim, group: &dyn Fn(&str) -> Option<usize>) -> Vec<Cell> {
    let claim = &judged.claim;
    let cell = |text: String, detail: String| Cell { text, detail, ..Cell::default() };
    let first = judged.arms.first().and_then(|arm| group(&arm.arm));
    vec![
        cell(claim.says.clone(), claim.place.clone()),
        theirs(judged),
        Cell { group: first, ..ours(judged) },
        Cell {
            tone: tone(&judged.verdict),
            ..cell(judged.verdict.words().to_owned(), sentence(judged.verdict.why()))
        },
    ]
}

/// How a verdict is to be taken.
#[must_use]
pub fn tone(verdict: &ClaimVerdict) -> Tone {
    match verdict {
        ClaimVerdict::Reproduced { .. } => Tone::Good,
        ClaimVerdict::NotReproduced { .. } => Tone::Bad,
        ClaimVerdict::Undecided { .. }
        | ClaimVerdict::Contradicted { .. }
        | ClaimVerdict::NotMeasured { .. } => Tone::Caution,
        ClaimVerdict::NotTestable { .. } | ClaimVerdict::OnlyInFull { .. } => Tone::Plain,
    }
}

fn sentence(why: &str) -> String {
    let mut text = why.trim_end_matches('.').to_owned();
    if !text.is_empty() {
        text.push('.');
    }
    text
}

fn unit(judged: &JudgedClaim) -> &'static str {
    judged.claim.test.as_ref().map_or("", |test| test.metric.unit())
}

fn is_ratio(judged: &JudgedClaim) -> bool {
    judged.claim.test.as_ref().is_some_and(|test| test.over.is_some())
}

/// A figure, or a ratio, with its unit.
fn figure(judged: &JudgedClaim, value: f64) -> String {
    if is_ratio(judged) {
        format!("{}\u{d7}", text::short(value))
    } else {
        format!("{} {}", text::short(value), unit(judged))
    }
}

/// What the document has: the ratio of its figures, or its figure, and all figures by arm.
fn theirs(judged: &JudgedClaim) -> Cell {
    let claim = &judged.claim;
    let by_arm = claim.figures.iter().map(|(arm, value)| format!("{arm}: {}", text::short(*value)));
    let mut details: Vec<String> = by_arm.collect();
    if !details.is_empty() && !unit(judged).is_empty() {
        details = vec![format!("{} {}", details.join("; "), unit(judged))];
    }
    let (text, detail) = match (judged.theirs, claim.printed.as_str()) {
        (Some(value), "") => (figure(judged, value), details.join("; ")),
        (Some(value), printed) => {
            details.push(printed.to_owned());
            (figure(judged, value), details.join("; "))
        }
        (None, "") if details.is_empty() => ("no figure".to_owned(), String::new()),
        (None, "") => (details.join("; "), String::new()),
        (None, printed) => (printed.to_owned(), details.join("; ")),
    };
    Cell { text, detail, ..Cell::default() }
}

/// What was measured: the figure or ratio with its interval, and that of each arm.
fn ours(judged: &JudgedClaim) -> Cell {
    let interval = |reading: &Reading| {
        let ends = reading.low.zip(reading.high);
        ends.map_or(String::new(), |(low, high)| format!(" ({} to {})", text::short(low), text::short(high)))
    };
    let Some(ours) = &judged.ours else { return Cell::from("\u{2013}") };
    let arms = judged.arms.iter().filter_map(|arm| {
        let reading = arm.ours.as_ref()?;
        let during: Vec<&str> = arm.during.iter().map(|phase| phase_words(*phase)).collect();
        let during = if during.is_empty() { String::new() } else { format!(", {}", during.join(", ")) };
        Some(format!("{}{during}: {} {}", arm.arm, text::short(reading.mid), unit(judged)))
    });
    let detail: Vec<String> = arms.collect();
    Cell {
        text: format!("{}{}", figure(judged, ours.mid), interval(ours)),
        detail: detail.join("; "),
        ..Cell::default()
    }
}

/// A phase for people.
fn phase_words(phase: ClaimPhase) -> &'static str {
    match phase {
        ClaimPhase::Batch => "with the batch job",
        ClaimPhase::NoBatch => "without the batch job",
        ClaimPhase::CreditsLeft => "credits left",
        ClaimPhase::CreditsGone => "credits used up",
        ClaimPhase::BeforeBackup => "before the backup",
        ClaimPhase::DuringBackup => "during the backup",
        ClaimPhase::AfterBackup => "after the backup",
    }
}
