//! `ebbtide size`: the cheapest storage that carries a load.
//!
//! [`args`] are the arguments, [`ebbtide_forecast::sizing`] reads the load and finds the answer. [`document`] says it, as text and
//! as a page, with [`inputs`], [`today`], [`platforms`] and [`charts`]; [`json`] is for programs. [`volumes`] puts the answers of
//! several volumes together.

mod args;
mod charts;
mod counted;
mod document;
mod inputs;
mod json;
mod platforms;
mod today;
mod volumes;
mod words;

use anyhow::Context as _;
use ebbtide_device::host::Home;
use ebbtide_forecast::sizing::{Answer, SizingPlan, take_prices};
use ebbtide_report::{Block, Report, Section};

use crate::answers;
use crate::exit::{Exit, Refusal};
use crate::refusal::{refuse, refused};
use crate::terminal::{ColorWhen, text_options};
use crate::text;
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
    if let Some(path) = &args.html {
        std::fs::write(path, page(plan, &answer).to_html()).with_context(|| {
            Refusal::environment(format!("cannot write {}", path.display()))
                .hint("give --html a file in a directory that is there and that you may write")
        })?;
    }
    if json {
        answers::print(&json::sized(plan, &answer));
    } else {
        let options = text_options(color, args.details);
        let document = Report { sections: document::sections(plan, &answer), ..Report::default() };
        text::write(&document.to_text(options))?;
        text::write(&format!("\n{}", options.sentence(&more(args, plan))))?;
    }
    Ok(exit(plan, &answer))
}

/// The page: the answer, the load over time, and what the answer rests on.
fn page(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Report {
    let mut sections = document::sections(plan, answer);
    sections.insert(1, Section::new("The load over time", vec![Block::Plots(charts::load(plan, answer))]));
    Report {
        title: plan.source.what.clone(),
        subtitle: "The cheapest storage that carries a load".into(),
        sections,
        footer: format!("ebbtide {}. List prices of {}.", crate::version::of_results(), plan.region),
        ..Report::default()
    }
}

/// The last line: whose prices, the seed of a model, and where the rest is.
fn more(args: &SizeArgs, plan: &SizingPlan<'_>) -> String {
    let mut parts = vec![format!("list prices of {}", plan.region)];
    if plan.source.server.is_some() {
        parts.insert(0, format!("seed {}", plan.seed));
    }
    if !args.details {
        parts.push("more: --details".to_owned());
    }
    parts.push(
        args.html
            .as_ref()
            .map_or_else(|| "charts: --html FILE".to_owned(), |path| format!("charts: {}", path.display())),
    );
    parts.join("; ")
}

/// Whether the answer of a volume is sound.
fn exit(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Exit {
    if answer.is_sound(plan) { Exit::Clean } else { Exit::Finding }
}
