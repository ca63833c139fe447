//! Curves over connections: what arms carry that differ in their connections alone, and what an option gains along
//! them. From experiment and summary alone, so that another report can show them too.

use ebbtide_report::Format::{Microseconds, Number};
use ebbtide_report::Width::{Full, Half};
use ebbtide_report::{
    Axis, Block, Cell, Chart, Format, Line, Plots, Scale, Section, Series, Table, Tone, Width,
};

use super::text;
use crate::experiment::Experiment;
use crate::summary::{
    Bottleneck, Compared, Curve, CurveGain, Curves, Figures, Ratio, ServerFigures, Summary, Verdict,
    VolumeFigures, curves,
};
use ebbtide_analysis::stats::Interval;

const LEAD: &str = "Each point is an arm of its own, with its 95% interval where it has several trials. Lines of one \
                    colour differ in the option that is compared alone; dashed is what it is held against.";

/// A figure of an arm; none where it was not measured.
type Figure<'a> = &'a dyn Fn(&Figures) -> Option<f64>;

/// None where no arms differ in their connections alone.
pub(super) fn section(experiment: &Experiment, summary: &Summary) -> Option<Section> {
    Some(Section::new("Over connections", blocks(experiment, summary)?).lead(LEAD))
}

/// Charts and table; none where there are no curves, or nothing was measured.
pub(crate) fn blocks(experiment: &Experiment, summary: &Summary) -> Option<Vec<Block>> {
    let curves = curves(experiment)?;
    summary.arms.iter().find(|arm| arm.whole.is_some())?;
    let mut panel = CurvePanel::new(summary, &curves);
    panel.throughput();
    panel.gains();
    panel.rest();
    let mut blocks = vec![Block::Plots(panel.plots())];
    blocks.extend(table(summary));
    Some(blocks)
}

/// How a curve is drawn.
struct Style {
    label: String,
    color: usize,
    line: Line,
}

/// Charts that are being gathered, and what was zero in all of them.
struct CurvePanel<'a> {
    summary: &'a Summary,
    curves: &'a Curves,
    styles: Vec<Style>,
    charts: Vec<Chart>,
    zero: Vec<String>,
}

impl<'a> CurvePanel<'a> {
    fn new(summary: &'a Summary, curves: &'a Curves) -> Self {
        Self { summary, curves, styles: styles(summary, curves), charts: Vec::new(), zero: Vec::new() }
    }

