//! `ebbtide load`: sysbench's OLTP workloads and TPC-C against any MySQL or MariaDB server.
//!
//! [`args`] is the command line in sysbench's words, [`server`] the server and the account, [`order`] knows sysbench's order of
//! them. What a load says is `ebbtide_load::answer`.
//! [`tpcc`] and [`tpcc_args`] have what only TPC-C has, [`sysbench_args`] the options of sysbench that are not needed here.

mod args;
mod order;
mod server;
mod switch;
mod sysbench_args;
mod tpcc;
mod tpcc_args;

use ebbtide_load::answer::{self, LoadSummary};
use ebbtide_load::{Ended, Generator, LoadError, LoadKind, Prepared, Sample, Workload};
use ebbtide_report::Report;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::answers::{self, CleanedUp, TablesPrepared};
use crate::document::{ColorWhen, text_options};
use crate::exit::{Exit, Refusal};
use crate::signals::cancel_on;
use crate::status_line::StatusLine;
use crate::text::line;
pub(crate) use args::LoadCommand;
use args::{CleanupArgs, PrepareArgs, RunArgs};
pub(crate) use order::in_our_order;
pub(crate) use server::ServerArgs;

/// Carries a load command out.
///
/// # Errors
/// Wrong options (exit code 2), and a server that is away or refuses (exit code 3).
pub(crate) fn run(command: &LoadCommand, color: ColorWhen, json: bool) -> anyhow::Result<Exit> {
    match command {
        LoadCommand::Prepare(args) => args.sysbench.apply()?,
        LoadCommand::Run(args) => args.sysbench.apply()?,
        LoadCommand::Cleanup(args) => args.sysbench.apply()?,
        LoadCommand::Check(_) => {}
    }
    match command {
        LoadCommand::Prepare(args) if args.workload == Some(LoadKind::Tpcc) => tpcc::prepare(args, json),
        LoadCommand::Prepare(args) => prepare(args, json),
        LoadCommand::Run(args) => match args.workload {
            LoadKind::Tpcc => tpcc::run(args, color, json),
            LoadKind::Sysbench(workload) => run_workload(args, workload, color, json),
        },
        LoadCommand::Check(args) => tpcc::check(args, json),
        LoadCommand::Cleanup(args) => cleanup(args, json),
    }
}

/// A load error with its exit code and what to do.
pub(crate) fn refuse(error: LoadError) -> anyhow::Error {
    let message = error.to_string();
    let refusal = match &error {
        LoadError::Options(_) => Refusal::usage(message),
        _ => Refusal::environment(message),
    };
    let refusal = match error.hint() {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    };
    refusal.into()
}

fn prepare(args: &PrepareArgs, json: bool) -> anyhow::Result<Exit> {
    let options = args.options()?;
    let target = args.server.target()?;
    let cancel = cancel_on([SIGINT, SIGTERM])?;
    if !json {
        line(&answer::prepare_header(&target, &options));
    }
    let mut status = StatusLine::new();
    let done = ebbtide_load::prepare(&target, &options, &cancel, &mut |progress| {
        status.show(&answer::progress(progress));
    });
    drop(status);
    prepared(done.map_err(refuse)?, options.seed, "ebbtide load cleanup --execute", json)
}

/// Prints what was loaded; `drop` is the command that drops it.
fn prepared(done: Prepared, seed: u64, drop: &str, json: bool) -> anyhow::Result<Exit> {
    if json {
        answers::print(&TablesPrepared { prepared: done.clone(), seed });
    } else {
        line(&answer::prepared(&done));
    }
    if done.cancelled {
        let message = "cancelled: the tables are not complete";
        return Err(Refusal::cancelled(message).hint(format!("drop them with `{drop}`")).into());
    }
    Ok(Exit::Clean)
}

