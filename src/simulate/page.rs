//! The report as a page with charts.

use ebbtide_catalog::NO_LIMITS;
use ebbtide_twin::Interval;

use super::figures::{mib, percent, short, span, us, whole};
use super::plan::{Plan, Planned};
use super::run::SimulatedRun;
use super::{sentences, text};
use ebbtide_report::{
    Axis, Block, Cell, Chart, Fact, Format, Line, Listing, Mark, Note, Plots, Report, Scale, Section, Series,
    Table, Width,
};

/// A figure of an interval; none where it has none.
type Figure = fn(&Interval) -> Option<f64>;

/// The page of all runs: every chart has a line for every volume.
pub(super) fn report(plan: &Plan, runs: &[SimulatedRun]) -> Report {
    let specs: Vec<&str> = plan.volumes.iter().map(|volume| volume.spec.as_str()).collect();
    let first = vec![Block::Findings(findings(plan, runs)), Block::Facts(facts(plan, runs))];
    let mut sections = vec![Section::new("", first), over_time(plan, runs)];
    if !plan.workload.notes.is_empty() {
        let notes = plan.workload.notes.iter().map(|note| Note::plain(note.as_str())).collect();
        sections.push(Section::new("Notes", vec![Block::Notes(notes)]));
    }
    sections.push(Section::new("Run it again", listings(plan)));
    Report {
        title: specs.join(" and "),
        subtitle: format!("Simulated in virtual time: {}", plan.load()),
        sections,
        footer: format!(
            "ebbtide {}. Every figure comes from the model alone; no clock, no disk.",
            crate::version::of_results()
        ),
        ..Report::default()
    }
}

/// The command, and the job files that it reads.
fn listings(plan: &Plan) -> Vec<Block> {
    let listing =
        |label: &str, text: &str| Block::Listing(Listing { label: label.into(), text: text.into() });
    let files = plan.job_files.iter().map(|(path, text)| listing(path, text));
    std::iter::once(listing("", &plan.command)).chain(files).collect()
}

fn findings(plan: &Plan, runs: &[SimulatedRun]) -> Vec<String> {
    if let [only] = runs {
        return sentences::verdict(plan, only);
    }
    let verdicts = plan.volumes.iter().zip(runs);
    verdicts
        .map(|(volume, run)| format!("{}: {}", volume.spec, sentences::verdict(plan, run).join(" ")))
        .collect()
}