    fn figures(&self, arm: Option<usize>) -> Option<&'a Figures> {
        self.summary.arms.get(arm?)?.whole.as_ref()
    }

    fn throughput(&mut self) {
        let interval = |figures: &Figures| figures.tps.interval;
        let mut lines = self.lines(&|figures| Some(figures.tps.mean));
        for (series, curve) in lines.iter_mut().zip(&self.curves.lines) {
            series.intervals =
                curve.arms.iter().map(|arm| self.figures(*arm).and_then(interval).map(ends)).collect();
        }
        self.add(("Throughput", "transactions a second", Scale::Linear, Number, Full), lines);
    }

    /// What the option gains, one line for each place.
    fn gains(&mut self) {
        let one = |gain: &CurveGain| {
            let place = if gain.place.is_empty() { String::new() } else { format!("{}: ", gain.place) };
            let ratios = self.ratios(gain);
            let interval = |ratio: &Option<Ratio>| ratio.and_then(|ratio| ratio.interval).map(ends);
            Series {
                label: format!("{place}{} over {}", gain.option, gain.baseline),
                color: self.color_of(gain),
                line: Line::Solid,
                group: None,
                layer: None,
                values: ratios.iter().map(|ratio| ratio.map(|ratio| ratio.ratio)).collect(),
                intervals: ratios.iter().map(interval).collect(),
            }
        };
        let mut lines: Vec<Series> = self.summary.curves.iter().map(one).collect();
        if lines.is_empty() {
            return;
        }
        lines.push(Series {
            label: "no difference".into(),
            color: 7,
            line: Line::Limit,
            group: None,
            layer: None,
            values: vec![Some(1.0); self.curves.counts.len()],
            intervals: Vec::new(),
        });
        self.add(("What it gains", "times the throughput", Scale::Ratio, Number, Full), lines);
    }

    /// The ratio at each count; none where nothing is compared.
    fn ratios(&self, gain: &CurveGain) -> Vec<Option<Ratio>> {
        let ratio = |count: &u32| {
            let point = gain.points.iter().find(|point| point.connections == *count)?;
            self.summary.comparisons.get(point.comparison)?.tps
        };
        self.curves.counts.iter().map(ratio).collect()
    }

    /// The colour of the curves that a gain is between.
    fn color_of(&self, gain: &CurveGain) -> usize {
        let of = |curve: &&Curve| curve.name(&[&gain.axis]) == gain.place;
        let at = self.curves.lines.iter().position(|curve| of(&curve));
        at.and_then(|at| self.styles.get(at)).map_or(0, |style| style.color)
    }

    fn rest(&mut self) {
        let volume = |of: fn(&VolumeFigures) -> f64| {
            move |figures: &Figures| {
                let volumes = Some(&figures.volumes).filter(|volumes| !volumes.is_empty())?;
                Some(volumes.values().map(of).sum::<f64>())
            }
        };
        let server = |of: fn(&ServerFigures) -> Option<f64>| {
            move |figures: &Figures| figures.server.as_ref().and_then(of)
        };
        self.chart(
            ("Response time, 95th percentile", "median trial, log scale", Scale::Log, Microseconds, Half),
            &|figures| Some(figures.p95_us.median).filter(|us| *us > 0.0),
        );
        self.chart(
            ("I/Os of a transaction", "as the volume's IOPS limit counts them", Scale::Linear, Number, Half),
            &|figures| figures.per_transaction.map(|cost| cost.consumed_ios),
        );
        self.chart(("Writes", "IOPS", Scale::Linear, Number, Half), &volume(|v| v.write_iops));
        self.chart(("Reads", "IOPS", Scale::Linear, Number, Half), &volume(|v| v.read_iops));
        self.chart(("Written", "MiB/s", Scale::Linear, Number, Half), &volume(|v| v.write_mib));
        self.chart(("Read", "MiB/s", Scale::Linear, Number, Half), &volume(|v| v.read_mib));
        self.chart(
            ("Doublewrite", "pages a second", Scale::Linear, Number, Half),
            &server(|s| s.doublewrite_pages),
        );
        self.chart(
            ("Doublewrite batches", "a second", Scale::Linear, Number, Half),
            &server(|s| s.doublewrite_batches),
        );
        self.chart(
            ("Pages of a doublewrite batch", "mean", Scale::Linear, Number, Half),
            &server(|s| Some(s.doublewrite_pages? / s.doublewrite_batches.filter(|batches| *batches > 0.0)?)),
        );
        self.waits();
    }

    /// What the server waited for.
    fn waits(&mut self) {
        let server = |of: fn(&ServerFigures) -> Option<f64>| {
            move |figures: &Figures| figures.server.as_ref().and_then(of)
        };
        let threads = |what: &'static str| (what, "mean number", Scale::Linear, Number, Half);
        self.chart(
            ("Waits for a free page", "a second", Scale::Linear, Number, Half),
            &server(|s| s.wait_free),
        );
        self.chart(threads("Threads in data files' I/O"), &server(|s| s.data_wait));
        self.chart(threads("Threads in the doublewrite files' I/O"), &server(|s| s.doublewrite_wait));
        self.chart(
            threads("Threads waiting for the doublewrite mutex"),
            &server(|s| s.doublewrite_mutex_wait),
        );
        self.chart(threads("Threads in the redo log's file I/O"), &server(|s| s.redo_wait));
        self.chart(threads("Threads in the binary log's file I/O"), &server(|s| s.binlog_wait));
    }

    fn chart(&mut self, about: About, figure: Figure) {
        let lines = self.lines(figure);
        self.add(about, lines);
    }

    /// A line for every curve.
    fn lines(&self, figure: Figure) -> Vec<Series> {
        let line = |(curve, style): (&Curve, &Style)| Series {
            label: style.label.clone(),
            color: style.color,
            line: style.line,
            group: None,
            layer: None,
            values: curve.arms.iter().map(|arm| self.figures(*arm).and_then(figure)).collect(),
            intervals: Vec::new(),
        };
        self.curves.lines.iter().zip(&self.styles).map(line).collect()
    }

    /// Adds a chart, unless nothing of it was measured or all of it is zero.
    fn add(&mut self, about: About, mut series: Vec<Series>) {
        let (title, unit, scale, format, width) = about;
        series.retain(|series| series.values.iter().any(Option::is_some));
        if series.is_empty() {
            return;
        }
        if series.iter().flat_map(|series| series.values.iter().flatten()).all(|value| *value == 0.0) {
            self.zero.push(title.to_lowercase());
            return;
        }
        let (title, unit, at_least) = (title.into(), unit.into(), 0.0);
        self.charts.push(Chart { title, unit, scale, format, width, at_least, series });
    }

    fn plots(self) -> Plots {
        let foot = match self.zero.is_empty() {
            true => String::new(),
            false => format!("Zero throughout: {}.", text::list(&self.zero)),
        };
        Plots {
            heading: String::new(),
            lead: String::new(),
            axis: Axis::Count,
            x_label: "connections".into(),
            x: self.curves.counts.iter().map(|count| f64::from(*count)).collect(),
            charts: self.charts,
            foot,
            marks: Vec::new(),
        }
    }
}

/// What a chart shows: title, unit, scale, format and width.
type About = (&'static str, &'static str, Scale, Format, Width);

fn ends(interval: Interval) -> (f64, f64) {
    (interval.low, interval.high)
}

