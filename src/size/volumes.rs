//! Several volumes in one input: each is sized by itself, and their costs are added up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ebbtide_catalog::Usd;
use ebbtide_forecast::sizing::{
    Answer, SizingFigures, SizingPlan, StorageTogether, documents, sized, volume_name,
};
use serde::Serialize;

use super::args::SizeArgs;
use super::{exit, more};
use crate::answers;
use crate::document::{ColorWhen, text_options};
use crate::exit::{Exit, Refusal};

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
    sized: SizingFigures<'a>,
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
    if args.html.is_some() {
        let names: Vec<&str> = plans.iter().map(volume_name).collect();
        let message = format!("--html: a page shows one volume, and the files have {}", names.join(", "));
        return Err(Refusal::usage(message).hint("name one with --device").into());
    }
    let answered: Vec<(&SizingPlan<'_>, Answer<'_>)> = plans.iter().zip(answers_of(plans)).collect();
    if json {
        let together = StorageTogether::of_all(&answered);
        let volumes = answered
            .iter()
            .map(|(plan, answer)| SizedVolume { volume: &plan.source.volume, sized: sized(plan, answer) });
        answers::print(&SizedVolumes {
            volumes: volumes.collect(),
            storage_usd: together.answers.map(Usd::to_cents),
            today_storage_usd: together.today.map(Usd::to_cents),
        });
    } else {
        let document = documents(&answered, &crate::version::of_results());
        let rest = more(args, &plans[0]).join("; ");
        args.sections.print(&document, text_options(color, args.details), &rest)?;
    }
    let is_worse = answered.iter().any(|(plan, answer)| exit(plan, answer) == Exit::Finding);
    Ok(if is_worse { Exit::Finding } else { Exit::Clean })
}

/// The answers in the order of their plans. Searches are independent: each processor takes the next one.
fn answers_of<'a>(plans: &'a [SizingPlan<'a>]) -> Vec<Answer<'a>> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Answer<'a>>>> = plans.iter().map(|_| Mutex::new(None)).collect();
    let search = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = plans.get(place) else { return };
            *done[place].lock().expect("no search panics with the lock") = Some(Answer::of(plan));
        }
    };
    thread::scope(|scope| {
        for _ in 1..thread::available_parallelism().map_or(1, usize::from).min(plans.len()) {
            scope.spawn(search);
        }
        search();
    });
    let answer = |slot: Mutex<Option<Answer<'a>>>| {
        let answer = slot.into_inner().expect("no search panics with the lock");
        answer.expect("each plan was taken once")
    };
    done.into_iter().map(answer).collect()
}
