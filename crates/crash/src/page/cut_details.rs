//! How one cut went: what was being written, what the image has of it, and the messages of the server.

use std::collections::BTreeMap;

use ebbtide_lab::experiment::{End, Role};
use ebbtide_lab::page::text;
use ebbtide_report::{Band, Bands, Block, Cell, Fold, Listing, Section, Table, Tone};
use ebbtide_text::seed;

use super::{PageContext, replay, tester, texts};
use crate::record::{Cut, InFlight, Loss, PageFound, PageState, Resumed, TornWrite, Verdict, VerdictKind};
use crate::summary::sentences::{did, file, kind as kind_name, moment as moment_words, seconds, shown};
use crate::summary::{ArmSummary, BAD, Standing, has};

/// At most so many torn pages, lines and clients of a cut are shown.
const PAGES: usize = 3;
const LINES: usize = 14;
const CLIENTS: usize = 16;
/// At most so many stories wait in folds; the rest is in the table of all bad cuts.
const FOLDS: usize = 48;

/// One example of each bad verdict in full, and one of each bad verdict of each arm to be opened; none where
/// nothing is bad.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    let mut blocks = Vec::new();
    let mut shown: Vec<u64> = Vec::new();
    for kind in BAD {
        let arms = page.arms.iter().map(|(arm, _)| arm);
        let most = arms.filter_map(|arm| Some((arm.count(kind), example(page, arm, kind)?)));
        let Some((_, cut)) = most.max_by_key(|(count, cut)| (*count, evidence_count(cut, kind))) else {
            continue;
        };
        blocks.extend(story(page, cut, kind, true));
        shown.push(cut.seed);
    }
    if blocks.is_empty() {
        return None;
    }
    let folds: Vec<Block> = page
        .arms
        .iter()
        .flat_map(|(arm, _)| examples(page, arm))
        .filter(|(_, cut)| !shown.contains(&cut.seed))
        .map(|(kind, cut)| fold(page, kind, cut))
        .collect();
    let more = folds.len().saturating_sub(FOLDS);
    blocks.extend(folds.into_iter().take(FOLDS));
    if more > 0 {
        blocks.push(Block::Text(format!("{} in the database.", text::count(more, "further example"))));
    }
    let lead = "One example of each bad verdict, and below them one of each arm. Each example is shown with what was \
                written at that instant, what the image has of it, and what the server reported afterwards. The first and the last \
                bytes of a page name the log position (LSN) of its last change: where they differ, the page is of two \
                versions.";
    Some(Section::new("What happened", blocks).lead(lead))
}

/// One story for each bad verdict of an arm, to be opened.
pub(super) fn folds(page: &PageContext, arm: &ArmSummary) -> Vec<Block> {
    examples(page, arm).into_iter().map(|(kind, cut)| fold(page, kind, cut)).collect()
}

fn examples<'a>(page: &PageContext<'a>, arm: &ArmSummary) -> Vec<(VerdictKind, &'a Cut)> {
    BAD.iter().filter_map(|kind| Some((*kind, example(page, arm, *kind)?))).collect()
}

/// The cut of an arm with the most evidence for a verdict; the first among equals.
fn example<'a>(page: &PageContext<'a>, arm: &ArmSummary, kind: VerdictKind) -> Option<&'a Cut> {
    let cuts = page.run.cuts.iter().filter(|cut| cut.arm == arm.name && has(cut, kind));
    cuts.min_by_key(|cut| (std::cmp::Reverse(evidence_count(cut, kind)), cut.number))
}

/// How much evidence a cut has.
fn evidence_count(cut: &Cut, kind: VerdictKind) -> usize {
    let loss = cut.loss.as_ref().map_or(0, |loss| usize::from(!loss.clients.is_empty()));
    let own = match kind {
        VerdictKind::Corrupt => 4 * usize::from(!cut.torn_writes.is_empty()),
        VerdictKind::LostCommits => 4 * loss,
        // One that goes on without a word is worse than one that stops.
        VerdictKind::ReplicationBroken => {
            4 * usize::from(cut.resumed.as_ref().is_some_and(|resumed| resumed.caught_up_s.is_some()))
        }
        _ => 0,
    };
    // A kept one can be looked at again, and one with a single verdict is easier to follow.
    own + 8 * usize::from(cut.kept) + 2 * usize::from(cut.verdicts.len() == 1)
}

