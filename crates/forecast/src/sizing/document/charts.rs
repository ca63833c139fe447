//! The charts of the load over time, beside the limits of today and of the answer.

use ebbtide_advisor::sizing::operations_of;
use ebbtide_catalog::Resolved;
use ebbtide_observe::LoadInterval;
use ebbtide_report::{Axis, Chart, Format, Line, Plots, Scale, Series, Width};
use ebbtide_volume::{Limits, MIB};

use crate::sizing::{Answer, SizingPlan};

/// Points of a chart, at most: more are not told apart.
const POINTS: usize = 1_500;

/// The load over time: means of spans with their highest interval, the limits for ever, burst credits, and when it was throttled.
pub(super) fn load(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Plots {
    let intervals = &plan.source.load.intervals;
    let points = intervals.len().div_ceil(POINTS).max(1);
    let spans: Vec<&[LoadInterval]> = intervals.chunks(points).collect();
    let start = intervals.first().map_or(0.0, |interval| interval.start_s);
    let lines = Lines { throttled: throttled(plan, points, spans.len()), spans: &spans };
    let best = answer.sizing.choices.first().map(|best| &best.volumes);
    let today = plan.today.as_ref();
    // As the answer counts them: its limit stands beside them.
    let counted = best.map_or_else(|| plan.unit(), |best| best.members[0].accounting.unit_bytes.into());
    let limits = |rate: fn(&Limits) -> Option<u64>, unit: f64| {
        [("limit of the answer", best), ("limit of today", today)].map(|(name, volume)| {
            let limit = volume.and_then(|volume| limit(volume, rate));
            (name, limit.map(|limit| limit / unit))
        })
    };
    let mut charts = vec![
        lines.chart(
            "Operations a second",
            "IOPS",
            &|interval| operations_of(interval, plan.source.origin, counted),
            limits(|limits| limits.iops.map(|rate| rate.rate), 1.0),
        ),
        lines.chart(
            "Throughput",
            "MiB/s",
            &|interval| interval.bytes() / MIB as f64,
            limits(|limits| limits.throughput.map(|rate| rate.rate), MIB as f64),
        ),
    ];
    charts.extend(lines.credits());
    let foot = if lines.throttled.iter().any(|throttled| *throttled) {
        "Shaded: the load waited for a limit.".to_owned()
    } else {
        String::new()
    };
    Plots {
        heading: String::new(),
        lead: "As it was recorded, without growth and headroom.".into(),
        axis: Axis::Time,
        x_label: "time".into(),
        x: spans.iter().map(|span| span[0].start_s - start).collect(),
        charts,
        foot,
        marks: Vec::new(),
    }
}

/// What all members of a volume may do together.
fn limit(volume: &Resolved, rate: fn(&Limits) -> Option<u64>) -> Option<f64> {
    Some(rate(&volume.members[0])? as f64 * f64::from(volume.spec.members()))
}

/// Whether each span has a throttled interval.
fn throttled(plan: &SizingPlan<'_>, points: usize, spans: usize) -> Vec<bool> {
    let mut throttled = vec![false; spans];
    for place in plan.inputs.throttled.iter().flat_map(|throttled| throttled.places()) {
        throttled[place / points] = true;
    }
    throttled
}

/// The spans that a chart has a point of each.
struct Lines<'a> {
    spans: &'a [&'a [LoadInterval]],
    throttled: Vec<bool>,
}

impl Lines<'_> {
    fn chart(
        &self,
        title: &str,
        unit: &str,
        figure: &dyn Fn(&LoadInterval) -> f64,
        limits: [(&str, Option<f64>); 2],
    ) -> Chart {
        let of_spans = |value: &dyn Fn(&[LoadInterval]) -> f64| -> Vec<Option<f64>> {
            self.spans.iter().map(|span| Some(round(value(span)))).collect()
        };
        let highest = of_spans(&|span| span.iter().map(figure).fold(0.0, f64::max));
        let mean = of_spans(&|span| span.iter().map(figure).sum::<f64>() / span.len() as f64);
        let top = highest.iter().flatten().copied().fold(0.0, f64::max);
        let mut all = self.shade(top);
        all.extend([series("highest", 0, Line::Dashed, highest), series("mean", 0, Line::Solid, mean)]);
        all.extend(limits.into_iter().enumerate().filter_map(|(number, (name, limit))| {
            let values = vec![Some(round(limit?)); self.spans.len()];
            Some(series(name, number + 1, Line::Limit, values))
        }));
        chart(title, unit, Scale::Linear, Format::Number, all)
    }

    /// The lowest burst credits of each span; None where they were not recorded.
    fn credits(&self) -> Option<Chart> {
        let lowest = |span: &&[LoadInterval]| {
            let credits = span.iter().filter_map(|interval| interval.credits);
            credits.reduce(f64::min).map(|share| round(share * 100.0))
        };
        let values: Vec<Option<f64>> = self.spans.iter().map(lowest).collect();
        values.iter().any(Option::is_some).then(|| {
            let mut all = self.shade(100.0);
            all.push(series("BurstBalance", 0, Line::Solid, values));
            chart("Burst credits", "% left", Scale::Percent, Format::Percent, all)
        })
    }

    /// An area up to `top` over each throttled span, to the beginning of the next one.
    fn shade(&self, top: f64) -> Vec<Series> {
        if !self.throttled.contains(&true) {
            return Vec::new();
        }
        let is_shaded = |place: usize| self.throttled[place] || (place > 0 && self.throttled[place - 1]);
        let values = (0..self.throttled.len()).map(|place| is_shaded(place).then_some(top)).collect();
        vec![series("throttled", 3, Line::Shade, values)]
    }
}

fn chart(title: &str, unit: &str, scale: Scale, format: Format, series: Vec<Series>) -> Chart {
    Chart { title: title.into(), unit: unit.into(), scale, format, width: Width::Full, at_least: 0.0, series }
}

fn series(label: &str, color: usize, line: Line, values: Vec<Option<f64>>) -> Series {
    Series { label: label.into(), color, line, group: None, layer: None, values, intervals: Vec::new() }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
