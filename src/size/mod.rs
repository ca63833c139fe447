//! `ebbtide size`: the cheapest storage that carries a load.
//!
//! [`volumes`] puts the answers of several volumes together. [`source`] reads what was recorded ([`files`] finds and opens it), [`plan`] the rest of the arguments, and
//! [`counted`] says what its figures count. [`modelled`] makes the load of a server's profile,
//! and [`verify`] checks choices with its model. [`text`] (with [`today`] and [`words`]), [`json`] and [`page`] show the answer of [`ebbtide_advisor::sizing`].

mod args;
mod counted;
mod files;
mod json;
mod modelled;
mod page;
mod plan;
mod source;
mod text;
mod today;
mod verify;
mod volumes;
mod words;

use anyhow::Context as _;
use ebbtide_advisor::sizing::managed::{AuroraIo, Platform, platforms};
use ebbtide_advisor::sizing::{Asked, QueueRule, Sizing, Space, queue_rule, size};
use ebbtide_device::host::Home;

use crate::answers;
use crate::exit::{Exit, Refusal};
use crate::refusal::refuse;
use crate::text as output;
pub(crate) use args::SizeArgs;
use plan::Plan;
use verify::Verified;

/// The answer with what stands beside it.
pub(crate) struct Answer<'a> {
    sizing: Sizing<'a>,
    queue_rule: Option<QueueRule>,
    platforms: Vec<Platform>,
    /// What the model of the server says of the choices, in their order; empty without a profile.
    verified: Vec<Verified>,
}

/// Sizes, and prints the answer, or one JSON object where `json` is set.
///
/// # Errors
/// A file that cannot be used, a wrong volume or objective: a [`Refusal`] with [`Exit::Usage`].
pub(crate) fn run(args: &SizeArgs, home: Option<&Home>, json: bool) -> anyhow::Result<Exit> {
    let mut catalog = ebbtide_control::catalog(home).map_err(refuse)?;
    let lists = plan::take_prices(&mut catalog, args)?;
    let plans = Plan::read(args, &catalog, &lists)?;
    let [plan] = &plans[..] else { return volumes::run(args, &plans, json) };
    let answer = answer(plan);
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
fn exit(plan: &Plan<'_>, answer: &Answer<'_>) -> Exit {
    let inputs = &plan.inputs;
    let sound = !answer.sizing.choices.is_empty() && inputs.throttled.is_none() && inputs.is_consistent();
    if sound { Exit::Clean } else { Exit::Finding }
}

fn answer<'a>(plan: &'a Plan<'a>) -> Answer<'a> {
    let prices = plan.prices();
    let instances = plan.instances();
    let asked = Asked {
        catalog: plan.catalog,
        prices,
        now: &plan.now,
        planned: &plan.planned,
        implied: plan.implied.as_ref(),
        objective: plan.objective,
        most_members: plan.most_members,
        arrays_asked: plan.arrays_asked,
        today: plan.today.as_ref(),
        past: plan.inputs.past.as_ref(),
        instance: plan.instance.as_ref(),
        instances: &instances,
    };
    let mut sizing = size(&asked);
    let latency = sizing.today.as_ref().and_then(|today| today.latency.clone());
    let space = Space {
        catalog: plan.catalog,
        prices,
        demand: &plan.planned,
        objective: plan.objective,
        most_members: plan.most_members,
        instance: sizing.instance,
        counts_allowance: false,
        too_little: asked.too_little(latency.as_ref()),
    };
    let verified = match &plan.source.server {
        Some(server) => verify::verify(plan, server, &space, &mut sizing),
        None => Vec::new(),
    };
    // The log of a profile is that of the grown load already.
    let io = AuroraIo::of(&plan.grown(), plan.source.log_bytes);
    let platforms =
        sizing.choices.first().map(|best| platforms(&space, &best.volumes, io)).unwrap_or_default();
    Answer { queue_rule: queue_rule(&plan.source.load), platforms, verified, sizing }
}