fn fold(page: &PageContext, kind: VerdictKind, cut: &Cut) -> Block {
    let summary = format!("{}: {}", kind_name(kind), tester::title(page, cut));
    Block::Fold(Fold { summary, blocks: story(page, cut, kind, false) })
}

/// A cut from the writes in flight to the command that makes it again.
fn story(page: &PageContext, cut: &Cut, kind: VerdictKind, headed: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    if headed {
        blocks.push(Block::Heading(format!("{}: {}", kind_name(kind), tester::title(page, cut))));
    }
    blocks.push(Block::Text(format!("{}. {}", outcome(cut, kind), opening(page, cut))));
    blocks.extend(writes(cut));
    blocks.extend(cut.torn_writes.iter().take(PAGES).map(bands));
    if cut.torn_writes.len() > PAGES {
        let more = text::count(cut.torn_writes.len() - PAGES, "further torn page");
        blocks.push(Block::Text(format!("{more} in the database.")));
    }
    blocks.extend(cut.verdicts.iter().flat_map(|verdict| evidence(cut, verdict)));
    blocks.push(if cut.kept && kind != VerdictKind::ReplicationBroken {
        Block::Listing(Listing { label: "Judge its image again:".into(), text: replay(&page.run.host.home, cut.seed) })
    } else if kind == VerdictKind::ReplicationBroken {
        Block::Text(format!(
            "Its seed is {}. Whether a replica goes on cannot be judged again: its source is gone with the run.",
            seed::hex(cut.seed)
        ))
    } else {
        Block::Text(format!("Its seed is {}. Its image was not kept.", seed::hex(cut.seed)))
    });
    blocks
}

/// How it ended, for this verdict.
fn outcome(cut: &Cut, kind: VerdictKind) -> String {
    let how = cut.verdicts.iter().find_map(|verdict| match verdict {
        Verdict::Corrupt { how, .. } if kind == VerdictKind::Corrupt => Some(shown(*how).to_owned()),
        _ => None,
    });
    let lost = cut.loss.as_ref().filter(|_| kind == VerdictKind::LostCommits).map(|loss| {
        format!(
            "It lost {} that had been acknowledged, from the last {}",
            text::count(loss.transactions, "transaction"),
            seconds(loss.seconds)
        )
    });
    how.or(lost).unwrap_or_else(|| format!("It {}", did(kind)))
}

/// When it was, and what was under way.
fn opening(page: &PageContext, cut: &Cut) -> String {
    let arm = page.run.experiment.arms.iter().find(|arm| arm.name == cut.arm);
    let what = match arm.and_then(|arm| arm.crash.as_ref()).map(|crash| crash.end) {
        Some(End::Kill) => "The server was killed",
        _ => "The power was cut",
    };
    let missed = if cut.met { "" } else { ", which did not come, so that it was cut at another time" };
    let torn = cut.in_flight.iter().filter(|write| write.is_torn()).count();
    let mut text = format!(
        "{what} {} into the load, {}{missed}. {} in flight, of which the image has {}.",
        seconds(cut.at_s),
        moment_words(cut.moment),
        match cut.writes_in_flight {
            0 => "No write was".to_owned(),
            1 => "1 write was".to_owned(),
            many => format!("{} writes were", text::whole(many as f64)),
        },
        match torn {
            0 => "none in part".to_owned(),
            torn => format!("{torn} in part"),
        }
    );
    if cut.writes_in_flight == 0 {
        text = text.replace(", of which the image has none in part", "");
    }
    if cut.cached_units_lost > 0 {
        let units = text::whole(cut.cached_units_lost as f64);
        text += &format!(" A volatile cache lost {units} units of 4 KiB that had been answered.");
    }
    text
}

