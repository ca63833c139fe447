//! The demonstration's report.

use ebbtide_report::{
    Axis, Block, Cell, Chart, Fact, Format, Line as Stroke, Listing, Mark, Note, Plots, Report, Scale,
    Section, Series as Line, Table, Width,
};

use ebbtide_testing::fio::{Second, Series};

use crate::{AFTER, BEFORE, JOB, Run, SECONDS, after_label, before_label};

/// What the runs say, in sentences.
pub(crate) fn findings(runs: &[Run]) -> Vec<String> {
    runs.iter().map(finding).collect()
}

fn finding(run: &Run) -> String {
    let ms = |(from, to): (usize, usize)| run.live.mean(from, to, |second| second.p50_us) / 1e3;
    let iops = |(from, to): (usize, usize)| run.live.iops(from, to);
    if !run.agrees() {
        return format!(
            "{} did not do here what the model says ({:.0} and {:.0} IOPS against {:.0} and {:.0}): this host was too \
             busy to carry it, and answered late by {}. Run it again on a quiet machine.",
            run.name,
            iops(BEFORE),
            iops(AFTER),
            run.model.iops(BEFORE.0, BEFORE.1),
            run.model.iops(AFTER.0, AFTER.1),
            run.lateness
        );
    }
    match run.cliff {
        Some(at) => format!(
            "{} ran at {:.0} IOPS and {:.1} ms until its credits ended after {at} s; from then on at {:.0} IOPS \
             and {:.0} ms. Nothing failed: the volume only answered later.",
            run.name,
            iops(BEFORE),
            ms(BEFORE),
            iops(AFTER),
            ms(AFTER)
        ),
        None => format!("{} ran at {:.0} IOPS and {:.1} ms throughout.", run.name, iops(AFTER), ms(AFTER)),
    }
}

/// The page.
pub(crate) fn page(runs: &[Run]) -> Report {
    let first = vec![Block::Findings(findings(runs)), Block::Facts(runs.iter().flat_map(facts).collect())];
    let notes = vec![
        Note::plain(
            "Solid lines were measured by fio on the block devices of this machine; dashed lines are the same \
             volumes and the same job in virtual time.",
        ),
        Note::plain(
            "The gp2 volume begins with 1.5% of its burst credits (81,000 of 5.4 million), so that the cliff \
             comes after half a minute instead of after half an hour.",
        ),
    ];
    let command = Listing { label: String::new(), text: "./dev demo".into() };
    Report {
        title: "The gp2 cliff".into(),
        subtitle: format!("fio, {JOB}, {SECONDS} s, on two live volumes at the same time"),
        sections: vec![
            Section::new("", first),
            section(runs),
            Section::new("Notes", vec![Block::Notes(notes)]),
            Section::new("Run it again", vec![Block::Listing(command)]),
        ],
        footer: format!("ebbtide {}", env!("CARGO_PKG_VERSION")),
        ..Report::default()
    }
}

fn facts(run: &Run) -> [Fact; 2] {
    [Fact::new(run.name, run.spec), Fact::new(format!("{} answers, late by", run.name), &run.lateness)]
}

fn section(runs: &[Run]) -> Section {
    let marks: Vec<_> = runs
        .iter()
        .filter_map(|run| {
            Some(Mark {
                x: run.cliff? as f64,
                label: format!("{} has no credits left", run.name),
                group: None,
            })
        })
        .collect();
    let chart = |title: &str, unit: &str, scale, format, of: fn(&Second) -> f64| Chart {
        title: title.into(),
        unit: unit.into(),
        scale,
        format,
        width: Width::Full,
        at_least: 0.0,
        series: runs.iter().enumerate().flat_map(|(color, run)| lines(run, color, of)).collect(),
    };
    let plots = Plots {
        heading: String::new(),
        lead: String::new(),
        axis: Axis::Time,
        x_label: "time".into(),
        x: (1..=SECONDS).map(|second| second as f64).collect(),
        charts: vec![
            chart("Operations", "IOPS", Scale::Linear, Format::Number, |second| second.ios),
            chart("Median latency", "log scale", Scale::Log, Format::Microseconds, |second| second.p50_us),
            chart(
                "99th percentile of the latency",
                "log scale",
                Scale::Log,
                Format::Microseconds,
                |second| second.p99_us,
            ),
        ],
        foot: String::new(),
        marks,
    };
    let table = Table {
        columns: ["volume", &before_label(), "p50, p99", &after_label(), "p50, p99"]
            .map(str::to_owned)
            .to_vec(),
        rows: runs.iter().map(row).collect(),
        ..Table::default()
    };
    Section::new("Before and after", vec![Block::Plots(plots), Block::Table(table)])
        .lead("Each point is one second.")
}

fn lines(run: &Run, color: usize, of: fn(&Second) -> f64) -> [Line; 2] {
    let stroke = |what: &str, line, series: &Series| Line {
        label: format!("{} {what}", run.name),
        color,
        line,
        group: None,
        layer: None,
        values: (0..SECONDS).map(|second| series.0.get(second).map(of)).collect(),
        intervals: Vec::new(),
    };
    [stroke("live", Stroke::Solid, &run.live), stroke("model", Stroke::Dashed, &run.model)]
}

fn row(run: &Run) -> Vec<Cell> {
    let cells = |(from, to): (usize, usize)| {
        let ms = |of: fn(&Second) -> f64| run.live.mean(from, to, of) / 1e3;
        let latency = format!("{:.1} ms, {:.1} ms", ms(|second| second.p50_us), ms(|second| second.p99_us));
        [format!("{:.0} IOPS", run.live.iops(from, to)), latency]
    };
    let texts = [vec![run.name.to_owned()], cells(BEFORE).to_vec(), cells(AFTER).to_vec()].concat();
    texts.into_iter().map(Cell::from).collect()
}
