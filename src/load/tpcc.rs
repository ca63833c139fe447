//! `ebbtide load ... tpcc`: its commands, and what they print.

use std::fmt::Write as _;
use std::sync::Mutex;

use anyhow::Result;
use ebbtide_load::tpcc::{
    self, CheckOptions, ConsistencyReport, TpccOptions, TpccPrepareOptions, TpccReport, WaitMode,
};
use ebbtide_load::{LoadError, Target};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::{CheckArgs, PrepareArgs, RunArgs};
use super::text::{self, LoadSummary, endpoints};
use super::tpcc_args::table_sets;
use super::{Live, prepared, refuse, verdict};
use crate::answers;
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

pub(super) fn run(args: &RunArgs, json: bool) -> Result<Exit> {
    let options = args.tpcc_options()?;
    let target = args.server.target()?;
    let cancel = cancel_on([SIGINT, SIGTERM])?;
    if !json {
        line(&run_header(&target, &options, args.report_interval));
    }
    let mut live = Live::new(args, json);
    let report = tpcc::run(&target, &options, &cancel, &mut |sample| live.take(sample));
    drop(live);
    let report = report.map_err(refuse)?;
    if json {
        answers::print(&report);
    } else {
        line(&summary(&report, args.histogram));
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

fn summary(report: &TpccReport, histogram: bool) -> String {
    let (outcome, options) = (&report.outcome, &report.options);
    let summary = LoadSummary::of_outcome(outcome, options.clients.percentile, report.ledger_records);
    let mut text = figures(report);
    text.push_str(&text::summary(&summary, histogram));
    text
}

fn figures(report: &TpccReport) -> String {
    let (options, kit) = (&report.options, &report.kit);
    let mut text = format!(
        "TPC-C:\n    tpmC:                                {:.1} (New-Order transactions a minute)\n",
        report.tpmc
    );
    let _ = writeln!(
        text,
        "    share of the specification's ceiling: {:.1}% of {:.1} tpmC (12.86 for each of {} warehouses){}",
        report.ceiling_pct,
        report.ceiling_tpmc,
        report.tables.all_warehouses(),
        match options.wait {
            WaitMode::None => ": without keying and think times this is no tpmC of the specification",
            WaitMode::Spec => "",
        }
    );
    let _ = writeln!(
        text,
        "    kit:                                 {} {} with the statements of {}; specification {}",
        kit.name, kit.version, kit.statements, kit.revision
    );
    let _ =
        writeln!(text, "    statements per transaction:          {:.1}", report.statements_per_transaction);
    let _ = writeln!(text, "    wait mode:                           {}", wait_words(options));
    if options.wait == WaitMode::Spec {
        let wanted = 10 * report.tables.all_warehouses();
        let _ = writeln!(
            text,
            "    terminals:                           {} of the {wanted} that the specification has for these warehouses",
            options.clients.connections
        );
    }
    let _ = writeln!(text, "    isolation level:                     {}", options.isolation);
    let constants = report.constants;
    let of_load = report.tables.c_last.map_or("not known of these tables".into(), |c| c.to_string());
    let _ = writeln!(
        text,
        "    constants of NURand:                 last names {} (load: {of_load}), customers {}, items {}\n",
        constants.last_name, constants.customer, constants.item
    );
    by_transaction(&mut text, report);
    text
}

fn by_transaction(text: &mut String, report: &TpccReport) {
    let _ = writeln!(
        text,
        "{:<20}{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}  p90 against its limit",
        "By transaction (ms):", "share", "p50", "p90", "p95", "p99", "max", "count"
    );
    for of in &report.by_transaction {
        let response = &of.response;
        let _ = write!(text, "    {:<16}{:>7.2}%", of.transaction, of.share_pct);
        let all = [response.p50_us, response.p90_us, response.p95_us, response.p99_us, response.max_us];
        for us in all {
            let _ = write!(text, "{:>10.3}", us / 1e3);
        }
        let within = match of.within_limit {
            Some(true) => "kept",
            Some(false) => "MISSED",
            None => "none finished",
        };
        let _ = write!(text, "{:>10}  {:.0} s: {within}", response.count, of.limit_s);
        if of.rolled_back > 0 {
            let share = 100.0 * of.rolled_back as f64 / response.count.max(1) as f64;
            let _ = write!(text, "; {} rolled back on purpose ({share:.2}%)", of.rolled_back);
        }
        text.push('\n');
    }
    text.push('\n');
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
