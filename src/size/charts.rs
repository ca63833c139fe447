//! The chart of the load over time, beside the limits of the answer.

use ebbtide_advisor::sizing::operations_of;
use ebbtide_forecast::sizing::{Answer, SizingPlan};
use ebbtide_report::{Axis, Chart, Format, Line, Plots, Scale, Series, Width};
use ebbtide_volume::MIB;

/// Points of a chart, at most: more are not told apart.
const POINTS: usize = 1_500;

/// The load over time: means of spans with their highest interval, and the limits of the answer for ever.
pub(super) fn load(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Plots {
    let intervals = &plan.source.load.intervals;
    let spans: Vec<_> = intervals.chunks(intervals.len().div_ceil(POINTS).max(1)).collect();
    let start = intervals.first().map_or(0.0, |interval| interval.start_s);
    let x: Vec<f64> = spans.iter().map(|span| span[0].start_s - start).collect();
    let best = answer.sizing.choices.first().map(|best| &best.volumes);
    let chart = |title: &str,
                 unit: &str,
                 figure: &dyn Fn(&ebbtide_observe::LoadInterval) -> f64,
                 limit: Option<f64>| {
        let highest =
            spans.iter().map(|span| Some(round(span.iter().map(figure).fold(0.0, f64::max)))).collect();
        let mean = spans
            .iter()
            .map(|span| Some(round(span.iter().map(figure).sum::<f64>() / span.len() as f64)))
            .collect();
        let mut all = vec![series("highest", 0, Line::Dashed, highest), series("mean", 0, Line::Solid, mean)];
        all.extend(
            limit.map(|limit| {
                series("limit of the answer", 1, Line::Dashed, vec![Some(round(limit)); x.len()])
            }),
        );
        Chart {
            title: title.into(),
            unit: unit.into(),
            scale: Scale::Linear,
            format: Format::Number,
            width: Width::Full,
            at_least: 0.0,
            series: all,
        }
    };
    let limit = |rate: fn(&ebbtide_volume::Limits) -> Option<u64>, unit: f64| {
        best.and_then(|best| Some(rate(&best.members[0])? as f64 * f64::from(best.spec.members()) / unit))
    };
    // As the answer counts them: its limit stands beside them.
    let counted = best.map_or_else(|| plan.unit(), |best| best.members[0].accounting.unit_bytes.into());
    let charts = vec![
        chart(
            "Operations a second",
            "IOPS",
            &|one| operations_of(one, plan.source.origin, counted),
            limit(|limits| limits.iops.map(|rate| rate.rate), 1.0),
        ),
        chart(
            "Throughput",
            "MiB/s",
            &|one| one.bytes() / MIB as f64,
            limit(|limits| limits.throughput.map(|rate| rate.rate), MIB as f64),
        ),
    ];
    Plots {
        heading: String::new(),
        lead: "As it was recorded, without growth and headroom.".into(),
        axis: Axis::Time,
        x_label: "time".into(),
        x,
        charts,
        foot: String::new(),
        marks: Vec::new(),
    }
}

fn series(label: &str, color: usize, line: Line, values: Vec<Option<f64>>) -> Series {
    Series { label: label.into(), color, line, group: None, layer: None, values, intervals: Vec::new() }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
