//! The answer as a page: the load over time beside the limits of the answer, and the answer's text.

use ebbtide_advisor::sizing::{change, operations_of};
use ebbtide_forecast::sizing::{Answer, SizingPlan};
use ebbtide_report::{
    Axis, Block, Chart, Format, Line, Listing, Plots, Report, Scale, Section, Series, Tone, Verdict, Width,
};
use ebbtide_volume::MIB;

use super::text;

/// Points of a chart, at most: more are not told apart.
const POINTS: usize = 1_500;

/// The page.
pub(super) fn report(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Report {
    let mut sections = vec![
        Section::new("", vec![Block::Verdicts(vec![verdict(answer)])]),
        Section::new("The load", vec![Block::Plots(load(plan, answer))]),
    ];
    let listing = Listing { label: "ebbtide size".into(), text: text::answer(plan, answer, None) };
    sections.push(Section::new("The answer", vec![Block::Listing(listing)]));
    Report {
        title: plan.source.what.clone(),
        subtitle: "The cheapest storage that carries a load".into(),
        sections,
        footer: format!("ebbtide {}. List prices of {}.", crate::version::of_results(), plan.region),
        ..Report::default()
    }
}

fn verdict(answer: &Answer<'_>) -> Verdict {
    let Some(best) = answer.sizing.choices.first() else {
        return Verdict {
            figure: "none".into(),
            context: String::new(),
            headline: "Nothing in the catalogue meets what is asked.".into(),
            details: Vec::new(),
            tone: Tone::Bad,
        };
    };
    let usd = best.usd().map_or_else(|| "no price".to_owned(), |usd| usd.to_string());
    let limited = best.limited_by.map(|limit| format!("Its {} ends first.", limit.words()));
    Verdict {
        figure: usd,
        context: "a month".into(),
        headline: change::short(&best.volumes.spec).to_string(),
        details: text::difference(answer).into_iter().chain(limited).collect(),
        tone: Tone::Plain,
    }
}

/// The load over time: means of spans with their highest interval, and the limits of the answer for ever.
fn load(plan: &SizingPlan<'_>, answer: &Answer<'_>) -> Plots {
    let intervals = &plan.source.load.intervals;
    let spans: Vec<_> = intervals.chunks(intervals.len().div_ceil(POINTS).max(1)).collect();
    let start = intervals.first().map_or(0.0, |one| one.start_s);
    let x: Vec<f64> = spans.iter().map(|span| span[0].start_s - start).collect();
    let best = answer.sizing.choices.first().map(|best| &best.volumes);
    let chart =
        |title: &str, unit: &str, of: &dyn Fn(&ebbtide_observe::LoadInterval) -> f64, limit: Option<f64>| {
            let highest =
                spans.iter().map(|span| Some(round(span.iter().map(of).fold(0.0, f64::max)))).collect();
            let mean = spans
                .iter()
                .map(|span| Some(round(span.iter().map(of).sum::<f64>() / span.len() as f64)))
                .collect();
            let series = |label: &str, color: usize, line: Line, values: Vec<Option<f64>>| Series {
                label: label.into(),
                color,
                line,
                group: None,
                layer: None,
                values,
                intervals: Vec::new(),
            };
            let mut all =
                vec![series("highest", 0, Line::Dashed, highest), series("mean", 0, Line::Solid, mean)];
            all.extend(limit.map(|limit| {
                series("limit of the answer", 1, Line::Dashed, vec![Some(round(limit)); x.len()])
            }));
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
    let limit = |of: fn(&ebbtide_volume::Limits) -> Option<u64>, unit: f64| {
        best.and_then(|best| Some(of(&best.members[0])? as f64 * f64::from(best.spec.members()) / unit))
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

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