/// One colour for the curves that differ in the compared option alone, where that is one of two; else one for each.
fn styles(summary: &Summary, curves: &Curves) -> Vec<Style> {
    let pair = summary.curves.first().filter(|first| {
        let same = |gain: &CurveGain| {
            (&gain.axis, &gain.option, &gain.baseline) == (&first.axis, &first.option, &first.baseline)
        };
        summary.curves.iter().all(same)
    });
    let mut places: Vec<String> = Vec::new();
    let style = |(index, curve): (usize, &Curve)| {
        let label = curve.name(&[]);
        let Some(pair) = pair else { return Style { label, color: index, line: Line::Solid } };
        let place = curve.name(&[&pair.axis]);
        let color = places.iter().position(|known| *known == place).unwrap_or_else(|| {
            places.push(place);
            places.len() - 1
        });
        let dashed = curve.options.contains(&(pair.axis.clone(), pair.baseline.clone()));
        Style { label, color, line: if dashed { Line::Dashed } else { Line::Solid } }
    };
    curves.lines.iter().enumerate().map(style).collect()
}

/// The comparisons of the curves in figures, place by place; none where nothing is compared along them.
fn table(summary: &Summary) -> Option<Block> {
    let first = summary.curves.first()?;
    let (axis, option, baseline) = (&first.axis, &first.option, &first.baseline);
    let of = |gain: &CurveGain| (&gain.axis, &gain.option, &gain.baseline) != (axis, option, baseline);
    let several = summary.curves.iter().any(of);
    let (ours, theirs) = if several {
        ("option".to_owned(), "baseline".to_owned())
    } else {
        (format!("{axis} {option}"), format!("{axis} {baseline}"))
    };
    let columns = [
        "Where".to_owned(),
        "Connections".to_owned(),
        format!("TPS, {theirs}"),
        format!("TPS, {ours}"),
        "Ratio, 95% interval".to_owned(),
        "p95".to_owned(),
        "I/Os per transaction".to_owned(),
        "KiB per transaction".to_owned(),
        format!("Held back, {theirs}"),
        format!("Held back, {ours}"),
    ];
    let rows = summary.curves.iter().flat_map(|gain| {
        gain.points.iter().filter_map(move |point| {
            let compared = summary.comparisons.get(point.comparison)?;
            Some(row(summary, gain, point.connections, compared, several))
        })
    });
    Some(Block::Table(Table {
        caption: "Where two figures are in a cell, the first is the baseline's".into(),
        columns: columns.to_vec(),
        rows: rows.collect(),
        sortable: true,
        ..Table::default()
    }))
}

fn row(
    summary: &Summary,
    gain: &CurveGain,
    connections: u32,
    compared: &Compared,
    several: bool,
) -> Vec<Cell> {
    let side = |arm: usize| summary.arms.get(arm).and_then(|arm| arm.whole.as_ref());
    let (ours, theirs) = (side(compared.arm), side(compared.baseline));
    let place = if several {
        format!("{} {} {} over {}", gain.place, gain.axis, gain.option, gain.baseline).trim_start().to_owned()
    } else {
        gain.place.clone()
    };
    let tps = |figures: Option<&Figures>| {
        figures.map_or_else(dash, |figures| {
            let detail = figures.tps.interval.map_or_else(String::new, |interval| {
                format!("{} to {}", text::short(interval.low), text::short(interval.high))
            });
            Cell::value(text::short(figures.tps.mean), figures.tps.mean, detail)
        })
    };
    let both = |of: fn(&Figures) -> Option<f64>, text: fn(f64) -> String| {
        let text = |figures: Option<&Figures>| figures.and_then(of).map_or_else(|| "\u{2013}".into(), text);
        Cell::from(format!("{}, {}", text(theirs), text(ours)))
    };
    vec![
        Cell::from(if place.is_empty() { "\u{2013}".to_owned() } else { place }),
        Cell::value(text::whole(f64::from(connections)), f64::from(connections), ""),
        tps(theirs),
        tps(ours),
        ratio(compared),
        both(|figures| Some(figures.p95_us.median), text::latency),
        both(|figures| figures.per_transaction.map(|cost| cost.consumed_ios), text::short),
        both(|figures| figures.per_transaction.map(|cost| cost.read_kib + cost.written_kib), text::short),
        held(theirs),
        held(ours),
    ]
}

fn ratio(compared: &Compared) -> Cell {
    let Some(ratio) = compared.tps else { return dash() };
    let detail = ratio
        .interval
        .map_or_else(|| "one trial, no interval".to_owned(), |interval| text::change_interval(&interval));
    let tone = match compared.verdict {
        Verdict::Faster => Tone::Good,
        Verdict::Slower => Tone::Bad,
        Verdict::NoDifferenceSeen | Verdict::NotComparable { .. } => Tone::Plain,
    };
    Cell { tone, ..Cell::value(text::change(ratio.ratio), ratio.ratio, detail) }
}

fn held(figures: Option<&Figures>) -> Cell {
    let Some(limiter) = figures.map(|figures| figures.limiter) else { return dash() };
    match limiter.what {
        Bottleneck::Unknown => dash(),
        Bottleneck::Processors => Cell { tone: Tone::Caution, ..Cell::from("processors") },
        what => Cell::value(text::limiter_short(what), limiter.share, text::percent(limiter.share)),
    }
}

fn dash() -> Cell {
    Cell::from("\u{2013}")
}
