//! The arms side by side: ratios, throughput, and everything in figures.

use ebbtide_analysis::summary::{Undecided, too_few_trials};
use ebbtide_report::{Block, Cell, Estimate, Estimates, Fold, Scale, Section, Table, Tone};

use super::{ArmView, PageContext, text, verdict};
use crate::record::BatchUse;
use crate::summary::{Bottleneck, Compared, Figures, Measured, Metric, Regime, TrialWindow, Verdict};

/// With more arms than this, the chart of their throughputs shows little that the ratios do not.
const MANY: usize = 8;
/// More comparisons than this are shown by size and not as the experiment has them.
const SORTED: usize = 6;

/// What the figures of an arm are.
pub(crate) const DEFINITIONS: &str = "All figures are of the measured seconds without warm-up. TPS are transactions a \
    second, the geometric mean of the trials. I/Os per transaction are operations as the IOPS limits of the volumes \
    count them; what the guest submitted is below.";

/// None where no arm has a figure.
pub(super) fn section(page: &PageContext) -> Option<Section> {
    page.summary.arms.iter().find(|arm| arm.whole.is_some())?;
    let ratios = comparisons(page);
    if !page.summary.curves.is_empty() {
        return Some(Section::new("The arms side by side", folded(page, ratios)).lead(DEFINITIONS));
    }
    let mut blocks = ratios;
    let table = Block::Table(table(page));
    // At a given rate all arms have the same throughput, until one cannot follow.
    let given = page.summary.comparisons.iter().any(|one| one.metric == Metric::P95);
    if given || page.arms.len() > MANY {
        let summary = "Throughput of every arm as a chart".into();
        blocks.extend([table, Block::Fold(Fold { summary, blocks: vec![throughput(page)] })]);
    } else {
        blocks.extend([throughput(page), table]);
    }
    blocks.extend(batches(page));
    Some(Section::new("The arms side by side", blocks).lead(DEFINITIONS))
}

/// The comparisons as charts.
pub(super) fn comparisons(page: &PageContext) -> Vec<Block> {
    [Metric::Tps, Metric::P95].into_iter().filter_map(|metric| ratios(page, metric)).collect()
}

/// The same where curves have shown it already: for those who want to look a figure up.
fn folded(page: &PageContext, ratios: Vec<Block>) -> Vec<Block> {
    let fold = |summary: String, blocks: Vec<Block>| Block::Fold(Fold { summary, blocks });
    let compared = text::count(page.summary.comparisons.len(), "comparison");
    let arms = text::count(page.arms.len(), "arm");
    let mut blocks = vec![
        fold(format!("All {compared} one under the other"), ratios),
        fold(format!("All {arms} in figures"), vec![Block::Table(table(page))]),
    ];
    blocks.extend(batches(page));
    blocks
}

