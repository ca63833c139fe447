//! What the risk buys, as the lab measured it after the cuts.

use ebbtide_lab::page;
use ebbtide_report::{Block, Link, Note, Section};

use super::PageContext;
use crate::record::{GAIN_DIR, GainRun};

/// None where nobody asked.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    let gain = page.run.gain.as_ref()?;
    let mut blocks = Vec::new();
    if let Some(why) = &gain.failed {
        let what = if gain.measured.is_some() { "Not all of it counts" } else { "Nothing was measured" };
        blocks.push(Block::Notes(vec![Note::caution(format!("{what}: {why}."))]));
    }
    if let Some(GainRun { run, summary }) = &gain.measured {
        blocks.extend(page::verdicts_and_curves(run, summary));
        blocks.push(Block::Link(Link {
            text: format!("The whole report of {}, with every second of its trials", run.experiment.name),
            file: format!("{GAIN_DIR}/report.html"),
        }));
    }
    Some(Section::new("What it gains", blocks).lead(lead(gain.measured.as_ref())))
}

fn lead(measured: Option<&GainRun>) -> String {
    measured.map_or_else(String::new, |GainRun { run, .. }| {
        format!(
            "Measured after the cuts and without any, on the same machine and server: {} ({}). {}",
            run.experiment.title,
            run.experiment.name,
            page::text::line(&run.experiment.scale)
        )
    })
}
