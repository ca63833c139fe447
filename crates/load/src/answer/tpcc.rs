//! What TPC-C prints for people: its answer, and the lines before it.

use std::fmt::Write as _;

use ebbtide_report::{Block, Cell, Fact, Report, Section, Table, Tone};
use ebbtide_text::fixed;

use super::summary::LoadSummary;
use super::sysbench::{self, endpoints};
use crate::Target;
use crate::tpcc::{
    ConsistencyReport, TpccOptions, TpccPrepareOptions, TpccReport, TpccTransaction, WaitMode,
};

/// What is loaded, before it is.
#[must_use]
pub fn prepare_header(target: &Target, options: &TpccPrepareOptions) -> String {
    format!(
        "Loading {} at {}: TPC-C, {}, {} connections, foreign keys {}\nRandom numbers: seed {}",
        target.database,
        endpoints(target),
        of_sets(options.warehouses, options.table_sets),
        options.threads,
        if options.foreign_keys { "on" } else { "off" },
        options.seed
    )
}

/// What runs, before it does.
#[must_use]
pub fn run_header(target: &Target, options: &TpccOptions, report_interval: u32) -> String {
    let mut text = format!(
        "Running tpcc at {}: {}, {}, {}\n",
        endpoints(target),
        of_sets(options.warehouses, options.table_sets),
        options.isolation,
        wait_words(options)
    );
    sysbench::clients(&mut text, &options.clients, report_interval);
    sysbench::ledger(&mut text, options.ledger.as_ref());
    let _ = write!(text, "Random numbers: seed {}", options.clients.seed);
    text
}

fn of_sets(warehouses: u32, table_sets: u32) -> String {
    match table_sets {
        0 => format!("{warehouses} warehouses"),
        sets => format!("{sets} sets of tables with {warehouses} warehouses each"),
    }
}

fn wait_words(options: &TpccOptions) -> &'static str {
    match options.wait {
        WaitMode::None => "no keying and think times",
        WaitMode::Spec => "keying and think times of the specification",
    }
}

/// The answer: tpmC first, and each of the five transactions against its limit.
#[must_use]
pub fn document(report: &TpccReport, header: &str, histogram: bool) -> Report {
    let (outcome, options) = (&report.outcome, &report.options);
    let summary = LoadSummary::of_outcome(outcome, &options.clients, report.ledger_records);
    let missed: Vec<&str> = report
        .by_transaction
        .iter()
        .filter(|of_kind| of_kind.within_limit == Some(false))
        .map(|of_kind| of_kind.transaction.as_str())
        .collect();
    let limits = if missed.is_empty() {
        "all limits of the response kept".to_owned()
    } else {
        format!("MISSED the limit of {}", missed.join(", "))
    };
    let conditions = super::document::conditions(&summary);
    let sentence = format!("{} tpmC {conditions}; {limits}", fixed(report.tpmc, 1));
    let before = vec![Block::Table(by_transaction(report))];
    let mut document = super::document::document(&summary, Some(sentence), before, header, histogram);
    let figures = Section::new("TPC-C", vec![Block::Facts(figures(report))]).named("tpcc").details();
    document.sections.insert(1, figures);
    document
}

