//! The charts of a run over time.

use ebbtide_twin::Interval;

use super::figures::{mib, short, us};
use super::plan::SimulationPlan;
use super::run::SimulatedRun;
use super::sentences;
use ebbtide_report::{Axis, Block, Chart, Format, Line, Mark, Plots, Scale, Section, Series, Width};

/// A figure of an interval; none where it has none.
type Figure = fn(&Interval) -> Option<f64>;

/// All runs over time: every chart has a line for every volume.
pub(super) fn over_time(plan: &SimulationPlan, runs: &[SimulatedRun]) -> Section {
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
    Section::new("Over time", vec![Block::Plots(plots)]).lead("The charts share their time axis.")
}

struct Charts<'a> {
    plan: &'a SimulationPlan,
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
