//! What came out, in words first; and before that, whether it may be believed.

use ebbtide_analysis::stats::Share;
use ebbtide_lab::experiment::ServerRole;
use ebbtide_lab::page::text;
use ebbtide_report::{Block, Fold, Note, Tone, Verdict as Card};

use super::PageContext;
use crate::record::VerdictKind;
use crate::summary::sentences::{bound, did, ends, seconds, share_of, showed};
use crate::summary::{ArmSummary, BAD};

/// More sentences than this wait in a fold.
const SENTENCES: usize = 7;
/// More arms than this, besides the one of a card, are counted.
const NAMED: usize = 4;
/// More remarks than this wait for their own section.
const REMARKS: usize = 3;

pub(super) fn blocks(page: &PageContext) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !page.summary.valid {
        blocks.push(Block::Verdicts(vec![void(page)]));
    }
    let cards: Vec<Card> = BAD
        .iter()
        .filter_map(|kind| worst(page, *kind))
        .chain([ServerRole::Primary, ServerRole::Replica].into_iter().filter_map(|role| best(page, role)))
        .collect();
    if !cards.is_empty() {
        if !page.summary.valid {
            blocks.push(Block::Text("What it would say if it could be believed:".into()));
        }
        blocks.push(Block::Verdicts(cards));
    }
    blocks.extend(sentences(page));
    blocks.extend(remarks(page));
    blocks
}

fn void(page: &PageContext) -> Card {
    let capital = |text: &String| {
        let mut characters = text.chars();
        characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
    };
    Card {
        figure: "Void".into(),
        context: String::new(),
        headline: "Nothing on this page may be believed: the tester did not prove that it sees damage."
            .into(),
        details: page.summary.void.iter().map(|reason| format!("{}.", capital(reason))).collect(),
        tone: Tone::Bad,
    }
}

/// The arm with the largest share of a bad verdict; none where no arm has one.
fn worst(page: &PageContext, kind: VerdictKind) -> Option<Card> {
    let size = |arm: &ArmSummary| arm.verdicts.get(&kind).and_then(|share| share.share).unwrap_or(0.0);
    let hit = || page.arms.iter().filter(|(arm, _)| arm.count(kind) > 0);
    let (arm, name) = hit().max_by(|a, b| size(a.0).total_cmp(&size(b.0)))?;
    let share = arm.verdicts.get(&kind)?;
    let did = match arm.corruption.first_key_value() {
        Some((how, _)) if kind == VerdictKind::Corrupt && arm.corruption.len() == 1 => showed(*how),
        _ => did(kind),
    };
    let mut details = vec![format!("95% interval: {}.", bound(share))];
    if kind == VerdictKind::LostCommits {
        details.extend(lost(arm));
    }
    let others: Vec<_> = hit().filter(|(other, _)| other.name != arm.name).collect();
    details.extend(too(&others, kind));
    Some(Card {
        figure: figure(share),
        context: name.clone(),
        headline: format!("{} {did}.", share_of(share, arm.end)),
        details,
        tone: Tone::Bad,
    })
}

/// The other arms with the same kind of verdict, with their own counts: which of them has it more often by more than
/// chance is not reported.
fn too(others: &[&(&ArmSummary, String)], kind: VerdictKind) -> Option<String> {
    let shares = || others.iter().filter_map(|(arm, name)| Some((arm, name, arm.verdicts.get(&kind)?)));
    match others.len() {
        0 => None,
        1..=NAMED => {
            let named: Vec<String> =
                shares().map(|(arm, name, share)| format!("{name} ({})", share_of(share, arm.end))).collect();
            Some(format!("The same with {}.", text::list(&named)))
        }
        many => {
            let all = || shares().filter_map(|(_, _, share)| share.share);
            let (least, most) = (all().fold(1.0, f64::min), all().fold(0.0, f64::max));
            let [least, most] = [least, most].map(ebbtide_text::percent);
            let arms = text::count(many, "other arm");
            Some(format!("The same with {arms}, in {least} to {most} of their cuts."))
        }
    }
}

fn figure(share: &Share) -> String {
    share.share.map_or_else(|| "?".into(), ebbtide_text::percent)
}

fn lost(arm: &ArmSummary) -> Option<String> {
    let loss = arm.loss.as_ref()?;
    Some(format!(
        "At the median {} from the last {} before the cut, at most {} from the last {}.",
        text::count(whole(loss.transactions.p50), "transaction"),
        seconds(loss.seconds.p50),
        text::whole(loss.transactions.max),
        seconds(loss.seconds.max)
    ))
}

fn whole(value: f64) -> usize {
    // Counts of transactions, written without a fraction.
    ebbtide_text::fixed(value, 0).parse().unwrap_or(usize::MAX)
}

/// Of the arms of a role that nothing bad was seen with, the one that carries most.
fn best(page: &PageContext, role: ServerRole) -> Option<Card> {
    let harmless =
        page.arms.iter().filter(|(arm, _)| arm.role == role && arm.bad.of > 0 && arm.bad.count == 0);
    let tps = |arm: &ArmSummary| arm.throughput.map_or(0.0, |throughput| throughput.tps.mean);
    let good: Vec<_> = harmless.collect();
    let (arm, name) = good.iter().max_by(|a, b| tps(a.0).total_cmp(&tps(b.0)))?;
    let mut details = vec![format!("{} of them do, with 95% confidence.", capital_bound(&arm.bad))];
    if good.len() > 1 {
        let others = good.iter().filter(|(other, _)| other.name != arm.name);
        let others: Vec<String> =
            others.map(|(other, name)| format!("{name} (0 of {})", ends(other.bad.of, other.end))).collect();
        details.push(match others.len() {
            1..=NAMED => format!("No bad verdict either: {}.", others.join("; ")),
            many => format!("No bad verdict in {} either.", text::count(many, "other arm")),
        });
    }
    Some(Card {
        figure: "0".into(),
        context: name.clone(),
        headline: format!("{} had a bad verdict.", share_of(&arm.bad, arm.end)),
        details,
        tone: if page.summary.valid { Tone::Good } else { Tone::Caution },
    })
}

fn capital_bound(share: &Share) -> String {
    let text = bound(share);
    text.replacen("at most", "At most", 1)
}

/// The sentences of the summary, which report all of it arm by arm.
fn sentences(page: &PageContext) -> Option<Block> {
    // That it is void is shown above.
    let named: Vec<String> =
        page.summary.findings.iter().skip(usize::from(!page.summary.valid)).cloned().collect();
    match named.len() {
        0 => None,
        1..=SENTENCES => Some(Block::Findings(named)),
        many => Some(Block::Fold(Fold {
            summary: format!("All of it in {many} sentences"),
            blocks: vec![Block::Findings(named)],
        })),
    }
}

fn remarks(page: &PageContext) -> Option<Block> {
    let all = &page.summary.notes;
    let mut notes: Vec<Note> =
        all.iter().take(REMARKS).map(|note| Note::caution(super::tester::sentence(page, note))).collect();
    if all.len() > REMARKS {
        let more = text::count(all.len() - REMARKS, "further remark");
        notes.push(Note::plain(format!("{more} under \u{201c}Stints and caveats\u{201d}.")));
    }
    (!notes.is_empty()).then_some(Block::Notes(notes))
}