fn facts(plan: &Plan, runs: &[SimulatedRun]) -> Vec<Fact> {
    let of_volume = |volume: &Planned| {
        [Fact::new("Volume", volume.resolved.description.as_str()), Fact::new("Cost", volume.cost_line())]
    };
    let mut facts: Vec<Fact> = plan.volumes.iter().flat_map(of_volume).collect();
    if let Some(instance) = plan.instance.as_ref().filter(|instance| !instance.has_limits()) {
        facts.push(Fact::new("Instance", format!("{}: {NO_LIMITS}", instance.name)));
    } else if let Some(instance) = &plan.instance {
        let shared = if plan.together { ", shared by all volumes" } else { "" };
        facts.push(Fact::new(
            "Instance",
            format!(
                "{}: {} to {} IOPS, {} to {} Mb/s{shared}",
                instance.name,
                whole(instance.baseline_iops as f64),
                whole(instance.maximum_iops as f64),
                whole(instance.baseline_mbps as f64),
                whole(instance.maximum_mbps as f64)
            ),
        ));
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

fn over_time(plan: &Plan, runs: &[SimulatedRun]) -> Section {
    let longest = runs.iter().map(|run| run.intervals.as_slice()).max_by_key(|intervals| intervals.len());
    let x = longest.unwrap_or_default().iter().map(|interval| short(interval.end.as_secs_f64())).collect();
    let section = Charts { plan, runs };
    let mut charts = vec![
        section.chart("Operations", "IOPS", Scale::Linear, Format::Number, &[("", |i| Some(i.iops()))]),
        section.chart(
            "Throughput",
            "MiB/s",
            Scale::Linear,
            Format::Number,
            &[("", |i| Some(mib(i.bytes_per_second())))],
        ),
        section.chart(
            "Latency",
            "logarithmic",
            Scale::Log,
            Format::Microseconds,
            &[("p50", |i| i.p50.map(us)), ("p99", |i| i.p99.map(us))],
        ),
        section.chart(
            "Queue",
            "I/Os in flight, mean",
            Scale::Linear,
            Format::Number,
            &[("", |i| Some(i.queue))],
        ),
    ];
    let shares: [(&str, Figure); 3] = [
        ("Burst credits of the volume", |i| i.credit_share.map(|share| share * 100.0)),
        ("I/O credits of the instance", |i| i.instance_io_share.map(|share| share * 100.0)),
        ("Byte credits of the instance", |i| i.instance_byte_share.map(|share| share * 100.0)),
    ];
    for (title, share) in shares {
        let chart = section.chart(title, "% left", Scale::Percent, Format::Percent, &[("", share)]);
        if chart.series.iter().any(|series| series.values.iter().any(Option::is_some)) {
            charts.push(chart);
        }
    }
    let plots = Plots {
        heading: String::new(),
        lead: String::new(),
        axis: Axis::Time,
        x_label: "time".into(),
        x,
        charts,
        foot: String::new(),
        marks: section.marks(),
    };
    Section::new("Over time", vec![Block::Plots(plots), Block::Table(totals(plan, runs))])
        .lead("The charts share their time axis.")
}

struct Charts<'a> {
    plan: &'a Plan,
    runs: &'a [SimulatedRun],
}

impl Charts<'_> {
    /// One line for every volume and figure; figures after the first are dashed.
    fn chart(
        &self,
        title: &str,
        unit: &str,
        scale: Scale,
        format: Format,
        figures: &[(&str, Figure)],
    ) -> Chart {
        let length = self.runs.iter().map(|run| run.intervals.len()).max().unwrap_or(0);
        let mut series = Vec::new();
        for (color, (volume, run)) in self.plan.volumes.iter().zip(self.runs).enumerate() {
            for (number, (name, figure)) in figures.iter().enumerate() {
                let mut values: Vec<Option<f64>> =
                    run.intervals.iter().map(|interval| figure(interval).map(short)).collect();
                values.resize(length, None);
                if values.iter().all(Option::is_none) {
                    continue;
                }
                let label = match (self.runs.len(), *name) {
                    (1, "") => title.to_owned(),
                    (1, name) => name.to_owned(),
                    (_, "") => volume.spec.clone(),
                    (_, name) => format!("{} {name}", volume.spec),
                };
                let line = if number > 0 { Line::Dashed } else { Line::Solid };
                let intervals = Vec::new();
                series.push(Series { label, color, line, group: None, layer: None, values, intervals });
            }
        }
        Chart {
            title: title.into(),
            unit: unit.into(),
            scale,
            format,
            width: Width::Full,
            at_least: 0.0,
            series,
        }
    }

    fn marks(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        for (volume, run) in self.plan.volumes.iter().zip(self.runs) {
            for change in sentences::changes(run) {
                let label = match self.runs.len() {
                    1 => change.label,
                    _ => format!("{}: {}", volume.resolved.spec.volume.kind, change.label),
                };
                marks.push(Mark { x: change.at.as_secs_f64(), label, group: None });
            }
        }
        marks
    }
}

fn totals(plan: &Plan, runs: &[SimulatedRun]) -> Table {
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
        "Cost a month",
    ];
    let rows = plan.volumes.iter().zip(runs).map(|(volume, run)| {
        let all = run.totals.all();
        let throttled = all.throttled_ns as f64 / (all.latency_ns as f64).max(1.0);
        let mut row = vec![volume.spec.clone()];
        row.extend(text::comparison(run));
        row.push(percent(Some(throttled)));
        row.push(volume.cost_cell());
        row.into_iter().map(Cell::from).collect()
    });
    Table { columns: columns.map(str::to_owned).to_vec(), rows: rows.collect(), ..Table::default() }
}
