//! `ebbtide load ... tpcc`: its commands, and what they print.

use std::fmt::Write as _;
use std::sync::Mutex;

use anyhow::Result;
use ebbtide_load::tpcc::{
    self, CheckOptions, ConsistencyReport, TpccOptions, TpccPrepareOptions, TpccReport, TpccTransaction,
    WaitMode,
};
use ebbtide_load::{LoadError, Target};
use ebbtide_report::{Block, Cell, Fact, Report, Section, Table, Tone};
use ebbtide_text::fixed;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::{CheckArgs, PrepareArgs, RunArgs};
use super::document;
use super::summary::LoadSummary;
use super::text::{self, endpoints};
use super::tpcc_args::table_sets;
use super::{Live, announce, prepared, print, refuse, verdict};
use crate::answers;
use crate::document::ColorWhen;
use crate::exit::{Exit, Refusal};
use crate::signals::cancel_on;
use crate::status_line::StatusLine;
use crate::text::line;

pub(super) fn prepare(args: &PrepareArgs, json: bool) -> Result<Exit> {
    let options = args.tpcc_options()?;
    let target = args.server.target()?;
    let cancel = cancel_on([SIGINT, SIGTERM])?;
    if !json {
        line(&prepare_header(&target, &options));
    }
    let mut status = StatusLine::new();
    let done = tpcc::prepare(&target, &options, &cancel, &mut |progress| {
        status.show(&text::progress(progress));
    });
    drop(status);
    prepared(done.map_err(refuse_loading)?, options.seed, "ebbtide load cleanup tpcc --execute", json)
}

/// The server's code for a table that is there already.
const TABLE_EXISTS: u16 = 1050;

fn refuse_loading(error: LoadError) -> anyhow::Error {
    if error.code() != Some(TABLE_EXISTS) {
        return refuse(error);
    }
    let hint = "run on the tables that are there, or drop them with `ebbtide load cleanup tpcc --execute`";
    Refusal::environment(error.to_string()).hint(hint).into()
}

fn prepare_header(target: &Target, options: &TpccPrepareOptions) -> String {
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

pub(super) fn run(args: &RunArgs, color: ColorWhen, json: bool) -> Result<Exit> {
    let options = args.tpcc_options()?;
    let target = args.server.target()?;
    let cancel = cancel_on([SIGINT, SIGTERM])?;
    let header = run_header(&target, &options, args.report_interval);
    announce(args, &header, json);
    let mut live = Live::new(args, json);
    let report = tpcc::run(&target, &options, &cancel, &mut |sample| live.take(sample));
    drop(live);
    let report = report.map_err(refuse)?;
    if json {
        answers::print(&report);
    } else {
        let drawn = format!("seed {}; {}", options.clients.seed, options.isolation);
        print(args, &document(&report, &header, args.histogram), color, &drawn)?;
    }
    verdict(&report.outcome.ended, &report.outcome.generator)
}

fn run_header(target: &Target, options: &TpccOptions, report_interval: u32) -> String {
    let mut text = format!(
        "Running tpcc at {}: {}, {}, {}\n",
        endpoints(target),
        of_sets(options.warehouses, options.table_sets),
        options.isolation,
        wait_words(options)
    );
    text::clients(&mut text, &options.clients, report_interval);
    text::ledger(&mut text, options.ledger.as_ref());
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
fn document(report: &TpccReport, header: &str, histogram: bool) -> Report {
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
    let conditions = document::conditions(&summary);
    let sentence = format!("{} tpmC {conditions}; {limits}", fixed(report.tpmc, 1));
    let before = vec![Block::Table(by_transaction(report))];
    let mut document = document::document(&summary, Some(sentence), before, header, histogram);
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

pub(super) fn check(args: &CheckArgs, json: bool) -> Result<Exit> {
    args.must_be_tpcc()?;
    let target = args.server.target()?;
    let cancel = cancel_on([SIGINT, SIGTERM])?;
    let status = Mutex::new(StatusLine::new());
    let options = CheckOptions {
        warehouses: args.warehouses,
        table_sets: args.table_sets.map_or(Ok(0), table_sets)?,
        threads: args.threads,
    };
    let found = tpcc::check(&target, options, &cancel, &|done, all| {
        if let Ok(mut status) = status.lock() {
            status.show(&format!("{done} of {all} queries done"));
        }
    });
    drop(status);
    let report = found.map_err(refuse)?;
    if json {
        answers::print(&report);
    } else {
        line(&findings(&target, &report));
    }
    if report.cancelled {
        return Err(Refusal::cancelled("cancelled: not all warehouses were checked").into());
    }
    Ok(if report.consistent { Exit::Clean } else { Exit::Finding })
}

fn findings(target: &Target, report: &ConsistencyReport) -> String {
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
