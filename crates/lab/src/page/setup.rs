//! How it was measured, and how to measure it again.

use std::collections::BTreeMap;

use ebbtide_report::{Block, Fold, Listing, Section};

use super::{PageContext, agreed, costs, facts, settings, text};
use crate::experiment::{Arm, Batch, DataPlan, Experiment, LoadKind, LoadPlan};
use crate::record::{HostFacts, ProgramFacts, ServerFacts};
use crate::summary::Noise;

pub(super) fn section(page: &PageContext) -> Section {
    let run = page.run;
    let mut blocks =
        vec![facts(experiment(page)), facts(machine(&run.host, &run.server, &run.ebbtide, run.started_ns))];
    blocks.extend(calibration(&run.host));
    blocks.extend(page.summary.monthly_cost.as_ref().and_then(|cost| costs::table(cost, &page.named_arms())));
    blocks.push(Block::Text("How much equal things differed in this run:".into()));
    blocks.push(facts(noise(&page.summary.noise)));
    blocks.extend(overrides(page));
    blocks.extend(spelt_out(&page.run.experiment));
    Section::new("How it was measured", blocks)
}

/// The replicas of an arm.
fn replicas(arm: &Arm) -> String {
    let topology = &arm.topology;
    if topology.is_single() {
        return "none".to_owned();
    }
    let volumes: Vec<&str> = topology.replica.volumes.values().map(String::as_str).collect();
    let (count, by) = (text::count(topology.replicas, "replica"), topology.by.name());
    format!("{count} by {by}, each on {}", volumes.join("; "))
}

fn experiment(page: &PageContext) -> Vec<(&'static str, String)> {
    let experiment = &page.run.experiment;
    let is_followed = experiment.arms.iter().any(|arm| !arm.topology.is_single());
    vec![
        ("Experiment", experiment.name.clone()),
        ("Compared with", text::line(&experiment.source)),
        ("Scale", text::line(&experiment.scale)),
        ("Volumes", common(page, |arm| arm.volumes.values().cloned().collect::<Vec<_>>().join("; "))),
        ("Replicas", if is_followed { by_arm(page, replicas) } else { String::new() }),
        ("Load", common(page, |arm| settings::workload(&arm.load))),
        (
            "Clients",
            common(page, |arm| {
                let arrival = settings::arrival(arm.load.arrival);
                let network = settings::round_trip(&arm.load);
                let network =
                    network.map_or(String::new(), |time| format!(", a network of {time} a round trip"));
                format!("{}, {arrival}{network}", text::count(arm.load.connections, "connection"))
            }),
        ),
        ("Machine emulated", common(page, instance)),
        ("Batch job", common(page, |arm| arm.batch.as_ref().map_or(String::new(), batch))),
        ("Rows drawn", common(page, |arm| drawn(&arm.load))),
        ("Data", data(experiment.data)),
        (
            "Trials",
            format!(
                "{} of each arm; every round holds each arm once, in an order drawn from the seed",
                experiment.trial.repeats
            ),
        ),
        ("Time measured", by_arm(page, |arm| text::span(f64::from(arm.measure_s)))),
        ("Before each trial", by_arm(page, warmup)),
        ("Seed", experiment.seed.to_string()),
    ]
}

/// What all arms share; nothing where they do not, because the differences have their own section.
fn common(page: &PageContext, of: impl Fn(&Arm) -> String) -> String {
    let values = agreed(page.run.experiment.arms.iter().map(|arm| (arm.name.as_str(), of(arm))));
    match values.as_slice() {
        [(value, _)] => value.clone(),
        _ => String::new(),
    }
}

/// What all arms share, or what each has where they differ.
fn by_arm(page: &PageContext, of: impl Fn(&Arm) -> String) -> String {
    let values = agreed(page.run.experiment.arms.iter().map(|arm| (arm.name.as_str(), of(arm))));
    match values.as_slice() {
        [(value, _)] => value.clone(),
        several => {
            let each = |(value, arms): &(String, Vec<&str>)| format!("{}: {value}", arms.join(", "));
            several.iter().map(each).collect::<Vec<_>>().join("; ")
        }
    }
}

