//! `ebbtide size`: the cheapest storage that carries a load.
//!
//! [`args`] are the arguments. [`ebbtide_forecast::sizing`] reads the load, finds the answer and says it, as a document and as
//! figures. [`volumes`] puts the answers of several volumes together.

mod args;
mod volumes;

use ebbtide_device::host::Home;
use ebbtide_forecast::sizing::{Answer, SizingPlan, document, sized, take_prices};

use crate::answers;
use crate::document::{self as output, ColorWhen, text_options};
use crate::exit::Exit;
use crate::refusal::{refuse, refused};
pub(crate) use args::SizeArgs;

/// Sizes, and prints the answer, or one JSON object where `json` is set.
///
/// # Errors
/// A file that cannot be used, a wrong volume or objective: a [`Refusal`] with [`Exit::Usage`].
pub(crate) fn run(
    args: &SizeArgs,
    home: Option<&Home>,
    color: ColorWhen,
    json: bool,
) -> anyhow::Result<Exit> {
    let mut catalog = ebbtide_control::catalog(home).map_err(refuse)?;
    let lists = take_prices(&mut catalog, &args.prices).map_err(refused)?;
    let plans = SizingPlan::read(&args.request()?, &catalog, &lists).map_err(refused)?;
    let [plan] = &plans[..] else { return volumes::run(args, &plans, color, json) };
    let answer = Answer::of(plan);
    let document = document(plan, &answer, &crate::version::of_results());
    if let Some(path) = &args.html {
        output::write_page(path, &document)?;
    }
    if json {
        answers::print(&sized(plan, &answer));
    } else {
        let mut rest = more(args, plan);
        rest.push(output::charts(args.html.as_deref()));
        args.sections.print(&document, text_options(color, args.details), &rest.join("; "))?;
    }
    Ok(exit(plan, &answer))
}

/// The parts of the last line: whose prices, the seed of a model, and where the rest is. Charts are of one volume alone.
fn more(args: &SizeArgs, plan: &SizingPlan<'_>) -> Vec<String> {
    let mut parts = vec![format!("list prices of {}", plan.region)];
    if plan.source.server.is_some() {
        parts.insert(0, format!("seed {}", plan.seed));
    }
    if !args.details {
        parts.push("more: --details".to_owned());
    }
    parts
}

/// Whether the answer of a volume is sound.
fn exit(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Exit {
    if answer.is_sound(plan) { Exit::Clean } else { Exit::Finding }
}
