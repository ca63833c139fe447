//! A prediction as a document, from which the text and the page are made: the answer first, then the figures with their
//! intervals, the I/O by file, and how the model was calibrated.

mod answer;
mod charts;
mod credits;
mod misfit;
mod words;

use std::time::Duration;

use crate::prediction::{PredictedPoint, PredictedVolume, PredictionPlan, interval, mib};
use ebbtide_catalog::NO_LIMITS;
use ebbtide_report::{Block, Cell, Fact, Note, Report, Section, Table};
use ebbtide_twin::accuracy::Figure;
use ebbtide_twin::innodb::{FileKind, RoleOutcome, Shorter};
use ebbtide_twin::profile::PlannedPoint;
use ebbtide_volume::{Nanos, format_size};

pub use self::answer::PredictionAnswer;

/// The prediction as a document.
pub fn document(
    plan: &PredictionPlan,
    predicted: &[PredictedVolume<'_>],
    answer: &PredictionAnswer<'_>,
    version: &str,
) -> Report {
    let mut first = vec![Block::Findings(vec![answer.sentence()]), Block::Table(summary(predicted, answer))];
    first.extend(remarks(plan, predicted));
    let mut sections = vec![Section::new("", first)];
    if plan.loads.len() > 1 {
        sections.push(Section::new("", vec![Block::Plots(charts::load_line(plan, predicted))]));
    } else if plan.swept.is_some() {
        sections.push(Section::new("", vec![Block::Plots(charts::sweep(plan, predicted))]));
    }
    sections.push(Section::new("Intervals", vec![Block::Table(intervals(predicted))]).details());
    sections.push(Section::new("Limits and files", limits_and_files(predicted)).named("limits").details());
    sections.push(charts::over_time(predicted));
    let mut facts = facts(plan);
    facts.extend(answer.prices().map(|prices| Fact::new("Prices", prices)));
    let facts = vec![Block::Facts(facts)];
    sections.push(Section::new("Server and calibration", facts).named("calibration").details());
    Report {
        title: profile_name(plan),
        subtitle: "Predicted in virtual time, by a model of InnoDB".into(),
        sections,
        footer: format!("ebbtide {version}. Nothing here was measured but the points of the profile."),
        ..Report::default()
    }
}

fn profile_name(plan: &PredictionPlan) -> String {
    if plan.profile.name.is_empty() { plan.path.display().to_string() } else { plan.profile.name.clone() }
}

fn texts(heads: &[&str]) -> Vec<String> {
    heads.iter().map(|head| (*head).to_owned()).collect()
}

/// One row for each volume and load, in the order given.
fn points<'a>(
    predicted: &'a [PredictedVolume<'a>],
) -> impl Iterator<Item = (usize, &'a PredictedVolume<'a>, &'a PredictedPoint)> {
    let of_volume = |(place, volume): (usize, &'a PredictedVolume<'a>)| {
        volume.points.iter().map(move |point| (place, volume, point))
    };
    predicted.iter().enumerate().flat_map(of_volume)
}

