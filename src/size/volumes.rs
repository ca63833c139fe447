//! Several volumes in one input: each is sized by itself, and their costs are added up.

use ebbtide_catalog::Usd;
use ebbtide_forecast::sizing::{Answer, SizingPlan};
use ebbtide_report::{Block, Note, Report, Section, TextOptions};
use serde::Serialize;

use super::args::SizeArgs;
use super::json::{self, Sized};
use super::{document, exit};
use crate::answers;
use crate::document::{ColorWhen, text_options};
use crate::exit::{Exit, Refusal};
use crate::text;

/// What `size` prints for the metrics of several volumes.
#[derive(Serialize)]
struct SizedVolumes<'a> {
    /// The volumes, by name.
    volumes: Vec<SizedVolume<'a>>,
    /// What the answers of all volumes cost together a month without an instance, US dollars; null where one of them has no
    /// answer.
    storage_usd: Option<Usd>,
    /// What today's volumes cost together a month, US dollars; null where they were not named, or have no price.
    today_storage_usd: Option<Usd>,
}

/// One of several volumes.
#[derive(Serialize)]
struct SizedVolume<'a> {
    /// The volume's id in the metrics; empty where they name none.
    volume: &'a str,
    /// What `size` says of it.
    #[serde(flatten)]
    sized: Sized<'a>,
}

/// Costs of all volumes together a month.
#[derive(Debug, Clone, Copy)]
struct Together {
    answers: Option<Usd>,
    today: Option<Usd>,
}

/// Sizes several volumes, and prints their answers. The exit code is the worst of them.
///
/// # Errors
/// A page is asked for, which shows one volume.
pub(super) fn run(
    args: &SizeArgs,
    plans: &[SizingPlan<'_>],
    color: ColorWhen,
    json: bool,
) -> anyhow::Result<Exit> {
    let names: Vec<&str> = plans.iter().map(|plan| plan.source.volume.as_str()).collect();
    if args.html.is_some() {
        let message = format!("--html: a page shows one volume, and the files have {}", named(&names));
        return Err(Refusal::usage(message).hint("name one with --device").into());
    }
    let answered: Vec<(&SizingPlan<'_>, Answer<'_>)> =
        plans.iter().map(|plan| (plan, Answer::of(plan))).collect();
    let together = Together {
        answers: sum(answered
            .iter()
            .map(|(_, answer)| answer.sizing.choices.first()?.storage.as_ref().map(|cost| cost.usd))),
        today: sum(answered
            .iter()
            .map(|(_, answer)| answer.sizing.today.as_ref()?.choice.storage.as_ref().map(|cost| cost.usd))),
    };
    if json {
        let volumes = answered.iter().map(|(plan, answer)| SizedVolume {
            volume: &plan.source.volume,
            sized: json::sized(plan, answer),
        });
        answers::print(&SizedVolumes {
            volumes: volumes.collect(),
            storage_usd: together.answers.map(Usd::to_cents),
            today_storage_usd: together.today.map(Usd::to_cents),
        });
    } else {
        text::write(&words(&answered, &names, together, text_options(color, args.details)))?;
    }
    let is_worse = answered.iter().any(|(plan, answer)| exit(plan, answer) == Exit::Finding);
    Ok(if is_worse { Exit::Finding } else { Exit::Clean })
}

/// The sum of costs; None where one is not known.
fn sum(costs: impl Iterator<Item = Option<Usd>>) -> Option<Usd> {
    costs.into_iter().try_fold(Usd::from_micros(0), |sum, cost| Some(sum + cost?))
}

/// What a volume is called.
fn name(volume: &str) -> &str {
    if volume.is_empty() { "a volume that the metrics do not name" } else { volume }
}

fn named(volumes: &[&str]) -> String {
    volumes.iter().map(|volume| name(volume)).collect::<Vec<_>>().join(", ")
}

/// What they cost together, the answer of each, and with details the document of each.
fn words(
    answered: &[(&SizingPlan<'_>, Answer<'_>)],
    names: &[&str],
    together: Together,
    options: TextOptions,
) -> String {
    let cost = match together.answers {
        Some(cost) => format!("the answers cost {cost} a month together"),
        None => "there is no price of all answers together".to_owned(),
    };
    let today = together.today.map(|cost| format!(", today's volumes {cost}")).unwrap_or_default();
    let mut notes = vec![Note::plain(
        "each volume is sized by itself, with the same --volume and --size: name one with --device where they differ",
    )];
    if answered.iter().any(|(plan, _)| plan.instance.is_some()) {
        notes.push(Note::plain(
            "the instance is not in these costs, and its EBS limits hold for all its volumes together: they are not added up here",
        ));
    }
    let total = format!("{} volumes ({}): {cost}{today}.", names.len(), named(names));
    let mut sections = vec![Section::new("", vec![Block::Findings(vec![total]), Block::Notes(notes)])];
    for (plan, answer) in answered {
        let mut of_volume = document::sections(plan, answer);
        if let Some(first) = of_volume.first_mut() {
            first.heading = name(&plan.source.volume).to_owned();
        }
        sections.extend(of_volume);
    }
    Report { sections, ..Report::default() }.to_text(options)
}
