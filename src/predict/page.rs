//! The prediction as a page with charts.

use ebbtide_forecast::prediction::{PredictedPoint, PredictedVolume, PredictionPlan, interval, knee, mib};
use ebbtide_report::{
    Axis, Block, Cell, Chart, Fact, Format, Line, Listing, Plots, Report, Scale, Section, Series, Table,
    Width,
};
use ebbtide_twin::accuracy::Figure;
use ebbtide_twin::innodb::{FileKind, RoleOutcome};

use super::json::short;
use super::text;

/// The page: a table, the load line or the sweep where there is one, and the run over time.
pub(super) fn report(plan: &PredictionPlan, predicted: &[PredictedVolume<'_>]) -> Report {
    let mut sections =
        vec![Section::new("", vec![Block::Findings(findings(predicted)), Block::Facts(facts(plan))])];
    let mut blocks = Vec::new();
    if plan.loads.len() > 1 {
        blocks.push(Block::Plots(load_line(plan, predicted)));
    } else if plan.swept.is_some() {
        blocks.push(Block::Plots(sweep(plan, predicted)));
    }
    blocks.push(Block::Table(table(predicted)));
    blocks.push(Block::Table(files(predicted)));
    sections.push(Section::new("Predictions", blocks));
    sections.push(over_time(predicted));
    let listing = Listing { label: plan.path.display().to_string(), text: profile_text(plan) };
    sections.push(Section::new("Profile", vec![Block::Listing(listing)]));
    Report {
        title: if plan.profile.name.is_empty() {
            plan.path.display().to_string()
        } else {
            plan.profile.name.clone()
        },
        subtitle: "Predicted in virtual time, by a model of InnoDB".into(),
        sections,
        footer: format!(
            "ebbtide {}. Nothing here was measured but the points of the profile.",
            crate::version::of_results()
        ),
        ..Report::default()
    }
}

fn profile_text(plan: &PredictionPlan) -> String {
    let costs = plan.calibration.costs;
    let mut lines = vec![format!(
        "processor time {:.0} us of a transaction, pages read x {:.2}, pages written x {:.2}",
        costs.cpu_us, costs.reads, costs.writes
    )];
    lines.extend(plan.set.iter().map(|one| format!("predicted with {one}")));
    lines.extend(plan.calibration.notes.iter().cloned());
    lines.join("\n")
}

fn findings(predicted: &[PredictedVolume<'_>]) -> Vec<String> {
    predicted.iter().take(12).map(finding).collect()
}

fn finding(volume: &PredictedVolume<'_>) -> String {
    let at = knee(&volume.points).unwrap_or(volume.points.len() - 1);
    let point = &volume.points[at];
    let (low, high) = point.range(Figure::Tps).unwrap_or_default();
    let (limiter, share) = point.outcome.limiter();
    format!(
        "{}: {:.0} transactions a second ({low:.0} to {high:.0}) at {}, limited by {} in {} of the time.",
        volume.volume.spec,
        point.outcome.tps(),
        text::load(point.load),
        text::limiter_words(point, limiter),
        ebbtide_text::percent(share)
    )
}

fn facts(plan: &PredictionPlan) -> Vec<Fact> {
    let share =
        (plan.divided_by > 1).then(|| format!("1/{} of each volume, and of the EBS limits", plan.divided_by));
    let machine = share.map(|share| Fact::new("Machine", share));
    let facts = vec![
        Fact::new("Server", plan.planned.settings.flavour.name()),
        Fact::new("Buffer pool", ebbtide_volume::format_size(plan.planned.settings.buffer_pool_bytes)),
        Fact::new("Workload", plan.planned.shape.name.as_str()),
        Fact::new("Interval", interval(plan, plan.loads[0]).words()),
        Fact::new("Seed", plan.seed.to_string()),
    ];
    let not_modelled = plan.not_modelled().map(|what| Fact::new("Not modelled", what));
    let page_cache = plan.page_cache_bytes().map(|bytes| {
        Fact::new("Page cache", format!("{} MiB of data files", ebbtide_text::whole(mib(bytes))))
    });
    facts.into_iter().chain(page_cache).chain(machine).chain(not_modelled).collect()
}

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
fn load_line(plan: &PredictionPlan, predicted: &[PredictedVolume<'_>]) -> Plots {
    let open = plan.loads.iter().any(|load| load.rate.is_some());
    let x = plan.loads.iter().map(|load| load.rate.unwrap_or_else(|| f64::from(load.clients))).collect();
    let lines = |figure: Figure, dashed: bool, name: &str| -> Vec<Series> {
        let of = |(color, volume): (usize, &PredictedVolume<'_>)| {
            let points: Vec<&PredictedPoint> = volume.points.iter().collect();
            line(format!("{}{name}", volume.volume.spec), color, dashed, &points, figure)
        };
        predicted.iter().enumerate().map(of).collect()
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
fn sweep(plan: &PredictionPlan, predicted: &[PredictedVolume<'_>]) -> Plots {
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

fn table(predicted: &[PredictedVolume<'_>]) -> Table {
    let columns = [
        "Volume",
        "Load",
        "tps",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "IOPS",
        "MiB/s",
        "cpu",
        "Credits end",
        "Limited by",
    ];
    let rows = predicted.iter().flat_map(|volume| volume.points.iter().map(|point| row(volume, point)));
    Table { columns: columns.map(str::to_owned).to_vec(), rows: rows.collect(), ..Table::default() }
}

fn row(volume: &PredictedVolume<'_>, point: &PredictedPoint) -> Vec<Cell> {
    let with = |figure, value: String| {
        text::range(point, figure).map_or(value.clone(), |range| format!("{value} ({range})"))
    };
    let latency = |figure, quantile| {
        point
            .latency_us(quantile)
            .map_or_else(|| "-".to_owned(), |value| with(figure, ebbtide_text::latency(value)))
    };
    let cells = [
        volume.volume.spec.clone(),
        text::load(point.load),
        with(Figure::Tps, ebbtide_text::fixed(point.outcome.tps(), 1)),
        latency(Figure::P50, 0.5),
        latency(Figure::P95, 0.95),
        latency(Figure::P99, 0.99),
        latency(Figure::P999, 0.999),
        with(Figure::Iops, ebbtide_text::whole(point.outcome.iops())),
        with(Figure::MibS, ebbtide_text::fixed(mib(point.outcome.bytes_per_second()), 1)),
        with(Figure::Cpu, format!("{:.0}%", point.outcome.processors_busy * 100.0)),
        point
            .credits_end_s()
            .map_or_else(|| "-".to_owned(), |end| with(Figure::CreditsEnd, format!("{end:.0} s"))),
        text::limits(point),
    ];
    cells.into_iter().map(Cell::from).collect()
}

/// The I/O by kind of file.
fn files(predicted: &[PredictedVolume<'_>]) -> Table {
    let columns = ["Volume", "Load", "File", "IOPS", "MiB/s"].map(str::to_owned).to_vec();
    let of_point = |volume: &PredictedVolume<'_>, point: &PredictedPoint| -> Vec<Vec<Cell>> {
        let with = |kind, of| {
            let (value, low, high) = point.file_rate(kind, of);
            let figure = ebbtide_text::figure;
            format!("{} ({} to {})", figure(value), figure(low), figure(high))
        };
        let kinds = FileKind::ALL.into_iter().filter(|kind| point.file_iops(*kind) > 0.0);
        let cells = kinds.map(|kind| {
            [
                volume.volume.spec.clone(),
                text::load(point.load),
                kind.name().to_owned(),
                with(kind, Figure::Iops),
                with(kind, Figure::MibS),
            ]
        });
        let mut rows: Vec<Vec<Cell>> =
            cells.map(|cells| cells.into_iter().map(Cell::from).collect()).collect();
        if point.outcome.volumes.len() > 1 {
            rows.extend(point.outcome.volumes.iter().map(|one| role(volume, point, one)));
        }
        rows
    };
    let all = predicted.iter().flat_map(|volume| volume.points.iter().map(move |point| (volume, point)));
    Table {
        columns,
        rows: all.flat_map(|(volume, point)| of_point(volume, point)).collect(),
        ..Table::default()
    }
}

/// The I/O of all files on a volume of several.
fn role(volume: &PredictedVolume<'_>, point: &PredictedPoint, one: &RoleOutcome) -> Vec<Cell> {
    let seconds = point.outcome.measured.as_secs_f64().max(1e-9);
    let cells = [
        volume.volume.spec.clone(),
        text::load(point.load),
        format!("all of the {} volume", one.role.name()),
        ebbtide_text::figure(one.operations as f64 / seconds),
        ebbtide_text::figure(mib(one.bytes as f64 / seconds)),
    ];
    cells.into_iter().map(Cell::from).collect()
}

/// Throughput and credits over time, of the last load of each volume.
fn over_time(predicted: &[PredictedVolume<'_>]) -> Section {
    let lasts: Vec<(&PredictedVolume<'_>, &PredictedPoint)> =
        predicted.iter().take(8).filter_map(|volume| Some((volume, volume.points.last()?))).collect();
    let x: Vec<f64> = lasts.first().map_or(Vec::new(), |(_, point)| {
        point.outcome.spans.iter().map(|span| span.end.as_secs_f64()).collect()
    });
    let series = |of: &dyn Fn(&PredictedPoint) -> Vec<Option<f64>>| -> Vec<Series> {
        let one = |(color, (volume, point)): (usize, &(&PredictedVolume<'_>, &PredictedPoint))| Series {
            label: volume.volume.spec.clone(),
            color,
            line: Line::Solid,
            group: None,
            layer: None,
            values: of(point),
            intervals: Vec::new(),
        };
        lasts.iter().enumerate().map(one).collect()
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