/// The writes in flight; none where there were none.
fn writes(cut: &Cut) -> Option<Block> {
    let row = |write: &InFlight| {
        let (image, tone) = match (write.new_units, write.units) {
            (0, _) => ("old".to_owned(), Tone::Plain),
            (new, units) if new >= units => ("new".to_owned(), Tone::Plain),
            (new, units) => (format!("torn: {new} of {units} new"), Tone::Bad),
        };
        let place = if write.file.is_empty() { "\u{2013}".to_owned() } else { write.file.clone() };
        vec![
            Cell::from(file(write.kind)),
            Cell { detail: volume(write.role), ..Cell::from(place) },
            Cell::value(text::whole(write.offset as f64), write.offset as f64, ""),
            Cell::from(text::bytes(write.len as f64)),
            Cell { tone, ..Cell::from(image) },
        ]
    };
    (!cut.in_flight.is_empty()).then(|| {
        Block::Table(Table {
            caption: "In flight at that instant".into(),
            columns: texts(&["Written", "File", "Offset, bytes", "Size", "In the image"]),
            rows: cut.in_flight.iter().map(row).collect(),
            prose: true,
            words: true,
            ..Table::default()
        })
    })
}

fn volume(role: Role) -> String {
    format!("volume: {}", role.holds())
}

/// A torn page before, as it was written, and as it was found.
fn bands(torn: &TornWrite) -> Block {
    let band = |label: &str, state: &PageState, parts: Vec<bool>, tone: Tone| {
        let (start, end) = if state.blank {
            ("all zeroes".to_owned(), String::new())
        } else {
            (format!("LSN {}", state.lsn), format!("LSN \u{2026}{}", state.lsn_tail))
        };
        Band { label: label.into(), start, end, parts, tone }
    };
    let units = torn.new.len();
    let found = if apart(&torn.found) { Tone::Bad } else { Tone::Plain };
    let kind = if torn.after.kind.is_empty() { String::new() } else { format!(", {}", torn.after.kind) };
    Block::Bands(Bands {
        title: format!("Page {} of {}{kind}: head and tail of each version", torn.page, torn.file),
        filled_label: "new".into(),
        empty_label: "old".into(),
        rows: vec![
            band("Before", &torn.before, vec![false; units], Tone::Plain),
            band("As written", &torn.after, vec![true; units], Tone::Plain),
            band("In the image", &torn.found, torn.new.clone(), found),
        ],
    })
}

/// Whether head and tail of a page are of two versions.
fn apart(state: &PageState) -> bool {
    !state.blank && state.lsn & u64::from(u32::MAX) != u64::from(state.lsn_tail)
}

/// What a verdict rests on.
fn evidence(cut: &Cut, verdict: &Verdict) -> Vec<Block> {
    match verdict {
        Verdict::Corrupt { messages, pages, .. } => {
            let mut blocks = listing("Messages:", messages);
            blocks.extend(damaged("Damaged after it:", pages));
            blocks
        }
        Verdict::LostCommits => cut.loss.iter().map(clients).collect(),
        Verdict::Partial { findings } => listing("Rules that do not hold:", findings),
        Verdict::BinlogDisagrees { missing_in_binlog, missing_in_tables, differences } => {
            let text = format!(
                "Transactions in the tables that the binary log lacks: {missing_in_binlog}; in the binary log that \
                 the tables lack: {missing_in_tables}."
            );
            let mut blocks = vec![Block::Text(text)];
            blocks.extend(listing("Client by client:", differences));
            blocks
        }
        Verdict::ReplicationBroken { messages, place } => {
            let mut blocks = vec![Block::Text(format!("Before it went on, the replica was here: {place}."))];
            blocks.extend(cut.resumed.iter().map(|resumed| Block::Text(fetched_again(resumed))));
            blocks.extend(listing("What the replica reported, and what does not hold:", messages));
            blocks
        }
        Verdict::Unverified { why, log } => {
            let mut blocks = vec![Block::Text(format!("Not everything could be looked at: {why}."))];
            blocks.extend(listing("The end of the server's log:", log));
            blocks
        }
    }
}

/// What a replica lacked that its source has still.
fn fetched_again(resumed: &Resumed) -> String {
    match resumed.to_fetch_again {
        0 => "Its tables had all that it had applied before the cut.".to_owned(),
        lacking => format!(
            "Its tables lacked {} or more that it had applied before the cut, and that its source has still.",
            text::count(lacking, "transaction")
        ),
    }
}

