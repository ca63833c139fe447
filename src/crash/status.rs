//! A crash run while it lasts: one status line on a terminal, and a line for each stint that ends.

use ebbtide_crash::{Event, Progress};
use ebbtide_lab::run::Event as LabEvent;

use crate::run::status::span;
use crate::status_line::StatusLine;
use crate::text::{count, line};

/// Shows a run on standard error; stints that end are lines of standard output, unless that carries JSON.
#[derive(Debug)]
pub(super) struct Status {
    line: StatusLine,
    json: bool,
    bad: u32,
}

impl Status {
    /// `prefix`: what the status line has before every text.
    pub(super) fn new(json: bool, prefix: &str) -> Self {
        Self { line: StatusLine::with_prefix(prefix), json, bad: 0 }
    }

    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Lab(LabEvent::Noted { text }) => self.print(&format!("note: {text}")),
            Event::Lab(LabEvent::Cleared { what }) => self.print(&format!("cleared: {what}")),
            Event::Lab(LabEvent::Preparing { what, .. }) => self.line.show(&what),
            Event::Lab(LabEvent::Waiting { why, .. }) => self.line.show(&format!("waiting: {why}")),
            Event::Planned { stints, cuts, already } => {
                let already = if already > 0 {
                    format!(", {} done already", count(already, "stint"))
                } else {
                    String::new()
                };
                self.print(&format!("{}, {}{already}", count(stints, "stint"), count(cuts, "cut")));
            }
            Event::StintStarted(_) => self.bad = 0,
            Event::Doing { stint, what } => self.line.show(&format!("{}: {what}", place(&stint))),
            Event::Judged { stint, judged, of, verdicts, eta_s } => {
                self.bad += u32::from(!verdicts.is_empty());
                let eta = eta_s.map(|eta| format!("; {} left", span(eta))).unwrap_or_default();
                let bad = self.bad;
                self.line.show(&format!("{}: cut {judged} of {of}, {bad} not clean{eta}", place(&stint)));
            }
            Event::StintEnded { stint, tps, disqualified, judged, bad, failed } => {
                let tps = tps.map(|tps| format!("{} tps, ", ebbtide_text::figure(tps))).unwrap_or_default();
                let not_counted = disqualified.map(|why| format!("; throughput not counted: {why}"));
                let not_counted = not_counted.unwrap_or_default();
                let failed = failed.map(|why| format!("; ended early: {why}")).unwrap_or_default();
                self.print(&format!(
                    "{}: {tps}{judged} cuts judged, {bad} bad{not_counted}{failed}",
                    place(&stint)
                ));
            }
            _ => {}
        }
    }

    /// Prints a line that stays.
    fn print(&mut self, text: &str) {
        self.line.clear();
        if self.json {
            crate::text::note(text);
        } else {
            line(text);
        }
    }
}

/// `stint 3 of 6, doublewrite off`.
fn place(stint: &Progress) -> String {
    format!("stint {} of {}, {}", stint.number, stint.of, stint.arm)
}
