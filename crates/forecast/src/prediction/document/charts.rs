//! The charts of a prediction: the load line or the sweep, and the run over time.

use crate::prediction::{PredictedPoint, PredictedVolume, PredictionPlan};
use ebbtide_report::{Axis, Block, Chart, Format, Line, Plots, Scale, Section, Series, Width};
use ebbtide_twin::accuracy::Figure;

use crate::prediction::figures::short;

fn chart(title: &str, unit: &str, format: Format, scale: Scale, series: Vec<Series>) -> Chart {
    Chart { title: title.into(), unit: unit.into(), scale, format, width: Width::Full, at_least: 0.0, series }
}

fn plots(x_label: &str, axis: Axis, x: Vec<f64>, charts: Vec<Chart>) -> Plots {
    Plots {
        heading: String::new(),
        lead: String::new(),
        axis,
        x_label: x_label.into(),
        x,
        charts,
        foot: String::new(),
        marks: Vec::new(),
    }
}

/// A line of points with one figure each.
fn line(label: String, color: usize, dashed: bool, points: &[&PredictedPoint], figure: Figure) -> Series {
    let values = points.iter().map(|point| point.figure(figure).map(short)).collect();
    let intervals = points.iter().map(|point| point.range(figure)).collect();
    let line = if dashed { Line::Dashed } else { Line::Solid };
    Series { label, color, line, group: None, layer: None, values, intervals }
}

/// Throughput and latency over the load, a line for each volume.
pub(super) fn load_line(plan: &PredictionPlan, predicted: &[PredictedVolume<'_>]) -> Plots {
    let open = plan.loads.iter().any(|load| load.rate.is_some());
    let x = plan.loads.iter().map(|load| load.rate.unwrap_or_else(|| f64::from(load.clients))).collect();
    let lines = |figure: Figure, dashed: bool, name: &str| -> Vec<Series> {
        let of_volume = |(color, volume): (usize, &PredictedVolume<'_>)| {
            let points: Vec<&PredictedPoint> = volume.points.iter().collect();
            line(format!("{}{name}", volume.volume.spec), color, dashed, &points, figure)
        };
        predicted.iter().enumerate().map(of_volume).collect()
    };
    let mut latency = lines(Figure::P50, false, " p50");
    latency.extend(lines(Figure::P99, true, " p99"));
    let charts = vec![
        chart("Transactions a second", "tps", Format::Number, Scale::Linear, lines(Figure::Tps, false, "")),
        chart("Latency", "logarithmic", Format::Microseconds, Scale::Log, latency),
    ];
    plots(if open { "transactions a second that arrive" } else { "clients" }, Axis::Count, x, charts)
}

/// Throughput and latency over what the sweep varies.
pub(super) fn sweep(plan: &PredictionPlan, predicted: &[PredictedVolume<'_>]) -> Plots {
    let mut by_value: Vec<&PredictedVolume<'_>> = predicted.iter().collect();
    by_value.sort_by_key(|volume| volume.volume.swept);
    by_value.dedup_by_key(|volume| volume.volume.swept);
    let x = by_value.iter().filter_map(|volume| Some(volume.volume.swept? as f64)).collect();
    let points: Vec<&PredictedPoint> = by_value.iter().map(|volume| &volume.points[0]).collect();
    let key = plan.swept.clone().unwrap_or_default();
    let charts = vec![
        chart(
            "Transactions a second",
            "tps",
            Format::Number,
            Scale::Linear,
            vec![line("tps".into(), 0, false, &points, Figure::Tps)],
        ),
        chart(
            "Latency",
            "logarithmic",
            Format::Microseconds,
            Scale::Log,
            vec![
                line("p50".into(), 0, false, &points, Figure::P50),
                line("p99".into(), 0, true, &points, Figure::P99),
            ],
        ),
    ];
    plots(&key, Axis::Count, x, charts)
}

/// Throughput and credits over time, of the last load of each volume.
pub(super) fn over_time(predicted: &[PredictedVolume<'_>]) -> Section {
    let lasts: Vec<(&PredictedVolume<'_>, &PredictedPoint)> =
        predicted.iter().take(8).filter_map(|volume| Some((volume, volume.points.last()?))).collect();
    let x: Vec<f64> = lasts.first().map_or(Vec::new(), |(_, point)| {
        point.outcome.spans.iter().map(|span| span.end.as_secs_f64()).collect()
    });
    let series = |values: &dyn Fn(&PredictedPoint) -> Vec<Option<f64>>| -> Vec<Series> {
        let line = |(color, (volume, point)): (usize, &(&PredictedVolume<'_>, &PredictedPoint))| Series {
            label: volume.volume.spec.clone(),
            color,
            line: Line::Solid,
            group: None,
            layer: None,
            values: values(point),
            intervals: Vec::new(),
        };
        lasts.iter().enumerate().map(line).collect()
    };
    let rates = series(&|point| {
        let mut before = 0.0;
        let rate = |span: &ebbtide_twin::innodb::Span| {
            let end = span.end.as_secs_f64();
            let rate = span.transactions as f64 / (end - before).max(1e-9);
            before = end;
            Some(short(rate))
        };
        point.outcome.spans.iter().map(rate).collect()
    });
    let credits = series(&|point| {
        point.outcome.spans.iter().map(|span| span.credit_share.map(|share| short(share * 100.0))).collect()
    });
    let mut charts = vec![chart("Transactions a second", "tps", Format::Number, Scale::Linear, rates)];
    if credits.iter().any(|series| series.values.iter().any(Option::is_some)) {
        charts.push(chart("Burst credits", "% left", Format::Percent, Scale::Percent, credits));
    }
    Section::new("Over time", vec![Block::Plots(plots("time", Axis::Time, x, charts))])
}
