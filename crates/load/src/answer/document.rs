//! The answer of `ebbtide load run` as a document: the rate and the latency first, then the percentiles and what they hide, then
//! sysbench's summary and the rest.

use ebbtide_report::{Block, Cell, Fact, Listing, Note, Report, Section, Table};
use ebbtide_text::{count, fixed, latency, percent, rough};

use super::summary::LoadSummary;
use super::sysbench;
use crate::{Arrival, Ended, ErrorCount, Latency, OpenLoop, StatementLatency};

/// Kinds of errors that are printed without details.
const FIRST_ERRORS: usize = 2;

/// The answer: `before` comes in front of what all workloads have, as does the sentence where a workload has one of its own.
/// `header` is what runs.
#[must_use]
pub fn document(
    report: &LoadSummary<'_>,
    sentence: Option<String>,
    before: Vec<Block>,
    header: &str,
    histogram: bool,
) -> Report {
    let sentence =
        sentence.unwrap_or_else(|| format!("{} transactions a second {}", rate(report), conditions(report)));
    let mut blocks = vec![Block::Findings(vec![format!("{}{sentence}.", ended(report))])];
    blocks.extend(before);
    blocks.push(Block::Table(percentiles(report)));
    let notes = notes(report);
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    let listing = |text: String| vec![Block::Listing(Listing { label: String::new(), text })];
    let mut sections = vec![Section::new("", blocks)];
    if histogram {
        sections.push(Section::new("Histogram", listing(sysbench::histogram(report.histogram))));
    }
    sections
        .push(Section::new("As sysbench", listing(sysbench::statistics(report))).named("sysbench").details());
    if report.statements.len() > 1 {
        let table = vec![Block::Table(statements(report))];
        sections.push(Section::new("By statement", table).named("statements").details());
    }
    if report.errors.len() > FIRST_ERRORS {
        let errors = report.errors.iter().map(|error| Note::plain(error_words(error))).collect();
        sections.push(Section::new("Errors", vec![Block::Notes(errors)]).details());
    }
    sections.push(Section::new("Generator", vec![Block::Facts(generator(report))]).details());
    sections.push(Section::new("The run", listing(header.to_owned())).named("run").details());
    Report { sections, ..Report::default() }
}

/// Transactions a second.
fn rate(report: &LoadSummary<'_>) -> String {
    let rate = if report.elapsed_s > 0.0 { report.totals.events as f64 / report.elapsed_s } else { 0.0 };
    ebbtide_text::rate(rate)
}

/// `at 16 connections over 10 s; p50 16.0 ms, p95 31.4 ms, p99 45.2 ms; 0 errors`.
pub(super) fn conditions(report: &LoadSummary<'_>) -> String {
    let arrivals = match report.clients.arrival {
        Arrival::Closed => format!("at {}", count(report.clients.connections, "connection")),
        Arrival::Fixed { per_second } | Arrival::Poisson { per_second } => {
            format!("of the {per_second} that arrive, on {}", count(report.clients.connections, "connection"))
        }
    };
    let response = report.response;
    format!(
        "{arrivals} over {}; p50 {}, p95 {}, p99 {}; {}",
        rough(report.elapsed_s),
        latency(response.p50_us),
        latency(response.p95_us),
        latency(response.p99_us),
        count(report.totals.errors, "error")
    )
}

/// What comes before the sentence of a run that did not end as it was to.
fn ended(report: &LoadSummary<'_>) -> String {
    match report.ended {
        Ended::Cancelled => "Cancelled before its end: ".to_owned(),
        Ended::Failed { code, .. } => format!("Ended early by server error {code}: "),
        Ended::Time | Ended::Events => String::new(),
    }
}

