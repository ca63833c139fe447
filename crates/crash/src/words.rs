//! What a crash run reports while it goes on, in words.

use ebbtide_lab::run::Event as LabEvent;
use ebbtide_lab::words::progress::{self, Words};
use ebbtide_lab::words::span;
use ebbtide_text::{count, figure};

use super::event::{Event, Progress};

/// The words of a run's events. It counts the cuts of a stint that are not clean.
#[derive(Debug, Default)]
pub struct EventWords {
    bad: u32,
}

impl EventWords {
    /// An event in words.
    pub fn take(&mut self, event: Event) -> Words {
        let status = |text: String| Words::Status { text, plain: String::new() };
        match event {
            Event::Lab(LabEvent::Preparing { what: work, .. }) => status(work),
            Event::Lab(LabEvent::Waiting { why, .. }) => status(format!("waiting: {why}")),
            Event::Lab(event @ (LabEvent::Noted { .. } | LabEvent::Cleared { .. })) => progress::words(event),
            Event::Lab(_) => Words::Nothing,
            Event::Planned { stints, cuts, already } => {
                let already = match already {
                    0 => String::new(),
                    already => format!(", {} done already", count(already, "stint")),
                };
                Words::Line(format!("{}, {}{already}", count(stints, "stint"), count(cuts, "cut")))
            }
            Event::StintStarted(_) => {
                self.bad = 0;
                Words::Nothing
            }
            Event::Doing { stint, what: work } => status(format!("{}: {work}", place(&stint))),
            Event::Judged { stint, judged, of: cuts, verdicts, eta_s } => {
                self.bad += u32::from(!verdicts.is_empty());
                let eta = eta_s.map(|eta| format!("; {} left", span(eta))).unwrap_or_default();
                let bad = self.bad;
                status(format!("{}: cut {judged} of {cuts}, {bad} not clean{eta}", place(&stint)))
            }
            Event::StintEnded { stint, tps, disqualified, judged, bad, failed } => {
                let tps = tps.map(|tps| format!("{} tps, ", figure(tps))).unwrap_or_default();
                let not_counted = disqualified.map(|why| format!("; throughput not counted: {why}"));
                let not_counted = not_counted.unwrap_or_default();
                let failed = failed.map(|why| format!("; ended early: {why}")).unwrap_or_default();
                let place = place(&stint);
                Words::Line(format!("{place}: {tps}{judged} cuts judged, {bad} bad{not_counted}{failed}"))
            }
        }
    }
}

/// `stint 3 of 6, doublewrite off`.
fn place(stint: &Progress) -> String {
    format!("stint {} of {}, {}", stint.number, stint.of, stint.arm)
}
