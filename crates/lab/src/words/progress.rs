//! What a run reports while it goes on.

use ebbtide_text::{figure, latency, percent};

use super::span;
use crate::record::Outcome;
use crate::run::{Event, Phase, Progress, Tick};
use crate::summary::TrialFigures;

/// What an event is for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    /// A line that stays.
    Line(String),
    /// What goes on, for a line that is written over.
    Status {
        /// The text.
        text: String,
        /// A line that stays where no line can be written over; empty for none.
        plain: String,
    },
    /// Nothing to show.
    Nothing,
}

/// An event in words.
#[must_use]
pub fn words(event: Event) -> Words {
    let status = |text: String| Words::Status { text, plain: String::new() };
    match event {
        Event::Noted { text } => Words::Line(format!("note: {text}")),
        Event::Cleared { what: leftover } => Words::Line(format!("cleared: {leftover}")),
        Event::Preparing { what: work, share } => {
            let text = preparing(&work, share);
            // A figure that grows is for a line that is written over.
            Words::Status { text, plain: if share.is_some() { String::new() } else { work } }
        }
        Event::Planned { of: trials, already, estimate_s } => {
            Words::Line(planned(trials, already, estimate_s))
        }
        Event::TrialStarted(_) => Words::Nothing,
        Event::Phase { trial, phase } => status(format!("{}: {}", place(&trial), phase_words(phase))),
        Event::Tick { trial, tick } => status(second(&trial, &tick)),
        Event::Waiting { trial, why } => {
            let place = trial.as_ref().map(|trial| format!("{}: ", place(trial))).unwrap_or_default();
            status(format!("{place}waiting: {why}"))
        }
        Event::TrialEnded { trial, outcome, figures } => Words::Line(ended(&trial, &outcome, figures)),
    }
}

fn preparing(work: &str, share: Option<f64>) -> String {
    match share {
        Some(share) => format!("{work}: {}", percent(share)),
        None => work.to_owned(),
    }
}

fn planned(trials: usize, already: usize, estimate_s: f64) -> String {
    let done = if already > 0 { format!(", {already} of them measured already") } else { String::new() };
    format!("{trials} trials{done}; about {}", span(estimate_s))
}

/// `trial 3 of 6, gp2 / tuned`.
fn place(trial: &Progress) -> String {
    format!("trial {} of {}, {}", trial.number, trial.of, trial.arm)
}

fn phase_words(phase: Phase) -> &'static str {
    match phase {
        Phase::Cloning => "cloning the data and attaching volumes",
        Phase::Starting => "starting the server",
        Phase::Reading => "reading the tables, without limits",
        Phase::LeadIn => "leading in on multiplied limits, to the working state",
        Phase::Settling => "settling on the volumes' limits",
        Phase::Measuring => "measuring",
        Phase::BackingUp => "waiting for the end of the backup",
        Phase::Restoring => "restoring and checking the backup, without limits",
        Phase::Promoting => "promoting a replica",
        Phase::Checking => "checking the consistency of the tables, without limits",
        Phase::Clearing => "throwing the volumes away",
    }
}

fn second(trial: &Progress, tick: &Tick) -> String {
    let phase = match tick.phase {
        Phase::Measuring => format!("measuring {:.0} of {} s", tick.t_s.max(0.0), tick.measure_s),
        Phase::Settling => "settling".to_owned(),
        _ => "leading in".to_owned(),
    };
    let credits = tick.credits.map(|share| format!(", credits {}", percent(share))).unwrap_or_default();
    let eta = trial.eta_s.map(|eta| format!("; {} left", span(eta))).unwrap_or_default();
    let (tps, p95, iops) = (figure(tick.tps), latency(tick.p95_us), figure(tick.volume_iops));
    format!("{}: {phase}: {tps} tps, p95 {p95}, {iops} IOPS{credits}{eta}", place(trial))
}

fn ended(trial: &Progress, outcome: &Outcome, figures: Option<TrialFigures>) -> String {
    let text =
        |figures: TrialFigures| format!("{} tps, p95 {}", figure(figures.tps), latency(figures.p95_us));
    let figures = figures.map(text).unwrap_or_default();
    let place = place(trial);
    match outcome {
        Outcome::Measured => format!("{place}: {figures}"),
        Outcome::Disqualified { why } => format!("{place}: {figures}, disqualified: {why}"),
        Outcome::Failed { why, log } => {
            let log: String = log.iter().rev().take(3).rev().map(|line| format!("\n    {line}")).collect();
            format!("{place}: failed: {why}{log}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(eta_s: Option<f64>) -> Progress {
        Progress { number: 3, of: 6, arm: "gp2 / tuned".into(), repeat: 1, eta_s }
    }

    #[test]
    fn a_second_of_a_trial_is_reported_with_credits_and_an_eta_only_where_they_are_known() {
        let tick = Tick {
            phase: Phase::Measuring,
            t_s: 12.0,
            measure_s: 60,
            tps: 351.2,
            p95_us: 612_345.0,
            credits: Some(0.017),
            volume_iops: 375.4,
        };
        assert_eq!(
            second(&trial(Some(200.0)), &tick),
            "trial 3 of 6, gp2 / tuned: measuring 12 of 60 s: 351 tps, p95 612 ms, 375 IOPS, credits 1.7%; 4 min left"
        );
        let bare = Tick { credits: None, phase: Phase::Settling, ..tick };
        assert!(second(&trial(None), &bare).ends_with("settling: 351 tps, p95 612 ms, 375 IOPS"));
    }

    #[test]
    fn a_failed_trial_is_reported_with_its_reason_and_the_end_of_the_log() {
        let outcome = Outcome::Failed { why: "the server died".into(), log: vec!["[ERROR] a".into()] };
        let shown = ended(&trial(None), &outcome, None);
        assert_eq!(shown, "trial 3 of 6, gp2 / tuned: failed: the server died\n    [ERROR] a");
    }

    #[test]
    fn waits_are_shown_in_minutes_from_two_on() {
        assert_eq!(
            [41.0, 119.9, 200.0, 3_590.0, 5_000.0].map(span),
            ["41 s", "2 min", "4 min", "1 h", "1 h 24 min"]
        );
    }
}
