//! The answer as a document, from which the text, the Markdown and the page are made: what came out first, then why, then every
//! figure.

use ebbtide_catalog::NO_LIMITS;
use ebbtide_report::{Block, Cell, Fact, Listing, Note, Report, Section, Table};
use ebbtide_volume::Op;

use super::figures::{latency, mean_rate, mib, percent, span, whole};
use super::plan::{SimulatedVolume, SimulationPlan};
use super::run::SimulatedRun;
use super::trace::TraceRead;
use super::{answer, charts, sentences};

/// Volumes that the answer compares without details.
const FIRST_VOLUMES: usize = 6;
/// Volumes whose behaviour is explained without details, and sentences of each.
const EXPLAINED: usize = 3;
/// Remarks that are printed without details: those on words without an effect may be many.
const FIRST_NOTES: usize = 3;

/// The document of all runs; `version` is that of the program.
#[must_use]
pub fn document(plan: &SimulationPlan, runs: &[SimulatedRun], version: &str) -> Report {
    let specs: Vec<&str> = plan.volumes.iter().map(|volume| volume.spec.as_str()).collect();
    let mut sections = vec![first(plan, runs), charts::over_time(plan, runs)];
    let of_volume = |(volume, run): (&SimulatedVolume, &SimulatedRun)| of_volume(plan, volume, run).details();
    sections.extend(plan.volumes.iter().zip(runs).map(of_volume));
    sections.push(Section::new("The run", vec![Block::Facts(facts(plan, runs))]).named("run").details());
    if plan.workload.notes.len() > FIRST_NOTES {
        sections.push(Section::new("Notes", vec![Block::Notes(notes(plan, usize::MAX))]).details());
    }
    sections.push(Section::new("Run it again", listings(plan)).named("command").details());
    Report {
        title: specs.join(" and "),
        subtitle: format!("Simulated in virtual time: {}", plan.load()),
        sections,
        footer: format!("ebbtide {version}. Every figure comes from the model alone; no clock, no disk."),
        ..Report::default()
    }
}

/// The prices of the volumes and of which day they are; None where none has one.
#[must_use]
pub fn prices(plan: &SimulationPlan) -> Option<String> {
    let cost = plan.volumes.iter().find_map(|volume| volume.cost.as_ref())?;
    Some(format!("list prices of {}, {}", cost.region, cost.as_of))
}

/// The sentence, the volumes side by side, why, and what has to be known.
fn first(plan: &SimulationPlan, runs: &[SimulatedRun]) -> Section {
    // Figures of a part of the requests are none of the whole: that comes before them.
    let warning = runs.iter().find_map(|run| run.trace.as_ref()?.warning());
    let findings = warning.into_iter().chain([answer::sentence(plan, runs)]).collect();
    let mut blocks = vec![Block::Findings(findings), Block::Table(side_by_side(plan, runs))];
    blocks.extend(why(plan, runs).into_iter().map(Block::Text));
    let trace = runs.iter().find_map(|run| run.trace.as_ref());
    blocks.extend(trace.map(|trace| Block::Text(TraceRead::sentences(trace).join(" "))));
    let mut notes = notes(plan, FIRST_NOTES);
    if plan.workload.notes.len() > FIRST_NOTES {
        notes.push(Note::plain(format!("{} more: --details", plan.workload.notes.len() - FIRST_NOTES)));
    }
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    Section::new("", blocks)
}

fn notes(plan: &SimulationPlan, most: usize) -> Vec<Note> {
    plan.workload.notes.iter().take(most).map(|note| Note::plain(note.as_str())).collect()
}

/// What held each volume back. Of one volume the answer has the first change of its credits.
fn why(plan: &SimulationPlan, runs: &[SimulatedRun]) -> Vec<String> {
    if let [only] = runs {
        let behind = sentences::behind(plan, only).into_iter().take(EXPLAINED - 1);
        return [sentences::bottleneck(only)].into_iter().chain(behind).collect();
    }
    let of_volume = |(volume, run): (&SimulatedVolume, &SimulatedRun)| {
        let change = sentences::changes(run).into_iter().next();
        let change = change.map(|change| sentences::capital(&change.sentence));
        let behind = sentences::behind(plan, run).into_iter().take(1);
        let sentences: Vec<String> =
            change.into_iter().chain([sentences::bottleneck(run)]).chain(behind).collect();
        format!("{}: {}", volume.spec, sentences.join(" "))
    };
    plan.volumes.iter().zip(runs).take(EXPLAINED).map(of_volume).collect()
}