/// What the batch job got done, arm by arm; none where no trial had one.
fn batches(page: &PageContext) -> Option<Block> {
    let rows = page.arms.iter().enumerate().filter_map(|(group, view)| batch_row(group, view));
    let rows: Vec<Vec<Cell>> = rows.collect();
    let columns = ["Arm", "Statements answered", "Mean time", "Longest", "Errors"];
    (!rows.is_empty()).then(|| {
        Block::Table(Table {
            caption: "The batch job alongside the load, mean of the trials".into(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
            ..Table::default()
        })
    })
}

fn batch_row(group: usize, view: &ArmView) -> Option<Vec<Cell>> {
    let used: Vec<&BatchUse> = view.trials.iter().filter_map(|trial| trial.batch.as_ref()).collect();
    let count = used.len() as f64;
    let mean = |of: fn(&BatchUse) -> f64| used.iter().map(|one| of(one)).sum::<f64>() / count;
    let longest = used.iter().map(|one| one.max_s).max_by(f64::total_cmp)?;
    let errors: u64 = used.iter().map(|one| one.errors).sum();
    let first_error = used.iter().find_map(|one| one.first_error.clone()).unwrap_or_default();
    let (statements, time) = (mean(|one| one.statements as f64), mean(|one| one.mean_s));
    Some(vec![
        Cell { text: view.name.clone(), group: Some(group), ..Cell::default() },
        Cell::value(text::short(statements), statements, ""),
        Cell::value(text::latency(time * 1e6), time, ""),
        Cell::value(text::latency(longest * 1e6), longest, ""),
        Cell::value(text::whole(errors as f64), errors as f64, first_error),
    ])
}

/// Every comparison as a ratio on a log axis; none where there is none with this metric.
fn ratios(page: &PageContext, metric: Metric) -> Option<Block> {
    let mut compared: Vec<&Compared> =
        page.summary.comparisons.iter().filter(|one| one.metric == metric).collect();
    if compared.is_empty() {
        return None;
    }
    if compared.len() > SORTED {
        let size = |one: &Compared| verdict::ratio(one).map_or(0.0, |ratio| ratio.ratio);
        compared.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    let floor = page.summary.noise.floor;
    let only = common_baseline(page, &compared);
    let what = match metric {
        Metric::Tps => "Throughput",
        Metric::P95 => "Response time at the 95th percentile",
    };
    Some(Block::Estimates(Estimates {
        title: format!("{what} against {}", only.unwrap_or("the baseline")),
        unit: "ratio, log scale".into(),
        scale: Scale::Log,
        suffix: "\u{d7}".into(),
        reference: Some((1.0, "as the baseline".into())),
        band: (floor > 0.0).then_some((1.0 / (1.0 + floor), 1.0 + floor)),
        band_label: format!("within {}: never called a difference", text::percent(floor)),
        points_label: "one trial against the baseline's mean".into(),
        mid_label: "ratio of the means, 95% interval".into(),
        rows_label: "Arm".into(),
        texts_label: "Ratio, 95% interval".into(),
        rows: compared.into_iter().map(|one| ratio_row(page, one, only.is_some())).collect(),
    }))
}

/// The arm that all are held against; none where they are held against several.
fn common_baseline<'a>(page: &'a PageContext, compared: &[&Compared]) -> Option<&'a str> {
    let first = compared.first()?.baseline;
    let same = compared.iter().all(|one| one.baseline == first);
    same.then(|| page.name(first))
}

fn ratio_row(page: &PageContext, compared: &Compared, only: bool) -> Estimate {
    let ratio = verdict::ratio(compared);
    let interval = ratio.and_then(|ratio| ratio.interval);
    let detail = match (only, compared.label.is_empty()) {
        (true, _) => compared.label.clone(),
        (false, true) => format!("against {}", page.name(compared.baseline)),
        (false, false) => format!("against {}, {}", page.name(compared.baseline), compared.label),
    };
    let undecided = Undecided::of_comparison(page.summary, compared);
    let text = match (&compared.verdict, ratio) {
        (_, None) => "not comparable".into(),
        (Verdict::NoDifferenceSeen, Some(ratio)) => match undecided {
            None if too_few_trials(page.summary, compared).is_some() => "too few trials to tell".into(),
            None => "no difference seen".into(),
            Some(_) => format!("{}, not certain", text::change(ratio.ratio)),
        },
        (_, Some(ratio)) => text::change(ratio.ratio),
    };
    let interval_text = interval.map_or(String::new(), |interval| text::change_interval(&interval));
    let text_detail = match (&compared.verdict, compared.smallest_effect) {
        (Verdict::NoDifferenceSeen, Some(effect)) if undecided.is_none() => {
            format!("{interval_text}; {} would have been seen", text::percent(effect))
        }
        (Verdict::NotComparable { .. }, _) => {
            if ratio.is_some() {
                "no verdict".into()
            } else {
                String::new()
            }
        }
        _ => interval_text,
    };
    Estimate {
        label: page.name(compared.arm).to_owned(),
        detail,
        group: Some(compared.arm),
        mid: ratio.map(|ratio| ratio.ratio),
        interval: interval.map(|interval| (interval.low, interval.high)),
        points: if compared.metric == Metric::Tps { trial_ratios(page, compared) } else { Vec::new() },
        text,
        text_detail,
    }
}

