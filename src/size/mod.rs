//! `ebbtide size`: the cheapest storage that carries a load.
//!
//! [`args`] are the arguments, [`ebbtide_forecast::sizing`] reads the load and finds the answer. [`volumes`] puts the answers of
//! several volumes together. [`text`] (with [`today`], [`counted`] and [`words`]), [`json`] and [`page`] show it.

mod args;
mod counted;
mod json;
mod page;
mod text;
mod today;
mod volumes;
mod words;

use anyhow::Context as _;
use ebbtide_device::host::Home;
use ebbtide_forecast::sizing::{Answer, SizingPlan, take_prices};

use crate::answers;
use crate::exit::{Exit, Refusal};
use crate::refusal::{refuse, refused};
use crate::text as output;
pub(crate) use args::SizeArgs;

/// Sizes, and prints the answer, or one JSON object where `json` is set.
///
/// # Errors
/// A file that cannot be used, a wrong volume or objective: a [`Refusal`] with [`Exit::Usage`].
pub(crate) fn run(args: &SizeArgs, home: Option<&Home>, json: bool) -> anyhow::Result<Exit> {
    let mut catalog = ebbtide_control::catalog(home).map_err(refuse)?;
    let lists = take_prices(&mut catalog, &args.prices).map_err(refused)?;
    let plans = SizingPlan::read(&args.request()?, &catalog, &lists).map_err(refused)?;
    let [plan] = &plans[..] else { return volumes::run(args, &plans, json) };
    let answer = Answer::of(plan);
    if let Some(path) = &args.html {
        std::fs::write(path, page::report(plan, &answer).to_html()).with_context(|| {
            Refusal::environment(format!("cannot write {}", path.display()))
                .hint("give --html a file in a directory that is there and that you may write")
        })?;
    }
    if json {
        answers::print(&json::sized(plan, &answer));
    } else {
        output::write(&text::answer(plan, &answer, args.html.as_deref()))?;
    }
    Ok(exit(plan, &answer))
}

/// Whether the answer of a volume is sound.
fn exit(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Exit {
    if answer.is_sound(plan) { Exit::Clean } else { Exit::Finding }
}