/// The figures that people compare volumes by.
fn summary(predicted: &[PredictedVolume<'_>], answer: &PredictionAnswer<'_>) -> Table {
    let several_loads = predicted.iter().any(|volume| volume.points.len() > 1);
    let mut heads = vec!["Volume"];
    if several_loads {
        heads.push("Load");
    }
    heads.extend(["tps (low to high)", "p50", "p99", "IOPS", "MiB/s", "CPU"]);
    if answer.has_costs() {
        heads.push("Monthly");
    }
    heads.push("Limited by");
    let row = |(place, volume, point): (usize, &PredictedVolume<'_>, &PredictedPoint)| {
        let mut cells = vec![Cell::from(volume.volume.spec.as_str())];
        if several_loads {
            cells.push(words::short_load(point.load).into());
        }
        cells.push(Cell {
            detail: words::range(point, Figure::Tps).unwrap_or_default(),
            value: Some(point.outcome.tps()),
            ..Cell::from(words::value(point, Figure::Tps))
        });
        for figure in [Figure::P50, Figure::P99, Figure::Iops, Figure::MibS, Figure::Cpu] {
            cells.push(Cell { value: point.figure(figure), ..Cell::from(words::value(point, figure)) });
        }
        if answer.has_costs() {
            cells.push(answer.cost(place).map_or_else(|| "-".to_owned(), |cost| cost.to_string()).into());
        }
        let (limiter, _) = point.outcome.limiter();
        cells.push(words::limiter(point, limiter).into());
        cells
    };
    let column = |head: &str| heads.iter().position(|other| *other == head);
    Table {
        spare: ["MiB/s", "CPU", "p50", "IOPS", "Monthly"].into_iter().filter_map(column).collect(),
        rows: points(predicted).map(row).collect(),
        columns: texts(&heads),
        sortable: true,
        ..Table::default()
    }
}

/// What has to be known beside the figures: a point that the model misses, credits that end, what is not modelled, an interval
/// that is wider.
fn remarks(plan: &PredictionPlan, predicted: &[PredictedVolume<'_>]) -> Vec<Block> {
    let missed = misfit::caution(plan).into_iter();
    let mut notes: Vec<Note> = missed.chain(credits::notes(plan, predicted)).map(Note::caution).collect();
    let first = interval(plan, plan.loads[0]);
    for load in plan.loads.iter().skip(1) {
        let other = interval(plan, *load);
        if other.outside() != first.outside() && !other.outside().is_empty() {
            let reasons = other.outside().join(", and ");
            notes.push(Note::plain(format!(
                "the interval at {} is wider, since {reasons}",
                words::load(*load)
            )));
        }
    }
    if let Some(missing) = plan.not_modelled() {
        notes.push(Note::caution(format!("not modelled: {missing}")));
    }
    if plan.divided_by > 1 {
        let by = plan.divided_by;
        notes.push(Note::plain(format!(
            "volumes and EBS limits are divided by {by}: size, IOPS, throughput and credits"
        )));
    }
    if !plan.notes.is_empty() {
        let number = ebbtide_text::count(plan.notes.len(), "assumption");
        notes.push(Note::plain(format!(
            "the profile was made of what was measured, with {number}: --show calibration"
        )));
    }
    if notes.is_empty() { Vec::new() } else { vec![Block::Notes(notes)] }
}

/// Every figure with its interval.
fn intervals(predicted: &[PredictedVolume<'_>]) -> Table {
    const FIGURES: [(&str, Figure); 9] = [
        ("tps", Figure::Tps),
        ("p50", Figure::P50),
        ("p95", Figure::P95),
        ("p99", Figure::P99),
        ("p99.9", Figure::P999),
        ("IOPS", Figure::Iops),
        ("MiB/s", Figure::MibS),
        ("CPU", Figure::Cpu),
        ("Credits end after", Figure::CreditsEnd),
    ];
    let row = |(_, volume, point): (usize, &PredictedVolume<'_>, &PredictedPoint)| {
        let figure = |(_, figure): (&str, Figure)| Cell {
            detail: words::range(point, figure).unwrap_or_default(),
            value: point.figure(figure),
            ..Cell::from(words::value(point, figure))
        };
        let begin = [Cell::from(volume.volume.spec.as_str()), words::short_load(point.load).into()];
        begin.into_iter().chain(FIGURES.map(figure)).collect()
    };
    let heads: Vec<&str> = ["Volume", "Load"].into_iter().chain(FIGURES.map(|(head, _)| head)).collect();
    Table {
        columns: texts(&heads),
        rows: points(predicted).map(row).collect(),
        sortable: true,
        ..Table::default()
    }
}

/// Everything that limits, and the I/O by kind of file and by volume.
fn limits_and_files(predicted: &[PredictedVolume<'_>]) -> Vec<Block> {
    let limit = |(_, volume, point): (usize, &PredictedVolume<'_>, &PredictedPoint)| {
        [words::limits(point), volume.volume.spec.clone(), words::short_load(point.load)]
            .map(Cell::from)
            .to_vec()
    };
    let limits = Table {
        columns: texts(&["Limited by, share of the time", "Volume", "Load"]),
        rows: points(predicted).map(limit).collect(),
        ..Table::default()
    };
    let files = |(_, volume, point): (usize, &PredictedVolume<'_>, &PredictedPoint)| -> Vec<Vec<Cell>> {
        let end = || [volume.volume.spec.clone(), words::short_load(point.load)].map(Cell::from);
        let with = |(text, interval): (String, String)| Cell { detail: interval, ..Cell::from(text) };
        let kinds = FileKind::ALL.into_iter().filter(|kind| point.file_iops(*kind) > 0.0);
        let of_kind = |kind: FileKind| {
            let figures =
                [Figure::Iops, Figure::MibS].map(|figure| with(words::of_file(point, kind, figure)));
            let [iops, mib_s] = figures;
            [Cell::from(kind.name()), iops, mib_s, Cell::default()]
        };
        let of_role = |volume: &RoleOutcome| {
            let (iops, mib_s) = words::of_role(point, volume);
            [format!("all of the {} volume", volume.role.key()), iops, mib_s, words::waits(volume)]
                .map(Cell::from)
        };
        let cached = point.page_cache_reads().map(|pages| {
            [
                Cell::from("pages read from the page cache"),
                words::rate(pages).into(),
                "-".into(),
                Cell::default(),
            ]
        });
        let volumes = if point.outcome.volumes.len() > 1 { &point.outcome.volumes[..] } else { &[] };
        let rows = kinds.map(of_kind).chain(cached).chain(volumes.iter().map(of_role));
        rows.map(|cells| cells.into_iter().chain(end()).collect()).collect()
    };
    let files = Table {
        columns: texts(&["File", "IOPS", "MiB/s", "Waits for", "Volume", "Load"]),
        rows: points(predicted).flat_map(files).collect(),
        ..Table::default()
    };
    // Only volumes of their own wait by themselves; one volume and one load need no name.
    let one_volume = predicted.len() == 1;
    let one_load = predicted.iter().all(|volume| volume.points.len() == 1);
    let no_waits = files.rows.iter().all(|row| row[3].text.is_empty());
    let needless = [("Waits for", no_waits), ("Volume", one_volume), ("Load", one_load)];
    let [limits, files] = [limits, files].map(|table| {
        needless.iter().filter(|(_, needless)| *needless).fold(table, |table, (head, _)| table.without(head))
    });
    vec![Block::Table(limits), Block::Table(files)]
}

/// What was modelled, and how the model was fitted to the points of the profile.
fn facts(plan: &PredictionPlan) -> Vec<Fact> {
    let settings = &plan.planned.settings;
    let costs = plan.calibration.costs;
    let mut facts = vec![
        Fact::new("Profile", profile_name(plan)),
        Fact::new("Server", settings.flavour.name()),
        Fact::new("Buffer pool", format_size(settings.buffer_pool_bytes)),
        Fact::new("Redo log", format_size(settings.redo_capacity_bytes)),
        Fact::new("Workload", plan.planned.shape.name.as_str()),
        Fact::new("Processors", plan.planned.machine.vcpus.to_string()),
    ];
    if let Some(instance) = &plan.instance {
        let limits = if instance.has_limits() { String::new() } else { format!(": {NO_LIMITS}") };
        facts.push(Fact::new("Instance", format!("{}{limits}", instance.name)));
    }
    if let Some(bytes) = plan.page_cache_bytes() {
        facts.push(Fact::new("Page cache", format!("{} MiB of data files", ebbtide_text::whole(mib(bytes)))));
    }
    facts.extend(plan.set.iter().map(|set| Fact::new("Predicted with", set.as_str())));
    facts.push(Fact::new(
        "Calibrated",
        format!(
            "processor time {:.0} us of a transaction, pages read x {:.2}, pages written x {:.2}",
            costs.cpu_us, costs.reads, costs.writes
        ),
    ));
    facts.extend(plan.calibration.notes.iter().map(|note| Fact::new("", note.as_str())));
    for (n, (residual, span)) in plan.calibration.residuals.iter().zip(&plan.calibration.spans).enumerate() {
        let difference = misfit::difference(*residual);
        let over = span_words(span.time);
        let why = span.shorter.map_or_else(String::new, |why| shorter_words(why, plan.planned.points.get(n)));
        let text = format!("the model gives {difference} than the measured throughput over {over}{why}");
        facts.push(Fact::new(format!("Point {}", n + 1), text));
    }
    facts.extend(plan.notes.iter().map(|note| Fact::new("Made with", note.as_str())));
    facts.push(Fact::new("Interval", interval(plan, plan.loads[0]).words()));
    facts.push(Fact::new("Seed", plan.seed.to_string()));
    facts
}

fn span_words(time: Nanos) -> String {
    ebbtide_text::span(Duration::from_nanos(time.0))
}

/// Why a point is not compared over the time of the predictions.
fn shorter_words(why: Shorter, point: Option<&PlannedPoint>) -> String {
    let why = match why {
        Shorter::Cold => "it begins with an empty buffer pool".to_owned(),
        Shorter::CreditsEnd(end) => {
            format!("its burst credits end within the time of the predictions (after {})", span_words(end))
        }
    };
    let time = match point.and_then(|point| point.time) {
        Some(_) => "its time",
        None => "about what 6,000 transactions take (30 s to 10 min), as it has no time",
    };
    format!(": {time}, since {why}")
}