/// Each trial of the arm against the mean of the baseline.
fn trial_ratios(page: &PageContext, compared: &Compared) -> Vec<f64> {
    let regimes = (compared.regimes.map(|(arm, _)| arm), compared.regimes.map(|(_, baseline)| baseline));
    let Some(baseline) = verdict::figures(page, compared.baseline, regimes.1) else { return Vec::new() };
    if baseline.tps.mean <= 0.0 {
        return Vec::new();
    }
    let trials = page.arms.get(compared.arm).map_or(Vec::new(), |view| trial_tps(page, view, regimes.0));
    trials.into_iter().map(|tps| tps / baseline.tps.mean).collect()
}

/// Each trial's mean throughput in a regime, or in all of its time.
fn trial_tps(page: &PageContext, view: &ArmView, regime: Option<Regime>) -> Vec<f64> {
    view.trials.iter().filter_map(|trial| window_tps(page.window(trial)?, regime)).collect()
}

fn window_tps(window: &TrialWindow, regime: Option<Regime>) -> Option<f64> {
    let parts = window.parts.iter().filter(|part| regime.is_none_or(|regime| part.regime == regime));
    let (done, seconds) = parts.fold((0.0, 0.0), |(done, seconds), part| {
        let length = part.to_s - part.from_s;
        (done + part.tps * length, seconds + length)
    });
    (seconds > 0.0).then(|| done / seconds)
}

/// One line of the side-by-side view: an arm, or a regime of it.
pub(super) struct Row<'a> {
    pub(super) view: &'a ArmView<'a>,
    /// The place of the arm.
    pub(super) group: usize,
    /// What is special in the regime; empty where the arm has only one.
    pub(super) label: String,
    pub(super) regime: Option<Regime>,
    pub(super) figures: Option<&'a Figures>,
}

pub(super) fn rows<'a>(page: &'a PageContext<'a>) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for (group, view) in page.arms.iter().enumerate() {
        let regimes = view.summary.map_or(&[][..], |summary| summary.regimes.as_slice());
        if regimes.is_empty() {
            let figures = view.summary.and_then(|summary| summary.whole.as_ref());
            rows.push(Row { view, group, label: String::new(), regime: None, figures });
        }
        for part in regimes {
            let (regime, figures) = (Some(part.regime), Some(&part.figures));
            rows.push(Row { view, group, label: part.label.clone(), regime, figures });
        }
    }
    rows
}

fn throughput(page: &PageContext) -> Block {
    let rows = rows(page).into_iter().map(|row| {
        let tps = row.figures.map(|figures| figures.tps);
        Estimate {
            label: row.view.name.clone(),
            detail: row.label.clone(),
            group: Some(row.group),
            mid: tps.map(|tps| tps.mean),
            interval: tps.and_then(|tps| tps.interval).map(|interval| (interval.low, interval.high)),
            points: trial_tps(page, row.view, row.regime),
            text: tps.map_or("not measured".into(), |tps| text::short(tps.mean)),
            text_detail: tps.map_or(String::new(), |tps| interval(&tps)),
        }
    });
    Block::Estimates(Estimates {
        title: "Throughput".into(),
        unit: "transactions a second".into(),
        scale: Scale::Linear,
        suffix: String::new(),
        reference: None,
        band: None,
        band_label: String::new(),
        points_label: "one trial".into(),
        mid_label: "mean, 95% interval".into(),
        rows_label: "Arm".into(),
        texts_label: "TPS, 95% interval".into(),
        rows: rows.collect(),
    })
}

fn interval(measured: &Measured) -> String {
    measured.interval.map_or(String::new(), |interval| {
        format!("{} to {}", text::short(interval.low), text::short(interval.high))
    })
}

fn table(page: &PageContext) -> Table {
    let columns = [
        "Arm",
        "TPS over time",
        "TPS, 95% interval",
        "Spread between trials",
        "p50",
        "p95, range",
        "p99, range",
        "I/Os per transaction",
        "KiB per transaction",
        "Held back by, of the time",
        "Server CPU per transaction",
        "Volumes, cost a month",
    ];
    Table {
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows(page).iter().map(|row| table_row(page, row)).collect(),
        sortable: true,
        ..Table::default()
    }
}