fn cleanup(args: &CleanupArgs, json: bool) -> anyhow::Result<Exit> {
    let target = args.server.target()?;
    let names = match (args.workload == Some(LoadKind::Tpcc), args.execute) {
        (true, true) => ebbtide_load::tpcc::cleanup(&target),
        (true, false) => ebbtide_load::tpcc::tables_present(&target),
        (false, true) => ebbtide_load::cleanup(&target, args.tables),
        (false, false) => ebbtide_load::tables_present(&target, args.tables),
    };
    let names = names.map_err(refuse)?;
    if json {
        answers::print(&CleanedUp { database: &target.database, tables: names, dropped: args.execute });
        return Ok(Exit::Clean);
    }
    let list = if names.is_empty() { "no tables of ours".to_owned() } else { names.join(", ") };
    line(&match (names.is_empty(), args.execute) {
        (true, _) => format!("{}: {list}", target.database),
        (false, true) => format!("dropped from {}: {list}", target.database),
        (false, false) => format!("would drop from {}: {list}\nadd --execute to drop them", target.database),
    });
    Ok(Exit::Clean)
}

fn run_workload(args: &RunArgs, workload: Workload, color: ColorWhen, json: bool) -> anyhow::Result<Exit> {
    let options = args.options(workload)?;
    let target = args.server.target()?;
    let cancel = cancel_on([SIGINT, SIGTERM])?;
    let header = answer::run_header(&target, &options, args.report_interval);
    announce(args, &header, json);
    let mut live = Live::new(args, json);
    let report = ebbtide_load::run(&target, &options, &cancel, &mut |sample| live.take(sample));
    drop(live);
    let report = report.map_err(refuse)?;
    if json {
        answers::print(&report);
    } else {
        let summary = LoadSummary::of_run(&report);
        let document = answer::document(&summary, None, Vec::new(), &header, args.histogram);
        let drawn = format!("seed {}; {}", options.clients.seed, options.distribution.describe());
        print(args, &document, color, &drawn)?;
    }
    verdict(&report.ended, &report.generator)
}

/// Prints what runs before the lines of its intervals. Without those it is a detail of the answer.
fn announce(args: &RunArgs, header: &str, json: bool) {
    if args.report_interval > 0 && !json {
        line(header);
    }
}

/// Prints the answer of a run, with the seed and what its numbers were drawn from.
fn print(args: &RunArgs, document: &Report, color: ColorWhen, drawn: &str) -> anyhow::Result<()> {
    let details =
        if args.details { "" } else { "; sysbench's summary, statements, the generator: --details" };
    args.sections.print(document, text_options(color, args.details), &format!("{drawn}{details}"))
}

/// What the report means for the exit code.
fn verdict(ended: &Ended, generator: &Generator) -> anyhow::Result<Exit> {
    if let Ended::Failed { code, message, statement } = ended {
        let message = format!("the run ended early, at {statement}: server error {code}: {message}");
        let hint = "--mysql-ignore-errors=CODE,... restarts transactions after these codes; 2013 reconnects";
        return Err(Refusal::environment(message).hint(hint).into());
    }
    Ok(if generator.disqualified.is_some() { Exit::Finding } else { Exit::Clean })
}

/// Shows a run while it lasts: sysbench's lines where asked for, else one line on a terminal.
struct Live<'a> {
    every: u32,
    json: bool,
    pending: Vec<Sample>,
    status: StatusLine,
    args: &'a RunArgs,
}

impl<'a> Live<'a> {
    fn new(args: &'a RunArgs, json: bool) -> Self {
        Self { every: args.report_interval, json, pending: Vec::new(), status: StatusLine::new(), args }
    }

    fn take(&mut self, sample: &Sample) {
        if self.every == 0 || self.json {
            self.status.show(&answer::live(sample, self.args.time));
            return;
        }
        self.pending.push(sample.clone());
        if self.pending.len() >= usize::try_from(self.every).expect("a u32 fits") {
            line(&answer::interval(
                &self.pending,
                self.args.threads,
                self.args.percentile,
                self.args.rate > 0.0,
            ));
            self.pending.clear();
        }
    }
}