/// The machine that an arm's server runs on.
#[must_use]
pub fn instance(arm: &Arm) -> String {
    let plan = &arm.instance;
    let share = if plan.divided_by > 1 { format!("1/{} of ", plan.divided_by) } else { String::new() };
    let kind = plan.kind.as_ref().map_or(String::new(), |kind| format!("{share}an EC2 {kind}, "));
    let volumes = if plan.kind.is_none() && plan.divided_by > 1 {
        format!("1/{} of each volume, ", plan.divided_by)
    } else {
        String::new()
    };
    let memory = text::bytes(plan.memory_bytes as f64);
    format!("{kind}{volumes}{memory} of memory for the server and its page cache, {}", plan.fs)
}

fn batch(batch: &Batch) -> String {
    let end = batch.end_s.map_or("to the end".to_owned(), |end| format!("to {}", text::span(f64::from(end))));
    let begin = text::span(f64::from(batch.start_s));
    let connections = text::count(batch.connections, "connection");
    format!("from {begin} {end}, {connections}: {}", text::line(&batch.sql))
}

fn data(data: DataPlan) -> String {
    if let Some(warehouses) = data.warehouses {
        return format!("TPC-C's tables: {}", text::count(warehouses, "warehouse"));
    }
    format!(
        "sysbench's tables: {}, {} rows each{}{}",
        text::count(data.tables, "table"),
        text::whole(f64::from(data.rows)),
        data.lengths
            .map(|of| format!(", with {} and {} characters in c and pad", of.c, of.pad))
            .unwrap_or_default(),
        if data.aged { ", with their index worn by updates as in a table in use" } else { "" }
    )
}

fn drawn(load: &LoadPlan) -> String {
    match load.workload {
        LoadKind::Tpcc => {
            "TPC-C's: NURand for customers and items, uniform for warehouses and districts".into()
        }
        LoadKind::Sysbench(_) => distribution(&load.distribution),
    }
}

fn distribution(distribution: &ebbtide_load::Distribution) -> String {
    match serde_json::to_value(distribution) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(serde_json::Value::Object(fields)) => {
            let plain = |(name, value): (&String, &serde_json::Value)| match value {
                serde_json::Value::Object(inner) => {
                    let inner: Vec<String> =
                        inner.iter().map(|(name, value)| format!("{name} {value}")).collect();
                    format!("{name} ({})", inner.join(", "))
                }
                serde_json::Value::String(text) => text.clone(),
                other => format!("{name} {other}"),
            };
            fields.iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    }
}

fn warmup(arm: &Arm) -> String {
    let warmup = &arm.warmup;
    let mut steps = vec!["a fresh copy-on-write clone of the same prepared data".to_owned()];
    if warmup.read_tables {
        steps.push("all tables read through once".into());
    }
    if warmup.lead_in_s > 0 {
        let time = text::span(f64::from(warmup.lead_in_s));
        steps.push(format!("{time} of the load on {} times the limits", warmup.lead_in_speed));
    }
    if warmup.settle_s > 0 {
        steps.push(format!("{} on the real limits", text::span(f64::from(warmup.settle_s))));
    }
    text::list(&steps)
}

/// What this machine's disk carries; nothing where that was not measured.
#[must_use]
pub fn calibration(host: &HostFacts) -> Vec<Block> {
    if host.calibration.is_empty() {
        return Vec::new();
    }
    let pairs = host.calibration.iter().map(|(label, value)| (label.as_str(), value.clone()));
    let text = "What this machine's disk carries through an emulated volume:";
    vec![Block::Text(text.into()), facts(pairs.collect())]
}