fn table_row(page: &PageContext, row: &Row) -> Vec<Cell> {
    let counts = row.view.summary.map(|summary| summary.trials).unwrap_or_default();
    let mut about = vec![text::count(counts.measured, "trial")];
    for (number, what) in [(counts.disqualified, "disqualified"), (counts.failed, "failed")] {
        if number > 0 {
            about.push(format!("{number} {what}"));
        }
    }
    if !row.label.is_empty() {
        about = vec![row.label.clone()];
    }
    let name = Cell {
        text: row.view.name.clone(),
        detail: about.join(", "),
        group: Some(row.group),
        ..Cell::default()
    };
    let mut cells = vec![name, Cell { spark: spark(row.view), ..Cell::default() }];
    match row.figures {
        Some(figures) => cells.extend(figure_cells(figures)),
        None => cells.extend((0..9).map(|_| Cell::from("\u{2013}"))),
    }
    cells.push(monthly(page, row.view));
    cells
}

/// What the volumes of an arm cost, as the experiment names them.
fn monthly(page: &PageContext, view: &ArmView) -> Cell {
    let cost = page.summary.monthly_cost.as_ref().and_then(|costs| costs.arm(&view.arm.name));
    let Some((cost, usd)) = cost.and_then(|cost| Some((cost, cost.usd?))) else { return Cell::from("-") };
    let share = cost.divided_by;
    let detail = if share > 1 { format!("as named; 1/{share} emulated") } else { String::new() };
    Cell::value(cost.short().unwrap_or_default(), usd.cents() as f64, detail)
}

fn figure_cells(figures: &Figures) -> [Cell; 9] {
    let dash = || Cell::from("\u{2013}");
    let tps = &figures.tps;
    let cost = figures.per_transaction.as_ref();
    let spread = tps.spread.map_or_else(dash, |spread| Cell::value(text::percent(spread), spread, ""));
    let latency = |across: &crate::summary::Across, range: bool| {
        let detail = if range && figures.trials > 1 {
            format!("{}\u{2013}{}", text::latency(across.min), text::latency(across.max))
        } else {
            String::new()
        };
        Cell::value(text::latency(across.median), across.median, detail)
    };
    let kib = |cost: &crate::summary::PerTransaction| cost.read_kib + cost.written_kib;
    [
        Cell::value(text::short(tps.mean), tps.mean, interval(tps)),
        spread,
        latency(&figures.p50_us, false),
        latency(&figures.p95_us, true),
        latency(&figures.p99_us, true),
        cost.map_or_else(dash, |cost| {
            let detail = format!("guest: {} r + {} w", text::short(cost.reads), text::short(cost.writes));
            Cell::value(text::short(cost.consumed_ios), cost.consumed_ios, detail)
        }),
        cost.map_or_else(dash, |cost| Cell::value(text::short(kib(cost)), kib(cost), "")),
        limited(figures),
        cost.map_or_else(dash, |cost| {
            let detail = format!("{} CPUs", text::short(figures.host.server_cpus));
            Cell::value(text::latency(cost.server_cpu_us), cost.server_cpu_us, detail)
        }),
    ]
}

/// The largest share of the time in which a volume was held back, and by what.
fn limited(figures: &Figures) -> Cell {
    let share = figures.volumes.values().map(|volume| volume.limited).fold(0.0, f64::max);
    match figures.limiter.what {
        Bottleneck::Unknown => Cell::value("\u{2013}", share, format!("volume {}", text::percent(share))),
        Bottleneck::Processors => {
            let detail = format!("volume {}", text::percent(share));
            Cell { tone: Tone::Caution, ..Cell::value("processors", share, detail) }
        }
        what => Cell::value(text::limiter_short(what), share, text::percent(figures.limiter.share)),
    }
}

/// How many points a small line has.
const SPARK: usize = 60;

fn spark(view: &ArmView) -> Vec<Option<f64>> {
    let Some(trial) = view.trials.get(view.typical) else { return Vec::new() };
    let step = trial.seconds.len().div_ceil(SPARK).max(1);
    let mean = |part: &[crate::record::Second]| {
        part.iter().map(|second| second.load.tps).sum::<f64>() / part.len() as f64
    };
    trial.seconds.chunks(step).map(|part| Some(mean(part))).collect()
}