/// The figures that people compare volumes by.
fn side_by_side(plan: &SimulationPlan, runs: &[SimulatedRun]) -> Table {
    let columns = [
        "Volume",
        "IOPS",
        "MiB/s",
        "p50",
        "p99",
        "p99.9",
        "Credits left",
        "Credits ended",
        "Throttled",
        "Monthly",
    ];
    let row = |(volume, run): (&SimulatedVolume, &SimulatedRun)| {
        let all = run.totals.all();
        let quantile = |quantile| latency(all.percentiles.at(quantile));
        let throttled = all.throttled_ns as f64 / (all.latency_ns as f64).max(1.0);
        let ended = run.outcome.changes.iter().find(|change| change.ended);
        [
            volume.spec.clone(),
            mean_rate(all.ios as f64, run.duration),
            mean_rate(mib(all.bytes as f64), run.duration),
            quantile(0.50),
            quantile(0.99),
            quantile(0.999),
            percent(run.outcome.stats.credit_share),
            ended.map_or_else(|| "-".into(), |change| format!("after {}", span(change.at))),
            percent(Some(throttled)),
            volume.cost_cell(),
        ]
        .map(Cell::from)
        .to_vec()
    };
    let table = Table {
        columns: columns.map(str::to_owned).to_vec(),
        rows: plan.volumes.iter().zip(runs).map(row).collect(),
        // Throttled, p99.9, MiB/s, p50, credits left: what the sentences have, or what others tell nearly.
        spare: vec![8, 5, 2, 3, 6],
        first_rows: Some(FIRST_VOLUMES),
        ..Table::default()
    };
    let has_credits = runs.iter().any(|run| run.outcome.stats.credit_share.is_some());
    if has_credits { table } else { table.without("Credits left").without("Credits ended") }
}

/// A volume in full: what it is, what it did, and what happened.
fn of_volume(plan: &SimulationPlan, volume: &SimulatedVolume, run: &SimulatedRun) -> Section {
    let mut facts = vec![
        Fact::new("Volume", volume.resolved.description.as_str()),
        Fact::new("Cost", volume.cost_line()),
    ];
    let parts = [("Reads", Op::Read, &run.totals.read), ("Writes", Op::Write, &run.totals.write)];
    for (name, op, part) in parts {
        if !run.shows(plan, op) {
            continue;
        }
        let quantile = |quantile| latency(part.percentiles.at(quantile));
        let text = format!(
            "{} I/Os, {} IOPS, {} MiB/s; latency mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
            whole(part.ios as f64),
            mean_rate(part.ios as f64, run.duration),
            mean_rate(mib(part.bytes as f64), run.duration),
            latency(part.mean()),
            quantile(0.50),
            quantile(0.99),
            quantile(0.999),
            quantile(1.0),
        );
        facts.push(Fact::new(name, text));
    }
    if run.totals.flushes > 0 {
        facts.push(Fact::new("Flushes", whole(run.totals.flushes as f64)));
    }
    if let Some(loading) = &run.outcome.loading {
        let counts = &loading.counts;
        let figure = |blocks: u64| whole(blocks as f64);
        let text = format!(
            "{} of {} blocks of 512 KiB; {} at the first touch, {} in the background, {} overwritten before",
            figure(counts.total()),
            figure(loading.blocks()),
            figure(counts.touched),
            figure(counts.background),
            figure(counts.overwritten),
        );
        facts.push(Fact::new("Loaded", text));
    }
    let happened = sentences::of_volume(plan, run).into_iter().map(Block::Text);
    Section::new(volume.spec.as_str(), [Block::Facts(facts)].into_iter().chain(happened).collect())
        .named("volumes")
}

/// What ran, and for how long.
fn facts(plan: &SimulationPlan, runs: &[SimulatedRun]) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(instance) = &plan.instance {
        let shared = if plan.together { ", shared by all volumes" } else { "" };
        let limits = if instance.has_limits() {
            format!(
                "{} IOPS and {} Mb/s sustained, {} and {} at most{shared}",
                whole(instance.baseline_iops as f64),
                whole(instance.baseline_mbps as f64),
                whole(instance.maximum_iops as f64),
                whole(instance.maximum_mbps as f64),
            )
        } else {
            NO_LIMITS.to_owned()
        };
        facts.push(Fact::new("Instance", format!("{}: {limits}", instance.name)));
    }
    if plan.loader.is_some() {
        let how = format!("{}: a snapshot has every block", plan.initialization);
        facts.push(Fact::new("Initialization", how));
    }
    facts.push(Fact::new(if plan.trace.is_some() { "Trace" } else { "Job" }, plan.load()));
    let duration = runs.iter().map(|run| run.duration).max().unwrap_or_default();
    facts.push(Fact::new(
        "Virtual time",
        format!("{}, in intervals of {}", span(duration), span(plan.interval)),
    ));
    facts.push(Fact::new("Seed", plan.seed.to_string()));
    facts
}

/// The command, and the job files that it reads.
fn listings(plan: &SimulationPlan) -> Vec<Block> {
    let listing =
        |label: &str, text: &str| Block::Listing(Listing { label: label.into(), text: text.into() });
    let files = plan.job_files.iter().map(|(path, text)| listing(path, text));
    std::iter::once(listing("", &plan.command)).chain(files).collect()
}
