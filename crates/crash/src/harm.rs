//! What is wrong with a cut, in lines of text: the kind of damage, the messages that show it, and the files.

use ebbtide_text::seed;

use super::record::{Cut, Loss, PageFound, Verdict};
use super::summary::kind_name;
use super::summary::sentences::{file, moment, shown};

/// Messages and pages of a verdict that are named at most; the results have all of them.
const MOST: usize = 12;

/// The verdicts on a cut with their evidence, and the pages that the cut tore. Lines of evidence are indented by two
/// blanks. Empty where nothing is wrong.
#[must_use]
pub fn harm(cut: &Cut) -> Vec<String> {
    told(cut, of_loss)
}

/// The same with other lines on a loss.
pub(crate) fn told(cut: &Cut, of_loss: impl Fn(&Loss) -> Vec<String>) -> Vec<String> {
    let verdicts = cut.verdicts.iter().flat_map(of_verdict);
    let mut lines: Vec<String> = verdicts.chain(cut.loss.iter().flat_map(of_loss)).collect();
    if !lines.is_empty() {
        lines.extend(evidence(cut));
        lines.push(named(cut));
    }
    lines
}

/// How much is lost, and of which clients.
fn of_loss(loss: &Loss) -> Vec<String> {
    let clients = loss.clients.iter().map(|(client, acknowledged, recovered)| {
        format!("  client {client}: {acknowledged} acknowledged, {recovered} recovered")
    });
    [gone(loss)].into_iter().chain(clients.take(MOST)).collect()
}

/// How much is lost.
pub(crate) fn gone(loss: &Loss) -> String {
    format!("{} acknowledged transactions are gone", loss.transactions)
}

/// What the cut left of pages, and what was in flight; empty where nothing is wrong.
pub(crate) fn evidence(cut: &Cut) -> Vec<String> {
    if cut.verdicts.is_empty() && cut.loss.is_none() {
        return Vec::new();
    }
    let invalid = cut.torn_before.iter().map(|page| format!("invalid before recovery: {}", found(page)));
    let torn = cut.torn_writes.iter();
    let torn = torn.map(|torn| format!("torn by the cut: {} page {}", torn.file, torn.page));
    let flying = cut.in_flight.iter().filter(|write| !write.file.is_empty());
    let flying = flying.take(MOST).map(|write| {
        let (new, of) = (write.new_units, write.units);
        format!(
            "in flight: {} at {}, {}, {new} of {of} units new",
            write.file,
            write.offset,
            file(write.kind)
        )
    });
    invalid.chain(torn).chain(flying).collect()
}

/// Which cut it is.
fn named(cut: &Cut) -> String {
    format!(
        "cut {} of the arm '{}' {}, seed {}",
        cut.number + 1,
        cut.arm,
        moment(cut.moment),
        seed::hex(cut.seed)
    )
}

/// A verdict: its kind, and what it rests on.
pub(crate) fn of_verdict(verdict: &Verdict) -> Vec<String> {
    let kind = kind_name(verdict.kind()).to_lowercase();
    let (heading, evidence) = match verdict {
        Verdict::Corrupt { how, messages, pages } => {
            let pages = pages.iter().map(found);
            (format!("{kind}: {}", shown(*how)), messages.iter().cloned().chain(pages).collect())
        }
        Verdict::LostCommits => (kind, Vec::new()),
        Verdict::Partial { findings } => (kind, findings.clone()),
        Verdict::BinlogDisagrees { differences, .. } => (kind, differences.clone()),
        Verdict::ReplicationBroken { messages, place } => (format!("{kind}: {place}"), messages.clone()),
        Verdict::Unverified { why, log } => (format!("{kind}: {why}"), log.clone()),
    };
    let more = evidence.len().saturating_sub(MOST);
    let mut lines = vec![heading];
    lines.extend(evidence.into_iter().take(MOST).map(|line| format!("  {}", line.trim())));
    lines.extend((more > 0).then(|| format!("  and {more} more")));
    lines
}

fn found(page: &PageFound) -> String {
    format!("{} page {}: {}", page.file, page.page, page.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn harm_names_the_damage_the_files_and_the_cut_and_a_clean_cut_has_none() {
        let mut cut = fixture::clean("durable", 16);
        assert_eq!(harm(&cut), Vec::<String>::new());
        cut.verdicts.push(fixture::corrupt());
        cut.torn_writes.push(fixture::torn_write());
        let lines = harm(&cut);
        assert_eq!(lines[0], "corrupt: The server does not start");
        assert!(lines[1].contains("page 311 in file ./bank/ballast.ibd"), "{lines:#?}");
        assert!(lines.iter().any(|line| line == "torn by the cut: bank/ballast.ibd page 311"), "{lines:#?}");
        let last = format!("cut 17 of the arm 'durable' at any time, seed {}", seed::hex(cut.seed));
        assert_eq!(lines.last(), Some(&last));
    }
}