fn listing(label: &str, lines: &[String]) -> Vec<Block> {
    if lines.is_empty() {
        return Vec::new();
    }
    let mut text = lines.iter().take(LINES).map(String::as_str).collect::<Vec<_>>().join("\n");
    if lines.len() > LINES {
        text += &format!("\n({} more in the database)", text::count(lines.len() - LINES, "line"));
    }
    vec![Block::Listing(Listing { label: label.into(), text })]
}

fn damaged(label: &str, pages: &[PageFound]) -> Vec<Block> {
    let lines: Vec<String> =
        pages.iter().map(|page| format!("{} page {}: {}", page.file, page.page, page.message)).collect();
    listing(label, &lines)
}

fn clients(loss: &Loss) -> Block {
    let row = |(client, acknowledged, recovered): &(u32, u64, u64)| {
        let number = |value: u64| Cell::value(text::whole(value as f64), value as f64, "");
        vec![
            Cell::from(format!("client {client}")),
            number(*acknowledged),
            number(*recovered),
            Cell { tone: Tone::Bad, ..number(acknowledged.saturating_sub(*recovered)) },
        ]
    };
    let caption = format!(
        "{} that had been acknowledged and are gone, over {}{}",
        text::count(loss.transactions, "transaction"),
        seconds(loss.seconds),
        if loss.clients.len() > CLIENTS {
            format!("; {CLIENTS} of {} clients", loss.clients.len())
        } else {
            String::new()
        }
    );
    Block::Table(Table {
        caption,
        columns: texts(&["Whose", "Last acknowledged", "Last recovered", "Lost"]),
        rows: loss.clients.iter().take(CLIENTS).map(row).collect(),
        ..Table::default()
    })
}

/// What could not be looked at, and why; none where everything was.
pub(super) fn unverified(page: &PageContext) -> Option<Section> {
    let mut reasons: BTreeMap<&str, Vec<&Cut>> = BTreeMap::new();
    for cut in &page.run.cuts {
        let mut whys = cut.verdicts.iter().filter_map(|verdict| match verdict {
            Verdict::Unverified { why, .. } => Some(why.as_str()),
            _ => None,
        });
        let why = whys
            .next()
            .or((Standing::of(cut) == Standing::Unverified).then_some("the server was not seen to recover"));
        why.into_iter().for_each(|why| reasons.entry(why).or_default().push(cut));
    }
    let mut reasons: Vec<(&str, Vec<&Cut>)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, cuts)| std::cmp::Reverse(cuts.len()));
    let row = |(why, cuts): &(&str, Vec<&Cut>)| {
        let mut arms: Vec<&str> = cuts.iter().map(|cut| page.name(&cut.arm)).collect();
        arms.dedup();
        arms.sort_unstable();
        arms.dedup();
        vec![
            Cell::from(*why),
            Cell::from(text::whole(cuts.len() as f64)),
            Cell::from(arms.join("; ")),
            Cell::from(cuts.first().map_or(String::new(), |cut| seed::hex(cut.seed))),
        ]
    };
    let table = Table {
        columns: texts(&["Why", "Cuts", "Arms", "Seed of the first one"]),
        rows: reasons.iter().map(row).collect(),
        prose: true,
        words: true,
        ..Table::default()
    };
    let log = reasons.iter().flat_map(|(_, cuts)| cuts.first()).flat_map(|cut| {
        cut.verdicts
            .iter()
            .filter(|verdict| verdict.kind() == VerdictKind::Unverified)
            .flat_map(|one| evidence(cut, one))
    });
    let mut blocks = vec![Block::Table(table)];
    let log: Vec<Block> = log.collect();
    blocks.push(Block::Fold(Fold { summary: "The messages of the first of each".into(), blocks: log }));
    let lead =
        "A cut that could not be looked at in full is not known to be clean, and is not counted as clean.";
    (!reasons.is_empty()).then(|| Section::new("What could not be verified", blocks).lead(lead))
}
