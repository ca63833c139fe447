//! What would run, and how long that takes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use ebbtide_text::{count, seconds, size};

use super::span;
use crate::experiment::{Arm, Experiment, LoadKind, Shipped};
use crate::page::settings::round_trip;
use crate::record::ProgramFacts;
use crate::run::{self, Plan};

/// The shipped experiments.
#[must_use]
pub fn list<'a>(shipped: impl IntoIterator<Item = &'a Shipped>, command: &str) -> String {
    let mut text = String::new();
    for Shipped { name, title, question, .. } in shipped {
        let question = question.trim().replace('\n', "\n    ");
        let _ = writeln!(text, "{name}\n    {title}\n    {question}\n");
    }
    let _ = write!(
        text,
        "Run one with 'ebbtide {command} NAME', or NAME --quick; 'ebbtide {command} NAME --show' prints its file."
    );
    text
}

/// What runs, before it does.
#[must_use]
pub fn header(plan: &Plan, out: &Path) -> String {
    let (experiment, server) = (&plan.experiment(), plan.server());
    let (arms, repeats) = (experiment.arms.len(), experiment.trial.repeats);
    let mut text = format!("{}: {}\n", experiment.name, experiment.title);
    let _ = writeln!(text, "server: {} ({})", server.text.trim(), server.path.display());
    text += &others(plan);
    let _ = writeln!(
        text,
        "{}, {} of each, {} measured; seed {}",
        count(arms, "arm"),
        count(repeats, "trial"),
        measured(experiment),
        experiment.seed
    );
    text + &format!("results: {}", out.display())
}

/// A line for each program that servers of arms have in place of the run's.
fn others(plan: &Plan) -> String {
    let facts = run::server_facts(plan);
    let line = |role: &str, programs: &BTreeMap<String, ProgramFacts>| {
        let mut arms: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (arm, ProgramFacts { path, version, .. }) in programs {
            arms.entry((version.trim(), path)).or_default().push(arm);
        }
        let lines = arms
            .iter()
            .map(|((version, path), arms)| format!("{role} of {}: {version} ({path})\n", arms.join(", ")));
        lines.collect::<String>()
    };
    let is_cut = plan.arms().iter().any(|planned| planned.arm.crash.is_some());
    line(if is_cut { "source" } else { "server" }, &facts.sources) + &line("replicas", &facts.replicas)
}

/// What would be measured after cuts, and how long that takes.
pub type AfterCuts<'a> = (&'a Experiment, Duration);

/// What would run, and for how long; `gain`: what would be measured after cuts.
#[must_use]
pub fn plan(plan: &Plan, experiment: &Experiment, took: Duration, gain: Option<AfterCuts<'_>>) -> String {
    let mut text = title(experiment, plan.server().text.trim());
    text += &others(plan);
    text += &scale(experiment);
    for planned in plan.arms() {
        text += &arm(&planned.arm, planned.data_bytes);
        for option in &planned.options {
            let _ = writeln!(text, "    {option}");
        }
        if let Some(replica) = &planned.replica {
            text += &replicas(&planned.arm, &replica.arm, &replica.options);
        }
    }
    text + &amount(experiment, took, gain)
}

/// What would run on servers whose versions are not known.
#[must_use]
pub fn outline(
    experiment: &Experiment,
    took: Duration,
    gain: Option<AfterCuts<'_>>,
    unknown: &[String],
) -> String {
    let mut text = title(experiment, "its version is not known");
    text += &scale(experiment);
    for planned in &experiment.arms {
        text += &arm(planned, planned.tables(experiment.data).data_bytes());
        if let Some(replica) = planned.replica() {
            text += &replicas(planned, &replica, &[]);
        }
    }
    text + &amount(experiment, took, gain) + &not_started(unknown)
}

/// What was not looked at because servers are not started.
#[must_use]
pub fn not_started(unknown: &[String]) -> String {
    format!(
        "\n\nnot checked: the settings, their option lines, and which arms a server cannot have. They need the version of {}, \
         which is not known without starting it, and --check starts nothing",
        unknown.join(" and of ")
    )
}

fn title(experiment: &Experiment, server: &str) -> String {
    format!("{}: {}\nserver: {server}\n", experiment.name, experiment.title)
}

fn scale(experiment: &Experiment) -> String {
    let scale = experiment.scale.trim();
    if scale.is_empty() { String::new() } else { format!("scale: {scale}\n") }
}

/// An arm without its server's options.
fn arm(arm: &Arm, data_bytes: u64) -> String {
    let mut text = format!("\n{}\n", arm.name);
    for (role, spec) in &arm.volumes {
        let role = format!("{role:?}").to_lowercase();
        let _ = writeln!(text, "    {role} volume: {spec}");
    }
    let _ =
        writeln!(text, "    memory {}, about {} of data", size(arm.instance.memory_bytes), size(data_bytes));
    let _ = writeln!(text, "    {}", asked_of(arm));
    text
}

/// How much is run, and how long all of it takes.
fn amount(experiment: &Experiment, took: Duration, gain: Option<AfterCuts<'_>>) -> String {
    let is_cut = experiment.is_cut();
    let trials = |experiment: &Experiment, noun: &str| {
        let (arms, repeats) = (count(experiment.arms.len(), "arm"), count(experiment.trial.repeats, noun));
        format!("{arms}, {repeats} of each, {} measured", measured(experiment))
    };
    let own = trials(experiment, if is_cut { "stint" } else { "trial" });
    let Some((gain, after)) = gain else { return format!("\n{own}: about {}", span(took.as_secs_f64())) };
    let all = span((took + after).as_secs_f64());
    let gained = trials(gain, "trial");
    format!("\n{own}\nafter the cuts, what it gains: {}, {gained}\nall of it: about {all}", gain.name)
}

/// The replicas of an arm.
fn replicas(arm: &Arm, replica: &Arm, options: &[String]) -> String {
    let topology = &arm.topology;
    let mut text = format!("    {} by {}\n", count(topology.replicas, "replica"), topology.by.name());
    for (role, spec) in &replica.volumes {
        let role = format!("{role:?}").to_lowercase();
        let _ = writeln!(text, "        {role} volume: {spec}");
    }
    for option in options {
        let _ = writeln!(text, "        {option}");
    }
    text
}

/// The time that is measured in a trial: `60 s`, or `15 s to 60 s` where arms differ.
#[must_use]
pub fn measured(experiment: &Experiment) -> String {
    let times = || experiment.arms.iter().map(|arm| arm.measure_s);
    let (least, most) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let [least, most] = [least, most].map(|time| seconds(f64::from(time)));
    if least == most { most } else { format!("{least} to {most}") }
}

/// What an arm's server is put through.
fn asked_of(arm: &Arm) -> String {
    let load = &arm.load;
    let Some(crash) = &arm.crash else {
        let network = round_trip(load).map_or(String::new(), |time| format!(", {time} a round trip"));
        return format!("{} with {} connections{network}", load.workload, load.connections);
    };
    let moments: Vec<&str> = crash.moments.iter().map(|moment| moment.name()).collect();
    let tpcc = if load.workload == LoadKind::Tpcc { "tpcc with " } else { "" };
    let upto = if crash.canary.is_some() { "up to " } else { "" };
    let fault = crash.fault.map(|fault| format!("; fault: {}", fault.name())).unwrap_or_default();
    format!(
        "{tpcc}{} clients, {upto}{} cuts ({}) at the moments {}{fault}",
        load.connections,
        crash.cuts,
        crash.end.name(),
        moments.join(", ")
    )
}