/// Versions that arms have in place of the run's, with the names of the arms.
fn others(programs: &BTreeMap<String, ProgramFacts>) -> String {
    let of_arms = programs.iter().map(|(arm, program)| (arm.as_str(), program.version.clone()));
    let each = |(version, arms): (String, Vec<&str>)| format!("{}: {version}", arms.join(", "));
    agreed(of_arms).into_iter().map(each).collect::<Vec<_>>().join("; ")
}

/// Servers and machine; `started_ns` since 1970.
#[must_use]
pub fn machine(
    host: &HostFacts,
    server: &ServerFacts,
    ebbtide: &str,
    started_ns: u64,
) -> Vec<(&'static str, String)> {
    vec![
        ("Server", server.version.clone()),
        ("Its program", server.path.clone()),
        ("Other servers of the load", others(&server.sources)),
        ("Other servers of replicas", others(&server.replicas)),
        ("Ebbtide", ebbtide.to_owned()),
        (
            "Machine",
            format!(
                "{} ({}), {}",
                text::count(host.cpus, "processor"),
                if host.cpu_model.is_empty() { "unknown model" } else { &host.cpu_model },
                text::bytes(host.memory_bytes as f64)
            ),
        ),
        ("Kernel", host.kernel.clone()),
        (
            "Local round trip",
            host.local_round_trip_us
                .map_or(String::new(), |us| format!("{}, a message and its answer", text::latency(us))),
        ),
        ("Begun", text::moment(started_ns)),
    ]
}

fn noise(noise: &Noise) -> Vec<(&'static str, String)> {
    let share = |share: Option<f64>| share.map_or(String::new(), text::percent);
    vec![
        ("Spread between trials of an arm", share(noise.between_trials)),
        (
            "Expected between equal arms",
            noise.expected_aa.map_or(String::new(), |share| match share {
                share if share < 1.0 => format!("below {} in 19 of 20 such runs", text::percent(share)),
                _ => "anything: these trials are too few or too far apart".to_owned(),
            }),
        ),
        ("Seen between equal arms", share(noise.observed_aa)),
        ("Never called a difference", format!("below {}", text::percent(noise.floor))),
        (
            "Taken away by the hypervisor",
            format!(
                "{} processors on average, {} in the worst trial",
                text::short(noise.steal_cpus),
                text::short(noise.worst_steal_cpus)
            ),
        ),
        (
            "Used by others",
            format!(
                "{} processors, the emulated volumes included; load average {} when the run began",
                text::short(noise.other_cpus),
                text::short(noise.load_before)
            ),
        ),
    ]
}

/// The experiment with every default filled in.
#[must_use]
pub fn spelt_out(experiment: &Experiment) -> Option<Block> {
    let text = toml::to_string_pretty(experiment)
        .or_else(|_| serde_json::to_string_pretty(experiment).map_err(|_| ()))
        .ok()?;
    let listing = Listing { label: String::new(), text };
    Some(Block::Fold(Fold {
        summary: "The whole experiment, every default filled in".into(),
        blocks: vec![Block::Listing(listing)],
    }))
}

/// Where a run's figures are.
pub(super) const EVERY_SECOND: &str = "All figures of this page, second by second: results.sqlite and results.json \
                                       in the directory of this file.";

/// What the user's own file changed in the catalogue.
fn overrides(page: &PageContext) -> Option<Block> {
    let listing = Listing { label: String::new(), text: page.run.overrides.clone()? };
    Some(Block::Fold(Fold {
        summary: "Overrides of the built-in catalogue of volumes and instances".into(),
        blocks: vec![Block::Listing(listing)],
    }))
}

/// The command, and where the figures are.
#[must_use]
pub fn again(command: &str, data: &str) -> Section {
    let command = Listing { label: String::new(), text: command.to_owned() };
    Section::new("Run it again", vec![Block::Listing(command), Block::Text(data.into())])
}