fn percentiles(report: &LoadSummary<'_>) -> Table {
    let row = |name: &str, of_kind: &Latency| {
        let quantiles = [
            of_kind.p50_us,
            of_kind.p90_us,
            of_kind.p95_us,
            of_kind.p99_us,
            of_kind.p99_9_us,
            of_kind.p99_99_us,
            of_kind.max_us,
        ];
        let quantiles = quantiles.map(|us| fixed(us / 1e3, 3));
        [name.to_owned()].into_iter().chain(quantiles).map(Cell::from).collect::<Vec<_>>()
    };
    let rows = match (report.service, report.omission) {
        (Some(service), _) => {
            vec![row("from the intended start", report.response), row("service time", service)]
        }
        (None, Some(omission)) => {
            vec![row("as measured", report.response), row("omission corrected", &omission.corrected)]
        }
        (None, None) => vec![row("as measured", report.response)],
    };
    Table {
        columns: ["Percentiles (ms)", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        spare: vec![6, 2, 5],
        ..Table::default()
    }
}

/// What the percentiles hide, what went wrong, and what became of arrivals.
fn notes(report: &LoadSummary<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(why) = &report.generator.disqualified {
        notes.push(Note::caution(format!("DISQUALIFIED: {why}")));
    }
    if let Some(omission) = report.omission {
        let estimate = format!(
            "an estimate, as if each connection had sent every {} ms; --rate measures it",
            fixed(omission.interval_us / 1e3, 3)
        );
        notes.push(if omission.misleading {
            Note::caution(format!(
                "coordinated omission: this closed loop sent nothing while it waited, and its percentiles hide what clients \
                 would have met. The corrected line is {estimate}"
            ))
        } else {
            Note::plain(format!(
                "a closed loop omits what it would have sent while it waited. The corrected line is {estimate}"
            ))
        });
    }
    notes.extend(report.open_loop.map(|open| arrivals(report, open)).unwrap_or_default());
    notes.extend(report.errors.iter().take(FIRST_ERRORS).map(|error| Note::caution(error_words(error))));
    notes
}

fn error_words(error: &ErrorCount) -> String {
    format!("error {} x {}, {} retried: {}", error.code, error.count, error.retried, error.message)
}

fn arrivals(report: &LoadSummary<'_>, open: &OpenLoop) -> Vec<Note> {
    let mut notes = vec![Note::plain(format!(
        "arrivals: due {}, finished {}, shed {}, unfinished {}; started over 1 ms late: {}; longest backlog {}",
        open.due,
        report.totals.events,
        open.shed,
        open.unfinished,
        percent(open.late_percent / 100.0),
        open.longest_backlog
    ))];
    if open.unfinished > 0 {
        notes.push(Note::plain(format!(
            "the unfinished ones had waited up to {} ms, and are in the percentiles with what they had waited",
            fixed(open.oldest_unfinished_ms, 1)
        )));
    }
    if open.shed > 0 {
        notes.push(Note::caution(format!(
            "OVERLOAD: {} of the arrivals found the backlog full and are in no percentile",
            percent(open.shed as f64 / open.due.max(1) as f64)
        )));
    }
    notes
}

fn statements(report: &LoadSummary<'_>) -> Table {
    let row = |statement: &StatementLatency| {
        let of_kind = &statement.latency;
        let quantiles = [of_kind.p50_us, of_kind.p95_us, of_kind.p99_us, of_kind.max_us];
        let quantiles = quantiles.map(|us| fixed(us / 1e3, 3));
        [statement.statement.clone()]
            .into_iter()
            .chain(quantiles)
            .chain([of_kind.count.to_string()])
            .map(Cell::from)
            .collect()
    };
    Table {
        columns: ["By statement (ms)", "p50", "p95", "p99", "max", "count"].map(str::to_owned).to_vec(),
        rows: report.statements.iter().map(row).collect(),
        ..Table::default()
    }
}

fn generator(report: &LoadSummary<'_>) -> Vec<Fact> {
    let (generator, client) = (report.generator, report.client);
    let mut facts = vec![
        Fact::new("Event loops", generator.loops.to_string()),
        Fact::new(
            "Own lag",
            format!(
                "p99 {} ms, max {} ms",
                fixed(generator.lag.p99_us / 1e3, 3),
                fixed(generator.lag.max_us / 1e3, 3)
            ),
        ),
        Fact::new(
            "Cost",
            format!(
                "{} us of CPU per query ({} s); peak memory {} MiB",
                fixed(client.cpu_us_per_query, 2),
                fixed(client.cpu_s, 2),
                fixed(client.peak_rss_mib, 1)
            ),
        ),
        Fact::new("Server", format!("{} at {}", report.server.version, report.server.endpoint)),
    ];
    if report.ledger_records > 0 {
        facts.push(Fact::new("Ledger", count(report.ledger_records, "commit")));
    }
    facts
}