fn figures(report: &TpccReport) -> Vec<Fact> {
    let (options, kit) = (&report.options, &report.kit);
    let mut facts = vec![
        Fact::new("tpmC", format!("{} (New-Order transactions a minute)", fixed(report.tpmc, 1))),
        Fact::new(
            "Ceiling",
            format!(
                "{}% of {} tpmC (12.86 for each of {} warehouses){}",
                fixed(report.ceiling_pct, 1),
                fixed(report.ceiling_tpmc, 1),
                report.tables.all_warehouses(),
                match options.wait {
                    WaitMode::None => {
                        ": without keying and think times this is no tpmC of the specification"
                    }
                    WaitMode::Spec => "",
                }
            ),
        ),
        Fact::new(
            "Kit",
            format!(
                "{} {} with the statements of {}; specification {}",
                kit.name, kit.version, kit.statements, kit.revision
            ),
        ),
        Fact::new("Statements", format!("{} per transaction", fixed(report.statements_per_transaction, 1))),
        Fact::new("Wait mode", wait_words(options)),
    ];
    if options.wait == WaitMode::Spec {
        let wanted = 10 * report.tables.all_warehouses();
        let connections = options.clients.connections;
        facts.push(Fact::new(
            "Terminals",
            format!("{connections} of the {wanted} that the specification has for these warehouses"),
        ));
    }
    facts.push(Fact::new("Isolation", options.isolation.to_string()));
    let constants = report.constants;
    let of_load = report.tables.c_last.map_or("not known of these tables".into(), |c| c.to_string());
    facts.push(Fact::new(
        "NURand",
        format!(
            "constants: last names {} (load: {of_load}), customers {}, items {}",
            constants.last_name, constants.customer, constants.item
        ),
    ));
    facts
}

fn by_transaction(report: &TpccReport) -> Table {
    let row = |of_kind: &TpccTransaction| {
        let response = &of_kind.response;
        let quantiles = [response.p50_us, response.p90_us, response.p95_us, response.p99_us, response.max_us];
        let quantiles = quantiles.map(|us| fixed(us / 1e3, 3));
        let (within, tone) = match of_kind.within_limit {
            Some(true) => ("kept", Tone::Plain),
            Some(false) => ("MISSED", Tone::Bad),
            None => ("none finished", Tone::Caution),
        };
        let rolled_back = if of_kind.rolled_back > 0 {
            let share = 100.0 * of_kind.rolled_back as f64 / response.count.max(1) as f64;
            format!("{} on purpose ({}%)", of_kind.rolled_back, fixed(share, 2))
        } else {
            "-".to_owned()
        };
        let limit = format!("{} s: {within}", fixed(of_kind.limit_s, 0));
        let mut cells: Vec<Cell> =
            vec![of_kind.transaction.as_str().into(), format!("{}%", fixed(of_kind.share_pct, 2)).into()];
        cells.extend(quantiles.map(Cell::from));
        cells.extend([response.count.to_string().into(), Cell { tone, ..Cell::from(limit) }]);
        cells.push(rolled_back.into());
        cells
    };
    Table {
        columns: [
            "By transaction (ms)",
            "share",
            "p50",
            "p90",
            "p95",
            "p99",
            "max",
            "count",
            "p90's limit",
            "rolled back",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: report.by_transaction.iter().map(row).collect(),
        // Rolled back, p95, max, count, share: the p90 and its limit stay.
        spare: vec![9, 4, 6, 7, 1],
        ..Table::default()
    }
}

/// What the check of the consistency conditions found.
#[must_use]
pub fn findings(target: &Target, report: &ConsistencyReport) -> String {
    let mut text = format!(
        "Consistency conditions of clause 3.3.2 in {} at {}: {}\n",
        target.database,
        endpoints(target),
        of_sets(report.tables.warehouses, report.tables.table_sets)
    );
    for of in &report.conditions {
        let verdict = if of.holds { "holds" } else { "DOES NOT HOLD" };
        let _ = write!(text, "{:>4}  {verdict:<14} {}", of.condition, of.about);
        if !of.holds {
            let _ = write!(text, ": {} rows at fault", of.rows_at_fault);
        }
        text.push('\n');
        for row in &of.first_rows {
            let _ = writeln!(text, "        {row}");
        }
        let more = of.rows_at_fault.saturating_sub(u64::try_from(of.first_rows.len()).unwrap_or(0));
        if more > 0 {
            let _ = writeln!(text, "        and {more} more");
        }
    }
    text.push_str(if report.consistent { "All twelve hold." } else { "The database is not consistent." });
    text
}
