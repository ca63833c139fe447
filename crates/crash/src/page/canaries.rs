//! The proof that the tester sees damage where there is some.

use ebbtide_lab::page::text;
use ebbtide_report::{Block, Cell, Section, Table, Tone};

use super::{PageContext, cut_details, texts};
use crate::record::VerdictKind;
use crate::summary::CanarySummary;
use crate::summary::sentences::{ends, kind as kind_name, proves};

pub(super) fn section(page: &PageContext) -> Section {
    let canaries = &page.summary.canaries;
    let lead = "Arms in which the tester must find damage: volumes that acknowledge what is not durable, torn pages \
                without protection, and with replicas a position or a relay log that is not synced. A tester that does not find \
                the damage proves nothing about the other arms.";
    if canaries.is_empty() {
        let text = "None ran: nothing proves that the tester sees damage.";
        return Section::new("Canaries", vec![Block::Text(text.into())]).lead(lead);
    }
    let table = Table {
        columns: texts(&["Canary", "It proves that the tester sees", "Caught", "Cuts", "All that was found"]),
        rows: canaries.iter().map(row).collect(),
        prose: true,
        words: true,
        ..Table::default()
    };
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(canaries.iter().flat_map(|canary| cut_details::folds(page, &canary.arm)));
    Section::new("Canaries", blocks).lead(lead)
}

fn row(canary: &CanarySummary) -> Vec<Cell> {
    let arm = &canary.arm;
    let caught = match canary.caught {
        Some(1) => Cell { tone: Tone::Good, ..Cell::from("by its first cut") },
        Some(cuts) => {
            Cell { tone: Tone::Good, ..Cell::from(format!("after {} cuts", text::whole(cuts as f64))) }
        }
        None => Cell { tone: Tone::Bad, ..Cell::from("not caught") },
    };
    let mut found: Vec<String> = VerdictKind::ALL
        .iter()
        .filter(|kind| arm.count(**kind) > 0)
        .map(|kind| format!("{} {}", text::whole(arm.count(*kind) as f64), kind_name(*kind).to_lowercase()))
        .collect();
    for (count, what) in [(arm.unverified, "unverified"), (arm.clean, "clean")] {
        if count > 0 {
            found.push(format!("{} {what}", text::whole(count as f64)));
        }
    }
    vec![
        Cell::from(arm.name.as_str()),
        Cell::from(proves(canary.canary)),
        caught,
        Cell::from(ends(arm.cuts, arm.end)),
        Cell::from(if found.is_empty() { "nothing".to_owned() } else { found.join(", ") }),
    ]
}
